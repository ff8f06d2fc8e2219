"""What a launch costs the host, where kernels run on a GPU: arrays of Numba's that are made in few steps, memory that
is used again, and launches.

Numba takes some 20 us to make an array, 5 to view it and 100 to launch a kernel; a step of training does thousands of
each. Here an array is its address, shape and type, and Numba's parts of it are made when something of Numba's asks.

Memory of arrays that are gone is given to new ones of its size, without asking CUDA, whose cuMemFree waits for the GPU.
That is safe on one stream, where the new array's kernels run after the old one's: so it is done for arrays that were
made on the legacy default stream and whose address none but softnum's launches there has seen. All else asks for
`gpu_data`, or through `shared`, and CUDA frees that memory as it does Numba's.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cached_property, lru_cache
from math import prod
from struct import Struct

import numpy as np
from numba import cuda
from numba.cuda import types
from numba.cuda.cudadrv import dummyarray
from numba.cuda.cudadrv.devicearray import DeviceNDArray, DeviceNDArrayBase
from numba.cuda.cudadrv.driver import CudaAPIError, MemoryPointer, binding, driver

__all__ = [
    "PackedArray", "address_of", "device_index", "empty", "give_back", "launch", "lent", "shared", "to_device",
    "to_host",
]  # fmt: skip

#: whether what CUDA takes for stream 0 is the legacy default stream, the same of all threads
_ONE_STREAM = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0") in ("", "0")
_DONE = binding.CUresult.CUDA_SUCCESS


# ---- memory ----------------------------------------------------------------------------------------------------------
class _Device:
    """A GPU's context, as Numba has it, and the memory of arrays there."""

    def __init__(self, context) -> None:
        self.context, self.index = context, context.device.id
        self.most_free = context.get_memory_info().total // 4
        self.owned = {}  # address -> Numba's memory, which is freed with this reference
        self.free: dict[int, list[int]] = {}  # size -> addresses of what is owned by no array

    def take(self, size: int, reused: bool) -> int:
        """The address of memory of a size; of what lies free, if it may."""
        free = self.free.get(size) if reused else None
        if free:
            try:
                return free.pop()
            except IndexError:  # another thread has it
                pass
        if sum(size * len(free) for size, free in list(self.free.items())) > self.most_free:
            self.clear()
        try:
            memory = self.context.memalloc(size)
        except CudaAPIError:  # too much lies free, here or with PyTorch
            self.clear()
            torch = sys.modules.get("torch")
            if torch is not None and torch.cuda.is_initialized():
                torch.cuda.empty_cache()
            memory = self.context.memalloc(size)
        address = int(memory.device_pointer)
        self.owned[address] = memory
        return address

    def clear(self) -> None:
        """Give what lies free back to CUDA."""
        for size in list(self.free):
            for address in self.free.pop(size, ()):
                self.owned.pop(address, None)

    def give(self, address: int, size: int, reused: bool) -> None:
        """Take memory of an array back."""
        if reused:
            self.free.setdefault(size, []).append(address)
        else:
            self.owned.pop(address, None)


class _Block:
    """Memory of an array and of its views; it is free when the last of them is gone."""

    __slots__ = ("address", "device", "reused", "size")

    def __init__(self, size: int, stream) -> None:
        # few sizes, so that they fit again: an eighth is lost at most, above 4 KiB
        step = max(512, 1 << max(0, size.bit_length() - 4))
        self.address, self.size, self.reused = 0, -(-size // step) * step, _ONE_STREAM and not stream
        self.device = _device()
        self.address = self.device.take(self.size, self.reused)

    def __del__(self) -> None:
        if self.address:
            self.device.give(self.address, self.size, self.reused)


class _Lent:
    """Memory of another library's array, for as long as arrays over it are there."""

    __slots__ = ("device", "owner", "reused")

    def __init__(self, owner) -> None:
        self.device, self.owner, self.reused = _device(), owner, False


_devices: dict[int, _Device] = {}  # handle of the context ->


def _device() -> _Device:
    """The current one."""
    error, handle = binding.cuCtxGetCurrent()
    found = _devices.get(int(handle)) if error == _DONE else None
    if found is None or found.context.device.primary_context is not found.context:
        context = cuda.current_context()
        found = _devices[int(context.handle)] = _Device(context)
    return found


def give_back() -> None:
    """Give what lies free on the current GPU back to CUDA."""
    _device().clear()


def device_index() -> int:
    """The number of the GPU that kernels run on."""
    return _device().index


# ---- arrays ----------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))


class PackedArray(DeviceNDArray):
    """Numba's array, in C order; what Numba makes of it otherwise than here is Numba's own.

    Attributes
    ----------
    values_of : Format or None
        One that all elements are known to be values of: who says so knows it of this object alone, not of its views.
    """

    values_of = None

    def __new__(cls, *arguments, **options):
        """What Numba's methods make, of any strides."""
        return DeviceNDArray(*arguments, **options)

    @classmethod
    def of(cls, shape: tuple[int, ...], size: int, dtype: np.dtype, stream, address: int, block) -> PackedArray:
        """An array of a shape and size at an address in a block, or of no elements in none."""
        self = object.__new__(cls)
        self.shape, self.size, self.ndim, self.dtype = shape, size, len(shape), dtype
        self.stream, self.address, self.block = stream, address, block
        return self

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        return (self.dtype.itemsize,) if self.ndim == 1 else _strides(self.shape, self.dtype.itemsize)

    @property
    def alloc_size(self) -> int:
        """The size in bytes."""
        return self.size * self.dtype.itemsize

    @cached_property
    def gpu_data(self):
        """The memory, for others than softnum."""
        if self.block is None:
            return MemoryPointer(cuda.current_context(), binding.CUdeviceptr(0), 0)
        self.block.reused = False
        pointer = binding.CUdeviceptr(self.address)
        return MemoryPointer(self.block.device.context, pointer, self.alloc_size, self.block)

    @cached_property
    def _dummy(self):
        return dummyarray.Array.from_desc(0, self.shape, self.strides, self.dtype.itemsize)

    def is_c_contiguous(self) -> bool:
        """It is."""
        return True

    def __copy__(self) -> PackedArray:
        return self.bind(self.stream)

    def bind(self, stream=0) -> PackedArray:
        """The same memory, worked on, unasked, on a stream."""
        return PackedArray.of(self.shape, self.size, self.dtype, stream, self.address, self.block)

    def reshape(self, *shape, **order):
        """The same memory in another shape."""
        new = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if new == self.shape and not order:
            return self
        if order or prod(new) != self.size or min(new, default=0) < 0:
            rest = -prod(new)  # where a size is -1
            if order or min(new, default=0) != -1 or new.count(-1) != 1 or not rest or self.size % rest:
                return super().reshape(*shape, **order)
            new = tuple(self.size // rest if n == -1 else n for n in new)
        new = tuple(map(int, new))
        return PackedArray.of(new, self.size, self.dtype, self.stream, self.address, self.block)

    def view(self, dtype):
        """The same memory as elements of another type."""
        dtype, shape, size = np.dtype(dtype), self.shape, self.size
        if dtype.itemsize != self.dtype.itemsize:
            last, rest = divmod(shape[-1] * self.dtype.itemsize, dtype.itemsize) if shape else (0, 1)
            if rest:
                return super().view(dtype)
            shape = (*shape[:-1], last)
            size = prod(shape)
        return PackedArray.of(shape, size, dtype, self.stream, self.address, self.block)

    def __getitem__(self, item):
        if type(item) is slice and self.ndim == 1:
            start, stop, step = item.indices(self.size)
            if step == 1:
                size, address = max(0, stop - start), self.address + start * self.dtype.itemsize
                return PackedArray.of((size,), size, self.dtype, self.stream, address, self.block)
        return super().__getitem__(item)


def empty(shape, dtype, stream) -> PackedArray:
    """An array that is not initialised, on a stream of Numba's or 0."""
    shape, dtype = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape)), np.dtype(dtype)
    size = prod(shape)
    block = _Block(size * dtype.itemsize, stream) if size else None
    return PackedArray.of(shape, size, dtype, stream, block.address if size else 0, block)


def lent(address: int, shape: tuple[int, ...], dtype: np.dtype, stream, owner) -> PackedArray:
    """Another library's memory at an address as an array in C order, which keeps its owner alive."""
    return PackedArray.of(shape, prod(shape), dtype, stream, address, _Lent(owner))


def shared(x):
    """x, whose memory others than softnum's launches on the legacy default stream may use from now on."""
    if type(x) is PackedArray and x.block is not None:
        x.block.reused = False
    return x


def address_of(x, stream) -> int:
    """The address of an array's first element, for work on a stream."""
    if type(x) is not PackedArray:
        return x.device_ctypes_pointer.value or 0
    return (shared(x) if stream else x).address


def to_device(x: np.ndarray, stream) -> PackedArray:
    """A copy of an array of the host, in C order."""
    result = empty(x.shape, x.dtype, stream)
    if x.size and stream:
        driver.cuMemcpyHtoDAsync(result.address, x.ctypes.data, x.nbytes, int(stream.handle))
    elif x.size:
        driver.cuMemcpyHtoD(result.address, x.ctypes.data, x.nbytes)
    return result


def to_host(x: PackedArray, stream) -> np.ndarray:
    """A copy on the host; waits for the stream."""
    result = np.empty(x.shape, x.dtype)
    if x.size and stream:
        driver.cuMemcpyDtoHAsync(result.ctypes.data, x.address, x.alloc_size, int(stream.handle))
        stream.synchronize()
    elif x.size:
        driver.cuMemcpyDtoH(result.ctypes.data, x.address, x.alloc_size)
    return result


# ---- launches --------------------------------------------------------------------------------------------------------
#: of a number in a kernel's parameters, each in eight bytes
_NUMBERS = {
    types.int64: "q", types.uint64: "Q", types.int32: "i4x", types.uint32: "I4x", types.int16: "h6x",
    types.uint16: "H6x", types.int8: "b7x", types.uint8: "B7x", types.boolean: "?7x", types.float64: "d",
    types.float32: "f4x",
}  # fmt: skip
_LARGEST_UNASKED = 48 * 1024  # bytes of dynamic shared memory


def _words(kind) -> str:
    """What a parameter of a type of Numba's is made of."""
    if isinstance(kind, types.Array):  # nothing, nothing, elements, bytes of one, address, shape, strides
        return "qqqqQ" + 2 * kind.ndim * "q"
    if isinstance(kind, types.BaseTuple):
        return "".join(map(_words, kind))
    return _NUMBERS[kind]


class _Launcher:
    """A kernel for arguments of certain types on a GPU, and room for its parameters: one for each thread at a time."""

    def __init__(self, kernel, arguments) -> None:
        kinds = (x._numba_type_ if isinstance(x, DeviceNDArrayBase) else kernel.typeof_pyval(x) for x in arguments)
        compiled = kernel.compile(tuple(kinds))
        if compiled.cooperative or compiled.debug:
            raise NotImplementedError(
                f"{kernel.py_func.__name__}: cooperative and debugged kernels are launched by Numba"
            )
        self.function = compiled._codelibrary.get_cufunc()
        self.handle, self.largest = int(self.function.handle), _LARGEST_UNASKED
        words = "".join(map(_words, compiled.argument_types))
        self.format = Struct("<" + words)
        self.count = self.format.size // 8
        self.spare: list[tuple] = []

    def room(self) -> tuple:
        """(bytes for the parameters, what keeps their addresses, where they are)"""
        try:
            return self.spare.pop()
        except IndexError:
            parameters = (ctypes.c_char * max(8, self.format.size))()
            start = ctypes.addressof(parameters)
            addresses = (ctypes.c_void_p * max(1, self.count))(*(start + 8 * i for i in range(self.count)))
            return parameters, addresses, ctypes.addressof(addresses)

    def allow(self, size: int) -> None:
        """Let it have more dynamic shared memory than it has unasked."""
        attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuKernelSetAttribute(attribute, size, self.handle, self.function.device.id)
        self.largest = size


def launch(kernel, grid, block, stream, dynamic: int, arguments) -> None:
    """Launch a kernel of Numba's on a stream of Numba's or 0, with so many bytes of dynamic shared memory."""
    key, values = [_device().index], []
    for x in arguments:
        kind = type(x)
        if kind is PackedArray:
            if stream:
                shared(x)
            key += (x.dtype, x.ndim)
            values += (0, 0, x.size, x.dtype.itemsize, x.address, *x.shape, *x.strides)
        elif kind is tuple:
            key.append(tuple(map(type, x)))
            values += x
        elif isinstance(x, DeviceNDArrayBase):
            key.append(x._numba_type_)
            values += (0, 0, x.size, x.dtype.itemsize, x.device_ctypes_pointer.value or 0, *x.shape, *x.strides)
        else:
            key.append(kind)
            values.append(x)
    launchers, key = kernel.__dict__.setdefault("_softnum_launchers", {}), tuple(key)
    launcher = launchers.get(key)
    if launcher is None:
        launcher = launchers[key] = _Launcher(kernel, arguments)
    if dynamic > launcher.largest:
        launcher.allow(dynamic)
    grid = (*grid, 1, 1)[:3] if isinstance(grid, tuple) else (grid, 1, 1)
    block = (*block, 1, 1)[:3] if isinstance(block, tuple) else (block, 1, 1)
    room = launcher.room()
    launcher.format.pack_into(room[0], 0, *values)
    done = binding.cuLaunchKernel(
        launcher.handle, *grid, *block, dynamic, int(stream.handle) if stream else 0, room[2], 0
    )
    launcher.spare.append(room)
    if done[0] != _DONE:
        driver._check_cuda_python_error("cuLaunchKernel", done)
