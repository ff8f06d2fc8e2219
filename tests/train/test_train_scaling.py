"""Loss scaling, skipped updates and clipped gradients."""

import itertools

import numpy as np
import pytest

import softnum as sn
from softnum.train import Numerics, Parameter, Settings, load_design, run
from softnum.train.designs.loss_scaling import LossScaling
from softnum.train.runs.loop import read_rows
from softnum.train.update.scaling import LossScaler, clip_gradients, gradients_overflow

SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=2, batch=128)  # ten iterations an epoch


def design_of(tmp_path, loss, roles='default = "binary32"\nweight_gradients = "binary16"'):
    file = tmp_path / "scaled.toml"
    file.write_text(f"[roles]\n{roles}\n[loss]\n{loss}\n")
    return load_design(file)


def parameters_of(*gradients, text='[roles]\ndefault = "binary32"\n', tmp_path):
    file = tmp_path / "design.toml"
    file.write_text(text)
    layer = Numerics(load_design(file), ["fc1"], seed=1).layer("fc1")
    parameters = []
    for gradient in gradients:
        parameters.append(Parameter(np.zeros(len(gradient), np.float32), layer, "p"))
        parameters[-1].gradient = np.float32(gradient)
    return parameters


def test_a_dynamic_scale_follows_the_rule():
    scaler = LossScaler(LossScaling(8.0, dynamic=True, growth=4.0, backoff=0.25, interval=3))
    seen = []
    for overflow in (False, False, True, False, False, False, False, False, False, True, True):
        scaler.update(overflow)
        seen.append((scaler.scale, scaler.good))
    assert seen == [
        (8.0, 1), (8.0, 2), (2.0, 0), (2.0, 1), (2.0, 2), (8.0, 0), (8.0, 1), (8.0, 2), (32.0, 0), (8.0, 0), (2.0, 0),
    ]  # fmt: skip


def test_a_dynamic_scale_stays_a_normal_number():
    scaler = LossScaler(LossScaling(1.0, dynamic=True, interval=1))
    for _ in range(300):
        scaler.update(False)
    assert scaler.scale == 2.0**127
    for _ in range(600):
        scaler.update(True)
    assert scaler.scale == 2.0**-126


def test_a_static_scale_never_changes():
    scaler = LossScaler(LossScaling(1000.0))
    scaler.update(True)
    assert (scaler.scale, scaler.skips) == (1000.0, False)
    assert LossScaler(LossScaling(1000.0, skip_overflow=True)).skips


def test_an_overflow_skips_the_update_and_lowers_the_scale(tmp_path, monkeypatch):
    """Weight gradients in binary16 overflow until the scale is small enough: the weights stay as they were."""
    from softnum.train.runs import loop

    text = 'default = "binary32"\nerrors = "e5m2"'
    design = design_of(tmp_path, 'scale = "dynamic"\ninitial = 67108864\ninterval = 5', text)
    seen = []

    class Watched(loop.Run):
        def train(self, iteration, samples):
            before = [parameter.value.copy() for parameter in self.network.parameters]
            row = super().train(iteration, samples)
            same = all(np.array_equal(p.value, b) for p, b in zip(self.network.parameters, before, strict=True))
            seen.append((same, self.optimisers["all"].steps))
            return row

    monkeypatch.setattr(loop, "Run", Watched)
    header, *rows = read_rows(run(design, SHORT, seed=1, out=tmp_path))
    skipped = [row.get("skipped", False) for row in rows]
    assert skipped[0] and not all(skipped[:15])
    assert [same for same, _ in seen] == skipped
    assert [steps for _, steps in seen] == np.cumsum(~np.array(skipped)).tolist()
    for before, after in itertools.pairwise(rows):
        if before.get("skipped"):
            assert after["loss_scale"] == before["loss_scale"] / 2
        else:
            assert after["loss_scale"] in (before["loss_scale"], before["loss_scale"] * 2)
    assert max(row["loss_scale"] for row in rows[8:]) > min(row["loss_scale"] for row in rows)  # it grew again
    assert header["config"]["design"]["loss"] == {
        "scale": "dynamic", "initial": 67108864.0, "growth": 2.0, "backoff": 0.5, "interval": 5,
    }  # fmt: skip


def test_a_static_scale_may_skip(tmp_path):
    design = design_of(tmp_path, "scale = 1e9\nskip_overflow = true", 'default = "binary32"\nerrors = "e5m2"')
    header, *rows = read_rows(run(design, SHORT, seed=1, out=tmp_path))
    assert all(row.get("skipped") for row in rows) and not any("loss_scale" in row for row in rows)
    assert rows[0]["loss"] is not None and rows[-1]["finished"]
    assert header["config"]["design"]["loss"] == {"scale": 1e9, "skip_overflow": True}


def test_a_dynamic_scale_of_powers_of_two_changes_nothing_in_wide_formats(tmp_path):
    losses = []
    for index, loss in enumerate(("scale = 1", 'scale = "dynamic"\ninitial = 1024\ninterval = 3')):
        design = design_of(tmp_path, loss, 'default = "binary32"')
        rows = read_rows(run(design, SHORT, seed=1, out=tmp_path / str(index)))
        losses.append([row["loss"] for row in rows[1:]])
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("roles", "what"),
    [
        ('default = "q4.4"', r"'errors' of layer 'fc1' \(q4.4, nearest_even, overflow by default\)"),
        ('default = "binary32"\nweight_gradients = { format = "e5m2", overflow = "saturate" }', "'weight_gradients'"),
        ('default = "binary32"\nerrors = { format = "e5m2", rounding = "toward_zero" }', "'errors' of layer 'fc1' .e5"),
        ('default = "binary32"\nerrors = "e2m1fn"', "'errors' of layer 'fc1' .e2m1fn"),
    ],
)  # fmt: skip
def test_a_dynamic_scale_that_could_see_nothing_is_refused(roles, what, tmp_path):
    design = design_of(tmp_path, 'scale = "dynamic"', roles)
    with pytest.raises(ValueError, match=f"loss.scale is dynamic and follows infinities and NaN .* role {what}"):
        run(design, SHORT, seed=1, out=tmp_path)


def test_clipping_by_norm_keeps_the_direction(tmp_path):
    first, second = parameters_of([3.0, 0.0], [-4.0], tmp_path=tmp_path)
    clip_gradients([first, second], norm=10.0)
    assert (first.gradient.tolist(), second.gradient.tolist()) == ([3.0, 0.0], [-4.0])
    clip_gradients([first, second], norm=1.25)
    assert (first.gradient.tolist(), second.gradient.tolist()) == ([0.75, 0.0], [-1.0])


def test_clipping_equals_pytorchs(tmp_path):
    torch = pytest.importorskip("torch")
    rng = np.random.Generator(np.random.Philox(1))
    gradients = [rng.standard_normal(50), 3 * rng.standard_normal(7)]
    for option, theirs in (
        ("norm", torch.nn.utils.clip_grad_norm_),
        ("value", torch.nn.utils.clip_grad_value_),
    ):
        ours = parameters_of(*gradients, tmp_path=tmp_path)
        tensors = [torch.zeros(len(g)) for g in gradients]
        for tensor, parameter in zip(tensors, ours, strict=True):
            tensor.grad = torch.tensor(parameter.gradient)
        theirs(tensors, 1.5)
        clip_gradients(ours, **{option: 1.5})
        for tensor, parameter in zip(tensors, ours, strict=True):
            np.testing.assert_allclose(parameter.gradient, tensor.grad.numpy(), rtol=2e-6)  # theirs adds 1e-6


def test_clipping_by_value(tmp_path):
    (parameter,) = parameters_of([0.5, -3.0, np.inf, 0.1], tmp_path=tmp_path)
    clip_gradients([parameter], value=0.5, norm=2.0)
    assert parameter.gradient.tolist() == [0.5, -0.5, 0.5, float(np.float32(0.1))]


def test_clipped_gradients_are_of_their_format(tmp_path):
    text = '[roles]\ndefault = "binary32"\nweight_gradients = { format = "e5m2", rounding = "stochastic" }\n'
    (parameter,) = parameters_of(np.linspace(-3, 3, 40), text=text, tmp_path=tmp_path)
    clip_gradients([parameter], value=2.9, norm=5.0)
    assert np.array_equal(sn.quantize(parameter.gradient, "e5m2"), parameter.gradient)
    assert 4 < np.linalg.norm(parameter.gradient) < 6


def test_what_is_not_finite_is_seen_and_reaches_the_gradients(tmp_path):
    for bad in (np.inf, -np.inf, np.nan):
        parameters = parameters_of([1.0], [2.0, bad], tmp_path=tmp_path)
        assert gradients_overflow(parameters) and not gradients_overflow(parameters[:1])
        clip_gradients(parameters, norm=1.0)
        assert np.isnan(parameters[1].gradient[1])
