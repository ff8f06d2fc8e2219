"""Operators in the Tile language: parsed, differentiated, and evaluated in emulated arithmetic.

`operator` makes one. Lark, which parses, is loaded when it is first called.
"""

from softnum.tile.operators import Operator, operator
from softnum.tile.syntax import TileError

__all__ = ["Operator", "TileError", "operator"]
