"""Flags that are wrong by themselves, and the rules that such a design follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softnum.formats.modes import Flags
from softnum.vectors.checks.evidence import Evidence
from softnum.vectors.plans.spec import Spec, VectorSpec

__all__ = ["FlagRule", "counts", "ruled", "rules_of", "told"]

_INVALID, _DIVIDE, _OVERFLOW, _UNDERFLOW, _INEXACT = (
    np.uint8(f) for f in (Flags.INVALID, Flags.DIVIDE_BY_ZERO, Flags.OVERFLOW, Flags.UNDERFLOW, Flags.INEXACT)
)


class FlagRule(NamedTuple):
    """What such a design does, and the flags it raises in place of the right ones."""

    text: str
    flags: Callable[[np.ndarray], np.ndarray]


def rules_of(spec: Spec, evidence: Evidence) -> list[FlagRule]:
    """The rules that are tried on the evidence.

    >>> import io
    >>> from softnum.vectors import check
    >>> lines = b"3D 3D 3E 00\\n3D 3E 40 00\\n7A 7A 7C 05\\n"
    >>> check(io.BytesIO(lines), "multiply", "e5m2").causes[0].detail
    'inexact is raised with overflow alone'
    """
    out, rules = spec.out_fmt, []
    for flag in reversed(Flags):
        bit, name = np.uint8(flag), flag.name.lower()
        rules += [
            FlagRule(f"{name} is never raised", lambda f, bit=bit: f & ~bit),
            FlagRule(f"{name} is always raised", lambda f, bit=bit: f | bit),
        ]
    got = evidence.got
    infinite, zero, small = out.is_infinite(got.result), out.is_zero(got.result), out.is_subnormal(got.result)
    drop = lambda bit, where: lambda f: np.where(where(f), f & ~bit, f)  # noqa: E731
    add = lambda bit, where: lambda f: np.where(where(f), f | bit, f)  # noqa: E731
    rules += [
        FlagRule("inexact is not raised with overflow", drop(_INEXACT, lambda f: f & _OVERFLOW != 0)),
        FlagRule("inexact is raised with overflow alone", drop(_INEXACT, lambda f: f & _OVERFLOW == 0)),
        FlagRule("inexact is not raised with underflow", drop(_INEXACT, lambda f: f & _UNDERFLOW != 0)),
        FlagRule("overflow is raised with infinite results alone", drop(_OVERFLOW, lambda f: ~infinite)),
        FlagRule("underflow is raised with zero results alone", drop(_UNDERFLOW, lambda f: ~zero)),
        FlagRule("underflow is raised with subnormal results alone", drop(_UNDERFLOW, lambda f: ~small)),
        FlagRule("underflow is raised with exact subnormal results too", add(_UNDERFLOW, lambda f: small)),
        FlagRule("underflow and inexact are raised with every subnormal result",
                 add(_UNDERFLOW | _INEXACT, lambda f: small)),
        FlagRule("underflow is raised with overflow", add(_UNDERFLOW, lambda f: f & _OVERFLOW != 0)),
        FlagRule("overflow is raised with every infinite result", add(_OVERFLOW, lambda f: infinite)),
        FlagRule("overflow and inexact are raised with every infinite result",
                 add(_OVERFLOW | _INEXACT, lambda f: infinite)),
        FlagRule("divide_by_zero is raised as invalid",
                 lambda f: np.where(f & _DIVIDE != 0, f & ~_DIVIDE | _INVALID, f)),
        FlagRule("overflow is raised as invalid",
                 lambda f: np.where(f & _OVERFLOW != 0, f & ~_OVERFLOW | _INVALID, f)),
        FlagRule("underflow is not raised with normal results", drop(_UNDERFLOW, lambda f: ~small & ~zero)),
    ]  # fmt: skip
    if isinstance(spec, VectorSpec):
        nan, large = np.zeros((2, len(evidence)), bool)
        for codes, fmt in zip(got.operands, spec.formats, strict=True):
            nan |= fmt.is_nan(codes)
            large |= fmt.is_infinite(codes)
        rules += [
            FlagRule("invalid is not raised by signaling NaNs", drop(_INVALID, lambda f: nan)),
            FlagRule("invalid is raised by signaling NaNs alone", drop(_INVALID, lambda f: ~nan)),
            FlagRule("invalid is raised by every NaN", add(_INVALID, lambda f: nan)),
            FlagRule("overflow is raised by infinite operands", add(_OVERFLOW, lambda f: large & (f & _INVALID == 0))),
            FlagRule("overflow and inexact are raised by infinite operands",
                     add(_OVERFLOW | _INEXACT, lambda f: large & ~nan & (f & _INVALID == 0))),
        ]  # fmt: skip
    return rules


def ruled(flags: np.ndarray, text: str, rules: list[FlagRule]) -> np.ndarray:
    """The flags that a design raises which follows the rules that the text lists."""
    named = {rule.text: rule for rule in rules}
    for part in text.split("; "):
        flags = named[part].flags(flags)
    return flags


def told(best: np.ndarray, got: np.ndarray, rules: list[FlagRule], fitted: np.ndarray) -> tuple[str, np.ndarray, bool]:
    """(what is wrong with flags, which rows it is said of, whether it was borne out).

    Rules are taken one after the other while they leave fewer rows wrong of those that are ``fitted``; what they leave
    wrong of the others is what they are judged by.
    """
    flags, chosen, left = best, [], np.count_nonzero((best != got)[fitted])
    while left:
        tried = [(int(np.count_nonzero((rule.flags(flags) != got)[fitted])), n) for n, rule in enumerate(rules)]
        fewest, n = min(tried)
        if fewest >= left or len(chosen) == 3:
            break
        flags, left = rules[n].flags(flags), fewest
        chosen.append(rules[n].text)
    differs = (flags != best) & ~fitted
    hits = int(np.count_nonzero(differs & (flags == got)))
    claims = int(np.count_nonzero(differs))
    if chosen and hits and hits >= 0.995 * claims:
        return "; ".join(chosen), flags, True
    return counts(best, got), best, False


def counts(best: np.ndarray, got: np.ndarray) -> str:
    """How often each flag is missing, or raised without cause."""
    parts = []
    for flag in reversed(Flags):
        bit, name = int(flag), flag.name.lower()
        missing, extra = np.count_nonzero(best & ~got & bit), np.count_nonzero(got & ~best & bit)
        if missing:
            never = not (got & bit).any()
            parts.append(f"{name} is never raised" if never else f"{name} is missing in {missing}")
        if extra:
            always = extra + np.count_nonzero(best & bit) - missing == len(got)
            parts.append(f"{name} is always raised" if always else f"{name} is raised without cause in {extra}")
    return "; ".join(parts)
