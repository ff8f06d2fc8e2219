from collections.abc import Buffer, Sequence

import numpy as np
from numpy.typing import NDArray

def format_rows(
    parts: list[NDArray[np.uint8]], digits: Sequence[int], literals: list[bytes], n: int, binary: bool = False
) -> bytes: ...

def parse_rows(
    text: Buffer, digits: Sequence[int], octets: Sequence[int], literals: list[bytes], binary: bool = False
) -> list[NDArray[np.uint8]] | None: ...

def join_words(parts: list[NDArray[np.uint8]], widths: Sequence[int], n: int) -> NDArray[np.uint8]: ...

def split_words(
    words: NDArray[np.uint8], widths: Sequence[int], octets: Sequence[int]
) -> list[NDArray[np.uint8]]: ...

def format_floats(
    codes: list[NDArray[np.uint64]], fields: Sequence[tuple[int, int]], prefix: Buffer, arrow: Buffer, flags: Buffer,
    ends: list[bytes], n: int,
) -> bytes: ...  # fmt: skip

def parse_floats(
    text: Buffer, fields: Sequence[tuple[int, int]], prefix: Buffer, arrow: Buffer, after: bool
) -> list[NDArray] | None: ...
