"""Kernels of operators in the Tile language."""
