"""Hardware of several cores: what each gets of a product, of the bandwidth, of the area and of the energy."""

from dataclasses import replace

import pytest

from softnum.train import load_design
from softnum.tta import (
    DesignPoint,
    Gemm,
    Hardware,
    energy_of,
    load_reports,
    scalesim_timings,
    scalesim_variants,
    workload_of_gemms,
)
from softnum.tta.estimates import Device
from softnum.tta.simulators import machine_for
from softnum.tta.simulators.reports import write_reports
from softnum.tta.simulators.scalesim_report import report_text
from softnum.tta.simulators.zigzag import zigzag_machine
from softnum.tta.workloads import UnitHardware, equal_area
from tests.support.hardware_tables import HARDWARE, TABLE


def cores(*counts):
    return replace(HARDWARE, cores=counts)


def test_cores_share_results_and_bandwidth():
    assert Hardware.from_table({**TABLE, "cores": [2, 2]}) == cores(2, 2)
    assert cores(2, 2).to_table()["cores"] == [2, 2] and "cores" not in HARDWARE.to_table()
    assert (cores(2, 2).cells, cores(2, 2).part((33, 128, 64))) == (4096, (17, 64, 64))
    assert machine_for(cores(2, 2), 8).bandwidths == (4, 4, 4)  # of 16
    with pytest.raises(ValueError, match="0.5 bytes per cycle of each of 32 cores is less than one word of 8 bits"):
        machine_for(cores(4, 8), 8)
    for bad, message in (([0, 1], "cores rows must be at least 1"), ([2], r"cores must be \[rows, columns\]")):
        with pytest.raises(ValueError, match=message):
            Hardware.from_table({**TABLE, "cores": bad})
    assert Device.of_hardware(cores(2, 3)).peaks == {"native": 6 * 2 * 1024 * 1e9}
    pairs = [
        DesignPoint(name, hardware, (Gemm("fc", "forward", 8, 8, 8, 8, (name,)),))
        for name, hardware in (("float32", HARDWARE), ("binary16", cores(2, 2)))
    ]
    scaled, _, areas = equal_area(pairs, "float32")
    assert scaled[1].hardware.array == (34, 34) and scaled[1].hardware.cores == (2, 2)  # 32 sqrt(7700 / 1640 / 4)
    assert scaled[1].hardware.cells * areas["binary16"].um2 <= 32 * 32 * 7700
    with pytest.raises(ValueError, match=r"to run on cores = \[2, 2\]; of ZigZag only one core can be simulated"):
        zigzag_machine(cores(2, 2), Gemm("fc", "forward", 8, 8, 8, 8, ("float32",)))


def test_folds_of_a_core_of_weights_with_a_pattern_are_late():
    slow = replace(cores(2, 1), unit=UnitHardware("data sheet", latency_cycles=5))
    gemm = Gemm("fc", "forward", 64, 32, 100, 8, sparsity=("dense", "2:4"))  # a core: 32 x 32 results, 50 weights
    assert slow.cycles(400, gemm, "os") == 400 + 1 * 4
    assert slow.cycles(400, gemm, "ws") == 400 + 2 * 4  # 4 folds without the pattern


def test_energy_of_cores_counts_what_enters_each():
    gemm = Gemm("fc", "forward", 64, 96, 10, 8, ("e5m2", "e5m2"))
    work = workload_of_gemms(DesignPoint("d", HARDWARE, (gemm,)), 1)
    one, four = (energy_of(work, hardware=hardware).by_kind["sram"] for hardware in (HARDWARE, cores(2, 2)))
    words = [64 * 10 * (1 + 3) + 96 * 10 * (1 + 2) + 2 * 64 * 96, 64 * 10 * (2 + 4) + 96 * 10 * (2 + 2) + 2 * 64 * 96]
    assert four / one == pytest.approx(words[1] / words[0], rel=1e-12)


def test_a_product_on_cores_takes_as_long_as_its_largest_part(tmp_path):
    gemm = Gemm("fc", "forward", 64, 256, 64, 8, ("e5m2", "e5m2"))
    design = DesignPoint("d", cores(2, 2), (gemm,))
    machine = machine_for(cores(2, 2), 8)
    shape, row = (32, 128, 64), "3574, 503, 0, 50.89463220675945, 100.0, 50.79365079365079,"
    reports = [("r.csv", report_text([row]), machine, [shape])]
    write_reports(tmp_path, "scalesim", "os", "d", [design], reports)
    stored = load_reports(tmp_path)
    assert stored.designs["d"] == design
    stated, *_ = scalesim_variants([design], baseline="d", simulations=stored)
    detail = stated.timings["d"].detail
    assert (detail["cycles"], detail["gemms"][0]["part"], detail["gemms"][0]["M"]) == (3574, [32, 128, 64], 64)
    assert detail["utilisation"] == 64 * 256 * 64 / (3574 * 4096)
    assert any(line.startswith("cores: rows and columns of each result") for line in stated.assumptions)
    with pytest.raises(ValueError, match=r"cores is None here and \[2, 2\] in the reports"):
        scalesim_timings([replace(design, hardware=HARDWARE)], stored)


def test_designs_state_cores(tmp_path):
    text = 'name = "d"\n[roles]\ndefault = { format = "binary32" }\n[hardware]\narray = [32, 32]\ncores = %s\n'
    path = tmp_path / "d.toml"
    path.write_text(text % "[2, 4]")
    assert load_design(path).hardware["cores"] == [2, 4]
    for bad in ("4", "[2]", "[0, 1]", "[2, 1.5]"):
        path.write_text(text % bad)
        with pytest.raises(ValueError, match=r"hardware\.cores"):
            load_design(path)
