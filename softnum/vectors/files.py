"""Vector files out: whole or not at all."""

from __future__ import annotations

from softnum.files import atomic_file
from softnum.vectors.generator import Plan
from softnum.vectors.text import TextLayout, header_lines

__all__ = ["DIALECTS", "header_of", "write"]

#: name -> whether a header opens the file by default
DIALECTS = {"softnum": True, "testfloat": False}


def header_of(plan: Plan, dialect: str = "softnum") -> dict[str, str]:
    """What the header of a planned file says."""
    import softnum

    command = f"softnum vectors generate {plan.spec.options()} --count {plan.count} --seed {plan.seed}"
    if dialect != "softnum":
        command += f" --dialect {dialect} --header"
    return {
        **plan.spec.facts(),
        "columns": " ".join(f"{c.name}:{c.width}" for c in plan.spec.columns),
        "method": plan.method,
        "vectors": str(plan.count),
        "seed": str(plan.seed),
        "version": softnum.__version__,
        "command": command,
    }


def write(
    plan: Plan, path, *, dialect: str = "softnum", header: bool | None = None, progress=None, coverage=None
) -> int:
    """Write the planned vectors as text.

    Parameters
    ----------
    plan : Plan
    path : str or path
        "-" is standard output. A file appears only when it is complete.
    dialect : {"softnum", "testfloat"}
        The vectors read the same in both; TestFloat's own programs know no comments, so its dialect has no header.
    header : bool, optional
        Whether to open the file with comment lines that say what it holds; by default as the dialect has it.
    progress : callable, optional
        Called with the number of vectors written so far.
    coverage : Coverage, optional
        Counts what is written.

    Returns
    -------
    int
        The number of vectors.

    Raises
    ------
    ValueError
        For an unknown dialect.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os
    >>> from softnum.vectors import VectorSpec, plan, write
    >>> write(plan(VectorSpec.make("multiply", "e2m1fn"), count=3), os.devnull, dialect="testfloat")
    3
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r} (known: {', '.join(DIALECTS)})")
    layout = TextLayout(plan.spec)
    done = 0
    with atomic_file(path) as file:
        if DIALECTS[dialect] if header is None else header:
            file.write(header_lines(header_of(plan, dialect)))
        for block in plan.blocks():
            file.write(layout.format(block))
            done += len(block)
            if coverage is not None:
                coverage.add(block)
            if progress is not None:
                progress(done)
    return done
