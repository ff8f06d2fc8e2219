"""Numba's CUDA target: arrays, launches, memory and the C source that kernels are linked with."""
