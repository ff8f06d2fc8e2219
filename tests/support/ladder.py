"""The points of a format between which every rounding is constant, and the roundings of what lies between them.

They are the grid, what lies k / 2**(r + 1) of a gap beyond it, and where a result stops being tiny. So a result is
first told by its place among them, which does not depend on mode, rule or tininess; then the reference rounds one
representative of each place that occurs. An exact result is given as (h, d): a binary64 number, rounded from it in any
direction, and the sign of what h lacks. Rounding is monotonic, and all points are binary64 numbers, so that h < p means
below p, h > p above p, and h = p leaves it to d.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from softnum import reference as ref
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import Value

TABLED = 5 << 26  # places in all the tables at a time, of 3 or 4 bytes each: one format of 16 bits in all modes
_tables: dict = {}  # (format, r, environment) -> (codes, flags, which are known), one element a place


def two_sum(a, b):
    """(the sum in binary64, what it lacks)"""
    h = a + b
    t = h - a
    return h, (a - (h - t)) + (b - t)


class Ladder:
    """The points of a format, for r random bits at most."""

    def __init__(self, fmt, r: int) -> None:
        self.fmt, self.r = fmt, r
        part = 2.0 ** -(r + 1)
        steps = np.arange(2 ** (r + 1)) * part
        if fmt.kind == "fixed":
            self.period = 2.0**fmt.integer_bits
            grid = np.arange(2 * 2**fmt.bits + 1) * 2.0**-fmt.fraction_bits
        else:
            finite = {abs(ref.decode(c, fmt).fraction) for c in range(fmt.max_code + 1)}
            grid = np.array(sorted(float(x) for x in finite | {Fraction(0)}))
            quantum = 2.0 ** (np.frexp(grid[-1])[1] - 1 - fmt.mantissa_bits)
            beyond = grid[-1] + quantum * np.arange(1, 4)
            normal, below = float(fmt.smallest_normal), 2.0 ** (fmt.emin - 1 - fmt.mantissa_bits)
            grid = np.unique(np.concatenate([grid, beyond]))
        gaps = np.diff(grid)
        points = [(grid[:-1, None] + gaps[:, None] * steps).ravel(), grid[-1:]]
        if fmt.kind == "float":  # the grid as it would go on below the normals
            points.append(normal - below * part * np.arange(1, 2 * 2 ** (r + 1) + 1))
        points = np.unique(np.concatenate(points))
        points = points[points >= 0]
        self.points = np.unique(np.concatenate([points, -points]))
        least = 0 if fmt.kind == "fixed" else 4 * float(fmt.smallest_normal)
        x = self.representatives(np.arange(2 * len(self.points) + 1))
        self.middling = (np.abs(x) >= least) & (np.abs(x) <= float(fmt.max) / 4) & ((x > 0) | fmt.signed)

    def places(self, h, d):
        """(the place of each exact result, the distinct places): 2 i + 1 on point i, 2 i below it, 2 i + 2 above it."""
        if self.fmt.kind == "fixed":  # farther out: brought nearer by whole periods, which changes no code and no flag
            far = np.abs(h) >= 2 * self.period
            near, error = two_sum(np.fmod(h, self.period), np.copysign(self.period, h))
            h, d = np.where(far, near, h), np.where(far & (error != 0), error, d)
        i = np.searchsorted(self.points, h)
        on = self.points[np.minimum(i, len(self.points) - 1)] == h
        places = 2 * i + np.where(on, 1 + np.sign(d).astype(np.int64), 0)
        return places, np.unique(places)

    def representatives(self, places: np.ndarray) -> np.ndarray:
        """A number in each place: the point, the middle between two (a binary64 number too), or what lies far out."""
        ends = np.concatenate([4 * self.points[:1], self.points, 4 * self.points[-1:]])
        i = places // 2
        middle = (ends[i] + ends[i + 1]) / 2
        middle = np.where(i == 0, ends[0], np.where(i == len(self.points), ends[-1], middle))
        return np.where(places % 2 == 1, ends[np.minimum(i + 1, len(self.points))], middle)

    def rounded(self, places, distinct, environment) -> tuple[np.ndarray, np.ndarray]:
        """(codes, flags) of results in these places, of which the distinct ones are given too."""
        options = {k: v for k, v in environment.items() if k not in ("nan", "flush_inputs")}
        key = self.fmt, self.r, tuple(sorted(options.items()))
        if key not in _tables:
            size = 2 * len(self.points) + 2
            if sum(len(codes) for codes, _, _ in _tables.values()) + size > TABLED:
                _tables.clear()
            _tables[key] = np.zeros(size, self.fmt.storage_dtype), np.zeros(size, np.uint8), np.zeros(size, bool)
        codes, flags, known = _tables[key]
        new, env = distinct[~known[distinct]], environment_of(self.fmt, **options)
        direction = {k: v for k, v in options.items() if k in ("rounding", "stochastic_bits", "random_bits")}
        if direction != options:  # far from both ends of the range nothing else counts: asked once for all the rules
            same, new = new[self.middling[new]], new[~self.middling[new]]
            codes[same], flags[same] = self.rounded(same, same, direction)
        for place, x in zip(new.tolist(), self.representatives(new).tolist(), strict=True):
            numerator, denominator = abs(x).as_integer_ratio()
            codes[place], flags[place] = deliver(Value("finite", int(x < 0), numerator, denominator), self.fmt, env)
        known[distinct] = True
        return codes[places], flags[places]


@lru_cache(maxsize=64)
def ladder_of(fmt, r: int) -> Ladder:
    return Ladder(fmt, r)
