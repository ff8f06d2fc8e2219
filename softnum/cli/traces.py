"""``softnum traces``: what the ranks of a job do, as Chakra traces, and ASTRA-sim's answer how long it takes."""

import re
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import OUT_TIMES
from softnum.cli.tables import print_table, si
from softnum.cli.trace_jobs import Proto, seconds_text, write
from softnum.cli.updates import with_groups

__all__ = ["register"]

_HELP = """Write what every rank of a job computes and sends as Chakra execution traces, and time them.

\b
  softnum traces write resnet50 --ranks 8 --device v100 --bandwidth "100 Gb/s" --out job
                                      a trace for each rank, and a system for ASTRA-sim
  softnum traces write llama3-8b --precision bfloat16 --system dgx-h100 --ranks 64 --tensor 8 --joined --out job
                                      a step that is shared in several ways, on a system by name
  softnum traces run job --program AstraSim_Analytical_Congestion_Unaware --out times.csv
                                      the time of an iteration, by ASTRA-sim
  softnum traces read rank.0.et rank.1.et --out workloads.json
                                      check anyone's traces, and take what they say

Chakra's schema, et_def.proto, is named by --proto or SOFTNUM_CHAKRA_PROTO.
"""


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


def run(
    folder: Annotated[Path, typer.Argument(help="Folder that softnum traces write has made.")],
    program: Annotated[
        Path,
        typer.Option(
            envvar="SOFTNUM_ASTRASIM", help=("The executable AstraSim_Analytical_Congestion_(Un)aware of your build.")
        ),
    ],
    network: Annotated[Path | None, typer.Option(help="The network's configuration.  [default: network.yml]")] = None,
    system: Annotated[
        Path | None, typer.Option(help=("The configuration of the system layer.  [default: system.json]"))
    ] = None,
    memory: Annotated[
        Path | None, typer.Option(help=("The configuration of remote memory.  [default: memory.json]"))
    ] = None,
    queues: Annotated[int, typer.Option(help="Queues of each dimension (ASTRA-sim's --num-queues-per-dim).")] = 1,
    out: Annotated[Path | None, typer.Option(help=OUT_TIMES)] = None,
) -> None:
    """Simulate a job by ASTRA-sim: the time of an iteration is that of its slowest rank.

    \b
      softnum traces run job --program AstraSim_Analytical_Congestion_Unaware
      softnum traces run job --network mine.yml --system mine.json --out times.csv
      softnum tta --designs base --timings times.csv

    What the simulator printed stays in the folder, astrasim.log; softnum timings reads it too.
    """
    from softnum.tta import write_timings
    from softnum.tta.quantities import format_seconds
    from softnum.tta.simulators import run_astrasim

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
    batch: Annotated[int | None, typer.Option(help="Samples of the iteration, if the traces do not say.")] = None,
    groups: Annotated[
        Path | None, typer.Option(help="JSON with the ranks of each group; then the ranks are checked together.")
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="The files are all ranks of a job: check them together.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the first rank's workload, as other commands take it.")
    ] = None,
) -> None:
    """Check Chakra traces of any origin and summarise them.

    An error names the file and the node: numbers that are there twice, dependencies on nodes that are not there,
    cycles, unknown types; with --together also messages that nobody receives, and collectives that ranks do not share.

    \b
      softnum traces read job/rank.0.et
      softnum traces read trace.0.et trace.1.et --together
      softnum traces read rank.0.et --out workloads.json && softnum estimate workloads.json --device h100
    """
    from softnum.tta import write_workloads
    from softnum.tta.traces import check_ranks, load_chakra_schema, read_trace, trace_time, workload_of_trace
    from softnum.tta.traces.folder import check_job, read_groups

    if out is not None:
        writable_file(out)
    schema = load_chakra_schema(proto)
    if together or groups is not None:
        files = _in_order(files)
    traces = [read_trace(file, schema=schema) for file in files]
    if together or groups is not None:
        named = {} if groups is None else read_groups(groups)
        for folder in dict.fromkeys(file.parent for file in files):
            check_job(folder, sum(file.parent == folder for file in files), None if groups is None else len(named))
        check_ranks(traces, named)
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
             si(flops, "FLOP"), si(sent, "B"), seconds_text(busy / 1e6))
        )  # fmt: skip
    try:
        time = trace_time(traces, "trace")
        notes = [f"Time: {seconds_text(time.seconds)}, {time.detail['column']}."]
    except ValueError:
        notes = ["Time: the traces have no starts; softnum traces run simulates them."]
    columns = ["<File", "<Chakra", "Nodes", "COMP", "MEM", "COMM", "Operations", "Communicated", "Computing"]
    print_table("Chakra traces: every graph can run", columns, rows, notes)
    if out is not None:
        write_workloads(out, [workload_of_trace(traces[0], batch)])
        typer.echo(f"Written: {out}")


def _in_order(files: list[Path]) -> list[Path]:
    """Files by the ranks in their names, NAME.RANK.et, as shells sort 10 before 2; else as they are."""
    found = [re.fullmatch(r".*\.(\d+)\.et(\.gz)?", file.name) for file in files]
    if not all(found):
        return files
    ranks = sorted((int(match[1]), file) for match, file in zip(found, files, strict=True))
    for place, (rank, file) in enumerate(ranks):
        if rank != place:
            raise ValueError(
                f"{file} is of rank {rank} where rank {place} comes next; name the traces of all ranks once"
            )
    return [file for _, file in ranks]
