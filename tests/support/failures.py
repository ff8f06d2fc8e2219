"""``pytest --failures FILE``: how tests fail is in FILE as soon as they do, so that a run that is cut tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["Failures"]


class Failures:
    """The plugin. Under xdist the process that hands out tests has it, to which the workers' reports come."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            name = report.nodeid
            if isinstance(report, pytest.SubtestReport):
                name += f" {report.head_line.removeprefix(report.location[2]).strip()}"
            self._write(name if report.when == "call" else f"{name}, {report.when}", report)

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(report.nodeid, report)

    def _write(self, name: str, report) -> None:
        parts = [f"==== {name}", report.longreprtext]
        parts += [f"---- {title}\n{text}" for title, text in report.sections]
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n".join(part.rstrip("\n") for part in parts) + "\n\n")
