"""A graph of ONNX as a network that is timed: its nodes' work, and what memory holds of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from softnum.tta.architectures.layers import Layer, Product, Shape, Work
from softnum.tta.architectures.lowering import Architecture, feature_map, gradient_map, parameter_tensors
from softnum.tta.architectures.precision import Precision, StoredFormat
from softnum.tta.onnx.files import input_dims, load_model, type_bits
from softnum.tta.onnx.values import Op, Rows
from softnum.tta.onnx.walk import RULES, walk
from softnum.tta.workloads.operations import StoredTensor

__all__ = ["Graph", "Node", "read_onnx"]

#: Operators after which a trained tensor is itself, in another layout.
_LAYOUTS = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "CastLike")


@dataclass(frozen=True)
class Node(Layer):
    """A node with the work of a whole batch.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of its first result, batch and all.
    rows : tuple of Product
    other : tuple of Work
    trained : tuple of (str, int)
        Trained tensors that it is the first to use, and their elements.
    saved : tuple of (str, str, int, int)
        What its backward pass needs and no node before it: layer, name, elements, bits (0: of the precision).
    gradients : int
        Elements of its inputs' gradients.
    enters : bool
        Whether it takes the graph's input.
    kind : str
        Its operator.
    """

    shape: tuple[int, ...]
    rows: tuple[Product, ...] = field(default=(), repr=False)
    other: tuple[Work, ...] = field(default=(), repr=False)
    trained: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    saved: tuple[tuple[str, str, int, int], ...] = field(default=(), repr=False)
    gradients: int = field(default=0, repr=False)
    enters: bool = field(default=False, repr=False)
    kind: str = ""

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Its shape."""
        return self.shape

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Its trained tensors."""
        return dict(self.trained)

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """Those of the whole batch."""
        return list(self.rows)

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """That of the whole batch."""
        return list(self.other)


@dataclass(frozen=True)
class Graph(Architecture):
    """A network from an ONNX file, with shapes of one batch.

    `softnum.tta.lower` makes a workload of it: one iteration of training, whose backward pass begins at given gradients
    of the results, or its forward pass alone by `softnum.tta.estimates.inference`. `macs` are those of the batch.

    Parameters
    ----------
    name : str
    input : tuple of int
        Shape of the first input.
    layers : tuple of Node
    batch : int
        Samples of an iteration: the first dimension of the first input.
    title, source, published, part
        As of `Architecture`.
    """

    batch: int = 1

    def check_batch(self, batch: int) -> None:
        """ValueError unless it is the graph's own."""
        if batch != self.batch:
            raise ValueError(f"{self.name} was read with a batch of {self.batch}, not {batch}; read it again with that")

    def enters(self, layer: Layer) -> bool:
        """Whether a node takes the graph's input."""
        return isinstance(layer, Node) and layer.enters

    @cached_property
    def needs_gradient(self) -> dict[str, bool]:
        """All: a node's rows are those that are needed."""
        return {layer.name: True for layer in self.layers}

    @property
    def operators(self) -> dict[str, int]:
        """Operators and how many nodes of each there are that compute something."""
        found: dict[str, int] = {}
        for layer in self.layers:
            found[layer.kind] = found.get(layer.kind, 0) + 1
        return found

    def tensors(self, batch: int, precision: Precision, optimiser: str) -> tuple[StoredTensor, ...]:
        """What memory holds of an iteration: values in whose memory views lie are held once."""
        found = []
        for layer in self.layers:
            here = precision.at(layer.name)
            for name, count in layer.trained:
                found += parameter_tensors(layer.name, name, count, count, here, optimiser)
            for owner, name, count, bits in layer.saved:
                at = precision.at(owner)
                fmt = StoredFormat(f"{bits}-bit", bits) if bits else at.input if name == "input" else at.activations
                found.append(feature_map(owner, name, count, fmt))
            if layer.gradients:
                found.append(gradient_map(layer.name, "input gradient", layer.gradients, here.errors))
        return tuple(found)


def read_onnx(path: str | os.PathLike, dims: Mapping[str, int] | None = None, batch: int | None = None) -> Graph:
    """Read a network from an ONNX file.

    Shapes are found by onnx's own inference, node by node; weights are not needed, but small ones that are shapes or
    axes. Which initializers are trained a file does not say: those of more than one floating-point number are, but for
    running means and variances. Formats of floating point are the design's, whatever the file's are; integers and truth
    values keep theirs.

    Parameters
    ----------
    path : path-like
    dims : Mapping of str to int
        Sizes of dynamic dimensions by their names; one without a name is called INPUT:AXIS, like x:0.
    batch : int, optional
        Samples of an iteration: the first dimension of the first input, if that is dynamic.

    Returns
    -------
    Graph

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file or it is not whole; a dynamic dimension has no size; an operator is not known; or a
        shape depends on values. The message names the file and the node.

    Examples
    --------
    >>> import os, tempfile
    >>> from onnx import TensorProto, helper, save
    >>> shapes = {"x": ["batch", 64], "w": [64, 10], "y": ["batch", 10]}
    >>> x, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    >>> weight = helper.make_tensor("w", TensorProto.FLOAT, [64, 10], bytes(2560), raw=True)
    >>> graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "fc")], "one", [x], [y], [weight])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(helper.make_model(graph), os.path.join(folder, "one.onnx"))
    ...     net = read_onnx(os.path.join(folder, "one.onnx"), batch=32)
    >>> net.parameters, net.macs, net.operators
    (640, 20480, {'MatMul': 1})
    """
    path = Path(path)
    try:
        return _read(path, dims or {}, batch)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: a name in it is no text of UTF-8 ({error.reason})") from None


def _read(path: Path, dims: Mapping[str, int], batch: int | None) -> Graph:
    model = load_model(path)
    shapes, samples = input_dims(path, model, dims, batch)
    held: dict[str, int] = {tensor.name: _elements(tensor) for tensor in model.graph.initializer}
    made: dict[int, tuple[str, str]] = {}  # a value's memory -> layer and name
    kept: set[int] = set()
    trained: set[str] = set()
    nodes = []
    for op in walk(path, model, shapes):
        if op.kind in _LAYOUTS and op.x.parameter and op.y.floating:
            op.y.parameter, op.y.memory = op.x.parameter, op.x.owner
            continue
        try:
            rows = RULES[op.kind](op)
        except (IndexError, TypeError, ZeroDivisionError) as error:  # ranks and attributes that no such node has
            sizes = [None if value is None else list(value.shape) for value in op.inputs]
            raise ValueError(f"{path}: node {op.name!r} ({op.kind}) takes no operands of the shapes {sizes}") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if rows.view:
            op.y.memory = op.x.owner
            continue
        for value in op.inputs:
            if value is not None and value.owner.name in shapes:
                made.setdefault(id(value.owner), (op.name, "input"))
        for index, value in enumerate(op.outputs):
            if value is not None:
                made[id(value)] = (op.name, f"output {index}" if index else "output")
        nodes.append(_node(op, rows, held, made, kept, trained, shapes))
    first = next(iter(shapes.values()), ())
    if not nodes:
        raise ValueError(f"{path} computes nothing from its inputs")
    return Graph(path.stem, first, tuple(nodes), model.graph.name, str(path), batch=samples)


def _elements(tensor) -> int:
    count = 1
    for size in tensor.dims:
        count *= size
    return count


def _node(op: Op, rows: Rows, held, made, kept: set[int], trained: set[str], shapes) -> Node:
    taken = [value for value in op.inputs if value is not None]
    new = dict.fromkeys(v.parameter for v in taken if v.parameter and v.parameter not in trained)
    trained.update(new)
    saved = []
    for value in (value.owner for value in rows.saves):
        if value.parameter or value.constant or id(value) in kept:
            continue
        kept.add(id(value))
        saved.append((*made[id(value)], value.size, 0 if value.floating else type_bits(value.kind)))
    saved += [(op.name, what, count, 0) for what, count in rows.kept.items()]
    gradients = 0 if rows.passes else sum(value.size for value in taken if value.needs and not value.parameter)
    shape = next(value.shape for value in op.outputs if value is not None)
    return Node(
        op.name, shape, tuple(rows.products), tuple(rows.work), tuple((name, held[name]) for name in new),
        tuple(saved), gradients, any(value.owner.name in shapes for value in taken), op.kind,
    )  # fmt: skip
