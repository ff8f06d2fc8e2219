"""The names of rounding modes, overflow rules and exception flags, and the numbers the C core knows them by.

`csrc/softnum/rounding/env.h` holds the same numbers of rules and flags; a test compares the two.
"""

from __future__ import annotations

import contextlib
from enum import IntFlag
from operator import index

from softnum.formats.aliases import ALIASES, near, refused, rounding_alias
from softnum.runtime import _core

__all__ = [
    "FIXED_OVERFLOW", "FLOAT_OVERFLOW", "LANE_MODES", "NAN_PROFILES", "OVERFLOW_RULES", "P3109_OVERFLOW",
    "P3109_VERSION", "P3109_VERSIONS", "ROUNDING_MODES", "STOCHASTIC_MODES", "Flags", "family", "goes_up",
    "nan_profile", "overflow_name", "overflow_of_formats", "rounding_name",
]  # fmt: skip

_FAMILIES = ("even", "nearest", "directed", "odd", "stochastic", "random", "none")


def family(mode: str) -> str:
    """What decides in a mode: "even" or "nearest" of a tie, "directed" of all that is inexact, and "odd", "stochastic",
    "random", or "none" of these (csrc/dispatch/kernels.h)."""
    return _FAMILIES[_core.MODES[mode][1]]


#: of `csrc/softnum/rounding/modes.h`
ROUNDING_MODES: dict[str, int] = {name: facts[0] for name, facts in _core.MODES.items()}
#: the numbers of those that vectors of a CPU round in; others are rounded by the definition alone
LANE_MODES = frozenset(ROUNDING_MODES[mode] for mode in ROUNDING_MODES if family(mode) != "none")
#: the numbers of those that take random bits
STOCHASTIC_MODES = frozenset(number for name, number in ROUNDING_MODES.items() if name.startswith("stochastic"))

#: the short ones of the other names of modes, which messages list
_SHORT = tuple(a.alias.lower() for a in ALIASES if a.kind == "rounding" and a.whose in ("RISC-V", "PTX", "softnum"))

#: Which NaN an operation delivers; the names of one number are names for one rule.
NAN_PROFILES: dict[str, int] = {"canonical": 0, "riscv": 0, "arm_default": 0, "x86": 1, "arm": 2}

#: The version that P3109's formats are of, IEEE P3109's interim report of 26 June 2026: "infinity" is its SatNone
#: (4.7.5). Rules of older versions, which say otherwise where nothing saturates: OvfInf of v3.2.1 (12 January 2026,
#: 4.9.4).
P3109_VERSION = "4.0"
P3109_VERSIONS = {"p3109_v3_2_1": "3.2.1"}
#: The overflow rules that floats have, P3109's formats with infinities, and fixed point; the first is the default.
FLOAT_OVERFLOW = ("infinity", "saturate", "saturate_finite")
P3109_OVERFLOW = (*FLOAT_OVERFLOW, *P3109_VERSIONS)
FIXED_OVERFLOW = ("saturate", "saturate_finite", "wrap")
_REFUSALS = {
    "wrap": "fixed point; {} is a float format",
    "infinity": "formats with infinities; {} has none (use 'saturate' or 'wrap')",
    "p3109_v3_2_1": (
        "P3109 formats with infinities; {} is not one (in that version the finite formats of P3109 only saturate: use "
        "'saturate')"
    ),
}

OVERFLOW_RULES: dict[str, int] = {"infinity": 0, "saturate": 1, "saturate_finite": 2, "wrap": 3, "p3109_v3_2_1": 5}


class Flags(IntFlag):
    """Exception flags, as bits of the uint8 array that ``return_flags=True`` returns (IEEE 754-2019 clause 7).

    ``str`` gives the names, or "none"; a number's format specification (``f"{flags:#04x}"``) gives the number.
    ``Flags(flags[i])`` converts an element of that array.

    >>> from softnum import Flags
    >>> Flags(3)
    <Flags.INEXACT|UNDERFLOW: 3>
    >>> print(Flags(5), Flags(0), f"{Flags.INVALID:#04x}")
    inexact|overflow none 0x10
    """

    INEXACT = 1
    UNDERFLOW = 2
    OVERFLOW = 4
    DIVIDE_BY_ZERO = 8
    INVALID = 16

    @classmethod
    def _missing_(cls, value):
        """NumPy's integers are numbers too: an element of the array of flags, or that array without dimensions."""
        with contextlib.suppress(TypeError):
            value = index(value)
        return super()._missing_(value)

    def __str__(self) -> str:
        names = [flag.name.lower() for flag in Flags if flag & self]
        unknown = int(self) & ~sum(Flags)
        return "|".join([*names, *([hex(unknown)] if unknown else [])]) or "none"

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec) if spec[-1:] in set("bcdeEfFgGnoxX%") else str.__format__(str(self), spec)


def _unknown(what: str, name: object, known, hint: str | None = None) -> ValueError:
    if hint is None and (close := near(str(name), known)):
        hint = f"did you mean {close[0]!r}"
    mark = "?" if hint and hint.startswith("did") else ""
    return ValueError(f"unknown {what} {name!r}{f'; {hint}{mark}' if hint else ''} (known: {', '.join(known)})")


def _lookup(what: str, name: object, table: dict[str, int]) -> str:
    if not isinstance(name, str) or name not in table:
        raise _unknown(what, name, table)
    return name


def rounding_name(name: str) -> str:
    """The full name of a rounding mode given by it or by another name of ``softnum.formats.aliases``.

    Raises ValueError if there is none.

    >>> from softnum.formats.modes import rounding_name
    >>> rounding_name("rne"), rounding_name("minMag"), rounding_name("roundTowardPositive")
    ('nearest_even', 'toward_zero', 'up')
    """
    if isinstance(name, str):
        found = name if name in ROUNDING_MODES else rounding_alias(name)
        if found in ROUNDING_MODES:
            return found
    raise _unknown("rounding mode", name, [*ROUNDING_MODES, *_SHORT], refused("rounding", str(name)))


def goes_up(mode: str, sign: int) -> bool:
    """In the families "nearest" and "directed": whether what the sign decides, 1 for negative, goes up in magnitude."""
    _, _, negative, constant, _, _ = _core.MODES[mode]
    return bool((negative & sign) ^ constant)


def nan_profile(name: str) -> int:
    """The number of a NaN profile; ValueError if there is none of that name."""
    return NAN_PROFILES[_lookup("NaN profile", name, NAN_PROFILES)]


def overflow_name(name: str | None, fmt) -> str:
    """The overflow rule for a format: the one given, or the default (infinity for floats, saturate for fixed point).

    Raises ValueError for an unknown rule, and for one that the format does not have: "wrap" of a float, "infinity" of
    fixed point, P3109's older rule of other formats.
    """
    if name is None:
        return fmt.overflow_rules[0]
    name = _lookup("overflow rule", name, OVERFLOW_RULES)
    if name not in fmt.overflow_rules:
        fmt.refuse_overflow(name)
        raise ValueError(f"overflow={name!r} is for {_REFUSALS[name].format(fmt)}")
    return name


def overflow_of_formats(name: str | None, fmt, *others) -> str | None:
    """The overflow rule for one of several formats that a rule is stated for: None, its own default, where only others
    know it.

    Raises ValueError for an unknown rule, and for one that none of them has.
    """
    if name not in fmt.overflow_rules and any(name in other.overflow_rules for other in others):
        return None
    return name if name is None else overflow_name(name, fmt)
