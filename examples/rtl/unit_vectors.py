"""Vectors of units for the designs here: operands of several kinds, and what softnum's units make of them.

A line of `dot` holds a, b, where the unit takes one c, and the result; a and b are words of as many elements as a dot
product has, element 0 in the least significant bits. A line of `mac` is one clock of an accumulator: first (1: a sum
starts), a, b and the sum so far.
"""

from __future__ import annotations

import numpy as np

import softnum as sn
from softnum.files import atomic_file
from softnum.vectors.operands import edge_codes

TILE = 8  # a tile's rows and columns are multiplied all with all
STEPS = 24  # the longest sum of a mac
KINDS = 7


def codes_of_kind(kind: int, fmt, shape, rng) -> np.ndarray:
    """Codes of a format: uniform, near 1, edge cases, finite, large, small, or pairs that nearly cancel."""
    code = rng.integers(0, 1 << fmt.bits, shape)
    if kind == 2:
        return rng.choice(edge_codes(fmt).astype(np.int64), shape)
    if fmt.kind == "fixed":
        shift = {1: 4, 3: 2, 5: 6}.get(kind, 0)
        if kind in (4, 6):  # large, of one sign
            return code >> 2 | (1 << (fmt.bits - 2) if kind == 4 else 3 << (fmt.bits - 2))
        return ((code - (1 << (fmt.bits - 1))) >> shift) & ((1 << fmt.bits) - 1)
    top = (1 << fmt.exponent_bits) - 1
    low, high = {1: (fmt.bias - 2, fmt.bias + 3), 3: (0, top), 4: (top - 4, top), 5: (0, 4)}.get(kind, (0, top + 1))
    if kind == 6:
        low, high = fmt.bias - 3, fmt.bias + 3
    field = rng.integers(low, high, shape)
    return code & ~(top << fmt.mantissa_bits) | field << fmt.mantissa_bits


def operands(unit, length: int, tiles: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Codes a of shape (tiles, TILE, length), b of shape (tiles, length, TILE)."""
    fa, fb = unit.operand
    a, b = np.empty((tiles, TILE, length), np.int64), np.empty((tiles, length, TILE), np.int64)
    for tile in range(tiles):
        kind = tile % KINDS
        a[tile] = codes_of_kind(kind, fa, a[tile].shape, rng)
        b[tile] = codes_of_kind(kind if tile % 3 else 1, fb, b[tile].shape, rng)
        if kind == 6 and fb.kind == "float":  # x * y, then about -x * y
            half = length // 2
            a[tile, :, half : 2 * half] = a[tile, :, :half]
            b[tile, half : 2 * half] = b[tile, :half] ^ 1 << (fb.bits - 1) ^ (rng.random(b[tile, :half].shape) < 0.2)
    return a, b


def result_codes(unit, a, b, c=None) -> np.ndarray:
    """The unit's results, of shape (tiles, TILE, TILE)."""
    x, y = (sn.Array(v.astype(f.storage_dtype), f) for v, f in zip((a, b), unit.operand, strict=True))
    z = None if c is None else sn.Array(c.astype(unit.c_format.storage_dtype), unit.c_format)
    result = sn.matmul(x, y, unit, z)
    return np.asarray(result.codes if isinstance(result, sn.Array) else sn.encode(result, unit.result)).astype(np.int64)


def addends(unit, a, b, rng) -> np.ndarray:
    """Codes of C: of each kind, or about what cancels the products."""
    fmt = unit.c_format
    c = np.stack([codes_of_kind((tile // KINDS) % KINDS, fmt, (TILE, TILE), rng) for tile in range(len(a))])
    nearby = np.clip((result_codes(unit, a, b) ^ 1 << (fmt.bits - 1)) + rng.integers(-2, 3, c.shape), 0, None)
    draw = rng.random(c.shape)
    return np.where(draw < 0.25, nearby & ((1 << fmt.bits) - 1), np.where(draw < 0.35, 0, c))


def words_of(codes: np.ndarray, bits: int) -> list[str]:
    """Rows of codes as hexadecimal words, element 0 in the least significant bits."""
    digits = -(-bits * codes.shape[1] // 4)
    words = codes.astype(object) @ np.array([1 << bits * i for i in range(codes.shape[1])], object)
    return [f"{word:0{digits}X}" for word in words]


def dot_columns(unit, length: int, count: int, rng) -> list[list[str]]:
    tiles = -(-count // TILE**2)
    a, b = operands(unit, length, tiles, rng)
    c = addends(unit, a, b, rng)
    result = result_codes(unit, a, b, c)
    rows = np.broadcast_to(a[:, :, None, :], (tiles, TILE, TILE, length)).reshape(-1, length)
    columns = np.broadcast_to(b.transpose(0, 2, 1)[:, None], (tiles, TILE, TILE, length)).reshape(-1, length)
    fa, fb = unit.operand
    return [
        words_of(rows[:count], fa.bits), words_of(columns[:count], fb.bits),
        words_of(c.reshape(-1, 1)[:count], unit.c_format.bits),
        words_of(result.reshape(-1, 1)[:count], unit.result.bits),
    ]  # fmt: skip


def mac_columns(unit, count: int, rng) -> list[list[str]]:
    sums = -(-count // 4)  # more than enough: the mean length is above 4
    tiles = -(-sums // TILE**2)
    a, b = operands(unit, STEPS, tiles, rng)
    prefixes = np.stack(
        [result_codes(unit, a[:, :, : k + 1], b[:, : k + 1]) for k in range(STEPS)], axis=-1
    ).reshape(-1, STEPS)  # fmt: skip
    shape = (tiles, TILE, TILE, STEPS)
    rows = np.broadcast_to(a[:, :, None, :], shape).reshape(-1, STEPS)
    columns = np.broadcast_to(b.transpose(0, 2, 1)[:, None], shape).reshape(-1, STEPS)
    order = rng.permutation(len(rows))
    lengths = np.where(rng.random(len(rows)) < 0.3, STEPS, rng.integers(1, STEPS + 1, len(rows)))
    used = np.arange(STEPS) < lengths[:, None]
    first = np.zeros(used.shape, np.int64)
    first[:, 0] = 1
    fa, fb = unit.operand
    return [
        words_of(v[order][used][:count, None], bits)
        for v, bits in ((first, 1), (rows, fa.bits), (columns, fb.bits), (prefixes, unit.result.bits))
    ]


def write(path, op: str, unit, count: int, seed: int, length: int = 1) -> None:
    """Write a file of vectors, with a header that says what it holds."""
    rng = np.random.Generator(np.random.Philox(seed))
    fa, fb = unit.operand
    if op == "mac":
        columns = mac_columns(unit, count, rng)
        layout = f"first:1 a:{fa.bits} b:{fb.bits} result:{unit.result.bits}"
    else:
        columns = dot_columns(unit, length, count, rng)
        layout = (
            f"a:{fa.bits}*{length} b:{fb.bits}*{length} c:{unit.c_format.bits} result:{unit.result.bits}"
        )  # fmt: skip
    header = [f"op: {op}", f"unit: {unit.expression}", f"columns: {layout}", f"vectors: {count}", f"seed: {seed}"]
    lines = ["# softnum vectors 1", *(f"# {line}" for line in header), *map(" ".join, zip(*columns, strict=True))]
    with atomic_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
