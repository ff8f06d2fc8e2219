"""The device code: softnum's C core as one text, with a kernel's entry functions behind it.

The same headers build the CPU extension. The definition (device/device.h) is integer arithmetic only, so there is no
multiplication and addition that a GPU compiler could contract into one rounding; what computes in floats
(word/machine.h and what includes it) names the rounding of every operation. In Numba's simulator the same text is
compiled for the CPU.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from softnum.runtime.config import get_include

__all__ = ["TYPES", "Entry", "Library", "core_text", "literal"]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"\s*$')
_GUARD = re.compile(r"^#ifndef SOFTNUM_\w+_H$", re.MULTILINE)
_PREFIX = re.compile(r"\b_(?=[a-z])")

# NVRTC warns of each static function that a kernel leaves unused, and numba-cuda shows that to the user
_QUIET = "#if defined(__CUDACC_RTC__)\n#pragma nv_diag_suppress 177\n#endif\n"

# the types of entry functions: name in a Numba signature -> name in C. With a * at its end, a pointer to such numbers
TYPES = {
    "uint8": "sn_u8", "uint16": "sn_u16", "uint32": "sn_u32", "uint64": "sn_u64", "int32": "sn_i32", "int64": "sn_i64",
    "float32": "float", "float64": "double", "void": "void",
}  # fmt: skip


def literal(x: float, kind: str = "float32") -> str:
    """A number in C by its bits, for text over csrc/softnum/word/machine.h; kind: float32 or float64."""
    if kind == "float64":
        return f"sn_float64({struct.unpack('<Q', struct.pack('<d', x))[0]:#x}ull)"
    return f"sn_float32({struct.unpack('<I', struct.pack('<f', x))[0]:#x}u)"


@lru_cache(maxsize=16)
def core_text(header: str = "softnum/device/device.h") -> str:
    """Headers of csrc, by their names with spaces between, with every header they include put in its place; those with
    a guard of inclusion, once.

    Returns
    -------
    str
        C11 and C++17 source without ``#include "..."``.
    """
    lines: list[str] = []
    seen: set[str] = set()
    for name in header.split():
        _inline(name, seen, lines)
    return _QUIET + "\n".join(lines) + "\n"


def _in_c(kind: str) -> str:
    return f"{TYPES[kind[:-1]]} *" if kind.endswith("*") else TYPES[kind]


def _in_numba(kind: str) -> str:
    return f"CPointer({kind[:-1]})" if kind.endswith("*") else kind


def _inline(header: str, seen: set[str], lines: list[str]) -> None:
    if header in seen:
        return
    text = (Path(get_include()) / header).read_text(encoding="utf-8")
    if _GUARD.search(text):
        seen.add(header)
    for line in text.splitlines():
        if match := _INCLUDE.match(line):
            _inline(match[1], seen, lines)
        else:
            lines.append(line)


@dataclass(frozen=True)
class Entry:
    """One C function that kernels call.

    Parameters
    ----------
    name : str
        As kernels call it; in C it gets a prefix.
    result : str
        A type (`TYPES`), or "void".
    arguments : tuple of (type, name)
        A type may be a pointer: "float32*". Kernels give ``ffi.from_buffer(array)`` for one (``_cuda.ffi``).
    body : str
        Statements of C. Names that begin with an underscore get the prefix of the library.
    """

    name: str
    result: str
    arguments: tuple[tuple[str, str], ...]
    body: str

    @property
    def text(self) -> str:
        """The C function; names with a leading underscore get the library's prefix later."""
        arguments = ", ".join(f"{_in_c(kind)} {name}" for kind, name in self.arguments) or "void"
        body = "\n".join("    " + line for line in self.body.strip().splitlines())
        return f"SN_ENTRY {_in_c(self.result)} _{self.name}({arguments}) {{\n{body}\n}}\n"

    @property
    def signature(self) -> str:
        """The signature in Numba's notation."""
        return f"{_in_numba(self.result)}({', '.join(_in_numba(kind) for kind, _ in self.arguments)})"


@dataclass(frozen=True)
class Library:
    """The entries of one kernel, over constants of its own.

    Parameters
    ----------
    constants : str
        C text of the formats, environments and functions that the entries use.
    entries : tuple of Entry
    header : str
        The header of csrc in front of them, or several with spaces between.
    """

    constants: str
    entries: tuple[Entry, ...]
    header: str = "softnum/device/device.h"

    @property
    def own_text(self) -> str:
        """What follows the core. Names depend on the content alone, so that kernels never clash and builds repeat."""
        text = self.constants + "".join(entry.text for entry in self.entries)
        return _PREFIX.sub(f"sn_{hashlib.sha256(text.encode()).hexdigest()[:12]}_", text)

    @property
    def source(self) -> str:
        """The whole text that the device compiler is given."""
        return core_text(self.header) + "\n" + self.own_text

    def symbol(self, entry: Entry) -> str:
        """The name of an entry's C function."""
        return re.search(rf"\b(sn_[0-9a-f]{{12}}_{entry.name})\(", self.own_text)[1]
