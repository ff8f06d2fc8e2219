from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES: int
MAX_LANES: int
REDUCTION: dict[str, int]
PATH: dict[str, int]
PRODUCT: dict[str, int]

class FastGemm:
    wide: bool
    def __init__(self, plan: Any) -> None: ...
    def run(
        self,
        a: NDArray[Any],
        b: NDArray[Any],
        c: NDArray[Any] | None,
        out: NDArray[Any],
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        m1: int,
        n0: int,
        n1: int,
        first: tuple[int, int] = (0, 0),
    ) -> None: ...
    def product(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None) -> NDArray[Any] | None: ...

class IntegerGemm(FastGemm):
    converts: bool

class DefinitionGemm:
    def __init__(
        self,
        operands: tuple[Any, Any],
        product: Any,
        accumulator: Any,
        outer: Any,
        product_env: tuple[int, ...],
        sum_env: tuple[int, ...],
        outer_env: tuple[int, ...],
        chunk: int,
        lanes: int,
        reduction: str,
        compensated: bool,
    ) -> None: ...
    def run(
        self,
        a: NDArray[np.uint64],
        b: NDArray[np.uint64],
        c: NDArray[np.uint64] | None,
        out: NDArray[np.uint64],
        words: NDArray[np.uint32] | None,
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        m1: int,
        n0: int,
        n1: int,
        first: tuple[int, int] = (0, 0),
        tallies: NDArray[np.uint64] | None = None,
    ) -> int: ...
