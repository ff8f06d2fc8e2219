"""Where the time of a training iteration goes: measured operation by operation, in tables and as a timeline."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from statistics import median

from softnum.runtime.columns import text_table
from softnum.runtime.plain import plain
from softnum.train.designs.design import Design
from softnum.train.engine.numerics import STAGES
from softnum.train.engine.watch import BINARY64, Event, watching
from softnum.train.inspect.operations import Step, StepTrace
from softnum.train.runs.loop import Run
from softnum.train.runs.settings import Settings

__all__ = ["Operation", "Profile", "Share", "profile"]

#: what is computed in binary64 elsewhere than in a loss
_ANYWHERE = {"divide", "exp", "log", "norm", "ordered_sum"}
_BETWEEN = "between operations"


@dataclass(frozen=True)
class Operation:
    """One operation of the measured iterations.

    Attributes
    ----------
    name : str
        As in `softnum.train.inspect.operations.Step`; of what an explanation leaves out, the backend's method.
    layer : str
        Whose rounding or product it is. What rounds nothing counts for the layer of the rounding before it in the
        iteration, "input" before the first; "loss" of a loss.
    stage : str
        "forward", "backward" or "update".
    step : Step or None
        Its formats, shapes, FLOPs and bytes; None of what neither computes nor moves anything.
    seconds : float
        Median over the iterations.
    started, lasted : float
        Seconds from the start of the iteration that the timeline shows; how long it took there.
    """

    name: str
    layer: str
    stage: str
    step: Step | None
    seconds: float
    started: float
    lasted: float


@dataclass(frozen=True)
class Share:
    """A row of a table of a profile.

    Attributes
    ----------
    scope : tuple of str
        The operation; or the layer; or the layer and the stage.
    seconds : float
        Sum of the medians of its operations.
    share : float
        Of the time of an iteration, from 0 to 1.
    bytes : float
        As in `softnum.train.inspect.operations.Step`: in the bits of the design's formats.
    flops : int
    occurrences : int
        Operations in an iteration.
    parameters : int or None
        Of a layer; None in other rows.
    """

    scope: tuple[str, ...]
    seconds: float
    share: float
    bytes: float
    flops: int
    occurrences: int
    parameters: int | None = None


@dataclass(frozen=True)
class Profile:
    """What `profile` measured; print it to see the tables.

    Attributes
    ----------
    title : str
    operations : tuple of Operation
        In their order.
    between : float
        Seconds of an iteration outside of its operations: the engine, and what the data and the run itself do. Median.
    iterations : int
        How many were measured.
    seconds : float
        Of an iteration: `between` and the medians of all operations.
    length : float
        Seconds of the iteration that the timeline shows.
    parameters : dict
        Layer -> how many it has, in the order in which the input passes them.
    """

    title: str
    operations: tuple[Operation, ...]
    between: float
    iterations: int
    length: float
    parameters: dict[str, int]

    @property
    def seconds(self) -> float:
        """Of an iteration."""
        return sum(operation.seconds for operation in self.operations) + self.between

    @property
    def by_operation(self) -> list[Share]:
        """A row for each kind of operation, the longest first, and one for what is between them."""
        names = dict.fromkeys(operation.name for operation in self.operations)
        rows = [self._share((name,), (o for o in self.operations if o.name == name)) for name in names]
        return [*sorted(rows, key=lambda row: -row.seconds), self._rest]

    @property
    def by_scope(self) -> list[Share]:
        """A row for each layer, below it one for each stage in which it computes, and one for what is between."""
        rows = []
        layers = [*self.parameters, *dict.fromkeys(o.layer for o in self.operations if o.layer not in self.parameters)]
        for layer in layers:
            own = [operation for operation in self.operations if operation.layer == layer]
            rows.append(self._share((layer,), own, self.parameters.get(layer, 0)))
            for stage in STAGES:
                part = [operation for operation in own if operation.stage == stage]
                rows += [self._share((layer, stage), part)] if part else []
        return [*rows, self._rest]

    @property
    def _rest(self) -> Share:
        return Share((_BETWEEN,), self.between, self.between / self.seconds, 0.0, 0, 0)

    def _share(self, scope: tuple[str, ...], operations: Iterable[Operation], parameters: int | None = None) -> Share:
        operations = list(operations)
        steps = [operation.step for operation in operations if operation.step is not None]
        seconds = sum(operation.seconds for operation in operations)
        return Share(
            scope, seconds, seconds / self.seconds, sum(step.bytes for step in steps),
            sum(step.flops for step in steps), len(operations), parameters,
        )  # fmt: skip

    def to_json(self) -> bytes:
        """A timeline in Chrome's trace event format, which chrome://tracing and ui.perfetto.dev show; and the tables.

        Operations lie within their layer, that within its stage, and this within the iteration. Categories are the
        stage and the layer; arguments say formats, shapes, unit, rounding, FLOPs and bytes.
        """
        events = [
            {"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": self.title}},
            _span("iteration", "iteration", 0.0, self.length),
            *self._groups(lambda o: (o.stage,)), *self._groups(lambda o: (o.stage, o.layer)),
            *(_span(o.name, f"{o.stage},{o.layer}", o.started, o.lasted, _arguments(o)) for o in self.operations),
        ]  # fmt: skip
        tables = {"operations": self.by_operation, "scopes": self.by_scope}
        facts = {
            "title": self.title, "seconds": self.seconds, "iterations": self.iterations,
            **{name: [asdict(row) for row in rows] for name, rows in tables.items()},
        }  # fmt: skip
        trace = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": facts}
        return json.dumps(trace, allow_nan=False).encode() + b"\n"

    def _groups(self, key) -> Iterator[dict]:
        """A span for each run of operations that have a key in common."""
        run: list[Operation] = []
        for operation in (*self.operations, None):
            if run and (operation is None or key(operation) != key(run[-1])):
                first, last = run[0], run[-1]
                *_, name = key(first)
                yield _span(name, ",".join(key(first)), first.started, last.started + last.lasted - first.started)
                run = []
            run.append(operation)

    def __str__(self) -> str:
        said = (
            f"{self.title}\nan iteration takes {self.seconds * 1e3:.3f} ms: medians of {self.iterations}, after one to "
            "warm up; bytes are those of the design's formats"
        )
        numbers = ("ms", "share", "bytes", "flops", "occurrences")
        operations = [("operation", *numbers)] + [(row.scope[0], *_numbers(row)) for row in self.by_operation]
        scopes = [("layer", "stage", *numbers, "parameters")]
        for row in self.by_scope:
            layer, stage = row.scope if len(row.scope) == 2 else (row.scope[0], "")
            parameters = "" if row.parameters is None else f"{row.parameters:,}"
            scopes.append(("" if stage else layer, stage, *_numbers(row), parameters))
        return "\n\n".join([said, text_table(operations, numbers=5), text_table(scopes, numbers=6)])


def _numbers(row: Share) -> tuple[str, ...]:
    return (
        f"{row.seconds * 1e3:.3f}", f"{row.share:.1%}", f"{row.bytes:,.0f}", f"{row.flops:,}", f"{row.occurrences:,}",
    )  # fmt: skip


def _span(name: str, category: str, start: float, length: float, arguments: dict | None = None) -> dict:
    """A complete event, in microseconds."""
    span = {"name": name, "cat": category, "ph": "X", "ts": start * 1e6, "dur": length * 1e6, "pid": 1, "tid": 1}
    return span if arguments is None else {**span, "args": arguments}


def _arguments(operation: Operation) -> dict:
    if operation.step is None:
        return {}
    step = asdict(operation.step)
    return {name: value for name, value in step.items() if name != "operation" and value is not None}


@plain
def profile(
    model: str | Settings, design: Design, *, seed: int = 1, iterations: int = 5, threads: int = 1,
    device: str = "cpu",
) -> Profile:  # fmt: skip
    """Measure the time of every operation of a network's training iteration under a design.

    The first iteration, in which `softnum.train.explain` says what each operation is, warms up; those after it are
    timed. The overhead of measuring is excluded. Nothing is written; times depend on the machine and are not part of
    records.

    Parameters
    ----------
    model : str or Settings
        A network's name, or all settings of a run.
    design : Design
    seed : int
        Seed of weights and samples.
    iterations : int
        How many to measure. Those that skip their update, as gradients overflow, are not counted.
    threads, device
        As of `softnum.train.run`.

    Returns
    -------
    Profile

    Raises
    ------
    ValueError
        As of `softnum.train.run`; if the run is too short, or its loss is not finite.

    Examples
    --------
    >>> from softnum.train import Settings, load_design, profile
    >>> found = profile(Settings(batch=32), load_design("c-wang-fp8"), iterations=3)
    >>> [row.scope for row in found.by_scope][:4]
    [('fc1',), ('fc1', 'forward'), ('fc1', 'backward'), ('fc1', 'update')]
    >>> found.by_scope[0].parameters, round(sum(row.share for row in found.by_operation), 12)
    (8320, 1.0)
    """
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise ValueError(f"iterations must be a positive integer, got {iterations!r}")
    settings = model if isinstance(model, Settings) else Settings(network=model)
    work = Run(settings, design, seed, threads, device)
    first, measured = _measure(work, iterations)
    shown = sorted(measured, key=lambda watch: watch.length)[(iterations - 1) // 2]
    operations = tuple(
        Operation(
            method if step is None else step.operation, layer, stage, step, median(each) / 1e9,
            (started - shown.started) / 1e9, (ended - started) / 1e9,
        )
        for (method, layer, stage), step, each, (started, ended) in zip(
            first.seen, first.steps, zip(*(watch.lasted for watch in measured), strict=True), shown.times, strict=True
        )
    )  # fmt: skip
    parameters = dict.fromkeys(work.network.layer_names, 0)
    for parameter in work.network.parameters:
        parameters[parameter.layer.name] += parameter.value.size
    between = median(watch.length - sum(watch.lasted) for watch in measured)
    title = f"{settings.network}, {settings.data}, batch {settings.batch}, {design.name}, "
    title += f"threads: {threads}" if device == "cpu" else f"device: {device}"
    return Profile(title, operations, between / 1e9, iterations, shown.length / 1e9, parameters)


class _Watch:
    """A listener that notes the times of an iteration's operations, and what they are if it has a trace."""

    def __init__(self, work: Run, trace: StepTrace | None) -> None:
        self._numerics, self._trace = work.numerics, trace
        self.seen: list[tuple[str, str, str]] = []  # method, layer, stage
        self.times: list[tuple[int, int]] = []
        self.steps: list[Step | None] = []
        self.started = self.length = 0

    @property
    def lasted(self) -> list[int]:
        """Nanoseconds of each operation."""
        return [ended - started for started, ended in self.times]

    def __call__(self, event: Event) -> None:
        layer = (self._numerics.place or ("input",))[0]
        if event.method in BINARY64 - _ANYWHERE:
            layer = "loss"
        self.seen.append((event.method, layer, event.stage))
        self.times.append((event.started, event.ended))
        if self._trace is not None:
            before = len(self._trace.steps)
            self._trace(event)
            self.steps.append(self._trace.steps[-1] if len(self._trace.steps) > before else None)


def _measure(work: Run, count: int) -> tuple[_Watch, list[_Watch]]:
    """An iteration that says what its operations are, and so many after it that have the same ones."""
    first, measured = None, []
    for epoch in range(1, work.settings.epochs + 1):
        for iteration, part in work.plan(epoch):
            watch = _Watch(work, StepTrace(work) if first is None else None)
            with watching(work.numerics, watch) as now:
                watch.started = now()
                row = work.train(iteration, part)
                watch.length = now() - watch.started
            if not math.isfinite(row["loss"]):
                raise ValueError(f"the loss of iteration {iteration} is not finite: there is no update to measure")
            if "skipped" in row:
                continue
            if first is None:
                first = watch
            elif watch.seen == first.seen:
                measured.append(watch)
            elif not measured:
                first = None  # the next one says what it does
            if len(measured) == count:
                return first, measured
    raise ValueError(
        f"to measure {count} iterations takes at least one more, to warm up; of the {work.iterations} of the run, "
        f"{len(measured)} could be measured: train more epochs, or measure fewer"
    )
