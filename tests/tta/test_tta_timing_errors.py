"""What each reader of times says of a bad file: the file, the line, the reason; and that nothing else ever happens."""

import gzip
import lzma
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from softnum.tta import gather_timings, read_timings
from softnum.tta.mllog import read_mllog
from tests.support.timing_files import DATA, GOOD

GPU, ACCEL = "gpgpusim/two-iterations.log", "gpgpusim/accel-sim.log"
OLD, RESET = "gem5/old-names.txt", "gem5/reset.txt"
RANGES, SUMS, TRACE, KERNELS = (
    f"nsys/{name}.csv" for name in ("nvtx_pushpop_trace", "nvtx_sum", "cuda_gpu_trace", "gpukernsum")
)
NCU, RAW = "ncu/metrics.csv", "ncu/raw.csv"
KINETO, LOG = "kineto/trace.json", "mlperf-logging/run.log"
FORMAT = {name: format for name, format, _ in GOOD}
SAID = {name: said for name, _, said in GOOD}


def changed(name, *edits):
    """A good file with the first of each text replaced by another; each has to be there."""
    text = (DATA / name).read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def cut(name, at):
    """A good file up to a text, without it."""
    text = (DATA / name).read_text()
    return text[: text.index(at)]


def line_of(text, part):
    return text[: text.index(part)].count("\n") + 1


BAD = [
    # GPGPU-Sim
    (GPU, cut(GPU, "gpu_tot_sim_cycle = 19320"), r"line \d+: the log stops here .* the last finished kernel is "
        r"'_Z4reluPf' \(launch 5\) at line 90; let the simulation run to its end, or take these with --allow"),
    (GPU, cut(GPU, "gpu_sim_cycle"), "the log stops here .*; no kernel had finished"),
    (GPU, changed(GPU, ("freqs: 1200000000.0", "freqs: 120000000000.0")),
        "line 12: a core clock of 1.2e\\+11 Hz, where '-gpgpu_clock_domains' at line 10 is 1.2e\\+09 Hz; one"),
    (GPU, cut(GPU, "kernel_name"), "no kernel_name = ... in 21 lines"),
    (GPU, changed(GPU, ("gpu_sim_cycle = 6000", "gpu_sim_cycle = 6k")),
        "gpu_sim_cycle must be a finite number, got '6k'"),
    (GPU, changed(GPU, ("gpu_sim_cycle = 6000", "gpu_sim_cycle = 6000.5")), "gpu_sim_cycle must be a whole number"),
    (GPU, changed(GPU, ("gpu_sim_cycle = 6000", "gpu_sim_cycle = 0")), "gpu_sim_cycle must be above zero"),
    (GPU, changed(GPU, ("gpu_sim_cycle = 6000", "gpu_sim_cycle = 6001")),
        "gpu_tot_sim_cycle is 6000 where the launches "
        "up to '_Z4gemmPKfS0_Pf' add up to 6001; launches are missing"),
    (GPU, changed(GPU, ("gpu_sim_insn = 64000\n", "")),
        "gpu_tot_sim_cycle of '_Z4reluPf' without gpu_sim_insn before it"),
    (GPU, changed(GPU, ("gpu_tot_sim_insn = 576000\n", "")),
        "begin where those of '_Z4reluPf', line 39, lack gpu_tot_sim_insn"),
    (GPU, changed(GPU, ("kernel_launch_uid = 2 ", "kernel_launch_uid = 1 ")), "launch 1 again, after line"),
    (GPU, changed(GPU, ("gpu_sim_insn = 512000", "gpu_sim_cycle = 1")), "gpu_sim_cycle again for '_Z4gemmPKfS0_Pf'"),
    (GPU, changed(GPU, ("training done",
        "GPGPU-Sim: ** break due to reaching the maximum cycles (or instructions) **")),
        "the simulation was ended at a limit of cycles or instructions; the last finished kernel"),
    (GPU, changed(GPU, ("training done", "GPGPU-Sim uArch: ERROR ** deadlock detected: last writeback core 0")),
        "the simulation ended in a deadlock"),
    (GPU, changed(GPU, ("1200000000.000000:1200000000.000000:1200000000.000000:850", "1200000000.000000:850")),
        "line 12: expected four clocks in Hz"),
    (GPU, changed(GPU, ("freqs: 1200000000.000000", "freqs: 0.000000")), "line 12: the core clock must be above zero"),
    (GPU, changed(GPU, ("kernel_name = _Z4gemm", "kernel = _Z4gemm")),
        "before any kernel_name; the beginning is missing"),
    (GPU, changed(GPU, ("kernel_name = _Z4gemmPKfS0_Pf", "kernel_name = ")), "kernel_name names no kernel"),
    (GPU, (DATA / GPU).read_text() * 2, "kernel_launch|launch 1 again|gpu_tot_sim_cycle is"),
    # gem5
    (OLD, "hello\n", "expected '---------- Begin Simulation Statistics', got 'hello'"),
    (OLD, cut(OLD, "---------- End"), r"line \d+: the file stops in dump 1, begun at line 2: its last statistic is "
        "'system.mem_ctrl.bwTotal::total', and no '---------- End"),
    (RESET, cut(RESET, "0.050500"),
        "the file stops|expected a name and a value, got 'simSeconds .*; dump 3 is damaged"),
    (OLD, cut(OLD, "sim_seconds"), "the file stops in dump 1, begun at line 2: it is empty"),
    (OLD, changed(OLD, ("57467000000 ", "574670x0000 ")),
        "line 4: simTicks must be a finite number, got '574670x0000'"),
    (OLD, changed(OLD, ("57467000000 ", "57467000000.5 ")), "line 4: simTicks must be a whole number"),
    (OLD, changed(OLD, ("sim_ticks", "sim_tocks")), "line 2: dump 1 lacks simTicks"),
    (OLD, changed(OLD, ("0.057467", "0.057567")),
        "line 3: simSeconds is 0.057567 where simTicks / simFreq is 0.057467"),
    (OLD, changed(OLD, ("sim_freq", "sim_ticks")), "line 6: sim_ticks again in one dump, after line 4"),
    (OLD, changed(OLD, ("1000000000000", "0")), "simFreq must be above zero"),
    (OLD, changed(OLD, ("0.057467", "0.0"), ("57467000000 ", "0 ")),
        r"line 2: dump 1 of 1 covers no time \(simTicks 0\)"),
    (RESET, changed(RESET, ("---------- End Simulation Statistics   ----------", "")),
        "dump 1, begun at line 2, has no end"),
    (RESET, changed(RESET, ("---------- Begin Simulation Statistics ----------", "")), "expected '---------- Begin"),
    (RESET, changed(RESET, ("110000000000 ", "100000000000 ")), "neither reset nor continued since the dump before"),
    # Nsight Systems
    (RANGES, "a,b\n1,2\n", "no headings of Nsight Systems; expected a table of nvtx_pushpop_trace"),
    (RANGES, changed(RANGES, ("End (ns)", "Fin (ns)")), "headings of a report that gives no time of iterations"),
    (RANGES, changed(RANGES, ("Duration (ns)", "Duration (weeks)")), "the unit of 'duration .weeks.' is none of ns"),
    (RANGES, (DATA / RANGES).read_text()[:-40], "the file stops here without the end of the line: it is cut off"),
    (RANGES, cut(RANGES, ":step_2,53") + "\n", r"line \d+: 5|line \d+: \d+ cells under 14 headings"),
    (RANGES, cut(RANGES, "1000000,"), "no rows under the headings; nothing was recorded"),
    (RANGES, changed(RANGES, ("1000000,3500000", "1000000,3600000")), "line 4: Duration is not End - Start"),
    (RANGES, changed(RANGES, ("1000000,3500000", "1e6x,3500000")), "line 4: start must be a finite number, got '1e6x'"),
    (RANGES, changed(RANGES, (":step_0,53,53", ":step_0,54,53")), "':step_1' lies on another thread"),
    (RANGES, changed(RANGES, (":step_0", '":step_0')), "not readable as CSV"),
    (SUMS, changed(SUMS, ("8400000,4", "8400000,0")), "line 3: instances must be above zero"),
    (SUMS, changed(SUMS, (":forward", ":step 2")), "2 ranges match --marker 'step' where one has to"),
    (KERNELS, changed(KERNELS, ("90000,3", "-90000,3")), "line 2: total time must be from 0 up"),
    (TRACE, (DATA / TRACE).read_text() * 2, r"line \d+: start must be a finite number, got 'Start"),
    # Nsight Compute
    (NCU, cut(NCU, '"ID"'),
        "no headings of Nsight Compute with times of launches; expected a table made by: ncu --csv"),
    (NCU, changed(NCU, ('"gpu__time_duration.sum","us","11.52"', '"l2","us","11.52"')),
        "line 6: launch 0 of 'gemm.* has no"),
    (NCU, cut(NCU, '"us","11.52"') + "\n", r"line 7: 14 cells under 15 headings; is the file cut off"),
    (NCU, (DATA / NCU).read_text()[:-4], "the file stops here without the end of the line"),
    (NCU, changed(NCU, ('"1","1234"', '"x","1234"')), "line 8: ID must be a whole number, got 'x'"),
    (NCU, cut(NCU, '"0","1234"'), "line 5: no launches under the headings"),
    (RAW, changed(RAW, ('"byte","ns"', '"byte","cycle"')), "the unit of gpu__time_duration.sum must be one of ns"),
    (RAW, changed(RAW, ('"1","1234"', '"0","1234"')), "line 5: launch 0 again"),
    (RAW, re.sub('"",.*\n', "", changed(RAW)), "line 3: no row of units under the headings"),
    # timelines
    (KINETO, cut(KINETO, '"ProfilerStep#3"'), r"line 12: the trace stops here, in the middle, after the "
        r"event 'void gemm<float>\(int\)'"),
    (KINETO, changed(KINETO, ("traceEvents", "events")), "no list of events"),
    (KINETO, '{"traceEvents": []}', "the list of events is empty; was the profiler on"),
    (KINETO, '{"traceEvents": [5]}', "event 1: expected an object with 'ph', got '5'"),
    (KINETO, changed(KINETO, ('"dur": 112202', '"dur": "long"')), "event 4: dur must be a finite number, got 'long'"),
    (KINETO, changed(KINETO, ('"dur": 112202', '"dur": -5')), "event 4: dur must be from 0 up"),
    (KINETO, changed(KINETO, ('"dur": 112202', '"dir": 5')), "event 4: 'ProfilerStep#2' lacks 'dur'"),
    (KINETO, changed(KINETO, ('"dur": 112202', '"dur": 0')), "event 4: 'ProfilerStep#2' takes no time"),
    (KINETO, changed(KINETO, ('"dur": 112202', '"dur": 112999')), "begins before 'ProfilerStep#2', event 4, ends"),
    (KINETO, re.sub("ProfilerStep#", "Step ", changed(KINETO)),
        "no event 'ProfilerStep#n' .* there are 'aten::linear'"),
    (KINETO, '[{"ph": "B", "name": "ProfilerStep#1", "ts": 1}]',
        "event 1: 'ProfilerStep#1' begins and does not end in 1"),
    (KINETO, '[{"ph": "E", "name": "ProfilerStep#1", "ts": 1}]', "event 1: an end without a beginning"),
    (KINETO, '[{"ph": "B", "name": "a", "ts": 1}, {"ph": "E", "name": "ProfilerStep#1", "ts": 2}]',
        "event 2: the end of 'ProfilerStep#1' where 'a', event 1, is to end first"),
    (KINETO, "[" * 100000, "not readable as JSON"),
    # MLPerf
    (LOG, "nothing\n", "line 1: no :::MLLOG line, nor one of older rounds, in 1 lines"),
    (LOG, ":::MLPv0.5.0 resnet 1541543546.0 run_start\n", "line 1: no JSON object after :::MLPv0.5.0"),
    (LOG, ":::MLL 1558420845.819 run_start\n", "line 1: no JSON object after :::MLL "),
    (LOG, changed(LOG) + ":::MLL 1558420845.819 run_stop: {}\n", r"line \d+: an event in the form MLL, where line 1"),
    (LOG, cut(LOG, ':::MLLOG {"namespace": "", "time_ms": 17953709294'),
        r"line \d+: the log stops without run_stop: the "
        r"last event is '\w+'( \(\w+ \d+.*\))? at line \d+ of \d+"),
    (LOG, (DATA / LOG).read_text()[:-30], "line 64: the log stops without run_stop: .* and line 64 is cut off"),
    (LOG, changed(LOG, ('"time_ms": 1', '"time_ms": "1')), "line 1: no JSON object after :::MLLOG"),
    (LOG, re.sub('"time_ms": [0-9]+', '"time_ms": "noon"', changed(LOG), count=1), "line 1: time_ms must be a number"),
    (LOG, changed(LOG, ('"POINT_IN_TIME"', '"POINT"')), "line 1: event_type must be one of INTERVAL_START"),
    (LOG, changed(LOG, ('"key": "seed"', '"kye": "seed"')), "line 4: lacks 'key'; expected namespace, time_ms"),
    (LOG, changed(LOG, ('"key": "seed"', '"key": 5')), "line 4: key must be a name, got 5"),
    (LOG, (DATA / LOG).read_text() * 2, "line 71: a second run_start .the first: line 7.; expected one run"),
    (LOG, changed(LOG, ('"value": 16', '"value": 0')), "line 2: global_batch_size must be above zero"),
    (LOG, changed(LOG, ('"key": "seed", "value": 1', '"key": "train_samples", "value": 1')),
        "line 4: train_samples is 1, "
        "where line 3 gives 4800"),
    (LOG, changed(LOG, ("block_stop", "blockstop")),
        r"line 8: block_start without block_stop after it, and another block_start follows, at line \d+"),
    (LOG, changed(LOG, ("block_start", "blockstart")), "line 11: block_stop without block_start before it"),
    (LOG, changed(LOG, ('"epoch_count": 1', '"epoch_count": 1000')),
        "line 8: block_start has first_epoch_num 1 and epoch_count 1000, and the next block, at line 15, has"),
    (LOG, changed(LOG).replace('"epoch_count": 1', '"epoch_count": 1000'),
        "line 8: block_start has first_epoch_num 1 and epoch_count 1000, and the next block, at line 15, has"),
    (LOG, re.sub(".*(block|epoch|eval)_.*\n", "", changed(LOG)),
        r"line \d+: no block_start or epoch_start, and no evaluation in the log"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[f"{FORMAT[n]}-{m[:40]}" for n, _, m in BAD])
def test_a_bad_file_is_told_by_file_line_and_reason(name, text, message, tmp_path):
    path = tmp_path / f"bad{Path(name).suffix}"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_timings(path, format=FORMAT[name], **SAID[name])
    assert str(error.value).startswith((f"{path}, line ", f"{path}, event ", f"{path}: "))


@pytest.mark.parametrize("name", [name for name, _, _ in GOOD])
def test_what_is_empty_or_not_text(name, tmp_path):
    path, options = tmp_path / "bad", {"format": FORMAT[name], **SAID[name]}
    for content, said in ((b"", "empty; write"), (b" \r\n\n", "empty but for 4 blanks and line ends; write")):
        path.write_bytes(content)
        for how in (options, {}):
            with pytest.raises(ValueError, match=rf"^{re.escape(str(path))}: the file is {said} or copy it again$"):
                read_timings(path, **how)
    data = (DATA / name).read_bytes()
    path.write_bytes(data.replace(b"\n", b"\n\xff\xfe", 1) if b"\n" in data else b"\n\xff" + data)
    if FORMAT[name] == "mllog":  # other programs write between its lines; in one of its own it is an error
        path.write_bytes(data.replace(b"\n", b'\n:::MLLOG {"key": "a", "value": "\xff"}\n', 1))
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 2: not UTF-8 text .*; save it as UTF-8"):
        read_timings(path, **options)
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    for content, said in (
        (b"\x1f\x8b" + data, "the gzip file is damaged or cut off"),
        (gzip.compress(text)[:60], "the gzip file is damaged or cut off"),
        (text.decode().encode("utf-16"), r"line 1: not UTF-8 text \(UTF-16 or UTF-32\); save it as UTF-8"),
        (text.decode().encode("utf-16-be"), r"line 1: not UTF-8 text \(UTF-16 or UTF-32\); save it as UTF-8"),
        (bytes(4096), "nothing but 4096 bytes of zeros"),
        (lzma.compress(text, preset=0), r"not text, but compressed by xz; unpack it \(xz -d\)"),
        (text + bytes(9), r"line \d+: 9 bytes of zeros, the first at byte \d+, as no text has"),
    ):
        path.write_bytes(content)
        if FORMAT[name] != "mllog" or content[:8] != text[:8]:
            with pytest.raises(ValueError, match=said):
                read_timings(path, **options)


def test_a_folder_without_logs_or_of_several_kinds(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="the folder '.*runs' has no files in it"):
        gather_timings([folder])
    (folder / "times.csv").write_text("design,iteration,seconds\na,1,0.5\n")
    with pytest.raises(FileNotFoundError, match=r"no MLPerf log .*, but times.csv \(csv\); name the files: NAME=FILE"):
        gather_timings([folder])
    (folder / "run.log").write_text((DATA / LOG).read_text())
    with pytest.raises(ValueError, match="holds the MLPerf log run.log, and times.csv, which is csv: a folder is of"):
        gather_timings([folder])
    (folder / "times.csv").write_text("what was run, and where\n")
    assert list(gather_timings([folder])) == ["runs"]


def test_a_file_that_may_be_two_things_asks(tmp_path):
    path = tmp_path / "both.log"
    path.write_text((DATA / GPU).read_text() + (DATA / LOG).read_text())
    with pytest.raises(ValueError, match="may have any of the formats gpgpusim, mllog; state one with --format"):
        read_timings(path)


def test_a_long_log(tmp_path):
    head, block, _ = re.split("(GPGPU-Sim PTX: pushing.*?Inter)", (DATA / GPU).read_text(), maxsplit=1, flags=re.DOTALL)
    parts, cycles, instructions = [head], 0, 0
    for launch in range(1, 10001):
        cycles, instructions = cycles + 6000, instructions + 512000
        text = block.replace("kernel_launch_uid = 1 ", f"kernel_launch_uid = {launch} ")
        text = text.replace("gpu_tot_sim_cycle = 6000", f"gpu_tot_sim_cycle = {cycles}")
        parts.append(text.replace("gpu_tot_sim_insn = 512000", f"gpu_tot_sim_insn = {instructions}") + "\n" * 10)
    path = tmp_path / "long.log"
    path.write_text("".join(parts) + "\nGPGPU-Sim: *** exit detected ***\n")
    assert path.read_text().count("\n") > 250_000
    time = read_timings(path, iterations=10_000)["long"]
    assert (time.iterations, time.seconds, time.interval) == (10_000, 5e-6, (5e-6, 5e-6))


BITS = st.sampled_from(
    ['"', ",", "\n", " ", "0", "9" * 40, "e999", "-", "nan", "{", "}", "[", "\x00", "é", ":::MLLOG ", "= "]
)
EDITS = st.lists(
    st.tuples(st.sampled_from(["cut", "drop", "insert", "twice"]), st.floats(0, 1), st.floats(0, 0.05), BITS),
    min_size=1,
    max_size=3,
)


@given(st.sampled_from(GOOD), EDITS, st.booleans(), st.sampled_from(["auto", "none", 1]))
@example(GOOD[0], [("cut", 0.9, 0, "")], True, "auto")
@example(("ncu/metrics.csv", "ncu", {}), [("insert", 0.12890625, 0, '"')], False, "auto")  # a heading is lost
@example(("mlperf-logging/run.log", "mllog", {}), [("insert", 0.9875975699516999, 0, ",")], False, "auto")  # run_stop
@settings(max_examples=700, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_files_are_read_or_refused_and_nothing_else(good, edits, told, warmup):
    name, format, said = good
    text = (DATA / name).read_text()
    for kind, start, length, bit in edits:
        at = int(start * len(text))
        end = at + int(length * len(text))
        if kind == "cut":
            text = text[:at]
        elif kind == "drop":
            text = text[:at] + text[end:]
        elif kind == "insert":
            text = text[:at] + bit + text[at:]
        else:
            text = text[:end] + text[at:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mutated")
        path.write_text(text, newline="")
        try:
            for time in read_timings(path, format=format if told else None, warmup=warmup, **said).values():
                assert 0 < time.seconds < float("inf")
        except ValueError as error:
            assert str(path) in str(error)


@given(st.text(alphabet=st.sampled_from(list(':MLOG{}"\n ,0179.eakytims_vulnd')), max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_is_an_mlperf_log_or_refused(text):
    try:
        log = read_mllog("a.log", text=f":::MLLOG {text}")
    except ValueError as error:
        assert str(error).startswith("a.log, line ")
    else:
        assert log.events
