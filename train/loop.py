"""One training run: a network under a design, from initial weights to a finished record."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np

from softnum.train.data import batches, load_data
from softnum.train.designs import Design
from softnum.train.nets import make_network
from softnum.train.numerics import Numerics, design_gemms
from softnum.train.optimiser import SGD
from softnum.train.record import RunFiles
from softnum.train.tensor import Tensor, softmax_cross_entropy

__all__ = ["Settings", "run"]

_EVALUATION_SAMPLES = 160
_SAMPLES_AT_A_TIME = 512  # of an evaluation: what a network holds in memory for them


@dataclass(frozen=True)
class Settings:
    """What a run does besides its arithmetic: the same for every design that is compared.

    Parameters
    ----------
    network : str
        Name of a reference network (`make_network`).
    network_options : dict
        Its own parameters.
    data : str
        Name of a data set (`load_data`).
    data_folder : str, optional
        Where its files lie; not part of a record.
    batch : int
        Samples per iteration.
    epochs : int
        Passes over the training samples.
    learning_rate, momentum, weight_decay : float
        Constants of `SGD`.
    evaluate_every : int, optional
        Iterations between evaluations on the held-out samples. Default: every 160 samples, or ten times an epoch if
        that is less often; at least every iteration. The last iteration is always followed by one.

    Examples
    --------
    >>> from softnum.train import Settings
    >>> Settings(epochs=2, batch=64).interval(samples=1352)  # an evaluation every 160 samples
    2
    """

    network: str = "mlp"
    network_options: dict = field(default_factory=dict)
    data: str = "digits"
    data_folder: str | None = None
    batch: int = 32
    epochs: int = 20
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    evaluate_every: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "evaluate_every"):
            value = getattr(self, name)
            if name == "evaluate_every" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")

    def interval(self, samples: int) -> int:
        """Iterations between evaluations, of training on so many samples."""
        return self.evaluate_every or max(1, max(_EVALUATION_SAMPLES, samples // 10) // self.batch)


def _versions() -> dict:
    found = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("softnum", "scikit-learn"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _header(design: Design, network, data, settings: Settings, seed: int) -> dict:
    config = {
        "design": design.describe(network.layer_names),
        "network": network.describe(),
        "data": data.describe(),
        "batch": settings.batch,
        "epochs": settings.epochs,
        "evaluate_every": settings.interval(len(data.train_y)),
        "optimiser": {
            "name": "sgd",
            "learning_rate": settings.learning_rate,
            "momentum": settings.momentum,
            "weight_decay": settings.weight_decay,
        },
        "gemms": design_gemms(design, network, settings.batch),
    }
    return {"config": config, "seed": seed, "versions": _versions()}


def run(
    design: Design,
    settings: Settings,
    *,
    seed: int,
    out: str | Path,
    force: bool = False,
    threads: int = 1,
    progress: Callable[[int, int, float | None], None] | None = None,
) -> Path:
    """Train one network under one design and write its record.

    Parameters
    ----------
    design : Design
    settings : Settings
    seed : int
        Of the initial weights, the batches and every stochastic rounding.
    out : path-like
        The record is ``<out>/<design>/seed-<seed>.jsonl``.
    force : bool
        Run again even if a finished record, or one of another run, is there.
    threads : int
        Threads of a matrix product. The record does not depend on it.
    progress : callable, optional
        Called as ``progress(iteration, iterations, accuracy or None)`` after every iteration.

    Returns
    -------
    pathlib.Path
        The record. A finished record of the same run is returned as it is. An interrupted run goes on from the
        checkpoint of its last whole epoch: rows past it are dropped, and the finished record has the same bytes as that
        of a run that was never interrupted.

    Raises
    ------
    ValueError
        If a setting is unusable, a ``[layers]`` pattern matches no layer, ``operators`` names a function that the
        network does not have, the user's own code fails on a first sample, the record of another run is in the way, a
        finished record is damaged, or another process is writing the record.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import Settings, load_design, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = run(load_design("a-float32"), Settings(epochs=1, batch=256), seed=1, out=folder)
    ...     rows = record.read_text().splitlines()
    >>> record.name, len(rows)
    ('seed-1.jsonl', 6)
    """
    network = make_network(settings.network, data=settings.data, **settings.network_options)
    data = load_data(settings.data, settings.data_folder)
    network.check(data.train_x.shape[1], int(data.train_y.max()) + 1)
    design.check_operators(network.operators)
    numerics = Numerics(design, network.layer_names, seed=seed, threads=threads)
    interval = settings.interval(len(data.train_y))
    per_epoch = len(batches(len(data.train_y), settings.batch, seed, 1))
    _try_out(design, network, numerics, data)
    network.initialise(numerics)
    optimiser = SGD(
        network.parameters,
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    header = _header(design, network, data, settings, numerics.seed)
    iterations = settings.epochs * per_epoch
    files = RunFiles(Path(out) / design.name, numerics.seed, header, iterations)
    try:
        files.open()
        if not force and files.finished():
            return files.path
        state = None if force else files.load()
        epochs_done = _restore(state, network, optimiser)
        files.start(state)
        for epoch in range(epochs_done + 1, settings.epochs + 1):
            plan = batches(len(data.train_y), settings.batch, numerics.seed, epoch)
            for position, rows in enumerate(plan):
                iteration = (epoch - 1) * per_epoch + position + 1
                row = {"iteration": iteration, "epoch": epoch}
                row["loss"] = _train(network, optimiser, numerics, iteration, data.train_x[rows], data.train_y[rows])
                diverged = not math.isfinite(row["loss"])
                last = diverged or iteration == iterations
                if last or iteration % interval == 0:
                    row["accuracy"] = _evaluate(network, numerics, iteration, data)
                if diverged:
                    row.update(loss=None, diverged=True)
                if last:
                    row["finished"] = True
                files.row(row)
                if progress is not None:
                    progress(iteration, iterations, row.get("accuracy"))
                if last:
                    files.discard_checkpoint()
                    return files.path
            files.save(_state(network, optimiser, epoch))
    finally:
        files.close()
    raise AssertionError("a run ends with its last iteration")


def _try_out(design, network, numerics, data) -> None:
    """Two samples forwards and backwards: what is wrong with the user's own code shows before any file is made."""
    if not design.sources:
        return
    network.initialise(numerics)
    try:
        output = network.forward(Tensor(data.train_x[:2], numerics.backend), training=True)
        loss = softmax_cross_entropy(output, data.train_y[:2])
        if math.isfinite(loss.value):
            loss.backward(numerics.loss_scale)
    except (ImportError, TypeError, ValueError) as error:
        raise ValueError(f"{design.path}: cannot train, its first samples end with: {error}") from error


def _train(network, optimiser, numerics, iteration: int, samples, labels) -> float:
    """One iteration; returns the batch's loss before the update. A loss that is not finite leaves the weights alone."""
    numerics.begin(iteration)
    loss = softmax_cross_entropy(network.forward(Tensor(samples, numerics.backend), training=True), labels)
    if math.isfinite(loss.value):
        loss.backward(numerics.loss_scale)
        optimiser.step()
    return loss.value


def _evaluate(network, numerics, iteration: int, data) -> float:
    """The share of held-out samples that the network, in the design's arithmetic, gets right.

    A sample whose outputs are not all finite counts as wrong.
    """
    numerics.begin(iteration, evaluation=True)
    right = 0
    for first in range(0, len(data.test_y), _SAMPLES_AT_A_TIME):
        part = slice(first, first + _SAMPLES_AT_A_TIME)
        outputs = network.forward(Tensor(data.test_x[part], numerics.backend)).value
        hits = (numerics.backend.argmax(outputs) == data.test_y[part]) & np.isfinite(outputs).all(axis=1)
        right += int(hits.sum())
    return right / len(data.test_y)


def _state(network, optimiser, epoch: int) -> dict:
    state = {"epoch": epoch}
    for index, parameter in enumerate(network.parameters):
        state[f"parameter_{index}"] = parameter.value
        state[f"velocity_{index}"] = optimiser.velocities[index]
    for index, buffer in enumerate(network.buffers):
        state[f"buffer_{index}"] = buffer.value
    return state


def _restore(state: dict | None, network, optimiser) -> int:
    if state is None:
        return 0
    for index, parameter in enumerate(network.parameters):
        parameter.value = state[f"parameter_{index}"]
        optimiser.velocities[index] = state[f"velocity_{index}"]
    for index, buffer in enumerate(network.buffers):
        buffer.value = state[f"buffer_{index}"]
    return int(state["epoch"])


def read_rows(path: Path) -> list[dict]:
    """The whole rows of a record."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
