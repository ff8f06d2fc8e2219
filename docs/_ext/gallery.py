"""Figures made by the scripts of examples/gallery, each shown with what draws it."""

from __future__ import annotations

import ast
import io
import re
import runpy
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "gallery"


def figure(name: str) -> str:
    """The figure that a script draws, with the script."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path = SCRIPTS / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    says = ast.get_docstring(ast.parse(text)).replace("\n", " ")
    plt.close("all")
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.family": "sans-serif"}):
        runpy.run_path(str(path))
        if not any(axes.has_data() for axes in plt.gcf().axes):
            raise ValueError(f"{path} draws nothing")
        plt.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close("all")
    svg = re.sub(r"^.*?(?=<svg)", "", drawn.getvalue().decode("utf-8"), flags=re.DOTALL)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{says}" ', 1)
    code = text.partition('"""\n\n')[2]
    shown = re.sub(r"\n\s*\n", "\n", svg)
    return f'{says}\n\n```python\n{code}```\n\n<figure class="drawn">\n{shown}</figure>\n'


MAKERS = {"figure": figure}
