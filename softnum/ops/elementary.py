"""Elementary functions on codes and on `Array`, correctly rounded in every format, mode and environment.

They are operations as those of `softnum.ops`, whose table they join, and NumPy's ufuncs of the same names find them.
The C core evaluates them in integers of many words, of more until the rounding is decided (elementary/unary.h
says why that ends); no result passes through binary floating point or a mathematical library. Operands of up to 16 bits
(two of up to 8) are looked up in a table from when as many elements have been asked for as it has.
"""

from __future__ import annotations

from softnum.formats.operation_names import ELEMENTARY, OPERANDS
from softnum.ops.arithmetic import CODE_OPERATIONS, OPERATIONS
from softnum.ops.operation import rounded
from softnum.ops.signatures import Binary, Unary

__all__ = [
    "acos", "acosh", "acospi", "asin", "asinh", "asinpi", "atan", "atan2", "atan2pi", "atanh", "atanpi", "cbrt",
    "compound", "cos", "cosh", "cospi", "erf", "exp", "exp10", "exp10m1", "exp2", "exp2m1", "expm1", "gelu", "hypot",
    "log", "log10", "log10p1", "log1p", "log2", "log2p1", "logaddexp", "logaddexp2", "pow", "pown", "powr",
    "reciprocal", "rootn", "rsqrt", "sigmoid", "silu", "sin", "sinh", "sinpi", "softplus", "tan", "tanh", "tanpi",
]  # fmt: skip

# constants in gradients
_LN2 = "0.69314718055994530941723212145817656807550013436026"
_LOG2_E = "1.44269504088896340735992468100189213742664595415299"
_LOG10_E = "0.43429448190325182765112891891660508229439700580367"
_TWO_OVER_ROOT_PI = "1.12837916709551257389615890312154517168810125865800"
_LN10 = "2.30258509299404568401799145468436420760110148862877"
_PI = "3.14159265358979323846264338327950288419716939937511"
_ONE_OVER_PI = "0.31830988618379067153776752674502872406891929148091"
_ROOT_HALF = "0.70710678118654752440084436210484903928483593768847"
_ONE_OVER_ROOT_TWO_PI = "0.39894228040143267793994605993438186847585863116493"

#: name -> its gradients by the operands, in the Tile language (`softnum.tile.functions`)
GRADIENTS: dict[str, tuple[str | None, ...]] = {}

_CLAUSE = "IEEE 754-2019 clause 9.2.1"
_POLES = "of 0 an infinity with its sign and DIVIDE_BY_ZERO, in P3109's formats NaN"


def _one(name: str, text: str, values: str, result: str, gradient: str, source: str = _CLAUSE) -> Unary:
    """A function of one operand; the example is of values in binary16."""
    GRADIENTS[name] = (gradient,)
    example = f'>>> sn.ops.{name}(sn.array({values}, "binary16"))\n    Array({result}, binary16)'
    return rounded(name, 1, f"The correctly rounded {text}", source, example, standard="")


def _two(name: str, text: str, a: str, b: str, result: str, *gradients: str | None, source: str = _CLAUSE) -> Binary:
    """The same of two operands, with a gradient for each, or None."""
    GRADIENTS[name] = gradients
    example = f'>>> sn.ops.{name}(sn.array({a}, "binary16"), sn.array({b}, "binary16"))\n    Array({result}, binary16)'
    return rounded(name, 2, f"The correctly rounded {text}", source, example, standard="")


_LIMITS = "special values are limits, NaNs and exceptions those of IEEE 754-2019 clauses 6 and 7"

exp: Unary = _one("exp", "``e**a``; +0 for -infinity.", "[0.0, 1.0]", "[1.     , 2.71875]", "g * y")
exp2: Unary = _one(
    "exp2",
    "``2**a``, exact for integers; +0 for -infinity.",
    "[-3.0, 0.5]",
    "[0.125    , 1.4140625]",
    f"g * (y * {_LN2})",
)
expm1: Unary = _one(
    "expm1",
    "``e**a - 1``, without cancellation; -0 for -0, -1 for -infinity.",
    "[0.001, 1.0]",
    "[1.00135803e-03, 1.71875000e+00]",
    "g * exp(a)",
)
exp10: Unary = _one(
    "exp10",
    "``10**a``, exact for integers of 0 and more; +0 for -infinity.",
    "[-2.0, 2.0]",
    "[1.00021362e-02, 1.00000000e+02]",
    f"g * (y * {_LN10})",
)
exp2m1: Unary = _one(
    "exp2m1",
    "``2**a - 1``, without cancellation, exact for integers; -0 for -0, -1 for -infinity.",
    "[0.001, -2.0]",
    "[ 6.93798065e-04, -7.50000000e-01]",
    f"g * (exp2(a) * {_LN2})",
)
exp10m1: Unary = _one(
    "exp10m1",
    "``10**a - 1``, without cancellation, exact for integers of 0 and more; -0 for -0, -1 for -infinity.",
    "[0.001, 2.0]",
    "[2.3059845e-03, 9.9000000e+01]",
    f"g * (exp10(a) * {_LN10})",
)
log: Unary = _one(
    "log",
    "natural logarithm; +0 for 1; for 0 -infinity and DIVIDE_BY_ZERO; below, INVALID.",
    "[1.0, 10.0]",
    "[0.        , 2.30273438]",
    "g / a",
)
log2: Unary = _one(
    "log2",
    "logarithm to base 2, exact for its powers; special values as of `log`.",
    "[8.0, 10.0]",
    "[3.        , 3.32226562]",
    f"g * {_LOG2_E} / a",
)
log10: Unary = _one(
    "log10",
    "logarithm to base 10, exact for its powers; special values as of `log`.",
    "[100.0, 2.0]",
    "[2.        , 0.30102539]",
    f"g * {_LOG10_E} / a",
)
log1p: Unary = _one(
    "log1p",
    "``log(1 + a)``, without cancellation; -0 for -0; for -1 -infinity and DIVIDE_BY_ZERO; below, INVALID.",
    "[0.001, 1.0]",
    "[0.00099945, 0.69335938]",
    "g / (1 + a)",
)
log2p1: Unary = _one(
    "log2p1",
    "``log2(1 + a)``, without cancellation, exact where 1 + a is a power of 2; special values as of `log1p`.",
    "[0.001, 7.0]",
    "[1.44290924e-03, 3.00000000e+00]",
    f"g * {_LOG2_E} / (1 + a)",
)
log10p1: Unary = _one(
    "log10p1",
    "``log10(1 + a)``, without cancellation, exact where 1 + a is a power of 10; special values as of `log1p`.",
    "[0.001, 99.0]",
    "[4.34160233e-04, 2.00000000e+00]",
    f"g * {_LOG10_E} / (1 + a)",
)
sin: Unary = _one(
    "sin",
    "sine of a in radians, reduced exactly; -0 for -0; INVALID for infinities.",
    "[1.0, 30000.0]",
    "[ 0.84130859, -0.80273438]",
    "g * cos(a)",
)
cos: Unary = _one(
    "cos",
    "cosine of a in radians, reduced exactly; INVALID for infinities.",
    "[1.0, 30000.0]",
    "[ 0.54052734, -0.59619141]",
    "-(g * sin(a))",
)
tan: Unary = _one(
    "tan",
    "tangent of a in radians, reduced exactly; -0 for -0; INVALID for infinities.",
    "[1.0, 1.57]",
    "[1.55761719e+00, 2.06600000e+03]",
    "g * (1 + y * y)",
)
asin: Unary = _one(
    "asin",
    "inverse sine in radians; -0 for -0; INVALID beyond 1.",
    "[0.5, -1.0]",
    "[ 0.5234375, -1.5703125]",
    "g * rsqrt(1 - a * a)",
)
acos: Unary = _one(
    "acos",
    "inverse cosine in radians; +0 for 1; INVALID beyond 1.",
    "[0.5, -1.0]",
    "[1.046875, 3.140625]",
    "-(g * rsqrt(1 - a * a))",
)
atan: Unary = _one(
    "atan",
    "inverse tangent in radians; -0 for -0, pi/2 for infinity.",
    "[1.0, -1000.0]",
    "[ 0.78515625, -1.56933594]",
    "g / (1 + a * a)",
)
sinpi: Unary = _one(
    "sinpi",
    "``sin(pi * a)``, exact for multiples of 1/2; a zero with a's sign for integers; INVALID for infinities.",
    "[0.25, -1.5]",
    "[0.70703125, 1.        ]",
    f"g * ({_PI} * cospi(a))",
)
cospi: Unary = _one(
    "cospi",
    "``cos(pi * a)``, exact for multiples of 1/2; INVALID for infinities.",
    "[0.25, -1.0]",
    "[ 0.70703125, -1.        ]",
    f"-(g * ({_PI} * sinpi(a)))",
)
tanpi: Unary = _one(
    "tanpi",
    "``tan(pi * a)``, exact for multiples of 1/4; for n + 1/2 an infinity, positive for even n, and DIVIDE_BY_ZERO, in "
    "P3109's formats NaN; a zero with a's sign for even integers, with the other for odd ones; INVALID for infinities.",
    "[0.125, -0.25]",
    "[ 0.41430664, -1.        ]",
    f"g * ({_PI} * (1 + y * y))",
)
asinpi: Unary = _one(
    "asinpi",
    "``asin(a) / pi``; -0 for -0; INVALID beyond 1.",
    "[0.5, -1.0]",
    "[ 0.16662598, -0.5       ]",
    f"g * ({_ONE_OVER_PI} * rsqrt(1 - a * a))",
)
acospi: Unary = _one(
    "acospi",
    "``acos(a) / pi``; +0 for 1; INVALID beyond 1.",
    "[0.5, -1.0]",
    "[0.33325195, 1.        ]",
    f"-(g * ({_ONE_OVER_PI} * rsqrt(1 - a * a)))",
)
atanpi: Unary = _one(
    "atanpi",
    "``atan(a) / pi``; -0 for -0, 1/2 for infinity.",
    "[1.0, -1000.0]",
    "[ 0.25      , -0.49975586]",
    f"g * ({_ONE_OVER_PI} / (1 + a * a))",
)
sinh: Unary = _one(
    "sinh", "hyperbolic sine; -0 for -0.", "[0.5, -8.0]", "[ 5.20996094e-01, -1.49000000e+03]", "g * cosh(a)"
)
cosh: Unary = _one("cosh", "hyperbolic cosine.", "[0.5, -8.0]", "[1.12792969e+00, 1.49000000e+03]", "g * sinh(a)")
tanh: Unary = _one(
    "tanh",
    "hyperbolic tangent; -0 for -0, 1 for infinity.",
    "[0.5, -8.0]",
    "[ 0.4621582, -1.       ]",
    "g * (1 - y * y)",
)
asinh: Unary = _one(
    "asinh",
    "inverse hyperbolic sine; -0 for -0.",
    "[0.5, -1000.0]",
    "[ 0.48120117, -7.6015625 ]",
    "g * rsqrt(1 + a * a)",
)
acosh: Unary = _one(
    "acosh",
    "inverse hyperbolic cosine; +0 for 1; below, INVALID.",
    "[1.5, 1000.0]",
    "[0.96240234, 7.6015625 ]",
    "g * rsqrt(a * a - 1)",
)
atanh: Unary = _one(
    "atanh",
    "inverse hyperbolic tangent; -0 for -0; for 1 and -1 an infinity and DIVIDE_BY_ZERO; beyond, INVALID.",
    "[0.5, -0.999]",
    "[ 0.54931641, -3.8125    ]",
    "g / (1 - a * a)",
)
sigmoid: Unary = _one(
    "sigmoid",
    "``1 / (1 + e**-a)``; +0 for -infinity, 1 for infinity.",
    "[0.0, -8.0]",
    "[5.00000000e-01, 3.35454941e-04]",
    "g * (y * (1 - y))",
    f"the definition; {_LIMITS}",
)
softplus: Unary = _one(
    "softplus",
    "``log(1 + e**a)``; +0 for -infinity.",
    "[0.0, -8.0]",
    "[6.93359375e-01, 3.35454941e-04]",
    "g * sigmoid(a)",
    f"the definition; {_LIMITS}",
)
erf: Unary = _one(
    "erf",
    "error function, 2 / sqrt(pi) times the integral of e**-t**2 from 0 to a; -0 for -0, 1 for infinity.",
    "[0.5, -3.0]",
    "[ 0.52050781, -1.        ]",
    f"g * ({_TWO_OVER_ROOT_PI} * exp(-(a * a)))",
    f"Abramowitz and Stegun 7.1.1; {_LIMITS}",
)
gelu: Unary = _one(
    "gelu",
    "``a * (1 + erf(a / sqrt(2))) / 2``, with the error function itself; -0 for -0 and for -infinity.",
    "[1.0, -3.0]",
    "[ 0.84130859, -0.00405121]",
    f"g * (0.5 * (1 + erf(a * {_ROOT_HALF})) + a * ({_ONE_OVER_ROOT_TWO_PI} * exp(-0.5 * (a * a))))",
    f"Hendrycks and Gimpel, Gaussian error linear units, 2016; {_LIMITS}",
)
silu: Unary = _one(
    "silu",
    "``a / (1 + e**-a)``, also named swish; -0 for -0 and for -infinity.",
    "[1.0, -3.0]",
    "[ 0.73095703, -0.14233398]",
    "g * (sigmoid(a) * (1 + a * (1 - sigmoid(a))))",
    f"the definition; {_LIMITS}",
)
rsqrt: Unary = _one(
    "rsqrt",
    f"``1 / sqrt(a)``, exact for powers of 4; {_POLES}; below, INVALID; +0 for infinity.",
    "[4.0, 2.0]",
    "[0.5       , 0.70703125]",
    "-0.5 * g * (y / a)",
)
reciprocal: Unary = _one(
    "reciprocal",
    f"``1 / a``; {_POLES}.",
    "[8.0, 3.0]",
    "[0.125     , 0.33325195]",
    "-(g * (y * y))",
    "IEEE 754-2019 clauses 5.4.1 and 7.3",
)
cbrt: Unary = _one(
    "cbrt",
    "cube root, exact for cubes; -0 for -0.",
    "[27.0, -2.0]",
    "[ 3.        , -1.25976562]",
    "g / (3 * (y * y))",
    "IEEE 754-2019 clause 9.2.1, rootn",
)
pow: Binary = _two(
    "pow",
    "``a**b``; 1 for b = 0 and for a = 1, though the other be a quiet NaN (not in P3109's formats, which propagate "
    "it); for a negative a INVALID unless b is an integer; for a = 0 and negative b an infinity and DIVIDE_BY_ZERO, in "
    "P3109's formats NaN.",
    "[2.0, 3.0]",
    "[0.5, 4.0]",
    "[ 1.4140625, 81.       ]",
    "g * (b * pow(a, b - 1))",
    "g * (y * log(a))",
)
hypot: Binary = _two(
    "hypot",
    "``sqrt(a**2 + b**2)``, no intermediate of which overflows; +infinity if an operand is infinite, though the other "
    "be a quiet NaN (not in P3109's formats, which propagate it).",
    "[3.0, 300.0]",
    "[4.0, 1.0]",
    "[  5., 300.]",
    "g * (a / y)",
    "g * (b / y)",
)
atan2: Binary = _two(
    "atan2",
    "angle of the point (b, a) in radians, from -pi to pi: atan of a / b in the quadrant of both; multiples of pi / 4 "
    "for zeros and infinities by their signs, of two zeros and of two infinities NaN in P3109's formats.",
    "[1.0, -0.0]",
    "[-1.0, -2.0]",
    "[ 2.35546875, -3.140625  ]",
    "g * (b / (a * a + b * b))",
    "-(g * (a / (a * a + b * b)))",
)
atan2pi: Binary = _two(
    "atan2pi",
    "``atan2(a, b) / pi``, exact on the axes and diagonals.",
    "[1.0, -0.0]",
    "[-1.0, -2.0]",
    "[ 0.75, -1.  ]",
    f"g * ({_ONE_OVER_PI} * (b / (a * a + b * b)))",
    f"-(g * ({_ONE_OVER_PI} * (a / (a * a + b * b))))",
)
logaddexp: Binary = _two(
    "logaddexp",
    "``log(e**a + e**b)``, no intermediate of which overflows; b for a = -infinity, +infinity if an operand is.",
    "[1.0, 1000.0]",
    "[1.0, 2.0]",
    "[   1.69335938, 1000.        ]",
    "g * exp(a - y)",
    "g * exp(b - y)",
    source=f"the definition; {_LIMITS}",
)
logaddexp2: Binary = _two(
    "logaddexp2",
    "``log2(2**a + 2**b)``, exact for a = b; special values as of `logaddexp`.",
    "[1.0, 3.0]",
    "[1.0, 2.0]",
    "[2.       , 3.5859375]",
    "g * exp2(a - y)",
    "g * exp2(b - y)",
    source=f"the definition; {_LIMITS}",
)
_INTEGER = "b is an integer of b's format, and for others the result is INVALID"
compound: Binary = _two(
    "compound",
    f"``(1 + a)**b``, without cancellation; {_INTEGER}, as for a below -1; 1 for b = 0, though a be a quiet NaN (not "
    "in P3109's formats); for a = -1 and negative b +infinity and DIVIDE_BY_ZERO, in P3109's formats NaN.",
    "[0.125, 0.001]",
    "[2.0, 1000.0]",
    "[1.265625, 2.71875 ]",
    "g * (b * compound(a, b - 1))",
    None,
)
rootn: Binary = _two(
    "rootn",
    f"b-th root of a, exact for b-th powers; {_INTEGER}, as for b = 0 and for a negative a with an even b; for a = 0 "
    "and negative b an infinity and DIVIDE_BY_ZERO, in P3109's formats NaN.",
    "[-32.0, 16.0]",
    "[5.0, -2.0]",
    "[-2.  ,  0.25]",
    "g * (y / (a * b))",
    None,
)
pown: Binary = _two(
    "pown",
    f"``a**b``; {_INTEGER}; special values as of `pow`, of which those of infinite b are INVALID.",
    "[-2.0, 1.5]",
    "[3.0, -1.0]",
    "[-8.        ,  0.66650391]",
    "g * (b * pown(a, b - 1))",
    None,
)
powr: Binary = _two(
    "powr",
    "``e**(b * log(a))``, for a of 0 and more; INVALID below, and without a limit: 0 and infinity to the power 0, 1 "
    "to an infinite one; for a = 0 and finite negative b +infinity and DIVIDE_BY_ZERO, in P3109's formats NaN.",
    "[2.0, 3.0]",
    "[0.5, 4.0]",
    "[ 1.4140625, 81.       ]",
    "g * (b * powr(a, b - 1))",
    "g * (y * log(a))",
)

_FUNCTIONS = {name: (globals()[name], OPERANDS[name]) for name in ELEMENTARY}
for _function, _ in _FUNCTIONS.values():
    _function.__module__ = __name__  # where they are found and documented
OPERATIONS.update(_FUNCTIONS)
CODE_OPERATIONS.update(_FUNCTIONS)
