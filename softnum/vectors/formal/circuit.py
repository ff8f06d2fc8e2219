"""Circuits of bit vectors: nodes, each made of earlier ones, with the operations of SMT-LIB's QF_BV."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Bits", "Circuit", "Node", "apply"]

#: two vectors of one width
_ALIKE = ("and", "or", "xor", "add", "sub", "mul", "udiv", "eq", "ult")
_WORDS = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "add": operator.add, "sub": operator.sub,
    "mul": operator.mul, "eq": operator.eq, "ult": operator.lt,
}  # fmt: skip
_COMMUTE = ("and", "or", "xor", "add", "mul", "eq")


class Node(NamedTuple):
    """An operation, the width of what it gives, and its arguments: numbers of earlier nodes.

    "const" has its value, "input" its name, "extract" a node and the lowest bit that is taken. "shl" and "lshr" shift
    by a number that may have fewer bits; bits that leave are lost. "udiv" by zero is all ones, as in SMT-LIB.
    """

    op: str
    width: int
    args: tuple[Any, ...]


class Bits:
    """A vector of bits in a circuit. Operators act on vectors of one width, an int being one of the other's width.

    ``x[i]`` is a bit and ``x[low:high]`` the bits from low up to below high; ``x == y`` and ``x < y`` are vectors of
    one bit, ``<`` of unsigned numbers.
    """

    __slots__ = ("circuit", "node", "width")
    __hash__ = None

    def __init__(self, circuit: Circuit, node: int) -> None:
        self.circuit, self.node = circuit, node
        self.width = circuit.nodes[node].width

    def _two(self, op: str, other: Bits | int) -> Bits:
        return self.circuit.make(op, self, self.circuit.const(other, self.width) if isinstance(other, int) else other)

    def __invert__(self) -> Bits:
        return self.circuit.make("not", self)

    def __and__(self, other: Bits | int) -> Bits:
        return self._two("and", other)

    def __or__(self, other: Bits | int) -> Bits:
        return self._two("or", other)

    def __xor__(self, other: Bits | int) -> Bits:
        return self._two("xor", other)

    def __add__(self, other: Bits | int) -> Bits:
        return self._two("add", other)

    def __sub__(self, other: Bits | int) -> Bits:
        return self._two("sub", other)

    def __mul__(self, other: Bits | int) -> Bits:
        return self._two("mul", other)

    def __floordiv__(self, other: Bits | int) -> Bits:
        return self._two("udiv", other)

    def __eq__(self, other: Bits | int) -> Bits:
        return self._two("eq", other)

    def __ne__(self, other: Bits | int) -> Bits:
        return ~self._two("eq", other)

    def __lt__(self, other: Bits | int) -> Bits:
        return self._two("ult", other)

    def __gt__(self, other: Bits | int) -> Bits:
        other = self.circuit.const(other, self.width) if isinstance(other, int) else other
        return other._two("ult", self)

    def __lshift__(self, by: Bits) -> Bits:
        return self.circuit.make("shl", self, by)

    def __rshift__(self, by: Bits) -> Bits:
        return self.circuit.make("lshr", self, by)

    def __getitem__(self, place: int | slice) -> Bits:
        low, high = (
            (place.start or 0, self.width if place.stop is None else place.stop)
            if isinstance(place, slice)
            else (place, place + 1)
        )
        return self.circuit.extract(self, low, high)

    def any(self) -> Bits:
        """Whether a bit is 1."""
        return self if self.width == 1 else self != 0

    def all(self) -> Bits:
        """Whether all bits are 1."""
        return self if self.width == 1 else self == (1 << self.width) - 1

    def extended(self, width: int) -> Bits:
        """The same number in at least so many bits."""
        more = width - self.width
        return self if more <= 0 else self.circuit.concat(self.circuit.const(0, more), self)

    def sized(self, width: int) -> Bits:
        """The number modulo 2**width, in that width."""
        return self.extended(width) if width >= self.width else self[:width]

    def placed(self, zeros: int) -> Bits:
        """The number times 2**zeros, in as many more bits."""
        return self.circuit.concat(self, self.circuit.const(0, zeros)) if zeros else self


class Circuit:
    """A graph of `Node`, with named inputs and outputs. Nodes that would be constant or equal an earlier one are not
    made, so that one construction always gives one numbering.

    Examples
    --------
    >>> c = Circuit()
    >>> a, b = c.input("a", 4), c.input("b", 4)
    >>> c.output("sum", a.extended(5) + b.extended(5))
    >>> [node.op for node in c.nodes]
    ['input', 'input', 'const', 'concat', 'concat', 'add']
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}
        self._known: dict[Node, int] = {}

    def _node(self, op: str, width: int, *args) -> Bits:
        node = Node(op, width, args)
        number = self._known.get(node)
        if number is None:
            number = self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return Bits(self, number)

    def input(self, name: str, width: int) -> Bits:
        """A new input; ValueError if the name is taken."""
        if name in self.inputs:
            raise ValueError(f"there is an input {name!r} already")
        found = self._node("input", width, name)
        self.inputs[name] = found.node
        return found

    def output(self, name: str, bits: Bits) -> None:
        """Name what the circuit gives."""
        self.outputs[name] = bits.node

    def const(self, value: int, width: int) -> Bits:
        """A number, modulo 2**width."""
        return self._node("const", width, value & (1 << width) - 1)

    def _value(self, bits: Bits) -> int | None:
        node = self.nodes[bits.node]
        return node.args[0] if node.op == "const" else None

    def make(self, op: str, *args: Bits) -> Bits:
        """An operation on vectors: "not", or one of two vectors."""
        a = args[0]
        if op in _ALIKE and a.width != args[1].width:
            raise ValueError(f"{op} of {a.width} and {args[1].width} bits: the widths must agree")
        if op in ("shl", "lshr") and args[1].width > a.width:
            raise ValueError(f"{op} of {a.width} bits by a number of {args[1].width}: a wider one is not expressed")
        width = 1 if op in ("eq", "ult") else a.width
        values = [self._value(x) for x in args]
        if None not in values:
            return self.const(apply(op, width, values, [x.width for x in args]), width)
        simple = self._simpler(op, args, values)
        if simple is not None:
            return simple
        numbers = [x.node for x in args]
        return self._node(op, width, *(sorted(numbers) if op in _COMMUTE else numbers))

    def _simpler(self, op: str, args: tuple[Bits, ...], values: list[int | None]) -> Bits | None:
        a = args[0]
        if op == "not":
            inner = self.nodes[a.node]
            return Bits(self, inner.args[0]) if inner.op == "not" else None
        b, ones = args[1], (1 << a.width) - 1
        if values[0] is not None and op in _COMMUTE:
            a, b, values = b, a, values[::-1]
        if a.node == b.node and op in ("and", "or"):
            return a
        if a.node == b.node and op in ("xor", "sub", "ult", "eq"):
            return self.const(op == "eq", 1 if op in ("eq", "ult") else a.width)
        if values[1] == 0:
            if op in ("and", "mul", "ult"):
                return self.const(0, 1 if op == "ult" else a.width)
            if op in ("or", "xor", "add", "sub", "shl", "lshr"):
                return a
        if values[1] == ones:
            if op == "and":
                return a
            if op == "or":
                return b
            if op == "xor" or (op == "eq" and a.width == 1):
                return ~a if op == "xor" else a
        if op == "eq" and a.width == 1 and values[1] == 0:
            return ~a
        return a if op in ("mul", "udiv") and values[1] == 1 else None

    def ite(self, condition: Bits, then: Bits | int, other: Bits | int) -> Bits:
        """``then`` where a bit is 1, else ``other``; one of the two may be an int."""
        if condition.width != 1:
            raise ValueError(f"a condition has one bit, not {condition.width}")
        if isinstance(then, int):
            then = self.const(then, other.width)
        if isinstance(other, int):
            other = self.const(other, then.width)
        if then.width != other.width:
            raise ValueError(f"ite of {then.width} and {other.width} bits: the widths must agree")
        value = self._value(condition)
        if value is not None or then.node == other.node:
            return then if value or then.node == other.node else other
        return self._node("ite", then.width, condition.node, then.node, other.node)

    def concat(self, *parts: Bits | None) -> Bits:
        """Vectors side by side, the first in the most significant bits; what is None is left out."""
        vectors = [p for p in parts if p is not None]
        whole = vectors[0]
        for low in vectors[1:]:
            a, b = self._value(whole), self._value(low)
            width = whole.width + low.width
            whole = (
                self.const(a << low.width | b, width)
                if None not in (a, b)
                else self._node("concat", width, whole.node, low.node)
            )
        return whole

    def extract(self, bits: Bits, low: int, high: int) -> Bits:
        """The bits from low up to below high."""
        if not 0 <= low < high <= bits.width:
            raise ValueError(f"bits {low} to {high - 1} are not in a vector of {bits.width}")
        if high - low == bits.width:
            return bits
        node = self.nodes[bits.node]
        if node.op == "const":
            return self.const(node.args[0] >> low, high - low)
        if node.op == "extract":
            return self.extract(Bits(self, node.args[0]), low + node.args[1], high + node.args[1])
        if node.op == "concat":
            lower = Bits(self, node.args[1])
            if high <= lower.width:
                return self.extract(lower, low, high)
            if low >= lower.width:
                return self.extract(Bits(self, node.args[0]), low - lower.width, high - lower.width)
        return self._node("extract", high - low, bits.node, low)


def apply(op: str, width: int, values: Sequence[int], widths: Sequence[int]) -> int:
    """What an operation of vectors gives for numbers: ints, or arrays of ints (dtype object).

    >>> apply("shl", 4, [9, 1], [4, 2])
    2
    """
    mask = (1 << width) - 1
    a, b = values[0], values[1] if len(values) > 1 else 0
    if op == "not":
        return a ^ mask
    if op == "udiv":
        zero = _whole(b == 0)
        return (a // (b + zero)) * (1 - zero) + zero * mask
    if op in ("shl", "lshr"):  # by the width at most, so that no number grows beyond reason
        far = _whole(b > widths[0])
        by = b * (1 - far) + widths[0] * far
        return (a << by) & mask if op == "shl" else a >> by
    return _whole(_WORDS[op](a, b)) & mask


def _whole(value):
    """Truth as 0 and 1, in Python's integers."""
    if isinstance(value, np.ndarray):
        return value.astype(int).astype(object) if value.dtype.kind == "b" else value
    return int(value)
