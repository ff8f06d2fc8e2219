"""Time, device-hours, cost and energy to a loss: tokens by a law, times a step's time on a system, and its failures."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from softnum.runtime.plain import plain
from softnum.tta.architectures.catalogue import architecture_names
from softnum.tta.architectures.decoders import Decoder
from softnum.tta.architectures.large_models import decoders
from softnum.tta.architectures.precision import Precision
from softnum.tta.forecasts.factors import Amount, derived
from softnum.tta.forecasts.search import Found, SharedStep, find_step, shared_step
from softnum.tta.parallelism import Checkpoints, System, checkpoints, systems
from softnum.tta.parallelism.system import HELD_OUT, HELD_OUT_CONFIDENCE
from softnum.tta.quantities import positive_int, positive_number
from softnum.tta.scaling_law import BEYOND, Prediction, ScalingLaw

__all__ = ["BATCH_TOKENS", "Forecast", "Given", "forecast", "with_derived"]

#: Tokens of a step where no batch is stated: those with which A. Grattafiori et al., "The Llama 3 Herd of Models",
#: 2024, section 3.4.1, begin.
BATCH_TOKENS = 2**22
_POINTS = 60  # of the curve


@dataclass(frozen=True)
class Given:
    """What is stated of a training beside model, system and law.

    Parameters
    ----------
    devices : int, optional
        Default: all of the system.
    batch : int, optional
        Samples of a step, of all devices. Default: those of `BATCH_TOKENS`.
    ways : Mapping, optional
        As `read_ways` gives them. Default: the fastest that `find_step` finds.
    parameters : float, optional
        N that the law is asked with. Default: all of the model's, where it has no experts.
    rent : float, optional
        Dollars (or another currency) for an hour of one device. Default: that of the system's device, if it has one.
    optimiser : str
        As of `plan_step`.

    Raises
    ------
    ValueError
        If a number is not above zero.

    Examples
    --------
    >>> Given(devices=1024, rent=2.5).optimiser
    'adam'
    """

    devices: int | None = None
    batch: int | None = None
    ways: Mapping[str, Any] | None = None
    parameters: float | None = None
    rent: float | None = None
    optimiser: str = "adam"

    def __post_init__(self) -> None:
        for name, check in (("devices", positive_int), ("batch", positive_int), ("parameters", positive_number),
                            ("rent", positive_number)):  # fmt: skip
            if getattr(self, name) is not None:
                check(getattr(self, name), name)


@dataclass(frozen=True)
class Forecast:
    """What a training would take.

    Parameters
    ----------
    network, design, system, device : str
        `device`: its maker's name for it.
    metric : str
        What the loss is.
    target : float
    confidence : float or None
        Of the intervals of what is derived; None where none is known.
    amounts : tuple of Amount
        What is put together, and what follows.
    extrapolated : tuple of str
        What lies beyond the data that it rests on.
    notes : tuple of str
    step : SharedStep
    found : Found or None
        What was searched, where ways were not stated.
    checkpoints : Checkpoints or None
    curve : tuple of (float, float, float, float)
        Days, and the law's loss then with its interval.

    Examples
    --------
    >>> from softnum.tta.architectures import Precision
    >>> from softnum.tta.parallelism import system
    >>> from softnum.tta.scaling_law import ScalingLaw
    >>> law = ScalingLaw(482.0, 2085.0, 1.817, 0.348, 0.366, (), (6e7, 1.6e10), (8e8, 3e11), 240)
    >>> given = Given(devices=256, ways={"tensor": 2, "zero": 1}, rent=2.5)
    >>> told = forecast("llama3-8b", Precision.named("bfloat16"), system("dgx-h100"), law, 2.2, given)
    >>> [f"{told[name].value:.3g}" for name in ("tokens", "steps", "device-hours")]
    ['8.25e+10', '1.97e+04', '2.43e+03']
    """

    network: str
    design: str
    system: str
    device: str
    metric: str
    target: float
    confidence: float | None
    amounts: tuple[Amount, ...]
    extrapolated: tuple[str, ...]
    notes: tuple[str, ...]
    step: SharedStep = field(repr=False)
    found: Found | None = field(repr=False)
    checkpoints: Checkpoints | None = field(repr=False)
    curve: tuple[tuple[float, float, float, float], ...] = field(repr=False)

    def __getitem__(self, name: str) -> Amount:
        """An amount by name; KeyError if the forecast has none of it."""
        return {amount.name: amount for amount in self.amounts}[name]


@plain
def forecast(
    network: str, precision: Precision, where: System, law: ScalingLaw, target: float, given: Given | None = None,
    *, law_source: str = "a law",
) -> Forecast:  # fmt: skip
    """Forecast what training a model to a given loss takes on a system.

    Parameters
    ----------
    network : str
        A decoder that `softnum estimate` knows.
    precision : Precision
        The precision of a design or a preset; it determines the time of a step, not how many steps are needed.
    where : System
    law : ScalingLaw
        A law fitted to runs whose arithmetic trains like that of the design.
    target : float
        The loss to reach, of the law's metric.
    given : Given, optional
    law_source : str
        The source of the law.

    Returns
    -------
    Forecast

    Raises
    ------
    ValueError
        If the model is not a decoder, the law never reaches the loss or would be extrapolated more than ten times
        beyond its runs, the degrees of parallelism do not divide what they share, the devices have too little memory,
        or failures leave no time for work.

    Examples
    --------
    >>> law = ScalingLaw(482.0, 2085.0, 1.817, 0.348, 0.366, (), (6e7, 1.6e10), (8e8, 3e11), 240)
    >>> from softnum.tta.architectures import Precision
    >>> from softnum.tta.parallelism import system
    >>> forecast("llama3-8b", Precision.named("fp8"), system("dgx-h100"), law, 2.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: 2.813e+14 tokens are far from the 8e+08 to 3e+11 of the runs: a law is asked at most 10 times beyond ...
    """
    given = given or Given()
    model = _decoder(network)
    positive_number(target, "the target loss")
    size = _parameters(model, given)
    tokens = law.tokens_to(target, size.value)
    sequence = (given.ways or {}).get("sequence", model.context)
    devices = _devices(where, given)
    if devices > where.devices:
        raise ValueError(
            f"{devices} devices are asked for, and {where.name} has at most {where.devices}; take fewer, or state more "
            "in its last tier"
        )
    batch = _batch(given, sequence, tokens.value)
    if given.ways is None:
        found = find_step(model, where, precision, given.optimiser, devices, int(batch.value), sequence)
        step = found.step
    else:
        found = None
        step = shared_step(model, where, precision, given.optimiser, devices, int(batch.value), given.ways)
    failures = None
    if where.mtbf is not None and where.storage is not None:
        failures = checkpoints(devices, where.mtbf, step.memory.state / where.storage, where.restart)
    held, seconds = _step_amount(where, step)
    told = f"{law_source}: {law.metric} of {law.runs} runs"
    bounds = (tokens.low, tokens.high) if law.draws else (None, None)
    base = [
        size,
        Amount("tokens", "", tokens.value, *bounds, "law", told),
        batch,
        Amount("words of a sample", "", float(sequence), None, None,
               "stated" if "sequence" in (given.ways or {}) else "assumed",
               "--ways" if "sequence" in (given.ways or {}) else "the model's context"),
        seconds,
        _useful(where, failures),
        _count(where, given, devices),
        *_prices(where, given),
    ]  # fmt: skip
    amounts = with_derived(base)
    confidence = held if not law.draws else law.confidence + held - 1.0
    own = {amount.name: amount.value for amount in amounts}
    return Forecast(
        model.name, precision.name, where.name, where.device.title or where.device.name, law.metric, float(target),
        confidence, amounts, tuple(_extrapolated(law, size.value, tokens, devices)),
        tuple(_notes(where, precision, step, own)), step, found, failures, _curve(law, size.value, tokens.value, own),
    )  # fmt: skip


def with_derived(base: Iterable[Amount]) -> tuple[Amount, ...]:
    """Amounts that are put together, and what follows from them."""
    found = list(base)
    by = {amount.name: amount for amount in found}
    each = by["batch"].value * by["words of a sample"].value
    steps = derived(
        "steps", "", "tokens / (batch x words of a sample), rounded up",
        lambda tokens: float(math.ceil(tokens / each)) if math.isfinite(tokens) else tokens, by["tokens"],
    )  # fmt: skip
    useful, devices = by["useful share"].value, by["devices"].value
    time = derived(
        "time", "s", "steps x step / useful share", lambda n, step: n * step / useful, steps, by["step"]
    )  # fmt: skip
    hours = derived("device-hours", "h", "time x devices", lambda seconds: seconds * devices / 3600.0, time)
    found += [steps, time, hours]
    if "rent" in by:
        rent = by["rent"].value
        found.append(derived("cost", "$", "device-hours x rent", lambda count: count * rent, hours))
    if "watts" in by:
        watts = by["watts"].value
        found.append(derived("energy", "J", "device-hours x watts", lambda count: count * 3600.0 * watts, hours))
    return tuple(found)


def _decoder(network: str) -> Decoder:
    known = decoders()
    if network in known:
        return known[network]
    if network in architecture_names():
        raise ValueError(
            f"{network} is not trained on tokens, which a law of language models needs; take one of {', '.join(known)}"
        )
    near = difflib.get_close_matches(network, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown language model {network!r}; {hint}Known: {', '.join(known)}")


def _devices(where: System, given: Given) -> int:
    ways = given.ways or {}
    if given.devices is not None:
        return given.devices
    if "data" in ways:
        return math.prod(ways.get(name, 1) for name in ("data", "tensor", "pipeline", "context"))
    return where.devices


def _count(where: System, given: Given, devices: int) -> Amount:
    if given.devices is not None:
        kind, source = "stated", "--devices"
    elif "data" in (given.ways or {}):
        kind, source = "stated", "--ways"
    else:
        kind, source = "assumed", f"all of {where.name}"
    return Amount("devices", "", float(devices), None, None, kind, source)


def _parameters(model: Decoder, given: Given) -> Amount:
    if given.parameters is not None:
        return Amount("parameters", "", float(given.parameters), None, None, "stated", "--parameters")
    count = model.architecture().parameters
    if model.experts:
        raise ValueError(
            f"{model.name} has {model.experts} experts and {count:,} parameters, of which a word meets some: state "
            "with --parameters which number the law's N is"
        )
    return Amount("parameters", "", float(count), None, None, "stated", f"all of the model: {model.source}")


def _batch(given: Given, sequence: int, tokens: float) -> Amount:
    if given.batch is not None:
        batch, kind, source = given.batch, "stated", "--batch"
    else:
        batch, kind = max(1, round(BATCH_TOKENS / sequence)), "assumed"
        source = f"{BATCH_TOKENS:,} tokens, as A. Grattafiori et al., 2024, section 3.4.1"
    if batch * sequence > tokens:
        raise ValueError(
            f"a step of {batch} samples of {sequence} words has more tokens than the {tokens:.4g} to the target; take "
            f"a --batch of at most {max(1, int(tokens // sequence))}"
        )
    return Amount("batch", "", float(batch), None, None, kind, source)


def _step_amount(where: System, step: SharedStep) -> tuple[float, Amount]:
    known = any(row.system == where.name for row in _measured()) and _same(where, systems()[where.name])
    low, high = HELD_OUT["models" if known else "systems"]
    seconds = step.time.seconds
    return HELD_OUT_CONFIDENCE, Amount(
        "step", "s", seconds, seconds * min(low, 1.0), seconds * max(high, 1.0), "estimate",
        f"rooflines and rings on {where.name} ({where.source}; {where.device.source}); interval: measured steps of "
        f"{'models' if known else 'systems'} that no constant was fitted on",
    )  # fmt: skip


def _measured():
    from softnum.tta.parallelism.calibration import (
        measured_steps,  # which is run as a program, and read when it is used
    )

    return measured_steps()


def _same(one: System, other: System) -> bool:
    """Whether two systems have steps of the same time."""
    return all(getattr(one, name) == getattr(other, name) for name in ("device", "tiers", "efficiency", "launch"))


def _useful(where: System, failures: Checkpoints | None) -> Amount:
    if failures is not None:
        source = f"mtbf, storage and restart of {where.name}; the interval of J. Daly, 2006"
        return Amount("useful share", "", failures.useful, None, None, "estimate", source)
    missing = " and ".join(name for name in ("mtbf", "storage") if getattr(where, name) is None)
    return Amount("useful share", "", 1.0, None, None, "assumed", f"no failures: {where.name} states no {missing}")


def _prices(where: System, given: Given) -> list[Amount]:
    found, device = [], where.device
    if given.rent is not None:
        found.append(Amount("rent", "$/h", float(given.rent), None, None, "stated", "--rent"))
    elif device.rent is not None:
        told = ", ".join(filter(None, (device.rent.source, device.rent.instance, device.rent.date)))
        found.append(Amount("rent", "$/h", device.rent.dollars, None, None, "stated", f"{device.name}: {told}"))
    if device.watts is not None:
        source = f"{device.name}: {device.source}; of the devices alone, without hosts, network and cooling"
        found.append(Amount("watts", "W", device.watts, None, None, "stated", source))
    return found


def _extrapolated(law: ScalingLaw, size: float, tokens: Prediction, devices: int):
    for what, value, (low, high) in (
        ("parameters", size, law.parameters), ("tokens", tokens.value, law.tokens)
    ):  # fmt: skip
        if not low <= value <= high:
            yield f"{value:.3g} {what}: the law's runs have {low:.3g} to {high:.3g}"
    if law.draws and tokens.high > law.tokens[1] * BEYOND:
        end = "no limit" if math.isinf(tokens.high) else f"{tokens.high:.3g} tokens"
        yield f"the interval's end, {end}: more than {BEYOND:g} times the {law.tokens[1]:.3g} of the law's runs"
    most = max(row.ways.devices for row in _measured())
    if devices > most:
        yield f"{devices} devices: the largest step that the times were compared with has {most}"


def _notes(where: System, precision: Precision, step: SharedStep, own: Mapping[str, float]):
    yield (
        f"The law's runs say how many tokens; that {precision.name} needs as many is assumed, unless they were trained "
        "in it."
    )
    yield "The law has the batch and the learning rates of its runs; that those of this training do as well is assumed."
    rates: dict[str, float] = {}
    for stage in step.plan.stages:
        for item in stage.forward:
            if item.kind == "gemm":
                peak = where.device.peak(item.formats, gemm=True)
                told = f"{' x '.join(item.formats)} at {peak.format}'s rate"
                told += f" ({peak.reason})" if peak.proxy else ""
                rates[told] = rates.get(told, 0.0) + item.flops
    whole = sum(rates.values())
    shares = (
        f"{told}: {100 * flops / whole:.3g} %" for told, flops in sorted(rates.items(), key=lambda each: -each[1])
    )
    yield f"Products on the way forwards, of their FLOPs: {'; '.join(shares)}."
    if where.device.memory is None:
        yield f"{where.device.name} states no memory: whether the step fits is not checked."
    if "rent" not in own:
        yield (
            f"No cost: neither is a price of an hour of {where.device.name} stated nor does its table have one; add "
            "--rent 2.48, or rent to the system's device."
        )
    if "watts" not in own:
        yield f"No energy: {where.device.name} states no watts; add them to the system's device."


def _curve(law: ScalingLaw, size: float, tokens: float, own: Mapping[str, float]):
    """The law's loss over the days of the training, from a hundredth of its tokens to half as many again."""
    least, most = law.tokens[0] / BEYOND, law.tokens[1] * BEYOND
    low, high = max(least, tokens / 100), min(most, tokens * 1.5)
    each = own["batch"] * own["words of a sample"]
    rows = []
    for n in range(_POINTS):
        at = min(most, max(least, low * (high / low) ** (n / (_POINTS - 1))))
        found = law.loss(size, at)
        days = at / each * own["step"] / own["useful share"] / 86400
        rows.append((days, found.value, found.low, found.high))
    return tuple(rows)
