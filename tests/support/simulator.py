"""Numba's simulator of CUDA with one thread of a block at a time, from barrier to barrier."""

import threading
from contextlib import contextmanager

import numpy as np
from numba.cuda.simulator.kernel import BlockManager, BlockThread


@contextmanager
def in_turn():
    """Within it the threads of a block take turns, first to last before the first barrier, last to first before the
    second, and so on: what a kernel computes does not hang on the scheduler of the host, and a kernel that lacks a
    barrier computes the same wrong result at each run. Numba's own lets all threads of a block run at once, and
    asks each again and again whether it has come to a barrier.
    """
    before = BlockManager.run, BlockThread.run, BlockThread.syncthreads
    BlockManager.run, BlockThread.run, BlockThread.syncthreads = _block, _thread, _barrier
    try:
        yield
    finally:
        BlockManager.run, BlockThread.run, BlockThread.syncthreads = before


_run = BlockThread.run


def _thread(self):
    _run(self)
    self.turn_over.set()


def _barrier(self):
    self.turn_over.set()
    self.syncthreads_event.wait()
    self.syncthreads_event.clear()
    if self.abort:
        raise RuntimeError("another thread of the block failed")


def _block(self, grid_point, *arguments):
    threads = [
        BlockThread(lambda: self._f(*arguments), self, grid_point, point, self._debug)
        for point in np.ndindex(*self._block_dim)
    ]
    for thread in threads:
        thread.turn_over = threading.Event()
    _turns(threads, BlockThread.start)
    live = threads
    while live := [thread for thread in reversed(live) if thread.is_alive()]:
        _turns(live, lambda thread: thread.syncthreads_event.set())


def _turns(threads, resume):
    """Each thread in turn, up to its next barrier or its end; the first exception ends all of them."""
    for thread in threads:
        resume(thread)
        thread.turn_over.wait()
        thread.turn_over.clear()
        if thread.exception:
            for other in filter(BlockThread.is_alive, threads):
                other.abort = True
                other.syncthreads_event.set()
            raise thread.exception[0].with_traceback(thread.exception[1])
