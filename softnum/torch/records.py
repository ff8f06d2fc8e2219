"""Records of training, as ``softnum train`` writes them."""

from __future__ import annotations

import json
import math
from importlib import metadata
from pathlib import Path

import torch
from torch import nn

from softnum.torch.dataflow.steps import Whole
from softnum.torch.models import mode_of
from softnum.torch.products import convolutions, gemms
from softnum.train.designs.design import OPTIMISER_ROLES, ROLES
from softnum.train.engine.numerics import check_seed
from softnum.train.runs.loop import record_versions
from softnum.train.runs.record import RunFiles, read_lines

__all__ = ["RESERVED", "Recorder", "header_of"]

#: what rows of a record say themselves
RESERVED = frozenset(("iteration", "epoch", "loss", "loss_scale", "skipped", "finished", "diverged"))


def header_of(model: nn.Module, facts: dict, seed: int, rules=()) -> dict:
    """The first row of a record of a converted model.

    Parameters
    ----------
    model : torch.nn.Module
    facts : dict
        Of the config, all but ``design``; ``network``, a table of plain data, gets the model's class and the number of
        its parameters.
    seed : int
    rules : sequence of type
        The optimisers of `softnum.train` that update it.
    """
    mode = mode_of(model)
    arithmetic = mode.arithmetic
    design = arithmetic.design
    roles = tuple(role for role in ROLES if role not in OPTIMISER_ROLES or any(role in r.roles for r in rules))
    looked_up = {path for path, module in model.named_modules() if isinstance(module, nn.Embedding)}
    owners = [
        path
        for path, module in model.named_modules()
        if path not in mode.kept and any(True for _ in module.parameters(recurse=False))
    ]
    paths = dict.fromkeys([*owners, *(row["layer"] for row in facts["gemms"])])
    layers = {
        path: arithmetic.layer(path, looked_up=path in looked_up).describe(
            roles, update=any(rule.multiplies for rule in rules)
        )
        for path in paths
    }
    stated = {
        "name": design.name, "description": design.description, "layers": layers, "loss": design.loss.describe(),
        "hardware": design.hardware, "sources": design.sources, "first": arithmetic.first, "last": arithmetic.last,
        "known_as": arithmetic.known_as, "kept": sorted(mode.kept), "elementwise": "exact" if mode.exact else "torch",
    }  # fmt: skip
    parameters = sum(parameter.numel() for parameter in model.parameters())
    network = {**facts["network"], "class": type(model).__name__, "parameters": parameters}
    config = {"design": stated, **facts, "network": network}
    return {"config": config, "seed": seed, "versions": {**record_versions(), "torch": metadata.version("torch")}}


class Recorder:
    """Write the record of your own training loop, as ``softnum tta --accuracy`` and ``softnum report`` read it.

    The file is ``<out>/<design>/seed-<seed>.jsonl``. Its first row says what the design does in each layer, and the
    products of an iteration; then a row for each iteration. Leaving the ``with`` statement without an error marks the
    record as finished; after an error, or an interruption, it holds what there was, unfinished.

    Parameters
    ----------
    out : path-like
        Folder.
    model : torch.nn.Module
        A converted one (`convert`).
    inputs : tuple
        The arguments of the model in an iteration; only shapes and dtypes of tensors matter.
    seed : int
        Of the run.
    batch : int
        Samples of an iteration.
    network, data : str
        Names of the model and of its data in the record. Default: the model's class, and "own".
    metric : str
        The name of the number by which the run is judged; its last iteration must have it.
    facts : dict, optional
        Plain data to add to the record's config, like the learning rate.
    force : bool
        Replace an existing record, even one of another run.

    Raises
    ------
    ValueError
        If the model is not converted, a finished record is there, that of another run, or another process writes it.

    Examples
    --------
    >>> import tempfile, torch, softnum.torch as st
    >>> from softnum.tta import read_records
    >>> model = st.convert(torch.nn.Linear(4, 2), "c-wang-fp8", known_as={"": "fc"}, quiet=True)
    >>> with tempfile.TemporaryDirectory() as out:
    ...     with st.Recorder(out, model, (torch.zeros(8, 4),), seed=1, batch=8) as record:
    ...         for loss in (0.9, 0.5):
    ...             record.iteration(loss)
    ...         record.evaluation(accuracy=0.75)
    ...     read_records(out).records[0].evaluations
    (Evaluation(iteration=2, value=0.75, epoch=None),)

    A run that goes on from a checkpoint keeps ``record.state_dict()`` in it, and gives it to ``load_state_dict``:
    rows after it are dropped.
    """

    def __init__(
        self, out: str | Path, model: nn.Module, inputs: tuple, *, seed: int, batch: int, network: str = "",
        data: str = "own", metric: str = "accuracy", facts: dict | None = None, force: bool = False,
    ) -> None:  # fmt: skip
        check_seed(seed)
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise ValueError(f"batch must be a positive integer, got {batch!r}")
        if not isinstance(inputs, tuple):
            raise ValueError(f"inputs must be a tuple, what the model is called with, got {type(inputs).__name__}")
        config = {"network": {"name": network or type(model).__name__}, "data": {"name": data}, "batch": batch}
        config |= {"metric": metric, "gemms": gemms(model, *inputs)}
        if by := convolutions(model, Whole(model), inputs):
            config["convolutions"] = by
        taken = {"design", *config, *RESERVED}.intersection(facts or ())
        if taken or metric in RESERVED:
            raise ValueError(f"{min(taken, default=metric)!r} means something else in records; choose another name")
        try:
            config |= json.loads(json.dumps(facts or {}, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ValueError(f"facts must be plain data: {error}") from error
        header = header_of(model, config, seed)
        folder = Path(out, header["config"]["design"]["name"])
        self.path = folder / f"seed-{seed}.jsonl"
        self._files = RunFiles(folder, seed, header, 0)
        self._force, self._done = force, 0
        self._row: dict | None = None  # of the last iteration, which may get numbers yet
        self._recording = False  # within the with statement

    def __enter__(self) -> Recorder:
        self._files.open()
        try:
            if not self._force and self._finished():
                raise ValueError(f"{self.path} is finished; record to another folder, or replace it: force=True")
        except BaseException:
            self._files.close()
            raise
        self._recording = True
        return self

    def _finished(self) -> bool:
        rows = read_lines(self.path)
        if rows and rows[0] != self._files.header:
            raise ValueError(
                f"{self.path} is the record of another run; record to another folder, or replace it: force=True"
            )
        return bool(rows) and rows[-1].get("finished") is True

    def __exit__(self, kind, *error) -> None:
        self._recording = False
        try:
            if self._row is not None:
                metric = self._files.metric
                whole = metric in self._row or self._row.get("diverged", False)
                self._write({**self._row, "finished": True} if kind is None and whole else self._row)
                if kind is None and not whole:
                    raise ValueError(
                        f"{self.path}: the last iteration has no {metric}, so the record is not finished; say it "
                        f"before the end: record.evaluation({metric}=...)"
                    )
        finally:
            self._files.close()

    def _check(self, numbers=()) -> None:
        if not self._recording:
            raise ValueError(f"{self.path}: a Recorder writes within its with statement alone")
        taken = RESERVED.intersection(numbers)
        if taken:
            raise ValueError(f"{min(taken)!r} means something else in a record's rows; call it otherwise")

    def iteration(self, loss, **numbers) -> None:
        """Record an iteration and its loss.

        Parameters
        ----------
        loss : float, or tensor of one number
            A loss that is not finite is recorded as none, and ``diverged``: no iteration can follow it.
        **numbers : float
            Further entries of its row, like ``epoch=2``.
        """
        self._check(numbers.keys() - {"epoch"})
        self._begin()
        if self._row is not None:
            if self._row.get("diverged"):
                raise ValueError(f"{self.path}: the run has diverged in iteration {self._done}; no iteration follows")
            self._write(self._row)
        self._done += 1
        value = _number(loss)
        self._row = {"iteration": self._done, **_numbers(numbers), "loss": value}
        if value is None:
            self._row["diverged"] = True

    def evaluation(self, **numbers) -> None:
        """Record an evaluation after the last iteration: ``accuracy=0.9``; the metric must be among the numbers."""
        self._check(numbers)
        if self._row is None:
            raise ValueError("an evaluation belongs to an iteration: say iteration(loss) first")
        if self._files.metric not in numbers:
            raise ValueError(f"an evaluation must say {self._files.metric}, got {', '.join(numbers) or 'nothing'}")
        self._row |= _numbers(numbers)

    def state_dict(self) -> dict:
        """What a checkpoint holds: how many iterations are recorded."""
        return {"iteration": self._done, "row": None if self._row is None else json.dumps(self._row)}

    def load_state_dict(self, state: dict) -> None:
        """Go on after the iteration of a checkpoint; what was recorded after it is dropped.

        Raises
        ------
        ValueError
            If the record has fewer iterations than the checkpoint.
        """
        self._check()
        if self._files.opened:
            raise ValueError("load_state_dict comes before the first iteration")
        done = int(state["iteration"])
        written = done - (state["row"] is not None)
        rows = read_lines(self.path)
        if rows[:1] != [self._files.header] or len(rows) - 1 < written:
            raise ValueError(
                f"{self.path} has {max(len(rows) - 1, 0)} iterations of this run, and the checkpoint was made after "
                f"{done}"
            )
        lines = self.path.read_bytes().split(b"\n")[: written + 1]
        self._files.start({"record_bytes": sum(map(len, lines)) + len(lines)})
        self._done, self._row = done, None if state["row"] is None else json.loads(state["row"])

    def _begin(self) -> None:
        if not self._files.opened:
            self._files.start(None)

    def _write(self, row: dict) -> None:
        self._begin()
        self._files.row(row)


def _number(x) -> float | None:
    value = float(x.detach()) if isinstance(x, torch.Tensor) else float(x)
    return value if math.isfinite(value) else None


def _numbers(numbers: dict) -> dict:
    return {name: value if isinstance(value, int) else _number(value) for name, value in numbers.items()}
