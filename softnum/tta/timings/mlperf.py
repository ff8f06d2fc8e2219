"""Times of iterations from an MLPerf log: how long its stretches of training take, over the iterations in them.

A stretch is what stands between block_start and block_stop, where the log has them, else epoch_start and epoch_stop,
else what lies between two evaluations; `softnum.tta.mlperf.progress` says how iterations are counted, and what is
compared. Evaluations inside are taken off where they can be told. Times are in whole milliseconds, the log's clock. A
log without any of these may give tracked_stats with a throughput, in samples per second: then a sample is
global_batch_size over that.
"""

from __future__ import annotations

from pathlib import Path

from softnum.tta.mllog import MLLog, read_mllog
from softnum.tta.mlperf.evaluations import evaluations_of
from softnum.tta.mlperf.progress import Progress, mlperf_progress
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
    evaluations = evaluations_of(log)
    intervals = log.of("block_start", "epoch_start", "block_stop", "epoch_stop")
    if not evaluations and not intervals and log.of("tracked_stats"):
        return [_by_throughput(path, log, options)]
    progress = mlperf_progress(log, evaluations)
    if not progress.spans:
        raise ValueError(progress.why)
    spans = progress.spans
    status = log.status
    detail = {
        "iterations": _said(progress),
        "time": progress.timed,
        "clock_seconds": 0.001,
        "intervals": len(spans),
        "unit": progress.unit,
        "status": status if isinstance(status, str) else None,
    }
    total, amount = sum(span.seconds for span in spans), sum(span.amount for span in spans)
    each, ordered = round(spans[0].amount), True
    if options.iterations is not None:
        each, rest = divmod(options.iterations, len(spans))
        detail["iterations"] = f"{options.iterations} iterations in {len(spans)} stretches of training, as stated"
        detail["unit"] = "iteration"
        even = not rest and each and len({span.amount for span in spans}) == 1
        seconds = [span.seconds / each for span in spans] if even else [total / options.iterations]
        each, ordered = (each, True) if even else (options.iterations, False)
    elif len({span.amount for span in spans}) == 1 and spans[0].amount.denominator == 1:
        seconds = [span.seconds / span.amount for span in spans]
    else:  # a mean over all, because the samples do not weigh the same
        seconds, each, ordered = [total / amount], round(amount), False
    return [Series(options.design, seconds, "measured", f"MLPerf log {path}", detail, each, ordered=ordered)]


def _said(progress: Progress) -> str:
    amount = sum(span.amount for span in progress.spans)
    return f"{round(amount)} {progress.unit}s in {len(progress.spans)} stretches of training; {progress.counted}"


def _by_throughput(path: Path, log: MLLog, options: Options) -> Series:
    tracked = [
        (event.line, event.value["throughput"])
        for event in log.of("tracked_stats")
        if isinstance(event.value, dict) and "throughput" in event.value
    ]
    if not tracked:
        raise ValueError(
            f"{path}, line {log.lines}: no block_start, epoch_start, evaluation or tracked_stats with a throughput; "
            "expected one of them, from which the time of training could be known"
        )
    if options.iterations is not None:
        raise ValueError(f"{path}: only throughputs are logged, which --iterations says nothing of; leave it out")
    batch = log.value("global_batch_size")
    if batch is None:
        raise ValueError(f"{path}, line {log.lines}: no global_batch_size in the log, of which throughputs are")
    batch = count(f"{path}, line {log.of('global_batch_size')[0].line}", "global_batch_size", batch)
    return Series(
        options.design,
        [batch / number(f"{path}, line {line}", "throughput", value) for line, value in tracked],
        "measured",
        f"MLPerf log {path}",
        {"iterations": f"global_batch_size {batch} over each throughput that tracked_stats gives, samples per second"},
    )
