"""``softnum counters``: what hardware counted, of kernels and layers beside the roofline, or of a processor."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import DeviceFile, OutJson
from softnum.cli.tables import print_table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("counters", short_help="Read utilisation and stalls from Nsight Compute's and perf's files.")(
        exit_codes(counters)
    )


def counters(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Output of ncu --csv, or of perf stat: text, -x or -j.")],
    workload: Annotated[
        Path | None,
        typer.Option(help="workloads.json of softnum workloads or softnum tta: kernels' names are compared with it."),
    ] = None,
    design: Annotated[str | None, typer.Option(help="Design of the workload, if its file has several.")] = None,
    device: Annotated[str | None, typer.Option(help="Device, as softnum estimate --devices lists them.")] = None,
    device_file: DeviceFile = None,
    layers: Annotated[
        Path | None,
        typer.Option(help="CSV id,layer,stage: which launch is of which layer.  [default: told by the kernels' names]"),
    ] = None,
    out: OutJson = None,
) -> None:
    """Print utilisation, occupancy, registers and stalls of every kernel, and beside the roofline those of every layer.

    \b
      ncu --csv --set full --page raw python step.py > run.csv
      softnum counters run.csv                          kernel by kernel
      softnum counters run.csv --workload gemms/workloads.json --device h100-sxm
      softnum counters run.csv --workload workloads.json --device mine --device-file mine.toml --layers layers.csv
      perf stat -j -d -o run.json python step.py
      softnum counters run.json                         of a processor: instructions a cycle, misses, multiplexing

    With a workload and a device it says what share of the roofline each layer reaches: the --efficiency of softnum
    estimate, and the efficiency of a system's file.
    """
    from softnum.tta.text import read_text
    from softnum.tta.timings.ncu_table import header_line

    if out is not None:
        writable_file(out)
    options = {"--workload": workload, "--device": device, "--layers": layers, "--design": design,
               "--device-file": device_file}  # fmt: skip
    given = [name for name, value in options.items() if value is not None]
    if given and (workload is None or device is None):
        raise ValueError(
            f"{given[0]} compares layers with the roofline, which needs --workload and --device; add "
            f"{' and '.join(name for name in ('--workload', '--device') if options[name] is None)}, or leave it out"
        )
    text = read_text(file, f"no file {str(file)!r}; expected what ncu --csv printed, or perf stat -o wrote")
    if header_line(text) is None:
        if given:
            raise ValueError(
                f"{file} is not a table of ncu --csv, and perf stat counts whole programs only; leave out {given[0]}"
            )
        table = _perf(file)
    else:
        table = _kernels(file, workload, design, device, device_file, layers)
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(table, indent=1, ensure_ascii=False) + "\n")
        typer.echo(f"Written: {out}")


def _kernels(file, workload, design, device, device_file, layers) -> dict:
    from softnum.tta.counters import kernel_counters, measured_layers, read_kernel_layers, read_ncu_counters

    launches = read_ncu_counters(file)
    kernels = kernel_counters(launches)
    _print_kernels(file, kernels)
    table = {"source": f"Nsight Compute {file}", "kernels": [kernel.to_table() for kernel in kernels]}
    if workload is not None:
        from softnum.tta import device as find
        from softnum.tta import roofline

        work = _work(workload, design)
        named = None if layers is None else read_kernel_layers(layers)
        found = measured_layers(work, roofline(work, find(device, device_file)), launches, named, where=str(file))
        _print_layers(found)
        table["layers"] = found.to_table()
    return table


def _work(path, design):
    from softnum.tta import read_workloads

    works = read_workloads(path)
    chosen = [work for work in works if design in (None, work.design)]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(dict.fromkeys(work.design for work in works))
    raise ValueError(
        f"{path}: {len(chosen)} of its workloads are {'there' if design is None else f'of design {design!r}'}; name "
        f"one with --design: {names}"
    )


def _percent(shares, key):
    if key == "tensor" and key not in shares and "hmma" in shares:
        return f"{shares['hmma']:.1f} HMMA"  # a part of the pipe's work
    return f"{shares[key]:.1f}" if key in shares else "-"


def _reasons(stalls, most=3):
    """The largest stalls; "selected" is no stall but the issue."""
    named = [(name, share) for name, share in stalls.items() if name not in ("selected", "other")]
    return ", ".join(f"{name} {share:.0%}" for name, share in named[:most]) or "-"


def _print_kernels(file, kernels) -> None:
    from softnum.tta.quantities import format_seconds

    columns = (("sm", "SM %"), ("tensor", "Tensor %"), ("fma", "FMA %"), ("dram", "DRAM %"), ("l2", "L2 %"),
               ("occupancy", "Occupancy %"))  # fmt: skip
    print_table(
        f"Kernels of {file}",
        ["~Kernel", "n", "Time", *(title for _, title in columns), "Registers", "~Stalls"],
        [
            (_short(kernel.kernel), kernel.launches, format_seconds(float(kernel.seconds)),
             *(_percent(kernel.shares, key) for key, _ in columns),
             ",".join(map(str, kernel.registers)) or "-", _reasons(kernel.stalls))
            for kernel in kernels
        ],
        ["- was not collected. Percentages are means over the launches' times, of what the device can sustain; "
         "stalls are shares of warps' cycles."],
    )  # fmt: skip
    for kernel in kernels:
        for gap in kernel.gaps:
            typer.echo(f"  {_short(kernel.kernel)}: {gap}.")


def _short(name):
    return name if len(name) <= 40 else f"{name[:37]}..."


def _print_layers(found) -> None:
    from softnum.tta.parallelism import EFFICIENCY
    from softnum.tta.quantities import format_seconds

    print_table(
        f"{found.network}, {found.design}: {found.compared} on {found.device}, measured and by roofline",
        ["<Layer", "<Stage", "Measured", "Roofline", "Reached", "<Limit", "Peak %", "Pipe %", "Bytes %", "DRAM %",
         "~Stalls"],
        [
            (part.layer, part.stage, format_seconds(part.seconds), format_seconds(part.least),
             f"{part.efficiency:.1%}", f"{part.bound} {part.rate}", f"{100 * part.of_peak:.1f}",
             _percent(part.counters.shares, part.pipe), f"{100 * part.of_bandwidth:.1f}",
             _percent(part.counters.shares, "dram"), _reasons(part.counters.stalls, 2))
            for part in found.parts
        ],
        ["Peak % and Bytes %: the workload's FLOPs and bytes in the measured time, of peak and bandwidth. Pipe % and "
         "DRAM %: counted."],
    )  # fmt: skip
    for part in found.parts:
        for note in part.notes:
            typer.echo(f"  {note}.")
    if found.others:
        typer.echo(f"Launches of no layer: {format_seconds(found.others)} of an iteration, in none of this.")
    if found.efficiency > 1:
        typer.echo("Efficiency: none, since caches make the whole faster than memory could be.")
        return
    typer.echo(
        f"Efficiency: {found.efficiency:.4f} of the roofline; softnum estimate --efficiency {found.efficiency:.4f}"
    )
    known = {name: share for name, share in found.shares.items() if name in EFFICIENCY}
    others = {name: share for name, share in found.shares.items() if name not in EFFICIENCY}
    if known:
        told = ", ".join(f"{name} = {share:.4f}" for name, share in known.items())
        typer.echo(f"By limit, as a system's file has it: efficiency = {{ {told} }}")
    if others:
        told = ", ".join(f"{name} {share:.4f}" for name, share in others.items())
        typer.echo(f"By limit, for which such a file has no key: {told}")


def _perf(file) -> dict:
    from softnum.tta.counters import read_perf_stat

    stat = read_perf_stat(file)
    rows = []
    for event in stat.events.values():
        value = (
            event.gap
            if event.value is None
            else f"{float(event.value):,.6g}"
            if event.unit
            else f"{int(event.value):,}"
        )
        share = "-" if event.running is None or event.gap else f"{event.running:g} %"
        rows.append((event.name, value, event.unit, share))
    print_table(f"Counted by perf stat, {file}", ["<Event", "Value", "<Unit", "Counted in"], rows)
    if stat.seconds is not None:
        typer.echo(f"Wall-clock time: {float(stat.seconds):.6g} s")
    for title, value in stat.ratios().items():
        if isinstance(value, str):
            typer.echo(f"{title.capitalize()}: none ({value})")
        else:
            typer.echo(
                f"{title.capitalize()}: {value:.2f}" if "cycle" in title else f"{title.capitalize()}: {value:.2%}"
            )
    if stat.multiplexed:
        parts = ", ".join(f"{name} {share:g} %" for name, share in stat.multiplexed.items())
        typer.echo(f"Events shared counters, and perf extrapolated from the time that each had one: {parts}.")
    return stat.to_table()
