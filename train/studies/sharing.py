"""Workers and collectives as dimensions of a study: each design with each collective at each number of workers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from softnum.collectives.statement import MOST_RANKS
from softnum.train.designs.reader import load_design
from softnum.train.studies.study import Case
from softnum.train.update.workers import check_workers

__all__ = ["check_collectives", "check_counts", "shared_cases"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_COUNT = re.compile(r"w[0-9]+")  # what a label says of a number of workers


def check_counts(counts: object) -> list[int]:
    """The numbers of workers, if they are a list of different ones.

    >>> check_counts([1, 8])
    [1, 8]
    """
    good = isinstance(counts, list) and counts
    if not good or not all(type(count) is int and 1 <= count <= MOST_RANKS for count in counts):
        raise ValueError(f"workers must be a list of integers from 1 to {MOST_RANKS}, got {counts!r}")
    if len(set(counts)) != len(counts):
        raise ValueError(f"the numbers of workers must differ, got {counts!r}")
    return counts


def check_collectives(table: object) -> dict[str, str]:
    """Names and texts of collectives, if they are such: names are parts of labels.

    >>> check_collectives({"ring": "ring(unit='bfloat16')"})
    {'ring': "ring(unit='bfloat16')"}
    """
    if not isinstance(table, Mapping) or not all(isinstance(text, str) for text in table.values()):
        raise ValueError(
            f"collectives must be a table of name = text like ring = \"ring(unit='bfloat16')\", got {table!r}"
        )
    for name in table:
        if not _NAME.fullmatch(name) or _COUNT.fullmatch(name):
            raise ValueError(
                f"a collective's name is a part of labels: a letter, then letters, digits and . _ -, and not w with a "
                f"number, which stands for workers; got {name!r}"
            )
    return dict(table)


def shared_cases(cases: Iterable[Case], counts: Sequence[int], collectives: Mapping[str, str]) -> list[Case]:
    """Each case with each number of workers, and of several with each collective.

    Where there are several collectives, or several numbers, a label says which: ``a-float32@ring@w8``. One worker has
    no collective.

    Parameters
    ----------
    cases : iterable of Case
    counts : sequence of int
        As `check_counts` returns them.
    collectives : mapping of str to str
        As `check_collectives` returns them.

    Raises
    ------
    ValueError
        If a batch has no equal parts for the workers, there are several workers and no collective, a collective and no
        worker that has another, or a collective is none that workers can train with (`collective_of`).

    Examples
    --------
    >>> cases = shared_cases([Case("a-float32", 64)], [1, 8], {"ring": "ring", "tree": "tree"})
    >>> [case.label for case in cases]
    ['a-float32@w1', 'a-float32@ring@w8', 'a-float32@tree@w8']
    >>> cases[1].workers, cases[1].collective
    (8, 'ring')
    """
    several = [count for count in counts if count > 1]
    if several and not collectives:
        raise ValueError(
            f"workers = {list(counts)} sum their gradients by a collective, and none is stated; add "
            "collectives = { ring = \"ring(unit='bfloat16')\" }"
        )
    if collectives and not several:
        raise ValueError(
            f"collectives {', '.join(collectives)} are for several workers; add workers = [8], or leave them out"
        )
    if not several:
        return list(cases)
    found = []
    for case in cases:
        label = case.label or load_design(case.design).name
        for count in counts:
            told = f"@w{count}" if len(counts) > 1 else ""
            for name, text in collectives.items() if count > 1 else (("", None),):
                check_workers(count, text, case.batch)
                which = f"@{name}" if name and len(collectives) > 1 else ""
                shared = f"{label}{which}{told}"
                found.append(dataclasses.replace(case, label=shared, workers=count, collective=text))
    return found
