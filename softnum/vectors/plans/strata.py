"""Random operands in strata: kinds of vectors in fixed shares, each drawn by its own rule.

Vectors take slots in turn, and each stratum has some of the slots, spread among the others', so that any beginning of a
block has vectors of most strata.
Random words are SplitMix64's (Steele, Lea and Flood 2014) from a place that the seed and the block's number decide by
Philox: block k is the same whatever was made before it, and no global state is involved. The passes over arrays are
those of csrc/draw/draw.h.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from itertools import accumulate

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.ops import arithmetic
from softnum.runtime import _core
from softnum.vectors.plans._draw import SLOTS, Rule, deal, fill_block, fill_words
from softnum.vectors.plans.fpu import FUSED
from softnum.vectors.plans.operands import edge_codes
from softnum.vectors.plans.spec import Spec
from softnum.vectors.plans.unit_spec import UnitSpec
from softnum.vectors.plans.wide import wide_block

__all__ = ["SHARES", "UNIT_SHARES", "block_size", "random_block", "random_words", "raw_words"]

_DOMAIN_OPERANDS, _DOMAIN_RANDOM_BITS = 4, 5  # of keys; csrc/softnum/word/philox.h has those below
_ONES64 = (1 << 64) - 1
_U = np.uint64
_BLOCK = 1 << 15
_kept = threading.local()

#: slots of 256 of each stratum of an operation's vectors; multiples of 8, so that vectors of a kind meet in SIMD lanes
SHARES = {
    "uniform": 80,  # every code as likely
    "edges": 16,  # every operand an edge case
    "one edge": 24,  # one operand an edge case, the others near 1
    "tails": 24,  # significands that end in 0...0, 1...1, 10...0 or 10...01: what decides a rounding
    "near one": 32,  # results neither overflow nor vanish
    "related": 48,  # sums that cancel, exact quotients and squares, neighbours
    "limits": 32,  # results about the target's limits: overflow, subnormals; sums whose terms hardly meet
}
#: slots of 64 of a unit's
UNIT_SHARES = {
    "uniform": 6,
    "near one": 20,
    "one sign": 8,  # sums that grow: stagnation, overflow, saturation
    "cancelling": 12,  # the second half of the products undoes the first
    "small": 6,  # products about the smallest values
    "large": 6,  # products about the largest
    "specials": 6,  # edge cases, infinities and NaNs among numbers near 1
}
_SLOTS, _UNIT_SLOTS = sum(SHARES.values()), sum(UNIT_SHARES.values())
assert _SLOTS == SLOTS
_GROUP = 8
_WIDE_BLOCK, _WIDE_WORDS = 1 << 10, 24  # where codes take two words: vectors of a block, words of a vector
_OF_POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow")


def block_size(spec: Spec) -> int:
    """Vectors in a random block: 2**15, fewer where a vector has many elements; whole sequences of a mac."""
    if not isinstance(spec, UnitSpec):
        return _WIDE_BLOCK if any(f.leads for f in (*spec.formats, spec.out_fmt)) else _BLOCK
    elements = max(c.count for c in spec.columns)
    if spec.op == "mac":
        return _UNIT_SLOTS * max(1, (1 << 10) // spec.shape[2]) * spec.shape[2]
    return _UNIT_SLOTS * max(1, (1 << 10) // elements)


def _base(seed: int, domain: int, block: int) -> int:
    low, high = _core.philox_key(seed, block, domain)
    return high << 32 | low


def raw_words(seed: int, domain: int, block: int, count: int) -> np.ndarray:
    out = np.empty(count, np.uint64)
    fill_words(out, _base(seed, domain, block))
    return out


def _mask(bits: int) -> int:
    return _ONES64 >> (64 - bits) if bits else 0


@lru_cache(maxsize=64)
def _edges(fmt) -> np.ndarray:
    table = edge_codes(fmt)
    table.flags.writeable = False
    return table


# -- rules of single operands ------------------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def _uniform(fmt) -> Rule:
    """Words to codes, each as likely."""
    return Rule("uniform", kept=_mask(fmt.bits))


@lru_cache(maxsize=256)
def _edge(fmt, which: int = 0, most: int = 0) -> Rule:
    """Words to edge cases; where choices pick `which` of `most`, if these are given."""
    return Rule("edge", table=_edges(fmt), which=which, most=most)


@of_format
def _drawn_bits(fmt) -> int:
    """How many of a code's last bits a tail may take."""
    return fmt.mantissa_bits


@_drawn_bits.fixed
@_drawn_bits.custom
def _all_bits(fmt) -> int:
    return fmt.bits


@lru_cache(maxsize=256)
def _tail(fmt, salt: int = 0) -> Rule:
    """Codes with a tail of j bits that reads 0...0, 1...1, 10...0 or 10...01."""
    return Rule("tail", count=_drawn_bits(fmt) + 1, salt=salt)


@lru_cache(maxsize=256)
@of_format
def _near_one(fmt, reach: int | None = None, positive: bool = False) -> Rule:
    """Words to exponents within `reach` of 1's (default: the precision), and above 0; fixed point: to numbers of every
    length."""
    kept = _mask(fmt.bits - (positive and fmt.signed))
    reach = fmt.mantissa_bits + 2 if reach is None else min(reach, fmt.bias)
    return Rule("near", **{**_field(fmt), "kept": kept & _hole(fmt)}, first=fmt.bias - reach, count=2 * reach + 1)


@_near_one.fixed
def _of_every_length(fmt, reach: int | None = None, positive: bool = False) -> Rule:
    kept = _mask(fmt.bits - (positive and fmt.signed))
    return Rule("signed" if fmt.signed else "unsigned", shift=64 - fmt.bits, count=fmt.bits, kept=kept)


@_near_one.custom
def _of_short_regimes(fmt, reach: int | None = None, positive: bool = False) -> Rule:
    low = max(fmt.bits - 4, 0)  # three bits after the sign say how long the exponent is; 1 is between 3 and 4
    kept = _mask(fmt.bits - positive) & ~(7 << low)
    return Rule("near", shift=low, top=7, kept=kept, first=2, count=4) if fmt.bits > 3 else _uniform(fmt)


def _hole(fmt) -> int:
    """A code's bits but for the exponent."""
    return _mask(fmt.bits) & ~(_mask(fmt.exponent_bits) << fmt.mantissa_bits)


def _field(fmt) -> dict:
    return dict(shift=fmt.mantissa_bits, top=_mask(fmt.exponent_bits), kept=_hole(fmt))


@lru_cache(maxsize=256)
def _at_exponent(fmt) -> Rule:
    """Codes to those of exponents, which are the words."""
    return Rule("place", **_field(fmt), first=fmt.bias)


@lru_cache(maxsize=256)
def _exponent(fmt) -> Rule:
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
def _beside(fmt, negated: bool = False) -> Rule:
    """Codes moved by -2 to 2, negated first if so said."""
    flip, less = _negation(fmt) if negated else (0, 0)
    return Rule("beside", kept=_mask(fmt.bits), flip=flip, less=less)


@lru_cache(maxsize=256)
def _limit_exponents(out) -> Rule:
    """Exponents about the result's limits: from below the smallest value to the lowest normals, or the highest."""
    low = out.emin - out.mantissa_bits - 2
    return Rule("number", first=low, count=out.mantissa_bits + 5, other_first=out.emax - 2, other_count=4)


@lru_cache(maxsize=256)
def _one_of(first: int, count: int, salt: int = 0) -> Rule:
    return Rule("number", first=first, count=count, other_first=first, other_count=count, salt=salt)


def _made(rule: Rule, words: np.ndarray) -> np.ndarray:
    """New codes, or integers, of words."""
    out = np.empty(words.shape, np.uint64)
    rule.apply(words, out)
    return out


def _negated(code, fmt) -> np.ndarray:
    flip, less = map(_U, _negation(fmt))
    return ((code ^ flip) - less) & _U(_mask(fmt.bits))


def _as_codes(codes, fmt) -> np.ndarray:
    return codes.astype(fmt.storage_dtype)


# -- related operands of an operation ----------------------------------------------------------------------------------
def _computed(op, codes, formats, out) -> np.ndarray:
    """The result of another operation, as an operand."""
    narrow = [_as_codes(c, f) for c, f in zip(codes, formats, strict=True)]
    if op == "convert":
        return arithmetic.convert(narrow[0], formats[0], out, invalid=0)
    return getattr(arithmetic, op)(*narrow, tuple(formats), out_fmt=out, invalid=0)


def _relate(codes, word, spec) -> None:
    """Operands that meet: sums that cancel, exact quotients and squares, neighbours."""
    f = spec.formats
    if spec.op in ("add", "subtract"):
        codes[1][...] = codes[0] if f[0] == f[1] else _computed("convert", codes[:1], f[:1], f[1])
        _beside(f[1], spec.op == "add").apply(word, codes[1])
    elif spec.op == "fma" or spec.op in FUSED:
        product, addend = FUSED.get(spec.op, (False, False))
        codes[2][...] = _computed("multiply", codes[:2], f[:2], f[2])
        _beside(f[2], product == addend).apply(word, codes[2])
    elif spec.op in ("divide", "remainder"):
        _tail(f[0]).apply(word, codes[0])
        codes[0][...] = _computed("multiply", codes, f, f[0])
        _beside(f[0]).apply(word, codes[0])
    elif spec.op in ("sqrt", "rsqrt"):
        codes[0][...] = _computed("multiply", [codes[0], codes[0]], (f[0], f[0]), f[0])
        _beside(f[0]).apply(word, codes[0])
    elif len(f) == 2 and f[0] == f[1]:
        codes[1][...] = codes[0]
        _beside(f[1]).apply(word, codes[1])
    else:
        _tail(f[0]).apply(word, codes[0])


def _limit(codes, word, spec) -> None:
    """Results about the target's limits; sums whose terms overlap in few places."""
    f, out = spec.formats, spec.out_fmt
    if not all(x.exponent_bits for x in (*f, out)):
        for i, (code, fmt) in enumerate(zip(codes, f, strict=True)):
            _tail(fmt, i).apply(word, code)
        return
    first = _picked(_exponent(f[0]), codes[0])
    if spec.op in ("add", "subtract"):
        reach = 2 * max(x.precision for x in f) + 5
        _move(codes[1], first + _picked(_one_of(-(reach // 2), reach), word), f[1])
        _tail(f[1], 1).apply(word, codes[1])
    elif spec.op in ("multiply", "fma", *FUSED):
        _move(codes[1], _picked(_limit_exponents(out), word) - first, f[1])
        if spec.op != "multiply":
            reach = 4 * out.precision + 7
            product = first + _picked(_exponent(f[1]), codes[1])
            _move(codes[2], product + _picked(_one_of(-(reach // 2), reach, 1), word), f[2])
    elif spec.op in ("divide", "remainder"):
        _move(codes[1], first - _picked(_limit_exponents(out), word), f[1])
    else:
        _move(codes[0], _picked(_limit_exponents(out), word), f[0])


def _picked(rule: Rule, words) -> np.ndarray:
    return _made(rule, words).view(np.int64)


def _move(codes, exponent, fmt) -> None:
    _at_exponent(fmt).apply(exponent.view(np.uint64), codes)


def _room(arrays: int) -> np.ndarray:
    """Room for so many arrays of a block, kept by each thread: memory fresh from the system costs more than drawing."""
    if getattr(_kept, "room", None) is None or len(_kept.room) < arrays:
        _kept.room = np.empty((arrays, _BLOCK // _SLOTS, _SLOTS), np.uint64)
    return _kept.room[:arrays]


def _order() -> np.ndarray:
    """The groups of slots in the order of vectors: each stratum's spread over all, so that any beginning has most."""
    places = [(2 * i + 1) * _SLOTS * _GROUP // share for share in SHARES.values() for i in range(share // _GROUP)]
    return np.argsort(places, kind="stable")


_ORDER = _order()
_PLACES = {kind: slice(end - SHARES[kind], end) for kind, end in zip(SHARES, accumulate(SHARES.values()), strict=True)}


@lru_cache(maxsize=64)
def _steps(spec) -> list[tuple[Rule, int, int, int]]:
    """What makes codes of each operand's words: (rule, operand, first slot, slots)."""
    steps, near = [], _PLACES["edges"].stop  # from there on, all is made of numbers near 1
    for i, fmt in enumerate(spec.formats):
        positive = i == 0 and spec.op in _OF_POSITIVE
        rules = {"uniform": _uniform(fmt), "edges": _edge(fmt), "one edge": _edge(fmt, i, len(spec.formats)),
                 "tails": _tail(fmt)}  # fmt: skip
        steps.append((_near_one(fmt, None, positive), i, near, _SLOTS - near))
        steps += [(rule, i, _PLACES[kind].start, SHARES[kind]) for kind, rule in rules.items()]
    return steps


def _operation_block(spec, seed: int, block: int) -> tuple[np.ndarray, ...]:
    formats = spec.formats
    if block_size(spec) == _WIDE_BLOCK:
        words = raw_words(seed, _DOMAIN_OPERANDS, block, _WIDE_BLOCK * _WIDE_WORDS).reshape(_WIDE_BLOCK, _WIDE_WORDS)
        kinds = [kind for kind, share in SHARES.items() for _ in range(share // _GROUP)]
        return wide_block(spec, words, [kinds[g] for g in _ORDER for _ in range(_GROUP)] * (_WIDE_BLOCK // _SLOTS))
    room = _room(len(formats) + 1)
    codes, choice = room[1:], room[0]
    fill_block(_steps(spec), _base(seed, _DOMAIN_OPERANDS, block), choice, codes)
    for kind, change in (("related", _relate), ("limits", _limit)):
        change(list(codes[:, :, _PLACES[kind]]), choice[:, _PLACES[kind]], spec)
    return tuple(deal(c, _ORDER, f.storage_dtype) for c, f in zip(codes, formats, strict=True))


# -- elements of a unit's operands -------------------------------------------------------------------------------------
def _unit_stratum(kind: str, codes, words, spec: UnitSpec) -> list[np.ndarray]:
    """codes: for a, b and C, uniform ones of shape (n, elements); words: of the same shapes."""
    formats = spec.formats
    if kind == "uniform":
        return codes
    floats = all(f.exponent_bits for f in formats)
    reach = 1 if kind in ("small", "large", "one sign") else 3
    near = [_made(_near_one(f, reach), w) for w, f in zip(words, formats, strict=True)]
    if kind == "large" or (kind == "one sign" and not floats):
        near = [_large(f, c, w) for c, w, f in zip(near, words, formats, strict=True)]
    if kind in ("one sign", "large"):
        signs = [w[:, :1] for w in words]
        near = [_signed_alike(f, c, s) for c, s, f in zip(near, signs, formats, strict=True)]
    elif kind == "small" and floats:
        half = [f.emin // 2 if i < 2 else spec.out_fmt.emin for i, f in enumerate(formats)]
        for codes_, w, e, f in zip(near, words, half, formats, strict=True):
            _move(codes_, _picked(_one_of(e - 3, 5), w), f)
    elif kind == "cancelling" and spec.shape[2] > 1:
        m, n, k = spec.shape
        rows, columns, word = near[0].reshape(-1, m, k), near[1].reshape(-1, k, n), words[0].reshape(-1, m, k)
        half = k // 2
        first, second = slice(0, half), slice(half, 2 * half)
        columns[:, second] = _negated(columns[:, first], formats[1])
        odd = word[:, :, second] & _U(7) == 0  # here and there a place is left
        moved = np.ascontiguousarray(rows[:, :, first])
        _beside(formats[0]).apply(word[:, :, second].reshape(-1, half), moved.reshape(-1, half))
        rows[:, :, second] = np.where(odd, moved, rows[:, :, first])
    elif kind == "specials":
        near = [np.where(w & _U(15) == 0, _made(_edge(f), w), c) for c, w, f in zip(near, words, formats, strict=True)]
    return near


@of_format
def _large(fmt, code, word) -> np.ndarray:
    """Values whose products are about the largest; fixed point: that are."""
    _move(code, _picked(_one_of((fmt.emax + 1) // 2 - 2, 4), word), fmt)
    return code


@_large.fixed
def _large_fixed(fmt, code, word) -> np.ndarray:
    top, count = (1 << (fmt.bits - fmt.signed)) - 1, min(8, 1 << (fmt.bits - fmt.signed))
    return _made(_one_of(top - count + 1, count), word)


@_large.custom
def _large_tapered(fmt, code, word) -> np.ndarray:
    root = int(fmt.encode(np.array([fmt.max**0.5]))[0])
    first = max(min(root - 3, fmt.max_code - 7), 1)
    return _made(_one_of(first, min(8, fmt.max_code - first + 1)), word)


@of_format
def _signed_alike(fmt, code, word) -> np.ndarray:
    """Of a row's sign."""
    if not fmt.signed:
        return code
    top = _U(1 << (fmt.bits - 1))
    return code & ~top | (word & _U(1)) << _U(fmt.bits - 1)


@_signed_alike.fixed
@_signed_alike.custom
def _fixed_signed_alike(fmt, code, word) -> np.ndarray:
    if not fmt.signed:
        return code
    top = _U(1 << (fmt.bits - 1))
    code = np.where(code & top, _negated(code, fmt) & ~top, code)
    return np.where(word & _U(1), _negated(code, fmt), code)


# -- blocks ------------------------------------------------------------------------------------------------------------
def _in_turn(codes: np.ndarray, dtype) -> np.ndarray:
    """Rows in the order of slots, as vectors that take the slots in turn."""
    slots = codes.astype(dtype).reshape(_UNIT_SLOTS, -1, *codes.shape[1:])
    return np.ascontiguousarray(slots.swapaxes(0, 1)).reshape(codes.shape)


def random_block(spec: Spec, seed: int, block: int) -> tuple[np.ndarray, ...]:
    """The operands of random block number `block`, `block_size` vectors.

    Parameters
    ----------
    spec : VectorSpec or UnitSpec
    seed : int
        0 to 2**64 - 1.
    block : int

    Returns
    -------
    tuple of ndarrays
        An array for each of the spec's ``operand_columns``.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.plans.strata import random_block
    >>> [x.shape for x in random_block(VectorSpec.make("multiply", "e5m2"), 0, 0)]
    [(32768,), (32768,)]
    """
    return (_unit_block if isinstance(spec, UnitSpec) else _operation_block)(spec, seed, block)


def _unit_block(spec: UnitSpec, seed: int, block: int) -> tuple[np.ndarray, ...]:
    columns = [c for c in spec.operand_columns if c.name != "first"]
    steps = spec.shape[2] if spec.op == "mac" else 1
    rows = block_size(spec) // steps  # of sequences
    counts = [c.count * steps if c.name != "c" else c.count for c in columns]
    words = raw_words(seed, _DOMAIN_OPERANDS, block, rows * sum(counts))
    edges = np.cumsum([0, *(rows * n for n in counts)])
    words = [words[i:j].reshape(rows, n) for i, j, n in zip(edges, edges[1:], counts, strict=False)]
    parts, start = [], 0
    for kind, share in UNIT_SHARES.items():
        here = [w[start * rows // _UNIT_SLOTS : (start + share) * rows // _UNIT_SLOTS] for w in words]
        codes = [w & _U(_mask(c.bits)) for w, c in zip(here, columns, strict=True)]
        parts.append(_unit_stratum(kind, codes, here, spec))
        start += share
    arrays = [
        _in_turn(np.concatenate(part), c.dtype) for part, c in zip(zip(*parts, strict=True), columns, strict=True)
    ]
    if spec.op == "mac":
        first = np.tile(np.arange(steps) == 0, rows).astype(np.uint8)
        arrays = [x.reshape(-1) if c.name != "c" else np.repeat(x.reshape(-1), steps) for x, c in zip(
            arrays, columns, strict=True)]  # fmt: skip
        return (first, *arrays)
    return tuple(x if c.count > 1 else x.reshape(-1) for x, c in zip(arrays, columns, strict=True))


def random_words(spec: Spec, seed: int, start: int, n: int) -> np.ndarray:
    """The random bits of vectors start .. start+n-1, which depend on a vector's number alone.

    An eighth of the words is all zeros, an eighth all ones, the rest drawn; uint32, of shape (n,) or (n, words).
    """
    column = next(c for c in spec.columns if c.name == "random")
    size = max(1, (1 << 16) // column.count)
    parts = []
    while n:
        number, first = divmod(start, size)
        words = raw_words(seed, _DOMAIN_RANDOM_BITS, number, size * column.count)
        kind = words >> _U(61)
        drawn = np.where(kind == 0, _U(0), np.where(kind == 1, _U(_ONES64), words)) & _U(_mask(column.bits))
        here = drawn.astype(np.uint32).reshape(size, column.count)[first : first + n]
        parts.append(here if column.count > 1 else here.ravel())
        start, n = start + len(here), n - len(here)
    return np.concatenate(parts)
