"""The language model gpt in PyTorch: the losses and parameters of softnum.train, bit for bit, and PyTorch's own."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.train import load_design  # noqa: E402
from softnum.train.datasets.sets import Text  # noqa: E402
from softnum.train.datasets.vocabulary import Vocabulary  # noqa: E402
from softnum.train.runs.loop import Run, Settings  # noqa: E402
from tests.support.train_cases import BINARY64  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

SIZES = {"sizes": (16, 24), "depth": 1, "heads": 2, "kv_heads": 1, "steps": 8}
UNTIED, MIXTURE = {"tied_embeddings": False}, {"experts": 3, "experts_chosen": 2, "balance": 0.5}
OTHERS = UNTIED | {"biases": True, "feedforward": "relu2", "norm": "layer", "positions": "learned"}
CASES = {
    "tied": ("a-float32", {}),
    "stochastic": ("c-wang-fp8", UNTIED),
    "others": ("c-wang-fp8", OTHERS),
    "mixture": ("i-mxfp8", UNTIED | MIXTURE),
    "sent mixture": (
        "a-float32",
        UNTIED
        | MIXTURE
        | {
            "expert_dispatch": "ring(ranks=3, wire='e4m3fn', own='kept')",
            "expert_combine": "ring(ranks=3, wire=BlockFormat('e4m3fn', 'binary32', 8))",
        },
    ),
    "tied mixture": ("a-float32", MIXTURE | {"feedforward": "relu"}),
}


def both(design, options):
    """A run in softnum.train, and the same model in PyTorch with its parameters, as (parameter, its twin, turned)."""
    x = np.random.default_rng(1).integers(0, 256, (16, 9))
    data = Text("text", x[:12, :-1], x[:12, 1:], x[12:, :-1], x[12:, 1:], Vocabulary())
    settings = Settings(network="gpt", network_options=SIZES | options, data="text", epochs=1, batch=4)
    run, model, twins = Run(settings, load_design(design), seed=5, data=data), st.GPT(**SIZES | options), []
    for parameter in run.network.parameters:
        layer, kind = parameter.name.rpartition(".")[::2]
        module = model.get_submodule(layer)
        turned = isinstance(module, torch.nn.Linear) and kind == "weight"
        twins.append((parameter, getattr(module, kind), turned))
    assert len(twins) == len(list(model.parameters()))
    return run, model, twins


def laid_out(parameter, turned):
    return np.ascontiguousarray(parameter.value.T if turned else parameter.value)


def steps(run, model, twins, mode=None):
    """(iteration, loss here, loss there) of each iteration of an epoch."""
    with torch.no_grad():
        for parameter, twin, turned in twins:
            twin.copy_(torch.from_numpy(laid_out(parameter, turned)))
    constants = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
    if mode is None:
        constants = {name: float(np.float32(value)) for name, value in constants.items()}
    optimizer = scaler = torch.optim.SGD([twin for _, twin, _ in twins], **constants)
    if mode is not None:
        optimizer, scaler = st.Optimizer(optimizer, model), st.GradScaler(model)
    for iteration, rows in run.plan(1):
        mine = run.train(iteration, rows)["loss"]
        optimizer.zero_grad()
        outputs, labels = model(torch.from_numpy(run.data.train_x[rows])), run.data.train_y[rows].reshape(-1)
        if mode is None:
            found = F.cross_entropy(outputs.flatten(0, 1), torch.from_numpy(labels))
            sum([found, *model.penalties]).backward()
            optimizer.step()
        else:
            with mode:
                found = F.cross_entropy(outputs.flatten(0, 1), torch.from_numpy(labels))
            scaler.scale(sum([found, *model.penalties])).backward()
            scaler.step(optimizer)
            scaler.update()
        yield iteration, mine, found.item() + sum(penalty.item() for penalty in model.penalties)


def judge(design, options):
    """That a converted model has the bits of the network."""
    run, model, twins = both(design, options)
    st.convert(model, design, seed=5, elementwise="exact", program_order=True, quiet=True)
    for _, mine, theirs in steps(run, model, twins, model.softnum_mode):
        assert theirs == pytest.approx(mine, rel=2**-23)  # a loss of PyTorch's is of binary32
        for parameter, twin, turned in twins:
            np.testing.assert_array_equal(twin.detach().numpy(), laid_out(parameter, turned), parameter.name)
    assert run.iterations == 3


@pytest.mark.parametrize("case", CASES)
def test_losses_and_parameters_are_those_of_the_network(case):
    judge(*CASES[case])


def test_layers_whose_k_ranks_share(tmp_path):
    split = "kind = 'split', ranks = 2, collective = \"ring(unit='bfloat16')\", inner = { accumulator = 'binary32' }"
    (tmp_path / "parallel.toml").write_text(
        f"[roles]\ndefault = 'bfloat16'\nmaster = 'binary32'\n"
        f"[layers.'.*(project|ff2)'.units]\nforward = {{ {split} }}\n"
        f"[layers.'.*(gate|ff1)'.units]\nbackward_data = {{ {split} }}\n"
        f"[layers.'.*qkv'.units]\nbackward_data = {{ {split}, sections = [16, 8, 8] }}\n"
    )
    judge(tmp_path / "parallel.toml", UNTIED)


def test_wires_that_round_stochastically_are_refused():
    wire = "ring(ranks=3, wire='e5m2', wire_rounding='stochastic')"
    with pytest.raises(ValueError, match="have no number for it; round to nearest, or train by softnum.train"):
        st.GPT(**SIZES, **MIXTURE, expert_dispatch=wire)


@pytest.mark.parametrize("options", [{}, OTHERS, MIXTURE], ids=["plain", "others", "mixture"])
def test_losses_in_binary64_are_pytorchs(options, tmp_path):
    (tmp_path / "double.toml").write_text(BINARY64)
    run, model, twins = both(tmp_path / "double.toml", options)
    for _, mine, theirs in steps(run, model.double(), twins):
        assert abs(mine - theirs) < 1e-10


def test_rotary_is_one_function_of_a_design():
    x = torch.linspace(-2, 2, 48, requires_grad=True).reshape(2, 3, 8)
    plain = st.rotary(x, heads=2)
    with st.arithmetic("a-float32"):
        assert torch.allclose(st.rotary(x, heads=2), plain, atol=1e-6)
    with st.arithmetic("f-q44-nearest"):
        narrow = st.rotary(x, heads=2).detach().numpy()
    assert np.array_equal(narrow * 16, np.rint(narrow * 16)) and not np.array_equal(narrow, plain.detach().numpy())
    with pytest.raises(ValueError, match=r"an even number of features for each of 3 heads, got \(2, 3, 8\)"):
        st.rotary(x, heads=3)
    with st.arithmetic("a-float32"), pytest.raises(NotImplementedError, match="rotary"):
        st.rotary(x[0])
