"""The test vectors of a disclosure: short sums that meet every rule of a unit, and what it makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode, encode
from softnum.arrays.streams import Stream
from softnum.formats.built_in import BuiltInFormat
from softnum.formats.dispatch import of_format
from softnum.inspect.disclosure.formats import hexadecimal
from softnum.inspect.disclosure.statement import Statement
from softnum.mac.family import family_of
from softnum.mac.products.matrices import dot
from softnum.reference.facts import format_of as facts_of_format

__all__ = ["Row", "operand_formats", "result_of", "rows_of"]

_SEED = 2026
_LONGEST = 48  # products of a row, where a period is not longer
_AT_RANDOM = 6  # rows of each kind
_NO_C = -1
_NO_CODE = "no code"  # what errors say where a result is NaN or infinite, and its format has no code for it


@dataclass(frozen=True)
class Row:
    """One sum: codes of a, b and C, None without it; of blocks with their scales and the arrays'; random words."""

    shows: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int | None = None
    a_scales: tuple[int, ...] = ()
    b_scales: tuple[int, ...] = ()
    tensor_scales: tuple[int | None, int | None] = (None, None)
    random_bits: tuple[tuple[int, int], ...] = ()

    def to_dict(self, unit, result: int) -> dict:
        """As plain data, codes in hexadecimal."""
        a, b = operand_formats(unit)
        shown = lambda codes, fmt: [hexadecimal(x, fmt) for x in codes]  # noqa: E731
        data = {"shows": self.shows, "a": shown(self.a, a), "b": shown(self.b, b)}
        if family_of(unit).of_blocks:
            scales = [f.scale for f in unit.operand]
            data |= {"a_scales": shown(self.a_scales, scales[0]), "b_scales": shown(self.b_scales, scales[1])}
            if any(f.tensor_scale is not None for f in unit.operand):
                data["tensor_scales"] = [
                    None if f.tensor_scale is None else hexadecimal(x, f.tensor_scale)
                    for x, f in zip(self.tensor_scales, unit.operand, strict=True)
                ]
        data["c"] = None if self.c is None else hexadecimal(self.c, unit.c_format)
        if unit.stochastic:
            data["random_bits"] = [list(pair) for pair in self.random_bits]
        return data | {"result": hexadecimal(result, unit.result)}

    @classmethod
    def of_dict(cls, data: dict) -> Row:
        """The row that `to_dict` described."""
        number = lambda text: None if text is None else int(text, 16)  # noqa: E731
        codes = lambda name: tuple(map(number, data.get(name, ())))  # noqa: E731
        return cls(
            data["shows"], codes("a"), codes("b"), number(data["c"]), codes("a_scales"), codes("b_scales"),
            codes("tensor_scales") or (None, None), tuple(tuple(pair) for pair in data.get("random_bits", ())),
        )  # fmt: skip


def operand_formats(unit) -> tuple:
    """The formats of the codes of a and b: of blocks, their elements'."""
    return tuple(f.element for f in unit.operand)


def result_of(unit, row: Row) -> int:
    """The code of a row's sum.

    Raises ValueError where it is NaN or infinite, and the format has no code for that.
    """
    arrays = [
        _array(fmt, codes, scales, tensor)
        for codes, scales, tensor, fmt in zip(
            (row.a, row.b), (row.a_scales, row.b_scales), row.tensor_scales, unit.operand, strict=True
        )
    ]
    c = None if row.c is None else Array(np.array(row.c, unit.c_format.storage_dtype), unit.c_format)
    words = {"random_bits": np.array(row.random_bits, np.uint32).reshape(1, 1, -1, 2)} if unit.stochastic else {}
    got = dot(*arrays, unit, c, threads=1, **words)
    if isinstance(got, Array):
        return int(got.codes)
    return int(encode(np.float64(got), unit.result))


@of_format
def _array(fmt, codes, scales, tensor):
    """An operand of these codes."""
    return Array(np.array(codes, fmt.storage_dtype), fmt)


@_array.block
def _(fmt, codes, scales, tensor):
    whole = None
    if fmt.tensor_scale is not None:
        whole = float(decode(np.array(tensor, fmt.tensor_scale.storage_dtype), fmt.tensor_scale))
    kinds = (fmt.element.storage_dtype, fmt.scale.storage_dtype)
    return BlockArray(np.array(codes, kinds[0]), np.array(scales, kinds[1]), fmt, -1, whole)


# -- which rows there are ----------------------------------------------------------------------------------------------
@dataclass
class _Codes:
    """Codes of one format that rules are about; None of what it does not have."""

    fmt: object
    largest: int
    lowest: int | None
    smallest: int
    negative: int | None = None  # what beside a number's code makes the negative's, of sign and magnitude
    minus_zero: int | None = None
    infinity: int | None = None
    minus_infinity: int | None = None
    nan: int | None = None

    def __post_init__(self) -> None:
        self._powers: dict[int, int | None] = {}
        self.zero = 0 if self.fmt.has_zero else None
        self.one, self.minus_one, self.half = (self.near(Fraction(x, 2)) for x in (2, -2, 1))

    def near(self, x: Fraction) -> int | None:
        """The code of a number, None if it is none of the format's."""
        try:
            code = encode(np.array([float(x)]), self.fmt)
            same = float(decode(code, self.fmt)[0]) == float(x)
        except (ValueError, OverflowError):
            return None
        return int(code[0]) if same else None

    def power(self, exponent: int) -> int | None:
        """The same of a power of two; kept, for searches ask for them again and again."""
        if exponent not in self._powers:
            self._powers[exponent] = self.near(Fraction(2) ** exponent)
        return self._powers[exponent]

    def minus(self, code: int) -> int | None:
        """The code of the negative of a number, where its sign is a bit."""
        return None if self.negative is None else self.negative | code


@of_format
def _codes(fmt) -> _Codes:
    """What a format has of them."""
    sign = 1 << fmt.bits - 1 if fmt.signed else None
    signed = lambda code: None if sign is None or code is None else sign | code  # noqa: E731
    facts = facts_of_format(fmt)
    return _Codes(
        fmt, facts.max_code, signed(facts.max_code), facts.least_code, sign, sign if fmt.negative_zero else None,
        facts.inf_code, signed(facts.inf_code), facts.nan_code,
    )  # fmt: skip


@_codes.fixed
def _(fmt) -> _Codes:
    top = 1 << fmt.bits - 1
    return _Codes(fmt, top - 1, top, 1) if fmt.signed else _Codes(fmt, 2 * top - 1, 0, 1)


@_codes.register(BuiltInFormat)
def _(fmt) -> _Codes:
    return _Codes(fmt, fmt.max_code, (1 << fmt.bits) - fmt.max_code, fmt.smallest_code, nan=fmt.nan_code)


@_codes.custom
def _(fmt) -> _Codes:
    values = decode(np.arange(1 << fmt.bits, dtype=fmt.storage_dtype), fmt)
    finite = np.where(np.isfinite(values), values, 0)
    first = lambda found: int(np.flatnonzero(found)[0]) if found.any() else None  # noqa: E731
    least = int(np.where(finite > 0, finite, np.inf).argmin())
    return _Codes(
        fmt, int(finite.argmax()), int(finite.argmin()), least, infinity=first(values == np.inf),
        minus_infinity=first(values == -np.inf), nan=first(np.isnan(values)),
    )  # fmt: skip


def rows_of(unit, statement: Statement) -> Iterator[tuple[Row, int]]:
    """Rows and their results: of every special rule, of ties and cancellation, of sums longer than a period, at random.

    Rows without a result are left out, and those that say what another has said.
    """
    seen, period = set(), min(statement.period, _LONGEST)
    rows = (
        *_special(unit, period), *_at_exponents(unit, statement, period), *_by_scales(unit, statement),
        *_random(unit, period),
    )  # fmt: skip
    for row in rows:
        if any(x is None for x in (*row.a, *row.b)):
            continue
        for made in _with_scales(unit, row):
            made = _with_words(unit, made)
            key = (made.a, made.b, made.c, made.a_scales, made.b_scales, made.tensor_scales, made.random_bits)
            if key in seen:
                continue
            seen.add(key)
            try:
                result = result_of(unit, made)
            except ValueError as error:
                if _NO_CODE not in str(error):
                    raise
                continue
            yield made, result


def _special(unit, period: int) -> Iterator[Row]:
    a, b = (_codes(f) for f in operand_formats(unit))
    c = _codes(unit.c_format)
    one = (a.one, b.one)
    for shows, pairs, start in (
        ("one product", [one], _NO_C),
        ("C alone: K = 0", [], c.one),
        ("-0 alone: K = 0", [], c.minus_zero),
        ("a NaN in a", [one, (a.nan, b.one)], _NO_C),
        ("a NaN in b", [one, (a.one, b.nan)], c.one),
        ("C is NaN", [one], c.nan),
        ("infinity times zero", [(a.infinity, b.zero)], _NO_C),
        ("zero times infinity", [one, (a.zero, b.infinity)], c.one),
        ("an infinity", [one, (a.infinity, b.one)], c.one),
        ("an infinity times a negative number", [(a.infinity, b.minus_one)], _NO_C),
        ("an infinite C", [one], c.minus_infinity),
        ("infinities of both signs", [(a.infinity, b.one), (a.infinity, b.minus_one)], _NO_C),
        ("an infinity and an infinite C of the other sign", [(a.infinity, b.one)], c.minus_infinity),
        ("the smallest operand", [(a.smallest, b.one)], _NO_C),
        ("the smallest operand in b, beside C", [(a.one, b.smallest)], c.smallest),
        ("the smallest operand times the largest", [(a.smallest, b.largest)], _NO_C),
        ("the largest operand times the smallest", [(a.largest, b.smallest)], _NO_C),
        ("the smallest operands", [(a.smallest, b.smallest)], _NO_C),
        ("the smallest operands, negative", [(a.smallest, b.smallest), (a.smallest, b.minus_one)], _NO_C),
        ("the smallest C", [(a.zero, b.zero)], c.smallest),
        ("the smallest C, beside a zero times the largest operand", [(a.zero, b.largest)], c.smallest),
        ("a zero product beside a small one", [(a.zero, b.largest), (a.smallest, b.smallest)], c.smallest),
        ("the largest operands", [(a.largest, b.largest)] * period, _NO_C),
        ("the largest operands and C", [(a.largest, b.largest)] * period, c.largest),
        ("the largest C and one", [one], c.largest),
        ("the lowest C and a negative product", [(a.largest, b.lowest)] * period, c.lowest),
        ("a sum of zero", [one, (a.one, b.minus_one)], _NO_C),
        ("a sum of zero with C", [(a.one, b.minus_one)], c.one),
        ("negative zeros", [(a.minus_zero, b.one)], c.minus_zero),
        ("a negative zero from +0", [(a.minus_zero, b.one)], _NO_C),
        ("negative zeros, as many as meet", [(a.minus_zero, b.one)] * period, c.minus_zero),
        ("zeros of both signs", [(a.minus_zero, b.one)], 0),
        ("cancellation of large terms", [(a.largest, b.one), (a.smallest, b.one), (a.largest, b.minus_one)], _NO_C),
        ("a large C, cancelled", [(a.one, b.one), (a.one, b.half)], c.lowest),
    ):
        if start is not None:  # a C that the format has
            yield _row(shows, pairs, start)
    yield from _ties(unit, a, b, c)
    ones = [one] * (period + 1)
    yield _row("more products than a period", ones, _NO_C)
    if c.one is not None:
        yield _row("more products than a period, from C", ones, c.one)
    if period > 1:
        for place in sorted({0, 1, period // 2, period - 1}):
            before = place - 1 if place else period - 1
            pairs = [(a.smallest, b.one)] * period
            pairs[place], pairs[before] = (a.largest, b.one), (a.largest, b.minus_one)
            yield _row(f"which products meet: large ones at k = {place} and before", pairs, _NO_C)
            if family_of(unit).of_blocks:  # whose elements lie near each other
                pairs = [(a.smallest, b.smallest)] * period
                pairs[place], pairs[before] = (a.largest, b.largest), (a.largest, b.lowest)
                yield _row(f"which products meet: the largest at k = {place} and before", pairs, _NO_C)


def _ties(unit, a: _Codes, b: _Codes, c: _Codes) -> Iterator[Row]:
    """C = 1 and 1.0...01 beside half of its last place, and a bit more and less."""
    if c.one is None or unit.c_format.nan_is_least:  # of bit strings the next code lies elsewhere
        return
    last = int(unit.c_format.last_place(0))
    for start, of in ((c.one, "1"), (c.one + 1, "1 and a last place")):
        for exponent, what in ((last - 1, "half a last place"), (last - 2, "a quarter"), (last - 3, "an eighth")):
            pair = _powers(a, b, exponent)
            if pair is not None:
                yield _row(f"{of}, and {what}", [pair], start)
                yield _row(f"{of}, less {what}", [(pair[0], b.minus(pair[1]))], start)
        half, less = _powers(a, b, last - 1), _powers(a, b, last - 5)
        if half is not None and less is not None:
            yield _row(f"{of}, half a last place and a bit more", [half, less], start)


def _at_exponents(unit, statement: Statement, period: int) -> Iterator[Row]:
    """Powers of two where the family's rules change: beside 1, a product or C, and alone, one and as many as meet."""
    a, b = (_codes(f) for f in operand_formats(unit))
    c = _codes(unit.c_format)
    for exponent in statement.beside_one:
        pair = _powers(a, b, exponent)
        if pair is not None:
            minus = pair[0], b.minus(pair[1])
            yield _row(f"1, and 2^{exponent}", [(a.one, b.one), pair], _NO_C)
            yield _row(f"-1, and 2^{exponent}", [(a.one, b.minus_one), pair], _NO_C)
            apart = [(a.one, b.one), pair, (a.one, b.minus_one)]
            yield _row(f"1, 2^{exponent}, and -1", apart, _NO_C)
            yield _row(f"1, 2^{exponent}, -1, and 2^{exponent}", [*apart, pair], _NO_C)
            if c.one is not None:
                yield _row(f"C = 1, and -2^{exponent}", [minus], c.one)
                yield _row(f"C = 1, and 2^{exponent} as often as fits", [pair] * period, c.one)
                yield from _beyond_half(unit, a, b, c, exponent)
    for exponent in statement.alone:
        pair = _powers(a, b, exponent)
        if pair is not None:
            yield _row(f"2^{exponent}", [pair], _NO_C)
            yield _row(f"2^{exponent} as often as fits", [pair] * period, _NO_C)
            yield _row(f"2^{exponent}, beside the smallest C", [pair], c.smallest)
            more = c.near(Fraction(3, 2) * Fraction(2) ** exponent)
            if more is not None:
                yield _row(f"C = 1.5 2^{exponent}, and -2^{exponent}", [(pair[0], b.minus(pair[1]))], more)
            if exponent > 0:
                yield _row(f"2^{exponent} and -2^{exponent}", [pair, (pair[0], b.minus(pair[1]))], _NO_C)
            else:
                yield from _sums_to_the_smallest(unit, a, b, exponent)
    for exponent in statement.c_beside_one:
        small = c.near(Fraction(2) ** exponent)
        if small is not None:
            yield _row(f"1, and C = 2^{exponent}", [(a.one, b.one)], small)
            if c.minus(small) is not None:
                yield _row(f"1, and C = -2^{exponent}", [(a.one, b.one)], c.minus(small))


def _by_scales(unit, statement: Statement) -> Iterator[Row]:
    """Of blocks that meet in one step: powers of two that lie so far apart only by their scales, beside C and alone."""
    if not family_of(unit).of_blocks:
        return
    a, b = (_codes(f) for f in operand_formats(unit))
    x, y = (_codes(f.scale) for f in unit.operand)
    c, size = _codes(unit.c_format), unit.block_size
    tensors = tuple(None if f.tensor_scale is None else _codes(f.tensor_scale).one for f in unit.operand)
    for exponent, count in itertools.product(statement.beside_one, sorted({1, statement.together})):
        for base in range(0, 64, 4):
            each = base + exponent - (count - 1).bit_length()
            large, small = _powers(x, y, base), _scaled_powers((a, b), (x, y), each)
            start = c.near(Fraction(2) ** base)
            if small is None or large is None or start is None:
                continue
            ((p, q), scales), what = small, f"2^{each} by scales" + (f", {count} times" if count > 1 else "")
            for sign, first in (("", b.one), ("-", b.minus_one)):
                if size < statement.period:
                    codes = (a.one, *[a.zero] * (size - 1), *[p] * count), (first, *[b.zero] * (size - 1), *[q] * count)
                    both = tuple(zip(large, scales, strict=True))
                    yield Row(f"{sign}2^{base}, and {what}", *codes, None, *both, tensors)
            if 3 * size <= statement.period:
                codes = tuple(
                    (z.one, *[z.zero] * (size - 1), *[small] * count, *[z.zero] * (size - count), last)
                    for z, small, last in ((a, p, a.one), (b, q, b.minus_one))
                )
                both = tuple((one, other, one) for one, other in zip(large, scales, strict=True))
                yield Row(f"2^{base}, {what}, and -2^{base}", *codes, None, *both, tensors)
            for sign, from_ in (("", start), ("-", c.minus(start))) if not unit.tensor_scales else ():
                if from_ is not None:
                    both = tuple((scale,) for scale in scales)
                    yield Row(f"C = {sign}2^{base}, and {what}", (p,) * count, (q,) * count, from_, *both, tensors)
            break
    for exponent in statement.alone:
        scaled = exponent + 4  # which leaves elements of 2^-4 and more
        scales = _powers(x, y, scaled)
        for row in _sums_to_the_smallest(unit, a, b, exponent, scaled) if scales is not None else ():
            blocks = unit.operand[0].blocks(len(row.a))
            yield replace(row, a_scales=scales[:1] * blocks, b_scales=scales[1:] * blocks, tensor_scales=tensors)


def _scaled_powers(elements, scales, exponent: int):
    """Codes of two elements, and of two scales, powers of two whose product has this exponent."""
    for of_elements in (0, -1, -2, -3, 1, 2, 3):
        pair, both = _powers(*elements, of_elements), _powers(*scales, exponent - of_elements)
        if pair is not None and both is not None:
            return pair, both
    return None


def _beyond_half(unit, a: _Codes, b: _Codes, c: _Codes, exponent: int) -> Iterator[Row]:
    """C = 1 and half of its last place, to which 2^exponent is added, where it is smaller."""
    if unit.c_format.nan_is_least:
        return
    last = int(unit.c_format.last_place(0))
    half, small = _powers(a, b, last - 1), _powers(a, b, exponent)
    if half is not None and exponent < last - 1:
        yield _row(f"C = 1, half a last place, and 2^{exponent}", [half, small], c.one)


def _sums_to_the_smallest(unit, a: _Codes, b: _Codes, exponent: int, scaled: int = 0) -> Iterator[Row]:
    """Products that come to the smallest result, and to a bit more than half of it, thanks to one of 2^exponent.

    scaled: of blocks, the exponent that their scales have, so that elements have that much less.
    """
    result = unit.result
    least = result.emin - result.mantissa_bits - scaled
    exponent -= scaled
    last, half = _powers(a, b, exponent), _powers(a, b, least - 1)
    if half is not None:
        yield _row(f"half of the smallest result, and 2^{exponent + scaled}", [half, last], _NO_C)
    pairs, bits, precision = [last], least - exponent, a.fmt.mantissa_bits + 1
    for low in range(0, bits, precision):  # 2^least - 2^exponent in parts of as many ones as a factor has
        width = min(precision, bits - low)
        part = _scaled(a, b, (1 << width) - 1, exponent + low)
        pairs.append((None, None) if part is None else part)
    yield _row(f"2^{least + scaled} in parts, the smallest of 2^{exponent + scaled}", pairs[::-1], _NO_C)


def _scaled(a: _Codes, b: _Codes, factor: int, exponent: int) -> tuple[int, int] | None:
    """Codes of factor * 2^i and 2^j, i + j being the exponent."""
    for of_b in range(b.fmt.emax, b.fmt.emin - 1, -1):
        pair = a.near(factor * Fraction(2) ** (exponent - of_b)), b.near(Fraction(2) ** of_b)
        if None not in pair:
            return pair
    return None


def _powers(a: _Codes, b: _Codes, exponent: int) -> tuple[int, int] | None:
    """Codes of two powers of two whose product has this exponent."""
    for of_a in sorted(range(-160, 161), key=lambda e: (abs(2 * e - exponent), e)):
        pair = a.power(of_a), b.power(exponent - of_a)
        if None not in pair:
            return pair
        if abs(2 * of_a - exponent) > 320:
            break
    return None


def _row(shows: str, pairs: Sequence[tuple[int | None, int | None]], c: int) -> Row:
    return Row(shows, tuple(x for x, _ in pairs), tuple(y for _, y in pairs), None if c == _NO_C else c)


def _random(unit, period: int) -> Iterator[Row]:
    """Rows of operands around 1, and of any codes, from a stream of random words."""
    formats = (*operand_formats(unit), unit.c_format)
    words = iter(Stream(_SEED).words(_AT_RANDOM * 4 * (8 * period + 16)).tolist())
    for i in range(_AT_RANDOM):
        k = (1, period, 2 * period + 1)[i % 3]
        for shows, draw in (("random numbers near 1", _near_one), ("random codes", _any_code)):
            a, b = (tuple(draw(f, words) for _ in range(k)) for f in formats[:2])
            yield Row(shows, a, b, draw(formats[2], words) if i % 2 else None)


def _any_code(fmt, words) -> int:
    return (next(words) << 32 | next(words)) % (1 << fmt.bits)


def _near_one(fmt, words) -> int:
    """The code of a number within some powers of two of 1, all of its fraction random."""
    x = (2**20 + next(words) % 2**20) * 2.0 ** (next(words) % 7 - 23)
    x = -x if fmt.signed and next(words) % 2 else x
    return int(encode(np.array([x]), fmt, overflow=_saturating(fmt))[0])


def _saturating(fmt) -> str | None:
    """An overflow rule by which what is too large becomes the largest value; None where that is the only one."""
    return "saturate" if "saturate" in fmt.overflow_rules else None


def _with_scales(unit, row: Row) -> Iterator[Row]:
    """The row with the scales of its blocks: ones; the ends; NaN; zero; of the other sign; in turn."""
    if not family_of(unit).of_blocks or row.a_scales:
        yield row
        return
    scales = [_codes(f.scale) for f in unit.operand]
    tensors = [None if f.tensor_scale is None else _codes(f.tensor_scale) for f in unit.operand]
    blocks = unit.operand[0].blocks(len(row.a)) if row.a else 0
    ways = [("", [s.one for s in scales], [None if t is None else t.one for t in tensors])]
    if row.shows in ("one product", "the largest operands", "the smallest operand"):
        ways += [
            (", largest scales", [s.largest for s in scales], ways[0][2]),
            (", smallest scales", [0 if not s.fmt.has_zero else s.smallest for s in scales], ways[0][2]),
            (", a scale of NaN", [scales[0].nan, scales[1].one], ways[0][2]),
            (", a scale of zero", [scales[0].zero, scales[1].one], ways[0][2]),
            (", a negative scale", [scales[0].one, scales[1].minus_one], ways[0][2]),
        ]
        if any(t is not None for t in tensors):
            ways.append((", arrays' scales of 1/2", ways[0][1], [None if t is None else t.half for t in tensors]))
    for what, pair, whole in ways:
        if None in pair:
            continue
        turn = [_in_turn(x, s, blocks) if not what else (x,) * blocks for x, s in zip(pair, scales, strict=True)]
        yield Row(row.shows + what, row.a, row.b, row.c, *turn, tuple(whole))


def _in_turn(code: int, scale: _Codes, blocks: int) -> tuple[int, ...]:
    """A scale and its neighbours, so that blocks differ."""
    top = (1 << scale.fmt.bits) - 1
    return tuple(code + (j % 3 if code + 2 <= top else 0) for j in range(blocks))


def _with_words(unit, row: Row) -> Row:
    if not unit.stochastic:
        return row
    steps = unit.steps(len(row.a)) if row.c is None else unit.steps_with_c(len(row.a))
    words = Stream(_SEED, 1 + len(row.a)).words(2 * steps).tolist() if steps else []
    mask = (1 << unit.stochastic_bits) - 1
    pairs = tuple((words[2 * i] & mask, words[2 * i + 1] & mask) for i in range(steps))
    return Row(row.shows, row.a, row.b, row.c, row.a_scales, row.b_scales, row.tensor_scales, pairs)
