"""What matrix products, convolutions and sums have in common: checked operands, random words, blocks of work."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softnum.arrays.checks import native
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode, quantize
from softnum.arrays.environment import PartKey, source_keys
from softnum.formats.codec import NEAREST
from softnum.formats.facts import fits
from softnum.mac import _gemm
from softnum.runtime import _core
from softnum.runtime.identity import by_identity
from softnum.runtime.threads import thread_count

__all__ = [
    "MACS_AT_ONCE", "MACS_PER_THREAD", "PLAIN", "Numbers", "PackedWords", "blocks_of", "carried", "check_key",
    "checked_operand", "codes_of",
    "kernels_of", "padded", "random_words_of", "refuse_blocks", "runs_of",
]  # fmt: skip

_COLUMN_BLOCK = 64  # a multiple of the widest tile, so that tiles do not straddle threads
_PIECES = 4  # runs of products for each thread
_PACKED = (np.uint8, np.uint16, np.uint32)
_FEW = 64  # products, whose blocks are kept for the next ones of these sizes
MACS_PER_THREAD = 1 << 18  # below this a thread costs more than it brings
MACS_AT_ONCE = 1 << 29  # of a block, if it has more rows or columns than these: between two blocks Ctrl-C is heard
_LEAST_ROWS = 128  # for which the columns of b are laid out anew
DEFINED_AT_ONCE = 1 << 21  # likewise, of a definition, of which no row is too little


def refuse_blocks(fmt, caller: str) -> None:
    """TypeError for the operand of a unit of block formats, where these have no meaning."""
    fmt.codec.check_elements(fmt, caller)


@by_identity
def kernels_of(fmt):
    """What tells of plain arrays at once whether they are values of a format; None where nothing does."""
    return fmt.codec.kernels(fmt, NEAREST)


def checked_operand(x, fmt, what: str, caller: str = "matmul", on_codes: bool = False):
    """The operand as values of its format: float32 or float64, or an Array where neither holds the format.

    on_codes: an Array stays one, for engines that tell codes of one value apart.
    """
    refuse_blocks(fmt, caller)
    if isinstance(x, Array):
        if x.format != fmt:
            raise ValueError(f"{caller}: {what} is an Array of {x.format}, but the unit's operand is {fmt}")
        for dtype in () if on_codes else (np.float32, np.float64):
            if fits(fmt, dtype):
                return decode(x.codes, fmt, dtype)
        return x
    x = native(x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"{caller}: {what} must be a float32 or float64 array or a softnum.Array, got {x.dtype}")
    if fmt.codec.surely_holds(x, fmt):  # whatever rounding makes of them
        return x
    kernels = kernels_of(fmt)
    values = None if kernels is None else kernels.unchanged(_core.contiguous(x))
    if values is not None:
        return values
    try:
        values = quantize(x, fmt)
    except ValueError as error:
        raise ValueError(f"{caller}: {what} has a value that {fmt} does not: {error}") from None
    if not np.array_equal(values, x):
        bad = (values != x) & ~(np.isnan(values) & np.isnan(x))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{caller}: {what}{list(where)} = {x[where]!r} is no value of {fmt} (nearest: {values[where]!r}); "
                f"round it first: softnum.quantize({what}, {str(fmt)!r})"
            )
    return values


def carried(x: np.ndarray, dtype) -> np.ndarray:
    """Numbers in a float type that holds them, in which a signaling NaN is no error but a NaN."""
    if x.dtype == dtype:
        return x
    with np.errstate(invalid="ignore"):
        return x.astype(dtype)


def padded(b: np.ndarray, dtype) -> np.ndarray:
    """b, one matrix or several, with rows padded by zeros to a multiple of the kernels' lanes."""
    b = carried(b, dtype)
    n = b.shape[-1]
    width = -(-n // _gemm.LANES) * _gemm.LANES
    if width == n:
        return _core.contiguous(b)
    out = np.zeros((*b.shape[:-1], width), dtype)
    out[..., :n] = b
    return out


def blocks_of(
    m: int, n: int, k: int, batches: int, threads: int | None, defined: bool = False
) -> tuple[int, tuple[tuple[int, int, int, int, int], ...]]:
    """(threads, (batch, m0, m1, n0, n1) of each block): at least as many blocks as threads, where there are so many.

    defined: the definition computes it.
    """
    threads = thread_count(threads, batches * m * n * k // MACS_PER_THREAD)
    parts = -(-m * n * k // (DEFINED_AT_ONCE if defined else MACS_AT_ONCE))
    return threads, (_few_blocks if batches <= _FEW else _blocks)(m, n, batches, threads, parts, 1 if defined else 0)


def _blocks(
    m: int, n: int, batches: int, threads: int, parts: int, defined: int
) -> tuple[tuple[int, int, int, int, int], ...]:
    if threads == 1 and parts <= 1:
        return tuple((batch, 0, m, 0, n) for batch in range(batches)) if m and n else ()
    if batches == 0 or not m or not n:
        return ()
    column = 1 if defined else _COLUMN_BLOCK
    row_parts = min(m, -(-threads // batches))
    column_parts = min(-(-n // column), -(-threads // (batches * row_parts)))
    if row_parts * column_parts < parts:
        column_parts = min(-(-n // column), -(-parts // row_parts))
        least = 1 if defined else _LEAST_ROWS
        row_parts = max(row_parts, min(-(-m // least), -(-parts // column_parts)))
    rows = np.linspace(0, m, row_parts + 1).astype(int)
    columns = np.linspace(0, -(-n // column), column_parts + 1).astype(int) * column
    columns[-1] = n
    return tuple(
        (batch, int(m0), int(m1), int(n0), int(n1))
        for batch in range(batches)
        for m0, m1 in pairwise(rows)
        for n0, n1 in pairwise(columns)
    )


_few_blocks = lru_cache(maxsize=1024)(_blocks)


def runs_of(batches: int, threads: int, macs: int) -> list[tuple[int, int]]:
    """(first, last) of runs of products, of so many operations each, that a thread computes in one call."""
    pieces = min(batches, max(_PIECES * threads if threads > 1 else 1, -(-batches * macs // MACS_AT_ONCE)))
    edges = [i * batches // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))


def codes_of(x, fmt, shape) -> np.ndarray:
    if isinstance(x, Array):
        codes = x.codes
    else:
        codes = fmt.codec.codes_of_values(x, fmt)
    return np.ascontiguousarray(np.broadcast_to(codes.astype(np.uint64), shape))


class PackedWords(NamedTuple):
    """Random words given side by side, (products, M, steps, N): the bits of a step are an item."""

    words: np.ndarray

    def of(self, product: int) -> np.ndarray:
        """Those of one product, (M, steps, N)."""
        return self.words[product]

    def unpacked(self, unit) -> np.ndarray:
        """As definitions take them: uint32 of shape (products, M, N, steps, 2), product and sum."""
        words = self.words.transpose(0, 1, 3, 2).astype(np.uint32)
        sums = words >> np.uint32(4 * self.words.itemsize) if unit.two_roundings else words
        return np.stack([words, sums], -1, out=np.empty((*words.shape, 2), np.uint32))


def _packed(unit, words, shape, steps: int, caller: str) -> PackedWords:
    """Words given side by side: a bit pattern for each step, of so many bits as the type has."""
    want, bits = (*shape[:-1], steps, shape[-1]), 8 * words.itemsize
    if any(d not in (1, w) for d, w in zip(words.shape[:-2], want[:-2], strict=True)) or words.shape[-2:] != want[-2:]:
        raise ValueError(
            f"{caller}: random_bits must be uint32 of shape {(*shape, steps, 2)}, got {words.dtype} of shape "
            f"{words.shape}; nor do they, side by side, broadcast to {want}"
        )
    most = bits // 2 if unit.two_roundings else bits
    if unit.stochastic_bits > most:
        each = " for each of product and sum" if unit.two_roundings else ""
        raise ValueError(
            f"{caller}: random_bits of {words.dtype} have {most} bits a step{each}, fewer than stochastic_bits="
            f"{unit.stochastic_bits}; give a wider type, or words of shape (..., M, N, steps, 2)"
        )
    whole = np.broadcast_to(words, want).reshape(-1, *want[-3:])
    return PackedWords(whole if whole.strides[-1] == whole.itemsize else np.ascontiguousarray(whole))


def check_key(unit, key, caller: str) -> None:
    """ValueError if no random bits can be made of a key for a unit."""
    source = unit.random_source
    if source.kind == "given":
        raise ValueError(f"{caller}: the unit's random bits are given (random='given'); give them as random_bits=")
    source_keys(source, key, (1, 2), caller)


def random_words_of(unit, key, random_bits, shape, k, domains=(1, 2), caller="matmul", with_c=False, packed=False):
    """(key words of both domains, random words or None, how products and rows are numbered)

    packed: whether words may be given side by side, and come as `PackedWords`.
    """
    if not unit.stochastic:
        return (0, 0, 0, 0), None, PLAIN
    if random_bits is not None:
        steps = unit.steps_with_c(k) if with_c else unit.steps(k)
        want = (*shape, steps, 2)
        words = np.asarray(random_bits)
        if packed and words.ndim == len(shape) + 1 and words.dtype in _PACKED and words.dtype.isnative:
            return (0, 0, 0, 0), _packed(unit, words, shape, steps, caller), PLAIN
        if words.dtype != np.uint32 or words.shape != want:
            raise ValueError(
                f"{caller}: random_bits must be uint32 of shape {want}, got {words.dtype} of shape {words.shape}"
            )
        words = np.ascontiguousarray(words).reshape(int(np.prod(shape[:-2], dtype=np.int64)), *want[-4:])
        return (0, 0, 0, 0), words, PLAIN
    source = unit.random_source
    if key is None and source.kind != "given":
        raise ValueError(f"{caller}: the unit rounds stochastically; give key=seed, key=(seed, stream) or random_bits=")
    numbers = PLAIN
    if isinstance(key, PartKey):
        numbers, key = _numbers(key, shape, caller), key[:2]
    check_key(unit, key, caller)
    return source_keys(source, key, domains, caller), None, numbers


def _numbers(key: PartKey, shape, caller: str) -> Numbers:
    """How a part of a larger product is numbered."""
    if caller == "sum":
        raise ValueError("sum: its results have no key of a part")
    products, rows = int(np.prod(shape[:-2], dtype=np.int64)), shape[-2]
    if not key.stacked and products != 1:
        raise ValueError(f"{caller}: {products} products have no rows of one larger product")
    runs = key.runs(products if key.stacked else rows)
    if any(stop + shift >= 2**32 for _, stop, shift in runs):
        raise ValueError(f"{caller}: no dimension of the larger product may reach 2**32, got parts of it, {runs[-1]}")
    return Numbers(products=tuple(runs)) if key.stacked else Numbers(rows=tuple(runs))


_ALL = ((0, 2**32, 0),)


class Numbers(NamedTuple):
    """By which numbers a call's products and rows take random words: runs (start, stop, shift), by shift larger."""

    products: tuple = _ALL
    rows: tuple = _ALL

    def split(self, blocks: list) -> list:
        """Blocks (product, m0, m1, ...), none of which has rows of two runs."""
        if len(self.rows) == 1:
            return blocks
        return [
            (product, max(m0, start), min(m1, stop), *columns)
            for product, m0, m1, *columns in blocks
            for start, stop, _ in self.rows
            if max(m0, start) < min(m1, stop)
        ]

    def of(self, product: int, row: int) -> tuple[int, int]:
        """The numbers of a product and a row of it."""
        return tuple(
            x + next(shift for _, stop, shift in runs if x < stop)
            for x, runs in ((product, self.products), (row, self.rows))
        )


#: those of a whole product: the places themselves
PLAIN = Numbers()
