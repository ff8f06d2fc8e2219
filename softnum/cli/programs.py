"""``softnum workloads``: an iteration's matrix products as a program that simulators take."""

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes
from softnum.cli.networks import Data, NetworkOptions
from softnum.cli.options import BATCH, OUT_FOLDER, PRECISION, OneDesign
from softnum.cli.tables import print_table, words
from softnum.cli.updates import with_groups
from softnum.cli.workloads import WORKLOAD_HELP, Dims, workloads_of

__all__ = ["register"]

_OWN = NetworkOptions()


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("workloads", short_help="Export an iteration's matrix products to simulators: C, CUDA, PTX.")(
        exit_codes(with_groups(workloads))
    )


def workloads(
    network: Annotated[str | None, typer.Argument(help=WORKLOAD_HELP)] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the program: gem5-c, cuda or ptx; --formats lists them.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=OUT_FOLDER)] = None,
    formats: Annotated[bool, typer.Option("--formats", help="List the formats and exit.")] = False,
    design: OneDesign = None,
    precision: Annotated[str | None, typer.Option(help=PRECISION)] = None,
    batch: Annotated[int | None, typer.Option(help=f"{BATCH}  [default: 32]")] = None,
    dim: Dims = None,
    own: NetworkOptions = _OWN,
    data: Data = None,
    layer: Annotated[str | None, typer.Option(help="Only these layers, separated by commas.")] = None,
    stage: Annotated[
        str | None, typer.Option(help="Only these passes: forward, backward_data, backward_weight.")
    ] = None,
) -> None:
    """Export the matrix products of a training iteration as a program, to run inside a simulator.

    A kernel is named by its product's sizes and a digest of the network, as in gemm_m64_n10_k128_0123abcd: when the
    simulator's log comes back, softnum timings --workload and softnum tta --timings compare these names with the
    network. The program checks its own results.

    \b
      softnum workloads --formats                       what is written, and what takes it
      softnum workloads mlp --format cuda --out gemms
      softnum workloads resnet --design c-wang-fp8 --batch 8 --format gem5-c --out gemms
      softnum workloads bert-base --batch 1 --format cuda --layer layer1.ff1 --out one
      softnum timings base=gpgpusim.log --workload gemms/workloads.json

    Element-wise operations and updates are not exported. A part (--layer, --stage) has a digest of its own.
    """
    from softnum.tta.programs import PROGRAM_FORMATS, export_program

    if formats:
        for entry in PROGRAM_FORMATS.values():
            typer.echo(f"{entry.name}\n    {entry.description}\n    files: {', '.join(n for n, _ in entry.files)}")
        return
    for value, what in ((network, "a network"), (format, "--format"), (out, "--out")):
        if value is None:
            raise ValueError(
                f"{what} is missing, as in: softnum workloads mlp --format cuda --out gemms; softnum workloads "
                "--formats lists the formats"
            )
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")
    batches = None if batch is None else [batch]
    works = workloads_of(
        network, words(design), batches, precisions=words(precision), options=own.of(network), data=data,
        dims=dim,
    )  # fmt: skip
    if len(works) > 1:
        raise ValueError(
            f"{len(works)} workloads, {', '.join(f'{work.design} at batch {work.batch}' for work, _ in works)}; a "
            "program is of one: name one design, or a file with one"
        )
    work = _part(works[0][0], words(layer), words(stage))
    paths = export_program(work, format, out)
    _print(work)
    for path in paths:
        typer.echo(f"Written: {path}")


def _part(work, layers, stages):
    """The workload with the products of some layers or passes only."""
    if not layers and not stages:
        return work
    products = [operation for operation in work.operations if operation.gemm is not None]
    for asked, there, option in (
        (layers, [operation.layer for operation in products], "--layer"),
        (stages, [operation.stage for operation in products], "--stage"),
    ):
        for name in asked:
            if name not in there:
                known = list(dict.fromkeys(there))
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                more = f" and {len(known) - 8} more" if len(known) > 8 else ""
                raise ValueError(
                    f"{option}: no matrix product of {name!r}; {hint}there are some of {', '.join(known[:8])}{more}"
                )
    kept = [
        operation
        for operation in products
        if (not layers or operation.layer in layers) and (not stages or operation.stage in stages)
    ]
    return replace(work, operations=tuple(kept), tensors=())


def _print(work) -> None:
    from softnum.tta.workloads.products import network_digest

    digest = network_digest(work)
    notes = []
    bits = sorted({float(gemm.bits) for gemm in work.gemms} - {32.0})
    if bits:
        notes.append(
            f"Warning: the program's operands are float32, 32 bits, and those of {work.design} have "
            f"{', '.join(f'{size:g}' for size in bits)}: it moves other numbers of bytes."
            + (f" C and CUDA take -DELEMENT=int{size:g}_t -DSUM=int32_t." if (size := bits[-1]) in (8, 16) else "")
        )
    if any(gemm.sparsity for gemm in work.gemms):
        notes.append("Warning: sparse operands are exported as dense ones: the program skips no zeros.")
    print_table(
        f"{work.network}, {work.design}, batch {work.batch}: digest {digest}",
        ["<Layer", "<Pass", "M", "N", "K", "Times"],
        [(g.layer, g.phase, str(g.m), str(g.n), str(g.k), str(g.count)) for g in work.gemms],
        notes,
    )
