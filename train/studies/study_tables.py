"""What a study's file asks for, as data, and a file to start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.train.runs.settings import Settings
from softnum.train.studies.study import Case

__all__ = ["TEMPLATE", "Comparison", "Rates", "StudyFile", "Timings"]

TEMPLATE = """\
# A study: every network x design x batch size x seed is trained once, and each network's designs are compared by
# time-to-accuracy. Paths are relative to this file. `softnum study plan FILE` says what would run.

[study]
name = "{name}"
designs = ["a-float32", "c-wang-fp8"]  # shipped designs (`softnum designs`) or files of yours; "my.toml@128": batch 128
seeds = 3                              # how many, or a list: [1, 2, 3]
batches = [32]                         # samples per iteration; with several, each design is trained with each
# workers = [1, 8]                     # that share a batch and sum gradients (docs: "Workers that share a batch")
# collectives = {{ ring = "ring(unit='bfloat16')", tree = "tree(unit='bfloat16')" }}  # and how; each design with each
epochs = 20                            # passes over the training samples
target = 0.95                          # what the metric has to reach on held-out samples
# baseline = "a-float32"               # what speed-ups are over; default: the first design
# metric = "accuracy"                  # field of the records; direction = "lower" if less is better
# reached = "consecutive:3"            # when a run has reached the target: "first" evaluation there, "average:5"
# smooth = "ema:0.9"                   # smooth the curves first
# confidence = 0.95                    # of the intervals
# combine = ["mine+yours=both"]        # compare a design with the product of what its parts do
# energy_table = "aladdin-40nm"        # where times come without energies: or 45nm, 45nm-lecture, a file of your own
# rent = ["2.48"]                      # dollars per hour, of all designs or "c-wang-fp8=1.20"; price: dollars to buy
# tune_rates = [0.5, 1, 2]             # each design also at its own learning rate: multiples of the recipe's to try
# tune_seeds = 3                       # with so many seeds, from 1001, or a list; none of seeds

# One table for each network. Whatever [study] and [settings] say can be said here for this network alone. In place of a
# name there may be a PyTorch model, "mine.py:make": a function of a file that returns a softnum.torch.Training.
[[networks]]
name = "mlp"
# data = "digits"
# options = {{ sizes = [64, 128, 10] }}  # the network's own parameters, as `softnum train --help` names them

[[networks]]
name = "lenet5"
# epochs = 10
# target = 0.9
# hardware = {{ clock = "2 GHz" }}       # as of [hardware], for this network alone

# What updates the networks; names and defaults are those of `softnum train --help`, with _ for -
[settings]
optimiser = "sgd"
# learning_rate = 0.1
# schedule = "cosine"
# samples = 1000                       # train on so many of the first samples
# held_out = 200                       # be measured on so many

# What stands here replaces the same keys of every design's [hardware]. No run is trained again for it.
[hardware]
# array = [32, 32]                     # rows and columns of cells
# sram_bytes = {{ ifmap = 1048576 }}     # of the left operand; also filter, the right one, and ofmap, the result
# bandwidth = "16 GB/s"                # between memory and each SRAM
# clock = "1 GHz"
# cores = [1, 1]

# Seconds per iteration: by SCALE-Sim, which simulate = true runs for designs without a report, or from a file.
[timings]
simulator = "scalesim"
simulate = true
# dataflow = "os"                      # output stationary; or "ws", "is"
# variant = "all"                      # or "stated" (hardware), "equal-area"
# reports = ["reports"]                # folders of reports to look in first
# file = "times.csv"                   # in place of all these; columns design,iteration,seconds
# files = {{ a-float32 = "base.log" }}   # or a file of each design (softnum timings --formats)

[report]
html = true                            # report.html of the whole study; takes softnum[report]
"""


@dataclass(frozen=True)
class Timings:
    """Where a comparison's seconds per iteration come from.

    Attributes
    ----------
    sources : tuple
        Files of times, in place of a simulator's: paths, and pairs of a design's label and a path.
    reading : dict
        How files are read: clock, format, warmup, iterations and marker of `softnum.tta.read_timings`.
    simulator, dataflow : str
        As `softnum.tta.study_variants` takes them.
    simulate : bool
        Whether the simulator is to be run for designs without a report.
    reports : tuple of pathlib.Path
        Folders of reports to look in first.
    variant : str
        "all", "stated" or "equal-area".
    """

    sources: tuple = ()
    reading: dict[str, Any] = field(default_factory=dict)
    simulator: str = "scalesim"
    dataflow: str = "os"
    simulate: bool = False
    reports: tuple[Path, ...] = ()
    variant: str = "all"


@dataclass(frozen=True)
class Rates:
    """Learning rates that every design of a comparison is tried with, to be judged at its own.

    Attributes
    ----------
    multipliers : tuple of float
        Of the recipe's rate, ascending.
    seeds : tuple of int
        Of the trials; none of them is judged.
    """

    multipliers: tuple[float, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """One network, its designs and its seeds.

    Attributes
    ----------
    folder : str
        Its folder within the study's.
    settings : Settings
        Of every run, but for the batch size.
    cases : tuple of Case
    labels : tuple of str
        What each case is called.
    seeds : tuple of int
    target : float
    rules : dict
        Keywords of `softnum.tta.study.outcome_rules`: metric, reached, confidence, costs ...
    baseline : str
        A label.
    timings : Timings
    hardware : dict
        Keys of ``[hardware]`` that replace those of every design.
    rates : Rates or None
        None: no learning rate is tuned.
    """

    folder: str
    settings: Settings
    cases: tuple[Case, ...]
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    target: float
    rules: dict[str, Any]
    baseline: str
    timings: Timings
    hardware: dict[str, Any] = field(default_factory=dict)
    rates: Rates | None = None

    @property
    def metric(self) -> str:
        """What the target is of."""
        return self.rules.get("metric", "accuracy")


@dataclass(frozen=True)
class StudyFile:
    """A study as its file asks for it.

    Attributes
    ----------
    name : str
    path : pathlib.Path
    table : dict
        The file's tables as written.
    comparisons : tuple of Comparison
    html : bool or None
        Whether a report is wanted; None: if what it takes is installed.
    """

    name: str
    path: Path
    table: dict[str, Any]
    comparisons: tuple[Comparison, ...]
    html: bool | None
