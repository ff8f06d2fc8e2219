"""Where the time of an MLPerf run was spent: blocks, epochs, or what lies between evaluations."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from softnum.tta.mllog import MLLogEvent
from softnum.tta.mlperf.benchmarks import GRACE
from softnum.tta.mlperf.logged import Span
from softnum.tta.mlperf.places import PlacedRun

__all__ = ["TimedRun"]


class TimedRun(PlacedRun):
    """A run whose stretches of training have a length and a time."""

    def _spans(self, unit: str, places: list[Fraction]) -> tuple[list[Span], str, str]:
        if unit == "iteration":
            for kind, pairs, amounts in (
                ("block", self.blocks, self._block_amounts()),
                ("epoch", self.epochs, self._epoch_amounts()),
            ):
                pairs = [(start, stop) for start, stop in pairs if stop is not None]
                if amounts is not None and pairs and not self._overlap(pairs):
                    spans = [self._span(*pair, amount, kind) for pair, amount in zip(pairs, amounts, strict=True)]
                    if self._agree(spans, places, kind):
                        return self._attested(spans, places), kind, ""
            return self._gaps(places, pauses=True)
        inside = self._within()
        if inside and inside == self.evaluations[: len(inside)]:
            return self._gaps(places, pauses=False)
        pairs = [(start, stop) for start, stop in self.epochs if stop is not None]
        if unit == "epoch" and pairs and self._whole_epochs() and not self._overlap(pairs):
            return [self._span(*pair, Fraction(1), "epoch", pauses=False) for pair in pairs], "epoch", ""
        late = next(event for event in self.evaluations if event not in inside)
        return (
            [],
            "",
            (
                f"{self._where(late)}: {late.key} comes after run_stop at line {self.stop[0].line}, and {unit}s have "
                "no time of their own"
            ),
        )

    def _overlap(self, pairs: list[Any]) -> bool:
        times = [(self._time(start), self._time(stop)) for start, stop in pairs]
        return any(then < end for (_, end), (then, _) in itertools.pairwise(times))

    def _block_amounts(self) -> list[Fraction] | None:
        """Iterations of each whole block; None if the log does not say."""
        pairs = [(start, stop) for start, stop in self.blocks if stop is not None]
        steps = [[self._own(event, ("step_num", "step")) for event in pair] for pair in pairs]
        samples = [[self._number(event, "samples_count") for event in pair] for pair in pairs]
        by_step = by_samples = None
        if pairs and all(None not in ends for ends in steps):
            by_step = [b - a for a, b in steps]
        if pairs and self.batch is not None and all(None not in ends for ends in samples):
            length = all(a == b for a, b in samples)  # of the block; else the samples before and after
            by_samples = [(a if length else b - a) / self.batch for a, b in samples]
        if by_step is not None and by_samples is not None:
            for (start, stop), one, other in zip(pairs, by_step, by_samples, strict=True):
                if abs(one - other) >= 1:
                    raise ValueError(
                        f"{self._where(stop)}: the block from line {start.line} has {one} steps, and by its "
                        f"samples_count {float(other):g} batches of {self.batch}; one of them is wrong"
                    )
        found = by_samples if by_step is None else by_step
        if found is None:
            counts = [self._number(start, "epoch_count") for start, _ in pairs]
            each = self._each()
            if not pairs or None in counts or each is None:
                return None
            found = [epochs * each for epochs in counts]
        return found if all(amount >= 1 for amount in found) else None

    def _own(self, event: MLLogEvent, names: tuple[str, ...]) -> Fraction | None:
        return next((self._number(event, name) for name in names if name in event.metadata), None)

    def _each(self) -> Fraction | None:
        """Iterations in one of what epoch_num counts."""
        if self.meaning in ("epoch", "step", "samples"):
            return self.per_epoch
        if self.batch is None or self.meaning not in ("epoch_samples", "epoch_tokens"):
            return None
        tokens = (self._logged("max_sequence_length") or 2048) if self.meaning == "epoch_tokens" else 1
        return Fraction(1, self.batch * tokens)

    def _epoch_amounts(self) -> list[Fraction] | None:
        if self.meaning not in ("epoch", "step", "samples") or self.per_epoch is None or not self._whole_epochs():
            return None
        return [self.per_epoch for _, stop in self.epochs if stop is not None]

    def _attested(self, spans: list[Span], places: list[Fraction]) -> list[Span]:
        """Without what comes after the last evaluation: the end of the run may have cut it short."""
        last = max(places, default=None)
        done = itertools.accumulate(span.amount for span in spans)
        kept = [
            span for span, at in zip(spans, done, strict=True) if last is None or at < last + max(span.amount / 2, 1)
        ]
        return kept or spans

    def _agree(self, spans: list[Span], places: list[Fraction], kind: str) -> bool:
        """Whether no evaluation lies beyond what was trained before it; an error if the log contradicts itself."""
        tolerance = len(spans) + (self.per_epoch or 0 if self.meaning == "epoch" else 0)
        most = max(span.amount for span in spans)
        for event, place in zip(self.evaluations, places, strict=True):
            begun = [span for span in spans if span.begin.line < event.line]
            late = not self._before_end(event)  # evaluated after the run
            ended = [span for span in spans if span.end.line < self._anchor(event)]
            if not late and place + tolerance + most < sum(span.amount for span in ended):
                raise ValueError(
                    f"{self._where(event)}: {event.key} is at iteration {float(place):g}, and the {kind}s before it, "
                    f"the last of which ends at line {ended[-1].end.line}, have "
                    f"{float(sum(span.amount for span in ended)):g} iterations; one of them is wrong"
                )
            if begun and not late and place > sum(span.amount for span in begun) + tolerance:
                if len(spans) == 1 and not any(
                    name in spans[0].end.metadata for name in ("step", "step_num", "samples_count")
                ):
                    return False  # it is planned, not trained: the evaluations say more
                raise ValueError(
                    f"{self._where(event)}: {event.key} is at iteration {float(place):g}, and the {kind}s before it, "
                    f"the last of which begins at line {begun[-1].begin.line}, have "
                    f"{float(sum(span.amount for span in begun)):g} iterations; one of them is wrong"
                )
        inside = [event for event in self.evaluations if spans[0].begin.line < event.line < spans[0].end.line]
        return len(spans) > 1 or len(inside) < 2

    def _gaps(self, places: list[Fraction], *, pauses: bool) -> tuple[list[Span], str, str]:
        """What lies between evaluations: training alone where their begin and end are logged, else all of it."""
        spans, done = [], Fraction(0)
        starts = [event for event, _ in (*self.blocks, *self.epochs)]
        begin = min(starts, key=lambda event: event.line) if pauses and starts else (self.start or [None])[0]
        if begin is None or not self.evaluations:
            what = "no block_start or epoch_start, and no evaluation" if begin is not None else "no run_start"
            return (
                [],
                "",
                (
                    f"{self.log.path}, line {self.log.lines}: {what} in the log, from which the time of training could "
                    "be known"
                ),
            )
        for event, place in zip(self.evaluations, places, strict=True):
            if not self._before_end(event, GRACE):
                continue
            spans.append(self._span(begin, event, place - done, "training", pauses=pauses))
            begin, done = event, place
        if not spans:
            late = self.evaluations[0]
            return (
                [],
                "",
                (
                    f"{self._where(late)}: every {late.key} comes after run_stop at line {self.stop[0].line}, so the "
                    "time between evaluations is not known"
                ),
            )
        return spans, "gap" if pauses else "wall", ""

    def _timed(self, kind: str, spans: list[Span]) -> str:
        paused = sum(span.paused for span in spans)
        if kind in ("block", "epoch"):
            told = f", less the evaluations inside {paused} of them" if paused else ""
            if not paused and not self.log.of("eval_start") and self.evaluations:
                told = ", evaluations inside, because the log does not say when they begin"
            return f"{kind}_start to {kind}_stop{told}"
        if kind == "wall":
            return "wall time of the log, from run_start: evaluations and all else are inside"
        if paused == len(spans):
            return "between evaluations, less these (eval_start to eval_stop)"
        return "between evaluations, evaluation included where the log does not tell it apart"
