"""softnum: exact arithmetic of any number format and multiply-add unit, and what it does to training.

>>> import softnum as sn
>>> sn.quantize([0.1, 300.0], "e4m3fn")
array([1.015625e-01, 2.880000e+02])
"""

from softnum.accuracy import ulp, ulp_error
from softnum.array import Array, array
from softnum.block_array import BlockArray
from softnum.block_layouts import tile_scales, untile_scales
from softnum.block_unit import BlockDotUnit
from softnum.blocks import BlockFormat, block_format_names, format
from softnum.config import __version__ as __version__
from softnum.config import get_include, show_config
from softnum.conv import conv2d, conv2d_backward_data, conv2d_backward_weight
from softnum.custom import CustomFormat
from softnum.custom_unit import CustomMadUnit
from softnum.elementary import (
    acos,
    asin,
    atan,
    cbrt,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    gelu,
    hypot,
    log,
    log1p,
    log2,
    log10,
    pow,
    reciprocal,
    rsqrt,
    sigmoid,
    silu,
    sin,
    sinh,
    softplus,
    tan,
    tanh,
)
from softnum.exact import ExactDotUnit
from softnum.files import load, save
from softnum.formats import FixedFormat, FloatFormat
from softnum.fused import FmaChainUnit, FusedDotUnit
from softnum.integers import from_integer, shift, to_integer
from softnum.matmul import dot, matmul
from softnum.modes import Flags
from softnum.names import format_names
from softnum.ops import (
    absolute,
    add,
    classify,
    compare,
    convert,
    copysign,
    divide,
    fma,
    logb,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
    multiply,
    negate,
    next_down,
    next_up,
    remainder,
    round_to_integral,
    scalb,
    sqrt,
    subtract,
    total_order,
)
from softnum.packing import pack, unpack
from softnum.presets import unit, units  # which hides the module of that name: softnum.units is the function
from softnum.probes import Probe, probe
from softnum.statistics import RoundingStats
from softnum.sums import sum
from softnum.tile import Operator, TileError, operator
from softnum.units import MadUnit
from softnum.values import decode, encode, quantize

__all__ = [
    "Array",
    "BlockArray",
    "BlockDotUnit",
    "BlockFormat",
    "CustomFormat",
    "CustomMadUnit",
    "ExactDotUnit",
    "FixedFormat",
    "Flags",
    "FloatFormat",
    "FmaChainUnit",
    "FusedDotUnit",
    "MadUnit",
    "Operator",
    "Probe",
    "RoundingStats",
    "TileError",
    "absolute",
    "acos",
    "add",
    "array",
    "asin",
    "atan",
    "block_format_names",
    "cbrt",
    "classify",
    "compare",
    "conv2d",
    "conv2d_backward_data",
    "conv2d_backward_weight",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "decode",
    "divide",
    "dot",
    "encode",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "fma",
    "format",
    "format_names",
    "from_integer",
    "gelu",
    "get_include",
    "hypot",
    "load",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "matmul",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
    "multiply",
    "negate",
    "next_down",
    "next_up",
    "operator",
    "pack",
    "pow",
    "probe",
    "quantize",
    "reciprocal",
    "remainder",
    "round_to_integral",
    "rsqrt",
    "save",
    "scalb",
    "shift",
    "show_config",
    "sigmoid",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "tile_scales",
    "to_integer",
    "total_order",
    "ulp",
    "ulp_error",
    "unit",
    "units",
    "unpack",
    "untile_scales",
]
