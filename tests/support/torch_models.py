"""Small models, their data and what is compared of them, for the tests of softnum.torch."""

from __future__ import annotations

import dataclasses

import torch
from torch import nn

import softnum as sn
from softnum.train import load_design
from softnum.train.designs.design import RoleRounding

__all__ = ["STOCHASTIC", "TEXTS", "feedforward", "gradients", "inputs", "same"]


_Q44 = load_design("g-q44-stochastic")
#: rounds stochastically, but not the gradients of parameters, which transforms and exported programs leave as they are
STOCHASTIC = dataclasses.replace(
    _Q44, roles={**_Q44.roles, **dict.fromkeys(("default", "weight_gradients"), RoleRounding(sn.format("binary32")))}
)


HOPPER = """
name = "hopper"
[roles]
input = { format = "e4m3fn", overflow = "saturate" }
weights = { format = "e4m3fn", overflow = "saturate" }
activations = { format = "e4m3fn", overflow = "saturate" }
errors = { format = "e5m2", overflow = "saturate" }
[units]
forward = { preset = "nvidia_h100_e4m3" }
backward_data = { preset = "nvidia_h100_e4m3" }
backward_weight = { preset = "nvidia_h100_e4m3" }
"""
#: weights in blocks by single numbers; errors in blocks, of which some meet single numbers
MIXED = """
name = "mixed"
[roles]
input = "bfloat16"
weights = { format = "mxfp4", scale_rule = "rceil" }
activations = "bfloat16"
errors = { format = "mxfp8_e5m2", rounding = "stochastic" }
[units]
forward = "nvidia_h100_bf16"
"""
#: activations of which narrower copies are kept, blocks along their elements, rounded again along the samples
SAVED = """
name = "saved"
[roles]
input = "mxfp8_e4m3"
weights = "mxfp8_e4m3"
activations = "mxfp8_e4m3"
errors = { format = "mxfp8_e5m2", rounding = "stochastic" }
saved_activations = { format = { element = "e2m1fn", scale = "e4m3fn", block_size = 16 }, rounding = "stochastic" }
"""
#: blocks forwards, none where gradients of weights are made, one operand's where gradients of data are
PASSES = """
name = "passes"
[roles]
input = "mxfp8_e4m3"
weights = "mxfp8_e4m3"
activations = "mxfp8_e4m3"
errors = { format = "bfloat16", rounding = "stochastic" }
backward_weight = { activations = "bfloat16", input = "bfloat16" }
"""
#: name -> text of a design
TEXTS = {"hopper": HOPPER, "mixed": MIXED, "passes": PASSES, "saved": SAVED}


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
