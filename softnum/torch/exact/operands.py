"""What the operands of a function are, and its refusal of what it does not compute exactly."""

from __future__ import annotations

import torch

__all__ = ["floating", "refused", "shaped"]


def refused(mode, name: str, what: str):
    raise NotImplementedError(
        f"{name} in module {mode.running()!r}: softnum.torch computes it exactly {what} alone; write it so, or state "
        "elementwise='torch', which leaves all but products to PyTorch"
    )


def floating(*parts) -> bool:
    """Whether one is a tensor of floating point."""
    return any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in parts)


def shaped(x, shape):
    """A result in a shape; itself, which may be changed in place as no view may, where it has that shape."""
    return x if tuple(x.shape) == tuple(shape) else x.reshape(shape)
