"""Devices and rooflines: the table is the sources', every number of a small example is worked out by hand."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softnum as sn
from softnum.tta import (
    Gemm,
    Hardware,
    IterationTime,
    Operation,
    Workload,
    device,
    devices,
    load_reports,
    roofline,
    scalesim_timings,
    workload_of_gemms,
)
from softnum.tta.estimates import Device, Money, inference, plot_roofline, utilisation
from softnum.tta.estimates.formats import PEAKS, choose_peak
from softnum.tta.quantities import byte_size, flop_rate
from tests.support.cases import cases

TERA, GIGA = 10**12, 10**9

# the poster's table: TFLOP/s in fp32, GB, GB/s
POSTER = {
    "titan-xp": (12.1, 12, 547.7),
    "titan-v": (12.2, 12, 652.8),
    "gtx-1080-ti": (11.3, 11, 484),
    "p4000": (5.2, 8, 243),
    "p100": (9.3, 16, 732),
    "v100": (15.7, 16, 900),
    "vega-frontier": (13.1, 16, 484),
}


@pytest.mark.parametrize("name", POSTER)
def test_the_posters_table(name):
    tera, memory, bandwidth = POSTER[name]
    found = device(name)
    assert found.peaks["fp32"] == tera * TERA
    assert found.memory == memory * GIGA
    assert found.bandwidth == pytest.approx(bandwidth * GIGA, rel=1e-15)
    assert "Jayarajan" in found.source


def test_paradnns_table():
    v100, board, core = device("v100"), device("tpu-v2"), device("tpu-v2-core")
    assert (v100.peaks["fp16"], v100.bandwidth, v100.memory) == (125 * TERA, 900 * GIGA, 16 * GIGA)
    assert (board.peaks["bf16"], board.bandwidth, board.memory) == (180 * TERA, 2400 * GIGA, 8 * GIGA)
    assert (core.peaks["bf16"] * 8, core.bandwidth) == (180 * TERA, 300 * GIGA)
    assert "ParaDnn" in v100.source
    assert board.peaks["bf16"] / v100.peaks["fp16"] == 1.44  # as the last slide says


def test_every_device_has_sources_and_sensible_figures():
    known = devices()
    wanted = "tpu-v3 a100-40gb a100-80gb h100-sxm h100-pcie h200 mi250x mi300x l4 t4 rtx-4090 epyc-7742"
    assert set(POSTER) | {"tpu-v2", *wanted.split()} <= set(known)
    for each in known.values():
        assert len(each.source) > 20
        assert 1e9 < each.bandwidth < 1e13
        assert set(each.peaks) <= set(PEAKS)
        rates = [each.peaks[name] for name in ("fp8", "fp16", "tf32", "fp32") if name in each.peaks]
        assert rates == sorted(rates, reverse=True)  # a narrower format is never slower
        for money in (each.price, each.rent):
            assert money is None or (money.date[:2] == "20" and len(money.source) > 20)
        if each.rent and "an eighth of " in each.rent.instance:
            assert each.rent.dollars * 8 == pytest.approx(float(each.rent.instance.rsplit(" ", 1)[1]), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[devices.a]\npeak = { fp16 = "1 TFLOP/s" }', r"device 'a' has the unknown key 'peak'; did you mean 'peaks'"),
        ('[devices.a]\npeaks = { pf16 = "1 TFLOP/s" }\nbandwidth = "1 GB/s"\nsource = "x"', "did you mean 'fp16'"),
        ('[devices.a]\npeaks = {}\nbandwidth = "1 GB/s"\nsource = "x"', "peaks is empty"),
        ('[devices.a]\npeaks = { fp16 = "1 TFLOPS" }\nbandwidth = "1 GB/s"\nsource = "x"', "accepted units: FLOP/s"),
        ('[devices.a]\npeaks = { fp16 = 1 }\nbandwidth = "1 GB/s"\nsource = "x"', "must be a string with a unit"),
        ('[devices.a]\npeaks = { fp16 = "1 TFLOP/s" }\nbandwidth = "1 GiB/s"\nsource = "x"', "accepted units: B/s"),
        ('[devices.a]\npeaks = { fp16 = "1 TFLOP/s" }\nbandwidth = "1 GB/s"', "lacks 'source'"),
        ('[devices.a]\npeaks = { fp16 = "1 TFLOP/s" }\nbandwidth = "1 GB/s"\nsource = 3', "source must be a text"),
        (
            '[devices.a]\npeaks = { fp16 = "1 TFLOP/s" }\nbandwidth = "1 GB/s"\nsource = "x"\nrent = { dollars = 0 }',
            "rent lacks 'date', 'source'",
        ),
        ("[device.a]", "unknown key 'device'; did you mean 'devices'"),
        ("devices = 3", "must be a table"),
        ("[devices.a", "not TOML"),
    ],
)
def test_bad_device_files_say_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        devices(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("watts", 10**400, "watts must be at most 1.7e308"),
        ("bandwidth", "1e300 TB/s", "bandwidth '1e300 TB/s' is too l"),
    ],
)
def test_figures_beyond_binary64_are_refused(key, value, said):
    table = {"peaks": {"fp8": "1 PFLOP/s"}, "bandwidth": "2 TB/s", "source": "a guess"}
    with pytest.raises(ValueError, match=said):
        Device.from_table("mine", {**table, key: value})


def test_own_devices_come_first_and_replace(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[sources]\nlab = "our laboratory"\n'
        '[devices.v100]\npeaks = { fp16 = "100 TFLOP/s" }\nbandwidth = "800 GB/s"\nsource = "lab"\n'
        'rent = { dollars = 1, date = "2026-01", source = "lab" }\n'
    )
    assert next(iter(devices(path))) == "v100"
    mine = device("v100", path)
    assert (mine.peaks["fp16"], mine.source) == (100 * TERA, "our laboratory")
    assert mine.rent == Money(1.0, "2026-01", "our laboratory")
    assert device("a100-40gb", path) == device("a100-40gb")
    with pytest.raises(FileNotFoundError, match="no device file"):
        devices(tmp_path / "absent.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        devices(path)


@given(st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutated_device_files_raise_nothing_but_value_errors(tmp_path, data):
    good = (
        '[sources]\nlab = "our laboratory"\n[devices.a]\npeaks = { fp16 = "100 TFLOP/s", fp32 = "10 TFLOP/s" }\n'
        'vector = "5 TFLOP/s"\nmemory = "8 GB"\nbandwidth = "800 GB/s"\nwatts = 3\nsource = "lab"\n'
        'rent = { dollars = 1, date = "2026-01", source = "lab" }\n'
    )
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(len(good), start + 12)))
    junk = data.draw(st.sampled_from(["", "1", "{}", '"', "[]", " = ", "\n", "a", "-1", "inf", "true"]))
    path = tmp_path / "mine.toml"
    path.write_text(good[:start] + junk + good[end:])
    try:
        found = devices(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        assert all(each.bandwidth > 0 and min(each.peaks.values()) > 0 for each in found.values())


def test_new_quantities():
    assert byte_size("16 GB") == 16 * GIGA
    assert flop_rate("1.5 PFLOP/s") == 15 * 10**14
    with pytest.raises(ValueError, match="accepted units: B, kB, MB, GB, TB"):
        byte_size("16 GiB")
    with pytest.raises(ValueError, match="not a whole number of bytes"):
        byte_size("0.3 B")


# ------------------------------------------------------------------------------------------------------------- formats

_EIGHT_BITS = ["e5m2", "e4m3fn", "e4m3", "e3m4", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "binary8p3se", "q4.4", "q2.6"]


def _finite(fmt):
    codes = sn.decode(np.arange(2**fmt.bits, dtype=fmt.storage_dtype), fmt)
    return codes[np.isfinite(codes)]


@cases("name", [*_EIGHT_BITS, "e3m2fn", "e2m1fn", "dlfloat16", "binary16", "bfloat16", "e6m9", "e2m3fn"])
@cases("wide", ["fp8", "fp16", "bf16", "tf32", "fp32"])
def test_a_format_is_held_exactly_if_every_value_is(name, wide):
    """The rule of three comparisons against every finite value of the format."""
    values = _finite(sn.format(name))
    holders = [sn.format(own) for own in PEAKS[wide]]
    held = any(bool((sn.quantize(values, own) == values).all()) for own in holders)
    try:
        chosen = choose_peak((wide,), (name,))[0]
    except ValueError:
        chosen = None
    assert (chosen == wide) is held


@cases(
    ("listed", "formats", "expected", "proxy"),
    [
        (("fp32", "fp16"), ("binary16", "binary16"), "fp16", False),
        (("fp32", "fp16"), ("float16",), "fp16", False),
        (("fp32", "fp16", "fp8"), ("e5m2", "e4m3fn"), "fp8", False),
        (("fp32", "fp16"), ("e5m2", "e6m9"), "fp32", True),
        (("fp8", "fp4"), ("e2m1fn",), "fp4", False),
        (("fp8", "fp4"), ("nvfp4",), "fp4", True),
        (("fp8", "fp4"), ("e2m1fn", "e4m3fn"), "fp8", True),
        (("fp8", "fp16"), ("e2m1fn",), "fp8", True),
        (("fp32", "tf32", "bf16", "fp16"), ("e6m9",), "tf32", True),
        (("fp32", "bf16", "fp16"), ("e5m2",), "fp16", True),
        (("fp32", "int8"), ("q4.4", "q2.6"), "int8", False),
        (("fp32", "int8"), ("q8.8",), "fp32", True),
        (("fp32", "fp8"), ("mxfp8_e4m3",), "fp8", True),
        (("fp64", "fp32", "fp16"), ("posit8",), "fp32", True),
        (("fp32", "fp16"), (), "fp32", True),
        (("fp64", "fp32", "fp16"), ("lns8",), "fp32", True),
        (("bf16",), ("posit8",), "bf16", True),
        (("native",), ("posit8",), "native", False),
    ],
)
def test_choice_of_rates(listed, formats, expected, proxy):
    found = choose_peak(listed, formats)
    assert found[:2] == (expected, proxy)
    assert bool(found[2]) is proxy


def test_a_format_that_nothing_holds_is_an_error():
    with pytest.raises(ValueError, match=r"device 'tpu-v2': no listed rate \(bf16\) .* every value of binary32"):
        device("tpu-v2").peak(("float32",))
    with pytest.raises(ValueError, match="lns8 is not known to softnum"):
        device("tpu-v2").peak(("lns8",))
    with pytest.raises(ValueError, match="lists no rate 'fp8'"):
        device("v100").ridge("fp8")


def test_vector_units():
    assert device("mi250x").peak((), gemm=False).flops == 47.9 * TERA
    assert device("a100-40gb").peak(("binary16",), gemm=False).flops == 19.5 * TERA
    assert device("tpu-v2").peak((), gemm=False).proxy
    assert device("v100").ridge("vector") == 15.7e12 / 9e11


# ------------------------------------------------------------------------------------------------------------ roofline


def one(flops, moved, formats=("binary16",), kind="gemm", stage="forward", layer="fc"):
    return Operation(layer, stage, kind, flops, moved, 0, formats)


def test_roofline_by_hand():
    """V100 in fp16: 125e12 / 900e9 = 138.9 FLOPs per byte."""
    # 1.25e12 FLOPs take 10 ms; 9e9 bytes take 10 ms
    work = Workload(
        "net", "d", 10, (one(125 * 10**10, 9 * 10**8), one(125 * 10**9, 9 * 10**9), one(157 * 10**9, 0, kind="relu"))
    )
    roof = roofline(work, device("v100"))
    assert [row.seconds for row in roof.rows] == [0.01, 0.01, 0.01]
    assert [row.bound for row in roof.rows] == ["compute", "memory", "compute"]
    assert [row.peak.format for row in roof.rows] == ["fp16", "fp16", "vector"]
    assert roof.seconds == 0.03
    assert roof.compute_bound == pytest.approx(2 / 3)
    assert roof.share_of_peak == pytest.approx((0.01 + 0.001 + 0.01) / 0.03)
    assert roof.samples_per_second == pytest.approx(10 / 0.03)
    assert roofline(work, device("v100"), 0.5).seconds == 0.06
    time = roof.time
    assert (time.kind, time.design, time.seconds) == ("estimated", "d", 0.03)
    assert json.loads(json.dumps(time.detail)) == time.detail
    assert time.detail["operations"][2]["intensity"] is None
    assert time.detail["ridges"] == {"fp16": 125e12 / 9e11, "vector": 15.7e12 / 9e11}


def test_the_ridge_is_compute_bound():
    exact = one(125 * 10**9, 9 * 10**8)
    assert roofline(Workload("n", "d", 1, (exact,)), device("v100")).rows[0].bound == "compute"


def test_layer_times_cover_stages():
    operations = (
        one(10**9, 1),
        one(10**9, 1),
        one(10**9, 1, stage="backward_data"),
        one(10, 10**9, kind="sgd", stage="update"),
    )
    times = roofline(Workload("n", "d", 1, operations), device("v100")).layer_times
    assert times == {"fc": {"forward": 16e-6, "backward_data": 8e-6, "backward_weight": 0.0, "update": 10**9 / 9e11}}


def test_roofline_refuses():
    work = Workload("n", "d", 1, (one(10, 10),))
    for wrong in (0, -1, 1.5, math.nan, "1"):
        with pytest.raises(ValueError, match="efficiency"):
            roofline(work, device("v100"), wrong)
    with pytest.raises(ValueError, match="no operation that takes time"):
        roofline(Workload("n", "d", 1, ()), device("v100"))


operations = st.builds(
    one,
    st.integers(0, 10**15),
    st.integers(1, 10**13),
    st.sampled_from([("binary16",), ("binary32",), ("e5m2",), ("e6m9", "e5m2")]),
    st.sampled_from(["gemm", "relu"]),
)
works = st.lists(operations, min_size=1, max_size=6).map(lambda rows: Workload("n", "d", 4, tuple(rows)))


@given(works, st.floats(1, 100), st.floats(0.05, 1))
@settings(max_examples=60, deadline=None)
def test_faster_devices_are_never_slower(work, factor, efficiency):
    base = device("a100-40gb")
    faster = Device("x", {name: flops * factor for name, flops in base.peaks.items()}, base.bandwidth)
    wider = Device("x", base.peaks, base.bandwidth * factor)
    both = Device("x", faster.peaks, wider.bandwidth)
    seconds = roofline(work, base).seconds
    assert roofline(work, faster).seconds <= seconds
    assert roofline(work, wider).seconds <= seconds
    assert roofline(work, both).seconds == pytest.approx(seconds / factor, rel=1e-9)
    assert roofline(work, base, efficiency).seconds == pytest.approx(seconds / efficiency, rel=1e-9)
    assert 0 <= roofline(work, base).share_of_peak <= 1 + 1e-12


@given(works, works)
@settings(max_examples=40, deadline=None)
def test_more_work_takes_longer(first, second):
    both = Workload("n", "d", 4, first.operations + second.operations)
    alone = roofline(first, device("v100")).seconds + roofline(second, device("v100")).seconds
    assert roofline(both, device("v100")).seconds == pytest.approx(alone, rel=1e-12)


@given(works, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_order_does_not_matter(work, rng: random.Random):
    rows = list(work.operations)
    rng.shuffle(rows)
    assert (
        roofline(Workload("n", "d", 4, tuple(rows)), device("v100")).seconds == roofline(work, device("v100")).seconds
    )


# ----------------------------------------------------------------------------------------- workloads of GEMMs, hardware


def test_workload_of_gemms_counts_bytes_of_blocks():
    point = load_reports().designs["a-float32"]
    gemm = Gemm("fc", "forward", 3, 5, 7, 8.25, ("mxfp8_e4m3",), count=2)
    work = workload_of_gemms(type(point)("mine", None, (gemm,)), 3, "net")
    operation = work.operations[0]
    assert operation.flops == 2 * 3 * 5 * 7 * 2
    # 21 elements x 8.25 bits = 173.25 bits = 22 bytes, 35 -> 37, 15 -> 16
    assert (operation.bytes_read, operation.bytes_written) == (2 * (22 + 37), 2 * 16)
    assert Workload.from_table(work.to_table()) == work


def test_of_hardware_is_never_beaten_by_the_simulator():
    """The roofline of an array bounds SCALE-Sim's cycles from below, GEMM by GEMM, in every shipped report."""
    points = load_reports().designs
    times = scalesim_timings(points.values())
    checked = 0
    for name, point in points.items():
        array = Device.of_hardware(point.hardware)
        roof = roofline(workload_of_gemms(point, 32), array)
        rows = times[name].detail["gemms"]
        for row, simulated in zip(roof.rows, rows, strict=True):
            seconds = simulated.get("count", 1) * simulated["cycles"] / float(point.hardware.clock)
            assert row.seconds <= seconds, (name, row)
            checked += 1
        assert roof.seconds <= times[name].seconds
    assert checked >= 40


def test_of_hardware_by_hand():
    table = {
        "array": [16, 8],
        "sram_bytes": {"ifmap": 1, "filter": 1, "ofmap": 1},
        "bandwidth": "2 GB/s",
        "clock": "500 MHz",
    }
    array = Device.of_hardware(Hardware.from_table(table), "mine")
    assert array.peaks == {"native": 2 * 16 * 8 * 5e8}
    assert array.bandwidth == 6e9


# ---------------------------------------------------------------------------------------------------------- utilisation


def test_utilisation_of_a_simulated_time_by_hand():
    point = load_reports().designs["a-float32"]
    work = workload_of_gemms(point, 32)
    time = scalesim_timings([point])["a-float32"]
    rows = utilisation(work, time, Device.of_hardware(point.hardware))
    # fc1 forward: 32 x 128 x 64 products on 1024 multipliers take 256 cycles at best; SCALE-Sim says 3574
    assert (rows[1].layer, rows[1].stage, rows[1].share) == ("fc1", "forward", pytest.approx(256 / 3574))
    best = sum(gemm.m * gemm.n * gemm.k for gemm in point.gemms) / 1024
    assert rows[0].share == pytest.approx(best / 12036)
    assert len(rows) == 6
    assert rows[0].achieved == pytest.approx(work.flops / time.seconds)


def test_utilisation_of_an_estimate_is_its_own():
    work = workload_of_gemms(load_reports().designs["b-binary16"], 32)
    roof = roofline(work, device("v100"), 0.5)
    rows = utilisation(work, roof.time, device("v100"))
    assert rows[0].share == pytest.approx(roof.share_of_peak)
    assert [row.share for row in rows[1:]] == pytest.approx([r.achieved / r.peak.flops for r in roof.rows])


def test_utilisation_of_a_mere_total():
    work = workload_of_gemms(load_reports().designs["b-binary16"], 32)
    rows = utilisation(work, IterationTime("b-binary16", 1.0), device("v100"))
    assert len(rows) == 1
    assert rows[0].share == pytest.approx(work.flops / 125e12)


def test_utilisation_refuses_another_work():
    points = load_reports().designs
    work = workload_of_gemms(points["a-float32"], 32)
    with pytest.raises(ValueError, match=r"is of design 'b', the workload of 'a-float32'"):
        utilisation(work, IterationTime("b", 1.0), device("v100"))
    other = scalesim_timings([points["d-e6m3-long"]])["d-e6m3-long"]  # batch 256
    with pytest.raises(ValueError, match="another network or batch"):
        utilisation(work, IterationTime("a-float32", 1.0, detail=other.detail), device("v100"))


# ------------------------------------------------------------------------------------------------------------ inference


def test_inference_by_hand():
    operations = (one(125 * 10**10, 1), one(125 * 10**10, 1, stage="backward_data"))
    result = inference(Workload("n", "d", 32, operations), device("v100"))
    assert (result.latency, result.throughput) == (0.01, 3200.0)
    assert result.dollars_per_million == pytest.approx(1e6 / 3200 / 3600 * 3.06)
    assert inference(Workload("n", "d", 32, operations), device("p100")).dollars_per_million is None
    cheap = inference(Workload("n", "d", 32, operations), device("v100"), rent=Money(0.306, "2026-01", "us"))
    assert cheap.dollars_per_million == pytest.approx(result.dollars_per_million / 10)
    with pytest.raises(ValueError, match="no forward pass"):
        inference(Workload("n", "d", 32, operations[1:]), device("v100"))


def test_picture_is_the_same_bytes_and_refuses(tmp_path):
    points = load_reports().designs
    works = [workload_of_gemms(points[name], 32, "mlp") for name in ("a-float32", "b-binary16")]
    roofs = [roofline(work, where) for work in works for where in (device("v100"), device("t4"))]
    for suffix in ("png", "svg"):
        for turn in "ab":
            plot_roofline(tmp_path / f"{turn}.{suffix}", roofs)
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    text = (tmp_path / "a.svg").read_text()
    assert "<path" in text
    array = Device.of_hardware(points["a-float32"].hardware)
    parts = utilisation(works[0], scalesim_timings([points["a-float32"]])["a-float32"], array)
    plot_roofline(tmp_path / "c.png", [roofline(works[0], array)], [parts])
    assert (tmp_path / "c.png").stat().st_size > 10000
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.pdf"):
        plot_roofline(tmp_path / "a.gif", roofs)
    with pytest.raises(ValueError, match="no roofline"):
        plot_roofline(tmp_path / "a.png", [])
    with pytest.raises(ValueError, match="4 rooflines and 1 lists"):
        plot_roofline(tmp_path / "a.png", roofs, [parts])
