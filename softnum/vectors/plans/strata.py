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

from softnum.ops import arithmetic
from softnum.runtime import _core
from softnum.vectors.plans._draw import SLOTS, Rule, deal, fill_block, fill_words
from softnum.vectors.plans.fpu import FUSED
from softnum.vectors.plans.rules import (
    as_codes,
    beside_rule,
    edge_rule,
    exponent_rule,
    large_codes,
    limit_rule,
    made_of,
    mask_of,
    move_to,
    near_one_rule,
    negated_codes,
    number_rule,
    picked,
    signed_alike,
    tail_rule,
    uniform_rule,
)
from softnum.vectors.plans.scales import drawn_scales
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


# -- related operands of an operation ----------------------------------------------------------------------------------
def _computed(op, codes, formats, out) -> np.ndarray:
    """The result of another operation, as an operand."""
    narrow = [as_codes(c, f) for c, f in zip(codes, formats, strict=True)]
    if op == "convert":
        return arithmetic.convert(narrow[0], formats[0], out, invalid=0)
    return getattr(arithmetic, op)(*narrow, tuple(formats), out_fmt=out, invalid=0)


def _relate(codes, word, spec) -> None:
    """Operands that meet: sums that cancel, exact quotients and squares, neighbours."""
    f = spec.formats
    if spec.op in ("add", "subtract"):
        codes[1][...] = codes[0] if f[0] == f[1] else _computed("convert", codes[:1], f[:1], f[1])
        beside_rule(f[1], spec.op == "add").apply(word, codes[1])
    elif spec.op == "fma" or spec.op in FUSED:
        product, addend = FUSED.get(spec.op, (False, False))
        codes[2][...] = _computed("multiply", codes[:2], f[:2], f[2])
        beside_rule(f[2], product == addend).apply(word, codes[2])
    elif spec.op in ("divide", "remainder"):
        tail_rule(f[0]).apply(word, codes[0])
        codes[0][...] = _computed("multiply", codes, f, f[0])
        beside_rule(f[0]).apply(word, codes[0])
    elif spec.op in ("sqrt", "rsqrt"):
        codes[0][...] = _computed("multiply", [codes[0], codes[0]], (f[0], f[0]), f[0])
        beside_rule(f[0]).apply(word, codes[0])
    elif len(f) == 2 and f[0] == f[1]:
        codes[1][...] = codes[0]
        beside_rule(f[1]).apply(word, codes[1])
    else:
        tail_rule(f[0]).apply(word, codes[0])


def _limit(codes, word, spec) -> None:
    """Results about the target's limits; sums whose terms overlap in few places."""
    f, out = spec.formats, spec.out_fmt
    if not all(x.exponent_bits for x in (*f, out)):
        for i, (code, fmt) in enumerate(zip(codes, f, strict=True)):
            tail_rule(fmt, i).apply(word, code)
        return
    first = picked(exponent_rule(f[0]), codes[0])
    if spec.op in ("add", "subtract"):
        reach = 2 * max(x.precision for x in f) + 5
        move_to(codes[1], first + picked(number_rule(-(reach // 2), reach), word), f[1])
        tail_rule(f[1], 1).apply(word, codes[1])
    elif spec.op in ("multiply", "fma", *FUSED):
        move_to(codes[1], picked(limit_rule(out), word) - first, f[1])
        if spec.op != "multiply":
            reach = 4 * out.precision + 7
            product = first + picked(exponent_rule(f[1]), codes[1])
            move_to(codes[2], product + picked(number_rule(-(reach // 2), reach, 1), word), f[2])
    elif spec.op in ("divide", "remainder"):
        move_to(codes[1], first - picked(limit_rule(out), word), f[1])
    else:
        move_to(codes[0], picked(limit_rule(out), word), f[0])


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
        rules = {
            "uniform": uniform_rule(fmt), "edges": edge_rule(fmt), "one edge": edge_rule(fmt, i, len(spec.formats)),
            "tails": tail_rule(fmt),
        }  # fmt: skip
        steps.append((near_one_rule(fmt, None, positive), i, near, _SLOTS - near))
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
    near = [made_of(near_one_rule(f, reach), w) for w, f in zip(words, formats, strict=True)]
    if kind == "large" or (kind == "one sign" and not floats):
        near = [large_codes(f, c, w) for c, w, f in zip(near, words, formats, strict=True)]
    if kind in ("one sign", "large"):
        signs = [w[:, :1] for w in words]
        near = [signed_alike(f, c, s) for c, s, f in zip(near, signs, formats, strict=True)]
    elif kind == "small" and floats:
        half = [f.emin // 2 if i < 2 else spec.out_fmt.emin for i, f in enumerate(formats)]
        for codes_, w, e, f in zip(near, words, half, formats, strict=True):
            move_to(codes_, picked(number_rule(e - 3, 5), w), f)
    elif kind == "cancelling" and spec.shape[2] > 1:
        m, n, k = spec.shape
        rows, columns, word = near[0].reshape(-1, m, k), near[1].reshape(-1, k, n), words[0].reshape(-1, m, k)
        half = k // 2
        first, second = slice(0, half), slice(half, 2 * half)
        columns[:, second] = negated_codes(columns[:, first], formats[1])
        odd = word[:, :, second] & _U(7) == 0  # here and there a place is left
        moved = np.ascontiguousarray(rows[:, :, first])
        beside_rule(formats[0]).apply(word[:, :, second].reshape(-1, half), moved.reshape(-1, half))
        rows[:, :, second] = np.where(odd, moved, rows[:, :, first])
    elif kind == "specials":
        edges = [made_of(edge_rule(f), w) for w, f in zip(words, formats, strict=True)]
        near = [np.where(w & _U(15) == 0, x, c) for x, c, w in zip(edges, near, words, strict=True)]
    return near


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


def _some_zeros(codes: np.ndarray, words: np.ndarray, fmt) -> None:
    """Every eighth code is a zero of its sign: scaled sums that are far below others are seen by themselves."""
    sign = _U(1 << (fmt.bits - 1) if fmt.negative_zero else 0)
    np.copyto(codes, codes & sign, where=words >> _U(40) & _U(7) == 0)


def _unit_block(spec: UnitSpec, seed: int, block: int) -> tuple[np.ndarray, ...]:
    columns = [c for c in spec.operand_columns if c.name != "first"]
    steps = spec.shape[2] if spec.op == "mac" else 1
    rows = block_size(spec) // steps  # of sequences
    counts = [c.count * steps if c.name != "c" else c.count for c in columns]
    words = raw_words(seed, _DOMAIN_OPERANDS, block, rows * sum(counts))
    places = np.cumsum([0, *(rows * n for n in counts)])
    words = [words[i:j].reshape(rows, n) for i, j, n in zip(places, places[1:], counts, strict=False)]
    scales = {c.name for c in spec.scale_columns}
    parts, start = [], 0
    for kind, share in UNIT_SHARES.items():
        here = [w[start * rows // _UNIT_SLOTS : (start + share) * rows // _UNIT_SLOTS] for w in words]
        codes = [w & _U(mask_of(c.bits)) for w, c in zip(here, columns, strict=True)]
        elements, others = ([i for i, c in enumerate(columns) if (c.name in scales) == of] for of in (False, True))
        drawn = _unit_stratum(kind, [codes[i] for i in elements], [here[i] for i in elements], spec)
        made = dict(zip(elements, drawn, strict=True))
        if scales:
            drawn = drawn_scales(kind, [codes[i] for i in others], [here[i] for i in others], spec)
            made |= zip(others, drawn, strict=True)
            if spec.with_c:
                _some_zeros(made[elements[-1]], here[elements[-1]], spec.formats[2])
        parts.append([made[i] for i in range(len(columns))])
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
        drawn = np.where(kind == 0, _U(0), np.where(kind == 1, _U(_ONES64), words)) & _U(mask_of(column.bits))
        here = drawn.astype(np.uint32).reshape(size, column.count)[first : first + n]
        parts.append(here if column.count > 1 else here.ravel())
        start, n = start + len(here), n - len(here)
    return np.concatenate(parts)
