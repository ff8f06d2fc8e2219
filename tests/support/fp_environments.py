"""Floating-point environments that other libraries leave: set from Python, or by a library that is preloaded."""

import ctypes

import pytest

from tests.support.c_helpers import built_for_x86

__all__ = ["ENVIRONMENTS", "PRELOADED", "control", "preloaded"]

_SOURCE = """
#include <immintrin.h>
unsigned get(void) { return _mm_getcsr(); }
void set(unsigned value) { _mm_setcsr(value); }
/* 0x1.8p-127 / 1 in the current environment: 0 where subnormals are flushed */
float probe(void) { volatile float tiny = 0x1.8p-126f, half = 0.5f; return tiny * half; }
float third(void) { volatile float one = 1.0f, three = 3.0f; return one / three; }
#ifdef VALUE
__attribute__((constructor)) static void change(void) { set(VALUE); }
#endif
"""
PLAIN, FTZ, DAZ, DOWN, UP, TOWARD_ZERO = 0x1F80, 0x8000, 0x0040, 0x2000, 0x4000, 0x6000
ENVIRONMENTS = {
    "ftz and daz": PLAIN | FTZ | DAZ,
    "toward zero": PLAIN | TOWARD_ZERO,
    "up": PLAIN | UP,
    "down, ftz and daz": PLAIN | DOWN | FTZ | DAZ,
    "toward zero, ftz and daz": PLAIN | TOWARD_ZERO | FTZ | DAZ,
    "daz": PLAIN | DAZ,
    "ftz": PLAIN | FTZ,
}
PRELOADED = ("ftz and daz", "up")


def _library(folder, *options: str):
    (folder / "mxcsr.c").write_text(_SOURCE)  # sets MXCSR, which only x86-64 has
    return built_for_x86(folder, folder / "mxcsr.c", *options)


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    """Functions that get and set this thread's environment, and show what it does."""
    helper = ctypes.CDLL(_library(tmp_path_factory.mktemp("mxcsr")))
    helper.get.restype = ctypes.c_uint
    helper.set.argtypes = [ctypes.c_uint]
    helper.probe.restype = helper.third.restype = ctypes.c_float
    return helper


@pytest.fixture
def preloaded(tmp_path_factory):
    """Of a kind of environment: the library that, for LD_PRELOAD, makes a process begin in it."""
    return lambda kind: _library(tmp_path_factory.mktemp("preloaded"), f"-DVALUE={ENVIRONMENTS[kind]}")
