"""ZigZag: bytes to bits, its input files, its results (captured from 3.9.1), and ZigZag itself."""

import json
import math
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softnum.tta import DesignPoint, Gemm, load_reports, scalesim_timings, simulate, study_variants
from softnum.tta.simulators import GemmCost, MissingReport, read_zigzag, zigzag_timings, zigzag_variants
from softnum.tta.simulators.zigzag import ZigZagMachine, zigzag_files, zigzag_machine
from softnum.tta.simulators.zigzag_report import is_zigzag, read_gemm_cost, zigzag_sum

DATA = Path(__file__).parent / "data" / "zigzag"
REPORTS = DATA / "reports"
POINT = load_reports(REPORTS).designs["fp16"]
MACHINE = zigzag_machine(POINT.hardware, POINT.gemms[0])
FILE = REPORTS / f"{MACHINE.slug}-32x128x64.json"
TEXT = FILE.read_text()


def test_a_machine_is_the_hardware_in_bits_with_the_energies_of_its_formats():
    # binary16: 1.1 pJ a product, 0.9 pJ a 32-bit sum; 32 KB SRAM: 20 pJ for 64 bits; DRAM: 1300 pJ for 64 bits
    assert ZigZagMachine((32, 32), 16, (262144,) * 3, 128, 2.0, (0.3125,) * 3, 20.3125) == MACHINE
    assert ZigZagMachine.from_table(json.loads(json.dumps(MACHINE.to_table()))) == MACHINE
    fixed = zigzag_machine(POINT.hardware, replace(POINT.gemms[0], bits=8, formats=("q4.4", "q4.4")))
    assert (fixed.bits, fixed.mac_pj) == (8, 0.2 + 0.1)


def test_words_of_a_block_are_as_many_words_of_whole_bits():
    gemm = replace(POINT.gemms[0], bits=8.25, formats=("mxfp8_e4m3", "mxfp8_e4m3"))
    machine = zigzag_machine(POINT.hardware, gemm)
    assert machine.bits == 8
    assert machine.sram_bits == (math.floor(32768 * 8 / 8.25 * 8),) * 3
    assert machine.bits_per_cycle == math.floor(128 / 8.25 * 8)
    # a word of 8.25 bits costs what 8 bits of it cost here
    assert machine.dram_pj * 8 == pytest.approx(8.25 * 1300 / 64, rel=1e-15)


@pytest.mark.parametrize(
    ("hardware", "gemm", "message"),
    [
        ({}, {"sparsity": ("dense", "2:4")}, "forward GEMM of 'fc1' has the pattern 2:4, which ZigZag cannot simulate"),
        ({"bandwidth": Fraction(10**9)}, {}, "words of 16 bits need at least one word per cycle.* 1 bytes per cycle"),
        ({"sram_bytes": (32768, 3, 32768)}, {}, "two in each SRAM.* SRAM of 3 bytes"),
    ],
)
def test_what_zigzag_cannot_be_given_is_refused(hardware, gemm, message):
    with pytest.raises(ValueError, match=message):
        zigzag_machine(replace(POINT.hardware, **hardware), replace(POINT.gemms[0], **gemm))


def test_formats_wider_than_the_tables_have_no_energy():
    assert zigzag_machine(POINT.hardware, replace(POINT.gemms[0], formats=("binary64",), bits=64)).mac_pj == 0


def test_input_files_say_what_the_machine_is():
    files = zigzag_files(MACHINE, (33, 40, 27))
    accelerator, (layer,), (mapping,) = (
        json.loads(files[f"{name}.yaml"]) for name in ("accelerator", "workload", "mapping")
    )
    assert (layer["loop_dims"], layer["loop_sizes"]) == (["C", "D", "K"], [27, 33, 40])
    assert set(layer["operand_precision"].values()) == {16}
    assert mapping["spatial_mapping"] == {"D1": ["D, 32"], "D2": ["K, 32"]}
    assert mapping["temporal_ordering"] == [["C", "*"]]  # sums stay in their cells, k from 0 up
    assert accelerator["operational_array"]["sizes"] == [32, 32]
    memories = accelerator["memories"]
    assert list(memories) == ["accumulator", "ifmap", "filter", "ofmap", "dram"]  # ZigZag wants the lowest first
    for name in ("ifmap", "filter", "ofmap"):
        assert memories[name]["size"] == 262144
        # an access is as wide as its port: r_cost and w_cost are those of one bit times that
        for port in memories[name]["ports"]:
            cost = memories[name]["r_cost" if port["type"] == "read" else "w_cost"]
            assert cost == 0.3125 * port["bandwidth_max"]
    assert [port["bandwidth_max"] for port in memories["dram"]["ports"]] == [128] * 3  # the bandwidth to each SRAM
    # PyYAML reads 1e-05 as text
    assert not re.search(r"\d[eE]", "".join(files.values()))


def test_captured_cycles_and_energies_are_those_counted_by_hand():
    reports = load_reports(REPORTS)
    big = reports.cycles[MACHINE, (32, 128, 64)]
    # 1024 to fetch the filter's 8192 words at 8 a cycle; four folds of 64 cycles, and 31 for each that makes room for
    # the next; results at 8 words a cycle, of which some have left before, and the last sums over 62 cells
    assert (big.cycles, big.stalls) == (1024 + 4 * 64 + 3 * 31 + 257, 3 * 31)
    left, right, results = 32 * 64, 64 * 128, 32 * 128
    dram = (left + right + results) * 16 * 1300 / 64
    sram = (left * (1 + 4) + right * (1 + 1) + results * (1 + 1)) * 16 * 20 / 64
    assert big.picojoules == left * 128 * 2.0 + dram + sram
    assert big.memory_picojoules == dram + sram
    odd = reports.cycles[MACHINE, (33, 40, 27)]
    # a fold of 33 x 40 on 32 x 32: four of 27 cycles; here results of 17 x 20 leave (ZigZag spreads the rows evenly)
    assert odd.cycles - odd.stalls == 135 + 4 * 27 + 97


def test_times_sum_what_is_computed_as_often_as_it_is():
    time = zigzag_timings([POINT], load_reports(REPORTS))["fp16"]
    costs = [load_reports(REPORTS).cycles[MACHINE, gemm.shape] for gemm in POINT.gemms]
    assert [gemm.count for gemm in POINT.gemms] == [1, 3, 1]
    assert time.seconds == float(Fraction(costs[0].cycles + 3 * costs[1].cycles + costs[2].cycles) / 10**9)
    assert time.joules == pytest.approx((costs[0].picojoules + 3 * costs[1].picojoules + costs[2].picojoules) * 1e-12)
    assert (time.kind, time.source) == ("simulated", "ZigZag 3.9.1")
    first = time.detail["gemms"][0]
    assert first["utilisation"] == 32 * 128 * 64 / (1630 * 1024) and first["cycles"] == 1630
    assert Path(first["report"]) == FILE
    assert time.detail["utilisation"] == pytest.approx(
        (32 * 128 * 64 + 3 * 33 * 40 * 27 + 9) / (time.detail["cycles"] * 1024)
    )
    stated, equal = zigzag_variants([POINT], baseline="fp16", simulations=load_reports(REPORTS))
    assert stated.timings["fp16"] == equal.timings["fp16"] == time
    assert any("Horowitz" in line for line in stated.assumptions)


def test_what_no_result_covers_is_named(tmp_path):
    other = replace(POINT, gemms=(replace(POINT.gemms[0], k=65),))
    with pytest.raises(MissingReport, match=r"no ZigZag report has the forward GEMM of 'fc1' \(32 x 128 x 65"):
        zigzag_timings([other], load_reports(REPORTS))
    with pytest.raises(
        MissingReport, match=r"add --simulate to run ZigZag.* remake --simulator zigzag --requests"
    ) as error:
        study_variants([other], baseline="fp16", out=tmp_path, simulator="zigzag")
    assert "no ZigZag report" in str(error.value) and (tmp_path / "requests.json").is_file()
    with pytest.raises(MissingReport, match="no SCALE-Sim report"):  # ZigZag's results answer for no other simulator
        scalesim_timings([POINT], load_reports(REPORTS))
    with pytest.raises(ValueError, match="ZigZag is driven with the dataflow os only, got 'ws'"):
        study_variants([POINT], baseline="fp16", out=tmp_path, simulator="zigzag", dataflow="ws")
    with pytest.raises(ValueError, match="unknown simulator 'zig'; softnum drives scalesim, zigzag"):
        study_variants([POINT], baseline="fp16", out=tmp_path, simulator="zig")


def changed(path, value):
    """The captured result with one number changed, written as ZigZag writes it."""
    table = json.loads(TEXT)
    *parents, last = path.split(".")
    place = table
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(table, indent=4)


def line_of(text, key):
    return 1 + text[: text.index(f'"{key}"')].count("\n")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{", 1, "not JSON .*the file ends there: a run that did not finish"),
        (TEXT[:5000], TEXT[:5000].count("\n") + 1, "not JSON .*the file ends there"),
        (TEXT.replace('"latency"', "latency"), line_of(TEXT, "latency"), "not JSON"),
        ("[]", 1, "not a result of ZigZag: it lacks outputs; expected <layer>_complete.json"),
        ("[" * 100000, 1, "not readable as JSON|not JSON"),
        (changed("outputs.latency", None), 2, "it lacks outputs.latency"),
        (changed("outputs.latency.computation", None), line_of(TEXT, "latency"), "lacks outputs.latency.computation"),
        (changed("outputs.latency.computation", 0), None, "no cycles of computation"),
        (changed("outputs.latency.computation", -3.0), line_of(TEXT, "computation"), "must be a number from 0 up"),
        (changed("outputs.latency.computation", "350"), line_of(TEXT, "computation"), "must be a number from 0 up"),
        (changed("outputs.latency.computation", 350.0), line_of(TEXT, "latency"), "do not agree with the utilisations"),
        (
            changed("outputs.spatial.mac_utilization.ideal", 0.9),
            line_of(TEXT, "mac_utilization"),
            "cycles of the array",
        ),
        (changed("outputs.latency.data_onloading", 1025.0), line_of(TEXT, "latency"), "do not agree with the util"),
        (changed("outputs.energy.energy_total", 0.0), line_of(TEXT, "energy_total"), "must be a number above 0, got 0"),
        (changed("outputs.energy.memory_energy", None), line_of(TEXT, "energy"), "lacks outputs.energy.memory_energy"),
        (changed("outputs.energy.energy_total", 5357569.0), line_of(TEXT, "energy_total"), "its parts add up to"),
        (changed("inputs.layer.loop_dimensions", {"C": 64, "D": 32, "K": 127}), None, "of another GEMM or array"),
        (changed("inputs.accelerator.operational_array.dimensions", {"D1": 32, "D2": 31}), None, "of another GEMM"),
        (changed("inputs.layer.operand_precision.I", 8), None, "of another GEMM or array"),
    ],
)
def test_bad_results_name_file_line_and_way_out(tmp_path, text, line, message):
    path = tmp_path / "gemm_complete.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_gemm_cost(path, machine=MACHINE, shape=(32, 128, 64))
    assert re.match(re.escape(f"{path}, line ") + (r"\d+:" if line is None else f"{line}:"), str(error.value))
    assert str(error.value).endswith("run ZigZag again")


def test_a_consistent_change_is_found_out_too():
    table = json.loads(TEXT)
    table["outputs"]["latency"] = {key: 2 * value for key, value in table["outputs"]["latency"].items()}
    with pytest.raises(ValueError, match="3260 cycles do not agree with a utilisation of"):
        read_gemm_cost("twice", machine=MACHINE, shape=(32, 128, 64), text=json.dumps(table))
    table = json.loads(TEXT)
    energy = table["outputs"]["energy"]
    energy["energy_total"] += energy["operational_energy"]
    energy["operational_energy"] *= 2
    with pytest.raises(ValueError, match="is not that of 262144 multiply-adds of 2 pJ"):
        read_gemm_cost("twice", machine=MACHINE, shape=(32, 128, 64), text=json.dumps(table))


@given(st.integers(0, len(TEXT)), st.integers(0, 40), st.text(max_size=6))
def test_a_mutated_result_is_an_error_or_the_same(start, length, text):
    mutated = TEXT[:start] + text + TEXT[start + length :]
    try:
        cost = read_gemm_cost("mutated", machine=MACHINE, shape=(32, 128, 64), text=mutated)
    except ValueError as error:
        assert str(error).startswith("mutated, line ")
    else:
        assert cost == load_reports(REPORTS).cycles[MACHINE, (32, 128, 64)]


def test_a_users_own_results(tmp_path):
    short = read_zigzag(DATA / "overall_simple.json", design="mine", clock="2 GHz")
    whole = read_zigzag(FILE, design="mine", clock="2 GHz")
    # ZigZag's own interface gives what the pipeline that softnum runs gives
    assert short.seconds == whole.seconds == 815e-9
    assert short.joules == whole.joules == 5357568e-12
    assert whole.kind == short.kind == "simulated"
    for name in ("fc1", "fc2"):
        (tmp_path / f"{name}_complete.json").write_text(TEXT)
    with pytest.raises(ValueError, match=r"did not finish; the layers until then: fc1_complete.json, fc2_comp"):
        read_zigzag(tmp_path, design="mine", clock="1 GHz")
    (tmp_path / "overall_simple.json").write_text(json.dumps({"energy": 2 * 5357568.0, "latency": 3260.0}))
    both = read_zigzag(tmp_path, design="mine", clock="1 GHz")
    assert both.seconds == 2 * 1630e-9 and both.joules == pytest.approx(2 * 5357568e-12)
    assert [row["layer"] for row in both.detail["layers"]] == ["fc1", "fc2"]
    # as ZigZag 3.9.1 leaves a folder where two layers have one name: the second overwrites the first
    (tmp_path / "fc2_complete.json").unlink()
    with pytest.raises(ValueError, match=r"overall_simple.json, line 1: 3260 cycles .* give 1630 and .* of one name"):
        read_zigzag(tmp_path, design="mine", clock="1 GHz")
    assert is_zigzag(TEXT) and is_zigzag((DATA / "overall_simple.json").read_text())
    assert not any(map(is_zigzag, ["", "[]", '{"traceEvents": []}', '{"energy": {"latency": 1}}', "design,iteration"]))
    assert zigzag_sum(FILE, TEXT)[:2] == (1630, Fraction(5357568, 10**12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"energy": 1.0}', "line 1: not a result of ZigZag: it lacks latency"),
        ('{"energy": 1.0, "latency": 0}', "latency must be a number above 0, got 0"),
        ('{"latency": 3,\n "energy": null}', "line 2: energy must be a number above 0, got None"),
        ('{"energy": 1.0, "latency": 1e999}', "latency must be a number above 0, got inf"),
        ("{}", "it lacks outputs"),
    ],
)
def test_bad_short_results(tmp_path, text, message):
    path = tmp_path / "overall_simple.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_zigzag(path, design="d", clock="1 GHz")
    assert str(error.value).startswith(str(path))


def test_missing_results_say_that_the_run_did_not_finish(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no <layer>_complete.json; the run did not finish"):
        read_zigzag(tmp_path, design="d", clock="1 GHz")
    with pytest.raises(FileNotFoundError, match="the run did not finish"):
        read_zigzag(tmp_path / "overall_simple.json", design="d", clock="1 GHz")
    (tmp_path / "a_complete.json").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="not UTF-8 text"):
        read_zigzag(tmp_path, design="d", clock="1 GHz")
    with pytest.raises(ValueError, match="clock '1 Gz'"):
        read_zigzag(FILE, design="d", clock="1 Gz")


def test_a_changed_or_missing_result_in_a_folder_is_found_out(tmp_path):
    folder = Path(shutil.copytree(REPORTS, tmp_path / "reports"))
    report = folder / FILE.name
    report.write_text(TEXT.replace("    ", "   "))
    with pytest.raises(ValueError, match="not the report that manifest.json was written for"):
        load_reports(folder)
    report.unlink()
    with pytest.raises(FileNotFoundError, match="no ZigZag report .* which the manifest names"):
        load_reports(folder)


# -- ZigZag itself -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_zigzag_gives_the_captured_results_again(tmp_path):
    said = []
    simulate(
        [POINT], tmp_path / "out", baseline="fp16", simulator="zigzag", cache=tmp_path / "cache", reuse=False, jobs=2,
        progress=said.append,
    )  # fmt: skip
    assert said[-1].startswith("ZigZag: 3 of 3 GEMMs")
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert made == {path.name: path.read_bytes() for path in REPORTS.iterdir()}


@pytest.mark.slow
def test_zigzag_and_scalesim_agree_on_the_default_study(tmp_path):
    points = list(load_reports().designs.values())
    variants = study_variants(
        points, baseline="a-float32", out=tmp_path, run_simulator=True, simulator="zigzag", jobs=2
    )
    assert [variant.label for variant in variants] == ["stated hardware", "equal area"]
    simulated = scalesim_timings(points)
    ratios = {}
    for name, time in variants[0].timings.items():
        ratios[name] = time.seconds / simulated[name].seconds
        assert 0.6 < ratios[name] < 1.0, name  # ZigZag fetches the next operands while it computes
        macs = sum(gemm.count * gemm.m * gemm.n * gemm.k for gemm in load_reports().designs[name].gemms)
        assert time.seconds >= macs / 1024 / 1e9
        # no less than every multiply-add and every word to or from memory once
        words = sum(g.count * g.bits * (g.m * g.k + g.k * g.n + g.m * g.n) for g in load_reports().designs[name].gemms)
        assert time.joules > words * 1300 / 64 * 1e-12
    assert len(ratios) == len(points)
    order = sorted(ratios, key=lambda name: variants[0].timings[name].seconds)
    assert order[-2:] == ["d-e6m3-long", "e-e6m3-chunk"]


@pytest.mark.slow
def test_a_product_too_small_for_zigzag_is_told(tmp_path):
    point = DesignPoint("d", POINT.hardware, (Gemm("fc", "forward", 1, 1, 1, 8, ("q4.4", "q4.4")),))
    with pytest.raises(ValueError, match=r"memory_energy is 0: ZigZag drops .* use SCALE-Sim"):
        simulate([point], tmp_path / "out", baseline="d", simulator="zigzag", cache=tmp_path / "cache", jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [(1, 10, 32), (1, 97, 1), (784, 128, 1), (97, 101, 103), (25088, 6, 25), (6, 25, 25088)]
)
def test_zigzag_takes_any_shape(tmp_path, shape):
    m, n, k = shape
    hardware = replace(POINT.hardware, sram_bytes=(65536,) * 3)
    point = DesignPoint("d", hardware, (Gemm("fc", "forward", m, n, k, 8, ("q4.4", "q4.4")),))
    simulate([point], tmp_path / "out", baseline="d", simulator="zigzag", cache=tmp_path / "cache", jobs=1)
    (cost,) = load_reports(tmp_path / "out").cycles.values()
    assert isinstance(cost, GemmCost)
    folds = -(-m // 32) * -(-n // 32)
    assert cost.cycles - cost.stalls >= folds * k and cost.picojoules >= m * n * k * 0.3
