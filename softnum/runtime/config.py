"""What this installation runs, and where its C headers lie."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

from softnum.runtime import _core
from softnum.runtime.threads import default_threads

__all__ = ["get_include", "show_config"]

__version__ = "0.1.0"


def get_include() -> str:
    """The folder with softnum's C headers, for ``#include "softnum/softnum.h"``.

    Raises FileNotFoundError if the installation is broken.

    >>> import os, softnum
    >>> os.path.isfile(os.path.join(softnum.get_include(), "softnum", "softnum.h"))
    True
    """
    here = Path(__file__).resolve().parents[1]
    for folder in (here / "include", here.parent / "csrc"):  # installed, or an editable checkout
        if (folder / "softnum" / "softnum.h").is_file():
            return str(folder)
    raise FileNotFoundError(f"softnum/softnum.h is missing beside {here}: reinstall softnum")


def show_config() -> None:
    """Print the version, the instruction set in use and those available (choose one with SOFTNUM_CPU), and the threads.

    >>> import softnum
    >>> softnum.show_config()  # doctest: +ELLIPSIS
    softnum ...
    """
    forced = os.environ.get("SOFTNUM_CPU")
    print(f"softnum {__version__}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"instruction set: {_core.current_isa()} ({'SOFTNUM_CPU' if forced else 'best of this CPU'})")
    print(f"available: {', '.join(_core.available_isas())}")
    print(f"threads: {default_threads()} at most (SOFTNUM_THREADS, or the CPUs that this process may use)")
    print(f"headers: {get_include()}")
