"""Units in design files: which kinds there are, what each takes, and a unit as plain data.

    forward = "nvidia_h100_fp16"                                          # a preset, as softnum units lists them
    forward = { preset = "nvidia_h100_fp16", output = "binary16" }
    forward = { kind = "mad", accumulator = "e6m9", chunk = 64 }          # softnum.MadUnit
    forward = { kind = "fused", accumulator = "binary32", terms = 8, fraction_bits = 24 }    # softnum.FusedDotUnit
    forward = { kind = "two_stage", accumulator = "binary32", terms = 8, fraction_bits = 24, sum_fraction_bits = 31,
                c_fraction_bits = 24 }                                    # softnum.TwoStageDotUnit
    forward = { kind = "grouped", accumulator = "binary32", terms = 8 }   # softnum.GroupedDotUnit
    forward = { kind = "exact", accumulator = "binary32" }                # softnum.ExactDotUnit
    forward = { preset = "nvidia_h100_e4m3", chunk = 128 }                # softnum.ChunkedDotUnit: promoted to binary32
    forward = { kind = "block_dot", accumulator = "binary32" }            # softnum.BlockDotUnit, of block formats
    forward = { kind = "block_dot", accumulator = "binary32", inner = { kind = "mad", accumulator = "e6m9" } }
    forward = "nvidia_tcgen05_mxf8f6f4"                                   # softnum.BlockFusedDotUnit, of block formats
    forward = { kind = "custom", function = "my_mad.py:mad", lanes = 4 }  # softnum.CustomMadUnit; also "my_mad.c:mad"
    forward = { kind = "split", ranks = 4, collective = "ring(unit='bfloat16')", inner = { accumulator = "binary32" } }
                                                                          # softnum.SplitDotUnit: K shared by ranks

A custom unit's function may also be an object that is a unit already; nothing else is stated beside it then.

Without ``operand`` a unit takes what the roles hold that feed it; a preset states its own, unless it is of an
instruction that multiplies formats in any pairing. Without ``kind`` it is a "block_dot" where these are block formats,
or it has an ``inner``, else a "mad". ``inner`` is a unit of kind mad, fused, two_stage, grouped or exact, or a
preset, which multiplies elements; of kind "split" it multiplies each rank's part of K, and may have a ``chunk``.

A unit of kind fused, two_stage or exact, or a preset, may have a ``chunk``: the sums of so many products, each from +0,
are added in ``outer_accumulator`` (binary32), in the mode ``outer_rounding`` (nearest_even). Of kind mad, chunk is its
own.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

from softnum.collectives.collective import Collective
from softnum.collectives.split_unit import SplitDotUnit
from softnum.formats.base import AnyFormat
from softnum.formats.blocks import BlockFormat, format
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.custom import CustomMadUnit
from softnum.mac.families import FAMILIES
from softnum.mac.family import Family, register
from softnum.mac.fused import FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import Unit
from softnum.mac.two_stage import TwoStageDotUnit
from softnum.train.designs.objects import UnitFunction, describe_format
from softnum.train.designs.split_units import SPLIT

__all__ = [
    "BLOCK_KINDS",
    "CHUNKED_KINDS",
    "CHUNK_KEYS",
    "INNER_KINDS",
    "KINDS",
    "PRESET_KEYS",
    "accumulator_of",
    "build_unit",
    "has_block_operand",
    "describe_unit",
    "operands_of",
]


def _options(units: type, family: Family) -> tuple[str, ...]:
    """The keys of such a unit in a design file, besides its formats and what cannot be left out."""
    stated = ("operand", *family.needed, *family.formats)
    return family.options or tuple(f.name for f in dataclasses.fields(units) if f.name not in stated)


#: kind: (the class, its formats, its other options, what cannot be left out)
KINDS = {
    family.kind: (units, family.formats, _options(units, family), family.needed)
    for units, family in (FAMILIES | {SplitDotUnit: register(SplitDotUnit)}).items()
    if family.kind
}
PRESET_KEYS = ("kind", "name", "preset", "output")
#: keys of a ChunkedDotUnit around a unit, and the kinds that take them
CHUNK_KEYS = ("chunk", "outer_accumulator", "outer_rounding")
CHUNKED_KINDS = ("fused", "two_stage", "exact", "preset")
#: what FP8 tensor cores and matrix cores multiply in any pairing
_PAIRED = ({format("e4m3fn"), format("e5m2")}, {format("e4m3fnuz"), format("e5m2fnuz")})
#: and what Blackwell's mxf8f6f4 does
_PAIRED_BLOCKS = {format(f"mxfp{name}") for name in ("8_e4m3", "8_e5m2", "6_e3m2", "6_e2m3", "4_e2m1")}
#: kinds that multiply block formats
BLOCK_KINDS = tuple(f.kind for f in FAMILIES.values() if f.kind and f.of_blocks)
#: of the unit ``inner`` of a block_dot
INNER_KINDS = (*(f.kind for f in FAMILIES.values() if f.kind and f.from_text and not f.of_blocks), "preset")


def operands_of(spec: dict, formats: tuple) -> tuple:
    """The operands of a spec's unit: those that it states, else the formats of the roles that feed it.

    A preset of an FP8 tensor core multiplies e4m3fn and e5m2 in any pairing, of AMD e4m3fnuz and e5m2fnuz, of
    Blackwell's mxf8f6f4 the MX formats of floats.

    >>> import softnum as sn
    >>> core = sn.unit("nvidia_h100_e4m3")
    >>> spec = {"preset": core, "operand": core.operand}
    >>> [str(fmt) for fmt in operands_of(spec, (sn.format("e5m2"), sn.format("e4m3fn")))]
    ['e5m2', 'e4m3fn']
    """
    if spec.get("kind") == SPLIT:
        return operands_of(spec["inner"], formats)
    stated = spec.get("operand", formats)
    fused = isinstance(spec.get("preset"), (FusedDotUnit, TwoStageDotUnit, GroupedDotUnit))
    if fused and any({*stated, *formats} <= pair for pair in _PAIRED):
        return formats
    of_blocks = isinstance(spec.get("preset"), BlockFusedDotUnit) and spec["preset"].group == 1
    if of_blocks and {*stated, *formats} <= _PAIRED_BLOCKS:
        return formats
    return stated


def accumulator_of(spec: dict):
    """The format in which the unit of a spec keeps its sums."""
    if "chunked" in spec:
        return spec["chunked"].get("accumulator", format("binary32"))
    if "accumulator" in spec:
        return spec["accumulator"]
    return spec["preset"].accumulator if "preset" in spec else spec["function"].value.c_format


def has_block_operand(spec: dict) -> bool:
    """Whether a spec as a design's reader made it states an operand of a block format."""
    return any(isinstance(fmt, BlockFormat) for fmt in spec.get("operand", ()))


def build_unit(spec: dict, operand: tuple):
    """The unit of a spec as a design's reader made it: its kind and arguments, or a preset's unit."""
    if "chunked" in spec:
        inner = {key: value for key, value in spec.items() if key != "chunked"}
        return ChunkedDotUnit(build_unit(inner, operand), **spec["chunked"])
    if "preset" in spec:
        unit = spec["preset"]
        return unit if unit.operand == operand else dataclasses.replace(unit, operand=operand)
    spec, blocks = dict(spec), [isinstance(fmt, BlockFormat) for fmt in operand]
    kind = spec.pop("kind", "block_dot" if any(blocks) else "mad")
    spec.pop("operand", None)
    made = kind == "custom" and isinstance(spec["function"].value, Unit)
    if not made and set(blocks) != {kind in BLOCK_KINDS}:
        have = " x ".join(map(str, operand))
        if kind in BLOCK_KINDS:
            raise ValueError(f'kind {kind!r} multiplies block formats, got {have}; take kind = "mad" or another')
        raise ValueError(f'kind {kind!r} multiplies single numbers, got {have}; block formats take kind = "block_dot"')
    if kind in BLOCK_KINDS:
        _, formats, options, _ = KINDS[kind]
        if foreign := [key for key in spec if key not in (*formats, *options)]:
            raise ValueError(
                f"{', '.join(foreign)}: not an option of kind {kind!r}, which multiplies block formats; leave it out"
            )
        if "inner" in spec:
            elements = tuple(fmt.element for fmt in operand)
            spec["inner"] = build_unit(spec["inner"], spec["inner"].get("operand", elements))
    if kind == SPLIT:
        return SplitDotUnit(build_unit(spec["inner"], operand), spec["collective"], spec.get("sections"))
    if kind == "custom":
        for key, value in spec.items():
            if isinstance(value, (dict, list)):
                raise ValueError(f"{key} must be a number or a text, got {value!r}")
        return custom_unit(spec.pop("function"), operand, tuple(spec.items()))
    return KINDS[kind][0](operand=operand, **spec)


@functools.lru_cache(maxsize=64)
def custom_unit(function: UnitFunction, operand: tuple, options: tuple):
    """The unit of a user's function: once for all layers and passes that are alike, so that it compiles once."""
    if isinstance(function.value, Unit):
        return function.value
    if isinstance(function.value, Path):
        if "carrier" in dict(options):
            raise ValueError(f"{function.source!r} declares its number types; leave out carrier")
        name = function.source.rpartition(":")[2]
        return CustomMadUnit.from_c(function.value, name=name, operand=operand, **dict(options))
    return CustomMadUnit(function.value, operand=operand, **dict(options))


def describe_unit(unit, function: str | None = None) -> dict:
    """A unit as plain data: its kind and every field, formats by name, and a user's function as the design wrote it.

    >>> import softnum as sn
    >>> describe_unit(sn.ExactDotUnit("binary32", operand="e5m2"))["operand"]
    ['e5m2', 'e5m2']
    """
    kind = next((name for name, (cls, *_) in KINDS.items() if type(unit) is cls), type(unit).__name__)
    facts: dict[str, Any] = {"kind": kind}
    for item in dataclasses.fields(unit):
        facts[item.name] = _plain(getattr(unit, item.name))
    return facts if function is None else {**facts, "function": function}


def _plain(value):
    if isinstance(value, AnyFormat):
        return describe_format(value, "")["format"]
    if isinstance(value, Unit):
        return describe_unit(value)
    if isinstance(value, Collective):
        return str(value)
    return [_plain(part) for part in value] if isinstance(value, tuple) else value
