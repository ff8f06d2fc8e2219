"""Units: how a sum of products is computed. The order of summation and every rounding are part of the definition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

from softnum.custom import CustomFormat
from softnum.environment import environment
from softnum.modes import OVERFLOW_RULES, overflow_name, rounding_name
from softnum.names import format

__all__ = ["MadUnit", "Unit"]


class Unit:
    """What every unit has; its engines (`softnum.engines`) compute it.

    ``operand``: the formats of a and b. ``result``: that of the sum. ``c_format``: that of C, the sum's start.
    ``stochastic``: whether a random key is needed. ``steps(k)``: how many pairs of random words a sum of length k
    takes. ``rounded_to``: the formats that a NaN may be missing in, a bit of the definition's answer each.
    """

    operand: tuple
    stochastic: bool = False

    @property
    def c_format(self):
        """The format of C."""
        return self.result

    def steps(self, k: int) -> int:
        """Number of random words of a sum of length k."""
        return k


@dataclass(frozen=True)
class MadUnit(Unit):
    """A multiply-add unit: ``acc = R(acc + R_product(a * b))`` for k = 0, 1, ..., K-1, from +0 or C.

    Parameters
    ----------
    accumulator : format or str
        The format of the running sum.
    operand : format or str, or a pair of them
        The format of a and b; operands of `matmul` are checked to be values of it.
    product : format or str, optional
        The format each product is rounded to. None: the product stays exact, and a step rounds once (fma).
    rounding : str
        The mode of the sum.
    product_rounding : str, optional
        The mode of the product; None means `rounding`.
    overflow : str, optional
        The overflow rule. None: each format's default. A rule that one of the formats does not know ("wrap" in a float,
        "infinity" in fixed point) leaves that one its default.
    stochastic_bits : int
        r of the stochastic modes, 1 to 32.
    chunk : int, optional
        Sum n products at a time, each chunk from +0, then add the chunks' sums in order to an outer sum (from +0 or C).
    outer_accumulator : format or str, optional
        The format of the outer sum; None means `accumulator`.
    lanes : int
        Must be 1 today.
    reduction : str
        Must be "sequential" today.

    Raises
    ------
    ValueError
        If a name or number is out of range, or the parts do not fit together.

    Examples
    --------
    >>> import softnum as sn
    >>> wang = sn.MadUnit("e6m9", operand="e5m2", chunk=64)
    >>> print(wang)
    acc = round(acc + a * b): e5m2 x e5m2 -> e6m9, one rounding (nearest_even), in chunks of 64 summed in e6m9
    """

    accumulator: object
    operand: object = None
    product: object = None
    rounding: str = "nearest_even"
    product_rounding: str | None = None
    overflow: str | None = None
    stochastic_bits: int = 32
    lanes: int = 1
    chunk: int | None = None
    reduction: str = "sequential"
    outer_accumulator: object = None

    def __post_init__(self) -> None:
        if self.operand is None:
            raise ValueError("MadUnit: state operand=, the format (or pair of formats) of the factors")
        pair = self.operand if isinstance(self.operand, tuple) else (self.operand, self.operand)
        if len(pair) != 2:
            raise ValueError(f"MadUnit: operand is one format or a pair, got {len(pair)}")
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("operand", tuple(format(f) for f in pair))
        put("accumulator", format(self.accumulator))
        put("product", None if self.product is None else format(self.product))
        put("outer_accumulator", None if self.outer_accumulator is None else format(self.outer_accumulator))
        for what in ("accumulator", "product", "outer_accumulator"):
            fmt = getattr(self, what)
            if isinstance(fmt, CustomFormat):
                raise ValueError(f"MadUnit: {what} must be a float or fixed-point format; {fmt} is a value table")
            if fmt is not None and not fmt.has_zero:
                raise ValueError(f"MadUnit: {what}={fmt} has no zero to start a sum from")
        put("rounding", rounding_name(self.rounding))
        if self.product_rounding is not None:
            if self.product is None:
                raise ValueError("MadUnit: product_rounding needs product=, the format to round the product to")
            put("product_rounding", rounding_name(self.product_rounding))
        if self.overflow is not None:
            put("overflow", self._known_overflow())
        if self.lanes != 1:
            raise ValueError(f"MadUnit: lanes must be 1 (more are not implemented), got {self.lanes!r}")
        if self.reduction != "sequential":
            raise ValueError(
                f"MadUnit: reduction must be 'sequential' (others are not implemented), got {self.reduction!r}"
            )
        if self.chunk is not None:
            if isinstance(self.chunk, bool) or not isinstance(self.chunk, Integral) or not 1 <= self.chunk < 2**62:
                raise ValueError(f"MadUnit: chunk must be a positive integer below 2**62, got {self.chunk!r}")
            put("chunk", int(self.chunk))
        elif self.outer_accumulator is not None:
            raise ValueError("MadUnit: outer_accumulator needs chunk=, the length of the inner sums")
        environment(self.accumulator, self.rounding, None, self.stochastic_bits)  # checks r

    def _known_overflow(self) -> str:
        if self.overflow not in OVERFLOW_RULES:
            return overflow_name(self.overflow, self.accumulator)  # raises, with the list
        formats = [f for f in (self.accumulator, self.product, self.outer_accumulator) if f is not None]
        if all(
            (self.overflow == "wrap" and f.kind != "fixed") or (self.overflow == "infinity" and f.kind == "fixed")
            for f in formats
        ):
            overflow_name(self.overflow, self.accumulator)  # raises: no format of the unit knows the rule
        return self.overflow

    def _environment(self, fmt, rounding: str) -> tuple[int, ...]:
        foreign = {"wrap": "float", "infinity": "fixed"}.get(self.overflow) == fmt.kind
        return environment(fmt, rounding, None if foreign else self.overflow, self.stochastic_bits)

    @property
    def outer(self):
        """The format of the result: the outer sum's under chunk, else the accumulator."""
        return self.outer_accumulator or self.accumulator

    @property
    def result(self):
        """The format of the sum."""
        return self.outer

    @property
    def rounded_to(self) -> tuple:
        """The formats that products, sums and the outer sum are rounded to."""
        return self.product, self.accumulator, self.outer

    @property
    def product_mode(self) -> str:
        """The mode that products round in."""
        return self.product_rounding or self.rounding

    @cached_property
    def environments(self) -> tuple[tuple, tuple, tuple]:
        """(product, sum, outer sum): (rounding, overflow, tininess, r) each, in the core's numbers."""
        return (
            self._environment(self.product or self.accumulator, self.product_mode),
            self._environment(self.accumulator, self.rounding),
            self._environment(self.outer, self.rounding),
        )

    @property
    def stochastic(self) -> bool:
        """Whether a random key is needed."""
        product = self.product is not None and self.product_mode.startswith("stochastic")
        return product or self.rounding.startswith("stochastic")

    def steps(self, k: int) -> int:
        """Number of rounded additions of a sum of length k: K, and one for each chunk."""
        return k + (-(-k // self.chunk) if self.chunk else 0)

    def _mode(self, rounding: str) -> str:
        return f"{rounding}, r = {self.stochastic_bits}" if rounding.startswith("stochastic") else rounding

    def __str__(self) -> str:
        a, b = self.operand
        if self.product is None:
            text = (
                f"acc = round(acc + a * b): {a} x {b} -> {self.accumulator}, one rounding ({self._mode(self.rounding)})"
            )
        else:
            text = (
                f"acc = round(acc + round(a * b)): {a} x {b} -> {self.product} ({self._mode(self.product_mode)}) "
                f"-> {self.accumulator} ({self._mode(self.rounding)})"
            )
        if self.overflow:
            text += f", overflow {self.overflow}"
        return text + (f", in chunks of {self.chunk} summed in {self.outer}" if self.chunk else "")
