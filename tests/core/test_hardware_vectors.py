"""Dot products and conversions that real GPUs computed, bit for bit.

tests/data/nvidia_h200 holds what kernels/recording recorded on an H200: rows of each matrix instruction, and
results of functions. Rows of eight more GPUs are public; SOFTNUM_HARDWARE_VECTORS names their folder.
"""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.kernels.recording.mma import FORMATS as TYPES
from softnum.kernels.recording.mma import INSTRUCTIONS, decoded, differing
from tests.support.cases import cases

FORMATS = {"fp16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2"}
CASES = [
    (gpu, operand)
    for gpu, operands in (
        ("V100", "fp16"), ("A100", "fp16 bf16 tf32"), ("A2", "fp16 bf16 tf32"), ("Ada", "fp16 bf16 tf32 e4m3 e5m2"),
        ("L40S", "fp16 bf16 tf32 e4m3 e5m2"), ("H100", "fp16 bf16 tf32 e4m3 e5m2"),
        ("H200", "fp16 bf16 tf32 e4m3 e5m2"), ("B200", "fp16 bf16 tf32 e4m3 e5m2"),
    )
    for operand in operands.split()
]  # fmt: skip


@pytest.fixture(scope="module")
def folder():
    name = os.environ.get("SOFTNUM_HARDWARE_VECTORS")
    if not name:
        pytest.skip(
            "SOFTNUM_HARDWARE_VECTORS names no folder; the data are public: github.com/north-numerical-computing/"
            "MATLAB-tensor-core, model_validation (arXiv 2512.07004)"
        )
    return Path(name)


def recorded(folder, gpu, operand):
    path = folder / f"{gpu}_{operand}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not among the recorded vectors")
    with np.load(path) as data:
        return {name: data[name] for name in data.files}


def values(bits):
    return np.ascontiguousarray(bits).view(np.float32)


def unit_and_c(gpu, operand, data, output):
    """The preset that made a result, and what it took for C."""
    eight_bits = operand in ("e4m3", "e5m2")
    name = f"nvidia_{gpu.lower()}_{operand}"
    c = values(data["c_fp32"])
    if output == "d_fp16":
        if eight_bits and gpu in ("H100", "H200", "B200"):
            name += "_mma"
        return sn.unit(name, output="binary16"), sn.quantize(c, "binary16")
    if eight_bits and gpu in ("H100", "H200"):
        c = np.zeros_like(c)
    return sn.unit(name), c


@cases("output", ["d_fp32", "d_fp16"])
@cases("gpu, operand", CASES)
def test_recorded_results(folder, gpu, operand, output, isa):
    data = recorded(folder, gpu, operand)
    if output not in data:
        pytest.skip(f"{gpu}_{operand} has no {output}")
    a, b = values(data["a"]), values(data["b"])
    unit, c = unit_and_c(gpu, operand, data, output)
    got = sn.matmul(a[:, None, :], b[:, :, None], unit, c[:, None, None])[:, 0, 0]
    wrong = np.flatnonzero(got.view(np.uint32) != data[output])
    assert wrong.size == 0, f"{wrong.size} of {len(a)} rows differ, first {wrong[:3]}: {unit}"
    for row in range(0, len(a), 1000):
        assert sn.dot(a[row], b[row], unit, c[row]) == values(data[output])[row]


@cases("gpu, operand", CASES)
def test_recorded_results_by_the_reference(folder, gpu, operand):
    data = recorded(folder, gpu, operand)
    for output in ("d_fp32", "d_fp16"):
        if output not in data:
            continue
        unit, c = unit_and_c(gpu, operand, data, output)
        for row in range(0, len(c), 25):
            a, b = (sn.encode(values(data[x][row]), FORMATS[operand]).tolist() for x in "ab")
            code, _ = ref.fused_dot(
                a, b, terms=unit.terms, fraction_bits=unit.fraction_bits, accumulator=unit.accumulator,
                operand=unit.operand, min_exponent=unit.min_exponent, output=unit.output,
                output_rounding=unit.output_rounding, truncate_fraction=unit.truncate_fraction, k_order=unit.k_order,
                c_mode=unit.c, overflow=unit.overflow, c=int(sn.encode(c[row], unit.c_format)),
            )  # fmt: skip
            assert np.float32(sn.decode(code, unit.result)).view(np.uint32) == data[output][row], (output, row)


@pytest.mark.parametrize("change", [{"fraction_bits": 22}, {"terms": 2}, {"output_rounding": "nearest_even"}])
def test_the_recorded_results_catch_a_changed_unit(folder, change):
    from dataclasses import replace

    data = recorded(folder, "V100", "fp16")
    unit, c = unit_and_c("V100", "fp16", data, "d_fp32")
    a, b = values(data["a"]), values(data["b"])
    got = sn.matmul(a[:, None, :], b[:, :, None], replace(unit, **change), c[:, None, None])[:, 0, 0]
    assert np.count_nonzero(got.view(np.uint32) != data["d_fp32"]) > len(a) // 100


# ---- an H200 ---------------------------------------------------------------------------------------------------------

H200, H100 = (Path(__file__).parents[1] / "data" / f"nvidia_{gpu}" for gpu in ("h200", "h100"))
MANIFESTS = {folder: json.loads((folder / "manifest.json").read_text()) for folder in (H200, H100)}
ARITHMETICS, OF_H100 = ({entry["name"]: entry for entry in x["arithmetics"]} for x in MANIFESTS.values())
INSTRUCTION = {one.file: one for one in INSTRUCTIONS}


def rows_that_differ(name, folder=H200, **change):
    """(of how many rows and steps of chains, how many differ from what the instruction's unit, changed, computes)"""
    one = INSTRUCTION[name]
    unit = one.unit(folder.name.removeprefix("nvidia_"))
    with np.load(folder / f"{name}.npz") as data:
        found = one.rows_that_differ(data, replace(unit, **change) if change else unit)
    return sum(map(len, found)), sum(int(wrong.sum()) for wrong in found)


@cases("name", ARITHMETICS)
def test_instructions_of_an_h200(name, isa):
    entry, one = ARITHMETICS[name], INSTRUCTION[name]
    assert [entry[x] for x in ("a", "b", "c", "d", "K")] == [one.a, one.b, one.d, one.d, one.k]
    rows, wrong = rows_that_differ(name)
    assert rows == entry["rows"] + 4 * entry["chains"] and wrong == 0, f"{wrong} of {rows} rows differ"


@cases("name", [name for name in ARITHMETICS if name.startswith("mma") and INSTRUCTION[name].a in ("e4m3", "e5m2")])
def test_chains_of_fp8_on_an_h200(name):
    """Four instructions are one sum of chunks: each adds C to its own products' sum, which C's place in it shows."""
    one = INSTRUCTION[name]
    unit = one.unit("h200")
    order = tuple(k for k in unit.k_order if k < one.k)
    steps = replace(unit, terms=one.k // 2, k_order=order, c="fused")
    with np.load(H200 / f"{name}.npz") as data:
        a, b = (
            decoded(data[f"chain_{x}"].reshape(len(data["chain_c"]), -1), kind)
            for x, kind in zip("ab", (one.a, one.b), strict=True)
        )
        c, d = decoded(data["chain_c"], one.d), decoded(data["chain_d"][:, -1], one.d)
    chain = sn.ChunkedDotUnit(steps, one.k, unit.result)
    got = {
        x: sn.matmul(a[:, None, :], b[:, :, None], x, c[:, None, None])[:, 0, 0]
        for x in (chain, replace(steps, c="after"))
    }
    assert not differing(got[chain], d).any()
    assert differing(got[replace(steps, c="after")], d).any()  # C once, at the end


@cases("name", OF_H100)
def test_integers_of_an_h100(name):
    """Sums that leave 32 bits wrap around, or with .satfinite end there: its rows have none of another unit's."""
    one, entry = INSTRUCTION[name], OF_H100[name]
    rows, wrong = rows_that_differ(name, H100)
    assert rows == entry["rows"] + 4 * entry["chains"] and wrong == 0
    assert one.d == "s32" and rows_that_differ(name, H100, overflow="wrap" if one.saturate else "saturate")[1] > 10


def _of_preset(one):
    """A preset that computes an instruction of integers or binary64."""
    if one.d == "f64":
        return sn.unit("nvidia_fp64")
    unit = sn.unit(f"nvidia_{'u' * (one.a[0] == 'u')}int8{'_satfinite' * one.saturate}")
    return replace(unit, operand=(TYPES[one.a], TYPES[one.b]))


@cases("name", [name for name, one in INSTRUCTION.items() if one.d in ("s32", "f64")])
def test_presets_of_integers_and_binary64(name):
    one, rows = INSTRUCTION[name], 0
    for folder, entries in ((H200, ARITHMETICS), (H100, OF_H100)):
        if name not in entries:
            continue
        with np.load(folder / f"{name}.npz") as data:
            found = one.rows_that_differ(data, _of_preset(one))
        assert not any(wrong.any() for wrong in found)
        rows += sum(map(len, found))
    assert rows >= 100


def test_an_h100_was_recorded_of_all_integers():
    assert OF_H100.keys() == {name for name, one in INSTRUCTION.items() if one.d == "s32"}
    assert INSTRUCTION.keys() == ARITHMETICS.keys() | OF_H100.keys()
    assert MANIFESTS[H100]["compared"] == {
        "with": H200.name, "rows": MANIFESTS[H200]["rows"], "chains": MANIFESTS[H200]["chains"], "functions": 32,
        "differ": 0,
    }  # fmt: skip


@cases("folder", MANIFESTS)
def test_the_files_are_what_the_manifest_says(folder):
    manifest = MANIFESTS[folder]
    entries = [*manifest["arithmetics"], *filter(None, [manifest.get("functions")])]
    files = [(entry["file"], entry["sha256"]) for entry in entries]
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in files)
    assert {name for name, _ in files} == {path.name for path in folder.glob("*.npz")}
    assert manifest["rows"] == sum(x["rows"] for x in manifest["arithmetics"]) > 2_000


@cases(
    "name, change",
    [
        ("mma_m16n8k16_f32_bf16_bf16_f32", {"min_exponent": -132}),
        ("mma_m16n8k16_f32_bf16_bf16_f32", {"min_exponent": -134}),
        ("mma_m16n8k16_f32_bf16_bf16_f32", {"min_exponent": None}),
        ("wgmma_m64n8k8_f32_tf32_tf32", {"min_exponent": -132}),
        ("wgmma_m64n8k8_f32_tf32_tf32", {"min_exponent": -134}),
        ("wgmma_m64n8k8_f32_tf32_tf32", {"min_exponent": None}),
        ("mma_m16n8k8_f32_tf32_tf32_f32", {"terms": 4}),
        ("mma_m16n8k16_f16_f16_f16_f16", {"min_exponent": -20}),
        ("mma_m16n8k16_f16_f16_f16_f16", {"min_exponent": -22}),
        ("mma_m16n8k16_f16_f16_f16_f16", {"min_exponent": None}),
        ("wgmma_m64n8k16_f16_f16_f16", {"fraction_bits": 24}),
        ("wgmma_m64n8k32_f32_e4m3_e4m3", {"fraction_bits": 14}),
        ("wgmma_m64n8k32_f32_e4m3_e5m2", {"truncate_fraction": None}),
        ("wgmma_m64n8k32_f32_e4m3_e4m3", {"c": "after"}),
        ("wgmma_m64n8k32_f16_e5m2_e5m2", {"terms": 16}),
        ("mma_m16n8k32_f32_e4m3_e4m3_f32", {"k_order": None}),
        ("mma_m16n8k32_f32_e5m2_e5m2_f32", {"c": "fused"}),
        ("mma_m16n8k16_f16_e4m3_e4m3_f16", {"k_order": None}),
        ("mma_m16n8k16_f32_e4m3_e5m2_f32", {"c": "fused"}),
        ("mma_m16n8k4_f64_f64_f64_f64", {"product": "binary64"}),
        ("mma_m16n8k16_f64_f64_f64_f64", {"lanes": 2}),
    ],
)
def test_the_rows_of_an_h200_catch_a_changed_unit(name, change):
    rows, wrong = rows_that_differ(name, **change)
    assert 0 < wrong < rows


def exponents(x, fmt):
    """Of numbers; zeros and subnormal ones have the format's least."""
    return np.maximum(np.frexp(x)[1] - 1, sn.format(fmt).emin)


def recorded_numbers(name):
    """a, b, c, d of the rows that hold no infinity and no NaN."""
    one = INSTRUCTION[name]
    with np.load(H200 / ARITHMETICS[name]["file"]) as data:
        values = [decoded(data[x], kind) for x, kind in zip("abcd", (one.a, one.b, one.d, one.d), strict=True)]
    finite = np.all([np.isfinite(x).reshape(len(x), -1).all(-1) for x in values], axis=0)
    return [x[finite].astype(np.float64) for x in values]


ALIGNED = [name for name, one in INSTRUCTION.items() if one.d in ("f32", "f16") and one.unit("h200").c == "fused"]


def test_zeros_take_no_part_in_the_largest_exponent_on_an_h200():
    """Results of each kind of operands have bits that would be cut off, were a zero a number of its least exponent."""
    told = set()
    for name in ALIGNED:
        one = INSTRUCTION[name]
        a, b, _, d = recorded_numbers(name)
        products = exponents(a, TYPES[one.a]) + exponents(b, TYPES[one.b])
        of_zeros = np.where((a == 0) != (b == 0), products, -(10**4)).max(-1)
        some = d != 0
        mantissa, exponent = np.frexp(d[some])
        whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
        last = exponent - 53 + np.frexp((whole & -whole).astype(np.float64))[1] - 1
        if (last < of_zeros[some] - one.unit("h200").fraction_bits).any():
            told |= {one.a, one.b}
    assert told == {"f16", "bf16", "tf32", "e4m3", "e5m2"}


@cases("name", ["mma_m16n8k16_f32_bf16_bf16_f32", "wgmma_m64n8k8_f32_tf32_tf32"])
def test_a_zero_c_has_no_exponent_on_an_h200(name):
    """arXiv 2511.10909 gives it -126; then sums to which C = 0 is added would have other bits."""
    one = INSTRUCTION[name]
    a, b, c, d = (x.astype(np.float32) for x in recorded_numbers(name))
    unit = replace(one.unit("h200"), min_exponent=-126)
    got = sn.matmul(a[:, None, :], b[:, :, None], unit, c[:, None, None])[:, 0, 0]
    assert (differing(got, d) & (c == 0)).any()


def test_the_nan_of_an_h200():
    for name, one in INSTRUCTION.items():
        if one.d in ("f32", "f16"):
            with np.load(H200 / ARITHMETICS[name]["file"]) as data:
                codes = data["d"][np.isnan(decoded(data["d"], one.d))]
            assert len(codes) and (codes == (0x7FFFFFFF if one.d == "f32" else 0x7FFF)).all()


def test_f64_sums_go_along_k_on_an_h200():
    one = INSTRUCTION["mma_m16n8k16_f64_f64_f64_f64"]
    a, b, c, d = recorded_numbers(one.file)
    backwards = sn.matmul(a[:, None, ::-1], b[:, ::-1, None], one.unit("h200"), c[:, None, None])[:, 0, 0]
    assert 0 < differing(backwards, d).sum() < len(d)


def test_sums_that_round_to_zero_are_positive_on_an_h200():
    """They are -0 in none of the results, though many a sum of negative numbers is too small."""
    negative = 0
    for name, one in INSTRUCTION.items():
        if one.d != "f16":
            continue
        a, b, c, d = recorded_numbers(name)
        zero = d == 0
        negative += np.count_nonzero((a[zero] * b[zero]).sum(-1) + c[zero] < 0)
        assert not np.signbit(d[zero]).any()
    assert negative > 20


CONVERSIONS = {
    "cvt.rn.bf16.f32": ("bfloat16", {}), "cvt.rz.bf16.f32": ("bfloat16", {"rounding": "toward_zero"}),
    "cvt.rn.f16.f32": ("binary16", {}), "cvt.rz.f16.f32": ("binary16", {"rounding": "toward_zero"}),
    "cvt.rn.tf32.f32": ("tf32", {}), "cvt.rz.tf32.f32": ("tf32", {"rounding": "toward_zero"}),
    "cvt.rna.tf32.f32": ("tf32", {"rounding": "nearest_away"}),
    "cvt.rn.satfinite.e4m3x2.f32": ("e4m3fn", {"overflow": "saturate"}),
    "cvt.rn.satfinite.e5m2x2.f32": ("e5m2", {"overflow": "saturate"}),
    "cvt.rn.satfinite.e4m3x2.f16x2": ("e4m3fn", {"overflow": "saturate"}),
    "cvt.rn.satfinite.e5m2x2.f16x2": ("e5m2", {"overflow": "saturate"}),
}  # fmt: skip


@cases("name", CONVERSIONS)
def test_conversions_of_an_h200(name, isa):
    fmt, options = CONVERSIONS[name]
    with np.load(H200 / "functions.npz") as data:
        singles = data["x_f32"].view(np.float32)
        x = singles if name.endswith("f32") else np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
        got = data[name]
    want = sn.quantize(x, fmt, **options)
    if fmt != "tf32":
        got = sn.decode((got & 0xFF if "x2" in name else got).astype(sn.format(fmt).storage_dtype), fmt)
    else:
        got = decoded(got, "tf32")
    number = ~np.isnan(x)
    assert not differing(got[number], want[number].astype(got.dtype)).any()
    if name == "cvt.rna.tf32.f32":  # cuts a NaN's payload off: where nothing is left, it is an infinity
        lost = ~number & ((x.view(np.uint32) & 0x7FE000) == 0)
        assert lost.any() and np.isinf(got[lost]).all() and np.isnan(got[~number & ~lost]).all()
    else:
        assert np.isnan(got[~number]).all() and not number.all()


@cases("name, fmt", [("cvt.rn.f16x2.e4m3x2", "e4m3fn"), ("cvt.rn.f16x2.e5m2x2", "e5m2")])
def test_decoding_on_an_h200(name, fmt):
    with np.load(H200 / "functions.npz") as data:
        got = (data[name] & 0xFFFF).astype(np.uint16).view(np.float16)
    want = sn.decode((np.arange(2**16) & 0xFF).astype(np.uint8), fmt).astype(np.float16)
    assert not differing(got, want).any() and np.isfinite(want).any()
