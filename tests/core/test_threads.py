"""Threads: every piece is done once; errors and interrupts come out; forks and users' own threads do no harm."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import softnum as sn
from softnum.runtime._core import Gate
from softnum.runtime.threads import for_each, for_ranges


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_piece_is_done_once(threads):
    for round_ in range(50):
        done = []

        def work(i, j, done=done):
            done.append((i, j))
            return 1 << (i % 3)

        result = for_each([(i, i + 1) for i in range(20)], work, threads)
        assert sorted(done) == [(i, i + 1) for i in range(20)], round_
        assert result == 7


def test_nothing_to_do():
    assert for_each([], lambda: 1, 4) == 0
    assert for_ranges(0, lambda i, j: int(j > i), 4, 1) == 0


def test_an_interrupt_waits_for_the_others():
    here, begun, ended = threading.get_ident(), threading.Event(), []

    def work(i):
        if threading.get_ident() == here:
            assert begun.wait(60)
            raise KeyboardInterrupt
        begun.set()
        threading.Event().wait(0.05)
        ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        for_each([(i,) for i in range(8)], work, 2)
    assert ended  # whoever was at work has ended
    count = len(ended)
    threading.Event().wait(0.1)
    assert len(ended) == count
    assert for_each([(1,), (2,)], lambda i: i, 2) == 3  # and the team goes on


def test_users_threads_at_once():
    x = np.random.default_rng(1).standard_normal(5 * 4096).astype(np.float32)
    want = sn.encode(x, "e5m2", threads=1)
    wrong = []

    def use():
        for _ in range(30):
            if not np.array_equal(sn.encode(x, "e5m2", threads=3), want):
                wrong.append(1)

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


def test_work_within_work():
    inner = lambda i: for_each([(k,) for k in range(4)], lambda k: 1 << k, 2) << 4 * i  # noqa: E731
    assert for_each([(i,) for i in range(3)], inner, 2) == 0xFFF


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork on this system")
def test_a_forked_child_has_threads_of_its_own():
    script = """
import os, warnings
import numpy as np, softnum as sn
warnings.simplefilter("ignore")
x = np.ones(8 * 4096, np.float32)
sn.encode(x, "e5m2", threads=3)
child = os.fork()
sn.encode(x, "e5m2", threads=3)
if child == 0:
    raise SystemExit(0 if (sn.encode(x, "e5m2", threads=3) == 0x3c).all() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=120, check=False).returncode == 0


def test_a_gate_lets_through_and_gives_up():
    gate = Gate()
    assert gate.count == 0 and gate.wait(0, 0, 1_000_000) == 0  # nobody raises it: a millisecond
    gate.raise_()
    assert gate.wait(0, 10**9, 10**9) == 1 == gate.count
    threading.Timer(0.02, gate.raise_).start()
    assert gate.wait(1, 0, 60 * 10**9) == 2  # woken from sleep
    threading.Timer(0.02, gate.raise_).start()
    assert gate.wait(2, 60 * 10**9, 0) == 3  # seen awake
