"""The environment of an operation as the core's numbers, and the random words that stochastic rounding takes."""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral
from typing import NamedTuple

import numpy as np

from softnum.arrays import lanes
from softnum.arrays.sources import RandomSource, random_source, words_of_elements
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES, nan_profile, overflow_name, rounding_name
from softnum.runtime import _core

__all__ = [
    "PartKey", "SourceKey", "environment", "random_words", "seed_and_stream", "source_key", "source_keys",
    "words_or_key",
]  # fmt: skip

_FLUSH = {None: 0, "before": 1, "after": 2, "subnormal": 3}


class PartKey(NamedTuple):
    """The key of the part of a larger result: its random words are those that the larger one has there.

    Both consist of equal pieces along an axis: of images of a batch, say. A result's own random words are those of
    `PartKey(seed, stream, 0, pieces)`.

    Parameters
    ----------
    seed, stream : int
    first : int
        How many pieces of the larger result come before.
    pieces : int
        Of this part; its size is a multiple.
    stacked : bool
        Of a matrix product: whether the axis is one of matrices, not of rows.
    outer : int
        How many indices the axes before this one have: 1, where it is the leading axis.
    whole : int
        How many pieces the larger result has; needed where outer is more than 1.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    >>> whole = sn.quantize(x, "e5m2", rounding="stochastic", key=(7, 1))
    >>> part = sn.quantize(x[1:], "e5m2", rounding="stochastic", key=PartKey(7, 1, first=1, pieces=3))
    >>> np.array_equal(part, whole[1:])
    True
    """

    seed: int
    stream: int
    first: int
    pieces: int
    stacked: bool = False
    outer: int = 1
    whole: int = 0

    def runs(self, size: int) -> list[tuple[int, int, int]]:
        """(start, stop, shift) of runs of a part's elements or rows, of so many, whose numbers in the larger result are
        larger by shift."""
        if size % (self.outer * self.pieces):
            raise ValueError(
                f"a result of {size} elements or rows cannot be divided into {self.outer * self.pieces} equal pieces"
            )
        piece = size // (self.outer * self.pieces)
        run = piece * self.pieces
        return [
            (i * run, (i + 1) * run, piece * (self.first + i * (self.whole - self.pieces))) for i in range(self.outer)
        ]


class SourceKey(NamedTuple):
    """A key whose elementwise random words are of a source other than the default: what `source_key` makes of both."""

    source: RandomSource
    key: object

    def parts(self, shape) -> tuple[tuple[int, int], tuple[int, int], list[tuple[int, int, int]]]:
        """(key, its words, runs of the elements of this shape): runs (start, stop, shift), numbered by shift more."""
        key, size = self.key, int(np.prod(shape, dtype=np.int64))
        part, key = (key, key[:2]) if isinstance(key, PartKey) else (None, seed_and_stream(key))
        if self.source.casts and part is not None:
            raise ValueError(
                f"random={self.source.name!r} numbers elements by their rows and columns in the whole tensor, and the "
                "place of a part of it is not known; round the whole tensor at once, or take another source"
            )
        words = source_keys(self.source, key, (0, 0), "stochastic rounding")[:2]
        return key, words, [(0, size, 0)] if part is None else part.runs(size)

    def words(self, shape) -> np.ndarray:
        """Those of an operation's elements, in their shape."""
        key, words, runs = self.parts(shape)
        found = [words_of_elements(self.source, key, words, shape, i + shift, j - i) for i, j, shift in runs]
        return (found[0] if len(found) == 1 else np.concatenate(found)).reshape(shape)


def source_key(random, key, random_bits, rounding, stochastic_bits, caller: str):
    """The key of elementwise roundings that take their random bits of a source, by its name; of the default, key.

    Raises
    ------
    ValueError
        If there is no such source, it gives an element fewer bits than the rounding takes, or given ones are missing.
    """
    source = random_source(random, caller)
    if source.is_default or not rounding_name(rounding).startswith("stochastic"):
        return key
    if source.kind == "given" and (random_bits is None or key is not None):
        raise ValueError(f"{caller}: with random='given' the bits come from random_bits=; leave key= out")
    if random_bits is not None:
        return None
    source.check(stochastic_bits, False, caller)
    return None if key is None else SourceKey(source, key)


@lru_cache(maxsize=1024, typed=True)
def environment(
    fmt,
    rounding,
    overflow,
    stochastic_bits,
    tininess="after",
    flush_inputs=False,
    flush_results=None,
    nan="canonical",
    invalid_code=0,
) -> tuple[int, ...]:
    """The fields of sn_env (rounding/env.h), in their order, as the core's numbers; ValueError for others."""
    mode = rounding_name(rounding)
    rule = overflow_name(overflow, fmt)
    if tininess not in ("after", "before"):
        raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
    if isinstance(stochastic_bits, bool) or not isinstance(stochastic_bits, Integral) or not 1 <= stochastic_bits <= 32:
        raise ValueError(f"stochastic_bits must be an integer from 1 to 32, got {stochastic_bits!r}")
    r = int(stochastic_bits) if mode.startswith("stochastic") else 32
    if flush_results not in _FLUSH:
        raise ValueError(
            f"flush_results must be None, 'before' or 'after' rounding or 'subnormal', got {flush_results!r}"
        )
    return (
        ROUNDING_MODES[mode], OVERFLOW_RULES[rule], int(tininess == "before"), r,
        int(bool(flush_inputs)), _FLUSH[flush_results], nan_profile(nan), invalid_code,
    )  # fmt: skip


def seed_and_stream(key) -> tuple[int, int]:
    """The (seed, stream) of a key: an int (stream 0) or a pair of ints, each in 0..2**64-1."""
    if isinstance(key, SourceKey):
        raise ValueError(
            f"random={key.source.name!r} is not supported here, where a key gives words of the default source only; "
            "pass the words as random_bits= (softnum.Stream(key).words(shape, random=...))"
        )
    pair = key if isinstance(key, tuple) else (key, 0)
    if len(pair) != 2 or not all(isinstance(v, Integral) and not isinstance(v, bool) and 0 <= v < 2**64 for v in pair):
        raise ValueError(f"key must be a seed or (seed, stream), integers in 0..2**64-1, got {key!r}")
    return int(pair[0]), int(pair[1])


def source_keys(source, key, domains, caller: str) -> tuple[int, int, int, int]:
    """The key words that a product's words of a `softnum.arrays.sources.RandomSource` are made of: of both domains, or
    the number of the first LFSR."""
    seed, stream = seed_and_stream(key)
    if not source.hart:
        first, second = (_core.philox_key(seed, stream, domain) for domain in domains)
        return *first, *second
    if stream or seed >= 2**32:
        raise ValueError(
            f"{caller}: with random={source.name!r} the key is the number of column 0's LFSR, below 2**32 and without "
            f"a stream; got {key!r}"
        )
    return seed, 0, 0, 0


def random_words(stochastic: bool, key, random_bits, shape) -> np.ndarray | np.uint32:
    """The uint32 word of each element of an elementwise operation; one 0 for all where nothing is stochastic."""
    if not stochastic:
        return np.uint32(0)
    if random_bits is not None:
        words = np.asarray(random_bits)
        if words.dtype.kind not in "iu" or (words.size and (words.min() < 0 or words.max() >= 2**32)):
            raise ValueError(f"random_bits must be integers in 0..2**32-1, got an array of {words.dtype}")
        if words.ndim > len(shape) or any(
            d not in (1, w) for d, w in zip(words.shape[::-1], shape[::-1], strict=False)
        ):
            raise ValueError(f"random_bits of shape {words.shape} do not broadcast to {shape}")
        return np.broadcast_to(words.astype(np.uint32), shape)
    if key is None:
        raise ValueError("stochastic rounding needs key=seed, key=(seed, stream) or random_bits=array")
    size = int(np.prod(shape, dtype=np.int64))
    if isinstance(key, SourceKey):
        return key.words(shape)
    if isinstance(key, PartKey):
        words, runs = _key_words(key[:2]), key.runs(size)
        parts = [lanes.words_of_key(words, stop - start, start + shift) for start, stop, shift in runs]
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(shape)
    return lanes.words_of_key(_key_words(key), size).reshape(shape)


def _key_words(key) -> tuple[int, int]:
    return _core.philox_key(*seed_and_stream(key), 0)


def words_or_key(stochastic: bool, key, random_bits, shape):
    """(contiguous words or None, key words), as the kernels take them."""
    if not stochastic:
        return None, (0, 0)
    if random_bits is None and key is not None and not isinstance(key, (PartKey, SourceKey)):
        return None, _key_words(key)
    return np.ascontiguousarray(random_words(True, key, random_bits, shape)), (0, 0)
