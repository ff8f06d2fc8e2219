"""``python -m benchmarks.demonstrations``: run, keep and show the studies."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import dataclasses
from pathlib import Path

from rich.console import Console
from rich.table import Table

import benchmarks.demonstrations as package
from benchmarks.demonstrations.plans import Experiment, experiments, studies
from benchmarks.demonstrations.results import curves, differences, draw, keep, table
from softnum.cli.train import progress_bar
from softnum.runtime.atomic import write_atomic
from softnum.train import run_study


def _run(study: str, options) -> None:
    for experiment in _chosen(study, options.only):
        settings = dataclasses.replace(experiment.settings, data_folder=options.data_dir)
        with progress_bar() as step:

            def show(done: int, total: int, text: str, trained: bool, step=step, name=experiment.name) -> None:
                step(done, total, f"{name}: last {text}{'' if trained else ' (found)'}")

            run_study(
                experiment.cases, settings, seeds=experiment.seeds, out=options.out / study / experiment.name,
                jobs=options.jobs, progress=show,
            )  # fmt: skip


def _chosen(study: str, only: str | None) -> list[Experiment]:
    found = experiments(study)
    if only is not None and only not in [experiment.name for experiment in found]:
        raise ValueError(f"{study} has no experiment {only!r} (it has {', '.join(part.name for part in found)})")
    return [experiment for experiment in found if only in (None, experiment.name)]


def _show(study: str, options) -> None:
    parts = [(experiment, curves(study, experiment)) for experiment in _chosen(study, options.only)]
    parts = [(experiment, found) for experiment, found in parts if found]
    if not parts:
        raise ValueError(f"no records of {study} are kept; run it, then keep them")
    for experiment, found in parts:
        heading, rows = table(experiment, found)
        shown = Table(*heading, title=experiment.title)
        for row in rows:
            shown.add_row(*row)
        Console(width=150).print(shown)
        if options.differences is not None:
            heading, rows = differences(experiment, found, options.differences)
            shown = Table(*heading, title="Mean differences ± 95 % (what four such studies in five would find)")
            for row in rows:
                shown.add_row(*row)
            Console(width=150).print(shown)
    if options.picture is not None:
        write_atomic(options.picture, draw(parts))


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.demonstrations", description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, text in (("run", "train what is not trained"), ("keep", "pack records"), ("show", "table and picture")):
        sub = verbs.add_parser(verb, help=text)
        sub.add_argument("study", choices=studies())
        sub.add_argument("--only", help="one experiment of the study")
        sub.add_argument("--out", type=Path, default=Path("runs/demonstrations"), help="folder of the records")
        if verb == "run":
            sub.add_argument("--jobs", type=int, help="processes (default: one for each core)")
            sub.add_argument("--data-dir", help="folder of the data sets")
        if verb == "show":
            sub.add_argument("--picture", type=Path, help="draw the curves to this PNG file")
            sub.add_argument(
                "--differences", metavar="DESIGN", nargs="?", const="",
                help="compare runs of the same seeds with those of a design (default: the first one), with intervals",
            )  # fmt: skip
    for verb, text in (
        ("sums", "the error of long sums in (1,6,9)"),
        ("promotion", "the error of FP8 products in a tensor core, with and without promotion"),
    ):
        verbs.add_parser(verb, help=text).add_argument("--picture", type=Path, help="draw the curves to this PNG file")
    verbs.add_parser("pytorch", help="losses of the first twenty iterations beside PyTorch's")
    options = parser.parse_args()
    try:
        if options.verb == "run":
            _run(options.study, options)
        elif options.verb == "keep":
            for experiment in _chosen(options.study, options.only):
                print(f"{experiment.name}: {keep(options.study, experiment, options.out)} records kept")
        elif options.verb == "show":
            _show(options.study, options)
        elif options.verb == "sums":
            from benchmarks.demonstrations import sums as long_sums

            long_sums.main(options.picture)
        elif options.verb == "promotion":
            from benchmarks.demonstrations import promotion

            promotion.main(options.picture)
        else:
            from benchmarks.demonstrations import pytorch

            pytorch.main()
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
