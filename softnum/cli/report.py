"""``softnum report``: a comparison or a study as one HTML file, or as pictures and tables."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file, writable_folder
from softnum.cli.options import DeviceFile

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("report", short_help="Show a comparison or a study as a page of tables and charts.")(exit_codes(report))


def report(
    folder: Annotated[Path, typer.Argument(help="What softnum tta --out or softnum study run --out wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The HTML file.  [default: FOLDER/report.html]")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Folder for the charts as PNG.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Folder for the charts as SVG.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Folder for the tables and the charts' data as CSV.")] = None,
    json: Annotated[Path | None, typer.Option(help="File for all tables and the charts' data as JSON.")] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Device of rooflines and data-parallel times, like v100.  [default: that of the times]"),
    ] = None,
    device_file: DeviceFile = None,
) -> None:
    """Write a report: one HTML file with tables, charts and where each number comes from, which needs no network.

    \b
      softnum report runs/tta
      softnum report runs/tta -o tta.html --png figures --csv tables
      softnum report runs/study -o study.html

    Designs are shown and hidden by the list at the top; pointing at a mark says what it is. The charts and tables are
    those of the files named under Sources; a file that has changed since is an error. The same folder gives the same
    bytes.
    """
    need("altair", "jinja2", "jsonschema", "vl_convert")
    from softnum.tta import write_report
    from softnum.tta.html import export_report, load_report

    if device is None and device_file is not None:
        raise ValueError("--device-file defines the devices that --device names; add --device NAME")
    loaded = load_report(folder, device=device, device_file=device_file)
    asked = {"png": png, "svg": svg, "csv": csv, "json": json}
    for name, path in asked.items():
        if path is not None:
            (writable_file if name == "json" else writable_folder)(path)
    if out is None and not any(asked.values()):
        out = folder / "report.html"
    if out is not None:
        writable_file(out)
        path = write_report(loaded, out)
        typer.echo(f"Written: {path} ({path.stat().st_size / 1e6:.1f} MB, needs no network)")
    written = export_report(loaded, **asked)
    for name, path in asked.items():
        if path is not None:
            files = [file for file in written if file == path or (file.suffix == f".{name}" and file.parent == path)]
            typer.echo(f"Written: {path}" + ("" if name == "json" else f" ({len(files)} files)"))
