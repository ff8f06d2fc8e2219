"""Gradients that meet, added in the arithmetic of the layer that made the result they are of."""

from __future__ import annotations

import math

import torch

from softnum.torch.calls import OUTER, RANK, ROWS
from softnum.torch.devices import running
from softnum.torch.ranks import Axes
from softnum.torch.tensors import array_of, result_dtype, tensor_of

__all__ = ["Final", "Gradients", "assigned", "final", "summed", "used"]


class Gradients:
    """The gradients of a result that is used more than once, added in the arithmetic of the layer that made it.

    PyTorch adds them itself, in the tensor's dtype. So a result goes through `summed`, and each of its uses through
    `used`, which hands the gradient over to this and nothing on.

    Parameters
    ----------
    mode : softnum.torch.arithmetic
    layer : str
    state : torch.Tensor
        Of the call that made the result.
    axes : softnum.torch.ranks.Axes, optional
        Of a result that was laid out anew on several ranks: where the batch's axis lies.
    """

    def __init__(self, mode, layer: str, state: torch.Tensor, axes=None) -> None:
        place = f"{layer}, gradients"  # numbered in each forward pass, as calls are
        self._place = mode.calls.get(place, 0)
        mode.calls[place] = self._place + 1
        self.arithmetic, self.state, self.layer = mode.arithmetic, state, layer
        self.total, self.count, self._axes = None, 0, axes

    def use(self, x: torch.Tensor) -> None:
        """Note where the batch lies in the result, when it is used."""
        if self._axes is not None:
            self.state, self._axes = state_along(self.state, x, self._axes, self.layer), None

    def add(self, gradient: torch.Tensor) -> None:
        """Take one more gradient; those of the uses that come last in the forward pass come first."""
        if self.total is None:
            self.total = gradient
            return
        self.count += 1
        use = f"gradients.{self._place}.{self.count}"
        device = self.arithmetic.device_of(gradient, self.layer, self.state)
        call = self.arithmetic.call(self.layer, self.state, use, device=device)
        call.begin("stacked")
        call.begin_backward()
        with running(gradient.device, device):
            parts = [call.enter(array_of(part, device)) for part in (self.total, gradient)]
            total = call.elementwise("add", *parts)
            self.total = tensor_of(total, result_dtype(gradient), gradient.device, parts)
        call.end()

    def finish(self, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """The total, with the gradient of the uses that softnum.torch did not see, as by a loss outside the model."""
        if gradient is not None:
            self.add(gradient)
        total, self.total, self.count = self.total, None, 0
        return total


def state_along(state: torch.Tensor, x: torch.Tensor, axes: Axes, layer: str) -> torch.Tensor:
    """The state of a call on several ranks, for a tensor that is its result laid out anew.

    Raises
    ------
    NotImplementedError
        If it is not known where the batch lies in that.
    """
    if len(state) <= RANK or not state[ROWS]:
        return state
    axis = axes.of(x)
    outer = math.prod(x.shape[:axis]) if isinstance(axis, int) else 0
    if not outer or x.shape[axis] % axes.rows or (outer > 1 and not axes.place.whole):
        raise NotImplementedError(
            f"layer {layer!r}: gradients of a result that is laid out anew and used more than once are added "
            "stochastically, and are not numbered by samples on several ranks; let the batch be its leading axis, "
            "state softnum.torch.set_rank(model, rank, whole=...), or let elementwise round to nearest"
        )
    state = state.clone()
    state[OUTER] = outer
    return state


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gradients, fresh):
        ctx.gradients = gradients
        ctx.set_materialize_grads(False)
        if not fresh:
            return x.view_as(x)
        ctx.mark_dirty(x)  # itself, no view, which arithmetic in place could not change
        return x

    @staticmethod
    def backward(ctx, gradient):
        return ctx.gradients.finish(gradient), None, None


class _Assigned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, source, gradients):
        ctx.gradients = gradients
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(x)
        return x.copy_(source)

    @staticmethod
    def backward(ctx, gradient):
        return None, ctx.gradients.finish(gradient), None


class _Used(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gradients):
        ctx.gradients = gradients
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.gradients.add(gradient)
        return None, None


def summed(x: torch.Tensor, mode, layer: str, state: torch.Tensor, *, fresh: bool = False, axes=None) -> torch.Tensor:
    """A result of a layer, whose gradients are added in the layer's arithmetic.

    fresh: whether it is one of softnum's functions, which keep no results for their gradients. axes: as of `Gradients`.
    """
    if not (x.requires_grad and x.is_floating_point()):
        return x
    gradients = Gradients(mode, layer, state, axes)
    x = _Summed.apply(x, gradients, fresh)
    x.softnum_gradients = gradients
    return x


def assigned(x: torch.Tensor, source: torch.Tensor, mode, layer: str, state: torch.Tensor) -> torch.Tensor:
    """x with the numbers of another tensor, in place; gradients of it from now on are added in a layer's arithmetic.

    Raises
    ------
    NotImplementedError
        If x is a view, through which other results would change.
    """
    if not (torch.is_grad_enabled() and (x.requires_grad or source.requires_grad)):
        return x.copy_(source)
    if x._is_view():
        raise NotImplementedError(
            f"layer {layer!r}: a view is changed in place, whose gradients the design adds in another format than "
            "binary32; write it without the change in place, or state elementwise='torch'"
        )
    gradients = Gradients(mode, layer, state)
    _Assigned.apply(x, source, gradients)
    x.softnum_gradients = gradients
    return x


def used(x):
    """A tensor as one of its uses takes it."""
    gradients = getattr(x, "softnum_gradients", None)
    if gradients is None or not torch.is_grad_enabled():
        return x
    gradients.use(x)
    return _Used.apply(x, gradients)


class Final:
    """The gradients of a parameter that are rounded to ``weight_gradients`` already, added in that role."""

    def __init__(self) -> None:
        self._pass = self.total = self._plain = None

    def add(self, gradient: torch.Tensor, call) -> None:
        """Take one more gradient, of a backward pass that is running; those of the uses that come last come first."""
        current = torch._C._current_graph_task_id()
        if self._pass != current:  # an interrupted one may have left something
            self._pass, self.total = current, None
        if self.total is None:
            self.total = self._plain = gradient
            return
        self._plain = self._plain + gradient
        call.begin_backward()
        with running(gradient.device, call.device):
            parts = [array_of(part, call.device) for part in (gradient, self.total)]
            total = call.axpy("weight_gradients", 1.0, *parts)
            self.total = tensor_of(total, result_dtype(gradient), gradient.device, parts)
        call.end()

    def take(self, gradient: torch.Tensor, name: str) -> torch.Tensor | None:
        """The sum, given what PyTorch makes of it; None if there is none.

        Raises
        ------
        NotImplementedError
            If there are other gradients in that.
        """
        if self._pass != torch._C._current_graph_task_id():
            return None
        total, self._pass = self.total, None
        if bool(((gradient == self._plain) | (gradient.isnan() & self._plain.isnan())).all()):
            return total
        raise NotImplementedError(
            f"parameter {name!r} of a recurrent layer has uses outside of it, whose gradients are not rounded as those "
            "of its steps are; use a copy of it there, or state elementwise='torch'"
        )


class _Final(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, finals, make):
        ctx.finals, ctx.make = finals, make
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.finals.add(gradient, ctx.make())
        return gradient, None, None


def final(x, mode, layer: str):
    """A parameter as a function takes it that rounds its gradients itself, for a layer."""
    finals = mode.finals(x)
    if finals is None:
        return x
    place = f"{layer}, weights"
    use = mode.calls[place] = mode.calls.get(place, -1) + 1
    bound, state = mode.arithmetic, mode.state
    device = bound.device_of(x, layer, state)
    return _Final.apply(x, finals, lambda: bound.call(layer, state, f"weights.{use}", device=device))
