"""PyTorch's optimisers by the roles of the update, and the loss scale."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from softnum.train import load_design  # noqa: E402
from softnum.train.designs.loss_scaling import LossScaling  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import feedforward, gradients, inputs, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
X = inputs(5, 4)
RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def run(model, optimizer, schedule, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).square().sum().backward()
        optimizer.step()
        schedule.step()


def begun(rule, design=None):
    model = feedforward()
    if design is None:
        optimizer = RULES[rule](model.parameters())
    else:
        model = st.convert(model, design, quiet=True)
        optimizer = st.Optimizer(RULES[rule](model.parameters()), model)
    return model, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)


@cases("rule", RULES)
def test_in_binary32_they_are_pytorchs(rule):
    plain, own = begun(rule), begun(rule, "a-float32")
    run(*plain, 8)
    run(*own, 8)
    for expected, found in zip(plain[0].parameters(), own[0].parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert own[0].softnum_state[1] == 8


@cases("rule", RULES)
def test_a_resumed_run_has_the_same_bits(rule, tmp_path):
    design = tmp_path / "own.toml"
    design.write_text("""
        [roles]
        activations = { format = "e5m2", rounding = "stochastic" }
        "update.weight" = { format = "bfloat16", rounding = "stochastic" }
    """)
    whole = begun(rule, design)
    run(*whole, 3)
    states = [copy.deepcopy(part.state_dict()) for part in whole]
    run(*whole, 3)
    resumed = begun(rule, design)
    for part, state in zip(resumed, states, strict=True):
        part.load_state_dict(state)
    run(*resumed, 3)
    assert same(resumed[0].parameters(), whole[0].parameters())


def test_roles_of_the_update(tmp_path):
    (tmp_path / "own.toml").write_text("""
        [roles]
        master = "bfloat16"
        momentum = "e5m2"
        "update.momentum" = "binary16"
    """)
    model = st.convert(feedforward(), tmp_path / "own.toml", quiet=True)
    optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model)
    for _ in range(2):
        before = [p.detach().clone() for p in model.parameters()]
        velocity = [optimizer.state[p].get("velocity") for p in model.parameters()]
        parts = gradients(model, X)
        optimizer.step()
        for parameter, old, v, g in zip(model.parameters(), before, velocity, parts, strict=True):
            v = np.zeros_like(g) if v is None else v.numpy()
            v = sn.quantize(sn.quantize(g.numpy() + 0.9 * v.astype(float), "binary16"), "e5m2")
            np.testing.assert_allclose(optimizer.state[parameter]["velocity"].numpy(), v, rtol=0.26)
            values = parameter.detach().numpy()
            np.testing.assert_array_equal(values, sn.quantize(values, "bfloat16"))
            assert not np.array_equal(values, old.numpy())


def test_a_narrow_parameter_keeps_a_master_copy():
    model = st.convert(feedforward().bfloat16(), "a-float32", quiet=True)
    optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=1e-4), model)
    start = [p.detach().clone() for p in model.parameters()]
    for _ in range(3):
        optimizer.zero_grad()
        model(X.bfloat16()).square().sum().backward()
        optimizer.step()
    for parameter, before in zip(model.parameters(), start, strict=True):
        master = optimizer.state[parameter]["master"]
        assert master.dtype == torch.float32 and not torch.equal(master, before.float())
        assert torch.equal(parameter, master.bfloat16())


def test_a_rate_of_zero_changes_nothing():
    model = st.convert(feedforward(), "a-float32", quiet=True)
    optimizer = st.Optimizer(torch.optim.AdamW(model.parameters(), lr=0.0), model)
    before = [p.detach().clone() for p in model.parameters()]
    gradients(model, X)
    optimizer.step()
    assert same(model.parameters(), before)


BAD = {
    "an optimiser without formulas": (
        lambda m: st.Optimizer(torch.optim.Rprop(m.parameters()), m), TypeError, "SGD, Adam, AdamW",
    ),
    "an option of another formula": (
        lambda m: st.Optimizer(torch.optim.Adam(m.parameters(), amsgrad=True), m), ValueError, "amsgrad",
    ),
    "parameters of another model": (
        lambda m: st.Optimizer(torch.optim.SGD(feedforward().parameters()), m), ValueError, "none of the model's",
    ),
    "a model that is not converted": (
        lambda m: st.Optimizer(torch.optim.SGD(m.parameters()), feedforward()), ValueError, "convert",
    ),
}  # fmt: skip


@cases("name", BAD)
def test_bad_input(name):
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call(st.convert(feedforward(), "a-float32", quiet=True))


def test_a_dynamic_loss_scale_skips_overflows():
    design = load_design("a-float32")
    object.__setattr__(design, "loss", LossScaling(2.0**100, dynamic=True, interval=2))
    model = st.convert(feedforward(), design, quiet=True)
    optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=1e-3), model)
    scaler = st.GradScaler(model)
    before = [p.detach().clone() for p in model.parameters()]
    scales = []
    for factor in (1e30, 1e-30, 1e-30):
        optimizer.zero_grad()
        scaler.scale((model(X) * factor).square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        if factor > 1:
            assert same(model.parameters(), before)
    assert scales == [2.0**99, 2.0**99, 2.0**100]
    assert model.softnum_state[1] == 3
    other = st.GradScaler(model)
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 2.0**100
