"""Formats: float and fixed point, blocks, and the user's own; their names, rounding modes and facts."""

from softnum.formats.modes import P3109_VERSION
from softnum.formats.scalar import FixedFormat, FloatFormat, Format

__all__ = ["P3109_VERSION", "FixedFormat", "FloatFormat", "Format"]
