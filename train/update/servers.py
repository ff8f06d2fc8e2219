"""Training by a parameter server: each update is one worker's gradient, of weights that may lack the last updates.

Iteration t of a run is update t (`softnum.collectives.servers`): its batch is worked on by one worker, with the weights
of the version that the worker had read, in the arithmetic of iteration t; the gradient then updates the weights as they
are by now. Statistics of batches (BatchNorm's running ones) are the server's and follow in the order of the updates.
"""

from __future__ import annotations

from collections.abc import Iterator

from softnum.collectives.servers import Server, Update, server
from softnum.train.engine.binary64 import host

__all__ = ["Versions"]


class Versions:
    """Older weights that gradients are still computed from, and the order of updates.

    Parameters
    ----------
    text : str
        The server.
    workers : int
    parameters : list of Parameter
        All that are updated.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> weight = Parameter(np.float32([1]), layer, "weight")
    >>> versions = Versions("asynchronous", 2, [weight])
    >>> for t in range(1, 4):
    ...     update = versions.begin(t)
    ...     print(update.worker, update.version, weight.value)
    ...     versions.end(t)
    ...     weight.value = weight.value + 1  # the update
    0 0 [1.]
    1 0 [1.]
    0 1 [2.]
    """

    def __init__(self, text: str | Server, workers: int, parameters) -> None:
        self.server, self.workers, self.parameters = server(text, workers), workers, list(parameters)
        self._order: Iterator[Update] = self.server.updates(workers)
        self._at, self._update = 0, None
        self._held: dict[int, list] = {}
        self._now: list = []

    def begin(self, iteration: int) -> Update:
        """Put the weights that an update's gradient is computed from in the place of the present ones."""
        while self._at < iteration:  # also after a checkpoint
            self._update = next(self._order)
            self._at += 1
        self._now = [parameter.value for parameter in self.parameters]
        if self._update.version < iteration - 1:
            self._put(self._held[self._update.version])
        return self._update

    def end(self, iteration: int) -> None:
        """Put the present weights back, to be updated, and keep what later gradients need."""
        self._put(self._now)
        self._held[iteration - 1] = self._now
        self._held = {version: values for version, values in self._held.items() if version in self._update.held}

    def _put(self, values: list) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.value = value

    def describe(self) -> dict:
        """It as plain data for a record."""
        return {"workers": self.workers, "server": str(self.server)}

    def state(self) -> dict:
        """What a checkpoint holds, by name."""
        return {
            f"version_{version}_{index}": host(value)
            for version, values in self._held.items()
            for index, value in enumerate(values)
        }

    def restore(self, state: dict, array) -> None:
        """Go back to what `state` gave; array: makes the backend's of one of the host."""
        found: dict[int, dict[int, object]] = {}
        for name, value in state.items():
            _, version, index = name.split("_")
            found.setdefault(int(version), {})[int(index)] = array(value)
        self._held = {version: [values[i] for i in sorted(values)] for version, values in found.items()}
