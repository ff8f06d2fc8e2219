"""`identify`: the unit of a black box, found by asking it."""

from softnum.inspect.identify.boxes import Command, library_function, one_by_one
from softnum.inspect.identify.families import FAMILIES, Facts, Family, find_as
from softnum.inspect.identify.positive import SumOrder, sum_order
from softnum.inspect.identify.report import Finding, Identified, Refutation, Undecided
from softnum.inspect.identify.search import identify

__all__ = [
    "FAMILIES", "Command", "Facts", "Family", "Finding", "Identified", "Refutation", "SumOrder", "Undecided", "find_as",
    "identify", "library_function", "one_by_one", "sum_order",
]  # fmt: skip
