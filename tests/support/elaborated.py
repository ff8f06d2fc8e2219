"""SystemVerilog that is elaborated by pyslang."""

import pytest

__all__ = ["elaborated"]


def elaborated(files, top: str, include=(), defines=(), warnings=()) -> str:
    """What pyslang complains of, "" if nothing; skips without pyslang."""
    driver = pytest.importorskip("pyslang", reason="pyslang is not installed").driver
    reading = driver.Driver()
    reading.addStandardArgs()
    words = ["--timescale", "1ns/1ps", "--relax-string-conversions", "--top", top, *warnings, *map(str, files)]
    words += [f"-I{folder}" for folder in include] + [f"-D{name}" for name in defines]
    assert reading.parseCommandLine("slang " + " ".join(words)) and reading.processOptions()
    assert reading.parseAllSources()
    errors = [d for d in reading.createCompilation().getAllDiagnostics() if d.isError()]
    return reading.diagEngine.reportAll(reading.sourceManager, errors[:5]) if errors else ""
