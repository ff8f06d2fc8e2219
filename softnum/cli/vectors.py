"""``softnum vectors``: test vectors for a design under test, made or judged."""

import os
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.coverage import coverage as coverage_verb
from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.mixed import is_mixed, parts_of
from softnum.cli.options import OUT_TEXT, AnyNan, IgnoreFlags
from softnum.cli.updates import with_groups
from softnum.cli.vector_arguments import WORTH_A_BAR, bar, given, lanes_of, shape_of, spec_of
from softnum.cli.vector_options import (
    NO_BOXES,
    Case,
    Dialect,
    LaneCount,
    LaneFlags,
    Length,
    Mask,
    NanBox,
    Op,
    ScalarB,
    Shape,
    UnitOption,
    VectorOptions,
    WithC,
    WordBits,
)
from softnum.cli.vector_reports import delivered, written

__all__ = ["register"]

_OPERATION = VectorOptions()
#: Options of `check` that hold for files whose lines say what they are, too, or are their own arguments.
_OF_SUITES = frozenset(
    ("tininess", "any_nan", "ulp", "ignore_flags", "ignore_header", "max_failures", "explain", "dialect")
)

_HELP = """Make test vectors for a hardware design, or check its answers to them.

One vector a line, in Berkeley TestFloat's text: operands (C of an fma last), the random bits of stochastic rounding,
result, exception flags. Fixed-width hexadecimal: ceil(bits / 4) digits, flags in two (invalid 10, divide by zero 08,
overflow 04, underflow 02, inexact 01). Lines that begin with # are comments. Other dialects: memory files of Verilog's
$readmemh and $readmemb (.mem, .memb), IBM's .fptest, .csv, .jsonl and .npz; .gz and .xz behind them compress.

\b
  softnum vectors generate --op multiply --format e5m2 -o mul.txt
  softnum vectors check mul.txt
  softnum vectors coverage mul.txt -o coverage.xml
  testfloat_gen f16_mul | softnum vectors check --op f16_mul --nan x86
"""


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("generate", short_help="Write vectors with softnum's results.")(exit_codes(with_groups(generate)))
    group.command("check", short_help="Compare results in a file with softnum's.")(exit_codes(with_groups(check)))
    group.command("coverage", short_help="Count, add up and list what vectors cover.")(exit_codes(coverage_verb))
    app.add_typer(group, name="vectors", short_help="Make or check test vectors of a hardware design.")


def generate(
    op: Op = None,
    operation: VectorOptions = _OPERATION,
    unit: UnitOption = None,
    length: Length = None,
    shape: Shape = None,
    with_c: WithC = None,
    lanes: LaneCount = None,
    word_bits: WordBits = None,
    scalar_b: ScalarB = False,
    lane_flags: LaneFlags = None,
    mask: Mask = None,
    count: Annotated[
        int | None,
        typer.Option("--count", "-n", help="Number of vectors.  [default: all, if at most 65536 exist; else 262144]"),
    ] = None,
    seed: Annotated[
        int, typer.Option(help=("Seed of random operands and random bits. The same options give the same file."))
    ] = 0,
    case: Case = None,
    nan_box: NanBox = False,
    dialect: Dialect = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether to write the header. [default: by the dialect]")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", help=OUT_TEXT)] = "-",
    coverage: Annotated[
        bool, typer.Option("--coverage/--no-coverage", help="Count which cases the vectors cover, and report it.")
    ] = True,
    coverage_out: Annotated[
        str | None,
        typer.Option(
            help="Write the counted bins to this file: .xml is UCIS XML, .cocotb.xml and .yml cocotb-coverage's, all "
            "else JSON."
        ),
    ] = None,
) -> None:
    """Write test vectors with correctly rounded results and flags.

    All combinations of operands (and random bits) are written, in order, where --count admits them; without --count,
    where there are at most 65536. Otherwise half of the vectors are the format's edge cases crossed with each other
    and the rest is drawn near them: sums that cancel, results at the format's limits, significands that end in long
    runs. Vectors of a unit (--op dot, mac, gemm with --unit) are all drawn: sums that cancel, grow, underflow. What is
    covered is counted and reported on standard error.

    \b
      softnum vectors generate --op multiply --format e5m2 --rounding rne --dialect testfloat -o mul.txt
      softnum vectors generate --op fma --format binary16 --count 1000000 --seed 7 -o fma.txt
      softnum vectors generate --op multiply --format e4m3fn,e5m2 --result-format binary16 | ./dut
      softnum vectors generate --op add --format e6m9 --rounding sr --stochastic-bits 12 -o sr.txt
      softnum vectors generate --op dot --unit nvidia_v100_fp16 --length 4 --with-c -o dot.txt
      softnum vectors generate --op mac --unit "MadUnit('e6m9', operand='e5m2', chunk=8)" --length 32 -o mac.txt
      softnum vectors generate --op multiply --format e4m3fn -o mul.mem.gz

    Where a result is NaN and its format has no code for it, the result is code 0 with the invalid flag.
    """
    from softnum.vectors import mixed_plan, packed_plan, plan

    if case or is_mixed(op, operation.fmt, operation.rounding):
        foreign = given(unit=unit, length=length, shape=shape, with_c=with_c, lane_flags=lane_flags)
        of_lanes = given(lanes=lanes, word_bits=word_bits, scalar_b=scalar_b or None, mask=mask)
        parts = parts_of(case, op, operation, foreign, of_lanes, nan_box)
        planned, what = mixed_plan(parts, count=count, seed=seed, nan_box=nan_box), f"vectors of {len(parts)} kinds"
    else:
        packed = lanes_of(lanes, word_bits, scalar_b, lane_flags, nan_box, mask)
        if nan_box and packed is None:
            raise ValueError(NO_BOXES)
        spec = spec_of(op, operation, unit, dict(length=length, shape=shape_of(shape), with_c=with_c))
        how = dict(count=count, seed=seed)
        planned, what = (
            (plan(spec, **how), "vectors") if packed is None else (packed_plan(spec, packed, **how), "words")
        )
    _delivered(planned, what, dialect, header, out, coverage, coverage_out)


def _delivered(planned, what: str, dialect, header, out: str, coverage: bool, coverage_out: str | None) -> None:
    """Write planned vectors and what they cover."""
    from softnum.vectors import coverage_of, write
    from softnum.vectors.covered.files import write_coverage
    from softnum.vectors.covered.record import CoverageRecord

    if coverage_out is not None:
        writable_file(Path(coverage_out))
    counted = coverage_of(planned.spec) if coverage or coverage_out is not None else None
    if out != "-" and (os.path.isdir(out) or os.path.isdir(os.path.dirname(out) or ".")):  # else write names the folder
        writable_file(Path(out))
    with bar("vectors written", planned.count, planned.count) as progress:
        write(planned, out, dialect=dialect, header=header, progress=progress, coverage=counted)
    if out != "-":
        typer.echo(f"{out}: {planned.count} {what}, {planned.method}", err=True)
    if coverage and out != "-":
        typer.echo(str(counted), err=True)
    if coverage_out is not None:
        write_coverage(CoverageRecord.of(counted), coverage_out)


def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help=(
                "Vectors with the design's results and flags; - is standard input. Several files must state what they "
                "hold, in their headers or, for fptest, on their lines.  [default: -]"
            ),
            show_default=False,
        ),
    ] = None,
    op: Op = None,
    operation: VectorOptions = _OPERATION,
    unit: UnitOption = None,
    length: Length = None,
    shape: Shape = None,
    with_c: WithC = None,
    lanes: LaneCount = None,
    word_bits: WordBits = None,
    scalar_b: ScalarB = False,
    lane_flags: LaneFlags = None,
    mask: Mask = None,
    nan_box: Annotated[bool, typer.Option("--nan-box", help="With --lanes: ones in unused lanes.")] = False,
    spec: Annotated[
        str | None,
        typer.Option(
            help=(
                "For dot, gemm: check against a specification that permits several results, in place of a unit: "
                "Freedom('binary32', operand='binary16'). Each result is permitted, refuted or undecided."
            )
        ),
    ] = None,
    any_nan: AnyNan = False,
    ignore_flags: IgnoreFlags = False,
    ulp: Annotated[
        int,
        typer.Option(
            help=("Accept results up to this many representable values away from the correct one.  [default: 0]"),
            show_default=False,
        ),
    ] = 0,
    ignore_header: Annotated[
        bool, typer.Option("--ignore-header", help="Treat the file's header as a comment.")
    ] = False,
    dialect: Dialect = None,
    max_failures: Annotated[int, typer.Option(help="How many failures to print; all are counted.")] = 20,
    explain: Annotated[
        bool, typer.Option("--explain/--no-explain", help="Whether to look for the causes of differences.")
    ] = True,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Also write the report to this file, as JSON.")] = None,
    html: Annotated[str | None, typer.Option(help="Also write the report to this file, as a page to read.")] = None,
    junit: Annotated[
        str | None,
        typer.Option(help="Also write a test case for each operation, mode and file to this file, as JUnit XML."),
    ] = None,
    sarif: Annotated[str | None, typer.Option(help="Also write the causes to this file, as SARIF.")] = None,
) -> None:
    """Compare the results and flags in FILES with softnum's, and name the likeliest causes of differences.

    What the options leave out is taken from the file's header; what they state must agree with it. Failures are
    printed, the simplest first, with their line, operands, what was got and what is right, in hexadecimal and decoded;
    then the causes, such as missing-sticky or flush-to-zero, each with an example in bits.

    Lines of IBM's suite (fptest) state their operation, format and mode. Several files, one without a header, or --op
    all: each line is checked by that, and counted in a table; underflow is judged before rounding.

    \b
      softnum vectors check mul.txt --html report.html
      softnum vectors check dut.txt --op multiply --format binary16 --rounding rne --ignore-flags
      ./dut < operands.txt | softnum vectors check --op fma --format e5m2 --any-nan
      softnum vectors check --op all *.fptest
      softnum vectors check add.txt multiply.txt --junit report.xml
      softnum vectors check dot.txt --spec "Freedom('binary32', operand='binary16')"

    Exit codes: 0 all equal, 1 differences, 2 unusable input (the message names file and line).
    """
    from softnum.vectors import VectorFileError
    from softnum.vectors import check as check_vectors

    for path in (out, html, junit, sarif):
        if path is not None:
            writable_file(Path(path))
    options = operation.given()
    formats = options.pop("fmt", None)
    options |= dict(
        unit=unit, length=length, shape=shape_of(shape), with_c=with_c, any_nan=any_nan, ignore_flags=ignore_flags,
        ulp=ulp, ignore_header=ignore_header, max_failures=max_failures, explain=explain, dialect=dialect,
        lanes=lanes_of(lanes, word_bits, scalar_b, lane_flags, nan_box, mask),
    )  # fmt: skip
    files = files or ["-"]
    for file in files:
        if file != "-" and not os.path.exists(file):
            raise ValueError(f"no file {file!r}")
        if os.path.isdir(file):
            raise ValueError(f"{file!r} is a directory; name a file of vectors")
    # how many vectors a file holds is known at its end; a stream may be long
    expected = sum(WORTH_A_BAR if file == "-" else os.stat(file).st_size // 16 for file in files)
    if spec is not None:
        foreign = given(format=operation.fmt, html=html, sarif=sarif, any_nan=any_nan or None, ulp=ulp or None)
        own = ("length", "shape", "with_c", "ignore_header", "max_failures", "dialect", "ignore_flags", "explain")
        foreign |= given(**{key: value for key, value in options.items() if key not in (*own, "any_nan", "ulp")})
        _check_spec(files, spec, op, foreign, {key: options[key] for key in own[:-2]}, expected, (out, junit))
    if len(files) > 1 and op is None and html is None and all(_has_header(file, dialect) for file in files):
        reports, error = _each(files, formats, options, expected)
        delivered(reports, out, None, junit, sarif)
        if error is not None:
            raise error
        raise typer.Exit(max(report.exit_status for report in reports))
    if _mixed(op, files, dialect):
        stated = dict(format=operation.fmt, html=html, sarif=sarif, any_nan=any_nan or None, ulp=ulp or None)
        stated |= {key: value for key, value in options.items() if key not in _OF_SUITES}
        _check_suite(
            files, stated, operation.tininess, ignore_flags, ignore_header, max_failures, expected, (out, junit)
        )
    file = files[0]
    with bar("vectors read", None, expected) as progress:
        try:
            report = check_vectors(file, op, formats, progress=progress, **options)
        except VectorFileError as error:
            if error.report is not None:
                delivered([error.report], out, html, junit, sarif)
            raise
    delivered([report], out, html, junit, sarif)
    raise typer.Exit(report.exit_status)


def _has_header(file: str, dialect: str | None) -> bool:
    """Whether a file says of itself, in a header, what its vectors are of."""
    from softnum.vectors import open_reader

    if file == "-":
        return False
    with open(file, "rb") as stream:
        reader = open_reader(stream, file, dialect)
        return "op" in reader.header


def _each(files, formats, options: dict, expected: int) -> tuple[list, Exception | None]:
    """The reports of several files, and the first error among them."""
    from softnum.vectors import VectorFileError
    from softnum.vectors import check as check_vectors

    reports, first = [], None
    for file in files:
        with bar(file, None, expected) as progress:
            try:
                reports.append(check_vectors(file, None, formats, progress=progress, **options))
            except VectorFileError as error:
                first = first or error
                if error.report is not None:
                    reports.append(error.report)
    return reports, first


def _check_spec(files, spec: str, op, foreign: dict, options: dict, expected, paths) -> None:
    """Judge a file of sums by a specification, and end."""
    from softnum.vectors import check_permitted

    for name in foreign:
        name = name.replace("out_fmt", "result_format").replace("_", "-")
        raise ValueError(
            f"--{name} cannot be combined with --spec, which states formats and modes and compares bits; leave it out"
        )
    if len(files) > 1:
        raise ValueError(f"--spec checks one file at a time, got {len(files)}")
    with bar("vectors read", None, expected) as progress:
        report = check_permitted(files[0], spec, op, progress=progress, **options)
    typer.echo(str(report))
    written([report], *paths)
    raise typer.Exit(report.exit_status)


def _mixed(op: str | None, files: list[str], dialect: str | None) -> bool:
    """Whether the lines of the files say what they are of; ValueError where only some do."""
    from softnum.vectors.checks.suite import states_nothing
    from softnum.vectors.files.dialects import dialect_named, dialect_of_path

    if op not in (None, "all"):
        if len(files) > 1:
            raise ValueError(
                f"{len(files)} files must state the operation on each line (fptest, --op all); with --op {op} check "
                "them one at a time"
            )  # fmt: skip
        return False
    if op is None and len(files) == 1:
        return files[0] != "-" and states_nothing(files[0], dialect)
    for file in files:
        other = dialect_of_path(file) if dialect is None else dialect_named(dialect)
        if other is not None and other.name != "fptest":
            raise ValueError(
                f"{file}: {other.name} does not state the operation on each line, as fptest does; give --op and check "
                "one file"
            )  # fmt: skip
    return True


def _check_suite(files, stated: dict, tininess, ignore_flags, ignore_header, max_failures, expected, paths) -> None:
    from softnum.vectors import check_suite

    for name in given(**stated):
        name = name.replace("out_fmt", "result_format").replace("_", "-")
        raise ValueError(
            f"leave out --{name}: each line of fptest states its operation (or give --op to check one operation)"
        )
    with bar("vectors read", None, expected) as progress:
        report = check_suite(
            files, tininess=tininess, ignore_flags=ignore_flags, ignore_header=ignore_header,
            max_failures=max_failures, progress=progress,
        )  # fmt: skip
    typer.echo(str(report))
    written([report], *paths)
    raise typer.Exit(report.exit_status)
