"""Black boxes and their units: presets found blind, other units, libraries, programs, and what no family has."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.inspect.identify import FAMILIES, Command, find_as, library_function, one_by_one, sum_order
from softnum.inspect.identify.box import Box
from softnum.inspect.identify.fit import Row
from softnum.inspect.identify.pools import draw
from softnum.inspect.identify.shrink import shrunk


def box_of(unit):
    return lambda a, b, c=None: sn.matmul(a, b, unit, c)


#: kinds of units that there are families of
SOUGHT = (
    sn.MadUnit, sn.FmaChainUnit, sn.FusedDotUnit, sn.ExactDotUnit, sn.TwoStageDotUnit, sn.GroupedDotUnit,
    sn.BlockDotUnit, sn.BlockFusedDotUnit,
)  # fmt: skip


def presets():
    """Each unit of real hardware that is of a kind that is looked for, in both outputs, once."""
    found = {}
    for name in sn.units():
        for output in (None, "binary32", "binary16"):
            try:
                unit = sn.unit(name, output)
            except ValueError:
                continue
            if type(unit) in SOUGHT:
                found.setdefault(unit, f"{name} ({output})" if output and unit != sn.unit(name) else name)
    return {name: unit for unit, name in found.items()}


PRESETS = presets()
FAST = {
    "nvidia_v100_fp16 (binary16)": sn.unit("nvidia_v100_fp16", "binary16"),
    **{
        name: sn.unit(name)
        for name in (
            "nvidia_h100_bf16",
            "amd_cdna1_fp32",
            "int8_int32",
            "amd_cdna3_bf8",
            "riscv_rvbna_bf16_vlen128",
            "riscv_rvbna_e4m3_vlen512",
            "ocp_mxfp8_e4m3",
            "arm_bfdot",
            "arm_fdot_e4m3",
        )
    },
}


def is_found(name, unit, found):
    """The unit itself, or one that no answer tells from it, which says in what it may differ."""
    assert found.unit is not None, found.reason
    assert name in found.equivalent, (found.unit, found.equivalent)
    if type(found.unit) is not type(unit):  # one product a group is a chain of multiply-adds
        assert getattr(unit, "terms", None) == 1, found.unit
        return
    differ = [f.name for f in fields(unit) if getattr(unit, f.name) != getattr(found.unit, f.name)]
    order = {"lanes", "chunk", "reduction", "product"}  # of which different ones can mean the same sum
    assert set(differ) <= {x.name for x in found.undecided} | order, (found.unit, differ)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_presets_are_found(name):
    found = sn.identify(box_of(FAST[name]), rows=2000)
    is_found(name, FAST[name], found)
    assert found.products <= 152_000 and found.rows >= 2000


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_all_presets_are_found(name):
    found = sn.identify(box_of(PRESETS[name]))
    is_found(name, PRESETS[name], found)
    assert found.products <= 250_000 and found.rows >= 100_000


@pytest.mark.parametrize("name", ["amd_cdna1_fp16", pytest.param("amd_cdna1_bf16", marks=pytest.mark.slow)])
def test_groups_that_are_exact_are_found(name):
    unit = sn.unit(name, disputed="matlab")
    found = sn.identify(box_of(unit), rows=2000)
    is_found(f"{name} (matlab)", unit, found)
    large = ["overflow"] if name == "amd_cdna1_fp16" else []  # no sum of products of binary16 is too large
    assert found.unit == unit and [x.name for x in found.undecided] == ["partial", *large]
    rows = [x for x in found.evidence if x.name == "terms"]
    assert rows and all(x.value == unit.terms for x in rows)


def test_how_c_is_aligned_is_measured():
    found = sn.identify(box_of(sn.unit("amd_cdna3_bf16")), rows=500)
    assert found.unit == sn.unit("amd_cdna3_bf16") and found.undecided == ()
    of = {x.name: x for x in reversed(found.evidence)}
    kept = of["c_fraction_bits"]
    assert of["alignment"].value == "toward_zero" and kept.value == 24
    assert (kept.c, kept.output) == (-(2.0**35), -(2.0**36))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nvidia_a100_bf16", "nvidia_h100_tf32", "nvidia_v100_fp16", "nvidia_h100_e4m3"])
def test_choices_of_others_are_found(name):
    unit = sn.unit(name, disputed="mma-sim")
    found = sn.identify(box_of(unit), rows=20_000)
    is_found(f"{name} (mma-sim)", unit, found)


PLANTED = {
    "six terms, rounded twice": sn.FusedDotUnit(
        6, 17, "binary32", operand="bfloat16", truncate_fraction=12, output_rounding="nearest_even", zero_exponent=-126
    ),
    "three lanes of rounded products": sn.MadUnit(
        "tf32", operand="tf32", product="tf32", lanes=4, chunk=12, reduction="pairwise", rounding="up"
    ),
    "chunks of fused sums": sn.ChunkedDotUnit(
        sn.FusedDotUnit(4, 20, "binary32", operand="bfloat16", k_order=(0, 1, 4, 5, 2, 3, 6, 7)), 24, rounding="up"
    ),
    "results flushed": sn.MadUnit("binary32", operand="bfloat16", flush_results="after"),
    "one rounding": sn.ExactDotUnit("binary16", operand="e4m3fn", rounding="nearest_away"),
}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in list(PLANTED)[3:]]


@pytest.mark.parametrize("name", [*list(PLANTED)[:3], *SLOW])
def test_units_that_no_preset_has(name):
    unit = PLANTED[name]
    found = sn.identify(box_of(unit), operand=unit.operand, rows=2000)
    assert found.unit is not None and found.equivalent == ()
    assert type(found.unit) is type(unit) and found.unit.result == unit.result
    rng = np.random.default_rng(3)
    for scale in (1, 2.0**-70, 2.0**30):
        x, y = (sn.quantize(rng.standard_normal(s) * scale, f, overflow="saturate") for s, f in (
            ((30, 26), unit.operand[0]), ((26, 30), unit.operand[1])
        ))  # fmt: skip
        assert np.array_equal(sn.matmul(x, y, unit), sn.matmul(x, y, found.unit), equal_nan=True)
    if name in ("six terms, rounded twice", "chunks of fused sums"):
        assert found.unit == unit


@pytest.mark.slow
def test_a_promoted_sum_is_found():
    """Of chunks longer than half of what is asked, by pairs alone: DeepSeek-V3's sums of FP8."""
    unit = sn.ChunkedDotUnit(sn.unit("nvidia_h100_e4m3"), 128)
    found = sn.identify(box_of(unit), rows=5000)
    assert (found.unit.chunk, found.unit.inner.terms, found.unit.inner.fraction_bits) == (128, 32, 13)
    assert found.equivalent == ()  # none of the presets has chunks


def test_a_sum_that_is_converted_at_the_end():
    """A library's product: a tensor core's sum in binary32, whose result has the operands' format."""
    core = sn.unit("nvidia_h100_fp16")

    def product(a, b):
        return sn.quantize(sn.matmul(a, b, core), "binary16")

    found = sn.identify(product, operand="binary16", output="binary16", rows=2000)
    unit = found.unit
    assert (unit.accumulator, unit.rounding) == (sn.format("binary16"), "nearest_even")
    assert (unit.inner.terms, unit.inner.fraction_bits, unit.inner.accumulator) == (16, 25, core.accumulator)
    rng = np.random.default_rng(5)
    for scale in (1, 2.0**-9, 2.0**6):
        x, y = (sn.quantize(rng.standard_normal(s) * scale, "binary16") for s in ((30, 200), (200, 30)))
        assert np.array_equal(sn.matmul(x, y, unit), product(x, y), equal_nan=True)


@pytest.mark.slow
def test_an_inner_sum_is_cut_off_where_a_rounding_has_the_same_answers():
    """Sums too large are infinite here as they are to nearest, and few random rows tell what is cut off from that."""
    core = sn.unit("nvidia_h100_bf16")
    found = sn.identify(
        lambda a, b: sn.quantize(sn.matmul(a, b, core), "binary16"), operand="bfloat16", output="binary16", rows=500
    )
    assert (found.unit.inner.output_rounding, found.unit.inner.overflow) == ("toward_zero", "always_infinity")


BLOCKS = {
    "sixteen products, groups of four": sn.BlockFusedDotUnit(
        16, 20, "binary32", operand="mxfp4", group=4, output_rounding="nearest_even"
    ),
    "blocks summed in bfloat16": sn.BlockDotUnit(
        "binary32", operand="mxfp8_e5m2", inner=sn.MadUnit("bfloat16", operand="e5m2"), rounding="toward_zero"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_units_of_blocks_that_no_preset_has(name):
    unit = BLOCKS[name]
    found = sn.identify(box_of(unit), rows=2000)
    assert type(found.unit) is type(unit) and found.equivalent == (), found
    rng = np.random.default_rng(4)
    for scale in (1, 2.0**-60, 2.0**30):
        x, y = (rng.standard_normal((24, 200)) * scale * 2.0 ** rng.integers(-9, 9, (24, 200)) for _ in "xy")
        x, y = sn.array(x, unit.operand[0], axis=-1), sn.array(y, unit.operand[1], axis=-1).T
        assert np.array_equal(sn.matmul(x, y, unit), sn.matmul(x, y, found.unit), equal_nan=True)


@pytest.mark.slow
def test_blocks_without_c_and_of_a_whole_axis():
    unit = sn.unit("nvidia_tcgen05_mxf8f6f4")
    found = sn.identify(lambda a, b: sn.matmul(a, b, unit), rows=300)
    assert "nvidia_tcgen05_mxf8f6f4" in found.equivalent and "C" in {x.name for x in found.undecided}
    whole = sn.BlockDotUnit("binary32", operand=sn.BlockFormat("e4m3fn", "e8m0fnu", None))
    assert sn.identify(box_of(whole), operand=whole.operand, rows=300).unit == whole


def test_rows_of_blocks_get_simpler():
    unit, other = sn.unit("ocp_mxfp4_e2m1"), sn.BlockDotUnit("binary16", operand="mxfp4")
    box = Box(box_of(unit), 5000)
    box.carries(unit.operand, sn.format("binary32"))
    x = draw("plain", (unit.operand, sn.format("binary32"), sn.format("binary32")), "C", 3, (1, 70, 1))
    bits = int(box.block(x.a, x.b, x.c)[0, 0])
    row = Row(x.kind, tuple(x.a[0].tolist()), tuple(x.b[:, 0].tolist()), float(x.c[0, 0]), bits)
    assert row.predicted(other) != row.bits == row.predicted(unit)
    small = shrunk(row, other, box, unit.operand, sn.format("binary32"))
    assert small.predicted(other) != small.bits == small.predicted(unit) and len(small.a) == 2 < len(row.a) == 73


def test_evidence_of_blocks_is_what_the_box_gives():
    unit = sn.unit("nvfp4")
    found = sn.identify(box_of(unit), operand="nvfp4", output="binary32", rows=200)
    assert found.unit == unit
    for x in found.evidence:
        codes = x.codes(unit)
        arrays = [
            sn.BlockArray(
                np.array(codes[name], np.uint8), np.array(codes[f"{name}_scales"], np.uint8), "nvfp4", -1,
                float(sn.decode(np.array(codes[f"{name}_tensor_scale"], np.uint32), "binary32")),
            )
            for name in "ab"
        ]  # fmt: skip
        got = sn.dot(*arrays, unit, None if x.c is None else np.float32(x.c))
        assert np.array_equal(float(got), x.output, equal_nan=True), x
        assert len(x.a) == len(x.b) and len(x.a_scales) == -(-len(x.a) // 16) + 1
    assert {"a_scales", "b_scales"} <= set(found.to_dict()["evidence"][-1])


@pytest.mark.slow
def test_no_family_of_blocks_has_it():
    unit = sn.unit("ocp_mxfp4_e2m1")

    def odd(a, b, c=None):
        d = sn.matmul(a, b, unit, c)
        return np.where(d == 0.5, 1, d)

    found = sn.identify(odd, operand="mxfp4", output="binary32", rows=500, longest=40)
    refuted = found.refutation
    assert found.unit is None and (refuted.output, refuted.expected) == (1.0, 0.5)
    assert len(refuted.a) == len(refuted.a_scales) == 1 and "by scales" in str(refuted) and refuted.trace is not None
    with pytest.raises(ValueError, match="refuses 1 \\* 1, as numbers and in blocks"):
        sn.identify(box_of(unit), operand="mxfp8_e4m3")


def truncated_multiplier(a, b, c=None):
    """Four terms a step, but products lose what lies below 2^-9 of their power of two."""
    unit = sn.FusedDotUnit(4, 40, "binary32", operand=("binary64", "bfloat16"))
    ones = np.ones((4, 1), np.float32)
    out = np.zeros((a.shape[0], b.shape[1])) if c is None else c.astype(np.float64)
    for first in range(0, a.shape[1], 4):
        x, y = a[:, first : first + 4].astype(np.float64), b[first : first + 4].T.astype(np.float64)
        significand, exponent = np.frexp(x[:, None] * y)
        products = np.ldexp(np.trunc(significand * 1024), exponent - 10)
        sums = sn.matmul(products[..., None, :], ones[: products.shape[-1]], unit, out[..., None, None])
        out = sums[..., 0, 0].astype(np.float64)
    return out


@pytest.mark.slow
def test_what_no_family_has():
    found = sn.identify(truncated_multiplier, operand="bfloat16", output="binary32", rows=500, longest=20)
    assert found.unit is None and found.reason.startswith("none of the families")
    refuted = found.refutation
    x, y = (np.array(v, np.float32) for v in (refuted.a, refuted.b))
    c = None if refuted.c is None else np.array([[refuted.c]], np.float32)
    assert truncated_multiplier(x[None], y[:, None], c).item() == refuted.output
    assert sn.matmul(x[None], y[:, None], refuted.unit, c).item() == refuted.expected != refuted.output
    assert np.count_nonzero(x * y) <= 2 and len(refuted.trace.steps) > 0
    shown = str(found)
    assert "the box gives" in shown and "closest:" in shown and json.dumps(found.to_dict())


def test_stochastic_rounding_and_other_company():
    unit, calls = sn.MadUnit("bfloat16", operand="bfloat16", rounding="stochastic"), []

    def box(a, b, c=None):
        calls.append(1)
        return sn.matmul(a, b, unit, c, key=len(calls))

    found = sn.identify(box, operand="bfloat16", output="bfloat16", rows=100)
    assert found.unit is None and "stochastically" in found.reason and found.calls == len(calls)

    def by_shape(a, b, c=None):
        return sn.matmul(a, b, sn.unit("nvidia_a100_fp16" if len(a) > 1 else "nvidia_v100_fp16"), c)

    found = sn.identify(by_shape, operand="binary16", output="binary32", rows=100)
    assert found.unit is None and "one_by_one" in found.reason
    assert "nvidia_v100_fp16" in sn.identify(one_by_one(by_shape), operand="binary16", rows=500).equivalent


def test_evidence_is_what_the_box_gives():
    unit = sn.unit("nvidia_a100_bf16")
    found = sn.identify(box_of(unit), rows=500)
    names = {x.name for x in found.evidence}
    assert {"format of a", "format of C", "format of the result", "stochastic", "order", "fraction_bits", "alignment",
            "output_rounding", "min_exponent", "zero_exponent", "overflow"} <= names  # fmt: skip
    for x in found.evidence:
        c = None if x.c is None else np.array([[x.c]])
        got = sn.matmul(np.array([x.a]), np.array(x.b)[:, None], unit, c).item()
        assert np.array_equal(got, x.output, equal_nan=True), x
        codes = x.codes(unit)
        assert sn.decode(np.array(codes["a"], np.uint16), "bfloat16").tolist() == pytest.approx(x.a, nan_ok=True)
    for x in found.evidence:
        if x.name == "min_exponent":
            assert x.value == -132


def test_what_is_asked_is_bounded():
    calls = []

    def box(a, b, c=None):
        calls.append(a.shape[0] * b.shape[1])
        return sn.matmul(a, b, sn.unit("nvidia_v100_fp16"), c)

    found = sn.identify(box, rows=300)
    assert sum(calls) == found.products and len(calls) == found.calls
    assert found.to_dict()["products"] == found.products <= 150_300
    assert sn.identify(box_of(sn.unit("nvidia_v100_fp16")), rows=300).to_dict() == found.to_dict()


def test_what_is_refused():
    with pytest.raises(ValueError, match="gives 2.0 for 1 \\* 1"):
        sn.identify(lambda a, b: 2 * (a @ b))
    with pytest.raises(ValueError, match=r"array of shape \(1,\)"):
        sn.identify(lambda a, b: np.ones(1))
    with pytest.raises(ValueError, match="longest must lie in 8..1024, got 4"):
        sn.identify(lambda a, b: a @ b, longest=4)
    with pytest.raises(ValueError, match="operand is one format or a pair, got 3"):
        sn.identify(lambda a, b: a @ b, operand=("e5m2",) * 3)


def test_more_families_join_in():
    unit = sn.ChunkedDotUnit(sn.MadUnit("binary16", operand="e5m2"), 64)
    before = dict(FAMILIES)
    try:
        find_as("mine", lambda facts: [unit], lambda unit, facts: {"rounding": ("nearest_even", "toward_zero")})
        found = sn.identify(box_of(unit), operand="e5m2", output="binary32", rows=500)
    finally:
        FAMILIES.clear()
        FAMILIES.update(before)
    assert found.unit == unit
    assert [x.value for x in found.evidence if x.name == "rounding"] == ["nearest_even"]


# -- sums of other libraries -----------------------------------------------------------------------------------------
def running_sum(a, b):
    return np.array([[np.cumsum(a[i] * b[:, j])[-1] for j in range(b.shape[1])] for i in range(len(a))])


def test_numpys_running_sum():
    found = sn.identify(running_sum, operand="binary32", rows=1000)
    assert found.unit == sn.MadUnit("binary32", operand="binary32", product="binary32") and found.start == -0.0
    assert "from a C of -0" in str(found)


def judged(box, found):
    """What is told of a box, whose order depends on the CPU: a unit has its answers, or a refutation is one."""
    if found.unit is None:
        row = found.refutation
        x, y = (np.array(v, np.float32) for v in (row.a, row.b))
        assert np.array_equal(box(x[None], y[:, None]).item(), row.output, equal_nan=True)
        c = None if row.c is None else np.array([[row.c]])
        assert repr(sn.matmul(x[None], y[:, None], row.unit, c).item()) == repr(row.expected) != repr(row.output)
    else:
        rng = np.random.default_rng(5)
        x, y = rng.standard_normal((20, 100)).astype(np.float32), rng.standard_normal((100, 20)).astype(np.float32)
        c = None if found.start is None else np.full((20, 20), found.start)
        assert (sn.matmul(x, y, found.unit, c) == box(x, y)).all()
    assert any(x.name == "order" for x in found.evidence)


@pytest.mark.parametrize("name", ["matmul", *(pytest.param(name, marks=pytest.mark.slow) for name in ("dot", "sum"))])
def test_numpys_sums(name):
    one = {
        "dot": lambda a, b: np.dot(a[0], b[:, 0]).reshape(1, 1),
        "matmul": lambda a, b: a @ b,
        "sum": lambda a, b: (a[0] * b[:, 0]).sum().reshape(1, 1),
    }
    box = one_by_one(one[name])
    judged(box, sn.identify(box, operand="binary32", rows=500))


def softmax(t):
    """Of terms e^x, the sum of them under 1."""
    e = t.astype(np.float32)
    return (e / e.sum()).max()


@pytest.mark.parametrize("lanes, chunk, reduction", [(4, 12, "tree"), (1, None, "sequential"), (3, None, "sequential")])
def test_orders_of_positive_sums(lanes, chunk, reduction):
    unit = sn.MadUnit("binary32", operand="binary32", lanes=lanes, chunk=chunk, reduction=reduction)
    order = sum_order(lambda x: sn.dot(x.astype(np.float32), np.ones(30, np.float32), unit), 30)
    assert unit in order.units("binary32")
    small = sn.MadUnit("bfloat16", operand="bfloat16", lanes=lanes, chunk=chunk, reduction=reduction)
    terms = lambda x: sn.dot(x.astype(np.float32), np.ones(30, np.float32), small)  # noqa: E731
    assert str(sum_order(terms, 30, small=1.5 * 2.0**-9)) == str(order)


def test_softmaxs_sum():
    assert str(sum_order(softmax, 9)) == "((((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))) + 8)"  # NumPy's
    fused = sn.FusedDotUnit(4, 26, "binary32", operand="binary32")
    at_once = sum_order(lambda x: sn.dot(x.astype(np.float32), np.ones(4, np.float32), fused), 4, small=2.0**-24)
    assert str(at_once) == "(0 + 1 + 2 + 3)" and at_once.units("binary32") == ()
    with pytest.raises(ValueError, match="two small terms are lost beside a large one wherever they stand"):
        sum_order(lambda x: x.astype(np.float32).sum(), 5, small=2.0**-40)
    with pytest.raises(ValueError, match="the same for one large term and for two"):
        sum_order(lambda x: x.max(), 5)
    with pytest.raises(ValueError, match="is not lost beside"):
        sum_order(lambda x: x.sum(), 5)
    with pytest.raises(ValueError, match="no tree has all answers"):
        sum_order(lambda x: x.astype(np.float32).sum() if x[3] != 1 else x.sum() + x[1], 6, small=2.0**-24)
    with pytest.raises(ValueError, match="n must lie in 1..4096, got 0"):
        sum_order(softmax, 0)


@pytest.mark.slow
def test_pytorchs_softmax():
    torch = pytest.importorskip("torch")

    def largest(t):
        with np.errstate(divide="ignore"):
            return torch.softmax(torch.from_numpy(np.log(t.astype(np.float32))), 0).max().item()

    order = sum_order(largest, 40)
    of = lambda x: torch.softmax(torch.from_numpy(np.asarray(x, np.float32)), 0).numpy()  # noqa: E731
    rng = np.random.default_rng(2)
    for _ in range(20):
        x = rng.uniform(-19, -17.4, 40)
        e = np.array([of([0, each])[1] for each in x])  # beside 1 they are lost, so that the sum is 1
        x[7], e[7] = 0.0, 1.0
        assert of(x)[7] == np.float32(1) / added(order.tree, e) != 1


def added(tree, terms):
    """The sum of terms in an order, in binary32."""
    if not isinstance(tree, list):
        return terms[tree]
    first, *rest = (added(child, terms) for child in tree)
    for x in rest:
        first = np.float32(first + x)
    return first


@pytest.mark.slow
def test_pytorchs_sums():
    torch = pytest.importorskip("torch")
    for one in (
        lambda a, b: (torch.from_numpy(a) @ torch.from_numpy(b)).numpy(),
        lambda a, b: (torch.from_numpy(a[0]) * torch.from_numpy(b[:, 0])).sum().numpy().reshape(1, 1),
        lambda a, b: torch.cumsum(torch.from_numpy(a[0]) * torch.from_numpy(b[:, 0]), 0)[-1:].numpy().reshape(1, 1),
    ):
        judged(one_by_one(one), sn.identify(one_by_one(one), operand="binary32", rows=1000))


# -- libraries and programs ------------------------------------------------------------------------------------------
MAC_C = """
#include <math.h>
#include <stdint.h>
void mac(const float *a, const float *b, const float *c, float *out, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = c[i * n + j];
            for (int64_t l = 0; l < k; l++) sum = fmaf(a[i * k + l], b[l * n + j], sum);
            out[i * n + j] = sum;
        }
}
"""
MAC_PY = """
import sys
for line in sys.stdin:
    x = [int(word, 16) for word in line.split()]
    k = len(x) // 2
    byte = lambda v: v - 256 * (v > 127)
    print(f"{(sum(byte(p) * byte(q) for p, q in zip(x[:k], x[k:])) + x[-1]) % 2**32:x}", flush=True)
"""
MAC_V = """
module mac(input signed [7:0] a, input signed [7:0] b, input signed [31:0] acc, output signed [31:0] sum);
  assign sum = acc + a * b;
endmodule

module bench;
  reg signed [7:0] a, b;
  reg signed [31:0] acc;
  wire signed [31:0] sum;
  reg [8*16384-1:0] line;
  reg [31:0] words [0:4095];
  integer n, k, i, got, value;
  reg [7:0] ch;
  mac dut(a, b, acc, sum);
  initial begin
    n = 0; value = 0; got = 0;
    while (1) begin
      i = $fgetc(32'h8000_0000);
      if (i == -1) $finish;
      if (i == 10 || i == 32) begin
        if (got) begin words[n] = value; n = n + 1; end
        value = 0; got = 0;
        if (i == 10) begin
          k = (n - 1) / 2;
          acc = words[n - 1];
          for (i = 0; i < k; i = i + 1) begin
            a = words[i]; b = words[k + i];
            #1 acc = sum;
          end
          $display("%h", acc);
          $fflush;
          n = 0;
        end
      end else begin
        value = value * 16 + (i >= 97 ? i - 87 : i - 48);
        got = 1;
      end
    end
  end
endmodule
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boxes")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "mac.c").write_text(MAC_C)
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", folder / "mac.so", folder / "mac.c", "-lm"]
    subprocess.run(command, check=True, timeout=120)
    return folder / "mac.so"


def test_a_library(built):
    found = sn.identify(library_function(built, "mac"), rows=1000)
    assert found.unit == sn.MadUnit("binary32", operand="binary32") and "amd_cdna1_fp32" in found.equivalent
    with pytest.raises(ValueError, match="has no symbol 'mad'"):
        library_function(built, "mad")
    with pytest.raises(FileNotFoundError):
        library_function(built.with_name("none.so"), "mac")
    with pytest.raises(ValueError, match="no library that can be loaded"):
        library_function(built.with_name("mac.c"), "mac")


BLOCKS_PY = """
import sys
import numpy as np, softnum as sn
unit = sn.unit("ocp_mxfp4_e2m1")
for line in sys.stdin:
    x = [int(word, 16) for word in line.split()]
    side = len(x) // 2
    k = side - -(-side // 33)
    y = np.array(x[:-1], np.uint8)
    a, b = (sn.BlockArray(z[:k], z[k:], "mxfp4") for z in (y[:side], y[side:]))
    got = sn.dot(a, b, unit, sn.decode(np.array([x[-1]], np.uint32), "binary32")[0])
    print(f"{int(sn.encode([got], 'binary32')[0]):x}", flush=True)
"""


def test_a_program_that_takes_blocks(tmp_path):
    (tmp_path / "blocks.py").write_text(BLOCKS_PY)
    with Command([sys.executable, tmp_path / "blocks.py"], operand="mxfp4", output="binary32") as program:
        found = sn.identify(program, operand="mxfp4", output="binary32", rows=200, longest=40)
        with pytest.raises(TypeError, match="takes BlockArrays of mxfp4_e2m1, got ndarray"):
            program(np.ones((1, 1)), np.ones((1, 1)))
    assert found.unit == sn.unit("ocp_mxfp4_e2m1")


def test_a_program(tmp_path):
    (tmp_path / "mac.py").write_text(MAC_PY)
    with Command([sys.executable, tmp_path / "mac.py"], operand="q8.0", output="q32.0") as program:
        found = sn.identify(program, operand="q8.0", output="q32.0", rows=200)
    assert found.unit == sn.unit("int8_int32") and "int8_int32" in found.equivalent
    assert program.process.returncode == 0
    for code, message in (("print('zz')", "answers 'zz', no code of q32.0"), ("", "with 0 of 1 answers given")):
        command = Command([sys.executable, "-c", code], operand="q8.0", output="q32.0")
        with command as program, pytest.raises(OSError, match=message):
            program(np.ones((1, 1)), np.ones((1, 1)))


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog (iverilog)")
def test_a_mac_in_verilog(tmp_path):
    (tmp_path / "mac.v").write_text(MAC_V)
    subprocess.run(["iverilog", "-g2012", "-o", "mac.vvp", "mac.v"], cwd=tmp_path, check=True, timeout=60)
    with Command(["vvp", "-n", tmp_path / "mac.vvp"], operand="q8.0", output="q32.0") as program:
        found = sn.identify(program, operand="q8.0", output="q32.0", rows=200)
    assert found.unit == sn.unit("int8_int32")


def test_vdpbf16ps(tmp_path):
    import ctypes
    import platform

    compiler = shutil.which("gcc") or shutil.which("clang")
    if platform.machine() not in ("x86_64", "AMD64") or compiler is None:
        pytest.skip("needs an x86-64 CPU and a C compiler")
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", tmp_path / "dot.so", Path(__file__).with_name("x86_dot.c")]
    if subprocess.run(command, capture_output=True, check=False, timeout=120).returncode:
        pytest.skip("the compiler cannot build AVX512_BF16")
    cpu = ctypes.CDLL(str(tmp_path / "dot.so"))
    if not cpu.has_bf16():
        pytest.skip("this CPU has no AVX512_BF16")
    pointer = np.ctypeslib.ndpointer
    cpu.dot_bf16.argtypes = [ctypes.c_long, ctypes.c_uint, *[pointer(np.uint16)] * 2, *[pointer(np.float32)] * 2]
    cpu.dot_bf16.restype = None

    def box(a, b, c=None):
        (m, k), n = a.shape, b.shape[1]
        out = np.zeros((m, n), np.float32) if c is None else c.astype(np.float32)
        total, padded = m * n, -(-m * n // 16) * 16
        code = lambda x: sn.encode(np.ascontiguousarray(x), "bfloat16").astype(np.uint16)  # noqa: E731
        for first in range(0, k, 2):
            x, y = np.zeros((padded, 2), np.uint16), np.zeros((padded, 2), np.uint16)
            pair = a[:, first : first + 2], b[first : first + 2].T
            x[:total, : pair[0].shape[1]] = code(np.repeat(pair[0], n, 0))
            y[:total, : pair[1].shape[1]] = code(np.tile(pair[1], (m, 1)))
            start, end = np.zeros(padded, np.float32), np.empty(padded, np.float32)
            start[:total] = out.ravel()
            cpu.dot_bf16(padded, 0x1F80, x.ravel(), y.ravel(), start, end)
            out = end[:total].reshape(m, n)
        return out

    found = sn.identify(box, operand="bfloat16", output="binary32", rows=1000)
    is_found("x86_avx512_bf16", sn.unit("x86_avx512_bf16"), found)


def test_the_command_line(tmp_path, built):
    (tmp_path / "boxes.py").write_text(
        "import numpy as np, softnum as sn\n"
        "def core(a, b, c=None):\n    return sn.matmul(a, b, sn.unit('nvidia_v100_fp16'), c)\n"
        "def by_rows(a, b):\n    out = sn.matmul(a, b, sn.unit('nvidia_v100_fp16'))\n"
        "    return out if len(a) == 1 else np.nextafter(out, np.float32(9))\n"
        "number = 3\n"
    )
    run = lambda *words: CliRunner().invoke(build_app(), ["identify", *map(str, words)])  # noqa: E731
    file, out = tmp_path / "boxes.py", tmp_path / "found.json"
    shown = run(f"{file}:core", "--rows", 300, "--json", "--out", out)
    assert shown.exit_code == 0 and json.loads(shown.stdout) == json.loads(out.read_text())
    assert "nvidia_v100_fp16" in json.loads(shown.stdout)["equivalent"]
    shown = run("--library", f"{built}:mac", "--rows", 300, "--operand", "binary32")
    assert shown.exit_code == 0 and "MadUnit('binary32', operand='binary32')" in shown.stdout
    shown = run(f"{file}:by_rows", "--operand", "binary16", "--output", "binary32")
    assert shown.exit_code == 1 and "a dot product alone has another result than among others" in shown.stdout
    shown = run(f"{file}:by_rows", "--operand", "binary16", "--output", "binary32", "--rows", 200, "--alone")
    assert shown.exit_code == 0 and "the same: nvidia_v100_fp16" in shown.stdout
    for words in (
        (), (f"{file}:core", "--library", f"{built}:mac"), (f"{file}:number",), ("--library", "mac"),
        ("--command", "cat"), (f"{file}:core", "--start", "binary32"), (tmp_path / "none.py",),
    ):  # fmt: skip
        assert run(*words).exit_code == 2, words
