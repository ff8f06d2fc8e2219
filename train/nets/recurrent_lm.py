"""A recurrent language model: the next byte of a text from those before it, by an LSTM, a GRU or a plain RNN."""

from __future__ import annotations

from softnum.train.engine.tensor import Tensor, reshape
from softnum.train.layers.cells import CELLS, Read
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sequence_layers import Embedding
from softnum.train.layers.sequences import concatenate, permute
from softnum.train.layers.sequences import dropout as drop
from softnum.train.layers.sizes import check_rate, check_sizes
from softnum.train.nets.network import Network

__all__ = ["RecurrentLM"]


class RecurrentLM(Network):
    """A byte of the text at each step: embedding, a cell, dropout, and a linear layer on every hidden state::

        embedding, <cell>.input, <cell>.hidden, dropout, fc

    The cells' formulas are in `softnum.train.layers.cells`. The products of all steps with the input are one product,
    and so are those of fc. The state is 0 before the first step of each sequence.

    Parameters
    ----------
    sizes : sequence of two int
        Features of a byte; hidden size.
    cell : str
        "lstm", "gru" or "rnn".
    dropout : float
        Of the hidden states, as fc takes them.
    steps : int
        Bytes of a sequence.
    words : int
        How many different bytes there are, which are outputs of fc.

    Raises
    ------
    ValueError
        If there is no such cell, there are not two sizes, a number is not positive, or the dropout is out of range.

    References
    ----------
    W. Zaremba et al., "Recurrent Neural Network Regularization", 2014 (embedding, LSTM, dropout between layers, linear
    layer; there words and two layers).

    Examples
    --------
    >>> RecurrentLM(cell="gru").layer_names
    ['embedding', 'gru.input', 'gru.hidden', 'fc']
    """

    name = "recurrent-lm"
    kind = "text"

    def __init__(
        self, sizes=(32, 64), cell: str = "lstm", dropout: float = 0.0, steps: int = 32, words: int = 256
    ) -> None:  # fmt: skip
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}, got {cell!r}")
        features, hidden = sizes = check_sizes(sizes, exactly=2)
        (self.steps,), (words,) = check_sizes((steps,), "steps", exactly=1), check_sizes((words,), "words", exactly=1)
        self.dropout = check_rate(dropout)
        self.embedding = Embedding("embedding", words, features)
        self.read = Read(f"{cell}.input", features, hidden, CELLS[cell], self.steps)
        self.cell = CELLS[cell](f"{cell}.hidden", hidden, self.steps)
        self.last = Linear("fc", hidden, words, self.steps)
        options = {"sizes": sizes, "cell": cell, "dropout": self.dropout, "steps": self.steps, "words": words}
        super().__init__([self.embedding, self.read, self.cell, self.last], options, self.steps, words)

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor of integers (B, steps)
        training : bool
            Whether to drop elements.

        Returns
        -------
        Tensor (B * steps, words)
            Sequence by sequence.
        """
        samples, backend = x.value.shape[0], x.backend
        read = self.read(self.embedding(backend.permute(x.value, (1, 0)).reshape(-1)))
        h = drop(concatenate(self.cell(read, samples)), self.dropout, self.cell.numerics, training=training)
        h = permute(reshape(h, (self.steps, samples, -1)), (1, 0, 2))
        return self.output(self.last(reshape(h, (self.steps * samples, -1))))
