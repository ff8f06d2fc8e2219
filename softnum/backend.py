"""What softnum.kernels computes, imported when it is needed: CUDA arrays, and functions of the user's.

This module is the one door to it.
"""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np

from softnum import _core

__all__ = [
    "NoKernel", "check_host_only", "compile_function", "custom_engine", "elementwise_loop", "fingerprint",
    "has_kernel", "is_device_array", "is_short", "loops", "moves_as_numpy", "on_device", "refuse_device", "scalar",
]  # fmt: skip

# a function of softnum's -> the module of softnum.kernels.device whose function of the same name takes CUDA arrays
_DEVICE = {
    "check_codes": "codes_of_arrays",
    "conv2d": "conv",
    "conv2d_backward_data": "conv",
    "conv2d_backward_weight": "conv",
    "copy": "codes_of_arrays",
    "copy_to_host": "codes_of_arrays",
    "decode": "quantize",
    "decode_blocks": "blocks",
    "dot": "gemm",
    "encode": "quantize",
    "encode_blocks": "blocks",
    "holds": "codes",
    "matmul": "gemm",
    "moved": "codes_of_arrays",
    "operator": "operators",
    "put": "codes_of_arrays",
    "quantize": "quantize",
    "quantize_blocks": "blocks",
    "sum": "reduce",
    "transposed": "strides",
    **dict.fromkeys(_core.OPERATIONS, "codes"),
}
_WAY_OUT = "copy them to the host first (.copy_to_host() of Numba and of sn.Array, .get() of CuPy, .cpu() of PyTorch)"
_CUDA_DEVICES = (2, 13)  # of DLPack: CUDA, CUDA managed memory
_OF_THE_HOST = (np.ndarray, np.generic, int, float, str, list, tuple, type(None))


class NoKernel(TypeError):
    """What is asked of CUDA arrays has no kernel: the function, a format or a unit runs on arrays of the host alone."""


def is_device_array(x) -> bool:
    """Whether x lies on a GPU, or in Numba's simulator: CuPy, PyTorch, JAX, Numba, and all who speak their protocols.

    So does an `Array` or `BlockArray` whose codes do.

    Examples
    --------
    >>> import numpy as np
    >>> is_device_array(np.zeros(3))
    False
    """
    if isinstance(x, _OF_THE_HOST):
        return False
    module = type(x).__module__
    if module == "softnum.array":
        return is_device_array(x.codes)
    if module == "softnum.block_array":
        return is_device_array(x.codes) or is_device_array(x.scales)
    if hasattr(x, "__cuda_ndarray__"):
        return True
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) in _CUDA_DEVICES
    return hasattr(x, "__cuda_array_interface__")


def moves_as_numpy(x) -> bool:
    """Whether an array's methods that move elements are NumPy's: Numba lacks some, PyTorch has others of their names.

    >>> import numpy as np
    >>> moves_as_numpy(np.zeros(3))
    True
    """
    return not (hasattr(x, "__cuda_ndarray__") or hasattr(x, "__torch_function__"))


def has_kernel(name: str) -> bool:
    """Whether softnum's function of a name takes CUDA arrays at all.

    >>> has_kernel("matmul"), has_kernel("BlockArray")
    (True, False)
    """
    return name in _DEVICE


def on_device(name: str, *arguments, **options):
    """softnum's function of a name, on CUDA arrays of any library: NoKernel if it has none."""
    if not has_kernel(name):
        refuse_device(name)
    from softnum.kernels.device.arrays import call

    return call(getattr(import_module(f"softnum.kernels.device.{_DEVICE[name]}"), name), *arguments, **options)


def check_host_only(caller: str, threads=None, return_stats: bool = False) -> None:
    """TypeError or ValueError for what is asked of CUDA arrays and is there for arrays of the host alone."""
    if return_stats:
        raise TypeError(f"{caller}: return_stats=True counts on the host; copy the CUDA arrays there first")
    if threads is not None:
        raise ValueError(f"{caller}: threads={threads!r} is for arrays of the host; CUDA arrays take none")


def refuse_device(what: str | None = None) -> None:
    """NoKernel for CUDA arrays; it names the ways out and the function: without a name, softnum's that was called."""
    frame, given = sys._getframe(1), what
    while given is None and frame is not None and frame.f_globals.get("__name__", "").startswith("softnum"):
        what, frame = frame.f_code.co_name, frame.f_back
    raise NoKernel(f"{what or 'this function'} takes no CUDA arrays; {_WAY_OUT}")


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
