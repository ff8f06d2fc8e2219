"""Interactions of combined optimisations, and cost and energy to accuracy, with hand-computed numbers."""

import math
from dataclasses import replace

import pytest

from softnum.tta import (
    Evaluation,
    Gemm,
    IterationTime,
    Operation,
    Record,
    Variant,
    Workload,
    combine_study,
    conclude,
    energy_of,
    interaction,
    read_results,
    write_workloads,
)
from softnum.tta.outcomes import Cost, Factors, bootstrap_interval, predicted_speedup, read_combination, read_costs


def runs(design, batch, *reached, total=1000):
    return [
        Record(
            design, seed, batch, total,
            tuple(Evaluation(i, 0.9 if at is not None and i >= at else 0.2) for i in range(10, total + 1, 10)), {}, {},
        )
        for seed, at in enumerate(reached)
    ]  # fmt: skip


# base: 400 iterations of 2 s; wide (batch x 8): 100 of 4 s; fp8: 400 of 1 s; both: 200 of 2 s
RECORDS = [
    *runs("base", 32, 400, 400, 400), *runs("wide", 256, 100, 100, 100), *runs("fp8", 32, 400, 400, 400),
    *runs("both", 256, 200, 200, 200),
]  # fmt: skip
SECONDS = {"base": 2.0, "wide": 4.0, "fp8": 1.0, "both": 2.0}


def study_of(records=RECORDS, seconds=SECONDS, **more):
    times = {name: t if isinstance(t, IterationTime) else IterationTime(name, t) for name, t in seconds.items()}
    return combine_study(records, times, target=0.9, baseline="base", **more)


def test_the_lecture_multiplies_to_1011():
    """Seed lecture on DAWNBench: 1.25x, 3.1x, 3x, 29x and 3x; it prints the product without decimals."""
    assert predicted_speedup([1.25, 3.1, 3, 29, 3]) == pytest.approx(1011.375, rel=1e-15)
    for wrong in ([], [2, 0], [2, -1], [math.inf], ["2"]):
        with pytest.raises(ValueError, match="speed-up"):
            predicted_speedup(wrong)


def test_an_interaction_by_hand():
    found = interaction(study_of(), "base", ["wide", "fp8"], "both")
    wide, fp8 = found.individual
    assert (wide.throughput, wide.efficiency, wide.speedup) == (4.0, 0.5, 2.0)
    assert (fp8.throughput, fp8.efficiency, fp8.speedup) == (2.0, 1.0, 2.0)
    assert found.predicted == Factors(8.0, 0.5)
    assert found.measured == Factors(8.0, 0.25)
    assert found.ratio == Factors(1.0, 0.5)  # the hardware multiplies, the arithmetic does not
    assert found.interval == (0.5, 0.5)
    assert found.predicted.speedup == predicted_speedup([wide.speedup, fp8.speedup]) == 4.0
    assert "4.00x on paper, 2.00x measured, 0.50 [0.50, 0.50] of it" in found.text()


def test_an_interaction_with_spread_and_without_times():
    records = [
        *runs("base", 32, 300, 400, 500), *runs("wide", 256, 90, 100, 110), *runs("fp8", 32, 300, 400, 500),
        *runs("both", 256, 190, 200, None),
    ]  # fmt: skip
    study = study_of(records)
    found = interaction(study, "base", ["wide", "fp8"], "both")
    assert found.ratio.speedup == 0.5
    low, high = found.interval
    assert 0 == low < 0.5 < high  # resamples in which the combined design never arrives
    assert interaction(study, "base", ["wide", "fp8"], "both") == found
    some = {name: seconds for name, seconds in SECONDS.items() if name != "both"}
    from softnum.tta import Variant

    times = {name: IterationTime(name, value) for name, value in some.items()}
    untimed = combine_study(records, Variant("v", times, {"both": "no area"}), target=0.9, baseline="base")
    bare = interaction(untimed, "base", ["wide", "fp8"], "both")
    assert (bare.measured.throughput, bare.ratio.speedup, bare.ratio.efficiency) == (None, None, 0.5)
    assert bare.interval is not None
    assert ", - of it (throughput -, efficiency 0.50 [" in bare.text()
    never = study_of([*runs("base", 32, 400), *runs("wide", 256, None), *runs("fp8", 32, 400), *runs("both", 256, 200)])
    lost = interaction(never, "base", ["wide", "fp8"], "both")
    assert (lost.predicted.efficiency, lost.ratio.speedup, lost.interval) == (None, None, None)


def test_interactions_of_a_study_and_their_names():
    study = study_of(combinations=[(("wide", "fp8"), "both")])
    assert [found.combined for found in study.interactions] == ["both"]
    names = list(SECONDS)
    assert read_combination("wide+fp8=both", names) == (("wide", "fp8"), "both")
    for text, message in (
        ("wide=both", 'must be like "a\\+b=c"'),
        ("wide+fp8", 'must be like "a\\+b=c"'),
        ("wide++fp8=both", 'must be like "a\\+b=c"'),
        ("wide+pf8=both", "no design 'pf8' in the study .*did you mean 'fp8'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_combination(text, names)
    with pytest.raises(ValueError, match="at least two parts, got wide"):
        interaction(study, "base", ["wide"], "both")
    with pytest.raises(ValueError, match="must differ"):
        interaction(study, "base", ["base", "wide"], "both")
    with pytest.raises(KeyError, match="no design 'z'"):
        interaction(study, "base", ["wide", "z"], "both")


def test_cost_and_energy_by_hand():
    seconds = {
        "base": IterationTime("base", 2.0, samples=(1.9, 2.0, 2.1)),
        "wide": IterationTime("wide", 4.0, joules=0.25, source="a meter"),
    }
    records = [*runs("base", 32, 300, 400, 500), *runs("wide", 256, 100, None, 200)]
    costs = {"base": Cost(rent_per_hour=3.6, price=8000.0), "wide": Cost(price=100.0)}
    study = study_of(records, seconds, costs=costs, energies={"base": (0.5, "a table"), "wide": (9.0, "not used")})
    base, wide = study["base"], study["wide"]
    assert base.cost.to_accuracy.median == pytest.approx(0.8)  # 800 s at a thousandth of a dollar a second
    assert base.cost.per_throughput == 8000 / (32 / 2.0)
    assert base.intervals.cost == pytest.approx([end / 1000 for end in base.intervals.tta])
    assert (base.energy.joules, base.energy.source) == (0.5, "a table")
    assert (base.energy.to_accuracy.median, base.intervals.energy) == (200.0, (150.0, 250.0))
    assert (wide.cost.to_accuracy, wide.cost.per_throughput, wide.intervals.cost) == (None, 100 / 64, None)
    # what the source of the time knows goes before what is given beside it
    assert (wide.energy.joules, wide.energy.source) == (0.25, "a meter")
    assert wide.intervals.energy == tuple(0.25 * end for end in bootstrap_interval([100, math.inf, 200]))
    assert study_of()["base"].cost is study_of()["base"].energy is None


def test_costs_as_the_command_takes_them():
    costs = read_costs(["a", "b", "c"], rent=["a=1", "2"], price=["c=50"])
    assert costs == {"a": Cost(1.0), "b": Cost(2.0), "c": Cost(2.0, 50.0)}
    assert read_costs(["a"]) == {}
    for options, message in (
        ({"rent": ["x=1"]}, "--rent 'x=1': no design 'x' in the study"),
        ({"rent": ["free"]}, "--rent must be a number of dollars above 0.* got 'free'"),
        ({"price": ["-5"]}, "--price must be a number of dollars above 0"),
        ({"price": ["inf"]}, "--price must be a number of dollars above 0"),
        ({"rent": ["1", "2"]}, "--rent is given twice for every design: 1 and 2"),
        ({"rent": ["a=1", "a=1"]}, "--rent is given twice for a"),
    ):
        with pytest.raises(ValueError, match=message):
            read_costs(["a", "b"], **options)
    with pytest.raises(ValueError, match="needs a rent per hour or a price"):
        Cost()
    with pytest.raises(ValueError, match="the price must be finite and above 0, got 0"):
        Cost(price=0)


def test_energy_by_the_cited_table_where_the_times_know_none(tmp_path, capsys):
    gemm = Gemm("fc", "forward", 32, 10, 64, bits=8, formats=("e5m2", "e5m2"))
    work = Workload("one", "base", 32, (Operation("fc", "forward", "gemm", 40960, 2688, 320, gemm=gemm),))
    write_workloads(tmp_path / "workloads.json", [work])
    times = {"base": IterationTime("base", 2.0), "wide": IterationTime("wide", 4.0, joules=0.25, source="a meter")}
    records = [*runs("base", 32, 300, 400, 500), *runs("wide", 256, 100, 110, 120)]
    (study,) = conclude(records, [Variant("v", times)], target=0.9, baseline="base", out=tmp_path)
    joules = energy_of(work).joules
    assert study["base"].energy.joules == joules
    assert study["base"].energy.source.startswith("estimated by the table 45nm: M. Horowitz")
    assert study["base"].energy.to_accuracy.median == 400 * joules
    assert study["wide"].energy.joules == 0.25
    # what the estimate rests on is said with the result, once
    assert "energy: product of e5m2: 8-bit float, precision 3, charged as int8 (proxy)" in study.assumptions
    found = read_results(tmp_path)
    assert {row["role"] for row in found["sources"]} == {"workloads"}
    assert "Energy to target" in capsys.readouterr().out
    # a table that has no such entry is no reason to lose a study
    wide = Gemm("fc", "forward", 32, 10, 64, bits=64, formats=("binary64", "binary64"))
    work = Workload("one", "base", 32, (Operation("fc", "forward", "gemm", 40960, 2688, 320, gemm=wide),))
    write_workloads(tmp_path / "workloads.json", [work])
    (study,) = conclude(records, [Variant("v", times)], target=0.9, baseline="base", out=tmp_path)
    assert study["base"].energy is None
    assert "no energy of base: " in study.notes[0] and "no entry as wide as it" in study.notes[0]


def test_workloads_of_another_comparison_give_no_energy(tmp_path):
    gemm = Gemm("fc", "forward", 32, 10, 64, bits=8, formats=("e5m2", "e5m2"))
    work = Workload("one", "base", 32, (Operation("fc", "forward", "gemm", 40960, 2688, 320, gemm=gemm),))
    write_workloads(tmp_path / "workloads.json", [work])
    times = [Variant("v", {"base": IterationTime("base", 2.0)})]

    def energy(batch, *gemms):
        config = {"gemms": [g.to_table() for g in gemms]}
        records = [replace(record, config=config) for record in runs("base", batch, 300, 400)]
        (study,) = conclude(records, times, target=0.9, baseline="base", out=tmp_path)
        return study["base"].energy

    assert energy(32, gemm).joules == energy_of(work).joules
    with pytest.raises(ValueError, match="workloads.json: base .*its batch is 32, and the run's is 64.*--out"):
        energy(64, gemm)
    with pytest.raises(ValueError, match="workloads.json: base .*its matrix products are not the run's"):
        energy(32, replace(gemm, k=128))
