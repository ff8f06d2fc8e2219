"""Where the evaluations of an MLPerf run are: iterations, epochs or evaluations done at each.

The rule stands in `softnum.tta.mlperf.progress`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

from softnum.tta.mllog import MLLogEvent
from softnum.tta.mlperf.evaluations import PLACES
from softnum.tta.mlperf.logged import LoggedRun

__all__ = ["PlacedRun"]


class PlacedRun(LoggedRun):
    """A run whose evaluations are placed."""

    def _iterations(self, event: MLLogEvent) -> Fraction | None:
        """Iterations done at an event that says so itself, by step, samples or epoch numbers that count them."""
        steps = next((self._number(event, name) for name in ("step_num", "step") if name in event.metadata), None)
        samples = self._number(event, "samples_count")
        by_samples = None if samples is None or self.batch is None else samples / self.batch
        if steps is not None and by_samples is not None and abs(steps - by_samples) >= 1:
            line = self.log.of("global_batch_size")
            told = f"line {line[0].line}" if line else "as stated"
            raise ValueError(
                f"{self._where(event)}: {event.key} is at step {steps} and at samples_count {samples}, which are "
                f"{float(by_samples):g} batches of global_batch_size {self.batch} ({told}); one of them is wrong"
            )
        if steps is not None or by_samples is not None:
            return by_samples if steps is None else steps
        if self.batch is None or not self.meaning.startswith("epoch_") or "epoch_num" not in event.metadata:
            return None
        each = self.batch * ((self._logged("max_sequence_length") or 2048) if self.meaning == "epoch_tokens" else 1)
        return self._epoch_number(event) / each

    def _epochs_done(self) -> list[Fraction]:
        """Epochs done at each evaluation, of those that number epochs."""
        numbers = [self._epoch_number(event) for event in self.evaluations]
        if any(value.denominator != 1 for value in numbers):
            return numbers
        done, first, how = self._by_blocks(numbers), None, "blocks"
        if done is None:
            done, first, how = self._by_epochs(), self.epochs[0][0] if self.epochs else None, "epochs"
        if done is None:
            starts = [event for event, _ in self.blocks if "first_epoch_num" in event.metadata]
            first = starts[0] if starts else None
            return [value - self._first(first) + 1 for value in numbers]
        self._first(first)
        pairs = zip(numbers, done, self.evaluations, strict=True)
        for (label, at, event), (after, then, later) in itertools.pairwise(pairs):
            if abs((after - label) - (then - at)) > 1:
                raise ValueError(
                    f"{self._where(later)}: {later.key} has epoch_num {after}, {after - label} after that of line "
                    f"{event.line}; the {how} between them say {then - at}"
                )
        return done

    def _first(self, event: MLLogEvent | None) -> Fraction:
        """What the log calls its first epoch: 0 or 1."""
        if event is None:
            return Fraction(1)
        name = "first_epoch_num" if "first_epoch_num" in event.metadata else "epoch_num"
        first = self._number(event, name)
        first = Fraction(1) if first is None else first
        if first not in (0, 1) and self.name != "minigo":  # which begins from a network that is given
            raise ValueError(
                f"{self._where(event)}: its first epoch is number {float(first):g}, so the log is of a run that went "
                "on from another; a curve has to begin with epoch 0 or 1"
            )
        return first

    def _by_blocks(self, numbers: list[Fraction]) -> list[Fraction] | None:
        """Epochs done by the blocks that the numbers are labels of; None if they are not."""
        starts = [event for event, _ in self.blocks]
        if not starts or not all({"first_epoch_num", "epoch_count"} <= event.metadata.keys() for event in starts):
            return None
        firsts = [self._number(event, "first_epoch_num") for event in starts]
        counts = [self._number(event, "epoch_count") for event in starts]
        self._follow(starts, firsts, counts)
        done = list(itertools.accumulate(counts))
        labels: tuple[Callable[[Fraction, Fraction], Fraction], ...] = (
            lambda first, epochs: first + epochs - 1,  # the last epoch of the block
            lambda first, epochs: first + epochs,  # the first of the next
            lambda first, epochs: first,
        )
        for rule, label in enumerate(labels):
            named = {label(first, epochs): at for first, epochs, at in zip(firsts, counts, done, strict=True)}
            if all(value in named for value in numbers):
                if rule < 2:
                    self._first(starts[0])
                return [named[value] for value in numbers]
        return None

    def _follow(self, starts: list[MLLogEvent], firsts: list[Fraction], counts: list[Fraction]) -> None:
        """Compare where blocks begin with how long they are: by the first epoch of each, or by the first after it."""
        steps = [after - before for before, after in itertools.pairwise(firsts)]
        still = [not step and epochs >= 1 for step, epochs in zip(steps, counts[:-1], strict=True)]
        odd = [abs(step - epochs) > 1 for step, epochs in zip(steps, counts[:-1], strict=True)]
        ends = [abs(step - epochs) > 1 for step, epochs in zip(steps, counts[1:], strict=True)]
        if not any(still) and (not any(odd) or (not any(ends) and abs(firsts[0] - counts[0]) <= 1)):
            return
        at = (still if any(still) else odd).index(True)
        raise ValueError(
            f"{self._where(starts[at])}: block_start has first_epoch_num {firsts[at]} and epoch_count {counts[at]}, "
            f"and the next block, at line {starts[at + 1].line}, has first_epoch_num {firsts[at + 1]}; one is wrong"
        )

    def _by_epochs(self) -> list[Fraction] | None:
        """Epochs that ended before each evaluation began, by the lines of epochs; None without them."""
        if not self._whole_epochs():
            return None
        done = []
        for event in self.evaluations:
            line = self._anchor(event)
            if self.end is not None and event.time_ms is not None and event.time_ms > self.end:
                first = next(self._epoch_number(e) for e in self.evaluations)
                done.append(self._epoch_number(event) - first + 1)  # done after the run, in order
            else:
                done.append(Fraction(sum(stop is not None and stop.line <= line for _, stop in self.epochs)))
        return done if all(done) else None

    def _anchor(self, event: MLLogEvent) -> int:
        """The line where an evaluation begins, as far as the log says."""
        starts = [start.line for start, _ in self._all_pauses if start.line < event.line]
        same = [
            start.line
            for start, _ in self._all_pauses
            if start.line < event.line
            and any(start.metadata.get(name) == event.metadata.get(name) is not None for name in PLACES)
        ]
        return (same or starts or [event.line])[-1]

    def _whole_epochs(self) -> bool:
        def labels(event: MLLogEvent) -> object:
            return event.metadata.get("epoch_num")

        return len(self.epochs) > 0 and all(
            stop is None or stop.key != "epoch_stop" or labels(start) == labels(stop) or labels(stop) is None
            for start, stop in self.epochs
        )

    def _places(self) -> tuple[str, list[Fraction], str]:
        found = self.evaluations
        direct = [self._iterations(event) for event in found]
        if found and None not in direct:
            how = {
                "step": "the log's own steps",
                "samples": f"samples_count over global_batch_size {self.batch}",
                "epoch_samples": f"epoch_num, which counts samples, over global_batch_size {self.batch}",
                "epoch_tokens": f"epoch_num, which counts tokens, over those of a batch of {self.batch} sequences",
            }
            said = how.get(self.meaning, "steps or samples_count")
            if self.stated is not None:
                raise ValueError(
                    f"{self._where(found[0])}: evaluations are placed by {said}, which need no iterations of an epoch; "
                    "leave --iterations-per-epoch out"
                )
            return "iteration", direct, said
        lacks = "no global_batch_size" if self.batch is None else "no train_samples"
        if self.meaning == "epoch" and found:
            done = self._epochs_done()
            if self.per_epoch is not None:
                return "iteration", [value * self.per_epoch for value in done], f"epochs of {self.samples_said}"
            if all(value.denominator == 1 for value in done):
                return "epoch", done, f"batches cannot be counted ({lacks} in the log): an iteration here is an epoch"
            return self._by_evaluation(f"{lacks} in the log")
        if found:
            reason = {"part": "epoch_num is not in epochs, and of what is not logged", "none": "no place in the log"}
            return self._by_evaluation(reason.get(self.meaning, f"{lacks} in the log"))
        return "iteration", [], self.samples_said or f"samples or steps over global_batch_size {self.batch}"

    def _by_evaluation(self, reason: str) -> tuple[str, list[Fraction], str]:
        places = [Fraction(n) for n in range(1, len(self.evaluations) + 1)]
        return (
            "evaluation",
            places,
            f"batches cannot be counted ({reason}): an iteration here is what lies between two evaluations",
        )
