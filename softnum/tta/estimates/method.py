"""From matrix products to passes, iterations, epochs, runs and units of work a day: the lecture's method.

Learning Systems 2018, lecture 10, slide Method for Estimating Performance Ratio.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.runtime.plain import plain
from softnum.tta.estimates.device_files import Device
from softnum.tta.estimates.gemm_tables import FARTHEST, GemmEstimate, GemmTable
from softnum.tta.estimates.rooflines import roofline
from softnum.tta.quantities import positive_int
from softnum.tta.text import number, read_text, table_rows
from softnum.tta.workloads.hardware import PASSES
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import Workload

__all__ = ["RollUp", "matrix_share", "roll_up"]

_DAY = 86400


@dataclass(frozen=True)
class RollUp:
    """An iteration's time from times of its matrix products, and what follows from it.

    Parameters
    ----------
    network, design : str
    batch : int
        Samples of an iteration.
    gemms : tuple of GemmEstimate
        In the workload's order.
    other : float
        Seconds of everything that is no matrix product.
    other_rule : str
        Where that comes from.
    source : str
        Where the times of matrix products come from.
    samples : int or None
        Training samples of an epoch.
    epochs : int
        Of a run.
    nodes : int
        Machines that each do runs of their own.

    Examples
    --------
    >>> from softnum.tta import Gemm
    >>> from softnum.tta.estimates import GemmTable, GemmTime
    >>> table = GemmTable((GemmTime(32, 10, 128, 1e-4),))
    >>> one = table.estimate(Gemm("fc", "forward", 32, 10, 128, 32, ("binary32",)))
    >>> run = RollUp("mlp", "float32", 32, (one,), 1e-4, "half", samples=3200, epochs=10, nodes=4)
    >>> run.seconds, run.run_seconds, run.units_per_day
    (0.0002, 0.2, 1728000.0)
    """

    network: str
    design: str
    batch: int
    gemms: tuple[GemmEstimate, ...] = field(repr=False)
    other: float
    other_rule: str
    source: str = ""
    samples: int | None = None
    epochs: int = 1
    nodes: int = 1

    @property
    def passes(self) -> dict[str, float]:
        """Seconds of the matrix products of each pass."""
        return {name: math.fsum(each.seconds for each in self.gemms if each.gemm.phase == name) for name in PASSES}

    @property
    def seconds(self) -> float:
        """Seconds of an iteration."""
        return math.fsum([*(each.seconds for each in self.gemms), self.other])

    @property
    def iterations_per_epoch(self) -> int:
        """Batches that an epoch takes, the last of them perhaps smaller.

        Raises
        ------
        ValueError
            If the number of samples is not known.
        """
        if self.samples is None:
            raise ValueError("the number of samples per epoch is not known; give samples")
        return -(-self.samples // self.batch)

    @property
    def epoch_seconds(self) -> float:
        """Seconds of an epoch."""
        return self.seconds * self.iterations_per_epoch

    @property
    def run_seconds(self) -> float:
        """Seconds of a run."""
        return self.epoch_seconds * self.epochs

    @property
    def units_per_day(self) -> float:
        """Runs that all nodes together finish in a day."""
        return _DAY / self.run_seconds * self.nodes

    @property
    def time(self) -> IterationTime:
        """The iteration's time, of the kind "estimated"; its detail holds the matrix products and their rules."""
        return IterationTime(
            self.design, self.seconds, source=f"matrix products of {self.source}", detail=self.to_table(),
            kind="estimated",
        )  # fmt: skip

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values; what needs the samples of an epoch is left out where they are not known."""
        run = {}
        if self.samples is not None:
            run = {
                "iterations_per_epoch": self.iterations_per_epoch, "epoch_seconds": self.epoch_seconds,
                "epochs": self.epochs, "run_seconds": self.run_seconds, "nodes": self.nodes,
                "units_per_day": self.units_per_day,
            }  # fmt: skip
        return {
            "model": "matrix products", "network": self.network, "design": self.design, "batch": self.batch,
            "seconds": self.seconds, "passes": self.passes, "other_seconds": self.other, "other_rule": self.other_rule,
            "source": self.source, **run, "gemms": [each.to_table() for each in self.gemms],
        }  # fmt: skip


@plain
def roll_up(
    workload: Workload,
    table: GemmTable,
    *,
    share: float | None = None,
    device: Device | None = None,
    samples: int | None = None,
    epochs: int = 1,
    nodes: int = 1,
    farthest: float = FARTHEST,
) -> RollUp:
    """Estimate an iteration from a table of matrix products, and roll it up to epochs, runs and units a day.

    Parameters
    ----------
    workload : Workload
    table : GemmTable
        Times of matrix products on the machine that is asked about.
    share : float, optional
        Share of matrix products in an iteration's time, in (0, 1], from a profile (`matrix_share`): the rest of the
        iteration takes (1 - share) / share of their time.
    device : Device, optional
        In place of a share: the rest is bounded by this device's roofline. With neither, the rest counts as 0, and the
        result says so.
    samples, epochs, nodes : int
        Training samples of an epoch, epochs of a run, machines that each do runs of their own.
    farthest : float
        As of `GemmTable.estimate`.

    Returns
    -------
    RollUp

    Raises
    ------
    ValueError
        If the workload has no matrix product, the table has none near one of its sizes, or a number is out of range.

    Examples
    --------
    >>> from softnum.tta import load_reports, workload_of_gemms
    >>> from softnum.tta.estimates import GemmTable, GemmTime
    >>> work = workload_of_gemms(load_reports().designs["a-float32"], 32, "mlp")
    >>> table = GemmTable(tuple(GemmTime(*gemm.shape, 1e-5) for gemm in work.gemms))
    >>> round(roll_up(work, table, share=0.5, samples=1437, epochs=20).run_seconds, 12)
    0.09
    """
    gemms = tuple(table.estimate(gemm, farthest) for gemm in workload.gemms)
    if not gemms:
        raise ValueError(f"workload {workload.network!r} of design {workload.design!r} has no matrix product")
    if share is not None and device is not None:
        raise ValueError(
            "the time of the other operations comes from a share or from a device's roofline; give one of the two"
        )
    rest = tuple(operation for operation in workload.operations if operation.gemm is None)
    if share is not None:
        if not 0 < share <= 1:
            raise ValueError(f"the share of matrix products must lie in (0, 1], got {share}")
        products = math.fsum(each.seconds for each in gemms)
        other, rule = products / share - products, f"matrix products take {share:.4g} of an iteration"
    elif device is not None and rest:
        bounded = roofline(Workload(workload.network, workload.design, workload.batch, rest), device)
        other, rule = bounded.seconds, f"roofline of {device.title or device.name}"
    else:
        other, rule = 0.0, "left out" if rest else "the workload lists none"
    for what, value in (("samples", samples), ("epochs", epochs), ("nodes", nodes)):
        if value is not None:
            positive_int(value, what)
    source = f"{table.source} ({table.kind})" if table.source else table.kind
    return RollUp(
        workload.network, workload.design, workload.batch, gemms, other, rule, source, samples, epochs, nodes
    )  # fmt: skip


def matrix_share(path: str | os.PathLike[str], products: Iterable[str] = ("MatMul", "Conv2D")) -> float:
    """The share of matrix products in a profile of operations.

    Parameters
    ----------
    path : path-like
        CSV with the columns ``operation`` and ``time``, one operation a row; the unit of the times does not matter.
    products : iterable of str
        Operations that are matrix products: those whose name starts with one of these (Conv2DBackpropInput too).

    Returns
    -------
    float
        In (0, 1].

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is no such profile, or none of its operations is a matrix product; the message
        names file and line.

    Examples
    --------
    The profile of CANDLE's P1B3 in the lecture, where 40.21 % of the time are matrix products:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "p1b3.csv")
    ...     _ = file.write_text("operation,time\\nMatMul,115.52\\nAssign,73.65\\nrest,98.12\\n")
    ...     round(matrix_share(file), 4)
    0.4021
    """
    path, names = Path(path), tuple(products)
    text = read_text(path, f"no profile {str(path)!r}; expected CSV with the columns operation, time")
    total, matrix = [], []
    for where, row in table_rows(path, text, _check_profile, what="the columns operation, time"):
        seconds = float(number(where, "time", row["time"], positive=False))
        total.append(seconds)
        if row["operation"].startswith(names):
            matrix.append(seconds)
    if not math.fsum(matrix) > 0:
        raise ValueError(f"{path}: no operation that takes time starts with {' or '.join(names)}; name the products")
    return math.fsum(matrix) / math.fsum(total)


def _check_profile(where: str, header: list[str]) -> None:
    if sorted(header) != ["operation", "time"]:
        raise ValueError(f"{where}: expected the columns operation, time, got {', '.join(header)}")
