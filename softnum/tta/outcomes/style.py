"""How designs look in charts, and the charts' light and dark themes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["DASHES", "ERROR_TICKS", "PALETTE", "SHAPES", "THEMES", "swatch"]

# Okabe and Ito's palette, made for colour-blind readers, without its yellow (too faint on white), as in the PNG of
# softnum tta; lighter shades of the same hues on dark paper. Dashes and shapes carry the same information.
PALETTE = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F")
_NIGHT = ("#F2F2F2", "#4DA6E8", "#FF8A4C", "#2EC79A", "#E39BC4", "#A5DBFA", "#F5B83D", "#9AA0A6")
DASHES = ((1, 0), (7, 3), (7, 2, 2, 2), (2, 2))
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "triangle-right", "triangle-left")

#: accuracies that an axis by factors of 1 - accuracy is labelled at
ERROR_TICKS = (0.0, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 0.99999)

#: paths of the shapes in a box of 12 by 12, around (6, 6)
_PATHS = {
    "circle": "M2.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z",
    "square": "M3 3H9V9H3Z",
    "diamond": "M6 1.5L10 6L6 10.5L2 6Z",
    "triangle-up": "M6 2L10 9.5H2Z",
    "triangle-down": "M6 10L2 2.5H10Z",
    "cross": "M4.7 2h2.6v2.7H10v2.6H7.3V10H4.7V7.3H2V4.7h2.7Z",
    "triangle-right": "M10 6L2.5 10V2Z",
    "triangle-left": "M2 6L9.5 2V10Z",
}


def _theme(paper: str, ink: str, quiet: str, line: str, palette: Sequence[str], heat: Sequence[str]) -> dict[str, Any]:
    text = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500}
    return {
        "background": "transparent",
        "font": 'system-ui, "DejaVu Sans", sans-serif',
        "axis": {
            **text,
            "gridColor": line,
            "domainColor": quiet,
            "tickColor": quiet,
            "labelLimit": 230,
            "labelSeparation": 9,
        },
        "axisY": {"labelLimit": 150, "titleLimit": 260},
        "legend": {**text, "symbolStrokeWidth": 2, "labelLimit": 260},
        "header": text,
        "title": {"color": ink, "anchor": "start", "fontSize": 13},
        "view": {"stroke": None},
        "text": {"color": ink},
        "rule": {"color": ink},
        "style": {
            "target": {"stroke": quiet, "strokeWidth": 1},
            "word": {"fill": quiet, "fontSize": 11.5},
            "number": {"fill": ink, "fontSize": 11.5},
            "shaded": {"fill": paper, "fontSize": 11.5},  # on the dark end of a shade
            "roof": {"color": quiet, "strokeWidth": 1.5},
        },
        "range": {"category": list(palette), "heatmap": list(heat), "ramp": list(heat)},
    }


THEMES = {
    "light": _theme("#ffffff", "#1b1f24", "#57606a", "#e3e7eb", PALETTE, ("#f1f5f9", "#0b5cad")),
    "dark": _theme("#14171b", "#e8eaed", "#a2abb6", "#2b3138", _NIGHT, ("#22272e", "#4da6e8")),
}


def swatch(index: int) -> str:
    """SVG of a design's line and mark, as the charts draw them; hidden from screen readers.

    >>> swatch(1).startswith('<svg class="swatch" style="--day:#0072B2')
    True
    """
    dash = DASHES[index % len(DASHES)]
    dashes = "" if dash == (1, 0) else f' stroke-dasharray="{" ".join(map(str, dash))}"'
    path = _PATHS[SHAPES[index % len(SHAPES)]]
    day, night = PALETTE[index % len(PALETTE)], _NIGHT[index % len(_NIGHT)]
    return (
        f'<svg class="swatch" style="--day:{day};--night:{night}" viewBox="0 0 30 12" aria-hidden="true">'
        f'<path d="M0 6H30" stroke-width="2"{dashes}/><path class="mark" transform="translate(9 0)" d="{path}"/></svg>'
    )
