"""The formats of what goes into a box and comes out: which numbers it refuses, rounds, or tells apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.facts import fits
from softnum.formats.names import format, format_names
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.inspect.identify.box import Box

__all__ = ["Port", "Seen", "fitting", "operand_port", "result_port", "start_port"]

_MANTISSA = 52  # bits that float64 has, in which all numbers come
_REACH = 1074


@dataclass(frozen=True)
class Seen:
    """One thing that a format was seen by: what was asked, and what it says."""

    why: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float | None
    output: float | None


@dataclass
class Port:
    """What is known of a format; None: not known.

    ``strict``: whether other numbers are refused. ``least``: the smallest number above zero. ``normal``: the exponent
    of the lowest binade with all its mantissa bits. ``top``, ``bottom``: exponents of the largest and the smallest
    power of two that got through, where nothing is refused.
    """

    strict: bool = False
    fixed: bool | None = None
    mantissa: int | None = None
    least: float | None = None
    normal: int | None = None
    largest: float | None = None
    signed: bool | None = None
    infinities: bool | None = None
    nan: bool | None = None
    top: int | None = None
    bottom: int | None = None
    seen: tuple[Seen, ...] = ()

    def told(self, fmt) -> bool:
        """Whether a format has all that is known."""
        if self.fixed is not None and self.fixed != (fmt.precision is None):
            return False
        facts = {"signed": fmt.signed, "infinities": fmt.infinities, "nan": fmt.has_nan, "largest": float(fmt.max),
                 "least": float(fmt.smallest_subnormal)}  # fmt: skip
        if fmt.precision is not None:
            facts |= {"mantissa": fmt.mantissa_bits, "normal": fmt.emin}
        return all(getattr(self, name) in (None, value) for name, value in facts.items())

    @property
    def words(self) -> str:
        """What is known, in words."""
        known = {
            "numbers": None if self.fixed is None else "evenly spaced" if self.fixed else "floating",
            "mantissa bits": None if self.fixed else self.mantissa,
            "smallest": self.least, "largest": self.largest,
            "signs": self.signed, "infinities": self.infinities, "NaN": self.nan,
        }  # fmt: skip
        return ", ".join(f"{k} {v}" for k, v in known.items() if v is not None)


def _known_formats() -> list:
    fixed = [f"{u}q{bits}.0" for bits in (4, 8, 16, 32, 64) for u in ("", "u")]
    names = [*format_names(), "e6m9", *fixed]
    made = [f for f in map(format, names) if f.has_zero]
    return [f for f in made if _in_reach(f)]


def _in_reach(fmt) -> bool:
    """Whether float64 has the numbers of a format."""
    return fits(fmt, np.float64)


def fitting(port: Port) -> list:
    """Formats that have all that is known of one: those with names first, then such as exponent and mantissa bits make.

    >>> [str(f) for f in fitting(Port(fixed=False, mantissa=10, least=2.0**-24, largest=65504.0))]
    ['binary16']
    """
    found = [f for f in _known_formats() if port.told(f)]
    if port.fixed and port.least and port.largest:
        fraction = -int(np.log2(port.least))
        bits = int(np.floor(np.log2(port.largest))) + 1 + (port.signed is not False)
        made = FixedFormat(bits, fraction, signed=port.signed is not False)
        found += [made] if port.told(made) else []
    elif port.mantissa is not None and not found:
        for e, specials, lowest in product(range(2, 12), ("ieee", "fn", "fnuz", "none"), ("subnormal", "zero")):
            bias = None if port.normal is None else 1 - port.normal
            try:
                made = FloatFormat(
                    e, port.mantissa, bias=bias, specials=specials, lowest_binade=lowest,
                    signed=port.signed is not False,
                )  # fmt: skip
            except ValueError:  # no such facts go together
                continue
            if _in_reach(made) and port.told(made):
                found.append(made)
    return list(dict.fromkeys(found))


class _Asker:
    """Dot products of one term, and what they showed."""

    def __init__(self, box: Box, port: str) -> None:
        self.box, self.port = box, port
        self.seen: list[Seen] = []

    def value(self, v: float, other: float = 1.0, c: float | None = None) -> float | None:
        """The box of v at the port, of `other` at the other factor, and of C."""
        if self.port == "c":
            return self.box.one([c or 0.0], [other], v)
        a, b = (v, other) if self.port == "a" else (other, v)
        return self.box.one([a], [b], c if self.box.takes_c else None)

    def accepts(self, v: float) -> bool:
        got = self.value(v, 0.0 if self.port == "c" else 1.0)
        if got is None:
            got = self.value(v, 0.0 if self.port == "c" else 0.5)
        return got is not None

    def note(self, why: str, v: float, other: float = 1.0, c: float | None = None) -> None:
        out = self.value(v, other, c)
        a, b, start = (0.0, other, v) if self.port == "c" else (v, other, c) if self.port == "a" else (other, v, c)
        self.seen.append(Seen(why, *self.box.packed((a,), (b,)), start, out))


def _last(holds, numbers) -> int | None:
    """The last of numbers up to the first that does not hold; None where the first does not."""
    last = None
    for n in numbers:
        if not holds(n):
            break
        last = n
    return last


def _strict(ask: _Asker) -> Port:
    """A format by what is refused."""
    takes = ask.accepts
    signed = takes(-1.0)
    top = _last(lambda e: takes(2.0**e), range(1024))
    bottom = -_last(lambda e: takes(2.0**-e), range(_REACH + 1))
    mantissa = _last(lambda k: takes(1 + 2.0**-k), range(1, _MANTISSA + 1)) or 0
    wide = min(top, _MANTISSA - mantissa)
    fixed = takes(2.0**wide + 2.0**-mantissa) if wide > 0 else top == bottom == 0  # 1 alone: a bit
    infinities, nan = takes(np.inf), takes(np.nan)
    if fixed:
        largest = 2.0**top
        for e in range(top - 1, bottom - 1, -1):
            largest = largest + 2.0**e if takes(largest + 2.0**e) else largest
        normal = None
    else:
        largest = 2.0**top
        for k in range(1, mantissa + 1):
            largest = largest + 2.0 ** (top - k) if takes(largest + 2.0 ** (top - k)) else largest
        normal = -_last(lambda e: takes(2.0**-e * (1 + 2.0**-mantissa)), range(_REACH)) if mantissa else None
    port = Port(True, fixed, mantissa, 2.0**bottom, normal, largest, signed, infinities, nan)
    ask.note(f"taken at {ask.port}; {1 + 2.0 ** -(mantissa + 1)!r} is refused", 1 + 2.0**-mantissa if mantissa else 1.0)
    ask.note(f"the largest number taken at {ask.port}", largest, 0.0 if ask.port == "c" else 1.0)
    ask.note(f"the smallest number taken at {ask.port}", 2.0**bottom)
    port.seen = tuple(ask.seen)
    return port


def _rounding(ask: _Asker) -> Port:
    """A format by which numbers make a difference."""
    box, at_c = ask.box, ask.port == "c"
    starts = (None, -1.0) if box.takes_c and not at_c else (None,)
    others = (1.0, 1 + 2.0**-23, 1 + 2.0**-10, 1 + 2.0**-7, 1 + 2.0**-2) if not at_c else (1.0,)

    def look(v):
        if at_c:
            return [ask.value(v, 1.0, c) for c in (0.0, -1.0)]
        return [ask.value(v, o, c) for c in starts for o in others]

    def tells(k: int, scale: float = 1.0) -> bool:
        views = zip(look(1.0 * scale), look((1 + 2.0**-k) * scale), look((1 + 2.0 ** (1 - k)) * scale), strict=True)
        return any(y != x and y != z for x, y, z in views)

    mantissa = _last(tells, range(1, _MANTISSA + 1)) or 0
    counter = (lambda e: 1.0) if at_c else (lambda e: 2.0 ** -min(max(e, -1000), 1000))  # keeps products near 1

    def passes(e: int, most: int = 1000) -> bool:
        if at_c:
            return ask.value(2.0**e, 0.0) == 2.0**e
        other = counter(max(e, -most))
        return any(ask.value(2.0**e, other * x) == 2.0**e * other * x for x in (1.0, 2.0, 0.5))

    top = _last(passes, range(1024))
    small = _last(lambda e: passes(-e, top or 0), range(_REACH + 1))
    fixed = small == 0 and mantissa == 0 and ask.value(3.0) == 3.0
    got = ask.value(np.inf), ask.value(np.nan)
    infinities = True if got[0] is not None and np.isinf(got[0]) else None
    nan = True if got[1] is not None and np.isnan(got[1]) else None
    out = ask.value(-1.0)
    signed = None if out is None else out == -1.0
    ask.note(f"at {ask.port} it is told from 1 and from its larger neighbours", 1 + 2.0**-mantissa)
    if top is not None:
        ask.note(f"the largest power of two that passes at {ask.port}", 2.0**top, 0.0 if at_c else counter(top))
    if small is not None:
        ask.note(f"the smallest power of two that passes at {ask.port}", 2.0**-small, 0.0 if at_c else counter(-small))
    return Port(
        False, fixed, None if fixed else mantissa, signed=signed, infinities=infinities, nan=nan, top=top,
        bottom=None if small is None else -small, seen=tuple(ask.seen),
    )  # fmt: skip


def _roughly(port: Port) -> list:
    """Formats of a port that rounds: of these mantissa bits, whose powers of two reach as far."""
    found = []
    made = [] if port.fixed else [
        FloatFormat(e, port.mantissa, specials=s)
        for e in range(2, 12) for s in ("ieee", "fn", "fnuz", "none") if not (s == "ieee" and port.mantissa == 0)
    ]  # fmt: skip
    for fmt in [*_known_formats(), *made]:
        if not _in_reach(fmt) or not port.told(fmt):
            continue
        last, top = fmt.span
        reach = [(port.top, top - 1), (port.bottom, last)]
        apart = [abs(x - y) for x, y in reach if x is not None]
        found.append((sum(apart), fmt))
    least = min((apart for apart, _ in found), default=0)
    return list(dict.fromkeys(fmt for apart, fmt in found if apart == least))[:2]


def _port(box: Box, name: str) -> tuple[Port, list]:
    ask = _Asker(box, name)
    odd = [1 + 2.0**-_MANTISSA, 2.0**-_REACH, 2.0**1023, 1 / 3]
    if not all(map(ask.accepts, odd)):
        port = _strict(ask)
        return port, fitting(port)
    port = _rounding(ask)
    return port, _roughly(port)


def operand_port(box: Box, name: str) -> tuple[Port, list]:
    """What is known of a factor's format, "a" or "b", and formats that it can be, the likeliest first."""
    return _port(box, name)


def start_port(box: Box) -> tuple[Port, list]:
    """The same of C's format."""
    return _port(box, "c")


def result_port(box: Box, operand, c_format, more=()) -> tuple[Port, list]:
    """What is known of the result's format, and formats that it can be.

    Its precision is seen in sums of 1 and a smaller power of two, and in products; its range in products, and in C.
    ``more``: others, each (what it is, a, b), rows as `Box.rows` takes them.
    """
    fa, fb = operand
    seen: list[Seen] = []
    values: list[float] = []

    def add(why, a, b, c=None):
        c = (0.0 if c is None else c) if box.takes_c else None
        got = box.one(a, b, c)
        if got is not None and np.isfinite(got):
            values.append(got)
            seen.append(Seen(why, *box.packed(a, b), c, got))

    ones = lambda f: float(2 - 2.0**-f.mantissa_bits) if f.precision is not None else 3.0  # noqa: E731
    add("a product with as many bits as there are", [ones(fa)], [ones(fb)])
    smallest = [float(f.smallest_subnormal) for f in (fa, fb)]
    for k in range(1, 63):
        x = 2.0 ** -min(k, int(-np.log2(smallest[0])))
        y = 2.0**-k / x
        if y >= smallest[1]:
            add(f"1 + 2^-{k}", [1.0, x], [1.0, y])
            if fa.signed:
                add(f"-1 - 2^-{k}", [-1.0, -x], [1.0, y])
        if box.takes_c and c_format is not None and c_format.contains(format("bfloat16")) is not False:
            add(f"1 and C = 2^-{k}", [1.0], [1.0], 2.0**-k)
    if box.takes_c and c_format is not None:
        last, top = c_format.span
        for e in {*range(last, min(last + 40, top)), *range(max(top - 8, last), top), *range(-30, min(30, top))}:
            if last <= e < top:
                add(f"C = 2^{e} alone", [0.0], [0.0], 2.0**e)
        if c_format.precision is not None:
            add("C alone, all its bits ones", [0.0], [0.0], ones(c_format))
    else:
        (la, ta), (lb, tb) = fa.span, fb.span
        for e in range(la + lb, ta + tb - 1):
            x = min(max(e // 2, la), ta - 1)
            if lb <= e - x < tb:
                add(f"2^{e}", [2.0**x], [2.0 ** (e - x)])
    for why, a, b in more:
        got = float(box.block(a[None], b[:, None]).view(np.float64)[0, 0])
        if np.isfinite(got):
            values.append(got)
            seen.append(Seen(why, tuple(a.tolist()), tuple(b.tolist()), None, got))
    whole = all(v == np.floor(v) for v in values) and fa.precision is None
    numbers = [abs(v) for v in values if v]
    bits = max((_bits(v) for v in numbers), default=1)
    best = max(seen, key=lambda s: _bits(s.output), default=None)
    port = Port(
        False, True if whole else None, None if whole else bits - 1,
        top=int(np.floor(np.log2(max(numbers, default=1.0)))), bottom=int(np.log2(min(numbers, default=1.0))),
        seen=() if best is None else (best,),
    )  # fmt: skip
    found = [f for f in ([] if c_format is None else [c_format]) if _holds(f, values)]
    return port, list(dict.fromkeys([*found, *(f for f in _roughly(port) if _holds(f, values))]))


def _holds(fmt, values) -> bool:
    x = np.array(values, np.float64)
    return bool((quantize(x, fmt, overflow="saturate").astype(np.float64) == x).all())


def _bits(v: float) -> int:
    """Significant bits of a number."""
    significand, _ = np.frexp(abs(v))
    scaled = int(significand * 2.0**53)
    return 53 - ((scaled & -scaled).bit_length() - 1) if scaled else 0
