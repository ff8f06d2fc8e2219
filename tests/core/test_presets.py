"""The presets: their names, their evidence, and that each computes something."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import softnum as sn
from softnum.mac.presets import KINDS, Evidence
from softnum.mac.products.blocks.fast import block_engine
from softnum.mac.products.engines import fast_of
from tests.support.cases import cases
from tests.support.preset_list import ALL, CORES, outputs
from tests.support.public import PUBLIC

GPUS = ("v100", "a100", "a2", "ada", "l40s", "h100", "h200", "b200")
INTEGERS = ("int8", "uint8", "int4", "uint4")


def test_the_list():
    names = sn.units()
    assert len(set(names)) == len(names) and all(isinstance(n, str) for n in names)
    for gpu in GPUS:
        formats = [n.split("_")[2] for n in names if n.startswith(f"nvidia_{gpu}_") and not n.endswith("mma")]
        want = {"v100": ["fp16"], "a100": ["fp16", "bf16", "tf32"], "a2": ["fp16", "bf16", "tf32"]}
        assert formats == want.get(gpu, ["fp16", "bf16", "tf32", "e4m3", "e5m2"])
    assert {n for n in names if n.endswith("_mma")} == {
        f"nvidia_{g}_{f}_mma" for g in ("h100", "h200", "b200") for f in ("e4m3", "e5m2")
    }
    assert set(names) - set(CORES) == {
        *(f"nvidia_{n}{end}" for n in INTEGERS for end in ("", "_satfinite")), "nvidia_b1_and", "nvidia_fp64",
        *(f"nvidia_{g}_{f}" for g in ("tcgen05", "rtx_blackwell") for f in ("mxf8f6f4", "mxf4", "mxf4nvf4")),
        *(f"riscv_rvbna_{f}_vlen{n}" for f in ("bf16", "e4m3", "e5m2") for n in (128, 256, 512)),
        "arm_bfdot", "arm_bfdot_ebf", "arm_fdot_fp16",
        *(f"arm_{i}_{f}" for i in ("fdot", "fmlal", "fmmla") for f in ("e4m3", "e5m2")),
        "x86_avx512_bf16", *(f"x86_amx_{f}" for f in ("bf16", "fp16", "int8")), "x86_vnni_int8", "ibm_fp8_2018",
        "int8_int32",
        *(f"amd_cdna{n}_{f}" for n in (1, 2) for f in ("fp16", "bf16", "fp32")), "amd_cdna2_bf16_1k",
        "amd_cdna2_fp64", *(f"amd_cdna3_{f}" for f in ("fp32", "fp64", "fp16", "bf16", "xf32", "fp8", "bf8")),
        *(f"ocp_{name}" for name in sn.formats.block_format_names() if name.startswith("mx")), "nvfp4",
    }  # fmt: skip


@cases("name, output", ALL)
def test_every_preset(name, output):
    unit = sn.unit(name, output)
    assert sn.unit(name, output) is unit and pickle.loads(pickle.dumps(unit)) == unit
    assert pickle.loads(pickle.dumps(unit)).evidence == unit.evidence
    assert eval(repr(unit), PUBLIC) == unit
    assert unit.evidence and all(e.kind in KINDS and e.source for e in unit.evidence.values())
    rng = np.random.default_rng(1)
    if isinstance(unit, (sn.BlockDotUnit, sn.BlockFusedDotUnit)):
        one = {"tensor_scale": 1.0} if unit.tensor_scales else {}
        a = sn.array(rng.integers(0, 4, (3, 70)), unit.operand[0], axis=-1, **one)
        b = sn.array(rng.integers(-3, 4, (70, 5)), unit.operand[1], axis=-2, **one)
        assert np.array_equal(sn.matmul(a, b, unit), a.decode() @ b.decode())
        return
    a = sn.quantize(rng.integers(0, 4, (3, 70)), unit.operand[0], overflow="saturate").astype(np.float32)
    b = sn.quantize(rng.integers(-3, 4, (70, 5)), unit.operand[1], overflow="saturate").astype(np.float32)
    assert np.array_equal(sn.matmul(a, b, unit), a @ b)  # small integers: every unit is exact
    if output == "binary16" or (name.endswith("_mma") and output is None):
        assert str(unit.result) == str(unit.c_format) == "binary16"
    elif name in CORES:
        assert str(unit.result) == "binary32"


@cases("name", sn.units())
def test_all_have_fast_paths(name):
    for output in outputs(name):
        unit = sn.unit(name, output)
        assert (block_engine if isinstance(unit, sn.BlockDotUnit) else fast_of)(unit) is not None


def test_parameters():
    got = {n: sn.unit(n) for n in sn.units() if n.startswith("nvidia")}
    assert [(got[f"nvidia_{g}_fp16"].terms, got[f"nvidia_{g}_fp16"].fraction_bits) for g in GPUS] == [
        (4, 23), (8, 24), (8, 24), (8, 24), (8, 24), (16, 25), (16, 25), (16, 25),
    ]  # fmt: skip
    assert [got[f"nvidia_{g}_tf32"].terms for g in GPUS[1:]] == [4, 4, 4, 4, 8, 8, 8]
    assert [
        (u.terms, u.fraction_bits, u.truncate_fraction, u.c)
        for u in (got[f"nvidia_{g}_e4m3"] for g in ("ada", "l40s", "h100", "h200", "b200"))
    ] == [(16, 13, 13, "fused")] * 2 + [(32, 13, 13, "fused")] * 2 + [(16, 25, None, "after")]
    mma = got["nvidia_h100_e5m2_mma"]
    assert mma.terms == 16 and mma.k_order[:16] == (0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29)
    assert sn.unit("nvidia_b200_e5m2", output="binary16") == sn.unit("nvidia_b200_e5m2_mma") == mma
    single = got["nvidia_b200_e5m2"]
    assert sn.unit("nvidia_h100_e5m2_mma", output="binary32") == sn.unit("nvidia_b200_e5m2_mma", "binary32") == single
    assert single == replace(mma, accumulator="binary32", output_rounding="toward_zero", min_exponent=-133)


def test_evidence_belongs_to_the_preset():
    h100, h200 = sn.unit("nvidia_h100_fp16"), sn.unit("nvidia_h200_fp16")
    assert h100 == h200 and h100.evidence != h200.evidence
    assert "H100" in h100.evidence["terms"].source and h100.evidence["terms"].kind == "recorded"
    assert replace(h100, terms=8).evidence == {} and sn.MadUnit("e6m9", operand="e5m2").evidence == {}
    assert sn.unit("nvidia_b200_tf32").evidence["terms"].kind == "published"
    assert "H200" in sn.unit("nvidia_h100_tf32").evidence["terms"].source
    assert sn.unit("nvidia_h100_e4m3").evidence["c"].kind == "recorded"
    assert sn.unit("nvidia_b200_e4m3").evidence["fraction_bits"].kind == "published"
    assert sn.unit("nvidia_h100_e4m3_mma").evidence["c"].kind == "recorded"
    assert sn.unit("nvidia_h100_e4m3_mma", output="binary32").evidence["c"].kind == "recorded"
    assert sn.unit("nvidia_h200_bf16").evidence["min_exponent"].kind == "recorded"
    assert sn.unit("nvidia_h200_e5m2").evidence["min_exponent"].kind == "published"
    assert {sn.unit(f"nvidia_{n}").evidence["chaining"].kind for n in ("b200_e4m3", "h200_e5m2_mma")} == {"modelled"}
    assert sn.unit("nvidia_l40s_e4m3", output="binary16").evidence["products"].kind == "published"
    assert sn.unit("x86_avx512_bf16").evidence["k_order"].kind == "measured"


def test_signed_and_unsigned_bytes():
    unit = sn.unit("x86_vnni_int8")
    assert sn.dot([255.0, 1], [-128.0, 127], unit) == -255 * 128 + 127
    with pytest.raises(ValueError, match="no value of uq8.0"):
        sn.dot([-1.0], [1.0], unit)
    a, b = np.full(70000, -128.0), np.full(70000, -128.0)
    assert sn.dot(a, b, sn.unit("int8_int32")) == 70000 * 2**14 % 2**32 - (70000 * 2**14 >> 31) % 2 * 2**32


def test_integers_of_mma():
    assert sn.unit("nvidia_int8") == sn.unit("int8_int32")
    ends = sn.unit("nvidia_int8_satfinite")
    x, y = np.full(64, -128.0), np.full(64, 127.0)
    y[32:] = -128
    start = -(2.0**31) + 5  # the first instruction ends at the least number, the second goes on from there
    assert sn.dot(x, y, ends, start) == -(2.0**31) + 32 * 2.0**14
    assert sn.dot(x, y, sn.unit("nvidia_int8"), start) == start - 32 * 128 * 127 + 32 * 2.0**14
    assert sn.dot(-x[:32] - 1, y[32:], ends, 2.0**31 - 1) == 2**31 - 1 - 32 * 127 * 128
    assert sn.dot([-8.0] * 64, [-8.0] * 64, sn.unit("nvidia_int4_satfinite"), 2.0**31 - 8) == 2**31 - 1
    bits = np.random.default_rng(1).integers(0, 2, (2, 256)).astype(float)
    assert sn.dot(*bits, sn.unit("nvidia_b1_and")) == (bits[0] * bits[1]).sum()


def test_refusals():
    with pytest.raises(ValueError, match="did you mean 'nvidia_h100_fp16'"):
        sn.unit("nvidia_h100_f16")
    with pytest.raises(ValueError, match="did you mean 'nvidia_h100_"):
        sn.unit("h100")
    with pytest.raises(ValueError, match="unknown unit 7"):
        sn.unit(7)
    with pytest.raises(ValueError, match="has the output binary32, not binary16"):
        sn.unit("nvidia_a100_bf16", output="binary16")
    with pytest.raises(ValueError, match="has the output binary32 or binary16, not bfloat16"):
        sn.unit("nvidia_h100_e4m3_mma", output="bfloat16")
    with pytest.raises(ValueError, match="has one output"):
        sn.unit("ibm_fp8_2018", output="binary16")
    with pytest.raises(ValueError, match="evidence is one of"):
        Evidence("guessed", "nobody")
