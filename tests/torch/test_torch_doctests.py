"""The examples in the docstrings of softnum.torch run."""

import doctest
import importlib
import pkgutil

import pytest

pytest.importorskip("torch")
import softnum.torch
from tests.support.cases import cases

pytestmark = pytest.mark.filterwarnings("default")
MODULES = sorted(info.name for info in pkgutil.walk_packages(softnum.torch.__path__, "softnum.torch."))


@cases("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples():
    count = sum(len(doctest.DocTestFinder().find(importlib.import_module(name))) for name in MODULES)
    assert count > 20
