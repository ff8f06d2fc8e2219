"""The matrix products of a training iteration under a design, as plain data: for simulators, and for a record."""

from __future__ import annotations

from softnum.mac.custom import CustomMadUnit
from softnum.train.designs.design import OPERAND_ROLES, PASSES, Design, RoleRounding

__all__ = ["design_gemms"]


def design_gemms(design: Design, network, batch: int) -> list[dict]:
    """The matrix products of one training iteration under a design, for a simulator.

    Parameters
    ----------
    design : Design
    network
        As `make_network` returns it.
    batch : int
        Samples per iteration.

    Returns
    -------
    list of dict
        ``layer``, ``pass``, ``M``, ``N``, ``K``; ``count`` of equal products, where there is more than one; ``bits`` of
        the wider operand, with an element's share of the scale of a block or tile; ``formats`` of both. ``sparsity`` of
        both, "2:4" or "dense", where an operand has a pattern along K; no other zeros are told of.
        ``function``: that of the user's which multiplies, where the unit is custom.

    Examples
    --------
    >>> from softnum.train import design_gemms, load_design, make_network
    >>> design_gemms(load_design("c-wang-fp8"), make_network("mlp"), 32)[0]
    {'layer': 'fc1', 'pass': 'forward', 'M': 32, 'N': 128, 'K': 64, 'bits': 16, 'formats': ['e6m9', 'e5m2']}
    """
    names = network.layer_names
    rows = []
    for row in network.gemms(batch):
        first = row["layer"] == names[0]
        layer = design.layer(row["layer"], first=first)
        roles = layer.roles
        pair = ["input" if first and role == "activations" else role for role in OPERAND_ROLES[row["pass"]]]
        roundings = [roles[layer.name(row["pass"], role)] for role in pair]
        bits = max(rounding.bits_per_value for rounding in roundings)
        facts = {"bits": bits, "formats": [_short(rounding) for rounding in roundings]}
        patterns = [_pattern(row["pass"], role, roles[role]) for role in pair]
        if any(pattern != "dense" for pattern in patterns):
            facts["sparsity"] = patterns
        if isinstance(layer.units[row["pass"]], CustomMadUnit):
            facts["function"] = layer.functions.get(row["pass"], "custom")
        rows.append({**row, **facts})
    return rows


def _pattern(key: str, role: str, rounding: RoleRounding) -> str:
    """The pattern of an operand along the reduction dimension of a pass, or "dense"."""
    along = key == ("backward_data" if role == "errors" else "forward")
    return str(rounding.sparsity) if along and rounding.sparsity and rounding.sparsity.pattern else "dense"


def _short(rounding: RoleRounding) -> str:
    """A format's name; of ``file.py:object`` the object."""
    return rounding.format.label(rounding.source)


assert set(PASSES) == set(OPERAND_ROLES)
