"""What a kernel for products is given: operands in their layouts, checked and converted, and where results go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.names import format
from softnum.kernels.device.elementwise.value_tables import decoded, find_codes
from softnum.kernels.device.products.entries import operand_library
from softnum.kernels.device.products.layouts import matrix_numbers
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.dlpack import packed
from softnum.kernels.device.runtime.strides import dense, place_of
from softnum.mac.products.engines import coded

__all__ = [
    "Operand", "Problem", "Seen", "all_codes", "all_values", "carrier_of", "check", "coded_operands", "formats_of",
    "inspect", "lined", "matrices", "operand_kernel", "stand_in", "to_codes", "to_values", "value_kernel",
]  # fmt: skip

_NONE = np.iinfo(np.int64).max
_MOST_BLOCKS = 1024
_ENOUGH_BLOCKS = 2 if _cuda.SIMULATOR else 128  # about as many as a large GPU has multiprocessors
_CARRIERS = {"float32": "binary32", "float64": "binary64"}


def carrier_of(unit, caller: str = "matmul") -> np.dtype:
    """The type of a unit's results on the device."""
    dtype = next((np.dtype(d) for d in (np.float32, np.float64) if fits(unit.result, d)), None)
    if dtype is None:
        raise TypeError(
            f"{caller}: neither float32 nor float64 holds {unit.result}; copy the CUDA arrays to the host first, where "
            "the result is an Array"
        )
    return dtype


@dataclass(frozen=True, eq=False)
class Operand:
    """An array on the device that a product reads (or, as its result, writes) in some layout.

    Parameters
    ----------
    flat : device array of one dimension
        Carriers (float32, float64), or codes.
    layout : str
        Of `softnum.kernels.device.products.layouts`.
    geometry : device array of int64
        The layout's numbers.
    shape : tuple of int
        What the user gave. For messages.
    name : str
        "a", "b", "c". For messages.
    format
        Whose codes flat holds; None for carriers.
    strides : tuple of int
        The strides that the user's array has in flat, in elements, which is filled by it: in C order if none are given.
    caller : str
        The function that it was given to. For messages.
    numbers : ndarray of int64, optional
        The geometry on the host, of "rows" and "columns": with it kernels may read neighbours together.
    known : Format, optional
        One that all carriers are known to be values of.
    """

    flat: object
    layout: str
    geometry: object
    shape: tuple
    name: str
    format: object = None
    strides: tuple = ()
    caller: str = ""
    numbers: object = None
    known: object = None

    def place(self, at: int) -> list[int]:
        """Where in the user's array the element at an index of flat stands."""
        return place_of(at, self.shape, self.strides or packed(self.shape, 1))


@dataclass(frozen=True, eq=False)
class Problem:
    """A product of matrices under a unit, or many: ``out[batch] = unit's sum over k of a[batch] * b[batch]``.

    Parameters
    ----------
    unit
    a, b, c : Operand
        Elements (row m, column k), (row k, column n), (m, n); c is None for +0. As the user gave them: an engine makes
        codes (`to_codes`) or checked carriers of them.
    m, n, k, batches : int
        None of m, n, batches is 0.
    words : int
        NO_WORDS, FROM_KEY or FROM_ARRAY.
    keys : four int
        Philox keys of domains 1 and 2.
    counters : device array of int64, shape (batches, 3)
        The row, the column and the batch that an element (0, 0) of each batch has in the Philox counters.
    random : device array of uint32, shape (batches, M, N, steps, 2)
        The words, if words is FROM_ARRAY; else a stand-in.
    out : Operand
        Carriers: float32 if that holds the result's format, else float64.
    status : device array of uint32
        One for each of ``unit.rounded_to``; an engine sets it if a NaN met that format, and it has none.
    """

    unit: object
    a: Operand
    b: Operand
    c: Operand | None
    m: int
    n: int
    k: int
    batches: int
    words: int
    keys: tuple[int, int, int, int]
    counters: object
    random: object
    out: Operand
    status: object

    @property
    def given(self) -> list[tuple]:
        """a, b and, if there is one, c, each with its format in the unit."""
        formats = (*self.unit.operand, self.unit.c_format)
        return [(x, fmt) for x, fmt in zip((self.a, self.b, self.c), formats, strict=True) if x is not None]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batches, M, N and K: the last arguments of kernels."""
        return self.batches, self.m, self.n, self.k

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """The grid of a kernel whose blocks make tiles of so many rows and columns of one batch after another."""
        return -(-self.m // height) * -(-self.n // width), min(self.batches, _cuda.MAX_GRID_Y)

    def grid_of(self, threads: int) -> tuple[int, int]:
        """The grid of a kernel with an element of each batch to a thread."""
        return -(-self.m * self.n // threads), min(self.batches, _cuda.MAX_GRID_Y)

    def first_of(self, tiles) -> tuple:
        """The first of some tiles, (height, width, ...) each, that give a GPU blocks enough, or the last."""
        return next((tile for tile in tiles if prod(self.grid(*tile[:2])) >= _ENOUGH_BLOCKS), tiles[-1])

    def layouts(self, operands) -> tuple[str, ...]:
        """The layouts of what takes the places of a, b and c, and of out."""
        return (*(x.layout for x in operands), self.out.layout)


def matrices(x, name: str, lead, format=None) -> Operand:
    """An array on the device as matrices of its last two dimensions: without a copy if it fills its memory.

    lead: the product's dimensions before the last two, to which the array's own broadcast.
    """
    shape = tuple(int(n) for n in x.shape)
    flat, first, strides = dense(x)
    layout, numbers, geometry = _geometry(shape, strides, first, tuple(lead), _cuda.device_index())
    known = getattr(x, "values_of", None)
    return Operand(flat, layout, geometry, shape, name, format, strides, numbers=numbers, known=known)


@lru_cache(maxsize=512)
def _geometry(shape: tuple, strides: tuple, first: int, lead: tuple, device: int) -> tuple[str, np.ndarray, object]:
    """(layout, numbers, these on the device) of an array's matrices, one for each of `lead`."""
    own = shape[:-2]
    which = np.broadcast_to(np.arange(prod(own), dtype=np.int64).reshape(own), lead).reshape(-1)
    at = np.unravel_index(which, own) if own else ()
    starts = first + sum((i * s for i, s in zip(at, strides, strict=False)), np.zeros(len(which), np.int64))
    numbers = matrix_numbers(*strides[-2:], starts)
    return _layout_of(*strides[-2:]), numbers, _cuda.constant(numbers)


def _layout_of(row_stride: int, column_stride: int) -> str:
    return "rows" if column_stride == 1 else "columns" if row_stride == 1 else "matrix"


def lined(flat, row_stride: int, column_stride: int, starts, *facts) -> Operand:
    """An operand whose matrices have two strides, and begin where starts says; facts: shape, name and what follows."""
    numbers = matrix_numbers(row_stride, column_stride, starts)
    layout = _layout_of(row_stride, column_stride)
    return Operand(flat, layout, _cuda.constant(numbers), *facts, numbers=numbers)


def stand_in(dtype, layout: str = "matrix") -> Operand:
    """What a kernel is given for an operand that is not there."""
    return _stand_in(np.dtype(dtype), layout, _cuda.device_index())


@lru_cache(maxsize=64)
def _stand_in(dtype: np.dtype, layout: str, device: int) -> Operand:
    return Operand(_cuda.constant(np.zeros(1, dtype)), layout, _cuda.constant(matrix_numbers(0, 0, [0])), (1, 1), "")


@lru_cache(maxsize=256)
def operand_kernel(fmt, carrier: str):
    """The kernel ``(x, codes, first_bad)``: codes of carriers' bits; the least index of what has none."""
    f = _cuda.bind(operand_library(fmt, carrier))
    code, status = f.code, f.status

    @cuda.jit
    def kernel(x, codes, first_bad):
        i = cuda.grid(1)
        if i < x.shape[0]:
            bits = x[i]
            if status(bits) != 0:
                cuda.atomic.min(first_bad, 0, i)
            codes[i] = code(bits)

    return kernel


@lru_cache(maxsize=256)
def inspect_kernel(fmt, carrier: str):
    """The kernel ``(x, found, first)`` over carriers' bits: in found, from first on, the least index of what is no
    value of the format, the largest pattern of a magnitude, and whether there is a -0."""
    status = _cuda.bind(operand_library(fmt, carrier)).status
    word = np.uint32 if carrier == "float32" else np.uint64
    sign = word(1 << (8 * word(0).itemsize - 1))
    magnitude = word(sign - word(1))

    @cuda.jit
    def kernel(x, found, first):
        largest = word(0)
        zero = False
        for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
            bits = x[i]
            if status(bits) != 0:
                cuda.atomic.min(found, first, i)
            largest = max(largest, bits & magnitude)
            zero = zero or bits == sign
        pattern = np.int64(largest)
        if pattern > found[first + 1]:  # few of many threads need the atomic operation
            cuda.atomic.max(found, first + 1, pattern)
        if zero:
            found[first + 2] = 1

    return kernel


@dataclass(frozen=True)
class Seen:
    """What is known of an operand's elements: the largest magnitude (infinity if there is a NaN); whether -0 is among
    them."""

    largest: float = 0.0
    negative_zero: bool = False


def inspect(given, caller: str = "matmul") -> list[Seen]:
    """Check carriers to be values of formats, without a copy: ValueError for an element that is none.

    given: pairs of an operand and a format; what is found of all of them is read at once.
    """
    found = _cuda.to_device(np.array([_NONE, 0, 0] * len(given), np.int64))
    for i, (operand, fmt) in enumerate(given):
        size, dtype = operand.flat.shape[0], operand.flat.dtype
        blocks = min(-(-size // _cuda.THREADS), _MOST_BLOCKS)
        if size:
            threads = min(_cuda.THREADS, size)
            _cuda.launch(inspect_kernel(fmt, dtype.name), blocks, threads, _cuda.bits(operand.flat), found, 3 * i)
    seen = []
    for (operand, fmt), (at, pattern, zero) in zip(given, _cuda.to_host(found).reshape(-1, 3), strict=True):
        _raise_at(operand, fmt, int(at), caller)
        dtype = operand.flat.dtype
        largest = float(np.array(pattern, f"u{dtype.itemsize}").view(dtype))
        seen.append(Seen(np.inf if np.isnan(largest) else largest, bool(zero)))
    return seen


@lru_cache(maxsize=256)
def value_kernel(fmt, carrier: str):
    """The kernel ``(codes, x)``: carriers' bits of codes."""
    value = _cuda.bind(operand_library(fmt, carrier)).value

    @cuda.jit
    def kernel(codes, x):
        i = cuda.grid(1)
        if i < codes.shape[0]:
            x[i] = value(codes[i])

    return kernel


@of_format
def _carriers(fmt, operand: Operand, dtype: str, caller: str) -> tuple:
    """(the operand as carriers, the format that these are to be checked for)"""
    if operand.format is None:
        return operand, fmt
    codes = to_codes(operand, fmt, caller).flat
    x = _cuda.empty(codes.shape[0], dtype)
    blocks = -(-codes.shape[0] // _cuda.THREADS)
    if blocks:
        _cuda.launch(value_kernel(fmt, dtype), blocks, _cuda.THREADS, codes, _cuda.bits(x))
    return replace(operand, flat=x, format=None), fmt


@_carriers.custom
def _decoded_carriers(fmt, operand: Operand, dtype: str, caller: str) -> tuple:
    codes = decoded(to_codes(operand, fmt, caller), fmt)
    return replace(codes, flat=codes.flat.view(np.float64), format=None), format("binary64")


def all_values(given, dtype: str, caller: str = "matmul", *, sizes: bool = True) -> list[tuple[Operand, Seen]]:
    """Operands as carriers, and what is known of each: as they are if they have carriers, else of their codes' values.

    given: pairs of an operand and a format, whose values are checked. Values of a custom format become float64.
    sizes: whether magnitudes matter; if not, carriers that are known to be values of the format are not read.
    """
    taken = [_carriers(fmt, operand, dtype, caller) for operand, fmt in given]
    seen = dict.fromkeys(range(len(taken)), Seen())
    read = [i for i, (operand, fmt) in enumerate(taken) if sizes or not _are_values(operand, fmt)]
    if read:
        seen |= zip(read, inspect([taken[i] for i in read], caller), strict=True)
    return [(operand, seen[i]) for i, (operand, _) in enumerate(taken)]


def _are_values(operand: Operand, fmt) -> bool:
    """Whether an operand's carriers are known to be values of a format: as all are of the carrier's own."""
    return operand.known == fmt or fmt == format(_CARRIERS[operand.flat.dtype.name])


def to_values(operand: Operand, fmt, dtype: str, caller: str = "matmul") -> tuple[Operand, Seen]:
    """`all_values` of one operand."""
    return all_values([(operand, fmt)], dtype, caller)[0]


@of_format
def check(fmt, operand: Operand, caller: str = "matmul") -> None:
    """ValueError for a carrier that is no value of a format; of a float or fixed-point format, without a conversion."""
    if not _are_values(operand, fmt):
        inspect([(operand, fmt)], caller)


@check.custom
def _check_by_codes(fmt, operand: Operand, caller: str = "matmul") -> None:
    to_codes(operand, fmt, caller)


def _raise_at(operand: Operand, fmt, at: int, caller: str) -> None:
    caller = operand.caller or caller
    if at != _NONE:
        found = _cuda.to_host(operand.flat[at : at + 1])[0]
        raise ValueError(
            f"{caller}: {operand.name}{operand.place(at)} = {found!r} is no value of {fmt}; "
            f"round it first: softnum.quantize({operand.name}, {str(fmt)!r})"
        )


@of_format
def _put_codes(fmt, x, codes, first_bad, caller: str) -> None:
    """As `find_codes`."""
    kernel, blocks = operand_kernel(fmt, x.dtype.name), -(-x.shape[0] // _cuda.THREADS)
    _cuda.launch(kernel, blocks, _cuda.THREADS, _cuda.bits(x), codes, first_bad)


_put_codes.custom(find_codes)


def all_codes(given, caller: str = "matmul") -> list[Operand]:
    """Operands as codes of formats. given: pairs of an operand and a format; what is found of all is read at once.

    Raises ValueError for an element that is no value of its format, TypeError for a custom format of more than 16 bits.
    """
    first_bad = None
    found = []
    for i, (operand, fmt) in enumerate(given):
        if operand.format is not None and operand.format != fmt:
            who = f"{operand.caller or caller}: {operand.name}"
            raise ValueError(f"{who} is an Array of {operand.format}, but the unit's operand is {fmt}")
        size = operand.flat.shape[0]
        codes = operand.flat if operand.format is not None else _cuda.empty(size, fmt.storage_dtype)
        found.append(replace(operand, flat=codes, format=fmt))
        if not size or operand.format is not None:
            continue
        first_bad = _cuda.filled(len(given), np.int64, _NONE) if first_bad is None else first_bad
        _put_codes(fmt, operand.flat, codes, first_bad[i : i + 1], caller)
    if first_bad is not None:
        for (operand, fmt), at in zip(given, _cuda.to_host(first_bad), strict=True):
            _raise_at(operand, fmt, int(at), caller)
    return found


def to_codes(operand: Operand, fmt, caller: str = "matmul") -> Operand:
    """`all_codes` of one operand."""
    return all_codes([(operand, fmt)], caller)[0]


def formats_of(unit) -> tuple:
    """Whose codes the definition takes for a, b and c (`softnum.mac.products.engines.coded`)."""
    return tuple(coded(fmt, unit) for fmt in (*unit.operand, unit.c_format))


def coded_operands(problem: Problem) -> tuple[Operand, Operand, Operand]:
    """a, b and c of a problem as codes of `formats_of` its unit; c: a stand-in where there is none.

    Raises ValueError for an operand that is no value of its format.
    """
    wanted = formats_of(problem.unit)
    codes = zip(all_codes(problem.given), wanted, strict=False)
    found = [x if x.format == fmt else decoded(x, x.format) for x, fmt in codes]
    return (*found, stand_in(wanted[2].storage_dtype)) if problem.c is None else tuple(found)


def examples():
    """Kernels that are linked without a GPU: what they are, and the types of their arguments."""
    fmt = format("e5m2")
    one, codes, found = map(_cuda.array_type, (np.uint32, fmt.storage_dtype, np.int64))
    yield f"look at values of {fmt}", inspect_kernel(fmt, "float32"), (one, found, _cuda.scalar_type(np.int64))
    yield f"values of {fmt}", value_kernel(fmt, "float32"), (codes, one)
    yield f"codes of {fmt}", operand_kernel(fmt, "float32"), (one, codes, found)
