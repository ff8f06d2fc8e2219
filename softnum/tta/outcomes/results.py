"""``results.json``: everything a study says and rests on, so that a report needs nothing else.

Schema 2, top level::

    schema       2
    metric, direction, target, rule, reached      what is reached, and when (`ReachedRule.to_table`)
    baseline     label of the design that speed-ups are over
    intervals    {confidence, rule, resamples, exact_up_to_runs, least_runs}
    inputs       what the caller wants kept: command, seeds, network, data, optimiser
    versions     softnum, python
    variants     one for each set of times: {label, baseline, assumptions, not_simulated, notes, designs, interactions}
    runs         one for each record: {design, name, seed, batch, record, sha256, diverged, versions, curve}
    configs      by label, the configuration of its first run; its other runs differ in the seed only
    sources      every file that a number comes from: {path, sha256, role}
    tuning       only where learning rates were tuned: {rule, multipliers, seeds, cost, designs, trials, variants,
                 runs}; its variants are like those above, of the runs at the tuned rates, and its runs those at another
                 rate than the recipe's

A *design* of a variant: {design, batch, reached, runs_in_all, share, runs, iterations, samples, time, left_out, tta,
throughput, efficiency, speedup, ties, sample_ties, intervals, cost, energy, unit, measured, product, tta_is,
mlperf_seconds}, and `tokens` of language models; `tta_is` says whether tta is "measured" or the "product"; spreads are
{median, low, high}, intervals [low, high]. A *curve* is {iteration, epoch, value}, and {seconds} where it states times:
lists of one length. ``null`` stands for "not reached" in iterations, samples, tokens, TTA, cost and energy, for "no
limit" in the end of an interval, and for NaN in metrics.

Paths are relative to the folder of results.json; a report that softnum ships is named ``softnum/tta/reports/...``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.runtime.plain import plain
from softnum.tta.accuracy.records import Record
from softnum.tta.outcomes import intervals
from softnum.tta.outcomes.outcome import DesignResult, Study
from softnum.tta.outcomes.tuning import Tuning
from softnum.tta.quantities import check_keys

__all__ = ["RESULTS_SCHEMA", "read_results", "results_dict", "write_results"]

#: Of results.json as it is written and read.
RESULTS_SCHEMA = 2

_KEYS = ("schema", "metric", "direction", "target", "rule", "reached", "baseline", "intervals", "inputs", "versions")
_LISTS = ("variants", "runs", "sources")
_TUNING = ("rule", "multipliers", "seeds", "cost", "designs", "trials", "variants", "runs")
_PACKAGE = Path(__file__).parents[1]


def _json(value):
    """Plain JSON: infinities and NaN become null, tuples lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    return value


def results_dict(
    studies: Sequence[Study],
    inputs: Mapping[str, Any] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    tuning: Tuning | None = None,
) -> dict[str, Any]:
    """Return everything the studies say and rest on, as plain JSON values.

    Parameters
    ----------
    studies : sequence of Study
        One for each variant of the times, over the same runs.
    inputs : Mapping, optional
        What the caller wants kept with the result: command line, seeds, folders.
    folder : path-like, optional
        Paths are written relative to it. Default: as they are.
    tuning : Tuning, optional
        Learning rates that were tuned, with the studies at these rates.

    Returns
    -------
    dict
        Of schema 2; the module says what it holds.

    Examples
    --------
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> results_dict([study])["variants"][0]["designs"][0]["tta"]
    {'median': 160.0, 'low': 160.0, 'high': 160.0}
    """
    first = studies[0]
    sources = _Sources(folder)
    runs = [_run(record, sources) for record in first.records]
    variants = [_variant(study, sources) for study in studies]
    tuned = {} if tuning is None else {"tuning": _tuning(tuning, sources)}
    if folder is not None:
        sources.add(Path(folder, "workloads.json"), "workloads")
    configs = {result.design: None for result in first.designs}
    configs.update((record.label, record.config) for record in reversed(first.records))
    return _json(
        {
            "schema": RESULTS_SCHEMA,
            "metric": first.metric,
            "direction": first.reached.direction,
            "target": first.target,
            "rule": first.rule,
            "reached": first.reached.to_table(),
            "baseline": first.baseline,
            "intervals": intervals.describe(first.confidence),
            "inputs": inputs or {},
            "versions": {"softnum": _version(), "python": platform.python_version()},
            "variants": variants,
            "runs": runs,
            "configs": configs,
            **tuned,
            "sources": sources.table(),
        }
    )


def _run(record: Record, sources: _Sources) -> dict[str, Any]:
    return {
        "design": record.label,
        "name": record.design,
        "seed": record.seed,
        "batch": record.batch,
        "record": sources.add(record.path, "record"),
        "sha256": sources.digest(record.path),
        "diverged": record.diverged,
        "versions": record.versions,
        "curve": {
            "iteration": [e.iteration for e in record.evaluations],
            "epoch": [e.epoch for e in record.evaluations],
            "value": [e.value for e in record.evaluations],
            **({"seconds": [e.seconds for e in record.evaluations]} if record.timed else {}),
        },
    }


def _variant(study: Study, sources: _Sources) -> dict[str, Any]:
    for path in study.files:
        sources.add(path, "times")
    return {
        "label": study.label,
        "baseline": study.baseline,
        "assumptions": study.assumptions,
        "not_simulated": study.not_simulated,
        "notes": study.notes,
        "designs": [_design(result, sources) for result in study.designs],
        "interactions": [found.to_table() for found in study.interactions],
    }


def _tuning(tuning: Tuning, sources: _Sources) -> dict[str, Any]:
    return {
        "rule": tuning.rule,
        "multipliers": tuning.multipliers,
        "seeds": tuning.seeds,
        "cost": tuning.cost,
        "designs": [
            {
                "design": tuned.design,
                "multiplier": tuned.chosen.multiplier,
                "learning_rate": tuned.chosen.rate,
                "recipe_learning_rate": tuned.recipe.rate,
                "why": tuned.why,
                "at_edge": tuned.at_edge,
                "trial_iterations": tuned.updates,
            }
            for tuned in tuning.designs
        ],
        "trials": [
            {
                "design": tuned.design,
                "multiplier": trial.multiplier,
                "learning_rate": trial.rate,
                "iterations": asdict(trial.iterations),
                "trial_iterations": trial.updates,
                "diverged": sum(record.diverged for record in trial.records),
                "records": [sources.add(record.path, "record") for record in trial.records],
            }
            for tuned in tuning.designs
            for trial in tuned.trials
        ],
        "variants": [_variant(study, sources) for study in tuning.studies],
        "runs": [_run(record, sources) for record in tuning.judged],
    }


def _design(result: DesignResult, sources: _Sources) -> dict[str, Any]:
    entry = asdict(replace(result, time=None))
    low, high = result.share or (0.0, 1.0)
    entry["share"] = {"reached": result.reached, "runs": len(result.runs), "low": low, "high": high}
    entry["mlperf_seconds"] = None if result.mlperf is None else result.mlperf.seconds
    entry["tta_is"] = None if result.tta is None else "measured" if result.by_clock else "product"
    entry["reached"], entry["runs_in_all"] = result.reached, len(result.runs)
    if result.tokens is None:
        del entry["tokens"]
    if result.energy is not None:
        entry["energy"]["source"] = sources.add(result.energy.source, "times") or result.energy.source
    if result.time is None:
        return entry
    time = asdict(result.time)
    time["source"] = sources.add(result.time.source, "times") or result.time.source
    detail = time["detail"]
    if isinstance(detail, dict):
        for table, key in [(detail, "file"), *((row, "report") for row in detail.get("gemms", ()))]:
            if isinstance(table, dict) and isinstance(table.get(key), str):
                table[key] = sources.add(table[key], "report") or table[key]
    return entry | {"time": time}


def _is_file(text: str | os.PathLike[str]) -> bool:
    """Whether a text is the path of a file; a citation, which is longer than any path, is none."""
    try:
        return bool(text) and Path(text).is_file()
    except (OSError, ValueError):
        return False


class _Sources:
    """The files that numbers come from, with their digests; each file is read once."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = None if folder is None else Path(folder).resolve()
        self._rows: dict[Path, dict[str, Any]] = {}

    def add(self, path: str | os.PathLike[str], role: str) -> str | None:
        """Take note of a file; returns the path to be written, or None if there is no such file."""
        if not _is_file(path):
            return str(path) if role == "record" and path else None
        full = Path(path).resolve()
        if full not in self._rows:
            digest = hashlib.sha256(full.read_bytes()).hexdigest()
            self._rows[full] = {"path": self._shown(path, full), "sha256": digest, "role": role}
        return self._rows[full]["path"]

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file that was added; None if there is no such file."""
        row = self._rows.get(Path(path).resolve()) if _is_file(path) else None
        return None if row is None else row["sha256"]

    def table(self) -> list[dict[str, Any]]:
        return sorted(self._rows.values(), key=lambda row: (row["role"], row["path"]))

    def _shown(self, path: str | os.PathLike[str], full: Path) -> str:
        if full.is_relative_to(_PACKAGE):
            return f"softnum/tta/{full.relative_to(_PACKAGE).as_posix()}"
        if self._folder is None:
            return str(path)
        return Path(os.path.relpath(full, self._folder)).as_posix()


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("softnum")
    except metadata.PackageNotFoundError:
        return "not installed"


@plain
def write_results(
    path: str | os.PathLike[str],
    studies: Sequence[Study],
    inputs: Mapping[str, Any] | None = None,
    *,
    tuning: Tuning | None = None,
) -> Path:
    """Write `results_dict` as JSON, atomically.

    Parameters
    ----------
    path : path-like
        The file, usually ``results.json``. Paths in it are relative to its folder.
    studies, inputs, tuning
        As in `results_dict`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_results(write_results(Path(folder, "results.json"), [study]))["target"]
    0.9
    """
    path = Path(path)
    table = results_dict(studies, inputs, folder=path.parent, tuning=tuning)
    text = json.dumps(table, indent=1, allow_nan=False, ensure_ascii=False)
    write_atomic(path, text + "\n")
    return path


@plain
def read_results(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read ``results.json`` back and check that it is one.

    Parameters
    ----------
    path : path-like
        The file, or the folder that holds it.

    Returns
    -------
    dict
        As `results_dict` returned it.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not JSON, not of schema 2, or lacks what a result has; the message names the file and the way out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "results.json")
    ...     _ = file.write_text('{"schema": 1}')
    ...     try:
    ...         read_results(file)
    ...     except ValueError as error:
    ...         print(str(error).partition("json: ")[2])
    of schema 1, and this softnum reads schema 2; run softnum tta again (records are kept, nothing is trained twice)
    """
    path = Path(path)
    path = path / "results.json" if path.is_dir() else path
    again = "run softnum tta again (records are kept, nothing is trained twice)"
    if not path.is_file():
        raise FileNotFoundError(f"no results {str(path)!r}; softnum tta --out {path.parent} writes them")
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg}); {again}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, numbers too long, brackets too deep
        raise ValueError(f"{path}: not readable as JSON ({error}); {again}") from None
    if not isinstance(table, dict) or table.get("schema") != RESULTS_SCHEMA:
        found = f"of schema {table.get('schema')!r}" if isinstance(table, dict) else "not the results of a study"
        raise ValueError(f"{path}: {found}, and this softnum reads schema {RESULTS_SCHEMA}; {again}")
    try:
        check_keys(table, [*_KEYS, *_LISTS, "configs"], ["tuning"], str(path))
        _check_lists(table, _LISTS, str(path))
        if "tuning" in table:
            where = f"{path}: tuning"
            check_keys(table["tuning"], _TUNING, [], where)
            _check_lists(table["tuning"], ("multipliers", "seeds", "designs", "trials", "variants", "runs"), where)
    except ValueError as error:
        raise ValueError(f"{error}; {again}") from None
    return table


def _check_lists(table: Mapping[str, Any], lists: Sequence[str], where: str) -> None:
    """Raise ValueError unless these are lists, of objects where they are not of numbers, with the keys they need."""
    for key in lists:
        kind = (int, float) if key in ("multipliers", "seeds") else dict
        if not isinstance(table[key], list) or not all(isinstance(row, kind) for row in table[key]):
            raise ValueError(f"{where}: {key} must be a list of {'objects' if kind is dict else 'numbers'}")
    if not table["variants"]:
        raise ValueError(f"{where}: variants is empty")
    for number, variant in enumerate(table["variants"]):
        keys = ["label", "baseline", "assumptions", "not_simulated", "notes", "designs", "interactions"]
        check_keys(variant, keys, [], f"{where}: variants[{number}]")
    for number, run in enumerate(table["runs"]):
        keys = ["design", "name", "seed", "batch", "record", "sha256", "diverged", "versions", "curve"]
        check_keys(run, keys, [], f"{where}: runs[{number}]")
