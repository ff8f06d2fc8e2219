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

from softnum.vectors.spec import Block, Column, VectorSpec

__all__ = ["Rows", "TextLayout", "VectorFileError", "VectorReader", "header_lines"]

_SPACE, _NEWLINE = 0x20, 0x0A
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_READ_ROWS = 1 << 16
_LONGEST_LINE = 1 << 16
_FIRST_HEADER_LINE = "# softnum vectors"
_BAD = 0xFF


def _four_digits() -> np.ndarray:
    """The four digits of each 16-bit number, as one uint32 in memory order."""
    value = np.arange(1 << 16)
    digits = [_DIGITS[value >> shift & 15] for shift in (12, 8, 4, 0)]
    return np.ascontiguousarray(np.stack(digits, 1)).view(np.uint32).ravel()


def _nibbles() -> np.ndarray:
    """The value of each hexadecimal digit's byte, in either case; 0xFF for any other byte."""
    table = np.full(256, _BAD, np.uint8)
    for digits in (b"0123456789ABCDEF", b"0123456789abcdef"):
        table[np.frombuffer(digits, np.uint8)] = np.arange(16)
    return table


def _pair_values() -> np.ndarray:
    """The byte that two digits, read as one uint16 in memory order, stand for; 0xFFFF where one is no digit."""
    first, second = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2).T
    high, low = _NIBBLE[first], _NIBBLE[second]
    return np.where((high == _BAD) | (low == _BAD), 0xFFFF, high.astype(np.uint16) << 4 | low).astype(np.uint16)


_FOUR_DIGITS = _four_digits()
_NIBBLE = _nibbles()
_PAIR_VALUE = _pair_values()


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
    spec : VectorSpec

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.vectors import TextLayout, VectorSpec
    >>> spec = VectorSpec.make("multiply", "e5m2")
    >>> TextLayout(spec).format(spec.evaluate(np.array([[0x3C], [0x7B]], np.uint8)))
    b'3C 7B 7B 00\\n'
    """

    def __init__(self, spec: VectorSpec) -> None:
        self.spec = spec
        self.columns: tuple[Column, ...] = spec.columns
        self.offsets: list[int] = []
        at = 0
        for column in self.columns:
            self.offsets.append(at)
            at += column.digits + 1
        self.width = at
        self._separators = [o + c.digits for o, c in zip(self.offsets, self.columns, strict=True)]

    # -- out ----------------------------------------------------------------------------------------------------------
    def format(self, block: Block) -> bytes:
        """The lines of a block of n vectors: n * width bytes, upper-case digits."""
        text = np.full((len(block), self.width), _SPACE, np.uint8)
        text[:, -1] = _NEWLINE
        for offset, column, codes in zip(self.offsets, self.columns, block.columns, strict=True):
            # 16 bits at a time, the most significant first; of all digits the last ones are kept
            size = max(2, codes.dtype.itemsize)
            words = codes.astype(f"<u{size}").view("<u2").reshape(len(block), -1)[:, ::-1]
            digits = _FOUR_DIGITS.take(words, mode="clip").view(np.uint8).reshape(len(block), 2 * size)
            text[:, offset : offset + column.digits] = digits[:, 2 * size - column.digits :]
        return text.tobytes()

    # -- in -----------------------------------------------------------------------------------------------------------
    def parse(self, data: bytes) -> Block | None:
        """The vectors of whole lines; None if any of them is not exactly as `format` writes it (either case)."""
        if not data or len(data) % self.width:
            return None
        text = np.frombuffer(data, np.uint8).reshape(-1, self.width)
        for at in self._separators[:-1]:
            if not (text[:, at] == _SPACE).all():
                return None
        if not (text[:, -1] == _NEWLINE).all():
            return None
        values = []
        for offset, column in zip(self.offsets, self.columns, strict=True):
            codes = self._column(text[:, offset : offset + column.digits], column)
            if codes is None or (column.bits % 4 and (codes >> column.bits).any()):
                return None
            values.append(codes)
        return self._block(values)

    @staticmethod
    def _column(text: np.ndarray, column: Column) -> np.ndarray | None:
        """The codes that the digits in text, of shape (n, digits), stand for; None if there is another character."""
        dtype = np.dtype(np.uint32 if column.name == "random" else np.uint8)
        if column.format is not None:
            dtype = column.format.storage_dtype
        odd, pairs = column.digits % 2, column.digits // 2
        octets = np.zeros((len(text), dtype.itemsize), np.uint8)  # the most significant byte first
        if odd:
            first = _NIBBLE[text[:, 0]]
            if (first == _BAD).any():
                return None
            octets[:, dtype.itemsize - pairs - 1] = first
        if pairs:
            values = _PAIR_VALUE.take(np.ascontiguousarray(text[:, odd:]).view(np.uint16), mode="clip")
            if (values > 0xFF).any():
                return None
            octets[:, dtype.itemsize - pairs :] = values
        return octets.view(dtype.newbyteorder(">")).ravel().astype(dtype)

    def _block(self, values: list[np.ndarray]) -> Block:
        n = len(self.spec.formats)
        drawn = values[n] if self.spec.stochastic_bits is not None else None
        return Block(tuple(values[:n]), drawn, values[-2], values[-1])

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
            bad = [chr(byte) for byte in entry if _NIBBLE[byte] == _BAD]
            if bad:
                hint = ""
                if entry[:2].lower() == b"0x":
                    hint = "; write the digits without 0x"
                elif set(bad) <= set("xXzZ"):
                    hint = "; an unknown or undriven value of a simulation"
                raise ValueError(f"{where}: {_shown(entry)} is not hexadecimal{hint}")
            of = f" of {column.format}" if column.format is not None else ""
            if len(entry) != column.digits:
                width = f"{column.bits} bits{of} take {column.digits}"
                raise ValueError(f"{where}: {_shown(entry)} has {len(entry)} digit(s) where {width}")
            if int(entry, 16) >> column.bits:
                raise ValueError(f"{where}: {_shown(entry)} exceeds {column.bits} bits{of}")
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
