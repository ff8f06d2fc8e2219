"""What stands beside a verdict: which designs are not told apart, and what could turn it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softnum.tta.outcomes.intervals import least_runs
from softnum.tta.outcomes.outcome import Study
from softnum.tta.outcomes.targets import fastest_near, study_targets

__all__ = ["short_names", "tie_lines", "ties_of", "verdict_warnings"]

_COARSE = 0.1  # of a median's iterations, from which on the evaluation interval is worth a word


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names with commas between them, or the first few and how many more.

    >>> listed("ab"), listed("abcdefg")
    ('a, b', 'a, b, c, d and 3 more')
    """
    return ", ".join(names) if len(names) <= most + 1 else f"{', '.join(names[:most])} and {len(names) - most} more"


def ties_of(study: Study) -> list[tuple[str, Sequence[str], Sequence[str]]]:
    """The ties of a study as `tie_lines` takes them."""
    return [(result.design, result.ties, result.sample_ties) for result in study.designs]


def tie_lines(designs: Sequence[tuple[str, Sequence[str], Sequence[str]]], most: int | None = None) -> list[str]:
    """Which designs cannot be told apart, one line for each measure that has ties; each pair stands there once.

    Parameters
    ----------
    designs : sequence of (str, sequence of str, sequence of str)
        Label, ties in TTA, ties in samples to the target.
    most : int, optional
        How many designs of a line are written out, and how many of the ties of each; of the others, how many.

    Returns
    -------
    list of str

    Examples
    --------
    >>> tie_lines([("a", ["b", "c"], []), ("b", ["a"], ["c"]), ("c", ["a"], ["b"])])[0]
    'Ties in TTA (interval of the ratio holds 1): a with b c.'
    """
    short = short_names([name for name, *_ in designs])
    order = list(short)
    lines = []
    for what, which in (("TTA", 1), ("samples to the target", 2)):
        parts = []
        for at, design in enumerate(designs):
            later = [short[name] for name in design[which] if order.index(name) > at]
            if later:
                more = f" and {len(later) - most} more" if most is not None and len(later) > most else ""
                parts.append(f"{short[design[0]]} with {' '.join(later[:most])}{more}")
        if most is not None and len(parts) > most:
            parts[most:] = [f"and others of {len(parts) - most} more"]
        if parts:
            lines.append(f"Ties in {what} (interval of the ratio holds 1): {'; '.join(parts)}.")
    return lines


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Short names for lists: what stands before the first dash, where that tells the designs apart.

    >>> short_names(["a-float32", "b-binary16"]), short_names(["fp8-wide", "fp8-narrow"])
    ({'a-float32': 'a', 'b-binary16': 'b'}, {'fp8-wide': 'fp8-wide', 'fp8-narrow': 'fp8-narrow'})
    """
    short = {name: name.split("-")[0] for name in names}
    if len(set(short.values())) == len(short) and all(short.values()):
        return short
    return {name: name for name in names}


def verdict_warnings(studies: Sequence[Study]) -> list[str]:
    """What could turn the verdict of studies over the same runs, what turns it most often first.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times.

    Returns
    -------
    list of str
        Sentences; only of what is so in these studies.

    Examples
    --------
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> verdict_warnings([study])[0]
    '1 run of base: seeds differ, and one run shows nothing of it.'
    """
    first = studies[0]
    lines = [_kinds(study) for study in studies]
    lines += [_few_runs(first), *(_other_targets(study) for study in studies), _cells(studies)]
    lines += [_coarse(first), _batches(first), _left_out(studies)]
    return list(dict.fromkeys(line for line in lines if line))


def _kinds(study: Study) -> str:
    kinds: dict[str, list[str]] = {}
    for result in study.designs:
        if result.time is not None:
            kinds.setdefault(result.time.kind, []).append(result.design)
    if len(kinds) < 2:
        return ""
    told = "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items())
    return f"Times of different kinds are compared, {study.label}: {told}."


def _few_runs(study: Study) -> str:
    fewest = min(study.designs, key=lambda result: len(result.runs))
    runs, least = len(fewest.runs), least_runs(study.confidence)
    if runs >= least:
        return ""
    if runs == 1:
        return f"1 run of {fewest.design}: seeds differ, and one run shows nothing of it."
    held = 100 * (1 - 2.0 ** (1 - runs))
    of = "a design" if all(len(result.runs) == runs for result in study.designs) else f"of {fewest.design}"
    return (
        f"{runs} runs {of}: even their whole range holds the true median in only {held:g} % of studies; that of "
        f"{least} runs does in {100 * study.confidence:g} %."
    )


def _other_targets(study: Study) -> str:
    """Whether another design is the fastest at a target nearby, or the fastest one ends there."""
    curves = study_targets(study)
    near = fastest_near(curves, study.target)
    if not near:
        return ""
    first, (_, highest) = next(iter(near.items()))
    told = [
        f"{name} at {low:.4g}" if low == high else f"{name} at some from {low:.4g} to {high:.4g}"
        for name, (low, high) in list(near.items())[1:]
    ]
    farthest = next(curve.farthest.target for curve in curves if curve.design == first)
    beyond = [c for c in curves if c.points[0].seconds is not None and c.farthest and c.farthest.target != farthest]
    harder = (lambda a, b: a > b) if study.reached.direction == "higher" else (lambda a, b: a < b)
    if farthest in (highest, study.target) and any(harder(c.farthest.target, farthest) for c in beyond):
        told.append(f"and comes no farther than {farthest:.4g}, which others do")
    if not told:
        return ""
    return (
        f"The target decides, {study.label}: {first} is the fastest by its median at {study.metric} {study.target:g}, "
        f"{', '.join(told)}."
    )


def _cells(studies: Sequence[Study]) -> str:
    """Whether every arithmetic is given the same array and clock, as a simulator of arrays does it."""
    for study in studies:
        tables = [
            (result.time.detail or {}).get("hardware")
            for result in study.designs
            if result.time is not None and result.time.kind == "simulated"
        ]
        tables = [table for table in tables if isinstance(table, dict)]
        if len(tables) > 1 and all(table == tables[0] for table in tables) and "unit" not in tables[0]:
            return (
                f"All designs have the same array and clock, {study.label}: times know an arithmetic by the width of "
                "its words alone, and not what its unit costs."
            )
    return ""


def _coarse(study: Study) -> str:
    shares = {}
    for result in study.designs:
        if math.isfinite(result.iterations.median) and result.iterations.median > 0:
            share = max(run.interval for run in result.runs) / result.iterations.median
            if share >= _COARSE:
                shares[result.design] = share
    if not shares:
        return ""
    most = sorted(shares.items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{100 * share:.0f} % of {name}" for name, share in most[:3]) + (", ..." if len(most) > 3 else "")
    return f"TTA is known to the evaluation interval: {told}; smaller differences mean nothing."


def _batches(study: Study) -> str:
    by_batch: dict[int, list[str]] = {}
    for result in study.designs:
        if result.unit != "iteration":  # of steps and epochs no batch is known
            continue
        by_batch.setdefault(result.batch, []).append(result.design)
    if len(by_batch) < 2:
        return ""
    told = "; ".join(f"{batch} of {listed(names)}" for batch, names in by_batch.items())
    return f"Batches differ ({told}): a part of both factors is the batch's, and not the arithmetic's."


def _left_out(studies: Sequence[Study]) -> str:
    lines = list(dict.fromkeys(line for study in studies for line in study.not_simulated))
    if not lines:
        return ""
    what = "; ".join(line.split(":")[0] for line in lines)
    return f"Not in the times: {what}. A speed-up of the whole is nearer to 1."
