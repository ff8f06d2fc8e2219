"""The one module that imports Numba's CUDA target: its simulator, binding of C functions, arrays and launches.

Kernels call a library's entries (entries.py) by name. On a GPU the names are device functions of one C source, which is
linked into the kernel; in the simulator, which cannot link, they are the functions of the same source, compiled for the
CPU by the system's C compiler.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from types import SimpleNamespace

import numpy as np

try:
    import _numba_cuda_redirector  # noqa: F401  what numba-cuda's .pth file does: absent from a folder on PYTHONPATH
    from numba import cuda
    from numba.cuda.core import config
    from numba.cuda.np.numpy_support import from_dtype
except ImportError as error:
    raise ImportError("softnum needs numba-cuda for CUDA arrays: pip install 'softnum[cuda]'") from error

from softnum import kernels
from softnum.custom.compiler import compile_c, preprocess
from softnum.kernels.device.source import Entry, Library

__all__ = [
    "MAX_GRID_Y",
    "SIMULATOR",
    "THREADS",
    "bind",
    "bits",
    "cuda",
    "device_array",
    "empty",
    "ffi",
    "filled",
    "is_contiguous",
    "jit_for",
    "launch",
    "rows",
    "scalar_type",
    "to_device",
    "to_host",
]

# whether kernels run in the simulator; Numba decides once, when it is imported
SIMULATOR = bool(config.ENABLE_CUDASIM)

MAX_GRID_Y = 65535

THREADS = 32 if SIMULATOR else 256  # of a block of an elementwise kernel; the simulator's are threads of Python


def bind(library: Library) -> SimpleNamespace:
    """A library's entries as functions that kernels can call, by their names."""
    if SIMULATOR:
        return _on_host(library)
    source = cuda.CUSource(library.source)
    return SimpleNamespace(
        **{
            entry.name: cuda.declare_device(library.symbol(entry), entry.signature, link=source, abi="c")
            for entry in library.entries
        }
    )


@lru_cache(maxsize=512)
def _on_host(library: Library) -> SimpleNamespace:
    """The same for the simulator: the library's text, compiled for this machine."""
    visible = '#define SN_ENTRY extern __attribute__((visibility("default")))\n'
    text = preprocess(visible + library.source, name="softnum.cu", what="softnum.kernels")
    shared = ctypes.CDLL(str(compile_c(text, cflags=("-O1",), what="softnum.kernels")))
    return SimpleNamespace(
        **{entry.name: _called(getattr(shared, library.symbol(entry)), entry) for entry in library.entries}
    )


def _called(function, entry: Entry):
    kinds = [kind for kind, _ in entry.arguments]
    function.restype = None if entry.result == "void" else np.ctypeslib.as_ctypes_type(entry.result)
    function.argtypes = [ctypes.c_void_p if kind.endswith("*") else np.ctypeslib.as_ctypes_type(kind) for kind in kinds]
    number = {"f": float, "i": int, "u": int}
    convert = [(lambda x: x) if kind.endswith("*") else number[kind[0]] for kind in kinds]
    result = (lambda x: None) if entry.result == "void" else np.dtype(entry.result).type

    def call(*arguments):
        if len(arguments) != len(kinds):  # as the device's compiler would say
            raise TypeError(f"{entry.name} takes {entry.signature}, got {len(arguments)} arguments")
        with np.errstate(all="ignore"):
            return result(function(*(f(x) for f, x in zip(convert, arguments, strict=True))))

    return call


class _Pointers:
    """What ``cffi.FFI`` is on a GPU: pointers to arrays of the simulator."""

    @staticmethod
    def from_buffer(array):
        return getattr(array, "_ary", array).ctypes.data


if SIMULATOR:
    ffi = _Pointers()
else:
    import cffi

    ffi = cffi.FFI()  # ffi.from_buffer(array) in a kernel is the pointer to its first element


def jit_for(threads: int, blocks: int):
    """``cuda.jit`` for a kernel whose blocks have so many threads, and of which a multiprocessor should hold so many."""
    return cuda.jit if SIMULATOR else cuda.jit(launch_bounds=(threads, blocks))


def launch(kernel, grid, block, *arguments) -> None:
    """Launch a kernel and count it."""
    kernels._count_launch()
    kernel[grid, block](*arguments)


def device_array(x, what: str = "x"):
    """x as Numba's array on the device, without a copy.

    x has ``__cuda_array_interface__`` (CuPy, PyTorch, Numba, JAX) or is an array of the simulator.
    """
    if not hasattr(x, "__cuda_ndarray__"):
        if SIMULATOR:
            raise TypeError(f"{what} lies on a GPU, but Numba runs its simulator (NUMBA_ENABLE_CUDASIM)")
        x = cuda.as_cuda_array(x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"{what} must be an array of float32 or float64, got {x.dtype}")
    return x


def empty(shape, dtype):
    """A C-ordered array on the device, not initialised."""
    return cuda.device_array(shape, dtype)


def to_device(x):
    """A copy on the device of an array of the host."""
    return cuda.to_device(x)


def to_host(x) -> np.ndarray:
    """A copy on the host of an array on the device."""
    return x.copy_to_host()


def filled(shape, dtype, value):
    """A C-ordered array on the device of one value."""
    return to_device(np.full(shape, value, dtype))


def is_contiguous(x) -> bool:
    """Whether an array on the device is in C order."""
    return x.is_c_contiguous()


def bits(x):
    """The array's bits, as unsigned integers of its width; the same memory."""
    return x.view(np.dtype(f"uint{8 * x.dtype.itemsize}"))


def rows(x, what: str):
    """The array as a matrix over the same memory: its last dimension as columns, or, in C order, one row.

    Returns (matrix, whether it is one row). Raises ValueError if that would take a copy.
    """
    if is_contiguous(x):
        return x.reshape((1, x.size)), True
    if x.ndim != 2:
        raise ValueError(f"{what}: a CUDA array of {x.ndim} dimensions must be contiguous (copy it first)")
    return x, False


def scalar_type(dtype):
    """Numba's type of a NumPy type."""
    return from_dtype(np.dtype(dtype))
