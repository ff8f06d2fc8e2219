"""Operations as circuits, from their definition: decoded exactly, computed exactly, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softnum.reference.facts import FixedFacts, Format
from softnum.vectors.formal.arithmetic import ARITHMETIC
from softnum.vectors.formal.block_dots import block_sum
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode, facts_of
from softnum.vectors.formal.integers import exponent_of, round_to_integral, to_integer
from softnum.vectors.formal.numbers import Number
from softnum.vectors.formal.ordering import compared, extremum
from softnum.vectors.formal.rounding import Environment, Result
from softnum.vectors.formal.signs import classified, neighbour, with_sign_of
from softnum.vectors.formal.sums import sum_of, sum_of_products
from softnum.vectors.formal.tables import TABULATED, tabulated
from softnum.vectors.formal.value_tables import ValueFacts
from softnum.vectors.plans.fpu import CLASS_MASK, EXTREMA, FUSED, SIGNS, cuda_nan
from softnum.vectors.plans.operations import COMPARISONS, nan_of
from softnum.vectors.plans.space import admitted_codes
from softnum.vectors.plans.spec import VectorSpec
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["ADMITTED", "DEFINED", "define"]

#: the output that says whether operands are of the spec's space
ADMITTED = "admitted"

_FACTS = frozenset(
    ("op", "format", "result_format", "rounding", "overflow", "tininess", "nan", "flush", "computes", "minmax",
     "stochastic_bits", "exact", "excluded", "exponents")
)  # fmt: skip
_SIGN_OPERATIONS = ("negate", "absolute", "copysign", *SIGNS)


def define(spec: VectorSpec | UnitSpec) -> Circuit:
    """An operation as a circuit of bit vectors, by its definition.

    Parameters
    ----------
    spec : VectorSpec or UnitSpec
        One of ``DEFINED``, of binary floats of at most 64 bits and 11 exponent bits, fixed point, posits, linear takums
        and tables of values of at most 10 bits, in any mode; or a dot product of a unit without random bits: MadUnit,
        FmaChainUnit, FusedDotUnit, TwoStageDotUnit, GroupedDotUnit, ExactDotUnit, ChunkedDotUnit of these.

    Returns
    -------
    Circuit
        Its inputs are named as the spec's columns of operands (a, b, c) and, in a stochastic mode, random; its outputs
        result and flags, and admitted where the spec has a space: whether the operands are in it.

    Raises
    ------
    ValueError
        If the circuit of that operation or format is not known.

    Notes
    -----
    A step of a multiply-accumulate unit is a dot product of length 1 with C; with exact products and one rounding, an
    fma whose third operand and result have the accumulator's format. Units have no flags.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> circuit = define(VectorSpec.make("fma", ("e5m2", "e5m2", "e6m9"), out_fmt="e6m9"))
    >>> list(circuit.inputs), list(circuit.outputs)
    (['a', 'b', 'c'], ['result', 'flags'])
    """
    if isinstance(spec, UnitSpec) and spec.op == "dot":
        c = Circuit()
        words = {column.name: c.input(column.name, column.width) for column in spec.operand_columns}
        c.output("result", block_sum(c, spec, words, sum_of) if spec.of_blocks else sum_of_products(c, spec, words))
        if spec.space:
            c.output(ADMITTED, _admitted(c, spec))
        return c
    if not isinstance(spec, VectorSpec) or spec.op not in DEFINED:
        raise ValueError(f"{spec.op} has no circuit; there are {', '.join(DEFINED)}")
    if unknown := set(spec.facts()) - _FACTS:
        raise ValueError(f"{', '.join(sorted(unknown))}: the circuit of {spec.op} does not know it; leave it out")
    c = Circuit()
    *formats, out = (facts_of(fmt) for fmt in (*spec.formats, spec.out_fmt))
    codes = [c.input(column.name, column.bits) for column in spec.operand_columns]
    random = None if spec.stochastic_bits is None else c.input("random", spec.stochastic_bits)
    profile = nan_of(spec.op, spec.nan) if spec.op == "to_integer" else spec.nan
    env = Environment(
        spec.rounding, spec.overflow, spec.tininess, {"cuda": "canonical"}.get(profile, profile), spec.flush_results,
        random,
    )  # fmt: skip
    found = _defined(c, spec, codes, formats, out, env)
    if spec.nan == "cuda" and spec.op not in ("to_integer", "next_up", "next_down", *_SIGN_OPERATIONS):
        code = cuda_nan(spec.out_fmt)
        nan = decode(c, found.code, out).nan
        found = found if code is None else found._replace(code=c.ite(nan, c.const(code, out.bits), found.code))
    silent = out.silent
    if spec.op in COMPARISONS:
        silent = all(f.silent and not isinstance(f, ValueFacts) for f in formats)
    c.output("result", found.code)
    c.output("flags", c.const(0, 5) if silent else found.flags)
    if spec.space:
        c.output(ADMITTED, _admitted(c, spec))
    return c


def _admitted(c: Circuit, spec: VectorSpec | UnitSpec) -> Bits:
    """Whether the operands are in the spec's space, by the runs of codes that are."""
    all_in = c.const(1, 1)
    for column in spec.operand_columns:
        fmt = column.format
        known = None if fmt is None else admitted_codes(fmt, spec.space.of_operands)
        if known is None:
            continue
        word = Bits(c, c.inputs[column.name])
        runs = []
        for start, length in zip(known.starts.tolist(), (known.before[1:] - known.before[:-1]).tolist(), strict=True):
            if runs and runs[-1][1] == start:
                runs[-1][1] = start + length
            else:
                runs.append([start, start + length])
        for i in range(column.count):
            wide, inside = word[i * fmt.bits : (i + 1) * fmt.bits].extended(fmt.bits + 1), c.const(0, 1)
            for start, end in runs:
                inside |= ~(wide < start) & (wide < end)
            all_in &= inside
    return all_in


def _defined(
    c: Circuit, spec: VectorSpec, codes: list[Bits], formats: list[Any], out: Format, env: Environment
) -> Result:
    op = spec.op
    if op in TABULATED:
        return tabulated(c, spec, codes)
    if op in _SIGN_OPERATIONS:
        return with_sign_of(c, op, codes, formats, env)
    if op == "classify":
        return classified(c, codes[0], formats[0], spec.out_fmt == CLASS_MASK)
    if op in ("next_up", "next_down"):
        return neighbour(c, codes[0], op == "next_down", formats[0], env)
    if op in FUSED:  # a NaN keeps its sign where it is delivered as x86's VFNMADD does
        for place, negative in zip((0, 2), FUSED[op], strict=True):
            if negative:
                x = decode(c, codes[place], formats[place])
                other = with_sign_of(c, "negate", [codes[place]], [formats[place]], env).code
                codes[place] = c.ite(x.nan, codes[place], other) if env.nan == "x86" else other
        op = "fma"
    numbers = [decode(c, code, fmt, spec.flush_inputs) for code, fmt in zip(codes, formats, strict=True)]
    if op in COMPARISONS:
        return compared(c, op, numbers, formats)
    if op in EXTREMA:
        return extremum(c, op, spec.minmax, numbers, codes, formats, out, env)
    if op == "round_to_integral":
        return round_to_integral(c, numbers[0], out, env, spec.exact)
    if op == "to_integer":
        return _to_integer(c, spec, numbers[0], out, env)
    return DEFINED[op](c, numbers, out, env)


def _to_integer(c: Circuit, spec: VectorSpec, x: Number, out: FixedFacts, env: Environment) -> Result:
    """By the rules of `softnum.ops.to_integer`; PTX's are Arm's, but for NaNs of and to 64 bits."""
    whose = nan_of(spec.op, spec.nan)
    wide = whose == "cuda" and (spec.formats[0].name == "binary64" or out.bits == 64)
    env = env._replace(nan="arm" if whose == "cuda" else whose)
    return to_integer(c, x, out, env, spec.exact, 1 << (out.bits - 1) if wide else None)


#: name -> what makes its circuit, where that is of numbers alone
DEFINED: dict[str, Callable[..., Any] | None] = {
    **ARITHMETIC, "from_integer": ARITHMETIC["convert"], **dict.fromkeys(FUSED), "round_to_integral": None,
    "to_integer": None, "logb": exponent_of, **dict.fromkeys(EXTREMA), **dict.fromkeys(COMPARISONS),
    **dict.fromkeys(_SIGN_OPERATIONS), "next_up": None, "next_down": None, "classify": None,
    **dict.fromkeys(TABULATED),
}  # fmt: skip
