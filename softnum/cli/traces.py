"""``softnum traces``: what the ranks of a job do, as Chakra traces, and ASTRA-sim's answer how long it takes."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file, writable_folder
from softnum.cli.layer_times import timed_works
from softnum.cli.networks import Data, NetworkOptions
from softnum.cli.tables import print_table, si, whole_numbers, words
from softnum.cli.updates import with_groups
from softnum.cli.workloads import WORKLOAD_HELP, devices_of, workloads_of

__all__ = ["register"]

_OWN = NetworkOptions()
_HELP = """What every rank of a job computes and sends, as Chakra execution traces; and how long that takes.

\b
  softnum traces write resnet50 --ranks 8 --device v100 --bandwidth "100 Gb/s" --out job
                                      a trace for each rank, and a system for ASTRA-sim
  softnum traces run job --program AstraSim_Analytical_Congestion_Unaware --out times.csv
                                      the time of an iteration, by ASTRA-sim
  softnum traces read rank.0.et rank.1.et --out workloads.json
                                      check anyone's traces, and take what they say

Chakra's schema, et_def.proto, is named by --proto or SOFTNUM_CHAKRA_PROTO.
"""

Proto = Annotated[
    Path | None, typer.Option(help="Chakra's schema, et_def.proto.  [default: what SOFTNUM_CHAKRA_PROTO names]")
]


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    for name, verb, short in (
        ("write", write, "Write the traces of a job's ranks, and a system for ASTRA-sim."),
        ("run", run, "Simulate a job by ASTRA-sim: the time of an iteration."),
        ("read", read, "Check traces, and take operations and times from them."),
    ):
        group.command(name, short_help=short)(exit_codes(with_groups(verb)))
    app.add_typer(group, name="traces", short_help="Chakra traces of a job's ranks, and ASTRA-sim's time of them.")


def write(
    network: Annotated[str, typer.Argument(help=WORKLOAD_HELP)],
    out: Annotated[Path, typer.Option(help="Folder to write to; it is made where there is none.")],
    ranks: Annotated[int, typer.Option(help="How many compute in parallel, each a batch of its own.")],
    proto: Proto = None,
    design: Annotated[str | None, typer.Option(help="Design file or name.  [default: a-float32]")] = None,
    precision: Annotated[
        str | None, typer.Option(help="Of a network that is only timed: float32, mixed-float16, bfloat16 or fp8.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Samples of each rank's iteration.  [default: 32]")] = None,
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
            help='Least bytes of a message, "25 MB": gradients of several layers together.  [default: no least]'
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Reads and writes as MEM nodes; not for ASTRA-sim, which has other ones.")
    ] = False,
    joined: Annotated[
        bool, typer.Option("--joined", help="One node for all that is computed between two exchanges: for many ranks.")
    ] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the traces; ASTRA-sim takes them unpacked.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Durations by roofline on this device.  [default: the design's array]")
    ] = None,
    device_file: Annotated[Path | None, typer.Option(help="TOML with devices of your own.")] = None,
    efficiency: Annotated[float, typer.Option(help="Share of the roofline that is reached, up to 1.")] = 1.0,
    reports: Annotated[
        Path | None, typer.Option(help="Folder of SCALE-Sim reports with the times, like OUT/scalesim of softnum tta.")
    ] = None,
    layer_times: Annotated[
        Path | None, typer.Option(help="CSV with the times: layer,forward,backward_data,backward_weight[,update].")
    ] = None,
    roofline: Annotated[
        bool, typer.Option("--roofline", help="Leave durations out: ASTRA-sim's roofline of --device tells them.")
    ] = False,
    bandwidth: Annotated[
        str | None, typer.Option(help='Of a link in each dimension, in bits: "3600 Gb/s,400 Gb/s".')
    ] = None,
    latency: Annotated[str | None, typer.Option(help='Of a message in each: "500 ns,2 us".  [default: none]')] = None,
    dimensions: Annotated[
        str | None, typer.Option(help="Ranks in each dimension, the innermost first: 8,16.  [default: all in one]")
    ] = None,
    topology: Annotated[str, typer.Option(help="Of each dimension: Ring, FullyConnected or Switch.")] = "Ring",
    algorithm: Annotated[
        str, typer.Option(help="Of collectives in each: ring, direct, halvingDoubling or doubleBinaryTree.")
    ] = "ring",
    chunks: Annotated[int, typer.Option(help="Into how many parts a collective is cut.")] = 1,
) -> None:
    """Write a trace for each rank of a data-parallel job: COMP nodes, and COMM nodes that add up the gradients.

    A node has the operations, their formats, the design's unit and the order of the sum as attributes, "softnum.".
    With --bandwidth the folder also has a system for ASTRA-sim: network.yml, system.json, memory.json.

    \b
      softnum traces write mlp --design c-wang-fp8 --batch 8192 --ranks 4 --out job
      softnum traces write resnet50 --precision bfloat16 --ranks 64 --device h100 --bandwidth "3600 Gb/s,400 Gb/s" \\
          --dimensions 8,8 --latency "500 ns,2 us" --out job

    Durations are of a roofline (estimates), of SCALE-Sim (--reports), or your own (--layer-times, in seconds).
    """
    from softnum.tta import Exchange, byte_size, data_parallel_traces, write_astrasim, write_traces

    writable_folder(out)
    batches = None if batch is None else [batch]
    works = workloads_of(
        network, words(design), batches, precisions=words(precision), options=own.of(network), data=data
    )  # fmt: skip
    if len(works) > 1 or (device and "," in device):
        raise ValueError("a job is of one design on one device: name one of each, or a file with one workload")
    work, seconds, source = works[0][0], None, "none: ASTRA-sim's roofline tells them"
    if not roofline:
        ((work, seconds, source),) = timed_works(works, device, device_file, efficiency, reports, layer_times)
    elif reports is not None or layer_times is not None or efficiency != 1:
        raise ValueError("--roofline leaves durations out; leave out --reports, --layer-times and --efficiency")
    system = _system(
        ranks, bandwidth, latency, dimensions, topology, algorithm, chunks, works, device, device_file, roofline
    )
    job = data_parallel_traces(
        work, ranks, times=seconds, exchange=Exchange(compress=compress, overlap=not no_overlap),
        bucket=byte_size(bucket, "--bucket") if bucket else 1, units=_units(work, network, words(design)),
        memory=memory, joined=joined,
    )  # fmt: skip
    paths = write_traces(out, job, proto, compress=gzip)
    paths += write_astrasim(out, system) if system is not None else []
    trace = job.of(0)
    sent = sum(node.get("comm_size", 0) for node in trace.nodes)
    print_table(
        f"{work.network}, {work.design}: {job.ranks} data-parallel ranks",
        ["Ranks", "Nodes each", "Operations each", "Computing", "Added up"],
        [(job.ranks, len(trace.nodes), si(work.flops, "FLOP"), _seconds(job.compute), si(sent, "B"))],
        [f"Durations: {source}."],
    )
    typer.echo(f"Written: {paths[0]} to {paths[job.ranks - 1].name}, {', '.join(p.name for p in paths[job.ranks :])}")


def _seconds(value) -> str:
    from softnum.tta.quantities import format_seconds

    return format_seconds(float(value)) if value else "not stated"


def _system(ranks, bandwidth, latency, dimensions, topology, algorithm, chunks, works, device, device_file, roofline):
    """The system that the options state, or None."""
    from softnum.tta import AstraSystem, NetworkDimension, bit_rate, duration

    if bandwidth is None:
        stated = [
            f"--{name}" for name, value in (("latency", latency), ("dimensions", dimensions)) if value is not None
        ]
        if stated or roofline or chunks != 1:
            raise ValueError(f"{(stated or ['--roofline'])[0]} is of a system; state its --bandwidth too")
        return None
    sizes = [ranks] if dimensions is None else whole_numbers(dimensions, "--dimensions")
    columns = {
        "--bandwidth": [bit_rate(part, "--bandwidth") for part in words(bandwidth)],
        "--latency": [duration(part, "--latency") for part in words(latency)] if latency else [0],
        "--topology": words(topology),
        "--algorithm": words(algorithm),
    }
    for option, values in columns.items():
        if len(values) == 1:
            columns[option] = values * len(sizes)
        elif len(values) != len(sizes):
            raise ValueError(f"{option} has {len(values)} values for {len(sizes)} dimensions; one, or one for each")
    order = ("--bandwidth", "--latency", "--algorithm")
    rows = zip(columns["--topology"], sizes, *(columns[option] for option in order), strict=True)
    peak = memory_bandwidth = None
    if roofline:
        peak, memory_bandwidth = _peak(works, device, device_file)
    return AstraSystem([NetworkDimension(*row) for row in rows], chunks, 1, peak, memory_bandwidth)


def _peak(works, device, device_file):
    """FLOP/s and bytes/s of the device, which must have one peak for all products of the workload."""
    ((work, where),) = devices_of(works, device, device_file)
    peaks = {where.peak(operation.formats).flops for operation in work.operations if operation.gemm is not None}
    if len(peaks) != 1:
        raise ValueError(
            f"{where.name} has the peaks {', '.join(si(peak, 'FLOP/s') for peak in sorted(peaks))} for this design's "
            "products, and ASTRA-sim's roofline one; leave --roofline out"
        )
    return float(peaks.pop()), float(where.bandwidth)


def _units(work, network, designs):
    """By layer and stage, the unit of its products as JSON; none where only formats are stated."""
    from softnum.tta import architecture_names

    if network.endswith(".json") or (not designs and network in architecture_names()):
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


def run(
    folder: Annotated[Path, typer.Argument(help="Folder that softnum traces write has made.")],
    program: Annotated[
        Path, typer.Option(envvar="SOFTNUM_ASTRASIM", help="Your build's AstraSim_Analytical_Congestion_(Un)aware.")
    ],
    network: Annotated[Path | None, typer.Option(help="The network's configuration.  [default: network.yml]")] = None,
    system: Annotated[Path | None, typer.Option(help="The system layer's.  [default: system.json]")] = None,
    memory: Annotated[Path | None, typer.Option(help="Remote memory's.  [default: memory.json]")] = None,
    queues: Annotated[int, typer.Option(help="Of each dimension.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Write the time as the CSV that softnum tta --timings reads.")
    ] = None,
) -> None:
    """Simulate a job by ASTRA-sim: the time of an iteration is that of its slowest rank.

    \b
      softnum traces run job --program AstraSim_Analytical_Congestion_Unaware
      softnum traces run job --network mine.yml --system mine.json --out times.csv
      softnum tta --designs base --timings times.csv

    What the simulator printed stays in the folder, astrasim.log; softnum timings reads it too.
    """
    from softnum.tta import run_astrasim, write_timings
    from softnum.tta.quantities import format_seconds

    if out is not None:
        writable_file(out)
    given = {"network": network, "system": system, "memory": memory}
    time = run_astrasim(
        folder, program, files={what: path for what, path in given.items() if path is not None}, queues=queues
    )
    detail = time.detail
    share = detail["exposed_cycles"] / detail["cycles"]
    print_table(
        f"{time.design}: an iteration of {detail['ranks']} ranks by ASTRA-sim",
        ["Ranks", "Iteration", "Fastest rank", "Not computing", "Share"],
        [
            (detail["ranks"], format_seconds(time.seconds), format_seconds(detail["fastest_cycles"] / 1e9),
             format_seconds(detail["exposed_cycles"] / 1e9), f"{share:.1%}")
        ],
        [f"Time: {detail['column']}.", *(f"{hint}." for hint in [detail.get("hint")] if hint),
         f"Log: {folder / 'astrasim.log'}"],
    )  # fmt: skip
    if out is not None:
        write_timings(out, [time])
        typer.echo(f"Written: {out}")


def read(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Traces of ranks 0, 1, ..., also in gzip.")],
    proto: Proto = None,
    batch: Annotated[int | None, typer.Option(help="Samples of the iteration, where the traces do not say.")] = None,
    groups: Annotated[
        Path | None, typer.Option(help="JSON with the ranks of each group; then the ranks are checked together.")
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="The files are all ranks of a job, in order: check them together.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the first rank's workload, as other commands take it.")
    ] = None,
) -> None:
    """Check Chakra traces of any origin, and say what is in them.

    An error names the file and the node: numbers that are there twice, dependencies on nodes that are not there,
    cycles, unknown types; with --together also messages that nobody receives, and collectives that ranks do not share.

    \b
      softnum traces read job/rank.0.et
      softnum traces read trace.0.et trace.1.et --together
      softnum traces read rank.0.et --out workloads.json && softnum estimate workloads.json --device h100
    """
    from softnum.tta import check_ranks, load_chakra_schema, read_trace, trace_time, workload_of_trace, write_workloads

    if out is not None:
        writable_file(out)
    schema = load_chakra_schema(proto)
    traces = [read_trace(file, schema=schema) for file in files]
    if together or groups is not None:
        check_ranks(traces, {} if groups is None else _groups(groups))
    rows = []
    for file, trace in zip(files, traces, strict=True):
        kinds = ("COMP_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMM_COLL_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE")
        counts = [trace.count(kind) for kind in kinds]
        computing = [node for node in trace.nodes if node.type == "COMP_NODE"]
        flops = sum(node.get("num_ops", 0) for node in computing)
        sent = sum(node.get("comm_size", 0) for node in trace.nodes if node.type.startswith("COMM_"))
        busy = sum(node.duration for node in computing)
        rows.append(
            (file.name, trace.version, len(trace.nodes), counts[0], counts[1] + counts[2], sum(counts[3:]),
             si(flops, "FLOP"), si(sent, "B"), _seconds(busy / 1e6))
        )  # fmt: skip
    try:
        time = trace_time(traces, "trace")
        notes = [f"Time: {_seconds(time.seconds)}, {time.detail['column']}."]
    except ValueError:
        notes = ["Time: the traces have no starts; softnum traces run simulates them."]
    columns = ["<File", "<Chakra", "Nodes", "COMP", "MEM", "COMM", "Operations", "Communicated", "Computing"]
    print_table("Chakra traces: every graph can run", columns, rows, notes)
    if out is not None:
        write_workloads(out, [workload_of_trace(traces[0], batch)])
        typer.echo(f"Written: {out}")


def _groups(path: Path) -> dict:
    from softnum.tta.text import read_text

    try:
        table = json.loads(read_text(path, f"no groups {str(path)!r}"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from None
    if not isinstance(table, dict) or not all(
        isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks) for ranks in table.values()
    ):
        raise ValueError(f'{path}: groups are an object of lists of ranks, like {{"1": [0, 1]}}')
    return table
