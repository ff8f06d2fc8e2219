"""Kernels written in Numba over softnum's C core: for CUDA arrays, and for units that are functions of the user's.

`softnum.quantize` and `softnum.matmul` run them when they are given CUDA arrays. ``NUMBA_ENABLE_CUDASIM=1`` in the
environment, set before Numba is first imported, runs them in Numba's simulator instead of on a GPU. Importing this
package imports no Numba. `check_device_code` and ``python -m softnum.kernels.check`` look at kernels as machine code,
without a GPU.

`scalar` is a format's arithmetic on single numbers, for functions of your own under `softnum.CustomMadUnit`.
"""

from __future__ import annotations

from softnum.kernels.device_code import check_device_code
from softnum.kernels.scalars import Scalar, scalar

__all__ = ["Scalar", "check_device_code", "launches", "scalar"]

_launches = 0


def launches() -> int:
    """Number of kernels that this process has launched.

    With it a test can tell a kernel from a fall-back to the host.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np, softnum as sn, softnum.kernels
    >>> before = softnum.kernels.launches()
    >>> y = sn.quantize(np.float32([1.1]), "e5m2")  # an array of the host
    >>> softnum.kernels.launches() - before
    0
    """
    return _launches


def _count_launch() -> None:
    global _launches
    _launches += 1
