"""Block formats: elements of a small format that share a scale, in blocks along one axis of an array.

A block format holds facts alone, as every format: what an element code and a scale code stand for, and how many
elements share a scale. How the scale of a block is chosen is an argument of the encoding (`SCALE_RULES`):
exactly, where some of the sources multiply by reciprocals that were rounded to binary32 before.

Sources: OCP Microscaling Formats (MX) Specification v1.0, clauses 5 (formats), 6.3 (conversion); NVIDIA, "Pretraining
Large Language Models with NVFP4", arXiv 2509.25149, appendix on quantization (nvfp4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any

from softnum.formats import names
from softnum.formats.annotations import FormatLike
from softnum.formats.base import AnyFormat, format_of_data
from softnum.formats.codec import NEAREST, Rounding
from softnum.formats.facts import Facts, facts, fits
from softnum.formats.scalar import FixedFormat, FloatFormat, Format
from softnum.runtime.plain import plain

__all__ = [
    "SCALE_RULES", "BlockFormat", "block_format_names", "check_block_options", "check_keywords", "format",
    "is_block_format", "refuse_block_options", "scale_rule_of",
]  # fmt: skip

#: How a block's scale follows from amax, its largest magnitude. E: the exponent of the element's largest value M.
SCALE_RULES = {
    "floor": "2**(floor(log2 amax) - E): OCP MX v1.0 clause 6.3",
    "ceil": "2**(ceil(log2 amax) - E): the mode CEIL of torchao",
    "even": "2**(floor(log2 r) - E), r = amax rounded to the element's precision, to nearest even: EVEN of torchao",
    "nearest": "2**(e - E), 2**e the power of two nearest to amax, the upper one of two: for comparison, no standard's",
    "rceil": "amax / M rounded up to a scale: NVIDIA (arXiv 2506.08027, cuBLAS block quantization); RCEIL of torchao",
    "max": "amax / M rounded to a scale, to nearest even: NVIDIA's nvfp4 (arXiv 2509.25149)",
}
_OPTIONS = ("axis", "scale_rule", "symmetric", "tensor_scale")
_POWER_RULES = ("floor", "ceil", "even", "nearest")
_MOST_BLOCK = 1 << 31
_PARTS = ("element", "scale", "tensor_scale")  # those that are formats


def _exponent(x: Fraction) -> int:
    """floor(log2 x) of a positive number."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


@dataclass(frozen=True, init=False, repr=False)
class BlockFormat(AnyFormat, saved_as="block"):
    """A block format: `block_size` consecutive elements along an axis share one scale; a value is element times scale.

    Formats compare and hash by their parameters; the name is ignored.

    Parameters
    ----------
    element : format or str
        The format of an element: a float or fixed point. Two's complement ("q1.7") or sign and magnitude
        (``FloatFormat(1, m, specials="none")``, all of whose binades have one spacing) with a power of two as scale is
        block floating point of any mantissa width.
    scale : format or str
        The format of a scale: a float or fixed point whose values are exact in binary64. "e8m0fnu": powers of two.
    block_size : int or None
        Elements per block. The last block of an axis may be shorter. None: the whole axis is one block.
    tensor_scale : format or str, optional
        The format of one further scale, of the whole array (nvfp4: binary32).
    name : str, optional
        The name of the format.

    Raises
    ------
    ValueError
        If a format is unknown or unsuitable, or the product of the scales is not exact in binary64.

    Examples
    --------
    >>> import softnum as sn
    >>> mx = sn.format("mxfp4_e2m1")
    >>> mx
    BlockFormat('e2m1fn', 'e8m0fnu', 32, name='mxfp4_e2m1')
    >>> mx == sn.BlockFormat("e2m1fn", "e8m0fnu", 32), mx.bits_per_value
    (True, 4.25)
    >>> sn.quantize([1.0, 0.3, 11.0, -6.4], sn.BlockFormat("q1.3", "e8m0fnu", 2))
    array([ 1.  ,  0.25, 12.  , -6.  ])
    """

    element: Format
    scale: Format
    block_size: int | None
    tensor_scale: FloatFormat | None
    name: str = field(compare=False)

    kind = "block"

    def __init__(
        self,
        element: FormatLike,
        scale: FormatLike,
        block_size: int,
        *,
        tensor_scale: FormatLike | None = None,
        name: str | None = None,
    ) -> None:
        element, scale = (self._part(what, fmt) for what, fmt in (("element", element), ("scale", scale)))
        if not element.has_zero:
            raise ValueError(f"BlockFormat: element={element} has no zero")
        if block_size is not None:
            if isinstance(block_size, bool) or not isinstance(block_size, Integral):
                raise TypeError(f"BlockFormat: block_size must be an integer or None, got {block_size!r}")
            if not 1 <= block_size < _MOST_BLOCK:
                raise ValueError(f"BlockFormat: block_size must lie in 1..{_MOST_BLOCK - 1}, got {block_size}")
            block_size = int(block_size)
        if not fits(scale, "float64"):
            raise ValueError(
                f"BlockFormat: the values of scale={scale} are not exact in binary64; take a smaller scale format"
            )
        if tensor_scale is not None:
            tensor_scale = self._part("tensor_scale", tensor_scale)
            both = facts(scale) * facts(tensor_scale)
            if not isinstance(tensor_scale, FloatFormat) or not fits(tensor_scale, "float32"):
                raise ValueError(f"BlockFormat: tensor_scale={tensor_scale} must be a float format exact in binary32")
            if both.precision > 53 or both.last < -1022 or both.top > 1023:
                raise ValueError(f"BlockFormat: products of {scale} and {tensor_scale} are not exact in binary64")
            if facts(element).precision + tensor_scale.precision > 53:
                raise ValueError(f"BlockFormat: products of {element} and {tensor_scale} are not exact in binary64")
        put = lambda what, value: object.__setattr__(self, what, value)  # noqa: E731
        put("element", element)
        put("scale", scale)
        put("block_size", block_size)
        put("tensor_scale", tensor_scale)
        put("name", name or self._default_name())

    @staticmethod
    def _part(what: str, fmt) -> Format:
        fmt = names.format(fmt)
        if not isinstance(fmt, (FloatFormat, FixedFormat)):
            raise ValueError(f"BlockFormat: {what} must be a float or fixed-point format, got {fmt}")
        if fmt.leads:
            raise ValueError(f"BlockFormat: {what} is {fmt.described}")
        return fmt

    def _default_name(self) -> str:
        size = "axis" if self.block_size is None else self.block_size
        tensor = "" if self.tensor_scale is None else f"_{self.tensor_scale}"
        return f"{self.element}_by{size}_{self.scale}{tensor}"

    # -- what the scale rules ask ------------------------------------------------------------------------------------
    @cached_property
    def element_exponent(self) -> int:
        """E: floor(log2 M), M the element's largest value."""
        return _exponent(Fraction(self.element.max))

    @cached_property
    def smallest_scale(self) -> float:
        """The smallest positive scale, that of a block of zeros."""
        return float(self.scale.smallest_subnormal)

    @cached_property
    def scale_exponents(self) -> tuple[int, int]:
        """Of the smallest and the largest scale that is a power of two."""
        return _exponent(Fraction(self.smallest_scale)), _exponent(Fraction(self.scale.max))

    @property
    def bits_per_value(self) -> float:
        """Bits of an element and its share of a scale, in full blocks; without the tensor's scale."""
        return self.element.bits + (self.scale.bits / self.block_size if self.block_size else 0)

    @property
    def max(self) -> float:
        """Largest value, the tensor's scale being 1: a float where binary64 holds it, else a Fraction."""
        return _float_or_fraction(Fraction(self.element.max) * Fraction(self.scale.max))

    @property
    def min(self) -> float:
        """Lowest value, the tensor's scale being 1."""
        return _float_or_fraction(Fraction(self.element.min) * Fraction(self.scale.max))

    @property
    def smallest(self) -> float:
        """Smallest positive value, the tensor's scale being 1."""
        return _float_or_fraction(Fraction(self.element.smallest_subnormal) * Fraction(self.smallest_scale))

    def blocks(self, length: int) -> int:
        """Number of blocks of an axis of this length."""
        return -(-length // self.size(length))

    def size(self, length: int) -> int:
        """Elements of a full block of an axis of this length."""
        return self.block_size or max(length, 1)

    def contains(self, other: object) -> bool:
        """Whether it is the same format: codes are multiplied, not values."""
        return self == other

    @property
    def value_facts(self) -> Facts:
        """What a proof needs of element times scale, times the array's scale."""
        values = self.element.value_facts * self.scale.value_facts
        return values if self.tensor_scale is None else values * self.tensor_scale.value_facts

    def scale_rule(self, rule: str | None) -> str:
        """How the scale of a block is chosen: the rule by name, by default `scale_rule_of`'s."""
        return scale_rule_of(self, rule)

    def summary(self, source: str) -> dict[str, Any]:
        """Name, width of an element and its share of a scale, and the parts, for a record."""
        parts = {"element": str(self.element), "scale": str(self.scale), "block_size": self.block_size}
        tensor = {} if self.tensor_scale is None else {"tensor_scale": str(self.tensor_scale)}
        return {"format": str(self), "bits": self.bits_per_value, **parts, **tensor}

    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data."""
        parts = {what: getattr(self, what) for what in _PARTS}
        data = {what: None if part is None else part.to_data() for what, part in parts.items()}
        return {"kind": self.kind, **data, "block_size": self.block_size, "name": self.name}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> BlockFormat:
        """The format that `to_data` described, but for its kind."""
        parts = {what: None if data[what] is None else format_of_data(data[what]) for what in _PARTS}
        return cls(**data | parts)

    def __repr__(self) -> str:
        parts = [shown_format(self.element), shown_format(self.scale), repr(self.block_size)]
        if self.tensor_scale is not None:
            parts.append(f"tensor_scale={shown_format(self.tensor_scale)}")
        return f"BlockFormat({', '.join(parts)}, name={self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.element, self.scale, self.block_size, self.tensor_scale, self.name)


def _rebuild(element, scale, block_size, tensor_scale, name) -> BlockFormat:
    return BlockFormat(element, scale, block_size, tensor_scale=tensor_scale, name=name)


@plain
def _float_or_fraction(x: Fraction):
    try:
        same = Fraction(float(x)) == x
    except OverflowError:
        return x
    return float(x) if same else x


def shown_format(fmt: FormatLike) -> str:
    """A format of any kind as an expression: by name if the name says all."""
    try:
        known = format(str(fmt)) == fmt
    except ValueError:
        known = False
    return repr(str(fmt)) if known else repr(fmt)


def _mx(name: str, element: str) -> tuple[str, BlockFormat]:
    return name, BlockFormat(element, "e8m0fnu", 32, name=name)


_REGISTRY: dict[str, BlockFormat] = dict(
    [
        _mx("mxfp8_e4m3", "e4m3fn"),
        _mx("mxfp8_e5m2", "e5m2"),
        _mx("mxfp6_e3m2", "e3m2fn"),
        _mx("mxfp6_e2m3", "e2m3fn"),
        _mx("mxfp4_e2m1", "e2m1fn"),
        _mx("mxint8", "q2.6"),
        ("nvfp4", BlockFormat("e2m1fn", "e4m3fn", 16, tensor_scale="binary32", name="nvfp4")),
    ]
)
_ALIASES = {"mxfp4": "mxfp4_e2m1"}  # of the concrete formats, the one that its width alone names


def block_format_names() -> list[str]:
    """The registered names of block formats, in a fixed order.

    >>> import softnum
    >>> softnum.formats.block_format_names()
    ['mxfp8_e4m3', 'mxfp8_e5m2', 'mxfp6_e3m2', 'mxfp6_e2m3', 'mxfp4_e2m1', 'mxint8', 'nvfp4']
    """
    return list(_REGISTRY)


def format(name: FormatLike) -> Any:
    """Return the format that a name stands for.

    Parameters
    ----------
    name : str, format or dtype
        A registered name (`format_names`), ``eXmY`` (IEEE-like), ``qI.F`` or ``uqI.F`` (fixed point), or IEEE P3109's
        ``binaryKpP{s,u}{e,f}``; what others call one of them ("float32"); or a block format's (`block_format_names`;
        "mxfp4" is "mxfp4_e2m1"). NumPy's float16, float32 and float64 and the float types of ml_dtypes and of
        PyTorch stand for the formats that they are. A format object is returned as it is.

    Returns
    -------
    FloatFormat, FixedFormat or BlockFormat

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
    >>> import numpy as np
    >>> softnum.format(np.float16).name
    'binary16'
    >>> softnum.format("mxfp8_e4m3").block_size
    32
    """
    if isinstance(name, str):
        return _named(name)
    return name if isinstance(name, BlockFormat) else names.format(name)


@lru_cache(maxsize=1024)
def _named(name: str):
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    if key in _REGISTRY:
        return _REGISTRY[key]
    if is_block_format(key):
        known = ", ".join([*_REGISTRY, *_ALIASES])
        raise ValueError(f"unknown block format {name!r} (known: {known}; or softnum.BlockFormat(...))")
    return names.format(name)


def is_block_format(fmt: FormatLike) -> bool:
    """Whether this is a block format, or a name that only one can have."""
    return isinstance(fmt, BlockFormat) or (isinstance(fmt, str) and fmt.strip().lower().startswith(("mx", "nv")))


def scale_rule_of(fmt: BlockFormat, rule: str | None) -> str:
    """The scale rule by name; by default "floor" where all scales are powers of two, else "max"."""
    if rule is None:
        powers = fmt.scale.powers_of_two and fmt.tensor_scale is None
        return "floor" if powers else "max"
    if rule not in SCALE_RULES:
        raise ValueError(f"unknown scale rule {rule!r} (known: {', '.join(SCALE_RULES)})")
    if fmt.tensor_scale is not None and rule in _POWER_RULES:
        raise ValueError(f"scale_rule={rule!r} is not defined with a tensor scale ({fmt}); use 'max' or 'rceil'")
    return rule


def check_keywords(what: str, given: dict[str, Any]) -> None:
    """TypeError for a keyword that is not one of block formats."""
    for name in given:
        if name not in _OPTIONS:
            raise TypeError(f"{what} got an unexpected keyword {name!r} (of block formats: {', '.join(_OPTIONS)})")


def refuse_block_options(what: str, fmt: FormatLike, given: dict[str, Any]) -> None:
    """TypeError for keywords of block formats that are given with another format."""
    check_keywords(what, given)
    raise TypeError(f"axis, scale_rule, symmetric and tensor_scale are for block formats; {fmt} is not one")


def check_block_options(what: str, given: dict[str, Any], rounding: Rounding, out: object = None) -> None:
    """TypeError for what no block format takes."""
    check_keywords(what, given)
    for name in ("invalid", "return_flags", "tininess", "flush_results"):
        if getattr(rounding, name) != getattr(NEAREST, name):
            raise TypeError(f"{what}: {name}= is not for block formats")
    if out is not None:
        raise TypeError(f"{what}: out= is not for block formats")
