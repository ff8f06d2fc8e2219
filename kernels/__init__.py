"""Kernels written in Numba over softnum's C core: for CUDA arrays, and for units that are functions of the user's.

softnum's functions run them when they are given CUDA arrays. ``NUMBA_ENABLE_CUDASIM=1`` in the
environment, set before Numba is first imported, runs them in Numba's simulator instead of on a GPU. Importing this
package imports no Numba. `check_device_code` and ``python -m softnum.kernels.check`` look at kernels as machine code,
without a GPU.

`scalar` is a format's arithmetic on single numbers, for functions of your own under `softnum.CustomMadUnit`.
"""

from __future__ import annotations

from contextlib import contextmanager

from softnum.kernels import offers  # noqa: F401  registers what softnum asks for
from softnum.kernels.check.device_code import check_device_code
from softnum.kernels.device.runtime.launch_count import launches
from softnum.kernels.host.make_scalar import scalar
from softnum.kernels.host.scalars import Scalar

__all__ = ["Scalar", "check_device_code", "launches", "scalar", "stream"]


@contextmanager
def stream(stream):
    """Within it, this thread's kernels run on a stream of the caller's.

    Without it they run on the stream that the library of the first CUDA array is working on, where it says which
    (CuPy, PyTorch, Numba), and on the legacy default stream otherwise. Either way they run after what the streams of
    all the arrays hold, and before what these are given afterwards; the host does not wait.

    Parameters
    ----------
    stream : a stream of Numba, CuPy or PyTorch, what has ``__cuda_stream__``, or a handle as an int
        0 is the legacy default stream.

    Raises
    ------
    TypeError, ValueError
        If it is no stream.

    Examples
    --------
    >>> import softnum as sn, softnum.kernels
    >>> def rounded(x, s):  # an array and a stream of Numba, CuPy or PyTorch
    ...     with softnum.kernels.stream(s):
    ...         return sn.quantize(x, "e5m2")
    """
    from softnum.kernels.device.runtime import _cuda
    from softnum.kernels.device.runtime.arrays import stream_number

    number = stream_number(stream)
    with _cuda.running_on(_cuda.stream_of_number(number)):
        yield
