"""The demonstrations: their studies can be read, their tables come out of kept records, PyTorch's losses are ours."""

import gzip
import json

import numpy as np
import pytest

from benchmarks.demonstrations import plans, promotion, results, sums
from softnum.train import Settings
from tests.support.train_cases import needs_torch


@pytest.mark.parametrize("study", plans.studies())
def test_a_studys_designs_fit_its_networks(study):
    from softnum.train import load_design, make_network

    for experiment in plans.experiments(study):
        settings = experiment.settings
        network = make_network(settings.network, data=settings.data, **settings.network_options)
        assert len(set(experiment.names)) == len(experiment.names) and len(experiment.seeds) >= 3
        for design in map(load_design, experiment.designs):
            design.check_operators(network.operators)
            for position, name in enumerate(network.layer_names):
                design.layer(name, first=position == 0)


def test_what_is_kept_is_what_was_run(tmp_path, monkeypatch):
    from softnum.train import run_study

    monkeypatch.setattr(results, "RECORDS", tmp_path / "kept")
    settings = Settings(network_options={"sizes": (64, 8, 10)}, batch=256, epochs=2, evaluate_every=2)
    experiment = plans.Experiment("tiny", "Tiny", settings, ("a-float32", "b-binary16"), (1, 2), 0.2)
    records = run_study(experiment.cases, settings, seeds=(1, 2), out=tmp_path / "study" / "tiny", jobs=1)
    unfinished = tmp_path / "study" / "tiny" / "b-binary16" / "seed-2.jsonl"
    unfinished.write_bytes(b"\n".join(unfinished.read_bytes().split(b"\n")[:-2]) + b"\n")
    assert results.keep("study", experiment, tmp_path) == 3
    kept = results.RECORDS / "study" / "tiny" / "a-float32" / "seed-2.jsonl.gz"
    assert gzip.decompress(kept.read_bytes()) == records[1].read_bytes()
    found = results.curves("study", experiment)
    assert [(name, len(runs)) for name, runs in found.items()] == [("a-float32", 2), ("b-binary16", 1)]
    rows = [json.loads(line) for line in records[0].read_bytes().splitlines()[1:]]
    (first, *_) = found["a-float32"]
    assert first.losses.tolist() == [row["loss"] for row in rows]
    assert first.accuracies == {row["iteration"]: row["accuracy"] for row in rows if "accuracy" in row}
    reached = [row["iteration"] for row in rows if row.get("accuracy", 0) >= 0.2]
    assert first.reached(0.2) == (reached[0] if reached else None) and first.reached(2) is None
    _, table = results.table(experiment, found)
    accuracies = sorted(list(run.accuracies.values())[-1] for run in found["a-float32"])
    assert table[0][1] == f"{sum(accuracies) / 2:.3f} [{accuracies[0]:.3f} to {accuracies[1]:.3f}]"
    assert results.draw([(experiment, found)])[:4] == b"\x89PNG"


def test_a_run_that_diverged_is_said_to(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RECORDS", tmp_path)
    experiment = plans.Experiment("one", "One", Settings(), ("a-float32",), (1, 2, 3), 0.5)
    folder = tmp_path / "study" / "one" / "a-float32"
    folder.mkdir(parents=True)
    for seed, last in ((1, {"loss": 0.5, "accuracy": 0.75}), (2, {"loss": None, "diverged": True, "accuracy": 0.1})):
        rows = [{"config": {}}, {"iteration": 1, "loss": 2.0}, {"iteration": 2, **last, "finished": True}]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"seed-{seed}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    _, (row,) = results.table(experiment, results.curves("study", experiment))
    assert row == (
        "a-float32",
        "0.425 [0.100 to 0.750]",
        "0.425 [0.100 to 0.750]",
        "0.500, 1 of 2 diverged",
        "2, 1 of 2 runs",
    )


def test_pairs_are_compared_seed_by_seed(tmp_path, monkeypatch):
    (experiment,) = plans.experiments("gpt")
    assert experiment.pairs[0] == ("a-float32",) and len(experiment.pairs) == 8
    assert sum(experiment.pairs, ()) == experiment.designs
    monkeypatch.setattr(results, "RECORDS", tmp_path)
    losses = {  # of seeds 1 and 3
        "a-float32": (2.0, 3.0), "te-delayed-scaling-binary32": (2.25, 3.125), "te-delayed-scaling": (2.5, None),
        "bfloat16-hopper": (2.5,),
    }  # fmt: skip
    for design, values in losses.items():
        (folder := tmp_path / "gpt" / "shakespeare" / design).mkdir(parents=True)
        for seed, value in zip((1, 3), values, strict=False):
            rows = [{"config": {}}, *({"iteration": n, "loss": 4.0} for n in range(1, 21))]
            rows[-1] |= {"accuracy": 0.5, "held_out_loss": value, "finished": True}
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"seed-{seed}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    found = results.curves("gpt", experiment)
    heading, rows = results.table(experiment, found)
    assert heading[2] == "above a-float32" and len(rows) == 8
    assert rows[0] == ("a-float32", "2.500 [2.000 to 3.000]", "-", "-", "-")
    assert rows[1] == ("bfloat16", "-", "-", "2.500", "-")
    assert rows[2] == (
        "te-delayed-scaling", "2.688 [2.250 to 3.125]", "0.188 [0.125 to 0.250]", "2.500, 1 of 2 diverged", "0.250",
    )  # fmt: skip
    assert results.draw([(experiment, found)])[:4] == b"\x89PNG"


def test_differences_are_those_of_runs_of_the_same_seeds():
    def curve(seed, accuracy, loss, reaches, diverged=False):
        accuracies = {10: 0.1, reaches: 0.5, 40: accuracy}
        return results.Curve(seed, np.full(40, loss), accuracies, {}, diverged)

    experiment = plans.Experiment("one", "One", Settings(), ("a-float32", "b-binary16", "h-posit8"), (1, 2, 3, 4), 0.5)
    found = {
        "a-float32": [curve(seed, 0.6 + seed / 100, 1 + seed, 20) for seed in range(1, 5)],
        "b-binary16": [curve(seed, 0.62 + seed / 100 + shift, 1.5 + seed, 20 + seed)
                       for seed, shift in zip(range(1, 5), (-0.01, 0.01, -0.01, 0.01), strict=True)],
        "h-posit8": [curve(1, 0.6, 1, 20), curve(2, 0.6, 1, 20, diverged=True)],
    }  # fmt: skip
    heading, rows = results.differences(experiment, found)
    assert heading[0] == "design less a-float32" and heading[3] == "iterations to 0.5"
    # of -1, 1, -1, 1 the standard error is 1/sqrt(3); Student's t of 3 degrees of freedom is 3.182, 0.978
    assert rows[0] == ("b-binary16", "+2.00 ± 1.84 (2.40)", "+0.5000 ± 0.0000 (0.0000)", "+2.5 ± 2.1 (2.7)")
    assert rows[1] == ("h-posit8", "-", "-", "-")
    assert results.differences(experiment, found, "b-binary16")[1][0][:2] == ("a-float32", "-2.00 ± 1.84 (2.40)")
    with pytest.raises(ValueError, match="one has no runs of 'j-mxfp4' \\(it has a-float32, b-binary16, h-posit8"):
        results.differences(experiment, found, "j-mxfp4")
    made = results.Difference.of([0, 1, 2])
    assert made.text(1, 4) == "+1.0 ± 2.5 (3.1), 3 runs"


def test_studies_that_are_not_there():
    with pytest.raises(
        ValueError, match=r"no study is called 'wnag' \(studies: approximations, gpt, hopper, sources, wang"
    ):
        plans.experiments("wnag")


def test_long_sums_are_swamped_and_chunks_save_them():
    """A chain of 8192 terms of about 1 stops growing near 2^12, where half a unit in the last place is 4 of 8."""
    found = {line.name: line.errors[0] for line in sums.lines([8192], [1, 64])}
    assert 0.4 < found["chunk 1"] < 0.6
    assert found["chunk 64"] < 0.01 and found["stochastic"] < 0.1 and found["binary32"] < 1e-5
    assert np.array_equal(sums.terms(64, 2), sums.terms(64, 2))


@needs_torch
@pytest.mark.parametrize("network", ["mlp", "lenet5", "lstm", "transformer"])
@pytest.mark.parametrize("fmt", ["binary32", "binary64"])
def test_losses_are_pytorchs(network, fmt):
    from benchmarks.demonstrations import pytorch

    found = pytorch.compare(network, fmt)
    assert found.difference <= pytorch.LIMITS[fmt]
    assert len(found.losses) == 20 and found.losses[-1] < found.losses[0]


def test_promotion_bounds_the_error_of_a_long_product():
    core, promoted, binary32 = promotion.lines([256, 2048], [None, 128])
    for kind in ("normal", "uniform"):
        (_, short), (_, long) = core.errors[kind]
        assert long > 3 * short  # it grows with K
        assert promoted.errors[kind][1][1] < long / 10 and promoted.errors[kind][1][1] < promoted.errors[kind][0][1]
        assert binary32.errors[kind][1][1] < 1e-6
    assert promotion.table_rows([core], 1)[0][0] == "tensor core"
    assert promotion.draw([core, promoted, binary32], [256, 2048]).startswith(b"\x89PNG")
