"""Tensors as arrays of numbers, and back."""

from __future__ import annotations

import numpy as np
import torch

from softnum.arrays.conversion import quantize
from softnum.formats.blocks import format
from softnum.runtime._core import contiguous, float32_at, owns_alone
from softnum.torch.devices import device_of, given, taken

__all__ = ["array_of", "result_dtype", "spread_as", "tensor_of", "whole"]

#: dtypes that results have; those of 8 bits and less hold operands only
_RESULTS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def array_of(x: torch.Tensor, device: str | None = None):
    """The numbers of a tensor; of float32 and float64, the same memory.

    Parameters
    ----------
    x : torch.Tensor
        Of floating point or integers; narrower floating-point numbers become float32, which holds them all.
    device : str, optional
        "cpu": on the host, wherever the tensor lies. Default: `softnum.torch.devices.device_of` it.

    Returns
    -------
    array, or DeviceArray
        Of a tensor on a GPU a DeviceArray, but integers, which only say what is moved where, on the host.

    Raises
    ------
    ValueError
        If the tensor is complex, sparse or quantized.

    Examples
    --------
    >>> array_of(torch.tensor([0.5, 1.5], dtype=torch.bfloat16))
    array([0.5, 1.5], dtype=float32)
    """
    if x.layout is not torch.strided or (x.dtype is not torch.float32 and (x.is_complex() or x.is_quantized)):
        raise ValueError(f"softnum takes dense tensors of real numbers, got {x.dtype}, {x.layout}")
    x = x.detach()
    if x.dtype is torch.float32 and device != "cuda" and x.is_cpu and not x.is_neg():
        address = x.data_ptr() if type(x) is torch.Tensor else 0
        return float32_at(address, x.shape, x.stride(), x) if address else np.from_dlpack(x)
    if x.is_floating_point() and x.dtype not in (torch.float32, torch.float64):
        x = x.to(torch.float32)
    x = x.resolve_neg()
    if (device or device_of(x)) == "cuda" and (x.is_floating_point() or x.dtype is torch.bool):
        return taken(x)
    x = x.cpu()
    return x.numpy() if x.dtype is torch.bool else np.from_dlpack(x)  # `numpy` fixes the size of the tensor's storage


def result_dtype(x: torch.Tensor) -> torch.dtype:
    """The dtype of what is computed from a tensor: its own, or float32 where that is none of results.

    >>> result_dtype(torch.zeros(1, dtype=torch.float16)), result_dtype(torch.zeros(1, dtype=torch.float8_e4m3fn))
    (torch.float16, torch.float32)
    """
    return x.dtype if x.dtype in _RESULTS else torch.float32


def tensor_of(x, dtype: torch.dtype, device: torch.device, inputs=()) -> torch.Tensor:
    """An array as a tensor of a dtype that is `result_dtype`'s, rounded to it once, to nearest even.

    Parameters
    ----------
    x : array or DeviceArray of float32 or float64
    dtype : torch.dtype
    device : torch.device
    inputs : sequence of arrays
        Whose memory the tensor must not share.

    Returns
    -------
    torch.Tensor

    Examples
    --------
    >>> tensor_of(np.float64([1 + 2**-8 + 2**-40]), torch.bfloat16, torch.device("cpu"))
    tensor([1.0078], dtype=torch.bfloat16)
    """
    if not isinstance(x, np.ndarray):
        if not isinstance(x, np.generic):
            return _on_device(x, dtype, device)
        x = np.asarray(x)
    if x.dtype == np.float64 and dtype != torch.float64:
        x = quantize(x, format(dtype)).astype(np.float32)
    x = contiguous(x)
    if not x.flags.writeable or (not owns_alone(x, inputs) and any(np.may_share_memory(x, other) for other in inputs)):
        x = x.copy()
    found = torch.from_numpy(x)
    return found if found.dtype is dtype and device.type == "cpu" else found.to(device=device, dtype=dtype)


def _on_device(x, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """`tensor_of` a DeviceArray."""
    from softnum.kernels.device.runtime.movement import DeviceArray, mapped

    if x.dtype == np.float64 and dtype != torch.float64 and x.size:
        x = mapped("narrow", DeviceArray.of(quantize(x.numba, format(dtype)), x.shape))
    return given(x, device).to(dtype)


def whole(x: torch.Tensor) -> torch.Tensor:
    """A tensor that is spread over several ranks, as each of them has all of it; others as they are.

    Every rank takes part.
    """
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def spread_as(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A tensor that every rank has all of, spread over them as another is; itself where that is not."""
    if not hasattr(like, "full_tensor"):
        return x
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(x, like.device_mesh, like.placements, src_data_rank=None)
