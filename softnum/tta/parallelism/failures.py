"""Failures and checkpoints: how often to write one, and what share of the time is left for training."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Any

__all__ = ["Checkpoints", "checkpoints"]


@dataclass(frozen=True)
class Checkpoints:
    """When to write checkpoints, and what that and failures cost.

    Parameters
    ----------
    mtbf : float
        Seconds between two failures of any device.
    write : float
        Seconds that a checkpoint takes, in which nobody computes.
    young, daly : float
        Seconds between two checkpoints that lose least, of first and of higher order.
    useful : float
        Share of the time that training itself takes, with Daly's interval.

    Examples
    --------
    >>> found = checkpoints(devices=1024, mtbf=50_000 * 3600, write=60, restart=600)
    >>> round(found.mtbf / 3600, 1), round(found.young / 60), round(found.daly / 60), round(found.useful, 4)
    (48.8, 77, 76, 0.9708)
    """

    mtbf: float
    write: float
    young: float
    daly: float
    useful: float

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {name: getattr(self, name) for name in ("mtbf", "write", "young", "daly", "useful")}


def checkpoints(devices: int, mtbf: float, write: float, restart: float) -> Checkpoints:
    """The intervals of Young and Daly, and what is left for training.

    Failures come as a Poisson process; the work since the last checkpoint is lost. Young's interval is sqrt(2 d M), for
    checkpoints of d seconds and a failure every M; Daly's is sqrt(2 d M) (1 + sqrt(d / 2 M) / 3 + d / 18 M) - d, and M
    where d is 2 M or more. With an interval t the time of t seconds' work is M exp(R / M) (exp((t + d) / M) - 1); R is
    that of a restart.

    Parameters
    ----------
    devices : int
    mtbf : float
        Seconds between two failures of one device.
    write, restart : float
        Seconds.

    Returns
    -------
    Checkpoints

    Raises
    ------
    ValueError
        If failures come so often that no work is done.

    References
    ----------
    J. Young, CACM 17(9), 1974; J. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
    Future Generation Computer Systems 22(3), 2006.

    Examples
    --------
    >>> round(checkpoints(devices=100, mtbf=1e6, write=50, restart=0).young)
    1000
    """
    mean = mtbf / devices
    young = sqrt(2 * write * mean)
    ratio = write / (2 * mean)
    daly = mean if ratio >= 1 else young * (1 + sqrt(ratio) / 3 + ratio / 9) - write
    try:
        spent = mean * exp(restart / mean) * (exp((daly + write) / mean) - 1)
    except OverflowError:
        spent = inf
    useful = daly / spent if spent else 1.0
    if useful < 1e-3:
        raise ValueError(
            f"{devices} devices fail every {mean:,.0f} s, a checkpoint takes {write:,.0f} s and a restart "
            f"{restart:,.0f} s, so that no work is done; state faster storage or more reliable devices"
        )
    return Checkpoints(mean, write, young, daly, useful)
