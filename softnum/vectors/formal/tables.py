"""Operations of few operands' bits as circuits by what the reference computes for each: elementary functions."""

from __future__ import annotations

from itertools import product

from softnum import reference
from softnum.formats.operation_names import ELEMENTARY
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.rounding import Result
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["MOST_TABLE_BITS", "TABULATED", "table_of", "tabulated"]

#: Operands of more bits than this in all have no circuit.
MOST_TABLE_BITS = 10
TABULATED = tuple(ELEMENTARY)


def table_of(c: Circuit, index: Bits, values: list[int], width: int) -> Bits:
    """The entry of a table that a number says, as a tree of choices by its bits, the highest first.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> c.output("square", table_of(c, c.input("x", 2), [0, 1, 4, 9], 4))
    >>> evaluate(c, {"x": [3, 0, 2]})["square"].tolist()
    [9, 0, 4]
    """
    row = [c.const(value, width) for value in values]
    for i in range(index.width):
        bit = index[i]
        row = [c.ite(bit, row[k + 1], row[k]) for k in range(0, len(row), 2)]
    return row[0]


def tabulated(c: Circuit, spec: VectorSpec, codes: list[Bits]) -> Result:
    """An elementary function, computed by `softnum.reference` for every operand.

    Raises
    ------
    ValueError
        If operands have more than ``MOST_TABLE_BITS`` bits, or the rounding takes random bits.
    """
    bits = sum(code.width for code in codes)
    if bits > MOST_TABLE_BITS:
        raise ValueError(f"{spec.op}: its circuit is a table, of at most {MOST_TABLE_BITS} operand bits, not {bits}")
    if spec.stochastic_bits is not None:
        raise ValueError(f"{spec.op}: its circuit is a table, and takes no random bits; not rounding {spec.rounding}")
    options = dict(
        out_fmt=spec.out_fmt, rounding=spec.rounding, overflow=spec.overflow, tininess=spec.tininess,
        flush_inputs=spec.flush_inputs, flush_results=spec.flush_results, nan=spec.nan,
    )  # fmt: skip
    if not spec.out_fmt.has_exceptions:
        options = {key: options[key] for key in ("out_fmt", "flush_inputs")}
    function, rows = getattr(reference, spec.op), [range(1 << code.width) for code in codes]
    found = [function(*row, spec.formats, **options) for row in product(*rows)]
    index = c.concat(*codes)
    result = table_of(c, index, [code for code, _ in found], spec.out_fmt.bits)
    return Result(result, table_of(c, index, [int(flags) for _, flags in found], 5))
