from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_WORDS: int

def words_of_steps(
    keys: tuple[int, int, int, int],
    batch: int,
    m0: int,
    m1: int,
    n0: int,
    n1: int,
    steps: list[int],
    two_roundings: bool,
    wide: bool,
) -> NDArray[np.uint32]: ...

class DefinitionBlock:
    def __init__(
        self,
        elements: tuple[Any, Any],
        scales: tuple[Any, Any],
        inner: Any,
        product: Any,
        accumulator: Any,
        product_env: tuple[int, ...],
        sum_env: tuple[int, ...],
        bottom: int,
        plain: int,
        words: int,
    ) -> None: ...
    def add(
        self,
        sums: NDArray[np.uint64] | None,
        a: NDArray[np.uint64] | None,
        b: NDArray[np.uint64] | None,
        scale_a: NDArray[np.uint64],
        scale_b: NDArray[np.uint64],
        out: NDArray[np.uint64],
        words: NDArray[np.uint32] | None,
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        n0: int,
        step: int,
    ) -> int: ...
    def finish(
        self,
        tensor_a: int,
        tensor_b: int,
        binary32: Any,
        c: NDArray[np.uint64] | None,
        out: NDArray[np.uint64],
        words: NDArray[np.uint32] | None,
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        n0: int,
        step: int,
    ) -> int: ...
