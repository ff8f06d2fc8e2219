"""Ctrl-C is heard within long calls, and cutting them up for that changes no bit."""

import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest

import softnum as sn
from softnum.arrays import lanes
from softnum.mac.products import operands
from softnum.runtime import threads
from tests.support.cases import cases

# each takes 20 s or more of a core
LONG = {
    "exp": "x = np.full(3 * 10**7, 0x3FC00001, np.uint32); sn.exp(x, 'binary32')",
    "exp of a transposed array": "x = np.full((6000, 6000), 0x3FC00001, np.uint32).T; sn.exp(x, 'binary32')",
    "divide": "x = np.full(10**8, 0x3FC00001, np.uint32)\nwhile 1: sn.divide(x, x, 'binary32', return_flags=True)",
    "quantize in one thread": "x = np.full(10**8, 1.1)\nwhile 1: sn.quantize(x, 'e5m2', threads=1, out=x)",
    "products": "a = np.ones((512, 200000), np.float32); u = sn.MadUnit('e8m7', operand='bfloat16')\n"
    "while 1: sn.matmul(a, a.T, u)",
    "counted products": "a = np.ones((1024, 4096), np.float32); u = sn.MadUnit('e6m9', operand='bfloat16')\n"
    "sn.matmul(a, a.T, u, return_stats=True, threads=1)",
}  # fmt: skip
PROGRAM = """
import numpy as np, signal, softnum as sn, time, threading, sys
heard = []
def note(*_):
    heard.append(time.perf_counter())
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, note)
def send():
    time.sleep(1)
    heard.append(time.perf_counter())
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
try:
    threading.Timer(0.5, send).start()
    {}
except KeyboardInterrupt:
    print(heard[1] - heard[0], time.perf_counter() - heard[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_is_heard_within_a_second(name):
    """Of an idle machine: a loaded one has the core for other things, which the limit here allows for."""
    text = PROGRAM.format(LONG[name].replace("\n", "\n    "))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    heard, ended = map(float, done.stdout.split())
    assert heard < 4 and ended < 5, (name, heard, ended)


def test_a_range_of_one_thread_has_an_end():
    seen = []
    grain = 1 << 14
    threads.for_ranges(20 * grain + 5, lambda i, j: seen.append((i, j)), 1, grain)
    assert seen[0][0] == 0 and seen[-1][1] == 20 * grain + 5
    assert all(a[1] == b[0] for a, b in pairwise(seen)) and len(seen) >= 5
    assert max(j - i for i, j in seen) <= 4 * grain + 4096


def test_ctrl_c_ends_a_call_between_two_ranges():
    seen = []

    def work(i, j):
        seen.append(i)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)

    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        threads.for_ranges(1 << 20, work, 1, 1 << 12)
    assert len(seen) == 2 and time.perf_counter() - start < 5


@cases("shape", [(1, 70), (300, 1), (200, 130), (1, 1)])
def test_blocks_cover_a_product_and_have_an_end(shape, monkeypatch):
    monkeypatch.setattr(operands, "MACS_AT_ONCE", 1000)
    monkeypatch.setattr(operands, "DEFINED_AT_ONCE", 100)
    (m, n), k = shape, 50
    for wanted in (1, 2, 3):
        for batches in (1, 3):
            for defined in (False, True):
                met = np.zeros((batches, m, n), int)
                operands._few_blocks.cache_clear()
                _, blocks = operands.blocks_of(m, n, k, batches, wanted, defined)
                for i, m0, m1, n0, n1 in blocks:
                    met[i, m0:m1, n0:n1] += 1
                    assert defined or (n0 % 64 == 0 and m1 - m0 <= 128 and n1 - n0 <= 64)
                    assert not defined or (m1 - m0) * (n1 - n0) * k <= 400
                assert (met == 1).all()
    operands._few_blocks.cache_clear()


UNITS = {
    "mad": sn.MadUnit("e6m9", operand="e5m2"),
    "stochastic": sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic"),
    "fused": sn.unit("nvidia_h100_e5m2"),
    "exact": sn.ExactDotUnit("binary32", operand="e5m2"),
}


@cases("name", UNITS)
def test_products_cut_up_are_the_same(name, monkeypatch):
    unit = UNITS[name]
    rng = np.random.default_rng(1)
    a = sn.quantize(rng.standard_normal((2, 270, 20), np.float32), "e5m2")
    b = sn.quantize(rng.standard_normal((2, 20, 150), np.float32), "e5m2")
    options = {"key": 5} if unit.stochastic else {}
    want, counts = sn.matmul(a, b, unit, threads=1, return_stats=True, **options)
    monkeypatch.setattr(operands, "MACS_AT_ONCE", 3000)
    monkeypatch.setattr(operands, "DEFINED_AT_ONCE", 5000)
    monkeypatch.setattr("softnum.mac.products.matrices.MACS_AT_ONCE", 3000)
    operands._few_blocks.cache_clear()
    for wanted in (1, 3):
        got, told = sn.matmul(a, b, unit, threads=wanted, return_stats=True, **options)
        assert got.tobytes() == want.tobytes() and told == counts
        assert sn.matmul(a, b, unit, threads=wanted, **options).tobytes() == want.tobytes()
        assert sn.matmul(a[0], b[0], unit, threads=wanted, **options).tobytes() == want[0].tobytes()
    operands._few_blocks.cache_clear()


@cases("layout", ["transposed", "strided", "broadcast", "negative", "scalar", "turned"])
@cases("options", [{}, {"return_flags": True}, {"rounding": "stochastic", "key": 3}])
def test_slices_of_other_layouts_are_the_same(layout, options, monkeypatch):
    monkeypatch.setattr(lanes, "LEAST_THREADED", 1)
    x = np.random.default_rng(2).integers(0, 1 << 32, (40, 60, 5), dtype=np.uint32)
    view = {"transposed": x.T, "strided": x[::2], "turned": x.transpose(1, 0, 2)}.get(layout, x)
    other = {"broadcast": x[:1], "negative": x[:, ::-1], "scalar": x[0, 0, 0]}.get(layout, view)
    whole = sn.multiply(view, other, "binary32", **options)
    monkeypatch.setattr(lanes, "_OPERATION_GRAIN", 10)
    parts = sn.multiply(view, other, "binary32", **options)
    pairs = list(zip(whole, parts, strict=True)) if isinstance(whole, tuple) else [(whole, parts)]
    for one, two in pairs:
        assert one.tobytes() == two.tobytes() and one.dtype == two.dtype and one.strides == two.strides
