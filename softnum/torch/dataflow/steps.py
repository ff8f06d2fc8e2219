"""What an iteration computes before its backward passes: a model's loss or losses, or what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

__all__ = ["Step", "Whole", "losses_of"]


class Step(nn.Module):
    """What an iteration computes of a batch: a model's loss, or its losses one after the other.

    Parameters
    ----------
    model : torch.nn.Module
    loss : callable
        As of `softnum.torch.Training`.
    """

    def __init__(self, model: nn.Module, loss: Callable) -> None:
        super().__init__()
        self.model, self._loss = model, loss
        self.each = lambda name, loss: None

    def forward(self, batch) -> None:
        """Tell ``each`` of every loss, by the name of its optimiser."""
        for name, loss in losses_of(self._loss(self.model, batch)):
            self.each(name, loss)


_DUE = "loss(model, batch) must return a tensor of one number, or pairs of an optimiser's name and one"


def losses_of(found):
    """What a loss function returned, as pairs of an optimiser's name and a loss.

    Raises
    ------
    ValueError
        If it is neither a tensor of one number nor pairs of a name and one.
    """
    pairs = [("loss", found)] if isinstance(found, torch.Tensor) else found
    if not isinstance(pairs, Iterable):
        raise ValueError(f"{_DUE}, got {found!r:.100}")
    count = 0
    for pair in pairs:
        if not (
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], torch.Tensor) and pair[1].numel() == 1
        ):
            raise ValueError(f"{_DUE}, got {pair!r:.100}")
        count += 1
        yield pair
    if not count:
        raise ValueError("loss(model, batch) yielded no loss")


class Whole(nn.Module):
    """A model as a `Step`, whose only loss is the sum of all floating-point numbers that it returns."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.each = lambda name, *losses: None

    def forward(self, *inputs, **options) -> None:
        """Tell ``each`` of what the model returns."""
        result = self.model(*inputs, **options)
        self.each("loss", *(x for x in tree_leaves(result) if isinstance(x, torch.Tensor)))
