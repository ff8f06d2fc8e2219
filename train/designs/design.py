"""A design: roundings by role, units by pass, operators by function, layer by layer."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.arrays.sources import DEFAULT_SOURCE, RandomSource, random_source
from softnum.formats.blocks import BlockFormat, format
from softnum.formats.facts import is_exact_in
from softnum.train.designs.loss_scaling import LossScaling, overflow_shows
from softnum.train.designs.objects import describe_format, file_of
from softnum.train.designs.scales import Hadamard, describe_scale, length_along, scale_bits
from softnum.train.designs.sparsity import Sparsity
from softnum.train.designs.split_units import SPLIT, check_whole
from softnum.train.designs.unit_specs import BLOCK_KINDS, accumulator_of, build_unit, describe_unit, operands_of

__all__ = [
    "BLOCK_ROLES", "COMPENSATION", "ENGINES", "NO_MASTER", "OPERAND_ROLES", "OPTIMISER_ROLES", "PASSES", "PASS_ROLES",
    "ROLES", "SAVED", "SPARSE_ROLES", "STATE_ROLES", "UPDATE", "Design", "LayerDesign", "NamedOperator", "RoleRounding",
    "nearest", "scaled_by",
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
_FEEDING = OPERAND_ROLES | {UPDATE: ("update.step", "update.step")}
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
            given, units = _of_single_numbers(given, units)
        roles, built = _resolve(f"{self.path}: layer {name!r}", given, units, first)
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


# -- resolving ---------------------------------------------------------------------------------------------------------


def contains(outer, inner) -> bool | None:
    """Whether every finite value of one format is a value of another; None where the facts alone do not tell."""
    return outer.contains(inner)


def _of_single_numbers(given: dict, units: dict[str, dict]) -> tuple[dict, dict]:
    """The roles and units of a layer without those of blocks, scales and single passes, as far as they are stated."""
    whole = {role: rounding for role, rounding in given.items() if role not in (SAVED, *PASS_ROLES.values())}
    roles = {
        role: rounding
        for role, rounding in whole.items()
        if rounding == NO_MASTER or role in STATE_ROLES or not rounding.by_products
    }
    scaled = {role for role in whole if role not in roles and whole[role].scale is not None}
    plain = {}
    for key, spec in units.items():
        spec = spec["inner"] if spec.get("kind") == SPLIT else spec  # sums of rows are one rank's
        blocks = any(isinstance(fmt, BlockFormat) for fmt in spec.get("operand", ()))
        if blocks or spec.get("kind") in BLOCK_KINDS or "inner" in spec or scaled.intersection(OPERAND_ROLES[key]):
            spec = {"accumulator": accumulator_of(spec)}
        plain[key] = spec
    return roles, plain


def _resolve(where: str, given: dict[str, RoleRounding], units: dict[str, dict], first: bool) -> tuple[dict, dict]:
    """The roundings and the units of a layer."""
    default = given.get("default", RoleRounding(format("binary32"), source="binary32"))
    roles = {role: given.get(role) for role in ROLES}
    stored = roles.pop("master")
    first_role = "input" if first else "activations"
    for key, spec in units.items():
        if "operand" not in spec:
            continue
        for role, fmt in zip(_FEEDING[key], spec["operand"], strict=True):
            for name in (role, "input") if role == "activations" else (role,):
                if roles[name] is None and PASS_ROLES.get((key, name)) not in given:
                    roles[name] = dataclasses.replace(default, format=fmt, source=str(fmt))
    roles = {role: value or default for role, value in roles.items()}
    if stored == NO_MASTER and roles["weights"].by_products:
        how = "with a scale" if roles["weights"].scale is not None else "in blocks"
        raise ValueError(
            f'{where}: roles.master is "none", but parameters are not stored as weights {how} '
            f"({roles['weights'].format}), which each product rounds along its own dimension; state master's format"
        )
    unmasked = dataclasses.replace(roles["weights"], sparsity=None)
    roles["master"] = unmasked if stored == NO_MASTER else stored or default
    for role in (COMPENSATION, SAVED):
        if given.get(role, NO_MASTER) != NO_MASTER:
            roles[role] = given[role]
    built = {}
    for key in (*PASSES, UPDATE) if UPDATE in units else PASSES:
        spec = dict(units.get(key, {"accumulator": format("binary32")}))
        feeding = [first_role if role == "activations" else role for role in _FEEDING[key]]
        for place, role in enumerate(feeding):
            if (name := PASS_ROLES.get((key, role), role)) in given:
                feeding[place] = name
                roles.setdefault(name, given[name])
        blocks = [role for role in feeding if roles[role].block]
        mixed = blocks if len(blocks) == 1 else []
        if mixed:
            _check_mixed(f"{where}: {key}", {role: roles[role] for role in feeding}, spec)
        formats = tuple(_number_format(roles[role].format) if role in mixed else roles[role].format for role in feeding)
        operand = operands_of(spec, formats)
        for role, have, need in zip(feeding, formats, operand, strict=True):
            if role in mixed:
                _check_numbers(f"{where}: units.{key}", role, roles[role].format, need)
            elif contains(need, have) is False:
                raise ValueError(
                    f"{where}: units.{key} takes operands {need}, which do not hold every value of role {role!r} "
                    f"({have}); leave the unit's operand out to take it from the roles"
                )
        try:
            built[key] = build_unit(spec, operand)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: units.{key}: {error}") from error
        if key != UPDATE:
            _check_scales(f"{where}: {key}", {role: roles[role] for role in feeding}, built[key])
    return roles, built


def _bits_of_numbers(fmt: BlockFormat) -> int:
    """The significant bits of a block format's numbers: element times scale, times the array's scale."""
    parts = [fmt.element, *(part for part in (fmt.scale, fmt.tensor_scale) if part and part.value_facts.precision > 1)]
    return sum(part.value_facts.precision for part in parts)


def _number_format(fmt: BlockFormat):
    """The format of a block format's numbers, multiplied as single ones, where a design states none."""
    return format("binary32" if _bits_of_numbers(fmt) <= format("binary32").precision else "binary64")


def _check_mixed(where: str, roundings: dict[str, RoleRounding], spec: dict) -> None:
    """Raise ValueError if a block format's numbers and others cannot be multiplied as single ones, by a unit's spec."""
    have = " by ".join(f"role {role!r} ({rounding.format})" for role, rounding in roundings.items())
    if (kind := spec.get("kind", "block_dot" if "inner" in spec else "mad")) in BLOCK_KINDS:
        raise ValueError(
            f"{where} multiplies {have} in a unit of kind {kind!r}, which needs block formats for both operands; state "
            "another kind, which multiplies the decoded numbers, or give both roles block formats"
        )
    if any(rounding.scale is not None for rounding in roundings.values()):
        raise ValueError(
            f"{where} multiplies {have}, one in a block format and one with a scale; state a scale for both, or a "
            "block format"
        )


def _check_numbers(where: str, role: str, fmt: BlockFormat, need) -> None:
    """Raise ValueError if an operand's format has fewer significant bits than the numbers of a block format."""
    have, most = _bits_of_numbers(fmt), need.value_facts.precision
    if have > most:
        raise ValueError(
            f"{where} takes operands {need}, of {most} significant bits, and numbers of role {role!r} ({fmt}), element "
            f"times scale, have up to {have}; state a wider operand"
        )


def _check_scales(where: str, roundings: dict[str, RoleRounding], unit) -> None:
    """Raise ValueError unless `scaled_product` multiplies operands of these roundings in a unit."""
    scales = {role: rounding.scale for role, rounding in roundings.items() if rounding.scale is not None}
    lengths = {role: length_along(scale) for role, scale in scales.items()}
    if lengths and not is_exact_in(unit.result, "float32"):
        raise ValueError(
            f"{where}: the sums of role {next(iter(lengths))!r}, which has a scale, are scaled in binary32, which the "
            f"unit's result {unit.result} does not fit; give the unit an accumulator that does"
        )
    check_whole(where, unit, scales)
    sizes = sorted(length for length in lengths.values() if length is not None)
    if len(sizes) == 2 and sizes[1] % sizes[0]:
        have = " by ".join(f"role {role!r} ({length} along K)" for role, length in lengths.items())
        raise ValueError(f"{where} multiplies {have}: the tiles of one must be multiples of the other's")
    first, second = (rounding.hadamard for rounding in roundings.values())
    if first != second:
        have = " by ".join(
            f"role {role!r} ({'no hadamard' if part.hadamard is None else f'hadamard {part.hadamard.describe()}'})"
            for role, part in roundings.items()
        )
        raise ValueError(
            f"{where} multiplies {have}: a transform cancels only if both operands have it; state the same hadamard "
            "for both roles of the pass"
        )


def scaled_by(rounding: RoleRounding) -> str:
    """What keeps a role's numbers from being rounded once, for all that takes them."""
    if rounding.block:
        return f"the block format {rounding.format}"
    return "a rounding of one pass alone" if rounding.scale is None else f"a scale, of {rounding.format}"


def nearest(key: str, known) -> str:
    """``"; did you mean 'x'?"`` with the nearest of what is known, or nothing."""
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.3)
    return f"; did you mean {near[0]!r}?" if near else ""
