"""The exact dot-product unit: a sum of Fractions, delivered once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from softnum.formats import Format
from softnum.modes import Flags
from softnum.names import format as format_of
from softnum.reference.random_words import random_words_matmul
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import Value, decode


def exact_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    operand,
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
        random_bits = random_words_matmul(seed, stream, batch, m, n, 0, stochastic_bits, False)[1]
    env = environment_of(accumulator, rounding, overflow, stochastic_bits, random_bits)
    if not a_codes:
        return (0 if c is None else c), Flags(0)
    pairs = [(decode(x, operands[0]), decode(y, operands[1])) for x, y in zip(a_codes, b_codes, strict=True)]
    start = decode(0 if c is None else c, accumulator)
    terms = [start, *(_product(x, y) for x, y in pairs)]
    nans = [v for group in (*pairs, (start,)) for v in group if v.kind == "nan"]
    return deliver(_sum(terms, nans, env.rounding == "down"), accumulator, env)


def _product(x: Value, y: Value) -> Value:
    """The exact product; "invalid" for infinity times zero."""
    if "nan" in (x.kind, y.kind):
        return Value("nan", 0, 1, 2, x.signaling or y.signaling)
    sign = x.sign ^ y.sign
    if x.kind == y.kind == "finite":
        return Value("finite", sign, x.numerator * y.numerator, x.denominator * y.denominator)
    finite = [v for v in (x, y) if v.kind == "finite"]
    return Value("invalid") if any(v.numerator == 0 for v in finite) else Value("inf", sign)


def _sum(terms: list[Value], nans: list[Value], down: bool) -> Value:
    """The exact sum of the terms; nans: the operands that are NaN."""
    kinds = {t.kind for t in terms}
    if "invalid" in kinds or any(v.signaling for v in nans):
        return Value("invalid")
    if nans:
        return Value("nan", 0, 1, 2)
    signs = {t.sign for t in terms if t.kind == "inf"}
    if signs:
        return Value("invalid") if len(signs) == 2 else Value("inf", signs.pop())
    total = sum((t.fraction for t in terms), Fraction(0))
    if total:
        return Value("finite", int(total < 0), abs(total.numerator), total.denominator)
    signs = {t.sign for t in terms}
    if all(t.numerator == 0 for t in terms) and len(signs) == 1:
        return Value("finite", signs.pop())
    return Value("finite", int(down))
