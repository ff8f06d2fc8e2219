"""A mixture of experts: feedforwards of which each row passes the few that a router chooses for it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from softnum.train.engine.binary64 import host
from softnum.train.engine.tensor import Tensor, add, multiply, part, reshape
from softnum.train.layers.attention import softmax
from softnum.train.layers.dispatch import Dispatch, exchange
from softnum.train.layers.feedforward import Layer, Linear
from softnum.train.layers.losses import balance
from softnum.train.layers.sequences import concatenate, expand, lookup
from softnum.train.layers.transformer_blocks import FeedForward

__all__ = ["Mixture", "choices", "seats"]


def choices(probabilities, count: int) -> np.ndarray:
    """The experts of each row: those of the largest probabilities, the largest first, of equals the one before.

    Parameters
    ----------
    probabilities : array (rows, experts)
    count : int
        Experts of a row.

    Returns
    -------
    integer array (rows, count)

    Examples
    --------
    >>> choices(np.array([[0.25, 0.5, 0.25], [0.2, 0.4, 0.4]]), 2).tolist()
    [[1, 0], [1, 2]]
    """
    return np.argsort(-probabilities, axis=1, kind="stable")[:, :count]


def seats(chosen, experts: int, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows each expert computes, and where the results of each row's experts are.

    An expert takes the rows that chose it in their order, as many as it has seats; of what comes after them nothing is
    computed by it. So no row depends on one after it.

    Parameters
    ----------
    chosen : integer array (rows, k)
        As `choices` returns it.
    experts, capacity : int
        How many there are; seats of each.

    Returns
    -------
    taken : integer array (experts * capacity,)
        The row of each seat, expert by expert; `rows` where a seat stays empty.
    found : integer array (rows, k)
        The seat of each choice; experts * capacity where it has none.

    Examples
    --------
    >>> taken, found = seats(np.array([[0], [1], [0], [0]]), 2, 2)  # expert 0 has no seat for the last row
    >>> taken.tolist(), found.ravel().tolist()
    ([0, 2, 1, 4], [0, 2, 1, 4])
    """
    rows, count = chosen.shape
    flat = chosen.reshape(-1)
    order = np.argsort(flat, kind="stable")
    sizes = np.bincount(flat, minlength=experts)
    first = np.cumsum(sizes) - sizes
    places = np.empty(len(flat), np.int64)
    places[order] = np.arange(len(flat)) - first[flat[order]]
    seated = places < capacity
    found = np.where(seated, flat * capacity + places, experts * capacity)
    taken = np.full(experts * capacity, rows, np.int64)
    taken[found[seated]] = np.flatnonzero(seated) // count
    return taken, found.reshape(rows, count)


class Mixture:
    """Experts, each a feedforward of its own, of which a router chooses some for each row of x::

        p = softmax(x @ router)
        y = p[e1] * expert_e1(x) + p[e2] * expert_e2(x) + ...

    The layers are <name>.router, without a bias, and those of <name>.expert1, .expert2, ...
    (`softnum.train.layers.transformer_blocks.FeedForward`). The product is in the router's units, the softmax in its
    roles (`softnum.train.layers.attention.softmax`). A row's experts e1, e2, ... are those of its largest
    probabilities; of equal ones that with the lower number comes first. The probabilities are not divided by their
    sum, so that a router learns also where one expert is chosen.

    Each expert computes C rows in every batch of T rows, C = min(T, ceil(capacity * T * chosen / experts)): those that
    chose it, in their order, then rows of +0. For a row that finds no seat an expert's result is +0. A capacity of
    experts / chosen leaves no row out.

    Moving rows is exact; where a row goes to several experts its gradients are added in the role ``statistics`` of the
    router (``softnum.train.layers.sequences.lookup``). The products with p and the sum, from left to right, are in the
    role ``elementwise`` of the router.

    Parameters
    ----------
    name : str
    features, hidden, steps : int
        Of a row; of an expert's hidden layer; rows of a sample.
    kind : str
        One of `softnum.train.layers.transformer_blocks.FEEDFORWARDS`.
    experts, chosen : int
        How many there are; how many a row passes.
    capacity : float
        See above.
    balance : float
        Factor of the loss that keeps experts equally busy (`softnum.train.layers.losses.balance`); 0: none.
    bias : bool
        Whether the experts' linear layers have biases.
    wires : Dispatch, optional
        Of experts on several ranks: what sending rows to them and results back rounds, and gradients the other way. The
        router's choice and the seats are those of one rank. Default: nothing is sent.

    Attributes
    ----------
    penalty : Tensor or None
        That loss, of the last pass in training.

    References
    ----------
    N. Shazeer et al., "Outrageously Large Neural Networks", 2017 (experts and the choice of k); W. Fedus et al.,
    "Switch Transformers", 2022, sections 2.1 and 2.2 (capacity, probabilities as factors, the loss).

    Examples
    --------
    >>> mixture = Mixture("block1", 32, 64, 8, "relu", 4, 1, capacity=1.25)
    >>> [layer.name for layer in mixture.layers[:3]], mixture.seats(8 * 4)
    (['block1.router', 'block1.expert1.ff1', 'block1.expert1.ff2'], 10)
    """

    def __init__(
        self, name: str, features: int, hidden: int, steps: int, kind: str, experts: int, chosen: int, *,
        capacity: float = 1.25, balance: float = 0.01, bias: bool = True,
        wires: Dispatch | None = None,
    ) -> None:  # fmt: skip
        self.wires = wires
        self.steps, self.chosen, self.capacity, self.factor = steps, chosen, capacity, balance
        self.router = Linear(f"{name}.router", features, experts, steps, bias=False)
        rows = self.rows
        self.experts = [
            FeedForward(f"{name}.expert{number}", features, hidden, rows, kind, bias=bias)
            for number in range(1, experts + 1)
        ]  # fmt: skip
        self.layers = [self.router, *(layer for expert in self.experts for layer in expert.layers)]
        self.last: Layer = self.router
        self.penalty: Tensor | None = None

    @property
    def relu(self) -> list[Layer]:
        """The layers whose results pass a ReLU."""
        return [layer for expert in self.experts for layer in expert.relu]

    def seats(self, rows: int) -> int:
        """Rows that each expert computes, of so many in a batch."""
        share = Fraction(self.capacity) * rows * self.chosen / len(self.experts)
        return min(rows, math.ceil(share))

    def rows(self, batch: int) -> int:
        """Rows that each expert computes, of so many samples in a batch."""
        return self.seats(batch * self.steps)

    def __call__(self, x: Tensor) -> Tensor:
        layer, count, backend = self.router.numerics, len(self.experts), x.backend
        rows, features = x.value.shape
        probabilities = softmax(self.router(x), layer)
        chosen = choices(host(probabilities.value), self.chosen)
        size = self.seats(rows)
        taken, found = seats(chosen, count, size)
        self.penalty = balance(probabilities, chosen, self.factor) if self.factor else None
        every, nothing = slice(None), Tensor(backend.zeros((1, features)), backend)
        seated = lookup(concatenate([x, nothing]), taken, layer)
        if self.wires is not None:
            facts = self.wires.roundings, self.wires.kept(taken, count, rows), ("dispatch", "combine")
            there, back = zip(*facts, strict=True)
            seated = exchange(seated, there, back, layer)
        parts = [
            expert(part(seated, slice(number * size, (number + 1) * size), every))
            for number, expert in enumerate(self.experts)
        ]  # fmt: skip
        if self.wires is not None:
            parts = [exchange(concatenate(parts), back, there, layer)]
        results, flat, result = concatenate([*parts, nothing]), reshape(probabilities, (-1,)), None
        for k in range(self.chosen):
            weights = lookup(flat, np.arange(rows) * count + chosen[:, k], layer)
            weights = expand(reshape(weights, (-1, 1)), (rows, features), layer)
            scaled = multiply(weights, lookup(results, found[:, k], layer), layer)
            result = scaled if result is None else add(result, scaled, layer)
        return result
