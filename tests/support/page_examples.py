"""The examples of a Markdown page, in its order: one machinery for README and docs.

- A ``python`` block holds doctest examples; the blocks of a page share their names.
- A ``console`` block holds commands behind ``$`` and, below each, what it prints (with doctest's ellipsis). A last line
  ``[exit code n]`` states a code that is not 0.
- The comment ``<!-- not run: why -->`` in front of a block keeps it from being run; ``<!-- needs: name -->`` does so
  where there is no such program, and no such package of Python or path; of several with "and" between, all are needed.
- A ``code-block`` with a caption is written to a file of that name, in the folder where all of the page is run; the
  checkout's ``examples`` and ``tests/data`` lie there too.
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks_of", "has_examples", "run_page"]

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_FENCE = re.compile(r"^(`{3,})(\{code-block\} )?([\w{}-]*)(.*)$")
_MARK = re.compile(r"<!-- (not run|needs): (.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and first line's number; the file it stands for; whether it is not run."""

    language: str
    text: str
    line: int
    file: str | None = None
    skipped: bool = False


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    blocks, lines = [], page.read_text(encoding="utf-8").split("\n")
    last, at = "", 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if not opened:
            last, at = lines[at] or last, at + 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith(opened[1]))
        inside, file, first = lines[at + 1 : end], None, at + 1
        while opened[2] and inside and inside[0].startswith(":"):
            file = inside[0].removeprefix(":caption:").strip() if inside[0].startswith(":caption:") else file
            inside, first = inside[1:], first + 1
        if opened[2] and inside and not inside[0].strip():
            inside, first = inside[1:], first + 1
        mark = _MARK.fullmatch(last.strip())
        skipped = mark is not None and (mark[1] == "not run" or not all(map(_is_here, mark[2].split(" and "))))
        text = "".join(line + "\n" for line in inside)
        language = opened[4].strip() if opened[3] == "{code-block}" else opened[3]
        blocks.append(Block(language, text, first, file, skipped))
        last, at = "", end + 1
    return blocks


def _is_here(name: str) -> bool:
    """Whether there is a program or a package of Python of a name, or a path."""
    if name.startswith("/"):
        return Path(name).exists()
    return shutil.which(name) is not None or (name.isidentifier() and importlib.util.find_spec(name) is not None)


def has_examples(page: Path) -> bool:
    """Whether there is something to run on a page."""
    return any(b.language in ("python", "console") and not b.file and not b.skipped for b in blocks_of(page))


def _commands(text: str) -> list[tuple[str, str, int]]:
    """(command, expected output, expected exit code) of a console block."""
    found = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            found.append([line[2:], [], 0])
        elif found and line.startswith("> "):
            found[-1][0] += "\n" + line[2:]
        elif found and (code := re.fullmatch(r"\[exit code (\d+)\]", line)):
            found[-1][2] = int(code[1])
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(lines).strip("\n"), code) for command, lines, code in found]


def _environment(folder: Path) -> dict:
    """This environment, in which `softnum` and `python` are the ones under test, with nothing of a terminal's."""
    bin_ = folder.parent / (folder.name + "-bin")
    bin_.mkdir()
    for name, command in (("softnum", "-m softnum"), ("python", "")):
        program = bin_ / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        program.chmod(0o755)
    return os.environ | {
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb",
        "PYTHONUTF8": "1",
    }  # fmt: skip


def run_page(page: Path, folder: Path) -> int:
    """Run what a page shows, in a folder of its own; AssertionError where it shows something else. How much was run."""
    run, names, checker = 0, {"__name__": "__main__"}, doctest.OutputChecker()
    environment = _environment(folder)
    (folder / "tests").mkdir()
    for name in ("examples", "tests/data"):
        (folder / name).symlink_to(Path(__file__).resolve().parents[2] / name, target_is_directory=True)
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if block.skipped:
            continue
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            name = f"{page.name}:{block.line}"  # of its own: by it and an index, tracebacks look for the text
            examples = doctest.DocTestParser().get_doctest(block.text, names, name, str(page), block.line)
            assert examples.examples, f"{where}: a python block without examples (>>>)"
            report = []
            result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(
                examples, out=report.append, clear_globs=False
            )
            names = examples.globs
            assert not result.failed, "".join(report)
            run += result.attempted
        elif block.language == "console":
            for command, want, code in _commands(block.text):
                done = subprocess.run(
                    ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, encoding="utf-8",
                    timeout=600, check=False,
                )  # fmt: skip
                got = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).strip("\n").split("\n"))
                assert done.returncode == code, f"{where}: $ {command}\nexit code {done.returncode}\n{got}"
                assert checker.check_output(want + "\n", got + "\n", FLAGS), (
                    f"{where}: $ {command}\nexpected:\n{want}\ngot:\n{got}"
                )
                run += 1
    return run
