"""Finished records of earlier studies, found by what their rows follow from, wherever those studies lie.

A *store* is a folder of files that are written once and never changed, ``<2 digits>/<key>-<SHA-256>.jsonl``. The key is
that of the arithmetic (`arithmetic_of`): of the design for every layer, network, data, settings, seed and versions, but
not of a design's name, description and hardware, which stand in the first row alone. Processes need no lock: a file is
renamed into its place when it is whole, and another process that is as far writes the same bytes. A store belongs to
one state of softnum's code, so that a record of another checkout of the same version is never taken.

Runs with code of the user's own (a PyTorch model, formats or functions in a file) are neither kept nor looked for: a
checksum of a file says nothing of what that file imports.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.runtime.caching import cache_folder
from softnum.train.designs.objects import file_of
from softnum.train.runs.own import is_own
from softnum.train.runs.record import RunFiles, header_of
from softnum.train.studies.keys import arithmetic_of
from softnum.train.studies.source import source_digest

__all__ = ["RecordStore", "own_store", "shareable", "with_header"]

_SHIPPED = Path(__file__).parents[1]


def shareable(design, settings) -> bool:
    """Whether a run's first row states all that its rows follow from: whether no code of the user's takes part.

    >>> from softnum.train import Settings, load_design
    >>> [shareable(load_design("h-posit8"), Settings(network)) for network in ("mlp", "mine.py:make")]
    [True, False]
    """
    files = [file_of(text, design.path.parent) for text in design.sources]
    shipped = all(file is not None and file.resolve().is_relative_to(_SHIPPED.resolve()) for file in files)
    return shipped and not is_own(settings.network)


def with_header(header: dict, record: bytes) -> bytes:
    """A record with another first row."""
    return json.dumps(header, allow_nan=False).encode() + b"\n" + record.partition(b"\n")[2]


class RecordStore:
    """A folder of finished records.

    Parameters
    ----------
    folder : path-like
        It is made when the first record is kept.

    Attributes
    ----------
    taken : int
        How many records a study took from it.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import Case, Settings, run_study
    >>> cases, recipe = [Case("a-float32", 256)], Settings(epochs=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RecordStore(Path(folder, "store"))
    ...     (first,), (second,) = (
    ...         run_study(cases, recipe, seeds=[1], out=Path(folder, out), jobs=1, store=store) for out in "ab"
    ...     )
    ...     store.taken, first.read_bytes() == second.read_bytes()
    (1, True)
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        self.taken = 0

    def _files(self, header: dict) -> list[Path]:
        key = arithmetic_of(header)
        return sorted((self.folder / key[:2]).glob(f"{key}-*.jsonl"))

    def find(self, header: dict, iterations: int) -> bytes | None:
        """The record of a run with a first row and so many iterations; None if there is none.

        Nor if what is there is damaged, or two records differ: then none of them can be trusted.
        """
        found = {}
        for path in self._files(header):
            try:
                record = path.read_bytes()
            except OSError:  # removed meanwhile, or not readable
                continue
            if path.stem.partition("-")[2] == hashlib.sha256(record).hexdigest() and _whole(path, header, iterations):
                found[path.name] = record
        return with_header(header, next(iter(found.values()))) if len(found) == 1 else None

    def keep(self, path: Path) -> None:
        """Keep a finished record. What cannot be written is not kept: a study does not fail of it."""
        with contextlib.suppress(OSError):
            header = header_of(path)
            if header is None or self._files(header):
                return
            record = path.read_bytes()
            last = record.rstrip(b"\n").rpartition(b"\n")[2]
            if b'"finished": true' not in last:  # whether it is whole is looked at when it is taken
                return
            key, digest = arithmetic_of(header), hashlib.sha256(record).hexdigest()
            (self.folder / key[:2]).mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / key[:2] / f"{key}-{digest}.jsonl", record)

    def place(self, folder: Path, seed: int, header: dict, iterations: int) -> bool:
        """Write the record of a run into its place unless it is finished there; whether it was found and written.

        Raises
        ------
        ValueError
            If the record of another run lies there, or another process writes it.
        """
        files = RunFiles(folder, seed, header, iterations)
        if (record := self.find(files.header, iterations)) is None:
            return False
        files.open()
        try:
            if files.finished():
                return False
            write_atomic(files.path, record)
            files.discard_checkpoint()
        finally:
            files.close()
        return True


def _whole(path: Path, header: dict, iterations: int) -> bool:
    """Whether a kept record is of the arithmetic of a first row, finished and undamaged."""
    own = header_of(path)
    if own is None or arithmetic_of(own) != arithmetic_of(header):
        return False
    files = RunFiles(path.parent, 0, own, iterations)
    files.path = path
    try:
        return files.finished()
    except ValueError:
        return False


def own_store() -> RecordStore | None:
    """The user's store: in SOFTNUM_RECORDS, else in the cache folder; None if SOFTNUM_RECORDS is "none".

    Raises
    ------
    ValueError
        If the cache folder is not the user's alone to write (`softnum.runtime.caching.cache_folder`).
    """
    given = os.environ.get("SOFTNUM_RECORDS")
    if given == "none":
        return None
    return RecordStore((Path(given) if given else cache_folder("records")) / source_digest(compiled=True))
