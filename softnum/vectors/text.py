"""TestFloat's text: one vector a line, fixed-width hexadecimal columns with a space between them.

Source: the documentation of Berkeley TestFloat 3e (testfloat_gen, testfloat_ver), extended as
`VectorSpec.columns` says.
Whole blocks are formatted and parsed as arrays of bytes; single lines are looked at only where a block is not of the
expected form, to skip comments or to say what is wrong where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from softnum import _text
from softnum.packing import pack_bits, unpack_bits
from softnum.vectors.spec import Block, Column, Spec

__all__ = ["Rows", "TextLayout", "VectorFileError", "VectorReader", "header_lines"]

_SPACE = 0x20
_READ_ROWS = 1 << 16
_LONGEST_LINE = 1 << 16
_FIRST_HEADER_LINE = "# softnum vectors"
_HEXADECIMAL = frozenset(b"0123456789ABCDEFabcdef")


def octets(column: Column) -> int:
    """Bytes of an entry in memory: of the type that holds a single code, or of the packed word of several."""
    return column.dtype.itemsize if column.count == 1 else -(-column.width // 8)


def octets_of(codes: np.ndarray, column: Column) -> np.ndarray:
    """The bytes of each entry, the least significant first: shape (n, octets)."""
    little = np.ascontiguousarray(codes, column.dtype.newbyteorder("<"))
    if column.count > 1 and column.bits != 8 * column.dtype.itemsize:
        return pack_bits(little, column.bits)
    return little.view(np.uint8).reshape(len(codes), -1)


def codes_of(part: np.ndarray, column: Column) -> np.ndarray | None:
    """The codes of entries as `octets_of` gives them; None if one has a bit above its width."""
    spare = -column.width % 8 if column.count > 1 else 8 * part.shape[1] - column.width
    if spare >= 8 and part[:, -(spare // 8) :].any():
        return None
    if spare % 8 and (part[:, part.shape[1] - 1 - spare // 8] >> (8 - spare % 8)).any():
        return None
    if column.count > 1 and column.bits != 8 * column.dtype.itemsize:
        return unpack_bits(part, column.bits, column.count, column.dtype)
    codes = part.view(column.dtype.newbyteorder("<")).astype(column.dtype, copy=False)
    return codes if column.count > 1 else codes.ravel()


class VectorFileError(ValueError):
    """A vector file that cannot be read: ``source`` (its name), ``line`` (from 1; 0: the whole file), ``problem``."""

    #: `check` puts here what it found before the unusable line: a CheckReport or None
    report = None

    def __init__(self, source: str, line: int, problem: str) -> None:
        self.source, self.line, self.problem = source, line, problem
        super().__init__(f"{source}, line {line}: {problem}" if line else f"{source}: {problem}")


class Rows(NamedTuple):
    """Parsed vectors: ``lines`` (int64, from 1) says where each stands in its file."""

    lines: np.ndarray
    block: Block


class TextLayout:
    """Where each column of a spec's vectors stands in a line.

    Parameters
    ----------
    spec : VectorSpec or UnitSpec

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.vectors import TextLayout, VectorSpec
    >>> spec = VectorSpec.make("multiply", "e5m2")
    >>> TextLayout(spec).format(spec.evaluate(np.array([[0x3C], [0x7B]], np.uint8)))
    b'3C 7B 7B 00\\n'
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.columns: tuple[Column, ...] = spec.columns
        self.width = sum(c.digits + 1 for c in self.columns)

    # -- out ----------------------------------------------------------------------------------------------------------
    def format(self, block: Block) -> bytes:
        """The lines of a block of n vectors: n * width bytes, upper-case digits."""
        parts = [octets_of(codes, c) for c, codes in zip(self.columns, block.columns, strict=True)]
        return _text.format_rows(parts, [c.digits for c in self.columns], len(block))

    # -- in -----------------------------------------------------------------------------------------------------------
    def parse(self, data: bytes) -> Block | None:
        """The vectors of whole lines; None if any of them is not exactly as `format` writes it (either case)."""
        if not data or len(data) % self.width:
            return None
        parts = _text.parse_rows(data, [c.digits for c in self.columns], [octets(c) for c in self.columns])
        if parts is None:
            return None
        values = [codes_of(part, c) for part, c in zip(parts, self.columns, strict=True)]
        return None if any(v is None for v in values) else self.spec.block_of(values)

    def normal_line(self, line: bytes) -> bytes:
        """The line as `format` would write it, or ValueError with what is wrong with it."""
        for at, byte in enumerate(line):
            if (byte < _SPACE and byte not in b"\t\f\v\r") or byte >= 0x7F:
                raise ValueError(f"not text: byte 0x{byte:02X} at position {at + 1}")
        entries = line.split()
        if len(entries) != len(self.columns):
            names = " ".join(c.name for c in self.columns)
            raise ValueError(f"{len(entries)} columns where {len(self.columns)} are expected ({names}): {_shown(line)}")
        for number, (entry, column) in enumerate(zip(entries, self.columns, strict=True), 1):
            where = f"column {number} ({column.name})"
            bad = [chr(byte) for byte in entry if byte not in _HEXADECIMAL]
            if bad:
                hint = ""
                if entry[:2].lower() == b"0x":
                    hint = "; write the digits without 0x"
                elif set(bad) <= set("xXzZ"):
                    hint = "; an unknown or undriven value of a simulation"
                raise ValueError(f"{where}: {_shown(entry)} is not hexadecimal{hint}")
            of = f" of {column.format}" if column.format is not None else ""
            if len(entry) != column.digits:
                width = f"{column.width} bits{of} take {column.digits}"
                raise ValueError(f"{where}: {_shown(entry)} has {len(entry)} digit(s) where {width}")
            if int(entry, 16) >> column.width:
                raise ValueError(f"{where}: {_shown(entry)} exceeds {column.width} bits{of}")
        return b" ".join(entries) + b"\n"


def _shown(text: bytes) -> str:
    shown = text.decode("ascii", "replace")
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")


def header_lines(facts: dict[str, str]) -> bytes:
    """The comment lines that open a file.

    >>> from softnum.vectors.text import header_lines
    >>> print(header_lines({"op": "fma"}).decode(), end="")
    # softnum vectors 1
    # op: fma
    """
    lines = [f"{_FIRST_HEADER_LINE} 1", *(f"# {key}: {value}" for key, value in facts.items())]
    return "".join(line + "\n" for line in lines).encode()


class VectorReader:
    """Reads a vector file in constant memory.

    Parameters
    ----------
    stream : binary file
        Anything whose ``read(n)`` returns bytes.
    source : str
        What error messages call it.

    Attributes
    ----------
    header : dict
        The ``key: value`` pairs of the comment lines at the top; empty if there is no softnum header.
    """

    def __init__(self, stream, source: str) -> None:
        self.stream, self.source = stream, source
        self._rest = b""
        self._line = 1  # number of the line that _rest begins with
        self._ended = False
        self._fill(1 << 16)
        self._refuse_other_files()
        self.header = self._read_header()

    def _fill(self, size: int) -> None:
        data = self.stream.read(size)
        if isinstance(data, str):
            raise TypeError(f"{self.source}: a file opened in binary mode is needed")
        self._ended = not data
        self._rest += data

    def _error(self, line: int, problem: str) -> VectorFileError:
        return VectorFileError(self.source, line, problem)

    def _refuse_other_files(self) -> None:
        if not self._rest:
            raise self._error(0, "no vectors: the file is empty")
        for magic, kind, tool in ((b"\x1f\x8b", "gzip", "gzip"), (b"\xfd7zXZ", "xz", "xz")):
            if self._rest.startswith(magic):
                raise self._error(0, f"compressed with {kind}; use: {tool} -dc FILE | softnum vectors check -")
        self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")

    def _read_header(self) -> dict[str, str]:
        header, ours = {}, False
        while True:
            end = self._rest.find(b"\n")
            if end < 0 and not self._ended and len(self._rest) < _LONGEST_LINE:
                self._fill(1 << 16)
                continue
            line = self._rest[:end] if end >= 0 else self._rest
            if (line.strip() and not line.startswith(b"#")) or (not line and end < 0):
                return header
            text = line.decode("utf-8", "replace").strip()
            ours = ours or text.startswith(_FIRST_HEADER_LINE)
            key, colon, value = text.lstrip("# ").partition(":")
            if ours and colon:
                header[key.strip()] = value.strip()
            self._rest = self._rest[len(line) + 1 :]
            self._line += 1

    def rows(self, layout: TextLayout) -> Iterator[Rows]:
        """The vectors, some 2**16 at a time.

        Raises
        ------
        VectorFileError
            Where a line is not a vector, after the vectors before it were given out; if there is none at all; and if
            the header's count is not met.
        """
        total = 0
        for lines, data in self._chunks(_READ_ROWS * layout.width):
            block = layout.parse(data)
            if block is not None:
                total += len(block)
                yield Rows(np.arange(lines, lines + len(block)), block)
                continue
            numbers, good, problem = self._one_by_one(lines, data, layout)
            if numbers:
                total += len(numbers)
                yield Rows(np.array(numbers, np.int64), layout.parse(good))
            if problem is not None:
                raise problem
        if not total:
            raise self._error(0, "no vectors: there are only comments and blank lines")
        promised = self.header.get("vectors")
        if promised is not None and promised.isdecimal() and int(promised) != total:
            raise self._error(self._line, f"the file ends after {total} vectors; its header says {promised}")

    def _chunks(self, size: int) -> Iterator[tuple[int, bytes]]:
        """(number of the first line, whole lines) until the file ends; a last line may lack its newline."""
        while True:
            cut = self._rest.rfind(b"\n") + 1
            if not cut and len(self._rest) > _LONGEST_LINE:
                raise self._error(self._line, f"no end of line in {_LONGEST_LINE} bytes: not a text file of vectors")
            if cut and (len(self._rest) >= size or self._ended):
                data, self._rest = self._rest[:cut], self._rest[cut:]
                if b"\r" in data:
                    data = data.replace(b"\r\n", b"\n")
                first, self._line = self._line, self._line + data.count(b"\n")
                yield first, data
            elif self._ended:
                if self._rest:
                    data, self._rest = self._rest.removesuffix(b"\r"), b""
                    yield self._line, data
                return
            else:
                self._fill(max(1, size - len(self._rest)))

    def _one_by_one(self, first: int, data: bytes, layout: TextLayout):
        """(line numbers, normal lines, the error that ends them or None)"""
        lines = data.split(b"\n")
        whole = lines[-1] == b""
        if whole:
            lines.pop()
        found = [(n, line) for n, line in enumerate(lines, first) if line.strip() and not line.startswith(b"#")]
        numbers = [n for n, _ in found]
        # comments and other white space are what usually differs: that is no reason to look at every entry
        good = b"".join([b" ".join(line.split()) + b"\n" for _, line in found])
        if layout.parse(good) is not None:
            return numbers, good, None
        numbers, good = [], []
        for number, line in found:
            try:
                good.append(layout.normal_line(line))
            except ValueError as error:
                cut = not whole and number == first + len(lines) - 1
                problem = f"{'truncated (the file ends in this line): ' if cut else ''}{error}"
                return numbers, b"".join(good), self._error(number, problem)
            numbers.append(number)
        return numbers, b"".join(good), None
