"""The multi-layer perceptron: linear layers with ReLU between them."""

from __future__ import annotations

from softnum.train.functions import activation
from softnum.train.initial import he_uniform
from softnum.train.nets.sizes import check_batch, check_data, check_sizes
from softnum.train.tensor import Parameter, Tensor, cast, linear

__all__ = ["MLP"]


class MLP:
    """A perceptron with the given layer sizes; layers are called fc1, fc2, ...

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden sizes, outputs; at least two.

    Attributes
    ----------
    operators : dict
        Layer -> the functions that it asks for by name, which a design may replace.

    Raises
    ------
    ValueError
        If there are fewer than two sizes or one is not positive.
    """

    name = "mlp"

    def __init__(self, sizes=(64, 128, 10)) -> None:
        self.sizes = check_sizes(sizes, least=2)
        self.layer_names = [f"fc{i}" for i in range(1, len(self.sizes))]
        self.operators = {name: ("relu",) if name != self.layer_names[-1] else () for name in self.layer_names}
        self.parameters: list[Parameter] = []

    def describe(self) -> dict:
        """The network as plain data for a record."""
        return {"name": self.name, "sizes": list(self.sizes)}

    def check(self, features: int, classes: int) -> None:
        """Raise ValueError if data of so many features and classes do not fit the network."""
        check_data(self.sizes[0], self.sizes[-1], features, classes)

    def gemms(self, batch: int) -> list[dict]:
        """The matrix products of one training iteration, in the order in which they are computed.

        Parameters
        ----------
        batch : int
            Samples per iteration.

        Returns
        -------
        list of dict
            ``layer``, ``pass`` and the sizes of an (M, K) @ (K, N) product. The first layer has no backward_data: the
            input needs no gradient. Bias gradients are sums over the batch and not listed.

        Examples
        --------
        >>> from softnum.train import make_network
        >>> make_network("mlp", sizes=(64, 10)).gemms(32)
        [{'layer': 'fc1', 'pass': 'forward', 'M': 32, 'N': 10, 'K': 64},
         {'layer': 'fc1', 'pass': 'backward_weight', 'M': 64, 'N': 10, 'K': 32}]
        """
        check_batch(batch)
        layers = list(zip(self.layer_names, self.sizes, self.sizes[1:], strict=False))
        rows = [(name, "forward", batch, outputs, inputs) for name, inputs, outputs in layers]
        for position, (name, inputs, outputs) in reversed(list(enumerate(layers))):
            if position:
                rows.append((name, "backward_data", batch, inputs, outputs))
            rows.append((name, "backward_weight", inputs, outputs, batch))
        return [dict(zip(("layer", "pass", "M", "N", "K"), row, strict=True)) for row in rows]

    def initialise(self, numerics) -> None:
        """Set the parameters to their initial values: He-uniform weights and zero biases, rounded to ``master``."""
        numerics.begin(0)
        self.parameters = []
        for index, name in enumerate(self.layer_names):
            inputs, outputs = self.sizes[index], self.sizes[index + 1]
            layer = numerics.layer(name)
            weight = layer.round("master", he_uniform(numerics.seed, index, inputs, outputs))
            self.parameters.append(Parameter(weight, layer, f"{name}.weight"))
            self.parameters.append(Parameter(numerics.backend.zeros((outputs,)), layer, f"{name}.bias"))

    def forward(self, x: Tensor) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, inputs)

        Returns
        -------
        Tensor (B, outputs)
        """
        for index in range(len(self.layer_names)):
            weight, bias = self.parameters[2 * index : 2 * index + 2]
            x = linear(x, weight, bias, weight.layer)
            if index < len(self.layer_names) - 1:
                x = activation("relu", x, weight.layer)
        return cast(x, "output", weight.layer, of=weight.layer.design.units["forward"].result)
