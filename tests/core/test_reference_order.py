"""The reference's order, neighbours, signs and classes against tables worked by hand and enumerations."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.names import format as format_of
from softnum.reference import order
from tests.support.cases import cases

NONE, INEXACT, UNDERFLOW, OVERFLOW, INVALID = 0, 1, 2, 4, 16
F = Fraction
FLUSHING = FloatFormat(5, 2, subnormals=False)
UNSIGNED = FloatFormat(4, 3, signed=False, specials="p3109")
NO_MINUS_ZERO = FloatFormat(3, 2, nan_codes="all_ones", infinities=True, negative_zero=False, subnormals=False)
FORMATS = [
    format_of("e5m2"), format_of("e4m3fn"), format_of("e4m3fnuz"), format_of("e2m1fn"), format_of("e8m0fnu"),
    format_of("binary8p3se"), format_of("binary8p3ue"), format_of("e3m1"), format_of("q4.4"), format_of("uq3.2"),
    FLUSHING,
    UNSIGNED, NO_MINUS_ZERO, FloatFormat(4, 0, specials="none"),
    FloatFormat(3, 2, specials="fn", lowest_binade="normal"),
    FloatFormat(3, 0, specials="none", lowest_binade="normal"), FloatFormat(3, 2, specials="fnuz", subnormals=False),
]  # fmt: skip


def numbers(fmt):
    """Every code that is a number, with its place: (infinity's sign, value, whether it is not -0)."""
    for code in range(1 << fmt.bits):
        x = ref.decode(code, fmt)
        if x.kind != "nan":
            yield code, ((1 - 2 * x.sign) if x.kind == "inf" else 0, x.fraction, not x.sign)


# -- minimum and maximum -----------------------------------------------------------------------------------------------
# e5m2: 0x3C is 1, 0x7C infinity, 0x7D signals, 0x7E is quiet
@cases(
    "a, b, least, greatest",
    [
        (0x3C, 0x40, 0x3C, 0x40), (0xBC, 0x3C, 0xBC, 0x3C), (0xBC, 0xC0, 0xC0, 0xBC), (0x00, 0x80, 0x80, 0x00),
        (0x7C, 0x7B, 0x7B, 0x7C), (0xFC, 0x7C, 0xFC, 0x7C), (0xFC, 0x01, 0xFC, 0x01), (0x80, 0x01, 0x80, 0x01),
        (0x00, 0x81, 0x81, 0x00), (0x7C, 0x7C, 0x7C, 0x7C), (0x80, 0x80, 0x80, 0x80), (0x3C, 0x3C, 0x3C, 0x3C),
    ],
)  # fmt: skip
def test_minimum_and_maximum_of_numbers_by_hand(a, b, least, greatest):
    for x, y in ((a, b), (b, a)):
        assert ref.minimum(x, y, "e5m2") == ref.minimum_number(x, y, "e5m2") == (least, NONE)
        assert ref.maximum(x, y, "e5m2") == ref.maximum_number(x, y, "e5m2") == (greatest, NONE)


@pytest.mark.parametrize(
    "a, b, of_all, of_numbers",
    [
        (0x3C, 0x7E, (0x7E, NONE), (0x3C, NONE)), (0x3C, 0xFF, (0x7E, NONE), (0x3C, NONE)),
        (0x80, 0x7D, (0x7E, INVALID), (0x80, INVALID)), (0xFC, 0x7E, (0x7E, NONE), (0xFC, NONE)),
        (0x7E, 0xFE, (0x7E, NONE), (0x7E, NONE)), (0x7D, 0x7E, (0x7E, INVALID), (0x7E, INVALID)),
    ],
)  # fmt: skip
def test_minimum_and_maximum_of_nans_by_hand(a, b, of_all, of_numbers):
    for x, y in ((a, b), (b, a)):
        assert ref.minimum(x, y, "e5m2") == ref.maximum(x, y, "e5m2") == of_all
        assert ref.minimum_number(x, y, "e5m2") == ref.maximum_number(x, y, "e5m2") == of_numbers


def test_minimum_and_maximum_of_different_formats():
    assert ref.minimum(0x3C, 0x18, ("e5m2", "q4.4"), out_fmt="e2m1fn") == (0x2, NONE)
    assert ref.maximum(0x3C, 0x19, ("e5m2", "q4.4"), out_fmt="e5m2") == (0x3E, INEXACT)  # 1.5625 -> 1.5
    assert ref.maximum(0x7C, 0x19, ("e5m2", "q4.4"), out_fmt="q4.4") == (0, INVALID)
    assert ref.minimum(0x7E, 0x19, ("e5m2", "q4.4"), out_fmt="q4.4") == (0, INVALID)
    assert ref.minimum_number(0x7E, 0x19, ("e5m2", "q4.4"), out_fmt="q4.4") == (0x19, NONE)
    assert ref.minimum_number(0x7D, 0x19, ("e5m2", "q4.4"), out_fmt="e5m2", rounding="up") == (0x3F, INVALID | INEXACT)
    assert ref.minimum(0x80, 0x00, "e5m2", out_fmt="e4m3fnuz") == (0x00, NONE)
    assert ref.maximum(0x7C, 0x3C, "e5m2", overflow="saturate") == (0x7B, NONE)
    with pytest.raises(ValueError, match="need out_fmt="):
        ref.minimum(0, 0, ("e5m2", "q4.4"))


@cases("fmt", FORMATS, ids=str)
def test_minimum_and_maximum_by_enumeration(fmt):
    places = dict(numbers(fmt))
    for a, b in itertools.product(list(places)[::3], repeat=2):
        for operation, choose in ((ref.minimum, min), (ref.maximum, max)):
            code, flags = operation(a, b, fmt)
            assert places[code] == choose(places[a], places[b]) and not flags, (operation.__name__, hex(a), hex(b))


# -- comparison --------------------------------------------------------------------------------------------------------
@cases("fmt", FORMATS, ids=str)
def test_compare_by_enumeration(fmt):
    places = list(numbers(fmt))
    for (a, x), (b, y) in itertools.product(places[::3], places[::2]):
        x, y = x[:2], y[:2]  # -0 equals +0
        for kind in ("quiet", "signaling"):
            assert ref.compare(a, b, fmt, kind) == ((x > y) - (x < y), NONE)


def test_compare_by_hand():
    assert ref.compare(0x3C, 0x7E, "e5m2") == (2, NONE)
    assert ref.compare(0x7E, 0x3C, "e5m2", kind="signaling") == (2, INVALID)
    assert ref.compare(0x7E, 0x7E, "e5m2") == (2, NONE)
    assert ref.compare(0x7D, 0x3C, "e5m2") == ref.compare(0x3C, 0x7D, "e5m2", "signaling") == (2, INVALID)
    assert ref.compare(0xFF, 0x00, "e8m0fnu", "signaling") == (2, INVALID)
    assert ref.compare(0x7C, 0x7F, ("e5m2", "q4.4")) == (1, NONE)
    assert ref.compare(0xFC, 0x80, ("e5m2", "q4.4")) == (-1, NONE)
    assert ref.compare(0x80, 0x00, ("e5m2", "q4.4")) == (0, NONE)
    assert ref.compare(0x3FD5555555555555, 0x3EAAAAAB, ("binary64", "binary32")) == (-1, NONE)
    with pytest.raises(ValueError, match="kind must be 'quiet' or 'signaling', got 'loud'"):
        ref.compare(0, 0, "e5m2", "loud")
    with pytest.raises(ValueError, match="2 operands need one format or 2, got 1"):
        ref.compare(0, 0, ("e5m2",))


def test_total_order_by_hand():
    # negative quiet NaNs, the signaling one, -infinity, ..., -0, +0, ..., infinity, the signaling NaN, quiet NaNs
    in_order = [0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xBC, 0x81, 0x80, 0x00, 0x01, 0x3C, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F]
    for (i, a), (j, b) in itertools.product(enumerate(in_order), repeat=2):
        assert ref.total_order(a, b, "e5m2") is (i <= j)
    assert [ref.total_order(a, 0x80, "e4m3fnuz") for a in (0x80, 0xFF, 0x00, 0x7F)] == [True, False, False, False]
    assert all(ref.total_order(0x80, a, "e4m3fnuz") for a in range(256))
    assert all(ref.total_order(a, 0xFF, "e8m0fnu") for a in range(256))
    assert ref.total_order(0x03, 0x00, FLUSHING) and ref.total_order(0x00, 0x03, FLUSHING)
    assert not ref.total_order(0x00, 0x83, FLUSHING)
    assert ref.total_order(0x80, 0x7F, "q4.4") and not ref.total_order(0x7F, 0x80, "q4.4")


@cases("fmt", FORMATS, ids=str)
def test_total_order_by_enumeration(fmt):
    places = list(numbers(fmt))
    for (a, x), (b, y) in itertools.product(places[::3], places[::2]):
        assert ref.total_order(a, b, fmt) == (x <= y)
    for a, b in itertools.product(range(0, 1 << fmt.bits, 5), repeat=2):  # total
        assert ref.total_order(a, b, fmt) or ref.total_order(b, a, fmt)


# -- classes -----------------------------------------------------------------------------------------------------------
def test_classify_by_hand():
    e5m2 = {
        0x7D: 0, 0xFD: 0, 0x7E: 1, 0xFF: 1, 0xFC: 2, 0xFB: 3, 0x84: 3, 0x83: 4, 0x81: 4, 0x80: 5, 0x00: 6, 0x01: 7,
        0x03: 7, 0x04: 8, 0x7B: 8, 0x7C: 9,
    }  # fmt: skip
    assert {code: ref.classify(code, "e5m2") for code in e5m2} == e5m2
    others = [
        ("e4m3fn", 0x7F, 1), ("e4m3fnuz", 0x80, 1), ("e4m3fnuz", 0x81, 4), ("e3m1", 0b11101, 3), ("e3m1", 0b11111, 1),
        ("e8m0fnu", 0x00, 8), ("e8m0fnu", 0xFF, 1), ("dlfloat16", 0x0000, 6), ("dlfloat16", 0x0001, 8),
        (FLUSHING, 0x03, 6), (FLUSHING, 0x83, 5), (NO_MINUS_ZERO, 0b100000, 6), ("e2m1fn", 0x1, 7), ("e2m1fn", 0x7, 8),
        (FloatFormat(4, 0, specials="none"), 0x01, 8), ("q4.4", 0x00, 6), ("q4.4", 0x01, 8), ("q4.4", 0xFF, 3),
        ("uq4.4", 0xFF, 8), ("binary8p3ue", 0xFE, 9),
    ]  # fmt: skip
    for fmt, code, want in others:
        assert ref.classify(code, fmt) == want, (fmt, code)
    assert len(ref.CLASSES) == 10


@cases("fmt", FORMATS, ids=str)
def test_classes_against_values(fmt):
    for code, (infinite, value, positive) in numbers(fmt):
        if infinite:
            want = 9 if positive else 2
        elif value == 0:
            want = 6 if positive else 5
        elif fmt.kind == "fixed" or abs(value) >= fmt.smallest_normal:
            want = 8 if positive else 3
        else:
            want = 7 if positive else 4
        assert ref.classify(code, fmt) == want, hex(code)


# -- neighbours --------------------------------------------------------------------------------------------------------
def compare_neighbours(fmt):
    """Against the sorted values; of codes of one value, the lowest one stands for it."""
    by_value = {}
    for code, (infinite, value, _) in numbers(fmt):
        by_value.setdefault((infinite, value), code)
    ordered = sorted(by_value)
    for code, (infinite, value, _) in numbers(fmt):
        at = ordered.index((infinite, value))
        for operation, step in ((ref.next_up, 1), (ref.next_down, -1)):
            to = max(0, min(at + step, len(ordered) - 1))
            want = by_value[ordered[to]]
            if ordered[to] == (0, 0) and step == 1 and to != at and fmt.kind == "float" and fmt.negative_zero:
                want = 1 << (fmt.bits - 1)
            assert operation(code, fmt) == (want, NONE), (operation.__name__, fmt, hex(code))


@cases("fmt", FORMATS, ids=str)
def test_neighbours_by_enumeration(fmt):
    compare_neighbours(fmt)


@pytest.mark.parametrize("fmt", [format_of("e5m2"), FLUSHING, format_of("e4m3fnuz")], ids=str)
def test_the_enumeration_catches_a_planted_fault(fmt, monkeypatch):
    monkeypatch.setattr(order, "with_sign", lambda sign, magnitude, fmt: sign << (fmt.bits - 1) | max(magnitude, 1))
    with pytest.raises(AssertionError, match="next_"):
        compare_neighbours(fmt)


@cases(
    "fmt, code, up, down",
    [
        ("e5m2", 0x00, 0x01, 0x81), ("e5m2", 0x80, 0x01, 0x81), ("e5m2", 0x81, 0x80, 0x82), ("e5m2", 0x01, 0x02, 0x00),
        ("e5m2", 0x7B, 0x7C, 0x7A), ("e5m2", 0x7C, 0x7C, 0x7B), ("e5m2", 0xFC, 0xFB, 0xFC), ("e5m2", 0xFB, 0xFA, 0xFC),
        ("e4m3fn", 0x7E, 0x7E, 0x7D), ("e4m3fn", 0xFE, 0xFD, 0xFE), ("e4m3fn", 0x7F, 0x7F, 0x7F),
        ("e4m3fnuz", 0x81, 0x00, 0x82), ("e4m3fnuz", 0x00, 0x01, 0x81), ("e4m3fnuz", 0x80, 0x80, 0x80),
        (FLUSHING, 0x00, 0x04, 0x84), (FLUSHING, 0x03, 0x04, 0x84), (FLUSHING, 0x84, 0x80, 0x85),
        (FLUSHING, 0x04, 0x05, 0x00), ("dlfloat16", 0x0000, 0x0001, 0x8001), ("dlfloat16", 0x8001, 0x8000, 0x8002),
        ("e8m0fnu", 0x00, 0x01, 0x00), ("e8m0fnu", 0xFE, 0xFE, 0xFD), ("e8m0fnu", 0xFF, 0xFF, 0xFF),
        (UNSIGNED, 0x00, 0x01, 0x00), ("e5m2", 0x7E, 0x7E, 0x7E), ("e5m2", 0xFF, 0x7E, 0x7E),
        ("q4.4", 0x7F, 0x7F, 0x7E), ("q4.4", 0x80, 0x81, 0x80), ("q4.4", 0xFF, 0x00, 0xFE), ("uq4.4", 0x00, 0x01, 0x00),
        ("uq4.4", 0xFF, 0xFF, 0xFE),
    ],
)  # fmt: skip
def test_neighbours_by_hand(fmt, code, up, down):
    assert ref.next_up(code, fmt) == (up, NONE)
    assert ref.next_down(code, fmt) == (down, NONE)


def test_numpy_s_integers_are_codes_too():
    code = np.uint8(0xFE)
    assert ref.next_up(code, "e8m0fnu") == (0xFE, NONE) and ref.negate(code, "e4m3fn") == (0x7E, NONE)
    results = ref.next_down(code, "q4.4")[0], ref.absolute(np.uint8(3), UNSIGNED)[0], ref.maximum(code, code, "q4.4")[0]
    assert results == (0xFD, 3, 0xFE) and all(type(result) is int for result in results)


def test_the_neighbours_of_a_signaling_nan():
    for code in (0x7D, 0xFD):
        assert ref.next_up(code, "e5m2") == ref.next_down(code, "e5m2") == (0x7E, INVALID)


# -- signs -------------------------------------------------------------------------------------------------------------
@cases(
    "fmt, code, negated, absolute",
    [  # results, or (result, flags)
        ("e5m2", 0x3C, 0xBC, 0x3C), ("e5m2", 0xBC, 0x3C, 0x3C), ("e5m2", 0x00, 0x80, 0x00), ("e5m2", 0x80, 0x00, 0x00),
        ("e5m2", 0xFC, 0x7C, 0x7C), ("e5m2", 0x7D, 0xFD, 0x7D), ("e5m2", 0xFF, 0x7F, 0x7F), ("e5m2", 0x81, 0x01, 0x01),
        ("e4m3fn", 0x7F, 0xFF, 0x7F), ("e4m3fn", 0xFF, 0x7F, 0x7F), ("e4m3fnuz", 0x80, 0x80, 0x80),
        ("e4m3fnuz", 0x00, 0x00, 0x00), ("e4m3fnuz", 0xFF, 0x7F, 0x7F), ("e2m1fn", 0x0, 0x8, 0x0),
        (FLUSHING, 0x03, 0x83, 0x03), (NO_MINUS_ZERO, 0b000000, 0, 0), (NO_MINUS_ZERO, 0b100000, 0, 0),
        (NO_MINUS_ZERO, 0b111111, 0b011111, 0b011111), ("binary8p3se", 0x7F, 0xFF, 0x7F),
        ("e8m0fnu", 0x7F, (0xFF, INVALID), 0x7F), ("e8m0fnu", 0xFF, 0xFF, 0xFF), (UNSIGNED, 0x00, 0x00, 0x00),
        (UNSIGNED, 0x01, 0x7F, 0x01), (UNSIGNED, 0x7E, 0x7F, 0x7E), (UNSIGNED, 0x7F, 0x7F, 0x7F),
        (FloatFormat(3, 2, signed=False, specials="none"), 0x05, (0x00, INVALID), 0x05),
        ("q4.4", 0x10, 0xF0, 0x10), ("q4.4", 0x00, 0x00, 0x00), ("q4.4", 0x81, 0x7F, 0x7F),
        ("q4.4", 0x80, (0x7F, OVERFLOW), (0x7F, OVERFLOW)), ("uq4.4", 0x10, (0x00, OVERFLOW), 0x10),
        ("uq4.4", 0x00, 0x00, 0x00),
    ],
)  # fmt: skip
def test_negate_and_absolute_by_hand(fmt, code, negated, absolute):
    want_negated, want_absolute = (want if isinstance(want, tuple) else (want, NONE) for want in (negated, absolute))
    assert ref.negate(code, fmt) == want_negated
    assert ref.absolute(code, fmt) == want_absolute


def test_signs_wrap_where_asked():
    assert ref.negate(0x80, "q4.4", overflow="wrap") == ref.absolute(0x80, "q4.4", overflow="wrap") == (0x80, OVERFLOW)
    assert ref.negate(0x10, "uq4.4", overflow="wrap") == (0xF0, OVERFLOW)
    assert ref.copysign(0x80, 0x00, "q4.4", overflow="wrap") == (0x80, OVERFLOW)
    assert ref.negate(0x7C, "e5m2", overflow="saturate") == (0xFC, NONE)
    with pytest.raises(ValueError, match="wrap"):
        ref.negate(0, "e5m2", overflow="wrap")


@cases(
    "fmt, a, b, want",
    [
        ("e5m2", 0x3C, 0x80, (0xBC, NONE)), ("e5m2", 0xBC, 0x00, (0x3C, NONE)), ("e5m2", 0x7D, 0xFF, (0xFD, NONE)),
        ("e5m2", 0x00, 0xFC, (0x80, NONE)), ("e5m2", 0xFE, 0x7E, (0x7E, NONE)),
        ("e4m3fnuz", 0x40, 0x80, (0xC0, NONE)), ("e4m3fnuz", 0x80, 0x40, (0x80, NONE)),
        ("e4m3fnuz", 0x00, 0xC0, (0x00, NONE)), ("q4.4", 0x80, 0xFF, (0x80, NONE)),
        ("q4.4", 0x80, 0x00, (0x7F, OVERFLOW)),
        ("q4.4", 0x10, 0x80, (0xF0, NONE)), (("e5m2", "q4.4"), 0x3C, 0xFF, (0xBC, NONE)),
        (("q4.4", "e5m2"), 0x10, 0x80, (0xF0, NONE)), (("e8m0fnu", "e5m2"), 0x7F, 0x80, (0xFF, INVALID)),
        (("e8m0fnu", "e5m2"), 0x7F, 0x00, (0x7F, NONE)), (("e5m2", "e8m0fnu"), 0xBC, 0xFF, (0x3C, NONE)),
    ],
)  # fmt: skip
def test_copysign_by_hand(fmt, a, b, want):
    assert ref.copysign(a, b, fmt) == want


@cases("fmt", [fmt for fmt in FORMATS if fmt.signed], ids=str)
def test_signs_by_enumeration(fmt):
    for code, (infinite, value, positive) in numbers(fmt):
        opposite, magnitude = (ref.decode(f(code, fmt)[0], fmt) for f in (ref.negate, ref.absolute))
        if fmt.kind == "fixed" and code == 1 << (fmt.bits - 1):
            continue  # overflows; by hand above
        assert (opposite.kind == "inf") == (magnitude.kind == "inf") == bool(infinite)
        assert (opposite.fraction, magnitude.fraction) == (-value, abs(value))
        assert magnitude.sign == 0 and opposite.sign == (positive if value or infinite or fmt.negative_zero else 0)
