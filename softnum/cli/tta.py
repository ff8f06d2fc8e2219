"""``softnum tta``: the main job, from designs to a table of time-to-accuracy."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli import exit_codes, need, writable_folder
from softnum.cli.networks import NETWORK_HELP, Data, DataFolder, HeldOut, NetworkOptions, Samples
from softnum.cli.timings import TimingFiles
from softnum.cli.train import progress_bar
from softnum.cli.updates import Updates, with_groups

__all__ = ["register"]

_OWN = NetworkOptions()
_DEFAULTS = Updates()
_FILES = TimingFiles()
_VARIANTS = {"all": None, "stated": "stated hardware", "equal-area": "equal area"}


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("tta", short_help="Compare designs by time-to-accuracy.")(exit_codes(with_groups(tta)))


def _seeds(text: str) -> list[int]:
    """``"3"`` is 1, 2, 3; ``"5,7,9"`` is those."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds must be a count or a list like 1,2,3, got {text!r}") from None
    if len(numbers) > 1:
        return numbers
    if numbers[0] < 1:
        raise ValueError(f"--seeds must be at least 1, got {numbers[0]}")
    return list(range(1, numbers[0] + 1))


def _points(cases, settings, timings):
    """The designs of a study as softnum.tta wants them."""
    from softnum.train import design_gemms, load_design, make_network
    from softnum.tta import DesignPoint

    network = make_network(settings.network, data=settings.data, **settings.network_options)
    points = []
    for case in cases:
        design = load_design(case.design)
        design.check_layers(network.layer_names)
        design.check_operators(network.operators)
        if not design.hardware and timings is None:
            raise ValueError(
                f"{design.path}: states no [hardware], so its iteration cannot be simulated; add the table (see the "
                "shipped designs) or give times with --timings"
            )
        if design.hardware:
            table = {
                "name": design.name,
                "hardware": design.hardware,
                "gemms": design_gemms(design, network, case.batch),
            }
            points.append(DesignPoint.from_table(table, str(design.path)))
        else:  # only its name is looked up in the timing file
            points.append(DesignPoint(design.name, None, ()))
    return points


def tta(
    designs: Annotated[
        str | None,
        typer.Option(help="Design files or names, with commas between them.  [default: shipped a to h]"),
    ] = None,
    seeds: Annotated[str, typer.Option(help="How many seeds, or a list like 1,2,3.")] = "3",
    network: Annotated[str, typer.Option(help=NETWORK_HELP)] = "mlp",
    own: NetworkOptions = _OWN,
    data: Data = None,
    data_dir: DataFolder = None,
    samples: Samples = None,
    held_out: HeldOut = None,
    batch: Annotated[
        int | None, typer.Option(help="Samples per iteration.  [default: 32; of the shipped d and e 256]")
    ] = None,
    updates: Updates = _DEFAULTS,
    epochs: Annotated[int, typer.Option(help="Passes over the training samples.")] = 20,
    target: Annotated[float, typer.Option(help="Accuracy on held-out samples that a run has to reach.")] = 0.95,
    baseline: Annotated[str | None, typer.Option(help="Design that speed-ups are over.  [default: the first]")] = None,
    files: TimingFiles = _FILES,
    reports: Annotated[
        list[Path] | None, typer.Option(help="Folder of SCALE-Sim reports to look in first; may be given again.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Run SCALE-Sim for designs without a report.")] = False,
    variant: Annotated[str, typer.Option(help="Hardware: all, stated, or equal-area.")] = "all",
    jobs: Annotated[int | None, typer.Option(help="Processes.  [default: one for each core]")] = None,
    out: Annotated[Path, typer.Option(help="Folder of results.json, tta.png and the records.")] = Path("runs/tta"),
    force: Annotated[bool, typer.Option("--force", help="Train again, also what is finished.")] = False,
) -> None:
    """Compare designs by time-to-accuracy: iterations to the target (trained) x time per iteration (simulated).

    Without options: an MLP 64-128-10 on scikit-learn's handwritten digits under eight designs with three seeds each.
    Finished runs are not trained again, so a study can be interrupted and widened.

    \b
      softnum tta --designs a-float32,my.toml --simulate
      softnum tta --designs a-float32,my.toml --timings times.csv
      softnum tta --designs a-float32,my.toml --timings a-float32=v100.log --timings my=mine.log

    times.csv has the columns design,iteration,seconds or design,iteration,cycles,clock; --timings also reads logs of
    simulators and profilers (softnum timings --formats).
    """
    need("joblib", "sklearn", "matplotlib")  # before minutes of training that a missing one would throw away
    from softnum.train import Settings, load_design, make_network, run_study
    from softnum.train.study import default_cases
    from softnum.tta import read_records
    from softnum.tta.study import conclude, study_variants

    if variant not in _VARIANTS:
        raise ValueError(f"--variant must be one of {', '.join(_VARIANTS)}, got {variant!r}")
    reading = files.reading()
    timings = reading["timings"]
    if timings is not None:
        for option, given in (("--simulate", simulate), ("--reports", reports), ("--variant", variant != "all")):
            if given:
                raise ValueError(f"{option} is for SCALE-Sim's times, which --timings replaces; leave one of them out")
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}; leave it out for one process a core")
    writable_folder(out)
    if not 0 < target <= 1:
        raise ValueError(f"--target must lie in (0, 1], got {target}")
    cases = default_cases(None if designs is None else [part.strip() for part in designs.split(",")])
    if batch is not None:
        cases = [replace(case, batch=batch) for case in cases]
    chosen = _seeds(seeds)
    settings = Settings(
        network=network,
        network_options=own.of(network),
        data=data,
        data_folder=data_dir,
        samples=samples,
        held_out=held_out,
        epochs=epochs,
        **updates.settings(),
    )
    said = settings.describe_updates()  # raises what would end the first run
    base = load_design(baseline or cases[0].design).name
    # Times first: a missing report or a malformed file costs seconds, not the training.
    variants = study_variants(
        _points(cases, settings, timings), baseline=base, out=out, **reading,
        reports=reports or (), run_simulator=simulate, progress=lambda line: typer.echo(line, err=True),
    )  # fmt: skip
    if timings is None and variant != "all":
        variants = [v for v in variants if v.label == _VARIANTS[variant]]
    counts = {True: 0, False: 0}
    with progress_bar() as step:

        def show(done: int, total: int, text: str, trained: bool) -> None:
            counts[trained] += 1
            step(done, total, f"runs: {counts[False]} found, {counts[True]} trained; last {text}")

        records = run_study(
            cases, settings, seeds=chosen, out=out / "records", jobs=jobs, force=force, progress=show
        )  # fmt: skip
    conclude(
        read_records(records), variants, target=target, baseline=base, out=out,
        inputs={
            "designs": [case.design for case in cases], "seeds": chosen, "epochs": epochs,
            "network": make_network(network, data=settings.data, **settings.network_options).describe(),
            "data": settings.data, "batches": [case.batch for case in cases], **said,
        },
    )  # fmt: skip
    typer.echo(f"\nWritten: {out / 'results.json'}\n         {out / 'tta.png'}\n         {out / 'records'}")
