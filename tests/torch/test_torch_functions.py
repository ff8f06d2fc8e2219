"""softnum.torch computes what softnum.train's layers compute, and what PyTorch's functions mean."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from softnum.torch.calls import new_state  # noqa: E402
from softnum.torch.numerics import Arithmetic  # noqa: E402
from softnum.torch.operations import apply  # noqa: E402
from softnum.train import Numerics, Parameter, Tensor, load_design  # noqa: E402
from softnum.train.engine.tensor import linear  # noqa: E402
from softnum.train.layers.convolution import conv2d  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import inputs  # noqa: E402

DESIGNS = ("a-float32", "b-binary16", "c-wang-fp8", "d-e6m3-long", "f-q44-nearest", "h-posit8", "i-mxfp8")
DESIGNS += (
    "te-float8-current-scaling",
    "te-float8-block-scaling",
    "te-mxfp8-block-scaling",
    "torchao-rowwise",
    "deepseek-v3",
)
pytestmark = pytest.mark.filterwarnings("default")


def bound(name):
    """A design in softnum.torch, and a layer of it in softnum.train: of one loss scale."""
    design = load_design(name)
    layer = Numerics(design, ["fc0", "fc1", "fc2"] if load_design(name).layers else ["fc0", "fc1"], seed=1).layer("fc1")
    first = "fc1" if layer.first else None
    return Arithmetic(design, first=first), layer, new_state(1, design.loss_scale)


def master(layer, x):
    return torch.from_numpy(np.ascontiguousarray(layer.round("master", x.numpy())))


@cases("name", DESIGNS)
def test_linear_is_that_of_the_training_engine(name):
    arithmetic, layer, state = bound(name)
    x, w, b = inputs(2, 3, 40), master(layer, inputs(7, 40, seed=4)), master(layer, inputs(7, seed=5))
    for tensor in (x, w, b):
        tensor.requires_grad_()
    y = apply("linear", [x, w, b], state, arithmetic.handle, "fc1")
    error = inputs(2, 3, 7, seed=6)
    y.backward(error)
    own = Tensor(x.detach().numpy().reshape(6, 40), layer.numerics.backend, requires_gradient=True)
    weight = Parameter(np.ascontiguousarray(w.detach().numpy().T), layer, "weight")
    bias = Parameter(b.detach().numpy(), layer, "bias")
    expected = linear(own, weight, bias, layer)
    expected.backward(error.numpy().reshape(6, 7))
    np.testing.assert_array_equal(y.detach().numpy().reshape(6, 7), expected.value)
    np.testing.assert_array_equal(x.grad.numpy().reshape(6, 40), own.gradient)
    final = arithmetic.call("fc1", state, "gradient").parameter_gradient
    np.testing.assert_array_equal(final(w.grad.numpy()), weight.gradient.T)
    np.testing.assert_array_equal(final(b.grad.numpy()), bias.gradient)


@cases("name", ("a-float32", "c-wang-fp8", "i-mxfp8"))
def test_convolution_is_that_of_the_training_engine(name):
    arithmetic, layer, state = bound(name)
    x, w, b = inputs(2, 4, 9, 8), master(layer, inputs(6, 2, 3, 2, seed=4)), master(layer, inputs(6, seed=5))
    for tensor in (x, w, b):
        tensor.requires_grad_()
    how = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
    y = apply("conv2d", [x, w, b], state, arithmetic.handle, "fc1", 0, (2, 2, 1, 1, 0, 1, 2))
    error = inputs(*y.shape, seed=6)
    y.backward(error)
    own = Tensor(x.detach().numpy(), layer.numerics.backend, requires_gradient=True)
    weight, bias = Parameter(w.detach().numpy(), layer, "weight"), Parameter(b.detach().numpy(), layer, "bias")
    expected = conv2d(own, weight, bias, layer, **how)
    expected.backward(error.numpy())
    np.testing.assert_array_equal(y.detach().numpy(), expected.value)
    np.testing.assert_array_equal(x.grad.numpy(), own.gradient)
    final = arithmetic.call("fc1", state, "gradient").parameter_gradient
    np.testing.assert_array_equal(final(w.grad.numpy()), weight.gradient)
    np.testing.assert_array_equal(final(b.grad.numpy()), bias.gradient)


def test_a_product_is_that_of_its_unit():
    """Without softnum.train between: e5m2 operands, exact products, e6m9 sums in chunks of 64."""
    mode = st.arithmetic(Arithmetic("c-wang-fp8"))
    x, w = inputs(5, 200), inputs(3, 200, seed=4)
    unit = sn.MadUnit("e6m9", operand="e5m2", chunk=64)
    expected = sn.matmul(sn.quantize(x.numpy(), "e5m2"), sn.quantize(w.numpy(), "e5m2").T, unit)
    np.testing.assert_array_equal(st.linear(x, w, arithmetic=mode).numpy(), expected)
    np.testing.assert_array_equal(st.matmul(x, w.T, arithmetic=mode).numpy(), expected)


PRODUCTS = {
    "linear": lambda a, b: F.linear(a, b),
    "linear of a vector": lambda a, b: F.linear(a, b[0]),
    "@": lambda a, b: a @ b.T,
    "@ of vectors": lambda a, b: a[0] @ b[0],
    "@ of a vector and a matrix": lambda a, b: a[0] @ b.T,
    "@ of a matrix and a vector": lambda a, b: a @ b[0],
    "matmul of batches": lambda a, b: torch.matmul(a.view(2, 1, 3, 8), b.T.expand(5, 8, 4)),
    "mm": lambda a, b: torch.mm(a, b.T),
    "mv": lambda a, b: a.mv(b[0]),
    "bmm": lambda a, b: a.view(2, 3, 8).bmm(b.T.expand(2, 8, 4)),
    "addmm": lambda a, b: torch.addmm(torch.arange(4.0), a, b.T),
    "addmm of a matrix": lambda a, b: torch.addmm(torch.ones(6, 4), a, b.T),
    "baddbmm": lambda a, b: torch.baddbmm(
        torch.ones(2, 3, 4), a.view(2, 3, 8), b.T.expand(2, 8, 4), beta=2.0, alpha=0.5
    ),
    "einsum": lambda a, b: torch.einsum("bik,jk->ibj", a.view(2, 3, 8), b),
    "einsum without an arrow": lambda a, b: torch.einsum("ik,jk", a, b),
    "einsum with more axes": lambda a, b: torch.einsum("...ik,...kj->...ij", a.view(2, 3, 8), b.T.expand(2, 8, 4)),
    "einsum with more axes of one": lambda a, b: torch.einsum("...k,jk", a.view(2, 3, 8), b),
    "einsum with a batch": lambda a, b: torch.einsum("bik,bkj->bij", a.view(2, 3, 8), b.T.expand(2, 8, 4)),
    "conv1d": lambda a, b: F.conv1d(a.view(2, 3, 8), b.view(-1)[:18].view(2, 3, 3), padding=1, stride=2),
    "conv1d, as many": lambda a, b: F.conv1d(a.view(2, 3, 8), b.view(-1)[:24].view(2, 3, 4), padding="same"),
    "conv1d of one": lambda a, b: F.conv1d(a.view(6, 8), b.view(-1)[:24].view(2, 6, 2), torch.ones(2)),
    "conv2d": lambda a, b: F.conv2d(a.view(1, 3, 4, 4), b.view(-1)[:27].view(1, 3, 3, 3), padding="same"),
    "conv2d in groups": lambda a, b: F.conv2d(a.view(1, 3, 4, 4), b.view(-1)[:27].view(3, 1, 3, 3), groups=3),
    "conv3d": lambda a, b: F.conv3d(
        a.view(1, 2, 2, 3, 4), b.view(-1)[:16].view(2, 2, 1, 2, 2), torch.ones(2), padding=1, stride=(1, 2, 1)
    ),
    "conv3d in groups": lambda a, b: F.conv3d(
        a.view(1, 2, 2, 3, 4), b.view(4, 1, 2, 2, 2), padding="same", groups=2, dilation=(1, 2, 1)
    ),
    "conv_transpose1d": lambda a, b: F.conv_transpose1d(a.view(2, 3, 8), b.view(-1)[:30].view(3, 2, 5), stride=3),
    "conv_transpose2d": lambda a, b: F.conv_transpose2d(
        a.view(1, 4, 4, 3),
        b.view(4, 2, 2, 2),
        torch.ones(4),
        stride=(2, 1),
        padding=1,
        output_padding=(1, 0),
        groups=2,
        dilation=(1, 2),
    ),
    "conv_transpose3d": lambda a, b: F.conv_transpose3d(a.view(1, 2, 2, 3, 4), b.view(2, 2, 2, 2, 2), stride=2),
    "attention": lambda a, b: F.scaled_dot_product_attention(
        a.view(1, 2, 3, 8), b.view(1, 2, 2, 8), b.view(1, 2, 2, 8)
    ),
    "causal attention": lambda a, b: F.scaled_dot_product_attention(
        *(a.view(1, 2, 3, 8),) * 3, is_causal=True, scale=0.3
    ),
    "grouped queries": lambda a, b: F.scaled_dot_product_attention(
        a.view(1, 2, 3, 8), *(b.view(1, 1, 4, 8),) * 2, enable_gqa=True
    ),
    "attention with a mask": lambda a, b: F.scaled_dot_product_attention(
        *(a.view(1, 2, 3, 8),) * 3, attn_mask=torch.tensor([[True, False, True], [True] * 3, [False] * 3])
    ),
    "attention with numbers added": lambda a, b: F.scaled_dot_product_attention(
        *(a.view(1, 2, 3, 8),) * 3, attn_mask=torch.tensor([[0.0, 1.0, -torch.inf]] * 3)
    ),
    "embedding": lambda a, b: F.embedding(torch.tensor([[1, 0], [1, 3]]), b),
    "embedding with padding": lambda a, b: F.embedding(torch.tensor([1, 0, 3]), b, padding_idx=-1),
}


@cases("name", PRODUCTS)
def test_functions_mean_what_they_mean_in_pytorch(name):
    """In binary32 all but the order of sums is PyTorch's, with the gradients."""
    results = []
    for inside in (False, True):
        a, b = inputs(6, 8).requires_grad_(), inputs(4, 8, seed=4).requires_grad_()
        mode = st.arithmetic("a-float32")
        if inside:
            with mode:
                y = PRODUCTS[name](a, b)
        else:
            y = PRODUCTS[name](a, b)
        (y * inputs(*y.shape, 1, seed=5).squeeze(-1)).sum().backward()
        results.append((y, *(torch.zeros(()) if x.grad is None else x.grad for x in (a, b))))
    for plain, own in zip(*results, strict=True):
        torch.testing.assert_close(own, plain, rtol=2e-5, atol=2e-6)


@cases("name", [name for name in PRODUCTS if "embedding" not in name])
def test_no_function_stays_with_pytorch(name):
    """Operands that e5m2 does not hold: what is computed is not PyTorch's."""
    a, b = inputs(6, 8), inputs(4, 8, seed=4)
    with st.arithmetic("i-mxfp8"):
        y = PRODUCTS[name](a, b)
    assert not torch.allclose(y, PRODUCTS[name](a, b), rtol=1e-4, atol=0)


REFUSED = {
    "convolution": lambda: torch.convolution(
        *(torch.ones(1, 1, 2, 2),) * 2, None, [1, 1], [0, 0], [1, 1], False, [0], 1
    ),
    "dot": lambda: torch.dot(torch.ones(2), torch.ones(2)),
    "addmm_": lambda: torch.ones(2, 2).addmm_(torch.ones(2, 2), torch.ones(2, 2)),
    "an operation by its own name": lambda: torch.ops.aten.mm(torch.ones(2, 2), torch.ones(2, 2)),
    "tensordot": lambda: torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), 1),
    "bilinear": lambda: F.bilinear(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 2)),
    "lstm with projections": lambda: torch.nn.LSTM(2, 3, proj_size=2)(torch.ones(1, 1, 2)),
    "einsum of three": lambda: torch.einsum("i,i,i->", *(torch.ones(2),) * 3),
    "einsum of an axis summed alone": lambda: torch.einsum("ij,k->k", torch.ones(2, 2), torch.ones(2)),
    "embedding with max_norm": lambda: F.embedding(torch.tensor([0]), torch.ones(2, 2), max_norm=1.0),
    "an unknown tensor": lambda: torch.ones(2, 2, dtype=torch.complex64) @ torch.ones(2, 2, dtype=torch.complex64),
}
#: what each says
SAYS = {
    "convolution": "^convolution in",
    "dot": "^dot in",
    "addmm_": "^addmm_ in",
    "an operation by its own name": "^aten.mm in",
    "tensordot": "^tensordot in",
    "bilinear": "^bilinear in",
    "lstm with projections": "projections",
    "einsum of three": "two operands",
    "einsum of an axis summed alone": "summed without the other",
    "embedding with max_norm": "max_norm=None alone",
    "an unknown tensor": "one dtype",
}


@cases("name", REFUSED)
def test_what_is_not_computed_is_an_error(name):
    with st.arithmetic("a-float32"), pytest.raises((NotImplementedError, ValueError), match=SAYS[name]):
        REFUSED[name]()


def test_a_design_with_tables_of_layers_needs_a_model():
    with pytest.raises(ValueError, match="convert"):
        st.arithmetic("c-wang-fp8")


@cases("dtype", ("float64", "bfloat16", "float16"))
def test_results_have_the_dtype_of_the_first_operand(dtype):
    x = inputs(3, 8).to(getattr(torch, dtype))
    with st.arithmetic("a-float32"):
        y = x @ x.T
    exact = sn.matmul(x.double().numpy(), x.double().numpy().T, sn.MadUnit("binary32", operand="binary32"))
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.double().numpy(), sn.quantize(exact, sn.format(y.dtype)).astype(float))


def test_results_of_binary64_are_rounded_once():
    """A sum of binary64 near the middle of two numbers of bfloat16, which binary32 would round to that middle."""
    from softnum.torch.tensors import tensor_of

    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40])
    assert tensor_of(x, torch.bfloat16, torch.device("cpu")).tolist() == [1 + 2.0**-7, 1.0]


def test_results_share_no_memory_with_operands():
    x = torch.ones(2, 3)
    y = apply("output", [x], new_state(0), Arithmetic("a-float32").handle, "fc1")
    y += 1
    assert x.unique().tolist() == [1.0]


def test_who_listens_to_the_dispatcher_hears_the_operations():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listener(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.heard = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.heard.append(str(func))
            return func(*args, **(kwargs or {}))

    model, x = st.convert(torch.nn.Linear(4, 3), "b-binary16", quiet=True), torch.randn(2, 4, requires_grad=True)
    alone = model(x)
    (gradient,) = torch.autograd.grad(alone.sum(), x)
    with Listener() as listener:
        heard = model(x)
        (same,) = torch.autograd.grad(heard.sum(), x)
    assert torch.equal(alone, heard) and torch.equal(gradient, same)
    assert {"softnum.linear.default", "softnum.linear_backward.default"} <= set(listener.heard)
