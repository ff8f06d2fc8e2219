"""Pictures of what an iteration takes: memory by class, and the speed-up of data-parallel workers."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.workloads.exchange import ParallelTime
from softnum.tta.workloads.memory import Memory
from softnum.tta.workloads.operations import TENSOR_CLASSES

__all__ = ["plot_memory", "plot_parallel"]

_FORMATS = (".png", ".svg", ".pdf")


def plot_memory(path: str | os.PathLike[str], memories: Sequence[Memory]) -> None:
    """Draw the memory at the peak as bars by class of tensor, and write the picture.

    Parameters
    ----------
    path : path-like
        A .png, .svg or .pdf file; the same memories give the same bytes.
    memories : sequence of Memory
        A bar each, from the top down.

    Raises
    ------
    ValueError
        If there is none, or the file is of another kind.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import load_design, workload
    >>> from softnum.tta import memory_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_memory(Path(folder, "memory.png"), [memory_of(workload("mlp", load_design("a-float32"), 32))])
    ...     Path(folder, "memory.png").stat().st_size > 5000
    True
    """
    if not memories:
        raise ValueError("there is no memory to draw")

    def draw(figure, look) -> None:
        axes = figure.subplots()
        scale, unit = _scale(max(memory.peak for memory in memories))
        places = range(len(memories))
        left = [0.0] * len(memories)
        for index, name in enumerate(TENSOR_CLASSES):
            widths = [memory.at_peak[name] / scale for memory in memories]
            colour = look(index)["color"]
            axes.barh(places, widths, left=left, color=colour, label=name.replace("_", " "), height=0.7)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        one = len({memory.network for memory in memories}) == 1
        axes.set_yticks(places, [_name(memory, one) for memory in memories])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.03 * max(left))
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"{unit} held at the peak of an iteration")
        axes.set_title(memories[0].network if one else "memory")
        figure.legend(loc="outside upper center", ncols=3, frameon=False)

    _write(path, draw, (7.5, 1.7 + 0.34 * len(memories)))


def _name(memory: Memory, one: bool) -> str:
    return f"{'' if one else memory.network + ', '}{memory.design}, batch {memory.batch}"


def _scale(top: int) -> tuple[float, str]:
    return next(
        ((scale, unit) for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if top >= scale), (1, "bytes")
    )


def plot_parallel(path: str | os.PathLike[str], times: Sequence[ParallelTime]) -> None:
    """Draw the speed-up of workers and the share of an iteration in which they wait, over the bandwidth of their links.

    Parameters
    ----------
    path : path-like
        A .png, .svg or .pdf file; the same times give the same bytes.
    times : sequence of ParallelTime
        As `parallel_sweep` gives them; a line for each number of workers and way of exchange.

    Raises
    ------
    ValueError
        If there is none, or the file is of another kind.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.train import load_design, workload
    >>> from softnum.tta.workloads import parallel_sweep
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> times = parallel_sweep(work, {"fc1": (3e-6, 0, 3e-6), "fc2": (1e-6, 1e-6, 1e-6)}, [2, 4], [10**9, 10**11])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_parallel(Path(folder, "parallel.png"), times)
    ...     Path(folder, "parallel.png").stat().st_size > 5000
    True
    """
    if not times:
        raise ValueError("there is no time to draw")
    lines: dict[tuple[Any, ...], list[ParallelTime]] = {}
    for time in times:
        lines.setdefault((time.exchange, time.workers), []).append(time)
    exchanges = list(dict.fromkeys(exchange for exchange, _ in lines))
    counts = sorted({workers for _, workers in lines})

    def draw(figure, look) -> None:
        left, right = figure.subplots(1, 2)
        for (exchange, workers), rows in lines.items():
            style = look(counts.index(workers))
            style["linestyle"] = ("-", "--", "-.", ":")[exchanges.index(exchange) % 4]
            rows = sorted(rows, key=lambda row: row.bandwidth)
            rates = [float(row.bandwidth) / 1e9 for row in rows]
            label = f"{workers} workers"
            if len(exchanges) > 1:
                label += f", {exchange.compress or 'as stored'}"
            left.plot(rates, [float(row.speedup) for row in rows], markersize=4, label=label, **style)
            right.plot(rates, [float(row.exposed / row.seconds) for row in rows], markersize=4, **style)
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xlabel("bandwidth of a link (Gb/s)")
        left.axhline(1.0, color="#555555", linewidth=0.8)
        left.set_ylim(bottom=0)
        left.set_title("speed-up over one worker")
        right.set_ylim(0, 1)
        right.set_title("share of an iteration in which workers wait")
        figure.legend(loc="outside upper center", ncols=4, frameon=False)

    _write(path, draw, (9.5, 4.4))


def _write(path: str | os.PathLike[str], draw, size: tuple[float, float]) -> None:
    path = Path(path)
    if path.suffix not in _FORMATS:
        raise ValueError(f"{path}: a picture must end in {', '.join(_FORMATS)}, not {path.suffix!r}")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE, look

    style = {**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE, "svg.hashsalt": "softnum"}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure, look)
        out = io.BytesIO()
        clean = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(out, format=path.suffix[1:], metadata=clean[path.suffix[1:]])
    write_atomic(path, out.getvalue())
