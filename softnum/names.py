"""Names of formats: the registered ones, and the families that a name spells out (eXmY, qI.F, P3109's binaryKpP...).

Sources: IEEE Std 754-2019 (binary16/32/64), OCP 8-bit Floating Point Specification (OFP8) r1.0 (e5m2, e4m3fn),
OCP Microscaling Formats (MX) r1.0 (e8m0fnu, e3m2fn, e2m3fn, e2m1fn), Agrawal et al. 2019 (dlfloat16),
Noune et al. 2022 (the fnuz formats), IEEE P3109 interim report (binaryKpP...).
"""

from __future__ import annotations

import difflib
import re

from softnum.formats import MAX_BITS, FixedFormat, FloatFormat, Format

__all__ = ["format", "format_names"]


def _named(name: str, e: int, m: int, **facts) -> tuple[str, FloatFormat]:
    return name, FloatFormat(e, m, name=name, **facts)


_REGISTRY: dict[str, Format] = dict(
    [
        _named("binary16", 5, 10),
        _named("binary32", 8, 23),
        _named("binary64", 11, 52),
        _named("bfloat16", 8, 7),
        _named("tf32", 8, 10),
        _named("e5m2", 5, 2),
        _named("e4m3", 4, 3),
        _named("e3m4", 3, 4),
        _named("e4m3fn", 4, 3, specials="fn"),
        _named("e4m3fnuz", 4, 3, specials="fnuz"),
        _named("e5m2fnuz", 5, 2, specials="fnuz"),
        _named("e4m3b11fnuz", 4, 3, specials="fnuz", bias=11),
        _named("e8m0fnu", 8, 0, specials="fn", signed=False, has_zero=False, lowest_binade="normal"),
        _named("e3m2fn", 3, 2, specials="none"),
        _named("e2m3fn", 2, 3, specials="none"),
        _named("e2m1fn", 2, 1, specials="none"),
        _named("dlfloat16", 6, 9, specials="fn", lowest_binade="normal"),
    ]
)

_FLOAT_NAME = re.compile(r"e(\d{1,2})m(\d{1,2})")
_FIXED_NAME = re.compile(r"(u?)q(\d{1,2})\.(\d{1,2})")
_P3109_NAME = re.compile(r"binary(\d{1,2})p(\d{1,2})([su])([ef])")


def format_names() -> list[str]:
    """The registered names, in a fixed order.

    >>> import softnum
    >>> "bfloat16" in softnum.format_names()
    True
    """
    return list(_REGISTRY)


def _p3109(name: str, k: int, p: int, sign: str, domain: str) -> FloatFormat:
    signed = sign == "s"
    if not 3 <= k <= MAX_BITS or not 1 <= p <= k - signed:
        raise ValueError(f"{name}: P3109 needs 3 <= K <= {MAX_BITS} and 1 <= P <= K{' - 1' if signed else ''}")
    return FloatFormat(
        k - p + (not signed),
        p - 1,
        specials="p3109",
        signed=signed,
        infinities=domain == "e",
        saturating=domain == "f",
        name=name,
    )


def format(name: str | Format) -> Format:
    """Return the format that a name stands for.

    Parameters
    ----------
    name : str
        A registered name (`format_names`), ``eXmY`` (IEEE-like), ``qI.F`` or ``uqI.F`` (fixed point), or IEEE P3109's
        ``binaryKpP{s,u}{e,f}``. A format object is returned as it is.

    Returns
    -------
    FloatFormat or FixedFormat

    Raises
    ------
    ValueError
        If the name is unknown or its widths are out of range; the message names the nearest known names.

    Examples
    --------
    >>> import softnum
    >>> softnum.format("e5m2").max
    57344.0
    >>> softnum.format("q4.4").min
    -8.0
    """
    if not isinstance(name, str):
        if hasattr(name, "storage_dtype"):
            return name
        raise TypeError(f"a format or the name of one is needed, got {name!r}")
    key = name.strip().lower()
    if key in _REGISTRY:
        return _REGISTRY[key]
    if match := _FLOAT_NAME.fullmatch(key):
        return FloatFormat(int(match[1]), int(match[2]))
    if match := _FIXED_NAME.fullmatch(key):
        return FixedFormat(int(match[2]), int(match[3]), signed=not match[1])
    if match := _P3109_NAME.fullmatch(key):
        return _p3109(key, int(match[1]), int(match[2]), match[3], match[4])
    near = difflib.get_close_matches(key, _REGISTRY, n=3, cutoff=0.4)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(
        f"unknown format {name!r}{hint} (registered names: {', '.join(_REGISTRY)}; "
        "or eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f})"
    )
