"""Recurrent layers: what is computed from a step's input and the state before it, for all steps of a sample."""

from __future__ import annotations

import math

import numpy as np

from softnum.train.engine.functions import activation
from softnum.train.engine.initial import uniform
from softnum.train.engine.tensor import Parameter, Tensor, add, linear, multiply, part, subtract
from softnum.train.layers.feedforward import Layer, Linear
from softnum.train.layers.sequences import masked

__all__ = ["CELLS", "Cell", "GRUCell", "LSTMCell", "Read", "RNNCell"]


class Read(Linear):
    """x @ W + b of all steps, from whose rows the accumulators of a cell's products start.

    Parameters
    ----------
    name : str
    inputs, hidden : int
        Features of a step; the cell's hidden size.
    cell : type
        Which cell: it says how many times its hidden size it reads, and with which biases.
    steps : int

    Examples
    --------
    >>> Read("lstm.input", 8, 32, LSTMCell, steps=4).products("forward", batch=10)
    [('lstm.input', 'forward', 40, 128, 8)]
    """

    def __init__(self, name: str, inputs: int, hidden: int, cell: type, steps: int) -> None:
        super().__init__(name, inputs, len(cell.biases) * hidden, steps)
        self.hidden, self.biases = hidden, cell.biases

    def initialise(self, numerics, index: int) -> None:
        """Make weights uniform within 1 / sqrt(hidden), and the cell's biases."""
        layer = numerics.layer(self.name)
        weight = uniform(numerics.seed, index, self.inputs, self.outputs, 1.0 / math.sqrt(self.hidden))
        bias = np.zeros(self.outputs)
        for place, value in enumerate(self.biases):
            bias[place * self.hidden : (place + 1) * self.hidden] = value
        values = {"weight": weight, "bias": bias}
        self.parameters = [
            Parameter(layer.round("master", value), layer, f"{self.name}.{kind}") for kind, value in values.items()
        ]


class Cell(Layer):
    """What cells have in common: products of the hidden state, and a loop over the steps.

    Subclasses state ``biases`` (the initial bias of each part of what is read), ``functions`` (that a design may
    replace) and ``kinds`` (name of each of its weights, and how many times the hidden size it makes), and implement
    ``step``. Weights are rounded to ``weights`` once an iteration, however many steps use them; their gradients are
    added step by step, from the last to the first, in the role ``weight_gradients``. Before the first step the state is
    0, and no products with it are computed; or it is one that is given.

    Parameters
    ----------
    name : str
    hidden, steps : int
    given : bool
        Whether the state before the first step is given.

    Examples
    --------
    >>> GRUCell("gru.hidden", 32, steps=2).products("forward", batch=10)
    [('gru.hidden', 'forward', 10, 64, 32), ('gru.hidden', 'forward', 10, 32, 32)]
    """

    biases: tuple[float, ...]
    functions: tuple[str, ...]
    kinds: dict[str, int]

    def __init__(self, name: str, hidden: int, steps: int, *, given: bool = False) -> None:
        super().__init__(name)
        self.hidden, self.steps, self.with_products = hidden, steps, steps if given else steps - 1

    def initialise(self, numerics, index: int) -> None:
        """Make the weights, uniform within 1 / sqrt(hidden), side by side from the random numbers of an index."""
        layer, limit = numerics.layer(self.name), 1.0 / math.sqrt(self.hidden)
        whole = uniform(numerics.seed, index, self.hidden, sum(self.kinds.values()) * self.hidden, limit)
        self.parameters, first = [], 0
        for kind, times in self.kinds.items():
            value = whole[:, first * self.hidden : (first + times) * self.hidden]
            self.parameters.append(Parameter(layer.round("master", value), layer, f"{self.name}.{kind}"))
            first += times

    def products(self, key: str, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of the forward pass: of every step with a state before it."""
        if key != "forward":
            raise ValueError(f"{self.name}: the backward products of a cell go by backward_products, got {key!r}")
        step = [(self.name, key, batch, times * self.hidden, self.hidden) for times in self.kinds.values()]
        return step * self.with_products

    def backward_products(self, batch: int, *, data: bool) -> list[tuple]:
        """Those of the last step first; of a step, those of the last weights."""
        rows, hidden = [], self.hidden
        for times in reversed(self.kinds.values()):
            rows.append((self.name, "backward_data", batch, hidden, times * hidden))
            rows.append((self.name, "backward_weight", hidden, times * hidden, batch))
        return rows * self.with_products

    def __call__(self, read: Tensor, samples: int, lengths=None) -> list[Tensor]:
        """The hidden states of all steps, each (samples, hidden), from what was read, all of step 0 first.

        lengths, if given, are the samples' own numbers of steps: past them their states are +0 and have no gradient.
        """
        return [state[0] for state in self.states(read, samples, lengths=lengths)]

    def states(self, read: Tensor, samples: int, state=None, *, lengths=None) -> list[tuple[Tensor, ...]]:
        """The states after all steps, the hidden state of each first, from that before them if there is one."""
        self.begin()
        states = []
        for step in range(self.steps):
            z = part(read, slice(step * samples, (step + 1) * samples), slice(None))
            state = self.step(z, state)
            if lengths is not None and step >= lengths.min():
                state = tuple(masked(part, lengths[:, None] > step) for part in state)
            states.append(state)
        return states

    def begin(self) -> None:
        """Round the weights, for the steps that follow."""
        self._working = [self.numerics.working_copy(weight, (weight.value.shape, 0)) for weight in self.parameters]

    def step(self, z: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The state after a step, the hidden state first; None: before the first step."""
        raise NotImplementedError(f"{type(self).__name__} has no step")

    def _product(self, which: int, h: Tensor, start: Tensor) -> Tensor:
        return linear(h, self.parameters[which], start, self.numerics, weights=self._working[which])

    def _columns(self, z: Tensor, first: int, count: int = 1) -> Tensor:
        return part(z, slice(None), slice(first * self.hidden, (first + count) * self.hidden))


class RNNCell(Cell):
    """h = tanh((x @ W + b) + h @ U).

    References
    ----------
    J. Elman, "Finding Structure in Time", 1990.

    Examples
    --------
    >>> RNNCell("rnn.hidden", 4, steps=3).backward_products(2, data=True)[:2]
    [('rnn.hidden', 'backward_data', 2, 4, 4), ('rnn.hidden', 'backward_weight', 4, 4, 2)]
    """

    biases = (0.0,)
    functions = ("tanh",)
    kinds = {"weight": 1}

    def step(self, z: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The hidden state after a step."""
        z = z if state is None else self._product(0, state[0], z)
        return (activation(self.functions[0], z, self.numerics),)


class LSTMCell(Cell):
    """z = (x @ W + b) + h @ U; sigmoid(z1), sigmoid(z2), tanh(z3), sigmoid(z4) = i, f, g, o; c = f * c + i * g;
    h = o * tanh(c).

    References
    ----------
    S. Hochreiter and J. Schmidhuber, "Long Short-Term Memory", 1997; F. Gers et al., "Learning to Forget", 2000 (the
    gate f, and its bias of 1 at the start).

    Examples
    --------
    >>> LSTMCell("lstm.hidden", 4, steps=2).products("forward", 3)
    [('lstm.hidden', 'forward', 3, 16, 4)]
    """

    biases = (0.0, 1.0, 0.0, 0.0)
    functions = ("sigmoid", "tanh")
    kinds = {"weight": 4}

    def step(self, z: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """Hidden and cell state after a step."""
        layer = self.numerics
        if state is not None:
            z = self._product(0, state[0], z)
        i, f, g, o = (
            activation(name, self._columns(z, place), layer)
            for place, name in enumerate(("sigmoid", "sigmoid", "tanh", "sigmoid"))
        )
        fresh = multiply(i, g, layer)
        c = fresh if state is None else add(multiply(f, state[1], layer), fresh, layer)
        return multiply(o, activation("tanh", c, layer), layer), c


class GRUCell(Cell):
    """r, z = sigmoid((x @ W + b)1,2 + h @ U); n = tanh((x @ W + b)3 + (r * h) @ V); h = n + z * (h - n).

    U is ``weight``, V ``candidate``. The last line is (1 - z) * n + z * h in three operations.

    References
    ----------
    K. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014, section 2.3.

    Examples
    --------
    >>> len(GRUCell("gru.hidden", 4, steps=3).backward_products(2, data=True))
    8
    """

    biases = (0.0, 0.0, 0.0)
    functions = ("sigmoid", "tanh")
    kinds = {"weight": 2, "candidate": 1}

    def step(self, z: Tensor, state: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The hidden state after a step."""
        layer, gates, candidate = self.numerics, self._columns(z, 0, 2), self._columns(z, 2)
        if state is None:
            keep = activation("sigmoid", self._columns(gates, 1), layer)
            n = activation("tanh", candidate, layer)
            return (subtract(n, multiply(keep, n, layer), layer),)
        (h,) = state
        gates = self._product(0, h, gates)
        reset, keep = (activation("sigmoid", self._columns(gates, place), layer) for place in range(2))
        n = activation("tanh", self._product(1, multiply(reset, h, layer), candidate), layer)
        return (add(n, multiply(keep, subtract(h, n, layer), layer), layer),)


CELLS = {"gru": GRUCell, "lstm": LSTMCell, "rnn": RNNCell}
