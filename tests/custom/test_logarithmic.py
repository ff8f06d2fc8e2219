"""Takums and lnsI.F against their definitions in MPFR's intervals (tests/support/logarithmic_definition.py)."""

import ctypes
import os
import pickle
from fractions import Fraction
from functools import cache

import gmpy2
import numpy as np
import pytest

import softnum as sn
from softnum.formats.logarithmic import compute
from softnum.runtime import _tables
from softnum.runtime.gateway import NoKernel
from softnum.vectors import Coverage, VectorSpec, check, make_rom, plan, write
from tests.support.logarithmic_definition import Lns, Takum, context

EIGHT = {"takum8": Takum(8), "lns4.3": Lns(4, 3)}
SMALL = {"takum3": Takum(3), "takum5": Takum(5), "takum6": Takum(6), "lns3.0": Lns(3, 0), "lns1.4": Lns(1, 4)}
WIDE = {
    "takum16": Takum(16), "takum32": Takum(32), "takum12": Takum(12), "lns5.10": Lns(5, 10), "lns8.23": Lns(8, 23),
    "lns10.5": Lns(10, 5), "lns1.30": Lns(1, 30),
}  # fmt: skip
DEFINED = EIGHT | SMALL | WIDE
OPERATIONS = ("add", "subtract", "multiply", "divide")
BINARY64 = (_tables.BINARY64, 64, 0)
FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "erf",
)  # fmt: skip


@cache
def drawn(name, count, columns, seed=1):
    fmt = sn.format(name)
    rng = np.random.default_rng([seed, fmt.bits, count])
    return rng.integers(0, 1 << fmt.bits, (columns, count)).astype(fmt.storage_dtype)


def near(name, count):
    """Pairs of codes whose magnitudes are the same or next to it, of either sign."""
    fmt, (a,) = sn.format(name), drawn(name, count, 1, seed=2)
    b = a
    for step in range(3):
        b = np.where(np.arange(count) % 3 > step, sn.next_up(b, fmt), b)
    return a, np.where(np.arange(count) % 2, sn.negate(b, fmt), b)


def ends(fmt):
    zero = int(sn.encode(0.0, fmt))
    codes = [zero, fmt.nan_code, fmt.max_code, fmt.smallest_code, int(sn.encode(1.0, fmt)), int(sn.encode(-1.0, fmt))]
    return np.array(codes, fmt.storage_dtype)


def some(name, count=100):
    fmt = sn.format(name)
    return (
        np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
        if fmt.bits <= 8
        else np.concatenate([ends(fmt), drawn(name, count, 1)[0]])
    )


# -- values and codes --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", DEFINED)
def test_values_are_rounded_once(name):
    fmt, definition = sn.format(name), DEFINED[name]
    codes = some(name)
    values = sn.decode(codes, fmt)
    assert np.array_equal(values, [definition.decode(int(c)) for c in codes], equal_nan=True)
    assert np.array_equal(sn.encode(values, fmt), codes)
    assert fmt.max == definition.decode(fmt.max_code)
    assert fmt.smallest == values[values > 0].min() or fmt.bits > 8
    assert fmt.min == -fmt.max and fmt.has_nan and fmt.has_zero and fmt.signed and not fmt.values_are_exact
    exact = [c for c in codes.tolist() if abs(values[codes.tolist().index(c)]) in (0, 1)]
    assert [sn.decode(np.array(c), fmt, object).item() for c in exact] == [
        values[codes.tolist().index(c)] for c in exact
    ]
    logs = [(definition.split(int(c)) or (0, None))[1] for c in codes]
    whole = not name.startswith("takum")  # powers of two are rational
    irrational = [c for c, log in zip(codes, logs, strict=True) if log and not (whole and log.denominator == 1)]
    for code in irrational[:1]:
        with pytest.raises(ValueError, match="is irrational"):
            sn.decode(code, fmt, object)


@pytest.mark.parametrize("name", DEFINED)
def test_numbers_round_in_the_logarithm(name):
    """At and beside every place where rounding goes over, or a sample of them."""
    fmt, definition = sn.format(name), DEFINED[name]
    every = range(definition.count)
    places = map(definition.point, every if fmt.bits <= 6 else every[:: len(every) // 40])
    with context(53):
        x = [float(definition.power(gmpy2.mpfr(gmpy2.mpq(p), 200))) for p in places]
    x = np.array([*x, 1.0, 2.0, 3.1, 1e-30, 1e30, 5e-324, 1.7e308, 0.0, np.nan, np.inf, 1 + 2**-52, 1 - 2**-53])
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, 0)])
    x = np.concatenate([x, -x])
    want = [definition.of_number(v) for v in x.tolist()]
    assert sn.encode(x, fmt).tolist() == want
    assert fmt._functions.convert(x).tolist() == want  # without the table
    with np.errstate(over="ignore", under="ignore"):
        narrow = x.astype(np.float32)
    assert np.array_equal(
        sn.encode(np.resize(narrow, 5000), fmt), np.resize(sn.encode(narrow.astype(np.float64), fmt), 5000)
    )
    closer = [Fraction(v) * (1 + Fraction(s, 3**50)) for v in x[np.isfinite(x)][:20].tolist() for s in (-1, 1)]
    assert sn.encode(np.array(closer, object), fmt).tolist() == [definition.of_number(v) for v in closer]


def test_numbers_that_binary64_does_not_tell_from_a_place_where_rounding_goes_over():
    fmt, definition = sn.format("takum16"), Takum(16)
    with context(200):
        exact = [definition.power(gmpy2.mpfr(gmpy2.mpq(p))) for p in map(definition.point, range(20000, 20010))]
    x = [Fraction(*map(int, v.as_integer_ratio())) * (1 + Fraction(s, 2**150)) for v in exact for s in (-1, 1)]
    codes = sn.encode(np.array(x, object), fmt)
    assert codes.tolist() == [definition.of_number(v) for v in x]
    assert (codes[1::2] == codes[::2] + 1).all()
    assert sn.encode(np.array([10**400, -(10**400), Fraction(1, 10**400)], object), fmt).tolist() == [
        fmt.max_code,
        fmt.nan_code + 1,
        1,
    ]


def test_codes_of_an_lns():
    """The lowest logarithm is 0, or NaN with the sign; a logarithm that rounds to it or lies below is 0."""
    fmt = sn.format("lns3.1")  # logarithms -4 (none), -3.5 ... 3.5
    assert fmt.bits == 5 and (fmt.zero_code, fmt.nan_code, fmt.max_code, fmt.smallest_code) == (8, 24, 7, 9)
    assert sn.decode(np.arange(32, dtype=np.uint8), fmt)[[0, 2, 8, 16, 14]].tolist() == [1.0, 2.0, 0.0, -1.0, 0.5]
    low = 2.0**-3.75  # half-way in the logarithm between 0's code and the smallest value's, and 0's is even
    assert sn.encode([low * 0.999, low * 1.001, 1e-9, -1e-9, 1e9, -1e9, np.inf], fmt).tolist() == [
        8,
        9,
        8,
        8,
        7,
        23,
        24,
    ]
    half = sn.array([2.0**-3, 2.0**3], fmt)
    assert np.array_equal((half * half).codes, [8, 7])  # 2^-6 is 0, 2^6 the largest
    assert sn.sqrt(sn.array([2.0**0.5], fmt)).codes.tolist() == [0]  # 2^(1/4), a tie: to the even code
    assert sn.format("lns3.1").fields(0b10110) == [("sign", "1"), ("logarithm", "011.0")]
    assert sn.format("takum8").fields(0b01001011) == [
        ("sign", "0"),
        ("direction", "1"),
        ("regime", "001"),
        ("characteristic", "0"),
        ("fraction", "11"),
    ]


# -- operations --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [pytest.param("takum8", marks=pytest.mark.slow), *list(EIGHT | SMALL)[1:]])
def test_all_pairs(name):
    fmt, definition = sn.format(name), (EIGHT | SMALL)[name]
    codes = some(name)
    a, b = (c.ravel() for c in np.meshgrid(codes, codes, indexing="ij"))
    sums = np.array([definition.add(x, y) if x <= y else -1 for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    sums = sums.reshape(len(codes), -1)
    sums = np.where(sums < 0, sums.T, sums)
    assert np.array_equal(sn.add(codes[:, None], codes, fmt), sums)
    assert np.array_equal(sn.subtract(codes[:, None], sn.negate(codes, fmt), fmt), sums)
    for op in ("multiply", "divide"):
        want = [getattr(definition, op)(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert getattr(sn.ops, op)(a, b, fmt).tolist() == want and fmt.table(op).ravel().tolist() == want
    assert sn.sqrt(codes, fmt).tolist() == [definition.sqrt(int(x)) for x in codes]


@pytest.mark.parametrize("name", WIDE)
def test_drawn_pairs(name):
    fmt, definition = sn.format(name), WIDE[name]
    extremes = (c.ravel() for c in np.meshgrid(ends(fmt), ends(fmt)))
    for a, b in (drawn(name, 50, 2), near(name, 50), extremes):
        for op in OPERATIONS:
            want = [getattr(definition, op)(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
            assert getattr(sn.ops, op)(a, b, fmt).tolist() == want, op


@pytest.mark.parametrize("name", DEFINED)
def test_fma_and_roots(name):
    fmt, definition = sn.format(name), DEFINED[name]
    a, b, c = drawn(name, 60, 3)
    c[::3] = sn.negate(sn.multiply(a, b, fmt), fmt)[::3]  # which cancels
    want = [definition.fma(*map(int, row)) for row in zip(a, b, c, strict=True)]
    assert sn.fma(a, b, c, fmt).tolist() == want
    assert sn.sqrt(a, fmt).tolist() == [definition.sqrt(int(x)) for x in a]
    one = sn.encode(1.0, fmt)
    assert np.array_equal(sn.reciprocal(a, fmt), sn.divide(one, a, fmt))
    assert np.array_equal(sn.ops.hypot(a, sn.encode(0.0, fmt), fmt), sn.absolute(a, fmt))


@pytest.mark.parametrize("name", ["takum8", "takum16", "takum32", "lns4.3", "lns5.10"])
def test_functions(name):
    fmt, definition = sn.format(name), DEFINED[name]
    codes = some(name, 20)[:: 5 if fmt.bits == 8 else 1]
    codes = codes[[int(c) not in (definition.zero, definition.nan) for c in codes]]
    for function in FUNCTIONS:
        want = [definition.function(function, int(c)) for c in codes]
        assert getattr(sn.ops, function)(codes, fmt).tolist() == want, function


@pytest.mark.parametrize("name", ["takum8", "lns4.3", "takum32"])
def test_functions_of_networks(name):
    """sigmoid, silu, softplus and gelu by binary64's wide results of what the codes stand for, where these decide."""
    fmt = sn.format(name)
    codes = some(name, 200)
    x = sn.decode(codes, fmt)
    codes, x = codes[np.abs(x) < 300], x[np.abs(x) < 300]
    for function in ("sigmoid", "silu", "softplus", "gelu"):
        wide = [sn.array(v, "binary64") for v in (np.nextafter(x, -np.inf), np.nextafter(x, np.inf))]
        low, high = (sn.decode(getattr(sn.ops, function)(w).codes, "binary64") for w in wide)
        found, below, above = getattr(sn.ops, function)(codes, fmt), sn.encode(low, fmt), sn.encode(high, fmt)
        sure = (below == above) & ((low != 0) | (x == 0))
        assert sure.mean() > 0.8 and np.array_equal(found[sure], below[sure]), function
    definition = DEFINED[name]
    parts = [definition.split(int(c)) for c in codes]
    want = [definition.nan if not p or p[0] or p[1] is None else definition.round_log(0, -p[1] / 2) for p in parts]
    assert sn.rsqrt(codes, fmt).tolist() == want
    want = [
        definition.round_log(p[0], p[1] / 3) if p and p[1] is not None else int(c)
        for c, p in zip(codes, parts, strict=True)
    ]
    assert sn.ops.cbrt(codes, fmt).tolist() == want


def test_powers():
    takum, lns = sn.array([2.0, 3.0, -1.0, 0.5], "takum16"), sn.array([2.0, 4.0, -1.0, 0.5], "lns5.10")
    assert (lns ** sn.array([2.0], "lns5.10")).codes.tolist() == sn.array(
        [4.0, 16.0, 1.0, 0.25], "lns5.10"
    ).codes.tolist()
    assert np.array_equal((takum ** sn.array([1.0], "takum16")).codes, takum.codes)
    assert np.isnan(
        sn.decode((takum ** sn.array([0.5], "takum16")).codes, "takum16")[2]
    )  # no integer, as it is irrational
    want = sn.encode(sn.decode(takum.codes, "takum16")[[0, 1, 3]] ** sn.quantize(0.5, "takum16"), "takum16")
    assert (takum ** sn.array([0.5], "takum16")).codes[[0, 1, 3]].tolist() == want.tolist()


# -- other formats -----------------------------------------------------------------------------------------------------
def from_other_base(target, definition, sign, log):
    if not log:
        return target.round_log(sign, Fraction(0))
    return target.round_log(sign, lambda bits: target.log_of(definition.magnitude(log, bits), bits))


@pytest.mark.parametrize("name", ["takum8", "takum16", "takum32", "lns4.3", "lns8.23"])
def test_conversions(name):
    """Each rounds the real number once: also from binary64 rounded to odd, which tells all that a narrower one asks."""
    fmt, definition = sn.format(name), DEFINED[name]
    codes = some(name, 60)
    a = sn.Array(codes, fmt)
    for target in ("binary16", "e4m3fn", "bfloat16", "q8.8"):
        options = {"invalid": 0} if target.startswith("q") else {}
        for rounding in ("nearest_even", "up", "toward_zero"):
            odd = compute("convert", (fmt._functions.key,), BINARY64, [codes], "to_odd").view(np.float64)
            want = sn.encode(odd, target, rounding=rounding, **options)
            assert np.array_equal(sn.convert(a, to_fmt=target, rounding=rounding, **options).codes, want)
    for rounding, mode in (("up", gmpy2.RoundUp), ("down", gmpy2.RoundDown), ("nearest_even", gmpy2.RoundToNearest)):
        found = sn.decode(sn.convert(a, to_fmt="binary64", rounding=rounding).codes, "binary64")
        for code, value in zip(codes.tolist()[:200], found.tolist(), strict=False):
            sign, log = definition.split(code) or (0, None)
            if log is not None:
                with context(
                    53,
                    mode
                    if not sign or rounding == "nearest_even"
                    else gmpy2.RoundDown
                    if rounding == "up"
                    else gmpy2.RoundUp,
                ):
                    assert abs(value) == float(definition.power(gmpy2.mpfr(gmpy2.mpq(log), 200)))
    for other in ("takum16", "lns5.10", "takum5"):
        target, found = DEFINED[other], sn.convert(a, to_fmt=other).codes
        want = []
        for code in codes.tolist():
            parts = definition.split(code)
            if parts is None or parts[1] is None:
                want.append(target.nan if parts is None else target.zero)
            elif type(target) is type(definition):
                want.append(target.round_log(*parts))
            else:
                want.append(from_other_base(target, definition, *parts))
        assert found.tolist() == want
    x = sn.array([1.5, -0.3, 1e9, np.nan], "binary32")
    assert np.array_equal(sn.convert(x, to_fmt=fmt).codes, sn.encode(np.float32([1.5, -0.3, 1e9, np.nan]), fmt))
    whole = np.array([3, -7, 2**62 + 1, 0])
    assert np.array_equal(sn.ops.from_integer(whole, fmt), sn.encode(whole.astype(object), fmt))
    assert sn.ops.to_integer(sn.array([2.6, -3.0], fmt), dtype=np.int8).tolist()[1] == -3


@pytest.mark.parametrize("name", ["takum8", "lns4.3"])
def test_operations_of_two_formats(name):
    fmt, definition = sn.format(name), EIGHT[name]
    a, b = sn.Array(drawn(name, 60, 2)[0], fmt), sn.Array(drawn(name, 60, 2)[1], fmt)
    for op in ("add", "multiply", "divide"):  # products and sums of logarithms, rounded to a float once
        found = sn.decode(getattr(sn.ops, op)(a, b, out_fmt="binary32").codes, "binary32")
        for x, y, z in zip(a.codes.tolist(), b.codes.tolist(), found.tolist(), strict=True):
            p, q = definition.split(x), definition.split(y)
            if None in (p, q) or None in (p[1], q[1]):
                continue
            low, high = (definition.magnitude(v[1], 400)[0] * (-1) ** v[0] for v in (p, q))
            with context(400):
                exact = low + high if op == "add" else low * high if op == "multiply" else low / high
            with context(24):
                rounded = float(gmpy2.mpfr(exact))
            assert z == rounded or abs(rounded) < 1e-37 or abs(rounded) > 3e38 or rounded == 0
    number = sn.array([1.5], "binary32")
    assert np.isfinite(sn.decode(sn.fma(a, number, b, out_fmt="takum32").codes, "takum32")).any()
    with pytest.raises(ValueError, match="convert the operands first"):
        sn.divide(number, number, out_fmt=fmt)
    with pytest.raises(ValueError, match="convert the operands first"):
        sn.exp(number, out_fmt=fmt)
    with pytest.raises(ValueError, match="more than 63 bits"):
        sn.multiply(sn.array(1.5, "binary64"), sn.array(1.5, "binary64"), out_fmt=fmt)
    with pytest.raises(ValueError, match="51 bits"):
        sn.add(a, b, out_fmt="e9m54")


def test_order_and_comparisons():
    for name in EIGHT:
        fmt = sn.format(name)
        codes = some(name)
        values = sn.decode(codes, fmt)
        x, y = values[:, None], values
        want = np.where(np.isnan(x) | np.isnan(y), 2, np.sign(np.nan_to_num(x - y))).astype(np.int8)
        if fmt.nan_is_least:
            want = np.where(want == 2, np.isnan(y).astype(np.int8) - np.isnan(x).astype(np.int8), want)
        assert np.array_equal(sn.compare(codes[:, None], codes, fmt), want)
        ordered = sn.decode(np.sort(sn.Array(codes, fmt)).codes, fmt)
        finite = ordered[np.isfinite(ordered)]
        assert (np.diff(finite) > 0).all() and np.isnan(ordered[0 if fmt.nan_is_least else -1])
        up = sn.decode(sn.next_up(codes, fmt), fmt)
        inner = np.isfinite(values) & (values < fmt.max)
        assert all(up[inner] == [values[values > v].min() for v in values[inner]])
        small, large = (f(codes[:, None], codes, fmt) for f in (sn.minimum, sn.maximum))
        assert np.array_equal(sn.decode(small, fmt), np.minimum(x, y), equal_nan=True)
        assert np.array_equal(sn.decode(large, fmt), np.maximum(x, y), equal_nan=True)
        assert np.array_equal(sn.decode(sn.negate(codes, fmt), fmt), -values + 0.0, equal_nan=True)
        assert np.array_equal(sn.decode(sn.absolute(codes, fmt), fmt), np.abs(values), equal_nan=True)
    a = sn.array([2.0, 3.0, 1.0], "takum32")
    beside = sn.decode(a.codes, a.format)
    other = sn.array(beside, "binary64")  # the nearest numbers, which none but 1 is
    assert (sn.compare(a, other) != 0).tolist() == [True, True, False]
    assert np.array_equal(sn.compare(a, other), -sn.compare(other, a))
    assert sn.compare(sn.array([2.0], "lns4.3"), sn.array([2.0], "binary16")).tolist() == [0]


def test_nan():
    for name in ("takum16", "lns5.10"):
        nan, numbers = sn.array([np.nan], name), sn.array([0.0, -1e30, 1e30, 1.0], name)
        for result in (
            numbers / sn.array([0.0], name),
            np.sqrt(sn.array([-1.0], name)),
            sn.log(sn.array([0.0], name)),
            nan + numbers,
            nan * numbers,
            sn.rsqrt(sn.array([0.0], name)),
        ):
            assert np.isnan(sn.decode(result.codes, name)).all()
        assert np.array_equal(sn.ops.maximum_number(nan, numbers).codes, numbers.codes)
        assert (nan == nan).all() == (name == "takum16")


# -- what a format is used for -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", ["takum8", "takum16", "lns4.3", "lns8.23"])
@pytest.mark.parametrize("options", [{}, {"lanes": 3}, {"chunk": 4}], ids=str)
@pytest.mark.parametrize("product", [False, True])
def test_units(name, options, product):
    """The steps are operations of the format."""
    unit = sn.MadUnit(name, operand=name, **({"product": name} if product else {}), **options)
    fmt, rng = sn.format(name), np.random.default_rng(8)
    a, b = (sn.array(rng.standard_normal(s) * 3, name) for s in ((2, 11), (11, 3)))
    found = sn.encode(sn.matmul(a, b, unit), fmt)
    assert eval(repr(unit), vars(sn)) == unit
    zero = sn.encode(0.0, fmt)

    def step(acc, x, y):
        return sn.add(acc, sn.multiply(x, y, fmt), fmt) if product else sn.fma(x, y, acc, fmt)

    for i, j in np.ndindex(2, 3):
        chunk, lanes = options.get("chunk", 11), options.get("lanes", 1)
        outer = zero
        for start in range(0, 11, chunk):
            sums = [zero] * lanes
            for k in range(start, min(start + chunk, 11)):
                sums[k % lanes] = step(sums[k % lanes], a.codes[i, k], b.codes[k, j])
            total = sums[0]
            for s in sums[1:]:
                total = sn.add(total, s, fmt)
            outer = sn.add(outer, total, fmt) if "chunk" in options else total
        assert found[i, j] == outer


@pytest.mark.parametrize("name", EIGHT)
def test_sums_by_tables_are_the_steps(name):
    fmt, rng = sn.format(name), np.random.default_rng(4)
    a, b = (sn.array(rng.standard_normal(s), name) for s in ((5, 40), (40, 6)))
    for product in (None, name):
        unit = sn.MadUnit(name, operand=name, product=product)
        acc = np.full((5, 6), sn.encode(0.0, fmt))
        for k in range(40):
            x, y = a.codes[:, k, None], b.codes[k]
            acc = sn.add(acc, sn.multiply(x, y, fmt), fmt) if product else sn.fma(x, y, acc, fmt)
        assert np.array_equal(sn.encode(sn.matmul(a, b, unit), fmt), acc)


def test_units_that_sum_in_floats():
    rng = np.random.default_rng(3)
    a, b = (sn.array(rng.standard_normal((6, 6)), "takum8") for _ in range(2))
    for product in (None, "binary32"):
        unit = sn.MadUnit("binary32", operand="takum8", product=product)
        found = sn.matmul(a, b, unit)
        for i, j in np.ndindex(6, 6):
            acc = sn.array(0.0, "binary32")
            for k in range(6):
                if product:
                    acc = acc + sn.multiply(a[i, k], b[k, j], out_fmt="binary32")
                else:
                    acc = sn.fma(a[i, k], b[k, j], acc, out_fmt="binary32")
            assert found[i, j] == sn.decode(acc.codes, "binary32")
    mixed = sn.matmul(
        sn.array(rng.standard_normal((2, 6)), "e4m3fn"), b, sn.MadUnit("binary32", operand=("e4m3fn", "takum8"))
    )
    assert np.isfinite(mixed).all()
    values = sn.decode(a.codes, "takum8", np.float32)  # floats that decoding made stand for what they were made of
    unit = sn.MadUnit("takum8", operand="takum8")
    assert np.array_equal(sn.matmul(values, values, unit), sn.matmul(a, a, unit))


@pytest.mark.parametrize("name", ["takum8", "lns4.3", "takum32"])
def test_what_needs_exact_values_is_refused(name):
    a = sn.array([1.0, 3.0], name)
    for made in (lambda: sn.ExactDotUnit("binary32", operand=name), lambda: sn.ExactDotUnit(name, operand="e4m3fn")):
        with pytest.raises(ValueError, match="are irrational, and sums of them no number"):
            made()
    with pytest.raises(ValueError, match="irrational"), sn.unit_of_sums(sn.exact):
        np.sum(a)
    with pytest.raises(ValueError, match="float format"):
        sn.FusedDotUnit(4, 24, "binary32", operand=name)
    with pytest.raises(ValueError, match="float or fixed-point"):
        sn.BlockFormat(name, "e8m0fnu", 32)
    with pytest.raises(ValueError, match="remainder is not defined for logarithmic"):
        sn.remainder(a, a)
    with pytest.raises(ValueError, match="3 is not exact"):
        a * 3
    for rounding in ("up", "toward_zero", "stochastic"):
        options = {"rounding": rounding, **({"key": 1} if rounding == "stochastic" else {})}
        with pytest.raises(ValueError, match="is defined to round logarithms to nearest"):
            sn.quantize([1.0], name, **options)
        with pytest.raises(ValueError, match="is defined to round logarithms to nearest"):
            sn.add(a, a, **options)
    with pytest.raises(ValueError, match="has no overflow"):
        sn.encode([1.0], name, overflow="infinity")
    with pytest.raises(ValueError, match="no exceptions"):
        sn.encode([1.0], name, return_flags=True)
    with pytest.raises(ValueError, match="of logarithmic numbers cannot be probed: it has no rounding to show"):
        sn.probe("add", a, a)


@pytest.mark.parametrize("name", ["takum33", "takum2", "lns0.3", "lns11.4", "lns9.25", "lns1.0"])
def test_widths_are_limited(name):
    with pytest.raises(ValueError, match="must lie in|before the point"):
        sn.format(name)


def test_identity(tmp_path):
    for name in DEFINED:
        fmt = sn.format(name)
        assert (
            eval(repr(fmt), vars(sn)) == fmt
            and pickle.loads(pickle.dumps(fmt)) == fmt
            and hash(fmt) == hash(sn.format(str(fmt)))
        )
        a = sn.array([1.5, -2.0, np.nan], fmt)
        sn.save(tmp_path / "a.npz", a)
        loaded = sn.load(tmp_path / "a.npz")
        assert loaded.format == fmt and np.array_equal(loaded.codes, a.codes)
    linear = sn.array([1.5], "takum_linear16")
    sn.save(tmp_path / "a.npz", linear)
    assert sn.load(tmp_path / "a.npz").format == linear.format
    assert (
        sn.format("takum8")
        != sn.format("takum_linear8")
        != sn.format("takum16")
        != sn.format("lns4.3")
        != sn.format("lns3.4")
    )
    assert sn.format("takum12").summary("here") == {"format": "takum12", "bits": 12}


def test_narrow_types():
    """A value that a float type does not tell from its neighbours is refused there."""
    x = np.float32([1.0, 2.5, -3.0])
    for name in ("takum8", "takum16", "lns5.10"):
        assert np.array_equal(sn.encode(sn.quantize(x, name), name), sn.encode(x, name))
    half = sn.quantize(x.astype(np.float16), "takum8")
    assert half.dtype == np.float16 and np.array_equal(sn.encode(half, "takum8"), sn.encode(x, "takum8"))
    with pytest.raises(ValueError, match="is not told from its neighbours in float32"):
        sn.decode(np.array([0x40000001, 0x40000002], np.uint32), "takum32", np.float32)
    with pytest.raises(ValueError, match="beyond its numbers"):
        sn.decode(np.array([127], np.uint8), "takum8", np.float32)


def test_vectors(tmp_path):
    for op, name, options, count in (
        ("add", "takum8", {}, None), ("fma", "takum16", {}, 1000), ("divide", "lns8.23", {}, 1000),
        ("convert", "takum32", {"out_fmt": "binary16", "rounding": "up"}, 1000), ("sqrt", "lns4.3", {}, None),
        ("convert", "e5m2", {"out_fmt": "takum8"}, None),
    ):  # fmt: skip
        spec = VectorSpec.make(op, name, **options)
        coverage = Coverage(spec)
        for block in plan(spec, count=count).blocks():
            coverage.add(block)
            if op != "convert":
                assert np.array_equal(block.result, getattr(sn.ops, op)(*block.operands, name))
        assert "class of the result" in str(coverage)
        write(plan(spec, count=count), tmp_path / "v.csv")
        assert check(tmp_path / "v.csv").ok
    for name in ("takum8", "lns4.3"):
        write(plan(VectorSpec.make("multiply", name)), tmp_path / "v.csv")
        lines = (tmp_path / "v.csv").read_text().split("\n")
        at = next(i for i, line in enumerate(lines) if line.startswith("41,42,"))
        lines[at] = "41,42,11" + lines[at][8:]
        (tmp_path / "v.csv").write_text("\n".join(lines))
        report = check(tmp_path / "v.csv")
        assert not report.ok and "got 11" in str(report)
    assert make_rom("exp", "takum8").words.tolist() == sn.exp(np.arange(256, dtype=np.uint8), "takum8").tolist()


def test_no_kernel_takes_them(device):
    x = device.to_device(np.ones(4, np.float32))
    for call in (
        lambda: sn.quantize(x, "takum8"),
        lambda: sn.encode(x, "lns4.3"),
        lambda: sn.decode(device.to_device(np.ones(4, np.uint8)), "takum8"),
        lambda: sn.add(x, x, ("binary32", "binary32"), out_fmt="takum8"),
        lambda: sn.matmul(x.reshape(2, 2), x.reshape(2, 2), sn.MadUnit("binary32", operand="takum8")),
    ):
        with pytest.raises(NoKernel, match="no kernel computes with logarithmic numbers"):
            call()


@pytest.mark.skipif("SOFTNUM_LIBTAKUM" not in os.environ, reason="SOFTNUM_LIBTAKUM names libtakum's shared library")
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_libtakum_says_the_same(bits):
    """But for powers of negative numbers, whose exponents it takes for the doubles beside them, and for far sines."""
    library, code = ctypes.CDLL(os.environ["SOFTNUM_LIBTAKUM"]), getattr(ctypes, f"c_int{bits}")
    name, fmt = f"takum{bits}", sn.format(f"takum{bits}")
    a, b = (
        (c.ravel() for c in np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2)) if bits == 8 else drawn(name, 20000, 2)
    )
    names = {
        "addition": "add", "subtraction": "subtract", "multiplication": "multiply", "division": "divide",
        "hypotenuse": "hypot", "square_root": "sqrt", "inversion": "reciprocal", "exp": "exp", "ln": "log",
        "lb": "log2", "2_raised": "exp2", "tanh": "tanh", "arctan": "atan",
    }  # fmt: skip
    for theirs, ours in names.items():
        columns = (a, b) if theirs in list(names)[:5] else (a,)
        function = getattr(library, f"{name}_{theirs}")
        function.argtypes, function.restype = [code] * len(columns), code
        signed = [c.view(f"i{bits // 8}").tolist() for c in columns]
        found = [function(*row) % (1 << bits) for row in zip(*signed, strict=True)]
        assert found == getattr(sn.ops, ours)(*columns, fmt).tolist(), theirs
