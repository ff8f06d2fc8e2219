"""A fault planted in a unit is named, and no other. The designs are plain loops over the reference's operations."""

import io
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from softnum import reference as ref
from softnum.vectors import TextLayout, UnitSpec, check
from softnum.vectors.checks.causes import CAUSES
from softnum.vectors.plans.spec import Block
from tests.support.cases import cases
from tests.support.faulty import exponent_of

BF16 = "MadUnit('e6m9', operand='e5m2', chunk=8)"
PLAIN = "MadUnit('e5m3', operand='e4m3fn')"
ROUNDED = "MadUnit('e6m9', operand='e5m2', product='e5m4')"
FIXED = "MadUnit('q8.8', operand='q4.4', overflow='wrap')"
SATURATING = "MadUnit('q6.8', operand='q4.4', overflow='saturate')"
CORE = "FusedDotUnit(4, 12, 'binary32', operand='e5m2')"
GROUPS = "GroupedDotUnit(4, 'e6m9', operand='e5m2')"
EXACT = "ExactDotUnit('e5m3', operand='e4m3fn')"
CHAIN = "FmaChainUnit('e4m3', operand='e4m3', flush_results='after')"
STOCHASTIC = "MadUnit('e6m9', operand='e5m2', rounding='stochastic', stochastic_bits=8)"


def codes_of(fmt, shape, rng, spread=6):
    """Codes of finite numbers about 1, some of them subnormal."""
    if fmt.kind == "fixed":
        return rng.integers(0, 2**fmt.bits, shape).astype(fmt.storage_dtype)
    middle = min(fmt.bias, (1 << fmt.exponent_bits) - 2)
    exponents = np.clip(rng.integers(middle - spread, middle + 3, shape), 0, (1 << fmt.exponent_bits) - 2)
    exponents = np.where(rng.random(shape) < 0.05, 0, exponents)
    fractions = rng.integers(0, 1 << fmt.mantissa_bits, shape)
    signs = rng.integers(0, 2, shape)
    return (signs << (fmt.bits - 1) | exponents << fmt.mantissa_bits | fractions).astype(fmt.storage_dtype)


def vectors_of(spec, count=400, seed=5, spread=6):
    """A right block."""
    rng = np.random.default_rng(seed)
    operands = []
    for column in spec.operand_columns:
        shape = (count,) if column.count == 1 else (count, column.count)
        if column.name == "first":
            operands.append((np.arange(count) % spec.shape[2] == 0).astype(np.uint8))
        else:
            operands.append(codes_of(column.format, shape, rng, spread))
    words = None
    if spec.stochastic_bits is not None:
        words = rng.integers(0, 2**spec.stochastic_bits, (count, spec.columns[-2].count), dtype=np.uint32)
    return spec.evaluate(operands, words)


def report_of(spec, block, results, **options):
    results = np.array(results, block.result.dtype).reshape(block.result.shape)
    text = TextLayout(spec).format(Block(block.operands, block.random_bits, results, None))
    size = {"shape": spec.shape} if spec.op == "gemm" else {"length": spec.shape[2]}
    return check(io.BytesIO(text), spec.op, unit=spec.unit, with_c=spec.with_c, **size, **options)


# -- designs of dot products -------------------------------------------------------------------------------------------
def chain(unit, a, b, start, product=None, **mode):
    """Multiply-adds in turn, each rounded."""
    acc, fmt = start, unit.accumulator
    for x, y in zip(a, b, strict=True):
        if product is not None:
            p, _ = ref.multiply(x, y, unit.operand, out_fmt=product)
            acc, _ = ref.add(p, acc, (product, fmt), out_fmt=fmt, **mode)
        else:
            acc, _ = ref.fma(x, y, acc, (*unit.operand, fmt), out_fmt=fmt, **mode)
    return acc


def in_chunks(n):
    def design(unit, a, b, c):
        total = c
        for i in range(0, len(a), n):
            total, _ = ref.add(total, chain(unit, a[i : i + n], b[i : i + n], 0), unit.accumulator)
        return total

    return design


def turn(product=None, start=None, **mode):
    return lambda unit, a, b, c: chain(unit, a, b, c if start is None else start, product, **mode)


def aligned(bits, terms=4):
    """A tensor core that keeps `bits` bits below the largest exponent."""

    def scale(x, fmt):
        value = ref.to_fraction(x, fmt)
        return max(exponent_of(abs(value)), fmt.emin) if value else None

    def design(unit, a, b, c):
        acc = c
        for i in range(0, len(a), terms):
            pairs = list(zip(a[i : i + terms], b[i : i + terms], strict=True))
            start = scale(acc, unit.accumulator)
            parts = [(ref.to_fraction(acc, unit.accumulator), start)] if start is not None else []
            for x, y in pairs:
                ex, ey = (scale(v, f) for v, f in zip((x, y), unit.operand, strict=True))
                if ex is not None and ey is not None:
                    values = (ref.to_fraction(v, f) for v, f in zip((x, y), unit.operand, strict=True))
                    parts.append((next(values) * next(values), ex + ey))
            if parts:
                unit_of_last = Fraction(2) ** (max(e for _, e in parts) - bits)
                total = sum(floor(abs(v) / unit_of_last) * unit_of_last * (-1 if v < 0 else 1) for v, _ in parts)
                acc, _ = ref.encode(total, unit.accumulator, rounding="toward_zero")
        return acc

    return design


def groups(**changes):
    """A unit that sums groups, with other parts than it should have."""

    def design(unit, a, b, c):
        stated = {"terms": unit.terms, "accumulator": unit.accumulator, "operand": unit.operand}
        return ref.grouped_dot(a, b, **stated | changes, c=c)[0]

    return design


def without_small_operands(unit, a, b, c):
    small = [1 << f.mantissa_bits for f in unit.operand]
    rest = [[0 if (x & 2 ** (f.bits - 1) - 1) < s else x for x in v] for v, f, s in zip((a, b), unit.operand, small)]  # noqa: B905
    return chain(unit, *rest, c)


DOTS = [
    ("chunk-length", "4 instead of 8", BF16, 16, False, in_chunks(4)),
    ("chunk-length", "no chunks", BF16, 16, False, turn()),
    ("chunk-length", "5, where", PLAIN, 16, False, in_chunks(5)),
    ("c-ignored", "", PLAIN, 8, True, turn(start=0)),
    ("c-ignored", "", CORE, 8, True, lambda unit, a, b, c: aligned(12)(unit, a, b, 0)),
    ("alignment-bits", "11 instead of 12", CORE, 8, False, aligned(11)),
    ("alignment-bits", "14 instead of 12", CORE, 8, True, aligned(14)),
    ("chunk-length", "8 products a step", CORE, 16, False, aligned(12, 8)),
    ("rounds-each-product", "to e5m3", PLAIN, 8, False, turn(product="e5m3")),
    ("rounds-each-product", "every addition", EXACT, 8, False, turn()),
    ("exact-product-instead", "", ROUNDED, 8, False, turn()),
    ("chunk-length", "8 products a group instead of 4", GROUPS, 16, False, groups(terms=8)),
    ("alignment-bits", "1 guard bits instead of 2", GROUPS, 8, True, groups(guard_bits=1)),
    ("truncation", "toward_zero of partial sums", GROUPS, 8, False, groups(partial_rounding="toward_zero")),
    ("wrong-mode", "nearest_even", GROUPS, 8, True, groups(rounding="nearest_even")),
    ("accumulator-width", "partial sums are not rounded", GROUPS, 8, True, groups(partial_rounding=None)),
    ("truncation", "toward_zero", PLAIN, 8, False, turn(rounding="toward_zero")),
    ("wrong-tie", "nearest_away", PLAIN, 8, False, turn(rounding="nearest_away")),
    ("wrong-mode", "up", PLAIN, 8, False, turn(rounding="up")),
    ("saturate-instead-of-wrap", "", FIXED, 8, False, turn(overflow="saturate")),
    ("wrap-instead-of-saturate", "", SATURATING, 8, False, turn(overflow="wrap")),
    ("accumulator-width", "1 bit fewer", PLAIN, 8, False, lambda unit, a, b, c: ref.convert(
        chain(unit.__class__("e5m2", operand=unit.operand), a, b, 0), "e5m2", "e5m3")[0]),
    ("flush-to-zero", "operands", PLAIN, 8, False, without_small_operands),
    ("flush-to-zero", "results are not flushed", CHAIN, 8, False, turn()),
    ("swapped-lanes", "of b, from the last element", PLAIN, 8, False,
     lambda unit, a, b, c: chain(unit, a, b[::-1], c)),
    ("ignored-operand", "b, read as one", PLAIN, 8, False,
     lambda unit, a, b, c: chain(unit, a, [0x38] * len(b), c)),
    ("summation-order", "last product to the first", PLAIN, 8, False,
     lambda unit, a, b, c: chain(unit, a[::-1], b[::-1], c)),
]  # fmt: skip


@cases("cause, detail, unit, k, with_c, design", DOTS, ids=[f"{d[0]}-{i}" for i, d in enumerate(DOTS)])
def test_a_fault_in_a_dot_product(cause, detail, unit, k, with_c, design):
    spec = UnitSpec.make("dot", unit, length=k, with_c=with_c)
    block = vectors_of(spec, spread=14 if unit == CORE else 6)
    a, b, *c = (codes.tolist() for codes in block.operands)
    starts = c[0] if c else [0] * len(a)
    results = [design(spec.unit, x, y, z) for x, y, z in zip(a, b, starts, strict=True)]
    report = report_of(spec, block, results)
    assert [found.cause for found in report.causes] == [cause], str(report)
    assert detail in "; ".join((report.causes[0].detail, *report.causes[0].also)), str(report)
    assert report.causes[0].explains == report.failures > 0
    table, data = report.causes[0].trace
    assert table[0] == "trace:" and len(data) >= k and "exact" in data[0]


def test_the_right_loops_are_right():
    """The designs above, without their faults."""
    for unit, design in (
        (PLAIN, turn()), (BF16, in_chunks(8)), (CORE, aligned(12)), (ROUNDED, turn(product="e5m4")),
        (GROUPS, groups()),
    ):  # fmt: skip
        spec = UnitSpec.make("dot", unit, length=16)
        block = vectors_of(spec)
        results = [design(spec.unit, x, y, 0) for x, y in zip(*(v.tolist() for v in block.operands), strict=True)]
        assert report_of(spec, block, results).ok


# -- sequences ---------------------------------------------------------------------------------------------------------
def stepped(spec, block, step, clears=True):
    """A design with an accumulator: step(acc, a, b, words) each clock."""
    first, a, b, *c = (codes.tolist() for codes in block.operands)
    words = [None] * len(first) if block.random_bits is None else block.random_bits.tolist()
    acc, out = 0, []
    for i, new in enumerate(first):
        if new and (clears or i == 0):
            acc = c[0][i] if c else 0
        acc = step(acc, a[i], b[i], words[i])
        out.append(acc)
    return out


def mad(unit, **mode):
    formats = (*unit.operand, unit.accumulator)
    return lambda acc, a, b, words: ref.fma(a, b, acc, formats, out_fmt=unit.accumulator, **mode)[0]


def test_an_accumulator_that_is_not_cleared():
    spec = UnitSpec.make("mac", PLAIN, length=6)
    block = vectors_of(spec)
    report = report_of(spec, block, stepped(spec, block, mad(spec.unit), clears=False))
    assert [c.cause for c in report.causes] == ["accumulator-not-cleared"], str(report)
    table, data = report.causes[0].trace
    assert "the sequence from line 7 on" in table[0] and any(line.startswith(">") for line in table)
    assert sum(step["diverges"] for step in data) == 1


@pytest.mark.parametrize("with_c", [False, True])
def test_a_step_that_truncates(with_c):
    spec = UnitSpec.make("mac", PLAIN, length=6, with_c=with_c)
    block = vectors_of(spec)
    report = report_of(spec, block, stepped(spec, block, mad(spec.unit, rounding="toward_zero")))
    assert [c.cause for c in report.causes] == ["truncation"], str(report)
    # an error that is passed on is none of the step it arrives at
    assert report.causes[0].explains == report.kept[0] < report.failures
    assert report.first[0].before is not None and "accumulator=" in str(report)


@pytest.mark.parametrize("when", ["before", "after"])
def test_steps_that_flush(when):
    spec = UnitSpec.make("mac", "MadUnit('e4m3', operand='e4m3')", length=5)
    block = vectors_of(spec, 2000)
    report = report_of(spec, block, stepped(spec, block, mad(spec.unit, flush_results=when)))
    assert [c.cause for c in report.causes] == ["flush-to-zero"], str(report)


def test_missing_subnormals():
    spec = UnitSpec.make("mac", "MadUnit('e4m3', operand='e4m3')", length=5)
    block = vectors_of(spec, 2000)

    def step(acc, a, b, words):
        exact = ref.to_fraction(a, "e4m3") * ref.to_fraction(b, "e4m3") + ref.to_fraction(acc, "e4m3")
        least = Fraction(2) ** -6
        if abs(exact) < least:  # to zero or to the smallest normal, half way to zero
            sign = 0x80 if exact < 0 else 0
            return (sign | 0x08 if abs(exact) > least / 2 else sign) if exact else 0
        return mad(spec.unit)(acc, a, b, words)

    report = report_of(spec, block, stepped(spec, block, step))
    assert [c.cause for c in report.causes] == ["missing-subnormals"], str(report)


@pytest.mark.parametrize(
    "cause, change",
    [
        ("random-ignored", lambda word: 0),
        ("random-complemented", lambda word: word ^ 0xFF),
        ("random-reversed", lambda word: int(f"{word:08b}"[::-1], 2)),
    ],
)
def test_random_words_of_steps(cause, change):
    spec = UnitSpec.make("mac", STOCHASTIC, length=8)
    block = vectors_of(spec)
    formats = (*spec.unit.operand, spec.unit.accumulator)

    def step(acc, a, b, words):
        options = dict(rounding="stochastic", stochastic_bits=8, random_bits=change(words[1]))
        return ref.fma(a, b, acc, formats, out_fmt=spec.unit.accumulator, **options)[0]

    report = report_of(spec, block, stepped(spec, block, step))
    assert [c.cause for c in report.causes] == [cause], str(report)


def test_chunks_of_a_sequence():
    """The accumulators within chunks are not seen; sequences are judged as sums."""
    spec = UnitSpec.make("mac", BF16, length=16)
    block = vectors_of(spec, 640)
    first, a, b = (codes.tolist() for codes in block.operands)
    results, start = [], 0
    for i, new in enumerate(first):
        start = i if new else start
        results.append(in_chunks(4)(spec.unit, a[start : i + 1], b[start : i + 1], 0))
    report = report_of(spec, block, results)
    assert [c.cause for c in report.causes] == ["chunk-length"], str(report)
    assert "4 instead of 8" in report.causes[0].detail


def test_chunks_that_are_not_cleared():
    spec = UnitSpec.make("mac", BF16, length=12)
    block = vectors_of(spec, 240)
    _, a, b = (codes.tolist() for codes in block.operands)
    results = [in_chunks(8)(spec.unit, a[: i + 1], b[: i + 1], 0) for i in range(len(a))]
    report = report_of(spec, block, results)
    assert [c.cause for c in report.causes] == ["accumulator-not-cleared"], str(report)


def test_a_nan_of_another_code():
    spec = UnitSpec.make("dot", "MadUnit('e5m3', operand='e5m2')", length=4)
    block = vectors_of(spec)
    block.operands[0][::7, 2] = 0x7E
    want = spec.evaluate(block.operands)
    report = report_of(spec, want, np.where(want.result == 0x0FC, 0x0FF, want.result))
    assert [(c.cause, c.detail) for c in report.causes] == [("nan-payload", "always 0FF")], str(report)


def test_sequences_straddle_the_readers_blocks(monkeypatch):
    from softnum.vectors.files import text

    spec = UnitSpec.make("mac", PLAIN, length=7)
    block = vectors_of(spec, 1000)
    assert report_of(spec, block, block.result).ok
    wrong = stepped(spec, block, mad(spec.unit, rounding="toward_zero"))
    whole = report_of(spec, block, wrong)
    monkeypatch.setattr(text, "_READ_ROWS", 10)
    assert report_of(spec, block, block.result).ok
    parts = report_of(spec, block, wrong)
    assert str(parts) == str(whole) and parts.vectors == 1000


def test_a_sequence_that_does_not_begin():
    spec = UnitSpec.make("mac", PLAIN, length=4)
    block = vectors_of(spec, 8)
    operands = (np.zeros_like(block.operands[0]), *block.operands[1:])
    with pytest.raises(ValueError, match="line 1: the first step begins no sequence"):
        report_of(spec, Block(operands, None, block.result, None), block.result)


# -- tiles -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cause", ["truncation", "c-ignored"])
def test_a_fault_in_tiles(cause):
    spec = UnitSpec.make("gemm", PLAIN, shape=(2, 3, 4), with_c=True)
    block = vectors_of(spec, 200)
    results = []
    for a, b, c in zip(*(codes.tolist() for codes in block.operands), strict=True):
        for i in range(2):
            for j in range(3):
                start = 0 if cause == "c-ignored" else c[3 * i + j]
                mode = {"rounding": "toward_zero"} if cause == "truncation" else {}
                results.append(chain(spec.unit, a[4 * i : 4 * i + 4], b[j::3], start, **mode))
    report = report_of(spec, block, results)
    assert [c.cause for c in report.causes] == [cause], str(report)
    assert report.causes[0].trace[0][0].startswith("trace of element ")


@pytest.mark.parametrize("op, unit", [("dot", PLAIN), ("dot", CORE), ("mac", PLAIN), ("mac", FIXED)])
def test_garbage_of_units_is_unexplained(op, unit):
    spec = UnitSpec.make(op, unit, length=8)
    block = vectors_of(spec)
    results = codes_of(spec.out_fmt, len(block), np.random.default_rng(1))
    assert [c.cause for c in report_of(spec, block, results).causes] == ["unexplained"]


def test_every_cause_of_units_has_a_planted_fault():
    here = {d[0] for d in DOTS} | {"accumulator-not-cleared", "missing-subnormals"}
    units = {"c-ignored", "accumulator-not-cleared", "missing-subnormals", "exact-product-instead", "chunk-length",
             "alignment-bits", "accumulator-width", "summation-order"}  # fmt: skip
    assert units <= here <= set(CAUSES)
