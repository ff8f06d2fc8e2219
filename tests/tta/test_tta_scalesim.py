"""SCALE-Sim: bytes to words, its input files, its reports of both versions, and the reports that ship."""

import configparser
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from importlib import resources
from pathlib import Path

import pytest

from softnum.tta import DesignPoint, Gemm, Hardware, load_reports, scalesim_timings, scalesim_variants, simulate
from softnum.tta.simulators import Machine, machine_for, read_compute_report, read_requests, read_scalesim, write_inputs
from softnum.tta.workloads import equal_area, multiplier_areas
from softnum.tta.workloads.hardware import kept_steps
from tests.support.hardware_tables import HARDWARE, TABLE

SPARSE = Path(__file__).parents[2] / "examples" / "sparsity" / "reports"
SHIPPED = Path(str(resources.files("softnum.tta").joinpath("reports")))

# The three rows are what scalesim 3.0.0 and 2.0.2 wrote for these GEMMs on 32 x 32 cells, 4 words per cycle, os.
SHAPES = [(32, 128, 64), (32, 10, 128), (64, 128, 32)]
REPORT_30 = """\
LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, \
Compute Util %,
0, 3574, 503, 0, 50.89463220675945, 100.0, 50.79365079365079,
1, 1292, 189, 0, 21.164021164021165, 31.25, 21.052631578947366,
2, 3822, 751, 0, 34.0878828229028, 100.0, 34.04255319148936,
"""
REPORT_2X = """\
LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,
0, 503, 0, 50.89463220675945, 100.0, 50.79365079365079,
1, 189, 0, 21.164021164021165, 31.25, 21.052631578947366,
2, 751, 0, 34.0878828229028, 100.0, 34.04255319148936,
"""


# What 3.0.0 wrote for these, 2:4, in 8-bit words on the machine of `HARDWARE`.
SPARSE_SHAPES = [(32, 128, 64), (32, 10, 128), (33, 40, 27)]
SPARSE_REPORT = """\
LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, \
Compute Util %,
0, 972, 375, 0, 68.26666666666667, 100.0, 34.04255319148936,
1, 400, 125, 0, 32.0, 31.25, 15.873015873015872,
2, 497, 303, 0, 11.486695544554456, 32.2265625, 5.936472039473684,
"""


def test_words_are_bytes_over_bits():
    words = {bits: machine_for(HARDWARE, bits) for bits in (32, 16, 8, 6, 4)}
    assert {bits: machine.words_per_cycle for bits, machine in words.items()} == {32: 4, 16: 8, 8: 16, 6: 21, 4: 32}
    assert {bits: machine.sram_kwords[0] for bits, machine in words.items()} == {32: 16, 16: 32, 8: 64, 6: 85, 4: 128}
    assert all(machine.array == (32, 32) and machine.dataflow == "os" for machine in words.values())


def test_too_little_for_one_word_is_refused():
    shared = machine_for(HARDWARE, 8.25)  # mxfp8: 65536 * 8 / 8.25 = 63550.06 words, 15.5 a cycle
    assert (shared.words_per_cycle, shared.sram_kwords[0]) == (15, 62)
    with pytest.raises(ValueError, match=r"less than one word of 32 bits.*higher bandwidth or a lower clock"):
        machine_for(replace(HARDWARE, bandwidth=Fraction(3 * 10**9)), 32)
    with pytest.raises(ValueError, match=r"sram_bytes 4000 hold less than 1024 words of 32 bits.*at least 4096 bytes"):
        machine_for(replace(HARDWARE, sram_bytes=(65536, 4000, 65536)), 32)
    assert machine_for(replace(HARDWARE, sram_bytes=(4096, 4096, 4096)), 32).sram_kwords == (1, 1, 1)
    with pytest.raises(ValueError, match="unknown dataflow 'rs'; SCALE-Sim knows os, ws, is"):
        machine_for(HARDWARE, 8, dataflow="rs")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"aray": [1, 1]}, ValueError, "unknown key 'aray'; did you mean 'array'"),
        ({"array": [32]}, ValueError, r"array must be \[rows, columns\], got \[32\]"),
        ({"array": [32, 0]}, ValueError, "array columns must be at least 1, got 0"),
        ({"array": [32, 2.5]}, TypeError, "array columns must be an integer, got 2.5"),
        ({"sram_bytes": {"ifmap": 1, "filter": 1}}, ValueError, "sram_bytes lacks 'ofmap'"),
        ({"sram_bytes": 65536}, TypeError, "sram_bytes must be a table"),
        ({"bandwidth": "16 Gbit/s"}, ValueError, r"\[hardware\] bandwidth '16 Gbit/s'"),
        ({"clock": 1e9}, TypeError, "clock must be a string with a unit"),
    ],
)
def test_bad_hardware(change, error, message):
    with pytest.raises(error, match=message):
        Hardware.from_table({**TABLE, **change})


def test_tables_round_trip():
    gemm = {"layer": "fc1", "pass": "forward", "M": 2, "N": 3, "K": 4, "bits": 8, "formats": ["e5m2", "e4m3"]}
    table = {"name": "d", "hardware": {**TABLE, "bandwidth": "1.5 GB/s"}, "gemms": [gemm]}
    assert DesignPoint.from_table(table).to_table() == table
    often = {**gemm, "count": 64}
    assert Gemm.from_table(gemm).count == 1 and Gemm.from_table(often).to_table() == often
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises((TypeError, ValueError), match="GEMM count must be"):
            Gemm.from_table({**gemm, "count": wrong})
    with pytest.raises(ValueError, match="unknown pass 'forwards'; passes: forward"):
        Gemm.from_table({**gemm, "pass": "forwards"})
    with pytest.raises(ValueError, match="design 'd' has no GEMM"):
        DesignPoint.from_table({**table, "gemms": []})


def test_input_files_say_what_the_machine_is(tmp_path):
    machine = Machine((16, 24), (16, 32, 64), 5, "ws")
    write_inputs(tmp_path, machine, SHAPES)
    config = configparser.ConfigParser()
    config.read(tmp_path / "run.cfg")
    cells = config["architecture_presets"]
    assert (cells.getint("ArrayHeight"), cells.getint("ArrayWidth"), cells["Dataflow"]) == (16, 24, "ws")
    assert [cells.getint(f"{name}SramSzkB") for name in ("Ifmap", "Filter", "Ofmap")] == [16, 32, 64]
    # 3.0.0 takes the read bandwidth from the bank keys, the write bandwidth from Bandwidth
    layout = config["layout"]
    assert {cells["Bandwidth"], layout["IfmapSRAMBankBandwidth"], layout["FilterSRAMBankBandwidth"]} == {"5"}
    assert config["run_presets"]["InterfaceBandwidth"] == "USER"
    # the three operands' addresses must not meet
    ends = [cells.getint("FilterOffset"), cells.getint("OfmapOffset") - cells.getint("FilterOffset")]
    assert all(end >= max(m * k for m, _, k in SHAPES) for end in ends)
    topology = (tmp_path / "topology.csv").read_text().splitlines()
    assert topology[1:] == ["gemm0, 32, 128, 64,", "gemm1, 32, 10, 128,", "gemm2, 64, 128, 32,"]
    assert {line.count(",") for line in (tmp_path / "layout.csv").read_text().splitlines()} == {21}


# -- patterns N:M ------------------------------------------------------------------------------------------------------


def test_a_pattern_costs_its_indices_and_all_of_the_left_operand(tmp_path):
    machine = machine_for(HARDWARE, 8, pattern="2:4")
    # left: half of 16 words and of 64 Ki; right: 10 bits a word; results as ever
    assert (machine.bandwidths, machine.sram_kwords) == ((8, 128 // 10, 16), (32, 524288 // 10 // 1024, 64))
    assert machine.slug == "os-32x32-sram32.51.64k-bw8.12.16-2of4"
    assert machine_for(HARDWARE, 16, pattern="3:5").bandwidths == (4, 6, 8)  # 8 * 3 // 5, 128 // 19
    shared = machine_for(HARDWARE, 8.25, pattern="2:4")  # mxfp8: right operands of 10.25 bits
    assert str(shared.sram_kwords) == "(31, 49, 62)" and shared.bandwidths == (7, 12, 15)  # SCALE-Sim reads no 49.0
    assert Machine.from_table(json.loads(json.dumps(machine.to_table()))) == machine
    assert "pattern" not in machine_for(HARDWARE, 8).to_table()
    write_inputs(tmp_path, machine, SHAPES)
    config = configparser.ConfigParser()
    config.read(tmp_path / "run.cfg")
    assert dict(config["sparsity"])["sparsitysupport"] == "true" and config["sparsity"]["OptimizedMapping"] == "false"
    layout = config["layout"]
    assert [layout[f"{name}SRAMBankBandwidth"] for name in ("Ifmap", "Filter")] == ["8", "12"]
    assert config["architecture_presets"]["Bandwidth"] == "16"
    assert (tmp_path / "topology.csv").read_text().splitlines()[1] == "gemm0, 32, 128, 64, 2:4,"
    with pytest.raises(ValueError, match=r"2:4\) cannot be simulated with the dataflow is: .* use os or ws"):
        machine_for(HARDWARE, 8, dataflow="is", pattern="2:4")
    with pytest.raises(ValueError, match=r"1:32 leaves 2 times 1024 words and 0 words per cycle for left .*13 bits"):
        machine_for(HARDWARE, 8, pattern="1:32")


def test_a_reports_cycles_are_those_counted_by_hand():
    machine = machine_for(HARDWARE, 8, pattern="2:4")
    rows = read_compute_report("sparse.csv", shapes=SPARSE_SHAPES, array=(32, 32), text=SPARSE_REPORT)
    for (m, n, k), row, line in zip(SPARSE_SHAPES, rows, SPARSE_REPORT.splitlines()[1:], strict=True):
        steps = k // 4 * 2 + min(2, k % 4)
        down, across = -(-m // 32), -(-n // 32)
        array = down * across * (steps + 32 + 32 - 2) - 1
        left, right, results = machine.bandwidths
        read = max(-(-down * 32 * steps // left), -(-across * 32 * steps // right))  # whole folds
        assert int(line.split(", ")[2]) == array
        assert row.cycles == read + array + -(-m * n // results) - 1


# What 3.0.0 wrote for the same with the dataflow ws, and for 1:4.
STATIONARY = {
    "2:4": """\
LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, \
Compute Util %,
0, 1100, 503, 0, 50.89463220675945, 100.0, 20.382165605095544,
1, 546, 251, 0, 15.936254980079681, 31.25, 6.369426751592357,
2, 467, 253, 0, 13.75679347826087, 27.34375, 5.711036392405063,
""",
    "1:4": """\
LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, \
Compute Util %,
0, 1014, 503, 0, 50.89463220675945, 50.0, 10.191082802547772,
1, 400, 125, 0, 32.0, 31.25, 6.369426751592357,
2, 599, 253, 0, 13.75679347826087, 13.671875, 2.8555181962025316,
""",
}


def test_cycles_of_stationary_weights_are_those_counted_by_hand():
    for pattern, text in STATIONARY.items():
        machine = machine_for(HARDWARE, 8, dataflow="ws", pattern=pattern)
        rows = read_compute_report("sparse.csv", shapes=SPARSE_SHAPES, array=(32, 32), text=text)
        for (m, n, k), row, line in zip(SPARSE_SHAPES, rows, text.splitlines()[1:], strict=True):
            steps = kept_steps(k, pattern)
            down, across = -(-steps // 32), -(-n // 32)
            array = down * across * (m + 32 + 32 + 32 - 2) - 1
            left, right, results = machine.bandwidths
            read = max(-(-down * 32 * m // left), -(-steps * n // right))  # left operands in whole folds
            assert int(line.split(", ")[2]) == array
            assert row.cycles == read + array + -(-down * m * n // results) - 1  # partial sums of each fold leave


def test_tables_of_patterns():
    table = {"layer": "fc1", "pass": "forward", "M": 2, "N": 3, "K": 4, "bits": 8, "formats": []}
    gemm = Gemm.from_table({**table, "sparsity": ["1:4", "2:4"]})
    assert gemm.pattern == "2:4" and gemm.to_table()["sparsity"] == ["1:4", "2:4"]
    assert Gemm.from_table({**table, "sparsity": ["1:4", "dense"]}).pattern is None
    assert Gemm.from_table(table).pattern is None and "sparsity" not in Gemm.from_table(table).to_table()
    for bad in ("2:4", ["2:4"], ["dense", "4:2"], ["dense", 0.5], ["dense", None]):
        with pytest.raises(ValueError, match="GEMM sparsity must be that of both operands"):
            Gemm.from_table({**table, "sparsity": bad})


def test_times_of_patterns_are_told_apart_and_what_they_assume_is_told():
    reports = load_reports(SPARSE)
    dense, sparse = reports.designs.values()
    stated, _ = scalesim_variants([dense, sparse], baseline=dense.name, simulations=reports)
    cycles = {name: time.detail["cycles"] for name, time in stated.timings.items()}
    assert {time.detail["column"] for time in stated.timings.values()} == {"Total Cycles (incl. prefetch)"}
    assert stated.assumptions[1].startswith("cycles: column 'Total Cycles (incl. prefetch)' of SCALE-Sim, from the fir")
    options = [row.get("option", "") for row in stated.timings["fp8-2of4"].detail["gemms"]]
    assert options == ["SparsitySupport", "SparsitySupport", "", "", ""]
    forward = (1270 + 464) - (972 + 400)
    assert cycles == {"fp8-dense": 4584, "fp8-2of4": 4584 - forward}
    assert any("zeros save time only where the right operand has a pattern" in line for line in stated.assumptions)
    alone, _ = scalesim_variants([dense], baseline=dense.name, simulations=reports)
    assert not any("zeros" in line for line in alone.assumptions)
    gemms = (replace(sparse.gemms[0], sparsity=("dense", "1:4")), *sparse.gemms[1:])
    with pytest.raises(ValueError, match="right operand that is 1:4 here and 2:4 in the reports"):
        scalesim_timings([replace(sparse, gemms=gemms)], reports)


def test_reports_of_both_versions(tmp_path):
    path = tmp_path / "COMPUTE_REPORT.csv"
    path.write_text(REPORT_30)
    rows = read_compute_report(path, shapes=SHAPES, array=(32, 32))
    assert [row.cycles for row in rows] == [3574, 1292, 3822]
    assert all(row.memory_included and row.stalls == 0 for row in rows)
    time = read_scalesim(path, design="d", clock="2 GHz", shapes=SHAPES)
    assert time.seconds == (3574 + 1292 + 3822) / 2e9
    assert time.detail["memory_included"] is True
    path.write_text(REPORT_2X)
    rows = read_compute_report(path, shapes=SHAPES, array=(32, 32))
    assert [row.cycles for row in rows] == [503, 189, 751]
    assert not any(row.memory_included for row in rows)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "not the header of a SCALE-Sim compute report"),
        ("LayerID, Avg IFMAP SRAM BW,\n0, 1,\n", 1, "not the header of a SCALE-Sim compute report"),
        (REPORT_30.splitlines(keepends=True)[0], 1, "no rows follow the header; the run did not finish"),
        (REPORT_30[:-5], 4, "the last line is cut off"),
        (REPORT_30[: REPORT_30.index("21.16")] + "\n", 3, "expected 7 values and a final comma"),
        (REPORT_30.replace("\n1, ", "\n5, "), 3, "expected LayerID 1, got '5'"),
        (REPORT_30.replace("3574", "x"), 2, "must be a whole number from 0 up, got 'x'"),
        (REPORT_30.replace("3574", "3574.5"), 2, "must be a whole number"),
        (REPORT_30.replace("3574", "nan"), 2, "must be a whole number"),
        (REPORT_30.replace("3574", "-4"), 2, "must be a whole number"),
        (REPORT_30.replace("3574", "500"), 2, "500 cycles in all and 503 of the array cannot be right"),
        (REPORT_30[: REPORT_30.index("2, 3822")], 3, "2 GEMMs where 3 were to be simulated"),
        (REPORT_30.replace("21.164", "23.164"), 3, "Overall Util % is 23.164.* the report is of another GEMM or array"),
        # a consistent change of cycles alone cannot hide either
        (REPORT_30.replace(" 751", " 752"), 4, "another GEMM or array"),
    ],
)
def test_bad_reports_name_file_line_and_way_out(tmp_path, text, line, message):
    path = tmp_path / "COMPUTE_REPORT.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_compute_report(path, shapes=SHAPES, array=(32, 32))
    assert f"{path}, line {line}:" in str(error.value)


def test_a_missing_report_says_that_the_run_did_not_finish(tmp_path):
    with pytest.raises(FileNotFoundError, match="the run did not finish"):
        read_compute_report(tmp_path / "COMPUTE_REPORT.csv")


# -- the reports that ship ---------------------------------------------------------------------------------------------


def test_shipped_reports_match_their_manifest():
    reports = load_reports()
    assert reports.version == "3.0.0"
    assert reports.baseline in reports.designs
    names = {path.name for path in SHIPPED.glob("*.csv")}
    manifest = json.loads((SHIPPED / "manifest.json").read_text())
    assert names == {entry["report"] for entry in manifest["simulations"]}
    # every design of the manifest has its time, on the stated hardware and, where an area is known, at equal area
    stated, equal = scalesim_variants(reports.designs.values(), baseline=reports.baseline)
    assert set(stated.timings) == set(reports.designs)
    assert set(equal.timings) | set(equal.left_out) == set(reports.designs)


def test_shipped_times_are_the_sum_of_the_gemms_cycles():
    reports = load_reports()
    for name, time in scalesim_timings(reports.designs.values()).items():
        gemms = reports.designs[name].gemms
        assert {gemm.phase for gemm in gemms} == {"forward", "backward_data", "backward_weight"}
        cycles = [
            reports.cycles[machine_for(reports.designs[name].hardware, gemm.bits), gemm.shape].cycles for gemm in gemms
        ]
        assert time.seconds == sum(cycles) / 1e9
        assert time.source == "SCALE-Sim 3.0.0"


def test_products_count_as_often_as_they_are_computed():
    reports = load_reports()
    point = reports.designs[reports.baseline]
    first, *others = point.gemms
    once = scalesim_timings([point])[point.name]
    times = scalesim_timings([replace(point, gemms=(replace(first, count=5), *others))])[point.name]
    (cycles, stalls) = (once.detail["gemms"][0][key] for key in ("cycles", "stall_cycles"))
    assert times.detail["cycles"] == once.detail["cycles"] + 4 * cycles > once.detail["cycles"]
    assert times.detail["stall_cycles"] == once.detail["stall_cycles"] + 4 * stalls
    assert times.seconds == times.detail["cycles"] / 1e9
    repeated = scalesim_timings([replace(point, gemms=(*[first] * 5, *others))])[point.name]
    assert repeated.seconds == times.seconds  # as records without a count say it
    assert times.detail["gemms"][0]["count"] == 5 and "count" not in times.detail["gemms"][1]


def test_narrower_operands_take_less_time_but_no_less_than_the_array_needs():
    reports = load_reports()
    by_bits = {}
    for (machine, shape), row in reports.cycles.items():
        if machine.array == (32, 32):
            by_bits.setdefault(shape, {})[machine.words_per_cycle] = row.cycles
    compared = 0
    for shape, cycles in by_bits.items():
        ordered = [cycles[words] for words in sorted(cycles)]
        assert ordered == sorted(ordered, reverse=True), shape
        m, n, k = shape
        assert min(ordered) >= -(-m // 32) * -(-n // 32) * k
        compared += len(ordered) > 1
    assert compared >= 5
    # by hand: 8192 filter words at 4 per cycle, 503 cycles of the array, 4096 results at 4 per cycle, less one
    assert by_bits[32, 128, 64][4] == 8192 // 4 + 503 + 4096 // 4 - 1


def test_waiting_for_memory_is_told():
    reports = load_reports()
    points = list(reports.designs.values())
    slow = {key: replace(row, stalls=row.cycles // 2) for key, row in reports.cycles.items()}
    stated, equal = scalesim_variants(points, baseline=reports.baseline, simulations=replace(reports, cycles=slow))
    assert equal.assumptions[-1].startswith("UPPER BOUND where the array waits")
    assert f"{reports.baseline} 50%" in stated.assumptions[-2]
    # half of the cycles, or those that the largest operand takes at four words a cycle
    least = {name: time.detail["least_cycles"] for name, time in stated.timings.items()}
    words = {(32, 128, 64): 8192, (32, 10, 128): 4096, (32, 128, 10): 4096, (128, 10, 32): 4096, (64, 128, 32): 8192}
    rows = stated.timings[reports.baseline].detail["gemms"]
    assert least[reports.baseline] == sum(
        max(row["cycles"] - row["stall_cycles"], words[row["M"], row["N"], row["K"]] // 4) for row in rows
    )
    assert f"{reports.baseline} {12036 / least[reports.baseline]:.3g}" in stated.assumptions[-1]
    quiet, _ = scalesim_variants(points, baseline=reports.baseline)
    assert len(quiet.assumptions) == len(stated.assumptions) - 2


def test_what_no_report_covers_is_named():
    reports = load_reports()
    point = reports.designs[reports.baseline]
    other = replace(point, hardware=Hardware.from_table({**TABLE, "bandwidth": "32 GB/s"}))
    with pytest.raises(ValueError, match=r"bandwidth is 32 GB/s here and 16 GB/s in the reports.*softnum.tta remake"):
        scalesim_timings([other])
    gemms = (replace(point.gemms[0], k=65), *point.gemms[1:])
    with pytest.raises(ValueError, match=r"forward of 'fc1' is M, N, K = \(32, 128, 65\).*in the reports"):
        scalesim_timings([replace(point, gemms=gemms)])
    with pytest.raises(ValueError, match=r"design 'new': no SCALE-Sim report.*the reports are of"):
        scalesim_timings([replace(other, name="new")])


@pytest.fixture
def copied(tmp_path):
    return Path(shutil.copytree(SHIPPED, tmp_path / "reports"))


def test_a_changed_truncated_or_missing_report_is_found_out(copied):
    report = next(copied.glob("os-32x32-*bw4.csv"))
    good = report.read_text()
    report.write_text(good[:-30])
    with pytest.raises(ValueError, match="the last line is cut off"):
        load_reports(copied)
    report.write_text(good.replace("3574", "3575"))
    with pytest.raises(ValueError, match=r"not the report that manifest.json was written for; remake them"):
        load_reports(copied)
    report.unlink()
    with pytest.raises(FileNotFoundError, match="which the manifest names; remake them"):
        load_reports(copied)


def test_a_bad_manifest_is_found_out(copied):
    manifest = copied / "manifest.json"
    table = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**table, "schema": 99}))
    with pytest.raises(ValueError, match=r"schema 99 .* is not schema 1"):
        load_reports(copied)
    manifest.write_text(manifest.read_text()[:100])
    with pytest.raises(ValueError, match=r"manifest\.json, line \d+: not JSON"):
        load_reports(copied)
    manifest.unlink()
    with pytest.raises(FileNotFoundError, match="no manifest of simulations"):
        load_reports(copied)


# -- equal area --------------------------------------------------------------------------------------------------------


def point(name, *formats, array=(32, 32)):
    gemms = tuple(Gemm("fc", "forward", 8, 8, 8, 8, (fmt,)) for fmt in formats)
    return DesignPoint(name, replace(HARDWARE, array=array), gemms)


def test_equal_area_scales_by_the_square_root_of_the_area_ratio():
    points = [point("a", "float32"), point("b", "binary16"), point("f", "q4.4"), point("w", "q4.4", array=(16, 64))]
    scaled, left_out, areas = equal_area(points, "a")
    # 32 * sqrt(7700 / 1640) = 69.34, 32 * sqrt(7700 / 282) = 167.2
    assert {p.name: p.hardware.array for p in scaled} == {
        "a": (32, 32),
        "b": (69, 69),
        "f": (167, 167),
        "w": (83, 334),
    }
    assert left_out == {}
    for p in scaled:
        rows, columns = p.hardware.array
        assert rows * columns * areas[p.name].um2 <= 32 * 32 * 7700


def test_equal_area_charges_the_widest_multiplier_and_leaves_out_what_has_no_area():
    scaled, left_out, areas = equal_area([point("a", "float32"), point("c", "e5m2", "e6m9"), point("h", "posit8")], "a")
    assert [p.name for p in scaled] == ["a", "c"]
    assert areas["c"].um2 == 1640
    assert areas["c"].kind == "proxy"
    assert left_out.keys() == {"h"} and left_out["h"].startswith("no multiplier area is known for posit8; ")
    with pytest.raises(ValueError, match="baseline 'h' cannot set the area"):
        equal_area([point("h", "posit8")], "h")
    with pytest.raises(ValueError, match="baseline 'aa' is not among the designs a; did you mean 'a'"):
        equal_area([point("a", "float32")], "aa")


def test_every_area_has_a_source_and_every_proxy_a_reason():
    for name, area in multiplier_areas().items():
        assert area.um2 in (282, 1640, 3495, 7700), name
        assert area.kind in ("published", "proxy")
        assert len(area.reason) > 20


# -- the simulator itself ----------------------------------------------------------------------------------------------


def test_remake_refuses_unusable_requests(tmp_path):
    run = [sys.executable, "-m", "softnum.tta", "remake", "--out", str(tmp_path / "out"), "--requests"]
    done = subprocess.run([*run, str(tmp_path / "none.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: no request file" in done.stderr
    bad = tmp_path / "bad.json"
    bad.write_text('{"baseline": "a", "designs": [{"name": "a"}]}')
    done = subprocess.run([*run, str(bad)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "lacks 'hardware', 'gemms'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_scalesim_gives_the_shipped_reports_again(tmp_path):
    points, baseline = read_requests(SHIPPED / "manifest.json")
    simulate(points, tmp_path / "out", baseline=baseline, cache=tmp_path / "cache", reuse=False)
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert made == {path.name: path.read_bytes() for path in SHIPPED.iterdir()}
    assert load_reports(tmp_path / "out").cycles == load_reports().cycles


@pytest.mark.slow
def test_scalesim_gives_the_reports_of_patterns_again(tmp_path):
    points, baseline = read_requests(SPARSE / "manifest.json")
    gemms = tuple(replace(points[1].gemms[0], m=m, n=n, k=k) for m, n, k in SPARSE_SHAPES)
    own = simulate([replace(points[1], gemms=gemms)], tmp_path / "own", baseline=points[1].name, cache=tmp_path)
    rows = load_reports(own.parent).cycles
    machine = machine_for(HARDWARE, 8, pattern="2:4")
    assert [rows[machine, shape].cycles for shape in SPARSE_SHAPES] == [972, 400, 497]
    simulate(points, tmp_path / "out", baseline=baseline, cache=tmp_path / "cache", reuse=False)
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert made == {path.name: path.read_bytes() for path in SPARSE.iterdir()}


@pytest.mark.slow
def test_scalesim_gives_cycles_of_stationary_weights_and_of_cores(tmp_path):
    gemms = tuple(Gemm("fc", "forward", 2 * m, 2 * n, k, 8, sparsity=("dense", "2:4")) for m, n, k in SPARSE_SHAPES)
    design = DesignPoint("d", replace(HARDWARE, cores=(2, 2), bandwidth=HARDWARE.bandwidth * 4), gemms)
    for flow, text in (("os", SPARSE_REPORT), ("ws", STATIONARY["2:4"])):
        out = simulate([design], tmp_path / flow, baseline="d", dataflow=flow, cache=tmp_path, jobs=1).parent
        found = load_reports(out).rows
        assert [found[machine_for(HARDWARE, 8, dataflow=flow, pattern="2:4"), shape] for shape in SPARSE_SHAPES] == [
            line.partition(", ")[2] for line in text.splitlines()[1:]
        ]
