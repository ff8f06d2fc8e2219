"""What softnum asks softnum.kernels for: importing this module registers it with `softnum.runtime.gateway`.

It imports no Numba; the modules that compute are imported when they are first asked.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

from softnum.runtime import _core
from softnum.runtime.gateway import register

__all__ = ["DEVICES"]

#: a module of functions of CUDA arrays -> which functions of softnum it has, under their names
DEVICES = {
    "softnum.kernels.device.blockformats.conversion": ("decode_blocks", "encode_blocks", "quantize_blocks"),
    "softnum.kernels.device.elementwise.codes": ("holds", *_core.OPERATIONS),
    "softnum.kernels.device.elementwise.codes_of_arrays": ("check_codes", "copy", "copy_to_host", "moved", "put"),
    "softnum.kernels.device.products.conv": ("conv2d", "conv2d_backward_data", "conv2d_backward_weight"),
    "softnum.kernels.device.products.gemm": ("dot", "matmul"),
    "softnum.kernels.device.tile.operators": ("operator",),
    "softnum.kernels.device.elementwise.conversion": ("decode", "encode", "quantize"),
    "softnum.kernels.device.products.reduce": ("sum",),
    "softnum.kernels.device.runtime.strides": ("transposed",),
}


def _on_device(module: str, name: str, *arguments, **options):
    from softnum.kernels.device.runtime.arrays import call

    return call(getattr(import_module(module), name), *arguments, **options)


def _needs_numba(what: str) -> None:
    try:
        import numba  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{what}: Python functions are compiled by Numba, which is not installed: pip install 'softnum[custom]'"
        ) from None


def _compile_function(function, name: str, takes: str, gives: str, count: int, bits: int, what: str):
    _needs_numba(what)
    from softnum.kernels.host.functions import Compiled

    return Compiled(function, name, takes, gives, count, bits, what)


def _scalar(fmt, **options):
    from softnum.kernels.host.make_scalar import scalar

    return scalar(fmt, **options)


def _custom_engine(unit):
    _needs_numba(unit.name)
    from softnum.kernels.host.products import engine_of

    return engine_of(unit)


def _elementwise_loop(operations, names, inputs, outputs):
    try:
        from softnum.kernels.host.elementwise import loop_of
    except ImportError:  # there is no Numba, and the operations are carried out one by one
        return None
    return loop_of(operations, names, inputs, outputs)


def _is_short(scalar, *names: str) -> bool:
    from softnum.kernels.host.contractions import is_short

    return is_short(scalar, *names)


def _loops(kind: str, loops, arrays, start, operations):
    from softnum.kernels.host.contractions import run

    return run(kind, loops, arrays, start, operations)


def _fingerprint(*functions) -> str | None:
    from softnum.kernels.host.cache import fingerprint

    return fingerprint(*functions)


register(
    devices={name: partial(_on_device, module, name) for module, names in DEVICES.items() for name in names},
    host={
        "compile_function": _compile_function, "custom_engine": _custom_engine, "elementwise_loop": _elementwise_loop,
        "fingerprint": _fingerprint, "is_short": _is_short, "loops": _loops, "scalar": _scalar,
    },
)  # fmt: skip
