"""Formats by values, and the worked ones: their arithmetic against exact definitions in fractions."""

import math
import pickle
from bisect import bisect_left
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from nf4 import nf4
from posit8 import posit8

import softnum as sn
from softnum.vectors import VectorSpec
from tests.support.cases import cases
from tests.support.posit_definition import Posit

STANDARD = Posit(8)
CODES = np.arange(256, dtype=np.uint8)


# -- posit8 ------------------------------------------------------------------------------------------------------------
def test_posit8_values():
    values = [None if v != v else Fraction(v) for v in posit8.values]
    assert values == STANDARD.values
    assert posit8.has_nan and not posit8.infinities and not posit8.negative_zero and posit8.max == 2.0**24


EXACT = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: None if b == 0 else a / b,
}


@pytest.mark.parametrize("name", EXACT)
def test_posit8_on_all_pairs(name):
    values = STANDARD.values
    want = [
        STANDARD.encode(None if a is None or b is None else EXACT[name](a, b)) for a, b in product(values, repeat=2)
    ]
    assert getattr(sn.ops, name)(CODES[:, None], CODES, posit8).ravel().tolist() == want
    assert posit8.table(name).ravel().tolist() == want


def test_posit8_fma_and_rounding():
    rng = np.random.default_rng(5)
    a, b, c = rng.integers(0, 256, (3, 20000), np.uint8)
    v = STANDARD.values
    want = [
        STANDARD.encode(None if None in (v[x], v[y], v[z]) else v[x] * v[y] + v[z])
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    assert sn.fma(a, b, c, posit8).tolist() == want
    points = sorted({s * p for p in (*STANDARD.between, *STANDARD.positive) for s in (1, -1)})
    x = np.array([float(p) for p in points])
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf), [np.nan, np.inf, 1e-300, -1e300]])
    want = [STANDARD.encode(None if not math.isfinite(t) else Fraction(t)) for t in x.tolist()]
    assert sn.encode(x, posit8).tolist() == want
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.repeat(x.astype(np.float32), 40)
    want = [STANDARD.encode(None if not math.isfinite(t) else Fraction(t)) for t in narrow[::40].tolist()]
    assert sn.encode(narrow, posit8)[::40].tolist() == want


def test_posit8_roots():
    got = sn.sqrt(CODES, posit8).tolist()
    for code, root in enumerate(got):
        v = STANDARD.values[code]
        if v is None or v < 0:
            assert root == STANDARD.nar
        elif v:
            below, above = STANDARD.between[root - 1], STANDARD.between[root]
            assert below**2 <= v <= above**2 and (root % 2 == 0 or below**2 < v < above**2)


# -- the logarithmic format --------------------------------------------------------------------------------------------
def test_lns8(lns8):
    def parts(code):
        return code >> 7, (code & 127) - (128 if code & 64 else 0)

    def make(s, l):
        return 64 if l < -63 else s << 7 | min(l, 63) & 127

    def total(a, b):
        (s, x), (t, y) = sorted((parts(a), parts(b)), key=lambda p: p[1], reverse=True)
        if y == -64:
            return make(s, x) if x != -64 else a if parts(b)[1] != -64 or b == a else b
        if x == y and s != t:
            return 64
        change = 8 * math.log2(1 + 2 ** ((y - x) / 8) * (1 if s == t else -1))
        assert abs(change % 1 - 0.5) > 1e-6  # so that binary64 is enough to round it
        return make(s, x + round(change))

    values = [0.0 if parts(c)[1] == -64 else (-1) ** (c >> 7) * 2 ** (parts(c)[1] / 8) for c in range(256)]
    assert np.allclose(lns8.values, values, rtol=1e-15, atol=0)
    plain = [c for c in range(256) if c != 0xC0]  # a zero with a sign, which no operation makes
    a, b = np.array(list(product(plain, repeat=2)), np.uint8).T
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    products = [
        64 if 64 in (x, y) else make((x ^ y) >> 7, parts(x)[1] + parts(y)[1]) for x, y in pairs
    ]  # fmt: skip
    assert sn.multiply(a, b, lns8).tolist() == products
    assert sn.add(a, b, lns8).tolist() == [total(x, y) for x, y in pairs]
    assert {n for n, kind in lns8.primitives.items() if kind == "user"} == {
        "as_float", "convert", "add", "multiply", "negate"
    }  # fmt: skip
    quotient = sn.divide(np.uint8([8]), np.uint8([16]), lns8)  # derived: 2 / 4
    assert lns8.decode(quotient, np.float64).tolist() == [0.5]


# -- tables of values --------------------------------------------------------------------------------------------------
ODD = sn.CustomFormat.from_table(
    [0.0, 0.7, -0.7, 1 / 3, 2.5, 1e-9, -4.0, 0.1], name="odd"
)  # halfway between them no binary64
WITH_NAN = sn.CustomFormat.from_table([0.0, 1.0, float("nan"), -1.0, 3.0, -0.25, 6.0, float("nan")], name="with nan")
MODES = [
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "toward_zero", "away_from_zero", "up",
    "down",
]  # fmt: skip


@cache
def table_of(fmt):
    return sorted((Fraction(v), c) for c, v in enumerate(fmt.values) if v == v)


def rounded(fmt, x, rounding):
    """The code that the documentation of CustomFormat says, of a fraction."""
    table = table_of(fmt)
    at = bisect_left(table, (x, 0))
    if at == len(table):
        return table[-1][1]
    above = table[at]
    if at == 0 or above[0] == x:
        return above[1]
    below = table[at - 1]
    away, zero = (above, below) if x > 0 else (below, above)
    directed = {"up": above, "down": below, "toward_zero": zero, "away_from_zero": away}
    if rounding in directed:
        return directed[rounding][1]
    middle = (below[0] + above[0]) / 2
    if x != middle:
        return (above if x > middle else below)[1]
    ties = {
        "nearest_even": above if above[1] % 2 == 0 else below, "nearest_away": away, "nearest_zero": zero,
        "nearest_up": above, "nearest_down": below,
    }  # fmt: skip
    return ties[rounding][1]


@cases("rounding", MODES)
@cases("fmt", [nf4, ODD, WITH_NAN], ids=str)
def test_derived_operations_round_once(fmt, rounding):
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    nan = codes[np.isnan(fmt.values)].tolist()
    operations = {**EXACT, "fma": lambda a, b, c: a * b + c}
    for name, exact in operations.items():
        grid = np.array(list(product(codes.tolist(), repeat=3 if name == "fma" else 2)), np.uint8).T
        keep = np.ones(grid.shape[1], bool)
        if name == "divide":
            keep = np.array([fmt.values[b] != 0 for b in grid[1]])
        grid = grid[:, keep]
        got = getattr(sn.ops, name)(*grid, fmt, rounding=rounding)
        for operands, code in zip(grid.T.tolist(), got.tolist(), strict=True):
            if set(operands) & set(nan):
                assert code == nan[0]
            else:
                x = exact(*(Fraction(fmt.values[c]) for c in operands))
                assert code == rounded(fmt, x, rounding), (name, operands)


@pytest.mark.parametrize("rounding", MODES)
def test_values_round_alike_in_every_type(rounding):
    rng = np.random.default_rng(7)
    for fmt in (nf4, ODD):
        finite = sorted(v for v in fmt.values if v == v)
        x = np.concatenate([rng.normal(size=3000), rng.uniform(-5, 5, 1200), finite]).astype(np.float32)
        want = [rounded(fmt, Fraction(v), rounding) for v in x.tolist()]
        assert sn.encode(x, fmt, rounding=rounding).tolist() == want  # by leading bits
        assert sn.encode(x[:200], fmt, rounding=rounding).tolist() == want[:200]
        assert sn.encode(x.astype(np.float64), fmt, rounding=rounding).tolist() == want
        assert sn.encode([Fraction(v) for v in x[:200].tolist()], fmt, rounding=rounding).tolist() == want[:200]


def test_exact_results_need_no_neighbours():
    codes = np.arange(8, dtype=np.uint8)
    mirrored = sn.encode([-v for v in ODD.values], ODD, rounding="up").tolist()
    assert sn.negate(codes, ODD, rounding="up").tolist() == mirrored
    assert sn.ops.scalb(codes, 0, ODD, rounding="down").tolist() == codes.tolist()
    assert sn.absolute(codes, ODD, rounding="toward_zero")[[1, 2]].tolist() == [1, 1]
    with pytest.raises(
        ValueError, match="cbrt: a result is closer to the midpoint of two values of near than binary64 can resolve"
    ):
        root = math.nextafter(2.0 ** (1 / 3), 2.0) if (2.0 ** (1 / 3)) ** 3 < 2 else 2.0 ** (1 / 3)
        near = sn.CustomFormat.from_table([0.0, 2.0, root, math.nextafter(root, 0.0)], name="near")
        sn.ops.cbrt([1], near, rounding="up")


@cases(
    ("error", "said", "values"),
    [
        (TypeError, r"values\[1\] is 1j; a value must be a real number \(int, float, Fraction\) or NaN", [0, 1j]),
        (TypeError, r"values\[0\] is None", [None, 1]),
        (TypeError, r"values\[0\] is \[0, 1\]", [[0, 1], [2, 3]]),
        (TypeError, r"values\[0\] is array\(\[1., 1.\]\)", np.ones((2, 2))),
        (TypeError, r"values\[1\] is '1.5'", [1.0, "1.5"]),
        (TypeError, "from_table takes a sequence of 2..bits numbers, got 5", 5),
        (ValueError, r"values\[1\] is Fraction\(1, 3\), which is not exact in binary64; round", [0, Fraction(1, 3)]),
        (ValueError, r"values\[0\] is 10+, which is not exact in binary64", [10**400, 1]),
        (ValueError, "from_table accepts finite values and NaN, and no infinity", [math.inf, 1]),
        (ValueError, "the value 1.0 occurs more than once", [1, 1.0]),
        (ValueError, "needs 2..bits values with 1 <= bits <= 16, got 3", [1, 2, 3]),
        (ValueError, "all values are NaN", [math.nan] * 2),
    ],
)  # fmt: skip
def test_entries_that_are_no_values(error, said, values):
    with pytest.raises(error, match=said):
        sn.CustomFormat.from_table(values)
    assert sn.CustomFormat.from_table([Fraction(1, 4), np.float16(2), -0.0, 1]).values == (0.25, 2.0, 0.0, 1.0)


def test_invalid_is_what_a_nan_becomes():
    for function, want in ((sn.encode, 7), (sn.quantize, 0.0)):
        for x in (np.array([math.nan, 1.0]), np.float32([math.nan, 1.0]), np.array([math.nan, 1.0], object)):
            if function is sn.encode or x.dtype != object:
                assert function(x, nf4, invalid=0.0)[0] == want
        with pytest.raises(ValueError, match="a value is NaN, and nf4 has no code for it"):
            function([math.nan], nf4)
        with pytest.raises(ValueError, match="invalid=0.3 is not a value of nf4"):
            function([math.nan], nf4, invalid=0.3)


def test_results_without_a_code():
    zero, one = np.uint8([0]), np.uint8([15])
    with pytest.raises(ValueError, match="divide: the result is NaN or infinite, and nf4 has no code for it"):
        sn.divide(zero + 7, zero + 7, nf4)
    assert sn.divide(zero + 7, zero + 7, nf4, invalid=-1.0).tolist() == [0]
    assert sn.divide(one, zero + 7, nf4).tolist() == [15]  # an infinity saturates
    with pytest.raises(ValueError, match="divide of nf4 has no table: divide of 0x07, 0x07 is NaN"):
        nf4.table("divide")
    assert sn.sqrt(np.uint8([3]), WITH_NAN).tolist() == [2]
    rng = np.random.default_rng(1)
    a, b = rng.integers(8, 16, (2, 3000), np.uint8)  # enough for a table, with what has no code left out
    quotients = sn.divide(a, b, nf4)
    assert [sn.divide(a[i : i + 1], b[i : i + 1], nf4).item() for i in range(50)] == quotients[:50].tolist()
    with pytest.raises(ValueError, match="has no code"):
        sn.divide(np.append(a, 7).astype(np.uint8), np.append(b, 7).astype(np.uint8), nf4)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("rounding='stochastic' is not defined for the value table nf4", {"rounding": "sr", "key": 1}),
        ("the value table nf4 saturates; overflow='infinity' is not defined", {"overflow": "infinity"}),
        (
            "add: return_flags= is not defined for nf4, which raises no exceptions; leave it out",
            {"return_flags": True},
        ),
        ("add: flush_inputs= is not defined for nf4", {"flush_inputs": True}),
        ("add: nan= is not defined for nf4", {"nan": "x86"}),
        ("add: tininess= is not defined for nf4", {"tininess": "before"}),
    ],
)
def test_options_that_are_not_defined(message, options):
    with pytest.raises(ValueError, match=message):
        sn.add([1], [2], nf4, **options)


# -- the other operations ----------------------------------------------------------------------------------------------
def test_choice_and_order():
    a = sn.Array(np.arange(8, dtype=np.uint8), WITH_NAN)
    values = np.asarray(a)
    x, y = a.codes[:, None], a.codes
    least = sn.minimum(x, y, WITH_NAN)
    for i, j in np.ndindex(8, 8):
        u, v = values[i], values[j]
        want = i if u != u else j if v != v else i if u <= v else j
        assert least[i, j] == want
        number = j if u != u else i if v != v else i if u >= v else j
        assert sn.ops.maximum_number(x, y, WITH_NAN)[i, j] == number
    assert sn.compare(a, a[::-1]).tolist() == [2, -1, 2, -1, 1, 2, 1, 2]
    order = np.sort(a).codes.tolist()
    assert order == [3, 5, 0, 1, 4, 6, 2, 7]
    assert sn.ops.total_order(np.uint8(order[:-1]), np.uint8(order[1:]), WITH_NAN).all()
    assert not sn.ops.total_order(np.uint8(order[1:]), np.uint8(order[:-1]), WITH_NAN).any()
    assert sn.next_up(np.uint8(order), WITH_NAN).tolist() == [5, 0, 1, 4, 6, 6, 2, 7]
    assert sn.next_down(np.uint8(order), WITH_NAN).tolist() == [3, 3, 5, 0, 1, 4, 2, 7]
    assert (a < 1).tolist() == [True, False, False, True, False, True, False, False]
    assert (a == a).tolist() == [v == v for v in values.tolist()]
    assert [sn.ops.CLASSES[c] for c in sn.classify(a)[:4]] == [
        "positiveZero", "positiveNormal", "quietNaN", "negativeNormal"
    ]  # fmt: skip
    assert np.isnan(a).tolist() == [v != v for v in values.tolist()] and not np.isinf(a).any()


def test_elementary_functions_round_the_true_value():
    x = np.array([v for v in nf4.values if v > 0])
    codes = sn.encode(x, nf4)
    functions = {"exp": math.exp, "tanh": math.tanh, "log2": math.log2, "sigmoid": lambda t: 1 / (1 + math.exp(-t))}
    for name, f in functions.items():
        want = [rounded(nf4, Fraction(f(t)), "nearest_even") for t in x.tolist()]
        assert getattr(sn.ops, name)(codes, nf4).tolist() == want
    assert sn.ops.round_to_integral(sn.array([0.6, -0.6], nf4), rounding="toward_zero").tolist() == [0.0, 0.0]
    for asked in (
        lambda: sn.ops.round_to_integral(codes, nf4, rounding="stochastic", key=3),
        lambda: VectorSpec.make("round_to_integral", nf4, rounding="stochastic"),
    ):
        with pytest.raises(ValueError, match="round_to_integral of nf4 takes no random bits"):
            asked()
    assert sn.ops.scalb(sn.array([0.25, -1.0], nf4), [1, -40]).tolist() == sn.array([0.4922246, 0.0], nf4).tolist()
    assert nf4.apply("scalb", [15], -1) == sn.encode(0.5, nf4)


def test_results_and_operands_of_other_formats():
    a = sn.array([0.5, 3.0], "e5m2")
    assert sn.multiply(a, sn.array([1.0, -1.0], nf4), out_fmt="binary16").tolist() == [0.5, -3.0]
    assert sn.add(a, a, out_fmt=nf4).tolist() == [1.0, 1.0]
    assert a.astype(nf4).astype("binary32").tolist() == [np.float32(0.44070982933044434), 1.0]
    assert sn.convert(sn.array([0.1], "binary64"), to_fmt=nf4).tolist() == [0.07958029955625534]
    with pytest.raises(ValueError, match="formats differ .e5m2, nf4."):
        sn.add(a, sn.array([1.0, -1.0], nf4))
    with pytest.raises(ValueError, match="leave rounding='up' and overflow=None out"):
        sn.add(a, a, out_fmt=posit8, rounding="up")


def test_apply_and_tables():
    for name in ("add", "divide", "pow"):
        assert np.array_equal(posit8.apply(name, CODES[:, None], CODES), posit8.table(name))
    assert np.array_equal(posit8.apply("exp", CODES), posit8.table("exp"))
    assert posit8.table("exp") is posit8.table("exp") and not posit8.table("add").flags.writeable
    with pytest.raises(ValueError, match="nf4 has no operation 'plus' .known: .*add"):
        nf4.apply("plus", [1], [2])
    with pytest.raises(TypeError, match="add has 2 operands, got 1"):
        nf4.apply("add", [1])
    with pytest.raises(ValueError, match="codes of operand 1: 16 is no code of nf4"):
        nf4.apply("add", [1], [16])
    with pytest.raises(ValueError, match="fma of nf4 has no table"):
        nf4.table("fma")
    sixteen = sn.CustomFormat.from_table(np.arange(65536) / 64, name="sixteen")
    assert sixteen.table("sqrt").shape == (65536,)
    with pytest.raises(ValueError, match="add of sixteen has no table"):
        sixteen.table("add")
    assert sn.add([64, 65535], [1, 1], sixteen).tolist() == [65, 65535]


def test_tables_of_values_in_files_and_pickles(tmp_path):
    for fmt in (nf4, WITH_NAN):
        assert pickle.loads(pickle.dumps(fmt)) == fmt
        sn.save(tmp_path / "a.npz", sn.Array([1, 2], fmt))
        assert sn.load(tmp_path / "a.npz").format == fmt
    with pytest.raises(TypeError, match="save: posit8 is made of functions, which cannot be saved"):
        sn.save(tmp_path / "a.npz", sn.Array([1, 2], posit8))
    assert nf4 != ODD and nf4.kind == "table" and posit8.kind == "custom"
    assert eval(repr(nf4), {"CustomFormat": sn.CustomFormat}) == nf4


def test_scalars_stay_scalars_when_they_are_looked_up():
    fmt = sn.CustomFormat.from_table([0.0, 1.0, 2.0, 3.0])
    codes = np.array([0, 1, 2, 3], np.uint8)
    fmt.table("add")
    assert fmt.apply("add", np.uint8(1), np.uint8(2)).shape == ()
    assert [int(fmt.apply("add", np.uint8(1), c)) for c in codes] == [1, 2, 3, 3]
    assert sn.add(sn.Array(codes[1], fmt), sn.Array(codes[2], fmt)).shape == ()


@pytest.mark.parametrize("operation", [sn.minimum, sn.maximum, sn.ops.minimum_number, sn.ops.maximum_number])
def test_extremes_of_other_formats_are_refused(operation):
    """They choose one of two codes, and those of another format mean other values."""
    fmt = sn.CustomFormat.from_table([-1, 0, 1, 2], name="four")
    a, b = sn.array([1.0, 2.0], fmt), sn.array([0.5, 1.0], "e2m1fn")
    for operands in ((a, b), (b, a), (b, b)):
        with pytest.raises(ValueError, match="of e2m1fn is not defined into four; convert the operands to four first"):
            operation(*operands, out_fmt=fmt)
