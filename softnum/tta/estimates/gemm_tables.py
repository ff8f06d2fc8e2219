"""Times of matrix products that somebody measured, and what they say of sizes that nobody did.

The lecture's method (Learning Systems 2018, lecture 10, Method for Estimating Performance Ratio) takes the sizes of a
network's matrix products from a profile, runs DeepBench on the target, or takes a simulator's times for the same sizes,
and extrapolates. A table here has DeepBench's columns: ``m, n, k, a_t, b_t, precision, time``.

Sizes are those of (M, K) @ (K, N) on arrays stored by rows, so that M of a layer's forward pass is the batch. DeepBench
calls BLAS on arrays stored by columns (cublasGemmEx in code/nvidia/gemm_bench.cu), where the same call has the batch as
N: the transposed product of the same memory. What gemm_bench prints is turned into ours as it is read.
"""

from __future__ import annotations

import csv
import io
import math
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.estimates.formats import PEAKS, choose_peak
from softnum.tta.quantities import positive_int, positive_number
from softnum.tta.text import read_text
from softnum.tta.workloads.hardware import Gemm

__all__ = ["FARTHEST", "GemmEstimate", "GemmTable", "GemmTime", "measure_gemms"]

#: How many times larger or smaller than a measured size, in M, N or K, an estimate may be without being refused.
FARTHEST = 8.0

_UNITS = {
    **dict.fromkeys(("s", "sec", "seconds"), Fraction(1)),
    **dict.fromkeys(("ms", "msec"), Fraction(1, 10**3)),
    **dict.fromkeys(("us", "usec", "µs"), Fraction(1, 10**6)),
    "ns": Fraction(1, 10**9),
}
_NAMES = {"a_trans": "a_t", "b_trans": "b_t"}
_PRECISIONS = {
    "float": "fp32", "float32": "fp32", "single": "fp32", "double": "fp64", "float64": "fp64", "half": "fp16",
    "float16": "fp16", "bfloat16": "bf16", "tensorfloat32": "tf32", **{name: name for name in PEAKS},
}  # fmt: skip
_EXPECTED = "m, n, k, a_t, b_t, precision, time (usec)"
#: How the names begin that gemm_bench prints, parted by blanks.
_PRINTED = ["m", "n", "k", "a_t", "b_t"]


@dataclass(frozen=True)
class GemmTime:
    """The time of one size: (M, K) @ (K, N).

    Parameters
    ----------
    m, n, k : int
        Sizes; K is the length of the sums.
    seconds : float
    precision : str
        A name of a device's rates: "fp32", "fp16", "int8", ...
    a_t, b_t : bool
        Whether an operand is stored transposed.

    Examples
    --------
    >>> GemmTime(1760, 128, 1760, 318e-6).rate > 2.4e12
    True
    """

    m: int
    n: int
    k: int
    seconds: float
    precision: str = "fp32"
    a_t: bool = False
    b_t: bool = False

    @property
    def rate(self) -> float:
        """FLOP/s that were reached."""
        return 2 * self.m * self.n * self.k / self.seconds


@dataclass(frozen=True)
class GemmEstimate:
    """What a table says of one matrix product.

    Parameters
    ----------
    gemm : Gemm
    seconds : float
        Of all `gemm.count` products together.
    rule : str
        "measured" if the size is in the table, "interpolated" inside of what was measured, "nearest" outside of it.
    distance : float
        Of "nearest", how many times larger or smaller the worst of M, N and K is than the size that stands in; else 1.
    precision : str
        The rows that were used.
    proxy : bool
        Whether that precision stands in for the operands' own.

    Examples
    --------
    >>> table = GemmTable((GemmTime(64, 64, 64, 1e-6), GemmTime(128, 64, 64, 2e-6)))
    >>> table.estimate(Gemm("fc", "forward", 64, 64, 64, 32, ("binary32",), count=3)).seconds
    3e-06
    """

    gemm: Gemm
    seconds: float
    rule: str
    distance: float
    precision: str
    proxy: bool

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **self.gemm.to_table(), "seconds": self.seconds / self.gemm.count, "rule": self.rule,
            "distance": self.distance, "precision": self.precision, "proxy": self.proxy,
        }  # fmt: skip


@dataclass(frozen=True)
class GemmTable:
    """Times of matrix products on one machine.

    Parameters
    ----------
    rows : tuple of GemmTime
    source : str
        A file, or what was measured.
    kind : str
        "given" of a file, "measured" of this machine.

    Examples
    --------
    >>> import tempfile
    >>> text = "m,n,k,a_t,b_t,precision,time (usec)\\n1760,16,1760,0,0,float,180\\n1760,32,1760,0,0,float,182\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "titan.csv")
    ...     _ = file.write_text(text)
    ...     table = GemmTable.read(file)
    >>> len(table.rows), table.rows[0].seconds, table.rows[0].precision
    (2, 0.00018, 'fp32')
    """

    rows: tuple[GemmTime, ...]
    source: str = ""
    kind: str = field(default="given")

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError(f"{self.source or 'the table'} holds no sizes; expected rows of {_EXPECTED}")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> GemmTable:
        """Read a CSV file, or what DeepBench's gemm_bench prints.

        Parameters
        ----------
        path : path-like
            A line with the names ``m n k`` and ``time``, and if wanted ``a_t b_t precision``, in any order, then a line
            for each size. Columns are parted by commas, or by blanks as gemm_bench prints them; lines before the names
            are its title. The unit of time stands in brackets: ``time (usec)``, ``time (ms)``, ``time (s)``. What
            gemm_bench prints (blanks, and names that begin ``m n k a_t b_t``) is of arrays stored by columns: there M
            and N, and `a_t` and `b_t`, are exchanged. A table with commas is taken as it is.

        Returns
        -------
        GemmTable

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is not such a table; the message names file, line, what was expected and the way out.
        """
        path = Path(path)
        text = read_text(path, f"no table of matrix products {str(path)!r}; expected lines of {_EXPECTED}")
        header: list[str] | None = None
        scale, rows, by_columns = Fraction(1), [], False
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path}, line {number}"
            cells = _cells(line, where)
            if not any(cells) or cells[0].startswith("#") or set(line.strip()) == {"-"}:
                continue
            if header is None:
                found = _header(cells, where)
                if found is not None:
                    header, scale = found
                    by_columns = "," not in line and cells[:5] == _PRINTED
                continue
            if by_columns and line.strip().startswith("Total kernels"):
                continue  # how many of int8 there are, and how many were padded
            if len(cells) != len(header):
                raise ValueError(
                    f"{where}: {len(cells)} cells where the header has {len(header)} ({', '.join(header)}); "
                    "a truncated line? Write the file again"
                )
            row = _row(dict(zip(header, cells, strict=True)), scale, where)
            if by_columns:
                row = replace(row, m=row.n, n=row.m, a_t=row.b_t, b_t=row.a_t)
            rows.append(row)
        if header is None:
            raise ValueError(f"{path}, line 1: no line names the columns; expected {_EXPECTED}")
        if not rows:
            raise ValueError(f"{path}: holds no sizes; expected lines of {_EXPECTED} after the names")
        return cls(tuple(rows), str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the CSV file that `read` reads back, whole or not at all."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["m", "n", "k", "a_t", "b_t", "precision", "time (s)"])
        for row in self.rows:
            writer.writerow([row.m, row.n, row.k, int(row.a_t), int(row.b_t), row.precision, repr(row.seconds)])
        write_atomic(path, out.getvalue())

    @cached_property
    def _models(self) -> dict[str, _Rates]:
        return {
            name: _Rates([row for row in self.rows if row.precision == name])
            for name in dict.fromkeys(row.precision for row in self.rows)
        }

    def estimate(self, gemm: Gemm, farthest: float = FARTHEST) -> GemmEstimate:
        """The time of one matrix product.

        A size that is in the table has its time, the mean if it is there several times (of the pass's own transposes,
        if any row has them). Any other size is computed at a rate of FLOP/s: inside the convex hull of the table's
        sizes, with (log M, log N, log K) as coordinates, the logarithm of the rate is interpolated linearly over
        simplices (Delaunay); outside, the rate of the nearest size stands in, near meaning the least of the largest
        ratios in M, N and K, then the least product of the three.

        Parameters
        ----------
        gemm : Gemm
        farthest : float
            Largest such ratio that is accepted.

        Returns
        -------
        GemmEstimate

        Raises
        ------
        ValueError
            If the nearest size is farther away, no precision in the table holds the operands, or `farthest` is below 1.
        """
        if not farthest >= 1:
            raise ValueError(f"farthest is how many times larger or smaller a size may be, from 1 up, got {farthest!r}")
        try:
            precision, proxy, _ = choose_peak(tuple(self._models), gemm.formats)
        except ValueError as error:
            raise ValueError(f"{self.source or 'the table'}: {gemm.layer} {gemm.phase}: {error}") from None
        found = self._models[precision].seconds(gemm, farthest)
        if found is None:
            far, near = self._models[precision].nearest(gemm.shape)
            other, turned = self._models[precision].nearest((gemm.n, gemm.m, gemm.k))
            hint = (
                f" (for arrays stored by columns, where {turned} is near it, exchange m and n, a_t and b_t)"
                if other <= farthest
                else ""
            )
            raise ValueError(
                f"{gemm.layer} {gemm.phase} is (M, N, K) = {gemm.shape}; the nearest size of "
                f"{self.source or 'the table'} in {precision} is {near}, {far:.3g} times away, and more than "
                f"{farthest:g} is no estimate; add a size near it to the table{hint}, or accept more with farthest"
            )
        seconds, rule, distance = found
        return GemmEstimate(gemm, seconds * gemm.count, rule, distance, precision, proxy)


class _Rates:
    """Rates over sizes of one precision."""

    def __init__(self, rows: Sequence[GemmTime]) -> None:
        by_size: dict[tuple[int, int, int], list[GemmTime]] = {}
        for row in rows:
            by_size.setdefault((row.m, row.n, row.k), []).append(row)
        self.rows = by_size
        # sorted, so that simplices do not depend on the order of a file's lines
        self.rates = {size: 2 * math.prod(size) / _mean(same) for size, same in sorted(by_size.items())}

    @cached_property
    def _interpolator(self):
        """Over the dimensions in which the table's sizes differ; None if they lie on a line or plane between axes."""
        import numpy as np

        sizes = np.log(np.array(list(self.rates), dtype=float))
        values = np.log(np.array(list(self.rates.values())))
        axes = [axis for axis in range(3) if len({size[axis] for size in self.rates}) > 1]
        if not axes:
            return None
        if len(axes) == 1:
            order = np.argsort(sizes[:, axes[0]])
            x, y = sizes[order, axes[0]], values[order]
            return axes, lambda at: float(np.interp(at[0], x, y, left=math.nan, right=math.nan))
        if len(self.rates) <= len(axes):
            return None
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError

        try:
            linear = LinearNDInterpolator(sizes[:, axes], values)
        except QhullError:  # all sizes on one line or plane
            return None
        return axes, lambda at: linear([at]).item()

    def nearest(self, shape: tuple[int, int, int]) -> tuple[float, tuple[int, int, int]]:
        """The largest ratio to the nearest size, and that size; ties go to the least product of ratios."""

        def distance(size):
            ratios = [max(a / b, b / a) for a, b in zip(shape, size, strict=True)]
            return max(ratios), math.prod(ratios), size

        ratio, _, size = min(map(distance, self.rates))
        return ratio, size

    def seconds(self, gemm: Gemm, farthest: float) -> tuple[float, str, float] | None:
        shape = gemm.shape
        if shape in self.rows:
            wanted = (gemm.phase == "backward_weight", gemm.phase == "backward_data")
            own = [row for row in self.rows[shape] if (row.a_t, row.b_t) == wanted]
            return _mean(own or self.rows[shape]), "measured", 1.0
        flops = 2 * math.prod(shape)
        if self._interpolator is not None:
            axes, at = self._interpolator
            fixed = [axis for axis in range(3) if axis not in axes]
            if all(shape[axis] == next(iter(self.rates))[axis] for axis in fixed):
                rate = at([math.log(shape[axis]) for axis in axes])
                if not math.isnan(rate):
                    return flops / math.exp(rate), "interpolated", 1.0
        distance, size = self.nearest(shape)
        if distance > farthest:
            return None
        return flops / self.rates[size], "nearest", distance


def _mean(rows: Sequence[GemmTime]) -> float:
    return math.fsum(row.seconds for row in rows) / len(rows)


def _cells(line: str, where: str) -> list[str]:
    if "," not in line:
        return line.replace("time (", "time(").split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True, strict=True))]
    except csv.Error as error:
        raise ValueError(f"{where}: not readable as CSV ({error}); expected {_EXPECTED}") from None


def _header(cells: list[str], where: str) -> tuple[list[str], Fraction] | None:
    """Names of the columns and the unit of time, or None if the line is none of names."""
    names = [_NAMES.get(cell.lower(), cell.lower().replace(" ", "")) for cell in cells]
    if not {"m", "n", "k"} <= set(names):
        return None
    times = [name for name in names if name.startswith("time") or name in ("seconds", "usec", "ms")]
    if len(times) != 1:
        raise ValueError(f"{where}: expected one column of time among {', '.join(names)}; like {_EXPECTED}")
    unit = times[0].removeprefix("time").strip("()")
    if unit not in _UNITS:
        raise ValueError(f"{where}: the column {times[0]!r} names no unit; write time (usec), time (ms) or time (s)")
    names = ["time" if name == times[0] else name for name in names]
    known = ["m", "n", "k", "a_t", "b_t", "precision", "time", "pad_kerenels"]  # the last as gemm_bench spells it
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: unknown column {name!r}; known columns: {', '.join(known)}")
        if names.count(name) > 1:
            raise ValueError(f"{where}: the column {name!r} appears twice; expected {_EXPECTED}")
    return names, _UNITS[unit]


def _row(cells: dict[str, str], scale: Fraction, where: str) -> GemmTime:
    sizes = []
    for name in ("m", "n", "k"):
        if not cells[name].isdecimal() or not cells[name].isascii() or len(cells[name]) > 15 or int(cells[name]) < 1:
            raise ValueError(f"{where}: {name} must be a whole number from 1 up, got {cells[name]!r}")
        sizes.append(int(cells[name]))
    flags = []
    for name in ("a_t", "b_t"):
        value = cells.get(name, "0").lower()
        if value not in ("0", "1", "n", "t", "false", "true"):
            raise ValueError(f"{where}: {name} must be 0 or 1 (N or T), got {cells[name]!r}")
        flags.append(value in ("1", "t", "true"))
    precision = cells.get("precision", "float").lower()
    if precision not in _PRECISIONS:
        raise ValueError(f"{where}: unknown precision {cells['precision']!r}; known: {', '.join(_PRECISIONS)}")
    try:
        time = float(cells["time"])
    except ValueError:
        time = math.nan
    if 0 < time < math.inf:
        time = float(Fraction(cells["time"]) * scale)
    if not 0 < time < math.inf:
        raise ValueError(f"{where}: the time must be a finite number above zero, got {cells['time']!r}")
    return GemmTime(*sizes, time, _PRECISIONS[precision], *flags)


def measure_gemms(
    sizes: Iterable[tuple[int, int, int]], *, repeats: int = 5, warmup: int = 2, precision: str = "fp32"
) -> GemmTable:
    """Time matrix products on this machine, with the BLAS that NumPy uses.

    Each size is computed `warmup` times unseen, then `repeats` times; the median counts. Short products are repeated
    within one sample until it lasts a millisecond. The only function of `softnum.tta` that looks at a clock.

    Parameters
    ----------
    sizes : iterable of (int, int, int)
        M, N and K of each.
    repeats, warmup : int
        Samples, and runs before them.
    precision : str
        "fp32" or "fp64".

    Returns
    -------
    GemmTable
        Of the kind "measured".

    Raises
    ------
    ValueError
        If a number is below 1 (`warmup` below 0), or NumPy's BLAS has no such precision.

    Examples
    --------
    >>> table = measure_gemms([(64, 64, 64), (128, 64, 64)], repeats=1, warmup=0)
    >>> table.kind, len(table.rows), table.rows[0].rate > 0
    ('measured', 2, True)
    """
    import platform
    import time

    import numpy as np

    positive_int(repeats, "repeats")
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    types = {"fp32": np.float32, "fp64": np.float64}
    if precision not in types:
        raise ValueError(f"precision must be one of {', '.join(types)} (what NumPy's BLAS computes), got {precision!r}")
    rows = []
    for m, n, k in sizes:
        for name, size in zip("mnk", (m, n, k), strict=True):
            positive_int(size, name)
        generator = np.random.Generator(np.random.Philox(key=0))
        a = generator.standard_normal((m, k)).astype(types[precision])
        b = generator.standard_normal((k, n)).astype(types[precision])
        out = np.empty((m, n), types[precision])

        def sample(times: int, a=a, b=b, out=out) -> float:
            start = time.perf_counter()
            for _ in range(times):
                np.matmul(a, b, out=out)
            return (time.perf_counter() - start) / times

        for _ in range(warmup):
            sample(1)
        inner = max(1, math.ceil(1e-3 / max(sample(1), 1e-9)))
        seconds = statistics.median(sample(inner) for _ in range(repeats))
        rows.append(GemmTime(m, n, k, float(positive_number(seconds, "time")), precision))
    source = f"NumPy {np.__version__} on {platform.processor() or platform.machine()}, median of {repeats}"
    return GemmTable(tuple(rows), source, "measured")
