"""The record of a run: JSON lines, written row by row, resumable to the byte.

``<out>/<design>/seed-<n>.jsonl`` begins with ``{"config", "seed", "versions"}``; then a row per iteration with
``iteration``, ``epoch`` and ``loss`` (null if it is not finite) and, at evaluations, ``accuracy``, or the ``metric``
that the config names; the last row of a finished run has ``"finished": true``. No time of day stands in it. Beside it,
until the run finishes, lies the latest checkpoint, ``seed-<n>.checkpoint.npz``, and while a process works on it a lock,
``.seed-<n>.lock``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from softnum.runtime.atomic import naming, write_atomic
from softnum.train.runs.lock import FileLock

__all__ = ["RunFiles", "header_of", "read_lines"]

_DAMAGED = (
    EOFError, ValueError, TypeError, KeyError, RuntimeError, NotImplementedError, OverflowError, MemoryError,
    SyntaxError,
)  # fmt: skip


def read_lines(path: Path) -> list[dict]:
    """The whole rows of a file of JSON lines, up to one that is damaged; none if there is no file."""
    rows: list[dict] = []
    if not path.is_file():
        return rows
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not isinstance(row, dict):
            break
        rows.append(row)
    return rows


def header_of(path: Path) -> dict | None:
    """The first row of a record; None if the file does not begin with one."""
    with open(path, "rb") as file:
        line = file.readline()
    try:
        header = json.loads(line)
        good = line.endswith(b"\n") and isinstance(header["config"], dict) and "seed" in header
    except (ValueError, TypeError, KeyError):
        return None
    return header if good else None


def _first_difference(old, new, where: str = "") -> str:
    """The first place, in the order of the new one, where two pieces of plain data differ.

    Of a whole header network and data come first: what the design says of layers follows from them.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*new, *(key for key in old if key not in new)]
        for key in sorted(keys, key=lambda key: key not in ("network", "data")):
            if key not in old or key not in new or old[key] != new[key]:
                path = f"{where}.{key}" if where else key
                return _first_difference(old.get(key), new.get(key), path)
    return f"{where} is {json.dumps(new)[:120]} and was {json.dumps(old)[:120]}"


class RunFiles:
    """The record and the checkpoint of one run.

    Parameters
    ----------
    folder : pathlib.Path
        ``<out>/<design>``.
    seed : int
    header : dict
        The record's first row.
    iterations : int
        Of the whole run.
    """

    def __init__(self, folder: Path, seed: int, header: dict, iterations: int) -> None:
        self.path = folder / f"seed-{seed}.jsonl"
        self.checkpoint_path = folder / f"seed-{seed}.checkpoint.npz"
        self.header = json.loads(json.dumps(header))
        self.metric = self.header["config"].get("metric", "accuracy")
        self.iterations = iterations
        self._lock = FileLock(folder / f".seed-{seed}.lock", f"{self.path}")
        self._file = None

    def open(self) -> None:
        """Take hold of the record: until `close`, no other process reads it for going on, or writes it.

        Raises
        ------
        ValueError
            If another process holds it, or its folder cannot be made or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except OSError as error:
            raise ValueError(
                f"the record {self.path} cannot be written ({error.strerror}); use another --out"
            ) from error

    # -- what is there -------------------------------------------------------------------------------------------------
    def finished(self) -> bool:
        """Whether a finished record of exactly this run is there, whole.

        Raises
        ------
        ValueError
            If a record of another run (design, settings, version) is there, or one that says it is finished and is
            damaged.
        """
        try:
            *lines, cut = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return False
        if not lines:
            return False  # not even the header was finished
        header = self._parse(lines[0], 1)
        if header != self.header:
            raise ValueError(
                f"{self.path} is the record of another run: {_first_difference(header, self.header)}. "
                "Use another --out to keep it, or --force to run again and replace it"
            )
        if self._parse(lines[-1], len(lines)).get("finished") is not True:
            return False
        for number, line in enumerate(lines[1:], start=2):
            row, last = self._parse(line, number), number == len(lines)
            if row.get("iteration") != number - 1:
                self._damaged(number, f"holds iteration {row.get('iteration')!r} where {number - 1} belongs")
            if ("finished" in row) != last:
                self._damaged(number, "says that the run is finished, and rows follow")
            if last and self.metric not in row:
                self._damaged(number, f"lacks the last {self.metric}")
            if last and number - 1 != self.iterations and row.get("diverged") is not True:
                self._damaged(number, f"ends the run after {number - 1} of {self.iterations} iterations")
        if cut:
            self._damaged(len(lines) + 1, "follows the row that ends the run")
        return True

    def _parse(self, line: bytes, number: int) -> dict:
        try:
            row = json.loads(line)
        except ValueError as error:
            if number > 1:
                self._damaged(number, f"is not JSON ({error})")
            row = error
        if not isinstance(row, dict):
            raise ValueError(
                f"{self.path} is not a training record (line {number}: {row}). "
                "Use another --out to keep it, or --force to replace it"
            )
        return row

    def _damaged(self, number: int, what: str):
        raise ValueError(
            f"{self.path} is damaged: line {number} {what}. Use --force to run again and replace it"
        ) from None

    # -- writing -------------------------------------------------------------------------------------------------------
    def start(self, state: dict | None) -> None:
        """Begin to write the record: from its header, or cut back to a checkpoint."""
        # of a process that was killed: whoever lives holds the lock, and that is this one
        for left in self.path.parent.glob(f".{self.path.stem}.*.tmp"):
            left.unlink(missing_ok=True)
        if state is None:
            self.checkpoint_path.unlink(missing_ok=True)
            write_atomic(self.path, _line(self.header))
        else:
            os.truncate(self.path, int(state["record_bytes"]))
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  (closed by close)

    @property
    def opened(self) -> bool:
        """Whether rows can be written."""
        return self._file is not None

    def row(self, row: dict) -> None:
        """Append one row; it is in the file when this returns."""
        with naming(self.path):
            self._file.write(_line(row))

    def close(self) -> None:
        """Close the record and let others at it."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    def save(self, state: dict) -> None:
        """Replace the checkpoint: arrays and numbers by name, valid for the record as it stands."""
        with naming(self.path):
            os.fsync(self._file.fileno())
        size = os.fstat(self._file.fileno()).st_size
        buffer = io.BytesIO()
        np.savez(buffer, **state, record_bytes=size, header=self._digest(), prefix=self._prefix(size))
        write_atomic(self.checkpoint_path, buffer.getvalue())

    def load(self) -> dict | None:
        """The checkpoint, or None if there is none that fits the record."""
        try:
            content = self.checkpoint_path.read_bytes()
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                if sum(member.file_size for member in archive.zip.infolist()) > len(content):
                    return None  # compressed, which `save` does not
                state = {key: archive[key] for key in archive.files}
            size = int(state["record_bytes"])
            whole = self.path.is_file() and 0 < size <= self.path.stat().st_size
            ours = str(state["header"]) == self._digest()
            return state if whole and ours and str(state["prefix"]) == self._prefix(size) else None
        except (FileNotFoundError, zipfile.BadZipFile, zlib.error, *_DAMAGED):
            return None

    def discard_checkpoint(self) -> None:
        """Remove the checkpoint of a finished run."""
        self.checkpoint_path.unlink(missing_ok=True)

    def _digest(self) -> str:
        return hashlib.sha256(_line(self.header)).hexdigest()

    def _prefix(self, size: int) -> str:
        with open(self.path, "rb") as file:
            return hashlib.sha256(file.read(size)).hexdigest()


def _line(row: dict) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"
