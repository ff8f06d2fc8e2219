"""Times of iterations from an MLPerf log: how long its blocks or epochs take, over the iterations in them.

An interval is what stands between block_start and block_stop, where the log has them, else epoch_start and epoch_stop.
Evaluations inside are taken off. The iterations in it, in this order: as stated for the whole file; from samples_count
of its ends, over global_batch_size; from train_samples times its epochs, over global_batch_size. They have to come out
whole. Times are in whole milliseconds, the clock of the log. A log without intervals may give tracked_stats with a
throughput, in samples per second: then a sample is global_batch_size over that.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from softnum.tta.mllog import MLLog, MLLogEvent, read_mllog
from softnum.tta.text import count, number
from softnum.tta.timings.series import Options, Series

__all__ = ["read_mlperf"]


def read_mlperf(path: Path, text: str, options: Options) -> list[Series]:
    """Read the log of one design."""
    log = read_mllog(path, text=text)
    if not log.finished:
        raise ValueError(
            f"{path}, line {log.lines}: the log stops without run_stop: {log.end()}; let the run end, or its times are "
            "those of what is there by accident"
        )
    kind, intervals = next(
        ((kind, found) for kind in ("block", "epoch") if (found := _intervals(log, kind))), (None, [])
    )
    if kind is None:
        return [_by_throughput(path, log, options)]
    pauses = [_ends(log, *pair) for pair in _intervals(log, "eval")]
    spans, inside = [], 0
    for pair in intervals:
        start, end = _ends(log, *pair)
        off = sum((min(end, b) - max(start, a) for a, b in pauses if a < end and b > start), Fraction(0))
        if end - start <= off:
            raise ValueError(
                f"{path}, line {pair[1].line}: the {kind} from line {pair[0].line} takes no time, in milliseconds; is "
                "it too short to be measured by this clock?"
            )
        spans.append(end - start - off)
        inside += bool(off)
    counts, said = _iterations(log, kind, intervals, options)
    seconds = [span / number_of for span, number_of in zip(spans, counts, strict=True)]
    each = counts[0]
    if any(number_of != each for number_of in counts):  # a mean over all, because the samples do not weigh the same
        seconds, each, ordered = [sum(spans) / sum(counts)], sum(counts), False
    else:
        ordered = True
    status = log.status
    return [
        Series(
            options.design,
            seconds,
            "measured",
            f"MLPerf log {path}",
            {
                "iterations": said,
                "time": f"{kind}_start to {kind}_stop"
                + (f", less the evaluations inside {inside} of them" if inside else ""),
                "clock_seconds": 0.001,
                "intervals": len(spans),
                "status": status if isinstance(status, str) else None,
            },
            each,
            ordered=ordered,
        )
    ]


def _by_throughput(path: Path, log: MLLog, options: Options) -> Series:
    tracked = [
        (event.line, event.value["throughput"])
        for event in log.of("tracked_stats")
        if isinstance(event.value, dict) and "throughput" in event.value
    ]
    if not tracked:
        raise ValueError(
            f"{path}, line {log.lines}: no block_start, epoch_start or tracked_stats with a throughput; expected one "
            "of them, from which the time of training could be known"
        )
    if options.iterations is not None:
        raise ValueError(f"{path}: only throughputs are logged, which --iterations says nothing of; leave it out")
    batch = _logged(log, "global_batch_size")
    return Series(
        options.design,
        [batch / number(f"{path}, line {line}", "throughput", value) for line, value in tracked],
        "measured",
        f"MLPerf log {path}",
        {"iterations": f"global_batch_size {batch} over each throughput that tracked_stats gives, samples per second"},
    )


def _intervals(log: MLLog, kind: str) -> list[tuple[MLLogEvent, MLLogEvent]]:
    """The pairs of start and stop of one kind, in order."""
    pairs, begun = [], None
    for event in log.of(f"{kind}_start", f"{kind}_stop"):
        where = f"{log.path}, line {event.line}"
        if event.key.endswith("_start"):
            if begun is not None:
                raise ValueError(f"{where}: {event.key} where that of line {begun.line} has no {kind}_stop yet")
            begun = event
        elif begun is None:
            raise ValueError(f"{where}: {event.key} without a {kind}_start before it; the log is not whole")
        else:
            pairs.append((begun, event))
            begun = None
    if begun is not None:
        raise ValueError(
            f"{log.path}, line {begun.line}: {begun.key} without a {kind}_stop after it; the log is not whole"
        )
    return pairs


def _ends(log: MLLog, start: MLLogEvent, stop: MLLogEvent) -> tuple[Fraction, Fraction]:
    """Begin and end of an interval in seconds."""
    a, b = (
        number(f"{log.path}, line {event.line}", "time_ms", event.time_ms, positive=False) for event in (start, stop)
    )
    if b < a:
        raise ValueError(f"{log.path}, line {stop.line}: {stop.key} is earlier than {start.key} at line {start.line}")
    return a / 1000, b / 1000


def _iterations(log: MLLog, kind: str, intervals: list, options: Options) -> tuple[list[int], str]:
    """The iterations of each interval, and how they are known."""
    if options.iterations is not None:
        each, rest = divmod(options.iterations, len(intervals))
        if rest or not each:
            raise ValueError(
                f"{log.path}, line {intervals[-1][1].line}: {len(intervals)} {kind}s cannot be {options.iterations} "
                "iterations, as many in each; state the number of the whole log with --iterations"
            )
        return [each] * len(intervals), f"{options.iterations} iterations in {len(intervals)} {kind}s, as stated"
    batch = _logged(log, "global_batch_size")
    samples = []
    for start, stop in intervals:
        ends = [event.metadata.get("samples_count") for event in (start, stop)]
        if None not in ends:
            where = f"{log.path}, line {stop.line}"
            before, after = (count(where, "samples_count", value, positive=False) for value in ends)
            samples.append(after - before)
        else:
            samples.append(_logged(log, "train_samples") * _epochs(log, kind, start))
    counts = []
    for (_, stop), trained in zip(intervals, samples, strict=True):
        number_of, rest = divmod(trained, batch)
        if rest or number_of < 1:
            raise ValueError(
                f"{log.path}, line {stop.line}: {trained} samples in this {kind} are no whole number of batches of "
                f"{batch}; whether the rest is a smaller iteration or none is not logged: state the iterations of the "
                "whole log with --iterations"
            )
        counts.append(number_of)
    return counts, f"{sum(counts)} iterations in {len(counts)} {kind}s: their samples over global_batch_size {batch}"


def _logged(log: MLLog, key: str) -> int:
    value = log.value(key)
    if value is None:
        raise ValueError(
            f"{log.path}, line {log.lines}: no {key} in the log, from which iterations would be counted; state the "
            "number of the whole log with --iterations"
        )
    return count(f"{log.path}, line {log.of(key)[0].line}", key, value)


def _epochs(log: MLLog, kind: str, start: MLLogEvent) -> int:
    if kind == "epoch":
        return 1
    value = start.metadata.get("epoch_count")
    where = f"{log.path}, line {start.line}"
    if value is None:
        raise ValueError(
            f"{where}: {start.key} has neither samples_count at both ends nor epoch_count; state the iterations of the "
            "whole log with --iterations"
        )
    epochs = count(where, "epoch_count", value)
    if epochs >= 1000:  # some benchmarks log samples under this name
        raise ValueError(
            f"{where}: epoch_count {epochs}: are these epochs or samples? State the iterations of the whole log with "
            "--iterations"
        )
    return epochs
