"""What memory a step holds on each device of a pipeline, and whether a device has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from softnum.tta.parallelism.plan import Stage, StepPlan, plan_step
from softnum.tta.parallelism.schedules import in_flight
from softnum.tta.parallelism.ways import Parallelism
from softnum.tta.workloads.operations import TENSOR_CLASSES

__all__ = ["StepMemory", "check_memory", "step_memory"]


@dataclass(frozen=True)
class StepMemory:
    """The memory of a step, in bytes.

    Parameters
    ----------
    plan : StepPlan
    ranks : tuple of Mapping
        Of each device of the pipeline: class of tensor -> bytes at the peak, which they add up to.
    state : int
        Bytes of a checkpoint of all devices: weights, or their master copies, and the optimiser's state.

    Examples
    --------
    >>> from softnum.tta.parallelism import Parallelism, plan_step
    >>> memory = step_memory(plan_step("llama3-8b", Parallelism(data=8, zero=1, sequence=4096), "bfloat16"))
    >>> [(name, f"{size / 1e9:.1f}") for name, size in memory.ranks[0].items()][:3]
    [('weights', '16.1'), ('weight_gradients', '16.1'), ('feature_maps', '19.4')]
    """

    plan: StepPlan
    ranks: tuple[Mapping[str, int], ...]
    state: int

    @property
    def peak(self) -> int:
        """The most bytes that a device holds."""
        return max(sum(classes.values()) for classes in self.ranks)

    @property
    def worst(self) -> int:
        """The device of the pipeline that holds most."""
        sizes = [sum(classes.values()) for classes in self.ranks]
        return sizes.index(max(sizes))

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"peak": self.peak, "worst": self.worst, "state": self.state, "ranks": [dict(row) for row in self.ranks]}


def step_memory(plan: StepPlan) -> StepMemory:
    """Count the memory of a step.

    Held always: weights, gradients (of all micro-batches added up) and the optimiser's state, of which ZeRO leaves a
    device its share. Feature maps: of every micro-batch that is on its way, what is not computed again. In addition
    what the largest backward pass of a block needs: gradients of what its layers take (gradient maps); what it computes
    again, and under ZeRO 3 whole weights and gradients of two blocks, one that computes and the next (workspace).
    There is no fragmentation in it, and nothing that a library or the driver holds.

    Parameters
    ----------
    plan : StepPlan

    Returns
    -------
    StepMemory

    Examples
    --------
    >>> from softnum.tta.parallelism import Parallelism, plan_step
    >>> whole, shared = (step_memory(plan_step("gpt2", Parallelism(data=8, zero=zero))) for zero in (0, 3))
    >>> whole.ranks[0]["optimiser_state"] // shared.ranks[0]["optimiser_state"]
    8
    """
    rows, state = [], 0
    for rank in range(plan.parallelism.pipeline):
        stages = plan.of(rank)
        rows.append(_device(stages, plan, rank))
        for stage in stages:
            state += sum(_state(block, plan) for _, block in stage.parts)
    return StepMemory(plan, tuple(rows), state)


def _device(stages: tuple[Stage, ...], plan: StepPlan, rank: int) -> dict[str, int]:
    ways, found = plan.parallelism, dict.fromkeys(TENSOR_CLASSES, 0)
    held = {stage.number: sum(block.held for _, block in stage.parts) for stage in stages}
    blocks = {id(block): block for stage in stages for _, block in stage.parts}
    whole = []
    for stage in stages:
        for _, block in stage.parts:
            gathered = 0
            for tensor in block.tensors:
                kind = tensor.tensor_class
                if kind not in ("weights", "weight_gradients", "optimiser_state"):
                    continue
                share = ways.size(block.group(tensor.layer))
                parts = {"optimiser_state": 1, "weight_gradients": 2, "weights": 3}[kind]
                found[kind] += -(-tensor.bytes // share) if ways.zero >= parts else tensor.bytes
                gathered += tensor.bytes if ways.zero == 3 and kind != "optimiser_state" and share > 1 else 0
            whole.append(gathered)
    found["feature_maps"] = in_flight(plan.order(rank), held.__getitem__)
    most = max(blocks.values(), key=lambda block: block.working)
    found["gradient_maps"] = most.working - most.again
    found["workspace"] = most.again + max(sum(pair) for pair in zip(whole, [*whole[1:], 0], strict=True))
    return found


def _state(block, plan: StepPlan) -> int:
    """Bytes of a block's part of a checkpoint, of all devices that have parts of it."""
    ways, masters = plan.parallelism, any(tensor.name.endswith("master") for tensor in block.tensors)
    total = 0
    for tensor in block.tensors:
        if tensor.tensor_class == "optimiser_state" or (tensor.tensor_class == "weights" and not masters):
            total += tensor.bytes * (ways.expert if block.group(tensor.layer) == "expert_data" else ways.tensor)
    return total


def check_memory(memory: StepMemory, capacity: int, network: str, precision: object, optimiser: str = "adam") -> None:
    """Nothing, where each device has the memory that the step holds.

    Parameters
    ----------
    memory : StepMemory
    capacity : int
        Bytes of a device.
    network, precision, optimiser
        As of `plan_step`, to find what would fit.

    Raises
    ------
    ValueError
        If it does not fit: how much is missing, of what most is, and which single change would fit.

    Examples
    --------
    >>> from softnum.tta.parallelism import Parallelism, plan_step
    >>> memory = step_memory(plan_step("gpt2", Parallelism(data=8)))
    >>> check_memory(memory, 2 * 10**9, "gpt2", "bfloat16")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: gpt2 takes 2.5 GB on device 0 of the pipeline, optimiser state 1.5 GB of it, and a device has 2.0 ...
    """
    if memory.peak <= capacity:
        return
    plan = memory.plan
    classes = memory.ranks[memory.worst]
    largest = max(classes, key=classes.get)
    changes = []
    for tried in _changes(plan.parallelism):
        if changes and tried and " and " in tried[0][0]:
            break
        found = (text for text, ways in tried if _fits(network, ways, precision, optimiser, capacity))
        changes += [text for text in (next(found, None),) if text]
    way = f"; it would with {', or with '.join(changes)}" if changes else "; share it in several more ways"
    raise ValueError(
        f"{plan.network} takes {memory.peak / 1e9:,.1f} GB on device {memory.worst} of the pipeline, "
        f"{largest.replace('_', ' ')} {classes[largest] / 1e9:,.1f} GB of it, and a device has "
        f"{capacity / 1e9:,.1f} GB{way}"
    )


def _fits(network, ways: Parallelism, precision, optimiser: str, capacity: int) -> bool:
    try:
        return step_memory(plan_step(network, ways, precision, optimiser)).peak <= capacity
    except ValueError:  # which it cannot be shared in
        return False


def _changes(ways: Parallelism):
    """Changes of one of the ways, the least of each kind first; then of several together."""
    stages = [{"pipeline": ways.pipeline * n} for n in (2, 4, 8, 16)]
    kinds: list[list[dict[str, Any]]] = [
        [{"zero": n} for n in range(ways.zero + 1, 4)],
        [{"recompute": "full"}],
        [{"tensor": ways.tensor * n} for n in (2, 4, 8)],
        stages,
        [{"zero": max(1, ways.zero), "recompute": "full", "tensor": max(8, ways.tensor), **more} for more in stages],
    ]
    for changes in kinds:
        made = []
        for change in changes:
            try:
                made.append((" and ".join(f"{k}={v}" for k, v in change.items()), replace(ways, **change)))
            except ValueError:  # which does not divide the batch
                continue
        yield made
