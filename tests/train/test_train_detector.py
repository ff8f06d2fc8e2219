"""The detector: scenes, boxes and cells, its loss, mean average precision by hand, PyTorch's losses, resumption."""

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import twins
from softnum.train import SGD, Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets import scenes
from softnum.train.datasets.boxes import average_precision, mean_average_precision, overlap, suppress
from softnum.train.datasets.pixels import Pixels
from softnum.train.datasets.sets import DATA_SETS, DataSet
from softnum.train.engine.backend import NumpyBackend
from softnum.train.inspect.gradients import check_gradients
from softnum.train.layers.losses import smooth_l1, total
from softnum.train.runs.loop import read_rows
from tests.support.train_cases import BINARY64, MIXED, interrupted, judge_along_directions, moved, needs_torch

BACKEND = NumpyBackend(np.float64)


# -- scenes ------------------------------------------------------------------------------------------------------------
def pictures(count=30, seed=0):
    """Images with rectangles of different sizes, and one that is black."""
    rng, images = np.random.default_rng(seed), np.zeros((count, 28, 28), np.uint8)
    for image in images[1:]:
        (top, left), (height, width) = rng.integers(0, 14, 2), rng.integers(3, 15, 2)
        image[top : top + height, left : left + width] = rng.integers(1, 256, (height, width))
        image[top, left] = image[top + height - 1, left + width - 1] = 255
    return images.reshape(count, -1), np.arange(count) % 10


def test_scenes_are_their_garments():
    images, labels = pictures()
    got, garments = scenes.compose(images, labels, 0, 40)
    counts = (garments[:, :, 0] >= 0).sum(axis=1)
    assert set(counts.tolist()) == {1, 2, 3, 4}
    for scene, rows, count in zip(got.reshape(-1, 64, 64), garments, counts, strict=True):
        assert (rows[count:] == -1).all()
        covered = np.zeros((64, 64), bool)
        for kind, top, left, bottom, right in rows[:count].tolist():
            assert 0 <= top < bottom <= 64 and 0 <= left < right <= 64
            covered[top:bottom, left:right] = True
            fits = []
            for image in images[labels == kind].reshape(-1, 28, 28):
                y, x = np.nonzero(image)
                cut = image[y.min() : y.max() + 1, x.min() : x.max() + 1] if len(y) else image
                fits.append(cut.shape == (bottom - top, right - left) and (scene[top:bottom, left:right] >= cut).all())
            assert any(fits)
        assert not scene[~covered].any()
        centres = np.stack([rows[:count, 1] + rows[:count, 3], rows[:count, 2] + rows[:count, 4]], axis=1)
        gaps = np.abs(centres[:, None] - centres).max(axis=2) + np.eye(count) * 99
        assert gaps.min() >= 32  # half pixels


def test_scenes_do_not_depend_on_how_many_there_are():
    images, labels = pictures()
    more, fewer, others = (scenes.compose(images, labels, *args) for args in ((0, 9), (0, 4), (1, 4)))
    for a, b, c in zip(more, fewer, others, strict=True):
        assert np.array_equal(a[:4], b) and not np.array_equal(b, c)


def test_garments_that_find_no_place_are_left_out(monkeypatch):
    images, labels = pictures()
    monkeypatch.setattr(scenes, "APART", 64)
    assert ((scenes.compose(images, labels, 0, 20)[1][:, :, 0] >= 0).sum(axis=1) == 1).all()


@pytest.mark.slow
def test_the_scenes_of_fashion_mnist():
    if not Path("/usr/share/datasets/fashion-mnist").is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    data = DATA_SETS["fashion-scenes"].load(None)
    assert data.describe() == {
        "name": "fashion-scenes", "train": 4000, "held_out": 500,
        "sha256": "85578339ccfa93bb8cee17928bef84badd2c8300329d5ec46ac7e03411715b27",
    }  # fmt: skip


# -- boxes -------------------------------------------------------------------------------------------------------------
def test_overlaps_by_hand():
    box = [0, 0, 4, 4]
    others = [[0, 0, 4, 4], [2, 2, 6, 6], [0, 4, 4, 8], [1, 1, 3, 3], [3, 3, 1, 1], [0, 0, 4, 0], [-4, -4, 8, 8]]
    assert overlap(box, np.array(others)).tolist() == [1.0, 4 / 28, 0.0, 0.25, 0.0, 0.0, 16 / 144]
    assert overlap([4, 4, 0, 0], np.array([[0, 0, 4, 4], [4, 4, 0, 0]])).tolist() == [0.0, 0.0]
    assert overlap(box, np.zeros((0, 4))).shape == (0,)


def test_suppression_by_hand():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [0, 5, 10, 15], [0, 0, 10, 10], [0, 6, 10, 16], [0, 0, 5, 10]])
    # the second overlaps the first by 0.9; the fifth the third by 9 / 11; the last the first by 0.5, which stays
    assert suppress(np.zeros(6, int), boxes[[0, 1, 2, 4, 5]]).tolist() == [0, 2, 4]
    assert suppress(np.array([0, 0, 0, 1, 0, 0]), boxes).tolist() == [0, 2, 3, 5]
    assert suppress(np.zeros(0, int), np.zeros((0, 4))).tolist() == []


@pytest.mark.parametrize(
    ("right", "things", "want"),
    [
        ([1, 1], 2, 1.0),
        ([0, 0], 2, 0.0),
        ([], 3, 0.0),
        ([1, 0, 1], 2, (1 + 2 / 3) / 2),
        ([0, 1, 1, 1], 3, 0.75),  # the precision that counts is the largest further on: 3 / 4 each time
        ([1, 0, 0, 1, 0, 1], 4, (1 + 1 / 2 + 1 / 2) / 4),
    ],
)
def test_average_precisions_by_hand(right, things, want):
    assert math.isclose(average_precision(BACKEND, np.array(right, bool), things), want, abs_tol=1e-15)


def found(*rows):
    """Detections of a scene: class, score, box."""
    return (
        np.array([row[0] for row in rows], int), np.array([row[1] for row in rows], float),
        np.array([row[2] for row in rows], float).reshape(-1, 4),
    )  # fmt: skip


THING, OTHER, FAR = [0, 0, 8, 8], [0, 8, 8, 16], [40, 40, 48, 48]
LABELS = np.array([[[1, *THING], [1, *OTHER]], [[1, *THING], [-1] * 5]])


@pytest.mark.parametrize(
    ("detections", "want"),
    [
        ([found((1, 0.9, THING), (1, 0.8, OTHER)), found((1, 0.7, THING))], 1.0),
        (
            [found((1, 0.9, THING), (1, 0.8, THING)), found((1, 0.7, THING))],
            (1 + 2 / 3) / 3,
        ),  # the second found it again
        ([found((1, 0.9, FAR), (1, 0.8, OTHER)), found((1, 0.7, THING))], (2 / 3 + 2 / 3) / 3),
        ([found((1, 0.9, THING)), found((1, 0.95, OTHER))], (1 / 2) / 3),  # in another scene
        ([found((2, 0.9, THING), (1, 0.5, THING)), found()], 1 / 3),  # there is no class 2: not counted
        ([found((1, 0.9, [0, 0, 8, 4])), found((1, 0.8, [0, 0, 8, 3.9]))], 1 / 3),  # one half is enough, less is not
        ([found((1, 0.9, [0, 3, 8, 11]), (1, 0.8, THING)), found()], (1 / 2) / 3),  # 5 / 11 of both
        ([found((1, 0.9, [0, 2, 8, 10]), (1, 0.8, THING)), found()], 1 / 3),  # 6 / 10 of the first, which then is found
        ([found((1, 0.5, THING)), found((1, 0.5, FAR))], 1 / 3),  # equal scores: the first scene first
        ([found(), found()], 0.0),
    ],
)
def test_mean_average_precisions_by_hand(detections, want):
    assert math.isclose(mean_average_precision(BACKEND, detections, LABELS), want, abs_tol=1e-15)


def test_the_mean_is_over_classes():
    labels = np.array([[[0, *THING], [3, *OTHER]]])
    assert mean_average_precision(BACKEND, [found((0, 0.9, THING))], labels) == 0.5
    assert mean_average_precision(BACKEND, [found((0, 0.9, THING))], np.full((1, 2, 5), -1)) == 0.0


# -- cells and boxes ---------------------------------------------------------------------------------------------------
def task_of(labels, **options):
    options = {"sizes": (2, 3, 2, 2), "image": (1, 24, 16), "classes": 3} | options
    labels = np.array(labels)
    x = np.random.default_rng(1).integers(0, 256, (len(labels), math.prod(options["image"])), dtype=np.uint8)
    data = DataSet("boxes", Pixels(x), labels, Pixels(x), labels)
    return make_network("detector", **options).make_task(data, batch=len(labels), seed=1)


SOME = [[[2, 0, 0, 12, 10], [0, 9, 7, 24, 16]], [[1, 3, 5, 4, 9], [-1] * 5]]


def perfect(task, labels, sure=20.0):
    """Outputs that say what the labels say."""
    rows, columns = task.network.grid
    outputs = np.zeros((len(labels) * rows * columns, task.network.outputs))
    outputs[:, 0] = -sure
    cells, classes, boxes = task.targets(np.array(labels))
    outputs[cells, 0], outputs[cells, 1:5], outputs[cells, 5 + classes] = sure, boxes, sure
    return outputs


def test_outputs_that_are_right_find_everything():
    task = task_of(SOME)
    detections = task.detections(BACKEND, perfect(task, SOME))
    assert mean_average_precision(BACKEND, detections, np.array(SOME)) == 1.0
    for (classes, scores, boxes), rows in zip(detections, SOME, strict=True):
        things = sorted(row for row in rows if row[0] >= 0)
        assert sorted([k, *box] for k, box in zip(classes.tolist(), boxes.tolist(), strict=True)) == things
        assert np.allclose(scores, 1.0, atol=1e-8)


def test_detections_are_of_the_best_class_above_a_score():
    task, outputs = task_of(SOME), np.zeros((12, 8))
    outputs[:, 0] = -9.0
    outputs[3, 0], outputs[3, 5:] = 2.0, (1.0, 3.0, 3.0)
    outputs[10, 0] = -1.0  # all classes equal: sigmoid(-1) / 3 = 0.09
    outputs[11, 0] = -2.0  # 0.04
    first, second = task.detections(BACKEND, outputs)
    share = math.exp(3) / (2 * math.exp(3) + math.e)
    assert first[0].tolist() == [1] and math.isclose(first[1][0], share / (1 + math.exp(-2)))
    assert first[2].tolist() == [[12 - 8, 12 - 8, 12 + 8, 12 + 8]]  # row 1, column 1
    assert second[0].tolist() == [0] and math.isclose(second[1][0], 1 / (1 + math.e) / 3)
    outputs[5, 7] = np.inf
    assert [len(scores) for _, scores, _ in task.detections(BACKEND, outputs)] == [0, 1]


def test_a_centre_on_the_edge_belongs_to_the_next_cell_but_at_the_end():
    task = task_of([[[0, 4, 0, 12, 16]]])  # centre (8, 8): the second row, the second column
    cells, _, boxes = task.targets(np.array([[[0, 4, 0, 12, 16]], [[0, 24, 8, 24, 8]]]))
    assert cells.tolist() == [3, 6 + 5] and boxes[0].tolist() == [-0.5, -0.5, -0.5, 0.0]


def test_two_things_in_a_cell_are_named():
    with pytest.raises(ValueError, match="boxes: two things have their centres in one cell of 8 x 8 .* in scene 1;"):
        task_of([[[0, *THING], [-1] * 5], [[0, *THING], [1, 0, 0, 7, 7]]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image": (1, 20, 16)}, "image must have sides that are multiples of 8, got 20 x 16"),
        ({"image": (1, 24, 4)}, "image must have at least 8 x 8 pixels, got 24 x 4"),
        ({"sizes": (2, 3)}, r"sizes must be at least three positive integers, got \(2, 3\)"),
        ({"classes": 0}, "classes must be a positive integer, got 0"),
        ({"classes": 2}, "the network has 2 outputs, the data have 3 classes"),
    ],
)
def test_unusable_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        task_of(SOME, **options)


# -- the loss ----------------------------------------------------------------------------------------------------------
def plain_loss(outputs, cells, classes, boxes):
    """The loss as one reads it, and its gradient by the outputs."""
    things, full = len(cells), np.zeros(len(outputs))
    full[cells] = 1.0
    weights, x = np.where(full == 1.0, 1.0, 0.5), outputs[:, 0]
    value, slope = (weights * (np.logaddexp(0, x) - full * x)).sum(), np.zeros_like(outputs)
    slope[:, 0] = weights * (1 / (1 + np.exp(-x)) - full)
    for cell, kind, box in zip(cells, classes, boxes, strict=True):
        power = np.exp(outputs[cell, 5:])
        value -= math.log(power[kind] / power.sum())
        slope[cell, 5:] = power / power.sum() - (np.arange(len(power)) == kind)
        d = outputs[cell, 1:5] - box
        value += np.where(np.abs(d) < 1, d * d / 2, np.abs(d) - 0.5).sum()
        slope[cell, 1:5] = np.where(np.abs(d) < 1, d, np.sign(d))
    return value / things, slope / things


def test_the_loss_is_the_sum_of_its_three():
    task = task_of(SOME)
    values = np.random.default_rng(3).normal(0, 1.5, (12, 8))
    x = Tensor(values, BACKEND, requires_gradient=True)
    loss = task.loss(x, np.array(SOME))
    want, slope = plain_loss(values, *task.targets(np.array(SOME)))
    assert math.isclose(loss.value, want, rel_tol=1e-14)
    loss.backward(4.0)
    np.testing.assert_allclose(x.gradient, 4.0 * slope, rtol=1e-13, atol=1e-16)


def test_smooth_l1_and_sums_of_losses():
    x = Tensor(np.array([[0.2, -1.5, 3.0, -0.999, -5.0]]), BACKEND, requires_gradient=True)
    targets = np.array([[0.0, 0.0, 1.0, 0.0, -4.5]])
    assert math.isclose(smooth_l1(x, targets).value, (0.02 + 1.0 + 1.5 + 0.999**2 / 2 + 0.125) / 5)
    assert check_gradients(lambda: total([smooth_l1(x, targets, count=2), smooth_l1(x, -targets)]), [x]) < 1e-6
    assert math.isnan(smooth_l1(Tensor(np.array([np.nan]), BACKEND), np.zeros(1)).value)


def case(tmp_path, text=BINARY64):
    task = task_of(SOME)
    numerics, _ = moved(task.network, tmp_path, text)
    return task.network, numerics, task


def loss_of(net, numerics, task):
    numerics.begin(1)
    return next(iter(task.losses(numerics, np.arange(2)))).loss


def test_gradients_agree_with_finite_differences(tmp_path):
    judge_along_directions(case(tmp_path), loss_of)


@needs_torch
@pytest.mark.parametrize("design", ["float64", "float32"])
def test_losses_are_pytorchs(design, tmp_path):
    """The same weights and batches give the same first twenty losses."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    double = design == "float64"
    net, numerics, task = case(tmp_path, BINARY64 if double else BINARY64.replace("binary64", "binary32"))
    values = twins.parameters_of(net)
    momentum, decay = float(np.float32(0.9)), float(np.float32(1e-4))
    theirs = torch.optim.SGD(values, lr=2.0**-6, momentum=momentum, weight_decay=decay)
    ours = SGD(net.parameters, learning_rate=2.0**-6, momentum=0.9, weight_decay=1e-4)
    cells, classes, boxes = (torch.tensor(part) for part in task.targets(np.array(SOME)))
    x = torch.tensor(task.data.train_x[:], dtype=values[0].dtype)
    full = torch.zeros(12, dtype=x.dtype)
    full[cells] = 1
    losses = []
    for iteration in range(1, 21):
        numerics.begin(iteration)
        mine = loss_of(net, numerics, task)
        mine.backward()
        ours.step()
        y = twins.forward(net, values, x)
        objectness = functional.binary_cross_entropy_with_logits(y[:, 0], full, 0.5 + full / 2, reduction="sum")
        box = functional.smooth_l1_loss(y[cells, 1:5], boxes.to(y.dtype), reduction="sum")
        loss = (objectness + box) / len(cells) + functional.cross_entropy(y[cells, 5:], classes)
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert abs(mine.value - loss.item()) < (1e-10 if double else 1e-4), iteration
        losses.append(mine.value)
    assert losses[-1] < losses[0]


# -- runs --------------------------------------------------------------------------------------------------------------
@pytest.fixture
def small(monkeypatch):
    """The data set with scenes of rectangles."""
    images, labels = pictures()
    train, test = scenes.compose(images, labels, 0, 12), scenes.compose(images, labels, 1, 6)
    data = DataSet("fashion-scenes", Pixels(train[0]), train[1], Pixels(test[0]), test[1])
    facts = DATA_SETS["fashion-scenes"]._replace(load=lambda folder: data)
    monkeypatch.setitem(DATA_SETS, "fashion-scenes", facts)
    from softnum.train.datasets import sets as module

    module._loaded.cache_clear()
    yield Settings(
        network="detector", network_options={"sizes": (2, 3, 4)}, data="fashion-scenes", batch=4, epochs=2,
        learning_rate=0.01, evaluate_every=3,
    )  # fmt: skip
    module._loaded.cache_clear()


def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(small, tmp_path):
    (tmp_path / "mine.toml").write_text(MIXED)
    design = load_design(tmp_path / "mine.toml")
    path = interrupted(design, small, tmp_path, at=4)
    rows = read_rows(path)
    assert rows[0]["config"]["network"] == {"name": "detector", "sizes": [2, 3, 4], "image": [1, 64, 64], "classes": 10}
    assert len(rows) == 7 and 0 <= rows[-1]["accuracy"] <= 1


def test_every_operation_is_explained(small):
    explanation = explain(small, load_design("c-wang-fp8"))
    names = {step.operation for step in explanation.binary64}
    assert {"binary_cross_entropy", "softmax_cross_entropy", "smooth_l1", "scaled", "cross_entropy_error"} <= names
    assert {"put_rows", "take", "part"} <= {step.operation for step in explanation.steps if step.rounding == "exact"}


def test_only_networks_of_scenes_take_them():
    with pytest.raises(ValueError, match="resnet takes samples of numbers, which 'fashion-scenes' is not"):
        make_network("resnet", data="fashion-scenes")
    assert make_network("detector", data="fashion-scenes").options["image"] == (1, 64, 64)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a-float32", "c-wang-fp8"])
def test_it_learns_to_find_garments(name, tmp_path):
    """A thousand of the real scenes, three times."""
    if not Path("/usr/share/datasets/fashion-mnist").is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    options = {"batch": 20, "epochs": 3, "optimiser": "adam", "learning_rate": 0.003, "evaluate_every": 1000}
    settings = Settings(network="detector", data="fashion-scenes", samples=1000, held_out=200, **options)
    rows = read_rows(run(load_design(name), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.1
