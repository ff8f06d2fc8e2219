"""Formats of the user's own making: by a table of values, by functions in Python, or in C."""

from softnum.formats.custom.formats import CustomFormat

__all__ = ["CustomFormat"]
