"""Several ranks: rows of a batch have the bits that one process gives them, which has all of the batch."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import softnum.torch as st  # noqa: E402
from tests.support import torch_ranks as ranks  # noqa: E402
from tests.support.cases import cases  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]

BLOCKS = """
name = "blocks"
[roles]
input = { format = "mxfp8_e5m2", rounding = "stochastic" }
activations = { format = "mxfp8_e5m2", rounding = "stochastic" }
weights = { format = "mxfp8_e5m2", rounding = "stochastic" }
errors = { format = "mxfp8_e5m2", rounding = "stochastic" }
"""
EVERY = """
name = "every"
[roles]
default = { format = "bfloat16", rounding = "stochastic" }
[units]
forward = { kind = "mad", accumulator = "e8m9", rounding = "stochastic" }
backward_data = { kind = "mad", accumulator = "e8m9", rounding = "stochastic" }
backward_weight = { kind = "mad", accumulator = "e8m9", rounding = "stochastic" }
"""
TEXTS = {"random": ranks.DESIGN, "blocks": BLOCKS}
HOW = ("ddp", "fsdp")


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("designs")
    texts = {**TEXTS, "every": EVERY}
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text)
    return {name: folder / f"{name}.toml" for name in texts}


@pytest.fixture(scope="module")
def computed(tmp_path_factory, designs):
    """What two processes compute, by rank."""
    every = [(how, network, designs["random"]) for how in HOW for network in ranks.NETWORKS]
    return ranks.run(tmp_path_factory.mktemp("ranks"), ranks.everything, every)


def parts(length: int):
    return [slice(rank * length // ranks.RANKS, (rank + 1) * length // ranks.RANKS) for rank in range(ranks.RANKS)]


def equal(found, expected) -> bool:
    return all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


def partial(network, design, rank, part):
    """Passes and gradients of one rank's part alone."""
    model, x, gradient = ranks.begun(network, design)
    st.set_rank(model, rank, whole=len(x))
    return ranks.computed(model, x[part], gradient[part]), ranks.gradients(model)


@cases("network", ranks.NETWORKS)
@cases("how", HOW)
def test_passes_have_the_bits_of_one_process(computed, designs, how, network):
    model, x, gradient = ranks.begun(network, designs["random"])
    whole = ranks.computed(model, x, gradient)
    found = [rank[how, network, "random"]["passes"] for rank in computed]
    assert equal([torch.cat(parts) for parts in zip(*found, strict=True)], whole)


@cases("network", ranks.NETWORKS)
@cases("how", HOW)
def test_gradients_of_weights_are_means_of_the_ranks(computed, designs, how, network):
    _, x, _ = ranks.begun(network, designs["random"])
    own = [partial(network, designs["random"], rank, part)[1] for rank, part in enumerate(parts(len(x)))]
    means = [(a + b) / 2 for a, b in zip(*own, strict=True)]
    for rank in computed:
        assert equal(rank[how, network, "random"]["gradients"], means)


@cases("network", ranks.NETWORKS)
@cases("how", HOW)
def test_parameters_are_the_same_on_every_rank(computed, how, network):
    first, second = (rank[how, network, "random"] for rank in computed)
    assert equal(first["parameters"], second["parameters"])
    assert equal(first["parameters"], computed[0]["ddp", network, "random"]["parameters"])
    for rank in (first, second):  # from what rank 0 wrote
        assert equal(rank["resumed"], first["parameters"])


def test_a_model_that_is_not_spread(computed, designs):
    model, x, _ = ranks.begun("transformer", designs["random"])
    trained, (again, _, _) = model(x), ranks.begun("transformer", designs["random"])
    evaluated = again.eval()(x)
    for rank in computed:
        said, *found = rank["alone"]
        assert "neither DistributedDataParallel nor fully_shard" in said
        assert equal(found, [trained, evaluated])


# -- one rank's part in one process ------------------------------------------------------------------------------------


class Made(nn.Module):
    """A layer, and a function of it and of what the model is called with."""

    def __init__(self, function, layer=None):
        super().__init__()
        self.layer = layer or nn.Linear(8, 8)
        self.function = function

    def forward(self, *inputs):
        return self.function(self.layer, *inputs)


def results(model, x, gradient, state, *place, **options):
    """Passes in the same forward pass again, on some rank."""
    model.softnum_state = state
    st.set_rank(model, *place, **options)
    return ranks.computed(model, x, gradient)


def is_rank_safe(make, design, shape, **options) -> bool:
    """Whether parts of a batch have the bits of the whole: two of one length, and one of another."""
    torch.manual_seed(2)
    model, x = st.convert(make(), design, **{"elementwise": "torch", "quiet": True, **options}), torch.randn(shape)
    state = model.softnum_state
    gradient = torch.randn(model(x).shape)
    whole = results(model, x, gradient, state, None)
    for rank, first, end in ((0, 0, 2), (1, 2, 4), (1, 1, 4)):
        part = slice(first, end)
        own = results(model, x[part], gradient[part], state, rank, first=first, whole=4)
        if not equal(own, [y[part] for y in whole]):
            return False
    return True


SAFE = {
    "a transformer": (ranks.transformer, (4, 4, 8)),
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2)),
                     (4, 2, 9, 9)),
    "of lines and volumes": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ConvTranspose1d(3, 2, 4, stride=2),
                                                   nn.Unflatten(2, (2, 2, 5)), nn.Conv3d(2, 2, 2)), (4, 2, 11)),
    "products of samples' matrices": (lambda: Made(lambda layer, x: layer(x @ x.mT @ x)), (4, 3, 8)),
    "with one matrix for all": (lambda: Made(lambda layer, x: layer.weight[:3, :3] @ x), (4, 3, 8)),
    "rows under each other": (lambda: Made(lambda layer, x: layer(x.reshape(-1, 8)).view(x.shape)), (4, 3, 8)),
    "turned there and back": (lambda: Made(lambda layer, x: layer(x.mT.transpose(0, 1).permute(1, 2, 0))), (4, 3, 8)),
    "a batch that is second": (
        lambda: Made(lambda layer, x: layer(layer(x.transpose(0, 1)).relu()).transpose(0, 1)), (4, 3, 8),
    ),
    "an encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 8, dropout=0, batch_first=True), (4, 3, 8)),
    "attention to others": (
        lambda: Made(lambda attention, x: attention(x, x * 2, x - 1, need_weights=False)[0],
                     nn.MultiheadAttention(8, 2, batch_first=True)), (4, 3, 8),
    ),
    "LSTM": (lambda: Made(lambda lstm, x: lstm(x)[0], nn.LSTM(8, 8, 2, batch_first=True)), (4, 3, 8)),
    "GRU, both ways": (
        lambda: Made(lambda gru, x: gru(x.transpose(0, 1))[1][-1] + gru(x.transpose(0, 1))[0][-1, :, :4],
                     nn.GRU(8, 4, bidirectional=True)), (4, 3, 8),
    ),
    "stacked": (lambda: Made(lambda layer, x: layer(torch.stack([x, x]).unbind(0)[1])), (4, 3, 8)),
    "a table": (lambda: Made(lambda layer, x: layer(x) + layer(layer.weight[:4] * 2).sum()), (4, 3, 8)),
    "changed in place": (lambda: Made(lambda layer, x: layer(torch.zeros(len(x), 3, 8).copy_(x))), (4, 3, 8)),
    "the larger of two": (lambda: Made(lambda layer, x: layer(torch.max(x, x * 2).clamp_(max=1))), (4, 3, 8)),
    "masked in place": (lambda: Made(lambda layer, x: layer(put(x * 1, x < 0, 0.5))), (4, 3, 8)),
    "a cell": (lambda: Made(lambda cell, x: cell(x[:, 0], (x[:, 1], x[:, 2]))[0], nn.LSTMCell(8, 8)), (4, 3, 8)),
    "addmm": (lambda: Made(lambda layer, x: torch.addmm(layer.bias, x, layer.weight)), (4, 8)),
}  # fmt: skip


@cases(("name", "design"), [(name, design) for name in SAFE for design in TEXTS])
def test_parts_have_the_bits_of_the_whole(designs, name, design):
    make, shape = SAFE[name]
    assert is_rank_safe(make, designs[design], shape)


def test_element_by_element():
    def function(layer, x):
        return torch.tanh(layer(x)) * 0.5 + x

    assert is_rank_safe(lambda: Made(function), "g-q44-stochastic", (4, 8), elementwise="exact")


def both(layer, function):
    """A layer, and what a function of it and another makes."""
    return lambda: Made(lambda parts, x: function(parts[0], parts[1](x)), nn.Sequential(layer(), nn.Linear(8, 8)))


def twice(layer, x):
    turned = torch.tanh(layer(x)).transpose(0, 1)
    return torch.tanh(turned) + torch.sigmoid(turned)


EXACT = {
    "softmax": (lambda: Made(lambda layer, x: layer(x).softmax(-1)), (4, 3, 8)),
    "along another axis": (lambda: Made(lambda layer, x: layer(x).log_softmax(1)), (4, 3, 8)),
    "layers": (both(lambda: nn.LayerNorm(8), lambda norm, x: norm(x)), (4, 3, 8)),
    "of a batch that is second": (
        both(lambda: nn.LayerNorm(8), lambda norm, x: norm(x.transpose(0, 1)).transpose(0, 1)), (4, 3, 8),
    ),
    "root mean squares": (both(lambda: nn.RMSNorm(8), lambda norm, x: norm(x)), (4, 8)),
    "groups": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4)), (4, 2, 5, 5)),
    "instances": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4)), (4, 2, 5, 5)),
    "sums": (lambda: Made(lambda layer, x: layer(x).sum((1, 2), keepdim=True)), (4, 3, 8)),
    "means": (lambda: Made(lambda layer, x: layer(x).transpose(0, 1).mean(0)), (4, 3, 8)),
    "averages": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.AvgPool2d(2)), (4, 2, 6, 6)),
    "overlapping windows": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.AvgPool2d(2, 1), nn.MaxPool2d(2, 1)), (4, 2, 6, 6),
    ),
    "rules of gradients": (lambda: Made(lambda layer, x: torch.rsqrt(F.gelu(layer(x)).abs() + 0.5) ** 3), (4, 3, 8)),
    "numbers": (lambda: Made(lambda layer, x: 1 - layer(x) / 3 + 0.3), (4, 3, 8)),
    "one number of a sample": (lambda: Made(lambda layer, x: torch.rsqrt(layer(x)[:, :1].abs() + 0.5)), (4, 8)),
    "a result that is turned, and used twice": (lambda: Made(lambda layer, x: twice(layer, x).transpose(0, 1)),
                                                (4, 3, 8)),
    "attention": (lambda: Made(lambda attention, x: attention(x, x, x, need_weights=False)[0],
                               nn.MultiheadAttention(8, 2, batch_first=True)), (4, 3, 8)),
    "an encoder layer": (ranks.encoder, (4, 3, 8)),
}  # fmt: skip


@cases("name", EXACT)
def test_exact_functions_along_rows(designs, name):
    make, shape = EXACT[name]
    assert is_rank_safe(make, designs["every"], shape, elementwise="exact")


def test_exact_functions_in_parallel_modules(tmp_path, designs):
    model, x, gradient = ranks.begun_encoder(designs["every"])
    whole = ranks.computed(model, x, gradient)
    assert equal(
        [torch.cat(parts) for parts in zip(*ranks.run(tmp_path, ranks.encoded, designs["every"]), strict=True)], whole
    )


@cases("design", ("te-mxfp8-block-scaling", "deepseek-v3"))
def test_recipes(design):
    def make():
        modules = {"one": nn.Linear(32, 32), "attention": nn.Linear(32, 32), "fc": nn.Linear(32, 3)}
        model = nn.Sequential()
        for name, module in modules.items():
            model.add_module(name, module)
        return model

    assert is_rank_safe(make, design, (4, 32))


def test_without_a_place_rows_are_those_of_one_process(designs):
    """So the tests above could fail."""
    model, x, gradient = ranks.begun("transformer", designs["random"])
    state = model.softnum_state
    whole = results(model, x, gradient, state, None)
    assert not equal(results(model, x[2:], gradient[2:], state, None), [y[2:] for y in whole])


def test_partial_gradients_have_bits_of_their_own(designs):
    """The same samples on two ranks: the gradients of their weights are rounded by other bits."""
    for name in ranks.NETWORKS:
        first, again, second = (partial(name, designs["random"], rank, slice(0, 2))[1] for rank in (0, 0, 1))
        assert equal(first, again) and not equal(first, second)


def test_a_looked_up_table(designs):
    model = st.convert(nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 3)), designs["random"], quiet=True)
    x, state = torch.arange(20).view(4, 5) % 9, model.softnum_state
    whole = model(x)
    model.softnum_state = state
    st.set_rank(model, 1)
    assert torch.equal(model(x[2:]), whole[2:])


def test_a_checkpoint_computes_the_same_again(designs):
    def through(layer, x):
        table = layer.weight[None, :3] * 2
        return checkpoint(
            lambda x, y: layer(layer(x) + layer(y)), x, table, use_reentrant=False, context_fn=st.checkpoint_contexts
        )

    def plain(layer, x):
        return layer(layer(x) + layer(layer.weight[None, :3] * 2))

    found = []
    for function in (through, plain):
        torch.manual_seed(2)
        model, x = st.convert(Made(function), designs["random"], quiet=True), torch.randn(4, 3, 8)
        found.append(results(model, x[2:], torch.ones(2, 3, 8), model.softnum_state, 1))
        found[-1] += ranks.gradients(model)
    assert equal(*found)


def put(x, index, values):
    x[index] = values
    return x


def test_what_looks_at_a_rank_changes_nothing(designs):
    model, x, gradient = ranks.begun("transformer", designs["random"])
    state = model.softnum_state
    own = results(model, x[2:], gradient[2:], state, 1, whole=4)
    with st.statistics(model) as seen:
        assert equal(results(model, x[2:], gradient[2:], state, 1, whole=4), own)
    assert seen.rows()
    assert st.gemms(model, x[2:])
    assert equal(results(model, x[2:], gradient[2:], state, 1, whole=4), own)
    model.eval()
    model.softnum_state = state
    st.set_rank(model, None)
    whole = model(x)
    assert equal(results(model, x[2:], gradient[2:], state, 1, whole=4)[:1], [whole[2:]])


WRONG = "the batch is not known to be the leading axis"
REFUSED = {
    "a batch that was second": (lambda layer, x: layer(x.transpose(0, 1).reshape(-1, 8)), WRONG),
    "a batch that is last": (lambda layer, x: layer(x.permute(1, 2, 0).expand(3, 8, 2) @ torch.ones(2, 8)), WRONG),
    "chosen rows": (lambda layer, x: layer(x[torch.tensor([1, 0])]), WRONG),
    "joined batches": (lambda layer, x: layer(torch.cat([x, x])), WRONG),
    "turned in place": (lambda layer, x: layer(x.clone().transpose_(0, 1)), WRONG),
    "rows put in other places": (
        lambda layer, x: layer(torch.zeros_like(x).index_copy_(0, torch.tensor([1, 0]), x)),
        WRONG,
    ),
    "and by indices": (lambda layer, x: layer(put(torch.zeros_like(x), torch.tensor([1, 0]), x)), WRONG),
    "sums over the batch": (lambda layer, x: layer(x.mean(0)), WRONG),
    "einsum": (lambda layer, x: torch.einsum("bij,bkj->bik", x, x), WRONG),
    "all pairs of samples": (lambda layer, x: x.flatten(1) @ x.flatten(1).T, WRONG),
    "a sample's own weights": (lambda layer, x: F.linear(layer.weight, x[:, 0]), "made of parameters alone"),
    "repeated rows": (lambda layer, x: layer(layer.bias.expand(len(x), 8)), "may be as many as samples, or not"),
    "another number of rows": (lambda layer, x: layer(F.pad(x, (0, 0, 0, 0, 0, 1))), WRONG),
    "vmap": (lambda layer, x: torch.vmap(layer)(x), "do not tell the rows"),
}


@cases("name", REFUSED)
def test_what_is_no_row_of_the_batch_is_refused(designs, name):
    function, text = REFUSED[name]
    model = st.convert(Made(function), designs["random"], quiet=True)
    st.set_rank(model, 1)
    with pytest.raises(NotImplementedError, match=text):
        model(torch.randn(2, 3, 8))
    st.set_rank(model, None)
    model(torch.randn(2, 3, 8))
    model = st.convert(Made(function), "i-mxfp8", quiet=True)  # in which no bit depends on rows
    st.set_rank(model, 1)
    model(torch.randn(2, 3, 8))


def test_a_batch_that_is_second_takes_the_size_of_the_whole(designs):
    model = st.convert(nn.GRU(8, 8, batch_first=True), designs["random"], quiet=True)
    st.set_rank(model, 1)
    with pytest.raises(NotImplementedError, match="axis 1 of the operand, .*whole="):
        model(torch.randn(2, 3, 8))
    model = st.convert(nn.GRU(8, 8), designs["random"], quiet=True)  # called with time first, of 2 steps
    st.set_rank(model, 1, whole=4)
    with pytest.raises(NotImplementedError, match=WRONG):
        model(torch.randn(2, 3, 8))


def test_arguments_that_do_not_tell_the_batch(designs):
    model = st.convert(Made(lambda layer, x, other: layer(x) + other), designs["random"], quiet=True)
    x, other, state = torch.randn(4, 8), torch.zeros(8), model.softnum_state
    whole = model(x, other)
    model.softnum_state = state
    st.set_rank(model, 1)
    with pytest.raises(ValueError, match=r"their lengths are 2, 8\); state it: .*rows="):
        model(x[2:], other)
    st.set_rank(model, 1, rows=2)
    assert torch.equal(model(x[2:], other), whole[2:])
    with pytest.raises(ValueError, match="rank must be an integer from 0 on, got -1"):
        st.set_rank(model, -1)


def test_compilers_and_program_order_are_refused(designs):
    model = st.convert(nn.Linear(8, 8), designs["random"], quiet=True)
    st.set_rank(model, 1)
    with pytest.raises(NotImplementedError, match="do not compile"):
        torch.compile(model, backend="eager")(torch.randn(2, 8))
    model = st.convert(nn.Linear(8, 8), designs["random"], program_order=True, quiet=True)
    st.set_rank(model, 1)
    with pytest.raises(NotImplementedError, match="in eager mode alone, and not in program_order"):
        model(torch.randn(2, 8))


SPREAD = "what spreads or chooses elements"
SUMS = {
    "sums over the batch": (lambda x: x.sum(0), "that it does not add along"),
    "softmax over the batch": (lambda x: x.softmax(0), "that it does not add along"),
    "a sample's own gains": (lambda x: F.layer_norm(x, (8,), x[0], x[1]), "that it does not add along"),
    "spread elements": (lambda x: x + torch.ones(8), SPREAD),
    "chosen elements": (lambda x: x[torch.tensor([1, 0])], SPREAD),
    "batches": (lambda x: F.batch_norm(x, None, None, training=True), SPREAD),
}


@cases("name", SUMS)
def test_stochastic_sums_that_are_not_of_a_samples_own_are_refused(name):
    function, text = SUMS[name]
    model = st.convert(Made(lambda layer, x: function(layer(x))), "g-q44-stochastic", elementwise="exact", quiet=True)
    st.set_rank(model, 1, whole=4)
    with pytest.raises(NotImplementedError, match=text):
        model(torch.randn(2, 8))


def test_sums_along_rows_take_the_size_of_the_whole():
    model = st.convert(Made(lambda layer, x: layer(x).softmax(-1)), "g-q44-stochastic", elementwise="exact", quiet=True)
    st.set_rank(model, 1)
    with pytest.raises(NotImplementedError, match="numbered by how many samples the whole batch has; .*whole="):
        model(torch.randn(2, 8))


def test_groups_in_blocks_are_refused(designs):
    model = st.convert(nn.Conv2d(4, 4, 3, groups=2), designs["blocks"], quiet=True)
    st.set_rank(model, 1)
    with pytest.raises(NotImplementedError, match="groups of a convolution"):
        model(torch.randn(2, 4, 5, 5))
