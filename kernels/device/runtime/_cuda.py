"""The one module that imports Numba's CUDA target: its simulator, binding of C functions, arrays and launches.

Kernels call a library's entries (entries.py) by name. On a GPU the names are device functions of one C source, which is
linked into the kernel; in the simulator, which cannot link, they are the functions of the same source, compiled for the
CPU by the system's C compiler.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from types import SimpleNamespace

import numpy as np

try:
    import _numba_cuda_redirector  # noqa: F401  what numba-cuda's .pth file does: absent from a folder on PYTHONPATH
    from numba import cuda
    from numba.cuda.core import config
    from numba.cuda.np.numpy_support import from_dtype
except ImportError as error:
    raise ImportError(f"CUDA arrays need numba-cuda: pip install 'softnum[cuda]' ({error})") from error

from softnum.formats.custom.compiler import compile_c, preprocess
from softnum.kernels.device.runtime.dlpack import packed
from softnum.kernels.device.runtime.launch_count import count_launch
from softnum.kernels.device.runtime.source import Entry, Library

if not config.ENABLE_CUDASIM:
    from softnum.kernels.device.runtime import launches

__all__ = [
    "MAX_GRID_Y",
    "OwnArray",
    "SIMULATOR",
    "THREADS",
    "address_of",
    "adopt",
    "array_type",
    "bind",
    "bits",
    "bound",
    "chosen_stream",
    "constant",
    "cuda",
    "device_array",
    "device_index",
    "device_of",
    "empty",
    "ffi",
    "filled",
    "give_back",
    "is_contiguous",
    "jit_for",
    "kept",
    "launch",
    "lent",
    "most_shared",
    "number_of",
    "running_on",
    "scalar_type",
    "shared",
    "stream",
    "stream_of_number",
    "synchronize",
    "to_device",
    "to_host",
    "viewed",
    "wait",
]

# whether kernels run in the simulator; Numba decides once, when it is imported
SIMULATOR = bool(config.ENABLE_CUDASIM)

MAX_GRID_Y = 65535
_MOST_KEPT = 1024  # bytes of a constant
_BITS = {size: np.dtype(f"uint{8 * size}") for size in (1, 2, 4, 8)}

THREADS = 32 if SIMULATOR else 256  # of a block of an elementwise kernel; the simulator's are threads of Python


@lru_cache(maxsize=512)  # a kernel's parts that call one library share it: a linker takes a name once
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


class _NoArray:
    """What `OwnArray` is in the simulator: none is."""


#: arrays that softnum makes, in C order
OwnArray = _NoArray if SIMULATOR else launches.PackedArray

if SIMULATOR:
    ffi = _Pointers()
else:
    import cffi

    ffi = cffi.FFI()  # ffi.from_buffer(array) in a kernel is the pointer to its first element


def jit_for(threads: int, blocks: int):
    """``cuda.jit`` of a kernel whose blocks have so many threads, of which a multiprocessor should hold so many."""
    return cuda.jit if SIMULATOR else cuda.jit(launch_bounds=(threads, blocks))


# ---- streams ---------------------------------------------------------------------------------------------------------

_stream: ContextVar = ContextVar("softnum.kernels.stream", default=None)


def chosen_stream():
    """The stream that the caller has chosen to run on (Numba's object, 0 for the default stream), or None."""
    return _stream.get()


def stream():
    """The stream that all below run on: Numba's object, or 0 for the (legacy) default stream."""
    return _stream.get() or 0


@contextmanager
def running_on(s):
    """Within it, kernels and copies run on a stream of Numba's, or on the default stream, 0."""
    token = _stream.set(s)
    try:
        yield
    finally:
        _stream.reset(token)


def stream_of_number(number: int):
    """The stream of a handle, or of the numbers that protocols give the default streams: 1 legacy, 2 each thread's."""
    if number in (0, 1):
        return 0
    return cuda.per_thread_default_stream() if number == 2 else cuda.external_stream(number)


def number_of(s) -> int:
    """The number that protocols give a stream of Numba's: 1 for the legacy default stream, a handle, or 2."""
    return 1 if not s or SIMULATOR else int(s.handle) or 1


def wait(s, other) -> None:
    """Order what `s` is given from now on after what `other` has been given so far."""
    if not SIMULATOR:
        event = cuda.event(timing=False)
        event.record(other)
        event.wait(s)


def synchronize(s) -> None:
    """Wait on the host for what a stream has been given so far."""
    if not SIMULATOR:
        (s or cuda.default_stream()).synchronize()


def launch(kernel, grid, block, *arguments, shared: int = 0) -> None:
    """Launch a kernel on the stream, with so many bytes of dynamic shared memory, and count it."""
    count_launch()
    if SIMULATOR:
        kernel[grid, block, stream(), shared](*arguments)
    else:
        launches.launch(kernel, grid, block, stream(), shared, arguments)


def give_back() -> None:
    """Give memory that is kept for arrays to come back to CUDA."""
    if not SIMULATOR:
        launches.give_back()


def most_shared() -> int:
    """Bytes of shared memory that a block may have, if its kernel asks for them."""
    return 227 * 1024 if SIMULATOR else cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN


# ---- arrays ----------------------------------------------------------------------------------------------------------


def adopt(memory, owner, what: str):
    """Memory on the device (`dlpack.Memory`) as Numba's array, which keeps its owner alive."""
    if SIMULATOR:
        raise TypeError(f"{what} lies on a GPU, but Numba runs its simulator (NUMBA_ENABLE_CUDASIM)")
    from numba.cuda.cudadrv import driver
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    launches.shared(owner)
    if memory.strides == packed(memory.shape, memory.dtype.itemsize):
        return launches.lent(memory.address, memory.shape, memory.dtype, stream(), owner)
    size = driver.memory_size_from_info(memory.shape, memory.strides, memory.dtype.itemsize)
    pointer = driver.MemoryPointer(cuda.current_context(), driver.binding.CUdeviceptr(memory.address), size, owner)
    return DeviceNDArray(memory.shape, memory.strides, memory.dtype, stream=stream(), gpu_data=pointer)


def lent(address: int, size: int, dtype, owner):
    """Elements side by side in another library's memory, as an array of one dimension that keeps their owner alive."""
    return launches.lent(address, (size,), dtype, stream(), owner)


def address_of(x) -> int:
    """The address of an array's first element."""
    return x._ary.ctypes.data if SIMULATOR else launches.address_of(x, stream())


def shared(x):
    """The array, whose memory others may use from now on, on streams of their own."""
    return x if SIMULATOR else launches.shared(x)


def device_index() -> int:
    """The number of the GPU that kernels run on."""
    return 0 if SIMULATOR else launches.device_index()


def device_of(address: int) -> int:
    """The number of the GPU that memory lies on."""
    if SIMULATOR or not address:
        return device_index()
    from numba.cuda.cudadrv import driver

    attribute = driver.binding.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(driver.driver.cuPointerGetAttribute(attribute, driver.binding.CUdeviceptr(address)))


def device_array(x, what: str = "x"):
    """A device array, if it is one of float32 or float64; else TypeError."""
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"{what} must be an array of float32 or float64, got {x.dtype}")
    return x


def empty(shape, dtype):
    """A C-ordered array on the device, not initialised."""
    return cuda.device_array(shape, dtype, stream=stream()) if SIMULATOR else launches.empty(shape, dtype, stream())


def filled(shape, dtype, value):
    """A C-ordered array on the device of one value."""
    return to_device(np.full(shape, value, dtype))


def to_device(x):
    """A copy of an array of the host."""
    x = np.asarray(x, order="C")
    if not SIMULATOR:
        return launches.to_device(x, stream())
    array = cuda.to_device(x, stream=stream())  # which makes one dimension of none
    return array if x.ndim else bound(array.reshape(()))


def constant(x):
    """An array of the host on the device, not to be written to: small ones are kept, and copied once."""
    x = np.asarray(x, order="C")
    if x.nbytes > _MOST_KEPT:
        return to_device(x)
    return _constant(x.tobytes(), x.dtype.str, x.shape, device_index())


@lru_cache(maxsize=4096)
def _constant(data: bytes, kind: str, shape, device: int):
    array = to_device(np.frombuffer(data, kind).reshape(shape))
    synchronize(stream())  # whatever stream reads it
    return array


def kept(make):
    """A function that makes arrays on the device of hashable arguments, once for each device and for all streams."""

    @lru_cache(maxsize=64)
    def made(device: int, *arguments):
        result = make(*arguments)
        synchronize(stream())
        return result

    @wraps(make)
    def keep(*arguments):
        return made(device_index(), *arguments)

    return keep


def to_host(x) -> np.ndarray:
    """A copy of a contiguous array on the host; waits for the stream, and for no other."""
    if not SIMULATOR and type(x) is launches.PackedArray:
        return launches.to_host(x, stream())
    array = bound(x).copy_to_host()
    if stream():
        synchronize(stream())
    return array


def bound(x):
    """The array as one that Numba works on, unasked, on the stream: views that Numba makes forget theirs."""
    return x if number_of(x.stream) == number_of(stream()) else x.bind(stream())


def is_contiguous(x) -> bool:
    """Whether an array on the device is in C order."""
    return x.is_c_contiguous()


def bits(x):
    """The array's bits, as unsigned integers of its width; the same memory."""
    return viewed(x, _BITS[x.dtype.itemsize])


def viewed(x, dtype):
    """The array's bits as elements of another type of its width; the same memory."""
    return x.view(np.dtype(dtype)) if x.ndim else x.reshape(1).view(np.dtype(dtype)).reshape(())


def scalar_type(dtype):
    """Numba's type of a NumPy type."""
    return from_dtype(np.dtype(dtype))


def array_type(dtype, dimensions: int = 1):
    """Numba's type of C-ordered arrays on the device."""
    from numba import types

    return types.Array(scalar_type(dtype), dimensions, "C")
