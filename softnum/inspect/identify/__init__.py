"""`identify`: the unit of a black box, found by asking it."""

from softnum.inspect.identify.families import FAMILIES, Facts, Family, find_as
from softnum.inspect.identify.report import Finding, Identified, Refutation, Undecided
from softnum.inspect.identify.search import identify

__all__ = ["FAMILIES", "Facts", "Family", "Finding", "Identified", "Refutation", "Undecided", "find_as", "identify"]
