"""What the codecs of formats have in common whose codes stand for a value each: arrays checked, devices, float16."""

from __future__ import annotations

import numpy as np

from softnum.arrays.checks import check_codes, check_out, delivered, float_array, native
from softnum.arrays.objects import numbers_of_codes
from softnum.formats.blocks import refuse_block_options
from softnum.formats.codec import NEAREST, Rounding
from softnum.runtime import _core, gateway

__all__ = ["ElementCodec"]

_FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))


class ElementCodec:
    """A `softnum.formats.codec.Codec` of arrays whose elements are rounded one by one.

    A subclass has `_round` (values of float32 or float64 to values), `_encode` (anything to codes), `_decode_floats`
    (checked codes to a float type) and `_number` (one code to a Fraction, or a float for what is none).
    """

    def quantize(self, x, fmt, given: Rounding = NEAREST, out=None, threads=None, block=None):
        """`softnum.quantize`."""
        if block:
            refuse_block_options("quantize", fmt, block)
        if gateway.is_device_array(x):
            gateway.check_host_only("quantize", threads)
            return gateway.on_device("quantize", x, fmt, out=out, **given._asdict())
        with _core.PlainEnvironment():
            return self._quantize(x, fmt, given, out, threads)

    def encode(self, x, fmt, given: Rounding = NEAREST, out=None, threads=None, block=None):
        """`softnum.encode`."""
        if block:
            refuse_block_options("encode", fmt, block)
        if gateway.is_device_array(x):
            gateway.check_host_only("encode", threads)
            return gateway.on_device("encode", x, fmt, out=out, **given._asdict())
        with _core.PlainEnvironment():
            return self._encode(x, fmt, given, out, threads)

    def decode(self, codes, fmt, dtype=np.float64, out=None, threads=None, axis=None):
        """`softnum.decode`."""
        if axis is not None:
            refuse_block_options("decode", fmt, {"axis": axis})
        if gateway.is_device_array(codes):
            gateway.check_host_only("decode", threads)
            return gateway.on_device("decode", codes, fmt, dtype, out=out)
        with _core.PlainEnvironment():
            return self._decode(codes, fmt, dtype, out, threads)

    def kernels(self, fmt, given: Rounding) -> _core.Rounders | None:
        """What rounds plain arrays at once; None where nothing does."""
        return None

    def decoder(self, fmt, dtype) -> _core.Decoder | None:
        """What decodes plain arrays to a type at once; None where nothing does."""
        return None

    def core_format(self, fmt):
        """The format in which the core computes with the values."""
        return fmt

    def for_core(self, codes, fmt) -> np.ndarray:
        """Codes of the same values in `core_format`."""
        return codes

    def codes_of_values(self, x, fmt) -> np.ndarray:
        """Codes of floats that are values of the format."""
        return self.encode(x, fmt)

    def surely_holds(self, x, fmt) -> bool:
        """Whether floats are values of the format, told without rounding them; False where that cannot be."""
        return False

    def check_elements(self, fmt, caller: str) -> None:
        """TypeError where a function takes arrays of single elements alone, and the format has none."""

    def _quantize(self, x, fmt, given: Rounding, out, threads):
        x = native(x)
        half = x.dtype == np.float16 and fmt.values_are_exact  # of others a type of its own is no narrowed one
        x = x if x.dtype == np.float16 else float_array(x, "quantize")
        check_out("quantize", out, x.shape, x.dtype)
        if given.return_flags:
            codes, flags = self._encode(x, fmt, given, None, threads)
            values = self._decode(codes, fmt, np.float32 if half else x.dtype, None, threads)
            return (_narrowed(values, fmt, out) if half else delivered(values, out)), flags
        if half:
            return _narrowed(self._round(x.astype(np.float32), fmt, given, None, threads), fmt, out)
        return self._round(x, fmt, given, out, threads)

    def _decode(self, codes, fmt, dtype, out, threads):
        dtype = np.dtype(dtype)
        if dtype not in _FLOATS and dtype.kind != "O":
            raise TypeError(f"decode returns float16, float32, float64 or object arrays, not {dtype}")
        codes = check_codes(codes, fmt)
        check_out("decode", out, codes.shape, dtype)
        if dtype.kind == "O":
            return delivered(numbers_of_codes(codes, lambda code: self._number(code, fmt)), out)
        return self._decode_floats(codes, fmt, dtype, out, threads)


def _narrowed(wide, fmt, out):
    """float32 values as float16, exactly; into out if there is one."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = wide.astype(np.float16)
    if not np.array_equal(narrow.astype(np.float32), wide, equal_nan=True):
        raise ValueError(f"quantize: a result in {fmt} is not exact in float16; pass the input as float32")
    if out is None:
        return narrow
    out[...] = narrow
    return out
