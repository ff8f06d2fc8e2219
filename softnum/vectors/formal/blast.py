"""Bit vectors as gates: a `Circuit` becomes an `Aig`."""

from __future__ import annotations

from collections.abc import Mapping

from softnum.vectors.formal.aig import FALSE, TRUE, Aig
from softnum.vectors.formal.circuit import Circuit

__all__ = ["blast"]


def blast(circuit: Circuit, graph: Aig, inputs: Mapping[str, list[int]] | None = None) -> dict[str, list[int]]:
    """Add a circuit's gates to a graph.

    Parameters
    ----------
    circuit : Circuit
    graph : Aig
    inputs : mapping of str to list of int, optional
        The literals of each input, the lowest bit first. By default inputs are made, named a[0], a[1], ...

    Returns
    -------
    dict of str to list of int
        The literals of each output, the lowest bit first.

    Examples
    --------
    >>> c, g = Circuit(), Aig()
    >>> c.output("sum", c.input("a", 2) + c.input("b", 2))
    >>> blast(c, g)
    {'sum': [14, 26]}
    >>> g.inputs
    ['a[0]', 'a[1]', 'b[0]', 'b[1]']
    """
    if inputs is None:
        inputs = {name: [graph.input(f"{name}[{i}]") for i in range(circuit.nodes[number].width)]
                  for name, number in circuit.inputs.items()}  # fmt: skip
    known: list[list[int]] = []
    for node in circuit.nodes:
        op, args = node.op, node.args
        if op == "const":
            bits = [args[0] >> i & 1 for i in range(node.width)]
        elif op == "input":
            bits = list(inputs[args[0]])
        elif op == "extract":
            bits = known[args[0]][args[1] : args[1] + node.width]
        elif op == "concat":
            bits = known[args[1]] + known[args[0]]
        elif op == "ite":
            condition = known[args[0]][0]
            bits = [graph.mux(condition, x, y) for x, y in zip(known[args[1]], known[args[2]], strict=True)]
        else:
            bits = _OPERATIONS[op](graph, *(known[i] for i in args))
        known.append(bits)
    return {name: known[number] for name, number in circuit.outputs.items()}


def _sum(g: Aig, a: list[int], b: list[int], carry: int = FALSE) -> tuple[list[int], int]:
    bits = []
    for x, y in zip(a, b, strict=True):
        half = g.xor(x, y)
        bits.append(g.xor(half, carry))
        carry = g.lor(g.land(x, y), g.land(half, carry))
    return bits, carry


def _difference(g: Aig, a: list[int], b: list[int]) -> tuple[list[int], int]:
    """a - b, and whether a >= b."""
    return _sum(g, a, [y ^ 1 for y in b], TRUE)


def _equal(g: Aig, a: list[int], b: list[int]) -> list[int]:
    return [g.any(g.xor(x, y) for x, y in zip(a, b, strict=True)) ^ 1]


def _shift(g: Aig, a: list[int], by: list[int], left: bool) -> list[int]:
    bits = a if left else a[::-1]
    for k, amount in enumerate(by):
        far = 1 << k
        moved = [FALSE] * len(bits) if far >= len(bits) else [FALSE] * far + bits[: len(bits) - far]
        bits = [g.mux(amount, x, y) for x, y in zip(moved, bits, strict=True)]
    return bits if left else bits[::-1]


def _product(g: Aig, a: list[int], b: list[int]) -> list[int]:
    total = [FALSE] * len(a)
    for i, y in enumerate(b):
        if y != FALSE:
            total = total[:i] + _sum(g, total[i:], [g.land(x, y) for x in a[: len(a) - i]])[0]
    return total


def _quotient(g: Aig, a: list[int], b: list[int]) -> list[int]:
    """Digit by digit; by zero it is all ones."""
    rest, digits = [FALSE] * (len(b) + 1), []
    divisor = [*b, FALSE]
    for x in reversed(a):
        rest = [x, *rest[:-1]]
        less, fits = _difference(g, rest, divisor)
        rest = [g.mux(fits, p, q) for p, q in zip(less, rest, strict=True)]
        digits.append(fits)
    return digits[::-1]


_OPERATIONS = {
    "not": lambda g, a: [x ^ 1 for x in a],
    "and": lambda g, a, b: [g.land(x, y) for x, y in zip(a, b, strict=True)],
    "or": lambda g, a, b: [g.lor(x, y) for x, y in zip(a, b, strict=True)],
    "xor": lambda g, a, b: [g.xor(x, y) for x, y in zip(a, b, strict=True)],
    "add": lambda g, a, b: _sum(g, a, b)[0],
    "sub": lambda g, a, b: _difference(g, a, b)[0],
    "mul": _product,
    "udiv": _quotient,
    "eq": _equal,
    "ult": lambda g, a, b: [_difference(g, a, b)[1] ^ 1],
    "shl": lambda g, a, b: _shift(g, a, b, True),
    "lshr": lambda g, a, b: _shift(g, a, b, False),
}
