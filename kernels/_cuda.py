"""The one module that imports Numba's CUDA target: its simulator, binding of C functions, arrays and launches.

Kernels call a library's entries (entries.py) by name. On a GPU the names are device functions of one C source, which is
linked into the kernel; in the simulator, which cannot link, they are the same C functions of the CPU extension.
"""

from __future__ import annotations

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
from softnum.kernels.source import Entry, Library

__all__ = [
    "SIMULATOR",
    "THREADS",
    "bind",
    "bits",
    "cuda",
    "device_array",
    "empty",
    "filled",
    "is_contiguous",
    "launch",
    "rows",
    "scalar_type",
]

# whether kernels run in the simulator; Numba decides once, when it is imported
SIMULATOR = bool(config.ENABLE_CUDASIM)

THREADS = 32 if SIMULATOR else 256  # of a block of an elementwise kernel; the simulator's are threads of Python


def bind(library: Library) -> SimpleNamespace:
    """A library's entries as functions that kernels can call, by their names."""
    if SIMULATOR:
        return SimpleNamespace(**{entry.name: _simulated(entry) for entry in library.entries})
    source = cuda.CUSource(library.source)
    return SimpleNamespace(
        **{
            entry.name: cuda.declare_device(library.symbol(entry), entry.signature, link=source, abi="c")
            for entry in library.entries
        }
    )


def _simulated(entry: Entry):
    result = {"uint32": np.uint32, "uint64": np.uint64}[entry.result]
    call, count = entry.simulated, len(entry.arguments)

    def function(*arguments):
        if len(arguments) != count:  # as the device's compiler would say
            raise TypeError(f"{entry.name} takes {entry.signature}, got {len(arguments)} arguments")
        return result(call(*arguments))

    return function


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


def filled(shape, dtype, value):
    """A C-ordered array on the device of one value."""
    return cuda.to_device(np.full(shape, value, dtype))


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
