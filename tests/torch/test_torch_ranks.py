"""Several ranks: rows of a batch have the bits that one process gives them, which has all of the batch."""

import pytest

torch = pytest.importorskip("torch")

import softnum.torch as st  # noqa: E402
from tests.support import torch_ranks as ranks  # noqa: E402
from tests.support.cases import cases  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

BLOCKS = """
name = "blocks"
[roles]
input = { format = "mxfp8_e5m2", rounding = "stochastic" }
activations = { format = "mxfp8_e5m2", rounding = "stochastic" }
weights = { format = "mxfp8_e5m2", rounding = "stochastic" }
errors = { format = "mxfp8_e5m2", rounding = "stochastic" }
"""
TEXTS = {"random": ranks.DESIGN, "blocks": BLOCKS}
HOW = ("ddp", "fsdp")


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("designs")
    for name, text in TEXTS.items():
        (folder / f"{name}.toml").write_text(text)
    return {name: folder / f"{name}.toml" for name in TEXTS}


@pytest.fixture(scope="module")
def computed(tmp_path_factory, designs):
    """What two processes compute, by rank."""
    every = [(how, network, designs["random"]) for how in HOW for network in ranks.NETWORKS]
    return ranks.run(tmp_path_factory.mktemp("ranks"), every)


def parts(length: int):
    return [slice(rank * length // ranks.RANKS, (rank + 1) * length // ranks.RANKS) for rank in range(ranks.RANKS)]


def equal(found, expected) -> bool:
    return all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


def partial(network, design, rank, part):
    """Passes and gradients of one rank's part alone."""
    model, x, gradient = ranks.begun(network, design)
    st.set_rank(model, rank)
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
