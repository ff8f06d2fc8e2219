"""Every format that times of iterations are read from, in one table, and the function that reads them."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.runtime.plain import plain
from softnum.tta.mllog import files_of, is_mllog, mllog_files
from softnum.tta.quantities import frequency
from softnum.tta.text import delimiter_of, read_text
from softnum.tta.timings import ncu, nsys
from softnum.tta.timings.astrasim import is_astrasim, read_astrasim
from softnum.tta.timings.chrome import read_chrome_trace
from softnum.tta.timings.gem5 import read_gem5
from softnum.tta.timings.gpgpusim import read_gpgpusim
from softnum.tta.timings.maestro import is_maestro, read_maestro
from softnum.tta.timings.mlperf import read_mlperf
from softnum.tta.timings.named import say_what_it_is
from softnum.tta.timings.series import Options, Series
from softnum.tta.timings.tables import FORMS, read_csv_table, read_json_table
from softnum.tta.timings.timeline import is_timeline, read_timeline
from softnum.tta.timings.timeloop import is_timeloop, read_timeloop
from softnum.tta.timings.warmup import iteration_time, mean_interval, warmup_rule
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import Workload

__all__ = ["FORMATS", "TimingFormat", "gather_timings", "read_timings"]


@dataclass(frozen=True)
class TimingFormat:
    """A format that times of iterations are read from.

    Parameters
    ----------
    name : str
        As ``--format`` names it.
    description : str
        What it is, in a line.
    source : str
        Where its layout is documented.
    tested_on : str
        What its reader is tested on: files captured from the tool, or written by us after the documented layout.
    read : callable
        Called with path, text and `Options`; returns a list of `Series`. ValueError for what it cannot read.
    knows : callable
        Called with the text; whether it is of this format.
    options : frozenset of str
        Which of "clock", "iterations", "marker" and "allow-unfinished" it uses.
    one_design : bool
        Whether a file is of one design, so that the name is the user's, or the file's.

    Examples
    --------
    >>> [name for name, entry in FORMATS.items() if entry.knows("iteration,seconds\\n1,0.5\\n")]
    ['csv']
    """

    name: str
    description: str
    source: str
    tested_on: str
    read: Callable[[Path, str, Options], list[Series]]
    knows: Callable[[str], bool]
    options: frozenset[Any] = frozenset()
    one_design: bool = True


def _first_line(text: str) -> str:
    lines = (line for line in text[:65536].split("\n") if line.strip() and not line.lstrip().startswith("#"))
    return next(lines, "")


def _is_csv(text: str) -> bool:
    line = _first_line(text)
    cells = [cell.strip().strip('"') for cell in line.split(delimiter_of(line))]
    return "iteration" in cells and bool({"seconds", "cycles"} & set(cells))


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] == "[" and not _is_trace(text) and not is_astrasim(text)


def _is_trace(text: str) -> bool:
    if text.lstrip()[:1] == "{":
        return re.search(r'"traceEvents"\s*:', text) is not None
    return text.lstrip()[:1] == "[" and re.search(r'"ph"\s*:\s*"', text[:65536]) is not None


def _is_gpgpusim(text: str) -> bool:
    return "GPGPU-Sim" in text and re.search(r"^(gpu_sim_cycle =|GPGPU-Sim )", text, re.MULTILINE) is not None


def _read_scalesim(path: Path, text: str, options: Options) -> list[Series]:
    from softnum.tta.simulators.scalesim_report import column_of, read_compute_report

    if options.clock is None:
        raise ValueError(f'{path}: SCALE-Sim counts cycles and states no clock; give the array\'s: --clock "1 GHz"')
    rows = read_compute_report(path, text=text)
    cycles = sum(row.cycles for row in rows)
    detail = {
        "cycles": cycles,
        "stall_cycles": sum(row.stalls for row in rows),
        "memory_included": rows[0].memory_included,
        "column": column_of(rows),
        "clock_hz": float(options.clock),
        "iterations": f"one iteration, of {len(rows)} GEMMs",
    }
    return [Series(options.design, [Fraction(cycles) / options.clock], "simulated", f"SCALE-Sim report {path}", detail)]


def _read_zigzag(path: Path, text: str, options: Options) -> list[Series]:
    from softnum.tta.simulators.zigzag_report import zigzag_sum

    if options.clock is None:
        raise ValueError(f'{path}: ZigZag counts cycles and states no clock; give the array\'s: --clock "1 GHz"')
    cycles, joules, detail = zigzag_sum(path, text)
    detail = {
        **detail,
        "column": "'latency'",
        "clock_hz": float(options.clock),
        "iterations": "one iteration, of the layers in the file",
    }
    seconds = [cycles / options.clock]
    return [Series(options.design, seconds, "simulated", f"ZigZag result {path}", detail, joules=[joules])]


def _is_zigzag(text: str) -> bool:
    from softnum.tta.simulators.zigzag_report import is_zigzag

    return is_zigzag(text)


_GROUPS = frozenset({"iterations", "marker"})
_WRITTEN = "files we wrote after the documented layout"

#: by name: what `read_timings` reads
FORMATS: dict[str, TimingFormat] = {
    entry.name: entry
    for entry in (
        TimingFormat(
            "csv",
            f"columns {FORMS}",
            "docs/reference/timings.md",
            "files of any origin; this is our own form",
            read_csv_table,
            _is_csv,
            frozenset({"clock"}),
            one_design=False,
        ),
        TimingFormat(
            "json",
            "a list of objects with the keys of csv",
            "docs/reference/timings.md",
            "files of any origin; this is our own form",
            read_json_table,
            _is_json,
            frozenset({"clock"}),
            one_design=False,
        ),
        TimingFormat(
            "gpgpusim",
            "log of GPGPU-Sim 3.x or 4.x, or of Accel-Sim: cycles of each kernel",
            "gpgpu_sim::gpu_print_stat in src/gpgpu-sim/gpu-sim.cc of gpgpu-sim_distribution",
            "a log captured from GPGPU-Sim 4.2.0; for 3.x and Accel-Sim, files we wrote after the documented layout",
            read_gpgpusim,
            _is_gpgpusim,
            _GROUPS | {"clock", "allow-unfinished"},
        ),
        TimingFormat(
            "gem5",
            "gem5's stats.txt, one dump an iteration",
            "src/base/stats/text.cc and src/sim/root.cc of gem5",
            _WRITTEN,
            read_gem5,
            lambda text: "---------- Begin Simulation Statistics" in text,
            frozenset({"iterations"}),
        ),
        TimingFormat(
            "nsys",
            "Nsight Systems: nvtx_pushpop_trace, nvtx_sum, cuda_gpu_trace, cuda_gpu_kern_sum as CSV",
            "docs.nvidia.com/nsight-systems/AnalysisGuide, Statistical Reports",
            _WRITTEN,
            nsys.read_nsys,
            lambda text: nsys.header_line(text) is not None,
            _GROUPS,
        ),
        TimingFormat(
            "ncu",
            "Nsight Compute: ncu --csv with gpu__time_duration.sum, a row a metric or --page raw",
            "docs.nvidia.com/nsight-compute/NsightComputeCli, Output Pages",
            _WRITTEN,
            ncu.read_ncu,
            lambda text: ncu.header_line(text) is not None,
            _GROUPS,
        ),
        TimingFormat(
            "chrome-trace",
            'timeline of PyTorch\'s profiler and others: {"traceEvents": [...]}, also .gz',
            "Trace Event Format, linked from github.com/catapult-project/catapult",
            "a file captured from VizTracer 1.1.1; for PyTorch, files we wrote after its layout",
            read_chrome_trace,
            lambda text: _is_trace(text) and not is_timeline(text),
            _GROUPS,
        ),
        TimingFormat(
            "tensorflow",
            "TensorFlow's timeline of a Session.run: the operations of one step, or of several merged ones",
            "tensorflow/python/client/timeline.py of github.com/tensorflow/tensorflow",
            _WRITTEN,
            read_timeline,
            lambda text: _is_trace(text) and is_timeline(text),
            frozenset({"iterations"}),
        ),
        TimingFormat(
            "mllog",
            "MLPerf training log, rounds 0.5 to 5.1: lines with :::MLLOG, :::MLL or :::MLPv0.5.0",
            "mlperf_logging/mllog of github.com/mlcommons/logging",
            "a file captured from mlperf-logging 4.1.68",
            read_mlperf,
            is_mllog,
            frozenset({"iterations"}),
        ),
        TimingFormat(
            "scalesim",
            "SCALE-Sim's COMPUTE_REPORT.csv of one iteration's GEMMs",
            "scalesim/compute of github.com/scalesim-project/SCALE-Sim",
            "files captured from SCALE-Sim 3.0.0, among them those shipped with softnum",
            _read_scalesim,
            lambda text: re.match(r"LayerID,\s*Total Cycles", text) is not None,
            frozenset({"clock"}),
        ),
        TimingFormat(
            "zigzag",
            "ZigZag's overall_simple.json, overall_complete.json or <layer>_complete.json: latency and energy",
            "CompleteSaveStage and SimpleSaveStage, zigzag/stages/results/save.py of KULeuven-MICAS/zigzag",
            "files captured from ZigZag 3.9.1",
            _read_zigzag,
            _is_zigzag,
            frozenset({"clock"}),
        ),
        TimingFormat(
            "timeloop",
            "Timeloop's timeloop-mapper.stats.txt, of one layer or several after another, or map+stats.xml of one",
            "src/model/topology.cpp, buffer.cpp and arithmetic.cpp of github.com/NVlabs/timeloop",
            _WRITTEN,
            read_timeloop,
            is_timeloop,
            frozenset({"clock"}),
        ),
        TimingFormat(
            "maestro",
            "MAESTRO's CSV file, a row for each layer: cycles and energy",
            "cost-model/include/design-space-exploration/DSE_csv_writer.hpp of github.com/maestro-project/maestro",
            _WRITTEN,
            read_maestro,
            is_maestro,
            frozenset({"clock", "iterations"}),
        ),
        TimingFormat(
            "astrasim",
            "log of ASTRA-sim: the cycles of every rank of a job, of which the slowest counts",
            "Workload::report and Statistics::report in astra-sim/workload of github.com/astra-sim/astra-sim",
            "logs captured from ASTRA-sim 518bd51 with the analytical network",
            read_astrasim,
            is_astrasim,
            frozenset({"iterations"}),
        ),
    )
}


@plain
def read_timings(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    clock: str | None = None,
    warmup: str | int = "auto",
    design: str | None = None,
    iterations: int | None = None,
    marker: str | None = None,
    allow_unfinished: bool = False,
    workload: Workload | None = None,
) -> dict[str, IterationTime]:
    """Read times of iterations from a file of a simulator, a profiler or a benchmark, or from a plain table.

    Parameters
    ----------
    path : path-like
        The file: UTF-8, or that in gzip.
    format : str, optional
        One of ``softnum.tta.timings.FORMATS``. Default: detected from the content; a file that fits no format, or two,
        is an error.
    clock : str, optional
        Frequency such as "1 GHz", for cycles in a file that states no clock.
    warmup : str or int
        "none"; how many iterations at the start to drop; or "auto", which drops by MSER-5 (White 1997; see
        `softnum.tta.timings.mser5`) where there are 20 samples or more.
    design : str, optional
        Name of the design. Default: the file's column, or for the file of a tool its name without the ending.
    iterations : int, optional
        How many training iterations the file covers, for formats that do not say.
    marker : str, optional
        A regular expression: the kernel that begins an iteration, or the range of time that is one.
    allow_unfinished : bool
        Whether to read a GPGPU-Sim log that stops inside a kernel up to the kernel before; the result says so.
    workload : Workload, optional
        The iteration that the file measures. Kernels named by their products, as `export_program` names them, are
        compared with it; it has no effect on files without such names.

    Returns
    -------
    dict of str to IterationTime
        Per design, in the order of first appearance: the mean in seconds over its iterations, the samples, how many
        were dropped, the 95 % interval of the mean (Student's t), and in `detail` how iterations were told apart.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not of a known format, malformed or unfinished; the message names the file, the line, what was expected
        and the way out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "times.csv")
    >>> _ = file.write_text("design,iteration,cycles\\nbase,1,8000\\nbase,2,10000\\n")
    >>> time = read_timings(file, clock="1 GHz")["base"]
    >>> time.seconds, time.samples
    (9e-06, (8e-06, 1e-05))
    >>> folder.cleanup()
    """
    path, rule = Path(path), warmup_rule(warmup)
    missing = (
        f"no timing file {str(path)!r}; expected a CSV or JSON file with {FORMS}, or a file of a tool "
        f"({', '.join(FORMATS)}); leave it out to use the SCALE-Sim reports"
    )
    text = read_text(path, missing, mixed=is_mllog)
    chosen = _format(path, text, format)
    options = _options(path, chosen, clock, design, iterations, marker, allow_unfinished, workload)
    return {series.design: iteration_time(series, rule) for series in chosen.read(path, text, options)}


def gather_timings(
    sources: Iterable[str | os.PathLike[str] | tuple[str | None, str | os.PathLike[str]]],
    *,
    workloads: Mapping[str, Workload] | None = None,
    **options: Any,
) -> dict[str, IterationTime]:
    """Read the times of several designs from several files.

    Parameters
    ----------
    sources : iterable of path-like, or of (str or None, path-like)
        Files; or the name of a design and its file. ``NAME=FILE`` as one string is read so too, where there is no file
        of that whole name. Several MLPerf logs of a design, or a folder of them, are repetitions: a sample is then the
        mean of one log.
    workloads : mapping of str to Workload, optional
        By the name of a design, the iteration that its file is of, as `workload` of `read_timings`.
    **options
        As for `read_timings`, for all of them; without `design`.

    Returns
    -------
    dict of str to IterationTime
        In the order of the files.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_timings`; or if two files have times of one design.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "ab":
    ...         _ = Path(folder, f"{name}.csv").write_text("iteration,seconds\\n1,0.5\\n")
    ...     list(gather_timings([f"base={folder}/a.csv", ("fast", f"{folder}/b.csv")]))
    ['base', 'fast']
    """
    times: dict[str, list[IterationTime]] = {}
    for source in sources:
        design, path = source if isinstance(source, tuple) else _named(source)
        files = _logs(Path(path)) if Path(path).is_dir() else [path]
        for file in files:
            name = Path(path).name if design is None and Path(path).is_dir() else design
            if workloads is not None:
                options["workload"] = workloads.get(_called(file) if name is None else name)
            for found, time in read_timings(file, design=name, **options).items():
                others = times.setdefault(found, [])
                if others and not _repeat(others[0], time):
                    raise ValueError(
                        f"{file}: times of design {found!r}, of which {others[0].source} gives some too; name one file "
                        "for each design: NAME=FILE"
                    )
                others.append(time)
    return {name: found[0] if len(found) == 1 else _pooled(found) for name, found in times.items()}


def _logs(folder: Path) -> list[Path]:
    """The MLPerf logs of a folder; an error if it has none, or files of other formats beside them."""
    logs, files = mllog_files(folder), files_of(folder)
    if not files:
        raise FileNotFoundError(f"the folder {str(folder)!r} has no files in it; name a file of times")
    others = [(file, entry) for file in files if file not in logs for entry in _known(folder / file)]
    if not logs:
        told = ", ".join(f"{file.name} ({entry})" for file, entry in others[:3]) or ", ".join(f.name for f in files[:3])
        raise FileNotFoundError(f"no MLPerf log in the folder {str(folder)!r}, but {told}; name the files: NAME=FILE")
    if others:
        file, entry = others[0]
        raise ValueError(
            f"{folder}: holds the MLPerf log {logs[0].name}, and {file.name}, which is {entry}: a folder is of one "
            "design's MLPerf logs; name the files: NAME=FILE"
        )
    return logs


def _known(path: Path) -> list[str]:
    text = read_text(path, "", mixed=lambda text: True)
    return [name for name, entry in FORMATS.items() if entry.knows(text)][:1]


def _repeat(first: IterationTime, other: IterationTime) -> bool:
    """Whether two times are of repetitions: of two MLPerf logs, which count alike."""
    units = [(time.detail or {}).get("unit") for time in (first, other)]
    return first.source != other.source and units[0] is not None and units[0] == units[1]


def _pooled(times: list[IterationTime]) -> IterationTime:
    """One time of several runs: a sample is the mean of a run."""
    first, means = times[0], tuple(time.seconds for time in times)
    detail = dict(first.detail) | {
        "iterations": f"{first.detail['iterations']} (of the first of {len(times)} logs)",
        "warmup": "in each log by itself",
        "logs": [time.source for time in times],
        "intervals": sum(time.detail["intervals"] for time in times),
    }
    detail.pop("warmup_seconds", None)
    detail.pop("iterations_per_sample", None)
    return IterationTime(
        first.design,
        float(sum(map(Fraction, means)) / len(means)),
        sum(time.iterations for time in times),
        first.source,
        detail,
        samples=means,
        dropped=sum(time.dropped for time in times),
        interval=mean_interval(means),
        kind=first.kind,
    )


def _named(source: str | os.PathLike[str]) -> tuple[str | None, str | os.PathLike[str]]:
    name, equals, path = str(source).partition("=")
    return (name, path) if name and equals and not Path(source).exists() else (None, source)


def _called(path: str | os.PathLike[str]) -> str:
    return Path(Path(path).name.removesuffix(".gz")).stem


def _format(path: Path, text: str, name: str | None) -> TimingFormat:
    if name is not None:
        if name not in FORMATS:
            near = difflib.get_close_matches(name, FORMATS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"unknown format {name!r}; {hint}The formats are {', '.join(FORMATS)}")
        return FORMATS[name]
    found = [entry for entry in FORMATS.values() if entry.knows(text)]
    if not found or found == [FORMATS["json"]]:  # a console's "[3/8] ..." begins as a list does
        say_what_it_is(path, text)
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        raise ValueError(
            f"{path}: may have any of the formats {', '.join(entry.name for entry in found)}; state one with --format"
        )
    if path.suffix.lower() in (".csv", ".json"):  # so that what is wrong with a plain table is said
        return FORMATS[path.suffix.lower()[1:]]
    raise ValueError(
        f"{path}, line 1: of no known format: {_first_line(text)[:60]!r}; say which with --format: {', '.join(FORMATS)}"
    )


def _options(
    path: Path,
    chosen: TimingFormat,
    clock: object,
    design: object,
    iterations: object,
    marker: object,
    allow_unfinished: bool,
    workload: Workload | None,
) -> Options:
    given: dict[str, object] = {"clock": clock, "iterations": iterations, "marker": marker}
    given |= {"allow-unfinished": allow_unfinished or None}
    for option, value in given.items():
        if value is not None and option not in chosen.options:
            users = [entry.name for entry in FORMATS.values() if option in entry.options]
            raise ValueError(
                f"{path}: --{option} is not for the format {chosen.name}, only for {', '.join(users)}; leave it out"
            )
    if iterations is not None and (isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1):
        raise ValueError(f"iterations must be a whole number of at least 1, got {iterations!r}")
    try:
        pattern = None if marker is None else re.compile(marker)
    except re.error as error:
        raise ValueError(
            f"marker {marker!r} is not a regular expression ({error}); write \\ before . ( [ + * ?"
        ) from None
    if design is None and chosen.one_design:
        design = _called(path)
    return Options(
        None if clock is None else frequency(clock, "--clock"), design, iterations, pattern, allow_unfinished, workload
    )
