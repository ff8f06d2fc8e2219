"""Operations on codes and on Arrays: arithmetic, elementary functions, integers, distances in ulps."""

from softnum.ops.arithmetic import (
    CLASSES,
    CODE_OPERATIONS,
    OPERATIONS,
    elementary,  # noqa: F401  adds its functions to the tables
)

__all__ = ["CLASSES", "CODE_OPERATIONS", "OPERATIONS"]
