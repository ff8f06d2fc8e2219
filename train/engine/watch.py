"""Watching a run's arithmetic: everything that passes the one door to arrays, with the layer and role it is for.

What is watched computes what it would compute anyway, by the same calls: no bit of a run depends on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter_ns
from types import GeneratorType
from typing import Any

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.environment import PartKey
from softnum.formats.base import AnyFormat
from softnum.mac.mad import Unit
from softnum.runtime.gateway import is_device_array
from softnum.train.designs.convolutions import Convolution
from softnum.train.designs.design import RoleRounding
from softnum.train.designs.sparsity import Sparsity
from softnum.train.engine.backend import by_levels
from softnum.train.engine.binary64 import host
from softnum.train.recipes import Scaled

__all__ = ["BINARY64", "CARRIER", "EXACT", "ROUNDING", "Event", "is_array", "watch", "watching"]

#: methods of `NumpyBackend` that round to a role, or compute in a unit
ROUNDING = {
    "axpy",
    "compute",
    "convolve",
    "matmul",
    "matmul_scaled",
    "operate",
    "quantize",
    "quantize_blocks",
    "quantize_flat",
    "quantize_scaled",
    "run_operator",
    "run_operator_backward",
    "total",
    "unchanged",
}
#: methods that select, move or compare values
EXACT = {
    "all_finite", "argmax", "array", "block_ones", "choose", "concatenate", "double", "expand", "from_windows", "join",
    "kept", "kept_of_groups", "kept_of_tensor", "largest", "magnitude", "negate", "neighbours", "numbers", "ones",
    "part", "patches", "permute", "pixels", "place", "positive_part", "prune", "put", "put_rows", "reshape", "sign",
    "sources", "split", "steps", "take", "transpose", "trusted", "where_equal", "where_positive", "windows", "zeros",
}  # fmt: skip
#: methods that round to the carrier, binary32 or binary64
CARRIER = {"add", "clamp", "constant", "returned"}
#: methods that compute in binary64
BINARY64 = {
    "balance", "binary_cross_entropy", "cross_entropy_error", "divide", "draw", "exp", "log", "norm", "ordered_sum",
    "policy_loss", "scaled", "signed_means", "smooth_l1", "softmax_cross_entropy",
}  # fmt: skip


@dataclass(frozen=True)
class Event:
    """One call of a backend's method.

    Attributes
    ----------
    method : str
    stage : str
        What the iteration is doing: one of `softnum.train.engine.numerics.STAGES`.
    layer, place : str or None
        Of a rounding or pruning: the layer, and the role, the pass, or "start" (the initial value of an accumulator).
    arguments : tuple
        As the method got them.
    result
        What it returned.
    again : callable
        The method itself, unwatched.
    started, ended : int
        Nanoseconds of a clock that stands still while anything but the run itself works: the watching and its listener.
    """

    method: str
    stage: str
    layer: str | None
    place: str | None
    arguments: tuple
    result: Any
    again: Callable
    started: int
    ended: int

    def on_host(self) -> Event:
        """The same with copies on the host of the arrays that lie on a device."""
        return replace(self, arguments=_down(self.arguments), result=_down(self.result))

    @property
    def rounding(self) -> RoleRounding | None:
        """How it rounded to a role."""
        return next((part for part in self.arguments if isinstance(part, RoleRounding)), None)

    @property
    def sparsity(self) -> Sparsity | None:
        """What it pruned by."""
        return next((part for part in self.arguments if isinstance(part, Sparsity)), None)

    @property
    def unit(self) -> Unit | None:
        """The unit that it computed in."""
        return next((part for part in self.arguments if isinstance(part, Unit)), None)

    @property
    def delivered(self) -> AnyFormat:
        """The format of a product's numbers."""
        by = next((part for part in self.arguments if isinstance(part, Convolution)), None)
        return self.unit.result if by is None else by.delivers(self.unit)


def is_array(part) -> bool:
    """Whether a part of an event is an array of numbers or a mask, wherever it lies.

    >>> is_array(np.zeros(2)), is_array([0.0])
    (True, False)
    """
    return isinstance(part, np.ndarray) or hasattr(part, "host")


def _down(part):
    if isinstance(part, PartKey):
        return part
    if isinstance(part, Scaled):
        return Scaled(*map(_down, part))
    if isinstance(part, (tuple, list)):
        return type(part)(map(_down, part))
    if isinstance(part, BlockArray):
        return part.copy_to_host() if is_device_array(part) else part
    return host(part) if hasattr(part, "host") else part


class _WatchedBackend:
    """A backend's methods, each of which tells a listener of its calls."""

    def __init__(self, backend, numerics, listener: Callable[[Event], None]) -> None:
        self._backend, self._numerics, self._listener = backend, numerics, listener
        self._spent = 0  # nanoseconds of watching

    def _now(self) -> int:
        return perf_counter_ns() - self._spent

    def total(self, x, role, keys, axes: str = "rows"):
        """`NumpyBackend.total`, operation by operation."""
        return by_levels(self, x, role, keys, axes)

    def __getattr__(self, name: str):
        method = getattr(self._backend, name)
        if not callable(method) or name in ("check_room", "dtype"):  # that computes nothing
            return method

        def watched(*arguments, **options):
            # parts that are made as they are asked for are operations of their own, before this one
            arguments = tuple(list(part) if isinstance(part, GeneratorType) else part for part in arguments)
            started = self._now()
            result = method(*arguments, **options)
            self._backend.finish()
            ended = self._now()
            layer, place = None, None
            if name in ROUNDING or any(isinstance(part, (RoleRounding, Sparsity, Unit)) for part in arguments):
                layer, place = self._numerics.place or (None, None)
            parts = (*arguments, *options.values())
            self._listener(Event(name, self._numerics.stage, layer, place, parts, result, method, started, ended))
            self._spent += self._now() - ended
            return result

        return watched


def watch(numerics, listener: Callable[[Event], None]) -> _WatchedBackend:
    """Tell a listener of every call of a numerics' backend from now on; returns the backend that does.

    Parameters
    ----------
    numerics : Numerics
        Or what has ``backend``, ``place`` and ``stage``.
    listener : callable
        As of `watching`.
    """
    numerics.backend = watched = _WatchedBackend(numerics.backend, numerics, listener)
    return watched


@contextlib.contextmanager
def watching(numerics, listener: Callable[[Event], None]):
    """Tell a listener of every call of a run's backend, as long as the context lasts.

    Parameters
    ----------
    numerics : Numerics
    listener : callable
        Takes an `Event`, and must not change the arrays in it.

    Yields
    ------
    callable
        Takes nothing, and returns what the clock of `Event` shows.
    """
    own = numerics.backend
    watched = watch(numerics, listener)
    try:
        yield watched._now
    finally:
        numerics.backend = own
