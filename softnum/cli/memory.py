"""``softnum memory``: what memory a training iteration holds."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file
from softnum.cli.networks import Data, NetworkOptions
from softnum.cli.options import BATCH, PRECISION, Picture
from softnum.cli.tables import print_table, si, whole_numbers, words, write_rows
from softnum.cli.updates import with_groups
from softnum.cli.workloads import WORKLOAD_HELP, Dims, Sequence, workloads_of

__all__ = ["register"]

_OWN = NetworkOptions()
_TITLES = {
    "weights": "Weights", "weight_gradients": "Weight grad.", "feature_maps": "Feature maps",
    "gradient_maps": "Grad. maps", "optimiser_state": "State", "workspace": "Workspace",
}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("memory", short_help="Say what memory an iteration holds: by class, layer, format and batch.")(
        exit_codes(with_groups(memory))
    )


def memory(
    network: Annotated[str, typer.Argument(help=WORKLOAD_HELP)],
    design: Annotated[
        str | None, typer.Option(help="Design files or names, separated by commas.  [default: a-float32]")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help=("Formats, separated by commas, each used for every number. In addition to --design.")),
    ] = None,
    precision: Annotated[str | None, typer.Option(help=PRECISION)] = None,
    batch: Annotated[
        str | None, typer.Option(help=f"{BATCH} Several like 1,32,256 are compared.  [default: 32]")
    ] = None,
    sequence: Sequence = None,
    dim: Dims = None,
    own: NetworkOptions = _OWN,
    data: Data = None,
    optimiser: Annotated[
        str | None,
        typer.Option(
            help="sgd, adam, adamw, lamb, lars, lion or muon; of a network that is only timed sgd (there without "
            "momentum), momentum, rmsprop or adam.  [default: sgd]"
        ),
    ] = None,
    device_memory: Annotated[
        str | None, typer.Option(help='The memory of a device, like "16 GB": find the largest batch that fits.')
    ] = None,
    implicit_gemm: Annotated[
        bool, typer.Option("--implicit-gemm", help="Assume that convolutions make no unfolded copy of their operand.")
    ] = False,
    layers: Annotated[int, typer.Option(help="How many layers to list, those that hold most first.")] = 0,
    plot: Picture = None,
    out: Annotated[Path | None, typer.Option(help="Write everything as .json, or the table as .csv.")] = None,
) -> None:
    """Report the memory that a training iteration holds: weights, gradients, feature maps, state, workspace.

    The network runs once, on zeros: what the forward pass makes and a later operation reads is a feature map, in the
    format in which it is read, from where it is made to where it is last needed. Nothing is measured, and fragmentation
    by an allocator is not included.

    \b
      softnum memory resnet --design a-float32,c-wang-fp8 --batch 32,128
      softnum memory lenet5 --format binary32,bfloat16,e5m2 --batch 64 --optimiser adam --layers 5
      softnum memory vgg-small --data cifar10 --design i-mxfp8 --device-memory "16 GB"
      softnum memory resnet50 --precision float32,fp8 --batch 32,256 --plot memory.png --out memory.csv
    """
    from softnum.tta import memory_of
    from softnum.tta.quantities import byte_size
    from softnum.tta.workloads import memory_table

    for path in (plot, out):
        if path is not None:
            writable_file(path)
    if layers < 0:
        raise ValueError(f"--layers must not be negative, got {layers}")
    if plot is not None:
        need("matplotlib")
    capacity = None if device_memory is None else byte_size(device_memory, "--device-memory")
    batches = None if batch is None else whole_numbers(batch, "--batch")
    ways = {
        "designs": words(design), "precisions": words(precision), "formats": words(format), "options": own.of(network),
        "data": data, "updates": {} if optimiser is None else {"optimiser": optimiser}, "sequence": sequence,
        "dims": dim,
    }  # fmt: skip
    works = [work for work, _ in workloads_of(network, batches=batches, **ways)]
    memories = [memory_of(work, implicit=implicit_gemm) for work in works]
    rows = memory_table(works, implicit=implicit_gemm)
    most = {} if capacity is None else _largest(network, ways, works, capacity, implicit_gemm)
    _print(rows, most, device_memory)
    for found in memories if layers else ():
        print_table(
            f"{found.network}, {found.design}, batch {found.batch}: the layers that hold most at the peak",
            ["<Layer", "Bytes", "Of the peak", "~Mostly"],
            [
                (layer, si(held, "B"), f"{held / found.peak:.0%}", _classes(found.layers[layer], held))
                for layer, held in found.dominant(layers)
            ],
        )
    if plot is not None:
        from softnum.tta.outcomes import plot_memory

        plot_memory(plot, memories)
    if out is not None:
        tables = [found.to_table() for found in memories]
        for table in tables if most else ():
            table["largest_batch"] = most[table["design"]]
        for row in rows if most else ():
            row["largest_batch"] = most[row["design"]]
        write_rows(out, rows, {"device_memory": capacity, "implicit_gemm": implicit_gemm, "memory": tables})
    for path in (plot, out):
        if path is not None:
            typer.echo(f"Written: {path}")


def _largest(network, ways, works, capacity: int, implicit: bool) -> dict[str, int]:
    """The largest batch of each design, from the workload at its batch and at twice that."""
    from softnum.tta.workloads import largest_batch

    if network.endswith(".json"):
        raise ValueError(
            f"--device-memory needs a network that can take several batch sizes, and {network} states its own; name "
            "another network"
        )
    first = {}
    for work in works:
        first.setdefault(work.design, work)
    batch = works[0].batch
    step = batch if network == "actor-critic" else 1  # whose batch is of whole environments
    twice = {work.design: work for work, _ in workloads_of(network, batches=[2 * batch], **ways)}
    return {
        name: largest_batch(work, twice[name], capacity, step=step, implicit=implicit) for name, work in first.items()
    }  # fmt: skip


def _print(rows, most, device_memory) -> None:
    from softnum.tta.workloads import TENSOR_CLASSES

    shown = [name for name in TENSOR_CLASSES if any(row[name] for row in rows)]
    columns = ["<Design", "Batch", *(_TITLES[name] for name in shown), "Peak", "No reuse"]
    columns += ["Fits"] if most else []
    notes = ["Bytes held at the peak of an iteration; no reuse: if no memory were used twice in one."]
    if most:
        notes.append(f"Fits: the largest batch whose peak fits into {device_memory}.")
    print_table(
        f"{rows[0]['network']}: memory of a training iteration",
        columns,
        [
            (row["design"], row["batch"], *(si(row[name], "B") for name in shown), si(row["peak"], "B"),
             si(row["total"], "B"), *([f"{most[row['design']]:,}"] if most else []))
            for row in rows
        ],
        notes,
    )  # fmt: skip


def _classes(held, total: int) -> str:
    parts = sorted(held.items(), key=lambda item: -item[1])
    return ", ".join(f"{name.replace('_', ' ')} {size / total:.0%}" for name, size in parts[:2] if size)
