"""Kernels of products, convolutions and sums."""
