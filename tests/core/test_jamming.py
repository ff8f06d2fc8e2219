"""Jamming, against numbers written down, against apytypes, and against codes of what is cut off."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from tests.support.cases import cases


def test_by_hand():
    assert sn.ops.jam([3.0, 2.0, 2.9, 0.0, -0.1, -1.0, -2.0, -8.0, -8.5, 7.5], "q4.0").codes.tolist() == [
        3, 3, 3, 1, 15, 15, 15, 9, 8, 7,
    ]  # fmt: skip
    assert sn.ops.jam([8.0, -8.5], "q4.0", overflow="wrap").codes.tolist() == [9, 7]
    x = np.array([1.0, 1.2, 1.25, -1.0, 1e-30, -1e-30, -0.0, 0.0, np.inf, -np.inf, 1e9, -1e9])
    assert sn.ops.jam(x, "e5m2").codes.tolist() == [
        0x3D, 0x3D, 0x3D, 0xBD, 0x01, 0x81, 0x80, 0x00, 0x7C, 0xFC, 0x7B, 0xFB,
    ]  # fmt: skip
    assert np.isnan(sn.ops.jam(np.nan, "e5m2").tolist())
    got = sn.ops.jam([[Fraction(1, 3), Fraction(1, 2)], [3, 5]], "e2m1fn")
    assert got.shape == (2, 2) and got.tolist() == [[0.5, 0.5], [3.0, 6.0]]


@pytest.mark.parametrize("name", ["jam", "JAM", "von_neumann"])
def test_it_is_no_mode(name):
    with pytest.raises(ValueError, match=r"every mode keeps the values of a format, .* softnum.ops.jam\(x, fmt\) sets"):
        sn.quantize([1.0], "e5m2", rounding=name)


@pytest.mark.parametrize("fmt", ["e4m3fn", "e5m2fnuz", "e8m0fnu", "binary8p3se", "binary8p3ue", "posit8", "binary128",
                                 "q60.60", "dlfloat16", sn.CustomFormat.from_table([0.0, 1.0])], ids=str)  # fmt: skip
def test_formats_that_have_no_room(fmt):
    with pytest.raises(ValueError, match="is neither fixed point nor a float"):
        sn.ops.jam([1.0], fmt)


def test_what_it_refuses():
    with pytest.raises(
        ValueError, match="a float saturates at its largest value; overflow='saturate' is for fixed point"
    ):
        sn.ops.jam([1.0], "e5m2", overflow="saturate")
    with pytest.raises(ValueError, match="NaN"):
        sn.ops.jam([np.nan], "e2m1fn")


@cases("fmt", ["e5m2", "e3m4", "e2m1fn", "binary64", "q4.4", "uq0.8", "q30.30"])
def test_the_code_of_what_is_cut_off(fmt):
    """Against `softnum.reference`: odd codes, of which what is cut off is the value or its lower neighbour."""
    fmt, rng = sn.format(fmt), np.random.default_rng(3)
    x = rng.normal(size=200) * 2.0 ** rng.integers(-8, 3, 200)
    x = np.clip(x, max(float(fmt.min), -fmt.max), fmt.max)
    mode = "down" if fmt.kind == "fixed" else "toward_zero"
    got = sn.ops.jam(x, fmt).codes
    want = [ref.encode(Fraction(v), str(fmt), rounding=mode)[0] | 1 for v in x.tolist()]
    assert got.tolist() == want


@cases("source", [(5, 3), (0, 8), (10, -2)])
@cases("overflow", ["saturate", "wrap"])
def test_fixed_point_as_apytypes(source, overflow):
    """All codes of eight bits, to formats of fewer bits and of more, with the point anywhere."""
    apytypes = pytest.importorskip("apytypes")
    rule = apytypes.OverflowMode.WRAP if overflow == "wrap" else apytypes.OverflowMode.SAT
    codes = np.arange(256, dtype=np.uint8)
    values = sn.decode(codes, sn.FixedFormat(*source))
    theirs = apytypes.APyFixedArray(codes.tolist(), *source)
    for whole in range(-1, 8):
        for fraction in range(2 - whole, 7):
            fmt = sn.FixedFormat(whole, fraction)
            want = theirs.cast(whole, fraction, apytypes.QuantizationMode.JAM, rule)
            got = sn.ops.jam(values, fmt, overflow=overflow).codes
            assert np.array_equal(got, np.array(want.to_bits()) & ((1 << fmt.bits) - 1)), fmt


@cases("fmt", ["e5m2", "e4m3", "e3m4", "e8m7"])
def test_floats_as_apytypes(fmt):
    apytypes = pytest.importorskip("apytypes")
    fmt = sn.format(fmt)
    rng = np.random.default_rng(1)
    x = np.float32(rng.normal(size=4000) * 2.0 ** rng.integers(-40, 40, 4000))
    x = np.concatenate(
        [x, np.float32(sn.decode(np.arange(1 << min(fmt.bits, 12)), fmt)), np.float32([np.inf, 0, -0.0])]
    )
    x = x[~np.isnan(x)]
    source = apytypes.APyFloatArray.from_float(x.astype(float).tolist(), 8, 23)
    want = source.cast(fmt.exponent_bits, fmt.mantissa_bits, quantization=apytypes.QuantizationMode.JAM).to_numpy()
    got = sn.decode(sn.ops.jam(x, fmt).codes, fmt)
    assert np.array_equal(got, want) and np.array_equal(np.signbit(got), np.signbit(want))
