"""What softnum.kernels computes, imported when it is needed: CUDA arrays, and functions of the user's.

This module is the one door to it.
"""

from __future__ import annotations

__all__ = [
    "compile_function", "custom_engine", "elementwise_loop", "fingerprint", "is_device_array", "is_short", "loops",
    "matmul", "quantize", "scalar",
]  # fmt: skip


def is_device_array(x) -> bool:
    """Whether x lies on a GPU: ``__cuda_array_interface__`` (CuPy, PyTorch, Numba, JAX), or Numba's simulator.

    Examples
    --------
    >>> import numpy as np
    >>> is_device_array(np.zeros(3))
    False
    """
    return hasattr(x, "__cuda_array_interface__") or hasattr(x, "__cuda_ndarray__")


def quantize(x, fmt, **options):
    """`softnum.quantize` of a CUDA array, on the device."""
    from softnum.kernels.device.quantize import quantize

    return quantize(x, fmt, **options)


def matmul(a, b, unit, c=None, **options):
    """`softnum.matmul` of CUDA arrays, on the device; TypeError for a unit without a kernel."""
    from softnum.kernels.device.gemm import matmul

    return matmul(a, b, unit, c, **options)


def _needs_numba(what: str) -> None:
    try:
        import numba  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{what}: Python functions are compiled by Numba, which is not installed: pip install 'softnum[custom]'"
        ) from None


def compile_function(function, name: str, takes: str, gives: str, count: int, bits: int, what: str):
    """A user's Python function over arrays, compiled (`softnum.kernels.functions`); ImportError without Numba."""
    _needs_numba(what)
    from softnum.kernels.functions import Compiled

    return Compiled(function, name, takes, gives, count, bits, what)


def scalar(fmt, **options):
    """A format's arithmetic on single numbers (`softnum.kernels.scalar`)."""
    from softnum.kernels.scalars import scalar

    return scalar(fmt, **options)


def custom_engine(unit):
    """The compiled engine of a CustomMadUnit; ImportError without Numba."""
    _needs_numba(unit.name)
    from softnum.kernels.custom_gemm import engine_of

    return engine_of(unit)


def elementwise_loop(operations, names, inputs, outputs):
    """A compiled loop over operations (`softnum.kernels.elementwise.loop_of`); None outside its domain."""
    try:
        from softnum.kernels.elementwise import loop_of
    except ImportError:  # there is no Numba, and the operations are carried out one by one
        return None
    return loop_of(operations, names, inputs, outputs)


def is_short(scalar, *names: str) -> bool:
    """Whether operations of a scalar are a few instructions each in compiled code."""
    from softnum.kernels.contractions import is_short

    return is_short(scalar, *names)


def loops(kind: str, loops, arrays, start, operations=()):
    """A contraction by compiled loops: `softnum.kernels.contractions.run`."""
    from softnum.kernels.contractions import run

    return run(kind, loops, arrays, start, operations)


def fingerprint(*functions) -> str | None:
    """A digest of Python functions and of all that they read from outside; None if that cannot be told."""
    from softnum.kernels.cache import fingerprint

    return fingerprint(*functions)
