"""Units as C text, for the library inside a simulator: the parameters that a unit's definition in C takes."""

from __future__ import annotations

import re

from softnum.formats.c_text import format_constant
from softnum.mac._gemm import REDUCTION
from softnum.mac.exact import ExactDotUnit
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.presets import unit_of
from softnum.mac.two_stage import TwoStageDotUnit

__all__ = ["units_text"]

_NO_FLOOR, _NO_LIMIT = "SN_FUSED_NO_FLOOR", "SN_TWO_STAGE_NO_LIMIT"


class _Text:
    """The constants and the statements of one unit."""

    def __init__(self, number: int) -> None:
        self.number, self.constants, self.lines = number, [], []

    def format(self, field: str, fmt) -> None:
        """A field that is a format."""
        name = f"format_{self.number}_{len(self.constants)}"
        self.constants.append(format_constant(fmt, name))
        self.lines.append(f"u->{field} = {name};")

    def environment(self, field: str, env: tuple) -> None:
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


def _mad(t: _Text, unit: MadUnit) -> None:
    source = unit.random_source
    if source.kind == "given":
        raise ValueError("random='given' has no words inside a simulator; name a source")
    t.lines.append("u->kind = SOFTNUM_MAD;")
    for field, fmt in (
        ("operand_a", unit.operand[0]), ("operand_b", unit.operand[1]), ("product", unit.product or unit.accumulator),
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
    t.numbers(
        "of.mad.random.", kind="SN_SOURCE_LFSR" if source.kind == "lfsr" else "SN_SOURCE_PHILOX",
        seven=source.rounds == 7, shared=source.draws.bit_length() - 1, width=source.width, taps=f"{source.taps}u",
        shifts=source.shifts, hart=source.hart,
    )  # fmt: skip


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


_KINDS = {
    MadUnit: _mad, FusedDotUnit: _fused, FmaChainUnit: _chain, GroupedDotUnit: _grouped, TwoStageDotUnit: _two_stage,
    ExactDotUnit: _exact,
}  # fmt: skip


def units_text(units: dict) -> str:
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
        If a name is none of C's, or a unit is of blocks, of functions of the user's, or computes in formats that no
        sn_format describes.

    Examples
    --------
    >>> from softnum.vectors.built_units import units_text
    >>> text = units_text({"mine": "MadUnit('e6m9', operand='e5m2', chunk=64)"})
    >>> [line.strip() for line in text.splitlines() if "chunk" in line or "names" in line]
    ['const char *const softnum_built_names[] = {"mine", NULL};', 'u->of.mad.chunk = 64;']
    """
    constants, cases = "", ""
    for number, (name, given) in enumerate(units.items()):
        if not re.fullmatch(r"[A-Za-z_]\w{0,39}", name, flags=re.ASCII):
            raise ValueError(f"unit {name!r}: a name is of 1 to 40 letters, digits and _, no digit first")
        unit, text = unit_of(given), _Text(number)
        write = _KINDS.get(type(unit))
        if write is None:
            known = ", ".join(kind.__name__ for kind in _KINDS)
            raise ValueError(f"unit {name}: the library takes {known}, not a {type(unit).__name__}")
        try:
            if isinstance(unit, GroupedDotUnit) and (unit.accumulator.p3109 or unit.partial_format.p3109):
                raise ValueError("a GroupedDotUnit that adds in P3109's formats, which raise no flags, is not taken")
            for field, fmt in zip("abc", (*unit.operand, unit.c_format), strict=True):
                text.format(field, fmt)
            write(text, unit)
        except ValueError as error:
            raise ValueError(f"unit {name}: {error}") from None
        constants += "".join(text.constants) + "\n"
        lines = "".join(f"        {line}\n" for line in text.lines)
        cases += f"    case {number}:\n{lines}        break;\n"
    names = ", ".join(f'"{name}"' for name in units)
    return (
        f'/* Written by softnum rtl build. */\n#include "dpi/built.h"\n\n{constants}'
        f"const char *const softnum_built_names[] = {{{names}, NULL}};\n\n"
        "void softnum_built_fill(sn_u64 i, softnum_built *u) {\n    switch (i) {\n"
        f"{cases}    default: break;\n    }}\n}}\n"
    )
