"""The formats of tensors and of what a role stores in them."""

from __future__ import annotations

import torch

__all__ = ["format_of", "format_of_role", "held_format"]

_DTYPES = {
    torch.float32: "binary32", torch.float64: "binary64", torch.bfloat16: "bfloat16", torch.float16: "binary16",
    torch.bool: "bit",
}  # fmt: skip


def format_of_role(rounding) -> tuple[str, int | float]:
    return rounding.describe()["format"], rounding.bits_per_value


def held_format(tensor: torch.Tensor, fmt: str, bits) -> tuple[str, int | float]:
    """Format and bits of numbers of a format in a tensor, whose dtype they have where that is narrower."""
    own = format_of(tensor)
    return own if tensor.is_floating_point() and own[1] < bits else (fmt, bits)


def format_of(tensor: torch.Tensor) -> tuple[str, int]:
    if tensor.dtype is torch.bool:
        return "bit", 1
    name = _DTYPES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
    return name, 8 * tensor.dtype.itemsize
