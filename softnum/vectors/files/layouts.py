"""Dialects whose lines have fixed width: CSV, JSON lines, and the memory files of Verilog's $readmemh and $readmemb.

Sources: RFC 4180 (CSV), RFC 8259 (JSON; one object a line), IEEE 1364-2005, clause 17.2.9 (memory files).
"""

from __future__ import annotations

import csv
import json
import re

from softnum.vectors.files import _text
from softnum.vectors.files.text import (
    HEADER_NAME,
    PREFIX_HINT,
    UNKNOWN_AS_ZERO,
    UNKNOWN_FLAGS,
    UNKNOWN_RESULT,
    TextLayout,
    VectorReader,
    octets,
    octets_of,
    refuse_binary,
    shown,
)  # fmt: skip
from softnum.vectors.plans.spec import Block, Spec

__all__ = ["BinaryMemoryLayout", "CsvLayout", "HexMemoryLayout", "JsonLayout"]


class CsvLayout(TextLayout):
    """Comma-separated values below a line of column names, which may come in any order.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.files.layouts import CsvLayout
    >>> spec = VectorSpec.make("multiply", "e5m2")
    >>> layout = CsvLayout(spec)
    >>> layout.names() + layout.format(spec.evaluate(np.array([[0x3C], [0x7B]], np.uint8)))
    b'a,b,result,flags\\n3C,7B,7B,00\\n'
    """

    def _literals(self) -> list[bytes]:
        return [b"", *[b","] * (len(self.columns) - 1), b"\n"]

    def names(self) -> bytes:
        """The line of column names."""
        return ",".join(c.name for c in self.columns).encode() + b"\n"

    def lacks_flags(self, line: bytes) -> bool:
        """Whether the line of names has no flags."""
        return b"flags" not in line.lower()

    def begin(self, reader: VectorReader) -> None:
        """Read the line of names: the columns stand in its order."""
        wanted = ",".join(c.name for c in self.columns)
        found = reader.take_line()
        if found is None:
            return
        number, line = found
        try:
            names = [name.decode("ascii", "replace").lower() for name in _fields(line)]
        except ValueError as problem:
            raise reader.error(number, str(problem)) from None
        columns = {c.name: c for c in self.columns}
        missing = [name for name in columns if name not in names]
        odd = [name for name in names if name not in columns]
        double = [name for name in columns if names.count(name) > 1]
        for what, which in (("lacks", missing), ("has beside them", odd), ("has more than once", double)):
            if which:
                raise reader.error(
                    number, f"the line of column names must be {wanted} (in any order), and {what} "
                    f"{shown(','.join(which).encode())}: {shown(line)}"
                )  # fmt: skip
        self.columns = tuple(columns[name] for name in names)
        self.digits = [c.digits for c in self.columns]

    def tidied(self, lines: list[bytes]) -> tuple[list[int], bytes] | None:
        """As for text; lines with quotes take a closer look."""
        kept = [(n, line) for n, line in enumerate(lines) if line.strip() and not line.startswith(self.comment)]
        text = b"".join([line + b"\n" for _, line in kept])
        return None if b'"' in text else ([n for n, _ in kept], text.translate(None, b" \t"))

    def read_line(self, line: bytes) -> list[tuple[bytes, int]]:
        """As for text."""
        if not line.strip() or line.startswith(self.comment):
            return []
        refuse_binary(line)
        entries = _fields(line)
        if len(entries) != len(self.columns):
            names = ",".join(c.name for c in self.columns)
            raise ValueError(f"{len(entries)} columns where {len(self.columns)} are expected ({names}): {shown(line)}")
        places = [f"column {number} ({c.name})" for number, c in enumerate(self.columns, 1)]
        return [self._joined(places, entries)]


def _fields(line: bytes) -> list[bytes]:
    if b'"' not in line:
        return [field.strip() for field in line.split(b",")]
    try:
        fields = next(csv.reader([line.decode("ascii")], strict=True, skipinitialspace=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"no line of comma-separated values ({error}): {shown(line)}") from None
    return [field.strip().encode() for field in fields]


class _Object(list):
    """The pairs of a JSON object: a name may come twice."""


class JsonLayout(TextLayout):
    """One JSON object a line: a name for each column, its value a string of hexadecimal digits.

    JSON has no comments: the header is an object, too, in the first line.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.files.layouts import JsonLayout
    >>> spec = VectorSpec.make("multiply", "e5m2")
    >>> JsonLayout(spec).format(spec.evaluate(np.array([[0x3C], [0x7B]], np.uint8)))
    b'{"a":"3C","b":"7B","result":"7B","flags":"00"}\\n'
    """

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        # as Python's and others' printers set it, with spaces
        self._spaced = [text.replace(b",", b", ").replace(b":", b": ") for text in self.literals]

    def _literals(self) -> list[bytes]:
        names = [c.name.encode() for c in self.columns]
        return [b'{"%s":"' % names[0], *[b'","%s":"' % name for name in names[1:]], b'"}\n']

    @classmethod
    def header_lines(cls, facts: dict[str, str]) -> bytes:
        """The object that opens a file."""
        return json.dumps({HEADER_NAME: "1", **facts}).encode() + b"\n"

    @classmethod
    def header_line(cls, line: bytes) -> str | None:
        """The facts of the header's object, a line each."""
        if not line.strip():
            return ""
        if f'"{HEADER_NAME}"'.encode() not in line[:100]:
            return None
        try:
            facts = json.loads(line.decode())
        except (ValueError, RecursionError):
            return None
        if not isinstance(facts, dict) or HEADER_NAME not in facts:
            return None
        return "\n".join([HEADER_NAME, *(f"{key}: {value}" for key, value in facts.items() if key != HEADER_NAME)])

    def lacks_flags(self, line: bytes) -> bool:
        """Whether an object has no flags."""
        return b'"flags"' not in line

    def parse(self, data: bytes) -> Block | None:
        """As for text; with a space behind each comma and colon, too."""
        compact, spaced = self.literals, self._spaced
        for literals in (compact, spaced):
            self.literals, self.width = literals, sum(self.digits) + sum(map(len, literals))
            block = super().parse(data)
            if block is not None:
                break
        self.literals, self.width = compact, sum(self.digits) + sum(map(len, compact))
        return block

    def tidied(self, lines: list[bytes]) -> None:
        """Objects are always looked at one by one."""

    def read_line(self, line: bytes) -> list[tuple[bytes, int]]:
        """As for text."""
        if not line.strip():
            return []
        try:
            pairs = json.loads(line.decode(), object_pairs_hook=_Object)
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON ({error.msg} at position {error.pos + 1}): {shown(line)}") from None
        except UnicodeDecodeError as error:
            place = f"byte 0x{line[error.start]:02X} at position {error.start + 1}"
            raise ValueError(f"not text in UTF-8: {place}") from None
        except (ValueError, RecursionError):
            raise ValueError(f"no JSON object of hexadecimal strings: {shown(line)}") from None
        names = ", ".join(c.name for c in self.columns)
        if not isinstance(pairs, _Object):
            raise ValueError(f"a JSON object with the names {names} is expected, found {shown(line)}")
        values = dict(pairs)
        for column in self.columns:
            if column.name not in values:
                raise ValueError(f"the object lacks {column.name!r} (expected: {names}): {shown(line)}")
        if len(pairs) > len(self.columns):
            odd = next((name for name in values if name not in [c.name for c in self.columns]), None)
            what = "a name twice" if odd is None else f"the unknown name {shown(odd.encode('ascii', 'replace'))}"
            raise ValueError(f"the object has {what} (expected: {names}): {shown(line)}")
        entries = [values[c.name] for c in self.columns]
        for column, entry in zip(self.columns, entries, strict=True):
            if not isinstance(entry, str):
                digits = f"a string of {column.digits} hexadecimal digits"
                raise ValueError(f"{column.name!r}: {digits} is expected, not {json.dumps(entry)[:40]}")
        places = [repr(c.name) for c in self.columns]
        return [self._joined(places, [entry.encode("ascii", "replace") for entry in entries])]


class HexMemoryLayout(TextLayout):
    """A memory file of Verilog: one word a vector, its columns one behind the other, the first the most significant.

    In Verilog: ``reg [28:0] words [0:count-1]; ... $readmemh("v.mem", words); ... {a, b, result, flags} = words[i];``

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.files.layouts import HexMemoryLayout
    >>> spec = VectorSpec.make("multiply", "e5m2")
    >>> HexMemoryLayout(spec).format(spec.evaluate(np.array([[0x3C], [0x7B]], np.uint8)))
    b'078F6F60\\n'
    """

    comment = b"//"
    #: what a digit is called, the bits it stands for, and which digits there are
    kind, digit_bits, valid = "hexadecimal", 4, re.compile(rb"[0-9A-Fa-f]*\Z")
    task = "$readmemh"

    def __init__(self, spec: Spec) -> None:
        self.bits = sum(c.width for c in spec.columns)
        super().__init__(spec)
        self.digits = [-(-self.bits // self.digit_bits)]
        self.width = self.digits[0] + 1
        self._next = 0  # the address of the next word

    def _literals(self) -> list[bytes]:
        return [b"", b"\n"]

    @property
    def _binary(self) -> bool:
        return self.digit_bits == 1

    @property
    def _widths(self) -> list[int]:
        return [c.width for c in self.columns]

    def format(self, block: Block) -> bytes:
        """The words of a block, one a line."""
        parts = [octets_of(codes, c) for c, codes in zip(self.columns, block.columns, strict=True)]
        words = _text.join_words(parts, self._widths, len(block))
        return _text.format_rows([words], self.digits, self.literals, len(block), self._binary)

    def parse(self, data: bytes) -> Block | None:
        """The vectors of whole lines of one word each."""
        if not data or len(data) % self.width:
            return None
        size = -(-self.bits // 8)
        words = _text.parse_rows(data, self.digits, [size], self.literals, self._binary)
        if words is None or (self.bits % 8 and (words[0][:, -1] >> self.bits % 8).any()):
            return None
        return self._block(_text.split_words(words[0], self._widths, [octets(c) for c in self.columns]))

    def lacks_flags(self, line: bytes) -> bool:
        """Whether the line's first word is as short as without flags."""
        words = [word for word in line.partition(b"//")[0].split() if not word.startswith(b"@")]
        without = self.bits - self.columns[-1].width
        return bool(words) and len(words[0].replace(b"_", b"")) == -(-without // self.digit_bits)

    def took(self, count: int) -> None:
        """So many words were read."""
        self._next += count

    def end(self) -> None:
        """A comment must be closed."""
        if not self.outside:
            raise ValueError("the file ends in a comment that began with /*")

    def tidied(self, lines: list[bytes]) -> tuple[list[int], bytes] | None:
        """Lines of one word each without comments, if there are only comments of one line."""
        text = b"\n".join(lines)
        if not self.outside or b"/*" in text or b"@" in text:
            return None
        words = [(n, line.partition(b"//")[0].strip()) for n, line in enumerate(lines)]
        words = [(n, word) for n, word in words if word]
        return [n for n, _ in words], b"".join([word + b"\n" for _, word in words])

    def read_line(self, line: bytes) -> list[tuple[bytes, int]]:
        """As for text; a line may hold several words, and addresses that say what their order says."""
        vectors = []
        for token in self._without_comments(line).split():
            if token.startswith(b"@"):
                self._address(token)
            else:
                vectors.append(self._word(token))
                self._next += 1
        return vectors

    def _without_comments(self, line: bytes) -> bytes:
        if self.outside and b"/" not in line:
            return line
        kept = b""
        while line:
            if not self.outside:
                _, closed, line = line.partition(b"*/")
                self.outside = bool(closed)
                continue
            opening = re.search(rb"//|/\*", line)
            if opening is None:
                return kept + line
            kept += line[: opening.start()] + b" "
            if opening[0] == b"//":
                return kept
            self.outside, line = False, line[opening.end() :]
        return kept

    def _address(self, token: bytes) -> None:
        digits = token[1:].replace(b"_", b"")
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", digits):
            raise ValueError(f"the address {shown(token)} is not hexadecimal")
        if int(digits, 16) != self._next:
            raise ValueError(
                f"the address {shown(token)} leaves a gap or goes back: the next word is number @{self._next:X}; "
                "write the words in order, from 0 on, without gaps"
            )

    def _word(self, token: bytes) -> tuple[bytes, int]:
        word = re.sub(rb"(?<=.)_", b"", token) if b"_" in token else token
        digits = self.digits[0]
        known = word.translate(UNKNOWN_AS_ZERO)
        unknown = [at for at, byte in enumerate(word) if byte in b"xXzZ"] if known != word else []
        prefix = word[:2].lower() == b"0x" and len(word) != digits  # else its second digit is unknown
        if not self.valid.match(known) or prefix:
            refuse_binary(token)
            raise ValueError(f"{shown(token)} is not {self.kind}{PREFIX_HINT * prefix}")
        if len(word) != digits:
            raise ValueError(f"{shown(token)} has {len(word)} digit(s) where {self._layout_text()} take {digits}")
        marks = 0
        for at in unknown:
            marks |= self._marks_of(token, digits - 1 - at)
        if int(known[:1], 16) >> (self.bits - (digits - 1) * self.digit_bits):
            raise ValueError(f"{shown(token)} exceeds {self._layout_text()}")
        return known + b"\n", marks

    def _layout_text(self) -> str:
        columns = " ".join(f"{c.name}:{c.width}" for c in self.columns)
        return f"{self.bits} bits ({columns})"

    def _marks_of(self, token: bytes, place: int) -> int:
        """The marks of an unknown digit, `place` digits above the lowest."""
        touched, low = [], 0
        for column in reversed(self.columns):
            if low < (place + 1) * self.digit_bits and place * self.digit_bits < low + column.width:
                touched.append(column.name)
            low += column.width
        operands = [name for name in touched if name not in ("result", "flags")]
        if not self.mark or operands:
            names = " and ".join(reversed(touched))
            way = "" if len(touched) == 1 or not self.mark else "; in binary ($readmemb) a digit is of one column"
            raise ValueError(
                f"{shown(token)} is not {self.kind} in {names}; an unknown or undriven value of a simulation{way}"
            )
        return (UNKNOWN_RESULT if "result" in touched else 0) | (UNKNOWN_FLAGS if "flags" in touched else 0)


class BinaryMemoryLayout(HexMemoryLayout):
    """As `HexMemoryLayout`, in binary digits, as $readmemb reads them.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.files.layouts import BinaryMemoryLayout
    >>> spec = VectorSpec.make("multiply", "e2m1fn")
    >>> BinaryMemoryLayout(spec).format(spec.evaluate(np.array([[0x3], [0x7]], np.uint8)))
    b'00110111011100101\\n'
    """

    kind, digit_bits, valid = "binary", 1, re.compile(rb"[01]*\Z")
    task = "$readmemb"
