"""A network as a list of layers, and one training iteration of it as a workload."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from softnum.tta.architectures.layers import PRODUCT_ROLES, Layer, Product, Work
from softnum.tta.architectures.precision import Precision, StoredFormat
from softnum.tta.quantities import positive_int
from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.operations import Operation, StoredTensor, Workload

__all__ = ["OPTIMISERS", "Architecture", "lower"]

#: Operations per parameter of an update, and what the optimiser keeps beside the weights: names and roles.
OPTIMISERS = {
    "sgd": (2, ()),
    "momentum": (4, (("momentum", "momentum"),)),
    "rmsprop": (11, (("mean_square", "second_moment"), ("momentum", "momentum"))),
    "adam": (14, (("momentum", "momentum"), ("second_moment", "second_moment"))),
}


@dataclass(frozen=True)
class Architecture:
    """A network that is timed and not trained.

    Parameters
    ----------
    name : str
    input : tuple of int
        Shape of a sample: (features,), (channels, height, width), (steps, features), or (steps,) of words.
    layers : tuple of Layer
        In the order in which the input passes them.
    title : str
        What it is, in a line.
    source : str
        Where its sizes come from.
    published : Mapping
        What the source says of it: "parameters", "macs" (multiplications and additions of one sample, forwards).
    part : bool
        Whether it is a part of a larger network, whose input needs a gradient.

    Raises
    ------
    ValueError
        If a name comes twice, or a layer takes the result of one that does not come before it, or shapes do not fit.

    Examples
    --------
    >>> from softnum.tta.architectures import Activation, Dense
    >>> net = Architecture("mlp", (64,), (Dense("fc1", 128), Activation("relu1"), Dense("fc2", 10)))
    >>> net.parameters, net.macs
    (9610, 9472)
    """

    name: str
    input: tuple[int, ...]
    layers: tuple[Layer, ...] = field(repr=False)
    title: str = ""
    source: str = field(default="", repr=False)
    published: Mapping[str, int | float] = field(default_factory=dict, repr=False, compare=False)
    part: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError(f"network {self.name!r} has no layer")
        for size in self.input:
            positive_int(size, f"network {self.name!r}: input")
        seen = {""}
        for layer in self.layers:
            if layer.name in seen:
                raise ValueError(f"network {self.name!r} has two layers called {layer.name!r}")
            for name in layer.inputs:
                if name not in seen:
                    near = difflib.get_close_matches(name, seen, n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise ValueError(
                        f"network {self.name!r}: layer {layer.name!r} takes {name!r}, which is not before it{hint}"
                    )
            seen.add(layer.name)
        assert len(self.shapes) == len(self.layers)  # which raises where shapes do not fit

    @cached_property
    def _inputs(self) -> dict[str, tuple[str, ...]]:
        """Layer -> those whose results it takes; "" is the network's input."""
        before, found = "", {}
        for layer in self.layers:
            found[layer.name] = layer.inputs or (before,)
            before = layer.name
        return found

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Layer -> shape of its result for one sample."""
        found = {"": self.input}
        for layer in self.layers:
            found[layer.name] = layer.result(tuple(found[name] for name in self._inputs[layer.name]))
        del found[""]
        return found

    def shapes_into(self, layer: Layer) -> tuple[tuple[int, ...], ...]:
        """Shapes of what a layer takes."""
        return tuple(self.shapes.get(name, self.input) for name in self._inputs[layer.name])

    def taken_by(self, layer: Layer) -> tuple[str, ...]:
        """Layers whose results a layer takes; "" is the network's input."""
        return self._inputs[layer.name]

    @cached_property
    def parameters(self) -> int:
        """Trained numbers."""
        return sum(sum(layer.parameters(self.shapes_into(layer)).values()) for layer in self.layers)

    @cached_property
    def macs(self) -> int:
        """Multiplications and additions of the forward products of one sample."""
        return sum(
            product.macs or product.m * product.n * product.k * product.count
            for layer in self.layers
            for product in layer.products(self.shapes_into(layer), 1)
            if product.stage == "forward"
        )

    @cached_property
    def needs_gradient(self) -> dict[str, bool]:
        """Layer -> whether anything that it takes depends on trained numbers."""
        depends, found = {"": self.part}, {}
        for layer in self.layers:
            found[layer.name] = any(depends[name] for name in self._inputs[layer.name])
            depends[layer.name] = found[layer.name] or bool(layer.parameters(self.shapes_into(layer)))
        return found

    @cached_property
    def saved(self) -> tuple[str, ...]:
        """Layers whose results the backward pass needs, in order; "" is the network's input."""
        owner = {"": ""}
        needed = set()
        for layer in self.layers:
            taken = [owner[name] for name in self._inputs[layer.name]]
            owner[layer.name] = taken[0] if layer.alias else layer.name
            trains = self.needs_gradient[layer.name] or layer.parameters(self.shapes_into(layer))
            if "input" in layer.saves and trains:
                needed.update(taken)
            if "output" in layer.saves and trains:
                needed.add(owner[layer.name])
        return tuple(name for name in ("", *self.shapes) if name in needed)

    def enters(self, layer: Layer) -> bool:
        """Whether what a layer multiplies is the network's input, which has a format of its own."""
        return layer is self.layers[0] and not self.part

    def check_batch(self, batch: int) -> None:
        """Raise ValueError where the network has no iteration of so many samples."""

    def tensors(self, batch: int, precision: Precision, optimiser: str) -> tuple[StoredTensor, ...]:
        """What memory holds of an iteration."""
        found: list[StoredTensor] = []
        saved = set(self.saved)
        if "" in saved:
            first = precision.at(self.layers[0].name).input
            found.append(feature_map(self.layers[0].name, "input", prod(self.input) * batch, first))
        for layer in self.layers:
            here, shapes, name = precision.at(layer.name), self.shapes_into(layer), layer.name
            for part, count in layer.parameters(shapes).items():
                at = precision.at(f"{name}.{part.rpartition('.')[0]}") if "." in part else here
                changed = min(count, layer.updated(shapes, batch))
                found += parameter_tensors(name, part, count, changed, at, optimiser)
            if name in saved:
                found.append(feature_map(name, "output", prod(self.shapes[name]) * batch, here.activations))
            for what, count in layer.extra(shapes).items():
                found.append(feature_map(name, what, count * batch, here.activations))
            if self.needs_gradient[name] and not layer.passes_gradient:
                found.append(gradient_map(name, "input gradient", batch * sum(map(prod, shapes)), here.errors))
        return tuple(found)


def lower(
    architecture: Architecture,
    batch: int,
    precision: Precision | str = "float32",
    optimiser: str = "sgd",
    *,
    fold: bool = False,
) -> Workload:
    """One training iteration of a network as a workload.

    Operations run forwards, backwards with the last layer first (of a layer backward_data before backward_weight), then
    updates. FLOPs of a matrix product are 2 M N K, but of a strided convolution's backward_data without the zeros that
    its product has (`Conv2d`). Layers whose input needs no gradient have no backward_data. Bytes are those of the true
    tensors, each read or written once: a convolution's feature map, not its unfolded copy. Every layer is an operation
    of its own; none is merged with the one before it. Feature maps are what a backward pass needs, each once; gradient
    maps are the gradients of what layers take. Workspace is not included, since it depends on the device's library.

    Parameters
    ----------
    architecture : Architecture
    batch : int
        Samples of an iteration.
    precision : Precision or str
        Or the name of one: "float32", "mixed-float16", "bfloat16", "fp8".
    optimiser : str
        "sgd", "momentum", "rmsprop" (with momentum) or "adam".
    fold : bool
        Whether to merge the operations of equal layers, under the name of the first. FLOPs, bytes and GEMM counts of
        the whole stay what they are, and so does a sum of times that grow in proportion with both; there are no tensors
        then. For sweeps over thousands of networks.

    Returns
    -------
    Workload

    Raises
    ------
    ValueError
        If the optimiser or the precision is not known, or the batch is not positive.

    Examples
    --------
    >>> from softnum.tta.architectures import Dense
    >>> work = lower(Architecture("two", (64,), (Dense("fc1", 128), Dense("fc2", 10))), 32, "bfloat16", "momentum")
    >>> [(gemm.layer, gemm.phase, gemm.shape) for gemm in work.gemms][:2]
    [('fc1', 'forward', (32, 128, 64)), ('fc2', 'forward', (32, 10, 128))]
    >>> work.parameters, work.operations[0].bytes_read
    (9610, 20480)
    """
    architecture.check_batch(positive_int(batch, "batch"))
    if optimiser not in OPTIMISERS:
        near = difflib.get_close_matches(optimiser, OPTIMISERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"unknown optimiser {optimiser!r}{hint} Known: {', '.join(OPTIMISERS)}")
    precision = Precision.named(precision) if isinstance(precision, str) else precision
    costs = []
    for layer in architecture.layers:
        first = architecture.enters(layer)
        here = precision.at(layer.name)
        shapes, data = architecture.shapes_into(layer), architecture.needs_gradient[layer.name]
        if precision.rules:  # of a recurrent layer's parts each may have formats of its own
            parts = {name: precision.at(f"{layer.name}.{name}") for name in _parts(layer, shapes) if name}
        else:
            parts = {}
        costs.append((layer, _cost(layer.spec, shapes, batch, here, tuple(parts.items()), optimiser, data, first)))
    order = [(layer, cost[0]) for layer, cost in costs]
    order += [(layer, cost[1]) for layer, cost in reversed(costs)]
    order += [(layer, cost[2]) for layer, cost in costs]
    operations = _folded(order) if fold else _named(order)
    tensors = () if fold else architecture.tensors(batch, precision, optimiser)
    return Workload(architecture.name, precision.name, batch, operations, tensors)


def _parts(layer: Layer, shapes) -> dict[str, None]:
    return dict.fromkeys(row.part for row in (*layer.products(shapes, 1), *layer.work(shapes, 1)))


@lru_cache(maxsize=65536)
def _cost(spec, shapes, batch, precision, parts, optimiser, data, first):
    """Operations of a layer, without its name: forwards, backwards, of the update. Each is what `Operation` takes after
    layer and stage, with the GEMM's sizes last."""
    forward, backward = [], []
    of = dict(parts)
    for row in spec.work(shapes, batch):
        if row.stage != "backward_data" or data or row.part:
            (forward if row.stage == "forward" else backward).append(_work(row, of.get(row.part, precision)))
    products = [row for row in spec.products(shapes, batch) if row.stage != "backward_data" or data or row.inner]
    gemms = [(row, _gemm(row, of.get(row.part, precision), first and not row.inner)) for row in products]
    front = [gemm for row, gemm in gemms if row.stage == "forward"]
    back = [gemm for row, gemm in gemms if row.stage != "forward"]
    count = spec.updated(shapes, batch)
    return tuple(front + forward), tuple(back + backward), (_update(count, precision, optimiser),) if count else ()


def _gemm(row: Product, precision: Precision, first: bool) -> tuple[Any, ...]:
    roles = ["input" if first and role == "activations" else role for role in PRODUCT_ROLES[row.stage][:2]]
    left, right = (precision.operand(row.stage, role) for role in roles)
    result = getattr(precision, PRODUCT_ROLES[row.stage][2])
    sizes = (row.m, row.n, row.k, max(left.bits, right.bits), (left.name, right.name), row.count)
    function = dict(precision.functions).get(row.stage, "")
    flops = 2 * (row.macs or row.m * row.n * row.k * row.count)
    read = left.size(row.left) + right.size(row.right)
    return row.part, row.stage, "gemm", flops, read, result.size(row.result), sizes[4], (*sizes, function)


def _work(row: Work, precision: Precision) -> tuple[Any, ...]:
    read, written = (
        sum((role if isinstance(role, StoredFormat) else getattr(precision, role)).size(n) for role, n in moved)
        for moved in (row.reads, row.writes)
    )
    return row.part, row.stage, row.kind, row.flops, read, written, (precision.elementwise.name,), None


def _update(count: int, precision: Precision, optimiser: str) -> tuple[Any, ...]:
    flops, state = OPTIMISERS[optimiser]
    kept = precision.master.size(count) + sum(getattr(precision, role).size(count) for _, role in state)
    working = precision.weights.size(count) if precision.master != precision.weights else 0
    read = kept + precision.weight_gradients.size(count)
    return "", "update", optimiser, flops * count, read, kept + working, (precision.master.name,), None


def _operation(layer: str, row: tuple[Any, ...], times: int = 1) -> Operation:
    part, stage, kind, flops, read, written, formats, sizes = row
    name = f"{layer}.{part}" if part else layer
    gemm = None
    if sizes is not None:
        *shape, bits, names, count, function = sizes
        gemm = Gemm(name, stage, *shape, bits, names, count * times, function=function)
    return Operation(name, stage, kind, flops * times, read * times, written * times, formats, gemm)


def _named(order) -> tuple[Operation, ...]:
    """Each operation with its layer's name; equal products of a layer are one, where the first of them is."""
    found = []
    for layer, rows in order:
        counted: dict[tuple[Any, ...], int] = {}
        for row in rows:
            counted[row] = counted.get(row, 0) + 1
        found += [_operation(layer.name, row, times) for row, times in counted.items()]
    return tuple(found)


def _folded(order) -> tuple[Operation, ...]:
    times: dict[tuple[Any, ...], int] = {}
    first: dict[tuple[Any, ...], str] = {}
    for layer, rows in order:
        for row in rows:
            times[row] = times.get(row, 0) + 1
            first.setdefault(row, layer.name)
    return tuple(_operation(first[row], row, n) for row, n in times.items())


def parameter_tensors(
    layer: str, name: str, count: int, changed: int, precision: Precision, optimiser: str
) -> list[StoredTensor]:
    """A trained tensor, the gradient of what an iteration changes of it, and what the optimiser keeps beside it."""
    found = [
        _tensor(layer, name, "weights", count, precision.weights),
        _tensor(layer, name, "weight_gradients", changed, precision.weight_gradients, "backward_weight"),
    ]
    if precision.master != precision.weights:
        found.append(_tensor(layer, f"{name} master", "optimiser_state", count, precision.master, "update"))
    for state, role in OPTIMISERS[optimiser][1]:
        kept = getattr(precision, role)
        found.append(_tensor(layer, f"{name} {state}", "optimiser_state", count, kept, "update"))
    return found


def _tensor(layer: str, name: str, kind: str, count: int, fmt, stage: str = "forward") -> StoredTensor:
    return StoredTensor(layer, name, kind, count, fmt.bits, fmt.name, False, stage)


def feature_map(layer: str, name: str, count: int, fmt: StoredFormat) -> StoredTensor:
    """What the forward pass keeps for the backward pass."""
    return StoredTensor(layer, name, "feature_maps", count, fmt.bits, fmt.name, True)


def gradient_map(layer: str, name: str, count: int, fmt: StoredFormat) -> StoredTensor:
    """The gradient of what a layer takes."""
    return StoredTensor(layer, name, "gradient_maps", count, fmt.bits, fmt.name, True, "backward_data")
