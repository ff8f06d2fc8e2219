"""Rows of texts as a table of aligned columns: what objects and reports print of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["text_table"]


def text_table(rows: Iterable[Sequence[str]], *, numbers: int = 0) -> str:
    """Rows of texts as lines of columns, of which the last so many stand to the right.

    >>> print(text_table([("work", "ms"), ("add", "1"), ("matmul", "10")], numbers=1))
    work    ms
    add      1
    matmul  10
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) - numbers
    lines = [
        "  ".join(
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(lines if numbers else map(str.rstrip, lines))
