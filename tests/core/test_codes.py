"""encode and decode: every layout, length and thread count gives what the definition gives.

test_quantize.py has the bits of encode in every mode and format.
"""

import threading
import time
from itertools import pairwise

import numpy as np
import pytest

import softnum as sn
from softnum.arrays import lanes
from softnum.formats.facts import fits
from softnum.formats.names import format as format_of
from softnum.runtime import _core
from softnum.runtime.threads import default_threads, for_ranges
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits, decode_by_definition, encode_by_definition, on_every_isa
from tests.support.format_lists import FORMATS, WIDE

NARROW = [f for f in {*FORMATS, *map(format_of, WIDE)} if f.bits <= 16]
LONGER = [f for f in {*FORMATS, *map(format_of, WIDE)} if f.bits > 16]


def some_codes(fmt, seed=0):
    """All codes of up to 16 bits; else the edges of the code space and random ones."""
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << fmt.bits, 5000, dtype=np.uint64, endpoint=False) if fmt.bits < 64 else None
    codes = rng.integers(0, 2**64 - 1, 5000, dtype=np.uint64, endpoint=True) if codes is None else codes
    fields = np.uint64(1) << np.arange(fmt.bits, dtype=np.uint64)
    edges = np.concatenate([fields, fields - np.uint64(1), ~fields & np.uint64((1 << fmt.bits) - 1)])
    return np.concatenate([codes, edges]).astype(fmt.storage_dtype)


@cases("dtype", [np.float32, np.float64])
@cases("fmt", sorted(NARROW + LONGER, key=str), ids=str)
def test_decode_equals_the_definition(fmt, dtype):
    codes = some_codes(fmt)
    if not fits(fmt, dtype):
        exact = []
        for code in codes[:: max(1, codes.size // 300)]:
            try:
                want = decode_by_definition(np.array([code]), fmt, dtype)
            except ValueError:
                continue
            exact.append((code, want))
        for isa in on_every_isa():
            with pytest.raises(ValueError, match="not exact"):
                sn.decode(codes, fmt, dtype)
            for code, want in exact:  # what is exact is given, whatever the rest of the format
                assert_same_bits(sn.decode([code], fmt, dtype), want, fmt, hex(code), isa)
        return
    want = decode_by_definition(codes, fmt, dtype)
    for isa in on_every_isa():
        assert_same_bits(sn.decode(codes, fmt, dtype), want, fmt, isa)
        assert_same_bits(sn.decode(codes[:-3], fmt, dtype), want[:-3], fmt, isa)  # too short for a table of all codes


@cases("fmt", ["e5m2", "e4m3fnuz", "e8m0fnu", "binary16", "tf32", "q4.4", "binary64", "e11m30"])
def test_every_length_and_offset(fmt, isa):
    fmt = format_of(fmt)
    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        x = np.abs(rng.normal(0, 2, 160)).astype(dtype)
        want = encode_by_definition(x, fmt)
        values = decode_by_definition(want, fmt, np.float64)
        for start in (0, 1, 2, 7):
            for n in [*range(70), 129]:
                piece = slice(start, start + n)
                assert_same_bits(sn.encode(x[piece], fmt), want[piece], fmt, start, n)
                assert_same_bits(sn.decode(want[piece], fmt), values[piece], fmt, start, n)
                room = np.full(n + 2, 77).astype(fmt.storage_dtype)
                sn.encode(x[piece], fmt, out=room[1:-1])
                assert room[0] == 77 and room[-1] == 77, (fmt, start, n)
                room = np.full(n + 2, 77.0)
                sn.decode(want[piece], fmt, out=room[1:-1])
                assert room[0] == 77 and room[-1] == 77, (fmt, start, n)


@cases("fmt", ["e4m3fn", "bfloat16", "e8m0fnu", "tf32"])
def test_strided_unaligned_overlapping_and_empty(fmt, isa):
    fmt = format_of(fmt)
    x = np.abs(np.random.default_rng(5).normal(0, 2, (24, 35))).astype(np.float32)
    want = encode_by_definition(x, fmt).reshape(x.shape)
    values = decode_by_definition(want, fmt, np.float32)
    views = [np.s_[::2], np.s_[:, ::3], np.s_[::-1, ::-1], np.s_[3:, 5:], np.s_[None, 2:3], np.s_[:0], np.s_[5, 5:6]]
    for view in views:
        assert_same_bits(sn.encode(x[view], fmt), np.ascontiguousarray(want[view]), view)
        assert_same_bits(sn.decode(want[view], fmt, np.float32), np.ascontiguousarray(values[view]), view)
    assert_same_bits(sn.encode(x.T, fmt), np.ascontiguousarray(want.T))
    assert_same_bits(sn.encode(x.astype(">f4"), fmt), want)
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    unaligned[...] = x
    assert_same_bits(sn.encode(unaligned, fmt), want)
    assert sn.decode(want, fmt, np.float32, out=unaligned) is unaligned
    assert_same_bits(unaligned.copy(), values)
    memory = np.zeros(x.nbytes, np.uint8)  # codes and values that overlap
    if fmt.bits < 32:
        memory.view(np.float32)[...] = x.ravel()
        inside = memory[: want.nbytes].view(fmt.storage_dtype)
        sn.encode(memory.view(np.float32), fmt, out=inside)
        assert_same_bits(inside.copy(), want.ravel())
        sn.decode(inside, fmt, np.float32, out=memory.view(np.float32))
        assert_same_bits(memory.view(np.float32).copy(), values.ravel())
    turned = np.zeros_like(want.ravel())
    sn.encode(x.ravel(), fmt, out=turned[::-1])
    assert_same_bits(turned[::-1].copy(), want.ravel())
    with pytest.raises(ValueError, match="encode: out must be"):
        sn.encode(x, fmt, out=np.zeros(3, fmt.storage_dtype))
    with pytest.raises(ValueError, match="decode: out must be"):
        sn.decode(want, fmt, np.float32, out=np.zeros(x.shape))
    assert sn.encode(np.float32(1.5), fmt).shape == ()


def test_no_code_for_nan_and_infinity(isa):
    for x in (np.array([1, np.nan], np.float32), np.array([np.nan] * 70)):
        for fmt in ("e2m1fn", "q4.4"):
            with pytest.raises(ValueError, match=f"encode.*{fmt}"):
                sn.encode(x, fmt)
            stated = sn.encode(x, fmt, invalid=1.5)
            assert stated[-1] == sn.encode(1.5, fmt) and stated[0] == sn.encode(
                float(np.nan_to_num(x[0], nan=1.5)), fmt
            )
    out = np.full(2, 9, np.uint8)
    with pytest.raises(ValueError, match="no code"):
        sn.encode(np.array([1, np.inf]), "q4.4", out=out)
    assert out.tolist() == [9, 9]  # nothing is half done
    assert sn.encode(np.float64([-1, -0.0, 0, np.nan, np.inf]), "e8m0fnu").tolist() == [255, 0, 0, 255, 255]


@pytest.mark.parametrize("mode", ["nearest_even", "stochastic"])
@pytest.mark.parametrize("fmt", ["e5m2", "q4.4", "e8m0fnu"])
def test_thread_counts_agree(fmt, mode, monkeypatch):
    fmt = format_of(fmt)
    x = np.abs(np.random.default_rng(6).normal(0, 2, 3 * 4096 + 77)).astype(np.float32)
    options = {"rounding": mode, "key": (3, 4)}
    codes = sn.encode(x, fmt, threads=1, **options)
    values = sn.decode(codes, fmt, np.float32, threads=1)
    for threads in (2, 3, 4, 9):
        assert_same_bits(sn.encode(x, fmt, threads=threads, **options), codes, threads)
        assert_same_bits(sn.decode(codes, fmt, np.float32, threads=threads), values, threads)
        assert_same_bits(sn.quantize(x, fmt, threads=threads, **options), values, threads)
        same = x.copy()
        assert_same_bits(sn.quantize(same, fmt, threads=threads, out=same, **options), values, threads)
    monkeypatch.setattr(lanes, "_GRAIN", 5000)
    monkeypatch.setenv("SOFTNUM_THREADS", "3")
    assert_same_bits(sn.encode(x, fmt, **options), codes)
    with pytest.raises(ValueError, match="threads must be a positive integer, got 0"):
        sn.encode(x, fmt, threads=0, **options)


def test_how_many_threads(monkeypatch):
    monkeypatch.setenv("SOFTNUM_THREADS", "3")
    assert default_threads() == 3
    seen = []
    for_ranges(10 * 4096 + 1, lambda i, j: seen.append((i, j)), None, 4096)
    edges = [*range(0, 10 * 4096 + 1, 4096), 10 * 4096 + 1]
    assert sorted(seen) == list(pairwise(edges))
    seen.clear()
    for_ranges(4095, lambda i, j: seen.append((i, j)), None, 4096)
    assert seen == [(0, 4095)]
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("SOFTNUM_THREADS", wrong)
        with pytest.raises(ValueError, match=f"SOFTNUM_THREADS must be a positive integer, got '{wrong}'"):
            default_threads()


def test_an_error_in_one_thread_is_raised():
    here, others, begun = threading.get_ident(), [], threading.Event()

    def work(start, stop):
        if threading.get_ident() == here:
            assert begun.wait(60)
        else:
            others.append(start)
            begun.set()
            raise RuntimeError("in another thread")

    with pytest.raises(RuntimeError, match="in another thread"):
        for_ranges(4 * 4096, work, 3, 1)
    assert others


def test_an_error_here_stops_the_other_threads():
    here, begun, done = threading.get_ident(), threading.Event(), []

    def work(start, stop):
        if threading.get_ident() == here:
            begun.set()
            raise RuntimeError("in this thread")
        assert begun.wait(60)
        done.append(start)

    with pytest.raises(RuntimeError, match="in this thread"):
        for_ranges(100 * 4096, work, 2, 1)
    left = len(done)
    time.sleep(0.05)
    assert len(done) == left


def test_the_comparison_catches_a_planted_fault(isa):
    """A kernel that forgets one fact of the format (here: whether there is a -0) is seen."""
    honest, wrong = format_of("e4m3fn"), sn.FloatFormat(4, 3, specials="fn", negative_zero=False)
    x = np.float32([1, -0.0, -1e-30])
    kernel = _core.Rounder(wrong, (0, 0, 0, 32, 0, 0, 0, 0), 32)
    codes = np.empty(3, np.uint8)
    kernel.encode(x, codes, None, (0, 0), 0, 3)
    with pytest.raises(AssertionError, match="2 of 3 differ"):
        assert_same_bits(codes, encode_by_definition(x, honest))
