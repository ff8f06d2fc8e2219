"""Vocabularies of a text: its bytes, or these and pairs of tokens that follow each other often (byte-pair encoding)."""

from __future__ import annotations

import functools
import hashlib
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

__all__ = ["BYTES", "Vocabulary", "learn_vocabulary", "pieces"]

#: how many tokens the bytes are
BYTES = 256
_MOST = 65536
_BLOCK = 16384  # bytes of a text that a vocabulary is learned from, or not, together
_BLOCKS = 256  # of these at most
_PIECE = re.compile(rb" ?[A-Za-z\x80-\xff]+| ?[0-9]+| ?[^\sA-Za-z0-9\x80-\xff]+|\s+(?!\S)|\s")


def pieces(text: bytes) -> Iterator[bytes]:
    """The parts of a text that no token goes beyond: words, numbers, signs, and what is blank.

    A word is of ASCII's letters and of all bytes from 128 on; it, a number and signs in a row take the space before
    them. All bytes of the text are in a piece, in their order.

    >>> list(pieces("Né 1900,  in town".encode()))
    [b'N\\xc3\\xa9', b' 1900', b',', b' ', b' in', b' town']
    """
    return (match.group() for match in _PIECE.finditer(text))


class Vocabulary:
    """The bytes, and tokens that stand for two tokens each.

    Parameters
    ----------
    merges : sequence of (int, int)
        The two tokens that token 256, 257, ... stands for.

    Attributes
    ----------
    tokens : tuple of byte strings
        What each token stands for.

    Examples
    --------
    >>> vocabulary = Vocabulary([(104, 101), (256, 121)])
    >>> vocabulary.tokens[256:], vocabulary.encode(b"hey, he").tolist()
    ((b'he', b'hey'), [257, 44, 32, 256])
    """

    def __init__(self, merges=()) -> None:
        self.merges = tuple((int(left), int(right)) for left, right in merges)
        tokens = [bytes([byte]) for byte in range(BYTES)]
        for left, right in self.merges:
            tokens.append(tokens[left] + tokens[right])
        self.tokens = tuple(tokens)
        self._ranks = {pair: BYTES + rank for rank, pair in enumerate(self.merges)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: bytes) -> np.ndarray:
        """The tokens of a text: of each piece (`pieces`) its bytes, pairs of which are joined in the order of merges.

        Parameters
        ----------
        text : bytes

        Returns
        -------
        int64 array
        """
        if not self.merges:
            return np.frombuffer(text, np.uint8).astype(np.int64)
        numbers: dict[bytes, int] = {}
        order = np.fromiter((numbers.setdefault(piece, len(numbers)) for piece in pieces(text)), np.int64)
        found = [self._joined(piece) for piece in numbers]
        sizes = np.array([len(tokens) for tokens in found], np.int64)
        joined = np.array([token for tokens in found for token in tokens], np.int64)
        counts, starts = sizes[order], (np.cumsum(sizes) - sizes)[order]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return joined[np.repeat(starts, counts) + within]

    def _joined(self, piece: bytes) -> list[int]:
        tokens = list(piece)
        while len(tokens) > 1:
            rank = min(self._ranks.get(pair, _MOST) for pair in pairwise(tokens))
            if rank == _MOST:
                break
            tokens = _replaced(tokens, self.merges[rank - BYTES], rank)
        return tokens

    def lengths(self) -> np.ndarray:
        """Bytes of each token."""
        return np.array([len(token) for token in self.tokens], np.int64)

    def describe(self) -> dict:
        """How many tokens there are, and a checksum of the merges, as plain data for a record."""
        digest = hashlib.sha256("\n".join(f"{left} {right}" for left, right in self.merges).encode())
        return {"tokens": len(self), "sha256": digest.hexdigest()}


@functools.lru_cache(maxsize=2)
def learn_vocabulary(text: bytes, size: int) -> Vocabulary:
    """Learn a vocabulary from a text: again and again the pair of tokens that occurs most often becomes a token.

    Pairs are counted within pieces (`pieces`). Of pairs that occur equally often the one with the smaller first number
    is taken, then that with the smaller second one, so that the vocabulary follows from the text and the size alone.
    Of a text of more than 4 MiB, which is 256 blocks of 16,384 bytes, every n-th block is read, from the first on, with
    the smallest n of which there are no more.

    Parameters
    ----------
    text : bytes
    size : int
        How many tokens, the 256 bytes among them: 256 to 65536.

    Returns
    -------
    Vocabulary

    Raises
    ------
    ValueError
        If the size is out of range, or the text has fewer pairs that occur twice.

    References
    ----------
    R. Sennrich, B. Haddow and A. Birch, "Neural Machine Translation of Rare Words with Subword Units", 2016, section
    3.2; A. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.2 (of bytes, within
    pieces of one kind of character).

    Examples
    --------
    >>> learn_vocabulary(b"low lower lowest newest", 259).tokens[256:]
    (b'lo', b'we', b' lo')
    """
    if isinstance(size, bool) or not isinstance(size, int) or not BYTES <= size <= _MOST:
        raise ValueError(f"a vocabulary has {BYTES} to {_MOST} tokens, the {BYTES} bytes among them, got {size!r}")
    if size == BYTES:
        return Vocabulary()
    every = -(-len(text) // (_BLOCK * _BLOCKS))
    read = (text[first : first + _BLOCK] for first in range(0, len(text), _BLOCK * every))
    counted = Counter(pieces(text if every <= 1 else b"".join(read)))
    words, counts = [list(piece) for piece in counted], list(counted.values())
    totals: dict[tuple[int, int], int] = defaultdict(int)
    places: dict[tuple[int, int], set[int]] = defaultdict(set)
    for number, (word, count) in enumerate(zip(words, counts, strict=True)):
        for pair in pairwise(word):
            totals[pair] += count
            places[pair].add(number)
    waiting = [(-count, pair) for pair, count in totals.items()]
    heapq.heapify(waiting)
    merges: list[tuple[int, int]] = []
    while len(merges) < size - BYTES:
        pair = _most_frequent(waiting, totals)
        if pair is None:
            raise ValueError(
                f"the text has pairs that occur twice for {BYTES + len(merges)} tokens, fewer than the {size} of the "
                "vocabulary; take a smaller vocabulary or a longer text"
            )
        changed = set()
        for number in places[pair]:
            word, count = words[number], counts[number]
            joined = _replaced(word, pair, BYTES + len(merges))
            if len(joined) == len(word):  # an earlier merge took the pair from it
                continue
            words[number] = joined
            for change, tokens in ((-count, word), (count, joined)):
                for found in pairwise(tokens):
                    totals[found] += change
                    changed.add(found)
                    if change > 0:
                        places[found].add(number)
        merges.append(pair)
        del totals[pair], places[pair]
        for found in changed - {pair}:
            heapq.heappush(waiting, (-totals[found], found))
    return Vocabulary(merges)


def _most_frequent(waiting: list, totals) -> tuple[int, int] | None:
    """The pair that occurs most often, if one occurs twice; what was counted before a change is passed over."""
    while waiting:
        count, pair = heapq.heappop(waiting)
        if totals.get(pair) == -count:
            return pair if -count >= 2 else None
    return None


def _replaced(tokens: list[int], pair: tuple[int, int], by: int) -> list[int]:
    """Tokens with each pair, from left to right, replaced by one token."""
    found, at = [], 0
    while at < len(tokens):
        if at + 1 < len(tokens) and (tokens[at], tokens[at + 1]) == pair:
            found.append(by)
            at += 2
        else:
            found.append(tokens[at])
            at += 1
    return found
