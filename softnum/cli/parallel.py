"""``softnum parallel``: data-parallel training over a network."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file
from softnum.cli.layer_times import LayerTimeOptions
from softnum.cli.networks import Data, NetworkOptions
from softnum.cli.options import PRECISION, Picture
from softnum.cli.outcomes import stated
from softnum.cli.served import served
from softnum.cli.systems import SystemOptions, on_system
from softnum.cli.tables import print_table, si, whole_numbers, words, write_rows
from softnum.cli.updates import with_groups
from softnum.cli.workloads import WORKLOAD_HELP, Dims, Sequence, workloads_of

__all__ = ["register"]

_OWN, _TIMING, _SYSTEM = NetworkOptions(), LayerTimeOptions(), SystemOptions()
#: What a command on a system has no use for.
_LINKS = (
    "bandwidth", "latency", "compress", "method", "servers", "server", "updates", "device", "efficiency", "reports",
    "layer_times", "per_layer", "plot",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("parallel", short_help="Say what a network of workers gains, and the bandwidth it needs.")(
        exit_codes(with_groups(parallel))
    )


def parallel(
    ctx: typer.Context,
    network: Annotated[str, typer.Argument(help=WORKLOAD_HELP)],
    workers: Annotated[str, typer.Option(help="How many compute in parallel: 2,4,8.")],
    bandwidth: Annotated[
        str | None, typer.Option(help='Of each worker\'s link, in bits: "10 Gb/s,100 Gb/s"; a system states its own.')
    ] = None,
    design: Annotated[
        str | None, typer.Option(help="Design files or names, separated by commas.  [default: a-float32]")
    ] = None,
    precision: Annotated[str | None, typer.Option(help=PRECISION)] = None,
    batch: Annotated[int | None, typer.Option(help="Samples of each worker's iteration.  [default: 32]")] = None,
    sequence: Sequence = None,
    dim: Dims = None,
    own: NetworkOptions = _OWN,
    data: Data = None,
    latency: Annotated[str | None, typer.Option(help='Latency of a message, like "5 us".  [default: none]')] = None,
    compress: Annotated[
        str | None,
        typer.Option(
            help="Formats in which gradients are sent, beside that in which they are stored; or top_k(share=0.01), "
            "one_bit, sign, low_rank(rank=4)."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="How gradients are added up: ring (all-reduce) or server.")] = "ring",
    servers: Annotated[int, typer.Option(help="With --method server: how many servers share the parameters.")] = 1,
    server: Annotated[
        str | None,
        typer.Option(
            help=(
                "With --method server: a server that does not wait for all workers: asynchronous, "
                "stale_synchronous(bound=2) or delayed(by=3), as in softnum train."
            )
        ),
    ] = None,
    updates: Annotated[int, typer.Option(help="With --server: how many updates are timed, from the start.")] = 1000,
    no_overlap: Annotated[
        bool, typer.Option("--no-overlap", help="Send nothing before the backward pass is done.")
    ] = False,
    timing: LayerTimeOptions = _TIMING,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help=("Show when the gradients of each layer are sent."))
    ] = False,
    plot: Picture = None,
    out: Annotated[Path | None, typer.Option(help="Write everything as .json, or the table as .csv.")] = None,
    shared: SystemOptions = _SYSTEM,
) -> None:
    """Report what data-parallel workers gain: each computes a batch, then they add up their gradients.

    The gradients of a layer are sent as soon as they are computed, while the backward pass goes on; communication that
    remains after it is exposed. "Least bandwidth" is that above which so many workers beat one, and one fewer; "any" is
    at every one.

    \b
      softnum parallel resnet --design a-float32,c-wang-fp8 --workers 2,4,8 --bandwidth "1 Gb/s,10 Gb/s"
      softnum parallel resnet50 --device v100 --workers 8 --bandwidth "10 Gb/s" --latency "5 us" --compress e5m2
      softnum parallel mlp --workers 4 --bandwidth "10 Gb/s" --reports runs/tta/scalesim --per-layer
      softnum parallel lenet5 --workers 2,4 --bandwidth "100 Gb/s" --method server --servers 2 --plot parallel.png
      softnum parallel mlp --workers 4 --bandwidth "10 Gb/s" --method server --server "stale_synchronous(bound=2)"
      softnum parallel llama3-70b --system dgx-h100 --workers 8 --batch 16 --tensor 8 --pipeline 4 --zero 1

    Times are of a roofline (estimates), of SCALE-Sim (--reports), or your own (--layer-times, in seconds).

    With --server updates come one by one, in the order of softnum train --server: seconds of an update, and how many
    updates the weights of a gradient lack ("staleness"). A batch is then that of an update.

    With --system tensor, pipeline, context and expert parallelism are added to data parallelism: --workers x --tensor x
    --pipeline x --context devices, --batch samples for each worker. Printed are a device's computing time, exposed
    exchanges, pipeline bubble and memory.
    """
    from softnum.tta.quantities import bit_rate, duration
    from softnum.tta.workloads import Exchange, minimum_bandwidth, parallel_sweep

    for path in (plot, out):
        if path is not None:
            writable_file(path)
    counts = whole_numbers(workers, "--workers")
    if shared.system is not None:
        used = [f"--{name.replace('_', '-')}" for name in _LINKS if name in stated(ctx)]
        if used or own.of(network) or data:
            raise ValueError(
                f"{used[0] if used else 'an option of networks'} has no effect with --system; leave it out"
            )
        on_system(
            network, shared, counts, batch, sequence, words(design), words(precision),
            overlap=not no_overlap, device_file=timing.device_file, out=out,
        )  # fmt: skip
        if out is not None:
            typer.echo(f"Written: {out}")
        return
    if shared.given():
        raise ValueError(f"{shared.given()[0]} is for a step on a system; add --system dgx-h100, or leave it out")
    if bandwidth is None:
        raise ValueError('state the workers\' links, like --bandwidth "100 Gb/s", or a system: --system dgx-h100')
    if plot is not None:
        need("matplotlib")
    rates = [bit_rate(part, "--bandwidth") for part in words(bandwidth)]
    plain = Exchange(
        duration(latency, "--latency") if latency else 0, method, servers, overlap=not no_overlap
    )  # fmt: skip
    exchanges = [plain, *(replace(plain, compress=name) for name in words(compress))]
    batches = None if batch is None else [batch]
    works = workloads_of(
        network, words(design), batches, precisions=words(precision), options=own.of(network), data=data,
        sequence=sequence, dims=dim,
    )  # fmt: skip
    timed = timing.timed(works)
    if server is not None:
        unused = [name for name, value in (("--per-layer", per_layer), ("--plot", plot), ("--no-overlap", no_overlap))
                  if value]  # fmt: skip
        if unused:
            raise ValueError(
                f"{unused[0]} has no effect with --server, whose updates are sent one by one; leave it out"
            )
        served(timed[0][0].network, timed, counts, rates, exchanges, words(server), updates, out)
        return
    if plot is not None and len(timed) > 1:
        raise ValueError(f"--plot draws one design on one device, and {len(timed)} are given; name one of each")
    rows, tables, times = [], [], []
    for work, seconds, source in timed:
        for exchange in exchanges:
            found = parallel_sweep(work, seconds, counts, rates, exchange)
            times += [(work, time) for time in found]
            rows += [_row(work, time) for time in found]
            least = {
                count: {
                    "over_1": minimum_bandwidth(work, seconds, count, 1, exchange),
                    "over_one_fewer": minimum_bandwidth(work, seconds, count, count - 1, exchange),
                }
                for count in counts
                if count > 1
            }
            tables.append((work, exchange, source, least, found))
    _print(tables, per_layer)
    if plot is not None:
        from softnum.tta.outcomes import plot_parallel

        plot_parallel(plot, [time for _, time in times])
    if out is not None:
        write_rows(out, rows, {"parallel": [_table(*each) for each in tables]})
    for path in (plot, out):
        if path is not None:
            typer.echo(f"Written: {path}")


def _row(work, time) -> dict:
    """A row of the table, as plain values."""
    facts = {key: value for key, value in time.to_table().items() if key != "transfers"}
    return {"network": work.network, "design": work.design, **facts}


def _table(work, exchange, source, least, found) -> dict:
    return {
        "network": work.network, "design": work.design, "batch": work.batch, "times": source,
        "least_bandwidth": {
            str(count): {name: None if rate is None else float(rate) for name, rate in rates.items()}
            for count, rates in least.items()
        },
        "iterations": [time.to_table() for time in found],
    }  # fmt: skip


def _rate(rate) -> str:
    return "none" if rate is None else "any" if rate == 0 else si(float(rate), "b/s")


def _seconds(value) -> str:
    from softnum.tta.quantities import format_seconds

    return format_seconds(float(value)) if value else "0"


def _print(tables, per_layer: bool) -> None:
    network = tables[0][0].network
    print_table(
        f"{network}: an iteration of data-parallel workers",
        [
            "<Design", "<Sent as", "Workers", "Bandwidth", "Alone", "Exposed", "Together", "Speed-up", "Efficiency",
            "Samples/s",
        ],
        [
            (work.design, exchange.compress or "stored", time.workers, si(float(time.bandwidth), "b/s"),
             _seconds(time.compute), _seconds(time.exposed), _seconds(time.seconds), f"{float(time.speedup):.2f}",
             f"{float(time.efficiency):.0%}", f"{float(time.throughput):,.0f}")
            for work, exchange, _, _, found in tables
            for time in found
        ],
        dict.fromkeys(f"{work.design}: times of {source}" for work, _, source, _, _ in tables),
    )  # fmt: skip
    least = [
        (work.design, exchange.compress or "stored", count, _rate(rates["over_1"]), _rate(rates["over_one_fewer"]))
        for work, exchange, _, rates_of, _ in tables
        for count, rates in rates_of.items()
    ]
    if least:
        print_table(
            f"{network}: least bandwidth at which workers help",
            ["<Design", "<Sent as", "Workers", "Over one", "Over one fewer"], least,
            ["Above it their throughput is higher, at every bandwidth; none: latency alone takes too long."],
        )  # fmt: skip
    for work, exchange, _, _, found in tables if per_layer else ():
        for time in found:
            print_table(
                f"{work.design}, {time.workers} workers, {si(float(time.bandwidth), 'b/s')}, sent as "
                f"{exchange.compress or 'stored'}: when gradients are sent",
                ["<Layer", "Bytes", "Ready", "Start", "End"],
                [(t.layer, si(t.bytes, "B"), *map(_seconds, (t.ready, t.start, t.end))) for t in time.transfers],
            )
