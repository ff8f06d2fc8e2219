"""softnum's functions by the names under which the engine asks for them.

>>> FUNCTIONS["quantize"]([0.1], "e5m2")
array([0.09375])
"""

from __future__ import annotations

from collections.abc import Callable

from softnum.arrays.conversion import decode, encode, quantize
from softnum.mac.products.conv import conv2d, conv2d_backward_data, conv2d_backward_weight
from softnum.mac.products.matrices import matmul
from softnum.ops import arithmetic, elementary

__all__ = ["FUNCTIONS", "PRODUCTS"]

#: name -> the public function of that name: conversions, products, and every operation on codes
FUNCTIONS: dict[str, Callable] = {
    "quantize": quantize,
    "encode": encode,
    "decode": decode,
    "matmul": matmul,
    "conv2d": conv2d,
    "conv2d_backward_data": conv2d_backward_data,
    "conv2d_backward_weight": conv2d_backward_weight,
    **{
        name: getattr(module, name)
        for module in (arithmetic, elementary)
        for name in module.__all__
        if name != "OPERATIONS"
    },
}

#: pass -> the function of a convolution's product in it
PRODUCTS = {
    "forward": "conv2d",
    "backward_data": "conv2d_backward_data",
    "backward_weight": "conv2d_backward_weight",
}
