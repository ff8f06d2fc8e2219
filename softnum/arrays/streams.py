"""Streams of random words, as values: what stochastic rounding takes as its key."""

from __future__ import annotations

from itertools import count
from math import prod
from numbers import Integral
from typing import Any

import numpy as np

from softnum.arrays import lanes
from softnum.arrays.environment import SourceKey, seed_and_stream, source_keys
from softnum.arrays.sources import random_source, words_of_steps
from softnum.formats.annotations import Key
from softnum.runtime import _core

__all__ = ["Stream"]

_SPAWNING = 6  # the domain of counters that seeds of children are made in (docs/reference/reproducibility.md)
_ROOM = 1 << 32  # streams of a block: those that jumps reach, of which each child has one


def _whole(what: str, value, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"Stream: {what} must be an integer in {low}..{high}, got {value!r}")
    return int(value)


class Stream(tuple[int, int]):
    """A key for stochastic rounding: a seed and a stream number, from which children and jumps derive further keys.

    It is accepted wherever `key=` takes an integer or a pair, and equals the pair: ``Stream(7, 1) == (7, 1)``, with the
    same words. It has no state: rounding twice with one Stream uses the same words twice, so give each rounding its own
    child or jump.

    Parameters
    ----------
    key : int, (int, int) or Stream
        The seed, or seed and stream: integers in 0..2**64-1.
    stream : int, optional
        The stream, if key is a seed. Default 0.

    Notes
    -----
    Words are Philox4x32-10 of a counter under 64 bits of key, made of (seed, stream, domain); see "Random bits" in the
    documentation. That no word is used twice comes from the counters:

    - within a Stream, of a domain, by construction: under one key Philox is a bijection of its 128-bit counters, and
      every element, or step of an output, has a counter and a place in its block of its own;
    - a jump adds to the low 32 bits of the stream and raises where these end, so that it stays among the 2**32 streams
      of its block; child i is the first stream of block i, ``(seed', i * 2**32)``. So no child, nor what jumps reach
      from it, has the pair of a sibling or of what jumps reach from that: by construction;
    - seed' is 64 bits of Philox of the parent's pair, the first ones that are not the parent's seed: no child has the
      pair of its parent, nor of what jumps reach from it: by construction;
    - the rest is chance. Pairs of different parents or generations are the same with a probability of 2**-64 if Philox
      is taken for random, and so are the 64 bits of key, in a domain, of two different pairs. Of n Streams any two meet
      with less than ``n**2 / 2**64``: 6e-8 of a million.

    Raises
    ------
    ValueError
        If seed or stream is out of range.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> s = sn.Stream(7)
    >>> x = np.linspace(0, 1, 5)
    >>> np.array_equal(*(sn.quantize(x, "e5m2", rounding="stochastic", key=key) for key in (s, 7)))
    True
    >>> weights, gradients = s.spawn(2)
    >>> weights
    Stream(12555307977505995268, 0)
    >>> gradients.jumped(3) == (gradients.seed, 2**32 + 3)
    True
    """

    __slots__ = ()

    def __new__(cls, key: Key, stream: int | None = None) -> Stream:
        """The Stream of a key."""
        if stream is not None and isinstance(key, tuple):
            raise ValueError(f"Stream: {key!r} already contains a stream; leave out stream={stream!r}")
        return super().__new__(cls, seed_and_stream(key if stream is None else (key, stream)))

    def __getnewargs__(self) -> tuple[int, int]:
        return tuple(self)

    def __repr__(self) -> str:
        return f"Stream({self.seed}, {self.stream})"

    @property
    def seed(self) -> int:
        """The first half of the pair."""
        return self[0]

    @property
    def stream(self) -> int:
        """The second half of the pair."""
        return self[1]

    def jumped(self, n: int = 1) -> Stream:
        """The n-th Stream after this one, with other words; for example for the next iteration.

        Parameters
        ----------
        n : int
            0 or more; ``s.jumped(2).jumped(3) == s.jumped(5)``.

        Raises
        ------
        ValueError
            If the low 32 bits of the stream would pass 2**32 - 1.

        Examples
        --------
        >>> import softnum as sn
        >>> sn.Stream(7).jumped(5)
        Stream(7, 5)
        """
        room = _ROOM - 1 - self.stream % _ROOM
        if isinstance(n, Integral) and not isinstance(n, bool) and n > room:
            raise ValueError(
                f"Stream: a jump by {n} leaves the range of {self!r}, which has {room} left; spawn children instead: "
                "each has its own range"
            )
        return Stream(self.seed, self.stream + _whole("a jump", n, 0, room))

    def spawn(self, n: int, first: int = 0) -> tuple[Stream, ...]:
        """n children, numbered first, first + 1, ...; every call returns the same, as there is no state.

        Parameters
        ----------
        n : int
        first : int
            How many children come before; ``s.spawn(5) == s.spawn(2) + s.spawn(3, first=2)``.

        Raises
        ------
        ValueError
            If there are more than 2**32 children.

        Examples
        --------
        >>> import softnum as sn
        >>> [child.stream >> 32 for child in sn.Stream(7).spawn(2, first=3)]
        [3, 4]
        """
        first = _whole("first", first, 0, _ROOM)
        n = _whole("n", n, 0, _ROOM - first)
        seed = self._seed_of_children()
        return tuple(Stream(seed, i * _ROOM) for i in range(first, first + n))

    def _seed_of_children(self) -> int:
        (seed_high, seed_low), (stream_high, stream_low) = (divmod(x, _ROOM) for x in self)
        trials = (_core.philox((stream_low, stream_high, _SPAWNING, trial), (seed_low, seed_high)) for trial in count())
        return next(seed for low, high, *_ in trials if (seed := low | high << 32) != self.seed)

    def words(
        self,
        shape: int | tuple[int, ...],
        unit: Any = None,
        k: int | None = None,
        c: bool = False,
        random: str | None = None,
    ) -> np.ndarray:
        """The random words that a rounding with this key uses, as `random_bits=` takes them.

        Parameters
        ----------
        shape : int or tuple of int
            Of the result.
        unit : Unit, optional
            Those of a product under this unit; without, those of an elementwise operation.
        k : int, optional
            The length of the product's sums.
        c : bool
            Whether they start from C.
        random : str, optional
            Of an elementwise operation: the source, as in `softnum.quantize`. A unit states its own.

        Returns
        -------
        ndarray of uint32
            Of that shape; of a product ``(*shape, steps, 2)``, the words of the product and the sum of each step.

        Raises
        ------
        ValueError
            If a product's length, or two dimensions of its shape, are missing, or the bits are given to the source.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> s, x = sn.Stream(7), np.linspace(0, 1, 5)
        >>> [f"{word:08x}" for word in s.words(3)]
        ['bfcd0594', '1aceb1c1', '6dd6c7ce']
        >>> by_words = sn.quantize(x, "e5m2", rounding="stochastic", random_bits=s.words(x.shape))
        >>> np.array_equal(by_words, sn.quantize(x, "e5m2", rounding="stochastic", key=s))
        True
        >>> unit = sn.MadUnit("e6m3", operand="e5m2", rounding="stochastic")
        >>> a = np.ones((2, 9), np.float32)
        >>> by_words = sn.matmul(a, a.T, unit, random_bits=s.words((2, 2), unit, k=9))
        >>> np.array_equal(by_words, sn.matmul(a, a.T, unit, key=s))
        True
        """
        shape = (shape,) if isinstance(shape, Integral) else tuple(shape)
        if unit is not None and random is not None:
            raise ValueError(f"Stream: the unit states its random source; leave out random={random!r}")
        if random is not None and not (source := random_source(random, "Stream")).is_default:
            if source.kind == "given":
                raise ValueError("Stream: the bits of random='given' come from the caller; a key has none for it")
            return SourceKey(source, self).words(shape)
        if unit is None:
            return lanes.words_of_key(_core.philox_key(*self, 0), prod(shape)).reshape(shape)
        if k is None or len(shape) < 2:
            raise ValueError(
                f"Stream: words for a matrix product need its shape (..., M, N) and k=, got {shape}, k={k!r}"
            )
        steps = unit.steps_with_c(k) if c else unit.steps(k)
        source = unit.random_source
        if source.kind == "given":
            raise ValueError(
                "Stream: the unit's random bits are given by the caller (random='given'); a key has none for it"
            )
        keys = source_keys(source, self, (1, 2), "Stream")
        first = words_of_steps(source, keys[:2], shape, steps)
        second = words_of_steps(source, keys[2:], shape, steps) if source.is_default else None
        sums = _words_of_sums(unit, first, second)
        inner = getattr(unit, "inner", None)
        if inner is not None and inner.stochastic:  # its steps among the unit's own
            own = [step for steps_of_block, _ in unit.numbering(k)[0] for step in steps_of_block]
            sums = sums.copy()
            sums[..., own] = _words_of_sums(inner, first, second)[..., own]
        return np.stack([first, sums], -1)


def _words_of_sums(unit, first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
    """Of the words of both domains, those of sums; second: None of a source that has one domain."""
    if not unit.two_roundings:
        return first
    if second is None:
        return first >> np.uint32(unit.random_source.half)
    return first >> np.uint32(16) if unit.stochastic_bits <= 16 else second
