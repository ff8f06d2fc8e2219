"""What computes with a format's codes, found by the format: its codec, ``fmt.codec``, and its ``fmt.arithmetic``.

The formats hold facts alone. The modules that compute with a kind of format put these into the format's class when they
are imported: `softnum.arrays.codecs.scalar`, `custom_codec` and `block_codes` the codecs, `softnum.ops.operation` and
`softnum.ops.custom_tables` the arithmetic. Whoever has a format asks that.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["NEAREST", "Arithmetic", "Codec", "Rounding"]


class Rounding(NamedTuple):
    """How values are rounded to a format: the keywords of `softnum.quantize` and `softnum.encode`, not yet checked."""

    rounding: str = "nearest_even"
    overflow: str | None = None
    key: object = None
    random_bits: object = None
    stochastic_bits: int = 32
    invalid: object = "raise"
    return_flags: bool = False
    tininess: str = "after"
    flush_results: str | None = None


NEAREST = Rounding()


class Codec(Protocol):
    """What `softnum.quantize`, `encode` and `decode` do for one kind of format; these say what is taken and returned.

    block: the further keywords (`axis`, `scale_rule`, `symmetric`, `tensor_scale`), TypeError where they mean nothing.
    """

    def quantize(self, x, fmt, given: Rounding = NEAREST, out=None, threads=None, block=None):
        """Values of x's float type."""

    def encode(self, x, fmt, given: Rounding = NEAREST, out=None, threads=None, block=None):
        """Codes."""

    def decode(self, codes, fmt, dtype, out=None, threads=None, axis=None):
        """Values of a type that holds them."""

    def kernels(self, fmt, given: Rounding):
        """What rounds plain arrays at once (`softnum.runtime._core.Rounders`); None where nothing does."""

    def decoder(self, fmt, dtype):
        """What decodes plain arrays to a type at once (`softnum.runtime._core.Decoder`); None where nothing does."""

    def core_format(self, fmt):
        """The format in which the core computes with the values: fmt itself, another that has them, or None."""

    def check_elements(self, fmt, caller: str) -> None:
        """TypeError where a function takes arrays of single elements alone, and the format has none."""


class Arithmetic(Protocol):
    """How operations come to codes of one kind of format: what differs of `softnum.ops.operation.apply`."""

    #: what operands and results may be, in Python and in compiled code: floats of a type, or codes
    carriers: tuple[str, ...]

    def check_reach(self, name: str, fmt, out_fmt, rounding, overflow, stochastic_bits) -> None:
        """ValueError if operands of fmt lie beyond what the operation is computed for."""

    def prepared(self, name: str, formats, out_fmt, rounding, overflow):
        """A function of checked codes of these formats that returns the results' codes."""

    def check_modes(self, fmt, rounding, overflow) -> None:
        """ValueError unless results are rounded to the format in this mode and under this rule."""

    def users_own(self, name: str, formats, out_fmt) -> bool:
        """Whether an operation is a function of the user's on codes."""

    def plain(self, name: str, formats, out_fmt, rounding, overflow, stochastic_bits):
        """What computes plain arrays at once (`softnum.runtime._core.PlainOperation`); None where nothing does."""

    def apply(self, name, codes, formats, out_fmt, given: Rounding, flush_inputs, nan, extra, codes_out, compute):
        """(results, flags or None) of checked codes of these formats; or what compute returns of a rounding."""
