"""Units of several roundings: a dot product as a plain loop."""

from __future__ import annotations

from collections.abc import Sequence

from softnum.formats import Format
from softnum.modes import Flags, rounding_name
from softnum.names import format as format_of
from softnum.reference.operations import add, fma, multiply
from softnum.reference.random_words import random_words_matmul


def mad_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    operand,
    accumulator: Format | str,
    product: Format | str | None = None,
    rounding: str = "nearest_even",
    product_rounding: str | None = None,
    overflow: str | None = None,
    stochastic_bits: int = 32,
    lanes: int = 1,
    chunk: int | None = None,
    outer_accumulator: Format | str | None = None,
    c: int | None = None,
    key: int | tuple[int, int] | None = None,
    batch: int = 0,
    m: int = 0,
    n: int = 0,
    random_bits: Sequence[tuple[int, int]] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.MadUnit` computes it, as a plain loop.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    operand : format, or a pair of formats
        The format of ``a_codes`` and ``b_codes``.
    accumulator, product : format
        ``acc = R(acc + R_product(a * b))``; without ``product``, ``acc = R(acc + a * b)`` with one rounding.
    rounding, product_rounding : str
        Of the sums, and of the product (``None``: the same).
    overflow : str, optional
        One rule for all roundings; by default each format's own.
    stochastic_bits : int
        Bits r of each stochastic rounding.
    lanes : int
        Only 1 is defined here.
    chunk : int, optional
        Sum each ``chunk`` steps on their own, from +0, then add these sums in order.
    outer_accumulator : format, optional
        The format of the sum of chunks (default ``accumulator``).
    c : int, optional
        The code that the (outer) sum starts from; +0 if missing.
    key : int or (seed, stream), optional
        Where the random words of a stochastic unit come from, with ``batch``, ``m`` and ``n``, the result's indices.
    random_bits : sequence of (product, sum) pairs, optional
        The random words themselves, one pair a step; the outer additions are steps K, K + 1, ...

    Returns
    -------
    code : int
        In ``accumulator``, or in ``outer_accumulator`` if there is one.
    flags : Flags
        Of all steps together.

    Raises
    ------
    ValueError
        If the lengths differ, a stochastic unit has no random words, or a parameter is out of range.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ones = [0x3C] * 20  # 1.0 in e5m2: a sum of 3-bit significands stalls at 8, chunks of 4 get further
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2")[0], "e5m2")
    Fraction(8, 1)
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", chunk=4)[0], "e5m2")
    Fraction(20, 1)
    """
    operands = tuple(operand) if isinstance(operand, (tuple, list)) else (operand, operand)
    accumulator = format_of(accumulator)
    outer = accumulator if outer_accumulator is None else format_of(outer_accumulator)
    rounding = rounding_name(rounding)
    product_rounding = rounding if product_rounding is None else rounding_name(product_rounding)
    steps = len(a_codes)
    if len(b_codes) != steps:
        raise ValueError(f"a dot product needs equally long operands, got {steps} and {len(b_codes)}")
    if lanes != 1:
        raise ValueError(f"the reference defines lanes=1 only, got {lanes}")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    if chunk is None and outer_accumulator is not None:
        raise ValueError("outer_accumulator= is the format of the sum of chunks; give chunk=")
    if not (accumulator.has_zero and outer.has_zero):
        raise ValueError(f"sums start from +0, which {accumulator if outer.has_zero else outer} lacks")

    sum_is_stochastic = rounding.startswith("stochastic")
    product_is_stochastic = product is not None and product_rounding.startswith("stochastic")
    seed, stream = key if isinstance(key, tuple) else (key, 0)

    def words(k: int) -> tuple[int | None, int | None]:
        if random_bits is not None:
            return random_bits[k]
        if seed is None or not (sum_is_stochastic or product_is_stochastic):
            return None, None
        both = sum_is_stochastic and product_is_stochastic
        return random_words_matmul(seed, stream, batch, m, n, k, stochastic_bits, both)

    flags = Flags(0)
    common = {"overflow": overflow, "stochastic_bits": stochastic_bits}

    def inner_sum(start: int, first: int, last: int) -> int:
        nonlocal flags
        total = start
        for k in range(first, last):
            product_word, sum_word = words(k)
            of_sum = {"rounding": rounding, "random_bits": sum_word, **common}
            if product is None:
                formats = (*operands, accumulator)
                total, raised = fma(a_codes[k], b_codes[k], total, formats, out_fmt=accumulator, **of_sum)
            else:
                of_product = {"rounding": product_rounding, "random_bits": product_word, **common}
                term, raised = multiply(a_codes[k], b_codes[k], operands, out_fmt=product, **of_product)
                flags |= raised
                total, raised = add(total, term, (accumulator, product), out_fmt=accumulator, **of_sum)
            flags |= raised
        return total

    if chunk is None:
        return inner_sum(0 if c is None else c, 0, steps), flags
    total = 0 if c is None else c
    for j, first in enumerate(range(0, steps, chunk)):
        part = inner_sum(0, first, min(first + chunk, steps))
        total, raised = add(
            total,
            part,
            (outer, accumulator),
            out_fmt=outer,
            rounding=rounding,
            random_bits=words(steps + j)[1],
            **common,
        )
        flags |= raised
    return total, flags
