"""Vector files out: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from softnum.runtime.atomic import atomic_file
from softnum.runtime.config import __version__
from softnum.vectors.files.compressed import COMPRESSIONS, compressed
from softnum.vectors.files.dialects import DIALECTS, dialect_named, dialect_of_path
from softnum.vectors.plans.generator import Plan

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike
    from softnum.vectors.plans.coverage import Coverage
    from softnum.vectors.plans.coverages import MixedCoverage

__all__ = ["header_of", "write"]


def header_of(plan: Plan, dialect: str = "softnum") -> dict[str, str]:
    """The text of a planned file's header."""
    command = f"softnum vectors generate {plan.spec.options()} --count {plan.count} --seed {plan.seed}"
    if dialect != "softnum":
        command += f" --dialect {dialect}" + ("" if DIALECTS[dialect].header else " --header")
    return {
        **plan.spec.facts(),
        "columns": " ".join(f"{c.name}:{c.width}" for c in plan.spec.columns),
        "method": plan.method,
        "vectors": str(plan.count),
        "seed": str(plan.seed),
        "version": __version__,
        "command": command,
    }


def write(
    plan: Plan,
    path: PathLike,
    *,
    dialect: str | None = None,
    header: bool | None = None,
    progress: Callable[[int], object] | None = None,
    coverage: Coverage | MixedCoverage | None = None,
) -> int:
    """Write the planned vectors to a file.

    Parameters
    ----------
    plan : Plan
    path : str or path
        "-" is standard output. A file appears only when it is complete. If the name ends in .gz or .xz, the file is
        compressed.
    dialect : str, optional
        A name of `DIALECTS`; by default what the path ends in, else "softnum". The vectors read the same in "softnum"
        and "testfloat"; TestFloat's own programs know no comments, so its dialect has no header.
    header : bool, optional
        Whether to say at the top of the file what it holds; by default as the dialect has it.
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
        For an unknown dialect, and where the dialect cannot hold such vectors, or so many.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os
    >>> from softnum.vectors import VectorSpec, plan, write
    >>> write(plan(VectorSpec.make("multiply", "e2m1fn"), count=3), os.devnull, dialect="testfloat")
    3
    """
    chosen = dialect_named(dialect) if dialect is not None else dialect_of_path(path) or DIALECTS["softnum"]
    if chosen.name == "npz" and os.path.splitext(os.fspath(path))[1].lower() in COMPRESSIONS:
        raise ValueError(f"{path}: npz files are already compressed; leave the last ending out")
    wanted = chosen.header if header is None else header
    done = 0
    chosen.check(plan.spec, plan.count)
    with atomic_file(path) as plain, compressed(plain, path) as file:
        writer = chosen.writer(file, plan.spec, header_of(plan, chosen.name) if wanted else None)
        for block in plan.blocks():
            writer.write(block)
            done += len(block)
            if coverage is not None:
                coverage.add(block)
            if progress is not None:
                progress(done)
        writer.close()
    return done
