"""Kernels of block formats' conversions."""
