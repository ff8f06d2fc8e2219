"""Times of Nsight Compute: the sum of the kernels' times in each iteration, of the metric gpu__time_duration.sum."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from softnum.tta.timings.kernels import Launch, group_launches, kernel_table
from softnum.tta.timings.ncu_table import DURATION, NcuTable, header_line, read_ncu_table, seconds
from softnum.tta.timings.series import Options, Series
from softnum.tta.timings.whose import compared

__all__ = ["header_line", "ncu_launches", "read_ncu"]


def ncu_launches(path: Path, table: NcuTable) -> list[Launch]:
    """Launches of a table with their times, in its order."""
    return [Launch(each.kernel, each.line, seconds(path, each), each.grid) for each in table.launches]


def read_ncu(path: Path, text: str, options: Options) -> list[Series]:
    """Read the launches of one design: the sum of their times in each iteration."""
    table = read_ncu_table(path, text)
    launches = ncu_launches(path, table)
    groups, said = group_launches(str(path), launches, options)
    used = [launch for group in groups for launch in group]
    name = repr(DURATION[0])
    return [
        Series(
            options.design,
            [sum((launch.seconds for launch in group), Fraction(0)) for group in groups],
            "measured",
            f"Nsight Compute {path}",
            {
                "iterations": said,
                "column": name if table.wide else f"'Metric Value' of {name} (or {DURATION[1]!r})",
                "time": "sum of the kernels' times, each measured alone under the profiler, which by default holds the "
                "GPU at its base clock and empties its caches: without gaps, copies and overlap",
                **compared(str(path), [(launch.name, launch.line) for launch in launches], options),
                "launches": len(used),
                "kernels": kernel_table(used),
            },
        )
    ]
