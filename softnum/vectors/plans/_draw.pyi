from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Rule:
    def __init__(
        self,
        kind: str,
        *,
        shift: int = 0,
        kept: int = 0,
        top: int = 0,
        first: int = 0,
        count: int = 0,
        other_first: int = 0,
        other_count: int = 0,
        flip: int = 0,
        less: int = 0,
        salt: int = 0,
        which: int = 0,
        most: int = 0,
        table: NDArray[np.uint64] | None = None,
    ) -> None: ...
    def apply(
        self, words: NDArray[np.uint64], codes: NDArray[np.uint64], choices: NDArray[np.uint64] | None = None
    ) -> None: ...

def fill_words(out: NDArray[np.uint64], base: int) -> None: ...

SLOTS: int

def fill_block(
    steps: list[tuple[Rule, int, int, int]], base: int, choices: NDArray[np.uint64], codes: NDArray[np.uint64]
) -> None: ...

def deal(words: NDArray[np.uint64], order: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[Any]: ...

def crossed(
    tables: list[NDArray[np.uint64]], first: Sequence[int], stride: Sequence[int], n: int
) -> list[NDArray[np.uint64]]: ...
