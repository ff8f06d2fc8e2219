"""The shipped reports and the default study are kept in step: the one is made for the other."""

from pathlib import Path

from softnum.train import DEFAULT_STUDY, Settings, design_gemms, load_design, make_network
from softnum.tta import DesignPoint, Gemm, load_reports, scalesim_variants
from softnum.tta.workloads import multiplier_areas


def default_points():
    network = make_network(Settings().network)
    points = []
    for case in DEFAULT_STUDY:
        design = load_design(case.design)
        gemms = design_gemms(design, network, case.batch)
        points.append(DesignPoint.from_table({"name": design.name, "hardware": design.hardware, "gemms": gemms}))
    return points


def test_the_shipped_reports_are_of_the_default_study():
    # else: python -m softnum.tta remake --requests FILE, with FILE from softnum.tta.simulators.write_requests
    assert list(load_reports().designs.values()) == default_points()


def test_every_default_design_has_a_time_and_an_area_but_the_user_format():
    stated, equal = scalesim_variants(default_points(), baseline="a-float32")
    assert set(stated.timings) == {case.design for case in DEFAULT_STUDY}
    assert equal.left_out.keys() == {"h-posit8"}
    assert equal.left_out["h-posit8"].startswith("no multiplier area is known for posit8; ")
    formats = {name for point in default_points() for name in point.formats}
    assert formats - set(multiplier_areas()) == {"posit8"}


def test_the_reports_of_the_tutorial_on_sparsity_are_of_its_designs():
    # else: softnum tta --designs ... --simulate --out FOLDER makes them in FOLDER/scalesim
    folder, network = Path(__file__).parents[2] / "examples" / "sparsity", make_network(Settings().network)
    for name, point in load_reports(folder / "reports").designs.items():
        design = load_design(folder / f"{name}.toml")
        assert point.gemms == tuple(map(Gemm.from_table, design_gemms(design, network, 32)))
        assert point.hardware.to_table() == design.hardware
