"""How far a study is: what its folder says, without its file and while it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from softnum.train.runs.record import read_lines
from softnum.train.studies.ledger import Ledger
from softnum.train.studies.rates import rate_name

__all__ = ["RunStatus", "study_status"]


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Attributes
    ----------
    name : str
    state : str
        "finished", "diverged" (finished early, as its loss was not finite), "started", "waiting" or "failed".
    done, iterations : int
        In the record, and of the whole run; of a run on a cluster nothing is known until it ends.
    error : str
        Why it failed, or cannot be trained.
    """

    name: str
    state: str
    done: int
    iterations: int
    error: str = ""


def study_status(out: str | Path) -> list[RunStatus]:
    """How far the runs of a study are.

    Parameters
    ----------
    out : path-like
        The study's folder.

    Returns
    -------
    list of RunStatus

    Raises
    ------
    ValueError
        If the folder holds no study, or its ``study.json`` is malformed.
    """
    file = Path(out, "study.json")
    if not file.is_file():
        raise ValueError(f"{out} holds no study: there is no {file}; carry one out with softnum study run FILE")
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: not JSON ({error}); run the study again") from None
    failures = Ledger(Path(out)).failures()
    found = []
    try:
        for comparison in table["comparisons"]:
            folder = Path(out, comparison["folder"])
            for run in comparison["runs"]:
                rate = f"{rate_name(run['multiplier'])}/" if "multiplier" in run else ""
                name = f"{comparison['folder']}/{run['label']}/{rate}seed-{run['seed']}"
                error = failures.get(name, run.get("error", ""))
                found.append(_status(name, folder / run["record"], run["iterations"], error))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file}: not a study of this version ({error!r} is missing); run the study again") from None
    return found


def _status(name: str, path: Path, iterations: int, error: str) -> RunStatus:
    rows = read_lines(path)
    last = rows[-1] if rows else {}
    if last.get("finished") is True:
        return RunStatus(name, "diverged" if last.get("diverged") else "finished", len(rows) - 1, iterations)
    state = "failed" if error else "started" if rows else "waiting"
    return RunStatus(name, state, max(0, len(rows) - 1), iterations, error)
