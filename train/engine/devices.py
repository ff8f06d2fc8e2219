"""Where a run keeps its arrays: in the machine's memory, or on a GPU. Records do not depend on it."""

from __future__ import annotations

from softnum.train.engine.backend import NumpyBackend

__all__ = ["DEVICES", "check_device", "make_backend"]

DEVICES = ("cpu", "cuda")


def check_device(device: str) -> None:
    """Raise ValueError if there is no such device, or this machine lacks it or what it needs.

    >>> check_device("cpu")
    >>> check_device("tpu")
    Traceback (most recent call last):
    ...
    ValueError: device must be one of cpu, cuda, got 'tpu'
    """
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {device!r}")
    if device == "cuda":
        try:
            from softnum.kernels.device.runtime._cuda import cuda
        except ImportError as error:
            raise ValueError(f"device 'cuda': {error}") from error
        if not cuda.is_available():
            raise ValueError(f"device 'cuda': {_lacking(cuda)}")


def _lacking(cuda) -> str:
    """What keeps Numba from a GPU, and the way out."""
    driver = cuda.cuda_error()
    if driver is None:
        return "Numba finds a GPU, but not CUDA's compiler NVVM; pip install 'softnum[cuda]' brings it"
    return (
        f"Numba finds no GPU here ({' '.join(str(driver).split()).rstrip('.')}); leave the device out, or, to try it "
        "on a few samples, set NUMBA_ENABLE_CUDASIM=1 in the environment: that simulates a GPU, slowly"
    )


def make_backend(device: str, dtype, *, threads: int = 1):
    """The backend of a device (`check_device`); dtype and threads as of `NumpyBackend`.

    >>> make_backend("cpu", "float32").dtype
    dtype('float32')
    """
    if device == "cpu":
        return NumpyBackend(dtype, threads=threads)
    check_device(device)
    from softnum.train.engine.cuda_backend import CudaBackend

    return CudaBackend(dtype, threads=threads)
