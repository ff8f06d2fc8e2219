"""Steps that others measured, the shares of data sheets that explain them, and how far those hold elsewhere.

``python -m softnum.tta.parallelism.calibration`` fits the shares on one half of the steps and prints the errors on the
other, for two ways to halve them; with ``--shipped`` the errors of the shares that are shipped, and memory; with
``--rows`` each step.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from softnum.tta.architectures.catalogue import architecture
from softnum.tta.architectures.precision import Precision
from softnum.tta.outcomes.intervals import percentiles
from softnum.tta.parallelism.plan import StepPlan, plan_step
from softnum.tta.parallelism.step import step_time
from softnum.tta.parallelism.step_memory import step_memory
from softnum.tta.parallelism.system import EFFICIENCY, HELD_OUT_CONFIDENCE, LAUNCH, System, system
from softnum.tta.parallelism.ways import Parallelism
from softnum.tta.workloads.operations import Operation

__all__ = ["FITTED", "MeasuredStep", "fit_constants", "halves", "measured_steps", "prediction_errors", "recipe"]

#: Constants that are fitted, and their bounds: keys of `EFFICIENCY`, and the seconds of a launch.
FITTED = {
    "bf16": (0.3, 1.0), "fp8": (0.2, 1.0), "fp4": (0.1, 1.0), "attention": (0.1, 1.0), "memory": (0.3, 1.0),
    "exposed": (0.0, 1.0), "exposed_expert": (0.0, 1.0), "launch": (0.0, 1e-4),
}  # fmt: skip
#: Where a fit begins. A constant that leaves it costs as much as a miss of 10 % where a share or a factor is half as
#: large again (exposed shares: 0.5 more; a launch: 20 us), so that what the steps do not tell stays.
_START = {
    "bf16": 0.7, "fp8": 0.6, "fp4": 0.45, "attention": 0.5, "memory": 0.8, "exposed": 0.5, "exposed_expert": 0.7,
    "launch": 1e-5,
}  # fmt: skip
_MISS = 0.1
_MATRIX = ("bf16", "fp16", "fp8", "fp4", "attention")


@dataclass(frozen=True)
class MeasuredStep:
    """A step that somebody measured.

    Parameters
    ----------
    group : str
        Of the table, which has the source.
    system, model, recipe : str
    ways : Parallelism
    seconds : float
        Of a step.
    gib : float or None
        The peak of memory, in GiB, where the source has it.

    Examples
    --------
    >>> row = measured_steps()[0]
    >>> row.system, row.model, round(row.seconds, 2)
    ('dgx-b200', 'deepseek-v3-mtp', 15.32)
    """

    group: str
    system: str
    model: str
    recipe: str
    ways: Parallelism
    seconds: float
    gib: float | None = None

    @property
    def words(self) -> float:
        """A second, of a device."""
        return self.ways.batch * self.ways.sequence / self.seconds / self.ways.devices

    @property
    def plan(self) -> StepPlan:
        """The step, planned."""
        return _plan(self.model, self.ways, self.recipe)


#: Formats of products' operands, by the recipes of `recipe`.
RECIPES = {"fp8": "e4m3fn", "mxfp8": "mxfp8_e4m3", "nvfp4": "nvfp4", "bf16": "bfloat16", "plain": "bfloat16"}


@cache
def _plan(model: str, ways: Parallelism, name: str) -> StepPlan:
    return plan_step(model, ways, recipe(name), "adam")


@cache
def recipe(name: str) -> Precision:
    """The formats of a step that was measured: all but products' operands in bfloat16; master weights, moments and the
    loss in binary32; the operands in bfloat16 ("bf16", "plain"), e4m3 ("fp8", "mxfp8") or e2m1 with scales ("nvfp4"),
    but for attention, the layer of words and routers.

    Examples
    --------
    >>> [recipe("fp8").at(name).operand("forward", "weights").name for name in ("layer1.up", "layer1.attention")]
    ['e4m3fn', 'bfloat16']
    """
    operand = RECIPES[name]
    sides = {
        "forward": ("activations", "weights"), "backward_data": ("errors", "weights"),
        "backward_weight": ("activations", "errors"),
    }  # fmt: skip

    def passes(text: str) -> dict[str, Any]:
        return {stage: {role: {"format": text} for role in roles} for stage, roles in sides.items()}

    stored = ("weights", "activations", "errors", "weight_gradients")
    table = {
        "name": name,
        "roles": {role: {"format": "bfloat16"} for role in stored} | passes(operand),
        "layers": {
            ".*(attention|words|router)": {"roles": passes("bfloat16")},
            ".*loss": {"roles": {"activations": {"format": "binary32"}, "errors": {"format": "binary32"}}},
        },
    }
    return Precision.of_design(table)


@cache
def measured_steps() -> tuple[MeasuredStep, ...]:
    """The steps of ``softnum/tta/measured_steps.toml``.

    Returns
    -------
    tuple of MeasuredStep

    Examples
    --------
    >>> len(measured_steps()) > 80
    True
    """
    data = tomllib.loads((Path(__file__).parents[1] / "measured_steps.toml").read_text(encoding="utf-8"))
    found = []
    for group, table in data["groups"].items():
        for cells in table["rows"]:
            row = dict(zip(data["columns"], cells, strict=False))
            found.append(_step(group, table, row))
    return tuple(found)


def _step(group: str, table: Mapping[str, Any], row: Mapping[str, Any]) -> MeasuredStep:
    data = row["devices"] // (row["tensor"] * row["pipeline"] * row["context"])
    plain = row["recipe"] == "plain"
    ways = Parallelism(
        data, row["tensor"], row["pipeline"], row["context"], row["expert"], row["batch"], row["micro_batch"],
        row["sequence"], "interleaved" if row["chunks"] > 1 and row["pipeline"] > 1 else "1f1b",
        row["chunks"] if row["pipeline"] > 1 else 1, row["zero"], row["recompute"],
        sequence_parallel=not plain or row["recompute"] == "selective", overlap=not plain, fused=not plain,
    )  # fmt: skip
    measured = row["words"]
    if table.get("seconds"):
        seconds = measured
    elif table.get("flops"):
        seconds = _equation(row) / (measured * 1e12 * row["devices"])
    else:
        seconds = row["batch"] * row["sequence"] / (measured * row["devices"])
    return MeasuredStep(group, row["system"], row["model"], row["recipe"], ways, seconds, row.get("gib"))


def _equation(row: Mapping[str, Any]) -> float:
    """FLOPs of a step by equation 3 of D. Narayanan et al., 2021."""
    net = architecture(row["model"], row["sequence"])
    hidden = net.shapes["layer1.add1"][1]
    layers, words = sum(layer.name.endswith("add1") for layer in net.layers), net.shapes["words"][1]
    s = row["sequence"]
    return 96 * row["batch"] * s * layers * hidden**2 * (1 + s / (6 * hidden) + words / (16 * layers * hidden))


def _on(name: str, constants: Mapping[str, float] | None) -> System:
    """A system with other constants; of those named by the system a factor of all rates of matrix products."""
    where = system(name)
    if constants is None:
        return where
    shares = {**EFFICIENCY, **{key: value for key, value in constants.items() if key in EFFICIENCY}}
    shares |= {key: min(1.0, shares[key] * constants.get(name, 1.0)) for key in _MATRIX}
    return replace(where, efficiency=shares, launch=constants.get("launch", LAUNCH))


def prediction_errors(steps: Iterable[MeasuredStep], constants: Mapping[str, float] | None = None) -> list[float]:
    """Of each step, the predicted over the measured seconds, less 1.

    Parameters
    ----------
    steps : iterable of MeasuredStep
    constants : Mapping, optional
        In place of those that are shipped: of `FITTED`, and factors of matrix products' rates by a system's name.

    Returns
    -------
    list of float
    """
    where = {name: _on(name, constants) for name in {step.system for step in steps}}
    return [step_time(step.plan, where[step.system]).seconds / step.seconds - 1 for step in steps]


def fit_constants(steps: Sequence[MeasuredStep], *, by_system: bool) -> dict[str, float]:
    """Constants that explain steps: least squares of the logarithms of predicted over measured seconds, of which those
    beyond 10 % weigh less, and of how far constants are from where the fit begins.

    Parameters
    ----------
    steps : sequence of MeasuredStep
    by_system : bool
        Whether each system has a factor of its own for the rates of matrix products.

    Returns
    -------
    dict of str to float
    """
    import numpy as np
    from scipy.optimize import least_squares

    bounds = dict(FITTED)
    if by_system:
        bounds |= dict.fromkeys((step.system for step in steps), (0.3, 1.5))
    unit = dict.fromkeys(bounds, 1.0) | {"launch": 1e-5}
    low, high = ([pair[n] / unit[name] for name, pair in bounds.items()] for n in (0, 1))

    def named(values) -> dict[str, float]:
        return {name: float(value) * unit[name] for name, value in zip(bounds, values, strict=True)}

    profiles = [_profile(step) for step in steps]
    found = _START | dict.fromkeys(bounds.keys() - FITTED.keys(), 1.0)
    for _ in range(3):  # the rest of a step (bubbles, gradients) is taken to grow with its passes, then computed anew
        at = {name: found[name] for name in bounds}
        whole = [log(1 + error) for error in prediction_errors(steps, at)]
        passes = [log(_passes_of(profile, at)) for profile in profiles]

        def misses(values, whole=whole, passes=passes) -> list[float]:
            now = named(values)
            missed = [
                all_of + log(_passes_of(profile, now)) - before
                for profile, all_of, before in zip(profiles, whole, passes, strict=True)
            ]
            return missed + [_MISS * _left(name, value) for name, value in now.items()]

        start = np.clip([at[name] / unit[name] for name in bounds], np.array(low) + 0.01, np.array(high) - 0.01)
        fit = least_squares(misses, start, bounds=(low, high), loss="soft_l1", f_scale=_MISS)
        found = named(fit.x)
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def _left(name: str, value: float) -> float:
    """How far a constant is from where a fit begins."""
    start = _START.get(name, 1.0)
    if name == "launch" or name.startswith("exposed"):
        return (value - start) / (2e-5 if name == "launch" else 0.5)
    return log(value / start) / log(1.5)


def _profile(step: MeasuredStep):
    """What the passes of a step's busiest device consist of: of each operation its seconds at peak and at the memory's
    bandwidth, and whose share counts; seconds of exchanges by the share that counts."""
    import numpy as np

    where, plan = system(step.system), step.plan
    rank = max(range(step.ways.pipeline), key=lambda n: sum(len(stage.parts) for stage in plan.of(n)))
    rows, sent = [], {"exposed": 0.0, "exposed_expert": 0.0}
    for stage in plan.of(rank):
        for item in (*stage.forward, *stage.backward):
            if isinstance(item, Operation):
                peak = where.device.peak(item.formats, gemm=item.kind == "gemm")
                share = "attention" if item.layer.endswith("attention") else peak.format
                share = share if item.kind == "gemm" else ""
                rows.append((item.flops / peak.flops, item.bytes / where.device.bandwidth, share))
            elif item.group in ("tensor", "context", "expert"):
                took = where.seconds(item, step.ways.size(item.group), step.ways.spacing(item.group))
                sent["exposed_expert" if item.group == "expert" else "exposed"] += took
    best, moved, shares = zip(*rows, strict=True)
    names = sorted(set(shares))
    return np.array(best), np.array(moved), np.array([names.index(share) for share in shares]), names, sent, step


def _passes_of(profile, constants: Mapping[str, float]) -> float:
    """Seconds of a profile's passes with constants."""
    import numpy as np

    best, moved, which, names, sent, step = profile
    factor = constants.get(step.system, 1.0)
    shares = np.array([min(1.0, constants.get(n, EFFICIENCY.get(n, 1.0)) * factor) if n else 1.0 for n in names])
    seconds = np.maximum(best / shares[which], moved / constants["memory"]).sum() + constants["launch"] * len(best)
    hidden = constants if step.ways.overlap else {"exposed": 1.0, "exposed_expert": 1.0}
    return float(seconds + sum(took * hidden[name] for name, took in sent.items()))


def halves(steps: Sequence[MeasuredStep], how: str) -> tuple[list[MeasuredStep], list[MeasuredStep]]:
    """The steps in two halves.

    Parameters
    ----------
    steps : sequence of MeasuredStep
    how : str
        "models": of each system every other model with all of its steps. "systems": every other system.

    Returns
    -------
    (list, list) of MeasuredStep

    Examples
    --------
    >>> a, b = halves(measured_steps(), "systems")
    >>> {step.system for step in a} & {step.system for step in b}
    set()
    """
    names = sorted({step.system for step in steps})
    first, second = [], []
    for step in steps:
        known = sorted({other.model for other in steps if other.system == step.system})
        place = names.index(step.system) if how == "systems" else known.index(step.model)
        (second if place % 2 else first).append(step)
    return first, second


def held_out(shares: Sequence[float]) -> tuple[float, float]:
    """The ends between which `HELD_OUT_CONFIDENCE` of shares lie, as many below as above.

    >>> held_out([0.5, *[1.0] * 28, 2.0])
    (0.5, 2.0)
    """
    return percentiles(shares, HELD_OUT_CONFIDENCE)


def _print_errors(title: str, steps: Sequence[MeasuredStep], errors: Sequence[float], rows: bool) -> None:
    sizes = [abs(error) for error in errors]
    print(f"{title}: {len(steps)} steps, median {median(sizes):.1%}, within 15 %: {sum(e <= 0.15 for e in sizes)}")
    for name in sorted({step.system for step in steps}):
        own = [size for step, size in zip(steps, sizes, strict=True) if step.system == name]
        print(f"  {name:18} {len(own):3} steps, median {median(own):6.1%}, largest {max(own):6.1%}")
    for step, error in zip(steps, errors, strict=True) if rows else ():
        ways = step.ways
        shape = f"{ways.data}d x {ways.tensor}t x {ways.pipeline}p x {ways.context}c, expert {ways.expert}"
        what = f"{step.system:17} {step.model:16} {step.recipe:6} {ways.devices:5} = {shape:34}"
        print(f"    {what} {step.words:8,.0f} words/s, predicted {step.words / (1 + error):8,.0f}, time {error:+6.0%}")


def _print_memory(steps: Iterable[MeasuredStep]) -> None:
    print("memory, GiB: measured, with what libraries and the allocator hold; counted")
    for step in steps:
        if step.gib is not None:
            counted, ways = step_memory(step.plan).peak / 2**30, step.ways
            what = f"{step.system:17} {step.model:12} {step.recipe:5} {ways.devices:4} devices {ways.sequence:7,} words"
            print(f"    {what}, {ways.recompute:5} {step.gib:6.1f} {counted:6.1f} {counted / step.gib - 1:+5.0%}")


def main(arguments: Sequence[str]) -> None:
    """Print errors; with "--rows" each step's, with "--shipped" those of what is shipped."""
    steps, rows = measured_steps(), "--rows" in arguments
    if "--all" in arguments:
        constants = fit_constants(steps, by_system=True)
        print(f"fitted on all: {', '.join(f'{k} {v}' for k, v in constants.items())}")
        _print_errors("all", steps, prediction_errors(steps, constants), rows)
    elif "--shipped" not in arguments:
        for how in ("models", "systems"):
            shares = []
            for half, rest in (halves(steps, how), halves(steps, how)[::-1]):
                constants = fit_constants(half, by_system=how == "models")
                print(f"by {how}, fitted: {', '.join(f'{k} {v}' for k, v in constants.items())}")
                known = [step for step in rest if how == "systems" or step.system in constants]
                _print_errors("  fitted", half, prediction_errors(half, constants), False)
                errors = prediction_errors(known, constants)
                _print_errors("  held out", known, errors, rows)
                shares += [1 / (1 + error) for error in errors]
            low, high = held_out(shares)
            print(f"by {how}, measured over predicted, {HELD_OUT_CONFIDENCE:.0%} of both: {low:.3g} to {high:.3g}")
    else:
        _print_errors("shipped", steps, prediction_errors(steps), rows)
        _print_memory(steps)


if __name__ == "__main__":
    main(sys.argv[1:])
