from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_WORDS: int
TALLIES: int
HOW: dict[str, int]

def words_of_steps(
    source: Any,
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

def fast(unit: Any, gemm: Any) -> FastBlock | None: ...

class DefinitionBlock:
    def __init__(self, unit: Any) -> None: ...
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
        tallies: NDArray[np.uint64] | None = None,
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
        tallies: NDArray[np.uint64] | None = None,
    ) -> int: ...
    def add_each(
        self,
        sums: NDArray[np.uint64] | None,
        a: NDArray[np.uint64] | None,
        b: NDArray[np.uint64] | None,
        scale_a: NDArray[np.uint64],
        scale_b: NDArray[np.uint64],
        out: NDArray[np.uint64],
        words: NDArray[np.uint32] | None,
        step: int,
    ) -> int: ...
    def finish_each(
        self,
        tensors: NDArray[np.uint64],
        binary32: Any,
        c: NDArray[np.uint64] | None,
        out: NDArray[np.uint64],
        words: NDArray[np.uint32] | None,
        step: int,
    ) -> int: ...

class FastBlock:
    gemm_of_blocks: Any
    @property
    def how(self) -> str: ...
    @property
    def checked(self) -> bool: ...
    @property
    def finite(self) -> bool: ...
    def narrow(self, size: int) -> bool: ...
    def split(self, size: int, a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None: ...
    def scales_fit(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> bool: ...
    def gemm(
        self,
        how: str,
        a: NDArray[Any],
        b: NDArray[Any],
        scale_a: NDArray[np.float64],
        scale_b: NDArray[np.float64],
        c: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        n0: int,
        size: int,
        magic: float,
    ) -> None: ...
    def products(
        self,
        how: str,
        a: NDArray[Any],
        b: NDArray[Any],
        scale_a: NDArray[np.float64],
        scale_b: NDArray[np.float64],
        c: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        keys: tuple[int, int, int, int],
        first: int,
        last: int,
        size: int,
        magic: float,
    ) -> None: ...
    def outer(
        self,
        how: str,
        sums: NDArray[Any],
        scale_a: NDArray[np.float64],
        scale_b: NDArray[np.float64],
        out: NDArray[np.float64],
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        n0: int,
        block: int,
        step: int,
    ) -> None: ...
    def finish(
        self,
        how: str,
        scale_a: NDArray[np.float64],
        scale_b: NDArray[np.float64],
        c: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        n0: int,
        tensor: float,
        step: int,
    ) -> None: ...
