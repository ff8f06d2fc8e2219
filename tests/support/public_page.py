"""The page of public names, docs/reference/public-names.md: its lists, from the code.

    python -m tests.support.public_page         write the lists of the page anew

Under a heading that is the name of a module stands the list of its names; at the end are the names that moved. The text
around the lists is the page's own.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from softnum.runtime.moved import MOVED

__all__ = ["PAGE", "levels", "names_of", "rewritten"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "public-names.md"
_DEPRECATED = "The old name warns"  # the line that the lists of old names follow
_LIST = re.compile(r"(?m)^### (softnum[\w.]*)\n\n(?:`[^\n]*\n)*")


def names_of(module: str) -> list[str]:
    """A module's ``__all__``, read from its text where that states it: no optional dependency is imported."""
    tree = ast.parse(Path(find_spec(module).origin).read_text(encoding="utf-8"))
    [stated, *more] = [node for node in tree.body if "__all__" in ast.unparse(node) and not isinstance(node, ast.If)]
    return ast.literal_eval(stated.value) if not more else import_module(module).__all__


def _listed(names: Iterable[str]) -> str:
    text = " ".join(f"`{name}`" for name in sorted(names, key=lambda name: (name.lower(), name)))
    return "\n".join(textwrap.wrap(text, 118, break_on_hyphens=False)) + "\n"


def rewritten(text: str) -> str:
    """The page with every list as the code has it."""
    text = _LIST.sub(lambda found: f"### {found[1]}\n\n{_listed(names_of(found[1]))}", text)
    parts = [
        f"From `{old}` to `{new}`:\n\n{_listed(names)}"
        for old, places in MOVED.items()
        for new, names in places.items()
    ]
    return text[: text.index("\n", text.index(_DEPRECATED))] + "\n\n" + "\n".join(parts)


def levels(text: str) -> dict[str, list[str]]:
    """Heading of the page ("Public", "Experimental" ...) -> the modules that have a list under it."""
    parts = re.split(r"(?m)^## (.*)$", text)
    return {title: _LIST.findall(part) for title, part in zip(parts[1::2], parts[2::2], strict=True)}


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
