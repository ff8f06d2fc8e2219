"""Vectors as NumPy's .npz: an array of codes for each column, and the header as JSON. Held in memory, so limited.

``numpy.load(file)["a"]`` gives the codes of operand a, of shape (n,), or (n, count) where an entry has several
elements; ``json.loads(numpy.load(file)["header"].tobytes())`` gives what the header says.
"""

from __future__ import annotations

import io
import json
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from softnum.arrays.checks import check_codes
from softnum.formats.wide import TWO_WORDS
from softnum.vectors.files.compressed import COMPRESSIONS, Peeked, Unreadable, opened
from softnum.vectors.files.text import Rows, VectorFileError
from softnum.vectors.plans.spec import Block, Column, Spec

__all__ = ["MOST_BYTES", "MOST_VECTORS", "NpzReader", "NpzWriter", "check_size"]

#: An archive is made and read as a whole.
MOST_VECTORS = 10_000_000
MOST_BYTES = 1 << 30

_HEADER = "header"
_ROWS = 1 << 16
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, KeyError, ValueError, TypeError, EOFError,
    RuntimeError, NotImplementedError, MemoryError, OverflowError, IndexError, AttributeError, SyntaxError, OSError,
)  # fmt: skip


def check_size(spec: Spec, count: int) -> None:
    """ValueError if so many vectors are too many for an archive.

    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.files.npz import check_size
    >>> check_size(VectorSpec.make("multiply", "e5m2"), 10**8)
    Traceback (most recent call last):
    ValueError: npz is held in memory: at most 10000000 vectors and 1073741824 bytes, not 100000000 vectors of 4
    bytes; write several files (--count, --seed), or text (csv, jsonl, readmemh), which is written as it is made
    """
    size = sum(c.dtype.itemsize * c.count for c in spec.columns)
    if count > MOST_VECTORS or count * size > MOST_BYTES:
        raise ValueError(
            f"npz is held in memory: at most {MOST_VECTORS} vectors and {MOST_BYTES} bytes, not {count} vectors of "
            f"{size} bytes; write several files (--count, --seed), or text (csv, jsonl, readmemh), which is written as "
            "it is made"
        )


class NpzWriter:
    """Collects blocks of vectors and writes the archive when it is closed.

    Parameters
    ----------
    file : binary file
    spec : VectorSpec or UnitSpec
    header : dict or None
        What the member ``header`` says, if there is one.
    """

    def __init__(self, file: BinaryIO, spec: Spec, header: dict[str, str] | None) -> None:
        self.file, self.spec, self.header = file, spec, header
        self._blocks: list[Block] = []
        self._count = 0

    def write(self, block: Block) -> None:
        """Keep some vectors."""
        self._count += len(block)
        check_size(self.spec, self._count)
        self._blocks.append(block)

    def close(self) -> None:
        """Write the archive: the same vectors give the same bytes."""
        members = {}
        if self.header is not None:
            members[_HEADER] = np.frombuffer(json.dumps(self.header, indent=1).encode(), np.uint8)
        for i, column in enumerate(self.spec.columns):
            shape = (0,) if column.count == 1 else (0, column.count)
            parts = [b.columns[i] for b in self._blocks] or [np.zeros(shape)]
            members[column.name] = np.concatenate(parts).astype(column.dtype.newbyteorder("<"), copy=False)
        self._blocks = []
        np.savez(self.file, **members)


class NpzReader:
    """Reads what `NpzWriter` wrote, or any archive with an array of unsigned codes for each column.

    Parameters
    ----------
    stream : binary file
    source : str
        Its name in error messages.

    Attributes
    ----------
    header : dict
        What the member ``header`` says; empty if there is none.
    """

    def __init__(self, stream: BinaryIO, source: str) -> None:
        self.source = source
        self.skipped: dict[str, int] = {}
        stream = opened(stream) if not _seekable(stream) else stream
        if isinstance(stream, Peeked):
            try:
                stream = io.BytesIO(_all_of(stream))
            except Unreadable as problem:
                raise self._error(str(problem)) from None
            if len(stream.getbuffer()) > 2 * MOST_BYTES:
                raise self._error(f"more than {2 * MOST_BYTES} bytes: npz files are read as a whole")
        if not stream.read(1):
            raise self._error("no vectors: the file is empty")
        stream.seek(-1, io.SEEK_CUR)
        try:
            self._archive = zipfile.ZipFile(stream)
            names = [name.removesuffix(".npy") for name in self._archive.namelist()]
            self.header = {}
            if _HEADER in names:
                facts = json.loads(self._array(_HEADER).tobytes().decode())
                self.header = {str(key): str(value) for key, value in facts.items()}
        except VectorFileError:
            raise
        except _BROKEN as error:
            raise self._error(f"no whole npz file: {error}") from None
        self._names = [name for name in names if name != _HEADER]

    def _error(self, problem: str) -> VectorFileError:
        return VectorFileError(self.source, 0, problem)

    def _array(self, name: str) -> np.ndarray:
        """A member, checked before it is taken into memory."""
        info = self._archive.getinfo(name + ".npy")
        if info.file_size > MOST_BYTES + (1 << 16):
            raise self._error(f"array {name!r}: {info.file_size} bytes where at most {MOST_BYTES} are read")
        member = io.BytesIO(self._archive.read(info))  # read whole, so that its checksum is looked at
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote
            shape, fortran, dtype = read(member)
        if dtype.kind not in "iu" and dtype != TWO_WORDS:
            raise self._error(f"array {name!r}: codes are integers, not {dtype}")
        data = np.frombuffer(member.getbuffer()[member.tell() :], dtype)
        return data.reshape(shape, order="F" if fortran else "C")

    def _column(self, column: Column) -> np.ndarray:
        try:
            codes = self._array(column.name)
        except VectorFileError:
            raise
        except _BROKEN as error:
            raise self._error(f"array {column.name!r} is damaged: {error}") from None
        shape = "(n,)" if column.count == 1 else f"(n, {column.count})"
        if codes.ndim != 1 + (column.count > 1) or (column.count > 1 and codes.shape[1] != column.count):
            raise self._error(f"array {column.name!r} is of shape {codes.shape} where {shape} is expected")
        if column.dtype == TWO_WORDS or codes.dtype == TWO_WORDS:
            try:
                return check_codes(codes, column.format, f"array {column.name!r}")
            except (TypeError, ValueError) as error:
                raise self._error(str(error)) from None
        if codes.size:
            wrong = (codes < 0) | (codes > np.uint64((1 << column.bits) - 1)) if codes.dtype.kind == "i" else (
                codes >> codes.dtype.type(column.bits) if column.bits < 8 * codes.itemsize else np.zeros(1, bool)
            )  # fmt: skip
            if wrong.any():
                at = np.argwhere(wrong)[0]
                of = f" of {column.format}" if column.format is not None else ""
                value = int(codes[tuple(at)])
                raise self._error(
                    f"array {column.name!r}, vector {at[0] + 1}: {value:#x} does not fit {column.bits} bits{of}"
                )
        return codes.astype(column.dtype, copy=False)

    def lacks_flags(self, spec: Spec) -> bool:
        """Whether there is no array of flags."""
        return "flags" not in self._names

    def rows(self, spec: Spec, *, unknown: str = "error") -> Iterator[Rows]:
        """The vectors, 2**16 at a time; ``lines`` numbers them from 1.

        Raises
        ------
        VectorFileError
            If an array is missing, damaged, of another shape or holds codes that do not fit.
        """
        if unknown not in ("error", "mark"):
            raise ValueError(f"unknown must be 'error' or 'mark', got {unknown!r}")
        for column in spec.columns:
            if column.name not in self._names:
                raise self._error(
                    f"no array {column.name!r}: the file has {', '.join(self._names) or 'none'}, and "
                    f"{', '.join(c.name for c in spec.columns)} are expected"
                )
        columns = [self._column(c) for c in spec.columns]
        lengths = [len(codes) for codes in columns]
        if len(set(lengths)) > 1:
            raise self._error(
                "arrays of different lengths: "
                + ", ".join(f"{c.name} {n}" for c, n in zip(spec.columns, lengths, strict=True))
            )
        if not lengths[0]:
            raise self._error("no vectors: the arrays are empty")
        promised = self.header.get("vectors")
        if promised is not None and promised.isdecimal() and int(promised) != lengths[0]:
            raise self._error(f"the file holds {lengths[0]} vectors; its header says {promised}")
        for start in range(0, lengths[0], _ROWS):
            block = spec.block_of([codes[start : start + _ROWS] for codes in columns])
            yield Rows(np.arange(start + 1, start + 1 + len(block)), block)


def _seekable(stream) -> bool:
    """Whether the archive can be read in place: it cannot from a pipe, and if it is compressed once more."""
    if isinstance(stream, Peeked) or not stream.seekable():
        return False
    head = stream.read(6)
    stream.seek(-len(head), io.SEEK_CUR)
    return not any(head.startswith(magic) for _, magic in COMPRESSIONS.values())


def _all_of(stream) -> bytes:
    parts, total = [], 0
    while data := stream.read(1 << 20):
        parts.append(data)
        total += len(data)
        if total > 2 * MOST_BYTES:
            break
    return b"".join(parts)
