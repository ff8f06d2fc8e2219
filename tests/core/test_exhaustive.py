"""Small domains, enumerated, against the reference, values and flags.

- formats of up to 8 bits: all pairs of codes, every binary operation, every mode, overflow rule, way to flush and judge
  tininess; every unary operation;
- fma: all triples of formats of up to 5 bits; edge triples and ten million random ones of 8-bit formats;
- formats of 16 bits: every code, every unary operation.

Two tiers. "whole" takes the better part of an hour: ``pytest -m exhaustive`` runs it. "part" runs with every other
test: the same cases, each in one environment out of twenty (for one code out of twenty where the reference is asked for
each), so that every format meets every mode, and every operation every mode and rule.
"""

import itertools
import random

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats.modes import Flags
from softnum.formats.names import format as format_of
from softnum.formats.names import format_names
from tests.support.cases import cases
from tests.support.core_oracles import DETERMINISTIC, MODES, STOCHASTIC, edge_codes, overflow_rules, show
from tests.support.exact_results import ROUNDED_PAIRS, Tuples, every_tuple

tiers = pytest.mark.parametrize("tier", ["part", pytest.param("whole", marks=pytest.mark.exhaustive)])

NAMED = [format_of(n) for n in format_names() if format_of(n).bits <= 8]
P3109 = [
    "binary8p1se", "binary8p3se", "binary8p4se", "binary8p4sf", "binary8p7sf", "binary8p1ue", "binary8p5ue",
    "binary8p8uf", "binary6p3se", "binary6p3sf", "binary6p4ue", "binary5p2uf", "binary5p1se", "binary4p4uf",
    "binary3p1sf",
]  # fmt: skip
FIXED = ["q4.4", "uq4.4", "q1.7", "uq0.8", "q8.0", "q2.3", "uq2.3", "uq0.5", "q0.4", "q5.0"]
CUSTOM = [
    FloatFormat(5, 2, lowest_binade="zero", name="e5m2-flushing"),
    FloatFormat(4, 3, specials="fn", lowest_binade="normal", name="dl-like-of-8-bits"),
    FloatFormat(3, 4, specials="none", signed=False, has_zero=False, lowest_binade="normal", name="e3m4-no-zero"),
    FloatFormat(3, 2, specials="fnuz", name="e3m2fnuz"),
    FloatFormat(3, 2, specials="fn", lowest_binade="normal", name="dl-like"),
    FloatFormat(3, 2, specials="fnuz", lowest_binade="zero", name="flushing-fnuz"),
    FloatFormat(2, 3, specials="p3109", lowest_binade="normal", name="p3109-normal"),
    FloatFormat(3, 2, specials="p3109", signed=False, name="unsigned-p3109"),
    FloatFormat(4, 0, specials="none", name="e4m0"),
    FloatFormat(4, 0, specials="fn", lowest_binade="normal", name="e4m0-normal"),
    FloatFormat(5, 0, specials="fn", signed=False, has_zero=False, lowest_binade="normal", name="e5m0-no-zero"),
    FloatFormat(3, 2, signed=False, name="unsigned-ieee"),
    FloatFormat(3, 2, specials="none", signed=False, lowest_binade="zero", name="unsigned-flushing"),
    FloatFormat(1, 4, specials="none", name="e1m4"),
    FloatFormat(1, 3, name="e1m3"),
    FloatFormat(5, 1, name="one-quiet-nan"),
    FloatFormat(5, 0, specials="none", bias=-40, name="all-large"),
    FloatFormat(2, 2, specials="fn", nan_codes="none", infinities=True, name="inf-without-nan"),
    FloatFormat(2, 2, nan_codes="all_ones", infinities=True, negative_zero=False, name="all-ones-and-inf"),
]
FORMATS = [*NAMED, *map(format_of, P3109), *map(format_of, FIXED), *CUSTOM]
by_format = pytest.mark.parametrize("fmt", FORMATS, ids=str)
by_mode = cases("mode", MODES)


def stated(fmt) -> dict:
    """invalid= for a format without NaN: its code 0."""
    return {} if fmt.has_nan or fmt.kind == "fixed" or fmt.has_zero else {"invalid": fmt.min}


def environments(fmt, mode: str, words=range(8), r: int = 3) -> list[dict]:
    """Every environment of a mode: rules x tininess x flushing; r random bits, with every value of theirs.

    The bits above r must not count. Tininess and flushing of results are nothing to fixed point.
    """
    random = [{}]
    if mode in STOCHASTIC:
        random = [{"stochastic_bits": r, "random_bits": word | 0xDEADBEE8} for word in words]
    finer = [{}]
    if fmt.kind == "float":
        finer = [{"tininess": t, "flush_results": f} for t in ("after", "before") for f in (None, "before", "after")]
    if len(random) == 1:
        product = itertools.product(random, overflow_rules(fmt), finer)
    else:  # all the words under all the rules, tininess and flushing going round
        product = [
            (word, rule, finer[i % len(finer)])
            for i, (word, rule) in enumerate(itertools.product(random, overflow_rules(fmt)))
        ]
    return [{"rounding": mode, "overflow": rule} | word | more for word, rule, more in product]


def taken(tier: str, cases: list, start: int) -> list:
    """All the cases, or each twentieth of them."""
    return cases if tier == "whole" else cases[start % min(20, len(cases)) :: 20]


@by_mode
@by_format
@tiers
def test_every_pair(tier, fmt, mode):
    """add, subtract, multiply, divide, remainder; and the table that answers where no flags are wanted."""
    subnormals = fmt.kind == "float" and fmt.lowest_binade == "subnormal"
    every = environments(fmt, mode) if tier == "whole" else environments(fmt, mode, (0, 3, 5, 6), r=2)
    cases = taken(tier, list(enumerate(every)), FORMATS.index(fmt) + 3 * MODES.index(mode))
    for i, environment in cases:
        plain = environment.get("tininess") != "before" and not environment.get("flush_results")
        for operation in ROUNDED_PAIRS:
            every_tuple(operation, fmt).check(fmt, with_table=plain, **environment, **stated(fmt))
        if subnormals and i % 3 == 0:
            operation = ROUNDED_PAIRS[i // 3 % 5]
            every_tuple(operation, fmt, True).check(fmt, **environment, **stated(fmt))


@cases("profile", ["x86", "arm"])
@pytest.mark.parametrize("fmt", [f for f in FORMATS if f.has_nan], ids=str)
@tiers
def test_every_pair_under_each_nan_profile(tier, fmt, profile):
    """Which NaN comes out, of all pairs; the numbers do not depend on it."""
    modes = ["nearest_even", "toward_zero", "down", "stochastic"]
    cases = [
        (operation, environment)
        for mode in modes
        for environment in environments(fmt, mode, words=[5])[::4]
        for operation in [*ROUNDED_PAIRS, "sqrt", "convert"]
    ]
    for operation, environment in taken(tier, cases, FORMATS.index(fmt)):
        every_tuple(operation, fmt).check(fmt, nan=profile, **environment)


# -- operations that choose, compare or copy: the reference is asked for every pair ------------------------------------
CHOICES = ["minimum", "maximum", "minimum_number", "maximum_number"]


def pairs(fmt, tier: str, start: int) -> list[np.ndarray]:
    n = 1 << fmt.bits
    step = 23 if tier == "part" and n * n > 2048 else 1  # 23: all pairs of residues occur
    flat = np.arange(start % step, n * n, step)
    return [(flat // n).astype(fmt.storage_dtype), (flat % n).astype(fmt.storage_dtype)]


def same(got, flags, want, name, codes, fmt) -> None:
    """Compare codes and flags with the reference's pairs."""
    for i, (code, raised) in enumerate(want):
        if (int(got[i]), int(flags[i])) != (int(code), int(raised)):
            operands = ", ".join(show(c[i], fmt) for c in codes)
            raise AssertionError(
                f"{name}({operands}) of {fmt}: got {int(got[i]):#x} {Flags(int(flags[i]))!r}, want {code:#x} {raised!r}"
            )


@cases("name", CHOICES)
@by_format
@tiers
def test_every_choice(tier, fmt, name):
    """The result is an operand: the same under every mode and rule."""
    codes = pairs(fmt, tier, FORMATS.index(fmt))
    want = [getattr(ref, name)(a, b, fmt) for a, b in zip(*(c.tolist() for c in codes), strict=True)]
    options = {"invalid": 0} if not stated(fmt) else stated(fmt)
    for i, mode in enumerate(MODES):
        environment = environments(fmt, mode)[i % 2]
        environment.pop("flush_results", None)
        got, flags = getattr(sn.ops, name)(*codes, fmt, return_flags=True, **options, **environment)
        if i == 0:
            same(got, flags, want, name, codes, fmt)
            first, first_flags = got, flags
        finite = "saturate" not in environment["overflow"] or fmt.kind == "fixed"
        if finite:
            assert np.array_equal(got, first) and np.array_equal(flags, first_flags), (fmt, name, environment)


@by_format
@tiers
def test_every_comparison(tier, fmt):
    """compare, quiet and signaling, and total_order."""
    codes = pairs(fmt, tier, FORMATS.index(fmt))
    listed = list(zip(*(c.tolist() for c in codes), strict=True))
    for kind in ("quiet", "signaling"):
        got, flags = sn.compare(*codes, fmt, signaling=kind == "signaling", return_flags=True)
        want = [ref.compare(a, b, fmt, kind) for a, b in listed]
        assert got.tolist() == [order for order, _ in want]
        assert flags.tolist() == [int(raised) for _, raised in want]
    got = sn.ops.total_order(*codes, fmt)
    assert got.tolist() == [ref.total_order(a, b, fmt) for a, b in listed]


@by_format
@tiers
def test_every_copied_sign(tier, fmt):
    codes = pairs(fmt, tier, FORMATS.index(fmt))
    options = {"invalid": 0} if not stated(fmt) else stated(fmt)
    for rule in overflow_rules(fmt):
        want = [ref.copysign(a, b, fmt, overflow=rule) for a, b in zip(*(c.tolist() for c in codes), strict=True)]
        got, flags = sn.ops.copysign(*codes, fmt, overflow=rule, return_flags=True, **options)
        same(got, flags, want, "copysign", codes, fmt)


# -- one operand -------------------------------------------------------------------------------------------------------
TARGETS = ["e4m3fn", "e5m2", "e8m0fnu", "q4.4", "e3m2fn", "binary8p4se", "uq2.3", "e2m1fn"]


@by_mode
@by_format
@tiers
def test_every_code(tier, fmt, mode):
    """sqrt and conversion to nine formats; then integers and exponents, where the reference is asked for each code."""
    targets = [fmt, *(format_of(n) for n in TARGETS)]
    start, step = FORMATS.index(fmt) + 5 * MODES.index(mode), 1 if tier == "whole" else 9
    for environment in environments(fmt, mode, words=(0, 3, 7))[start % step :: step]:
        every_tuple("sqrt", fmt).check(fmt, **environment, **stated(fmt))
    for i in range(0, 18, step):
        target = targets[(start + i) % 9]
        suits = environments(target, mode, words=(0, 3, 7))
        every_tuple("convert", fmt).check(target, **suits[(start + i) % len(suits)], **stated(target))
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    environment = environments(fmt, mode, words=(5,))[FORMATS.index(fmt) % 3]
    options = {"invalid": 0} if not stated(fmt) else stated(fmt)
    for name in ("round_to_integral", "logb"):
        got, flags = getattr(sn.ops, name)(codes, fmt, return_flags=True, **options, **environment)
        want = [getattr(ref, name)(c, fmt, **environment) for c in codes.tolist()]
        same(got, flags, want, f"{environment} {name}", [codes], fmt)
    n = (-3, -1, 0, 1, 5)[MODES.index(mode) % 5]
    got, flags = sn.ops.scalb(codes, n, fmt, return_flags=True, **options, **environment)
    same(got, flags, [ref.scalb(c, n, fmt, **environment) for c in codes.tolist()], f"scalb by {n}", [codes], fmt)


@by_format
def test_every_code_without_rounding(fmt):
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    options = {"invalid": 0} if not stated(fmt) else stated(fmt)
    for name in ("next_up", "next_down", "negate", "absolute"):
        got, flags = getattr(sn.ops, name)(codes, fmt, return_flags=True, **options)
        same(got, flags, [getattr(ref, name)(c, fmt) for c in codes.tolist()], name, [codes], fmt)
    assert sn.classify(codes, fmt).tolist() == [ref.classify(c, fmt) for c in codes.tolist()]


SIXTEEN_BITS = [
    "binary16", "bfloat16", "dlfloat16", "e6m9", "binary16p6se", "binary16p10ue", "binary16p12sf", "q8.8", "uq4.12",
]  # fmt: skip


@pytest.mark.slow
@by_mode
@pytest.mark.parametrize("name", SIXTEEN_BITS)
@tiers
def test_every_16_bit_code(tier, name, mode):
    """sqrt, integers, exponents, powers of two and conversions in every mode."""
    fmt = format_of(name)
    start = SIXTEEN_BITS.index(name) + 7 * MODES.index(mode)
    environment = environments(fmt, mode, words=(5,))[start % 3]
    step = 1 if tier == "whole" else 101
    codes = np.arange(start % step, 1 << 16, step).astype(np.uint16)
    options = {"invalid": 0} if not fmt.has_nan else {}
    names = ["sqrt", "round_to_integral", "logb"]
    if tier == "whole":  # for so many, the fast oracle
        Tuples("sqrt", (codes,), (fmt,)).check(fmt, **environment)
        names.remove("sqrt")
    for operation in names:
        got, flags = getattr(sn.ops, operation)(codes, fmt, return_flags=True, **options, **environment)
        want = [getattr(ref, operation)(c, fmt, **environment) for c in codes.tolist()]
        same(got, flags, want, f"{environment} {operation}", [codes], fmt)
    if tier == "whole":
        n = (-9, 3, -1, 17, -30)[start % 5]
        got, flags = sn.ops.scalb(codes, n, fmt, return_flags=True, **options, **environment)
        same(got, flags, [ref.scalb(c, n, fmt, **environment) for c in codes.tolist()], f"scalb by {n}", [codes], fmt)
    source = every_convert(fmt)
    for i, target in enumerate(TARGETS if tier == "whole" else TARGETS[start % 4 :: 4]):
        suits = environments(format_of(target), mode, words=(0, 6))
        for suit in suits if tier == "whole" else [suits[(start + i) % len(suits)]]:
            source.check(format_of(target), **suit)
    if tier == "whole":
        wide = format_of("dlfloat16" if name != "dlfloat16" else "binary16")
        source.check(wide, **environments(wide, mode, words=(5,))[start % 2])


_converts: dict = {}


def every_convert(fmt) -> Tuples:
    if fmt not in _converts:
        _converts.clear()
        _converts[fmt] = Tuples("convert", (np.arange(1 << 16, dtype=np.uint16),), (fmt,))
    return _converts[fmt]


@pytest.mark.parametrize("name", SIXTEEN_BITS)
@tiers
def test_every_16_bit_code_without_rounding(tier, name):
    fmt = format_of(name)
    codes = np.arange(SIXTEEN_BITS.index(name), 1 << 16, 20 if tier == "part" else 1).astype(np.uint16)
    options = {"invalid": 0} if not fmt.has_nan else {}
    for operation in ("next_up", "next_down", "negate", "absolute"):
        got, flags = getattr(sn.ops, operation)(codes, fmt, return_flags=True, **options)
        same(got, flags, [getattr(ref, operation)(c, fmt) for c in codes.tolist()], operation, [codes], fmt)
    assert sn.classify(codes, fmt).tolist() == [ref.classify(c, fmt) for c in codes.tolist()]


# -- fma ---------------------------------------------------------------------------------------------------------------
def _small_formats() -> list:
    """Every way to divide up to 5 bits into exponent and mantissa, with each set of special values."""
    out = []
    for bits in (2, 3, 4, 5):
        for signed in (True, False):
            for e in range(1, bits - signed + 1):
                for specials in ("ieee", "fn", "fnuz", "p3109", "none"):
                    for lowest in ("subnormal", "normal", "zero"):
                        try:
                            out.append(
                                FloatFormat(
                                    e, bits - signed - e, signed=signed, specials=specials, lowest_binade=lowest
                                )
                            )
                        except ValueError:  # the facts contradict each other, or leave no number
                            continue
        out += [FixedFormat(i, bits - i, signed=s) for i in range(bits + 1) for s in (True, False)]
    return list(dict.fromkeys(out))


@pytest.mark.parametrize("mode", MODES)
@tiers
def test_every_triple_of_up_to_5_bits(tier, mode):
    """fma of every format of up to 5 bits, all triples, all rules."""
    formats = _small_formats()
    assert len(formats) > 200
    for i, fmt in enumerate(formats):
        every = every_tuple("fma", fmt)
        cases = environments(fmt, mode, words=(0, 1, 3, 6))
        if tier == "part":
            if (i + MODES.index(mode)) % 10:
                continue
            cases = [cases[i % len(cases)]]
        for environment in cases:
            every.check(fmt, **environment)


def triples(fmt, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """Codes at random; a quarter of them such that c nearly cancels a * b."""
    a, b, c = (rng.integers(0, 1 << fmt.bits, count, dtype=np.uint8) for _ in range(3))
    quarter = count // 4
    modes = ("toward_zero", "saturate")
    product = sn.multiply(a[:quarter], b[:quarter], fmt, rounding=modes[0], overflow=modes[1], **(
        {} if fmt.has_nan else {"invalid": fmt.min if stated(fmt) else 0}
    ))  # fmt: skip
    near = product ^ rng.integers(0, 4, quarter, dtype=np.uint8)
    c[:quarter] = near ^ np.uint8(1 << (fmt.bits - 1))
    return a, b, c


@pytest.mark.slow
@pytest.mark.parametrize("fmt", [f for f in FORMATS if f.bits == 8], ids=str)
@tiers
def test_triples_of_8_bits(tier, fmt):
    """Edges crossed, and random triples: ten million for each format, a hundred thousand of them in the part."""
    rng = np.random.Generator(np.random.Philox(FORMATS.index(fmt)))
    edges = edge_codes(fmt)
    columns = np.meshgrid(edges[::2], edges[1::2], edges, indexing="ij")
    crossed = Tuples("fma", tuple(c.ravel() for c in columns), (fmt,) * 3)
    count, modes = (100_000, MODES[FORMATS.index(fmt) % 3 :: 5]) if tier == "part" else (10_000_000, MODES)
    for i, mode in enumerate(modes):
        cases = environments(fmt, mode, words=(0, 5))
        for environment in taken(tier, cases, i):
            crossed.check(fmt, **environment, **stated(fmt))
        drawn = Tuples("fma", triples(fmt, rng, count // len(modes)), (fmt,) * 3)
        drawn.check(fmt, **cases[i % len(cases)], **stated(fmt))


@pytest.mark.parametrize("fmt", ["e5m2", "e4m3", "e4m3fn", "e4m3fnuz", "binary8p4se", "q4.4"])
@tiers
def test_mixed_operands(tier, fmt):
    """Products of 8-bit formats, added to codes of another, into a third."""
    fmt, rng = format_of(fmt), np.random.Generator(np.random.Philox(7))
    others = ["e5m2", "q4.4", "e3m4", "e4m3fnuz", "uq4.4"]
    for i, (second, out) in enumerate(itertools.permutations(others, 2)):
        second, out = format_of(second), format_of(out)
        a, b, c = (rng.integers(0, 256, 20_000 if tier == "part" else 1_000_000, dtype=np.uint8) for _ in range(3))
        mode = MODES[i % len(MODES)]
        case = environments(out, mode, words=(3,))[i % 2]
        if tier == "part" and i % 3:
            continue
        Tuples("fma", (a, b, c), (fmt, second, out)).check(out, **case)
        for operation in ROUNDED_PAIRS:
            Tuples(operation, (a, b), (fmt, second)).check(out, **case)


# -- the tests themselves ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fmt", ["e5m2", "e4m3fn", "e4m3fnuz", "e8m0fnu", "e3m2fn", "q4.4", "uq0.5", "e3m2"])
def test_the_fast_oracle_equals_the_reference(fmt):
    """Tuples drawn at random, asked of the reference one by one."""
    fmt, rng = format_of(fmt), random.Random(fmt)
    for operation in [*ROUNDED_PAIRS, "sqrt", "fma"]:
        if operation == "fma":
            draws = np.random.default_rng(1).integers(0, 1 << fmt.bits, (3, 4000)).astype(fmt.storage_dtype)
            every = Tuples("fma", tuple(draws), (fmt,) * 3)
        else:
            every = every_tuple(operation, fmt)
        for mode in rng.sample(DETERMINISTIC, 3) + rng.sample(STOCHASTIC, 1):
            environment = rng.choice(environments(fmt, mode))
            codes, flags = every.expected(fmt, **environment, **stated(fmt))
            for i in rng.sample(range(len(codes)), min(len(codes), 400)):
                operands = [int(c[i]) for c in every.codes]
                want = getattr(ref, operation)(*operands, fmt, **environment, **stated(fmt))
                assert (codes[i], flags[i]) == want, (operation, operands, environment)


def test_the_comparison_catches_a_planted_fault():
    """The library in one mode against the reference in another: each pair of modes must be told apart."""
    fmt = format_of("e4m3fn")
    every = every_tuple("fma", format_of("e2m1fn"))
    small = format_of("e2m1fn")
    for first, second in itertools.permutations(DETERMINISTIC, 2):
        want, flags = every.expected(small, rounding=second)
        got, raised = sn.fma(*every.codes, small, rounding=first, return_flags=True, invalid=0)
        assert (want != got).any() or (flags != raised).any(), (first, second)
    real = sn.ops.multiply
    try:
        sn.ops.multiply = lambda *codes, **options: real(*codes, **(options | {"tininess": "before"}))
        with pytest.raises(AssertionError, match="multiply"):
            every_tuple("multiply", fmt).check(fmt, rounding="nearest_even")
    finally:
        sn.ops.multiply = real


def test_stochastic_bits_are_told_apart():
    every = every_tuple("multiply", format_of("e4m3fn"))
    seen = {every.expected(format_of("e4m3fn"), rounding="stochastic", stochastic_bits=3, random_bits=w)[0].tobytes()
            for w in range(8)}  # fmt: skip
    assert len(seen) == 8


def test_wrapping_by_integer_arithmetic_alone():
    fmt = FixedFormat(4, 4)
    a, b = (x.ravel() for x in np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)))
    wide_a, wide_b = a.astype(np.int8).astype(np.int64), b.astype(np.int8).astype(np.int64)
    got, flags = sn.add(a, b, fmt, overflow="wrap", return_flags=True)
    assert np.array_equal(got, (wide_a + wide_b).astype(np.uint8))
    assert np.array_equal(flags == sn.Flags.OVERFLOW, (wide_a + wide_b != (wide_a + wide_b).astype(np.int8)))
    product = wide_a * wide_b
    got = sn.multiply(a, b, fmt, overflow="wrap", rounding="down")
    assert np.array_equal(got, (product >> 4).astype(np.uint8))
