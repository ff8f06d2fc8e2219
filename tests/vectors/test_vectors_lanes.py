"""Words of SIMD lanes: each dialect, wide words, what lane is wrong, what words as a whole say of a design."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest

from softnum.vectors import Lanes, PackedSpec, Space, UnitSpec, VectorSpec, check, junit_of, packed_plan, write
from softnum.vectors.driving import planned_file
from softnum.vectors.model import ReferenceModel
from tests.support.cases import cases

FMA = VectorSpec.make("fma", "binary16", profile="riscv")
ADD = VectorSpec.make("add", "binary16", rounding="up")


def lines_of(planned):
    """(header, lines) of a file."""
    out = io.BytesIO()
    write_to(planned, out)
    rows = out.getvalue().decode().splitlines()
    return [x for x in rows if x[0] == "#"], [x.split() for x in rows if x[0] != "#"]


def write_to(planned, out):
    from softnum.vectors.files.dialects import DIALECTS
    from softnum.vectors.files.writing import header_of

    writer = DIALECTS["softnum"].writer(out, planned.spec, header_of(planned))
    for block in planned.blocks():
        writer.write(block)


def judged(header, lines, **options):
    return check(io.BytesIO(("\n".join(header + [" ".join(x) for x in lines]) + "\n").encode()), **options)


@cases("lanes", [Lanes(4), Lanes(2, 128, ones=True, flags="each"), Lanes(8, 512, scalar=True), Lanes(1), Lanes(5, 256)])
@cases("dialect", ["softnum", "testfloat", "readmemh", "readmemb", "csv", "jsonl", "npz"])
def test_every_dialect(tmp_path, dialect, lanes):
    path = tmp_path / "v"
    assert write(packed_plan(FMA, lanes, count=120), path, dialect=dialect) == 120
    stated = {} if dialect != "testfloat" else dict(op="fma", fmt="binary16", lanes=lanes)
    report = check(path, dialect=dialect, **stated)
    assert report.ok and report.words == 120 and {p.vectors for p in report.parts} == {120}


def test_a_word_holds_what_its_lanes_compute():
    header, lines = lines_of(packed_plan(ADD, Lanes(3, 64, ones=True), count=200))
    assert {"# lanes: 3", "# word_bits: 64", "# unused: ones", "# columns: a:64 b:64 result:64 flags:5"} <= set(header)
    for a, b, result, flags in lines:
        together = 0
        assert a[:4] == b[:4] == result[:4] == "FFFF"
        for lane in range(3):
            part = slice(16 - 4 * lane - 4, 16 - 4 * lane)  # lane 0 in the low bits
            x, y = (np.array([int(word[part], 16)], np.uint16) for word in (a, b))
            block = ADD.evaluate((x, y))
            assert int(result[part], 16) == block.result[0]
            together |= int(block.flags[0])
        assert int(flags, 16) == together


@cases("lanes", [Lanes(4), Lanes(2, 64, flags="each", scalar=True)])
def test_what_drives_and_judges_a_simulation_takes_words(tmp_path, lanes):
    planned = packed_plan(ADD, lanes, count=40)
    write(planned, tmp_path / "v.txt")
    driven = planned_file(tmp_path / "v.txt", 30)
    assert driven.spec == planned.spec and sum(map(len, driven.blocks())) == 30
    _, lines = lines_of(planned)
    model = ReferenceModel(driven.spec)
    for a, b, result, flags in lines:
        assert model(int(a, 16), int(b, 16)) == (int(result, 16), int(flags, 16))


def test_all_vectors_are_in_some_lane_and_the_last_word_is_filled():
    spec = VectorSpec.make("multiply", "e2m1fn")
    blocks = list(packed_plan(spec, Lanes(3)).blocks())
    pairs = np.concatenate([np.stack([x.ravel() for x in b.operands], 1) for b in blocks])
    assert len(pairs) == 258 and len({tuple(p) for p in pairs.tolist()}) == 256


@cases(
    "wrong, cause",
    [
        (lambda a, b, r: [r[2], r[3], r[0], r[1]], "swapped-lanes: of the result, the halves of the word swapped"),
        (lambda a, b, r: [r[0]] * 4, "shared-lane: every lane delivers lane 0's result"),
        (lambda a, b, r: results(a[::-1], b), "swapped-lanes: of a, from the last element to the first"),
        (lambda a, b, r: results(a, [b[0]] * 4), "shared-lane: every lane takes b of lane 0"),
    ],
)
def test_what_words_say_of_a_design(wrong, cause):
    header, lines = lines_of(packed_plan(ADD, Lanes(4), count=300))
    for row in lines:
        a, b, r = ([int(word[12 - 4 * i : 16 - 4 * i], 16) for i in range(4)] for word in row[:3])
        row[2] = "".join(f"{x:04X}" for x in reversed(wrong(a, b, r)))
    report = judged(header, lines)
    assert report.causes == [cause] and report.exit_status == 1 and cause in str(report)
    kinds = [f.get("type") for f in ElementTree.fromstring(junit_of([report])).iter("failure")]
    assert cause.partition(":")[0] in kinds


def results(a, b):
    return ADD.evaluate((np.array(a, np.uint16), np.array(b, np.uint16))).result.tolist()


def test_one_wrong_lane_and_flags_of_one_lane_alone():
    header, lines = lines_of(packed_plan(ADD, Lanes(4), count=300))
    right = [list(row) for row in lines]
    for row in lines:
        row[2] = row[2][:8] + f"{int(row[2][8:12], 16) ^ 1:04X}" + row[2][12:]
    report = judged(header, lines, any_nan=True)
    assert [p.failures > 0 for p in report.parts] == [False, True, False, False] and report.causes == []
    for row in right:
        a, b = (np.array([int(word[12:], 16)], np.uint16) for word in row[:2])
        row[3] = f"{ADD.evaluate((a, b)).flags[0]:02X}"
    report = judged(header, right)
    assert report.causes == ["lane-flags: the flags are the first lane's alone, not those of all lanes"]
    assert report.failures == report.flag_failures > 0 and not any(p.failures for p in report.parts)
    assert judged(header, right, ignore_flags=True).ok
    assert judged(header, [row[:3] for row in right], ignore_flags=True).ok


def test_lanes_that_are_not_used_are_filled():
    header, lines = lines_of(packed_plan(ADD, Lanes(2, 64), count=50))
    lines[7][2] = "0001" + lines[7][2][4:]
    report = judged(header, lines)
    assert (report.failures, report.unfilled) == (1, [len(header) + 8]) and "lack zeros above lane 1" in str(report)
    lines[9][0] = "0001" + lines[9][0][4:]
    with pytest.raises(ValueError, match=rf"line {len(header) + 10}: a lacks zeros"):
        judged(header, lines)


@cases("change, text", [("lanes: 3", "the header says"), ("lanes: many", "are numbers"),
                        ("lane_flags: some", "or or each"), ("word_bits: 24", "do not fill"),
                        ("unused: xs", "ones or zeros")])  # fmt: skip
def test_headers_that_lie(change, text):
    header, lines = lines_of(packed_plan(ADD, Lanes(4), count=20))
    key = f"# {change.partition(':')[0]}:"
    header = [f"# {change}" if x.startswith(key) else x for x in header]
    with pytest.raises(ValueError, match=text):
        judged(header, lines, lanes=Lanes(4) if change == "lanes: 3" else None)


@cases(
    "part, lanes, text",
    [
        (ADD, Lanes(0), "lie in 1..4096"),
        (ADD, Lanes(257), "at most 4096"),
        (ADD, Lanes(5, 64), "lanes at most 4"),
        (ADD, Lanes(2, flags="some"), "or or each"),
        (VectorSpec.make("sqrt", "binary16"), Lanes(2, scalar=True), "no operand b"),
        (VectorSpec.make("add", "e5m2", rounding="sr"), Lanes(2), "no random bits"),
        (VectorSpec.make("add", "binary128"), Lanes(2), "up to 64 bits"),
        (UnitSpec.make("dot", "nvidia_v100_fp16"), Lanes(2), "is of a unit"),
        (VectorSpec.make("add", "binary16", space=Space.make(only="ties")), Lanes(2, scalar=True), "serves all"),
    ],
)
def test_what_cannot_be_packed(part, lanes, text):
    with pytest.raises(ValueError, match=text):
        PackedSpec.make(part, lanes)
