"""``softnum tta``: the main job, from designs to a table of time-to-accuracy."""

import difflib
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_folder
from softnum.cli.forecasts import ForecastOptions, on_a_law
from softnum.cli.networks import NETWORK_HELP, Data, DataFolder, HeldOut, NetworkOptions, Samples
from softnum.cli.options import BATCH, TrainAgain
from softnum.cli.outcomes import Curves, Outcomes, Shown, command_line, flag_of, stated
from softnum.cli.reuse import NoReuse, store_of, tell_taken
from softnum.cli.shipped import STUDY_HELP, open_shipped
from softnum.cli.targets import TARGET, check_target, own_target
from softnum.cli.timings import TimingFiles
from softnum.cli.train import Device, progress_bar
from softnum.cli.tuning import TuneRates, counted, tuning_of
from softnum.cli.updates import Updates, with_groups
from softnum.cli.workloads import is_onnx

__all__ = ["register"]

_OWN = NetworkOptions()
_DEFAULTS = Updates()
_OUTCOMES = Outcomes()
_CURVES = Curves()
_TUNING = TuneRates()
_SHOWN = Shown()
_FILES = TimingFiles()
_FORECAST = ForecastOptions()
#: What says how to train, and is not for curves that are there already.
_TRAINING = {
    "seeds", "network", "data", "data_dir", "samples", "held_out", "epochs", "jobs", "device", "force", "no_reuse",
    *(field.name for group in (NetworkOptions, Updates, TuneRates) for field in fields(group)),
}  # fmt: skip
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


def _points(cases, labels, settings, timings, metric: str):
    """The designs of a study as softnum.tta wants them."""
    from softnum.train import design_gemms, load_design
    from softnum.train.runs.loop import make_run
    from softnum.train.runs.own import is_own
    from softnum.tta import DesignPoint

    own = is_own(settings.network)
    network = None if own else settings.make_network()
    points = []
    for case, label in zip(cases, labels, strict=True):
        design = load_design(case.design)
        if own:
            config = make_run(case.settings(settings), design, 1).header()["config"]
            gemms = config["gemms"]
            if config["metric"] != metric:
                raise ValueError(
                    f"{settings.network} is judged by {config['metric']!r}, and --metric is {metric!r}; give --metric "
                    f"{config['metric']}, and --direction lower if less is better"
                )
        else:
            design.check_layers(network.layer_names)
            design.check_operators(network.operators)
            gemms = design_gemms(design, network, case.batch)
        if not design.hardware and timings is None:
            raise ValueError(
                f"{design.path}: states no [hardware], so its iteration cannot be simulated; add the table (see the "
                "shipped designs) or give times with --timings"
            )
        if design.hardware:
            table = {"name": label, "hardware": design.hardware, "gemms": gemms}
            points.append(DesignPoint.from_table(table, str(design.path)))
        else:  # only its name is looked up in the timing file
            points.append(DesignPoint(label, None, ()))
    return points


def _baseline(text: str | None, labels: list[str], load_design) -> str:
    """The label of the baseline: as it was given, or that of a design file."""
    if text is None or text in labels:
        return text or labels[0]
    name = load_design(text).name
    if name in labels:
        return name
    near = difflib.get_close_matches(text, labels, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"--baseline {text!r} is not a design of the study, which has {', '.join(labels)}{hint}")


def _check_times(timings, variant: str, reports, simulate: bool, simulator: str, dataflow: str) -> None:
    """Raise ValueError unless the options of times go together."""
    if variant not in _VARIANTS:
        raise ValueError(f"--variant must be one of {', '.join(_VARIANTS)}, got {variant!r}")
    if timings is not None:
        for option, given in (
            ("--simulate", simulate),
            ("--reports", reports),
            ("--variant", variant != "all"),
            ("--simulator", simulator != "scalesim"),
            ("--dataflow", dataflow != "os"),
        ):
            if given:
                raise ValueError(
                    f"{option} is for a simulator's times, which --timings replaces; leave one of them out"
                )


def _variants(points, variant: str, **times):
    """The times of the designs, of the hardware that was asked for."""
    from softnum.tta.study import chosen_variants, study_variants

    variants = study_variants(points, **times)
    return chosen_variants(variants, _VARIANTS[variant])


def _given_variants(runs, labels, variant: str, **times):
    """The times of curves' designs: from files, or a simulator's of the designs that the records name."""
    from softnum.tta import DesignPoint, design_points

    if times["timings"] is None:
        points = {point.name: point for point in design_points(runs)}
    else:
        points = {label: DesignPoint(label, None, ()) for label in labels}
    return _variants([points[label] for label in labels], variant, **times)


def _given_curves(ctx, curves, outcomes, shown, designs, batch, target, baseline, variant, out, **times) -> None:
    """The study of learning curves that are there already; no training code is imported."""
    from softnum.tta.accuracy import RecordSet
    from softnum.tta.outcomes import measured_variant
    from softnum.tta.study import conclude

    wrong = [name for name in stated(ctx) if name in _TRAINING]
    if wrong:
        raise ValueError(
            f"{flag_of(ctx, wrong[0])} is an option of training, and --accuracy trains nothing; leave one of them out"
        )
    need("matplotlib", "scipy")
    runs = curves.read(outcomes.metric, batch)
    labels = list(dict.fromkeys(record.label for record in runs.records))
    if designs is not None:
        wanted = [part.strip() for part in designs.split(",")]
        for name in wanted:
            if name not in labels:
                near = difflib.get_close_matches(name, labels, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"--designs: no curves of {name!r}; there are curves of {', '.join(labels)}{hint}")
        labels = wanted
        runs = RecordSet(tuple(record for record in runs.records if record.label in wanted), runs.excluded)
    if not labels:
        raise ValueError(f"no run of --accuracy is finished: {'; '.join(runs.excluded)}")
    kept, foreign = out / "workloads.json", next((r.path for r in runs.records if "gemms" not in r.config), None)
    if foreign is not None and kept.is_file():
        raise ValueError(
            f"{kept} lists the iterations of runs that softnum trained, and {foreign} does not say that it is of "
            "those; write to another folder (--out), or remove the file"
        )
    base = labels[0] if baseline is None else baseline
    target, direction = own_target(runs.records, target, outcomes)
    rules = replace(outcomes, direction=direction).rules(labels, base)
    inputs = {"command": command_line(ctx), "accuracy": curves.accuracy}
    logs = all(record.mlperf is not None for record in runs.records)
    measured = times["timings"] is None and any(record.timed for record in runs.records)
    if times["timings"] is None and (logs or measured):
        for option in ("simulate", "reports", "variant", "simulator", "dataflow"):
            if option in stated(ctx):
                raise ValueError(f"--{option} is for a simulator's times, and the curves state their own; leave it out")
    if times["timings"] is None and logs:
        times["timings"] = [(record.label, record.path) for record in runs.records]  # the logs have both
        measured = False
    if measured:
        variants = [measured_variant(runs)]
    else:
        variants = _given_variants(runs, labels, variant, baseline=base, out=out, **times)
    rules |= {"inputs": inputs, "explain": shown.explain}
    studies = conclude(runs, variants, target=target, baseline=base, out=out, **rules)
    shown.written(studies, out / "results.json", out / "tta.png")


def tta(
    ctx: typer.Context,
    designs: Annotated[
        str | None,
        typer.Option(
            "--designs",
            "--design",
            help="Design files or names, separated by commas; NAME@128 for batch 128.  [default: shipped a to h]",
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="How many seeds, or a list like 1,2,3.")] = "3",
    network: Annotated[str, typer.Option("--network", "--model", help=NETWORK_HELP)] = "mlp",
    own: NetworkOptions = _OWN,
    data: Data = None,
    data_dir: DataFolder = None,
    samples: Samples = None,
    held_out: HeldOut = None,
    batch: Annotated[int | None, typer.Option(help=f"{BATCH}  [default: 32; of the shipped d and e 256]")] = None,
    updates: Updates = _DEFAULTS,
    tuning: TuneRates = _TUNING,
    epochs: Annotated[int, typer.Option(help="Passes over the training samples.")] = 20,
    target: Annotated[
        float | None,
        typer.Option(
            help=(
                "Value of the metric on held-out samples that a run has to reach.  [default: 0.95; of MLPerf logs "
                "their own, or their benchmark's; of entries of DAWNBench its own]"
            )
        ),
    ] = None,
    outcomes: Outcomes = _OUTCOMES,
    baseline: Annotated[
        str | None,
        typer.Option(help="Design that speed-ups are relative to.  [default: the first given; of a folder, by name]"),
    ] = None,
    curves: Curves = _CURVES,
    files: TimingFiles = _FILES,
    reports: Annotated[
        list[Path] | None, typer.Option(help="Folder of a simulator's reports to look in first; may be given again.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Simulate designs that have no report.")] = False,
    simulator: Annotated[
        str, typer.Option(help="scalesim (SCALE-Sim: times) or zigzag (ZigZag: times and energies).")
    ] = "scalesim",
    dataflow: Annotated[
        str, typer.Option(help="What SCALE-Sim's cells keep: os (results), ws (weights) or is (inputs).")
    ] = "os",
    variant: Annotated[str, typer.Option(help="Hardware: all, stated, or equal-area.")] = "all",
    jobs: Annotated[int | None, typer.Option(help="Processes.  [default: one for each core, or one on a GPU]")] = None,
    device: Device = "cpu",
    out: Annotated[Path, typer.Option(help="Folder of results.json, tta.png and the records.")] = Path("runs/tta"),
    force: TrainAgain = False,
    no_reuse: NoReuse = False,
    study: Annotated[str | None, typer.Option(help=STUDY_HELP)] = None,
    shown: Shown = _SHOWN,
    forecast: ForecastOptions = _FORECAST,
) -> None:
    """Compare designs by time to accuracy: iterations to the target (trained) x time per iteration (simulated).

    Without options: an MLP 64-128-10 on scikit-learn's handwritten digits under eight designs with three seeds each.
    Finished runs are not trained again, so a study can be interrupted and widened; nor are runs that an earlier study
    has finished, wherever its folder is.

    \b
      softnum tta --designs a-float32,my.toml --simulate
      softnum tta --designs a-float32,my.toml --simulate --simulator zigzag
      softnum tta --model mine.py:make --designs a-float32,my.toml --simulate --epochs 5
      softnum tta --designs a-float32,my.toml --timings times.csv
      softnum tta --designs a-float32,my.toml --timings a-float32=v100.log --timings my=mine.log

    \b
      softnum tta --study resnet20

    A larger question, with its records: how narrow an accumulator of an FP8 unit may be for ResNet-20. Others:
    language-model, reduction-order, resnet20-sparsity.

    times.csv has the columns design,iteration,seconds or design,iteration,cycles,clock; --timings also reads logs of
    simulators and profilers (softnum timings --formats).

    \b
      softnum tta --designs a-float32,c-wang-fp8,a-float32@128,c-wang-fp8@128
                  --combine "c-wang-fp8 + a-float32@128 = c-wang-fp8@128" --simulate --rent 2.48

    Do two gains multiply? A line below the table compares their product with what both give together; --rent adds cost.

    \b
      softnum tta --designs a-float32,c-wang-fp8 --tune-rates 0.5,1,2

    Each design at its own learning rate, compared with all at one. Rates are chosen on other seeds; the cost is printed
    first.

    \b
      softnum tta --accuracy curves.csv --timings times.csv --metric wer --target 0.08 --reached consecutive:3

    Nothing is trained. curves.csv has the columns design,seed,iteration,batch and the metric.

    With a column seconds, minutes or hours, since the start, no times per iteration are needed, and TTA is measured.
    Entries of DAWNBench and logs of modded-nanogpt are read as published.

    \b
      softnum tta --accuracy dawn-bench-entries/CIFAR10/train --metric top1Accuracy
      softnum tta --accuracy muon=eb5659d0.txt --metric val_loss --target 3.28

    \b
      softnum tta --accuracy mine=results/resnet --accuracy other=result_0.txt

    \b
      softnum tta --model llama3-8b --design te-nvfp4-block-scaling --system mine.toml --law law.json --target-loss 2.2

    Nothing is trained or run: tokens by a scaling law (softnum law fit), times a step's time on a system that need not
    exist, with its failures: days, device-hours, cost and energy, with intervals and sources.

    MLPerf logs (rounds 0.5 to 5.1) have curve, time and target; a folder of them is one submission's repetitions.
    --metric BBOX picks a part of eval_accuracy. MLPerf's own figure, run_stop - run_start, is shown beside TTA.
    """
    if study is not None:
        open_shipped(ctx, study, target, variant, outcomes.energy_table, out, shown)
        return
    if is_onnx(network):
        raise ValueError(
            f"{network} is timed and not trained: softnum estimate {network}; a model to train is FILE.py:FUNCTION"
        )
    if forecast.law is not None:
        on_a_law(
            ctx, forecast, network, designs, batch, updates.optimiser, outcomes.rent, out, shown.explain
        )  # fmt: skip
        return
    if forecast.given():
        raise ValueError(
            f"{forecast.given()[0]} is an option of forecasts by a law; add --law law.json, or leave it out"
        )
    times = {**files.reading(), "reports": reports or (), "run_simulator": simulate}
    times |= {"simulator": simulator, "dataflow": dataflow, "jobs": jobs}
    times["progress"] = lambda line: typer.echo(line, err=True)
    _check_times(times["timings"], variant, reports, simulate, simulator, dataflow)
    writable_folder(out)
    if shown.plots is not None:
        writable_folder(shown.plots)
    if curves.accuracy:
        _given_curves(ctx, curves, outcomes, shown, designs, batch, target, baseline, variant, out, **times)
        return
    for name in sorted({field.name for field in fields(Curves)} & set(stated(ctx))):
        raise ValueError(f"--{name.replace('_', '-')} is for the curves of --accuracy; add it, or leave this out")
    target = TARGET if target is None else target
    check_target(target, outcomes.metric)
    from softnum.train.runs.own import is_own

    # before minutes of training that a missing one would throw away
    need("joblib", "torch" if is_own(network) else "sklearn", "matplotlib", "scipy")
    from softnum.train import Settings, case_workloads, load_design, run_study
    from softnum.train.engine.devices import check_device
    from softnum.train.runs.loop import describe_network
    from softnum.train.studies.study import case_labels, check_seeds, default_cases
    from softnum.tta import read_records, write_workloads
    from softnum.tta.study import conclude

    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}; leave it out for one process a core")
    check_device(device)
    cases = default_cases(None if designs is None else [part.strip() for part in designs.split(",")])
    if batch is not None:
        cases = [case if case.label else replace(case, batch=batch) for case in cases]  # NAME@64 says its own
    chosen = _seeds(seeds)
    check_seeds(chosen)
    grid = tuning.read(chosen)
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
    labels = case_labels(cases)
    base = _baseline(baseline, labels, load_design)
    rules = outcomes.rules(labels, base)
    # Times first: a missing report or a malformed file costs seconds, not the training.
    points = _points(cases, labels, settings, times["timings"], outcomes.metric)
    works = list(case_workloads(cases, settings))
    times["workloads"] = dict(zip(labels, works, strict=True))
    variants = _variants(points, variant, baseline=base, out=out, **times)
    tune = None if grid is None else tuning_of(cases, settings, grid, chosen, target, outcomes.metric, rules, out)
    write_workloads(out / "workloads.json", works)
    store = store_of(no_reuse)
    work = {"jobs": jobs, "device": device, "force": force, "store": store}
    with progress_bar() as step:
        paths = run_study(cases, settings, seeds=chosen, out=out / "records", **work, progress=counted(step, "runs"))
    records = read_records(paths, metric=outcomes.metric)
    tuned = None if tune is None else tune(records, **work)
    tell_taken(0 if store is None else store.taken, store)
    studies = conclude(
        records, variants, target=target, baseline=base, out=out, **rules, tuning=tuned, explain=shown.explain,
        inputs={
            "command": command_line(ctx),
            "designs": [case.design for case in cases], "seeds": chosen, "epochs": epochs,
            "network": describe_network(settings), "data": settings.data,
            "batches": [case.batch for case in cases], **said,
        },
    )  # fmt: skip
    written = [out / "results.json", out / "tta.png", out / "records", *([] if tuned is None else [out / "tuning"])]
    shown.written(studies, *written)
