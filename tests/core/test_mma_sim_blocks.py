"""Matrix instructions with block scales as MMA-Sim (arXiv 2511.10909) models them: its vectors, against the presets.

SOFTNUM_MMA_SIM_VECTORS names the folder: tests/support/mma_sim.py and mma_sim_blocks.py say what is in it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.reference import block_fused_dot
from tests.support import mma_sim, mma_sim_blocks

_FOLDER = os.environ.get("SOFTNUM_MMA_SIM_VECTORS")
_ENTRIES = mma_sim.manifest(Path(_FOLDER)) if _FOLDER else {}
_ENTRIES = {name: entry for name, entry in _ENTRIES.items() if name.startswith("nvmx_")}
SINGLE = sn.format("binary32")

pytestmark = pytest.mark.skipif(
    not _FOLDER, reason="SOFTNUM_MMA_SIM_VECTORS names no folder of vectors that microsoft/MMA-Sim computed"
)


def load(name):
    with np.load(Path(_FOLDER) / _ENTRIES[name]["file"]) as data:
        return {key: data[key] for key in data.files}


def units(name, disputed=None):
    """(preset, the unit) of each that answers an arithmetic, with its operand."""
    entry = _ENTRIES[name]
    for preset in mma_sim_blocks.presets(entry):
        unit = sn.unit(preset, disputed=disputed)
        assert (unit.terms, unit.fraction_bits) == (entry["K"], entry["fraction_bits"])
        yield preset, replace(unit, operand=mma_sim_blocks.operand(entry))


def rows_of(data, prefix="", at=slice(None)):
    return [data[f"{prefix}{key}"][at] for key in ("a", "b", "scale_a", "scale_b")]


def test_every_instruction_with_scales_has_a_preset():
    kinds = {instruction["kind"] for entry in _ENTRIES.values() for instruction in entry["instructions"]}
    assert kinds == {"mma.block_scale", "tcgen05.mma.block_scale"} and len(_ENTRIES) == 8
    answering = {preset for entry in _ENTRIES.values() for preset in mma_sim_blocks.presets(entry)}
    assert answering == {name for name in sn.units() if "_mxf" in name and name.startswith("nvidia_")}


@pytest.mark.parametrize("name", _ENTRIES)
def test_mma_sims_choices_give_all_its_rows(name, isa):
    data = load(name)
    assert len(data["d"]) == _ENTRIES[name]["rows"] and len(data["chain_d"]) == _ENTRIES[name]["chains"]
    for preset, unit in units(name, "mma-sim"):
        for defined in (False, True):
            got = mma_sim_blocks.product(unit, *rows_of(data), data["c"], return_stats=defined)
            wrong = np.flatnonzero(~mma_sim.same(got, data["d"], SINGLE))
            assert not wrong.size, f"{preset}: {wrong.size} of {len(got)} rows differ, first {wrong[:3]}"
        c = data["chain_c"]
        for step in range(4):
            at = (slice(None), step)
            d = mma_sim_blocks.product(unit, *rows_of(data, "chain_", at), c)
            assert mma_sim.same(d, data["chain_d"][at], SINGLE).all(), (preset, step)
            c = data["chain_d"][at]


@pytest.mark.parametrize("name", _ENTRIES)
def test_a_chain_is_one_sum(name):
    """Four instructions are four steps of one product, where a block does not reach over a step."""
    data = load(name)
    _, unit = next(units(name, "mma-sim"))
    long = [np.concatenate([part[:, step] for step in range(4)], axis=1) for part in rows_of(data, "chain_")]
    got = mma_sim_blocks.product(unit, *long, data["chain_c"])
    assert mma_sim.same(got, data["chain_d"][:, 3], SINGLE).all()


@pytest.mark.parametrize("name", _ENTRIES)
def test_the_reference_gives_them_too(name):
    data = load(name)
    _, u = next(units(name, "mma-sim"))
    for row in [*np.flatnonzero(data["zero_rule"])[:20], *range(0, len(data["d"]), 8)]:
        a, b, scale_a, scale_b = (part.tolist() for part in rows_of(data, at=row))
        code, _ = block_fused_dot(
            a, scale_a, b, scale_b, terms=u.terms, fraction_bits=u.fraction_bits, accumulator=u.accumulator,
            operand=u.operand, group=u.group, overflow=u.overflow, zero_exponent=u.zero_exponent, c=int(data["c"][row]),
        )  # fmt: skip
        assert mma_sim.same(np.array([code]), data["d"][row : row + 1], SINGLE).all()


@pytest.mark.parametrize("name", _ENTRIES)
def test_the_defaults_differ_where_the_choices_say_and_nowhere_else(name):
    """Without a least M, the presets' rows are those where zeros take no part; with it, only sums of small terms."""
    data = load(name)
    skipped = data.get("d_skip", data["d"])
    for preset, unit in units(name):
        got = mma_sim_blocks.product(replace(unit, min_exponent=None), *rows_of(data), data["c"])
        assert mma_sim.same(got, skipped, SINGLE).all(), preset
        assert int((~mma_sim.same(skipped, data["d"], SINGLE)).sum()) == int(np.count_nonzero(data["zero_rule"]))
        floored = mma_sim_blocks.product(unit, *rows_of(data), data["c"])
        changed = np.flatnonzero(~mma_sim.same(floored, skipped, SINGLE))
        if unit.min_exponent is None:
            assert not changed.size
        for row in changed:
            x, y = (
                sn.BlockArray(codes, scales, fmt).decode()
                for codes, scales, fmt in zip(
                    (data["a"][row], data["b"][row]), (data["scale_a"][row], data["scale_b"][row]), unit.operand,
                    strict=True,
                )
            )  # fmt: skip
            largest = max(np.abs(x * y).max(), abs(float(data["c"][row : row + 1].view(np.float32)[0])))
            assert largest < 2.0 ** (unit.min_exponent + 2)  # terms are not normalised
