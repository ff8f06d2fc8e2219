"""Disclosures: an interpreter that has the page's data alone gives the unit's bits, and contradictions are refused."""

import copy
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import softnum as sn
from softnum.mac.family import family_of, register
from softnum.mac.mad import Unit
from softnum.mac.products.engines import definition_of
from tests.support.block_fused_units import ALL as BLOCK_FUSED
from tests.support.cases import cases
from tests.support.disclosed import Page
from tests.support.mad_units import NEW
from tests.support.matmul_units import ALL as OTHERS
from tests.support.matmul_units import TERNARY
from tests.support.preset_list import ALL
from tests.support.two_stage_units import UNITS as TWO_STAGE

LEAST = 12  # vectors of a page

PROMOTED = sn.ChunkedDotUnit(sn.unit("nvidia_h100_e4m3"), 40)
FREE = [
    sn.ExactDotUnit("e6m3", operand="e5m2"),
    sn.ExactDotUnit("posit16", operand="posit8"),
    sn.ExactDotUnit("takum_linear12", operand=("posit8_es0", "takum_linear8")),
    sn.ExactDotUnit("q8.8", operand=("q4.4", TERNARY), overflow="wrap"),
    sn.ExactDotUnit("binary32", operand="binary16", rounding="down"),
    sn.ExactDotUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=7),
    sn.MadUnit("posit16", operand="posit8"),
    sn.MadUnit("takum_linear16", operand="posit8", product="posit16", chunk=3, lanes=2),
    sn.MadUnit("e6m9", operand="e5m2", flush_inputs=True, flush_results="before", product="e5m2"),
    sn.MadUnit("bfloat16", operand="e5m2", rounding="up", flush_inputs=True, flush_results="after"),
    sn.MadUnit("bfloat16", operand="e5m2", rounding="down", compensated="kahan", chunk=4),
    sn.MadUnit("binary8p4ue", operand=("binary8p4ue", "binary8p3se"), product="binary8p3sf"),
    sn.FusedDotUnit(
        4, 20, "binary32", "binary8p3se", output="binary8p4ue", output_rounding="to_odd", overflow="p3109_v3_2_1"
    ),
    sn.MadUnit("e6m9", operand="e5m2", lanes=5, reduction="pairwise", rounding="down", flush_inputs="positive"),
    sn.MadUnit("q8.8", operand="q4.4", product="e4m3", lanes=3, chunk=7, reduction="tree", overflow="wrap"),
    sn.MadUnit(
        "e6m9", operand="e5m2", product="e4m3", rounding="stochastic_even", product_rounding="stochastic_floor",
        stochastic_bits=9, lanes=2, chunk=5,
    ),
    sn.FmaChainUnit("binary32", operand="bfloat16", flush_inputs=True, flush_results="before", k_order=(2, 0, 1)),
    sn.FmaChainUnit("e5m10", operand=("e4m3fn", "e5m2"), rounding="up", flush_results="subnormal", overflow="saturate"),
    sn.FusedDotUnit(
        3, 8, "e6m9", operand=("e5m2", "e4m3fn"), output="binary16", output_rounding="nearest_even", min_exponent=-9,
        zero_exponent=-31,
    ),
    sn.FusedDotUnit(2, 11, "binary8p3se", operand="binary8p3se", overflow="always_infinity", k_order=(3, 1, 2, 0)),
    sn.FusedDotUnit(2, 11, "binary16", operand="e5m2", output="e4m3fn", c="after", overflow="saturate"),
    PROMOTED,
    sn.ChunkedDotUnit(sn.ExactDotUnit("q8.8", operand="q4.4"), 5, "q4.4", "up", "wrap"),
    sn.ChunkedDotUnit(sn.MadUnit("e6m9", operand="e5m2", lanes=3, rounding="down"), 5, "e6m9", "down"),
    sn.BlockDotUnit(
        "binary32", operand="mxfp4", inner=sn.FusedDotUnit(4, 6, "binary16", operand="e2m1fn"), product="bfloat16"
    ),
    sn.BlockDotUnit(
        "e6m9", operand=("nvfp4", sn.BlockFormat("q2.6", "e4m3fn", 16)), rounding="stochastic", stochastic_bits=5,
        product="q8.8", product_rounding="stochastic",
        inner=sn.MadUnit("e6m9", operand=("e2m1fn", "q2.6"), rounding="stochastic", stochastic_bits=5, lanes=2),
    ),
    sn.BlockDotUnit("binary32", operand=sn.BlockFormat("e3m2fn", "e5m2", None)),
]  # fmt: skip
FREE += [*TWO_STAGE[2:], *BLOCK_FUSED[3:], *(
    sn.GroupedDotUnit(n, accumulator, operand=operand, **options) for n, accumulator, operand, options in (
        (3, "binary16", ("e5m2", "e4m3fn"), {"rounding": "nearest_even"}),
        (4, "e4m5", "e5m2", {"partial": "e5m2", "guard_bits": 1}),
        (4, "e4m3fn", "e4m3fn", {"partial_rounding": None, "rounding": "down"}),
        (2, "e5m2", "e5m2", {"reduction": "exact"}),
        (5, "bfloat16", "e5m2", {"reduction": "exact", "partial_rounding": "down", "partial": "binary16"}),
        (5, "e5m3", "e4m3", {"reduction": "exact", "partial_rounding": None, "rounding": "down"}),
        (4, "binary8p4se", "binary8p3se", {}),
    )
)]  # fmt: skip
FREE += [sn.MadUnit("e4m3", operand="e5m2", rounding=mode, lanes=3, stochastic_bits=6) for mode in (
    "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "away_from_zero", "to_odd", "stochastic_fast",
    "stochastic_odd", "stochastic_equal",
)]  # fmt: skip


ROWS = (sn.FusedDotUnit, sn.FmaChainUnit, sn.TwoStageDotUnit, sn.GroupedDotUnit, sn.BlockFusedDotUnit)


def presets():
    """Every preset in each output and by each choice, of equal units one."""
    made = {}
    for name, output in ALL:
        for disputed in (None, "mma-sim"):
            try:
                made.setdefault(sn.unit(name, output, disputed=disputed), (name, output, disputed))
            except ValueError:  # nothing of it is disputed
                assert disputed is not None
    return made


PRESETS = presets()


def data_of(unit) -> dict:
    """The data of a unit's page, as a file has them."""
    return json.loads(unit.disclosure().to_json())


def check_page(unit):
    """The page's vectors are what its own words say, and the unit comes back from it."""
    data = data_of(unit)
    page = Page(data)
    assert len(data["vectors"]) >= LEAST
    for vector in data["vectors"]:
        assert page.dot(vector) == int(vector["result"], 16), vector
    back = sn.unit(json.dumps(data))
    assert back == unit and repr(back) == repr(unit) and back.evidence == unit.evidence and back.preset == unit.preset
    return page


def drawn(fmt, rng, shape, kind):
    """Codes: any; of numbers around 1; of small ones; a few specials, zeros and ends."""
    top = 1 << fmt.bits
    any_codes = rng.integers(0, top, shape, dtype=np.uint64)
    if kind == 0 or fmt.kind != "float":
        return any_codes
    if kind == 1:
        e = rng.integers(-4, 4, shape)
    else:
        e = fmt.emin + rng.integers(-2, 4, shape) if kind == 2 else rng.integers(-12, 12, shape)
    x = rng.choice([-1.0, 1.0], shape) * (1 + rng.random(shape)) * 2.0**e
    codes = sn.encode(x, fmt, overflow="saturate").astype(np.uint64)
    ends = [0, top >> 1 if fmt.signed else 0, fmt.max_code, 1, *([fmt.inf_code] if fmt.infinities else [])]
    return np.where(rng.random(shape) < 0.03, rng.choice(np.array(ends, np.uint64), shape), codes)


def batches(unit, count, rng):
    """(a, b, c): codes of rows, short ones and longer than a period; count of them in all."""
    parts = (getattr(unit, name, None) for name in ("period", "chunk", "lanes", "terms"))
    longest = next((n for n in parts if n), 1)
    lengths = sorted({1, 2, 3, 5, min(longest, 16), min(longest, 32) + 1})
    for k in lengths:
        rows = max(4, count // (2 * len(lengths)) if k < 6 else count // (4 * len(lengths)))
        for kind in range(4):
            made = [drawn(f, rng, (rows, k), kind) for f in unit.operand]
            yield (*made, drawn(unit.c_format, rng, (rows,), kind if rng.random() < 0.5 else 1))


def check_rows(unit, count):
    """The interpreter against the definition in C, on random rows; how many there were."""
    page, rng, rows = Page(data_of(unit)), np.random.default_rng(4), 0
    of_blocks = family_of(unit).of_blocks
    for a, b, c in batches(unit, count, rng) if not of_blocks else ():
        got = np.empty(len(a), np.uint64)
        lost = definition_of(unit).run_each(*map(np.ascontiguousarray, (a, b, c)), got, None)
        assert not lost
        for i in range(len(a)):
            row = {"a": map(hex, a[i].tolist()), "b": map(hex, b[i].tolist()), "c": hex(int(c[i]))}
            assert page.dot(row) == int(got[i]), (a[i].tolist(), b[i].tolist(), int(c[i]), hex(int(got[i])))
        rows += len(a)
    for _ in range(count // 40 if of_blocks else 0):
        rows += check_blocks(unit, page, rng)
    return rows


def check_blocks(unit, page, rng):
    """40 sums of one length, of blocks with scales."""
    k, n = int(rng.choice([1, 5, 33, 49, 70])), 40
    blocks = unit.operand[0].blocks(k)
    a, b = (rng.integers(0, 1 << f.element.bits, (n, k)) for f in unit.operand)
    near = [sn.encode(1.0, f.scale).item() for f in unit.operand]
    x, y = (rng.integers(max(0, e - 9), e + 9, (n, blocks)) for e in near)
    x[rng.random(x.shape) < 0.02], y[rng.random(y.shape) < 0.02] = 0, 0
    x[rng.random(x.shape) < 0.02] = (1 << unit.operand[0].scale.bits) - 1  # NaN in e8m0fnu and e4m3fn
    tensors = [None if f.tensor_scale is None else float(rng.choice([1.0, 0.5, 3.0])) for f in unit.operand]
    arrays = [
        sn.BlockArray(codes.astype(f.element.storage_dtype), scales.astype(f.scale.storage_dtype), f, -1, tensor)
        for codes, scales, f, tensor in zip((a, b), (x, y), unit.operand, tensors, strict=True)
    ]
    c = sn.encode(rng.standard_normal(n) * 2.0 ** rng.integers(-3, 4, n), unit.c_format)
    for i in range(n):
        one, two = (sn.BlockArray(m.codes[i], m.scales[i], m.format, -1, m.tensor_scale) for m in arrays)
        want = int(sn.encode(np.float64(sn.dot(one, two, unit, sn.decode(c[i], unit.c_format))), unit.result))
        row = {
            "a": map(hex, a[i].tolist()), "b": map(hex, b[i].tolist()), "a_scales": map(hex, x[i].tolist()),
            "b_scales": map(hex, y[i].tolist()), "c": hex(int(c[i])),
        }  # fmt: skip
        if any(t is not None for t in tensors):
            row["tensor_scales"] = [
                None if t is None else hex(sn.encode(t, f.tensor_scale).item())
                for t, f in zip(tensors, unit.operand, strict=True)
            ]
        assert page.dot(row) == want, row
    return n


@pytest.mark.slow
@cases("unit", list(PRESETS))
def test_every_preset_by_its_page_alone(unit):
    check_page(unit)
    assert check_rows(unit, 80) >= 80


@pytest.mark.slow
@cases("unit", list(PRESETS))
def test_thousands_of_rows_of_every_preset(unit):
    assert check_rows(unit, 4000) >= 4000


@cases("unit", FREE)
def test_free_units_by_their_pages_alone(unit):
    check_page(unit)


@pytest.mark.slow
@cases("unit", [u for u in FREE if isinstance(u, ROWS) and u.accumulator.bits > 8])
def test_rows_of_free_units(unit):
    assert check_rows(unit, 320) >= 320


@pytest.mark.slow
@cases("unit", [*OTHERS, *NEW])
def test_every_unit_that_products_are_tested_with(unit):
    check_page(unit)


def test_vectors_meet_every_rule():
    shown = [v["shows"] for v in data_of(sn.unit("nvidia_a100_bf16"))["vectors"]]
    for part in (
        "one product", "K = 0", "NaN in a", "C is NaN", "infinity times zero", "infinities of both signs",
        "smallest operand", "largest operands", "sum of zero", "negative zeros", "half a last place", "cancellation",
        "more products than a period", "which products meet", "1, and 2^-24", "1, and 2^-25", "2^-156", "random codes",
    ):  # fmt: skip
        assert any(part in s for s in shown), part


def check_changes(base, changes):
    """A unit with another choice anywhere fails the vectors of the page."""
    page, missed = data_of(base), []
    for change in changes:
        other = Page(data_of(replace(base, **change)))
        if all(other.dot(v) == int(v["result"], 16) for v in page["vectors"]):
            missed.append(change)
    assert not missed


def test_the_vectors_tell_units_apart():
    changes = [
        {"terms": 4}, {"fraction_bits": 23}, {"fraction_bits": 25}, {"min_exponent": None}, {"min_exponent": -131},
        {"output_rounding": "nearest_even"}, {"truncate_fraction": 13}, {"c": "after"}, {"zero_exponent": -126},
        {"overflow": None}, {"k_order": tuple(range(15, -1, -1))},
    ]  # fmt: skip
    check_changes(sn.unit("nvidia_a100_bf16"), changes)


def test_the_vectors_tell_two_stage_units_apart():
    changes = [
        {"terms": 4}, {"fraction_bits": 23}, {"fraction_bits": 25}, {"sum_fraction_bits": 30},
        {"c_fraction_bits": 23}, {"c_fraction_bits": 25}, {"alignment": "toward_zero"}, {"c_reach": 25},
        {"product_limit": None}, {"product_limit": 127}, {"output_rounding": "toward_zero"}, {"zero_exponent": None},
    ]  # fmt: skip
    check_changes(sn.unit("amd_cdna3_bf16"), changes)
    changes = [{"interleave": 1}, {"interleave": 4}, {"c_reach": None}, {"c_reach": 23}, {"terms": 8}]
    check_changes(sn.unit("amd_cdna3_bf8"), changes)


def test_the_vectors_tell_grouped_units_apart():
    changes = [
        {"terms": 4}, {"reduction": "exact"}, {"partial": "e8m22"}, {"partial_rounding": None},
        {"partial_rounding": "nearest_even"}, {"rounding": "nearest_even"}, {"guard_bits": 2}, {"guard_bits": 4},
    ]  # fmt: skip
    check_changes(sn.unit("riscv_rvbna_bf16_vlen128"), changes)
    changes = [
        {"terms": 4}, {"reduction": "exact"}, {"partial_rounding": "nearest_even"}, {"rounding": "nearest_even"},
        {"zeros": "positive"}, {"scale": -1}, {"flush_inputs": False}, {"flush_results": None},
        {"overflow": "saturate_finite"},
    ]  # fmt: skip
    check_changes(sn.unit("arm_bfdot"), changes)
    changes = [{"partial_rounding": None}, {"terms": 1}, {"zeros": "positive"}, {"flush_results": "before"}]
    check_changes(sn.unit("arm_bfdot_ebf"), changes)
    check_changes(sn.unit("arm_fdot_e4m3", "binary16"), [{"terms": 4}, {"scale": -1}, {"overflow": "saturate"}])


def test_the_vectors_tell_block_fused_units_apart():
    changes = [
        {"fraction_bits": 24}, {"fraction_bits": 26}, {"terms": 16}, {"group": 4}, {"min_exponent": None},
        {"min_exponent": -120}, {"output_rounding": "nearest_even"}, {"truncate_fraction": 13}, {"overflow": None},
        {"zero_exponent": -126},
    ]  # fmt: skip
    check_changes(sn.unit("nvidia_tcgen05_mxf8f6f4"), changes)
    changes = [{"fraction_bits": 34}, {"fraction_bits": 36}, {"terms": 16}]
    check_changes(sn.unit("nvidia_tcgen05_mxf4"), [*changes, {"group": 8}])
    check_changes(sn.unit("nvidia_tcgen05_mxf4nvf4"), changes)


# -- the page ----------------------------------------------------------------------------------------------------------
def test_the_page_has_all_of_the_data():
    unit = sn.unit("nvidia_h100_e4m3_mma")
    text, data = str(unit.disclosure()), data_of(unit)
    assert text.startswith("# Disclosure of nvidia_h100_e4m3_mma\n")
    for name, facts in data["formats"].items():
        assert f"### {name}\n" in text and all(words in text for words in facts["words"])
    for step in data["definition"]:
        assert f"**{step['title']}.** {step['text']}" in text
        assert all(line in text for line in step["formula"].split("\n"))
    for rounding in data["roundings"].values():
        assert all(words in text for words in rounding["words"])
    for name, row in data["evidence"].items():
        assert f"| `{name}` | {row['kind']} | {row['source']} |" in text
    assert text.count("\n| ") > len(data["vectors"])
    assert "step 2: k = 2, 3, 6, 7" in text
    output = sn.unit("nvidia_h100_fp16", output="binary16", disputed="mma-sim").disclosure()
    assert str(output).startswith("# Disclosure of nvidia_h100_fp16 (output binary16, disputed mma-sim)")
    promoted = str(PROMOTED.disclosure())
    assert "## inner" in promoted and "see inner" in promoted


def test_data_are_plain_and_the_same_each_time():
    unit = sn.MadUnit("e6m9", operand="e5m2", chunk=64)
    page = unit.disclosure()
    assert page.to_json() == sn.MadUnit("e6m9", operand="e5m2", chunk=64).disclosure().to_json()
    data = page.to_dict()
    assert list(data)[:2] == ["schema", "preset"] and data["schema"] == "softnum.unit/1" and data["preset"] is None
    data["parameters"]["chunk"] = 1  # a copy
    assert page.to_dict()["parameters"]["chunk"] == 64
    assert page._repr_markdown_() == str(page)


# -- read back ---------------------------------------------------------------------------------------------------------
def test_it_is_read_as_text_data_or_a_file(tmp_path):
    unit = sn.unit("x86_avx512_bf16")
    text = unit.disclosure().to_json()
    (tmp_path / "unit.json").write_text(text)
    for given in (text, "\n " + text, json.loads(text), tmp_path / "unit.json"):
        got = sn.unit(given)
        assert got == unit and got.evidence == unit.evidence and got.preset == ("x86_avx512_bf16", None, None)
    with pytest.raises(ValueError, match="leave out output"):
        sn.unit(text, output="binary16")
    with pytest.raises(FileNotFoundError):
        sn.unit(tmp_path / "none.json")
    x = np.float32([1, 2**60])
    assert sn.dot(x, x, sn.unit(text), -(2.0**120)) == 1


def _formats(data):
    return data["formats"]["binary16"]


CONTRADICTIONS = {
    "schema": (lambda d: d.update(schema="softnum.unit/2"), "schema 'softnum.unit/1', got 'softnum.unit/2'"),
    "a part missing": (lambda d: d.pop("order"), "no 'order'"),
    "a part more": (lambda d: d.update(extra=1), "'extra' is no part"),
    "emin": (lambda d: _formats(d).update(emin=-13), r"formats.binary16: emin is -14 by its other facts.*says -13"),
    "a NaN": (lambda d: _formats(d).update(nan_code="0x7e01"), "formats.binary16: nan_code is '0x7e00'"),
    "bias of a known name": (
        lambda d: d["formats"].update(binary16=sn_facts(sn.FloatFormat(5, 10, bias=14, name="binary16"))),
        "formats.binary16: bias is 15 in the format of this name, and the file says 14",
    ),
    "a fact missing": (lambda d: _formats(d).pop("bias"), "formats.binary16: bias is not stated"),
    "a fact more": (lambda d: _formats(d).update(radix=10), "radix is no fact"),
    "a kind": (lambda d: _formats(d).update(kind="decimal"), "kind is 'decimal'"),
    "a format more": (lambda d: d["formats"].update(e5m2=sn_facts(sn.format("e5m2"))), "formats.e5m2: the unit has no"),
    "family": (lambda d: d.update(family="TensorCore"), "no family 'TensorCore'"),
    "a parameter missing": (lambda d: d["parameters"].pop("terms"), "terms of a FusedDotUnit is not stated"),
    "a parameter more": (lambda d: d["parameters"].update(lanes=2), "has no 'lanes'"),
    "a parameter out of range": (lambda d: d["parameters"].update(terms=0), "terms must be an integer"),
    "a parameter of no format": (lambda d: d["parameters"].update(accumulator="binary17"), "unknown format"),
    "order": (lambda d: d["order"].update(terms=8), "order.terms is 16 by the unit's parameters, and the file says 8"),
    "rounding": (lambda d: d["roundings"]["R"].update(mode="nearest_even"), "roundings.R.mode is 'toward_zero'"),
    "what is too large": (
        lambda d: d["roundings"]["R"].update(too_large=["0x7f7fffff", "0xff7fffff"]), "roundings.R.too_large is"
    ),
    "inputs": (lambda d: d["inputs"].update(c="binary16"), "inputs.c is 'binary32'"),
    "result": (lambda d: d.update(result="binary16"), "result is 'binary32'"),
    "a vector": (lambda d: d["vectors"][0].update(result="0x3f800001"), r"vectors\[0\] \(one product\): .* 0x3f800000"),
    "digits of a code": (
        lambda d: d["vectors"][0].update(result=" 0x3f80_0000"), r"vectors\[0\].result is '0x3f800000'"
    ),
    "a code without its zeros": (lambda d: d["vectors"][0]["b"].__setitem__(0, "15360"), r"vectors\[0\]"),
    "a vector's part more": (lambda d: d["vectors"][0].update(d="0x0"), r"vectors\[0\]: 'd' is no part of it"),
    "true for 1": (lambda d: d["order"].update(terms=True), "order.terms is 16"),
    "no vector": (lambda d: d["vectors"][3].pop("a"), r"vectors\[3\]: no vector|vectors\[3\]"),
    "evidence": (lambda d: d["evidence"]["c"].update(kind="guessed"), "evidence is one of"),
    "parameters and vectors": (
        lambda d: (d["parameters"].update(fraction_bits=24)), r"vectors\[\d+\] .*the unit of the parameters gives"
    ),
}  # fmt: skip


def sn_facts(fmt):
    from softnum.inspect.disclosure.formats import describe

    return describe(fmt)


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_contradictions_are_refused(what):
    change, message = CONTRADICTIONS[what]
    data = copy.deepcopy(data_of(sn.unit("nvidia_h100_fp16")))
    change(data)
    with pytest.raises(ValueError, match=message):
        sn.unit(data)


def test_what_is_stated_twice_is_refused():
    text = sn.unit("nvidia_h100_fp16").disclosure().to_json()
    assert sn.unit(text) == sn.unit("nvidia_h100_fp16")
    again = text.replace('"fraction_bits": 25', '"fraction_bits": 24, "fraction_bits": 25', 1)
    with pytest.raises(ValueError, match="'fraction_bits' is stated twice"):
        sn.unit(again)


def test_what_is_no_disclosure_is_refused():
    for text, message in (("{", "a disclosure is JSON"), ("{}", "schema"), ({"schema": 1}, "schema")):
        with pytest.raises(ValueError, match=message):
            sn.unit(text)


def test_contradictions_inside_are_refused():
    data = data_of(PROMOTED)
    data["inner"]["order"]["terms"] = 16
    with pytest.raises(ValueError, match="inner.order.terms is 32"):
        sn.unit(data)


def test_a_format_of_ones_own_comes_back():
    fmt = sn.FloatFormat(5, 9, bias=20, name="mine")
    unit = sn.MadUnit(fmt, operand="e5m2")
    data = data_of(unit)
    assert data["formats"]["mine"]["bias"] == 20 and sn.unit(data) == unit
    check_page(unit)
    for taken in (
        sn.MadUnit(sn.FloatFormat(5, 9, bias=20, name="binary16"), operand="e5m2"),
        sn.MadUnit(fmt, operand=sn.FloatFormat(5, 2, bias=3, name="mine")),
    ):
        with pytest.raises(ValueError, match="name of another format"):
            taken.disclosure()


# -- refused -----------------------------------------------------------------------------------------------------------
def test_what_cannot_be_disclosed():
    custom = sn.CustomMadUnit.from_c(
        "uint8_t mad(uint8_t a, uint8_t b) { return a & b; }", operand="uq8.0", accumulator="uq8.0"
    )
    with pytest.raises(TypeError, match="its step is a function of the user's"):
        custom.disclosure()
    with pytest.raises(ValueError, match="logarithms, irrational"):
        sn.MadUnit("takum8", operand="takum8").disclosure()
    with pytest.raises(ValueError, match="whose operations are the user's"):
        sn.MadUnit(TERNARY, operand=TERNARY, product=TERNARY).disclosure()


def test_a_family_without_a_statement():
    class Bare(Unit):
        pass

    register(Bare, kind=None)
    with pytest.raises(TypeError, match="no disclosure of a Bare is known"):
        Bare().disclosure()


# -- the command -------------------------------------------------------------------------------------------------------
def softnum(*words):
    return subprocess.run([sys.executable, "-m", "softnum", *words], capture_output=True, text=True, check=False)


def test_the_command(tmp_path):
    page = softnum("units", "nvidia_v100_fp16", "--disclosure")
    assert page.returncode == 0 and page.stdout == str(sn.unit("nvidia_v100_fp16").disclosure()) + "\n"
    file = tmp_path / "unit.json"
    data = softnum(
        "units", "nvidia_v100_fp16", "--output", "binary16", "--disclosure", "--json", "--out", str(file)
    )  # fmt: skip
    assert data.returncode == 0, data.stderr
    assert sn.unit(data.stdout) == sn.unit("nvidia_v100_fp16", "binary16") == sn.unit(file)
    bad = softnum("units", "--disclosure")
    assert bad.returncode == 2 and "--disclosure needs the NAME of a unit" in bad.stderr


def test_a_file_that_denies_the_reading_of_subnormal_factors_is_refused():
    """Results that are flushed hide it, but of a subnormal factor times a large one."""
    data = sn.unit("x86_avx512_bf16").disclosure().to_dict()
    data["parameters"]["flush_inputs"] = False
    with pytest.raises(ValueError, match="times the largest"):
        sn.unit(data)


@pytest.mark.parametrize("change", [
    lambda d: d["formats"].update(binary32=None),
    lambda d: d["formats"]["binary32"].update(kind=[[]]),
    lambda d: d["vectors"][0]["a"].__setitem__(0, "0x12345"),
    lambda d: d["vectors"][0]["a"].__setitem__(0, "-0x1"),
    lambda d: d["vectors"][0]["a"].__setitem__(0, None),
    lambda d: d["vectors"][0]["a"].__setitem__(0, "0x" + "f" * 50),
    lambda d: d["vectors"][0].update(c="0x" + "f" * 50),
    lambda d: d.update(family=[]),
    lambda d: d.update(parameters={"terms": []}),
    lambda d: d["preset"].update(name="nvidia_v100_fp16"),
    lambda d: d["preset"].update(name="nvidia_h100_fp160"),
    lambda d: d["preset"].update(output=["binary16"]),
])  # fmt: skip
def test_other_types_codes_and_presets_are_refused(change):
    data = sn.unit("nvidia_h100_fp16").disclosure().to_dict()
    change(data)
    with pytest.raises(ValueError):
        sn.unit(data)


def test_a_file_that_is_too_deep_is_refused():
    with pytest.raises(ValueError, match="too deep"):
        sn.unit('{"a":' * 100_000)
