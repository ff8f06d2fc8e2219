"""Series of different lengths: their files, and an LSTM that no padding can change."""

import hashlib
import re

import numpy as np
import pytest

from softnum.train import Settings, Tensor, explain, load_design, make_network, run
from softnum.train.datasets import series as series_files
from softnum.train.datasets.sets import load_data
from softnum.train.engine.tensor import softmax_cross_entropy
from softnum.train.layers import cells
from softnum.train.nets.network import product_rows
from softnum.train.runs.loop import read_rows
from tests.support.train_cases import (
    BINARY64,
    MIXED,
    interrupted,
    judge_along_directions,
    loss_of,
    moved,
    needs_torch,
    watch_products,
)

LENGTHS = np.array([2, 4, 1, 3])


def series(lengths=LENGTHS, steps=4, inputs=3):
    """Series of these lengths with NaN after them."""
    x = np.random.default_rng(2).standard_normal((len(lengths), max(lengths), inputs))
    x = np.pad(x, ((0, 0), (0, steps - max(lengths)), (0, 0)))
    x[np.arange(steps) >= lengths[:, None]] = np.nan
    return x.reshape(len(lengths), -1)


def network(tmp_path, text=BINARY64, steps=4):
    """A small network, its numerics, series of different lengths and labels."""
    net = make_network("speech-lstm", sizes=(3, 4, 3), steps=steps)
    numerics, _ = moved(net, tmp_path, text)
    return net, numerics, series(steps=steps), np.array([0, 2, 1, 2])


def results(parts):
    """The bits of a loss, of the outputs and of all gradients."""
    net, numerics, x, _ = parts
    loss = loss_of(*parts)
    loss.backward(numerics.loss_scale)
    numerics.begin(2)
    outputs = net.forward(Tensor(x, numerics.backend)).value
    return [loss.value, outputs.tobytes(), *(parameter.gradient.tobytes() for parameter in net.parameters)]


def test_gradients_agree_with_finite_differences(tmp_path):
    judge_along_directions(network(tmp_path))


@pytest.mark.parametrize("text", [BINARY64, MIXED])
def test_what_stands_in_the_padding_changes_no_bit(text, tmp_path, monkeypatch):
    """Neither values put in the place of NaN, which the network leaves out, nor more steps of padding do."""
    parts = network(tmp_path, text)
    want, x = results(parts), parts[2]
    present = ~np.isnan(x)
    monkeypatch.setattr(parts[0], "_lengths", lambda x: (present[: len(x)], LENGTHS[: len(x)]))
    for junk in (0.0, 1e30, np.inf):
        got = results((*parts[:2], np.where(present, x, junk), parts[3]))
        assert got == want


def test_more_steps_of_padding_change_no_bit(tmp_path):
    """But for stochastic roundings, whose random bits depend on how many roundings there were before them."""
    text = re.sub(r', rounding = "stochastic", stochastic_bits = \d+', "", MIXED)
    assert results(network(tmp_path, text, steps=4)) == results(network(tmp_path, text, steps=9))


def test_a_state_that_overflows_after_the_end_does_no_harm(tmp_path, monkeypatch):
    """In a format that a cell state outgrows in four steps, but not in the one step that there is."""
    text = BINARY64.replace('default = "binary64"', 'default = "binary64"\nelementwise = "e2m3"')
    net, numerics, *_ = network(tmp_path, text, steps=12)
    for parameter, value in zip(net.parameters[:3], (0.0, 20.0, 0.0), strict=True):
        parameter.value = np.full_like(parameter.value, value)  # every gate is 1: the cell state counts the steps
    parts = net, numerics, series(np.array([1, 1]), steps=12), np.array([0, 1])

    def finite():
        loss_of(*parts).backward()
        return all(np.isfinite(parameter.gradient).all() for parameter in net.parameters)

    assert finite()
    monkeypatch.setattr(cells, "masked", lambda x, mask: x)
    assert not finite()  # it is that which keeps them finite


def test_each_series_is_read_as_if_it_were_alone(tmp_path):
    net, numerics, x, _ = network(tmp_path)
    together = net.forward(Tensor(x, numerics.backend)).value
    for row, want, length in zip(x, together, LENGTHS, strict=True):
        lstm = make_network("lstm", sizes=(3, 4, 3), steps=int(length))
        lstm.initialise(numerics)
        for mine, theirs in zip(lstm.parameters, net.parameters, strict=True):
            mine.value = theirs.value
        alone = lstm.forward(Tensor(row[None, : 3 * length], numerics.backend)).value
        assert np.array_equal(alone[0], want)


def test_the_listed_products_are_those_computed(tmp_path, monkeypatch):
    seen = watch_products(monkeypatch)
    parts = network(tmp_path)
    loss_of(*parts).backward()
    assert product_rows(seen) == parts[0].gemms(4)


@needs_torch
def test_losses_and_gradients_are_pytorchs(tmp_path):
    """PyTorch packs the series, so that it computes nothing of the padding at all."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence

    net, numerics, x, labels = network(tmp_path)
    w, b, u, v, d = (torch.tensor(p.value) for p in net.parameters)
    lstm, last = torch.nn.LSTM(3, 4, batch_first=True).double(), torch.nn.Linear(4, 3).double()
    with torch.no_grad():
        for theirs, ours in zip(lstm.parameters(), (w.T, u.T, b, torch.zeros_like(b)), strict=True):
            theirs.copy_(ours)
        last.weight.copy_(v.T)
        last.bias.copy_(d)
    frames = torch.tensor(np.nan_to_num(x).reshape(4, 4, 3))
    packed = pack_padded_sequence(frames, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    loss = torch.nn.functional.cross_entropy(last(lstm(packed)[1][0][0]), torch.tensor(labels))
    loss.backward()
    mine = loss_of(net, numerics, x, labels)
    mine.backward()
    assert abs(mine.value - loss.item()) < 1e-12
    theirs = [
        lstm.weight_ih_l0.grad.T,
        lstm.bias_ih_l0.grad,
        lstm.weight_hh_l0.grad.T,
        last.weight.grad.T,
        last.bias.grad,
    ]
    for parameter, want in zip(net.parameters, theirs, strict=True):
        np.testing.assert_allclose(parameter.gradient, want.numpy(), rtol=0, atol=1e-12, err_msg=parameter.name)


@pytest.mark.parametrize(
    ("place", "sample"),
    [((0, slice(None)), 0), ((2, 1), 2), ((1, slice(3, 6)), 1)],  # none at all, half a frame, a gap
)
def test_a_series_that_is_not_whole_is_named(place, sample, tmp_path):
    net, numerics, x, _ = network(tmp_path)
    x[place] = np.nan
    with pytest.raises(ValueError, match=f"a series must be whole frames, .* sample {sample} of the batch is not"):
        net.forward(Tensor(x, numerics.backend))


# -- files -------------------------------------------------------------------------------------------------------------
def utterances(counts, seed):
    """Utterances of so many frames, as texts of numbers, and their speakers."""
    rng = np.random.default_rng(seed)
    frames = [rng.uniform(-2, 2, (int(rng.integers(7, 30)), 12)).round(6) for _ in range(sum(counts))]
    return frames, np.repeat(np.arange(9), counts)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes the set in a layout, with numbers of its own, and makes theirs the published checksum."""

    def write(layout, folder="japanese-vowels", spoil=None):
        monkeypatch.setattr(series_files, "UTTERANCES", {"ae.train": (3,) * 9, "ae.test": (1, 2, 3, 1, 1, 1, 1, 1, 1)})
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        digest, wanted = hashlib.sha256(), []
        for number, (file, counts) in enumerate(series_files.UTTERANCES.items()):
            frames, speakers = utterances(counts, number)
            x = np.full((len(frames), 29, 12), np.nan)
            for row, each in zip(x, frames, strict=True):
                row[: len(each)] = each
            wanted += [x.reshape(len(x), -1), speakers]
            digest.update(x.tobytes() + speakers.tobytes())
            if layout == "uci":
                lines = [line for each in frames for line in [*(" ".join(map(str, frame)) for frame in each), ""]]
            else:
                file = f"JapaneseVowels_{file.removeprefix('ae.').upper()}.ts"
                rows = [":".join(",".join(map(str, column)) for column in each.T) for each in frames]
                lines = ["# a comment", "@dimensions 12", "@data"]
                lines += [f"{row}:{speaker + 1}" for row, speaker in zip(rows, speakers, strict=True)]
            (place / file).write_text("\n".join(spoil(lines) if spoil else lines) + "\n")
        monkeypatch.setattr(series_files, "SHA256", digest.hexdigest())
        return wanted

    return write


@pytest.mark.parametrize("layout", ["uci", "ts"])
@pytest.mark.parametrize("folder", ["japanese-vowels", "JapaneseVowels", "."])
def test_both_layouts_hold_the_same_series(layout, folder, files, tmp_path):
    wanted = files(layout, folder)
    data = load_data("japanese-vowels", tmp_path)
    for got, want in zip((data.train_x, data.train_y, data.test_x, data.test_y), wanted, strict=True):
        assert np.array_equal(got, want, equal_nan=got.dtype == np.float64)
    assert data.describe()["train"] == 27 and data.describe()["held_out"] == 12


@pytest.mark.parametrize(
    ("layout", "spoil", "message"),
    [
        ("uci", lambda lines: lines[1:], "does not hold the published numbers of japanese-vowels: the SHA-256 of what"),
        ("uci", lambda lines: ["1 2", *lines], "ae.train: line 1: a frame should be 12 finite numbers, got 1 2"),
        ("uci", lambda lines: ["x", *lines], "ae.train: line 1: could not convert string to float: 'x'"),
        ("uci", lambda lines: ["nan " * 12, *lines], "ae.train: line 1: a frame should be 12 finite numbers"),
        ("uci", lambda lines: [lines[0]] * 30 + lines, r"ae.train: line 1: a block of [3-5]\d lines, .* at most 29"),
        ("uci", lambda lines: [lines[0], "", *lines], "ae.train: has 28 blocks of lines, the published file has 27"),
        ("ts", lambda lines: lines[:2], "TRAIN.ts: has no line @data"),
        (
            "ts",
            lambda lines: [*lines, lines[-1][:-1] + "10"],
            "TRAIN.ts: line 31: should be 12 coefficients",
        ),
        (
            "ts",
            lambda lines: [*lines, "1:" + lines[-1]],
            "TRAIN.ts: line 31: should be 12 coefficients",
        ),
        (
            "ts",
            lambda lines: [*lines, "1," + lines[-1]],
            "TRAIN.ts: line 31: should be 12 coefficients",
        ),
        ("ts", lambda lines: [*lines, "\xe9"], "TRAIN.ts: cannot be read: 'ascii' codec"),
    ],
)
def test_unusable_files_are_named(layout, spoil, message, files, tmp_path):
    files(layout, spoil=spoil)
    with pytest.raises(ValueError, match=message):
        load_data("japanese-vowels", tmp_path)


def test_without_files_it_says_how_to_get_them(tmp_path, monkeypatch):
    with pytest.raises(
        ValueError, match=r"'japanese-vowels' is not there \(.* has neither ae.train .*pip install aeon"
    ):
        load_data("japanese-vowels", tmp_path)
    monkeypatch.delenv("SOFTNUM_DATA", raising=False)
    monkeypatch.setattr(series_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="no folder was given, and aeon is not installed .*--data-dir"):
        series_files.read_vowels(None)


def test_aeon_is_found_without_a_folder(files, tmp_path, monkeypatch):
    class Spec:
        submodule_search_locations = [str(tmp_path / "aeon")]

    files("ts", "aeon/datasets/data/JapaneseVowels")
    monkeypatch.setattr(series_files.importlib.util, "find_spec", lambda name: Spec)
    assert len(series_files.read_vowels(None)[0]) == 27


def test_only_networks_of_series_take_them():
    with pytest.raises(ValueError, match="lstm takes samples of numbers, which 'japanese-vowels' is not"):
        make_network("lstm", data="japanese-vowels")
    with pytest.raises(ValueError, match="speech-lstm takes series of different lengths, which 'digits' is not"):
        make_network("speech-lstm", data="digits")
    assert make_network("speech-lstm", data="japanese-vowels").options == {"sizes": (12, 32, 9), "steps": 29}


# -- runs --------------------------------------------------------------------------------------------------------------
def settings_of(tmp_path):
    return Settings(
        network="speech-lstm", network_options={"sizes": (12, 4, 9)}, data="japanese-vowels",
        data_folder=str(tmp_path), batch=9, epochs=2, evaluate_every=2,
    )  # fmt: skip


def test_a_run_is_the_same_on_two_threads_and_after_an_interruption(files, tmp_path):
    files("uci")
    (tmp_path / "mine.toml").write_text(MIXED)
    design, settings = load_design(tmp_path / "mine.toml"), settings_of(tmp_path)
    path = interrupted(design, settings, tmp_path, at=4)
    config = read_rows(path)[0]["config"]
    assert config["network"] == {"name": "speech-lstm", "sizes": [12, 4, 9], "steps": 29}
    assert str(tmp_path) not in str(config["data"])


def test_every_operation_is_explained(files, tmp_path):
    files("ts")
    explanation = explain(settings_of(tmp_path), load_design("b-binary16"))
    assert {"choose", "take", "put_rows"} <= {step.operation for step in explanation.steps if step.rounding == "exact"}
    assert "in binary64 whatever the design says: softmax_cross_entropy, cross_entropy_error\n" in f"{explanation}\n"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("a-float32", 0.85), ("c-wang-fp8", 0.6)])
def test_it_learns_speakers(name, least, tmp_path):
    """Eight epochs of the real set, where a folder or aeon has it."""
    try:
        load_data("japanese-vowels")
    except ValueError:
        pytest.skip("Japanese Vowels are not there")
    options = {"batch": 30, "epochs": 8, "optimiser": "adam", "learning_rate": 0.01, "evaluate_every": 72}
    settings = Settings(network="speech-lstm", data="japanese-vowels", **options)
    rows = read_rows(run(load_design(name), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > least


def test_a_loss_knows_which_frame_is_the_last(tmp_path):
    """A planted fault: taking the frame before it gives another loss."""
    net, numerics, x, labels = network(tmp_path)
    want = loss_of(net, numerics, x, labels).value
    shorter = net._lengths
    net._lengths = lambda x: (shorter(x)[0], np.maximum(shorter(x)[1] - 1, 1))
    other = softmax_cross_entropy(net.forward(Tensor(x, numerics.backend)), labels).value
    assert abs(other - want) > 1e-3
