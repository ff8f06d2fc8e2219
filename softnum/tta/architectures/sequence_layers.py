"""Layers of sequences: embeddings, recurrent cells. The table of their work is in `layers`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from softnum.tta.architectures.layers import (
    Layer,
    Product,
    Shape,
    Work,
    bias_gradient,
    dense_products,
    normalisation_work,
)

__all__ = ["Embedding", "LayerNorm", "Position", "Recurrent", "state_products"]

#: Of each kind of cell: how many times its hidden size it reads; what its weights make, in order; FLOPs per step and
#: unit, forwards and backwards; numbers per step and unit that are kept beside its state.
CELLS = {
    "rnn": (1, (1,), 1, 4, 0),
    "lstm": (4, (4,), 9, 23, 5),
    "gru": (3, (2, 1), 7, 18, 3),
}


@dataclass(frozen=True)
class Embedding(Layer):
    """A row of weights for each word of a sample. The words' own bytes are not counted.

    Parameters
    ----------
    name : str
    words, features : int

    Examples
    --------
    >>> Embedding("embedding", 1000, 64).result(((50,),))
    (50, 64)
    """

    words: int
    features: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps and features."""
        return (*self.of_rank(shapes, (1,), "steps of words"), self.features)

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """The table."""
        return {"weight": self.words * self.features}

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Rows copied, and their gradients added."""
        n = batch * prod(self.result(shapes))
        return [
            Work("forward", "embedding", 0, (("weights", n),), (("activations", n),)),
            Work("backward_weight", "embedding", n, (("errors", n),), (("weight_gradients", n),)),
        ]


@dataclass(frozen=True)
class Position(Layer):
    """What tells steps apart, added to them: a table of sines, or learned rows.

    Parameters
    ----------
    name : str
    rows : int
        Learned rows of the table; 0: sines, which have no parameters.

    Examples
    --------
    >>> Position("position", 512).parameters(((128, 768),))
    {'weight': 393216}
    """

    rows: int = 0

    passes_gradient = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Its input's shape."""
        shape = self.of_rank(shapes, (2,), "steps of features")
        if 0 < self.rows < shape[0]:
            self.fail(f"{self.rows} rows for {shape[0]} steps")
        return shape

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """The learned table."""
        return {"weight": self.rows * shapes[0][1]} if self.rows else {}

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The sum, and that of the gradients of each row."""
        one = prod(shapes[0])
        x = ("activations", batch * one)
        found = [Work("forward", "add", batch * one, (x, ("weights", one)), (x,))]
        if self.rows:
            moved = (("errors", batch * one),), (("weight_gradients", one),)
            found.append(Work("backward_weight", "add", batch * one, *moved))
        return found


@dataclass(frozen=True)
class LayerNorm(Layer):
    """Normalisation of each step over its features, with gain and bias.

    Examples
    --------
    >>> LayerNorm("norm").parameters(((128, 768),))
    {'weight': 768, 'bias': 768}
    """

    saves = "input"

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Gain and bias."""
        return {"weight": shapes[0][-1], "bias": shapes[0][-1]}

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        return normalisation_work("layer_norm", batch * prod(shapes[0]), shapes[0][-1])


def state_products(batch: int, hidden: int, outputs: int, times: int, part: str) -> list[Product]:
    """Those of a state with weights that make so many outputs of it, so many times: one a pass."""
    h, weight, z = batch * hidden, outputs * hidden, batch * outputs
    sizes = (
        ("forward", batch, outputs, hidden, h, weight, z),
        ("backward_data", batch, hidden, outputs, z, weight, h),
        ("backward_weight", hidden, outputs, batch, h, z, weight),
    )
    return [Product(*size[:4], *(n * times for n in size[4:]), times, part, inner=True) for size in sizes]


@dataclass(frozen=True)
class Recurrent(Layer):
    """A recurrent layer: one product reads the input of all steps, then each step multiplies its hidden state.

    The first state is 0 and is not multiplied, so a sample of T steps has T - 1 products of the state in each pass, as
    in `softnum.train`; each of them reads the weights. Its operations belong to ``<name>.input`` and ``<name>.hidden``,
    of the direction from the last step to the first to ``<name>.reverse.input`` and so on.

    Parameters
    ----------
    name : str
    hidden : int
    kind : str
        "rnn", "lstm" or "gru".
    bidirectional : bool
        Whether a second cell reads from the last step to the first; the results of both lie side by side.

    Raises
    ------
    ValueError
        If the kind is not known.

    Examples
    --------
    >>> layer = Recurrent("lstm", 32, "lstm")
    >>> [product[:4] for product in layer.products(((8, 16),), batch=10)[:2]]
    [('forward', 80, 128, 16), ('forward', 10, 128, 32)]
    """

    hidden: int
    kind: str = "lstm"
    bidirectional: bool = False

    saves = "input, output"

    def __post_init__(self) -> None:
        if self.kind not in CELLS:
            self.fail(f"unknown kind {self.kind!r}; known: {', '.join(CELLS)}")

    @property
    def _directions(self) -> tuple[str, ...]:
        return ("", "reverse.") if self.bidirectional else ("",)

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps and features."""
        steps, _ = self.of_rank(shapes, (2,), "steps of features")
        return steps, self.hidden * len(self._directions)

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Weights of input and state, and the bias, of each direction."""
        times, hidden = CELLS[self.kind][0], self.hidden
        sizes = {
            "input.weight": shapes[0][1] * times * hidden, "input.bias": times * hidden,
            "hidden.weight": times * hidden * hidden,
        }  # fmt: skip
        return {f"{way}{name}": size for way in self._directions for name, size in sizes.items()}

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """Forwards of the input, then of the state; backwards of the state, last weights first, then of the input."""
        (steps, features), hidden = shapes[0], self.hidden
        times, weights, *_ = CELLS[self.kind]
        found = []
        for way in self._directions:
            forward, *read = dense_products(batch * steps, features, times * hidden, f"{way}input")
            found.append(forward)
            backward = []
            for part in weights if steps > 1 else ():
                rows = state_products(batch, hidden, part * hidden, steps - 1, f"{way}hidden")
                found.append(rows[0])
                backward = rows[1:] + backward
            found += backward + read
        return found

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Functions and gates of all steps, and the bias's gradient."""
        times, _, forward, backward, kept = CELLS[self.kind]
        steps = shapes[0][0]
        n = batch * steps * self.hidden
        read, kept = ("activations", (times + kept // 5) * n), ("activations", (1 + kept) * n)
        found = []
        for way in self._directions:
            part = f"{way}hidden"
            errors = (("errors", n),), (("errors", times * n),)
            found += [
                Work("forward", self.kind, forward * n, (read,), (kept,), part),
                Work("backward_data", self.kind, backward * n, (kept, *errors[0]), errors[1], part),
                *bias_gradient(batch * steps, times * self.hidden, f"{way}input"),
            ]
        return found

    def extra(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """What the gates were."""
        kept = CELLS[self.kind][4] * shapes[0][0] * self.hidden * len(self._directions)
        return {"gates": kept} if kept else {}
