"""Formats and units of the user's, compiled for the CPU by Numba."""
