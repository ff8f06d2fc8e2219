"""Kernels for a GPU, in Numba CUDA over the C core's text; `softnum.runtime.gateway` is the way to them.

``_cuda`` is the one module that imports Numba's CUDA target. Importing this package imports no Numba.
"""
