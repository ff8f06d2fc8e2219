"""Seconds of one training iteration: what every reader, simulator driver and estimate hands on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "IterationTime"]

#: How a time is known, from the file of a user up to an analytic estimate.
KINDS = ("given", "measured", "simulated", "estimated")


@dataclass(frozen=True)
class IterationTime:
    """The time of one training iteration under one design.

    Parameters
    ----------
    design : str
        Name of the design.
    seconds : float
        Mean seconds per iteration, over `samples` if they are given.
    iterations : int
        Number of iterations the mean is over (1 for a simulated iteration, which is deterministic).
    source : str
        Where the number comes from: a file, or a simulator and its version.
    detail : Mapping
        The components of the number (for SCALE-Sim: cycles per GEMM, the machine); plain JSON values.
    samples : tuple of float
        Seconds of each iteration the mean is over, or means of equally many iterations each (then `detail` says under
        ``iterations_per_sample`` of how many); empty where there is only the mean.
    dropped : int
        Iterations before those that were dropped as warm-up.
    interval : (float, float) or None
        95 % confidence interval of the mean, in seconds; None where one iteration, or a deterministic simulator, gives
        none.
    kind : str
        How the time is known: "given", "measured", "simulated" or "estimated".
    joules : float or None
        Energy of one iteration, if the source states it.

    Raises
    ------
    ValueError
        If a number is not finite and above zero, or the kind is unknown.

    Examples
    --------
    >>> IterationTime("a-float32", 8.1e-6, source="my simulator 1.0").seconds
    8.1e-06
    """

    design: str
    seconds: float
    iterations: int = 1
    source: str = ""
    detail: Mapping[str, Any] | None = None
    samples: tuple[float, ...] = ()
    dropped: int = 0
    interval: tuple[float, float] | None = None
    kind: str = "given"
    joules: float | None = None

    def __post_init__(self) -> None:
        numbers = {"seconds": self.seconds} | ({} if self.joules is None else {"joules": self.joules})
        for what, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise ValueError(f"{what} per iteration of {self.design!r} must be finite and above zero: {value!r}")
        if self.kind not in KINDS:
            raise ValueError(f"the kind of a time must be one of {', '.join(KINDS)}, got {self.kind!r}")
