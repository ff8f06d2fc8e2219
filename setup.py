"""The C extension and the folders' package names; everything else stands in pyproject.toml."""

import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

CSRC = ["elementwise.c", "fast_loop.c", "kernels.c", "isa_portable.c", "isa_avx2.c", "isa_avx512.c"]

# No -march: the instruction set is chosen when the package is imported. Contraction and fast-math would change bits.
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
if sys.platform == "win32":
    FLAGS = ["/std:c11", "/O2", "/fp:precise"]

setup(
    ext_modules=cythonize(
        [
            Extension(
                "softnum._core",
                ["softnum/_core.pyx", *(f"csrc/{name}" for name in CSRC)],
                include_dirs=["csrc", np.get_include()],
                depends=[str(p) for p in sorted(Path("csrc").rglob("*.h"))],
                define_macros=[
                    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
                ],
                extra_compile_args=FLAGS,
            )
        ]
    ),
)
