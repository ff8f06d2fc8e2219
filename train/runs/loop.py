"""One training run: a network under a design, from initial weights to a finished record."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from time import monotonic

import numpy as np

from softnum.runtime.plain import plain
from softnum.runtime.threads import threads_by_default
from softnum.train.datasets.sets import load_data
from softnum.train.designs.design import OPTIMISER_ROLES, ROLES, Design
from softnum.train.designs.gemms import design_gemms
from softnum.train.designs.sparsity import GradientSparsity
from softnum.train.engine.binary64 import host
from softnum.train.engine.devices import check_device
from softnum.train.engine.functions import raise_first_nan
from softnum.train.engine.numerics import Numerics, check_seed
from softnum.train.engine.watch import watching
from softnum.train.nets import default_data, make_network
from softnum.train.recipes import Delayed
from softnum.train.runs.own import is_own, load_own
from softnum.train.runs.record import RunFiles
from softnum.train.runs.statistics import StatisticsFile, Watch
from softnum.train.update.optimisers import make_optimiser
from softnum.train.update.scaling import LossScaler, check_limit, clip_gradients, gradients_overflow
from softnum.train.update.schedules import Schedule

__all__ = ["Run", "Settings", "carry_out", "describe_network", "make_run", "record_versions", "run"]

_EVALUATION_SAMPLES = 160
_CHECKPOINT_SECONDS = 60.0
_CONSTANTS = (
    "learning_rate", "adam_rate", "momentum", "nesterov", "beta1", "beta2", "epsilon", "trust", "weight_decay",
)  # fmt: skip
_SCHEDULE = ("schedule", "warmup", "decay_every", "decay_factor", "final_rate")


@dataclass(frozen=True)
class Settings:
    """What a run does besides its arithmetic: the same for every design that is compared.

    Parameters
    ----------
    network : str
        Name of a reference network (`make_network`), or ``"file.py:function"``, a function of the user's that returns
        a `softnum.torch.Training`. That says itself what it learns from and what updates it, so that all below but
        ``samples``, ``held_out``, ``batch``, ``epochs`` and ``evaluate_every`` is left out.
    network_options : dict
        Its own parameters.
    data : str, optional
        Name of a data set (`load_data`). Default: digits, or what the network takes instead (`default_data`); of one of
        the user's own "own".
    data_folder : str, optional
        Where its files lie; not part of a record.
    samples, held_out : int, optional
        How many of the set's first samples to train on, and to be measured on. Default: all.
    batch : int
        Samples per iteration.
    epochs : int
        Passes over the training samples.
    optimiser : str
        Name of an optimiser (`softnum.train.update.optimisers`).
    learning_rate, adam_rate, momentum, nesterov, beta1, beta2, epsilon, trust, weight_decay : optional
        Constants of the optimiser. Default: its own; those of SGD are 0.1, 0.9 and, of weight decay, 1e-4.
    schedule : str
        Name of a learning-rate schedule (`Schedule`): constant, step, exponential or cosine.
    warmup : int
        Iterations of linear warm-up before it.
    decay_every, decay_factor, final_rate : optional
        Constants of the schedule.
    clip_norm, clip_value : float, optional
        Limits of gradients (`clip_gradients`): of the norm of all together, and of every element.
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
    data: str | None = None
    data_folder: str | None = None
    samples: int | None = None
    held_out: int | None = None
    batch: int = 32
    epochs: int = 20
    optimiser: str = "sgd"
    learning_rate: float | None = None
    adam_rate: float | None = None
    momentum: float | None = None
    nesterov: bool | None = None
    beta1: float | None = None
    beta2: float | None = None
    epsilon: float | None = None
    trust: float | None = None
    weight_decay: float | None = None
    schedule: str = "constant"
    warmup: int = 0
    decay_every: int | None = None
    decay_factor: float | None = None
    final_rate: float | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    evaluate_every: int | None = None

    def __post_init__(self) -> None:
        if is_own(self.network):
            self._check_own()
        elif self.data is None:
            object.__setattr__(self, "data", default_data(self.network))
        for name in ("batch", "epochs", "evaluate_every"):
            value = getattr(self, name)
            if name == "evaluate_every" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        check_limit("clip_norm", self.clip_norm)
        check_limit("clip_value", self.clip_value)

    def _check_own(self) -> None:
        """Raise ValueError if what a user's function says is said here too."""
        if self.data not in (None, "own"):
            raise ValueError(f"{self.network} says itself what it learns from; leave the data set {self.data!r} out")
        object.__setattr__(self, "data", "own")
        plain = {field.name: field.default for field in dataclasses.fields(self)}
        for name in ("data_folder", "optimiser", *_CONSTANTS, *_SCHEDULE, "clip_norm", "clip_value"):
            if getattr(self, name) != plain[name]:
                raise ValueError(
                    f"{self.network} says itself what it learns from and what updates it; leave "
                    f"{name} = {getattr(self, name)!r} out, or let the function take it as an argument"
                )

    def make_optimiser(self, parameters):
        """The optimiser of some parameters."""
        constants = {name: getattr(self, name) for name in _CONSTANTS}
        return make_optimiser(self.optimiser, parameters, **constants)

    def make_schedule(self) -> Schedule:
        """The schedule of the learning rate."""
        return Schedule(self.schedule, self.warmup, self.decay_every, self.decay_factor, self.final_rate)

    def describe_updates(self) -> dict:
        """Optimiser, schedule and limits as plain data for a record; what is not asked for is left out.

        Of a network of the user's own there is nothing here.
        """
        if is_own(self.network):
            return {}
        facts = {"optimiser": self.make_optimiser([]).describe(), "clip_norm": self.clip_norm}
        facts |= {"clip_value": self.clip_value, "schedule": self.make_schedule().describe()}
        return {name: value for name, value in facts.items() if value is not None}

    def make_network(self):
        """The network, of the size that its data ask for."""
        return make_network(self.network, data=self.data, data_folder=self.data_folder, **self.network_options)

    def interval(self, samples: int) -> int:
        """Iterations between evaluations, of training on so many samples."""
        return self.evaluate_every or max(1, max(_EVALUATION_SAMPLES, samples // 10) // self.batch)


def record_versions() -> dict:
    """What a record says it was made with."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    for package in ("softnum", "scikit-learn"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def run(
    design: Design,
    settings: Settings,
    *,
    seed: int,
    out: str | Path,
    force: bool = False,
    threads: int = 1,
    device: str = "cpu",
    statistics: int | None = None,
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
        Of a product; at most, of other arithmetic. The record does not depend on it.
    device : str
        "cpu", or "cuda" for a GPU. The record does not depend on it, and an interrupted run may go on on another.
    statistics : int, optional
        Also write what became of the numbers (``softnum.train.runs.statistics``) in the first iteration and every so
        many from it, to ``seed-<seed>.statistics.jsonl`` beside the record, which does not depend on it.
    progress : callable, optional
        Called as ``progress(iteration, iterations, accuracy or None)`` after every iteration.

    Returns
    -------
    pathlib.Path
        The record. A finished record of the same run is returned as it is. An interrupted run goes on from its last
        checkpoint: rows past it are dropped, and the finished record has the same bytes as that of a run that was never
        interrupted. Checkpoints are made after each whole epoch, and of networks that tell classes or tokens also at
        an evaluation that comes a minute or more after the checkpoint before.

    Raises
    ------
    ValueError
        If a setting is unusable, a ``[layers]`` pattern matches no layer, ``operators`` names a function that the
        network does not have, the machine lacks the device, the user's own code fails on first samples, the record of
        another run is in the way, a finished record is damaged or lacks the wanted statistics, or another process is
        writing the record.

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
    work = make_run(settings, design, seed, threads, device)
    return carry_out(work, Path(out) / design.name, force=force, statistics=statistics, progress=progress)


@plain
def make_run(settings: Settings, design: Design, seed: int, threads: int = 1, device: str = "cpu"):
    """What `carry_out` carries out: a `Run`, or of a network of the user's own what its function makes.

    Parameters
    ----------
    settings, design, seed, threads, device
        As of `run`.

    Examples
    --------
    >>> from softnum.train import Settings, load_design
    >>> make_run(Settings("mlp"), load_design("a-float32"), seed=1).iterations
    840
    """
    if not is_own(settings.network):
        return Run(settings, design, seed, threads, device)
    training = load_own(settings.network, settings.network_options)
    return training.make_run(settings, design, seed, threads, device)


@plain
def describe_network(settings: Settings) -> dict:
    """The network of some settings as plain data for results."""
    if is_own(settings.network):
        return load_own(settings.network, settings.network_options).describe(settings)["network"]
    return settings.make_network().describe()


@plain
def carry_out(
    work: Run,
    folder: Path,
    *,
    force: bool = False,
    statistics: int | None = None,
    progress: Callable[[int, int, float | None], None] | None = None,
) -> Path:
    """Train what a `Run` holds, and write ``seed-<seed>.jsonl`` into a folder; all else is as in `run`."""
    files = RunFiles(folder, work.seed, work.header(), work.iterations)
    statistics_file = StatisticsFile(files.path, statistics, files.header)
    try:
        files.open()
        if not force and files.finished():
            if not statistics_file.fits():
                raise ValueError(
                    f"{files.path} is finished, and {statistics_file.path.name} beside it does not hold its statistics "
                    f"every {statistics} iterations; use --force to run again (the record will be the same)"
                )
            return files.path
        state = None if force or not statistics_file.fits() else files.load()
        epochs_done = 0 if state is None else work.restore(state)
        done = (
            epochs_done * work.per_epoch if state is None else int(state.get("iteration", epochs_done * work.per_epoch))
        )
        files.start(state)
        statistics_file.start(done)
        saved = monotonic()
        for epoch in range(epochs_done + 1, work.settings.epochs + 1):
            for iteration, samples in work.plan(epoch):
                if iteration <= done:
                    continue
                row = {"iteration": iteration, "epoch": epoch}
                if statistics_file.wants(iteration):
                    watch = Watch()
                    with work.watching(watch):
                        row |= work.train(iteration, samples)
                    statistics_file.write(watch.rows(iteration))
                else:
                    row |= work.train(iteration, samples)
                diverged = not math.isfinite(row["loss"])
                last = diverged or iteration == work.iterations
                if last or iteration % work.interval == 0:
                    row |= work.evaluate(iteration)
                if diverged:
                    row.update(loss=None, diverged=True)
                if last:
                    row["finished"] = True
                files.row(row)
                if progress is not None:
                    progress(iteration, work.iterations, row.get(files.metric))
                if last:
                    files.discard_checkpoint()
                    return files.path
                if work.seekable and files.metric in row and monotonic() - saved >= _CHECKPOINT_SECONDS:
                    files.save({"epoch": epoch - 1, "iteration": iteration, **work.state()})
                    saved = monotonic()
            files.save({"epoch": epoch, **work.state()})
            saved = monotonic()
    finally:
        statistics_file.close()
        files.close()
    raise AssertionError("a run ends with its last iteration")


class Run:
    """What a run works on: network, data, arithmetic, optimiser, schedule, loss scale.

    Parameters
    ----------
    settings, design, seed, threads, device
        As of `run`.
    data : DataSet, optional
        In place of the settings' data set.
    """

    @plain
    def __init__(
        self, settings: Settings, design: Design, seed: int, threads: int = 1, device: str = "cpu", *, data=None
    ) -> None:  # fmt: skip
        check_seed(seed)
        check_device(device)
        if is_own(settings.network):
            raise ValueError(
                f"only networks of softnum's own can be explained and profiled; watch {settings.network} by "
                "statistics, and profile it with torch.profiler"
            )
        self.design, self.settings = design, settings
        self.network = settings.make_network()
        if data is None:
            of_text = {"steps": self.network.inputs, "vocabulary": self.network.vocabulary}
            data = load_data(settings.data, settings.data_folder, **(of_text if self.network.kind == "text" else {}))
        self.data = data
        if settings.samples is not None or settings.held_out is not None:
            self.data = self.data.first(settings.samples, settings.held_out)
        self.task = self.network.make_task(self.data, settings.batch, seed)
        design.check_operators(self.network.operators)
        names, looked_up = self.network.layer_names, self.network.looked_up
        self.numerics = Numerics(design, names, seed=seed, threads=threads, device=device, looked_up=looked_up)
        design.check_loss(self.network.layer_names)
        self.seed = self.numerics.seed
        self.per_epoch, self.seekable = self.task.per_epoch, self.task.seekable
        self.iterations = settings.epochs * self.per_epoch
        design.check_sparsity(self.network.layer_names, self.iterations)
        self.interval = settings.interval(self.task.samples)
        self._try_out()
        self.network.initialise(self.numerics)
        self.optimisers = {
            group: settings.make_optimiser(parameters) for group, parameters in self.network.groups.items()
        }
        self.sparse = {group: GradientSparsity(parameters) for group, parameters in self.network.groups.items()}
        self.schedule = settings.make_schedule()
        self.scaler = LossScaler(design.loss)

    def header(self) -> dict:
        """The record's first row."""
        settings, optimiser = self.settings, next(iter(self.optimisers.values()))
        roles = tuple(role for role in ROLES if role not in OPTIMISER_ROLES or role in optimiser.roles)
        config = {
            "design": self.design.describe(
                self.network.layer_names, roles, looked_up=self.network.looked_up, update=optimiser.multiplies
            ),
            "network": self.network.describe(),
            "data": self.data.describe(),
            **self.task.describe(),
            "batch": settings.batch,
            "epochs": settings.epochs,
            "evaluate_every": self.interval,
            **settings.describe_updates(),
        }
        config["gemms"] = design_gemms(self.design, self.network, settings.batch)
        return {"config": config, "seed": self.seed, "versions": record_versions()}

    def plan(self, epoch: int):
        """The iterations of an epoch, and what each takes of the data."""
        return enumerate(self.task.plan(epoch), start=(epoch - 1) * self.per_epoch + 1)

    def watching(self, listener) -> contextlib.AbstractContextManager:
        """Tell a listener of every call of the arithmetic, as long as the context lasts."""
        return watching(self.numerics, listener)

    @plain
    def train(self, iteration: int, part) -> dict:
        """One iteration; returns the losses before their updates, and what else belongs into its row.

        A loss that is not finite leaves parameters and states alone and ends the iteration.
        """
        with threads_by_default(self.numerics.backend.threads):
            return self._train(iteration, part)

    def _train(self, iteration: int, part) -> dict:
        numerics = self.numerics
        numerics.begin(iteration)
        row = {}
        for loss, group, name in self.task.losses(numerics, part):
            finite = math.isfinite(loss.value)
            row[name] = loss.value if finite else None
            if self.design.loss.dynamic:
                row["loss_scale"] = self.scaler.scale
            if not finite:
                return row | {"loss": loss.value}
            if not self._update(loss, group, iteration):
                row["skipped"] = True
            numerics.stage = "forward"
        numerics.finish()
        return row

    def _update(self, loss, group: str, iteration: int) -> bool:
        """One update of a group of parameters by a loss; False if it is skipped, as gradients overflow."""
        parameters = self.network.groups[group]
        self.numerics.loss_scale, self.numerics.stage = self.scaler.scale, "backward"
        loss.backward(self.scaler.scale)
        self.numerics.stage = "update"
        overflow = self.scaler.skips and gradients_overflow(parameters)
        self.scaler.update(overflow)
        if overflow:
            return False
        clip_gradients(parameters, value=self.settings.clip_value, norm=self.settings.clip_norm)
        self.sparse[group].apply()
        self.optimisers[group].step(self.schedule.factor(iteration, self.iterations))
        return True

    @plain
    def evaluate(self, iteration: int) -> dict:
        """How well the network, in the design's arithmetic, does on held-out data: a row's ``accuracy`` and more."""
        self.numerics.begin(iteration, evaluation=True)
        with threads_by_default(self.numerics.backend.threads):
            return self.task.evaluate(self.numerics)

    def _try_out(self) -> None:
        """A little forwards and backwards: what is wrong with the user's own code shows before any file is made."""
        if not self.design.sources:
            return
        self.network.initialise(self.numerics)
        try:
            loss = next(iter(self.task.losses(self.numerics, self.task.trial))).loss
            if math.isfinite(loss.value):
                loss.backward(self.numerics.loss_scale)
            else:
                raise_first_nan(loss)
        except (ImportError, TypeError, ValueError) as error:
            raise ValueError(f"{self.design.path}: cannot train, its first samples end with: {error}") from error

    def state(self) -> dict:
        """What a checkpoint holds besides the epoch: from both follows the schedule's position."""
        state = {"loss_scale": self.scaler.scale, "loss_scale_good": self.scaler.good}
        for group, optimiser in self.optimisers.items():
            state[f"steps_{group}"] = optimiser.steps
            for name, arrays in optimiser.states.items():
                held = ((index, array) for index, array in enumerate(arrays) if array is not None)
                state |= {f"{name}_{group}_{index}": host(array) for index, array in held}
        for group, sparse in self.sparse.items():
            state |= {f"residual_{group}_{index}": host(array) for index, array in sparse.residuals.items()}
        for kind, tensors in (("parameter", self.network.parameters), ("buffer", self.network.buffers)):
            state |= {f"{kind}_{index}": host(tensor.value) for index, tensor in enumerate(tensors)}
        state["delayed"] = json.dumps(sorted(self.numerics.states))
        for index, place in enumerate(sorted(self.numerics.states)):
            delayed = self.numerics.states[place]
            state |= {f"delayed_history_{index}": delayed.history, f"delayed_scale_{index}": delayed.scale}
        return state | {f"task_{name}": value for name, value in self.task.state().items()}

    def restore(self, state: dict) -> int:
        """Go back to a checkpoint; returns the epochs done."""
        held = self.numerics.backend.array
        self.scaler.scale, self.scaler.good = float(state["loss_scale"]), int(state["loss_scale_good"])
        for group, optimiser in self.optimisers.items():
            optimiser.steps = int(state[f"steps_{group}"])
            for name, arrays in optimiser.states.items():
                arrays[:] = [
                    None if array is None else held(state[f"{name}_{group}_{index}"])
                    for index, array in enumerate(arrays)
                ]
        for group, sparse in self.sparse.items():
            sparse.residuals = {index: held(state[f"residual_{group}_{index}"]) for index in sparse.residuals}
        for kind, tensors in (("parameter", self.network.parameters), ("buffer", self.network.buffers)):
            for index, tensor in enumerate(tensors):
                tensor.value = held(state[f"{kind}_{index}"])
        for index, place in enumerate(json.loads(str(state["delayed"]))):
            found = Delayed(state[f"delayed_history_{index}"], state[f"delayed_scale_{index}"])
            self.numerics.states[tuple(place)] = found
        self.task.restore({name[5:]: value for name, value in state.items() if name.startswith("task_")})
        return int(state["epoch"])


def read_rows(path: Path) -> list[dict]:
    """The whole rows of a record."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
