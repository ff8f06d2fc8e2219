"""What the records of a study say: tables and pictures."""

from __future__ import annotations

import gzip
import io
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.demonstrations.plans import HERE, Experiment
from softnum.runtime.atomic import write_atomic

__all__ = ["RECORDS", "Curve", "curves", "draw", "keep", "table_rows"]

RECORDS = HERE / "records"
HEADER = ("design", "last accuracy", "best accuracy", "loss of the last tenth", "iterations to {target:g}")
_SMOOTH = 20  # iterations whose mean loss a picture shows


@dataclass(frozen=True)
class Curve:
    """One run: its losses (NaN where it had diverged), and its accuracies by iteration."""

    losses: np.ndarray
    accuracies: dict[int, float]
    diverged: bool

    def reached(self, target: float) -> int | None:
        """The first iteration with the accuracy; None if it never had it."""
        return next((iteration for iteration, value in self.accuracies.items() if value >= target), None)

    @property
    def final_loss(self) -> float:
        """The mean loss of the last tenth of the iterations."""
        return float(np.mean(self.losses[-max(1, len(self.losses) // 10) :]))


def _path(folder: Path, study: str, experiment: Experiment, design: str, seed: int) -> Path:
    return folder / study / experiment.name / design / f"seed-{seed}.jsonl"


def keep(study: str, experiment: Experiment, runs: Path) -> int:
    """Pack the finished records of an experiment into the checkout; returns how many."""
    count = 0
    for design in experiment.names:
        for seed in experiment.seeds:
            path = _path(runs, study, experiment, design, seed)
            if not path.is_file() or b'"finished": true' not in path.read_bytes()[-200:]:
                continue
            packed = _path(RECORDS, study, experiment, design, seed).with_suffix(".jsonl.gz")
            packed.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(packed, gzip.compress(path.read_bytes(), mtime=0))
            count += 1
    return count


def curves(study: str, experiment: Experiment) -> dict[str, list[Curve]]:
    """The kept runs of an experiment, by design; those of designs that have any."""
    found: dict[str, list[Curve]] = {}
    for design in experiment.names:
        for seed in experiment.seeds:
            path = _path(RECORDS, study, experiment, design, seed).with_suffix(".jsonl.gz")
            if path.is_file():
                found.setdefault(design, []).append(_curve(path))
    return found


def _curve(path: Path) -> Curve:
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()[1:]]
    losses = np.array([np.nan if row["loss"] is None else row["loss"] for row in rows])
    accuracies = {row["iteration"]: row["accuracy"] for row in rows if "accuracy" in row}
    return Curve(losses, accuracies, bool(rows[-1].get("diverged")))


def _spread(values: list[float], digits: int) -> str:
    """Median, and the range of the seeds."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} to {max(values):.{digits}f}]"


def table_rows(experiment: Experiment, found: dict[str, list[Curve]]) -> list[tuple[str, ...]]:
    """A row for each design: medians and ranges over seeds, in `HEADER`'s columns."""
    rows = []
    for design, runs in found.items():
        reached = [run.reached(experiment.target) for run in runs]
        inside = sorted(count for count in reached if count is not None)
        to_target = _spread(inside, 0) if inside else "never"
        if inside and len(inside) < len(runs):
            to_target += f", {len(inside)} of {len(runs)} runs"
        diverged = sum(run.diverged for run in runs)
        loss = _spread([run.final_loss for run in runs if not run.diverged], 3) if diverged < len(runs) else "-"
        rows.append(
            (
                design,
                _spread([list(run.accuracies.values())[-1] for run in runs], 3),
                _spread([max(run.accuracies.values()) for run in runs], 3),
                loss + (f", {diverged} of {len(runs)} diverged" if diverged else ""),
                to_target,
            )
        )
    return rows


def draw(parts: list[tuple[Experiment, dict[str, list[Curve]]]]) -> bytes:
    """A picture: for each experiment the losses and the accuracies over iterations, a line a design, as PNG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE, look

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE}):
        figure = Figure(figsize=(11, 3.4 * len(parts)), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(parts), 2, squeeze=False)
        for (experiment, found), (left, right) in zip(parts, grid, strict=True):
            for index, (design, runs) in enumerate(found.items()):
                line = {key: value for key, value in look(index).items() if key in ("color", "linestyle")}
                for run in runs:
                    whole = len(run.losses) // _SMOOTH * _SMOOTH
                    smooth = run.losses[:whole].reshape(-1, _SMOOTH).mean(axis=1)
                    at = np.arange(1, len(smooth) + 1) * _SMOOTH
                    left.plot(at, smooth, **line, linewidth=0.9, alpha=0.8)
                    right.plot(
                        list(run.accuracies), list(run.accuracies.values()), **line, linewidth=0.9, alpha=0.8,
                        label=design if run is runs[0] else None,
                    )  # fmt: skip
            left.set(title=experiment.title, xlabel="iteration", ylabel=f"loss, mean of {_SMOOTH}")
            right.set(xlabel="iteration", ylabel="held-out accuracy")
            right.axhline(experiment.target, color="black", linewidth=0.5)
            right.legend(fontsize=7, loc="lower right")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()
