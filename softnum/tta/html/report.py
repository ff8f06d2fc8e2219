"""A report: read from a folder, written as one HTML file, or as pictures and tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from softnum.runtime.atomic import write_atomic
from softnum.tta.html.folder import Folder, read_folder

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike
    from softnum.tta.html.model import Page

__all__ = ["Report", "export_report", "load_report", "write_report"]


@dataclass(frozen=True)
class Report:
    """What a folder of results says, ready to be written.

    Parameters
    ----------
    folder : Folder
        What was read and checked.
    device : Device or None
        The hardware of rooflines and data-parallel times; None for that which the times name.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study, write_results
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_results(Path(folder, "results.json"), [study])
    ...     report = load_report(folder)
    >>> [section.title for section in report.page().sections][:3]
    ['Summary', 'Time to accuracy', 'All targets']
    """

    folder: Folder
    device: object = None

    def page(self, base: str | None = None) -> Page:
        """The tables, charts and notes; `base` is where the folder lies as seen from the page, for links."""
        from softnum.tta.html.sections import page_of  # altair takes half a second to import

        return page_of(self.folder, base=base, device=self.device)

    def html(self, base: str | None = None) -> str:
        """The page as text; `base` as of `page`."""
        from softnum.tta.html.page import render

        return render(self.page(base))


def load_report(
    folder: str | os.PathLike[str], *, device: str | None = None, device_file: PathLike | None = None
) -> Report:
    """Read what ``softnum tta --out`` or ``softnum study run --out`` wrote, and check it.

    Parameters
    ----------
    folder : path-like
        A comparison (``results.json``) or a study (``study.json``).
    device : str, optional
        Name of a device, as in `device`, for rooflines and data-parallel times, and for the utilisation of times that
        name no hardware. Default: the hardware that the times name.
    device_file : path-like, optional
        A file of devices of one's own.

    Returns
    -------
    Report

    Raises
    ------
    FileNotFoundError
        If the folder does not exist, or holds no results.
    ValueError
        If a file is malformed, of another schema, or no longer the one that the results were made from; the message
        names it, the place in it, and the way out.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study, write_results
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_results(Path(folder, "results.json"), [study])
    ...     load_report(folder).folder.comparisons[0].designs
    ('base',)
    """
    chosen = None
    if device is not None:
        from softnum.tta.estimates.device_files import device as named

        chosen = named(device, device_file)
    return Report(read_folder(folder), chosen)


def _report(source: str | os.PathLike[str] | Report) -> Report:
    return source if isinstance(source, Report) else load_report(source)


def write_report(source: str | os.PathLike[str] | Report, path: str | os.PathLike[str]) -> Path:
    """Write a report as one self-contained HTML file.

    Parameters
    ----------
    source : path-like or Report
        The folder, or the Report that `load_report` returned for it.
    path : path-like
        The file. If it lies in the folder itself, the paths of records and reports are links to them.

    Returns
    -------
    Path
        The file, written atomically. The same folder gives the same bytes.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_report`.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study, write_results
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_results(Path(folder, "results.json"), [study])
    ...     text = write_report(folder, Path(folder, "report.html")).read_text(encoding="utf-8")
    >>> "160 s" in text, "<script src" in text
    (True, False)
    """
    report, path = _report(source), Path(path)
    base = "" if path.resolve().parent == report.folder.path.resolve() else None
    write_atomic(path, report.html(base))
    return path


def export_report(
    source: str | os.PathLike[str] | Report,
    *,
    png: str | os.PathLike[str] | None = None,
    svg: str | os.PathLike[str] | None = None,
    csv: str | os.PathLike[str] | None = None,
    json: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write a report's charts as pictures, and its tables and the charts' data as files.

    Parameters
    ----------
    source : path-like or Report
        As in `write_report`.
    png, svg : path-like, optional
        Folders for the charts, one file each.
    csv : path-like, optional
        Folder for the tables and the charts' data, one file each, in full precision.
    json : path-like, optional
        File for all of them.

    Returns
    -------
    list of Path
        The files, each whole or not there.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_report`.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.tta import Evaluation, IterationTime, Record, combine_study, write_results
    >>> runs = [Record("base", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})]
    >>> study = combine_study(runs, {"base": IterationTime("base", 2.0)}, target=0.9, baseline="base")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_results(Path(folder, "results.json"), [study])
    ...     [file.name for file in export_report(folder, csv=Path(folder, "csv"))][:2]
    ['summary-given-times.csv', 'sources.csv']
    """
    if all(path is None for path in (png, svg, csv, json)):
        return []
    from softnum.tta.html.export import export

    return export(_report(source).page(), png=png, svg=svg, csv=csv, json=json)
