"""What computes with a format's codes, found by the format: its codec, ``fmt.codec``, and its ``fmt.arithmetic``.

The formats hold facts alone. The modules that compute with a kind of format put these into the format's class when they
are imported: `softnum.arrays.codecs.scalar`, `custom_codec` and `block_codes` the codecs, `softnum.ops.operation` and
`softnum.ops.custom_tables` the arithmetic. Whoever has a format asks that.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

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

    def quantize(
        self, x: Any, fmt: Any, given: Rounding = NEAREST, out: Any = None, threads: Any = None, block: Any = None
    ) -> Any:
        """Values of x's float type."""

    def encode(
        self, x: Any, fmt: Any, given: Rounding = NEAREST, out: Any = None, threads: Any = None, block: Any = None
    ) -> Any:
        """Codes."""

    def decode(self, codes: Any, fmt: Any, dtype: Any, out: Any = None, threads: Any = None, axis: Any = None) -> Any:
        """Values of a type that holds them."""

    def kernels(self, fmt: Any, given: Rounding) -> Any:
        """What rounds plain arrays at once (`softnum.runtime._core.Rounders`); None where nothing does."""

    def decoder(self, fmt: Any, dtype: Any) -> Any:
        """What decodes plain arrays to a type at once (`softnum.runtime._core.Decoder`); None where nothing does."""

    def core_format(self, fmt: Any) -> Any:
        """The format in which the core computes with the values: fmt itself, another that has them, or None."""

    def check_elements(self, fmt: Any, caller: str) -> None:
        """TypeError where a function takes arrays of single elements alone, and the format has none."""


class Arithmetic(Protocol):
    """How operations come to codes of one kind of format: what differs of `softnum.ops.operation.apply`."""

    #: what operands and results may be, in Python and in compiled code: floats of a type, or codes
    carriers: tuple[str, ...]

    def check_reach(
        self, name: Any, fmt: Any, out_fmt: Any, rounding: Any, overflow: Any, stochastic_bits: Any
    ) -> None:
        """ValueError if operands of fmt lie beyond what the operation is computed for."""

    def prepared(self, name: Any, formats: Any, out_fmt: Any, rounding: Any, overflow: Any) -> Any:
        """A function of checked codes of these formats that returns the results' codes."""

    def check_modes(self, fmt: Any, rounding: Any, overflow: Any) -> None:
        """ValueError unless results are rounded to the format in this mode and under this rule."""

    def users_own(self, name: Any, formats: Any, out_fmt: Any) -> bool:
        """Whether an operation is a function of the user's on codes."""

    def plain(self, name: Any, formats: Any, out_fmt: Any, rounding: Any, overflow: Any, stochastic_bits: Any) -> Any:
        """What computes plain arrays at once (`softnum.runtime._core.PlainOperation`); None where nothing does."""

    def apply(
        self,
        name: Any,
        codes: Any,
        formats: Any,
        out_fmt: Any,
        given: Rounding,
        flush_inputs: Any,
        nan: Any,
        extra: Any,
        codes_out: Any,
        compute: Any,
    ) -> Any:
        """(results, flags or None) of checked codes of these formats; or what compute returns of a rounding."""
