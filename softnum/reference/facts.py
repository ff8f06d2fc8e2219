"""What a format is to the reference: its parameters, what follows from them, and the formats that names stand for.

A format object of softnum is taken by its parameters alone (`PARAMETERS`): widths, bias, and where the special values
lie. What follows from them is derived here once more.

Sources: IEEE Std 754-2019 (binary16/32/64/128), Intel 64 and IA-32 Software Developer's Manual, volume 1, 4.2.2 and
8.2.2 (the 80-bit format of x87), OCP 8-bit Floating Point Specification (OFP8) r1.0 (e5m2, e4m3fn),
OCP Microscaling Formats (MX) v1.0 (e8m0fnu, e3m2fn, e2m3fn, e2m1fn, the block formats), Agrawal et al. 2019
(dlfloat16), Noune et al. 2022 (the fnuz formats), IEEE P3109 interim report (binaryKpP...), arXiv 2509.25149 (nvfp4),
Standard for Posit Arithmetic (2022), arXiv 2404.18603 and 2408.10594 (takums).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

_MOST_BITS = 128
_MOST_EXPONENT_BITS = 15
_MOST_OTHER_BITS, _MOST_OTHER_PRECISION = 64, 62  # in formats that are not IEEE's
_LEAST_TAPERED, _MOST_TAPERED, _MOST_ES = 3, 32, 5


@dataclass(frozen=True)
class FloatFacts:
    """A binary floating-point format. A code holds the sign (if ``signed``), the exponent field and the fraction.

    ``nan_codes``: "ieee" (exponent field all ones, fraction not zero), "all_ones" (the last magnitude alone),
    "negative_zero" (in the place of -0) or "none". ``infinities``: whether there are infinities: exponent field all
    ones and fraction zero with "ieee", else the last magnitude that is not NaN. ``negative_zero``: whether -0 is a
    value. ``has_zero``: whether code 0 is zero. ``lowest_binade``: what exponent field 0 means, "subnormal" or "normal"
    numbers, or "zero" alone. ``saturating``: what is too large becomes the largest value where "infinity" would give
    NaN. ``explicit_bit``: whether a code also has the significand's first bit, between exponent and fraction (x87).
    Formats compare by all of these; the name does not count.

    Magnitude codes (`max_code`, `inf_code`, ...) are those without that bit, where a number's neighbour is one more.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool
    nan_codes: str
    infinities: bool
    negative_zero: bool
    has_zero: bool
    lowest_binade: str
    saturating: bool
    explicit_bit: bool
    name: str = field(compare=False)

    kind = "float"

    def __post_init__(self) -> None:
        most = _MOST_EXPONENT_BITS + (self.mantissa_bits == 0)
        if not 1 <= self.exponent_bits <= most or self.mantissa_bits < 0:
            raise ValueError(f"{self}: a float has 1..{_MOST_EXPONENT_BITS} exponent bits and 0 or more fraction bits")
        ieee = self.signed and self.nan_codes == "ieee"
        most = _MOST_BITS if ieee else _MOST_OTHER_BITS
        if self.bits > most or (self.mantissa_bits >= _MOST_OTHER_PRECISION and not ieee):
            raise ValueError(
                f"{self}: a code has at most {most} bits, got {self.bits}, and in other formats than IEEE's a "
                f"precision of at most {_MOST_OTHER_PRECISION}"
            )
        if self.nan_codes == "ieee" and self.mantissa_bits == 0:
            raise ValueError(f"{self}: without a fraction there is no code for NaN beside infinity's")
        if self.max_code < self.least_code:
            raise ValueError(f"{self}: no finite value but zero")

    def __str__(self) -> str:
        return self.name

    @cached_property
    def bits(self) -> int:
        """Width of a code."""
        return self.signed + self.exponent_bits + self.explicit_bit + self.mantissa_bits

    @cached_property
    def emin(self) -> int:
        """Exponent of the lowest binade of normal numbers: exponent field 0 if it holds such, else 1."""
        return -self.bias if self.lowest_binade == "normal" else 1 - self.bias

    @cached_property
    def _finite(self) -> int:
        """How many magnitude codes are finite: they come first, then the infinity, then NaNs."""
        if self.nan_codes == "ieee":
            return ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        magnitudes = 1 << (self.exponent_bits + self.mantissa_bits)
        return magnitudes - self.infinities - (self.nan_codes == "all_ones")

    @cached_property
    def max_code(self) -> int:
        """Magnitude code of the largest finite value."""
        return self._finite - 1

    @cached_property
    def inf_code(self) -> int | None:
        """Magnitude code of infinity, or None."""
        return self._finite if self.infinities else None

    @cached_property
    def nan_code(self) -> int | None:
        """Code of the canonical NaN, or None: positive, of "ieee" NaNs the one with the quiet bit alone."""
        if self.nan_codes == "ieee":
            return self._finite | 1 << (self.mantissa_bits - 1)
        if self.nan_codes == "all_ones":
            return (1 << (self.exponent_bits + self.mantissa_bits)) - 1
        return 1 << (self.bits - 1) if self.nan_codes == "negative_zero" else None

    @cached_property
    def normal_code(self) -> int:
        """Code of the smallest positive normal number, also of one beyond the largest value."""
        if self.lowest_binade == "normal":
            return 1 if self.has_zero else 0
        return 1 << self.mantissa_bits

    @cached_property
    def least_code(self) -> int:
        """Code of the smallest positive value."""
        return 1 if self.lowest_binade == "subnormal" else self.normal_code

    @cached_property
    def smallest_normal(self) -> Fraction:
        """The smallest positive normal number."""
        binade, fraction = divmod(self.normal_code, 1 << self.mantissa_bits)
        binade -= self.lowest_binade != "normal"
        return Fraction(2) ** (self.emin + binade) * (1 + Fraction(fraction, 1 << self.mantissa_bits))

    @cached_property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return self.nan_codes != "none"

    @property
    def p3109(self) -> bool:
        """Whether it is a format of IEEE P3109: one NaN, in -0's place or the last; infinities, or saturation."""
        one_nan = self.nan_codes == ("negative_zero" if self.signed else "all_ones")
        return one_nan and (self.infinities or self.saturating)

    @property
    def silent(self) -> bool:
        """Whether its results raise no flags."""
        return self.p3109


@dataclass(frozen=True)
class FixedFacts:
    """A fixed-point format: an integer, in two's complement if ``signed``, times ``2**-fraction_bits``."""

    integer_bits: int
    fraction_bits: int
    signed: bool

    kind = "fixed"
    has_nan = infinities = negative_zero = saturating = p3109 = silent = explicit_bit = False
    has_zero = True
    least_code = 1

    def __post_init__(self) -> None:
        fewest = 2 if self.signed else 1
        if not fewest <= self.bits <= _MOST_BITS:
            signed = "signed" if self.signed else "unsigned"
            raise ValueError(f"{self}: a code of {signed} fixed point has {fewest}..{_MOST_BITS} bits")
        if max(self.integer_bits, self.fraction_bits) > _MOST_BITS:
            raise ValueError(f"{self}: at most {_MOST_BITS} bits lie before the point, and behind it")

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}q{self.integer_bits}.{self.fraction_bits}"

    @cached_property
    def bits(self) -> int:
        """Width of a code."""
        return self.integer_bits + self.fraction_bits

    @cached_property
    def lowest(self) -> int:
        """The lowest integer that a code holds."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @cached_property
    def max_code(self) -> int:
        """The highest integer that a code holds, and its code."""
        return self.lowest + (1 << self.bits) - 1


@dataclass(frozen=True)
class TaperedFacts:
    """A posit (``kind`` "posit", with `es` bits of exponent) or a linear takum ("takum_linear", es 0): a bit string in
    two's complement, whose one NaN, NaR, is the sign bit alone. Results raise no flags, as those of P3109."""

    kind: str
    bits: int
    es: int

    has_nan = has_zero = signed = p3109 = silent = True
    infinities = negative_zero = saturating = explicit_bit = False
    least_code = 1
    nan_codes = "negative_zero"  # where NaR lies

    def __post_init__(self) -> None:
        if not _LEAST_TAPERED <= self.bits <= _MOST_TAPERED or not 0 <= self.es <= _MOST_ES:
            raise ValueError(f"{self}: a code has {_LEAST_TAPERED}..{_MOST_TAPERED} bits, es is 0..{_MOST_ES}")

    def __str__(self) -> str:
        return f"{self.kind}{self.bits}" + (f"_es{self.es}" if self.kind == "posit" and self.es != 2 else "")

    @cached_property
    def nan_code(self) -> int:
        """The code of NaR."""
        return 1 << (self.bits - 1)

    @cached_property
    def max_code(self) -> int:
        """The code of the largest value."""
        return self.nan_code - 1


@dataclass(frozen=True)
class BlockFacts:
    """A block format: ``block_size`` elements (None: all of an axis) share a scale; a value is element times scale.

    ``tensor_scale``: the format of one more factor, of a whole array, or None. The name does not count.
    """

    element: Format
    scale: Format
    block_size: int | None
    tensor_scale: Format | None
    name: str = field(compare=False)

    kind = "block"

    def __str__(self) -> str:
        return self.name


Format = FloatFacts | FixedFacts | TaperedFacts

#: What is read of a format object, by its kind.
PARAMETERS = {
    "float": (
        "exponent_bits", "mantissa_bits", "bias", "signed", "nan_codes", "infinities", "negative_zero", "has_zero",
        "lowest_binade", "saturating", "explicit_bit", "name",
    ),
    "fixed": ("integer_bits", "fraction_bits", "signed"),
    "posit": ("bits", "es"),
    "takum_linear": ("bits",),
    "block": ("element", "scale", "block_size", "tensor_scale", "name"),
}  # fmt: skip

_float = lru_cache(maxsize=1024)(FloatFacts)
_fixed = lru_cache(maxsize=1024)(FixedFacts)


@lru_cache(maxsize=1024)
def _tapered(kind: str, bits: int, es: int = 0) -> TaperedFacts:
    return TaperedFacts(kind, bits, es)


def _ieee(name: str, exponent_bits: int, mantissa_bits: int, **others) -> FloatFacts:
    """A float as IEEE 754 has it, but for what is given."""
    facts = {
        "bias": (1 << exponent_bits >> 1) - 1, "signed": True, "nan_codes": "ieee", "infinities": True,
        "negative_zero": True, "has_zero": True, "lowest_binade": "subnormal", "saturating": False,
        "explicit_bit": False, **others,
    }  # fmt: skip
    return _float(exponent_bits, mantissa_bits, *(facts[p] for p in PARAMETERS["float"][2:-1]), name)


def _p3109(name: str, k: int, p: int, signed: bool, extended: bool) -> FloatFacts:
    """The P3109 format of k bits and precision p, with infinities if it is extended, saturating if it is not."""
    if not 3 <= k <= _MOST_OTHER_BITS or not 1 <= p <= k - signed:
        raise ValueError(f"{name}: P3109 needs 3 <= K <= {_MOST_OTHER_BITS} and 1 <= P <= K{' - 1' if signed else ''}")
    exponent_bits = k - p + 1 - signed
    return _ieee(
        name, exponent_bits, p - 1, bias=1 << exponent_bits >> 1, signed=signed,
        nan_codes="negative_zero" if signed else "all_ones", infinities=extended, negative_zero=False,
        saturating=not extended,
    )  # fmt: skip


_FN = {"nan_codes": "all_ones", "infinities": False}
_FNUZ = {"nan_codes": "negative_zero", "infinities": False, "negative_zero": False}
_FINITE = {"nan_codes": "none", "infinities": False}

NAMED = {
    fmt.name: fmt
    for fmt in (
        _ieee("binary16", 5, 10),
        _ieee("binary32", 8, 23),
        _ieee("binary64", 11, 52),
        _ieee("bfloat16", 8, 7),
        _ieee("tf32", 8, 10),
        _ieee("e5m2", 5, 2),
        _ieee("e4m3", 4, 3),
        _ieee("e3m4", 3, 4),
        _ieee("e4m3fn", 4, 3, **_FN),
        _ieee("e4m3fnuz", 4, 3, bias=8, **_FNUZ),
        _ieee("e5m2fnuz", 5, 2, bias=16, **_FNUZ),
        _ieee("e4m3b11fnuz", 4, 3, bias=11, **_FNUZ),
        _ieee("e8m0fnu", 8, 0, signed=False, negative_zero=False, has_zero=False, lowest_binade="normal", **_FN),
        _ieee("e3m2fn", 3, 2, **_FINITE),
        _ieee("e2m3fn", 2, 3, **_FINITE),
        _ieee("e2m1fn", 2, 1, **_FINITE),
        _ieee("dlfloat16", 6, 9, lowest_binade="normal", **_FN),
        _ieee("binary128", 15, 112),
        _ieee("x87_extended", 15, 63, explicit_bit=True),
    )
}
BLOCKS = {
    name: BlockFacts(element, NAMED["e8m0fnu"], 32, None, name)
    for name, element in (
        ("mxfp8_e4m3", NAMED["e4m3fn"]),
        ("mxfp8_e5m2", NAMED["e5m2"]),
        ("mxfp6_e3m2", NAMED["e3m2fn"]),
        ("mxfp6_e2m3", NAMED["e2m3fn"]),
        ("mxfp4_e2m1", NAMED["e2m1fn"]),
        ("mxint8", _fixed(2, 6, True)),
    )
}
BLOCKS["mxfp4"] = BLOCKS["mxfp4_e2m1"]
BLOCKS["nvfp4"] = BlockFacts(NAMED["e2m1fn"], NAMED["e4m3fn"], 16, NAMED["binary32"], "nvfp4")

# types of NumPy and of ml_dtypes by their names; the others of ml_dtypes hold the format's: float8_e5m2
_DTYPES = {
    "float16": "binary16", "float32": "binary32", "float64": "binary64", "float": "binary64", "bfloat16": "bfloat16",
}  # fmt: skip


def _of_dtype(dtype) -> FloatFacts | None:
    """The format of the numbers of a NumPy type, by the type's name; None of what is no such type."""
    name = dtype.__name__ if isinstance(dtype, type) else getattr(dtype, "name", None)
    if not isinstance(name, str):
        return None
    match = re.fullmatch(r"float[468]_(\w+)", name)
    return NAMED.get(match[1] if match else _DTYPES.get(name))


@lru_cache(maxsize=1024)
def _of_name(name: str) -> Format:
    key = name.strip().lower()
    if key in NAMED:
        return NAMED[key]
    if match := re.fullmatch(r"e(\d{1,2})m(\d{1,3})", key):
        e, m = map(int, match.groups())
        return _ieee(f"e{e}m{m}", e, m)
    if match := re.fullmatch(r"(u?)q(-?\d{1,3})\.(-?\d{1,3})", key):
        return _fixed(int(match[2]), int(match[3]), not match[1])
    if match := re.fullmatch(r"binary(\d{1,2})p(\d{1,2})([su])([ef])", key):
        return _p3109(key, int(match[1]), int(match[2]), match[3] == "s", match[4] == "e")
    if match := re.fullmatch(r"posit(\d{1,2})(?:_es(\d))?", key):
        return _tapered("posit", int(match[1]), 2 if match[2] is None else int(match[2]))
    if match := re.fullmatch(r"takum_linear(\d{1,2})", key):
        return _tapered("takum_linear", int(match[1]))
    families = "eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}, positN, positN_esE, takum_linearN"
    raise ValueError(f"unknown format {name!r} (known: {', '.join(NAMED)}; or {families})")


def format_of(fmt: Any) -> Format:
    """The facts of a format.

    Parameters
    ----------
    fmt : str, format or dtype
        A name: one of `NAMED`, ``eXmY`` (as IEEE has them), ``qI.F`` or ``uqI.F`` (fixed point), P3109's
        ``binaryKpP{s,u}{e,f}``, a posit or a linear takum. An object with the `PARAMETERS` of its ``kind``. A float
        type of NumPy or ml_dtypes.

    Raises
    ------
    ValueError
        If the name is unknown, its widths are out of range, or it is a block format.
    TypeError
        For anything else.

    Examples
    --------
    >>> from softnum.reference.facts import format_of
    >>> f = format_of("e4m3fn")
    >>> f.bits, f.emin, f.max_code, f.nan_code
    (8, -6, 126, 127)
    """
    if isinstance(fmt, Format):
        return fmt
    if isinstance(fmt, str):
        return _of_name(fmt)
    kind = getattr(fmt, "kind", None)
    if kind == "float":
        return _float(*(getattr(fmt, p) for p in PARAMETERS["float"]))
    if kind == "fixed":
        return _fixed(*(getattr(fmt, p) for p in PARAMETERS["fixed"]))
    if kind in ("posit", "takum_linear"):
        return _tapered(kind, *(getattr(fmt, p) for p in PARAMETERS[kind]))
    if kind == "block":
        raise ValueError(f"{fmt} is a block format, whose codes mean nothing without their scales")
    found = _of_dtype(fmt)
    if found is None:
        raise TypeError(f"a format or the name of one is needed, got {fmt!r}")
    return found


def block_format_of(fmt: Any) -> BlockFacts:
    """The facts of a block format: of an object with the `PARAMETERS` of one, or of a name of `BLOCKS`.

    >>> from softnum.reference.facts import block_format_of
    >>> str(block_format_of("nvfp4").scale), block_format_of("mxfp4").block_size
    ('e4m3fn', 32)
    """
    if isinstance(fmt, BlockFacts):
        return fmt
    if isinstance(fmt, str):
        key = fmt.strip().lower()
        if key not in BLOCKS:
            raise ValueError(f"unknown block format {fmt!r} (known: {', '.join(BLOCKS)})")
        return BLOCKS[key]
    element, scale, size, tensor_scale, name = (getattr(fmt, p) for p in PARAMETERS["block"])
    tensor_scale = None if tensor_scale is None else format_of(tensor_scale)
    return BlockFacts(format_of(element), format_of(scale), size, tensor_scale, name)
