"""What `check` says: in the terminal, as data, as a page; and the rules it compares by."""

import io
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.vectors import TextLayout, UnitSpec, VectorFileError, VectorSpec, check, page_of
from softnum.vectors.checks.comparison import comparison_of
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.plans.spec import Block
from tests.support import faulty
from tests.support.cases import cases
from tests.support.faulty import answers, report_of, rows_of, text_of

MUL16 = VectorSpec.make("multiply", "binary16")
MAC = UnitSpec.make("mac", "MadUnit('e5m3', operand='e4m3fn')", length=6)


def softnum(*arguments):
    result = CliRunner().invoke(build_app(), ["vectors", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def dut(tmp_path):
    """The file of a design that flushes its results, with the right flags."""
    path = tmp_path / "dut.txt"
    path.write_bytes(text_of(MUL16, answers(MUL16, faulty.flushed_results(True))))
    return path


def test_files_of_the_report(dut, tmp_path):
    data, page = tmp_path / "report.json", tmp_path / "report.html"
    options = ("--op", "multiply", "--format", "binary16", "--out", data, "--html", page)
    code, out, _ = softnum("check", dut, *options, "--max-failures", 4)
    assert code == 1
    facts = json.loads(data.read_text())
    (cause,) = facts["causes"]
    assert cause["cause"] == "flush-to-zero" and cause["explains"] == cause["of"] == facts["failures"]
    assert f"cause: flush-to-zero ({cause['detail']}): explains all {facts['failures']} failures" in out
    assert len(facts["first"]) == 4 and facts["judged_on"]["all"] is True
    example = cause["example"]
    assert example["got"]["value"] in ("0.0", "-0.0") and example["want"]["bits"][1:8] == "|00000|"
    assert set(example["rounding"]) == {"kept", "quantum", "lost", "guard", "round", "sticky", "decision"}
    assert facts["classes"][0]["kind"] == "zero for a number" and facts["classes"][0]["cause"] == "flush-to-zero"
    assert page.read_text().startswith("<!DOCTYPE html>") and "flush-to-zero" in page.read_text()


class Page(HTMLParser):
    """Checks that elements are closed in order and that nothing is fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        assert not {"src", "href", "action", "data"} & {name for name, _ in attributes}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", ["operation", "equal", "mac", "garbage", "gemm"])
def test_a_page_is_whole(kind):
    if kind == "operation":
        report = report_of(MUL16, answers(MUL16, faulty.sticky_lost(2)))
    elif kind == "equal":
        report = report_of(MUL16, list(rows_of(MUL16)))
    elif kind == "garbage":
        report = report_of(MUL16, faulty.garbage(MUL16))
    else:
        spec = MAC if kind == "mac" else UnitSpec.make("gemm", MAC.unit, shape=(2, 2, 3))
        block = random_block(spec)
        wrong = block.result ^ (np.arange(block.result.size).reshape(block.result.shape) % 5 == 0).astype(np.uint16)
        size = {"length": 6} if kind == "mac" else {"shape": (2, 2, 3)}
        report = check(io.BytesIO(TextLayout(spec).format(Block(block.operands, None, wrong, None))), spec.op,
                       unit=spec.unit, **size)  # fmt: skip
    if kind == "gemm":
        assert " of 4: got " in str(report), str(report)
    page = Page()
    text = page_of(report)
    page.feed(text)
    assert not page.open and page.seen.count("style") == 1 and "http" not in text
    assert ("Causes" in text) == (kind != "equal")


def test_a_page_escapes_what_it_shows():
    report = report_of(MUL16, answers(MUL16, faulty.flushed_results(True)))
    report.source = "<script>&.txt"
    assert "<script>" not in page_of(report) and "&lt;script&gt;&amp;.txt" in page_of(report)


def random_block(spec, count=300):
    rng = np.random.default_rng(4)
    operands = []
    for c in spec.operand_columns:
        shape = (count,) if c.count == 1 else (count, c.count)
        new = (np.arange(count) % 6 == 0).astype(np.uint8)
        operands.append(new if c.name == "first" else rng.integers(0x20, 0x48, shape).astype(np.uint8))
    return spec.evaluate(operands)


# -- rules -------------------------------------------------------------------------------------------------------------
def test_an_allowance_is_given_only_when_asked_for():
    rows = [[a, b, want + 2 if 0x0400 <= want < 0x7000 else want, flags] for a, b, want, flags in rows_of(MUL16)]
    text = text_of(MUL16, rows)
    assert not check(io.BytesIO(text), "multiply", "binary16").ok
    assert not check(io.BytesIO(text), "multiply", "binary16", ulp=1).ok
    report = check(io.BytesIO(text), "multiply", "binary16", ulp=2)
    assert report.ok and "within 2 ulp" in str(report)
    # NaN is near nothing; an infinity is one place above the largest value, and the zeros share a place
    lines = b"7BFF 4000 7BFF 05\n3C00 8000 0000 00\n3C00 7E00 7C00 00\n"
    assert check(io.BytesIO(lines), "multiply", "binary16", ulp=1).failures == 1
    with pytest.raises(ValueError, match="ulp must be an integer of at least 0, got -1"):
        check(io.BytesIO(lines), "multiply", "binary16", ulp=-1)


def test_ulps_of_fixed_point():
    assert check(io.BytesIO(b"FF 10 00 00\n"), "multiply", "q4.4", ulp=1).ok  # -1/16: FF is next to 00
    assert not check(io.BytesIO(b"7F 10 80 00\n"), "multiply", "q4.4", ulp=1).ok  # the ends are not neighbours


def test_the_simplest_failures_come_first():
    report = report_of(MUL16, answers(MUL16, faulty.sticky_lost(2)), max_failures=1000)
    sizes = [bits(f) for f in report.first]
    assert sizes == sorted(sizes) and len(sizes) == report.failures


def bits(failure):
    """Significant bits of the operands, signs included."""
    total = 0
    for code in failure.operands:
        field, fraction = (code >> 10) & 31, code & 0x3FF
        whole = fraction | (0x400 if field else 0)
        total += (whole // (whole & -whole)).bit_length() + (code >> 15) if whole else 0
    return total


# -- unknown bits ------------------------------------------------------------------------------------------------------
def compared(spec, block, unknown):
    report = CheckReport("sim", spec)
    comparison = comparison_of(report)
    comparison.add(np.arange(1, len(block) + 1), block, unknown)
    comparison.end()
    comparison.finish(5, True)
    return report


def test_unknown_bits_are_named_and_do_not_hide_a_fault():
    rows = answers(MUL16, faulty.sticky_lost(2))
    block = TextLayout(MUL16).parse(text_of(MUL16, rows))
    unknown = np.arange(len(block)) < 3
    report = compared(MUL16, block, unknown)
    assert {c.cause: c.detail for c in report.causes}["unknown-bits"] == "in the first 3 rows alone"
    assert {c.cause for c in report.causes} == {"unknown-bits", "missing-sticky"}
    assert report.unknown == 3 and "got xxxx" in str(CheckReport("s", MUL16, first=[last_unknown(report)]))
    assert "unknown" in page_of(report)


@pytest.mark.parametrize("digit", "xXzZ")
def test_one_unknown_digit_of_a_right_result_is_a_failure(digit, tmp_path):
    lines = text_of(MUL16, rows_of(MUL16, 300)).splitlines(keepends=True)
    path = tmp_path / "sim.txt"
    path.write_bytes(b"".join(lines))
    assert check(path, "multiply", fmt="binary16").failures == 0
    row = next(i for i, line in enumerate(lines) if b"0" in line.split()[2])
    fields = lines[row].split()  # a 0, as which the mark could be read
    lines[row] = b" ".join([*fields[:2], fields[2].replace(b"0", digit.encode(), 1), *fields[3:]]) + b"\n"
    path.write_bytes(b"".join(lines))
    report = check(path, "multiply", fmt="binary16")
    assert (report.failures, report.result_failures, report.unknown) == (1, 1, 1)


def last_unknown(report):
    return next(c.example for c in report.causes if c.cause == "unknown-bits")


def test_unknown_steps_say_nothing_of_the_next():
    block = random_block(MAC)
    report = compared(MAC, block, np.arange(len(block)) == 7)
    assert [c.cause for c in report.causes] == ["unknown-bits"] and report.failures == 1


# -- units from files --------------------------------------------------------------------------------------------------
def unit_file(path, spec, block, **header):
    path.write_bytes(TextLayout.header_lines(spec.facts() | header) + TextLayout(spec).format(block))
    return path


def test_the_header_of_a_unit_is_enough(tmp_path):
    block = random_block(MAC)
    path = unit_file(tmp_path / "mac.txt", MAC, block)
    code, out, _ = softnum("check", path)
    assert code == 0 and "mac of MadUnit('e5m3', operand='e4m3fn'), length 6: 300 vectors, all results equal" in out
    assert softnum("check", path, "--op", "mac", "--unit", MAC.unit.expression, "--length", 6)[0] == 0
    for options, message in (
        (("--op", "dot"), "says op mac, but dot"),
        (("--op", "multiply", "--format", "e5m2"), "says op mac, but multiply"),
        (("--length", 5), "says length 6, but 5"),
        (("--with-c",), "says with_c no, but yes"),
        (("--unit", "MadUnit('e5m2', operand='e4m3fn')"), "says unit MadUnit('e5m3', operand='e4m3fn'), but MadUnit"),
        (("--format", "e5m2"), "leave out fmt"),
        (("--shape", "1,2"), "--shape must be three numbers M,N,K"),
    ):
        code, _, err = softnum("check", path, *options)
        assert code == 2 and message in err, err


def test_headers_of_units_that_are_unusable(tmp_path):
    block = random_block(MAC)
    for header, message in (
        ({"length": "six"}, "the header's length is unusable: 'six'"),
        ({"with_c": "perhaps"}, "the header's with_c must be yes or no"),
    ):
        with pytest.raises(VectorFileError, match=message):
            check(unit_file(tmp_path / "mac.txt", MAC, block, **header))
    with pytest.raises(VectorFileError, match="state --unit"):
        check(io.BytesIO(b"# softnum vectors 1\n# op: mac\n1 3C 3C 3C\n"))
    with pytest.raises(ValueError, match="multiply is of no unit: leave out length"):
        check(io.BytesIO(b"3C 3C 3C 00\n"), "multiply", "e5m2", length=3)


# -- every operation and many formats ----------------------------------------------------------------------------------
@cases("fmt", ["e4m3fnuz", "e8m0fnu", "binary8p4uf", "uq2.6", "dlfloat16", "e15m40", "e1m3", "q1.63"])
@cases("op", ["add", "divide", "sqrt", "next_up", "copysign", "logb", "round_to_integral", "exp"])
def test_a_report_of_any_operation(op, fmt):
    spec = VectorSpec.make(op, fmt)
    rows = list(rows_of(spec, 300))
    garbage = faulty.garbage(spec, count=300)
    near = [[*row[:-2], row[-2] ^ (i % 9 == 0), row[-1]] for i, row in enumerate(rows)]
    for lines in (garbage, near):
        report = report_of(spec, lines)
        assert report.causes and page_of(report) and json.dumps(report.to_dict())
        if lines is garbage:
            assert [c.cause for c in report.causes] == ["unexplained"], str(report)
