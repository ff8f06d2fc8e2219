"""``softnum train``: one network under one design."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli import exit_codes, need, writable_folder

__all__ = ["SIZES_HELP", "STEPS_HELP", "network_options", "progress_bar", "register"]

SIZES_HELP = "Layer sizes: of the mlp (64,128,10), or inputs of a step, hidden, outputs of the lstm (8,32,10)."
STEPS_HELP = "Steps in which the lstm reads a sample.  [default: 8]"


@contextlib.contextmanager
def progress_bar():
    """A progress bar on stderr, so that stdout holds results only; it appears with the first step.

    Yields ``step(done, total, text)``; a text of None leaves the last one.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task("", total=None)

    def step(done: int, total: int, text: str | None) -> None:
        bar.start()  # does nothing if it runs
        bar.update(task, completed=done, total=total, **({} if text is None else {"description": text}))

    try:
        yield step
    finally:
        if bar.live.is_started:  # else stopping would print an empty line
            bar.stop()


def network_options(network: str, sizes: str | None, steps: int | None) -> dict:
    """The parameters of a network as its constructor takes them; what is not given stays the network's own."""
    options = {}
    if sizes is not None:
        try:
            options["sizes"] = [int(size) for size in sizes.split(",")]
        except ValueError:
            raise ValueError(f"--sizes must be integers and commas, like 64,128,10, got {sizes!r}") from None
    if steps is not None:
        if network == "mlp":
            raise ValueError("--steps is the lstm's; an mlp takes a sample at once")
        options["steps"] = steps
    return options


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("train", short_help="Train a network in a design's arithmetic.")(exit_codes(train))


def train(
    network: Annotated[str, typer.Argument(help="Reference network: mlp or lstm.")],
    design: Annotated[str, typer.Option(help="Design file, or the name of a shipped design.")],
    data: Annotated[str, typer.Option(help="Data set: digits.")] = "digits",
    epochs: Annotated[int, typer.Option(help="Passes over the training samples.")] = 20,
    batch: Annotated[int, typer.Option(help="Samples per iteration.")] = 32,
    seed: Annotated[int, typer.Option(help="Of initial weights, batches and stochastic rounding.")] = 1,
    sizes: Annotated[str | None, typer.Option(help=SIZES_HELP)] = None,
    steps: Annotated[int | None, typer.Option(help=STEPS_HELP)] = None,
    learning_rate: Annotated[float, typer.Option("--learning-rate", "--lr", help="Step size of SGD.")] = 0.1,
    momentum: Annotated[float, typer.Option(help="Momentum of SGD.")] = 0.9,
    weight_decay: Annotated[float, typer.Option(help="L2 weight decay of SGD.")] = 1e-4,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Iterations between evaluations.  [default: every 160 samples]")
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of a matrix product; the record does not depend on it.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder; the record is OUT/<design>/seed-<n>.jsonl.")] = Path("runs/train"),
    force: Annotated[bool, typer.Option("--force", help="Run again and replace the record.")] = False,
) -> None:
    """Train a network in a design's arithmetic and write its record (JSON lines).

    A finished run is not run again; an interrupted one goes on from its last whole epoch.

    \b
      softnum train mlp --design c-wang-fp8 --epochs 2 --seed 1 --out runs/train

    Shipped designs: a-float32, b-binary16, c-wang-fp8, d-e6m3-long, e-e6m3-chunk, f-q44-nearest, g-q44-stochastic,
    h-posit8; `softnum designs` says what they are. To make your own, change a copy of one:

    \b
      softnum designs c-wang-fp8 --out .
    """
    need("sklearn")  # the data
    writable_folder(out)
    from softnum.train import Settings, load_design, run
    from softnum.train.loop import read_rows

    settings = Settings(
        network=network,
        network_options=network_options(network, sizes, steps),
        data=data,
        batch=batch,
        epochs=epochs,
        learning_rate=learning_rate,
        momentum=momentum,
        weight_decay=weight_decay,
        evaluate_every=evaluate_every,
    )
    chosen = load_design(design)
    with progress_bar() as step:

        def show(iteration: int, iterations: int, accuracy: float | None) -> None:
            text = None if accuracy is None else f"{chosen.name}, seed {seed}: accuracy {accuracy:.3f}"
            step(iteration, iterations, text)

        path = run(chosen, settings, seed=seed, out=out, force=force, threads=threads, progress=show)
    rows = read_rows(path)
    best = max(row["accuracy"] for row in rows if "accuracy" in row)
    end = "diverged" if rows[-1].get("diverged") else f"loss {rows[-1]['loss']:.4g}"
    last = rows[-1]
    typer.echo(f"{path}: {last['iteration']} iterations, {end}, accuracy {last['accuracy']:.4f} (best {best:.4f})")
