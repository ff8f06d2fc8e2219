"""Old names of moved modules lead to the new modules (tests/support/moved.py)."""

import importlib
import importlib.util
import sys

import pytest

from tests.support.moved import MOVED, Moved

FILES = {
    "__init__.py": "from made_up.sums.total import total\n",
    "sums/__init__.py": "",
    "sums/total.py": "def total(*x):\n    return start() + sum(x)\n\n\ndef start():\n    return 0\n",
    "sums/late.py": "from . import total as other\n\nVALUE = other.total(1, 2)\n",
    "sums/posits/__init__.py": "",
    "sums/posits/text.py": "WORD = 'posit'\n",
    "stays.py": "",
}
TABLE = {
    "made_up.total": "made_up.sums.total",
    "made_up.late": "made_up.sums.late",
    "made_up.custom": "made_up.sums.posits",
    "made_up.custom.late": "made_up.sums.late",
    "made_up.stays": "made_up.sums.total",
    "made_up.gone": "made_up.sums.gone",
}


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A package whose modules have moved into others, and whose function `total` bears the name of one."""
    for name, text in FILES.items():
        path = tmp_path / "made_up" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Moved(TABLE), *sys.meta_path])
    yield importlib.import_module("made_up")
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_up"]:
        del sys.modules[name]


def test_each_way_to_import(made_up):
    import made_up.late
    import made_up.sums.late as new
    from made_up import late
    from made_up.late import VALUE

    assert made_up.late is late is new is sys.modules["made_up.late"] is importlib.import_module("made_up.late")
    assert VALUE == 3 and new.__name__ == new.__spec__.name == "made_up.sums.late"


def test_a_function_keeps_its_name(made_up):
    function, kind = made_up.total, type(made_up)
    module = importlib.import_module("made_up.total")
    from made_up.total import start

    assert module is sys.modules["made_up.sums.total"] and module.start is start
    assert made_up.total is function is module.total and type(made_up) is kind
    made_up.total = 1  # the package is as it was
    assert made_up.total == 1


def test_a_package_with_what_it_holds(made_up):
    from made_up.custom import late, text
    from made_up.sums.posits import text as new

    assert text is new and text.WORD == "posit" and late is sys.modules["made_up.sums.late"]


def test_paths_in_text(made_up, monkeypatch):
    from made_up.sums import late, total

    with monkeypatch.context() as patch:
        patch.setattr("made_up.late.VALUE", 7)
        patch.setattr("made_up.late.other.start", lambda: 10)
        assert late.VALUE == 7 and total.total(1) == made_up.total(1) == 11
    assert late.VALUE == 3 and made_up.total(1) == 1


def test_refusals(made_up):
    with pytest.raises(ImportError, match=r"made_up\.stays is there: it cannot stand for made_up\.sums\.total"):
        import made_up.stays
    with pytest.raises(ImportError, match=r"No module named 'made_up\.sums\.gone'"):
        import made_up.gone
    with pytest.raises(ImportError, match=r"No module named 'made_up\.nothing'"):
        import made_up.nothing
    assert not hasattr(made_up, "gone") and "made_up.gone" not in sys.modules


def test_the_table():
    """Every entry has an old name that is free, and a module."""
    for old, new in MOVED.items():
        if new == "softnum.kernels.device.runtime.launches":  # of Numba's driver, which its simulator is without
            assert importlib.util.find_spec(new) is not None
            continue
        assert importlib.import_module(old) is importlib.import_module(new)
