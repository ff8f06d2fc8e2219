"""Which operands are edge cases: tables of codes for each format (random ones: strata.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softnum.formats.dispatch import of_format

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["class_codes", "core_codes", "edge_codes"]


# -- edge cases --------------------------------------------------------------------------------------------------------
_ALTERNATING = int("5" * 32, 16)


def _table(codes, fmt) -> np.ndarray:
    """uint64, or Python integers where codes take two words."""
    return np.array(codes, object if fmt.leads else np.uint64)


def _signed(magnitudes, fmt) -> np.ndarray:
    top = 1 << (fmt.bits - fmt.signed)
    kept = sorted({int(v) for v in magnitudes if 0 <= v < top})
    if fmt.signed:
        kept += [v + top for v in kept]
    return _table(kept, fmt)


def _half_way_exponents(fmt) -> list[int]:
    """Biased exponents whose sums reach the format's limits: products of two overflow or underflow narrowly."""
    lowest = fmt.emin - fmt.mantissa_bits
    return [fmt.bias + e for half in (lowest // 2, fmt.emin // 2, fmt.emax // 2) for e in (half, half + 1)]


def _specials(fmt) -> list[int]:
    codes = [0, 1, fmt.max_code - 1, fmt.max_code, fmt.max_code + 1]
    if fmt.infinities:
        codes += [fmt.inf_code, fmt.inf_code + 1]  # IEEE: the first signalling NaN
    if fmt.nan_codes in ("ieee", "all_ones"):
        codes.append(fmt.nan_code)
    return codes


@of_format
def edge_codes(fmt: AnyFormat) -> np.ndarray:
    """The edge cases of a format: exponent classes crossed with significand patterns, both signs, and every special.

    Exponents: the subnormals, the lowest two binades, those around 1, a precision away from 1, half way to either
    limit, and the highest three. Significands: none, lowest, highest, all, all but the lowest, alternating, and the
    neighbours of one half. Fixed point, posits and takums: every code that is a power of two, its neighbours, and their
    negatives.

    Parameters
    ----------
    fmt : FloatFormat or FixedFormat

    Returns
    -------
    ndarray of uint64
        Codes, each once.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum.vectors.plans.operands import edge_codes
    >>> len(edge_codes(sn.format("binary16"))), len(edge_codes(sn.format("e5m2")))
    (324, 144)
    """
    if fmt.explicit_bit:
        return _table([fmt.from_implied(int(code)) for code in edge_codes(fmt.implied_format)], fmt)
    m, top, one = fmt.mantissa_bits, (1 << fmt.exponent_bits) - 1, fmt.bias
    ones = (1 << m) - 1
    half = 1 << (m - 1) if m else 0
    patterns = {0, 1, half - 1, half, half + 1, ones - 1, ones, _ALTERNATING & ones, (_ALTERNATING << 1) & ones}
    exponents = {0, 1, 2, one - m - 1, one - m, one - 1, one, one + 1, one + m, one + m + 1, top - 2, top - 1, top}
    exponents |= set(_half_way_exponents(fmt))
    grid = [e << m | p for e in exponents if 0 <= e <= top for p in patterns if 0 <= p <= ones]
    return _signed([*grid, *_specials(fmt)], fmt)


@edge_codes.fixed
@edge_codes.custom
def _fixed_edges(fmt) -> np.ndarray:
    mask = (1 << fmt.bits) - 1
    powers = [1 << k for k in range(fmt.bits)]
    near = {p + d for p in powers for d in (-1, 0, 1)} | {_ALTERNATING, _ALTERNATING << 1, mask, mask - 1}
    return _table(sorted({v & mask for v in near} | {-v & mask for v in near}), fmt)


@of_format
def core_codes(fmt: AnyFormat) -> np.ndarray:
    """The few edge cases whose triples are still enumerable (`edge_codes` explains; at most about 50 codes).

    >>> import softnum as sn
    >>> from softnum.vectors.plans.operands import core_codes
    >>> len(core_codes(sn.format("binary32")))
    44
    """
    if fmt.explicit_bit:
        return _table([fmt.from_implied(int(code)) for code in core_codes(fmt.implied_format)], fmt)
    m, one = fmt.mantissa_bits, max(fmt.bias, 0) << fmt.mantissa_bits
    ones, binade = (1 << m) - 1, 1 << m
    half = binade >> 1
    magnitudes = [ones, binade, binade + 1, one - 1, one, one + 1, one + half, one + ones, one + half + 1]
    magnitudes += [one - (m + 1) * binade, one - m * binade + 1, one + (m + 1) * binade]
    magnitudes += [(e << m) + ones for e in _half_way_exponents(fmt)[::2]]
    return _signed([*magnitudes, *_specials(fmt)], fmt)


@core_codes.fixed
def _fixed_core(fmt) -> np.ndarray:
    top, mask = 1 << (fmt.bits - 1), (1 << fmt.bits) - 1
    one = 1 << min(max(fmt.fraction_bits, 0), fmt.bits - 1)
    near = [0, 1, 2, one - 1, one, one + 1, one >> 1, top - 1, top, top + 1, top >> 1, mask, mask - 1, mask ^ one]
    return _table(sorted({v & mask for v in near} | {-v & mask for v in near}), fmt)


# -- classes -----------------------------------------------------------------------------------------------------------
@core_codes.custom
def _tapered_core(fmt) -> np.ndarray:
    top, one = 1 << (fmt.bits - 1), 1 << (fmt.bits - 2)
    near = [0, 1, 2, one - 1, one, one + 1, one >> 1, one + (one >> 1), top - 2, top - 1, top]
    return np.array(sorted({v & (2 * top - 1) for v in near} | {-v & (2 * top - 1) for v in near}), np.uint64)


def class_codes(fmt: AnyFormat, few: int = 2) -> np.ndarray:
    """The first (few = 1), or the first and the last (2), of the edge cases of each class.

    >>> import softnum as sn
    >>> from softnum.vectors.plans.operands import class_codes
    >>> [hex(c) for c in class_codes(sn.format("e4m3fn"), 1)]
    ['0x0', '0x1', '0x8', '0x7f', '0x80', '0x81', '0x88']
    """
    codes = edge_codes(fmt)
    kinds = fmt.class_numbers(fmt.stored(codes))
    kept = {int(codes[kinds == kind][end]) for kind in set(kinds.tolist()) for end in (0, -1)[:few]}
    return _table(sorted(kept), fmt)
