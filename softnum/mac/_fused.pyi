from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_FRACTION_BITS: int
MOST_TERMS: int
MOST_STREAMS: int

class DefinitionFused:
    def __init__(self, unit: Any) -> None: ...
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

class DefinitionChain:
    def __init__(self, unit: Any) -> None: ...
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

class DefinitionTwoStage:
    def __init__(self, unit: Any) -> None: ...
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

class DefinitionGrouped:
    def __init__(self, unit: Any) -> None: ...
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

def fast(unit: Any) -> FastFused | None: ...
def fast_two_stage(unit: Any) -> FastFused | None: ...
def fast_grouped(unit: Any) -> FastGrouped | None: ...

class FastOfCarriers:
    wide: bool
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
    def run_products(
        self,
        a: NDArray[Any],
        b: NDArray[Any],
        c: NDArray[Any] | None,
        out: NDArray[Any],
        keys: tuple[int, int, int, int],
        first: int,
        last: int,
        n: int,
    ) -> None: ...

class FastFused(FastOfCarriers):
    @property
    def plan(self) -> dict[str, Any]: ...

class FastGrouped(FastOfCarriers): ...
