"""Operators of the Tile language (`softnum.operator`) on CUDA arrays: each step by kernels, the bits those of the CPU.

Steps on elements go together into one kernel as far as they have one shape (`operator_steps`). Sums are the products
and sums of the unit, in layouts of their indices (`operator_sums`); other contractions, and the bodies of sums, are
loops over their terms, a thread to an element (`operator_terms`). All arithmetic but the units' is the core's.
"""

from __future__ import annotations

from collections import OrderedDict
from numbers import Real
from weakref import WeakKeyDictionary

import numpy as np

from softnum.arrays.container import Array
from softnum.formats.names import format
from softnum.kernels.device.products.problem import Operand, to_codes
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.strides import contiguous
from softnum.kernels.device.tile.steps import Group, Tensor, array_of, group_of, new, reshaped
from softnum.kernels.device.tile.sums import sum_of_axes, sums
from softnum.kernels.device.tile.terms import gathered, looped, others, scattered, single
from softnum.kernels.device.tile.text import element_kernel, kernel_types
from softnum.runtime.gateway import NoKernel, check_host_only, is_device_array
from softnum.tile.affine import exact_value
from softnum.tile.arithmetic import as_constant, carrier_of, key_of
from softnum.tile.evaluate import Run
from softnum.tile.settings import Settings
from softnum.tile.space import Space
from softnum.tile.tables import is_elementwise

__all__ = ["examples", "operator"]

_MOST = 256  # kernels of one operator that are kept, the last used
_PLANS: WeakKeyDictionary = WeakKeyDictionary()
_WAY_OUT = "copy the CUDA arrays to the host first (.copy_to_host() of Numba and of sn.Array)"


def operator(
    operator, *inputs, fmt=None, unit=None, rounding="nearest_even", overflow=None, stochastic_bits=32, key=None,
    threads=None,
):  # fmt: skip
    """What an `softnum.tile.operators.Operator` gives of CUDA arrays; its ``__call__`` says what it takes.

    Raises
    ------
    TypeError
        For what has no kernel: custom formats, units without one. It names the statement.
    """
    check_host_only(operator.name, threads)
    settings = Settings(operator._program, inputs, fmt, unit, rounding, overflow, stochastic_bits)
    key = key if settings.stochastic else None
    plans = _PLANS.setdefault(operator, OrderedDict())
    results = operator.evaluated(
        inputs, lambda x, name: _taken(operator, x, name, settings),
        lambda program, tensors, sizes: DeviceRun(program, tensors, sizes, settings, key, plans).outputs(),
    )  # fmt: skip
    as_array = any(isinstance(x, Array) for x in inputs)
    delivered = tuple(_delivered(tensor, as_array) for tensor in results)
    return delivered[0] if len(delivered) == 1 else delivered


def _delivered(tensor: Tensor, as_array: bool):
    values = None if as_array else tensor.values
    if values is not None:
        return reshaped(values, tensor.shape)
    return array_of(tensor)


def _taken(operator, x, name: str, settings) -> Tensor:
    """An input, checked to be of its format."""
    stated = settings.stated_format(name)
    if isinstance(x, Array) and is_device_array(x):
        if stated is not None and stated != x.format:
            raise ValueError(f"{operator.name}: {name} is an Array of {x.format}, and its format is {stated}")
        codes = contiguous(x.codes)
        flat = codes.reshape(codes.size) if codes.size else new(0, codes.dtype)
        return Tensor(x.format, x.shape, codes=flat)
    fmt = settings.format_given(name)
    if not is_device_array(x):
        if isinstance(x, bool) or not isinstance(x, Real):
            raise TypeError(f"{operator.name}: {name} lies on the host, another input on the device; copy one of them")
        x = _cuda.to_device(np.full(1, x, np.float64)), ()
    else:
        x = contiguous(_cuda.device_array(x, f"{operator.name}: {name}")), tuple(x.shape)
    array, shape = x
    if not array.size:
        return Tensor(fmt, shape, codes=new(0, fmt.storage_dtype))
    flat = array.reshape(array.size)
    codes = to_codes(Operand(flat, "rows", None, shape or (1,), name), fmt, operator.name).flat
    return Tensor(fmt, shape, codes=codes, values=flat if flat.dtype == carrier_of(fmt) else None)


class DeviceRun(Run):
    """One evaluation, on the device: values are `Tensor`s there."""

    def __init__(self, program, inputs, sizes, settings, key, plans) -> None:
        super().__init__(program, inputs, sizes, settings, key, None, None)
        self.plans = plans

    def placed(self, step):
        """Errors by a step's place; what has no kernel is a TypeError."""
        return _Placed(self, super().placed(step), step)

    def plan(self, what, make):
        """What make() gives, kept for calls with the same formats and shapes."""
        formats = tuple((name, tensor.format) for name, tensor in self.values.items())
        key = what, self.situation, formats, self.key is None, _cuda.device_index()
        found = self.plans.pop(key) if key in self.plans else make()
        while len(self.plans) >= _MOST:
            self.plans.popitem(last=False)
        self.plans[key] = found
        return found

    def raise_for(self, failed) -> None:
        """The error of a kernel's failure."""
        failure, place = failed
        if failure.error is not None:
            raise failure.error(place)
        raise self.program.source.error(failure.step.at, f"{failure.step.base}: {failure.message}")

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _is_looped(self, first, numbers) -> bool:
        if not is_elementwise(first):
            return False
        with self.placed(first):
            group: Group = self.plan(first.name, lambda: group_of(self, numbers))
            found, failed = group.run(self.values, self.key)
        if failed is not None:
            self.raise_for(failed)
        self.values |= found
        self.skipped |= group.members
        return True

    def _step(self, number: int, step):
        if step.function != "vector":
            return getattr(self, f"_{step.function}")(number, step)
        fmt = self.settings.format(step.base)
        codes = [as_constant(exact_value(x.expression, self.sizes), fmt).codes for x in step.arguments]
        return Tensor(fmt, (len(codes),), codes=_cuda.to_device(np.array(codes or [0], fmt.storage_dtype)))

    # -- contractions --------------------------------------------------------------------------------------------------
    def _contract(self, number: int, step):
        space = Space.of(step, self.program.source, self.sizes, {name: self.shape(name) for name in step.reads})
        make = sums if step.aggregation == "+" else others
        return self._stated(make(self, space, number), number, step.base)

    def _stated(self, tensor: Tensor, number: int, base: str) -> Tensor:
        fmt = self.settings.stated_format(base)
        if fmt is None or fmt == tensor.format:
            return tensor
        step = self.program.steps[number]
        return self.rounded(tensor, fmt, number, (1 << 16) - 1, step)

    def rounded(self, tensor: Tensor, fmt, number: int, part: int, step) -> Tensor:
        """A tensor in another format, by the rounding of a number in its step."""
        if fmt == tensor.format:
            return tensor
        options = self.settings.rounding(step.base)
        return single(self, tensor, fmt, options, (number, part), step)

    # -- whole tensors -------------------------------------------------------------------------------------------------
    def _gather(self, number: int, step) -> Tensor:
        length = self.length_of(step, step.arguments[0])
        found = gathered(self, step, length)
        return self.rounded(found, self.settings.format(step.base), number, 0, step)

    def _scatter(self, number: int, step) -> Tensor:
        table = self.scattered_shape(step)
        unit = self.settings.unit(step.base)
        terms = scattered(self, step, table)
        key = key_of(self.key, number) if unit.stochastic else None
        return self._stated(sum_of_axes(terms, unit, (1,), key, step.base), number, step.base)

    def _reduce_like(self, number: int, step) -> Tensor:
        tensor, like = self.values[step.arguments[0]], self.shape(step.arguments[1])
        if tensor.shape == like:
            return self.rounded(tensor, self.settings.format(step.base), number, 0, step)
        axes, unit = self.reduced_axes(step), self.settings.unit(step.base)
        key = key_of(self.key, number) if unit.stochastic else None
        result = sum_of_axes(tensor, unit, axes, key, step.base)
        return self._stated(result.moved(like), number, step.base)


class _Placed:
    """The context of `Run.placed`, in which what has no kernel is a TypeError that shows the statement."""

    def __init__(self, run, inner, step) -> None:
        self.run, self.inner, self.step = run, inner, step

    def __enter__(self) -> None:
        self.inner.__enter__()

    def __exit__(self, kind, error, trace):
        if isinstance(error, NoKernel):
            message = str(error).removeprefix(f"{self.step.base}: ")
            place = self.run.program.source.error(self.step.at, f"{self.step.base}: {message}; {_WAY_OUT}")
            raise NoKernel(str(place)) from None
        return self.inner.__exit__(kind, error, trace)


def examples():
    """Kernels for the link check: (name, kernel, types of the arguments)."""
    from softnum.tile.operators import operator

    for text, shapes, rounding in (
        ("function (X[M, N]) -> (Y) { Y[i: M] = >(X[i, 2 * j + k - 1]), k < 2; }", ((4, 6),), "nearest_even"),
        ("function (X, B) -> (Y) { T = X * X + B; Y = T > 0 ? sqrt(T) : X / B; }", ((4, 3), (3,)), "nearest_even"),
        ("function (X) -> (Y) { Y = gelu(X) * pow(abs(X), tanh(X)) + exp(-X); }", ((3,),), "stochastic"),
    ):
        program = operator(text)._program
        fmt = format("e5m2")
        tensors = {name: Tensor(fmt, shape) for (name, _), shape in zip(program.inputs, shapes, strict=True)}
        sizes = dict(zip("MN", shapes[0], strict=False))
        settings = Settings(program, (), fmt, None, rounding, None, 32)
        run = DeviceRun(program, tensors, sizes, settings, 0 if settings.stochastic else None, OrderedDict())
        step = program.steps[0]
        if is_elementwise(step):
            made = group_of(run, program.needed).made
        else:
            shapes_of = {name: tensor.shape for name, tensor in tensors.items()}
            made, *_ = looped(run, Space.of(step, program.source, sizes, shapes_of), 0)
        yield text, element_kernel(made.library), kernel_types(), False, settings.stochastic
