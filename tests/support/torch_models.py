"""Small models, their data and what is compared of them, for the tests of softnum.torch."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

import softnum as sn
from softnum.train import load_design
from softnum.train.designs.design import RoleRounding

__all__ = ["STOCHASTIC", "feedforward", "gradients", "inputs", "same"]


_Q44 = load_design("g-q44-stochastic")
#: rounds stochastically, but not the gradients of parameters, which transforms and exported programs leave as they are
STOCHASTIC = dataclasses.replace(
    _Q44, roles={**_Q44.roles, **dict.fromkeys(("default", "weight_gradients"), RoleRounding(sn.format("binary32")))}
)


def feedforward(seed: int = 1) -> nn.Module:
    """Two linear layers with a ReLU between them, always the same."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def inputs(*shape: int, seed: int = 3) -> torch.Tensor:
    """Normal random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def gradients(model: nn.Module, x: torch.Tensor, run=None) -> list[torch.Tensor]:
    """The gradients of all parameters for the sum of the squares of a model's results."""
    model.zero_grad()
    (run or model)(x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


def same(first, second) -> bool:
    """Whether two lists of tensors have the same bits."""
    first, second = list(first), list(second)
    return len(first) == len(second) and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
