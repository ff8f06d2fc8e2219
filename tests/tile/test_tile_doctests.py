"""The examples in the docstrings of softnum.tile run."""

import doctest
import importlib
import pkgutil

import softnum.tile
from tests.support.cases import cases


@cases("name", sorted(m.name for m in pkgutil.iter_modules(softnum.tile.__path__)))
def test_examples_run(name):
    module = importlib.import_module(f"softnum.tile.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
