"""Learning rates that are tuned for each design, so that an arithmetic is not judged at another's rate.

Every design gets the same small grid of learning rates, as multiples of the recipe's, and the same tuning seeds. The
rate whose runs need the fewest iterations to the target is kept, by the median over the tuning seeds; a run that never
reaches it counts as infinitely long. Of equal medians the recipe's rate is kept, else the nearest to it by ratio, else
the smaller. The tuning seeds are none of those that the design is then judged by, so that the minimum over the grid,
which is biased downwards, is of no run that a result is made of.

Source: the external tuning ruleset of AlgoPerf (G. Dahl et al., "Benchmarking Neural Network Training Algorithms",
arXiv 2306.07179, 2023): the same number of trials for each submission, from a search space that is stated in advance,
and a time to the target that the trials are not part of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from softnum.tta.accuracy.reached import ReachedRule
from softnum.tta.accuracy.records import Record, RecordSet
from softnum.tta.outcomes.combine import reached_by
from softnum.tta.outcomes.outcome import Spread, Study

__all__ = ["Trial", "TunedDesign", "Tuning", "choose_rate", "read_multipliers", "scaled_rate", "trials_of"]

#: Multiples of the recipe's rate lie between 1 / LARGEST and LARGEST.
LARGEST = 1e6


def read_multipliers(values: Iterable[float]) -> tuple[float, ...]:
    """Check a grid of multiples of the recipe's rate, and return it in ascending order.

    Raises
    ------
    ValueError
        If there are fewer than two, two are equal, one is not a number in [1e-6, 1e6], or 1 is not among them.

    Examples
    --------
    >>> read_multipliers([2, 0.5, 1])
    (0.5, 1.0, 2.0)
    """
    found = tuple(sorted(float(value) for value in values))
    for value in found:
        if not 1 / LARGEST <= value <= LARGEST:
            raise ValueError(f"a multiple of the recipe's learning rate must lie in [1e-6, 1e6], got {value:g}")
    if len(set(found)) < len(found):
        twice = next(value for value in found if found.count(value) > 1)
        raise ValueError(f"the multiple {twice:g} of the recipe's learning rate is in the grid twice")
    if 1.0 not in found:
        raise ValueError(
            "the grid of learning rates must hold 1, the recipe's own rate, which all designs have without tuning; got "
            f"{', '.join(f'{value:g}' for value in found) or 'none'}"
        )
    if len(found) < 2:
        raise ValueError("a grid needs two or more multiples of the learning rate, like 0.5,1,2; got one")
    return found


def scaled_rate(rate: float, multiplier: float) -> float:
    """A learning rate times a multiple, as the product of the decimals that one reads.

    >>> scaled_rate(0.1, 3), 0.1 * 3
    (0.3, 0.30000000000000004)
    """
    return float(Decimal(repr(rate)) * Decimal(repr(multiplier)))


@dataclass(frozen=True)
class Trial:
    """The tuning runs of one design at one rate.

    Parameters
    ----------
    multiplier : float
        The rate over the recipe's.
    rate : float
        The learning rate.
    records : tuple of Record
        One for each tuning seed.
    iterations : Spread
        To the target, over the tuning seeds; infinite where a run never reaches it.

    Examples
    --------
    >>> Trial(2.0, 0.2, (), Spread(30, 20, math.inf)).text
    'x2'
    """

    multiplier: float
    rate: float
    records: tuple[Record, ...] = field(repr=False)
    iterations: Spread

    @property
    def text(self) -> str:
        """How tables call it."""
        return f"x{self.multiplier:g}"

    @property
    def updates(self) -> int:
        """Iterations of all of its runs: what it cost."""
        return sum(record.iterations for record in self.records)


@dataclass(frozen=True)
class TunedDesign:
    """The rate that was chosen for a design, and why.

    Parameters
    ----------
    design : str
        Its label.
    trials : tuple of Trial
        By rate, ascending.
    chosen : Trial
    why : str
    """

    design: str
    trials: tuple[Trial, ...]
    chosen: Trial
    why: str

    @property
    def recipe(self) -> Trial:
        """The trial at the recipe's rate."""
        return next(trial for trial in self.trials if trial.multiplier == 1)

    @property
    def at_edge(self) -> bool:
        """Whether the chosen rate reaches the target and ends the grid, beyond which there may be a better one."""
        ends = (self.trials[0].multiplier, self.trials[-1].multiplier)
        return math.isfinite(self.chosen.iterations.median) and self.chosen.multiplier in ends

    @property
    def updates(self) -> int:
        """Iterations of all of its tuning runs."""
        return sum(trial.updates for trial in self.trials)


@dataclass(frozen=True)
class Tuning:
    """What tuning found and cost; after `softnum.tta.study.conclude` also the designs compared at their tuned rates.

    Parameters
    ----------
    multipliers : tuple of float
        The grid, ascending.
    seeds : tuple of int
        Of the tuning runs.
    designs : tuple of TunedDesign
        In the order of the study.
    records : RecordSet
        The runs that designs are judged by at their tuned rates: for the recipe's rate those of the study itself.
    studies : tuple of Study
        One for each variant of the times, of `records`.
    """

    multipliers: tuple[float, ...]
    seeds: tuple[int, ...]
    designs: tuple[TunedDesign, ...]
    records: RecordSet = field(repr=False)
    studies: tuple[Study, ...] = ()

    def __getitem__(self, design: str) -> TunedDesign:
        """The choice for one design, by label."""
        return next(tuned for tuned in self.designs if tuned.design == design)

    @property
    def judged(self) -> tuple[Record, ...]:
        """The runs that tuning made necessary besides its trials: those at other rates than the recipe's."""
        moved = {tuned.design for tuned in self.designs if tuned.chosen.multiplier != 1}
        return tuple(record for record in self.records.records if record.label in moved)

    @property
    def cost(self) -> dict[str, int]:
        """Runs and iterations of the trials, and of the runs that are judged at other rates than the recipe's."""
        trials = [trial for tuned in self.designs for trial in tuned.trials]
        return {
            "runs": sum(len(trial.records) for trial in trials),
            "iterations": sum(trial.updates for trial in trials),
            "judged_runs": len(self.judged),
            "judged_iterations": sum(record.iterations for record in self.judged),
        }

    @property
    def rule(self) -> str:
        """How rates are chosen, in words."""
        grid = ", ".join(f"{value:g}" for value in self.multipliers)
        return (
            f"each design was trained at {grid} times the recipe's learning rate with the tuning seeds "
            f"{', '.join(map(str, self.seeds))}; the rate with the fewest iterations to the target is kept, by the "
            "median over these seeds, where a run that never reaches the target counts as infinitely long; of equal "
            "medians the recipe's rate is kept, else the nearest to it"
        )


def trials_of(
    design: str, records: Mapping[float, Sequence[Record]], target: float, reached: ReachedRule
) -> tuple[Trial, ...]:
    """The trials of a design from its tuning runs, by multiple of the recipe's rate.

    Raises
    ------
    ValueError
        If the runs of a rate state different rates or none, or one that is not that multiple of the recipe's; or the
        target is met before training.

    Examples
    --------
    >>> from softnum.tta import Evaluation
    >>> def run(rate, at):
    ...     return Record("a", 1001, 32, 90, (Evaluation(at, 0.9),), {"optimiser": {"learning_rate": rate}}, {})
    >>> found = trials_of("a", {1.0: [run(0.1, 80)], 2.0: [run(0.2, 60)]}, 0.9, ReachedRule())
    >>> [(trial.text, trial.rate, trial.iterations.median) for trial in found]
    [('x1', 0.1, 80), ('x2', 0.2, 60)]
    """
    rates = {multiplier: _rate_of(runs) for multiplier, runs in records.items()}
    trials = []
    for multiplier in sorted(records):
        expected = scaled_rate(rates[1.0], multiplier)
        if rates[multiplier] != expected:
            raise ValueError(
                f"{records[multiplier][0].path or design}: the run was trained at the learning rate "
                f"{rates[multiplier]!r}, where {multiplier:g} times the recipe's {rates[1.0]!r} is {expected!r}; "
                "remove the folder of tuning runs and tune again"
            )
        needed = reached_by(design, records[multiplier], target, reached)
        trials.append(Trial(multiplier, expected, tuple(records[multiplier]), Spread.of(needed)))
    return tuple(trials)


def _rate_of(records: Sequence[Record]) -> float:
    """The learning rate that all of some runs state."""
    rates = {}
    for record in records:
        optimiser = record.config.get("optimiser")
        rate = optimiser.get("learning_rate") if isinstance(optimiser, Mapping) else None
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            raise ValueError(
                f"{record.path or record.design}: its config states no optimiser.learning_rate, got {rate!r}"
            )
        rates[float(rate)] = record
    if len(rates) > 1:
        one, other = list(rates.items())[:2]
        raise ValueError(
            f"{one[1].path} was trained at the learning rate {one[0]!r} and {other[1].path} at {other[0]!r}; the runs "
            "of a trial need one"
        )
    return next(iter(rates))


def choose_rate(design: str, trials: Sequence[Trial]) -> TunedDesign:
    """Choose the rate of a design.

    Parameters
    ----------
    design : str
    trials : sequence of Trial
        One of them at the recipe's rate.

    Returns
    -------
    TunedDesign

    Examples
    --------
    >>> found = choose_rate("a", [Trial(x, x / 10, (), Spread(at, at, at)) for x, at in ((0.5, 90), (1, 80), (2, 80))])
    >>> found.chosen.rate, found.why
    (0.1, "the recipe's rate: no other takes fewer iterations to the target")
    """

    def order(trial: Trial) -> tuple[Any, ...]:
        multiplier = trial.multiplier
        return trial.iterations.median, multiplier != 1, max(multiplier, 1 / multiplier), multiplier

    trials = tuple(sorted(trials, key=lambda trial: trial.multiplier))
    chosen = min(trials, key=order)
    if math.isinf(chosen.iterations.median):
        why = "the recipe's rate: at none of the grid do more than half of the tuning runs reach the target"
    elif chosen.multiplier == 1:
        why = "the recipe's rate: no other takes fewer iterations to the target"
    else:
        why = "fewest iterations to the target"
    return TunedDesign(design, trials, chosen, why)
