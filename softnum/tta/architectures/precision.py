"""Which format each tensor of an iteration is stored in."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from softnum.formats.blocks import BlockFormat, format
from softnum.mac.presets import unit as preset
from softnum.tta.quantities import check_keys, positive_number

__all__ = ["PRECISIONS", "Precision", "StoredFormat"]


@dataclass(frozen=True)
class StoredFormat:
    """A format's name and the bits that one element takes in memory.

    Parameters
    ----------
    name : str
    bits : int or float
        An element's share of the scale of a full block, or tile, is included.

    Examples
    --------
    >>> StoredFormat.of("e5m2"), StoredFormat.of("mxfp8_e4m3").bits
    (StoredFormat(name='e5m2', bits=8), 8.25)
    """

    name: str
    bits: int | float

    @classmethod
    def of(cls, name: str, bits: Mapping[str, int | float] | None = None) -> StoredFormat:
        """The stored format of a name that softnum knows, or whose bits are given.

        Raises
        ------
        ValueError
            If softnum does not know the name and no bits are given for it.
        """
        if bits and name in bits:
            return cls(name, positive_number(bits[name], f"bits of {name!r}"))
        return _registered(name)

    def size(self, elements: int) -> int:
        """Bytes of so many elements, rounded up to whole ones."""
        return -int(-elements * self.bits // 8)


@cache
def _registered(name: str) -> StoredFormat:
    try:
        fmt = format(name)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{error}; of a format of your own state the bits: bits={{{name!r}: 8}}") from None
    return StoredFormat(str(fmt), fmt.bits_per_value)


_Pairs = tuple[tuple[str, StoredFormat], ...]


@dataclass(frozen=True)
class Precision:
    """The format of each role of a number, as design files name them.

    Parameters
    ----------
    name : str
    weights, activations, errors, weight_gradients : StoredFormat
        The working copy of weights, results on the way forwards, their gradients, and gradients of weights.
    master, momentum, second_moment : StoredFormat
        The copy of the weights that the optimiser updates, and its state. If `master` is the format of `weights`, there
        is one copy only.
    elementwise : StoredFormat
        What operations other than matrix products compute in.
    input : StoredFormat
        The first layer's operand.
    passes : tuple of (str, StoredFormat)
        Of a design's roles that one pass alone rounds in another way, by names like "backward_weight.errors".
    rules : tuple of (str, tuple, tuple)
        Of a design: patterns of layers' names with the roles that are stated for them, the operands of their units, and
        the users' functions among those; later ones win, entry by entry.
    functions : tuple of (str, str)
        Passes whose products a user's function computes, with its name.

    Examples
    --------
    >>> precision = Precision.named("mixed-float16")
    >>> precision.weights.name, precision.master.bits
    ('binary16', 32)
    """

    name: str
    weights: StoredFormat
    activations: StoredFormat
    errors: StoredFormat
    weight_gradients: StoredFormat
    master: StoredFormat
    momentum: StoredFormat
    second_moment: StoredFormat
    elementwise: StoredFormat
    input: StoredFormat
    passes: _Pairs = ()
    rules: tuple[tuple[str, _Pairs, _Pairs, tuple[tuple[str, str], ...]], ...] = ()
    functions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def named(cls, name: str) -> Precision:
        """A preset: "float32"; "mixed-float16", "bfloat16" (operands and gradients in 16 bits, master weights, state
        and elementwise work in binary32); "fp8" (weights and activations in e4m3fn, errors in e5m2, gradients of
        weights in bfloat16, the rest in binary32).

        Raises
        ------
        ValueError
            If there is no preset of the name.

        References
        ----------
        P. Micikevicius et al., "Mixed Precision Training", ICLR 2018 (float16 beside float32 master weights); P.
        Micikevicius et al., "FP8 Formats for Deep Learning", arXiv 2209.05433, 2022 (e4m3 forwards, e5m2 backwards).
        """
        if name not in PRECISIONS:
            near = difflib.get_close_matches(name, PRECISIONS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"unknown precision {name!r}{hint} Known: {', '.join(PRECISIONS)}")
        return cls.of_roles(name, PRECISIONS[name])

    @classmethod
    def of_roles(cls, name: str, roles: Mapping[str, str], bits: Mapping[str, int | float] | None = None) -> Precision:
        """A precision from names of formats by role; ``default`` stands for those that are not named.

        Raises
        ------
        ValueError
            If a role or a format is unknown.

        Examples
        --------
        >>> Precision.of_roles("mine", {"default": "binary32", "weights": "e5m2"}).weights.bits
        8
        """
        check_keys(roles, [], ["default", *_ROLES], f"the roles of precision {name!r}")
        named = {
            role: StoredFormat.of(roles.get(role, roles.get("default", "binary32")), bits)
            for role in _ROLES
            if role != "input"
        }
        first = StoredFormat.of(roles["input"], bits) if "input" in roles else named["activations"]
        return cls(name, **named, input=first)

    @classmethod
    def of_design(cls, table: Mapping[str, Any], bits: Mapping[str, int | float] | None = None) -> Precision:
        """The formats of a design file's ``[roles]`` and ``[layers."pattern".roles]``, by the rules of `softnum.train`:
        what is not named follows ``default``, else binary32; an operand role follows the ``operand`` of a unit of the
        table form that consumes it, where one states it.

        Parameters
        ----------
        table : Mapping
            The design file, as `tomllib` reads it.
        bits : Mapping of str to int or float, optional
            Bits of formats of the user's own (``"posit8.py:posit8"``), by the name after the colon.

        Raises
        ------
        ValueError
            If a format is neither known nor among `bits`.

        Examples
        --------
        >>> table = {"name": "mine", "roles": {"default": {"format": "e6m9"}, "weights": {"format": "e5m2"}}}
        >>> precision = Precision.of_design(table)
        >>> precision.weights.name, precision.master.name
        ('e5m2', 'e6m9')
        """
        tables = [(".*", table), *table.get("layers", {}).items()]
        rules = tuple(
            (
                pattern,
                tuple(_stated(entry.get("roles", {}), bits)),
                tuple((role, _format_of(text, bits)) for role, text in _operands(entry.get("units", {})).items()),
                tuple(_functions(entry.get("units", {}))),
            )
            for pattern, entry in tables
        )
        return cls(str(table.get("name", "design")), **_resolved(rules[:1]), rules=rules)

    def operand(self, stage: str, role: str) -> StoredFormat:
        """The format of a role as an operand of a pass's products.

        >>> precision = Precision.of_design({"roles": {"backward_weight": {"errors": "bfloat16"}}})
        >>> precision.operand("backward_weight", "errors").name, precision.errors.name
        ('bfloat16', 'binary32')
        """
        return dict(self.passes).get(f"{stage}.{role}") or getattr(self, role)

    def at(self, layer: str) -> Precision:
        """The formats in one layer, which has no rules any more."""
        if not self.rules:
            return self
        matching = tuple(rule for rule in self.rules if re.fullmatch(rule[0], layer))
        return replace(self, rules=(), **_resolved(matching))


_ROLES = tuple(field.name for field in fields(Precision) if field.name not in ("name", "passes", "rules", "functions"))
#: which roles the operands of a unit are
_OPERANDS = {
    "forward": ("activations", "weights"),
    "backward_data": ("errors", "weights"),
    "backward_weight": ("activations", "errors"),
}

#: The presets of `Precision.named`: formats by role.
PRECISIONS = {
    "float32": {"default": "binary32"},
    "mixed-float16": {
        "default": "binary32", "weights": "binary16", "activations": "binary16", "errors": "binary16",
        "weight_gradients": "binary16",
    },
    "bfloat16": {
        "default": "binary32", "weights": "bfloat16", "activations": "bfloat16", "errors": "bfloat16",
        "weight_gradients": "bfloat16",
    },
    "fp8": {
        "default": "binary32", "weights": "e4m3fn", "activations": "e4m3fn", "errors": "e5m2",
        "weight_gradients": "bfloat16",
    },
}  # fmt: skip


def _stated(
    roles: Mapping[str, Any], bits: Mapping[str, int | float] | None
) -> Iterable[tuple[str, StoredFormat | None]]:
    """Role and format of a file's roles; of one pass alone, ``pass.role``."""
    flat = {key: entry for key, entry in roles.items() if key not in _OPERANDS}
    for phase in _OPERANDS:
        flat |= {f"{phase}.{role}": entry for role, entry in roles.get(phase, {}).items()}
    for role, entry in flat.items():
        facts = entry if isinstance(entry, Mapping) else {"format": entry}
        known = role in (*_ROLES, "default") or role.partition(".")[0] in _OPERANDS
        if known and isinstance(facts.get("format"), (str, Mapping)):
            stored = _format_of(facts["format"], bits)
            share = _share(facts["scale"]) if "scale" in facts else 0
            yield role, replace(stored, bits=stored.bits + share) if share else stored


def _share(scale: Mapping[str, Any] | str) -> float:
    """Bits of an element's share of its tile's scale, of a design's table ``scale``; that of a row or more is none."""
    if isinstance(scale, str):
        raise ValueError(f"scale {scale!r} is a function, which only training knows; take a trained network's workload")
    rule = scale.get("rule", "current")
    per = scale.get("per", {"mx": [1, 32], "nvfp4": [1, 16], "quest": [1, 32], "tseng": [1, 32]}.get(rule))
    return (32 if rule == "current" else 8) / (per[0] * per[1]) if isinstance(per, list) else 0


def _operands(units: Mapping[str, Any]) -> dict[str, str]:
    """Pass and role -> format of the operands that units state."""
    found = {}
    for phase, roles in _OPERANDS.items():
        unit = units.get(phase)
        unit = {"name": unit} if isinstance(unit, str) else unit or {}
        operand = unit.get("operand")
        name = unit.get("name", unit.get("preset"))
        if operand is None and name is not None:
            operand = [str(fmt) for fmt in preset(name, unit.get("output")).operand]
        if phase in units:  # one that states no operand takes the place of one that does
            operand = "none" if operand is None else operand
            pair = operand if isinstance(operand, list) else [operand] * 2
            found.update({f"{phase}.{role}": text for role, text in zip(roles, pair, strict=True)})
    return found


def _functions(units: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Pass and the user's function that multiplies there; "" where a unit of another kind does."""
    for phase in _OPERANDS:
        if phase in units:
            unit = units[phase]
            custom = isinstance(unit, Mapping) and unit.get("kind") == "custom"
            yield phase, str(unit.get("function", "custom")) if custom else ""


def _format_of(text: str | Mapping[str, Any], bits: Mapping[str, int | float] | None) -> StoredFormat | None:
    """None: "none", which is no format; a table has the parts of a block format."""
    if not isinstance(text, str):
        size = text.get("block_size")
        fmt = BlockFormat(**{**text, "block_size": None if size == "row" else size})
        return StoredFormat(str(fmt), fmt.bits_per_value)
    return None if text == "none" else StoredFormat.of(text.rpartition(":")[2], bits)


def _resolved(rules) -> dict[str, StoredFormat | _Pairs]:
    """Role -> format: what is stated, else what a unit takes, else the default, else binary32; and those of passes."""
    stated, units, functions = {}, {}, {}
    for _, roles, operands, own in rules:
        for role in dict(roles):  # which stands for all passes that the same table does not state
            stated = {name: stored for name, stored in stated.items() if name.partition(".")[2] != role}
        stated.update(roles)
        units.update(operands)
        functions.update(own)
    default = stated.get("default") or StoredFormat.of("binary32")
    taken: dict[str, StoredFormat] = {}
    for phase, roles in _OPERANDS.items():
        for role in roles:
            if units.get(f"{phase}.{role}"):
                for name in (role, "input") if role == "activations" else (role,):
                    if f"{phase}.{name}" in stated:
                        continue
                    taken.setdefault(name, units[f"{phase}.{role}"])
    found = {role: stated.get(role) or taken.get(role) or default for role in _ROLES}
    found["passes"] = tuple((name, stored) for name, stored in stated.items() if name.partition(".")[0] in _OPERANDS)
    found["functions"] = tuple((phase, function) for phase, function in functions.items() if function)
    if "master" in stated and stated["master"] is None:
        found["master"] = found["weights"]
    return found
