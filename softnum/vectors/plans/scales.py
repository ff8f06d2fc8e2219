"""Random scales of blocks, of arrays too, for the kinds of vectors that `softnum.vectors.plans.strata` draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from softnum.vectors.plans.rules import (
    edge_rule,
    made_of,
    move_to,
    near_one_rule,
    number_rule,
    picked,
    signed_alike,
)  # fmt: skip
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["drawn_scales"]

_U = np.uint64
_ARRAYS_REACH = 3


def drawn_scales(kind: str, codes: np.ndarray, words: Any, spec: UnitSpec) -> list[np.ndarray]:
    """The scales of vectors of a kind.

    Scales lie about 1, so far apart that blocks meet in some of the result's digits; products that cancel have equal
    scales, and small and large ones what brings them to the result's limits.

    Parameters
    ----------
    kind : str
        A key of `softnum.vectors.plans.strata.UNIT_SHARES`.
    codes, words : list of ndarrays of uint64, shape (n, scales)
        For each of ``spec.scale_columns`` uniform codes, and random words.
    spec : UnitSpec

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.vectors import UnitSpec
    >>> spec = UnitSpec.make("dot", "BlockDotUnit('binary32', operand='mxfp4_e2m1')", length=64)
    >>> words = [np.arange(4, dtype=np.uint64).reshape(2, 2) << np.uint64(59)] * 2
    >>> a, b = drawn_scales("cancelling", words, words, spec)
    >>> bool((a[:, 0] == a[:, 1]).all())  # the second block undoes the first
    True
    """
    columns = spec.scale_columns
    if kind == "uniform":
        return codes
    reach = 1 if kind == "one sign" else max(3, (spec.out_fmt.precision or 0) // 4)
    of_arrays = [i > 1 for i in range(len(columns))]  # which are positive
    rules = [near_one_rule(c.format, _ARRAYS_REACH if a else reach, a) for c, a in zip(columns, of_arrays, strict=True)]
    out = [made_of(rule, w) for rule, w in zip(rules, words, strict=True)]
    if kind == "one sign":
        out[:2] = [signed_alike(c.format, x, w[:, :1]) for c, x, w in zip(columns[:2], out[:2], words, strict=False)]
    elif kind in ("small", "large"):
        e = _exponent_to(kind, spec)
        for column, x, w in zip(columns[:2], out, words, strict=False):
            if column.format.exponent_bits:
                move_to(x, picked(number_rule(e - 3, 6), w), column.format)
    elif kind == "cancelling":
        m, n, _ = spec.shape
        _alike(out[0].reshape(-1, m, spec.blocks))
        _alike(out[1].reshape(-1, spec.blocks, n).swapaxes(1, 2))
    elif kind == "specials":
        edges = [made_of(edge_rule(c.format), w) for c, w in zip(columns, words, strict=True)]
        out = [np.where(w & _U(15) == 1, x, y) for w, x, y in zip(words, edges, out, strict=True)]
    return out


def _exponent_to(kind: str, spec: UnitSpec) -> int:
    """The exponent of scales that brings products of such elements to the result's limit."""
    if kind == "small":
        of_elements = sum(f.emin // 2 for f in spec.formats[:2] if f.exponent_bits)
        return (spec.out_fmt.emin - of_elements) // 2 if spec.out_fmt.exponent_bits else 0
    of_elements = sum((f.emax + 1) // 2 for f in spec.formats[:2] if f.exponent_bits)
    return (spec.out_fmt.emax - of_elements) // 2 if spec.out_fmt.exponent_bits else 0


def _alike(scales: np.ndarray) -> None:
    """The second half of a sum's blocks gets the scales of the first; all get that of the first, of an odd number."""
    half = scales.shape[2] // 2
    scales[:, :, half:] = scales[:, :, :half] if 2 * half == scales.shape[2] else scales[:, :, :1]
