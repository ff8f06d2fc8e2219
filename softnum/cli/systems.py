"""``softnum parallel --system``: a step that a system's devices share in several ways."""

from dataclasses import dataclass, fields
from typing import Annotated

import typer

from softnum.cli.tables import print_table, si, write_rows
from softnum.cli.workloads import ways_of

__all__ = ["SystemOptions", "named_system", "on_system"]


def named_system(text: str, device_file=None):
    """The system of a name, or of a file that ends in .toml."""
    from softnum.tta.parallelism import read_system, system

    return read_system(text, device_file) if text.endswith(".toml") else system(text)


@dataclass(frozen=True)
class SystemOptions:
    """Options of a command, in the order of its help, that are of a system."""

    system: Annotated[
        str | None, typer.Option(help="A system by name (dgx-h100), or a TOML file with one; for the options below.")
    ] = None
    tensor: Annotated[int, typer.Option(help="Degree of tensor parallelism: devices that share a layer's weights.")] = 1
    pipeline: Annotated[int, typer.Option(help="Degree of pipeline parallelism: stages of layers.")] = 1
    context: Annotated[
        int, typer.Option(help="Degree of context parallelism: devices that share a sample's tokens.")
    ] = 1
    expert: Annotated[
        int, typer.Option(help="Degree of expert parallelism: devices of a stage that share experts.")
    ] = 1
    micro_batch: Annotated[int, typer.Option(help="Samples of a micro-batch.")] = 1
    schedule: Annotated[
        str, typer.Option(help=("Schedule of the pipeline: gpipe, 1f1b, interleaved or zero-bubble."))
    ] = "1f1b"
    chunks: Annotated[int, typer.Option(help="Stages of each device, with the interleaved schedule.")] = 1
    zero: Annotated[
        int, typer.Option(help="ZeRO stage: workers share optimiser state (1), gradients too (2), weights too (3).")
    ] = 0
    recompute: Annotated[
        str,
        typer.Option(
            help="What the backward pass computes again: none, selective (attention's scores), alternate (all but "
            "attention and every other product) or full (a whole layer)."
        ),
    ] = "none"
    no_sequence_parallel: Annotated[
        bool,
        typer.Option(
            "--no-sequence-parallel", help="With --tensor: do not split normalisations and residuals by tokens."
        ),
    ] = False
    optimiser: Annotated[str, typer.Option(help="sgd, momentum, rmsprop or adam.")] = "adam"

    def given(self) -> list[str]:
        """Options that are not as they are by default, but for the system."""
        rows = [
            field for field in fields(self) if field.name != "system" and getattr(self, field.name) != field.default
        ]
        return [f"--{field.name.replace('_', '-')}" for field in rows]

    def where(self, device_file=None):
        """The system of the name, or of the file."""
        return named_system(self.system, device_file)

    def ways(self, count: int, batch: int | None, sequence: int | None, overlap: bool):
        """In which ways a step is shared, with so many ways of data parallelism and samples of each."""
        from softnum.tta.parallelism import Parallelism

        batch = self.micro_batch if batch is None else batch
        return Parallelism(
            data=count, tensor=self.tensor, pipeline=self.pipeline, context=self.context, expert=self.expert,
            batch=count * batch, micro_batch=self.micro_batch, sequence=sequence,
            schedule=self.schedule, chunks=self.chunks, zero=self.zero, recompute=self.recompute,
            sequence_parallel=not self.no_sequence_parallel, overlap=overlap,
        )  # fmt: skip


def on_system(network, own: SystemOptions, counts, batch, sequence, designs, precisions, *, overlap, device_file, out):
    """Plan, time and print the steps of each number of workers and each precision."""
    from softnum.tta.parallelism import check_memory, checkpoints, plan_step, step_memory, step_time

    where = own.where(device_file)
    rows, tables = [], []
    for precision, _ in ways_of(designs, precisions, ()):
        for count in counts:
            ways = own.ways(count, batch, sequence, overlap)
            plan = plan_step(network, ways, precision, own.optimiser)
            memory, time = step_memory(plan), step_time(plan, where)
            if where.device.memory is not None:
                check_memory(memory, where.device.memory, network, precision, own.optimiser)
            failures = None
            if where.mtbf is not None and where.storage is not None:
                failures = checkpoints(plan.devices, where.mtbf, memory.state / where.storage, where.restart)
            tables.append((plan, time, memory, failures))
            rows.append(_row(ways, time, memory, failures))
    _print(network, where, tables)
    if out is not None:
        write_rows(out, rows, {"steps": [_table(*each) for each in tables]})


def _row(ways, time, memory, failures) -> dict:
    table = {key: value for key, value in time.to_table().items() if key != "exposed"}
    table |= {f"exposed_{group}": seconds for group, seconds in time.exposed.items()}
    sizes = ("data", "tensor", "pipeline", "context", "expert", "batch", "micro_batch", "zero", "recompute", "schedule")
    table |= {name: getattr(ways, name) for name in sizes}
    return table | {"memory": memory.peak, "useful": "" if failures is None else failures.useful}


def _table(plan, time, memory, failures) -> dict:
    ways = {field.name: getattr(plan.parallelism, field.name) for field in fields(plan.parallelism)}
    return {
        **time.to_table(), "parallelism": ways, "memory": memory.to_table(),
        "checkpoints": None if failures is None else failures.to_table(),
    }  # fmt: skip


def _seconds(value: float) -> str:
    from softnum.tta.quantities import format_seconds

    return format_seconds(value) if value else "0"


def _print(network, where, tables) -> None:
    words = any(plan.sequence for plan, *_ in tables)
    groups = [group for group in tables[0][1].exposed if any(time.exposed[group] for _, time, *_ in tables)]
    print_table(
        f"{network}: a step on {where.name} ({where.device.title})",
        ["<Design", "Devices", "Batch", "Compute", *(f"{group.title()}" for group in groups), "Bubble", "Update",
         "Step",
         "Tokens/s" if words else "Samples/s", "TFLOP/s", "Of peak"],
        [
            (plan.design, plan.devices, plan.parallelism.batch, _seconds(time.compute),
             *(_seconds(time.exposed[group]) for group in groups),
             _seconds(time.bubble), _seconds(time.update), _seconds(time.seconds),
             f"{(time.tokens_per_second if words else time.samples_per_second) / plan.devices:,.0f}",
             f"{time.flops_per_second / 1e12:,.0f}", f"{time.share_of_peak:.0%}")
            for plan, time, _, _ in tables
        ],
        ["Of one device, an estimate: what it computes; what it waits for the exchanges of each group, and for other",
         "stages; tokens or samples, and FLOPs without what is computed again."],
    )  # fmt: skip
    titles = {
        "weights": "Weights", "weight_gradients": "Weight grad.", "feature_maps": "Feature maps",
        "gradient_maps": "Grad. maps", "optimiser_state": "State", "workspace": "Workspace",
    }  # fmt: skip
    print_table(
        f"{network}: memory of the device of the pipeline that holds most",
        ["<Design", "Devices", "Stage", *titles.values(), "Peak"],
        [
            (plan.design, plan.devices, memory.worst, *(si(memory.ranks[memory.worst][name], "B") for name in titles),
             si(memory.peak, "B"))
            for plan, _, memory, _ in tables
        ],
    )  # fmt: skip
    if any(failures for *_, failures in tables):
        print_table(
            f"{network}: failures and checkpoints",
            ["<Design", "Devices", "A failure every", "Checkpoint", "takes", "Young", "Daly", "Useful"],
            [
                (plan.design, plan.devices, f"{failures.mtbf / 3600:,.1f} h", si(memory.state, "B"),
                 _seconds(failures.write), f"{failures.young / 60:,.0f} min", f"{failures.daly / 60:,.0f} min",
                 f"{failures.useful:.1%}")
                for plan, _, memory, failures in tables
            ],
        )  # fmt: skip
