"""Rules that make single operands of random words: what `softnum.vectors.plans.strata` draws its kinds of vectors by.

Codes and words are arrays of uint64. A `Rule` of `_draw` changes them in place, in C (csrc/draw/draw.h).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.vectors.plans._draw import Rule
from softnum.vectors.plans.operands import edge_codes

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = [
    "as_codes", "beside_rule", "edge_rule", "exponent_rule", "large_codes", "limit_rule", "made_of", "mask_of",
    "move_to", "near_one_rule", "negated_codes", "number_rule", "picked", "signed_alike", "tail_rule",
    "uniform_rule",
]  # fmt: skip

_ONES64 = (1 << 64) - 1
_U = np.uint64


def mask_of(bits: int) -> int:
    return _ONES64 >> (64 - bits) if bits else 0


@lru_cache(maxsize=64)
def edge_table(fmt) -> np.ndarray:
    table = edge_codes(fmt)
    table.flags.writeable = False
    return table


# -- rules of single operands ------------------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def uniform_rule(fmt) -> Rule:
    """Words to codes, each as likely."""
    return Rule("uniform", kept=mask_of(fmt.bits))


@lru_cache(maxsize=256)
def edge_rule(fmt, which: int = 0, most: int = 0) -> Rule:
    """Words to edge cases; where choices pick `which` of `most`, if these are given."""
    return Rule("edge", table=edge_table(fmt), which=which, most=most)


@of_format
def _drawn_bits(fmt) -> int:
    """How many of a code's last bits a tail may take."""
    return fmt.mantissa_bits


@_drawn_bits.fixed
@_drawn_bits.custom
def _all_bits(fmt) -> int:
    return fmt.bits


@lru_cache(maxsize=256)
def tail_rule(fmt, salt: int = 0) -> Rule:
    """Codes with a tail of j bits that reads 0...0, 1...1, 10...0 or 10...01."""
    return Rule("tail", count=_drawn_bits(fmt) + 1, salt=salt)


@lru_cache(maxsize=256)
@of_format
def near_one_rule(fmt, reach: int | None = None, positive: bool = False) -> Rule:
    """Words to exponents within `reach` of 1's (default: the precision), and above 0; fixed point: to numbers of every
    length."""
    kept = mask_of(fmt.bits - (positive and fmt.signed))
    reach = fmt.mantissa_bits + 2 if reach is None else min(reach, fmt.bias)
    return Rule("near", **{**_field(fmt), "kept": kept & _hole(fmt)}, first=fmt.bias - reach, count=2 * reach + 1)


@near_one_rule.fixed
def _of_every_length(fmt, reach: int | None = None, positive: bool = False) -> Rule:
    kept = mask_of(fmt.bits - (positive and fmt.signed))
    return Rule("signed" if fmt.signed else "unsigned", shift=64 - fmt.bits, count=fmt.bits, kept=kept)


@near_one_rule.custom
def _of_short_regimes(fmt, reach: int | None = None, positive: bool = False) -> Rule:
    low = max(fmt.bits - 4, 0)  # three bits after the sign say how long the exponent is; 1 is between 3 and 4
    kept = mask_of(fmt.bits - positive) & ~(7 << low)
    return Rule("near", shift=low, top=7, kept=kept, first=2, count=4) if fmt.bits > 3 else uniform_rule(fmt)


def _hole(fmt) -> int:
    """A code's bits but for the exponent."""
    return mask_of(fmt.bits) & ~(mask_of(fmt.exponent_bits) << fmt.mantissa_bits)


def _field(fmt) -> dict[str, Any]:
    return dict(shift=fmt.mantissa_bits, top=mask_of(fmt.exponent_bits), kept=_hole(fmt))


@lru_cache(maxsize=256)
def place_rule(fmt) -> Rule:
    """Codes to those of exponents, which are the words."""
    return Rule("place", **_field(fmt), first=fmt.bias)


@lru_cache(maxsize=256)
def exponent_rule(fmt) -> Rule:
    """Codes to the exponents of normal numbers; of others to what the same field would mean."""
    return Rule("exponent", **_field(fmt), first=-fmt.bias)


@of_format
def _negation(fmt) -> tuple[int, int]:
    """What a code is xored with, and what is then taken from it, for the negative of its value."""
    return fmt.signed << (fmt.bits - 1), 0


@_negation.fixed
@_negation.custom
def _of_twos_complement(fmt) -> tuple[int, int]:
    return _ONES64, _ONES64


@lru_cache(maxsize=256)
def beside_rule(fmt, negated: bool = False) -> Rule:
    """Codes moved by -2 to 2, negated first if so said."""
    flip, less = _negation(fmt) if negated else (0, 0)
    return Rule("beside", kept=mask_of(fmt.bits), flip=flip, less=less)


@lru_cache(maxsize=256)
def limit_rule(out) -> Rule:
    """Exponents about the result's limits: from below the smallest value to the lowest normals, or the highest."""
    low = out.emin - out.mantissa_bits - 2
    return Rule("number", first=low, count=out.mantissa_bits + 5, other_first=out.emax - 2, other_count=4)


@lru_cache(maxsize=256)
def number_rule(first: int, count: int, salt: int = 0) -> Rule:
    return Rule("number", first=first, count=count, other_first=first, other_count=count, salt=salt)


def made_of(rule: Rule, words: np.ndarray) -> np.ndarray:
    """New codes, or integers, of words.

    >>> import softnum as sn
    >>> made_of(uniform_rule(sn.format("e2m1fn")), np.array([[5, 0x1F]], np.uint64)).tolist()
    [[5, 15]]
    """
    out = np.empty(words.shape, np.uint64)
    rule.apply(words, out)
    return out


def negated_codes(code: np.ndarray, fmt: AnyFormat) -> np.ndarray:
    flip, less = map(_U, _negation(fmt))
    return ((code ^ flip) - less) & _U(mask_of(fmt.bits))


def as_codes(codes: np.ndarray, fmt: AnyFormat) -> np.ndarray:
    return codes.astype(fmt.storage_dtype)


def picked(rule: Rule, words: np.ndarray) -> np.ndarray:
    return made_of(rule, words).view(np.int64)


def move_to(codes: np.ndarray, exponent: np.ndarray, fmt: AnyFormat) -> None:
    place_rule(fmt).apply(exponent.view(np.uint64), codes)


@of_format
def large_codes(fmt: AnyFormat, code: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Values whose products are about the largest; fixed point: that are."""
    move_to(code, picked(number_rule((fmt.emax + 1) // 2 - 2, 4), word), fmt)
    return code


@large_codes.fixed
def _large_fixed(fmt, code, word) -> np.ndarray:
    top, count = (1 << (fmt.bits - fmt.signed)) - 1, min(8, 1 << (fmt.bits - fmt.signed))
    return made_of(number_rule(top - count + 1, count), word)


@large_codes.custom
def _large_tapered(fmt, code, word) -> np.ndarray:
    root = int(fmt.encode(np.array([fmt.max**0.5]))[0])
    first = max(min(root - 3, fmt.max_code - 7), 1)
    return made_of(number_rule(first, min(8, fmt.max_code - first + 1)), word)


@of_format
def signed_alike(fmt: AnyFormat, code: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Of a row's sign."""
    if not fmt.signed:
        return code
    top = _U(1 << (fmt.bits - 1))
    return code & ~top | (word & _U(1)) << _U(fmt.bits - 1)


@signed_alike.fixed
@signed_alike.custom
def _fixed_signed_alike(fmt, code, word) -> np.ndarray:
    if not fmt.signed:
        return code
    top = _U(1 << (fmt.bits - 1))
    code = np.where(code & top, negated_codes(code, fmt) & ~top, code)
    return np.where(word & _U(1), negated_codes(code, fmt), code)
