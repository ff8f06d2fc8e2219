"""Number formats: what a code means, stated as independent facts.

A format says how many bits a code has and which value each code stands for. It holds no arithmetic: rounding and
overflow are arguments of an operation, never properties of a format.

Sources: IEEE Std 754-2019 (binary16/32/64), OCP 8-bit Floating Point Specification (OFP8) r1.0 (e5m2, e4m3fn),
OCP Microscaling Formats (MX) r1.0 (e8m0fnu, e3m2fn, e2m3fn, e2m1fn), Agrawal et al. 2019 (dlfloat16),
Noune et al. 2022 (the fnuz formats), IEEE P3109 interim report (binaryKpP...).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from softnum.formats.base import SingleFormat
from softnum.formats.codes import FixedCodes, FloatCodes
from softnum.formats.modes import FIXED_OVERFLOW, FLOAT_OVERFLOW, P3109_OVERFLOW
from softnum.runtime.plain import plain

__all__ = ["FixedFormat", "FloatFormat", "Format", "exact_number"]

MAX_EXPONENT_BITS = 15  # one more where there is no fraction: P3109's binary16p1ue
MAX_PRECISION = 62
MAX_BITS = 64

# specials= names a usual set of the independent facts: (nan_codes, infinities, negative_zero when signed)
_SPECIALS = {
    "ieee": ("ieee", True, True),
    "fn": ("all_ones", False, True),
    "fnuz": ("negative_zero", False, False),
    "p3109": ("negative_zero", True, False),
    "none": ("none", False, True),
}
_NAN_CODES = ("ieee", "all_ones", "negative_zero", "none")
_LOWEST_BINADES = ("subnormal", "normal", "zero")


def _storage_dtype(bits: int) -> np.dtype:
    for width in (8, 16, 32, 64):
        if bits <= width:
            return np.dtype(f"uint{width}")
    raise ValueError(f"no storage type holds {bits} bits (limit {MAX_BITS})")


@plain
def exact_number(value: Fraction) -> float | Fraction:
    """The value as a float where binary64 holds it exactly, else as the Fraction it is."""
    try:
        as_float = float(value)
    except OverflowError:
        return value
    return as_float if Fraction(as_float) == value else value


def _check_int(what: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{what} must lie in {low}..{high}, got {value}")
    return int(value)


@dataclass(frozen=True, init=False, repr=False)
class FloatFormat(FloatCodes, SingleFormat, saved_as="float"):
    """A binary floating-point format.

    A code holds, from its most significant bit, the sign (if ``signed``), ``exponent_bits`` of biased exponent and
    ``mantissa_bits`` of fraction. Formats compare and hash by these parameters; the name is ignored.

    Parameters
    ----------
    exponent_bits : int
        Width of the exponent field, 1 to 15 bits, or 16 without a fraction.
    mantissa_bits : int
        Width of the stored fraction in bits; the precision is one more, at most 62.
    bias : int, optional
        Exponent bias. Default ``2**(exponent_bits-1) - 1``, and ``2**(exponent_bits-1)`` for "fnuz" and "p3109".
    signed : bool
        Whether a sign bit leads the code.
    subnormals : bool
        False means ``lowest_binade="zero"``.
    specials : {"ieee", "fn", "fnuz", "p3109", "none"}
        Predefined sets of the parameters below: "ieee" has infinities and NaNs; in "fn" only all-ones is NaN and there
        is no infinity (OCP E4M3); "fnuz" keeps its one NaN in -0's code, without infinity or -0; "p3109" likewise, with
        the infinities in the largest codes; in "none" every code is finite (OCP FP6/FP4).
    name : str, optional
        The name of the format; by default like ``"e5m2"``.
    nan_codes : {"ieee", "all_ones", "negative_zero", "none"}, optional
        Which codes are NaNs. "ieee": the highest exponent with a nonzero fraction.
    infinities : bool, optional
        Whether there are infinities ("ieee": highest exponent, fraction 0; else the largest magnitudes not NaN).
    negative_zero : bool, optional
        Whether the format has -0.
    has_zero : bool, optional
        Whether code 0 is the value 0 (else it is the smallest normal, as in e8m0fnu).
    lowest_binade : {"subnormal", "normal", "zero"}, optional
        What exponent field 0 means: subnormal numbers; normal ones (with code 0 the zero, if ``has_zero``: dlfloat16);
        or zero only, so that results below the smallest normal round to it or to 0.
    saturating : bool
        Whether overflow saturates under every overflow rule, also under "infinity", which would otherwise give NaN
        (P3109's finite formats).

    Raises
    ------
    ValueError
        If a width is out of range or parameters contradict each other.

    Examples
    --------
    >>> from softnum import FloatFormat
    >>> f = FloatFormat(4, 3, specials="fn")
    >>> f.bits, f.max, f.smallest_subnormal
    (8, 448.0, 0.001953125)
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
    name: str = field(compare=False)

    kind = "float"
    has_fields = True
    lost = "NaN"  # what has no code where there is no NaN

    def __init__(
        self,
        exponent_bits: int,
        mantissa_bits: int,
        *,
        bias: int | None = None,
        signed: bool = True,
        subnormals: bool = True,
        specials: str = "ieee",
        name: str | None = None,
        nan_codes: str | None = None,
        infinities: bool | None = None,
        negative_zero: bool | None = None,
        has_zero: bool = True,
        lowest_binade: str | None = None,
        saturating: bool = False,
    ) -> None:
        m = _check_int("mantissa_bits", mantissa_bits, 0, MAX_PRECISION - 1)
        e = _check_int("exponent_bits", exponent_bits, 1, MAX_EXPONENT_BITS + (m == 0))
        if e + m + bool(signed) > MAX_BITS:
            raise ValueError(f"a code has at most {MAX_BITS} bits, got {e + m + bool(signed)}")
        if specials not in _SPECIALS:
            raise ValueError(f"specials must be one of {', '.join(_SPECIALS)}, got {specials!r}")
        default_nan, default_inf, default_negative_zero = _SPECIALS[specials]
        if not signed and default_nan == "negative_zero":
            default_nan = "all_ones"
        nan_codes = default_nan if nan_codes is None else nan_codes
        if nan_codes not in _NAN_CODES:
            raise ValueError(f"nan_codes must be one of {', '.join(_NAN_CODES)}, got {nan_codes!r}")
        infinities = default_inf if infinities is None else bool(infinities)
        negative_zero = (default_negative_zero and bool(signed)) if negative_zero is None else bool(negative_zero)
        if lowest_binade is None:
            lowest_binade = "subnormal" if subnormals else "zero"
        elif not subnormals and lowest_binade == "subnormal":
            raise ValueError("subnormals=False contradicts lowest_binade='subnormal'")
        if lowest_binade not in _LOWEST_BINADES:
            raise ValueError(f"lowest_binade must be one of {', '.join(_LOWEST_BINADES)}, got {lowest_binade!r}")
        if nan_codes == "ieee" and m == 0:
            raise ValueError(
                "nan_codes='ieee' with mantissa_bits=0 leaves no code for NaN; use specials='fn' or 'none'"
            )
        if nan_codes == "ieee" and not infinities:
            raise ValueError("nan_codes='ieee' implies infinities; for NaN without infinity use specials='fn'")
        if nan_codes == "negative_zero" and (negative_zero or not signed):
            raise ValueError("nan_codes='negative_zero' needs a signed format without -0")
        if negative_zero and not signed:
            raise ValueError("an unsigned format has no -0")
        if negative_zero and not has_zero:
            raise ValueError("a format without zero has no -0")
        if not has_zero and lowest_binade != "normal":
            raise ValueError("has_zero=False requires lowest_binade='normal'")
        if not has_zero and signed:
            raise ValueError("has_zero=False requires signed=False")
        if saturating and infinities:
            raise ValueError("saturating=True requires a format without infinities")
        if bias is None:
            bias = 2 ** (e - 1) - (0 if specials in ("fnuz", "p3109") else 1)
        bias = _check_int("bias", bias, -(2**16), 2**16)
        facts = dict(
            exponent_bits=e, mantissa_bits=m, bias=bias, signed=bool(signed), nan_codes=nan_codes,
            infinities=infinities, negative_zero=negative_zero, has_zero=bool(has_zero), lowest_binade=lowest_binade,
            saturating=bool(saturating),
        )  # fmt: skip
        for key, value in facts.items():
            object.__setattr__(self, key, value)
        least = {"subnormal": 1, "normal": 1 if has_zero else 0, "zero": 1 << m}[lowest_binade]
        if self.max_code < least:
            raise ValueError(f"exponent_bits={e}, mantissa_bits={m} leaves no finite value except zero")
        object.__setattr__(self, "name", name or self._default_name())

    def _default_name(self) -> str:
        plain = FloatFormat.__new__(FloatFormat)
        for key, value in _ieee_facts(self.exponent_bits, self.mantissa_bits).items():
            object.__setattr__(plain, key, value)
        stem = f"e{self.exponent_bits}m{self.mantissa_bits}"
        return stem if self == plain else stem + "_custom"

    # -- where the codes lie ------------------------------------------------------------------------------------------
    @cached_property
    def bits(self) -> int:
        """Width of a code in bits."""
        return self.exponent_bits + self.mantissa_bits + self.signed

    @property
    def precision(self) -> int:
        """Bits of a normal number's significand, the hidden one included."""
        return self.mantissa_bits + 1

    @property
    def _top_code(self) -> int:
        return (1 << (self.exponent_bits + self.mantissa_bits)) - 1

    @property
    def inf_code(self) -> int | None:
        """Magnitude code of infinity, or None."""
        if not self.infinities:
            return None
        if self.nan_codes == "ieee":
            return ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        return self._top_code - (self.nan_codes == "all_ones")

    @property
    def max_code(self) -> int:
        """Magnitude code of the largest finite value."""
        if self.infinities:
            return self.inf_code - 1
        return self._top_code - (self.nan_codes == "all_ones")

    @property
    def nan_code(self) -> int | None:
        """The canonical NaN's code (positive, quiet bit only), or None."""
        return {
            "ieee": (self._top_code + 1) - (1 << self.mantissa_bits) + (1 << max(self.mantissa_bits - 1, 0)),
            "all_ones": self._top_code,
            "negative_zero": 1 << (self.bits - 1),
            "none": None,
        }[self.nan_codes]

    # -- values -------------------------------------------------------------------------------------------------------
    @property
    def emin(self) -> int:
        """Exponent of the lowest binade of normal numbers."""
        return (0 if self.lowest_binade == "normal" else 1) - self.bias

    @property
    def emax(self) -> int:
        """Exponent of the largest finite value."""
        return (self.max_code >> self.mantissa_bits) - self.bias

    @property
    def root_bits(self) -> int:
        """Most bits that a square root has before the point."""
        return self.emax // 2 + 1

    wrap_bits = None  # nothing wraps around

    @property
    def span(self) -> tuple[int, int]:
        """(last, top): all values are multiples of ``2**last`` and below ``2**top`` in magnitude."""
        return self.emin - self.mantissa_bits, self.emax + 1

    @property
    def powers_of_two(self) -> bool:
        """Whether significands are one bit: all values but zero are powers of two."""
        return self.mantissa_bits == 0

    unmatched_code = None  # every value has its negative, or none has

    def last_place(self, binade: Any) -> Any:
        """The exponent of the last place of numbers from ``2**binade`` on; an integer, or an array of them."""
        return np.maximum(binade, self.emin) - self.mantissa_bits

    def digits_at(self, exponent: int) -> int:
        """Significant bits in the binade of the largest value, whose exponent this is."""
        return self.mantissa_bits + 1

    def significand_text(self, significand: int, last: int, below: bool) -> str:
        """A significand in binary with its point, and its power of two; below: of a number under the smallest normal
        one in a format without subnormals."""
        m = 0 if below else self.mantissa_bits
        text = f"{significand:0{m + 1}b}"
        return f"{text[:1]}{'.' if m else ''}{text[1:]} * 2^{last + m}"

    # -- bounds --------------------------------------------------------------------------------------------------------
    @cached_property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        return self.precision, self.emin - self.mantissa_bits, self.emax

    @cached_property
    def max(self) -> float | Fraction:
        """Largest finite value: a float where binary64 holds it, else a Fraction."""
        field, fraction = divmod(self.max_code, 1 << self.mantissa_bits)
        if field or self.lowest_binade == "normal":
            fraction += 1 << self.mantissa_bits
        exponent = max(field, 0 if self.lowest_binade == "normal" else 1) - self.bias
        return exact_number(fraction * Fraction(2) ** (exponent - self.mantissa_bits))

    @property
    def min(self) -> float | Fraction:
        """Lowest finite value: -max, or the least value of an unsigned format."""
        if self.signed:
            return -self.max
        return 0.0 if self.has_zero else self.smallest_normal

    @property
    def smallest_normal(self) -> float | Fraction:
        """Smallest positive normal value; if all are subnormal (one exponent bit), the power of two where they end."""
        first = 1 if self.lowest_binade == "normal" and self.has_zero and self.mantissa_bits else 0
        extra = 1 if self.lowest_binade == "normal" and self.has_zero and not self.mantissa_bits else 0
        significand = (1 << self.mantissa_bits) + first
        return exact_number(significand * Fraction(2) ** (self.emin + extra - self.mantissa_bits))

    @property
    def smallest_subnormal(self) -> float | Fraction:
        """Smallest positive value; the smallest normal where there are no subnormals."""
        if self.lowest_binade != "subnormal" or self.mantissa_bits == 0:
            return self.smallest_normal
        return exact_number(Fraction(2) ** (self.emin - self.mantissa_bits))

    @property
    def epsilon(self) -> float | Fraction:
        """Distance from 1 to the next larger value of this precision: ``2**-mantissa_bits``."""
        return exact_number(Fraction(2) ** -self.mantissa_bits)

    @cached_property
    def storage_dtype(self) -> np.dtype:
        """The NumPy type of an array of codes: the smallest unsigned integer that holds one."""
        return _storage_dtype(self.bits)

    @property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return self.nan_codes != "none"

    @property
    def p3109(self) -> bool:
        """Whether it is a format of IEEE P3109: results raise no flags, x / 0 is NaN, NaN comes first in order."""
        single = "negative_zero" if self.signed else "all_ones"
        return self.nan_codes == single and (self.infinities or self.saturating)

    @property
    def overflow_rules(self) -> tuple[str, ...]:
        """The overflow rules of its results; the first is the default."""
        return P3109_OVERFLOW if self.p3109 and self.infinities else FLOAT_OVERFLOW

    # -- beside other formats, and in records --------------------------------------------------------------------------
    def contains(self, other: object) -> bool | None:
        """Whether every finite value of another format is a value of this one; None if undecided by its parameters."""
        if self == other or not isinstance(other, FloatFormat):
            return super().contains(other)
        grid = self.emin - self.mantissa_bits <= other.emin - other.mantissa_bits
        whole = self.lowest_binade == "subnormal"
        return (whole or None) and self.precision >= other.precision and self.max >= other.max and grid

    def to_data(self) -> dict[str, Any]:
        """All parameters of the format, as plain data."""
        return {"kind": self.kind, **asdict(self)}

    def __repr__(self) -> str:
        parts = [str(self.exponent_bits), str(self.mantissa_bits)]
        specials = next(
            (
                key
                for key, (nan, inf, nz) in _SPECIALS.items()
                if (nan, inf, nz and self.signed) == (self.nan_codes, self.infinities, self.negative_zero)
            ),
            None,
        )
        probe = specials or "ieee"
        half = 2 ** (self.exponent_bits - 1)
        if self.bias != half - (0 if probe in ("fnuz", "p3109") else 1):
            parts.append(f"bias={self.bias}")
        if not self.signed:
            parts.append("signed=False")
        if specials is None:
            parts += [
                f"nan_codes={self.nan_codes!r}", f"infinities={self.infinities}", f"negative_zero={self.negative_zero}",
            ]  # fmt: skip
        elif specials != "ieee":
            parts.append(f"specials={specials!r}")
        if not self.has_zero:
            parts.append("has_zero=False")
        if self.lowest_binade != "subnormal":
            parts.append(f"lowest_binade={self.lowest_binade!r}")
        if self.saturating:
            parts.append("saturating=True")
        parts.append(f"name={self.name!r}")
        return f"FloatFormat({', '.join(parts)})"

    def __str__(self) -> str:
        return self.name

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, f.name) for f in fields(self) if f.compare))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {f.name: getattr(self, f.name) for f in fields(self) if not f.name.endswith("t_bits")}
        facts.pop("mantissa_bits")
        return _rebuild_float, (self.exponent_bits, self.mantissa_bits, tuple(facts.items()))


def _rebuild_float(exponent_bits: int, mantissa_bits: int, facts: tuple) -> FloatFormat:
    return FloatFormat(exponent_bits, mantissa_bits, **dict(facts))


def _ieee_facts(exponent_bits: int, mantissa_bits: int) -> dict:
    return dict(
        exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, bias=2 ** (exponent_bits - 1) - 1, signed=True,
        nan_codes="ieee", infinities=True, negative_zero=True, has_zero=True, lowest_binade="subnormal",
        saturating=False,
    )  # fmt: skip


@dataclass(frozen=True, init=False, repr=False)
class FixedFormat(FixedCodes, SingleFormat, saved_as="fixed"):
    """A fixed-point format: an integer (two's complement if signed) times ``2**-fraction_bits``.

    Parameters
    ----------
    integer_bits : int
        Bits before the point, including the sign bit (-63 to 64). Negative: this many places after the point are
        above the most significant bit.
    fraction_bits : int
        Bits after the point (-63 to 64). Negative: this many places before the point are below the least significant
        bit. ``integer_bits + fraction_bits`` is the width of a code, 1 to 64.
    signed : bool
        Two's complement if true.

    Raises
    ------
    ValueError
        If a width is out of range.

    Examples
    --------
    >>> from softnum import FixedFormat
    >>> f = FixedFormat(4, 4)
    >>> f.name, f.bits, f.min, f.max, f.epsilon
    ('q4.4', 8, -8.0, 7.9375, 0.0625)
    >>> FixedFormat(10, -2).epsilon, FixedFormat(-2, 10).min  # steps of 4; eight bits behind 0.00
    (4.0, -0.125)
    """

    integer_bits: int
    fraction_bits: int
    signed: bool

    kind = "fixed"
    lost = "NaN or infinite"  # what has no code
    overflow_rules = FIXED_OVERFLOW
    has_nan = False
    infinities = False
    negative_zero = False
    has_zero = True
    saturating = False
    p3109 = False
    exponent_bits = 0
    precision = None  # a number has as many bits as its size needs
    lowest_binade = "subnormal"  # the values go on evenly down to zero
    powers_of_two = False

    def __init__(self, integer_bits: int, fraction_bits: int, *, signed: bool = True) -> None:
        i = _check_int("integer_bits", integer_bits, 1 - MAX_BITS, MAX_BITS)
        f = _check_int("fraction_bits", fraction_bits, 1 - MAX_BITS, MAX_BITS)
        if not 1 <= i + f <= MAX_BITS:
            raise ValueError(f"integer_bits + fraction_bits must lie in 1..{MAX_BITS}, got {i + f}")
        if signed and i + f < 2:
            raise ValueError("a signed fixed-point format needs at least 2 bits")
        object.__setattr__(self, "integer_bits", i)
        object.__setattr__(self, "fraction_bits", f)
        object.__setattr__(self, "signed", bool(signed))

    @property
    def name(self) -> str:
        """``qI.F``, or ``uqI.F`` if unsigned."""
        return f"{'' if self.signed else 'u'}q{self.integer_bits}.{self.fraction_bits}"

    @cached_property
    def bits(self) -> int:
        """Width of a code in bits."""
        return self.integer_bits + self.fraction_bits

    @cached_property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        return self.bits, -self.fraction_bits, self.integer_bits - (not self.signed)

    @property
    def spare_bits(self) -> int:
        """1 if signed: the lowest value is a power of two, the others have a bit less than the code."""
        return int(self.signed)

    @property
    def root_bits(self) -> int:
        """Most bits that a square root has before the point."""
        return (self.integer_bits - self.signed + 1) // 2

    @property
    def wrap_bits(self) -> int:
        """Bits before the point, the sign bit included: those above are dropped where a result wraps around."""
        return self.integer_bits

    @property
    def span(self) -> tuple[int, int]:
        """(last, top): all values are multiples of ``2**last`` and at most ``2**top`` in magnitude."""
        return -self.fraction_bits, self.integer_bits - int(self.signed)

    @property
    def unmatched_code(self) -> int | None:
        """The code of the lowest value, whose negative the format lacks; None if unsigned."""
        return 1 << (self.bits - 1) if self.signed else None

    def last_place(self, binade: Any) -> Any:
        """The exponent of the last place of numbers from ``2**binade`` on; an integer, or an array of them."""
        return np.full(np.shape(binade), -self.fraction_bits)

    def digits_at(self, exponent: int) -> int:
        """Significant bits in the binade of the largest value, whose exponent this is."""
        return self.fraction_bits + exponent + 1

    def significand_text(self, significand: int, last: int, below: bool) -> str:
        """A magnitude in binary with its point."""
        text = f"{significand:0{max(self.bits - self.signed, 1 - last)}b}"
        return f"{text[: len(text) + last]}.{text[len(text) + last :]}" if last else text

    # -- bounds --------------------------------------------------------------------------------------------------------
    @property
    def max(self) -> float | Fraction:
        """Largest value: a float where binary64 holds it, else a Fraction."""
        return exact_number(((1 << (self.bits - self.signed)) - 1) * Fraction(2) ** -self.fraction_bits)

    @property
    def min(self) -> float | Fraction:
        """Lowest value."""
        return exact_number(-self.signed * (1 << (self.bits - 1)) * Fraction(2) ** -self.fraction_bits)

    @property
    def epsilon(self) -> float | Fraction:
        """The distance between neighbouring values, ``2**-fraction_bits``."""
        return exact_number(Fraction(2) ** -self.fraction_bits)

    smallest_normal = epsilon
    smallest_subnormal = epsilon

    @cached_property
    def storage_dtype(self) -> np.dtype:
        """The NumPy type of an array of codes: the smallest unsigned integer that holds one."""
        return _storage_dtype(self.bits)

    # -- beside other formats, and in records --------------------------------------------------------------------------
    def contains(self, other: object) -> bool | None:
        """Whether every value of another format is a value of this one; None if the parameters do not decide it."""
        if self == other or not isinstance(other, FixedFormat):
            return super().contains(other)
        return self.min <= other.min and self.max >= other.max and self.fraction_bits >= other.fraction_bits

    def to_data(self) -> dict[str, Any]:
        """All parameters of the format, as plain data."""
        return {"kind": self.kind, **asdict(self)}

    def __repr__(self) -> str:
        return f"FixedFormat({self.integer_bits}, {self.fraction_bits}{'' if self.signed else ', signed=False'})"

    def __str__(self) -> str:
        return self.name

    @cached_property
    def _hash(self) -> int:
        return hash((FixedFormat, self.integer_bits, self.fraction_bits, self.signed))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_fixed, (self.integer_bits, self.fraction_bits, self.signed)


def _rebuild_fixed(integer_bits: int, fraction_bits: int, signed: bool) -> FixedFormat:
    return FixedFormat(integer_bits, fraction_bits, signed=signed)


Format = FloatFormat | FixedFormat
