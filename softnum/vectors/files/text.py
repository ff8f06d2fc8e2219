"""Lines of fixed width: TestFloat's text, and the layout and the reader that the other dialects of text share.

Source: the documentation of Berkeley TestFloat 3e (testfloat_gen, testfloat_ver), extended as
`VectorSpec.columns` says.
Whole blocks are formatted and parsed as arrays of bytes; single lines are looked at only where a block is not of the
expected form, to skip comments or to say what is wrong where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from softnum.arrays.packing import pack_bits, unpack_bits
from softnum.vectors.files import _text
from softnum.vectors.files.compressed import Unreadable, opened
from softnum.vectors.plans.spec import Block, Column, Spec

__all__ = [
    "Rows",
    "TextLayout",
    "VectorFileError",
    "VectorReader",
    "codes_of",
    "octets",
    "octets_of",
    "refuse_binary",
    "shown",
]

_SPACE = 0x20
_READ_ROWS = 1 << 16
_READ_BYTES = 1 << 23
_LONGEST_LINE = 1 << 16
HEADER_NAME = "softnum vectors"
_HEXADECIMAL = frozenset(b"0123456789ABCDEFabcdef")
_UNKNOWN = frozenset(b"xXzZ")
UNKNOWN_AS_ZERO = bytes.maketrans(b"xXzZ", b"0000")
PREFIX_HINT = "; write the digits without 0x"
#: which columns of a line hold unknown digits
UNKNOWN_RESULT, UNKNOWN_FLAGS = 1, 2
_MARKS = {"result": UNKNOWN_RESULT, "flags": UNKNOWN_FLAGS}


def octets(column: Column) -> int:
    """Bytes of an entry in memory: of the type that holds a single code, or of the packed word of several."""
    return column.dtype.itemsize if column.count == 1 else -(-column.width // 8)


def octets_of(codes: np.ndarray, column: Column) -> np.ndarray:
    """The bytes of each entry, the least significant first: shape (n, octets)."""
    little = np.ascontiguousarray(codes, column.dtype.newbyteorder("<"))
    if column.dtype.names is not None:  # the high word comes first
        return little.view("<u8").reshape(len(codes), 2)[:, ::-1].copy().view(np.uint8)
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
    if column.dtype.names is not None:
        part = part.view("<u8")[:, ::-1].copy().view(np.uint8)
    codes = part.view(column.dtype.newbyteorder("<")).astype(column.dtype, copy=False)
    return codes if column.count > 1 else codes.ravel()


class VectorFileError(ValueError):
    """The error for a vector file that cannot be read: ``source`` (its name), ``line`` (from 1; 0: the whole file),
    ``problem``."""

    #: `check` puts here what it found before the unusable line: a CheckReport or None
    report = None

    def __init__(self, source: str, line: int, problem: str) -> None:
        self.source, self.line, self.problem = source, line, problem
        super().__init__(f"{source}, line {line}: {problem}" if line else f"{source}: {problem}")


class Rows(NamedTuple):
    """Parsed vectors.

    ``lines`` (int64, from 1) says where each stands in its file. ``unknown`` and ``unknown_flags`` say which results
    and which flags hold digits x or z (their block has 0 there): bool arrays, or None where none does.
    """

    lines: np.ndarray
    block: Block
    unknown: np.ndarray | None = None
    unknown_flags: np.ndarray | None = None


class TextLayout:
    """Where each column of a spec's vectors stands in a line: digits of fixed width, literal text between them.

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

    #: what begins a line of comment
    comment = b"#"
    #: whether lines are of any length: what is left of one that is cut off can look whole
    ragged = False
    #: whether the next line begins outside of a comment
    outside = True

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.columns: tuple[Column, ...] = spec.columns
        self.literals: list[bytes] = self._literals()
        self.digits = [c.digits for c in self.columns]
        self.width = sum(self.digits) + sum(map(len, self.literals))
        self.mark = False

    def _literals(self) -> list[bytes]:
        """What stands in front of each column's digits, and what ends the line."""
        return [b"", *[b" "] * (len(self.columns) - 1), b"\n"]

    # -- out ----------------------------------------------------------------------------------------------------------
    @classmethod
    def header_lines(cls, facts: dict[str, str]) -> bytes:
        """The comment lines that open a file.

        >>> from softnum.vectors import TextLayout
        >>> print(TextLayout.header_lines({"op": "fma"}).decode(), end="")
        # softnum vectors 1
        # op: fma
        """
        lines = [f"{HEADER_NAME} 1", *(f"{key}: {value}" for key, value in facts.items())]
        return b"".join(cls.comment + b" " + line.encode() + b"\n" for line in lines)

    def names(self) -> bytes:
        """A line of column names, in the dialects that have one."""
        return b""

    def format(self, block: Block) -> bytes:
        """The lines of a block of n vectors: n * width bytes, upper-case digits."""
        parts = [octets_of(codes, c) for c, codes in zip(self.columns, block.columns, strict=True)]
        return _text.format_rows(parts, self.digits, self.literals, len(block))

    # -- in -----------------------------------------------------------------------------------------------------------
    @classmethod
    def header_line(cls, line: bytes) -> str | None:
        """What a line above the first vector says, without its comment's mark; None if the vectors begin with it."""
        if line.strip() and not line.startswith(cls.comment):
            return None
        return line.removeprefix(cls.comment).decode("utf-8", "replace").strip()

    def lacks_flags(self, line: bytes) -> bool:
        """Whether a line has all columns but the flags."""
        return len(line.split()) == len(self.columns) - 1

    def begin(self, reader: VectorReader) -> None:
        """Take what stands above the vectors."""

    def end(self) -> None:
        """The file is read; ValueError if it must not end here."""

    def nothing(self) -> str:
        """What is said of a file without vectors."""
        return "no vectors: there are only comments and blank lines"

    def took(self, count: int) -> None:
        """So many vectors were parsed as whole blocks."""

    def parse(self, data: bytes) -> Block | None:
        """The vectors of whole lines; None if any of them is not exactly as `format` writes it (either case)."""
        if not data or len(data) % self.width:
            return None
        parts = _text.parse_rows(data, self.digits, [octets(c) for c in self.columns], self.literals)
        return None if parts is None else self._block(parts)

    def _block(self, parts: list[np.ndarray]) -> Block | None:
        values = {c.name: codes_of(part, c) for part, c in zip(parts, self.columns, strict=True)}
        if any(v is None for v in values.values()):
            return None
        return self.spec.block_of([values[c.name] for c in self.spec.columns])

    def tidied(self, lines: list[bytes]) -> tuple[list[int], bytes] | None:
        """Many lines without comments and other white space, and which they were; None if that takes a closer look."""
        kept = [(n, line) for n, line in enumerate(lines) if line.strip() and not line.startswith(self.comment)]
        return [n for n, _ in kept], b"".join([b" ".join(line.split()) + b"\n" for _, line in kept])

    def read_line(self, line: bytes) -> list[tuple[bytes, int]]:
        """The vectors of a line as `format` would write them, each with its marks; ValueError with what is wrong.

        A mark is UNKNOWN_RESULT | UNKNOWN_FLAGS; there are marks only if `mark` is set.
        """
        if not line.strip() or line.startswith(self.comment):
            return []
        refuse_binary(line)
        entries = line.split()
        if len(entries) != len(self.columns):
            names = " ".join(c.name for c in self.columns)
            way = "; without flags: --ignore-flags" if self.spec.has_flags and self.lacks_flags(line) else ""
            count = f"{len(entries)} columns where {len(self.columns)} are expected ({names})"
            raise ValueError(f"{count}: {shown(line)}{way}")
        places = [f"column {number} ({c.name})" for number, c in enumerate(self.columns, 1)]
        return [self._joined(places, entries)]

    def _joined(self, places: list[str], entries: list[bytes]) -> tuple[bytes, int]:
        """The line of checked entries, and their marks."""
        parts, marks = [], 0
        for literal, where, entry, column in zip(self.literals, places, entries, self.columns, strict=False):
            digits, mark = self._entry(where, entry, column)
            parts += [literal, digits]
            marks |= mark
        return b"".join([*parts, self.literals[-1]]), marks

    def _entry(self, where: str, entry: bytes, column: Column) -> tuple[bytes, int]:
        of = f" of {column.format}" if column.format is not None else ""
        mark = 0
        bad = frozenset(entry) - _HEXADECIMAL
        if bad:
            prefix = entry[:2].lower() == b"0x" and len(entry) != column.digits  # else its second digit is unknown
            unknown = bad <= _UNKNOWN and not prefix
            if not (unknown and self.mark and column.name in _MARKS):
                hint = "; an unknown or undriven value of a simulation" if unknown else PREFIX_HINT * prefix
                raise ValueError(f"{where}: {shown(entry)} is not hexadecimal{hint}")
            mark, entry = _MARKS[column.name], entry.translate(UNKNOWN_AS_ZERO)
        if len(entry) != column.digits:
            width = f"{column.width} bits{of} take {column.digits}"
            raise ValueError(f"{where}: {shown(entry)} has {len(entry)} digit(s) where {width}")
        if int(entry, 16) >> column.width:
            raise ValueError(f"{where}: {shown(entry)} exceeds {column.width} bits{of}")
        return entry, mark


def refuse_binary(line: bytes) -> None:
    """ValueError if a line holds what no text in ASCII does."""
    for at, byte in enumerate(line):
        if (byte < _SPACE and byte not in b"\t\f\v\r") or byte >= 0x7F:
            raise ValueError(f"not text: byte 0x{byte:02X} at position {at + 1}")


def shown(text: bytes) -> str:
    """A piece of a file in a message: quoted, and not too long."""
    words = text.decode("ascii", "replace")
    return repr(words if len(words) <= 60 else words[:57] + "...")


class VectorReader:
    """Reads a vector file of any text dialect in constant memory.

    Parameters
    ----------
    stream : binary file
        Anything whose ``read(n)`` returns bytes; gzip and xz are decompressed.
    source : str
        Its name in error messages.
    layout : type
        The layout of the dialect: `TextLayout` or a class derived from it.

    Attributes
    ----------
    header : dict
        The ``key: value`` pairs of the comment lines at the top; empty if there is no softnum header.
    skipped : dict
        How many lines `rows` passed over, by the reason: only IBM's files hold vectors of several operations.
    """

    def __init__(self, stream: BinaryIO, source: str, layout: type[TextLayout] = TextLayout) -> None:
        self.source, self.layout = source, layout
        self.stream = opened(stream)
        self.skipped: dict[str, int] = {}
        self._rest = b""
        self._line = 1  # number of the line that _rest begins with
        self._ended = False
        self._failed = None  # why a compressed stream ended
        self._longest = _LONGEST_LINE
        self._fill(1 << 16)
        if not self._rest:
            raise self.error(0, self._failed or "no vectors: the file is empty")
        self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
        self.header = self._read_header()

    def _fill(self, size: int) -> None:
        try:
            data = self.stream.read(size)
        except Unreadable as problem:
            data, self._failed = b"", str(problem)
        if isinstance(data, str):
            raise TypeError(f"{self.source}: a file opened in binary mode is needed")
        self._ended = not data
        self._rest += data

    def error(self, line: int, problem: str) -> VectorFileError:
        """What is wrong with a line (0: with the file)."""
        return VectorFileError(self.source, line, problem)

    def _no_end(self) -> VectorFileError:
        return self.error(self._line, f"no end of line in {self._longest} bytes: not a text file of vectors")

    # -- lines at the top ----------------------------------------------------------------------------------------------
    def _peek_line(self) -> bytes | None:
        """The next line without its end; None at the end of the file."""
        while (end := self._rest.find(b"\n")) < 0 and not self._ended and len(self._rest) < self._longest:
            self._fill(1 << 16)
        if end < 0 and (self._failed or not self._rest):  # what is cut off is no line
            return None
        return self._rest[:end] if end >= 0 else self._rest

    def _drop_line(self, line: bytes) -> None:
        if len(line) == len(self._rest) and not self._ended:
            raise self._no_end()
        self._rest = self._rest[len(line) + 1 :]
        self._line += 1

    def take_line(self) -> tuple[int, bytes] | None:
        """(number, line) of the next line that is no comment, without its end; None at the end of the file."""
        while (line := self._peek_line()) is not None:
            number = self._line
            if self.layout.header_line(line) is None:
                self._drop_line(line)
                return number, line.removesuffix(b"\r")
            self._drop_line(line)
        return None

    def _read_header(self) -> dict[str, str]:
        header, ours = {}, False
        while (line := self._peek_line()) is not None and (text := self.layout.header_line(line)) is not None:
            for part in text.split("\n"):
                ours = ours or part.startswith(HEADER_NAME)
                key, colon, value = part.partition(":")
                if ours and colon:
                    header[key.strip()] = value.strip()
            self._drop_line(line)
        return header

    def lacks_flags(self, spec: Spec) -> bool:
        """Whether the first line below the header has all columns of the spec but the flags."""
        while (line := self._peek_line()) is not None:
            if self.layout.header_line(line) is None:
                return self.layout(spec).lacks_flags(line)
            self._drop_line(line)
        return False

    # -- vectors -------------------------------------------------------------------------------------------------------
    def rows(self, spec: Spec, *, unknown: str = "error") -> Iterator[Rows]:
        """The vectors, some 2**16 at a time.

        Parameters
        ----------
        spec : VectorSpec or UnitSpec
            What they are of.
        unknown : {"error", "mark"}
            Whether digits x and z (unknown and undriven values of a simulation) in a result or in flags end the
            reading, or are marked in `Rows`. In any other column they end it.

        Raises
        ------
        VectorFileError
            Where a line is not a vector, after the vectors before it were given out; if there is none at all; and if
            the header's count is not met.
        """
        if unknown not in ("error", "mark"):
            raise ValueError(f"unknown must be 'error' or 'mark', got {unknown!r}")
        layout = self.layout(spec)
        layout.mark = unknown == "mark"
        layout.begin(self)
        self._longest = max(_LONGEST_LINE, 4 * layout.width)
        total = 0
        for first, data in self._chunks(min(_READ_ROWS * layout.width, max(_READ_BYTES, layout.width))):
            block = layout.parse(data) if layout.outside else None
            if block is not None:
                layout.took(len(block))
                total += len(block)
                yield Rows(np.arange(first, first + len(block)), block)
                continue
            rows, problem = self._one_by_one(first, data, layout)
            if rows is not None:
                total += len(rows.block)
                yield rows
            if problem is not None:
                raise problem
        if self._failed:
            raise self.error(self._line, self._failed)
        try:
            layout.end()
        except ValueError as problem:
            raise self.error(self._line, str(problem)) from None
        if not total:
            raise self.error(0, layout.nothing())
        promised = self.header.get("vectors")
        if promised is not None and promised.isdecimal() and int(promised) != total:
            raise self.error(self._line, f"the file ends after {total} vectors; its header says {promised}")

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number, line without its end) of every line below the header, whatever it says.

        Raises
        ------
        VectorFileError
            Where the stream, or the last line, is cut off, after what comes before it.
        """
        for first, data in self._chunks(_READ_BYTES):
            *whole, rest = data.split(b"\n")
            yield from enumerate(whole, first)
            if rest.strip():
                problem = f"truncated (the file ends in this line): no end of line behind {shown(rest)}"
                raise self.error(first + len(whole), f"{problem}; if nothing is missing, add one")
        if self._failed:
            raise self.error(self._line, self._failed)

    def _chunks(self, size: int) -> Iterator[tuple[int, bytes]]:
        """(number of the first line, whole lines) until the file ends; a last line may lack its newline."""
        while True:
            cut = self._rest.rfind(b"\n") + 1
            if not cut and len(self._rest) > self._longest:
                raise self._no_end()
            if cut and (len(self._rest) >= size or self._ended):
                data, self._rest = self._rest[:cut], self._rest[cut:]
                if b"\r" in data:
                    data = data.replace(b"\r\n", b"\n")
                first, self._line = self._line, self._line + data.count(b"\n")
                yield first, data
            elif self._ended:
                if self._rest and not self._failed:
                    data, self._rest = self._rest.removesuffix(b"\r"), b""
                    yield self._line, data
                return
            else:
                self._fill(max(1, size - len(self._rest)))

    def _one_by_one(self, first: int, data: bytes, layout: TextLayout) -> tuple[Rows | None, VectorFileError | None]:
        """(the vectors, the error that ends them or None)"""
        lines = data.split(b"\n")
        whole = lines[-1] == b""
        if whole:
            lines.pop()
        # comments and other white space are what usually differs: that is no reason to look at every entry
        tidied = layout.tidied(lines)
        if tidied is not None:
            block = layout.parse(tidied[1])
            if block is not None:
                layout.took(len(block))
                return Rows(np.array(tidied[0], np.int64) + first, block), None
        numbers, good, marks, problem = [], [], [], None
        for number, line in enumerate(lines, first):
            cut = not whole and number == first + len(lines) - 1
            try:
                if cut and layout.ragged and line.strip():
                    raise ValueError(f"no end of line behind {shown(line)}; if nothing is missing, add one")
                for text, mark in layout.read_line(line):
                    numbers.append(number)
                    good.append(text)
                    marks.append(mark)
            except ValueError as error:
                problem = self.error(number, f"{'truncated (the file ends in this line): ' if cut else ''}{error}")
                break
        if not numbers:
            return None, problem
        found = np.array(marks)
        masks = [found & which != 0 if (found & which).any() else None for which in (UNKNOWN_RESULT, UNKNOWN_FLAGS)]
        return Rows(np.array(numbers, np.int64), layout.parse(b"".join(good)), *masks), problem
