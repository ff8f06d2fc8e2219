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

__all__ = ["RECORDS", "Curve", "Difference", "curves", "differences", "draw", "keep", "table"]

RECORDS = HERE / "records"
HEADER = ("design", "last accuracy", "best accuracy", "loss of the last tenth", "iterations to {target:g}")
PAIRED_HEADER = (
    "operands",
    "loss, binary32 sums",
    "above {baseline}",
    "loss, tensor core's sums",
    "above binary32 sums",
)
DIFFERENCES_HEADER = (
    "design less {baseline}",
    "last accuracy, hundredths",
    "loss of the last tenth",
    "iterations to {target:g}",
)
_SMOOTH = 20  # iterations whose mean loss a picture shows


@dataclass(frozen=True)
class Curve:
    """One run: its losses (NaN where it had diverged); by iteration its accuracies and, of text, held-out losses."""

    seed: int
    losses: np.ndarray
    accuracies: dict[int, float]
    held_out: dict[int, float]
    diverged: bool

    def reached(self, target: float) -> int | None:
        """The first iteration with the accuracy; None if it never had it."""
        return next((iteration for iteration, value in self.accuracies.items() if value >= target), None)

    @property
    def final_loss(self) -> float:
        """The mean loss of the last tenth of the iterations."""
        return float(np.mean(self.losses[-max(1, len(self.losses) // 10) :]))

    @property
    def last_held_out(self) -> float:
        """The held-out loss after the last iteration."""
        return list(self.held_out.values())[-1]

    def smooth(self) -> tuple[np.ndarray, np.ndarray]:
        """Iterations, and the mean losses of the `_SMOOTH` up to each."""
        whole = len(self.losses) // _SMOOTH * _SMOOTH
        means = self.losses[:whole].reshape(-1, _SMOOTH).mean(axis=1)
        return np.arange(1, len(means) + 1) * _SMOOTH, means


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
                found.setdefault(design, []).append(_curve(path, seed))
    return found


def _curve(path: Path, seed: int) -> Curve:
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()[1:]]
    losses = np.array([np.nan if row["loss"] is None else row["loss"] for row in rows])
    accuracies = {row["iteration"]: row["accuracy"] for row in rows if "accuracy" in row}
    held_out = {
        row["iteration"]: np.nan if row["held_out_loss"] is None else row["held_out_loss"]
        for row in rows
        if "held_out_loss" in row
    }
    return Curve(seed, losses, accuracies, held_out, bool(rows[-1].get("diverged")))


def _spread(values: list[float], digits: int) -> str:
    """Median, and the range of the seeds."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} to {max(values):.{digits}f}]"


def table(experiment: Experiment, found: dict[str, list[Curve]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heading and the rows of what an experiment found: accuracies by design, or of pairs held-out losses."""
    if experiment.pairs:
        heading = tuple(text.format(baseline=experiment.names[0]) for text in PAIRED_HEADER)
        return heading, _paired_rows(experiment, found)
    return tuple(text.format(target=experiment.target) for text in HEADER), _table_rows(experiment, found)


def _paired_rows(experiment: Experiment, found: dict[str, list[Curve]]) -> list[tuple[str, ...]]:
    """A row for each pair: held-out losses after the last iteration, and differences of runs of the same seed."""
    names = dict(zip(experiment.designs, experiment.names, strict=True))
    last = {
        design: {run.seed: run.last_held_out for run in runs if np.isfinite(run.last_held_out)}
        for design, runs in found.items()
    }
    baseline, rows = experiment.names[0], []
    for pair in experiment.pairs:
        pair = [names[design] for design in pair]
        row = [pair[0].removesuffix("-binary32")]
        for design, against in zip(pair, (baseline, pair[0]), strict=False):
            losses = last.get(design, {})
            above = [loss - last[against][seed] for seed, loss in losses.items() if seed in last.get(against, {})]
            diverged = len(found.get(design, [])) - len(losses)
            note = f", {diverged} of {len(found[design])} diverged" if diverged else ""
            row += [(_spread(list(losses.values()), 3) if losses else "-") + note]
            row += [_spread(above, 3) if above and design != against else "-"]
        rows.append((*row, *["-"] * (len(PAIRED_HEADER) - len(row))))
    return rows


def _table_rows(experiment: Experiment, found: dict[str, list[Curve]]) -> list[tuple[str, ...]]:
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
                _spread([last_accuracy(run) for run in runs], 3),
                _spread([max(run.accuracies.values()) for run in runs], 3),
                loss + (f", {diverged} of {len(runs)} diverged" if diverged else ""),
                to_target,
            )
        )
    return rows


@dataclass(frozen=True)
class Difference:
    """The mean of differences between runs of the same seeds, half its 95 % interval, and the smallest true difference
    that four studies of this size in five would find outside theirs; of normal differences (Student's t)."""

    mean: float
    half: float
    seen: float
    runs: int

    @classmethod
    def of(cls, values) -> Difference | None:
        """That of values, one for each seed; None of fewer than three."""
        from scipy.stats import t

        values = np.asarray(values, np.float64)
        if len(values) < 3:
            return None
        error, left = values.std(ddof=1) / np.sqrt(len(values)), len(values) - 1
        low, power = t.ppf(0.975, left), t.ppf(0.8, left)
        return cls(float(values.mean()), float(low * error), float((low + power) * error), len(values))

    def text(self, digits: int, of: int) -> str:
        """All of it but the runs, which are said where there are fewer than `of`."""
        shown = f"{self.mean:+.{digits}f} ± {self.half:.{digits}f} ({self.seen:.{digits}f})"
        return shown + ("" if self.runs == of else f", {self.runs} runs")


def differences(experiment: Experiment, found: dict[str, list[Curve]], against: str | None = None):
    """The heading and rows of what designs differ by from one of them, the first if none is named: a `Difference` each,
    of runs that did not diverge, and, of iterations, reached the target under both."""
    against = against or experiment.names[0]
    if against not in found:
        raise ValueError(f"{experiment.name} has no runs of {against!r} (it has {', '.join(found)})")
    baseline = {run.seed: run for run in found[against]}
    heading = (text.format(baseline=against, target=experiment.target) for text in DIFFERENCES_HEADER)
    rows = []
    for design in (name for name in experiment.names if name != against):
        pairs = [(run, baseline[run.seed]) for run in found.get(design, []) if run.seed in baseline]
        pairs = [pair for pair in pairs if not any(run.diverged for run in pair)]
        measures = (
            ([100 * (last_accuracy(a) - last_accuracy(b)) for a, b in pairs], 2),
            ([a.final_loss - b.final_loss for a, b in pairs], 4),
            (
                [
                    one - other
                    for a, b in pairs
                    if None not in (one := a.reached(experiment.target), other := b.reached(experiment.target))
                ],
                1,
            ),
        )
        made = [(Difference.of(values), digits) for values, digits in measures]
        rows.append((design, *("-" if d is None else d.text(digits, len(baseline)) for d, digits in made)))
    return tuple(heading), rows


def last_accuracy(run: Curve) -> float:
    """That after the last iteration."""
    return list(run.accuracies.values())[-1]


def draw(parts: list[tuple[Experiment, dict[str, list[Curve]]]]) -> bytes:
    """A picture: for each experiment the losses and the accuracies over iterations, a line a design, as PNG.

    Of pairs the medians of the seeds: the losses, and by how much they lie above those of the first design.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE, look

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE}):
        figure = Figure(figsize=(11, 3.4 * len(parts)), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(parts), 2, squeeze=False)
        for (experiment, found), (left, right) in zip(parts, grid, strict=True):
            left.set(title=experiment.title, xlabel="iteration", ylabel=f"loss, mean of {_SMOOTH}")
            if experiment.pairs:
                _draw_pairs(experiment, found, left, right)
                continue
            for index, (design, runs) in enumerate(found.items()):
                line = {key: value for key, value in look(index).items() if key in ("color", "linestyle")}
                for run in runs:
                    left.plot(*run.smooth(), **line, linewidth=0.9, alpha=0.8)
                    right.plot(
                        list(run.accuracies), list(run.accuracies.values()), **line, linewidth=0.9, alpha=0.8,
                        label=design if run is runs[0] else None,
                    )  # fmt: skip
            right.set(xlabel="iteration", ylabel="held-out accuracy")
            right.axhline(experiment.target, color="black", linewidth=0.5)
            right.legend(fontsize=7, loc="lower right")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


def _draw_pairs(experiment: Experiment, found: dict[str, list[Curve]], left, right) -> None:
    """A colour for each pair: solid with sums in binary32, dashed with a tensor core's."""
    from softnum.tta.outcomes.plot import PALETTE

    names = dict(zip(experiment.designs, experiment.names, strict=True))
    baseline = {run.seed: run.smooth()[1] for run in found[experiment.names[0]]}
    for index, pair in enumerate(experiment.pairs):
        for design, style in zip((names[design] for design in pair), ("-", "--"), strict=False):
            runs = [run for run in found.get(design, []) if run.seed in baseline and not run.diverged]
            if not runs:
                continue
            line = {"color": PALETTE[index % len(PALETTE)], "linestyle": style, "linewidth": 1.0}
            at = runs[0].smooth()[0]
            left.plot(at, np.median([run.smooth()[1] for run in runs], axis=0), **line, label=design)
            above = np.median([run.smooth()[1] - baseline[run.seed] for run in runs], axis=0)
            right.plot(at, above, **line, label=design)
    right.set(xlabel="iteration", ylabel=f"loss above that of {experiment.names[0]}")
    left.legend(fontsize=6)
