from collections.abc import Buffer, Sequence

import numpy as np
from numpy.typing import NDArray

def format_rows(parts: list[NDArray[np.uint8]], digits: Sequence[int], n: int) -> bytes: ...

def parse_rows(text: Buffer, digits: Sequence[int], octets: Sequence[int]) -> list[NDArray[np.uint8]] | None: ...
