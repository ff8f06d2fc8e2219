"""``softnum estimate``: times where there is no simulator, from a roofline or from a table of matrix products."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file
from softnum.cli.networks import Data, NetworkOptions
from softnum.cli.options import BATCH, PRECISION, DeviceFile, OutJson, Picture
from softnum.cli.outcomes import stated
from softnum.cli.tables import print_table, si, whole_numbers, words
from softnum.cli.updates import with_groups
from softnum.cli.workloads import WORKLOAD_HELP, Dims, Sequence, devices_of, workloads_of

__all__ = ["register"]

_OWN = NetworkOptions()


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("estimate", short_help="Estimate times without a simulator: roofline, tables of GEMMs.")(
        exit_codes(with_groups(estimate))
    )


def estimate(
    ctx: typer.Context,
    network: Annotated[str | None, typer.Argument(help=WORKLOAD_HELP)] = None,
    design: Annotated[
        str | None, typer.Option(help="Design files or names, separated by commas.  [default: a-float32]")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Devices, separated by commas.  [default: the design's own array]")
    ] = None,
    precision: Annotated[str | None, typer.Option(help=PRECISION)] = None,
    batch: Annotated[
        str | None, typer.Option(help=f"{BATCH} Several like 1,32,256 are compared.  [default: 32]")
    ] = None,
    sequence: Sequence = None,
    dim: Dims = None,
    own: NetworkOptions = _OWN,
    data: Data = None,
    efficiency: Annotated[float, typer.Option(help="Fraction of the roofline that is reached, up to 1.")] = 1.0,
    per_layer: Annotated[bool, typer.Option("--per-layer", help="List every operation and what limits it.")] = False,
    inference: Annotated[
        bool, typer.Option("--inference", help="Forward pass only: latency, throughput, cost.")
    ] = False,
    gemm_table: Annotated[
        Path | None, typer.Option(help="Times of matrix products (DeepBench's columns), in place of a roofline.")
    ] = None,
    measure: Annotated[
        Path | None, typer.Option(help="Time the network's matrix products on this machine; the table is kept there.")
    ] = None,
    matrix_share: Annotated[
        str | None,
        typer.Option(help="Share of matrix products in an iteration, like 0.4, or a profile: CSV operation,time."),
    ] = None,
    farthest: Annotated[
        float | None,
        typer.Option(help=("How far from a size in the table an estimate may extrapolate.  [default: 8 times]")),
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Training samples of an epoch, to roll up to runs a day.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of a run.  [default: 1]")] = None,
    nodes: Annotated[
        int | None, typer.Option(help=("Number of machines, each doing its own runs.  [default: 1]"))
    ] = None,
    devices: Annotated[bool, typer.Option("--devices", help="List the devices, with sources.")] = False,
    device_file: DeviceFile = None,
    fom: Annotated[Path | None, typer.Option(help="TOML with rates: CANDLE's figure of merit.")] = None,
    plot: Picture = None,
    times: Annotated[Path | None, typer.Option(help="CSV with the times, for softnum tta --timings.")] = None,
    out: OutJson = None,
) -> None:
    """Estimate the time of a training iteration where there is no simulator. Every result is labelled as an estimate.

    A roofline says how fast a device could be at best: no operation is faster than its arithmetic at peak or its bytes
    at full bandwidth. A table of measured matrix products says how fast one is, size by size.

    \b
      softnum estimate --devices                        what is known of which device, and from where
      softnum estimate resnet --design a-float32,c-wang-fp8 --device v100,h100-sxm --batch 32,256
      softnum estimate resnet50 --precision float32,mixed-float16 --device a100-80gb --batch 256
      softnum estimate mlp --per-layer                  on the design's own array
      softnum estimate mine.onnx --device a100-80gb --batch 8 --dim steps=128
      softnum estimate lenet5 --device t4 --inference --batch 1,64
      softnum estimate mlp --measure this.csv --matrix-share 0.8 --samples 1437 --epochs 20
      softnum estimate mlp --gemm-table deepbench.csv   the same from a table
      softnum estimate mlp --design a-float32,b-binary16 --device v100 --times v100.csv
      softnum estimate --fom rates.toml                 [unit.P1] old = 7475, new = {hours = 4, nodes = 94000}
    """
    if sum((devices, fom is not None, network is not None)) != 1:
        raise ValueError(
            "name one of: a network, --devices for the list, or --fom with a file of rates; "
            "softnum estimate --help has examples"
        )
    _refuse_unused(stated(ctx))
    for path in (plot, times, out, measure):
        if path is not None:
            writable_file(path)
    if devices:
        _list_devices(device_file, out)
        return
    if fom is not None:
        _figure_of_merit(fom, out)
        return
    batches = None if batch is None else whole_numbers(batch, "--batch")
    shared = {"precisions": words(precision), "options": own.of(network), "data": data, "sequence": sequence}
    shared |= {"dims": dim}
    works = workloads_of(network, words(design), batches, **shared)
    table_of = _table(works, gemm_table, measure)
    if table_of is not None:
        need("scipy")  # sizes between others are interpolated
        run = {"samples": samples, "epochs": 1 if epochs is None else epochs, "nodes": 1 if nodes is None else nodes}
        results = _rolled(works, table_of, matrix_share, device, device_file, run, farthest)
        _print_rolled(results, per_layer)
    else:
        results = _rooflines(works, device, device_file, efficiency, inference)
        _print_inference(results) if inference else _print_rooflines(results, per_layer)
    if plot is not None:
        _plot(plot, results)
    if times is not None:
        _write_times(times, results)
    _write_json(out, {"kind": "estimated", "estimates": [result.to_table() for result in results]})
    for path in (plot, times, out):
        if path is not None:
            typer.echo(f"Written: {path}")


def _refuse_unused(given):
    """ValueError for an option that this call has no use for, so that it cannot be believed to have done something."""
    for this, goes_with, names in (
        ("devices", "list of devices", {"device_file", "out"}),
        ("fom", "figure of merit", {"out"}),
    ):
        if this in given and (other := [name for name in given if name != this and name not in names]):
            raise ValueError(f"{_option(other[0])} has no part in the {goes_with}; leave it out, or --{this}")
    for name, others, what in (
        ("device_file", ("device", "devices"), "says what devices are, and --device which of them"),
        ("matrix_share", ("gemm_table", "measure"), "goes with a table of matrix products"),
        ("farthest", ("gemm_table", "measure"), "goes with a table of matrix products"),
        ("samples", ("gemm_table", "measure"), "goes with a table of matrix products"),
        ("epochs", ("samples",), "counts epochs of so many samples"),
        ("nodes", ("samples",), "counts the runs of nodes a day"),
    ):
        if name in given and not {*others} & {*given}:
            raise ValueError(f"{_option(name)} {what}; add {' or '.join(map(_option, others))}, or leave it out")
    for these, those, whose in (
        ({"inference", "plot", "efficiency"}, {"gemm_table", "measure"}, "of the roofline; leave it out with a table"),
        ({"plot", "times", "per_layer"}, {"inference"}, "of the training iteration; leave it out with --inference"),
    ):
        if those & {*given} and (found := [name for name in given if name in these]):
            raise ValueError(f"{_option(found[0])} is {whose}")


def _option(name):
    return f"--{name.replace('_', '-')}" if name != "network" else "a network"


def _rooflines(works, device, device_file, efficiency, inference):
    from softnum import tta

    compute = tta.estimates.inference if inference else tta.roofline
    return [compute(work, where, efficiency) for work, where in devices_of(works, device, device_file)]


def _table(works, gemm_table, measure):
    from softnum.tta.estimates import GemmTable, measure_gemms

    if gemm_table is not None and measure is not None:
        raise ValueError("--gemm-table reads a table and --measure makes one; leave one of them out")
    if gemm_table is not None:
        return GemmTable.read(gemm_table)
    if measure is None:
        return None
    from softnum.cli.train import progress_bar

    sizes = sorted({gemm.shape for work, _ in works for gemm in work.gemms})
    rows = []
    with progress_bar() as step:
        for done, size in enumerate(sizes, 1):
            part = measure_gemms([size])
            rows += part.rows
            step(done, len(sizes), f"matrix products: {' x '.join(map(str, size))}")
    table = GemmTable(tuple(rows), part.source, part.kind)
    table.write(measure)
    typer.echo(f"Written: {measure}")
    return table


def _rolled(works, table, share, device, device_file, run, farthest):
    from softnum.tta import device as find
    from softnum.tta.estimates import FARTHEST, matrix_share, roll_up

    if share is not None and device is not None:
        raise ValueError(
            "--matrix-share and --device both state the time of the other operations; leave one of them out"
        )
    where = None
    if share is not None:
        try:
            share = float(share)
        except ValueError:
            share = matrix_share(share)
    elif device is not None:
        where = find(device, device_file)
    farthest = FARTHEST if farthest is None else farthest
    return [roll_up(work, table, share=share, device=where, farthest=farthest, **run) for work, _ in works]


def _print_rooflines(results, per_layer):
    from softnum.tta.quantities import format_seconds

    rows = [
        (r.design, r.batch, r.device.name, format_seconds(r.seconds), f"{r.samples_per_second:,.0f}",
         f"{r.compute_bound:.0%}", f"{r.share_of_peak:.1%}")
        for r in results
    ]  # fmt: skip
    reasons = dict.fromkeys(f"{r.device.name}: {reason}" for r in results for reason in r.proxies)
    limit = results[0].efficiency
    print_table(
        f"{results[0].network}: estimated by roofline" + ("" if limit == 1 else f", {limit:g} of it reached"),
        ["<Design", "Batch", "<Device", "s/iteration", "Samples/s", "Compute-bound", "Of peak"], rows,
        ["A bound from below: no overhead, no cache, no overlap. Compute-bound is the share of the time."] + [*reasons]
        if limit == 1 else [*reasons],
    )  # fmt: skip
    for result in results if per_layer else ():
        print_table(
            f"{result.design}, batch {result.batch}, {result.device.title}",
            ["<Layer", "<Stage", "<Operation", "FLOPs", "Bytes", "FLOPs/byte", "Time", "<Limit", "<Rate"],
            [
                (row.layer, row.stage, row.kind, si(row.flops, ""), si(row.bytes, "B"), f"{row.intensity:.3g}",
                 format_seconds(row.seconds) if row.seconds else "0", row.bound,
                 row.peak.format + ("*" if row.peak.proxy else ""))
                for row in result.rows
            ],
            ["* stands in for the operands' own format"] if result.proxies else [],
        )  # fmt: skip


def _print_inference(results):
    from softnum.tta.quantities import format_seconds

    money = [r.dollars_per_million for r in results]
    print_table(
        f"{results[0].network}: inference, estimated by roofline",
        ["<Design", "Batch", "<Device", "Latency", "Samples/s", "$ a million"],
        [
            (r.design, r.batch, r.device, format_seconds(r.latency), f"{r.throughput:,.0f}",
             "-" if cost is None else f"{cost:.3g}")
            for r, cost in zip(results, money, strict=True)
        ],
        ["- where no rent with a source is known"] if None in money else [],
    )  # fmt: skip


def _print_rolled(results, per_layer):
    from softnum.tta.quantities import format_seconds

    rows = []
    for r in results:
        passes = [format_seconds(seconds) if seconds else "0" for seconds in r.passes.values()]
        run = [format_seconds(r.run_seconds), f"{r.units_per_day:,.4g}"] if r.samples else []
        other = format_seconds(r.other) if r.other else "0"
        rows.append((r.design, r.batch, *passes, other, format_seconds(r.seconds), *run))
    rules: dict[str, int] = {}
    for each in (each for r in results for each in r.gemms):
        rules[each.rule] = rules.get(each.rule, 0) + 1
    notes = [f"sizes: {', '.join(f'{count} {rule}' for rule, count in rules.items())}"]
    notes += dict.fromkeys(f"other operations: {r.other_rule}" for r in results)
    if any(each.proxy for r in results for each in r.gemms):
        notes.append("some operands' formats are not in the table; the narrowest that holds them stands in")
    run = ["Run", "Runs a day"] if results[0].samples else []
    print_table(
        f"{results[0].network}: estimated from {results[0].source}",
        ["<Design", "Batch", "Forward", "Backward data", "Backward weight", "Other", "s/iteration", *run], rows, notes,
    )  # fmt: skip
    for result in results if per_layer else ():
        print_table(
            f"{result.design}, batch {result.batch}",
            ["<Layer", "<Pass", "M", "N", "K", "Count", "Time", "<Rule", "Away"],
            [
                (each.gemm.layer, each.gemm.phase, *each.gemm.shape, each.gemm.count, format_seconds(each.seconds),
                 each.rule, f"{each.distance:.3g}x")
                for each in result.gemms
            ],
        )  # fmt: skip


def _list_devices(device_file, out):
    import dataclasses

    from softnum.tta import devices

    known = devices(device_file)
    rows = []
    for each in known.values():
        peaks = "  ".join(f"{name} {flops / 1e12:g}" for name, flops in each.peaks.items())
        money = f"{each.rent.dollars:.4g}/h" if each.rent else f"{each.price.dollars:,.0f}" if each.price else "-"
        memory = "-" if each.memory is None else f"{each.memory / 1e9:g}"
        rows.append((each.name, memory, f"{each.bandwidth / 1e9:g}", "-" if each.watts is None else f"{each.watts:g}",
                     money, peaks))  # fmt: skip
    print_table("Devices", ["<Name", "GB", "GB/s", "W", "$", "~Peak TFLOP/s by format (dense)"], rows)
    for each in known.values():
        typer.echo(f"{each.name}: {each.title}. {each.source}." + (f" {each.note}." if each.note else ""))
        for what, money in (("rent", each.rent), ("price", each.price)):
            if money:
                detail = f" ({money.instance})" if money.instance else ""
                typer.echo(f"  {what} ${money.dollars:g}{detail}: {money.source}, {money.date}")
    _write_json(out, {"devices": [dataclasses.asdict(each) for each in known.values()]})


def _figure_of_merit(path, out):
    from softnum.tta.estimates import figure_of_merit, read_rates

    rates = read_rates(path)
    merit = figure_of_merit([new for _, new in rates.values()], [old for old, _ in rates.values()])
    print_table(
        "Figure of merit: harmonic mean of the new rates over harmonic mean of the old",
        ["<Work", "Old a day", "New a day", "Ratio"],
        [
            (name, f"{float(old):,.6g}", f"{float(new):,.6g}", f"{float(new / old):.2f}")
            for name, (old, new) in rates.items()
        ],
    )  # fmt: skip
    typer.echo(f"Figure of merit: {float(merit):.2f} ({merit})")
    _write_json(
        out,
        {"figure_of_merit": float(merit), "exact": str(merit),
         "rates": {name: {"old": float(old), "new": float(new)} for name, (old, new) in rates.items()}},
    )  # fmt: skip


def _plot(path, results):
    need("matplotlib")
    from softnum.tta.estimates import plot_roofline

    plot_roofline(path, results)


def _write_times(path, results):
    from softnum.tta import write_timings

    if len({result.design for result in results}) < len(results):
        raise ValueError("--times holds one time for each design; name one device and one batch")
    write_timings(path, [result.time for result in results])


def _write_json(path, data):
    from softnum.runtime.atomic import write_atomic

    if path is not None:
        write_atomic(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
