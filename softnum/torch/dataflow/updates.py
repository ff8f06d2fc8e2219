"""What optimisers compute of a number, and the states that they keep."""

from __future__ import annotations

import inspect

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from softnum.torch.calls import new_state
from softnum.torch.dataflow.formats import format_of
from softnum.torch.dataflow.operations import CONSTANT, MOVING
from softnum.torch.optimizer import Optimizer
from softnum.train.engine.tensor import Parameter

__all__ = ["update_of"]


def update_of(optimizer: torch.optim.Optimizer, mode, layer: str, parameter: nn.Parameter) -> tuple[str, int, dict]:
    """What an optimiser does to a parameter of a layer: its name, what it computes for each number, and its states.

    A state is the role that stores it, or, of PyTorch's own optimisers, its format and bits. Where the parameter's
    dtype is narrower than the role ``master``, softnum's have a state of that role.
    """
    group = next(group for group in optimizer.param_groups if any(parameter is x for x in group["params"]))
    if not isinstance(optimizer, Optimizer):
        return _update_of_torch(type(optimizer), group, parameter.dtype)
    counted = []

    def count(event) -> None:
        if event.rounding is not None and event.method in ("compute", "operate", "axpy"):
            operation = event.arguments[0] if event.method != "axpy" else "axpy"
            counted.append(2 if operation in ("axpy", "fma") else 1)

    call = mode.arithmetic.watched(count).call(layer, new_state(0), "update")
    own = Parameter(np.full((1, 1), 0.5, call.backend.dtype), call, "weight")
    own.gradient = np.full((1, 1), 0.25, call.backend.dtype)
    alike = Optimizer.__new__(Optimizer)  # of this group alone, whose constants are the parameter's
    vars(alike).update(vars(optimizer), param_groups=[group])
    made = alike.made_of([own])
    made.step(1.0)
    kept = {state: role for state, role in made.state_roles.items() if made.states[state][0] is not None}
    if format_of(parameter)[1] < mode.arithmetic.layer(layer).roles["master"].bits_per_value:
        kept["master"] = "master"
    return made.name, sum(counted), kept


class _Counted(TorchDispatchMode):
    """Counts what is computed of a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2].strip("_")
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and x.dim() == 2]
        if made and not func.is_view and name not in CONSTANT and name not in MOVING:
            self.flops += 3 if name in ("addcdiv", "addcmul", "lerp") else 1
        return result


def _update_of_torch(kind: type, group: dict, dtype: torch.dtype) -> tuple[str, int, dict]:
    """`update_of` one of PyTorch's own, by a step of another one with a group's constants."""
    takes = inspect.signature(kind).parameters
    own = nn.Parameter(torch.full((1, 1), 0.5, dtype=dtype))
    own.grad = torch.full((1, 1), 0.25, dtype=dtype)
    constants = {name: value for name, value in group.items() if name in takes and name != "params"}
    constants |= {name: False for name in ("foreach", "fused") if name in takes}
    try:
        made = kind([own], **constants)
        made.step()  # which makes its states
        with _Counted() as counted:
            made.step()
    except Exception as error:
        raise ValueError(
            f"what {kind.__name__} computes and keeps cannot be found out by a step of it ({error}); leave the "
            "optimiser out, or name another"
        ) from error
    kept = {
        state: format_of(x)
        for state, x in made.state[own].items()
        if isinstance(x, torch.Tensor) and x.shape == own.shape
    }
    return kind.__name__.lower(), counted.flops, kept
