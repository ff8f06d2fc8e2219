"""A run of a PyTorch model: what `softnum.train.run` carries out of a `softnum.torch.Training`."""

from __future__ import annotations

import contextlib
import io
import math
from functools import partial

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from softnum.runtime.threads import threads_by_default
from softnum.torch.dataflow.steps import Step, losses_of
from softnum.torch.models import mode_of, next_step
from softnum.torch.optimizer import GradScaler, Optimizer
from softnum.torch.products import convolutions, products_of_step
from softnum.torch.records import RESERVED, header_of
from softnum.torch.watch import watched
from softnum.torch.workers import backward_by_workers
from softnum.train.datasets.sets import batches
from softnum.train.engine.devices import check_device
from softnum.train.engine.initial import DOMAIN_PYTORCH, random_words
from softnum.train.engine.numerics import check_seed
from softnum.train.runs.own import generators
from softnum.train.runs.settings import Settings
from softnum.train.update.workers import Workers, seed_of_worker

__all__ = ["TrainingRun", "seeded"]


@contextlib.contextmanager
def seeded(seed: int, iteration: int, *, evaluation: bool = False):
    """Generators (`softnum.train.runs.own.generators`) as they are in an iteration of a run."""
    with generators(int(random_words(seed, DOMAIN_PYTORCH + evaluation, iteration, 1)[0])):
        yield


class TrainingRun:
    """What a run of a PyTorch model works on: the methods of ``softnum.train.runs.loop.Run``.

    Parameters
    ----------
    training : softnum.torch.Training
    settings, design, seed, threads, device
        As of `softnum.train.run`.
    """

    #: whether a run may go on within an epoch: a model of the user's own may keep what no checkpoint holds
    seekable = False

    def __init__(self, training, settings: Settings, design, seed: int, threads: int, device: str) -> None:
        check_seed(seed)
        check_device(device)
        if device != "cpu":
            _check_torch(device)
        self.training, self.settings, self.seed, self.threads = training, settings, seed, threads
        self.device = device
        self.model = training.make_model(design, seed).to(device)
        self.design = mode_of(self.model).arithmetic.design
        self.samples = training._count("train", settings.samples)
        self.held_out = training._count("held_out", settings.held_out)
        self.per_epoch = len(batches(self.samples, settings.batch, seed, 1))
        self.iterations = settings.epochs * self.per_epoch
        self.interval = settings.interval(self.samples)
        self.optimizers = training.optimizers(self.model)
        self.schedulers = {
            name: training.scheduler(each, self.iterations)
            for name, each in self.optimizers.items()
            if training.scheduler is not None
        }
        self.scaler = GradScaler(self.model)

    def header(self) -> dict:
        """The record's first row."""
        settings, training = self.settings, self.training
        facts = {**training.describe(settings), "batch": settings.batch, "epochs": settings.epochs}
        facts |= {"evaluate_every": self.interval, "metric": training.metric}
        facts["optimiser"] = _only(
            {
                name: {"name": _name_of(each), "update": training.update, "groups": _plain(_options(each))}
                for name, each in self.optimizers.items()
            }
        )
        if self.schedulers:
            facts["schedule"] = _only(
                {name: {"name": type(each).__name__, **_numbers(vars(each))} for name, each in self.schedulers.items()}
            )
        if settings.workers > 1:
            facts["parallel"] = self._describe_workers()
        if training.clip_norm is not None:
            facts["clip_norm"] = training.clip_norm
        batch = self._moved(training.batch(range(settings.batch // settings.workers)))  # what a worker multiplies
        step = Step(self.model, training.loss)
        facts["gemms"] = products_of_step(step, batch)
        if by := convolutions(self.model, step, (batch,)):
            facts["convolutions"] = by
        rules = [getattr(each, "rule", None) for each in self.optimizers.values()]
        return header_of(self.model, facts, self.seed, [rule for rule in rules if rule is not None])

    def _describe_workers(self) -> dict:
        """What shares the batches, as plain data."""
        named = [(name, tuple(x.shape)) for name, x in self.model.named_parameters() if x.requires_grad]
        settings = self.settings
        return Workers(
            settings.workers, settings.collective, self.seed, {"all": named}, bucket_bytes=settings.bucket_bytes
        ).describe()  # fmt: skip

    def plan(self, epoch: int):
        """The iterations of an epoch, and the samples that each takes."""
        order = batches(self.samples, self.settings.batch, self.seed, epoch)
        return enumerate(order, start=(epoch - 1) * self.per_epoch + 1)

    def watching(self, listener) -> contextlib.AbstractContextManager:
        """Tell a listener of every call of the arithmetic, as long as the context lasts."""
        return watched(self.model, listener)

    @contextlib.contextmanager
    def _computing(self, iteration: int, *, evaluation: bool = False):
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with threads_by_default(self.threads), seeded(self.seed, iteration, evaluation=evaluation):
                yield
        finally:
            torch.set_num_threads(threads)

    def train(self, iteration: int, samples) -> dict:
        """One iteration; returns the loss before the update, and what else belongs into its row.

        A loss that is not finite ends the iteration before the update.
        """
        with self._computing(iteration):
            self.model.train()
            if self.settings.workers > 1:
                return self._train_by_workers(iteration, samples)
            row = {"loss_scale": self.scaler.get_scale()} if self.design.loss.dynamic else {}
            found = self.training.loss(self.model, self._moved(self.training.batch(samples)))
            for name, loss in losses_of(found):
                row[name] = row["loss"] = loss.item()
                if not math.isfinite(row["loss"]):
                    return row
                self._update(name, loss)
                if self.scaler.skipped:
                    row["skipped"] = True
            self._end_iteration()
            return row

    def _end_iteration(self) -> None:
        self.scaler.update()
        for scheduler in self.schedulers.values():
            scheduler.step()

    def _train_by_workers(self, iteration: int, samples) -> dict:
        """As `train`: workers one after the other, each with its part of the samples, then their averages."""
        workers = self.settings.workers
        row = {"loss_scale": self.scaler.get_scale()} if self.design.loss.dynamic else {}
        values: list[float] = []

        def loss_of(worker: int, own) -> torch.Tensor:
            with seeded(seed_of_worker(self.seed, worker), iteration):
                found = list(losses_of(self.training.loss(self.model, self._moved(self.training.batch(own)))))
            if [name for name, _ in found] != ["loss"]:
                raise ValueError("workers share iterations of one optimiser and one loss; train this model by one")
            values.append(found[0][1].item())
            return self.scaler.scale(found[0][1])

        parts = [partial(loss_of, i, own) for i, own in enumerate(np.split(np.asarray(samples), workers))]
        text, count = self.settings.collective, len(samples) // workers
        backward_by_workers(
            self.model, parts, text, key=self.seed, step=iteration, rows=count, bucket_bytes=self.settings.bucket_bytes
        )
        row["loss"] = math.fsum(values) / workers
        if math.isfinite(row["loss"]):
            self._apply(self.optimizers["loss"])
            if self.scaler.skipped:
                row["skipped"] = True
            self._end_iteration()
        return row

    def _moved(self, batch):
        """A batch where the model lies."""
        return tree_map_only(torch.Tensor, lambda x: x.to(self.device), batch)

    def _update(self, name: str, loss: torch.Tensor) -> None:
        """One update by a loss, of the parameters of an optimiser."""
        if name not in self.optimizers:
            raise ValueError(f"loss(model, batch) named the optimiser {name!r}; there are {', '.join(self.optimizers)}")
        optimizer = self.optimizers[name]
        self.model.zero_grad()
        self.scaler.scale(loss).backward()
        self._apply(optimizer)

    def _apply(self, optimizer: torch.optim.Optimizer) -> None:
        """One update by the gradients."""
        if self.training.clip_norm is not None:
            own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            torch.nn.utils.clip_grad_norm_(own, self.training.clip_norm)
        self.scaler.step(optimizer)
        if self.training.update == "torch" and not self.scaler.skipped:
            next_step(self.model)

    @torch.no_grad()
    def evaluate(self, iteration: int) -> dict:
        """How well the model does on held-out samples: the numbers of the training's ``evaluate``."""
        size, numbers = self.settings.batch, range(self.held_out)
        with self._computing(iteration, evaluation=True):
            self.model.eval()
            held_out = (
                self._moved(self.training.batch(numbers[first : first + size], held_out=True))
                for first in range(0, self.held_out, size)
            )
            found = self.training.evaluate(self.model, held_out)
        if not isinstance(found, dict) or self.training.metric not in found:
            raise ValueError(f"evaluate(model, batches) must return numbers by name, with {self.training.metric!r}")
        taken = RESERVED.intersection(found)
        if taken:
            raise ValueError(
                f"evaluate(model, batches) cannot call a number {min(taken)!r}, which means something else in a "
                f"record's rows; call it held_out_{min(taken)}"
            )
        values = {name: float(value) for name, value in found.items()}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def state(self) -> dict:
        """What a checkpoint holds besides the epoch."""
        buffer = io.BytesIO()
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        parts["buffers"] = dict(self.model.named_buffers())  # which a state_dict need not have
        torch.save(tree_map_only(np.generic, lambda number: number.item(), parts), buffer)
        return {"torch": np.frombuffer(buffer.getvalue(), np.uint8)}

    def _parts(self) -> dict:
        optimizers = {f"optimizer.{name}": each for name, each in self.optimizers.items()}
        schedulers = {f"scheduler.{name}": each for name, each in self.schedulers.items()}
        kept = {f"kept.{name}": each for name, each in self.training.kept.items()}
        return {"model": self.model, "scaler": self.scaler, **optimizers, **schedulers, **kept}

    def restore(self, state: dict) -> int:
        """Go back to a checkpoint; returns the epochs done."""
        found = torch.load(io.BytesIO(state["torch"].tobytes()), weights_only=True, map_location="cpu")
        for name, part in self._parts().items():
            part.load_state_dict(found[name])
        with torch.no_grad():  # as they are: a state_dict's are rounded to ``master``
            for name, parameter in self.model.named_parameters():
                parameter.copy_(found["model"][name])
            for name, x in self.model.named_buffers():
                x.copy_(found["buffers"][name])
        return int(state["epoch"])


def _check_torch(device: str) -> None:
    """Raise ValueError if PyTorch lacks a device that softnum has."""
    if not torch.cuda.is_available():
        raise ValueError(
            f"device {device!r}: PyTorch {torch.__version__} finds no GPU here; leave the device out, or install a "
            "PyTorch for CUDA"
        )


def _name_of(optimizer: torch.optim.Optimizer) -> str:
    return optimizer.rule.name if isinstance(optimizer, Optimizer) else type(optimizer).__name__


def _options(optimizer: torch.optim.Optimizer) -> list[dict]:
    return [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def _only(facts: dict) -> dict:
    """Facts of each optimiser by its name; of a single one without it."""
    return facts["loss"] if list(facts) == ["loss"] else facts


def _plain(x):
    """Plain data of options."""
    if isinstance(x, dict):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(value) for value in x]
    if isinstance(x, torch.Tensor):
        return x.tolist()
    return x if x is None or isinstance(x, (bool, int, str)) or _is_finite(x) else repr(x)


def _is_finite(x) -> bool:
    return isinstance(x, float) and math.isfinite(x)


def _numbers(x: dict) -> dict:
    return {
        key: value
        for key, value in x.items()
        if (isinstance(value, (bool, int, str)) or _is_finite(value)) and key[0] != "_"
    }
