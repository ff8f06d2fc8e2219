"""A part of a network on one device: what it computes and sends for a micro-batch, and what it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from softnum.tta.architectures.attention_layers import Attention
from softnum.tta.architectures.communication_layers import Traffic
from softnum.tta.architectures.expert_layers import ExpertDense
from softnum.tta.architectures.layers import Dense, Layer
from softnum.tta.architectures.lowering import Architecture, lower
from softnum.tta.architectures.precision import Precision
from softnum.tta.parallelism.communication import Communication
from softnum.tta.parallelism.ways import Parallelism
from softnum.tta.workloads.memory import memory_of
from softnum.tta.workloads.operations import Operation, StoredTensor, Workload

__all__ = ["Block", "Item", "make_block"]

Item = Operation | Communication


@dataclass(frozen=True)
class Block:
    """Layers that a device computes together: the embedding, a layer of a decoder, the last layer.

    Parameters
    ----------
    kind : str
    forward, backward : tuple of Operation or Communication
        Of one micro-batch, in order; the backward pass begins with what it computes again.
    update : tuple of Operation or Communication
        Once a step: the exchange of gradients, the optimiser, that of weights.
    tensors : tuple of StoredTensor
        Of one micro-batch.
    held : int
        Bytes that are kept of a micro-batch until its backward pass.
    working : int
        The most bytes of a backward pass: gradients of what layers take, and what is computed again.
    again : int
        Of these, what is computed again.
    experts : frozenset of str
        Layers whose weights are experts'.

    Examples
    --------
    >>> Block("empty", (), (), (), (), 0, 0).weights("data")
    0
    """

    kind: str
    forward: tuple[Item, ...] = field(repr=False)
    backward: tuple[Item, ...] = field(repr=False)
    update: tuple[Item, ...] = field(repr=False)
    tensors: tuple[StoredTensor, ...] = field(repr=False)
    held: int
    working: int
    again: int = 0
    experts: frozenset[str] = field(default=frozenset(), repr=False)

    def group(self, layer: str) -> str:
        """Which devices hold a layer's weights too."""
        return "expert_data" if layer in self.experts else "data"

    def weights(self, group: str) -> int:
        """Bytes of the weights that a kind of group shares."""
        rows = (t for t in self.tensors if t.tensor_class == "weights")
        return sum(tensor.bytes for tensor in rows if self.group(tensor.layer) == group)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of its layers with trained numbers."""
        return tuple(dict.fromkeys(t.layer for t in self.tensors if t.tensor_class == "weight_gradients"))

    def called(self, prefix: str) -> Block:
        """The same with a prefix before the names of its layers."""
        if not prefix:
            return self

        def named(items: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(_named(item, prefix) for item in items)

        return replace(
            self, forward=named(self.forward), backward=named(self.backward), update=named(self.update),
            tensors=named(self.tensors), experts=frozenset(prefix + name for name in self.experts),
        )  # fmt: skip


def _named(item, prefix: str):
    gemm = getattr(item, "gemm", None)
    more = {} if gemm is None else {"gemm": replace(gemm, layer=prefix + gemm.layer)}
    return replace(item, layer=prefix + item.layer, **more)


def make_block(
    kind: str, layers: Iterable[Layer], shape: tuple[int, ...], ways: Parallelism, precision: Precision, optimiser: str,
    *, part: bool = True, recompute: bool = True,
) -> Block:  # fmt: skip
    """What a device has of some layers.

    Parameters
    ----------
    kind : str
    layers : iterable of Layer
        The device's part of them.
    shape : tuple of int
        Of their input, for one sample.
    ways : Parallelism
    precision : Precision
    optimiser : str
    part : bool
        Whether their input needs a gradient.
    recompute : bool
        Whether what the ways say of recomputation is of these layers.

    Returns
    -------
    Block

    Examples
    --------
    >>> from softnum.tta.architectures import Dense
    >>> block = make_block("one", [Dense("fc", 8)], (4,), Parallelism(data=2), Precision.named("float32"), "sgd")
    >>> [item.kind for item in (*block.forward, *block.backward, *block.update)]
    ['gemm', 'gemm', 'gemm', 'bias', 'all_reduce', 'sgd']
    """
    net = Architecture(kind, shape, tuple(layers), part=part)
    work = lower(net, ways.micro_batch, precision, optimiser)
    found: dict[str, dict[str, list[Operation]]] = {layer.name: {} for layer in net.layers}
    for operation in work.operations:
        found[_owner(operation.layer, found)].setdefault(operation.stage, []).append(operation)
    traffic = {layer.name: _sent(layer, net.shapes_into(layer), ways.micro_batch, precision) for layer in net.layers}
    forward, backward, again, update = [], [], set(), []
    for layer in net.layers:
        forward += found[layer.name].get("forward", [])
        forward += [row for row in traffic[layer.name] if row.stage == "forward"]
    for layer in reversed(net.layers):
        own = [op for stage in ("backward_data", "backward_weight") for op in found[layer.name].get(stage, ())]
        for name in net.taken_by(layer) if own else ():
            if name in traffic and name not in again:  # what was gathered is not kept
                again.add(name)
                backward += [row for row in traffic[name] if row.stage == "backward_weight"]
        order = {id(op): n for n, op in enumerate(work.operations)}
        backward += sorted(own, key=lambda op: order[id(op)])
        backward += [row for row in traffic[layer.name] if row.stage == "backward_data"]
    experts = frozenset(layer.name for layer in net.layers if isinstance(layer, ExpertDense))
    maps = sum(tensor.bytes for tensor in work.tensors if tensor.tensor_class == "feature_maps")
    held, working = maps, _gradient_maps(work)
    kept = ways.recompute if recompute else "none"
    if kept == "full":
        first = precision.at(net.layers[0].name).activations
        held = first.size(prod(shape) * ways.micro_batch)
        working += maps - held
        backward = forward + backward
    elif kept == "alternate":
        products = [layer.name for layer in net.layers if isinstance(layer, (Dense, ExpertDense))][::2]
        stays = {*products, *(layer.name for layer in net.layers if isinstance(layer, Attention))}
        held = precision.at(net.layers[0].name).activations.size(prod(shape) * ways.micro_batch)
        held += sum(precision.at(name).activations.size(prod(net.shapes[name]) * ways.micro_batch) for name in stays)
        held += sum(t.bytes for t in work.tensors if t.layer in stays and t.name in ("statistics", "probabilities"))
        working += max(0, maps - held)
        backward = [item for item in forward if item.layer not in stays] + backward
    elif kept == "selective" and not ways.fused:
        scores = {tensor.layer for tensor in work.tensors if tensor.name == "probabilities"}
        lost = sum(tensor.bytes for tensor in work.tensors if tensor.name == "probabilities")
        held, working = maps - lost, working + lost
        backward = [item for item in forward if item.layer in scores] + backward
    block = Block(kind, tuple(forward), tuple(backward), (), work.tensors, held, working, max(0, maps - held), experts)
    gather, reduce, update = _updates(block, work, ways, precision)
    return replace(
        block, forward=(*gather, *forward), backward=(*gather, *backward, *reduce), update=tuple(update)
    )  # fmt: skip


def _owner(name: str, layers) -> str:
    while name not in layers:
        name = name.rpartition(".")[0]
    return name


def _sent(layer: Layer, shapes, batch: int, precision: Precision) -> list[Communication]:
    rows: list[Traffic] = layer.traffic(shapes, batch) if hasattr(layer, "traffic") else []
    formats = precision.at(layer.name)
    return [
        Communication(
            layer.name, row.stage, row.kind, row.group, getattr(formats, row.role).size(row.elements),
            getattr(formats, row.role).name, getattr(layer, "copies", 1),
        )
        for row in rows
    ]  # fmt: skip


def _gradient_maps(work: Workload) -> int:
    own = tuple(tensor for tensor in work.tensors if tensor.tensor_class == "gradient_maps")
    return memory_of(replace(work, tensors=own)).peak if own else 0


def _updates(block: Block, work: Workload, ways: Parallelism, precision: Precision):
    """The weights' gather, the gradients' exchange of each micro-batch (both of ZeRO 3 only), and the update."""
    gradients: dict[str, int] = {}
    weights: dict[str, int] = {}
    for tensor in work.tensors:
        sizes = {"weights": weights, "weight_gradients": gradients}.get(tensor.tensor_class)
        if sizes is not None:
            sizes[tensor.layer] = sizes.get(tensor.layer, 0) + tensor.bytes

    def exchange(stage: str, kind: str, sizes: dict[str, int], role: str) -> list[Communication]:
        return [
            Communication(name, stage, kind, block.group(name), size, getattr(precision.at(name), role).name)
            for name, size in sizes.items()
            if ways.size(block.group(name)) > 1
        ]

    optimiser = [_shared(op, ways, block) for op in work.operations if op.stage == "update"]
    backwards = dict(reversed(gradients.items()))
    if ways.zero == 3:
        gather = exchange("forward", "all_gather", weights, "weights")
        return gather, exchange("backward_weight", "reduce_scatter", backwards, "weight_gradients"), optimiser
    kind = "reduce_scatter" if ways.zero else "all_reduce"
    first = exchange("backward_weight", kind, backwards, "weight_gradients")
    last = exchange("update", "all_gather", weights, "weights") if ways.zero else []
    return [], [], [*first, *optimiser, *last]


def _shared(op: Operation, ways: Parallelism, block: Block) -> Operation:
    """A device's part of an update."""
    n = ways.size(block.group(op.layer)) if ways.zero else 1
    return replace(
        op, flops=-(-op.flops // n), bytes_read=-(-op.bytes_read // n), bytes_written=-(-op.bytes_written // n)
    )
