"""Fixtures of the core's tests. pytest puts this folder on the path, so that they can import core_oracles."""

import pytest

from softnum import _core


@pytest.fixture(params=["portable", "avx2", "avx512"])
def isa(request):
    """Each instruction set that this machine runs, in turn."""
    if request.param not in _core.available_isas():
        pytest.skip(f"this CPU or build does not run {request.param}")
    before = _core.current_isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)
