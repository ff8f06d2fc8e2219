"""Units in design files: which kinds there are, what each takes, and a unit as plain data.

    forward = "nvidia_h100_fp16"                                          # a preset, as softnum units lists them
    forward = { kind = "preset", name = "nvidia_h100_fp16", output = "binary16" }
    forward = { kind = "mad", accumulator = "e6m9", chunk = 64 }          # softnum.MadUnit
    forward = { kind = "fused", accumulator = "binary32", terms = 8, fraction_bits = 24 }    # softnum.FusedDotUnit
    forward = { kind = "exact", accumulator = "binary32" }                # softnum.ExactDotUnit

Without ``operand`` a unit takes what the roles hold that feed it; a preset states its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import softnum as sn
from softnum.train.objects import describe_format

__all__ = ["KINDS", "PRESET_KEYS", "build_unit", "describe_unit"]

#: kind: (the class, its formats, its other options)
KINDS = {
    "mad": (
        sn.MadUnit,
        ("accumulator", "product", "outer_accumulator"),
        (
            "rounding", "product_rounding", "overflow", "stochastic_bits", "lanes", "chunk", "reduction", "compensated",
        ),
    ),
    "fused": (
        sn.FusedDotUnit,
        ("accumulator", "output"),
        (
            "terms", "fraction_bits", "min_exponent", "output_rounding", "truncate_fraction", "k_order", "c",
            "overflow",
        ),
    ),
    "exact": (sn.ExactDotUnit, ("accumulator",), ("rounding", "overflow", "stochastic_bits")),
}  # fmt: skip
PRESET_KEYS = ("kind", "name", "output")


def build_unit(spec: dict, operand: tuple):
    """The unit of a spec as a design's reader made it: its kind and arguments, or a preset's unit."""
    if "preset" in spec:
        return spec["preset"]
    spec = {"kind": "mad"} | spec
    unit = KINDS[spec.pop("kind")][0]
    spec.pop("operand", None)
    return unit(operand=operand, **spec)


def describe_unit(unit) -> dict:
    """A unit as plain data: its kind and every field, formats by name.

    >>> import softnum as sn
    >>> describe_unit(sn.ExactDotUnit("binary32", operand="e5m2"))["operand"]
    ['e5m2', 'e5m2']
    """
    kind = next((name for name, (cls, *_) in KINDS.items() if type(unit) is cls), type(unit).__name__)
    facts: dict[str, Any] = {"kind": kind}
    for item in dataclasses.fields(unit):
        facts[item.name] = _plain(getattr(unit, item.name))
    return facts


def _plain(value):
    if hasattr(value, "storage_dtype"):
        return describe_format(value, "")["format"]
    return [_plain(part) for part in value] if isinstance(value, tuple) else value
