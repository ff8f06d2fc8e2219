"""Pinned: the records of training of every network, shipped design and optimiser."""

from __future__ import annotations

import hashlib
import pkgutil
import struct
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

from softnum import train
from tests.pins.inputs import THREADS

__all__ = ["records"]

NETWORKS = (
    "actor-critic", "cifar10-cnn", "detector", "gpt", "lenet5", "lstm", "mlp", "ncf", "recurrent-lm", "resnet",
    "seq2seq", "speech-lstm", "transformer", "transformer-lm", "vgg-small", "wgan",
)  # fmt: skip
OPTIMISERS = ("sgd", "adam", "adamw", "lars", "lamb")
NUMBERS = ("null zero", "eins one", "zwei two", "drei three", "vier four", "acht eight")


def _words(n: int, seed: int) -> np.ndarray:
    return np.random.Philox(key=seed).random_raw(n)


def _module_with(name: str):
    """The module of softnum.train that holds a table of its own, wherever it lies."""
    for info in pkgutil.walk_packages(train.__path__, "softnum.train."):
        module = import_module(info.name)
        if name in vars(module) and not hasattr(getattr(module, name), "__module__"):
            return module
    raise AssertionError(f"no module of softnum.train has {name}")


def _text(folder: Path) -> Path:
    words = ["the", "sum", "of", "two", "numbers", "is", "rounded", "once", "and", "kept", "in", "a", "format"]
    file = folder / "input.txt"
    file.write_text(" ".join(words[int(w) % len(words)] for w in _words(2000, 1)) + "\n")
    return file


def _ratings(folder: Path) -> Path:
    rows = []
    for user in range(14):
        rated = sorted(
            {int(w) % 120 for w in _words(8, 50 + user)} | {user * 9 + k for k in range(9) if user * 9 + k < 120}
        )
        rows += [(10 * user, 2 * item + 1, 1 + item % 5, 100 + (7 * item + user) % 11) for item in rated]
    (folder / "u.data").write_text("\n".join("\t".join(map(str, row)) for row in rows))
    return folder


def _sentences(folder: Path) -> Path:
    lines = []
    for number in range(20):
        (a, x), (b, y), (c, z) = (NUMBERS[number // 6**k % 6].split() for k in range(3))
        lines.append(f"{a} und {b} plus {c}\t{z} plus {y} and {x}\n")
    (folder / "sums.tsv").write_text("".join(lines))
    return folder / "sums.tsv"


def _utterances(folder: Path) -> Path:
    module = _module_with("UTTERANCES")
    module.UTTERANCES = {"ae.train": (3,) * 9, "ae.test": (1, 2, 3, 1, 1, 1, 1, 1, 1)}
    hashed = hashlib.sha256()
    for number, (file, counts) in enumerate(module.UTTERANCES.items()):
        lengths = [7 + int(w) % 22 for w in _words(sum(counts), 90 + number)]
        x = np.full((len(lengths), 29, 12), np.nan)
        lines = []
        for row, length in enumerate(lengths):
            x[row, :length] = (_words(length * 12, 1000 * number + row) % np.uint64(4001)).reshape(
                length, 12
            ) / 1000.0 - 2
            lines += [*(" ".join(map(str, frame.tolist())) for frame in x[row, :length]), ""]
        hashed.update(x.tobytes() + np.repeat(np.arange(9), counts).tobytes())
        (folder / file).write_text("\n".join(lines) + "\n")
    module.SHA256 = hashed.hexdigest()
    return folder


def _images(folder: Path) -> Path:
    module, sums = _module_with("CHECKSUMS"), {}
    for seed, file in enumerate(list(module.CHECKSUMS["fashion-mnist"])):
        count = 40 if file.startswith("train") else 12
        array = np.arange(count, dtype=np.uint8) % 10
        if "images" in file:
            array = (_words(count * 784, 70 + seed) >> np.uint64(56)).astype(np.uint8).reshape(count, 28, 28)
        data = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
        (folder / file).write_bytes(data)
        sums[file] = ("md5", hashlib.md5(data).hexdigest())
    module.CHECKSUMS["fashion-mnist"] = sums
    return folder


_FILES = {
    "detector": _images, "gpt": _text, "ncf": _ratings, "recurrent-lm": _text, "seq2seq": _sentences,
    "speech-lstm": _utterances, "transformer-lm": _text,
}  # fmt: skip
_OPTIONS = {
    "actor-critic": {"batch": 64},
    "detector": {"samples": 8, "held_out": 4, "batch": 4},
    "gpt": {
        "batch": 4,
        "samples": 24,
        "network_options": {"sizes": (8, 6), "depth": 1, "steps": 8, "vocabulary": 264, "experts": 3},
    },
    "ncf": {"batch": 100, "network_options": {"sizes": (2, 3, 4)}},
    "recurrent-lm": {"batch": 4, "samples": 24},
    "seq2seq": {"batch": 9, "network_options": {"sizes": (4, 6), "words": 40}},
    "transformer-lm": {"batch": 4, "samples": 24},
    "speech-lstm": {"batch": 9},
    "wgan": {"samples": 64, "held_out": 32, "batch": 8},
}


def _digest(design: str, settings, seed: int = 1, **options) -> str:
    with tempfile.TemporaryDirectory() as out:
        path = train.run(train.load_design(design), settings, seed=seed, out=out, **options)
        rows = path.read_bytes()
    # the versions of packages and the files' folder are no part of what is computed
    return hashlib.sha256(rows.split(b"\n", 1)[1]).hexdigest()[:16]


def records() -> Iterator[tuple[str, str]]:
    """(case, digest of a record's rows behind its heading)."""
    for network in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            options = {
                "epochs": 1,
                "evaluate_every": 3,
                **_OPTIONS.get(network, {"samples": 48, "held_out": 32, "batch": 16}),
            }
            if network in _FILES:
                options["data_folder"] = str(_FILES[network](Path(folder)))
            settings = train.Settings(network=network, data=_data(network), **options)
            yield f"network {network}", _digest("c-wang-fp8", settings, threads=THREADS)
    for design in train.design_names():
        settings = train.Settings(network="mlp", epochs=1, samples=96, held_out=64, batch=16, evaluate_every=2)
        yield f"{design} mlp", _digest(design, settings, threads=THREADS)
        settings = train.Settings(network="lenet5", epochs=1, samples=32, held_out=16, batch=16)
        yield f"{design} lenet5", _digest(design, settings, threads=THREADS)
    for optimiser in OPTIMISERS:
        settings = train.Settings(network="mlp", epochs=1, samples=96, held_out=64, batch=16, optimiser=optimiser)
        yield f"c-wang-fp8 mlp {optimiser}", _digest("c-wang-fp8", settings, threads=THREADS)
    settings = train.Settings(
        network="mlp", epochs=1, samples=96, held_out=64, batch=16, schedule="cosine", warmup=2, clip_norm=1.0,
        weight_decay=0.01,
    )  # fmt: skip
    yield "c-wang-fp8 mlp schedule", _digest("c-wang-fp8", settings, threads=THREADS, statistics=2)


def _data(network: str) -> str | None:
    """The data set that the network takes by default."""
    return {
        "actor-critic": "cartpole", "detector": "fashion-scenes", "gpt": "text", "ncf": "movielens",
        "recurrent-lm": "text", "seq2seq": "de-en", "speech-lstm": "japanese-vowels", "transformer-lm": "text",
    }.get(network, "digits")  # fmt: skip
