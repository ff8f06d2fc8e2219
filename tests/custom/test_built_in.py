"""What posits, takums and logarithmic numbers have in common."""

import numpy as np
import pytest

import softnum as sn

NAMES = ["posit8", "posit16_es1", "posit32", "takum_linear16", "takum8", "takum32", "lns4.3"]


@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_shapes_of_what_was_given(name):
    """Single numbers, too, and none."""
    one = sn.encode(1, name)
    results = [one, sn.decode(one, name), sn.quantize(0.3, name), sn.sqrt(one, name), sn.exp(one, name)]
    results += [sn.add(one, one, name), sn.fma(one, one, one, name)]
    assert [np.shape(x) for x in results] == [()] * len(results)
    assert sn.encode(np.ones((2, 3))[:, ::2], name).shape == (2, 2)
    assert sn.decode(sn.encode(np.zeros((0, 3)), name), name).shape == (0, 3)
