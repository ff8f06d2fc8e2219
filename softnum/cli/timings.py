"""``softnum timings``: times of iterations out of the files of simulators, profilers and benchmarks."""

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file
from softnum.cli.options import CLOCK, OUT_TIMES

__all__ = ["TimingFiles", "register"]


@dataclass(frozen=True)
class TimingFiles:
    """Options of a command that takes times from files, in the order of its help; see `softnum.cli.updates`."""

    timings: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="File with times per iteration, in place of SCALE-Sim's reports; may be given again.",
        ),
    ] = None
    clock: Annotated[str | None, typer.Option(help=CLOCK)] = None
    timings_format: Annotated[
        str | None,
        typer.Option(help=("Format of the timings; softnum timings --formats lists them.  [default: detected]")),
    ] = None
    timings_warmup: Annotated[
        str, typer.Option(help="Iterations to drop: none, a number, or auto (MSER-5, from 20 samples on).")
    ] = "auto"
    timings_iterations: Annotated[
        int | None, typer.Option(help="How many iterations each timing file covers, if it does not say.")
    ] = None
    timings_marker: Annotated[
        str | None, typer.Option(help="Regular expression: what begins an iteration in a timing file.")
    ] = None
    timings_allow_unfinished: Annotated[
        bool,
        typer.Option(
            "--timings-allow-unfinished", help=("Read an incomplete simulator log, up to the kernel in which it stops.")
        ),
    ] = False

    def reading(self) -> dict:
        """Them as keywords of `softnum.tta.study_variants`; ValueError where files are missing."""
        if not self.timings:
            for field in dataclasses.fields(self)[1:]:
                if getattr(self, field.name) != field.default:
                    option = field.name.replace("_", "-")
                    raise ValueError(f"--{option} is for timing files; add --timings, or leave it out")
        return {
            "timings": self.timings or None,
            "clock": self.clock,
            "format": self.timings_format,
            "warmup": self.timings_warmup,
            "iterations": self.timings_iterations,
            "marker": self.timings_marker,
            "allow_unfinished": self.timings_allow_unfinished,
        }


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("timings", short_help="Read times per iteration from simulators' and profilers' files.")(
        exit_codes(timings)
    )


def timings(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=]FILE...", help="Files of times, one for each design.")
    ] = None,
    formats: Annotated[bool, typer.Option("--formats", help="List the formats and exit.")] = False,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="Format of the files; --formats lists them.  [default: detected]"),
    ] = None,
    clock: Annotated[str | None, typer.Option(help=CLOCK)] = None,
    warmup: Annotated[
        str, typer.Option(help="Iterations at the start to drop: none, a number, or auto (MSER-5, from 20 samples on).")
    ] = "auto",
    design: Annotated[
        str | None, typer.Option(help="Name of the design, for one file.  [default: its column, else the file's name]")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="How many training iterations each file covers, if it does not say.")
    ] = None,
    marker: Annotated[
        str | None,
        typer.Option(help="Regular expression: the kernel that begins an iteration, or the range that is one."),
    ] = None,
    allow_unfinished: Annotated[
        bool,
        typer.Option(
            "--allow-unfinished", help=("Read an incomplete simulator log, up to the kernel in which it stops.")
        ),
    ] = False,
    workload: Annotated[
        Path | None,
        typer.Option(help="workloads.json of softnum workloads or softnum tta: kernels' names are compared with it."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help=OUT_TIMES)] = None,
) -> None:
    """Print the time of an iteration under each design, with its 95 % confidence interval.

    \b
      softnum timings base=v100.log fast=mine.log --iterations 10   GPGPU-Sim or Accel-Sim
      softnum timings base=mine.log --workload gemms/workloads.json  of a program of softnum workloads
      softnum timings m5out/stats.txt --design base                 gem5
      softnum timings base=trace.json --marker '^train_step'        PyTorch's profiler and others
      softnum timings base=run.log --out times.csv                  MLPerf's logs, or a folder of them
      softnum tta --designs base,fast --timings times.csv

    The table says how iterations were told apart: read it before you believe the times.
    """
    from softnum.tta import gather_timings, write_timings

    if formats:
        _print_formats()
        return
    if not files:
        raise ValueError(
            "name a file, as in: softnum timings base=run.log; softnum timings --formats lists the formats"
        )
    need("scipy")
    if out is not None:
        writable_file(out)
    sources: list = list(files)
    if design is not None:
        if len(files) > 1:
            raise ValueError(
                f"--design names the design of one file, and there are {len(files)}; write NAME=FILE for each"
            )
        sources = [(design, files[0])]
    times = gather_timings(
        sources, format=file_format, clock=clock, warmup=warmup, iterations=iterations, marker=marker,
        allow_unfinished=allow_unfinished, **({} if workload is None else _compared(workload)),
    )  # fmt: skip
    _print_times(list(times.values()), compared=workload is not None)
    if out is not None:
        write_timings(out, times.values())
        typer.echo(f"\nWritten: {out}{_read_back(out, times)}")


def _compared(path: Path) -> dict:
    """The workloads of a file as a keyword of `gather_timings`: the only one for all designs, or each for its own."""
    from softnum.tta import read_workloads

    works = read_workloads(path)
    if len(works) == 1:
        return {"workload": works[0]}
    named = {work.design: work for work in works}
    if len(named) < len(works):
        raise ValueError(
            f"{path}: holds several workloads of one design; give a file with one, as softnum workloads writes it"
        )
    return {"workloads": named}


def _read_back(out: Path, times: dict) -> str:
    """What to say to get the same times from the file: it has the dropped iterations too, and no rule."""
    from softnum.tta import gather_timings

    again = gather_timings([out])
    if all(again[name].samples == time.samples for name, time in times.items() if time.samples):
        return ""
    dropped = {len((time.detail or {}).get("warmup_seconds", ())) for time in times.values()}
    rule = f"--warmup {dropped.pop()}" if len(dropped) == 1 else "--warmup and one design a file"
    return f" (every iteration is in it: for the same times read it with {rule}, in softnum tta --timings-warmup)"


def _console():
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=110)


def _print_times(times: list, compared: bool = False) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from softnum.tta.quantities import format_seconds

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name, right in (("Design", 0), ("n", 1), ("Dropped", 1), ("Mean", 1), ("95 % interval", 1), ("Kind", 0)):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    joules = any(time.joules is not None for time in times)
    if joules:
        table.add_column("Energy", justify="right", no_wrap=True)
    table.add_column("Source", overflow="fold")
    for time in times:
        interval = "-" if time.interval is None else _interval(*time.interval)
        energy = ["-" if time.joules is None else f"{time.joules:.4g} J"] if joules else []
        cells = [
            time.design, str(time.iterations), str(time.dropped), format_seconds(time.seconds), interval, time.kind,
            *energy, time.source,
        ]  # fmt: skip
        table.add_row(*map(Text, cells))
    console = _console()
    console.print(table)
    for key, title in (
        ("iterations", "Iterations"), ("column", "Column"), ("time", "Time"), ("network", "Network"),
        ("warmup", "Warm-up"), ("hint", "Hint"), ("unlike", "Warning"),
    ):  # fmt: skip
        said: dict[str, list[str]] = {}
        for time in times:
            text = (time.detail or {}).get(key)
            if key == "network" and compared and not text:
                text = "warning: nothing in such a file can be compared with --workload"
            if text and (key != "warmup" or time.dropped or len(time.samples) > 1):
                said.setdefault(text, []).append(time.design)
        for text, designs in said.items():
            whose = "" if len(said) == 1 else f" ({', '.join(designs)})"
            console.print(f"{title}{whose}: {text}.", highlight=False, markup=False)


def _interval(low: float, high: float) -> str:
    """Both ends in one unit, to two digits of the width."""
    from softnum.tta.quantities import SCALES

    middle, half = (low + high) / 2, (high - low) / 2
    scale, unit = next(((size, name) for size, name in SCALES if middle >= size), SCALES[-1])
    digits = 0 if not half else min(9, max(0, 1 - math.floor(math.log10(half / scale))))
    return f"{low / scale:.{digits}f} to {high / scale:.{digits}f} {unit}"


def _print_formats() -> None:
    from softnum.tta.timings import FORMATS

    for entry in FORMATS.values():
        options = ", ".join(f"--{name}" for name in sorted(entry.options)) or "none"
        typer.echo(
            f"{entry.name}\n    {entry.description}\n    layout: {entry.source}\n    tested on: {entry.tested_on}\n"
            f"    options: {options}"
        )
