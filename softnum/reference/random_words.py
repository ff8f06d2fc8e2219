"""The random words of stochastic rounding.

Sources: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox);
the SystemVerilog of PULP's floating-point unit (the LFSRs of its stochastic rounding).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_MASK32 = 0xFFFFFFFF


def philox4x32_10(key: Sequence[int], counter: Sequence[int], rounds: int = 10) -> tuple[int, int, int, int]:
    """Philox4x32 with ten rounds (Salmon et al. 2011).

    Parameters
    ----------
    key : two 32-bit words
    counter : four 32-bit words
    rounds : int
        Another number of them; no source of a unit has fewer than 7.

    Returns
    -------
    tuple of four 32-bit words

    Raises
    ------
    ValueError
        If there are not two and four words, or one exceeds 32 bits.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> " ".join(f"{word:08x}" for word in ref.philox4x32_10((0, 0), (0, 0, 0, 0)))
    '6627e8d5 e169c58d bc57ac4c 9b00dbd8'
    """
    if len(key) != 2 or len(counter) != 4 or any(not 0 <= word <= _MASK32 for word in (*key, *counter)):
        raise ValueError(f"Philox4x32 needs 2 key and 4 counter words of 32 bits, got {key!r} and {counter!r}")
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(rounds):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK32
        k0, k1 = (k0 + 0x9E3779B9) & _MASK32, (k1 + 0xBB67AE85) & _MASK32
    return c0, c1, c2, c3


@lru_cache(maxsize=256)
def _derived_key(seed: int, stream: int, domain: int) -> tuple[int, int]:
    for what, value in (("seed", seed), ("stream", stream)):
        if not 0 <= value < 1 << 64:
            raise ValueError(f"{what} must lie in 0..2**64 - 1, got {value}")
    counter = (stream & _MASK32, stream >> 32, domain, 0)
    return philox4x32_10((seed & _MASK32, seed >> 32), counter)[:2]


def random_word_elementwise(seed: int, stream: int, i: int) -> int:
    """The 32-bit word that element ``i`` of a C-ordered elementwise result rounds with (key domain 0).

    >>> from softnum import reference as ref
    >>> ref.random_word_elementwise(1, 0, 0) != ref.random_word_elementwise(1, 0, 1)
    True
    """
    block = i // 4
    return philox4x32_10(_derived_key(seed, stream, 0), (block & _MASK32, block >> 32, 0, 0))[i % 4]


def lfsr_word(state: int, width: int, taps: int, moves: int) -> int:
    """The word of an LFSR: the complement of its state after so many moves from `state`.

    Galois form, to the right: a state s becomes s >> 1, exclusive or ``taps`` if the bit that left was 1. The
    complement makes a rounding that goes up where its word and the places cut off carry go up where the state is less
    than those places, as PULP's does (pulp-platform/cvfpu, src/lfsr_sr.sv and src/fpnew_rounding.sv).

    >>> from softnum.reference.random_words import lfsr_word
    >>> [f"{lfsr_word(0xFFFFFFFF, 32, 0x80000EA6, moves):08x}" for moves in range(3)]
    ['00000000', '00000ea6', '000009f5']
    """
    for _ in range(moves):
        state = state >> 1 ^ (taps if state & 1 else 0)
    return ~state & (1 << width) - 1


def _lfsr_taps(width: int, digits: str) -> int:
    return int(digits, 16) if digits else {16: 0x8679, 24: 0x800B87, 32: 0x80000EA6}[width]


def _step_field(random: str, seed: int, stream: int, batch: int, m: int, n: int, k: int) -> tuple[int, int]:
    """(bits of step k of an output, how many they are) under a source of this name."""
    if found := re.fullmatch(r"philox4x32-(7|10)(?:/(2|4))?", random):
        rounds, draws = int(found[1]), int(found[2] or 1)
        word, draw = divmod(k, draws)
        words = philox4x32_10(_derived_key(seed, stream, 1), (word // 4, n, m, batch), rounds)
        bits = 32 // draws
        return words[word % 4] >> draw * bits & (1 << bits) - 1, bits
    if found := re.fullmatch(r"lfsr(\d+)(?:-([0-9a-f]+))?(?:x(\d+))?(@hart)?", random):
        width, ones = int(found[1]), (1 << int(found[1])) - 1
        if found[4]:
            start = ~(seed + n) & ones
        else:
            start = philox4x32_10(_derived_key(seed, stream, 1), (0, n, m, batch))[0] & ones or ones
        return lfsr_word(start, width, _lfsr_taps(width, found[2]), k * int(found[3] or 1)), width
    raise ValueError(f"no words can be made of a key for random={random!r}")


def random_words_matmul(
    seed: int, stream: int, batch: int, m: int, n: int, k: int, stochastic_bits: int, two_roundings: bool,
    random: str = "philox4x32-10",
) -> tuple[int, int]:  # fmt: skip
    """The random bits (product's, sum's) of step ``k`` of element ``(batch, m, n)`` of a matmul.

    Parameters
    ----------
    seed, stream : int
        The key, 64 bits each.
    batch, m, n, k : int
        Indices, 32 bits each.
    stochastic_bits : int
        How many bits r a rounding uses.
    two_roundings : bool
        Whether both the product and the sum round stochastically.
    random : str
        The source, as `softnum.MadUnit` names it.

    Returns
    -------
    product, sum : int
        Numbers of r bits: of the step's bits 0..r-1 for the product and, from their middle on, r for the sum; with one
        stochastic rounding a step, both are bits 0..r-1. A step's bits are its domain-1 word, so that the sum has bits
        16..16+r-1, or, with r > 16, bits 0..r-1 of the domain-2 word; of other sources what ``random`` says.

    Raises
    ------
    ValueError
        If a number is out of range, or the source has no words of a key, or too few bits.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> product, total = ref.random_words_matmul(1, 0, 0, 0, 0, 5, 16, True)
    >>> hex(total << 16 | product) == hex(ref.random_words_matmul(1, 0, 0, 0, 0, 5, 32, False)[0])
    True
    """
    if not 1 <= stochastic_bits <= 32:
        raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
    mask = (1 << stochastic_bits) - 1
    if random != "philox4x32-10":
        field, width = _step_field(random, seed, stream, batch, m, n, k)
        middle = width // 2 if two_roundings else 0
        if stochastic_bits > (middle or width):
            most = middle or width
            raise ValueError(f"random={random!r} has {most} bits for a rounding, fewer than {stochastic_bits}")
        return field & mask, field >> middle & mask
    counter = (k // 4, n, m, batch)
    word = philox4x32_10(_derived_key(seed, stream, 1), counter)[k % 4]
    if not two_roundings:
        return word & mask, word & mask
    if stochastic_bits <= 16:
        return word & mask, word >> 16 & mask
    second = philox4x32_10(_derived_key(seed, stream, 2), counter)[k % 4]
    return word & mask, second & mask
