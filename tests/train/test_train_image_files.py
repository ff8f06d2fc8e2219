"""Image sets in files of their canonical layouts: read, checked, and what to do when they are not there."""

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from softnum.train import Settings, load_design, run
from softnum.train.datasets import images as image_files
from softnum.train.datasets.sets import DATA_SETS, load_data
from softnum.train.runs.loop import read_rows

IDX = list(image_files.CHECKSUMS["mnist"])
CIFAR = list(image_files.CHECKSUMS["cifar10"])


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes a set's files with random images, and makes theirs the published checksums."""
    rng = np.random.default_rng(0)

    def write(name: str, *, train=40, test=12, folder=None, zipped=False, spoil=None) -> dict:
        place = tmp_path / (name if folder is None else folder)
        place.mkdir(parents=True, exist_ok=True)
        contents, arrays = {}, {}
        if name == "cifar10":
            for file in CIFAR:
                rows = rng.integers(0, 256, (train // 5 if file != CIFAR[-1] else test, 3073), dtype=np.uint8)
                rows[:, 0] %= 10
                contents[file], arrays[file] = rows.tobytes(), rows
        else:
            for file in IDX:
                count = train if file.startswith("train") else test
                images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
                arrays[file] = images if "images" in file else np.arange(count, dtype=np.uint8) % 10
                contents[file] = idx(arrays[file])
        contents |= spoil or {}
        sums = {file: ("md5", hashlib.md5(data).hexdigest()) for file, data in contents.items()}
        monkeypatch.setitem(image_files.CHECKSUMS, name, sums)
        for file, data in contents.items():
            (place / f"{file}.gz").write_bytes(gzip.compress(data)) if zipped else (place / file).write_bytes(data)
        return arrays

    return write


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files(name, zipped, files, tmp_path):
    arrays = files(name, zipped=zipped)
    data = load_data(name, tmp_path)
    assert data.train_x.shape == (40, 784) and data.test_x.shape == (12, 784) and data.train_y.dtype == np.int64
    got = data.train_x[[3, 5]]
    assert got.dtype == np.float32 and np.array_equal(got * 256, arrays[IDX[0]][[3, 5]].reshape(2, 784))
    assert np.array_equal(data.test_y, np.arange(12) % 10)
    facts = data.describe()
    assert (facts["name"], facts["train"], facts["held_out"]) == (name, 40, 12)


def test_cifar10_is_planes_of_red_green_and_blue(files, tmp_path):
    arrays = files("cifar10", folder="cifar-10-batches-bin")
    data = load_data("cifar10", tmp_path)
    second = arrays["data_batch_2.bin"]
    assert np.array_equal(data.train_x[8:16] * 256, second[:, 1:]) and np.array_equal(data.train_y[8:16], second[:, 0])
    assert data.train_x.shape == (40, 3072) and len(data.test_y) == 12
    blue = data.test_x[[0]].reshape(3, 32, 32)[2] * 256
    assert np.array_equal(blue, arrays[CIFAR[-1]][0, 1 + 2048 :].reshape(32, 32))


def test_the_folder_is_named_by_argument_or_environment(files, tmp_path, monkeypatch):
    files("mnist", folder="here")
    monkeypatch.setenv("SOFTNUM_DATA", str(tmp_path / "nowhere"))
    assert len(load_data("mnist", tmp_path / "here").train_y) == 40
    with pytest.raises(ValueError, match="nowhere' has no train-images-idx3-ubyte"):
        load_data("mnist")
    monkeypatch.setenv("SOFTNUM_DATA", str(tmp_path / "here"))
    assert len(load_data("mnist").train_y) == 40


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("mnist", "ossci-datasets.s3.amazonaws.com/mnist; then name the folder with --data-dir"),
        ("fashion-mnist", "apt install dataset-fashion-mnist"),
        ("cifar10", "fetch cifar-10-binary.tar.gz"),
    ],
)
def test_a_set_that_is_not_there_says_how_to_get_it(name, how, tmp_path):
    with pytest.raises(ValueError, match=rf"the data set '{name}' is not there .*{how}"):
        load_data(name, tmp_path / "empty")


def test_a_file_that_is_missing(files, tmp_path):
    files("mnist")
    (tmp_path / "mnist" / IDX[3]).unlink()
    with pytest.raises(ValueError, match=f"'mnist' is incomplete: .*mnist' has no {IDX[3]}"):
        load_data("mnist", tmp_path)


def test_a_file_that_is_not_the_published_one(files, tmp_path):
    files("mnist")
    file = tmp_path / "mnist" / IDX[1]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=f"{IDX[1]}: is not the published file of mnist: its md5 is [0-9a-f]{{32}}"):
        load_data("mnist", tmp_path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (b"\0\0\x0d\1\0\0\0\1x", "is no IDX file of bytes: it begins with 00 00 0d 01"),
        (b"\0\0\x08\3\0\0", "is no IDX file of bytes: it begins with 00 00 08 03"),
        (b"\0\0\x08\1\0\0\0\7xyz", r"holds 3 elements, its header says \[7\]"),
    ],
)
def test_a_file_of_another_layout(spoil, message, files, tmp_path):
    files("mnist", spoil={IDX[2]: spoil})
    with pytest.raises(ValueError, match=message):
        load_data("mnist", tmp_path)


def test_records_of_cifar10_must_be_whole(files, tmp_path):
    files("cifar10", spoil={CIFAR[1]: b"123"})
    with pytest.raises(ValueError, match=r"data_batch_2.bin: 3 bytes are no whole records of 3073"):
        load_data("cifar10", tmp_path)


def test_a_damaged_gz(files, tmp_path):
    files("mnist", zipped=True)
    file = tmp_path / "mnist" / f"{IDX[0]}.gz"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"\.gz: cannot be read: "):
        load_data("mnist", tmp_path)


def test_the_first_samples_of_a_set(files, tmp_path):
    files("mnist")
    data = load_data("mnist", tmp_path)
    part = data.first(train=10, held_out=3)
    assert part.train_x.shape == (10, 784) and len(part.test_y) == 3 and np.array_equal(part.test_x[:], data.test_x[:3])
    assert part.describe()["sha256"] != data.describe()["sha256"]
    with pytest.raises(
        ValueError, match=r"--held-out \(held_out\) must lie in 1..12, the samples of mnist held out, got 13"
    ):
        data.first(held_out=13)


def test_every_set_of_files_has_checksums_and_advice():
    sets = {name for name, facts in DATA_SETS.items() if facts.kind == "samples"}
    sets -= {"digits", "image-folder"}  # of a package, and of the user
    assert sets == set(image_files.CHECKSUMS) == set(image_files.HOW_TO_GET)


def test_a_run_on_files(files, tmp_path):
    files("fashion-mnist", train=40, test=12)
    settings = Settings(network="lenet5", data="fashion-mnist", data_folder=str(tmp_path), batch=8, epochs=1)
    rows = read_rows(run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path / "out"))
    assert rows[0]["config"]["network"]["image"] == [1, 28, 28] and str(tmp_path) not in str(rows[0]["config"]["data"])
    assert len(rows) == 6 and rows[-1]["finished"]


@pytest.mark.slow
def test_lenet5_learns_fashion_mnist(tmp_path):
    """Three hundred iterations of FP8 on the real set, where Debian's package puts it."""
    if not Path("/usr/share/datasets/fashion-mnist").is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    data = load_data("fashion-mnist")
    assert (len(data.train_y), len(data.test_y)) == (60000, 10000)
    assert np.array_equal(np.bincount(data.train_y), np.full(10, 6000))
    options = {"batch": 200, "epochs": 1, "learning_rate": 0.05, "evaluate_every": 300}
    settings = Settings(network="lenet5", data="fashion-mnist", **options)
    rows = read_rows(run(load_design("c-wang-fp8"), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.78
