"""Files of TensorFlow, Timeloop, MAESTRO and others: what is read, what contradicts itself, what is told by name."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from softnum.tta import read_timings
from tests.support.timing_files import DATA

REAL = os.environ.get("SOFTNUM_REAL_FILES")
real_files = pytest.mark.skipif(REAL is None, reason="SOFTNUM_REAL_FILES names no folder of real files")


def read(path, text=None, **options):
    if text is not None:
        path.write_text(text)
    (time,) = read_timings(path, design="d", **options).values()
    return time


def real(folder, *parts):
    """The files of a folder of real ones whose names have one of the parts, with their text."""
    found = [file for file in sorted(Path(REAL, folder).iterdir()) if any(part in file.name.lower() for part in parts)]
    assert found, folder
    return [(file, gzip.decompress(file.read_bytes()).decode()) for file in found if file.suffix == ".gz"]


# -- TensorFlow's timelines --------------------------------------------------------------------------------------------
MERGED = DATA / "tensorflow/merged.json"


def step(number=1, keep=lambda event: True):
    """One of the three runs in the merged file."""
    events = json.loads(MERGED.read_text())["traceEvents"]
    starts = [at for at, event in enumerate(events) if event.get("args", {}).get("name") == "_SOURCE"][::2]
    bounds = [*starts, len(events)]
    own = events[: starts[0]] + events[bounds[number - 1] : bounds[number]]
    return json.dumps({"traceEvents": [event for event in own if keep(event)]})


def test_a_timeline_is_one_step(tmp_path):
    for number, micros in ((1, 1020), (2, 520), (3, 540)):
        time = read(tmp_path / "a.json", step(number))
        assert time.samples == (micros / 1e6,) and time.kind == "measured"
        assert time.detail["iterations"] == "the file is one step, of one Session.run"
        assert read(tmp_path / "a.json", iterations=1) == time


def test_merged_runs_are_told_apart():
    time = read(MERGED, iterations=3)
    assert time.samples == (0.00102, 0.00052, 0.00054)
    assert "3 merged steps, as stated" in time.detail["iterations"]


def test_merged_runs_whose_processes_have_other_numbers(tmp_path):
    data = json.loads(MERGED.read_text())
    second = [at for at, event in enumerate(data["traceEvents"]) if event.get("args", {}).get("name") == "_SOURCE"][2]
    for event in data["traceEvents"][second:]:
        event["pid"] += 2
    assert read(tmp_path / "a.json", json.dumps(data), iterations=3).samples == (0.00102, 0.00052, 0.00054)


def test_merged_runs_without_the_source_node(tmp_path):
    data = json.loads(MERGED.read_text())
    data["traceEvents"] = [event for event in data["traceEvents"] if event.get("args", {}).get("name") != "_SOURCE"]
    assert read(tmp_path / "a.json", json.dumps(data), iterations=3).samples == (0.00101, 0.00051, 0.00053)
    data["traceEvents"] = [event for event in data["traceEvents"] if event.get("args", {}).get("name") != "init/once"]
    with pytest.raises(ValueError, match=r"event \d+: without --iterations a file is one step, but 0 of 5 nodes"):
        read(tmp_path / "a.json", json.dumps(data))


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (None, "without --iterations a file is one step, but "),
        (1, "--iterations says 1, but "),
        (2, r"--iterations says 2, but 0 of 7 nodes .*, and 4 run 6 times, such as '_SOURCE'; .* runs 6 times; state"),
        (6, "'_SOURCE' of step 2 begins before "),
    ],
)
def test_another_number_of_merged_runs_contradicts_the_file(stated, said):
    with pytest.raises(ValueError, match=rf"merged.json, event \d+: {said}"):
        read(MERGED, iterations=stated)


def test_what_is_wrong_with_a_timeline(tmp_path):
    def changed(change, **options):
        data = json.loads(MERGED.read_text())
        change(data["traceEvents"])
        return read(tmp_path / "a.json", json.dumps(data), **options)

    with pytest.raises(ValueError, match="event 22: 'input' of step 2 begins before 'input' of step 1, event 10,"):
        changed(lambda events: next(e for e in events if e.get("dur") == 20).update(dur=4000, tid=7), iterations=3)
    with pytest.raises(
        ValueError, match=r"event 10: 'input' takes 0.004 s, and '_SOURCE', event 20, begins and ends mea"
    ):
        changed(lambda events: next(e for e in events if e.get("dur") == 20).update(dur=4000), iterations=3)
    with pytest.raises(
        ValueError, match=r"event 13: step 1 takes 900000 s, over a day, from the beginning of '_SOURCE'"
    ):
        late = json.loads(step())["traceEvents"]
        next(e for e in late if e.get("dur") == 900).update(dur=900e9, tid=7)
        read(tmp_path / "a.json", json.dumps({"traceEvents": late}))
    with pytest.raises(
        ValueError, match=r"event 8: ts 1.49\d+e\+24 of 'NoOp' is later than the year 2200 in microseconds"
    ):
        changed(lambda events: events[7].update(ts=events[7]["ts"] * 1e9), iterations=3)
    with pytest.raises(ValueError, match=r"event 8: 'NoOp' lacks 'dur'"):
        changed(lambda events: events[7].pop("dur"), iterations=3)
    with pytest.raises(ValueError, match=r"event 8: the operation 'NoOp' lacks the node's name in 'args'"):
        changed(lambda events: events[7].pop("args"), iterations=3)
    with pytest.raises(ValueError, match=r"no operation among \d+ events; run with RunOptions"):
        read(tmp_path / "a.json", step(keep=lambda event: event["ph"] != "X"))
    with pytest.raises(ValueError, match=r"line 13: not JSON .*, after the event 'MatMul'; write it again"):
        read(tmp_path / "a.json", MERGED.read_text()[:1500], format="tensorflow")
    with pytest.raises(ValueError, match=r"step 1 takes no time"):
        begun = step(keep=lambda event: event["ph"] != "X" or event["ts"] == 1490280136316500)
        read(tmp_path / "a.json", begun.replace('"dur": 6', '"dur": 0'))
    with pytest.raises(ValueError, match="--marker is not for the format tensorflow"):
        read(MERGED, marker="x")


@real_files
def test_real_timelines():
    for file, text in real("timeline", ".json"):
        ops = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X" and event.get("cat") == "Op"]
        span = (max(op["ts"] + op["dur"] for op in ops) - min(op["ts"] for op in ops)) / 1e6
        merged = re.search(r"merged_(\d+)", file.name)
        time = read(file, iterations=int(merged[1]) if merged else None)
        if merged:
            assert len(time.samples) == int(merged[1]) and 0 < sum(time.samples) < span
            with pytest.raises(ValueError, match="without --iterations a file is one step"):
                read(file)
        else:
            assert time.samples == (pytest.approx(span, rel=1e-12),)


# -- Timeloop ----------------------------------------------------------------------------------------------------------
LAYER, XML = DATA / "timeloop/layer.stats.txt", DATA / "timeloop/layer.map+stats.xml"


def edited(file, *edits):
    """A file's text with the first of each text replaced by another; each has to be there."""
    text = file.read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_timeloop_cycles_and_energy():
    time = read(LAYER, clock="500 MHz")
    assert time.seconds == 1250 / 500e6 and time.kind == "simulated"
    assert time.joules == pytest.approx(705e-15 * 64000, rel=1e-15)  # closer than the 0.05 uJ
    assert time.detail["cycles"] == 1250 and time.detail["joules_known_to"] == pytest.approx(0.005e-15 * 64000)


def test_layers_one_after_another_are_an_iteration(tmp_path):
    time = read(tmp_path / "a", LAYER.read_text() * 3, clock="1 GHz")
    assert (time.seconds, time.samples) == (3750e-9, (3750e-9,))
    assert time.joules == pytest.approx(3 * 705e-15 * 64000, rel=1e-15)
    assert time.detail["iterations"] == "one iteration, of the 3 layers in the file"


def test_timeloop_in_its_older_words(tmp_path):
    """Before releases of 2020: pJ for a multiply-accumulate, and the totals of the topology."""
    text = edited(
        LAYER,
        ("Computes = 64000\nfJ/Compute", "MACCs = 64000\npJ/MACC"),
        ("= 500.00", "= 0.50"),
        ("= 205.00", "= 0.21"),
        ("= 705.00", "= 0.71"),
        ("GFLOPs (@1GHz): 101.60\n", ""),
        ("EDP(J*cycle): 5.64e-05\n", ""),
        ("Operational Int", "Total topology energy: 45120.00 pJ\nMax topology cycles: 1250\nOperational Int"),
    )
    time = read(tmp_path / "a", text, clock="1 GHz")
    assert time.joules == pytest.approx(45120e-12, rel=1e-15)
    with pytest.raises(ValueError, match=r"Energy, line \d+ says .*, where Total topology energy, line \d+ gives"):
        read(tmp_path / "a", text.replace("Energy: 0.05 uJ", "Energy: 0.06 uJ"), clock="1 GHz")


def test_timeloop_xml(tmp_path):
    slowed = edited(XML, ("<cycles>1250</cycles>", "<cycles>1250</cycles><slowdown>0.8</slowdown>"))
    assert read(tmp_path / "a", slowed, clock="1 GHz").seconds == 1250e-9
    time = read(XML, clock="1 GHz")
    assert time.seconds == 1250e-9
    assert time.joules == pytest.approx((32000 + 2 * 4000 + 5000 + 250 + 2 * 10) * 1e-12, rel=1e-15)
    assert "energy without leakage" in time.detail["time"]


def test_timeloop_xml_whose_networks_take_energy_has_none(tmp_path):
    time = read(tmp_path / "a", edited(XML, ("<item>0.0</item>", "<item>1.0</item>")), clock="1 GHz")
    assert time.joules is None and "its energy is not in the file" in time.detail["time"]


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([("Cycles: 1250", "Cycles: 1249")], r"line 62: 1249 cycles in all, where a level takes 1250, line 33"),
        (
            [("Cycles: 1250", "Cycles: 1300")],
            r"EDP\(J\*cycle\), line 64 is 5.64e-05, where 1300 cycles and 4.512e-08 J",
        ),
        ([("Cycles: 1250", "Cycles: 1255"), ("5.64e-05", "5.66e-05")], r"GFLOPs .*, line 60 is 101.6, where 127000 op"),
        (
            [("Energy: 0.05 uJ", "Energy: 0.06 uJ")],
            r"Energy, line 63 says 6e-08 J, where Total, line 72 gives 4.512e-08",
        ),
        ([("Energy: 0.05 uJ", "Energy: 0.05")], "line 63: the unit of energy '' is none of fJ, pJ"),
        ([("Energy: 0.05 uJ", "Energy: 0.05 kJ")], "line 63: the unit of energy 'kJ' is none of fJ, pJ"),
        ([("fJ/Compute", "J per Compute")], "line 68: expected a unit such as fJ/Compute, got 'J per Compute'"),
        ([("fJ/Compute", "eV/Compute")], "line 68: the unit of energy 'eV/Compute' is none of"),
        ([("= 500.00", "= 600.00")], r"line 72: Total is 705 where the parts from line 69 on add up to 805"),
        ([("    Total                   = 705.00\n", "")], "no 'Total' under 'fJ/Compute', line 68: cut off"),
        ([("Cycles: 1250\n", "")], "line 58: 'Summary Stats' has no 'Cycles': the mapping was not evaluated"),
        ([("Cycles: 1250", "Cycles: 1250.5")], "line 62: Cycles must be a whole number"),
        ([("Cycles: 1250", "Cycles: 1250\nCycles: 1250")], "line 63: a second 'Cycles', after line 62"),
        ([("Summary Stats", "Summary")], r"lines 1 to 73: no part 'Summary Stats': cut off\?"),
        (
            [("Computes = 64000", "Computes = 640")],
            "Energy, line 63 says 5e-08 J, where Total, line 72 gives 4.512e-10",
        ),
    ],
)
def test_what_timeloop_says_twice_is_compared(tmp_path, edits, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path / "a", edited(LAYER, *edits), clock="1 GHz")


def test_timeloop_cut_off(tmp_path):
    text = LAYER.read_text().rstrip("\n") + "\n"
    for end in range(30, len(text), 7):
        with pytest.raises(ValueError, match=r"line|lines"):
            read(tmp_path / "a", text[:end], clock="1 GHz", format="timeloop")
    assert read(tmp_path / "a", text, clock="1 GHz").joules


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([("<count>2</count>", "<count>3</count>")], "levels_ has 2 items where its count is 3"),
        ([("<cycles>1250</cycles>", "")], "buffer lacks 'stats_/cycles'|buffer lacks"),
        ([("<cycles_>1000</cycles_>", "<cycles_>many</cycles_>")], "mac: cycles_ must be a finite number, got 'many'"),
        (
            [("<cycles>1250</cycles>", "<cycles>1250000</cycles><slowdown>0.8</slowdown>")],
            r"mac has 1000 cycles, 1000 without its slowdown, and buffer 1250000, 1e\+06 without its own",
        ),
        ([("<cycles_>1000<", "<cycles_>0<"), ("<cycles>1250<", "<cycles>0<")], "no level has cycles"),
        ([("model::BufferLevel", "model::Other")], "buffer is of the class 'model::Other', neither"),
        (
            [("<item>2</item><item>1</item>", "<item>2</item>")],
            r"buffer: energies and instances of \[1, 2\] data spaces",
        ),
        ([("<t_>0</t_>", "<t_>5</t_>")], "the network 'buffer <==> mac' has a fill_latency, and how often it counts"),
        ([("model::LegacyNetwork", "model::ReductionTreeNetwork")], "is of a class whose latency the XML lacks"),
        ([("</engine>\n</boost_serialization>\n", "")], r"line \d+: not readable as XML"),
        ([("<engine", "<other"), ("</engine", "</other")], "no engine/topology_"),
    ],
)
def test_what_is_wrong_with_timeloop_xml(tmp_path, edits, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path / "a", edited(XML, *edits), clock="1 GHz")


def test_timeloop_needs_a_clock():
    for file in (LAYER, XML):
        with pytest.raises(ValueError, match=r"states no clock .* give that of the hardware: --clock"):
            read(file)


@real_files
def test_real_timeloop_statistics():
    for file, text in real("timeloop", ".txt", ".xml"):
        time = read(file, clock="1 GHz")
        if ".xml" in file.name:
            assert time.detail["cycles"] == max(map(int, re.findall(r"<cycles_?>(\d+)<", text)))
            continue
        assert time.detail["cycles"] == int(re.search(r"^Cycles: (\d+)$", text, re.MULTILINE)[1])
        stated = re.search(r"^Energy: (\d+\.(\d+)) uJ$", text, re.MULTILINE)
        assert abs(time.joules * 1e6 - float(stated[1])) <= 0.51 * 10 ** -len(stated[2])


# -- MAESTRO -----------------------------------------------------------------------------------------------------------
NETWORK = DATA / "maestro/network.csv"


def test_maestro_cycles_and_energy():
    time = read(NETWORK, clock="500 MHz")
    assert time.seconds == 2300 / 500e6 and time.kind == "simulated"
    assert time.joules == pytest.approx((2.5e6 + 1e6 + 2 * 12345.6) * 1e-9, rel=1e-15)
    assert time.detail["iterations"] == "one iteration, of the 4 layers of net in the file"


def test_a_run_that_maestro_appended(tmp_path):
    header, _, rows = NETWORK.read_text().partition("\n")
    twice = f"{header}\n{rows}{rows}"
    with pytest.raises(ValueError, match="line 6: the 4 layers before come again, 2 times in all: MAESTRO appends"):
        read(tmp_path / "a", twice, clock="1 GHz")
    time = read(tmp_path / "a", twice, clock="1 GHz", iterations=2)
    assert time.samples == (2300e-9, 2300e-9) and time.joules == read(NETWORK, clock="1 GHz").joules
    assert read(tmp_path / "a", twice, clock="1 GHz", iterations=1).seconds == 4600e-9
    for stated in (4, 3):
        with pytest.raises(ValueError, match=rf"--iterations says {stated}, but the 8 layers are no {stated}-fold"):
            read(tmp_path / "a", twice, clock="1 GHz", iterations=stated)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        (
            [("1000,2.5e+06", "1001,2.5e+06")],
            r"line 2: Throughput .* is 60 where 60000 multiply-adds in 1001 cycles give",
        ),
        (
            [("2.5e+06", "2.6e+06")],
            r"line 2: Ops/J is 2.4e\+07 where 60000 multiply-adds for 2.6e\+06 give 2.30769e\+07",
        ),
        ([("(nJ)", "(kJ)")], r"line 1: the unit of .*, '\(kJ\)', is none of pJ, nJ"),
        ([("Energy (nJ)", "Energy")], "line 1: the unit of 'Activity count-based Energy', '', is none of"),
        ([("Energy (nJ)", "Energy (pJ)")], "line 2: Ops/J is 2.4e"),
        ([("Layer Number, ", "")], "'Layer Number' appears 0 times; its rows are designs, not layers"),
        ([(" Area,", " Runtime (Cycles),")], r"'Runtime \(Cycles\)' appears 2 times"),
        ([("net,CONV2,64", "net,CONV2,128")], "line 4: 128 processing elements where line 2 has 64"),
        ([("net,CONV2", "other,CONV2")], "line 4: a layer of the network 'other', where line 2 has one of 'net'"),
        ([(", 2, 60, 4\n", "\n")], "line 2: 14 cells under 17 headings: cut off"),
        ([("1000,2.5", "0,2.5")], r"line 2: Runtime \(Cycles\) must be above zero"),
        ([("1000,2.5", "10.5,2.5")], r"line 2: Runtime \(Cycles\) must be a whole number"),
    ],
)
def test_what_is_wrong_with_a_table_of_maestro(tmp_path, edits, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path / "a", edited(NETWORK, *edits), clock="1 GHz")


def test_maestro_cut_off_or_without_a_clock(tmp_path):
    text = NETWORK.read_text()
    with pytest.raises(ValueError, match="MAESTRO counts cycles and states no clock"):
        read(NETWORK)
    with pytest.raises(ValueError, match="line 5: the file stops here without the end of the line"):
        read(tmp_path / "a", text[:-3], clock="1 GHz")
    with pytest.raises(ValueError, match="line 1: no rows under the headings"):
        read(tmp_path / "a", text[: text.index("\n") + 1], clock="1 GHz")


@real_files
def test_real_tables_of_maestro():
    for file, text in real("other", "maestro"):
        rows = [line.split(",") for line in text.splitlines()[1:]]
        time = read(file, clock="1 GHz")
        assert time.detail["cycles"] == sum(int(row[3]) for row in rows)
        assert time.joules == pytest.approx(sum(float(row[4]) for row in rows) * 1e-9, rel=1e-12)


# -- files that are told by name ---------------------------------------------------------------------------------------
TABLE = """\
 Time (%)  Total Time (ns)  Instances   Avg (ns)    Style     Range
 --------  ---------------  ---------  -----------  -------  -------
     95.0        3,481,709          1  3,481,709.0  PushPop  step_1
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[1/8] [====100%] my-run.nsys-rep\n[3/8] Executing 'nvtx_sum' stats report\n\n" + TABLE,
            r"line 2: tables of Nsight Systems as a console shows them \(nvtx_sum\), .* csv my-run.nsys-rep > ",
        ),
        ("[3/8] Executing 'nvtx_sum' stats report\n\n" + TABLE, "line 1: tables .* --format csv REPORT.nsys-rep > "),
        (
            "Processing [/tmp/my run/a.sqlite] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]... \n\n"
            " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n" + TABLE,
            r"line 1: tables .* \(cuda_gpu_kern_sum\), .* --format csv a.sqlite > .* else --report cuda_gpu_trace",
        ),
        ("# my notes\n\n" + TABLE, "line 3: tables of Nsight Systems as a console shows them, which are not read"),
        (TABLE.replace("Time (%)", "Time(%)"), "line 1: tables of Nsight Systems"),
        (
            "LayerID, Avg IFMAP SRAM BW, Avg FILTER SRAM BW,\n0, 1.5, 2,\n",
            "SCALE-Sim's BANDWIDTH_REPORT.csv .* read COMP",
        ),
        (
            "LayerID, SRAM IFMAP Start Cycle, SRAM IFMAP Stop Cycle,\n0, 1, 2,\n",
            "SCALE-Sim's DETAILED_ACCESS_REPORT.csv",
        ),
        ("LayerID, Sparsity Representation, Original Filter Storage,\n0, csr, 2,\n", "SCALE-Sim's SPARSE_REPORT.csv"),
        ("LayerID, Time (us),\n0, 1.5,\n", "SCALE-Sim's TIME_REPORT.csv"),
    ],
)
@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_what_is_known_and_not_read_is_told_by_name(tmp_path, text, said, ending):
    with pytest.raises(ValueError, match=said):
        read(tmp_path / f"a.{ending}", text)


def test_a_table_as_csv_is_read_whatever_was_printed_before_it(tmp_path):
    text = (DATA / "nsys/nvtx_sum.csv").read_text()
    printed = "Processing [a.sqlite] with [/opt/reports/nvtx_sum.py]... \n"
    assert (
        read(tmp_path / "a.csv", printed + text, marker="step").seconds
        == read(DATA / "nsys/nvtx_sum.csv", marker="step").seconds
    )


@real_files
def test_real_files_that_are_told_by_name():
    for part, said in (("nsys", "tables of Nsight Systems as a console"), ("scalesim", "SCALE-Sim's BANDWIDTH_REPORT")):
        for file, _ in real("other", part):
            with pytest.raises(ValueError, match=said):
                read(file)
