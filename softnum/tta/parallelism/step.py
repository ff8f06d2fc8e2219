"""How long a step takes on a system, and what memory it holds on each device of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from softnum.tta.parallelism.blocks import Block, Item
from softnum.tta.parallelism.communication import Communication
from softnum.tta.parallelism.plan import Stage, StepPlan
from softnum.tta.parallelism.schedules import makespan
from softnum.tta.parallelism.system import System
from softnum.tta.workloads.network_time import exposed_time
from softnum.tta.workloads.operations import Operation, Workload

__all__ = ["StepTime", "operation_seconds", "step_time"]


@dataclass(frozen=True)
class StepTime:
    """The time of a step.

    Parameters
    ----------
    plan : StepPlan
    system : str
    seconds : float
        Of a step: the pipeline, what gradients add to it, the update.
    compute : float
        Seconds in which the busiest device computes, of the pipeline's passes.
    exposed : Mapping
        Group -> seconds in which that device waits for an exchange of the group; of "data" and "expert_data" together
        under "data".
    bubble : float
        Seconds in which it waits for other stages.
    update : float
        Seconds of the optimiser.
    peak : float
        FLOP/s of a device at the rate of most of the matrix products.

    Examples
    --------
    >>> from softnum.tta.parallelism import Parallelism, plan_step, system
    >>> plan = plan_step("llama3-8b", Parallelism(data=8, batch=16, zero=3, sequence=8192), "bfloat16")
    >>> time = step_time(plan, system("dgx-h100"))
    >>> 1 < time.seconds < 4, 0 < time.share_of_peak < 1
    (True, True)
    """

    plan: StepPlan
    system: str
    seconds: float
    compute: float
    exposed: Mapping[str, float]
    bubble: float
    update: float
    peak: float

    @property
    def samples_per_second(self) -> float:
        """Of all devices."""
        return self.plan.parallelism.batch / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Of all devices; 0 for a network whose samples are not sequences."""
        return self.samples_per_second * self.plan.sequence

    @property
    def flops_per_second(self) -> float:
        """Of each device, without what is computed again."""
        return self.plan.model_flops / self.seconds / self.plan.devices

    @property
    def share_of_peak(self) -> float:
        """Of the device's peak."""
        return self.flops_per_second / self.peak

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "network": self.plan.network, "design": self.plan.design, "system": self.system,
            "devices": self.plan.devices, "seconds": self.seconds, "compute": self.compute,
            "exposed": dict(self.exposed), "bubble": self.bubble, "update": self.update,
            "samples_per_second": self.samples_per_second, "tokens_per_second": self.tokens_per_second,
            "flops_per_second": self.flops_per_second, "share_of_peak": self.share_of_peak,
        }  # fmt: skip


@lru_cache(maxsize=4096)
def _peak(device, formats: tuple[str, ...], gemm: bool) -> tuple[str, float]:
    peak = device.peak(formats, gemm=gemm)
    return peak.format, peak.flops


def operation_seconds(operation: Operation, where: System) -> float:
    """What an operation takes: its roofline, with the shares of rate and bandwidth that the system reaches, and its
    launch.

    Parameters
    ----------
    operation : Operation
    where : System

    Returns
    -------
    float

    Examples
    --------
    >>> from softnum.tta.parallelism import system
    >>> product = Operation("fc", "forward", "gemm", 2 * 4096**3, 2**26, 2**25, ("bfloat16", "bfloat16"))
    >>> round(operation_seconds(product, system("dgx-h100")) * 1e6, 1) > 138.9  # at peak
    True
    """
    shares, gemm = where.efficiency, operation.kind == "gemm"
    name, rate = _peak(_Hashed(where.device), operation.formats, gemm)
    if gemm:
        rate *= shares["attention"] if operation.layer.endswith("attention") else shares.get(name, shares["bf16"])
    return where.launch + max(operation.flops / rate, operation.bytes / (where.device.bandwidth * shares["memory"]))


class _Hashed:
    """A device as a key: by identity, as its table cannot be hashed."""

    __slots__ = ("device",)

    def __init__(self, device) -> None:
        self.device = device

    def peak(self, formats, *, gemm):
        return self.device.peak(formats, gemm=gemm)

    def __hash__(self) -> int:
        return id(self.device)

    def __eq__(self, other) -> bool:
        return self.device is other.device


def step_time(plan: StepPlan, where: System) -> StepTime:
    """The time of a step on a system.

    Passes follow their schedule (`makespan`); a pass takes its operations' rooflines, and what of its exchanges is not
    hidden. Gradients leave while the last micro-batch's backward pass goes on, as in `parallel_time`. Weights that ZeRO
    shares are gathered beside computation: of ZeRO 3 what takes longer than a layer's pass is exposed, of ZeRO 1 and 2
    what takes longer than a forward pass.

    Parameters
    ----------
    plan : StepPlan
    where : System

    Returns
    -------
    StepTime

    Raises
    ------
    ValueError
        If the system has fewer devices, or no rate of a format.

    Examples
    --------
    >>> from softnum.tta.parallelism import Parallelism, plan_step, system
    >>> ways = Parallelism(pipeline=4, batch=16, sequence=512)
    >>> time = step_time(plan_step("gpt2", ways), system("dgx-h100"))
    >>> time.seconds > time.compute > time.bubble > 0
    True
    """
    ways = plan.parallelism
    if plan.devices > where.devices:
        raise ValueError(
            f"the step is of {plan.devices} devices ({ways.data} x {ways.tensor} x {ways.context} x {ways.pipeline}), "
            f"and {where.name} has at most {where.devices}; take fewer, or state more in its last tier"
        )
    known: dict[int, dict[str, _Pass]] = {}
    for stage in plan.stages:
        for _, block in stage.parts:
            if id(block) not in known:
                known[id(block)] = _passes(block, plan, where)
    passes = {
        stage.number: _joined([(prefix, known[id(block)]) for prefix, block in stage.parts]) for stage in plan.stages
    }
    message = _message(plan, where)
    kinds = {"forward": ("forward",), "backward": ("backward_data", "backward_weight")}

    def seconds(kind: str, stage: int) -> float:
        return sum(passes[stage][part].seconds for part in kinds.get(kind, (kind,)))

    _, busy, free = makespan(ways, seconds, message)
    rank = max(range(ways.pipeline), key=lambda n: busy[n])
    total, waits, updates = 0.0, {}, {}
    for n in sorted(range(ways.pipeline), key=lambda n: (n != rank, -free[n])):
        stages = plan.of(n)
        items = [item for stage in stages for item in stage.update]
        updates[n] = sum(operation_seconds(item, where) for item in items if isinstance(item, Operation))
        costs = _costs(items, plan, where, "backward_weight")
        weights = sum(_costs(items, plan, where, "update").values())
        if ways.overlap:
            weights = max(0.0, weights - sum(seconds("forward", stage.number) for stage in stages))
        end = free[n] + updates[n] + weights
        if n == rank or end + sum(costs.values()) > total:  # else it ends before another does
            waits[n] = _gradients(stages, plan, passes, costs) + weights
            total = max(total, end - weights + waits[n])
    exposed = {"tensor": 0.0, "context": 0.0, "expert": 0.0, "data": waits[rank]}
    for stage in plan.of(rank):
        for part in passes[stage.number].values():
            for group, waited in part.exposed.items():
                exposed[group] += waited * plan.micro_batches
    compute = busy[rank] - sum(waited for group, waited in exposed.items()) + waits[rank]
    bubble = total - compute - sum(exposed.values()) - updates[rank]
    bubble = bubble if bubble > 1e-9 * total else 0.0
    return StepTime(
        plan, where.name, total, compute, exposed, bubble, updates[rank], _main_peak(plan, where)
    )  # fmt: skip


@dataclass(frozen=True)
class _Pass:
    """A pass of a stage: seconds in all, and of these those of exchanges, by group."""

    seconds: float
    exposed: Mapping[str, float] = field(default_factory=dict)
    layers: Mapping[str, float] = field(default_factory=dict)


def _joined(parts: list[tuple[str, dict[str, _Pass]]]) -> dict[str, _Pass]:
    """The passes of a stage, of those of its blocks."""
    found = {}
    for name in ("forward", "backward_data", "backward_weight"):
        waits: dict[str, float] = {}
        layers = {}
        for prefix, passes in parts:
            for group, waited in passes[name].exposed.items():
                waits[group] = waits.get(group, 0.0) + waited
            for layer, took in passes[name].layers.items():
                layers[prefix + layer] = took
        found[name] = _Pass(sum(passes[name].seconds for _, passes in parts), waits, layers)
    return found


def _passes(block: Block, plan: StepPlan, where: System) -> dict[str, _Pass]:
    found = {}
    for name, items in (("forward", block.forward), ("backward", block.backward)):
        split = ("forward",) if name == "forward" else ("backward_data", "backward_weight")
        rows: dict[str, list[Item]] = {part: [] for part in split}
        for item in items:
            rows[item.stage if item.stage in rows and name != "forward" else split[0]].append(item)
        for part, own in rows.items():
            found[part] = _pass(own, plan, where)
    return found


def _pass(items: Iterable[Item], plan: StepPlan, where: System) -> _Pass:
    layers: dict[str, float] = {}
    waits: dict[str, float] = {}
    gathered = 0.0
    for item in items:
        if isinstance(item, Operation):
            layers[item.layer] = layers.get(item.layer, 0.0) + operation_seconds(item, where)
        elif item.group in ("data", "expert_data"):  # ZeRO 3
            gathered += _seconds(item, plan, where)
        elif item.group != "pipeline":
            waits[item.group] = waits.get(item.group, 0.0) + _seconds(item, plan, where)
    shares, overlap = where.efficiency, plan.parallelism.overlap
    for group in waits if overlap else ():
        waits[group] *= shares["exposed_expert" if group == "expert" else "exposed"]
    compute = sum(layers.values())
    busy = compute + sum(waits.values())
    if gathered:
        waits["data"] = max(0.0, gathered - busy) if overlap else gathered
    return _Pass(compute + sum(waits.values()), waits, layers)


def _seconds(item: Communication, plan: StepPlan, where: System) -> float:
    ways = plan.parallelism
    return where.seconds(item, ways.size(item.group), ways.spacing(item.group))


def _costs(items: Iterable[Item], plan: StepPlan, where: System, stage: str) -> dict[str, float]:
    """Seconds of each layer's exchanges of a stage."""
    found: dict[str, float] = {}
    for item in items:
        if isinstance(item, Communication) and item.stage == stage:
            found[item.layer] = found.get(item.layer, 0.0) + _seconds(item, plan, where)
    return found


def _message(plan: StepPlan, where: System) -> float:
    """Seconds of a message between two stages."""
    rows = [item for stage in plan.stages[:1] for item in stage.forward if item.stage == "forward"]
    messages = [item for item in rows if isinstance(item, Communication) and item.group == "pipeline"]
    return _seconds(messages[0], plan, where) if messages else 0.0


def _gradients(stages: tuple[Stage, ...], plan: StepPlan, passes, costs: Mapping[str, float]) -> float:
    """What the exchange of a device's gradients adds after its last backward pass."""
    if not costs:
        return 0.0
    operations, tensors, times = [], [], {}
    for stage in stages:
        operations += [op for op in stage.forward if isinstance(op, Operation)]
    for stage in reversed(stages):
        operations += [op for op in stage.backward if isinstance(op, Operation)]
    for stage in stages:
        tensors += stage.tensors
        for part, own in passes[stage.number].items():
            scale = own.seconds / sum(own.layers.values()) if own.layers else 1.0
            for layer, took in own.layers.items():
                row = times.setdefault(layer, {})
                row[part] = row.get(part, 0.0) + took * scale
    work = Workload(plan.network, plan.design, plan.parallelism.micro_batch, tuple(operations), tuple(tensors))
    return float(
        exposed_time(work, times, lambda layer, size: Fraction(costs.get(layer, 0.0)), overlap=plan.parallelism.overlap)
    )


def _main_peak(plan: StepPlan, where: System) -> float:
    flops: dict[float, int] = {}
    for stage in plan.stages:
        for item in stage.forward:
            if isinstance(item, Operation) and item.kind == "gemm":
                rate = _peak(_Hashed(where.device), item.formats, True)[1]
                flops[rate] = flops.get(rate, 0) + item.flops
    return max(flops, key=flops.get)
