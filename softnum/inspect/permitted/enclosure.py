"""Proven enclosures of all results, where there are too many computations to look at each.

docs/permitted.md has the proofs. There are two enclosures.

`bounded` holds for any tree. A binary tree of n leaves has n - 1 inner nodes; in the order of their sizes, those of a
node's subtree before it, the r-th has at most r + 1 leaves. So the exact sum that the r-th node rounds lies between
-(N_(r+1) + D-) and P_(r+1) + D+, where P_k and N_k are the sums of the k largest positive and negative terms, and D+
and D- what the nodes before it may have been rounded up and down in all. What it rounds by is bounded by its place.

`hull` is the least and the greatest result themselves: a rounding never exchanges two numbers, so that the least sum of
some terms is that of the least sums of two parts of them. It takes a dynamic program, as the set of results does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from softnum.inspect.permitted.arithmetic import Exceeded, Machine
from softnum.inspect.permitted.sets import folded
from softnum.reference.rounding import floor_log2
from softnum.reference.values import Value, decode

__all__ = ["Enclosure", "bounded", "hull"]


@dataclass(frozen=True)
class Enclosure:
    """What all results lie in: the numbers from `low` to `high` (none where these are None), and `specials`.

    Attributes
    ----------
    low, high : Fraction or None
    specials : frozenset of str
        Which of "inf", "-inf" and "nan" there may be besides.
    tight : bool
        Whether `low` and `high` are results.
    why : tuple of str
        The derivation, with its numbers.
    """

    low: Fraction | None
    high: Fraction | None
    specials: frozenset[str] = frozenset()
    tight: bool = False
    why: tuple[str, ...] = ()

    def holds(self, x: Value) -> bool:
        """Whether a result may be this value."""
        if x.kind == "finite":
            return self.low is not None and self.low <= x.fraction <= self.high
        return {"inf": "-inf" if x.sign else "inf"}.get(x.kind, "nan") in self.specials


class _Terms:
    """What is known of the terms of a sum: of each the least and greatest value as an operand, and their specials."""

    def __init__(self, machine: Machine, pairs, c: int | None) -> None:
        self.lows: list[Fraction] = []
        self.highs: list[Fraction] = []
        self.certain: set[str] = set()  # specials that a term is in every computation
        self.possible: set[str] = set()
        kept: dict = {}
        sums = []
        for pair in pairs:
            if pair not in kept:
                kept[pair] = machine.leaf(*pair)
            sums.append(kept[pair])
        if c is not None:
            sums.append(machine.closed({c: ("c",)}))
        bounds: dict[int, tuple] = {}
        self.grain: int | None = None  # all terms are multiples of 2**grain
        for items in sums:
            if id(items) not in bounds:
                bounds[id(items)] = self._of(machine, items)
            numbers, specials = bounds[id(items)]
            if numbers:
                self.lows.append(min(numbers))
                self.highs.append(max(numbers))
            else:
                self.certain |= specials if len(specials) == 1 else set()
            self.possible |= specials
        if len(self.possible & {"inf", "-inf"}) == 2:
            self.possible.add("nan")

    def _of(self, machine: Machine, items) -> tuple[list[Fraction], set[str]]:
        numbers, specials = [], set()
        for item in items:
            for value in {machine.read(item, flush) for flush in (False, *machine.readings(item))}:
                if value.kind != "finite":
                    specials.add({"inf": "-inf" if value.sign else "inf"}.get(value.kind, "nan"))
                    continue
                numbers.append(value.fraction)
                if value.numerator:
                    last = (value.numerator & -value.numerator).bit_length() - value.denominator.bit_length()
                    self.grain = last if self.grain is None else min(self.grain, last)
        return numbers, specials


def _lost(machine: Machine, bottom: Fraction, top: Fraction, grain: int | None) -> tuple[Fraction, Fraction]:
    """How far up and down a rounding can move an exact sum from -bottom to top, a multiple of 2**grain, that does not
    overflow."""
    fmt, freedom = machine.accumulator, machine.freedom
    largest = max(bottom, top)
    zero = Fraction(0)
    if not largest or grain is None:
        return zero, zero
    up = down = zero
    smallest = fmt.smallest_normal
    has_small = Fraction(2) ** grain < smallest  # whether there are sums between 0 and the normal numbers

    def gap(most: Fraction) -> Fraction:
        """The largest gap of two neighbours that a sum of this magnitude lies between."""
        if not most:
            return zero
        quantum = max(floor_log2(most.numerator, most.denominator), fmt.emin) - fmt.mantissa_bits
        found = Fraction(2) ** quantum if quantum > grain else zero
        return max(found, smallest) if fmt.lowest_binade != "subnormal" and has_small else found

    for mode in freedom.rounding if machine.rounded else ():
        if mode.startswith("nearest"):
            up, down = max(up, gap(largest) / 2), max(down, gap(largest) / 2)
        else:
            ups = {"up": largest, "to_odd": largest, "toward_zero": bottom, "away_from_zero": top, "down": zero}[mode]
            downs = {"down": largest, "to_odd": largest, "toward_zero": top, "away_from_zero": bottom, "up": zero}[mode]
            up, down = max(up, gap(ups)), max(down, gap(downs))
    if machine.flushing and has_small:
        up, down = up + smallest, down + smallest
    return up, down


def bounded(machine: Machine, pairs, c: int | None) -> Enclosure:
    """The enclosure that holds whatever the tree."""
    return _delivered(machine, _of_sums(machine, pairs, c))


def _of_sums(machine: Machine, pairs, c: int | None) -> Enclosure:
    """The same of the finished sum, before it is rounded to the output's format."""
    freedom, fmt = machine.freedom, machine.accumulator
    terms = _Terms(machine, pairs, c)
    specials = set(terms.possible)
    most = _largest(fmt)
    rule = freedom.overflow_of(freedom.accumulator)
    keeps_infinities = fmt.infinities and rule != "saturate"
    both = keeps_infinities and {"inf", "-inf"} <= terms.certain
    if "nan" in terms.certain or both:
        why = ("two terms are infinities of both signs" if both else "a term is NaN",)
        return Enclosure(None, None, frozenset(("nan",)), False, why)
    if not keeps_infinities and specials & {"inf", "-inf"}:
        return _anything(machine, ("a term is infinite, and sums may be numbers all the same",))
    lows, highs = terms.lows, terms.highs
    n = len(lows)
    grain = terms.grain
    if grain is not None and fmt.lowest_binade != "subnormal":
        grain = min(grain, fmt.emin - fmt.mantissa_bits)
    positive = sorted((x for x in highs if x > 0), reverse=True)
    negative = sorted((-x for x in lows if x < 0), reverse=True)
    top = bottom = Fraction(0)
    up = down = last_up = last_down = Fraction(0)
    over = under = False
    for rank in range(n):  # of rank leaves before this one
        top += positive[rank] if rank < len(positive) else 0
        bottom += negative[rank] if rank < len(negative) else 0
        if not rank:
            over, under = top > most, bottom > most
            continue
        last_up, last_down = up, down
        over, under = over or top + up > most, under or bottom + down > most
        more = _lost(machine, bottom + down, top + up, grain)
        up, down = up + more[0], down + more[1]
    low, high = sum(lows, Fraction(0)), sum(highs, Fraction(0))
    why = [
        f"{n} terms, whose sum lies in {_span(low, high)}",
        f"of any tree the last addition's exact sum is at most {_short(last_up)} above and {_short(last_down)} below "
        f"that: its partial sums lie in {_span(-bottom - last_down, top + last_up)}",
    ]
    if over or under:
        outward = all(mode.startswith("nearest") or mode == "away_from_zero" for mode in freedom.rounding)
        if not (outward and rule in (None, "infinity") and fmt.infinities):
            return _anything(machine, (*why, "a partial sum may overflow, and not to an infinity"))
        specials |= {"inf"} if over else set()
        specials |= {"-inf"} if under else set()
        why.append("a partial sum may overflow to " + " or ".join(sorted(specials & {"inf", "-inf"})))
    if {"inf", "-inf"} <= specials:
        specials.add("nan")
    if terms.certain:
        return Enclosure(None, None, frozenset(specials), False, (*why, "a term is infinite"))
    found = Enclosure(low - last_down, high + last_up, frozenset(specials), False, tuple(why))
    return _rounded(machine, found)


def _anything(machine: Machine, why: tuple[str, ...]) -> Enclosure:
    """The enclosure that excludes nothing."""
    fmt, most = machine.accumulator, _largest(machine.accumulator)
    names = {"inf", "-inf"} if fmt.infinities else set()
    names |= {"nan"} if fmt.has_nan else set()
    return Enclosure(-most, most, frozenset(names), False, (*why, "nothing is excluded"))


def _largest(fmt) -> Fraction:
    """The largest number of a format."""
    return decode(fmt.max_code, fmt).fraction


def _value(x: Fraction) -> Value:
    return Value("finite", int(x < 0), abs(x.numerator), x.denominator)


def _rounded(machine: Machine, found: Enclosure) -> Enclosure:
    """The enclosure of what the last addition rounds to, from that of its exact sum."""
    fmt, most = machine.accumulator, _largest(machine.accumulator)
    ends = []
    for x, pick in ((found.low, min), (found.high, max)):
        values = [decode(machine.delivered(_value(x), fmt, env), fmt) for env in machine.ways]
        numbers = [v.fraction for v in values if v.kind == "finite"] or [most if x > 0 else -most]
        if len(numbers) < len(values):
            numbers.append(most if x > 0 else -most)
        ends.append(pick(numbers))
    low, high = ends
    if True in machine.reads:  # +0 may be added to what is subnormal
        small = fmt.smallest_normal
        low = min(low, Fraction(0)) if 0 < low < small else low
        high = max(high, Fraction(0)) if -small < high < 0 else high
    return replace(found, low=low, high=high)


def _delivered(machine: Machine, found: Enclosure) -> Enclosure:
    """The enclosure of results in the output's format, from that in the accumulator's."""
    fmt = machine.output
    if machine.freedom.output == machine.freedom.accumulator:
        return found
    specials = set()
    for name in found.specials:
        if name == "nan" and not fmt.has_nan and (found.low is not None or len(found.specials) > 1):
            continue  # no computation that gives it has a result
        value = Value("nan", 0, 1, 2) if name == "nan" else Value("inf", int(name == "-inf"))
        for env in machine.output_ways:
            specials.add(_name(decode(machine.delivered(value, fmt, env), fmt)))
    ends: list[Fraction] = []
    most, tight = _largest(fmt), found.tight
    for x in () if found.low is None else (found.low, found.high):
        for env in machine.output_ways:
            for read in {x, Fraction(0)} if machine.flushing and abs(x) < machine.accumulator.smallest_normal else {x}:
                value = decode(machine.delivered(_value(read), fmt, env), fmt)
                if value.kind == "finite":
                    ends.append(value.fraction)
                else:
                    specials.add(_name(value))
                    ends.append(most if x > 0 else -most)
                    tight = False
    numbers = [x for x in specials if isinstance(x, Fraction)]
    ends += numbers
    names = frozenset(x for x in specials if isinstance(x, str))
    why = (*found.why, f"rounded to {machine.freedom.output}")
    if not ends:
        return Enclosure(None, None, names, tight, why)
    return Enclosure(min(ends), max(ends), names, tight, why)


def _name(x: Value):
    if x.kind == "finite":
        return x.fraction
    return {"inf": "-inf" if x.sign else "inf"}.get(x.kind, "nan")


class _Hulls:
    """What sums can be, as the least and the greatest: {raw or not: [low, high]}."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._done: dict = {}

    def _of(self, items) -> dict:
        found: dict = {}
        for item in items:
            value = self.machine.read(item, False).fraction
            self._put(found, not isinstance(item, int) and item.raw, value)
        return found

    @staticmethod
    def _put(found: dict, raw: bool, value: Fraction) -> None:
        ends = found.setdefault(raw, [value, value])
        ends[0], ends[1] = min(ends[0], value), max(ends[1], value)

    def leaf(self, pair, index: int, bare: bool = False) -> dict:
        return self._of(self.machine.leaf(*pair, bare))

    def start(self, code: int, bare: bool = False) -> dict:
        made: dict = {code: ("c",)}
        return self._of(made if bare else self.machine.closed(made))

    def begun(self, leaf: dict) -> dict:
        return {raw: list(ends) for raw, ends in leaf.items() if not raw}

    def merged(self, left: dict, right: dict) -> dict:
        for raw, ends in right.items():
            for value in ends:
                self._put(left, raw, value)
        return left

    def zero(self) -> dict:
        return {False: [Fraction(0), Fraction(0)]}

    def new(self) -> dict:
        return {}

    def join(self, target: dict, left: dict, right: dict) -> None:
        for raw, ends in left.items():
            for other, others in right.items():
                if not (raw and other):
                    for end in (0, 1):
                        for value in self._sums(ends[end], others[end]):
                            self._put(target, False, value)

    def _sums(self, x: Fraction, y: Fraction) -> tuple[Fraction, ...]:
        machine = self.machine
        if machine.left is not None:
            machine.left -= 1
            if machine.left < 0:
                raise Exceeded
        found = self._done.get((x, y))
        if found is None:
            found = []
            for p in self._readings(x):
                for q in self._readings(y):
                    found += self._roundings(p + q)
            self._done[x, y] = found = tuple(found)
        return found

    def _readings(self, x: Fraction) -> tuple[Fraction, ...]:
        """What is read of a number: itself and, where some operands are flushed, zero if it is small."""
        small = True in self.machine.reads and x and abs(x) < self.machine.accumulator.smallest_normal
        return (x, Fraction(0)) if small else (x,)

    def _roundings(self, x: Fraction) -> list[Fraction]:
        machine, fmt = self.machine, self.machine.accumulator
        found = [x] if machine.unrounded else []
        if machine.rounded:
            found += [decode(machine.delivered(_value(x), fmt, env), fmt).fraction for env in machine.ways]
        return found

    def closed(self, target: dict) -> dict:
        machine = self.machine
        if machine.flushing and machine.freedom.zeros != "ieee":
            for ends in list(target.values()):
                for value in tuple(ends):
                    for other in self._sums(value, Fraction(0)):
                        self._put(target, False, other)
        return target


def hull(machine: Machine, pairs, c: int | None) -> Enclosure | None:
    """The least and the greatest result; None where a term or a sum may be an infinity or NaN; raises `Exceeded`."""
    if _Terms(machine, pairs, c).possible or _of_sums(machine, pairs, c).specials:
        return None
    algebra = _Hulls(machine)
    total = folded(algebra, machine.freedom, pairs, c)
    ends = [x for raw, both in total.items() if not raw for x in both]
    ends = [y for x in ends for env in machine.ways for y in [_fraction(machine, x, env)]]
    tight = not machine.flushing  # of what is flushed, more is taken to be possible than is
    why = ("the least and the greatest result, as roundings are monotone: found over all parts of the terms",)
    return _delivered(machine, Enclosure(min(ends), max(ends), frozenset(), tight, why))


def _fraction(machine: Machine, x: Fraction, env) -> Fraction:
    return decode(machine.delivered(_value(x), machine.accumulator, env), machine.accumulator).fraction


def _short(x: Fraction) -> str:
    """A number in a few digits, for reading."""
    try:
        return f"{float(x):.6g}"
    except OverflowError:
        return f"about 2**{x.numerator.bit_length() - x.denominator.bit_length()}"


def _span(low: Fraction, high: Fraction) -> str:
    return f"{_short(low)}" if low == high else f"[{_short(low)}, {_short(high)}]"
