from typing import Any

import numpy as np
from numpy.typing import NDArray

class DefinitionBlockFused:
    def __init__(self, unit: Any) -> None: ...
    def run(
        self,
        a: NDArray[np.uint64],
        b: NDArray[np.uint64],
        scale_a: NDArray[np.uint64],
        scale_b: NDArray[np.uint64],
        tensor: tuple[int, int] | None,
        binary32: Any,
        c: NDArray[np.uint64] | None,
        out: NDArray[np.uint64],
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
        scale_a: NDArray[np.uint64],
        scale_b: NDArray[np.uint64],
        tensors: NDArray[np.uint64] | None,
        binary32: Any,
        c: NDArray[np.uint64] | None,
        out: NDArray[np.uint64],
    ) -> int: ...

def finish(out: NDArray[np.float64], c: NDArray[np.float64] | None, tensor: float) -> None: ...
def fast(unit: Any) -> FastProducts | FastGroups | None: ...

NAN_SHIFT: int

class FastProducts:
    by_powers: bool
    def run(
        self,
        a: NDArray[np.float32],
        b: NDArray[np.float32],
        shift_a: NDArray[np.int32],
        shift_b: NDArray[np.int32],
        c: NDArray[np.float32] | None,
        out: NDArray[np.float32],
        n0: int,
    ) -> None: ...

class FastGroups:
    by_powers: bool
    @property
    def powers(self) -> bool: ...
    def run(
        self,
        a: NDArray[np.float32],
        b: NDArray[np.float32],
        scale_a: NDArray[np.float64],
        power_a: NDArray[np.float64],
        scale_b: NDArray[np.float64],
        power_b: NDArray[np.float64],
        c: NDArray[np.float32] | None,
        out: NDArray[np.float32],
        n0: int,
    ) -> None: ...
