"""What the rules of operators are given and return: values with shapes, nodes, rows of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, NoReturn

from softnum.tta.architectures.layers import Product, Work
from softnum.tta.architectures.precision import StoredFormat
from softnum.tta.onnx.files import FLOATS, type_bits

__all__ = ["Op", "Rows", "Value"]


@dataclass(eq=False)
class Value:
    """A tensor of a graph.

    Parameters
    ----------
    name : str
    shape : tuple of int
    kind : int
        Its type, by ONNX's number.
    constant : bool
        Whether neither inputs nor trained numbers enter it.
    parameter : str
        The trained tensor that it is, in whatever layout.
    needs : bool
        Whether the backward pass computes its gradient.
    known : numpy.ndarray or None
        A small constant's value.
    memory : Value or None
        The value whose memory it is; None: its own.
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    constant: bool = False
    parameter: str = ""
    needs: bool = False
    known: Any = None
    memory: Value | None = None

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def floating(self) -> bool:
        """Whether its numbers are of floating point."""
        return self.kind in FLOATS

    @property
    def owner(self) -> Value:
        """The value in whose memory it lies."""
        return self.memory or self

    def moved(self, role: str = "") -> tuple[str | StoredFormat, int]:
        """Role or format, and elements, for `Work`: numbers that are no floating point keep the type of the file."""
        if not self.floating:
            bits = type_bits(self.kind)
            return StoredFormat(f"{bits}-bit", bits), self.size
        return role or ("weights" if self.parameter or self.constant else "activations"), self.size

    def gradient(self) -> tuple[str, int]:
        """The same of its gradient."""
        return "weight_gradients" if self.parameter else "errors", self.size


@dataclass
class Op:
    """A node of a graph as a rule sees it: None stands for an input or output that is left out."""

    kind: str
    name: str
    inputs: list[Value | None]
    outputs: list[Value | None]
    attributes: Mapping[str, Any]
    version: int

    @property
    def x(self) -> Value:
        """The first input."""
        return self.need(0)

    @property
    def y(self) -> Value:
        """The first output."""
        found = self.outputs[0] if self.outputs else None
        return self.fail("has no first output") if found is None else found

    def input(self, index: int) -> Value | None:
        """An input, or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def need(self, index: int) -> Value:
        """An input that must be there."""
        found = self.input(index)
        return self.fail(f"lacks its input {index}") if found is None else found

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or what ONNX says it is where it is left out."""
        return self.attributes.get(name, default)

    def refuse(self, *names: str) -> None:
        """ValueError where one of these attributes says other than the default, which is nothing, 0 or 1."""
        for name in names:
            if self.attributes.get(name):
                self.fail(f"has {name} = {self.attributes[name]!r}, which is not counted")

    def fail(self, text: str) -> NoReturn:
        """Raise ValueError, naming the node."""
        raise ValueError(f"node {self.name!r} ({self.kind}): {text}")


@dataclass
class Rows:
    """What a rule found of a node.

    Parameters
    ----------
    products : list of Product
    work : list of Work
    saves : list of Value
        What its backward pass needs of inputs and outputs.
    kept : dict of str to int
        Elements of what it keeps beside them.
    view : bool
        Whether its results are its first input's memory, with its gradient.
    passes : bool
        Whether its inputs' gradients are its result's.
    """

    products: list[Product] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    saves: list[Value] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=dict)
    view: bool = False
    passes: bool = False
