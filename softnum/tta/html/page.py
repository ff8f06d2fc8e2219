"""The page: one HTML file with its style, its script, the charts' library and the data, which loads nothing."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.runtime.caching import cache_folder
from softnum.runtime.config import __version__
from softnum.runtime.limits import check_address_space, check_files
from softnum.tta.html.model import Chart, Page, Table
from softnum.tta.outcomes.style import THEMES, swatch

__all__ = ["render"]

_HERE = Path(__file__).parent
_ADDRESSES = 72 * 10**9  # that V8 reserves


def check_engine() -> None:
    """ValueError where the engine in vl_convert would end this process without a word."""
    check_address_space(_ADDRESSES, "the engine that draws the charts")
    check_files(32, "the engine that draws the charts")


@functools.cache
def library() -> str:
    """The JavaScript of Vega, Vega-Lite and Vega-Embed, in the version that altair writes specifications for.

    vl-convert takes seconds to put it together: it is kept in the cache folder, with its digest.
    """
    import vl_convert

    version = vega_lite_version()
    path = cache_folder(make=False) / f"charts-{vl_convert.__version__}-{version}.js"
    with contextlib.suppress(OSError, ValueError):
        digest, text = path.read_text(encoding="utf-8").split("\n", 1)
        if digest == _digest(text):
            return text
    check_engine()
    text = _script(vl_convert.javascript_bundle(vl_version=version), "the charts' library")
    with contextlib.suppress(OSError, ValueError):  # nowhere to keep it
        write_atomic(cache_folder() / path.name, f"{_digest(text)}\n{text}")
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def vega_lite_version() -> str:
    """Vega-Lite's version as vl-convert names it, like "6.4"."""
    from altair.vegalite import SCHEMA_VERSION

    return ".".join(SCHEMA_VERSION.lstrip("v").split(".")[:2])


def _script(text: str, what: str) -> str:
    """JavaScript as it may stand between script tags, where the policy's hash is over exactly these characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError(f"{what} cannot stand inside a page: it holds an HTML tag; install another vl-convert-python")
    return text


def _policy(*scripts: str) -> str:
    """What the browser may do: run these scripts, apply styles, show inline pictures; load nothing from anywhere."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def data_json(page: Page) -> str:
    """What the script reads; no character of it can end the element it stands in."""
    charts = {
        chart.name: {
            "spec": chart.described,
            "controls": {control.name: [patch for _, patch in control.options] for control in chart.controls},
        }
        for chart in page.charts
    }
    data = {"designs": page.designs, "themes": THEMES, "charts": charts}
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def render(page: Page) -> str:
    """The HTML of a page; the same page gives the same text."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.tests["table"] = lambda block: isinstance(block, Table)
    environment.tests["chart"] = lambda block: isinstance(block, Chart)
    own = _script((_HERE / "report.js").read_text(encoding="utf-8"), "report.js")
    charts = library() if page.charts else ""
    return environment.get_template("page.html").render(
        page=page,
        version=__version__,
        style=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        swatches={design: Markup(swatch(i)) for i, design in enumerate(page.designs)},
        data=Markup(data_json(page)),
        library=Markup(charts),
        script=Markup(own),
        policy=Markup(_policy(*filter(None, (charts, own)))),
    )
