"""Elementary functions: special values, then a rational number that rounds as the result does.

Sources: IEEE Std 754-2019, clause 9.2.1 (special values), 7.3 (division by zero); limits for the functions it lacks.
"""

from __future__ import annotations

from fractions import Fraction

from softnum.reference import reals
from softnum.reference.nans import INVALID_RESULT, nan_of
from softnum.reference.operations import is_zero, prepare
from softnum.reference.rounding import DIVIDE_BY_ZERO, deliver
from softnum.reference.rules import Flags
from softnum.reference.values import Value

__all__ = [
    "acos", "asin", "atan", "cbrt", "cos", "cosh", "erf", "exp", "exp2", "expm1", "gelu", "hypot", "log", "log10",
    "log1p", "log2", "pow", "reciprocal", "rsqrt", "sigmoid", "silu", "sin", "sinh", "softplus", "tan", "tanh",
]  # fmt: skip

# No rounding looks at more than 170 bits of a result (`_root` in operations.py says what it looks at): a number with
# the same first BITS bits as an irrational result rounds as it does.
BITS = 200
# Beyond 2**FAR all results round alike, and below 2**-FAR.
FAR = 1 << 18
# A fraction that no fixed-point format has: large results are inexact too.
_INEXACT = Fraction(1, 1 << 200)
_LITTLE = Fraction(1, 1 << (BITS + 20))

# f(+-0) = +-0
_ODD = {"sin", "tan", "asin", "atan", "sinh", "tanh", "erf", "cbrt", "expm1", "log1p", "gelu", "silu"}


def _special_unary(name: str, x: Value):
    """(the value, flags) where a clause or a limit says it, for an x that is no NaN; None elsewhere."""
    one, half, zero, inf = Value("finite", 0, 1), Value("finite", 0, 1, 2), Value("finite"), Value("inf")
    signed_zero, signed_one = Value("finite", x.sign), Value("finite", x.sign, 1)
    if is_zero(x):
        if name in _ODD:
            return signed_zero, 0
        if name in ("exp", "exp2", "cos", "cosh"):
            return one, 0
        if name in ("log", "log2", "log10"):
            return Value("inf", 1), DIVIDE_BY_ZERO
        if name in ("reciprocal", "rsqrt"):
            return Value("inf", x.sign), DIVIDE_BY_ZERO
        return (half, 0) if name == "sigmoid" else None
    if x.kind == "inf":
        if name in ("sin", "cos", "tan", "asin", "acos"):
            return INVALID_RESULT, 0
        if name in ("sinh", "cbrt"):
            return x, 0
        if name in ("tanh", "erf"):
            return signed_one, 0
        if name == "cosh":
            return inf, 0
        if name == "reciprocal":
            return signed_zero, 0
        if name == "atan":
            return None
        if x.sign and name in ("log", "log2", "log10", "log1p", "rsqrt"):
            return INVALID_RESULT, 0
        at_minus = {"exp": zero, "exp2": zero, "softplus": zero, "sigmoid": zero, "expm1": signed_one}
        if x.sign:
            return at_minus.get(name, signed_zero), 0
        return {"sigmoid": one, "rsqrt": zero}.get(name, inf), 0
    if name in ("log", "log2", "log10", "rsqrt") and x.sign:
        return INVALID_RESULT, 0
    if name in ("asin", "acos") and x.numerator > x.denominator:
        return INVALID_RESULT, 0
    if name == "log1p" and x.fraction <= -1:
        return (INVALID_RESULT, 0) if x.fraction < -1 else (Value("inf", 1), DIVIDE_BY_ZERO)
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


def _special_binary(name: str, x: Value, y: Value):
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
        if name == "pow" and (is_zero(operands[1]) or (operands[0].kind == "finite" and operands[0].fraction == 1)):
            return Value("finite", 0, 1)
    return nan_of(profile, *operands)


def delivered(name: str, codes: tuple, fmt, out_fmt=None, *, number=None, **environment) -> tuple[int, Flags]:
    """(code, flags) of an elementary function of codes. number(name, *fractions): `real`, or what takes its place."""
    operands, out_fmt, env = prepare(codes, fmt, out_fmt, environment)
    if any(x.kind == "nan" for x in operands):
        return deliver(_nan(name, operands, out_fmt.p3109, env.nan), out_fmt, env)
    found = _special_unary(name, *operands) if len(operands) == 1 else _special_binary(name, *operands)
    if found is not None:
        value, raised = found
        if raised and out_fmt.p3109 and not name.startswith("log"):
            return deliver(INVALID_RESULT, out_fmt, env)
        return deliver(value, out_fmt, env, raised)
    if operands[0].kind == "inf":  # atan
        x = (number or real)("half_pi")
        x = -x if operands[0].sign else x
    else:
        x = (number or real)(name, *(v.fraction for v in operands))
    return deliver(Value("finite", int(x < 0), abs(x.numerator), x.denominator), out_fmt, env)


def real(name: str, *x: Fraction) -> Fraction:
    """A rational number that rounds as the function's value does, itself if it is exact; the function is defined there.

    >>> from fractions import Fraction
    >>> from softnum.reference.elementary import real
    >>> real("exp2", Fraction(-3)), float(real("exp", Fraction(1)))
    (Fraction(1, 8), 2.718281828459045)
    """
    found = _exact(name, *x)
    if found is None:
        found = _beside(name, *x)
    bits = BITS + 40
    while found is None:
        interval = _interval(name, x, bits)
        found = None if interval is None else _common(interval)
        bits *= 2
        if bits > 1 << 17:
            raise ValueError(f"{name}{x}: not decided at {bits // 2} bits")
    return found


def _common(y: reals.Interval) -> Fraction | None:
    """The middle of the numbers that begin as all of an interval do, on BITS bits; None if they do not agree."""
    if y.low < 0 < y.high or y.low == 0 or y.high == 0:
        return None
    low, high = (y.low, y.high) if y.low > 0 else (-y.high, -y.low)
    n = low.bit_length() - BITS
    if n <= 0 or low >> n != high >> n:
        return None
    middle = (2 * (low >> n) + 1) * Fraction(2) ** (n - 1 + y.e)
    if n + y.e > -200:
        middle += _INEXACT
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


def _power_of_two(exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1:
        return None
    return Fraction(2) ** max(-FAR, min(exponent.numerator, FAR))


def _exact(name: str, x: Fraction | None = None, y: Fraction | None = None) -> Fraction | None:
    """The value where it is rational."""
    if name in ("log", "acos") and x == 1:
        return Fraction(0)
    if name == "exp2":
        return _power_of_two(x)
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
    if name == "log10":
        k = len(str(x.numerator)) - 1
        return Fraction(k) if x == 10**k else None
    if name == "pow" and y > 0:
        degree = y.denominator
        base = _dyadic_root(abs(x), degree) if degree <= 64 else None
        if base is not None and y.numerator * (base.numerator.bit_length() - 1) <= 4 * BITS:
            return base**y.numerator * (-1 if x < 0 and y.numerator % 2 else 1)
    return None


def _beside(name: str, x: Fraction | None = None, y: Fraction | None = None) -> Fraction | None:
    """Numbers nearer to an exact one than 2^-BITS of it, where evaluation would take long."""
    if x is None or name in ("pow", "hypot"):
        return None
    small, large = abs(x) < Fraction(1, 1 << 200), abs(x) > 1000
    less, more = 1 - _LITTLE, 1 + _LITTLE
    if small:
        if name in ("sin", "tanh", "atan"):
            return x * less
        if name in ("tan", "asin", "sinh"):
            return x * more
        if name in ("expm1", "log1p", "gelu", "silu"):
            up = (x > 0) != (name == "log1p")
            return (x / 2 if name in ("gelu", "silu") else x) * (more if up else less)
        if name in ("exp", "exp2", "sigmoid"):
            return (more if x > 0 else less) * (Fraction(1, 2) if name == "sigmoid" else 1)
        return {"cos": less, "cosh": more}.get(name)
    if name == "erf" and x * x > 200:  # 1 - e^-200 or more
        return less if x > 0 else -less
    if name == "gelu" and x * x > (400 if x > 0 else 2 * FAR):
        return x * less if x > 0 else -Fraction(1, 2**FAR)
    if large:
        if name == "tanh":
            return less if x > 0 else -less
        if name == "expm1" and x < 0:
            return -less
        if x > 0 and name in ("sigmoid", "softplus", "silu"):
            return {"sigmoid": less, "softplus": x * more}.get(name, x * less)
        if abs(x) > FAR and name in ("exp", "exp2", "expm1", "sinh", "cosh", "sigmoid", "softplus", "silu", "gelu"):
            sign = -1 if x < 0 and name in ("sinh", "silu", "gelu") else 1
            return sign * (2**FAR + _INEXACT if x > 0 or name in ("sinh", "cosh") else Fraction(1, 2**FAR))
    return None


def _interval(name: str, x: tuple, bits: int) -> reals.Interval | None:
    """An interval that holds the value, of about so many bits unless some cancel."""
    one = reals.ONE
    v = reals.of(x[0], bits) if x else None
    add, divide, multiply = (lambda a, b, f=f: f(a, b, bits) for f in (reals.add, reals.divide, reals.multiply))
    exp, log = (lambda a, f=f: f(a, bits) for f in (reals.exp, reals.log))
    if name == "half_pi":
        return reals.pi(bits).scaled(-1)
    if name in ("exp", "exp2"):
        return exp(v if name == "exp" else multiply(v, reals.log_of_2(bits)))
    if name == "expm1":
        return add(exp(v), -one)
    if name in ("log", "log2", "log10", "log1p"):
        y = log(add(v, one) if name == "log1p" else v)
        base = {"log2": reals.log_of_2(bits), "log10": log(reals.of(Fraction(10), bits))}.get(name, one)
        return divide(y, base)
    if name in ("sin", "cos", "tan"):
        sine, cosine = reals.sin_cos(v, bits)
        if name != "tan":
            return sine if name == "sin" else cosine
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
        y = exp(v)
        k = -(y.high.bit_length() + y.e)  # y < 2^-k
        if k > bits:  # y (1 - y) < log(1 + y) < y
            return multiply(y, reals.Interval((1 << k) - 1, 1 << k, -k))
        return log(add(one, y))
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
    negative = x[0] < 0
    size = log(-v if negative else v)
    if name == "cbrt":
        y = exp(divide(size, reals.Interval(3, 3, 0)))
        return -y if negative else y
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
    operands = 2 if name in ("pow", "hypot") else 1

    def function(*codes, **environment):
        if len(codes) == operands + 1:
            *codes, fmt = codes
            return delivered(name, tuple(codes), fmt, **environment)
        fmt = environment.pop("fmt")
        return delivered(name, codes, fmt, **environment)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`softnum.{name}` of {"two codes" if operands == 2 else "a code"}; the rest as in `add`.

    >>> from softnum import reference as ref
    >>> code, flags = ref.{name}({"0x40, 0x44" if operands == 2 else "0x38"}, "e5m2")
    """
    return function


(
    acos, asin, atan, cbrt, cos, cosh, erf, exp, exp2, expm1, gelu, hypot, log, log10, log1p, log2, pow, reciprocal,
    rsqrt, sigmoid, silu, sin, sinh, softplus, tan, tanh,
) = map(_function, __all__)  # fmt: skip
