"""Tensors on a GPU as arrays there, over the same memory, and back."""

from __future__ import annotations

import contextlib

import numpy as np
import torch

__all__ = ["device_of", "given", "running", "taken"]

_AS_IT_IS = contextlib.nullcontext()
_DTYPES = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64), torch.bool: np.dtype(np.bool_)}


def device_of(x: torch.Tensor) -> str:
    """Where a tensor's arithmetic is computed: one of ``softnum.train.engine.devices.DEVICES``.

    Tensors on other devices than NVIDIA's are computed on the CPU, and copied there and back.

    >>> device_of(torch.zeros(2))
    'cpu'
    """
    return "cuda" if x.is_cuda and torch.version.cuda is not None else "cpu"


def running(device: torch.device, computed: str = "cuda") -> contextlib.AbstractContextManager:
    """Within it, softnum's kernels run on the stream that PyTorch works on, on a device.

    computed: where tensors of that device are computed (`device_of`); on the CPU no kernel is needed.

    Raises
    ------
    ImportError
        If what kernels need is not installed.
    ValueError
        If the GPU is another one than the current one.

    >>> with running(torch.device("cpu")):
    ...     pass
    """
    if device.type != "cuda" or computed != "cuda" or torch.version.cuda is None:
        return _AS_IT_IS
    try:
        from softnum.kernels.device.runtime import _cuda
    except ImportError as error:
        raise ImportError(f"tensors on {device}: {error}; or move the model and its inputs to the CPU") from error
    from softnum.kernels.device.runtime.arrays import stream_number

    if device.index not in (None, _cuda.device_index()):
        raise ValueError(
            f"tensors on {device}, and softnum computes on GPU {_cuda.device_index()}, the current one when it was "
            f"first asked; call torch.cuda.set_device({device.index}) before, or set CUDA_VISIBLE_DEVICES"
        )
    return _cuda.running_on(_cuda.stream_of_number(stream_number(torch.cuda.current_stream(device))))


def taken(x: torch.Tensor):
    """A dense tensor on a GPU as a `DeviceArray` over the same memory, in C order; of other strides, of a copy.

    Raises
    ------
    ValueError
        If the GPU is another one than Numba's current one.
    """
    from softnum.kernels.device.runtime import movement

    return movement.DeviceArray(_lent(x.contiguous()), x.shape)


def _lent(x: torch.Tensor):
    """Numba's array of one dimension over a contiguous tensor's memory, to be used on the stream that runs."""
    from softnum.kernels.device.runtime import _cuda

    if x.device.index != _cuda.device_index():
        raise ValueError(f"a tensor lies on GPU {x.device.index}, and softnum computes on GPU {_cuda.device_index()}")
    return _cuda.lent(x.data_ptr(), x.numel(), _DTYPES[x.dtype], x)


def given(x, device: torch.device) -> torch.Tensor:
    """A copy of a `DeviceArray` as a tensor: in PyTorch's memory, since softnum's is used again on one stream alone."""
    from softnum.kernels.device.runtime import _cuda, movement

    dtype = torch.float64 if x.dtype.itemsize == 8 else torch.float32
    try:
        result = torch.empty(x.shape, dtype=dtype, device=device)
    except torch.OutOfMemoryError:  # softnum keeps memory for arrays to come
        _cuda.give_back()
        result = torch.empty(x.shape, dtype=dtype, device=device)
    if x.size:
        movement.put(movement.DeviceArray(_lent(result), x.shape), lambda whole: whole, x)
    return result
