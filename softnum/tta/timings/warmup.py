"""From the times of single iterations to one: warm-up dropped by a stated rule, mean, 95 % confidence interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from fractions import Fraction

from softnum.runtime.plain import plain
from softnum.tta.quantities import format_seconds
from softnum.tta.timings.alike import alike
from softnum.tta.timings.series import Series
from softnum.tta.workloads.iteration import IterationTime

__all__ = ["iteration_time", "mean_interval", "mser5", "warmup_hint", "warmup_rule"]

#: samples that MSER-5 averages before it looks, and the least number of such averages
BATCH, LEAST_BATCHES = 5, 4


def warmup_rule(text: object) -> str | int:
    """Return a warm-up rule: "none", "auto", or how many iterations to drop.

    >>> warmup_rule("10"), warmup_rule("auto")
    (10, 'auto')
    """
    if text in ("none", "auto"):
        return text
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10:
        text = int(text)
    if isinstance(text, bool) or not isinstance(text, int) or text < 0:
        raise ValueError(f"warmup must be none, auto, or a number of iterations to drop, got {text!r}")
    return text


def mser5(samples: Sequence[float]) -> tuple[int, str]:
    """Find how many samples at the start are warm-up: MSER-5.

    The samples are averaged by fives. Of all ways to drop the first d of these averages, the one is taken for which the
    half-width of the mean's confidence interval is least, as estimated by the sum of squares about the mean over the
    square of what is left (White 1997, "An effective truncation heuristic for bias reduction in simulation output",
    SIMULATION 69(6); averages of five: White, Cobb and Spratt 2000, Winter Simulation Conference). It is computed in
    whole numbers; of equals the least d is taken.

    Parameters
    ----------
    samples : sequence of float
        Seconds of each iteration, in order.

    Returns
    -------
    int
        Samples to drop, a multiple of 5, less than half. 0 if there are fewer than 20, or if the best of the cuts up to
        half is that at half: then no steady state can be told from the run.
    str
        What was decided and why.

    Examples
    --------
    >>> mser5([9.0, 5.0, 3.0, 2.0, 2.0] + [1.0, 1.1] * 15)[0]
    5
    >>> mser5([9.0, 1.0, 1.0])[1]
    'MSER-5: nothing dropped, because it needs 20 samples or more and there are 3'
    """
    least = BATCH * LEAST_BATCHES
    if len(samples) < least:
        return 0, (f"MSER-5: nothing dropped, because it needs {least} samples or more and there are {len(samples)}")
    whole = _whole_numbers(samples)
    sums = [sum(whole[at : at + BATCH]) for at in range(0, len(whole) - BATCH + 1, BATCH)]
    cuts = len(sums) // 2
    total, squares = sum(sums[cuts:]), sum(value * value for value in sums[cuts:])
    best, at = (0, 0), None
    for cut in range(cuts, -1, -1):
        if cut < cuts:
            total, squares = total + sums[cut], squares + sums[cut] ** 2
        left = len(sums) - cut
        above, below = left * squares - total * total, left**3  # their ratio is the statistic, up to a factor
        if at is None or above * best[1] <= best[0] * below:
            best, at = (above, below), cut
    if at == cuts:
        return 0, (
            f"MSER-5: nothing dropped, because the best cut lies after {BATCH * at} of {len(samples)} samples or "
            "later: no steady state can be told; measure for longer, or state a number"
        )
    return BATCH * at, f"MSER-5: the first {BATCH * at} of {len(samples)} samples dropped"


def _whole_numbers(samples: Sequence[float]) -> list[int]:
    """The samples times one power of two, so that all are whole."""
    ratios = [float(sample).as_integer_ratio() for sample in samples]
    scale = max(below for _, below in ratios)
    return [above * (scale // below) for above, below in ratios]


@plain
def mean_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean by Student's t; None for fewer than two samples.

    It takes the samples for independent draws. Iterations of one run are somewhat correlated, so that it is rather too
    narrow than too wide. A mean time is above 0, so what lies below is cut off: that takes nothing from the probability
    of the interval.

    Examples
    --------
    >>> [round(end, 3) for end in mean_interval([2.0, 3.0, 4.0])], [round(end, 3) for end in mean_interval([1.0, 8.0])]
    ([0.516, 5.484], [0.0, 48.972])
    """
    if len(samples) < 2:
        return None
    from scipy.special import stdtrit

    mean = statistics.fmean(samples)
    half = float(stdtrit(len(samples) - 1, 0.975)) * statistics.stdev(samples) / math.sqrt(len(samples))
    return max(0.0, mean - half), mean + half


def warmup_hint(samples: Sequence[float], each: int = 1) -> str | None:
    """What to look at where there are too few samples for MSER-5 and the first of them stand apart.

    Of the cuts of up to half of the samples, MSER's (see `mser5`) on the samples themselves is taken, if each of those
    before it lies outside the range of those after it, by 10 % of their mean or more. It is a hint and drops nothing: a
    few samples can stand apart by chance.

    Examples
    --------
    >>> warmup_hint([35.0, 72.0, 96.0, 96.0, 96.0]).partition(":")[0]
    'the first 2 of 5 iterations are not like the others (35.0 s to 72.0 s, then 96.0 s)'
    >>> warmup_hint([95.0, 96.0, 97.0, 96.0, 96.0]) is None
    True
    """
    count = len(samples)
    if not 3 <= count < BATCH * LEAST_BATCHES:
        return None
    scores, most = {}, max(samples)  # squares of times over the longest are in range
    for cut in range(count // 2 + 1):
        kept = samples[cut:]
        mean = statistics.fmean(kept)
        scores[cut] = math.fsum(((sample - mean) / most) ** 2 for sample in kept) / len(kept) ** 2
    cut = min(scores, key=lambda at: (scores[at], at))
    first, kept = samples[:cut], samples[cut:]
    apart = statistics.fmean(kept) / 10
    if not cut or any(min(kept) - apart < sample < max(kept) + apart for sample in first):
        return None
    number, total = cut * each, count * each
    told = [
        format_seconds(min(part)) + (f" to {format_seconds(max(part))}" if min(part) != max(part) else "")
        for part in (first, kept)
    ]
    which = f"first {number} of {total} iterations are" if number > 1 else f"first of {total} iterations is"
    them = "they are" if number > 1 else "it is"
    return (
        f"the {which} not like the others ({told[0]}, then {told[1]}): if {them} warm-up, drop "
        f"{'them' if number > 1 else 'it'} with --warmup {number} (softnum tta: --timings-warmup {number})"
    )


def iteration_time(series: Series, warmup: str | int) -> IterationTime:
    """Return the time of an iteration from a series: warm-up dropped, mean, interval.

    Parameters
    ----------
    series : Series
        As a reader made it.
    warmup : str or int
        As `warmup_rule` returns it.

    Raises
    ------
    ValueError
        If nothing would be left, iterations are to be dropped of which only the mean is known, or a time is out of
        range of binary64.
    """
    samples = [_float(series, value) for value in series.seconds]
    drop, said = 0, "none"
    if not series.ordered:
        if isinstance(warmup, int) and warmup:
            raise ValueError(
                f"{series.source}: gives no times of single iterations of {series.design!r}, so that the first "
                f"{warmup} cannot be dropped; drop them in the tool, or leave --warmup out"
            )
        said = "nothing dropped: the file gives a mean, not single iterations" if warmup == "auto" else said
    elif warmup == "auto":
        drop, said = mser5(samples)
    elif warmup != "none":
        total = len(samples) * series.each
        drop, rest = divmod(warmup, series.each)
        said = f"the first {warmup} of {total} iterations dropped, as stated"
        if rest or drop >= len(samples):
            parts = f" in {len(samples)} parts of {series.each}" if series.each > 1 else ""
            raise ValueError(
                f"{series.source}: {total} iterations of {series.design!r}{parts}, of which the first {warmup} cannot "
                f"be dropped; state {'a multiple of the part, and ' if parts else ''}fewer than all"
            )
    kept = samples[drop:]
    found = {}
    if series.ordered and warmup == "auto" and (hint := warmup_hint(samples, series.each)):
        found["hint"] = hint
    if series.ordered and (tested := alike([(series.each, series.each * sample) for sample in kept])).unlike:
        found["unlike"] = f"iterations are unlike, and their mean is not that of a part of the run: {tested.text()}"
    detail = {"warmup": said} | found | ({"warmup_seconds": samples[:drop]} if drop else {}) | series.detail
    if series.each > 1:
        detail["iterations_per_sample"] = series.each
    joules = None if series.joules is None else series.joules[drop:]
    return IterationTime(
        series.design,
        _mean(series, kept),
        len(kept) * series.each,
        series.source,
        detail,
        samples=tuple(kept) if series.ordered else (),
        dropped=drop * series.each,
        interval=mean_interval(kept) if series.ordered else None,
        kind=series.kind,
        joules=None if joules is None else float(sum(joules) / len(joules)),
    )


def _float(series: Series, value: Fraction) -> float:
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not 0 < result < math.inf:
        limit = "more than 1.7e308 seconds" if result else "less than 5e-324 seconds"
        raise ValueError(
            f"{series.source}: an iteration of {series.design!r} takes {limit}, which binary64 does not hold; correct "
            "its time or the clock"
        )
    return result


def _mean(series: Series, samples: Sequence[float]) -> float:
    """The mean of the samples as they are written, so that a file of them gives the same mean."""
    return _float(series, sum(map(_decimal, samples), Fraction(0)) / len(samples))


def _decimal(value: float) -> Fraction:
    return Fraction(repr(value))
