"""DLPack, by which libraries hand arrays to each other: capsules read and made, in ctypes.

https://dmlc.github.io/dlpack/latest/c_api.html
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

__all__ = ["CPU", "CUDA", "MANAGED", "READ_ONLY", "TAKEN", "Memory", "Taken", "capsule_of", "take"]

CPU, CUDA, MANAGED = 1, 2, 13  # kinds of devices
READ_ONLY = 1  # a flag
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}  # of numbers
_BFLOAT = 4
TAKEN = "float16, float32 and float64, or codes as unsigned integers"  # of elements
_VERSION = (1, 0)


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _Deleter),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_LAYOUTS = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
_USED = {name: b"used_" + name for name in _LAYOUTS}  # a capsule keeps a pointer to its name

_python = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _python))
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(("PyCapsule_New", _python))
# of a capsule that is being destroyed, whose count of references must not be touched
_still_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_still_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))


class Memory(NamedTuple):
    """An array as an address, in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device: tuple[int, int]  # kind, index
    read_only: bool


class Taken:
    """An array taken out of a capsule: its memory, which the producer keeps until this object goes."""

    def __init__(self, memory: Memory, deleter, managed: int) -> None:
        self.memory, self._deleter, self._managed = memory, deleter, managed

    def __del__(self) -> None:
        if self._deleter:
            self._deleter(self._managed)


def take(x, what: str, **stream) -> Taken:
    """The memory of a DLPack producer.

    Parameters
    ----------
    x : object with ``__dlpack__``
    what : str
        Its name in errors.
    **stream
        ``stream=``, the number of the stream that the memory will be used on, as the protocol numbers streams.

    Raises
    ------
    TypeError
        For an element type that NumPy has not, or a producer that refuses.
    """
    try:
        try:
            capsule = x.__dlpack__(max_version=_VERSION, **stream)
        except TypeError:  # of before version 1
            capsule = x.__dlpack__(**stream)
    except (BufferError, RuntimeError) as error:
        raise TypeError(f"{what}: {type(x).__module__} does not hand the array on: {error}") from error
    name = next((name for name in _LAYOUTS if _is_valid(capsule, name)), None)
    if name is None:
        raise TypeError(f"{what}: {type(x).__module__} gives no DLPack capsule of version 0 or 1")
    address = _pointer(capsule, name)
    managed = _LAYOUTS[name].from_address(address)
    _rename(capsule, _USED[name])
    taken = Taken(None, managed.deleter, address)  # from here on it is ours to delete
    if name == b"dltensor_versioned" and managed.major > _VERSION[0]:
        raise TypeError(f"{what}: DLPack version {managed.major}.{managed.minor} is not known (1.x at most)")
    read_only = name == b"dltensor_versioned" and bool(managed.flags & READ_ONLY)
    taken.memory = _memory(managed.tensor, read_only, what)
    return taken


def _memory(t: _Tensor, read_only: bool, what: str) -> Memory:
    kind = next((kind for kind, code in _KINDS.items() if code == t.dtype.code), None)
    try:
        if kind is None or t.dtype.lanes != 1:
            raise TypeError
        dtype = np.dtype(bool if kind == "b" else f"{kind}{t.dtype.bits // 8}")
        if 8 * dtype.itemsize != t.dtype.bits:
            raise TypeError
    except TypeError:
        shown = "bfloat16" if (t.dtype.code, t.dtype.bits) == (_BFLOAT, 16) else f"DLPack type {t.dtype.code}"
        raise TypeError(f"{what} is an array of {shown} ({t.dtype.bits} bits); softnum takes {TAKEN}") from None
    shape = tuple(t.shape[i] for i in range(t.ndim))
    if t.strides:
        strides = tuple(t.strides[i] * dtype.itemsize for i in range(t.ndim))
    else:
        strides = packed(shape, dtype.itemsize)
    address = (t.data or 0) + t.byte_offset
    return Memory(address, shape, strides, dtype, (t.device.kind, t.device.index), read_only)


def packed(shape, itemsize: int) -> tuple[int, ...]:
    """The strides of C order."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


_alive: dict = {}  # address of what a consumer holds -> all that must live as long


@_Deleter
def _delete(address, _alive=_alive) -> None:
    _alive.pop(address, None)


@_Destructor
def _destroy(capsule, _alive=_alive, valid=_still_valid, pointer=_still_pointer, names=tuple(_LAYOUTS)) -> None:
    for name in names:
        if valid(capsule, name):  # nobody has taken it
            _alive.pop(pointer(capsule, name), None)


def capsule_of(memory: Memory, owner, max_version=None):
    """A capsule of an array; `owner` lives until its consumer deletes it."""
    name = b"dltensor" if max_version is None or max_version[0] < 1 else b"dltensor_versioned"
    managed = _LAYOUTS[name]()
    ndim, itemsize = len(memory.shape), memory.dtype.itemsize
    shape = (ctypes.c_int64 * max(ndim, 1))(*memory.shape)
    strides = (ctypes.c_int64 * max(ndim, 1))(*(s // itemsize for s in memory.strides))
    managed.tensor = _Tensor(
        memory.address or None, _Device(*memory.device), ndim, _Type(_KINDS[memory.dtype.kind], 8 * itemsize, 1),
        ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0,
    )  # fmt: skip
    managed.deleter = _delete
    if name == b"dltensor_versioned":
        managed.major, managed.minor = _VERSION
        managed.flags = READ_ONLY if memory.read_only else 0
    elif memory.read_only:
        raise BufferError("a read-only array needs DLPack 1.0, and the consumer takes version 0")
    address = ctypes.addressof(managed)
    _alive[address] = (managed, shape, strides, owner)
    return _new(address, name, _destroy)
