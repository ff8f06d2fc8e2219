"""Directives that fill pages with what softnum itself says at build time.

``generated NAME ARGUMENTS...`` puts the text that a function of `tables` or `figures` makes; ``public-names MODULE``
documents what the module's ``__all__`` lists: with ``:from:`` the names whose definitions lie in these modules, with
``:rest:`` those that no other directive of the page took; ``:beside:`` leaves out what this other module lists.

A reference in Python's domain to a name that no module of the page has is one to what softnum documents by that name
elsewhere, if there is just one: `find_by_name`.

The theme shows the titles of all pages beside each page: `titles_alone` gives it these without copying what lies below.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import logging
import re

import figures
import gallery
import tables
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.ext.napoleon.docstring import NumpyDocstring
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import softnum


class Generated(SphinxDirective):
    """A table or picture made at build time."""

    required_arguments = 1
    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        name, *arguments = self.arguments
        makers = tables.MAKERS | figures.MAKERS | gallery.MAKERS
        if name not in makers:
            raise self.error(f"generated: {name!r} is none of {', '.join(makers)}")
        return self.parse_text_to_nodes(makers[name](*arguments), allow_section_headings=True)


def defining_module(module: str, name: str) -> str:
    """The module in which a public name of a package is defined."""
    return getattr(getattr(importlib.import_module(module), name), "__module__", None) or module


class PublicNames(SphinxDirective):
    """Public names of a module, from their docstrings."""

    required_arguments = 1
    option_spec = {"rest": directives.flag, **dict.fromkeys(("from", "names", "beside"), directives.unchanged)}

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        public = importlib.import_module(module).__all__
        if "beside" in self.options:
            listed = importlib.import_module(self.options["beside"]).__all__
            public = [name for name in public if name not in listed]
        taken = self.env.temp_data.setdefault(f"softnum-{module}", set())
        if "rest" in self.options:
            names = [name for name in public if name not in taken]
        elif "names" in self.options:
            names = self.options["names"].split()
        else:
            sources = self.options.get("from", "").split()
            where = {n: defining_module(module, n) for n in public}
            names = [n for n in public if not sources or where[n] in sources]
            if idle := set(sources) - set(where.values()):
                raise self.error(f"public-names: nothing of {module} is defined in {' '.join(sorted(idle))}")
        taken.update(names)
        if not names:
            return []
        lines = [f".. currentmodule:: {module}", ""]
        if len(names) > 1:
            lines += [line for name in names for line in self._summary(module, name)] + [""]
        for name in names:
            lines += self._entry(module, name)
        return self.parse_text_to_nodes("```{eval-rst}\n" + "\n".join(lines) + "\n```")

    @staticmethod
    def _summary(module: str, name: str) -> list[str]:
        what = getattr(importlib.import_module(module), name)
        paragraph = " ".join((inspect.getdoc(what) or "").split("\n\n")[0].split())
        sentence = re.split(r"(?<!\.)\. ", paragraph)[0].rstrip(".:") if callable(what) else "a value"
        return [f"- :py:obj:`{name} <{module}.{name}>`: {sentence}"]

    @staticmethod
    def _entry(module: str, name: str) -> list[str]:
        what = getattr(importlib.import_module(module), name)
        if inspect.isclass(what):
            members = "   :inherited-members: tuple, int, Optimizer, TorchFunctionMode, Module"
            return [f".. autoclass:: {module}.{name}", "   :members:", members, ""]
        if callable(what):
            return [f".. autofunction:: {module}.{name}", ""]
        return [f".. py:data:: {name}", "", f"   ``{what!r}``", ""]


def titles_of(tocs: dict[str, nodes.bullet_list]) -> dict[str, nodes.bullet_list]:
    """The contents of each page without its headings and names: what a tree of titles alone leaves of them."""
    kept = {}
    for page, toc in tocs.items():
        kept[page] = toc.deepcopy()
        for entry in kept[page]:
            if len(entry) > 1:
                if trees := list(entry.findall(addnodes.toctree)):
                    entry[1][:] = trees
                else:
                    entry.pop(1)
    return kept


def titles_alone(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Make a tree of titles from titles: Sphinx copies every page's contents for each page, and then drops them."""
    of_all, env = context.get("toctree"), app.env

    def toctree(**options):
        if not options.get("titles_only"):
            return of_all(**options)
        if not hasattr(app, "softnum_titles"):
            app.softnum_titles = titles_of(env.tocs)
        whole, env.tocs = env.tocs, app.softnum_titles
        try:
            return of_all(**options)
        finally:
            env.tocs = whole

    if of_all is not None:
        context["toctree"] = toctree


def find_by_name(app, env, node, content):
    """A link to the one documented thing that ends in the name of a reference without a target; None if there is none.

    Of several in modules and packages, the nearest to the top. A package's member may be documented as softnum's.
    """
    if node.get("refdomain") != "py":
        return None
    objects, name = env.get_domain("py").objects, node["reftarget"].removeprefix("softnum.")
    package, _, last = node["reftarget"].rpartition(".")
    if f"softnum.{last}" in objects and package.startswith("softnum."):
        member = getattr(importlib.import_module(package), last, None)
        name = last if member is getattr(softnum, last) else name
    found = {full: entry for full, entry in objects.items() if full.endswith("." + name) and not entry.aliased}
    least = min((full.count(".") for full in found), default=0)
    nearest = [full for full in found if full.count(".") == least]
    if len(nearest) != 1:
        return None
    entry = found[nearest[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, nearest[0])


def is_no_builtin(record: logging.LogRecord) -> bool:
    """Whether a warning is of anything but a type in an annotation, such as bytes, that attributes are called too."""
    ambiguous = str(record.msg).startswith("more than one target found for cross-reference")
    return not (ambiguous and record.args and hasattr(builtins, str(record.args[0])))


def setup(app) -> dict:
    # numpydoc has no types in the docstrings of properties; napoleon takes what stands before a colon for one
    NumpyDocstring._parse_attribute_docstring = lambda self: list(self._lines)
    app.add_directive("generated", Generated)
    app.add_directive("public-names", PublicNames)
    logging.getLogger("sphinx.sphinx.domains.python").addFilter(is_no_builtin)
    app.connect("missing-reference", find_by_name)
    app.connect("html-page-context", titles_alone, priority=100)  # before the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
