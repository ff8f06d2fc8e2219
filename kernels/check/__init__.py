"""Kernels as machine code, looked at without a GPU."""
