"""A design as it applies to one layer."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

from softnum.formats.blocks import format
from softnum.train.designs.roles import (
    COMPENSATION,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    UPDATE,
    RoleRounding,
)
from softnum.train.designs.unit_specs import build_unit, describe_unit

__all__ = ["LayerDesign", "NamedOperator"]


@dataclass(frozen=True)
class NamedOperator:
    """A function of a network as the user computes it.

    Parameters
    ----------
    source : str
        The operator as the design file wrote it.
    operator : Operator
    """

    source: str
    operator: Any


@dataclass(frozen=True)
class LayerDesign:
    """A design as it applies to one layer: a rounding per role, a unit per pass, operators for some functions.

    ``roles`` has those of single passes too, by names of `PASS_ROLES`, where they are stated. ``functions`` names those
    of the user's functions that the units of some passes compute with. ``convolution`` is how convolutions are computed
    (``softnum.train.designs.convolutions.Convolution``), if not directly.
    """

    roles: dict[str, RoleRounding]
    units: dict[str, Any]
    operators: dict[str, NamedOperator]
    functions: dict[str, str]
    convolution: Any = None

    def name(self, key: str, role: str) -> str:
        """The name of a role's rounding in a pass: the role, or that of the pass alone."""
        name = PASS_ROLES.get((key, role), role)
        return name if name in self.roles else role

    @functools.cached_property
    def whole(self) -> frozenset[str]:
        """The roles whose numbers are rounded once for all products that take them, each by itself, and all kept."""
        passes = {role for (_, role), name in PASS_ROLES.items() if name in self.roles}
        saved = {"activations", "input"} if SAVED in self.roles else set()
        return frozenset(
            role for role, rounding in self.roles.items()
            if not (rounding.by_products or rounding.trust or rounding.sparsity or role in passes | saved)
        )  # fmt: skip

    @functools.cached_property
    def random(self) -> bool:
        """Whether any rounding, or any unit, takes random bits."""
        sparse = (rounding.sparsity for rounding in self.roles.values())
        feedback = (sparsity.feedback for sparsity in sparse if sparsity is not None)
        roundings = (*self.roles.values(), *(rounding for rounding in feedback if rounding is not None))
        return any(part.stochastic for part in (*roundings, *self.units.values()))

    @functools.cached_property
    def start_roundings(self) -> tuple[RoleRounding, RoleRounding]:
        """How accumulators' initial values are rounded: of layers, and of the one that takes the network's input."""
        return self._start_rounding("activations"), self._start_rounding("input")

    def _start_rounding(self, role: str) -> RoleRounding:
        inputs, weights = (self.roles[self.name("forward", name)] for name in (role, "weights"))
        if weights.scale is not None or inputs.scale is not None:
            return RoleRounding(format("binary32"))  # what it is added in
        return RoleRounding(
            self.units["forward"].c_format, weights.rounding, None, weights.stochastic_bits, weights.random
        )  # fmt: skip

    def start_of_convolution(self, first: bool) -> RoleRounding:
        """As `start_roundings`, of a convolution that is not computed directly."""
        start = self.start_roundings[first]
        return dataclasses.replace(start, format=self.convolution.starts_in(self.units["forward"]))

    @property
    def delivered(self):
        """The format of what the forward pass's products deliver; None if that is not one of all of them."""
        return None if self.convolution is not None else self.units["forward"].result

    @functools.cached_property
    def update_unit(self):
        """The unit of an optimiser's own products: the design's ``update``, else sums in binary32."""
        stated = self.units.get(UPDATE)
        return stated or build_unit({"accumulator": format("binary32")}, (self.roles["update.step"].format,) * 2)

    def describe(self, roles: tuple[str, ...] = ROLES, *, update: bool = False) -> dict:
        """All of it, or some of its roles, as plain data for a record; update: whether with the unit ``update``."""
        units = {key: self.units[key] for key in PASSES} | ({UPDATE: self.update_unit} if update else {})
        stated = (*roles, *(name for name in (COMPENSATION, SAVED, *PASS_ROLES.values()) if name in self.roles))
        facts = {
            "roles": {role: self.roles[role].describe() for role in stated},
            "units": {key: describe_unit(unit, self.functions.get(key)) for key, unit in units.items()},
        }
        if self.operators:
            facts["operators"] = {name: named.source for name, named in self.operators.items()}
        if self.convolution is not None:
            facts["convolution"] = self.convolution.describe()
        return facts
