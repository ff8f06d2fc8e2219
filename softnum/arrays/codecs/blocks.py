"""Values to the codes of block formats, and back.

What is exact here: amax and its exponent are read off binary64 numbers, of which the inputs are made without loss;
scales are products of at most 53 bits; and an element is the quotient of value and scale, rounded once, by the core's
division, or by its rounding of the product with a power of two where that product is exact.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from softnum.arrays.blocks import BlockArray, checked_scale
from softnum.arrays.checks import check_axis, check_out, delivered, float_array, native
from softnum.arrays.conversion import encode
from softnum.arrays.environment import environment, random_words
from softnum.arrays.ufuncs import call_ufunc
from softnum.formats.blocks import BlockFormat, check_block_options, scale_rule_of
from softnum.formats.codec import NEAREST, Rounding
from softnum.formats.facts import facts, fits
from softnum.formats.modes import rounding_name
from softnum.formats.names import format, format_of_dtype
from softnum.runtime import _core, gateway

__all__ = ["BlockCodec", "axis_of", "blocked", "digits_of", "exact_codes", "tensor_scale_of"]

_WORDS = np.uint32(0)
_SATURATING = Rounding(overflow="saturate")
_NO_OPTIONS: Mapping = {}


def _values(x, what: str) -> np.ndarray:
    """x as float64, exactly."""
    x = native(x)
    source = format_of_dtype(x.dtype)
    if source is not None and x.dtype.kind != "f":  # ml_dtypes
        return source.codec.decode(x.view(source.storage_dtype), source, np.float64)
    if x.dtype.kind not in "fiubO":
        raise TypeError(f"{what}: block formats take arrays of numbers, got {x.dtype}")
    try:
        return (x if x.dtype.kind == "f" and x.dtype.itemsize <= 8 else float_array(x, what)).astype(np.float64)
    except ValueError:
        raise ValueError(
            f"{what}: a number is not exact in float64, from which block formats are encoded; round it first"
        ) from None


def axis_of(axis: int, ndim: int, what: str) -> int:
    if ndim == 0:
        raise ValueError(f"{what}: a scalar has no axis to divide into blocks; reshape it to (1,)")
    return check_axis(what, axis, ndim)


def _spread(scales: np.ndarray, fmt: BlockFormat, axis: int, length: int) -> np.ndarray:
    """Each block's scale, for each of its elements."""
    index = [slice(None)] * scales.ndim
    index[axis] = np.arange(length) // fmt.size(length)
    return scales[tuple(index)]


def _quotient(x, y, fmt, rounding: str, overflow, words=_WORDS, stochastic_bits: int = 32) -> np.ndarray:
    """Codes of x / y, float64 arrays, rounded once."""
    wide = format("binary64")
    env = environment(fmt, rounding, overflow, stochastic_bits)
    codes = (np.ascontiguousarray(v, np.float64).view(np.uint64).reshape(np.shape(v)) for v in (x, y))
    return call_ufunc("divide", tuple(codes), (wide, wide), fmt, env, words, what="encode")[0]


def _amax_over_largest(amax, element, scale, rounding: str, tensor: float) -> np.ndarray:
    """Codes of amax / (the largest element * tensor), rounded once; with a tensor scale that product is exact."""
    if tensor != 1.0:
        return _quotient(amax, np.full_like(amax, np.float64(element.max) * tensor), scale, rounding, "saturate")
    largest = np.full(amax.shape, encode(np.array(element.max, object), element), np.uint64)
    env = environment(scale, rounding, "saturate", 32)
    codes = (np.ascontiguousarray(amax, np.float64).view(np.uint64).reshape(amax.shape), largest)
    return call_ufunc("divide", codes, (format("binary64"), element), scale, env, _WORDS, what="encode")[0]


def _power_scales(amax, fmt: BlockFormat, rule: str) -> np.ndarray:
    """The exponents of scales that are powers of two; of "rceil", where all scales are."""
    fraction, exponent = np.frexp(amax)  # amax = fraction * 2**exponent, 1/2 <= fraction < 1
    above, at_least = _thresholds(fmt, rule)
    exponents = exponent.astype(np.int64) - (1 + fmt.element_exponent)
    exponents += (fraction > above) | (fraction >= at_least)
    low, high = fmt.scale_exponents
    return np.minimum(np.maximum(exponents, low), high)


def _thresholds(fmt: BlockFormat, rule: str) -> tuple[float, float]:
    """Above which fraction of the largest magnitude, and from which one on, a scale's exponent is one more."""
    if rule == "ceil":
        return 0.5, 1.0
    if rule == "even":
        return 1.0, 1 - 2.0 ** -(digits_of(fmt) + 1)
    if rule == "nearest":
        return 1.0, 0.75
    if rule == "rceil":
        return float(fmt.element.max) * 2.0 ** (-1 - fmt.element_exponent), 1.0
    return 1.0, 1.0


def digits_of(fmt: BlockFormat) -> int:
    """Significant bits of the elements in the binade of the largest."""
    return fmt.element.digits_at(fmt.element_exponent)


def _scale_codes(amax, fmt: BlockFormat, rule: str, tensor: float) -> np.ndarray:
    """The scale code of each block; amax may be 0, infinite or NaN."""
    scale = fmt.scale
    finite = np.isfinite(amax)
    if not scale.has_nan and not finite.all():
        raise ValueError(
            f"encode: a block contains an infinity or a NaN, and the scale format {scale} cannot encode NaN"
        )
    positive = finite & (amax > 0)
    clean = np.where(positive, amax, 1.0)
    if rule in ("max", "rceil"):
        rounding = "up" if rule == "rceil" else "nearest_even"
        codes = _amax_over_largest(clean, fmt.element, scale, rounding, tensor)
    else:
        codes = exact_codes(np.ldexp(1.0, _power_scales(clean, fmt, rule)), scale)
    smallest = exact_codes(np.float64(fmt.smallest_scale), scale)
    zero = ~positive | ((codes == 0) & scale.has_zero)
    codes = np.where(zero, smallest, codes)
    if not finite.all():
        codes = np.where(finite, codes, np.asarray(scale.nan_code, codes.dtype))
    return codes


def exact_codes(x, fmt) -> np.ndarray:
    return fmt.codec.encode(x, fmt, _SATURATING)


def tensor_scale_of(amax, fmt: BlockFormat, given) -> np.float32 | None:
    """The scale of the array: the largest finite amax becomes the largest element times the largest scale."""
    target = fmt.tensor_scale
    if target is None:
        if given is not None:
            raise ValueError(f"encode: {fmt} has no tensor scale; leave tensor_scale={given!r} out")
        return None
    if given is not None:
        return checked_scale(given, fmt)
    finite = amax[np.isfinite(amax)]
    most = finite.max() if finite.size else np.float64(0)
    if most == 0:
        return np.float32(1)
    full = np.float64(fmt.element.max) * np.float64(fmt.scale.max)
    code = _quotient(most, full, target, "nearest_even", "saturate")
    value = np.float32(target.codec.decode(code, target, np.float64))
    return value if value > 0 else np.float32(float(target.smallest_subnormal))


def _encoded(
    x, fmt: BlockFormat, given: Rounding, threads, *, axis=-1, scale_rule=None, symmetric=False, tensor_scale=None
) -> tuple:
    """`softnum.encode` to a block format, which says what it takes and returns."""
    rule, element = _rule(fmt, scale_rule, symmetric), fmt.element
    if gateway.is_device_array(x):
        gateway.check_host_only("encode", threads)
        return gateway.on_device(
            "encode_blocks", x, fmt, axis=axis, rule=rule, symmetric=symmetric, tensor_scale=tensor_scale,
            **_elements_rounding(given),
        )  # fmt: skip
    source = native(x)
    given = given._replace(overflow="saturate") if given.overflow is None else given
    if tensor_scale is None and _narrow(fmt, rule, rounding_name(given.rounding)):
        narrow = _in_float32(source)
        axis = axis_of(axis, source.ndim, "encode")
        scaled = None if narrow is None else _scaled(narrow, fmt, axis, rule)
        if scaled is not None:
            q, scales = scaled
            codes = element.codec.encode(q, element, given, None, threads)
            return _symmetric(codes, element) if symmetric else codes, scales
    x = _values(source, "encode")
    axis = axis_of(axis, x.ndim, "encode")
    length = x.shape[axis]
    starts = np.arange(0, length, fmt.size(length))
    with np.errstate(invalid="ignore"):
        amax = np.maximum.reduceat(np.abs(x), starts, axis=axis) if x.size else np.zeros(blocked(x.shape, fmt, axis))
    tensor = tensor_scale_of(amax, fmt, tensor_scale)
    scales = _scale_codes(amax, fmt, rule, 1.0 if tensor is None else float(tensor))
    factor = fmt.scale.codec.decode(scales, fmt.scale, np.float64)
    if tensor is not None:
        factor = factor * np.float64(tensor)
    lost = np.isnan(factor)
    if lost.any():  # x / NaN
        x = np.where(_spread(lost, fmt, axis, length), np.nan if element.has_nan else 0.0, x)
        factor = np.where(lost, 1.0, factor)
    any_double = source.dtype == np.float64 or source.dtype.kind == "O"
    codes = _elements(x, _spread(factor, fmt, axis, length), element, any_double, given, threads)
    codes = _symmetric(codes, element) if symmetric else codes
    return (codes, scales) if tensor is None else (codes, scales, tensor)


def _elements_rounding(given: Rounding) -> dict:
    """What of a rounding is for elements of blocks, as keywords."""
    return {
        name: getattr(given, name) for name in ("rounding", "overflow", "key", "random_bits", "stochastic_bits")
    }  # fmt: skip


def _rule(fmt: BlockFormat, given, symmetric: bool) -> str:
    """The scale rule, and whether `symmetric` is for this format."""
    rule, element = scale_rule_of(fmt, given), fmt.element
    if symmetric and element.unmatched_code is None:
        raise ValueError(
            f"encode: symmetric=True is defined for elements of signed fixed point; those of {fmt} are {element}"
        )
    return rule


def _symmetric(codes: np.ndarray, element) -> np.ndarray:
    """Codes of signed fixed point without the lowest integer, for which the next one stands."""
    return codes + (codes == element.unmatched_code).astype(codes.dtype)


@functools.lru_cache(maxsize=256)
def _narrow(fmt: BlockFormat, rule: str, rounding: str) -> bool:
    """Whether `_scaled` may take float32 values to elements.

    Scales are powers of two without a zero, and their inverses are float32 numbers; they reach 1, so that no quotient
    overflows. A value times an inverse is exact, or is so small (below 2**-126) that it rounds to zero, as what float32
    makes of it does: in the modes to nearest where that is below half an element's smallest step, in stochastic ones
    where it is below 2**-32 of it.
    """
    scale, low, high = fmt.scale, *fmt.scale_exponents
    powers = scale.powers_of_two and not scale.has_zero and fmt.tensor_scale is None
    modes = rounding.startswith("nearest") or rounding == "stochastic"
    small = facts(fmt.element).last - 33 >= -126 and abs(fmt.element_exponent) < 64
    return powers and modes and small and rule != "max" and -127 <= low and 0 <= high <= 127


def _in_float32(x: np.ndarray) -> np.ndarray | None:
    """Numbers in float32, if they are float32 numbers in float64 or float32."""
    if x.dtype != np.float64:
        return x if x.dtype == np.float32 else None
    with np.errstate(over="ignore", under="ignore"):
        narrow = x.astype(np.float32)
    return narrow if np.array_equal(narrow, x) else None


def _scaled(x: np.ndarray, fmt: BlockFormat, axis: int, rule: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(values over their block's scale, scale codes) of float32 numbers; None if one is infinite or NaN."""
    scales = np.empty(blocked(x.shape, fmt, axis), np.uint8)
    q = _core.scale_blocks(
        _core.contiguous(x), axis, fmt.size(x.shape[axis]), -fmt.element_exponent - 1, *_thresholds(fmt, rule),
        *fmt.scale_exponents, scales,
    )  # fmt: skip
    return None if q is None else (q, scales.astype(fmt.scale.storage_dtype, copy=False))


def blocked(shape: tuple, fmt: BlockFormat, axis: int) -> tuple:
    """The shape of the scales."""
    return (*shape[:axis], fmt.blocks(shape[axis]), *shape[axis + 1 :])


def _elements(x, factor, fmt, any_double, given: Rounding, threads) -> np.ndarray:
    """R(x / factor): by the product with a power of two where that is exact, as it is of narrower numbers."""
    fraction, exponent = np.frexp(factor)
    if np.all(fraction == 0.5):
        with np.errstate(over="ignore", under="ignore"):
            q = np.ldexp(x, 1 - exponent)
            exact = not any_double and (not q.size or np.abs(exponent).max() < 800)
            exact = exact or np.array_equal(np.ldexp(q, exponent - 1), x, equal_nan=True)
        if exact:
            return fmt.codec.encode(q, fmt, given, None, threads)
    rounding, overflow, stochastic_bits = given.rounding, given.overflow, given.stochastic_bits
    stochastic = rounding_name(rounding).startswith("stochastic")
    words = random_words(stochastic, given.key, given.random_bits, x.shape)
    seen = stochastic_bits + 1 if stochastic else 1
    known = facts(fmt)
    in_binary32 = known.precision + seen <= 24 and known.last - seen >= -149 and known.top < 127
    if not in_binary32 or overflow == "wrap":
        return _quotient(x, factor, fmt, rounding, overflow, words, stochastic_bits)
    # The quotient in binary64 lies on the exact one's side of every number where a rounding's answer changes, unless it
    # is that number. All of them are binary32 numbers.
    with np.errstate(over="ignore", under="ignore"):
        q = x / factor
        at_once = (q != q.astype(np.float32)) | (x == 0) | np.isnan(x)
        q = np.where(at_once, q, 0.0)  # the others, infinite ones among them, follow
    with_words = given._replace(key=None, random_bits=words if stochastic else None)
    codes = fmt.codec.encode(q, fmt, with_words, None, threads)
    rest = ~at_once
    if rest.any():
        words = words[rest] if stochastic else words
        codes[rest] = _quotient(x[rest], factor[rest], fmt, rounding, overflow, words, stochastic_bits)
    return codes


def parts_of(codes, fmt: BlockFormat, axis) -> tuple:
    """(element codes, scale codes, tensor scale or None, axis), checked."""
    if isinstance(codes, BlockArray):
        if codes.format != fmt:
            raise ValueError(f"decode: got a BlockArray of {codes.format}, not of {fmt}")
        if axis is not None and axis not in (codes.axis, codes.axis % codes.ndim):
            raise ValueError(f"decode: the BlockArray is blocked along axis {codes.axis}, not {axis}; leave axis= out")
        return codes.codes, codes.scales, codes.tensor_scale, codes.axis
    want = "element codes and scale codes" + ("" if fmt.tensor_scale is None else " and the tensor scale")
    count = 2 if fmt.tensor_scale is None else 3
    if not isinstance(codes, tuple) or len(codes) != count:
        raise ValueError(f"decode: {fmt} needs a tuple of {want}, as encode returns it, or a BlockArray")
    array = BlockArray(codes[0], codes[1], fmt, -1 if axis is None else axis, *codes[2:])
    return array.codes, array.scales, array.tensor_scale, array.axis


def _decoded(codes, fmt: BlockFormat, dtype, out, threads, axis) -> np.ndarray:
    """`softnum.decode` of a block format, which says what it takes and returns."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fO" or dtype.itemsize not in (2, 4, 8):
        raise TypeError(f"decode returns float16, float32, float64 or object arrays, not {dtype}")
    elements, scales, tensor, axis = parts_of(codes, fmt, axis)
    if gateway.is_device_array(elements) or gateway.is_device_array(scales):
        gateway.check_host_only("decode", threads)
        return gateway.on_device("decode_blocks", elements, scales, tensor, fmt, dtype, axis=axis, out=out)
    check_out("decode", out, elements.shape, dtype)
    length = elements.shape[axis]
    if dtype.kind == "O" or not fits(fmt, "float64"):
        values = _objects(elements, scales, tensor, fmt, axis)
        if dtype.kind == "O":
            return delivered(values, out)
        exact = values
        try:
            values = values.astype(np.float64)
        except OverflowError:
            raise ValueError(f"a value of {fmt} is not exact in {dtype} (use dtype=object)") from None
        if not all(v == float(w) or v != v for v, w in zip(exact.flat, values.flat, strict=True)):
            raise ValueError(f"a value of {fmt} is not exact in {dtype} (use dtype=object)")
    else:
        factor = fmt.scale.codec.decode(scales, fmt.scale, np.float64)
        if tensor is not None:
            factor = factor * np.float64(tensor)
        with np.errstate(invalid="ignore"):
            values = fmt.element.codec.decode(elements, fmt.element, np.float64, None, threads)
            values = values * _spread(factor, fmt, axis, length)
        values[np.isnan(values)] = np.nan
    if dtype != np.float64:
        with np.errstate(over="ignore", under="ignore"):
            narrow = values.astype(dtype)
        if not np.array_equal(narrow.astype(np.float64), values, equal_nan=True):
            way = "give float64" + ("" if fmt.tensor_scale is None else ", or tensor_scale= a power of two")
            raise ValueError(f"a value of {fmt} is not exact in {dtype} ({way})")
        values = narrow
    return delivered(values, out)


def _exact_product(x: Fraction | float, y: Fraction | float) -> Fraction | float:
    """x * y of numbers as decode(dtype=object) gives them."""
    if isinstance(x, Fraction) and isinstance(y, Fraction) and x and y:
        return x * y
    x, y = (v if isinstance(v, float) else float((v > 0) - (v < 0)) for v in (x, y))
    product = x * y  # 0, infinite or NaN
    return Fraction(0) if product == 0 and math.copysign(1, product) > 0 else product


def _objects(elements, scales, tensor, fmt: BlockFormat, axis: int) -> np.ndarray:
    multiply = np.frompyfunc(_exact_product, 2, 1)
    with np.errstate(invalid="ignore"):
        factor = fmt.scale.codec.decode(scales, fmt.scale, object)
        if tensor is not None:
            factor = multiply(factor, Fraction(float(tensor)))
        values = fmt.element.codec.decode(elements, fmt.element, object)
        values = multiply(values, _spread(factor, fmt, axis, elements.shape[axis]))
    return np.asarray(values, object)


def _quantized(x, fmt: BlockFormat, given: Rounding, out, threads, *, axis=-1, **options) -> np.ndarray:
    """`softnum.quantize` to a block format: decode(encode(x)), in x's float type."""
    if gateway.is_device_array(x):
        gateway.check_host_only("quantize", threads)
        rule = _rule(fmt, options.pop("scale_rule", None), options.get("symmetric", False))
        return gateway.on_device(
            "quantize_blocks", x, fmt, axis=axis, rule=rule, out=out, **options, **_elements_rounding(given)
        )
    x = native(x)
    if x.dtype not in (np.float16, np.float32, np.float64):
        x = float_array(x, "quantize")
    check_out("quantize", out, x.shape, x.dtype)
    parts = _encoded(x, fmt, given, threads, axis=axis, **options)
    return delivered(_decoded(parts, fmt, x.dtype, None, threads, axis), out)


class BlockCodec:
    """The codec of block formats, `softnum.formats.codec.Codec`: elements and the scales that they share."""

    def kernels(self, fmt: BlockFormat, given: Rounding) -> None:
        """None: elements are not rounded one by one."""

    def decoder(self, fmt: BlockFormat, dtype) -> None:
        """None: codes mean nothing without their scales."""

    def core_format(self, fmt: BlockFormat) -> None:
        """None: the core has no format with the same values."""

    def check_elements(self, fmt: BlockFormat, caller: str) -> None:
        """TypeError: there are none without their scales."""
        raise TypeError(
            f"{caller} does not support units of block formats ({fmt}); use matmul or dot, with BlockArrays"
        )

    def quantize(self, x, fmt: BlockFormat, given: Rounding = NEAREST, out=None, threads=None, block=_NO_OPTIONS):
        """`softnum.quantize`."""
        check_block_options("quantize", block, given)
        with _core.PlainEnvironment():
            return _quantized(x, fmt, given, out, threads, **block)

    def encode(self, x, fmt: BlockFormat, given: Rounding = NEAREST, out=None, threads=None, block=_NO_OPTIONS):
        """`softnum.encode`."""
        check_block_options("encode", block, given, out)
        with _core.PlainEnvironment():
            return _encoded(x, fmt, given, threads, **block)

    def decode(self, codes, fmt: BlockFormat, dtype=np.float64, out=None, threads=None, axis=None):
        """`softnum.decode`."""
        with _core.PlainEnvironment():
            return _decoded(codes, fmt, dtype, out, threads, axis)


BlockFormat.codec = BlockCodec()
