"""``softnum train``: one network under one design."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli import exit_codes, need, writable_folder
from softnum.cli.networks import (
    NETWORK_HELP,
    Block,
    Cell,
    CriticClip,
    CriticUpdates,
    Data,
    DataFolder,
    Depth,
    Discount,
    Dropout,
    Entropy,
    Heads,
    HeldOut,
    Samples,
    Sizes,
    Steps,
    ValueWeight,
    network_options,
)

__all__ = ["progress_bar", "register"]


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


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("train", short_help="Train a network in a design's arithmetic.")(exit_codes(train))


def train(
    network: Annotated[str, typer.Argument(help=NETWORK_HELP)],
    design: Annotated[str, typer.Option(help="Design file, or the name of a shipped design.")],
    data: Data = None,
    data_dir: DataFolder = None,
    samples: Samples = None,
    held_out: HeldOut = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training samples.")] = 20,
    batch: Annotated[int, typer.Option(help="Samples per iteration.")] = 32,
    seed: Annotated[int, typer.Option(help="Of initial weights, batches and stochastic rounding.")] = 1,
    sizes: Sizes = None,
    steps: Steps = None,
    depth: Depth = None,
    block: Block = None,
    heads: Heads = None,
    cell: Cell = None,
    dropout: Dropout = None,
    critic_updates: CriticUpdates = None,
    critic_clip: CriticClip = None,
    discount: Discount = None,
    value_weight: ValueWeight = None,
    entropy: Entropy = None,
    optimiser: Annotated[str, typer.Option(help="sgd, adam, adamw, lamb or lars.")] = "sgd",
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", "--lr", help="Step size.  [default: sgd 0.1, lars 1, others 0.001]"),
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="Of sgd and lars.  [default: 0.9]")] = None,
    nesterov: Annotated[bool, typer.Option("--nesterov", help="Nesterov's momentum (sgd).")] = False,
    beta1: Annotated[float | None, typer.Option(help="Of adam, adamw, lamb: the mean's.  [default: 0.9]")] = None,
    beta2: Annotated[float | None, typer.Option(help="The mean of squares'.  [default: 0.999]")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Added to the root of the squares.  [default: 1e-8, lamb 1e-6]")
    ] = None,
    trust: Annotated[float | None, typer.Option(help="Of lars: |w| / |g| is scaled by it.  [default: 0.001]")] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="[default: sgd and lars 1e-4, adam 0, adamw and lamb 0.01]")
    ] = None,
    schedule: Annotated[
        str, typer.Option(help="Of the learning rate: constant, step, exponential or cosine.")
    ] = "constant",
    warmup: Annotated[int, typer.Option(help="Iterations in which the rate grows linearly from 0.")] = 0,
    decay_every: Annotated[int | None, typer.Option(help="Iterations between steps (step).")] = None,
    decay_factor: Annotated[
        float | None, typer.Option(help="Of each step (step; default 0.1), or iteration (exponential).")
    ] = None,
    final_rate: Annotated[
        float | None, typer.Option(help="What cosine ends at, as a share of the rate.  [default: 0]")
    ] = None,
    clip_norm: Annotated[
        float | None, typer.Option(help="Shrink all gradients if their norm together is larger.")
    ] = None,
    clip_value: Annotated[float | None, typer.Option(help="Largest size of an element of a gradient.")] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Iterations between evaluations.  [default: 160 samples, or a tenth of an epoch]")
    ] = None,
    statistics: Annotated[
        int | None,
        typer.Option(
            help="Write what rounding did, every so many iterations, to OUT/<design>/seed-<n>.statistics.jsonl."
        ),
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw these statistics, to a .png of that name.")] = False,
    threads: Annotated[int, typer.Option(help="Threads of a matrix product; the record does not depend on it.")] = 1,
    explain: Annotated[
        bool, typer.Option("--explain", help="Train nothing: list every operation of an iteration, and how it rounds.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder; the record is OUT/<design>/seed-<n>.jsonl.")] = Path("runs/train"),
    force: Annotated[bool, typer.Option("--force", help="Run again and replace the record.")] = False,
) -> None:
    """Train a network in a design's arithmetic and write its record (JSON lines).

    A finished run is not run again; an interrupted one goes on from its last whole epoch.

    \b
      softnum train mlp --design c-wang-fp8 --epochs 2 --seed 1 --out runs/train

    \b
      softnum train mlp --design c-wang-fp8 --optimiser adamw --schedule cosine --warmup 100 --clip-norm 1.0

    \b
      softnum train recurrent-lm --cell gru --data text --data-dir my-text.txt --design b-binary16

    \b
      softnum train wgan --design c-wang-fp8 --optimiser adam --lr 0.001 --beta1 0
      softnum train actor-critic --design c-wang-fp8 --optimiser adam --batch 128 --steps 16

    \b
      softnum train mlp --design c-wang-fp8 --explain
      softnum train mlp --design c-wang-fp8 --statistics 50 --plot

    The design says how every operation of the optimiser rounds and in which formats its states are kept (roles
    momentum, second_moment, update.decay, update.step ...), and how the loss is scaled: [loss] with scale = 1000, or
    scale = "dynamic".

    Shipped designs: a-float32, b-binary16, c-wang-fp8, d-e6m3-long, e-e6m3-chunk, f-q44-nearest, g-q44-stochastic,
    h-posit8; `softnum designs` says what they are. To make your own, change a copy of one:

    \b
      softnum designs c-wang-fp8 --out .
    """
    from softnum.train import Settings, load_design, run
    from softnum.train import explain as explain_iteration
    from softnum.train.loop import read_rows
    from softnum.train.nets import default_data

    data = data or default_data(network)
    need(*(["sklearn"] if data == "digits" else []), *(["matplotlib"] if plot else []))  # the data; the picture
    if plot and statistics is None:
        raise ValueError("--plot draws what --statistics writes; add --statistics N")
    if not explain:
        writable_folder(out)

    settings = Settings(
        network=network,
        network_options=network_options(
            network,
            sizes=sizes,
            steps=steps,
            depth=depth,
            block=block,
            heads=heads,
            cell=cell,
            dropout=dropout,
            critic_updates=critic_updates,
            critic_clip=critic_clip,
            discount=discount,
            value_weight=value_weight,
            entropy=entropy,
        ),
        data=data,
        data_folder=data_dir,
        samples=samples,
        held_out=held_out,
        batch=batch,
        epochs=epochs,
        optimiser=optimiser,
        learning_rate=learning_rate,
        momentum=momentum,
        nesterov=nesterov or None,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        trust=trust,
        weight_decay=weight_decay,
        schedule=schedule,
        warmup=warmup,
        decay_every=decay_every,
        decay_factor=decay_factor,
        final_rate=final_rate,
        clip_norm=clip_norm,
        clip_value=clip_value,
        evaluate_every=evaluate_every,
    )
    chosen = load_design(design)
    if explain:
        typer.echo(explain_iteration(settings, chosen, seed=seed))
        return
    with progress_bar() as step:

        def show(iteration: int, iterations: int, accuracy: float | None) -> None:
            text = None if accuracy is None else f"{chosen.name}, seed {seed}: accuracy {accuracy:.3f}"
            step(iteration, iterations, text)

        path = run(
            chosen, settings, seed=seed, out=out, force=force, threads=threads, statistics=statistics, progress=show
        )  # fmt: skip
    rows = read_rows(path)
    best = max(row["accuracy"] for row in rows if "accuracy" in row)
    end = "diverged" if rows[-1].get("diverged") else f"loss {rows[-1]['loss']:.4g}"
    last = rows[-1]
    if plot:
        from softnum.train.record import write_atomic
        from softnum.train.statistics_plot import draw_statistics

        picture = path.with_suffix(".statistics.png")
        write_atomic(picture, draw_statistics(path.with_suffix(".statistics.jsonl")))
        typer.echo(f"Drawn: {picture}")
    typer.echo(f"{path}: {last['iteration']} iterations, {end}, accuracy {last['accuracy']:.4f} (best {best:.4f})")
