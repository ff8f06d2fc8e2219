"""Layers that compute nothing and send: what one device of several has between those that it computes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from softnum.tta.architectures.layers import Layer, Shape

__all__ = ["AllToAll", "Gather", "Scatter", "SumBackward", "SumForward", "Traffic"]


class Traffic(NamedTuple):
    """What a layer sends: the elements of the whole vector (before a reduce-scatter, after an all-gather; of an
    all-to-all what one device sends), and the role that says in which format."""

    stage: str
    kind: str
    group: str
    elements: int
    role: str


@dataclass(frozen=True)
class _Communication(Layer):
    """Among `ways` devices of a group.

    Parameters
    ----------
    name : str
    group : str
        "tensor", "context" or "expert".
    ways : int
    """

    group: str
    ways: int

    alias = True
    passes_gradient = True

    def traffic(self, shapes: tuple[Shape, ...], batch: int) -> list[Traffic]:
        """What it sends in both passes."""
        raise NotImplementedError

    def _both(self, forward: str, backward: str, elements: int) -> list[Traffic]:
        rows = (("forward", forward, "activations"), ("backward_data", backward, "errors"))
        return [Traffic(stage, kind, self.group, elements, role) for stage, kind, role in rows if kind]


@dataclass(frozen=True)
class Gather(_Communication):
    """The steps of all devices; backwards their sum, each device its own steps. Its memory is that of its input: what
    the backward pass needs of the others is sent again.

    >>> layer = Gather("gather", "tensor", 8)
    >>> layer.result(((1024, 4096),)), [row[1] for row in layer.traffic(((1024, 4096),), 1)]
    ((8192, 4096), ['all_gather', 'reduce_scatter', 'all_gather'])
    """

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps of all devices."""
        steps, features = self.of_rank(shapes, (2,), "steps of features")
        return steps * self.ways, features

    def traffic(self, shapes: tuple[Shape, ...], batch: int) -> list[Traffic]:
        """An all-gather, and backwards a reduce-scatter and the all-gather again."""
        elements = batch * prod(self.result(shapes))
        again = Traffic("backward_weight", "all_gather", self.group, elements, "activations")
        return [*self._both("all_gather", "reduce_scatter", elements), again]


@dataclass(frozen=True)
class Scatter(_Communication):
    """The sum over all devices, each device its own steps; backwards the steps of all.

    >>> Scatter("scatter", "tensor", 8).result(((8192, 4096),))
    (1024, 4096)
    """

    alias = False

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Its own steps."""
        steps, features = self.of_rank(shapes, (2,), "steps of features")
        if steps % self.ways:
            self.fail(f"{self.ways} devices do not divide {steps} steps; take a sequence that they divide")
        return steps // self.ways, features

    def traffic(self, shapes: tuple[Shape, ...], batch: int) -> list[Traffic]:
        """A reduce-scatter, and backwards an all-gather."""
        return self._both("reduce_scatter", "all_gather", batch * prod(shapes[0]))


@dataclass(frozen=True)
class SumForward(_Communication):
    """The sum over all devices; backwards nothing.

    >>> [row[:2] for row in SumForward("sum", "tensor", 8).traffic(((8192, 4096),), 1)]
    [('forward', 'all_reduce')]
    """

    def traffic(self, shapes: tuple[Shape, ...], batch: int) -> list[Traffic]:
        """An all-reduce on the way forwards."""
        return self._both("all_reduce", "", batch * prod(shapes[0]))


@dataclass(frozen=True)
class SumBackward(_Communication):
    """The same values on all devices; backwards the sum.

    >>> [row[:2] for row in SumBackward("copy", "tensor", 8).traffic(((8192, 4096),), 1)]
    [('backward_data', 'all_reduce')]
    """

    def traffic(self, shapes: tuple[Shape, ...], batch: int) -> list[Traffic]:
        """An all-reduce on the way back."""
        return self._both("", "all_reduce", batch * prod(shapes[0]))


@dataclass(frozen=True)
class AllToAll(_Communication):
    """Each device sends an even share of its rows to each other one; backwards they return.

    Parameters
    ----------
    copies : int
        How often each step is among the rows.

    Examples
    --------
    >>> AllToAll("dispatch", "expert", 8).result(((8192, 4096),))
    (8192, 4096)
    """

    copies: int = 1

    alias = False

    def traffic(self, shapes: tuple[Shape, ...], batch: int) -> list[Traffic]:
        """An all-to-all in both passes."""
        return self._both("all_to_all", "all_to_all", batch * prod(shapes[0]))
