"""Masks of SIMD lanes: what lanes hold that do not compute, flags, files, coverage, faults, and a design."""

import numpy as np
import pytest

from softnum.vectors import Lanes, PackedSpec, VectorSpec, check, coverage_of, packed_plan, write
from softnum.vectors.plans.spec import Block
from tests.support.benches import right, simulation_in
from tests.support.cases import cases

ADD = VectorSpec.make("add", "binary16")


def planned(mask, flags="or", count=400, **more):
    return packed_plan(ADD, Lanes(4, flags=flags, mask=mask, **more), count=count, seed=3)


@cases("flags", ["or", "each"])
@cases("mask", ["keep", "zero"])
def test_lanes_whose_bit_is_0_compute_nothing(mask, flags):
    plan, seen = planned(mask, flags), set()
    coverage, computing = coverage_of(plan.spec), 0
    for block in plan.blocks():
        a, b, *old, bits = block.operands
        computed = ADD.evaluate((a.ravel(), b.ravel()))
        want, raised = computed.result.reshape(a.shape), computed.flags.reshape(a.shape)
        on = bits[:, None] >> np.arange(4) & 1 != 0
        assert (block.result == np.where(on, want, old[0] if old else 0)).all() and len(old) == (mask == "keep")
        raised = np.where(on, raised, 0)
        assert (block.flags == (raised if flags == "each" else np.bitwise_or.reduce(raised, 1))).all()
        seen |= set(bits.tolist())
        coverage.add(block)
        computing += on.sum()
    assert seen == set(range(16)) and coverage.vectors == computing


@cases("dialect", ["softnum", "readmemh", "csv", "npz"])
def test_files(tmp_path, dialect):
    path = tmp_path / "v"
    plan = planned("keep", "each", 60, word_bits=96, ones=True)
    write(plan, path, dialect=dialect)
    report = check(path, dialect=dialect)
    assert report.ok and report.words == 60 and report.spec == plan.spec


FAULTS = [
    ("keep", lambda on, right, old: right, "masked-lanes: the mask is ignored, every lane computes"),
    ("keep", lambda on, right, old: np.where(on, old, right), "masked-lanes: lanes compute where the mask is 0"),
    (
        "keep",
        lambda on, right, old: np.where(on[:, ::-1], right, old),
        "masked-lanes: lane 0 has the mask's highest bit",
    ),
    ("keep", lambda on, right, old: np.where(on, right, 0), "masked-lanes: lanes whose mask is 0 are zero"),
    ("zero", lambda on, right, old: right, "masked-lanes: the mask is ignored, every lane computes"),
]


@cases("mask, made, cause", FAULTS)
def test_faults_are_named(tmp_path, mask, made, cause):
    plan, path = planned(mask), tmp_path / "v.txt"
    spec = plan.spec

    class Wrong:
        spec, count, method, seed = plan.spec, plan.count, plan.method, plan.seed

        def blocks(self):
            for block in plan.blocks():
                every, _ = spec.lane_results(spec.by_lane(block.operands))
                got = made(spec.active(block.operands), every, spec.idle(block.operands)).astype(every.dtype)
                yield Block(block.operands, None, got, block.flags)

    write(Wrong(), path)
    report = check(path)
    assert report.causes == [cause] and report.failures and report.idle_failures
    assert f"lanes whose mask is 0; lines {report.idle_lines[0]}" in str(report)


def test_flags_of_lanes_that_do_not_compute(tmp_path):
    plan, path = planned("zero"), tmp_path / "v.txt"
    spec = plan.spec

    class Wrong:
        spec, count, method, seed = plan.spec, plan.count, plan.method, plan.seed

        def blocks(self):
            for block in plan.blocks():
                every = spec.together(spec.lane_results(spec.by_lane(block.operands))[1])
                yield Block(block.operands, None, block.result, every)

    write(Wrong(), path)
    report = check(path)
    assert report.causes == ["lane-flags: the flags are those of all lanes, of those whose mask is 0 too"]


@cases(
    "lanes, says", [(Lanes(2, mask="merge"), "a mask of lanes is none or keep"), (Lanes(65, mask="zero"), "64 lanes")]
)
def test_unusable(lanes, says):
    with pytest.raises(ValueError, match=says):
        PackedSpec.make(VectorSpec.make("add", "e5m2"), lanes)


TWO = """
module two #(parameter BUG = 0) (input [15:0] a, b, rd, input [1:0] mask, output [15:0] result, output [4:0] flags);
    wire [15:0] p; wire [4:0] f0, f1;
    fp8_multiply low (.a(a[7:0]), .b(b[7:0]), .result(p[7:0]), .flags(f0));
    fp8_multiply high (.a(a[15:8]), .b(b[15:8]), .result(p[15:8]), .flags(f1));
    assign result = {mask[1] || BUG ? p[15:8] : rd[15:8], mask[0] || BUG ? p[7:0] : rd[7:0]};
    assign flags = (mask[0] ? f0 : 5'd0) | (mask[1] ? f1 : 5'd0);
endmodule
"""


def test_a_design_with_masks(tmp_path):
    spec = PackedSpec.make(VectorSpec.make("multiply", "e4m3fn"), Lanes(2, mask="keep"))
    run = lambda bug: simulation_in(tmp_path)(  # noqa: E731
        TWO, ["fp8_multiply.v"], spec, "combinational", 200, {"BUG": bug}
    )
    assert right(run(0), 200).ok
    assert right(run(1), 200).causes == ["masked-lanes: the mask is ignored, every lane computes"]
