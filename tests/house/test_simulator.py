"""The turns of a block's threads in the simulator of CUDA."""

import threading

import numpy as np
import pytest

from softnum.kernels.device.runtime._cuda import cuda
from tests.support.simulator import in_turn


def shifted(barrier):
    """Each thread's element becomes the next thread's, through shared memory."""

    @cuda.jit
    def kernel(x, out):
        shared = cuda.shared.array(8, np.float32)
        i = cuda.threadIdx.x
        shared[i] = x[i]
        if barrier:
            cuda.syncthreads()
        out[i] = shared[(i + 1) % 8]

    return kernel


def rotated(barrier):
    """The same twice in one buffer, which takes a barrier between reading and writing it again."""

    @cuda.jit
    def kernel(x, out):
        shared = cuda.shared.array(8, np.float32)
        i = cuda.threadIdx.x
        shared[i] = x[i]
        cuda.syncthreads()
        once = shared[(i + 1) % 8]
        if barrier:
            cuda.syncthreads()
        shared[i] = once
        cuda.syncthreads()
        out[i] = shared[(i + 1) % 8]

    return kernel


@pytest.mark.parametrize(("make", "by"), [(shifted, 1), (rotated, 2)])
@pytest.mark.parametrize("barrier", [True, False])
def test_a_missing_barrier_fails_and_a_kernel_with_all_does_not(make, by, barrier):
    kernel = make(barrier)
    for start in (10, 20, 30):  # what an earlier run left in shared memory is never right
        x, out = np.arange(start, start + 8, dtype=np.float32), np.zeros(8, np.float32)
        with in_turn():
            kernel[1, 8](x, out)
        assert (out.tolist() == np.roll(x, -by).tolist()) == barrier


def test_an_exception_ends_every_thread_of_the_block():
    @cuda.jit
    def kernel(x):
        cuda.syncthreads()
        if cuda.threadIdx.x == 3:
            raise ValueError("of the kernel's")
        cuda.syncthreads()
        x[cuda.threadIdx.x] = 1

    before, x = set(threading.enumerate()), np.zeros(8, np.float32)
    with in_turn(), pytest.raises(ValueError, match="of the kernel's"):
        kernel[1, 8](x)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) == before and not x.any()


def test_counts_of_threads_at_a_barrier():
    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        out[i] = cuda.syncthreads_count(i % 2)

    out = np.zeros(6, np.int32)
    with in_turn():
        kernel[1, 6](out)
    assert out.tolist() == [3] * 6
