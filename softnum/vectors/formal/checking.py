"""Equivalence by ABC, the program that comes with Yosys: what it is given are graphs in AIGER."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from softnum.vectors.formal.export import aiger
from softnum.vectors.formal.miter import Miter

__all__ = ["Verdict", "check_equivalence"]

_CONFLICTS = 1_000_000_000
_SPARE = 10.0


class Verdict(NamedTuple):
    """Whether the two are equivalent (None: not decided), and where not, what the graph's inputs are."""

    equivalent: bool | None
    inputs: list[int] | None


def check_equivalence(miter: Miter, timeout: float, abc: str = "yosys-abc") -> Verdict:
    """Let ABC's ``cec`` decide whether a miter's output is always 0.

    Parameters
    ----------
    miter : Miter
    timeout : float
        Seconds.
    abc : str
        The program.

    Returns
    -------
    Verdict

    Raises
    ------
    FileNotFoundError
        If there is no such program.
    RuntimeError
        If it ends without a verdict that is known.

    Examples
    --------
    >>> from softnum.vectors.formal.aig import Aig
    >>> g = Aig()
    >>> a, b = g.input("a[0]"), g.input("b[0]")
    >>> got, want = g.lor(a, b), g.xor(a, b)
    >>> miter = Miter(g, 2, [got], [want], g.xor(got, want))
    >>> check_equivalence(miter, timeout=10.0)  # doctest: +SKIP
    Verdict(equivalent=False, inputs=[1, 1])
    >>> check_equivalence(miter, timeout=10.0, abc="no-such-abc")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no program 'no-such-abc'; it comes with Yosys, or name ABC's with --abc
    """
    program = shutil.which(abc)
    if program is None:
        raise FileNotFoundError(f"no program {abc!r}; it comes with Yosys, or name ABC's with --abc")
    with tempfile.TemporaryDirectory(prefix="softnum-cec-") as folder:
        Path(folder, "miter.aig").write_bytes(aiger(miter.graph, [("differs", miter.differs)]))
        limit = max(1, round(timeout))
        script = f"read_aiger miter.aig; &get; &cec -m -T {limit} -C {_CONFLICTS}; write_cex found.txt"
        try:
            done = subprocess.run(
                [program, "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, check=False, timeout=timeout + _SPARE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Verdict(None, None)
        said = done.stdout
        if "Networks are equivalent" in said:
            return Verdict(True, None)
        if "NOT EQUIVALENT" in said:
            return Verdict(False, _counterexample(Path(folder, "found.txt"), miter, said))
        if re.search("UNDECIDED|undecided|timed out|Timeout", said) or not done.returncode:
            return Verdict(None, None)
    raise RuntimeError(f"{abc} gave no verdict: {' '.join(said.split())[-300:] or 'it ended without a word'}")


def _counterexample(file: Path, miter: Miter, said: str) -> list[int]:
    """The inputs' values as ``write_cex`` writes them: a digit for each input, then a comment."""
    text = file.read_text(encoding="utf-8").partition("#")[0].strip() if file.is_file() else ""
    if len(text) != len(miter.graph.inputs) or set(text) - set("01"):
        raise RuntimeError(f"ABC found a difference and wrote no counterexample: {' '.join(said.split())[-300:]}")
    return list(map(int, text))
