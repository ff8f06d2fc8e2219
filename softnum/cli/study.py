"""``softnum study``: many networks, designs, seeds and batch sizes, from one file."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file, writable_folder
from softnum.cli.options import ReplaceFiles
from softnum.cli.outcomes import Shown
from softnum.cli.reuse import NoReuse, store_of
from softnum.cli.train import Device, progress_bar
from softnum.cli.updates import with_groups

__all__ = ["register"]

_HELP = """Carry out a study: every network x design x batch size x seed that a file asks for.

\b
  softnum study new study.toml          a file to start from, with every key explained
  softnum study plan study.toml         what would run, and what is finished
  softnum study run study.toml          train, simulate, compare, report
  softnum study status runs/study       how far it is, also while it runs

A run is known by a checksum of everything that determines its record, so the same command goes on after an
interruption, trains only what a change has touched, and brings back what was trained before.
"""

_SHOWN = Shown()
Study = Annotated[Path, typer.Argument(help="The study's file (TOML).")]
Out = Annotated[Path | None, typer.Option(help="Folder of the study.  [default: runs/<the study's name>]")]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    for name, verb, short in (
        ("new", new, "Write a study's file to start from."),
        ("plan", plan, "Say what would run; nothing is written."),
        ("run", with_groups(run), "Train what is missing, and compare."),
        ("status", status, "Say how far a study is."),
    ):
        group.command(name, short_help=short)(exit_codes(verb))
    app.add_typer(group, name="study", short_help="Carry out a study of many runs from a file.")


def new(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
    force: ReplaceFiles = False,
) -> None:
    """Write a study's file to start from, in which every key is explained."""
    from softnum.runtime.atomic import write_atomic
    from softnum.train.studies.study_tables import TEMPLATE

    writable_file(file)
    if file.exists() and not force:
        raise ValueError(f"{file} exists; name another file, or add --force to replace it")
    write_atomic(file, TEMPLATE.format(name=file.stem))
    typer.echo(f"Written: {file}\nChange it, then: softnum study plan {file}")


def plan(study: Study, out: Out = None, no_reuse: NoReuse = False) -> None:
    """List the runs, which of them are finished, and what would happen to records that belong to none of them.

    \b
      softnum study plan study.toml
    """
    need("joblib", "sklearn", "matplotlib", "scipy")
    from softnum.train import plan_study, read_study

    asked = read_study(study)
    _print_plan(plan_study(asked, _folder(asked, out), store=store_of(no_reuse)))


def run(
    study: Study,
    out: Out = None,
    jobs: Annotated[int | None, typer.Option(help="Processes.  [default: one for each core, or one on a GPU]")] = None,
    device: Device = "cpu",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, whose workers train instead: tcp://host:8786.")
    ] = None,
    retries: Annotated[int, typer.Option(help="How often to retry a run that failed.")] = 2,
    no_reuse: NoReuse = False,
    shown: Shown = _SHOWN,
) -> None:
    """Train what is missing, compare each network's designs by time-to-accuracy, and write the report.

    \b
      softnum study run study.toml
      softnum study run study.toml --jobs 8 --out runs/fp8
      softnum study run study.toml --explain --plots charts
      softnum study run study.toml --scheduler tcp://10.0.0.1:8786

    Interrupt it at any time: the same command goes on from the last whole epoch of each run. A run that fails leaves
    the others alone; it is tried again, and named at the end (exit code 1). Records do not depend on --jobs or
    --scheduler, not by a bit.
    """
    need("joblib", "sklearn", "matplotlib", "scipy")
    from softnum.train import conduct_study, read_study

    asked = read_study(study)
    folder = _folder(asked, out)
    if asked.html:
        need("altair", "jinja2", "jsonschema", "vl_convert")
    writable_folder(folder)
    if shown.plots is not None:
        writable_folder(shown.plots)
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}; leave it out for one process a core")
    if jobs is not None and scheduler is not None:
        raise ValueError("--jobs is for processes of this machine, which --scheduler replaces; leave one of them out")
    if retries < 0:
        raise ValueError(f"--retries must be 0 or more, got {retries}")
    store = store_of(no_reuse)
    with progress_bar() as step:
        outcome = conduct_study(
            asked, folder, jobs=jobs, device=device, scheduler=scheduler, retries=retries, progress=step,
            say=lambda line: typer.echo(line, err=True), explain=shown.explain, plots=shown.plots, store=store,
        )  # fmt: skip
    copied = f"{outcome.copied} copied from runs of the same arithmetic, " if outcome.copied else ""
    copied += f"{outcome.taken} taken from earlier studies, " if outcome.taken else ""
    typer.echo(f"\nRuns: {outcome.found} found, {outcome.trained} trained, {copied}{len(outcome.failed)} failed")
    for note in outcome.notes:
        typer.echo(note)
    for written in (folder / "study.json", *_results(asked, folder), *outcome.plots, *filter(None, [outcome.report])):
        typer.echo(f"Written: {written}")
    for name, error in outcome.failed.items():
        typer.echo(f"softnum: failed: {name}: {' '.join(error.split())}", err=True)
    for name, error in outcome.comparisons.items():
        typer.echo(f"softnum: no results: {name}: {' '.join(error.split())}", err=True)
    if not outcome.complete:
        typer.echo(f"softnum: every attempt is in {folder / 'runs.jsonl'}", err=True)
        raise typer.Exit(1)


def status(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The study's folder.")],
) -> None:
    """Show which runs of a study are finished, how far the others are, and why some failed.

    \b
      softnum study status runs/study
    """
    from softnum.train.studies.status import study_status

    found = study_status(out)
    rows = [(run.name, run.state, f"{run.done}/{run.iterations}", " ".join(run.error.split())) for run in found]
    _print_table(f"{out}", ("run", "state", "iterations", "error"), rows)
    states = [run.state for run in found]
    typer.echo(", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)))


def _folder(study, out: Path | None) -> Path:
    return Path("runs", study.name) if out is None else out


def _results(study, folder: Path) -> list[Path]:
    files = [folder / comparison.folder / "results.json" for comparison in study.comparisons]
    return [file for file in files if file.is_file()]


_WORDS = {
    "found": "finished",
    "set aside": "finished before, comes back",
    "same arithmetic": "finished, with another first row",
    "earlier study": "finished in an earlier study",
    "shared": "has the rows of a run to train",
    "started": "goes on after iteration {done}",
    "new": "to train",
    "unusable": "cannot be trained: {error}",
}


def _print_plan(plan) -> None:
    from softnum.train.studies.trials import tuning_plan

    rows: dict[tuple[str, ...], dict[str, list[str]]] = {}
    places = [comparison.folder for comparison in plan.study.comparisons]
    for run in sorted(plan.runs, key=lambda run: places.index(run.comparison.folder)):
        text = _WORDS[run.state].format(done=run.done, error=" ".join(run.error.split()))
        label = f"{'tuning ' if run.part == 'trial' else ''}{run.label}"
        row = rows.setdefault((run.comparison.folder, label, str(run.task.settings.batch), text), {})
        row.setdefault(f" at x{run.multiplier:g}" if run.part == "trial" else "", []).append(str(run.seed))
    table = [(*row[:3], _seeds(seeds), row[3]) for row, seeds in rows.items()]
    _print_table(f"{plan.study.name} in {plan.out}", ("network", "design", "batch", "seeds", "runs"), table)
    for path, name in plan.strangers:
        typer.echo(f"{path} belongs to no run: would be set aside as {Path('aside', name)}")
    for comparison in plan.study.comparisons:
        if (cost := tuning_plan(plan, comparison)) is not None:
            typer.echo(f"{comparison.folder}: {cost.text}")
    iterations = sum(run.iterations - run.done for run in plan.to_train)
    typer.echo(f"{len(plan.runs)} runs, {len(plan.to_train)} to train: {iterations} iterations")


def _seeds(by_rate: dict[str, list[str]]) -> str:
    """Seeds with the rates that they are tried at; rates with the same seeds share them."""
    rates: dict[str, list[str]] = {}
    for rate, seeds in by_rate.items():
        rates.setdefault(", ".join(seeds), []).append(rate)
    return "; ".join(seeds + ",".join(of).replace(", at", ",") for seeds, of in rates.items())


def _print_table(title: str, header, rows) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in header:
        table.add_column(name, justify="right" if name in ("batch", "iterations") else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # as it is: an error may name a [table]
    typer.echo(title)
    console = Console()
    console.print(table, width=None if console.is_terminal else 160)
