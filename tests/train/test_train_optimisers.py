"""Optimisers: against their papers' formulas in plain NumPy, against PyTorch, and what each rounds."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import Numerics, Parameter, Settings, load_design, make_optimiser, run
from softnum.train.designs import OPTIMISER_ROLES, ROLES
from softnum.train.runs.loop import read_rows
from softnum.train.update.optimisers import OPTIMISERS

STEPS = 20
F32 = {name: float(np.float32(value)) for name, value in {"lr": 0.1, "mu": 0.9, "b1": 0.9, "b2": 0.999}.items()}
DECAY, TRUST, SMALL = (float(np.float32(value)) for value in (0.01, 0.02, 1e-8))
CASES = {
    "sgd": {"momentum": F32["mu"]},
    "sgd nesterov": {"momentum": F32["mu"], "nesterov": True},
    "lars": {"momentum": F32["mu"], "trust": TRUST},
    "adam": {"beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
    "adamw": {"beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
    "lamb": {"beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
}


def layer_of(tmp_path, text='[roles]\ndefault = "binary64"\n', seed=1):
    file = tmp_path / "design.toml"
    file.write_text(text)
    return Numerics(load_design(file), ["fc1"], seed=seed).layer("fc1")


def start():
    rng = np.random.Generator(np.random.Philox(3))
    return [rng.standard_normal((4, 3)), rng.standard_normal(3)]


def slopes(values, step):
    """Gradients of some function that is no sum of squares; one element is always 0."""
    gradients = [np.sin(3 * value + step) + 0.5 * value for value in values]
    gradients[0][0, 0] = 0.0
    return gradients


def ours(case, layer, steps=STEPS):
    parameters = [Parameter(layer.round("master", x), layer, f"p{i}") for i, x in enumerate(start())]
    optimiser = make_optimiser(case.split()[0], parameters, learning_rate=F32["lr"], weight_decay=DECAY, **CASES[case])
    for step in range(1, steps + 1):
        layer.numerics.begin(step)
        for parameter, gradient in zip(parameters, slopes([p.value for p in parameters], step), strict=True):
            parameter.gradient = layer.round("weight_gradients", gradient)
        optimiser.step()
    return parameters, optimiser


def paper(case):
    """The papers' formulas, written down once more."""
    values, lr, wd = start(), F32["lr"], DECAY
    first, second = ([np.zeros_like(x) for x in values] for _ in range(2))
    for t in range(1, STEPS + 1):
        for i, (w, g) in enumerate(zip(values, slopes(values, t), strict=True)):
            if case.startswith("sgd"):
                g = g + wd * w
                first[i] = F32["mu"] * first[i] + g
                values[i] = w - lr * (g + F32["mu"] * first[i] if "nesterov" in case else first[i])
                continue
            if case == "lars":
                norm, slope = np.linalg.norm(w), np.linalg.norm(g)
                local = TRUST * norm / (slope + wd * norm) if w.ndim > 1 else 1.0
                first[i] = F32["mu"] * first[i] + lr * local * (g + wd * w)
                values[i] = w - first[i]
                continue
            if case == "adam":
                g = g + wd * w
            first[i] = F32["b1"] * first[i] + (1 - F32["b1"]) * g
            second[i] = F32["b2"] * second[i] + (1 - F32["b2"]) * g**2
            direction = first[i] / (1 - F32["b1"] ** t) / (np.sqrt(second[i] / (1 - F32["b2"] ** t)) + SMALL)
            if case == "lamb":
                direction = direction + wd * w
                ratio = np.linalg.norm(w) / np.linalg.norm(direction) if w.ndim > 1 else 1.0
                values[i] = w - lr * ratio * direction
            else:
                values[i] = w - lr * direction - (lr * wd * w if case == "adamw" else 0)
    return values


@pytest.mark.parametrize("case", CASES)
def test_a_float64_design_follows_the_papers_formula(case, tmp_path):
    parameters, _ = ours(case, layer_of(tmp_path))
    for parameter, want in zip(parameters, paper(case), strict=True):
        assert parameter.value.dtype == np.float64
        np.testing.assert_allclose(parameter.value, want, rtol=0, atol=1e-10)


def test_a_fault_of_a_thousandth_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(CASES["adamw"], "beta2", float(np.float32(0.998)))
    parameters, _ = ours("adamw", layer_of(tmp_path))
    assert np.abs(parameters[0].value - paper("adamw")[0]).max() > 1e-6


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("lamb", "lars")])
def test_a_float64_design_follows_pytorch(case, tmp_path):
    torch = pytest.importorskip("torch")
    options = dict(CASES[case], lr=F32["lr"], weight_decay=DECAY)
    if "beta1" in options:
        options |= {"betas": (options.pop("beta1"), options.pop("beta2")), "eps": options.pop("epsilon")}
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    tensors = [torch.tensor(x, requires_grad=True) for x in start()]
    optimiser = kinds[case.split()[0]](tensors, **options)
    for step in range(1, STEPS + 1):
        gradients = slopes([t.detach().numpy() for t in tensors], step)
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = torch.tensor(gradient)
        optimiser.step()
    parameters, _ = ours(case, layer_of(tmp_path))
    for parameter, tensor in zip(parameters, tensors, strict=True):
        np.testing.assert_allclose(parameter.value, tensor.detach().numpy(), rtol=0, atol=1e-10)


STOCHASTIC = """
[roles]
default = "e6m9"
momentum = { format = "e5m2", rounding = "stochastic", stochastic_bits = 8 }
second_moment = { format = "bfloat16", rounding = "stochastic" }
update.step = "binary32"
update.norm = "bfloat16"
master = { format = "e5m4", rounding = "stochastic" }
"""


@pytest.mark.parametrize("case", CASES)
def test_states_and_parameters_are_values_of_their_roles(case, tmp_path):
    parameters, optimiser = ours(case, layer_of(tmp_path, STOCHASTIC))
    stored = {"velocity": "e5m2", "momentum": "e5m2", "second_moment": "bfloat16"}
    for name, arrays in optimiser.states.items():
        for array in arrays:
            assert array.dtype == np.float32 and array.any()
            assert np.array_equal(sn.quantize(array, stored[name]), array)
    for parameter in parameters:
        assert np.array_equal(sn.quantize(parameter.value, "e5m4"), parameter.value)
    again, _ = ours(case, layer_of(tmp_path, STOCHASTIC))
    other, _ = ours(case, layer_of(tmp_path, STOCHASTIC, seed=2))
    assert all(np.array_equal(a.value, b.value) for a, b in zip(parameters, again, strict=True))
    assert not all(np.array_equal(a.value, b.value) for a, b in zip(parameters, other, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_an_update_rounds_to_the_roles_that_its_class_names(case, tmp_path, monkeypatch):
    layer, seen = layer_of(tmp_path), set()
    key = type(layer)._key
    monkeypatch.setattr(type(layer), "_key", lambda self, place: (seen.add(place), key(self, place))[1])
    _, optimiser = ours(case, layer, steps=1)
    assert seen - {"master", "momentum", "weight_gradients", "update.decay", "update.momentum", "update.weight"} == set(
        optimiser.roles
    )
    assert set(optimiser.roles) <= set(OPTIMISER_ROLES) <= set(ROLES)


def test_no_master_copy(tmp_path):
    text = '[roles]\ndefault = "binary32"\nweights = { format = "e5m2", rounding = "stochastic" }\nmaster = "none"\n'
    text += '[layers."fc2".roles]\nweights = "e4m3"\n'
    file = tmp_path / "bare.toml"
    file.write_text(text)
    design = load_design(file)
    assert design.layer("fc1").roles["master"] == design.layer("fc1").roles["weights"]
    assert design.layer("fc2").roles["master"].format == sn.format("e4m3")
    parameters, _ = ours("adamw", Numerics(design, ["fc1", "fc2"], seed=1).layer("fc1"))
    assert all(np.array_equal(sn.quantize(p.value, "e5m2"), p.value) for p in parameters)
    facts = design.describe(["fc1", "fc2"])["layers"]["fc1"]["roles"]["master"]
    assert facts == {"format": "e5m2", "bits": 8, "rounding": "stochastic", "stochastic_bits": 32}


def test_norms_do_not_overflow_and_have_an_order():
    from softnum.train.engine.backend import NumpyBackend

    backend = NumpyBackend(np.float64)
    assert backend.norm([np.array([3e300, 4e300])]) == 5e300
    assert backend.norm([np.array([3e-320]), np.array([[4e-320]])]) == 5e-320
    assert backend.norm([np.array([0.0, -0.0]), np.zeros(0)]) == 0.0 == backend.norm([])
    assert np.isnan(backend.norm([np.array([np.inf, np.nan])])) and backend.norm([np.array([-np.inf])]) == np.inf
    small = np.full(2**12, 2.0**-28)  # after 0.5, each square is lost; before it, none is
    assert backend.norm([np.array([1.0]), np.concatenate([[0.5], small])]) < backend.norm(
        [np.array([1.0]), np.concatenate([small, [0.5]])]
    )


def test_a_division_without_a_result_names_the_role(tmp_path):
    layer = layer_of(tmp_path, '[roles]\ndefault = "q4.4"\n')  # epsilon is 0 there, and so is a small square
    parameter = Parameter(np.zeros((2, 2), np.float32), layer, "w")
    parameter.gradient = np.full((2, 2), 0.0625, np.float32)
    with pytest.raises(
        ValueError, match=r"divide: .* q4.4 has no code for it \(layer 'fc1', role 'update.step'\); give"
    ):
        make_optimiser("adam", [parameter]).step()


def test_a_norm_of_zero_leaves_the_rate_alone(tmp_path):
    for name in ("lamb", "lars"):
        layer = layer_of(tmp_path, '[roles]\ndefault = "binary32"\n')
        parameter = Parameter(np.zeros((2, 2), np.float32), layer, "w")
        parameter.gradient = np.full((2, 2), 0.5, np.float32)
        make_optimiser(name, [parameter], learning_rate=0.25, weight_decay=0.0).step()
        assert np.allclose(parameter.value, -0.25 if name == "lamb" else -0.125, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("adm", {}, r"no optimiser is called 'adm'; did you mean 'adam'\? \(optimisers: sgd, adam, "),
        ("adam", {"momentum": 0.9}, r"adam has no momentum \(it has learning_rate, .*; sgd, lars have it"),
        ("sgd", {"trust": 0.1}, "sgd has no trust .*; lars has it"),
        ("sgd", {"nesterov": True, "momentum": 0.0}, "nesterov looks ahead along the momentum, which is 0"),
        ("adam", {"beta1": 1.0}, r"beta1 must lie in \[0, 1\), got 1.0"),
        ("adam", {"beta2": 0.99999999999}, "beta2 is used in binary32, where 0.99999999999 becomes 1.0"),
        ("adam", {"epsilon": 0.0}, "epsilon must be positive, got 0.0"),
        ("adam", {"epsilon": 1e-60}, "epsilon is used in binary32, where 1e-60 becomes 0.0"),
        ("lars", {"trust": -1.0}, "trust must be positive, got -1.0"),
        ("adam", {"learning_rate": "0.1"}, "learning_rate must be positive, got '0.1'"),
    ],
)
def test_unusable_constants_are_named(name, constants, message):
    with pytest.raises(ValueError, match=message):
        make_optimiser(name, [], **constants)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_trains(name, tmp_path):
    rate = {"adam": 0.01, "adamw": 0.01, "lamb": 0.02, "lars": 0.1}.get(name)
    settings = Settings(
        network_options={"sizes": (64, 16, 10)}, epochs=3, batch=32, optimiser=name, learning_rate=rate,
        trust=0.05 if name == "lars" else None,
    )  # fmt: skip
    header, *rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.7 and rows[-1]["loss"] < rows[0]["loss"] / 2
    assert header["config"]["optimiser"]["name"] == name
    listed = header["config"]["design"]["layers"]["fc1"]["roles"]
    assert set(listed) & set(OPTIMISER_ROLES) == set(OPTIMISERS[name].roles)
