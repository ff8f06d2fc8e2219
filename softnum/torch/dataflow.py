"""What a training iteration of a PyTorch model reads, writes and keeps, without its numbers.

The model's forward pass, loss and backward pass really run, on tensors that have shapes and no numbers, and every
operation that reaches PyTorch's dispatcher is noted. What becomes of them follows the rules of
`softnum.train.inspect.dataflow`: moving is free; rounding happens where a value is made, which is written once in each
format in which an operation reads it; element-by-element steps of one layer that follow each other are one operation.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from softnum.torch.functions import FUNCTIONS
from softnum.torch.models import mode_of
from softnum.torch.numerics import Sites, new_state
from softnum.torch.optimizer import Optimizer
from softnum.torch.ranks import STEPPED
from softnum.train.designs.design import OPERAND_ROLES
from softnum.train.designs.objects import describe_format
from softnum.train.engine.tensor import Parameter
from softnum.train.inspect.dataflow import Group, Value

__all__ = ["PRODUCTS", "Flow", "Step", "Whole", "losses_of", "product_sizes", "trace", "without_numbers"]

#: functions that are three matrix products
PRODUCTS = ("conv2d", "linear", "matmul")
_MOVING = {
    "_reshape_alias", "_to_copy", "_unsafe_view", "cat", "clone", "constant_pad_nd", "copy", "copy_", "embedding",
    "flip", "gather", "index", "index_select", "lift_fresh", "pixel_shuffle", "pixel_unshuffle", "repeat", "roll",
    "select_backward", "select_scatter", "slice_backward", "slice_scatter", "stack", "unfold_backward",
}  # fmt: skip
_CONSTANT = {
    "arange", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "zeros", "zeros_like",
}  # fmt: skip
_FILLING = {"fill_", "zero_"}
_NAMES = {
    "threshold": "relu", "bernoulli": "dropout", "embedding_dense": "embedding", "fused_rms_norm": "rms_norm",
}  # fmt: skip
#: what is computed for an element, forwards and backwards, of functions of several steps: those that `softnum.train`
#: has for each element of a row, without those for a row alone
_FLOPS = {
    "batch_norm": (7, 7), "dropout": (2, 2), "group_norm": (7, 11), "layer_norm": (7, 11), "log_softmax": (5, 4),
    "rms_norm": (4, 8), "softmax": (5, 4),
}  # fmt: skip
_EVALUATED = {"batch_norm": (4, 4)}
_MASK = "bit", 1  # what is drawn, not computed
_SUMS = ("bias_sum", "embedding")  # products of ones with gradients
_DTYPES = {
    torch.float32: "binary32", torch.float64: "binary64", torch.bfloat16: "bfloat16", torch.float16: "binary16",
    torch.bool: "bit",
}  # fmt: skip


def product_sizes(name: str, shapes: list[tuple], facts: dict) -> tuple:
    """How many products a pass of a function has, and (M, N, K) of its three passes."""
    first, second, *_ = shapes
    if name in STEPPED:
        (steps, batch, n), k = first, second[-1]
        return steps - 1 + facts["given"], (batch, n, k), (batch, k, n), (k, n, batch)
    if name == "conv2d":
        groups, place = facts["groups"], math.prod(second[2:])
        filters, channels = second[0] // groups, second[1]
        results = first[0] * math.prod(FUNCTIONS[name].shape(shapes, facts)[2:])
        data = first[0] * math.prod(first[2:]), channels, filters * place
        return groups, (results, filters, channels * place), data, (channels * place, filters, results)
    if name == "linear":
        m, k, n = math.prod(first[:-1]), first[-1], second[0]
        return 1, (m, n, k), (m, k, n), (k, n, m)
    (*batch, m, k), n = first, second[-1]
    return math.prod(batch), (m, n, k), (m, k, n), (k, n, m)


def needs_of(name: str, needs: list[bool]) -> tuple[bool, bool]:
    """Whether the two backward passes of a function are computed."""
    if name in STEPPED:  # whose states but the first depend on all that needs a gradient
        return any(needs), needs[-1]
    return needs[0], needs[1]


class Flow(TorchDispatchMode):
    """Notes what passes PyTorch's dispatcher.

    Parameters
    ----------
    model : torch.nn.Module
        A converted one.

    Attributes
    ----------
    groups : list of softnum.train.inspect.dataflow.Group
        In the order in which they run.
    values : list of softnum.train.inspect.dataflow.Value
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.mode, self.groups, self.values = mode_of(model), [], []
        self.stage = "forward"
        self.states: dict[tuple[str, str], Value] = {}  # of optimisers, by parameter and name
        self._rows: set[int] = set()  # storages of rows that were looked up
        self._positive: dict[int, tuple[Value, ...]] = {}  # storage of what a ReLU is given -> what it delivers
        self._known: dict = {}  # a storage -> it, kept alive, and the values in it; () of a constant

    # -- values ----------------------------------------------------------------------------------------------------
    def own(self, name: str, layer: str, tensor: torch.Tensor, rounding) -> None:
        """A parameter, which is there before the iteration."""
        self._own(name, layer, tensor, _held(tensor, *_format_of_role(rounding)), "parameter")

    def own_buffer(self, name: str, layer: str, tensor: torch.Tensor, rounding=None) -> None:
        """A buffer; of one that softnum computes, its role."""
        fmt = _format_of(tensor) if rounding is None else _held(tensor, *_format_of_role(rounding))
        self._own(name, layer, tensor, fmt, "buffer")

    def _own(self, name: str, layer: str, tensor: torch.Tensor, fmt: tuple, kind: str) -> None:
        value = Value(layer, name, tensor.numel(), fmt[1], fmt[0], None, (kind, name, name))
        self._learn(tensor, (self._new(value),))

    def values_of(self, tensor: torch.Tensor) -> tuple[Value, ...]:
        """The values that a tensor holds; of one from outside new ones, if it holds floating-point numbers."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._known:
            values = ()
            if tensor.is_floating_point():
                fmt, bits = _format_of(tensor)
                values = (self._new(Value("input", "samples", tensor.numel(), bits, fmt, None, data=True)),)
            self._learn(tensor, values)
        return self._known[storage._cdata][1]

    def _new(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def _learn(self, tensor: torch.Tensor, values: tuple) -> None:
        storage = tensor.untyped_storage()
        self._known[storage._cdata] = storage, values

    def _put(self, tensor: torch.Tensor, values: tuple) -> None:
        """Let a tensor hold values from now on; where it is a part of a storage, beside those that are there."""
        storage = tensor.untyped_storage()
        before = self._known.get(storage._cdata, (None, ()))[1]
        if tensor.numel() * tensor.element_size() < storage.nbytes():
            values = tuple(dict.fromkeys((*before, *values)))
        buffer = next((value for value in before if value.owner and value.owner[0] == "buffer"), None)
        maker = max((value.maker for value in values if value.maker is not None), default=None)
        if buffer is not None and maker is not None:  # which has become that
            values = (self._new(replace(buffer, maker=maker, readers=set(), rounded={}, tested=set())),)
            self.groups[maker].made.append(values[0])
        self._learn(tensor, values)

    # -- operations ------------------------------------------------------------------------------------------------
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        read = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        name = func._schema.name.partition("::")[2]
        if func.namespace == "softnum":
            self._function(name, args, made)
        elif func.namespace != "prim" and made:
            named = dict(zip((x.name for x in func._schema.arguments), args, strict=False), **(kwargs or {}))
            self._note(func, name, read, made, bool(named.get("training", named.get("train", True))))
        return result

    def _note(self, func, name: str, read: list, made: list, training: bool) -> None:
        if name in _CONSTANT:
            for x in made:
                self._learn(x, ())
        elif name in _FILLING:
            self._put(made[0], ())
        elif func.is_view or name in _MOVING:
            values = tuple(dict.fromkeys(value for x in read for value in self.values_of(x)))
            for x in made:
                if name == "copy_":
                    self._put(x, self.values_of(read[-1]))
                elif x.untyped_storage()._cdata not in self._known:
                    self._learn(x, values)
        elif any(x.is_floating_point() for x in (*read, *made)):
            held = self.values_of(read[0]) if name == "div_" else ()
            if held and all(value.format == "bit" for value in held):
                return  # a dropout's mask, scaled before it is multiplied
            fmt = _MASK if name.startswith("bernoulli") else None
            self._compute(self._layer(read), _plain(name), read, made, fmt, training=training)
            if _plain(name) == "batch_norm" and self._forward and training:
                for x in read:
                    if any(value.owner and value.owner[0] == "buffer" for value in self.values_of(x)):
                        self._put(x, self.values_of(made[1]))

    @property
    def _forward(self) -> bool:
        """Whether a forward pass runs, or a part of one that a checkpoint computes again in the backward pass."""
        return self.stage == "forward" or bool(self.mode.path)

    def _layer(self, read: list) -> str:
        """The layer of an operation of PyTorch's own: forwards the module that runs, else that of what it reads."""
        if self._forward:
            return self.mode.running() if self.mode.path else "loss"
        values = [value for x in read for value in self.values_of(x) if value.maker is not None]
        made = [value for value in values if self.groups[value.maker].stage == "forward"]
        if made:
            return self.groups[made[-1].maker].layer
        return self.groups[-1].layer if self.groups else "loss"

    def _compute(
        self, layer: str, name: str, read: list, made: list, fmt=None, *, training: bool = True, rounded: tuple = ()
    ) -> None:  # fmt: skip
        stage = "forward" if self._forward else "backward_weight" if name in _SUMS else "backward_data"
        group = self.groups[-1] if self.groups else None
        if group is None or group.product is not None or (group.layer, group.stage) != (layer, stage):
            group = Group(layer, stage)
            self.groups.append(group)
        counts = _FLOPS if training else _FLOPS | _EVALUATED
        each = 0 if fmt == _MASK else 2 if name in _SUMS else counts.get(name, (1, 1))[not self._forward]
        group.flops += each * max((x.numel() for x in (read if name in _SUMS else (*read, *made))), default=0)
        if name == "relu" and not self._forward:  # of what it delivered, no more than the signs
            *read, x = read
            for value in self._positive.get(x.untyped_storage()._cdata) or self.values_of(x):
                value.tested.add(len(self.groups) - 1)
        for x in read:
            self._read(rounded or self.values_of(x), x.numel())
        before = len(group.made)
        for x in made:
            if x.is_floating_point() or x.dtype is torch.bool:
                self._make(x, name, *(fmt or _format_of(x)))
        if name == "relu" and self._forward:
            self._positive[read[0].untyped_storage()._cdata] = self.values_of(made[0])
        group.steps.append((name, group.made[before:], []))

    def _read(self, values, size: int) -> None:
        number = len(self.groups) - 1
        group, total = self.groups[-1], sum(value.elements for value in values)
        for value in values:
            if value.maker == number:
                continue
            elements = value.elements if size >= total else -(-size * value.elements // total)
            group.reads[value] = min(value.elements, max(elements, group.reads.get(value, 0)))
            value.readers.add(number)

    def _make(self, tensor: torch.Tensor, name: str, fmt: str, bits) -> None:
        fmt, bits = _held(tensor, fmt, bits)
        value = self._new(Value(self.groups[-1].layer, name, tensor.numel(), bits, fmt, len(self.groups) - 1))
        self.groups[-1].made.append(value)
        self._put(tensor, (value,))

    def _rounded(self, tensor: torch.Tensor, layer: str, rounding, axis) -> tuple[Value, ...]:
        """The copies of a tensor's values in the format of a role."""
        name, bits = _held(tensor, *_format_of_role(rounding))
        found, rows = [], tensor.untyped_storage()._cdata in self._rows
        for value in self.values_of(tensor):
            if value.format == name and not rounding.by_products and not value.data:
                found.append(value)
                continue
            key = name, axis if rounding.by_products else None, rows
            if key not in value.rounded:
                elements = min(value.elements, tensor.numel()) if rows else value.elements
                own = Value(value.layer, value.name, elements, bits, name, value.maker, along=axis, source=value)
                if value.owner and value.owner[0] == "parameter" and not rows:
                    own.copy_of = value.owner[1]
                if value.data:
                    own.layer, own.name = layer, "input"
                if own.maker is not None:
                    self.groups[own.maker].made.append(own)
                value.rounded[key] = self._new(own)
            found.append(value.rounded[key])
        return tuple(found)

    # -- softnum's functions -----------------------------------------------------------------------------------------
    def _function(self, name: str, args, made: list) -> None:
        backward = name.endswith("_backward")
        name = name.removesuffix("_backward")
        gradient, args = (args[0], args[1:]) if backward else (None, args)
        inputs, _, _, layer, _, options, constants, *needs = args
        function = FUNCTIONS[name]
        design = self.mode.arithmetic.layer(layer, looked_up=function.looked_up)
        if name == "output":  # a rounding of what it is given
            x = gradient if backward else inputs[0]
            role = design.roles["errors" if backward else "output"]
            self._learn(made[0], self.values_of(x) if backward else self._rounded(x, layer, role, None))
        elif name in PRODUCTS:
            facts = function.named(options, constants)
            sizes = product_sizes(name, [tuple(x.shape) for x in inputs], facts)
            if backward:
                self._backward(name, gradient, inputs, layer, design, sizes, needs[0], made)
            else:
                pair = self._roles(layer, design, "forward", inputs, None)
                self._product(layer, "forward", design, sizes[0], sizes[1], pair, inputs[2:], made[0])
        elif name == "embedding" and not backward:  # rows are moved
            self._learn(made[0], self._rounded(inputs[1], layer, design.roles["weights"], None))
            self._rows.add(made[0].untyped_storage()._cdata)
        elif name in STEPPED:
            self._steps(name, gradient, inputs, layer, design, function.named(options, constants), needs, made)
        else:
            read = [gradient] if name == "embedding" else [gradient, *inputs] if backward else inputs
            rounded = self._errors(layer, design, gradient) if name == "embedding" else ()
            if name == "add" and backward:  # whose gradients are the result's, or sums of it
                for x in made:
                    if x.numel() == gradient.numel():
                        self._learn(x, self.values_of(gradient))
                made = [x for x in made if x.numel() != gradient.numel()]
                if not made:
                    return
            training = bool(function.named(options, constants).get("training", True))
            fmt = _format_of_role(design.roles["elementwise"])
            read = [x for x in read if x is not None]
            self._compute(layer, name, read, made, fmt, training=training, rounded=rounded)

    def _roles(self, layer: str, design, key: str, inputs, gradient) -> list:
        """The operands of a pass: tensor, rounding and axis of its blocks."""
        places = {"activations": inputs[0], "weights": inputs[1], "errors": gradient}
        found = []
        for position, role in enumerate(OPERAND_ROLES[key]):
            own = "input" if role == "activations" and layer == self.mode.arithmetic.first else role
            found.append((places[role], design.roles[design.name(key, own)], (key, position)))
        return found

    def _backward(self, name, gradient, inputs, layer, design, sizes, needs, made) -> None:
        results = iter(made)
        count, _, data, weight = sizes
        for key, need, size in zip(("backward_data", "backward_weight"), needs, (data, weight), strict=False):
            if need:
                pair = self._roles(layer, design, key, inputs, gradient)
                self._product(layer, key, design, count, size, pair, (), next(results))
        for x in results:  # of a bias
            self._compute(layer, "bias_sum", [gradient], [x], rounded=self._errors(layer, design, gradient))

    def _errors(self, layer: str, design, gradient: torch.Tensor) -> tuple[Value, ...]:
        """What the gradients of weights are computed from."""
        place = "backward_weight", OPERAND_ROLES["backward_weight"].index("errors")
        return self._rounded(gradient, layer, design.roles[design.name(place[0], "errors")], place)

    def _steps(self, name, gradient, inputs, layer, design, facts, needs, made) -> None:
        """The products of a recurrent function's states, each pass's as one, and what else its steps compute."""
        count, *sizes = product_sizes(name, [tuple(x.shape) for x in (inputs[0], inputs[-1])], facts)
        fmt = _format_of_role(design.roles["elementwise"])
        pair = inputs[1], inputs[-1]
        if gradient is None:
            if count:
                self._product(layer, "forward", design, count, sizes[0],
                              self._roles(layer, design, "forward", pair, None), (), None)  # fmt: skip
            self._compute(layer, name, [inputs[0], *inputs[1:-1]], made, fmt)
            return
        wanted = needs[0]
        self._compute(layer, name, [gradient, *inputs[:-1]], made[: sum(wanted[:-1])], fmt)
        for key, need, size in zip(
            ("backward_data", "backward_weight"), needs_of(name, wanted), sizes[1:], strict=True
        ):
            if need and count:
                operands = self._roles(layer, design, key, pair, gradient)
                result = made[-1] if key == "backward_weight" else None
                self._product(layer, key, design, count, size, operands, (), result)

    def _product(self, layer, key, design, count, size, pair, others, result) -> None:
        group = Group(layer, key, (*size, count), [("gemm", [], [])], 2 * count * math.prod(size))
        self.groups.append(group)
        names = []
        for tensor, rounding, axis in pair:
            values = self._rounded(tensor, layer, rounding, axis)
            self._read(values, tensor.numel())
            names.append(rounding.format.label(rounding.source))
        for tensor in others:
            self._read(self.values_of(tensor), tensor.numel())
        group.formats = tuple(names)
        (first, rounding, _), (m, _, k) = pair[0], size
        if m * k * count > first.numel():
            group.unfolded = (m * k * count, rounding.bits_per_value, names[0])
        unit = design.units[key]
        if getattr(unit, "lanes", 1) > 1:
            described = describe_format(unit.c_format, "")["format"]
            group.lanes = (m * size[1] * count * unit.lanes, unit.c_format.bits, described)
        if result is not None:  # else it stays within the operation after it
            self._make(result, "product", describe_format(unit.result, "")["format"], unit.result.bits)

    def finish(self) -> None:
        """Keep one bit an element of what the backward pass only tests for its sign."""
        for value in [value for value in self.values if value.tested]:
            held = value
            if all(self.groups[reader].stage == "forward" for reader in value.readers):
                held = self._new(Value(value.layer, "mask", value.elements, 1, "bit", value.maker))
                self.groups[held.maker].made.append(held)
            held.readers |= value.tested
            for number in value.tested:
                self.groups[number].reads[held] = held.elements

    # -- the update ------------------------------------------------------------------------------------------------
    def update(self, gradients: dict, places: dict, updates: dict) -> None:
        """The operations of an optimiser.

        Parameters
        ----------
        gradients : dict
            Name of a parameter -> its gradient.
        places : dict
            Name -> its layer, and what the design says there.
        updates : dict
            Name -> as `update_of` returns it; of others there is no update.
        """
        owned = {value.owner[1]: value for value in self.values if value.owner and value.owner[0] == "parameter"}
        for name, gradient in gradients.items():
            layer, design = places[name]
            role = design.roles["weight_gradients"]
            maker = max((value.maker or 0 for value in self.values_of(gradient)), default=0)
            fmt, bits = _held(gradient, *_format_of_role(role))
            whole = self._new(Value(layer, name, gradient.numel(), bits, fmt, maker, ("gradient", name, name)))
            self.groups[maker].made.append(whole)
            if name not in updates:
                whole.readers.add(len(self.groups) - 1)
                continue
            if self.groups[-1].stage != "update" or self.groups[-1].layer != layer:
                self.groups.append(Group(layer, "update"))
            group = self.groups[-1]
            kind, flops, states = updates[name]
            group.flops += gradient.numel() * flops
            group.steps.append((kind, [], []))
            self._read((whole, owned[name]), 2 * gradient.numel())
            for state, role in states.items():
                fmt, bits = role if isinstance(role, tuple) else _format_of_role(design.roles[role])
                if (name, state) not in self.states:
                    own = Value(layer, name, gradient.numel(), bits, fmt, None, ("state", name, state))
                    self.states[name, state] = self._new(own)
                self._read((self.states[name, state],), gradient.numel())


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
    if _format_of(parameter)[1] < mode.arithmetic.layer(layer).roles["master"].bits_per_value:
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
        if made and not func.is_view and name not in _CONSTANT and name not in _MOVING:
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
        state: _format_of(x)
        for state, x in made.state[own].items()
        if isinstance(x, torch.Tensor) and x.shape == own.shape
    }
    return kind.__name__.lower(), counted.flops, kept


def _plain(name: str) -> str:
    """An operation's name without what says that it is PyTorch's own, or of which pass.

    >>> _plain("_log_softmax_backward_data"), _plain("nll_loss_forward"), _plain("add_")
    ('log_softmax', 'nll_loss', 'add')
    """
    name = name.strip("_").removeprefix("native_")
    for end in ("_data", "_backward", "_forward"):
        name = name.removesuffix(end)
    return _NAMES.get(name, name)


def _format_of_role(rounding) -> tuple[str, int | float]:
    return rounding.describe()["format"], rounding.bits_per_value


def _held(tensor: torch.Tensor, fmt: str, bits) -> tuple[str, int | float]:
    """Format and bits of numbers of a format in a tensor, whose dtype they have where that is narrower."""
    own = _format_of(tensor)
    return own if tensor.is_floating_point() and own[1] < bits else (fmt, bits)


def _format_of(tensor: torch.Tensor) -> tuple[str, int]:
    if tensor.dtype is torch.bool:
        return "bit", 1
    name = _DTYPES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
    return name, 8 * tensor.dtype.itemsize


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
