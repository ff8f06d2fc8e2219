"""The data, its split, the batches and the initial weights are fixed to the bit."""

import hashlib

import numpy as np
import pytest

from softnum.train.datasets.sets import batches, load_data
from softnum.train.engine.initial import he_uniform, random_words


def digest(array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def test_digits_split_is_fixed():
    data = load_data("digits")
    assert data.describe() == {
        "name": "digits",
        "train": 1352,
        "held_out": 445,
        "sha256": "000d8e2cbb830ea974bd9d51479616f4a371d873080232df6e733514325239d3",
    }


def test_digits_split_is_stratified_and_loses_nothing():
    from sklearn.datasets import load_digits

    data = load_data("digits")
    pixels, labels = load_digits(return_X_y=True)
    joined = np.concatenate([data.train_x, data.test_x]) * 16
    assert sorted(map(bytes, joined.astype(np.uint8))) == sorted(map(bytes, pixels.astype(np.uint8)))
    counts, held_out = np.bincount(labels), np.bincount(data.test_y)
    assert np.array_equal(held_out, counts // 4)
    third = pixels[np.flatnonzero(labels == 7)[3]] / 16
    assert any(np.array_equal(third, row) for row in data.test_x[data.test_y == 7])


def test_an_unknown_data_set():
    with pytest.raises(ValueError, match=r"no data set is called 'digit'; did you mean 'digits'\?"):
        load_data("digit")


def test_batches_are_a_permutation_cut_into_whole_batches():
    plan = batches(1352, 32, seed=1, epoch=1)
    assert plan.shape == (42, 32)
    assert len(np.unique(plan)) == plan.size
    assert not np.array_equal(plan, batches(1352, 32, seed=1, epoch=2))
    assert not np.array_equal(plan, batches(1352, 32, seed=2, epoch=1))
    assert np.array_equal(np.sort(batches(256, 256, 5, 1)[0]), np.arange(256))


def test_batches_and_weights_are_the_same_everywhere():
    assert digest(batches(1352, 32, seed=1, epoch=1).astype("<i8")) == "0460785d033c091b"
    assert digest(he_uniform(1, 0, 64, 128).astype("<f8")) == "22735c8915625303"


@pytest.mark.parametrize("batch", [0, 101])
def test_a_batch_must_fit(batch):
    with pytest.raises(ValueError, match=rf"batch must lie in 1..100, the number of samples, got {batch}"):
        batches(100, batch, 1, 1)


def test_random_words_are_philox4x64_10():
    # Random123's known answer for zero key and counter; NumPy counts up before its first block
    words = np.random.Philox(key=0, counter=[2**64 - 1] * 4).random_raw(4)
    assert [f"{w:016x}" for w in words] == [
        "16554d9eca36314c",
        "db20fe9d672d0fdc",
        "d7e772cee186176b",
        "7e68b68aec7ba23b",
    ]
    assert np.array_equal(random_words(9, 2, 3, 4), np.random.Philox(key=[9, 2 << 32 | 3], counter=0).random_raw(4))
    with pytest.raises(ValueError, match="index must lie in"):
        random_words(1, 1, 2**32, 1)


def test_initial_weights_fill_their_range():
    weights = he_uniform(1, 0, 64, 128)
    limit = np.sqrt(6 / 64)
    assert -limit <= weights.min() < -0.99 * limit and 0.99 * limit < weights.max() < limit
    assert abs(weights.mean()) < 0.01 * limit
    assert not np.array_equal(weights, he_uniform(1, 1, 64, 128))


@pytest.mark.parametrize("name", ["digits", "cartpole"])
def test_a_folder_for_data_without_files_is_an_error(name, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=rf"{name} comes with a package .* leave out --data-dir \(data_folder\)"):
        load_data(name, tmp_path)
    monkeypatch.setenv("SOFTNUM_DATA", str(tmp_path))  # which is for all data sets, and digits has none there
    assert load_data("digits").name == "digits"
