"""Shells complete softnum: what ``softnum completions`` prints, in real shells."""

import os
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from softnum.cli import VERBS, build_app
from softnum.cli.completions import SHELLS, VARIABLE
from softnum.train import design_names


def script(shell):
    result = CliRunner().invoke(build_app(), ["completions", shell], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.fixture
def ask(tmp_path):
    """What a shell prints when it runs a text after the script for it, where softnum is this one."""
    program = tmp_path / "bin" / "softnum"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m softnum "$@"\n')
    program.chmod(0o755)

    def run(shell, text, *options):
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        done = subprocess.run(
            [shell, *options, "-c", f"{script(shell)}\n{text}"], capture_output=True, encoding="utf-8", timeout=120,
            env=os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}, check=False,
            cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    return run


def answers(typed, monkeypatch):
    """What softnum answers bash."""
    monkeypatch.setenv(VARIABLE, "complete_bash")
    words = typed.split(" ")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    from softnum.cli.completions import prepare

    prepare()
    return CliRunner().invoke(build_app(), [], prog_name="softnum", catch_exceptions=False).output.split()


@pytest.mark.parametrize(
    "typed, wanted",
    [
        ("softnum ", [*VERBS]),
        ("softnum units nvidia_v", ["nvidia_v100_fp16"]),
        ("softnum formats bf", ["bfloat16"]),
        ("softnum designs ", design_names()),
        ("softnum train mlp --design a-", ["a-float32"]),
        ("softnum train mlp --learn", ["--learning-rate"]),
        ("softnum schema de", ["design", "devices"]),
        ("softnum completions ", [*SHELLS]),
    ],
)
def test_what_is_offered(typed, wanted, monkeypatch):
    assert answers(typed, monkeypatch) == wanted


def test_bash(ask):
    tried = (
        'COMP_WORDS=(softnum designs c-); COMP_CWORD=2; _softnum_completion softnum; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    registered, *found = ask("bash", f"complete -p softnum; {tried}", "--norc")
    assert "-F _softnum_completion softnum" in registered and found == ["c-wang-fp8"]


def test_zsh(ask):
    """zsh completes in its line editor alone: what it is given to complete with is printed."""
    shown = 'autoload -Uz compinit; compinit -D -u; _arguments() { print -r -- "$2$1" }; words=(softnum units nvidia_v)'
    assert shutil.which("zsh") is None or script("zsh").startswith("#compdef softnum")
    found = ask("zsh", f"CURRENT=3; {shown}; _softnum_completion", "-f")
    assert found and "nvidia_v100_fp16" in found[-1]


def test_fish(ask):
    found = ask("fish", "complete -C 'softnum designs c-'", "--no-config")
    assert [line.split("\t")[0] for line in found] == ["c-wang-fp8"]


def test_a_file(tmp_path):
    file = tmp_path / "_softnum"
    result = CliRunner().invoke(build_app(), ["completions", "zsh", "--out", str(file)], catch_exceptions=False)
    assert result.exit_code == 0 and file.read_text(encoding="utf-8") == script("zsh")


def test_errors():
    result = CliRunner().invoke(build_app(), ["completions", "tcsh"], catch_exceptions=False)
    assert result.exit_code == 2 and "shell must be one of bash, zsh, fish, got 'tcsh'" in result.output


def test_an_import_of_softnum_imports_no_typer():
    done = subprocess.run(
        [sys.executable, "-c", "import softnum, sys; print('typer' in sys.modules)"], capture_output=True
    )
    assert done.stdout.split() == [b"False"]
