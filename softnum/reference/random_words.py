"""The random words of stochastic rounding.

Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

_MASK32 = 0xFFFFFFFF


def philox4x32_10(key: Sequence[int], counter: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32 with ten rounds (Salmon et al. 2011).

    Parameters
    ----------
    key : two 32-bit words
    counter : four 32-bit words

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
    for _ in range(10):
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


def random_words_matmul(
    seed: int, stream: int, batch: int, m: int, n: int, k: int, stochastic_bits: int, two_roundings: bool
) -> tuple[int, int]:
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

    Returns
    -------
    product, sum : int
        Numbers of r bits: of the domain-1 word, bits 0..r-1 for the product and 16..16+r-1 for the sum; with r > 16 the
        sum takes bits 0..r-1 of the domain-2 word; with one stochastic rounding a step, it takes bits 0..r-1.

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
    counter = (k // 4, n, m, batch)
    word = philox4x32_10(_derived_key(seed, stream, 1), counter)[k % 4]
    if not two_roundings:
        return word & mask, word & mask
    if stochastic_bits <= 16:
        return word & mask, word >> 16 & mask
    second = philox4x32_10(_derived_key(seed, stream, 2), counter)[k % 4]
    return word & mask, second & mask
