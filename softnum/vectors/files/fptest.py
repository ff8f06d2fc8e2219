"""IBM FPgen's test suite for IEEE 754: ``b32+ =0 i -1.6E9177P49 -1.7FFFFFP127 -> -1.7FFFFFP127 x``.

Source: "Syntax of the Test Cases" (syntax.txt beside the Floating-Point Test-Suite for IEEE, IBM Labs in Haifa, FPgen
team). A line has the format and operation (b32+), the rounding mode, the trapped exceptions if there are any, the
operands, ``->``, the result, and the exceptions that occur. Numbers are <sign><significand>P<exponent>: behind the
point stands the fraction field in hexadecimal, right-aligned (23 bits in 6 digits); zeros, infinities and NaNs are
+Zero, -Inf, Q (quiet) and S (signaling). The files of the suite hold binary32; b16 and b64 are written alike.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from softnum.formats.names import format
from softnum.vectors.files import _text
from softnum.vectors.files.text import TextLayout, VectorReader, refuse_binary, shown
from softnum.vectors.plans.spec import Block, Spec, VectorSpec

__all__ = [
    "MODES", "OPERATIONS", "Case", "FptestLayout", "case_of", "is_title", "letters_of", "value_of",
    "went_to_a_handler",
]  # fmt: skip

#: name -> how a line names the operation
OPERATIONS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "fma": "*+", "sqrt": "V", "remainder": "%",
    "convert": "cff",
}  # fmt: skip
MODES = {"nearest_even": "=0", "nearest_away": "=^", "toward_zero": "0", "up": ">", "down": "<"}

_CASE = re.compile(rb"([bd]\d+\S*)\s")
_VALUE = re.compile(rb"[QS]\Z|([+-])(?:(Inf|Zero)\Z|([01])\.([0-9A-F]+)P([+-]?\d{1,5})\Z)", re.IGNORECASE)
_DIGITS = re.compile(rb"[\s0-9A-Fa-f]*\Z")
_TRAPS = re.compile(rb"[xuozi]+\Z")
_EXCEPTIONS = re.compile(rb"[xuvwozi]+\Z")


class Case(NamedTuple):
    """What a line says: operation with format, mode, trapped exceptions, operands, result, exceptions that occur."""

    operation: str
    mode: str
    traps: bytes
    operands: list[bytes]
    result: bytes
    raised: bytes

    def __bytes__(self) -> bytes:
        words = [self.operation.encode(), self.mode.encode(), self.traps, *self.operands, b"->", self.result]
        return b" ".join(word for word in (*words, self.raised) if word)

    def __str__(self) -> str:
        return bytes(self).decode()


def case_of(line: bytes) -> Case:
    """A line of a vector, in its parts; ValueError with what is wrong.

    >>> case_of(b"b32?- =0 i  -Inf -> 0x1")
    Case(operation='b32?-', mode='=0', traps=b'i', operands=[b'-Inf'], result=b'0x1', raised=b'')
    """
    refuse_binary(line)
    tokens = line.split()
    if not _CASE.match(line.strip() + b" "):
        raise ValueError(f"no operation of a format (such as b32+) in {shown(line)}")
    if tokens.count(b"->") != 1 or tokens.index(b"->") == len(tokens) - 1:
        raise ValueError(f"one '->' between operands and result is expected: {shown(line)}")
    if len(tokens) < 2 or tokens[1].decode() not in MODES.values():
        raise ValueError(f"no rounding mode ({' '.join(MODES.values())}) behind the operation: {shown(line)}")
    arrow = tokens.index(b"->")
    operands, results = tokens[2:arrow], tokens[arrow + 1 :]
    traps = b""
    if operands and _TRAPS.match(operands[0]):
        traps, operands = operands[0], operands[1:]
    if len(results) > 2:
        raise ValueError(f"more than a result and exceptions behind '->': {shown(line)}")
    raised = results[1] if len(results) == 2 else b""
    if raised and not _EXCEPTIONS.match(raised):
        raise ValueError(f"exceptions are letters of xuvwozi, found {shown(raised)}")
    return Case(tokens[0].decode(), tokens[1].decode(), traps, operands, results[0], raised)


def is_title(line: bytes) -> bool:
    """Whether a line is text, as files of the suite begin with it: no vector, nor all digits as other dialects have.

    >>> is_title(b"Floating point tests: Add: Shift"), is_title(b"3F800000 3F800000 40000000 00")
    (True, False)
    """
    return b"->" not in line and not _CASE.match(line.strip() + b" ") and not _DIGITS.match(line)


def went_to_a_handler(case: Case) -> bool:
    """Whether there is no result, or it is what a trapped exception other than inexact delivers.

    >>> went_to_a_handler(case_of(b"b32V =0 i -Inf -> # i"))
    True
    """
    trapped = set(case.traps.replace(b"u", b"uvw")) & set(case.raised)
    return case.result == b"#" or bool(trapped - set(b"x"))


def letters_of(flags: int, tininess: str) -> str:
    """The exceptions that flags say, in the order xuozi; underflow as v or w by where tininess is judged.

    >>> letters_of(3, "before")
    'xw'
    """
    underflow = "v" if tininess == "after" else "w"
    return "".join(name for bit, name in ((1, "x"), (2, underflow), (4, "o"), (8, "z"), (16, "i")) if flags & bit)


def value_of(where: str, token: bytes, exponent_bits: int, fraction_bits: int) -> bytes:
    """A number as `FptestLayout.format` writes it; ValueError if it is none of the format.

    >>> value_of("result", b"-zero", 8, 23), value_of("result", b"q", 8, 23)
    (b'-Zero', b'Q')
    """
    found = _VALUE.match(token)
    digits, bias = -(-fraction_bits // 4), (1 << exponent_bits - 1) - 1
    if not found:
        raise ValueError(f"{where}: {shown(token)} is no number such as +1.{'8' * digits}P0, +Inf, -Zero, Q or S")
    sign, name, lead, fraction, exponent = found.groups()
    if sign is None:
        return token.upper()
    if name is not None:
        return sign + name.capitalize()
    if len(fraction) != digits:
        width = f"{fraction_bits} bits take {digits}"
        raise ValueError(f"{where}: {shown(token)} has {len(fraction)} digit(s) behind the point where {width}")
    if int(fraction, 16) >> fraction_bits:
        raise ValueError(f"{where}: {shown(token)} exceeds {fraction_bits} bits behind the point (right-aligned)")
    power, least = int(exponent), 1 - bias
    if not (least <= power <= bias if lead == b"1" else power == least and int(fraction, 16)):
        rule = f"{least}..{bias}" if lead == b"1" else f"{least}, and the fraction is not 0 (+Zero is),"
        raise ValueError(f"{where}: the exponent of {shown(token)} must be {rule} behind {lead.decode()}.")
    return sign + lead + b"." + fraction.upper() + b"P" + str(power).encode()


class FptestLayout(TextLayout):
    """The lines of one operation, format and rounding mode; others in the same file are passed over and counted.

    What does not fit the syntax is refused: other formats than binary16, binary32 and binary64, stochastic rounding,
    overflow that saturates, units. NaNs lose their sign and payload. Underflow is written ``v`` (tininess after
    rounding) or ``w`` (before), and read as the syntax defines it; ``u`` alone counts for both.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.files.fptest import FptestLayout
    >>> spec = VectorSpec.make("add", "binary32")
    >>> FptestLayout(spec).format(spec.evaluate(np.array([[0xD86E9177], [0xFF7FFFFF]], np.uint32)))
    b'b32+ =0 -1.6E9177P49 -1.7FFFFFP127 -> -1.7FFFFFP127 x\\n'
    """

    ragged = True

    def lacks_flags(self, line: bytes) -> bool:
        """Never: a line without exceptions says that none occurs."""
        return False

    def __init__(self, spec: Spec) -> None:
        self._refuse(spec)
        super().__init__(spec)
        names = [f"b{f.bits}" for f in spec.formats[:1] + ((spec.out_fmt,) if spec.op == "convert" else ())]
        self.operation = "".join(names) + OPERATIONS[spec.op]
        self.mode = MODES[spec.rounding]
        self._prefix = f"{self.operation} {self.mode} ".encode()
        self._fields = [(f.exponent_bits, f.mantissa_bits) for f in (*spec.formats, spec.out_fmt)]
        self.width = len(self._prefix) + 14 * len(self._fields)  # of most lines
        self._skipped: dict[str, int] = {}

    @staticmethod
    def _refuse(spec: Spec) -> None:
        way = "; use another dialect (softnum, csv, jsonl, readmemh, npz)"
        if not isinstance(spec, VectorSpec):
            raise ValueError(f"fptest has no vectors of units{way}")
        if spec.op not in OPERATIONS:
            raise ValueError(f"fptest has no operation {spec.op} (it has {', '.join(OPERATIONS)}){way}")
        if spec.flush_inputs or spec.flush_results:
            raise ValueError(f"fptest has no flushing of subnormals{way}")
        known = [format(f"binary{bits}") for bits in (16, 32, 64)]
        for fmt in (*spec.formats, spec.out_fmt):
            if fmt not in known:
                raise ValueError(f"fptest has binary16, binary32 and binary64 (b16, b32, b64), not {fmt}{way}")
        if spec.op != "convert" and len({*spec.formats, spec.out_fmt}) > 1:
            raise ValueError(f"fptest: {spec.op} has operands and a result of one format{way}")
        if spec.rounding not in MODES:
            raise ValueError(f"fptest has no rounding mode {spec.rounding} (it has {', '.join(MODES)}){way}")
        if spec.overflow != "infinity":
            raise ValueError(f"fptest: overflow goes to infinity as in IEEE 754, not {spec.overflow}{way}")

    # -- out ----------------------------------------------------------------------------------------------------------
    def format(self, block: Block) -> bytes:
        """The lines of a block."""
        letters = [letters_of(flags, self.spec.tininess) for flags in range(32)]
        numbers = [np.ascontiguousarray(codes, np.uint64) for codes in (*block.operands, block.result)]
        ends = [f" {text}\n".encode() if text else b"\n" for text in letters]
        flags = np.ascontiguousarray(block.flags, np.uint8)
        return _text.format_floats(numbers, self._fields, self._prefix, b" -> ", flags, ends, len(block))

    # -- in -----------------------------------------------------------------------------------------------------------
    @classmethod
    def header_line(cls, line: bytes) -> str | None:
        """Whatever stands above the first line of a vector."""
        if _CASE.match(line) or b"->" in line:
            return None
        return line.removeprefix(cls.comment).decode("utf-8", "replace").strip()

    def begin(self, reader: VectorReader) -> None:
        """The reader's count of lines that were passed over."""
        self._skipped = reader.skipped

    def nothing(self) -> str:
        """What the file holds instead."""
        others = ", ".join(f"{what}: {count}" for what, count in sorted(self._skipped.items()))
        return f"no vectors of {self.operation} {self.mode}; the file has {others or 'none at all'}"

    def parse(self, data: bytes) -> Block | None:
        """The vectors of whole lines of this operation and mode, as `format` writes them."""
        if not data.endswith(b"\n"):
            return None
        found = _text.parse_floats(data, self._fields, self._prefix, b" -> ", self.spec.tininess == "after")
        if found is None:
            return None
        *numbers, flags = found
        columns = self.columns[:-1]
        return self.spec.block_of([*(v.astype(c.dtype) for v, c in zip(numbers, columns, strict=True)), flags])

    def tidied(self, lines: list[bytes]) -> None:
        """Lines are looked at one by one."""

    def read_line(self, line: bytes) -> list[tuple[bytes, int]]:
        """As for text; nothing for a line of another operation or mode, or of a result that a trap handler got."""
        if not line.strip() or line.startswith(self.comment):
            return []
        refuse_binary(line)
        if is_title(line):
            return self._skip("text")
        case = case_of(line)
        if (case.operation, case.mode) != (self.operation, self.mode):
            return self._skip(f"{case.operation} {case.mode}")
        wanted = len(self._fields) - 1
        if len(case.operands) != wanted:
            raise ValueError(f"{len(case.operands)} operand(s) where {self.operation} takes {wanted}: {shown(line)}")
        if went_to_a_handler(case):
            return self._skip("the result went to a trap handler")
        values = [
            value_of(f"operand {i}" if i <= wanted else "result", token, *self._fields[i - 1])
            for i, token in enumerate([*case.operands, case.result], 1)
        ]
        end = b" " + case.raised + b"\n" if case.raised else b"\n"
        return [(self._prefix + b" ".join(values[:-1]) + b" -> " + values[-1] + end, 0)]

    def _skip(self, what: str) -> list[Any]:
        self._skipped[what] = self._skipped.get(what, 0) + 1
        return []
