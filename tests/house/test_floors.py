"""Imports go down, from floor to floor, and never in a circle."""

import re
from pathlib import Path

import pytest

from tests.support.floors import C_FLOORS, FLOORS
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


def c_floor(path):
    """The place in C_FLOORS of a file of csrc, by the longest name that its folder begins with."""
    names = [name for name in C_FLOORS if f"{Path(path).parent.as_posix()}/".startswith(f"{name}/")]
    return C_FLOORS.index(max(names, key=len))


def test_no_header_is_included_from_below():
    csrc, seen, up = ROOT / "csrc", set(), []
    for path in sorted(csrc.rglob("*.[ch]")):
        file = path.relative_to(csrc)
        seen.add(c_floor(file))
        for name in re.findall(r'^ *# *include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            header = Path(name) if (csrc / name).exists() else file.parent / name
            assert (csrc / header).exists(), f"{file} includes {name}"
            up += [f"{file} includes {name}"] if c_floor(header) > c_floor(file) else []
    assert not up, "\n".join(up)
    assert seen == set(range(len(C_FLOORS)))
