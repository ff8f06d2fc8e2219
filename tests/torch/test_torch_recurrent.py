"""Recurrent layers of PyTorch: what is read starts the accumulators of the state's products."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import gradients, inputs, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

NARROW = """
[roles]
default = "e6m9"
input = "e5m2"
weights = "e5m2"
activations = "e5m2"
errors = "e5m2"
[units]
forward = { accumulator = "e6m9" }
backward_data = { accumulator = "e6m9" }
backward_weight = { accumulator = "e6m9" }
[loss]
scale = 1000
"""
STOCHASTIC = (
    NARROW
    + """
[layers.'.*'.roles]
elementwise = { format = "e6m9", rounding = "stochastic" }
"""
)
UNIT = sn.MadUnit("e6m9", operand="e5m2")


@pytest.fixture
def narrow(tmp_path):
    (tmp_path / "narrow.toml").write_text(NARROW)
    return tmp_path / "narrow.toml"


def e5m2(x):
    return sn.quantize(np.ascontiguousarray(x), "e5m2")


def by_hand(module, x, h, own_bias=None):
    """x @ W^T + b_ih + b_hh, and from there h @ U^T, of an RNN's parameters."""
    w, u, *biases = (p.detach().numpy() for p in module.parameters())
    bias = sn.quantize(biases[0].astype(np.float64) + biases[1], "e6m9").astype(np.float32)
    read = sn.matmul(e5m2(x), e5m2(w.T), UNIT, np.broadcast_to(bias, (len(x), len(bias))))
    return sn.matmul(e5m2(h), e5m2(u.T), UNIT, read)


def test_what_is_read_starts_the_products_of_the_state(narrow):
    torch.manual_seed(0)
    module = st.convert(nn.RNN(24, 16, nonlinearity="relu"), narrow, quiet=True)
    x, h = inputs(1, 3, 24), inputs(1, 3, 16, seed=4)
    found, _ = module(x, h)
    np.testing.assert_array_equal(found[0].detach(), np.maximum(by_hand(module, x[0].numpy(), h[0].numpy()), 0))
    apart = sum(
        sn.matmul(e5m2(v), e5m2(w.detach().numpy().T), UNIT, np.broadcast_to(b.detach().numpy(), (3, 16)).copy())
        for v, w, b in zip((x[0], h[0]), module.all_weights[0][:2], module.all_weights[0][2:], strict=True)
    )
    assert (np.maximum(apart, 0) != found[0].detach().numpy()).any()


def test_the_third_part_of_a_gru_has_a_product_of_its_own(narrow):
    torch.manual_seed(0)
    cell = st.convert(nn.GRUCell(24, 16), narrow, elementwise="torch", quiet=True)
    with torch.no_grad():
        cell.weight_ih.zero_()  # then r = sigmoid(b + h U^T) and n = tanh(b_n + r * (h V^T + v))
        cell.bias_ih.zero_()
        cell.bias_hh[:16], cell.bias_hh[16:32] = 100.0, -100.0  # r = 1, z = 0: the state is n
    h = inputs(3, 16, seed=4)
    v, bias = cell.weight_hh[32:].detach().numpy(), cell.bias_hh[32:].detach().numpy()
    own = sn.matmul(e5m2(h), e5m2(v.T), UNIT, np.broadcast_to(bias, (3, 16)).copy())
    np.testing.assert_allclose(cell(inputs(3, 24), h).detach(), np.tanh(own), rtol=1e-6)


@cases("design", ("narrow", "a-float32", "stochastic"))
def test_a_layer_is_its_cell_step_by_step(design, narrow, tmp_path):
    """Exactly: the gradients of weights are rounded and added step by step, in one call of a layer or in many."""
    (tmp_path / "stochastic.toml").write_text(STOCHASTIC)
    path = {"narrow": narrow, "stochastic": tmp_path / "stochastic.toml"}.get(design, design)
    torch.manual_seed(0)
    layer, cell = nn.LSTM(4, 5), nn.LSTMCell(4, 5)
    for one, other in zip(cell.parameters(), layer.parameters(), strict=True):
        one.data.copy_(other.data)
    for module in (layer, cell):
        st.convert(module, path, elementwise="exact", quiet=True)
    x = inputs(40, 2, 4)  # in which a role is rounded more than 512 times

    def steps(x):
        state, found = None, []
        with cell.softnum_mode:
            for row in x:
                state = cell_of(row, state)
                found.append(state[0])
        return torch.stack(found)

    def cell_of(row, state):
        return torch.lstm_cell(row, state or (torch.zeros(2, 5),) * 2, *cell.parameters())

    found = layer(x)[0]
    assert torch.isfinite(found).all()
    if design == "stochastic":
        assert not same([found], layer(x)[:1])  # another forward pass
        return
    assert same([found], [steps(x)])
    own = gradients(layer, x, lambda x: layer(x)[0])
    assert all(gradient.any() for gradient in own)
    assert same(own[1:2], gradients(cell, x, steps)[1:2])


def test_more_than_512_roundings_have_bits_of_their_own(tmp_path):
    (tmp_path / "stochastic.toml").write_text(STOCHASTIC)
    torch.manual_seed(0)
    model = st.convert(nn.LSTM(1, 1), tmp_path / "stochastic.toml", elementwise="exact", quiet=True)
    call = model.softnum_mode.arithmetic.call("hh_l0", model.softnum_state, 0)
    keys = [call._key("elementwise") for _ in range(1500)]
    assert len(set(keys)) == 1500
    assert [stream & 511 for _, stream in keys[:513]] == [*range(512), 0]


@cases("name", ("LSTM", "RNN"))
def test_states_of_zero_enter_no_product(name, narrow):
    torch.manual_seed(0)
    model = st.convert(getattr(nn, name)(4, 5), narrow, elementwise="exact", quiet=True)
    x = inputs(3, 2, 4)
    with st.statistics(model) as seen:
        first = model(x)[0]
    with st.statistics(model) as again:
        h = torch.zeros(1, 2, 5, requires_grad=True)
        second = model(x, (h, h) if name == "LSTM" else h)[0]
    products = [sum(row["elements"] for row in s.rows() if row["layer"] == "hh_l0" and row["role"] == "activations")
                for s in (seen, again)]  # fmt: skip
    assert products == [2 * 10, 3 * 10]
    assert same([first], [second])
    second.sum().backward()
    assert h.grad.any()


def test_layers_of_a_model_that_is_one_module():
    """Are called as of any other: they have the design's tables, and the first one the role ``input``."""
    model = st.convert(nn.LSTM(4, 5), "a-float32", quiet=True)
    with st.statistics(model) as seen:
        model(inputs(3, 2, 4))
    assert {(row["layer"], row["role"]) for row in seen.rows()} >= {("ih_l0", "input"), ("hh_l0", "activations")}
    assert {row["layer"] for row in st.gemms(model, inputs(3, 2, 4))} == {"ih_l0", "hh_l0"}


def test_gradients_of_weights_that_are_used_elsewhere_too(narrow):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5)

        def forward(self, x, elsewhere):
            y = self.lstm(x)[0].mean(0)
            return y + self.lstm.weight_hh_l0[:2] if elsewhere else y

    torch.manual_seed(0)
    model = st.convert(Model(), narrow, elementwise="exact", quiet=True)
    with pytest.raises(NotImplementedError, match="uses outside"):
        model(inputs(3, 2, 4), True).sum().backward()
    model.zero_grad()
    model(inputs(3, 2, 4), False).sum().backward()
    assert model.lstm.weight_hh_l0.grad.any()


def test_weights_that_are_computed_have_no_gradients_to_round(narrow):
    torch.manual_seed(0)
    model = st.convert(nn.LSTM(4, 5), narrow, elementwise="exact", quiet=True)
    w_ih, w_hh, *biases = model.parameters()
    state, weights = (torch.zeros(1, 2, 5),) * 2, (w_ih, 2 * w_hh, *biases)
    with model.softnum_mode, pytest.raises(NotImplementedError, match="must be an nn.Parameter"):
        torch.lstm(inputs(3, 2, 4), state, weights, True, 1, 0.0, True, False, False)
    with model.softnum_mode, torch.no_grad():
        assert torch.lstm(inputs(3, 2, 4), state, weights, True, 1, 0.0, True, False, False)[0].shape == (3, 2, 5)


def test_biases_of_binary64_are_added_and_rounded_once():
    """Their sum lies just above the middle of two numbers of binary32; each rounded, it would lie on it."""
    cell = nn.RNNCell(1, 1, nonlinearity="relu").double()
    with torch.no_grad():
        cell.weight_ih.zero_(), cell.weight_hh.zero_()
        cell.bias_ih.fill_(1.0), cell.bias_hh.fill_(2.0**-24 + 2.0**-60)
    with st.arithmetic("a-float32"):
        assert cell(torch.zeros(1, 1, dtype=torch.float64)).item() == 1 + 2.0**-23


PACKED = {
    "LSTM": lambda: nn.LSTM(4, 5, 2, bidirectional=True), "RNN": lambda: nn.RNN(4, 5, bidirectional=True),
    "GRU": lambda: nn.GRU(4, 5, 2, bidirectional=True), "LSTM without biases": lambda: nn.LSTM(4, 5, bias=False),
}  # fmt: skip
LENGTHS = (3, 7, 1, 7, 4)


@cases("name", PACKED)
@cases("elementwise", ("exact", "torch"))
def test_packed_sequences_are_computed_each_by_itself(name, elementwise, narrow):
    """Results and last states have the bits of each sequence alone; gradients are near PyTorch's."""
    parts = [inputs(length, 4, seed=length + i) for i, length in enumerate(LENGTHS)]
    for design in (narrow, "a-float32"):
        torch.manual_seed(0)
        plain = PACKED[name]()
        module = st.convert(copy.deepcopy(plain), design, elementwise=elementwise, quiet=True)
        packed = nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
        found, last = module(packed)
        found, lengths = nn.utils.rnn.pad_packed_sequence(found)
        assert lengths.tolist() == list(LENGTHS)
        for i, part in enumerate(parts):
            alone, own = module(part[:, None])
            assert torch.equal(found[: len(part), i], alone[:, 0])
            pairs = zip(last, own, strict=True) if isinstance(last, tuple) else [(last, own)]
            assert all(torch.equal(a[:, i], b[:, 0]) for a, b in pairs)
        if design == "a-float32":
            wide, ends = plain(packed)
            for run in ((found, last, module), (nn.utils.rnn.pad_packed_sequence(wide)[0], ends, plain)):
                states = run[1] if isinstance(run[1], tuple) else run[1:2]
                sum(x.square().sum() for x in (run[0], *states)).backward()
            for own, other in zip(module.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(own.grad, other.grad, rtol=1e-4, atol=1e-5)


def test_packed_sequences_of_equal_length_are_a_batch(narrow):
    torch.manual_seed(0)
    module = st.convert(nn.LSTM(4, 5), narrow, quiet=True)
    x = inputs(6, 3, 4)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 6, 6]))
    expected = gradients(module, x, lambda x: module(x)[0])
    assert same(gradients(module, x, lambda x: module(packed)[0].data), expected)
