"""Designs whose products Blackwell's block-scaled instructions compute."""

from __future__ import annotations

import numpy as np
import pytest

from softnum.train import Settings, load_design, run
from softnum.train.runs.loop import read_rows

PRODUCTS = ("forward", "backward_data", "backward_weight")
ROLES = """[roles]
input       = "mxfp8_e4m3"
weights     = "mxfp8_e4m3"
activations = "mxfp8_e4m3"
errors      = "mxfp8_e5m2"
"""


def losses_of(text, tmp_path, name):
    design = tmp_path / f"{name}.toml"
    design.write_text(text)
    settings = Settings(network_options={"sizes": (64, 6, 10)}, epochs=1, batch=338, evaluate_every=4)
    rows = read_rows(run(load_design(design), settings, seed=2, out=tmp_path))
    return [row["loss"] for row in rows if "loss" in row]


def test_a_design_trains_under_a_preset_and_under_the_kind(tmp_path):
    preset = "[units]\n" + "".join(f'{p} = "nvidia_tcgen05_mxf8f6f4"\n' for p in PRODUCTS)
    kind = (
        '{ kind = "block_fused", accumulator = "binary32", terms = 32, fraction_bits = 25, min_exponent = -133, '
        'overflow = "always_infinity" }'
    )
    stated = "[units]\n" + "".join(f"{p} = {kind}\n" for p in PRODUCTS)
    coarse = stated.replace("fraction_bits = 25", "fraction_bits = 3")
    found = {name: losses_of(ROLES + text, tmp_path, name) for name, text in
             (("preset", preset), ("stated", stated), ("coarse", coarse))}  # fmt: skip
    assert found["preset"] and found["preset"] == found["stated"] != found["coarse"]
    assert all(np.isfinite(losses).all() for losses in found.values())


def test_operands_of_other_formats_than_blocks(tmp_path):
    text = '[units]\nforward = { kind = "block_fused", accumulator = "binary32", terms = 32, fraction_bits = 25, '
    with pytest.raises(ValueError, match="kind 'block_fused' multiplies block formats, got"):
        losses_of(text + 'operand = "e4m3fn" }', tmp_path, "elements")
    with pytest.raises(ValueError, match="lanes: not an option of kind|unknown key|lanes"):
        losses_of(ROLES + text + "lanes = 2 }", tmp_path, "lanes")
