"""A CustomMadUnit by its definition: the user's function called step by step, in Python. It judges compiled units."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np

from softnum.arrays.conversion import decode, encode
from softnum.formats.custom.primitives import place_of, shown_code
from softnum.formats.facts import fits
from softnum.mac.custom import CustomMadUnit
from softnum.mac.family import register
from softnum.mac.mad import MadUnit
from softnum.mac.order import reduction_order
from softnum.mac.products.mad import adder
from softnum.runtime import _core, gateway

__all__ = ["DefinitionCustom", "numbers_of", "try_out", "zero_of"]


def numbers_of(codes, source, fmt, carrier: str) -> np.ndarray:
    """Codes of the format source as what a user's function takes: floats of the carrier, or codes of fmt (int64)."""
    codes = codes.astype(source.storage_dtype)
    if carrier != "codes":
        return decode(codes, source, np.dtype(carrier))
    return (codes if source == fmt else encode(decode(codes, source), fmt)).astype(np.int64)


def zero_of(unit):
    """+0 of the accumulator, as a number of the carrier."""
    if unit.carrier == "codes":
        return np.int64(encode(np.zeros(1), unit.accumulator)[0])
    return np.dtype(unit.carrier).type(0)


class DefinitionCustom:
    """The engine on 64-bit codes; ``run`` raises where a step has no result."""

    def __init__(self, unit, sources) -> None:
        self.unit, self.sources = unit, sources
        self.adder = gateway.scalar(
            unit.accumulator, rounding=unit.rounding, overflow=unit.overflow, carrier=unit.carrier
        )
        self.rounder = gateway.scalar(unit.accumulator, carrier=unit.carrier)  # in which every value is itself
        self.function = getattr(unit.function, "py_func", unit.function)
        self.zero = zero_of(unit)

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None) -> int:
        """out[m0:m1, n0:n1], as every engine (`softnum.mac.products.engines`); ValueError of counts (`tallies`)."""
        unit, (row, column) = self.unit, first
        if tallies is not None:
            raise ValueError(
                f"return_stats=True is not defined for {unit.name}: what a user's function rounds is its own (leave it "
                "out; unit.trace shows the roundings of one sum)"
            )
        x, y = (
            numbers_of(codes, source, fmt, unit.carrier)
            for codes, source, fmt in zip((a, b), self.sources, unit.operand, strict=True)
        )
        z = None if c is None else numbers_of(c, unit.accumulator, unit.accumulator, unit.carrier)
        for m in range(m0, m1):
            for n in range(n0, n1):
                i, j = m - row, n - column
                given = None if words is None else words[i, j]
                word = self.words(given, keys, batch, m, n) if unit.stochastic else None
                start = None if z is None else self._number(z[i, j])
                total = self.dot(x[i], y[:, j], start, word, f" of output ({m}, {n})")
                out[i, j] = total if unit.carrier == "codes" else encode(np.array(total), unit.accumulator)
        return 0

    @staticmethod
    def words(given, keys, batch, m, n):
        """The random word of a step: those given, else of the key."""
        if given is not None:
            return lambda k: int(given[k, 1])
        return lambda k: _core.philox((k >> 2, n, m, batch), keys[:2])[k & 3]

    def _number(self, x):
        return int(x) if self.unit.carrier == "codes" else x

    def dot(self, a, b, c=None, word=None, where=""):
        """One dot product of numbers of the carrier."""
        unit, k = self.unit, len(a)
        total = self._number(self.zero if c is None else c)
        if unit.chunk is None and unit.lanes == 1:
            return self._lane(total, a, b, range(k), word, where)
        length = unit.chunk or k
        for start in range(0, k, length or 1):
            stop = min(start + length, k)
            lanes = range(start, start + unit.lanes)
            sums = [
                self._lane(self._number(self.zero), a, b, range(lane, stop, unit.lanes), word, where) for lane in lanes
            ]
            names = [f"l{lane}" for lane in range(unit.lanes)]
            if unit.chunk is None and c is not None:
                sums.insert(0, c)
                names.insert(0, "c")
            for i, j in reduction_order(len(sums), unit.reduction):
                sums[i] = self._add(sums[i], sums[j], where, "lanes", names[i], names[j])
                names[i] = f"{names[i].split('..')[0]}..{names[j].split('..')[-1]}"
            total = sums[0] if unit.chunk is None else self._add(total, sums[0], where, "chunks", "acc", "sum")
        return total

    def _lane(self, acc, a, b, steps, word, where):
        for k in steps:
            acc = self.step(acc, self._number(a[k]), self._number(b[k]), None if word is None else word(k), k, where)
        return acc

    def step(self, acc, a, b, word, k, where=""):
        """The accumulator after one product."""
        numbers = (acc, a, b) if self.unit.adds else (a, b)
        told = f"{self.unit.name}({', '.join(map(str, numbers))}) at k = {k}{where} ({place_of(self.unit.function)})"
        try:
            with np.errstate(all="ignore"):
                result = self.function(*numbers, *(() if word is None else (word,)))
        except Exception as error:  # whatever users raise, with its place
            raise ValueError(f"{told} raises {type(error).__name__}: {error}") from error
        result = self._checked(result, told)
        return result if self.unit.adds else self._add(acc, result, f", adding {told}", "sum", "acc", "p")

    def _checked(self, result, told):
        """The function's result as a number of the carrier; of the accumulator's format if it is one."""
        fmt, carrier = self.unit.accumulator, self.unit.carrier
        if carrier == "codes":
            if isinstance(result, bool) or not isinstance(result, Integral):
                raise TypeError(f"{told} is {result!r}, and no integer: a code of {fmt}")
            if not 0 <= result < 1 << fmt.bits:
                raise ValueError(
                    f"{told} is {shown_code(int(result))}, which is no code of {fmt}: 0 to {(1 << fmt.bits) - 1}"
                )
            return int(result)
        if isinstance(result, (bool, np.bool_)) or not isinstance(result, Real):
            raise TypeError(f"{told} is {result!r}, and no number")
        kind = np.dtype(carrier).type
        with np.errstate(over="ignore"):
            value = kind(result)
        if float(value) != result and result == result:
            raise ValueError(f"{told} is {result!r}, which {carrier} does not hold")
        if not self.unit.adds:
            return value
        if math.isnan(value):
            if not fmt.has_nan:
                raise ValueError(f"{told} is NaN, and {fmt} has no NaN")
            return kind(np.nan)
        nearest = self.rounder.round(value)
        if nearest != value:
            raise ValueError(
                f"{told} is {value}, which is no value of {fmt} (nearest: {nearest}); round it in the function: "
                f"kernels.scalar({str(fmt)!r}).round"
            )
        return nearest

    def _add(self, x, y, where, name, left, right):
        """x + y by the accumulator's own addition; name, left and right: which addition it is, to who looks on."""
        try:
            return self.adder.add(x, y)
        except ValueError as error:
            raise ValueError(f"{self.unit.name}: {x} + {y}{where}: {error}") from None


_TRIED = (12, 3, 20)  # M, K, N of the products that a compiled unit is tried with
_FINITE = (8, 16)  # the rows and columns of finite numbers alone


def try_out(unit, run) -> None:
    """ValueError unless a compiled unit does on a sample of operands what the Python function does.

    run(a, b, c, out, words, keys, batch, m0, m1, n0, n1) is that of an engine on codes of the operands. An output that
    the Python function has no result for must have none compiled; it is no error, for the operands are not the user's.
    """
    m, k, n = _TRIED
    rng = np.random.Generator(np.random.PCG64(20190415))
    a, b, c = (
        _sample(rng, fmt, shape)
        for fmt, shape in zip((*unit.operand, unit.accumulator), ((m, k), (k, n), (m, n)), strict=True)
    )
    for fmt, part in ((unit.operand[0], a[_FINITE[0] :]), (unit.operand[1], b[:, _FINITE[1] :])):
        _put_specials(rng, fmt, part)
    want, got = (_tried(engine, (a, b, c)) for engine in (DefinitionCustom(unit, unit.operand).run, run))
    me = f"{unit.name} ({place_of(unit.function)})"
    if all(isinstance(x, ValueError) for x in want.flat):
        raise ValueError(
            f"{me} fails on all operands of the trial that compares it with its compiled form; the first error: "
            f"{want[0, 0]}"
        )
    for i, j in np.ndindex(m, n):
        if want[i, j] == got[i, j] or (isinstance(want[i, j], ValueError) and isinstance(got[i, j], ValueError)):
            continue
        shown = [numbers_of(x, f, f, unit.carrier) for x, f in ((a[i], unit.operand[0]), (b[:, j], unit.operand[1]))]
        start, *results = (
            str(x) if isinstance(x, ValueError) else numbers_of(np.array(x), *[unit.accumulator] * 2, unit.carrier)
            for x in (c[i, j], got[i, j], want[i, j])
        )
        raise ValueError(
            f"{me} is not the same compiled and in Python: in a trial, of {shown[0].tolist()} and {shown[1].tolist()}, "
            f"from {start}, the one makes {results[0]}, the other {results[1]}. In Numba a constant is a float64 or an "
            "int64 (write numpy.float32(0.5)), integers wrap, int() of an infinity or a NaN is undefined, and names "
            "outside the function have the values of its compilation"
        )


def _tried(run, operands) -> np.ndarray:
    """The outputs of an engine, as objects: codes, or the errors of those that have none."""
    m, _, n = _TRIED
    out, each = np.empty((m, n), np.uint64), np.empty((m, n), object)
    keys = (2019, 415, 0, 0)
    try:
        run(*operands, out, None, keys, 0, 0, m, 0, n)
    except ValueError:
        for i, j in np.ndindex(m, n):
            try:
                run(*operands, out, None, keys, 0, i, i + 1, j, j + 1)
                each[i, j] = int(out[i, j])
            except ValueError as error:
                each[i, j] = error
        return each
    return out.astype(object)


def _put_specials(rng, fmt, codes) -> None:
    """Infinities and NaN in place of some codes, where the format has them."""
    values = [np.inf, -np.inf] if fmt.infinities else []
    values += [np.nan] if fmt.has_nan else []
    if values:
        special = rng.choice(encode(np.array(values), fmt).astype(np.uint64), codes.shape)
        codes[...] = np.where(rng.integers(0, 3, codes.shape) == 0, special, codes)


def _sample(rng, fmt, shape) -> np.ndarray:
    """Codes of finite values, small ones for the most part."""
    dtype = next((d for d in (np.float32, np.float64) if fits(fmt, d)), None)
    codes = rng.integers(0, 2**fmt.bits, shape, np.uint64, endpoint=False) if fmt.bits < 64 else None
    if codes is None or dtype is None:
        return np.zeros(shape, np.uint64) if codes is None else codes
    near = encode(np.clip(rng.standard_normal(shape), float(fmt.min), float(fmt.max)), fmt).astype(np.uint64)
    finite = np.isfinite(decode(codes.astype(fmt.storage_dtype), fmt, dtype))
    return np.where(finite & (rng.integers(0, 4, shape) == 0), codes, near)


def _adder(unit: CustomMadUnit, fmt):
    if unit.adds:
        raise TypeError(f"sum: {unit.name} adds and multiplies in one, and has no adder of its own")
    order = {name: getattr(unit, name) for name in ("rounding", "overflow", "lanes", "chunk", "reduction")}
    return adder(MadUnit(unit.accumulator, operand=unit.operand, **order), fmt)


def _definition(unit: CustomMadUnit):
    if unit.on_codes:
        return gateway.custom_engine(unit) or DefinitionCustom(unit, unit.operand)
    return DefinitionCustom(unit, tuple(f.codec.core_format(f) for f in unit.operand))


def _fast(unit: CustomMadUnit):
    return None if unit.on_codes else gateway.custom_engine(unit)


register(CustomMadUnit, adder=_adder, definition=_definition, fast=_fast)
