"""``pytest --resume FILE``: what passed in an earlier run is left out, so that a run of hours can be interrupted.

The file's first line is a digest of the package as it is installed: results of another build are none of this one, and
pytest refuses the file. Each further line is the id of a test that passed, written when it ended.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

__all__ = ["Resume", "digest_of_package"]

_SUFFIXES = (".py", ".so", ".pyd", ".toml", ".json")


def digest_of_package(*folders: Path) -> str:
    """Of the names and contents of the modules and tables in a package's folders."""
    told = hashlib.sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES):
            name = f"{folder.name}/{path.relative_to(folder).as_posix()}"
            told.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return told.hexdigest()


class Resume:
    """The plugin. Under xdist the process that hands out tests writes; workers read what it had read."""

    def __init__(self, path: Path, digest: str, size: int | None = None):
        self.path = path
        if size is None and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{digest}\n", encoding="utf-8")
        text = path.read_bytes()[:size]
        self.size = len(text)
        first, *lines = text.decode("utf-8").split("\n")
        if first != digest:
            raise pytest.UsageError(f"--resume {path}: of another build of the package; delete it to begin anew")
        if cut := lines.pop():  # interrupted in the middle of a line
            self.size -= len(cut.encode())
        self.passed = frozenset(lines)
        self.writes = size is None
        if self.writes and self.size < len(text):
            with path.open("r+b") as file:
                file.truncate(self.size)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        if done := [item for item in items if item.nodeid in self.passed]:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_runtest_logreport(self, report):
        ended = report.when == "call" and report.passed and not isinstance(report, pytest.SubtestReport)
        if self.writes and ended:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["resume"] = self.size
