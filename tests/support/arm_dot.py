"""Arm's dot products as the pseudocode of its architecture reference manual computes them, on codes and Fractions.

Source: Arm Architecture Reference Manual for A-profile architecture, DDI 0487 M.a.a, J1.3.3: BFUnpack, BFMulH, BFRound,
FPAdd_BF16, BFDotAdd, BFMatMulAddH; FPUnpackBase, FPDot, FPAdd, FPRoundBase; FP8Unpack, FP8DotAddFP, FPRound_FP8. The
functions have its names; words and structure are this file's own. It shares nothing with softnum.
"""

from fractions import Fraction
from typing import NamedTuple

ZERO, DENORMAL, NONZERO, INFINITY, NAN = "zero", "denormal", "nonzero", "infinity", "nan"


class Layout(NamedTuple):
    """Fields of a format, e and f bits; whether its top exponent has an infinity and NaNs, as IEEE 754's have."""

    e: int
    f: int
    ieee: bool = True

    @property
    def least(self):
        return 2 - (1 << (self.e - 1))

    def pack(self, sign, exponent, fraction):
        return (sign << self.e | exponent) << self.f | fraction

    def zero(self, sign):
        return self.pack(sign, 0, 0)

    def infinity(self, sign):
        return self.pack(sign, (1 << self.e) - 1, 0)

    def most(self, sign):
        return self.pack(sign, (1 << self.e) - 2, (1 << self.f) - 1)

    @property
    def nan(self):
        return self.pack(0, (1 << self.e) - 1, 1 << (self.f - 1))


LAYOUTS = {
    "binary32": Layout(8, 23), "binary16": Layout(5, 10), "bfloat16": Layout(8, 7), "e5m2": Layout(5, 2),
    "e4m3fn": Layout(4, 3, ieee=False),
}  # fmt: skip
SINGLE = LAYOUTS["binary32"]


class FPCR(NamedTuple):
    """RMode: "RN", "RP", "RM" or "RZ"."""

    rmode: str = "RN"
    fz: bool = False
    fiz: bool = False
    ah: bool = False


def unpack(code, layout, flush=False):
    """(kind, sign, value): value 0 of infinities and NaNs."""
    sign = code >> (layout.e + layout.f) & 1
    exponent, fraction = code >> layout.f & ((1 << layout.e) - 1), code & ((1 << layout.f) - 1)
    last = Fraction(2) ** -layout.f
    if exponent == 0:
        if fraction == 0 or flush:
            return ZERO, sign, Fraction(0)
        value, kind = fraction * last * Fraction(2) ** layout.least, DENORMAL
    elif exponent == (1 << layout.e) - 1 and layout.ieee:
        return (NAN if fraction else INFINITY), sign, Fraction(0)
    elif exponent == (1 << layout.e) - 1 and fraction == (1 << layout.f) - 1:
        return NAN, sign, Fraction(0)
    else:
        value, kind = (1 + fraction * last) * Fraction(2) ** (exponent - 1 + layout.least), NONZERO
    return kind, sign, -value if sign else value


def normalized(x):
    """(mantissa in [1, 2), exponent) of a positive number."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > x:
        exponent -= 1
    return x / Fraction(2) ** exponent, exponent


# ---- FPCR.EBF = 0 ----------------------------------------------------------------------------------------------------


def bf_round(x):
    sign = int(x < 0)
    mantissa, exponent = normalized(abs(x))
    if exponent < SINGLE.least:
        return SINGLE.zero(sign)
    biased = exponent - SINGLE.least + 1
    if biased >= 255:
        return SINGLE.infinity(sign)
    whole, rest = divmod(mantissa * 2**23, 1)
    whole = int(whole) | (rest != 0)
    return SINGLE.pack(sign, biased, whole & 0x7FFFFF)


def of_special(kinds, signs):
    """What a sum of terms that are infinite or NaN is; None if none is."""
    if NAN in kinds:
        return SINGLE.nan
    infinite = {s for k, s in zip(kinds, signs, strict=True) if k == INFINITY}
    if len(infinite) == 2:
        return SINGLE.nan
    return SINGLE.infinity(*infinite) if infinite else None


def bf_mul_h(x, y):
    (kind1, sign1, value1), (kind2, sign2, value2) = (unpack(c, LAYOUTS["bfloat16"], True) for c in (x, y))
    if NAN in (kind1, kind2) or {kind1, kind2} == {INFINITY, ZERO}:
        return SINGLE.nan
    if INFINITY in (kind1, kind2):
        return SINGLE.infinity(sign1 ^ sign2)
    if ZERO in (kind1, kind2):
        return SINGLE.zero(sign1 ^ sign2)
    return bf_round(value1 * value2)


def added(x, y, flush, rounded, zero):
    """x + y, read with subnormal numbers as zeros or not, rounded by a function; zero: a sum of 0 of unlike signs."""
    (kind1, sign1, value1), (kind2, sign2, value2) = (unpack(c, SINGLE, flush) for c in (x, y))
    special = of_special((kind1, kind2), (sign1, sign2))
    if special is not None:
        return special
    if kind1 == kind2 == ZERO and sign1 == sign2:
        return SINGLE.zero(sign1)
    total = value1 + value2
    return rounded(total) if total else zero


def fp_add_bf16(x, y):
    return added(x, y, True, bf_round, SINGLE.zero(0))


# ---- rounding by FPCR ------------------------------------------------------------------------------------------------


def round_base(x, layout, fpcr, saturates=False):
    sign = int(x < 0)
    mantissa, exponent = normalized(abs(x))
    if not fpcr.ah and fpcr.fz and exponent < layout.least:
        return layout.zero(sign)

    def rounded(biased, m):
        whole, error = divmod(m * 2**layout.f, 1)
        whole = int(whole)
        up = {
            "RN": error > Fraction(1, 2) or (error == Fraction(1, 2) and whole & 1),
            "RP": error and not sign,
            "RM": error and sign,
            "RZ": False,
        }[fpcr.rmode]
        whole += bool(up)
        if whole == 2 ** (layout.f + 1):
            return biased + 1, whole // 2
        return (1 if biased == 0 and whole == 2**layout.f else biased), whole

    if fpcr.ah and fpcr.fz and rounded(exponent - layout.least + 1, mantissa)[0] < 1:
        return layout.zero(sign)
    biased = max(exponent - layout.least + 1, 0)
    if biased == 0:
        mantissa /= Fraction(2) ** (layout.least - exponent)
    biased, whole = rounded(biased, mantissa)
    if biased >= (1 << layout.e) - 1:
        infinite = {"RN": not saturates, "RP": not sign, "RM": sign, "RZ": False}[fpcr.rmode]
        return layout.infinity(sign) if infinite else layout.most(sign)
    return layout.pack(sign, biased, whole & ((1 << layout.f) - 1))


def of_zero(fpcr, layout=SINGLE):
    return layout.zero(int(fpcr.rmode == "RM"))


def flushes_inputs(fpcr):
    return fpcr.fiz or (fpcr.fz and not fpcr.ah)


def fp_dot(x, y, layout, fpcr):
    flush = flushes_inputs(fpcr) and layout != LAYOUTS["binary16"]
    left, right = ([unpack(c, layout, flush) for c in codes] for codes in (x, y))
    kinds, signs = [], []
    for (kind1, sign1, _), (kind2, sign2, _) in zip(left, right, strict=True):
        both = {kind1, kind2}
        kinds.append(
            NAN if NAN in both or both == {INFINITY, ZERO} else INFINITY if INFINITY in both
            else ZERO if ZERO in both else NONZERO
        )  # fmt: skip
        signs.append(sign1 ^ sign2)
    special = of_special(kinds, signs)
    if special is not None:
        return special
    if kinds == [ZERO, ZERO] and signs[0] == signs[1]:
        return SINGLE.zero(signs[0])
    total = left[0][2] * right[0][2] + left[1][2] * right[1][2]
    return round_base(total, SINGLE, fpcr) if total else of_zero(fpcr)


def fp_add(x, y, fpcr):
    return added(x, y, flushes_inputs(fpcr), lambda total: round_base(total, SINGLE, fpcr), of_zero(fpcr))


# ---- the instructions ------------------------------------------------------------------------------------------------


def bf_dot_add(addend, x, y, ebf=False, fpcr=None):
    """BFDOT's element: two codes of bfloat16 in x and y."""
    if not ebf:
        return fp_add_bf16(addend, fp_add_bf16(bf_mul_h(x[0], y[0]), bf_mul_h(x[1], y[1])))
    return fp_add(addend, fp_dot(x, y, LAYOUTS["bfloat16"], fpcr or FPCR()), fpcr or FPCR())


def fp_dot_add(addend, x, y, fpcr=None):
    """That of FDOT of binary16."""
    return fp_add(addend, fp_dot(x, y, LAYOUTS["binary16"], fpcr or FPCR()), fpcr or FPCR())


def bf_mat_mul_add_h(addend, x, y, ebf=False, fpcr=None):
    """BFMMLA's element: four codes in x and y."""
    for k in (0, 2):
        addend = bf_dot_add(addend, x[k : k + 2], y[k : k + 2], ebf, fpcr)
    return addend


def fp8_dot_add(addend, x, y, fx, fy, result, lscale=0, osm=False):
    """That of FDOT, FMLAL, FMLALL and FMMLA: as many codes in x and y as the instruction has products."""
    layout = LAYOUTS[result]
    kind, sign, value = unpack(addend, layout)
    products = [(unpack(p, LAYOUTS[fx]), unpack(q, LAYOUTS[fy])) for p, q in zip(x, y, strict=True)]
    infinite, zeros, invalid = ({sign} if kind == INFINITY else set()), {(kind == ZERO, sign)}, kind == NAN
    total = Fraction(0)
    for (kind1, sign1, value1), (kind2, sign2, value2) in products:
        both = {kind1, kind2}
        invalid |= NAN in both or both == {INFINITY, ZERO}
        if INFINITY in both:
            infinite.add(sign1 ^ sign2)
        zeros.add((ZERO in both, sign1 ^ sign2))
        total += value1 * value2
    if invalid or len(infinite) == 2:
        return layout.nan
    if infinite:
        return layout.infinity(*infinite)
    if zeros in ({(True, 0)}, {(True, 1)}):
        return layout.zero(sign)
    scale = lscale if result == "binary32" else lscale & 15
    total = value + total / 2**scale
    return round_base(total, layout, FPCR(), saturates=osm) if total else layout.zero(0)
