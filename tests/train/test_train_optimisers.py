"""Optimisers: against their papers' formulas in plain NumPy, against PyTorch, and what each rounds."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import (
    Numerics,
    Parameter,
    Settings,
    explain,
    load_design,
    make_network,
    make_optimiser,
    run,
    workload,
)
from softnum.train.designs import OPTIMISER_ROLES, ROLES
from softnum.train.engine.backend import NumpyBackend
from softnum.train.runs.loop import read_rows
from softnum.train.update.optimisers import OPTIMISERS
from softnum.tta import memory_of
from tests.support.train_cases import interrupted

STEPS = 20
F32 = {
    name: float(np.float32(value)) for name, value in {"lr": 0.1, "mu": 0.9, "b1": 0.9, "b2": 0.999, "ar": 0.02}.items()
}
DECAY, TRUST, SMALL = (float(np.float32(value)) for value in (0.01, 0.02, 1e-8))
CASES = {
    "sgd": {"momentum": F32["mu"]},
    "sgd nesterov": {"momentum": F32["mu"], "nesterov": True},
    "lars": {"momentum": F32["mu"], "trust": TRUST},
    "adam": {"beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
    "adamw": {"beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
    "lamb": {"beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
    "lion": {"beta1": F32["b1"], "beta2": F32["b2"]},
    "muon": {"momentum": F32["mu"], "adam_rate": F32["ar"], "beta1": F32["b1"], "beta2": F32["b2"], "epsilon": SMALL},
}


WIDE = '[units]\nupdate = { accumulator = "binary64" }\n[roles]\ndefault = "binary64"\n'


def layer_of(tmp_path, text=WIDE, seed=1):
    file = tmp_path / "design.toml"
    file.write_text(text)
    return Numerics(load_design(file), ["fc1", "fc2"], seed=seed).layer("fc1")  # not the last, which Muon leaves alone


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
            if case == "lion":
                values[i] = w - lr * (np.sign(F32["b1"] * first[i] + (1 - F32["b1"]) * g) + wd * w)
                first[i] = F32["b2"] * first[i] + (1 - F32["b2"]) * g
                continue
            if case == "muon" and w.ndim > 1:
                first[i] = F32["mu"] * first[i] + g
                direction = newton_schulz((g + F32["mu"] * first[i]).T).T  # as PyTorch lays matrices: outputs x inputs
                values[i] = w - lr * wd * w - lr * max(1.0, w.shape[1] / w.shape[0]) ** 0.5 * direction
                continue
            lr = F32["ar"] if case == "muon" else F32["lr"]
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
                values[i] = w - lr * direction - (lr * wd * w if case in ("adamw", "muon") else 0)
            lr = F32["lr"]
    return values


def newton_schulz(x):
    """The published steps, of an outputs x inputs matrix."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = x / (np.linalg.norm(x) + 1e-7)
    tall = len(x) > x.shape[1]
    x = x.T if tall else x
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


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


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("lamb", "lars", "lion", "muon")])
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


def test_muon_follows_pytorch_as_far_as_that_is_precise(tmp_path):
    """PyTorch's five steps are in bfloat16; its momentum is a mean, which differs by a factor that the steps drop."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this PyTorch has no Muon")
    tensor = torch.tensor(np.float32(start()[0].T), requires_grad=True)  # outputs x inputs
    optimiser = torch.optim.Muon([tensor], lr=F32["lr"], weight_decay=DECAY, momentum=F32["mu"])
    layer = layer_of(tmp_path, "[roles]\n")
    parameter = Parameter(np.float32(start()[0]), layer, "w")
    mine = make_optimiser("muon", [parameter], learning_rate=F32["lr"], weight_decay=DECAY, momentum=F32["mu"])
    for step in range(1, 6):
        layer.numerics.begin(step)
        gradient = np.float32(slopes([parameter.value], step)[0])
        parameter.gradient, tensor.grad = gradient, torch.tensor(gradient.T)
        mine.step()
        optimiser.step()
        np.testing.assert_allclose(parameter.value, tensor.detach().numpy().T, rtol=0, atol=0.004 * step)


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
    for name in optimiser.states:
        for _, array in optimiser.arrays_of(name):
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
    common = {"master", "momentum", "weight_gradients", "update.decay", "update.momentum", "update.weight"}
    assert seen - common - {"update"} == set(optimiser.roles) and ("update" in seen) == optimiser.multiplies
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
        ("adam", {"momentum": 0.9}, r"adam has no momentum \(it has learning_rate, .*; sgd, lars, muon have it"),
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
    rate = {"adam": 0.01, "adamw": 0.01, "lamb": 0.02, "lars": 0.1, "lion": 0.003}.get(name)
    settings = Settings(
        network_options={"sizes": (64, 16, 10)}, epochs=3, batch=32, optimiser=name, learning_rate=rate,
        trust=0.05 if name == "lars" else None, adam_rate=0.01 if name == "muon" else None,
    )  # fmt: skip
    header, *rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.7 and rows[-1]["loss"] < rows[0]["loss"] / 2
    assert header["config"]["optimiser"]["name"] == name
    listed = header["config"]["design"]["layers"]["fc1"]["roles"]
    assert set(listed) & set(OPTIMISER_ROLES) == set(OPTIMISERS[name].roles)


# -- bit for bit -------------------------------------------------------------------------------------------------------
NARROW = """
[roles]
default = "binary32"
weight_gradients = "e6m9"
momentum = "e5m10"
master = "e6m9"
update.decay = "e6m9"
update.momentum = "e5m10"
update.step = "bfloat16"
update.norm = "e6m9"
update.weight = "e6m9"
[units]
update = { accumulator = "e6m9" }
"""


def once(fmt, operation, *operands):
    """One of softnum's operations on numbers in binary32, rounded once to a format."""
    codes = [sn.encode(np.float32(x), "binary32") for x in operands]
    return sn.decode(getattr(sn.ops, operation)(*codes, ("binary32",) * len(codes), out_fmt=fmt), fmt, np.float32)


def steps_of(name, layer, value, **constants):
    """An optimiser of one parameter, and its gradients, of three steps."""
    parameter = Parameter(layer.round("master", value), layer, "w")
    optimiser = make_optimiser(name, [parameter], **constants)
    for step in range(1, 4):
        layer.numerics.begin(step)
        parameter.gradient = layer.round("weight_gradients", slopes([np.float64(parameter.value)], step)[0])
        yield parameter, optimiser


def test_lion_is_its_definition(tmp_path):
    layer, (value, _) = layer_of(tmp_path, NARROW), start()
    w, m = sn.quantize(np.float32(value), "e6m9"), np.zeros((4, 3), np.float32)
    for parameter, optimiser in steps_of("lion", layer, value, learning_rate=0.01, weight_decay=0.1):
        g = parameter.gradient
        rate, decay, b1, b2 = (float(np.float32(x)) for x in (0.01, 0.1, 0.9, 0.99))
        decayed = once("e6m9", "fma", -(rate * decay), w, w)
        c = once("bfloat16", "fma", b1, m, once("bfloat16", "multiply", 1 - b1, g))
        w = once("e6m9", "fma", -rate, np.sign(c), decayed)
        m = once("e5m10", "fma", b2, m, once("e5m10", "multiply", 1 - b2, g))
        optimiser.step()
        assert np.array_equal(parameter.value, w) and np.array_equal(optimiser.states["momentum"][0], m)
    assert c.any() and not np.array_equal(w, decayed)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 2, 2, 1)])
def test_muon_is_its_definition(shape, tmp_path):
    layer, value = layer_of(tmp_path, NARROW), start()[0].reshape(shape)
    w, v = sn.quantize(np.float32(value), "e6m9"), np.zeros(shape, np.float32)
    unit = sn.MadUnit("e6m9", operand="bfloat16")

    def product(a, b):
        return sn.quantize(sn.matmul(a, b, unit), "bfloat16")

    for parameter, optimiser in steps_of("muon", layer, value, learning_rate=0.01, weight_decay=0.1):
        g = parameter.gradient
        rate, decay, mu = (float(np.float32(x)) for x in (0.01, 0.1, 0.95))
        decayed = once("e6m9", "fma", -(rate * decay), w, w)
        v = once("e5m10", "fma", mu, v, g)
        u = once("bfloat16", "fma", mu, v, g).reshape(shape[0], -1)
        tall = u.shape[0] > u.shape[1]
        x = np.ascontiguousarray(u.T) if tall else u
        norm = sn.quantize(np.float32(np.sqrt(np.float64(x) ** 2 @ np.ones(x.shape[1]) @ np.ones(len(x)))), "e6m9")
        x = once("bfloat16", "divide", x, once("e6m9", "add", norm, 1e-7))
        for _ in range(5):
            gram = product(x, np.ascontiguousarray(x.T))
            mixed = once("bfloat16", "fma", 2.0315, product(gram, gram), once("bfloat16", "multiply", -4.7750, gram))
            x = once("bfloat16", "fma", 3.4445, x, product(mixed, x))
        x = (x.T if tall else x).reshape(shape)
        outputs, inputs = (shape[1], shape[0]) if len(shape) == 2 else (shape[0], int(np.prod(shape[1:])))
        w = once("e6m9", "fma", -(rate * np.sqrt(max(1.0, outputs / inputs))), x, decayed)
        optimiser.step()
        assert np.array_equal(parameter.value, w) and np.array_equal(optimiser.states["momentum"][0], v)
    assert optimiser.states["second_moment"] == [None]


def test_muon_takes_the_matrices_between_embedding_and_last_layer(tmp_path):
    net = make_network("transformer-lm", depth=1, tied_embeddings=True, words=5, steps=3)
    for tied in (False, True):
        net = make_network("transformer-lm", depth=1, tied_embeddings=tied, words=5, steps=3)
        net.initialise(Numerics(load_design("a-float32"), net.layer_names, seed=1, looked_up=net.looked_up))
        optimiser = make_optimiser("muon", net.parameters)
        adam = {parameter.name for parameter, _ in optimiser.arrays_of("second_moment")}
        matrices = {parameter.name for parameter in net.parameters} - adam
        assert matrices == {f"block1.{name}.weight" for name in ("qkv", "project", "ff1", "ff2")}


def test_muons_products_are_of_a_stated_unit(tmp_path):
    stated = layer_of(tmp_path, NARROW)
    assert stated.design.update_unit == sn.MadUnit("e6m9", operand="bfloat16")
    bare = layer_of(tmp_path, '[roles]\nupdate.step = "bfloat16"\n')
    assert bare.design.update_unit == sn.MadUnit("binary32", operand="bfloat16")
    follows = layer_of(tmp_path, '[units]\nupdate = { accumulator = "binary32", operand = "e4m3fn" }\n')
    assert str(follows.format("update.step")) == "e4m3fn"
    described = stated.design.describe(update=True)["units"]
    assert described["update"]["accumulator"] == "e6m9" and "update" not in stated.design.describe()["units"]
    with pytest.raises(
        ValueError, match="units.update takes operands e4m3fn, which do not hold every value of role 'up"
    ):
        layer_of(tmp_path, '[roles]\nupdate.step = "bfloat16"\n[units]\nupdate = "nvidia_h100_e4m3"\n')


def test_a_sign_keeps_a_nan():
    x = NumpyBackend().sign(np.float32([-2.0, -0.0, 0.0, 1e-45, np.inf, np.nan]))
    assert np.array_equal(x, np.float32([-1, 0, 0, 1, 1, np.nan]), equal_nan=True) and not np.signbit(x[1])


# -- compensated updates -----------------------------------------------------------------------------------------------
COMPENSATED = """
[roles]
default = "bfloat16"
compensation = "e8m5"
"""


@pytest.mark.parametrize("case", CASES)
def test_a_compensated_float64_update_follows_the_papers_formula(case, tmp_path):
    parameters, optimiser = ours(case, layer_of(tmp_path, WIDE + 'compensation = "binary64"\n'))
    for parameter, want in zip(parameters, paper(case), strict=True):
        np.testing.assert_allclose(parameter.value, want, rtol=0, atol=1e-10)
    assert any(array.any() for _, array in optimiser.arrays_of("compensation"))


@pytest.mark.parametrize("name", ["sgd", "lion"])
def test_a_compensated_update_is_its_definition(name, tmp_path):
    layer, (value, _) = layer_of(tmp_path, COMPENSATED), start()
    constants = {"learning_rate": 0.001, "weight_decay": 0.1} | ({"momentum": 0.0} if name == "sgd" else {})
    w, c = sn.quantize(np.float32(value), "bfloat16"), np.zeros((4, 3), np.float32)
    m, fmt = np.zeros((4, 3), np.float32), "bfloat16"
    rate, decay = (float(np.float32(x)) for x in (0.001, 0.1))
    for parameter, optimiser in steps_of(name, layer, value, **constants):
        g = parameter.gradient
        if name == "sgd":
            u = once(fmt, "multiply", -rate, once(fmt, "fma", decay, w, g))
        else:
            b1, b2 = (float(np.float32(x)) for x in (0.9, 0.99))
            mean = once(fmt, "fma", b1, m, once(fmt, "multiply", 1 - b1, g))
            m = once(fmt, "fma", b2, m, once(fmt, "multiply", 1 - b2, g))
            u = once(fmt, "fma", -rate, np.sign(mean), once(fmt, "multiply", -(rate * decay), w))
        y = once(fmt, "subtract", u, c)
        new = once(fmt, "add", w, y)
        c = once("e8m5", "subtract", once("e8m5", "subtract", new, w), y)
        w = new
        optimiser.step()
        assert np.array_equal(parameter.value, w) and np.array_equal(optimiser.states["compensation"][0], c)
    assert c.any()


def test_small_updates_are_not_lost(tmp_path):
    """A hundred steps of 2**-10 from 1, of which bfloat16 alone loses each."""
    for text, want in (("", 1.0), ('compensation = "bfloat16"\n', 1.0 + 100 * 2.0**-10)):
        layer = layer_of(tmp_path, f'[roles]\ndefault = "bfloat16"\n{text}')
        parameter = Parameter(np.float32([1.0]), layer, "w")
        parameter.gradient = np.float32([-(2.0**-10)])
        optimiser = make_optimiser("sgd", [parameter], learning_rate=1.0, momentum=0.0, weight_decay=0.0)
        for _ in range(100):
            optimiser.step()
        assert abs(parameter.value[0] - want) <= 2.0**-8


def test_a_compensation_is_only_where_it_is_stated(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[roles]\ncompensation = "bfloat16"\n[layers.fc2.roles]\ncompensation = "none"\n')
    design = load_design(file)
    numerics = Numerics(design, ["fc1", "fc2"], seed=1)
    parameters = [Parameter(np.float32([1.0]), numerics.layer(name), name) for name in ("fc1", "fc2")]
    optimiser = make_optimiser("sgd", parameters)
    assert [parameter.name for parameter, _ in optimiser.arrays_of("compensation")] == ["fc1"]
    layers = design.describe(["fc1", "fc2"])["layers"]
    assert layers["fc1"]["roles"]["compensation"]["format"] == "bfloat16"
    assert "compensation" not in layers["fc2"]["roles"]
    assert "compensation" not in layer_of(tmp_path).design.roles
    file.write_text('[roles]\ncompensation = "mxfp8_e4m3"\n')
    with pytest.raises(ValueError, match="roles.compensation.format: 'mxfp8_e4m3' is a block format"):
        load_design(file)


# -- states in blocks --------------------------------------------------------------------------------------------------
BLOCKS = """
[roles]
momentum = { format = "mxint8", scale_rule = "rceil" }
second_moment = { format = "states.py:by_five", rounding = "stochastic", stochastic_bits = 8 }
"""
STATES = 'import softnum as sn\nby_five = sn.BlockFormat("e4m3fn", "binary32", 5)\n'


def blocks_of(tmp_path, text=BLOCKS, names=("fc1", "fc2"), **options):
    (tmp_path / "states.py").write_text(STATES)
    (tmp_path / "bare.py").write_text('import softnum as sn\nbare = sn.BlockFormat("e4m3fn", "e2m1fn", 2)\n')
    (tmp_path / "blocks.toml").write_text(text)
    return Numerics(load_design(tmp_path / "blocks.toml"), list(names), seed=1, **options).layer(names[0])


def test_states_in_blocks_are_rounded_along_all_elements_in_their_order(tmp_path, monkeypatch):
    layer, (value, _), keys, flat = blocks_of(tmp_path), start(), [], NumpyBackend.quantize_flat

    def watched(self, x, role, key):
        keys.append(key)
        return flat(self, x, role, key)

    monkeypatch.setattr(NumpyBackend, "quantize_flat", watched)
    by_five = sn.BlockFormat("e4m3fn", "binary32", 5)
    w, m, v = np.float32(value), *np.zeros((2, 4, 3))
    wide = lambda x: sn.encode(np.float64(x), "binary64")  # noqa: E731

    def single(operation, *operands):
        codes, formats = [wide(x) for x in operands], ("binary64",) * len(operands)
        return sn.decode(getattr(sn.ops, operation)(*codes, formats, out_fmt="binary32"), "binary32")

    for step, (parameter, optimiser) in enumerate(steps_of("adam", layer, value, learning_rate=0.01), start=1):
        g, (rate, b1, b2) = parameter.gradient, (float(np.float32(x)) for x in (0.01, 0.9, 0.999))
        assert parameter.backend.dtype == np.float64  # an element times a scale in binary32 has up to 28 bits
        keys.clear()
        optimiser.step()
        m = single("fma", b1, m, single("multiply", 1 - b1, g))
        m = sn.quantize(m.reshape(-1), "mxint8", scale_rule="rceil").reshape(4, 3)
        v = single("fma", b2, v, single("multiply", 1 - b2, single("multiply", g, g)))
        random = {"rounding": "stochastic", "stochastic_bits": 8, "key": keys[1]}
        v = sn.quantize(v.reshape(-1), by_five, **random).reshape(4, 3)
        assert np.array_equal(optimiser.states["momentum"][0], m) and np.array_equal(
            optimiser.states["second_moment"][0], v
        )
        root = np.sqrt(1 - b2**step)
        deviation = single("add", single("sqrt", v), float(np.float32(1e-8)) * root)
        direction = single("divide", m, deviation)
        w = single("fma", -(rate * (root / (1 - b1**step))), direction, w)
        np.testing.assert_allclose(parameter.value, w, rtol=1e-7)
    assert len(keys) == 2 and m.any() and v.any()


def test_states_in_blocks_of_embeddings_keep_their_blocks(tmp_path):
    layer = blocks_of(tmp_path, looked_up={"fc1"})
    assert layer.design.roles["momentum"].block and layer.design.roles["second_moment"].block
    facts = layer.design.describe()["roles"]
    assert facts["momentum"]["format"] == "mxint8" and facts["momentum"]["scale_rule"] == "rceil"


def test_other_roles_of_an_update_take_no_blocks(tmp_path):
    for role in ("update.momentum", "update.second_moment", "master", "weight_gradients"):
        with pytest.raises(
            ValueError, match=r"is a block format, .* an optimiser's state \(roles momentum, second_moment"
        ):
            layer_of(tmp_path, f'[roles]\n{role} = "mxfp8_e4m3"\n')


def test_an_infinity_makes_its_block_nan(tmp_path):
    layer = blocks_of(tmp_path, '[roles]\nmomentum = "states.py:by_five"\n')
    parameter = Parameter(np.zeros((2, 4)), layer, "w")
    parameter.gradient = np.where(np.arange(8) == 4, np.inf, 1.0).reshape(2, 4)
    optimiser = make_optimiser("sgd", [parameter])
    optimiser.step()
    assert np.isnan(optimiser.states["velocity"][0].ravel()).tolist() == [True] * 5 + [False] * 3


def test_scales_without_nan_name_the_role(tmp_path):
    layer = blocks_of(tmp_path, '[roles]\nmomentum = "bare.py:bare"\n')
    parameter = Parameter(np.zeros(3), layer, "w")
    parameter.gradient = np.array([np.inf, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"\(layer 'fc1', role 'momentum'\); give the role scales with NaN"):
        make_optimiser("sgd", [parameter]).step()


@pytest.mark.parametrize("name", ["adam", "muon", "sgd"])
def test_a_run_with_blocks_and_compensation_goes_on_as_it_was(name, tmp_path):
    blocks_of(tmp_path, BLOCKS + 'compensation = "e8m5"\nmaster = "bfloat16"\nupdate.weight = "bfloat16"\n')
    settings = Settings(
        network_options={"sizes": (64, 16, 10)}, epochs=2, batch=169, optimiser=name, learning_rate=0.01,
        evaluate_every=4,
    )  # fmt: skip
    path = interrupted(load_design(tmp_path / "blocks.toml"), settings, tmp_path, at=12, statistics=5)
    header, *rows = read_rows(path)
    roles = header["config"]["design"]["layers"]["fc1"]["roles"]
    assert roles["momentum"]["format"] == "mxint8" and roles["compensation"]["format"] == "e8m5"
    assert ("update" in header["config"]["design"]["layers"]["fc1"]["units"]) == (name == "muon")
    assert rows[-1]["loss"] < rows[0]["loss"]
    statistics = path.with_name("seed-1.statistics.jsonl").read_text()
    assert '"role": "momentum", "format": "mxint8"' in statistics and '"role": "compensation"' in statistics


@pytest.mark.parametrize("name", ["lion", "muon", "adamw"])
def test_new_updates_are_explained_and_counted(name, tmp_path):
    blocks_of(tmp_path, BLOCKS + 'compensation = "e8m5"\n')
    design = load_design(tmp_path / "blocks.toml")
    settings = Settings(network_options={"sizes": (64, 16, 10)}, batch=8, optimiser=name)
    steps = explain(settings, design).steps
    stored = [step for step in steps if step.role == "momentum"]
    assert {(step.operation, step.format) for step in stored} == {("round", "mxint8")} and len(stored) == 4
    products = [step for step in steps if step.role == "update"]
    assert len(products) == (15 if name == "muon" else 0)
    work = workload(settings, design)
    assert {operation.kind for operation in work.operations if operation.stage == "update"} == {name}
    states = {tensor.name: tensor.bits for tensor in work.tensors if tensor.tensor_class == "optimiser_state"}
    assert states["weight momentum"] == 8.25 and states["bias compensation"] == 14
    assert memory_of(work).peak > 0
