"""``softnum sweep``: ParaDnn's networks by the thousand, through the analytic roofline of a device."""

import csv
import io
import json
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_folder
from softnum.cli.options import OUT_FOLDER, PRECISION, DeviceFile
from softnum.cli.sweep_errors import print_errors

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("sweep", short_help="Time thousands of generated networks on a device: ParaDnn.")(exit_codes(sweep))


def sweep(
    kind: Annotated[str, typer.Argument(help="fc, cnn-residual, cnn-bottleneck, rnn, lstm, gru, or all.")],
    device: Annotated[str, typer.Option(help="Device, as softnum estimate --devices lists them.")] = "tpu-v2",
    against: Annotated[str | None, typer.Option(help="A second device to compare with.")] = None,
    precision: Annotated[
        str | None,
        typer.Option(help=f"{PRECISION}  [default: the 16 bits that a device has]"),
    ] = None,
    optimiser: Annotated[str, typer.Option(help="sgd, momentum, rmsprop or adam.")] = "rmsprop",
    efficiency: Annotated[float, typer.Option(help="Fraction of the roofline that is reached, up to 1.")] = 1.0,
    range_: Annotated[
        list[str] | None,
        typer.Option("--range", help="Values of a hyper-parameter, like nodes=256,1024. May be repeated."),
    ] = None,
    check: Annotated[
        int | None, typer.Option(help="Simulate this many small models with SCALE-Sim and compare; at most 50.")
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(
            help="Measured times to compare with the roofline: a CSV, or ParaDnn's JSON; FILE, or DEVICE=FILE. May be "
            "repeated."
        ),
    ] = None,
    device_file: DeviceFile = None,
    venv: Annotated[Path | None, typer.Option(help="SCALE-Sim's virtual environment.  [default: made]")] = None,
    out: Annotated[Path, typer.Option(help=OUT_FOLDER)] = Path("sweep"),
) -> None:
    """Time every network of ParaDnn's ranges (Wang, Wei and Brooks, 2019) on a device: 6,264 of them in seconds.

    Times are analytic rooflines: no device is faster than that, unless it merges operations and so saves bytes, and
    real ones are slower. The sweep shows which networks are limited by a device's arithmetic and which by its memory,
    and how that depends on hyper-parameters. Models that the device's memory cannot hold are listed, and left out of
    means, regressions and charts.

    \b
      softnum sweep fc                                  on a TPU v2: heat map, roofline, regression
      softnum sweep all --device tpu-v2 --against v100  and which is faster, model by model
      softnum sweep fc --device h100-sxm --precision fp8 --range nodes=1024,8192
      softnum sweep all --check 48                      also against SCALE-Sim (minutes)
      softnum sweep fc --measured tpu_fc.json           measured times over the roofline's

    A CSV of measured times has a column for each hyper-parameter and seconds, steps_per_second or samples_per_second.

    In the folder, for each kind and device: KIND-DEVICE.csv and .json (a row for each model), KIND-DEVICE-heat.csv,
    KIND-DEVICE-sensitivity.csv and KIND-DEVICE.png; KIND-DEVICE-against-OTHER.csv and .png; check.csv and .json; of
    measured times KIND-DEVICE-measured.png, and columns in KIND-DEVICE.csv and .json.
    """
    from softnum.tta import device as device_of
    from softnum.tta.architectures import SWEEPS
    from softnum.tta.architectures import sweep as run
    from softnum.tta.architectures.sweep_check import check_count
    from softnum.tta.architectures.sweep_overlay import overlay

    need("matplotlib")
    writable_folder(out)
    kinds = list(SWEEPS) if kind == "all" else [kind]
    ranges = _ranges(range_, kinds)
    machines = [device_of(name, device_file) for name in (device, against) if name is not None]
    if len({machine.name for machine in machines}) < len(machines):
        raise ValueError(f"--against {against} is --device itself; name another device")
    if check is not None:
        check_count(kinds, check)
    points = _measured(measured, kinds, [machine.name for machine in machines])
    from softnum.cli.train import progress_bar

    found = {}
    with progress_bar() as step:
        for name in kinds:
            for machine in machines:
                text = f"{name} on {machine.name}"
                found[name, machine.name] = run(
                    name, machine, precision, optimiser=optimiser, ranges=ranges, efficiency=efficiency,
                    progress=lambda done, total, text=text: (done % 50 and done < total) or step(done, total, text),
                )  # fmt: skip
    for key, one in points.items():
        found[key] = overlay(found[key], one)
    written = [path for one in found.values() for path in _write(out, one)]
    if against is not None:
        for name in kinds:
            written += _compare(out, *(found[name, machine.name] for machine in machines))
    _print_summary(list(found.values()))
    if points:
        print_errors([found[key] for key in found if key in points])
    if check is not None:
        written += _check(out, kinds, check, venv)
    names = [path.name for path in written]
    typer.echo(f"\nWritten: {len(names)} files in {out}: {', '.join(names[:6])}{', ...' if names[6:] else ''}")


def _ranges(texts, kinds) -> dict[str, list[int]]:
    """Hyper-parameter -> values, of options like nodes=256,1024."""
    from softnum.tta.architectures import SWEEPS

    found = {}
    for text in texts or []:
        name, _, values = text.partition("=")
        try:
            numbers = [int(value) for value in values.split(",")]
        except ValueError:
            raise ValueError(f"--range takes a name and integers, like nodes=256,1024, got {text!r}") from None
        if name.strip() in found:
            raise ValueError(f"--range has {name.strip()!r} twice; give all its values at once, with commas between")
        found[name.strip()] = numbers
    if found and len({tuple(SWEEPS.get(kind, ())) for kind in kinds}) > 1:
        raise ValueError("--range names hyper-parameters of one kind of network; sweep the kinds one at a time")
    return found


def _measured(texts, kinds: list[str], devices: list[str]) -> dict:
    """(kind, device) -> measured times, of options like FILE or DEVICE=FILE."""
    from softnum.tta.architectures.sweep_measured import read_measured

    found = {}
    for text in texts or []:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = devices[0], text
        if name not in devices:
            raise ValueError(f"--measured {text}: no device {name!r} is swept, but {', '.join(devices)}")
        for kind, one in read_measured(path, kinds, name).items():
            if (kind, name) in found:
                raise ValueError(
                    f"--measured {text}: times of {kind} on {name} are also in {found[kind, name].path}; put them into "
                    "one file, where rows of one model are repetitions"
                )
            found[kind, name] = one
    return found


def _csv(path: Path, rows: list[dict]) -> Path:
    from softnum.runtime.atomic import write_atomic

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(path, text.getvalue())
    return path


def _write(out: Path, one) -> list[Path]:
    """The files of one sweep."""
    from softnum.tta.architectures.sweep_analysis import heat_map, sensitivity
    from softnum.tta.architectures.sweep_plot import plot_measured, plot_sweep

    stem = out / f"{one.kind}-{one.device}"
    paths = one.write(stem)
    if one.measured is not None:
        paths.append(stem.with_name(f"{stem.name}-measured.png"))
        plot_measured(paths[-1], one)
    if not one.fitting:
        typer.echo(f"{one.kind}: no model fits {one.device}, so that there is no picture of it", err=True)
        return paths
    paths.append(_csv(stem.with_name(f"{stem.name}-heat.csv"), heat_map(one)))
    varying = sum(len({row[name] for row in one.fitting}) > 1 for name in one.hyperparameters)
    if not 0 < varying < len(one.fitting) - 1:
        typer.echo(f"{one.kind}: too few models for a regression, so that there is no picture of it", err=True)
        return paths
    paths.append(_csv(stem.with_name(f"{stem.name}-sensitivity.csv"), sensitivity(one)))
    paths.append(stem.with_name(f"{stem.name}.png"))
    plot_sweep(paths[-1], one)
    return paths


def _compare(out: Path, first, second) -> list[Path]:
    """The files of two devices."""
    from softnum.tta.architectures.sweep_analysis import against
    from softnum.tta.architectures.sweep_plot import plot_against

    rows = against(first, second)
    if not rows:
        typer.echo(f"{first.kind}: no model fits both {first.device} and {second.device}", err=True)
        return []
    stem = out / f"{first.kind}-{first.device}-against-{second.device}"
    paths = [_csv(stem.with_name(f"{stem.name}.csv"), rows), stem.with_name(f"{stem.name}.png")]
    plot_against(paths[1], first, second)
    values = [row["speedup"] for row in rows]
    typer.echo(
        f"{first.kind}: {first.device} is {min(values):.2f} to {max(values):.2f} times as fast as {second.device}, "
        f"median {median(values):.2f}, over {len(rows)} models"
    )
    return paths


def _millions(count: int) -> str:
    return f"{float(f'{count / 1e6:.3g}'):,g}"


def _print_summary(sweeps) -> None:
    from rich.console import Console
    from rich.table import Table

    from softnum.tta.architectures.sweep_analysis import summary

    table = Table(title="Share of peak FLOP/s, by the analytic roofline: a bound, not a measurement", title_style="")
    for name in (
        "kind",
        "device",
        "precision",
        "models",
        "fit",
        "parameters",
        "least",
        "median",
        "most",
        "memory bound",
    ):
        table.add_column(name, justify="left" if name in ("kind", "device", "precision") else "right")
    for one in sweeps:
        row = summary(one)
        cells = [row["kind"], row["device"], row["precision"], str(row["models"]), str(row["fit"])]
        if row["fit"]:
            low, high = row["parameters"]
            cells += [f"{_millions(low)} to {_millions(high)} M", *(f"{value:.1%}" for value in row["utilisation"])]
            cells.append(f"{row['memory_bound']:.0%}")
        table.add_row(*cells)
    Console(width=140).print(table)


def _check(out: Path, kinds: list[str], count: int, venv: Path | None) -> list[Path]:
    """The sample against SCALE-Sim, and its files."""
    from softnum.runtime.atomic import write_atomic
    from softnum.tta.architectures.sweep_check import LARGEST, check_sweeps, ratios

    rows = check_sweeps(
        kinds, count, out / "check", environment=venv, progress=lambda text: typer.echo(text, err=True)
    )  # fmt: skip
    found = ratios(rows)
    typer.echo("\nSCALE-Sim's time over the roofline's, of the matrix products of small models on one 128 x 128 array:")
    for row in found:
        typer.echo(
            f"  {row['kind']:<15} {row['models']:>3} models   {row['least']:.2f} to {row['most']:.2f}, median "
            f"{row['median']:.2f}"
        )
    table = {"schema": 1, "largest_macs": LARGEST, "ratios": found, "models": rows}
    write_atomic(out / "check.json", json.dumps(table, indent=1) + "\n")
    return [_csv(out / "check.csv", rows), out / "check.json"]
