"""The floating-point environment that all is computed in: nearest even, and subnormal numbers kept.

Other libraries change it for a whole thread: by `fesetround`, `torch.set_flush_denormal`, or only by being loaded, if
they were linked with ``-ffast-math``. What computes with Python's or NumPy's floats does so within `PlainEnvironment`.
"""

from __future__ import annotations

from functools import wraps

from softnum.runtime._core import PlainEnvironment, check_plain

__all__ = ["PlainEnvironment", "check_plain", "plain"]


def plain(function):
    """Decorate a function: it runs within `PlainEnvironment`.

    >>> @plain
    ... def half(x):
    ...     return x / 2
    >>> half(5e-324 * 4)
    1e-323
    """

    @wraps(function)
    def within(*args, **options):
        with PlainEnvironment():
            return function(*args, **options)

    return within
