"""The error of an FP8 product in a tensor core over its length, with and without promotion to binary32.

DeepSeek-V3's report (arXiv 2412.19437, section 3.3.2) found an error of nearly 2 % for K = 4096 in the sums of H100's
FP8 tensor cores, and adds the sums of every 128 products in binary32. It does not say of which numbers, nor relative to
what. Here a has 128 rows and b 128 columns, drawn from a standard normal or a uniform distribution and rounded to
e4m3fn; errors are those of all 16,384 results, relative to their root mean square.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import softnum as sn
from softnum.runtime.atomic import write_atomic

__all__ = ["CHUNKS", "LENGTHS", "Line", "lines", "main", "table_rows"]

LENGTHS = [2**k for k in range(6, 15)]
CHUNKS = (None, 1024, 512, 256, 128, 64, 32)
SIZE = 128


@dataclass(frozen=True)
class Line:
    """The errors of a unit: of each distribution and length, (mean, largest) relative to the results' size."""

    name: str
    errors: dict[str, list[tuple[float, float]]]


def operands(distribution: str, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of e4m3fn values, (128, length) and (length, 128)."""
    rng = np.random.Generator(np.random.Philox(length))
    shape = (2, SIZE, length)
    x = rng.standard_normal(shape, np.float32) if distribution == "normal" else rng.random(shape, np.float32)
    a, b = sn.quantize(x, "e4m3fn", overflow="saturate")
    return a, np.ascontiguousarray(b.T)


def units(chunks=CHUNKS) -> dict[str, object]:
    """The tensor core's sums, promoted every so many products (None: never), and sums in binary32, one by one."""
    core = sn.unit("nvidia_h100_e4m3")
    found = {
        "tensor core" if n is None else f"promoted every {n}": core if n is None else sn.ChunkedDotUnit(core, n)
        for n in chunks
    }
    return {**found, "binary32": sn.MadUnit("binary32", operand="e4m3fn")}


def errors(unit, distribution: str, length: int) -> tuple[float, float]:
    """The mean and the largest error of a product, relative to the root mean square of its results."""
    a, b = operands(distribution, length)
    exact = sn.matmul(a, b, sn.ExactDotUnit("binary64", operand="e4m3fn"))
    error = np.abs(sn.matmul(a, b, unit) - exact)
    size = np.sqrt(np.mean(exact**2))
    return float(error.mean() / size), float(error.max() / size)


def lines(lengths=LENGTHS, chunks=CHUNKS) -> list[Line]:
    """The errors of all units.

    >>> [line.name for line in lines([64], [None, 32])]
    ['tensor core', 'promoted every 32', 'binary32']
    """
    return [
        Line(name, {kind: [errors(unit, kind, n) for n in lengths] for kind in ("normal", "uniform")})
        for name, unit in units(chunks).items()
    ]


def table_rows(found: list[Line], place: int) -> list[tuple[str, ...]]:
    """A row for each unit: mean and largest error in percent, of each distribution, at a place of the lengths."""
    return [(line.name, *(f"{100 * e:.2g}" for kind in line.errors.values() for e in kind[place])) for line in found]


def draw(found: list[Line], lengths) -> bytes:
    """The largest errors over the lengths, a panel for each distribution, all axes logarithmic, as PNG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE}):
        figure = Figure(figsize=(9.5, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        shades = matplotlib.colormaps["viridis"]
        for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("normal", "uniform"), strict=True):
            for index, line in enumerate(found):
                promoted = line.name.startswith("promoted")
                look = {"color": shades(index / len(found))} if promoted else {"color": "black"}
                if line.name == "binary32":
                    look["linestyle"] = ":"
                largest = [largest or np.nan for _, largest in line.errors[kind]]
                axes.plot(lengths, largest, label=line.name, **look)
            axes.set(xscale="log", yscale="log", xlabel="K, products of a sum", title=f"a and b {kind}")
            axes.axhline(0.02, color="gray", linewidth=0.8)
        figure.axes[0].set_ylabel("largest error, relative to the results")
        figure.axes[0].annotate("2 %", (lengths[0], 0.022), color="gray", fontsize=7)
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


def main(picture: Path | None) -> None:
    """Print the largest errors and draw them, if a picture is wanted."""
    found = lines()
    for kind in ("normal", "uniform"):
        table = Table("unit", *map(str, LENGTHS), title=f"Largest error relative to the results' size, a and b {kind}")
        for line in found:
            table.add_row(line.name, *(f"{largest:.1e}" for _, largest in line.errors[kind]))
        Console(width=150).print(table)
    if picture is not None:
        write_atomic(picture, draw(found, LENGTHS))
