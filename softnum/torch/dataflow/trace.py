"""An iteration that runs on tensors without numbers, and leaves the model as it was."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map_only

from softnum.torch.calls import Sites
from softnum.torch.dataflow.flow import Flow
from softnum.torch.dataflow.updates import update_of
from softnum.torch.models import mode_of

__all__ = ["trace", "without_numbers"]


def trace(model: nn.Module, called: nn.Module, inputs, options, updates: dict) -> Flow:
    """Run an iteration of a converted model on tensors without numbers, and follow its values.

    Parameters
    ----------
    model : torch.nn.Module
        A converted one.
    called : Step or Whole
        Of the model.
    inputs, options
        What it is called with.
    updates : dict
        Name of a loss ("loss" of a single one) -> name of a parameter -> the optimiser that updates it.

    Notes
    -----
    Where the model, or its loss, asks for a number to go on by, as detectors do that sort boxes, the iteration is
    computed: then what is found is that of these inputs.
    """
    mode = mode_of(model)
    places = {}
    modules = dict(model.named_modules())
    for path, module in modules.items():
        looked_up = isinstance(module, nn.Embedding)
        for name, _ in module.named_parameters(recurse=False):
            places[f"{path}.{name}" if path else name] = path, mode.arithmetic.layer(path, looked_up=looked_up)
    own = dict(model.named_parameters())
    rules = {
        loss: {name: update_of(optimizer, mode, places[name][0], own[name]) for name, optimizer in updated.items()}
        for loss, updated in updates.items()
    }

    def run(parameters: dict, buffers: dict, inputs, options) -> Flow:
        flow = Flow(model)
        for name, x in parameters.items():
            layer, design = places[name]
            flow.own(name, layer, x, design.roles["master"])
        for name, x in buffers.items():
            if x.is_floating_point():
                path = name.rpartition(".")[0]
                computed = mode.exact and path not in mode.kept and isinstance(modules[path], _BatchNorm)
                role = mode.arithmetic.layer(path).roles["statistics"] if computed else None
                flow.own_buffer(name, path, x, role)

        flow.own_constants(modules.values())

        def backward(name: str, *losses: torch.Tensor) -> None:
            flow.stage = "backward"
            ends = [x for x in losses if x.requires_grad]
            if ends:
                torch.autograd.backward(ends, [torch.ones_like(x) for x in ends])
            updated = rules.get(name, {})
            found = {key: x.grad for key, x in parameters.items() if x.grad is not None}
            flow.update({key: x for key, x in found.items() if key in updated or not updated}, places, updated)
            for x in parameters.values():
                x.grad = None
            flow.stage = "forward"

        called.each = backward
        with flow:  # the backward pass too, in which checkpoints run the model again
            tensors = {f"model.{name}": x for name, x in (parameters | buffers).items()}
            torch.func.functional_call(called, tensors, inputs, options)
        flow.finish()
        return flow

    return without_numbers(model, run, inputs, options)


def without_numbers(model: nn.Module, run: Callable, inputs, options):
    """What a function finds of a converted model's parameters and buffers, and of inputs, that hold no numbers.

    Where it asks for a number, it is given copies that have them. Whatever the modules keep of it is taken from them.
    """
    mode = mode_of(model)
    with torch.enable_grad(), torch.random.fork_rng():
        try:
            with _as_before(model, mode), FakeTensorMode(allow_non_fake_inputs=True) as fake:

                def shape_of(x):
                    return x if isinstance(x, FakeTensor) else fake.from_tensor(x)

                return run(*_copies(model, shape_of), *tree_map_only(torch.Tensor, shape_of, (inputs, options)))
        except (DataDependentOutputException, DynamicOutputShapeException):
            with _as_before(model, mode), _in_place(model):

                def copy_of(x):
                    return x.detach().clone().requires_grad_(x.requires_grad)

                return run(*_copies(model, copy_of), *tree_map_only(torch.Tensor, copy_of, (inputs, options)))


@contextlib.contextmanager
def _as_before(model: nn.Module, mode):
    """Put back afterwards what an iteration changes: the mode, its arithmetic, and what modules keep."""
    facts = {name: getattr(mode, name) for name in ("state", "calls", "rank", "axes", "replayed", "rounds_gradients")}
    bound, kept = mode.arithmetic, [_kept(module) for module in model.modules()]
    runs = {"states": bound.states, "sites": bound.sites}
    vars(bound).update(states=copy.deepcopy(bound.states), sites=bound.sites and Sites())
    mode.rounds_gradients, mode.rank = False, None  # gradients are rounded by hooks, which compute with numbers
    try:
        yield
    finally:
        vars(mode).update(facts)
        vars(bound).update(runs)
        for held in kept:
            for own, before in held:
                if type(own) is list:
                    own[:] = before
                else:
                    own.clear()
                    own.update(before)


@contextlib.contextmanager
def _in_place(model: nn.Module):
    """Put back afterwards the numbers of tensors that modules have, and that are neither parameters nor buffers."""
    own = [x for module in model.modules() for x in vars(module).values() if isinstance(x, torch.Tensor)]
    before = [(x, x._version, x.detach().clone()) for x in own if not x.is_inference()]
    try:
        yield
    finally:
        with torch.no_grad():
            for x, version, numbers in before:
                if x._version != version:
                    x.copy_(numbers)


def _kept(module: nn.Module) -> list[tuple]:
    """A module's attributes, and the dictionaries and lists among them, each with what it has."""
    own = vars(module)
    return [(x, x.copy()) for x in (own, *own.values()) if type(x) in (dict, list)]


def _copies(model: nn.Module, copy_of: Callable) -> tuple[dict, dict]:
    parameters = {name: copy_of(x) for name, x in model.named_parameters()}
    return parameters, {name: copy_of(x) for name, x in model.named_buffers()}
