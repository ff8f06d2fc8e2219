"""The quick tier holds what it says: every area, one case for each kind of value, no other tier's tests."""

from types import SimpleNamespace

import pytest

import softnum as sn
from softnum.runtime import _core
from tests.support import quick
from tests.support.cases import cases
from tests.support.quick import FILES, QUICK, SLOWER, aspects, choose

TESTS = quick.Path(__file__).resolve().parents[1]
BEST = _core.available_isas()[-1]


def chosen(path="core/test_array.py", name="test_it", marks=(), **values):
    """Which of the cases are chosen: each argument is a list of a parameter's values."""
    count = max(map(len, values.values()), default=1)
    items = [
        SimpleNamespace(
            path=TESTS / path, originalname=name, nodeid=f"tests/{path}::{name}[{i}]", number=i,
            callspec=SimpleNamespace(params={key: held[i] for key, held in values.items()}), stash={},
            get_closest_marker=lambda mark: mark in marks,
        )
        for i in range(count)
    ]  # fmt: skip
    return [item.number for item, _ in choose(items)]


def test_every_area_has_quick_tests():
    areas = {path.name for path in TESTS.iterdir() if any(path.glob("test_*.py"))}
    assert set(FILES) == areas
    assert all((TESTS / name).is_file() for name in QUICK)
    text = "".join((TESTS / name).read_text(encoding="utf-8") for name in QUICK)
    assert all(f"def {name}(" in text for name in SLOWER)


def test_one_format_of_each_kind():
    names = ["e5m2", "e4m3", "e4m3fn", "binary16", "q4.4", "q2.6", "uq8.8", "mxfp4", "nvfp4", "mxfp8_e4m3"]
    kept = [names[i] for i in chosen(fmt=names)]
    assert kept[:5] == ["e5m2", "e4m3fn", "binary16", "q4.4", "uq8.8"] and "mxfp4" in kept
    assert [names[i] for i in chosen(fmt=[sn.format(name) for name in names])] == kept


def test_one_mode_of_each_family():
    modes = ["nearest_even", "nearest_away", "up", "down", "toward_zero", "to_odd", "stochastic", "stochastic_floor"]
    assert [modes[i] for i in chosen(mode=modes)] == ["nearest_even", "up", "to_odd", "stochastic"]


def test_cases_within_tests():
    """They are chosen as the parametrized ones, over all items of a test; an item is quick if one of its cases is."""

    @cases("mode", ["up", "nearest_even", "down"])
    @cases("fmt", ["e5m2", "binary16", "e4m3"])
    def test_it(k, fmt, mode): ...

    item = SimpleNamespace(
        path=TESTS / "core/test_array.py", originalname="test_it", nodeid="tests/core/test_array.py::test_it[7]",
        callspec=SimpleNamespace(params={"k": 7}), function=test_it, stash={}, get_closest_marker=lambda mark: False,
    )  # fmt: skip
    again = SimpleNamespace(**vars(item) | {"nodeid": "tests/core/test_array.py::test_it[8]"})
    ((first, found),) = choose([item, again])
    assert first is item and [case.name for case in found] == ["e5m2-up", "e5m2-nearest_even", "binary16-up"]


def test_units_by_what_they_state():
    units = [
        sn.MadUnit("e6m9", operand="e5m2"),
        sn.MadUnit("e6m8", operand="e5m2"),
        sn.MadUnit("e6m9", operand="e5m2", lanes=4),
        sn.MadUnit("e6m9", operand="e5m2", lanes=8),
        sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic"),
        sn.ExactDotUnit("e6m9", operand="e5m2"),
    ]
    assert chosen(u=units) == [0, 2, 4, 5]
    assert chosen(u=units, k=[0, 0, 0, 7, 9, 1]) == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("isa", quick.ISAS)
def test_the_best_instruction_set(isa):
    assert chosen(isa=[isa]) == ([0] if isa == BEST else [])


def test_what_is_not_quick():
    assert chosen() == [0] and chosen("core/test_exhaustive.py") == []
    assert chosen(name=min(SLOWER)) == [] and [chosen(marks=[tier]) for tier in quick.OTHER_TIERS] == [[], [], []]


def test_aspects_of_plain_values():
    assert aspects([0, 1, 2, 5.5, None, "text", True]) == {"0", "1", "int", "float", "None", "text", "True"}
    assert aspects({"lanes": 4}) == {"lanes int"} and aspects(aspects) == {"function", "aspects"}
