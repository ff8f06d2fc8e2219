"""Units as C text, for the library inside a simulator: the parameters that a unit's definition in C takes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from softnum.formats.c_text import format_constant
from softnum.formats.checks import is_table
from softnum.formats.names import format as plain_format
from softnum.mac._gemm import REDUCTION
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import family_of
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.presets import unit_of
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["units_text"]

_NO_FLOOR, _NO_LIMIT = "SN_FUSED_NO_FLOOR", "SN_TWO_STAGE_NO_LIMIT"


class _Text:
    """The constants and the statements of one unit; those of the unit that sums its blocks, and that unit's number."""

    def __init__(self, number: int) -> None:
        self.number, self.constants, self.lines = number, [], []
        self.inner: list[_Text] = []
        self.inner_number = -1

    def format(self, field: str, fmt) -> None:
        """A field that is a format."""
        name = f"format_{self.number}_{len(self.constants)}"
        self.constants.append(format_constant(fmt, name))
        self.lines.append(f"u->{field} = {name};")

    def table(self, operand: str, fmt) -> None:
        """A table of values that an operand is: the binary64 of each code."""
        name = f"table_{self.number}_{len(self.constants)}"
        codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
        values = ", ".join(f"{int(x):#x}" for x in fmt.codec.for_core(codes, fmt))
        self.constants.append(f"static const sn_u64 {name}[] = {{{values}}};\n")
        self.lines.append(f"u->table_{operand} = {name};")
        self.numbers("", **{f"table_bits_{operand}": fmt.bits})

    def environment(self, field: str, env: tuple[Any, ...]) -> None:
        """A field that is an environment."""
        name = f"env_{self.number}_{len(self.constants)}"
        self.constants.append(f"static const sn_env {name} = {{{', '.join(map(str, env))}}};\n")
        self.lines.append(f"u->{field} = {name};")

    def numbers(self, prefix: str, **fields) -> None:
        """Fields that are numbers."""
        self.lines += [f"u->{prefix}{name} = {int(x) if isinstance(x, bool) else x};" for name, x in fields.items()]

    def order(self, field: str, unit) -> None:
        """The unit's order of summation."""
        if unit.k_order is not None:
            name = f"order_{self.number}"
            self.constants.append(f"static const sn_i32 {name}[] = {{{', '.join(map(str, unit.k_order))}}};\n")
            self.lines.append(f"u->{field} = {name};")


def _or(value, absent):
    return absent if value is None else value


def _in_core(fmt):
    """The format that a unit's definition reads: binary64 in place of a table of values."""
    return plain_format("binary64") if is_table(fmt) else fmt


def _source(t: _Text, field: str, unit) -> None:
    """Where the unit's random bits come from."""
    source = unit.random_source
    if source.kind == "given":
        raise ValueError("random='given' has no words inside a simulator; name a source")
    t.numbers(f"{field}.", **source.numbers | {"taps": f"{source.taps}u"})


def _mad(t: _Text, unit: MadUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_MAD;")
    for field, fmt in (
        ("operand_a", _in_core(unit.operand[0])), ("operand_b", _in_core(unit.operand[1])),
        ("product", unit.product or unit.accumulator),
        ("accumulator", unit.accumulator), ("outer", unit.outer),
    ):  # fmt: skip
        t.format(f"of.mad.{field}", fmt)
    for field, env in zip(("product_env", "sum_env", "outer_env"), unit.environments, strict=True):
        t.environment(f"of.mad.{field}", env)
    t.numbers(
        "of.mad.", fused=unit.product is None, two_roundings=unit.two_roundings, chunk=unit.chunk or 0,
        lanes=unit.lanes, reduction=REDUCTION[unit.reduction], compensated=unit.compensated is not None,
        positive=unit.flush_inputs == "positive",
    )  # fmt: skip
    _source(t, "of.mad.random", unit)


def _fused(t: _Text, unit: FusedDotUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_FUSED;")
    formats = (*unit.operand, unit.accumulator, unit.result)
    for field, fmt in zip(("a", "b", "accumulator", "output"), formats, strict=True):
        t.format(f"of.fused.{field}", fmt)
    for field, env in zip(("sum_env", "output_env", "after_env"), unit.environments, strict=True):
        t.environment(f"of.fused.{field}", env)
    t.numbers(
        "of.fused.", terms=unit.terms, fraction_bits=unit.fraction_bits, min_exponent=_or(unit.min_exponent, _NO_FLOOR),
        zero_exponent=_or(unit.zero_exponent, _NO_FLOOR), truncate_fraction=_or(unit.truncate_fraction, -1),
        always_infinity=unit.overflow == "always_infinity", c_after=unit.c == "after",
        same_output=unit.result == unit.accumulator, period=unit.period,
    )  # fmt: skip
    t.order("of.fused.order", unit)


def _chain(t: _Text, unit: FmaChainUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_CHAIN;")
    for field, fmt in zip(("a", "b", "accumulator"), (*unit.operand, unit.accumulator), strict=True):
        t.format(f"of.chain.{field}", fmt)
    t.environment("of.chain.env", unit.environment)
    t.numbers("of.chain.", period=unit.period)
    t.order("of.chain.order", unit)


def _grouped(t: _Text, unit: GroupedDotUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_GROUPED;")
    for field, fmt in (
        ("products.a", unit.operand[0]), ("products.b", unit.operand[1]), ("accumulator", unit.accumulator),
        ("partial", unit.partial_format),
    ):  # fmt: skip
        t.format(f"of.grouped.{field}", fmt)
    for field, env in zip(("sum_env", "partial_env"), unit.environments, strict=True):
        t.environment(f"of.grouped.{field}", env)
    bits = {"exact": "SN_GROUPED_EXACT", "bulk": unit.fraction_bits}.get(unit.reduction, "SN_GROUPED_STEPS")
    t.numbers(
        "of.grouped.", terms=unit.terms, fraction_bits=bits, rounded=unit.partial_rounding is not None,
        first_term=unit.zeros == "signed", scale=unit.scale, bottom=unit.bottom, words=unit.words,
    )  # fmt: skip
    t.numbers("of.grouped.products.", zero_exponent=_NO_FLOOR)


def _two_stage(t: _Text, unit: TwoStageDotUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_TWO_STAGE;")
    for field, fmt in zip(("a", "b", "accumulator"), (*unit.operand, unit.accumulator), strict=True):
        t.format(f"of.two_stage.fused.{field}", fmt)
    t.environment("of.two_stage.fused.sum_env", unit.environment)
    t.numbers(
        "of.two_stage.fused.", terms=unit.terms, period=unit.terms, fraction_bits=unit.fraction_bits,
        zero_exponent=_or(unit.zero_exponent, _NO_FLOOR),
    )  # fmt: skip
    t.numbers(
        "of.two_stage.", sum_fraction_bits=unit.sum_fraction_bits, c_fraction_bits=unit.c_fraction_bits,
        interleave=unit.interleave, down=unit.alignment == "down", c_reach=_or(unit.c_reach, -1),
        product_limit=_or(unit.product_limit, _NO_LIMIT),
    )  # fmt: skip


def _exact(t: _Text, unit: ExactDotUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_EXACT;")
    t.format("of.exact.accumulator", unit.accumulator)
    t.environment("of.exact.env", unit.environment)
    t.numbers("of.exact.", bottom=unit.bottom, words=unit.words)
    _source(t, "of.exact.random", unit)


def _scales(t: _Text, unit) -> None:
    """What units of blocks have in common."""
    for x, fmt in zip("ab", unit.operand, strict=True):
        t.format(f"scale_{x}", fmt.scale)
        if fmt.tensor_scale is not None:
            t.format(f"tensor_{x}", fmt.tensor_scale)
    tensors = sum((f.tensor_scale is not None) << i for i, f in enumerate(unit.operand))
    t.numbers("", tensors=tensors, block=unit.block_size or 0)


def _block(t: _Text, unit: BlockDotUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_BLOCK;")
    _scales(t, unit)
    if unit.inner is not None:
        if unit.inner.stochastic:
            raise ValueError("blocks whose products are added with random bits are not taken")
        t.inner.append(_written(t.inner_number, unit.inner))
        t.format("of.block.inner_format", unit.inner.result)
    _source(t, "of.block.random", unit)
    t.format("of.block.product", unit.product or unit.accumulator)
    t.format("of.block.accumulator", unit.accumulator)
    for field, env in zip(("product_env", "sum_env"), unit.environments, strict=True):
        t.environment(f"of.block.{field}", env)
    t.numbers(
        "of.block.", inner=-1 if unit.inner is None else t.inner_number, rounds_product=unit.product is not None,
        bottom=unit.bottom, plain=unit.plain, words=unit.words if unit.inner is None else 1,
    )  # fmt: skip


def _block_fused(t: _Text, unit: BlockFusedDotUnit) -> None:
    t.lines.append("u->kind = SOFTNUM_BLOCK_FUSED;")
    _scales(t, unit)
    for x, fmt in zip("ab", unit.operand, strict=True):
        t.format(f"of.block_fused.fused.{x}", fmt.element)
        t.format(f"of.block_fused.scale_{x}", fmt.scale)
    for field in ("accumulator", "output"):
        t.format(f"of.block_fused.fused.{field}", unit.accumulator)
    for field in ("sum_env", "output_env"):
        t.environment(f"of.block_fused.fused.{field}", unit.environments[0])
    t.environment("tensor_env", unit.environments[1])
    t.numbers(
        "of.block_fused.fused.", terms=unit.terms, fraction_bits=unit.fraction_bits, period=unit.terms,
        min_exponent=_or(unit.min_exponent, _NO_FLOOR), zero_exponent=_or(unit.zero_exponent, _NO_FLOOR),
        truncate_fraction=_or(unit.truncate_fraction, -1), always_infinity=unit.overflow == "always_infinity",
        same_output=True,
    )  # fmt: skip
    t.numbers("of.block_fused.", group=unit.group, block=unit.block_size, plain=unit.plain)


_KINDS = {
    MadUnit: _mad, FusedDotUnit: _fused, FmaChainUnit: _chain, GroupedDotUnit: _grouped, TwoStageDotUnit: _two_stage,
    ExactDotUnit: _exact, BlockDotUnit: _block, BlockFusedDotUnit: _block_fused,
}  # fmt: skip


def _written(number: int, unit, inner_number: int = -1) -> _Text:
    """The text of unit number `number`; that of the unit within it, if there is one, gets the other number."""
    text, write = _Text(number), _KINDS.get(type(unit))
    text.inner_number = inner_number
    if write is None:
        known = ", ".join(kind.__name__ for kind in _KINDS)
        raise ValueError(f"the library takes {known}, not a {type(unit).__name__}")
    if isinstance(unit, GroupedDotUnit) and (unit.accumulator.p3109 or unit.partial_format.p3109):
        raise ValueError("a GroupedDotUnit that adds in P3109's formats, which raise no flags, is not taken")
    operands = [f.element if family_of(unit).of_blocks else f for f in unit.operand]
    for field, fmt in zip("abc", (*operands, unit.c_format), strict=True):
        if _in_core(fmt) is not fmt and not (isinstance(unit, MadUnit) and field != "c"):
            raise ValueError(f"{fmt} is a table of values, and tables are operands of a MadUnit alone")
        text.format(field, _in_core(fmt))
        if _in_core(fmt) is not fmt:
            text.table(field, fmt)
    write(text, unit)
    return text


def units_text(units: dict[str, Any]) -> str:
    """C text that takes the place of ``dpi/built.c``: units with names of their own.

    Parameters
    ----------
    units : dict
        Name -> unit, a preset's name, or the expression of a unit.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a name is none of C's, or a unit is of functions of the user's, in chunks that another unit adds, of blocks
        whose products are added with random bits, or computes in formats that no sn_format describes.

    Examples
    --------
    >>> from softnum.vectors.built_units import units_text
    >>> text = units_text({"mine": "MadUnit('e6m9', operand='e5m2', chunk=64)"})
    >>> [line.strip() for line in text.splitlines() if "chunk" in line or "names" in line]
    ['const char *const softnum_built_names[] = {"mine", NULL};', 'u->of.mad.chunk = 64;']
    """
    texts, behind = [], len(units)
    for number, (name, given) in enumerate(units.items()):
        if not re.fullmatch(r"[A-Za-z_]\w{0,39}", name, flags=re.ASCII):
            raise ValueError(f"unit {name!r}: a name is of 1 to 40 letters, digits and _, no digit first")
        unit = unit_of(given)
        try:
            text = _written(number, unit, behind)
        except (TypeError, ValueError) as error:
            raise ValueError(f"unit {name}: {error}") from None
        texts += [text, *text.inner]
        behind += len(text.inner)
    constants = "".join("".join(text.constants) + "\n" for text in texts)
    cases = ""
    for text in sorted(texts, key=lambda t: t.number):
        lines = "".join(f"        {line}\n" for line in text.lines)
        cases += f"    case {text.number}:\n{lines}        break;\n"
    names = ", ".join(f'"{name}"' for name in units)
    return (
        f'/* Written by softnum rtl build. */\n#include "dpi/built.h"\n\n{constants}'
        f"const char *const softnum_built_names[] = {{{names}, NULL}};\n\n"
        "void softnum_built_fill(sn_u64 i, softnum_built *u) {\n    switch (i) {\n"
        f"{cases}    default: break;\n    }}\n}}\n"
    )
