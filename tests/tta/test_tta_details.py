"""What stands behind times to accuracy: all targets, the waterfall, Pareto fronts, layers, ties and warnings."""

import dataclasses
import json
import math
import random
import re

import pytest

from softnum.tta import Evaluation, IterationTime, ReachedRule, Record, combine_study, print_studies
from softnum.tta.html import load_report
from softnum.tta.html.export import still
from softnum.tta.outcomes import Cost, plot_details
from softnum.tta.outcomes.brief import ROOM
from softnum.tta.outcomes.intervals import ratio_holds_one, ratio_interval
from softnum.tta.outcomes.sources import array_areas, layer_parts, pareto, study_resources
from softnum.tta.outcomes.targets import fastest_near, study_targets, target_curves
from softnum.tta.outcomes.verdict import tie_lines, verdict_warnings
from softnum.tta.workloads import multiplier_areas
from tests.support.report_folders import comparison


def evaluated(values):
    return tuple(Evaluation(10 * i, value) for i, value in enumerate(values, start=1))


def runs(design, *curves, batch=32, diverged=False):
    """A run for each list of values, evaluated every ten iterations."""
    return [
        Record(design, seed, batch, 10 * len(values), evaluated(values), {}, {}, diverged=diverged)
        for seed, values in enumerate(curves)
    ]


@pytest.fixture(scope="module")
def study():
    records = [
        *runs("base", [0.5, 0.8, 0.9, 0.97], [0.5, 0.9, 0.92, 0.95], [0.4, 0.7, 0.9, 0.96]),
        *runs("fast", [0.3, 0.6, 0.9, 0.91], [0.3, 0.6, 0.8, 0.9], [0.3, 0.6, 0.9, 0.9]),
        *runs("never", [0.2, math.nan], [0.2, math.nan], [0.25, math.nan], diverged=True),
    ]
    times = {"base": 4.0, "fast": 1.0}
    given = {name: IterationTime(name, seconds, joules=2.0) for name, seconds in times.items()}
    given["never"] = IterationTime("never", 0.5, joules=2.0, kind="estimated")
    return combine_study(
        records, given, target=0.9, baseline="base", costs={"base": Cost(3600.0), "fast": Cost(1800.0)}
    )


# -- TTA over targets --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("direction", ["higher", "lower"])
@pytest.mark.parametrize("rule", ["first", "consecutive:2", "average:3", "ema"])
def test_every_target_is_judged_as_the_study_judges_its_own(rule, direction):
    numbers = random.Random(7)
    smooth = "ema:0.5" if rule == "ema" else None
    judge = ReachedRule.parse("first" if rule == "ema" else rule, smooth, direction)
    choices = [math.nan, math.inf, *(i / 10 for i in range(11))]
    looked = 0
    for _ in range(15):
        curves = [[Evaluation(i, numbers.choice(choices)) for i in range(1, 9)] for _ in range(3)]
        for found in target_curves({"a": curves}, judge, {}, target=0.5):
            for point in found.points:
                ends = [judge.iteration(curve, point.target) for curve in curves]
                needed = sorted(math.inf if end is None else end for end in ends)
                assert (point.iterations, point.reached) == (needed[1], sum(end is not None for end in ends))
                looked += 1
    assert looked > 100


def test_targets_by_hand(study):
    base, fast, never = study_targets(study)
    at = {point.target: point for point in base.points}
    assert (at[0.9].seconds, at[0.9].low, at[0.9].high, at[0.9].reached) == (120.0, 80.0, 120.0, 3)
    assert (at[0.97].iterations, at[0.97].reached, at[0.97].low, at[0.97].high) == (math.inf, 1, 160.0, math.inf)
    assert (base.farthest.target, fast.farthest.target, never.farthest.target) == (0.96, 0.9, 0.2)
    assert base.points[0].target == 0.2 and base.points[0].seconds == 40.0
    assert study["base"].tta.median == at[0.9].seconds and study["base"].intervals.tta == (at[0.9].low, at[0.9].high)


def test_the_fastest_turns_with_the_target(study):
    # fast needs 30 s to 0.9 and reaches nothing beyond, base 120 s, and 160 s to 0.96
    assert set(fastest_near(study_targets(study), 0.9)) == {"fast"}
    assert verdict_warnings([study])[2] == (
        "The target decides, given times: fast is the fastest by its median at accuracy 0.9, and comes no farther than "
        "0.9, which others do."
    )
    curves = {"a": [[0.5, 0.7, 0.7, 0.9]], "b": [[0.6, 0.6, 0.75, 0.9]]}
    times = {name: IterationTime(name, 1.0 if name == "a" else 1.2) for name in curves}
    records = [record for name, values in curves.items() for record in runs(name, *values)]
    turned = combine_study(records, times, target=0.7, baseline="a")
    assert list(fastest_near(study_targets(turned), 0.7)) == ["a", "b"]  # b has 0.75 at 36 s, a only at 40 s
    assert any("b at some from 0.7" in line for line in verdict_warnings([turned]))
    assert fastest_near([], 0.9) == {}


def test_a_target_that_is_met_before_training_is_no_target():
    curve = [Evaluation(0, 0.3), Evaluation(10, 0.5)]
    (found,) = target_curves({"a": [curve]}, ReachedRule(), {}, target=0.4)
    assert min(point.target for point in found.points) > 0.3 and found.farthest.iterations == 10
    assert target_curves({"a": [[Evaluation(1, math.nan)]]}, ReachedRule(), {}, target=0.4) == ()


# -- ties and warnings -------------------------------------------------------------------------------------------------
def test_a_tie_is_an_interval_that_holds_one():
    numbers = random.Random(11)
    for _ in range(60):
        over, under = ([numbers.choice([20, 30, 40, 60, math.inf]) for _ in range(3)] for _ in range(2))
        times = tuple(IterationTime("t", numbers.choice([1.0, 2.0])) for _ in range(2))
        low, high = ratio_interval(over, under, times, factor=0.5)
        assert ratio_holds_one(over, under, times, factor=0.5) == (low <= 1 <= high)
    measured = tuple(IterationTime("t", 2.0, samples=(1.9, 2.0, 2.1 * k)) for k in (1.0, 1.3))
    low, high = ratio_interval([30, 40, 50], [10, 20, 30], measured)
    assert ratio_holds_one([30, 40, 50], [10, 20, 30], measured) == (low <= 1 <= high)


def test_ties_and_intervals_say_the_same(study):
    assert study["fast"].ties == () and study["fast"].intervals.speedup[0] > 1
    low, high = study["fast"].intervals.efficiency
    assert low <= 1 <= high and study["fast"].sample_ties == ("base",) and study["base"].sample_ties == ("fast",)
    assert study["never"].ties == () and study["never"].sample_ties == ()


def test_each_pair_stands_once_in_the_line_of_ties(study):
    ties = [(result.design, result.ties, result.sample_ties) for result in study.designs]
    assert tie_lines(ties) == ["Ties in samples to the target (interval of the ratio holds 1): base with fast."]


def test_the_output_is_short_and_explained_on_request(study, capsys):
    print_studies([study])
    short = capsys.readouterr().out
    print_studies([study], explain=True)
    long = capsys.readouterr().out
    flat = " ".join(short.split())
    assert "How to read it" not in short and "How to read it" in long and len(short) < len(long)
    warned = short.partition("What could turn the verdict\n")[2].partition("Notes\n")[0]
    assert warned.count("  - ") == 3 < len(verdict_warnings([study]))
    assert "results.json; --explain prints them" in flat and "4.00 [2.00, 4.00]" in flat
    assert "never, seed 0, diverged" in flat  # what is so of these runs is not hidden
    # another variant takes a line, and 40 designs no more than a screen; what is left out is said
    print_studies([study, dataclasses.replace(study, label="other")])
    two = capsys.readouterr().out
    assert two.count("Time to") == 1 and "Speed-ups, other: fast 4.00, base 1.00, none of never." in two
    records = [Record(f"d{i}", 1, 32, 90, (Evaluation(80, 0.9),), {}, {}) for i in range(40)]
    times = {f"d{i}": IterationTime(f"d{i}", 50.0 - i) for i in range(40)}
    print_studies([combine_study(records, times, target=0.9, baseline="d0")])
    many = capsys.readouterr().out
    assert many.count("\n") <= ROOM and re.search(r"[0-9]+ more designs, [\s\S]* stand in\s+results.json", many)
    assert "\n d39 " in many and "\n d1 " not in many
    assert re.search(r"^ d0 .* 1\.00 *$", many, re.MULTILINE)  # the baseline is never left out, however slow


# -- what else a design takes ------------------------------------------------------------------------------------------
def test_resources_and_fronts(study):
    found = {resource.name: resource for resource in study_resources(study)}
    assert set(found) == {"cost"}  # energies are 60 J of both, and no array is named
    assert found["cost"].values["base"] == (120.0, 80.0, 120.0) and found["cost"].values["fast"][0] == 15.0
    assert found["cost"].left_out == {"never": "0 of 3 runs reach the target"}
    assert pareto({"a": (1, 2), "b": (2, 1), "c": (2, 2), "d": (1, 2)}) == ["a", "d", "b"]


def test_what_a_time_is_made_of():
    rows = [
        {"layer": "fc", "pass": "forward", "cycles": 60, "stall_cycles": 20},
        {"layer": "fc", "pass": "backward_weight", "cycles": 40, "stall_cycles": 0},
    ]
    detail = {"clock_hz": 1e6, "memory_included": True, "gemms": rows}
    parts = layer_parts(IterationTime("a", 120e-6, detail=detail))
    got = {(part.layer, part.stage, part.cause): round(part.seconds * 1e6, 9) for part in parts}
    assert got == {
        ("fc", "forward", "not stalled"): 40, ("fc", "forward", "stalled for memory"): 20,
        ("fc", "backward_weight", "not stalled"): 40, ("", "", ""): 20,
    }  # fmt: skip
    assert layer_parts(IterationTime("a", 50e-6, detail=detail)) == []  # its parts are more than the whole
    assert layer_parts(IterationTime("a", 1.0)) == []


def test_areas_are_of_one_library_and_a_users_function_has_none_of_a_formats():
    sides = {
        "array": [10, 10],
        "sram_bytes": dict.fromkeys(("ifmap", "filter", "ofmap"), 65536),
        "bandwidth": "16 GB/s",
    }
    row = {"layer": "fc", "pass": "forward", "M": 8, "N": 8, "K": 8, "bits": 16, "formats": ["bfloat16", "bfloat16"]}
    own = {"source": "synthesis", "library": "cells", "area_um2": 500.0}

    def time(row, **hardware):
        return IterationTime("t", 1.0, detail={"hardware": {**sides, "clock": "1 GHz", **hardware}, "gemms": [row]})

    custom = {**row, "function": "log_multiply"}
    ratio = own | {"reference": "binary16", "reference_area_um2": 5000.0}
    areas, left_out = array_areas(
        {"plain": time(row), "custom": time(custom), "stated": time(custom, unit=ratio), "cells": time(row, unit=own)}
    )
    half = multiplier_areas()["binary16"].um2
    assert areas == {"plain": 100 * multiplier_areas()["bfloat16"].um2 / 1e6, "stated": pytest.approx(half / 1e5)}
    assert "log_multiply" in left_out["custom"] and "which do not compare" in left_out["cells"]
    assert array_areas({"a": time(row, unit=own), "b": time(custom, unit=own)})[0] == {"a": 0.05, "b": 0.05}
    assert array_areas({"a": None}) == ({}, {"a": "its time names no array"})


def test_the_pictures_are_drawn_and_described(study, tmp_path):
    found = plot_details(tmp_path, [study])
    assert found.pop("layers.png") == "no time says what it is made of"
    for path in found.values():
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n") and b"Description" in data[:2000]
    text = found["targets.png"].read_bytes().decode("latin-1")
    assert "base: to 0.96; fast: to 0.9; never: to 0.2" in text
    assert "never: throughput 8, 0 of 3 runs reach the target" in found["gains.png"].read_bytes().decode("latin-1")


# -- the report --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = comparison(tmp_path_factory.mktemp("tta"), costs={"a-float32": Cost(2.0), "b-binary16": Cost(1.0)})
    results = json.loads((folder / "results.json").read_text())
    results["runs"][-1]["diverged"] = True
    (folder / "results.json").write_text(json.dumps(results))
    return load_report(folder).page()


def chart(page, name):
    return next(chart for chart in page.charts if chart.name == name)


def test_the_charts_of_the_report_agree_with_the_results(page):
    summary = {row["design"]: row for row in next(t for t in page.tables if t.name == "summary-stated-hardware").data}
    for row in chart(page, "targets").data:
        if row["target"] == 0.9 and row["variant"] == "stated hardware":
            assert row["seconds"] == summary[row["design"]]["tta_median"]
    lanes = {(r["design"], r["lane"]): r for r in chart(page, "gains").data if r["variant"] == "stated hardware"}
    way = lanes["b-binary16", "efficiency"]
    assert way["end"] == summary["b-binary16"]["tta_median"]
    assert way["begin"] == pytest.approx(summary["a-float32"]["tta_median"] / summary["b-binary16"]["throughput"])
    assert lanes["h-posit8", "efficiency"]["text"] == "not reached: 1 of 3 runs"
    front = [r for r in chart(page, "fronts").data if r["variant"] == "rent to accuracy, stated hardware"]
    assert {r["design"]: r["front"] for r in front} == {"a-float32": False, "b-binary16": True}
    seconds = [r for r in chart(page, "causes-stated-hardware").data if r["design"] == "a-float32"]
    assert math.fsum(r["value"] for r in seconds) == pytest.approx(12.036e-6)


def test_what_is_not_drawn_is_named_and_divergence_is_marked(page):
    lines = [line for part in page.sections for block in part.blocks for line in getattr(block, "lines", ())]
    assert "h-posit8: no time, equal area" in lines
    assert any("c-wang-fp8" not in line and line.endswith("h-posit8: 1 of 3 runs reach the target") for line in lines)
    (cross,) = chart(page, "curves").spec["datasets"]["diverged"]
    assert (cross["design"], cross["iteration"]) == ("h-posit8", 60)
    assert "A cross" in chart(page, "curves").caption
    assert still(chart(page, "gains"))["description"].startswith("Throughput x efficiency. From the time")
