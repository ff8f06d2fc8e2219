"""Formats and rounding environments as C text, for programs and kernels that include the C core's headers."""

from __future__ import annotations

import re

from softnum.formats.blocks import format
from softnum.formats.checks import check_narrow, check_scalar
from softnum.runtime import _core

__all__ = ["environment_text", "format_constant", "format_text", "source_text"]

# fields of sn_format that are codes and masks, sn_u64; the others are sn_i32
_WORDS = ("quiet_bit", "max_code", "inf_code", "nan_first", "nan_code", "magnitude_mask", "sign_mask")
_ENUMERATORS = {
    "kind": ("SN_FLOAT", "SN_FIXED"),
    "lowest": ("SN_LOWEST_SUBNORMAL", "SN_LOWEST_NORMAL", "SN_LOWEST_ZERO"),
}


def _initialiser(fmt) -> str:
    """The braces of an sn_format: a field a line, by position, which C11 and C++17 both take."""
    lines = []
    for field, value in _core.format_facts(fmt).items():
        if field in _ENUMERATORS:
            text = _ENUMERATORS[field][value]
        else:
            text = f"{value:#x}ull" if field in _WORDS else str(value)
        lines.append(f"    {text + ',':<24}/* {field} */\n")
    return f"{{\n{''.join(lines)}}}"


def format_constant(fmt, name: str | None = None) -> str:
    """The C declaration of a constant that holds a format's facts, for ``#include "softnum/softnum.h"``.

    Parameters
    ----------
    fmt : format or str
        A float or fixed-point format.
    name : str, optional
        The constant's name. Default: "format_" and the format's name, what is no letter or digit of it replaced by "_".

    Returns
    -------
    str
        C11 and C++17.

    Raises
    ------
    ValueError
        For a block format or a value table, which no sn_format describes, or a name that is none of C's.

    Examples
    --------
    >>> from softnum.formats.c_text import format_constant
    >>> print(format_constant("q4.4"))  # doctest: +ELLIPSIS
    static const sn_format format_q4_4 = {
        SN_FIXED,               /* kind */
        8,                      /* bits */
        1,                      /* is_signed */
        4,                      /* mantissa_bits */
    ...
    """
    fmt = format(fmt)
    check_scalar(fmt, "no sn_format describes {0}, a {0.kind} format; floats and fixed point have one")
    check_narrow(fmt, "no sn_format describes {}")
    name = re.sub(r"\W", "_", f"format_{fmt}", flags=re.ASCII) if name is None else name
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise ValueError(f"name={name!r} is not a C identifier: use letters, digits and _, not starting with a digit")
    return f"static const sn_format {name} = {_initialiser(fmt)};\n"


def format_text(name: str, fmt) -> str:
    """A C function `name` that returns the format's facts, which fold where it is inlined, on devices too."""
    return f"SN_FN sn_format {name}(void) {{\nconst sn_format f = {_initialiser(fmt)};\nreturn f;\n}}\n"


def environment_text(name: str, env: tuple[int, ...]) -> str:
    """A C function `name` that returns the environment, the fields of sn_env in their order (env.h)."""
    return f"SN_FN sn_env {name}(void) {{\n    const sn_env e = {{{', '.join(map(str, env))}}};\n    return e;\n}}\n"


def source_text(name: str, source) -> str:
    """A C function that returns the sn_source of a `softnum.arrays.sources.RandomSource`."""
    fields = ", ".join(f"{x}u" if key == "taps" else str(x) for key, x in source.numbers.items())
    return f"SN_FN sn_source {name}(void) {{\nconst sn_source s = {{{fields}}};\nreturn s;\n}}\n"
