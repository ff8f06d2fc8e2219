"""Running simulators: results are kept as they come, nothing runs twice, and failures say what failed."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import DesignPoint, Gemm, Hardware, load_reports, scalesim_timings, simulate, study_variants
from softnum.tta.simulators import MissingReport, create_environment
from softnum.tta.simulators import environment as runs
from softnum.tta.simulators.environment import TOOLS, Task, Tool, run_tasks

# A simulator of this test: it squares the number in in.txt, and notes in LOG that it ran.
_SETUP = "    import pathlib, time"
_WORK = """\
        number = int(pathlib.Path("in.txt").read_text())
        with open({log!r}, "a") as log:
            log.write(f"{{number}}\\n")
        print("chatter on stdout")
        if number == 13:
            raise ValueError("thirteen is not simulated")
        if number == 14:
            print("dying words", file=sys.stderr, flush=True)
            os._exit(3)
        if number == 15:
            time.sleep(60)
        if number != 16:
            pathlib.Path("out.txt").write_text(str(number * number))"""


@pytest.fixture
def squares(monkeypatch, tmp_path):
    log = tmp_path / "log"
    log.touch()
    tool = Tool.of("Squarer", "numpy", np.__version__, (), "numpy", (_SETUP, _WORK.format(log=str(log))))
    monkeypatch.setitem(TOOLS, "squarer", tool)
    monkeypatch.setattr(runs, "create_environment", lambda environment, name: Path(sys.executable))

    def run(numbers, **options):
        tasks = [Task(f"square of {n}", {"in.txt": str(n)}, "out.txt", _is_square, n) for n in numbers]
        return run_tasks("squarer", tasks, cache=tmp_path / "cache", **options)

    run.ran = lambda: sorted(map(int, log.read_text().split()))
    run.files = lambda: list((tmp_path / "cache").rglob("*.json"))
    return run


def _is_square(text):
    if int(text) ** 0.5 % 1:
        raise ValueError(f"{text} is no square")


@pytest.mark.parametrize("jobs", [1, 3, None])
def test_results_come_in_the_order_of_the_tasks_and_equal_ones_run_once(squares, jobs):
    said = []
    assert squares([3, 1, 2, 3, 1], jobs=jobs, progress=said.append) == ["9", "1", "4", "9", "1"]
    assert squares.ran() == [1, 2, 3]
    assert len(said) == 3 and said[-1].startswith("Squarer: 3 of 3 GEMMs, last square of")


def test_what_is_kept_does_not_run_again(squares):
    squares([1, 2])
    said = []
    assert squares([2, 4, 1], progress=said.append) == ["4", "16", "1"]
    assert squares.ran() == [1, 2, 4]
    assert said == [
        "Squarer: 2 of 3 GEMMs found among earlier simulations",
        "Squarer: 3 of 3 GEMMs, last square of 4",
    ]
    squares([1], reuse=False)
    assert squares.ran() == [1, 1, 2, 4]


@pytest.mark.parametrize("damage", ["", "{", '{"text": "5", "sha256": 1}', '{"text": 7}', "[1]", "[" * 100_000])
def test_a_damaged_entry_is_simulated_again(squares, damage):
    squares([2])
    (file,) = squares.files()
    good = file.read_bytes()
    file.write_text(damage)
    assert squares([2]) == ["4"] and squares.ran() == [2, 2]
    assert file.read_bytes() == good
    entry = json.loads(good)
    file.write_text(json.dumps({**entry, "text": "9"}))  # a plausible result, but not the one that was kept
    assert squares([2]) == ["4"]
    for i in range(0, len(good), 7):  # a flipped bit, a cut: the result, or it is simulated again
        for damaged in (good[:i] + bytes([good[i] ^ 4]) + good[i + 1 :], good[:i]):
            file.write_bytes(damaged)
            assert runs._kept(file, Task("square of 2", {}, "out.txt", _is_square)) in (None, "4")
    file.unlink()
    file.mkdir()
    with pytest.raises(IsADirectoryError, match=file.name):
        squares([2])


def test_an_environment_is_made_by_one_process_at_a_time(tmp_path, monkeypatch):
    """The second finds what the first has made; what is there and is no Python, or another version, is made anew."""
    made, there = [], tmp_path / "venv"

    def install(environment, python, what):
        made.append(environment)
        time.sleep(0.2)
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text("#!/bin/sh\necho 3.0.0\n")
        python.chmod(0o755)

    monkeypatch.setattr(runs, "_install", install)
    with ThreadPoolExecutor(3) as pool:
        got = set(pool.map(lambda _: create_environment(there), range(3)))
    assert got == {there / "bin" / "python"} and made == [there]
    for content in ("", "\0" * 100, "#!/bin/sh\necho 2.0\n", "#!/no/such/shell\n"):
        (there / "bin" / "python").write_text(content)
        create_environment(there)
    assert len(made) == 5


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_environment_that_others_can_write_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runs, "_holds", lambda python, what: True)
    there = create_environment().parent.parent
    assert there == runs.default_environment() and there.stat().st_mode & 0o777 == 0o700
    there.chmod(0o777)
    with pytest.raises(ValueError, match=f"others can write to the cache folder .*{there.name}"):
        create_environment()
    there.chmod(0o700)
    (tmp_path / "cache" / "simulations").mkdir(mode=0o700)
    (tmp_path / "cache" / "simulations").chmod(0o777)
    with pytest.raises(ValueError, match="others can write to the cache folder .*simulations"):
        run_tasks("scalesim", [])


def test_a_failure_is_told_and_costs_no_other_result(squares):
    with pytest.raises(RuntimeError, match=r"(?s)Squarer failed on square of 13:.*ValueError: thirteen"):
        squares([20, 13, 1], jobs=1)
    assert squares.ran() == [13, 20] and len(squares.files()) == 1  # the largest first
    with pytest.raises(RuntimeError, match=r"(?s)Squarer failed on square of 14 \(exit code 3\):.*dying words"):
        squares([14])
    with pytest.raises(RuntimeError, match="square of 16: it ended without an error and without out.txt"):
        squares([16])
    with pytest.raises(ValueError, match="jobs must be at least 1, got 0"):
        squares([1], jobs=0)
    assert squares([20]) == ["400"] and squares.ran().count(20) == 1


def test_another_version_is_refused(squares, monkeypatch):
    monkeypatch.setitem(TOOLS, "squarer", replace(TOOLS["squarer"], version="0.0"))
    with pytest.raises(RuntimeError, match=r"(?s)numpy [\d.]+ is installed, not 0\.0"):
        squares([1])


def test_an_interrupted_run_keeps_what_is_finished_and_leaves_no_process(squares):
    def stop(line):
        if "square of 2" in line:
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        squares([15, 2], jobs=2, progress=stop)  # 15 sleeps for a minute
    assert time.monotonic() - begun < 30
    assert squares([2]) == ["4"] and squares.ran().count(2) == 1


def test_an_environment_that_cannot_be_made_says_how_to(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        RuntimeError, match=r"(?s)could not make ZigZag's environment in .*Install zigzag-dse==3.9.1 six"
    ):
        create_environment(tmp_path / "file" / "venv", "zigzag")
    with pytest.raises(ValueError, match="unknown simulator 'gem5'; softnum drives scalesim, zigzag"):
        create_environment(tmp_path, "gem5")


# -- studies -----------------------------------------------------------------------------------------------------------


def test_reports_that_are_there_are_not_simulated_again(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "create_environment", lambda *_: pytest.fail("nothing has to be simulated"))
    points = list(load_reports().designs.values())
    made = simulate(points[:2], tmp_path / "some", baseline="a-float32", cache=tmp_path / "cache")
    assert scalesim_timings(points[:2], load_reports(made.parent)) == {
        name: replace(time, detail={**time.detail, "gemms": _in(tmp_path / "some", time.detail["gemms"])})
        for name, time in scalesim_timings(points[:2]).items()
    }
    # one design fewer: its reports go, and nothing else
    (tmp_path / "some" / "note.txt").write_text("mine")
    before = {path.name for path in made.parent.iterdir()}
    simulate(points[:1], made.parent, baseline="a-float32", cache=tmp_path / "cache")
    assert before - {path.name for path in made.parent.iterdir()} == {
        "os-32x32-sram32k-bw8.csv",
        "os-69x69-sram32k-bw8.csv",
    }


def _in(folder, rows):
    return [{**row, "report": str(folder / Path(row["report"]).name)} for row in rows]


def test_utilisation_is_what_the_cells_did_over_what_they_could():
    time = scalesim_timings(load_reports().designs.values())["c-wang-fp8"]
    for row in time.detail["gemms"]:
        assert row["utilisation"] == row["M"] * row["N"] * row["K"] / (row["cycles"] * 1024)
        assert Path(row["report"]).name == "os-32x32-sram32k-bw8.csv" and Path(row["report"]).is_file()
    macs = sum(row["M"] * row["N"] * row["K"] for row in time.detail["gemms"])
    assert time.detail["utilisation"] == macs / (time.detail["cycles"] * 1024) and time.kind == "simulated"


def test_utilisation_counts_what_a_pattern_leaves():
    sparse = load_reports(Path(__file__).parents[2] / "examples" / "sparsity" / "reports")
    row = scalesim_timings([sparse.designs["fp8-2of4"]], sparse)["fp8-2of4"].detail["gemms"][0]
    assert row["utilisation"] == row["M"] * row["N"] * (row["K"] // 2) / (row["cycles"] * 1024)


def test_a_study_of_another_dataflow_takes_no_reports_of_this_one(tmp_path):
    points = list(load_reports().designs.values())
    with pytest.raises(MissingReport, match=r"remake --dataflow ws --requests .*the reports are of no design"):
        study_variants(points, baseline="a-float32", out=tmp_path, dataflow="ws")
    with pytest.raises(ValueError, match="unknown dataflow 'rs'; dataflows: os, ws, is"):
        study_variants(points, baseline="a-float32", out=tmp_path, dataflow="rs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataflow", "ws", "--timings", "x.csv"], "--dataflow is for a simulator's times"),
        (["--simulator", "zigzag", "--timings", "x.csv"], "--simulator is for a simulator's times"),
        (["--simulator", "zig"], "unknown simulator 'zig'; softnum drives scalesim, zigzag"),
        (["--dataflow", "rs"], "unknown dataflow 'rs'"),
        (["--simulator", "zigzag", "--dataflow", "is"], "ZigZag is driven with the dataflow os only"),
        (["--simulator", "zigzag"], "add --simulate to run ZigZag"),
    ],
)
def test_the_command_line_refuses(tmp_path, options, message):
    pytest.importorskip("matplotlib")
    done = CliRunner().invoke(build_app(), ["tta", "--out", str(tmp_path / "out"), *options])
    assert done.exit_code == 2 and message in done.output and not (tmp_path / "out" / "records").exists()


# -- what is simulated -------------------------------------------------------------------------------------------------


def rows_of(products):
    return [(row[1], row[2] * row[3] * row[4]) for row in products]


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_a_convolutions_products_are_its_multiplications(groups):
    from softnum.train.layers.feedforward import Convolution

    layer = Convolution("conv", (8, 6, 6), 16, 3, padding=1, groups=groups)  # groups = 8: depthwise
    macs = 4 * 36 * 16 * (8 // groups) * 9  # a result of each of 4 samples sums over the channels of its group
    for phase in ("forward", "backward_data", "backward_weight"):
        products = layer.products(phase, 4)
        assert len(products) == groups
        assert sum(m * n * k for _, _, m, n, k in products) == macs


def test_the_products_of_networks_reach_the_simulator():
    """Both backward products of every layer but the first, and an LSTM's of every step."""
    from softnum.train import design_gemms, load_design, make_network

    design = load_design("c-wang-fp8")
    for name in ("mlp", "lenet5", "lstm"):
        network = make_network(name)
        table = {"name": name, "hardware": design.hardware, "gemms": design_gemms(design, network, 8)}
        gemms = DesignPoint.from_table(table).gemms
        macs = {}
        for gemm in gemms:
            macs.setdefault(gemm.layer, {}).setdefault(gemm.phase, 0)
            macs[gemm.layer][gemm.phase] += gemm.count * gemm.m * gemm.n * gemm.k
        for number, (layer, phases) in enumerate(macs.items()):
            first = number == 0
            assert set(phases) == {"forward", "backward_weight"} | (set() if first else {"backward_data"}), layer
            assert phases["forward"] == phases["backward_weight"], layer
    steps, hidden = 8, 32
    assert macs["lstm.hidden"]["forward"] == (steps - 1) * 8 * hidden * 4 * hidden  # the first step has no state
    assert macs["lstm.hidden"]["backward_data"] == macs["lstm.hidden"]["forward"]


# -- SCALE-Sim itself --------------------------------------------------------------------------------------------------


def point(*shapes, name="d"):
    table = {"ifmap": 65536, "filter": 65536, "ofmap": 65536}
    hardware = Hardware.from_table({"array": [8, 8], "sram_bytes": table, "bandwidth": "16 GB/s", "clock": "1 GHz"})
    gemms = tuple(Gemm("fc", "forward", m, n, k, 8, ("q4.4", "q4.4")) for m, n, k in shapes)
    return DesignPoint(name, hardware, gemms)


@pytest.mark.slow
@pytest.mark.parametrize("dataflow", ["os", "ws", "is"])
def test_scalesims_dataflows(tmp_path, dataflow):
    shape = (16, 24, 40)
    simulate([point(shape)], tmp_path / "out", baseline="d", dataflow=dataflow, cache=tmp_path / "cache")
    reports = load_reports(tmp_path / "out")
    (row,) = reports.cycles.values()
    m, n, k = shape
    folds, steps = {"os": (m * n, k), "ws": (n * k, m), "is": (m * k, n)}[dataflow]
    # what a fold of 8 x 8 takes: fill, steps, drain
    compute = folds // 64 * (steps + 8 + 8 - 2) + (0 if dataflow == "os" else folds // 64 * 8)
    assert reports.dataflow == dataflow and abs(int(_column(tmp_path / "out", 2)) - compute) <= 1
    assert row.cycles > compute


def _column(folder, number):
    (report,) = folder.glob("*.csv")
    return report.read_text().splitlines()[1].split(",")[number]


@pytest.mark.slow
def test_a_killed_study_goes_on_where_it_was(tmp_path):
    shapes = [(32 * i, 32, 64) for i in range(1, 9)]
    requests = tmp_path / "requests.json"
    requests.write_text(json.dumps({"baseline": "d", "designs": [point(*shapes).to_table()]}))
    command = [sys.executable, "-m", "softnum.tta", "remake", "--requests", requests, "--out", tmp_path / "out"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    venv = runs.default_environment()
    create_environment()
    command += ["--venv", venv, "--jobs", "1"]
    first = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    lines = [first.stdout.readline() for _ in range(3)]
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    assert lines[2].startswith("SCALE-Sim: 3 of 8 GEMMs") and not (tmp_path / "out").exists()
    entries = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.json")}
    assert 3 <= len(entries) < 8
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert second.stdout.startswith(f"SCALE-Sim: {len(entries)} of 8 GEMMs found")
    assert second.stdout.count("GEMMs, last") == 8 - len(entries)
    assert all(path.read_bytes() == data for path, data in entries.items())
    # in one go, and by several processes, it is the same
    simulate(
        [point(*shapes)], tmp_path / "whole", baseline="d", cache=tmp_path / "other", reuse=False, jobs=2,
    )  # fmt: skip
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
