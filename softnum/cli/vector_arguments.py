"""What the verbs of ``softnum vectors`` make of their options, and the bar that shows how far they are."""

import contextlib
import sys
from pathlib import Path

from softnum.formats.aliases import function_of

__all__ = ["WORTH_A_BAR", "bar", "format_of", "formats_of", "given", "lanes_of", "shape_of", "space_of", "spec_of"]

#: Fewer vectors than this are done before a progress bar could be read.
WORTH_A_BAR = 1 << 21


def formats_of(text: str | None):
    """``"e5m2"`` is that name, ``"e5m2,e4m3fn"`` a tuple of two."""
    names = None if text is None else [format_of(part.strip()) for part in text.split(",")]
    return names[0] if names and len(names) == 1 else names and tuple(names)


def format_of(text: str | None):
    """A name, or the format that FILE.py:NAME or MODULE:NAME stands for."""
    if text is None or ":" not in text:
        return text
    from softnum.train.designs.objects import load_format
    from softnum.vectors.plans.own import remember

    return remember(load_format(text, Path()), text)


def shape_of(text: str | None):
    """``"4,4,8"`` is (4, 4, 8)."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise ValueError(f"--shape must be three numbers M,N,K separated by commas, got {text!r}")
    return tuple(map(int, parts))


def space_of(no_nan: bool, no_inf: bool, no_subnormal: bool, exponents: str | None, only: str | None):
    """The space that the options state; None: all vectors."""
    from softnum.vectors import Space

    found = Space.make(no_nan=no_nan, no_inf=no_inf, no_subnormal=no_subnormal, exponents=exponents, only=only)
    return found or None


def lanes_of(count: int | None, word_bits: int | None, scalar: bool, flags: str | None, ones=False, mask=None):
    """How lanes lie in words, as the options state it; None: there are none."""
    if count is None:
        stated = {"word-bits": word_bits, "scalar-b": scalar or None, "lane-flags": flags, "mask": mask}
        for name, value in stated.items():
            if value is not None:
                raise ValueError(f"--{name} applies to words of several lanes; add --lanes")
        return None
    from softnum.vectors import Lanes

    return Lanes(count, word_bits, scalar, flags or "or", ones, mask or "none")


def given(**options) -> dict:
    return {key: value for key, value in options.items() if value is not None}


@contextlib.contextmanager
def bar(text: str, total: int | None, expected: int):
    """A callback that shows how many vectors are done, where stderr is a terminal and the work is long; else None."""
    if not sys.stderr.isatty() or expected < WORTH_A_BAR:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=total)
        yield lambda done: bar.update(task, completed=done)


def spec_of(op, operation, unit, of_unit: dict):
    """The spec that the options state, `operation` being those of an operation (`vector_options.OperationOptions`)."""
    from softnum.vectors import UNIT_OPERATIONS, UnitSpec, VectorSpec

    of_operation = operation.given()
    formats = of_operation.pop("fmt", None)

    if op is None:
        raise ValueError("state --op; for example: softnum vectors generate --op multiply --format e5m2")
    if op in UNIT_OPERATIONS:
        if unit is None:
            raise ValueError(
                f"state the --unit that computes {op}; for example: --unit nvidia_v100_fp16 (softnum units lists them)"
            )
        space = of_operation.pop("space", None)
        foreign = given(format=formats, **of_operation)
        if foreign:
            name = next(iter(foreign)).replace("out_fmt", "result_format").replace("_", "-")
            raise ValueError(f"--{name} applies to single operations; for {op} the unit states it: leave it out")
        return UnitSpec.make(op, unit, space=space, **given(**of_unit))
    foreign = given(unit=unit, **of_unit)
    if foreign:
        raise ValueError(
            f"--{next(iter(foreign)).replace('_', '-')} applies to units (--op dot, mac or gemm), not to {op}; leave "
            "it out"
        )
    if formats is None and function_of(op) is None:
        raise ValueError("state --format; for example: softnum vectors generate --op multiply --format e5m2")
    return VectorSpec.make(op, formats, **given(**of_operation))
