"""All-reduces of ranks that send messages to one another, played rank by rank, element by element.

Sources: as `softnum.collective` states them, read from NCCL, Gloo and MPICH.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from softnum.reference.blocks import decode_block, encode_block
from softnum.reference.facts import block_format_of, format_of
from softnum.reference.operations import convert, divide, encode, multiply
from softnum.reference.random_words import philox4x32_10, random_word_elementwise
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import decode

Code = int
Dot = Callable[[Code | None, Sequence[Code], Sequence[int]], Code]


class Facts(NamedTuple):
    """What ranks agree on: the parameters of `softnum.collective` by its names, and formats.

    ``dot(start, terms, words)``: the unit's sum of terms, codes of ``taken``, from a code of ``result`` or, with None,
    from its own start; words: one for each rounding. ``chain``: whether a sum of many starts from its first term.
    """

    name: str
    ranks: int
    dot: Dot
    format: object
    wire: object
    taken: object
    result: object
    chain: bool = True
    steps: int = 1
    average: str | None = None
    own: str = "sent"
    wire_rounding: str = "nearest_even"
    wire_overflow: str | None = None
    scale_rule: str | None = None
    stochastic_bits: int = 32
    channels: int = 1
    chunk: int | None = None
    align: int = 1
    segments: int = 1
    segment: int | None = None
    direction: int = 1
    start: int | str = 1
    order: Sequence[int] | None = None
    node: int = 1
    distance: str = "far"
    key: tuple[int, int] = (0, 0)


def stream_of(key: tuple[int, int], kind: int, number: int) -> tuple[int, int]:
    """(seed, stream) of the random words of a rounding: `number` jumps from child `kind` of the key."""
    (high, low), (above, below) = divmod(key[0], 1 << 32), divmod(key[1], 1 << 32)
    trial = 0
    while True:
        words = philox4x32_10((low, high), (below, above, 6, trial))
        seed = words[0] | words[1] << 32
        if seed != key[0]:
            return seed, (kind << 32) + number
        trial += 1


def _up(n: int, by: int) -> int:
    return (n + by - 1) // by


def _equal(start: int, stop: int, count: int, size: int) -> list[range]:
    return [range(min(stop, start + i * size), min(stop, start + (i + 1) * size)) for i in range(count)]


def chunks(f: Facts, n: int) -> list[list[range]]:
    """For each channel, and each of its loops, the elements of every chunk."""
    loops = []
    each = _up(n, f.channels)
    into = f.ranks if f.name != "halving_doubling" else 1 << (f.ranks.bit_length() - 1)
    for channel in range(f.channels):
        first, last = min(n, channel * each), min(n, (channel + 1) * each)
        if f.chunk is None:
            parts = _up(last - first, f.segment) if f.segment else 1
            segments = max(f.segments, _up(parts, into))
            size = segments * _up(last - first, segments * into)
            loops.append(_equal(first, last, into, _up(size, f.align) * f.align))
            continue
        for at in range(first, last, into * f.chunk):
            left = last - at
            size = f.chunk if left >= into * f.chunk else _up(_up(left, into), f.align) * f.align
            loops.append(_equal(at, min(last, at + into * f.chunk), into, size))
    return loops


class _Play:
    """The arithmetic of one all-reduce; arrays are lists of codes, messages are lists of codes of what was sent."""

    def __init__(self, f: Facts) -> None:
        self.f = f
        self.average = f.average or ""

    def _word(self, kind: int, number: int, element: int) -> int:
        seed, stream = stream_of(self.f.key, kind, number)
        return random_word_elementwise(seed, stream, element)

    def send(self, codes: list[int], fmt, elements: Sequence[int], number: int, to) -> list[int]:
        """What arrives of codes of fmt, as codes of `to`; elements: their places in the whole array."""
        f, wire = self.f, self.f.wire
        stochastic = f.wire_rounding.startswith("stochastic") or f.wire_rounding == "sr"
        words = [self._word(1, number, i) if stochastic else None for i in elements]
        if not hasattr(wire, "block_size"):
            sent = [
                convert(code, fmt, wire, rounding=f.wire_rounding, overflow=f.wire_overflow,
                        stochastic_bits=f.stochastic_bits, random_bits=word)[0]
                for code, word in zip(codes, words, strict=True)
            ]  # fmt: skip
            return [convert(code, wire, to)[0] for code in sent]
        size = wire.block_size or max(len(codes), 1)
        found = []
        for at in range(0, len(codes), size):
            values = [_number(code, fmt) for code in codes[at : at + size]]
            given = {"random_bits": words[at : at + size]} if stochastic else {}
            block, scale = encode_block(
                values, wire, scale_rule=f.scale_rule, rounding=f.wire_rounding,
                overflow=f.wire_overflow or "saturate", stochastic_bits=f.stochastic_bits, **given,
            )  # fmt: skip
            decoded = decode_block(block, scale, block_format_of(wire))
            found += [deliver(value, format_of(to), environment_of(to))[0] for value in decoded]
        return found

    def as_result(self, code: int, fmt) -> int:
        return convert(code, fmt, self.f.result)[0]

    def add(self, own: int, arrived: int, number: int, element: int) -> int:
        return self.f.dot(own, [arrived], [self._word(0, number, element)])

    def total(self, terms: list[int], element: int) -> int:
        f = self.f
        words = [self._word(0, 1 + i, element) for i in range(f.steps)]
        if f.chain:
            return f.dot(convert(terms[0], f.taken, f.result)[0], terms[1:], words)
        return f.dot(None, terms, words)

    def put_in(self, code: int) -> int:
        f = self.f
        if self.average == "before":
            return divide(code, encode(f.ranks, "binary32")[0], (f.format, "binary32"), out_fmt=f.format)[0]
        if self.average == "reciprocal_before":
            return multiply(code, self.reciprocal(f.format), f.format)[0]
        return code

    def finish(self, code: int) -> int:
        f = self.f
        if self.average == "after":
            return divide(code, encode(f.ranks, "binary32")[0], (f.result, "binary32"), out_fmt=f.result)[0]
        if self.average == "reciprocal_after":
            return multiply(code, self.reciprocal(f.result), f.result)[0]
        return code

    def reciprocal(self, fmt) -> int:
        code, at = encode(Fraction(1, self.f.ranks), "binary64")[0], "binary64"
        if format_of(fmt).bits <= 32:
            code, at = convert(code, at, "binary32")[0], "binary32"
        return convert(code, at, fmt)[0]

    def delivered(self, code: int) -> int:
        return convert(code, self.f.result, self.f.format)[0]


def _number(code: int, fmt):
    value = decode(code, fmt)
    if value.kind == "finite":
        return -0.0 if value.sign and not value.numerator else value.fraction
    return float("nan") if value.kind == "nan" else float("-inf" if value.sign else "inf")


def all_reduce(arrays: Sequence[Sequence[Code]], f: Facts) -> list[list[Code]]:
    """What each rank has after an all-reduce: codes of `f.format` in, one list for each rank, and out.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> from softnum.reference.collectives import Facts, all_reduce
    >>> fmt = "bfloat16"
    >>> def dot(start, terms, words):  # acc = R(acc + 1 * x)
    ...     ones = [ref.encode(1, fmt)[0]] * len(terms)
    ...     return ref.mad_dot(ones, terms, operand=fmt, accumulator=fmt, c=start)[0]
    >>> arrays = [[ref.encode(x, fmt)[0]] for x in (256, 1, 1, 1)]
    >>> sums = all_reduce(arrays, Facts("ring", 4, dot, fmt, fmt, fmt, fmt, start=0))
    >>> [ref.to_fraction(codes[0], fmt) for codes in sums]
    [Fraction(256, 1), Fraction(256, 1), Fraction(256, 1), Fraction(256, 1)]
    """
    play = _Play(f)
    n = len(arrays[0])
    mine = [[play.put_in(code) for code in codes] for codes in arrays]
    results: list[list[Code | None]] = [[None] * n for _ in range(f.ranks)]
    _ALGORITHMS[f.name](f, play, mine, results, n)
    return results


def _gather(f: Facts, play: _Play, results, elements, sums: list[int], number: int, owner: int | None) -> None:
    """Every rank is sent sums; what the owner has is what it had, or what it sent."""
    sums = [play.finish(code) for code in sums]
    sent = play.send(sums, f.result, elements, number, f.format)
    for rank in range(f.ranks):
        kept = rank == owner and f.own == "kept"
        for i, code in zip(elements, [play.delivered(code) for code in sums] if kept else sent, strict=True):
            results[rank][i] = code


def _ring(f: Facts, play: _Play, mine, results, n: int) -> None:
    order = list(f.order) if f.order else list(range(f.ranks))
    for loop in chunks(f, n):
        # of each place in the ring, and chunk, what its rank has
        has = [[[play.as_result(mine[rank][i], f.format) for i in chunk] for chunk in loop] for rank in order]
        for step in range(1, f.ranks):
            messages = {}
            for place in range(f.ranks):
                c = (place - f.direction * (step - 1 + f.start)) % f.ranks  # chunk that it has added to so often
                messages[(place + f.direction) % f.ranks] = (
                    c,
                    play.send(has[place][c], f.result, loop[c], step - 1, f.taken),
                )
            for place, (c, arrived) in messages.items():
                own = has[place][c]
                has[place][c] = [
                    play.add(x, y, step, i) for x, y, i in zip(own, arrived, loop[c], strict=True)
                ]  # fmt: skip
        for place in range(f.ranks):
            c = (place - f.direction * (f.ranks - 1 + f.start)) % f.ranks
            _gather(f, play, results, loop[c], has[place][c], f.ranks - 1, order[place])


def _halves(first: int, last: int, children: dict[int, list[int]]) -> int | None:
    """The root of the nodes first..last: the one divisible by the largest power of two; its halves are its children."""
    if first > last:
        return None
    root = max(range(first, last + 1), key=lambda node: node & -node)
    children[root] = [
        x for x in (_halves(first, root - 1, children), _halves(root + 1, last, children)) if x is not None
    ]
    return root


def _tree(f: Facts, play: _Play, mine, results, n: int) -> None:
    nodes = f.ranks // f.node
    each = _up(n, f.channels)
    for channel in range(f.channels):
        second = f.name == "double_tree" and channel >= f.channels // 2
        children: dict[int, list[int]] = {}
        top = _halves(1, nodes - 1, children)
        children[0] = [] if top is None else [top]
        moved = (lambda x: x) if not second else (lambda x: (x + 1) % nodes) if nodes % 2 else (lambda x: nodes - 1 - x)
        below = {moved(x) * f.node: [moved(y) * f.node for y in those] for x, those in children.items()}

        def up(rank: int, elements, below=below) -> list[int]:
            sums = [play.as_result(mine[rank][i], f.format) for i in elements]
            chain = [rank + 1] if (rank + 1) % f.node else []
            for j, child in enumerate(chain + below.get(rank, [])):
                arrived = play.send(up(child, elements), f.result, elements, child, f.taken)
                sums = [play.add(x, y, 4 * rank + j, i) for x, y, i in zip(sums, arrived, elements, strict=True)]
            return sums

        first, last = min(n, channel * each), min(n, (channel + 1) * each)
        size = f.chunk or max(last - first, 1)
        root = moved(0) * f.node
        for at in range(first, last, size):
            elements = range(at, min(last, at + size))
            _gather(f, play, results, elements, up(root, elements), root, root)


def _fold(f: Facts, play: _Play, mine, n: int) -> tuple[list[int], list[list[int]]]:
    """Ranks that go on, and what they have."""
    power = 1 << (f.ranks.bit_length() - 1)
    ranks, has = [], []
    for rank in range(f.ranks):
        own = [play.as_result(code, f.format) for code in mine[rank]]
        if rank < 2 * (f.ranks - power):
            if rank % 2 == 0:
                waiting = play.send(own, f.result, range(n), rank, f.taken)
                continue
            own = [play.add(x, y, rank, i) for i, (x, y) in enumerate(zip(own, waiting, strict=True))]
        ranks.append(rank)
        has.append(own)
    return ranks, has


def _steps(power: int, distance: str) -> list[int]:
    steps = [1 << i for i in range(power.bit_length() - 1)]
    return steps if distance == "near" else steps[::-1]


def _group(rank: int, power: int, step: int, distance: str) -> int:
    """The number of a partial sum before a step: that of all ranks that have added the same ones."""
    return rank >> step if distance == "near" else rank % (power >> step)


def _halving(f: Facts, play: _Play, mine, results, n: int) -> None:
    ranks, has = _fold(f, play, mine, n)
    power = len(ranks)
    (loop,) = chunks(f, n)
    spans = [(0, power)] * power  # chunks that a rank still adds to
    for step, distance in enumerate(_steps(power, f.distance)):
        messages = []
        for r in range(power):
            low, high = spans[r]
            middle = (low + high) // 2
            keeps, gives = ((low, middle), (middle, high)) if not r & distance else ((middle, high), (low, middle))
            number = f.ranks * (1 + step) + _group(r, power, step, f.distance)
            sent = {}
            for c in range(*gives):
                codes = play.send([has[r][i] for i in loop[c]], f.result, loop[c], number, f.taken)
                sent |= dict(zip(loop[c], codes, strict=True))
            messages.append((r ^ distance, sent))
            spans[r] = keeps
        for to, sent in messages:
            number = f.ranks * (1 + step) + _group(to, power, step + 1, f.distance)
            for i, code in sent.items():
                has[to][i] = play.add(has[to][i], code, number, i)
    for r in range(power):
        (c, _), number = spans[r], f.ranks * (1 + len(_steps(power, f.distance)))
        _gather(f, play, results, loop[c], [has[r][i] for i in loop[c]], number, ranks[r])


def _doubling(f: Facts, play: _Play, mine, results, n: int) -> None:
    ranks, has = _fold(f, play, mine, n)
    power, steps = len(ranks), _steps(len(ranks), f.distance)
    for step, distance in enumerate(steps):
        first = f.ranks * (1 + step)
        sent = [
            play.send(has[r], f.result, range(n), first + _group(r, power, step, f.distance), f.taken)
            for r in range(power)
        ]
        now = []
        for r in range(power):
            pair = (has[r], sent[r ^ distance])
            if f.own == "sent":
                low, high = sorted((r, r ^ distance))
                pair = [convert(code, f.taken, f.result)[0] for code in sent[low]], sent[high]
            number = first + _group(r, power, step + 1, f.distance)
            now.append([play.add(x, y, number, i) for i, (x, y) in enumerate(zip(*pair, strict=True))])
        has = now
    last = f.ranks * (1 + len(steps))
    for r, rank in enumerate(ranks):
        sums = [play.finish(code) for code in has[r]]
        row = 0 if f.own == "sent" else r
        sent = play.send(sums, f.result, range(n), last + row, f.format)
        folded = power < f.ranks
        whole = folded and f.own == "sent"  # what some are sent, all have
        results[rank][:] = sent if whole else [play.delivered(code) for code in sums]
        if rank < 2 * (f.ranks - power):
            results[rank - 1][:] = sent


def _terms(f: Facts, play: _Play, mine, elements, rank: int | None) -> list[list[int]]:
    """What a rank, or a switch, has of all: terms for each element, in the order in which it adds them."""
    start = 0 if f.name == "in_network" else rank if f.start == "own" else f.start
    rows = []
    for source in [(start + i) % f.ranks for i in range(f.ranks)]:
        codes = [mine[source][i] for i in elements]
        if source == rank and f.own == "kept":
            rows.append([convert(code, f.format, f.taken)[0] for code in codes])
        else:
            rows.append(play.send(codes, f.format, elements, source, f.taken))
    return [list(terms) for terms in zip(*rows, strict=True)]


def _at_once(f: Facts, play: _Play, mine, results, n: int) -> None:
    elements = range(n)
    for rank in range(f.ranks):
        terms = _terms(f, play, mine, elements, rank)
        for i in elements:
            results[rank][i] = play.delivered(play.finish(play.total(terms[i], i)))


def _in_parts(f: Facts, play: _Play, mine, results, n: int) -> None:
    loops = [[range(n)]] if f.name == "in_network" else chunks(f, n)
    for loop in loops:
        for owner, elements in enumerate(loop):
            rank = None if f.name == "in_network" else owner
            terms = _terms(f, play, mine, elements, rank)
            sums = [play.total(those, i) for those, i in zip(terms, elements, strict=True)]
            _gather(f, play, results, elements, sums, f.ranks, rank)


_ALGORITHMS = {
    "ring": _ring, "tree": _tree, "double_tree": _tree, "halving_doubling": _halving, "doubling": _doubling,
    "one_shot": _at_once, "two_shot": _in_parts, "in_network": _in_parts,
}  # fmt: skip
