"""The multi-layer perceptron: linear layers with ReLU between them."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sizes import check_sizes
from softnum.train.nets.network import Network

__all__ = ["MLP"]


class MLP(Network):
    """A perceptron with the given layer sizes; layers are called fc1, fc2, ...

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden sizes, outputs; at least two.

    Raises
    ------
    ValueError
        If there are fewer than two sizes or one is not positive.

    Examples
    --------
    >>> MLP((64, 128, 10)).describe()
    {'name': 'mlp', 'sizes': [64, 128, 10]}
    """

    name = "mlp"

    def __init__(self, sizes=(64, 128, 10)) -> None:
        sizes = check_sizes(sizes, least=2)
        layers = [Linear(f"fc{i}", *pair) for i, pair in enumerate(pairwise(sizes), start=1)]
        super().__init__(layers, {"sizes": sizes}, sizes[0], sizes[-1], relu=layers[:-1])

    @classmethod
    def options_of(cls, facts) -> dict:
        """As many inputs and outputs as samples have features and classes, around the default's hidden layer."""
        return {"sizes": (prod(facts.image), 128, facts.classes)}

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, inputs)
        training : bool
            Makes no difference here.

        Returns
        -------
        Tensor (B, outputs)
        """
        for layer in self.layers[:-1]:
            x = activation("relu", layer(x), layer.numerics)
        return self.output(self.layers[-1](x))
