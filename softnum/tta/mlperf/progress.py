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
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from softnum.tta.mllog import MLLog, MLLogEvent
from softnum.tta.mlperf.benchmarks import GRACE, run_seconds
from softnum.tta.mlperf.evaluations import PLACES
from softnum.tta.text import count, number

__all__ = ["Progress", "Span", "mlperf_progress"]

#: training images of the detectors' data sets; some logs count batches and call them train_samples
_IMAGES = {"ssd": (1170301, 117266), "retinanet": (1170301,)}
#: seconds below which no iteration of training can lie: epoch numbers that would lead there are numbers of samples
_SHORTEST = Fraction(1, 10**6)


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


class _Reader:
    def __init__(self, log: MLLog, evaluations: list[MLLogEvent], batch: int | None, per_epoch: int | None) -> None:
        self.log, self.evaluations, self.name = log, evaluations, (log.benchmark or "").lower()
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
        if stated is not None:
            return Fraction(stated), f"{stated} iterations an epoch, as stated"
        names = ("train_samples", "num_train_examples", "samples_per_epoch")
        key = next((name for name in names if self.log.value(name) is not None), None)
        if key is None or self.batch is None:
            return None, ""
        samples = self._logged(key)
        images = next((n for n in _IMAGES.get(self.name, ()) if -(-n // self.batch) == samples != n), None)
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
            if self.per_epoch is None:
                return "epoch_samples" if top >= 100000 else "epoch"
            if top * self.per_epoch * _SHORTEST > run_seconds(self.log):
                return "epoch_samples"
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
        found: list[list] = []
        waiting: list[list] = []
        names = ("first_epoch_num", "epoch_num")
        for event in self.log.of(f"{kind}_start", f"{kind}_stop"):
            if event.key.endswith("_start"):
                found.append([event, None])
                waiting.append(found[-1])
                continue
            if not waiting:
                if kind == "eval" or self.log.form != "MLLOG":
                    continue
                raise ValueError(
                    f"{self._where(event)}: {event.key} without a {kind}_start before it; the log is not whole"
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
        for start, stop in found[:-1] if kind != "eval" else ():
            if stop is None:
                raise ValueError(
                    f"{self._where(start)}: {start.key} without a {kind}_stop after it, and another {kind}_start "
                    f"follows, at line {next(event.line for event, _ in found if event.line > start.line)}; the log is "
                    "not whole"
                )
        return [(start, stop) for start, stop in found if self._before_end(start)]

    def _alone(self, pauses: list) -> list:
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

    # -- places of evaluations -----------------------------------------------------------------------------------------
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
        odd = [abs(step - epochs) > 1 for step, epochs in zip(steps, counts[:-1], strict=True)]
        ends = [abs(step - epochs) > 1 for step, epochs in zip(steps, counts[1:], strict=True)]
        if not any(odd) or (not any(ends) and abs(firsts[0] - counts[0]) <= 1):
            return
        at = odd.index(True)
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

    # -- all of it -----------------------------------------------------------------------------------------------------
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
            return "iteration", direct, how.get(self.meaning, "steps or samples_count")
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

    # -- times ---------------------------------------------------------------------------------------------------------
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

    def _overlap(self, pairs: list) -> bool:
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

    def _check(self, unit: str, places: list[int], spans: list[Span]) -> None:
        """Compare with the run as a whole: its own count of iterations, and how long it took."""
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
