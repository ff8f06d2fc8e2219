"""Formats and environments as C text for device/patterns.h, which rounds patterns of float32 and float64."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode
from softnum.formats.dispatch import of_format
from softnum.runtime import _core

__all__ = ["SMALL", "pattern_facts", "pattern_text", "reading_facts", "reading_text"]

_EVEN, _BY_SIGN, _DIRECTED, _ODD, _CARRY, _OTHER = range(6)  # SN_FAMILY_*
_GRID, _IN_PLACE, _MAGIC, _BY_CARRY = range(4)
_SUBNORMAL, _NORMAL, _FLUSHED = range(3)  # sn_format.lowest
_SN_FIXED = 1  # sn_format.kind

# of a mode's number: direction of the addition, bump
_WAYS = {number: way for number, _, _, _, *way in _core.MODES.values()}

_CARRIERS = {"float32": (23, 127, np.uint32), "float64": (52, 1023, np.uint64)}  # fraction bits, bias, word


def _as_float(fmt, carrier: str) -> tuple[int, int] | None:
    """(the lowest binade's exponent, fraction bits) of a format as a float; None if the carrier has not its values, or
    is binary16, which has no patterns."""
    if carrier not in _CARRIERS:
        return None
    places, bias, word = _CARRIERS[carrier]
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
    _, m = as_float
    places, _, word = _CARRIERS[carrier]
    mode, _, _, random, flush_inputs, *_ = env
    f = _core.format_facts(fmt)
    r = None if flush_inputs else _core.rounding_facts(fmt, env, 8 * word(0).itemsize)
    if r is None:
        return None
    family, negative, constant = r["family"], r["negative"], r["constant"]
    lowest, has_zero, fixed = r["lowest"], r["has_zero"], r["fixed"]
    if lowest == _NORMAL and has_zero and family >= _CARRY:
        return None

    def pattern(code: int) -> int:
        return int(decode(np.array(code, fmt.storage_dtype), fmt, carrier).view(word))

    # the way, and where it ends
    way = _GRID
    if r["below_one"]:
        way = _IN_PLACE
    elif r["easy"] == pattern(f["max_code"]) and (fixed or f["max_code"] >> m):
        way = _MAGIC
    elif family == _CARRY and lowest == _SUBNORMAL and has_zero:
        way = _BY_CARRY
    beyond = []
    for sign in (0, 1):
        if sign and not fmt.signed:
            beyond.append(1)  # no number there but 0
            continue
        last = pattern(r["limit"][1] if fixed and sign else f["max_code"]) & ((1 << (8 * word(0).itemsize - 1)) - 1)
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
        "mantissa_bits": m, "biased_emin": r["biased_emin"], "lowest": lowest,
        "is_fixed": r["fixed"], "has_zero": has_zero, "negative_zero": r["negative_zero"],
        "no_nan": r["no_nan"], "bits": r["bits"], "sign_mask": r["sign_mask"], "code_mask": r["code_mask"],
        "quantum": r["quantum"], "half_gap": r["half_gap"], "gap_threshold": r["gap_threshold"],
        "direction": _WAYS[mode][0], "bump": _WAYS[mode][1],
        "least": r["biased_emin"] << places, "to_constant": r["to_constant"] if way == _MAGIC else 0,
        "beyond": tuple(beyond), "limit": r["limit"],
        "value_overflow": r["value_overflow"], "value_infinity": r["value_infinity"], "value_nan": r["value_nan"],
        "code_overflow": r["code_overflow"], "code_infinity": r["code_infinity"], "code_nan": r["code_nan"],
    }  # fmt: skip


@lru_cache(maxsize=512)
def reading_facts(fmt, carrier: str) -> dict | None:
    """The fields of an sn_reading, in their order; None outside its domain."""
    as_float = _as_float(fmt, carrier)
    if as_float is None:
        return None
    emin, m = as_float
    places, bias, _ = _CARRIERS[carrier]
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
