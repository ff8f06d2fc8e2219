"""Dot products that real GPUs computed, bit for bit."""

import os
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
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
