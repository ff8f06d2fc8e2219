"""The dot product of MX blocks in Verilog against BlockDotUnit, by generated benches; its planted faults, by name."""

import pytest

from softnum.vectors import UnitSpec
from softnum.vectors.benches.handshakes import handshake_named
from softnum.vectors.benches.ports import stated_design
from softnum.vectors.benches.roles import wiring_of
from tests.support.benches import right, simulation_in

MXFP4 = UnitSpec.make(
    "dot", "BlockDotUnit('binary32', operand=BlockFormat('e2m1fn', 'e8m0fnu', 8))", length=8, with_c=True
)
MXFP8 = UnitSpec.make(
    "dot", "BlockDotUnit('binary32', operand=BlockFormat('e4m3fn', 'e8m0fnu', 4))", length=4, with_c=True
)
E4M3 = {"EXP": 4, "MAN": 3, "NAN": 1, "K": 4}
#: what the parameter BUG plants, and the cause that is named
FAULTS = {
    1: "scale-ignored (of b)", 2: "scale-bias (a factor of 1/2)",
    3: "scale-nan-ignored (its bits are read as a number)",
    4: "swapped-lanes (of a, from the last element to the first)",  # of b is the same sum
    5: "truncation (toward_zero, overflow to infinity)", 6: "c-ignored", 7: "flush-to-zero (operands)",
    8: "scale-nan-ignored (read as 1)", 9: "ignored-operand (the scales of b, read as the other's)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "parameters", "count"),
    [(MXFP4, {}, 1500), (MXFP8, E4M3, 1500),
     pytest.param(MXFP4, {}, 200_000, marks=pytest.mark.slow),
     pytest.param(MXFP8, E4M3, 200_000, marks=pytest.mark.slow)],
    ids=["mxfp4", "mxfp8", "mxfp4-many", "mxfp8-many"],
)  # fmt: skip
def test_equal_in_every_bit(tmp_path, spec, parameters, count):
    run = simulation_in(tmp_path)("", ["mx_dot.v"], spec, "combinational", count, parameters)
    assert right(run, count).ok


@pytest.mark.parametrize("bug", [bug if bug in (1, 3) else pytest.param(bug, marks=pytest.mark.slow) for bug in FAULTS])
def test_planted_faults_are_named(tmp_path, bug):
    run = simulation_in(tmp_path)("", ["mx_dot.v"], MXFP4, "combinational", 1500, {"BUG": bug})
    causes = right(run, 1500).causes
    assert [f"{c.cause} ({c.detail})" if c.detail else c.cause for c in causes] == [FAULTS[bug]]


@pytest.mark.parametrize("names", [("scale_a", "scale_b"), ("a_scale_i", "b_scale_i"), ("sf0", "sf1")])
def test_ports_of_scales_by_their_names(names):
    first, second = names
    ports = f"{second}:in:8,{first}:in:8,a:in:32,b:in:32,c:in:32,result:out:32"
    wiring = wiring_of(stated_design("dot", ports), MXFP4, handshake_named("combinational"))
    assert (wiring.wires["scale_a"].port, wiring.wires["scale_b"].port) == names


def test_a_scale_that_no_name_shows():
    ports = "p:in:8,q:in:8,a:in:32,b:in:32,c:in:32,result:out:32"
    with pytest.raises(ValueError, match="no input is clearly scale_a"):
        wiring_of(stated_design("dot", ports), MXFP4, handshake_named("combinational"))
