"""Where arrays that NumPy does not hold are computed: CUDA arrays go to softnum.kernels, imported when one comes.

Kernels lie above this package; this module is the one door to them.
"""

from __future__ import annotations

__all__ = ["is_device_array", "matmul", "quantize"]


def is_device_array(x) -> bool:
    """Whether x lies on a GPU: ``__cuda_array_interface__`` (CuPy, PyTorch, Numba, JAX), or Numba's simulator.

    Examples
    --------
    >>> import numpy as np
    >>> is_device_array(np.zeros(3))
    False
    """
    return hasattr(x, "__cuda_array_interface__") or hasattr(x, "__cuda_ndarray__")


def quantize(x, fmt, **options):
    """`softnum.quantize` of a CUDA array, on the device."""
    from softnum.kernels.quantize import quantize

    return quantize(x, fmt, **options)


def matmul(a, b, unit, c=None, **options):
    """`softnum.matmul` of CUDA arrays, on the device; TypeError for a unit without a kernel."""
    from softnum.units import MadUnit

    if not isinstance(unit, MadUnit):
        raise TypeError(f"matmul: CUDA arrays take a MadUnit; {type(unit).__name__} runs on arrays of the host")
    from softnum.kernels.gemm import matmul

    return matmul(a, b, unit, c, **options)
