"""What an MLPerf log says of a run: its batch, its epochs, and the stretches between its lines."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.mllog import MLLog, MLLogEvent
from softnum.tta.mlperf.benchmarks import GRACE, run_seconds
from softnum.tta.text import count, number

__all__ = ["SHORTEST", "LoggedRun", "Span", "check_one_batch"]

#: training images of the detectors' data sets; some logs count batches and call them train_samples
_IMAGES = {"ssd": (1170301, 117266), "retinanet": (1170301,)}
#: what follows in the order of its times, give or take the clocks of several processes (milliseconds)
_STRETCHES = ("run_start", "block_start", "block_stop", "epoch_start", "epoch_stop", "eval_start", "eval_stop")
_SKEW = 10000
#: keys, and names of metadata, that state the samples of an iteration
_BATCHES = ("global_batch_size", "input_batch_size", "batch_size", "batch")
#: seconds below which no iteration of training can lie: epoch numbers that would lead there are numbers of samples
SHORTEST = Fraction(1, 10**6)


@dataclass(frozen=True)
class Span:
    """A stretch of training.

    Parameters
    ----------
    begin, end : MLLogEvent
        The lines it lies between.
    amount : Fraction
        Iterations in it, or epochs, or evaluations.
    seconds : Fraction
        How long it took, less evaluations where they can be told.
    paused : bool
        Whether an evaluation was taken off.
    """

    begin: MLLogEvent
    end: MLLogEvent
    amount: Fraction
    seconds: Fraction
    paused: bool = False


def check_one_batch(log: MLLog) -> None:
    """Raise ValueError where a log states another batch for a part of the run; both lines are named."""
    first: tuple[int, str, object] | None = None
    begun = False
    for event in log.events:
        begun = begun or event.key in ("epoch_start", "block_start")
        found = {name: event.metadata[name] for name in _BATCHES if name in event.metadata}
        if event.key in _BATCHES and (event.key == "global_batch_size" or begun or first is None):
            found[event.key] = event.value
        for name, value in found.items():
            if first is None:
                first = (event.line, name, value)
            elif value != first[2]:
                raise ValueError(
                    f"{log.path}, line {event.line}: {name} is {value!r}, where {first[1]} at line {first[0]} is "
                    f"{first[2]!r}: the batch changes within the run, and iterations and their times are of one batch "
                    "here; state the curve as CSV with the columns iteration and seconds, of which TTA "
                    "is measured; or split the file, if it is of several runs"
                )


def _check_order(log: MLLog) -> None:
    """Raise ValueError where the clock goes back from one stretch of training to the next, or an epoch is missing.

    Values of evaluations may be made up for after the run, in whatever order, and run_stop be written after what it
    ended; processes' clocks may be some seconds apart.
    """
    events = [event for event in log.of(*_STRETCHES) if event.time_ms is not None]
    for before, after in itertools.pairwise(events):
        if after.time_ms < before.time_ms - _SKEW:
            raise ValueError(
                f"{log.path}, line {after.line}: {after.key} is {(before.time_ms - after.time_ms) / 1000:g} s earlier "
                f"than {before.key} at line {before.line}; lines are in another order than times: keep the log as it "
                "was written"
            )
    for before, after in itertools.pairwise(log.of("epoch_start")):
        numbers = [event.metadata.get("epoch_num") for event in (before, after)]
        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        if whole and numbers[1] != numbers[0] + 1:
            raise ValueError(
                f"{log.path}, line {after.line}: epoch_start of epoch {numbers[1]}, after that of {numbers[0]} at line "
                f"{before.line}; one of each epoch is expected, in order: are lines missing, or of several processes?"
            )


class LoggedRun:
    """The numbers and the intervals of a log, read and compared; places and times are made of them."""

    def __init__(self, log: MLLog, evaluations: list[MLLogEvent], batch: int | None, per_epoch: int | None) -> None:
        self.log, self.evaluations, self.name = log, evaluations, (log.benchmark or "").lower()
        self.stated = per_epoch
        check_one_batch(log)
        _check_order(log)
        self.batch = batch if log.value("global_batch_size") is None else self._logged("global_batch_size")
        self.start, self.stop = log.of("run_start")[:1], log.of("run_stop")[:1]
        self.end = self.stop[0].time_ms if self.stop else None
        self.blocks, self.epochs = self._pairs("block"), self._pairs("epoch")
        self._all_pauses = self._pairs("eval")
        self.pauses = self._alone([pair for pair in self._all_pauses if pair[1] is not None])
        self.per_epoch, self.samples_said = self._epoch(per_epoch)
        self.meaning = self._meaning()

    # -- what the numbers mean -----------------------------------------------------------------------------------------
    def _where(self, event: MLLogEvent) -> str:
        return f"{self.log.path}, line {event.line}"

    def _logged(self, key: str) -> int | None:
        value = self.log.value(key)
        return None if value is None else count(self._where(self.log.of(key)[0]), key, value)

    def _number(self, event: MLLogEvent, name: str) -> Fraction | None:
        value = event.metadata.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return Fraction(value)
        return None if value is None else number(self._where(event), name, value, positive=False)

    def _epoch(self, stated: int | None) -> tuple[Fraction | None, str]:
        """Iterations of an epoch."""
        said = f"{stated} iterations an epoch, as stated"
        names = ("train_samples", "num_train_examples", "samples_per_epoch")
        key = next((name for name in names if self.log.value(name) is not None), None)
        if key is None or self.batch is None:
            return (None, "") if stated is None else (Fraction(stated), said)
        samples = self._logged(key)
        images = next((n for n in _IMAGES.get(self.name, ()) if -(-n // self.batch) == samples != n), None)
        own = Fraction(samples) if images is not None else Fraction(samples, self.batch)
        if stated is not None and abs(own - stated) < 1:  # the rest of an epoch, trained or not
            return Fraction(stated), said
        if stated is not None:
            raise ValueError(
                f"{self._where(self.log.of(key)[0])}: {key} {samples} are {float(own):g} iterations an epoch, of "
                f"{self.batch} each, and {stated} are given; leave --iterations-per-epoch out"
            )
        if images is not None:
            return Fraction(samples), (
                f"{key} {samples} are the batches of {self.batch} in {images} images, which an epoch has"
            )
        return Fraction(samples, self.batch), f"{key} {samples} over global_batch_size {self.batch}"

    def _meaning(self) -> str:
        """What places evaluations: step, samples, epoch_samples, epoch_tokens, epoch, none, part (unknown of what)."""
        found = self.evaluations
        for names, meaning in ((("step_num", "step"), "step"), (("samples_count",), "samples")):
            if found and all(any(name in event.metadata for name in names) for event in found):
                return meaning
        numbers = [self._epoch_number(event) for event in found if "epoch_num" in event.metadata]
        if not found or len(numbers) < len(found):
            return "epoch" if not found else "none"
        top, whole = max(numbers), all(value.denominator == 1 for value in numbers)
        tokens = self._logged("max_sequence_length") or 2048
        if self.name == "gpt3" and top >= 1000 * tokens:
            return "epoch_tokens"
        if self.name == "bert":
            return "epoch_samples" if top >= 1000 else "part"
        if self.name.startswith("dlrm") and whole and top > 1:
            return "part"  # a run has one epoch at most: these number its evaluations
        if top >= 1000 and self.batch is not None and self.start and self.stop:
            counted = "epoch_samples" if self.name else "part"  # or tokens: without a benchmark's name nothing tells
            if self.per_epoch is None:
                return counted if top >= 100000 else "epoch"
            if top * self.per_epoch * SHORTEST > run_seconds(self.log):
                return counted
        return "epoch"

    def _epoch_number(self, event: MLLogEvent) -> Fraction:
        value = event.metadata["epoch_num"]
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError(f"{self._where(event)}: epoch_num must be a number, got {value!r}")
        negative = isinstance(value, (int, float)) and value < 0
        return -number(self._where(event), "epoch_num", -value) if negative else number(
            self._where(event), "epoch_num", value, positive=False
        )  # fmt: skip

    # -- intervals -----------------------------------------------------------------------------------------------------
    def _pairs(self, kind: str) -> list[tuple[MLLogEvent, MLLogEvent | None]]:
        """Starts with their stops, in the order of starts, up to run_stop; blocks may overlap, and the last be open."""
        found: list[list[Any]] = []
        waiting: list[list[Any]] = []
        names = ("first_epoch_num", "epoch_num")
        for event in self.log.of(f"{kind}_start", f"{kind}_stop"):
            if event.key.endswith("_start"):
                found.append([event, None])
                waiting.append(found[-1])
                continue
            if not waiting:
                if self.log.form != "MLLOG":
                    continue
                raise ValueError(
                    f"{self._where(event)}: {event.key} without {kind}_start before it; the log is not whole"
                )
            label = {name: event.metadata[name] for name in names if name in event.metadata}
            same = [pair for pair in waiting if label.items() <= pair[0].metadata.items()]
            pair = (same or waiting)[-1]
            waiting.remove(pair)
            pair[1] = event
        if kind == "epoch" and not self.log.of("epoch_stop"):  # round 0.5 has no epoch_stop
            ends = self.log.of("epoch_start", "eval_start", "run_stop")
            for pair in found:
                pair[1] = next((event for event in ends if event.line > pair[0].line), None)
        for start, stop in found[:-1] if kind != "eval" or self.log.form == "MLLOG" else ():
            if stop is None:
                raise ValueError(
                    f"{self._where(start)}: {start.key} without {kind}_stop after it, and another {kind}_start "
                    f"follows, at line {next(event.line for event, _ in found if event.line > start.line)}; the log is "
                    "not whole"
                )
        return [(start, stop) for start, stop in found if self._before_end(start)]

    def _alone(self, pauses: list[Any]) -> list[Any]:
        """The evaluations during which no training begins: others run beside it, and take nothing off."""
        starts = [start.time_ms for start, _ in (*self.blocks, *self.epochs) if start.time_ms is not None]
        return [
            (begin, end)
            for begin, end in pauses
            if begin.time_ms is not None
            and end.time_ms is not None
            and not any(begin.time_ms < time < end.time_ms for time in starts)
        ]

    def _before_end(self, event: MLLogEvent, grace: float = 0) -> bool:
        """Whether an event is earlier than so many milliseconds after run_stop, as far as the log says."""
        return self.end is None or event.time_ms is None or event.time_ms < self.end + grace

    def _within(self) -> list[MLLogEvent]:
        """The evaluations of the run, but for those that were made up for after it."""
        return [event for event in self.evaluations if self._before_end(event, GRACE)]

    def _time(self, event: MLLogEvent) -> Fraction:
        where = self._where(event)
        if event.time_ms is None:
            raise ValueError(f"{where}: {event.key} states no time, from which its length could be known")
        return number(where, "time_ms", event.time_ms, positive=False) / 1000

    def _span(self, begin: MLLogEvent, end: MLLogEvent, amount: Fraction, kind: str, *, pauses: bool = True) -> Span:
        a, b = self._time(begin), self._time(end)
        if b < a:
            raise ValueError(f"{self._where(end)}: {end.key} is earlier than {begin.key} at line {begin.line}")
        off = Fraction(0)
        for start, stop in self.pauses if pauses else ():
            low, high = self._time(start), self._time(stop)
            if high < low:
                raise ValueError(f"{self._where(stop)}: {stop.key} is earlier than {start.key} at line {start.line}")
            off += max(Fraction(0), min(b, high) - max(a, low))
        if b - a <= off:
            raise ValueError(
                f"{self._where(end)}: the {kind} from line {begin.line} takes no time, in milliseconds; is it too "
                "short to be measured by this clock?"
            )
        return Span(begin, end, amount, b - a - off, bool(off))
