"""A recurrent network: long short-term memory (LSTM), which reads a sample step by step, and a linear layer."""

from __future__ import annotations

import math

from softnum.train.functions import activation
from softnum.train.initial import he_uniform, uniform
from softnum.train.nets.network import Network, product_rows
from softnum.train.nets.sizes import check_batch, check_sizes
from softnum.train.tensor import Parameter, Tensor, add, linear, multiply, part

__all__ = ["LSTM"]

_FORGET_BIAS = 1.0


class LSTM(Network):
    """An LSTM over the steps of a sample, and a linear layer on its last hidden state.

    A sample of ``steps * inputs`` features is read as so many steps of ``inputs`` features; from hidden state h and
    cell state c, both 0 before the first step, each step computes::

        z = (x @ W + b) + h @ U                                         products of lstm.input and lstm.hidden
        i, f, g, o = sigmoid(z1), sigmoid(z2), tanh(z3), sigmoid(z4)    quarters of z's columns
        c = f * c + i * g
        h = o * tanh(c)

    The products x @ W + b of all steps are one matrix product of the layer ``lstm.input``; its result is the initial
    value of the accumulators of ``lstm.hidden``. The first step has no products with h and c. Everything below the
    first line is arithmetic of ``lstm.hidden`` in its role ``elementwise``, each operation rounded; where a value is
    used twice, its gradients are added in that role too, and those of U step by step, from the last to the first, in
    the role ``weight_gradients``. The layer ``fc`` takes the last h.

    Parameters
    ----------
    sizes : sequence of three int
        Inputs of a step, hidden size, outputs.
    steps : int
        Steps of a sample.

    Raises
    ------
    ValueError
        If there are not three sizes, or one of them or steps is not positive.

    References
    ----------
    S. Hochreiter and J. Schmidhuber, "Long Short-Term Memory", 1997; F. Gers et al., "Learning to Forget", 2000 (the
    gate f, and its bias of 1 at the start).
    """

    name = "lstm"
    layer_names = ("lstm.input", "lstm.hidden", "fc")

    def __init__(self, sizes=(8, 32, 10), steps: int = 8) -> None:
        self.sizes = check_sizes(sizes, exactly=3)
        (self.steps,) = check_sizes((steps,), "steps", exactly=1)
        options = {"sizes": self.sizes, "steps": self.steps}
        super().__init__((), options, self.steps * self.sizes[0], self.sizes[-1])
        self.operators = {name: ("sigmoid", "tanh") if name == "lstm.hidden" else () for name in self.layer_names}

    def gemms(self, batch: int) -> list[dict]:
        """The matrix products of one training iteration, in the order in which they are computed.

        Parameters
        ----------
        batch : int
            Samples per iteration.

        Returns
        -------
        list of dict
            As of `Network.gemms`; those of ``lstm.hidden`` once for every step but the first.

        Examples
        --------
        >>> from softnum.train import make_network
        >>> make_network("lstm", sizes=(4, 6, 3), steps=2).gemms(5)
        [{'layer': 'lstm.input', 'pass': 'forward', 'M': 10, 'N': 24, 'K': 4},
         {'layer': 'lstm.hidden', 'pass': 'forward', 'M': 5, 'N': 24, 'K': 6},
         {'layer': 'fc', 'pass': 'forward', 'M': 5, 'N': 3, 'K': 6},
         {'layer': 'fc', 'pass': 'backward_data', 'M': 5, 'N': 6, 'K': 3},
         {'layer': 'fc', 'pass': 'backward_weight', 'M': 6, 'N': 3, 'K': 5},
         {'layer': 'lstm.hidden', 'pass': 'backward_data', 'M': 5, 'N': 6, 'K': 24},
         {'layer': 'lstm.hidden', 'pass': 'backward_weight', 'M': 6, 'N': 24, 'K': 5},
         {'layer': 'lstm.input', 'pass': 'backward_weight', 'M': 4, 'N': 24, 'K': 10}]
        """
        check_batch(batch)
        inputs, hidden, outputs = self.sizes
        gates, again = 4 * hidden, self.steps - 1
        read, step, last = self.layer_names
        rows = [
            (read, "forward", self.steps * batch, gates, inputs),
            *[(step, "forward", batch, gates, hidden)] * again,
            (last, "forward", batch, outputs, hidden),
            (last, "backward_data", batch, hidden, outputs),
            (last, "backward_weight", hidden, outputs, batch),
            *[(step, "backward_data", batch, hidden, gates), (step, "backward_weight", hidden, gates, batch)] * again,
            (read, "backward_weight", inputs, gates, self.steps * batch),
        ]
        return product_rows(rows)

    def initialise(self, numerics) -> None:
        """Set the parameters to their initial values, rounded to ``master``.

        W and U are uniform within 1 / sqrt(hidden), the last weights He-uniform; biases are 0, but 1 for the gate f.
        """
        numerics.begin(0)
        inputs, hidden, outputs = self.sizes
        read, step, last = (numerics.layer(name) for name in self.layer_names)
        limit = 1.0 / math.sqrt(hidden)
        bias = numerics.backend.double(numerics.backend.zeros((4 * hidden,)))
        bias[hidden : 2 * hidden] = _FORGET_BIAS
        weights = (
            (read, uniform(numerics.seed, 0, inputs, 4 * hidden, limit), bias),
            (step, uniform(numerics.seed, 1, hidden, 4 * hidden, limit), None),
            (last, he_uniform(numerics.seed, 2, hidden, outputs), numerics.backend.zeros((outputs,))),
        )
        self.parameters = []
        for layer, *values in weights:
            for kind, value in zip(("weight", "bias"), values, strict=True):
                if value is not None:
                    self.parameters.append(Parameter(layer.round("master", value), layer, f"{layer.name}.{kind}"))

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, steps * inputs)
        training : bool
            Makes no difference here.

        Returns
        -------
        Tensor (B, outputs)
        """
        weight, bias, again, last_weight, last_bias = self.parameters
        layer, last = again.layer, last_weight.layer
        samples = x.value.shape[0]
        read = linear(Tensor(x.backend.steps(x.value, self.steps), x.backend), weight, bias, weight.layer)
        everything, working = slice(None), layer.working_copy(again)
        c = h = None
        for step in range(self.steps):
            z = part(read, slice(step * samples, (step + 1) * samples), everything)
            if h is not None:
                z = linear(h, again, z, layer, weights=working)
            i, f, g, o = (
                activation(name, part(z, everything, slice(k * self.sizes[1], (k + 1) * self.sizes[1])), layer)
                for k, name in enumerate(("sigmoid", "sigmoid", "tanh", "sigmoid"))
            )
            fresh = multiply(i, g, layer)
            c = fresh if c is None else add(multiply(f, c, layer), fresh, layer)
            h = multiply(o, activation("tanh", c, layer), layer)
        return self.output(linear(h, last_weight, last_bias, last))
