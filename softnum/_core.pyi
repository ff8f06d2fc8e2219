from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES: int
OPERATIONS: dict[str, tuple[int, int]]
PRODUCT: dict[str, int]
UFUNCS: dict[str, np.ufunc]
UFUNCS_FLAGS: dict[str, np.ufunc]

def available_isas() -> list[str]: ...
def use_isa(name: str) -> None: ...
def current_isa() -> str: ...
def intern_context(operation: str, formats: tuple, out: Any, env: tuple[int, ...]) -> np.uint64: ...
def has_lanes(operation: str, handle: np.uint64) -> bool: ...
def define(
    operation: str, handle: np.uint64, operands: Any, words: Any
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]: ...
def tabulate(operation: str, handle: np.uint64, width: int, n: int) -> int | None: ...
def check_handles() -> None: ...
def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, ...]: ...
def philox_key(seed: int, stream: int, domain: int) -> tuple[int, int]: ...
WORD_BLOCK: int

def elementwise_words(key: tuple[int, ...], out: NDArray[np.uint32], start: int, stop: int) -> None: ...
def look_up(table: NDArray[Any], codes: NDArray[Any], out: NDArray[Any], start: int, stop: int) -> None: ...
def round_exact(
    sign: int, sig: int, exp: int, sticky: int, fmt: Any, env: tuple[int, ...], random: int
) -> tuple[int, int]: ...
def unpack(code: int, fmt: Any) -> tuple[str, int, int, int]: ...
def convert_array(
    codes: NDArray[Any], source: Any, target: Any, env: tuple[int, ...], out: NDArray[Any]
) -> int: ...
def overflow_code(fmt: Any, env: tuple[int, ...], sign: int) -> int: ...

class PlainEnvironment:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

class Rounder:
    ok: int
    def __init__(self, fmt: Any, env: tuple[int, ...], carrier_bits: int) -> None: ...
    def quantize(
        self,
        x: NDArray[Any],
        out: NDArray[Any],
        words: NDArray[np.uint32] | None,
        key: tuple[int, int],
        start: int,
        stop: int,
    ) -> bool: ...
    def encode(
        self,
        x: NDArray[Any],
        codes: NDArray[Any],
        words: NDArray[np.uint32] | None,
        key: tuple[int, int],
        start: int,
        stop: int,
    ) -> bool: ...

class Decoder:
    ok: bool
    def __init__(self, fmt: Any, carrier_bits: int) -> None: ...
    def decode(self, codes: NDArray[Any], out: NDArray[Any], start: int, stop: int) -> None: ...

class FastGemm:
    wide: bool
    def __init__(self, plan: Any) -> None: ...
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
    ) -> None: ...

class DefinitionGemm:
    def __init__(
        self,
        operands: tuple[Any, Any],
        product: Any,
        accumulator: Any,
        outer: Any,
        product_env: tuple[int, ...],
        sum_env: tuple[int, ...],
        outer_env: tuple[int, ...],
        chunk: int,
    ) -> None: ...
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
    ) -> int: ...
