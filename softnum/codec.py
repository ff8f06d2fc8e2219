"""What encodes, decodes and rounds to a format: its codec, found as ``fmt.codec``.

The formats hold facts alone. The module that computes with a kind of format puts its codec into the format's class when
it is imported (`softnum.scalar_codec`, `softnum.custom_codec`, `softnum.block_codes`); whoever has a format asks that.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["NEAREST", "Codec", "Rounding"]


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
