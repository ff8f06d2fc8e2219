"""The roofline picture: operations over arithmetic intensity, under the roofs of a device."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.estimates.rooflines import Roofline, Utilisation

__all__ = ["plot_roofline"]

_FORMATS = (".png", ".svg", ".pdf")


def plot_roofline(
    path: str | os.PathLike[str], rooflines: Sequence[Roofline], measured: Sequence[Sequence[Utilisation]] = ()
) -> None:
    """Draw rooflines, one panel a device, and write the picture.

    Parameters
    ----------
    path : path-like
        A .png, .svg or .pdf file; the same rooflines give the same bytes.
    rooflines : sequence of Roofline
        Each roof of a device is drawn once; each operation is a mark on the roof, filled if it is a matrix product.
    measured : sequence of sequence of Utilisation, optional
        For each roofline what `utilisation` says of a measured or simulated time; these marks lie below the roof by
        what was not reached.

    Raises
    ------
    ValueError
        If there is no roofline, the file is of another kind, or `measured` is not one for each roofline.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import load_reports, workload_of_gemms
    >>> from softnum.tta.estimates import device, roofline
    >>> roof = roofline(workload_of_gemms(load_reports().designs["a-float32"], 32, "mlp"), device("v100"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_roofline(Path(folder, "roof.png"), [roof])
    ...     Path(folder, "roof.png").stat().st_size > 10000
    True
    """
    path = Path(path)
    if path.suffix not in _FORMATS:
        raise ValueError(f"{path}: a picture must end in {', '.join(_FORMATS)}, not {path.suffix!r}")
    if not rooflines:
        raise ValueError("there is no roofline to draw")
    if measured and len(measured) != len(rooflines):
        raise ValueError(f"there are {len(rooflines)} rooflines and {len(measured)} lists of measured parts")
    write_atomic(path, _draw(list(rooflines), list(measured) or [()] * len(rooflines), path.suffix[1:]))


def _draw(rooflines: list[Roofline], measured: list[Any], kind: str) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE, look

    panels: dict[tuple[Any, ...], list[tuple[int, Roofline, Sequence[Utilisation]]]] = {}
    names = list(dict.fromkeys(map(_name, rooflines)))  # the same work looks the same on every device
    for roof, parts in zip(rooflines, measured, strict=True):
        machine = (roof.device.name, roof.device.bandwidth, *roof.device.peaks.items())
        panels.setdefault(machine, []).append((names.index(_name(roof)), roof, parts))
    style = {**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE, "svg.hashsalt": "roofline"}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(1.6 + 5.6 * len(panels), 5.2), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, group in zip(grid, panels.values(), strict=True):
            _panel(axes, group, look)
        grid[0].set_ylabel("FLOP/s")
        handles = {}
        for axes in grid:
            handles.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
        place = {"loc": "outside upper center", "ncols": 2 * len(panels), "frameon": False, "fontsize": 8}
        figure.legend(handles.values(), handles.keys(), **place)
        out = io.BytesIO()
        clean = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(out, format=kind, metadata=clean[kind])
    return out.getvalue()


def _name(roof: Roofline) -> str:
    return " ".join(filter(None, (roof.network, roof.design, f"batch {roof.batch}")))


def _panel(axes, group, look) -> None:
    device = group[0][1].device
    rows = [row for _, roof, _ in group for row in roof.rows if row.flops and row.bytes]
    roofs: dict[float, list[str]] = {}  # rates that are equal share a line and its text
    for row in rows:
        if row.peak.format not in roofs.setdefault(row.peak.flops, []):
            roofs[row.peak.flops].append(row.peak.format)
    ridges = [flops / device.bandwidth for flops in roofs]
    low = min([row.intensity for row in rows] + ridges, default=1.0) / 4
    high = max([row.intensity for row in rows] + ridges, default=1.0) * 25  # room for the names of the roofs
    for flops, names in sorted(roofs.items()):
        ridge = flops / device.bandwidth
        axes.plot([low, ridge, high], [low * device.bandwidth, flops, flops], color="#555555", linewidth=1, zorder=1)
        text = f"{', '.join(sorted(names))} {flops / 1e12:g} TFLOP/s"
        place = {"xytext": (-4, 3), "textcoords": "offset points", "ha": "right"}
        axes.annotate(text, (high, flops), fontsize=8, color="#333333", **place)
    for index, roof, parts in group:
        colour, marker = look(index)["color"], look(index)["marker"]
        name = _name(roof)
        for products, label in ((True, name), (False, f"{name}: other operations")):
            marks = [r for r in roof.rows if r.flops and r.bytes and (r.kind == "gemm") is products]
            if marks:
                axes.scatter(
                    [r.intensity for r in marks], [r.achieved for r in marks], s=34 if products else 22, marker=marker,
                    facecolors=colour if products else "none", edgecolors=colour, linewidths=0.9, label=label, zorder=3,
                )  # fmt: skip
        work = {}
        for row in roof.rows:
            if row.kind == "gemm":
                flops, moved = work.get((row.layer, row.stage), (0, 0))
                work[row.layer, row.stage] = flops + row.flops, moved + row.bytes
        reached = [(work[part.layer, part.stage], part.achieved) for part in parts if part.layer]
        if reached:
            axes.scatter(
                [flops / moved if moved else math.nan for (flops, moved), _ in reached], [rate for _, rate in reached],
                s=36, marker="_", color=colour, linewidths=1.8, label=f"{name}: reached", zorder=4,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("arithmetic intensity (FLOPs per byte)")
    axes.set_title(f"{device.title or device.name}: {device.bandwidth / 1e9:g} GB/s")
