"""Which presets give a product of matrices: every preset finds itself, and what differs is told with its place."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.inspect.which import candidates

UNITS = {name: unit for name, unit in candidates().items() if not isinstance(unit.operand[0], sn.BlockFormat)}


def operands(unit, seed=0, shape=(6, 96, 5)):
    """Matrices of a unit's operands, and a C, that keep apart units which differ in anything but zeros and floors."""
    rng, (m, k, n) = np.random.default_rng(seed), shape
    scale = 2.0 ** rng.integers(-4, 5, (m, k))
    a = sn.quantize(rng.standard_normal((m, k)) * scale, unit.operand[0])
    b = sn.quantize(rng.standard_normal((k, n)) * 2, unit.operand[1])
    return a, b, sn.quantize(rng.standard_normal((m, n)), unit.c_format)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNITS)
def test_every_preset_finds_itself(name):
    unit = UNITS[name]
    a, b, c = operands(unit)
    found = sn.which(a, b, c, sn.matmul(a, b, unit, c))
    assert any(name in answer.names and answer.unit == unit for answer in found.reproduce)
    reproduced = {x for answer in found.reproduce for x in answer.names}
    asked = [x for answer in found.answers for x in answer.names]
    assert sorted(asked) == sorted(candidates()) and len(set(asked)) == len(asked)
    for answer in found.differ:
        assert not reproduced & set(answer.names)
        got = sn.matmul(a, b, answer.unit, c)
        assert float(got[answer.first]) == answer.got != float(found.result[answer.first])
    assert [x.differ for x in found.differ] == sorted(x.differ for x in found.differ)


def test_units_that_differ_in_floors_alone_are_told_by_small_numbers():
    a100, sim = sn.unit("nvidia_a100_bf16"), sn.unit("nvidia_a100_bf16", disputed="mma-sim")
    a, b = np.zeros((1, 8)), np.zeros((8, 1))
    b[0], c = 2.0**127, np.full((1, 1), 2.0**-149)
    found = sn.which(a, b, c, sn.matmul(a, b, a100, c))
    assert a100 in [x.unit for x in found.reproduce] and sim in [x.unit for x in found.differ]
    assert "ends at 0" in found.part() and "no rounding differs" not in found.part()


def test_signs_of_zeros_and_nans():
    a, b = np.array([[np.inf, 0.0]]), np.array([[0.0], [1.0]])
    found = sn.which(a, b, result=np.array([[-np.nan]]))
    assert any("nvidia_a100_fp16" in x.names for x in found.reproduce)
    found = sn.which(np.zeros((1, 4)), np.zeros((4, 1)), result=np.array([[-0.0]]))
    assert not found.reproduce and "0 of 1 " not in str(found)


def test_others_are_asked_too():
    mine = sn.MadUnit("e6m9", operand="e5m2")
    a, b, _ = operands(mine)
    found = sn.which(a, b, result=sn.matmul(a, b, mine), others={"mine": mine})
    assert [x.names for x in found.reproduce] == [("mine",)]
    text = found.part()
    assert text.startswith("element (") and "mine" in text and "is the first that differs" in text
    assert json.loads(json.dumps(found.to_dict()))["reproduce"][0]["names"] == ["mine"]


def test_what_is_refused():
    a, b = np.ones((2, 3)), np.ones((3, 2))
    with pytest.raises(TypeError, match="state result="):
        sn.which(a, b)
    with pytest.raises(ValueError, match=r"got a \(2, 3\), b \(3, 2\), result \(3, 3\)"):
        sn.which(a, b, result=np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"c must be a matrix, got an array of shape \(2,\)"):
        sn.which(a, b, np.ones(2), np.ones((2, 2)))
    found = sn.which(a + 0.3, b, result=np.ones((2, 2)))
    assert "is no value of e5m2" in str(found)


def test_the_command_line(tmp_path):
    unit = sn.unit("nvidia_h100_fp16")
    a, b, c = operands(unit)
    paths = {name: tmp_path / f"{name}.npy" for name in ("a", "b", "c", "d")}
    for name, array in zip(paths, (a, b, c, sn.matmul(a, b, unit, c)), strict=True):
        np.save(paths[name], array)
    sn.save(tmp_path / "a.npz", sn.array(a, "binary16"))
    run = lambda *files: CliRunner().invoke(build_app(), ["which", *map(str, files)])  # noqa: E731
    shown = run(*paths.values())
    assert shown.exit_code == 0 and "units give all 30 elements" in shown.stdout and "is the first that" in shown.stdout
    out = tmp_path / "found.json"
    shown = run(tmp_path / "a.npz", *list(paths.values())[1:], "--json", "--out", out)
    assert shown.exit_code == 0 and json.loads(shown.stdout) == json.loads(out.read_text())
    np.save(tmp_path / "text.npy", np.full((4, 4), "x"))
    refused = run(*list(paths.values())[:3], tmp_path / "text.npy")
    assert refused.exit_code == 2 and "got <U1" in refused.output
    assert "nvidia_h100_fp16" in json.loads(shown.stdout)["reproduce"][0]["names"]
    assert run(paths["a"], paths["b"], paths["d"]).exit_code == 1  # without C nothing gives it
    assert run(paths["a"], paths["b"]).exit_code == 2
    (tmp_path / "text.npy").write_text("no array")
    assert run(paths["a"], paths["b"], tmp_path / "text.npy").exit_code == 2
