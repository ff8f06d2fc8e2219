"""What `softnum vectors check` writes: reports as text, JSON, a page, JUnit XML and SARIF."""

from __future__ import annotations

import json

import typer

from softnum.runtime.atomic import atomic_file

__all__ = ["delivered", "written"]


def delivered(reports: list, out: str | None, html: str | None, junit: str | None, sarif: str | None) -> None:
    """Print reports and write the files that were asked for; a page is of the first."""
    if html is not None and not hasattr(reports[0], "first"):
        raise ValueError(
            "--html is for files of one operation; for a mixed file use the text report, --out, --junit or --sarif"
        )
    for report in reports:
        if report.failures or report.error is None:
            typer.echo(str(report))
    if html is not None:
        from softnum.vectors.checks.html import page_of

        with atomic_file(html) as file:
            file.write(page_of(reports[0]).encode())
    if sarif is not None:
        from softnum.vectors import sarif_of

        with atomic_file(sarif) as file:
            file.write((json.dumps(sarif_of(reports), indent=1) + "\n").encode())
    written(reports, out, junit)


def written(reports: list, out: str | None, junit: str | None) -> None:
    """The reports as JSON, a list where there are several, and as JUnit XML."""
    if out is not None:
        data = [report.to_dict() for report in reports]
        with atomic_file(out) as file:
            file.write((json.dumps(data if len(data) > 1 else data[0], indent=1) + "\n").encode())
    if junit is not None:
        from softnum.vectors import junit_of

        with atomic_file(junit) as file:
            file.write(junit_of(reports))
