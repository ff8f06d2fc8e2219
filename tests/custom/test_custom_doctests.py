"""The examples of softnum.formats.custom run, those in examples/custom among them."""

import doctest
import importlib
import pkgutil

from softnum.formats import custom
from tests.support.cases import cases
from tests.support.custom_examples import EXAMPLES

OF_THE_PACKAGE = [m.name for m in pkgutil.iter_modules(custom.__path__, f"{custom.__name__}.")]
WORKED = sorted(path.stem for path in EXAMPLES.glob("*.py") if ">>>" in path.read_text(encoding="utf-8"))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@cases("name", [*OF_THE_PACKAGE, *WORKED])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0 and (result.attempted > 0 or name in OF_THE_PACKAGE)
