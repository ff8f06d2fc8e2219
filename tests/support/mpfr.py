"""Rounding by MPFR."""

import gmpy2

MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "toward_zero": gmpy2.RoundToZero,
    "up": gmpy2.RoundUp,
    "down": gmpy2.RoundDown,
    "away_from_zero": gmpy2.RoundAwayZero,
}


def context(fmt, mode):
    lowest = (1 - fmt.emax) - fmt.mantissa_bits + 1
    return gmpy2.context(
        precision=fmt.precision, emax=fmt.emax + 1, emin=lowest, subnormalize=True, round=MPFR_MODES[mode]
    )


def code_of(value, fmt) -> int:
    """The code of an MPFR number that has been rounded to the format."""
    sign = int(gmpy2.is_signed(value)) << (fmt.bits - 1)
    if gmpy2.is_infinite(value):
        return sign | fmt.inf_code
    if value == 0:
        return sign
    significand, exponent = value.as_mantissa_exp()
    significand, exponent = abs(int(significand)), int(exponent)
    e = exponent + significand.bit_length() - 1
    quantum = max(e, fmt.emin) - fmt.mantissa_bits
    shift = exponent - quantum
    significand = significand << shift if shift >= 0 else significand >> -shift
    return sign | ((max(e, fmt.emin) - fmt.emin) << fmt.mantissa_bits) + significand
