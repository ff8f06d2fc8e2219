"""The C extension and the folders' package names; everything else stands in pyproject.toml."""

import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

COMMON = ["cpu.c", "prepare.c"]
ELEMENTWISE = [
    *COMMON, "elementwise.c", "elementary.c", "fast_loop.c", "gate.c", "kernels.c", "isa_portable.c", "isa_avx2.c",
    "isa_avx512.c",
]  # fmt: skip
GEMM = [*COMMON, "gemm.c", "gemm_portable.c", "gemm_avx2.c", "gemm_avx512.c"]
EXACT = [*COMMON, "exact.c", "exact_portable.c", "exact_avx2.c", "exact_avx512.c"]
BLOCKS = [*COMMON, "block.c", "block_portable.c", "block_avx2.c", "block_avx512.c"]
TABLES = [*COMMON, "table.c", "table_avx512.c"]
DRAW = ["draw.c", "draw_portable.c", "draw_avx2.c", "draw_avx512.c"]
FUSED = [*COMMON, "fused.c", "fused_portable.c", "fused_avx2.c", "fused_avx512.c"]

# No -march: the instruction set is chosen when the package is imported. Contraction and fast-math would change bits.
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
if sys.platform == "win32":
    FLAGS = ["/std:c11", "/O2", "/fp:precise"]


def extension(name, sources):
    return Extension(
        f"softnum.{name}",
        [f"softnum/{name}.pyx", *(f"csrc/{source}" for source in sources)],
        include_dirs=["csrc", np.get_include()],
        depends=[str(p) for p in sorted(Path("csrc").rglob("*.h"))],
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
            ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
        ],
        extra_compile_args=FLAGS,
        extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
    )


EXTENSIONS = {
    "_core": ELEMENTWISE, "_gemm": GEMM, "_exact": EXACT, "_fused": FUSED, "_blocks": BLOCKS, "_tables": TABLES,
    "_draw": DRAW, "_probe": ["probe.c"], "_text": [],
}  # fmt: skip
setup(ext_modules=cythonize([extension(name, sources) for name, sources in EXTENSIONS.items()]))
