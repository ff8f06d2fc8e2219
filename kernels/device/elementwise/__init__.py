"""Kernels element by element: conversions, operations, selections, totals."""
