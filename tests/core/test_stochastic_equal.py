"""Stochastic rounding to either neighbour with probability 1/2, whatever the distance: against numbers written down,
the reference, and in every path that takes random bits."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from tests.support.cases import cases

MODE = "stochastic_equal"


def test_the_first_random_bit_decides_and_what_is_exact_stays():
    x = np.array([1.0 + 2.0**-40, 1.125, 1.2499, -1.2499, 1.25, 0.0, 2.0**-60, 3 * 2.0**-17, -(2.0**-17), 60000.0])
    for word, want in (
        (0b011, [1.0, 1.0, 1.0, -1.0, 1.25, 0.0, 0.0, 2.0**-16, -0.0, 57344.0]),
        (0b100, [1.25, 1.25, 1.25, -1.25, 1.25, 0.0, 2.0**-16, 2.0**-15, -(2.0**-16), np.inf]),
    ):
        for options in ({"stochastic_bits": 3, "random_bits": word}, {"random_bits": word << 29}):
            for values in (x, [str(v) for v in x], [Fraction(float(v)) for v in x[:5]]):
                got = sn.decode(sn.encode(values, "e5m2", rounding=MODE, **options), "e5m2")
                right = want[: len(got)]
                assert np.array_equal(got, right) and np.array_equal(np.signbit(got), np.signbit(right))
    one = {"stochastic_bits": 1, "rounding": MODE}
    assert sn.quantize([2.25, -2.75], "q4.0", random_bits=1, **one).tolist() == [3, -3]
    assert sn.quantize([2.25, -2.75], "q4.0", random_bits=0, **one).tolist() == [2, -2]


@cases("fmt", ["e5m2", "e4m3fn", "e2m1fn", "dlfloat16", "binary16", "binary32", "q4.4", "q-2.10", "e8m0fnu"])
def test_half_of_the_words_go_up(fmt):
    """By a key: each element takes the word that it takes in other modes, and its first bit."""
    fmt = sn.format(fmt)
    x = float(sn.decode([3 if fmt.has_zero else 128], fmt)[0]) * np.array([1.0, 1.01, 1.4999])
    x = np.broadcast_to(x, (4000, 3))
    for carrier in (np.float64,) if fmt.bits == 32 else (np.float64, np.float32):
        values = x.astype(carrier)
        got = sn.quantize(values, fmt, rounding=MODE, key=11)
        words = sn.Stream(11).words(x.shape)
        down, up = (sn.quantize(values, fmt, rounding=mode) for mode in ("toward_zero", "away_from_zero"))
        assert np.array_equal(got, np.where(words >> 31, up, down))
        assert 0.46 < np.mean(got[:, 1] == up[:, 1]) < 0.54
        assert (got[:, 0] == values[:, 0]).all()


@cases("operation", ["add", "multiply", "divide", "fma", "sqrt"])
@cases("fmt", ["e4m3fn", "binary16", "q4.4"])
@cases("bits", [1, 3, 32])
def test_operations(operation, fmt, bits):
    rng = np.random.default_rng(4)
    f, count = sn.format(fmt), {"sqrt": 1, "fma": 3}.get(operation, 2)
    codes = [rng.integers(0, 1 << f.bits, 3000).astype(f.storage_dtype) for _ in range(count)]
    words = rng.integers(0, 1 << 32, 3000, dtype=np.uint64).astype(np.uint32)
    options = {"rounding": MODE, "stochastic_bits": bits, "invalid": 0}
    got, flags = getattr(sn.ops, operation)(*codes, fmt, return_flags=True, random_bits=words, **options)
    for i in range(0, 3000, 7):
        want = getattr(ref, operation)(*(int(c[i]) for c in codes), fmt, random_bits=int(words[i]), **options)
        assert (got[i], flags[i]) == want, (operation, [c[i] for c in codes], words[i])


@cases("unit", [
    sn.MadUnit("e6m9", operand="e5m2", rounding=MODE, stochastic_bits=8),
    sn.MadUnit("e5m2", operand="e5m2", product="e5m2", rounding=MODE, chunk=5),
    sn.MadUnit("q8.4", operand="q4.4", rounding=MODE, stochastic_bits=1),
], ids=repr)  # fmt: skip
def test_units(unit):
    rng = np.random.default_rng(3)
    fmt = unit.operand[0]
    a, b = (sn.encode(rng.normal(size=shape), fmt) for shape in ((3, 24), (24, 5)))
    got = sn.encode(sn.matmul(sn.decode(a, fmt), sn.decode(b, fmt), unit, key=9), unit.result)
    for m, n in np.ndindex(got.shape):
        want, _ = ref.mad_dot(
            a[m].tolist(), b[:, n].tolist(), operand=fmt, accumulator=unit.accumulator, product=unit.product,
            rounding=MODE, chunk=unit.chunk, stochastic_bits=unit.stochastic_bits, key=9, m=m, n=n,
        )  # fmt: skip
        assert got[m, n] == want


def test_exact_and_block_units_take_it():
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, 64)).astype(np.float32), rng.normal(size=(64, 3)).astype(np.float32)
    unit = sn.ExactDotUnit("e5m2", operand="e4m3fn", rounding=MODE)
    x, y = sn.array(a, "e4m3fn"), sn.array(b, "e4m3fn")
    got = np.array([np.asarray(sn.matmul(x, y, unit, key=key), float) for key in range(200)])
    down, up = (
        np.asarray(sn.matmul(x, y, sn.ExactDotUnit("e5m2", operand="e4m3fn", rounding=mode)), float)
        for mode in ("toward_zero", "away_from_zero")
    )
    assert ((got == down) | (got == up)).all()
    assert (abs(np.mean(got == up, axis=0) - 0.5) < 0.13)[up != down].all()


def test_what_refuses_it():
    with pytest.raises(ValueError, match="use a nearest or a directed mode"):
        sn.quantize([0.5], sn.CustomFormat.from_table([0.0, 1.0, 2.0, -1.0]), rounding=MODE, key=1)
    with pytest.raises(ValueError, match="stochastic_equal"):
        sn.quantize([0.5], "posit8", rounding=MODE, key=1)
