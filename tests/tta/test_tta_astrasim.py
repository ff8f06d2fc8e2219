"""ASTRA-sim: files as it takes them, its log, and that it agrees with the model of `softnum parallel`."""

import os
import stat
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import load_design, workload
from softnum.tta import parallel_time, read_results, read_timings
from softnum.tta.simulators import AstraSystem, NetworkDimension, run_astrasim, write_astrasim
from softnum.tta.traces import data_parallel_traces, write_traces
from softnum.tta.workloads import Exchange
from tests.support.chakra import schema_file

LOG = Path(__file__).parent / "data" / "astrasim" / "mlp-4ranks.log"
TIMES = {layer: tuple(map(Fraction, row)) for layer, row in (
    ("fc1", ("3e-3", "0", "3e-3", "1e-3")), ("fc2", ("1e-3", "1.5e-3", "1e-3", "0")),
)}  # fmt: skip
PROGRAM = os.environ.get("SOFTNUM_ASTRASIM")
real = pytest.mark.skipif(not PROGRAM, reason="SOFTNUM_ASTRASIM names no build of ASTRA-sim")
RATE, LATENCY = 10**7, Fraction(1, 10**5)


@pytest.fixture(scope="module")
def work():
    return workload("mlp", load_design("c-wang-fp8"), 32)


@pytest.fixture
def job(work, tmp_path):
    write_traces(tmp_path, data_parallel_traces(work, 4, times=TIMES), schema_file(tmp_path))
    write_astrasim(tmp_path, AstraSystem([NetworkDimension("Ring", 4, RATE, LATENCY)]))
    return tmp_path


def test_log(work):
    time = read_timings(LOG)["mlp-4ranks"]
    assert (time.seconds, time.kind, time.iterations) == (0.030684017, "simulated", 1)
    wanted = {"cycles": 30684017, "exposed_cycles": 20184013, "ranks": 4, "fastest_cycles": 30684017, "slowest_rank": 0}
    assert {key: time.detail[key] for key in wanted} == wanted
    assert (time.detail["gpu_cycles"], time.detail["comm_cycles"]) == (10500004, 23184014)
    model = parallel_time(work, TIMES, 4, RATE, Exchange(LATENCY)).seconds
    assert (
        0 <= Fraction(30684017, 10**9) - model < Fraction(1, 10**7)
    )  # messages and parts of no time take a nanosecond
    assert read_timings(LOG, iterations=2)["mlp-4ranks"].seconds == 0.0153420085


def changed(old, new):
    return lambda text: text.replace(old, new)


@pytest.mark.parametrize(
    "edit, message",
    [
        (changed("sys[2] finished", "sys[9] finished"), r"sys\[2\] is not done, and sys\[9\] is: cut off"),
        (lambda text: text + text, r"line 3\d: sys\[\d\] is done again, after line \d"),
        (
            changed("sys[1], Wall time: 30684017", "sys[1], Wall time: 9"),
            "has a wall time of 9 cycles and is",
        ),
        (changed("30684017 cycles", "0 cycles"), "took no time"),
        (
            lambda text: text + "[x] [workload] [critical] communicator group 3 not found\n",
            "with an error: comm",
        ),
        (changed("sys[1] finished, 30684017 cycles, exp", "sys[1] finished, 3 c"), "not as ASTRA-sim"),
    ],
)
def test_logs_that_are_damaged(edit, message, tmp_path):
    text = edit(LOG.read_text())
    (tmp_path / "a.log").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_timings(tmp_path / "a.log", format="astrasim")


def test_a_log_without_ranks(tmp_path):
    (tmp_path / "a.log").write_text(LOG.read_text()[:400])
    with pytest.raises(ValueError, match="no rank is done; expected lines of 'sys"):
        read_timings(tmp_path / "a.log", format="astrasim")


def test_configurations(job):
    assert (job / "network.yml").read_text().splitlines()[1:] == [
        "npus_count: [ 4 ]", f"bandwidth: [ {RATE / 8 / 2**30} ]", "latency: [ 10000.0 ]",
    ]  # fmt: skip
    system = AstraSystem([NetworkDimension("Switch", 2, 1)] * 2, 3, 5, 989e12, 3350e9).system()
    assert (system["preferred-dataset-splits"], system["endpoint-delay"], system["roofline-enabled"]) == (3, 5, 1)
    assert (system["peak-perf"], system["local-mem-bw"]) == (989.0, 3350.0)
    for change, message in [
        (lambda: NetworkDimension("Torus", 4, 1), "topology must be one of Ring, FullyConnected, Switch"),
        (lambda: NetworkDimension("Ring", 1, 1), "at least 2, got 1; leave the dimension out"),
        (lambda: NetworkDimension("Ring", 4, 0), "bandwidth must be a number"),
        (lambda: NetworkDimension("Ring", 4, "1 Gb/s"), "bandwidth must be a number"),
        (lambda: NetworkDimension("Ring", 4, 1, -1e-9), "latency must be a number"),
        (lambda: NetworkDimension("Ring", 6, 1, 0, "halvingDoubling"), "needs a power of two of ranks, got 6"),
        (lambda: AstraSystem([NetworkDimension("Ring", 2, 1)] * 5), "1 to 4 dimensions, got 5"),
        (lambda: AstraSystem([NetworkDimension("Ring", 2, 1)], peak=1e12), "make a roofline together"),
        (
            lambda: write_astrasim(job, AstraSystem([NetworkDimension("Ring", 8, 1)])),
            "8 = 8 ranks, and the job in .* 4",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            change()


def program(folder, text):
    path = folder / "sim"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_runs_that_fail(job, work):
    for text, message in [
        (
            "echo Unable to open; exit 3",
            "with 3 when 0 of 4 ranks were done: Unable to open; all of it is in .*log",
        ),
        ("exit 1", "it said nothing"),
        (f"cat {LOG}; exit 1", "ended with 1 when 0 of 4"),  # what it says is not believed
        (f"sed 's/sys.3./sys[2]/; /Wall/d' {LOG}", r"is done again"),
        (f"grep -v 'sys.3' {LOG}", "with 0 when 3 of 4 ranks were done"),
        (f"grep -v 'sys.3' {LOG}; kill -6 $$", "with -6 when 3 of 4 ranks were done"),
        ("exit 0", "with 0 when 0 of 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            run_astrasim(job, program(job, text))
    with pytest.raises(FileNotFoundError, match="no program"):
        run_astrasim(job, job / "none")
    with pytest.raises(FileNotFoundError, match="no network configuration '.*none.yml'"):
        run_astrasim(job, program(job, "exit 1"), files={"network": job / "none.yml"})
    assert run_astrasim(job, program(job, f"cat {LOG}")).seconds == 0.030684017
    ended = run_astrasim(job, program(job, f"cat {LOG}; kill -6 $$"))
    assert ended.seconds == 0.030684017 and "signal 6 after every rank was done" in ended.detail["hint"]
    write_traces(job, data_parallel_traces(work, 4, times=TIMES), schema_file(job), compress=True)
    with pytest.raises(FileNotFoundError, match="rank.0.et, of 4 ranks; ASTRA-sim takes them unpacked: gunzip them"):
        run_astrasim(job, program(job, f"cat {LOG}"))
    write_traces(job, data_parallel_traces(work, 4, times=TIMES, memory=True), schema_file(job))
    with pytest.raises(ValueError, match="have MEM nodes: ASTRA-sim takes them"):
        run_astrasim(job, program(job, f"cat {LOG}"))
    write_traces(job, data_parallel_traces(work, 4), schema_file(job))
    with pytest.raises(ValueError, match="state no durations: state the peak"):
        write_astrasim(job, AstraSystem([NetworkDimension("Ring", 4, 1)]))


def test_the_command_says_which_figure_it_takes(job):
    words = ["traces", "run", str(job), "--program", str(program(job, f"cat {LOG}")), "--out", str(job / "t.csv")]
    done = CliRunner().invoke(build_app(), words)
    assert done.exit_code == 0, done.output
    assert "'finished' of the slowest rank, sys[0]; a cycle is a nanosecond" in done.output and "65.8%" in done.output
    assert (job / "t.csv").read_text() == "design,iteration,seconds,kind\nc-wang-fp8,1,0.030684017,simulated\n"


def test_in_time_to_accuracy(tmp_path):
    rows = [f"{name},1,{i},32,{rate * i}" for name, rate in (("base", 0.1), ("fast", 0.2)) for i in range(5)]
    (tmp_path / "curves.csv").write_text("\n".join(["design,seed,iteration,batch,accuracy", *rows]) + "\n")
    words = ["tta", "--accuracy", tmp_path / "curves.csv", "--timings", f"base={LOG}", "--timings", f"fast={LOG}"]
    done = CliRunner().invoke(build_app(), [*map(str, words), "--target", "0.35", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    found = {entry["design"]: entry for entry in read_results(tmp_path / "out")["variants"][0]["designs"]}
    assert [found[name]["runs"][0]["iterations_to_target"] for name in ("base", "fast")] == [4, 2]
    assert found["base"]["tta"]["median"] == pytest.approx(4 * 0.030684017)


@real
@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("ranks, rate", [(3, 10**7), (4, 10**8), (16, 10**9)])
def test_the_simulator_agrees_with_the_model(work, tmp_path, ranks, rate, overlap):
    exchange = Exchange(LATENCY, overlap=overlap)
    write_traces(tmp_path, data_parallel_traces(work, ranks, times=TIMES, exchange=exchange), schema_file(tmp_path))
    write_astrasim(tmp_path, AstraSystem([NetworkDimension("Ring", ranks, rate, LATENCY)]))
    time = run_astrasim(tmp_path, PROGRAM)
    model = parallel_time(work, TIMES, ranks, rate, exchange).seconds
    # messages are of whole bytes and take whole nanoseconds, both cut off; endpoints and parts of no time take one
    messages = 2 * (ranks - 1) * 2
    assert abs(Fraction(time.detail["cycles"], 10**9) - model) <= messages * (Fraction(8, rate) + Fraction(2, 10**9))
