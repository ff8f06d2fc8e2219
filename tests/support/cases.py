"""Cases within a test: stated as for pytest.mark.parametrize, run as subtests of one test.

pytest makes an item of each parametrized case, and to collect tens of thousands takes longer than many of them run.
`cases` makes one item of all: a case that fails is reported by its name and the rest still run, a skip skips its case.

    @cases("mode", MODES)
    @cases("fmt", ["e4m3", "binary16"])
    def test_it(fmt, mode): ...

``pytest path::test_it --case e4m3`` runs those cases again, parametrized ones too, whose names hold that. What fixtures
of a function's scope give (``tmp_path``, ``monkeypatch``) is shared by the cases of a test: tests that change it are
parametrized.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

__all__ = ["Case", "cases", "cases_of", "named", "restrict"]

_PARAM = type(pytest.param())
_TO_RUN = pytest.StashKey[Sequence["Case"]]()


@dataclass(frozen=True)
class Case:
    """A case: its name in reports, and the arguments that it gives to the test."""

    name: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


def cases(names: str | Sequence[str], values: Iterable, ids: Iterable | Callable | None = None) -> Callable:
    """A decorator with pytest.mark.parametrize's arguments and order; several make the product of their cases.

    Raises
    ------
    TypeError
        If a case has marks: it is no item of its own.
    ValueError
        If a case has not one value for each name, or ``ids`` not one for each case; when it decorates, if the test
        lacks an argument or another `cases` gives it.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    added = _named(names, list(values), ids)

    def decorate(test):
        inner, held, before = getattr(test, "folded", (test, [], [Case()]))
        if missing := [name for name in names if name not in inspect.signature(test).parameters]:
            raise ValueError(f"{test.__name__} has no argument {missing[0]!r} that is not given already")
        both = [
            Case(f"{a.name}-{b.name}" if a.name else b.name, {**a.values, **b.values}) for a in before for b in added
        ]
        return _folded(inner, held + names, both, getattr(test, "pytestmark", []))

    return decorate


def cases_of(item: pytest.Item) -> Sequence[Case]:
    """The cases that a collected test is to run; one without name and values, if it has none in it."""
    *_, every = getattr(getattr(item, "function", None), "folded", [[Case()]])
    return item.stash.get(_TO_RUN, every)


def named(item: pytest.Item, text: str) -> Sequence[Case]:
    """The cases of a collected test whose names, the item's own before them, hold a text."""
    own = item.callspec.id if hasattr(item, "callspec") else ""
    return [case for case in cases_of(item) if text in f"{own}-{case.name}"]


def restrict(item: pytest.Item, chosen: Sequence[Case]) -> None:
    """Let a collected test run these of its cases alone."""
    item.stash[_TO_RUN] = chosen


def _folded(test: Callable, names: list[str], every: Sequence[Case], marks: Sequence) -> Callable:
    """A test's cases, which give the arguments of these names, in one test."""
    parameters = inspect.signature(test).parameters
    fixtures = {"request", "subtests"}

    # what hypothesis notes on a test is not the wrapper's: its plugin would forbid the wrapper's fixtures
    @functools.wraps(test, updated=())
    def run(*args, **given):
        __tracebackhide__ = True
        if "subtests" not in given:  # another test calls this one, with a case of its own
            test(*args, **given)
            return
        request, subtests = given["request"], given["subtests"]
        given = {name: value for name, value in given.items() if name not in fixtures or name in parameters}
        to_run, skipped = cases_of(request.node), []
        for case in to_run:
            with subtests.test(case.name):
                try:
                    test(*args, **given, **case.values)
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                    raise
        if len(skipped) == len(to_run):
            raise skipped[0] if skipped else pytest.skip.Exception("no cases")

    shown = [parameter for name, parameter in parameters.items() if name not in names]
    shown += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(fixtures - {*parameters})]
    run.__signature__ = inspect.Signature(shown)
    run.folded, run.pytestmark = (test, names, every), list(marks)
    return run


def _named(names: Sequence[str], values: Sequence, ids: Iterable | Callable | None) -> list[Case]:
    """The cases of one `cases`, whose names differ."""
    stated = None if ids is None or callable(ids) else list(ids)
    if stated is not None and len(stated) != len(values):
        raise ValueError(f"{len(stated)} ids for {len(values)} cases of {', '.join(names)}")
    found = []
    for i, value in enumerate(values):
        own = stated[i] if stated else None
        if isinstance(value, _PARAM):
            if value.marks:
                raise TypeError(f"case {i} of {', '.join(names)} has marks: state it by pytest.mark.parametrize")
            own, held = value.id or own, value.values
        else:
            held = (value,) if len(names) == 1 else tuple(value)
        if len(held) != len(names):
            raise ValueError(f"case {i} has {len(held)} values for {', '.join(names)}")
        told = [(ids(x) if callable(ids) else None) for x in held]
        parts = [_text(x if t is None else t, f"{name}{i}") for name, x, t in zip(names, held, told, strict=True)]
        found.append(Case("-".join(parts) if own is None else str(own), dict(zip(names, held, strict=True))))
    count = Counter(case.name for case in found)
    return [case if count[case.name] == 1 else Case(f"{case.name}{i}", case.values) for i, case in enumerate(found)]


def _text(value, otherwise: str) -> str:
    """What stands for a value in a case's name."""
    if value is None or isinstance(value, str | bool | int | float | complex):
        return str(value)
    name = getattr(value, "__name__", getattr(value, "name", None))
    return name if isinstance(name, str) else otherwise
