"""One training run: a network under a design, from initial weights to a finished record."""

from __future__ import annotations

import contextlib
import json
import math
import platform
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from time import monotonic

import numpy as np

from softnum.runtime.heap import freed_memory_kept
from softnum.runtime.plain import plain
from softnum.runtime.threads import threads_by_default
from softnum.train.datasets.sets import load_data
from softnum.train.designs.design import OPTIMISER_ROLES, ROLES, Design
from softnum.train.designs.gemms import design_gemms
from softnum.train.designs.sparsity import GradientSparsity
from softnum.train.designs.split_units import check_divisions
from softnum.train.engine.binary64 import host
from softnum.train.engine.devices import check_device
from softnum.train.engine.functions import raise_first_nan
from softnum.train.engine.numerics import Numerics, check_seed
from softnum.train.engine.watch import watching
from softnum.train.recipes import Delayed
from softnum.train.runs.own import is_own, load_own
from softnum.train.runs.record import RunFiles
from softnum.train.runs.settings import Settings
from softnum.train.runs.statistics import StatisticsFile, Watch
from softnum.train.update.scaling import LossScaler, clip_gradients, gradients_overflow
from softnum.train.update.servers import Versions
from softnum.train.update.workers import Workers

__all__ = ["Run", "carry_out", "describe_network", "make_run", "record_versions", "run"]

_CHECKPOINT_SECONDS = 60.0
_NOT_SERVED = ("actor-critic", "wgan")


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
        Seed of the initial weights, the batches and every stochastic rounding.
    out : path-like
        The record is ``<out>/<design>/seed-<seed>.jsonl``.
    force : bool
        Run again even if a finished record, or one of another run, is there.
    threads : int
        Of a product; at most, of other arithmetic. The record does not depend on it.
    device : str
        "cpu", or "cuda" for a GPU. The record does not depend on it, and an interrupted run may go on on another.
    statistics : int, optional
        Also write statistics of rounding (``softnum.train.runs.statistics``) of the first iteration and of every N-th
        after it, to ``seed-<seed>.statistics.jsonl`` beside the record, which does not depend on it.
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
@freed_memory_kept()
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
        check_divisions(design, self.network, settings.batch // (settings.workers if settings.collective else 1))
        self.interval = settings.interval(self.task.samples)
        self._try_out()
        self.convolutions = self._convolutions()
        self.network.initialise(self.numerics)
        self.optimisers = {
            group: settings.make_optimiser(parameters) for group, parameters in self.network.groups.items()
        }
        self.sparse = {group: GradientSparsity(parameters) for group, parameters in self.network.groups.items()}
        self.schedule = settings.make_schedule()
        self.scaler = LossScaler(design.loss)
        self.workers = None if settings.collective is None else self._workers()
        self.versions = None if settings.server is None else self._versions()

    def _workers(self) -> Workers:
        """What shares the batches, if it is more than one."""
        settings, groups = self.settings, self.network.groups
        self.task.split(next(iter(self.task.plan(1))), settings.workers)  # ValueError if it has no parts
        named = {
            group: [(parameter.name, parameter.value.shape) for parameter in parameters]
            for group, parameters in groups.items()
        }
        return Workers(
            settings.workers, settings.collective, self.seed, named, settings.compression, settings.bucket_bytes
        )  # fmt: skip

    def _versions(self) -> Versions:
        """What a parameter server keeps."""
        if self.network.name in _NOT_SERVED:
            raise ValueError(
                f"a server cannot train {self.network.name!r}, whose iterations are not one gradient of one loss, of "
                "samples that are there before; train it by one worker"
            )
        return Versions(self.settings.server, self.settings.workers, self.network.parameters)

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
        if self.design.transforms:
            config["convolutions"] = self.convolutions
        if self.workers is not None:
            config["parallel"] = self.workers.describe()
        if self.versions is not None:
            config["parallel"] = self.versions.describe()
        parts = 1 if self.workers is None else settings.workers
        config["gemms"] = design_gemms(self.design, self.network, settings.batch // parts)
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
        if self.workers is not None:
            return self._train_by_workers(iteration, part)
        if self.versions is not None:
            return self._train_by_server(iteration, part)
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
        self._backward(loss)
        return self._apply(group, iteration)

    def _backward(self, loss) -> None:
        self.numerics.loss_scale, self.numerics.stage = self.scaler.scale, "backward"
        loss.backward(self.scaler.scale)

    def _apply(self, group: str, iteration: int) -> bool:
        """An update of a group of parameters by their gradients; False if it is skipped."""
        parameters = self.network.groups[group]
        self.numerics.stage = "update"
        overflow = self.scaler.skips and gradients_overflow(parameters)
        self.scaler.update(overflow)
        if overflow:
            return False
        clip_gradients(parameters, value=self.settings.clip_value, norm=self.settings.clip_norm)
        self.sparse[group].apply()
        self.optimisers[group].step(self.schedule.factor(iteration, self.iterations))
        return True

    def _train_by_workers(self, iteration: int, part) -> dict:
        """As `_train`: workers one after the other, then their averages."""
        numerics, workers, network = self.numerics, self.workers, self.network
        row = {"loss": 0.0} | ({"loss_scale": self.scaler.scale} if self.design.loss.dynamic else {})
        before, values = [buffer.value for buffer in network.buffers], []
        for worker, own in enumerate(self.task.split(part, workers.count)):
            numerics.work(workers.seeds[worker])
            for buffer, value in zip(network.buffers, before, strict=True):
                buffer.value = value
            (loss, group, _) = next(iter(self.task.losses(numerics, own)))
            values.append(loss.value)
            row["loss"] = math.fsum(values) / workers.count
            if not math.isfinite(loss.value):
                return row | {"loss": loss.value}
            self._backward(loss)
            parameters, gradients = network.groups[group], workers.gradients(group)
            for index, parameter in enumerate(parameters):
                gradients.put(worker, index, host(parameter.gradient))
            if worker == 0:
                first, site = [buffer.value for buffer in network.buffers], numerics.work(self.seed)
        for buffer, value in zip(network.buffers, first, strict=True):
            buffer.value = value
        numerics.work(self.seed, site)
        averages = gradients.reduced([numerics.next_key() for _ in gradients.buckets])
        fmt, array = workers.collective.format, numerics.backend.array
        for parameter, average in zip(parameters, averages, strict=True):
            parameter.gradient = parameter.layer.round("weight_gradients", array(average), of=fmt)
        if not self._apply(group, iteration):
            row["skipped"] = True
        numerics.stage = "forward"
        numerics.finish()
        return row

    def _train_by_server(self, iteration: int, part) -> dict:
        """As `_train`: one worker's gradient, of the weights that it had read."""
        update = self.versions.begin(iteration)
        row = {"worker": update.worker, "staleness": iteration - 1 - update.version}
        (loss, group, _) = next(iter(self.task.losses(self.numerics, part)))
        row["loss"] = loss.value
        if self.design.loss.dynamic:
            row["loss_scale"] = self.scaler.scale
        finite = math.isfinite(loss.value)
        if finite:
            self._backward(loss)
        self.versions.end(iteration)
        if finite:
            if not self._apply(group, iteration):
                row["skipped"] = True
            self.numerics.stage = "forward"
            self.numerics.finish()
        return row

    @plain
    def evaluate(self, iteration: int) -> dict:
        """How well the network, in the design's arithmetic, does on held-out data: a row's ``accuracy`` and more."""
        self.numerics.begin(iteration, evaluation=True)
        with threads_by_default(self.numerics.backend.threads):
            return self.task.evaluate(self.numerics)

    def _try_out(self) -> None:
        """A little forwards and backwards: what is wrong with the user's own code shows before any file is made.

        So does what an algorithm of convolutions does not have.
        """
        if not (self.design.sources or self.design.transforms):
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

    def _convolutions(self) -> dict[str, dict[str, str]]:
        """Layer -> pass -> by what the convolutions tried out are computed; ValueError if a table has none."""
        layers = {name: self.numerics.layer(name).convolved for name in self.network.layer_names}
        if not self.design.transforms:
            return {}
        for pattern, *_, convolution in self.design.layers:
            if convolution is not None and not any(layers[name] for name in layers if re.fullmatch(pattern, name)):
                raise ValueError(
                    f'{self.design.path}: [layers."{pattern}".convolution] matches no layer that convolves; those that '
                    f"do are {', '.join(name for name in layers if layers[name]) or 'none'}"
                )
        return {name: dict(passes) for name, passes in layers.items() if passes}

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
        if self.workers is not None:
            state |= {f"workers_{name}": value for name, value in self.workers.state().items()}
        if self.versions is not None:
            state |= self.versions.state()
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
        if self.workers is not None:
            self.workers.restore({name[8:]: value for name, value in state.items() if name.startswith("workers_")})
        if self.versions is not None:
            self.versions.restore({n: value for n, value in state.items() if n.startswith("version_")}, held)
        self.task.restore({name[5:]: value for name, value in state.items() if name.startswith("task_")})
        return int(state["epoch"])


def read_rows(path: Path) -> list[dict]:
    """The whole rows of a record."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
