"""A fault planted in a design is named, and no other: for every cause, formats and operations of several kinds."""

import random
import re
from fractions import Fraction
from pathlib import Path

import pytest

from softnum import reference as ref
from softnum.vectors import VectorSpec
from softnum.vectors.checks.causes import CAUSES
from tests.support import faulty
from tests.support.cases import cases
from tests.support.faulty import INEXACT, UNDERFLOW, answers, diagnosed, garbage, report_of, rows_of
from tests.vectors import test_faults_of_ports

make = VectorSpec.make
HALF = Fraction(1, 2)

MUL16, MUL8, FMA16 = make("multiply", "binary16"), make("multiply", "e4m3fn", overflow="saturate"), make("fma", "e5m3")
ADD, SUB = make("add", "bfloat16"), make("subtract", "binary16")
DIV, CONVERT = make("divide", "e5m2"), make("convert", "binary32", out_fmt="e5m2")
FIXED, WRAP = make("multiply", "q4.4"), make("multiply", "q4.8", overflow="wrap")
SR = make("multiply", "binary16", rounding="sr", stochastic_bits=6)
UP = make("multiply", "binary16", rounding="up")

ties_away = faulty.rounding(lambda odd, t, sign: t >= HALF)
ties_down = faulty.rounding(lambda odd, t, sign: t > HALF)
never = faulty.rounding(lambda odd, t, sign: False)
upward = faulty.rounding(lambda odd, t, sign: not sign)


def is_nan(code, fmt):
    return ref.decode(code, fmt).kind == "nan"


def is_zero(code, fmt):
    return ref.decode(code, fmt)[:3:2] == ("finite", 0)


PLANTED = [
    ("wrong-tie", "nearest_away", MUL16, ties_away),
    ("wrong-tie", "nearest_zero", FIXED, ties_down),
    ("wrong-tie", "nearest_away", CONVERT, ties_away),
    ("truncation", "toward zero", MUL16, never),
    ("truncation", "toward zero", ADD, never),
    ("truncation", "minus infinity", FIXED, faulty.rounding(lambda odd, t, sign: sign)),
    ("wrong-mode", "up", DIV, upward),
    ("wrong-mode", "nearest_even", UP, faulty.rounding(faulty.nearest_even)),
    ("missing-sticky", "2 bits", MUL16, faulty.sticky_lost(2)),
    ("missing-sticky", "3 bits", MUL8, faulty.sticky_lost(3)),
    ("missing-sticky", "1 bit", DIV, faulty.sticky_lost(1)),
    ("missing-sticky", "2 bits", CONVERT, faulty.sticky_lost(2)),
    ("missing-sticky", "2 bits", make("fma", "binary16"), faulty.sticky_lost(2)),
    ("missing-sticky", "3 bits below the larger", SUB, faulty.aligned(3)),
    ("missing-sticky", "3 bits below the larger", ADD, faulty.aligned(3)),
    ("missing-sticky", "2 bits below the last place kept, and what lay below", MUL16, faulty.not_shifted_into(2)),
    ("subnormal-shift", "left out, the leading one counts", MUL16, faulty.shifted(None)),
    ("subnormal-shift", "left out, the leading one is lost", MUL8, faulty.shifted(None, leading=False)),
    ("subnormal-shift", "a place too short, the leading one is lost", DIV, faulty.shifted(-1, leading=False)),
    ("subnormal-shift", "a place too short, the leading one counts", MUL16, faulty.shifted(-1)),
    ("subnormal-shift", "a place too long", make("multiply", "binary32"), faulty.shifted(1)),
    ("double-rounding", "to 13 bits", MUL16, faulty.twice(2)),
    ("double-rounding", "to 11 bits", MUL16, faulty.twice(0)),
    ("double-rounding", "to 14 bits", make("fma", "binary16"), faulty.twice(3)),
    ("double-rounding", "to 57 bits", make("multiply", "binary64"), faulty.twice(4)),
    ("missing-sticky", "2 bits", make("divide", "binary64"), faulty.sticky_lost(2)),
    ("flush-to-zero", "operands", MUL16, faulty.flushed_operands),
    ("flush-to-zero", "operands", make("fma", "e5m2"), faulty.flushed_operands),
    ("flush-to-zero", "results", MUL16, faulty.flushed_results(True)),
    ("missing-sticky", "6 bits", make("fma", "e5m5"), faulty.sticky_lost(6)),
    ("flush-to-zero", "to +0", MUL16, faulty.flushed_results(False)),
    ("overflow-to-infinity", "", MUL8, faulty.by(overflow="infinity")),
    ("overflow-to-infinity", "", make("multiply", "e5m2", overflow="saturate_finite"), faulty.by(overflow="infinity")),
    ("overflow-to-max", "", MUL16, faulty.by(overflow="saturate_finite")),
    ("overflow-to-max", "infinite operands", MUL16, faulty.by(overflow="saturate")),
    ("p3109-version", "version 3.2.1", make("subtract", "binary8p3ue"), faulty.by(overflow="p3109_v3_2_1")),
    ("p3109-version", "version 4.0", make("multiply", "binary8p3ue", rounding="to_odd", overflow="p3109_v3_2_1"),
     faulty.by(overflow="infinity")),
    ("wrap-instead-of-saturate", "", FIXED, faulty.by(overflow="wrap")),
    ("wrap-instead-of-saturate", "", make("subtract", "uq4.4"), faulty.by(overflow="wrap")),
    ("saturate-instead-of-wrap", "", WRAP, faulty.by(overflow="saturate")),
    ("nan-payload", "always FE00", MUL16, faulty.when(is_nan, lambda code, fmt: 0xFE00)),
    ("nan-payload", "always 7C00, which is no NaN", MUL16, faulty.when(is_nan, lambda code, fmt: 0x7C00)),
    ("sign-of-zero", "always positive", MUL16, faulty.when(is_zero, lambda code, fmt: 0)),
    ("sign-of-zero", "inverted", DIV, faulty.when(is_zero, lambda code, fmt: code ^ 0x80)),
    ("swapped-operands", "b, a", SUB, faulty.with_operands(lambda codes: codes[::-1])),
    ("swapped-operands", "b, a", DIV, faulty.with_operands(lambda codes: codes[::-1])),
    ("swapped-operands", "a, c, b", FMA16, faulty.with_operands(lambda codes: (codes[0], codes[2], codes[1]))),
    ("rounds-each-product", "e5m3", FMA16, lambda spec, codes, drawn, want, flags: (
        ref.add(ref.multiply(*codes[:2], "e5m3")[0], codes[2], "e5m3")[0], flags)),
    ("random-ignored", "always zeros", SR, faulty.with_words(lambda word, r: 0)),
    ("random-ignored", "nearest_even", SR, faulty.by(rounding="nearest_even")),
    ("random-complemented", "", SR, faulty.with_words(lambda word, r: word ^ (2**r - 1))),
    ("random-reversed", "", SR, faulty.with_words(lambda word, r: int(f"{word:0{r}b}"[::-1], 2))),
]  # fmt: skip


@cases("cause, detail, spec, design", PLANTED, ids=[f"{p[0]}-{i}" for i, p in enumerate(PLANTED)])
def test_a_planted_fault_is_named(cause, detail, spec, design):
    report = diagnosed(spec, design, ignore_flags=True)
    assert report.exit_status == 1 and report.failures >= 2
    assert [c.cause for c in report.causes] == [cause], str(report)
    (found,) = report.causes
    assert detail in "; ".join((found.detail, *found.also)) and found.explains == found.of
    assert found.of == report.failures or not report.complete
    assert found.example.line and found.sentence in str(report)


def before(spec, codes, drawn, want, flags):
    other = make(spec.op, spec.formats, out_fmt=spec.out_fmt, overflow=spec.overflow, tininess="before")
    return want, int(faulty.right(other, codes)[1])


FLAGS = [
    ("tininess", "before rounding", make("multiply", "e5m2"), before),
    ("tininess", "before rounding", make("convert", "binary32", out_fmt="e4m3fn"), before),
    ("flags-only", "underflow is never raised", MUL16, lambda s, c, d, want, flags: (want, flags & ~UNDERFLOW)),
    ("flags-only", "inexact is always raised", DIV, lambda s, c, d, want, flags: (want, flags | INEXACT)),
]


@pytest.mark.parametrize("cause, detail, spec, design", FLAGS, ids=[f"{p[0]}-{i}" for i, p in enumerate(FLAGS)])
def test_wrong_flags_are_named(cause, detail, spec, design):
    report = diagnosed(spec, design)
    assert [c.cause for c in report.causes] == [cause], str(report)
    assert detail in report.causes[0].detail
    assert report.failures == report.flag_failures and not report.result_failures


@pytest.mark.parametrize("shift", [1, 2, 16, -1, -3])
@pytest.mark.parametrize("spec", [MUL16, FIXED], ids=str)
def test_latency(spec, shift):
    rows = list(rows_of(spec))
    blank = [(*[0] * len(rows[0]),)] * abs(shift)
    late = blank + rows[:-shift] if shift > 0 else rows[-shift:] + blank
    report = report_of(spec, [[*row[:-2], *other[-2:]] for row, other in zip(rows, late, strict=True)])
    assert [c.cause for c in report.causes] == ["shifted-rows"], str(report)
    assert report.causes[0].detail.startswith(f"{shift}: ")


def test_latency_across_the_readers_blocks():
    spec = make("multiply", "e5m2")
    rows = list(rows_of(spec, count=None)) * 2
    report = report_of(spec, [[*row[:-2], *other[-2:]] for row, other in zip(rows, rows[-1:] + rows, strict=False)])
    assert [c.cause for c in report.causes] == ["shifted-rows"]
    assert report.causes[0].detail == "1: 1 row late"


def test_no_rule_but_always_near():
    rng = random.Random(2)
    rows = answers(MUL16, lambda s, c, d, want, flags: (
        want + rng.choice((1, -1)) if 0x0400 < want < 0x7BFF and rng.random() < 0.3 else want, flags))  # fmt: skip
    report = report_of(MUL16, rows, ignore_flags=True)
    assert [c.cause for c in report.causes] == ["off-by-one-ulp"], str(report)
    assert report_of(MUL16, rows, ulp=1).ok and not report_of(MUL16, rows, ulp=0).ok


@pytest.mark.parametrize("spec", [MUL16, MUL8, FIXED, SR, make("fma", "e2m1fn")], ids=str)
def test_garbage_is_unexplained(spec):
    report = report_of(spec, garbage(spec))
    assert [c.cause for c in report.causes] == ["unexplained"], str(report)


@pytest.mark.parametrize("spec", [MUL16, FIXED, SR], ids=str)
def test_what_is_right_has_no_cause(spec):
    report = diagnosed(spec, lambda s, c, d, want, flags: (want, flags))
    assert report.ok and report.exit_status == 0 and not report.causes and not report.classes


def test_flags_tell_apart_what_results_do_not():
    """From binary16 to e5m2, of equal exponents: flushed operands are exact zeros, flushed results are not."""
    spec = make("convert", "binary16", out_fmt="e5m2")

    def results(spec, codes, drawn, want, flags):
        tiny = 0 < codes[0] & 0x7FFF < 0x0400
        return (want & 0x80, 3) if tiny else (want, flags)

    def operands(spec, codes, drawn, want, flags):
        return (want & 0x80, 0) if codes[0] & 0x7FFF < 0x0400 else (want, flags)

    for design, detail in ((results, "results that are tiny"), (operands, "operands")):
        report = diagnosed(spec, design, count=4000)
        assert [c.cause for c in report.causes] == ["flush-to-zero"], str(report)
        assert report.causes[0].detail.startswith(detail)


# -- two at once -------------------------------------------------------------------------------------------------------
def both(first, second):
    """A design with a fault in its datapath, `first`, and one behind it that changes codes, `second`."""

    def design(spec, codes, drawn, want, flags):
        code, _ = first(spec, codes, drawn, want, flags)
        return second(spec, codes, drawn, code, flags)

    return design


TWO = [
    (("truncation", "swapped-operands"), SUB,
     lambda s, codes, d, want, f: (ref.subtract(*codes[::-1], "binary16", rounding="toward_zero")[0], f)),
    (("wrong-tie", "flush-to-zero"), MUL16, both(ties_away, faulty.flushed_results(True))),
    (("missing-sticky", "nan-payload"), MUL16, both(faulty.sticky_lost(2), faulty.when(is_nan, lambda c, f: 0xFE00))),
    (("flush-to-zero",), MUL16, both(faulty.flushed_operands, faulty.flushed_results(True))),
    (("wrap-instead-of-saturate", "truncation"), FIXED,
     lambda s, codes, d, want, f: (ref.multiply(*codes, "q4.4", rounding="rdn", overflow="wrap")[0], f)),
    (("overflow-to-max", "double-rounding"), MUL16,
     both(faulty.twice(2), lambda s, c, d, code, f: (code - 1 if code & 0x7FFF == 0x7C00 and f & 4 else code, f))),
]  # fmt: skip


@pytest.mark.parametrize("causes, spec, design", TWO, ids=["+".join(t[0]) for t in TWO])
def test_two_faults_are_both_named(causes, spec, design):
    report = diagnosed(spec, design, count=4000, ignore_flags=True)
    assert {c.cause for c in report.causes} == set(causes), str(report)
    assert report.exit_status == 1


def test_a_fault_in_results_and_one_in_flags():
    spec = make("multiply", "e4m2")
    dropped = faulty.sticky_lost(2)

    def design(spec, codes, drawn, want, flags):
        return dropped(spec, codes, drawn, want, flags)[0], before(spec, codes, drawn, want, flags)[1]

    report = diagnosed(spec, design, count=1 << 14)
    assert [c.cause for c in report.causes] == ["missing-sticky", "tininess"], str(report)


def test_every_cause_of_operations_has_a_planted_fault():
    units = {"c-ignored", "accumulator-not-cleared", "missing-subnormals", "exact-product-instead", "chunk-length",
             "alignment-bits", "accumulator-width", "summation-order", "swapped-lanes",
             "scale-ignored", "scale-bias", "scale-nan-ignored", "shared-scale", "rounds-each-block"}  # fmt: skip
    planted = {p[0] for p in PLANTED + FLAGS + test_faults_of_ports.PLANTED}
    planted |= {"shifted-rows", "off-by-one-ulp", "unexplained", "unknown-bits"}
    assert planted == set(CAUSES) - units


def test_the_page_has_every_cause():
    page = (Path(__file__).resolve().parents[2] / "docs/reference/causes.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*?) \|", page, re.MULTILINE))
    assert {name: rows.get(name) for name in CAUSES} == CAUSES
