"""Whole models: what convert changes, what it refuses, and which random bits a run has."""

import contextlib
import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from softnum.torch.calls import new_state  # noqa: E402
from softnum.torch.numerics import Arithmetic  # noqa: E402
from softnum.train import Numerics, Parameter, Tensor, load_design  # noqa: E402
from softnum.train.engine.tensor import linear, relu  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import feedforward, gradients, inputs, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
X = inputs(5, 4)


def test_a_model_stays_what_it_is():
    model = feedforward()
    names, kind = [name for name, _ in model.named_parameters()], type(model)
    assert st.convert(model, "a-float32", quiet=True) is model
    assert type(model) is kind and [name for name, _ in model.named_parameters()] == names
    torch.testing.assert_close(model(X), feedforward()(X))


def test_layers_of_the_design_are_modules(tmp_path):
    (tmp_path / "own.toml").write_text("""
        [roles]
        weights = "e4m3"
        [layers.'0.*'.roles]
        weights = "e5m2"
        [layers.'last'.roles]
        input = "e5m2"
    """)
    model = st.convert(feedforward(), tmp_path / "own.toml", known_as={"2": "last"}, quiet=True)
    weights = model[0].weight.detach().numpy(), model[2].weight.detach().numpy()
    hidden = np.float32(X.numpy() @ sn.quantize(weights[0], "e5m2").T) + model[0].bias.detach().numpy()
    torch.testing.assert_close(model[0](X).detach().numpy(), hidden, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        model[2](torch.ones(1, 8)).detach().numpy()[0] - model[2].bias.detach().numpy(),
        sn.quantize(weights[1], "e4m3").sum(1), rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_parameters_become_numbers_of_the_master_copy():
    model = st.convert(feedforward(), "c-wang-fp8", known_as={"2": "fc"}, quiet=True)
    for parameter in model.parameters():
        values = parameter.detach().numpy()
        np.testing.assert_array_equal(values, sn.quantize(values, "e6m9"))


def test_first_and_last_have_roles_of_their_own():
    design = load_design("c-wang-fp8")
    model = st.convert(feedforward(), design, known_as={"2": "fc"}, quiet=True)
    arithmetic = model.softnum_mode.arithmetic
    assert (arithmetic.first, arithmetic.last) == ("0", "2")
    none = st.convert(feedforward(), design, first=None, last=None, known_as={"2": "fc"}, quiet=True)
    assert (none.softnum_mode.arithmetic.first, none.softnum_mode.arithmetic.last) == (None, None)
    assert not torch.equal(model(X / 3), none(X / 3))  # the input is e6m9, or e5m2


def test_the_last_result_is_rounded_to_output(tmp_path):
    (tmp_path / "own.toml").write_text('[roles]\noutput = "e5m2"\n')
    y = st.convert(feedforward(), tmp_path / "own.toml", quiet=True)(X).detach().numpy()
    np.testing.assert_array_equal(y, sn.quantize(y, "e5m2"))


def test_what_is_printed(capsys):
    st.convert(feedforward(), "c-wang-fp8", known_as={"2": "fc"})
    text = capsys.readouterr().out
    assert "c-wang-fp8: 2 Linear" in text and "1 ReLU" in text and "GradScaler" in text


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary_emb, self.body = feedforward(), feedforward(2)

    def forward(self, x):
        return self.rotary_emb(x), self.body(x)


def test_what_is_kept_is_pytorch():
    model = st.convert(Rotary(), "i-mxfp8", quiet=True)
    kept, computed = model(X)
    assert torch.equal(kept, feedforward()(X)) and not torch.equal(computed, feedforward(2)(X))
    other = st.convert(Rotary(), "i-mxfp8", keep="body|.*emb", quiet=True)
    assert torch.equal(other(X)[1], feedforward(2)(X))


BAD = {
    "a pattern that matches nothing": (lambda: st.convert(feedforward(), "c-wang-fp8"), ValueError, "known_as"),
    "no such module": (lambda: st.convert(feedforward(), "a-float32", first="3"), ValueError, "no module '3'"),
    "known as, of no module": (
        lambda: st.convert(feedforward(), "a-float32", known_as={"7": "fc"}), ValueError, "no module '7'",
    ),
    "no such design": (lambda: st.convert(feedforward(), "a-float"), ValueError, "a-float32"),
    "a module of other products": (
        lambda: st.convert(nn.Sequential(nn.Linear(2, 2), nn.Bilinear(2, 2, 2)), "a-float32"), NotImplementedError,
        "'1'",
    ),
    "a scripted part": (
        lambda: st.convert(nn.Sequential(torch.jit.script(feedforward())), "a-float32"), ValueError, "scripted",
    ),
    "a seed": (lambda: st.convert(feedforward(), "a-float32", seed=-1), ValueError, "seed"),
    "what computes element by element": (
        lambda: st.convert(feedforward(), "a-float32", elementwise="own"), ValueError, "'exact'",
    ),
    "a second time": (
        lambda: st.convert(st.convert(feedforward(), "a-float32", quiet=True), "a-float32"), ValueError, "already",
    ),
    "no converted model": (lambda: st.next_step(feedforward()), ValueError, "convert"),
}  # fmt: skip


@cases("name", BAD)
def test_bad_input(name):
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call()


def test_numbers_that_float32_does_not_hold(tmp_path):
    (tmp_path / "own.toml").write_text('[roles]\ndefault = "binary64"\n')
    with pytest.raises(ValueError, match=r"model.double\(\)"):
        st.convert(feedforward(), tmp_path / "own.toml")


# -- random bits -------------------------------------------------------------------------------------------------------


def stochastic(seed=7):
    return st.convert(feedforward(), "g-q44-stochastic", seed=seed, quiet=True)


def test_random_bits_follow_from_seed_step_and_forward_pass():
    model = stochastic()
    first, second = gradients(model, X), gradients(model, X)
    assert not same(first, second)
    st.next_step(model)
    third = gradients(model, X)
    assert not same(first, third)
    assert not same(gradients(stochastic(8), X), first)
    again = stochastic()
    assert same(gradients(again, X), first) and same(gradients(again, X), second)


def test_evaluation_leaves_the_random_bits_of_training():
    model, other = stochastic(), stochastic()
    for each in (model, other):
        each(X)
    other.eval()
    evaluated = other(X)
    other.train()
    assert torch.equal(model(X), other(X))
    assert not torch.equal(evaluated, model(X))


def test_layers_have_random_bits_of_their_own():
    torch.manual_seed(0)
    twins = nn.Sequential(nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False))
    twins[1].weight = twins[0].weight
    model = st.convert(twins, "g-q44-stochastic", first=None, last=None, quiet=True)
    x = torch.full((1, 32), 0.3)
    assert not torch.equal(model[0](x), model[1](x))


def test_a_layer_called_twice_has_other_random_bits():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(32, 32, bias=False)

        def forward(self, x):
            return self.fc(x), self.fc(x)

    torch.manual_seed(0)
    first, second = st.convert(Twice(), "g-q44-stochastic", quiet=True)(torch.full((1, 32), 0.3))
    assert not torch.equal(first, second)


def test_a_failed_forward_pass_leaves_no_trace():
    model = stochastic()
    before = torch.overrides._get_current_function_mode_stack()  # torch.export can leave some there
    with pytest.raises(ValueError, match="K = 5"):
        model(torch.ones(2, 5))
    assert not model.softnum_mode.path
    assert torch.equal(X @ X.T, torch.matmul(X, X.T)) and torch.overrides._get_current_function_mode_stack() == before
    assert same(gradients(model, X), gradients(stochastic(), X))


def test_an_interrupted_forward_pass_leaves_pytorch_as_it_is():
    class Interrupted(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.interrupted = nn.Linear(4, 4), False

        def forward(self, x):
            y = self.fc(x)
            if self.interrupted:
                raise KeyboardInterrupt
            return y

    torch.manual_seed(0)
    model = st.convert(Interrupted(), "i-mxfp8", quiet=True)
    expected = model(X)
    for _ in range(2):
        model.interrupted = True
        with pytest.raises(KeyboardInterrupt):
            model(X)
        assert torch.equal(X @ X.T, torch.tensor(X.tolist()) @ torch.tensor(X.tolist()).T)
        np.testing.assert_allclose((X @ X.T).numpy(), X.numpy() @ X.numpy().T, rtol=1e-6)
        model.interrupted = False
        assert torch.equal(model(X), expected)
        np.testing.assert_allclose((X @ X.T).numpy(), X.numpy() @ X.numpy().T, rtol=1e-6)


def test_another_thread_is_refused():
    class Threaded(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(self.fc, x).result()

    with pytest.raises(RuntimeError, match="another thread"):
        st.convert(Threaded(), "i-mxfp8", quiet=True)(X)


def test_state_is_in_the_state_dict():
    model = stochastic()
    for _ in range(2):
        gradients(model, X)
    st.next_step(model)
    gradients(model, X)
    other = stochastic(0)
    other.load_state_dict(model.state_dict())
    assert same(gradients(other, X), gradients(model, X))


def test_a_plain_state_dict_is_loaded_and_rounded():
    model = st.convert(feedforward(), "c-wang-fp8", known_as={"2": "fc"}, quiet=True)
    st.next_step(model)
    model.load_state_dict(feedforward(2).state_dict())
    assert model.softnum_state[1] == 1
    other = st.convert(feedforward(2), "c-wang-fp8", known_as={"2": "fc"}, quiet=True)
    assert same(model.parameters(), other.parameters())


def test_a_module_called_alone_knows_seed_and_step():
    model, other = stochastic(), stochastic(8)
    found = [model[0](X), model[0](X), other[0](X)]
    st.next_step(model)
    found.append(model[0](X))
    assert len({tuple(y.flatten().tolist()) for y in found}) == 4
    again = stochastic()
    assert torch.equal(again[0](X), found[0])


def test_the_loss_scale_is_divided_out_of_every_parameter():
    """A power of two, so that gradients do not depend on it: of parameters of products, of others and of views."""

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
            self.shift, self.experts = nn.Parameter(torch.ones(4)), nn.Parameter(inputs(2, 4, 4))

        def forward(self, x):
            return self.norm(self.fc(x) + self.shift) @ self.experts[1]

    found = []
    for scale in (1, 1024):
        design = load_design("a-float32")
        object.__setattr__(design, "loss", type(design.loss)(float(scale)))
        torch.manual_seed(0)
        model = st.convert(Mixed(), design, quiet=True)
        scaler = st.GradScaler(model)
        scaler.scale(model(X).square().sum()).backward()
        found.append([p.grad for p in model.parameters()])
    assert same(*found)


def test_gradients_that_are_divided_at_once_are_those_of_a_call():
    """Subnormal quotients, infinities, NaN; other scales and roundings go the general way."""
    x = np.random.default_rng(3).integers(0, 2**32, 5000, dtype=np.uint32)
    x[:1000] &= 0x81FFFFFF  # small, of which quotients are subnormal
    x = np.where(np.isnan(x.view(np.float32)), np.float32(np.nan), x.view(np.float32))
    for name, scale, at_once in (
        ("a-float32", 1.0, True), ("a-float32", 2.0**16, True), ("a-float32", 2.0**126, True),
        ("a-float32", 3.0, False), ("a-float32", 0.5, False), ("c-wang-fp8", 1024.0, False),
    ):  # fmt: skip
        arithmetic, state = Arithmetic(name), new_state(1, scale)
        got = arithmetic.unscaled(x, "conv1", state)
        assert (got is not None) == at_once, (name, scale)
        if at_once:
            want = arithmetic.call("conv1", state, "gradient.weight").parameter_gradient(x)
            assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True)
    assert Arithmetic("a-float32").watched(print).unscaled(x, "conv1", new_state(1)) is None


def test_attention_modules():
    for masks in ({}, {"key_padding_mask": torch.tensor([[False, False, True]] * 2)}):
        for first in (False, True):
            torch.manual_seed(0)
            module = nn.MultiheadAttention(8, 2, batch_first=first)
            x = inputs(2, 3, 8) if first else inputs(3, 2, 8)
            expected, none = module(x, x, x, need_weights=False, **masks)
            weights = [module(x, x, x, average_attn_weights=mean, **masks)[1] for mean in (True, False)]
            st.convert(module, "a-float32", quiet=True)
            found, nothing = module(x, x, x, need_weights=False, **masks)
            torch.testing.assert_close(found, expected)
            assert none is nothing is None
            for mean, own in zip((True, False), weights, strict=True):
                found, seen = module(x, x, x, average_attn_weights=mean, **masks)
                torch.testing.assert_close(found, expected)
                torch.testing.assert_close(seen, own)


RECURRENT = {
    "LSTM": lambda: nn.LSTM(4, 5, 2, batch_first=True),
    "LSTM both ways": lambda: nn.LSTM(4, 5, 2, bidirectional=True),
    "GRU": lambda: nn.GRU(4, 5, 2, bidirectional=True),
    "GRU without biases": lambda: nn.GRU(4, 5, bias=False),
    "RNN": lambda: nn.RNN(4, 5),
    "RNN with ReLU": lambda: nn.RNN(4, 5, nonlinearity="relu"),
    "LSTMCell": lambda: nn.LSTMCell(4, 5),
    "GRUCell": lambda: nn.GRUCell(4, 5),
    "RNNCell": lambda: nn.RNNCell(4, 5),
}


@cases("name", RECURRENT)
def test_recurrent_modules(name):
    found = []
    for design, elementwise in ((None, ""), ("a-float32", "torch"), ("a-float32", "exact"), ("i-mxfp8", "torch")):
        torch.manual_seed(0)
        model = RECURRENT[name]()
        x = (inputs(3, 4) if "Cell" in name else inputs(3, 7, 4)).requires_grad_()
        if design is not None:
            st.convert(model, design, elementwise=elementwise, quiet=True)
        results = tree_leaves(model(x))
        sum((y * y).sum() for y in results).backward()
        found.append([*results, x.grad, *(p.grad for p in model.parameters())])
    for own in found[1:3]:
        for first, second in zip(own, found[0], strict=True):
            torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)
    for first, second in zip(found[3], found[0], strict=True):
        assert not torch.equal(first, second) or not second.any()


def test_layers_of_recurrent_modules(tmp_path):
    (tmp_path / "own.toml").write_text("[layers.'.*hh_l0'.roles]\nweights = \"e5m2\"\n")
    model = st.convert(nn.Sequential(nn.LSTM(4, 5)), tmp_path / "own.toml", quiet=True)
    with st.statistics(model) as seen:
        model(inputs(2, 3, 4))
    formats = {row["layer"]: row["format"] for row in seen.rows() if row["role"] == "weights"}
    assert formats == {"0.ih_l0": "binary32", "0.hh_l0": "e5m2"}
    assert model.softnum_mode.arithmetic.first == "0.ih_l0"


def test_encoder_layers_take_no_fast_path():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = inputs(2, 3, 8)
    with torch.no_grad():
        expected = layer(x)
        found = st.convert(layer, "i-mxfp8", quiet=True)(x)
    assert not torch.equal(found, expected)
    torch.testing.assert_close(found, expected, rtol=0.3, atol=0.3)


def test_random_bits_do_not_depend_on_which_gradients_are_needed():
    for design in ("g-q44-stochastic", "j-mxfp4"):
        found = []
        for frozen in (False, True):
            model = st.convert(feedforward(), design, seed=7, quiet=True)
            if frozen:
                model[0].requires_grad_(False)
            model(X).square().sum().backward()
            found.append([p.grad for p in model[2].parameters()])
        assert same(*found)


# -- delayed scales ----------------------------------------------------------------------------------------------------

DELAYED = """
[roles]
input = { format = "e4m3fn", scale = { rule = "delayed", history = 3 } }
activations = { format = "e4m3fn", scale = { rule = "delayed", history = 3 } }
weights = { format = "e4m3fn", scale = { rule = "delayed", history = 3 } }
errors = { format = "e5m2", scale = { rule = "delayed", history = 3 } }
"""


def delayed(tmp_path):
    file = tmp_path / "delayed.toml"
    file.write_text(DELAYED)
    return st.convert(feedforward(), file, quiet=True)


def test_delayed_scales_are_those_of_the_training_engine(tmp_path):
    model = delayed(tmp_path)
    numerics = Numerics(load_design(tmp_path / "delayed.toml"), ["0", "2"], seed=1)
    layers = [numerics.layer(name) for name in ("0", "2")]
    for step in range(4):
        x = X * 3.0**step
        found = gradients(model, x)
        st.next_step(model)
        numerics.begin(step + 1)
        parameters = [
            Parameter(
                np.ascontiguousarray(p.detach().numpy().T),
                layers[i // 2],
                f"{'0022'[i]}.{'weight' if i % 2 == 0 else 'bias'}",
            )
            for i, p in enumerate(model.parameters())
        ]
        hidden = relu(linear(Tensor(x.numpy(), numerics.backend), *parameters[:2], layers[0]))
        result = linear(hidden, *parameters[2:], layers[1])
        result.backward(2 * result.value)
        numerics.finish()
        for gradient, parameter in zip(found, parameters, strict=True):
            np.testing.assert_array_equal(gradient.numpy(), parameter.gradient.T)


def test_delayed_scales_are_kept(tmp_path):
    model = delayed(tmp_path)
    for scale in (1, 100):
        gradients(model, X * scale)
        st.next_step(model)
    model.eval()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model(1e6 * X)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items() if "scale" in key)
    model.train()
    twin, other = copy.deepcopy(model), delayed(tmp_path)
    other.load_state_dict(model.state_dict())
    for each in (twin, other):
        assert same(gradients(each, X), gradients(copy.deepcopy(model), X))
    assert not same(gradients(delayed(tmp_path), X), gradients(model, X))
    assert sum("softnum_scale" in key for key in before) == 6


# -- what becomes of numbers -------------------------------------------------------------------------------------------


def test_statistics():
    model = st.convert(feedforward(), "c-wang-fp8", known_as={"2": "fc"}, quiet=True)
    expected = gradients(st.convert(feedforward(), "c-wang-fp8", known_as={"2": "fc"}, quiet=True), 1e4 * X)
    optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    with st.statistics(model) as seen:
        found = gradients(model, 1e4 * X)
        optimizer.step()
    assert same(found, expected)
    rows = {(row["layer"], row["role"], *row["shape"]): row for row in seen.rows()}
    entered = X.numpy() * np.float32(1e4)
    rounded = sn.quantize(entered, "e6m9")
    error = np.linalg.norm((rounded - entered).astype(float)) / np.linalg.norm(entered.astype(float))
    assert rows["0", "input", 5, 4]["roundings"] == 1  # not again in the backward pass
    assert rows["0", "input", 5, 4]["relative_error"] == pytest.approx(error)
    assert rows["2", "errors", 5, 3]["saturated"] + rows["2", "errors", 5, 3]["infinities"] == 0
    assert {role for _, role, *_ in rows} >= {"weights", "forward", "backward_weight", "update.weight", "master"}
    assert "relative" not in str(seen) and "update.weight" in str(seen)
    assert seen.draw().startswith(b"\x89PNG")
    gradients(model, X)
    assert len(seen.rows()) == len(rows)
    with st.statistics(model), pytest.raises(ValueError, match="watched already"), st.statistics(model):
        pass
    with pytest.raises(ValueError, match="nothing was computed"):
        st.statistics(model).draw()


# -- element by element ------------------------------------------------------------------------------------------------


def binary16(tmp_path, rounding="nearest_even"):
    file = tmp_path / "own.toml"
    file.write_text(f'[roles]\nelementwise = {{ format = "binary16", rounding = "{rounding}" }}\n')
    return file


class Shared(nn.Module):
    def forward(self, x):
        y = torch.tanh(x)
        z = y * y
        return (z + y) * z + y


def test_gradients_that_meet_are_added_in_the_design(tmp_path):
    x = inputs(4, 5).requires_grad_()
    model = st.convert(Shared(), binary16(tmp_path), elementwise="exact", quiet=True)
    model(x).sum().backward()

    def half(v):
        return sn.quantize(v.astype(np.float64), "binary16").astype(np.float64)

    y = half(np.tanh(half(x.detach().numpy())))
    z = half(y * y)
    of_sum = z  # 1 * z
    of_z = half(of_sum + half(z + y))  # of the sum, and of the product whose other factor is the sum
    of_y = half(1 + of_sum)  # of the last sum, then of the first
    for part in (half(of_z * y), half(of_z * y)):
        of_y = half(of_y + part)
    slope = half(1 - half(y * y))
    np.testing.assert_allclose(x.grad.numpy(), half(of_y * slope), rtol=3e-3)
    values = x.grad.numpy()
    np.testing.assert_array_equal(values, sn.quantize(values, "binary16"))
    with pytest.raises(NotImplementedError, match="eager mode"):
        torch.func.grad(lambda x: model(x).sum())(x.detach())


def test_sums_of_gradients_have_random_bits_of_their_own(tmp_path):
    design = binary16(tmp_path, "stochastic")
    found = []
    for seed in (1, 1, 2):
        x = inputs(4, 5).requires_grad_()
        st.convert(Shared(), design, elementwise="exact", seed=seed, quiet=True)(x).sum().backward()
        found.append(x.grad)
    assert torch.equal(*found[:2]) and not torch.equal(*found[1:])
    x = inputs(4, 5).requires_grad_()
    y = st.convert(Shared(), design, elementwise="exact", seed=1, quiet=True)(x).sum()
    again = [torch.autograd.grad(y, x, retain_graph=True)[0] for _ in range(2)]
    assert torch.equal(*again) and torch.equal(again[0], found[0])


EXACT = {
    "layer norm": lambda x: F.layer_norm(x, (6,), torch.arange(6.0), torch.ones(6)),
    "RMS norm": lambda x: F.rms_norm(x, (6,), torch.arange(6.0)),
    "group norm": lambda x: F.group_norm(x.view(2, 4, 3, 6), 2, torch.arange(4.0), torch.ones(4)),
    "batch norm": lambda x: F.batch_norm(
        x.view(2, 4, 3, 6), torch.zeros(4), torch.ones(4), torch.arange(4.0), torch.ones(4), training=True
    ),
    "batch norm of rows": lambda x: F.batch_norm(
        x.view(24, 6), torch.zeros(6), torch.ones(6), torch.ones(6), torch.ones(6), training=True
    ),
    "softmax": lambda x: x.softmax(0),
    "softmax with -inf": lambda x: x.masked_fill(x > 1, -torch.inf).softmax(-1),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": lambda x: x.sigmoid(),
    "sums": lambda x: (1 - x) + 2 * x - x[:1] * x / 4,
    "mean": lambda x: x.mean((1, 2), keepdim=True),
    "pooling": lambda x: F.avg_pool2d(x[None], 2, 1) + F.max_pool2d(x[None], 2, 1),
    "adaptive pooling": lambda x: F.adaptive_avg_pool2d(x[None], 1),
    "cross entropy": lambda x: F.cross_entropy(x.view(24, 6), torch.arange(24) % 6),
}


@cases("name", EXACT)
def test_exact_functions_mean_what_they_mean_in_pytorch(name):
    found = []
    for inside in (False, True):
        x = inputs(4, 6, 6).requires_grad_()
        with st.arithmetic("a-float32", elementwise="exact") if inside else contextlib.nullcontext():
            y = EXACT[name](x)
        (y * inputs(*y.shape, 1, seed=5).squeeze(-1)).sum().backward()
        found.append((y, x.grad))
    for own, plain in zip(*found, strict=True):
        torch.testing.assert_close(plain, own, rtol=2e-5, atol=2e-6)


def test_running_statistics():
    found = []
    for inside in (False, True):
        mean, variance = torch.zeros(4), torch.ones(4)
        with st.arithmetic("a-float32", elementwise="exact") if inside else contextlib.nullcontext():
            F.batch_norm(inputs(2, 4, 3, 6), mean, variance, torch.ones(4), torch.ones(4), training=True, momentum=0.2)
        found.append((mean, variance))
    for own, plain in zip(*found, strict=True):
        torch.testing.assert_close(plain, own)


def test_what_has_no_exact_arithmetic_is_an_error():
    refused = (torch.erfinv, lambda x: x.logcumsumexp(0), torch.fft.rfft, lambda x: x.fmod(2.0), torch.digamma)
    for function in (*refused, lambda x: x.sum(dtype=torch.float16)):
        with st.arithmetic("a-float32", elementwise="exact"), pytest.raises(NotImplementedError, match="elementwise="):
            function(inputs(3, 3))


@cases("sparsity", ('weights = { format = "binary32", sparsity = { pattern = "2:4", backward = "masked" } }',
                    'weight_gradients = { format = "binary32", sparsity = { top_k = 0.1 } }'))  # fmt: skip
def test_sparse_gradients_are_refused(sparsity, tmp_path):
    (tmp_path / "own.toml").write_text(f"[roles]\n{sparsity}\n")
    with pytest.raises(NotImplementedError, match="sparse"):
        st.convert(feedforward(), tmp_path / "own.toml")


def test_gradients_of_parameters_outside_a_model(tmp_path):
    (tmp_path / "own.toml").write_text('[roles]\nweight_gradients = "bfloat16"\n')
    mode, found = st.arithmetic(tmp_path / "own.toml"), []
    for inside in (False, True):
        weight = nn.Parameter(inputs(3, 4))
        if inside:
            with mode:
                y = F.linear(X, weight)
        else:
            y = st.linear(X, weight, arithmetic=mode)
        y.square().sum().backward()
        found.append(weight.grad)
    assert same([found[0]], [found[1]])
    np.testing.assert_array_equal(found[0].numpy(), sn.quantize(found[0].numpy(), "bfloat16"))
    with pytest.raises(TypeError, match="must be an object"):
        st.linear(X, weight, arithmetic="i-mxfp8")


def test_a_handle_is_of_what_a_design_says_and_not_of_where_it_lies(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.toml").write_text('[roles]\nweights = "e5m2"\n')
    first, second = (st.Arithmetic(tmp_path / name / "own.toml") for name in ("a", "b"))
    (tmp_path / "b" / "own.toml").write_text('[roles]\nweights = "e4m3"\n')
    assert first.handle == second.handle != st.Arithmetic(tmp_path / "b" / "own.toml").handle


def test_a_model_without_numbers_is_refused():
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    with pytest.raises(ValueError, match="device 'meta' and have no values"):
        st.convert(model, "a-float32", quiet=True)
