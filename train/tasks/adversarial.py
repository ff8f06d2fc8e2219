"""Making images like those of some data, against a critic that learns to tell them from real ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softnum.train.datasets.coverage import Coverage
from softnum.train.datasets.sets import batches
from softnum.train.engine.binary64 import host
from softnum.train.engine.initial import noise
from softnum.train.engine.tensor import Tensor
from softnum.train.layers.losses import signed_means
from softnum.train.tasks.task import Task, Update

__all__ = ["Adversarial"]

_EVALUATION_IMAGES = 512


class Adversarial(Task):
    """Wasserstein's losses: mean score of generated images - mean score of real ones for the critic, - mean score of
    generated images for the generator.

    Each update of the critic takes a batch of real images, and as many generated ones, as one batch of twice the size,
    real ones first; an epoch passes the images once, with ``critic_updates`` batches an iteration. Every batch of
    generated images is made of noise of its own (``softnum.train.engine.initial.noise``), those of evaluations of the
    first.

    A record's ``loss`` is the critic's at its last update of the iteration; minus it is an estimate of the distance
    between generated and real images, up to a factor. ``generator_loss`` is the generator's. ``accuracy`` is the
    coverage (`softnum.train.datasets.coverage.Coverage`) of the first 512 held-out images, or all if there are fewer,
    by as many generated ones.

    Parameters
    ----------
    network, data, batch, seed
        As of `softnum.train.tasks.task.Task`.

    Raises
    ------
    ValueError
        If the network makes images of another size, or the data are fewer than an iteration takes, or too few are held
        out.

    References
    ----------
    M. Arjovsky, S. Chintala and L. Bottou, "Wasserstein GAN", 2017, algorithm 1.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import load_data
    >>> make_network("wgan").make_task(load_data("digits"), batch=32, seed=1).per_epoch  # of 5 x 32 images
    8
    """

    def __init__(self, network, data, batch: int, seed: int) -> None:
        features = data.train_x.shape[1]
        if features != network.pixels:
            raise ValueError(f"the network makes images of {network.pixels} numbers, the data have {features} a sample")
        if network.critic_updates * batch > len(data.train_y):
            raise ValueError(
                f"an iteration takes {network.critic_updates} batches of {batch}, the data have {len(data.train_y)} "
                "samples; take a smaller batch, or fewer updates of the critic"
            )
        super().__init__(network, data, network.critic_updates * batch, seed)
        self.batch = batch
        self.samples //= network.critic_updates  # of which an iteration takes batch
        self.trial = (1, np.arange(2).reshape(1, 2))
        held_out = slice(min(_EVALUATION_IMAGES, len(data.test_y)))
        self._coverage = Coverage(data.test_x[held_out])
        self._made = held_out.stop

    def plan(self, epoch: int) -> Iterator:
        """Of each iteration: which batch of noise is its first, and the samples of each update of the critic."""
        updates = self.network.critic_updates
        taken = batches(len(self.data.train_y), updates * self.batch, self.seed, epoch)
        for position, samples in enumerate(taken, start=(epoch - 1) * self.per_epoch):
            yield 1 + position * (updates + 1), samples.reshape(updates, self.batch)

    def split(self, part, workers: int) -> list:
        """No parts: a critic and a generator are updated in turn in an iteration."""
        raise ValueError(
            f"{workers} workers cannot share an iteration of {self.network.name!r}, in which a critic and a generator "
            "are updated in turn; train it by one"
        )

    def losses(self, numerics, part) -> Iterator[Update]:
        """The critic's loss, so often as it is updated, then the generator's."""
        network, backend = self.network, numerics.backend
        first, samples = part
        size = samples.shape[1]
        for index, real in enumerate(samples, start=first):
            images = backend.array(self.data.train_x[real])
            made = network.forward(self._noise(backend, index, size)).value
            scores = network.score(Tensor(backend.concatenate([images, made], 0), backend))
            yield Update(signed_means(scores, ((-1.0, size), (1.0, size))), "critic")
            network.clip_critic()
        scores = network.score(network.forward(self._noise(backend, first + len(samples), size)), frozen=True)
        yield Update(signed_means(scores, ((-1.0, size),)), "generator", "generator_loss")

    def evaluate(self, numerics) -> dict[str, float]:
        """The coverage of held-out images by those that the design's own arithmetic makes."""
        made = self.network.forward(self._noise(numerics.backend, 0, self._made))
        return {"accuracy": self._coverage(numerics.backend.double(host(made.value)))}

    def _noise(self, backend, index: int, rows: int) -> Tensor:
        return Tensor(backend.array(noise(self.seed, index, rows, self.network.inputs)), backend)
