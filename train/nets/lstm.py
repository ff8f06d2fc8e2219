"""A recurrent network: long short-term memory (LSTM), which reads a sample step by step, and a linear layer."""

from __future__ import annotations

from softnum.train.engine.tensor import Tensor
from softnum.train.layers.cells import LSTMCell, Read
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sizes import check_sizes
from softnum.train.nets.network import Network

__all__ = ["LSTM"]


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

    Examples
    --------
    >>> LSTM(sizes=(4, 6, 3), steps=2).gemms(5)
    [{'layer': 'lstm.input', 'pass': 'forward', 'M': 10, 'N': 24, 'K': 4},
     {'layer': 'lstm.hidden', 'pass': 'forward', 'M': 5, 'N': 24, 'K': 6},
     {'layer': 'fc', 'pass': 'forward', 'M': 5, 'N': 3, 'K': 6},
     {'layer': 'fc', 'pass': 'backward_data', 'M': 5, 'N': 6, 'K': 3},
     {'layer': 'fc', 'pass': 'backward_weight', 'M': 6, 'N': 3, 'K': 5},
     {'layer': 'lstm.hidden', 'pass': 'backward_data', 'M': 5, 'N': 6, 'K': 24},
     {'layer': 'lstm.hidden', 'pass': 'backward_weight', 'M': 6, 'N': 24, 'K': 5},
     {'layer': 'lstm.input', 'pass': 'backward_weight', 'M': 4, 'N': 24, 'K': 10}]
    """

    name = "lstm"

    def __init__(self, sizes=(8, 32, 10), steps: int = 8) -> None:
        inputs, hidden, outputs = sizes = check_sizes(sizes, exactly=3)
        (self.steps,) = check_sizes((steps,), "steps", exactly=1)
        self.read = Read("lstm.input", inputs, hidden, LSTMCell, self.steps)
        self.cell = LSTMCell("lstm.hidden", hidden, self.steps)
        self.last = Linear("fc", hidden, outputs)
        options = {"sizes": sizes, "steps": self.steps}
        super().__init__([self.read, self.cell, self.last], options, self.steps * inputs, outputs)

    @classmethod
    def options_of(cls, facts) -> dict:
        """A step for each row of an image; the default's hidden size."""
        channels, rows, columns = facts.image
        return {"sizes": (channels * columns, 32, facts.classes), "steps": rows}

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
        read = self.read(Tensor(x.backend.steps(x.value, self.steps), x.backend))
        return self.output(self.last(self.cell(read, x.value.shape[0])[-1]))
