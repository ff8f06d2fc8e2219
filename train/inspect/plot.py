"""The picture of a run's statistics: exponents before rounding against what the format holds, losses, errors."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from softnum.train.runs.record import read_lines

__all__ = ["draw_rows", "draw_statistics"]

_STYLE = {"font.size": 8, "axes.titlesize": 9, "axes.titlelocation": "left", "savefig.dpi": 150}


def draw_statistics(path: str | Path) -> bytes:
    """Draw a file of statistics: `draw_rows` of its rows.

    Parameters
    ----------
    path : path-like
        ``seed-<n>.statistics.jsonl``.

    Returns
    -------
    bytes
        A PNG file. The same statistics give the same bytes.

    Raises
    ------
    ValueError
        If the file holds no statistics.
    """
    rows = read_lines(Path(path))[1:]
    if not rows or "exponents" not in rows[0]:
        raise ValueError(f"{path} holds no statistics of a run")
    return draw_rows(rows)


def draw_rows(rows: list[dict]) -> bytes:
    """Draw what became of numbers.

    One line for each layer, role and shape that was rounded: on the left the exponents of its values before rounding,
    all iterations together, darker where there are more, between red bars at the smallest and the largest number
    of the format, where they fall inside the picture; in the middle the share of values that saturated,
    underflowed, or became infinities or NaN; on the right the relative error, in each iteration.

    Parameters
    ----------
    rows : list of dict
        `softnum.train.runs.statistics.TensorStatistics.describe` of each tensor and iteration.

    Returns
    -------
    bytes
        A PNG file. The same statistics give the same bytes.
    """
    tensors: dict[tuple, list[dict]] = {}
    for row in rows:
        tensors.setdefault((row["layer"], row["role"], row["format"], *row["shape"]), []).append(row)
    exponents = [exponent for row in rows for exponent, _ in row["exponents"]] or [0]
    low, high = min(exponents), max(exponents)
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **_STYLE}):
        figure = Figure(figsize=(13, 1.6 + 0.17 * len(tensors)), layout="constrained")
        FigureCanvasAgg(figure)
        left, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=[3, 1, 1])
        shares = np.zeros((len(tensors), high - low + 1))
        for line, parts in enumerate(tensors.values()):
            for part in parts:
                for exponent, count in part["exponents"]:
                    shares[line, exponent - low] += count
        totals = shares.sum(axis=1, keepdims=True)
        shares = np.sqrt(np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0))
        extent = (low - 0.5, high + 0.5, len(tensors) - 0.5, -0.5)
        left.imshow(shares, aspect="auto", cmap="Greys", extent=extent, interpolation="nearest")
        for line, parts in enumerate(tensors.values()):
            for edge, exponent in enumerate(parts[0]["span"] or ()):
                if low <= exponent <= high:
                    left.plot([exponent + edge - 0.5] * 2, [line - 0.5, line + 0.5], color="#D55E00", linewidth=1.5)
        left.set_yticks(range(len(tensors)), [_label(key) for key in tensors])
        left.set_title("exponents before rounding (red: the format's ends)")
        left.set_xlabel("floor(log2(|value|))")
        for line, parts in enumerate(tensors.values()):
            elements = sum(part["elements"] for part in parts)
            start = 0.0
            for names, colour, text in _LOSSES:
                share = 100 * sum(part[name] for part in parts for name in names) / max(elements, 1)
                middle.barh(line, share, left=start, color=colour, label=text if line == 0 else None)
                start += share
            errors = [part["relative_error"] for part in parts if part["relative_error"]]
            right.plot(errors, [line] * len(errors), "|", color="#0072B2")
        middle.set_title("lost, % of values")
        middle.legend(fontsize=6)
        right.set_title("relative error")
        right.set_xscale("log")
        out = io.BytesIO()
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


_LOSSES = (
    (("saturated",), "#D55E00", "saturated"),
    (("underflowed",), "#56B4E9", "underflowed"),
    (("infinities", "nans"), "#000000", "inf, NaN"),
)


def _label(key: tuple) -> str:
    layer, role, fmt, *shape = key
    return f"{layer} {role} ({' x '.join(map(str, shape))}): {fmt}"
