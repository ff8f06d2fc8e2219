"""softnum: exact arithmetic of any number format and multiply-add unit, and what it does to training.

>>> import softnum as sn
>>> sn.quantize([0.1, 300.0], "e4m3fn")
array([1.015625e-01, 2.880000e+02])
"""

import typing as _typing
from importlib import import_module as _import_module

try:
    from softnum.runtime._core import PlainEnvironment as _PlainEnvironment
except ModuleNotFoundError as _error:
    if _error.name != "softnum.runtime._core":
        raise
    raise ImportError(
        f"softnum is not built in {__path__[0]}: run `make build` in the checkout (or `pip install -e .`); "
        "to import an installed softnum, start Python in another folder"
    ) from None
else:
    _plain = _PlainEnvironment()  # for the imports too, which compile sources and compute constants
    _plain.__enter__()

from softnum.arrays.blocks import BlockArray
from softnum.arrays.codecs import blocks as _block_codec  # noqa: F401  these register themselves
from softnum.arrays.codecs import custom as _custom_codec  # noqa: F401
from softnum.arrays.codecs import scalar as _scalar_codec  # noqa: F401
from softnum.arrays.container import NAMESPACES as _NAMESPACES
from softnum.arrays.container import Array, array
from softnum.arrays.conversion import decode, encode, quantize
from softnum.arrays.files import load, save
from softnum.arrays.streams import Stream
from softnum.formats.blocks import BlockFormat, format
from softnum.formats.custom import CustomFormat
from softnum.formats.logarithmic import LnsFormat, TakumFormat
from softnum.formats.modes import Flags
from softnum.formats.names import format_names
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.formats.tapered import PositFormat, TakumLinearFormat
from softnum.formats.wide import WideFixedFormat, WideFloatFormat
from softnum.mac.mad import MadUnit
from softnum.mac.mad import use_disclosures as _use_disclosures
from softnum.mac.mad import use_tracer as _use_tracer
from softnum.ops import custom_tables as _custom_operations  # noqa: F401
from softnum.ops import logarithmic as _logarithmic  # noqa: F401
from softnum.ops import numpy_values as _numpy_values  # noqa: F401
from softnum.ops.arithmetic import (
    absolute,
    add,
    classify,
    compare,
    convert,
    divide,
    fma,
    maximum,
    minimum,
    multiply,
    negate,
    next_down,
    next_up,
    remainder,
    sqrt,
    subtract,
)
from softnum.ops.elementary import (
    cos,
    erf,
    exp,
    exp2,
    expm1,
    gelu,
    log,
    log1p,
    log2,
    pow,
    reciprocal,
    rsqrt,
    sigmoid,
    silu,
    sin,
    softplus,
    tanh,
)
from softnum.runtime import gateway as _gateway
from softnum.runtime.config import __version__ as __version__
from softnum.runtime.config import get_include, show_config
from softnum.runtime.later import names_on_demand as _names_on_demand
from softnum.wide import WideArithmetic as _WideArithmetic  # noqa: F401  registers codec and arithmetic

if _typing.TYPE_CHECKING:  # these are imported when they are first asked for
    from softnum import arrays as arrays
    from softnum import collectives as collectives
    from softnum import formats as formats
    from softnum import inspect as inspect
    from softnum import mac as mac
    from softnum import ops as ops
    from softnum import tile as tile
    from softnum.collectives.make import collective
    from softnum.collectives.split_unit import SplitDotUnit
    from softnum.inspect.bounds.product import bound
    from softnum.inspect.identify import identify
    from softnum.inspect.permitted.freedom import Freedom, ImeFreedom
    from softnum.inspect.permitted.judge import permitted
    from softnum.inspect.probes import probe
    from softnum.inspect.which import which
    from softnum.mac.block_fused import BlockFusedDotUnit
    from softnum.mac.blocks import BlockDotUnit
    from softnum.mac.chunked import ChunkedDotUnit
    from softnum.mac.custom import CustomMadUnit
    from softnum.mac.exact import ExactDotUnit, exact
    from softnum.mac.fused import FmaChainUnit, FusedDotUnit
    from softnum.mac.grouped import GroupedDotUnit
    from softnum.mac.presets import unit, units
    from softnum.mac.products.conv import conv2d
    from softnum.mac.products.matrices import dot, matmul
    from softnum.mac.products.reductions import unit_of_sums
    from softnum.mac.products.sums import sum
    from softnum.mac.two_stage import TwoStageDotUnit
    from softnum.tile import operator
else:
    __getattr__, __dir__ = _names_on_demand(
        __name__,
        {
            "softnum.collectives.make": ("collective",),
            "softnum.collectives.split_unit": ("SplitDotUnit",),
            "softnum.inspect.bounds.product": ("bound",),
            "softnum.inspect.identify": ("identify",),
            "softnum.inspect.permitted.freedom": ("Freedom", "ImeFreedom"),
            "softnum.inspect.permitted.judge": ("permitted",),
            "softnum.inspect.probes": ("probe",),
            "softnum.inspect.which": ("which",),
            "softnum.mac.block_fused": ("BlockFusedDotUnit",),
            "softnum.mac.blocks": ("BlockDotUnit",),
            "softnum.mac.chunked": ("ChunkedDotUnit",),
            "softnum.mac.custom": ("CustomMadUnit",),
            "softnum.mac.exact": ("ExactDotUnit", "exact"),
            "softnum.mac.fused": ("FmaChainUnit", "FusedDotUnit"),
            "softnum.mac.grouped": ("GroupedDotUnit",),
            "softnum.mac.presets": ("unit", "units"),
            "softnum.mac.products.conv": ("conv2d",),
            "softnum.mac.products.matrices": ("dot", "matmul"),
            "softnum.mac.products.reductions": ("unit_of_sums",),
            "softnum.mac.products.sums": ("sum",),
            "softnum.mac.two_stage": ("TwoStageDotUnit",),
            "softnum.tile": ("operator",),
        },
        ("arrays", "collectives", "formats", "inspect", "mac", "ops", "tile"),
    )


def _load_kernels() -> None:
    with _PlainEnvironment():
        import softnum.kernels  # noqa: F401  registers what CUDA arrays and functions of the user's need


def _trace(unit, *arguments, **options):
    with _PlainEnvironment():
        from softnum.inspect.trace import trace

    return trace(unit, *arguments, **options)


def _disclose(unit):
    with _PlainEnvironment():
        from softnum.inspect.disclosure.document import disclose

    return disclose(unit)


def _read_disclosure(given):
    with _PlainEnvironment():
        from softnum.inspect.disclosure.reading import read

    return read(given)


_NAMESPACES[:] = [lambda: _import_module("softnum.ops.namespace")]
_gateway.use_loader(_load_kernels)
_use_tracer(_trace)
_use_disclosures(_disclose, _read_disclosure)

__all__ = [
    "Array",
    "BlockArray",
    "BlockDotUnit",
    "BlockFormat",
    "BlockFusedDotUnit",
    "ChunkedDotUnit",
    "CustomFormat",
    "CustomMadUnit",
    "ExactDotUnit",
    "FixedFormat",
    "Flags",
    "FloatFormat",
    "FmaChainUnit",
    "Freedom",
    "FusedDotUnit",
    "GroupedDotUnit",
    "ImeFreedom",
    "LnsFormat",
    "MadUnit",
    "PositFormat",
    "SplitDotUnit",
    "Stream",
    "TakumFormat",
    "TakumLinearFormat",
    "TwoStageDotUnit",
    "WideFixedFormat",
    "WideFloatFormat",
    "absolute",
    "add",
    "array",
    "bound",
    "classify",
    "collective",
    "compare",
    "conv2d",
    "convert",
    "cos",
    "decode",
    "divide",
    "dot",
    "encode",
    "erf",
    "exact",
    "exp",
    "exp2",
    "expm1",
    "fma",
    "format",
    "format_names",
    "gelu",
    "get_include",
    "identify",
    "load",
    "log",
    "log1p",
    "log2",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "next_down",
    "next_up",
    "operator",
    "permitted",
    "pow",
    "probe",
    "quantize",
    "reciprocal",
    "remainder",
    "rsqrt",
    "save",
    "show_config",
    "sigmoid",
    "silu",
    "sin",
    "softplus",
    "sqrt",
    "subtract",
    "sum",
    "tanh",
    "unit",
    "unit_of_sums",
    "units",
    "which",
]
_plain.__exit__()
