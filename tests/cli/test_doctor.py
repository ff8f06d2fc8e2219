"""``softnum doctor``."""

import json
import shutil
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app, quick_speed
from softnum.cli.doctor import _problems
from softnum.runtime import _core, installed
from softnum.runtime.installed import DEVELOPING, EXTRAS, describe_extras, describe_programs

STATED = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
EXTRA_LINES = [
    f"{text.partition(';')[0]}; extra == '{extra}'" + (f" and {text.partition(';')[2]}" if ";" in text else "")
    for extra, texts in STATED["optional-dependencies"].items()
    for text in texts
]


@pytest.fixture(autouse=True)
def one_program(monkeypatch, request):
    """That they answer takes seconds together: one test asks all."""
    if request.node.name != "test_what_is_said":
        monkeypatch.setattr(installed, "PROGRAMS", {"C compiler": installed.PROGRAMS["C compiler"]})


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [*map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def metadata_of(monkeypatch):
    """Let softnum's metadata be those of pyproject.toml, and packages have the versions that are given."""

    def use(**versions):
        real = metadata.version

        def version(name):
            if name not in versions:
                return real(name)
            if versions[name] is None:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(installed.metadata, "requires", lambda name: EXTRA_LINES if name == "softnum" else [])
        monkeypatch.setattr(installed.metadata, "version", version)

    return use


def test_every_extra_is_described():
    assert {*EXTRAS, *DEVELOPING} == {*STATED["optional-dependencies"]}


def test_what_is_said(metadata_of, tmp_path):
    metadata_of(torch=None, joblib="1.4.2")
    result = softnum("doctor", "--no-speed", "--json", "--out", tmp_path / "doctor.json")
    facts = json.loads(result.output)
    assert json.loads((tmp_path / "doctor.json").read_text(encoding="utf-8")) == facts
    assert result.exit_code == (1 if facts["problems"] else 0)
    assert facts["version"] == sn.__version__ and facts["instruction_sets"]["available"] == _core.available_isas()
    assert "speed" not in facts and list(facts["extras"]) == list(EXTRAS)
    assert facts["extras"]["torch"]["packages"]["torch"] is None
    assert facts["extras"]["torch"]["get"] == "pip install 'softnum[torch]'"
    assert Path(facts["build"]["extension"]).is_file()
    result = softnum("doctor", "--no-speed")
    assert all(f" {extra} " in result.output for extra in EXTRAS) and "lacks torch" in result.output
    assert f"instruction set: {_core.current_isa()}" in result.output


def test_a_package_out_of_range_is_a_problem(metadata_of):
    pytest.importorskip("packaging", reason="versions are compared by packaging")
    metadata_of(joblib="1.2.0")
    facts = json.loads(softnum("doctor", "--no-speed", "--json").output)
    assert facts["extras"]["train"]["unfit"] == ["joblib>=1.3"]
    assert "train: joblib>=1.3 is needed: pip install 'softnum[train]'" in facts["problems"]


def test_extras_of_extras_and_of_packages(metadata_of, monkeypatch):
    metadata_of(dask="9.9", distributed="9.9", tornado="9.9")
    lines = {"softnum": EXTRA_LINES, "dask": ["distributed>=99; extra == 'distributed'", "tornado; extra == 'other'"]}
    monkeypatch.setattr(installed.metadata, "requires", lambda name: lines.get(name, []))
    packages = describe_extras()["dask"]["packages"]
    assert packages["distributed"] == packages["dask"] == "9.9" and "joblib" in packages and "tornado" not in packages


def test_older_metadata_and_none(monkeypatch):
    monkeypatch.setattr(installed.metadata, "requires", lambda name: ["joblib; extra == 'train'"])
    facts = {"build": {"metadata": "0.1.0"}, "version": "0.1.0", "extras": describe_extras(), "programs": {}}
    assert list(facts["extras"]) == ["train"] and "lack report, torch" in _problems(facts)[0]
    assert "are of softnum 0.0.9" in _problems(facts | {"build": {"metadata": "0.0.9"}})[0]

    def nothing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installed.metadata, "requires", nothing)
    assert describe_extras() == {}
    assert "no metadata" in _problems(facts | {"build": {"metadata": None}, "extras": {}})[0]


@pytest.mark.skipif(shutil.which("false") is None, reason="there is no program `false`")
def test_compilers(monkeypatch):
    monkeypatch.setenv("CC", "false")
    found = describe_programs()["C compiler"]
    assert found["path"] == shutil.which("false") and "exit code 1" in found["broken"]
    result = softnum("doctor", "--no-speed")
    assert result.exit_code == 1 and "does not work: C compiler: exit code 1" in result.output
    monkeypatch.setenv("CC", "no-such-compiler")
    found = describe_programs()["C compiler"]
    assert found["path"] is None and not found["broken"] and "gcc" in found["get"]
    monkeypatch.setenv("CC", "")
    assert "path" in describe_programs()["C compiler"]
    if shutil.which("cc"):
        monkeypatch.setenv("CC", "cc -no-such-option")
        assert "no-such-option" in describe_programs()["C compiler"]["broken"]
    monkeypatch.setattr(installed.shutil, "which", lambda name: None)
    assert installed.PROGRAMS["C compiler"].get() in (
        "by your system's packages (Debian: gcc libc6-dev)", "brew install gcc"
    )  # fmt: skip


def test_speed_of_small_works(monkeypatch):
    monkeypatch.setattr(quick_speed, "_ELEMENTS", 1 << 8)
    monkeypatch.setattr(quick_speed, "_SIZE", 16)
    before = _core.current_isa()
    rows = quick_speed._measured()
    assert _core.current_isa() == before
    for row in rows:
        assert row["same_bits"] and list(row["times"]) == _core.available_isas() and min(row["times"].values()) > 0
    turn, quantize = iter(range(10**6)), sn.quantize  # what differs from call to call differs between instruction sets

    def wrong(x, *rest, **more):
        return np.asarray(x) + next(turn) if np.ndim(x) == 1 else quantize(x, *rest, **more)

    monkeypatch.setattr(sn, "quantize", wrong)
    assert not quick_speed._measured()[0]["same_bits"]


@pytest.mark.slow
def test_speed():
    facts = json.loads(softnum("doctor", "--json").output)
    assert len(facts["speed"]) > 3 and all(row["same_bits"] for row in facts["speed"])


def test_differing_bits_are_a_problem(monkeypatch):
    row = {"work": "exp", "against": "copying", "times": dict.fromkeys(_core.available_isas(), 1.0)}
    monkeypatch.setattr(quick_speed, "measure", lambda: [row | {"same_bits": False}])
    result = softnum("doctor")
    assert result.exit_code == 1 and "does not work: exp: instruction sets differ" in result.output


def test_no_measurement(monkeypatch):
    monkeypatch.setattr(quick_speed.sys, "executable", shutil.which("false") or "false")
    result = softnum("doctor")
    assert result.exit_code == 2 and "cannot be measured: exit code 1; leave it out with --no-speed" in result.output


def test_an_instruction_set_that_is_not_there(monkeypatch):
    monkeypatch.setattr(_core, "current_isa", lambda: _core.use_isa("sse9"))
    result = softnum("doctor", "--no-speed")
    assert result.exit_code == 2 and "SOFTNUM_CPU must be one of" in result.output
