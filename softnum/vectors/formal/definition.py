"""Operations as circuits, from their definition: decoded exactly, computed exactly, rounded once."""

from __future__ import annotations

from collections.abc import Callable

from softnum.reference.facts import FixedFacts, FloatFacts, format_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import (
    Exact,
    Number,
    decode,
    exact_product,
    exact_sum,
    exact_value,
)
from softnum.vectors.formal.quotients import exact_quotient, exact_root, integral
from softnum.vectors.formal.rounding import (
    DIVIDE_BY_ZERO,
    INEXACT,
    INVALID,
    MODES,
    Environment,
    Result,
    goes_up,
    infinity,
    invalid,
    quiet,
    rounded,
)
from softnum.vectors.plans.operations import COMPARISONS
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["DEFINED", "define"]

#: exponents of more bits make magnitudes of tens of thousands of bits
_MOST_EXPONENT_BITS = 11
_MOST_BITS = 64
_FACTS = frozenset(
    ("op", "format", "result_format", "rounding", "overflow", "tininess", "nan", "flush", "stochastic_bits", "exact")
)


def define(spec: VectorSpec) -> Circuit:
    """An operation as a circuit of bit vectors, by its definition.

    Parameters
    ----------
    spec : VectorSpec
        One of ``DEFINED``, of formats of at most 64 bits and 11 exponent bits, in any mode that takes no random bits.

    Returns
    -------
    Circuit
        Its inputs are named as the spec's columns of operands (a, b, c), its outputs result and flags.

    Raises
    ------
    ValueError
        If the circuit of that operation, format or mode is not known.

    Notes
    -----
    A step of a multiply-accumulate unit with exact products and one rounding is an fma whose third operand and result
    have the accumulator's format.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> circuit = define(VectorSpec.make("fma", ("e5m2", "e5m2", "e6m9"), out_fmt="e6m9"))
    >>> list(circuit.inputs), list(circuit.outputs)
    (['a', 'b', 'c'], ['result', 'flags'])
    """
    if not isinstance(spec, VectorSpec) or spec.op not in DEFINED:
        raise ValueError(f"{spec.op} has no circuit; there are {', '.join(DEFINED)}")
    facts = spec.facts()
    if unknown := set(facts) - _FACTS:
        raise ValueError(f"{', '.join(sorted(unknown))}: the circuit of {spec.op} does not know it; leave it out")
    if facts["flush"] != "none":
        raise ValueError(f"flush {facts['flush']}: circuits flush nothing to zero")
    if spec.rounding not in MODES:
        raise ValueError(f"rounding {spec.rounding} takes random bits; circuits round in {', '.join(MODES)}")
    *formats, out = (_facts_of(fmt) for fmt in (*spec.formats, spec.out_fmt))
    c, env = Circuit(), Environment(spec.rounding, spec.overflow, spec.tininess, spec.nan)
    codes = [c.input(column.name, column.width) for column in spec.operand_columns]
    numbers = [decode(c, code, fmt) for code, fmt in zip(codes, formats, strict=True)]
    if spec.op in COMPARISONS:
        found = _compare(c, spec.op, numbers, formats)
    elif spec.op == "round_to_integral":
        found = _round_to_integral(c, numbers[0], out, env, spec.exact)
    else:
        found = DEFINED[spec.op](c, numbers, out, env)
    silent = out.silent if spec.op not in COMPARISONS else all(f.silent for f in formats)
    c.output("result", found.code)
    c.output("flags", c.const(0, 5) if silent else found.flags)
    return c


def _facts_of(fmt) -> FloatFacts | FixedFacts:
    """The facts of a format that circuits know; ValueError for others."""
    try:
        facts = format_of(fmt)
    except (AttributeError, TypeError):  # of a kind that the reference does not know
        facts = None
    if not isinstance(facts, (FloatFacts, FixedFacts)) or facts.bits > _MOST_BITS:
        raise ValueError(
            f"{fmt} has no circuit: it is neither a binary float nor fixed point of up to {_MOST_BITS} bits"
        )
    if isinstance(facts, FloatFacts) and facts.exponent_bits > _MOST_EXPONENT_BITS:
        raise ValueError(f"{fmt} has {facts.exponent_bits} exponent bits; circuits have at most {_MOST_EXPONENT_BITS}")
    return facts


def _first(c: Circuit, cases: list[tuple[Bits, Result]], otherwise: Result) -> Result:
    """The result of the first condition that holds."""
    for condition, found in reversed(cases):
        otherwise = Result(c.ite(condition, found.code, otherwise.code), c.ite(condition, found.flags, otherwise.flags))
    return otherwise


def _chosen(c: Circuit, x: Number, y: Number, env: Environment) -> Number:
    """The operand whose NaN is delivered, where one of them is a NaN: its sign and payload."""
    second = ~x.nan
    if env.nan == "arm":
        second |= y.signaling & ~x.signaling
    width = max(x.payload.width, y.payload.width)  # payloads begin with the quiet bit
    payloads = [n.payload.placed(width - n.payload.width) for n in (x, y)]
    return x._replace(
        nan=x.nan | y.nan,
        signaling=c.ite(second, y.signaling, x.signaling),
        sign=c.ite(second, y.sign, x.sign),
        payload=c.ite(second, payloads[1], payloads[0]),
    )


def _nan_case(c: Circuit, x: Number, y: Number, out, env: Environment) -> tuple[Bits, Result]:
    return x.nan | y.nan, quiet(c, _chosen(c, x, y, env), x.signaling | y.signaling, out, env)


def _convert(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    (x,) = numbers
    cases = [(x.nan, quiet(c, x, x.signaling, out, env)), (x.infinite, infinity(c, x.sign, out, env))]
    return _first(c, cases, rounded(c, exact_value(c, x), out, env))


def _sum(c: Circuit, x: Exact, x_infinite: Bits, y: Number, out, env: Environment) -> Result:
    """x + y, neither a NaN."""
    cases = [
        (x_infinite & y.infinite & (x.sign ^ y.sign), invalid(c, out, env)),
        (x_infinite, infinity(c, x.sign, out, env)),
        (y.infinite, infinity(c, y.sign, out, env)),
    ]
    return _first(c, cases, rounded(c, exact_sum(c, x, exact_value(c, y), env.rounding == "down"), out, env))


def _add(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    x, y = numbers
    return _first(c, [_nan_case(c, x, y, out, env)], _sum(c, exact_value(c, x), x.infinite, y, out, env))


def _subtract(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    x, y = numbers
    return _add(c, [x, y._replace(sign=y.sign ^ ~y.nan)], out, env)


def _multiply(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    x, y = numbers
    infinite = x.infinite | y.infinite
    cases = [
        _nan_case(c, x, y, out, env),
        (infinite & (x.zero | y.zero), invalid(c, out, env)),
        (infinite, infinity(c, x.sign ^ y.sign, out, env)),
    ]
    return _first(c, cases, rounded(c, exact_product(c, x, y), out, env))


def _fma(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    x, y, z = numbers
    infinite = x.infinite | y.infinite
    undefined = infinite & (x.zero | y.zero)
    pair = _chosen(c, x, y, env)
    chosen = _chosen(c, z, pair, env) if env.nan == "arm" else _chosen(c, pair, z, env)
    nan = quiet(c, chosen, x.signaling | y.signaling | z.signaling, out, env)
    if env.nan != "x86":
        nan = _first(c, [(undefined & z.nan & ~z.signaling, invalid(c, out, env))], nan)
    cases = [(x.nan | y.nan | z.nan, nan), (undefined, invalid(c, out, env))]
    return _first(c, cases, _sum(c, exact_product(c, x, y), infinite, z, out, env))


def _divide(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    x, y = numbers
    sign = x.sign ^ y.sign
    endless = infinity(c, sign, out, env)
    undefined = (x.zero & y.zero) | (x.infinite & y.infinite)
    cases = [
        _nan_case(c, x, y, out, env),
        (undefined | y.zero if out.p3109 else undefined, invalid(c, out, env)),
        (x.finite & y.zero, endless._replace(flags=endless.flags | DIVIDE_BY_ZERO)),
        (x.infinite | y.zero, endless),
        (y.infinite, rounded(c, Exact(sign, c.const(0, 1), 0), out, env)),
    ]
    return _first(c, cases, rounded(c, exact_quotient(c, x, y, out), out, env))


def _sqrt(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
    (x,) = numbers
    cases = [
        (x.nan, quiet(c, x, x.signaling, out, env)),
        (x.sign & ~x.zero, invalid(c, out, env)),
        (x.infinite, infinity(c, c.const(0, 1), out, env)),
    ]
    return _first(c, cases, rounded(c, exact_root(c, x, out), out, env))


def _round_to_integral(c: Circuit, x: Number, out, env: Environment, exact: bool) -> Result:
    value, half, rest = integral(c, x)
    up = goes_up(c, env.rounding, x.sign, value.magnitude[0], half, rest)
    whole = value.magnitude.extended(value.magnitude.width + 1)
    found = rounded(c, value._replace(magnitude=whole + up.extended(whole.width)), out, env)
    flags = found.flags | c.ite(half | rest, c.const(INEXACT, 5), 0)
    cases = [(x.nan, quiet(c, x, x.signaling, out, env)), (x.infinite, infinity(c, x.sign, out, env))]
    result = _first(c, cases, found._replace(flags=flags))
    return result if exact else result._replace(flags=result.flags & ~INEXACT & 31)


def _orders(c: Circuit, x: Number, y: Number) -> tuple[Bits, Bits]:
    """Whether x < y, and whether x == y, of two numbers that are not NaN; -0 equals +0."""
    a, b = exact_value(c, x), exact_value(c, y)
    unit = min(a.unit, b.unit)
    left, right = a.magnitude.placed(a.unit - unit), b.magnitude.placed(b.unit - unit)
    width = max(left.width, right.width) + 1
    endless = c.const(1 << (width - 1), width)
    left = c.ite(x.infinite, endless, left.extended(width))
    right = c.ite(y.infinite, endless, right.extended(width))
    zeros = x.zero & y.zero
    equal = zeros | (~(x.sign ^ y.sign) & (left == right))
    less = c.ite(x.sign ^ y.sign, x.sign & ~zeros, c.ite(x.sign, right < left, left < right))
    return less, equal


def _compare(c: Circuit, op: str, numbers: list[Number], formats: list) -> Result:
    x, y = numbers
    signaling, orders = COMPARISONS[op]
    less, equal = _orders(c, x, y)
    holds = c.const(0, 1)
    for order, condition in ((-1, less), (0, equal)):
        holds = holds | condition if order in orders else holds
    unordered = x.nan | y.nan
    raised = unordered if signaling else x.signaling | y.signaling
    return Result(holds & ~unordered, c.ite(raised, c.const(INVALID, 5), 0))


def _extremum(maximum: bool, number: bool) -> Callable:
    """Of IEEE 754-2019, 9.6: -0 lies below +0; ``number``: a NaN gives way to a number."""

    def define_extremum(c: Circuit, numbers: list[Number], out, env: Environment) -> Result:
        x, y = numbers
        less, equal = _orders(c, x, y)
        less |= equal & x.sign & ~y.sign
        greater = ~less & ~(equal & ~(x.sign ^ y.sign))
        first = y.nan | (~x.nan & (~less if maximum else ~greater))
        signaling = x.signaling | y.signaling
        nan, propagated = _nan_case(c, x, y, out, env)
        raised = c.ite(signaling, c.const(INVALID, 5), 0)
        results = [_first(c, [(n.infinite, infinity(c, n.sign, out, env))], rounded(c, exact_value(c, n), out, env))
                   for n in (x, y)]  # fmt: skip
        chosen = _first(c, [(first, results[0])], results[1])
        chosen = chosen._replace(flags=chosen.flags | raised)
        return _first(c, [((x.nan & y.nan) if number else nan, propagated)], chosen)

    return define_extremum


#: name -> what makes its circuit
DEFINED: dict[str, Callable | None] = {
    "convert": _convert, "add": _add, "subtract": _subtract, "multiply": _multiply, "fma": _fma, "divide": _divide,
    "sqrt": _sqrt, "round_to_integral": None, "minimum": _extremum(False, False), "maximum": _extremum(True, False),
    "minimum_number": _extremum(False, True), "maximum_number": _extremum(True, True),
    **dict.fromkeys(COMPARISONS),
}  # fmt: skip
