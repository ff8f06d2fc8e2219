"""Names of formats: the registered ones, and the families that a name spells out (eXmY, qI.F, P3109's binaryKpP...).

Families of formats that stand above this module enter their names themselves (`register_family`).

Sources: IEEE Std 754-2019 (binary16/32/64/128), Intel 64 and IA-32 Software Developer's Manual (x87's format), OCP
8-bit Floating Point Specification (OFP8) r1.0 (e5m2, e4m3fn),
OCP Microscaling Formats (MX) r1.0 (e8m0fnu, e3m2fn, e2m3fn, e2m1fn), Agrawal et al. 2019 (dlfloat16),
Noune et al. 2022 (the fnuz formats), IEEE P3109 interim report (binaryKpP...).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from softnum.formats.aliases import format_alias, integer_named, near, refused
from softnum.formats.base import AnyFormat, SingleFormat
from softnum.formats.scalar import MAX_BITS, FixedFormat, FloatFormat, Format
from softnum.formats.wide import WideFixedFormat, WideFloatFormat, is_wide

__all__ = [
    "FAMILIES", "dtype_of_format", "format", "format_names", "format_of_dtype", "long_double", "register_family",
]  # fmt: skip

#: The names that spell a format out, as errors and lists show them.
FAMILIES = "eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}, positN, positN_esE, takum_linearN, takumN, lnsI.F"


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
        ("binary128", WideFloatFormat(15, 112, name="binary128")),
        ("x87_extended", WideFloatFormat(15, 63, explicit_bit=True, name="x87_extended")),
    ]
)

_NOT_BLOCKS = (
    "{} is a block format, whose codes mean nothing without their scales: it stands where arrays are encoded "
    "(softnum.array, encode, decode, quantize) and in softnum.BlockDotUnit"
)

_FLOAT_NAME = re.compile(r"e(\d{1,2})m(\d{1,3})")
_FIXED_NAME = re.compile(r"(u?)q(-?\d{1,3})\.(-?\d{1,3})")
_P3109_NAME = re.compile(r"binary(\d{1,2})p(\d{1,2})([su])([ef])")


_families: list[tuple[re.Pattern, Callable]] = []


def register_family(pattern: re.Pattern, make: Callable) -> None:
    """Names that match the pattern are formats, which make() makes of the pattern's groups."""
    _families.append((pattern, make))


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
    name : str, format or dtype
        A registered name (`format_names`), ``eXmY`` (IEEE-like), ``qI.F`` or ``uqI.F`` (fixed point), IEEE P3109's
        ``binaryKpP{s,u}{e,f}``, ``positN`` or ``positN_esE``, ``takum_linearN``, ``takumN``, ``lnsI.F``, or what
        others call one of them (``softnum.formats.aliases``). NumPy's float16, float32 and float64 and the float types
        of ml_dtypes and of PyTorch stand for the formats that they are, NumPy's longdouble for the machine's. A format
        object is returned as it is.

    Returns
    -------
    FloatFormat, FixedFormat, PositFormat, TakumLinearFormat, TakumFormat or LnsFormat

    Raises
    ------
    ValueError
        If the name is unknown or its widths are out of range; the message suggests similar names.

    Examples
    --------
    >>> import softnum
    >>> softnum.format("e5m2").max
    57344.0
    >>> softnum.format("q4.4").min
    -8.0
    >>> import numpy as np
    >>> softnum.format(np.float16).name
    'binary16'
    """
    if not isinstance(name, str):
        if isinstance(name, SingleFormat):
            return name
        if isinstance(name, (np.dtype, type)) and (known := format_of_dtype(np.dtype(name))) is not None:
            return known
        if name in (np.longdouble, np.dtype(np.longdouble)) and (known := long_double()) is not None:
            return known
        if (known := _format_of_torch(name)) is not None:
            return known
        if isinstance(name, AnyFormat):
            raise ValueError(_NOT_BLOCKS.format(name))
        raise TypeError(f"expected a format or the name of one, got {name!r}")
    return _named(name)


@lru_cache(maxsize=1024)
def _named(name: str) -> Format:
    key = format_alias(name)
    if key in _REGISTRY:
        return _REGISTRY[key]
    if match := _FLOAT_NAME.fullmatch(key):
        e, m = int(match[1]), int(match[2])
        return (WideFloatFormat if is_wide(e, m) else FloatFormat)(e, m)
    if match := _FIXED_NAME.fullmatch(key):
        i, f = int(match[2]), int(match[3])
        return (WideFixedFormat if i + f > MAX_BITS else FixedFormat)(i, f, signed=not match[1])
    if match := _P3109_NAME.fullmatch(key):
        return _p3109(key, int(match[1]), int(match[2]), match[3], match[4])
    for pattern, make in _families:
        if match := pattern.fullmatch(key):
            return make(*match.groups())
    if key.startswith(("mx", "nvfp")):
        raise ValueError(_NOT_BLOCKS.format(name))
    hint = _hint(name, key)
    raise ValueError(
        f"unknown format {name!r}{f'; {hint}' if hint else ''} (registered names: {', '.join(_REGISTRY)}; or "
        f"{FAMILIES}; softnum formats --names lists the names that other libraries use)"
    )


def _hint(name: str, key: str) -> str:
    """What to write instead of a name that is no format's."""
    if (hint := refused("format", name)) is not None:
        return hint + ("?" if hint.startswith("did") else "")
    if (integer := integer_named(name)) is not None:
        bits, signed = integer
        return (
            f"it names integers: {'' if signed else 'u'}q{bits}.0 is the fixed-point format of the same values, which "
            "rounds and saturates; softnum.ops.to_integer converts to integers"
        )
    if match := re.fullmatch(r"e(\d+)m(\d+)", key):
        return "eXmY has up to two digits for the exponent's width, three for the mantissa's"
    if match := re.fullmatch(r"(binary\d+p\d+)([su]?)([ef]?)", key):
        stem, sign, domain = match.groups()
        wanted = [f"{stem}{s}{d}" for s in (sign or "su") for d in (domain or "ef")]
        return (
            f"P3109's names end in s or u (signed or not) and e or f (with infinities or finite): {', '.join(wanted)}"
        )
    close = near(key, _REGISTRY, 3)
    return f"did you mean {' or '.join(close)}?" if close else ""


_NUMPY_NAME = {"float16": "binary16", "float32": "binary32", "float64": "binary64", "bfloat16": "bfloat16"}
_ML_DTYPES_NAME = re.compile(r"float[468]_(e\dm\d(?:fn|fnuz|b11fnuz|fnu)?)")


def format_of_dtype(dtype: np.dtype) -> Format | None:
    """The format whose codes an array of this dtype holds: NumPy's floats and those of ml_dtypes; None for others.

    >>> import numpy as np
    >>> format_of_dtype(np.dtype("float32")).name, format_of_dtype(np.dtype("int8"))
    ('binary32', None)
    """
    if dtype.type.__module__ == "ml_dtypes":  # known by its name: the package is not imported for it
        match = _ML_DTYPES_NAME.fullmatch(dtype.name)
        return _REGISTRY.get(match[1] if match else _NUMPY_NAME.get(dtype.name))
    return _REGISTRY[_NUMPY_NAME[dtype.name]] if dtype.kind == "f" and dtype.name in _NUMPY_NAME else None


def long_double() -> Format | None:
    """The format that numpy.longdouble is on this machine; None where it is binary64 or a pair of numbers.

    >>> long_double() in (None, format("x87_extended"), format("binary128"))
    True
    """
    digits, bits = np.finfo(np.longdouble).nmant, 8 * np.dtype(np.longdouble).itemsize
    name = {(63, 128): "x87_extended", (112, 128): "binary128"}.get((digits, bits))
    return format(name) if name is not None and sys.byteorder == "little" else None


def _format_of_torch(dtype) -> Format | None:
    """The format of a floating-point dtype of PyTorch's, known by its name: the package is not imported for it."""
    if type(dtype).__module__ != "torch" or type(dtype).__name__ != "dtype":
        return None
    name = str(dtype).removeprefix("torch.").removesuffix("_x2")  # float4_e2m1fn_x2: two numbers a byte
    match = _ML_DTYPES_NAME.fullmatch(name)
    return _REGISTRY.get(match[1] if match else _NUMPY_NAME.get(name))


@lru_cache(maxsize=256)
def dtype_of_format(fmt: Format) -> np.dtype:
    """The NumPy dtype, one of ml_dtypes where NumPy has none, whose arrays hold the codes of this format.

    >>> dtype_of_format(format("binary16"))
    dtype('float16')
    """
    for dtype in (np.float16, np.float32, np.float64):
        if format(dtype) == fmt:
            return np.dtype(dtype)
    name = next((name for name, known in _REGISTRY.items() if known == fmt), None)
    if name is not None:
        try:
            import ml_dtypes
        except ImportError:
            raise ValueError(f"NumPy has no dtype for {fmt}, and ml_dtypes is not installed; use .codes") from None
        found = getattr(ml_dtypes, name if name == "bfloat16" else f"float{fmt.bits}_{name}", None)
        if found is not None:
            return np.dtype(found)
    raise ValueError(f"neither NumPy nor ml_dtypes has a dtype for {fmt}; use .codes")
