"""encode and quantize with flags: the bits of the way without, the flags of the reference."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.names import format as format_of
from softnum.formats.names import format_of_dtype
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC, assert_same_bits, overflow_rules

FORMATS = [
    "e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "e8m0fnu", "binary16", "bfloat16", "dlfloat16", "binary8p3se", "e8m30",
    "q4.4", "uq4.4", "q1.31", "q20.4", sn.FloatFormat(5, 2, lowest_binade="zero", name="e5m2-flushing"),
]  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 0.1, 448.0, 449.0, 465.0, 61440.0, 2.0**-16, 3 * 2.0**-18]


def inputs(dtype, seed=0, count=60):
    """Values of a float type: around the small formats' ranges, anywhere, subnormals and a signaling NaN."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", under="ignore"):
        x = [rng.standard_normal(count) * 2.0 ** rng.integers(-18, 17, count), SPECIAL, [65504.0, 6e-8, 1e-40, 5e-324]]
        x = np.concatenate(x).astype(dtype)
    bits = f"u{x.dtype.itemsize}"
    signaling = np.array([np.inf, -np.inf], dtype).view(bits) + np.array(1, bits)
    return np.concatenate([x, signaling.astype(bits).view(dtype)])


def check(x, fmt, words=None, **options):
    """encode and quantize of x with flags against the reference from x's format, and against the way without flags."""
    fmt, source = format_of(fmt), format_of_dtype(x.dtype)
    invalid = {} if fmt.has_nan else {"invalid": 0.5}
    codes, flags = sn.encode(x, fmt, return_flags=True, **options, **invalid)
    plain = sn.encode(x, fmt, **options, **invalid)
    assert flags.dtype == np.uint8 and flags.shape == x.shape and codes.dtype == plain.dtype
    assert np.array_equal(codes, plain)
    own = {name: value for name, value in options.items() if name not in ("key", "random_bits")}
    for i, bits in enumerate(x.view(source.storage_dtype).tolist()):
        word = {} if words is None else {"random_bits": int(words[i])}
        want, raised = ref.convert(bits, source, fmt, **own, **word, **invalid)
        assert (int(codes[i]), int(flags[i])) == (want, int(raised)), (x[i], fmt, options, flags[i], raised)
    try:
        values = sn.quantize(x, fmt, **options, **invalid)
    except ValueError as error:
        assert "is not exact in" in str(error)
        with pytest.raises(ValueError, match="is not exact in"):
            sn.quantize(x, fmt, return_flags=True, **options, **invalid)
        return
    got, same_flags = sn.quantize(x, fmt, return_flags=True, **options, **invalid)
    assert_same_bits(got, values)
    assert got.dtype == x.dtype and np.array_equal(same_flags, flags)


@cases("fmt", FORMATS, ids=str)
@cases("dtype", ["f2", "f4", "f8"])
def test_modes_and_overflow_rules(dtype, fmt):
    x = inputs(dtype)
    for mode in MODES:
        if mode not in STOCHASTIC:
            for overflow in overflow_rules(format_of(fmt)):
                check(x, fmt, rounding=mode, overflow=overflow)


@cases("fmt", ["e5m2", "e4m3fn", "q4.4", "q1.31", "e8m30", "binary8p3se"])
@cases("dtype", ["f2", "f4", "f8"])
def test_stochastic_modes(dtype, fmt):
    x = inputs(dtype, seed=1)
    given = np.random.default_rng(2).integers(0, 1 << 32, x.size, dtype=np.uint32)
    of_key = np.array([ref.random_word_elementwise(7, 3, i) for i in range(x.size)], np.uint32)
    for mode in STOCHASTIC:
        for r in (1, 8, 32):
            check(x, fmt, of_key, rounding=mode, stochastic_bits=r, key=(7, 3))
            check(x, fmt, given, rounding=mode, stochastic_bits=r, random_bits=given)


@cases("fmt", ["e5m2", "e4m3fn", "binary16", "dlfloat16", "binary8p3se", "q4.4"])
@cases("tininess", ["after", "before"])
@cases("flush", [None, "after", "before"])
def test_tininess_and_flushing(fmt, tininess, flush):
    least = format_of(fmt).smallest_normal if fmt != "q4.4" else 1
    x = np.concatenate([inputs("f4", 3, 20), np.float32(least) * np.linspace(0.5, 1.1, 40, dtype=np.float32)])
    for mode in ("nearest_even", "toward_zero", "up", "to_odd"):
        check(x, fmt, rounding=mode, tininess=tininess, flush_results=flush)
    words = np.arange(x.size, dtype=np.uint32) * np.uint32(0x9E3779B9)
    check(x, fmt, words, rounding="stochastic", random_bits=words, tininess=tininess, flush_results=flush)


@pytest.mark.parametrize("fmt", ["e5m2", "q4.4", "uq4.4", "e2m1fn", "binary16"])
def test_integers_objects_and_text(fmt):
    fmt = format_of(fmt)
    for x in (np.arange(-128, 128, dtype=np.int8), np.array([0, 1, 2**63 + 1, 2**64 - 1], np.uint64), np.array([True])):
        codes, flags = sn.encode(x, fmt, return_flags=True)
        want = [ref.encode(int(v), fmt) for v in x]
        assert codes.tolist() == [code for code, _ in want] and flags.tolist() == [int(f) for _, f in want]
    numbers = [0, 1, -3, 2**200, -(2**200) - 1, 7.75, -0.0, Fraction(1, 3), Fraction(-(10**40), 7), Fraction(1, 10**30)]
    numbers += [8, -8, 16, -16, 17, -24, Fraction(255, 32), Fraction(511, 32), Fraction(-513, 64), Fraction(49, 3)]
    for rule in overflow_rules(fmt):
        for mode in ("nearest_even", "up", "down", "to_odd", "toward_zero"):
            codes, flags = sn.encode(np.array(numbers, object), fmt, rounding=mode, overflow=rule, return_flags=True)
            want = [ref.encode(v, fmt, rounding=mode, overflow=rule) for v in numbers]
            assert codes.tolist() == [code for code, _ in want], (rule, mode)
            assert flags.tolist() == [int(f) for _, f in want], (rule, mode)
    codes, flags = sn.encode(["0.5", "1/3", "1e40"], fmt, return_flags=True)
    want = [ref.encode(v, fmt) for v in (Fraction(1, 2), Fraction(1, 3), Fraction(10**40))]
    assert [*zip(codes.tolist(), flags.tolist(), strict=True)] == [(code, int(f)) for code, f in want]


def test_ml_dtypes_and_long_arrays():
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
    codes, flags = sn.encode(x, "e4m3fn", return_flags=True)
    want = [ref.convert(code, "e5m2", "e4m3fn") for code in range(256)]
    assert [*zip(codes.tolist(), flags.tolist(), strict=True)] == [(code, int(f)) for code, f in want]
    x = np.random.default_rng(5).standard_normal(1 << 20).astype(np.float32)
    options = {"rounding": "stochastic", "key": 11, "stochastic_bits": 9}
    for fmt in ("e4m3fn", "q4.4"):
        codes, flags = sn.encode(x, fmt, return_flags=True, **options)
        assert np.array_equal(codes, sn.encode(x, fmt, **options))
        exact = sn.decode(codes, fmt) == x
        assert np.array_equal(exact, flags & (sn.Flags.INEXACT | sn.Flags.OVERFLOW) == 0)


def test_shapes_out_and_arrays():
    x = np.float32([[1.0, 1.1], [1e9, 0.0]])
    out, values = np.empty((2, 2), np.uint8), np.empty((2, 2), np.float32)
    codes, flags = sn.encode(x[:, ::-1], "e5m2", return_flags=True, out=out)
    assert codes is out and flags.tolist() == [[1, 0], [0, 5]] and np.array_equal(out, sn.encode(x[:, ::-1], "e5m2"))
    got, flags = sn.quantize(x, "e5m2", return_flags=True, out=values)
    assert got is values and flags.tolist() == [[0, 1], [5, 0]]
    half = np.empty(1, np.float16)
    got, flags = sn.quantize(np.float16([1.1]), "e5m2", return_flags=True, out=half)
    assert got is half and half == 1 and flags.tolist() == [1]
    code, flag = sn.encode(1.1, "e5m2", return_flags=True)
    assert code.shape == flag.shape == () and sn.Flags(flag) is sn.Flags.INEXACT
    a, flags = sn.array(x, "e5m2", return_flags=True)
    assert (
        isinstance(a, sn.Array) and np.array_equal(a.codes, sn.encode(x, "e5m2")) and flags.tolist() == [[0, 1], [5, 0]]
    )
    a, flags = sn.array(a, "e4m3fn", return_flags=True)
    assert isinstance(a, sn.Array) and a.format == sn.format("e4m3fn") and flags.tolist() == [[0, 0], [0, 0]]
    codes, flags = sn.encode(np.empty((0, 3)), "e5m2", return_flags=True)
    assert codes.shape == flags.shape == (0, 3)
    codes, flags = sn.encode([float("nan"), 1.0], "q4.4", invalid=-8.0, return_flags=True)
    assert codes.tolist() == [0x80, 0x10] and flags.tolist() == [16, 0]


def test_refusals():
    table = sn.CustomFormat.from_table([0.0, 1.0])
    nan = np.float32([np.nan])
    for call in (sn.encode, sn.quantize):
        for error, message, make in (
            (
                ValueError,
                "return_flags is not defined for the value table",
                lambda c: c([1.0], table, return_flags=True),
            ),
            (ValueError, "flush_results is not defined for the", lambda c: c([1.0], table, flush_results="after")),
            (TypeError, "return_flags= is not for block formats", lambda c: c([1.0], "mxfp4", return_flags=True)),
            (TypeError, "flush_results= is not for block", lambda c: c([1.0], "mxfp4", flush_results="after")),
            (TypeError, "tininess= is not for block formats", lambda c: c([1.0], "mxfp4", tininess="before")),
            (ValueError, "no code for it", lambda c: c(nan, "q4.4", return_flags=True)),
            (ValueError, "tininess must be", lambda c: c(nan, "e5m2", tininess="never")),
            (ValueError, "flush_results must be", lambda c: c(nan, "e5m2", flush_results=True)),
        ):
            with pytest.raises(error, match=message):
                make(call)
