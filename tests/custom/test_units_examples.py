"""The examples of units: what they compute is what their texts say, by independent definitions."""

import runpy
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from tests.support.custom_examples import EXAMPLES

numba = pytest.importorskip("numba")


def example(name, run="example"):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=run)


@pytest.mark.parametrize("name", ["mitchell", "truncated_mac", "saturating_mac"])
def test_runs(name, capsys):
    example(name, "__main__")
    assert len(capsys.readouterr().out.splitlines()) == 2


def logarithm(x: Fraction) -> Fraction:
    """Mitchell's: e + f of 2^e (1 + f)."""
    e = 0
    while x >= 2:
        x, e = x / 2, e + 1
    while x < 1:
        x, e = x * 2, e - 1
    return e + x - 1


def power(y: Fraction) -> Fraction:
    e = y.numerator // y.denominator
    return Fraction(2) ** e * (1 + y - e)


def test_mitchell_adds_logarithms():
    """All pairs of positive values, and signs and zeros; the products are added exactly in a wide accumulator."""
    mitchell = example("mitchell")["mitchell"]
    unit = sn.CustomMadUnit(mitchell, operand="e4m3", accumulator="binary32")
    codes = np.arange(256, dtype=np.uint8)
    values = sn.decode(codes, "e4m3", np.float32)
    values = values[np.isfinite(values)]
    got = sn.matmul(values[:, None], values[None], unit)
    positive = values[values > 0]
    worst = Fraction(0)
    for x in positive:
        for y in positive[::5]:
            p, q = (
                Fraction(float(x)) * Fraction(float(y)),
                power(logarithm(Fraction(float(x))) + logarithm(Fraction(float(y)))),
            )
            i, j = (np.flatnonzero(values == v)[0] for v in (x, y))
            assert Fraction(float(got[i, j])) == q
            worst = max(worst, (p - q) / p)
    assert 0 < worst <= Fraction(1, 9)
    signs = np.sign(values)
    np.testing.assert_array_equal(np.sign(got), np.outer(signs, signs))
    assert np.isnan(sn.matmul(np.float32([[np.inf]]), np.float32([[0]]), unit)).all()


def test_truncated_products_lose_their_lowest_columns():
    parts = example("truncated_mac")
    truncated, columns = parts["truncated"], parts["COLUMNS"]
    for a in range(0, 256, 3):
        for b in range(256):
            bits = sum(
                1 << (i + j) for i in range(8) for j in range(8) if a >> i & 1 and b >> j & 1 and i + j >= columns
            )
            assert truncated(a, b) == bits
    values = np.arange(256, dtype=np.float32)[None] / 16
    got = sn.matmul(values.T, values, parts["unit"])
    want = np.array([[truncated(a, b) for b in range(256)] for a in range(256)]) / 256
    np.testing.assert_array_equal(got, want)
    assert sn.matmul(values[:, 200:], values[:, 200:].T, parts["unit"])[0, 0] == 65535 / 256


def test_the_saturating_accumulator_is_the_built_in_unit():
    unit = example("saturating_mac")["unit"]
    rng = np.random.default_rng(2)
    a, b = (sn.quantize(rng.uniform(-2, 1.75, s).astype(np.float32), "q2.2") for s in ((20, 90), (90, 30)))
    a[3] = b[:, 4] = 1.75
    np.testing.assert_array_equal(sn.matmul(a, b, unit), sn.matmul(a, b, sn.MadUnit("q8.4", operand="q2.2")))
    assert sn.matmul(a, b, unit).max() <= 127.9375
