"""A scaling law: the loss of language models from their parameters and the tokens that they were trained on.

    L(N, D) = E + A / N**a + B / D**b

It is fitted as J. Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022, appendix D.3, fit theirs:
the sum over the runs of Huber's loss of log L - log L(N, D), with the transition at 0.001, is minimised over log A, log
B, log E, a and b, here by a trust region of least squares (``scipy.optimize.least_squares``; there by L-BFGS), from
those points of a grid where it is least. E is at least a thousandth of the runs' mean loss: below that it changes
nothing that can be seen, and the optimiser would follow log E to minus infinity. Intervals are from a bootstrap: runs
are drawn with replacement, and the law is fitted to each drawing, starting at the law of all runs. Runs of one size,
number of tokens and seed are drawn together, because they share initial weights and the order of the data, so that
their errors are alike.

That is an estimate, and not the same to the last bit everywhere: the optimiser's arithmetic is the platform's.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softnum.tta.law_runs import LawRun
from softnum.tta.outcomes.intervals import percentiles
from softnum.tta.quantities import check_keys

__all__ = ["Prediction", "ScalingLaw", "fit_law", "read_law"]

SCHEMA = "softnum.law/1"
#: Huber's transition, by Hoffmann et al.
HUBER = 1e-3
#: runs and different sizes that a fit takes at least; how far beyond those seen a law is asked
LEAST_RUNS, LEAST_VALUES, BEYOND = 6, 3, 10.0
_NAMES = ("A", "B", "E", "a", "b")
_GRID = ((0.0, 3.0, 6.0, 12.0), (0.0, 3.0, 6.0, 12.0), (-1.0, 0.0, 1.0), (0.2, 0.4, 0.8), (0.2, 0.4, 0.8))
_STARTS = 4  # of the grid
_LEAST_E = -math.log(1000.0)  # of log E, above the mean of log loss
_LEAST_SHARE = -math.log(1e6)  # of the log of a term's share of the loss, where it is largest
_RESTARTS = 4  # of a fit, until it improves no more
_ALIKE = 0.01  # of the spread of log D, what of it must not follow from log N
_WORDS = ("parameters", "tokens")


class Prediction(NamedTuple):
    """What a law says, with the interval of its bootstrap; `extrapolated`: whether it lies beyond all runs."""

    value: float
    low: float
    high: float
    extrapolated: bool


@dataclass(frozen=True)
class ScalingLaw:
    """A fitted law.

    Parameters
    ----------
    A, B, E, a, b : float
        Of L(N, D) = E + A / N**a + B / D**b.
    draws : tuple of tuple of float
        The same five of each drawing of the bootstrap.
    parameters, tokens : (float, float)
        The least and the most of the runs.
    runs : int
        How many were fitted.
    confidence : float
        Of intervals.
    metric : str
        What the loss is.

    Examples
    --------
    >>> law = ScalingLaw(400.0, 400.0, 1.7, 0.34, 0.28, (), (1e6, 1e9), (1e8, 1e10), 9)
    >>> round(law.loss(1e8, 1e9).value, 3)
    3.67
    >>> f"{law.tokens_to(3.8, 1e8).value:.3g}"
    '6.94e+08'
    """

    A: float
    B: float
    E: float
    a: float
    b: float
    draws: tuple[tuple[float, ...], ...]
    parameters: tuple[float, float]
    tokens: tuple[float, float]
    runs: int
    confidence: float = 0.95
    metric: str = "loss"

    @property
    def fitted(self) -> tuple[float, ...]:
        """A, B, E, a and b."""
        return (self.A, self.B, self.E, self.a, self.b)

    def intervals(self) -> dict[str, tuple[float, float]]:
        """The interval of each of A, B, E, a and b."""
        columns = zip(*self.draws, strict=True) if self.draws else ((value,) for value in self.fitted)
        return {name: self._interval(list(column)) for name, column in zip(_NAMES, columns, strict=True)}

    def loss(self, parameters: float, tokens: float) -> Prediction:
        """The loss of so many parameters after so many tokens.

        Raises
        ------
        ValueError
            If one is more than ten times as many as any run had, or less than a tenth of the fewest.
        """
        beyond = [self._check(what, value) for what, value in zip(_WORDS, (parameters, tokens), strict=True)]
        return self._predict(lambda law: _loss(law, parameters, tokens), any(beyond))

    def tokens_to(self, loss: float, parameters: float) -> Prediction:
        """The tokens after which so many parameters have a loss.

        An end of the interval is infinite where a drawing never has it.

        Raises
        ------
        ValueError
            If the law never has it, or parameters or tokens are too far from those of the runs, as of `loss`.
        """
        beyond = self._check("parameters", parameters)
        found = _tokens(self.fitted, loss, parameters)
        if math.isinf(found):
            least = self.E + self.A / parameters**self.a
            raise ValueError(
                f"a loss of {loss:g} is never reached by {parameters:g} parameters: however many tokens, the law stays "
                f"above {least:.4g}; ask for a higher loss, or more parameters"
            )
        if not found > 0:
            raise ValueError(f"a loss of {loss:g} is one that the law has before the first token; ask for a lower one")
        beyond = self._check("tokens", found) or beyond
        return self._predict(lambda law: _tokens(law, loss, parameters), beyond)

    def _predict(self, of, extrapolated: bool) -> Prediction:
        return Prediction(
            of(self.fitted), *self._interval([of(law) for law in self.draws or (self.fitted,)]), extrapolated
        )

    def _interval(self, values: list[float]) -> tuple[float, float]:
        return percentiles(values, self.confidence)

    def _check(self, what: str, value: float) -> bool:
        """Whether a number lies beyond those of the runs; an error where it lies far beyond them."""
        low, high = getattr(self, what)
        if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
            raise ValueError(f"{what} must be a positive number, got {value!r}")
        if not low / BEYOND <= value <= high * BEYOND:
            raise ValueError(
                f"{value:.4g} {what} are far from the {low:.4g} to {high:.4g} of the runs: a law is asked at most "
                f"{BEYOND:g} times beyond them, {low / BEYOND:.4g} to {high * BEYOND:.4g}; fit it with nearer runs"
            )
        return not low <= value <= high

    def to_json(self) -> str:
        """It as text, for `read_law`."""
        facts = {"schema": SCHEMA, "law": "E + A / N**a + B / D**b", **asdict(self)}
        return json.dumps(facts | {"intervals": self.intervals()}, indent=1, allow_nan=False) + "\n"


def _loss(law, parameters: float, tokens: float) -> float:
    big, small, floor, a, b = law
    return floor + big / parameters**a + small / tokens**b


def _tokens(law, loss: float, parameters: float) -> float:
    big, small, floor, a, b = law
    rest = loss - floor - big / parameters**a
    if not rest > 0 or not b > 0:
        return math.inf
    try:
        return (small / rest) ** (1.0 / b)
    except OverflowError:
        return math.inf


def fit_law(
    runs: Iterable[LawRun], *, bootstrap: int = 200, seed: int = 1, confidence: float = 0.95, metric: str = "loss"
) -> ScalingLaw:  # fmt: skip
    """Fit a law to runs.

    Parameters
    ----------
    runs : iterable of LawRun
        At least 6, with at least 3 different numbers of parameters and 3 of tokens.
    bootstrap : int
        Drawings for intervals; 0: none.
    seed : int
        Of the drawings.
    confidence : float
    metric : str
        What the loss is.

    Returns
    -------
    ScalingLaw

    Raises
    ------
    ValueError
        If there are too few runs, or too few different ones, tokens follow from parameters, a number is not positive,
        the runs follow no such law, or the confidence is out of (0, 1).

    References
    ----------
    J. Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022, appendix D.3; T. Besiroglu et al.,
    "Chinchilla Scaling: A replication attempt", 2024, which finds that the sum, and not the mean, has to be minimised.

    Examples
    --------
    >>> runs = [LawRun(n, d, 1.5 + 50 / n**0.3 + 80 / d**0.3) for n in (1e4, 1e5, 1e6) for d in (1e5, 1e6, 1e7)]
    >>> law = fit_law(runs, bootstrap=0)
    >>> round(law.E, 2), round(law.a, 3), round(law.b, 3)
    (1.5, 0.3, 0.3)
    """
    runs = list(runs)
    table = check_fit(runs, bootstrap, confidence, seed)
    logs = np.log(table)
    unit = logs[:, 2].mean()  # losses are fitted in units of their mean, so that the grid is near those of any size
    logs[:, 2] -= unit
    starts = sorted(itertools.product(*_GRID), key=lambda start: _cost(start, logs))[:_STARTS]
    best = min((_minimised(logs, start) for start in starts), key=lambda found: _cost(found, logs))
    parts, total = _terms(best, logs)
    for term, what in zip(parts, _WORDS, strict=False):
        if not (term - total).max() > _LEAST_SHARE:
            raise ValueError(
                f"the runs follow no such law: their loss does not fall with more {what}; look for runs whose loss "
                f"rises with {what}, or that were stopped early"
            )
    found: list[tuple[float, ...]] = []
    drawn = drawings(runs, seed)
    while len(found) < bootstrap:
        chosen = logs[next(drawn)]
        if all(len(np.unique(chosen[:, column])) >= 2 for column in (0, 1)):
            found.append(_law(_minimised(chosen, best), unit))
    law = _law(best, unit)
    if not np.isfinite([law, *found]).all():
        raise ValueError(
            "the runs follow no such law: what fits them best has numbers beyond binary64's; look for runs whose loss "
            "rises with parameters or tokens, or leave the intervals out (bootstrap 0)"
        )
    spans = [(float(column.min()), float(column.max())) for column in table.T[:2]]
    return ScalingLaw(*law, tuple(found), *spans, len(table), confidence, metric)


def drawings(runs: list[LawRun], seed: int) -> Iterator[np.ndarray]:
    """Draw rows of runs with replacement, without end; runs of one size, number of tokens and seed together."""
    groups: dict[object, list[int]] = {}
    for row, run in enumerate(runs):
        key = row if run.seed is None else (run.parameters, run.tokens, run.seed)
        groups.setdefault(key, []).append(row)
    members = [np.array(rows) for rows in groups.values()]
    draw = np.random.Generator(np.random.Philox(seed))
    while True:
        yield np.concatenate([members[index] for index in draw.integers(0, len(members), len(members))])


def check_fit(runs: list[LawRun], bootstrap: int, confidence: float, seed: int) -> np.ndarray:
    """Parameters, tokens and losses of runs; ValueError if they do not make a law, or how it is asked for is wrong."""
    table = np.array([run[:3] for run in runs], np.float64).reshape(-1, 3)
    if len(table) < LEAST_RUNS:
        raise ValueError(f"a law of five numbers needs at least {LEAST_RUNS} runs, got {len(table)}; train more")
    if not (np.isfinite(table).all() and (table > 0).all()):
        raise ValueError("parameters, tokens and losses of runs must be positive numbers")
    for column, what in enumerate(_WORDS):
        values = len(np.unique(table[:, column]))
        if values < LEAST_VALUES:
            raise ValueError(
                f"the runs have {values} different numbers of {what}, and a power of them needs at least "
                f"{LEAST_VALUES}; train runs with other {what}"
            )
    if 1.0 - np.corrcoef(np.log(table[:, :2]), rowvar=False)[0, 1] ** 2 <= _ALIKE**2:
        raise ValueError(
            "the tokens of all runs are a power of their parameters, such as 20 for each, and what is due to which "
            "cannot be told apart; train runs of one size with other tokens"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be an integer from 0 on, got {seed!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence must lie in (0, 1), got {confidence!r}")
    if isinstance(bootstrap, bool) or not isinstance(bootstrap, int) or bootstrap < 0:
        raise ValueError(f"bootstrap must be a number of drawings, 0 or more, got {bootstrap!r}")
    return table


def _law(x, unit: float) -> tuple[float, ...]:
    with np.errstate(over="ignore", under="ignore"):
        return (*(float(value) for value in np.exp(x[:3] + unit)), float(x[3]), float(x[4]))


def _terms(x, logs):
    """Log A / N**a, log B / D**b and log E of each run, from log A, log B, log E, a and b; and the log of their sum."""
    size, tokens, _ = logs.T
    parts = np.stack([x[0] - x[3] * size, x[1] - x[4] * tokens, np.full_like(size, x[2])])
    top = parts.max(axis=0)
    return parts, top + np.log(np.exp(parts - top).sum(axis=0))


def _errors(x, logs):
    """Log L(N, D) - log L of each run."""
    return _terms(x, logs)[1] - logs[:, 2]


def _slopes(x, logs):
    """The derivatives of `_errors`."""
    parts, total = _terms(x, logs)
    shares = np.exp(parts - total)
    return np.stack([*shares, -shares[0] * logs[:, 0], -shares[1] * logs[:, 1]], axis=1)


def _cost(x, logs) -> float:
    error = np.abs(_errors(x, logs))
    return float(np.where(error <= HUBER, 0.5 * error**2, HUBER * (error - 0.5 * HUBER)).sum())


def _minimised(logs, start):
    """What the sum of Huber's losses is least at, from a start."""
    return huber_fit(lambda x: _errors(x, logs), lambda x: _slopes(x, logs), start, logs[:, 2].mean())


def huber_fit(
    errors: Callable[..., Any], slopes: Callable[..., Any], start: Sequence[float], mean: float
) -> np.ndarray:
    """Minimise the sum of Huber's losses of errors with scipy, from a start, with derivatives given.

    Parameters
    ----------
    errors, slopes : callable
        Of the numbers fitted, the third of which is log E: the error of each run, and its derivatives.
    start : sequence of float
    mean : float
        The mean of log loss, far below which log E does not go.

    Returns
    -------
    numpy.ndarray
        The numbers with the least sum.
    """
    from scipy.optimize import least_squares

    how = {"loss": "huber", "f_scale": HUBER, "x_scale": "jac", "xtol": 1e-10, "ftol": 1e-12, "gtol": 1e-14}
    least = np.full(len(start), -np.inf)
    least[2] = mean + _LEAST_E
    at = np.array(start, np.float64)
    at[2] = max(at[2], least[2] + 0.5)  # the optimiser starts within the bound
    found = least_squares(errors, at, slopes, bounds=(least, np.inf), max_nfev=300, **how)
    for _ in range(_RESTARTS):  # its steps can become too small far from the minimum: it scales them by past slopes
        again = least_squares(errors, found.x, slopes, bounds=(least, np.inf), max_nfev=300, **how)
        if not again.cost < found.cost * (1.0 - 1e-9):
            break
        found = again
    return found.x


def read_law(path: str | Path) -> ScalingLaw:
    """Read a law that `ScalingLaw.to_json` wrote.

    Raises
    ------
    ValueError
        If the file is not there, is none, or contradicts itself.
    """
    return parse_law(read_law_facts(path), str(path))


def read_law_facts(path: str | Path) -> Mapping[str, Any]:
    """What a law's file says, which is not checked yet."""
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; softnum law fit writes one") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a law: {error}") from error
    if not isinstance(facts, Mapping):
        raise ValueError(f"{path}: not a law of schema {SCHEMA}; softnum law fit writes one")
    return facts


def parse_law(facts: Mapping[str, Any], path: str) -> ScalingLaw:
    """The law that a file says, checked."""
    if not isinstance(facts, Mapping) or facts.get("schema") != SCHEMA:
        raise ValueError(f"{path}: not a law of schema {SCHEMA}; softnum law fit writes one")
    names = list(ScalingLaw.__dataclass_fields__)
    check_keys(facts, (*names, "schema", "law", "intervals"), (), str(path))
    try:
        values = {name: facts[name] for name in names}
        values["draws"] = tuple(tuple(map(float, draw)) for draw in values["draws"])
        values |= {what: tuple(map(float, values[what])) for what in _WORDS}
        law = ScalingLaw(**values)
        numbers = [*law.fitted, *itertools.chain(*law.draws), *law.parameters, *law.tokens, law.confidence]
        right = all(math.isfinite(value) for value in numbers) and all(len(draw) == len(_NAMES) for draw in law.draws)
        right &= all(0 < low <= high for low, high in (law.parameters, law.tokens)) and 0 < law.confidence < 1
        same = right and {name: list(ends) for name, ends in law.intervals().items()} == facts["intervals"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a whole law ({error!r}); fit it again") from error
    if not same:
        raise ValueError(f"{path}: its numbers contradict each other; fit it again")
    return law
