"""Contractions without their terms laid out: the loops that `softnum.kernels.host.contractions` compiles.

What this covers gives the bits of `softnum.tile.contract`, the definition; what it does not, and what raises, is left
to that: `by_loops` answers None. Covered are extremes and assignments of a tensor's elements, products of them, and
sums of them, of products of two or of gradients of extremes, on a `MadUnit` of one lane, where Numba is installed and
so many terms (`LEAST`) have come together that to compile a loop, which takes a second or two, pays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from math import gcd, lcm, prod

import numpy as np

from softnum.arrays.container import Array, as_operand
from softnum.arrays.conversion import decode
from softnum.formats.facts import fits
from softnum.mac.family import family_of, register
from softnum.mac.mad import MadUnit
from softnum.mac.products.operands import checked_operand
from softnum.ops.numpy_functions import isnan, order_keys
from softnum.runtime import gateway
from softnum.tile.affine import Form
from softnum.tile.arithmetic import Tensor, apply, as_constant, carrier_of
from softnum.tile.space import LARGEST
from softnum.tile.syntax import Access, Binary, Choose, Number

__all__ = ["LEAST", "Line", "Loops", "by_loops", "everywhere", "needed", "reading"]

LEAST = 1 << 24  # terms of all calls of one contraction at the same sizes; changes no bit
_RANKED_BITS = 16
_COLUMNS = 8  # of a matrix product: with as many the C core is faster


@dataclass(frozen=True)
class Line:
    """constant + the sum of coefficients times the loops' variables, over scale; exists where whole, in [0, bound)."""

    coefficients: tuple[int, ...]
    constant: int
    scale: int = 1
    bound: int | None = None  # times scale

    def ends(self, lengths) -> tuple[int, int]:
        """The least and the largest value, times scale."""
        ends = [c * (n - 1) for c, n in zip(self.coefficients, lengths, strict=True)]
        return self.constant + sum(min(0, e) for e in ends), self.constant + sum(max(0, e) for e in ends)

    def along(self, order) -> Line:
        """The loops in another order, or some of them."""
        return replace(self, coefficients=tuple(self.coefficients[a] for a in order))


@dataclass(frozen=True)
class Loops:
    """Loops from 0: over the places of the result up to the one called `vector`, then over the terms in their order.

    readings: for each factor the place of its element in its tensor, and the lines that say whether it exists.
    """

    lengths: tuple[int, ...]
    vector: int
    readings: tuple[tuple[Line, tuple[Line, ...]], ...]
    target: Line
    chunk: int = 0

    @property
    def size(self) -> int:
        """The number of places of the result."""
        return prod(self.lengths[: self.vector + 1])


# -- the loops of a space ----------------------------------------------------------------------------------------------
def _line(form: Form, space, bound: int | None = None) -> Line:
    """A form of places and free variables over the space's axes."""
    scale = lcm(form.constant.denominator, *(v.denominator for v in form.coefficients.values()))
    coefficients, constant = [0] * space.ndim, int(form.constant * scale)
    for name, value in form.coefficients.items():
        axis, numbers = space.axes[name]
        coefficients[axis] += int(value * scale)
        constant += int(value * scale) * int(numbers[0]) if len(numbers) else 0
    return Line(tuple(coefficients), constant, scale, None if bound is None else bound * scale)


def _whole(names, space) -> list[Line]:
    """That variables which are solved for are whole."""
    return [_line(space.solved[name], space) for name in dict.fromkeys(names) if name in space.solved]


def reading(access: Access, shape, space) -> tuple[Line, list[Line]]:
    """(the place of an access's element in its tensor, the lines that say whether it exists)"""
    offset, stride, limits = Form({}, Fraction(0)), 1, []
    for form, size in zip(reversed(space.composed(access)), reversed(shape), strict=True):
        offset, stride = offset.plus(form, stride), stride * size
        limits.append(_line(form, space, size))
    names = [name for form in space.forms[access] for name in form.coefficients]
    return _line(offset, space), [*limits, *_whole(names, space)]


def everywhere(space) -> list[Line]:
    """What holds for all terms that exist, whatever tensors they read (`Space.residual`)."""
    limits = [replace(_line(form, space), scale=1, bound=1) for form in space.conditions]
    for form, bound in space.constraints:
        limits += [_line(form.substituted(space.solved), space, bound), *_whole(form.coefficients, space)]
    told = {name for forms in space.forms.values() for form in forms for name in form.coefficients}
    return limits + _whole([name for name in space.solved if name not in told], space)


def needed(limit: Line, lengths) -> Line | None:
    """A limit without what always holds."""
    shared = gcd(limit.scale, limit.constant, *limit.coefficients)
    if limit.scale > 1 and shared == limit.scale:
        bound = None if limit.bound is None else limit.bound // shared
        limit = Line(tuple(c // shared for c in limit.coefficients), limit.constant // shared, 1, bound)
    low, high = limit.ends(lengths)
    if limit.bound is not None:
        limit = replace(limit, bound=None if low >= 0 and high < limit.bound else min(limit.bound, max(0, high + 1)))
    return None if limit.scale == 1 and limit.bound is None else limit


def loops_of(space, accesses, shapes) -> Loops | None:
    """The loops of a contraction, made once; None if their arithmetic is beyond 64 bits."""
    if "loops" not in space.memo:
        space.memo["loops"] = _made(space, accesses, shapes)
    return space.memo["loops"]


def _made(space, accesses, shapes) -> Loops | None:
    """Loops, axes of one place left out, those that follow each other made one."""
    readings = [reading(access, shape, space) for access, shape in zip(accesses, shapes, strict=True)]
    readings[0][1].extend(everywhere(space))
    strides = [prod(space.shape[a + 1 :]) for a in range(len(space.shape))]
    target = Line((*strides, *(0 for _ in space.free)), 0)
    kept = [a for a, n in enumerate(space.lengths) if n != 1]
    outer = sum(a < len(space.shape) for a in kept)
    lengths = [space.lengths[a] for a in kept]
    readings = [(offset.along(kept), [limit.along(kept) for limit in limits]) for offset, limits in readings]
    target = target.along(kept)
    readings = [
        (offset, [n for n in (needed(limit, lengths) for limit in limits) if n is not None])
        for offset, limits in readings
    ]  # fmt: skip
    lines = [target, *(line for offset, limits in readings for line in (offset, *limits))]
    if any(abs(x.constant) + sum(abs(c) * n for c, n in zip(x.coefficients, lengths, strict=True)) >= LARGEST
           for x in lines):  # fmt: skip
        return None
    groups: list[list[int]] = []
    for a in range(len(lengths)):
        last = groups[-1][-1] if groups and a != outer else None
        if last is not None and all(x.coefficients[last] == x.coefficients[a] * lengths[a] for x in lines):
            groups[-1].append(a)
        else:
            groups.append([a])
    lengths = [prod(lengths[a] for a in group) for group in groups]
    outer = sum(group[0] < outer for group in groups)
    order = [group[-1] for group in groups]
    if not outer:
        order, lengths = [None, *order], [1, *lengths]
        outer = 1

    def score(axis):
        """Long rows of near elements go into vectors, and are worth what a row costs."""
        steps = [] if order[axis] is None else [abs(o.coefficients[order[axis]]) for o, _ in readings]
        return min(lengths[axis], 16), -sum(min(step, 64) for step in steps), lengths[axis]

    vector = max(range(outer), key=score)
    turned = [*(a for a in range(outer) if a != vector), vector, *range(outer, len(lengths))]

    def put(line):
        return replace(line, coefficients=tuple(
            0 if order[a] is None else line.coefficients[order[a]] for a in turned
        ))  # fmt: skip

    readings = tuple((put(offset), tuple(map(put, limits))) for offset, limits in readings)
    return Loops(tuple(lengths[a] for a in turned), outer - 1, readings, put(target))


# -- the aggregations --------------------------------------------------------------------------------------------------
def by_loops(space, tensors, unit, format_of, options) -> Tensor | None:
    """What `softnum.tile.contract.contract` makes of a contraction; None where it is for that to do."""
    step = space.step
    factors = _factors(step.body)
    if factors is None or (len(factors) > 1 and step.aggregation != "+"):
        return None
    given = [tensors[x.name] for x in factors]
    if 0 in space.lengths or space.empty or any(0 in t.shape for t in given):
        return None
    space.memo["terms"] = space.memo.get("terms", 0) + prod(space.lengths)
    if space.memo["terms"] < LEAST:
        return None
    if find_spec("numba") is None:
        return None
    loops = loops_of(space, factors, [t.shape for t in given])
    if loops is None:
        return None
    if step.aggregation == "+":
        compute = family_of(unit).loops
        return None if compute is None else compute(loops, space, factors, given, unit, options)
    fmt = format_of(given[0].format)
    make = {"=": _only, "*": _product}.get(step.aggregation, _extreme)
    return make(loops, given[0], fmt, options, space)


def _factors(body) -> tuple[Access, ...] | None:
    """The elements of a body: one, the two of a product, or three of ``A[i] == B[i] ? C[i] : 0``."""
    match body:
        case Binary(operator="*"):
            parts = body.left, body.right
        case Choose(condition=Binary(operator="==") as equal, yes=yes, no=Number(value=0)):
            parts = equal.left, equal.right, yes
        case _:
            parts = (body,)
    return parts if all(isinstance(part, Access) for part in parts) else None


def _flat(data: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(data).reshape(-1)


def _extreme(loops, tensor: Tensor, fmt, options, space) -> Tensor | None:
    """Of values by their bits; of codes by their ranks, among which there is no NaN to tell apart."""
    if fmt != tensor.format:
        return None
    largest = space.step.aggregation == ">"
    custom = fmt.codec.core_format(fmt) is not fmt  # whose codes know their order
    if fmt.bits > _RANKED_BITS or (tensor.by_values and not custom):
        if custom or carrier_of(fmt) is None:
            return None
        kind = "largest float" if largest else "smallest float"
        bits = _flat(tensor.values).view(f"i{tensor.values.itemsize}")
        found, _, none = gateway.loops(kind, loops, (bits,), bits.dtype.type(np.iinfo(bits.dtype).min))
        return None if none else Tensor(fmt, values=found.view(tensor.values.dtype).reshape(space.shape))
    ranks, codes = _ranks(fmt, largest)
    found, _, none = gateway.loops("largest", loops, (_flat(ranks.take(tensor.codes)),), ranks.dtype.type(0))
    return None if none else Tensor.of(Array._of(codes.take(found).reshape(space.shape), fmt))


@lru_cache(maxsize=64)
def _ranks(fmt, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(code -> rank, rank -> code): a NaN has the highest, and becomes the one that arithmetic makes."""
    every = Array._of(np.arange(1 << fmt.bits, dtype=fmt.storage_dtype), fmt)
    keys = order_keys(every).astype(np.int64)
    nan = isnan(every)
    codes = np.argsort(np.where(nan, np.int64(1) << 32, keys if largest else -keys), kind="stable")
    numbers = len(codes) - int(nan.sum())
    ranks = np.empty(len(codes), np.uint8 if fmt.bits <= 8 else np.uint16)
    ranks[codes[:numbers]] = np.arange(numbers)
    codes = codes.astype(fmt.storage_dtype)
    if nan.any():
        ranks[nan] = numbers
        codes[numbers] = as_operand(float("nan"), fmt).codes
    return ranks, codes


def _only(loops, tensor: Tensor, fmt, options, space) -> Tensor | None:
    data, _ = tensor.data
    bits = _flat(data).view(f"u{data.itemsize}")
    found, counts, _ = gateway.loops("only", loops, (bits,), bits.dtype.type(0))
    if counts is None:  # a term for each place, if none has more
        counts = np.full(1, prod(n for _, _, n in space.free), np.int64)
    if (counts > 1).any():
        return None
    met = (counts > 0).reshape(space.shape if counts.size > 1 else ())
    moved = tensor.with_data(found.view(data.dtype).reshape(space.shape))
    if met.all() and tensor.format == fmt:
        return moved
    if "rounding" in options and options["rounding"].startswith("stochastic"):
        return None
    result = apply("copy", (moved.array,), fmt, options, None, met)
    if met.all():
        return Tensor.of(result)
    return Tensor.of(Array._of(np.where(met, result.codes, as_constant(Fraction(0), fmt).codes), fmt))


def _product(loops, tensor: Tensor, fmt, options, space) -> Tensor | None:
    if options.get("rounding", "nearest_even").startswith("stochastic"):
        return None
    scalar = _short((tensor.format, fmt), fmt, options, "multiply")
    if scalar is None:
        return None
    dtype = np.dtype(scalar.carrier).type
    start = decode(as_constant(Fraction(1), fmt).codes, fmt, dtype)[()]
    terms = _flat(tensor.values).astype(dtype, copy=False)
    result, *_ = gateway.loops("product", loops, (terms,), start, (("product", scalar, "multiply"),))
    return _checked(result, [fmt], space)


def _short(formats, fmt, options, *names):
    """The scalar arithmetic of a format on a carrier of all formats, if these operations are short there."""
    if any(f.codec.core_format(f) is not f for f in (*formats, fmt)):
        return None
    carrier = next((c for c in ("float32", "float64") if all(fits(f, c) for f in (*formats, fmt))), None)
    if carrier is None:
        return None
    scalar = gateway.scalar(fmt, carrier=carrier, **options)
    return scalar if gateway.is_short(scalar, *names) else None


def _checked(result: np.ndarray, formats, space) -> Tensor | None:
    """The result, of the last of the formats; None where a rounding to one of them had none: NaNs stay to the end."""
    if not all(fmt.has_nan for fmt in formats) and np.isnan(result).any():
        return None
    fmt = formats[-1]
    return Tensor(fmt, values=result.astype(carrier_of(fmt), copy=False).reshape(space.shape))


def _sum(loops, space, factors, tensors, unit, options) -> Tensor | None:
    if unit.on_codes or unit.lanes != 1 or unit.compensated or unit.stochastic or unit.flushes:
        return None
    products = len(factors) == 2
    if products and min(_sides(space, factors)) >= _COLUMNS:
        return None
    if products:
        taken = zip(tensors, ((fmt,) for fmt in unit.operand), strict=True)
    elif len(factors) == 1:
        taken = [(tensors[0], (unit.accumulator, unit.result, *unit.operand))]
    else:  # the third is converted first, which is exact but for an overflow rule that knows no infinities
        random = options.get("rounding", "").startswith("stochastic")
        if random or options.get("overflow") is not None or not unit.result.has_zero:
            return None
        taken = [(tensors[2], (unit.result,))]
    if not all(_holds(tensor, formats) for tensor, formats in taken):
        return None
    formats = [unit.accumulator, unit.outer, *(t.format for t in tensors)]
    kind, needed = "sum" if len(factors) == 1 else "sum where equal", [("add", unit.accumulator, "add", unit.rounding)]
    if products and unit.product is None:
        kind, needed = "sum of fused", [("fused", unit.accumulator, "fma", unit.rounding)]
    elif products:
        formats.append(unit.product)
        kind = "sum of products"
        needed.append(("product", unit.product, "multiply", unit.product_mode))
    if unit.chunk:
        kind += ", in chunks"
        needed.append(("join", unit.outer, "add", unit.rounding))
    operations = []
    for name, fmt, operation, mode in needed:
        scalar = _short(formats, fmt, {"rounding": mode, "overflow": unit.overflow_of(fmt)}, operation)
        if scalar is None:
            return None
        operations.append((name, scalar, operation))
    dtype = np.dtype(scalar.carrier).type
    loops = replace(loops, chunk=unit.chunk or 0)
    values = tuple(_flat(t.values).astype(dtype, copy=False) for t in tensors)
    result, *_ = gateway.loops(kind, loops, values, dtype(0), tuple(operations))
    return _checked(result, [fmt for fmt in unit.rounded_to if fmt is not None], space)


register(MadUnit, loops=_sum)


def _sides(space, factors) -> tuple[int, int]:
    """Rows and columns of the matrix product that a sum of products is."""
    left, right = (space.axes_of(x) for x in factors)
    rows = prod(n for a, n in enumerate(space.shape) if a not in right)
    return rows, prod(n for a, n in enumerate(space.shape) if a in right and a not in left)


def _holds(tensor: Tensor, formats) -> bool:
    """Whether all of a tensor are values of one of these formats."""
    if tensor.format in formats:
        return True
    for fmt in formats:
        try:
            checked_operand(tensor.values, fmt, "x")
        except ValueError:
            continue
        return True
    return False
