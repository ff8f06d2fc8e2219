"""The charts of a report as PNG and SVG files, its tables and the charts' data as CSV and JSON."""

from __future__ import annotations

import copy
import csv
import html
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.html.model import Chart, Page
from softnum.tta.html.page import check_engine, vega_lite_version
from softnum.tta.outcomes.style import THEMES

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["export"]

#: width of a chart in a file, in pixels, where the page gives it that of the window
WIDTH = 720


def export(
    page: Page,
    *,
    png: PathLike | None = None,
    svg: PathLike | None = None,
    csv: PathLike | None = None,
    json: PathLike | None = None,
) -> list[Path]:
    """Write what is asked for; `png`, `svg` and `csv` are folders, `json` is a file."""
    written = []
    for folder, ending, draw in ((png, "png", _png), (svg, "svg", _svg)):
        for chart in page.charts if folder is not None else ():
            written.append(_write(Path(folder, f"{chart.name}.{ending}"), draw(still(chart))))
    if csv is not None:
        for block in (*page.tables, *page.charts):
            written.append(_write(Path(csv, f"{block.name}.csv"), table_csv(block.data)))
    if json is not None:
        written.append(_write(Path(json), page_json(page)))
    return written


def _write(path: Path, content: str | bytes) -> Path:
    write_atomic(path, content)
    return path


def still(chart: Chart) -> dict[str, Any]:
    """A chart's specification for a picture: of fixed width, with its title, and a legend of the designs."""
    spec = copy.deepcopy(chart.described)
    _legends(spec)
    spec["title"] = chart.title
    if spec.get("width") == "container":
        spec["width"] = WIDTH
    spec["config"] = {**THEMES["light"], "background": "#ffffff", "padding": 12}
    return spec


def _legends(node) -> None:
    """Put back the legends that the page leaves to its list of designs, which a picture has not."""
    if isinstance(node, dict):
        if node.get("field") == "design" and node.get("legend", 0) is None:
            node["legend"] = {"title": None, "orient": "bottom", "columns": 4, "symbolOpacity": 1}
        for value in node.values():
            _legends(value)
    elif isinstance(node, list):
        for value in node:
            _legends(value)


def _png(spec: Mapping[str, Any]) -> bytes:
    import vl_convert

    check_engine()
    return vl_convert.vegalite_to_png(spec, vl_version=vega_lite_version(), scale=2)


def _svg(spec: Mapping[str, Any]) -> str:
    import vl_convert

    check_engine()
    drawing = _numbered(vl_convert.vegalite_to_svg(spec, vl_version=vega_lite_version()))
    # what a screen reader says of the picture
    return drawing.replace(">", f"><title>{html.escape(spec['description'])}</title>", 1)


def _numbered(drawing: str) -> str:
    """An SVG whose identifiers count from 0; Vega's go on counting from one drawing to the next.

    >>> _numbered('<g id="gradient_7"/><g fill="url(#gradient_7)"/>')
    '<g id="gradient_0"/><g fill="url(#gradient_0)"/>'
    """
    names: dict[str, str] = {}

    def number(match: re.Match) -> str:
        old = match["name"] + match["number"]
        return match["before"] + names.setdefault(old, f"{match['name']}{len(names)}")

    return re.sub(r"""(?P<before>\bid="|url\(#)(?P<name>[A-Za-z_-]+)(?P<number>\d+)""", number, drawing)


def table_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of plain values as CSV; the columns are every key, in order of first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _plain(value) for key, value in row.items()})
    return out.getvalue()


def _plain(value):
    """A value for a cell of CSV: numbers as Python writes them (which round-trip), nothing for None."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict, tuple)) else value


def page_json(page: Page) -> str:
    """Every table, the data of every chart, and every note, as JSON."""
    sections = []
    for section in page.sections:
        blocks = []
        for block in section.blocks:
            if hasattr(block, "data"):
                blocks.append(
                    {
                        "kind": type(block).__name__.lower(),
                        "name": block.name,
                        "title": block.title,
                        "caption": block.caption,
                        "rows": list(block.data),
                    }
                )
            else:
                blocks.append({"kind": "note", "title": block.title, "lines": list(block.lines)})
        sections.append({"name": section.name, "title": section.title, "blocks": blocks})
    report = {"schema": 1, "title": page.title, "designs": list(page.designs), "sections": sections}
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
