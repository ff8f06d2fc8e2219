"""Names that have moved: the old place answers, with a warning; nothing of softnum's own uses it."""

import ast
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import softnum as sn
from softnum.runtime.moved import LAST, MOVED
from tests.support.cases import cases

ROOT = Path(sn.__file__).parent
#: names that a package has at its top, at most
MOST = {"softnum": 90, "softnum.tta": 50}
ALIASES = [(old, new, name) for old, places in MOVED.items() for new, names in places.items() for name in names]


@cases("old", MOVED)
def test_the_tops_are_short_and_have_no_old_names(old):
    package, moved = import_module(old), [name for of, _, name in ALIASES if of == old]
    assert len(package.__all__) <= MOST[old], "the rest of a subject goes into its own module"
    assert len(set(moved)) == len(moved) and not set(moved) & {*package.__all__, *dir(package)}


@cases("old, new, name", ALIASES, ids=lambda part: part)
def test_an_old_name_warns_and_is_the_same(old, new, name):
    with pytest.warns(DeprecationWarning) as told:
        thing = getattr(import_module(old), name)
    text = f"{old}.{name} is {new}.{name} now; the old name is gone from release {LAST} on"
    assert [str(warning.message) for warning in told] == [text] and told[0].filename == __file__
    assert thing is getattr(import_module(new), name) and name in import_module(new).__all__


def test_an_import_of_an_old_name_warns_where_it_stands():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        from softnum import atan2
    assert {warning.filename for warning in told} == {__file__} and atan2 is sn.ops.atan2


def test_no_module_uses_an_old_name():
    found, of = [], {name for old, _, name in ALIASES if old == "softnum"}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found += [
                    (str(path), a.name)
                    for a in node.names
                    for old, _, name in ALIASES
                    if (node.module, a.name) == (old, name)
                ]
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("sn", "softnum")
            ):
                found += [(str(path), node.attr)] * (node.attr in of)
    assert found == []
