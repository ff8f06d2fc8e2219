"""Roles of designs that state where the bits of their stochastic roundings come from."""

import json

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import PartKey, SourceKey
from softnum.train import Settings, load_design, run
from softnum.train.designs.design import RoleRounding
from softnum.train.engine.backend import NumpyBackend, role_key
from softnum.train.recipes import NVFP4Scaling

CASTS = "philox4x32-3@transformer_engine"
DESIGN = """
[roles]
default       = {{ format = "binary32" }}
master        = {{ format = "bfloat16" }}
update.weight = {{ format = "bfloat16", {how} }}
[units]
forward         = {{ kind = "mad", accumulator = "binary32" }}
backward_data   = {{ kind = "mad", accumulator = "binary32" }}
backward_weight = {{ kind = "mad", accumulator = "binary32" }}
"""


def design(tmp_path, how, name="own"):
    path = tmp_path / f"{name}.toml"
    path.write_text(f'name = "{name}"\n' + DESIGN.format(how=how))
    return path


def role(random, fmt="bfloat16", **options):
    return RoleRounding(sn.format(fmt), "stochastic", None, 8, random, **options)


@pytest.mark.parametrize("random", [CASTS, "lfsr32", "philox4x32-10/4"])
def test_roundings_take_the_roles_words(random):
    backend, rng = NumpyBackend(), np.random.default_rng(1)
    x, y = rng.standard_normal((2, 140, 150), dtype=np.float32)
    key = (9, 5 << 16 | 33)  # rounding 33 of iteration 5
    words = sn.Stream(9, 5 << 10 | 33 if random == CASTS else key[1]).words(x.shape, random=random)
    by_words = {"rounding": "stochastic", "stochastic_bits": 8, "random_bits": words}
    assert np.array_equal(backend.quantize(x, role(random), key), sn.quantize(x, "bfloat16", **by_words))
    moved = y.astype(np.float64) + np.float64(np.float32(-0.01)) * x  # exact
    assert np.array_equal(backend.axpy(-0.01, x, y, role(random), key), sn.quantize(moved, "bfloat16", **by_words))
    a, b = (sn.quantize(z, "bfloat16") for z in (x, y))
    added = backend.operate("add", (a, b), role(random), key)
    assert np.array_equal(added, sn.quantize(a.astype(np.float64) + b, "bfloat16", **by_words))
    scaled = role(random, "e2m1fn", scale=NVFP4Scaling(rounding="stochastic", stochastic_bits=8))
    made = backend.quantize_scaled(x[:, :144], scaled, -1, key)
    numbers, _ = NVFP4Scaling().scaled(x[:, :144])
    words = words if random == CASTS else SourceKey(role(random).random_source, key).words(numbers.shape)
    by_words["random_bits"] = words[:, :144]
    cut = np.clip(numbers, -6, 6)
    assert np.array_equal(made.elements, sn.quantize(cut, "e2m1fn", **by_words))


def test_casts_of_a_run_are_counted():
    """1024 in an iteration, each 1024 blocks of Philox from the one before; an evaluation's have others."""
    casts = role(CASTS)
    assert role_key(casts, (7, 5 << 16 | 33)).key == (7, 5 << 10 | 33)
    assert role_key(casts, (7, 1 << 63 | 5 << 16 | 33)).key == (7, 1 << 63 | 5 << 10 | 33)
    assert role_key(casts, PartKey(7, 5 << 16, 0, 1)).key == PartKey(7, 5 << 10, 0, 1)
    assert role_key(RoleRounding(sn.format("bfloat16")), (7, 3)) == (7, 3)
    assert role_key(role("philox4x32-10"), (7, 3)) == (7, 3)
    with pytest.raises(ValueError, match="an iteration has 1024 casts.*rounding 1024 of iteration 5"):
        role_key(casts, (7, 5 << 16 | 1024))


def test_runs_differ_by_the_source_alone(tmp_path):
    settings = Settings(network_options={"sizes": (64, 16, 10)}, epochs=1, batch=128, learning_rate=0.01)
    ways = {
        "default": 'rounding = "stochastic", stochastic_bits = 8',
        "named": 'rounding = "stochastic", stochastic_bits = 8, random = "philox4x32-10/1"',
        "casts": f'rounding = "stochastic", stochastic_bits = 8, random = "{CASTS}"',
        "lfsr": 'rounding = "stochastic", stochastic_bits = 8, random = "lfsr32"',
    }
    losses, facts = {}, {}
    for name, how in ways.items():
        made = load_design(design(tmp_path, how, name))
        facts[name] = made.layer("fc1").roles["update.weight"].describe()
        rows = run(made, settings, seed=1, out=tmp_path / "runs").read_text().splitlines()[1:]
        losses[name] = [json.loads(row).get("loss") for row in rows]
    assert losses["default"] == losses["named"]
    assert len({tuple(row) for row in losses.values()}) == 3
    assert [facts[name].get("random") for name in ways] == [None, None, CASTS, "lfsr32"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ('random = "lfsr32"', "update.weight.random: is of stochastic rounding, and the role's is 'nearest_even'"),
        ('rounding = "stochastic", random = "pcg"', "random must be 'philox4x32-10'.*got 'pcg'"),
        (f'rounding = "stochastic", random = "{CASTS}"', "gives 8 bits .*fewer than stochastic_bits=32"),
        ('rounding = "stochastic", random = "given"', "a run's key makes bits of, which 'given' is not"),
        ('rounding = "stochastic", random = "lfsr32@hart"', "which 'lfsr32@hart' is not"),
        ('rounding = "stochastic", random = 3', "got 3"),
    ],
)  # fmt: skip
def test_what_a_role_cannot_state(tmp_path, how, message):
    with pytest.raises(ValueError, match=message):
        load_design(design(tmp_path, how))
