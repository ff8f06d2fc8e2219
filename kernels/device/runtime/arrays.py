"""CUDA arrays of any library in and out: CuPy, PyTorch, JAX, Numba, by their protocols and without copies.

A function of softnum that is given such arrays runs through `call`: its arguments become Numba's arrays over the same
memory, and what it returns becomes an array of the caller's library.

Streams. Work runs on the stream that `softnum.kernels.stream` has set; else on the one that the first array's library
is working on, which the CUDA array interface, Numba or PyTorch states; else on the legacy default stream. It is ordered
after what the streams of all the arrays hold, and what these are given afterwards is ordered after it, so that their
libraries may change or reuse the memory. Nothing waits on the host, but for results that are read there (whether a
value had no code), and then for this one stream.
"""

from __future__ import annotations

import inspect
import sys
from functools import lru_cache
from numbers import Real
from typing import NamedTuple

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.container import Array
from softnum.kernels.device.runtime import _cuda, dlpack
from softnum.kernels.device.runtime.dlpack import Memory
from softnum.kernels.device.runtime.strides import copy, overlap, overlaps_itself
from softnum.runtime.gateway import is_device_array

__all__ = ["Exported", "call", "delivered", "imported", "stream_number"]

_MAY_LIE_ON_THE_HOST = ("random_bits",)
_ARRAYS = ("a", "b", "c", "codes", "x", "dy", "w", "out")  # names of arguments that are arrays


class Imported(NamedTuple):
    """An array of some library as Numba's, over the same memory."""

    array: object
    read_only: bool
    stream_known: bool  # whether the stream of its library is


# ---- streams ---------------------------------------------------------------------------------------------------------
def stream_number(stream) -> int:
    """The number of a stream, as protocols number them (1: legacy default, 2: each thread's, else its handle).

    stream is an int, or a stream of Numba, CuPy, PyTorch, or of whatever has ``__cuda_stream__``.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        number = stream
    elif _cuda.SIMULATOR and isinstance(stream, _cuda.cuda.stream):
        number = 0
    elif hasattr(stream, "__cuda_stream__"):
        number = stream.__cuda_stream__()[1]
    else:
        names = (name for name in ("cuda_stream", "ptr", "handle") if hasattr(stream, name))
        number = getattr(stream, next(names, ""), None)
    try:
        number = int(number)
    except (TypeError, ValueError):
        raise TypeError(
            f"stream must be a stream of Numba, CuPy or PyTorch, or its handle as an int, got {stream!r}"
        ) from None
    if number < 0:
        raise ValueError(f"stream={number} is no handle of a stream")
    return number or 1


def _interface(x):
    """The CUDA array interface of x, or None."""
    try:
        return getattr(x, "__cuda_array_interface__", None)
    except (RuntimeError, TypeError, ValueError, KeyError):  # PyTorch, of what it does not hand on: DLPack says why
        return None


def _stream_of(x) -> int | None:
    """The number of the stream that x's library is working on; None if it says none."""
    if hasattr(x, "__cuda_ndarray__"):
        return stream_number(x.stream)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return stream_number(torch.cuda.current_stream(x.device).cuda_stream)
    desc = _interface(x)
    number = None if desc is None else desc.get("stream")
    if number == 0:
        raise ValueError(f"{type(x).__module__}: stream 0 is not allowed in a CUDA array interface (1, 2 or a handle)")
    return None if number is None else int(number)


# ---- in --------------------------------------------------------------------------------------------------------------
def imported(x, what: str) -> Imported:
    """A CUDA array as Numba's, without a copy.

    Raises TypeError for element types that NumPy has not and for what a library refuses to hand on, ValueError for
    masks, odd strides and arrays of another GPU.
    """
    if hasattr(x, "__cuda_ndarray__"):
        _check_type(x.dtype, what)
        return Imported(x, False, True)
    desc = _interface(x)
    number = _stream_of(x)
    by_interface = desc is not None and (number is not None or not hasattr(x, "__dlpack__"))
    if by_interface:
        memory, owner = _of_interface(desc, what), x
    else:
        owner = dlpack.take(x, what, stream=_cuda.number_of(_cuda.stream()))
        memory = owner.memory
        if memory.device[0] not in (dlpack.CUDA, dlpack.MANAGED):
            raise TypeError(f"{what} lies on a device of DLPack's kind {memory.device[0]}, which is no GPU of CUDA's")
    here = _cuda.device_index()
    there = _cuda.device_of(memory.address) if by_interface else memory.device[1]
    if there != here:
        raise ValueError(f"{what} lies on GPU {there}, and GPU {here} is the current one (numba.cuda.select_device)")
    if any(s % memory.dtype.itemsize and n > 1 for s, n in zip(memory.strides, memory.shape, strict=True)):
        raise ValueError(f"{what}: strides {memory.strides} (bytes) are no multiples of an element of {memory.dtype}")
    if memory.address % memory.dtype.itemsize:
        raise ValueError(f"{what}: address {memory.address:#x} is no multiple of an element of {memory.dtype}: copy it")
    return Imported(_cuda.adopt(memory, owner, what), memory.read_only, number is not None or by_interface)


def _check_type(dtype, what: str) -> None:
    """TypeError for elements that are no numbers, or of the other byte order."""
    if dtype.kind not in "fiub" or not dtype.isnative:
        raise TypeError(f"{what} is an array of {dtype}; softnum takes {dlpack.TAKEN}, in this machine's byte order")


def _of_interface(desc, what: str) -> Memory:
    if desc.get("mask") is not None:
        raise ValueError(f"{what}: masked arrays are not supported: fill them first")
    if missing := [name for name in ("shape", "typestr", "data") if name not in desc]:
        raise TypeError(f"{what}: its __cuda_array_interface__ lacks {', '.join(missing)}")
    dtype = np.dtype(desc["typestr"])
    _check_type(dtype, what)
    shape, strides = tuple(desc["shape"]), desc.get("strides")
    address, read_only = desc["data"]
    strides = dlpack.packed(shape, dtype.itemsize) if strides is None else tuple(strides)
    return Memory(address or 0, shape, strides, dtype, (dlpack.CUDA, 0), bool(read_only))


# ---- out -------------------------------------------------------------------------------------------------------------
class Exported:
    """An array of Numba's for other libraries, by DLPack: their arrays keep its memory alive."""

    def __init__(self, array) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU if _cuda.SIMULATOR else dlpack.CUDA, _cuda.device_index()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("softnum hands its arrays on where they lie, without a copy")
        if stream != -1:  # the protocol's "do not order"
            theirs = _cuda.stream_of_number(1 if stream is None else int(stream))
            if _cuda.number_of(theirs) != _cuda.number_of(_cuda.stream()):
                _cuda.wait(theirs, _cuda.stream())
        x = _cuda.shared(self.array)
        memory = Memory(_cuda.address_of(x), tuple(x.shape), tuple(x.strides), x.dtype, self.__dlpack_device__(), False)
        return dlpack.capsule_of(memory, x, max_version)


def _library(x):
    """The module of x's library that has from_dlpack, or None."""
    if hasattr(x, "__array_namespace__"):
        found = x.__array_namespace__()
    else:
        found = sys.modules.get(type(x).__module__.partition(".")[0])
    return found if hasattr(found, "from_dlpack") else None


def delivered(array, like):
    """An array of Numba's as one of the library that `like` is of; of an unknown one, as Numba's."""
    library = None if hasattr(like, "__cuda_ndarray__") else _library(like)
    return _cuda.bound(array) if library is None else library.from_dlpack(Exported(array))


# ---- calls -----------------------------------------------------------------------------------------------------------
def _over(x, change):
    """x with `change` done to its arrays: to itself, or to the codes in an Array or BlockArray."""
    if not isinstance(x, (Array, BlockArray)):
        return change(x)
    new = object.__new__(type(x))
    for name in x.__slots__:
        part = getattr(x, name)
        setattr(new, name, change(part) if name in ("codes", "scales") else part)
    return new


def _parts(x) -> tuple:
    """The arrays that an argument is made of."""
    if isinstance(x, BlockArray):
        return x.codes, x.scales
    return (x.codes,) if isinstance(x, Array) else (x,)


def _named(bound: inspect.BoundArguments) -> dict:
    """All arguments by name."""
    named = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({f"{name}[{i}]": x for i, x in enumerate(value)})
        else:
            named[name] = value
    return named


def _with(bound: inspect.BoundArguments, change) -> inspect.BoundArguments:
    """The arguments with change(argument, its name) for each."""
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: change(x, key) for key, x in value.items()}
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(change(x, f"{name}[{i}]") for i, x in enumerate(value))
        else:
            bound.arguments[name] = change(value, name)
    return bound


def _same(x, y) -> bool:
    """Whether two arrays are the same elements of memory."""
    return (_cuda.address_of(x), tuple(x.shape), x.strides, x.dtype) == (
        _cuda.address_of(y),
        tuple(y.shape),
        y.strides,
        y.dtype,
    )


class _Call:
    """The arrays of one call, taken in and given back."""

    def __init__(self, caller: str, named: dict) -> None:
        self.caller = caller
        self.given = {}  # id -> (array, its first name)
        for name, x in named.items():
            for part in _parts(x):
                if is_device_array(part):
                    self.given.setdefault(id(part), (part, name))
        self.like, first = next(iter(self.given.values()))
        for name, x in named.items():
            if not self.may_be_given(name, x):
                raise TypeError(f"{caller}: {name} lies on the host and {first} on the device; copy one of them")
        self.taken = {}  # id -> Imported
        self.out = named.get("out")

    def may_be_given(self, name: str, x) -> bool:
        """Whether an argument lies on the device, or need not: a number beside an Array (a * 2), a dot's start."""
        if x is None or name in _MAY_LIE_ON_THE_HOST or all(map(is_device_array, _parts(x))):
            return True
        if isinstance(x, (np.ndarray, BlockArray)):
            return False
        if isinstance(x, Array):
            return x.ndim == 0
        operand, start = name.startswith("operands["), self.caller == "dot" and name == "c"
        if isinstance(x, str) or (isinstance(x, Real) and (operand or start)):
            return True  # what is wrong with a text, its function says
        return not operand and name not in _ARRAYS

    def numbers(self) -> list[int]:
        """The streams that the arrays' libraries are working on, each once."""
        numbers = dict.fromkeys(_stream_of(x) for x, _ in self.given.values())
        return [n for n in numbers if n is not None]

    def take(self) -> None:
        """Take all arrays in; what `out` overlaps, without being it, is read from a copy."""
        for key, (x, name) in self.given.items():
            self.taken[key] = imported(x, f"{self.caller}: {name}")
        out = self.taken.get(id(self.out))
        if out is not None and out.read_only:
            raise TypeError(f"{self.caller}: out is read-only")
        if out is not None and overlaps_itself(out.array):
            raise ValueError(f"{self.caller}: out has several elements in one place of memory")
        for key, (x, _, _) in self.taken.items() if out is not None else ():
            if overlap(x, out.array) and not _same(x, out.array):
                copied = _cuda.empty(tuple(x.shape), x.dtype)
                copy(x, copied)
                self.taken[key] = self.taken[key]._replace(array=copied)

    def argument(self, x, _: str):
        """An argument as the function takes it."""
        return _over(x, lambda part: self.taken[id(part)].array) if id(_parts(x)[0]) in self.given else x

    def give(self, result):
        """What the function returns, for the caller."""
        if isinstance(result, tuple):
            return tuple(self.give(x) for x in result)
        return _over(result, self._give) if all(map(is_device_array, _parts(result))) else result

    def _give(self, array):
        for key, imported_ in self.taken.items():
            if array is imported_.array:  # out
                return self.given[key][0]
        return delivered(array, self.like)


@lru_cache(maxsize=256)
def _signature(function) -> inspect.Signature:
    return inspect.signature(function)


def _is_ours(x, number: int, data: bool) -> bool:
    """Whether an argument is one of softnum's own arrays, to be worked on on the stream of a number, or no array.

    data: whether it stands where numbers and lists are elements.
    """
    if isinstance(x, (Array, BlockArray)):
        return all(_is_ours(part, number, data) for part in _parts(x))
    if isinstance(x, _cuda.OwnArray):
        return _cuda.number_of(x.stream) == number
    return not (isinstance(x, np.ndarray) or (data and isinstance(x, (Real, list, tuple))) or is_device_array(x))


def call(function, *arguments, **options):
    """function(*arguments, **options) of kernels/device, on CUDA arrays of any library.

    Raises
    ------
    TypeError
        If some of the arrays lie on the host, or `out` is read-only.
    """
    number = _cuda.number_of(_cuda.stream())
    if (
        options.get("out") is None
        and all(_is_ours(x, number, True) for x in arguments)
        and all(_is_ours(x, number, name in _ARRAYS) for name, x in options.items())
    ):
        with _cuda.running_on(_cuda.stream()):
            return function(*arguments, **options)  # as below, which has nothing to do
    bound = _signature(function).bind(*arguments, **options)
    this = _Call(function.__name__, _named(bound))
    numbers, chosen = this.numbers(), _cuda.chosen_stream()
    ours = _cuda.stream_of_number(numbers[0] if numbers else 1) if chosen is None else chosen
    others = [_cuda.stream_of_number(n) for n in numbers if n != _cuda.number_of(ours)]
    with _cuda.running_on(ours):
        for other in others:
            _cuda.wait(ours, other)
        try:
            this.take()
            bound = _with(bound, this.argument)
            return this.give(function(*bound.args, **bound.kwargs))
        finally:
            for other in others:
                _cuda.wait(other, ours)
            if not all(x.stream_known for x in this.taken.values()):
                _cuda.synchronize(ours)  # their memory may be used for other things as soon as it is given back
