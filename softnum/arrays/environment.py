"""The environment of an operation as the core's numbers, and the random words that stochastic rounding takes."""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral

import numpy as np

from softnum.arrays import lanes
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES, nan_profile, overflow_name, rounding_name
from softnum.runtime import _core

__all__ = ["environment", "random_words", "seed_and_stream", "words_or_key"]

_FLUSH = {None: 0, "before": 1, "after": 2}


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
        raise ValueError(f"flush_results must be None, 'before' or 'after' rounding, got {flush_results!r}")
    return (
        ROUNDING_MODES[mode], OVERFLOW_RULES[rule], int(tininess == "before"), r,
        int(bool(flush_inputs)), _FLUSH[flush_results], nan_profile(nan), invalid_code,
    )  # fmt: skip


def seed_and_stream(key) -> tuple[int, int]:
    """The (seed, stream) of a key: an int (stream 0) or a pair of ints, each in 0..2**64-1."""
    pair = key if isinstance(key, tuple) else (key, 0)
    if len(pair) != 2 or not all(isinstance(v, Integral) and not isinstance(v, bool) and 0 <= v < 2**64 for v in pair):
        raise ValueError(f"key must be a seed or (seed, stream), integers in 0..2**64-1, got {key!r}")
    return int(pair[0]), int(pair[1])


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
    return lanes.words_of_key(_key_words(key), int(np.prod(shape, dtype=np.int64))).reshape(shape)


def _key_words(key) -> tuple[int, int]:
    return _core.philox_key(*seed_and_stream(key), 0)


def words_or_key(stochastic: bool, key, random_bits, shape):
    """(contiguous words or None, key words), as the kernels take them."""
    if not stochastic:
        return None, (0, 0)
    if random_bits is None and key is not None:
        return None, _key_words(key)
    return np.ascontiguousarray(random_words(True, key, random_bits, shape)), (0, 0)
