"""Formats and environments as C text for device/patterns.h, which rounds patterns of float32 and float64."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode
from softnum.arrays.ufuncs import call_ufunc
from softnum.formats.dispatch import of_format
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from softnum.formats.names import format
from softnum.runtime import _core

__all__ = ["SMALL", "pattern_facts", "pattern_text", "reading_facts", "reading_text"]

_EVEN, _BY_SIGN, _DIRECTED, _ODD, _CARRY, _OTHER = range(6)
_GRID, _IN_PLACE, _MAGIC, _BY_CARRY = range(4)
_NEAREST, _DOWN, _UP, _ZERO = range(4)
_SUBNORMAL, _NORMAL, _FLUSHED = range(3)  # sn_format.lowest
_SN_FIXED = 1  # sn_format.kind

# mode -> family, negative, constant, direction of the addition, bump
_MODES = {
    "nearest_even": (_EVEN, 0, 0, _NEAREST, 0),
    "nearest_away": (_BY_SIGN, 0, 1, _ZERO, 1),
    "nearest_zero": (_BY_SIGN, 0, 0, _UP, 0),
    "nearest_up": (_BY_SIGN, 1, 1, _DOWN, 1),
    "nearest_down": (_BY_SIGN, 1, 0, _UP, 0),
    "toward_zero": (_DIRECTED, 0, 0, _ZERO, 0),
    "away_from_zero": (_DIRECTED, 0, 1, _UP, 0),
    "up": (_DIRECTED, 1, 1, _UP, 0),
    "down": (_DIRECTED, 1, 0, _DOWN, 0),
    "to_odd": (_ODD, 0, 0, _ZERO, 0),
    "stochastic": (_CARRY, 0, 0, _NEAREST, 0),
    "stochastic_floor": (_OTHER, 0, 0, _NEAREST, 0),
    "stochastic_fast": (_OTHER, 0, 0, _NEAREST, 0),
    "stochastic_even": (_OTHER, 0, 0, _NEAREST, 0),
    "stochastic_odd": (_OTHER, 0, 0, _NEAREST, 0),
}
_NAMES = {number: name for name, number in ROUNDING_MODES.items()}

_CARRIERS = {"float32": ("binary32", 23, 127, np.uint32), "float64": ("binary64", 52, 1023, np.uint64)}


def _as_float(fmt, carrier: str) -> tuple[int, int] | None:
    """(the lowest binade's exponent, fraction bits) of a format as a float; None if the carrier has not its values, or
    is binary16, which has no patterns."""
    if carrier not in _CARRIERS:
        return None
    _, places, bias, word = _CARRIERS[carrier]
    emin, m, emax = _exponents(fmt)
    fits = fmt.bits <= 8 * word(0).itemsize and m <= places and emin >= 1 - bias and emax <= bias
    return (emin, m) if fits else None


@of_format
def _exponents(fmt) -> tuple[int, int, float]:
    """(the lowest binade's exponent, fraction bits, the highest exponent) of a format as a float"""
    return fmt.emin, fmt.mantissa_bits, fmt.emax


@_exponents.fixed
def _fixed_exponents(fmt) -> tuple[int, int, float]:
    return fmt.bits - fmt.fraction_bits, fmt.bits, fmt.bits - fmt.fraction_bits


@_exponents.custom
def _unknown_exponents(fmt) -> tuple[int, int, float]:
    return 0, 0, np.inf  # no pattern says which values there are


@lru_cache(maxsize=512)
def pattern_facts(fmt, env: tuple[int, ...], carrier: str) -> dict | None:
    """The fields of an sn_pattern (csrc/softnum/device/patterns.h), in their order; None outside its domain.

    Parameters
    ----------
    fmt : float or fixed-point format
    env : tuple
        As `softnum.arrays.environment.environment` makes it.
    carrier : {"float32", "float64"}
    """
    as_float = _as_float(fmt, carrier)
    if as_float is None:
        return None
    emin, m = as_float
    name, places, bias, word = _CARRIERS[carrier]
    mode, rule, _, random, flush_inputs, flush_results, nan, invalid = env
    f = _core.format_facts(fmt)
    fixed = f["kind"] == _SN_FIXED
    if nan or flush_inputs or flush_results or (fixed and rule == OVERFLOW_RULES["wrap"]):
        return None
    family, negative, constant, direction, bump = _MODES[_NAMES[mode]]
    if family == _OTHER and mode != ROUNDING_MODES["stochastic_floor"] and random == 8 * word(0).itemsize:
        return None
    lowest, has_zero = (_SUBNORMAL, 1) if fixed else (f["lowest"], f["has_zero"])
    if lowest == _FLUSHED and emin == 1 - bias:
        return None
    if lowest == _NORMAL and not (emin > 1 - bias and family < _CARRY if has_zero else f["has_nan"]):
        return None

    def pattern(code: int) -> int:
        return int(decode(np.array(code, fmt.storage_dtype), fmt, carrier).view(word))

    def codes_of(sign: int) -> tuple[int, int, int]:
        """(the largest magnitude code, what overflows, an infinity)"""
        infinity = np.array(-np.inf if sign else np.inf, carrier).view(word)
        infinite = call_ufunc("convert", (infinity,), (format(name),), fmt, env, np.uint32(0), invalid=0)[0]
        if sign and not fmt.signed:
            most = -1 if not has_zero else 0
        else:
            most = f["sign_mask"] if sign and fixed else f["max_code"]
        if sign and not has_zero:
            beyond = f["nan_code"]
        elif fixed:
            beyond = max(most, 0)
        else:
            beyond = _core.overflow_code(fmt, env, sign)
        return most, beyond, int(infinite)

    most, overflow, infinity = zip(codes_of(0), codes_of(1), strict=True)
    no_number = f["nan_code"] if f["has_nan"] else invalid
    quantum = pattern(0 if not has_zero else 1 << m if lowest == _FLUSHED else 1)
    half_gap = quantum - (1 << places) if lowest == _NORMAL and has_zero else 0
    thresholds = []
    for sign in (0, 1):
        goes_up = (negative & sign) ^ constant
        if family == _DIRECTED:
            thresholds.append(1 if goes_up else quantum)
        else:
            thresholds.append(1 if family == _ODD else half_gap + (not goes_up))

    # the way, and where it ends
    largest = pattern(f["max_code"])
    usual = family < _CARRY and fmt.signed and has_zero and lowest != _FLUSHED
    up = places - m - (family == _BY_SIGN)  # from E to the exponent of C
    way = _GRID
    if usual and emin == 1 - bias and m < places and lowest == _SUBNORMAL:
        way = _IN_PLACE
    elif (
        usual
        and up >= 2
        and (m or family in (_BY_SIGN, _DIRECTED))
        and quantum >> places
        and emin + up <= bias
        and largest >> places <= 2 * bias - up
        and (fixed or f["max_code"] >> m)
    ):
        way = _MAGIC
    elif family == _CARRY and lowest == _SUBNORMAL and has_zero:
        way = _BY_CARRY
    beyond = []
    for sign in (0, 1):
        if sign and not fmt.signed:
            beyond.append(1)  # no number there but 0
            continue
        last = pattern(most[1] if fixed and sign else f["max_code"]) & ((1 << (8 * word(0).itemsize - 1)) - 1)
        if fixed or family >= _DIRECTED:  # fixed point saturates: what is rounded to its bound is the bound
            beyond.append(last + 1)
        else:
            odd = f["max_code"] & 1
            goes_up = odd if family == _EVEN else (negative & sign) ^ constant
            beyond.append(last + (1 << (places - m) >> 1) + (not goes_up))
    if way == _GRID:
        beyond = [0, 0]
    return {
        "way": way, "family": family, "rounding": mode, "stochastic_bits": random,
        "negative": negative, "constant": constant,
        "mantissa_bits": m, "biased_emin": emin + bias, "lowest": lowest,
        "is_fixed": int(fixed), "has_zero": has_zero, "negative_zero": f["negative_zero"],
        "no_nan": int(not f["has_nan"]), "bits": fmt.bits,
        "sign_mask": f["sign_mask"], "code_mask": f["magnitude_mask"] | f["sign_mask"],
        "quantum": quantum, "half_gap": half_gap, "gap_threshold": tuple(map(int, thresholds)),
        "direction": direction, "bump": bump,
        "least": (emin + bias) << places, "to_constant": (up << places | 1 << (places - 1)) if way == _MAGIC else 0,
        "beyond": tuple(beyond), "limit": most,
        "value_overflow": tuple(map(pattern, overflow)), "value_infinity": tuple(map(pattern, infinity)),
        "value_nan": pattern(no_number),
        "code_overflow": overflow, "code_infinity": infinity, "code_nan": no_number,
    }  # fmt: skip


@lru_cache(maxsize=512)
def reading_facts(fmt, carrier: str) -> dict | None:
    """The fields of an sn_reading, in their order; None outside its domain."""
    as_float = _as_float(fmt, carrier)
    if as_float is None:
        return None
    emin, m = as_float
    _, places, bias, _ = _CARRIERS[carrier]
    f = _core.format_facts(fmt)
    fixed = f["kind"] == _SN_FIXED
    lowest = _SUBNORMAL if fixed else f["lowest"]
    whole = f["magnitude_mask"] | f["sign_mask"]
    return {
        "mantissa_bits": m, "bits": fmt.bits, "is_fixed": int(fixed), "negative_zero": f["negative_zero"],
        "nan_is_negative_zero": f["nan_is_negative_zero"], "subnormals": int(lowest == _SUBNORMAL),
        "low": f["has_zero"] if lowest == _NORMAL else 1 << m,
        "max_code": whole if fixed else f["max_code"], "inf_code": f["inf_code"] if f["has_inf"] else -1,
        "sign_mask": f["sign_mask"], "magnitude_mask": whole if fixed else f["magnitude_mask"],
        "rebias": (emin + bias - (lowest != _NORMAL)) << places, "first": (emin + bias) << places,
    }  # fmt: skip


# fields that are sn_i32; the others are sn_u64, but limit, low, max_code and inf_code, sn_i64
SMALL = (
    "way", "family", "rounding", "stochastic_bits", "negative", "constant", "mantissa_bits", "biased_emin", "lowest",
    "is_fixed", "has_zero", "negative_zero", "no_nan", "bits", "direction", "bump", "nan_is_negative_zero",
    "subnormals",
)  # fmt: skip


def pattern_text(name: str, fmt, env: tuple[int, ...], carrier: str) -> str | None:
    """A C function `name` that returns the sn_pattern of a format in an environment; None outside the domain.

    For a `Library` whose header includes "softnum/device/patterns.h".
    """
    return _text(name, "sn_pattern", pattern_facts(fmt, env, carrier))


def reading_text(name: str, fmt, carrier: str) -> str | None:
    """A C function `name` that returns the sn_reading of a format; None outside the domain."""
    return _text(name, "sn_reading", reading_facts(fmt, carrier))


def _text(name: str, kind: str, facts: dict | None) -> str | None:
    if facts is None:
        return None

    def number(field: str, value: int) -> str:
        return f"{value}" if field in SMALL or value < 0 else f"{value:#x}ull"

    lines = []
    for field, value in facts.items():
        pair = isinstance(value, tuple)
        text = f"{{{', '.join(number(field, v) for v in value)}}}" if pair else number(field, value)
        lines.append(f"    {text},  /* {field} */\n")
    return f"SN_FN {kind} {name}(void) {{\nconst {kind} x = {{\n{''.join(lines)}}};\nreturn x;\n}}\n"
