"""An encoder and a decoder of recurrent cells with attention: a sentence in another language."""

from __future__ import annotations

import numpy as np

from softnum.train.datasets.sentences import END, PADDING, START, UNKNOWN
from softnum.train.engine.binary64 import host
from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, part, reshape
from softnum.train.layers.cells import CELLS, Read
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sequence_layers import Attention, Embedding
from softnum.train.layers.sequences import concatenate, permute, take
from softnum.train.layers.sequences import dropout as drop
from softnum.train.layers.sizes import check_rate, check_sizes
from softnum.train.nets.network import Network
from softnum.train.tasks.translation import Translation

__all__ = ["Seq2Seq"]


class Seq2Seq(Network):
    """Encoder, decoder and attention::

        source.embedding, encoder.input, encoder.hidden (, backward.input, backward.hidden)
        target.embedding, decoder.input, decoder.hidden, attention, combine, fc

    The cells' formulas are in `softnum.train.layers.cells`. The encoder reads the words of the source; the decoder
    starts from its state after the last word (not after padding), and takes, in training, the right word before each
    one that it has to tell (teacher forcing). Its hidden states h attend to those s of the encoder, where the source
    has words::

        a = softmax((h @ s^T) / sqrt(hidden)) @ s           attention
        y = fc(dropout(tanh([a, h] @ W + b)))               combine

    This is Luong's global attention with the score "dot", scaled as Vaswani's is, and without feeding y's input to the
    next step: so the products of all steps are one for each sentence. No bit of what is attended to, started from or
    counted as loss depends on padding. With two directions a second cell reads the source from its last word to its
    first; each has half the hidden size, and states of the same word stand side by side.

    Parameters
    ----------
    sizes : sequence of two int
        Features of a word; hidden size of the decoder.
    cell : str
        "lstm", "gru" or "rnn".
    bidirectional : bool
        Whether the encoder reads in two directions.
    dropout : float
        Of what fc takes.
    steps : int
        Words of a sentence, its end among them.
    words : int
        How many different words a language has, which are outputs of fc.

    Raises
    ------
    ValueError
        If there is no such cell, there are not two sizes, a number is not positive, the hidden size is odd and the
        encoder bidirectional, or the dropout is out of range.

    References
    ----------
    I. Sutskever et al., "Sequence to Sequence Learning with Neural Networks", 2014; M.-T. Luong et al., "Effective
    Approaches to Attention-based Neural Machine Translation", 2015, section 3.1; D. Bahdanau et al., "Neural Machine
    Translation by Jointly Learning to Align and Translate", 2015 (two directions).

    Examples
    --------
    >>> Seq2Seq(cell="lstm").layer_names[:3]
    ['source.embedding', 'encoder.input', 'encoder.hidden']
    """

    name = "seq2seq"
    kind = "sentences"
    task = Translation

    def __init__(
        self, sizes=(32, 64), cell: str = "gru", bidirectional: bool = False, dropout: float = 0.0, steps: int = 12,
        words: int = 2000,
    ) -> None:  # fmt: skip
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}, got {cell!r}")
        if not isinstance(bidirectional, bool):
            raise ValueError(f"bidirectional must be true or false, got {bidirectional!r}")
        features, hidden = sizes = check_sizes(sizes, exactly=2)
        if bidirectional and hidden % 2:
            raise ValueError(f"a bidirectional encoder needs an even hidden size, got {hidden}")
        (self.steps,), (words,) = check_sizes((steps,), "steps", exactly=1), check_sizes((words,), "words", exactly=1)
        self.dropout = check_rate(dropout)
        self.source, self.target = (Embedding(f"{of}.embedding", words, features) for of in ("source", "target"))
        names = ("encoder", "backward") if bidirectional else ("encoder",)
        kind, own = CELLS[cell], hidden // len(names)
        self.encoders = [
            (Read(f"{name}.input", features, own, kind, self.steps), kind(f"{name}.hidden", own, self.steps))
            for name in names
        ]
        self.read = Read("decoder.input", features, hidden, kind, self.steps)
        self.decoder = kind("decoder.hidden", hidden, self.steps, given=True)
        self.attention = Attention("attention", self.steps, self.steps, hidden, 1)
        self.combine = Linear("combine", 2 * hidden, hidden, self.steps)
        self.combine.functions = ("tanh",)
        self.last = Linear("fc", hidden, words, self.steps)
        layers = [self.source, *(layer for pair in self.encoders for layer in pair), self.target, self.read]
        layers += [self.decoder, self.attention, self.combine, self.last]
        options = {"sizes": sizes, "cell": cell, "bidirectional": bidirectional, "dropout": self.dropout}
        super().__init__(layers, options | {"steps": self.steps, "words": words}, 2 * self.steps, words)

    @classmethod
    def options_of(cls, facts) -> dict:
        """Words of a sentence, and of a language."""
        return {"steps": facts.image[2], "words": facts.classes}

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor of integers (B, 2 * steps)
            The words of the source, and those that the decoder takes (`softnum.train.datasets.sentences.Sentences`).
        training : bool
            Whether to drop elements.

        Returns
        -------
        Tensor (B * steps, words)
            Sentence by sentence.
        """
        samples = len(x.value)
        memory, state, mask = self._encode(x.value[:, : self.steps], x.backend)
        read = self.read(self.target(x.backend.permute(x.value[:, self.steps :], (1, 0)).reshape(-1)))
        h = concatenate([state[0] for state in self.decoder.states(read, samples, state)])
        h = permute(reshape(h, (self.steps, samples, -1)), (1, 0, 2))
        return self._tell(reshape(h, (self.steps * samples, -1)), memory, mask, samples, training)

    def translate(self, source, backend) -> np.ndarray:
        """The words that the network tells of sentences, each from its own before it: always the likeliest.

        Roundings of weights that are not the cell's are those of each step.

        Parameters
        ----------
        source : integer array (B, steps)
            The words of each sentence, its end, and padding.
        backend : NumpyBackend

        Returns
        -------
        integer array (B, at most steps)
            After the end of a sentence, padding. A word of which the outputs are not all finite is ``UNKNOWN``.
        """
        memory, state, mask = self._encode(source, backend)
        self.decoder.begin()
        words, told = np.full(len(source), START), []
        while len(told) < self.steps and not np.isin(words, (END, PADDING)).all():
            state = self.decoder.step(self.read(self.target(words)), state)
            outputs = host(self._tell(state[0], memory, mask, len(source), training=False).value)
            likeliest = np.where(np.isfinite(outputs).all(axis=1), backend.argmax(outputs), UNKNOWN)
            words = np.where(np.isin(words, (END, PADDING)), PADDING, likeliest)
            told.append(words)
        return np.stack(told, axis=1)

    def _encode(self, source, backend):
        """The encoder's states by sentence and word, its state after the last word, and which words there are."""
        samples, steps = source.shape
        lengths = (source != PADDING).sum(axis=1)
        if not lengths.all():
            raise ValueError("a sentence must have a word: its end")
        place, sample = np.arange(steps), np.arange(samples)
        turned = np.where(place < lengths[:, None], lengths[:, None] - 1 - place, place)
        orders = (np.broadcast_to(place, source.shape), turned)[: len(self.encoders)]
        words = self.source(np.concatenate([np.take_along_axis(source, order, 1).T.ravel() for order in orders]))
        memories, lasts = [], []
        for number, (order, (read, cell)) in enumerate(zip(orders, self.encoders, strict=True)):
            rows = slice(number * steps * samples, (number + 1) * steps * samples)
            states = cell.states(read(part(words, rows, slice(None))), samples, lengths=lengths)
            kinds = [concatenate(list(parts)) for parts in zip(*states, strict=True)]
            memories.append(take(kinds[0], (order * samples + sample[:, None]).ravel()))
            lasts.append([take(x, (lengths - 1) * samples + sample) for x in kinds])
        layer = self.encoders[0][1].numerics
        if len(memories) == 1:
            return memories[0], tuple(lasts[0]), (source != PADDING)[:, None, None]
        state = tuple(concatenate(list(parts), 1, layer=layer) for parts in zip(*lasts, strict=True))
        return concatenate(memories, 1, layer=layer), state, (source != PADDING)[:, None, None]

    def _tell(self, h: Tensor, memory: Tensor, mask, samples: int, training: bool) -> Tensor:
        context = self.attention(h, memory, memory, batch=samples, mask=mask)
        layer = self.combine.numerics
        y = activation("tanh", self.combine(concatenate([context, h], 1)), layer)
        return self.output(self.last(drop(y, self.dropout, layer, training=training)))
