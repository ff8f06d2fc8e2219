"""Exception flags, and the names of overflow rules and NaN profiles."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag
from typing import Any

#: The rule that each NaN profile names: `softnum.reference.nans` has the three.
NAN_PROFILES = {"canonical": "canonical", "riscv": "canonical", "arm_default": "canonical", "x86": "x86", "arm": "arm"}
OVERFLOW_RULES = ("infinity", "saturate", "saturate_finite", "wrap", "p3109_v3_2_1")


class Flags(IntFlag):
    """Exception flags (IEEE 754-2019 clause 7). As text they are names, or "none".

    >>> from softnum.reference.rules import Flags
    >>> Flags(3), str(Flags(5)), str(Flags(0))
    (<Flags.INEXACT|UNDERFLOW: 3>, 'inexact|overflow', 'none')
    """

    INEXACT = 1
    UNDERFLOW = 2
    OVERFLOW = 4
    DIVIDE_BY_ZERO = 8
    INVALID = 16

    def __str__(self) -> str:
        return "|".join(flag.name.lower() for flag in Flags if flag & self) or "none"


def checked(what: str, name: object, known: Iterable[str], others: Iterable[str] = ()) -> str:
    """The name; ValueError if it is not one of those known."""
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown {what} {name!r} (known: {', '.join([*known, *others])})")
    return name


def overflow_name(name: str | None, fmt: Any) -> str:
    """The overflow rule for a format: the one given, or "saturate" for fixed point and "infinity" for floats.

    ValueError for an unknown rule, and for one that the format does not have.
    """
    fixed = fmt.kind == "fixed"
    if name is None:
        return "saturate" if fixed else "infinity"
    if not has_rule(checked("overflow rule", name, OVERFLOW_RULES), fmt):
        what = "fixed point" if fixed else "a float format"
        if name == "p3109_v3_2_1":
            what = "no P3109 format with infinities"
        raise ValueError(f"overflow={name!r} is not for {fmt}, which is {what}")
    return name


def has_rule(name: str, fmt: Any) -> bool:
    """Whether a format has an overflow rule: "wrap" is fixed point's, "infinity" floats', and "p3109_v3_2_1" that of
    P3109's formats with infinities."""
    fixed = fmt.kind == "fixed"
    some = {"infinity": not fixed, "wrap": fixed, "p3109_v3_2_1": fmt.p3109 and fmt.infinities}
    return some.get(name, name in OVERFLOW_RULES)


def rule_for(name: str | None, fmt: Any, *others: Any) -> str | None:
    """The overflow rule of one of several formats that a rule is stated for: None, its default, where only others have
    it. ValueError for an unknown rule, and for one that none of them has."""
    if name is not None and not has_rule(name, fmt) and any(has_rule(name, other) for other in others):
        return None
    return name if name is None else overflow_name(name, fmt)
