"""Where sources disagree on tensor cores: both choices by name, and inputs that tell them apart."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.inspect.disputes import choices, telling

NVIDIA = [n for n in sn.units() if n.startswith("nvidia_") and isinstance(sn.unit(n), sn.FusedDotUnit)]


def block_vectors(unit, row):
    """The operands of a row whose blocks have scales; without one of the whole array, which no instruction has."""
    fmts = [sn.BlockFormat(f.element, f.scale, f.block_size) for f in unit.operand]
    parts = zip((row.a, row.b), (row.scale_a, row.scale_b), fmts, strict=True)
    unit = replace(unit, operand=tuple(fmts))
    return unit, [sn.BlockArray(np.array(a, np.uint8), np.array(s, np.uint8), f) for a, s, f in parts]


def dot_of_codes(unit, row):
    x, y = (
        sn.Array(np.array(codes, f.storage_dtype), f) for codes, f in zip((row.a, row.b), unit.operand, strict=True)
    )
    c = sn.Array(np.array([[row.c]], unit.c_format.storage_dtype), unit.c_format)
    return int(sn.encode(sn.matmul(x.reshape(1, -1), y.reshape(-1, 1), unit, c), unit.result)[0, 0])


@pytest.mark.parametrize("name", NVIDIA)
def test_inputs_tell_the_choices_apart(name):
    units = choices(name)
    if name.endswith("_mma") or name in ("nvidia_b200_e4m3", "nvidia_b200_e5m2"):
        assert units == {}
        with pytest.raises(ValueError, match="has no such instruction; leave out disputed='mma-sim'"):
            sn.unit(name, disputed="mma-sim")
        return
    assert units["mma-sim"] == sn.unit(name, disputed="mma-sim") and units["mma-sim"].zero_exponent == -126
    rows = telling(units)
    assert rows and len({(row.a, row.b, row.c) for row in rows}) == len(rows)
    for row in rows:
        assert len(set(row.results.values())) > 1
        for choice, unit in units.items():
            assert dot_of_codes(unit, row) == row.results[choice]
            x, y = (
                sn.Array(np.array(c, f.storage_dtype), f) for c, f in zip((row.a, row.b), unit.operand, strict=True)
            )
            c = sn.Array(np.array([row.c], unit.c_format.storage_dtype), unit.c_format)
            assert unit.trace(x, y, c).code == row.results[choice]  # by the reference


@pytest.mark.parametrize("name", [name for name in sn.units() if "_mxf" in name and name.startswith("nvidia_")])
def test_inputs_with_scales_tell_the_choices_apart(name):
    units = choices(name)
    assert units["mma-sim"] == sn.unit(name, disputed="mma-sim") and units["mma-sim"].zero_exponent == -126
    rows = telling(units)
    assert bool(rows) == (not name.endswith("nvf4"))  # whose scales leave no sum small enough
    for row in rows:
        assert len(set(row.results.values())) > 1
        for choice, unit in units.items():
            unit, (x, y) = block_vectors(unit, row)
            c = sn.decode(np.uint32(row.c), "binary32")
            assert sn.encode(sn.dot(x, y, unit, c), "binary32") == row.results[choice]
            assert unit.trace(x, y, c).code == row.results[choice]  # by the reference


def test_least_exponents():
    """MATLAB-tensor-core's of August 2026: -108 - F for sums in binary32, 4 - F for binary16 from binary16."""
    least = lambda name, output=None: sn.unit(f"nvidia_{name}", output).min_exponent  # noqa: E731
    for gpu in ("a100", "a2", "ada", "l40s", "turing"):
        assert (least(f"{gpu}_fp16"), least(f"{gpu}_fp16", "binary16")) == (-132, -20)
    for gpu in ("h100", "h200", "b200", "rtx_blackwell", "tcgen05"):
        assert (least(f"{gpu}_bf16"), least(f"{gpu}_fp16", "binary16")) == (-133, -21)
    assert (least("v100_fp16"), least("v100_fp16", "binary16")) == (None, -19)
    assert least("l40s_e4m3", "binary16") == -132 and least("h100_e5m2", "binary16") == -133
    kinds = {n: sn.unit(f"nvidia_{n}_bf16").evidence["zero_exponent"].kind for n in ("a100", "h200", "tcgen05")}
    assert kinds == {"a100": "published, disputed", "h200": "recorded", "tcgen05": "modelled"}


def test_zeros_that_count():
    unit = sn.FusedDotUnit(4, 24, "binary32", operand="bfloat16", zero_exponent=-126)
    assert "a zero's being -126" in str(unit) and eval(repr(unit), vars(sn)) == unit
    tiny = 2.0**-149
    assert sn.dot([0.0], [0.0], unit, tiny) == np.float32(tiny)
    assert sn.dot([0.0], [2.0**127], unit, tiny) == 0  # M is 1: what lies below 2^-23 is cut off
    assert sn.dot([0.0], [2.0**127], sn.FusedDotUnit(4, 24, "binary32", operand="bfloat16"), tiny) == np.float32(tiny)
    for value in (1, -1.0, True, "x"):
        with pytest.raises(ValueError, match="zero_exponent must be an integer in -65536..-126"):
            sn.FusedDotUnit(4, 24, "binary32", operand="bfloat16", zero_exponent=value)
    with pytest.raises(ValueError, match="zero_exponent must be an integer in -65536..0, got 3"):
        sn.FusedDotUnit(4, 24, sn.FloatFormat(3, 4, bias=-8), operand="e4m3fn", zero_exponent=3)


def test_what_is_refused():
    with pytest.raises(ValueError, match="disputed is None or 'mma-sim' or 'matlab', got 'hardware'"):
        sn.unit("nvidia_a100_fp16", disputed="hardware")
    with pytest.raises(ValueError, match="the preset already follows 'mma-sim'; leave out disputed='mma-sim'"):
        sn.unit("int8_int32", disputed="mma-sim")
    assert choices("x86_avx512_bf16") == {}


def test_the_command_line():
    run = CliRunner().invoke(build_app(), ["units", "nvidia_a100_bf16", "--json"])
    shown = json.loads(run.stdout)
    assert run.exit_code == 0 and shown["evidence"]["min_exponent"]["kind"] == "published, disputed"
    assert shown["telling"][0]["results"] == {"default": "0x00000001", "mma-sim": "0x00000000"}
    run = CliRunner().invoke(build_app(), ["units", "nvidia_a100_bf16", "--disputed", "mma-sim"])
    assert "a zero's being -126" in " ".join(run.stdout.split()) and "8 x 0x1980" in run.stdout
    assert CliRunner().invoke(build_app(), ["units", "--disputed", "mma-sim"]).exit_code != 0


@pytest.mark.parametrize("name", ["amd_cdna1_fp16", "amd_cdna1_bf16"])
def test_cdna1_by_either_source(name):
    """MMA-Sim rounds products and pairs; MATLAB-tensor-core has one exact sum with C."""
    units = choices(name)
    assert units == {"default": sn.unit(name), "matlab": sn.unit(name, disputed="matlab")}
    fmt, exact = units["default"].operand[0], units["matlab"]
    assert exact.evidence["all"].kind == "published, disputed"
    rng = np.random.default_rng(1)
    a, b = (sn.quantize(rng.standard_normal((40, exact.terms)), fmt) for _ in "ab")
    c = sn.quantize(rng.standard_normal(40), "binary32")
    got = [float(sn.dot(x, y, exact, z)) for x, y, z in zip(a, b, c, strict=True)]
    one = sn.ExactDotUnit("binary32", operand="binary64")  # of products and C: by ones
    for x, y, z, result in zip(a, b, c, got, strict=True):
        terms = [float(u) * float(v) for u, v in zip(x, y, strict=True)] + [float(z)]
        assert result == float(sn.dot(np.array(terms), np.ones(len(terms)), one))
    for found in telling(units):
        assert len(set(found.results.values())) == 2
    with pytest.raises(ValueError, match="leave out disputed='matlab'"):
        sn.unit("nvidia_a100_fp16", disputed="matlab")
