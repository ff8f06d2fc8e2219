"""The RISC-V Bulk Normalization Algorithm's pseudocode, line by line, in its names.

Source: RISC-V Instruction Set Manual, src/unpriv/rvbna.adoc (commit 1d472b80, August 2026), `published`, and with the
masks of its pull request 3244 (commit 93c538a6), `corrected`. Two things are Python's: fields of E4M3, which has no
infinity and one NaN of each sign, are said by `of_e4m3`, as the text asks for formats of other encodings; and the
signaling NaNs of 8-bit formats are `quiet_nans`.
"""

from typing import NamedTuple

NV, OF = "invalid", "overflow"


class Factor(NamedTuple):
    """e and m: bits of the exponent and of the mantissa."""

    e: int
    m: int
    of_e4m3: bool = False
    quiet_nans: bool = False


FACTORS = {
    "bfloat16": Factor(8, 7), "binary16": Factor(5, 10), "e5m2": Factor(5, 2), "e4m3": Factor(4, 3),
    "e4m3fn": Factor(4, 3, of_e4m3=True, quiet_nans=True), "e3m2": Factor(3, 2), "e2m2": Factor(2, 2),
}  # fmt: skip


class Lines(NamedTuple):
    """What the pseudocode has at its end: the normal result's jam, and the subnormal result."""

    jam: object
    subnormal: object


def _published_jam(acc_abs, lzc, g, o):
    raw = (1 << (g + o + 1)) - 1
    mask = raw >> (0 if lzc > g + o + 1 else g + o + 1 - lzc)
    return ((acc_abs << lzc) & mask) != 0


def _published_subnormal(acc_abs, lzc, res_exp, q, g, o):
    denormalized = acc_abs >> (q - 1 + res_exp)
    mask = ((1 << (q - 1)) - 1) >> (q - 1 + res_exp)
    return denormalized | ((acc_abs & mask) != 0)


def _corrected_jam(acc_abs, lzc, g, o):
    raw = (1 << (g + o + 1)) - 1
    shift = g + o + 1 if lzc > g + o + 1 else lzc
    return (acc_abs & (raw >> shift)) != 0


def _corrected_subnormal(acc_abs, lzc, res_exp, q, g, o):
    shift = -res_exp
    denormalized = (acc_abs << lzc) >> (g + o + 1 + 1 + shift)
    mask = (1 << (g + o + 1 + 1 + shift)) - 1
    return denormalized | (((acc_abs << lzc) & mask) != 0)


published = Lines(_published_jam, _published_subnormal)
corrected = Lines(_corrected_jam, _corrected_subnormal)


def bulk_normalized_dot_product(A, B, left: Factor, right: Factor, q: int, f: int, n: int, lines: Lines):
    """(code, flags, whether the result is subnormal) of n products; the accumulator has g + q + 1 + o bits."""
    g = o = (n - 1).bit_length()
    (e_l, m_l), (e_r, m_r) = left[:2], right[:2]
    p_l, p_r = m_l + 1, m_r + 1
    max_exp = 0
    exps, signs, sigs = [0] * n, [0] * n, [0] * n
    overflow_exp = (1 << f) - 1
    lhs_bias, rhs_bias, res_bias = (1 << (e_l - 1)) - 1, (1 << (e_r - 1)) - 1, (1 << (f - 1)) - 1
    prod_op_bias = lhs_bias + rhs_bias
    nan_result = infinite_result = invalid_flag = False
    infinite_sign = 0
    for i in range(n):
        a_exp, b_exp = (A[i] >> m_l) & ((1 << e_l) - 1), (B[i] >> m_r) & ((1 << e_r) - 1)
        a_mant, b_mant = A[i] & ((1 << m_l) - 1), B[i] & ((1 << m_r) - 1)
        signs[i] = ((A[i] >> (e_l + m_l)) & 1) ^ ((B[i] >> (e_r + m_r)) & 1)
        a_sub, b_sub = a_exp == 0, b_exp == 0
        a_zero, b_zero = a_sub and a_mant == 0, b_sub and b_mant == 0
        a_inf, a_nan, a_snan = _special(a_exp, a_mant, left)
        b_inf, b_nan, b_snan = _special(b_exp, b_mant, right)
        invalid_prod = (a_inf and b_zero) or (b_inf and a_zero)
        infinite_prod = (a_inf and not b_nan and not b_zero) or (b_inf and not a_nan and not a_zero)
        invalid_sum = infinite_result and infinite_prod and infinite_sign != signs[i]
        infinite_result = infinite_result or infinite_prod
        invalid_flag = invalid_flag or invalid_prod or invalid_sum or a_snan or b_snan
        infinite_sign = signs[i] if infinite_prod else infinite_sign
        nan_result = nan_result or a_nan or b_nan or invalid_prod or invalid_sum
        sigs[i] = (((not a_sub) << (p_l - 1)) | a_mant) * (((not b_sub) << (p_r - 1)) | b_mant)
        exps[i] = 0 if a_zero or b_zero else (1 if a_sub else a_exp) + (1 if b_sub else b_exp)
        max_exp = max(exps[i], max_exp)
    if nan_result:
        return (overflow_exp << (q - 1)) | (1 << (q - 2)), {NV} if invalid_flag else set(), False
    if infinite_result:
        return (infinite_sign << (q + f - 1)) | (overflow_exp << (q - 1)), set(), False

    accumulator = 0
    for i in range(n):
        align_shift = max_exp - exps[i]
        pad_right = q + 1 + g - (p_l + p_r)
        aligned = (sigs[i] << pad_right) >> align_shift
        # a shift of a mask to the left leaves the mask's bits, which are all that a product has
        kept = q + 1 + g - align_shift
        mask = (1 << (p_l + p_r)) - 1
        discarded = sigs[i] & (mask >> kept if kept >= 0 else mask)
        jam = (sigs[i] if align_shift >= q + 1 + g else discarded) != 0
        aligned |= jam
        accumulator += -aligned if signs[i] else aligned

    acc_sign = accumulator < 0
    acc_abs = abs(accumulator)
    lzc = (g + q + 1 + o) - acc_abs.bit_length()
    res_exp = 0 if accumulator == 0 else (max_exp + o + 1 - lzc) - prod_op_bias + res_bias
    rounded = ((acc_abs << lzc) >> (g + o + 1)) | lines.jam(acc_abs, lzc, g, o)
    sign = acc_sign << (q + f - 1)
    if acc_abs == 0:
        return 0, set(), False
    if res_exp >= overflow_exp:
        return sign | (overflow_exp << (q - 1)), {OF}, False
    if res_exp >= 1:
        return sign | (res_exp << (q - 1)) | (rounded & ((1 << (q - 1)) - 1)), set(), False
    if res_exp < -(q - 1):
        return sign | 1, set(), True
    return sign | lines.subnormal(acc_abs, lzc, res_exp, q, g, o), set(), True


def _special(exp: int, mant: int, factor: Factor) -> tuple[bool, bool, bool]:
    """Whether a factor is infinite, a NaN, and a signaling one."""
    if factor.of_e4m3:
        return False, exp == 15 and mant == 7, False
    top = exp == (1 << factor.e) - 1
    signaling = top and mant != 0 and not mant & (1 << (factor.m - 1))
    return top and mant == 0, top and mant != 0, signaling and not factor.quiet_nans
