"""Inputs that tell units apart: what to run on a chip where sources disagree on it (`softnum units NAME`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.conversion import encode
from softnum.formats.blocks import BlockFormat
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.family import family_of
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.presets import DISPUTED, unit
from softnum.mac.products.matrices import matmul
from softnum.runtime.plain import plain

__all__ = ["Telling", "choices", "telling"]

_LOWEST = 24  # binades of small operands that are tried


@dataclass(frozen=True)
class Telling:
    """One input on which units differ: codes of a, b and C, and of each result.

    ``results``: the code by each unit's name. ``scale_a``, ``scale_b``: of blocks, codes of their scales.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    results: Mapping[str, int]
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()


def choices(name: str, output=None) -> dict[str, Unit]:
    """A preset and the same by others' choices, by the names of the choices; {} where nothing of it is disputed.

    Parameters
    ----------
    name, output : as of `softnum.unit`

    Returns
    -------
    dict of str to unit, the preset's own the first

    Examples
    --------
    >>> from softnum.inspect.disputes import choices
    >>> {name: unit.zero_exponent for name, unit in choices("nvidia_a100_bf16").items()}
    {'default': None, 'mma-sim': -126}
    """
    made = {"default": unit(name, output)}
    for disputed in DISPUTED:
        try:
            made[disputed] = unit(name, output, disputed=disputed)
        except ValueError:  # nothing that it says differs
            continue
    return made if len(made) > 1 else {}


def _small(fmt) -> list[float]:
    """The smallest value of a float format, and numbers whose bits are all ones in its lowest binades."""
    ones = 2.0 - 2.0 ** -float(fmt.mantissa_bits)
    numbers = [ones * 2.0**e for e in range(fmt.emin, fmt.emin + _LOWEST)]
    return [float(fmt.smallest_subnormal), *(x for x in numbers if x <= fmt.max)]


def _powers(fa, fb, exponent: int) -> tuple[float, float]:
    """Powers of two whose product has this exponent, or is as near as the formats come."""
    of_a = min(max(exponent // 2, fa.emin), fa.emax - 1)
    return 2.0**of_a, 2.0 ** float(min(max(exponent - of_a, fb.emin), fb.emax - 1))


def _rows(fa, fb, fc, terms: int):
    """(factors, C) of sums of up to `terms` products, the simplest first; last those that a rounding inside tells."""
    a, b, c = map(_small, (fa, fb, fc))
    starts, last = (0.0, *c[::6]), int(np.log2(float(fc.smallest_subnormal)))
    pairs = [(x, b[0]) for x in a] + [(a[1], y) for y in b[1:]]
    for pair in ((0.0, 0.0), *pairs):
        for beside, start in product((0.0, float(fb.max)), starts):
            yield [pair, (0.0, beside)][:terms], start
    for below in range(1, _LOWEST):  # so many that what each loses adds up
        yield [_powers(fa, fb, last - below)] * terms, 0.0
    for pair in pairs:  # half of C's last place, which is a tie, and a bit more
        yield [_powers(fa, fb, last - 1), pair][:terms], 0.0
    half = _powers(fa, fb, -fc.precision)  # halves of the last place beside 1
    for count, start in ((1, 2.0**-fc.precision), (2, 0.0), (3, 0.0)):
        yield [(1.0, 1.0), *[half] * count][:terms], start


@plain
def telling(units: Mapping[str, Unit], most: int = 4) -> list[Telling]:
    """Short inputs on which units of the same formats do not all agree.

    Tried are products whose exponents are small, alone or beside a zero times the largest operand, and a C that is zero
    or small: where the least M and the exponents of zeros matter; and halves of a last place beside 1. Nothing is
    random. Of block formats with a scale of the array, which no instruction has, the inputs have none.

    Parameters
    ----------
    units : mapping of str to Unit
        Of the same operands, accumulator and output: each a step of as many products, or a chunk of a `MadUnit`.
    most : int
        Of inputs; those that part the units in another way come first.

    Returns
    -------
    list of Telling

    Examples
    --------
    >>> from softnum.inspect.disputes import choices, telling
    >>> one, *_ = telling(choices("nvidia_a100_fp16"))  # zeros, one beside the largest operand, and a small C
    >>> [hex(code) for code in (*one.b[:2], one.c)], one.results
    (['0x0', '0x7bff', '0x1'], {'default': 1, 'mma-sim': 0})
    """
    first = next(iter(units.values()))
    if family_of(first).of_blocks:
        return _telling_blocks(units, most)
    (fa, fb), fc = first.operand, first.c_format
    terms = first.chunk if isinstance(first, MadUnit) else first.terms
    rows = list(_rows(fa, fb, fc, terms))
    left, right = (np.zeros((len(rows), terms)) for _ in "ab")
    for i, (factors, _) in enumerate(rows):
        left[i, : len(factors)], right[i, : len(factors)] = zip(*factors, strict=True)
    starts = np.array([start for _, start in rows])
    results = {
        name: encode(
            matmul(left[:, None, :], right[:, :, None], made, starts[:, None, None])[:, 0, 0].astype(np.float64),
            made.result,
        )
        for name, made in units.items()
    }
    kinds = [(*(left[i, :2] != 0), *(right[i, :2] != 0), starts[i] != 0) for i in range(len(rows))]
    return [
        Telling(*(_codes(x[i], f) for x, f in ((left, fa), (right, fb))), int(encode(starts[i], fc)),
                {name: int(column[i]) for name, column in results.items()})
        for i in _chosen(results, kinds)[:most]
    ]  # fmt: skip


def _chosen(results: Mapping[str, np.ndarray], kinds: list[tuple]) -> list[int]:
    """On which inputs the results differ; those that part the units in another way, or are of another kind, first."""
    codes = np.stack(list(results.values()))
    ways: dict[tuple, list[int]] = {}  # how the units part, on what: where
    for i in np.flatnonzero((codes != codes[0]).any(axis=0)).tolist():
        parted = tuple(map(codes[:, i].tolist().index, codes[:, i].tolist()))
        ways.setdefault((parted, *kinds[i]), []).append(i)
    return [at[0] for at in ways.values()] + [i for at in ways.values() for i in at[1:]]


def _block_rows(unit: BlockFusedDotUnit):
    """(kind, factors (k, a, b), exponents of both scales of each block, C) of one step, the simplest first.

    Zeros beside a small C; many products that are small; and one that is C's last place beside one that is smaller and
    of the other sign, in another block if there are several.
    """
    fmt, last = unit.operand[0], int(np.log2(float(unit.accumulator.smallest_subnormal)))
    blocks = fmt.blocks(unit.terms)
    least, large = fmt.scale_exponents
    ones = [(k, 1.0, 1.0) for k in range(unit.terms)]
    yield "zeros", [], [(large, large)] * blocks, 2.0**last
    for below in range(1, _LOWEST):
        half = max(least, (last - below) // 2)
        yield "many", ones, [(half, last - below - half)] * blocks, 0.0
        other = (last // 2, last - last // 2 - below)
        tiny = -1.0 if blocks > 1 else -max(2.0**-below, float(fmt.element.smallest_subnormal))
        at = fmt.block_size if blocks > 1 else 1
        scales = [(last // 2, last - last // 2), *[other] * (blocks - 1)]
        yield "signs", [ones[0], (at, tiny, 1.0)], scales, 0.0


def _telling_blocks(units: Mapping[str, BlockFusedDotUnit], most: int) -> list[Telling]:
    """`telling` of units of block formats."""
    first = next(iter(units.values()))
    if first.tensor_scales:  # without them the same instruction, and C among the terms
        bare = tuple(BlockFormat(f.element, f.scale, f.block_size) for f in first.operand)
        units = {name: replace(unit, operand=bare) for name, unit in units.items()}
    fa, fb = next(iter(units.values())).operand
    limits = [f.scale_exponents for f in (fa, fb)]
    rows = [row for row in _block_rows(first) if all(
        low <= e <= high for pair in row[2] for e, (low, high) in zip(pair, limits, strict=True)
    )]  # fmt: skip
    if not rows:
        return []
    left, right = (np.zeros((len(rows), first.terms)) for _ in "ab")
    for i, (_, factors, _, _) in enumerate(rows):
        for k, x, y in factors:
            left[i, k], right[i, k] = x, y
    codes = [encode(x, f.element) for x, f in ((left, fa), (right, fb))]
    scales = [
        encode(2.0 ** np.array([[pair[side] for pair in row[2]] for row in rows]), f.scale)
        for side, f in enumerate((fa, fb))
    ]
    starts = np.array([row[3] for row in rows])
    operands = (
        BlockArray(codes[0][:, None, :], scales[0][:, None, :], fa, -1),
        BlockArray(codes[1][:, :, None], scales[1][:, :, None], fb, -2),
    )
    results = {
        name: encode(matmul(*operands, unit, starts[:, None, None])[:, 0, 0].astype(np.float64), unit.result)
        for name, unit in units.items()
    }
    return [
        Telling(
            *(tuple(x[i].tolist()) for x in codes), int(encode(starts[i], first.result)),
            {name: int(column[i]) for name, column in results.items()}, *(tuple(x[i].tolist()) for x in scales),
        )
        for i in _chosen(results, [row[:1] for row in rows])[:most]
    ]  # fmt: skip


def _codes(x, fmt) -> tuple[int, ...]:
    return tuple(encode(x, fmt).tolist())
