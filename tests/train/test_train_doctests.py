"""The examples in the docstrings of softnum.train and softnum.cli run."""

import doctest
import importlib
import pkgutil

import softnum.cli
import softnum.train
from tests.support.cases import cases

MODULES = sorted(
    info.name
    for package in (softnum.train, softnum.cli)
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
)


@cases("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples():
    count = sum(len(doctest.DocTestFinder().find(importlib.import_module(name))) for name in MODULES)
    assert count > 20
