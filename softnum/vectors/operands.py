"""Which operands to try: a table of edge cases, and seeded random ones that stay near them.

Random words are raw Philox4x64 words of a counter that holds the block's number: block k is the same whatever was made
before it, and no global state is involved. (Only raw words are used: NumPy promises that they never change.)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum import ops
from softnum.vectors.spec import VectorSpec

__all__ = ["RANDOM_BLOCK", "core_codes", "edge_codes", "random_block", "random_bits_block"]

RANDOM_BLOCK = 1 << 16
_DOMAIN_OPERANDS, _DOMAIN_RANDOM_BITS = 1, 2
_ONES64 = (1 << 64) - 1
_U = np.uint64


# -- edge cases --------------------------------------------------------------------------------------------------------
def _signed(magnitudes, fmt) -> np.ndarray:
    top = 1 << (fmt.bits - fmt.signed)
    kept = sorted({int(v) for v in magnitudes if 0 <= v < top})
    if fmt.signed:
        kept += [v + top for v in kept]
    return np.array(kept, np.uint64)


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


def _fixed_edges(fmt) -> np.ndarray:
    mask = (1 << fmt.bits) - 1
    alternating = int("5" * 16, 16)
    powers = [1 << k for k in range(fmt.bits)]
    near = {p + d for p in powers for d in (-1, 0, 1)} | {alternating, alternating << 1, mask, mask - 1}
    return np.array(sorted({v & mask for v in near} | {-v & mask for v in near}), np.uint64)


def edge_codes(fmt) -> np.ndarray:
    """The edge cases of a format: exponent classes crossed with significand patterns, both signs, and every special.

    Exponents: the subnormals, the lowest two binades, those around 1, a precision away from 1, half way to either
    limit, and the highest three. Significands: none, lowest, highest, all, all but the lowest, alternating, and the
    neighbours of one half. Fixed point: every power of two, its neighbours, and their negatives.

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
    >>> from softnum.vectors.operands import edge_codes
    >>> len(edge_codes(sn.format("binary16"))), len(edge_codes(sn.format("e5m2")))
    (324, 144)
    """
    if fmt.kind == "fixed":
        return _fixed_edges(fmt)
    m, top, one = fmt.mantissa_bits, (1 << fmt.exponent_bits) - 1, fmt.bias
    ones = (1 << m) - 1
    half = 1 << (m - 1) if m else 0
    alternating = int("5" * 16, 16)
    patterns = {0, 1, half - 1, half, half + 1, ones - 1, ones, alternating & ones, (alternating << 1) & ones}
    exponents = {0, 1, 2, one - m - 1, one - m, one - 1, one, one + 1, one + m, one + m + 1, top - 2, top - 1, top}
    exponents |= set(_half_way_exponents(fmt))
    grid = [e << m | p for e in exponents if 0 <= e <= top for p in patterns if 0 <= p <= ones]
    return _signed([*grid, *_specials(fmt)], fmt)


def core_codes(fmt) -> np.ndarray:
    """The few edge cases whose triples are still enumerable (`edge_codes` explains; at most about 50 codes).

    >>> import softnum as sn
    >>> from softnum.vectors.operands import core_codes
    >>> len(core_codes(sn.format("binary32")))
    44
    """
    if fmt.kind == "fixed":
        top, mask = 1 << (fmt.bits - 1), (1 << fmt.bits) - 1
        one = 1 << min(fmt.fraction_bits, fmt.bits - 1)
        near = [0, 1, 2, one - 1, one, one + 1, one >> 1, top - 1, top, top + 1, top >> 1, mask, mask - 1, mask ^ one]
        return np.array(sorted({v & mask for v in near} | {-v & mask for v in near}), np.uint64)
    m, one = fmt.mantissa_bits, max(fmt.bias, 0) << fmt.mantissa_bits
    ones, binade = (1 << m) - 1, 1 << m
    half = binade >> 1
    magnitudes = [ones, binade, binade + 1, one - 1, one, one + 1, one + half, one + ones, one + half + 1]
    magnitudes += [one - (m + 1) * binade, one - m * binade + 1, one + (m + 1) * binade]
    magnitudes += [(e << m) + ones for e in _half_way_exponents(fmt)[::2]]
    return _signed([*magnitudes, *_specials(fmt)], fmt)


# -- random ones -------------------------------------------------------------------------------------------------------
def _raw(seed: int, domain: int, block: int, rows: int) -> np.ndarray:
    generator = np.random.Philox(key=np.array([seed, domain], np.uint64), counter=np.array([0, 0, block, 0], np.uint64))
    return generator.random_raw(rows * RANDOM_BLOCK).reshape(rows, RANDOM_BLOCK)


def _mask(bits: int) -> np.uint64:
    return _U(_ONES64 >> (64 - bits)) if bits else _U(0)


@lru_cache(maxsize=64)
def _edges(fmt) -> np.ndarray:
    table = edge_codes(fmt)
    table.flags.writeable = False
    return table


def _pick(word, n: int) -> np.ndarray:
    """A number from 0 to n - 1 (n < 2**31) by the upper half of each word."""
    return ((word >> _U(32)) * _U(n) >> _U(32)).astype(np.int64)


def _float_codes(code, choice, fmt) -> np.ndarray:
    """Codes of a float: half uniform, the rest edge cases, significands that end in long runs, and values near 1."""
    m = fmt.mantissa_bits
    kind = choice & _U(7)
    code = code & _mask(fmt.bits)
    edges = _edges(fmt)
    code = np.where(kind == 4, edges[_pick(choice, len(edges))], code)
    # a tail of j bits that reads 0...0, 1...1, 10...0 or 10...01: what decides a rounding
    j = _pick(choice, m + 1).astype(np.uint64)
    low = (_U(1) << j) - _U(1)
    lead = (low + _U(1)) >> _U(1)
    which = choice >> _U(3) & _U(3)
    tail = np.select([which == 0, which == 1, which == 2], [_U(0) * low, low, lead], (lead | _U(1)) & low)
    code = np.where(kind >= 5, code & ~low | tail, code)
    # near 1, so that results neither overflow nor vanish
    top = (1 << fmt.exponent_bits) - 1
    near = _pick(choice << _U(32), 2 * m + 5) - (m + 2) + fmt.bias
    return np.where(kind >= 6, _with_exponent(code, np.clip(near, 0, top), fmt), code)


def _fixed_codes(code, choice, fmt) -> np.ndarray:
    """Codes of fixed point: half uniform, the rest edge cases and numbers of every length."""
    kind = choice & _U(7)
    edges = _edges(fmt)
    left = _U(64 - fmt.bits)
    shift = _pick(choice, fmt.bits).astype(np.uint64) + left
    wide = code << left
    short = (wide.view(np.int64) >> shift.view(np.int64)).view(np.uint64) if fmt.signed else wide >> shift
    code = np.where(kind >= 5, short, code)
    code = np.where(kind == 4, edges[_pick(choice, len(edges))], code)
    return code & _mask(fmt.bits)


def _exponent(code, fmt) -> np.ndarray:
    """Exponent of the value, taken from the exponent field."""
    field = code >> _U(fmt.mantissa_bits) & _mask(fmt.exponent_bits)
    return field.astype(np.int64) - fmt.bias


def _with_exponent(code, field, fmt) -> np.ndarray:
    m = fmt.mantissa_bits
    hole = ~(_mask(fmt.exponent_bits) << _U(m))
    return code & hole | field.astype(np.uint64) << _U(m)


def _at_exponent(code, exponent, fmt) -> np.ndarray:
    return _with_exponent(code, np.clip(exponent + fmt.bias, 0, (1 << fmt.exponent_bits) - 1), fmt)


def _limit_exponents(word, out) -> np.ndarray:
    """Exponents about the result's limits: from below the smallest value to the lowest normals, or the highest."""
    low = out.emin - out.mantissa_bits - 2 + _pick(word, out.mantissa_bits + 5)
    high = out.emax - 2 + _pick(word, 4)
    return np.where(word & _U(8) == 0, low, high)


def _negated(code, fmt) -> np.ndarray:
    if fmt.kind == "fixed":
        return (_U(0) - code) & _mask(fmt.bits)
    return code ^ _U(1 << (fmt.bits - 1)) if fmt.signed else code


def _nearby(code, word, fmt) -> np.ndarray:
    """The code moved by -2 to 2."""
    return (code + _pick(word, 5).astype(np.uint64) - _U(2)) & _mask(fmt.bits)


def _as_codes(codes, fmt) -> np.ndarray:
    return codes.astype(fmt.storage_dtype)


def _product(codes, spec) -> np.ndarray:
    """a * b in c's format."""
    a, b = (_as_codes(v, f) for v, f in zip(codes[:2], spec.formats[:2], strict=True))
    return ops.multiply(a, b, spec.formats[:2], out_fmt=spec.formats[2], invalid=0).astype(np.uint64)


def _related(codes, word, spec: VectorSpec) -> list[np.ndarray]:
    """Half of the rows get operands that meet: sums that cancel or overlap, products and conversions at the limits."""
    chosen = word & _U(3)
    formats, out = spec.formats, spec.out_fmt
    floats = all(f.kind == "float" for f in (*formats, out))
    codes = list(codes)
    first, second = chosen == 2, chosen == 3
    if spec.op == "convert":
        if floats:
            moved = _at_exponent(codes[0], _limit_exponents(word, out), formats[0])
            codes[0] = np.where(first | second, moved, codes[0])
    elif spec.op == "multiply":
        if floats:
            target = _limit_exponents(word, out) - _exponent(codes[0], formats[0])
            codes[1] = np.where(first | second, _at_exponent(codes[1], target, formats[1]), codes[1])
    elif spec.op in ("add", "subtract"):
        like = codes[0]
        if formats[0] != formats[1]:
            narrow = _as_codes(codes[0], formats[0])
            like = ops.convert(narrow, formats[0], formats[1], invalid=0).astype(np.uint64)
        like = _negated(like, formats[1]) if spec.op == "add" else like
        codes[1] = np.where(first, _nearby(like, word, formats[1]), codes[1])
        if floats:
            reach = 2 * max(f.precision for f in formats) + 5
            gap = _pick(word, reach) - reach // 2
            moved = _at_exponent(codes[1], _exponent(codes[0], formats[0]) + gap, formats[1])
            codes[1] = np.where(second, moved, codes[1])
    elif spec.op == "fma":
        if floats:
            target = _limit_exponents(word, out) - _exponent(codes[0], formats[0])
            at_limits = second & (word & _U(4) == 4)
            codes[1] = np.where(at_limits, _at_exponent(codes[1], target, formats[1]), codes[1])
            reach = 4 * out.precision + 7
            gap = _pick(word << _U(32), reach) - reach // 2
            exponent = _exponent(codes[0], formats[0]) + _exponent(codes[1], formats[1]) + gap
            codes[2] = np.where(second, _at_exponent(codes[2], exponent, formats[2]), codes[2])
        opposite = _nearby(_negated(_product(codes, spec), formats[2]), word, formats[2])
        codes[2] = np.where(first, opposite, codes[2])
    return codes


def random_block(spec: VectorSpec, seed: int, block: int) -> tuple[np.ndarray, ...]:
    """The operands of random block number `block`: arrays of `RANDOM_BLOCK` codes, one for each operand.

    Parameters
    ----------
    spec : VectorSpec
    seed : int
        0 to 2**64 - 1.
    block : int

    Returns
    -------
    tuple of ndarrays of the formats' storage types
    """
    words = _raw(seed, _DOMAIN_OPERANDS, block, 2 * len(spec.formats) + 1)
    codes = [
        (_fixed_codes if f.kind == "fixed" else _float_codes)(words[2 * i], words[2 * i + 1], f)
        for i, f in enumerate(spec.formats)
    ]
    related = _related(codes, words[-1], spec)
    return tuple(_as_codes(c, f) for c, f in zip(related, spec.formats, strict=True))


def random_bits_block(bits: int, seed: int, block: int) -> np.ndarray:
    """The random words of block `block`: an eighth all zeros, an eighth all ones, the rest drawn; uint32."""
    (words,) = _raw(seed, _DOMAIN_RANDOM_BITS, block, 1)
    kind = words >> _U(61)
    drawn = np.select([kind == 0, kind == 1], [_U(0) * words, _U(_ONES64) | words], words)
    return (drawn & _mask(bits)).astype(np.uint32)
