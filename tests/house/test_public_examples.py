"""Every public name shows how it is used; tests/core/test_in_step.py and others run what is shown."""

import doctest
import importlib
from types import ModuleType

import pytest

PACKAGES = ("softnum", "softnum.kernels", "softnum.reference", "softnum.train", "softnum.tta")
#: they install or run another program, or take a schema of the user's, so that their examples are shown and not run
NOT_RUN = {
    f"softnum.tta.{name}"
    for name in (
        "create_environment", "load_chakra_schema", "read_trace", "run_astrasim", "simulate", "write_astrasim",
        "write_trace",
    )
}  # fmt: skip


def without_examples(package):
    """(public names whose docstring has no example, names whose examples are never run)"""
    bare, idle = set(), set()
    for name in package.__all__:
        thing = getattr(package, name)
        if not callable(thing) or isinstance(thing, ModuleType):  # a constant's comment is its documentation
            continue
        examples = doctest.DocTestParser().get_examples(thing.__doc__ or "")
        if not examples:
            bare.add(f"{package.__name__}.{name}")
        elif all(example.options.get(doctest.SKIP) for example in examples if "(" in example.source):
            idle.add(f"{package.__name__}.{name}")
    return bare, idle


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_have_examples(name):
    bare, idle = without_examples(importlib.import_module(name))
    assert not bare and idle <= NOT_RUN


def test_a_name_without_an_example_is_found():
    def bare():
        """Says nothing."""

    def idle():
        """>>> idle()  # doctest: +SKIP"""

    def good():
        """>>> good()"""

    package = ModuleType("package")
    package.__all__ = ["bare", "good", "idle", "number"]
    package.bare, package.good, package.idle, package.number = bare, good, idle, 7
    assert without_examples(package) == ({"package.bare"}, {"package.idle"})
