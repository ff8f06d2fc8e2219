"""The error of long sums in (1,6,9): against their length, for chunks of 1 to 256 and stochastic rounding.

The figure of Wang et al. 2018 (section 2.2): a sum of products, whose terms are uniform with mean 1 and standard
deviation 1, swamps a 16-bit accumulator as it grows; chunks keep their sums, and the sum of these, short.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import softnum as sn
from softnum.runtime.atomic import write_atomic

__all__ = ["CHUNKS", "LENGTHS", "Line", "lines", "main"]

LENGTHS = [2**k for k in range(6, 18)]
CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REPEATS = 16  # sums of each length, of different terms


@dataclass(frozen=True)
class Line:
    """Relative errors of one kind of sum: medians over sums of different terms, a number for each length."""

    name: str
    errors: list[float]


def terms(length: int, repeats: int = REPEATS) -> np.ndarray:
    """Uniform numbers of mean 1 and standard deviation 1, rounded to (1,6,9): (repeats, length)."""
    words = np.random.Philox(key=np.array([1, length], np.uint64), counter=0).random_raw(repeats * length)
    unit = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return sn.quantize((1 + (2 * unit - 1) * np.sqrt(3.0)).reshape(repeats, length), "e6m9")


def errors(unit, length: int, key=None) -> float:
    """The median of |sum - exact| / exact over sums of a length."""
    x = terms(length)
    exact = np.array([math.fsum(row) for row in x])
    options = {} if key is None else {"key": key}
    got = sn.matmul(x, np.ones((length, 1)), unit=unit, **options)[:, 0]
    return float(np.median(np.abs(got - exact) / exact))


def lines(lengths=LENGTHS, chunks=CHUNKS) -> list[Line]:
    """Sums to nearest in chunks (1: none), a stochastic one without, and one in binary32.

    >>> [line.name for line in lines([64], [1])]
    ['chunk 1', 'stochastic', 'binary32']
    """
    units = {f"chunk {size}": sn.MadUnit("e6m9", operand="e6m9", chunk=size if size > 1 else None) for size in chunks}
    found = [Line(name, [errors(unit, length) for length in lengths]) for name, unit in units.items()]
    stochastic = sn.MadUnit("e6m9", operand="e6m9", rounding="stochastic", stochastic_bits=16)
    found.append(Line("stochastic", [errors(stochastic, length, (1, length)) for length in lengths]))
    binary32 = sn.MadUnit("binary32", operand="e6m9")
    return [*found, Line("binary32", [errors(binary32, length) for length in lengths])]


def draw(found: list[Line], lengths) -> bytes:
    """The errors over the lengths, both axes logarithmic, as PNG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE}):
        figure = Figure(figsize=(7.5, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        shades = matplotlib.colormaps["viridis"]
        for index, line in enumerate(found):
            chunk = line.name.startswith("chunk")
            look = {"color": shades(index / len(CHUNKS))} if chunk else {"color": "black", "linestyle": "--"}
            if line.name == "binary32":
                look["linestyle"] = ":"
            axes.plot(lengths, [max(error, 1e-9) for error in line.errors], label=line.name, **look)
        axes.set(xscale="log", yscale="log", xlabel="terms of the sum", ylabel="relative error, median of 16 sums")
        axes.set_title("Sums in (1,6,9) of terms with mean 1 and standard deviation 1")
        axes.legend(fontsize=7, ncols=2)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


def table_rows(found: list[Line]) -> list[tuple[str, ...]]:
    """A row for each kind of sum: its name and its errors."""
    return [(line.name, *(f"{error:.1e}" for error in line.errors)) for line in found]


def main(picture: Path | None) -> None:
    """Print the errors and draw them, if a picture is wanted."""
    found = lines()
    table = Table("sum", *map(str, LENGTHS), title="Relative error of sums in (1,6,9), median of 16")
    for row in table_rows(found):
        table.add_row(*row)
    Console(width=160).print(table)
    if picture is not None:
        write_atomic(picture, draw(found, LENGTHS))
