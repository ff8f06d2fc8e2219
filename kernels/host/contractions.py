"""Contractions as loops: a text made of a contraction's indices, compiled by Numba, that lays no terms out.

The loops run over the places of the result, one axis of them innermost, so that LLVM makes vectors of it; each place
meets its terms in the order that the contraction states. A row of terms is as long as `TILE` at most: it stays in the
nearest cache.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd, lcm

import numpy as np
from numba import njit, types
from numba.np.numpy_support import from_dtype

from softnum.kernels.host.cache import cache_of
from softnum.kernels.host.jit import compiled
from softnum.kernels.host.rounding import body_of, inlined
from softnum.kernels.host.scalars import Scalar

__all__ = ["is_short", "run"]

EXTREMES = ("largest", "largest float", "smallest float")
TILE = 64  # places of the result at a time


@lru_cache(maxsize=1024)
def is_short(scalar: Scalar, *names: str) -> bool:
    """Whether these operations are a few instructions each, and no calls of the core."""
    return all(body_of(scalar, name) is not None for name in names)


def _order_of_floats(largest: bool, width: int):
    """(bits of a float -> integer, back): the one that wins is the largest; a NaN wins, -0 is below +0."""
    kind = np.int32 if width == 32 else np.int64
    top, most = kind(width - 1), kind(np.iinfo(kind).max)
    infinity = kind(np.array(np.inf, f"f{width // 8}").view(kind))
    nan = kind(np.array(np.nan, f"f{width // 8}").view(kind))
    turn = kind(0 if largest else -1)

    @inlined
    def key(bits):
        turned = bits ^ ((bits >> top) & most) ^ turn
        return most if bits & most > infinity else turned

    @inlined
    def back(found):
        found_bits = found ^ turn
        return nan if found == most else found_bits ^ ((found_bits >> top) & most)

    return key, back


class _Text:
    """The text of a kernel, and the numbers that it reads: contractions that differ in sizes alone share a text."""

    def __init__(self, loops) -> None:
        self.loops, self.numbers, self.body = loops, [], []

    def number(self, value: int) -> str:
        """What the text calls a number."""
        self.numbers.append(value)
        return f"p{len(self.numbers) - 1}"

    def add(self, depth: int, *lines: str) -> None:
        """Lines at a depth."""
        self.body += ["    " * depth + line for line in lines]

    def whole(self, kind: str, parameters: str, result: str) -> str:
        """The function."""
        read = [f"    p{i} = p[{i}]" for i in range(len(self.numbers))]
        return "\n".join([f"def {kind}({parameters}):", *read, *self.body, f"    return {result}", ""])


class _Line:
    """A whole number over the loops, by running sums: what it is called at each depth."""

    def __init__(self, text: _Text, line, name: str) -> None:
        self.line, self.name = line, name
        self.vector = line.coefficients[text.loops.vector]
        self.at = text.number(line.constant)
        self.factors = {a: text.number(c) for a, c in enumerate(line.coefficients) if c}

    def enter(self, text: _Text, depth: int, axis: int, variable: str) -> None:
        """Add what a loop's variable brings."""
        if axis in self.factors:
            new = f"{self.name}_{axis}"
            text.add(depth, f"{new} = {self.at} + {self.factors[axis]} * {variable}")
            self.at = new


class _Reading:
    """One factor's elements along a row: where they are, and where there are none."""

    def __init__(self, text: _Text, number: int, offset, limits) -> None:
        self.number = number
        self.offset = _Line(text, offset, f"o{number}")
        self.limits = [_Line(text, limit, f"l{number}_{i}") for i, limit in enumerate(limits)]
        self.scale = text.number(offset.scale) if offset.scale != 1 else None
        self.bounds = [limit.bound is not None and text.number(limit.bound) for limit in limits]
        self.scales = [text.number(limit.scale) if limit.scale != 1 else None for limit in limits]
        guarded = [limit for limit in limits if limit.scale != 1 and limit.coefficients[text.loops.vector]]
        steps = [limit.scale // gcd(limit.scale, limit.coefficients[text.loops.vector]) for limit in guarded]
        self.period = text.number(lcm(*steps)) if guarded else None

    @property
    def lines(self) -> list[_Line]:
        """All that it computes from the loops' variables."""
        return [self.offset, *self.limits]

    def element(self) -> str:
        """The element at place x of the row."""
        vector, at = self.offset.vector, self.offset.at
        factor = self.offset.factors.get(self.axis)
        if self.scale:
            moved = f" + {factor} * int64(x)" if vector else ""
            return f"a{self.number}[U(({at}{moved}) // {self.scale})]"
        moved = {0: "", 1: " + x"}.get(vector)
        if moved is None:
            moved = f" + U({vector if 1 < vector <= 4 else factor}) * x"
        return f"a{self.number}[U({at}){moved}]"

    def places(self, text: _Text, depth: int) -> str:
        """Lines that find the places where there are elements, and the range of these."""
        self.axis = text.loops.vector
        if not self.limits:
            return "range(U(0), width)"
        low, high = f"low{self.number}", f"high{self.number}"
        text.add(depth, f"{low}, {high} = 0, int64(width)")
        guards = []
        for line, bound, scale in zip(self.limits, self.bounds, self.scales, strict=True):
            at, c = line.at, line.vector
            factor = line.factors.get(self.axis)
            if bound and not c:
                text.add(depth, f"if {at} < 0 or {at} >= {bound}:", f"    {high} = 0")
            elif bound:
                ahead, behind = (at, f"{bound} - 1 - {at}") if c > 0 else (f"{bound} - 1 - {at}", at)
                if abs(c) == 1:
                    text.add(depth, f"{low} = max({low}, -({ahead}))", f"{high} = min({high}, {behind} + 1)")
                else:
                    step = factor if c > 0 else f"(-{factor})"
                    text.add(
                        depth, f"{low} = max({low}, -(({ahead}) // {step}))",
                        f"{high} = min({high}, ({behind}) // {step} + 1)",
                    )  # fmt: skip
            if scale and not c:
                text.add(depth, f"if {at} % {scale} != 0:", f"    {high} = 0")
            elif scale:
                guards.append(f"({at} + {factor} * {low}) % {scale} != 0")
        if guards:
            text.add(
                depth, f"stop = min({high}, {low} + {self.period})",
                f"while {low} < stop and ({' or '.join(guards)}):", f"    {low} += 1",
                f"if {low} == stop:", f"    {high} = 0",
            )  # fmt: skip
        text.add(depth, f"if {high} < {low}:", f"    {low}, {high} = 0, 0")
        return f"range(U({low}), U({high}){f', U({self.period})' if self.period else ''})"

    def row(self, text: _Text, depth: int, fill: str = "") -> tuple[str, str]:
        """(the places where there are elements, the element at place x), after the lines that bring them together.

        Elements that lie apart are copied to a row first, so that what is done with them is done in vectors. fill: what
        the row holds where there are none.
        """
        places = self.places(text, depth)
        if not self.scale and self.offset.vector in (0, 1) and not (fill and self.limits):
            return places, self.element()
        row = f"row{self.number}"
        if fill and self.limits:
            text.add(depth, "for x in range(U(0), width):", f"    {row}[x] = {fill}")
        text.add(depth, f"for x in {places}:", f"    {row}[x] = {self.element()}")
        return places, f"{row}[x]"


def _term(kind: str, readings, text: _Text, depth: int) -> None:
    """Lines that bring one term to every place of the row."""
    if kind.startswith("sum"):
        fills = ("nan", "nan", "zero") if len(readings) == 3 else ("zero", "zero")
        elements = [reading.row(text, depth, fill)[1] for reading, fill in zip(readings, fills, strict=False)]
        text.add(depth, "for x in range(U(0), width):")
        step = {
            "sum": "add(total[x], {0})", "sum of fused": "fused({0}, {1}, total[x])",
            "sum of products": "add(total[x], product({0}, {1}))",
            "sum where equal": "add(total[x], {2} if {0} == {1} else zero)",
        }[kind.removesuffix(", in chunks")]  # fmt: skip
        text.add(depth + 1, f"total[x] = {step.format(*elements)}")
        return
    (reading,) = readings
    if kind == "only":
        places, element = reading.places(text, depth), reading.element()
    else:
        places, element = reading.row(text, depth)
    text.add(depth, f"for x in {places}:")
    if kind in EXTREMES:
        term = element if kind == "largest" else f"key({element})"
        text.add(depth + 1, f"term = {term}", "total[x] = term if term > total[x] else total[x]")
    elif kind == "only":
        text.add(depth + 1, f"total[x] = {element}")
    else:
        text.add(depth + 1, f"total[x] = product(total[x], {element})")
    if reading.limits and kind != "product":
        text.add(depth + 1, "met[x] = met[x] + 1 if met[x] < 2 else 2")


@lru_cache(maxsize=512)
def _text_of(kind: str, loops) -> tuple[str, list[int]]:
    """(the kernel, the numbers it takes)"""
    text = _Text(loops)
    readings = [_Reading(text, i, *reading) for i, reading in enumerate(loops.readings)]
    target = _Line(text, loops.target, "t")
    chunk = text.number(loops.chunk) if kind.endswith(", in chunks") else None
    lengths = [text.number(n) for n in loops.lengths]
    lines = [line for reading in readings for line in reading.lines]
    counted = bool(readings[0].limits) and kind in (*EXTREMES, "only")
    text.add(1, "zero = start[0]", "nan = start[0] / start[0]" if len(readings) == 3 else "", "bad = False")
    depth = 1
    for axis in range(loops.vector):
        text.add(depth, f"for i{axis} in range({lengths[axis]}):")
        depth += 1
        for line in (*lines, target):
            line.enter(text, depth, axis, f"i{axis}")
    axis = loops.vector
    text.add(depth, f"for tile in range(0, {lengths[axis]}, {TILE}):")
    depth += 1
    text.add(depth, f"width = U(min({TILE}, {lengths[axis]} - tile))")
    for line in (*lines, target):
        line.enter(text, depth, axis, "tile")
    text.add(depth, "for x in range(U(0), width):", "    total[x] = start[0]")
    if counted:
        text.add(depth, "    met[x] = 0")
    if chunk:
        text.add(depth, "    outer[x] = start[0]")
        text.add(depth, "k = 0")
    inner = depth
    for axis in range(loops.vector + 1, len(lengths)):
        text.add(depth, f"for i{axis} in range({lengths[axis]}):")
        depth += 1
        for line in lines:
            line.enter(text, depth, axis, f"i{axis}")
    _term(kind, readings, text, depth)
    if chunk:
        ended = ("for x in range(U(0), width):", "    outer[x] = join(outer[x], total[x])", "    total[x] = start[0]")
        text.add(depth, "k += 1", f"if k == {chunk}:", *(f"    {line}" for line in ended), "    k = 0")
        text.add(inner, "if k > 0:", *(f"    {line}" for line in ended))
    depth, vector, total = inner, target.vector, "outer[x]" if chunk else "total[x]"
    if kind in EXTREMES and kind != "largest":
        total = f"back(total[x])  # {kind}"
    place = f"U({target.at}) + {'x' if vector == 1 else f'U({target.factors.get(loops.vector, 0)}) * x'}"
    text.add(depth, "for x in range(U(0), width):", f"    out[{place}] = {total}")
    if counted and kind in EXTREMES:
        text.add(depth, "    bad |= met[x] == 0")
    elif counted:
        text.add(depth, f"    marks[{place}] = met[x]")
    return text.whole(
        "kernel", "p, a0, a1, a2, start, out, marks, total, outer, row0, row1, row2, met", "bad"
    ), text.numbers


@lru_cache(maxsize=512)
def _compiled(text: str, operations, dtypes) -> object:
    """The kernel of a text over arrays of these types; operations: ((name, Scalar, its operation), ...)."""
    names = {"U": np.uintp, "int64": np.int64, "__name__": __name__}
    for kind in EXTREMES:
        if f"# {kind}\n" in text:
            width = dtypes[1][0].itemsize * 8
            names["key"], names["back"] = _order_of_floats(kind == "largest float", width)
    names |= {name: compiled(scalar, operation) for name, scalar, operation in operations}
    exec(compile(text, "<contraction>", "exec"), names)
    kernel = njit(nogil=True, error_model="numpy")(names["kernel"])
    kernel._cache = cache_of(text, *(x for operation in operations for x in operation))
    kernel.compile(tuple(types.Array(from_dtype(dtype), 1, "C", readonly=given) for dtype, given in dtypes))
    kernel.disable_compile()
    return kernel


def run(kind: str, loops, arrays, start, operations=()) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """The places of a contraction's result, in C order.

    Parameters
    ----------
    kind : str
        "largest" of unsigned integers, "largest float" or "smallest float" of bits as signed ones; "only", "product",
        "sum", "sum of products", "sum of fused" or "sum where equal": of the third factor where the first two are (sums
        also ", in chunks").
    loops : softnum.tile.loops.Loops
    arrays : one to three ndarrays of one dimension
        What the readings read.
    start : numpy scalar
        What every place starts from, of the result's type.
    operations : tuple of (name, Scalar, operation)
        What the kind calls ``add``, ``product``, ``fused`` and ``join``.

    Returns
    -------
    (ndarray, ndarray or None, bool)
        The result; of "only" how many terms each place has (2: two or more), None where all have all of them; and of
        extremes whether a place has none.
    """
    text, numbers = _text_of(kind, loops)
    dtype = np.dtype(type(start))
    size = loops.size
    marks = np.empty(size if " marks[" in text else 0, np.uint8)
    given = np.array(numbers, np.int64), *(*arrays, *[arrays[0][:0]] * 2)[:3], np.array([start], dtype)
    made = np.empty(size, dtype), marks, *(np.empty(TILE, dtype) for _ in range(5)), np.empty(TILE, np.uint8)
    dtypes = (*((x.dtype, True) for x in given), *((x.dtype, False) for x in made))
    bad = _compiled(text, operations, dtypes)(*given, *made)
    return made[0], marks if marks.size else None, bad
