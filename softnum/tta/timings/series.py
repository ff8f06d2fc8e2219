"""What the readers of times share: the options they take, and the series of times that each of them hands on.

A reader turns a file into `Series`: seconds as exact fractions, one for each iteration, or only a mean. What they are
worth - warm-up dropped, mean, confidence interval - is decided in one place, `softnum.tta.timings.warmup`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from softnum.tta.workloads.operations import Workload

__all__ = ["Options", "Series", "spread", "stem"]


@dataclass(frozen=True)
class Options:
    """What the user said about a file beside its path; each format uses some of it.

    Parameters
    ----------
    clock : Fraction or None
        Hertz, for cycles without a clock.
    design : str or None
        Name of the design the file is of.
    iterations : int or None
        How many training iterations the file covers.
    marker : re.Pattern or None
        The kernel that begins an iteration, or the range that is one.
    allow_unfinished : bool
        Whether a log that stops inside a kernel is taken up to the kernel before.
    workload : Workload or None
        The iteration that the file is of, with which the names of kernels are compared.
    """

    clock: Fraction | None = None
    design: str | None = None
    iterations: int | None = None
    marker: re.Pattern[str] | None = None
    allow_unfinished: bool = False
    workload: Workload | None = None


@dataclass
class Series:
    """Times of one design as a file gives them.

    Parameters
    ----------
    design : str
        Name of the design.
    seconds : list of Fraction
        Seconds per iteration, in order: one for each sample.
    kind : str
        As in `IterationTime`.
    source : str
        The file, and the tool it is of.
    detail : dict
        What the numbers are made of; plain JSON values.
    each : int
        How many iterations a sample is the mean of.
    ordered : bool
        Whether the samples are single iterations in the order they ran, so that a warm-up can be told.
    joules : list of Fraction or None
        Energy of each iteration.
    """

    design: str
    seconds: list[Fraction]
    kind: str
    source: str
    detail: dict[str, Any] = field(default_factory=dict)
    each: int = 1
    ordered: bool = True
    joules: list[Fraction] | None = None


def stem(name: str) -> str:
    """Return a name with its numbers blotted out: what the iterations of one loop share.

    >>> stem("ProfilerStep#12")
    'ProfilerStep##'
    """
    return re.sub(r"\d+", "#", name)


def spread(where: str, parts: Sequence[Fraction], iterations: int | None, what: str) -> tuple[list[Fraction], int]:
    """Return (seconds per iteration, iterations each is the mean of) of parts that make up `iterations` evenly.

    Without `iterations`, a part is an iteration. Else neighbouring parts are added, or each part is divided, whichever
    comes out even.
    """
    if iterations is None or iterations == len(parts):
        return list(parts), 1
    if len(parts) % iterations == 0:
        size = len(parts) // iterations
        return [sum(parts[at : at + size], Fraction(0)) for at in range(0, len(parts), size)], 1
    if iterations % len(parts) == 0:
        each = iterations // len(parts)
        return [part / each for part in parts], each
    raise ValueError(
        f"{where}: {len(parts)} {what} cannot be {iterations} iterations: neither number divides the other; state the "
        "number that the file covers with --iterations"
    )
