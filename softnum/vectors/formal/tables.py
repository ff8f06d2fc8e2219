"""Operations of few operands' bits as circuits by what the reference computes for each: elementary functions."""

from __future__ import annotations

from itertools import product

from softnum import reference
from softnum.formats.checks import is_own
from softnum.formats.operation_names import ELEMENTARY
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.rounding import Result
from softnum.vectors.formal.value_tables import table_of
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["MOST_TABLE_BITS", "TABULATED", "tabulated"]

#: Operands of more bits than this in all have no circuit.
MOST_TABLE_BITS = 10
TABULATED = tuple(ELEMENTARY)


def tabulated(c: Circuit, spec: VectorSpec, codes: list[Bits]) -> Result:
    """An elementary function, computed by `softnum.reference` for every operand.

    Raises
    ------
    ValueError
        If operands have more than ``MOST_TABLE_BITS`` bits, or the rounding takes random bits.

    Examples
    --------
    >>> from softnum.vectors.formal import define, evaluate
    >>> circuit = define(VectorSpec.make("exp", "e2m1fn"))
    >>> evaluate(circuit, {"a": [0b0000, 0b0010]})["result"].tolist()  # e**0 = 1, e**1 to 3
    [2, 5]
    """
    bits = sum(code.width for code in codes)
    if bits > MOST_TABLE_BITS:
        raise ValueError(f"{spec.op}: its circuit is a table, of at most {MOST_TABLE_BITS} operand bits, not {bits}")
    if own := [fmt for fmt in (*spec.formats, spec.out_fmt) if is_own(fmt)]:
        raise ValueError(f"{spec.op} of {own[0]}: no circuit; the reference has no functions of tables of values")
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
