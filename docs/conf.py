"""Settings of the documentation: make docs."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent))  # benchmarks.peers

import softnum  # noqa: E402
from softnum.cli.schema import write_schemas  # noqa: E402

project = "softnum"
author = "the softnum authors"
copyright = "the softnum authors, BSD 3-Clause"
version = release = softnum.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "pages"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_ext", "adding", "playground", "two-networks"]
source_suffix = {".md": "markdown"}

# `name` in a docstring links where there is something of that name, and is a name where there is not
default_role = "autolink"
autosummary_generate = False
autodoc_typehints = "none"  # docstrings state types, with shapes
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|np|jax)\..*"),
    ("py:class", r"(?!softnum).*"),  # types in words
    ("py:obj", r"[a-z]+|FUNCTIONS"),  # parameters that are attributes too
    (
        "py:obj",
        r"softnum\.(mac\.products\.engines|reference\.facts|train\.engine\.backend)",
    ),  # internals that docstrings name
    ("py:obj", r"softnum\.[\w.]+\.[A-Z_]+"),  # tables of names
]

html_theme = "furo"
html_title = f"softnum {release}"
html_static_path = ["_static"]
html_css_files = ["softnum.css"]
html_show_sphinx = False
html_copy_source = False


def _copy_study(app, error) -> None:
    """A study's report links to the records and reports beside it, so the folder is copied as it is."""
    if error is None and app.builder.format == "html":
        shutil.copytree(HERE / "two-networks", Path(app.outdir) / "two-networks", dirs_exist_ok=True)


def _write_schemas(app, error) -> None:
    """The JSON Schemas of softnum's TOML files, as `softnum schema --out` writes them, for editors to fetch."""
    if error is None and app.builder.format == "html":
        write_schemas(Path(app.outdir) / "schemas")


def setup(app) -> None:
    app.connect("build-finished", _copy_study)
    app.connect("build-finished", _write_schemas)
