"""How many kernels this process has launched."""

from __future__ import annotations

__all__ = ["count_launch", "launches"]

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


def count_launch() -> None:
    """Count one more."""
    global _launches
    _launches += 1
