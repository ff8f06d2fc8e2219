"""A design beside the definition, with the same operands: one bit that says where they differ."""

from __future__ import annotations

from dataclasses import dataclass

from softnum.reference.facts import format_of
from softnum.vectors.formal.aig import TRUE, Aig
from softnum.vectors.formal.blast import blast
from softnum.vectors.formal.circuit import Circuit
from softnum.vectors.formal.decoding import decode
from softnum.vectors.formal.definition import ADMITTED, define
from softnum.vectors.formal.export import assumption, smtlib
from softnum.vectors.formal.unrolling import Unrolled
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["Miter", "is_nan", "miter_of", "query_of"]


@dataclass(frozen=True)
class Miter:
    """A graph whose first inputs are the operands' bits, and the literals of the design's answer and of what is right.

    ``differs`` is 1 where they do not agree.
    """

    graph: Aig
    operand_bits: int
    got: list[int]
    want: list[int]
    differs: int


def is_nan(spec: VectorSpec) -> Circuit:
    """Whether a code of the result's format is a NaN: from an input "code" to an output "nan"."""
    circuit, fmt = Circuit(), format_of(spec.out_fmt)
    code = circuit.input("code", fmt.bits)
    circuit.output("nan", decode(circuit, code, fmt).nan)
    return circuit


def miter_of(spec: VectorSpec, unrolled: Unrolled, any_nan: bool = False) -> Miter:
    """Both circuits in one graph.

    Parameters
    ----------
    spec : VectorSpec
    unrolled : Unrolled
        The design. Flags are compared if it has them.
    any_nan : bool
        Whether any NaN is right where a NaN is.

    Examples
    --------
    A conversion of a format to itself is a wire; one that drops the sign differs from it.

    >>> from softnum.vectors.formal.aig import index_planes
    >>> spec, design = VectorSpec.make("convert", "e2m1fn", out_fmt="e2m1fn"), Aig()
    >>> a = [design.input(f"a[{i}]") for i in range(4)]
    >>> for result in (a, [*a[:3], 0]):
    ...     miter = miter_of(spec, Unrolled(design, 4, result, None))
    ...     (differs,) = miter.graph.evaluate(index_planes(0, 4, 0, 1), [miter.differs])
    ...     print(f"{int(differs[0]) & 0xFFFF:016b}")
    0000000000000000
    1111111100000000
    """
    graph = Aig()
    operands, flat = {}, []
    for column in spec.input_columns:
        operands[column.name] = [graph.input(f"{column.name}[{i}]") for i in range(column.width)]
        flat += operands[column.name]
    rest = [graph.input(name) for name in unrolled.graph.inputs[unrolled.operand_bits :]]
    right = blast(define(spec), graph, operands)
    got = unrolled.graph.copy_into(graph, [*flat, *rest], unrolled.roots)
    want = right["result"] + (right["flags"] if unrolled.flags is not None else [])
    width = spec.out_fmt.bits
    wrong = graph.any(graph.xor(x, y) for x, y in zip(got[:width], want[:width], strict=True))
    if any_nan:
        circuit = is_nan(spec)
        nans = [blast(circuit, graph, {"code": bits})["nan"][0] for bits in (got[:width], want[:width])]
        wrong = graph.land(wrong, graph.land(*nans) ^ 1)
    wrong = graph.lor(wrong, graph.any(graph.xor(x, y) for x, y in zip(got[width:], want[width:], strict=True)))
    wrong = graph.land(wrong, *right.get(ADMITTED, [TRUE]))
    return Miter(graph, len(flat), got, want, wrong)


def query_of(spec: VectorSpec, unrolled: Unrolled, any_nan: bool = False) -> tuple[str, list[str]]:
    """SMT-LIB that asks for operands whose answer is wrong, and the names of its constants: the definition's words, the
    design's gates. Inputs that the answer must not depend on are constants, too."""
    definition = define(spec)
    lines = [smtlib(definition).rstrip("\n")]
    graph, columns = unrolled.graph, spec.input_columns
    constants = [c.name for c in columns]
    names: dict[int, str] = {0: "false"}
    bits = [f"(= ((_ extract {i} {i}) {c.name}) #b1)" for c in columns for i in range(c.width)]
    for node, text in zip(graph.input_nodes, bits, strict=False):
        names[node] = text
    for place in unrolled.others:
        node = graph.input_nodes[place]
        names[node] = f"(= other{place} #b1)"
        lines.append(f"(declare-const other{place} (_ BitVec 1))")
        constants.append(f"other{place}")

    def literal(number: int) -> str:
        text = names[number >> 1]
        return f"(not {text})" if number & 1 else text

    for node in graph.cone(unrolled.roots):
        lines.append(f"(define-fun g{node} () Bool (and {literal(graph.left[node])} {literal(graph.right[node])}))")
        names[node] = f"g{node}"

    def word(literals: list[int]) -> str:
        terms = [f"(ite {literal(x)} #b1 #b0)" for x in reversed(literals)]
        return terms[0] if len(terms) == 1 else f"(concat {' '.join(terms)})"

    width = spec.out_fmt.bits
    lines.append(f"(define-fun got () (_ BitVec {width}) {word(unrolled.result)})")
    wrong = "(distinct got result)"
    if any_nan:
        circuit = is_nan(spec)
        for name in ("got", "result"):
            lines.append(_nan_test(circuit, name))
        wrong = f"(and {wrong} (not (and (= nan_got #b1) (= nan_result #b1))))"
    if unrolled.flags is not None:
        wrong = f"(or {wrong} (distinct {word(unrolled.flags)} flags))"
    return "\n".join([*lines, f"{assumption(definition)}(assert {wrong})"]) + "\n", constants


def _nan_test(circuit: Circuit, name: str) -> str:
    """The circuit of `is_nan` as a definition about a word of that name."""
    definition = smtlib(circuit).splitlines()[2:]  # without the logic and the input
    return "\n".join(definition).replace("code", name).replace("?", f"?nan_{name}_").replace(
        "(define-fun nan ", f"(define-fun nan_{name} "
    )  # fmt: skip
