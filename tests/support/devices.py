"""What tests of kernels run on."""

import pytest

#: for a test with the fixture `device` whose sizes only a GPU can do
on_gpu = pytest.mark.parametrize("device", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
