"""Matrix products, convolutions and sums under a unit: definitions and fast paths."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.mac.products.conv import conv2d_backward_data, conv2d_backward_weight
    from softnum.mac.products.fourier import conv2d_fft
    from softnum.mac.products.winograd import conv2d_winograd
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.mac.products.conv": ("conv2d_backward_data", "conv2d_backward_weight"),
            "softnum.mac.products.fourier": ("conv2d_fft",),
            "softnum.mac.products.winograd": ("conv2d_winograd",),
        },
    )

__all__ = [
    "conv2d_backward_data",
    "conv2d_backward_weight",
    "conv2d_fft",
    "conv2d_winograd",
]
