"""Formats: float and fixed point, blocks, and the user's own; their names, rounding modes and facts."""

from softnum.formats.scalar import P3109_VERSION, FixedFormat, FloatFormat, Format

__all__ = ["P3109_VERSION", "FixedFormat", "FloatFormat", "Format"]
