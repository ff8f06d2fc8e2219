"""Small domains, enumerated: every pair of codes under every rounding mode, values and flags, against the reference."""

import numpy as np
import pytest
from core_oracles import DETERMINISTIC, MODES, OPERATIONS, STOCHASTIC, Groups, all_pairs, overflow_rules

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.names import format as format_of

EIGHT_BITS = ["e4m3fn", "e5m2", "q4.4"]
BINARY = ["add", "subtract", "multiply"]


@pytest.mark.parametrize("mode", DETERMINISTIC)
@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize("name", EIGHT_BITS)
def test_every_pair_of_8_bits(name, operation, mode):
    fmt = format_of(name)
    groups = all_pairs(operation, fmt)
    groups.check(fmt, rounding=mode)
    want, _ = groups.expected(fmt, rounding=mode)  # without flags a look-up table answers: it must say the same
    got = OPERATIONS[operation][0](*groups.codes, fmt, rounding=mode, invalid=0)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize("name", EIGHT_BITS)
def test_every_pair_of_8_bits_stochastic(name, operation, mode):
    """r = 3, all eight values of the random bits; the bits above them must not count."""
    fmt = format_of(name)
    for word in range(8):
        all_pairs(operation, fmt).check(fmt, rounding=mode, stochastic_bits=3, random_bits=word | 0xDEADBEE8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize("name", EIGHT_BITS)
def test_every_pair_of_8_bits_other_rules_and_tininess(name, operation, mode):
    """The rules and tininess that the first test leaves out, alternating; the small formats below take all of them."""
    fmt = format_of(name)
    random = {"stochastic_bits": 2, "random_bits": 3} if mode in STOCHASTIC else {}
    rule = overflow_rules(fmt)[1 + (MODES.index(mode) + BINARY.index(operation)) % 2]
    all_pairs(operation, fmt).check(fmt, rounding=mode, overflow=rule, tininess="before", **random)


SMALL = [
    "e2m1fn", "e2m3fn", "e3m2fn", "e3m2", "e3m1", "q2.3", "uq2.3", "uq0.5", "q0.4", "q5.0", "binary6p3se",
    "binary6p3sf", "binary6p4ue", "binary5p2uf", "binary5p1se", "binary6p1ue", "binary4p4uf",
]  # fmt: skip
SMALL_CUSTOM = [
    FloatFormat(3, 2, specials="fnuz", name="e3m2fnuz"),
    FloatFormat(3, 2, specials="fn", lowest_binade="normal", name="dl-like"),
    FloatFormat(3, 2, lowest_binade="zero", name="flushing"),
    FloatFormat(3, 2, specials="fnuz", lowest_binade="zero", name="flushing-fnuz"),
    FloatFormat(2, 3, specials="p3109", lowest_binade="normal", name="p3109-normal"),
    FloatFormat(4, 0, specials="none", name="e4m0"),
    FloatFormat(4, 0, specials="fn", lowest_binade="normal", name="e4m0-normal"),
    FloatFormat(5, 0, specials="fn", signed=False, has_zero=False, lowest_binade="normal", name="e5m0-no-zero"),
    FloatFormat(3, 2, specials="none", signed=False, has_zero=False, lowest_binade="normal", name="e3m2-no-zero"),
    FloatFormat(3, 2, specials="p3109", signed=False, name="unsigned-p3109"),
    FloatFormat(3, 2, signed=False, name="unsigned-ieee"),
    FloatFormat(3, 2, specials="none", signed=False, lowest_binade="zero", name="unsigned-flushing"),
    FloatFormat(1, 4, specials="none", name="e1m4"),
    FloatFormat(1, 3, name="e1m3"),
    FloatFormat(5, 0, specials="none", bias=-40, name="all-large"),
    FloatFormat(2, 2, specials="fn", nan_codes="none", infinities=True, name="inf-without-nan"),
    FloatFormat(2, 2, nan_codes="all_ones", infinities=True, negative_zero=False, name="all-ones-and-inf"),
]


@pytest.mark.parametrize("operation", ["add", "multiply"])
@pytest.mark.parametrize("fmt", [format_of(n) for n in SMALL] + SMALL_CUSTOM, ids=str)
def test_every_pair_of_few_bits(fmt, operation):
    """All modes, all overflow rules, tininess before and after."""
    groups = all_pairs(operation, fmt)
    for mode in MODES:
        random = {"stochastic_bits": 2, "random_bits": 0xF1} if mode in STOCHASTIC else {}
        for rule, tininess in zip(overflow_rules(fmt), ("after", "before", "after"), strict=True):
            groups.check(fmt, rounding=mode, overflow=rule, tininess=tininess, **random)


MORE_EIGHT_BITS = [
    "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e3m4", "e4m3", "e8m0fnu", "binary8p3se", "binary8p4sf", "binary8p5ue",
    "uq4.4",
]  # fmt: skip


@pytest.mark.parametrize("operation", ["add", "multiply"])
@pytest.mark.parametrize("name", MORE_EIGHT_BITS)
def test_every_pair_of_more_8_bit_formats(name, operation):
    fmt = format_of(name)
    for i, mode in enumerate(DETERMINISTIC[MORE_EIGHT_BITS.index(name) % 2 :: 2]):
        all_pairs(operation, fmt).check(fmt, rounding=mode, overflow=overflow_rules(fmt)[i % 3])


@pytest.mark.parametrize("fmt", [format_of("e2m1fn"), FloatFormat(2, 1, name="e2m1"), format_of("q2.2")], ids=str)
def test_every_triple_of_four_bits(fmt):
    """fma, all 4096 triples, all modes."""
    codes = np.indices((16, 16, 16)).reshape(3, -1).astype(np.uint8)
    groups = Groups("fma", tuple(codes), (fmt,) * 3)
    for mode in MODES:
        random = {"stochastic_bits": 3, "random_bits": 5} if mode in STOCHASTIC else {}
        for rule in overflow_rules(fmt):
            groups.check(fmt, rounding=mode, overflow=rule, **random)


@pytest.mark.parametrize("source", ["binary16", "bfloat16", "dlfloat16", "e6m9", "binary16p6se", "q8.8"])
def test_every_16_bit_code_converted(source):
    """To the small formats, in every mode, against the reference."""
    source = format_of(source)
    codes = np.arange(1 << 16, dtype=np.uint16)
    decoded = [ref.decode(c, source) for c in codes.tolist()]
    assert any(v.kind == "finite" for v in decoded)
    targets = ["e4m3fn", "e5m2", "e8m0fnu", "q4.4", "e3m2fn", "dlfloat16"]
    for i, mode in enumerate(DETERMINISTIC):
        target = format_of(targets[i % len(targets)])
        got, flags = sn.convert(codes, source, target, rounding=mode, return_flags=True, invalid=0)
        step = 1 if i == 0 else 7
        for c in range(0, 1 << 16, step):
            want = ref.convert(c, source, target, rounding=mode)
            assert (got[c], flags[c]) == want, (source, target, mode, hex(c), hex(got[c]), flags[c], want)


def test_the_comparison_catches_a_planted_fault():
    """The library in one mode against the reference in another: each pair of modes must be told apart."""
    fmt = format_of("e3m2")
    groups = all_pairs("add", fmt)

    class Planted(Groups):
        def __init__(self, wrong):
            self.__dict__.update(groups.__dict__)
            self.wrong = wrong

        def expected(self, out_fmt, **environment):
            return groups.expected(out_fmt, **(environment | {"rounding": self.wrong}))

    for mode in DETERMINISTIC:
        for wrong in DETERMINISTIC:
            if wrong != mode:
                with pytest.raises(AssertionError, match="want"):
                    Planted(wrong).check(fmt, rounding=mode)


def test_fixed_point_wraps_as_two_s_complement():
    """Wrapping, worked out here by integer arithmetic alone."""
    fmt = FixedFormat(4, 4)
    a, b = (x.ravel() for x in np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)))
    wide_a, wide_b = a.astype(np.int8).astype(np.int64), b.astype(np.int8).astype(np.int64)
    got, flags = sn.add(a, b, fmt, overflow="wrap", return_flags=True)
    assert np.array_equal(got, (wide_a + wide_b).astype(np.uint8))
    assert np.array_equal(flags == sn.Flags.OVERFLOW, (wide_a + wide_b != (wide_a + wide_b).astype(np.int8)))
    product = wide_a * wide_b
    got = sn.multiply(a, b, fmt, overflow="wrap", rounding="down")
    assert np.array_equal(got, (product >> 4).astype(np.uint8))
