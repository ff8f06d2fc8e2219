"""Solvers of SMT-LIB from PyPI, each run in a process of its own: what does not end in time is ended."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["SOLVERS", "Answer", "installed", "solve"]


class Answer(NamedTuple):
    """What a solver says: "sat", "unsat" or "unknown" (or None: it did not end), and of "sat" the constants' values."""

    verdict: str | None
    values: dict[str, int]


def _z3(text: str, names: list[str]) -> Answer:
    import z3

    solver = z3.SolverFor("QF_BV")
    solver.from_string(text)
    verdict = str(solver.check())
    if verdict != "sat":
        return Answer(verdict, {})
    model = solver.model()
    found = {d.name(): model[d].as_long() for d in model.decls() if z3.is_bv_value(model[d])}
    return Answer(verdict, {name: found.get(name, 0) for name in names})


def _bitwuzla(text: str, names: list[str]) -> Answer:
    import bitwuzla

    terms, options = bitwuzla.TermManager(), bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(terms, options)
    parser.parse(text, True, False)
    solver = parser.bitwuzla()
    verdict = str(solver.check_sat()).rpartition(".")[2].lower()
    if verdict != "sat":
        return Answer(verdict, {})
    constants = {str(term.symbol()): term for term in parser.get_declared_funs()}
    return Answer(verdict, {n: int(solver.get_value(constants[n]).value(2), 2) for n in names})


#: name of a module -> (package on PyPI, what asks it); those tried first go first
SOLVERS: dict[str, tuple[str, Callable[[str, list[str]], Answer]]] = {
    "bitwuzla": ("bitwuzla", _bitwuzla),
    "z3": ("z3-solver", _z3),
}


def installed() -> list[str]:
    """The solvers that are there, by name.

    >>> set(installed()) <= set(SOLVERS)
    True
    """
    return [name for name in SOLVERS if importlib.util.find_spec(name) is not None]


def solve(name: str, text: str, constants: list[str], timeout: float) -> Answer:
    """Ask a solver whether a text's assertions can hold.

    Parameters
    ----------
    name : str
        One of `SOLVERS`.
    text : str
        SMT-LIB 2 without check-sat.
    constants : list of str
        Whose values are wanted.
    timeout : float
        Seconds.

    Returns
    -------
    Answer

    Raises
    ------
    ValueError
        If there is no such solver, or it is not installed.
    RuntimeError
        If it fails.
    """
    if name not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}; there are {', '.join(SOLVERS)}")
    if name not in installed():
        raise ValueError(f"the solver {name} is not installed: pip install {SOLVERS[name][0]}")
    with tempfile.TemporaryDirectory(prefix="softnum-smt-") as folder:
        file = Path(folder, "query.smt2")
        file.write_text(text, encoding="ascii")
        command = [sys.executable, "-m", __spec__.name, name, str(file), *constants]
        try:
            done = subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace",
                stdin=subprocess.DEVNULL, check=False, timeout=max(timeout, 0.001),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(None, {})
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        raise RuntimeError(f"the solver {name} failed: {lines[-1]}")
    verdict, values = json.loads(done.stdout.strip().splitlines()[-1])
    return Answer(verdict, values)


if __name__ == "__main__":
    asked, path, *wanted = sys.argv[1:]
    print(json.dumps(SOLVERS[asked][1](Path(path).read_text(encoding="ascii"), wanted)))
