"""Where the kernels run in these tests: in Numba's simulator, or, with -m gpu, on a GPU. The bodies are the same."""

import pytest


@pytest.fixture(params=["simulator", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    """The CUDA module of Numba, which tests/conftest.py has told whether to simulate."""
    from softnum.kernels.device import _cuda

    assert (request.param == "simulator") == _cuda.SIMULATOR, "tests on a GPU are run alone: pytest -m gpu"
    return _cuda.cuda
