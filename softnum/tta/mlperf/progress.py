"""How far an MLPerf run had come at each evaluation, and how long that took: what its times and its curve share.

The position of an evaluation in iterations, by the first of these that the log has:

1. ``step`` or ``step_num`` of the evaluation;
2. its ``samples_count`` over global_batch_size;
3. its ``epoch_num``, where that counts samples (bert) or tokens (gpt3), over global_batch_size;
4. its ``epoch_num`` in epochs. A fraction is what was done. A whole number is a label, and logs differ in what of: the
   blocks before it say how many epochs were done, else the epochs that ended before it.

An epoch has train_samples / global_batch_size iterations. Counts are rounded to whole iterations: whether the rest of
an epoch is trained is not logged, so that they are right to one iteration (and are said to be).

Where batches cannot be counted, the unit is an epoch, or an evaluation, and the time of one is the log's wall time over
them, so that the time to accuracy is measured: evaluations are inside.

Whatever the log says twice is compared; a contradiction is an error that names both lines.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from softnum.tta.mllog import MLLog, MLLogEvent
from softnum.tta.mlperf.benchmarks import GRACE, run_seconds
from softnum.tta.mlperf.logged import SHORTEST, Span
from softnum.tta.mlperf.spans import TimedRun

__all__ = ["Progress", "Span", "mlperf_progress"]


@dataclass(frozen=True)
class Progress:
    """An MLPerf run, counted.

    Parameters
    ----------
    unit : str
        "iteration", "epoch" or "evaluation".
    batch : int or None
        global_batch_size, or what the user says.
    places : tuple of (MLLogEvent, int)
        Evaluations in order, and the units done at each.
    spans : tuple of Span
        Where the time was spent; empty if the log cannot tell.
    counted, timed : str
        How units and times are known, in words.
    why : str
        Why there are no spans.
    """

    unit: str
    batch: int | None
    places: tuple[tuple[MLLogEvent, int], ...]
    spans: tuple[Span, ...]
    counted: str
    timed: str
    why: str = ""


def mlperf_progress(
    log: MLLog, evaluations: list[MLLogEvent], *, batch: int | None = None, per_epoch: int | None = None
) -> Progress:
    """Count what a finished log says.

    Parameters
    ----------
    log : MLLog
    evaluations : list of MLLogEvent
        Of one metric, in the order of the file; may be empty.
    batch : int, optional
        Samples per iteration, where the log does not say.
    per_epoch : int, optional
        Iterations of an epoch, where the log does not say.

    Raises
    ------
    ValueError
        If the log contradicts itself; the message names both lines.
    """
    return _Reader(log, evaluations, batch, per_epoch).progress()


class _Reader(TimedRun):
    """All of it: places and times, rounded and compared with the run as a whole."""

    def progress(self) -> Progress:
        unit, places, said = self._places()
        rounded = [round(value) for value in places]
        for (event, at), (later, then) in itertools.pairwise(zip(self.evaluations, rounded, strict=True)):
            if then <= at:
                raise ValueError(
                    f"{self._where(later)}: expected an evaluation after {at} {unit}s, where line {event.line} has "
                    f"one, got {then}; is the log of one run?"
                )
        off = any(value.denominator != 1 for value in places)
        spans, kind, why = self._spans(unit, places)
        self._check(unit, rounded, spans)
        if unit == "iteration" and (off or any(span.amount.denominator != 1 for span in spans)):
            said += "; rounded to whole iterations, so one more or less"
        return Progress(
            unit,
            self.batch,
            tuple(zip(self.evaluations, rounded, strict=True)),
            tuple(spans),
            said,
            self._timed(kind, spans),
            why,
        )

    def _check(self, unit: str, places: list[int], spans: list[Span]) -> None:
        """Compare with the run as a whole: its own count of iterations, and how long it took."""
        if spans and unit == "iteration":
            took, amount = sum(span.seconds for span in spans), sum(span.amount for span in spans)
            if took < amount * SHORTEST:
                known = self.log.of("global_batch_size", "train_samples", "num_train_examples", "samples_per_epoch")
                lines = " and ".join(f"{event.key} {event.value} (line {event.line})" for event in known)
                raise ValueError(
                    f"{self._where(spans[-1].end)}: {float(amount):g} iterations in {float(took):g} s up to here, less "
                    f"than a microsecond each; counted by {lines or 'the log'}: one of the numbers is wrong"
                )
        if not spans or not self.stop:
            return
        stop = self.stop[0]
        own = self._iterations(stop) if unit == "iteration" and not self.meaning.startswith("epoch") else None
        inside = [at for event, at in zip(self.evaluations, places, strict=True) if self._before_end(event, GRACE)]
        if own is not None and inside and inside[-1] > own + 1:
            last = self.evaluations[len(inside) - 1]
            raise ValueError(
                f"{self._where(stop)}: run_stop is at iteration {float(own):g}, and {last.key} at line {last.line} at "
                f"{inside[-1]}; one of them is wrong"
            )
        done = own if own is not None else inside[-1] if inside else None
        if done is None or not self.start or self.start[0].time_ms is None or self.end is None:
            return
        wall = run_seconds(self.log)
        took = done * sum(span.seconds for span in spans) / sum(span.amount for span in spans)
        if took > wall * Fraction(102, 100) + Fraction(1, 100):
            raise ValueError(
                f"{self._where(stop)}: from run_start at line {self.start[0].line} to run_stop there are "
                f"{float(wall):g} s, and {float(done):g} {unit}s at {float(took / done):.4g} s each are "
                f"{float(took):g} s; the log contradicts itself"
            )
