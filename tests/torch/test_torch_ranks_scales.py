"""Several ranks: scales of whole tensors are those of the whole batch."""

from unittest.mock import patch

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.torch.sharing import Sharing  # noqa: E402
from tests.support import torch_ranks as ranks  # noqa: E402
from tests.support import torch_scales as scales  # noqa: E402
from tests.support.cases import cases  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("designs")
    for name, text in scales.DESIGNS.items():
        (folder / f"{name}.toml").write_text(text)
    return {name: folder / f"{name}.toml" for name in scales.DESIGNS}


@pytest.fixture(scope="module")
def computed(tmp_path_factory, designs):
    """What three processes compute, by rank."""
    count = len(scales.PARTS)
    return ranks.run(tmp_path_factory.mktemp("ranks"), scales.parts, list(designs.values()), ranks=count)


def equal(found, expected) -> bool:
    """Whether all tensors are equal, NaN for NaN."""
    return all(np.array_equal(x.numpy(), y.numpy(), equal_nan=True) for x, y in zip(found, expected, strict=True))


def joined(found) -> list:
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


@cases("name", scales.DESIGNS)
def test_parts_have_the_bits_of_the_whole(computed, designs, name):
    model, x, gradient = scales.begun(designs[name])
    whole = scales.trained(model, x, gradient)
    assert equal(joined([rank[name][0] for rank in computed]), whole)
    if name != "tiles":  # which divide the samples
        assert not equal(joined([rank[f"{name}, alone"][0] for rank in computed]), whole)


def test_histories_are_those_of_one_process(computed, designs):
    model, x, gradient = scales.begun(designs["delayed"])
    scales.trained(model, x, gradient)
    expected = scales.scales(model)
    assert len(expected) > 5
    for rank in computed:
        found = rank["delayed"][1]
        assert found.keys() == expected.keys() and equal(found.values(), expected.values())


def test_parallel_modules_and_evaluation_alone(tmp_path, designs):
    first, second = ranks.run(tmp_path, scales.spread, designs["tensor"])
    model, x, gradient = scales.begun(designs["tensor"])
    x = x[:4].requires_grad_()
    y = model(x)
    y.backward(gradient[:4])
    assert equal(joined([first[:6], second]), [*[y.detach(), x.grad] * 2, *scales.recurrent(designs["tensor"])])
    again, _, _ = scales.begun(designs["tensor"])
    assert equal(first[6:], [again.eval()(x[:2]).detach()])


def test_ranks_that_compute_different_things_are_errors(tmp_path, designs):
    first, second = ranks.run(tmp_path, scales.mismatched, designs["tensor"])
    for seeds, order in zip(first[:2], second, strict=True):
        assert "the ranks ask for different things" in seeds and "the ranks ask for different things" in order
    assert first[2] and "different things" not in first[2]  # in time, by gloo


def made(design, function):
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return function(self.layer, x)

    model = st.convert(Made(), design, elementwise="torch", quiet=True)
    st.set_rank(model, 0, whole=4)
    return model


def test_without_a_process_group(designs):
    model = made(designs["tensor"], lambda layer, x: layer(x))
    with pytest.raises(RuntimeError, match="layer 'layer', role 'input': .*there is no process group"):
        model(torch.ones(2, 8))
    st.set_rank(model, None)
    model(torch.ones(2, 8))


REFUSED = {
    "sample by sample": lambda layer, x: torch.stack([layer(part) for part in x]),
    "chosen samples": lambda layer, x: layer(x[:1]),
    "sums over the batch": lambda layer, x: layer(x.sum(0)),
    "vmap": lambda layer, x: torch.vmap(layer)(x),
    "products that add over the batch": lambda layer, x: x.permute(1, 2, 0) @ torch.ones(len(x), 3),
    "samples' own weights": lambda layer, x: layer.weight @ x[:, 0].T,
}


@cases("name", REFUSED)
def test_what_is_not_known_to_be_a_part_of_the_batch_is_refused(designs, name):
    model = made(designs["tensor"], REFUSED[name])
    with pytest.raises(NotImplementedError, match="scales of whole tensors"):
        model(torch.ones(2, 3, 8))


@cases("name", ("tiles", "saved"))
def test_tiles_with_samples_of_two_ranks_are_refused(designs, name):
    def function(layer, x):
        return layer(x) if name == "tiles" else x.mT @ (x @ x.mT @ x)

    model, x = made(designs[name], function), torch.ones(2, 3, 8)
    with pytest.raises(NotImplementedError, match="do not end where the rank's samples do"):
        model(x) if name == "tiles" else saving(model, x)


def saving(model, x):
    """Where no scale of a whole tensor asks for the other ranks."""
    with patch.object(Sharing, "largest", lambda self, magnitudes, asked, where: magnitudes):
        return model(x)


def test_a_quantizer_of_the_users_own_is_refused(tmp_path):
    (tmp_path / "own.py").write_text(
        "import numpy as np\nimport softnum as sn\n"
        "def own(x):\n    return sn.quantize(x, 'e4m3fn', overflow='saturate'), np.ones((1, 1), np.float32)\n"
        "own.block = (None, None)\n"
    )
    text = scales.DESIGNS["tensor"].replace('scale = { per = "tensor" } }\nact', 'scale = "own.py:own" }\nact')
    (tmp_path / "own.toml").write_text(text)
    model = made(tmp_path / "own.toml", lambda layer, x: layer(x))
    with pytest.raises(NotImplementedError, match="role 'input': a quantizer of the user's own"):
        model(torch.ones(2, 8))
