"""``softnum train``: one network under one design."""

import contextlib
import math
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.completions import complete_designs
from softnum.cli.exits import exit_codes, need, writable_folder
from softnum.cli.networks import NETWORK_HELP, Data, DataFolder, HeldOut, NetworkOptions, Samples
from softnum.cli.options import BATCH, DESIGN, THREADS, TrainAgain
from softnum.cli.updates import Updates, with_groups

__all__ = ["Device", "progress_bar", "register"]

Device = Annotated[
    str, typer.Option(help="Device to compute on: cpu, or cuda for a GPU (softnum[cuda]); records do not depend on it.")
]

#: The shipped design that `softnum train` takes where none is given.
FLOAT32 = "a-float32"
_OWN = NetworkOptions()
_DEFAULTS = Updates()


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


def samples_of(tokens: int, samples: int | None, network: str, data: str | None, options: dict) -> int:
    """How many sequences have so many tokens.

    Raises
    ------
    ValueError
        If samples are stated too, the network is of no text, or the tokens are fewer than a sequence.
    """
    from softnum.train import make_network
    from softnum.train.runs.own import is_own

    if samples is not None:
        raise ValueError("--tokens and --samples both state the amount of data; leave one of them out")
    made = None if is_own(network) else make_network(network, data=data, **options)
    if made is None or made.kind != "text":
        raise ValueError(f"--tokens is for networks that train on text, and {network} does not; use --samples")
    if tokens < made.inputs:
        raise ValueError(
            f"--tokens {tokens} is less than one sequence of {made.inputs} tokens (--set steps); give more tokens"
        )
    return tokens // made.inputs


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("train", short_help="Train a network in a design's arithmetic.")(exit_codes(with_groups(train)))


def train(
    network: Annotated[str, typer.Argument(help=NETWORK_HELP)],
    design: Annotated[
        str | None,
        typer.Option(help=f"{DESIGN}  [default: {FLOAT32}, which is float32]", autocompletion=complete_designs),
    ] = None,
    data: Data = None,
    data_dir: DataFolder = None,
    samples: Samples = None,
    held_out: HeldOut = None,
    tokens: Annotated[
        int | None, typer.Option(help="In place of --samples, for networks of text: how many tokens to train on.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training samples.")] = 20,
    batch: Annotated[int, typer.Option(help=BATCH)] = 32,
    seed: Annotated[int, typer.Option(help="Seed of initial weights, batches and stochastic rounding.")] = 1,
    own: NetworkOptions = _OWN,
    updates: Updates = _DEFAULTS,
    workers: Annotated[int, typer.Option(help="Data-parallel workers that share each batch, emulated.")] = 1,
    collective: Annotated[
        str | None,
        typer.Option(
            help=("The all-reduce of the workers: ring, tree, ..., with arguments in brackets (softnum.collective).")
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            help=(
                "Compression of what workers send: top_k(share=0.01), one_bit, sign, low_rank(rank=4), with error "
                "feedback."
            )
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            help=(
                "In place of a collective, with a batch for each worker: asynchronous, stale_synchronous(bound=2) or "
                "delayed(by=3)."
            )
        ),
    ] = None,
    bucket_bytes: Annotated[
        int | None,
        typer.Option(
            help=(
                "Size of a bucket of gradients that are summed together.  "
                "[default: PyTorch's, 1 MiB first, then 25 MiB]"
            )
        ),
    ] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Iterations between evaluations.  [default: 160 samples, or a tenth of an epoch]")
    ] = None,
    statistics: Annotated[
        int | None,
        typer.Option(
            help="Write statistics of rounding, every N iterations, to OUT/<design>/seed-<n>.statistics.jsonl."
        ),
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Plot these statistics, to a .png of that name.")] = False,
    threads: Annotated[int, typer.Option(help=THREADS)] = 1,
    device: Device = "cpu",
    explain: Annotated[
        bool, typer.Option("--explain", help="Train nothing: list every operation of an iteration, and how it rounds.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Keep no result: measure where the time of an iteration goes.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="File of --profile's timeline, for chrome://tracing.  [default: OUT/<design>/seed-<n>.profile.json]"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder; the record is OUT/<design>/seed-<n>.jsonl.")] = Path("runs/train"),
    force: TrainAgain = False,
) -> None:
    """Train a network in a design's arithmetic and write its record (JSON lines).

    A finished run is not run again; an interrupted one goes on from its last checkpoint: that of the last whole epoch,
    or, in a long one, of an evaluation in it.

    \b
      softnum train mlp
      softnum train mlp --design c-wang-fp8 --epochs 2 --seed 1 --out runs/train

    \b
      softnum train mlp --design c-wang-fp8 --optimiser adamw --schedule cosine --warmup 100 --clip-norm 1.0

    \b
      softnum train recurrent-lm --set cell=gru --data text --data-dir my-text.txt --design b-binary16

    \b
      softnum train gpt --design a-float32 --data text-gcide --sizes 30k --tokens 1000000 --epochs 1 \\
          --optimiser muon --schedule cosine --warmup 100 --clip-norm 1.0

    gpt is a modern decoder (RMS normalisation, SwiGLU, rotary positions, grouped-query attention). It is judged by
    bits_per_byte, with which vocabularies can be compared: softnum tta --metric bits_per_byte --target 2.5 gives the
    tokens and the time to it. --sizes names its number of parameters, --set vocabulary=1024 learns a byte-pair
    encoding, and --set experts=4 makes its feedforwards mixtures of experts.

    \b
      softnum train seq2seq --data de-en --design b-binary16 --optimiser adam --lr 0.003 --epochs 5
      softnum train wgan --design c-wang-fp8 --optimiser adam --lr 0.001 --beta1 0
      softnum train actor-critic --design c-wang-fp8 --optimiser adam --batch 128 --set steps=16
      softnum train mine.py:make --design c-wang-fp8 --epochs 5
      softnum train mlp --design c-wang-fp8 --workers 8 --collective "ring(unit='bfloat16', wire='bfloat16')"
      softnum train mlp --design c-wang-fp8 --workers 8 --collective one_shot --compression "top_k(share=0.01)"
      softnum train mlp --design c-wang-fp8 --workers 4 --server "stale_synchronous(bound=2, periods=(2, 2, 2, 5))"

    mine.py:make is a PyTorch model of your own: make() returns a softnum.torch.Training.

    \b
      softnum train mlp --design c-wang-fp8 --explain
      softnum train mlp --design c-wang-fp8 --profile --trace step.json
      softnum train mlp --design c-wang-fp8 --statistics 50 --plot

    The design says how every operation of the optimiser rounds and in which formats its states are kept (roles
    momentum, second_moment, compensation, update.decay ...), and how the loss is scaled: [loss] with scale = 1000, or
    scale = "dynamic". A role may be sparse: weights = { format = "e4m3fn", sparsity = { pattern = "2:4" } }.

    Shipped designs: a-float32, b-binary16, c-wang-fp8, d-e6m3-long, e-e6m3-chunk, f-q44-nearest, g-q44-stochastic,
    h-posit8, i-mxfp8, j-mxfp4; and recipes: te-delayed-scaling, te-float8-current-scaling, te-float8-block-scaling,
    te-mxfp8-block-scaling, te-nvfp4-block-scaling, torchao-tensorwise, torchao-rowwise,
    torchao-rowwise-with-gw-hp, deepseek-v3, quartet-mxfp4. `softnum designs` says what they are. To make your own,
    change a copy of one:

    \b
      softnum designs c-wang-fp8 --out .
    """
    from softnum.train import Settings, load_design, run
    from softnum.train import explain as explain_iteration
    from softnum.train import profile as profile_iteration
    from softnum.train.engine.devices import check_device
    from softnum.train.nets import default_data
    from softnum.train.runs.loop import read_rows
    from softnum.train.runs.own import is_own
    from softnum.tta.accuracy.reached import direction_of

    check_device(device)
    own_model = is_own(network)
    data = data or (None if own_model else default_data(network))
    need(*(["torch"] if own_model else ["sklearn"] if data == "digits" else []), *(["matplotlib"] if plot else []))
    if plot and statistics is None:
        raise ValueError("--plot draws the file that --statistics writes; add --statistics N")
    if trace is not None and not profile:
        raise ValueError("--trace names the file that --profile writes; add --profile")
    if explain and profile:
        raise ValueError("--explain and --profile each replace training; leave one of them out")
    if statistics is not None and (explain or profile):
        raise ValueError(
            "--statistics describes a training run, and --explain and --profile train nothing; leave one of them out"
        )
    if bucket_bytes is not None and workers == 1:
        raise ValueError(f"--bucket-bytes {bucket_bytes} needs several workers; add --workers and --collective")
    if not explain and trace is None:
        writable_folder(out)
    options = own.of(network)
    settings = Settings(
        network=network,
        network_options=options,
        data=data,
        data_folder=data_dir,
        samples=samples if tokens is None else samples_of(tokens, samples, network, data, options),
        held_out=held_out,
        batch=batch,
        epochs=epochs,
        workers=workers,
        collective=collective,
        compression=compression,
        server=server,
        bucket_bytes=bucket_bytes,
        evaluate_every=evaluate_every,
        **updates.settings(),
    )
    if design is None:
        typer.echo(f"No --design is given: in float32 (design {FLOAT32}).", err=True)
    chosen = load_design(FLOAT32 if design is None else design)
    if explain:
        typer.echo(explain_iteration(settings, chosen, seed=seed))
        return
    if profile:
        from softnum.runtime.atomic import write_atomic

        found = profile_iteration(settings, chosen, seed=seed, threads=threads, device=device)
        trace = trace or out / chosen.name / f"seed-{seed}.profile.json"
        trace.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(trace, found.to_json())
        typer.echo(f"{found}\n\nWritten: {trace}")
        return
    with progress_bar() as step:

        def show(iteration: int, iterations: int, value: float | None) -> None:
            text = None if value is None else f"{chosen.name}, seed {seed}: {value:.3f}"
            step(iteration, iterations, text)

        path = run(
            chosen, settings, seed=seed, out=out, force=force, threads=threads, device=device, statistics=statistics,
            progress=show,
        )  # fmt: skip
    rows = read_rows(path)
    metric = rows[0]["config"].get("metric", "accuracy")
    end = "diverged" if rows[-1].get("diverged") else f"loss {rows[-1]['loss']:.4g}"
    last = rows[-1]
    if plot:
        from softnum.runtime.atomic import write_atomic
        from softnum.train.inspect.plot import draw_statistics

        picture = path.with_suffix(".statistics.png")
        write_atomic(picture, draw_statistics(path.with_suffix(".statistics.jsonl")))
        typer.echo(f"Drawn: {picture}")
    found = f"{metric} {'none' if last[metric] is None else format(last[metric], '.4f')}"
    best = min if direction_of(metric) == "lower" else max
    if metric in ("accuracy", "bits_per_byte"):
        found += f" (best {best((row[metric] for row in rows if row.get(metric) is not None), default=math.nan):.4f})"
    if "tokens_per_sample" in rows[0]["config"]:
        config = rows[0]["config"]
        found += f", {last['iteration'] * config['batch'] * config['tokens_per_sample']:,} tokens"
    typer.echo(f"{path}: {last['iteration']} iterations, {end}, {found}")
