"""Functions of two operands in binary64 lanes (csrc/elementwise/functions/two.h): the definition's codes and flags."""

import gmpy2
import numpy as np

import softnum as sn
from softnum.arrays.environment import environment as environment_of
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import MODES, by_definition, edge_codes
from tests.support.lanes import FUNCTIONS_OF_TWO as FUNCTIONS
from tests.support.lanes import stated

#: both operands' formats, and the result's: as many digits as decide, minifloats beyond tables, exponents binary64 has
FORMATS = [
    ("binary32", "binary32", "binary32"), ("binary32", "binary32", "e11m43"), ("e8m29", "binary32", "e11m43"),
    ("bfloat16", "bfloat16", "binary32"), ("tf32", "e5m2", "e8m21"), ("e11m18", "e11m29", "e11m18"),
    ("e11m29", "q8.8", "e11m43"), ("binary32", "binary32", "e5m2"), ("binary32", "binary32", "q8.16"),
    ("q8.16", "q8.16", "binary32"), ("binary24p16se", "e6m9", "binary16p8se"),
]  # fmt: skip


def numbers(fmt, rng, n: int) -> np.ndarray:
    """Numbers of moderate size, near 1, of wide range, small multiples of powers of two, powers, and all codes."""
    values = [
        rng.standard_normal(n) * 2.0 ** rng.integers(-3, 4, n),
        1 + rng.standard_normal(n) * 2.0 ** rng.integers(-22, -1, n),
        rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n),
        rng.integers(-20, 41, n) * 2.0 ** rng.integers(-3, 1, n),
        rng.integers(1, 300, n) ** rng.integers(1, 5, n) * 4.0 ** rng.integers(-8, 8, n),
    ]
    drawn = rng.integers(0, 2**fmt.bits, n).astype(fmt.storage_dtype)
    return np.concatenate([drawn, *(sn.encode(x, fmt, overflow="saturate") for x in values)])


def check(name, codes, formats, out, mode="nearest_even", words=None, **environment) -> None:
    """Codes and flags, against the definition's."""
    formats, out = tuple(sn.format(f) for f in formats), sn.format(out)
    environment |= {"rounding": mode}
    assert _core.has_lanes(name, _core.intern_context(name, formats, out, environment_of(
        out, **{"overflow": None, "stochastic_bits": 32} | environment)))  # fmt: skip
    function = getattr(sn.ops, name)
    if out.kind == "fixed":  # which has no code for a NaN
        values = sn.decode(function(*codes, formats, out_fmt="binary64"), "binary64")
        codes = tuple(c[np.isfinite(values)] for c in codes)
        words = words if words is None else words[np.isfinite(values)]
    drawn = {} if words is None else {"random_bits": words}
    got, flags = function(*codes, formats, out_fmt=out, return_flags=True, **environment, **drawn)
    alone = function(*codes, formats, out_fmt=out, **environment, **drawn)  # another way: from binary64, not from codes
    want, wanted_flags = by_definition(name, codes, formats, out, 0 if words is None else words, **environment)
    wrong = np.flatnonzero((got != want) | (flags != wanted_flags) | (alone != want))
    at = [(*(hex(x[i]) for x in (*codes, got, alone, want)), flags[i], wanted_flags[i]) for i in wrong[:3]]
    assert not at, (name, [str(f) for f in formats], str(out), mode, len(wrong), at)


@cases("name", FUNCTIONS)
def test_lanes_are_the_definition(name, isa):
    """Every mode, in turn, of every triple of formats."""
    rng = np.random.default_rng(FUNCTIONS.index(name))
    known = [mode for mode in MODES if not mode.startswith("stochastic_")]  # others are other projects' kinds
    for i, (first, second, out) in enumerate(FORMATS):
        a, b = numbers(sn.format(first), rng, 60), numbers(sn.format(second), rng, 60)
        b = b[rng.permutation(len(b))]
        if first == second:  # equal, and nearly
            a, b = np.concatenate([a, a[::8], a[1::8]]), np.concatenate([b, a[::8], a[1::8] ^ a.dtype.type(1)])
        for mode in {"nearest_even", *(known[(i + FUNCTIONS.index(name) + 5 * k) % len(known)] for k in range(3))}:
            if mode == "stochastic":
                bits = min(12, 43 - sn.format(out).mantissa_bits) if sn.format(out).kind == "float" else 12
                if bits > 0:
                    words = rng.integers(0, 2**32, len(a), dtype=np.uint32)
                    check(name, (a, b), (first, second), out, mode, words, stochastic_bits=bits)
            else:
                check(name, (a, b), (first, second), out, mode)


@cases("name", FUNCTIONS)
def test_edges(name, isa):
    """Every pair of zeros, subnormals, powers of two, largest numbers, infinities, NaNs ..."""
    few = np.random.default_rng(3).permutation(edge_codes(sn.format("binary32")))[:90]
    special = sn.encode(np.array([0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-45]), "binary32")
    codes = np.unique(np.concatenate([few, special, np.array([0x7F800001, 0xFFC00000], np.uint32)])).astype(np.uint32)
    a, b = (x.ravel() for x in np.meshgrid(codes, codes))
    for mode in ("nearest_even", "down", "to_odd"):
        check(name, (a, b), ("binary32", "binary32"), "binary32", mode)


def exact_cases(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Operands, as float64, of results that are exact, on borders of binary32's cells, and beside them."""
    rng = np.random.default_rng(5)
    scale = lambda n: 2.0 ** rng.integers(-20, 20, n)  # noqa: E731
    if name == "hypot":  # (m^2 - k^2, 2 m k, m^2 + k^2), the last of up to 26 bits; and a number far below another
        m, k = rng.integers(1, 5000, (2, 1000))
        by = scale(1000)
        odd = (rng.integers(2**23, 2**24, 1000) * 2 + 1) * by
        return np.concatenate([(m * m - k * k) * by, odd]), np.concatenate([2 * m * k * by, odd * 2.0**-40])
    if name in ("atan2", "atan2pi"):  # a quotient that is exact, and its angle just below
        q, x = rng.integers(1, 2**15, (2, 1000))
        by = scale(1000) * 2.0 ** -rng.integers(16, 100, 1000)
        diagonal = rng.integers(1, 2**24, 100) * rng.choice([-1.0, 1.0], 100)
        return np.concatenate([q * x * by, diagonal]), np.concatenate([x, np.abs(diagonal)])
    if name.startswith("logaddexp"):  # m + 1; a number beside m; beside 1
        m = rng.integers(-(2**25), 2**25, 600) * 2.0 ** rng.integers(-24, 1, 600)
        tiny = rng.standard_normal(600) * 2.0 ** -rng.integers(40, 300, 600)
        return np.concatenate([m, m, tiny, tiny]), np.concatenate([m, m - 60, -tiny, tiny[::-1]])
    n = rng.integers(1, 30, 1500)
    base = np.maximum(1, np.floor(rng.uniform(0.4, 1, 1500) * 2.0 ** (26 / n))) * 2.0 ** rng.integers(-3, 4, 1500)
    if name == "rootn":
        return base**n, n.astype(float)
    if name == "compound":
        return base - 1, n.astype(float)
    if name == "pown":
        return base * rng.choice([-1.0, 1.0], 1500), n.astype(float)
    roots = rng.integers(0, 4, 1500)  # squares of squares of squares
    return base ** (2.0**roots), n / 2.0**roots


@cases("name", FUNCTIONS)
def test_exact_results_and_ties(name, isa):
    a, b = exact_cases(name)
    wide = "e11m29"
    inside = sn.decode(sn.encode(a, wide, overflow="saturate"), wide) == a
    codes = tuple(sn.encode(x[inside], wide, overflow="saturate") for x in (a, b))
    for out, mode in (("binary32", "nearest_even"), ("binary32", "up"), ("e8m21", "to_odd"), ("e11m43", "toward_zero")):
        check(name, codes, (wide, wide), out, mode)
        check(name, (codes[0] ^ codes[0].dtype.type(1), codes[1]), (wide, wide), out, mode)  # beside them


@cases("name", FUNCTIONS)
def test_which_are_in_lanes(name):
    """Operands of 30 bits, both of them, and results of 46 that decide; wider ones without random bits."""
    wide, narrow, beyond = sn.format("e8m29"), sn.format("e8m21"), sn.format("e8m30")

    def there(formats, out, **options):
        env = environment_of(out, **{"rounding": "nearest_even", "overflow": None, "stochastic_bits": 32} | options)
        return _core.has_lanes(name, _core.intern_context(name, formats, out, env))

    random = {"rounding": "stochastic", "stochastic_bits": 1}
    assert there((wide, wide), sn.format("e11m42"), **random) and not there((wide, wide), sn.format("e11m43"), **random)
    for formats in ((beyond, narrow), (narrow, beyond)):
        assert there(formats, narrow) and not there(formats, narrow, **random)
    assert there((narrow, wide), narrow, rounding="stochastic", stochastic_bits=22)
    assert not there((narrow, wide), narrow, rounding="stochastic", stochastic_bits=23)
    fixed = sn.format("q8.16")
    assert there((narrow, fixed), fixed) and not there((narrow, fixed), fixed, overflow="wrap")
    assert not there((narrow, narrow), narrow, flush_inputs=True)


@cases("name", FUNCTIONS)
def test_overflow_rules_and_flags(name, isa):
    rng = np.random.default_rng(1)
    a, b = (numbers(sn.format("binary32"), rng, 60) for _ in range(2))
    for out, rule, tininess in (
        ("binary16", "saturate", "before"), ("e4m3fn", "infinity", "after"), ("bfloat16", "infinity", "before"),
    ):  # fmt: skip
        check(name, (a, b), ("binary32", "binary32"), out, overflow=rule, tininess=tininess)
        plain = getattr(sn.ops, name)(a, b, "binary32", out_fmt=out, overflow=rule, tininess=tininess)
        assert np.array_equal(plain, by_definition(name, (a, b), (sn.format("binary32"),) * 2, sn.format(out),
                                                   overflow=rule, tininess=tininess)[0])  # fmt: skip


@cases("name", FUNCTIONS)
def test_strides_and_places(name, isa):
    """Arrays that are not contiguous, one operand for all, of lengths around a block's."""
    rng = np.random.default_rng(2)
    fmt = sn.format("binary32")
    function = getattr(sn.ops, name)
    for n in (1, 7, 8, 9, 255, 256, 257, 700):
        a, b = numbers(fmt, rng, n)[:n], numbers(fmt, rng, n)[-n:]
        want = by_definition(name, (a, b), (fmt, fmt), fmt)[0]
        wide = np.zeros((n, 3), np.uint32)
        wide[:, 1] = a
        assert np.array_equal(function(wide[:, 1], b, fmt), want)
        assert np.array_equal(function(a[::-1], b[::-1], fmt), want[::-1])
        one = np.broadcast_to(b[:1], n)
        assert np.array_equal(function(a, b[0], fmt), by_definition(name, (a, one.copy()), (fmt, fmt), fmt)[0])


@cases("name", ["pow", "hypot", "atan2"])
def test_against_mpfr(name):
    """binary32, to nearest even and up, on numbers of moderate size: MPFR rounds correctly."""
    rng = np.random.default_rng(4)
    x = np.float32(rng.standard_normal((2, 4000)) * 2.0 ** rng.integers(-4, 5, (2, 4000)))
    x[0] = np.abs(x[0]) if name == "pow" else x[0]
    function = {"pow": lambda a, b: a**b, "hypot": gmpy2.hypot, "atan2": gmpy2.atan2}[name]
    for mode, rounding in (("nearest_even", gmpy2.RoundToNearest), ("up", gmpy2.RoundUp)):
        with gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True, round=rounding):
            want = np.float32([float(function(gmpy2.mpfr(float(a)), gmpy2.mpfr(float(b)))) for a, b in x.T])
        codes = getattr(sn.ops, name)(*x.view(np.uint32), "binary32", rounding=mode)
        assert np.array_equal(codes, want.view(np.uint32)), name


def test_tables():
    """The table of fine cells, by MPFR."""
    with gmpy2.context(precision=200):
        for c, high, low in zip(stated("fine_inverse"), stated("fine_cells"), stated("fine_cells_low"), strict=True):
            assert abs(gmpy2.mpfr(high) + low + gmpy2.log2(gmpy2.mpfr(c))) < gmpy2.exp2(-95)
            assert (high * 2.0**42).is_integer() and (c * 512).is_integer()
