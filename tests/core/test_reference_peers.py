"""The reference against MPFR and Berkeley SoftFloat, which share nothing with it."""

import itertools
import math
import random
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
import softfloatpy

from softnum import reference as ref
from softnum.formats.names import format as format_of
from softnum.reference import Value, operations, rounding
from tests.support.cases import cases
from tests.support.softfloat import MODES, TININESS, TYPES, answer, softfloat_state

INEXACT = 1
F = Fraction


def two(exponent):
    return F(2) ** exponent


# -- MPFR --------------------------------------------------------------------------------------------------------------
MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "up": gmpy2.RoundUp,
    "down": gmpy2.RoundDown,
    "away_from_zero": gmpy2.RoundAwayZero,
}


def mpfr_context(fmt, mode):
    lowest = (1 - fmt.emax) - fmt.mantissa_bits + 1
    return gmpy2.context(
        precision=fmt.precision, emax=fmt.emax + 1, emin=lowest, subnormalize=True, round=MPFR_MODES[mode]
    )


def assert_is(code, fmt, want, where):
    got = ref.decode(code, fmt)
    if gmpy2.is_nan(want):
        assert got.kind == "nan", where
    elif gmpy2.is_infinite(want):
        assert (got.kind, got.sign) == ("inf", int(want < 0)), where
    else:
        fraction = F(*map(int, want.as_integer_ratio()))
        assert got.kind == "finite" and (got.fraction, got.sign) == (fraction, int(gmpy2.is_signed(want))), where


def near_codes(fmt, rng, count):
    """Values near a random code's: on it, half way to the next, and a little off both."""
    for _ in range(count):
        value = ref.decode(rng.randrange(1 << fmt.bits), fmt)
        if value.kind == "finite":
            ulp = two(max(fmt.emin, value.numerator.bit_length() - value.denominator.bit_length()) - fmt.mantissa_bits)
            yield value.fraction + ulp * rng.choice(
                (F(0), F(1, 2), F(1, 4), F(-1, 3), F(1, 2) + two(-70), F(1, 2) - two(-70))
            )


@cases("mode", MPFR_MODES)
@cases("name", ["e5m2", "e4m3", "e3m4", "binary16", "bfloat16", "tf32", "e6m9", "binary32", "binary64", "e2m1"])
def test_encode_against_mpfr(name, mode):
    fmt = format_of(name)
    rng = random.Random(f"{name} {mode}")
    largest = F(fmt.max)
    edges = [s * v for s in (1, -1) for v in (largest, largest * F(65, 64), 4 * largest, F(fmt.smallest_subnormal) / 3)]
    for x in [*edges, *near_codes(fmt, rng, 400)]:
        if x == 0:
            continue
        with mpfr_context(fmt, mode):
            want = gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator))
        code, flags = ref.encode(x, fmt, rounding=mode)
        assert_is(code, fmt, want, f"{name} {mode} {x}: {code:#x}, want {want}")
        assert bool(flags & INEXACT) == (gmpy2.is_infinite(want) or F(*map(int, want.as_integer_ratio())) != x)


def as_mpfr(code, fmt):
    value = ref.decode(code, fmt)
    with gmpy2.context(precision=64, emax=10**6, emin=-(10**6)):
        if value.kind != "finite":
            return gmpy2.mpfr("nan" if value.kind == "nan" else "-inf" if value.sign else "inf")
        magnitude = gmpy2.mpfr(value.numerator) / value.denominator
        return -magnitude if value.sign else magnitude


MPFR_OPERATIONS = {  # ours, theirs as a method of a context, operands, whether they report INEXACT
    "add": (ref.add, "add", 2), "subtract": (ref.subtract, "sub", 2), "multiply": (ref.multiply, "mul", 2),
    "fma": (ref.fma, "fma", 3), "divide": (ref.divide, "div", 2), "sqrt": (ref.sqrt, "sqrt", 1),
    "remainder": (ref.remainder, "remainder", 2), "round_to_integral": (ref.round_to_integral, "rint", 1),
}  # fmt: skip


def compare_with_mpfr(operation, name, mode, count=250):
    fmt = format_of(name)
    rng = random.Random(f"{operation} {name} {mode}")
    ours, theirs, operands = MPFR_OPERATIONS[operation]
    for _ in range(count):
        codes = [rng.randrange(1 << fmt.bits) for _ in range(3)]
        codes[1] = rng.choice((codes[1], codes[1], codes[0] ^ rng.randrange(8), codes[0] ^ 1 << (fmt.bits - 1)))
        if operation == "round_to_integral" and rng.randrange(2):  # halves, and near them
            codes[0] = ref.encode(F(rng.randrange(-9, 10), 2), fmt)[0] + rng.randrange(3) - 1 & (1 << fmt.bits) - 1
        if operation == "sqrt" and rng.randrange(4) == 0:  # roots near a value and near the middle of two
            root = ref.decode(rng.randrange(1 << fmt.bits), fmt)
            if root.kind == "finite" and root.numerator:
                codes[0] = ref.encode(root.fraction**2 * (1 + F(rng.randrange(3), 2 * fmt.max_code)), fmt)[0]
        codes = codes[:operands]
        with mpfr_context(fmt, mode) as context:
            want = getattr(context, theirs)(*(as_mpfr(code, fmt) for code in codes))
        code, flags = ours(*codes, fmt, rounding=mode)
        where = f"{operation} {name} {mode} {[hex(one) for one in codes]}: {code:#x} {flags!r}, want {want}"
        assert_is(code, fmt, want, where)
        assert bool(flags & INEXACT) == context.inexact, where


@cases("mode", MPFR_MODES)
@cases("name", ["e5m2", "e3m4", "bfloat16", "e6m9", "binary64"])
@cases("operation", MPFR_OPERATIONS)
def test_operations_against_mpfr(operation, name, mode):
    compare_with_mpfr(operation, name, mode)


@pytest.mark.parametrize("name", ["e5m2", "bfloat16", "binary64"])
def test_scales_against_mpfr(name):
    fmt = format_of(name)
    rng = random.Random(name)
    for code in [*edge_codes(fmt), *(rng.randrange(1 << fmt.bits) for _ in range(200))]:
        n = rng.choice((-3, 2, -fmt.mantissa_bits, rng.randrange(-2 * fmt.emax, 2 * fmt.emax)))
        with mpfr_context(fmt, "nearest_even") as context:
            x = as_mpfr(code, fmt)
            scaled = context.mul_2exp(x, n) if n >= 0 else context.div_2exp(x, -n)
        assert_is(ref.scalb(code, n, fmt)[0], fmt, scaled, f"scalb {name} {code:#x} {n}")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_neighbours_signs_and_exponents_against_numpy(dtype):
    bits = np.dtype(dtype).itemsize * 8
    fmt = format_of(f"binary{bits}")
    rng = random.Random(bits)
    codes = np.array([*edge_codes(fmt), *(rng.randrange(1 << bits) for _ in range(500))], f"u{bits // 8}")
    x = codes.view(dtype)
    other = np.roll(x, 7)
    with np.errstate(all="ignore"):
        numbers = x.astype(np.float64).tolist()
        wants = {
            ref.next_up: np.nextafter(x, dtype("inf")), ref.next_down: np.nextafter(x, dtype("-inf")),
            ref.negate: -x, ref.absolute: np.abs(x), ref.copysign: np.copysign(x, other),
        }  # fmt: skip
    for operation, want in wants.items():
        for i, code in enumerate(codes.tolist()):
            second = [int(other.view(codes.dtype)[i])] if operation is ref.copysign else []
            got = operation(code, *second, fmt)[0]
            nan = ref.decode(code, fmt).kind == "nan" and operation in (ref.next_up, ref.next_down)
            expected = fmt.nan_code if nan else int(want.view(codes.dtype)[i])
            assert got == expected, (operation.__name__, hex(code), hex(got), hex(expected))
    for value, code in zip(numbers, codes.tolist(), strict=True):
        if math.isfinite(value) and value:
            exponent = ref.decode(ref.logb(code, fmt, out_fmt="binary64")[0], "binary64").fraction
            assert exponent == math.frexp(value)[1] - 1


@pytest.mark.parametrize("too_few", [1, 30])
def test_mpfr_catches_a_root_of_too_few_bits(too_few, monkeypatch):
    def faulty(x, fmt, env):
        k = fmt.mantissa_bits + 1 - too_few - rounding.floor_log2(x.numerator, x.denominator) // 2
        steps = math.isqrt((x.numerator << 2 * max(k, 0)) // (x.denominator << 2 * max(-k, 0)))
        return Value("finite", 0, steps << max(-k, 0), 1 << max(k, 0))

    monkeypatch.setattr(operations, "_root", faulty)
    with pytest.raises(AssertionError, match="sqrt e6m9 up"):
        compare_with_mpfr("sqrt", "e6m9", "up", 2000)


# -- Berkeley SoftFloat ------------------------------------------------------------------------------------------------
def edge_codes(fmt):
    m, top = fmt.mantissa_bits, fmt.inf_code
    one = fmt.bias << m
    magnitudes = [
        0, 1, 2, (1 << m) - 1, 1 << m, (1 << m) + 1, one - 1, one, one + 1, one + (1 << m) - 1, one - (1 << m) // 2,
        (fmt.bias + m) << m, (fmt.bias - m - 1) << m, top - 1, top - (1 << m), top, top + 1, top + (1 << (m - 1)),
    ]  # fmt: skip
    return [sign << (fmt.bits - 1) | magnitude for magnitude in magnitudes for sign in (0, 1)]


def ask_softfloat(name, operation, codes):
    """(result, flags) of one operation: a code, or a truth value."""
    kind, prefix = TYPES[name]
    size = format_of(name).bits // 8
    operands = (kind.from_bytes(code.to_bytes(size, "big")) for code in codes)
    return answer(getattr(softfloatpy, f"{prefix}_{operation}"), *operands)


SOFTFLOAT_OPERATIONS = {
    "add": (ref.add, 2), "sub": (ref.subtract, 2), "mul": (ref.multiply, 2), "mul_add": (ref.fma, 3),
    "div": (ref.divide, 2), "rem": (ref.remainder, 2), "sqrt": (ref.sqrt, 1),
    "round_to_int": (ref.round_to_integral, 1),
}  # fmt: skip


def drawer(fmt, rng):
    edges = edge_codes(fmt)
    return lambda: rng.choice((rng.choice(edges), rng.randrange(1 << fmt.bits), rng.choice(edges) ^ rng.randrange(4)))


def compare_with_softfloat(operation, name, mode, tininess):
    fmt = format_of(name)
    rng = random.Random(f"{operation} {name} {mode} {tininess}")
    draw, edges = drawer(fmt, rng), edge_codes(fmt)
    ours, operands = SOFTFLOAT_OPERATIONS[operation]
    cases = [(a, b) for a in edges for b in edges] if operands == 2 else [(a,) for a in edges] if operands == 1 else []
    for _ in range(400):
        a, b, c = draw(), draw(), draw()
        if operands == 3 and rng.randrange(2):
            c = ref.multiply(a, b, fmt)[0] ^ 1 << (fmt.bits - 1)
        cases.append((a, b, c)[:operands])
    if operation == "round_to_int":
        cases += [(ref.encode(F(n, 4), fmt)[0],) for n in range(-21, 22)]
    with softfloat_state(mode, tininess):
        for codes in cases:
            want = ask_softfloat(name, operation, codes)
            got = ours(*codes, fmt, rounding=mode, tininess=tininess)
            assert got == want, (operation, name, mode, [hex(c) for c in codes], got, hex(want[0]), want[1])


@cases("tininess", TININESS)
@cases("mode", MODES)
@cases("name", TYPES)
@cases("operation", SOFTFLOAT_OPERATIONS)
def test_operations_against_softfloat(operation, name, mode, tininess):
    compare_with_softfloat(operation, name, mode, tininess)


INTEGERS = {
    "i32": (softfloatpy.Int32, 32, True), "i64": (softfloatpy.Int64, 64, True),
    "ui32": (softfloatpy.UInt32, 32, False), "ui64": (softfloatpy.UInt64, 64, False),
}  # fmt: skip


@cases("mode", MODES)
@cases("name", TYPES)
def test_integers_out_against_softfloat(name, mode):
    """Invalid ones become what RISC-V makes of them."""
    fmt, rng = format_of(name), random.Random(f"integers {name} {mode}")
    kind, prefix = TYPES[name]
    draw, steps = drawer(fmt, rng), (-1, F(-3, 4), F(-1, 2), 0, F(1, 2))
    near = [sign * (two(e) + step) for sign in (1, -1) for e in (0, 3, 31, 32, 63, 64) for step in steps]
    codes = edge_codes(fmt) + [draw() for _ in range(200)]
    codes += [ref.encode(x, fmt, rounding=way, overflow="saturate")[0] for x in near for way in ("up", "down")]
    with softfloat_state(mode):
        for (to, (_, bits, signed)), code, exact in itertools.product(INTEGERS.items(), codes, (True, False)):
            operand = kind.from_bytes(code.to_bytes(fmt.bits // 8, "big"))
            softfloatpy.set_exception_flags(0)
            integer = getattr(softfloatpy, f"{prefix}_to_{to}")(operand, MODES[mode], exact).to_int()
            want = integer, int(softfloatpy.get_exception_flags())
            assert ref.to_integer(code, fmt, bits, signed, rounding=mode, exact=exact) == want, (hex(code), to)


@cases("mode", MODES)
@cases("name", TYPES)
def test_integers_in_against_softfloat(name, mode):
    fmt, rng = format_of(name), random.Random(f"integers {name} {mode}")
    prefix = TYPES[name][1]
    with softfloat_state(mode):
        for start, (kind, bits, signed) in INTEGERS.items():
            low = -(1 << bits - 1) if signed else 0
            drawn = [low + rng.randrange(1 << rng.randrange(1, bits)) for _ in range(50)]
            for x in (0, low, low + 1, low + (1 << bits) - 1, *drawn):
                want = answer(getattr(softfloatpy, f"{start}_to_{prefix}"), kind.from_int(x))
                assert ref.from_integer(x, fmt, rounding=mode) == want, (x, start)


@pytest.mark.parametrize("name", TYPES)
def test_comparisons_against_softfloat(name):
    fmt = format_of(name)
    rng = random.Random(name)
    draw, edges = drawer(fmt, rng), edge_codes(fmt)
    pairs = [(a, b) for a in edges for b in edges] + [(draw(), draw()) for _ in range(300)]
    with softfloat_state("nearest_even"):
        for pair in pairs:
            for kind, names in (("quiet", ("eq", "le_quiet", "lt_quiet")), ("signaling", ("eq_signaling", "le", "lt"))):
                order, flags = ref.compare(*pair, fmt, kind)
                want = [(order == 0, flags), (order in (-1, 0), flags), (order == -1, flags)]
                assert [ask_softfloat(name, operation, pair) for operation in names] == want, [hex(c) for c in pair]
            assert ask_softfloat(name, "neg", pair[:1])[0] == ref.negate(pair[0], fmt)[0]
            assert ask_softfloat(name, "is_signaling_nan", pair[:1])[0] == (ref.classify(pair[0], fmt) == 0)


@pytest.mark.parametrize(
    "operation, module, function, fault",
    [
        ("div", operations, "is_zero", lambda x: x.kind == "finite" and x.numerator == 0 and not x.sign),
        ("rem", operations, "divmod", lambda x, y: (x // y | 1, x % y)),
        ("round_to_int", operations, "goes_up", lambda sign, odd, rest, unit, env: 2 * rest >= unit),
        ("sqrt", operations, "_root", lambda x, fmt, env: Value("finite", 0, math.isqrt(x.numerator), x.denominator)),
        ("mul", rounding, "goes_up", lambda sign, odd, rest, unit, env: bool(2 * rest + (not odd) > unit)),
    ],
)
def test_softfloat_catches_planted_faults(operation, module, function, fault, monkeypatch):
    monkeypatch.setattr(module, function, fault, raising=False)
    with pytest.raises(AssertionError, match="binary16"):
        compare_with_softfloat(operation, "binary16", "nearest_even", "after")
