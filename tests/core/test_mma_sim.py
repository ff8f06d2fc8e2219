"""Matrix instructions as MMA-Sim (arXiv 2511.10909) models them: vectors that it computed, against the presets.

SOFTNUM_MMA_SIM_VECTORS names the folder: tests/support/mma_sim.py says what is in it.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.engines import definition_of
from softnum.reference import fused_dot, mad_dot, two_stage_dot
from tests.support import mma_sim

_FOLDER = os.environ.get("SOFTNUM_MMA_SIM_VECTORS")
_ENTRIES = mma_sim.manifest(Path(_FOLDER)) if _FOLDER else {}
_ANSWERED = {name: mma_sim.presets(entry) for name, entry in _ENTRIES.items() if mma_sim.presets(entry)}

pytestmark = pytest.mark.skipif(
    not _FOLDER, reason="SOFTNUM_MMA_SIM_VECTORS names no folder of vectors that microsoft/MMA-Sim computed"
)


def load(name):
    with np.load(Path(_FOLDER) / _ENTRIES[name]["file"]) as data:
        return {key: data[key] for key in data.files}


def by_definition(unit, entry, a, b, c):
    """Codes of many sums by the definition; patterns as the files have them."""
    a, b, c = (mma_sim.codes(x, entry[kind]) for x, kind in ((a, "a"), (b, "b"), (c, "c")))
    if entry["c"] != entry["d"]:  # C is converted first
        c = sn.convert(c, mma_sim.FORMATS[entry["c"]], unit.accumulator)
    out = np.empty(len(a), np.uint64)
    definition_of(unit).run_each(*(np.ascontiguousarray(x, np.uint64) for x in (a, b, c)), out, None)
    return out.astype(unit.result.storage_dtype)


def by_matmul(unit, entry, a, b, c):
    dtype = np.float64 if entry["d"] == "f64" else np.float32
    a, b, c = (
        sn.decode(mma_sim.codes(x, entry[kind]), mma_sim.FORMATS[entry[kind]], dtype)
        for x, kind in ((a, "a"), (b, "b"), (c, "c"))
    )
    return sn.encode(sn.matmul(a[:, None, :], b[:, :, None], unit, c[:, None, None])[:, 0, 0], unit.result)


def by_reference(unit, a, b, c) -> int:
    common = {"accumulator": unit.accumulator, "operand": unit.operand, "overflow": unit.overflow, "c": c}
    if isinstance(unit, sn.MadUnit):
        return mad_dot(
            a, b, lanes=unit.lanes, chunk=unit.chunk, reduction=unit.reduction, flush_inputs=unit.flush_inputs,
            flush_results=unit.flush_results, **common,
        )[0]  # fmt: skip
    if isinstance(unit, sn.TwoStageDotUnit):
        return two_stage_dot(
            a, b, terms=unit.terms, fraction_bits=unit.fraction_bits, sum_fraction_bits=unit.sum_fraction_bits,
            c_fraction_bits=unit.c_fraction_bits, interleave=unit.interleave, alignment=unit.alignment,
            c_reach=unit.c_reach, product_limit=unit.product_limit, zero_exponent=unit.zero_exponent, **common,
        )[0]  # fmt: skip
    return fused_dot(
        a, b, terms=unit.terms, fraction_bits=unit.fraction_bits, output_rounding=unit.output_rounding,
        truncate_fraction=unit.truncate_fraction, zero_exponent=unit.zero_exponent, **common,
    )[0]  # fmt: skip


def test_the_files_are_those_of_the_manifest():
    rows = chains = 0
    for name, entry in _ENTRIES.items():
        content = (Path(_FOLDER) / entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"], name
        data = load(name)
        assert len(data["d"]) == entry["rows"] and len(data.get("chain_d", ())) == entry["chains"]
        rows, chains = rows + entry["rows"], chains + entry["chains"]
    families = Counter(name.split("_")[0] for name in _ENTRIES)
    answered = Counter(name.split("_")[0] for name in _ANSWERED)
    there = ("nv", "fma", "cdna1", "cdna2", "cdna3")
    assert answered == {name: families[name] for name in there}, "say here which families have presets"
    assert sum(_ENTRIES[name]["rows"] for name in _ANSWERED) > rows // 2 and chains > 0


@pytest.mark.parametrize("name", _ANSWERED)
def test_mma_sims_choices_give_all_its_rows(name, isa):
    entry, data = _ENTRIES[name], load(name)
    for preset in _ANSWERED[name]:
        unit = mma_sim.unit_of(preset, entry, "mma-sim")
        for how in (by_definition, by_matmul):
            got = how(unit, entry, data["a"], data["b"], data["c"])
            wrong = np.flatnonzero(~mma_sim.same(got, data["d"], unit.result))
            assert not wrong.size, (
                f"{preset}, {how.__name__}: {wrong.size} of {len(got)} rows differ, first {wrong[:3]}"
            )
        c = data.get("chain_c")
        for step in range(4 if entry["chains"] else 0):
            d = by_matmul(unit, entry, data["chain_a"][:, step], data["chain_b"][:, step], c)
            assert mma_sim.same(d, data["chain_d"][:, step], unit.result).all(), (preset, step)
            c = data["chain_d"][:, step]
            if entry["c"] != entry["d"]:
                c = sn.convert(c.astype(unit.result.storage_dtype), unit.result, mma_sim.FORMATS[entry["c"]])


@pytest.mark.parametrize("name", _ANSWERED)
def test_the_reference_gives_them_too(name):
    entry, data = _ENTRIES[name], load(name)
    unit = mma_sim.unit_of(_ANSWERED[name][0], entry, "mma-sim")
    a, b, c = (mma_sim.codes(data[key], entry[key]) for key in "abc")
    if entry["c"] != entry["d"]:
        c = sn.convert(c, mma_sim.FORMATS[entry["c"]], unit.accumulator)
    for row in [*np.flatnonzero(data.get("zero_rule", []))[:20], *range(0, len(a), 16)]:
        code = by_reference(unit, a[row].tolist(), b[row].tolist(), int(c[row]))
        assert mma_sim.same(np.array([code]), data["d"][row : row + 1], unit.result).all()


@pytest.mark.parametrize("name", _ANSWERED)
def test_the_defaults_differ_where_the_choices_say_and_nowhere_else(name):
    """Without a least M, the presets' rows are those where zeros take no part; with it, only sums of small terms."""
    entry, data = _ENTRIES[name], load(name)
    skipped = data.get("d_skip", data["d"])
    for preset in _ANSWERED[name] if name.startswith("nv_") else ():
        unit = mma_sim.unit_of(preset, entry)
        got = by_definition(replace(unit, min_exponent=None), entry, data["a"], data["b"], data["c"])
        assert mma_sim.same(got, skipped, unit.result).all(), preset
        if unit.min_exponent is None:
            continue
        floored = by_definition(unit, entry, data["a"], data["b"], data["c"])
        changed = np.flatnonzero(~mma_sim.same(floored, skipped, unit.result))
        of = [sn.decode(mma_sim.codes(data[key][changed], entry[key]), mma_sim.FORMATS[entry[key]]) for key in "abc"]
        largest = np.maximum(np.abs(of[0] * of[1]).max(axis=1), np.abs(of[2]))
        assert (largest < 2.0 ** (unit.min_exponent + 2)).all(), preset  # terms are not normalised


def test_how_many_rows_the_defaults_have_otherwise():
    differ = 0
    for name, presets in _ANSWERED.items():
        entry, data = _ENTRIES[name], load(name)
        got = by_definition(mma_sim.unit_of(presets[0], entry), entry, data["a"], data["b"], data["c"])
        differ += int((~mma_sim.same(got, data["d"], sn.format(mma_sim.FORMATS[entry["d"]]))).sum())
    rows = sum(_ENTRIES[name]["rows"] for name in _ANSWERED)
    assert 0 < differ < rows // 20, f"{differ} of {rows}"
