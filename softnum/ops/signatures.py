"""The types of operations of one, two and three operands: of Arrays, or of codes with their formats."""

from __future__ import annotations

from typing import Literal, Protocol, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softnum.arrays.container import Array
from softnum.formats.annotations import FormatLike, Formats, OperationOptions

__all__ = ["Binary", "Ternary", "Unary"]

Flagged = tuple[np.ndarray, NDArray[np.uint8]]
FlaggedArray = tuple[Array, NDArray[np.uint8]]


class Unary(Protocol):
    """An operation of one operand."""

    __name__: str

    @overload
    def __call__(
        self, a: Array, *, return_flags: Literal[False] = False, **options: Unpack[OperationOptions]
    ) -> Array: ...
    @overload
    def __call__(
        self, a: Array, *, return_flags: Literal[True], **options: Unpack[OperationOptions]
    ) -> FlaggedArray: ...
    @overload
    def __call__(
        self,
        a: ArrayLike,
        fmt: FormatLike,
        *,
        return_flags: Literal[False] = False,
        **options: Unpack[OperationOptions],
    ) -> np.ndarray: ...
    @overload
    def __call__(
        self, a: ArrayLike, fmt: FormatLike, *, return_flags: Literal[True], **options: Unpack[OperationOptions]
    ) -> Flagged: ...


class Binary(Protocol):
    """An operation of two operands."""

    __name__: str

    @overload
    def __call__(
        self, a: Array, b: Array, *, return_flags: Literal[False] = False, **options: Unpack[OperationOptions]
    ) -> Array: ...
    @overload
    def __call__(
        self, a: Array, b: Array, *, return_flags: Literal[True], **options: Unpack[OperationOptions]
    ) -> FlaggedArray: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, fmt: Formats, *, return_flags: Literal[False] = False,
        **options: Unpack[OperationOptions],
    ) -> np.ndarray: ...  # fmt: skip
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, fmt: Formats, *, return_flags: Literal[True],
        **options: Unpack[OperationOptions],
    ) -> Flagged: ...  # fmt: skip


class Ternary(Protocol):
    """An operation of three operands."""

    __name__: str

    @overload
    def __call__(
        self, a: Array, b: Array, c: Array, *, return_flags: Literal[False] = False,
        **options: Unpack[OperationOptions],
    ) -> Array: ...  # fmt: skip
    @overload
    def __call__(
        self, a: Array, b: Array, c: Array, *, return_flags: Literal[True], **options: Unpack[OperationOptions]
    ) -> FlaggedArray: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, c: ArrayLike, fmt: Formats, *, return_flags: Literal[False] = False,
        **options: Unpack[OperationOptions],
    ) -> np.ndarray: ...  # fmt: skip
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, c: ArrayLike, fmt: Formats, *, return_flags: Literal[True],
        **options: Unpack[OperationOptions],
    ) -> Flagged: ...  # fmt: skip
