"""Faults at a design's ports and in what is special are named, and only where other vectors bear it out."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from softnum import reference as ref
from softnum.vectors import VectorSpec
from tests.support import faulty
from tests.support.cases import cases
from tests.support.faulty import answers, diagnosed, report_of

make = VectorSpec.make
MUL16, SUB16, ADD16 = make("multiply", "binary16"), make("subtract", "binary16"), make("add", "binary16")
MUL8, FMA8, DIV32 = make("multiply", "e5m2"), make("fma", "e5m2"), make("divide", "binary32", rounding="up")
TOP = 0x8000


def with_code(change):
    """A design that changes the right result: change(code, operands)."""
    return lambda spec, codes, drawn, want, flags: (change(want, codes), flags)


def with_operands(change):
    """A design that computes the right result of other operands."""
    return lambda spec, codes, drawn, want, flags: (faulty.right(spec, change(codes))[0], flags)


def aligned(bits):
    """An adder under truncation whose smaller term is cut `bits` bits below the larger one's last place."""

    def design(spec, codes, drawn, want, flags):
        x = faulty.exact_of(spec, codes)
        if x is None:
            return want, flags
        fmt, terms = spec.out_fmt, [ref.decode(c, spec.out_fmt).fraction for c in codes]
        top = max(max(faulty.exponent_of(abs(v)), fmt.emin) for v in terms if v)
        unit = Fraction(2) ** (top - fmt.mantissa_bits - bits)
        total = sum(floor(abs(v) / unit) * unit * (-1 if v < 0 else 1) for v in terms)
        return (faulty.deliver(total, fmt, lambda *_: False, overflow="saturate")[0] if total else 0), flags

    return design


def own_fraction(spec, codes, drawn, want, flags):
    """What is too large has the largest exponent and the fraction of its own."""
    x = faulty.exact_of(spec, codes)
    if x is None or not flags & faulty.OVERFLOW:
        return want, flags
    m = spec.out_fmt.mantissa_bits
    fraction = floor(abs(x) / Fraction(2) ** (faulty.exponent_of(abs(x)) - m)) % 2**m
    return want & TOP | spec.out_fmt.max_code >> m << m | fraction, flags


def first_nan(code, codes):
    nans = [c for c in codes if c & 0x7FFF > 0x7C00]
    return nans[0] if nans else code


def minus_where_exact(spec, codes, drawn, want, flags):
    """x - x is -0; the sum of two zeros is right."""
    return (want | TOP if not want & 0x7FFF and codes[0] & 0x7FFF and not flags else want), flags


PLANTED = [
    ("stuck-output", "bit 3 is always 0", MUL16, with_code(lambda code, _: code & ~8)),
    ("stuck-output", "always 7E00", MUL16, with_code(lambda code, _: 0x7E00)),
    ("ignored-operand", "b, read as one", MUL16, with_operands(lambda codes: (codes[0], 0x3C00))),
    ("ignored-operand", "b, a is read instead", make("divide", "e5m2"), with_operands(lambda codes: (codes[0],) * 2)),
    ("ignored-operand", "b, read as 41", MUL8, with_operands(lambda codes: (codes[0], 0x41))),
    ("wrong-sign", "b is negated", SUB16, with_operands(lambda codes: (codes[0], codes[1] ^ TOP))),
    ("wrong-sign", "the sign of a is ignored", MUL16, with_operands(lambda codes: (codes[0] & 0x7FFF, codes[1]))),
    ("wrong-sign", "c is negated", FMA8, with_operands(lambda codes: (*codes[:2], codes[2] ^ 0x80))),
    ("missing-sticky", "cut off 1 bit below", make("add", "binary16", rounding="rtz", overflow="saturate_finite"),
     aligned(1)),
    ("missing-sticky", "cut off 2 bits below", make("add", "bfloat16", rounding="rtz", overflow="saturate_finite"),
     aligned(2)),
    ("unsaturated-mantissa", "the largest exponent",
     make("multiply", "binary16", rounding="toward_zero", overflow="saturate_finite"), own_fraction),
    ("nan-payload", "the first operand's, as it stands", MUL16, with_code(first_nan)),
    ("nan-payload", "always 7C00, which is no NaN, where no operand is NaN", ADD16, with_code(
        lambda code, codes: 0x7C00 if code == 0x7E00 and all(c & 0x7FFF == 0x7C00 for c in codes) else code)),
    ("sign-of-zero", "of x - x, always negative", ADD16, minus_where_exact),
]  # fmt: skip


@cases("cause, detail, spec, design", PLANTED, ids=[f"{p[0]}-{i}" for i, p in enumerate(PLANTED)])
def test_a_fault_is_named(cause, detail, spec, design):
    report = diagnosed(spec, design, 3000, ignore_flags=True)
    assert report.failures and [c.cause for c in report.causes] == [cause], str(report)
    (found,) = report.causes
    assert detail in "; ".join((found.detail, *found.also)), str(report)
    assert found.confident and found.explains == found.of and found.held[0] == found.held[1] > 0


def test_modes_that_changed_places_beside_a_lost_remainder():
    """As in a divider that is open: up for down, and of the quotient 3 bits below the last place are seen."""

    def design(spec, codes, drawn, want, flags):
        x = faulty.exact_of(spec, codes)
        if x is None:
            return want, flags
        cut = lambda odd, t, sign: bool(floor(t * 8)) and sign  # noqa: E731
        return faulty.deliver(x, spec.out_fmt, cut)[0], flags

    report = diagnosed(DIV32, design, 2000, ignore_flags=True)
    causes = {c.cause: c for c in report.causes if c.confident}
    assert {"wrong-mode", "missing-sticky"} == set(causes), str(report)
    assert causes["wrong-mode"].detail.startswith("down") and "3 bits" in causes["missing-sticky"].detail
    hidden = causes["missing-sticky"].hides
    assert not hidden or f"{hidden} vectors are right for it that the others would make wrong" in str(report)


def without(flag, where):
    return lambda codes, want, flags: flags & ~flag if where(codes, want, flags) else flags


@pytest.mark.parametrize(
    "detail, change",
    [
        ("invalid is not raised by signaling NaNs", without(0x10, lambda codes, want, flags: nan(codes))),
        ("overflow is raised with infinite results alone", without(4, lambda codes, want, flags: want & 0x7F != 0x7C)),
        ("inexact is not raised with overflow", without(1, lambda codes, want, flags: flags & 4)),
        (
            "underflow is raised with exact subnormal results too",
            lambda codes, want, flags: flags | 2 if 0 < want & 0x7F < 4 else flags,
        ),
    ],
)
def test_flags_by_a_rule(detail, change):
    spec = make("multiply", "e5m2", rounding="up")
    report = diagnosed(spec, lambda s, codes, d, want, flags: (want, change(codes, want, flags)), 6000)
    (found,) = report.causes
    assert (found.cause, found.detail, found.confident) == ("flags-only", detail, True), str(report)


def nan(codes):
    return any(c & 0x7F > 0x7C for c in codes)


def test_what_explains_nothing_is_not_named():
    """NaNs of one code but where the right one is made by chance: no second cause of them."""

    def design(spec, codes, drawn, want, flags):
        plus = codes[1] == 0xFC00
        return (0xFE00 if want == 0x7E00 and not plus else want), flags

    report = diagnosed(ADD16, design, 3000)
    assert all(found.explains or found.hides for found in report.causes), str(report)


def test_one_failure_is_no_evidence():
    """What a single vector says no other bears out."""
    rows = answers(MUL16, lambda s, codes, d, want, flags: (want, flags), 2000)
    at = next(i for i, row in enumerate(rows) if row[2] == 0x8000)
    rows[at][2] = 0
    report = report_of(MUL16, rows)
    assert [c.cause for c in report.causes if c.confident] == [] and report.failures == 1
    assert "unexplained" in str(report) and report.causes[0].to_dict(MUL16)["confident"] is False


def test_a_fault_without_a_rule_is_described_and_not_explained():
    rng = np.random.default_rng(1)
    rows = answers(MUL16, lambda s, c, d, want, flags: (
        want + 1 if 0x0400 < want < 0x7BFF and rng.random() < 0.3 else want, flags))  # fmt: skip
    report = report_of(MUL16, rows, ignore_flags=True)
    assert not any(c.confident for c in report.causes)
    assert "unexplained, all of one kind: off-by-one-ulp" in str(report)


def test_overflow_is_a_class():
    report = diagnosed(
        MUL16, with_code(lambda code, _: code - 1 if code & 0x7FFF == 0x7C00 else code), ignore_flags=True
    )
    assert "overflow" in {c.result for c in report.classes}
