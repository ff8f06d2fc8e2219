"""The names of rounding modes, overflow rules and exception flags, and the numbers the C core knows them by.

`csrc/softnum/rounding/env.h` holds the same numbers of rules and flags; a test compares the two.
"""

from __future__ import annotations

import contextlib
import difflib
from enum import IntFlag
from operator import index

from softnum.runtime import _core

__all__ = [
    "FIXED_OVERFLOW", "FLOAT_OVERFLOW", "LANE_MODES", "NAN_PROFILES", "OVERFLOW_RULES", "ROUNDING_MODES",
    "STOCHASTIC_MODES", "Flags", "family", "goes_up", "nan_profile", "overflow_name", "rounding_name",
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

_ROUNDING_SHORT = {
    "rne": "nearest_even",
    "rna": "nearest_away",
    "rtz": "toward_zero",
    "rup": "up",
    "rdn": "down",
    "rto": "to_odd",
    "sr": "stochastic",
    "stochastic_fastest": "stochastic",
}

#: Which NaN an operation delivers; the names of one number are names for one rule.
NAN_PROFILES: dict[str, int] = {"canonical": 0, "riscv": 0, "arm_default": 0, "x86": 1, "arm": 2}

#: The overflow rules that floats have, and fixed point; the first is the default.
FLOAT_OVERFLOW = ("infinity", "saturate", "saturate_finite")
FIXED_OVERFLOW = ("saturate", "saturate_finite", "wrap")
_REFUSALS = {
    "wrap": "fixed point; {} is a float format",
    "infinity": "floats; {} has no infinity (use 'saturate' or 'wrap')",
}

OVERFLOW_RULES: dict[str, int] = {"infinity": 0, "saturate": 1, "saturate_finite": 2, "wrap": 3}


class Flags(IntFlag):
    """Exception flags, as bits of the uint8 array that ``return_flags=True`` returns (IEEE 754-2019 clause 7).

    As text they are names, or "none"; a format specification for numbers (``f"{flags:#04x}"``) shows the number. An
    element of that array becomes Flags by ``Flags(flags[i])``.

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


def _lookup(what: str, name: object, table: dict[str, int], short: dict[str, str]) -> str:
    key = short.get(name, name) if isinstance(name, str) else name
    if not isinstance(key, str) or key not in table:
        text = str(name).lower()
        near = ["nearest_even"] if text in ("nearest", "even", "round") and short else [k for k in short if k == text]
        near = near or difflib.get_close_matches(text, [*table, *short], n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown {what} {name!r}{hint} (known: {', '.join([*table, *short])})")
    return key


def rounding_name(name: str) -> str:
    """The full name of a rounding mode given by its full or short name; ValueError if there is none."""
    return _lookup("rounding mode", name, ROUNDING_MODES, _ROUNDING_SHORT)


def goes_up(mode: str, sign: int) -> bool:
    """In the families "nearest" and "directed": whether what the sign decides, 1 for negative, goes up in magnitude."""
    _, _, negative, constant, _, _ = _core.MODES[mode]
    return bool((negative & sign) ^ constant)


def nan_profile(name: str) -> int:
    """The number of a NaN profile; ValueError if there is none of that name."""
    return NAN_PROFILES[_lookup("NaN profile", name, NAN_PROFILES, {})]


def overflow_name(name: str | None, fmt) -> str:
    """The overflow rule for a format: the one given, or the default (infinity for floats, saturate for fixed point).

    Raises ValueError for an unknown rule, for "wrap" on a float and "infinity" on fixed point.
    """
    if name is None:
        return fmt.overflow_rules[0]
    name = _lookup("overflow rule", name, OVERFLOW_RULES, {})
    if name not in fmt.overflow_rules:
        fmt.refuse_overflow(name)
        raise ValueError(f"overflow={name!r} is for {_REFUSALS[name].format(fmt)}")
    return name
