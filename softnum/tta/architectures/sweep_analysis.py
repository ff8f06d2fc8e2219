"""What a sweep says: which hyper-parameters matter, where utilisation is high, which of two devices is faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from softnum.tta.architectures.paradnn import SWEEPS, Sweep

__all__ = ["AXES", "against", "heat_map", "sensitivity", "summary"]

_SIZES = {"fc": "nodes", "cnn-residual": "filters", "cnn-bottleneck": "filters"}
#: Kind -> the hyper-parameters of its heat map, and of the colours of its pictures: size, batch.
AXES = {kind: (_SIZES.get(kind, "embedding"), "batch") for kind in SWEEPS}


def _varying(sweep: Sweep, rows: Sequence[dict[str, Any]]) -> list[str]:
    return [name for name in sweep.hyperparameters if len({row[name] for row in rows}) > 1]


def _standardised(values: Sequence[float]):
    import numpy as np

    column = np.asarray(values, dtype=np.float64)
    spread = column.std()
    return (column - column.mean()) / spread if spread else column * 0


def sensitivity(sweep: Sweep, target: str = "utilisation") -> list[dict[str, Any]]:
    """How much each hyper-parameter moves a result: weights of a linear regression of the models that fit.

    All columns are standardised (mean 0, standard deviation 1), so that weights compare: one standard deviation of the
    hyper-parameter moves the result by so many of its own. Once of logarithms on logarithms, which suits ranges that
    double; once of the numbers themselves, as the paper does.

    Parameters
    ----------
    sweep : Sweep
    target : str
        A column of the sweep, such as "utilisation", "samples_per_second" or "flops_per_second".

    Returns
    -------
    list of dict
        For each hyper-parameter that varies ``hyperparameter``, ``log_weight``, ``linear_weight``; and in each row the
        share of the variance that the regression explains, ``log_r2`` and ``linear_r2``. Rounded to six places.

    Raises
    ------
    ValueError
        If the sweep has no such column, or too few models fit.

    Examples
    --------
    >>> from softnum.tta.architectures import sweep
    >>> rows = sensitivity(sweep("fc", "tpu-v2", ranges={"inputs": [2000], "outputs": [1000]}))
    >>> [row["hyperparameter"] for row in sorted(rows, key=lambda row: -abs(row["log_weight"]))]
    ['batch', 'nodes', 'layers']
    """
    import numpy as np

    rows = sweep.fitting
    names = _varying(sweep, rows)
    if not rows or not isinstance(rows[0].get(target), (int, float)) or target == "fits":
        columns = [name for name, value in sweep.rows[0].items() if not isinstance(value, bool)]
        raise ValueError(
            f"sweep {sweep.kind} has no numbers {target!r} of models that fit; columns: {', '.join(columns)}"
        )
    if len(rows) <= len(names) + 1:
        raise ValueError(f"{len(rows)} models of sweep {sweep.kind} fit {sweep.device}: too few for a regression")
    found = []
    for scale in (math.log2, float):
        x = np.column_stack([_standardised([scale(row[name]) for row in rows]) for name in names])
        y = _standardised([scale(row[target]) for row in rows])
        weights, *_ = np.linalg.lstsq(x, y, rcond=None)
        rest = float(((y - x @ weights) ** 2).sum())
        found.append((weights, 1 - rest / float((y**2).sum()) if y.any() else 1.0))
    (logs, log_r2), (plain, linear_r2) = found
    return [
        {
            "hyperparameter": name, "log_weight": round(float(log), 6), "linear_weight": round(float(line), 6),
            "log_r2": round(log_r2, 6), "linear_r2": round(linear_r2, 6),
        }
        for name, log, line in zip(names, logs, plain, strict=True)
    ]  # fmt: skip


def heat_map(
    sweep: Sweep, size: str | None = None, batch: str = "batch", value: str = "utilisation"
) -> list[dict[str, Any]]:
    """The mean of a column over all models that fit, for each pair of values of two hyper-parameters.

    Parameters
    ----------
    sweep : Sweep
    size, batch : str
        The hyper-parameters. Default: nodes, filters or embedding, and batch.
    value : str
        The column.

    Returns
    -------
    list of dict
        Both hyper-parameters, the mean, and ``models``, of which it is; pairs that no model fits are left out.

    Examples
    --------
    >>> from softnum.tta.architectures import sweep
    >>> rows = heat_map(sweep("fc", "v100", ranges={"nodes": [32, 8192], "batch": [64, 16384]}))
    >>> [(row["nodes"], row["batch"], row["models"]) for row in rows]
    [(32, 64, 24), (32, 16384, 24), (8192, 64, 12), (8192, 16384, 8)]
    """
    size = size or AXES[sweep.kind][0]
    cells: dict[tuple[int, int], list[float]] = {}
    for row in sweep.fitting:
        cells.setdefault((row[size], row[batch]), []).append(row[value])
    return [{size: a, batch: b, value: fmean(cells[a, b]), "models": len(cells[a, b])} for a, b in sorted(cells)]


def against(first: Sweep, second: Sweep) -> list[dict[str, Any]]:
    """How much faster the first device is, model by model, where both fit.

    Parameters
    ----------
    first, second : Sweep
        Of the same kind.

    Returns
    -------
    list of dict
        Hyper-parameters, ``parameters``, samples per second of both, and ``speedup``, of the first over the second.

    Raises
    ------
    ValueError
        If the sweeps are of different models.

    Examples
    --------
    >>> from softnum.tta.architectures import sweep
    >>> some = {"layers": [4], "inputs": [2000], "outputs": [1000], "batch": [64, 16384]}
    >>> rows = against(sweep("fc", "tpu-v2", ranges=some), sweep("fc", "v100", ranges=some))
    >>> [f"{row['speedup']:.2f}" for row in rows if row["nodes"] == 8192]
    ['2.67', '1.49']
    """
    keys = [tuple(row[name] for name in sweep.hyperparameters) for sweep in (first, second) for row in sweep.rows]
    if first.kind != second.kind or keys[: len(first.rows)] != keys[len(first.rows) :]:
        raise ValueError(f"sweeps {first.kind} of {first.device} and {second.kind} of {second.device} differ in models")
    return [
        {
            **{name: a[name] for name in first.hyperparameters},
            "parameters": a["parameters"],
            f"{first.device}_samples_per_second": a["samples_per_second"],
            f"{second.device}_samples_per_second": b["samples_per_second"],
            "speedup": b["seconds"] / a["seconds"],
        }
        for a, b in zip(first.rows, second.rows, strict=True)
        if a["fits"] and b["fits"]
    ]


def summary(sweep: Sweep) -> dict[str, Any]:
    """A sweep in a row: models, how many fit, their parameters and utilisation, the share that is memory bound.

    Examples
    --------
    >>> from softnum.tta.architectures import sweep
    >>> summary(sweep("rnn", "tpu-v2"))["models"]
    720
    """
    rows = sweep.fitting
    values = sorted(row["utilisation"] for row in rows)
    return {
        "kind": sweep.kind, "device": sweep.device, "precision": sweep.precision, "models": len(sweep.rows),
        "fit": len(rows), "parameters": [min(r["parameters"] for r in rows), max(r["parameters"] for r in rows)],
        "utilisation": [values[0], median(values), values[-1]],
        "memory_bound": fmean(row["compute_bound"] < 0.5 for row in rows),
    } if rows else {
        "kind": sweep.kind, "device": sweep.device, "precision": sweep.precision, "models": len(sweep.rows), "fit": 0,
    }  # fmt: skip
