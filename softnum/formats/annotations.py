"""The names that annotations of public functions have for what is given to them.

They describe arrays of NumPy. Functions that take CUDA arrays return arrays of the same library for them, whatever the
annotation of the result.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from softnum.formats.base import AnyFormat

__all__ = ["FormatLike", "Formats", "Key", "OperationOptions", "PathLike", "RoundingOptions"]

#: a format, or the name of one
FormatLike: TypeAlias = "AnyFormat | str"
#: of operands: one for all, or one for each
Formats: TypeAlias = "FormatLike | tuple[FormatLike, ...]"
#: of stochastic rounding: seed, or (seed, stream), as a Stream is
Key: TypeAlias = "int | tuple[int, int]"
PathLike: TypeAlias = "str | os.PathLike[str]"


class _Rounding(TypedDict, total=False):
    key: Key | None
    random_bits: ArrayLike | None
    rounding: str
    overflow: str | None
    stochastic_bits: int
    random: str
    invalid: Literal["raise"] | float
    tininess: Literal["after", "before"]
    flush_results: str | None


class RoundingOptions(_Rounding, total=False):
    """Keywords of `softnum.quantize` and `softnum.encode`."""

    out: np.ndarray | None
    threads: int | None
    axis: int
    scale_rule: str | None
    symmetric: bool
    tensor_scale: float | None


class OperationOptions(_Rounding, total=False):
    """Keywords of operations."""

    out_fmt: FormatLike | None
    flush_inputs: bool
    nan: str
