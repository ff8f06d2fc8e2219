"""PyTorch's optimisers by the roles of the update, and the loss scale."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from softnum.train import Lion as Lion_  # noqa: E402
from softnum.train import Muon as Muon_  # noqa: E402
from softnum.train import Numerics, Parameter, load_design  # noqa: E402
from softnum.train.designs.loss_scaling import LossScaling  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import feedforward, gradients, inputs, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
X = inputs(5, 4)


class Lion(torch.optim.Optimizer):
    """As others define it: PyTorch has none."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, **options):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, **options})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (beta1, beta2), rate = group["betas"], group["lr"]
            for p in group["params"]:
                mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p.mul_(1 - rate * group["weight_decay"])
                p.sub_(rate * (beta1 * mean + (1 - beta1) * p.grad).sign())
                mean.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def decoupled(model):
    optimizer = Lion(model.parameters())
    optimizer.decoupled_wd = True
    return optimizer


def muon(params, **options):
    return torch.optim.Muon([p for p in params if p.dim() == 2], **options)


RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "lion": lambda p: Lion(p, lr=0.01, weight_decay=0.1),
    "muon": lambda p: muon(p, lr=0.02, weight_decay=0.1),
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
def test_in_binary32_they_are_pytorchs(rule, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)  # in which PyTorch's Muon multiplies
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


#: where all roles of an update differ, states in blocks and a compensated sum among them
UPDATES = """
[roles]
master = { format = "bfloat16", rounding = "stochastic" }
momentum = { format = "mxfp8_e4m3", rounding = "stochastic" }
"update.momentum" = "bfloat16"
"update.decay" = { format = "binary32", rounding = "stochastic" }
"update.weight" = { format = "e6m12", rounding = "stochastic" }
"update.step" = { format = "bfloat16", rounding = "stochastic" }
"update.norm" = "e6m12"
"""
FORMS = {"plain": "", "compensated": 'compensation = { format = "bfloat16", rounding = "stochastic" }\n'}
TRAINED = {"lion": (Lion_, {"beta1": 0.9, "beta2": 0.99}), "muon": (Muon_, {"momentum": 0.95})}


@cases(("rule", "form"), [(rule, form) for rule in TRAINED for form in FORMS])
def test_updates_are_those_of_training(rule, form, tmp_path):
    """In program order the stochastic roundings have the same bits too."""
    (tmp_path / "own.toml").write_text(f"{UPDATES}{FORMS[form]}")
    design = load_design(tmp_path / "own.toml")
    model = torch.nn.Sequential(torch.nn.Linear(5, 8, bias=False), torch.nn.Linear(8, 3, bias=False))
    st.convert(model.double(), design, seed=7, program_order=True, quiet=True)  # which holds numbers of MXFP8
    numerics = Numerics(design, ["0", "1", "end"], seed=7)
    twins = [
        Parameter(layer.weight.detach().numpy().T.copy(), numerics.layer(name), name)
        for name, layer in model.named_children()
    ]
    kind, constants = TRAINED[rule]
    reference = kind(twins, learning_rate=1.0, weight_decay=0.1, **constants)
    optimizer = st.Optimizer(RULES[rule](model.parameters()), model)
    for step in range(3):
        numerics.begin(step + 1)
        model.softnum_mode.arithmetic.sites.begin(step, False)
        for parameter, twin in zip(model.parameters(), twins, strict=True):
            parameter.grad = inputs(*parameter.shape, seed=step).double()
            twin.gradient = parameter.grad.numpy().T.copy()
        reference.step(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for index, (parameter, twin) in enumerate(zip(model.parameters(), twins, strict=True)):
            np.testing.assert_array_equal(parameter.detach().numpy().T, twin.value)
            for state, values in reference.states.items():
                found = optimizer.state[parameter].get(state)
                assert (found is None) == (values[index] is None)
                assert found is None or np.array_equal(found.numpy().T, values[index])


def test_of_several_optimisers_one_counts():
    model = st.convert(feedforward(), "a-float32", quiet=True)
    others = [p for p in model.parameters() if p.dim() != 2]
    optimizers = st.Optimizer(muon(model.parameters()), model, counts=False), st.Optimizer(Lion(others), model)
    for _ in range(2):
        gradients(model, X)
        for optimizer in optimizers:
            optimizer.step()
    assert model.softnum_state[1] == 2


BAD = {
    "a Lion with options of its own": (
        lambda m: st.Optimizer(Lion(m.parameters(), cautious=True), m), ValueError, "got cautious",
    ),
    "a Lion whose decay is another": (
        lambda m: st.Optimizer(decoupled(m), m), ValueError, "got decoupled_weight_decay",
    ),
    "Muon with other steps": (
        lambda m: st.Optimizer(muon(m.parameters(), ns_steps=6), m), ValueError, "softnum's muon has ns_steps=5",
    ),
    "Muon with another rate": (
        lambda m: st.Optimizer(muon(m.parameters(), adjust_lr_fn="match_rms_adamw"), m), ValueError, "'original'",
    ),
    "a constant out of its range": (
        lambda m: st.Optimizer(Lion(m.parameters(), betas=(0.9, 1.0)), m), ValueError, "beta2 must lie in",
    ),
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
