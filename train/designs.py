"""Design files: one arithmetic, stated role by role, and the hardware it stands for.

A design is a TOML file. It never mentions a network's size, a batch or a learning rate, so that the same network runs
under any design and the same design under any network. Reading is strict: a key that is not known is an error that
names the file, the key and the nearest key that is.

Roles (what is rounded, and when)
    ``input``               the first layer's operand, in place of ``activations``
    ``activations``         a layer's input, rounded as it enters that layer's matrix products
    ``weights``             the working copy of a layer's weights, rounded from the master copy once a step
    ``output``              the network's result, before softmax and cross-entropy
    ``errors``              the gradient of a layer's output, rounded as it enters that layer's matrix products
    ``weight_gradients``    the gradient of a parameter, after the loss scale is divided out
    ``update.decay``        gradient + weight_decay * master
    ``update.momentum``     momentum * velocity + the above
    ``update.weight``       master - learning_rate * velocity
    ``momentum``, ``master``  how velocity and parameters are stored

A role belongs to the layer whose matrix products use it, so ``[layers."fc2".roles]`` states the operands of fc2's three
products. A role that a design does not name follows ``default`` in ``[roles]``, else binary32, to nearest even; an
operand role that it does not name follows the ``operand`` of the unit that consumes it, where the unit states one.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import softnum as sn
from softnum.modes import overflow_name, rounding_name
from softnum.train.objects import describe_format, load_object
from softnum.train.unit_specs import KINDS, PRESET_KEYS, build_unit, describe_unit

__all__ = ["PASSES", "ROLES", "Design", "LayerDesign", "RoleRounding", "design_names", "load_design"]

ROLES = (
    "input", "weights", "activations", "output", "errors", "weight_gradients",
    "master", "momentum", "update.decay", "update.momentum", "update.weight",
)  # fmt: skip
PASSES = ("forward", "backward_data", "backward_weight")
OPERAND_ROLES = {
    "forward": ("activations", "weights"),
    "backward_data": ("errors", "weights"),
    "backward_weight": ("activations", "errors"),
}
_ROLE_KEYS = ("format", "rounding", "overflow", "stochastic_bits")
_TOP_KEYS = ("name", "description", "roles", "units", "layers", "loss", "hardware")
_SRAM_KEYS = ("ifmap", "filter", "ofmap")
_HARDWARE_KEYS = ("array", "sram_bytes", "bandwidth", "clock")
_QUANTITY = {
    "bandwidth": re.compile(r"\d+(\.\d+)?\s*[kMGT]?B/s"),
    "clock": re.compile(r"\d+(\.\d+)?\s*[kMG]?Hz"),
}


@dataclass(frozen=True)
class RoleRounding:
    """How numbers in one role are rounded: the arguments of `softnum.quantize` but the key.

    Parameters
    ----------
    format : Format
        The format whose values the role's numbers take.
    rounding, overflow : str
        As in `softnum.quantize`.
    stochastic_bits : int
        Random bits of a stochastic rounding.
    source : str
        The format as the design file wrote it.
    """

    format: Any
    rounding: str = "nearest_even"
    overflow: str | None = None
    stochastic_bits: int = 32
    source: str = field(default="", compare=False)

    @property
    def stochastic(self) -> bool:
        """Whether rounding takes random bits."""
        return self.rounding.startswith("stochastic")

    def describe(self) -> dict:
        """The rounding as plain data for a record."""
        facts = {**describe_format(self.format, self.source), "rounding": self.rounding}
        if self.overflow is not None:
            facts["overflow"] = self.overflow
        if self.stochastic:
            facts["stochastic_bits"] = self.stochastic_bits
        return facts


@dataclass(frozen=True)
class LayerDesign:
    """A design as it applies to one layer: a rounding per role and a unit per pass."""

    roles: dict[str, RoleRounding]
    units: dict[str, Any]


@dataclass(frozen=True)
class Design:
    """One arithmetic and the hardware it stands for; made by `load_design`.

    Attributes
    ----------
    name : str
        The design's name, also the folder of its records.
    path : pathlib.Path
        The file it was read from.
    roles, units : dict
        What the file states for every layer, before defaults.
    layers : tuple of (str, dict, dict)
        Pattern, roles and units of each ``[layers."pattern"]``, in file order; later ones win, entry by entry.
    loss_scale : float
        Factor on the error at the loss.
    hardware : dict
        The ``[hardware]`` table as written.

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
    layers: tuple[tuple[str, dict, dict], ...]
    loss_scale: float
    hardware: dict

    @property
    def files(self) -> list[Path]:
        """The Python files that the design names, which lie next to it.

        >>> from softnum.train import load_design
        >>> [file.name for file in load_design("h-posit8").files]
        ['posit8.py']
        """
        found, waiting = set(), [tomllib.loads(self.path.read_text(encoding="utf-8"))]
        while waiting:
            value = waiting.pop()
            if isinstance(value, (dict, list)):
                waiting.extend(value.values() if isinstance(value, dict) else value)
            elif isinstance(value, str) and re.fullmatch(r"[^:\s]+\.py:\w+", value):
                found.add(self.path.parent / value.partition(":")[0])
        return sorted(found)

    def check_layers(self, names: list[str]) -> None:
        """Raise ValueError if a ``[layers]`` pattern matches none of a network's layers.

        >>> from softnum.train import load_design
        >>> load_design("c-wang-fp8").check_layers(["fc1", "fc2"])
        """
        for pattern, _, _ in self.layers:
            if not any(re.fullmatch(pattern, name) for name in names):
                near = difflib.get_close_matches(pattern, names, n=1, cutoff=0.3)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(
                    f'{self.path}: [layers."{pattern}"] matches no layer of the network{hint} '
                    f"(layers: {', '.join(names)})"
                )

    def layer(self, name: str, *, first: bool = False) -> LayerDesign:
        """Return the roundings and units of one layer.

        Parameters
        ----------
        name : str
            The layer's name, matched in full against the ``[layers]`` patterns.
        first : bool
            Whether the layer takes the network's input: its ``activations`` are then the role ``input``.

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
        given, units = dict(self.roles), {key: dict(spec) for key, spec in self.units.items()}
        for pattern, layer_roles, layer_units in self.layers:
            if re.fullmatch(pattern, name):
                given.update(layer_roles)
                units.update({key: dict(spec) for key, spec in layer_units.items()})
        return _resolve(f"{self.path}: layer {name!r}", given, units, first)

    def describe(self, names: list[str]) -> dict:
        """The whole design, resolved for a network's layers, as plain data for a record's ``config``."""
        resolved = {}
        for position, name in enumerate(names):
            layer = self.layer(name, first=position == 0)
            resolved[name] = {
                "roles": {role: layer.roles[role].describe() for role in ROLES},
                "units": {key: describe_unit(layer.units[key]) for key in PASSES},
            }
        return {
            "name": self.name,
            "description": self.description,
            "layers": resolved,
            "loss": {"scale": self.loss_scale},
            "hardware": self.hardware,
        }


_WIDEST = "the limit is 53 significant bits, exponents -1074 to 1023 (q32.32 takes 63; q27.27, 53)"


def fits_float64(fmt) -> bool:
    """Whether binary64 holds every value of a format.

    >>> fits_float64(sn.format("q27.27")), fits_float64(sn.format("q32.32")), fits_float64(sn.format("binary64"))
    (True, False, True)
    """
    if fmt.kind == "fixed":
        return fmt.bits - fmt.signed <= 53 and fmt.fraction_bits <= 1074 and fmt.integer_bits <= 1024
    if fmt.kind == "float":
        return fmt.precision <= 53 and fmt.emax <= 1023 and fmt.emin - fmt.mantissa_bits >= -1074
    return True  # a table's values are given in binary64


# -- resolving ---------------------------------------------------------------------------------------------------------


def contains(outer, inner) -> bool | None:
    """Whether every finite value of one format is a value of another; None where the facts alone do not tell."""
    kinds = (getattr(outer, "kind", None), getattr(inner, "kind", None))
    if outer == inner:
        return True
    if kinds == ("fixed", "fixed"):
        return outer.min <= inner.min and outer.max >= inner.max and outer.fraction_bits >= inner.fraction_bits
    if kinds == ("float", "float"):
        grid = outer.emin - outer.mantissa_bits <= inner.emin - inner.mantissa_bits
        whole = outer.lowest_binade == "subnormal"
        return (whole or None) and outer.precision >= inner.precision and outer.max >= inner.max and grid
    return None


def _resolve(where: str, given: dict[str, RoleRounding], units: dict[str, dict], first: bool) -> LayerDesign:
    default = given.get("default", RoleRounding(sn.format("binary32"), source="binary32"))
    roles = {role: given.get(role) for role in ROLES}
    first_role = "input" if first else "activations"
    for key, spec in units.items():
        if "operand" not in spec:
            continue
        for role, fmt in zip(OPERAND_ROLES[key], spec["operand"], strict=True):
            for name in (role, "input") if role == "activations" else (role,):
                if roles[name] is None:
                    roles[name] = dataclasses.replace(default, format=fmt, source=str(fmt))
    roles = {role: value or default for role, value in roles.items()}
    built = {}
    for key in PASSES:
        spec = dict(units.get(key, {"accumulator": sn.format("binary32")}))
        feeding = [first_role if role == "activations" else role for role in OPERAND_ROLES[key]]
        formats = tuple(roles[role].format for role in feeding)
        operand = spec.get("operand", formats)
        for role, have, need in zip(feeding, formats, operand, strict=True):
            if contains(need, have) is False:
                raise ValueError(
                    f"{where}: units.{key} takes operands {need}, which do not hold every value of role {role!r} "
                    f"({have}); leave the unit's operand out to take it from the roles"
                )
        try:
            built[key] = build_unit(spec, operand)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: units.{key}: {error}") from error
    return LayerDesign(roles, built)


# -- reading -----------------------------------------------------------------------------------------------------------


def design_names() -> list[str]:
    """The names of the designs that ship with softnum, in alphabetical order.

    >>> from softnum.train import design_names
    >>> design_names()[0]
    'a-float32'
    """
    return sorted(entry.name[:-5] for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def _shipped():
    return resources.files("softnum.train") / "designs"


def load_design(path: str | Path) -> Design:
    """Read a design.

    Parameters
    ----------
    path : str or pathlib.Path
        A TOML file, or the name of a shipped design (`design_names`).

    Returns
    -------
    Design

    Raises
    ------
    FileNotFoundError
        If it looks like a file's path and there is no such file.
    ValueError
        If there is no design of that name; or the file is not valid: its message names the file, the key, and the
        nearest key that is known.

    Notes
    -----
    ``format = "file.py:object"`` runs that Python file, which lies next to the design: read designs that you trust.

    Examples
    --------
    >>> from softnum.train import load_design
    >>> design = load_design("c-wang-fp8")
    >>> design.loss_scale
    1000.0
    """
    file = Path(path)
    if not file.is_file():
        names = design_names()
        if str(path) in names:
            file = Path(str(_shipped() / f"{path}.toml"))
        elif isinstance(path, Path) or file.suffix == ".toml" or len(file.parts) > 1:
            raise FileNotFoundError(f"no design file {str(path)!r}; the shipped designs are {', '.join(names)}")
        else:
            raise ValueError(
                f"no design is called {str(path)!r}{_near(str(path), names)} (shipped: {', '.join(names)})"
            )
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, numbers too long, brackets too deep
        raise ValueError(f"{file}: not valid TOML: {error}") from error
    return _Reader(file).design(table)


def _near(key: str, known) -> str:
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.3)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Reader:
    """Turns the tables of one file into a Design; every error names the file and the key."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def fail(self, where: str, message: str):
        raise ValueError(f"{self.file}: {where}: {message}")

    def table(self, where: str, value, known) -> dict:
        if not isinstance(value, dict):
            self.fail(where, f"must be a table, got {value!r}")
        for key in value:
            if key not in known:
                self.fail(where, f"unknown key {key!r}{_near(key, known)} (known: {', '.join(known)})")
        return value

    def number(self, where: str, value, *, whole: bool = False):
        right = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not right or not 0 < value <= sys.float_info.max:
            self.fail(where, f"must be a positive {'integer' if whole else 'number'}, got {value!r}")
        return value

    def design(self, table: dict) -> Design:
        self.table("top level", table, _TOP_KEYS)
        name = table.get("name", self.file.stem)
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
            self.fail("name", f"must be letters, digits and . _ + - (it names a folder), got {name!r}")
        description = table.get("description", "")
        if not isinstance(description, str):
            self.fail("description", f"must be a string, got {description!r}")
        layers = []
        for pattern, entry in self.table("layers", table.get("layers", {}), _Anything()).items():
            where = f'layers."{pattern}"'
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                self.fail(where, f"not a regular expression: {error}")
            self.table(where, entry, ("roles", "units"))
            roles = self.roles(f"{where}.roles", entry.get("roles", {}))
            layers.append((pattern, roles, self.units(f"{where}.units", entry.get("units", {}))))
        loss = self.table("loss", table.get("loss", {}), ("scale",))
        scale = float(self.number("loss.scale", loss.get("scale", 1)))
        return Design(
            name=name,
            path=self.file,
            description=" ".join(description.split()),
            roles=self.roles("roles", table.get("roles", {})),
            units=self.units("units", table.get("units", {})),
            layers=tuple(layers),
            loss_scale=scale,
            hardware=self.hardware(table.get("hardware", {})),
        )

    def format(self, where: str, text):
        if not isinstance(text, str):
            self.fail(where, f"must be a format's name, got {text!r}")
        try:
            fmt = load_object(text, self.file.parent) if ":" in text else sn.format(text)
        except (ValueError, FileNotFoundError) as error:
            self.fail(where, str(error))
        if not hasattr(fmt, "storage_dtype"):
            self.fail(where, f"{text!r} is not a format but {type(fmt).__name__}")
        if not (where.endswith(".product") or fits_float64(fmt)):  # products stay inside their unit
            self.fail(where, f"{text!r} has values that binary64, which carries them, cannot hold: {_WIDEST}")
        return fmt

    def roles(self, where: str, value) -> dict[str, RoleRounding]:
        known = ("default", *ROLES)
        flat = {}
        for key, entry in self.table(where, value, _Anything()).items():
            if key == "update" and isinstance(entry, dict):  # update.decay = {...} is a nested table in TOML
                flat.update({f"update.{part}": rounding for part, rounding in entry.items()})
            else:
                flat[key] = entry
        self.table(where, flat, known)
        return {role: self.role(f"{where}.{role}", entry) for role, entry in flat.items()}

    def role(self, where: str, entry) -> RoleRounding:
        entry = {"format": entry} if isinstance(entry, str) else entry
        self.table(where, entry, _ROLE_KEYS)
        if "format" not in entry:
            self.fail(where, "has no format")
        fmt = self.format(f"{where}.format", entry["format"])
        bits = entry.get("stochastic_bits", 32)
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 32:
            self.fail(f"{where}.stochastic_bits", f"must be an integer in 1..32, got {bits!r}")
        try:
            rounding = rounding_name(entry.get("rounding", "nearest_even"))
            overflow = entry.get("overflow")
            if overflow is not None:
                overflow = overflow_name(overflow, fmt)
        except ValueError as error:
            self.fail(where, str(error))
        return RoleRounding(fmt, rounding, overflow, bits, source=entry["format"])

    def units(self, where: str, value) -> dict[str, dict]:
        return {
            key: self.unit(f"{where}.{key}", entry) for key, entry in self.table(where, value, PASSES).items()
        }  # fmt: skip

    def unit(self, where: str, entry) -> dict:
        entry = {"kind": "preset", "name": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict):
            self.fail(where, f"must be a table or a preset's name, got {entry!r}")
        kind, kinds = entry.get("kind", "mad"), (*KINDS, "preset")
        if str(kind) not in kinds:
            self.fail(where, f"unknown kind {kind!r}{_near(str(kind), kinds)} (known: {', '.join(kinds)})")
        if kind == "preset":
            return self.preset(where, self.table(where, entry, PRESET_KEYS))
        _, formats, options = KINDS[kind]
        self.table(where, entry, ("kind", "operand", *formats, *options))
        if "accumulator" not in entry:
            self.fail(where, "has no accumulator")
        spec = {key: self.format(f"{where}.{key}", entry[key]) for key in formats if key in entry}
        spec.update({key: entry[key] for key in options if key in entry}, kind=kind)
        if "operand" in entry:
            pair = entry["operand"] if isinstance(entry["operand"], list) else [entry["operand"]] * 2
            if len(pair) != 2:
                self.fail(f"{where}.operand", f"must be one format or a pair, got {entry['operand']!r}")
            spec["operand"] = tuple(self.format(f"{where}.operand", text) for text in pair)
        return spec

    def preset(self, where: str, entry: dict) -> dict:
        name, output = entry.get("name"), entry.get("output")
        if not isinstance(name, str) or not (output is None or isinstance(output, str)):
            self.fail(where, f"name, and output if there is one, must be texts, got {entry!r}")
        try:
            unit = sn.unit(name, output)
        except ValueError as error:
            self.fail(where, str(error))
        return {"preset": unit, "operand": unit.operand}

    def hardware(self, value) -> dict:
        table = self.table("hardware", value, _HARDWARE_KEYS)
        if "array" in table:
            if not isinstance(table["array"], list) or len(table["array"]) != 2:
                self.fail("hardware.array", f"must be [rows, columns], got {table['array']!r}")
            for size in table["array"]:
                self.number("hardware.array", size, whole=True)
        for key, size in self.table("hardware.sram_bytes", table.get("sram_bytes", {}), _SRAM_KEYS).items():
            self.number(f"hardware.sram_bytes.{key}", size, whole=True)
        for key, pattern in _QUANTITY.items():
            text = table.get(key)
            right = isinstance(text, str) and pattern.fullmatch(text.strip()) and re.search("[1-9]", text)
            if text is not None and not right:
                example = {"bandwidth": "16 GB/s", "clock": "1 GHz"}[key]
                self.fail(
                    f"hardware.{key}", f"must be a number above zero with its unit like {example!r}, got {text!r}"
                )
        return table


class _Anything:
    """A set of known keys that every key is in."""

    def __contains__(self, key: object) -> bool:
        return True
