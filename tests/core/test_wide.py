"""Formats whose codes take two words, against SoftFloat, TestFloat, MPFR, x87 itself and plain integers."""

import ctypes
import io
import itertools
import pickle
import random
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import gmpy2
import numpy as np
import pytest
import softfloatpy

import softnum as sn
from softnum import reference as ref
from softnum.formats.c_text import format_constant
from softnum.formats.names import long_double
from softnum.formats.wide import TWO_WORDS, integers, two_words
from softnum.vectors import ReferenceModel, TextLayout, VectorSpec, check, plan, write
from softnum.vectors.plans.operands import edge_codes
from tests.support.c_helpers import built_for_x86
from tests.support.cases import cases
from tests.support.mpfr import MPFR_MODES, code_of, context
from tests.support.softfloat import MODES, OPERATIONS, TININESS, softfloat_state

QUAD, X87 = sn.format("binary128"), sn.format("x87_extended")
WIDE = ["binary128", "x87_extended", "e11m63", "e15m80", "q100.20", "uq70.58"]
# pseudo-denormals, pseudo-infinities, pseudo-NaNs, unnormals
UNUSUAL = [
    0x00008000000000000001, 0x80008000000000000000, 0x0000FFFFFFFFFFFFFFFF, 0x7FFF0000000000000000,
    0xFFFF0000000000000000, 0x7FFF4000000000000000, 0xFFFF0000000000000001, 0x3FFF4000000000000000,
    0x00010000000000000001, 0x7FFE7FFFFFFFFFFFFFFF, 0xBFFF0000000000000000,
]  # fmt: skip


def drawn(fmt, rng, count: int) -> list[int]:
    """Codes: edge cases and random ones, many of them near 1."""
    edges = [int(code) for code in edge_codes(fmt)]
    codes = []
    for _ in range(count):
        kind, code = rng.randrange(3), rng.getrandbits(fmt.bits)
        if kind == 1 and fmt.exponent_bits:
            field, plain = fmt.bias + rng.randrange(-130, 131), fmt.implied_format
            code = (
                field << fmt.mantissa_bits | rng.getrandbits(fmt.mantissa_bits) | rng.getrandbits(1) << plain.bits - 1
            )
            code = fmt.from_implied(code) if fmt.explicit_bit else code
        if kind == 0 or (fmt.explicit_bit and X87.is_unsupported(two_words([code]))[0]):
            code = rng.choice(edges)
        codes.append(code)
    return codes


# -- names and facts ---------------------------------------------------------------------------------------------------
def test_names():
    for name in ("f128", "F128", "fp128", "quad", "_Float128", "e15m112"):
        assert sn.format(name) == QUAD
    for name in ("extF80", "extf80", "float80", "x86_fp80"):
        assert sn.format(name) is X87
    assert X87 != sn.format("e15m63") == X87.implied_format and X87.bits == 80 and sn.format("e15m63").bits == 79
    assert sn.format("q100.28").bits == 128 and str(sn.format("uq65.0")) == "uq65.0"
    for name in ("float128", "longdouble", "np.longdouble"):
        with pytest.raises(ValueError, match="x87_extended by it on x86"):
            sn.format(name)
    assert {"binary128", "x87_extended"} <= set(sn.format_names())


@pytest.mark.parametrize("name", WIDE)
def test_formats_come_back(name, tmp_path):
    fmt = sn.format(name)
    assert eval(repr(fmt), vars(sn)) == fmt == pickle.loads(pickle.dumps(fmt)) and hash(fmt) == hash(sn.format(name))
    a = sn.array(["0.1", "3", "77/3"], fmt)
    sn.save(tmp_path / "a.npz", a)
    again = sn.load(tmp_path / "a.npz")
    assert again.format == fmt and (again.codes == a.codes).all() and (pickle.loads(pickle.dumps(a)) == a).all()
    assert (sn.arrays.unpack(sn.arrays.pack(a), fmt, 3) == a.codes).all() and sn.arrays.pack(a).size == -(
        -3 * fmt.bits // 8
    )


def test_what_holds_what():
    contains = lambda wide, other: sn.format(wide).contains(sn.format(other))  # noqa: E731
    assert contains("binary128", "x87_extended") and contains("x87_extended", "binary64") and contains("q65.0", "q64.0")
    assert not contains("x87_extended", "binary128") and not contains("binary64", "x87_extended")


# -- codes and values --------------------------------------------------------------------------------------------------
def test_codes():
    a = sn.Array([1 << 100, 3], QUAD)
    assert a.codes.dtype == TWO_WORDS and a.codes.tolist() == [(1 << 36, 0), (0, 3)]
    assert (sn.Array(a.codes, QUAD) == a).all() and sn.Array(np.uint8([1]), QUAD).codes.tolist() == [(0, 1)]
    assert integers(a.codes).tolist() == [1 << 100, 3] and two_words(7).shape == ()
    for bad, error in (([1 << 80], ValueError), ([-1], ValueError), ([0.5], TypeError), ([True, "a"], TypeError)):
        with pytest.raises(error, match="codes"):
            sn.decode(bad, X87)
    with pytest.raises(ValueError, match="0x100000000000000000000 is no code of x87_extended, which has 80 bits"):
        sn.decode(two_words([1 << 80]), X87)


@cases("name", WIDE)
def test_values_come_back_exactly(name):
    fmt, rng = sn.format(name), random.Random(name)
    codes = two_words(drawn(fmt, rng, 300))
    values = sn.decode(codes, fmt, object)
    again = sn.encode(values, fmt)
    finite = np.array([v == v for v in values])
    assert (again[finite] == codes[finite]).all() and fmt.is_nan(again[~finite]).all()
    for code, value in zip(integers(codes).tolist(), values.tolist(), strict=True):
        x = ref.decode(code, fmt)
        assert value != value if x.kind == "nan" else x.kind != "finite" or Fraction(value) == x.fraction
    shown = repr(sn.Array(codes[finite][:3], fmt))
    texts = shown.removeprefix("Array([").split("]")[0].split(",")
    assert (sn.encode([text.strip() for text in texts], fmt) == codes[finite][:3]).all()


def test_numbers_in():
    third = sn.encode(["1/3", "0x1.8p3", "-0", "inf"], QUAD)
    want = [0x3FFD5555555555555555555555555555, 0x4002 << 112 | 1 << 111, 1 << 127, 0x7FFF << 112]
    assert integers(third).tolist() == want
    assert (sn.encode(Fraction(1, 3), QUAD) == third[0]).all()
    assert sn.encode([2**100 + 1, 0.5], QUAD, return_flags=True)[1].tolist() == [0, 0]
    assert sn.encode([2**113 + 1], QUAD, return_flags=True)[1].tolist() == [1]
    assert sn.decode(sn.encode(np.float32([0.1]), X87), X87, np.float32).tolist() == np.float32([0.1]).tolist()
    assert sn.quantize([0.1, 1e300], QUAD).tolist() == [0.1, 1e300]
    assert sn.quantize(np.float32([0.1]), "q60.10").tolist() == [round(0.1 * 1024) / 1024]
    with pytest.raises(ValueError, match="not exact in float64"):
        sn.decode(third, QUAD)
    with pytest.raises(ValueError, match="q100.20 has no code for it"):
        sn.encode([float("nan")], "q100.20")
    assert sn.decode(sn.encode([float("nan"), 2.0], "q100.20", invalid=-1), "q100.20").tolist() == [-1, 2]


@pytest.mark.skipif(long_double() is None, reason="numpy.longdouble is no format of softnum's here")
def test_long_doubles():
    fmt, x = sn.format(np.longdouble), np.array(["0.1", "3", "-inf", "1e4000"], np.longdouble)
    codes = sn.encode(x, fmt)
    assert (codes[:3] == sn.encode(["0.1", "3", "-inf"], fmt)).all()
    assert (sn.decode(codes, fmt, np.longdouble) == x).all()
    back = sn.decode(sn.encode([0.5, 2.0**-16440], X87), X87, np.longdouble)
    assert back[0] == 0.5 and (back[1] != 0 or 2.0**-16440 == 0)
    with pytest.raises(ValueError, match="not exact in"):
        sn.decode(sn.encode(["0.1"], "q10.100"), "q10.100", np.longdouble)


def test_arrays():
    a = sn.array(["0.1", "2.5", "-3"], QUAD)
    assert (np.sort(a) == a[[2, 0, 1]]).all() and np.argmax(a) == 1 and (a[a > 0] == a[:2]).all()
    assert (np.unique(np.concatenate([a, a])) == np.sort(a)).all() and a[1].item() == 2.5
    assert (np.where(a > 0, a, 0) == sn.array(["0.1", "2.5", "0"], QUAD)).all()
    a[0] = 7
    assert (2 * a - 1).tolist() == [13, 4, -7] and (abs(a) + -a).tolist() == [0, 0, 6]
    with pytest.raises(ValueError, match=r"0.1 is not exact in q65.0; round it first: softnum.array\(x, 'q65.0'\)"):
        sn.array([1], "q65.0") + 0.1
    with pytest.raises(ValueError, match="formats differ"):
        a + sn.array([1.0], "binary64")
    assert sn.add(a, sn.array(1.0, "binary64"), out_fmt="binary32").tolist() == [8, 3.5, -2]
    assert (sn.compare(a, sn.array([7.0, 3.0, -5.0], "binary16")) == [0, -1, 1]).all()


def test_order():
    zeros = sn.Array([1 << 127, 0], QUAD)
    assert sn.ops.total_order(zeros, zeros[::-1]).tolist() == [True, False]
    # by value; a pseudo-denormal before the number of its value, what is unsupported outside
    codes = [0x00017FFFFFFFFFFFFFFF, 0x00018000000000000001, 0x00008000000000000001, 0x00018000000000000000,
             0x00007FFFFFFFFFFFFFFF, 0, 1 << 79, 0xFFFF8000000000000000, 0x7FFF8000000000000000]  # fmt: skip
    assert integers(np.sort(sn.Array(codes, X87)).codes).tolist() == [codes[i] for i in (7, 6, 5, 4, 3, 2, 1, 8, 0)]
    rng = random.Random(4)
    for name in WIDE:
        fmt = sn.format(name)
        a = np.sort(sn.Array(two_words(drawn(fmt, rng, 40)), fmt))
        assert sn.ops.total_order(a[:-1], a[1:]).all()


# -- operations against others -----------------------------------------------------------------------------------------
def softfloat_numbers(codes):
    return [softfloatpy.Float128.from_bytes(code.to_bytes(16, "big")) for code in codes]


@cases("tininess", TININESS)
@cases("mode", MODES)
@cases("operation", OPERATIONS)
def test_binary128_is_softfloats(operation, mode, tininess):
    rng = random.Random(f"{operation} {mode} {tininess}")
    count = {"sqrt": 1, "fma": 3}.get(operation, 2)
    rows = [drawn(QUAD, rng, 150) for _ in range(count)]
    if operation in ("add", "subtract", "remainder"):  # neighbours too
        rows[1][::3] = [code + rng.randrange(-2, 3) & ((1 << 128) - 1) for code in rows[0][::3]]
    function = getattr(softfloatpy, f"f128_{OPERATIONS[operation]}")
    want = []
    with softfloat_state(mode, tininess):
        for operands in zip(*map(softfloat_numbers, rows), strict=True):
            softfloatpy.set_exception_flags(0)
            code = int.from_bytes(function(*operands).to_bytes(), "big")
            want.append((code, int(softfloatpy.get_exception_flags())))
    got, flags = getattr(sn.ops, operation)(
        *map(two_words, rows), QUAD, rounding=mode, tininess=tininess, return_flags=True
    )
    nans = QUAD.is_nan(got)
    for i, (code, raised) in enumerate(want):
        mine = integers(got[i : i + 1])[0]
        same = QUAD.is_nan(two_words([code]))[0] if nans[i] else mine == code
        assert same and flags[i] == raised, f"{[hex(row[i]) for row in rows]}: {mine:#x} {flags[i]}, {code:#x} {raised}"


@cases("mode", MODES)
def test_conversions_are_softfloats(mode):
    rng = random.Random(mode)
    codes = drawn(QUAD, rng, 200)
    for name, prefix in (("binary16", "f16"), ("binary32", "f32"), ("binary64", "f64")):
        fmt, function = sn.format(name), getattr(softfloatpy, f"f128_to_{prefix}")
        got, flags = sn.convert(two_words(codes), QUAD, fmt, rounding=mode, return_flags=True)
        with softfloat_state(mode, "after"):
            for i, number in enumerate(softfloat_numbers(codes)):
                softfloatpy.set_exception_flags(0)
                want = int.from_bytes(function(number).to_bytes(), "big")
                assert got[i] == want or (fmt.is_nan(got[i : i + 1]) & fmt.is_nan(np.array([want], got.dtype))).all()
                assert flags[i] == int(softfloatpy.get_exception_flags())


MPFR = {
    "add": (2, gmpy2.add), "subtract": (2, gmpy2.sub), "multiply": (2, gmpy2.mul), "divide": (2, gmpy2.div),
    "sqrt": (1, gmpy2.sqrt), "fma": (3, gmpy2.fma),
}  # fmt: skip


@cases("mode", MPFR_MODES)
@cases("operation", MPFR)
@cases("name", ["binary128", "x87_extended", "e11m63"])
def test_operations_are_mpfrs(name, operation, mode):
    fmt = sn.format(name)
    plain, rng = fmt.implied_format, random.Random(f"{name} {operation} {mode}")
    operands, function = MPFR[operation]
    rows = [drawn(plain, rng, 120) for _ in range(operands)]
    stored = lambda row: two_words([fmt.from_implied(c) if fmt.explicit_bit else c for c in row])  # noqa: E731
    got, flags = getattr(sn.ops, operation)(*map(stored, rows), fmt, rounding=mode, return_flags=True)
    with context(plain, mode) as settings:
        for i, codes in enumerate(zip(*rows, strict=True)):
            values = [ref.decode(code, plain) for code in codes]
            if any(v.kind != "finite" for v in values):
                continue
            with gmpy2.context(precision=plain.precision, emin=-(1 << 20), emax=1 << 20):
                numbers = [gmpy2.mpfr(gmpy2.mpq(v.numerator, v.denominator)) * (-1) ** v.sign for v in values]
            settings.clear_flags()
            result = function(*numbers)
            if gmpy2.is_nan(result) or settings.divzero:
                continue
            want = code_of(result, plain)
            want = fmt.from_implied(want) if fmt.explicit_bit else want
            assert integers(got[i : i + 1])[0] == want, [hex(code) for code in codes]
            assert bool(flags[i] & 1) == settings.inexact and bool(flags[i] & 4) == settings.overflow


FUNCTIONS = [
    "atan", "cbrt", "cos", "erf", "exp", "exp2", "expm1", "log", "log10", "log1p", "sin", "sinh", "tan", "tanh",
]  # fmt: skip


@cases("function", FUNCTIONS)
def test_functions_are_mpfrs(function):
    rng = random.Random(function)
    theirs = getattr(gmpy2, function)
    codes = [
        (16383 + rng.randrange(-30, 7)) << 112 | rng.getrandbits(112) | rng.getrandbits(1) << 127 for _ in range(12)
    ]
    if function.startswith("log"):
        codes = [code & (1 << 127) - 1 for code in codes]
    got = getattr(sn.ops, function)(two_words(codes), QUAD)
    with context(QUAD, "nearest_even"):
        for i, code in enumerate(codes):
            want = theirs(gmpy2.mpfr(gmpy2.mpq(ref.decode(code, QUAD).fraction)))
            assert integers(got[i : i + 1])[0] == code_of(want, QUAD), hex(code)


def test_exact_roots_of_high_degree():
    """Of powers of 3 that only wide formats hold, and of the numbers beside them."""
    for fmt, power in ((QUAD, 70), (sn.format("uq128.0"), 80)):
        numbers = sn.encode([3**power - 1, 3**power, 3**power + 1], fmt)
        degree = sn.encode([power] * 3, fmt)
        for mode, want in (("down", [-1, 0, 0]), ("up", [0, 0, 1])):
            found, flags = sn.ops.rootn(numbers, degree, fmt=fmt, rounding=mode, return_flags=True)
            three = integers(sn.encode([3], fmt))[0]
            assert [code - three for code in integers(found).tolist()] == want and flags.tolist() == [1, 0, 1]
    third = sn.ops.rootn(sn.encode([3**70], QUAD), sn.encode([-70], QUAD), fmt=QUAD)
    assert (third == sn.encode(["1/3"], QUAD)).all()


@cases("overflow", ["saturate", "wrap"])
@cases("mode", ["nearest_even", "down", "up", "toward_zero"])
@cases("name", ["q100.20", "uq70.58", "q1.127", "uq128.0"])
def test_fixed_point_is_integer_arithmetic(name, mode, overflow):
    """Against floors of integers, without the definition."""
    fmt, rng = sn.format(name), random.Random(f"{name} {mode}")
    low, high = (-(1 << (fmt.bits - 1)), (1 << (fmt.bits - 1)) - 1) if fmt.signed else (0, (1 << fmt.bits) - 1)
    rows = [[rng.getrandbits(rng.randrange(1, fmt.bits + 1)) for _ in range(150)] for _ in range(2)]
    as_number = lambda code: code - (1 << fmt.bits) if fmt.signed and code >> (fmt.bits - 1) else code  # noqa: E731
    one = 1 << fmt.fraction_bits

    def rounded(top: int, bottom: int) -> int:
        below, rest = divmod(top, bottom)
        up = {"down": False, "up": rest > 0, "toward_zero": rest > 0 and top < 0,
              "nearest_even": 2 * rest > bottom or (2 * rest == bottom and below % 2 == 1)}[mode]  # fmt: skip
        return below + up

    def code(integer: int) -> int:
        return (integer if overflow == "wrap" else min(max(integer, low), high)) & ((1 << fmt.bits) - 1)

    results = {
        "add": lambda x, y: (x + y, 1), "subtract": lambda x, y: (x - y, 1), "multiply": lambda x, y: (x * y, one),
        "divide": lambda x, y: (x * one * (1 if y > 0 else -1), abs(y)),
    }  # fmt: skip
    rows[1] = [max(y, 1) for y in rows[1]]
    for operation, exact in results.items():
        got, flags = getattr(sn.ops, operation)(
            *map(two_words, rows), fmt, rounding=mode, overflow=overflow, return_flags=True
        )
        for i, (x, y) in enumerate(zip(*rows, strict=True)):
            top, bottom = exact(as_number(x), as_number(y))
            integer = rounded(top, bottom)
            assert integers(got[i : i + 1])[0] == code(integer), (operation, hex(x), hex(y))
            assert flags[i] == (top % bottom != 0) * 1 | (not low <= integer <= high) * 4
    shifted = sn.ops.shift(two_words(rows[0]), -3, fmt)
    assert integers(shifted).tolist() == [(as_number(x) >> 3) & ((1 << fmt.bits) - 1) for x in rows[0]]


# -- x87 itself --------------------------------------------------------------------------------------------------------
X87_OPERATIONS = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "sqrt": 1, "remainder": 2, "round_to_integral": 1,
    "compare": 2, "convert": 1, "to_integer": 1,
}  # fmt: skip
X87_MODES = ("nearest_even", "down", "up", "toward_zero")
X87_STATUS = {1: 16, 4: 8, 8: 4, 16: 2, 32: 1}


@pytest.fixture(scope="module")
def x87(tmp_path_factory):
    return ctypes.CDLL(built_for_x86(tmp_path_factory.mktemp("x87"), Path(__file__).with_name("x87_operations.c")))


def ask_x87(x87, operation: str, mode: str, a, b, precision: int = 3):
    """(codes, flags, condition codes)"""
    words = [np.ascontiguousarray(np.stack([x["low"], x["high"]], 1)) for x in (a, b)]
    out, status = np.zeros((len(a), 2), np.uint64), np.zeros(len(a), np.uint16)
    number = list(X87_OPERATIONS).index(operation)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*words, out, status)]
    x87.x87_each(number, X87_MODES.index(mode), precision, ctypes.c_long(len(a)), *pointers)
    codes = np.zeros(len(a), TWO_WORDS)
    codes["low"], codes["high"] = out[:, 0], out[:, 1]
    flags = sum((status & bit != 0) * flag for bit, flag in X87_STATUS.items())
    return codes, flags, status & 0x4500


def specimens(seed: str, count: int = 400):
    rng = random.Random(seed)
    known = drawn(X87, rng, count) + UNUSUAL * 8
    return (two_words([rng.choice(known) for _ in range(2 * count)]) for _ in range(2))


@cases("mode", X87_MODES)
@cases("operation", X87_OPERATIONS)
def test_x87_extended_is_x87s(x87, operation, mode):
    """Codes of every kind, NaNs and what is not supported among them, and all flags."""
    a, b = specimens(f"{operation} {mode}")
    want, raised, condition = ask_x87(x87, operation, mode, a, b)
    options = {"rounding": mode, "return_flags": True}
    if operation == "compare":
        got, flags = sn.compare(a, b, X87, return_flags=True)
        want = np.select([condition == 0x4500, condition == 0x4000, condition == 0x100], [2, 0, -1], 1)
    elif operation == "convert":
        got, flags = sn.convert(a, X87, "binary64", nan="x86", **options)
        want = want["low"]
    elif operation == "to_integer":
        got, flags = sn.ops.to_integer(a, X87, np.int64, invalid="x86", **options)
        want = want["low"].view(np.int64)
    else:
        operands = (a, b)[: X87_OPERATIONS[operation]]
        got, flags = getattr(sn.ops, operation)(*operands, X87, nan="x86", **options)
    bad = np.flatnonzero((got != want) | (flags != raised))
    shown = [(hex(integers(a)[i]), hex(integers(b)[i]), got[i], flags[i], want[i], raised[i]) for i in bad[:3]]
    assert not bad.size, shown


@cases("mode", X87_MODES)
@cases("precision", [0, 2])
@cases("operation", ["add", "subtract", "multiply", "divide", "sqrt"])
def test_rounding_precision_is_a_format_of_results(x87, operation, precision, mode):
    """x87's precision control: results of 24 or 53 bits in the range of x87's exponents."""
    a, b = specimens(f"{operation} {precision} {mode}", 200)
    want, raised, _ = ask_x87(x87, operation, mode, a, b, precision)
    operands, narrow = (a, b)[: X87_OPERATIONS[operation]], {0: "e15m23", 2: "e15m52"}[precision]
    got, flags = getattr(sn.ops, operation)(
        *operands, (X87,) * len(operands), out_fmt=narrow, rounding=mode, return_flags=True
    )
    got = sn.convert(got, narrow, X87)
    assert ((got == want) | (X87.is_nan(got) & X87.is_nan(want))).all() and (flags == raised).all()


def test_what_unusual_encodings_mean():
    pseudo = sn.Array([0x00008000000000000001], X87)
    assert (pseudo == sn.Array([0x00018000000000000001], X87)).all() and sn.classify(pseudo)[0] == 8
    unsupported = sn.Array(UNUSUAL[3:], X87)
    assert np.isnan(unsupported).all() and not np.isinf(unsupported).any()
    result, flags = sn.add(unsupported, unsupported, return_flags=True)
    assert (result.codes == two_words(X87.nan_code)).all() and (flags == 16).all()
    assert (integers((-unsupported).codes) == integers(unsupported.codes) ^ (1 << 79)).all()


# -- vectors -----------------------------------------------------------------------------------------------------------
LINES = [  # by testfloat_gen of TestFloat 3e, and the mode that it was asked for
    ("f128_add", "near_even",
     "3FFF0000000000000000000000000000 3F8E0000000000000000000000000001 3FFF0000000000000000000000000001 01"),
    ("f128_to_i32", "near_even", "41E00000000000000000000000000000 7FFFFFFF 10"),
    ("f128_to_f32", "near_even", "3FFF0000010000000000000000000000 3F800000 01"),
    ("f128_lt", "near_even", "7FFF8000000000000000000000000000 00000000000000000000000000000000 0 10"),
    ("extF80_mul", "min", "3FFF8000000000000001 3FFF8000000000000001 3FFF8000000000000002 01"),
    ("extF80_sqrt", "near_even", "40008000000000000000 3FFFB504F333F9DE6484 01"),
    ("ui64_to_extF80", "near_even", "FFFFFFFFFFFFFFFF 403EFFFFFFFFFFFFFFFF 00"),
    ("f128_to_extF80", "near_even", "3FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF 40008000000000000000 01"),
]  # fmt: skip


@cases(("op", "mode", "line"), LINES)
def test_lines_of_testfloat(op, mode, line):
    assert check(io.BytesIO(f"{line}\n".encode()), op, rounding=mode).ok


@pytest.mark.parametrize(("op", "options"), [
    ("f128_mulAdd", {"rounding": "odd"}), ("extF80_rem", {}), ("f128_to_ui64", {}), ("extF80_le", {}),
    ("f32_to_extF80", {}), ("multiply", {"fmt": "q100.20", "overflow": "wrap"}),
    ("add", {"fmt": ("binary128", "e5m2"), "out_fmt": "x87_extended", "rounding": "sr", "stochastic_bits": 8}),
])  # fmt: skip
@pytest.mark.parametrize("dialect", ["softnum", "csv", "readmemh", "npz"])
def test_vectors_are_written_and_judged(op, options, dialect, tmp_path):
    spec = VectorSpec.make(op, **options)
    vectors = plan(spec, count=400)
    write(vectors, tmp_path / "vectors", dialect=dialect)
    report = check(tmp_path / "vectors", dialect=dialect)
    assert report.ok and report.spec == spec and report.vectors == vectors.count
    with_random = np.concatenate([b.operands[0] for b in plan(spec, count=2000, seed=5).blocks()])
    again = np.concatenate([b.operands[0] for b in plan(spec, count=2000, seed=5).blocks()])
    assert (with_random == again).all() and len(np.unique(with_random)) > 200


@cases(("op", "fault", "cause"), [
    ("f128_mul", {"rounding": "toward_zero"}, "truncation"), ("extF80_add", {"nan": "x86"}, "nan-payload"),
    ("f128_mulAdd", {"tininess": "before"}, "tininess"), ("extF80_sub", {"rounding": "up"}, "wrong-mode"),
])  # fmt: skip
def test_causes_are_named(op, fault, cause):
    spec, wrong = VectorSpec.make(op), VectorSpec.make(op, **fault)
    blocks = [wrong.evaluate(block.operands) for block in plan(spec, count=1500).blocks()]
    text = b"".join(map(TextLayout(spec).format, blocks))
    report = check(io.BytesIO(text), op)
    assert report.failures and [found.cause for found in report.causes] == [cause]


GENERATOR = shutil.which("testfloat_gen")


@pytest.mark.skipif(GENERATOR is None, reason="no testfloat_gen on the path: Berkeley TestFloat 3e is needed")
@pytest.mark.parametrize("mode", ["near_even", "minMag", "min", "max", "near_maxMag"])
@pytest.mark.parametrize("op", [
    "f128_add", "f128_mul", "f128_div", "f128_rem", "f128_sqrt", "f128_mulAdd", "f128_to_f64", "f128_to_extF80",
    "f64_to_f128", "f128_le", "extF80_add", "extF80_sub", "extF80_mul", "extF80_div", "extF80_rem", "extF80_sqrt",
    "extF80_to_f32", "i64_to_extF80", "extF80_lt_quiet",
])  # fmt: skip
def test_testfloat(op, mode):
    with subprocess.Popen([GENERATOR, "-level", "1", f"-r{mode}", op], stdout=subprocess.PIPE) as made:
        head = b"".join(itertools.islice(made.stdout, 5000))
        made.kill()
    report = check(io.BytesIO(head), op, rounding=mode, any_nan=True)
    assert report.ok, str(report)


# -- where they cannot go ----------------------------------------------------------------------------------------------
@cases("name", WIDE)
@cases("use", [
    lambda w: sn.MadUnit(w, operand="binary16"), lambda w: sn.MadUnit("binary32", operand=w),
    lambda w: sn.MadUnit("binary32", operand="binary16", product=w),
    lambda w: sn.ExactDotUnit(w, operand="e5m2"), lambda w: sn.ExactDotUnit("binary32", operand=w),
    lambda w: sn.BlockFormat(w, "e8m0fnu", 32), lambda w: sn.BlockFormat("e5m2", w, 32),
    lambda w: sn.BlockDotUnit(w, operand="mxfp8_e4m3"), lambda w: sn.probe("add", sn.array([1], w), sn.array([1], w)),
])  # fmt: skip
def test_refused_by_name(use, name):
    with pytest.raises(ValueError, match=f"{name}, whose codes of .* convert to a format of up to 64 bits|probe: add"):
        use(name)


def test_a_model_of_one_transaction():
    model = ReferenceModel(VectorSpec.make("extF80_mul"))
    assert model(0x3FFFC000000000000000, 0x40008000000000000000) == (0x4000C000000000000000, 0)
    assert ReferenceModel(VectorSpec.make("f128_to_f32"))((1 << 127) + 1) == (1 << 31, 3)


def test_other_refusals():
    a = sn.array([1, 2], QUAD)
    with pytest.raises(ValueError, match="a is an Array of binary128, but the unit's operand is binary32"):
        sn.matmul(a.reshape(1, 2), a.reshape(2, 1), sn.MadUnit("binary32", operand="binary32"))
    with pytest.raises(ValueError, match="operands of two words have no result in posit16; state a float format"):
        sn.add(a, a, out_fmt="posit16")
    assert a.astype("posit16").tolist() == [1, 2] and sn.array([1.5], "posit16").astype(QUAD).tolist() == [1.5]
    with pytest.raises(ValueError, match="neither NumPy nor ml_dtypes has a dtype for binary128; use .codes"):
        a.to_numpy()
    with pytest.raises(TypeError, match="the accumulator of a sum are yours to state"):
        np.sum(a)
    with pytest.raises(ValueError, match="tensors are not of binary128, whose codes"):
        sn.operator("function (X) -> (Y) { Y = X + 1; }")(a)
    with pytest.raises(ValueError, match="no sn_format describes binary128, whose codes"):
        format_constant("binary128")
