"""What was found of a box."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softnum.arrays.conversion import encode
from softnum.inspect.identify.blocks import parts
from softnum.inspect.trace import Trace
from softnum.mac.mad import Unit

__all__ = ["Finding", "Identified", "Refutation", "Undecided", "in_parts"]


def _number(x: float | None) -> str:
    if x is None:
        return "refused"
    if abs(x) < 1e5 and x == round(x, 6):
        return repr(x)
    significand, exponent = math.frexp(x)
    return f"{'-' * (x < 0)}2^{exponent - 1}" if abs(significand) == 0.5 else x.hex()


def _vector(numbers) -> str:
    numbers = list(numbers)
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    if len(numbers) > 2 and len(set(numbers)) == 1:
        return f"{len(numbers)} x {_number(numbers[0])}"
    if len(numbers) > 8:
        kept = [f"{i}: {_number(x)}" for i, x in enumerate(numbers) if x]
        return "{" + ", ".join(kept[:8]) + (", ..." if len(kept) > 8 else "") + "}"
    return "[" + ", ".join(map(_number, numbers)) + "]"


def _input(of: Finding | Refutation) -> str:
    """a, b and C of one dot product, in words."""
    by = lambda scales: f" by scales {_vector(scales)}" if scales else ""  # noqa: E731
    start = "" if of.c is None else f", C = {_number(of.c)}"
    return f"a = {_vector(of.a)}{by(of.a_scales)}, b = {_vector(of.b)}{by(of.b_scales)}{start}"


def _plain_input(of: Finding | Refutation) -> dict:
    found = {"a": list(map(_plain, of.a)), "b": list(map(_plain, of.b)), "c": _plain(of.c), "output": _plain(of.output)}
    scales = {"a_scales": list(map(_plain, of.a_scales)), "b_scales": list(map(_plain, of.b_scales))}
    return found | scales if of.a_scales or of.b_scales else found


def in_parts(of: Any, operand: Any) -> Finding | Refutation:
    """The same, elements and scales of rows of block formats apart."""
    sides = zip((of.a, of.b), operand, strict=True)
    split = [[() if x is None else tuple(x.tolist()) for x in parts(np.array(row), fmt)] for row, fmt in sides]
    (a, *of_a), (b, *of_b) = split
    return replace(of, a=a, b=b, a_scales=sum(of_a, ()), b_scales=sum(of_b, ()))


@dataclass(frozen=True)
class Finding:
    """One property of a box, and the input that proved it.

    Attributes
    ----------
    name : str
        The property.
    value : object
    why : str
        What the input says, in words.
    a, b : tuple of float
        The input of one dot product.
    c : float or None
        Where its sum started; None where no C was given.
    output : float or None
        What the box gave; None where it refused the input.
    a_scales, b_scales : tuple of float
        Of block formats: the scales of the blocks, a and b being their elements, and last that of the array where the
        format has one.
    """

    name: str
    value: object
    why: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float | None
    output: float | None
    a_scales: tuple[float, ...] = ()
    b_scales: tuple[float, ...] = ()

    def codes(self, unit: Any) -> dict[str, Any]:
        """The input and the result as codes of a unit's formats, a test vector: a, b, c and result, and the scales."""
        codes = {}
        for name, x, scales, fmt in zip(
            "ab", (self.a, self.b), (self.a_scales, self.b_scales), unit.operand, strict=True
        ):
            if not scales:
                codes[name] = encode(list(x), fmt).tolist()
                continue
            own = len(scales) - (fmt.tensor_scale is not None)
            codes |= {name: encode(list(x), fmt.element).tolist(),
                      f"{name}_scales": encode(list(scales[:own]), fmt.scale).tolist()}  # fmt: skip
            if fmt.tensor_scale is not None:
                codes[f"{name}_tensor_scale"] = int(encode(list(scales[own:]), fmt.tensor_scale)[0])
        codes["c"] = None if self.c is None else int(encode([self.c], unit.c_format)[0])
        codes["result"] = None if self.output is None else int(encode([self.output], unit.result)[0])
        return codes

    def __str__(self) -> str:
        return f"{self.why}\n    {_input(self)}: {_number(self.output)}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data; infinities and NaN as text."""
        return {"property": self.name, "value": _plain(self.value), "why": self.why, **_plain_input(self)}


@dataclass(frozen=True)
class Undecided:
    """A property that nothing asked could tell: what it may be as well, and why it stays open."""

    name: str
    may_be: tuple[Any, ...]
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"property": self.name, "may be": [_plain(x) for x in self.may_be], "why": self.why}


@dataclass(frozen=True)
class Refutation:
    """The smallest input found that tells a box from a unit: what the box gives, and each step of the unit."""

    unit: Unit
    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float | None
    output: float | None
    expected: float | None
    trace: Trace | None
    a_scales: tuple[float, ...] = ()
    b_scales: tuple[float, ...] = ()

    def __str__(self) -> str:
        text = f"{_input(self)}:\n  the box gives {_number(self.output)}, the closest unit {_number(self.expected)}"
        return text if self.trace is None else f"{text}\n{self.trace}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"closest": self.unit.expression, **_plain_input(self), "expected": _plain(self.expected)}


def _plain(value):
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


@dataclass(frozen=True)
class Identified:
    """What `identify` found; printing it gives a report.

    Attributes
    ----------
    unit : Unit or None
        The unit that reproduces every answer of the box; None if no family has one.
    evidence : tuple of Finding
        Each property, with the input that proved it.
    undecided : tuple of Undecided
        Properties that no input decided.
    equivalent : tuple of str
        Presets that give every bit too.
    calls, products : int
        How often the box was called, and how many dot products it computed.
    rows : int
        Of these, random ones that the unit was checked on.
    refutation : Refutation or None
        If there is no unit: the input that refutes the closest one.
    reason : str
        If there is no unit: why, in a sentence.
    start : float or None
        -0.0 if the box takes no C and its sums begin with their first product: the unit reproduces its answers with
        this C.

    Examples
    --------
    >>> import softnum as sn
    >>> secret = sn.MadUnit("q32.0", operand="q8.0", overflow="wrap")
    >>> found = sn.identify(lambda a, b, c=None: sn.matmul(a, b, secret, c), rows=100)
    >>> found.equivalent, len(found.evidence) > 10, found.refutation
    (('x86_amx_int8', 'int8_int32', 'nvidia_int8'), True, None)
    """

    unit: Unit | None
    evidence: tuple[Finding, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    equivalent: tuple[str, ...] = ()
    calls: int = 0
    products: int = 0
    rows: int = 0
    refutation: Refutation | None = None
    reason: str = ""
    start: float | None = None

    def __str__(self) -> str:
        if self.unit is None:
            lines = [self.reason]
            if self.refutation is not None:
                lines += ["", f"closest: {self.refutation.unit}", f"refuted by {self.refutation}"]
        else:
            lines = [f"{self.unit.expression}", f"  {self.unit}"]
            lines += ["  from a C of -0, for sums begin with their first product"] if self.start is not None else []
            lines += [f"the same: {', '.join(self.equivalent)}"] if self.equivalent else []
        asked = f"{self.calls} calls, {self.products} dot products"
        checked = f", {self.rows} of them random rows that the unit gives bit for bit" if self.unit is not None else ""
        lines += ["", asked + checked]
        if self.evidence:
            lines += ["", "what was found, and by which input:"]
            lines += [f"  {x.name} = {_plain(x.value)}: {x}" for x in self.evidence]
        if self.undecided:
            lines += ["", "not decided:"]
            lines += [f"  {x}" for x in self.undecided]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "unit": None if self.unit is None else self.unit.expression,
            "computes": None if self.unit is None else str(self.unit),
            "start": self.start,
            "equivalent": list(self.equivalent),
            "reason": self.reason,
            "calls": self.calls,
            "products": self.products,
            "rows": self.rows,
            "evidence": [x.to_dict() for x in self.evidence],
            "undecided": [x.to_dict() for x in self.undecided],
            "refutation": None if self.refutation is None else self.refutation.to_dict(),
        }
