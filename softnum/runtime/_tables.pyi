import numpy as np
from numpy.typing import NDArray

SLACK: int

def look_up(
    table: NDArray[np.uint8], a: NDArray[np.uint8], b: NDArray[np.uint8], out: NDArray[np.uint8], start: int, stop: int
) -> None: ...
def sums(
    product: NDArray[np.uint32],
    sum: NDArray[np.uint8],
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    acc: NDArray[np.uint8],
) -> None: ...
