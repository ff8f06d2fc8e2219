"""Records and their combination with times, on hand-made runs with hand-computed numbers."""

import json
import math
from dataclasses import replace

import pytest

from softnum.tta import (
    Evaluation,
    IterationTime,
    ReachedRule,
    Record,
    Variant,
    combine_study,
    conclude,
    design_points,
    load_reports,
    plot_studies,
    print_studies,
    read_records,
    study_variants,
    write_results,
)
from softnum.tta.accuracy import RecordSet, read_record
from softnum.tta.outcomes import Cost, Spread, results_dict
from softnum.tta.simulators import MissingReport, read_requests

CONFIG = {"design": {"name": "base"}, "network": "mlp", "data": "digits", "batch": 32}


def row(iteration, **more):
    return {"iteration": iteration, "epoch": iteration / 10, "loss": 0.5, **more}


ROWS = [
    {"config": CONFIG, "seed": 3, "versions": {"softnum": "0"}},
    row(1),
    row(2, accuracy=0.5),
    row(3),
    row(4, accuracy=0.9),
    row(5, accuracy=0.8, finished=True),
]


def write(path, rows=ROWS, end="\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + end)
    return path


def runs(design, batch, *reached, total=100):
    """One run a seed; None never reaches the target of 0.9."""
    return [
        Record(
            design,
            seed,
            batch,
            total,
            tuple(Evaluation(i, 0.9 if at is not None and i >= at else 0.2) for i in range(10, total + 1, 10)),
            {"network": "mlp", "data": "digits"},
            {},
        )
        for seed, at in enumerate(reached)
    ]


def times(**seconds):
    return {design: IterationTime(design, value) for design, value in seconds.items()}


# -- records -----------------------------------------------------------------------------------------------------------


def test_a_finished_record(tmp_path):
    record = read_record(write(tmp_path / "seed-3.jsonl"))
    assert (record.design, record.seed, record.batch, record.iterations) == ("base", 3, 32, 5)
    assert record.evaluations == (Evaluation(2, 0.5, 0.2), Evaluation(4, 0.9, 0.4), Evaluation(5, 0.8, 0.5))
    # the first evaluation at the target counts, although the last is below it
    assert [ReachedRule().iteration(record.evaluations, target) for target in (0.9, 0.5, 0.91)] == [4, 2, None]


def test_a_diverged_run_reaches_nothing(tmp_path):
    rows = [*ROWS[:2], row(2, accuracy=math.nan), row(3, accuracy=math.nan, loss=math.inf, finished=True)]
    assert ReachedRule().iteration(read_record(write(tmp_path / "r.jsonl", rows)).evaluations, 0.0) is None


@pytest.mark.parametrize("rows", [ROWS[:-1], ROWS[:1], [*ROWS[:-1], '{"iteration": 5, "acc']])
def test_an_interrupted_run_is_unfinished_not_wrong(tmp_path, rows):
    assert read_record(write(tmp_path / "r.jsonl", rows, end="" if isinstance(rows[-1], str) else "\n")) is None


def test_an_empty_file_is_unfinished(tmp_path):
    assert read_record(write(tmp_path / "r.jsonl", [], end="")) is None


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        ([*ROWS[:2], "{oops}", *ROWS[2:]], 3, "not a row of JSON"),
        ([*ROWS[:2], "[1]", *ROWS[2:]], 3, "expected an object"),
        (ROWS[1:], 1, "expected the row .*config"),
        ([{**ROWS[0], "seed": "x"}, *ROWS[1:]], 1, "expected the row .*config"),
        (
            [{**ROWS[0], "config": {**CONFIG, "batch": 0}}, *ROWS[1:]],
            1,
            "batch must be an integer of at least 1, got 0",
        ),
        ([{**ROWS[0], "config": {**CONFIG, "design": {}}}, *ROWS[1:]], 1, "config names no design"),
        ([*ROWS[:3], row(1), *ROWS[4:]], 4, "expected an iteration after 2, got 1"),
        ([*ROWS[:2], {"loss": 1}, *ROWS[2:]], 3, "expected an iteration after 1, got None"),
        ([*ROWS[:3], row(2, accuracy=0.6), *ROWS[3:]], 4, "expected an iteration after 2, got 2"),
        ([*ROWS[:2], row(2, accuracy="high"), *ROWS[3:]], 3, "accuracy must be a number, got 'high'"),
        ([*ROWS, row(6)], 7, "a row follows the row that says finished"),
        (
            [ROWS[0], row(1, acuracy=0.5, finished=True)],
            2,
            "without any evaluation of 'accuracy'; did you mean 'acuracy'",
        ),
    ],
)
def test_bad_records_name_file_line_and_way_out(tmp_path, rows, line, message):
    path = write(tmp_path / "r.jsonl", rows)
    with pytest.raises(ValueError, match=message) as error:
        read_record(path)
    assert f"{path}, line {line}:" in str(error.value)


def test_a_folder_of_records(tmp_path):
    for seed in (1, 0):
        write(tmp_path / "base" / f"seed-{seed}.jsonl", [{**ROWS[0], "seed": seed}, *ROWS[1:]])
    write(tmp_path / "slow" / "seed-0.jsonl", ROWS[:4])
    found = read_records(tmp_path)
    assert [(r.design, r.seed) for r in found.records] == [("base", 0), ("base", 1)]
    assert len(found.excluded) == 1
    assert "slow" in found.excluded[0]
    assert "is not finished and is left out" in found.excluded[0]
    assert read_records(tmp_path, designs=["base"]).excluded == ()
    write(tmp_path / "base" / "seed-7.jsonl", [{**ROWS[0], "seed": 0}, *ROWS[1:]])
    with pytest.raises(ValueError, match="design 'base' with seed 0 is already in"):
        read_records(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no training records under .*train the designs first"):
        read_records(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match="no training record"):
        read_record(tmp_path / "none.jsonl")


# -- arithmetic --------------------------------------------------------------------------------------------------------


def test_speed_up_is_throughput_times_efficiency_by_hand():
    # base: 40 iterations of 2 s with 32 samples; fast: 20 iterations of 1 s with 128 samples
    study = combine_study(
        [*runs("base", 32, 30, 40, 50), *runs("fast", 128, 20, 20, 30)],
        times(base=2.0, fast=1.0),
        target=0.9,
        baseline="base",
    )
    base, fast = study["base"], study["fast"]
    assert base.iterations == Spread(40, 30, 50)
    assert base.tta == Spread(80.0, 60.0, 100.0)
    assert fast.samples == Spread(20 * 128, 20 * 128, 30 * 128)
    assert fast.tta == Spread(20.0, 20.0, 30.0)
    assert fast.throughput == (128 / 1) / (32 / 2) == 8.0
    assert fast.efficiency == (40 * 32) / (20 * 128) == 0.5
    assert fast.speedup == fast.throughput * fast.efficiency == base.tta.median / fast.tta.median == 4.0
    assert (base.throughput, base.efficiency, base.speedup) == (1.0, 1.0, 1.0)


def test_the_split_holds_for_awkward_numbers():
    for seconds, batch in ((1.2036e-05, 32), (2.3838e-05, 256), (7.068e-06, 48)):
        study = combine_study(
            [*runs("base", 32, 30, 40, 70), *runs("x", batch, 10, 60, 90)],
            times(base=1.1e-5, x=seconds),
            target=0.9,
            baseline="base",
        )
        x = study["x"]
        assert x.speedup == x.throughput * x.efficiency
        assert x.speedup == pytest.approx(study["base"].tta.median / x.tta.median, rel=1e-14)


def test_never_reached_is_infinite_not_dropped():
    study = combine_study(
        [
            *runs("base", 32, 40, 40, 40),
            *runs("most", 32, 30, None, 50),
            *runs("few", 32, None, 20, None),
            *runs("half", 32, 20, 20, None, None),
            *runs("never", 32, None, None, None),
        ],
        times(base=1.0, most=1.0, few=0.5, half=1.0, never=0.1),
        target=0.9,
        baseline="base",
    )
    assert [study[d].reached for d in ("base", "most", "few", "half", "never")] == [3, 2, 1, 2, 0]
    assert study["most"].iterations == Spread(50, 30, math.inf)
    assert study["most"].speedup == 40 / 50
    for design in ("few", "half", "never"):
        assert math.isinf(study[design].tta.median)
        assert study[design].speedup is None
        assert study[design].efficiency is None
        assert study[design].throughput is not None
        # a run that never arrives ties with nothing
        assert study[design].ties == study[design].sample_ties == ()
    assert study["never"].tta.low == math.inf


def test_ties_are_overlapping_ranges():
    study = combine_study(
        [
            *runs("a", 32, 30, 40, 50),
            *runs("b", 32, 50, 60, 70),
            *runs("c", 32, 80, 90, 90),
            *runs("d", 32, 60, 70, None),
        ],
        times(a=1.0, b=1.0, c=1.0, d=1.0),
        target=0.9,
        baseline="a",
    )
    # a and b share the point 50; d has no upper end, so it reaches over c
    ties = {result.design: result.ties for result in study.designs}
    assert ties == {"a": ("b",), "b": ("a", "d"), "c": ("d",), "d": ("b", "c")}
    faster = combine_study(
        [*runs("a", 32, 30, 40, 50), *runs("b", 32, 30, 40, 50)], times(a=1.0, b=0.1), target=0.9, baseline="a"
    )
    # the same samples, on hardware that tells them apart
    assert faster["b"].ties == ()
    assert faster["b"].sample_ties == ("a",)


def test_a_design_without_a_time_keeps_its_iterations():
    variant = Variant("equal area", times(a=1.0), {"h": "no multiplier area is known for posit8"}, ("an assumption",))
    study = combine_study([*runs("h", 32, 20, 20, 20), *runs("a", 32, 40, 40, 40)], variant, target=0.9, baseline="a")
    h = study["h"]
    assert [result.design for result in study.designs] == ["a", "h"]
    assert (h.time, h.tta, h.throughput, h.speedup) == (None, None, None, None)
    assert h.efficiency == 2.0
    assert study.assumptions == ("an assumption",)
    assert study.notes == ("h has no time in the variant 'equal area': no multiplier area is known for posit8",)


def test_notes_say_what_is_missing_and_thin():
    study = combine_study(
        RecordSet(tuple(runs("a", 32, 40)), ("out/a/seed-1.jsonl is not finished",)),
        times(a=1.0),
        target=0.9,
        baseline="a",
    )
    assert study.notes[0] == "out/a/seed-1.jsonl is not finished"
    assert "fewer than three runs of a" in study.notes[1]
    assert "first evaluation with accuracy >= 0.9" in study.rule


def test_what_cannot_be_combined():
    good = runs("a", 32, 40, 40)
    with pytest.raises(ValueError, match="no finished training record to combine"):
        combine_study([], times(a=1.0), target=0.9, baseline="a")
    with pytest.raises(ValueError, match=r"baseline 'aa' has no finished run.*did you mean 'a'"):
        combine_study(good, times(a=1.0), target=0.9, baseline="aa")
    with pytest.raises(ValueError, match="no time per iteration for design 'a'; the timings are of b"):
        combine_study(good, times(b=1.0), target=0.9, baseline="a")
    with pytest.raises(ValueError, match="another network"):
        combine_study(
            [good[0], replace(good[1], config={"network": "cnn", "data": "digits"})],
            times(a=1.0),
            target=0.9,
            baseline="a",
        )
    with pytest.raises(ValueError, match=r"with batch 32 \(seed 0\) and 64 \(seed 1\)"):
        combine_study([good[0], replace(good[1], batch=64)], times(a=1.0), target=0.9, baseline="a")
    with pytest.raises(ValueError, match=r"meets the target 0.1 before the first update"):
        combine_study([replace(good[0], evaluations=(Evaluation(0, 0.1),))], times(a=1.0), target=0.1, baseline="a")
    with pytest.raises(ValueError, match="target must be finite"):
        combine_study(good, times(a=1.0), target=math.nan, baseline="a")
    with pytest.raises(TypeError, match=r"target must be a number such as 0.95, got '95%'"):
        combine_study(good, times(a=1.0), target="95%", baseline="a")
    with pytest.raises(KeyError, match="no design 'z' in the study; it has a"):
        combine_study(good, times(a=1.0), target=0.9, baseline="a")["z"]


# -- what is shown -----------------------------------------------------------------------------------------------------


@pytest.fixture
def studies():
    records = [
        *runs("a-base", 32, 30, 40, 50),
        *runs("b-same", 32, 30, 40, 40),
        *runs("c-some", 64, 20, None, 30),
        *runs("d-never", 256, None, None, None, total=60),
        *runs("h-[table]", 32, 50, 60, 70),
    ]
    seconds = {"a-base": 1.2e-5, "b-same": 7e-6, "c-some": 2e-5, "d-never": 1e-6, "h-[table]": 4.5e-6}
    given = {design: IterationTime(design, value, 1, "by hand") for design, value in seconds.items()}
    area = {design: time for design, time in given.items() if design != "h-[table]"}
    variants = [
        Variant("stated hardware", given, {}, ("the same array",), ("the update",)),
        Variant("equal area", area, {"h-[table]": "no area"}, ("ASSUMPTION",), ("the update",)),
    ]
    return [combine_study(records, variant, target=0.9, baseline="a-base") for variant in variants]


def test_the_table_says_it_all(studies):
    import io

    from rich.console import Console

    out = io.StringIO()
    print_studies(studies, Console(file=out, width=100), explain=True)
    text = out.getvalue()
    flat = " ".join(text.split())
    for words in (
        "Time to accuracy >= 0.9, stated hardware (baseline a-base)",
        "[30, 50]",
        "40 x 12.0 µs",
        "480 µs",
        "[360, 600 µs]",
        "1.71",  # 12 / 7
        "= 1.71 x 1.00",
        "2 of 3",
        "0 of 3",
        "not reached",
        "not reached in",
        "60 x ",
        "no time",
        "h-[table]",
        "ASSUMPTION",
        "the update",
        "h-[table] has no time in the variant 'equal area': no area",
        "known to the evaluation interval (10 iterations)",
    ):
        assert words in flat, words
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_cuts_nothing_off(width):
    import io
    import re

    from rich.console import Console

    seconds = {"a-base": 2.0, "b-with-a-long-name-to-fit@1024": 400.0}
    records = [*runs("a-base", 32, 30, 40, 50), *runs("b-with-a-long-name-to-fit@1024", 32, 60, None, 80)]
    times = {name: IterationTime(name, t, 3, samples=(0.9 * t, t, 1.1 * t)) for name, t in seconds.items()}
    study = combine_study(records, times, target=0.9, baseline="a-base", costs={"a-base": Cost(1.0, 2.0)})

    def shown(width):
        out = io.StringIO()
        print_studies([study], Console(file=out, width=width), explain=True)
        return out.getvalue()

    narrow, wide = shown(width), shown(200)
    assert "\u2026" not in narrow and max(map(len, narrow.splitlines())) <= width
    numbers = re.compile(r"\d[\d.,]*")
    assert sorted(set(numbers.findall(wide)) - set(numbers.findall(narrow))) == []
    assert "0.0025" in wide  # a speed-up of 1/400 is not shown as 0.00


def test_the_table_says_how_times_are_known(capsys):
    def shown(**kinds):
        records = [record for name in kinds for record in runs(name, 32, 40, 40)]
        given = {name: IterationTime(name, 1.0, kind=kind) for name, kind in kinds.items()}
        print_studies([combine_study(records, given, target=0.9, baseline="a")])
        return " ".join(capsys.readouterr().out.split())

    assert "Times per iteration are estimated." in shown(a="estimated", b="estimated")
    assert "given times: measured: a; estimated: b, c." in shown(a="measured", b="estimated", c="estimated")


def test_results_json_holds_every_number_and_is_strict_json(studies, tmp_path):
    path = write_results(tmp_path / "out" / "results.json", studies, {"seeds": [0, 1, 2]})

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    data = json.loads(path.read_text(), parse_constant=refuse)
    assert data == json.loads(json.dumps(results_dict(studies, {"seeds": [0, 1, 2]})))
    stated, area = data["variants"]
    by_name = {entry["design"]: entry for entry in stated["designs"]}
    assert by_name["a-base"]["tta"] == {"median": 40 * 1.2e-5, "low": 30 * 1.2e-5, "high": 50 * 1.2e-5}
    assert by_name["c-some"]["iterations"] == {"median": 30, "low": 20, "high": None}
    assert by_name["d-never"]["tta"]["median"] is None
    assert by_name["d-never"]["runs"][0]["iterations_to_target"] is None
    assert by_name["b-same"]["ties"] == ["h-[table]"]
    assert by_name["b-same"]["sample_ties"] == ["a-base", "c-some"]  # 1280 samples are in both ranges
    assert by_name["a-base"]["time"]["seconds"] == 1.2e-5
    assert area["assumptions"] == ["ASSUMPTION"]
    assert data["rule"] == studies[0].rule
    assert data["inputs"] == {"seeds": [0, 1, 2]}
    assert len(data["runs"]) == 15
    assert [p.name for p in path.parent.iterdir()] == ["results.json"]


def test_the_picture_is_a_png_and_the_same_each_time(studies, tmp_path):
    first = plot_studies(tmp_path / "a.png", studies).read_bytes()
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(first[16:20], "big") > 1000
    assert plot_studies(tmp_path / "b.png", studies).read_bytes() == first
    assert plot_studies(tmp_path / "c.png", studies[:1]).read_bytes() != first


def test_a_study_where_nothing_arrives_is_still_drawn(tmp_path):
    study = combine_study(runs("a", 32, None, None), times(a=1.0), target=0.9, baseline="a")
    assert plot_studies(tmp_path / "a.png", [study]).stat().st_size > 1000


def test_light_import():
    import subprocess
    import sys

    code = "import sys, softnum.tta; print([m for m in ('matplotlib', 'rich', 'softnum.train') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- end to end, but for the training ----------------------------------------------------------------------------------


def test_a_study_from_shipped_reports_and_records(tmp_path, capsys):
    reports = load_reports()
    points = list(reports.designs.values())
    variants = study_variants(points, baseline=reports.baseline, out=tmp_path)
    records = []
    for point in points:
        batch = next(gemm.m for gemm in point.gemms if gemm.phase == "forward")
        records += runs(point.name, batch, 40, 50, 60)
    studies = conclude(records, variants, target=0.9, baseline=reports.baseline, out=tmp_path, inputs={"seeds": 3})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json", "tta.png"]
    assert "equal area" in capsys.readouterr().out
    data = json.loads((tmp_path / "results.json").read_text())
    for study, variant in zip(studies, data["variants"], strict=True):
        for entry in variant["designs"]:
            result = study[entry["design"]]
            assert entry["speedup"] == result.speedup
            if result.time is not None:
                # the report's cycles, layer by layer, are kept with the result
                assert (
                    sum(gemm["cycles"] for gemm in entry["time"]["detail"]["gemms"])
                    == entry["time"]["detail"]["cycles"]
                )
                assert entry["time"]["detail"]["cycles"] / 1e9 == entry["time"]["seconds"]


def test_a_missing_report_is_known_before_training_and_its_requests_are_written(tmp_path):
    reports = load_reports()
    point = reports.designs[reports.baseline]
    mine = replace(point, name="mine", gemms=tuple(replace(gemm, bits=12) for gemm in point.gemms))
    with pytest.raises(MissingReport, match=r"design 'mine': no SCALE-Sim report") as error:
        study_variants([point, mine], baseline=point.name, out=tmp_path)
    requests = tmp_path / "requests.json"
    assert f"remake --requests {requests} --out {tmp_path / 'scalesim'}" in str(error.value)
    assert read_requests(requests) == ([point, mine], point.name)


def test_a_missing_report_of_a_large_network_is_no_list_of_its_layers(tmp_path):
    reports = load_reports()
    point = reports.designs[reports.baseline]
    layers = tuple(replace(point.gemms[0], layer=f"layer{i}", m=7) for i in range(100))
    with pytest.raises(MissingReport, match=r"no forward of 'layer3'; and 96 more differences like these$"):
        study_variants([replace(point, gemms=layers)], baseline=point.name, out=tmp_path)


def test_a_timing_file_in_place_of_the_simulator(tmp_path):
    point = next(iter(load_reports().designs.values()))
    file = tmp_path / "times.csv"
    file.write_text(f"design,iteration,cycles\n{point.name},1,100\n{point.name},2,300\n")
    (variant,) = study_variants([point], baseline=point.name, out=tmp_path, timings=file, clock="1 kHz")
    assert variant.timings[point.name].seconds == 0.2
    with pytest.raises(ValueError, match=r"no times of 'other'; of 'a-float32' there are some"):
        study_variants(
            [point, replace(point, name="other")], baseline=point.name, out=tmp_path, timings=file, clock="1 Hz"
        )


def test_design_points_come_from_the_records_themselves():
    gemm = {"layer": "fc", "pass": "forward", "M": 32, "N": 8, "K": 4, "bits": 8, "formats": ["e5m2", "e5m2"]}
    sram = {"ifmap": 65536, "filter": 65536, "ofmap": 65536}
    hardware = {"array": [8, 8], "sram_bytes": sram, "bandwidth": "16 GB/s", "clock": "1 GHz"}
    config = {"design": {"name": "a", "hardware": hardware}, "gemms": [gemm]}
    records = [replace(record, config=config) for record in runs("a", 32, 40, 40)]
    (point,) = design_points(records)
    assert point.to_table() == {"name": "a", "hardware": hardware, "gemms": [gemm]}
    changed = {**config, "gemms": [{**gemm, "bits": 16}]}
    with pytest.raises(ValueError, match="hardware or GEMMs of design 'a' differ between its runs"):
        design_points([records[0], replace(records[1], config=changed)])
    with pytest.raises(ValueError, match=r"its config states no gemms.*give a timing file"):
        design_points([replace(records[0], config={"design": config["design"]})])
    with pytest.raises(ValueError, match=r"its config states no hardware"):
        design_points([replace(records[0], config={"design": "a", "gemms": [gemm]})])


def test_a_diverged_run_is_named(tmp_path):
    rows = [*ROWS[:3], row(3, accuracy=0.1, loss=None, diverged=True, finished=True)]
    record = read_record(write(tmp_path / "r.jsonl", rows))
    assert record.diverged
    study = combine_study([record], times(base=1.0), target=0.9, baseline="base")
    assert study.notes[0] == "base, seed 3, diverged at iteration 3: its loss was not finite"
