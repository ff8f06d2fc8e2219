"""Feed-forward layers of language models: gates, and mixtures of experts. The table of their work is in `layers`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from softnum.tta.architectures.layers import Layer, Product, Shape, Work, dense_products

__all__ = ["Combine", "Dispatch", "ExpertDense", "Gate", "Router"]


@dataclass(frozen=True)
class Gate(Layer):
    """The first half of the features through SiLU, times the second (N. Shazeer, "GLU Variants", 2020).

    Examples
    --------
    >>> Gate("gate").result(((8, 28672),))
    (8, 14336)
    """

    saves = "input"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps and half the features."""
        steps, features = self.of_rank(shapes, (2,), "steps of features")
        if features % 2:
            self.fail(f"takes an even number of features, got {features}")
        return steps, features // 2

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n = batch * prod(self.result(shapes))
        x, y, errors = ("activations", 2 * n), ("activations", n), ("errors", n)
        return [
            Work("forward", "swiglu", 3 * n, (x,), (y,)),
            Work("backward_data", "swiglu", 8 * n, (x, errors), (("errors", 2 * n),)),
        ]


@dataclass(frozen=True)
class Router(Layer):
    """Which experts a step goes to, and with what weight: a product, a softmax or sigmoid, the largest.

    Parameters
    ----------
    name : str
    experts, chosen : int
    bias : bool
        Whether each expert has a number that is added for the choice alone, which balances their load.

    Examples
    --------
    >>> Router("router", 256, 8, True).parameters(((4096, 7168),))
    {'weight': 1835008, 'bias': 256}
    """

    experts: int
    chosen: int
    bias: bool = False

    saves = "input, output"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps and a weight for each chosen expert."""
        return self.of_rank(shapes, (2,), "steps of features")[0], self.chosen

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Weight, and bias of the choice."""
        return {"weight": shapes[0][1] * self.experts} | ({"bias": self.experts} if self.bias else {})

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """One a pass."""
        return dense_products(batch * shapes[0][0], shapes[0][1], self.experts)

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The softmax and the choice."""
        n = batch * shapes[0][0] * self.experts
        x, y = ("activations", n), ("activations", batch * prod(self.result(shapes)))
        return [
            Work("forward", "softmax", 6 * n, (x,), (x, y)),
            Work("backward_data", "softmax", 4 * n, (x, y), (("errors", n),)),
        ]

    def extra(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """The scores."""
        return {"scores": shapes[0][0] * self.experts}


@dataclass(frozen=True)
class Dispatch(Layer):
    """Each step once for each expert that it goes to, in the experts' order.

    Parameters
    ----------
    name : str
    chosen : int
        Experts of a step.

    Examples
    --------
    >>> Dispatch("dispatch", 8).result(((4096, 7168),))
    (32768, 7168)
    """

    chosen: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Copies and features."""
        steps, features = self.of_rank(shapes, (2,), "steps of features")
        return steps * self.chosen, features

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The copies; backwards their sum."""
        x, y = batch * prod(shapes[0]), batch * prod(self.result(shapes))
        return [
            Work("forward", "dispatch", 0, (("activations", x),), (("activations", y),)),
            Work("backward_data", "dispatch", y - x, (("errors", y),), (("errors", x),)),
        ]


@dataclass(frozen=True)
class Combine(Layer):
    """The experts' results of each step, added with the router's weights. Its inputs are both.

    Parameters
    ----------
    name : str
    chosen : int

    Examples
    --------
    >>> Combine("combine", 8, inputs=("experts", "router")).result(((32768, 7168), (4096, 8)))
    (4096, 7168)
    """

    chosen: int

    saves = "input"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps and features."""
        copies, features = shapes[0]
        if len(shapes) != 2 or copies != shapes[1][0] * self.chosen:
            self.fail(f"takes {self.chosen} results a step and the router's weights, got {', '.join(map(str, shapes))}")
        return copies // self.chosen, features

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n, y = batch * prod(shapes[0]), batch * prod(self.result(shapes))
        return [
            Work("forward", "combine", 2 * n, (("activations", n),), (("activations", y),)),
            Work("backward_data", "combine", 3 * n, (("activations", n), ("errors", y)), (("errors", n),)),
        ]


@dataclass(frozen=True)
class ExpertDense(Layer):
    """x @ weight with a weight for each expert, on an even share of the rows (`Dispatch` puts them in order).

    Rows that cannot be shared evenly make the first experts' products one row larger; an expert without rows has none.

    Parameters
    ----------
    name : str
    experts, outputs : int

    Examples
    --------
    >>> layer = ExpertDense("up", 8, 14336)
    >>> layer.parameters(((8192, 4096),)), layer.products(((8192, 4096),), batch=1)[0][:4]
    ({'weight': 469762048}, ('forward', 1024, 14336, 4096))
    """

    experts: int
    outputs: int

    saves = "input"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Rows with `outputs` features."""
        return self.of_rank(shapes, (2,), "rows of features")[0], self.outputs

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """A weight for each expert."""
        return {"weight": self.experts * shapes[0][1] * self.outputs}

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """One a pass and expert."""
        rows, inputs = shapes[0]
        each, more = divmod(batch * rows, self.experts)
        found: list[Product] = []
        for size, count in ((each + 1, more), (each, self.experts - more)):
            if size and count:
                found += [
                    row._replace(left=count * row.left, right=count * row.right, result=count * row.result, count=count)
                    for row in dense_products(size, inputs, self.outputs)
                ]
        return sorted(found, key=lambda row: row.stage != "forward")
