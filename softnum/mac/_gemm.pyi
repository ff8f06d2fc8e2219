from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LANES: int
MAX_LANES: int
REDUCTION: dict[str, int]

class Round32(NamedTuple):
    emin: int
    emax: int
    sign_of_zero: int
    mantissa_bits: int
    scale: float
    bound: float
    limit: tuple[float, float]
    overflow: tuple[float, float]

def fast(
    unit: Any, operands: tuple[Any, Any], facts: tuple[Any, Any], counting: bool = False
) -> FastGemm | IntegerGemm | None: ...
def fast_chain(unit: Any, facts: tuple[Any, Any], counting: bool = False) -> FastGemm | None: ...
def core_facts(fmt: Any) -> tuple[int, int, int, bool]: ...

class FastGemm:
    wide: bool
    takes_words: bool
    @property
    def native(self) -> tuple[int, int]: ...
    @property
    def path(self) -> str: ...
    @property
    def lacks_nan(self) -> bool: ...
    @property
    def product_rounding(self) -> str: ...
    @property
    def zeros(self) -> str: ...
    @property
    def exact_below(self) -> bool: ...
    @property
    def chunk(self) -> int: ...
    @property
    def two_roundings(self) -> bool: ...
    @property
    def magic(self) -> tuple[Round32, Round32, Round32]: ...
    @property
    def levels(self) -> tuple[str, ...]: ...
    def level(self, k: int, largest: tuple[float, float, float], negative_zero: bool) -> str: ...
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
        tallies: NDArray[np.uint64] | None = None,
    ) -> int: ...
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
    ) -> int: ...
    def product(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None) -> NDArray[Any] | None: ...

class IntegerGemm:
    path: str
    wide: bool
    converts: bool
    @property
    def shift(self) -> int: ...
    @property
    def wraps(self) -> bool: ...
    @property
    def ends(self) -> tuple[int, int]: ...
    @property
    def scale(self) -> float: ...
    def fits(self, k: int, largest: tuple[float, float, float]) -> bool: ...
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

class DefinitionGemm:
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
