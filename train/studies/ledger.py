"""What became of the attempts at a study's runs: JSON lines, in the order in which they ended.

The ledger is a history, not the truth: whether a run is finished is told by its record. It differs between two
executions of a study in the order of its lines, and in nothing else if nothing failed.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from softnum.runtime.atomic import naming
from softnum.train.runs.record import read_lines
from softnum.train.studies.task import Failed

__all__ = ["Ledger"]


class Ledger:
    """The file ``runs.jsonl`` of a study's folder.

    Each line has ``event``, ``run``, ``key`` and ``attempt``, and

    - "finished": ``sha256`` of the record;
    - "failed": ``error``, and ``trace`` where it was raised by more than unusable input;
    - "copied": ``source``, the record whose rows it has; attempt is 0.

    A run that was found finished, and of which the ledger does not know, gets attempt 0.

    Parameters
    ----------
    folder : pathlib.Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder))
    ...     ledger.finished("mlp/a-float32/seed-1", "0123", 1, b"the record")
    ...     ledger.completions()
    {'0123': 1}
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.jsonl"

    def _write(self, row: dict) -> None:
        with naming(self.path), open(self.path, "ab+") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)  # a line that a killed process did not end
            file.write(json.dumps(row).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def finished(self, run: str, key: str | None, attempt: int, record: bytes) -> None:
        """Note that a run is finished."""
        digest = hashlib.sha256(record).hexdigest()
        self._write({"event": "finished", "run": run, "key": key, "attempt": attempt, "sha256": digest})

    def failed(self, run: str, key: str | None, attempt: int, why: Failed) -> None:
        """Note that an attempt failed."""
        row = {"event": "failed", "run": run, "key": key, "attempt": attempt, "error": why.message}
        self._write(row | ({"trace": why.trace} if why.trace else {}))

    def copied(self, run: str, key: str | None, source: str) -> None:
        """Note that a record was written from that of a run of the same arithmetic."""
        self._write({"event": "copied", "run": run, "key": key, "attempt": 0, "source": source})

    def rows(self) -> list[dict]:
        """All lines."""
        return read_lines(self.path)

    def completions(self) -> dict[str, int]:
        """How often the run of each key was finished."""
        counts: dict[str, int] = {}
        for row in self.rows():
            if row.get("event") == "finished":
                counts[row["key"]] = counts.get(row["key"], 0) + 1
        return counts

    def failures(self) -> dict[str, str]:
        """The last error of each run whose last attempt failed."""
        errors: dict[str, str] = {}
        for row in self.rows():
            if row.get("event") == "failed":
                errors[row["run"]] = row["error"]
            else:
                errors.pop(row.get("run"), None)
        return errors
