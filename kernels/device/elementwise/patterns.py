"""Formats and environments as C text for device/patterns.h, which rounds patterns of float32 and float64."""

from __future__ import annotations

from functools import lru_cache

from softnum.runtime import _core

__all__ = ["SMALL", "pattern_facts", "pattern_text", "reading_facts", "reading_text"]

_BITS = {"float32": 32, "float64": 64}


def _is_known(fmt, carrier: str) -> bool:
    """Whether the core has the format, and the carrier is one of patterns."""
    return carrier in _BITS and fmt.codec.core_format(fmt) is fmt


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
    return _fields(_core.pattern_facts(fmt, env, _BITS[carrier])) if _is_known(fmt, carrier) else None


@lru_cache(maxsize=512)
def reading_facts(fmt, carrier: str) -> dict | None:
    """The fields of an sn_reading, in their order; None outside its domain."""
    return _fields(_core.reading_facts(fmt, _BITS[carrier])) if _is_known(fmt, carrier) else None


def _fields(facts: dict | None) -> dict | None:
    """Arrays of two as pairs."""
    return facts and {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}


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
