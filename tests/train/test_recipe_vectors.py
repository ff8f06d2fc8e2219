"""Quantizers and products of training recipes against what their published references computed, bit for bit.

SOFTNUM_RECIPE_VECTORS names a folder: manifest.json and, for each family of cases, an .npz with their arrays.
"""

import json
import os
from collections import Counter
from math import prod
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import softnum as sn
from softnum.train import recipes
from tests.support.cases import cases

FOLDER = os.environ.get("SOFTNUM_RECIPE_VECTORS")
MANIFEST = json.loads((Path(FOLDER) / "manifest.json").read_text()) if FOLDER else {"families": {}, "cases": []}
FAMILIES = [*MANIFEST["families"]]
#: arrays that references compute in an order of their own: compared with a tolerance
TOLERANCES = {("current_scaling_gemm", "y"), ("nvfp4_quant", "x_t_rht")}
FORMATS = {"e4m3": "e4m3fn", "e5m2": "e5m2"}
LARGEST = {"f32": float(np.finfo(np.float32).max), "bf16": float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)}

pytestmark = pytest.mark.skipif(
    not FOLDER,
    reason="SOFTNUM_RECIPE_VECTORS names no folder of results of NVIDIA Transformer Engine's Python references",
)


class Case:
    """A case's arrays as float32 values, and which of them have been read or compared."""

    def __init__(self, case: dict, data: dict) -> None:
        self.name, self.family, self.params, self.arrays = case["name"], case["family"], case["params"], case["arrays"]
        self.data, self.left, self.compared = data, set(case["arrays"]), 0

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def read(self, name: str):
        """The values of an input; codes of e8m0 and matrices of integers stay as they are."""
        self.left.discard(name)
        encoding, shape, offset = self.arrays[name]
        codes = self.data[f"{name}.{encoding}"][offset : offset + prod(shape)].reshape(shape)
        if encoding == "bf16":
            return codes.view(ml_dtypes.bfloat16).astype(np.float32)
        if encoding == "e2m1x2":
            apart = np.stack([codes & 15, codes >> 4], axis=-1)
            return sn.decode(apart.reshape(*codes.shape[:-1], -1), "e2m1fn", np.float32)
        formats = {**FORMATS, "e2m1": "e2m1fn"}
        return sn.decode(codes, formats[encoding], np.float32) if encoding in formats else codes

    def matrix(self, name: str):
        """An input of any rank, as a matrix of its last axis."""
        x = self.read(name)
        return x.reshape(-1, x.shape[-1])

    def equal(self, name: str, got, *, signs_of_zeros: bool = True) -> None:
        """The array has these bits; NaN as NaN."""
        want = self.read(name)
        got = np.asarray(got, want.dtype)
        assert got.shape == want.shape, f"{self.name}, {name}: shape {got.shape}, want {want.shape}"
        same = (got == want) | ((got != got) & (want != want))
        if signs_of_zeros and want.dtype.kind == "f":
            same &= (np.signbit(got) == np.signbit(want)) | (want != want)
        wrong = np.argwhere(~same)
        assert not len(wrong), (
            f"{self.name}, {name}: {len(wrong)} of {want.size} differ, first at {wrong[0]}: "
            f"{got[tuple(wrong[0])]!r}, want {want[tuple(wrong[0])]!r}"
        )
        self.compared += 1

    def close(self, name: str, got, tolerance: float) -> None:
        """The array has these values within a tolerance, of its largest; infinities and NaN where they are."""
        assert (self.family, name) in TOLERANCES
        want = self.read(name)
        finite = np.isfinite(want)
        assert np.array_equal(got[~finite], want[~finite], equal_nan=True), f"{self.name}, {name}: infinities or NaN"
        error = np.abs(got - want.astype(np.float64))[finite].max(initial=0)
        assert error <= tolerance * np.abs(want[finite]).max(initial=0), f"{self.name}, {name}: {error}"
        self.compared += 1


def rounded(x, to: str):
    """To an output type of a reference: "f32" or "bf16"."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float32) if to == "bf16" else x


def delivered(case: Case, y):
    """A product with the bias, or the sum with what was there, in the output type."""
    to = case.params["out_dtype"]
    if "bias" in case:
        y = y + case.read("bias")
    y = rounded(y, to)
    return rounded(y + case.read("out"), to) if "out" in case else y


def scale_table(case: Case) -> None:
    p = case.params
    scale, inverse = recipes.scale_of_largest(
        case.read("amax"), sn.format(FORMATS[p["format"]]).max, power_of_two=p["pow_2_scales"],
        epsilon=p["amax_epsilon"], most=LARGEST[p["x_dtype"]], reference="pytorch",
    )  # fmt: skip
    case.equal("amax_clamped", np.maximum(case.read("amax"), np.float32(p["amax_epsilon"])))
    case.equal("scale", scale)
    case.equal("scale_inv", inverse)


def current_scaling(case: Case) -> None:
    p, x = case.params, case.matrix("x")
    shape = case.read("x").shape
    for kind, most in (("", LARGEST["f32"]), ("class_", LARGEST[p["input_dtype"]])):
        if f"{kind}q" not in case:
            continue
        quantizer = recipes.TensorScaling(
            FORMATS[p["format"]], p["pow_2_scales"], p["amax_epsilon"], "pytorch", most
        )  # fmt: skip
        scaled = quantizer(x)
        if not kind and "amax" in case:
            case.equal("amax", recipes.largest_magnitude(x).reshape(1))
        if f"{kind}scale" in case:
            scale, _ = recipes.scale_of_largest(
                recipes.largest_magnitude(x), quantizer.format.max, power_of_two=p["pow_2_scales"],
                epsilon=p["amax_epsilon"], most=most, reference="pytorch",
            )  # fmt: skip
            case.equal(f"{kind}scale", scale.reshape(1))
        case.equal(f"{kind}scale_inv", scaled.scales.reshape(1))
        case.equal(f"{kind}q", scaled.elements.reshape(shape))
        if f"{kind}dq" in case:
            case.equal(f"{kind}dq", scaled.values().reshape(shape))
    if "q_t" in case:
        elements = quantizer(x).elements.reshape(shape)
        case.equal("q_t", np.moveaxis(elements, -1, 0))


def current_scaling_jax(case: Case) -> None:
    scaled = recipes.TensorScaling(FORMATS[case.params["format"]], reference="jax")(case.matrix("x"))
    case.equal("scale_inv", scaled.scales.reshape(1))
    case.equal("q", scaled.elements.reshape(case.read("x").shape))


def current_scaling_gemm(case: Case) -> None:
    p = case.params
    a, b = (recipes.Scaled(case.read(f"q{x}"), case.read(f"s{x}").reshape(1, 1), (None, None)) for x in "xw")
    unit = sn.ExactDotUnit("binary64", operand=tuple(FORMATS[p[f"{x}_format"]] for x in "xw"))
    exact = sn.matmul(a.elements, b.elements.T, unit).astype(np.float64)
    exact = exact * (a.scales.astype(np.float64) * b.scales.astype(np.float64))
    case.equal("y_exact", exact)
    sums = sn.MadUnit("binary32", operand=tuple(FORMATS[p[f"{x}_format"]] for x in "xw"))
    y = delivered(case, recipes.scaled_product(a, b, sums))
    case.close("y", y, 2.0**-6 if p["out_dtype"] == "bf16" else 2.0**-18)


def delayed_scaling(case: Case) -> None:
    p, largest = case.params, sn.format(FORMATS[case.params["format"]]).max
    options = {"margin": p["margin"], "algorithm": p["amax_compute_algo"]}
    if "step_amax" in case:
        steps = case.read("step_amax")
        history, scale, scales, histories = np.zeros((p["amax_history_len"], steps.shape[1]), np.float32), 1.0, [], []
        for amax in steps:
            history[0] = np.maximum(history[0], amax)
            scale, history = recipes.delayed_scale(history, scale, largest, reference="pytorch", **options)
            scales.append(scale)
            histories.append(history.copy())
        case.equal("scale_after", scales)
        case.equal("history_after", histories)
        return
    history, before = case.read("history"), case.read("scale_before")
    case.equal("amax", history[0] if p["amax_compute_algo"] == "most_recent" else history.max(axis=0))
    scale, after = recipes.delayed_scale(history, before, largest, reference="pytorch", **options)
    case.equal("scale_after", scale)
    case.equal("history_after", after)
    scale, _ = recipes.delayed_scale(history, before, largest, reference="cuda", **options)
    case.equal("kernel_formula_scale", scale)


def delayed_quant_jax(case: Case) -> None:
    p = case.params
    scaling = recipes.DelayedScaling(
        FORMATS[p["format"]], p["amax_history_len"], p["margin"], p["amax_compute_algo"], "jax"
    )  # fmt: skip
    state, found = scaling.start(), {"q": [], "scale_inv_used": [], "scale_after": [], "history_after": []}
    for x in case.read("x"):
        scaled = scaling(x, state)
        scaling.update(state)
        for name, value in zip(found, (*scaled[:2], state.scale, state.history), strict=True):
            found[name].append(np.array(value).reshape(1) if name.startswith("scale") else value.copy())
    for name, values in found.items():
        case.equal(name, values)


def blockwise_quant(case: Case) -> None:
    p, x = case.params, case.read("x")
    quantizer = recipes.BlockScaling(
        FORMATS[p["format"]], tuple(p["tile"]), p["pow_2_scales"], p["amax_epsilon"], "pytorch",
        LARGEST[p["input_dtype"]],
    )  # fmt: skip
    for suffix, numbers in (("", x), ("_t", x.T)):
        scaled = quantizer(numbers)
        case.equal(f"q{suffix}", scaled.elements)
        case.equal(f"s{suffix}", scaled.scales)
        if f"s{suffix}_gemm" in case:  # as cuBLAS takes them: rows of scales a multiple of 4, by blocks of K first
            scales = scaled.scales.T if p["tile"][0] == 1 else scaled.scales
            case.equal(f"s{suffix}_gemm", np.pad(scales, ((0, 0), (0, -scales.shape[1] % 4))))
        if not suffix and "dq" in case:
            case.equal("dq", scaled.values())


def blockwise_gemm(case: Case) -> None:
    p = case.params
    a, b = (recipes.Scaled(case.read(f"q{x}"), case.read(f"s{x}"), tuple(p[f"{x}_tile"])) for x in "xw")
    unit = sn.MadUnit("binary32", operand=tuple(FORMATS[p[f"{x}_format"]] for x in "xw"))
    parts = [
        sn.matmul(a.elements[:, k : k + 128], b.elements[:, k : k + 128].T, unit)
        for k in range(0, a.elements.shape[1], 128)
    ]
    case.equal("partial", parts)
    case.equal("y", delivered(case, recipes.scaled_product(a, b, unit)))


def mxfp4_quant(case: Case) -> None:
    scaled = recipes.MXFP4Scaling(tuple(case.params["tile"]))(case.read("x"))
    case.equal("q", scaled.elements)
    case.equal("s", scaled.scales)


def mxfp8_1d(case: Case) -> None:
    if "function" in case.params:
        case.equal("code", recipes.exponent_code_of(case.read("scale")))
        return
    for name, block in (("row", (1, 32)), ("col", (32, 1))):
        quantizer = recipes.MXScaling(FORMATS[case.params["format"]], block)
        case.equal(f"s_{name}", quantizer.codes(case.read("x")))
        case.equal(f"q_{name}", quantizer(case.read("x")).elements)


def mxfp8_2d(case: Case) -> None:
    if "function" in case.params:
        codes = recipes.exponent_code_of(case.read("amax") / np.float32(case.params["fp8_max"]))
        case.equal("code", codes)
        with np.errstate(over="ignore"):
            case.equal("scale_inv", np.ldexp(np.float32(1), codes.astype(np.int32) - 127))
        return
    x = case.read("x")
    block = tuple(case.params["block"])
    quantizer = recipes.MXScaling(FORMATS[case.params["format"]], block)
    scaled, codes = quantizer(x), quantizer.codes(x)
    case.equal("q", scaled.elements)
    case.equal("s_row", codes.repeat(block[0], axis=0)[: x.shape[0]])
    case.equal("s_col", codes.repeat(block[1], axis=1)[:, : x.shape[1]])
    case.equal("scale_inv", scaled.scales)
    case.equal("dq", scaled.values())


def mxfp8_partial(case: Case) -> None:
    p = case.params
    part = slice(p["start_offset"], p["start_offset"] + p["count"])
    x = np.zeros(p["h"] * p["w"], np.float32)
    x[part] = case.read("x")
    x = x.reshape(p["h"], p["w"])
    for name, block in (("row", (1, 32)), ("col", (32, 1))):
        quantizer = recipes.MXScaling(FORMATS[p["format"]], block)
        case.equal(f"amax_{name}", recipes.tile_magnitudes(x, block))
        case.equal(f"s_{name}", quantizer.codes(x))
        case.equal(f"q_{name}", quantizer(x).elements.ravel()[part])


def nvfp4_quant(case: Case) -> None:
    p, x = case.params, case.read("x")
    errors = {"MAE": "absolute", "MSE": "squared"}[p.get("err_mode", "MAE")]
    quantizer = recipes.NVFP4Scaling(
        tuple(p["tile"]), p.get("row_scaled", False), errors if p.get("use_4over6") else None,
        p.get("err_fast_math", False), p.get("e4m3_max", 448), reference="pytorch",
    )  # fmt: skip
    sides = [("", "row", x)]
    if "x_t_rht" in case:
        signs = recipes.SIGNS if p.get("sign_mask", True) else 0
        to = "bfloat16" if p["input_dtype"] == "bf16" else "binary32"
        case.close(
            "x_t_rht", recipes.hadamard_transform(x.T, to, signs=signs), 2.0 ** (-7 if to == "bfloat16" else -20)
        )
        sides.append(("_t", "col", case.read("x_t_rht")))
    elif "q_t" in case:
        sides.append(("_t", "col", x.T))
    for suffix, amax, numbers in sides:
        scaled = quantizer(numbers)
        case.equal(f"q{suffix}", scaled.elements)
        case.equal(f"s{suffix}", scaled.scales.repeat(p["tile"][0], axis=0))
        case.equal(f"amax_{amax}", scaled.tensor[0].ravel())
        if not suffix and "dq" in case:
            case.equal("dq", scaled.values())


def nvfp4_gemm(case: Case) -> None:
    p = case.params
    operands = []
    for x in "xw":
        elements, scales = case.read(f"q{x}"), case.read(f"s{x}")
        tensor = (case.read(f"amax_{x}").reshape(-1, 1), 6 * p[f"e4m3_max_{x}"]) if f"amax_{x}" in case else None
        operands.append(recipes.Scaled(elements, scales[: len(elements)], (1, p.get("block", 16)), tensor))
    y = recipes.scaled_product(*operands, sn.MadUnit("binary32", operand="e2m1fn"))
    if "out" in case:
        y = y + case.read("out")
    case.equal("y", rounded(y, p["out_dtype"]))


def nvfp4_jax(case: Case) -> None:
    p, x = case.params, case.read("x")
    quantizer = recipes.NVFP4Scaling((16, 16) if p["mode"] == "2d" else (1, 16), reference="jax")
    for suffix in ("", "_t"):
        if f"q{suffix}" not in case:
            continue
        numbers = x.T if suffix else x
        if suffix and p["mode"] == "1d_rht":
            numbers = recipes.hadamard_transform(numbers, "bfloat16" if p["input_dtype"] == "bf16" else "binary32")
        elements, scales, _, (amax, _) = quantizer(numbers)
        if p["stochastic_rounding"]:
            scaled, _ = quantizer.scaled(numbers)
            case.equal(f"scaled{suffix}", scaled)
            elements = recipes.jax_stochastic(scaled, case.read(f"rand{suffix}"))
        case.equal(f"q{suffix}", elements, signs_of_zeros=False)
        case.equal(f"s{suffix}", np.tile(scales, (quantizer.block[0], 1)))
        case.equal(f"amax{suffix}", amax.ravel())


def nvfp4_tables(case: Case) -> None:
    match case.params["function"]:
        case "cast_to_fp4x2":
            case.equal("q", recipes.to_e2m1(case.read("v")).reshape(1, -1))
        case "cast_to_e8":
            case.equal("result", recipes.power_above(case.read("v")))
        case "cast_to_e4m3":
            case.equal(
                "result", recipes.cast(np.minimum(case.read("v") * case.read("mult"), np.float32(448)), "e4m3fn")
            )
        case "_ref_nvfp4_4over6_fp16_candidate":
            elements = sn.decode(np.arange(16, dtype=np.uint8), "e2m1fn", np.float32)
            products = recipes.half_products(elements, case.read("scale_code")[:, None])
            case.equal("result", products)
        case "_build_hadamard_matrix":
            matrix = recipes.hadamard_matrix()
            case.equal("sign", matrix[:, 0])
            case.equal("matrix", matrix)
        case other:
            pytest.fail(f"{case.name}: no check for the function {other!r}")


CHECKS = {
    check.__name__: check
    for check in (
        scale_table, current_scaling, current_scaling_jax, current_scaling_gemm, delayed_scaling, delayed_quant_jax,
        blockwise_quant, blockwise_gemm, mxfp4_quant, mxfp8_1d, mxfp8_2d, mxfp8_partial, nvfp4_quant, nvfp4_gemm,
        nvfp4_jax, nvfp4_tables,
    )
}  # fmt: skip


@cases("family", FAMILIES or ["none"])
def test_recipe_vectors(family):
    assert family in CHECKS, f"no check for the family {family!r}"
    with np.load(Path(FOLDER) / MANIFEST["families"][family]["file"]) as file:
        data = dict(file)
    for entry in MANIFEST["cases"]:
        if entry["family"] == family:
            case = Case(entry, data)
            with np.errstate(all="ignore"):
                CHECKS[family](case)
            assert case.compared, f"{case.name}: nothing was compared"
            assert not case.left, f"{case.name}: {', '.join(sorted(case.left))} neither read nor compared"


def test_recipe_vectors_are_all_run():
    counted = Counter(entry["family"] for entry in MANIFEST["cases"])
    assert {family: facts["cases"] for family, facts in MANIFEST["families"].items()} == counted
    assert set(counted) <= set(CHECKS)
