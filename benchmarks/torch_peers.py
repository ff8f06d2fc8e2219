"""What emulates less of a model than softnum does: functions that change a PyTorch model's linear layers in place.

Operands alone are rounded, of torch.nn.Linear and Conv2d (torchao: of Linear), and PyTorch multiplies them in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType

__all__ = ["PEERS", "casts", "microscaled", "qtorch", "torchao"]

_LARGEST, _BLOCK = 448.0, 32  # of e4m3; elements that share a scale


def _changed(model, product: Callable):
    """The model with product(x, weight, function) in the place of function(x, weight) in its layers."""
    import torch

    def linear(self, x):
        y = product(x, self.weight, torch.nn.functional.linear)
        return y if self.bias is None else y + self.bias

    def conv2d(self, x):
        def function(x, weight):
            return torch.nn.functional.conv2d(x, weight, None, self.stride, self.padding)

        return product(x, self.weight, function) + self.bias[:, None, None]

    for module in model.modules():
        forward = {torch.nn.Linear: linear, torch.nn.Conv2d: conv2d}.get(type(module))
        if forward is not None:
            module.forward = MethodType(forward, module)
    return model


def casts(model):
    """Operands cast to float8_e4m3fn and back, errors to float8_e5m2."""
    import torch

    class Operand(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to(torch.float8_e4m3fn).to(x.dtype)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Error(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient.to(torch.float8_e5m2).to(gradient.dtype)

    return _changed(model, lambda x, w, function: Error.apply(function(Operand.apply(x), Operand.apply(w))))


def qtorch(model):
    """QPyTorch's quantizers on the same operands."""
    from qtorch import FloatingPoint
    from qtorch.quant import Quantizer

    four, five = FloatingPoint(exp=4, man=3), FloatingPoint(exp=5, man=2)
    operand = Quantizer(forward_number=four, forward_rounding="nearest")
    error = Quantizer(backward_number=five, backward_rounding="nearest")
    return _changed(model, lambda x, w, function: error(function(operand(x), operand(w))))


def microscaled(model):
    """Blocks of 32 along each product's own K, scales as the OCP specification has them, in PyTorch's functions."""
    import torch

    def rounded(x, axis: int):
        """x in mxfp8_e4m3, in blocks along an axis."""
        x = x.movedim(axis, -1)
        apart = torch.nn.functional.pad(x, (0, -x.shape[-1] % _BLOCK)).unflatten(-1, (-1, _BLOCK))
        _, exponents = torch.frexp(apart.abs().amax(-1, keepdim=True))
        scale = (exponents - 9).to(x.dtype).exp2()  # the largest power of two, over that of 448
        y = (apart / scale).clamp(-_LARGEST, _LARGEST).to(torch.float8_e4m3fn).to(x.dtype) * scale
        return y.flatten(-2)[..., : x.shape[-1]].movedim(-1, axis)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, function, k: int):
            ctx.save_for_backward(x, weight)
            ctx.function, ctx.k = function, k
            return function(rounded(x, k), rounded(weight, 1))

        @staticmethod
        def backward(ctx, error):
            x, weight = ctx.saved_tensors
            operands = rounded(x, 0).requires_grad_(), rounded(weight, 0).requires_grad_()
            with torch.enable_grad():
                product = ctx.function(*operands)
            (data,) = torch.autograd.grad(product, operands[:1], rounded(error, ctx.k), retain_graph=True)
            (weights,) = torch.autograd.grad(product, operands[1:], rounded(error, 0))
            return data, weights, None, None

    return _changed(model, lambda x, w, function: Product.apply(x, w, function, 1 if w.dim() == 4 else -1))


def torchao(model):
    """torchao's Float8Linear, tensorwise, emulated in float32."""
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    return convert_to_float8_training(model, config=Float8LinearConfig(emulate=True))


#: what is emulated -> what changes a model
PEERS = {
    "e4m3/e5m2 casts of PyTorch": casts,
    "e4m3/e5m2 of qtorch": qtorch,
    "mxfp8_e4m3 in PyTorch's functions": microscaled,
    "torchao float8, tensorwise, emulated": torchao,
}
