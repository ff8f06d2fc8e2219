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
def tapered_values(f: tuple[int, int, int], codes: NDArray, numbers: NDArray[np.float64]) -> None: ...
def tapered_codes(f: tuple[int, int, int], numbers: NDArray[np.float64], codes: NDArray) -> None: ...
def tapered_sums(
    sum: tuple[int, int, int], product: tuple[int, int, int] | None, a: NDArray, b: NDArray, acc: NDArray
) -> None: ...

BINARY64: int
TAKUM: int
LNS: int
LOGARITHMIC: dict[str, tuple[int, int]]

def logarithmic(
    name: str,
    formats: tuple[tuple[int, int, int], ...],
    out_format: tuple[int, int, int],
    rounding: int,
    codes: tuple[NDArray[np.uint64], ...],
    out: NDArray[np.uint64],
) -> int: ...
