"""Elementary functions of whole formats, against MPFR, in every mode, with flags.

- formats of up to 8 bits: all codes, all pairs of codes;
- formats of 16 bits: all codes; 10^8 pairs; the pairs whose results are exact, or ties.

MPFR is asked once for each operand or pair (elementary_results.py). Two tiers, as in test_exhaustive.py: "whole" takes
the better part of an hour, most of it for the formats of 16 bits. "tenth", which runs with every other test, takes all
codes of the small formats in one environment of each mode, and a part of the pairs.
"""

import itertools
import math
import random
from fractions import Fraction
from functools import lru_cache

import gmpy2
import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC, edge_codes, overflow_rules
from tests.support.elementary_oracle import BINARY, UNARY, expected
from tests.support.elementary_results import LEAST, PARTS, Elementary, every_code, every_pair, toward_zero
from tests.support.exact_results import NEGATIVE, facts
from tests.support.ladder import ladder_of

tiers = pytest.mark.parametrize("tier", ["tenth", pytest.param("whole", marks=pytest.mark.exhaustive)])

SMALL = [
    *(name for name in sn.format_names() if sn.format(name).bits <= 8), "q4.4", "uq2.6", "binary8p3se", "binary8p1uf",
]  # fmt: skip
ODD = [
    sn.FloatFormat(3, 2, lowest_binade="zero"),
    sn.FloatFormat(3, 2, specials="fn", lowest_binade="normal"),
    sn.FloatFormat(3, 3, specials="p3109", signed=False),
    sn.FloatFormat(4, 1, bias=3),
    sn.FloatFormat(5, 2, bias=200),
]
SMALL = [*map(sn.format, SMALL), *ODD]
FLOATS = ["binary16", "bfloat16", "dlfloat16"]
SIXTEEN = [*FLOATS, "binary16p8se", "q8.8", "uq0.16"]
by_small = pytest.mark.parametrize("fmt", SMALL, ids=repr)


def environments(fmt, mode: str, r: int) -> list[dict]:
    """Every rule with either tininess, or every word of r random bits; the other choices go round."""
    rules, i = overflow_rules(fmt), MODES.index(mode)
    n = len(rules)
    if mode in STOCHASTIC:
        cases = [{"stochastic_bits": r, "random_bits": word | 0xDEADBEE8} for word in range(1 << r)]
    else:
        cases = [{} for _ in range(2 * n if fmt.kind == "float" else n)]
    for j, case in enumerate(cases):
        case |= {"rounding": mode, "overflow": rules[(i + j) % n]}
        if fmt.kind == "float":
            case["tininess"] = ("after", "before")[j // n % 2]
            case["flush_results"] = (None, "before", "after", None)[(i + j) % 4]
            case["nan"] = ("x86", "canonical", "arm", *["canonical"] * 5)[(i + 3 * j) % 8]
            case["flush_inputs"] = fmt.lowest_binade == "subnormal" and (i + j) % 5 == 4
    return cases


def one_each(fmt, start: int, r: int, modes=MODES) -> list[dict]:
    """An environment of each mode."""
    cases = [environments(fmt, mode, r) for mode in modes]
    return [suits[(start + MODES.index(mode)) % len(suits)] for mode, suits in zip(modes, cases, strict=True)]


def plainly(cases: list[dict]) -> list[dict]:
    """The same with subnormal operands as they are, and one NaN: pairs have too many of them."""
    return [case | {"flush_inputs": False, "nan": "canonical"} for case in cases]


def judge(tuples, fmt, cases: list[dict]) -> None:
    """Check the library in each environment. tuples(flush_inputs) gives the operands."""
    wrapping = lru_cache(lambda flush: tuples(flush).below(2.0 ** (45 - fmt.fraction_bits)))
    for case in cases:
        environment = {k: v for k, v in case.items() if k != "flush_inputs"}
        operands = wrapping if case["overflow"] == "wrap" else tuples
        operands(case.get("flush_inputs", False)).check(fmt, **environment)


def taken(tier: str, fmt, start: int, r: int) -> list[dict]:
    if tier == "tenth":
        return one_each(fmt, start, r)
    return [case for mode in MODES for case in environments(fmt, mode, r)]


# -- formats of up to 8 bits -------------------------------------------------------------------------------------------
@pytest.mark.slow
@cases("name", UNARY)
@by_small
@tiers
def test_every_code(tier, fmt, name):
    judge(lambda flush: every_code(name, fmt, flush), fmt, taken(tier, fmt, UNARY.index(name), 3))


@cases("name", BINARY)
@by_small
@tiers
def test_every_pair(tier, fmt, name):
    start = SMALL.index(fmt)
    if tier == "whole":
        judge(lambda flush: every_pair(name, fmt, flush), fmt, taken(tier, fmt, start, 3))
        return
    size = 1 << fmt.bits
    flat = np.arange(start % 37, size * size, 37 if size > 64 else 1)
    pairs = tuple(x.astype(fmt.storage_dtype) for x in np.divmod(flat, size))
    cases = one_each(fmt, start, 3)[start % 3 :: 3]
    judge(lambda flush: Elementary(name, pairs, (fmt, fmt), flush_inputs=flush), fmt, cases)


# -- formats of 16 bits ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("fmt", SIXTEEN)
@pytest.mark.parametrize("tier", [
    pytest.param("tenth", marks=pytest.mark.slow), pytest.param("whole", marks=pytest.mark.exhaustive),
])  # fmt: skip
def test_every_16_bit_code(tier, fmt, name):
    fmt = sn.format(fmt)
    cases = taken(tier, fmt, 0, 2)
    cases = cases if tier == "whole" else cases[UNARY.index(name) % 5 :: 5]
    judge(lambda flush: every_code(name, fmt, flush), fmt, cases)


def second_operands(name: str, fmt, a: np.ndarray) -> np.ndarray:
    """256 for each: edges, neighbours, one of each stratum; for pow, half of them strata whose results are in range."""
    edges, rows = edge_codes(fmt).astype(np.int64), []
    for x in a.tolist():
        near = (x + np.arange(-16, 17)) % (1 << 16)
        some = edges[x % 3 :: 3][:100]
        count = 256 - len(some) - 2 * len(near)
        draw, size = random.Random(x), (1 << 16) // count
        strata = np.array([i * size + draw.randrange(size) for i in range(count)])
        size = abs(float(facts(fmt)[0][x]))
        if name == "pow" and size not in (0, 1):
            most = (2 - fmt.emin + fmt.mantissa_bits) / abs(math.log2(size))
            top = int(sn.encode(most, fmt, overflow="saturate_finite"))
            strata[::2] = strata[::2] & 0x8000 | (strata[::2] & 0x7FFF) * (top + 1) >> 15
        rows.append(np.concatenate([some, near, near ^ 0x8000, strata]))
    return np.array(rows).astype(np.uint16)


@pytest.mark.exhaustive
@pytest.mark.parametrize("block", range(256))
@pytest.mark.parametrize("fmt", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_structured_pairs_of_16_bits(name, fmt, block):
    """10^8 pairs in all, each in five modes of the fifteen: every first operand with 256 others.

    A block stands alone, so that a run can be taken up again: ``-k "hypot and binary16-17"``.
    """
    fmt = sn.format(fmt)
    a = np.arange(block, 1 << 16, 256).astype(np.uint16)
    b = second_operands(name, fmt, a)
    pairs = Elementary(name, (np.repeat(a, 256), b.ravel()), (fmt, fmt))
    judge(lambda flush: pairs, fmt, plainly(one_each(fmt, block % 2, 2)[block % 3 :: 3]))


def with_neighbours(pairs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """These pairs, and those whose second code is next to theirs."""
    a, b = pairs
    other = (b.astype(np.int64)[:, None] + np.arange(-1, 2)) % (1 << 16)
    return np.repeat(a, 3).astype(np.uint16), other.ravel().astype(np.uint16)


@lru_cache(maxsize=1)
def powers_of_two(fmt) -> tuple[np.ndarray, ...]:
    """Powers of 2 and what makes powers of 2 of them."""
    values, classes = facts(fmt)
    a, b = [], []
    for x in np.flatnonzero((np.abs(np.frexp(values)[0]) == 0.5) & (np.abs(values) != 1)).tolist():
        exponents = values * math.log2(abs(values[x]))
        found = (classes <= NEGATIVE) & (exponents == np.rint(exponents)) & (np.abs(exponents) < 3 - 2 * fmt.emin)
        b.append(np.flatnonzero(found))
        a.append(np.full(len(b[-1]), x))
    return with_neighbours([np.concatenate(a), np.concatenate(b)])


@lru_cache(maxsize=1)
def legs(fmt) -> tuple[np.ndarray, ...]:
    """Legs of right-angled triangles whose hypotenuses have at most two bits more than the format."""
    values, classes = facts(fmt)
    sizes = {abs(v): c for c, v in enumerate(values.tolist()) if classes[c] <= NEGATIVE}
    bits = fmt.mantissa_bits + 1
    a, b = (x.ravel() for x in np.indices((1 << bits, 1 << bits)))
    square = a * a + b * b
    c = np.rint(np.sqrt(square)).astype(np.int64)
    found = (c * c == square) & (a > 0) & (b > 0)
    shifts = np.exp2(np.arange(np.frexp(min(sizes))[1] - 1, np.frexp(max(sizes))[1] + 1))[:, None]
    a, b = ((x[found] * shifts).ravel().tolist() for x in (a, b))
    pairs = [(sizes[x], sizes[y]) for x, y in zip(a, b, strict=True) if x in sizes and y in sizes]
    return with_neighbours(list(np.array(pairs).T))


@pytest.mark.slow
@pytest.mark.parametrize("fmt", FLOATS)
@tiers
def test_exact_results_of_16_bits(tier, fmt):
    """Powers of powers of 2, and sides of triangles, where the result is exact or beside what is."""
    fmt = sn.format(fmt)
    cases = plainly(one_each(fmt, 0, 2))
    for name, codes in (("pow", powers_of_two(fmt)), ("hypot", legs(fmt))):
        if tier == "tenth":
            codes = tuple(c[::7] for c in codes)
        pairs = Elementary(name, codes, (fmt, fmt))
        assert np.count_nonzero(pairs.d == 0) > 100
        judge(lambda flush, pairs=pairs: pairs, fmt, cases if tier == "whole" else cases[::6])


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", FLOATS)
def test_every_base_with_powers_that_can_be_exact(fmt):
    """All x with y = n / 2^k, |n| <= 12: among them all x^y that are exact or ties, except powers of powers of 2."""
    fmt = sn.format(fmt)
    x = np.arange(1 << 16).astype(np.uint16)
    exact = 0
    for k, n in itertools.product(range(5), range(1, 13)):
        if n % 2 == 0 and k:
            continue
        for y in (n / 2**k, -n / 2**k):
            codes = x, np.full(1 << 16, sn.encode(y, fmt), np.uint16)
            pairs = Elementary("pow", codes, (fmt, fmt))
            exact += np.count_nonzero(pairs.d == 0)
            judge(lambda flush, pairs=pairs: pairs, fmt, plainly(one_each(fmt, n % 2, 2)))
    assert exact > 65536


# -- the tests themselves ----------------------------------------------------------------------------------------------
def special_codes(fmt) -> list[int]:
    return np.flatnonzero(facts(fmt)[1] > NEGATIVE).tolist()


@pytest.mark.slow
@cases("fmt", [*SMALL, *map(sn.format, ("binary16", "bfloat16", "q8.8"))], ids=repr)
def test_the_fast_oracle_equals_the_slow_one(fmt):
    """Codes at random, edges, zeros, infinities and NaNs, asked of `elementary_oracle` one by one."""
    rng = random.Random(repr(fmt))
    special = special_codes(fmt)
    for name in (*UNARY, *BINARY):
        draw = [rng.randrange(1 << fmt.bits) for _ in range(30)] + rng.sample(edge_codes(fmt).tolist(), 10)
        draw += special if len(special) < 40 or name == "atan" else rng.sample(special, 40)
        codes = [np.array(draw)]
        if name in BINARY:
            codes = [np.array([*draw, *rng.choices(draw, k=len(draw))]) for _ in range(2)]
            rng.shuffle(codes[1])
        codes = tuple(c.astype(fmt.storage_dtype) for c in codes)
        for case in rng.sample([c for mode in MODES for c in environments(fmt, mode, 2) if c["overflow"] != "wrap"], 2):
            environment = {k: v for k, v in case.items() if k != "flush_inputs"}
            every = Elementary(name, codes, (fmt,) * len(codes), flush_inputs=case.get("flush_inputs", False))
            got, flags = every.expected(fmt, **environment)
            for i, operands in enumerate(zip(*(c.tolist() for c in codes), strict=True)):
                want = expected(name, operands, fmt, **case)
                assert (int(got[i]), int(flags[i])) == want, (name, [hex(c) for c in operands], case)


@cases("fmt", [*SMALL, *map(sn.format, ("dlfloat16", "uq0.16"))], ids=repr)
def test_places_are_rounded_as_the_reference_rounds_them(fmt):
    """Where the rules do not count also, which are asked for once there."""
    ladder, rng = ladder_of(fmt, 2), np.random.default_rng(5)
    for mode in MODES:
        case = environments(fmt, mode, 2)[MODES.index(mode) % 3]
        options = {k: v for k, v in case.items() if k not in ("nan", "flush_inputs")}
        places = np.unique(rng.integers(0, len(ladder.middling), 40))
        got, flags = ladder.rounded(places, places, options)
        for x, *answer in zip(ladder.representatives(places).tolist(), got.tolist(), flags.tolist(), strict=True):
            assert tuple(answer) == ref.round_value(Fraction(x), 0, fmt, **options), (x, options)


def test_results_beside_numbers_are_told_from_them():
    """Of the functions that MPFR lacks no result is exact: sigmoid(2^-129) is not 1/2, though 130 bits say so."""
    fmt = sn.format("bfloat16")
    codes = np.arange(0x10, 1 << 16, 32).astype(np.uint16)
    assert ref.to_fraction(0x10, fmt) == Fraction(1, 1 << 129)
    for name in PARTS:
        every = Elementary(name, (codes,), (fmt,))
        assert len(every.plain) > 2000 and (np.sign(every.d) == np.sign(every.h)).all(), name


def test_results_beyond_binary64():
    with gmpy2.context(precision=53):
        x, y = ([gmpy2.mpfr(v) for v in column] for column in zip(*[
            (2.0, 1024.0), (3.0, 900.0), (2.0, -1023.0), (-3.0, -901.0), (2.0, -1022.0), (-3.0, 3e38), (3.0, -3e38),
        ], strict=True))  # fmt: skip
    h, d = toward_zero("pow", x, y)
    most = float(np.finfo(np.float64).max)
    assert h.tolist() == [most, most, LEAST, -LEAST, LEAST, most, LEAST]
    assert np.sign(d).tolist() == [1, 1, 1, -1, 0, 1, 1]


@pytest.mark.parametrize("name", ["exp", "gelu", "pow"])
def test_a_planted_fault_is_caught(monkeypatch, name):
    """A unit in one result of thousands, or a flag; the oracle's number one place off."""
    fmt = sn.format("binary16" if name == "exp" else "e5m2")
    every = (every_pair if name in BINARY else every_code)(name, fmt)
    at = int(every.plain[np.flatnonzero((every.h > 0.25) & (every.h < 1) & (every.d != 0))[1]])
    real, fault = getattr(sn.ops, name), {}

    def faulty(*codes, **options):
        got, flags = real(*codes, **options)
        got[at] ^= fault.get("code", 0)
        flags[at] ^= fault.get("flags", 0)
        return got, flags

    monkeypatch.setattr(sn.ops, name, faulty)
    every.check(fmt, rounding="up")
    for fault["code"], fault["flags"] in ((1, 0), (0, 1), (0, 2)):
        with pytest.raises(AssertionError, match=rf"{name}\(.*; 1 of {len(every.codes[0])} differ"):
            every.check(fmt, rounding="up")
    monkeypatch.undo()
    other = Elementary(name, every.codes, every.formats)
    i = int(np.flatnonzero(every.plain == at)[0])
    other.h[i] = ref.to_fraction(int(real(*(c[at : at + 1] for c in every.codes), fmt, rounding="down")[0]), fmt)
    other.d[i] = 0
    with pytest.raises(AssertionError, match=rf"{name}\(.*; 1 of {len(every.codes[0])} differ"):
        other.check(fmt, rounding="up")
