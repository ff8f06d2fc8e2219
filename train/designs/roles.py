"""Roles, passes and engines by name, and how the numbers of a role are rounded."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass, field
from typing import Any

from softnum.arrays.sources import DEFAULT_SOURCE, RandomSource, random_source
from softnum.formats.blocks import BlockFormat
from softnum.train.designs.objects import describe_format
from softnum.train.designs.scales import Hadamard, describe_scale, scale_bits
from softnum.train.designs.sparsity import Sparsity

__all__ = [
    "BLOCK_ROLES", "COMPENSATION", "ENGINES", "FEEDING", "NO_MASTER", "OPERAND_ROLES", "OPTIMISER_ROLES", "PASSES",
    "PASS_ROLES", "ROLES", "SAVED", "SPARSE_ROLES", "STATE_ROLES", "UPDATE", "RoleRounding", "in_blocks", "nearest",
    "scaled_by",
]  # fmt: skip

ROLES = (
    "input", "weights", "activations", "elementwise", "statistics", "output", "errors", "weight_gradients",
    "master", "momentum", "update.decay", "update.momentum", "update.weight",
    "second_moment", "update.second_moment", "update.step", "update.norm",
)  # fmt: skip
#: roles that only some optimisers round to
OPTIMISER_ROLES = ROLES[-4:]
#: roles that may be sparse
SPARSE_ROLES = ("input", "weights", "activations", "errors", "weight_gradients")
#: the role that a design may state besides: of the compensation of updates, which there is only then
COMPENSATION = "compensation"
#: and another: of the activations that are kept for the gradients of weights
SAVED = "saved_activations"
NO_MASTER = "none"
#: what computes all that is no product
ENGINES = ("exact", "torch")
PASSES = ("forward", "backward_data", "backward_weight")
OPERAND_ROLES = {
    "forward": ("activations", "weights"),
    "backward_data": ("errors", "weights"),
    "backward_weight": ("activations", "errors"),
}
#: the unit of an optimiser's own products, of values of one role
UPDATE = "update"
#: the roles of a product's two operands, of all units
FEEDING = OPERAND_ROLES | {UPDATE: ("update.step", "update.step")}
#: roles that take block formats: those of operands, along the K of a product
BLOCK_ROLES = ("input", "weights", "activations", "errors")
#: and those of an optimiser's states, along the elements of a parameter in C order
STATE_ROLES = ("momentum", "second_moment")
#: (pass, role) -> the name by which a design states the rounding of a role in one pass alone
PASS_ROLES = {
    (key, role): f"{key}.{role}"
    for key, roles in OPERAND_ROLES.items()
    for role in (*roles, *(("input",) if "activations" in roles else ()))
}


@dataclass(frozen=True)
class RoleRounding:
    """How numbers in one role are rounded: the arguments of `softnum.quantize` but the key; and which are pruned.

    Parameters
    ----------
    format : Format or BlockFormat
        The format whose values the role's numbers take.
    rounding, overflow : str
        As in `softnum.quantize`; of a block format, of its elements.
    stochastic_bits : int
        Random bits of a stochastic rounding.
    random : str
        Their source, as in `softnum.quantize`.
    source : str
        The format as the design file wrote it.
    sparsity : Sparsity, optional
        Which are kept; None: all.
    scale_rule : str, optional
        Of a block format, as in `softnum.encode`.
    scale : optional
        A quantizer of `softnum.train.recipes`, whose elements are of the format: the numbers are rounded by it, and
        multiplied as `softnum.train.recipes.scaled_product` says.
    hadamard : Hadamard, optional
        What mixes numbers along K before they are rounded with a scale.
    trust : bool
        Whether backward passes take what the forward pass multiplied, and gradients pass back where the scale cuts
        nothing off.
    """

    format: Any
    rounding: str = "nearest_even"
    overflow: str | None = None
    stochastic_bits: int = 32
    random: str = DEFAULT_SOURCE
    source: str = field(default="", compare=False)
    sparsity: Sparsity | None = None
    scale_rule: str | None = None
    scale: Any = None
    hadamard: Hadamard | None = None
    trust: bool = False

    @functools.cached_property
    def block(self) -> bool:
        """Whether numbers are of a block format."""
        return isinstance(self.format, BlockFormat)

    @functools.cached_property
    def by_products(self) -> bool:
        """Whether only products take the numbers, which have scales: those of a block format, or of ``scale``."""
        return self.block or self.scale is not None

    @property
    def bits_per_value(self) -> int | float:
        """Bits of an element, with its share of a block's or tile's scale."""
        return self.format.bits_per_value + (0 if self.scale is None else scale_bits(self.scale))

    @functools.cached_property
    def stochastic(self) -> bool:
        """Whether rounding takes random bits."""
        return self.rounding.startswith("stochastic")

    @functools.cached_property
    def random_source(self) -> RandomSource:
        """What `random` names."""
        return random_source(self.random, "RoleRounding")

    def describe(self) -> dict:
        """The rounding as plain data for a record."""
        facts = {**describe_format(self.format, self.source), "rounding": self.rounding}
        if self.overflow is not None:
            facts["overflow"] = self.overflow
        if self.stochastic:
            facts["stochastic_bits"] = self.stochastic_bits
            if not self.random_source.is_default:
                facts["random"] = self.random
        rule = self.format.scale_rule(self.scale_rule)
        if rule is not None:
            facts["scale_rule"] = rule
        if self.scale is not None:
            facts |= {"bits": self.bits_per_value, "scale": describe_scale(self.scale)}
        if self.hadamard is not None:
            facts["hadamard"] = self.hadamard.describe()
        if self.trust:
            facts["backward"] = "trust"
        if self.sparsity is not None:
            facts["sparsity"] = self.sparsity.describe()
        return facts


def in_blocks(roles: dict[str, RoleRounding], names: list[str]) -> list[str]:
    """Of these roles those whose numbers are of block formats."""
    return [role for role in names if roles[role].block]


def scaled_by(rounding: RoleRounding) -> str:
    """What keeps a role's numbers from being rounded once, for all that takes them."""
    if rounding.block:
        return f"the block format {rounding.format}"
    return "a rounding of one pass alone" if rounding.scale is None else f"a scale, of {rounding.format}"


def nearest(key: str, known) -> str:
    """``"; did you mean 'x'?"`` with the nearest of what is known, or nothing."""
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.3)
    return f"; did you mean {near[0]!r}?" if near else ""
