"""Pictures of sweeps: heat map, models under the roof, weights of hyper-parameters; two devices compared."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.architectures.paradnn import Sweep
from softnum.tta.architectures.sweep_analysis import AXES, against, heat_map, sensitivity

__all__ = ["plot_against", "plot_measured", "plot_sweep"]


def plot_sweep(path: str | os.PathLike[str], sweep: Sweep) -> None:
    """Draw a sweep of one kind: mean utilisation over batch and size, FLOP/s over arithmetic intensity, and the weight
    of each hyper-parameter.

    Parameters
    ----------
    path : path-like
        The PNG file to write; the same sweep gives the same bytes.
    sweep : Sweep

    Raises
    ------
    ValueError
        If no model fits the device.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from softnum.tta.architectures import sweep
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_sweep(pathlib.Path(folder, "rnn.png"), sweep("rnn", "v100"))
    ...     pathlib.Path(folder, "rnn.png").stat().st_size > 10_000
    True
    """
    if not sweep.fitting:
        raise ValueError(f"no model of sweep {sweep.kind} fits {sweep.device}")
    title = f"{sweep.kind} on {sweep.device}, {sweep.precision}: {len(sweep.fitting)} of {len(sweep.rows)} models fit"
    _draw(path, title, (13.2, 4.2), [lambda axes, figure: _heat(axes, figure, sweep),
                                     lambda axes, figure: _roof(axes, figure, sweep),
                                     lambda axes, figure: _weights(axes, sweep)])  # fmt: skip


def plot_against(path: str | os.PathLike[str], first: Sweep, second: Sweep) -> None:
    """Draw how much faster the first device is than the second, over the second's samples per second: once coloured by
    batch, once by size.

    Parameters
    ----------
    path : path-like
        The PNG file to write.
    first, second : Sweep
        Of the same kind.

    Raises
    ------
    ValueError
        If the sweeps differ in their models, or none fits both devices.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from softnum.tta.architectures import sweep
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_against(pathlib.Path(folder, "rnn.png"), sweep("rnn", "tpu-v2"), sweep("rnn", "v100"))
    ...     pathlib.Path(folder, "rnn.png").stat().st_size > 10_000
    True
    """
    rows = against(first, second)
    if not rows:
        raise ValueError(f"no model of sweep {first.kind} fits both {first.device} and {second.device}")
    title = f"{first.kind}: {first.device} ({first.precision}) over {second.device} ({second.precision})"
    size, batch = AXES[first.kind]
    _draw(path, title, (10.4, 4.2), [
        lambda axes, figure, name=name: _speedups(axes, figure, rows, first, second, name) for name in (batch, size)
    ])  # fmt: skip


def plot_measured(path: str | os.PathLike[str], sweep: Sweep) -> None:
    """Draw measured models under the roof, with what the roofline gives them, and the ratio of both times.

    Parameters
    ----------
    path : path-like
        The PNG file to write; the same sweep gives the same bytes.
    sweep : Sweep
        With measured times laid over it.

    Raises
    ------
    ValueError
        If it has none.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from softnum.tta.architectures import sweep
    >>> from softnum.tta.architectures.sweep_measured import Measured, Point
    >>> from softnum.tta.architectures.sweep_overlay import overlay
    >>> points = (Point("line 2", (1, 100, 10, 2, 16), 0.01), Point("line 3", (5, 500, 50, 2, 64), 0.2))
    >>> found = overlay(sweep("rnn", "v100"), Measured("", "", "rnn", points))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_measured(pathlib.Path(folder, "rnn.png"), found)
    ...     pathlib.Path(folder, "rnn.png").stat().st_size > 10_000
    True
    """
    if sweep.measured is None:
        raise ValueError(f"sweep {sweep.kind} on {sweep.device} has no measured times")
    rows = [row for row in sweep.rows if row["measurements"]]
    title = f"{sweep.kind} on {sweep.device}, {sweep.precision}: {len(rows)} measured models"
    panels = [lambda axes, figure: _measured_roof(axes, figure, sweep, rows),
              lambda axes, figure: _measured_ratio(axes, figure, sweep, rows)]  # fmt: skip
    _draw(path, title, (10.4, 4.2), panels, "Dots: measured. Roof and crosses: analytic roofline, a bound")


def _draw(
    path,
    title: str,
    size: tuple[float, float],
    panels: Sequence[Any],
    what="Analytic roofline: a bound, not a measurement",
) -> None:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from softnum.tta.outcomes.plot import PICTURE_STYLE

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **PICTURE_STYLE, "savefig.dpi": 90}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
            panel(axes, figure)
        figure.suptitle(f"{title}. {what}", fontsize=10)
        out = io.BytesIO()
        figure.savefig(out, format="png", metadata={"Software": None})
    write_atomic(path, out.getvalue())


def _heat(axes, figure, sweep: Sweep) -> None:
    import numpy as np

    size, batch = AXES[sweep.kind]
    cells = heat_map(sweep)
    rows, columns = (sorted({row[name] for row in sweep.rows}) for name in (size, batch))
    grid = np.full((len(rows), len(columns)), np.nan)
    for cell in cells:
        grid[rows.index(cell[size]), columns.index(cell[batch])] = cell["utilisation"]
    image = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis", vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(grid):
        text = "-" if np.isnan(value) else f"{value:.2f}"
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color="black" if value > 0.6 else "white")
        if np.isnan(value):
            axes.texts[-1].set_color("black")
    axes.set_xticks(range(len(columns)), columns, rotation=45)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel(batch)
    axes.set_ylabel(size)
    axes.grid(visible=False)
    axes.set_title("Mean share of peak FLOP/s (-: none fits)")
    figure.colorbar(image, ax=axes, fraction=0.05)


def _roof(axes, figure, sweep: Sweep) -> None:
    rows = sweep.fitting
    x = _roofline(axes, sweep, rows)
    _coloured(axes, figure, rows, x, [row["flops_per_second"] for row in rows], AXES[sweep.kind][1])
    axes.set_xlabel("arithmetic intensity of the iteration (FLOPs per byte)")
    axes.set_ylabel("FLOP/s")
    axes.set_yscale("log")
    axes.set_title("Models under the roof")


def _roofline(axes, sweep: Sweep, rows) -> list[float]:
    """Draw the roof over some models; returns their arithmetic intensities."""
    x = [row["intensity"] for row in rows]
    ridge = sweep.peak / sweep.bandwidth
    low, high = min(*x, ridge) / 2, max(*x, ridge) * 2
    axes.plot([low, ridge, high], [low * sweep.bandwidth, sweep.peak, sweep.peak], color="#555555", linewidth=1)
    return x


def _measured_roof(axes, figure, sweep: Sweep, rows) -> None:
    x = _roofline(axes, sweep, rows)
    axes.scatter(x, [row["flops_per_second"] for row in rows], s=8, marker="x", color="#999999", linewidths=0.6)
    _coloured(axes, figure, rows, x, [row["flops"] / row["measured_seconds"] for row in rows], AXES[sweep.kind][0])
    axes.set_xlabel("arithmetic intensity of the iteration (FLOPs per byte)")
    axes.set_ylabel("FLOP/s: the model's FLOPs over its time")
    axes.set_yscale("log")
    axes.set_title("Measured under the roof")


def _measured_ratio(axes, figure, sweep: Sweep, rows) -> None:
    x = [row["seconds"] for row in rows]
    _coloured(axes, figure, rows, x, [row["measured_over_estimated"] for row in rows], AXES[sweep.kind][1])
    axes.set_yscale("log")
    axes.axhline(1, color="#444444", linewidth=0.8)
    middle = sweep.measured["median"]
    axes.axhline(middle, color="#444444", linewidth=0.8, linestyle="--")
    axes.annotate(f"median {middle:.3g}x", (0.99, middle), xycoords=("axes fraction", "data"), xytext=(0, 2),
                  textcoords="offset points", ha="right", fontsize=7, color="#333333")  # fmt: skip
    axes.set_xlabel("seconds of an iteration by the roofline")
    axes.set_ylabel("measured over estimated")
    axes.set_title("How far off")


def _coloured(axes, figure, rows, x, y, name: str) -> None:
    from matplotlib.colors import LogNorm

    values = [row[name] for row in rows]
    norm = LogNorm(min(values), max(values)) if min(values) < max(values) else None
    marks = axes.scatter(x, y, c=values, norm=norm, s=8, cmap="viridis", linewidths=0, alpha=0.8)
    axes.set_xscale("log")
    bar = figure.colorbar(marks, ax=axes, fraction=0.05)
    bar.set_label(name)
    shown = sorted(set(values))[:: max(1, len(set(values)) // 5)]
    bar.set_ticks(shown, labels=list(map(str, shown)))
    bar.minorticks_off()


def _weights(axes, sweep: Sweep) -> None:
    rows = sensitivity(sweep)
    places = range(len(rows))
    for offset, key, colour in ((0.2, "log", "#0072B2"), (-0.2, "linear", "#E69F00")):
        label = f"of {'logarithms' if key == 'log' else 'numbers (as the paper)'}, R² {rows[0][f'{key}_r2']:.2f}"
        axes.barh([p + offset for p in places], [row[f"{key}_weight"] for row in rows], 0.38, color=colour, label=label)
    axes.set_yticks(places, [row["hyperparameter"] for row in rows])
    axes.invert_yaxis()
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlim(-1.05, 1.05)
    axes.set_xlabel("standardised regression weight")
    axes.set_title("What utilisation depends on")
    axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _speedups(axes, figure, rows, first: Sweep, second: Sweep, name: str) -> None:
    x = [row[f"{second.device}_samples_per_second"] for row in rows]
    _coloured(axes, figure, rows, x, [row["speedup"] for row in rows], name)
    for value, text in ((first.peak / second.peak, "peak"), (first.bandwidth / second.bandwidth, "bandwidth"), (1, "")):
        axes.axhline(value, color="#444444", linewidth=0.8, linestyle="--" if text else "-")
        if text:
            axes.annotate(f"{text} {value:.2f}x", (0.99, value), xycoords=("axes fraction", "data"), xytext=(0, 2),
                          textcoords="offset points", ha="right", fontsize=7, color="#333333")  # fmt: skip
    axes.set_xlabel(f"samples per second on {second.device}")
    axes.set_ylabel(f"{first.device} over {second.device}")
    axes.set_title(f"Coloured by {name}")
