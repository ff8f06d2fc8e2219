"""Scales and roundings of training recipes, in the operations of their published references, bit for bit.

>>> import numpy as np
>>> from softnum.train.recipes import BlockScaling
>>> scaled = BlockScaling("e4m3fn", (1, 2))(np.float32([[1, 416, 3, 4]]))
>>> scaled.elements, scaled.scales
(array([[  1., 416., 192., 256.]], dtype=float32), array([[1.      , 0.015625]], dtype=float32))
"""

from softnum.train.recipes.mx import MXScaling, exponent_code_of, power_above
from softnum.train.recipes.nvfp4 import (
    SIGNS,
    MXFP4Scaling,
    NVFP4Scaling,
    hadamard_matrix,
    hadamard_transform,
    half_products,
    jax_stochastic,
    to_e2m1,
)  # fmt: skip
from softnum.train.recipes.products import scaled_product
from softnum.train.recipes.quartet import QuestScaling, TsengScaling
from softnum.train.recipes.scaled import (
    BlockScaling,
    Delayed,
    DelayedScaling,
    Scaled,
    TensorScaling,
    cast,
    spread,
    tile_magnitudes,
)  # fmt: skip
from softnum.train.recipes.scales import delayed_scale, largest_magnitude, scale_of_largest
from softnum.train.recipes.stacks import scaled_stack

__all__ = [
    "SIGNS",
    "BlockScaling", "Delayed", "DelayedScaling", "MXFP4Scaling", "MXScaling", "NVFP4Scaling", "QuestScaling", "Scaled",
    "TensorScaling", "TsengScaling",
    "cast", "delayed_scale", "exponent_code_of", "hadamard_matrix", "hadamard_transform", "half_products",
    "jax_stochastic", "largest_magnitude", "power_above", "scale_of_largest", "scaled_product", "scaled_stack",
    "spread", "tile_magnitudes", "to_e2m1",
]  # fmt: skip
