"""Imports go down, from floor to floor, and never in a circle; what still runs otherwise is listed, and shrinks."""

from pathlib import Path

import pytest

from tests.support.floors import FLOORS, KNOWN, MOVED
from tests.support.imports import circle_text, circles, graph_of, rising

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def graph():
    return graph_of(ROOT, moved=MOVED)


def test_no_import_goes_up(graph):
    new = [str(arrow) for arrow in rising(graph, FLOORS) if arrow.pair not in KNOWN]
    assert not new, "\n".join(["these go to floors that their own does not stand on:", *new])


def test_no_imports_in_a_circle(graph):
    rest = graph.without(KNOWN)
    assert not circles(rest), "\n".join(circle_text(rest, group) for group in circles(rest))


def test_what_is_listed_is_still_so(graph):
    up, wrong = {arrow.pair for arrow in rising(graph, FLOORS)}, {arrow.pair for arrow in graph.arrows} & KNOWN
    for pair in wrong - up:
        if not any(set(pair) <= set(group) for group in circles(graph.without(KNOWN - {pair}))):
            wrong.discard(pair)
    assert wrong == KNOWN, f"take out of KNOWN: {sorted(KNOWN - wrong)}"
    assert not (gone := [file for file in MOVED if not (ROOT / file).exists()]), f"take out of MOVED: {gone}"


def test_every_floor_has_modules_and_stands_on_floors(graph):
    for floor, below in FLOORS.items():
        assert floor not in below and set(below) <= set(FLOORS)
        assert any(f"{name}.".startswith(f"{floor}.") for name in graph.modules)
