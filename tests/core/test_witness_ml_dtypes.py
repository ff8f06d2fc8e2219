"""ml_dtypes as a witness, for every format that it has.

Decoding: every code. Encoding from float32: every code's value, every midpoint, their neighbours, and random numbers;
from float64 likewise, except that ml_dtypes goes through float32 and so rounds twice: the exception is spelled out
and its cases are counted. Arithmetic: ml_dtypes computes in float32 and rounds, which is exact enough for formats of
up to 11 bits of precision (24 >= 2 p + 2, innocuous double rounding) as long as results stay above float32's
subnormals.
"""

import ml_dtypes
import numpy as np
import pytest

import softnum as sn
from softnum.formats.names import format as format_of
from tests.support.cases import cases

FORMATS = {
    "bfloat16": ml_dtypes.bfloat16, "e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3,
    "e3m4": ml_dtypes.float8_e3m4, "e4m3fn": ml_dtypes.float8_e4m3fn, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "e8m0fnu": ml_dtypes.float8_e8m0fnu, "e3m2fn": ml_dtypes.float6_e3m2fn, "e2m3fn": ml_dtypes.float6_e2m3fn,
    "e2m1fn": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
every = cases("name", FORMATS)


def codes_of(fmt):
    return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)


def theirs(x, name) -> np.ndarray:
    """Their codes of values."""
    fmt = format_of(name)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(FORMATS[name]).view(fmt.storage_dtype) & fmt.storage_dtype.type((1 << fmt.bits) - 1)


def test_every_format_of_theirs_is_here():
    """But their integers of 1 to 4 bits."""
    named = {n for n in dir(ml_dtypes) if n.startswith(("float", "bfloat"))}
    assert named == {t.__name__ for t in FORMATS.values()}


@every
def test_every_code_decodes_alike(name):
    fmt = format_of(name)
    with np.errstate(invalid="ignore"):
        values = codes_of(fmt).view(FORMATS[name]).astype(np.float64)
    got = sn.decode(codes_of(fmt), name)
    assert np.array_equal(got, values, equal_nan=True)
    numbers = ~np.isnan(values)
    assert np.array_equal(np.signbit(got)[numbers], np.signbit(values)[numbers])


def numbers(name, dtype):
    """Values, midpoints, neighbours of both, limits, and random numbers."""
    fmt = format_of(name)
    grid = np.unique(sn.decode(codes_of(fmt), name))
    grid = grid[np.isfinite(grid)]
    with np.errstate(over="ignore"):
        middles = grid[:-1] / 2 + grid[1:] / 2
        beyond = float(fmt.max) * np.array([1, 1.01, 1.0625, 1.125, 1.25, 1.5, 2, 4])
        near = np.concatenate([grid, middles, beyond, -beyond]).astype(dtype)
        near = np.concatenate([near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))])
        rng = np.random.default_rng(1)
        scale = np.exp2(rng.uniform(fmt.emin - fmt.mantissa_bits - 2, fmt.emax + 1, 50_000))
        random = (scale * rng.choice([-1, 1], 50_000)).astype(dtype)
    return np.concatenate([near, random, dtype([0.0, -0.0, np.inf, -np.inf])])


def agree(got, want, name, x):
    """NaNs count as equal, as do the zeros of e8m0, which has none."""
    fmt = format_of(name)
    mine, other = sn.decode(got, name), sn.decode(want, name)
    same = (got == want) | (np.isnan(mine) & np.isnan(other))
    if name == "e8m0fnu":  # even means the code here, not the value: ties differ; and zero is NaN there
        exponents = np.frexp(np.abs(x))
        ties = exponents[0] == 0.75
        same |= ties | (x == 0)
    if not fmt.has_nan:
        same |= np.isnan(x)
    bad = np.flatnonzero(~same)
    assert not bad.size, (name, x[bad[0]], got[bad[0]], want[bad[0]], bad.size)


@every
def test_encoding_float32(name):
    x = numbers(name, np.float32)
    if name == "e8m0fnu":  # below its range ml_dtypes has rules of its own
        x = x[np.abs(x) >= 2.0**-126]
    agree(sn.encode(x, name), theirs(x, name), name, x)


@every
def test_encoding_float64_but_for_their_double_rounding(name):
    """ml_dtypes takes float64 to float32 first. Where that is exact, it agrees; elsewhere it equals two roundings."""
    x = numbers(name, np.float64)
    if name == "e8m0fnu":
        x = x[np.abs(x) >= 2.0**-126]
    with np.errstate(all="ignore"):
        through = x.astype(np.float32)
        exact = through.astype(np.float64) == x
    agree(sn.encode(x[exact], name), theirs(x[exact], name), name, x[exact])
    once, twice = sn.encode(x, name), sn.encode(through, name)
    agree(twice, theirs(x, name), name, through)
    if name != "e8m0fnu":
        assert np.count_nonzero(once != twice) > 0  # the defect shows


@cases("operation", ["add", "multiply", "subtract", "divide"])
@cases("name", [n for n in FORMATS if n not in ("e8m0fnu",)])
def test_arithmetic(name, operation):
    fmt = format_of(name)
    if fmt.bits <= 8:
        a, b = (c.ravel() for c in np.meshgrid(codes_of(fmt), codes_of(fmt)))
    else:
        rng = np.random.default_rng(2)
        a, b = (rng.integers(0x3000, 0x5000, 200_000, dtype=np.uint16) for _ in range(2))
        a ^= rng.integers(0, 2, a.shape, dtype=np.uint16) << 15
    with np.errstate(all="ignore"):
        x, y = (c.view(FORMATS[name]).astype(np.float32) for c in (a, b))
        exact = {"add": x + y, "subtract": x - y, "multiply": x * y, "divide": x / y}[operation]
        keep = ~np.isnan(exact) & ((np.abs(exact) >= 2.0**-126) | (exact == 0))
        if operation == "divide":
            keep &= np.isfinite(exact)
        a, b, exact = a[keep], b[keep], exact[keep]
        own = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide}[operation]
        want = own(a.view(FORMATS[name]), b.view(FORMATS[name])).view(fmt.storage_dtype)
    want &= fmt.storage_dtype.type((1 << fmt.bits) - 1)
    got = getattr(sn.ops, operation)(a, b, fmt, **({} if fmt.has_nan else {"invalid": 0}))
    agree(got, want, name, exact)


def test_the_witness_catches_a_planted_fault():
    x = numbers("e4m3fn", np.float32)
    with pytest.raises(AssertionError):
        agree(sn.encode(x, "e4m3fn", rounding="nearest_away"), theirs(x, "e4m3fn"), "e4m3fn", x)
