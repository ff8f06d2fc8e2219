"""The text that a GPU is given, its intrinsics too, gives the bits of the CPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(*tests):
    """The tests of kernels, with the GPU's branch of the C text."""
    folders = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "gpu_text", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "-m", "not slow and not gpu and not exhaustive", *tests], cwd=HERE.parents[1], capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert int(re.search(r"(\d+) libraries of the GPU's text", done.stdout)[1]) > 0


@pytest.mark.slow
def test_products():
    run("tests/kernels/test_kernels_gemm.py", "-k", "test_units")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["block_arrays", "carriers", "gemm_blocks", "gemm_block_scales", "gemm_definition", "gemm_exact", "gemm_fused",
     "kernels_blocks", "kernels_conv", "kernels_quantize", "patterns", "stochastic_steps"],
)  # fmt: skip
def test_everything(name):
    run(f"tests/kernels/test_{name}.py")
