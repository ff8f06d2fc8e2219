"""The kept study of docs/two-networks: every number follows from the records and reports that lie there."""

import csv
import hashlib
import json
from pathlib import Path

import pytest

from softnum.tta import (
    combine_study,
    design_points,
    load_reports,
    read_records,
    read_results,
    scalesim_timings,
    study_variants,
)
from softnum.tta.outcomes import results_dict
from softnum.tta.study import outcome_rules

STUDY = Path(__file__).parents[2] / "docs" / "two-networks"
NETWORKS = ("mlp", "lenet5")


def test_the_study_is_of_four_designs_on_two_networks():
    study = json.loads((STUDY / "study.json").read_text(encoding="utf-8"))
    assert [part["folder"] for part in study["comparisons"]] == list(NETWORKS)
    for part in study["comparisons"]:
        assert len({row["design"] for row in part["designs"]}) == 4
        assert {run["state"] for run in part["runs"]} == {"finished"}
        assert len(part["runs"]) == 4 * 2 * 5


@pytest.mark.parametrize("network", NETWORKS)
def test_every_file_is_there_as_it_was(network):
    folder = STUDY / network
    sources = read_results(folder / "results.json")["sources"]
    roles = [source["role"] for source in sources]
    assert roles.count("record") == 40 and "report" in roles and "workloads" in roles
    for source in sources:
        assert hashlib.sha256((folder / source["path"]).read_bytes()).hexdigest() == source["sha256"], source["path"]
    named = {source["path"] for source in sources}
    assert {path.relative_to(folder).as_posix() for path in folder.glob("records/*/*")} <= named


@pytest.mark.parametrize("network", NETWORKS)
def test_records_and_reports_give_the_same_results_again(network):
    folder = STUDY / network
    kept = read_results(folder / "results.json")
    records = read_records(folder / "records")
    labels = [row["design"] for row in kept["variants"][0]["designs"]]
    points = {point.name: point for point in design_points(records)}
    combine = [f"{'+'.join(row['parts'])}={row['combined']}" for row in kept["variants"][0]["interactions"]]
    variants = study_variants([points[name] for name in labels], baseline=kept["baseline"], out=folder)
    rules = outcome_rules(labels, kept["baseline"], combine=combine)
    again = [
        combine_study(records, variant, target=kept["target"], baseline=kept["baseline"], **rules)
        for variant in variants
    ]
    for variant, wanted in zip(results_dict(again)["variants"], kept["variants"], strict=True):
        assert variant["interactions"] == wanted["interactions"]
        for got, row in zip(variant["designs"], wanted["designs"], strict=True):
            for key in (
                "design",
                "reached",
                "runs",
                "iterations",
                "tta",
                "throughput",
                "efficiency",
                "speedup",
                "share",
            ):
                assert got[key] == row[key], (row["design"], key)
            assert {k: v for k, v in got["intervals"].items() if k != "energy"} == {
                k: v for k, v in row["intervals"].items() if k != "energy"
            }
            assert (got["time"] or {}).get("seconds") == (row["time"] or {}).get("seconds")


def test_what_the_page_says_in_words():
    """The sentences of docs/two-networks.md that the tables have to bear out."""
    variants = [read_results(STUDY / name / "results.json")["variants"][0] for name in ("lenet5", "mlp")]
    for both in variants[0]["interactions"]:
        assert 0.98 < both["ratio"]["throughput"] < 1.02
        assert both["interval"][0] < 1 < (both["interval"][1] or 2)
    lenet5, mlp = (variant["designs"] for variant in variants)
    lenet5, mlp = ({row["design"]: row for row in rows} for rows in (lenet5, mlp))
    base = lenet5["a-float32@32"]
    assert round(lenet5["h-posit8@32"]["throughput"], 2) == 2.78
    assert lenet5["h-posit8@32"]["energy"] is None and base["energy"]["joules"] > 0
    for name in ("h-posit8@32", "c-wang-fp8@32"):
        low, high = lenet5[name]["intervals"]["efficiency"]
        assert low < 1 < high and lenet5[name]["efficiency"] < 1
        assert lenet5["b-binary16@32"]["samples"]["median"] > lenet5[name]["samples"]["median"]
    for name in ("a-float32", "b-binary16", "c-wang-fp8", "h-posit8"):
        large, small = lenet5[f"{name}@128"], lenet5[f"{name}@32"]
        assert 1.05 < large["throughput"] / small["throughput"] < 1.065
        assert 2 <= small["efficiency"] / large["efficiency"] < 2.6 and large["tta"]["median"] > small["tta"]["median"]
        low, high = mlp[f"{name}@32"]["intervals"]["efficiency"] or (1, 1)
        assert low <= 1 <= high
    found = load_reports(STUDY / "lenet5" / "scalesim")
    cycles = {name: time.detail for name, time in scalesim_timings(found.designs.values(), found).items()}
    assert (cycles["a-float32@32"]["cycles"], cycles["h-posit8@32"]["cycles"]) == (189430, 68081)
    assert mlp["c-wang-fp8@32"]["time"]["seconds"] == mlp["b-binary16@32"]["time"]["seconds"]
    widths = {gemm["N"] for gemm in base["time"]["detail"]["gemms"]}
    assert (min(widths), max(widths)) == (6, 120)
    equal = [read_results(STUDY / name / "results.json")["variants"][1]["designs"] for name in ("lenet5", "mlp")]
    equal = [{row["design"]: row for row in rows} for rows in equal]
    for name in ("b-binary16@32", "b-binary16@128", "c-wang-fp8@32", "c-wang-fp8@128"):
        assert equal[0][name]["time"]["seconds"] > lenet5[name]["time"]["seconds"]
    assert equal[1]["b-binary16@128"]["time"]["seconds"] < mlp["b-binary16@128"]["time"]["seconds"]


@pytest.mark.parametrize("network", NETWORKS)
def test_no_time_is_an_upper_bound(network):
    """SRAMs hold every operand and result twice, so that no stall of SCALE-Sim's is in any time."""
    for variant in read_results(STUDY / network / "results.json")["variants"]:
        assert not any("UPPER BOUND" in line for line in variant["assumptions"])
        for row in variant["designs"]:
            if row["time"] is not None:
                detail = row["time"]["detail"]
                assert (detail["stall_cycles"], detail["least_cycles"]) == (0, detail["cycles"])
                sizes = detail["hardware"]["sram_bytes"]
                for gemm in detail["gemms"]:
                    m, n, k = gemm["M"], gemm["N"], gemm["K"]
                    for name, words in (("ifmap", m * k), ("filter", k * n), ("ofmap", m * n)):
                        assert 2 * words * gemm["bits"] / 8 <= sizes[name]


def test_the_array_computes_in_a_seventh_of_the_cycles():
    """27,644 of binary32's 189,430, by the reports' column that leaves out what is fetched before and written after."""
    folder = STUDY / "lenet5" / "scalesim"
    found = load_reports(folder)
    computing = {}
    for simulation in json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["simulations"]:
        with open(folder / simulation["report"], encoding="utf-8") as file:
            for shape, row in zip(simulation["shapes"], csv.DictReader(file, skipinitialspace=True), strict=True):
                computing[simulation["report"], *shape] = int(row["Total Cycles"])
    times = scalesim_timings(found.designs.values(), found)
    for name in ("a-float32@32", "h-posit8@32"):
        gemms = times[name].detail["gemms"]
        cycles = [computing[Path(g["report"]).name, g["M"], g["N"], g["K"]] * g.get("count", 1) for g in gemms]
        assert sum(cycles) == 27644
