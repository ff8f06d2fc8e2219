"""What networks have in common."""

from __future__ import annotations

import inspect
from collections import Counter

from softnum.train.datasets.vocabulary import BYTES
from softnum.train.engine.tensor import Parameter, Tensor, cast
from softnum.train.layers.normalisation import Buffer
from softnum.train.layers.sizes import check_batch, check_data
from softnum.train.tasks.classification import Classification
from softnum.train.tasks.task import Task

__all__ = ["Network", "product_rows"]


def product_rows(rows) -> list[dict]:
    """(layer, pass, M, N, K) of each matrix product, as `Network.gemms` returns it: equal ones in a row with a count.

    >>> product_rows([("fc1", "forward", 32, 10, 64), ("conv1", "forward", 72, 4, 18), ("conv1", "forward", 72, 4, 18)])
    [{'layer': 'fc1', 'pass': 'forward', 'M': 32, 'N': 10, 'K': 64},
     {'layer': 'conv1', 'pass': 'forward', 'M': 72, 'N': 4, 'K': 18, 'count': 2}]
    """
    return [
        dict(zip(("layer", "pass", "M", "N", "K"), row, strict=True)) | ({"count": count} if count > 1 else {})
        for row, count in Counter(rows).items()
    ]


class Network:
    """A network of layers (`softnum.train.layers.feedforward`), each of which every sample passes once.

    Subclasses set ``name``, and ``kind`` and ``task`` where those are others, and give the constructor their layers; in
    `options_of` they say which of its arguments follow from the data. They implement ``forward(x, *, training=False)``:
    the output for a batch of samples, rounded to the role ``output`` of the last layer; of text, a row for each byte,
    sequence by sequence.

    Parameters
    ----------
    layers : sequence
        In the order in which the input passes them; of two branches, the one that is added first comes first.
    options : dict
        The constructor's arguments, for a record.
    inputs, outputs : int
        Features of a sample; results of the last layer.
    relu : sequence
        Those of the layers whose results pass a ReLU.

    Attributes
    ----------
    operators : dict
        Layer -> the functions that it asks for by name, which a design may replace.
    parameters : list of Parameter
        What an optimiser updates; empty before `initialise`.
    buffers : list of Buffer
        What training changes besides, like running statistics.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> make_network("mlp", sizes=(64, 32, 10)).layer_names
    ['fc1', 'fc2']
    """

    name: str
    #: of the data that it takes: ``softnum.train.datasets.sets.DataFacts.kind``
    kind = "samples"
    #: how many tokens a text is told in; 256 are its bytes
    vocabulary = BYTES
    #: what it learns
    task: type[Task] = Classification

    def __init__(self, layers, options: dict, inputs: int, outputs: int, *, relu=()) -> None:
        self.layers, self.options, self.inputs, self.outputs = list(layers), options, inputs, outputs
        asking = {layer.name for layer in relu}
        self.operators = {
            layer.name: ("relu",) if layer.name in asking else layer.functions for layer in self.layers
        }  # fmt: skip
        self.parameters: list[Parameter] = []
        self.buffers: list[Buffer] = []

    @classmethod
    def options_of(cls, facts) -> dict:
        """The constructor's arguments that follow from a data set's facts, where a user does not state them.

        Here those of ``image`` and ``classes`` that the constructor takes.
        """
        known = inspect.signature(cls).parameters
        return {name: getattr(facts, name) for name in ("image", "classes") if name in known}

    def make_task(self, data, batch: int, seed: int) -> Task:
        """What it learns from some data, in batches of so many samples."""
        return self.task(self, data, batch, seed)

    @property
    def groups(self) -> dict[str, list[Parameter]]:
        """The parameters that are updated together, by the name of the group: here all of them."""
        return {"all": self.parameters}

    @property
    def layer_names(self) -> list[str]:
        """The layers' names, in the order in which the input passes them."""
        return [layer.name for layer in self.layers]

    @property
    def looked_up(self) -> frozenset[str]:
        """The names of the layers whose weights are rows that are looked up."""
        return frozenset(layer.name for layer in self.layers if layer.looked_up)

    def describe(self) -> dict:
        """The network as plain data for a record."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in self.options.items()}
        return {"name": self.name, **plain}

    def check(self, features: int, classes: int) -> None:
        """Raise ValueError if data of so many features and classes do not fit the network."""
        check_data(self.inputs, self.outputs, features, classes, self.options.get("steps"))

    def gemms(self, batch: int) -> list[dict]:
        """The matrix products of one training iteration, in the order in which they are first computed.

        Parameters
        ----------
        batch : int
            Samples per iteration.

        Returns
        -------
        list of dict
            ``layer``, ``pass`` and the sizes of an (M, K) @ (K, N) product; ``count``, where a layer computes more than
            one of these sizes in a pass. The first layer has no backward_data: the input needs no gradient. A
            convolution is the product of its unfolded operand, once for each group; the products of an attention are
            those of each sample and head (of keys and values), the products of a cell those of each step. Gradients of
            biases and embeddings and the sums of normalisations, poolings and softmax are not listed, nor are an
            optimiser's own products.

        Examples
        --------
        >>> from softnum.train import make_network
        >>> make_network("mlp", sizes=(64, 10)).gemms(32)
        [{'layer': 'fc1', 'pass': 'forward', 'M': 32, 'N': 10, 'K': 64},
         {'layer': 'fc1', 'pass': 'backward_weight', 'M': 64, 'N': 10, 'K': 32}]
        """
        check_batch(batch)
        return product_rows(self._products(batch))

    def _products(self, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of an iteration, in their order."""
        rows = [row for layer in self.layers for row in layer.products("forward", batch)]
        for layer in reversed(self.layers):
            rows += layer.backward_products(batch, data=layer is not self.layers[0])
        return rows

    def initialise(self, numerics) -> None:
        """Set the parameters and buffers to their initial values, rounded to their roles.

        Weights are He-uniform, each layer's from its own stream; biases are 0, of a normalisation the gains are 1.
        """
        numerics.begin(0)
        self.parameters, self.buffers = [], []
        for index, layer in enumerate(self.layers):
            layer.initialise(numerics, index)
            self.parameters += layer.parameters
            self.buffers += layer.buffers

    def output(self, x: Tensor) -> Tensor:
        """x, the result of the last layer, rounded to its role ``output``."""
        layer = self.layers[-1].numerics
        return cast(x, "output", layer, of=layer.design.delivered)
