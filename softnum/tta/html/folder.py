"""What lies in the folder of a comparison or of a study, checked before anything is shown of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from softnum.tta.forecasts.results import is_forecast, read_forecasts
from softnum.tta.outcomes.results import read_results
from softnum.tta.workloads.files import read_workloads
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import Workload

__all__ = ["Comparison", "Folder", "iteration_time", "read_folder"]

_PACKAGE = Path(__file__).parents[1]
_AGAIN = "run softnum tta again (records are kept, nothing is trained twice)"


@dataclass(frozen=True)
class Comparison:
    """Designs compared on one network: what one ``results.json`` says.

    Parameters
    ----------
    name : str
        Of the comparison's folder in its study; empty where there is no study.
    folder : Path
    results : Mapping
        Of schema 2, checked.
    workloads : tuple of Workload
        What an iteration consists of, one for each case; empty where the folder does not say.
    states : Mapping of str to str
        Of each source by path: "the same", "not found", or "shipped by another softnum".
    apart : bool
        Whether its title needs the folder's name, as in a study with two comparisons of one network on one data set.
    """

    name: str
    folder: Path
    results: Mapping[str, Any]
    workloads: tuple[Workload, ...]
    states: Mapping[str, str]
    apart: bool = False

    @property
    def designs(self) -> tuple[str, ...]:
        """Labels of the designs, in the order of the results."""
        return tuple(entry["design"] for entry in self.results["variants"][0]["designs"])

    @property
    def title(self) -> str:
        """The network and the data, as far as the results name them."""
        inputs = self.results["inputs"]
        network, data = inputs.get("network"), inputs.get("data")
        network = network.get("name") if isinstance(network, Mapping) else network
        words = [str(network or self.name or self.folder.resolve().name)]
        title = " on ".join([*words, str(data)] if data else words)
        return f"{title} ({self.name})" if self.apart else title

    def workload_of(self, label: str) -> Workload | None:
        """The workload of a design by its label, ``name`` or ``name@batch``; None where there is none."""
        run = next((run for run in self.results["runs"] if run["design"] == label), None)
        for workload in self.workloads:
            if workload.design == label or (
                run is not None and (workload.design, workload.batch) == (run["name"], run["batch"])
            ):
                return workload
        return None


@dataclass(frozen=True)
class Folder:
    """A comparison, or the comparisons of a study.

    Parameters
    ----------
    path : Path
    comparisons : tuple of Comparison
    study : Mapping or None
        What ``study.json`` holds.
    failures : tuple of str
        Runs of the study that did not finish.
    forecasts : Mapping or None
        What `read_forecasts` gave, where the folder has forecasts and no comparison.
    states : Mapping of str to str
        As of `Comparison`, of what forecasts rest on.
    """

    path: Path
    comparisons: tuple[Comparison, ...]
    study: Mapping[str, Any] | None = None
    failures: tuple[str, ...] = ()
    forecasts: Mapping[str, Any] | None = None
    states: Mapping[str, str] = field(default_factory=dict)


def read_folder(folder: str | os.PathLike[str]) -> Folder:
    """Read the folder of a comparison (``results.json``) or of a study (``study.json``).

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or it holds neither file.
    ValueError
        If a file in it is not what its name says, or a record has changed since the results were made.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise FileNotFoundError(
            f"{folder} {what}; name the folder that softnum tta --out or softnum study run --out wrote"
        )
    if (folder / "study.json").is_file():
        return _study(folder)
    if not (folder / "results.json").is_file():
        raise FileNotFoundError(
            f"{folder} holds neither results.json nor study.json; name the folder that softnum tta --out or "
            "softnum study run --out wrote"
        )
    if is_forecast(path := folder / "results.json"):
        found = read_forecasts(path)
        states = {row["path"]: _state(folder, row, path) for row in found["sources"]}
        return Folder(folder, (), forecasts=found, states=states)
    return Folder(folder, (_comparison(folder, ""),))


def _study(folder: Path) -> Folder:
    path = folder / "study.json"
    again = "run softnum study run again (finished runs are kept)"
    table = _json(path, again)
    listed = table.get("comparisons") if isinstance(table, dict) else None
    good = isinstance(listed, list) and listed
    if not good or not all(isinstance(row, dict) and isinstance(row.get("folder"), str) for row in listed):
        raise ValueError(f"{path}: comparisons must be a list of tables with a folder each; {again}")
    comparisons, failures = [], []
    for row in listed:
        place = folder / row["folder"]
        if not place.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path}: the folder {row['folder']!r} of a comparison is outside of the study; {again}")
        for run in row.get("runs") or ():
            if isinstance(run, dict) and run.get("state", "finished") != "finished":
                why = f": {run['error']}" if run.get("error") else ""
                rate = f" at {run['multiplier']} times the learning rate" if "multiplier" in run else ""
                told = f"{run.get('label')}{rate}, seed {run.get('seed')}, {run['state']}{why}"
                failures.append(f"{row['folder']}: {told}")
        if (place / "results.json").is_file():
            comparisons.append(_comparison(place, row["folder"]))
        if row.get("error"):
            failures.append(f"{row['folder']}: {row['error']}")
        elif not (place / "results.json").is_file():
            failures.append(f"{row['folder']}: no results.json, so nothing of it is shown; {again}")
    if not comparisons:
        raise ValueError(f"{path}: none of its comparisons has a results.json; {again}")
    titles = Counter(comparison.title for comparison in comparisons)
    told = tuple(replace(comparison, apart=titles[comparison.title] > 1) for comparison in comparisons)
    return Folder(folder, told, table, tuple(failures))


def _comparison(folder: Path, name: str) -> Comparison:
    path = folder / "results.json"
    results = read_results(path)
    _check(results, path)
    states = {row["path"]: _state(folder, row, path) for row in results["sources"]}
    return Comparison(name, folder, results, _workloads(folder / "workloads.json"), states)


def _json(path: Path, way_out: str):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg}); {way_out}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, numbers too long, brackets too deep
        raise ValueError(f"{path}: not readable as JSON ({error}); {way_out}") from None


@cache
def _validator():
    import jsonschema

    schema = json.loads(Path(__file__).with_name("results.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def _check(results: Mapping[str, Any], path: Path) -> None:
    """Raise ValueError with the place of what is not as the schema says, or is not consistent."""
    import jsonschema

    error = jsonschema.exceptions.best_match(_validator().iter_errors(results))
    if error is not None:
        place = error.json_path.removeprefix("$.").removeprefix("$")
        raise ValueError(f"{path}: {place or 'the whole'}: {_short(error.message)}; {_AGAIN}")
    labels = [[entry["design"] for entry in variant["designs"]] for variant in results["variants"]]
    for number, found in enumerate(labels):
        if found != labels[0] or len(set(found)) != len(found):
            raise ValueError(f"{path}: variants[{number}]: designs must be the same in every variant, once; {_AGAIN}")
    if "tuning" in results:
        tuning = results["tuning"]
        found = [(v["label"], [entry["design"] for entry in v["designs"]]) for v in tuning["variants"]]
        if found != [(v["label"], labels[0]) for v in results["variants"]]:
            raise ValueError(f"{path}: tuning.variants: variants and designs must be those of variants; {_AGAIN}")
        if [entry["design"] for entry in tuning["designs"]] != labels[0]:
            raise ValueError(f"{path}: tuning.designs: designs must be those of variants; {_AGAIN}")
    for number, run in enumerate(results["runs"]):
        if run["design"] not in labels[0]:
            raise ValueError(f"{path}: runs[{number}]: no variant has its design {run['design']!r}; {_AGAIN}")
        if len({len(column) for column in run["curve"].values()}) > 1:
            raise ValueError(f"{path}: runs[{number}].curve: its lists are of different lengths; {_AGAIN}")


def _short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:90]} ... {message[-90:]}"


def _state(folder: Path, row: Mapping[str, Any], path: Path) -> str:
    """What has become of a file that results rest on; ValueError if it is another one now."""
    source = Path(row["path"])
    shipped = source.parts[:2] == ("softnum", "tta")
    if shipped:
        place = _PACKAGE / Path(*source.parts[2:])
    else:
        place = folder / source
    if not place.is_file():
        return "not found"
    if hashlib.sha256(place.read_bytes()).hexdigest() != row["sha256"]:
        if shipped:
            return "shipped by another softnum"
        raise ValueError(
            f"{place} has changed since {path} was made from it (its SHA-256 is another), so the numbers would not be "
            f"those of the file; {_AGAIN}"
        )
    return "the same"


def _workloads(path: Path) -> tuple[Workload, ...]:
    if not path.is_file():
        return ()
    try:
        return tuple(read_workloads(path))
    except ValueError as error:
        raise ValueError(f"{error}; {_AGAIN}") from None


def iteration_time(table: Mapping[str, Any]) -> IterationTime:
    """A time as results.json holds it.

    >>> iteration_time({"design": "a", "seconds": 2.0, "interval": [1.5, 2.5], "kind": "measured"}).interval
    (1.5, 2.5)
    """
    known = {key: table[key] for key in IterationTime.__dataclass_fields__ if key in table}
    return IterationTime(**{key: tuple(value) if isinstance(value, list) else value for key, value in known.items()})
