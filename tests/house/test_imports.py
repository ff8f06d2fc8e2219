"""The reader of imports finds every form of them in a made-up tree, and nothing else."""

import pytest

from tests.support.imports import Arrow, circle_text, circles, floor_of, graph_of, rising

PACKAGES = {"made": "made", "more": "made.more"}
FLOORS = {"made.low": (), "made.high": ("made.low",), "made.more": ("made.low", "made.high"), "made": ()}

PYTHON = {
    "from a module": "from made.high import x",
    "from a package": "from made import high",
    "from a package, renamed": "from made import high as h",
    "all names": "from made.high import *",
    "renamed": "import made.high as h",
    "one of several": "import os, made.high as h, sys",
    "relative": "from .high import x",
    "relative to the package": "from . import high",
    "in a function": "def f():\n    from made.high import x",
    "in a method": "class A:\n    async def f(self):\n        from made import high",
    "in a class": "class A:\n    from made.high import x",
    "where it may be missing": "try:\n    from made.high import x\nexcept ImportError:\n    x = None",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.high import x",
    "import_module": "from importlib import import_module\nimport_module('made.high')",
    "import_module, renamed": "from importlib import import_module as load\nload('made.high')",
    "importlib": "import importlib\nx = importlib.import_module('made.high').x",
    "relative import_module": "import importlib\nimportlib.import_module('.high', 'made')",
    "relative to itself": "import importlib\nimportlib.import_module('.high', package=__package__)",
    "__import__": "__import__('made.high')",
    "__import__ of a part": "__import__('made.high.part')",
    "f-string": "from importlib import import_module\ndef f(n):\n    return import_module(f'made.hi{n}')",
    "f-string on __name__": "import importlib\nimportlib.import_module(f'{__package__}.high')",
    "table": "from importlib import import_module\nT = {'x': 'made.high'}\ndef f(n):\n    return import_module(T[n])",
    "table of names": "from importlib import import_module\nT = ['made.high:x']\nx = map(import_module, T)",
    "lazy attribute": "T = {'x': 'made.high'}\ndef __getattr__(name):\n    return load(T[name])",
    "what is imported already": "import sys\nx = sys.modules['made.high']",
}
CYTHON = {
    "cimport": "cimport made.high as h",
    "from": "from made.high cimport x, y",
    "from a package": "from made cimport low, high",
    "several lines": "from made.high cimport (\n    x,\n    y,\n)",
    "a backslash": "from made.high \\\n    import x",
    "in a function": "cdef int f() except -1:\n    from made.high import x\n    return x",
    "on one line": "if True: from made.high import x",
    "after a semicolon": "cdef int i = 0; from made.high import x",
    "relative": "from . cimport high",
    "relative to a module": "from .high cimport x",
    "import_module": "from importlib import import_module\ndef f():\n    return import_module('made.high')",
    "after strings": "cdef str s = '#'; t = \"'''\"\nfrom made.high import x",
}
NOTHING = {
    "a docstring": '"""\n>>> import made.high\nfrom made.high import x\n"""',
    "a comment": "# from made.high import x",
    "a string": "x = 'made.high'",
    "a name of another": "from other.made import high",
    "its own": "from made.low import x",
    "a longer name": "import higher\nimport madeup.high",
    "a docstring of a lazy module": 'import importlib\ndef f(n):\n    "made.high"\n    importlib.import_module(n)',
}


def tree(folder, files):
    """A tree of files, given by name; those of high, and packages, are there unless given."""
    usual = {"made/__init__.py": "", "made/high.py": "x = 1", "made/low.py": "x = 1", "more/__init__.py": ""}
    for name, text in (usual | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def arrows(folder, files, **options):
    return [
        (a.source, a.target, a.file, a.line) for a in graph_of(tree(folder, files), PACKAGES, **options).arrows
    ]  # fmt: skip


@pytest.mark.parametrize("form", PYTHON)
def test_python_imports(form, tmp_path):
    line = next(i for i, text in enumerate(PYTHON[form].split("\n"), 1) if "high" in text or "hi{" in text)
    assert arrows(tmp_path, {"made/low.py": PYTHON[form]}) == [("made.low", "made.high", "made/low.py", line)]


@pytest.mark.parametrize("form", CYTHON)
@pytest.mark.parametrize("ending", ["pyx", "pxd"])
def test_cython_imports(form, ending, tmp_path):
    found = [a for a in arrows(tmp_path, {f"made/_low.{ending}": '"""Text."""\n' + CYTHON[form]}) if a[1] != "made.low"]
    line = 2 + next(i for i, text in enumerate(CYTHON[form].split("\n")) if "made" in text or "." in text)
    assert found == [("made._low", "made.high", f"made/_low.{ending}", line)]


@pytest.mark.parametrize("form", NOTHING)
@pytest.mark.parametrize("ending", ["py", "pyx"])
def test_what_is_no_import(form, ending, tmp_path):
    (tree(tmp_path, {}) / "made/low.py").unlink()
    assert arrows(tmp_path, {"made/low.py": "x = 1", f"made/other.{ending}": NOTHING[form]}) in (
        [],
        [("made.other", "made.low", f"made/other.{ending}", 1)],
    )


def test_import_binds_the_top_package(tmp_path):
    found = arrows(tmp_path, {"made/low.py": "\nimport made.high"})
    assert found == [("made.low", "made.high", "made/low.py", 2), ("made.low", "made", "made/low.py", 2)]


def test_a_name_that_a_package_hides(tmp_path):
    """`from made import high` is what the package binds, if that is another thing than its module."""
    files = {"made/low.py": "from made import high", "made/__init__.py": "from made.high import high"}
    assert ("made.low", "made", "made/low.py", 1) in arrows(tmp_path, files)
    files["made/__init__.py"] = "from made import high"
    assert ("made.low", "made.high", "made/low.py", 1) in arrows(tmp_path, files)


def test_a_lazy_package(tmp_path):
    text = "_T = {\n    'x': 'high',\n    'y': '.low',\n    'z': 'no',\n}\ndef __getattr__(name): return load(_T[name])"
    assert arrows(tmp_path, {"made/__init__.py": text}) == [
        ("made", "made.high", "made/__init__.py", 2), ("made", "made.low", "made/__init__.py", 3),
    ]  # fmt: skip


def test_packages_in_other_folders(tmp_path):
    files = {"more/a.py": "from . import b\nfrom ..low import x", "more/b.py": "from made import more"}
    assert arrows(tmp_path, files) == [
        ("made.more.a", "made.more.b", "more/a.py", 1), ("made.more.a", "made.low", "more/a.py", 2),
        ("made.more.b", "made.more", "more/b.py", 1),
    ]  # fmt: skip


def test_files_that_are_to_move(tmp_path):
    files = {"made/low.py": "from made.high import x", "more/a.py": "import made.low as m"}
    assert arrows(tmp_path, files, moved={"made/low.py": "made/base/floor.py", "docs/a.md": "docs/b.md"}) == [
        ("made.base.floor", "made.high", "made/low.py", 1), ("made.more.a", "made.base.floor", "more/a.py", 1),
    ]  # fmt: skip


def test_floors():
    floors = {"made.low": (), "made.low.base": (), "made": ()}
    names = ("made.low", "made.low.x", "made.low.base.x.y", "made.lower", "made", "made.__main__", "made.low.__main__")
    assert [floor_of(name, floors) for name in names] == [
        "made.low", "made.low", "made.low.base", None, "made", "made", "made.low",
    ]  # fmt: skip


def test_an_arrow_up_is_found(tmp_path):
    files = {"made/high.py": "from made.low import x", "made/low.py": "def f():\n    import made.high as h"}
    (arrow,) = rising(graph_of(tree(tmp_path, files), PACKAGES), FLOORS)
    assert arrow == Arrow("made.low", "made.high", "made/low.py", 2)
    assert str(arrow) == "made/low.py:2: made.low imports made.high"


def test_a_module_on_no_floor(tmp_path):
    graph = graph_of(tree(tmp_path, {"made/lowest.py": ""}), PACKAGES)
    with pytest.raises(ValueError, match=r"on no floor: made/lowest\.py \(made\.lowest\)"):
        rising(graph, FLOORS)


def test_circles_are_found(tmp_path):
    files = {
        "made/high.py": "from made import low", "made/low.py": "def f():\n    from made import high",
        "more/a.py": "from made.more import b", "more/b.py": "from made.more import c",
        "more/c.py": "from made.more import a, b\nfrom made import high", "more/d.py": "from made.more import a",
    }  # fmt: skip
    graph = graph_of(tree(tmp_path, files), PACKAGES)
    assert circles(graph) == [("made.more.a", "made.more.b", "made.more.c"), ("made.high", "made.low")]
    assert circle_text(graph, circles(graph)[0]).split("\n") == [
        "3 modules import each other in circles, among them:",
        "  more/b.py:1: made.more.b imports made.more.c",
        "  more/c.py:1: made.more.c imports made.more.b",
    ]
    assert circles(graph.without([("made.low", "made.high"), ("made.more.b", "made.more.c")])) == []


def test_a_long_circle(tmp_path):
    """No recursion: as many modules as there may be."""
    count = 1200
    files = {f"made/m{i}.py": f"import made.m{(i + 1) % count} as m" for i in range(count)}
    assert list(map(len, circles(graph_of(tree(tmp_path, files), PACKAGES)))) == [count]
