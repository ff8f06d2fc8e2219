"""Words of lanes, with masks too, among the operations of a mixed file: files, headers, checks, a design."""

import shlex

import numpy as np
import pytest

from softnum.cli import build_app
from softnum.vectors import Lanes, MixedSpec, PackedSpec, VectorSpec, check, coverage_of, mixed_plan, write
from softnum.vectors.plans.spec import Block
from tests.support.benches import right, simulation_in
from tests.support.cases import cases

ADD, FMA = VectorSpec.make("add", "binary16", rounding="up"), VectorSpec.make("fma", "binary32")
PARTS = [
    PackedSpec.make(ADD, Lanes(4, mask="keep")), FMA, PackedSpec.make(ADD, Lanes(2, word_bits=64, scalar=True)),
    PackedSpec.make(VectorSpec.make("multiply", "e5m2"), Lanes(8, mask="zero")),
    VectorSpec.make("add", "bfloat16", rounding="sr", stochastic_bits=6),
]  # fmt: skip


def test_columns_and_results():
    planned = mixed_plan(PARTS, count=500)
    columns = " ".join(f"{c.name}:{c.width}" for c in planned.spec.columns)
    assert columns == "op:2 mode:2 format:3 a:64 b:64 c:64 old:64 mask:8 random:6 result:64 flags:5"
    coverage = coverage_of(planned.spec)
    for block in planned.blocks():
        coverage.add(block)
        again = planned.spec.evaluate(block.operands, block.random_bits)
        assert (again.result == block.result).all() and (again.flags == block.flags).all()
        for number, rows, part, unfilled in planned.spec.split(block):
            want = PARTS[number].evaluate(part.operands, part.random_bits)
            assert (want.result == part.result).all() and (want.flags == part.flags).all() and not unfilled.any()
            if number == 1:  # a line without lanes has no mask
                names = [c.name for c in planned.spec.columns]
                assert not any(block.operands[names.index(name)][rows].any() for name in ("old", "mask"))
    assert coverage.parts[1].vectors == 100 and coverage.parts[2].vectors == 200


@cases("dialect", ["softnum", "readmemb", "jsonl", "npz"])
def test_files(tmp_path, dialect):
    path = tmp_path / "v"
    write(mixed_plan(PARTS, count=300), path, dialect=dialect)
    report = check(path, dialect=dialect)
    assert report.ok and report.vectors == 300 and report.spec == MixedSpec.make(PARTS)


def test_header_and_command(tmp_path):
    path, again = tmp_path / "v.txt", tmp_path / "w.txt"
    parts = [PackedSpec.make(ADD, Lanes(2, word_bits=64, ones=True, mask="zero")), FMA]
    write(mixed_plan(parts, count=60, nan_box=True), path)
    (command,) = (line for line in path.read_text().splitlines() if line.startswith("# command: softnum "))
    words = [*shlex.split(command)[3:], "-o", str(again), "--no-coverage"]
    assert build_app()(words, standalone_mode=False) in (None, 0)
    assert again.read_text() == path.read_text()


def test_a_wrong_kind_is_told(tmp_path):
    planned, path = mixed_plan(PARTS, count=1000), tmp_path / "v.txt"

    class Wrong:
        spec, count, method, seed = planned.spec, planned.count, planned.method, planned.seed

        def blocks(self):
            for block in planned.blocks():
                result = block.result.copy()
                for number, rows, part, _ in planned.spec.split(block):
                    if number == 0:  # whose mask is ignored
                        every, _ = PARTS[0].lane_results(PARTS[0].by_lane(part.operands))
                        wrong = Block(part.operands, None, every, part.flags)
                        result[rows] = planned.spec.joined(0, wrong).result
                yield Block(block.operands, block.random_bits, result, block.flags)

    write(Wrong(), path)
    report = check(path)
    assert [part.failures > 0 for part in report.parts] == [True, False, False, False, False]
    assert report.parts[0].causes == ["masked-lanes: the mask is ignored, every lane computes"]
    assert "masked-lanes: the mask is ignored" in str(report) and report.failures == report.parts[0].failures


@cases(
    "parts, says",
    [
        ([PackedSpec.make(FMA, Lanes(4)), FMA], "words of mixed vectors have up to 64 bits, and a of 4 lanes has 128"),
        ([PackedSpec.make(ADD, Lanes(2, flags="each")), FMA], "flags of lanes are those of all together"),
        ([PackedSpec.make(ADD, Lanes(2, ones=True)), FMA], "hold ones where nan_box is said"),
        ([PARTS[0], PARTS[0]], "two parts are add up binary16x4m"),
    ],
)
def test_unusable(parts, says):
    with pytest.raises(ValueError, match=says):
        MixedSpec.make(parts)


UNIT = """
module unit #(parameter BUG = 0) (input vectorial, input [15:0] a, b, rd, input [1:0] mask,
    output [15:0] result, output [4:0] flags);
    wire [15:0] p; wire [4:0] f0, f1;
    wire [1:0] on = vectorial ? (BUG ? 2'b11 : mask) : 2'b01;
    fp8_multiply low (.a(a[7:0]), .b(b[7:0]), .result(p[7:0]), .flags(f0));
    fp8_multiply high (.a(a[15:8]), .b(b[15:8]), .result(p[15:8]), .flags(f1));
    assign result = vectorial ? {on[1] ? p[15:8] : rd[15:8], on[0] ? p[7:0] : rd[7:0]} : {8'd0, p[7:0]};
    assign flags = (on[0] ? f0 : 5'd0) | (on[1] ? f1 : 5'd0);
endmodule
"""


def test_a_design_with_scalar_and_vectorial_operations(tmp_path):
    multiply = VectorSpec.make("multiply", "e4m3fn")
    spec = MixedSpec.make([multiply, PackedSpec.make(multiply, Lanes(2, mask="keep"))])
    run = lambda bug: simulation_in(tmp_path)(  # noqa: E731
        UNIT, ["fp8_multiply.v"], spec, "combinational", 300, {"BUG": bug}, encode=["format.e4m3fnx2m:vectorial=1"]
    )
    assert right(run(0), 300).ok
    wrong = right(run(1), 300)
    assert not wrong.parts[0].failures and wrong.parts[1].failures
    assert np.any(["masked-lanes: the mask is ignored" in cause for cause in wrong.parts[1].causes])
