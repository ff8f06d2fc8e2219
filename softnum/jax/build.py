"""The handlers of XLA's custom calls: compiled when first needed, kept in the cache, and registered with JAX."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import jax

from softnum.formats.custom.compiler import compile_c, preprocess

__all__ = ["library"]

_WHAT = "softnum.jax"
_TARGETS = ("softnum_jax_matmul", "softnum_jax_quantize", "softnum_jax_spawn")


def _path() -> Path:
    """The compiled library: one for each text of the handlers, version of jaxlib's headers and compiler."""
    source = Path(__file__).with_name("handlers.c")
    flags = ("-pthread", f"-I{jax.ffi.include_dir()}")
    try:
        text = preprocess(source.read_text(encoding="utf-8"), name=source.name, cflags=flags, what=_WHAT)
        return compile_c(text, cflags=("-pthread",), what=_WHAT)
    except ValueError as error:
        raise RuntimeError(
            f"{error}\nsoftnum.jax compiles its handlers of XLA's calls once, with a C compiler: apt-get install gcc, "
            "dnf install gcc, or xcode-select --install; or name one by the environment variable CC. They are kept in "
            "the folder that SOFTNUM_CACHE names (default: ~/.cache/softnum)"
        ) from None


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded library, whose handlers JAX knows from now on, on the CPU.

    Raises
    ------
    RuntimeError
        If there is no C compiler, or nothing can be written to the cache.

    Examples
    --------
    >>> from softnum.jax.build import library
    >>> library() is library()
    True
    """
    loaded = ctypes.CDLL(str(_path()))
    loaded.softnum_jax_add.argtypes, loaded.softnum_jax_add.restype = [ctypes.c_void_p], ctypes.c_int
    for name in _TARGETS:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(loaded, name)), platform="cpu")
    return loaded
