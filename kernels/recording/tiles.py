"""Rows in the registers of instructions, and their results out of them.

Eight rows make a tile: row i of A, and again in each band of eight rows below, meets column i of B. The results lie on
the diagonals of the bands.
"""

from __future__ import annotations

import numpy as np

from softnum.kernels.recording.mma import CODES, Instruction, decoded, differing, encoded, size_of

_DIAGONAL = np.arange(8)


def _tiled(x, kind: str) -> np.ndarray:
    """(rows, ...) as codes (tiles, 8, ...), zeros in the last tile behind them."""
    whole = np.zeros((-(-len(x) // 8) * 8, *x.shape[1:]), CODES[kind])
    whole[: len(x)] = x
    return whole.reshape(-1, 8, *x.shape[1:])


def _words(one: Instruction, x, places) -> np.ndarray:
    """A matrix's elements (..., rows, columns) in a warp's registers: (..., 32, registers)."""
    return np.ascontiguousarray(x[(..., *places)]).view(one.word)


def registers_a(one: Instruction, a) -> np.ndarray:
    """Codes (tiles, 8, steps, k) as registers (tiles, steps, lanes, registers); all warps have the same."""
    matrix = np.concatenate([a] * one.bands, 1).transpose(0, 2, 1, 3)
    return np.concatenate([_words(one, matrix, one.places_a)] * one.warps, 2)


def registers_b(one: Instruction, b) -> np.ndarray:
    """The same of B, or of wgmma shared memory: 16 bytes of each of eight columns, then the next 16 bytes."""
    if one.kind == "mma":
        return _words(one, b.transpose(0, 2, 3, 1), one.places_b)
    tiles, _, steps, _ = b.shape
    halves = b.transpose(0, 2, 1, 3).reshape(tiles, steps, 8, 2, 16 // size_of(one.b))
    return np.ascontiguousarray(halves.transpose(0, 1, 3, 2, 4)).view(one.word).reshape(tiles, steps, 64)


def registers_c(one: Instruction, c) -> np.ndarray:
    """Codes (tiles, 8) as registers (tiles, lanes, registers)."""
    matrix = np.zeros((len(c), 8 * one.bands, 8), c.dtype)
    for band in range(one.bands):
        matrix[:, _DIAGONAL + 8 * band, _DIAGONAL] = c
    return np.concatenate([_words(one, matrix, one.places_d)] * one.warps, 1)


def results(one: Instruction, registers) -> np.ndarray:
    """Codes (warps and bands, tiles, 8): the same rows, as often as they were computed."""
    codes = registers.view(CODES[one.d]).reshape(len(registers), one.warps, 32, -1)
    matrix = np.empty((len(registers), one.warps, 8 * one.bands, 8), codes.dtype)
    matrix[(..., *one.places_d)] = codes
    found = [matrix[:, warp, _DIAGONAL + 8 * band, _DIAGONAL] for warp in range(one.warps) for band in range(one.bands)]
    return np.stack(found)


def computed(device, one: Instruction, a, b, c) -> np.ndarray:
    """What a device makes of rows, and of chains of instructions.

    Parameters
    ----------
    device
        With the method ``run`` of `device.Device`.
    one : Instruction
    a, b : array of codes, (rows, steps, k)
    c : array of codes, (rows,)

    Returns
    -------
    array of codes, (rows, steps)
        After each step, whose result is the next one's c.

    Raises
    ------
    RuntimeError
        If the warps and bands of the instruction do not agree.
    """
    steps = range(1, a.shape[1] + 1)
    return np.stack([chained(device, one, a[:, :count], b[:, :count], c) for count in steps], 1)


def chained(device, one: Instruction, a, b, c) -> np.ndarray:
    """The same after the last step alone, (rows,)."""
    left, right = registers_a(one, _tiled(a, one.a)), registers_b(one, _tiled(b, one.b))
    found = results(one, device.run(one, left, right, registers_c(one, _tiled(c, one.d)), a.shape[1]))
    if (found != found[0]).any():
        raise RuntimeError(f"{one.name}: a row's result depends on where in the tile it is")
    return found[0].reshape(-1)[: len(a)]


def box(device, one: Instruction):
    """An instruction as a black box for `softnum.identify`: f(a, b) or f(a, b, c), matrices of numbers.

    More products than it takes go through it again and again, a result being the next one's c; the last may be filled
    up with zeros, whose products are -0, which leaves a sum of -0 what it is. f raises ValueError for numbers that are
    none of the instruction's types.
    """

    def codes(x, kind: str) -> np.ndarray:
        x = np.ascontiguousarray(x, np.float64)
        with np.errstate(over="ignore"):
            found = encoded(x, kind)
        if differing(decoded(found, kind).astype(np.float64), x).any():
            raise ValueError(f"{one.name}: a number is none of {kind}")
        return found

    def f(a, b, c=None):
        (m, k), n = a.shape, b.shape[1]
        steps = max(1, -(-k // one.k))
        rows = np.full((m, steps * one.k), encoded(-0.0, one.a)), np.zeros((n, steps * one.k), CODES[one.b])
        rows[0][:, :k], rows[1][:, :k] = codes(a, one.a), codes(b.T, one.b)
        left, right = np.repeat(rows[0], n, 0), np.tile(rows[1], (m, 1))
        start = codes(np.zeros((m, n)) if c is None else c, one.d)
        shape = m * n, steps, one.k
        got = chained(device, one, left.reshape(shape), right.reshape(shape), start.reshape(-1))
        return decoded(got, one.d).reshape(m, n)

    return f
