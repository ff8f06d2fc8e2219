"""softnum's functions as operations of PyTorch (``torch.ops.softnum``): what compilers, exporters and transforms see.

Every function ``f`` is two operations::

    f(Tensor[] inputs, Tensor state, str arithmetic, str layer, int call, int[] options, float[] constants) -> Tensor
    f_backward(Tensor gradient, Tensor[] inputs, Tensor state, str arithmetic, str layer, int call, int[] options,
               float[] constants, bool[] needs) -> Tensor[]

The second rounds the operands again from the inputs, by the same random bits; nothing but the inputs is saved.
"""

from __future__ import annotations

import functools

import torch
from torch._functorch.utils import unwrap_dead_wrappers

from softnum.runtime.threads import threads_by_default
from softnum.torch.calls import SEED
from softnum.torch.devices import running
from softnum.torch.functions import FUNCTIONS
from softnum.torch.numerics import arithmetic_of
from softnum.torch.tensors import array_of, result_dtype, tensor_of

__all__ = ["apply"]

_ARGUMENTS = "Tensor state, str arithmetic, str layer, int call, int[] options, float[] constants"
_LIBRARY = torch.library.Library("softnum", "DEF")


def apply(name: str, inputs: list[torch.Tensor], state: torch.Tensor, arithmetic: str, layer: str, call: int = 0,
          options=(), constants=()):  # fmt: skip
    """The result of a function, with its gradient.

    Parameters
    ----------
    name : str
        One of `FUNCTIONS`.
    inputs : list of torch.Tensor
    state : torch.Tensor
        `softnum.torch.calls.new_state`.
    arithmetic : str
        The handle of an `Arithmetic`.
    layer : str
        A module's path.
    call : int
        Which call of the layer in this forward pass.
    options, constants : sequence of int, of float
        Of the function, in the order of its ``options`` and ``constants``.

    Returns
    -------
    torch.Tensor, or several
    """
    where = arithmetic, layer, call, list(options), list(constants)
    inputs = _beside(inputs)
    if torch.compiler.is_compiling():
        return getattr(torch.ops.softnum, name)(inputs, state, *where)
    eager, general = _FUNCTIONS[name]
    return (eager if _at_once(inputs) else general).apply(where, state, *inputs)


def _beside(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The inputs; of tensors on another device, single numbers of the CPU's beside them, as PyTorch takes them."""
    device = inputs[0].device
    if all(x.device == device for x in inputs):
        return inputs
    device = next((x.device for x in inputs if x.dim()), device)
    return [x.to(device) if not x.dim() and x.is_cpu else x for x in inputs]


#: functions whose operands have one dtype
_ALIKE = ("conv2d", "linear", "lstm", "matmul", "rnn_relu", "rnn_tanh")


def _checked(name: str, inputs: list[torch.Tensor], layer: str) -> None:
    first = inputs[0]
    device, dtype, alike = first.device, first.dtype, first.is_floating_point()
    for x in inputs:
        alike = alike and x.dtype is dtype
        if x.device != device:
            places = ", ".join(sorted({str(x.device) for x in inputs}))
            raise ValueError(f"softnum's {name}, layer {layer!r}: tensors lie on {places}; move them to one device")
    if name in _ALIKE and not alike:
        raise ValueError(
            f"softnum's {name}, layer {layer!r}: tensors must have one dtype of floating point, got "
            f"{', '.join(sorted({str(x.dtype) for x in inputs}))}; convert them"
        )


def _forward(name: str, inputs, state, arithmetic, layer, call, options, constants):
    _checked(name, inputs, layer)
    function, bound = FUNCTIONS[name], arithmetic_of(arithmetic)
    device = bound.device_of(inputs[0], layer, state, looked_up=function.looked_up)
    numerics = bound.call(layer, state, call, looked_up=function.looked_up, device=device)
    numerics.begin(function.batch)
    named = function.named(options, constants)
    # once, and not for each of its parts
    with running(inputs[0].device, device), threads_by_default(numerics.backend.threads):
        arrays = [array_of(x, device) for x in inputs]
        results = function.forward(numerics, arrays, named)
        numerics.end()
        like = [inputs[index] for index in (function.like(named), *function.changed)]
        tensors = [
            tensor_of(result, result_dtype(x), x.device, arrays) for result, x in zip(results, like, strict=True)
        ]  # fmt: skip
    return tuple(tensors) if function.changed else tensors[0]


def _backward(name: str, gradient, inputs, state, arithmetic, layer, call, options, constants, needs):
    function, bound = FUNCTIONS[name], arithmetic_of(arithmetic)
    device = bound.device_of(inputs[0], layer, state, looked_up=function.looked_up)
    numerics = bound.call(layer, state, call, looked_up=function.looked_up, device=device)
    numerics.begin(function.batch)
    with running(inputs[0].device, device), threads_by_default(numerics.backend.threads):
        error, *arrays = [array_of(x, device) for x in (gradient, *inputs)]
        gradients = function.backward(numerics, error, arrays, needs, function.named(options, constants))
        numerics.end()
        wanted = [x for x, need in zip(inputs, needs, strict=True) if need]
        return [
            tensor_of(part, result_dtype(x), x.device, (error, *arrays))
            for part, x in zip(gradients, wanted, strict=True)
        ]  # fmt: skip


def _shape(name: str, inputs, state, arithmetic, layer, call, options, constants):
    function = FUNCTIONS[name]
    named = function.named(options, constants)
    like = inputs[function.like(named)]
    shape = function.shape([x.shape for x in inputs], named)
    result = like.new_empty(shape, dtype=result_dtype(like))
    changed = [inputs[index] for index in function.changed]
    return (result, *(torch.empty_like(x) for x in changed)) if changed else result


def _backward_shapes(gradient, inputs, state, arithmetic, layer, call, options, constants, needs):
    return [
        x.new_empty(x.shape, dtype=result_dtype(x)) for x, need in zip(inputs, needs, strict=True) if need
    ]  # fmt: skip


def _without_values(tensors) -> tuple[torch.Tensor, ...]:
    """A state and tensors, of which shapes and dtypes alone are kept."""
    state, *rest = tensors
    return (state, *(x.new_zeros(()).expand(x.shape) for x in rest))


def _state_of_slice(state: torch.Tensor, index: int) -> torch.Tensor:
    """The state of one slice of a vectorised call: of a seed of its own, by a congruential step."""
    changed = state.clone()
    changed[SEED] = state[SEED] * 6364136223846793005 + (index + 1) * 1442695040888963407
    return changed


def _slices(info, in_dims, tensors) -> list[list]:
    """The tensors of each slice of a vectorised call; the first of them is a state."""
    rows = []
    for index in range(info.batch_size):
        state, *rest = (
            x if axis is None else x.select(axis, index) for x, axis in zip(tensors, in_dims, strict=True)
        )  # fmt: skip
        rows.append([_state_of_slice(state, index), *rest])
    return rows


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _at_once(tensors) -> bool:
    """Whether nothing but PyTorch's own tensors is there to hear of an operation: its dispatcher takes as long as a
    small product."""
    for x in tensors:
        if type(x) not in _PLAIN:
            return False
    return (
        not torch._C._len_torch_dispatch_stack()
        and not torch._C._len_torch_function_stack()  # without the mode that asks
        and not torch._C._are_functorch_transforms_active()
    )


class _Function(torch.autograd.Function):
    """A function whose ``apply`` takes all arguments of ``forward`` by position."""

    @classmethod
    def apply(cls, *inputs):
        if torch._C._are_functorch_transforms_active():
            return super().apply(*inputs)
        return super(torch.autograd.Function, cls).apply(*unwrap_dead_wrappers(inputs))


def _define(name: str) -> tuple[type[torch.autograd.Function], type[torch.autograd.Function]]:
    """Define the two operations of a function.

    Returns
    -------
    eager, general : types
        The function as a differentiable one, for PyTorch's own tensors `_at_once` and for transforms: these ask for
        `setup_context`, with which PyTorch looks for the signature at each call, a tenth of what a small product takes.
    """
    changed = len(FUNCTIONS[name].changed)
    kept = tuple if FUNCTIONS[name].values else _without_values
    results = f"({', '.join(['Tensor'] * (1 + changed))})"
    _LIBRARY.define(f"{name}(Tensor[] inputs, {_ARGUMENTS}) -> {results}")
    _LIBRARY.define(f"{name}_backward(Tensor gradient, Tensor[] inputs, {_ARGUMENTS}, bool[] needs) -> Tensor[]")
    forward, backward = (getattr(torch.ops.softnum, text).default for text in (name, f"{name}_backward"))
    for operation, run, fake in (
        (forward, functools.partial(_forward, name), functools.partial(_shape, name)),
        (backward, functools.partial(_backward, name), _backward_shapes),
    ):
        _LIBRARY.impl(operation, run, "CompositeExplicitAutograd")
        torch.library.register_fake(operation, fake, lib=_LIBRARY)

    class Backward(_Function):
        @staticmethod
        def forward(plain, needs, state, gradient, *inputs):
            return tuple(backward(gradient, list(inputs), state, *plain, needs))

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, *gradients):
            raise NotImplementedError(f"softnum's {name} has no second derivative: its gradient is not differentiable")

        @staticmethod
        def vmap(info, in_dims, plain, needs, *tensors):
            results = [Backward.apply(plain, needs, *row) for row in _slices(info, in_dims[2:], tensors)]
            return tuple(torch.stack(parts) for parts in zip(*results, strict=True)), (0,) * len(results[0])

    class Forward(_Function):
        @staticmethod
        def forward(plain, state, *inputs):
            return forward(list(inputs), state, *plain)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.plain, *tensors = inputs
            ctx.save_for_backward(*kept(tensors))
            if changed:
                ctx.mark_non_differentiable(*output[1:])

        @staticmethod
        def backward(ctx, gradient, *_):
            state, *inputs = ctx.saved_tensors
            needs = list(ctx.needs_input_grad[2:])
            if not torch.is_grad_enabled() and _at_once((gradient, *inputs)):
                gradients = iter(_backward(name, gradient, inputs, state, *ctx.plain, needs))
            else:
                gradients = iter(Backward.apply(ctx.plain, needs, state, gradient, *inputs))
            return None, None, *(next(gradients) if need else None for need in needs)

        @staticmethod
        def jvp(ctx, *tangents):
            raise NotImplementedError(
                f"softnum's {name} has no forward-mode derivative; use reverse mode (torch.func.vjp, jacrev, grad)"
            )

        @staticmethod
        def vmap(info, in_dims, plain, *tensors):
            if changed:
                raise NotImplementedError(f"softnum's {name} changes what it is given; it has no vectorised form")
            return torch.stack([Forward.apply(plain, *row) for row in _slices(info, in_dims[1:], tensors)]), 0

    class Eager(_Function):
        @staticmethod
        def forward(ctx, *given):
            plain, state, *inputs = given
            result = _forward(name, inputs, state, *plain)
            Forward.setup_context(ctx, given, result)
            return result

        backward, jvp = Forward.backward, Forward.jvp

    # what an exported or compiled program, which holds the operation itself, differentiates by

    def keep(ctx, inputs, output):
        tensors, state, *ctx.plain = inputs
        ctx.needs = [x.requires_grad for x in tensors]
        ctx.save_for_backward(*kept((state, *tensors)))

    def differentiate(ctx, gradient, *_):
        state, *inputs = ctx.saved_tensors
        needs = ctx.needs
        gradients = iter(backward(gradient, inputs, state, *ctx.plain, needs))
        tail = ([] if isinstance(x, (list, tuple)) and not x else None for x in ctx.plain)
        return [next(gradients) if need else None for need in needs], None, *tail

    torch.library.register_autograd(forward, differentiate, setup_context=keep, lib=_LIBRARY)
    torch.library.register_autograd(backward, Backward.backward, setup_context=lambda *_, **__: None, lib=_LIBRARY)
    return Eager, Forward


_FUNCTIONS = {name: _define(name) for name in FUNCTIONS}
