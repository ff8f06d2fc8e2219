"""Where the kernels run in these tests: in Numba's simulator, or, with -m gpu, on a GPU. The bodies are the same."""

import os
import sys

import pytest


@pytest.fixture(params=["simulator", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    """The CUDA module of Numba. Numba decides once, when it is first imported, whether it simulates."""
    simulate = request.param == "simulator"
    if "numba" not in sys.modules:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1" if simulate else "0"
        os.environ["NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS"] = "0"  # these tests are small, and warnings are errors
    from softnum.kernels import _cuda

    if _cuda.SIMULATOR != simulate:
        pytest.fail(
            "Numba already runs on a GPU, or was imported before these tests: run -m gpu in a process of its own"
            if simulate
            else "Numba already runs its simulator: run -m gpu in a process of its own, without NUMBA_ENABLE_CUDASIM"
        )
    return _cuda.cuda
