"""Random operands in strata: kinds of vectors in fixed shares, each drawn by its own rule.

A block of random vectors has 64 slots of equal size; each stratum has some of them, and the vectors of a block take the
slots in turn, so that any beginning of a block has all strata. Random words are raw Philox4x64 words of a counter that
holds the block's number: block k is the same whatever was made before it, and no global state is involved. (Only raw
words are used: NumPy promises that they never change.)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum import ops
from softnum.vectors.codes import exponents
from softnum.vectors.operands import edge_codes
from softnum.vectors.spec import Spec
from softnum.vectors.unit_spec import UnitSpec

__all__ = ["SHARES", "UNIT_SHARES", "block_size", "random_block", "random_words"]

SLOTS = 64
_DOMAIN_OPERANDS, _DOMAIN_RANDOM_BITS = 1, 2
_ONES64 = (1 << 64) - 1
_U = np.uint64

#: slots of 64 of each stratum of an operation's vectors
SHARES = {
    "uniform": 20,  # every code as likely
    "edges": 5,  # every operand an edge case
    "one edge": 6,  # one operand an edge case, the others near 1
    "tails": 6,  # significands that end in 0...0, 1...1, 10...0 or 10...01: what decides a rounding
    "near one": 8,  # results neither overflow nor vanish
    "related": 12,  # sums that cancel, exact quotients and squares, neighbours
    "limits": 7,  # results about the target's limits: overflow, subnormals; sums whose terms hardly meet
}
#: the same of a unit's
UNIT_SHARES = {
    "uniform": 6,
    "near one": 20,
    "one sign": 8,  # sums that grow: stagnation, overflow, saturation
    "cancelling": 12,  # the second half of the products undoes the first
    "small": 6,  # products about the smallest values
    "large": 6,  # products about the largest
    "specials": 6,  # edge cases, infinities and NaNs among numbers near 1
}
_OF_POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow")
assert sum(SHARES.values()) == sum(UNIT_SHARES.values()) == SLOTS


def block_size(spec: Spec) -> int:
    """Vectors in a random block: 2**14, fewer where a vector has many elements; whole sequences of a mac."""
    if not isinstance(spec, UnitSpec):
        return 1 << 14
    elements = max(c.count for c in spec.columns)
    if spec.op == "mac":
        return SLOTS * max(1, (1 << 10) // spec.shape[2]) * spec.shape[2]
    return SLOTS * max(1, (1 << 10) // elements)


def _raw(seed: int, domain: int, block: int, count: int) -> np.ndarray:
    generator = np.random.Philox(key=np.array([seed, domain], np.uint64), counter=np.array([0, 0, block, 0], np.uint64))
    return generator.random_raw(count)


def _mask(bits: int) -> np.uint64:
    return _U(_ONES64 >> (64 - bits)) if bits else _U(0)


@lru_cache(maxsize=64)
def _edges(fmt) -> np.ndarray:
    table = edge_codes(fmt)
    table.flags.writeable = False
    return table


def _pick(word, n: int) -> np.ndarray:
    """A number from 0 to n - 1 (n < 2**31) by the upper half of each word."""
    return (word >> _U(32)) * _U(n) >> _U(32)


def _hash(word) -> np.ndarray:
    """Other bits from the same word (the finalizer of MurmurHash3)."""
    word = (word ^ word >> _U(33)) * _U(0xFF51AFD7ED558CCD)
    return (word ^ word >> _U(33)) * _U(0xC4CEB9FE1A85EC53)


# -- single operands ---------------------------------------------------------------------------------------------------
def _edge(word, fmt) -> np.ndarray:
    return _edges(fmt)[_pick(word, len(_edges(fmt))).astype(np.int64)]


def _tails(code, word, fmt) -> np.ndarray:
    """The codes with a tail of j bits that reads 0...0, 1...1, 10...0 or 10...01."""
    m = fmt.mantissa_bits if fmt.kind == "float" else fmt.bits
    low = _mask(63) >> (_U(63) - _pick(word, m + 1))
    lead = (low + _U(1)) >> _U(1)
    which = word & _U(3)
    tail = np.where(which & _U(1), low, _U(0))
    tail = np.where(which == 2, lead, np.where(which == 3, (lead | _U(1)) & low, tail))
    return code & ~low | tail


def _near_one(code, word, fmt, reach: int | None = None) -> np.ndarray:
    """Exponents within `reach` of 1's (default: the precision); fixed point: numbers of every length."""
    if fmt.kind == "fixed":
        left = _U(64 - fmt.bits)
        shift = _pick(word, fmt.bits) + left
        wide = code << left
        short = (wide.view(np.int64) >> shift.view(np.int64)).view(np.uint64) if fmt.signed else wide >> shift
        return short & _mask(fmt.bits)
    reach = fmt.mantissa_bits + 2 if reach is None else reach
    field = _pick(word, 2 * reach + 1).astype(np.int64) + (fmt.bias - reach)
    return _with_field(code, field, fmt)


def _with_field(code, field, fmt) -> np.ndarray:
    m, top = fmt.mantissa_bits, (1 << fmt.exponent_bits) - 1
    hole = ~(_mask(fmt.exponent_bits) << _U(m)) & _mask(fmt.bits)
    return code & hole | np.clip(field, 0, top).astype(np.uint64) << _U(m)


def _at_exponent(code, exponent, fmt) -> np.ndarray:
    return _with_field(code, exponent + fmt.bias, fmt)


def _limit_exponents(word, out) -> np.ndarray:
    """Exponents about the result's limits: from below the smallest value to the lowest normals, or the highest."""
    low = out.emin - out.mantissa_bits - 2 + _pick(word, out.mantissa_bits + 5).astype(np.int64)
    high = out.emax - 2 + _pick(word, 4).astype(np.int64)
    return np.where(word & _U(8), high, low)


def _negated(code, fmt) -> np.ndarray:
    if fmt.kind == "fixed":
        return (_U(0) - code) & _mask(fmt.bits)
    return code ^ _U(1 << (fmt.bits - 1)) if fmt.signed else code


def _nearby(code, word, fmt) -> np.ndarray:
    """The code moved by -2 to 2."""
    return (code + _pick(word, 5) - _U(2)) & _mask(fmt.bits)


def _as_codes(codes, fmt) -> np.ndarray:
    return codes.astype(fmt.storage_dtype)


# -- related operands of an operation ----------------------------------------------------------------------------------
def _computed(op, codes, formats, out) -> np.ndarray:
    """The result of another operation, as an operand."""
    narrow = [_as_codes(c, f) for c, f in zip(codes, formats, strict=True)]
    if op == "convert":
        return ops.convert(narrow[0], formats[0], out, invalid=0).astype(np.uint64)
    return getattr(ops, op)(*narrow, tuple(formats), out_fmt=out, invalid=0).astype(np.uint64)


def _related(codes, word, spec) -> list[np.ndarray]:
    """Operands that meet: sums that cancel, exact quotients and squares, neighbours."""
    f, codes = spec.formats, list(codes)
    if spec.op in ("add", "subtract"):
        like = codes[0] if f[0] == f[1] else _computed("convert", codes[:1], f[:1], f[1])
        codes[1] = _nearby(_negated(like, f[1]) if spec.op == "add" else like, word, f[1])
    elif spec.op == "fma":
        codes[2] = _nearby(_negated(_computed("multiply", codes[:2], f[:2], f[2]), f[2]), word, f[2])
    elif spec.op in ("divide", "remainder"):
        factor = _tails(codes[0], _hash(word), f[0])
        codes[0] = _nearby(_computed("multiply", [factor, codes[1]], f, f[0]), word, f[0])
    elif spec.op in ("sqrt", "rsqrt"):
        codes[0] = _nearby(_computed("multiply", [codes[0], codes[0]], (f[0], f[0]), f[0]), word, f[0])
    elif len(f) == 2 and f[0] == f[1]:
        codes[1] = _nearby(codes[0], word, f[1])
    else:
        codes[0] = _tails(codes[0], word, f[0])
    return codes


def _limits(codes, word, spec) -> list[np.ndarray]:
    """Results about the target's limits; sums whose terms overlap in few places."""
    f, out, codes = spec.formats, spec.out_fmt, list(codes)
    if any(x.kind == "fixed" for x in (*f, out)):
        return [_tails(c, _hash(word + _U(i)), x) for i, (c, x) in enumerate(zip(codes, f, strict=True))]
    if spec.op in ("add", "subtract"):
        reach = 2 * max(x.precision for x in f) + 5
        gap = _pick(word, reach).astype(np.int64) - reach // 2
        codes[1] = _tails(_at_exponent(codes[1], exponents(codes[0], f[0]) + gap, f[1]), _hash(word), f[1])
    elif spec.op in ("multiply", "fma"):
        target = _limit_exponents(word, out) - exponents(codes[0], f[0])
        codes[1] = _at_exponent(codes[1], target, f[1])
        if spec.op == "fma":
            reach = 4 * out.precision + 7
            gap = _pick(_hash(word), reach).astype(np.int64) - reach // 2
            exponent = exponents(codes[0], f[0]) + exponents(codes[1], f[1]) + gap
            codes[2] = _at_exponent(codes[2], exponent, f[2])
    elif spec.op in ("divide", "remainder"):
        codes[1] = _at_exponent(codes[1], exponents(codes[0], f[0]) - _limit_exponents(word, out), f[1])
    else:
        codes[0] = _at_exponent(codes[0], _limit_exponents(word, out), f[0])
    return codes


def _operation_stratum(kind: str, codes, words, spec) -> list[np.ndarray]:
    """codes: uniform ones; words: one column for each operand and one more."""
    choice, formats = words[-1], spec.formats
    if kind == "uniform":
        return codes
    if kind == "edges":
        return [_edge(w, f) for w, f in zip(words, formats, strict=False)]
    near = [_near_one(c, w, f) for c, w, f in zip(codes, words, formats, strict=False)]
    if spec.op in _OF_POSITIVE and formats[0].signed:
        near[0] = near[0] & _mask(formats[0].bits - 1)
    if kind == "one edge":
        which = _pick(choice, len(formats))
        return [np.where(which == i, _edge(words[i], f), near[i]) for i, f in enumerate(formats)]
    if kind == "tails":
        return [_tails(c, _hash(w), f) for c, w, f in zip(near, words, formats, strict=False)]
    if kind == "related":
        return _related(near, choice, spec)
    if kind == "limits":
        return _limits(near, choice, spec)
    return near


# -- elements of a unit's operands -------------------------------------------------------------------------------------
def _unit_stratum(kind: str, codes, words, spec: UnitSpec) -> list[np.ndarray]:
    """codes: for a, b and C, uniform ones of shape (n, elements); words: of the same shapes."""
    formats = spec.formats
    if kind == "uniform":
        return codes
    floats = all(f.kind == "float" for f in formats)
    reach = 1 if kind in ("small", "large", "one sign") else 3
    near = [_near_one(c, w, f, min(reach, f.bias) if f.kind == "float" else None) for c, w, f in zip(
        codes, words, formats, strict=True)]  # fmt: skip
    if kind == "large" or (kind == "one sign" and not floats):
        near = [_large(c, w, f) for c, w, f in zip(near, words, formats, strict=True)]
    if kind in ("one sign", "large"):
        signs = [w[:, :1] for w in words]
        near = [_signed_alike(c, s, f) for c, s, f in zip(near, signs, formats, strict=True)]
    elif kind == "small" and floats:
        half = [f.emin // 2 if i < 2 else spec.out_fmt.emin for i, f in enumerate(formats)]
        near = [
            _at_exponent(c, e + _pick(_hash(w), 5).astype(np.int64) - 3, f)
            for c, w, e, f in zip(near, words, half, formats, strict=True)
        ]
    elif kind == "cancelling":
        m, n, k = spec.shape
        rows, columns, word = near[0].reshape(-1, m, k), near[1].reshape(-1, k, n), words[0].reshape(-1, m, k)
        half = k // 2
        first, second = slice(0, half), slice(half, 2 * half)
        columns[:, second] = _negated(columns[:, first], formats[1])
        odd = word[:, :, second] & _U(7) == 0  # here and there a place is left
        moved = _nearby(rows[:, :, first], word[:, :, second], formats[0])
        rows[:, :, second] = np.where(odd, moved, rows[:, :, first])
    elif kind == "specials":
        near = [np.where(w & _U(15) == 0, _edge(_hash(w), f), c) for c, w, f in zip(near, words, formats, strict=True)]
    return near


def _large(code, word, fmt) -> np.ndarray:
    """Values about the largest (fixed point), or whose products are (floats)."""
    if fmt.kind == "fixed":
        top = _U((1 << (fmt.bits - fmt.signed)) - 1)
        return top - _pick(_hash(word), min(8, 1 << (fmt.bits - fmt.signed)))
    return _at_exponent(code, (fmt.emax + 1) // 2 - _pick(_hash(word), 4).astype(np.int64) + 1, fmt)


def _signed_alike(code, word, fmt) -> np.ndarray:
    """Of a row's sign."""
    if not fmt.signed:
        return code
    if fmt.kind == "fixed":
        top = _U(1 << (fmt.bits - 1))
        code = np.where(code & top, _negated(code, fmt) & ~top, code)
        return np.where(word & _U(1), _negated(code, fmt), code)
    top = _U(1 << (fmt.bits - 1))
    return code & ~top | (word & _U(1)) << _U(fmt.bits - 1)


# -- blocks ------------------------------------------------------------------------------------------------------------
def _in_turn(codes: np.ndarray, dtype) -> np.ndarray:
    """Rows in the order of slots, as vectors that take the slots in turn."""
    slots = codes.astype(dtype).reshape(SLOTS, -1, *codes.shape[1:])
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
    >>> from softnum.vectors.strata import random_block
    >>> [x.shape for x in random_block(VectorSpec.make("multiply", "e5m2"), 0, 0)]
    [(16384,), (16384,)]
    """
    if isinstance(spec, UnitSpec):
        return _unit_block(spec, seed, block)
    formats, size = spec.formats, block_size(spec)
    words = list(_raw(seed, _DOMAIN_OPERANDS, block, (len(formats) + 1) * size).reshape(-1, size))
    parts, start = [], 0
    for kind, share in SHARES.items():
        rows = slice(start * (size // SLOTS), (start + share) * (size // SLOTS))
        here = [w[rows] for w in words]
        codes = [w & _mask(f.bits) for w, f in zip(here, formats, strict=False)]
        parts.append(_operation_stratum(kind, codes, here, spec))
        start += share
    return tuple(
        _in_turn(np.concatenate(column), f.storage_dtype)
        for column, f in zip(zip(*parts, strict=True), formats, strict=True)
    )


def _unit_block(spec: UnitSpec, seed: int, block: int) -> tuple[np.ndarray, ...]:
    columns = [c for c in spec.operand_columns if c.name != "first"]
    steps = spec.shape[2] if spec.op == "mac" else 1
    rows = block_size(spec) // steps  # of sequences
    counts = [c.count * steps if c.name != "c" else c.count for c in columns]
    words = _raw(seed, _DOMAIN_OPERANDS, block, rows * sum(counts))
    edges = np.cumsum([0, *(rows * n for n in counts)])
    words = [words[i:j].reshape(rows, n) for i, j, n in zip(edges, edges[1:], counts, strict=False)]
    parts, start = [], 0
    for kind, share in UNIT_SHARES.items():
        here = [w[start * rows // SLOTS : (start + share) * rows // SLOTS] for w in words]
        codes = [w & _mask(c.bits) for w, c in zip(here, columns, strict=True)]
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
        words = _raw(seed, _DOMAIN_RANDOM_BITS, number, size * column.count)
        kind = words >> _U(61)
        drawn = np.where(kind == 0, _U(0), np.where(kind == 1, _U(_ONES64), words)) & _mask(column.bits)
        here = drawn.astype(np.uint32).reshape(size, column.count)[first : first + n]
        parts.append(here if column.count > 1 else here.ravel())
        start, n = start + len(here), n - len(here)
    return np.concatenate(parts)
