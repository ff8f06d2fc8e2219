"""Energies of an iteration: the tables as cited, what stands in for what, and sums by hand."""

import math
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softnum.train import load_design, workload
from softnum.tta import Gemm, Hardware, Operation, Workload, energy_of
from softnum.tta.workloads import ENERGY_KINDS, ENERGY_TABLES, STAGES, StoredTensor, multiplier_areas, operation_energy
from softnum.tta.workloads.energy_tables import dram_energy, mac_energy, sram_energy
from tests.support.cases import cases

HARDWARE = Hardware.from_table(
    {
        "array": [32, 32],
        "sram_bytes": {"ifmap": 8192, "filter": 32768, "ofmap": 1048576},
        "bandwidth": "16 GB/s",
        "clock": "1 GHz",
    }
)


def gemm(*formats, bits=16, stage="forward", m=32, n=40, k=64, **more):
    return Gemm("fc", stage, m, n, k, bits, formats, **more)


def work(*gemms, extra=()):
    operations = [
        Operation(
            g.layer, g.phase, "gemm", 2 * g.m * g.n * g.k * g.count,
            int((g.m * g.k + g.k * g.n) * g.bits // 8) * g.count, int(g.m * g.n * g.bits // 8) * g.count, g.formats, g,
        )
        for g in gemms
    ]  # fmt: skip
    return Workload("net", "design", 32, (*operations, *extra))


def test_the_tables_hold_what_their_sources_say():
    tables = tomllib.loads(resources.files("softnum.tta").joinpath("energy.toml").read_text())
    assert tuple(tables) == ENERGY_TABLES
    isscc, lecture = tables["45nm"], tables["45nm-lecture"]
    rows = {name: tuple(isscc[name].values()) for name in ("int8", "int32", "fp16", "fp32")}
    assert rows == {"int8": (0.03, 0.2), "int32": (0.1, 3.1), "fp16": (0.4, 1.1), "fp32": (0.9, 3.7)}
    assert [(row["bytes"], row["pj"]) for row in isscc["sram"]] == [(8192, 10), (32768, 20), (1048576, 100)]
    # the lecture: 640 pJ for 32 bits of DRAM, 5 for 32 bits of SRAM, and its last column is their ratio to an int32 sum
    assert (lecture["dram"]["low_pj"], lecture["sram"][0]["pj"], lecture["int32"]["add_pj"]) == (640, 5, 0.1)
    assert {name: lecture[name] for name in ("int32", "fp32")} == {name: isscc[name] for name in ("int32", "fp32")}
    assert all(len(table["citation"]) > 60 for table in tables.values())


@cases(
    ("fmt", "multiply", "add"),
    [
        ("float32", ("fp32", 3.7, "published"), ("fp32", 0.9, "published")),
        ("binary16", ("fp16", 1.1, "published"), ("fp16", 0.4, "published")),
        ("e5m10", ("fp16", 1.1, "published"), ("fp16", 0.4, "published")),
        ("bfloat16", ("fp16", 1.1, "proxy"), ("fp16", 0.4, "proxy")),
        ("e6m9", ("fp16", 1.1, "proxy"), ("fp16", 0.4, "proxy")),
        ("tf32", ("fp32", 3.7, "proxy"), ("fp32", 0.9, "proxy")),
        ("e2m13", ("fp32", 3.7, "proxy"), ("fp32", 0.9, "proxy")),  # 16 bits, but 14 of them significand
        ("e5m2", ("int8", 0.2, "proxy"), ("fp16", 0.4, "proxy")),
        ("e2m1fn", ("int8", 0.2, "proxy"), ("fp16", 0.4, "proxy")),
        ("mxfp8_e4m3", ("int8", 0.2, "proxy"), ("fp16", 0.4, "proxy")),
        ("q4.4", ("int8", 0.2, "published"), ("int8", 0.03, "published")),
        ("q2.4", ("int8", 0.2, "proxy"), ("int8", 0.03, "proxy")),
        ("q8.8", ("int32", 3.1, "proxy"), ("int32", 0.1, "proxy")),
        ("q16.16", ("int32", 3.1, "published"), ("int32", 0.1, "published")),
    ],
)
def test_a_format_is_charged_its_own_entry_or_the_next_wider(fmt, multiply, add):
    for operation, wanted in (("multiply", multiply), ("add", add)):
        energy = operation_energy(operation, fmt, bits=8)
        assert (energy.entry, energy.picojoules, energy.kind) == wanted and fmt in energy.reason


def test_multiplications_are_charged_what_areas_are():
    for fmt, area in multiplier_areas().items():
        assert operation_energy("multiply", fmt).entry == area.reason.split(":")[0].removeprefix("area of ")


def test_a_table_of_32_bits_charges_32_bits():
    for fmt in ("e5m2", "binary16", "float32"):
        assert operation_energy("multiply", fmt, table="45nm-lecture").entry == "fp32"
    assert operation_energy("add", "q4.4", table="45nm-lecture").picojoules == 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: operation_energy("multiply", "binary64"), "binary64: 64-bit float, precision 53: the energy table"),
        (lambda: operation_energy("multiply", "q20.20"), "q20.20: 40-bit fixed point: the energy table '45nm' has no"),
        (lambda: operation_energy("divide", "e5m2"), "must be multiply or add, got 'divide'"),
        (
            lambda: operation_energy("add", "e5m2", table="7nm"),
            "unknown energy table '7nm'; tables: 45nm, 45nm-lecture",
        ),
        (
            lambda: operation_energy("add", "lns8"),
            "'lns8' is not one that softnum.format knows; the tables have no energy of it; state that of the unit's",
        ),
        (lambda: operation_energy("multiply", "posit8"), "posit8 is neither a float of sign, exponent and significand"),
        (lambda: energy_of(work(gemm("e4m3fn", function="m.py:f"))), "the user's function m.py:f multiplies"),
        (lambda: energy_of(work(gemm("e5m2")), accumulator="flaot32"), "'flaot32' is not one that softnum.format"),
        (
            lambda: energy_of(Workload("n", "d", 1, ())),
            "the workload 'n' of 'd' has no operation whose energy could be computed",
        ),
    ],
)
def test_what_has_no_energy_is_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sram_by_size():
    assert [sram_energy(size)[0] for size in (8192, 32768, 1048576)] == [10 / 64, 20 / 64, 100 / 64]
    assert sram_energy(1024) == (10 / 64, "1024 bytes: as 8192")
    # four times the size costs twice the energy between the first two
    assert sram_energy(16384)[0] == pytest.approx(10 / 64 * math.sqrt(2))
    assert "between 8192 and 32768" in sram_energy(16384)[1]
    assert sram_energy(32 * 1048576)[0] == pytest.approx(500 / 64) and "continued" in sram_energy(2**25)[1]
    assert sram_energy(65536, "45nm-lecture") == (5 / 32, "65536 bytes: as 32768")
    assert dram_energy() == (1300 / 64, 2600 / 64)


@given(st.integers(1, 2**32), st.integers(1, 2**32))
def test_more_sram_costs_no_less(one, other):
    small, large = sorted([one, other])
    assert sram_energy(small)[0] <= sram_energy(large)[0] * (1 + 1e-12)


def test_energies_by_hand():
    relu = Operation("relu", "forward", "relu", 1280, 2560, 2560, ("binary16",))
    energy = energy_of(work(gemm("binary16", "e5m2", count=3), extra=[relu]))
    macs, moved = 3 * 32 * 40 * 64, 3 * (32 * 64 + 64 * 40 + 32 * 40) * 2
    wanted = {
        "multiply": macs * 1.1,
        "add": macs * 0.9,  # no accumulator named: 32 bits
        "elementwise": 1280 * 1.1,
        "sram": 2 * 8 * (moved + 5120) * 20 / 64,
        "dram": 8 * (moved + 5120) * 1300 / 64,
    }
    assert tuple(energy.by_kind) == ENERGY_KINDS and tuple(energy.by_stage) == STAGES
    assert energy.by_kind == pytest.approx({kind: value * 1e-12 for kind, value in wanted.items()}, rel=1e-15)
    assert energy.joules == pytest.approx(sum(wanted.values()) * 1e-12)
    assert energy.high - energy.joules == pytest.approx(energy.by_kind["dram"])  # twice as dear at the high end
    assert energy.by_stage["forward"] == energy.joules and energy.by_stage["update"] == 0
    assert energy.by_layer["relu"] == pytest.approx((1280 * 1.1 + 5120 * 8 * (2 * 20 + 1300) / 64) * 1e-12)
    assert "sums are kept in 32 bits" in " ".join(energy.assumptions)
    assert energy.to_table()["by_kind"] == energy.by_kind and "Horowitz" in energy.source


def test_what_is_wider_than_the_table_is_made_of_parts_outside_gemms():
    loss = Operation("loss", "backward_data", "softmax_cross_entropy", 320, 0, 0, ("binary64", "float32"))
    energy = energy_of(work(gemm("e5m2", bits=8), extra=[loss]))
    assert energy.by_kind["elementwise"] == pytest.approx(320 * 4 * 3.7e-12)
    assert any("binary64: 64-bit float, precision 53, charged as 4 of fp32 (proxy)" in s for s in energy.assumptions)
    with pytest.raises(ValueError, match="binary64: 64-bit float.* no entry as wide"):
        energy_of(work(gemm("binary64", bits=64)))


def test_an_accumulator_is_charged_by_stage():
    gemms = [gemm("e5m2", stage=stage, bits=8) for stage in STAGES[:3]]
    macs = 32 * 40 * 64
    each = energy_of(work(*gemms), accumulator={"forward": "binary16", "backward_data": "float32"})
    assert each.by_kind["add"] == pytest.approx(macs * (0.4 + 0.9 + 0.9) * 1e-12)
    assert energy_of(work(*gemms), accumulator="e6m9").by_kind["add"] == pytest.approx(macs * 3 * 0.4e-12)
    fixed = energy_of(work(gemm("q4.4", "q4.4", bits=8)))
    assert fixed.by_kind["add"] == pytest.approx(macs * 0.1e-12)
    assert not [line for line in fixed.assumptions if "proxy" in line]
    assert [energy.entry for energy in mac_energy(gemm("q4.4", "e5m2", bits=8))] == ["int8", "fp32"]


def test_an_array_reads_operands_once_for_every_fold():
    energy = energy_of(work(gemm("binary16", "binary16")), hardware=HARDWARE)
    left, right, results = 32 * 64, 64 * 40, 32 * 40
    # two folds of columns, one of rows; in and out of SRAM of 8 KB, 32 KB and 1 MB
    bits = 16 * (left * (1 + 2) * 10 + right * (1 + 1) * 20 + results * 2 * 100) / 64
    assert energy.by_kind["sram"] == pytest.approx(bits * 1e-12)
    assert any("32 x 32 array" in line for line in energy.assumptions)


def test_a_pattern_saves_its_multiplications():
    dense = energy_of(work(gemm("binary16", "binary16")))
    sparse = energy_of(work(gemm("binary16", "binary16", sparsity=("dense", "2:4"))))
    assert sparse.by_kind["multiply"] == dense.by_kind["multiply"] / 2
    assert sparse.by_kind["dram"] == dense.by_kind["dram"]  # what is fetched is the workload's to say
    packed = energy_of(work(gemm("binary16", "binary16", sparsity=("dense", "2:4"))), hardware=HARDWARE)
    # all of the left operand passes the cells; half of the right one, each number with an index of two bits
    bits = (16 * 32 * 64 * (1 + 2) * 10 + 18 * 32 * 40 * (1 + 1) * 20 + 16 * 32 * 40 * 2 * 100) / 64
    assert packed.by_kind["sram"] == pytest.approx(bits * 1e-12)


def test_an_iteration_with_two_of_four_weights_moves_fewer_bytes():
    """Weights go packed, 20 bits in place of four bytes, wherever the dense design moves them, and nowhere else."""
    folder = Path(__file__).parents[2] / "examples" / "sparsity"
    dense, sparse = (workload("mlp", load_design(folder / f"fp8-{name}.toml"), 32) for name in ("dense", "2of4"))
    fc1, fc2 = 64 * 128, 128 * 10  # in the update and the forward product; of fc2 also in that of the errors
    assert dense.bytes - sparse.bytes == (2 * fc1 + 3 * fc2) * 3 // 8
    assert [o.kind for o in sparse.operations] == [o.kind for o in dense.operations]
    assert {t.bits for t in sparse.tensors if (t.name, t.format) == ("weight", "e4m3fn")} == {5}
    assert energy_of(sparse).joules < energy_of(dense).joules
    assert energy_of(sparse, hardware=HARDWARE).joules < energy_of(dense, hardware=HARDWARE).joules


@given(
    st.sampled_from(["e5m2", "binary16", "bfloat16", "float32"]),
    st.integers(1, 64), st.integers(1, 64), st.integers(1, 64), st.integers(1, 5),
)  # fmt: skip
def test_energy_adds_up_and_grows(fmt, m, n, k, count):
    one = gemm(fmt, fmt, m=m, n=n, k=k)
    energies = [energy_of(work(one)), energy_of(work(*[one] * count)), energy_of(work(replace(one, count=count)))]
    assert energies[1].joules == pytest.approx(count * energies[0].joules)
    assert energies[2].joules == pytest.approx(count * energies[0].joules)
    for energy in energies:
        assert energy.joules == pytest.approx(sum(energy.by_kind.values()))
        assert energy.joules == pytest.approx(sum(energy.by_stage.values()))
        assert energy.joules == pytest.approx(sum(energy.by_layer.values()))
    assert energy_of(work(replace(one, k=k + 1))).joules > energies[0].joules


def test_a_format_without_a_name_is_as_wide_outside_products_as_its_tensors():
    relu = Operation("fc", "forward", "relu", 1000, 100, 100, ("",))
    held = StoredTensor("fc", "relu", "feature_maps", 100, 8, "")
    known, unknown = (energy_of(Workload("one", "d", 8, (relu,), tensors)) for tensors in ((held,), ()))
    assert known.by_kind["elementwise"] == pytest.approx(1000 * 0.2e-12, rel=1e-12)
    assert known.assumptions[-1] == "product of a format without a name has 8 bits, charged as int8 (proxy)"
    assert unknown.by_kind["elementwise"] == pytest.approx(1000 * 3.7e-12, rel=1e-12)


def test_places_of_maxima_are_no_numbers_that_an_operation_computes_with():
    work = workload("lenet5", load_design("a-float32"), 8)
    pooled = [each for each in work.operations if "max_pool2d" in each.kind]
    assert len(pooled) == 4 and {each.formats for each in pooled} == {("binary32",)}
    dear = {each.flops for each in work.operations if "binary64" in each.formats}  # the loss's, four of 32 bits each
    flops = sum(each.flops for each in work.operations if each.gemm is None) + 3 * sum(dear)
    assert energy_of(work).by_kind["elementwise"] == pytest.approx(flops * 3.7e-12, rel=1e-12)
