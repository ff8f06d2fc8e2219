"""Rounding of tensors."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import inputs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
SPECIAL = [1e6, -1e6, torch.inf, -torch.inf, torch.nan, 464.0, 465.0, 61440.0, 61439.0, -0.0, 1e-9, 2.0**-149]


@cases("name", ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float16", "bfloat16"))
def test_it_is_pytorchs_cast(name):
    dtype = getattr(torch, name)
    x = torch.cat([inputs(5000) * 100, inputs(5000) * 1e-3, torch.tensor(SPECIAL)])
    torch.testing.assert_close(st.quantize(x, dtype), x.to(dtype).float(), rtol=0, atol=0, equal_nan=True)


@cases("fmt", ("e6m9", "q4.4", "mxfp4", "mxfp8_e4m3"))
def test_it_is_softnums(fmt):
    x = inputs(6, 64) * 3
    for how in ({}, {"rounding": "stochastic", "key": (1, 2)}, {"rounding": "stochastic", "key": sn.Stream(1, 2)}):
        own = np.asarray(sn.array(x.numpy(), fmt, **how))
        np.testing.assert_array_equal(st.quantize(x, fmt, **how).numpy(), own)
        np.testing.assert_array_equal(st.quantize(x.double(), fmt, **how).numpy(), own)


def test_gradients():
    x = torch.tensor([0.3, 448.0, 470.0, -1e9, torch.nan], requires_grad=True)
    for gradient, expected in (("straight_through", [1.0] * 5), ("masked", [1.0, 1.0, 0.0, 0.0, 0.0])):
        (found,) = torch.autograd.grad(st.quantize(x, "e4m3fn", gradient=gradient).sum(), x)
        assert found.tolist() == expected
        found = torch.func.vmap(torch.func.grad(lambda x, how=gradient: st.quantize(x, "e4m3fn", gradient=how)))(x)
        assert found.tolist() == expected


def test_it_compiles():
    @torch.compile(fullgraph=True, backend="aot_eager")
    def f(x):
        return st.quantize(x, "mxfp8_e4m3").square().sum()

    x = inputs(4, 32).requires_grad_()
    f(x).backward()
    torch.testing.assert_close(x.grad, 2 * st.quantize(x.detach(), "mxfp8_e4m3"), rtol=0, atol=0)


BAD = {
    "a dtype too narrow": (lambda: st.quantize(inputs(2).bfloat16(), "binary32"), "x.float()"),
    "no random bits": (lambda: st.quantize(inputs(2), "e4m3fn", rounding="stochastic"), "key="),
    "no such format": (lambda: st.quantize(inputs(2), "e4m3fm"), "unknown format"),
    "no such gradient": (lambda: st.quantize(inputs(2), "e4m3fn", gradient="none"), "straight_through, masked"),
    "numbers too long": (lambda: st.quantize(inputs(6, 64) * 3, "nvfp4"), "does not hold these numbers"),
    "a range of blocks": (lambda: st.quantize(inputs(2), "mxfp4", gradient="masked"), "no fixed range"),
}


@cases("name", BAD)
def test_bad_input(name):
    call, text = BAD[name]
    with pytest.raises(ValueError, match=text.replace("(", r"\(").replace(")", r"\)")):
        call()
