"""``softnum traces write``: the job, and the system that it is to be simulated on."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import writable_folder
from softnum.cli.layer_times import LayerTimeOptions
from softnum.cli.links import LinkOptions
from softnum.cli.networks import Data, NetworkOptions
from softnum.cli.options import OUT_FOLDER, PRECISION, OneDesign
from softnum.cli.outcomes import stated
from softnum.cli.systems import SystemOptions
from softnum.cli.tables import print_table, si, words
from softnum.cli.workloads import WORKLOAD_HELP, Dims, Sequence, is_onnx, ways_of, workloads_of

__all__ = ["Proto", "seconds_text", "write"]

_OWN, _TIMING, _LINKS, _SYSTEM = NetworkOptions(), LayerTimeOptions(), LinkOptions(), SystemOptions()
#: options that say what layers take or how gradients are sent where no system does
_ALONE = ("compress", "memory", "device", "efficiency", "reports", "layer_times", "roofline", "data")

Proto = Annotated[
    Path | None, typer.Option(help="Chakra's schema, et_def.proto.  [default: what SOFTNUM_CHAKRA_PROTO names]")
]


def write(
    ctx: typer.Context,
    network: Annotated[str, typer.Argument(help=WORKLOAD_HELP)],
    out: Annotated[Path, typer.Option(help=OUT_FOLDER)],
    ranks: Annotated[int, typer.Option(help="Number of ranks (devices).")],
    proto: Proto = None,
    design: OneDesign = None,
    precision: Annotated[str | None, typer.Option(help=PRECISION)] = None,
    batch: Annotated[int | None, typer.Option(help="Samples of each worker's iteration.  [default: 32]")] = None,
    sequence: Sequence = None,
    dim: Dims = None,
    own: NetworkOptions = _OWN,
    data: Data = None,
    compress: Annotated[
        str | None, typer.Option(help="Format in which gradients are sent.  [default: that in which they are stored]")
    ] = None,
    no_overlap: Annotated[
        bool, typer.Option("--no-overlap", help="Send nothing before the backward pass is done.")
    ] = False,
    bucket: Annotated[
        str | None,
        typer.Option(
            help='Merge gradients of layers into messages of this size or more: "25 MB".  [default: one for each layer]'
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Write MEM nodes too; not for ASTRA-sim, for which they are remote memory.")
    ] = False,
    joined: Annotated[
        bool,
        typer.Option(
            "--joined", help="One node for all that is computed between two exchanges, for jobs of many ranks."
        ),
    ] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the traces; ASTRA-sim takes them unpacked.")] = False,
    timing: LayerTimeOptions = _TIMING,
    roofline: Annotated[
        bool,
        typer.Option("--roofline", help="Leave durations out; ASTRA-sim computes them by its roofline, of --device."),
    ] = False,
    links: LinkOptions = _LINKS,
    shared: SystemOptions = _SYSTEM,
) -> None:
    """Write a trace for each rank of a job: COMP nodes, and COMM nodes that add up gradients or send what others need.

    A node has the operations, their formats, the design's unit and the order of the sum as attributes, "softnum.".
    With --bandwidth or --system the folder also has a system for ASTRA-sim: network.yml, system.json, memory.json.

    \b
      softnum traces write mlp --design c-wang-fp8 --batch 8192 --ranks 4 --out job
      softnum traces write resnet50 --precision bfloat16 --ranks 64 --device h100 --bandwidth "3600 Gb/s,400 Gb/s" \\
          --dimensions 8,8 --latency "500 ns,2 us" --out job
      softnum traces write llama3-8b --precision bfloat16 --system dgx-h100 --ranks 64 --tensor 8 --zero 1 --joined \\
          --out job

    Ranks share samples, and with --system what softnum parallel --system shares: --ranks is all of them. Durations are
    of a roofline (estimates), of SCALE-Sim (--reports), or your own (--layer-times, in seconds).
    """
    from softnum.tta.quantities import byte_size
    from softnum.tta.simulators import write_astrasim
    from softnum.tta.traces import write_traces

    writable_folder(out)
    least = byte_size(bucket, "--bucket") if bucket else 1
    if shared.system is not None:
        used = [f"--{name.replace('_', '-')}" for name in _ALONE if name in stated(ctx)]
        used += ["--dim"] if dim else []
        if used or own.of(network):
            raise ValueError(
                f"{used[0] if used else 'an option of networks'} has no effect with --system; leave it out"
            )
        job, source, system = _shared(
            network, shared, ranks, batch, sequence, words(design), words(precision), timing.device_file,
            overlap=not no_overlap, bucket=least, joined=joined,
        )  # fmt: skip
        system = links.system(ranks) or system
    else:
        if shared.given():
            raise ValueError(f"{shared.given()[0]} is for a step on a system; add --system dgx-h100, or leave it out")
        works = workloads_of(
            network, words(design), None if batch is None else [batch], precisions=words(precision),
            options=own.of(network), data=data, sequence=sequence, dims=dim,
        )  # fmt: skip
        if len(works) > 1 or "," in (timing.device or ""):
            raise ValueError(
                "a job needs exactly one design and one device; name one of each, or a file with one workload"
            )
        if roofline and (timing.reports or timing.layer_times or timing.efficiency != 1):
            raise ValueError(
                "--roofline writes traces without durations; leave out --reports, --layer-times and --efficiency"
            )
        if roofline and links.bandwidth is None:
            raise ValueError("--roofline needs a system; add its --bandwidth")
        system = links.system(ranks, *(_peak(works, timing) if roofline else ()))
        seconds, source = None, "none: ASTRA-sim's roofline tells them"
        if not roofline:
            ((_, seconds, source),) = timing.timed(works)
        job = _data_parallel(
            works[0][0], ranks, seconds, compress, no_overlap, bucket=least, memory=memory, joined=joined,
            units=_units(works[0][0], network, words(design)),
        )  # fmt: skip
    paths = write_traces(out, job, proto, compress=gzip)
    paths += write_astrasim(out, system) if system is not None else []
    _print(job, source)
    typer.echo(f"Written: {paths[0]} to {paths[job.ranks - 1].name}, {', '.join(p.name for p in paths[job.ranks :])}")


def _data_parallel(work, ranks, seconds, compress, no_overlap, **options):
    from softnum.tta.traces import data_parallel_traces
    from softnum.tta.workloads import Exchange

    exchange = Exchange(compress=compress, overlap=not no_overlap)
    return data_parallel_traces(work, ranks, times=seconds, exchange=exchange, **options)


def _shared(network, own, ranks, batch, sequence, designs, precisions, device_file, *, overlap, bucket, joined):
    """(job, where its durations are from, system) of a step that is shared in several ways."""
    from softnum.tta.parallelism import check_memory, operation_seconds, plan_step, step_memory
    from softnum.tta.simulators import AstraSystem
    from softnum.tta.traces import plan_traces

    where, each = own.where(device_file), own.tensor * own.pipeline * own.context
    if ranks % each:
        raise ValueError(
            f"--ranks {ranks} is no multiple of {own.tensor} x {own.pipeline} x {own.context} ways of --tensor, "
            f"--pipeline and --context, {each} ranks"
        )
    found = ways_of(designs, precisions, ())
    if len(found) > 1:
        raise ValueError("a job needs exactly one design; name one with --design")
    plan = plan_step(network, own.ways(ranks // each, batch, sequence, overlap), found[0][0], own.optimiser)
    if where.device.memory is not None:
        check_memory(step_memory(plan), where.device.memory, network, found[0][0], own.optimiser)
    system = AstraSystem.of(where, ranks)
    job = plan_traces(plan, lambda operation: operation_seconds(operation, where), bucket=bucket, joined=joined)
    return job, f"roofline of {where.device.title}, with the shares that {where.name} reaches", system


def _print(job, source) -> None:
    facts = {name.removeprefix("softnum."): found.value for name, found in job.traces[0].attributes.items()}
    rows = []
    for number in dict.fromkeys(len(trace.nodes) for trace in job.traces):
        alike = [rank for rank in range(job.ranks) if len(job.of(rank).nodes) == number]
        nodes = job.of(alike[0]).nodes
        flops = sum(node.get("num_ops", 0) for node in nodes)
        sent = sum(node.get("comm_size", 0) for node in nodes if node.type != "COMM_RECV_NODE")
        busy = sum(node.duration for node in nodes) / 1e6
        rows.append((len(alike), number, si(flops, "FLOP"), seconds_text(busy), si(sent, "B")))
    print_table(
        f"{facts['network']}, {facts['design']}: {job.ranks} ranks ({facts['parallelism']})",
        ["Ranks", "Nodes each", "Operations each", "Computing", "Added up and sent"], rows, [f"Durations: {source}."],
    )  # fmt: skip


def seconds_text(value) -> str:
    """Seconds with a unit, or that there are none."""
    from softnum.tta.quantities import format_seconds

    return format_seconds(float(value)) if value else "not stated"


def _peak(works, timing):
    """FLOP/s and bytes/s of the device, which must have one peak for all products of the workload."""
    ((work, where),) = timing.devices_of(works)
    peaks = {where.peak(operation.formats).flops for operation in work.operations if operation.gemm is not None}
    if len(peaks) != 1:
        raise ValueError(
            f"{where.name} has the peaks {', '.join(si(peak, 'FLOP/s') for peak in sorted(peaks))} for this design's "
            "products, and ASTRA-sim's roofline one; leave --roofline out"
        )
    return float(peaks.pop()), float(where.bandwidth)


def _units(work, network, designs):
    """By layer and stage, the unit of its products as JSON; none where only formats are stated."""
    from softnum.tta.architectures import architecture_names

    if network.endswith(".json") or (not designs and (is_onnx(network) or network in architecture_names())):
        return {}
    from softnum.train import load_design

    design = load_design(designs[0] if designs else "a-float32")
    first = next((operation.layer for operation in work.operations if operation.gemm is not None), None)
    described: dict = {}
    found = {}
    for operation in work.operations:
        if operation.gemm is not None:
            layer = operation.layer
            if layer not in described:
                described[layer] = design.layer(layer, first=layer == first).describe()["units"]
            found[layer, operation.stage] = json.dumps(described[layer][operation.stage], separators=(",", ":"))
    return found
