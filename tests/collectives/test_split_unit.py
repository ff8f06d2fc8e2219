"""SplitDotUnit: its definition, its places, what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import softnum as sn
from softnum.inspect.trace import steps_of
from tests.support.cases import cases
from tests.support.collective_definition import defined

_WIDE = sn.MadUnit("binary32", operand="bfloat16")
_CORE = sn.ChunkedDotUnit(sn.FusedDotUnit(4, 13, "binary32", operand="e4m3fn"), 4)
_SR = sn.MadUnit("bfloat16", operand="bfloat16", rounding="stochastic")


def _operands(*shapes, fmt="bfloat16"):
    rng = np.random.Generator(np.random.Philox(3))
    return [sn.quantize(rng.standard_normal(shape), fmt).astype(np.float32) for shape in shapes]


def _definition(a, b, unit):
    """By softnum.reference: sums of ranks step by step, and ranks that send messages."""
    fmt, parts = unit.inner.operand[0], []
    codes = [sn.encode(x, fmt) for x in (a, b)]
    each = a.shape[1] // unit.ranks
    for first in range(0, a.shape[1], each):
        part = slice(first, first + each)
        sums = [
            steps_of(unit.inner, row[part].tolist(), column[part].tolist(), None, None)[1]
            for row in codes[0] for column in codes[1].T
        ]  # fmt: skip
        values = sn.decode(np.array(sums, unit.inner.result.storage_dtype), unit.inner.result)
        parts.append(sn.quantize(values, unit.result))
    return defined(unit.collective, parts)[0].reshape(a.shape[0], -1)


@cases(
    "inner, text",
    [
        (_WIDE, "ring(ranks=4, unit='bfloat16')"),
        (_WIDE, "ring(ranks=3, unit='bfloat16', wire='e5m2', channels=2, direction=-1)"),
        (_CORE, "double_tree(ranks=3, unit='binary16')"),
        (_CORE, "in_network(ranks=4, unit=ExactDotUnit('bfloat16', operand='bfloat16'))"),
        (_CORE, "doubling(ranks=6, unit='binary32', wire='bfloat16')"),
        (_WIDE, "one_shot(ranks=2, unit='bfloat16')"),
    ],
)
def test_products_are_those_of_the_definition(inner, text):
    unit = sn.SplitDotUnit(inner, text)
    a, b = _operands((3, 12), (12, 5), fmt=str(inner.operand[0]))
    got = sn.matmul(a, b, unit)
    np.testing.assert_array_equal(got, _definition(a, b, unit))
    np.testing.assert_array_equal(got, sn.collectives.split_matmul(a, b, inner, text)[0])


def test_a_result_depends_on_its_place():
    unit = sn.SplitDotUnit(_WIDE, "ring(ranks=4, unit='bfloat16')")
    a, b = _operands((6, 32), (32, 9))
    whole = sn.matmul(a, b, unit)
    parts = [sn.matmul(a[i : i + 2], b, unit) for i in (0, 2, 4)]
    assert not np.array_equal(whole, np.concatenate(parts))
    stack = sn.matmul(a.reshape(3, 2, 32), b, unit)  # stacked matrices are one array
    np.testing.assert_array_equal(stack.reshape(whole.shape), whole)
    tree = sn.SplitDotUnit(_WIDE, "tree(ranks=4, unit='bfloat16')")  # whose order is the same everywhere
    parts = [sn.matmul(a[i : i + 2], b, tree) for i in (0, 2, 4)]
    np.testing.assert_array_equal(sn.matmul(a, b, tree), np.concatenate(parts))


def test_sections_are_shared_one_by_one():
    """Heads of queries, keys and values: rank r has part r of each."""
    unit = sn.SplitDotUnit(_WIDE, "ring(ranks=2, unit='bfloat16')", sections=[8, 4, 4])
    a, b = _operands((3, 16), (16, 5))
    order = [0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15]
    want = sn.collectives.split_matmul(a[:, order], b[order], _WIDE, unit.collective)[0]
    got = sn.matmul(a, b, unit)
    np.testing.assert_array_equal(got, want)
    assert not np.array_equal(got, sn.collectives.split_matmul(a, b, _WIDE, unit.collective)[0])


def test_c_is_added_after_the_collective():
    unit = sn.SplitDotUnit(_WIDE, "ring(ranks=4, unit='bfloat16')")
    a, b, c = _operands((3, 8), (8, 5), (5,))
    want = sn.quantize(sn.matmul(a, b, unit).astype(np.float64) + c, "bfloat16")  # whose sums binary64 holds
    out = np.empty((3, 5), np.float32)
    assert sn.matmul(a, b, unit, c, out=out) is out
    np.testing.assert_array_equal(out, want)
    arrays = [sn.array(x, "bfloat16") for x in (a, b, c)]
    np.testing.assert_array_equal(sn.matmul(*arrays[:2], unit, arrays[2]), want)
    result = sn.matmul(a[:0], b, unit)
    assert result.shape == (0, 5) and sn.matmul(a[:, :0], b[:0], unit).tolist() == [[0.0] * 5] * 3


def test_random_words_are_those_of_split_matmul():
    unit = sn.SplitDotUnit(_SR, sn.collective("ring", 4, unit=_SR))
    a, b = _operands((3, 16), (16, 5))
    assert unit.stochastic
    got = sn.matmul(a, b, unit, key=7, threads=1)
    np.testing.assert_array_equal(got, sn.collectives.split_matmul(a, b, _SR, unit.collective, key=7)[0])
    np.testing.assert_array_equal(got, sn.matmul(a, b, unit, key=7, threads=3))
    with pytest.raises(ValueError, match="key"):
        sn.matmul(a, b, unit)


def test_it_is_python_and_pickled_and_equal():
    unit = sn.SplitDotUnit(_WIDE, "ring(ranks=4, unit='bfloat16')", sections=(8, 4))
    assert eval(unit.expression, vars(sn)) == unit == pickle.loads(pickle.dumps(unit))
    assert "K of sections of 8, 4 in 4 parts, rounded to bfloat16 and added by ring(ranks=4" in str(unit)


@cases(
    "given, says",
    [
        ({"collective": "ring"}, "state ranks="),
        ({"collective": "ring(ranks=2, own='kept')"}, "leave out own='kept', or take split_matmul"),
        ({"collective": "one_shot(ranks=2, start='own')"}, "start='own', or take split_matmul"),
        ({"collective": "ring(ranks=2, average='after')"}, "are added, and .* averages"),
        ({"inner": sn.BlockDotUnit("binary32", operand="mxfp8_e4m3")}, "multiplies blocks"),
        ({"inner": sn.SplitDotUnit(_WIDE, "ring(ranks=2)")}, "is divided already"),
        ({"sections": [3]}, "multiples of the 2 ranks, which divide each of them, got 3"),
        ({"sections": [True]}, "got True"),
        ({"sections": 4}, "the lengths of K's parts, got 4"),
    ],
)
def test_what_is_no_unit(given, says):
    with pytest.raises(ValueError, match=says):
        sn.SplitDotUnit(**{"inner": _WIDE, "collective": "ring(ranks=2)"} | given)


def test_what_it_does_not_multiply():
    unit = sn.SplitDotUnit(_WIDE, "ring(ranks=2)", sections=[2, 2])
    a, b, c = _operands((3, 4), (4, 5), (3, 4))
    image = np.ones((1, 1, 4, 4), np.float32)
    winograd, fourier = sn.mac.products.conv2d_winograd, sn.mac.products.conv2d_fft
    operator = sn.operator("function (A[M, L], B[L, N]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }")
    for call, says in (
        (lambda: sn.matmul(a[:, :3], b[:3], unit), r"K = 3, and sections=\[2, 2\] are 4 together"),
        (lambda: sn.matmul(a[:, :3], b[:3], sn.SplitDotUnit(_WIDE, "ring(ranks=2)")), "K = 3 has no equal parts"),
        (lambda: sn.matmul(a, b, unit, c), r"c of shape \(3, 4\) does not broadcast to \(3, 5\)"),
        (lambda: sn.matmul(a + 0.001, b, unit), "is no value of bfloat16"),
        (lambda: sn.matmul(a, b, unit, return_stats=True), "counts no roundings; leave it out"),
        (lambda: sn.matmul(a, b, unit, random_bits=a), "takes no random_bits; state key="),
        (lambda: sn.conv2d(a.reshape(1, 4, 3, 1), b.reshape(5, 4, 1, 1), unit), "multiply matrices by softnum.matmul"),
        (lambda: winograd(image, image[..., :3, :3], unit), "or divides K among ranks; state a unit"),
        (lambda: fourier(image, image[..., :3, :3], _WIDE, output=unit), "output=.* or divides K among ranks"),
        (lambda: operator(a, b, unit=unit, fmt="bfloat16"), "sums of operators are computed in parts"),
        (lambda: sn.sum(a[0], unit), "has no adder of its own"),
        (lambda: unit.trace(a[0], b[:, 0]), "no steps are known of SplitDotUnit"),
        (lambda: sn.ChunkedDotUnit(unit, 2), "multiplies whole matrices alone"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            call()
