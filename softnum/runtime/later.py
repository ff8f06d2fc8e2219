"""Names of a package that are imported when they are first asked for; and names that it had, which say where they are.

A package states its names twice: to type checkers by imports under ``if TYPE_CHECKING:``, and here by a table; a test
compares the two.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from softnum.runtime._core import PlainEnvironment

__all__ = ["names_on_demand"]


def names_on_demand(
    package: str, modules: Mapping[str, tuple[str, ...]], packages: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package : str
        Its name.
    modules : mapping of str to tuple of str
        Module -> the names that it defines and the package has.
    packages : tuple of str
        Packages and modules below it that are reached without an import of their own.

    Returns
    -------
    functions (name) and ()
        The first imports what is asked for, warns (DeprecationWarning) of a name that `softnum.runtime.moved` lists,
        and raises AttributeError for others. The second lists ``__all__`` and `packages`.

    Examples
    --------
    >>> import softnum.ops
    >>> softnum.ops.scaled_operation.__module__, "scaled_operation" in dir(softnum.ops)
    ('softnum.ops.scaled', True)
    """
    space = vars(sys.modules[package])
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        with PlainEnvironment():
            if name in module_of:
                value = space[name] = getattr(import_module(module_of[name]), name)
                return value
            if name in packages:
                return import_module(f"{package}.{name}")
        return _moved(package, name)

    def names() -> list[str]:
        return sorted({*space.get("__all__", ()), *packages, *(name for name in space if name.startswith("__"))})

    return get, names


def _moved(package: str, name: str) -> Any:
    from softnum.runtime.moved import LAST, MOVED

    for place, names in MOVED.get(package, {}).items():
        if name in names:
            text = f"{package}.{name} is {place}.{name} now; the old name is gone from release {LAST} on"
            warnings.warn(text, DeprecationWarning, stacklevel=3)
            with PlainEnvironment():
                return getattr(import_module(place), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
