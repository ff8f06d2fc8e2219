"""Tables of NVIDIA Nsight Systems: ``nsys stats --format csv --report NAME``.

Four reports are read, known by their columns; names before 2022.4 in brackets:

- nvtx_pushpop_trace (nvtxpptrace): ``Start (ns),End (ns),Duration (ns),...,Name,PID,TID,Lvl,...``
- nvtx_sum, nvtx_pushpop_sum (nvtxsum, nvtxppsum): ``Time (%),Total Time (ns),Instances,...,Range``
- cuda_gpu_trace (gputrace): ``Start (ns),Duration (ns),CorrId,...,Name``
- cuda_gpu_kern_sum (gpukernsum): ``Time (%),Total Time (ns),Instances,...,Name``

Source: "Statistical Reports Shipped With Nsight Systems" in docs.nvidia.com/nsight-systems/AnalysisGuide.
``--timeunit`` changes the unit in the headings, which is why it is read from there.
"""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from pathlib import Path

from softnum.tta.text import count, csv_rows, lines_with, number
from softnum.tta.timings.kernels import Launch, group_launches, kernel_table
from softnum.tta.timings.ranges import Range, choose_ranges
from softnum.tta.timings.series import Options, Series
from softnum.tta.timings.whose import compared
from softnum.tta.workloads.products import read_product_name

__all__ = ["header_line", "read_nsys"]

_UNITS = {"ns": -9, "nsec": -9, "us": -6, "usec": -6, "µs": -6, "ms": -3, "msec": -3, "s": 0, "sec": 0}
_HEADING = re.compile(r"(Start|Total Time) ?\(")
_TIME = re.compile(r"(start|end|duration|total time) ?\((\w+)\)")
_COPY = re.compile(r"\[CUDA mem(cpy|set)\b")
_REPORTS = "nvtx_pushpop_trace, nvtx_sum, cuda_gpu_trace or cuda_gpu_kern_sum"
_HOW = f"expected a table of {_REPORTS}, made by: nsys stats --report NAME --format csv"


def header_line(text: str) -> tuple[int, dict[str, int]] | None:
    """Return the line of the headings, and the column of each heading; None where there are none."""
    for at, line in lines_with(_HEADING, text):
        cells = [cell.strip().strip('"').lower() for cell in line.split(",")]
        if {"start", "total time"} & {match[1] for match in map(_TIME.fullmatch, cells) if match}:
            return at, {cell: column for column, cell in reversed(list(enumerate(cells)))}
    return None


class _Table:
    """Rows under a heading, with times in seconds."""

    def __init__(self, path: Path, text: str):
        found = header_line(text)
        if found is None:
            raise ValueError(f"{path}, line 1: no headings of Nsight Systems; {_HOW}")
        self.path, (self.header, names) = path, found
        self.columns: dict[str, tuple[int, int]] = {}  # by heading: column, power of ten of its unit
        for name, column in names.items():
            match = _TIME.fullmatch(name)
            if match and match[2] not in _UNITS:
                raise ValueError(f"{path}, line {self.header}: the unit of {name!r} is none of {', '.join(_UNITS)}")
            if column >= len(names):
                raise ValueError(f"{path}, line {self.header}: a heading appears twice; expected a single report")
            self.columns[match[1] if match else name] = (column, _UNITS[match[2]] if match else 0)
        self.rows = []
        if not text.endswith("\n"):
            raise ValueError(
                f"{path}, line {text.count(chr(10)) + 1}: the file stops here without the end of the line: it is cut "
                "off; export it again"
            )
        for line, cells in csv_rows(path, text, what="a table of nsys stats", first=self.header + 1):
            if len(cells) != len(names):
                raise ValueError(
                    f"{path}, line {line}: {len(cells)} cells under {len(names)} headings; is it cut off, or a second "
                    "report? Expected one report in the file"
                )
            self.rows.append((line, cells))
        if not self.rows:
            raise ValueError(f"{path}, line {self.header}: no rows under the headings; nothing was recorded; {_HOW}")

    def has(self, *names: str) -> bool:
        return all(name in self.columns for name in names)

    def cell(self, row: tuple[int, list[str]], name: str) -> str:
        return row[1][self.columns[name][0]]

    def time(self, row: tuple[int, list[str]], name: str) -> Fraction:
        exact = number(f"{self.path}, line {row[0]}", name, self.cell(row, name), positive=False)
        return exact * Fraction(10) ** self.columns[name][1]

    def count(self, row: tuple[int, list[str]], name: str) -> int:
        return count(f"{self.path}, line {row[0]}", name, self.cell(row, name))


def read_nsys(path: Path, text: str, options: Options) -> list[Series]:
    """Read one report of one design."""
    table = _Table(path, text)
    if table.has("start", "end", "duration", "name"):
        read, report = _range_trace, "nvtx_pushpop_trace"
    elif table.has("start", "duration", "name", "corrid"):
        read, report = _gpu_trace, "cuda_gpu_trace"
    elif table.has("total time", "instances", "range"):
        read, report = _range_sum, "nvtx_sum"
    elif table.has("total time", "instances", "name"):
        read, report = _kernel_sum, "cuda_gpu_kern_sum"
    else:
        raise ValueError(f"{path}, line {table.header}: headings of a report that gives no time of iterations; {_HOW}")
    return [read(table, options, f"Nsight Systems {report} {path}")]


def _range_trace(table: _Table, options: Options, source: str) -> Series:
    ranges = []
    for row in table.rows:
        start, end, duration = (table.time(row, name) for name in ("start", "end", "duration"))
        if end - start != duration:
            raise ValueError(f"{table.path}, line {row[0]}: Duration is not End - Start; was the table edited?")
        track = tuple(table.cell(row, name) for name in ("pid", "tid") if table.has(name))
        ranges.append(Range(table.cell(row, "name"), row[0], start, duration, track))
    chosen, said = choose_ranges(str(table.path), ranges, options)
    return Series(
        options.design,
        [part.seconds for part in chosen],
        "measured",
        source,
        {
            "iterations": said,
            "column": "'Duration'",
            "time": "from the beginning to the end of each range, on the host",
        },
    )


def _gpu_trace(table: _Table, options: Options, source: str) -> Series:
    rows = sorted(((table.time(row, "start"), row) for row in table.rows), key=lambda item: (item[0], item[1][0]))
    shape = [name for name in table.columns if name.startswith(("grd", "blk", "bytes"))]
    launches = [
        Launch(table.cell(row, "name"), row[0], table.time(row, "duration"), tuple(table.cell(row, n) for n in shape))
        for _, row in rows
    ]
    starts = {launch.line: start for launch, (start, _) in zip(launches, rows, strict=True)}
    kernels = [launch for launch in launches if not _COPY.match(launch.name)]
    if kernels and all(read_product_name(launch.name) is not None for launch in kernels):
        return _products(table, kernels, len(launches) - len(kernels), options, source)
    groups, said = group_launches(str(table.path), launches, options)
    first = [starts[group[0].line] for group in groups]
    if len(groups) > 1:
        seconds = [after - before for before, after in itertools.pairwise(first)]
        time = (
            "from the first operation of an iteration to that of the next; the last iteration, after which none "
            "begins, is left out"
        )
        column = "'Start'"
    else:
        seconds = [max(starts[launch.line] + launch.seconds for launch in groups[0]) - first[0]]
        time = "from the beginning of the first operation to the end of the last"
        column = "'Start' and 'Duration'"
    used = [launch for group in groups for launch in group]
    return Series(
        options.design,
        seconds,
        "measured",
        source,
        {
            "iterations": said,
            "column": column,
            "time": time,
            **compared(str(table.path), [(launch.name, launch.line) for launch in launches], options),
            "launches": len(used),
            "kernels": kernel_table(used),
        },
    )


def _products(table: _Table, kernels: list[Launch], copies: int, options: Options, source: str) -> Series:
    """The times of a program that `softnum.tta.programs.export_program` wrote, less copies and the checks between."""
    groups, said = group_launches(str(table.path), kernels, options)
    used = [launch for group in groups for launch in group]
    time = (
        "sum of the kernels' times, which run one after another; the gaps, in which the host checks results, left out"
    )
    return Series(
        options.design,
        [sum((launch.seconds for launch in group), Fraction(0)) for group in groups],
        "measured",
        source,
        {
            "iterations": said,
            "column": "'Duration'",
            "time": f"{time}, and {copies} copies of operands and results" if copies else time,
            **compared(str(table.path), [(launch.name, launch.line) for launch in kernels], options),
            "launches": len(used),
            "kernels": kernel_table(used),
        },
    )


def _range_sum(table: _Table, options: Options, source: str) -> Series:
    path = table.path
    names = {table.cell(row, "range"): row for row in table.rows}
    if options.marker is None and len(names) > 1:
        raise ValueError(
            f"{path}, line {table.header}: {len(names)} ranges ({', '.join(map(repr, list(names)[:8]))}); say which is "
            "an iteration with --marker"
        )
    rows = [row for name, row in names.items() if options.marker is None or options.marker.search(name)]
    if len(rows) != 1:
        raise ValueError(
            f"{path}, line {table.header}: {len(rows)} ranges match --marker '{options.marker.pattern}' where one has "
            "to; ranges with a number each are read from nvtx_pushpop_trace"
        )
    (row,) = rows
    times = table.count(row, "instances")
    if options.iterations not in (None, times):
        raise ValueError(
            f"{path}, line {row[0]}: {times} instances where --iterations says {options.iterations}; leave it out"
        )
    total = table.time(row, "total time")
    said = f"{times} instances of the range {table.cell(row, 'range')!r}"
    return Series(
        options.design,
        [total / times],
        "measured",
        source,
        {
            "iterations": said,
            "column": "'Total Time' over 'Instances'",
            "time": "mean over the instances, from the beginning to the end of each, on the host",
        },
        times,
        ordered=False,
    )


def _kernel_sum(table: _Table, options: Options, source: str) -> Series:
    if options.iterations is None:
        raise ValueError(
            f"{table.path}, line {table.header}: sums over the whole recording; state how many iterations it covers "
            "with --iterations, or export cuda_gpu_trace"
        )
    total, kernels = Fraction(0), []
    for row in table.rows:
        times = table.count(row, "instances")
        if times % options.iterations:
            raise ValueError(
                f"{table.path}, line {row[0]}: {times} launches of {table.cell(row, 'name')!r} are not the same number "
                f"in each of {options.iterations} iterations; record whole iterations only, or export cuda_gpu_trace"
            )
        seconds = table.time(row, "total time")
        total += seconds
        kernels.append({"kernel": table.cell(row, "name"), "launches": times, "seconds": float(seconds)})
    return Series(
        options.design,
        [total / options.iterations],
        "measured",
        source,
        {
            "iterations": f"{options.iterations} iterations, as stated",
            "column": "'Total Time'",
            "time": "sum of the kernels' times: without gaps and copies, and with what overlaps counted twice",
            "kernels": kernels,
        },
        options.iterations,
        ordered=False,
    )
