"""Look-ups in the place of steps that follow from one tensor alone, element by element.

In a deterministic mode the elements of such steps are a function of the tensor's code at that place. What they are is
computed once for each code that occurs, by the steps themselves, and kept: results and errors are theirs.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

import numpy as np

from softnum.tile.elementwise import Loops
from softnum.tile.program import PREDICATES, Contraction
from softnum.tile.syntax import TileError

__all__ = ["MOST_BITS", "Group", "Table", "Tables", "is_elementwise"]

MOST_BITS = 16  # of codes that are looked up
_MAKING = Lock()  # the arrays of a table
_MOST_TABLES = 32  # of one operator, the last used: up to 128 KiB for each of their outputs


@dataclass(frozen=True)
class Group:
    """The steps that follow from the tensor `root`; outputs: those of them that are wanted elsewhere.

    numbers: theirs, and before them those of the steps of constants alone that they read. bases: what they round to.
    """

    root: str
    numbers: tuple[int, ...]
    outputs: tuple[str, ...]
    bases: tuple[str, ...]


class Table:
    """The outputs of a group for the codes of its root's format, as far as they are known."""

    def __init__(self, codes: int) -> None:
        self._known = np.zeros(codes, bool)
        self._outputs: dict[str, np.ndarray] = {}
        self._all_at_once = self._tried = False  # the second call brings all codes in, if they all have results

    def look_up(self, codes: np.ndarray, compute) -> dict[str, np.ndarray]:
        """Output -> its elements for these codes; compute(codes) gives those that are not known."""
        codes = codes.astype(np.intp)  # what take makes of them each time
        if not (codes.size or self._outputs):
            self._keep(codes.reshape(-1), compute)  # which tells the outputs and their types
        if not self._known.take(codes).all():
            if self._all_at_once:
                try:
                    self._keep(np.flatnonzero(~self._known), compute)
                except TileError:
                    self._all_at_once = False  # some codes have no result, and perhaps never occur
            wanted = np.zeros(len(self._known), bool)
            wanted[codes] = True
            wanted &= ~self._known
            if wanted.any():
                self._keep(np.flatnonzero(wanted), compute)
                self._all_at_once = not self._tried
                self._tried = True
        return {name: table.take(codes) for name, table in self._outputs.items()}

    def _keep(self, codes: np.ndarray, compute) -> None:
        found = compute(codes)
        if not self._outputs:
            made = {name: np.zeros(len(self._known), elements.dtype) for name, elements in found.items()}
            with _MAKING:  # else a second thread's arrays take the place of those that the first has filled
                self._outputs = self._outputs or made
        for name, elements in found.items():
            self._outputs[name][codes] = elements
        self._known[codes] = True  # last: another thread may look, and finds what it must compute itself


class Tables:
    """The groups of a program, and their tables for the formats and roundings that were asked for."""

    def __init__(self, program) -> None:
        #: name of a step -> its group
        self.groups: dict[str, Group] = {}
        #: names of the steps that follow from constants alone
        self.constants: set[str] = set()
        self.loops = Loops()
        self._kept: OrderedDict = OrderedDict()
        self._find_groups(program)

    def _find_groups(self, program) -> None:
        steps = {step.name: step for step in program.steps}
        roots: dict[str, str | None] = {}
        for number in program.needed:
            step = program.steps[number]
            reads = _element_by_element(step, steps)
            if reads is None:
                continue
            found = {roots.get(name, name) for name in reads} - {None}
            if len(found) < 2:
                roots[step.name] = found.pop() if found else None
        self.constants = {name for name, root in roots.items() if root is None}
        constants = [n for n in program.needed if program.steps[n].name in self.constants]
        # a vector is no constant, and in a group it is one
        vectors = [n for n in program.needed if getattr(program.steps[n], "function", "") == "vector"]
        for root in dict.fromkeys(root for root in roots.values() if root is not None):
            mine = [n for n in program.needed if roots.get(program.steps[n].name) == root]
            members = {program.steps[n].name for n in mine}
            wanted = set(program.outputs)
            for number in program.needed:
                if program.steps[number].name not in members:
                    wanted.update(program.steps[number].reads)
            read = _behind(program, members)
            numbers = sorted([*mine, *(n for n in (*constants, *vectors) if program.steps[n].name in read)])
            outputs = tuple(program.steps[n].name for n in mine if program.steps[n].name in wanted)
            bases = tuple(dict.fromkeys(program.steps[n].base for n in numbers if _rounds(program.steps[n])))
            self.groups |= dict.fromkeys(members, Group(root, tuple(numbers), outputs, bases))

    def of(self, group: Group, facts) -> Table:
        """The table of a group under some formats and roundings; facts: all that its entries depend on."""
        key = group.root, facts
        table = self._kept.pop(key, None)
        if table is None:
            table = Table(1 << facts[0].bits)
            while len(self._kept) >= _MOST_TABLES:
                self._kept.popitem(last=False)
        self._kept[key] = table
        return table


def is_elementwise(step) -> bool:
    """Whether it is an operation on elements at the same place."""
    return not isinstance(step, Contraction) and step.function not in ("gather", "reduce_like", "scatter", "vector")


def _element_by_element(step, steps: dict) -> tuple[str, ...] | None:
    """The tensors whose elements decide the step's at the same place; None if others do."""
    if is_elementwise(step):
        return step.reads
    if isinstance(step, Contraction) or step.function != "gather":
        return None
    table, places = step.arguments
    of_constants = table in steps and getattr(steps[table], "function", "") == "vector"
    return (places,) if of_constants else None


def _rounds(step) -> bool:
    """Whether a step has a format, which conditions have not."""
    return step.base != "condition" and step.function not in PREDICATES


def _behind(program, names: set[str]) -> set[str]:
    """What is read by the steps of these names, and by the steps behind them."""
    found = set(names)
    for step in reversed(program.steps):
        if step.name in found:
            found.update(step.reads)
    return found
