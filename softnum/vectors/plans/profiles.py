"""What a machine's manual decides where IEEE 754 leaves it open: NaNs, tininess, minimum and maximum, classes."""

from __future__ import annotations

from typing import Any, NamedTuple

from softnum.formats.aliases import near
from softnum.vectors.plans.fpu import CLASS_MASK, CLASS_NUMBER, EXTREMA

__all__ = ["PROFILES", "Profile", "profile_named", "with_profile"]


class Profile(NamedTuple):
    """The rules of a machine: whose NaN is delivered and what invalid conversions to integers give (``nan``), when
    underflow is judged, whose minimum and maximum, and what classify gives."""

    nan: str
    tininess: str
    minmax: str
    classes: object = CLASS_NUMBER


#: name -> its rules. None flushes: FPCR.FZ, MXCSR.FTZ and .DAZ are 0 after reset, and nvcc's -ftz is false.
#: riscv: ISA manual, volume I, chapter "F": canonical NaNs ("NaN Generation and Propagation"), tininess after rounding,
#:   FCVT's results out of range, FMIN, FCLASS.
#: arm: DDI 0487, FPProcessNaNs with FPCR.DN = 0, FPRound (tininess before rounding, with FPCR.AH = 0), FPToFixed, FMIN.
#:   With FPCR.FZ, FPRound raises Underflow without Inexact: flush_results="arm".
#: x86: SDM, volume 1, 4.8.3.5 (NaNs), 4.9.1.5 (tininess after rounding), volume 2, CVTSS2SI and MINSS.
#: tests/vectors/test_vectors_machines.py compares x86 with the processor, arm and riscv with QEMU 7.2.
#: cuda: CUDA C programming guide, "Floating-Point Standard" (one NaN; no flags); PTX ISA, cvt and min.
PROFILES: dict[str, Profile] = {
    "riscv": Profile("riscv", "after", "riscv", CLASS_MASK),
    "arm": Profile("arm", "before", "arm"),
    "x86": Profile("x86", "after", "x86"),
    "ieee": Profile("canonical", "after", "ieee2019"),
    "cuda": Profile("cuda", "after", "cuda"),
}


def profile_named(name: str | None) -> Profile | None:
    """The rules of a machine by its name; None of None.

    >>> from softnum.vectors.plans.profiles import profile_named
    >>> profile_named("arm").tininess
    'before'
    """
    if name is None or name in PROFILES:
        return None if name is None else PROFILES[name]
    hint = f"; did you mean {close[0]!r}?" if (close := near(str(name), PROFILES)) else ""
    raise ValueError(f"unknown profile {name!r}{hint} (known: {', '.join(PROFILES)})")


def with_profile(op: str, given: dict[str, Any]) -> dict[str, Any]:
    """Options with the profile's rules where they are not stated, and without the profile.

    >>> from softnum.vectors.plans.profiles import with_profile
    >>> with_profile("add", {"profile": "arm", "nan": "arm_default"})
    {'nan': 'arm_default', 'tininess': 'before'}
    """
    rest = {key: value for key, value in given.items() if key != "profile" and value is not None}
    rules = profile_named(given.get("profile"))
    if rules is None:
        return rest
    stated = {"nan": rules.nan, "tininess": rules.tininess}
    if op in EXTREMA:
        stated["minmax"] = rules.minmax
    if op == "classify":
        stated["out_fmt"] = rules.classes
    return rest | {key: value for key, value in stated.items() if key not in rest}
