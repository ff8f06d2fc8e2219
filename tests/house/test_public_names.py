"""The page of public names says what the code has, and names that are public are annotated."""

import functools
import inspect
import pkgutil
from importlib import import_module

import pytest

from tests.support.public_page import PAGE, levels, rewritten

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no checkout: there are no pages")
#: modules of which every public name, and every public member of a class, is annotated
ANNOTATED = (
    "softnum", "softnum.arrays", "softnum.collectives", "softnum.formats", "softnum.inspect", "softnum.mac",
    "softnum.mac.products", "softnum.ops", "softnum.reference", "softnum.tile", "softnum.tta", "softnum.vectors",
)  # fmt: skip
#: packages of which the same holds for all modules
WHOLLY = ("softnum.reference", "softnum.tta", "softnum.vectors")
NEEDED = {"softnum.tta": ("altair", "matplotlib"), "softnum.vectors": ("cocotb",)}


def bare_parts(name: str, function) -> list[str]:
    """The parameters of a function that have no annotation, and "return"."""
    if getattr(function, "__signature__", None) is not None:  # operations, which have their types from a protocol
        return []
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    bare = [f"{name}({p.name})" for p in parameters if p.annotation is inspect.Parameter.empty]
    return bare + [f"{name} -> ?"] * (signature.return_annotation is inspect.Signature.empty)


def bare_members(name: str, kind: type) -> list[str]:
    """The same of the functions and properties that a class of softnum's defines."""
    bare = []
    for member, value in vars(kind).items():
        value = value.func if isinstance(value, functools.cached_property) else value
        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        stated = member in inspect.get_annotations(kind)
        if not member.startswith("_") and inspect.isfunction(value) and not stated:
            bare += bare_parts(f"{name}.{member}", value)
    return bare


def test_the_page_has_the_names_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    assert text == rewritten(text), "python -m tests.support.public_page writes the lists anew; look at the difference"
    assert set(levels(text)) == {"Public", "Experimental", "Deprecated"} and "softnum" in levels(text)["Public"]


def bare_names(module: str) -> list[str]:
    """The same of all names that a module lists."""
    bare = []
    for name in getattr(import_module(module), "__all__", ()):
        thing = getattr(import_module(module), name)
        if inspect.isclass(thing):
            bare += bare_members(name, thing)
        elif inspect.isfunction(thing):
            bare += bare_parts(name, thing)
    return bare


@pytest.mark.parametrize("module", ANNOTATED)
def test_public_names_are_annotated(module):
    assert bare_names(module) == []


@pytest.mark.parametrize("package", WHOLLY)
def test_names_of_all_modules_are_annotated(package):
    for needed in NEEDED.get(package, ()):
        pytest.importorskip(needed)
    modules = [found.name for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")]
    assert len(modules) > 10 and {name: bare for name in modules if (bare := bare_names(name))} == {}


def test_a_bare_function_is_found():
    def good(a: int, *, b: str = "") -> None: ...
    def half(a, *, b: str = ""): ...

    class Kind:
        def member(self, x) -> None: ...

    assert bare_parts("good", good) == [] and bare_parts("half", half) == ["half(a)", "half -> ?"]
    assert bare_members("Kind", Kind) == ["Kind.member(x)"]
