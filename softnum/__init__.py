"""softnum: exact arithmetic of any number format and multiply-add unit, and what it does to training.

>>> import softnum as sn
>>> sn.quantize([0.1, 300.0], "e4m3fn")
array([1.015625e-01, 2.880000e+02])
"""

import typing as _typing
from importlib import import_module as _import_module

try:
    from softnum.runtime._core import PlainEnvironment as _PlainEnvironment
except ModuleNotFoundError as error:
    if error.name != "softnum.runtime._core":
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
from softnum.arrays.packing import pack, unpack
from softnum.arrays.refusals import FormatLostWarning
from softnum.arrays.streams import Stream
from softnum.formats.blocks import BlockFormat, block_format_names, format
from softnum.formats.custom import CustomFormat
from softnum.formats.layouts import tile_scales, untile_scales
from softnum.formats.logarithmic import LnsFormat, TakumFormat
from softnum.formats.modes import Flags
from softnum.formats.names import format_names
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.formats.tapered import PositFormat, TakumLinearFormat
from softnum.formats.wide import WideFixedFormat, WideFloatFormat
from softnum.mac.mad import MadUnit
from softnum.mac.mad import use_disclosures as _use_disclosures
from softnum.mac.mad import use_tracer as _use_tracer
from softnum.ops import arithmetic as _arithmetic
from softnum.ops import choices as _choices
from softnum.ops import custom_tables as _custom_operations  # noqa: F401
from softnum.ops import elementary as _elementary
from softnum.ops import logarithmic as _logarithmic  # noqa: F401
from softnum.ops import numpy_values as _numpy_values  # noqa: F401
from softnum.ops.arithmetic import *  # noqa: F403  what its __all__ lists
from softnum.ops.choices import *  # noqa: F403
from softnum.ops.elementary import *  # noqa: F403
from softnum.ops.integers import from_integer, shift, to_integer
from softnum.ops.jamming import jam
from softnum.ops.ulps import ulp, ulp_error
from softnum.runtime import gateway as _gateway
from softnum.runtime.config import __version__ as __version__
from softnum.runtime.config import get_include, show_config
from softnum.wide import WideArithmetic as _WideArithmetic  # noqa: F401  registers codec and arithmetic

if _typing.TYPE_CHECKING:  # these are imported when they are first asked for, by _LATER
    from softnum.collectives.collective import Collective
    from softnum.collectives.make import collective
    from softnum.collectives.split import split_matmul
    from softnum.collectives.split_unit import SplitDotUnit
    from softnum.inspect.bounds.product import ErrorBound, bound
    from softnum.inspect.disclosure.document import Disclosure
    from softnum.inspect.identify import Identified, identify
    from softnum.inspect.permitted.freedom import Freedom, ImeFreedom
    from softnum.inspect.permitted.judge import Permitted, PermittedProduct, permitted
    from softnum.inspect.probes import Probe, probe
    from softnum.inspect.which import Which, which
    from softnum.mac.block_fused import BlockFusedDotUnit
    from softnum.mac.blocks import BlockDotUnit
    from softnum.mac.chunked import ChunkedDotUnit
    from softnum.mac.custom import CustomMadUnit
    from softnum.mac.exact import ExactDotUnit, exact
    from softnum.mac.fused import FmaChainUnit, FusedDotUnit
    from softnum.mac.grouped import GroupedDotUnit, ime_unit
    from softnum.mac.presets import unit, units
    from softnum.mac.products.conv import conv2d, conv2d_backward_data, conv2d_backward_weight
    from softnum.mac.products.fourier import conv2d_fft
    from softnum.mac.products.matrices import dot, matmul
    from softnum.mac.products.reductions import unit_of_sums
    from softnum.mac.products.sums import sum
    from softnum.mac.products.winograd import conv2d_winograd
    from softnum.mac.statistics import RoundingStats
    from softnum.mac.two_stage import TwoStageDotUnit
    from softnum.ops.scaled import block_by_maximum, block_reduction, scaled_operation
    from softnum.tile import Operator, TileError, operator


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


#: module -> the names of it that are imported when they are first asked for: many programs do without them
_LATER = {
    "softnum.collectives.collective": ("Collective",),
    "softnum.collectives.make": ("collective",),
    "softnum.collectives.split": ("split_matmul",),
    "softnum.collectives.split_unit": ("SplitDotUnit",),
    "softnum.inspect.bounds.product": ("ErrorBound", "bound"),
    "softnum.inspect.disclosure.document": ("Disclosure",),
    "softnum.inspect.permitted.freedom": ("Freedom", "ImeFreedom"),
    "softnum.inspect.permitted.judge": ("Permitted", "PermittedProduct", "permitted"),
    "softnum.inspect.identify": ("Identified", "identify"),
    "softnum.inspect.probes": ("Probe", "probe"),
    "softnum.inspect.which": ("Which", "which"),
    "softnum.mac.block_fused": ("BlockFusedDotUnit",),
    "softnum.mac.blocks": ("BlockDotUnit",),
    "softnum.mac.chunked": ("ChunkedDotUnit",),
    "softnum.mac.custom": ("CustomMadUnit",),
    "softnum.mac.exact": ("ExactDotUnit", "exact"),
    "softnum.mac.fused": ("FmaChainUnit", "FusedDotUnit"),
    "softnum.mac.grouped": ("GroupedDotUnit", "ime_unit"),
    "softnum.mac.presets": ("unit", "units"),
    "softnum.mac.products.winograd": ("conv2d_winograd",),
    "softnum.mac.products.fourier": ("conv2d_fft",),
    "softnum.mac.products.conv": ("conv2d", "conv2d_backward_data", "conv2d_backward_weight"),
    "softnum.mac.products.matrices": ("dot", "matmul"),
    "softnum.mac.products.reductions": ("unit_of_sums",),
    "softnum.mac.products.sums": ("sum",),
    "softnum.mac.statistics": ("RoundingStats",),
    "softnum.mac.two_stage": ("TwoStageDotUnit",),
    "softnum.ops.scaled": ("block_by_maximum", "block_reduction", "scaled_operation"),
    "softnum.tile": ("Operator", "TileError", "operator"),
}
_PACKAGES = {"inspect": "softnum.inspect", "tile": "softnum.tile"}
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str):
    if name in _PACKAGES:
        with _PlainEnvironment():
            return _import_module(_PACKAGES[name])
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _PlainEnvironment():
        value = globals()[name] = getattr(_import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_PACKAGES})


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
    "Collective",
    "CustomFormat",
    "CustomMadUnit",
    "Disclosure",
    "ErrorBound",
    "ExactDotUnit",
    "FixedFormat",
    "Flags",
    "FloatFormat",
    "Permitted",
    "PermittedProduct",
    "PositFormat",
    "TakumFormat",
    "TakumLinearFormat",
    "FmaChainUnit",
    "FormatLostWarning",
    "Freedom",
    "ImeFreedom",
    "FusedDotUnit",
    "GroupedDotUnit",
    "Identified",
    "LnsFormat",
    "MadUnit",
    "Operator",
    "Probe",
    "RoundingStats",
    "SplitDotUnit",
    "Stream",
    "TileError",
    "TwoStageDotUnit",
    "Which",
    "WideFixedFormat",
    "WideFloatFormat",
    "array",
    "block_by_maximum",
    "block_format_names",
    "block_reduction",
    "bound",
    "collective",
    "conv2d",
    "conv2d_backward_data",
    "conv2d_backward_weight",
    "conv2d_fft",
    "conv2d_winograd",
    "decode",
    "dot",
    "encode",
    "exact",
    "format",
    "format_names",
    "from_integer",
    "get_include",
    "identify",
    "ime_unit",
    "jam",
    "load",
    "matmul",
    "operator",
    "pack",
    "permitted",
    "probe",
    "quantize",
    "save",
    "scaled_operation",
    "shift",
    "show_config",
    "split_matmul",
    "sum",
    "tile_scales",
    "to_integer",
    "ulp",
    "ulp_error",
    "unit",
    "unit_of_sums",
    "units",
    "unpack",
    "untile_scales",
    "which",
]
__all__ += _arithmetic.__all__
__all__ += _choices.__all__
__all__ += _elementary.__all__
__all__.sort()
_plain.__exit__()
