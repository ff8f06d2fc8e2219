"""Values in and out without loss: text and Fractions in, Fractions out."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref


@pytest.mark.parametrize(
    "fmt", ["e5m2", "e4m3fnuz", "e8m0fnu", "q4.4", "uq0.8", "dlfloat16", "e15m48", "binary64", "q1.63"]
)
def test_decode_to_objects_is_exact(fmt):
    fmt = sn.format(fmt)
    rng = np.random.Generator(np.random.Philox(3))
    codes = (rng.integers(0, 2**64, 200, dtype=np.uint64) >> np.uint64(64 - fmt.bits)).astype(fmt.storage_dtype)
    codes = np.concatenate([codes, np.arange(4).astype(fmt.storage_dtype)]).reshape(2, -1)
    got = sn.decode(codes, fmt, dtype=object)
    assert got.shape == codes.shape
    for code, value in zip(codes.ravel().tolist(), got.ravel(), strict=True):
        want = ref.decode(code, fmt)
        if want.kind == "nan":
            assert value != value
        elif want.kind == "inf":
            assert value == (-1) ** want.sign * float("inf")
        else:
            assert value == want.fraction and (want.fraction or np.signbit(float(value)) == bool(want.sign))
    finite = [v == v for v in got.ravel()]
    back = sn.encode(got.ravel()[finite], fmt)
    want = [ref.encode(v, fmt)[0] for v in got.ravel()[finite]]
    assert back.tolist() == want


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)), ("-3", Fraction(-3)), ("1/3", Fraction(1, 3)), ("0x1.8p3", Fraction(12)),
        ("-0x.8", Fraction(-1, 2)), ("0X1P-149", Fraction(1, 2**149)), (" 1e3 ", Fraction(1000)),
        ("0x1.00000000000000000001p0", 1 + Fraction(1, 16**20)),
    ],
)  # fmt: skip
def test_text_is_taken_exactly(text, value):
    for fmt in ("e5m2", "binary64", "e15m48", "q16.48"):
        for rounding in ("nearest_even", "up", "down"):
            assert int(sn.encode(text, fmt, rounding=rounding)) == ref.encode(value, fmt, rounding=rounding)[0]


def test_special_texts_and_refusals():
    assert sn.encode(["inf", "-inf", "nan", "-0", "-0x0p0", "0"], "e5m2").tolist() == [0x7C, 0xFC, 0x7E, 0x80, 0x80, 0]
    for text in ("one", "", "0x", "0x.p1", "1/0", "0x1.8q3"):
        with pytest.raises(ValueError, match="encode: .* is no number"):
            sn.encode(text, "e5m2")
    with pytest.raises(ValueError, match="exponent of '0x1p9999999' lies beyond"):
        sn.encode("0x1p9999999", "e5m2")


def test_an_array_gives_objects():
    a = sn.array(["1/3", "0x1.8p1"], "q4.4")
    assert np.asarray(a, dtype=object).tolist() == [Fraction(5, 16), Fraction(3)]
    with pytest.raises(TypeError, match="floats or objects, not of int64"):
        np.asarray(a, dtype=np.int64)
    table = sn.CustomFormat.from_table([0.0, 0.1, float("nan"), -1.0])
    assert sn.decode([1, 3], table, dtype=object).tolist() == [Fraction(0.1), Fraction(-1)]
