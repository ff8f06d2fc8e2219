"""Studies as files state them."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path

from softnum.train import Case, Settings, load_design

__all__ = ["Experiment", "experiments", "studies"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Experiment:
    """One network on one data set under several designs, with several seeds.

    Attributes
    ----------
    name : str
        Folder of its records.
    title : str
    settings : Settings
    designs : tuple of str
        Names of shipped designs, or files; the first is the one to compare with.
    seeds : tuple of int
    target : float
        The accuracy whose first iteration is counted.
    pairs : tuple of tuple of str
        If not empty, the same designs as rows of a table of held-out losses: sums in binary32, then, if there is a
        second one, those of a tensor core. In the file a pair is a list within ``designs``.
    """

    name: str
    title: str
    settings: Settings
    designs: tuple[str, ...]
    seeds: tuple[int, ...]
    target: float
    pairs: tuple[tuple[str, ...], ...] = ()

    @property
    def cases(self) -> list[Case]:
        """The designs as `softnum.train.run_study` wants them."""
        return [Case(design, self.settings.batch) for design in self.designs]

    @property
    def names(self) -> list[str]:
        """The designs' names, which are the folders of their records."""
        return [load_design(design).name for design in self.designs]


def studies() -> list[str]:
    """The names of the studies in this folder."""
    return sorted(path.stem for path in HERE.glob("*.toml"))


def experiments(study: str) -> list[Experiment]:
    """The experiments of a study.

    Raises
    ------
    ValueError
        If there is no such study, or its file states what an experiment or a run does not have.
    """
    if study not in studies():
        raise ValueError(f"no study is called {study!r} (studies: {', '.join(studies())})")
    table = tomllib.loads((HERE / f"{study}.toml").read_text())
    known = {item.name for item in dataclasses.fields(Settings)}
    found = []
    for entry in table["experiment"]:
        entry = {"seeds": table["seeds"]} | entry
        settings = {key: value for key, value in entry.items() if key in known}
        others = {key: value for key, value in entry.items() if key not in known}
        rows = [entry if isinstance(entry, list) else [entry] for entry in others["designs"]]
        pairs = tuple(tuple(map(_place, row)) for row in rows)
        others["designs"] = tuple(design for pair in pairs for design in pair)
        if len(pairs) < len(others["designs"]):
            others["pairs"] = pairs
        others["seeds"] = tuple(others["seeds"])
        found.append(Experiment(settings=Settings(**settings), **others))
    return found


def _place(design: str) -> str:
    """A design's file, seen from this folder; a shipped design's name as it is."""
    return str((HERE / design).resolve()) if design.endswith(".toml") else design
