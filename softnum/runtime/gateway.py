"""What softnum.kernels computes, and softnum asks for: functions of CUDA arrays, and of the user's functions.

softnum.kernels registers it here when it is imported, which the first need of it does, by `use_loader`'s loader.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

__all__ = [
    "NoKernel", "check_host_only", "compile_function", "container", "custom_engine", "elementwise_loop", "fingerprint",
    "has_kernel", "is_device_array", "is_short", "loops", "moves_as_numpy", "on_device", "refuse_device", "register",
    "scalar", "use_loader",
]  # fmt: skip

_WAY_OUT = "copy them to the host first (.copy_to_host() of Numba and of sn.Array, .get() of CuPy, .cpu() of PyTorch)"
_CUDA_DEVICES = (2, 13)  # of DLPack: CUDA, CUDA managed memory
_OF_THE_HOST = (np.ndarray, np.generic, int, float, str, list, tuple, type(None))
_EXACTLY = frozenset(_OF_THE_HOST)  # most arguments are of these types and of no subclass: told at once

_loaders: list[Callable[[], object]] = []  # at most one
_of_devices: dict[str, Callable] = {}  # name of softnum's function -> the function of CUDA arrays
_of_the_host: dict[str, Callable] = {}  # name of a function of this module -> what it calls
_containers: dict[type, tuple[str, ...]] = {}  # class -> its attributes that are arrays


def use_loader(load: Callable[[], object]) -> None:
    """Let `load` be called when something is asked for that nobody has registered: it imports softnum.kernels."""
    _loaders[:] = [load]


def register(devices: Mapping[str, Callable], host: Mapping[str, Callable]) -> None:
    """Say what computes.

    Parameters
    ----------
    devices : mapping of str to callable
        Name of a function of softnum -> that function of CUDA arrays.
    host : mapping of str to callable
        Name of a function of this module, from `compile_function` on -> what it calls.
    """
    _of_devices.update(devices)
    _of_the_host.update(host)


_T = TypeVar("_T")


def container(*attributes: str) -> Callable[[type[_T]], type[_T]]:
    """Decorate a class whose attributes of these names are arrays: its objects lie where these do."""

    def note(kind: type[_T]) -> type[_T]:
        _containers[kind] = attributes
        return kind

    return note


def _found(table: dict[str, Callable], name: str) -> Callable | None:
    if name not in table:
        for load in _loaders:
            load()
    return table.get(name)


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
    kind = type(x)
    if kind in _EXACTLY:
        return False
    attributes = _containers.get(kind)
    if attributes is not None:
        for attribute in attributes:  # noqa: SIM110  a generator takes longer than all the rest
            if is_device_array(getattr(x, attribute)):
                return True
        return False
    if isinstance(x, _OF_THE_HOST):
        return False
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
    return _found(_of_devices, name) is not None


def on_device(name: str, *arguments, **options):
    """softnum's function of a name, on CUDA arrays of any library: NoKernel if it has none."""
    function = _found(_of_devices, name)
    if function is None:
        refuse_device(name)
    return function(*arguments, **options)


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
        if frame.f_globals["__name__"] != "softnum.runtime.plain":  # whose function calls what was called
            what = frame.f_code.co_name
        frame = frame.f_back
    raise NoKernel(f"{what or 'this function'} takes no CUDA arrays; {_WAY_OUT}")


def check_exact_values(what: str, *formats) -> None:
    """NoKernel for a format whose values are irrational: no kernel computes with logarithms."""
    for fmt in formats:
        if fmt is not None and not fmt.values_are_exact:
            raise NoKernel(f"{what}: no kernel computes with logarithmic numbers ({fmt}); {_WAY_OUT}")


def _computed(name: str, *arguments, **options):
    return _found(_of_the_host, name)(*arguments, **options)


def compile_function(function, name: str, takes: str, gives: str, count: int, bits: int, what: str):
    """A user's Python function over arrays, compiled (`softnum.kernels.host.functions`); ImportError without Numba."""
    return _computed("compile_function", function, name, takes, gives, count, bits, what)


def scalar(fmt, **options):
    """A format's arithmetic on single numbers (`softnum.kernels.scalar`)."""
    return _computed("scalar", fmt, **options)


def custom_engine(unit):
    """The compiled engine of a CustomMadUnit; ImportError without Numba."""
    return _computed("custom_engine", unit)


def elementwise_loop(operations, names, inputs, outputs):
    """A compiled loop over operations (`softnum.kernels.host.elementwise.loop_of`); None outside its domain."""
    return _computed("elementwise_loop", operations, names, inputs, outputs)


def is_short(scalar, *names: str) -> bool:
    """Whether operations of a scalar are a few instructions each in compiled code."""
    return _computed("is_short", scalar, *names)


def loops(kind: str, loops, arrays, start, operations=()):
    """A contraction by compiled loops: `softnum.kernels.host.contractions.run`."""
    return _computed("loops", kind, loops, arrays, start, operations)


def fingerprint(*functions) -> str | None:
    """A digest of Python functions and of all that they read from outside; None if that cannot be told."""
    return _computed("fingerprint", *functions)
