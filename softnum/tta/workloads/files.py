"""Workloads in files: the workloads.json of a comparison folder, or one of a user's own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.tta.quantities import check_keys
from softnum.tta.text import read_text
from softnum.tta.workloads.operations import Workload

__all__ = ["read_workloads", "write_workloads"]

_SCHEMA = 1


def read_workloads(path: str | os.PathLike[str]) -> list[Workload]:
    """Read workloads.

    Parameters
    ----------
    path : path-like
        A JSON file: one table, as ``Workload.to_table`` returns it, a list of them, or what `write_workloads` writes.

    Returns
    -------
    list of Workload

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is not of that form; the message names file, line and key.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Operation, Workload
    >>> work = Workload("one", "float32", 1, (Operation("fc", "forward", "gemm", 8, 4, 4),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_workloads(Path(folder, "workloads.json"), [work])
    ...     read_workloads(Path(folder, "workloads.json")) == [work]
    True
    """
    path = Path(path)
    text = read_text(path, f"no workload file {str(path)!r}")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # numbers too long, brackets too deep
        raise ValueError(f"{path}: not readable as JSON ({error})") from None
    tables = data if isinstance(data, list) else [data]
    if isinstance(data, dict) and "workloads" in data:
        check_keys(data, ["workloads"], ["schema"], str(path))
        if data.get("schema", _SCHEMA) != _SCHEMA:
            raise ValueError(f"{path}: schema {data['schema']!r} is not known to this softnum, which reads {_SCHEMA}")
        tables = data["workloads"]
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"{path}: workloads must be a list of at least one table")
    return [Workload.from_table(table, f"{path}: workload {i}") for i, table in enumerate(tables)]


def write_workloads(path: str | os.PathLike[str], workloads: Iterable[Workload]) -> None:
    """Write workloads, each on a line of its own.

    Parameters
    ----------
    path : path-like
        The workloads.json of a comparison folder.
    workloads : iterable of Workload
        Each under the label of its case.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_workloads(Path(folder, "workloads.json"), [])
    ...     Path(folder, "workloads.json").read_text()
    '{"schema": 1, "workloads": [\\n]}\\n'
    """
    rows = [json.dumps(workload.to_table(), ensure_ascii=False, allow_nan=False) for workload in workloads]
    write_atomic(path, f'{{"schema": {_SCHEMA}, "workloads": [\n' + ",\n".join(rows) + ("\n" if rows else "") + "]}\n")
