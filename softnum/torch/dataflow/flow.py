"""What passes PyTorch's dispatcher, as operations and the values that they make and read."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from softnum.torch.dataflow.formats import format_of, format_of_role, held_format
from softnum.torch.dataflow.operations import (
    CONSTANT,
    EVALUATED,
    FILLING,
    FLOPS,
    MOVING,
    PRODUCTS,
    needs_of,
    plain,
    product_sizes,
)
from softnum.torch.functions import FUNCTIONS
from softnum.torch.models import mode_of
from softnum.torch.ranks import STEPPED
from softnum.train.designs.design import OPERAND_ROLES
from softnum.train.designs.objects import describe_format
from softnum.train.inspect.dataflow import Group, Value

__all__ = ["Flow"]

_MASK = "bit", 1  # what is drawn, not computed
_SUMS = ("bias_sum", "embedding")  # products of ones with gradients


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
        self._own(name, layer, tensor, held_format(tensor, *format_of_role(rounding)), "parameter")

    def own_buffer(self, name: str, layer: str, tensor: torch.Tensor, rounding=None) -> None:
        """A buffer; of one that softnum computes, its role."""
        fmt = format_of(tensor) if rounding is None else held_format(tensor, *format_of_role(rounding))
        self._own(name, layer, tensor, fmt, "buffer")

    def own_constants(self, modules) -> None:
        """The tensors that modules have beside parameters and buffers: constants, which take no memory of their own."""
        for module in modules:
            kept = {name: x for name, x in vars(module).items() if name not in ("_parameters", "_buffers", "_modules")}
            for x in tree_leaves(kept):
                if isinstance(x, torch.Tensor) and x.untyped_storage()._cdata not in self._known:
                    self._learn(x, ())

    def _own(self, name: str, layer: str, tensor: torch.Tensor, fmt: tuple, kind: str) -> None:
        value = Value(layer, name, tensor.numel(), fmt[1], fmt[0], None, (kind, name, name))
        self._learn(tensor, (self._new(value),))

    def values_of(self, tensor: torch.Tensor) -> tuple[Value, ...]:
        """The values that a tensor holds; of one from outside new ones, if it holds floating-point numbers."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._known:
            values = ()
            if tensor.is_floating_point():
                fmt, bits = format_of(tensor)
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
        if name in CONSTANT:
            for x in made:
                self._learn(x, ())
        elif name in FILLING:
            self._put(made[0], ())
        elif func.is_view or name in MOVING:
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
            self._compute(self._layer(read), plain(name), read, made, fmt, training=training)
            if plain(name) == "batch_norm" and self._forward and training:
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
        counts = FLOPS if training else FLOPS | EVALUATED
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
                self._make(x, name, *(fmt or format_of(x)))
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
        fmt, bits = held_format(tensor, fmt, bits)
        value = self._new(Value(self.groups[-1].layer, name, tensor.numel(), bits, fmt, len(self.groups) - 1))
        self.groups[-1].made.append(value)
        self._put(tensor, (value,))

    def _rounded(self, tensor: torch.Tensor, layer: str, rounding, axis) -> tuple[Value, ...]:
        """The copies of a tensor's values in the format of a role."""
        name, bits = held_format(tensor, *format_of_role(rounding))
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
            fmt = format_of_role(design.roles["elementwise"])
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
        fmt = format_of_role(design.roles["elementwise"])
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
            fmt, bits = held_format(gradient, *format_of_role(role))
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
                fmt, bits = role if isinstance(role, tuple) else format_of_role(design.roles[role])
                if (name, state) not in self.states:
                    own = Value(layer, name, gradient.numel(), bits, fmt, None, ("state", name, state))
                    self.states[name, state] = self._new(own)
                self._read((self.states[name, state],), gradient.numel())
