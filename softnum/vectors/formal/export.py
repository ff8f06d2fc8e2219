"""Circuits as text for provers: SMT-LIB 2 (QF_BV), AIGER and BTOR2. One circuit always gives the same bytes.

Sources: the SMT-LIB Standard 2.6 and its theory FixedSizeBitVectors; Biere, The AIGER And-Inverter Graph (AIG) Format
Version 20071012; Niemetz et al., BTOR2, BtorMC and Boolector 3.0 (CAV 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from softnum.vectors.formal.aig import Aig
from softnum.vectors.formal.blast import blast
from softnum.vectors.formal.circuit import Circuit, Node
from softnum.vectors.formal.definition import ADMITTED, define
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["EXPORTS", "aiger", "assumption", "btor2", "export", "smtlib"]

_SMT = {
    "not": "bvnot", "and": "bvand", "or": "bvor", "xor": "bvxor", "add": "bvadd", "sub": "bvsub", "mul": "bvmul",
    "udiv": "bvudiv", "shl": "bvshl", "lshr": "bvlshr",
}  # fmt: skip
_BTOR = {"shl": "sll", "lshr": "srl", "ult": "ult"}


def smtlib(circuit: Circuit, comment: str = "") -> str:
    """The circuit in SMT-LIB 2: a constant for each input, a definition for each node and each output.

    >>> c = Circuit()
    >>> c.output("twice", c.input("a", 4) + c.input("b", 4))
    >>> print(smtlib(c), end="")
    (set-logic QF_BV)
    (declare-const a (_ BitVec 4))
    (declare-const b (_ BitVec 4))
    (define-fun twice () (_ BitVec 4) (bvadd a b))
    """
    uses = _uses(circuit)
    lines = [*(f"; {line}" for line in comment.splitlines()), "(set-logic QF_BV)"]
    texts: list[str] = []
    for number, node in enumerate(circuit.nodes):
        text = _smt_term(circuit, node, texts)
        if node.op == "input":
            lines.append(f"(declare-const {text} (_ BitVec {node.width}))")
        elif uses[number] > 1 and node.op != "const":
            lines.append(f"(define-fun ?{number} () (_ BitVec {node.width}) {text})")
            text = f"?{number}"
        texts.append(text)
    for name, number in circuit.outputs.items():
        lines.append(f"(define-fun {name} () (_ BitVec {circuit.nodes[number].width}) {texts[number]})")
    return "\n".join(lines) + "\n"


def assumption(circuit: Circuit) -> str:
    """That the operands are of the spec's space, as an assertion of SMT-LIB; nothing where it has all."""
    return f"(assert (= {ADMITTED} #b1))\n" if ADMITTED in circuit.outputs else ""


def _uses(circuit: Circuit) -> list[int]:
    """How often each node stands in another or is an output."""
    uses = [0] * len(circuit.nodes)
    for node in circuit.nodes:
        for number in _operands(node):
            uses[number] += 1
    for number in circuit.outputs.values():
        uses[number] += 1
    return uses


def _operands(node: Node) -> tuple[Any, ...]:
    return () if node.op in ("const", "input") else node.args[:1] if node.op == "extract" else node.args


def _smt_term(circuit: Circuit, node: Node, texts: list[str]) -> str:
    op, args = node.op, node.args
    if op == "const":
        return f"(_ bv{args[0]} {node.width})"
    if op == "input":
        return args[0]
    if op == "extract":
        return f"((_ extract {args[1] + node.width - 1} {args[1]}) {texts[args[0]]})"
    terms = [texts[i] for i in args]
    if op == "ite":
        return f"(ite (= {terms[0]} #b1) {terms[1]} {terms[2]})"
    if op in ("eq", "ult"):
        return f"(ite ({'=' if op == 'eq' else 'bvult'} {terms[0]} {terms[1]}) #b1 #b0)"
    if op in ("shl", "lshr") and (more := node.width - circuit.nodes[args[1]].width):
        terms[1] = f"((_ zero_extend {more}) {terms[1]})"
    return f"({_SMT.get(op, op)} {' '.join(terms)})"


def btor2(circuit: Circuit, comment: str = "") -> str:
    """The circuit in BTOR2, its outputs as lines of outputs.

    >>> c = Circuit()
    >>> c.output("twice", c.input("a", 4) + c.input("b", 4))
    >>> print(btor2(c), end="")
    1 sort bitvec 4
    2 input 1 a
    3 input 1 b
    4 add 1 2 3
    5 output 4 twice
    """
    lines: list[str] = []
    sorts: dict[int, int] = {}

    def line(text: str) -> int:
        lines.append(f"{len(lines) + 1} {text}")
        return len(lines)

    def sort(width: int) -> int:
        if width not in sorts:
            sorts[width] = line(f"sort bitvec {width}")
        return sorts[width]

    places: list[int] = []
    for node in circuit.nodes:
        op, args, kind = node.op, node.args, sort(node.width)
        if op == "const":
            text = f"constd {kind} {args[0]}"
        elif op == "input":
            text = f"input {kind} {args[0]}"
        elif op == "extract":
            text = f"slice {kind} {places[args[0]]} {args[1] + node.width - 1} {args[1]}"
        else:
            numbers = [places[i] for i in args]
            if op in ("shl", "lshr") and (more := node.width - circuit.nodes[args[1]].width):
                numbers[1] = line(f"uext {kind} {numbers[1]} {more}")
            text = f"{_BTOR.get(op, op)} {kind} {' '.join(map(str, numbers))}"
        places.append(line(text))
    for name, number in circuit.outputs.items():
        line(f"constraint {places[number]}" if name == ADMITTED else f"output {places[number]} {name}")
    return "".join(f"; {text}\n" for text in comment.splitlines()) + "\n".join(lines) + "\n"


def aiger(graph: Aig, outputs: Sequence[tuple[str, int]], comment: str = "", *, binary: bool = True) -> bytes:
    """A graph in AIGER, with the names of all inputs and of the outputs (name, literal).

    >>> g = Aig()
    >>> print(aiger(g, [("y", g.land(g.input("a"), g.input("b")))], binary=False).decode(), end="")
    aag 3 2 0 1 1
    2
    4
    6
    6 4 2
    i0 a
    i1 b
    o0 y
    """
    cone = graph.cone(literal for _, literal in outputs)
    place = {0: 0}
    for node in (*graph.input_nodes, *cone):
        place[node] = len(place)

    def moved(literal: int) -> int:
        return 2 * place[literal >> 1] | (literal & 1)

    inputs = len(graph.input_nodes)
    gates = []
    for node in cone:
        a, b = moved(graph.left[node]), moved(graph.right[node])
        gates.append((2 * place[node], max(a, b), min(a, b)))
    head = f"{len(place) - 1} {inputs} 0 {len(outputs)} {len(gates)}\n"
    ends = "".join(f"{moved(literal)}\n" for _, literal in outputs)
    if binary:
        packed = b"".join(_varint(out - a) + _varint(a - b) for out, a, b in gates)
        body = f"aig {head}{ends}".encode() + packed
    else:
        first = "".join(f"{2 * i + 2}\n" for i in range(inputs))
        body = f"aag {head}{first}{ends}{''.join(f'{o} {a} {b}' + chr(10) for o, a, b in gates)}".encode()
    names = [f"i{i} {name}\n" for i, name in enumerate(graph.inputs)]
    names += [f"o{i} {name}\n" for i, (name, _) in enumerate(outputs)]
    return body + "".join(names).encode() + (f"c\n{comment}\n".encode() if comment else b"")


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def _gates(circuit: Circuit, comment: str, binary: bool) -> bytes:
    graph = Aig()
    found = blast(circuit, graph)
    outputs = [(f"{name}[{i}]", literal) for name, bits in found.items() for i, literal in enumerate(bits)]
    return aiger(graph, outputs, comment, binary=binary)


#: ending of a file's name -> what writes it
EXPORTS: dict[str, Callable[[Circuit, str], bytes]] = {
    "smt2": lambda circuit, comment: (smtlib(circuit, comment) + assumption(circuit)).encode(),
    "aig": lambda circuit, comment: _gates(circuit, comment, True),
    "aag": lambda circuit, comment: _gates(circuit, comment, False),
    "btor2": lambda circuit, comment: btor2(circuit, comment).encode(),
}


def export(spec: VectorSpec, kind: str = "smt2") -> bytes:
    """The circuit of an operation, from its definition, as a file for provers.

    Parameters
    ----------
    spec : VectorSpec
        As of `define`.
    kind : {"smt2", "aig", "aag", "btor2"}
        SMT-LIB 2, AIGER in its binary or its text form, or BTOR2.

    Returns
    -------
    bytes
        Inputs are the operands (a, b, c; bits a[0], a[1] ... in AIGER, the lowest first) and, in a stochastic mode,
        random; outputs result and flags. Where the spec has a space, admitted says whether the operands are of it: it
        is asserted in SMT-LIB, a constraint in BTOR2, an output in AIGER.

    Raises
    ------
    ValueError
        For another kind, or an operation without a circuit.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> print(export(VectorSpec.make("compare_quiet_less", "e2m1fn")).decode().splitlines()[-1])
    (define-fun flags () (_ BitVec 5) (_ bv0 5))
    """
    if kind not in EXPORTS:
        raise ValueError(f"unknown file {kind!r} for provers; there are {', '.join(EXPORTS)}")
    comment = "softnum: " + spec.options().removeprefix("--op ")
    return EXPORTS[kind](define(spec), comment)
