"""``softnum units``."""

import json

from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from tests.support.public import PUBLIC


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(a) for a in arguments], catch_exceptions=False)


def test_the_list(tmp_path):
    out = tmp_path / "units.json"
    result = softnum("units", "--out", out)
    assert result.exit_code == 0
    assert all(name in result.output for name in sn.units())
    listed = json.loads(out.read_text())
    assert [row["name"] for row in listed] == list(sn.units())
    assert json.loads(softnum("units", "--json").output) == listed


def test_every_unit_is_shown():
    for name in sn.units():
        result = softnum("units", name)
        assert result.exit_code == 0
        shown = " ".join(result.output.split())
        assert str(sn.unit(name)) in shown
        assert all(e.kind in shown for e in sn.unit(name).evidence.values())


def test_one_as_json():
    shown = json.loads(softnum("units", "nvidia_v100_fp16", "--output", "binary16", "--json").output)
    unit = sn.unit("nvidia_v100_fp16", output="binary16")
    assert eval(shown["expression"], PUBLIC) == unit and shown["computes"] == str(unit)
    assert shown["parameters"]["terms"] == 4 and shown["parameters"]["operand"] == ["binary16", "binary16"]
    assert shown["evidence"]["products"]["kind"] == "recorded"


def test_refusals(tmp_path):
    result = softnum("units", "nvidia_v100_fp8")
    assert result.exit_code == 2 and "did you mean 'nvidia_v100_fp16'" in result.output
    result = softnum("units", "--output", "binary16")
    assert result.exit_code == 2 and "needs the NAME" in result.output
    result = softnum("units", "nvidia_a100_bf16", "--output", "binary16")
    assert result.exit_code == 2 and "has the output binary32, not binary16" in result.output
    assert softnum("units", "--out", tmp_path).exit_code == 2
