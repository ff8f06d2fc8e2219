"""Kernel launches into training iterations: what simulators and profilers of GPUs list has no iterations in it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.timings.series import Options
from softnum.tta.timings.whose import named_iterations
from softnum.tta.workloads.products import read_product_name

__all__ = ["Launch", "group_launches", "kernel_table", "shortest_period"]


@dataclass(frozen=True)
class Launch:
    """One launch: its kernel, the line that names it, its time, and what tells it from others of that name."""

    name: str
    line: int
    seconds: Fraction
    work: Hashable = None


def shortest_period(items: Sequence[Hashable]) -> int:
    """Return the length of the shortest part of which the whole sequence is a repetition.

    >>> shortest_period("abcabc"), shortest_period("abcab")
    (3, 5)
    """
    border = [0] * len(items)  # Knuth, Morris and Pratt's table
    for at in range(1, len(items)):
        size = border[at - 1]
        while size and items[at] != items[size]:
            size = border[size - 1]
        border[at] = size + (items[at] == items[size])
    period = len(items) - border[-1] if items else 0
    return period if period and len(items) % period == 0 else len(items)


def group_launches(where: str, launches: Sequence[Launch], options: Options) -> tuple[list[Sequence[Launch]], str]:
    """Return the launches of each iteration, and a sentence on how they were told apart.

    In this order: by the products of the workload, where kernels are called by them; by a marker, the kernel that
    begins an iteration; by the number of iterations, which has to divide the launches evenly; else by repetition.
    Launches repeat if kernel and work are the same in the same order.

    Raises
    ------
    ValueError
        If that does not work out, or all launches are alike, so that there is nothing to tell iterations apart by.
    """
    products = named_iterations(where, [(launch.name, launch.line) for launch in launches], options)
    if products is None:
        return _group(where, launches, options)
    times, size = products
    if not size:
        groups, said = _group(where, launches, options)
        if len(groups) != times:
            raise ValueError(
                f"{where}: the products of the workload come {times} times, and {said}; other kernels are among them, "
                f"so say what an iteration is: --iterations {times}, or --marker"
            )
        held = [sum(read_product_name(launch.name) is not None for launch in group) for group in groups]
        each = sum(read_product_name(launch.name) is not None for launch in launches) // times
        if held != [each] * times:
            raise ValueError(
                f"{where}: an iteration of the workload has {each} products, and {said}, which makes iterations of "
                f"{', '.join(map(str, dict.fromkeys(held)))}; choose as --marker the first kernel of an iteration"
            )
        return groups, said
    if options.marker is not None:
        raise ValueError(
            f"{where}: the kernels are called by the workload's products, which tell iterations apart; leave --marker "
            "out"
        )
    if options.iterations not in (None, times):
        raise ValueError(
            f"{where}: the products of the workload come {times} times, where --iterations says {options.iterations}; "
            "leave it out, or correct it"
        )
    said = f"{times} iteration{'s' if times > 1 else ''} of {size} launches, the products of the workload"
    if rest := len(launches) - times * size:
        said += f"; {rest} launches after them are of an unfinished one and left out"
    return _even(launches[: times * size], size), said


def _group(where: str, launches: Sequence[Launch], options: Options) -> tuple[list[Sequence[Launch]], str]:
    names = list(dict.fromkeys(launch.name for launch in launches))
    if options.marker is not None:
        starts = [at for at, launch in enumerate(launches) if options.marker.search(launch.name)]
        if not starts:
            raise ValueError(
                f"{where}: no kernel's name has '{options.marker.pattern}' in it; the kernels are {_listed(names)}"
            )
        if options.iterations not in (None, len(starts)):
            raise ValueError(
                f"{where}: {len(starts)} launches match --marker '{options.marker.pattern}' where --iterations says "
                f"{options.iterations}; leave one of them out, or correct it"
            )
        groups = [launches[start:end] for start, end in zip(starts, [*starts[1:], len(launches)], strict=True)]
        said = f"an iteration begins with each launch whose name matches '{options.marker.pattern}'"
        if starts[0]:
            said += f"; {starts[0]} launch{'es' if starts[0] > 1 else ''} before the first left out"
        sizes = sorted(map(len, groups))
        if sizes[0] < sizes[-1]:
            said += (
                f"; they have from {sizes[0]} to {sizes[-1]} launches, the last {len(groups[-1])}: make sure that all "
                "are whole, and nothing else follows the last"
            )
        return groups, said
    if options.iterations is not None:
        size, rest = divmod(len(launches), options.iterations)
        if rest or not size:
            raise ValueError(
                f"{where}: {len(launches)} launches cannot be {options.iterations} iterations of as many launches "
                "each; state the kernel that begins an iteration with --marker, or profile whole iterations only"
            )
        return _even(launches, size), f"{options.iterations} iterations of {size} launches each, as stated"
    size = shortest_period([(launch.name, launch.work) for launch in launches])
    times = len(launches) // size
    if times == 1:
        return [launches], f"one iteration of {size} launches: their sequence does not repeat"
    if size == 1:
        raise ValueError(
            f"{where}: {times} launches of one kernel, {launches[0].name!r}, alike; they may be {times} iterations or "
            "one; say which with --iterations"
        )
    return (
        _even(launches, size),
        f"{times} iterations of {size} launches each, the shortest part that repeats; state --iterations if that is "
        "not so",
    )


def _even(launches: Sequence[Launch], size: int) -> list[Sequence[Launch]]:
    return [launches[at : at + size] for at in range(0, len(launches), size)]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def kernel_table(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Return launches and seconds of each kernel, in the order of their first launch."""
    table: dict[str, list[Any]] = {}
    for launch in launches:
        row = table.setdefault(launch.name, [0, Fraction(0)])
        row[0] += 1
        row[1] += launch.seconds
    return [{"kernel": name, "launches": times, "seconds": float(total)} for name, (times, total) in table.items()]
