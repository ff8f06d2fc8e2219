"""Peers that are libraries of C and of C++, CPFloat and Universal: compiled from the sources that two variables name.

    SOFTNUM_CPFLOAT=folder SOFTNUM_UNIVERSAL=folder python -m benchmarks --only peers

Each folder is a checkout. CPFloat is built without its submodule PCG, so that its stochastic bits come from C's rand.
Universal takes a compiler of C++20 a minute.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import softnum as sn

__all__ = ["COMPILED", "CPFLOAT_MODES", "CPFloat", "Universal", "built", "finite_codes", "version"]

_DRIVERS = Path(__file__).parent / "drivers"
CPFLOAT_MODES = {
    "nearest_even": 1, "nearest_away": -1, "nearest_zero": 0, "up": 2, "down": 3, "toward_zero": 4, "to_odd": 7
}  # fmt: skip
_CPFLOAT_STOCHASTIC = 5
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-w")


def _library(driver: str, compiler: str, folder: str, *options: str) -> ctypes.CDLL:
    """A driver, compiled and loaded. Raises RuntimeError with what the compiler said."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "driver.so"
        command = [compiler, *_FLAGS, f"-I{folder}", "-o", str(target), str(_DRIVERS / driver), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        return ctypes.CDLL(str(target))


def _address(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


class CPFloat:
    """Arrays of float32 or float64 rounded to a format, and operations whose results are."""

    variable, name = "SOFTNUM_CPFLOAT", "CPFloat"

    def __init__(self, folder: str) -> None:
        self._library = _library("cpfloat.c", os.environ.get("CC", "cc"), f"{folder}/src", "-lm")

    @staticmethod
    def _facts(fmt: str, mode: str) -> tuple[int, ...]:  # precision, least and greatest exponent, mode
        f = sn.format(fmt)
        number = _CPFLOAT_STOCHASTIC if mode == "stochastic" else CPFLOAT_MODES[mode]
        return f.mantissa_bits + 1, f.emin, f.emax, number

    def quantize(self, x: np.ndarray, fmt: str, mode: str = "nearest_even") -> np.ndarray:
        """Values of an IEEE-like format in a new array."""
        return self.round_to(x, *self._facts(fmt, mode))

    def round_to(self, x: np.ndarray, precision: int, emin: int, emax: int, mode: int = 1) -> np.ndarray:
        """The same, of a format and a mode by CPFloat's numbers."""
        out = np.empty_like(x)
        call = self._library.round32 if x.dtype == np.float32 else self._library.round64
        call(_address(out), _address(x), ctypes.c_size_t(x.size), precision, emin, emax, mode)
        return out

    def operate(self, op: str, x: np.ndarray, y: np.ndarray, fmt: str, mode: str = "nearest_even") -> np.ndarray:
        """x + y ("add") or x * y ("multiply") of float32 arrays, rounded to a format."""
        out = np.empty_like(x)
        call = getattr(self._library, f"{op}32")
        call(_address(out), _address(x), _address(y), ctypes.c_size_t(x.size), *self._facts(fmt, mode))
        return out


class Universal:
    """Arrays of codes: posits, its cfloat as binary16 and bfloat16, its microfloat as e4m3fn and e5m2."""

    variable, name = "SOFTNUM_UNIVERSAL", "Universal"
    operations = ("add", "subtract", "multiply", "divide")
    #: softnum's formats; an infinity of a cfloat has another code
    formats = ("posit8", "posit16", "posit32", "binary16", "bfloat16", "e4m3fn", "e5m2")

    def __init__(self, folder: str) -> None:
        compiler = os.environ.get("CXX", "c++")
        self._library = _library("universal.cpp", compiler, f"{folder}/include/sw", "-std=c++20")

    def operate(self, op: str, a: np.ndarray, b: np.ndarray, fmt: str) -> np.ndarray:
        """Codes of the results of one of `operations`."""
        out = np.empty_like(a)
        call = getattr(self._library, f"{fmt}_operate")
        call(self.operations.index(op), _address(a), _address(b), _address(out), ctypes.c_size_t(a.size))
        return out

    def encode(self, x: np.ndarray, fmt: str) -> np.ndarray:
        """Codes of float32 values."""
        out = np.empty(x.shape, sn.format(fmt).storage_dtype)
        getattr(self._library, f"{fmt}_encode")(_address(x), _address(out), ctypes.c_size_t(x.size))
        return out

    def decode(self, codes: np.ndarray, fmt: str) -> np.ndarray:
        """Values of codes, as float32."""
        out = np.empty(codes.shape, np.float32)
        getattr(self._library, f"{fmt}_decode")(_address(codes), _address(out), ctypes.c_size_t(codes.size))
        return out


COMPILED = (CPFloat, Universal)


@cache
def built(peer: type):
    """A peer, compiled once; None where no variable names its sources.

    Raises
    ------
    RuntimeError
        If it cannot be compiled.
    """
    folder = os.environ.get(peer.variable)
    return peer(folder) if folder else None


def version(peer: type) -> str:
    """The commit of a peer's checkout, or what to say without one."""
    folder = os.environ.get(peer.variable)
    if not folder:
        return f"not built: {peer.variable} names no sources"
    done = subprocess.run(
        ["git", "-C", folder, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "of no known commit"


def finite_codes(fmt: str, count: int) -> Iterator[np.ndarray]:
    """Two arrays of codes: every pair of 8 bits, else random ones; of those with infinities and NaNs, numbers alone."""
    f = sn.format(fmt)
    dtype = f.storage_dtype
    rng = np.random.Generator(np.random.Philox(9))
    if f.bits == 8:
        a, b = (x.reshape(-1) for x in np.meshgrid(*[np.arange(256, dtype=dtype)] * 2))
    else:
        a, b = rng.integers(0, np.iinfo(dtype).max, (2, count), dtype, endpoint=True)
    finite = np.isfinite(sn.decode(a, fmt)) & np.isfinite(sn.decode(b, fmt))
    yield from (np.ascontiguousarray(a[finite]), np.ascontiguousarray(b[finite]))
