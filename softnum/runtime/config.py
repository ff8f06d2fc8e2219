"""What this installation runs, and where its C headers lie."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

from softnum.runtime import _core
from softnum.runtime.threads import default_threads

__all__ = ["describe_config", "get_include", "show_config"]

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


def describe_config() -> dict:
    """What `show_config` prints, as plain data.

    Raises ValueError if SOFTNUM_CPU names an instruction set that this CPU or build lacks.

    >>> describe_config()["instruction_sets"]["available"][0]
    'portable'
    """
    forced = os.environ.get("SOFTNUM_CPU")
    return {
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "instruction_sets": {
            "used": _core.current_isa(),
            "why": "SOFTNUM_CPU" if forced else "best of this CPU",
            "available": _core.available_isas(),
        },
        "threads": default_threads(),
        "headers": get_include(),
    }


def show_config() -> None:
    """Print the version, the instruction set in use and those available (choose one with SOFTNUM_CPU), and the threads.

    >>> import softnum
    >>> softnum.show_config()  # doctest: +ELLIPSIS
    softnum ...
    """
    facts = describe_config()
    sets = facts["instruction_sets"]
    print(f"softnum {facts['version']}, Python {facts['python']}, NumPy {facts['numpy']}")
    print(f"instruction set: {sets['used']} ({sets['why']})")
    print(f"available: {', '.join(sets['available'])}")
    print(f"threads: {facts['threads']} at most (SOFTNUM_THREADS, or the CPUs that this process may use)")
    print(f"headers: {facts['headers']}")
