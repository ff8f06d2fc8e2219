"""Texts as TOML writes them: what the standard library reads and does not write."""

from __future__ import annotations

import re

__all__ = ["toml_string"]


def toml_string(text: str) -> str:
    """A text as a basic string of TOML, on one line whatever it holds.

    >>> import tomllib
    >>> print(toml_string('C:\\\\"runs"\\n'))
    "C:\\u005C\\u0022runs\\u0022\\u000A"
    >>> tomllib.loads(f"folder = {toml_string(chr(127))}")
    {'folder': '\\x7f'}
    """
    return '"' + re.sub(r'[\x00-\x1f"\\\x7f]', lambda found: f"\\u{ord(found[0]):04X}", text) + '"'
