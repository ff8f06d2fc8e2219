"""The device code: softnum's C core as one text, with a kernel's entry functions behind it.

The same headers build the CPU extension. They hold integer arithmetic only, so there is no multiplication and addition
that a GPU compiler could contract into one rounding.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from softnum.config import get_include

__all__ = ["TYPES", "Entry", "Library", "core_text"]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"\s*$')
_PREFIX = re.compile(r"\b_(?=[a-z])")

# NVRTC warns of each static function that a kernel leaves unused, and numba-cuda shows that to the user
_QUIET = "#if defined(__CUDACC_RTC__)\n#pragma nv_diag_suppress 177\n#endif\n"

# the scalar types of entry functions: name in a Numba signature -> name in C
TYPES = {"uint32": "sn_u32", "uint64": "sn_u64"}


@lru_cache(maxsize=1)
def core_text() -> str:
    """csrc/softnum/device.h with every header it includes put in its place, once.

    Returns
    -------
    str
        C11 and C++17 source without ``#include "..."``.
    """
    lines: list[str] = []
    _inline(Path(get_include()) / "softnum" / "device.h", set(), lines)
    return _QUIET + "\n".join(lines) + "\n"


def _inline(path: Path, seen: set[Path], lines: list[str]) -> None:
    if path in seen:
        return
    seen.add(path)
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := _INCLUDE.match(line):
            _inline((path.parent / match[1]).resolve(), seen, lines)
        else:
            lines.append(line)


@dataclass(frozen=True)
class Entry:
    """One scalar function that kernels call: as C for the device, as a Python callable for Numba's simulator.

    Both are the same C core; the callable reaches it through the CPU extension.
    """

    name: str
    result: str  # "uint32" or "uint64"
    arguments: tuple[tuple[str, str], ...]  # (type, name)
    body: str  # of the C function
    simulated: Callable[..., int]

    @property
    def text(self) -> str:
        """The C function; names with a leading underscore get the library's prefix later."""
        arguments = ", ".join(f"{TYPES[kind]} {name}" for kind, name in self.arguments)
        body = "\n".join("    " + line for line in self.body.strip().splitlines())
        return f"SN_ENTRY {TYPES[self.result]} _{self.name}({arguments}) {{\n{body}\n}}\n"

    @property
    def signature(self) -> str:
        """The signature in Numba's notation."""
        return f"{self.result}({', '.join(kind for kind, _ in self.arguments)})"


@dataclass(frozen=True)
class Library:
    """The entries of one kernel, over constants of its own.

    Parameters
    ----------
    constants : str
        C text of the formats and environments that the entries use.
    entries : tuple of Entry
    """

    constants: str
    entries: tuple[Entry, ...]

    @property
    def own_text(self) -> str:
        """What follows the core. Names depend on the content alone, so that kernels never clash and builds repeat."""
        text = self.constants + "".join(entry.text for entry in self.entries)
        return _PREFIX.sub(f"sn_{hashlib.sha256(text.encode()).hexdigest()[:12]}_", text)

    @property
    def source(self) -> str:
        """The whole text that the device compiler is given."""
        return core_text() + "\n" + self.own_text

    def symbol(self, entry: Entry) -> str:
        """The name of an entry's C function."""
        return re.search(rf"\b(sn_[0-9a-f]{{12}}_{entry.name})\(", self.own_text)[1]
