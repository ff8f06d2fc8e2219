"""Scaling laws of several designs: terms that are there are found, others are not, and wrong mixes are refused."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta.arithmetic_law import fit_designs, read_any_law
from softnum.tta.law_runs import LawRun, read_runs, sums_of
from softnum.tta.scaling_law import fit_law, read_law

pytest.importorskip("scipy")

A, B, E, a, b = 60.0, 300.0, 1.4, 0.32, 0.37
WIDTHS = {3e4: 250.0, 1e5: 330.0, 3e5: 420.0}
G = {"float32": 0.0, "mx": 0.0, "fp8": 0.08, "nvfp4": 0.25}


def true_loss(n, d, operands, bits, products, sums):
    factor, power, slope = sums
    s = G[operands] + factor * (products / 100) ** power * 4.0 ** (-slope * (bits - 4))
    return E + A * math.exp(s) / n**a + B / d**b


def made(sums, noise=0.004, seed=1, bits=range(4, 13, 2)):
    """Runs of four designs, and of FP8 with narrow sums, of all products and of 32."""
    rng, found = np.random.default_rng(seed), []
    for n, width in WIDTHS.items():
        for d in (5e5, 1.5e6, 4e6, 1.2e7):
            cases = [("float32", "float32", 23), ("mx", "mx", 23), ("fp8", "fp8", 13), ("nvfp4", "nvfp4", 23)]
            cases = [(*case, width) for case in cases]
            cases += [(f"f{n}{'-c' * (k == 32)}", "fp8", n, k) for n in bits for k in (width, 32.0)]
            for design, operands, kept, products in cases:
                loss = true_loss(n, d, operands, kept, products, sums) * math.exp(noise * rng.standard_normal())
                found.append(LawRun(n, d, loss, design, operands, float(kept), products))
    return found


@pytest.fixture(scope="module")
def law():
    return fit_designs(made((0.3, 0.5, 1.0), seed=3), bootstrap=30)


def entered(law):
    return {term.name: term.entered for term in law.terms}


def test_terms_that_are_there_are_found_and_intervals_hold_them(law):
    found = entered(law)
    assert found["C"] and found["r"] and found["operands nvfp4"] and found["operands fp8"]
    assert not found["q"] and not found["operands mx"] and law.operands["mx"] == 0.0
    at = {term.name: term for term in law.terms}
    for name, true in (("r", 0.5), ("q", 1.0), ("operands nvfp4", 0.25), ("operands fp8", 0.08)):
        assert at[name].low <= true <= at[name].high
    kept = law.kept()
    assert kept["mx"] == (0.0, 0.0, 0.0) and kept["q"] == (1.0, 1.0, 1.0)
    value, low, high = kept["C"]
    assert value == law.sums[0] and low <= 0.3 * (law.middle[0] / 100) ** 0.5 <= high


def test_a_term_that_is_not_there_does_not_enter():
    flat = fit_designs(made((0.0, 0.0, 1.0), seed=2), bootstrap=30)
    assert flat.sums == (0.0, 0.0, 1.0) and "r" not in entered(flat) and not entered(flat)["C"]
    assert flat.terms[0].said == "bits of sums: not seen up to K = 420, down to 4 bits"
    bits_alone = fit_designs(made((0.3, 0.0, 1.0), seed=2), bootstrap=30)
    assert entered(bits_alone)["C"] and not entered(bits_alone)["r"] and bits_alone.sums[1] == 0.0
    assert [term.said for term in bits_alone.terms][1] == "K of sums: not seen up to K = 420, down to 4 bits"


def test_runs_of_a_seed_are_drawn_together_and_a_law_without_a_floor_is_fitted():
    """Of runs like real ones: E = 0, and seeds differ six times more than the designs of one seed.

    The optimiser followed log E to minus infinity here, and stopped with C = 0 and r = 0.1.
    """
    rng, runs = np.random.default_rng(3), []
    cases = [("float32", "float32", 23, None), ("fp4", "fp4", 23, None)]
    widths = itertools.product((4, 5, 6, 8, 13), (None, 32.0))
    cases += [(f"f{kept}{'-c' * bool(short)}", "fp8", kept, short) for kept, short in widths]
    for n, d, seed in itertools.product(WIDTHS, (2.5e5, 8e5, 2.4e6), (1, 2)):
        common = 0.012 * rng.standard_normal()
        for design, operands, kept, short in cases:
            products = short or WIDTHS[n]
            s = {"float32": 0.0, "fp8": 0.01, "fp4": 0.06}[operands] + 0.045 * (products / 160) * 4.0 ** (4 - kept)
            loss = (10 * math.exp(s) / n**0.14 + 2700 / d**0.62) * math.exp(common + 0.002 * rng.standard_normal())
            runs.append(LawRun(n, d, loss, design, operands, float(kept), products, seed))
    law = fit_designs(runs, baseline="float32", bootstrap=20)
    at = {term.name: term for term in law.terms}
    assert all(at[name].entered for name in ("C", "r", "operands fp4", "operands fp8")) and not at["q"].entered
    for name, true in (("r", 1.0), ("q", 1.0), ("operands fp4", 0.06), ("operands fp8", 0.01)):
        assert at[name].low <= true <= at[name].high
    told = law.of("f4", 500.0).loss(1e6, 2.4e6)
    true = 10 * math.exp(0.01 + 0.045 * 500 / 160) / 1e6**0.14 + 2700 / 2.4e6**0.62
    assert told.value == pytest.approx(true, rel=0.01) and told.low <= true <= told.high
    together, alone = (fit_law(those, bootstrap=30) for those in (runs, [run._replace(seed=None) for run in runs]))
    assert together.fitted == alone.fitted  # seeds change nothing but the intervals
    wide, narrow = (one.loss(1e6, 2.4e6) for one in (together, alone))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_predictions_hold_the_truth_of_a_size_that_was_held_out(law):
    told = law.of("f4", products=600.0).loss(1e6, 1.2e7)
    assert told.extrapolated and told.value == pytest.approx(
        true_loss(1e6, 1.2e7, "fp8", 4, 600.0, (0.3, 0.5, 1)), rel=0.02
    )
    assert told.low <= told.value <= told.high
    assert law.of("float32") == law.of("float32", products=250.0)  # 23 bits: no K is seen
    wide = law.of("float32", products=600.0).loss(1e6, 1.2e7)
    assert wide.value == pytest.approx(true_loss(1e6, 1.2e7, "float32", 23, 600.0, (0, 0, 1)), rel=0.01)
    assert law.effective("nvfp4", products=400.0) == pytest.approx(math.exp(-0.25 / a), rel=0.1)
    assert law.of("fp8", products=250.0, bits=4.0) == law.of("f4", products=250.0)


def test_a_law_of_designs_is_asked_near_its_runs(law):
    for ask, message in (
        (lambda: law.of("fp4"), "no design 'fp4'; it was fitted to f10, f10-c"),
        (lambda: law.of("f4"), "depends on K, and the runs of f4 have 250 to 420: state products"),
        (lambda: law.of("f4", 1e5), r"K = 100000 is far from the 32 to 420"),
        (lambda: replace(law, sums=(9.0, 9.0, 1.0)).of("f4", 4200.0), "its term of sums is too large there"),
        (lambda: law.of("f4", 100.0, bits=3.0), "sums of 3 bits lie beyond those of the runs, 4 to 23"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_runs_of_designs_are_checked():
    runs = made((0.0, 0.0, 1.0))
    for changed, message in (
        ([*runs, runs[0]._replace(design="")], "one names none"),
        ([run for run in runs if run.design == "fp8"], "takes two or more, got fp8"),
        ([*runs, runs[0]._replace(bits=4.0)], "runs of float32 differ in the roundings of operands or in the bits"),
        ([*runs, runs[0]._replace(design="x", operands="x")], "operands of x have 1 runs"),
        ([run for run in runs if run.tokens > 1e6], None),
    ):
        if message:
            with pytest.raises(ValueError, match=message):
                fit_designs(changed, bootstrap=20)
    with pytest.raises(ValueError, match="baseline 'y' is no design of the runs"):
        fit_designs(runs, baseline="y", bootstrap=20)
    with pytest.raises(ValueError, match="takes 20 drawings or more, got 5"):
        fit_designs(runs, bootstrap=5)


def test_a_law_of_designs_is_written_and_checked(law, tmp_path):
    file = tmp_path / "law.json"
    file.write_text(law.to_json())
    assert read_any_law(file) == law
    with pytest.raises(ValueError, match=r"not a law of schema softnum.law/1"):
        read_law(file)
    facts = json.loads(law.to_json())
    for change, message in (
        ({"more": 1}, "more"),
        ({"sums": [1.0]}, "contradict"),
        ({"draws": []}, "contradict"),
        ({"designs": {"f4": ["none", 4.0, 1.0, 2.0]}}, "contradict"),
        ({"designs": {"f4": 3}}, "not a whole law"),
        ({"base": {}}, "not a law of schema"),
    ):
        file.write_text(json.dumps(facts | change))
        with pytest.raises(ValueError, match=message):
            read_any_law(file)


# -- records -----------------------------------------------------------------------------------------------------------
def record(folder, seed=1, fraction_bits=13, chunk=None, loss=3.0, diverged=False, **config):
    unit = {"kind": "fused", "terms": 32, "fraction_bits": fraction_bits, "accumulator": "binary32"}
    if chunk:
        unit = {"kind": "ChunkedDotUnit", "inner": unit, "chunk": chunk, "accumulator": "binary32"}
    layers = {"fc": {"roles": {"weights": {"format": "e4m3fn"}}, "units": {"forward": unit}}}
    config = {
        "design": {"name": f"f{fraction_bits}", "layers": layers, "loss": {"scale": 1}},
        "gemms": [{"layer": "fc", "pass": "forward", "M": 2, "N": 3, "K": 320}], "network": {"vocabulary": 256},
        "data": {"name": "text", "train": 8, "held_out": 2, "sha256": "aa"}, "metric": "bits_per_byte", "epochs": 1,
        "tokens_per_sample": 64, "parameters": 1000, "batch": 4, "optimiser": {"name": "adamw"},
    } | config  # fmt: skip
    last = {"iteration": 2, "epoch": 1, "loss": 1.0, "bits_per_byte": loss, "finished": True}
    rows = [{"config": config, "seed": seed, "versions": {}}, last | ({"diverged": True} if diverged else {})]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{seed}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_records_say_their_operands_and_sums(tmp_path):
    record(tmp_path / "one" / "f13")
    record(tmp_path / "one" / "f4", fraction_bits=4, chunk=32)
    record(tmp_path / "one" / "f5", fraction_bits=5, loss=None, diverged=True)
    record(tmp_path / "one" / "aside", fraction_bits=6)
    (tmp_path / "one" / "runs.jsonl").write_text("a study's ledger\n")
    runs, excluded = read_runs([tmp_path / "one"], "bits_per_byte")
    assert [(run.design, run.bits, run.products) for run in runs] == [("f13", 13.0, 320.0), ("f4", 4.0, 32.0)]
    assert runs[0].operands == runs[1].operands != ""
    assert len(excluded) == 1 and excluded[0].endswith("diverged after 2 iterations")
    with pytest.raises(ValueError, match="are of one run; name each folder once"):
        read_runs([tmp_path, tmp_path / "one"], "bits_per_byte")
    (tmp_path / "runs.csv").write_text("parameters,tokens,bits_per_byte\n1,2,3\n")
    with pytest.raises(ValueError, match="tables and folders of records do not go together"):
        read_runs([tmp_path / "one", tmp_path / "runs.csv"], "bits_per_byte")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"data": {"name": "text-gcide", "train": 8, "held_out": 2, "sha256": "aa"}}, "do not belong to one law: data"),
        ({"data": {"name": "text", "train": 8, "held_out": 2, "sha256": "bb"}}, "as many samples and other texts"),
        ({"network": {"vocabulary": 512}}, "a vocabulary of 512 and 256"),
        ({"metric": "held_out_loss"}, "as metric"),
        ({"batch": 8}, "a batch of 8 and 4"),
        ({"epochs": 2}, "epochs: 2 and 1"),
        ({"optimiser": {"name": "muon"}}, 'optimiser "muon" and "adamw"'),
        ({"tokens_per_sample": None}, "does not say how many parameters and tokens"),
    ],
)
def test_records_that_do_not_fit_together_are_refused(other, message, tmp_path):
    record(tmp_path / "f13")
    record(tmp_path / "f13", seed=2, **other)
    with pytest.raises(ValueError, match=message):
        read_runs(tmp_path, "bits_per_byte")


def test_sums_of_other_units():
    def of(unit):
        layers = {"fc": {"units": {"forward": unit}}}
        return sums_of(
            {"design": {"layers": layers}, "gemms": [{"layer": "fc", "pass": "forward", "M": 1, "N": 1, "K": 96}]}
        )

    mad = {"kind": "mad", "accumulator": "e6m9", "lanes": 1, "chunk": None, "outer_accumulator": None}
    assert of(mad) == (9.0, 96.0, ["mad"])
    assert of(mad | {"lanes": 4}) == (9.0, 24.0, ["mad"])
    assert of(mad | {"chunk": 16}) == (9.0, 22.0, ["mad"])  # 16, then 6 of these
    assert of(mad | {"chunk": 16, "outer_accumulator": "binary32"}) == (9.0, 16.0, ["mad"])
    assert of({"kind": "block_dot", "accumulator": "binary32", "inner": mad}) == (9.0, 96.0, ["mad"])
    with pytest.raises(ValueError, match="unit of kind 'custom' does not say how wide its sums are"):
        of({"kind": "custom", "function": "mine.c:mad"})
    with pytest.raises(ValueError, match="the design says no unit of fc, forward"):
        sums_of({"design": {"layers": {}}, "gemms": [{"layer": "fc", "pass": "forward", "K": 1}]})
    with pytest.raises(ValueError, match="lists no matrix products"):
        sums_of({"design": {"layers": {}}})


def test_commands_fit_and_predict_designs(tmp_path):
    table, out = tmp_path / "runs.csv", tmp_path / "law.json"
    rows = [
        ",".join(map(repr, (*run[:3], run.bits, run.products))) + f",{run.design},{run.operands}"
        for run in made((0.3, 0.0, 1.0))
    ]
    table.write_text("parameters,tokens,loss,bits,products,design,operands\n" + "\n".join(rows) + "\n")

    def command(*words):
        return CliRunner().invoke(build_app(), ["law", *map(str, words)])

    result = command("fit", table, "--bootstrap", 20, "--out", out)
    assert result.exit_code == 0 and "loss of 168 runs of 14 designs" in result.stdout, result.output
    assert "bits of sums: enters" in result.stdout and "K of sums: not seen up to K = 420" in result.stdout
    result = command("predict", out, "--parameters", 1e6, "--tokens", 2e7, "--design", "f4")
    assert result.exit_code == 0 and "1e+06 parameters after 2e+07 tokens, f4: " in result.stdout, result.output
    assert "a parameter is worth 0.3" in result.stdout
    result = command("predict", out, "--parameters", 1e6, "--tokens", 2e7)
    assert result.exit_code == 2 and "is a law of several designs; choose one with --design" in result.stderr
    table.write_text("".join(table.read_text().replace(",fp8\n", ",\n").partition("\n")[0]) + "\n1,2,3,4,,x,y\n")
    result = command("fit", table)
    assert result.exit_code == 2 and "bits and products go together" in result.stderr


@pytest.mark.slow  # a minute: 30 sets of runs each
@pytest.mark.parametrize(("sums", "most"), [((0.0, 0.0, 1.0), 5), ((0.3, 0.5, 1.0), None)])
def test_intervals_cover_as_often_as_they_say(sums, most):
    """Of 30 sets of runs, the term of sums enters in at most 5 where it is none; else intervals of r hold the truth."""
    laws = [fit_designs(made(sums, seed=100 + seed), bootstrap=60) for seed in range(30)]
    if most is not None:
        assert sum(law.sums[0] != 0.0 for law in laws) <= most
        return
    powers = [next(term for term in law.terms if term.name == "r") for law in laws]
    assert all(term.entered for term in powers) and sum(term.low <= 0.5 <= term.high for term in powers) >= 24
    told = [law.of("f4", products=600.0).loss(1e6, 1.2e7) for law in laws]
    true = true_loss(1e6, 1.2e7, "fp8", 4, 600.0, sums)
    assert sum(one.low <= true <= one.high for one in told) >= 24
