"""What a study has to say beside its numbers: of MLPerf's own figures, and of curves that state their own times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from softnum.tta.accuracy.records import Record
from softnum.tta.outcomes.measured import unlike_note
from softnum.tta.outcomes.outcome import DesignResult, Variant
from softnum.tta.quantities import format_seconds

__all__ = ["curve_notes", "mlperf_notes", "worker_notes"]


def worker_notes(by_design: Mapping[str, list[Record]], variant: Variant) -> list[str]:
    """What labels of workers stand for, and what of them a simulator's time leaves out."""
    notes, simulated = [], []
    for design, runs in by_design.items():
        if runs[0].workers > 1:
            notes.append(f"{design}: {runs[0].workers} workers, {runs[0].collective}")
            time = variant.timings.get(design)
            simulated += [design] if time is not None and time.kind == "simulated" else []
    if simulated:
        notes.append(
            f"times of {', '.join(simulated)} are of a worker's part of a batch, without the sum of gradients: give "
            "times with it (timings of a file)"
        )
    return notes


def curve_notes(results: Iterable[DesignResult], by_design: Mapping[str, list[Record]], variant: Variant) -> list[str]:
    """What the curves' files say of themselves, and what their own times say of a product."""
    notes = dict.fromkeys(line for runs in by_design.values() for record in runs for line in record.notes)
    uncounted = {}
    for result in results:
        if result.mlperf is None and result.unit != "iteration":
            uncounted.setdefault(result.unit, []).append(result.design)
    for unit, designs in uncounted.items():
        whose = "every design" if len(designs) == len(by_design) else ", ".join(designs)
        why = "no batch is known, so that iterations are steps" if unit == "step" else f"iterations are {unit}s"
        notes[f"{whose}: {why}, and samples to the target and throughput are of these"] = None
    if not variant.measured:
        found = [unlike_note(runs) for runs in by_design.values() if runs[0].mlperf is None]
        notes.update(dict.fromkeys(line for line in found if line is not None))
    return list(notes)


def mlperf_notes(results: Iterable[DesignResult], records: Sequence[Record]) -> list[str]:
    """What MLPerf's own figures are, and why they are not the products above."""
    notes = []
    for result in results:
        if result.mlperf is None:
            continue
        seconds = result.mlperf.seconds
        told = "none, because too many runs failed" if seconds is None else format_seconds(seconds)
        notes.append(f"MLPerf's own figure of {result.design}: {told} ({result.mlperf.rule})")
        units = {record.mlperf.unit for record in records if record.label == result.design and record.mlperf}
        for unit in sorted(units - {"iteration"}):
            notes.append(
                f"{result.design}: batches cannot be counted, so that iterations are {unit}s, samples to the target "
                f"and throughput are of {unit}s, and the time to accuracy is the log's wall time"
            )
    if notes:
        notes.append(
            "MLPerf's figures run from run_start to run_stop: evaluations, checkpoints and what comes before the first "
            "iteration are in them, and in no iteration"
        )
    return notes
