"""probe: how each result of an operation came to be, bit for bit, as whoever debugs a rounder wants to see it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays import conversion
from softnum.arrays.container import Array
from softnum.arrays.ufuncs import check_flags
from softnum.formats.aliases import near, operation_alias
from softnum.formats.annotations import FormatLike
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES, STOCHASTIC_MODES, Flags
from softnum.ops import arithmetic, integers
from softnum.runtime import gateway
from softnum.runtime.columns import text_table
from softnum.runtime.plain import plain
from softnum.runtime.threads import for_ranges

__all__ = ["Probe", "probe"]

#: What the exact result is, by the numbers in `Probe.kind`.
KINDS = ("zero", "finite", "infinite", "nan")
_FINITE = 1
_ROWS = 24  # of a printed probe
_GRAIN = 1 << 12  # elements for each thread
_NOT_ROUNDED = ("next_up", "next_down", "negate", "absolute", "copysign", "compare", "total_order", "classify")
_FLOATS = {np.dtype(np.float16): "binary16", np.dtype(np.float32): "binary32", np.dtype(np.float64): "binary64"}


@dataclass(frozen=True, eq=False, repr=False)
class Probe:
    """How results were rounded: an array for each signal of a rounder, all of the operation's shape.

    The exact result is ``(-1)**sign * (significand + fraction) * 2**last_place`` with 0 <= fraction < 1, the fraction's
    first bits being `guard` and `round`; its significand is rounded up or not, and the result is then fitted to the
    format's range. Printing a probe gives a table; ``probe[i]`` selects elements.

    Attributes
    ----------
    operation, format, rounding, overflow
        What was probed: the operation's name, the format of the results, the mode, the overflow rule.
    result, flags : ndarray of codes, of uint8
        What the operation returns.
    kind : ndarray of uint8
        What the exact result is: 0 zero, 1 finite, 2 infinite, 3 NaN, or no number (``softnum.inspect.probes.KINDS``).
        All but 1 are `special`: nothing is rounded, and all that follows but `sign` (0 of a NaN) is 0.
    sign : ndarray of uint8
        1 if the exact result is negative.
    exponent : ndarray of int32
        floor(log2(abs(exact result))); within 2**27, where an elementary function goes beyond.
    last_place : ndarray of int32
        The exponent of the last place kept: that of the result's binade, of the subnormals below the smallest normal;
        above the largest value, where the grid goes on, that of the exact result's own binade. In fixed point minus the
        fraction bits.
    significand : ndarray of uint64
        The bits kept, the leading one included, in units of the last place, before the rounding. In fixed point beyond
        2**64 units: modulo 2**64 under "wrap"; else 0, and so are the next five, as no digit decides anything there.
    guard, round, sticky : ndarray of uint8
        The first and the second bit that are cut off, and whether any other of them is 1.
    discarded, random : ndarray of uint32
        In stochastic modes, of r bits each: the first r bits that are cut off, and the random bits that are added to
        them (in "stochastic" the carry rounds up). Else 0.
    rounds_up : ndarray of bool
        Whether the magnitude is rounded up, to ``significand + 1``.
    gap : ndarray of bool
        Whether the exact result lies below the smallest normal of a format in which nothing but zero does
        (`lowest_binade` "normal" or "zero"; not even zero in e8m0): then the significand is 0, and guard, round and
        sticky are bits of the fraction that the result is of the smallest value, to which it is rounded up.
    overflowed, flushed : ndarray of bool
        Whether the rounded result lies beyond the range, so that the overflow rule made what is delivered (also in
        P3109's formats, which raise no flag); whether ``flush_results`` put a zero in its place. For a flushed result,
        its rounding with unbounded exponent is shown.

    Examples
    --------
    >>> import softnum as sn
    >>> p = sn.probe("multiply", sn.array([1.25, 3.5, 57344.0], "e5m2"), sn.array([1.75, 1.75, 1.25], "e5m2"))
    >>> p
    multiply -> e5m2, nearest_even
    #  sign  significand  GRS  rounds    result      flags
    0  +     1.00 * 2^1   011  down      0x40 = 2    inexact
    1  +     1.10 * 2^2   001  down      0x46 = 6    inexact
    2  +     1.00 * 2^16  011  overflow  0x7c = inf  inexact|overflow
    >>> p.significand, p.last_place, p.guard
    (array([4, 6, 4], dtype=uint64), array([-1,  0, 14], dtype=int32), array([0, 0, 0], dtype=uint8))
    >>> p[1].to_dict()["significand"]
    6
    """

    operation: str
    format: object
    rounding: str
    overflow: str
    result: np.ndarray
    flags: np.ndarray
    kind: np.ndarray
    sign: np.ndarray
    exponent: np.ndarray
    last_place: np.ndarray
    significand: np.ndarray
    guard: np.ndarray
    round: np.ndarray
    sticky: np.ndarray
    discarded: np.ndarray
    random: np.ndarray
    rounds_up: np.ndarray
    gap: np.ndarray
    overflowed: np.ndarray
    flushed: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every array."""
        return self.result.shape

    @property
    def special(self) -> np.ndarray:
        """Where nothing is rounded: the exact result is zero, infinite, NaN or no number."""
        return self.kind != _FINITE

    @property
    def decision(self) -> np.ndarray:
        """The decision as text: "special", "exact", "down", "up", "flush", "overflow" or "wrap"."""
        inexact = (self.guard | self.round | self.sticky) != 0
        beyond = "wrap" if self.overflow == "wrap" else "overflow"
        conditions = [self.special, self.flushed, self.overflowed, self.rounds_up, inexact]
        return np.select(conditions, ["special", "flush", beyond, "up", "down"], "exact")

    def __len__(self) -> int:
        return len(self.result)

    def __getitem__(self, index: Any) -> Probe:
        return Probe(*(v[index] if isinstance(v, (np.ndarray, np.generic)) else v for v in self._values()))

    def _values(self) -> list:
        return [getattr(self, f.name) for f in fields(self)]

    @plain
    def to_dict(self) -> dict[str, object]:
        """The arrays by name, those of one element as Python's numbers; and what was probed."""
        named = {f.name: value for f, value in zip(fields(self), self._values(), strict=True)}
        named["format"] = str(self.format)
        return {k: v.item() if isinstance(v, (np.ndarray, np.generic)) and v.ndim == 0 else v for k, v in named.items()}

    @plain
    def __repr__(self) -> str:
        title = f"{self.operation} -> {self.format}, {self.rounding}"
        head = ["#", "sign", "significand", "GRS", "rounds", "result", "flags"]
        stochastic = self.rounding.startswith("stochastic")
        if stochastic:
            head[4:4] = ["cut", "R"]
        indices = list(np.ndindex(self.shape))
        rows = [_row(self[i], ",".join(map(str, i)), stochastic) for i in indices[:_ROWS]]
        left = len(indices) - len(rows)
        return "\n".join([title, text_table([head, *rows]), *([f"... and {left} more"] if left else [])])


def _digits(p: Probe) -> str:
    """The significand in binary, with its point, and the power of two that its digit before the point stands for."""
    return p.format.significand_text(int(p.significand), int(p.last_place), bool(p.gap))


def _row(p: Probe, index: str, stochastic: bool) -> list[str]:
    from softnum.inspect.steps.step import number, number_text
    from softnum.reference.values import decode

    exact, fmt = not p.special, p.format
    cells = [index, "-" if p.sign else "+", "", "", str(p.decision), "", ""]
    if exact:
        cells[2:4] = [_digits(p), f"{p.guard}{p.round}{p.sticky}"]
    else:
        cells[2] = KINDS[int(p.kind)]
    if stochastic:
        cells[4:4] = [f"{p.discarded:#x}", f"{p.random:#x}"] if exact else ["", ""]
    code = int(p.result)
    cells[-2] = f"0x{code:0{-(-fmt.bits // 4)}x} = {number_text(number(decode(code, fmt)))}"
    cells[-1] = str(Flags(int(p.flags))) if p.flags else ""
    return cells


def _named(table: dict[str, int], number: int) -> str:
    return next(name for name, value in table.items() if value == number)


def _observe(shown, name, codes, formats, out_fmt, env, words, invalid) -> Probe:
    """A Probe of the operation `name`, as which `shown` is known to users; the rest as `operation.apply` gives it."""
    from softnum.inspect import _probe

    shape = np.broadcast_shapes(*(c.shape for c in codes))
    size = int(np.prod(shape, dtype=np.int64))
    operands = np.empty((len(codes), size), np.uint64)
    for row, c in zip(operands, codes, strict=True):
        row.reshape(shape)[...] = c
    stochastic = env[0] in STOCHASTIC_MODES
    bits = np.ascontiguousarray(np.broadcast_to(words, shape)).reshape(size) if stochastic else None
    told = np.empty(size, _probe.RECORD)

    def work(start: int, stop: int) -> None:
        _probe.probe(name, formats, out_fmt, env, operands, bits, told, start, stop)

    for_ranges(size, work, None, _GRAIN)
    told = told.reshape(shape)
    field = lambda key: np.ascontiguousarray(told[key]).reshape(shape)  # noqa: E731
    finite = told["kind"] == _FINITE
    flags = check_flags(told["flags"].astype(np.uint8), out_fmt, shown, invalid)
    random = np.zeros(shape, np.uint32)
    if stochastic:
        random[finite] = (bits.reshape(shape) & np.uint32((1 << env[3]) - 1))[finite]
    return Probe(
        shown, out_fmt, _named(ROUNDING_MODES, env[0]), _named(OVERFLOW_RULES, env[1]),
        told["code"].astype(out_fmt.storage_dtype), flags,
        np.minimum(field("kind"), len(KINDS) - 1), field("sign"), field("exponent"), field("last"),
        field("significand"), field("guard"), field("round"), field("sticky"), field("discarded"), random,
        field("up") != 0, field("gap") != 0, (field("events") & _probe.OVERFLOWED) != 0,
        (field("events") & _probe.FLUSHED) != 0,
    )  # fmt: skip


def _encode(x, fmt, **options) -> Probe:
    """What `softnum.encode` and `softnum.quantize` do to floats and integers: a conversion from their type."""
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        return integers.from_integer(x, fmt, **options)
    if x.dtype not in _FLOATS:
        raise TypeError(f"probe: to encode, x must be of float16, float32, float64 or integers, got {x.dtype}")
    x = x.astype(x.dtype.newbyteorder("="))
    return arithmetic.convert(x.view(f"u{x.dtype.itemsize}"), _FLOATS[x.dtype.newbyteorder("=")], fmt, **options)


_OTHERS = {
    "encode": (conversion.encode, _encode), "quantize": (conversion.quantize, _encode),
    "from_integer": (integers.from_integer, integers.from_integer), "shift": (integers.shift, integers.shift),
}  # fmt: skip


def _known(operation) -> tuple:
    """(name, what computes it) of an operation, given by its name or as the function."""
    table = {name: (function, function) for name, (function, _) in arithmetic.OPERATIONS.items()} | _OTHERS
    wanted = operation_alias(operation) if isinstance(operation, str) else None
    for name, (function, compute) in table.items():
        if operation is function or wanted == name:
            if name in _NOT_ROUNDED:
                raise ValueError(f"probe: {name} rounds nothing, so there is nothing to probe")
            return name, compute
    if not isinstance(operation, str):
        raise TypeError(f"probe: the operation must be one of softnum's or its name, got {operation!r}")
    rounding = [name for name in table if name not in _NOT_ROUNDED]
    close = near(operation, rounding)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"probe: unknown operation {operation!r}{hint} (known: {', '.join(rounding)})")


@plain
def probe(operation: str, *operands: ArrayLike | FormatLike, **options: Any) -> Probe:
    """Show how each result of an operation was rounded: exact sign and exponent, kept significand, guard, round and
    sticky bits, ...

    The arithmetic core reports it where it rounds. For an operation that rounds twice internally, the rounding that
    determines the result is shown; `softnum.ops.round_to_integral` shows the rounding to an integer, whose last place
    is 1, and of its delivery to the format code, flags and overflow.

    Parameters
    ----------
    operation : str or function
        ``"multiply"``, another name of it ("mul") or ``softnum.multiply``: any operation of `softnum` on codes or
        Arrays that rounds, elementary functions included; `softnum.encode` and `softnum.quantize` of float
        arrays and integers.
    *operands
        As the operation takes them.
    **options
        fmt, out_fmt, rounding, key and so on, as the operation takes them, without return_flags.

    Returns
    -------
    Probe
        Its arrays have the operands' broadcast shape; ``.result`` and ``.flags`` are the operation's own.

    Raises
    ------
    ValueError
        If there is no such operation, or it rounds nothing; and as the operation does.
    TypeError
        If operation is neither a name nor a function, or return_flags is given.

    Notes
    -----
    Of elementary functions enough bits are known to tell guard and round, sticky being 1 for what is irrational; in
    stochastic modes also the r bits that meet the random ones. Of a result beyond 2**(2**27), as of ``exp(1e30)``, or
    below 2**-(2**27), no digits are reported.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.probe("add", [0x3c, 0x01, 0x7b], [0x29, 0x81, 0x7b], fmt="e5m2", rounding="up")
    add -> e5m2, up
    #  sign  significand  GRS  rounds    result       flags
    0  +     1.00 * 2^0   001  up        0x3d = 1.25  inexact
    1  +     zero              special   0x00 = 0
    2  +     1.11 * 2^16  000  overflow  0x7c = inf   inexact|overflow
    >>> sn.probe(sn.exp, sn.array(1.0, "binary16"), rounding="stochastic", stochastic_bits=4, random_bits=9)
    exp -> binary16, stochastic
    #  sign  significand         GRS  cut  R    rounds  result            flags
       +     1.0101101111 * 2^1  111  0xc  0x9  up      0x4170 = 2.71875  inexact
    >>> sn.probe("encode", [0.3, -9.0], "q4.4")
    encode -> q4.4, nearest_even
    #  sign  significand  GRS  rounds    result         flags
    0  +     000.0100     111  up        0x05 = 0.3125  inexact
    1  -     1001.0000    000  overflow  0x80 = -8      overflow
    """
    name, function = _known(operation)
    if "return_flags" in options:
        raise TypeError("probe: the flags are always reported, as .flags; leave return_flags out")
    if name in _OTHERS and any(isinstance(x, Array) for x in operands) and name != "shift":
        raise TypeError(f"probe: {name} takes values; convert an Array with probe('convert', a, to_fmt=...)")
    if any(gateway.is_device_array(x) for x in operands):
        gateway.refuse_device("probe")
    told = function(*operands, compute=partial(_observe, name), **options)
    if not isinstance(told, Probe):  # the core did not round it
        raise ValueError(
            f"probe: {name} rounds to a custom format by that format's own values or functions, of which no bits are "
            "told; probe it with out_fmt= a built-in format"
        )
    return told
