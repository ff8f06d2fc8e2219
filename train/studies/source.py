"""What softnum's own code is: a checksum, which tells checkouts of one version apart."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from pathlib import Path

__all__ = ["source_digest"]

#: package -> its parts that are packages of this table too, which lie in its folder or, in a checkout, elsewhere
_PACKAGES = {"softnum": ("kernels", "train"), "softnum.kernels": (), "softnum.train": ()}


@functools.cache
def source_digest(*, compiled: bool = False) -> str:
    """The start of a checksum of softnum's Python files; compiled: of its extension modules and designs too.

    >>> len(source_digest()), source_digest() == source_digest(compiled=True)
    (12, False)
    """
    digest = hashlib.sha256()
    patterns = ("*.py", "*.so", "*.pyd", "*.toml") if compiled else ("*.py",)
    for package, parts in _PACKAGES.items():
        folder = Path(str(resources.files(package)))
        for file in sorted(path for pattern in patterns for path in folder.rglob(pattern)):
            name = file.relative_to(folder)
            if name.parts[0] not in parts:
                digest.update(name.as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
