"""Where the random bits of a unit's stochastic roundings come from: sources, by the names that units have for them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softnum.runtime import _core

__all__ = ["DEFAULT_SOURCE", "RandomSource", "philox", "random_source", "words_of_elements"]

#: The name of the source that units have if they state none.
DEFAULT_SOURCE = "philox4x32-10"
#: Galois feedback masks, by width, of maximal length (P. Koopman, "Maximal Length LFSR Feedback Terms"; those of PULP's
#: src/lfsr_sr.sv), for LFSRs that shift to the right.
TAPS = {16: 0x8679, 24: 0x800B87, 32: 0x80000EA6}
_WIDTHS = 8, 32
_MOST_SHIFTS = 64
_GRAMMAR = (
    "'philox4x32-10', 'philox4x32-7', either with '/2' or '/4' (draws of a word), 'lfsrW' or 'lfsrW-TAPS' (W bits; the "
    "feedback mask in hexadecimal), with 'xN' (shifts of a step) and '@hart' (seeds) after it, "
    "'philox4x32-R@transformer_engine' (R rounds; of casts alone), or 'given'"
)
_MOST_ROUNDS = 10
_OFFSET_BITS = 10  # Transformer Engine moves its offset by 2 to this power for each cast


class RandomSource(NamedTuple):
    """A source of random bits; `random_source` makes it of a name.

    ``kind``: "philox", "lfsr" or "given". ``rounds``, ``draws``: of Philox, and how many steps share a word of 32 bits.
    ``width``, ``taps``, ``shifts``, ``hart``: of an LFSR; its bits, its feedback mask, how far it moves for a step, and
    whether its seeds count up from the key, as PULP's from the number of a core, or are Philox's. ``casts``: whether
    Philox's counters are those of Transformer Engine's casts, which units do not have.
    """

    name: str
    kind: str
    rounds: int = 10
    draws: int = 1
    width: int = 32
    taps: int = 0
    shifts: int = 1
    hart: bool = False
    casts: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is the source of units that state none."""
        return self.name == DEFAULT_SOURCE

    @property
    def field(self) -> int:
        """Bits of a step: those of a word, shared by `draws` steps, or of the LFSR."""
        return self.width if self.kind == "lfsr" else 32 // self.draws

    @property
    def numbers(self) -> dict[str, int]:
        """The fields of an sn_source (csrc/softnum/word/source.h), by name, in their order."""
        return {
            "kind": int(self.kind == "lfsr"), "seven": int(self.rounds == 7), "shared": self.draws.bit_length() - 1,
            "width": self.width, "shifts": self.shifts, "hart": int(self.hart), "taps": self.taps,
        }  # fmt: skip

    @property
    def origin(self) -> str:
        """What gives these bits, in words."""
        if self.casts:
            return "a byte of a word for each element"
        return f"{self.draws} draws of a word of 32 bits" if self.kind == "philox" else f"an LFSR of {self.width} bits"

    @property
    def half(self) -> int:
        """Where the sum's bits begin in those of a step, where product and sum both round stochastically."""
        return self.field // 2

    def check(self, bits: int, two_roundings: bool, caller: str) -> None:
        """ValueError if a step, or an element, has fewer bits than its roundings take, r = `bits` each."""
        if self.is_default or self.kind == "given" or bits <= (self.half if two_roundings else self.field):
            return
        each = f"{self.half} bits for each of product and sum" if two_roundings else f"{self.field} bits"
        raise ValueError(
            f"{caller}: random={self.name!r} gives {each} per step ({self.origin}), fewer than stochastic_bits={bits}; "
            "state fewer bits, or a source with more"
        )

    def check_steps(self, caller: str) -> None:
        """ValueError if the source has no bits for the steps of sums."""
        if self.casts:
            raise ValueError(
                f"{caller}: random={self.name!r} numbers the elements of a matrix that is cast, as the threads of "
                "Transformer Engine's kernel do, and does not number the steps of sums; use it in quantize, in encode "
                "or in a role of a design, and take 'philox4x32-7' here"
            )


@lru_cache(maxsize=256)
def random_source(name, caller: str = "random_source") -> RandomSource:
    """The source of a name; ValueError for one that there is none of.

    >>> random_source("philox4x32-7/2").field, random_source("lfsr16x12").taps == 0x8679
    (16, True)
    """
    text = name if isinstance(name, str) else ""
    if text == "given":
        return RandomSource("given", "given")
    if found := re.fullmatch(r"philox4x32-(\d{1,3})@transformer_engine", text):
        return _casts(name, int(found[1]), caller)
    if found := re.fullmatch(r"philox4x32-(\d{1,3})(?:/(\d{1,3}))?", text):
        return _philox_source(name, int(found[1]), int(found[2] or 1), caller)
    if found := re.fullmatch(r"lfsr(\d{1,3})(?:-([0-9a-f]{1,16}))?(?:x(\d{1,3}))?(@hart)?", text):
        return _lfsr(name, int(found[1]), found[2], int(found[3] or 1), bool(found[4]), caller)
    raise ValueError(f"{caller}: random must be {_GRAMMAR}; got {name!r}")


def _philox_source(name: str, rounds: int, draws: int, caller: str) -> RandomSource:
    if rounds < 7:
        raise ValueError(
            f"{caller}: random={name!r}: Philox4x32 of fewer than 7 rounds needs another layout of counters; here the "
            "columns of a product differ in only one of four counter words (step div 4, column, row, batch), so after "
            "3 rounds the last word is the same in all columns; take 'philox4x32-7', pass your own words as "
            f"random_bits=, or, for casts, take 'philox4x32-{max(rounds, 1)}@transformer_engine'"
        )
    if rounds not in (7, 10) or draws not in (1, 2, 4):
        raise ValueError(
            f"{caller}: random={name!r}: Philox4x32 has 7 or 10 rounds here, and 1, 2 ('/2') or 4 ('/4') draws of a "
            "word"
        )
    return RandomSource(f"philox4x32-{rounds}" + (f"/{draws}" if draws > 1 else ""), "philox", rounds, draws)


def _casts(name: str, rounds: int, caller: str) -> RandomSource:
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise ValueError(f"{caller}: random={name!r}: Philox4x32 has 1 to {_MOST_ROUNDS} rounds in this layout")
    return RandomSource(f"philox4x32-{rounds}@transformer_engine", "philox", rounds, 4, casts=True)


def _lfsr(name: str, width: int, digits: str | None, shifts: int, hart: bool, caller: str) -> RandomSource:
    low, high = _WIDTHS
    if not low <= width <= high or not 1 <= shifts <= _MOST_SHIFTS:
        raise ValueError(
            f"{caller}: random={name!r}: an LFSR has {low} to {high} bits and makes 1 to {_MOST_SHIFTS} shifts per step"
        )
    if digits is None and width not in TAPS:
        known = ", ".join(map(str, TAPS))
        raise ValueError(
            f"{caller}: random={name!r}: state the taps, as in 'lfsr12-d8f'; taps are known for {known} bits"
        )
    taps = TAPS[width] if digits is None else int(digits, 16)
    if taps >> (width - 1) != 1:
        raise ValueError(
            f"{caller}: random={name!r}: the feedback mask of an LFSR that shifts to the right has {width} bits, and "
            "the highest of them is 1 (else states are lost)"
        )
    shown = f"lfsr{width}" + ("" if TAPS.get(width) == taps else f"-{taps:x}") + (f"x{shifts}" if shifts > 1 else "")
    return RandomSource(shown + ("@hart" if hart else ""), "lfsr", 10, 1, width, taps, shifts, hart)


def philox(counters, key, rounds: int = 10) -> list[np.ndarray]:
    """Philox4x32 of broadcast counters: the four words of each, uint32."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(x, np.uint64) for x in counters))
    (k0, k1), low, half = key, np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(rounds):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1 = p1 >> half ^ c1 ^ np.uint64(k0), p1 & low
        c2, c3 = p0 >> half ^ c3 ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + 0x9E3779B9) % (1 << 32), (k1 + 0xBB67AE85) % (1 << 32)
    return [x.astype(np.uint32) for x in (c0, c1, c2, c3)]


def lfsr_starts(source: RandomSource, key, row, column, batch) -> np.ndarray:
    """The states of LFSRs of outputs before their first step, uint32; key: words of domain 1, or the first hart."""
    ones = np.uint32((1 << source.width) - 1)
    if source.hart:
        state = ~np.broadcast_arrays(np.asarray(key[0] + np.asarray(column, np.uint64), np.uint64), row, batch)[0]
        return state.astype(np.uint32) & ones
    state = philox((0, column, row, batch), key)[0] & ones
    return np.where(state == 0, ones, state)


def lfsr_words(source: RandomSource, states: np.ndarray, steps: int) -> np.ndarray:
    """The words of steps 0, 1, ..., along a new last axis: complements of the states."""
    ones, taps, words = np.uint32((1 << source.width) - 1), np.uint32(source.taps), []
    for _ in range(steps):
        words.append(~states & ones)
        for _ in range(source.shifts):
            states = states >> np.uint32(1) ^ (states & np.uint32(1)) * taps
    return np.stack(words, -1) if words else np.empty((*states.shape, 0), np.uint32)


def words_of_steps(source: RandomSource, keys, shape, steps: int) -> np.ndarray:
    """The words of steps 0, 1, ... of a product's outputs, uint32 of (*shape, steps), low bits first.

    keys: the key's two words in the domain; shape: (..., M, N).
    """
    *lead, rows, columns = shape
    batches = int(np.prod(lead, dtype=np.int64))
    place = np.arange(rows)[:, None], np.arange(columns), np.arange(batches)[:, None, None]
    if source.kind == "lfsr":
        return lfsr_words(source, lfsr_starts(source, keys, *place), steps).reshape(*shape, steps)
    row, column, batch = (x[..., None] for x in place)
    blocks = np.arange(-(-steps // (4 * source.draws)))
    words = np.stack(philox((blocks, column, row, batch), keys, source.rounds), -1)
    if source.draws > 1:
        words = words[..., None] >> np.arange(source.draws, dtype=np.uint32) * np.uint32(source.field)
    return words.reshape(*shape, -1)[..., :steps]


def offset_of(stream: int) -> int:
    """The offset of Transformer Engine's generator that a stream is: 1024 times it, below 2**54, and rotated beyond
    that, so that each offset is of one stream."""
    low = 64 - _OFFSET_BITS
    return (stream << _OFFSET_BITS | stream >> low) % (1 << 64)


def words_of_elements(source: RandomSource, key, words, shape, first: int = 0, count: int | None = None) -> np.ndarray:
    """The words of `count` elements of an elementwise operation from one on, in C order, or all: uint32.

    key: (seed, stream); words: `softnum.arrays.environment.source_keys` of it, of the elementwise domain.
    """
    size = int(np.prod(shape, dtype=np.int64))
    if source.casts:
        columns = shape[-1] if shape else 1
        out = np.empty(size, np.uint32)
        if size:
            _core.cast_words(source.rounds, key[0], offset_of(key[1]), size // columns, columns, out)
        return out[first : None if count is None else first + count]
    out = np.empty(size - first if count is None else count, np.uint32)
    _core.source_words(source, words, first, out)
    return out
