"""What a wrong design does at the ports: operands that are not taken as they come, results that are not delivered as
they were computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.formats.modes import Flags

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = [
    "NotApplicable",
    "delivered_nans",
    "delivered_zeros",
    "held_bits",
    "made_nans",
    "replaced",
    "signed",
    "terms_of",
    "with_fraction",
]

_INEXACT = int(Flags.INEXACT)


class NotApplicable(ValueError):
    """The model says nothing of this operation, format or mode."""


def replaced(operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], changes: Any) -> tuple[Any, ...]:
    """Operands as a design takes them: ``changes`` holds pairs of an operand's number and what becomes of it.

    "zero", "one": it is ignored, and that stands in its place; an integer: this code does; ("is", j): operand j does;
    "negated", "positive": so is its sign.

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.checks.deliveries import replaced
    >>> a, b = np.array([0x3C], np.uint8), np.array([0xBD], np.uint8)
    >>> replaced((a, b), (sn.format("e5m2"),) * 2, ((1, "negated"),))
    (array([60], dtype=uint8), array([61], dtype=uint8))
    """
    out = list(operands)
    for i, what in changes:
        codes, fmt = operands[i], formats[i]
        code = codes.dtype.type
        if what in ("negated", "positive"):
            if not fmt.has_fields or not fmt.signed or not fmt.negative_zero:
                raise NotApplicable("no sign bit")
            top = code(1 << (fmt.bits - 1))
            out[i] = codes ^ top if what == "negated" else codes & ~top
        elif isinstance(what, tuple):
            if formats[what[1]] != fmt:
                raise NotApplicable("operands of different formats")
            out[i] = operands[what[1]]
        elif what == "one":
            if not fmt.has_fields or not 0 < fmt.bias < (1 << fmt.exponent_bits) - 1:
                raise NotApplicable("no 1")
            out[i] = np.full_like(codes, fmt.bias << fmt.mantissa_bits)
        else:
            if what == "zero" and not fmt.has_zero:
                raise NotApplicable("no zero")
            out[i] = np.full_like(codes, 0 if what == "zero" else what)
    return tuple(out)


def delivered_nans(
    result: np.ndarray,
    right: np.ndarray,
    operands: Sequence[np.ndarray],
    formats: Sequence[AnyFormat],
    fmt: AnyFormat,
    rule: str,
) -> np.ndarray:
    """Results, NaN where ``right`` is, under another rule.

    "first", "last" or "largest": the code of that operand that is NaN, as it stands; with " quiet" after it, made
    quiet. "sign xor", "sign a", "sign b": the same code with the sign that operands have.
    """
    if any(f != fmt for f in formats) or not fmt.has_fields or not fmt.has_nan or not fmt.signed:
        raise NotApplicable("formats")
    code = result.dtype.type
    top = code(1 << (fmt.bits - 1))
    nans = fmt.is_nan(right)
    if rule.startswith("sign "):
        if fmt.negative_zero is False:
            raise NotApplicable("one NaN")
        a, b = operands[0] & top, operands[min(1, len(operands) - 1)] & top
        sign = {"xor": a ^ b if len(operands) > 1 else a, "a": a, "b": b}[rule.split()[1]]
        return np.where(nans, result & ~top | sign, result)
    which, _, quiet = rule.partition(" ")
    out = result
    columns = operands if which == "last" else operands[::-1]
    most = np.zeros_like(result)
    for codes in columns:
        mine = fmt.is_nan(codes)
        taken = codes
        if quiet:
            taken = codes | code(1 << (fmt.mantissa_bits - 1)) if fmt.mantissa_bits else codes
        if which == "largest":
            size = codes & ~top
            mine = mine & (size >= most)
            most = np.where(mine, size, most)
        out = np.where(nans & mine, taken, out)
    return out


def made_nans(
    result: np.ndarray,
    right: np.ndarray,
    operands: Sequence[np.ndarray],
    formats: Sequence[AnyFormat],
    fmt: AnyFormat,
    code: int,
    sign: str | None,
) -> np.ndarray:
    """Results with this code where an operation makes a NaN of operands that are none, with the sign of a, of b or of
    both ("xor") if one is stated."""
    nans = fmt.is_nan(right)
    for codes, f in zip(operands, formats, strict=True):
        nans = nans & ~f.is_nan(codes)
    top = 1 << (fmt.bits - 1)
    made = np.full_like(result, code if sign is None else code & ~top)
    if sign is not None:
        if not fmt.has_fields or any(f != fmt for f in formats):
            raise NotApplicable("formats")
        a, b = operands[0], operands[min(1, len(operands) - 1)]
        made |= {"xor": a ^ b, "a": a, "b": b}[sign] & result.dtype.type(top)
    return np.where(nans, made, result)


def terms_of(
    op: str, operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], out: AnyFormat
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(whether the first and the second term of a sum are zeros, both signs as arrays of bool, stacked); None of what
    is no sum."""
    if op not in ("add", "subtract", "fma") or any(not f.has_fields or not f.signed for f in formats):
        return None
    zero = [f.is_zero(c) for c, f in zip(operands, formats, strict=True)]
    sign = [_sign(c, f) for c, f in zip(operands, formats, strict=True)]
    if op == "fma":
        return zero[0] | zero[1], zero[2], np.stack([sign[0] ^ sign[1], sign[2]])
    return zero[0], zero[1], np.stack([sign[0], sign[1] ^ (op == "subtract")])


def _sign(codes, fmt) -> np.ndarray:
    return codes >> codes.dtype.type(fmt.bits - 1) != 0


def delivered_zeros(
    result: np.ndarray,
    right: np.ndarray,
    flags: np.ndarray,
    op: str,
    operands: Sequence[np.ndarray],
    formats: Sequence[AnyFormat],
    fmt: AnyFormat,
    where: str,
    rule: str,
) -> np.ndarray:
    """Zero results with another sign.

    where: "all"; of sums "cancel" (x - x) and "zeros" (of two zeros); of others "exact" and "inexact". rule:
    "positive", "negative", "inverted"; "first", "second": the sign of that term or operand; "both": minus where both
    are. where "kept": what is exact has the sign that it has in ``right``.
    """
    if not (fmt.has_fields and fmt.negative_zero):
        raise NotApplicable("one zero")
    if where == "kept":
        return np.where(fmt.is_zero(result) & fmt.is_zero(right) & (flags & _INEXACT == 0), right, result)
    zero, top = fmt.is_zero(result), result.dtype.type(1 << (fmt.bits - 1))
    inexact = flags & _INEXACT != 0
    found = terms_of(op, operands, formats, fmt)
    if where in ("cancel", "zeros"):
        if found is None:
            raise NotApplicable("no sum")
        both = found[0] & found[1]
        zero = zero & ~inexact & (both if where == "zeros" else ~both)
    elif where != "all":
        zero = zero & (inexact if where == "inexact" else ~inexact)
    if rule in ("first", "second", "both"):
        if found is not None:
            signs = found[2]
        elif len(operands) > 1 and all(f.has_fields and f.signed for f in formats[:2]):
            signs = np.stack([_sign(c, f) for c, f in zip(operands[:2], formats[:2], strict=True)])
        else:
            raise NotApplicable("one operand")
        minus = {"first": signs[0], "second": signs[1], "both": signs[0] & signs[1]}[rule]
        signed = np.where(minus, result | top, result & ~top)
    else:
        signed = {"positive": result & ~top, "negative": result | top, "inverted": result ^ top}[rule]
    return np.where(zero, signed, result)


def signed(
    result: np.ndarray, operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], fmt: AnyFormat, sign: str
) -> np.ndarray:
    """Results but NaN with another sign: "negated", "positive", "negative", "a" or "b" (that operand's); with
    " numbers" after it, only those that are numbers other than 0, of such numbers."""
    if not fmt.has_fields or not fmt.signed or not fmt.negative_zero:
        raise NotApplicable("no sign bit")
    top = result.dtype.type(1 << (fmt.bits - 1))
    which, _, numbers = sign.partition(" ")
    if which in ("a", "b"):
        at = "ab".index(which)
        if at >= len(operands) or formats[at] != fmt:
            raise NotApplicable("operands of other formats")
        out = result & ~top | operands[at] & top
    else:
        out = {"negated": result ^ top, "positive": result & ~top, "negative": result | top}[which]
    plain = fmt.is_nan(result)
    if numbers:
        columns = [(result, fmt), *zip(operands, formats, strict=True)]
        for codes, f in columns:
            plain = plain | f.is_zero(codes) | f.is_infinite(codes) | f.is_nan(codes)
    return np.where(plain, result, out)


def held_bits(result: np.ndarray, stuck: tuple[int, int]) -> np.ndarray:
    """Results of which some bits, a mask, always have a value.

    >>> import numpy as np
    >>> held_bits(np.array([0x3C, 0xBD], np.uint8), (0x81, 0x01))
    array([61, 61], dtype=uint8)
    """
    code = result.dtype.type
    mask, value = stuck
    return result & ~code(mask) | code(value)


def with_fraction(
    result: np.ndarray, free: Any, wide: Any, fmt: AnyFormat, where: np.ndarray, exponent: str, only_next: bool
) -> np.ndarray:
    """Results that are too large (``where``) with the fraction of their own, which ``free`` has: the right results in
    ``wide``, a format of as many bits of fraction in which nothing overflows.

    exponent: the field that stands before the fraction: "largest" of finite numbers, "ones", or "wrapped" around.
    only_next: whether it is so in the binade after the largest alone.
    """
    m, e = fmt.mantissa_bits, fmt.exponent_bits
    field = (wide.exponent_fields(free) - wide.bias + fmt.bias).astype(np.int64)
    largest = fmt.max_code >> m & ((1 << e) - 1)
    if only_next:
        where = where & (field == largest + 1)
    shown = {"largest": np.full_like(field, largest), "ones": np.full_like(field, (1 << e) - 1),
             "wrapped": field % (1 << e)}[exponent]  # fmt: skip
    code = result.dtype.type
    fraction = (free & free.dtype.type((1 << m) - 1)).astype(result.dtype)
    sign = _sign(free, wide).astype(result.dtype) << code(fmt.bits - 1)
    made = sign | shown.astype(result.dtype) << code(m) | fraction
    return np.where(where, made, result)
