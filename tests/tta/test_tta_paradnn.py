"""ParaDnn: generated networks, sweeps of their roofline, what is read from them, and the command."""

import csv
import functools
import json
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import device, roofline
from softnum.tta.architectures import (
    SWEEPS,
    Precision,
    bottleneck,
    fully_connected,
    lower,
    memory_floor,
    models,
    recurrent,
    residual,
    sweep,
)
from softnum.tta.architectures.sweep_analysis import against, heat_map, sensitivity, summary
from softnum.tta.architectures.sweep_check import CHECKED_ARRAY, LARGEST, check_sample, check_sweeps, ratios
from softnum.tta.architectures.sweep_measured import read_measured
from softnum.tta.architectures.sweep_overlay import overlay
from softnum.tta.architectures.sweep_plot import plot_against, plot_sweep

swept = functools.cache(sweep)  # not to be changed by a test

DATA = Path(__file__).parent / "data" / "paradnn" / "tpu_v2_fc.csv"


def test_there_are_thousands_of_models():
    counts = {kind: sum(1 for _ in models(kind)) for kind in SWEEPS}
    assert counts == {"fc": 1944, "cnn-residual": 1080, "cnn-bottleneck": 1080, "rnn": 720, "lstm": 720, "gru": 720}


def test_parameters_of_generated_networks_by_hand():
    assert fully_connected(4, 32, 2000, 200).parameters == 2001 * 32 + 3 * 33 * 32 + 33 * 200
    # torchvision's ResNet-18 and -50 with a projection in the first group: of 18 an additional one
    assert residual(2, 64, 224, 1000).parameters == 11_689_512 + 64 * 64 + 2 * 64
    assert recurrent("rnn", 2, 100, 10, 32).parameters == 32 * 100 + 2 * (200 * 100 + 100) + 101 * 32
    assert recurrent("gru", 1, 100, 10, 32).parameters == 3200 + 3 * (200 * 100 + 100) + 3232
    channels, total = 16, 49 * 3 * 16 + 2 * 16
    for width in (16, 32, 64, 128):
        convolutions = channels * width + 9 * width**2 + 4 * width**2 + 4 * width * channels
        total += convolutions + 2 * (width + width + 4 * width + 4 * width)
        channels = 4 * width
    assert bottleneck(1, 16, 100, 500).parameters == total + 513 * 500


@pytest.mark.parametrize("kind", SWEEPS)
def test_the_folded_path_gives_the_times_of_the_whole_one(kind):
    found = list(models(kind))
    for sizes, network in found[:: len(found) // 5]:
        batch = sizes["batch"]
        whole, folded = (lower(network, batch, "bfloat16", "rmsprop", fold=fold) for fold in (False, True))
        assert (folded.flops, folded.bytes) == (whole.flops, whole.bytes)
        assert Counter((g.shape, g.bits) for g in whole.gemms for _ in range(g.count)) == Counter(
            (g.shape, g.bits) for g in folded.gemms for _ in range(g.count)
        )
        times = [roofline(work, device("tpu-v2")).seconds for work in (whole, folded)]
        assert times[1] == pytest.approx(times[0], rel=1e-12)


def test_memory_floor_is_the_sum_of_the_tensors_that_it_names():
    for network in (fully_connected(8, 64, 2000, 200), recurrent("lstm", 2, 100, 10, 32), residual(1, 16, 100, 500)):
        work = lower(network, 32, "bfloat16", "rmsprop")
        kept = sum(t.bytes for t in work.tensors if t.tensor_class in ("optimiser_state", "feature_maps"))
        assert memory_floor(network, 32, Precision.named("bfloat16")) == kept
    alone = memory_floor(network, 32, Precision.named("bfloat16"))
    assert alone > memory_floor(network, 32, Precision.named("bfloat16"), cores=8)


def test_models_that_do_not_fit_a_tpu_v2_are_those_that_failed_there():
    # scripts/data/tpu_fc.json of the authors lists what ran out of memory: of these groups, whatever the batch; besides
    # only 128 layers of 2048 nodes at batch 16384, which the floor puts below the limit
    rows = swept("fc", "tpu-v2").rows
    failed = {(row["layers"], row["nodes"]) for row in rows if not row["fits"]}
    assert failed == {(16, 8192), (32, 8192), (64, 8192), (128, 8192), (64, 4096), (128, 4096)}
    assert all(not row["fits"] for row in rows if (row["layers"], row["nodes"]) in failed)


def test_the_roofline_is_faster_than_what_the_authors_measured_and_ranks_models_as_they_did():
    one = swept("fc", "tpu-v2")
    found = overlay(one, read_measured(DATA, list(SWEEPS), "tpu-v2")["fc"])
    with DATA.open() as lines:
        measured = {
            tuple(int(row[name]) for name in one.hyperparameters): 1 / float(row["steps_per_second"])
            for row in csv.DictReader(lines)
        }
    estimated = {sizes: lower_time(sizes) for sizes in measured}
    ratios = sorted(measured[sizes] / estimated[sizes] for sizes in measured)
    errors = found.measured
    assert (errors["models"], errors["left_out"], errors["faster"], errors["measured_that_do_not_fit"]) == (48, 0, 0, 0)
    assert [errors["least"], errors["most"]] == pytest.approx([ratios[0], ratios[-1]]) and ratios[0] > 1
    assert errors["median"] == pytest.approx((ratios[23] + ratios[24]) / 2)
    rank = spearmanr(list(measured.values()), [estimated[sizes] for sizes in measured]).statistic
    assert errors["rank_correlation"] == pytest.approx(rank, abs=1e-6) and rank > 0.9
    # large networks come nearest
    nearest = min(measured, key=lambda sizes: measured[sizes] / estimated[sizes])
    assert measured[nearest] > 0.05


def lower_time(sizes):
    work = lower(fully_connected(*sizes[:4]), sizes[4], "bfloat16", "rmsprop", fold=True)
    return roofline(work, device("tpu-v2")).seconds


def test_a_sweep_s_rows_follow_from_its_workloads():
    found = sweep("lstm", "v100", ranges={"layers": [5], "embedding": [500], "batch": [64]})
    assert found.precision == "mixed-float16" and found.peak == 125e12
    for row in found.rows:
        network = recurrent("lstm", row["layers"], row["embedding"], row["length"], row["vocabulary"])
        work = lower(network, 64, "mixed-float16", "rmsprop")
        assert (row["flops"], row["bytes"], row["parameters"]) == (work.flops, work.bytes, work.parameters)
        assert row["seconds"] == pytest.approx(roofline(work, device("v100")).seconds)
        assert row["utilisation"] == row["flops"] / row["seconds"] / 125e12 and 0 < row["utilisation"] < 1


def test_regression_finds_weights_that_were_put_in():
    found = sweep("fc", "v100", ranges={"layers": [4, 8], "inputs": [2000], "outputs": [200]})
    for row in found.rows:
        row["utilisation"] = row["batch"] ** 0.5 * row["nodes"] ** 0.25
    weights = {row["hyperparameter"]: row for row in sensitivity(found)}
    assert set(weights) == {"layers", "nodes", "batch"}
    # both have nine values, doubling, so that the standardised weights are as the exponents
    a, b = weights["batch"]["log_weight"], weights["nodes"]["log_weight"]
    assert a / b == pytest.approx(2, rel=1e-3) and a * a + b * b == pytest.approx(1, rel=1e-3)
    assert abs(weights["layers"]["log_weight"]) < 1e-6 and weights["layers"]["log_r2"] == 1


def test_heat_maps_leave_out_what_does_not_fit():
    found = swept("fc", "tpu-v2")
    cells = {(row["nodes"], row["batch"]): row for row in heat_map(found)}
    assert cells[8192, 64]["models"] == 2 * 2 * 2 and cells[32, 64]["models"] == 6 * 2 * 2
    values = [row["utilisation"] for row in found.fitting if (row["nodes"], row["batch"]) == (512, 256)]
    assert cells[512, 256]["utilisation"] == pytest.approx(sum(values) / len(values))
    # the paper's finding: utilisation grows with batch and with nodes
    for a, b in (((512, 64), (512, 16384)), ((32, 1024), (8192, 1024))):
        assert cells[a]["utilisation"] < cells[b]["utilisation"]


def test_a_speedup_lies_between_the_ratios_of_bandwidth_and_peak():
    rows = against(swept("fc", "tpu-v2"), swept("fc", "v100"))
    speedups = [row["speedup"] for row in rows]
    assert 180 / 125 <= min(speedups) and max(speedups) == pytest.approx(2400 / 900)
    with pytest.raises(ValueError, match="differ in models"):
        against(swept("rnn", "tpu-v2"), swept("lstm", "tpu-v2"))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: list(models("cnn")), "did you mean 'rnn'|unknown sweep 'cnn'"),
        (lambda: list(models("fc", {"node": [4]})), "did you mean 'nodes'"),
        (lambda: list(models("fc", {"nodes": []})), "nodes has no value"),
        (lambda: list(models("fc", {"nodes": [0]})), "nodes must be at least 1"),
        (lambda: fully_connected(0, 1, 1, 1), "layers must be at least 1"),
        (lambda: sweep("fc", "tpu-v9"), "tpu-v"),
        (lambda: sweep("fc", "tpu-v2", "float61"), "unknown precision"),
        (lambda: sensitivity(swept("rnn", "v100"), "speed"), "no numbers 'speed'"),
        (lambda: check_sweeps(["fc"], 51, "x"), "50 can be checked"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_pictures_have_the_same_bytes_each_time(tmp_path):
    found, other = (swept("gru", name) for name in ("tpu-v2", "v100"))
    for name in ("a", "b"):
        plot_sweep(tmp_path / f"{name}.png", found)
        plot_against(tmp_path / f"{name}-against.png", found, other)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a-against.png").read_bytes() == (tmp_path / "b-against.png").read_bytes()


def test_the_command_writes_what_it_says(tmp_path):
    done = CliRunner().invoke(build_app(), ["sweep", "rnn", "--against", "v100", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    table = json.loads((tmp_path / "rnn-tpu-v2.json").read_text())
    assert table["estimated"] == "analytic roofline" and len(table["models"]) == 720
    rows = list(csv.DictReader((tmp_path / "rnn-tpu-v2.csv").read_text().splitlines()))
    assert [float(row["seconds"]) for row in rows] == [row["seconds"] for row in table["models"]]
    names = {path.name for path in tmp_path.iterdir()}
    assert {"rnn-v100.png", "rnn-tpu-v2-heat.csv", "rnn-tpu-v2-sensitivity.csv", "rnn-tpu-v2-against-v100.png"} < names
    assert f"over {summary(swept('rnn', 'v100'))['fit']} models" in done.output
    # of an even number of models the median is halfway between two
    few = ["sweep", "rnn", "--against", "v100", "--range", "layers=1,13", "--range", "embedding=100,900", "--range",
           "length=10", "--range", "vocabulary=2", "--range", "batch=16", "--out", str(tmp_path / "few")]  # fmt: skip
    done = CliRunner().invoke(build_app(), few)
    with open(tmp_path / "few" / "rnn-tpu-v2-against-v100.csv", newline="") as file:
        values = sorted(float(row["speedup"]) for row in csv.DictReader(file))
    assert len(values) == 4 and f"{values[1]:.2f}" != f"{values[2]:.2f}"
    assert f"median {(values[1] + values[2]) / 2:.2f}, over 4 models" in done.output


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["fcc"], "did you mean 'fc'"),
        (["fc", "--device", "tpu-v1"], "tpu-v"),
        (["fc", "--against", "tpu-v2"], "name another device"),
        (["fc", "--range", "nodes"], "takes a name and integers"),
        (["all", "--range", "nodes=4"], "one kind of network"),
        (["fc", "--range", "nodes=4", "--range", "nodes=8"], "--range has 'nodes' twice"),
        (["fc", "--range", "steps=4"], "no hyper-parameter 'steps'. It has layers"),
        (["cnn"], "unknown sweep"),
        (["fc", "--check", "99"], "50 can be checked"),
    ],
)
def test_the_command_refuses_with_code_2(arguments, message, tmp_path):
    done = CliRunner().invoke(build_app(), ["sweep", *arguments, "--out", str(tmp_path)])
    assert done.exit_code == 2 and message in done.output


def test_the_sample_for_scale_sim_is_small_and_of_every_kind():
    for kind in SWEEPS:
        sample = check_sample(kind, 8)
        assert 4 <= len(sample) <= 8
        for _, point in sample:
            assert sum(m * n * k for m, n, k in {gemm.shape for gemm in point.gemms}) <= LARGEST
            assert point.hardware == CHECKED_ARRAY


@pytest.mark.slow
def test_scale_sim_is_slower_than_the_roofline_by_no_more_than_its_latencies(tmp_path):
    """48 models, some minutes; makes SCALE-Sim's environment if need be."""
    rows = check_sweeps(list(SWEEPS), 48, tmp_path)
    assert all(row["ratio"] >= 1 for row in rows)  # the roofline is a bound
    assert [row["kind"] for row in ratios(rows)] == [*SWEEPS, "all"]
