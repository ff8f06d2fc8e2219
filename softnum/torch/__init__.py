"""PyTorch models in any arithmetic."""

from softnum.torch.arithmetic import Arithmetic
from softnum.torch.convert import convert, next_step
from softnum.torch.modes import arithmetic, checkpoint_contexts

__all__ = ["Arithmetic", "arithmetic", "checkpoint_contexts", "convert", "next_step"]
