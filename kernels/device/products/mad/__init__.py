"""Kernels of MadUnit: by the definition, by fast steps and by tables."""
