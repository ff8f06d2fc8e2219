"""Correctly rounded functions from enclosures in binary64, for formats too wide for a table.

Ziv's method with one step: the value and a bound of its error, rounded at both ends. Where the ends agree, so does all
that lies between them, for every deterministic rounding is monotonic; the rest is left to softnum's C core. So the bits
are the core's, in a twentieth of the time. Binary64 is used with additions, multiplications and divisions only, whose
results IEEE 754 determines.

The bound. With k = rint(x / ln 2), x - k * ln2_high is exact (ln2_high has 32 bits; for k = 0 it is x, else Sterbenz),
so r = (x - k * ln2_high) - k * ln2_low is off by less than 2**-54.9, and abs(r) < 0.3467. Of e**r - 1 thirteen terms
are summed: what is left out is below 2**-55 of it, and all with rounding below 2**-51.4 of it (Horner's rule: each step
has two roundings, and r shrinks those before). 1 + that, times 2**k, is e**x to 2**-51. For x <= 0, that times 2**k,
plus (2**k - 1), which is exact, is e**x - 1 to 2**-50.8: for k < 0 it is at least 0.29 in size. A quotient of such
numbers adds their errors and two roundings, its product with x one more: below 2**-49. The bound is four times that.

erf(x) is 2 / sqrt(pi) * x * e**-x**2 times the sum of a**n / (1 * 3 * ... * (2 n + 1)), with a = 2 x**2, and
gelu(x) = x * (1 / 2 + x * e**(-a / 2) / sqrt(2 pi) times that sum), with a = x**2. No term is negative, so no rounding
is magnified: 64 terms are summed, each fourth one by Horner's rule in a**4. What is left out is below 2**-55 of the sum
for a up to 36; the errors of a (one rounding), of a**4 in its 15 powers, and of 16 steps of three roundings each are
below 2**-46 together, all others far less. So erf is off by less than 2**-45.5 of itself, and the factor of x in gelu,
whose terms may cancel, by less than 2**-46. The bounds are 2**-44 of erf, and of x. Beyond, 1 - 2**-28 < erf(x) < 1
from 4.2 on, and (1 - 2**-29) x < gelu(x) < x from 6 on. The cube of a number is rounded twice.

References
----------
A. Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991. Sterbenz: J.-M.
Muller et al., "Handbook of Floating-Point Arithmetic", 2018, lemma 4.1; Horner's rule: section 5. The series: M.
Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 1964, 7.1.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.formats.facts import facts

__all__ = ["LN2_HIGH", "LN2_LOW", "LOG2_E", "enclose", "encloses"]

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # the 32 leading bits of ln 2: its product with an exponent is exact
LN2_LOW = 1.9082149292705877e-10
BOUND = 2.0**-47
_TERMS = tuple(1.0 / math.factorial(n) for n in range(13, 0, -1))
_LARGEST, _SMALLEST = 80.0, 2.0**-500  # of arguments: far from where binary64 overflows, or underflows
_TABLE_BITS = 16
_PRECISION = 32  # bits, above which the bound decides too few roundings
_BLOCK = 4096  # elements at a time, that stay in the cache


def _powers(x):
    """(e**r - 1, 2**k) with e**x = e**r * 2**k, of numbers between -2 * _LARGEST and _LARGEST."""
    k = np.rint(x * LOG2_E)
    r = x - k * LN2_HIGH
    r -= k * LN2_LOW
    total = np.full_like(r, _TERMS[0])
    for term in _TERMS[1:]:
        total *= r
        total += term
    total *= r
    scale = ((k.astype(np.int64) + 1023) << 52).view(np.float64)
    return total, scale


def _exp(x):
    less, scale = _powers(x)
    return (1.0 + less) * scale


def _sigmoid(x):
    power = _exp(-np.abs(x))  # at most 1
    return np.where(x < 0.0, power, 1.0) / (1.0 + power)


def _tanh(x):
    less, scale = _powers(-2.0 * np.abs(x))
    less *= scale
    less += scale - 1.0  # e**(-2 abs(x)) - 1
    return np.copysign(less / (2.0 + less), x)


def _silu(x):
    return x * _sigmoid(x)


def _cube(x):
    return x * x * x


def _odd_series(a):
    """The sum of a**n / (1 * 3 * ... * (2 n + 1)), n below 64."""
    square = a * a
    fourth = square * square
    sums = [np.full_like(a, term) for term in _ODD_TERMS[15]]
    for terms in _ODD_TERMS[14::-1]:
        for total, term in zip(sums, terms, strict=True):
            total *= fourth
            total += term
    return (sums[0] + a * sums[1]) + square * (sums[2] + a * sums[3])


def _erf(x):
    """The ends of erf, for x within 4.2; beyond, those that all numbers have."""
    square = x * x
    value = x * _exp(-square) * _odd_series(square + square) * 1.1283791670955126
    return value * (1.0 - _NORMAL_BOUND), value * (1.0 + _NORMAL_BOUND)


def _gelu(x):
    """The ends of gelu, for x within 6."""
    square, size = x * x, np.abs(x)
    part = size * _exp(-0.5 * square) * _odd_series(square) * 0.3989422804014327
    value, radius = x * np.where(x < 0.0, 0.5 - part, 0.5 + part), size * _NORMAL_BOUND
    return value - radius, value + radius


def _normal_ends(operation: str, x):
    """The ends of erf or gelu, and which numbers have none."""
    most = _NORMAL[operation]
    inside = np.abs(x) <= most
    low, high = (_erf if operation == "erf" else _gelu)(np.where(inside, x, 0.0))
    if operation == "erf":
        above = ~inside & (x == x)
        sign = np.copysign(1.0, x)
        ends = sign * (1.0 - 2.0**-28), sign
    else:
        above = (x > most) & (x <= _FINITE)
        ends = x * (1.0 - 2.0**-29), x
    low, high = np.where(above, ends[0], low), np.where(above, ends[1], high)
    return low, high, ~(inside | above)


_ODD_TERMS = tuple(
    tuple(1 / math.prod(range(1, 2 * n + 2, 2)) for n in range(first, first + 4)) for first in range(0, 64, 4)
)
_NORMAL_BOUND = 2.0**-44
#: function -> how far its series is taken: the numbers that binary32 has at most there
_NORMAL = {"erf": float(np.float32(4.2)), "gelu": 6.0}
_FINITE = float(np.finfo(np.float32).max)
_FUNCTIONS: dict[str, Callable] = {"cube": _cube, "exp": _exp, "sigmoid": _sigmoid, "silu": _silu, "tanh": _tanh}


def encloses(operation: str, role) -> bool:
    """Whether `enclose` computes an operation in a role: not where a table is faster, or a rounding is not monotonic.

    >>> import softnum as sn
    >>> from softnum.train.designs.design import RoleRounding
    >>> [encloses("tanh", RoleRounding(sn.format(name))) for name in ("binary32", "bfloat16", "binary64")]
    [True, False, False]
    """
    fmt = role.format
    if operation not in (*_FUNCTIONS, *_NORMAL) or role.stochastic or role.overflow == "wrap":
        return False
    return _is_decided(fmt)


@of_format
def _is_decided(fmt) -> bool:
    """Whether an enclosure decides the rounding to a format."""
    return facts(fmt).precision <= _PRECISION and fmt.bits > _TABLE_BITS


@_is_decided.custom
@_is_decided.block
def _not_monotonic(fmt) -> bool:
    return False


def _parts(x):
    return (slice(start, start + _BLOCK) for start in range(0, x.size, _BLOCK))


def enclose(operation: str, x, round_to: Callable):
    """An operation on numbers, where its enclosure decides the rounding.

    Parameters
    ----------
    operation : str
        Of those that `encloses` is true of.
    x : float array
    round_to : callable
        Rounds float64 arrays.

    Returns
    -------
    rounded : array
        As round_to returns them.
    undecided : integer array
        Which elements, in C order, are left to do: where the ends differ, tiny and large arguments, and NaN.

    Examples
    --------
    >>> import numpy as np
    >>> enclose("sigmoid", np.float32([0.0, 1.0, -100.0]), np.float32)
    (array([0.5      , 0.7310586, 0.5      ], dtype=float32), array([2]))
    """
    flat = x.reshape(-1).astype(np.float64)
    size = np.abs(flat)
    tiny = (size < _SMALLEST) & (size > 0.0)
    if operation in _NORMAL:
        low, high, far = np.empty_like(flat), np.empty_like(flat), np.empty(flat.shape, bool)
        for part in _parts(flat):
            low[part], high[part], far[part] = _normal_ends(operation, flat[part])
        far |= tiny
    else:
        far = ~(size <= (_FINITE if operation == "cube" else _LARGEST)) | tiny
        if far.any():
            flat[far] = 0.0
        values = np.empty_like(flat)
        for part in _parts(flat):
            values[part] = _FUNCTIONS[operation](flat[part])
        low, high = values * (1.0 - BOUND), values * (1.0 + BOUND)
    ends = round_to(low), round_to(high)
    return ends[0].reshape(x.shape), np.flatnonzero((ends[0] != ends[1]) | far)
