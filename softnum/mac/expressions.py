"""Text of units and of what is like them, as expressions of names and constants: read without running anything."""

from __future__ import annotations

import ast

from softnum.formats.blocks import BlockFormat
from softnum.formats.scalar import FixedFormat, FloatFormat

__all__ = ["evaluated"]

_PARTS = {kind.__name__: kind for kind in (FloatFormat, FixedFormat, BlockFormat)}


def evaluated(text: str, kinds: dict, what: str, example: str):
    """The value of an expression of names of `kinds` and of formats, called with constants: nothing else is run.

    >>> from softnum.mac.expressions import evaluated
    >>> evaluated("pair(1, 'e5m2')", {"pair": lambda x, y: (x, y)}, "pair", "pair(1, 2)")
    (1, 'e5m2')
    """
    try:
        return _evaluated(ast.parse(text.strip(), mode="eval").body, text, kinds, what)
    except (SyntaxError, RecursionError, MemoryError):  # the last two of ten thousand brackets
        raise ValueError(f"no expression of a {what}: {text!r}; one reads {example}") from None


def _evaluated(node, text: str, kinds: dict, what: str):
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple() | ast.List():
            return tuple(_evaluated(part, text, kinds, what) for part in node.elts)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Call(func=ast.Name(id=name)) if name in kinds | _PARTS:
            args = [_evaluated(part, text, kinds, what) for part in node.args]
            stated = [k.arg for k in node.keywords]
            if None in stated or len(set(stated)) < len(stated):  # ast.parse takes both, and the last one would count
                twice = next(("**" if n is None else f"{n}=") for n in stated if n is None or stated.count(n) > 1)
                raise ValueError(
                    f"no expression of a {what}: {ast.unparse(node)!r}: state each argument once by name; "
                    f"there is {twice}"
                )
            options = {k.arg: _evaluated(k.value, text, kinds, what) for k in node.keywords}
            try:
                return (kinds | _PARTS)[name](*args, **options)
            except TypeError as error:  # arguments that it does not take
                raise ValueError(f"no expression of a {what}: {ast.unparse(node)!r}: {error}") from None
    known = ", ".join(kinds)
    raise ValueError(f"no expression of a {what}: {text!r}, at {ast.unparse(node)!r}; known are {known} with constants")
