"""What optimisations gain together, against the product of what each gains alone.

Speed-ups that were each measured alone are often multiplied. The seed lecture asks whether 1.25 x 3.1 x 3 x 29 x 3 =
1011 is what one gets, and answers that optimisations interact; its source is C. Coleman et al., "DAWNBench: An
End-to-End Deep Learning Benchmark and Competition", NIPS ML Systems Workshop, 2017. `interaction` shows by how much the
product is off, and in which of its two factors: the hardware's throughput, or the arithmetic's statistical efficiency.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from softnum.tta.outcomes.intervals import draws, percentiles
from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.quantities import positive_number

__all__ = ["Factors", "Interaction", "interaction", "predicted_speedup", "read_combination"]


def predicted_speedup(factors: Iterable[float]) -> float:
    """The product of speed-ups, which is the speed-up of all together only if they do not interact.

    Parameters
    ----------
    factors : iterable of float
        Speed-ups, each finite and above 0.

    Returns
    -------
    float

    Examples
    --------
    The lecture's: stochastic depth, minimal-effort back-propagation, reduced precision, large minibatches, a V100.

    >>> round(predicted_speedup([1.25, 3.1, 3, 29, 3]))
    1011
    """
    factors = [positive_number(factor, "a speed-up") for factor in factors]
    if not factors:
        raise ValueError("at least one speed-up is needed, got none")
    return float(math.prod(factors))


@dataclass(frozen=True)
class Factors:
    """The two factors of a speed-up and their product; None where a factor is not known.

    Examples
    --------
    >>> Factors(4.0, 0.5).speedup
    2.0
    """

    throughput: float | None
    efficiency: float | None

    @property
    def speedup(self) -> float | None:
        """throughput * efficiency."""
        return None if self.throughput is None or self.efficiency is None else self.throughput * self.efficiency

    @classmethod
    def over(cls, result: DesignResult, base: DesignResult) -> Factors:
        """Those of one design over another of the same study."""
        throughput = efficiency = None
        if result.unit != base.unit:  # what is no count of the same is no efficiency
            return cls(None, None)
        if result.by_clock:
            ends = (result.samples.median, base.samples.median, result.tta.median, base.tta.median)
            if all(0 < end < math.inf for end in ends):
                efficiency = base.samples.median / result.samples.median
                throughput = base.tta.median / result.tta.median / efficiency
            return cls(throughput, efficiency)
        if result.time is not None and base.time is not None:
            throughput = (result.batch / result.time.seconds) / (base.batch / base.time.seconds)
        if math.isfinite(result.samples.median) and math.isfinite(base.samples.median):
            efficiency = base.samples.median / result.samples.median
        return cls(throughput, efficiency)

    def to_table(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"throughput": self.throughput, "efficiency": self.efficiency, "speedup": self.speedup}


@dataclass(frozen=True)
class Interaction:
    """A combined design against its parts.

    Parameters
    ----------
    base : str
        The design that everything is over.
    parts : tuple of str
        Designs with one optimisation each.
    combined : str
        The design with all of them.
    individual : tuple of Factors
        What each part gains over the base.
    predicted : Factors
        Their product, factor by factor.
    measured : Factors
        What the combined design gains over the base.
    ratio : Factors
        Measured over predicted: 1 if the parts do not interact, below 1 if they get in each other's way.
    interval : (float, float) or None
        Percentile interval of the ratio of the speed-ups (or of the efficiencies, without times), from 10 000 draws of
        every design's median and time; None where there is no ratio.

    Examples
    --------
    >>> one = Factors(2.0, 1.0)
    >>> Interaction("o", ("a", "b"), "ab", (one, one), Factors(4.0, 1.0), Factors(4.0, 0.5), Factors(1.0, 0.5)).text()
    'a + b = ab: 4.00x on paper, 2.00x measured, 0.50 of it (throughput 1.00, efficiency 0.50)'
    """

    base: str
    parts: tuple[str, ...]
    combined: str
    individual: tuple[Factors, ...]
    predicted: Factors
    measured: Factors
    ratio: Factors
    interval: tuple[float, float] | None = None

    def text(self) -> str:
        """One line that says it."""

        def show(value: float | None, unit: str = "") -> str:
            return "-" if value is None else f"{value:.2f}{unit}"

        within = ""
        if self.interval is not None:
            low, high = self.interval
            within = f" [{low:.2f}, {'no limit' if math.isinf(high) else f'{high:.2f}'}]"
        # without times there is no speed-up, and the interval is that of the efficiency
        of_all, of_part = (within, "") if self.ratio.speedup is not None else ("", within)
        return (
            f"{' + '.join(self.parts)} = {self.combined}: {show(self.predicted.speedup, 'x')} on paper, "
            f"{show(self.measured.speedup, 'x')} measured, {show(self.ratio.speedup)}{of_all} of it "
            f"(throughput {show(self.ratio.throughput)}, efficiency {show(self.ratio.efficiency)}{of_part})"
        )

    def to_table(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "base": self.base,
            "parts": list(self.parts),
            "combined": self.combined,
            "individual": [factors.to_table() for factors in self.individual],
            "predicted": self.predicted.to_table(),
            "measured": self.measured.to_table(),
            "ratio": self.ratio.to_table(),
            "interval": self.interval,
        }


def interaction(study: Study, base: str, parts: Sequence[str], combined: str) -> Interaction:
    """Compare a combined design with the product of its parts.

    Parameters
    ----------
    study : Study
        Has all of the designs.
    base : str
        The design without any of the optimisations.
    parts : sequence of str
        At least two designs with one optimisation each.
    combined : str
        The design with all of them.

    Returns
    -------
    Interaction

    Raises
    ------
    KeyError
        If the study has no such design.
    ValueError
        If there are fewer than two parts, or a design is named twice.

    Examples
    --------
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> def run(design, batch, reached_at):
    ...     return Record(design, 1, batch, 100, (Evaluation(reached_at, 0.9),), {}, {})
    >>> runs = [run("base", 32, 80), run("wide", 64, 50), run("fp8", 32, 80), run("both", 64, 100)]
    >>> seconds = {"base": 2.0, "wide": 2.0, "fp8": 1.0, "both": 1.0}
    >>> times = {name: IterationTime(name, value) for name, value in seconds.items()}
    >>> study = combine_study(runs, times, target=0.9, baseline="base")
    >>> found = interaction(study, "base", ["wide", "fp8"], "both")
    >>> found.predicted.speedup, found.measured.speedup, found.ratio.throughput, found.ratio.efficiency
    (3.2, 1.6, 1.0, 0.5)
    """
    parts = tuple(parts)
    names = [base, *parts, combined]
    if len(parts) < 2:
        raise ValueError(f"an interaction needs at least two parts, got {', '.join(parts) or 'none'}")
    if len(set(names)) != len(names):
        raise ValueError(f"the designs of an interaction must differ, got {', '.join(names)}")
    results = {name: study[name] for name in names}
    individual = tuple(Factors.over(results[part], results[base]) for part in parts)
    measured = Factors.over(results[combined], results[base])
    predicted = Factors(*(_product([getattr(f, key) for f in individual]) for key in ("throughput", "efficiency")))
    ratio = Factors(_over(measured.throughput, predicted.throughput), _over(measured.efficiency, predicted.efficiency))
    interval = None
    if ratio.efficiency is not None:
        interval = _interval(results, base, parts, combined, study.confidence)
    return Interaction(base, parts, combined, individual, predicted, measured, ratio, interval)


def _product(values: list[float | None]) -> float | None:
    return None if None in values else math.prod(values)


def _over(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value / other


def _interval(results, base, parts, combined, confidence) -> tuple[float, float]:
    """Of prod(TTA of the parts) / (TTA combined * TTA base ** (parts - 1)); of samples if a time is missing."""
    import numpy as np

    timed = all(result.time is not None or result.by_clock for result in results.values())
    drawn = {}
    for stream, (name, result) in enumerate(results.items(), start=1):
        field = "seconds_to_target" if result.by_clock else "iterations_to_target"
        runs = [math.inf if getattr(run, field) is None else getattr(run, field) for run in result.runs]
        if result.by_clock:
            drawn[name] = draws(runs, None, stream)
            continue
        drawn[name] = draws(runs, result.time, stream) if timed else draws(runs, None, stream) * result.batch
    with np.errstate(invalid="ignore"):  # infinite over infinite: that draw says nothing, and widens both ends
        total = drawn[base] / drawn[combined]
        for part in parts:
            total = total * (drawn[part] / drawn[base])
    return percentiles(total, confidence)


def read_combination(text: str, designs: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Read ``"a+b=c"``: designs a and b with one optimisation each, and c with both.

    Parameters
    ----------
    text : str
        Spaces around + and = do not matter.
    designs : sequence of str
        The labels of the study.

    Returns
    -------
    parts : tuple of str
    combined : str

    Raises
    ------
    ValueError
        If the text is not of this form or names no design of the study.

    Examples
    --------
    >>> read_combination("wide + fp8 = both", ["base", "wide", "fp8", "both"])
    (('wide', 'fp8'), 'both')
    """
    left, equals, combined = text.rpartition("=")
    parts = tuple(part.strip() for part in left.split("+"))
    combined = combined.strip()
    if not equals or len(parts) < 2 or not all((*parts, combined)):
        raise ValueError(f'a combination must be like "a+b=c": the designs a and b, and c with both, got {text!r}')
    for name in (*parts, combined):
        if name not in designs:
            near = difflib.get_close_matches(name, designs, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"--combine {text!r}: no design {name!r} in the study ({', '.join(designs)}){hint}")
    return parts, combined
