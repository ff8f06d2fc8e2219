"""All results that RISC-V's Integrated Matrix Extension permits: one for each (G, psm = 0, rnd), and few more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softnum.inspect.permitted.freedom import ImeFreedom
from softnum.inspect.permitted.operands import codes_of_dot, number_of
from softnum.reference.exact import exact_terms
from softnum.reference.facts import format_of
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import Value, decode

__all__ = ["ImeWitness", "ime_results"]


@dataclass(frozen=True)
class ImeWitness:
    """A disclosure (G, psm = 0, rnd) that gives a result.

    >>> import softnum as sn
    >>> spec = sn.ImeFreedom("binary32", "binary16", lam=2, groups=2, rnd="xct")
    >>> found = sn.permitted([1, 2.0**-12], [1, 2.0**-13], spec, 1.0, result=2.0)
    >>> print(found.witness)
    G = 2, psm = 0, rnd = xct
    >>> found.witness.replay([1, 2.0**-12], [1, 2.0**-13], spec, 1.0)
    (2.0,)
    """

    group: int
    rnd: str

    @property
    def name(self) -> str:
        """The disclosure in words."""
        return f"G = {self.group}, psm = 0, rnd = {self.rnd}"

    def replay(self, a: Any, b: Any, spec: ImeFreedom, c: Any = None) -> tuple[Any, ...]:
        """The results of this disclosure again: several where the extension does not state the sign of a zero."""
        a, b, c = codes_of_dot(a, b, c, spec)
        codes = _of(spec, list(zip(a, b, strict=True)), c, self.group, self.rnd)
        return tuple(number_of(code, spec.output) for code in sorted(codes))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"G": self.group, "psm": 0, "rnd": self.rnd}

    def __str__(self) -> str:
        return self.name


def ime_results(spec: ImeFreedom, pairs: Any, c: Any) -> dict[int, ImeWitness]:
    """The codes of all results, with a disclosure that gives each.

    Raises ValueError if K is no multiple of lambda * W.
    """
    if len(pairs) % (spec.lam * spec.w):
        raise ValueError(
            f"permitted: K = {len(pairs)} is no multiple of lambda * W = {spec.lam} * {spec.w}, the products of a step"
        )
    found: dict[int, ImeWitness] = {}
    for group in spec.groups:
        for rnd in spec.rnd:
            for code in _of(spec, pairs, c, group, rnd):
                found.setdefault(code, ImeWitness(group, rnd))
    return found


def _of(spec: ImeFreedom, pairs, c: int | None, group: int, rnd: str) -> set[int]:
    """The codes that one disclosure gives."""
    fmt = format_of(spec.accumulator)
    operands = tuple(map(format_of, spec.operand))
    env = environment_of(fmt, spec.rounding)
    sums = {0 if c is None else c}
    size = group * spec.w
    for first in range(0, len(pairs), size):
        a, b = zip(*pairs[first : first + size], strict=True)
        _, totals = exact_terms(a, b, operands, fmt, None, spec.rounding)
        partial = _rounded(_signs(totals[-1]), fmt, spec, rnd)
        sums = {_code(exact_sum(decode(x, fmt), s, env), fmt, env) for x in sums for s in partial}
    return sums


def _code(x: Value, fmt, env) -> int:
    """The code of an exact result; any NaN is the canonical one."""
    if x.kind in ("nan", "invalid") and not fmt.has_nan:
        raise ValueError(f"permitted: a result is NaN, and {fmt} has no code for it")
    return deliver(x if x.kind in ("finite", "inf") else Value("nan", 0, 1, 2), fmt, env)[0]


def _signs(x: Value) -> list[Value]:
    """A partial sum; one that is zero, of either sign."""
    if x.kind == "finite" and not x.numerator:
        return [Value("finite", 0), Value("finite", 1)]
    return [Value("nan", 0, 1, 2) if x.kind == "invalid" else x]


def _rounded(sums: list[Value], fmt, spec: ImeFreedom, rnd: str) -> list[Value]:
    if rnd == "xct":
        return sums
    env = environment_of(fmt, spec.rounding if rnd == "frm" else "to_odd")
    found = [decode(_code(x, fmt, env), fmt) for x in sums]
    if rnd == "rto":  # what is beyond the largest number may also overflow
        away = environment_of(fmt, "away_from_zero")
        largest = decode(fmt.max_code, fmt).fraction
        found += [decode(_code(x, fmt, away), fmt) for x in sums if x.kind == "finite" and abs(x.fraction) > largest]
    return found
