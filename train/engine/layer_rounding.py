"""What a layer computes without products: roundings to roles, operations of softnum's, sums as trees; their keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from softnum.train.designs.convolutions import Convolution
from softnum.train.designs.design import LayerDesign, RoleRounding, scaled_by
from softnum.train.engine.backend import role_key

__all__ = ["LayerRounding"]


class LayerRounding:
    """Roundings of one layer in one run, and arithmetic of single numbers.

    Parameters
    ----------
    numerics : Numerics
        The run's numerics, which number the rounding sites.
    name : str
        The layer.
    design : LayerDesign
        Its roundings and units.
    first : bool
        Whether it takes the network's input.
    """

    def __init__(self, numerics: Any, name: str, design: LayerDesign, first: bool) -> None:
        self.numerics = numerics
        self._bind(name, design, first)

    def _bind(self, name: str, design: LayerDesign, first: bool) -> None:
        self.name, self.design, self.first = name, design, first
        self.known_as = name  # by the design
        self.operand_role = "input" if first else "activations"
        self.start_rounding = design.start_roundings[first]
        self.convolved: dict[str, str] = {}  # by what, in each pass

    def round(self, role: str, x, *, of=None):
        """x rounded as the design says for a role, as carriers.

        of= is a format that all of x are values of: rounding to that same format changes nothing and is left out.
        """
        return self._round(role, self.design.roles[role], x, of)

    def same(self, role: str, x, of: str = "elementwise"):
        """Values of a role rounded to another, as by `round`; nothing is done where the two have one format."""
        return self.round(role, x, of=self.format(of))

    def axpy(self, role: str, alpha: float, x, y):
        """y + alpha * x of carriers, rounded once as the design says for a role."""
        return self.numerics.backend.axpy(alpha, x, y, self.design.roles[role], self._key(role))

    def compute(self, operation: str, role: str, *operands):
        """One of softnum's operations on carriers, the exact result rounded once as the design says for a role.

        An operand that is a Python number is rounded to the host type.
        """
        backend = self.numerics.backend
        operands = tuple(backend.constant(x) if isinstance(x, float) else x for x in operands)
        key, rounding = self._key(role), self.design.roles[role]
        try:
            return backend.compute(operation, operands, rounding, key)
        except ValueError as error:  # 0 / 0, where the format has no NaN
            raise ValueError(
                f"{error} (layer {self.name!r}, role {role!r}); give the role a format with finer or larger numbers, "
                "or one with NaN"
            ) from error

    def round_start(self, x, *, of=None):
        """A bias, or another product, rounded to what the forward unit starts from, in the mode of ``weights``."""
        return self._round("start", self.start_rounding, x, of)

    def round_start_of(self, by: Convolution | None, x, *, of=None):
        """`round_start` of a convolution that is computed by an algorithm; None: directly."""
        if by is None:
            return self.round_start(x, of=of)
        return self._round("start", self.design.start_of_convolution(self.first), x, of)

    def round_sum(self, x, y):
        """x + y of carriers, two biases: as `round_start` of the exact sum, rounded once."""
        return self.numerics.backend.axpy(1.0, y, x, self.start_rounding, self._key("start"))

    def enter(self, x):
        """x as an operand of element-by-element arithmetic: rounded to the role ``elementwise``."""
        return self.round("elementwise", x)

    def constant(self, x: float, rank: int):
        """A number that the user states as an operand of element-by-element arithmetic, in an array of such a rank."""
        return self.enter(np.full((1,) * rank, x))

    def one(self, like):
        """1 in the role ``elementwise``, so often as an array has elements."""
        return self.enter(self.numerics.backend.ones(like.shape))

    def elementwise(self, operation: str, *operands):
        """One of softnum's operations on values of the role ``elementwise``, rounded once to that role."""
        return self.operate("elementwise", operation, *operands)

    def delivered(self, operation: str, *operands):
        """`elementwise` of a result that no gradient takes."""
        return self.elementwise(operation, *operands)

    def operate(self, role: str, operation: str, *operands):
        """One of softnum's operations on values of a role, rounded once to that role."""
        return self.numerics.backend.operate(operation, operands, self.design.roles[role], self._key(role))

    def total(self, role: str, x, *, last: bool = False):
        """The sum of values of a role along the first axis, as a tree: neighbours in pairs, then the sums in pairs.

        An odd last one waits, unrounded; each sum is rounded to the role. last=True: along the last axis, which has one
        element then.

        >>> import numpy as np
        >>> from softnum.train import Numerics, load_design
        >>> layer = Numerics(load_design("d-e6m3-long"), ["fc1", "fc2"], seed=1).layer("fc1")
        >>> layer.total("elementwise", np.ones(64, np.float32))  # one after another, they would stop at 16
        array(64., dtype=float32)
        """
        if last:
            return self._total(role, x, x.shape[-1], "last", (*x.shape[:-1], 1))
        return self._total(role, x, len(x), "rows", x.shape[1:])

    def total_of_channels(self, role: str, x):
        """`total` of each channel of images (N, C, H, W), in the order of image, row and column: an array (C,)."""
        return self._total(role, x, len(x) * x.shape[2] * x.shape[3], "pixels", (x.shape[1],))

    def _total(self, role: str, x, count: int, axes: str, shape):
        keys, backend = self._keys_of_levels(role, count, axes), self.numerics.backend
        return backend.reshape(backend.total(x, self.design.roles[role], keys, axes), shape)

    def _keys_of_levels(self, role: str, count: int, axes: str) -> list:
        """The key of each level of the tree of count numbers along some axes."""
        return [self._key(role) for _ in range((count - 1).bit_length())]

    def last_first(self, x):
        """An array with its last axis before all others."""
        return self.numerics.backend.permute(x, (x.ndim - 1, *range(x.ndim - 1)))

    def quotient(self, role: str, x, count: int):
        """x / count in binary64, rounded to a role."""
        return self.round(role, self.numerics.backend.divide(x, float(count)))

    def kept(self, shape, rate: float):
        """Which elements of an array a dropout keeps, each with probability 1 - rate."""
        return self.numerics.backend.kept(shape, rate, self._key("dropout"))

    def operator_options(self, operator, parameters: list[bool]) -> dict:
        """What a user's operator is called with, forwards and backwards: formats, units, and its roundings' key.

        parameters: for each input, whether it is a parameter.
        """
        role, units, key = self.design.roles["elementwise"], self.design.units, self._key("elementwise")
        formats, sums = {"*": role.format}, {"*": units["forward"], "d*": units["backward_data"]}
        for (name, _), parameter in zip(operator.inputs, parameters, strict=True):
            if parameter:
                sums[f"d{name}"] = units["backward_weight"]
            if not operator.is_elementwise:
                formats[name] = self.format("weights" if parameter else self.operand_role)
        if not operator.is_elementwise:
            formats |= {f"d{name}": self.format("errors") for name in operator.outputs}
        options = {"fmt": formats, "unit": sums, "rounding": role.rounding, "stochastic_bits": role.stochastic_bits}
        if role.overflow is not None:
            options["overflow"] = role.overflow
        if role.stochastic or any(unit.stochastic for unit in sums.values()):
            options["key"] = role_key(role, key)
        return options

    def format(self, role: str):
        """The format of a role."""
        return self.design.roles[role].format

    def _round(self, place: str, rounding: RoleRounding, x, of):
        if rounding.by_products:
            raise TypeError(f"layer {self.name!r}: role {place!r} has {scaled_by(rounding)}; use `operand`")
        key, backend = self._key(place), self.numerics.backend
        known = of is not None and of == rounding.format
        return backend.unchanged(x, rounding) if known else backend.quantize(x, rounding, key)

    def _key(self, place: str) -> tuple[int, int]:
        """The key of the next rounding site, which is one of a role, a pass, or the start of an accumulator."""
        self.numerics.place = (self.name, place)
        return self.numerics.next_key()

    def wire_key(self, rounding: RoleRounding, place: str):
        """The key of rounding what is sent over a wire; a site is counted only where that is stochastic."""
        self.numerics.place = (self.name, place)
        return self._key(place) if rounding.stochastic else None
