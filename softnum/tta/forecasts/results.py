"""Forecasts as ``results.json``: everything that they say and rest on, and checked when they are read.

Schema ``softnum.forecast/1``::

    schema, versions, inputs     versions: {softnum}; inputs: the command
    metric, target, confidence   of the loss, and of what is derived
    rule, search                 how intervals are combined, and which ways are tried
    forecasts                    one for each design
    sources                      files: {path, sha256, role}; paths are relative to the folder of results.json

A *forecast*: {network, design, system, device, amounts, extrapolated, notes, step, memory, parallelism,
searched, checkpoints, curve}. An *amount* is {name, unit, value, low, high, kind, source}; ``null`` ends are unknown,
and a `high` of "none" has no limit. A *curve* has a list each of days, loss, low and high.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.runtime.config import __version__
from softnum.tta.forecasts.factors import RULE, Amount
from softnum.tta.forecasts.forecast import Forecast, with_derived
from softnum.tta.forecasts.search import SEARCH
from softnum.tta.quantities import check_keys

__all__ = ["FORECAST_SCHEMA", "is_forecast", "read_forecasts", "write_forecasts"]

#: Of results.json as it is written and read.
FORECAST_SCHEMA = "softnum.forecast/1"
_AGAIN = "run softnum tta --law again"
_KEYS = (
    "schema", "versions", "inputs", "metric", "target", "confidence", "rule", "search", "forecasts", "sources",
)  # fmt: skip
_FORECAST = (
    "network", "design", "system", "device", "amounts", "extrapolated", "notes", "step", "memory", "parallelism",
    "searched", "checkpoints", "curve",
)  # fmt: skip
_CURVE = ("days", "loss", "low", "high")


def write_forecasts(
    path: str | os.PathLike[str],
    forecasts: Sequence[Forecast],
    files: Iterable[tuple[str, str]] = (),
    command: str = "",
) -> Path:
    """Write forecasts of one model, law and target.

    Parameters
    ----------
    path : path-like
        The file, usually ``results.json``; written atomically.
    forecasts : sequence of Forecast
    files : iterable of (str, str)
        Path and role of what they rest on: "law", "system", "design".
    command : str
        The command that made them.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If two are of one design, or the file has other results in it.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import forecast
    >>> from softnum.tta.architectures import Precision
    >>> from softnum.tta.forecasts import Given
    >>> from softnum.tta.parallelism import system
    >>> from softnum.tta.scaling_law import ScalingLaw
    >>> law = ScalingLaw(482.0, 2085.0, 1.817, 0.348, 0.366, (), (6e7, 1.6e10), (8e8, 3e11), 240)
    >>> given = Given(devices=256, ways={"tensor": 2, "zero": 1})
    >>> told = forecast("llama3-8b", Precision.named("bfloat16"), system("dgx-h100"), law, 2.2, given)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_forecasts(Path(folder, "results.json"), [told])
    ...     read_forecasts(file)["forecasts"][0]["design"]
    'bfloat16'
    """
    path = Path(path)
    check_place(path)
    names = [told.design for told in forecasts]
    if len(set(names)) != len(names):
        raise ValueError(f"designs must have different names, got {', '.join(names)}; rename one")
    first = forecasts[0]
    rows = [
        {
            "path": Path(os.path.relpath(Path(file).resolve(), path.resolve().parent)).as_posix(),
            "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest(), "role": role,
        }
        for file, role in dict.fromkeys(files)
    ]  # fmt: skip
    table = {
        "schema": FORECAST_SCHEMA, "versions": {"softnum": __version__}, "inputs": {"command": command},
        "metric": first.metric, "target": first.target, "confidence": first.confidence, "rule": RULE,
        "search": SEARCH, "forecasts": [_table(told) for told in forecasts], "sources": rows,
    }  # fmt: skip
    write_atomic(path, json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def _table(told: Forecast) -> dict[str, Any]:
    found = told.found
    return {
        "network": told.network, "design": told.design, "system": told.system, "device": told.device,
        "amounts": [amount.to_table() for amount in told.amounts],
        "extrapolated": list(told.extrapolated), "notes": list(told.notes), "step": told.step.time.to_table(),
        "memory": told.step.memory.to_table(), "parallelism": asdict(told.step.plan.parallelism),
        "searched": None if found is None else {"tried": found.tried, "fitting": found.fitting},
        "checkpoints": None if told.checkpoints is None else told.checkpoints.to_table(),
        "curve": {name: [row[n] for row in told.curve] for n, name in enumerate(_CURVE)},
    }  # fmt: skip


def is_forecast(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it has forecasts in it; False of what is not readable."""
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(table, Mapping) and str(table.get("schema", "")).startswith("softnum.forecast/")


def check_place(path: Path) -> None:
    """ValueError if other results would be lost there."""
    if path.exists() and not is_forecast(path):
        raise ValueError(f"{path} has results of another kind, which would be lost; name another folder with --out")


def read_forecasts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_forecasts` wrote, and check it against itself.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict
        As the module says, with an `Amount` in the place of each amount.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is none, or what is derived does not follow from the rest.

    Examples
    --------
    >>> read_forecasts("nowhere.json")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file 'nowhere.json'; run softnum tta --law again
    """
    path = Path(path)
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"no file {str(path)!r}; {_AGAIN}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not readable as JSON ({error}); {_AGAIN}") from None
    if not isinstance(table, Mapping) or table.get("schema") != FORECAST_SCHEMA:
        raise ValueError(f"{path}: not of schema {FORECAST_SCHEMA}; {_AGAIN}")
    try:
        check_keys(table, _KEYS, [], str(path))
        rows = _checked(table["forecasts"], list, "forecasts")
        if not rows:
            raise ValueError("forecasts is empty")
        for row in _checked(table["sources"], list, "sources"):
            check_keys(row, ["path", "sha256", "role"], [], "sources")
        found = [_read(row, f"forecasts[{n}]") for n, row in enumerate(rows)]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}; {_AGAIN}") from None
    return {**table, "forecasts": found}


def _checked(value, kind: type, what: str):
    if not isinstance(value, kind):
        raise ValueError(f"{what} must be a {kind.__name__}, got {value!r}")
    return value


def _read(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    check_keys(row, _FORECAST, [], where)
    for name in ("network", "design", "system", "device"):
        _checked(row[name], str, f"{where}.{name}")
    for name in ("extrapolated", "notes", "amounts"):
        _checked(row[name], list, f"{where}.{name}")
    amounts = tuple(Amount.from_table(each, f"{where}.amounts[{n}]") for n, each in enumerate(row["amounts"]))
    again = with_derived(amount for amount in amounts if amount.kind != "derived")
    if [amount.name for amount in again] != [amount.name for amount in amounts]:
        raise ValueError(f"{where}: its amounts are not those of a forecast")
    for amount, right in zip(amounts, again, strict=True):
        if amount != right:
            raise ValueError(
                f"{where}: {amount.name} is {amount.value!r} ({amount.low!r} to {amount.high!r}), and from the rest "
                f"follows {right.value!r} ({right.low!r} to {right.high!r})"
            )
    check_keys(row["curve"], _CURVE, [], f"{where}.curve")
    if len({len(_checked(column, list, f"{where}.curve")) for column in row["curve"].values()}) != 1:
        raise ValueError(f"{where}.curve: its lists are of different lengths")
    for column in row["curve"].values():
        if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in column):
            raise ValueError(f"{where}.curve: its values must be finite numbers")
    step = next(amount for amount in amounts if amount.name == "step")
    if row["step"]["seconds"] != step.value or row["step"]["devices"] != _value(amounts, "devices"):
        raise ValueError(f"{where}: step is not that of its amounts")
    return {**row, "amounts": amounts}


def _value(amounts: Sequence[Amount], name: str) -> float:
    return next(amount.value for amount in amounts if amount.name == name)
