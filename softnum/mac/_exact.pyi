from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_WORDS: int

class DefinitionExact:
    @property
    def native(self) -> tuple[int, int]: ...
    def __init__(self, unit: Any, operands: tuple[Any, Any]) -> None: ...
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

def fast(unit: Any, operands: tuple[Any, Any], facts: tuple[Any, Any]) -> FastExact | None: ...

class FastExact:
    wide: bool
    @property
    def native(self) -> tuple[int, int]: ...
    def split(
        self, a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64] | None = None
    ) -> tuple[int, int, bool]: ...
    def run(
        self,
        a: NDArray[np.float64],
        b: NDArray[np.float64],
        c: NDArray[np.float64] | None,
        out: NDArray[np.float64],
        keys: tuple[int, int, int, int],
        batch: int,
        m0: int,
        m1: int,
        n0: int,
        n1: int,
        first: tuple[int, int] = (0, 0),
    ) -> None: ...
