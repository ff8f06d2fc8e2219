"""Several operations, modes and formats in one file: dealt, shuffled, written in each dialect, judged line by line."""

import io

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import MixedSpec, Space, UnitSpec, VectorSpec, check, coverage_of, mixed_plan, write
from tests.support.cases import cases

OPERATIONS, FORMATS, MODES = ("add", "fma"), ("e5m2", "binary16"), ("rne", "up")
SPECS = [VectorSpec.make(op, f, rounding=m) for op in OPERATIONS for f in FORMATS for m in MODES]
SPECS += [
    VectorSpec.make("to_integer", "binary32", out_fmt="i64", exact=False),
    VectorSpec.make("from_integer", "i8", out_fmt="binary16"),
    VectorSpec.make("classify", "binary64", profile="riscv"),
    VectorSpec.make("multiply", "binary16", flush_inputs=True, space=Space.make(only="subnormal-result")),
]


def text_of(planned, tmp_path, **options):
    path = tmp_path / "v.txt"
    write(planned, path, **options)
    return path


@cases("dialect", ["softnum", "readmemh", "readmemb", "csv", "jsonl", "npz"])
def test_every_dialect(tmp_path, dialect):
    path = tmp_path / "v"
    assert write(mixed_plan(SPECS, count=1200), path, dialect=dialect) == 1200
    report = check(path, dialect=dialect)
    assert report.ok and report.vectors == 1200
    assert [p.spec for p in report.parts] == SPECS and {p.vectors for p in report.parts} == {100}


def test_lines_are_shuffled_and_the_same_each_time():
    first, again = (list(mixed_plan(SPECS, count=2400, seed=3).blocks()) for _ in range(2))
    assert all((x == y).all() for x, y in zip(first[0].columns, again[0].columns, strict=True))
    kinds = np.stack(first[0].operands[:3], 1)
    changes = (kinds[1:] != kinds[:-1]).any(1).mean()
    assert changes > 0.8  # of 12 kinds, 11 / 12 in the mean
    other = next(mixed_plan(SPECS, count=2400, seed=4).blocks())
    assert (other.operands[0] != first[0].operands[0]).any()


def test_a_line_holds_what_its_operation_makes(tmp_path):
    specs = [VectorSpec.make("add", "binary16", rounding="up"), VectorSpec.make("sqrt", "binary32")]
    lines = [x for x in text_of(mixed_plan(specs, count=200), tmp_path).read_text().splitlines() if x[0] != "#"]
    for line in lines:
        op, mode, fmt, *rest = line.split()
        a, b, result, flags = (int(x, 16) for x in rest)
        assert op == mode == fmt
        codes = (a, b) if op == "0" else (a,)
        want = (sn.add if op == "0" else sn.sqrt)(
            *([c] for c in codes), specs[int(op)].out_fmt, rounding=specs[int(op)].rounding, return_flags=True
        )
        assert (result, flags) == (want[0][0], want[1][0]) and (op == "0" or b == 0)


def test_nan_boxes(tmp_path):
    path = text_of(mixed_plan(SPECS[:8], count=160, nan_box=True), tmp_path)
    assert check(path).ok
    rows = path.read_text().splitlines()
    header = [x for x in rows if x[0] == "#"]
    lines = [x.split() for x in rows if x[0] != "#"]
    narrow = [x for x in lines if x[2] == "0"]
    assert len(narrow) == 80 and all(x[3].startswith("FF") and x[6].startswith("FF") for x in narrow)
    narrow[0][6] = "00" + narrow[0][6][2:]
    path.write_text("\n".join(header + [" ".join(x) for x in lines]) + "\n")
    report = check(path)
    assert (report.failures, report.unfilled_count, report.exit_status) == (1, 1, 1)
    assert report.unfilled == [len(header) + lines.index(narrow[0]) + 1] and "NaN boxes" in str(report)
    narrow[0][3] = "00" + narrow[0][3][2:]
    path.write_text("\n".join(header + [" ".join(x) for x in lines]) + "\n")
    with pytest.raises(ValueError, match=r"line \d+: .* not filled above"):
        check(path)


@cases("dialect", ["softnum", "readmemh", "csv", "npz"])
def test_random_bits_have_a_column(tmp_path, dialect):
    drawn = [VectorSpec.make("add", "e5m2", rounding="sr", stochastic_bits=5),
             VectorSpec.make("fma", "binary16", rounding="stochastic_floor", stochastic_bits=11), SPECS[2]]  # fmt: skip
    planned = mixed_plan(drawn, count=300)
    assert [(c.name, c.width) for c in planned.spec.columns[-3:]] == [("random", 11), ("result", 16), ("flags", 5)]
    write(planned, tmp_path / "v", dialect=dialect)
    report = check(tmp_path / "v", dialect=dialect)
    assert report.ok and [p.spec for p in report.parts] == drawn
    random = np.concatenate([b.random_bits for b in planned.blocks()])
    kind = np.concatenate([b.operands[0] * 2 + b.operands[1] for b in planned.blocks()])
    assert random[kind == 0].max() == 31 and 1024 < random.max() < 2048
    block = next(planned.blocks())
    again = planned.spec.evaluate(block.operands, block.random_bits)
    assert all((x == y).all() for x, y in zip(block.columns, again.columns, strict=True))
    bits = block.random_bits.copy()
    bits[block.operands[0] == 0] |= 32
    with pytest.raises(ValueError):
        planned.spec.evaluate(block.operands, bits)


def test_what_is_covered_is_counted_by_operation():
    planned = mixed_plan(SPECS[:3], count=3000)
    counted = coverage_of(planned.spec)
    alone = [coverage_of(s) for s in SPECS[:3]]
    for block in planned.blocks():
        counted.add(block)
    for one, p in zip(alone, planned.plans, strict=True):
        for block in p.blocks():
            one.add(block)
    kinds = ["add nearest_even e5m2", "add up e5m2", "add nearest_even binary16"]
    found, want = counted.groups, {}
    for kind, one in zip(kinds, alone, strict=True):
        want |= {f"{kind}: {name}": group.to_dict() | {"name": f"{kind}: {name}"} for name, group in one.groups.items()}
    assert {name: group.to_dict() for name, group in found.items()} == want and counted.vectors == 3000
    assert str(counted).count("1000") == 3


def test_what_differs_is_named_by_its_operation(tmp_path):
    rows = text_of(mixed_plan(SPECS, count=1200), tmp_path).read_text().splitlines()
    at = next(i for i, x in enumerate(rows) if x.startswith("1 1 1 "))
    rows[at] = rows[at][:-1] + str(int(rows[at][-1], 16) ^ 1)
    report = check(io.BytesIO(("\n".join(rows) + "\n").encode()))
    wrong = [p for p in report.parts if p.failures]
    assert [(p.spec.op, p.spec.rounding, p.first[0].line) for p in wrong] == [("fma", "up", at + 1)]
    assert report.to_dict()["failures"] == 1 and "1 differ" in str(report)
    with pytest.raises(ValueError, match="is mixed: each line says"):
        check(io.BytesIO(("\n".join(rows) + "\n").encode()), "add")


@cases(
    "change, text",
    [
        (("# modes: 0=nearest_even 1=up", "# modes: 0=up 1=nearest_even"), "the header says modes"),
        (("nan_box: no", "nan_box: maybe"), "yes or no"),
        (("; flush=none", "; flush=often"), "flush must be"),
        (("# case 3:", "# case 77:"), "its cases make it"),
    ],
)
def test_headers_that_lie(tmp_path, change, text):
    rows = text_of(mixed_plan(SPECS, count=120), tmp_path).read_text()
    assert change[0] in rows
    with pytest.raises(ValueError, match=text):
        check(io.BytesIO(rows.replace(*change, 1).encode()))


def test_a_line_of_no_case(tmp_path):
    rows = text_of(mixed_plan(SPECS, count=120), tmp_path).read_text().splitlines()
    op, mode, _, *rest = rows[-1].split()
    for number, text in (("7", "is of no case of the header"), ("F", "exceeds 3 bits")):
        rows[-1] = " ".join([op, mode, number, *rest])
        with pytest.raises(ValueError, match=rf"line \d+: .*{text}"):
            check(io.BytesIO(("\n".join(rows) + "\n").encode()))


@cases(
    "parts, options, text",
    [
        ([], {}, "one spec at least"),
        ([SPECS[0], SPECS[0]], {}, "they differ in what no column says"),
        ([VectorSpec.make("add", "e5m2", rounding="sr", stochastic_bits=r) for r in (4, 8)], {}, "no column says"),
        ([VectorSpec.make("add", "binary128")], {}, "up to 64 bits"),
        ([VectorSpec.make("add", sn.CustomFormat.from_table([0, 1]))], {}, "user's own"),
        ([UnitSpec.make("dot", "nvidia_v100_fp16")], {}, "is of a unit"),
        (SPECS, {"count": 5}, "fewer than the 12"),
    ],
)
def test_what_cannot_be_mixed(parts, options, text):
    with pytest.raises(ValueError, match=text):
        mixed_plan(parts, **options)


def by_case_of(text):
    from softnum.cli.mixed import cases_of
    from softnum.cli.vector_arguments import formats_of

    return cases_of([text], None, None, None, formats_of, dict, None, {})[0]


def test_the_specs_are_those_of_the_command_line():
    from softnum.cli.mixed import cases_of
    from softnum.cli.vector_arguments import formats_of

    def make(**given):
        return VectorSpec.make(**given)

    found = cases_of([], "add,fma", "e5m2+binary16", "rne,up", formats_of, make, None, {"profile": None})
    assert found == SPECS[:8]
    assert by_case_of("--op add --format e5m2 --rounding sr --stochastic-bits 7")["stochastic_bits"] == "7"
    by_case = lambda text: cases_of([text], None, None, None, formats_of, make, None, {})  # noqa: E731
    assert by_case("--op from_integer --format i8 --result-format=binary16") == [SPECS[9]]
    for text, message in (("--op", "takes a value"), ("--opp add", "unknown option"), ("--op add --op add", "twice")):
        with pytest.raises(ValueError, match=message):
            by_case(text)
    with pytest.raises(ValueError, match="stated in each --case"):
        cases_of(["--op add"], None, "e5m2", None, formats_of, make, None, {})
    assert MixedSpec.make(SPECS).options().count("--case") == 12
