"""Which NaN an operation delivers: what IEEE 754 leaves open, by the rules of `softnum.reference.rules.NAN_PROFILES`.

Sources: IEEE Std 754-2019, clause 6.2 (NaNs); RISC-V Unprivileged ISA, "F" extension (the canonical NaN); Arm
Architecture Reference Manual, pseudocode FPProcessNaNs, FPProcessNaNs3, FPMulAdd and FPDefaultNaN; Intel 64 and IA-32
Software Developer's Manual, volume 1, the rules for handling NaNs of SSE, of FMA and of x87 (table 4-7), and 8.5.1.2
(operands that x87 does not support).
"""

from __future__ import annotations

from fractions import Fraction

from softnum.reference.facts import FloatFacts
from softnum.reference.rules import NAN_PROFILES, checked
from softnum.reference.values import UNSUPPORTED, Value


def profile_name(name: str) -> str:
    """A profile's name, one for each rule: "canonical", "x86" or "arm"."""
    return NAN_PROFILES[checked("NaN profile", name, NAN_PROFILES)]


def nan_of(profile: str, *operands: Value) -> Value:
    """The operand that an operation with a NaN operand returns; it signals if any of them does.

    The first NaN on x86; of x87 (the rule of x86 for its format) a quiet one before a signaling one, then the larger
    significand, then the positive one; the first signaling one on Arm, else the first. The canonical rule does not
    look. An operand that x87 does not support makes the operation invalid.
    """
    nans = [x for x in operands if x.kind == "nan"]
    if UNSUPPORTED in nans:
        return INVALID_RESULT._replace(signaling=True)
    if profile == "x87":
        first = max(nans, key=lambda x: (not x.signaling, Fraction(x.numerator, x.denominator), -x.sign))
        return first._replace(signaling=any(x.signaling for x in nans))
    first = next((x for x in nans if x.signaling), nans[0]) if profile == "arm" else nans[0]
    return first._replace(signaling=any(x.signaling for x in nans))


def nan_of_fma(profile: str, x: Value, y: Value, z: Value, product_is_invalid: bool) -> Value:
    """`nan_of` for ``x * y + z``: infinity times zero plus a quiet NaN is that NaN on x86, and invalid elsewhere."""
    if product_is_invalid and not z.signaling and profile not in ("x86", "x87"):
        return INVALID_RESULT
    return nan_of(profile, *((z, x, y) if profile == "arm" else (x, y, z)))


INVALID_RESULT = Value("invalid")


def default_nan(fmt: FloatFacts, profile: str) -> int:
    """The code of the NaN that an invalid operation makes: on x86 with its sign bit set, where a NaN has a sign."""
    negative = profile in ("x86", "x87") and fmt.signed and fmt.nan_codes in ("ieee", "all_ones")
    return fmt.nan_code | negative << (fmt.bits - 1)


def quieted(x: Value, fmt: FloatFacts, profile: str) -> int:
    """The code of a NaN operand as a result: quiet, with the sign and the leading fraction bits that the format has."""
    if profile == "canonical" or fmt.nan_codes == "negative_zero":
        return fmt.nan_code
    code = fmt.nan_code
    if fmt.nan_codes == "ieee":
        code |= (x.numerator << fmt.mantissa_bits) // x.denominator
    return code | (fmt.signed and x.sign) << (fmt.bits - 1)
