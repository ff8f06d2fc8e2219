"""Counters of Nsight Compute and perf: read as they stand, or refused; and layers beside the roofline."""

import json

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import Operation, Workload, load_reports, workload_of_gemms
from softnum.tta.counters import kernel_counters, measured_layers, read_kernel_layers, read_ncu_counters, read_perf_stat
from softnum.tta.estimates import Device, device, roofline
from softnum.tta.workloads import network_digest

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
#: metric -> (unit, text), of one launch that contradicts itself in nothing
GOOD = {
    "gpu__time_duration.sum": ("us", "400.00"),
    "gpc__cycles_elapsed.max": ("cycle", "560,000"),
    "gpc__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.40"),
    "dram__bytes.sum": ("Mbyte", "120.00"),
    "dram__bytes.sum.per_second": ("Gbyte/second", "300.00"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "33.50"),
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "41.25"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "72.00"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": ("%", "70.50"),
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": ("%", "3.25"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "24.80"),
    "sm__maximum_warps_per_active_cycle_pct": ("%", "25"),
    "launch__registers_per_thread": ("register/thread", "168"),
    "smsp__average_warp_latency_per_inst_issued.ratio": ("cycle", "8.00"),
    STALL.format("long_scoreboard"): ("inst", "3.00"),
    STALL.format("math_pipe_throttle"): ("inst", "2.00"),
    STALL.format("selected"): ("inst", "1.00"),
}


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


HEAD = ["ID", "Process ID", "Kernel Name", "Grid Size"]


def quoted(cells):
    return ",".join('"' + str(cell).replace('"', '""') + '"' for cell in cells) + "\n"


def raw(path, launches, metrics=GOOD):
    """A table of --page raw with (kernel, changed texts) of each launch."""
    text = "==PROF== Connected to process 7\n" + quoted([*HEAD, *metrics])
    text += quoted([""] * len(HEAD) + [unit for unit, _ in metrics.values()])
    for number, (kernel, changed) in enumerate(launches):
        values = {name: value for name, (_, value) in metrics.items()} | changed
        text += quoted([number, 7, kernel, "(8, 1, 1)", *values.values()])
    path.write_text(text)
    return path


def test_a_launch_of_the_raw_page(tmp_path):
    (launch,) = read_ncu_counters(raw(tmp_path / "a.csv", [("gemm", {})]))
    assert launch.shares == {
        "sm": 72, "tensor": 70.5, "fma": 3.25, "dram": 33.5, "l2": 41.25, "occupancy": 24.8, "theoretical": 25,
    }  # fmt: skip
    assert launch.seconds == 4 * launch.seconds.__class__(1, 10**4) and launch.registers == (168,)
    assert launch.stalls == {"long_scoreboard": 0.375, "math_pipe_throttle": 0.25, "selected": 0.125, "other": 0.25}
    assert not launch.gaps


def test_the_details_page_has_the_same_by_titles(tmp_path):
    rows = [
        ("GPU Speed Of Light Throughput", "Duration", "usecond", "400.00"),
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "41.25"),
        ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "300.00"),
        ("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "33.50"),
        ("GPU Speed Of Light Throughput", "Compute (SM) Throughput", "%", "72.00"),
        ("Occupancy", "Achieved Occupancy", "%", "24.80"),
        ("Launch Statistics", "Registers Per Thread", "register/thread", "168"),
        ("Command line profiler metrics", "lts__throughput.avg.pct_of_peak_sustained_elapsed", "", "n/a"),
    ]
    text = quoted([*HEAD, "Section Name", "Metric Name", "Metric Unit", "Metric Value"])
    text += "".join(quoted([0, 7, "gemm", "(8, 1, 1)", *row]) for row in rows)
    (tmp_path / "a.csv").write_text(text)
    (launch,) = read_ncu_counters(tmp_path / "a.csv")
    assert launch.shares == {"sm": 72, "dram": 33.5, "occupancy": 24.8} and launch.registers == (168,)
    assert launch.gaps == (
        "L2: lts__throughput.avg.pct_of_peak_sustained_elapsed is 'n/a': not collected on this device",
    )  # fmt: skip
    (tmp_path / "a.csv").write_text(text + quoted([0, 7, "gemm", "(8, 1, 1)", *rows[5]]))
    with pytest.raises(ValueError, match=r"line 10: Achieved Occupancy of launch 0 again, at line 7 before"):
        read_ncu_counters(tmp_path / "a.csv")


def test_launches_of_a_kernel_are_weighted_by_time_and_gaps_stay_gaps(tmp_path):
    short = {
        "gpu__time_duration.sum": "100.00", "gpc__cycles_elapsed.max": "140,000", "dram__bytes.sum": "30.00",
        "lts__throughput.avg.pct_of_peak_sustained_elapsed": "107.14",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": "22.00",
    }  # fmt: skip
    (kernel,) = kernel_counters(read_ncu_counters(raw(tmp_path / "a.csv", [("gemm", {}), ("gemm", short)])))
    assert kernel.shares["sm"] == pytest.approx(0.8 * 72 + 0.2 * 22) and kernel.launches == 2
    assert "l2" not in kernel.shares
    assert [gap[:32] for gap in kernel.gaps] == ["L2: lts__throughput.avg.pct_of_p", "L2: 1 of 2 launches have no figu"]


@pytest.mark.parametrize(
    ("metric", "text", "message"),
    [
        ("gpc__cycles_elapsed.max", "560.00", r"560.00 cycle at 1.40 cycle/nsecond are 4e-07 s, and launch 0 takes"),
        ("dram__bytes.sum", "120,000", r"120,000 Mbyte in 0.0004 s are 3e\+14 byte/second, and launch 0 says 300.00"),
        ("sm__maximum_warps_per_active_cycle_pct", "12.5", "an achieved occupancy of 24.8 % and a theoretical one of"),
        (STALL.format("long_scoreboard"), "30.00", "add up to 33, above the 8 cycles between two instructions"),
        ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "41,25", "must be a number like 1,234.5, .*LC_ALL=C"),
        ("launch__registers_per_thread", "168.5", "must be a whole number of at most 255, got '168.5'"),
        ("launch__registers_per_thread", "256", "must be a whole number of at most 255, got '256'"),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "nan%", "must be a number like"),
    ],
)
def test_what_contradicts_itself_is_refused(metric, text, message, tmp_path):
    raw(tmp_path / "a.csv", [("gemm", {metric: text})])
    with pytest.raises(ValueError, match=rf"a\.csv, line 4: .*{message}"):
        read_ncu_counters(tmp_path / "a.csv")


def test_what_is_no_figure_is_none_and_versions_are_no_numbers(tmp_path):
    more = GOOD | {"device__attribute_driver__version": ("", "12.4.131")}
    changed = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": "(!) n/a", STALL.format("selected"): "nan",
               "launch__registers_per_thread": "n/a"}  # fmt: skip
    (launch,) = read_ncu_counters(raw(tmp_path / "a.csv", [("gemm", changed)], more))
    assert "sm" not in launch.shares and not launch.registers and "selected" not in launch.stalls
    assert launch.stalls["other"] == 0.375 and "SM: sm__throughput" in launch.gaps[0]


def test_a_part_of_the_tensor_pipe_is_not_the_whole(tmp_path):
    """On devices whose products are of warp groups HMMA instructions may be 0 while the pipe is busy."""
    part = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"
    metrics = {name: value for name, value in GOOD.items() if "tensor" not in name} | {part: ("%", "12.5")}
    (launch,) = read_ncu_counters(raw(tmp_path / "a.csv", [("gemm", {})], metrics))
    assert "tensor" not in launch.shares and launch.shares["hmma"] == 12.5
    assert "12.5 HMMA" in softnum("counters", tmp_path / "a.csv").stdout


def test_units_are_checked(tmp_path):
    for metric, unit, wanted in (
        ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "Gbyte/s", "must be in %, got 'Gbyte/s'"),
        ("gpc__cycles_elapsed.max", "inst", "must be in cycle, got 'inst'"),
        ("dram__bytes.sum", "sector", "must be in byte, got 'sector'"),
    ):
        raw(tmp_path / "a.csv", [("gemm", {})], GOOD | {metric: (unit, GOOD[metric][1])})
        with pytest.raises(ValueError, match=wanted):
            read_ncu_counters(tmp_path / "a.csv")


def profiled(tmp_path, slower):
    """A run of the products of a network, twice, each `slower` times the roofline's time; a kernel of no layer."""
    point = load_reports().designs["a-float32"]
    work = workload_of_gemms(point, 32, "mlp")
    where = Device.of_hardware(point.hardware)
    rows, launches, metrics = roofline(work, where).rows, [], {
        name: GOOD[name] for name in (
            "gpu__time_duration.sum", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
        )
    }  # fmt: skip
    for _ in range(2):
        for row, gemm in zip(rows, work.gemms, strict=True):
            name = f"void gemm_m{gemm.m}_n{gemm.n}_k{gemm.k}_{network_digest(work)}(float*)"
            launches += [
                (name, {"gpu__time_duration.sum": f"{row.seconds * slower * 1e6 / gemm.count:.6f}"})
            ] * gemm.count
    return work, where, raw(tmp_path / "run.csv", launches, metrics)


def test_layers_beside_the_roofline(tmp_path):
    work, where, path = profiled(tmp_path, slower=4)
    found = measured_layers(work, roofline(work, where), read_ncu_counters(path))
    assert found.iterations == 2 and found.others == 0
    assert [(part.layer, part.stage) for part in found.parts] == [(g.layer, g.phase) for g in work.gemms]
    assert found.efficiency == pytest.approx(0.25, rel=1e-4)
    assert all(part.efficiency == pytest.approx(0.25, rel=1e-4) for part in found.parts)
    assert found.shares == {"memory": pytest.approx(0.25, rel=1e-4)}  # and so the roofline says: all are memory-bound
    again = roofline(work, where, found.efficiency)
    assert again.seconds == pytest.approx(found.seconds)


def test_a_part_faster_than_its_arithmetic_is_refused(tmp_path):
    work, where, path = profiled(tmp_path, slower=1e-3)
    with pytest.raises(ValueError, match="where its arithmetic alone takes .* measured on another device"):
        measured_layers(work, roofline(work, where), read_ncu_counters(path))


def test_launches_by_number_and_what_does_not_fit(tmp_path):
    work = Workload("one", "fp16", 1, (Operation("fc", "forward", "gemm", 2**33, 2**20, 2**20, ("binary16",)),))
    path = raw(tmp_path / "a.csv", [("gemm", {}), ("copy", {})])
    (tmp_path / "layers.csv").write_text("id,layer,stage\n0,fc,forward\n")
    launches, roof = read_ncu_counters(path), roofline(work, device("v100"))
    found = measured_layers(work, roof, launches, read_kernel_layers(tmp_path / "layers.csv"))
    assert found.others == 4e-4 and not found.parts[0].notes and found.shares == {"fp16": found.efficiency}
    assert found.parts[0].of_peak == pytest.approx(2**33 / 125e12 / 4e-4)
    idle = read_ncu_counters(
        raw(path, [("gemm", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "0"})])
    )
    (part,) = measured_layers(work, roof, idle, {0: ("fc", "forward")}).parts
    assert "the tensor pipe is active 0 % of the time: the arithmetic ran elsewhere" in part.notes[0]
    with pytest.raises(ValueError, match="is not of the workload 'one'"):
        measured_layers(
            work, roofline(workload_of_gemms(load_reports().designs["a-float32"], 32), device("v100")), idle
        )
    for layers, message in (
        ({5: ("fc", "forward")}, "has no launch 5"), ({0: ("fc", "update")}, "in which 'one' computes nothing"),
        (None, "no kernel is called by a product of the workload"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            measured_layers(work, roof, launches, layers)


PERF = """# started on Sat Nov 28 13:36:14 2026


 Performance counter stats for 'python3 step.py':

          1,209.10 msec task-clock                       #    0.963 CPUs utilized
     3,628,505,128      cycles                           #    3.001 GHz                         (62.41%)
     7,982,711,281      instructions                     #    2.20  insn per cycle              (74.95%)
        12,108,003      cache-misses                     #   12.108 % of all cache refs         (37.60%)
   <not supported>      LLC-load-misses
     <not counted>      branch-misses                                                           (0.00%)
       812,000,000      branches

       1.255302842 seconds time elapsed

       1.162464000 seconds user
       0.060699000 seconds sys


"""


def test_perf_text(tmp_path):
    (tmp_path / "run.txt").write_text(PERF)
    stat = read_perf_stat(tmp_path / "run.txt")
    assert stat.events["cycles"].value == 3628505128 and float(stat.seconds) == 1.255302842
    assert stat.multiplexed == {"cycles": 62.41, "instructions": 74.95, "cache-misses": 37.6}
    assert stat.ratios() == {
        "instructions a cycle": 7982711281 / 3628505128,
        "cache misses": "cache-references: not in the file",
        "last-level misses": "LLC-load-misses: not supported; LLC-loads: not in the file",
        "branch misses": "branch-misses: not counted",
    }
    result = softnum("counters", tmp_path / "run.txt", "--out", tmp_path / "run.json")
    assert result.exit_code == 0 and "Branch misses: none (branch-misses: not counted)" in result.stdout
    table = json.loads((tmp_path / "run.json").read_text())
    assert [row["event"] for row in table["events"] if row["value"] is None] == ["LLC-load-misses", "branch-misses"]


FIELDS = "1209.10,msec,task-clock,1209100000,100.00,0.963,CPUs utilized\n900,,cycles:u,1000,50.00,,\n"


def test_perf_fields_and_json_say_the_same(tmp_path):
    (tmp_path / "a.csv").write_text(FIELDS + ",,,,,3.2,more\n<not counted>,,branches:u,0,0.00,,\n")
    rows = [
        {"counter-value": "1209.100000", "unit": "msec", "event": "task-clock", "event-runtime": 1209100000,
         "pcnt-running": 100.0},
        {"counter-value": "900.000000", "unit": "", "event": "cycles:u", "event-runtime": 1000, "pcnt-running": 50.0},
        {"counter-value": "<not counted>", "unit": "", "event": "branches:u", "event-runtime": 0, "pcnt-running": 0.0},
    ]  # fmt: skip
    (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, other = (read_perf_stat(tmp_path / f"a.{kind}") for kind in ("csv", "json"))
    for name in ("task-clock", "cycles", "branches"):
        kept = [(e.name, e.value, e.unit, e.running, e.gap) for e in (one.events[name], other.events[name])]
        assert kept[0] == kept[1]
    assert one.events["task-clock"].unit == "s" and one.multiplexed == {"cycles": 50.0}


def test_each_kind_of_cores_has_its_own_ratios(tmp_path):
    rows = [("cpu_core", "instructions", 900), ("cpu_core", "cycles", 300), ("cpu_atom", "cycles", 0)]
    (tmp_path / "a.csv").write_text("".join(f"{n};;{kind}/{name}/u;9;100.00;;\n" for kind, name, n in rows))
    assert read_perf_stat(tmp_path / "a.csv").ratios() == {
        "instructions a cycle, cpu_core": 3.0,
        "instructions a cycle, cpu_atom": "cpu_atom/instructions/: not in the file",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FIELDS + "900,,cycles:u,1000,50.00,,\n", "line 3: event 'cycles:u' again, at line 2"),
        (FIELDS.replace("100.00", "101.00"), "line 1: task-clock was counted in 101 % of the time"),
        (FIELDS.replace("1209100000", "1209100"), "line 1: task-clock is 1.2091 s, and its counter ran for 0.0012091"),
        (FIELDS.replace("50.00", "0.00"), "line 2: cycles:u is 900 and was counted in 0 % of the time"),
        (FIELDS.replace("msec", "hours"), "line 1: the unit of task-clock must be one of msec"),
        (FIELDS.replace("900,", "9.5,"), "line 2: cycles:u counts and must be a whole number"),
        ("     0.05,3.1,msec,task-clock,3100000,100.00,,\n", "without -I"),
        ("CPU0,3,,cycles,3,100.00,,\n", "without -I, -A"),
        ("9,,branches,5,100.00,,\n10,,branch-misses,5,100.00,,\n", "line 2: branch-misses are 10, more than the 9"),
        ("12,,cpu/event=0x3c,umask=0/,5,100.00,,\n", "has commas of its own"),
        ("900,,cycles\n", "line 1: 3 fields"),
        ('{"counter-value" : "9", "event" : "cycles"\n', "line 1: not JSON"),
        ('{"cpu" : "0", "counter-value" : "9", "event" : "cycles"}\n', "line 1: is of one cpu"),
        (PERF.replace("3,628,505,128", "3.628.505.128"), "line 7: .*LC_ALL=C"),
        (PERF[: PERF.index("1.2553")], "no line of seconds time elapsed, .* is the file cut off"),
        ("# started on Sat Nov 28\n", "nothing was counted"),
    ],
)  # fmt: skip
def test_perf_refuses(text, message, tmp_path):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_perf_stat(tmp_path / "a.txt")


def test_the_command(tmp_path):
    from softnum.tta import write_workloads

    point = load_reports().designs["a-float32"]
    work, _, path = profiled(tmp_path, slower=4)
    write_workloads(tmp_path / "w.json", [work])
    (tmp_path / "d.toml").write_text(
        '[sources]\nx = "ours"\n[devices.mine]\ntitle = "ours"\nsource = "x"\npeaks = { fp32 = "'
        f'{Device.of_hardware(point.hardware).peak(("binary32",)).flops:.0f} FLOP/s" }}\n'
        f'bandwidth = "{Device.of_hardware(point.hardware).bandwidth:.0f} B/s"\n'
    )
    done = softnum(
        "counters", path, "--workload", tmp_path / "w.json", "--device", "mine", "--device-file", tmp_path / "d.toml"
    )
    assert done.exit_code == 0, done.stderr
    assert "softnum estimate --efficiency 0.25" in done.stdout and "efficiency = { memory = 0.25" in done.stdout
    for arguments, message in (
        ((path, "--device", "v100"), "needs --workload and --device; add --workload"),
        ((tmp_path / "none.csv",), "no file"),
    ):
        done = softnum("counters", *arguments)
        assert done.exit_code == 2 and message in done.stderr
