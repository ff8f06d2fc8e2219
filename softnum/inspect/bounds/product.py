"""`bound`: how far a product can be off under a unit, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite, log, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import float_array
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode
from softnum.arrays.environment import seed_and_stream
from softnum.formats.annotations import Key
from softnum.formats.facts import facts
from softnum.inspect.bounds.growth import NOTHING, Growth, chances_of, growth_of, local, upward
from softnum.inspect.bounds.running import running_of
from softnum.inspect.trace import codes_of
from softnum.mac.family import family_of
from softnum.mac.products.engines import coded
from softnum.mac.products.matrices import matmul
from softnum.mac.products.operands import check_key, checked_operand
from softnum.reference import random_words_matmul
from softnum.reference.rounding import floor_log2
from softnum.runtime import gateway

if TYPE_CHECKING:
    from softnum.mac.mad import Unit

__all__ = ["ErrorBound", "bound"]

_LOWEST = -(1 << 40)  # below all binades


@dataclass(frozen=True, eq=False)
class ErrorBound:
    """Bounds of the error of each result of a product, and the error itself; made by `softnum.bound`.

    Attributes
    ----------
    result : ndarray or Array
        What `softnum.matmul` returns.
    a_priori : ndarray of float64
        A bound of the error that depends only on the unit, K and the magnitudes of the operands.
    running : ndarray of float64, or None
        A bound from the results of the steps; None if it was not requested.
    error : ndarray of float64
        The distance of the result from the exact sum.
    ulps : ndarray of float64
        The same in units in the last place of the exact sum, as `softnum.ops.ulp_error` has them.
    probable : ndarray of float64, or None
        A bound that is exceeded with at most the probability `failure`, if that was given.

    All are rounded up and have the product's shape. A bound is infinite where an overflow cannot be excluded (a priori)
    or where one happened (running); all are NaN where an operand is infinite or NaN, for there is no exact number then.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x = np.array([1, 0.25, 0.25], np.float32)
    >>> found = sn.bound(sn.MadUnit("e5m1", operand="e5m2", rounding="toward_zero"), x, np.ones(3, np.float32))
    >>> found.result.item(), found.error.item(), found.running.item(), found.a_priori.item() < 3.6
    (1.0, 0.5, 1.0, True)
    """

    result: np.ndarray | Array
    a_priori: np.ndarray
    running: np.ndarray | None
    error: np.ndarray
    ulps: np.ndarray
    probable: np.ndarray | None = None
    failure: float | None = None

    def __str__(self) -> str:
        shown = ["error", "ulps", "running", "a_priori", "probable"]
        arrays = {name: getattr(self, name) for name in shown if getattr(self, name) is not None}
        most = {name: float(np.max(x)) if np.size(x) else 0.0 for name, x in arrays.items()}
        return "largest " + ", ".join(f"{name} {x:.3g}" for name, x in most.items())


def bound(
    unit: Unit,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    running: bool = True,
    failure: float | None = None,
) -> ErrorBound:
    """Proven bounds of the error of each element of ``a @ b`` under a unit, and that error.

    Parameters
    ----------
    unit : Unit
    a, b : arrays of shapes (M, K) and (K, N), or vectors of length K
        As `softnum.matmul` takes them: values of the unit's operand formats, or BlockArrays blocked along K.
    c : optional, shape broadcast to (M, N)
        Where the sums start.
    key, random_bits : optional
        As in `softnum.matmul`, of a unit that rounds stochastically.
    running : bool
        Whether to compute the running bound, which executes every step in Python, at about 0.1 ms a step.
    failure : float, optional
        For a MadUnit or an ExactDotUnit that rounds stochastically: compute also the bound that is exceeded with at
        most this probability, between 0 and 1, over the random words.

    Returns
    -------
    ErrorBound
        ``.a_priori``, ``.running``, ``.error`` and ``.ulps``, float64 rounded up.

    Raises
    ------
    TypeError
        If no bounds are known for the unit (user-defined functions, custom formats as accumulators).
    ValueError
        As `softnum.matmul`; if an operand has other dimensions; if failure is given for a deterministic unit.

    Notes
    -----
    A priori: a sum of computed terms that are each off by at most ``g S_i + h_i`` and rounded with
    ``abs(error) <= u abs(x) + e`` is off by at most ``((1 + max g)(1 + u) - 1) S + (1 + u) sum h_i + e``, S the sum of
    all magnitudes; from the leaves on this gives ``((1 + u)**n - 1) (abs(c) + abs(a) @ abs(b))`` for n roundings in a
    row (Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 3.1 and 4.2; of chunks and lanes:
    Blanchard, Higham, Mary 2020), and the terms of underflow. u is half the distance of 1 and the next value to
    nearest, else (directed, stochastic) the whole. Alignment of fused units adds ``(terms + 1) 2**-F`` to u (Fasi,
    Higham, Mikaitis, Pranesh 2021). Running: every rounding error goes into the result as it is, and is at most half a
    unit, or a unit, in the last place of what the step returned (Higham, section 3.3). With a probability: the errors
    of stochastic roundings are differences of a martingale (Connolly, Higham, Mary 2021; Azuma's and Hoeffding's
    inequality). The page "Error bounds" derives each formula.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> rng = np.random.default_rng(1)
    >>> a = sn.quantize(rng.standard_normal((2, 64)), "e5m2")
    >>> b = sn.bound(sn.MadUnit("e6m9", operand="e5m2", chunk=16), a, a.T)
    >>> print(b)
    largest error 0.0788, ulps 2.75, running 0.194, a_priori 1.14
    >>> bool(np.all((b.error <= b.running) & (b.running <= b.a_priori)))
    True
    """
    if any(gateway.is_device_array(x) for x in (a, b, c)):
        raise TypeError("bound: takes arrays on the host; copy CUDA arrays there")
    blocks = family_of(unit).of_blocks
    growth_of(unit, 1, NOTHING, None)  # TypeError of a unit that nothing is known of
    if failure is not None and not 0 < failure < 1:
        raise ValueError(f"bound: failure must lie between 0 and 1, got {failure!r}")
    left, right = (_operand(unit, x, which, blocks) for which, x in enumerate((a, b)))
    vectors = left.flat and right.flat
    if left.values.shape[1] != right.values.shape[0]:
        raise ValueError(f"bound: a sums over {left.values.shape[1]} products, b over {right.values.shape[0]}")
    shape = left.values.shape[0], right.values.shape[1]
    start, starts = _start(unit, c, shape)
    result = matmul(left.given, right.given, unit, start, key=key, random_bits=random_bits)
    problem = (_Blocks if blocks else _Plain)(unit, left, right, starts)
    words = _words(unit, key, random_bits)
    start_codes = None if start is None else _shaped(codes_of(_flat(start), unit.c_format), shape)
    found = {name: np.full(shape, nan) for name in ("a_priori", "error", "ulps")}
    if running:
        found["running"] = np.full(shape, nan)
    if failure is not None:
        found["probable"] = np.full(shape, nan)
    got = decode(result.codes, unit.result, object) if isinstance(result, Array) else result.astype(object)
    for m, n in np.ndindex(shape):
        if not (left.finite[m] and right.finite[n] and (starts is None or _finite(starts[m, n]))):
            continue
        at = m, n
        found["a_priori"][at] = most = problem.a_priori(at)
        error = problem.error(at, got[at])
        found["error"][at], found["ulps"][at] = upward(error), upward(_in_ulps(error, problem.exact[at], unit.result))
        if failure is not None:
            found["probable"][at] = min(most, problem.probable(at, failure))
        if running:
            code = None if start_codes is None else int(start_codes[at])
            found["running"][at] = upward(running_of(unit, left.line(m), right.line(n), code, words(m, n)))
    if vectors:
        found = {name: x.reshape(()) for name, x in found.items()}
        result = result.reshape(())
    return ErrorBound(result, found["a_priori"], found.get("running"), found["error"], found["ulps"],
                      found.get("probable"), failure)  # fmt: skip


def _finite(x) -> bool:
    return not isinstance(x, (float, np.floating)) or isfinite(x)


def _in_ulps(error: Fraction | float, exact: Fraction, fmt) -> Fraction | float:
    if error == inf:
        return inf
    binade = floor_log2(abs(exact.numerator), exact.denominator) if exact else _LOWEST
    return error / Fraction(2) ** int(fmt.last_place(binade))


def _flat(x):
    return x.reshape(-1)


def _shaped(numbers: list, shape) -> np.ndarray:
    """Python's numbers as an array of objects."""
    out = np.empty(len(numbers), object)
    out[:] = numbers
    return out.reshape(shape)


# -- operands ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Operand:
    """One operand as a matrix: as `matmul` takes it, its values (of elements), those of its scales, what is finite."""

    given: object
    values: np.ndarray
    codes: object  # of each row of a, or column of b: what steps are made from
    finite: np.ndarray
    flat: bool
    scales: np.ndarray | None = None
    tensor: Fraction = Fraction(1)

    def line(self, i: int):
        return self.codes[i]


def _operand(unit, x, which: int, blocks: bool) -> _Operand:
    """a (0) or b (1), whose sums go along axis 1 - which of the matrix."""
    fmt, what = unit.operand[which], "ab"[which]
    if not blocks:
        x = x if isinstance(x, Array) else float_array(x, "bound")
    elif not isinstance(x, BlockArray):
        raise TypeError(f"bound: {what} must be a BlockArray under a BlockDotUnit: softnum.array(x, {str(fmt)!r})")
    if x.ndim not in (1, 2):
        raise ValueError(f"bound: takes matrices or vectors, got {what} of shape {x.shape}")
    flat = x.ndim == 1
    if flat and blocks:
        x = BlockArray(*(v[None] if which == 0 else v[:, None] for v in (x.codes, x.scales)), x.format, -1 - which,
                       x.tensor_scale)  # fmt: skip
    elif flat:
        x = x[None, :] if which == 0 else x[:, None]
    if blocks:
        return _block_operand(fmt, x, which, flat)
    x = checked_operand(x, fmt, what, "bound", on_codes=unit.on_codes)
    values = decode(x.codes, x.format, object) if isinstance(x, Array) else x.astype(object)
    lines = x if which == 0 else x.T
    codes = _shaped(codes_of(_flat(lines), coded(fmt, unit)), lines.shape).tolist()
    return _Operand(x, values, codes, _finite_lines(values, which), flat)


def _block_operand(fmt, x: BlockArray, which: int, flat: bool) -> _Operand:
    values, scales = (decode(codes, of, object) for codes, of in ((x.codes, fmt.element), (x.scales, fmt.scale)))
    finite = _finite_lines(values, which) & _finite_lines(scales, which)
    lines = [x[i] if which == 0 else x[:, i] for i in range(x.shape[which])]
    tensor = Fraction(1) if x.tensor_scale is None else Fraction(float(x.tensor_scale))
    return _Operand(x, values, lines, finite, flat, scales, tensor)


def _finite_lines(values: np.ndarray, which: int) -> np.ndarray:
    good = np.array([_finite(v) for v in values.flat], bool).reshape(values.shape)
    return good.all(1 - which)


def _start(unit, c, shape):
    """C as `matmul` takes it, and its values; None for both where there is none."""
    if c is None:
        return None, None
    c = c if isinstance(c, Array) else float_array(c, "bound")
    c = checked_operand(np.broadcast_to(c, shape) if not isinstance(c, Array) else _broadcast(c, shape),
                        unit.c_format, "c", "bound", on_codes=unit.on_codes)  # fmt: skip
    return c, decode(c.codes, c.format, object) if isinstance(c, Array) else c.astype(object)


def _broadcast(c: Array, shape) -> Array:
    return Array(np.broadcast_to(c.codes, shape).copy(), c.format)


def _words(unit, key, random_bits) -> Callable:
    """The words of a step, as traces take them, of an output."""
    if not unit.stochastic:
        return lambda m, n: None
    if random_bits is not None:
        if np.ndim(random_bits) != 4:
            raise ValueError("bound: random_bits must be words of shape (M, N, steps, 2)")
        return lambda m, n: lambda step, *_: tuple(map(int, random_bits[m, n, step]))
    seed, stream = seed_and_stream(key)
    own, source = (unit.stochastic_bits, unit.two_roundings), unit.random
    check_key(unit, key, "bound")
    return lambda m, n: lambda step, *bits: random_words_matmul(seed, stream, 0, m, n, step, *(bits or own), source)


# -- sums of magnitudes ------------------------------------------------------------------------------------------------


def _integers(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Values as integers and the number that divides them all; 0 for what is not finite."""
    ratios = [v.as_integer_ratio() if _finite(v) else (0, 1) for v in values.flat]
    common = max((den for _, den in ratios), default=1)
    return _shaped([num * (common // den) for num, den in ratios], values.shape), common


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The exact product of two matrices of numbers, as Fractions."""
    (x, p), (y, q) = _integers(a), _integers(b)
    shape = a.shape[0], b.shape[1]
    total = x.dot(y) if a.shape[1] else np.zeros(shape, object)
    return _shaped([Fraction(int(t), p * q) for t in total.flat], shape)


def _magnitudes(values: np.ndarray, least: Fraction | None = None, zero_below: Fraction | None = None) -> np.ndarray:
    """Magnitudes; those that are not 0 are at least `least`, and those below `zero_below` are 0."""

    def magnitude(v):
        if not _finite(v) or not v:
            return 0
        size = abs(Fraction(v))
        if zero_below is not None and size < zero_below:
            return 0
        return size if least is None else max(size, least)

    return _shaped([magnitude(v) for v in values.flat], values.shape)


def _sums(growth: Growth, formats, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """What stands for S under a growth, and E where operands are flushed."""
    pairs = list(zip((a, b), formats, strict=True))
    if growth.lifted:
        return _times(*(_magnitudes(x, Fraction(2) ** fmt.emin) for x, fmt in pairs)), None
    whole = _times(*(_magnitudes(x) for x in (a, b)))
    if not growth.flushes:
        return whole, None
    kept = _times(*(_magnitudes(x, zero_below=Fraction(fmt.smallest_normal)) for x, fmt in pairs))
    return whole, whole - kept


def _most(growth: Growth, total: Fraction, carried: Fraction | int) -> Fraction | float:
    """The bound of the error of sums of such magnitudes; infinite where something may overflow."""
    if inf in (growth.relative, growth.absolute, growth.carried):
        return inf
    error = Fraction(growth.relative) * total + Fraction(growth.absolute) + Fraction(growth.carried) * carried
    return error if total + error <= growth.most else inf


class _Plain:
    """A product of plain matrices."""

    def __init__(self, unit, left: _Operand, right: _Operand, starts) -> None:
        self.unit, self.k, self.starts = unit, left.values.shape[1], starts
        self.left, self.right = left, right
        self.exact = _times(left.values, right.values)
        self.products = Growth(last=sum(facts(f).last for f in unit.operand))
        self.start = None
        if starts is not None:
            self.start = facts(unit.c_format).last
            self.exact = self.exact + _fractions(starts)
        self.growth = growth_of(unit, self.k, self.products, self.start)
        self.sums, self.carried = _sums(self.growth, unit.operand, left.values, right.values)
        if starts is not None:
            self.sums = self.sums + abs(_fractions(starts))
        self.refused = _negative(unit, left.values, right.values, starts)

    def a_priori(self, at) -> float:
        if self.refused is not None and self.refused[at]:
            return inf
        return upward(_most(self.growth, self.sums[at], 0 if self.carried is None else self.carried[at]))

    def error(self, at, result) -> Fraction | float:
        return abs(Fraction(result) - self.exact[at]) if _finite(result) else inf

    def probable(self, at, failure: float) -> float:
        """Azuma's and Hoeffding's inequality, and what is not random besides."""
        if self.a_priori(at) == inf:
            return inf
        chances = chances_of(self.unit, self.k, self.products, self.start)
        total = self.sums[at]
        largest = total + _most(self.growth, total, 0)  # of all partial sums
        width = Fraction(chances.sums.relative) * largest + Fraction(chances.sums.absolute)
        squares, spread, certain = Fraction(0), Fraction(0), Fraction(0)
        if chances.random_sums:
            squares, spread = chances.count * width**2, chances.count * width
        else:
            certain = chances.count * width
        if chances.products is not None:
            u, least = map(Fraction, chances.products)
            sum_of_widths = u * total + self.k * least
            if chances.random_products:
                squares += self._squares(at) * u**2 * (2 if least else 1) + 2 * self.k * least**2
                spread += sum_of_widths
            else:
                certain += sum_of_widths
        chance = upward(squares)
        deviation = sqrt(chance * log(2 / failure) / 2) * (1 + 2.0**-40) if chance < inf else inf
        if deviation == 0 and squares:
            return inf  # its square is too small for a float64
        biased = spread / 2**self.unit.stochastic_bits  # r bits are cut off, or rounded
        return upward(Fraction(deviation) + biased + certain) if deviation < inf else inf

    def _squares(self, at) -> Fraction:
        m, n = at
        pairs = zip(self.left.values[m], self.right.values[:, n], strict=True)
        return sum(((Fraction(x) * Fraction(y)) ** 2 for x, y in pairs), Fraction(0))


def _fractions(values: np.ndarray) -> np.ndarray:
    return _shaped([Fraction(v) if _finite(v) else Fraction(0) for v in values.flat], values.shape)


def _negative(unit, a: np.ndarray, b: np.ndarray, starts) -> np.ndarray | None:
    """Where a term is below 0, if sums or products are of an unsigned format; None where that does not matter."""
    if all(fmt is None or fmt.signed for fmt in unit.rounded_to):
        return None
    below, above = ([np.vectorize(test, [bool])(x) if x.size else x.astype(bool) for x in (a, b)]
                    for test in (lambda v: v < 0, lambda v: v > 0))  # fmt: skip
    found = below[0] @ above[1] | above[0] @ below[1]
    return found if starts is None else found | (starts < 0).astype(bool)


class _Blocks(_Plain):
    """A product of block arrays."""

    def __init__(self, unit, left: _Operand, right: _Operand, starts) -> None:
        self.unit, self.k, self.starts = unit, left.values.shape[1], starts
        elements, scales = ([getattr(f, part) for f in unit.operand] for part in ("element", "scale"))
        shape = left.values.shape[0], right.values.shape[1]
        zero = lambda: _fractions(np.zeros(shape, object))  # noqa: E731
        self.exact, self.sums, self.carried, self.fits = zero(), zero(), zero(), np.ones(shape, bool)
        self.refused = _negative(unit, left.values, right.values, starts)
        products, first, lengths = Growth(last=sum(facts(f).last for f in elements)), 0, unit.lengths(self.k)
        inner = products
        for j, length in enumerate(lengths):
            if unit.inner is not None:
                inner = growth_of(unit.inner, length, products, None)
            part = slice(first, first + length)
            a, b = left.values[:, part], right.values[part]
            scale = _times(left.scales[:, j : j + 1], right.scales[j : j + 1])
            total, flushed = _sums(inner, elements, a, b)
            brought = zero() if flushed is None else flushed
            for at in np.ndindex(shape):
                error = _most(inner, total[at], brought[at])
                if error == inf:
                    self.fits[at] = False
                else:
                    self.carried[at] += (error - Fraction(inner.relative) * total[at]) * abs(scale[at])
            self.exact += _times(a, b) * scale
            self.sums += total * abs(scale)
            first += length
        block = Growth(inner.relative, last=inner.last + sum(facts(f).last for f in scales))
        if lengths and unit.inner is not None:
            longest = growth_of(unit.inner, max(lengths), products, None)
            block = block._replace(relative=longest.relative)
        start = None if starts is None or unit.tensor_scales else facts(unit.c_format).last
        self.growth = growth_of(unit, len(lengths), block, start) if lengths else NOTHING
        self.tensor = left.tensor * right.tensor if lengths else Fraction(1)
        self.exact = self.exact * self.tensor
        self.added = zero() if starts is None else _fractions(starts)
        self.exact = self.exact + self.added

    def a_priori(self, at) -> float:
        unit = self.unit
        if not self.fits[at] or (self.refused is not None and self.refused[at]):
            return inf
        ends = unit.tensor_scales and self.k
        total = self.sums[at] + (0 if ends else abs(self.added[at]))
        error = _most(self.growth, total, self.carried[at])
        if error == inf or not ends:
            return upward(error)
        own = local(unit.accumulator, unit.rounding, -inf)
        size = self.tensor * (total + error) + abs(self.added[at])
        error = self.tensor * error + Fraction(own.relative) * size + Fraction(own.absolute)
        return upward(error if size + error <= unit.accumulator.max else inf)
