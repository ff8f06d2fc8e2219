"""Learning-rate schedules: the rate of each iteration, the same on every machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from softnum.train.designs.design import nearest

__all__ = ["SCHEDULES", "Schedule"]

#: schedule: the options it takes, in order; those it cannot do without
SCHEDULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "constant": ((), ()),
    "step": (("decay_every", "decay_factor"), ("decay_every",)),
    "exponential": (("decay_factor",), ("decay_factor",)),
    "cosine": (("final_rate",), ()),
}
_DEFAULTS = {"decay_factor": 0.1, "final_rate": 0.0}


@dataclass(frozen=True)
class Schedule:
    """The factor of the learning rate in each iteration.

    In the first ``warmup`` iterations, t = 1, 2, ..., it is t / warmup; from then on, with s = 0, 1, 2, ...::

        constant       1
        step           decay_factor ** (s div decay_every)
        exponential    decay_factor ** s
        cosine         final_rate + (1 - final_rate) * (1 + cos(pi * s / S)) / 2,  S = iterations after the warm-up

    Iterations whose update is skipped for an overflow count too. All of it is binary64: powers are products, by
    squaring, and the cosine is a series of additions and multiplications, because libraries differ in theirs. The
    product of rate and factor is then rounded to binary32.

    Parameters
    ----------
    name : str
        One of `SCHEDULES`.
    warmup : int
        Iterations of linear warm-up.
    decay_every : int, optional
        Iterations between steps; "step" needs it.
    decay_factor : float, optional
        In (0, 1]; "exponential" needs it, that of "step" is 0.1 if not given.
    final_rate : float, optional
        For "cosine": the final rate as a fraction of the learning rate, in [0, 1); default 0.

    Raises
    ------
    ValueError
        If there is no schedule of that name, it has no such option, lacks one, or one is out of its range.

    References
    ----------
    I. Loshchilov and F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017, equation 5 (cosine,
    without restarts); P. Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.2 (warm-up).

    Examples
    --------
    >>> schedule = Schedule("cosine", warmup=2)
    >>> [round(schedule.factor(t, 6), 4) for t in range(1, 7)]
    [0.5, 1.0, 1.0, 0.8536, 0.5, 0.1464]
    """

    name: str = "constant"
    warmup: int = 0
    decay_every: int | None = None
    decay_factor: float | None = None
    final_rate: float | None = None

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise ValueError(
                f"no schedule is called {self.name!r}{nearest(str(self.name), SCHEDULES)} "
                f"(schedules: {', '.join(SCHEDULES)})"
            )
        if isinstance(self.warmup, bool) or not isinstance(self.warmup, int) or self.warmup < 0:
            raise ValueError(f"warmup must be a number of iterations, 0 or more, got {self.warmup!r}")
        takes, needs = SCHEDULES[self.name]
        for option, right, words in (
            ("decay_every", lambda x: isinstance(x, int) and x >= 1, "be a positive integer"),
            ("decay_factor", lambda x: 0 < x <= 1, "lie in (0, 1]"),
            ("final_rate", lambda x: 0 <= x < 1, "lie in [0, 1)"),
        ):
            value = getattr(self, option)
            if value is None:
                if option in needs:
                    raise ValueError(f"the schedule {self.name!r} needs {option}")
                continue
            if option not in takes:
                others = " and ".join(repr(name) for name in SCHEDULES if option in SCHEDULES[name][0])
                raise ValueError(f"{option} is for the schedule {others}, not for {self.name!r}; leave it out")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not right(value):
                raise ValueError(f"{option} must {words}, got {value!r}")

    def describe(self) -> dict | None:
        """The schedule as plain data for a record; None of a rate that never changes."""
        if self.name == "constant" and not self.warmup:
            return None
        return {"name": self.name, "warmup": self.warmup, **self._options}

    @property
    def _options(self) -> dict:
        given = {option: getattr(self, option) for option in SCHEDULES[self.name][0]}
        return {option: _DEFAULTS[option] if value is None else value for option, value in given.items()}

    def factor(self, iteration: int, iterations: int) -> float:
        """The factor of an iteration, counted from 1, of a run of so many."""
        if iteration <= self.warmup:
            return iteration / self.warmup
        step, options = iteration - self.warmup - 1, self._options
        if self.name == "step":
            return power(options["decay_factor"], step // options["decay_every"])
        if self.name == "exponential":
            return power(options["decay_factor"], step)
        if self.name == "cosine":
            low = options["final_rate"]
            return low + (1.0 - low) * (1.0 + _cos_pi(step, iterations - self.warmup)) / 2.0
        return 1.0


def power(base: float, exponent: int) -> float:
    """base ** exponent for an exponent >= 0, by squaring: products of binary64 only, the same on every machine.

    >>> power(0.5, 10)
    0.0009765625
    """
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


_COSINE_TERMS = tuple((-1.0) ** n / math.factorial(2 * n) for n in range(11, -1, -1))


def _cos_pi(top: int, bottom: int) -> float:
    """cos(pi * top / bottom) of a ratio from 0 to 1."""
    if 2 * top > bottom:
        return -_cos_pi(bottom - top, bottom)
    angle = math.pi * top / bottom
    square = angle * angle
    result = 0.0
    for term in _COSINE_TERMS:
        result = result * square + term
    return result
