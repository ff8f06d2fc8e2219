from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_FRACTION_BITS: int
MOST_TERMS: int
MOST_STREAMS: int

class Definition:
    @property
    def native(self) -> tuple[int, int]: ...
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
    def run_each(
        self,
        a: NDArray[np.uint64],
        b: NDArray[np.uint64],
        c: NDArray[np.uint64] | None,
        out: NDArray[np.uint64],
        words: NDArray[np.uint32] | None,
    ) -> int: ...

class DefinitionFused(Definition):
    def __init__(self, unit: Any) -> None: ...

class DefinitionChain(Definition):
    def __init__(self, unit: Any) -> None: ...

class DefinitionTwoStage(Definition):
    def __init__(self, unit: Any) -> None: ...

class DefinitionGrouped(Definition):
    def __init__(self, unit: Any) -> None: ...

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
    def native(self) -> tuple[int, int]: ...
    @property
    def plan(self) -> dict[str, Any]: ...

class FastGrouped(FastOfCarriers):
    @property
    def native(self) -> tuple[int, int]: ...
