"""Elementary functions: special values, then a rational number that rounds as the result does.

Sources: IEEE Std 754-2019, clause 9.2.1 (special values), 7.3 (division by zero); limits for the functions it lacks.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from softnum.reference import reals
from softnum.reference.nans import INVALID_RESULT, nan_of
from softnum.reference.operations import is_zero, prepare
from softnum.reference.rounding import DIVIDE_BY_ZERO, deliver
from softnum.reference.rules import Flags
from softnum.reference.values import Value

if TYPE_CHECKING:
    from softnum.reference.facts import Format

__all__ = [
    "acos", "acosh", "acospi", "asin", "asinh", "asinpi", "atan", "atan2", "atan2pi", "atanh", "atanpi", "cbrt",
    "compound", "cos", "cosh", "cospi", "erf", "exp", "exp10", "exp10m1", "exp2", "exp2m1", "expm1", "gelu", "hypot",
    "log", "log10", "log10p1", "log1p", "log2", "log2p1", "logaddexp", "logaddexp2", "pow", "pown", "powr",
    "reciprocal", "rootn", "rsqrt", "sigmoid", "silu", "sin", "sinh", "sinpi", "softplus", "tan", "tanh", "tanpi",
]  # fmt: skip

# No rounding looks at more than 170 bits of a result (`_root` in operations.py says what it looks at): a number with
# the same first BITS bits as an irrational result rounds as it does.
BITS = 200
# Beyond 2**FAR all results round alike, and below 2**-FAR.
FAR = 1 << 18
# A fraction that no fixed-point format has: large results are inexact too.
_FAR_BELOW = -200
_INEXACT = Fraction(1, 1 << -_FAR_BELOW)
_LITTLE = Fraction(1, 1 << (BITS + 20))
_NEARLY_ONE = reals.Interval((1 << 195) - 1, (1 << 195) + 1, -195)

_TWO = {"atan2", "atan2pi", "compound", "hypot", "logaddexp", "logaddexp2", "pow", "pown", "powr", "rootn"}

# f(+-0) = +-0
_ODD = {
    "sin", "tan", "asin", "atan", "sinh", "tanh", "erf", "cbrt", "expm1", "log1p", "gelu", "silu", "asinh", "atanh",
    "sinpi", "tanpi", "asinpi", "atanpi", "exp2m1", "exp10m1", "log2p1", "log10p1",
}  # fmt: skip
_LOGS = ("log", "log2", "log10")
_LOGS_OF_MORE = ("log1p", "log2p1", "log10p1")
_EXPS = ("exp", "exp2", "exp10")
_EXPS_LESS_ONE = ("expm1", "exp2m1", "exp10m1")
_LINEAR = ("sinpi", "tanpi", "asinpi", "atanpi", "exp2m1", "exp10m1", "log2p1", "log10p1")  # c x, for small x
# not defined for infinities, and beyond 1
_NO_INFINITY = ("sin", "cos", "tan", "asin", "acos", "sinpi", "cospi", "tanpi", "asinpi", "acospi", "atanh")
_UP_TO_ONE = ("asin", "acos", "asinpi", "acospi", "atanh")


def _special_unary(name: str, x: Value):
    """(the value, flags) where a clause or a limit says it, for an x that is no NaN; None elsewhere."""
    one, half, zero, inf = Value("finite", 0, 1), Value("finite", 0, 1, 2), Value("finite"), Value("inf")
    signed_zero, signed_one = Value("finite", x.sign), Value("finite", x.sign, 1)
    if is_zero(x):
        if name in _ODD:
            return signed_zero, 0
        if name in (*_EXPS, "cos", "cosh", "cospi"):
            return one, 0
        if name in _LOGS:
            return Value("inf", 1), DIVIDE_BY_ZERO
        if name in ("reciprocal", "rsqrt"):
            return Value("inf", x.sign), DIVIDE_BY_ZERO
        if name == "acosh":
            return INVALID_RESULT, 0
        return (half, 0) if name in ("sigmoid", "acospi") else None
    if x.kind == "inf":
        if name in _NO_INFINITY:
            return INVALID_RESULT, 0
        if name in ("sinh", "asinh", "cbrt"):
            return x, 0
        if name in ("tanh", "erf"):
            return signed_one, 0
        if name == "cosh":
            return inf, 0
        if name == "reciprocal":
            return signed_zero, 0
        if name == "atan":
            return (-2 if x.sign else 2), 0
        if name == "atanpi":
            return Value("finite", x.sign, 1, 2), 0
        if x.sign and name in (*_LOGS, *_LOGS_OF_MORE, "rsqrt", "acosh"):
            return INVALID_RESULT, 0
        at_minus = dict.fromkeys(_EXPS, zero) | dict.fromkeys(_EXPS_LESS_ONE, signed_one)
        if x.sign:
            return (at_minus | {"softplus": zero, "sigmoid": zero}).get(name, signed_zero), 0
        return {"sigmoid": one, "rsqrt": zero}.get(name, inf), 0
    if name in (*_LOGS, "rsqrt") and x.sign:
        return INVALID_RESULT, 0
    if name in _UP_TO_ONE and x.numerator > x.denominator:
        return INVALID_RESULT, 0
    if name == "acosh" and x.fraction < 1:
        return INVALID_RESULT, 0
    if name == "atanh" and x.numerator == x.denominator:
        return Value("inf", x.sign), DIVIDE_BY_ZERO
    if name in _LOGS_OF_MORE and x.fraction <= -1:
        return (INVALID_RESULT, 0) if x.fraction < -1 else (Value("inf", 1), DIVIDE_BY_ZERO)
    whole = x.fraction.denominator == 1
    if name == "sinpi" and whole:
        return signed_zero, 0
    if name == "tanpi" and whole:  # +0 of positive even and of negative odd integers
        return Value("finite", x.sign ^ (x.fraction.numerator % 2)), 0
    if name == "tanpi" and x.fraction.denominator == 2:
        return Value("inf", (x.fraction - Fraction(1, 2)).numerator % 2), DIVIDE_BY_ZERO
    return None


def _special_pow(x: Value, y: Value):
    """The table of pow in clause 9.2.1, for operands that are no NaN."""
    one, zero, inf = Value("finite", 0, 1), Value("finite"), Value("inf")
    finite = y.kind == "finite"
    odd = finite and y.fraction.denominator == 1 and y.fraction.numerator % 2 == 1
    if is_zero(y) or (x.kind == "finite" and x.fraction == 1):
        return one, 0
    if is_zero(x):
        if not y.sign:
            return Value("finite", x.sign if odd else 0), 0
        return Value("inf", x.sign if odd else 0), DIVIDE_BY_ZERO if finite else 0
    if y.kind == "inf":
        size = 2 if x.kind == "inf" else abs(x.fraction)
        return (one if size == 1 else inf if (size > 1) != y.sign else zero), 0
    if x.kind == "inf":
        return Value("finite" if y.sign else "inf", x.sign if odd else 0), 0
    if x.sign and y.fraction.denominator != 1:
        return INVALID_RESULT, 0
    return None


def _special_powr(x: Value, y: Value):
    """The table of powr: of exp(y log(x))."""
    one, zero, inf = Value("finite", 0, 1), Value("finite"), Value("inf")
    if x.sign and not is_zero(x):
        return INVALID_RESULT, 0
    if x.kind == "finite" and x.fraction == 1:
        return (INVALID_RESULT if y.kind == "inf" else one), 0
    if is_zero(x) or x.kind == "inf":
        if is_zero(y):
            return INVALID_RESULT, 0
        if is_zero(x) and y.sign:
            return inf, DIVIDE_BY_ZERO if y.kind == "finite" else 0
        return (zero if is_zero(x) or y.sign else inf), 0
    if y.kind == "inf":
        return (inf if (x.fraction > 1) != y.sign else zero), 0
    return (one, 0) if is_zero(y) else None


def _special_compound(x: Value, n: int):
    one, zero, inf = Value("finite", 0, 1), Value("finite"), Value("inf")
    if x.sign and (x.kind == "inf" or x.fraction < -1):
        return INVALID_RESULT, 0
    if n == 0 or is_zero(x):
        return one, 0
    if x.kind == "inf":
        return (inf if n > 0 else zero), 0
    if x.fraction == -1:
        return (zero, 0) if n > 0 else (inf, DIVIDE_BY_ZERO)
    return None


def _special_rootn(x: Value, n: int):
    sign = x.sign * (n % 2)
    if n == 0 or (x.sign and not is_zero(x) and n % 2 == 0):
        return INVALID_RESULT, 0
    if is_zero(x):
        return (Value("finite", sign), 0) if n > 0 else (Value("inf", sign), DIVIDE_BY_ZERO)
    if x.kind == "inf":
        return Value("inf" if n > 0 else "finite", sign), 0
    return None


def _special_angle(y: Value, x: Value, p3109: bool):
    """A number of quarters of pi, with y's sign, or a zero."""
    infinite = (y.kind == "inf") + (x.kind == "inf")
    if p3109 and (infinite == 2 or (is_zero(x) and is_zero(y))):
        return INVALID_RESULT, 0
    if infinite == 2:
        quarters = 3 if x.sign else 1
    elif y.kind == "inf" or (is_zero(x) and not is_zero(y)):
        quarters = 2
    elif x.kind == "inf" or is_zero(y):
        if not x.sign:
            return Value("finite", y.sign), 0
        quarters = 4
    else:
        return None
    return (-quarters if y.sign else quarters), 0


def _special_sum(x: Value, y: Value):
    """Of log(e^x + e^y)."""
    infinite = [v for v in (x, y) if v.kind == "inf"]
    if any(not v.sign for v in infinite) or len(infinite) == 2:
        return Value("inf", int(all(v.sign for v in infinite))), 0
    if not infinite:
        return None
    other = y if x.kind == "inf" else x
    return (Value("finite") if is_zero(other) else other), 0


def _special_binary(name: str, x: Value, y: Value, p3109: bool):
    if name == "powr":
        return _special_powr(x, y)
    if name in ("compound", "pown", "rootn"):
        if y.kind == "inf" or y.fraction.denominator != 1:
            return INVALID_RESULT, 0
        if name == "pown":
            return _special_pow(x, y)
        return {"compound": _special_compound, "rootn": _special_rootn}[name](x, y.fraction.numerator)
    if name in ("atan2", "atan2pi"):
        return _special_angle(x, y, p3109)
    if name in ("logaddexp", "logaddexp2"):
        return _special_sum(x, y)
    if name == "pow":
        return _special_pow(x, y)
    if "inf" in (x.kind, y.kind):
        return Value("inf"), 0
    return (Value("finite"), 0) if is_zero(x) and is_zero(y) else None


def _nan(name: str, operands, p3109: bool, profile: str):
    """What operands of which one is NaN give."""
    if not p3109 and not any(x.signaling for x in operands):
        if name == "hypot" and "inf" in [x.kind for x in operands]:
            return Value("inf")
        if name in ("pow", "pown", "compound") and is_zero(operands[1]):
            return Value("finite", 0, 1)
        if name == "pow" and operands[0].kind == "finite" and operands[0].fraction == 1:
            return Value("finite", 0, 1)
    return nan_of(profile, *operands)


def delivered(
    name: str,
    codes: tuple[Any, ...],
    fmt: Format | str,
    out_fmt: Format | str | None = None,
    *,
    number: int | None = None,
    **environment: Any,
) -> tuple[int, Flags]:
    """(code, flags) of an elementary function of codes. number(name, *fractions): `real`, or what takes its place."""
    operands, out_fmt, env = prepare(codes, fmt, out_fmt, environment)
    if any(x.kind == "nan" for x in operands):
        return deliver(_nan(name, operands, out_fmt.p3109, env.nan), out_fmt, env)
    if len(operands) == 1:
        found = _special_unary(name, *operands)
    else:
        found = _special_binary(name, *operands, out_fmt.p3109)
    number = number or real
    if found is not None:
        value, raised = found
        if raised and out_fmt.p3109 and not name.startswith("log") and name != "atanh":
            return deliver(INVALID_RESULT, out_fmt, env)
        if not isinstance(value, int):
            return deliver(value, out_fmt, env, raised)
        x = Fraction(value, 4) if name == "atan2pi" else number("quarters", Fraction(value))
    else:
        x = number(name, *(v.fraction for v in operands))
    return deliver(Value("finite", int(x < 0), abs(x.numerator), x.denominator), out_fmt, env)


def real(name: str, *x: Fraction) -> Fraction:
    """A rational number that rounds as the function's value does, itself if it is exact; the function is defined there.

    >>> from fractions import Fraction
    >>> from softnum.reference.elementary import real
    >>> real("exp2", Fraction(-3)), float(real("exp", Fraction(1)))
    (Fraction(1, 8), 2.718281828459045)
    """
    name = "pow" if name in ("pown", "powr") else name
    found = _exact(name, *x)
    if found is None:
        found = _beside(name, *x)
    bits = BITS + 40
    lowest = _lowest_bit(*x) if name in ("pow", "compound") else _FAR_BELOW
    while found is None:
        interval = _interval(name, x, bits)
        found = None if interval is None else _common(interval, lowest)
        bits *= 2
        if bits > 1 << 17:
            raise ValueError(f"{name}{x}: not decided at {bits // 2} bits")
    return found


def _lowest_bit(x: Fraction, n: Fraction) -> int:
    """The exponent of the lowest bit of x**n and, if that is below 0, of (1 + x)**n."""
    if n.denominator != 1 or n < 0:
        return _FAR_BELOW
    low = (x.numerator & -x.numerator).bit_length() - x.denominator.bit_length()
    return max(_FAR_BELOW, low * n.numerator)


def _common(y: reals.Interval, lowest: int) -> Fraction | None:
    """The middle of the numbers that begin as all of an interval do, on BITS bits; None if they do not agree.

    A large one has the bit 2**lowest, for it is inexact in a fixed-point format without that.
    """
    if y.low < 0 < y.high or y.low == 0 or y.high == 0:
        return None
    low, high = (y.low, y.high) if y.low > 0 else (-y.high, -y.low)
    n = low.bit_length() - BITS
    if n <= 0 or low >> n != high >> n:
        return None
    middle = (2 * (low >> n) + 1) * Fraction(2) ** (n - 1 + y.e)
    if n + y.e > lowest and lowest < 0:
        middle += Fraction(2) ** lowest
    return middle if y.low > 0 else -middle


def _dyadic_root(x: Fraction, degree: int) -> Fraction | None:
    """The positive root of a positive dyadic number, if it is dyadic."""
    parts = []
    for n in (x.numerator, x.denominator):
        low, high = 0, 1 << (n.bit_length() // degree + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**degree <= n else (low, middle)
        if low**degree != n:
            return None
        parts.append(low)
    return Fraction(*parts)


def _odd_bits(x: Fraction) -> int:
    """The bits of a dyadic number from its first to its last 1."""
    n = abs(x.numerator)
    return n.bit_length() - (n & -n).bit_length() + 1


def _power_of_two(exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1:
        return None
    return Fraction(2) ** max(-FAR, min(exponent.numerator, FAR))


def _exact(name: str, x: Fraction, y: Fraction | None = None) -> Fraction | None:
    """The value where it is rational."""
    if name in ("log", "acos", "acosh") and x == 1:
        return Fraction(0)
    if name in ("exp2", "exp2m1"):
        found = _power_of_two(x)
        return found if found is None or name == "exp2" else found - 1
    if name in ("exp10", "exp10m1") and x.denominator == 1:
        found = Fraction(10) ** max(-FAR // 3, min(x.numerator, FAR // 3))
        return found if name == "exp10" else found - 1
    if name in ("sinpi", "cospi", "tanpi"):
        parts = (4 if name == "tanpi" else 2) * x
        values = {"sinpi": (0, 1, 0, -1), "cospi": (1, 0, -1, 0), "tanpi": (0, 1, None, -1)}[name]
        return Fraction(values[parts.numerator % 4]) if parts.denominator == 1 else None
    if name in ("asinpi", "acospi"):
        found = {Fraction(1, 2): Fraction(1, 6), Fraction(1): Fraction(1, 2)}.get(abs(x))
        found = found if found is None or x > 0 else -found
        return found if found is None or name == "asinpi" else Fraction(1, 2) - found
    if name == "atanpi":
        return x / 4 if abs(x) == 1 else None
    if name == "atan2pi":
        return Fraction(3 if y < 0 else 1, 4 if x > 0 else -4) if abs(x) == abs(y) else None
    if name == "logaddexp2":
        return x + 1 if x == y else None
    if name == "compound":
        base = 1 + x
        if (base.numerator & (base.numerator - 1)) == 0 == (base.denominator & (base.denominator - 1)):
            return _power_of_two((base.numerator.bit_length() - base.denominator.bit_length()) * y)
        return base**y.numerator if _odd_bits(base) * abs(y) <= 4 * BITS else None
    if name == "rootn":
        return _exact_root(x, y.numerator)
    if name == "reciprocal":
        return 1 / x
    if name == "rsqrt":
        return _dyadic_root(1 / x, 2)
    if name == "cbrt":
        found = _dyadic_root(abs(x), 3)
        return found if found is None or x > 0 else -found
    if name == "hypot":
        low, high = sorted((abs(x), abs(y)))
        return _dyadic_root(x * x + y * y, 2) if high < low * 2**400 or not low else None
    two = name == "log2" or name == "pow"
    if two and (abs(x.numerator) & (abs(x.numerator) - 1)) == 0 == (x.denominator & (x.denominator - 1)):
        exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
        if name == "log2":
            return Fraction(exponent)
        found = _power_of_two(exponent * y)
        return -found if found is not None and x < 0 and y.numerator % 2 else found
    if name in ("log10", "log10p1"):
        power = x if name == "log10" else x + 1
        k = power.numerator.bit_length() * 1233 >> 12  # log10(2) = 0.30103
        return Fraction(k) if power == 10**k else None
    if name == "log2p1":
        return _exact("log2", x + 1)
    if name == "pow" and y > 0:
        degree = y.denominator
        base = _dyadic_root(abs(x), degree) if degree <= 64 else None
        if base is not None and y.numerator * (_odd_bits(base) - 1) <= 4 * BITS:
            return base**y.numerator * (-1 if x < 0 and y.numerator % 2 else 1)
    return None


def _exact_root(x: Fraction, n: int) -> Fraction | None:
    """x**(1/n) where it is dyadic, or the inverse of a dyadic number."""
    size, sign = abs(x), -1 if x < 0 else 1
    if (size.numerator & (size.numerator - 1)) == 0 == (size.denominator & (size.denominator - 1)):
        found = _power_of_two(Fraction(size.numerator.bit_length() - size.denominator.bit_length(), n))
    else:
        odd = size.numerator // (size.numerator & -size.numerator)  # 3**abs(n) or more where it is such a power
        found = _dyadic_root(size, abs(n)) if abs(n) < odd.bit_length() else None
        found = 1 / found if found is not None and n < 0 else found
    return None if found is None else sign * found


def _beside_pair(name: str, x: Fraction, y: Fraction) -> Fraction | None:
    """`_beside` of two operands."""
    less, more = 1 - _LITTLE, 1 + _LITTLE
    far = 1 << 200
    if name in ("atan2", "atan2pi"):
        ratio, sign = abs(x / y), 1 if x > 0 else -1
        if name == "atan2":
            return sign * (ratio - ratio**3 / 3) if ratio * (1 << 100) < 1 and y > 0 else None
        if ratio > far:
            return sign * (less if y > 0 else more) / 2
        return sign * less if ratio * far < 1 and y < 0 else None
    if name in ("logaddexp", "logaddexp2"):
        low, high = sorted((x, y))
        apart, size = high - low, abs(high)
        if not high and apart > 1:
            return Fraction(1, 2**FAR) if apart > 4 * FAR else None
        if name == "logaddexp2" and max(-low, high) * far < 1:  # 1 + (x + y) / 2 + (x - y)**2 log(2) / 8
            beyond = {(x + y) / 2 + apart**2 * Fraction(c, 10**6) > 0 for c in (86643, 86644)}
            return {(True,): more, (False,): less}[tuple(beyond)]
        tiny = max(0, size.denominator.bit_length() - size.numerator.bit_length())
        return high * (more if high > 0 else less) if apart > 2 * BITS + 2 * tiny else None
    if name == "compound":
        if abs(x * y) * far < 1:
            return more if (x > 0) == (y > 0) else less
        if x > far and (x.numerator & (x.numerator - 1)) == 0:
            return _power_of_two((x.numerator.bit_length() - 1) * y) * (more if y > 0 else less)
    return None


def _beside(name: str, x: Fraction, y: Fraction | None = None) -> Fraction | None:
    """Numbers nearer to an exact one than 2^-BITS of it, where evaluation would take long."""
    if y is not None:
        return _beside_pair(name, x, y)
    small, large = abs(x) < Fraction(1, 1 << 200), abs(x) > 1000
    less, more = 1 - _LITTLE, 1 + _LITTLE
    if small:
        if name in ("sin", "tanh", "atan", "asinh"):
            return x * less
        if name in ("tan", "asin", "sinh", "atanh"):
            return x * more
        if name == "acospi":
            return (less if x > 0 else more) / 2
        if name in ("expm1", "log1p", "gelu", "silu"):
            up = (x > 0) != (name == "log1p")
            return (x / 2 if name in ("gelu", "silu") else x) * (more if up else less)
        if name in (*_EXPS, "sigmoid"):
            return (more if x > 0 else less) * (Fraction(1, 2) if name == "sigmoid" else 1)
        return {"cos": less, "cospi": less, "cosh": more}.get(name)
    if name == "erf" and x * x > 200:  # 1 - e^-200 or more
        return less if x > 0 else -less
    if name == "gelu" and x * x > (400 if x > 0 else 2 * FAR):
        return x * less if x > 0 else -Fraction(1, 2**FAR)
    if large:
        if name == "tanh":
            return less if x > 0 else -less
        if name in _EXPS_LESS_ONE and x < 0:
            return -less
        if name == "atanpi" and abs(x) > 1 << 200:
            return (less if x > 0 else -less) / 2
        if name == "log2p1" and x > 1 << 200 and (x.numerator & (x.numerator - 1)) == 0:
            return (x.numerator.bit_length() - 1) * more
        if x > 0 and name in ("sigmoid", "softplus", "silu"):
            return {"sigmoid": less, "softplus": x * more}.get(name, x * less)
        if abs(x) > FAR and name in (*_EXPS, *_EXPS_LESS_ONE, "sinh", "cosh", "sigmoid", "softplus", "silu", "gelu"):
            sign = -1 if x < 0 and name in ("sinh", "silu", "gelu") else 1
            return sign * (2**FAR + _INEXACT if x > 0 or name in ("sinh", "cosh") else Fraction(1, 2**FAR))
    return None


def _interval(name: str, x: tuple[Any, ...], bits: int) -> reals.Interval | None:
    """An interval that holds the value, of about so many bits unless some cancel."""
    one = reals.ONE
    v = reals.of(x[0], bits)
    add, divide, multiply = (lambda a, b, f=f: f(a, b, bits) for f in (reals.add, reals.divide, reals.multiply))
    exp, log = (lambda a, f=f: f(a, bits) for f in (reals.exp, reals.log))
    if name == "quarters":
        return multiply(v, reals.pi(bits).scaled(-2))
    base = one
    if name in ("exp2", "exp2m1", "log2", "log2p1", "logaddexp2"):
        base = reals.log_of_2(bits)
    if name in ("exp10", "exp10m1", "log10", "log10p1"):
        base = log(reals.of(Fraction(10), bits))
    if abs(x[0]) < Fraction(1, 1 << 200) and name in _LINEAR:  # but for 2^-195 of it
        if name.endswith("pi"):
            y = multiply(v, reals.pi(bits)) if name in ("sinpi", "tanpi") else divide(v, reals.pi(bits))
        else:
            y = multiply(v, base) if name in _EXPS_LESS_ONE else divide(v, base)
        return multiply(y, _NEARLY_ONE)
    if name in _EXPS:
        return exp(multiply(v, base))
    if name in _EXPS_LESS_ONE:
        return add(exp(multiply(v, base)), -one)
    if name in (*_LOGS, *_LOGS_OF_MORE):
        return divide(log(add(v, one) if name in _LOGS_OF_MORE else v), base)
    if name in ("asinh", "acosh"):
        a = abs(x[0])
        y = log(add(reals.of(a, bits), reals.root(reals.of(a * a + (1 if name == "asinh" else -1), 2 * bits), bits)))
        return -y if x[0] < 0 else y
    if name == "atanh":
        y = log(reals.of((1 + abs(x[0])) / (1 - abs(x[0])), bits)).scaled(-1)
        return -y if x[0] < 0 else y
    if name in ("asinpi", "acospi", "atanpi"):
        return divide(_inverse(name[:-2], x[0], bits), reals.pi(bits))
    if name in ("atan2", "atan2pi"):
        y = _inverse("atan", abs(x[0] / x[1]), bits)
        y = add(reals.pi(bits + 20), -y) if x[1] < 0 else y
        y = divide(y, reals.pi(bits)) if name == "atan2pi" else y
        return -y if x[0] < 0 else y
    if name in ("logaddexp", "logaddexp2"):
        y = _of_small_exp(exp(multiply(reals.of(-abs(x[0] - x[1]), bits), base)), bits)
        return add(reals.of(max(x), bits), divide(y, base))
    if name in ("sin", "cos", "tan", "sinpi", "cospi", "tanpi"):
        if name.endswith("pi"):
            v = multiply(reals.of(x[0] % 2 - 1, bits), reals.pi(bits))
        sine, cosine = reals.sin_cos(v, bits)
        if name in ("sinpi", "cospi"):  # an odd number of half turns away
            sine, cosine = -sine, -cosine
        if name not in ("tan", "tanpi"):
            return sine if name in ("sin", "sinpi") else cosine
        if cosine.low <= 0 <= cosine.high:
            return None
        return divide(sine, cosine) if cosine.low > 0 else divide(-sine, -cosine)
    if name in ("asin", "acos", "atan"):
        return _inverse(name, x[0], bits)
    if name in ("sinh", "cosh", "tanh"):
        up, down = exp(v), exp(-v)
        minus, plus = add(up, -down), add(up, down)
        return {"sinh": minus.scaled(-1), "cosh": plus.scaled(-1)}.get(name) or divide(minus, plus)
    if name in ("sigmoid", "silu"):
        return divide(one if name == "sigmoid" else v, add(one, exp(-v)))
    if name == "softplus":
        return _of_small_exp(exp(v), bits)
    if name == "erf":
        return reals.erf(v, bits)
    if name == "gelu":
        z = divide(v, reals.root(reals.Interval(2, 2, 0), bits))
        if x[0] < 0 and x[0] * x[0] > 2 * bits + 40:
            return multiply(v, reals.erfc_tail(-z, bits)).scaled(-1)
        return multiply(v, add(one, reals.erf(z, bits))).scaled(-1)
    if name == "rsqrt":
        return divide(one, reals.root(v, bits))
    if name == "hypot":
        square = x[0] * x[0] + x[1] * x[1]
        return reals.root(reals.of(square, 2 * bits), bits)
    negative = x[0] < 0 and name != "compound"
    if name == "compound" and abs(x[0]) < Fraction(1, 1 << 200):
        size = multiply(v, _NEARLY_ONE)
    else:
        size = log(add(v, one) if name == "compound" else -v if negative else v)
    if name == "cbrt":
        y = exp(divide(size, reals.Interval(3, 3, 0)))
        return -y if negative else y
    if name == "rootn":
        power = divide(size if x[1] > 0 else -size, reals.of(abs(x[1]), bits))
    else:
        power = multiply(size, reals.of(x[1], bits))
    top = max(abs(power.low), abs(power.high)).bit_length() + power.e
    if top > 20:
        y = reals.Interval(5, 5, 2 * FAR if power.low > 0 else -2 * FAR)
        y = y.scaled(-BITS)._replace(low=5 << BITS, high=5 << BITS)
    elif top < -BITS - 20:
        little = 1 if power.low > 0 else -1
        y = reals.Interval(*sorted(((1 << 2 * BITS) + little, (1 << 2 * BITS) + little)), -2 * BITS)
    else:
        y = exp(power)
    return -y if negative and x[1].numerator % 2 else y


def _of_small_exp(y: reals.Interval, bits: int) -> reals.Interval:
    """log(1 + y) for y > 0, which may be small."""
    k = -(y.high.bit_length() + y.e)  # y < 2^-k
    if k > bits:  # y (1 - y) < log(1 + y) < y
        return reals.multiply(y, reals.Interval((1 << k) - 1, 1 << k, -k), bits)
    return reals.log(reals.add(reals.ONE, y, bits), bits)


def _inverse(name: str, x: Fraction, bits: int) -> reals.Interval:
    """asin, acos and atan, by the atan of a number from 0 to 1."""
    quarter = reals.pi(bits + 20)  # pi
    a = abs(x)
    if name == "atan":
        inner = reals.atan(reals.of(min(a, 1 / a) if a else a, bits), bits)
        y = inner if a <= 1 else reals.add(quarter.scaled(-1), -inner, bits)
        return y if x >= 0 else -y
    other = reals.root(reals.of(1 - x * x, bits), bits) if a < 1 else reals.Interval(0, 0, 0)
    of_a = reals.of(a, bits)
    if 2 * a * a <= 1:
        sine = reals.atan(reals.divide(of_a, other, bits), bits)
    else:
        sine = reals.add(quarter.scaled(-1), -reals.atan(reals.divide(other, of_a, bits), bits), bits)
    if name == "asin":
        return sine if x >= 0 else -sine
    if x > 0 and 2 * a * a > 1:  # without cancellation near 1
        return reals.atan(reals.divide(other, of_a, bits), bits)
    return reals.add(quarter.scaled(-1), -sine if x >= 0 else sine, bits)


def _function(name: str):
    operands = 2 if name in _TWO else 1

    def function(*codes: int | Format | str, **environment: Any) -> tuple[int, Flags]:
        if len(codes) == operands + 1:
            *codes, fmt = codes
            return delivered(name, tuple(codes), fmt, **environment)
        fmt = environment.pop("fmt")
        return delivered(name, codes, fmt, **environment)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`softnum.ops.{name}` of {"two codes" if operands == 2 else "a code"}; the rest as in `add`.

    >>> from softnum import reference as ref
    >>> code, flags = ref.{name}({"0x40, 0x44" if operands == 2 else "0x38"}, "e5m2")
    """
    return function


(
    acos, acosh, acospi, asin, asinh, asinpi, atan, atan2, atan2pi, atanh, atanpi, cbrt, compound, cos, cosh, cospi,
    erf, exp, exp10, exp10m1, exp2, exp2m1, expm1, gelu, hypot, log, log10, log10p1, log1p, log2, log2p1, logaddexp,
    logaddexp2, pow, pown, powr, reciprocal, rootn, rsqrt, sigmoid, silu, sin, sinh, sinpi, softplus, tan, tanh,
    tanpi,
) = map(_function, __all__)  # fmt: skip
