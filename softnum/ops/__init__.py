"""Operations on codes and on Arrays: arithmetic, elementary functions, integers, distances in ulps."""

from softnum.ops import elementary  # noqa: F401  adds its functions to the tables
from softnum.ops.arithmetic import CLASSES, CODE_OPERATIONS, OPERATIONS

__all__ = ["CLASSES", "CODE_OPERATIONS", "OPERATIONS"]
