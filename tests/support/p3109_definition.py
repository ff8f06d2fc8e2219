"""IEEE P3109, interim report v4.0 (26 June 2026), in fractions: decoding, projection, operations (4.7, 4.10, 4.11); and
saturation as v3.2.1 (12 January 2026) has it. Decoding, rounding and operations give the same in both.

Written from the reports and nothing else: no part of softnum is used. A value is a Fraction, or one of NAN, INF, -INF.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import NamedTuple

INF = float("inf")
NAN = "NaN"
SATURATION = {"SatFinite": "saturate", "SatPropagate": "saturate_finite", "SatNone": "infinity"}
OLDER = {"SatFinite": "saturate", "SatPropagate": "saturate_finite", "OvfInf": "p3109_v3_2_1"}
ROUNDING = {
    "TowardZero": "toward_zero", "TowardPositive": "up", "TowardNegative": "down", "NearestTiesToEven": "nearest_even",
    "NearestTiesToAway": "nearest_away", "ToOdd": "to_odd",
}  # fmt: skip
STOCHASTIC = {"StochasticA": "stochastic", "StochasticB": "stochastic_fast", "StochasticC": "stochastic_even"}


class Format(NamedTuple):
    """K bits, precision P, whether signed, whether with infinities; by clause 3.2 its name is binaryKpP{s,u}{e,f}."""

    K: int
    P: int
    signed: bool
    extended: bool

    @property
    def name(self) -> str:
        return f"binary{self.K}p{self.P}{'s' if self.signed else 'u'}{'e' if self.extended else 'f'}"

    @property
    def bias(self) -> int:
        return 1 << (self.K - self.P - 1 if self.signed else self.K - self.P)

    @property
    def greatest(self) -> int:
        """The code of the greatest finite value."""
        last = (1 << (self.K - 1)) - 1 if self.signed else (1 << self.K) - 2
        return last - self.extended

    @property
    def nan(self) -> int:
        return 1 << (self.K - 1) if self.signed else (1 << self.K) - 1


def decode(x: int, f: Format):
    """4.7.2."""
    half = 1 << (f.K - 1)
    if x == f.nan:
        return NAN
    if f.signed and x > half:
        value = decode(x - half, f)
        return -value
    if x > f.greatest:
        return INF
    trailing, exponent = x % (1 << (f.P - 1)), x >> (f.P - 1)
    part = Fraction(trailing, 1 << (f.P - 1))
    if exponent == 0:
        return part * Fraction(2) ** (1 - f.bias)
    return (1 + part) * Fraction(2) ** (exponent - f.bias)


def _log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def round_to_precision(X, f: Format, mode: str, N: int = 0, R: int = 0):
    """4.7.4."""
    if X in (NAN, INF, -INF) or X == 0:
        return X
    Q = max(_log2(abs(X)), 1 - f.bias) - f.P + 1
    scaled = abs(X) * Fraction(2) ** -Q
    S = floor(scaled)
    v = scaled - S
    even = S % 2 == 0 if f.P > 1 else S == 0 or (Q + f.bias) % 2 == 0
    half = Fraction(1, 2)
    away = {
        "TowardZero": lambda: False,
        "TowardPositive": lambda: v > 0 and X > 0,
        "TowardNegative": lambda: v > 0 and X < 0,
        "NearestTiesToAway": lambda: v >= half,
        "NearestTiesToEven": lambda: v > half or (v == half and not even),
        "ToOdd": lambda: v > 0 and even,
        "StochasticA": lambda: floor(v * 2**N) + R >= 2**N,
        "StochasticB": lambda: floor(v * 2 ** (N + 1)) + 2 * R + 1 >= 2 ** (N + 1),
        "StochasticC": lambda: round(v * 2**N) + R >= 2**N,
    }[mode]()
    return (1 if X > 0 else -1) * (S + away) * Fraction(2) ** Q


def saturate(X, f: Format, mode: str, rule: str):
    """4.7.5."""
    high = decode(f.greatest, f)
    low = -high if f.signed else Fraction(0)
    if X == NAN or (X not in (INF, -INF) and low <= X <= high):
        return X
    above = X == INF or (X != -INF and X > high)
    if rule == "SatFinite":
        return high if above else low
    if rule == "SatPropagate":
        if X == INF:
            return INF if f.extended else high
        if X == -INF:
            return -INF if f.signed and f.extended else low
        return high if above else low
    if X == INF:
        return INF if f.extended else high
    if X == -INF:
        if not f.signed:
            return NAN
        return -INF if f.extended else low
    if above:
        stays = (mode == "ToOdd" and not f.signed and f.extended) or mode in ("TowardZero", "TowardNegative")
        return high if stays or not f.extended else INF
    if mode in ("TowardZero", "TowardPositive"):
        return low
    if not f.signed:
        return NAN
    return -INF if f.extended else low


def saturate_older(X, f: Format, mode: str, rule: str):
    """v3.2.1, 4.9.4, line by line; by 4.9.2 a finite format is under SatFinite, or it is an error."""
    assert f.extended or rule == "SatFinite"
    high = decode(f.greatest, f)
    low = -high if f.signed else Fraction(0)
    if X == NAN:
        return NAN
    infinite = X in (INF, -INF)
    if not infinite and low <= X <= high:
        return X
    above = X == INF or (not infinite and X >= high)
    if rule == "SatFinite":
        return high if above else low
    if infinite:  # SatPropagate and OvfInf say the same
        if above:
            return INF if f.extended else high
        return -INF if f.signed and f.extended else low
    if rule == "SatPropagate":
        return high if above else low
    if not above and mode in ("TowardZero", "TowardPositive"):
        return low
    if above and mode in ("TowardZero", "TowardNegative"):
        return high
    if not above:
        return -INF if f.signed and f.extended else low
    return INF if f.extended else high


_CODES: dict[Format, dict] = {}


def encode(X, f: Format) -> int:
    """4.7.6: the code of a datum of the format."""
    if f not in _CODES:
        _CODES[f] = {decode(x, f): x for x in reversed(range(1 << f.K))}
    return _CODES[f][X]


def project(X, f: Format, mode: str, rule: str, N: int = 0, R: int = 0) -> int:
    """4.7.3; under OvfInf, which v4.0 does not have, v3.2.1's 4.9.2."""
    by_version = saturate_older if rule == "OvfInf" else saturate
    return encode(by_version(round_to_precision(X, f, mode, N, R), f, mode, rule), f)


class Exact:
    """Exact results, each of which is projected once, however often it comes."""

    def __init__(self, results) -> None:
        places: dict = {}
        self.index = [places.setdefault(X, len(places)) for X in results]
        self.different = list(places)

    def projected(self, f: Format, mode: str, rule: str) -> list[int]:
        """The code of each."""
        codes = [project(X, f, mode, rule) for X in self.different]
        return [codes[i] for i in self.index]


# -- operations on closed extended reals ------------------------------------------------------------------------------
def add(X, Y):
    """4.10.3."""
    if NAN in (X, Y) or {X, Y} == {INF, -INF}:
        return NAN
    for each in (X, Y):
        if each in (INF, -INF):
            return each
    return X + Y


def negate(X):
    """4.10.1."""
    return X if X == NAN else -X


def subtract(X, Y):
    """4.10.3."""
    return add(X, negate(Y))


def multiply(X, Y):
    """4.10.4."""
    if NAN in (X, Y):
        return NAN
    if INF in (X, Y) or -INF in (X, Y):
        return NAN if 0 in (X, Y) else INF if (X > 0) == (Y > 0) else -INF
    return X * Y


def divide(X, Y):
    """4.10.5."""
    infinite = [each in (INF, -INF) for each in (X, Y)]
    if NAN in (X, Y) or all(infinite) or Y == 0:
        return NAN
    if infinite[0]:
        return INF if (X > 0) == (Y > 0) else -INF
    return Fraction(0) if infinite[1] else X / Y


def fma(X, Y, Z):
    """4.10.6."""
    return add(multiply(X, Y), Z)


def faa(X, Y, Z):
    """4.10.7."""
    return add(add(X, Y), Z)


def minimum_magnitude(X, Y):
    """4.11.2."""
    if NAN in (X, Y):
        return NAN
    if abs(X) == abs(Y):
        return min(X, Y)
    return X if abs(X) < abs(Y) else Y


def maximum_magnitude(X, Y):
    """4.11.2."""
    if NAN in (X, Y):
        return NAN
    if abs(X) == abs(Y):
        return max(X, Y)
    return X if abs(X) > abs(Y) else Y


def number(operation):
    """The variant of an operation in which a NaN gives way."""
    return lambda X, Y: Y if X == NAN else X if Y == NAN else operation(X, Y)


def minimum_finite(X, Y):
    """4.11.3."""
    return _finite(X, Y, min)


def maximum_finite(X, Y):
    """4.11.3."""
    return _finite(X, Y, max)


def _finite(X, Y, choose):
    if NAN in (X, Y):
        return Y if X == NAN else X
    infinite = [each in (INF, -INF) for each in (X, Y)]
    if infinite[0] != infinite[1]:
        return Y if infinite[0] else X
    return choose(X, Y)


def clamp(X, low, high):
    """4.11.4."""
    return NAN if NAN in (X, low, high) or low > high else low if X <= low else high if X >= high else X
