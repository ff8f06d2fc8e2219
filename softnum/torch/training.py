"""How a PyTorch model is trained, said once: for runs with records, studies, workloads."""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.data import Subset, TensorDataset, default_collate

from softnum.torch.dataflow.steps import Step
from softnum.torch.models import convert
from softnum.torch.optimizer import Optimizer
from softnum.torch.products import workload_of_step
from softnum.torch.records import RESERVED
from softnum.torch.runs import TrainingRun, seeded
from softnum.train.designs.design import Design
from softnum.train.runs.own import own_name, source_of
from softnum.train.runs.settings import Settings
from softnum.train.update.scaling import check_limit

__all__ = ["Training"]

_SAMPLED = 64  # samples whose checksum a record has, of data that are no tensors
_UPDATES = ("design", "torch")


def _cross_entropy(model: nn.Module, batch) -> torch.Tensor:
    inputs, labels = batch
    return F.cross_entropy(model(inputs), labels)


def _accuracy(model: nn.Module, held_out: Iterable) -> dict:
    right = count = 0
    for inputs, labels in held_out:
        found = model(inputs)
        if found.dim() != 2 or found.shape[:1] != labels.shape:
            raise ValueError(
                f"the accuracy takes outputs (batch, classes) and labels (batch), got {tuple(found.shape)} and "
                f"{tuple(labels.shape)}; state evaluate="
            )
        right += int((found.argmax(1) == labels).sum())
        count += labels.numel()
    return {"accuracy": right / count}


@dataclass(frozen=True)
class Training:
    """A model with its data and optimiser, as returned by a function in a file that is given to ``softnum``.

    ``softnum train mine.py:make --design D`` calls the function ``make`` of ``mine.py``, which returns one of these;
    ``softnum tta --model mine.py:make``, ``memory``, ``estimate`` and a study's ``name = "mine.py:make"`` do too. The
    commands state designs, seeds, batches and epochs; everything else is stated here.

    Parameters
    ----------
    model : callable
        Takes nothing and returns a new ``torch.nn.Module``. PyTorch's generator has been seeded with the run's seed.
    train, held_out : sequence of samples
        Training and evaluation data: ``torch.utils.data`` data sets with a length.
    optimizer : callable
        Takes the model and returns a ``torch.optim.Optimizer``, or several by name.
    loss : callable, optional
        ``loss(model, batch)``, a tensor of one number. Default: ``cross_entropy(model(batch[0]), batch[1])``. Where
        there are several optimisers, a generator of pairs, the name of an optimiser and a loss: an update by that
        optimiser follows each, before the next is asked for; a row of the record has the last loss of each, and as
        ``loss`` the last of all.
    evaluate : callable, optional
        ``evaluate(model, batches)``: numbers by name, among them `metric`, from batches of the held-out samples,
        without gradients and in evaluation mode. Default: the share of samples whose largest output is their label's.
    metric : str
        The number that a run is judged by, from the model's `evaluate`.
    scheduler : callable, optional
        ``scheduler(optimizer, iterations)`` returns a ``torch.optim.lr_scheduler``, stepped after each iteration; of
        several optimisers it is made for each.
    clip_norm : float, optional
        Scale all gradients down if their joint norm exceeds this, by ``torch.nn.utils.clip_grad_norm_``.
    collate : callable
        Makes a batch of a list of samples.
    options : dict
        Keywords of `convert`: ``known_as``, ``first``, ``last``, ``keep``, ``elementwise``, ``program_order``.
    update : str
        "design": updates are rounded by the design (`Optimizer`); "torch": they are PyTorch's own.
    kept : dict
        Other state that changes during the run, by name, like the environments of reinforcement learning: objects with
        ``state_dict`` and ``load_state_dict``, which checkpoints hold too.

    Notes
    -----
    Batches are those of ``softnum train``: each epoch the samples in an order that follows from the seed, the few that
    are left over sit it out. Before each iteration and each evaluation the generators of PyTorch, NumPy and Python are
    seeded from the run's seed and the iteration, so that dropout has the same bits in a run that was interrupted; in
    the function that makes a `Training`, by a number that is always the same. A checkpoint holds the ``state_dict`` of
    the model, of its optimisers and schedulers, all buffers, and ``kept``: no other attributes of modules.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> from torch.utils.data import TensorDataset
    >>> x, y = torch.eye(8).repeat(8, 1), torch.arange(8).repeat(8)
    >>> data = TensorDataset(x, y)
    >>> how = st.Training(
    ...     model=lambda: torch.nn.Linear(8, 8), train=data, held_out=data,
    ...     optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=4.0),
    ... )
    >>> work = how.make_run(Settings("here:how", batch=16, epochs=2), "a-float32", seed=1)
    >>> work.iterations, sorted(work.train(1, next(iter(work.plan(1)))[1]))
    (8, ['loss'])
    """

    model: Callable[[], nn.Module]
    train: Sequence
    held_out: Sequence
    optimizer: Callable[[nn.Module], torch.optim.Optimizer | dict[str, torch.optim.Optimizer]]
    loss: Callable[[nn.Module, Any], torch.Tensor | Iterable] = _cross_entropy
    evaluate: Callable[[nn.Module, Iterable], dict] = _accuracy
    metric: str = "accuracy"
    scheduler: Callable[[torch.optim.Optimizer, int], Any] | None = None
    clip_norm: float | None = None
    collate: Callable[[list], Any] = default_collate
    options: dict = field(default_factory=dict)
    update: str = "design"
    kept: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("train", "held_out"):
            data = getattr(self, name)
            if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
                raise ValueError(f"{name} must have a length and samples by number, and {type(data).__name__} has not")
            if not len(data):
                raise ValueError(f"{name} has no samples")
        if self.update not in _UPDATES:
            raise ValueError(f"update must be one of {', '.join(_UPDATES)}, got {self.update!r}")
        check_limit("clip_norm", self.clip_norm)
        for name in ("model", "optimizer", "loss", "evaluate", "collate"):
            made = getattr(self, name)
            if not callable(made) or isinstance(made, nn.Module):
                raise ValueError(f"{name} must be a function (that makes it anew in each run), got {made!r:.100}")
        known = set(inspect.signature(convert).parameters) - {"model", "design", "seed", "quiet"}
        for name in self.options:
            if name not in known:
                raise ValueError(f"options: convert has no {name!r} to be stated here (it has {', '.join(known)})")
        if self.metric in RESERVED:
            raise ValueError(f"metric {self.metric!r} means something else in records; choose another name")

    def make_run(
        self, settings: Settings, design: Design | str, seed: int, threads: int = 1, device: str = "cpu"
    ) -> TrainingRun:
        """A run, as ``softnum.train.runs.loop.carry_out`` takes it."""
        return TrainingRun(self, settings, design, seed, threads, device)

    def make_model(self, design: Design | str, seed: int) -> nn.Module:
        """A new model with the initial weights of a seed, converted to a design."""
        with seeded(seed, 0):
            model = self.model()
            if not isinstance(model, nn.Module):
                raise ValueError(f"model() must return a torch.nn.Module, got {type(model).__name__}")
            try:
                return convert(model, design, seed=seed, quiet=True, **self.options)
            except NotImplementedError as error:
                raise ValueError(str(error)) from error

    def batch(self, numbers, *, held_out: bool = False):
        """The batch of some samples, by their numbers."""
        data = self.held_out if held_out else self.train
        return self.collate([data[int(number)] for number in numbers])

    def workload(self, settings: Settings, design: Design):
        """The workload of an iteration of so many samples (`softnum.torch.workload`)."""
        model, count = self.make_model(design, 0), len(self.train)
        with seeded(0, 0):
            batch = self.batch(number % count for number in range(settings.batch))
        step, name = Step(model, self.loss), own_name(settings.network)
        return workload_of_step(step, batch, settings.batch, name, self.optimizers(model))

    def optimizers(self, model: nn.Module) -> dict[str, torch.optim.Optimizer]:
        """New optimisers of a converted model by name; of a single one the name is "loss"."""
        made = self.optimizer(model)
        found, own = made if isinstance(made, dict) else {"loss": made}, set(model.parameters())
        for name, each in found.items():
            if isinstance(made, dict) and name in RESERVED:
                raise ValueError(f"an optimiser cannot be called {name!r}, which means something else in records")
            if not isinstance(each, torch.optim.Optimizer):
                raise ValueError(
                    f"optimizer(model) must return a torch.optim.Optimizer, or several by name, got {made!r:.200}"
                )
            if not {parameter for group in each.param_groups for parameter in group["params"]} <= own:
                raise ValueError("optimizer(model): it updates parameters that are none of the model's")
        if self.update == "torch":
            return found
        try:
            return {
                name: each if isinstance(each, Optimizer) else Optimizer(each, model) for name, each in found.items()
            }
        except TypeError as error:
            raise ValueError(f"{error}; or leave updates to PyTorch: Training(update='torch')") from error

    def describe(self, settings: Settings) -> dict:
        """``network`` and ``data`` as plain data."""
        counts = [self._count(name, limit) for name, limit in _parts(settings)]
        digest = hashlib.sha256()
        with seeded(0, 0):
            for name, count in zip(("train", "held_out"), counts, strict=True):
                _digest(getattr(self, name), range(count), digest)
        options = {"options": settings.network_options} if settings.network_options else {}
        network = {"name": own_name(settings.network), **options, **source_of(settings.network)}
        data = {"name": settings.data, "train": counts[0], "held_out": counts[1], "sha256": digest.hexdigest()}
        return {"network": network, "data": data}

    def _count(self, name: str, limit: int | None) -> int:
        there = len(getattr(self, name))
        if limit is not None and not 1 <= limit <= there:
            option = "samples" if name == "train" else "held_out"
            raise ValueError(f"{option} must lie in 1..{there}, the samples of {name}, got {limit!r}")
        return there if limit is None else limit


def _parts(settings: Settings):
    return ("train", settings.samples), ("held_out", settings.held_out)


def _digest(data, numbers, digest) -> None:
    """Take samples into a checksum: all of those that are tensors, of others, which may take long, the first few."""
    while isinstance(data, Subset):
        data, numbers = data.dataset, [data.indices[number] for number in numbers]
    if isinstance(data, TensorDataset):
        parts = [part[torch.as_tensor(list(numbers))] for part in data.tensors]
    else:
        parts = [data[number] for number in itertools.islice(numbers, _SAMPLED)]
    for leaf in tree_leaves(parts):
        if isinstance(leaf, torch.Tensor):
            leaf = leaf.detach().cpu().contiguous()
            digest.update(f"{leaf.dtype} {tuple(leaf.shape)}".encode())
            digest.update(leaf.reshape(-1).view(torch.uint8).numpy().tobytes() if leaf.numel() else b"")
        elif isinstance(leaf, (bool, int, float, str, bytes)) or leaf is None:
            digest.update(repr(leaf).encode())
        elif hasattr(leaf, "__array_interface__") or isinstance(leaf, np.generic):
            leaf = np.asarray(leaf)
            digest.update(f"{leaf.dtype} {leaf.shape}".encode() + np.ascontiguousarray(leaf).tobytes())
        else:
            raise ValueError(
                f"a sample holds {type(leaf).__name__}, of which there is no checksum for the record; let data sets "
                "deliver tensors, arrays, numbers and texts"
            )
