"""Old names of modules that have moved, so that tests written for the old places run unchanged.

``import softnum.old``, ``from softnum.old import x``, ``from softnum import old`` and paths in text, as monkeypatch
takes them, give the module of the new name, the same object. A public function that bears a module's name stays what
the package holds under it, as `softnum.matmul` does. Programs that a test starts know the new names alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["MOVED", "Moved"]

#: old name: new name, of a module or of a package with all that it holds. An entry goes when no test has its old name.
MOVED: dict[str, str] = {}


def _keep_once(package: ModuleType, name: str) -> None:
    """Let pass, without effect, that the import system is about to put a module in place of package.name."""
    kind = type(package)

    class Keeping(kind):
        def __setattr__(self, key, value):
            if key == name and isinstance(value, ModuleType):
                self.__class__ = kind
            else:
                super().__setattr__(key, value)

    package.__class__ = Keeping


class _Alias:
    """Loads, for an old name, the module of the new one."""

    def __init__(self, new: str) -> None:
        self.new = new

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = import_module(self.new)
        package, _, name = module.__name__.rpartition(".")
        if not isinstance(getattr(sys.modules[package], name, module), ModuleType):
            _keep_once(sys.modules[package], name)


class Moved:
    """A finder for sys.meta_path, before all others: {old name: new name}; both lie in packages.

    Raises
    ------
    ImportError
        Of an old name that there still, or again, is a file of; and where there is no module of the new name.
    """

    def __init__(self, table: dict[str, str]) -> None:
        self.table = table

    def find_spec(self, name, path=None, target=None):
        old = name
        while old and old not in self.table:
            old = old.rpartition(".")[0]
        new = self.table[old] + name.removeprefix(old) if old else self._left(name)
        if new is None or new == name:
            return None
        if old in ("", name) and PathFinder.find_spec(name, path) is not None:
            if not old:
                return None
            raise ImportError(f"{name} is there: it cannot stand for {new}", name=name)
        return ModuleSpec(name, _Alias(new))

    def _left(self, name: str) -> str | None:
        """Where a module is that left a package when this moved: by its old name the new package is asked for it."""
        for old, new in self.table.items():
            if name.startswith(f"{new}.") and (entry := old + name.removeprefix(new)) in self.table:
                return self.table[entry]
        return None
