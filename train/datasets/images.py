"""Image sets in their canonical files: found, checked against the published checksums, and read."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np

__all__ = ["CHECKSUMS", "FOLDERS", "HOW_TO_GET", "read_cifar10", "read_idx_set"]

#: set -> file -> (algorithm, checksum of the uncompressed file), as published
CHECKSUMS = {
    "cifar10": {
        "data_batch_1.bin": ("sha1", "aadd24acce27caa71bf4b10992e9e7b2d74c2540"),
        "data_batch_2.bin": ("sha1", "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795"),
        "data_batch_3.bin": ("sha1", "1dd00a74ab1d17a6e7d73e185b69dbf31242f295"),
        "data_batch_4.bin": ("sha1", "aab85764eb3584312d3c7f65fd2fd016e36a258e"),
        "data_batch_5.bin": ("sha1", "26e2849e66a845b7f1e4614ae70f4889ae604628"),
        "test_batch.bin": ("sha1", "67eb016db431130d61cd03c7ad570b013799c88c"),
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": ("md5", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        "train-labels-idx1-ubyte": ("md5", "9018921c3c673c538a1fc5bad174d6f9"),
        "t10k-images-idx3-ubyte": ("md5", "8181f5470baa50b63fa0f6fddb340f0a"),
        "t10k-labels-idx1-ubyte": ("md5", "15d484375f8d13e6eb1aabb0c3f46965"),
    },
    "mnist": {
        "train-images-idx3-ubyte": ("md5", "6bbc9ace898e44ae57da46a324031adb"),
        "train-labels-idx1-ubyte": ("md5", "a25bea736e30d166cdddb491f175f624"),
        "t10k-images-idx3-ubyte": ("md5", "2646ac647ad5339dbf082846283269ea"),
        "t10k-labels-idx1-ubyte": ("md5", "27ae3e4e09519cfbb04c329615203637"),
    },
}
#: set -> the name of its folder in the folder of data, besides its own
FOLDERS = {"cifar10": "cifar-10-batches-bin"}
HOW_TO_GET = {
    "cifar10": "fetch cifar-10-binary.tar.gz, the binary version, from www.cs.toronto.edu/~kriz/cifar.html; unpack it",
    "fashion-mnist": (
        "on Debian: apt install dataset-fashion-mnist; else fetch its four .gz files from "
        "github.com/zalandoresearch/fashion-mnist"
    ),
    "mnist": "fetch its four .gz files from ossci-datasets.s3.amazonaws.com/mnist",
}
_DEBIAN = Path("/usr/share/datasets")
_CIFAR_BYTES = 1 + 3 * 32 * 32  # a label and the planes of red, green and blue


def _find(name: str, folder: Path | None) -> Path:
    """The folder with a set's files."""
    parents = [_DEBIAN] if folder is None else [folder]
    places = [place for parent in parents for place in (parent / name, parent / FOLDERS.get(name, name), parent)]
    first = next(iter(CHECKSUMS[name]))
    for place in places:
        if any((place / file).is_file() for file in (first, f"{first}.gz")):
            return place
    asked = "no folder was given" if folder is None else f"{str(folder)!r} has no {first}, nor has {name} in it"
    raise ValueError(
        f"the data set {name!r} is not there ({asked}): {HOW_TO_GET[name]}; then name the folder with --data-dir, in "
        "load_data(name, folder), or in the environment variable SOFTNUM_DATA"
    )


def _read(name: str, place: Path, file: str) -> bytes:
    """A file's bytes, from it or from its .gz, if their checksum is the published one."""
    path = next((p for p in (place / file, place / f"{file}.gz") if p.is_file()), None)
    if path is None:
        raise ValueError(f"the data set {name!r} is incomplete: {str(place)!r} has no {file}; {HOW_TO_GET[name]}")
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    algorithm, published = CHECKSUMS[name][file]
    found = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
    if found != published:
        raise ValueError(
            f"{path}: is not the published file of {name}: its {algorithm} is {found}, published is {published}; "
            f"{HOW_TO_GET[name]}"
        )
    return data


def _idx(name: str, place: Path, file: str) -> np.ndarray:
    """The uint8 array of an IDX file: two zero bytes, a type, the number of dimensions, and their big-endian sizes."""
    data = _read(name, place, file)
    if data[:3] != b"\0\0\x08" or len(data) < 4 + 4 * data[3]:
        raise ValueError(f"{place / file}: is no IDX file of bytes: it begins with {data[:4].hex(' ')}")
    shape = np.frombuffer(data, ">u4", count=data[3], offset=4).tolist()
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if values.size != np.prod(shape):
        raise ValueError(f"{place / file}: holds {values.size} elements, its header says {shape}")
    return values.reshape(shape)


def read_idx_set(name: str, folder: Path | None) -> tuple[np.ndarray, ...]:
    """A set in four IDX files, which may be compressed with gzip.

    Parameters
    ----------
    name : str
        "fashion-mnist" or "mnist".
    folder : pathlib.Path, optional
        The folder with the files, or with a folder of the set's name that has them. Default: where Debian puts them.

    Returns
    -------
    train_images, train_labels, test_images, test_labels : uint8 array (samples, 784), int64 array (samples,), ...

    Raises
    ------
    ValueError
        If a file is not there, or is not the published one.
    """
    place = _find(name, folder)
    train, train_labels, test, test_labels = (_idx(name, place, file) for file in CHECKSUMS[name])
    return (
        train.reshape(len(train), -1), train_labels.astype(np.int64),
        test.reshape(len(test), -1), test_labels.astype(np.int64),
    )  # fmt: skip


def read_cifar10(name: str, folder: Path | None) -> tuple[np.ndarray, ...]:
    """CIFAR-10 from its binary version: records of a label and the 3 x 32 x 32 bytes of an image.

    Parameters, returns and raises as `read_idx_set`, with images of 3072 bytes in the order (channel, row, column).
    """
    place = _find(name, folder)
    batches = []
    for file in CHECKSUMS[name]:
        data = np.frombuffer(_read(name, place, file), np.uint8)
        if data.size % _CIFAR_BYTES:
            raise ValueError(f"{place / file}: {data.size} bytes are no whole records of {_CIFAR_BYTES}")
        batches.append(data.reshape(-1, _CIFAR_BYTES))
    train, test = np.concatenate(batches[:-1]), batches[-1]
    return (
        np.ascontiguousarray(train[:, 1:]), train[:, 0].astype(np.int64),
        np.ascontiguousarray(test[:, 1:]), test[:, 0].astype(np.int64),
    )  # fmt: skip
