"""The ways in which a step is shared: as they are stated, or the fastest of a bounded, ordered set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from softnum.tta.architectures.decoders import Decoder
from softnum.tta.architectures.precision import Precision
from softnum.tta.parallelism import (
    Parallelism,
    StepMemory,
    StepPlan,
    StepTime,
    System,
    check_memory,
    plan_step,
    step_memory,
    step_time,
)
from softnum.tta.quantities import check_keys, positive_int

__all__ = ["SEARCH", "Found", "SharedStep", "find_step", "read_ways", "shared_step"]

#: What is tried, in this order.
TENSOR, PIPELINE, EXPERT, MICRO_BATCH = (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 8, 64), (1, 2, 4)
#: Of each of these the first whose memory fits: those that exchange or compute more come later.
LIGHTER = tuple({"zero": zero, "recompute": again} for zero, again in itertools.product((1, 3), ("none", "full")))
SEARCH = (
    "tensor 1 to 8 and pipeline 1 to 16 by powers of two, of experts' models expert 1, 8 or 64, micro_batch 1, 2 or 4; "
    "of each the first of zero 1 and 3, without and with recompute full, whose memory fits; of these the least time of "
    "a step, and of equal ones the first"
)
_WORDS = {"yes": True, "no": False}
_KEYS = tuple(each.name for each in fields(Parallelism) if each.name != "batch")
_FLAGS = ("sequence_parallel", "overlap", "fused")
_NAMES = ("schedule", "recompute")


@dataclass(frozen=True)
class SharedStep:
    """A step, what it holds and what it takes.

    Parameters
    ----------
    plan : StepPlan
    memory : StepMemory
    time : StepTime
    """

    plan: StepPlan = field(repr=False)
    memory: StepMemory = field(repr=False)
    time: StepTime


@dataclass(frozen=True)
class Found:
    """The fastest of the ways that were tried.

    Parameters
    ----------
    step : SharedStep
    tried : int
        How many sets of ways divide what they share.
    fitting : int
        Of how many tensor, pipeline, expert and micro_batch a step fits into the devices' memory.
    """

    step: SharedStep
    tried: int
    fitting: int


def read_ways(text: str) -> dict[str, int | str | bool]:
    """Ways as the command line takes them.

    Parameters
    ----------
    text : str
        ``"tensor=8,pipeline=4,zero=1"``; names are those of `Parallelism`, without ``batch``.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If a name is unknown or stated twice, or its value is not of its form.

    Examples
    --------
    >>> read_ways("tensor=8,recompute=full,overlap=no")
    {'tensor': 8, 'recompute': 'full', 'overlap': False}
    """
    found: dict[str, int | str | bool] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise ValueError(f"--ways takes NAME=VALUE with commas between, like tensor=8,pipeline=4, got {part!r}")
        check_keys({name: value}, [], _KEYS, "--ways")
        if name in found:
            raise ValueError(f"--ways states {name} twice: {found[name]} and {value}; leave one of them out")
        if name in _FLAGS:
            if value not in _WORDS:
                raise ValueError(f"--ways: {name} must be yes or no, got {value!r}")
            found[name] = _WORDS[value]
        elif name in _NAMES:
            found[name] = value
        else:
            if not (value.isascii() and value.isdigit()):
                raise ValueError(f"--ways: {name} must be a whole number, got {value!r}")
            found[name] = int(value)
            positive_int(found[name] + (name == "zero"), f"--ways: {name}")
    return found


def shared_step(
    network: Decoder,
    where: System,
    precision: Precision,
    optimiser: str,
    devices: int,
    batch: int,
    ways: Mapping[str, Any],
) -> SharedStep:
    """The step of stated ways.

    Parameters
    ----------
    network : Decoder
    where : System
    precision : Precision
    optimiser : str
    devices : int
        In all; the ways of data parallelism are what the others leave.
    batch : int
        Samples of a step, of all devices.
    ways : Mapping
        Keywords of `Parallelism`.

    Returns
    -------
    SharedStep

    Raises
    ------
    ValueError
        If the ways do not divide the devices, the batch or the model, the system has fewer devices, or a device has not
        the memory; the message says what would do.

    Examples
    --------
    >>> from softnum.tta.parallelism import system
    >>> from softnum.tta.architectures.large_models import decoders
    >>> model, bf16 = decoders()["llama3-8b"], Precision.named("bfloat16")
    >>> step = shared_step(model, system("dgx-h100"), bf16, "adam", 64, 128, {"tensor": 2, "zero": 1})
    >>> step.plan.parallelism.data, step.memory.peak < 80e9
    (32, True)
    """
    plan = plan_step(network, _parallelism(devices, batch, ways), precision, optimiser)
    memory = step_memory(plan)
    if where.device.memory is not None:
        check_memory(memory, where.device.memory, network, precision, optimiser)
    return SharedStep(plan, memory, step_time(plan, where))


def _parallelism(devices: int, batch: int, ways: Mapping[str, Any]) -> Parallelism:
    parts = {name: ways.get(name, 1) for name in ("tensor", "pipeline", "context")}
    if min(parts.values()) < 1:
        raise ValueError(f"ways must be whole numbers from 1 up, got {parts}")
    product = parts["tensor"] * parts["pipeline"] * parts["context"]
    told = " x ".join(f"{name} {count}" for name, count in parts.items())
    if devices % product:
        near = devices // product * product
        other = f"; take {near} devices, or others" if near else "; take fewer ways, or more devices"
        raise ValueError(f"{told} = {product} ways do not divide {devices} devices{other}")
    data = devices // product
    if ways.get("data", data) != data:
        raise ValueError(
            f"data {ways['data']} x {told} are {ways['data'] * product} devices, and {devices} are asked for; leave "
            "data out, and it is what the others leave"
        )
    return Parallelism(**{**ways, "data": data}, batch=batch)


def find_step(
    network: Decoder, where: System, precision: Precision, optimiser: str, devices: int, batch: int, sequence: int
) -> Found:
    """The fastest step of a bounded set of ways, the same whenever it is asked for; `SEARCH` says which are tried.

    Parameters
    ----------
    network, where, precision, optimiser, devices, batch
        As of `shared_step`.
    sequence : int
        Words of a sample.

    Returns
    -------
    Found

    Raises
    ------
    ValueError
        If no ways divide devices, batch and model, or of none a device has the memory: what the least takes.

    Examples
    --------
    >>> from softnum.tta.parallelism import system
    >>> from softnum.tta.architectures.large_models import decoders
    >>> model, bf16 = decoders()["gpt2"], Precision.named("bfloat16")
    >>> found = find_step(model, system("dgx-h100"), bf16, "adam", 8, 64, 1024)
    >>> found.step.plan.parallelism.data, found.fitting <= found.tried
    (8, True)
    """
    best, least, tried, fitting, why = None, None, 0, 0, None
    for shape in _shapes(network, where):
        for lighter in LIGHTER:
            try:
                ways = _parallelism(devices, batch, {**shape, **lighter, "sequence": sequence})
                plan = plan_step(network, ways, precision, optimiser)
            except ValueError as error:
                why = why or error
                break
            tried += 1
            memory = step_memory(plan)
            if where.device.memory is not None and memory.peak > where.device.memory:
                least = min(least or (memory.peak, ways), (memory.peak, ways), key=lambda pair: pair[0])
                continue
            fitting += 1
            time = step_time(plan, where)
            if best is None or time.seconds < best.time.seconds:
                best = SharedStep(plan, memory, time)
            break
    if best is not None:
        return Found(best, tried, fitting)
    if least is None:
        raise ValueError(
            f"none of the tried combinations of parallelism divides {devices} devices and a batch of {batch} samples "
            f"({why}); state another with --ways, or another --batch or --devices"
        )
    size, ways = least
    told = ", ".join(f"{name}={getattr(ways, name)}" for name in (*_SHAPE, "zero", "recompute"))
    raise ValueError(
        f"{network.name} fits into {where.device.memory / 1e9:,.1f} GB of a device of {where.name} in none of {tried} "
        f"ways on {devices} devices; the least, {told}, takes {size / 1e9:,.1f} GB: take more devices, a smaller "
        "batch, or devices with more memory"
    )


_SHAPE = ("tensor", "pipeline", "expert", "micro_batch")


def _shapes(network: Decoder, where: System) -> Iterator[dict[str, Any]]:
    expert = EXPERT if network.experts else (1,)
    for values in itertools.product(TENSOR, PIPELINE, expert, MICRO_BATCH):
        if values[0] <= where.tiers[0].devices:
            yield dict(zip(_SHAPE, values, strict=True))
