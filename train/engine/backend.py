"""The one door through which the engine reaches arrays: a backend object.

Layers, gradient rules and the optimiser call these methods and nothing else, so that arrays may live elsewhere: on a
GPU behind ``softnum.train.engine.cuda_backend.CudaBackend``, which has the same methods. Every method is deterministic:
sums have a fixed order. Here is the design's arithmetic; what only moves or chooses elements is in
``softnum.train.engine.arrays``, what is computed in binary64, of few numbers, in ``softnum.train.engine.binary64``.
"""

from __future__ import annotations

import functools

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.codecs.blocks import tensor_scale_of
from softnum.arrays.container import array
from softnum.arrays.conversion import decode, encode, quantize
from softnum.arrays.environment import PartKey, SourceKey
from softnum.formats.blocks import format
from softnum.formats.codec import Rounding
from softnum.formats.dispatch import of_format
from softnum.formats.facts import facts
from softnum.ops.values import carried, carry
from softnum.runtime.limits import check_memory
from softnum.runtime.threads import chosen_threads, threads_by_default
from softnum.train.designs.convolutions import Convolution
from softnum.train.designs.scales import of_tensor
from softnum.train.engine.arithmetic import FUNCTIONS, PRODUCTS
from softnum.train.engine.arrays import Arrays, bits_of
from softnum.train.recipes import Scaled, largest_magnitude, scaled_product, scaled_stack

__all__ = [
    "NumpyBackend", "as_rows", "bits_of_precision", "block_ones", "block_options", "by_levels", "odd_is_exact",
    "role_key", "rounding_of",
]  # fmt: skip


@functools.cache
@of_format
def bits_of_precision(fmt) -> int:
    """The most significant bits that tell two neighbouring values of a format apart.

    >>> import softnum as sn
    >>> bits_of_precision(sn.format("e5m2")), bits_of_precision(sn.format("q4.4"))
    (3, 8)
    >>> bits_of_precision(sn.CustomFormat.from_table([0.0, 1.0, 1.25, -4.0]))
    3
    """
    return facts(fmt).precision


@bits_of_precision.custom
def _bits_that_tell_apart(fmt) -> int:
    if fmt.bits > 16:
        return facts(fmt).precision
    values = decode(np.arange(2**fmt.bits, dtype=fmt.storage_dtype), fmt)
    values = np.unique(values[np.isfinite(values)])
    integers, exponents = np.frexp(values)
    integers = np.ldexp(integers, 53).astype(np.int64)
    lowest = np.where(integers != 0, integers & -integers, np.int64(1) << 53)
    last = exponents - 53 + np.round(np.log2(lowest)).astype(int)  # exponent of the last bit
    first = np.where(values != 0, exponents - 1, last)
    if len(values) == 1:
        return 1
    pairs = [np.stack([part[:-1], part[1:]]) for part in (first, last)]
    zero = np.stack([values[:-1], values[1:]]) == 0
    top = np.where(zero, np.iinfo(np.int64).min, pairs[0]).max(axis=0)
    low = np.where(zero, np.iinfo(np.int64).max, pairs[1]).min(axis=0)
    return int((top - low).max()) + 1


def odd_is_exact(role) -> bool:
    """Whether a user's own format is narrow enough to be fed from binary64 rounded to odd.

    Rounding such a number to a format of precision p (and r random bits) with p + max(r, 2) <= 52 equals rounding
    the exact value once (Boldo and Melquiond 2008). Only formats that are the user's own are slow without it.
    """
    return _odd_is_exact(role.format, role)


@of_format
def _odd_is_exact(fmt, role) -> bool:
    return False


@_odd_is_exact.custom
def _is_narrow(fmt, role) -> bool:
    random = role.stochastic_bits if role.stochastic else 0
    return bits_of_precision(fmt) + max(random, 2) <= 52


def role_key(role, key):
    """The key by which a role's roundings take their random bits of its source.

    Casts of Transformer Engine's are counted as if there were 1024 in an iteration (`softnum.train.engine.numerics` has
    the number of a rounding), so that a cast's offset is 1024 * (1024 * iteration + site).
    """
    if not role.stochastic or key is None or (source := role.random_source).is_default:
        return key
    if source.casts:
        evaluation, iteration, site = key[1] >> 63, key[1] >> 16 & (1 << 47) - 1, key[1] & 0xFFFF
        if site >= 1 << 10 or iteration >= 1 << 44:
            raise ValueError(
                f"an iteration has 1024 casts under random={role.random!r}, and a run 2**44 iterations; got rounding "
                f"{site} of iteration {iteration}. Take another source"
            )
        pair = key[0], evaluation << 63 | iteration << 10 | site
        key = key._replace(stream=pair[1]) if isinstance(key, PartKey) else pair
    return SourceKey(source, key)


def rounding_of(role, key) -> dict:
    """The keywords by which softnum's functions round as a role says; key is used if the rounding is stochastic."""
    return {
        "rounding": role.rounding, "overflow": role.overflow, "key": role_key(role, key) if role.stochastic else None,
        "stochastic_bits": role.stochastic_bits,
    }  # fmt: skip


def block_options(role, key, largest: float | None = None) -> dict:
    """The keywords by which softnum's functions round to a role's blocks.

    largest: as of `NumpyBackend.quantize_scaled`, for a format's scale of the tensor.
    """
    options = {"scale_rule": role.scale_rule, **rounding_of(role, key)}
    if largest is not None:
        options["tensor_scale"] = tensor_scale_of(np.float64([largest]), role.format, None)
    return options


@functools.lru_cache(maxsize=64)
def block_ones(shape: tuple[int, int], fmt) -> BlockArray:
    """`NumpyBackend.block_ones`."""
    power = 2.0**fmt.element_exponent
    scales = np.full((shape[0], fmt.blocks(shape[1])), 1.0 / power)
    if not np.array_equal(quantize(scales, fmt.scale, overflow="saturate"), scales):
        raise ValueError(
            f"sums of columns are products with 1, which {fmt} lacks: {fmt.scale} has no scale {1.0 / power:g}"
        )
    tensor = () if fmt.tensor_scale is None else (1.0,)
    return BlockArray(encode(np.full(shape, power), fmt.element), encode(scales, fmt.scale), fmt, -1, *tensor)


def _along(x, role, axis: int | None):
    """Numbers as a role's scale takes them: in binary32, K as columns, transformed."""
    x = np.asarray(x, np.float32)
    x = x.swapaxes(-2, -1) if axis == -2 else x
    return x if role.hadamard is None else role.hadamard(x)


def as_rows(backend, x, axes: str):
    """What `NumpyBackend.total` adds, along the first axis."""
    if axes == "last":
        return backend.permute(x, (x.ndim - 1, *range(x.ndim - 1)))
    return backend.pixels(x) if axes == "pixels" else x


def by_levels(backend, x, role, keys, axes: str):
    """`NumpyBackend.total` in operations of a backend, one for each level: what defines it."""
    x = as_rows(backend, x, axes)
    for key in keys:
        first, second, odd = backend.neighbours(x)
        x = backend.join(backend.operate("add", (first, second), role, key), odd)
    return x


def _in_own_threads(method):
    """A method of a backend whose calls of softnum take the backend's number of threads."""

    @functools.wraps(method)
    def wrapped(self, *arguments):
        if chosen_threads() == self.threads:
            return method(self, *arguments)
        with threads_by_default(self.threads):
            return method(self, *arguments)

    return wrapped


class NumpyBackend(Arrays):
    """Arrays in NumPy, arithmetic of the design in softnum's C core.

    Parameters
    ----------
    dtype : numpy dtype
        The carrier: float32, or float64 where a format needs it.
    threads : int
        Of a product in a unit; at most, of other arithmetic. Results do not depend on it.
    """

    def __init__(self, dtype=np.float32, *, threads: int = 1) -> None:
        super().__init__(dtype)
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads must be a positive integer, got {threads!r}")
        self.threads = threads
        self._own_format = format("binary32" if self.dtype == np.float32 else "binary64")
        self._kernels: dict[tuple, tuple] = {}
        self._rounders: dict[int, tuple] = {}
        self._formats: dict[int, tuple] = {}

    def check_room(self, elements: int, what: str, way: str) -> None:
        """ValueError if memory has no room for so many numbers of arrays to come; `way` says what to do."""
        check_memory(elements * self.dtype.itemsize, what, way)

    def quantize(self, x, role, key):
        """Values of any float array rounded as a role says, as carriers; key is used if the rounding is stochastic."""
        return x if x.dtype == self.dtype and self._is_own(role.format) else self._quantized(x, role, key)

    def _quantized(self, x, role, key):
        known = self._rounders.get(id(role))
        if known is None:  # the role is kept, so that no other gets its id
            given = Rounding(role.rounding, role.overflow, stochastic_bits=role.stochastic_bits)
            known = self._rounders[id(role)] = role.format.codec.kernels(role.format, given), role
        values = None if known[0] is None else known[0].quantize(x, role_key(role, key))
        return self._rounded(x, role, key) if values is None else values.astype(self.dtype, copy=False)

    @_in_own_threads
    def _rounded(self, x, role, key):
        return FUNCTIONS["quantize"](x, role.format, **rounding_of(role, key)).astype(self.dtype, copy=False)

    def unchanged(self, x, role):
        """x, whose values are known to be those of a role's format."""
        return x

    @_in_own_threads
    def quantize_blocks(self, x, role, axis: int, key, largest=None):
        """Values of any float array rounded to blocks along an axis as a role says: a BlockArray.

        largest: as of `quantize_scaled`, for a format's scale of the tensor.
        """
        return array(x, role.format, axis=axis, **block_options(role, key, largest))

    @_in_own_threads
    def magnitude(self, x, role, axis: int | None) -> float:
        """The largest magnitude that scales of a role are made of, where a number of all the tensor enters them.

        x, axis: as of `quantize_blocks`, where blocks that are not finite do not count, and of `quantize_scaled`.
        """
        if not role.block:
            return float(largest_magnitude(_along(x, role, axis)))
        x = np.abs(np.asarray(x, np.float64))
        length = x.shape[axis]
        starts = np.arange(0, length, role.format.size(length))
        amax = np.maximum.reduceat(x, starts, axis=axis) if x.size else x
        return float(amax[np.isfinite(amax)].max(initial=0))

    @_in_own_threads
    def quantize_flat(self, x, role, key):
        """Values of any float array rounded as a role says, as carriers; a block format's blocks run in C order."""
        if not role.block:
            return self.quantize(x, role, key)
        values = FUNCTIONS["quantize"](x.reshape(-1), role.format, axis=-1, **block_options(role, key))
        return values.reshape(x.shape).astype(self.dtype, copy=False)

    @_in_own_threads
    def quantize_scaled(self, x, role, axis: int | None, key, state=None, largest=None) -> Scaled:
        """Values of any float array rounded by the scale of a role.

        Numbers that binary32 does not hold are first rounded to it, to nearest even.

        Parameters
        ----------
        x : float array (..., rows, columns)
            A scale of the tensor, and nvfp4's factor of it, is that of all matrices.
        role, key
            As in `quantize`.
        axis : int or None
            -1 or -2, along which K lies; None of a scale of the tensor, whose elements keep the shape of x. The
            role's Hadamard transform, if it has one, runs along K.
        state : Delayed, optional
            Of delayed scaling.
        largest : float, optional
            The `magnitude` of a tensor of which x is a part; default: x's.

        Returns
        -------
        Scaled (..., rows, columns), or (..., columns, rows) for an axis of -2
            K is its columns.
        """
        scale, x = role.scale, _along(x, role, axis)
        named = {} if largest is None else {"largest": np.float32(largest)}
        if of_tensor(scale):
            made = scale(x.reshape(x.shape[0], -1), *(() if state is None else (state,)), **named)
            return made._replace(elements=made.elements.reshape(x.shape))
        return scaled_stack(scale, x, *((role_key(role, key),) if role.stochastic else ()), **named)

    @_in_own_threads
    def matmul_scaled(self, a: Scaled, b: Scaled, unit, c, key):
        """(..., M, K) @ (..., N, K) with the last axes of b exchanged: `scaled_product` in a unit; plus c.

        c is None or what is added, broadcast to (..., M, N): in binary32, to nearest even.
        """
        product = scaled_product(a, b, unit, key=key, threads=self.threads)
        if c is not None:
            product = product + np.asarray(c, np.float32)
        return product.astype(self.dtype, copy=False)

    def block_ones(self, shape: tuple[int, int], fmt):
        """A BlockArray of 1, exact, in blocks along the last axis: elements of a power of two, scales of its inverse.

        The element is the power of two of the largest element's binade; ValueError where the scales lack its inverse.
        """
        return block_ones(shape, fmt)

    def numbers(self, x):
        """The numbers of a BlockArray, element times scale, exact in binary64; of a Scaled, in binary32, rounded."""
        return x.values() if isinstance(x, Scaled) else x.decode()

    @_in_own_threads
    def trusted(self, x, scale, hadamard, axis: int):
        """Which numbers a scale does not cut off, after a transform.

        Parameters
        ----------
        x : float array (..., rows, columns)
            Rounded to binary32.
        scale
            A quantizer with a method ``trusted``, of blocks of single rows.
        hadamard : Hadamard or None
        axis : int
            -1 or -2, along which K lies.

        Returns
        -------
        bool array
            As x; of the transformed numbers.
        """
        x = np.asarray(x, np.float32)
        x = x.swapaxes(-2, -1) if axis == -2 else x
        x = x if hadamard is None else hadamard(x)
        mask = scale.trusted(x.reshape(-1, x.shape[-1])).reshape(x.shape)
        return np.ascontiguousarray(mask.swapaxes(-2, -1) if axis == -2 else mask)

    @_in_own_threads
    def returned(self, gradient, trusted, hadamard, axis: int):
        """The gradient of numbers from that of what a transform makes of them; of what is not trusted it is +0.

        Parameters
        ----------
        gradient : array (..., rows, columns)
            In binary32.
        trusted, hadamard, axis
            As of `trusted`.
        """
        result = np.where(trusted, np.asarray(gradient, np.float32), np.float32(0))
        if hadamard is not None:
            result = result.swapaxes(-2, -1) if axis == -2 else result
            result = hadamard(result, inverse=True)
            result = result.swapaxes(-2, -1) if axis == -2 else result
        return np.ascontiguousarray(result, self.dtype)

    @_in_own_threads
    def matmul(self, a, b, unit, c, key):
        """(..., M, K) @ (..., K, N) in a unit, on carriers or BlockArrays.

        c is None or the accumulator's initial value, broadcast to (..., M, N).
        """
        if c is not None:
            c = np.ascontiguousarray(np.broadcast_to(c, (*a.shape[:-1], b.shape[-1])))
        return FUNCTIONS["matmul"](a, b, unit, c, key=key, threads=self.threads).astype(self.dtype, copy=False)

    @_in_own_threads
    def convolve(self, key: str, a, b, unit, c, words_key, geometry: dict, by: Convolution | None = None):
        """One of a convolution's three products in a unit, on carriers.

        Parameters
        ----------
        key : str
            The pass: "forward" of x and w, "backward_data" of dy and w, "backward_weight" of x and dy.
        a, b : arrays of carriers
        unit : Unit
        c : array, optional
            The accumulator's initial value.
        words_key
            As key in `quantize`.
        geometry : dict
            The keywords of `softnum.conv2d` and its gradients, with ``size`` or ``kernel``.
        by : Convolution, optional
            What computes it if it is not computed directly.
        """
        if by is not None:
            return by.compute(key, a, b, unit, c, geometry).astype(self.dtype, copy=False)
        product = FUNCTIONS[PRODUCTS[key]]
        return product(a, b, unit, c=c, key=words_key, threads=self.threads, **geometry).astype(self.dtype, copy=False)

    @_in_own_threads
    def operate(self, operation: str, operands, role, key):
        """One of softnum's operations on values of a role's format, rounded once as the role says.

        Parameters
        ----------
        operation : str
            Its name in softnum, like "add" or "tanh".
        operands : sequence of arrays of carriers
            Broadcast to one shape.
        role, key
            As in `quantize`.
        """
        result = self._carry(operation, operands, role.format, role, key)
        if result is not None:
            return result
        if operation == "pow" and self._is_cube(operands[1], role):
            return self._cube(operands[0], role, key)
        return self._operate(operation, operands, role, key)

    def _is_cube(self, power, role) -> bool:
        """Whether a power is a cube, and a binary64 number rounded to odd decides its rounding."""
        three = np.size(power) == 1 and float(np.reshape(power, ())) == 3.0
        decides = not role.stochastic and role.overflow != "wrap" and bits_of_precision(role.format) <= 24
        return three and self.dtype == np.float32 and decides

    def _cube(self, x, role, key):
        """The square, exact for numbers of 24 bits, times x, rounded to odd, and then as the role says."""
        x = np.asarray(x, np.float64)
        odd = FUNCTIONS["multiply"](bits_of(x * x), bits_of(x), "binary64", rounding="to_odd")
        return self.quantize(decode(odd, "binary64"), role, key)

    def _carry(self, operation: str, operands, fmt, role, key):
        """An operation on values of a format without codes between; None where that does not compute it."""
        kernel = self._kernel(operation, fmt, role, len(operands))
        return None if kernel is None else carry(kernel, tuple(map(np.asarray, operands)), role_key(role, key))

    def _kernel(self, operation: str, fmt, role, operands: int):
        """`carried` of an operation on carriers that hold values of a format; None where there is none."""
        asked = operation, fmt is role.format, id(role)
        known = self._kernels.get(asked)
        if known is None:
            kernel = None
            if self.dtype == np.float32:
                modes = role.rounding, role.overflow, role.stochastic_bits
                kernel = carried(operation, (fmt,) * operands, role.format, *modes)
            known = self._kernels[asked] = (kernel, role)  # the role is kept, so that no other gets its id
        return known[0]

    def _operate(self, operation: str, operands, role, key):
        """`operate`, in softnum's C core."""
        own = self._is_own(role.format)
        codes = (self._own_codes(x) if own else encode(x, role.format) for x in operands)
        result = FUNCTIONS[operation](*codes, role.format, **rounding_of(role, key))
        return self._carriers(result, role.format)

    def total(self, x, role, keys, axes: str = "rows"):
        """The sum of values of a role along an axis, as a tree: neighbours in pairs, then the sums in pairs.

        An odd last one waits, unrounded; each sum is rounded to the role.

        Parameters
        ----------
        x : array of carriers
            Of one row at least.
        role
            As in `quantize`.
        keys : list
            One for each of the ceil(log2(n)) levels of the tree of n elements, as key in `quantize`.
        axes : {"rows", "last", "pixels"}
            The first axis; the last one; or of images (N, C, H, W) all but C, in the order of `pixels`.

        Returns
        -------
        array (1, ...)
            One row, with the other axes.
        """
        kernel = self._kernel("add", role.format, role, 2)
        result = None if kernel is None else kernel.total(x, axes)
        return by_levels(self, x, role, keys, axes) if result is None else result

    @_in_own_threads
    def run_operator(self, operator, operands, options):
        """An operator of the user's own on carriers."""
        return operator(*operands, **options)

    @_in_own_threads
    def run_operator_backward(self, operator, operands, results, gradients, options):
        """The gradients of an operator's operands."""
        return operator.backward(operands, results, gradients, **options)

    def axpy(self, alpha: float, x, y, role, key):
        """y + alpha * x rounded once, as a role says, as carriers.

        Parameters
        ----------
        alpha : float
            Rounded to the carrier.
        x, y : arrays of carriers
        role, key
            As in `quantize`.
        """
        return self.compute("fma", (self.constant(alpha), x, y), role, key)

    @_in_own_threads
    def compute(self, operation: str, operands, role, key):
        """One of softnum's operations on any carriers: its exact result rounded once, as a role says.

        Parameters
        ----------
        operation : str
            Its name in softnum, like "fma" or "sqrt".
        operands : sequence of arrays of carriers
            Broadcast against each other.
        role, key
            As in `quantize`.
        """
        operands = [np.asarray(x, self.dtype) for x in operands]
        result = self._carry(operation, operands, self._own_format, role, key)
        if result is not None:
            return result
        formats = (self._own_format,) * len(operands)
        codes = [self._own_codes(x) for x in operands]
        if odd_is_exact(role):
            odd = FUNCTIONS[operation](*codes, formats, out_fmt="binary64", rounding="to_odd")
            return self.quantize(decode(odd, "binary64"), role, key)
        result = FUNCTIONS[operation](*codes, formats, out_fmt=role.format, **rounding_of(role, key))
        return self._carriers(result, role.format)

    def _carriers(self, codes, fmt):
        """The values of codes."""
        return codes.view(self.dtype) if self._is_own(fmt) else decode(codes, fmt, self.dtype)

    def _is_own(self, fmt) -> bool:
        """Whether a format is the carrier's."""
        known = self._formats.get(id(fmt))
        if known is None:  # the format is kept, so that no other gets its id
            known = self._formats[id(fmt)] = fmt == self._own_format, fmt
        return known[0]

    def _own_codes(self, x):
        """Carriers as codes of their own format."""
        return bits_of(np.asarray(x, self.dtype))
