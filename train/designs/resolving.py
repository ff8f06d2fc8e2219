"""The roundings and units of a layer, from what a design states of it; errors say what does not go together."""

from __future__ import annotations

import dataclasses

from softnum.formats.blocks import BlockFormat, format
from softnum.formats.facts import is_exact_in
from softnum.train.designs.roles import (
    COMPENSATION,
    FEEDING,
    NO_MASTER,
    OPERAND_ROLES,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    STATE_ROLES,
    UPDATE,
    RoleRounding,
    in_blocks,
)
from softnum.train.designs.scales import length_along
from softnum.train.designs.split_units import SPLIT, check_whole
from softnum.train.designs.unit_specs import BLOCK_KINDS, accumulator_of, build_unit, has_block_operand, operands_of

__all__ = ["contains", "of_single_numbers", "resolve"]


def contains(outer, inner) -> bool | None:
    """Whether every finite value of one format is a value of another; None where the facts alone do not tell."""
    return outer.contains(inner)


def of_single_numbers(given: dict, units: dict[str, dict]) -> tuple[dict, dict]:
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
        blocks = has_block_operand(spec) or spec.get("kind") in BLOCK_KINDS or "inner" in spec
        if blocks or scaled.intersection(OPERAND_ROLES[key]):
            spec = {"accumulator": accumulator_of(spec)}
        plain[key] = spec
    return roles, plain


def resolve(where: str, given: dict[str, RoleRounding], units: dict[str, dict], first: bool) -> tuple[dict, dict]:
    """The roundings and the units of a layer."""
    default = given.get("default", RoleRounding(format("binary32"), source="binary32"))
    roles = {role: given.get(role) for role in ROLES}
    stored = roles.pop("master")
    first_role = "input" if first else "activations"
    for key, spec in units.items():
        if "operand" not in spec:
            continue
        for role, fmt in zip(FEEDING[key], spec["operand"], strict=True):
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
        feeding = [first_role if role == "activations" else role for role in FEEDING[key]]
        for place, role in enumerate(feeding):
            if (name := PASS_ROLES.get((key, role), role)) in given:
                feeding[place] = name
                roles.setdefault(name, given[name])
        blocks = in_blocks(roles, feeding)
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
