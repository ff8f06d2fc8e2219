"""Reading a design's file: TOML into a `Design`, strictly. Every error names the file and the key."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.arrays.sources import DEFAULT_SOURCE, random_source
from softnum.formats.base import AnyFormat
from softnum.formats.blocks import BlockFormat, format
from softnum.formats.facts import is_exact_in
from softnum.formats.modes import overflow_name, rounding_name
from softnum.mac.family import family_of
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.presets import unit as preset
from softnum.runtime.keys import Keys
from softnum.runtime.plain import plain
from softnum.train.designs.convolutions import ALGORITHMS, OTHERWISE, Convolution
from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    ENGINES,
    NO_MASTER,
    PASS_ROLES,
    PASSES,
    SAVED,
    SPARSE_ROLES,
    STATE_ROLES,
    Design,
    NamedOperator,
    RoleRounding,
    nearest,
)  # fmt: skip
from softnum.train.designs.keys import (
    ANYTHING,
    BLOCK,
    CONVOLUTION,
    DESIGN,
    DYNAMIC,
    ELEMENTWISE,
    GRADUAL,
    HADAMARD,
    HARDWARE,
    LAYER,
    LAYERS,
    LOSS,
    NAMED_ROLES,
    OPERATORS,
    PART_KINDS,
    QUANTITY,
    ROLE,
    ROLES_OF_PASS,
    SRAM,
    UNITS,
    convolution_keys,
    sparsity_keys,
    sparsity_rules,
    unit_keys,
)
from softnum.train.designs.loss_scaling import LossScaling
from softnum.train.designs.objects import checksum, load_format, load_object, load_operator, load_unit_function
from softnum.train.designs.scales import Hadamard, OwnScaling, scale_of
from softnum.train.designs.sparsity import Gradual, Sparsity
from softnum.train.designs.split_units import SPLIT, split_facts
from softnum.train.designs.unit_specs import (
    BLOCK_KINDS,
    CHUNK_KEYS,
    CHUNKED_KINDS,
    INNER_KINDS,
    KINDS,
    accumulator_of,
    build_unit,
)
from softnum.train.recipes import DelayedScaling
from softnum.tta.workloads.unit import UnitHardware

__all__ = ["check_hardware", "design_names", "load_design", "merged_hardware", "with_hardware"]


def design_names() -> list[str]:
    """The names of the designs that ship with softnum, in alphabetical order.

    >>> from softnum.train import design_names
    >>> design_names()[0]
    'a-float32'
    """
    return sorted(entry.name[:-5] for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def _shipped() -> Path:
    return Path(__file__).parent / "shipped"


@plain
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
        If it looks like a path and there is no such file.
    ValueError
        If there is no design of that name; or the file is not valid: the message names the file, the key and a similar
        known key.

    Notes
    -----
    ``format = "file.py:object"`` runs that Python file, which lies next to the design, and ``"file.c:type"`` is
    compiled and run: so read only designs that you trust.

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
            file = _shipped() / f"{path}.toml"
        elif isinstance(path, Path) or file.suffix == ".toml" or len(file.parts) > 1:
            raise FileNotFoundError(f"no design file {str(path)!r}; the shipped designs are {', '.join(names)}")
        else:
            raise ValueError(
                f"no design is called {str(path)!r}{nearest(str(path), names)} (shipped: {', '.join(names)})"
            )
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, numbers too long, brackets too deep
        raise ValueError(f"{file}: not valid TOML: {error}") from error
    return _Reader(file).design(table)


def check_hardware(table: object, file: Path) -> dict:
    """A ``[hardware]`` table, or a part of one, that stands in a file; errors name the file and the key.

    >>> check_hardware({"clock": "2 GHz"}, Path("study.toml"))
    {'clock': '2 GHz'}
    """
    return _Reader(file).hardware(table)


def merged_hardware(table: Mapping, other: Mapping) -> dict:
    """A ``[hardware]`` table in which the keys of another, and those of its ``sram_bytes``, replace the same ones.

    >>> merged_hardware({"clock": "1 GHz", "sram_bytes": {"ifmap": 1, "filter": 2}}, {"sram_bytes": {"ifmap": 3}})
    {'clock': '1 GHz', 'sram_bytes': {'ifmap': 3, 'filter': 2}}
    """
    sizes = {key: {**table.get(key, {}), **other[key]} for key in ("sram_bytes",) if key in other}
    return {**table, **other, **sizes}


def with_hardware(design: Design, table: Mapping) -> Design:
    """A design on other hardware, as far as a table says it (`merged_hardware`).

    >>> with_hardware(load_design("a-float32"), {"clock": "2 GHz"}).hardware["clock"]
    '2 GHz'
    """
    return dataclasses.replace(design, hardware=merged_hardware(design.hardware, table)) if table else design


@plain
def uniform_design(fmt: str) -> Design:
    """Return a design in which every number and every sum has one format.

    For a block format, only the operands of products have it; everything else is in binary32.

    Parameters
    ----------
    fmt : str
        A format's name; "float16", "float32" and "float64" too.

    Returns
    -------
    Design
        It states no hardware.

    Raises
    ------
    ValueError
        If there is no such format.

    Examples
    --------
    >>> from softnum.train import uniform_design
    >>> design = uniform_design("bfloat16")
    >>> str(design.roles["default"].format), str(design.units["forward"]["accumulator"])
    ('bfloat16', 'bfloat16')
    """
    name = fmt.replace("float", "binary") if fmt in ("float16", "float32", "float64") else fmt
    found = format(name)
    wide = "binary32" if isinstance(found, BlockFormat) else name
    roles = {"default": wide} | ({} if wide == name else dict.fromkeys(BLOCK_ROLES, name))
    units = {key: {"accumulator": wide} for key in PASSES}
    return _Reader(Path(f"{fmt}.toml")).design({"roles": roles, "units": units})


_WIDEST = "the limit is 53 significant bits, exponents -1074 to 1023 (q32.32 takes 63; q27.27, 53)"


class _Reader:
    """Turns the tables of one file into a Design; every error names the file and the key."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.sources: dict[str, str | None] = {}

    def fail(self, where: str, message: str):
        raise ValueError(f"{self.file}: {where}: {message}")

    def table(self, where: str, value, known: Keys, lacking: str = "has no") -> dict:
        """A value that must be a table of known keys, with those that it needs."""
        if not isinstance(value, dict):
            self.fail(where, f"must be a table, got {value!r}")
        for key in value:
            if key not in known:
                self.fail(where, f"unknown key {key!r}{nearest(key, known)} (known: {', '.join(known)})")
        for key in known.needed:
            if key not in value:
                self.fail(where, f"{lacking} {key}")
        return value

    def number(self, where: str, value, *, whole: bool = False):
        right = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not right or not 0 < value <= sys.float_info.max:
            self.fail(where, f"must be a positive {'integer' if whole else 'number'}, got {value!r}")
        return value

    def design(self, table: dict) -> Design:
        self.table("top level", table, DESIGN)
        name = table.get("name", self.file.stem)
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
            self.fail("name", f"must be letters, digits and . _ + - (it names a folder), got {name!r}")
        description = table.get("description", "")
        if not isinstance(description, str):
            self.fail("description", f"must be a string, got {description!r}")
        layers = []
        for pattern, entry in self.table("layers", table.get("layers", {}), LAYERS).items():
            where = f'layers."{pattern}"'
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                self.fail(where, f"not a regular expression: {error}")
            self.table(where, entry, LAYER)
            parts = [getattr(self, key)(f"{where}.{key}", entry.get(key, {})) for key in LAYER]
            layers.append((pattern, *parts))
        return Design(
            name=name,
            path=self.file,
            description=" ".join(description.split()),
            roles=self.roles("roles", table.get("roles", {})),
            units=self.units("units", table.get("units", {})),
            operators=self.operators("operators", table.get("operators", {})),
            layers=tuple(layers),
            loss=self.loss(table.get("loss", {})),
            hardware=self.hardware(table.get("hardware", {})),
            sources=self.sources,
            engine=self.engine(table.get("elementwise", {})),
            convolution=self.convolution("convolution", table.get("convolution", {})),
        )

    def load(self, where: str, text, loader, what: str):
        """What a text of the design names, by one of the loaders of `softnum.train.designs.objects`."""
        if not isinstance(text, str):
            self.fail(where, f"must be {what}, got {text!r}")
        try:
            loaded = loader(text, self.file.parent)
        except (ImportError, TypeError, ValueError, FileNotFoundError) as error:
            self.fail(where, str(error))
        if ":" in text or text.endswith(".tile"):
            self.sources[text] = checksum(text, self.file.parent)
        return loaded

    def format(self, where: str, text, *, block: bool = False):
        """The format of a text, or of a block format's table; block: whether it may be a block format."""
        if isinstance(text, dict):
            fmt = self.block_format(where, text)
            text = str(fmt)
        else:
            fmt = self.load(where, text, load_format, "a format's name")
        if not isinstance(fmt, AnyFormat):
            self.fail(where, f"{text!r} is not a format but {type(fmt).__name__}")
        if isinstance(fmt, BlockFormat) and not block:
            self.fail(
                where,
                f"{text!r} is a block format, whose blocks run along the dimension K of a matrix product, which only "
                f"operands have (roles {', '.join(BLOCK_ROLES)}), or along the elements of an optimiser's state (roles "
                f"{', '.join(STATE_ROLES)}); state a format of single numbers here",
            )
        if not (where.endswith(".product") or is_exact_in(fmt, "float64")):  # products stay inside their unit
            self.fail(where, f"{text!r} has values that binary64, which carries them, cannot hold: {_WIDEST}")
        return fmt

    def block_format(self, where: str, entry: dict) -> BlockFormat:
        """The block format whose parts an entry states."""
        self.table(where, entry, BLOCK, "is a block format's table, and has no")
        parts = {key: self.format(f"{where}.{key}", entry[key]) for key in BLOCK.without("block_size") if key in entry}
        size = None if entry["block_size"] == "row" else entry["block_size"]
        try:
            return BlockFormat(block_size=size, **parts)
        except (TypeError, ValueError) as error:
            self.fail(where, str(error))

    def roles(self, where: str, value) -> dict[str, RoleRounding]:
        flat, known = {}, NAMED_ROLES
        for key, entry in self.table(where, value, ANYTHING).items():
            if key in PASSES and isinstance(entry, dict):
                own = self.table(f"{where}.{key}", entry, ROLES_OF_PASS[key])
                known = known | {f"{key}.{part}": ROLES_OF_PASS[key][part] for part in own}
            if key in ("update", *PASSES) and isinstance(entry, dict):  # update.decay = {...} is a nested table in TOML
                flat.update({f"{key}.{part}": rounding for part, rounding in entry.items()})
            else:
                flat[key] = entry
        self.table(where, flat, known)
        return {
            role: NO_MASTER
            if entry == NO_MASTER and role in ("master", COMPENSATION, SAVED)
            else self.role(f"{where}.{role}", entry, role)
            for role, entry in flat.items()
        }

    def role(self, where: str, entry, role: str = "") -> RoleRounding:
        entry = {"format": entry} if isinstance(entry, str) else entry
        self.table(where, entry, ROLE)
        operands = (*BLOCK_ROLES, *STATE_ROLES, SAVED, *PASS_ROLES.values())
        fmt = self.format(f"{where}.format", entry["format"], block=role in operands)
        source = entry["format"] if isinstance(entry["format"], str) else str(fmt)
        rule = entry.get("scale_rule")
        bits = entry.get("stochastic_bits", 32)
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 32:
            self.fail(f"{where}.stochastic_bits", f"must be an integer in 1..32, got {bits!r}")
        try:
            rounding = rounding_name(entry.get("rounding", "nearest_even"))
            overflow = entry.get("overflow")
            if overflow is not None:
                overflow = overflow_name(overflow, fmt.element)
            fmt.scale_rule(rule)
        except (TypeError, ValueError) as error:
            self.fail(where, str(error))
        random = self.random(where, entry, rounding, bits)
        found = RoleRounding(fmt, rounding, overflow, bits, random, source, scale_rule=rule)
        if "scale" in entry:
            found = self.scaled(where, entry["scale"], found)
        if "hadamard" in entry:
            found = dataclasses.replace(found, hadamard=self.hadamard(f"{where}.hadamard", entry["hadamard"], found))
        if "backward" in entry:
            found = dataclasses.replace(found, trust=self.trust(f"{where}.backward", entry["backward"], found, role))
        if "sparsity" not in entry:
            return found
        if not np.array_equal(quantize(np.zeros(1), fmt), [0.0]):
            self.fail(f"{where}.sparsity", f"makes zeros, and {entry['format']!r} has none")
        return dataclasses.replace(found, sparsity=self.sparsity(f"{where}.sparsity", entry["sparsity"], role))

    def random(self, where: str, entry: dict, rounding: str, bits: int) -> str:
        """The source of random bits of a role's entry."""
        if "random" not in entry:
            return DEFAULT_SOURCE
        name = entry["random"]
        if not isinstance(name, str):
            self.fail(f"{where}.random", f"must be a source's name, got {name!r}")
        if not rounding.startswith("stochastic"):
            self.fail(f"{where}.random", f"is of stochastic rounding, and the role's is {rounding!r}; leave it out")
        try:
            source = random_source(name, "")
            source.check(bits, False, "")
        except ValueError as error:
            self.fail(f"{where}.random", str(error).removeprefix(": "))
        if source.kind == "given" or source.hart:
            self.fail(f"{where}.random", f"is a source that a run's key makes bits of, which {name!r} is not")
        return source.name

    def scaled(self, where: str, entry, rounding: RoleRounding) -> RoleRounding:
        """A rounding with the scale that an entry states."""
        if where.rpartition(".")[2] not in BLOCK_ROLES:
            self.fail(
                f"{where}.scale",
                f"is of operands of matrix products (roles {', '.join(BLOCK_ROLES)}), which each product multiplies "
                "with their scales; leave it out",
            )
        if rounding.block:
            self.fail(f"{where}.scale", f"{rounding.source!r} is a block format, which has scales already")
        if rounding.overflow not in (None, "saturate"):
            self.fail(f"{where}.overflow", f"must be 'saturate' with a scale, got {rounding.overflow!r}")
        own = self.load(f"{where}.scale", entry, load_object, "a table") if isinstance(entry, str) else None
        if own is not None and rounding.rounding != "nearest_even":
            self.fail(f"{where}.rounding", f"is the quantizer's own affair, got {rounding.rounding!r}; leave it out")
        try:
            if own is not None:
                scale = OwnScaling(entry, own, rounding.format)
            else:
                scale = scale_of(entry, rounding.format, rounding.rounding, rounding.stochastic_bits)
            overflow = overflow_name("saturate", rounding.format)
        except ValueError as error:
            raise ValueError(f"{self.file}: {where}.scale{error}") from error
        return dataclasses.replace(rounding, overflow=overflow, scale=scale)

    def hadamard(self, where: str, entry, rounding: RoleRounding) -> Hadamard:
        """The transform that an entry states."""
        table = self.table(where, entry, HADAMARD)
        if rounding.scale is None or isinstance(rounding.scale, DelayedScaling):
            self.fail(where, "is of a role with a scale of its own numbers, and this one has none; state scale")
        facts = {key: table[key] for key in ("size", "signs") if key in table}
        if "format" in table:
            facts["format"] = self.format(f"{where}.format", table["format"])
        try:
            return Hadamard(**facts)
        except ValueError as error:
            raise ValueError(f"{self.file}: {where}{error}") from error

    def trust(self, where: str, value, rounding: RoleRounding, role: str) -> bool:
        """Whether gradients pass back where they are trusted, as an entry states."""
        if value not in ("straight_through", "trust"):
            self.fail(where, f"must be 'straight_through' or 'trust', got {value!r}")
        right = role in ("input", "weights", "activations") and hasattr(rounding.scale, "trusted")
        if value == "trust" and not right:
            self.fail(
                where,
                "'trust' is of the roles input, weights and activations with a scale that says which of its numbers "
                f'are trusted, like {{ rule = "quest" }}; role {role!r} has none',
            )
        return value == "trust"

    def sparsity(self, where: str, value, role: str) -> Sparsity:
        if role not in SPARSE_ROLES:
            self.fail(where, f"this role cannot be sparse (those that can: {', '.join(SPARSE_ROLES)})")
        rules = sparsity_rules(role)
        if isinstance(value, dict) and "pattern" in value and "pattern" not in rules:
            self.fail(f"{where}.pattern", f"gradients of weights enter no product; state {' or '.join(rules)}")
        table = self.table(where, value, sparsity_keys(role))
        if len(stated := [rule for rule in rules if rule in table]) != 1:
            self.fail(where, f"must state one of {', '.join(rules)}, got {', '.join(stated) or 'none'}")
        facts: dict = {}
        if "pattern" in table:
            text = table["pattern"]
            numbers = re.fullmatch(r"([1-9]\d{0,3}):([1-9]\d{0,3})", text) if isinstance(text, str) else None
            pair = tuple(map(int, numbers.groups())) if numbers else (0, 0)
            if not 0 < pair[0] < pair[1]:
                self.fail(f"{where}.pattern", f"must be 'N:M' with 1 <= N < M <= 9999, like '2:4', got {text!r}")
            facts["pattern"] = pair
        else:
            facts[stated[0]] = self.share(f"{where}.{stated[0]}", table[stated[0]])
        if ramp := [key for key in GRADUAL if key in table]:
            if "magnitude" not in table:
                self.fail(f"{where}.{ramp[0]}", "is of a share of zeros that grows; state magnitude or leave it out")
            facts["gradual"] = self.gradual(where, table)
        if (backward := table.get("backward", "straight_through")) not in ("straight_through", "masked"):
            self.fail(f"{where}.backward", f"must be 'straight_through' or 'masked', got {backward!r}")
        facts["masked"] = backward == "masked"
        if "decay" in table:
            facts["decay"] = self.decay(f"{where}.decay", table["decay"])
        if "feedback" in table:
            facts["feedback"] = self.role(f"{where}.feedback", table["feedback"])
        return Sparsity(**facts)

    def decay(self, where: str, value) -> float:
        with np.errstate(over="ignore", under="ignore"):
            rounded = float(np.float32(self.number(where, value)))
        if not 0 < rounded < math.inf:
            self.fail(where, f"is used in binary32, where {value!r} becomes {rounded!r}")
        return float(value)

    def gradual(self, where: str, table: dict) -> Gradual:
        for key in ("from", "to"):
            if key not in table:
                self.fail(where, f"grows {'to' if key == 'from' else 'from'} an iteration, and has no {key!r}")
        first, last, every = (
            self.number(f"{where}.{key}", table.get(key, 1), whole=True) for key in ("from", "to", "every")
        )
        if not first < last or every > last - first:
            self.fail(where, f"needs from < to and every <= to - from, got {first}, {last} and {every}")
        initial = table.get("initial", 0.0)
        number = isinstance(initial, (int, float)) and not isinstance(initial, bool)
        if not number or not 0 <= initial < table["magnitude"]:
            self.fail(f"{where}.initial", f"must be a share from 0 to below magnitude, got {initial!r}")
        return Gradual(first, last, every, float(initial))

    def share(self, where: str, value) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
            self.fail(where, f"must be a share above 0 and below 1, got {value!r}")
        return float(value)

    def operators(self, where: str, value) -> dict[str, NamedOperator]:
        found = {}
        for name, text in self.table(where, value, OPERATORS).items():
            operator = self.load(f"{where}.{name}", text, load_operator, "a Tile file's name")
            if not hasattr(operator, "is_elementwise"):
                self.fail(f"{where}.{name}", f"{text!r} is not an operator but {type(operator).__name__}")
            found[name] = NamedOperator(text, operator)
        return found

    def units(self, where: str, value) -> dict[str, dict]:
        table = self.table(where, value, UNITS)
        return {key: self.unit(f"{where}.{key}", entry) for key, entry in table.items()}

    def unit(self, where: str, entry, kinds=(*KINDS, "preset")) -> dict:
        entry = {"kind": "preset", "name": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict):
            self.fail(where, f"must be a table or a preset's name, got {entry!r}")
        if "preset" in entry:
            entry = self.named_preset(where, entry)
        kind = entry.get("kind", "block_dot" if "inner" in entry and "block_dot" in kinds else "mad")
        if str(kind) not in kinds:
            self.fail(where, f"unknown kind {kind!r}{nearest(str(kind), kinds)} (known: {', '.join(kinds)})")
        keys = unit_keys(kind, kinds == INNER_KINDS)
        chunk_keys = CHUNK_KEYS if kind in CHUNKED_KINDS else ()
        chunked = self.chunked(where, {key: entry[key] for key in chunk_keys if key in keys and key in entry})
        if kind == "preset":
            return self.preset(where, self.table(where, entry, keys)) | chunked
        if kind == SPLIT:
            return self.split(where, entry)
        _, formats, options, _ = KINDS[kind]
        self.table(where, {"kind": kind, **entry}, keys)
        spec = {key: self.format(f"{where}.{key}", entry[key]) for key in formats if key in entry}
        spec.update({key: entry[key] for key in ("kind", *options) if key in entry})
        if "inner" in entry:
            spec["kind"] = kind
            spec["inner"] = self.unit(f"{where}.inner", entry["inner"], INNER_KINDS)
        if "function" in entry:
            spec["function"] = self.load(f"{where}.function", entry["function"], load_unit_function, "'file.py:name'")
            unit = spec["function"].value
            if isinstance(unit, Unit):
                if beside := [key for key in entry if key not in ("kind", "function")]:
                    self.fail(where, f"{entry['function']!r} is a unit already; leave out {', '.join(beside)}")
                spec["operand"] = unit.operand
        if "operand" in entry:
            pair = entry["operand"] if isinstance(entry["operand"], list) else [entry["operand"]] * 2
            if len(pair) != 2:
                self.fail(f"{where}.operand", f"must be one format or a pair, got {entry['operand']!r}")
            block = kind in BLOCK_KINDS or "kind" not in entry
            spec["operand"] = tuple(self.format(f"{where}.operand", text, block=block) for text in pair)
        return spec | chunked

    def split(self, where: str, entry: dict) -> dict:
        """An entry of a unit whose K ranks share."""
        self.table(where, entry, unit_keys(SPLIT))
        try:
            facts = split_facts(entry)
        except ValueError as error:
            raise ValueError(f"{self.file}: {where}{error}") from error
        inner = self.unit(f"{where}.inner", entry["inner"], PART_KINDS)
        operand = {"operand": inner["operand"]} if "operand" in inner else {}
        return {"kind": SPLIT, "inner": inner, **facts, **operand}

    def chunked(self, where: str, entry: dict) -> dict:
        """What a spec says of the chunks around its unit: an entry ``chunked``, or nothing."""
        if not entry:
            return {}
        if "chunk" not in entry:
            self.fail(f"{where}.{next(iter(entry))}", "is of sums in chunks; state chunk, the products of each")
        facts = {"chunk": self.number(f"{where}.chunk", entry["chunk"], whole=True)}
        if "outer_accumulator" in entry:
            facts["accumulator"] = self.format(f"{where}.outer_accumulator", entry["outer_accumulator"])
        if "outer_rounding" in entry:
            facts["rounding"] = entry["outer_rounding"]
        return {"chunked": facts}

    def named_preset(self, where: str, entry: dict) -> dict:
        """An entry with a key ``preset`` as one of kind "preset"; a kind that it states must be the preset's own."""
        if "name" in entry:
            self.fail(f"{where}.name", "is the preset's name, which preset states already; leave it out")
        found = {**entry, "kind": "preset", "name": entry["preset"]}
        if entry.get("kind", "preset") != "preset":
            own = family_of(self.preset(where, found)["preset"]).kind
            if entry["kind"] != own:
                self.fail(f"{where}.kind", f"preset {entry['preset']!r} is of kind {own!r}, got {entry['kind']!r}")
        return {key: value for key, value in found.items() if key != "preset"}

    def preset(self, where: str, entry: dict) -> dict:
        name, output = entry.get("name"), entry.get("output")
        if not isinstance(name, str) or not (output is None or isinstance(output, str)):
            self.fail(where, f"name, and output if there is one, must be texts, got {entry!r}")
        try:
            unit = preset(name, output)
        except ValueError as error:
            self.fail(where, str(error))
        return {"preset": unit, "operand": unit.operand}

    def convolution(self, where: str, value) -> Convolution | None:
        """How convolutions are computed, as a table states it; None of an empty one."""
        if value == {}:
            return None
        stated = {"algorithm": None, **value} if isinstance(value, dict) else value
        algorithm = self.table(where, stated, CONVOLUTION)["algorithm"]
        if algorithm not in ("direct", *ALGORITHMS):
            self.fail(f"{where}.algorithm", f"must be one of direct, {', '.join(ALGORITHMS)}, got {algorithm!r}")
        if algorithm == "direct":
            self.table(where, value, convolution_keys(algorithm))
            return Convolution(algorithm)
        own = ALGORITHMS[algorithm][2]
        self.table(where, value, convolution_keys(algorithm))
        otherwise = value.get("otherwise", OTHERWISE[0])
        if otherwise not in OTHERWISE:
            self.fail(f"{where}.otherwise", f"must be {' or '.join(map(repr, OTHERWISE))}, got {otherwise!r}")
        options = {key: value[key] for key in own if key in value}
        if "twiddle" in options:
            options["twiddle"] = self.format(f"{where}.twiddle", options["twiddle"])
        if isinstance(options.get("size"), list):
            options["size"] = tuple(options["size"])
        units = {
            key: self.of_transform(f"{where}.{key}", value[key]) for key in ("transform", "output") if key in value
        }
        found = Convolution(algorithm, tuple(options.items()), **units, otherwise=otherwise)
        image = (1, 1, 3, 3) if algorithm == "winograd" else (1, 1, 1, 1)
        why = found.refusal("forward", image, image, MadUnit("binary64", operand="binary64"), {})
        if why is not None:
            self.fail(where, why)
        return found

    def of_transform(self, where: str, entry) -> Unit:
        """The unit of a transform, which no role feeds: without an operand it takes its accumulator's format."""
        spec = self.unit(where, entry, INNER_KINDS)
        try:
            return build_unit(spec, spec.get("operand") or (accumulator_of(spec),) * 2)
        except (TypeError, ValueError) as error:
            self.fail(where, str(error))

    def loss(self, value) -> LossScaling:
        table = self.table("loss", value, LOSS)
        scale, changing = table.get("scale", 1), [key for key in DYNAMIC if key in table]
        if isinstance(scale, str) and scale != "dynamic":
            self.fail("loss.scale", f'must be a positive number or "dynamic", got {scale!r}')
        if scale != "dynamic":
            if changing:
                self.fail(f"loss.{changing[0]}", 'is of a scale that changes; add scale = "dynamic" or leave it out')
            skip = table.get("skip_overflow", False)
            if not isinstance(skip, bool):
                self.fail("loss.skip_overflow", f"must be true or false, got {skip!r}")
            return LossScaling(float(self.number("loss.scale", scale)), skip_overflow=skip)
        if "skip_overflow" in table:
            self.fail("loss.skip_overflow", "leave it out: with a dynamic scale, iterations that overflow are skipped")
        numbers = {
            key: self.number(f"loss.{key}", table.get(key, default), whole=key == "interval")
            for key, default in DYNAMIC.items()
        }
        for key, low, high in (("initial", 2.0**-126, 2.0**127), ("growth", 1, 2.0**127), ("backoff", 2.0**-126, 1)):
            if not low <= numbers[key] <= high:
                self.fail(f"loss.{key}", f"must lie in [{low:g}, {high:g}], got {numbers[key]!r}")
            numbers[key] = float(numbers[key])
        return LossScaling(dynamic=True, **numbers)

    def engine(self, value) -> str:
        engine = self.table("elementwise", value, ELEMENTWISE).get("engine", ENGINES[0])
        if engine not in ENGINES:
            self.fail("elementwise.engine", f"must be {' or '.join(map(repr, ENGINES))}, got {engine!r}")
        return engine

    def hardware(self, value) -> dict:
        table = self.table("hardware", value, HARDWARE)
        for key in ("array", "cores"):
            sizes = table.get(key, [1, 1])
            if not isinstance(sizes, list) or len(sizes) != 2:
                self.fail(f"hardware.{key}", f"must be [rows, columns], got {sizes!r}")
            for size in sizes:
                self.number(f"hardware.{key}", size, whole=True)
        for key, size in self.table("hardware.sram_bytes", table.get("sram_bytes", {}), SRAM).items():
            self.number(f"hardware.sram_bytes.{key}", size, whole=True)
        for key, pattern in QUANTITY.items():
            text = table.get(key)
            right = isinstance(text, str) and pattern.fullmatch(text.strip()) and re.search("[1-9]", text)
            if text is not None and not right:
                example = {"bandwidth": "16 GB/s", "clock": "1 GHz"}[key]
                self.fail(
                    f"hardware.{key}", f"must be a number above zero with its unit like {example!r}, got {text!r}"
                )
        if "unit" in table:
            if not isinstance(table["unit"], dict):
                self.fail("hardware.unit", f"must be a table, got {table['unit']!r}")
            UnitHardware.from_table(table["unit"], f"{self.file}: [hardware.unit]")
        return table
