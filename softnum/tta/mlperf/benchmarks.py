"""What MLPerf training says of its benchmarks beside the logs: targets, epoch numbers, and how runs are scored.

Targets: closed_*.yaml in mlperf_logging/compliance_checker of github.com/mlcommons/logging, and the tables of
training_rules.adoc of github.com/mlcommons/training_policies; those of round 0.6 as its published runs end. Rounds are
told by the form of the log and, since 0.7, by the time of the run. Scoring: section "Benchmark results" of the same
rules: the fastest and the slowest run are dropped, the mean of the others is the result; a run that did not converge
counts as the slowest. `result_summarizer.py` drops four of each for unet3d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from softnum.tta.mllog import MLLog, MLLogEvent

__all__ = ["MLPerfRun", "MLPerfScore", "MLPerfTarget", "known_target", "mlperf_score", "run_seconds", "seconds_at"]

#: milliseconds after run_stop in which the last evaluation may be logged
GRACE = 1000

#: 2021-01-01 and 2022-01-01 in milliseconds since 1970: rounds 0.7, 1.0 and 1.1, then 2.0 and later
_YEAR_2021, _YEAR_2022 = 1609459200000, 1640995200000
#: keys under which a log states the target of its own run
_STATED = (
    "eval_target",
    "target_accuracy",
    "quality_target",
    "target_quality",
    "quality",
    "target",
    "eval_target_loss",
)
#: by benchmark: benchmarks of which less of eval_accuracy is better
_LOWER = {
    "rnnt", "gpt3", "llama2_70b_lora", "llama31_405b", "llama31_8b", "flux1", "gpt_oss_20b", "deepseekv3_671b",
}  # fmt: skip
_TARGETS_5 = {
    "resnet": "0.749", "ssd": "0.212", "gnmt": "21.8", "transformer": "25", "ncf": "0.635", "minigo": "0.4",
}  # fmt: skip
_TARGETS_6 = {
    "resnet": "0.759", "ssd": "0.23", "gnmt": "24", "transformer": "25", "minigo": "0.5", "ncf": "0.635",
}  # fmt: skip
_TARGETS = {
    "resnet": "0.759", "gnmt": "0.24", "transformer": "0.25", "minigo": "0.5", "dlrm": "0.8025",
    "dlrm_dcnv2": "0.80275", "rnnt": "0.058", "unet3d": "0.908", "gpt3": "2.69", "gnn": "0.72", "rgat": "0.72",
    "retinanet": "0.34", "llama2_70b_lora": "0.925", "llama31_405b": "5.6", "llama31_8b": "3.3", "flux1": "0.586",
    "gpt_oss_20b": "3.34", "deepseekv3_671b": "3.6",
}  # fmt: skip
#: metrics that are a part of eval_accuracy: target, and whether more is better
_PARTS = {
    ("maskrcnn", "BBOX"): ("0.377", True),
    ("maskrcnn", "SEGM"): ("0.339", True),
    ("stable_diffusion", "FID"): ("90", False),
    ("stable_diffusion", "CLIP"): ("0.15", True),
}
_ALIASES = {"mask": "maskrcnn", "mask_rcnn": "maskrcnn", "resnet50": "resnet", "flux": "flux1"}


@dataclass(frozen=True)
class MLPerfTarget:
    """The value that a benchmark asks for.

    Parameters
    ----------
    value : float
    direction : str
        "higher" or "lower" is better.
    source : str
        Where it is from: a line of the log, or the benchmark and its round.

    Examples
    --------
    >>> MLPerfTarget(0.058, "lower", "MLPerf's rnnt").direction
    'lower'
    """

    value: float
    direction: str
    source: str


@dataclass(frozen=True)
class MLPerfRun:
    """What an MLPerf log says of its run as a whole.

    Parameters
    ----------
    benchmark : str or None
        "resnet", "bert", ...
    seconds : float
        From run_start to run_stop: MLPerf's own figure.
    status : str or None
        "success" or "aborted"; None where the log does not say.
    unit : str
        What the curve counts as an iteration: "iteration"; "epoch" or "evaluation" where batches cannot be counted.
    target : MLPerfTarget or None
        The log's or the benchmark's own.
    started : float
        When run_start was, in milliseconds since 1970: it tells the runs of a submission apart.

    Examples
    --------
    >>> MLPerfRun("resnet", 1594.1, "success", "iteration", MLPerfTarget(0.759, "higher", "")).converged
    True
    """

    benchmark: str | None
    seconds: float
    status: str | None
    unit: str
    target: MLPerfTarget | None
    started: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether it counts for MLPerf: its status is not "aborted"."""
        return self.status in (None, "success")


@dataclass(frozen=True)
class MLPerfScore:
    """MLPerf's own figure of a submission's runs.

    Parameters
    ----------
    seconds : float or None
        None if more runs failed than may be dropped.
    runs : tuple of float
        run_stop - run_start of each, in seconds; infinite for one that did not converge.
    rule : str
        What was done with them.

    Examples
    --------
    >>> MLPerfScore(12.0, (12.0,), "run_stop - run_start of one log").seconds
    12.0
    """

    seconds: float | None
    runs: tuple[float, ...]
    rule: str


def _name(benchmark: str | None) -> str:
    name = (benchmark or "").lower()
    return _ALIASES.get(name, name)


def known_target(log: MLLog, metric: str) -> MLPerfTarget | None:
    """The target of a log's run, from the log itself or from its benchmark; None if neither is known.

    Parameters
    ----------
    log : MLLog
    metric : str
        "accuracy", or the part of eval_accuracy that was picked: "BBOX", "FID".

    Returns
    -------
    MLPerfTarget or None
    """
    name = _name(log.benchmark)
    part = _PARTS.get((name, metric.upper()))
    direction = "lower" if (name in _LOWER if part is None else not part[1]) else "higher"
    for key in _STATED if part is None else ():
        value = log.value(key)
        if not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value):
            return MLPerfTarget(float(value), direction, f"{key} at line {log.of(key)[0].line} of {log.path}")
    if part is not None:
        return MLPerfTarget(float(part[0]), direction, f"MLPerf's {name}")
    start = next((event.time_ms for event in log.of("run_start")), None)
    if log.form.startswith("MLPv"):
        value, when = _TARGETS_5.get(name), "0.5"
    elif log.form == "MLL":
        value, when = _TARGETS_6.get(name), "0.6"
    elif name == "bert" and start is not None:
        batch = log.value("global_batch_size")
        early = "0.706" if isinstance(batch, int) and batch >= 8192 else "0.712"
        value, when = (early, "0.7") if start < _YEAR_2021 else ("0.72", "1.0 and later")
    elif name == "ssd" and start is not None:
        value, when = ("0.23", "0.7 to 1.1") if start < _YEAR_2022 else ("0.34", "2.0 and later")
    else:
        value, when = _TARGETS.get(name), "0.7 and later"
    return None if value is None else MLPerfTarget(float(value), direction, f"MLPerf's {name}, round {when}")


def run_seconds(log: MLLog) -> Fraction:
    """run_stop - run_start in seconds: the time that MLPerf publishes for a run.

    Raises
    ------
    ValueError
        If one of them is not there, states no time, or the stop is before the start; the message names the lines.
    """
    for key in ("run_start", "run_stop"):
        if not log.of(key):
            raise ValueError(
                f"{log.path}, line {log.lines}: no {key} in the log, so how long the run took is not known"
            )
        if log.of(key)[0].time_ms is None:
            raise ValueError(f"{log.path}, line {log.of(key)[0].line}: {key} states no time")
    start, stop = log.of("run_start")[0], log.of("run_stop")[0]
    seconds = (Fraction(str(stop.time_ms)) - Fraction(str(start.time_ms))) / 1000
    if seconds <= 0:
        raise ValueError(f"{log.path}, line {stop.line}: run_stop is not after run_start at line {start.line}")
    return seconds


def seconds_at(log: MLLog, event: MLLogEvent) -> float | None:
    """Seconds from run_start to an event; None where one states no time, or the event lies outside of the run.

    The last evaluation may be logged up to a second after run_stop, as `softnum.tta.mlperf.progress` allows.
    """
    start, stop = (next((found.time_ms for found in log.of(key)), None) for key in ("run_start", "run_stop"))
    if None in (start, stop, event.time_ms) or not start <= event.time_ms < stop + GRACE:
        return None
    return float((Fraction(str(event.time_ms)) - Fraction(str(start))) / 1000)


def mlperf_score(runs: Sequence[MLPerfRun]) -> MLPerfScore:
    """MLPerf's figure of a submission: the olympic mean over its logs.

    Parameters
    ----------
    runs : sequence of MLPerfRun
        At least one.

    Returns
    -------
    MLPerfScore

    Examples
    --------
    >>> runs = [MLPerfRun("gnmt", seconds, "success", "iteration", None) for seconds in (9.0, 5.0, 7.0, 6.0)]
    >>> mlperf_score(runs).seconds
    6.5
    """
    seconds = sorted(run.seconds if run.converged else math.inf for run in runs)
    drop = 4 if {_name(run.benchmark) for run in runs} == {"unet3d"} and len(runs) > 8 else 1
    failed = sum(map(math.isinf, seconds))
    told = f", of which {failed} did not converge" if failed else ""
    if len(runs) == 1:
        said = f", whose status is {runs[0].status}: no result for MLPerf" if failed else ""
        return MLPerfScore(runs[0].seconds, tuple(seconds), f"run_stop - run_start of one log{said}")
    if len(runs) <= 2 * drop:
        mean = None if failed else float(sum(map(Fraction, seconds)) / len(seconds))
        return MLPerfScore(mean, tuple(seconds), f"mean of {len(runs)} logs{told}: too few to drop the extreme ones")
    kept = seconds[drop:-drop]
    mean = None if math.isinf(kept[-1]) else float(sum(map(Fraction, kept)) / len(kept))
    return MLPerfScore(
        mean, tuple(seconds), f"olympic mean of {len(runs)} logs{told}: the {drop} fastest and slowest dropped"
    )
