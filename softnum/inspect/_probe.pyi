from typing import Any

import numpy as np
from numpy.typing import NDArray

OVERFLOWED: int
FLUSHED: int
RECORD: np.dtype

def probe(
    operation: str,
    formats: tuple[Any, ...],
    out_fmt: Any,
    env: tuple[int, ...],
    operands: NDArray[np.uint64],
    words: NDArray[np.uint32] | None,
    out: NDArray[Any],
    start: int,
    stop: int,
) -> None: ...
