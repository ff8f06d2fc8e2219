"""A format answers for itself: few files outside `softnum.formats` ask of what kind a format is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from softnum.formats.base import AnyFormat
from softnum.formats.blocks import BlockFormat
from softnum.formats.custom.formats import CustomFormat
from softnum.formats.scalar import FixedFormat, FloatFormat

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("softnum", "kernels", "train")
EXEMPT = ("softnum/formats/", "softnum/reference/")  # what answers, and the oracle, which stands on nothing
MOST = 15
FORMATS = (FloatFormat, FixedFormat, BlockFormat, CustomFormat)
CLASSES = {"Format", *(kind.__name__ for kind in FORMATS)}
KINDS = {"float", "fixed", "block", "table", "custom"}
FACTS = {name for kind in (AnyFormat, *FORMATS) for name in (*vars(kind), *vars(kind).get("__annotations__", ()))}
_IN_CYTHON = re.compile(r"\bfmt\.kind\b|isinstance\(.*Format\b")


def words(node: ast.AST) -> set[str]:
    """The names and texts in an expression."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.add(part.value)
    return found


def asks(node: ast.AST) -> bool:
    """Whether an expression asks of what kind a format is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("isinstance", "issubclass"):
            return bool(words(node.args[1]) & CLASSES)
        if node.func.id in ("hasattr", "getattr"):
            of_format = "fmt" in words(node.args[0]) or "format" in words(node.args[0])
            return of_format and isinstance(node.args[1], ast.Constant) and node.args[1].value in FACTS
        return node.func.id in ("is_block_format", "is_block")
    if isinstance(node, ast.Compare):
        of_type = any(isinstance(part, ast.Call) and words(part.func) == {"type"} for part in ast.walk(node))
        of_kind = any(isinstance(part, ast.Attribute) and part.attr == "kind" for part in ast.walk(node))
        return bool((of_kind and words(node) & KINDS) or (of_type and words(node) & CLASSES))
    if isinstance(node, ast.Attribute):  # RoleRounding.block
        return node.attr == "block" and bool(words(node.value) & {"rounding", "roles"})
    return isinstance(node, ast.MatchClass) and bool(words(node.cls) & CLASSES)


def places() -> dict[str, list[int]]:
    """File -> the lines that ask."""
    found = {}
    for path in sorted(p for source in SOURCES for p in (ROOT / source).rglob("*") if p.suffix in (".py", ".pyx")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(EXEMPT):
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            lines = sorted({node.lineno for node in ast.walk(ast.parse(text)) if asks(node)})
        else:
            lines = [i for i, line in enumerate(text.splitlines(), 1) if _IN_CYTHON.search(line)]
        if lines:
            found[name] = lines
    return found


def test_few_files_ask_of_what_kind_a_format_is():
    found = places()
    text = "\n".join(f"{name}: {', '.join(map(str, lines))}" for name, lines in found.items())
    assert len(found) <= MOST, f"{len(found)} files ask of what kind a format is, and {MOST} may:\n{text}"


def test_a_question_is_seen():
    for text in (
        "isinstance(f, CustomFormat)", "fmt.kind == 'fixed'", "getattr(fmt, 'kind', None)", "type(f) is FloatFormat",
        "f.kind in ('float', 'fixed')", "hasattr(fmt, 'nan_codes')", "rounding.block",
    ):  # fmt: skip
        assert any(map(asks, ast.walk(ast.parse(text)))), text
    assert not any(map(asks, ast.walk(ast.parse("isinstance(x, Array) and dtype.kind == 'f'"))))
