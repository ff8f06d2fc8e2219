"""Imports go down, from floor to floor, and never in a circle."""

from pathlib import Path

import pytest

from tests.support.floors import FLOORS
from tests.support.imports import circle_text, circles, graph_of, rising

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def graph():
    return graph_of(ROOT)


def test_no_import_goes_up(graph):
    up = [str(arrow) for arrow in rising(graph, FLOORS)]
    assert not up, "\n".join(["these go to floors that their own does not stand on:", *up])


def test_no_imports_in_a_circle(graph):
    assert not circles(graph), "\n".join(circle_text(graph, group) for group in circles(graph))


def test_every_floor_has_modules_and_stands_on_floors(graph):
    for floor, below in FLOORS.items():
        assert floor not in below and set(below) <= set(FLOORS)
        assert any(f"{name}.".startswith(f"{floor}.") for name in graph.modules)
