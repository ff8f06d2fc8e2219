"""A design: roundings by role, units by pass, operators by function, layer by layer."""

from __future__ import annotations

import difflib
import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softnum.train.designs.layer_design import LayerDesign, NamedOperator
from softnum.train.designs.loss_scaling import LossScaling, overflow_shows
from softnum.train.designs.objects import file_of
from softnum.train.designs.resolving import of_single_numbers, resolve
from softnum.train.designs.roles import (
    BLOCK_ROLES,
    COMPENSATION,
    ENGINES,
    NO_MASTER,
    OPERAND_ROLES,
    OPTIMISER_ROLES,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    SPARSE_ROLES,
    STATE_ROLES,
    UPDATE,
    RoleRounding,
    nearest,
    scaled_by,
)

__all__ = [
    "BLOCK_ROLES", "COMPENSATION", "ENGINES", "NO_MASTER", "OPERAND_ROLES", "OPTIMISER_ROLES", "PASSES", "PASS_ROLES",
    "ROLES", "SAVED", "SPARSE_ROLES", "STATE_ROLES", "UPDATE", "Design", "LayerDesign", "NamedOperator", "RoleRounding",
    "nearest", "scaled_by",
]  # fmt: skip


@dataclass(frozen=True)
class Design:
    """The arithmetic of a training run and the hardware it stands for; made by `load_design`.

    Attributes
    ----------
    name : str
        The design's name, also the folder of its records.
    path : pathlib.Path
        The file it was read from.
    roles, units, operators : dict
        What the file states for every layer, before defaults; `NO_MASTER` where it wants no master copy.
    layers : tuple of (str, dict, dict, dict, Convolution or None)
        Pattern, roles, units, operators and convolution of each ``[layers."pattern"]``, in file order; later ones win,
        entry by entry, and a role stands for all its passes.
    loss : LossScaling
        The factor on the error at the loss, and how it changes.
    hardware : dict
        The ``[hardware]`` table as written.
    sources : dict
        Text -> SHA-256 of the file, for each text of the design that names user-defined formats, functions or
        operators; None for a module without a file. Files that such a file includes or imports are not examined.
    engine : str
        What computes everything except products: "exact", the operations of softnum; or "torch", the functions of
        PyTorch, which only `softnum.torch` supports.
    convolution : Convolution, optional
        How convolutions are computed unless a layer states it; None: directly.

    Examples
    --------
    >>> from softnum.train import load_design
    >>> design = load_design("c-wang-fp8")
    >>> design.name, design.loss_scale, str(design.roles["activations"].format)
    ('c-wang-fp8', 1000.0, 'e5m2')
    """

    name: str
    path: Path
    description: str
    roles: dict[str, RoleRounding]
    units: dict[str, dict]
    operators: dict[str, NamedOperator]
    layers: tuple[tuple[str, dict, dict, dict, Any], ...]
    loss: LossScaling
    hardware: dict
    sources: dict[str, str | None]
    engine: str = "exact"
    convolution: Any = None

    @property
    def loss_scale(self) -> float:
        """The loss scale; of a dynamic one, the first."""
        return self.loss.initial

    @property
    def transforms(self) -> bool:
        """Whether some convolutions may be computed otherwise than directly.

        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").transforms
        False
        """
        stated = (self.convolution, *(convolution for *_, convolution in self.layers))
        return any(one is not None and one.algorithm != "direct" for one in stated)

    @property
    def files(self) -> list[Path]:
        """The files that the design names: in Python, C and Tile.

        >>> from softnum.train import load_design
        >>> [file.name for file in load_design("h-posit8").files]
        ['posit8.py']
        """
        files = {file_of(text, self.path.parent) for text in self.sources}
        return sorted(file for file in files if file is not None)

    def check_layers(self, names: list[str]) -> None:
        """Raise ValueError if a ``[layers]`` pattern matches none of a network's layers.

        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").check_layers(["fc1", "fc2"])
        """
        for pattern, *_ in self.layers:
            if not any(re.fullmatch(pattern, name) for name in names):
                near = difflib.get_close_matches(pattern, names, n=1, cutoff=0.3)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(
                    f'{self.path}: [layers."{pattern}"] matches no layer of the network{hint} '
                    f"(layers: {', '.join(names)})"
                )

    def check_operators(self, operators: dict[str, tuple[str, ...]]) -> None:
        """Raise ValueError if the design replaces a function that a network's layers do not have, or by what is none.

        Parameters
        ----------
        operators : dict
            Layer -> the functions that it asks for by name: a network's ``operators``.

        Raises
        ------
        ValueError
            If no layer has the function, or none of those that a ``[layers]`` pattern matches; or what is to replace it
            does not take one tensor to one, element by element.

        Examples
        --------
        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").check_operators({"lstm.hidden": ("sigmoid", "tanh")})
        """
        tables = [("operators", ".*", self.operators)]
        tables += [(f'layers."{pattern}".operators', pattern, table) for pattern, _, _, table, _ in self.layers]
        known = dict.fromkeys(name for functions in operators.values() for name in functions)
        for where, pattern, table in tables:
            for name, named in table.items():
                operator, shape = named.operator, (len(named.operator.inputs), len(named.operator.outputs))
                if name not in known:
                    raise ValueError(
                        f"{self.path}: {where}: the network has no function {name!r}{nearest(name, known)} "
                        f"(it has {', '.join(known) or 'none'})"
                    )
                having = [layer for layer, functions in operators.items() if name in functions]
                if not any(re.fullmatch(pattern, layer) for layer in having):
                    raise ValueError(
                        f"{self.path}: {where}: no layer that matches computes {name!r}; the layers that do are "
                        f"{', '.join(having)}"
                    )
                if not operator.is_elementwise or shape != (1, 1):
                    how = "element by element" if operator.is_elementwise else "not element by element"
                    raise ValueError(
                        f"{self.path}: {where}.{name}: {named.source!r} takes {shape[0]} tensors to {shape[1]}, {how}; "
                        f"{name} needs a function of one tensor to one, element by element"
                    )

    def layer(self, name: str, *, first: bool = False, looked_up: bool = False) -> LayerDesign:
        """Return the roundings and units of one layer.

        Parameters
        ----------
        name : str
            The layer's name, matched in full against the ``[layers]`` patterns.
        first : bool
            Whether the layer takes the network's input: its ``activations`` are then the role ``input``.
        looked_up : bool
            Whether its weights are rows that are looked up. Such a layer has no dimension K along which blocks run:
            where a role has a block format or a scale it takes ``default`` instead, and a unit of blocks, or one that
            multiplies scaled operands, its accumulator alone.

        Returns
        -------
        LayerDesign

        Raises
        ------
        ValueError
            If a unit's operands cannot hold the formats of the roles that feed it.

        Examples
        --------
        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").layer("fc2").roles["weights"].format.name
        'e6m9'
        """
        given, operators, convolution = dict(self.roles), dict(self.operators), self.convolution
        units = {key: dict(spec) for key, spec in self.units.items()}
        for pattern, layer_roles, layer_units, layer_operators, layer_convolution in self.layers:
            if re.fullmatch(pattern, name):
                for (_, role), of_pass in PASS_ROLES.items():
                    if role in layer_roles:  # which stands for all passes
                        given.pop(of_pass, None)
                given.update(layer_roles)
                units.update({key: dict(spec) for key, spec in layer_units.items()})
                operators.update(layer_operators)
                convolution = layer_convolution or convolution
        if looked_up:
            given, units = of_single_numbers(given, units)
        roles, built = resolve(f"{self.path}: layer {name!r}", given, units, first)
        functions = {key: spec["function"].source for key, spec in units.items() if "function" in spec}
        if convolution is not None and convolution.algorithm == "direct":
            convolution = None
        return LayerDesign(roles, built, operators, functions, convolution)

    def check_loss(self, names: list[str]) -> None:
        """Raise ValueError if the loss scale is to follow overflows that a network's layers would not show.

        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").check_loss(["fc1", "fc2"])
        """
        for position, name in enumerate(names if self.loss.dynamic else ()):
            layer = self.layer(name, first=position == 0)
            errors = {layer.name(key, "errors"): None for key in ("backward_data", "backward_weight")}
            for role in (*errors, "weight_gradients"):
                rounding = layer.roles[role]
                if not overflow_shows(rounding):
                    raise ValueError(
                        f"{self.path}: loss.scale is dynamic and follows infinities and NaN in weight gradients, which "
                        f"role {role!r} of layer {name!r} ({rounding.format}, {rounding.rounding}, overflow "
                        f"{rounding.overflow or 'by default'}) hides; give it a format and an overflow rule with them, "
                        "or state a number as the scale"
                    )

    def check_sparsity(self, names: list[str], iterations: int) -> None:
        """Raise ValueError if a share of zeros would still grow when a run of so many iterations ends.

        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").check_sparsity(["fc1", "fc2"], 100)
        """
        for position, name in enumerate(names):
            for role, rounding in self.layer(name, first=position == 0).roles.items():
                sparsity = rounding.sparsity
                if sparsity is not None and sparsity.gradual is not None and sparsity.gradual.stop > iterations:
                    raise ValueError(
                        f"{self.path}: role {role!r} of layer {name!r} reaches its {sparsity} in iteration "
                        f"{sparsity.gradual.stop}, and the run has {iterations}; lower its to, or train for longer"
                    )

    def describe(
        self, names: list[str], roles: tuple[str, ...] = ROLES, *, looked_up: Set[str] = frozenset(),
        update: bool = False,
    ) -> dict:  # fmt: skip
        """The whole design, resolved for a network's layers, as plain data for a record's ``config``.

        looked_up: the layers whose weights are rows that are looked up; update: as of `LayerDesign.describe`.
        """
        return {
            "name": self.name,
            "description": self.description,
            "layers": {
                name: self.layer(name, first=position == 0, looked_up=name in looked_up).describe(roles, update=update)
                for position, name in enumerate(names)
            },
            "loss": self.loss.describe(),
            "hardware": self.hardware,
            "sources": self.sources,
        }
