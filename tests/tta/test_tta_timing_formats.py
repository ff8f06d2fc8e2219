"""What each reader of times finds in a good file. Where the files are from is said in tests/tta/data/README.md."""

import gzip
import json
import re
import shutil

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import gather_timings, read_timings
from softnum.tta.mllog import read_mllog
from softnum.tta.timings import FORMATS
from softnum.tta.timings.kernels import shortest_period
from tests.support.timing_files import DATA, GOOD


def read(name, **options):
    (time,) = read_timings(DATA / name, design="d", **options).values()
    return time


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.mark.parametrize(("name", "format", "said"), GOOD)
def test_the_format_is_told_from_the_contents(name, format, said, tmp_path):
    text = (DATA / name).read_text()
    assert [entry.name for entry in FORMATS.values() if entry.knows(text)] == [format]
    assert read(name, **said) == read(name, format=format, **said)
    other = tmp_path / "file.of.unknown.ending"
    shutil.copy(DATA / name, other)
    assert read_timings(other, **said)["file.of.unknown"].seconds == read(name, **said).seconds


@pytest.mark.parametrize(("name", "format", "said"), GOOD)
def test_gzip_and_line_ends_change_nothing(name, format, said, tmp_path):
    data = (DATA / name).read_bytes()
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b").write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    seconds = read(name, **said).seconds
    assert read_timings(tmp_path / "a.gz", **said)["a"].seconds == seconds
    assert read_timings(tmp_path / "b", **said)["b"].seconds == seconds


def test_every_format_but_the_plain_ones_and_reports_has_a_good_file():
    assert {format for _, format, _ in GOOD} >= set(FORMATS) - {"csv", "json", "scalesim", "zigzag"}


# -- GPGPU-Sim ---------------------------------------------------------------------------------------------------------
def test_gpgpusim_iterations_by_repetition():
    time = read("gpgpusim/two-iterations.log")
    first, second = 6000 + 1200 + 2400, 6120 + 1200 + 2400
    assert time.samples == (first / 1.2e9, second / 1.2e9) and time.kind == "simulated"
    assert time.detail["iterations"].startswith("2 iterations of 3 launches each, the shortest part that repeats")
    assert time.detail["cycles"] == first + second and time.detail["clock_hz"] == 1.2e9
    assert [row["launches"] for row in time.detail["kernels"]] == [2, 2, 2]


def test_gpgpusim_iterations_as_stated_or_by_a_marker():
    whole = read("gpgpusim/two-iterations.log", iterations=1)
    assert whole.samples == ((6000 + 6120 + 2 * 3600) / 1.2e9,)
    marked = read("gpgpusim/two-iterations.log", marker="relu")
    assert marked.samples == ((1200 + 2400 + 6120) / 1.2e9, (1200 + 2400) / 1.2e9)
    said = marked.detail["iterations"]
    assert "1 launch before the first left out; they have from 2 to 3 launches, the last 2: make sure" in said
    assert "launches" not in read("gpgpusim/two-iterations.log", marker="gemm").detail["iterations"]


def test_accel_sim_with_kernels_at_once():
    time = read("gpgpusim/accel-sim.log")
    assert time.seconds == 16980 / 1.132e9 and time.interval is None
    assert [row["kernel"] for row in time.detail["kernels"]] == ["_Z4gemmPKfS0_Pf", "_Z4reluPf _Z4copyPf"]


def test_kernels_that_are_whole_count_without_the_exit_line(tmp_path):
    text = (DATA / "gpgpusim/two-iterations.log").read_text()
    path = tmp_path / "a.log"
    path.write_text(text.replace("GPGPU-Sim: *** exit detected ***", "Press ENTER to exit..."))
    time = read_timings(path)["a"]
    assert time.samples == read("gpgpusim/two-iterations.log").samples
    assert "; warning: the log stops at line 122 without" in time.detail["iterations"]


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("pushing kernel '_Z4reluPf' to stream 0", 6000),  # launched, and no statistics
        ("gpu_sim_insn = 96000", 7200),  # inside its statistics
        ("gpu_tot_sim_insn = 576000", None),  # whole
    ],
)
def test_a_log_that_stops_inside_a_kernel(tmp_path, after, seconds):
    text = (DATA / "gpgpusim/two-iterations.log").read_text()
    path = tmp_path / "a.log"
    path.write_text(text.partition(after)[0] + after + "\n")
    if seconds is None:
        assert read_timings(path)["a"].samples == (7200 / 1.2e9,)
        return
    with pytest.raises(ValueError, match=r"the log stops here without .*, inside the .* take these with --allow-unfin"):
        read_timings(path)
    time = read_timings(path, allow_unfinished=True)["a"]
    assert time.samples == (seconds / 1.2e9,) and "which is left out" in time.detail["iterations"]
    ended = text.replace("training done", "GPGPU-Sim uArch: ERROR ** deadlock detected: last writeback core 0")
    path.write_text(ended)
    assert len(read_timings(path, allow_unfinished=True)["a"].samples) == 2


def test_launches_of_one_kernel_alike_are_not_guessed_at(tmp_path):
    text = (DATA / "gpgpusim/two-iterations.log").read_text()
    text = re.sub("_Z4reluPf|_Z6updatePfPKff", "_Z4gemmPKfS0_Pf", text)
    for old, new in (("512000", "64000"), ("96000", "64000")):
        text = text.replace(f"gpu_sim_insn = {old}", f"gpu_sim_insn = {new}")
    totals = iter(range(64000, 7 * 64000, 64000))
    text = re.sub(r"gpu_tot_sim_insn = \d+", lambda _: f"gpu_tot_sim_insn = {next(totals)}", text)
    path = tmp_path / "alike.log"
    path.write_text(text)
    with pytest.raises(ValueError, match="6 launches of one kernel, '_Z4gemmPKfS0_Pf', alike; .* --iterations"):
        read_timings(path)
    assert read_timings(path, iterations=6)["alike"].iterations == 6


def test_a_log_without_clocks_takes_one(tmp_path):
    text = (DATA / "gpgpusim/two-iterations.log").read_text().replace("GPGPU-Sim uArch: clock freqs", "x")
    (tmp_path / "a.log").write_text(text)
    with pytest.raises(ValueError, match='no line .*or state the core clock: --clock "1417 MHz"'):
        read_timings(tmp_path / "a.log")
    assert read_timings(tmp_path / "a.log", clock="1.2 GHz")["a"].samples[0] == 9600 / 1.2e9
    with pytest.raises(
        ValueError, match=r"--clock says 2.4e\+09 Hz, where '-gpgpu_clock_domains' at line 10 is 1.2e\+09"
    ):
        read_timings(tmp_path / "a.log", clock="2.4 GHz")
    (tmp_path / "a.log").write_text(re.sub("GPGPU-Sim uArch: clock periods|-gpgpu_clock_domains", "x", text))
    assert read_timings(tmp_path / "a.log", clock="2.4 GHz")["a"].samples[0] == 9600 / 2.4e9
    with pytest.raises(ValueError, match=r"core clock of 1\.2e\+09 Hz where --clock says 1e\+09 Hz"):
        read("gpgpusim/two-iterations.log", clock="1 GHz")


@pytest.mark.parametrize(("text", "period"), [("", 0), ("a", 1), ("aaaa", 1), ("abab", 2), ("ababa", 5), ("aabaab", 3)])
def test_the_shortest_period(text, period):
    assert shortest_period(text) == period


# -- gem5 --------------------------------------------------------------------------------------------------------------
def test_gem5_old_names():
    time = read("gem5/old-names.txt")
    assert time.seconds == 0.057467 and time.kind == "simulated"
    assert time.detail["cpu_cycles"] == [{"system.cpu.numCycles": 57467000}]


def test_gem5_dumps_after_resets_and_cumulative_are_the_same_iterations():
    reset, cumulative = read("gem5/reset.txt"), read("gem5/cumulative.txt")
    assert reset.samples == cumulative.samples == (0.06, 0.05, 0.0505)
    assert (reset.detail["dumps_after_a_reset"], cumulative.detail["dumps_after_a_reset"]) == (2, 0)


def test_gem5_the_dump_at_exit_can_be_left_out():
    time = read("gem5/reset.txt", iterations=2)
    assert time.samples == (0.06, 0.05)
    assert time.detail["iterations"] == (
        "each of the first 2 dumps is an iteration; the last, at gem5's exit, is left out"
    )
    assert read("gem5/reset.txt", iterations=6).samples == (0.03, 0.025, 0.02525)
    assert read("gem5/reset.txt", iterations=1).seconds == 0.1605
    with pytest.raises(ValueError, match="3 dumps cannot be 5 iterations"):
        read("gem5/reset.txt", iterations=5)


# -- Nsight ------------------------------------------------------------------------------------------------------------
def test_nsys_ranges():
    time = read("nsys/nvtx_pushpop_trace.csv", marker="step")
    assert time.samples == (2.5e-3, 2.001e-3, 2.002e-3, 2.003e-3) and time.kind == "measured"
    with pytest.raises(ValueError, match=r"2 kinds of ranges \(':step_#', ':forward'\); say which are iterations"):
        read("nsys/nvtx_pushpop_trace.csv")
    with pytest.raises(ValueError, match=r"line 5: ':forward' begins before ':step_0', line 4, ends"):
        read("nsys/nvtx_pushpop_trace.csv", marker="step|forward")


def test_nsys_a_time_unit_is_read_from_the_headings(tmp_path):
    text = (DATA / "nsys/nvtx_sum.csv").read_text().replace("(ns)", "(ms)").replace("8400000,4", "8.4,4")
    (tmp_path / "a.csv").write_text(text)
    time = read_timings(tmp_path / "a.csv", marker="step")["a"]
    assert (time.seconds, time.iterations, time.samples) == (2.1e-3, 4, ())


def test_nsys_gpu_trace_from_start_to_start():
    time = read("nsys/cuda_gpu_trace.csv")
    assert time.samples == (50e-6, 51e-6)
    assert "the last iteration, after which none begins, is left out" in time.detail["time"]
    assert read("nsys/cuda_gpu_trace.csv", iterations=1).seconds == (101_000 + 33_000 + 8_000) / 1e9


def test_nsys_sums_need_the_number_of_iterations():
    assert read("nsys/gpukernsum.csv", iterations=3).seconds == 38e-6
    with pytest.raises(ValueError, match="sums over the whole recording; state how many iterations"):
        read("nsys/gpukernsum.csv")
    with pytest.raises(ValueError, match="line 2: 3 launches of 'void gemm.* are not the same number in each of 2"):
        read("nsys/gpukernsum.csv", iterations=2)


def test_ncu():
    time = read("ncu/metrics.csv")
    assert time.samples == (16.8e-6, 16.9e-6) and "3 launches each" in time.detail["iterations"]
    assert read("ncu/raw.csv").seconds == 14.72e-6


@pytest.mark.parametrize(
    ("value", "unit", "message"),
    [
        ("11,52", "us", r"must be a number like 1,234\.5, got '11,52'; run ncu again with LC_ALL=C"),
        ("1.117,34", "us", "run ncu again with LC_ALL=C"),
        ("11.520", "ns", "may be thousands of nanoseconds .* LC_ALL=C"),
        ("n/a", "us", "must be a number"),
        ("0", "us", "must be above zero"),
        ("1", "cycle", "the unit of gpu__time_duration.sum must be one of ns"),
    ],
)
def test_ncu_numbers_of_other_locales_are_not_guessed_at(value, unit, message, tmp_path):
    text = (DATA / "ncu/metrics.csv").read_text().replace('"us","11.52"', f'"{unit}","{value}"', 1)
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.csv, line 7: .*{message}"):
        read_timings(tmp_path / "a.csv")


def test_ncu_details_page(tmp_path):
    """A row for each metric, and of rules; rows of metrics leave out the last cells."""
    names = (
        "ID Process_ID Process_Name Host_Name Kernel_Name Context Stream Block_Size Grid_Size Device CC Section_Name "
        "Metric_Name Metric_Unit Metric_Value Rule_Name Rule_Type Rule_Description"
    )
    launch = '"0","9","app","host","gemm(int *)","1","7","(256, 1, 1)","(128, 1, 1)","0","7.5","GPU Speed Of Light"'
    (tmp_path / "a.csv").write_text(
        ",".join('"' + name.replace("_", " ") + '"' for name in names.split()) + "\n"
        f'{launch},"SM Frequency","Ghz","1.41"\n{launch},"Duration","us","1,204.16"\n'
        f'{launch},"","","","SOLBottleneck","OPT","kernel is small, ""very"" small"\n'
    )
    assert read_timings(tmp_path / "a.csv")["a"].seconds == 1204.16e-6


# -- timelines ---------------------------------------------------------------------------------------------------------
def test_kineto_steps_are_counted_once():
    assert read("kineto/trace.json").samples == (0.112202, 0.112302, 0.112402)


def test_viztracer_as_captured():
    time = read("viztracer/trace.json", marker="^iteration", warmup="none")
    events = json.loads((DATA / "viztracer/trace.json").read_text())["traceEvents"]
    durations = [event["dur"] / 1e6 for event in events if event["name"].startswith("iteration")]
    assert len(durations) == 24 and time.samples == pytest.approx(durations, rel=1e-12)
    assert read("viztracer/trace.json", marker="^iteration").dropped % 5 == 0


def test_pairs_of_begin_and_end(tmp_path):
    events = [
        {"ph": "B", "name": "step", "pid": 1, "tid": 1, "ts": 10},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 11},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 12},
        {"ph": "E", "name": "step", "pid": 1, "tid": 1, "ts": 1669329643132548.25},
    ]
    (tmp_path / "a.json").write_text(json.dumps(events))
    assert read_timings(tmp_path / "a.json", marker="step")["a"].seconds == pytest.approx(1669329643.13253825)


def test_steps_of_two_ranks_are_not_mixed(tmp_path):
    events = [{"ph": "X", "name": "ProfilerStep#1", "pid": rank, "tid": 1, "ts": 5 * rank, "dur": 1} for rank in (1, 2)]
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events}))
    with pytest.raises(ValueError, match="event 2: 'ProfilerStep#1' lies on another thread or process"):
        read_timings(tmp_path / "a.json")


# -- MLPerf ------------------------------------------------------------------------------------------------------------
def test_mllog_as_captured():
    time = read("mlperf-logging/run.log")
    log = read_mllog(DATA / "mlperf-logging/run.log")
    assert log.finished and log.status == "success" and len(log.of("eval_accuracy")) == 8
    blocks = zip(log.of("block_start"), log.of("block_stop"), strict=True)
    expected = [(stop.time_ms - start.time_ms) / 1000 / 300 for start, stop in blocks]
    assert time.samples == pytest.approx(expected, rel=1e-12) and time.iterations == 2400
    assert time.detail["iterations"] == (
        "2400 iterations in 8 stretches of training; epochs of train_samples 4800 over global_batch_size 16"
    )
    assert read("mlperf-logging/run.log", iterations=800).seconds == pytest.approx(3 * time.seconds)


def mllog(*events):
    return "".join(
        f":::MLLOG {json.dumps(dict(time_ms=time, event_type='POINT_IN_TIME', key=key, value=value, metadata=data))}\n"
        for time, key, value, data in events
    )


def test_mllog_samples_counts_and_evaluations_inside(tmp_path):
    (tmp_path / "a.log").write_text(
        mllog(
            (0, "global_batch_size", 10, {}),
            (1000, "block_start", None, {"samples_count": 0}),
            (3000, "eval_start", None, {}),
            (4000, "eval_stop", None, {}),
            (6000, "block_stop", None, {"samples_count": 100}),
            (7000, "run_stop", None, {"status": "aborted"}),
        )
    )
    time = read_timings(tmp_path / "a.log")["a"]
    assert (time.seconds, time.iterations, time.detail["status"]) == (0.4, 10, "aborted")
    assert time.detail["time"] == "block_start to block_stop, less the evaluations inside 1 of them"


def test_mllog_throughputs_where_there_is_nothing_else(tmp_path):
    stats = [(at, "tracked_stats", {"throughput": 40.0 * at}, {"step": at}) for at in (1, 2)]
    (tmp_path / "a.log").write_text(mllog((0, "global_batch_size", 10, {}), *stats, (9, "run_stop", None, {})))
    assert read_timings(tmp_path / "a.log")["a"].samples == (0.25, 0.125)


# -- results of simulators that softnum runs itself; their own tests have captured files -------------------------------
def test_zigzag_and_scalesim_results(tmp_path):
    (tmp_path / "zz.json").write_text('{"energy": 2500000.0, "latency": 3135.0}')
    time = read_timings(tmp_path / "zz.json", clock="1 GHz")["zz"]
    assert (time.seconds, time.joules, time.kind) == (3.135e-6, 2.5e-6, "simulated")
    head = "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\n"
    (tmp_path / "ss.csv").write_text(head + "0, 1000, 0, 50.0, 100.0, 50.0,\n1, 500, 5, 50.0, 100.0, 50.0,\n")
    time = read_timings(tmp_path / "ss.csv", clock="1 GHz")["ss"]
    assert (time.seconds, time.detail["stall_cycles"]) == (1.5e-6, 5)
    assert time.detail["column"].startswith("'Total Cycles', 1500 in all; of the array alone")
    head3 = head.replace("LayerID, ", "LayerID, Total Cycles (incl. prefetch), ")
    (tmp_path / "v3.csv").write_text(
        head3 + "0, 1100, 1000, 0, 50.0, 100.0, 50.0,\n1, 520, 500, 5, 50.0, 100.0, 50.0,\n"
    )
    assert read_timings(tmp_path / "v3.csv", clock="1 GHz")["v3"].detail["column"] == (
        "'Total Cycles (incl. prefetch)', 1620 in all; 'Total Cycles', all that SCALE-Sim 2 gives, would be 1500"
    )
    shown = softnum("timings", tmp_path / "v3.csv", "--clock", "1 GHz").stdout
    assert "Column: 'Total Cycles (incl. prefetch)', 1620 in all" in shown
    for name in ("zz.json", "ss.csv"):
        with pytest.raises(ValueError, match=r'counts cycles and states no clock; .*--clock "1 GHz"'):
            read_timings(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    ['{"energy": "x", "latency": 1}', '{"energy": 1, "latency": 0}', '{"energy": 1, "latency":', '{"energy": 1}'],
)
def test_bad_zigzag_results(text, tmp_path):
    path = tmp_path / "zz.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_timings(path, format="zigzag", clock="1 GHz")


# -- the command -------------------------------------------------------------------------------------------------------
def test_the_command_prints_and_writes_times(tmp_path):
    out = tmp_path / "times.csv"
    files = [f"a={DATA / 'gem5/reset.txt'}", f"b={DATA / 'gpgpusim/accel-sim.log'}"]
    result = softnum("timings", *files, "--warmup", "none", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"a +3 +0 +53\.5 ms +40 to 67 ms +simulated +gem5", result.stdout)
    assert "Iterations (a): each of 3 dumps is an iteration" in result.stdout
    assert out.read_text() == (
        "design,iteration,seconds,kind\na,1,0.06,simulated\na,2,0.05,simulated\na,3,0.0505,simulated\n"
        "b,1,1.5e-05,simulated\n"
    )
    times = gather_timings([out])
    assert {name: (time.seconds, time.kind) for name, time in times.items()} == {
        "a": (0.0535, "simulated"),
        "b": (1.5e-05, "simulated"),
    }


def test_the_command_says_how_what_it_wrote_is_read_back(tmp_path):
    out, file = tmp_path / "times.csv", f"a={DATA / 'gem5/reset.txt'}"
    assert softnum("timings", file, "--out", out).stdout.endswith(f"Written: {out}\n")
    said = softnum("timings", file, "--warmup", 1, "--out", out).stdout
    assert "for the same times read it with --warmup 1, in softnum tta --timings-warmup" in said
    time = read_timings(DATA / "gem5/reset.txt", warmup=1, design="a")["a"]
    assert gather_timings([out], warmup=1)["a"].samples == time.samples != gather_timings([out])["a"].samples
    # blocks of several iterations each: rows of the file, not iterations
    log = f"a={DATA / 'mlperf-logging/run.log'}"
    whole = read_timings(DATA / "mlperf-logging/run.log", design="a")["a"]
    each = whole.detail["iterations_per_sample"]
    said = softnum("timings", log, "--warmup", each, "--out", out).stdout
    assert "read it with --warmup 1," in said and each > 1
    assert gather_timings([out], warmup=1)["a"].samples == whole.samples[1:]


def test_the_command_lists_formats():
    result = softnum("timings", "--formats")
    assert result.exit_code == 0
    for entry in FORMATS.values():
        assert f"{entry.name}\n    {entry.description}\n    layout: {entry.source}\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a file, as in: softnum timings base=run.log"),
        (("none.log",), "no timing file 'none.log'"),
        ((DATA / "gem5/reset.txt", "--format", "gem6"), "unknown format 'gem6'; did you mean 'gem5'?"),
        ((DATA / "gem5/reset.txt", "--marker", "x"), "--marker is not for the format gem5, only for gpgpusim, nsys"),
        ((DATA / "gem5/reset.txt", "--iterations", "0"), "iterations must be a whole number of at least 1, got 0"),
        ((DATA / "ncu/raw.csv", "--marker", "("), "marker '(' is not a regular expression"),
        ((DATA / "ncu/raw.csv", "--warmup", "some"), "warmup must be none, auto, or a number"),
        (("a", "b", "--design", "x"), "--design names the design of one file, and there are 2"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, message):
    result = softnum("timings", *arguments)
    assert result.exit_code == 2 and message in result.stderr


def test_a_study_takes_a_file_for_each_design(tmp_path):
    files = {"a-float32": "gem5/old-names.txt", "c-wang-fp8": "gpgpusim/accel-sim.log"}
    options = [part for name, file in files.items() for part in ("--timings", f"{name}={DATA / file}")]
    result = softnum(
        "tta", "--designs", ",".join(files), "--seeds", "1", "--epochs", "1", "--target", "0.1", "--out", tmp_path,
        "--jobs", "1", *options,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    (variant,) = json.loads((tmp_path / "results.json").read_text())["variants"]
    assert [design["time"]["seconds"] for design in variant["designs"]] == [0.057467, 1.5e-05]
    assert "iterations of a-float32: one dump, one iteration" in variant["assumptions"]
