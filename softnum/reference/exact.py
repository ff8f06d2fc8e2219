"""The exact dot-product unit: a sum of Fractions, delivered once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from softnum.reference.facts import Format, format_of
from softnum.reference.random_words import random_words_matmul
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode


def exact_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    operand: Format | str | Sequence[Format | str],
    accumulator: Format | str,
    rounding: str = "nearest_even",
    overflow: str | None = None,
    stochastic_bits: int = 32,
    c: int | None = None,
    key: int | tuple[int, int] | None = None,
    batch: int = 0,
    m: int = 0,
    n: int = 0,
    random_bits: int | None = None,
    random: str = "philox4x32-10",
) -> tuple[int, Flags]:
    """One dot product as `softnum.ExactDotUnit` computes it: the exact sum, rounded once.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    operand : format, or a pair of formats
        The format of ``a_codes`` and ``b_codes``.
    accumulator : format
        The format of ``c`` and of the result.
    rounding, overflow, stochastic_bits
        Of the one rounding, as in `round_value`.
    c : int, optional
        The code of the sum's first term; +0 if missing.
    key : int or (seed, stream), optional
        Where a stochastic rounding's word comes from, with ``batch``, ``m`` and ``n``, the result's indices: the sum's
        word of step 0 (`random_words_matmul`).
    random_bits : int, optional
        The random word itself.
    random : str
        The source of the key's word, as `softnum.MadUnit` names it.

    Returns
    -------
    code : int
        In ``accumulator``.
    flags : Flags

    Raises
    ------
    ValueError
        If the lengths differ, a stochastic rounding has no random word, or a parameter is out of range.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> one = 0x3C  # 1.0 in e5m2, in which 8 + 1 rounds to 8
    >>> ref.to_fraction(ref.exact_dot([one] * 20, [one] * 20, operand="e5m2", accumulator="e5m2")[0], "e5m2")
    Fraction(20, 1)
    """
    operands = tuple(operand) if isinstance(operand, (tuple, list)) else (operand, operand)
    accumulator = format_of(accumulator)
    if len(a_codes) != len(b_codes):
        raise ValueError(f"a dot product needs equally long operands, got {len(a_codes)} and {len(b_codes)}")
    if not accumulator.has_zero:
        raise ValueError(f"sums start from +0, which {accumulator} lacks")
    if random_bits is None and key is not None:
        seed, stream = key if isinstance(key, tuple) else (key, 0)
        random_bits = random_words_matmul(seed, stream, batch, m, n, 0, stochastic_bits, False, random)[1]
    env = environment_of(accumulator, rounding, overflow, stochastic_bits, random_bits)
    if not a_codes:
        return (0 if c is None else c), Flags(0)
    _, sums = exact_terms(a_codes, b_codes, operands, accumulator, c, env.rounding)
    return deliver(sums[-1], accumulator, env)


def exact_terms(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    operands: Sequence[Format | str],
    accumulator: Format | str,
    c: int | None,
    rounding: str,
) -> tuple[list[Value], list[Value]]:
    """The terms of a sum, C (or +0) and the exact products, and its exact value after each of them.

    A term or sum of the kind "invalid" is infinity times zero, infinities of both signs, or a signaling NaN.
    """
    pairs = [(decode(x, operands[0]), decode(y, operands[1])) for x, y in zip(a_codes, b_codes, strict=True)]
    terms = [decode(0 if c is None else c, accumulator), *(_product(x, y) for x, y in pairs)]
    total = _Total()
    return terms, [total.and_then(term, rounding == "down") for term in terms]


def sum_of_terms(terms: Sequence[Value], down: bool) -> Value:
    """The exact sum of terms, at least one, as `exact_terms` has it; down: whether it is rounded down."""
    total = _Total()
    return [total.and_then(term, down) for term in terms][-1]


def _product(x: Value, y: Value) -> Value:
    """The exact product; "invalid" for infinity times zero."""
    if "nan" in (x.kind, y.kind):
        return Value("nan", 0, 1, 2, x.signaling or y.signaling)
    sign = x.sign ^ y.sign
    if x.kind == y.kind == "finite":
        return Value("finite", sign, x.numerator * y.numerator, x.denominator * y.denominator)
    finite = [v for v in (x, y) if v.kind == "finite"]
    return Value("invalid") if any(v.numerator == 0 for v in finite) else Value("inf", sign)


class _Total:
    """A sum of terms; what it is depends on what they are, never on their order."""

    def __init__(self) -> None:
        self.kinds, self.signs_of_infinities, self.signs = set(), set(), set()
        self.signals, self.all_zeros, self.number = False, True, Fraction(0)

    def and_then(self, term: Value, down: bool) -> Value:
        """The sum with one more term."""
        self.kinds.add(term.kind)
        self.signals |= term.kind == "nan" and term.signaling
        self.signs.add(term.sign)
        if term.kind == "inf":
            self.signs_of_infinities.add(term.sign)
        if term.kind == "finite":
            self.number += term.fraction
        self.all_zeros &= term.kind == "finite" and term.numerator == 0
        if "invalid" in self.kinds or self.signals:
            return Value("invalid")
        if "nan" in self.kinds:
            return Value("nan", 0, 1, 2)
        if self.signs_of_infinities:
            both = len(self.signs_of_infinities) == 2
            return Value("invalid") if both else Value("inf", *self.signs_of_infinities)
        if self.number:
            return Value("finite", int(self.number < 0), abs(self.number.numerator), self.number.denominator)
        if self.all_zeros and len(self.signs) == 1:
            return Value("finite", *self.signs)
        return Value("finite", int(down))
