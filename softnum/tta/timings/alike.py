"""Whether the iterations of a run are alike: the premise of iterations x mean time, tested.

The product takes one mean for all iterations. Where training changes on its way (images grow, sequences lengthen, a
machine slows down), the mean up to the target is another than that of the whole run, and the product is off.

*Statistic.* Stretches of a run with a_i iterations in s_i seconds; A and S are their sums. D is the largest of
|s_1 + ... + s_k - (a_1 + ... + a_k) S / A| / S over k: by how much iterations x mean time is off, at worst, as a share
of the run's time. It is the CUSUM statistic of a change in the mean (E. S. Page, "Continuous inspection schemes",
Biometrika 41, 1954).

*Test.* If iterations are alike, the order of the stretches says nothing, so every order is equally likely. p is the
share of 1999 random orders, and the order found, with a D as large (M. Dwass, "Modified randomization tests for
nonparametric hypotheses", Annals of Mathematical Statistics 28, 1957); the orders are drawn from Philox with a fixed
key. Runs of more than 100 stretches are first put together to at most 100, of neighbours, so that noise that lasts for
a few iterations does not count as a change.

*Rule.* Iterations are unlike if p <= 0.01 and D > 1 %: it is not chance, and it matters. With fewer than 10 stretches
the test cannot reach that p (a change in the middle of 8 is matched by 2 of C(8, 4) orders), and says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from softnum.tta.quantities import format_seconds

__all__ = ["ALIKE_RULE", "Alike", "alike"]

ORDERS, KEY = 1999, 0x6F7264657273  # "orders"
LEVEL, SIZE, LEAST, MOST = 0.01, 0.01, 10, 100

ALIKE_RULE = (
    f"iterations are unlike where the sum of their times leaves iterations x mean time by more than {SIZE:.0%} of the "
    f"run's time, and at most {LEVEL:.0%} of {ORDERS} random orders of its stretches do as much (CUSUM, permutation "
    f"test; {LEAST} stretches or more)"
)


@dataclass(frozen=True)
class Alike:
    """What the test says of a run.

    Parameters
    ----------
    unlike : bool or None
        None where there are too few stretches.
    deviation : float
        D: by how much the product is off at worst, as a share of the run's time.
    probability : float
        p.
    at : int
        Stretches before the place where it is off most.
    before, after : float
        Seconds per iteration up to there, and from there on.
    stretches : int

    Examples
    --------
    >>> found = alike([(1, 1.0)] * 10 + [(1, 3.0)] * 10)
    >>> found.unlike, found.deviation, found.at, found.before, found.after
    (True, 0.25, 10, 1.0, 3.0)
    """

    unlike: bool | None
    deviation: float
    probability: float
    at: int
    before: float
    after: float
    stretches: int

    def text(self, unit: str = "iteration", stretches: str = "stretches") -> str:
        """The reason in words."""
        per = "from one evaluation to the next" if unit == "evaluation" else f"per {unit}"
        return (
            f"{format_seconds(self.before)} {per} in the first {self.at} of {self.stretches} {stretches}, "
            f"{format_seconds(self.after)} in the others; {unit}s x mean time is off by up to "
            f"{100 * self.deviation:.1f} % of the run's time, as in {100 * self.probability:.1f} % of random orders"
        )


def alike(stretches: Sequence[tuple[float, float]]) -> Alike:
    """Test whether the iterations of a run are alike.

    Parameters
    ----------
    stretches : sequence of (float, float)
        Iterations (above 0) and seconds (from 0 up) of each stretch, in order; at least one.

    Returns
    -------
    Alike

    Examples
    --------
    >>> alike([(1, 1.0), (1, 1.1), (1, 0.9)] * 5).unlike
    False
    >>> alike([(1, 1.0), (1, 2.0)]).unlike is None
    True
    """
    import numpy as np

    count = len(stretches)
    size = -(-count // MOST)
    ends = [min(start + size, count) for start in range(0, count, size)]
    pairs = np.array([
        np.sum(np.array(stretches[start:end], dtype=float), axis=0)
        for start, end in itertools.pairwise([0, *ends])
    ])  # fmt: skip
    amounts, seconds = pairs.T
    mean = seconds.sum() / amounts.sum()
    off = seconds - amounts * mean
    paths = np.abs(np.cumsum(off))
    place = int(np.argmax(paths[:-1])) if len(paths) > 1 else 0
    largest = float(paths[place]) if len(paths) > 1 else 0.0
    deviation = largest / float(seconds.sum()) if seconds.sum() else 0.0
    before = float(seconds[: place + 1].sum() / amounts[: place + 1].sum())
    after = float(seconds[place + 1 :].sum() / amounts[place + 1 :].sum()) if len(paths) > 1 else before
    found = (ends[place], before, after, count)
    if len(pairs) < LEAST:
        return Alike(None, deviation, 1.0, *found)
    if deviation <= 1e-12:
        return Alike(False, 0.0, 1.0, *found)
    words = np.random.Philox(key=KEY).random_raw(ORDERS * len(pairs)).reshape(ORDERS, len(pairs))
    drawn = np.abs(np.cumsum(off[np.argsort(words, axis=1, kind="stable")], axis=1)).max(axis=1)
    probability = (1 + int(np.sum(drawn >= largest * (1 - 1e-9)))) / (1 + ORDERS)
    return Alike(bool(probability <= LEVEL and deviation > SIZE), deviation, probability, *found)
