"""Jamming in codes, as docs/reference/rounding.md has it, against numbers written down and against apytypes."""

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases


def jammed_fixed(values, fmt, overflow):
    """The last bit set in what is rounded down, but for what saturates."""
    codes, flags = sn.encode(values, fmt, rounding="down", overflow=overflow, return_flags=True)
    return codes | ((flags & sn.Flags.OVERFLOW == 0) | (overflow == "wrap"))


def jammed_float(values, fmt):
    """The last bit set in what is rounded toward zero, but for zeros, infinities and NaNs."""
    return sn.encode(values, fmt, rounding="toward_zero") | (np.isfinite(values) & (values != 0))


def test_by_hand():
    assert jammed_fixed([3.0, 2.0, 2.9, 0.0, -0.1, -1.0, -2.0, -8.0, -8.5, 7.5], "q4.0", "saturate").tolist() == [
        3, 3, 3, 1, 15, 15, 15, 9, 8, 7,
    ]  # fmt: skip
    assert jammed_fixed([8.0, -8.5], "q4.0", "wrap").tolist() == [9, 7]
    x = np.array([1.0, 1.2, 1.25, -1.0, 1e-30, -0.0, np.inf, 1e9])
    assert jammed_float(x, "e5m2").tolist() == [0x3D, 0x3D, 0x3D, 0xBD, 0x01, 0x80, 0x7C, 0x7B]


@pytest.mark.parametrize("name", ["jam", "JAM", "von_neumann"])
def test_it_is_no_mode(name):
    with pytest.raises(ValueError, match="every mode keeps the values of a format, .* set the last bit of the codes"):
        sn.quantize([1.0], "e5m2", rounding=name)


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
            got = jammed_fixed(values, fmt, overflow)
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
    got = sn.decode(jammed_float(x, fmt), fmt)
    assert np.array_equal(got, want) and np.array_equal(np.signbit(got), np.signbit(want))
