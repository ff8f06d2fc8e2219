"""Names that are imported when they are first asked for: one table says which, and type checkers read it."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import softnum as sn
from tests.support.cases import cases

ROOT = Path(sn.__file__).parent
#: the packages that have such names -> their syntax trees
TREES = {
    ".".join(("softnum", *path.relative_to(ROOT).parts[:-1])): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.rglob("__init__.py"))
    if "names_on_demand" in path.read_text(encoding="utf-8")
}


def table_of(tree) -> dict[str, tuple[str, ...]]:
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "names_on_demand" in ast.unparse(node)]
    return ast.literal_eval(call.args[1])


def packages_of(tree) -> set[str]:
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "names_on_demand" in ast.unparse(node)]
    return set(ast.literal_eval(call.args[2])) if len(call.args) > 2 else set()


def test_there_are_such_packages():
    assert {"softnum", "softnum.ops", "softnum.tta", "softnum.tta.workloads"} <= set(TREES)


@cases("package", TREES)
def test_the_table_and_the_imports_for_type_checkers_agree(package):
    tree, module = TREES[package], import_module(package)
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    checked = {}
    for node in block.body:
        checked.setdefault(node.module, set()).update(alias.name for alias in node.names)
    assert checked.pop(package, set()) == (packages_of(tree) if package != "softnum.mac" else set())  # a floor higher
    assert checked == {module: set(names) for module, names in table_of(tree).items()}
    later = {name for names in table_of(tree).values() for name in names}
    assert later <= set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is getattr(module, name) for name in module.__all__)


def test_names_are_there_and_their_modules_are_not_before():
    early = [*table_of(TREES["softnum"]), *table_of(TREES["softnum.ops"])]
    code = (
        "import sys, softnum\n"
        f"early = [module for module in {early} if module in sys.modules]\n"
        "assert early == [], early\n"
        "assert set(softnum.__all__) <= set(dir(softnum))\n"
        "assert all(getattr(softnum, name) is getattr(softnum, name) for name in softnum.__all__)\n"
        "from softnum import operator, matmul, tile\n"
        "assert tile.operator is operator\n"
        "import softnum.tta\n"
        "assert 'softnum.tta.traces' not in sys.modules\n"
        "softnum.tta.traces.read_trace, softnum.mac.products.conv2d_winograd"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_name_is_the_machinerys():
    assert [name for name in dir(sn) if name.isupper() and not name.startswith("_")] == []


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError, match="module 'softnum' has no attribute 'matmull'"):
        sn.matmull  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'ramps' from 'softnum.ops'"):
        from softnum.ops import ramps  # noqa: F401
