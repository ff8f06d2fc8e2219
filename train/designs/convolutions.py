"""Convolutions by transforms, as a design's ``[convolution]`` table states them for its layers.

    [convolution]
    algorithm = "winograd"                          # or "fft", or "direct", which is what a design without it has
    tile = 4                                        # of "winograd": 2 (the default) or 4
    transform = { accumulator = "binary32" }        # the unit of the transforms of images and kernels
    output = { accumulator = "binary32" }           # the unit of the transforms that lead back
    otherwise = "direct"                            # "error", the default

    [layers."conv1".convolution]                    # in place of all of the table above
    algorithm = "fft"
    size = 16                                       # of "fft", like twiddle and scaling
    twiddle = "bfloat16"

The products and their sums over channels are those of the units ``forward`` and ``backward_data``, which are also the
units of transforms that are not stated. A transform's unit without ``operand`` takes its accumulator's format. The
gradients of weights are direct products. A convolution that the algorithm does not have (strides, groups, kernels,
blocks, stochastic units: `softnum.mac.products.conv2d_winograd` and `softnum.mac.products.conv2d_fft`) is an error, or
computed directly where the design says ``otherwise = "direct"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softnum.formats.base import AnyFormat
from softnum.mac.mad import Unit
from softnum.mac.products.fourier import check_fft, conv2d_fft
from softnum.mac.products.winograd import check_winograd, conv2d_winograd
from softnum.train.designs.design import OPERAND_ROLES, LayerDesign, scaled_by
from softnum.train.designs.unit_specs import describe_unit

__all__ = ["ALGORITHMS", "OTHERWISE", "Convolution", "algorithm_of"]

#: algorithm -> the function, what checks its arguments by shapes, its own keys of a table
ALGORITHMS = {
    "winograd": (conv2d_winograd, check_winograd, ("tile",)),
    "fft": (conv2d_fft, check_fft, ("size", "twiddle", "scaling")),
}
OTHERWISE = ("error", "direct")
_GEOMETRY = ("stride", "padding", "dilation", "groups")


@dataclass(frozen=True)
class Convolution:
    """How convolutions are computed.

    Parameters
    ----------
    algorithm : str
        "direct", or a key of `ALGORITHMS`.
    options : tuple of (str, value)
        The keywords of its function but the units.
    transform, output : Unit, optional
        None: the unit of the pass.
    otherwise : str
        Of `OTHERWISE`: what comes of a convolution that it does not have.
    """

    algorithm: str
    options: tuple = ()
    transform: Unit | None = None
    output: Unit | None = None
    otherwise: str = OTHERWISE[0]

    def delivers(self, unit: Unit) -> AnyFormat:
        """The format of results, of products in a unit."""
        return (self.output or unit).result

    def starts_in(self, unit: Unit) -> AnyFormat:
        """The format of an accumulator's initial value, of products in a unit."""
        return (self.output or unit).c_format

    def refusal(self, key: str, a: tuple, b: tuple, unit: Unit, geometry: dict) -> str | None:
        """Why a pass of a convolution of operands of these shapes cannot be computed so; None: it can."""
        try:
            w, options = self._arguments(key, b, geometry)
            ALGORITHMS[self.algorithm][1](a, w, unit, **options)
        except ValueError as error:
            return str(error).removeprefix(f"conv2d_{self.algorithm}: ")
        return None

    def compute(self, key: str, a, b, unit: Unit, c, geometry: dict) -> np.ndarray:
        """A pass of a convolution: `conv2d_winograd` or `conv2d_fft` of images or errors and kernels.

        Parameters are those of ``softnum.train.engine.backend.NumpyBackend.convolve``. The gradient of images is the
        convolution of the errors, with more padding, by kernels that are turned and have filters and channels
        exchanged.
        """
        _, options = self._arguments(key, b.shape, geometry)
        w = b if key == "forward" else np.ascontiguousarray(b.swapaxes(0, 1)[..., ::-1, ::-1])
        return ALGORITHMS[self.algorithm][0](a, w, unit, c, **options)

    def _arguments(self, key: str, w: tuple, geometry: dict) -> tuple[tuple, dict]:
        """The shape of the kernels and the keywords of the algorithm's function in a pass."""
        plain = {name: geometry.get(name, 1) for name in ("stride", "dilation", "groups")}
        padding = np.broadcast_to(geometry.get("padding", 0), 2).tolist()
        if key == "backward_data":
            padding = [k - 1 - p for k, p in zip(w[2:], padding, strict=True)]
            if min(padding) < 0:
                raise ValueError(f"padding must be less than the kernel, got {geometry['padding']!r} and {w[2:]}")
            w = (w[1], w[0], *w[2:])
        units = {"transform": self.transform, "output": self.output}
        return w, {**dict(self.options), **units, "padding": tuple(padding), **plain}

    def describe(self) -> dict:
        """It as plain data for a record; units that it does not state are those of the pass."""
        options = {key: _plain(value) for key, value in self.options}
        units = {"transform": self.transform, "output": self.output}
        stated = {name: describe_unit(unit) for name, unit in units.items() if unit is not None}
        return {"algorithm": self.algorithm, **options, **stated, "otherwise": self.otherwise}


def _plain(value):
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (int, str)) else str(value)


def algorithm_of(
    layer: LayerDesign, name: str, key: str, a: tuple, b: tuple, geometry: dict, *, first: bool
) -> tuple[Convolution | None, str]:  # fmt: skip
    """What computes a pass of a layer's convolution, and its name for a record: None computes it directly.

    Parameters
    ----------
    layer : LayerDesign
    name : str
        By which the design knows the layer.
    key : str
        The pass.
    a, b : tuple of int
        The shapes of its operands.
    geometry : dict
        As of ``softnum.train.engine.backend.NumpyBackend.convolve``.
    first : bool
        Whether the layer takes the network's input.

    Raises
    ------
    ValueError
        If the design's algorithm does not have this convolution, and the design does not say what else.
    """
    by: Any = layer.convolution
    if by is None or key == "backward_weight":
        return None, "direct"
    roles = ["input" if first and role == "activations" else role for role in OPERAND_ROLES[key]]
    roundings = {role: layer.roles[layer.name(key, role)] for role in roles}
    why = next((f"role {role!r} has {scaled_by(own)}" for role, own in roundings.items() if own.by_products), None)
    why = why or by.refusal(key, a, b, layer.units[key], geometry)
    if why is None:
        return by, by.algorithm
    if by.otherwise == "direct":
        return None, f"direct: {why}"
    raise ValueError(
        f"layer {name!r}: the design computes convolutions by {by.algorithm!r}, which does not have the pass {key} of "
        f"this one ({b[2]} x {b[3]} kernels, {', '.join(f'{what} {geometry.get(what, 1)}' for what in _GEOMETRY)}): "
        f'{why}; state [layers."{name}".convolution] algorithm = "direct" for it, or otherwise = "direct" beside the '
        "algorithm"
    )
