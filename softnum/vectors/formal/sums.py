"""Sums of products in a unit as circuits: one rounding after the other, or all at once.

A step of a multiply-accumulate unit is a sum of one product that starts from C.
"""

from __future__ import annotations

from collections.abc import Callable

from softnum.mac.exact import ExactDotUnit
from softnum.mac.mad import MadUnit
from softnum.reference.facts import FixedFacts, Format
from softnum.vectors.formal.choices import first_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode
from softnum.vectors.formal.numbers import Exact, Number, exact_product, exact_sum, exact_value
from softnum.vectors.formal.rounding import Environment, Result, infinity, invalid, rounded
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["sum_of_products"]

#: what a MadUnit may have besides, and its value where it has not
_PLAIN = {"chunk": None, "lanes": 1, "reduction": "sequential", "outer_accumulator": None, "compensated": None,
          "flushes": False}  # fmt: skip


def sum_of_products(
    c: Circuit, spec: UnitSpec, words: dict[str, Bits], facts_of: Callable, steps: dict[str, Callable]
) -> Bits:
    """The code of a unit's sum: of a `MadUnit` that takes one product after the other, or of an `ExactDotUnit`.

    Parameters
    ----------
    c : Circuit
    spec : UnitSpec
        Of op dot.
    words : dict of str to Bits
        The columns a, b and, where there is one, c.
    facts_of : callable
        The facts of a format that circuits know.
    steps : dict of str to callable
        The circuits of fma, multiply and add, of numbers.

    Raises
    ------
    ValueError
        If the unit has parts that have no circuit.

    Examples
    --------
    >>> from softnum.vectors.formal import define, evaluate
    >>> circuit = define(UnitSpec.make("dot", "ExactDotUnit('e5m2', operand='e2m1fn')", length=2))
    >>> evaluate(circuit, {"a": [0x22], "b": [0x24]})  # 1 * 2 + 1 * 1
    {'result': array([66], dtype=object)}
    """
    unit = spec.unit
    if not isinstance(unit, (MadUnit, ExactDotUnit)) or unit.stochastic:
        raise ValueError(f"{unit} has no circuit; units that have are MadUnit and ExactDotUnit, without random bits")
    operands = [facts_of(fmt) for fmt in unit.operand]
    columns = list(zip((words["a"], words["b"]), operands, strict=True))
    pairs = [
        [decode(c, word[i * fmt.bits : (i + 1) * fmt.bits], fmt) for word, fmt in columns] for i in range(spec.shape[2])
    ]
    out = facts_of(unit.result)
    start = words.get("c", c.const(0, out.bits))
    overflow = unit.overflow or ("saturate" if isinstance(out, FixedFacts) else "infinity")
    env = Environment(unit.rounding, overflow, "after", "canonical")
    if isinstance(unit, MadUnit):
        return _in_steps(c, unit, pairs, start, out, env, facts_of, steps)
    return _at_once(c, pairs, decode(c, start, out), out, env)


def _in_steps(c: Circuit, unit: MadUnit, pairs: list, acc: Bits, out: Format, env, facts_of, steps) -> Bits:
    odd = [name for name, value in _PLAIN.items() if getattr(unit, name) != value]
    if odd:
        raise ValueError(f"{unit} has no circuit: its {odd[0]}; a MadUnit that takes one product at a time has one")
    product = None if unit.product is None else facts_of(unit.product)
    for pair in pairs:
        held = decode(c, acc, out)
        if product is None:
            acc = steps["fma"](c, [*pair, held], out, env).code
        else:
            rule = unit.overflow or ("saturate" if isinstance(product, FixedFacts) else "infinity")
            first = env._replace(rounding=unit.product_mode, overflow=rule)
            term = decode(c, steps["multiply"](c, pair, product, first).code, product)
            acc = steps["add"](c, [held, term], out, env).code
    return acc


def _at_once(c: Circuit, pairs: list, start: Number, out: Format, env: Environment) -> Bits:
    """The exact sum; infinities of both signs, and 0 times infinity, are invalid."""
    nan, total = start.nan, exact_value(c, start)
    endless = {0: start.infinite & ~start.sign, 1: start.infinite & start.sign}
    for x, y in pairs:
        infinite, sign = x.infinite | y.infinite, x.sign ^ y.sign
        nan = nan | x.nan | y.nan | (infinite & (x.zero | y.zero))
        endless = {0: endless[0] | (infinite & ~sign), 1: endless[1] | (infinite & sign)}
        term: Exact = exact_product(c, x, y)
        total = exact_sum(c, total, term, env.rounding == "down")
    cases: list[tuple[Bits, Result]] = [
        (nan | (endless[0] & endless[1]), invalid(c, out, env)),
        (endless[0] | endless[1], infinity(c, endless[1], out, env)),
    ]
    return first_of(c, cases, rounded(c, total, out, env)).code
