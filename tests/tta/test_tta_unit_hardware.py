"""What a design states of its own unit ([hardware.unit]): areas, energies and times, and who is left out."""

from dataclasses import replace
from fractions import Fraction

import pytest

from softnum.train import design_gemms, load_design, make_network
from softnum.tta import (
    DesignPoint,
    Gemm,
    Hardware,
    IterationTime,
    Operation,
    Record,
    Variant,
    Workload,
    energy_of,
    load_reports,
    scalesim_timings,
    scalesim_variants,
)
from softnum.tta.architectures.precision import Precision
from softnum.tta.estimates import Device
from softnum.tta.simulators.scalesim import machine_for
from softnum.tta.simulators.zigzag import zigzag_machine
from softnum.tta.study import _units, _with_energies, chosen_variants
from softnum.tta.workloads import UnitHardware, equal_area
from softnum.tta.workloads.areas import NoArea
from tests.support.cases import cases

TABLE = {
    "array": [32, 32],
    "sram_bytes": {"ifmap": 65536, "filter": 65536, "ofmap": 65536},
    "bandwidth": "16 GB/s",
    "clock": "1 GHz",
}
FULL = {
    "source": "a run", "library": "osu035_stdcells", "area_um2": 16000, "reference": "binary16",
    "reference_area_um2": 180000, "area_ratio": 0.0889, "delay_ps": 5200, "reference_delay_ps": 14000,
    "energy_ratio": 0.1, "latency_cycles": 3, "initiation_interval": 2,
}  # fmt: skip


def point(name, *formats, function="", **unit):
    table = {**TABLE, "unit": {"source": "a run", **unit}} if unit else TABLE
    gemms = tuple(Gemm("fc", "forward", 8, 8, 8, 8, (fmt,), function=function) for fmt in formats)
    return DesignPoint(name, Hardware.from_table(table), gemms)


def test_a_table_is_read_and_written_again():
    hardware = Hardware.from_table({**TABLE, "unit": FULL})
    assert hardware.to_table()["unit"] == FULL
    assert Hardware.from_table(hardware.to_table()) == hardware
    assert hardware.unit.ratio == 16000 / 180000 and hardware.unit.late == 1
    one = {"source": "a data sheet", "latency_cycles": 1}
    assert UnitHardware.from_table(one).to_table() == one


@cases(
    ("change", "message"),
    [
        ({"source": None}, "lacks"),
        ({"source": " "}, "source must be a text, got ' '"),
        ({"area": 3}, "area"),
        ({"area_um2": -1}, "area_um2 must be finite and above 0, got -1"),
        ({"area_um2": float("nan")}, "area_um2 must be finite and above 0, got nan"),
        ({"area_um2": "16000"}, "area_um2 must be a number, got '16000'"),
        ({"latency_cycles": 1.5}, "latency_cycles must be an integer, got 1.5"),
        ({"initiation_interval": 0}, "initiation_interval must be at least 1, got 0"),
        (
            {"reference": "fp8"},
            "reference must be a multiplier of the tables, int8, int32, binary16, binary32, got 'fp8'",
        ),
        ({"library": None}, "area_um2 needs library: areas compare within one library only"),
        ({"reference": None}, "reference_area_um2 needs reference"),
        ({"area_um2": None}, "reference_area_um2 needs area_um2"),
        ({"area_ratio": 0.9}, r"area_ratio is 0.9, and area_um2 over reference_area_um2 is 16000 / 180000 = 0.08889"),
        ({"energy_pj": 1}, "states energy_pj and energy_ratio"),
        ({"energy_ratio": None, "energy_pj": 1}, "energies of a 45 nm process, and library is 'osu035_stdcells'"),
    ],
)
def test_what_does_not_go_together_is_an_error(change, message):
    table = {key: value for key, value in {**FULL, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=message) as error:
        Hardware.from_table({**TABLE, "unit": table}, "x.toml: [hardware]")
    assert "x.toml: [hardware]: unit" in str(error.value)


def test_a_source_alone_is_no_statement():
    with pytest.raises(ValueError, match="states no figure; it may state area_um2, "):
        UnitHardware.from_table({"source": "a run", "library": "osu035_stdcells"})


def test_a_design_file_is_checked(tmp_path):
    text = load_design("c-wang-fp8").path.read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text + '\n[hardware.unit]\nsource = "a run"\nenergy_pj = 0.5\n')
    assert load_design(path).hardware["unit"] == {"source": "a run", "energy_pj": 0.5}
    path.write_text(text + '\n[hardware.unit]\nsource = "a run"\nenergy_pJ = 0.5\n')
    with pytest.raises(ValueError, match=r"mine.toml: \[hardware.unit\].*energy_pJ.*energy_pj"):
        load_design(path)


# -- areas -------------------------------------------------------------------------------------------------------------


def test_a_ratio_stands_beside_the_published_areas():
    stated = {"library": "osu035_stdcells", "reference": "binary16", "area_ratio": 0.25}
    points = [point("a", "binary16"), point("m", "e4m3fn", function="m.py:f", **stated), point("p", "posit8", **stated)]
    scaled, left_out, areas = equal_area(points, "a")
    assert {p.name: p.hardware.array for p in scaled} == {"a": (32, 32), "m": (64, 64), "p": (64, 64)}
    assert left_out == {} and (areas["m"].um2, areas["m"].kind) == (410.0, "stated")
    assert "0.25 of the binary16 multiplier in osu035_stdcells" in areas["m"].reason
    back = equal_area(points, "m")[0]
    assert back[0].hardware.array == (16, 16) and back[1].hardware == points[1].hardware


def test_micrometres_compare_within_their_library_only():
    own = {"library": "osu035_stdcells", "area_um2": 4000}
    points = [point("a", "e4m3fn", **{**own, "area_um2": 16000}), point("m", "e4m3fn", **own), point("t", "binary16"),
              point("o", "e4m3fn", library="osu018_stdcells", area_um2=1000)]  # fmt: skip
    scaled, left_out, areas = equal_area(points, "a")
    assert {p.name: p.hardware.array for p in scaled} == {"a": (32, 32), "m": (64, 64)}
    assert areas["m"].um2 == 4000 and left_out.keys() == {"t", "o"}
    assert "its area is of TSMC 45 nm and a's of osu035_stdcells, which do not compare" in left_out["t"]
    both = replace(points[0], hardware=point("a", "x", **own, reference="int8", reference_area_um2=4000).hardware)
    scaled, left_out, areas = equal_area([both, *points[1:]], "a")  # by the table, but where only the library is common
    assert areas["a"].um2 == 282 and areas["m"].reason.endswith("a's is 4000 there") and left_out.keys() == {"o"}
    process = point("n", "posit8", library="TSMC 45 nm", area_um2=820)
    assert equal_area([point("b", "binary16"), process], "b")[0][1].hardware.array == (45, 45)  # 32 * sqrt(2)


def test_an_area_that_holds_no_row_of_an_array_leaves_the_design_out():
    narrow = point("n", "binary32")
    narrow = replace(narrow, hardware=replace(narrow.hardware, array=(1, 1024)))
    scaled, left_out, areas = equal_area([point("b", "binary16"), narrow], "b")  # a row would take 1 + 1024 / 32 of it
    assert [entry.name for entry in scaled] == list(areas) == ["b"]
    assert "less than one row or column of its 1 x 1024 array at 7700" in left_out["n"]


def test_a_users_function_and_a_posit_have_no_area_alike():
    points = [point("a", "binary16"), point("m", "e4m3fn", function="m.py:f"), point("p", "posit8")]
    scaled, left_out, _ = equal_area(points, "a")
    assert [p.name for p in scaled] == ["a"] and left_out.keys() == {"m", "p"}
    assert left_out["m"].startswith(
        "no multiplier area is known for the user's function m.py:f; [hardware.unit] may state"
    )
    with pytest.raises(NoArea, match="baseline 'm' cannot set the area: no multiplier area is known for the user's"):
        equal_area(points, "m")


def test_without_an_area_of_the_baseline_there_is_no_equal_area_variant():
    reports = load_reports()
    points = list(reports.designs.values())
    variants = scalesim_variants(points, baseline="h-posit8")
    assert [variant.label for variant in variants] == ["stated hardware"]
    assert variants[0].notes[0].startswith("no equal-area variant: baseline 'h-posit8' cannot set the area: no multip")
    with pytest.raises(ValueError, match="no equal-area variant: baseline 'h-posit8'"):
        chosen_variants(variants, "equal area")


# -- energies ----------------------------------------------------------------------------------------------------------


def work(*gemms, extra=()):
    rows = [Operation(g.layer, g.phase, "gemm", 2 * g.m * g.n * g.k, 128, 64, g.formats, g) for g in gemms]
    return Workload("net", "design", 32, (*rows, *extra))


def test_a_stated_energy_takes_the_place_of_multiplication_and_addition():
    function = work(*point("m", "e4m3fn", function="m.py:f").gemms)
    energy = energy_of(function, unit=UnitHardware("a run", energy_pj=0.7))
    assert energy.by_kind["multiply"] == pytest.approx(512 * 0.7e-12) and energy.by_kind["add"] == 0
    assert energy.assumptions[-1] == (
        "product of a matrix product: a multiply-add of 0.7 pJ, as the design states by a run"
    )
    ratio = UnitHardware("a run", reference="binary16", energy_ratio=0.5)
    half = energy_of(function, unit=ratio, accumulator="binary16")
    assert half.by_kind["multiply"] == pytest.approx(512 * 0.55e-12) and half.by_kind["add"] == pytest.approx(
        512 * 0.4e-12
    )
    own = Hardware.from_table({**TABLE, "unit": {"source": "a run", "energy_pj": 0.7}})
    assert energy_of(function, hardware=own).by_kind["multiply"] == energy.by_kind["multiply"]
    with pytest.raises(ValueError, match="'45nm-lecture' has no binary16 multiplication, which energy_ratio is to"):
        energy_of(function, "45nm-lecture", unit=ratio)


def test_with_a_stated_energy_a_posit_has_one_elsewhere_too():
    relu = Operation("fc", "forward", "relu", 1000, 100, 100, ("posit8",))
    posit = work(*point("p", "posit8").gemms, extra=[relu])
    with pytest.raises(ValueError, match="posit8 is neither a float"):
        energy_of(posit)
    energy = energy_of(posit, unit=UnitHardware("a run", energy_pj=0.7))
    assert energy.by_kind["elementwise"] == pytest.approx(1000 * 0.7e-12)
    assert "product of posit8, charged as the unit's (proxy)" in energy.assumptions


def test_with_given_times_the_runs_say_what_the_unit_is():
    function = work(*point("m", "e4m3fn", function="m.py:f").gemms)
    config = {"design": {"hardware": {"unit": {"source": "a run", "energy_pj": 0.7}}}}
    runs = [Record("base", 1, 32, 90, (), {}, {}), Record("m", 1, 32, 90, (), config, {})]
    times = Variant("measured", {name: IterationTime(name, 2.0) for name in ("base", "m")})
    variant, energies = _with_energies(times, {"base": function, "m": function}, _units(runs), {}, "45nm")
    stated = UnitHardware("a run", energy_pj=0.7)
    assert energies.keys() == {"m"}, variant.notes
    assert energies["m"][0] == energy_of(function, unit=stated).joules
    assert variant.notes[0].startswith("no energy of base: the user's function m.py:f multiplies; the tables have no")


def test_zigzag_is_given_the_energy_that_is_stated_and_none_where_none_is_known():
    gemm = Gemm("fc", "forward", 8, 8, 8, 8, ("posit8", "posit8"))
    plain = Hardware.from_table(TABLE)
    assert zigzag_machine(plain, gemm).mac_pj == 0
    stated = replace(plain, unit=UnitHardware("a run", energy_pj=0.7))
    assert zigzag_machine(stated, gemm).mac_pj == 0.7


# -- times -------------------------------------------------------------------------------------------------------------


def test_a_step_takes_an_initiation_interval_and_late_products_end_each_fold_later():
    plain = load_reports().designs["a-float32"]
    late = replace(plain, hardware=replace(plain.hardware, unit=UnitHardware("a run", latency_cycles=5)))
    before, after = (scalesim_timings([p])["a-float32"] for p in (plain, late))
    folds = sum(-(-g.m // 32) * -(-g.n // 32) for g in plain.gemms)
    assert after.detail["cycles"] == before.detail["cycles"] + 4 * folds
    assert after.seconds == pytest.approx((before.detail["cycles"] + 4 * folds) * 1e-9)
    slow = replace(plain.hardware, unit=UnitHardware("a run", latency_cycles=2, initiation_interval=2))
    assert slow.cycles(1000, plain.gemms[0], "os") == 2000 and slow.bytes_per_step == Fraction(32)
    assert machine_for(slow, 32).words_per_cycle == 2 * machine_for(plain.hardware, 32).words_per_cycle
    assert Device.of_hardware(slow).peaks["native"] == Device.of_hardware(plain.hardware).peaks["native"] / 2


def test_folds_by_dataflow():
    hardware = Hardware.from_table({**TABLE, "unit": {"source": "a run", "latency_cycles": 2}})
    gemm = Gemm("fc", "forward", 33, 65, 129, 8)  # 2 x 3, 5 x 3 and 5 x 2 folds
    assert [hardware.cycles(0, gemm, flow) for flow in ("os", "ws", "is")] == [6, 15, 10]


# -- users' functions --------------------------------------------------------------------------------------------------


def test_products_name_the_users_function(tmp_path):
    pytest.importorskip("numba")
    (tmp_path / "m.py").write_text("def f(a, b):\n    return a * b\n")
    text = (
        'name = "m"\n[roles]\ndefault = { format = "e4m3fn" }\n[units]\n'
        'forward = { kind = "custom", function = "m.py:f", accumulator = "e6m9" }\n'
        'backward_data = { accumulator = "e6m9" }\nbackward_weight = { accumulator = "e6m9" }\n'
        '[layers."fc2".units]\nforward = { accumulator = "e6m9" }\n'
    )
    (tmp_path / "m.toml").write_text(text)
    design = load_design(tmp_path / "m.toml")
    rows = design_gemms(design, make_network("mlp"), 32)
    functions = {(row["layer"], row["pass"]): row.get("function") for row in rows}
    assert functions.pop(("fc1", "forward")) == "m.py:f" and set(functions.values()) == {None}
    gemm = Gemm.from_table(rows[0])
    assert gemm.function == "m.py:f" and gemm.to_table() == rows[0]
    import tomllib

    precision = Precision.of_design(tomllib.loads(text))
    assert dict(precision.at("fc1").functions) == {"forward": "m.py:f"} and precision.at("fc2").functions == ()
