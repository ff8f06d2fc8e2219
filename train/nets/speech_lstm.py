"""An LSTM that reads series of different lengths, like utterances."""

from __future__ import annotations

import numpy as np

from softnum.train.engine.tensor import Tensor
from softnum.train.layers.sequences import concatenate, take
from softnum.train.nets.lstm import LSTM

__all__ = ["SpeechLSTM"]


class SpeechLSTM(LSTM):
    """An LSTM over the frames of an utterance, and a linear layer on the hidden state of its last frame.

    The layers and their arithmetic are those of `LSTM`. A batch runs in lock step, as hardware would: a series shorter
    than ``steps`` is filled up with frames of +0, whose products are computed, and counted in ``gemms``, like any
    other. But no bit of a result is theirs: past its own last frame a series' states are +0 and without a gradient, and
    ``fc`` takes the hidden state of that frame. More steps move the random bits of the roundings after them; but for
    stochastic roundings, outputs and gradients do not depend on ``steps`` either.

    A hidden state has two uses, the next step and ``fc``: their gradients are added in the role ``elementwise``, where
    one of them is 0.

    Parameters
    ----------
    sizes : sequence of three int
        Numbers of a frame, hidden size, outputs.
    steps : int
        Frames of the longest series.

    Raises
    ------
    ValueError
        If there are not three sizes, or one of them or steps is not positive; in `forward`, if a sample has no frame or
        one that is not whole.

    References
    ----------
    As of `LSTM`; A. Graves and J. Schmidhuber, "Framewise phoneme classification with bidirectional LSTM and other
    neural network architectures", 2005 (LSTMs that read frames of speech; there a label for each frame).

    Examples
    --------
    >>> SpeechLSTM().describe()
    {'name': 'speech-lstm', 'sizes': [12, 32, 9], 'steps': 29}
    """

    name = "speech-lstm"
    kind = "series"

    def __init__(self, sizes=(12, 32, 9), steps: int = 29) -> None:
        super().__init__(sizes, steps)

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, steps * inputs)
            NaN after the last frame of a series.
        training : bool
            Makes no difference here.

        Returns
        -------
        Tensor (B, outputs)
        """
        backend, samples = x.backend, x.value.shape[0]
        present, lengths = self._lengths(x.value)
        frames = backend.steps(backend.choose(present, x.value, 0.0), self.steps)
        states = self.cell(self.read(Tensor(frames, backend)), samples, lengths)
        return self.output(self.last(take(concatenate(states), (lengths - 1) * samples + np.arange(samples))))

    def _lengths(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Which numbers of a batch there are, and how many frames each sample has."""
        present = ~np.isnan(x).reshape(len(x), self.steps, -1)
        whole = present.all(axis=2)
        lengths = whole.sum(axis=1)
        filled = np.arange(self.steps) < lengths[:, None]
        right = (lengths > 0) & (filled[:, :, None] == present).all(axis=(1, 2))
        if not right.all():
            raise ValueError(
                f"{self.name}: a series must be whole frames, at least one, and NaN after them; sample "
                f"{int(np.argmin(right))} of the batch is not"
            )
        return present.reshape(x.shape), lengths
