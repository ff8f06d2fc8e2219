"""When a run counts as having reached its target: the rule is part of the result, never tacit."""

from __future__ import annotations

import difflib
import math
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.accuracy.records import Evaluation

__all__ = ["DIRECTIONS", "ReachedRule", "direction_of"]

#: Whether more of a metric is better, or less.
DIRECTIONS = ("higher", "lower")

_KINDS = {"first": None, "consecutive": "k", "average": "window"}
#: Words by which a metric's name says that less of it is better; every other name counts as one of which more is.
_LOWER = {
    "loss", "logloss", "nll", "perplexity", "ppl", "bpb", "bpc", "wer", "cer", "eer", "err", "error",
    "errors", "mse", "rmse", "mae", "mape", "fid",
}  # fmt: skip
_LOWER_LAST = {"per", "ter"}  # phone and translation error rates; "per" is a common word elsewhere
_LOWER_NAMES = ("cross entropy", "bits per byte", "bits per character", "bits per dim")
_FORMS = "first, consecutive:K (K evaluations in a row) or average:W (mean of the last W evaluations)"


def direction_of(metric: str) -> str:
    """Return "lower" for the names of metrics of which less is better, like loss, perplexity and wer; else "higher".

    A word of the name decides, wherever it stands: ``val_wer`` and ``top1_error_rate`` are such names.

    Parameters
    ----------
    metric : str
        Name of the metric. Words are letters between other characters, or begin with a capital (``valLoss``).

    Returns
    -------
    str

    Examples
    --------
    >>> direction_of("accuracy"), direction_of("val_loss"), direction_of("WER"), direction_of("valid/top-1 error")
    ('higher', 'lower', 'lower', 'lower')
    """
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", metric).lower())
    known = _LOWER.intersection(words) or _LOWER_LAST.intersection(words[-1:])
    return "lower" if known or any(name in " ".join(words) for name in _LOWER_NAMES) else "higher"


@dataclass(frozen=True)
class ReachedRule:
    """The rule by which a run has reached the target.

    Evaluations are examined in order, smoothed first if requested. The run has reached the target

    - "first": at the first evaluation whose value is at the target or beyond;
    - "consecutive": at the k-th such evaluation in a row: the last of them counts, because only then is it known;
    - "average": at the first evaluation where the mean of it and the `window` - 1 before is at the target or beyond.

    An evaluation that is not finite never counts: it ends a row of good ones, no mean spans it, and smoothing begins
    anew after it. Means are computed exactly (as fractions), so that a curve of constant 0.9 has a mean of 0.9.

    Parameters
    ----------
    kind : str
        "first", "consecutive" or "average".
    k : int
        Evaluations in a row, of "consecutive".
    window : int
        Evaluations in the mean, of "average".
    smoothing : float or None
        Weight of the past in an exponential moving average, in (0, 1): s(t) = (a s(t-1) + (1 - a) x(t)) corrected for
        its start by 1 - a**t, so that s(1) = x(1) (Kingma and Ba, "Adam", 2015, section 3, for the correction).
    direction : str
        "higher" if more of the metric is better, else "lower".

    Raises
    ------
    ValueError
        If a parameter is out of its range, or given for another kind.

    Examples
    --------
    >>> curve = [Evaluation(i, value) for i, value in enumerate([0.8, 0.9, 0.7, 0.9, 0.92, 0.91], start=1)]
    >>> ReachedRule().iteration(curve, 0.9), ReachedRule("consecutive", k=3).iteration(curve, 0.9)
    (2, 6)
    >>> ReachedRule("average", window=3).iteration(curve, 0.9)
    6
    >>> ReachedRule("first", direction="lower").iteration([Evaluation(10, 2.5), Evaluation(20, 1.9)], 2.0)
    20
    """

    kind: str = "first"
    k: int = 1
    window: int = 1
    smoothing: float | None = None
    direction: str = "higher"

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            near = difflib.get_close_matches(str(self.kind), _KINDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"the reached rule must be {_FORMS}, got {self.kind!r}{hint}")
        for name in ("k", "window"):
            value, own = getattr(self, name), _KINDS[self.kind] == name
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} of the reached rule must be an integer of at least 1, got {value!r}")
            if value != 1 and not own:
                raise ValueError(f"the reached rule {self.kind!r} has no {name}, got {value}; rules: {_FORMS}")
        if self.smoothing is not None and not (isinstance(self.smoothing, float) and 0 < self.smoothing < 1):
            raise ValueError(f"smoothing is the weight of the past and must lie in (0, 1), got {self.smoothing!r}")
        if self.direction not in DIRECTIONS:
            raise ValueError(f"the direction of a metric must be higher or lower, got {self.direction!r}")

    @classmethod
    def parse(cls, text: str = "first", smooth: str | None = None, direction: str = "higher") -> ReachedRule:
        """Read what the command line takes: ``first``, ``consecutive:3``, ``average:5``; ``ema:0.9`` or None.

        Examples
        --------
        >>> ReachedRule.parse("consecutive:3", "ema:0.5")
        ReachedRule(kind='consecutive', k=3, window=1, smoothing=0.5, direction='higher')
        """
        kind, colon, number = text.strip().partition(":")
        if kind not in _KINDS:
            cls(kind)  # raises, with the nearest kind
        parameter = _KINDS[kind]
        if bool(colon) != (parameter is not None) or (colon and not re.fullmatch(r"[1-9]\d{0,5}", number)):
            raise ValueError(f"the reached rule must be {_FORMS}, got {text!r}")
        alpha = None
        if smooth is not None:
            name, _, number_text = smooth.strip().partition(":")
            try:
                alpha = float(number_text)
            except ValueError:
                alpha = math.nan
            if name != "ema" or not 0 < alpha < 1:
                raise ValueError(f"smoothing must be ema:A with the weight of the past A in (0, 1), got {smooth!r}")
        given = {} if parameter is None else {parameter: int(number)}
        return cls(kind, smoothing=alpha, direction=direction, **given)

    def meets(self, value: float | Fraction, target: float) -> bool:
        """Whether a value is at the target or beyond; NaN is not."""
        return value >= target if self.direction == "higher" else value <= target

    def smoothed(self, evaluations: Iterable[Evaluation]) -> list[float]:
        """The values that the rule examines, exponentially smoothed if requested.

        Examples
        --------
        >>> ReachedRule(smoothing=0.5).smoothed([Evaluation(1, 1.0), Evaluation(2, 4.0)])
        [1.0, 3.0]
        """
        values = [float(evaluation.value) for evaluation in evaluations]
        if self.smoothing is None:
            return values
        result, mean, steps = [], 0.0, 0
        for value in values:
            if not math.isfinite(value):
                mean, steps = 0.0, 0
                result.append(math.nan)
                continue
            steps += 1
            # the corrected mean, updated in the form that leaves a constant curve exactly as it is
            mean += (value - mean) * ((1 - self.smoothing) / (1 - self.smoothing**steps)) if steps > 1 else value - mean
            result.append(mean)
        return result

    def iteration(self, evaluations: Iterable[Evaluation], target: float) -> int | None:
        """Return the iteration at which the target is reached, or None.

        Parameters
        ----------
        evaluations : iterable of Evaluation
            In order.
        target : float

        Returns
        -------
        int or None
        """
        found = self.evaluation(evaluations, target)
        return None if found is None else found.iteration

    def evaluation(self, evaluations: Iterable[Evaluation], target: float) -> Evaluation | None:
        """Return the evaluation at which the target is reached, or None."""
        evaluations = list(evaluations)
        row, last = 0, deque(maxlen=self.window)
        for evaluation, value in zip(evaluations, self.smoothed(evaluations), strict=True):
            if math.isfinite(value):
                last.append(Fraction(value))
            else:
                last.clear()
            full = len(last) == self.window
            row = row + 1 if full and self.meets(sum(last) / self.window, target) else 0
            if row == self.k:
                return evaluation
        return None

    def text(self, metric: str, target: float) -> str:
        """The rule in words.

        Examples
        --------
        >>> ReachedRule("average", window=5).text("accuracy", 0.95)
        'at its first evaluation where the mean of the last 5 values of accuracy is >= 0.95'
        """
        sign = ">=" if self.direction == "higher" else "<="
        what = metric
        if self.smoothing is not None:
            what = f"{metric}, smoothed exponentially with weight {self.smoothing:g} of the past,"
        if self.kind == "consecutive":
            return f"at the last of its first {self.k} evaluations in a row with {what} {sign} {target:g}"
        if self.kind == "average":
            return (
                f"at its first evaluation where the mean of the last {self.window} values of {what} is "
                f"{sign} {target:g}"
            )
        return f"at its first evaluation with {what} {sign} {target:g}"

    def to_table(self) -> dict[str, Any]:
        """The rule as plain JSON values."""
        return {
            "kind": self.kind,
            "k": self.k,
            "window": self.window,
            "smoothing": self.smoothing,
            "direction": self.direction,
        }
