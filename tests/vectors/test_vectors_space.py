"""Vectors of a space: what operands are left out, which results are asked for; proved in Fractions of float values."""

import io
import math
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import Coverage, Space, VectorSpec, check, plan, write
from softnum.vectors.plans.conditions import meets
from softnum.vectors.plans.space import admitted_codes
from tests.support.cases import cases

DOUBLES = {"binary16": np.float16, "binary32": np.float32, "binary64": np.float64}
EMIN = {"binary16": -14, "binary32": -126, "binary64": -1022}
PRECISION = {"binary16": 11, "binary32": 24, "binary64": 53}


def made(op, fmt, *, count=3000, seed=0, options=None, **space):
    spec = VectorSpec.make(op, fmt, space=Space.make(**space), **(options or {}))
    blocks = list(plan(spec, count=count, seed=seed).blocks())
    return spec, [np.concatenate(x) for x in zip(*(b.columns for b in blocks), strict=True)]


def floats(codes, fmt):
    return codes.view(DOUBLES[fmt]).astype(np.float64)


@cases("fmt", ["e4m3fn", "e4m3fnuz", "binary16", "binary8p3se", "posit8"])
def test_every_code_of_a_narrow_format_is_in_or_out(fmt):
    fmt = sn.format(fmt)
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    values = sn.decode(codes, fmt).astype(np.float64)
    spaces = [{"no_nan": True}, {"no_inf": True}]
    if fmt.kind == "float":
        spaces += [{"no_subnormal": True}, {"exponents": (-3, 2)}, {"exponents": (fmt.emin - 2, fmt.emin)}]
    for options in spaces:
        known = admitted_codes(fmt, Space.make(**options))
        want = np.ones(len(codes), bool)
        if "no_nan" in options:
            want = ~np.isnan(values)
        elif "no_inf" in options:
            want = ~np.isinf(values)
        elif "no_subnormal" in options:
            want = ~((values != 0) & (np.abs(values) < 2.0**fmt.emin))
        else:
            low, high = options["exponents"]
            with np.errstate(invalid="ignore"):
                want = (np.abs(values) >= 2.0**low) & (np.abs(values) < 2.0 ** (high + 1)) & np.isfinite(values)
        got = np.ones(len(codes), bool) if known is None else known.has(codes)
        assert (got == want).all()
        if known is not None:
            numbers = np.arange(known.count, dtype=np.uint64)
            assert known.codes(numbers).tolist() == codes[want].tolist()


@cases("fmt", ["binary32", "binary64"])
def test_operands_of_wide_formats_lie_inside(fmt):
    _, (a, b, *_) = made("add", fmt, no_nan=True, no_inf=True, no_subnormal=True)
    least = 2.0 ** EMIN[fmt]
    for x in (floats(a, fmt), floats(b, fmt)):
        assert np.isfinite(x).all() and ((x == 0) | (np.abs(x) >= least)).all()
        assert (x == 0).any() and len(np.unique(x)) > 500
    _, (a, *_) = made("add", fmt, exponents="-20:-17")
    size = np.abs(floats(a, fmt))
    assert size.min() >= 2.0**-20 and size.max() < 2.0**-16 and len(np.unique(size)) > 400
    deep = EMIN[fmt] - 9
    _, (a, *_) = made("add", fmt, exponents=(deep, deep))
    assert (np.frexp(floats(a, fmt))[1] == deep + 1).all()


def exact_of(op, values):
    x = [Fraction(v) for v in values]
    if op == "divide":
        return x[0] / x[1]
    return {"add": lambda: x[0] + x[1], "multiply": lambda: x[0] * x[1], "fma": lambda: x[0] * x[1] + x[2],
            "fmsub": lambda: x[0] * x[1] - x[2], "convert": lambda: x[0]}[op]()  # fmt: skip


def exponent_of(x):
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e - (x < Fraction(2) ** e)


def places(exact, fmt):
    """The exact result in last places of the format."""
    quantum = Fraction(2) ** (max(exponent_of(exact), EMIN[fmt]) - PRECISION[fmt] + 1)
    return exact / quantum


@cases(
    "op, fmt, only",
    [
        ("add", "binary32", "ties"), ("multiply", "binary64", "ties"), ("fma", "binary16", "ties"),
        ("fmsub", "binary32", "ties,cancellation:5"), ("divide", "binary32", "ties"), ("multiply", "binary32", "exact"),
        ("divide", "binary16", "exact"), ("add", "binary64", "cancellation:7"), ("fma", "binary64", "cancellation"),
        ("multiply", "binary16", "overflow"), ("fma", "binary32", "underflow"),
        ("divide", "binary32", "subnormal-result"),
    ],
)  # fmt: skip
def test_results_are_what_was_asked_for(op, fmt, only):
    *operands, result, flags = made(op, fmt, count=400, only=only, seed=3)[1]
    assert len(result) == 400
    values = list(zip(*(floats(x, fmt).tolist() for x in operands), strict=True))
    for row, code, raised in zip(values, floats(result, fmt).tolist(), flags.tolist(), strict=True):
        exact = exact_of(op, row)
        if "ties" in only:
            assert places(exact, fmt) % 1 == Fraction(1, 2)
        if "exact" in only:
            assert Fraction(code) == exact and raised == 0
        if "cancellation" in only:
            n = int(only.partition("cancellation:")[2] or 2)
            terms = (Fraction(row[0]) * Fraction(row[1]), row[2]) if len(row) == 3 else row
            largest = max(exponent_of(Fraction(t)) for t in terms if t)
            assert exact == 0 or largest - exponent_of(exact) >= n
        if "overflow" in only:
            assert raised & 4 and math.isinf(code)
        if only == "underflow":
            assert raised & 2 and places(exact, fmt) % 1
        if "subnormal" in only:
            assert 0 < abs(code) < 2.0 ** EMIN[fmt]
    assert len(set(values)) > 200


def test_places_are_counted_by_the_exact_sum():
    """4 - (2 + 2**-22) lies just below 2, and so two places below 4, however it would be rounded."""
    a, b = np.float32([4, -4]).view(np.uint32), np.float32([2 + 2.0**-22, -(2 + 2.0**-22)]).view(np.uint32)
    for n, all_do in ((2, True), (3, False)):
        spec = VectorSpec.make("subtract", "binary32", space=Space.make(only=f"cancellation:{n}"))
        assert meets(spec, spec.evaluate((a, b))).tolist() == [all_do, all_do]


def test_small_formats_are_solved_by_looking_at_all():
    columns = made("add", "e5m2", count=1 << 16, only="ties")[1]
    values = (np.arange(256, dtype=np.uint16) << 8).view(np.float16).astype(np.float64)  # e5m2: half of a binary16
    count = 0
    for x in values[np.isfinite(values)]:
        for y in values[np.isfinite(values)]:
            exact = x + y
            if exact and abs(exact) < 65536 * (1 - 2.0**-4):
                unit = 2.0 ** (max(math.frexp(exact)[1] - 1, -14) - 2)
                count += exact / unit % 1 == 0.5
    assert len(columns[0]) == count


@cases(
    "op, fmt, space, text",
    [
        ("sqrt", "binary16", {"only": "ties"}, "the space is empty"),
        ("sqrt", "binary64", {"only": "ties"}, "empty or all but empty"),
        ("add", "e4m3fn", {"exponents": (100, 200)}, "no code of e4m3fn is admitted"),
        ("add", "q4.4", {"exponents": (0, 1)}, "exponents are of floats"),
        ("add", "binary128", {"no_nan": True}, "two words"),
        ("multiply", "e5m2", {"only": "cancellation"}, "of sums of floats"),
        ("compare_less", "e5m2", {"only": "ties"}, "not rounded"),
        ("add", "posit8", {"only": "ties"}, "not rounded"),
        ("to_integer", "binary16", {"only": "overflow"}, "raises invalid"),
    ],
)
def test_an_empty_space_is_an_error_that_says_so(op, fmt, space, text):
    with pytest.raises(ValueError, match=text):
        made(op, fmt, options={"out_fmt": "i8"} if op == "to_integer" else None, **space)


@cases(
    "options, text",
    [
        ({"exponents": "5"}, "LOW:HIGH"), ({"exponents": "a:b"}, "LOW:HIGH"), ({"exponents": "3:1"}, "no range"),
        ({"only": "nice"}, "takes"), ({"exponents": (1.5, 2)}, "two integers"), ({"only": "cancellation:x"}, "takes"),
    ],
)  # fmt: skip
def test_what_is_no_space(options, text):
    with pytest.raises(ValueError, match=text):
        Space.make(**options)


def test_the_same_seed_makes_the_same_file_and_another_count_begins_it():
    first, second = (made("multiply", "binary32", count=n, only="ties", seed=4)[1] for n in (3000, 700))
    assert all((x[:700] == y).all() for x, y in zip(first, second, strict=True))
    other = made("multiply", "binary32", count=700, only="ties", seed=5)[1]
    assert (other[0] != second[0]).any()


def test_stochastic_results_are_asked_for_with_their_random_bits():
    spec, (a, b, random, result, flags) = made(
        "add", "binary16", only="overflow", options={"rounding": "sr", "stochastic_bits": 8}
    )
    assert (flags & 4 != 0).all()
    assert (spec.evaluate((a, b), random).result == result).all()


def test_check_passes_over_what_the_options_leave_out_and_refuses_what_the_header_does(tmp_path):
    text = b"0001 3C00 FFFF 00\n3C00 3C00 4000 00\n7E00 3C00 0000 00\n"
    report = check(io.BytesIO(text), "add", "binary16", space=Space.make(no_nan=True, no_subnormal=True))
    assert report.ok and report.vectors == 1 and sum(report.skipped.values()) == 2
    with pytest.raises(ValueError, match="none of 3 vectors"):
        check(io.BytesIO(text), "add", "binary16", space=Space.make(only="underflow"))
    path = tmp_path / "v.txt"
    spec = VectorSpec.make("add", "binary16", space=Space.make(no_nan=True))
    write(plan(spec, count=50), path)
    assert check(path).ok and check(path, space=Space.make(no_inf=True)).ok
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], "7E00 3C00 7E00 00"]) + "\n")
    with pytest.raises(ValueError, match=r"line \d+: a=7E00 b=3C00 lies outside .* --no-nan"):
        check(path)
    of_steps = dict(unit="MadUnit('e5m2', operand='e5m2')", length=1, space=Space.make(no_nan=True))
    with pytest.raises(ValueError, match="no step of a sequence can be passed over"):
        check(io.BytesIO(b"1 3C 3C 3C\n"), "mac", **of_steps)


def test_coverage_knows_what_cannot_be_hit():
    spec = VectorSpec.make("add", "binary16", space=Space.make(exponents=(-2, 2)))
    coverage = Coverage(spec)
    for block in plan(spec, count=4000).blocks():
        coverage.add(block)
    binades, classes = coverage.groups["binades of a"], coverage.groups["classes of a, b"]
    assert (binades.hit, binades.total, classes.hit, classes.total) == (5, 5, 4, 4)
