"""What value runs have to reach, where the command line does not say: their own log's, or their benchmark's."""

import math

import typer

__all__ = ["TARGET", "check_target", "own_target"]

#: of softnum's own training
TARGET = 0.95


def check_target(target: float, metric: str) -> None:
    """Raise ValueError unless a target can be one of the metric."""
    if metric == "accuracy" and not 0 < target <= 1:
        raise ValueError(f"--target must lie in (0, 1], got {target}")


def own_target(records, target: float | None, outcomes) -> tuple[float, str | None]:
    """Target and direction: as stated, else those of the runs themselves, which logs of benchmarks have."""
    logs = [record for record in records if record.mlperf is not None or record.target is not None]
    direction = outcomes.direction
    if not logs:
        _check_share(records, outcomes.metric)
    own = {}
    for record in logs:
        if (found := _of(record)) is not None:
            own.setdefault((found.value, found.direction), record)
    if direction is None and len({key[1] for key in own}) == 1:
        direction = next(iter(own))[1]
    if target is not None:
        if not logs:
            check_target(target, outcomes.metric)
        _check_unit(target, records)
        return target, direction
    if not logs:
        if outcomes.metric != "accuracy":
            raise ValueError(
                f"no default target is known for {outcomes.metric!r} (0.95 is the default for accuracy); give --target"
            )
        check_target(TARGET, outcomes.metric)
        return TARGET, direction
    unknown = next((record for record in logs if _of(record) is None), None)
    if unknown is not None or len(logs) < len(records):
        which = unknown or logs[0]
        raise ValueError(
            f"{which.path}: the log states no target, and none is known of {which.mlperf.benchmark!r} and "
            f"{outcomes.metric!r}; give it with --target"
            if unknown
            else f"{which.path}: a benchmark's run beside other curves, whose target is not known; give it with "
            "--target"
        )
    if len(own) > 1:
        told = " and ".join(f"{_of(record).value:g} in {record.path} ({_of(record).source})" for record in own.values())
        raise ValueError(f"the runs have different targets: {told}; give one with --target")
    ((value, _),) = own
    _check_success(logs, value, direction, outcomes.metric)
    typer.echo(f"Target {outcomes.metric} {value:g}: {_of(next(iter(own.values()))).source}.", err=True)
    return value, direction


def _of(record):
    """The target that a run has of its own; None where it has none."""
    return record.target if record.mlperf is None else record.mlperf.target


def _check_unit(target: float, records) -> None:
    """Raise ValueError for a share where a benchmark's values are in per cent."""
    for record in records:
        own = _of(record)
        if own is not None and own.value > 1 and 0 < target <= 1 and own.direction == "higher":
            raise ValueError(
                f"--target {target:g}: {own.source} asks for {own.value:g}, and {record.path} is in that unit; give "
                f"{100 * target:g}"
            )


def _check_share(records, metric: str) -> None:
    """Raise ValueError for accuracies in per cent, whose targets are shares of 1 and would be met at once."""
    for record in records if metric == "accuracy" else ():
        most = max((e.value for e in record.evaluations if math.isfinite(e.value)), default=0)
        if most > 1:
            raise ValueError(
                f"{record.path}: accuracy is a share of 1, and {record.label}, seed {record.seed}, has {most:g}; if it "
                "is in per cent, call the column something else and give --metric and --target, or write shares"
            )


def _check_success(logs, value: float, direction: str, metric: str) -> None:
    """Raise ValueError for an MLPerf log that says success and whose evaluations do not reach its target."""
    from softnum.tta import ReachedRule

    rule = ReachedRule(direction=direction)
    for record in (record for record in logs if record.mlperf is not None):
        if record.mlperf.status == "success" and not any(rule.meets(e.value, value) for e in record.evaluations):
            values = [e.value for e in record.evaluations]
            best = max(values) if direction == "higher" else min(values)
            raise ValueError(
                f"{record.path}: run_stop says success, and no evaluation reaches {metric} {value:g}, the "
                f"target of {record.mlperf.target.source}; the best is {best:g}: give the run's own with --target"
            )
