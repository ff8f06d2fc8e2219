"""``softnum law``: fit a scaling law of language models to runs, and predict from it."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file

__all__ = ["register"]

_RUNS = (
    "CSV with a run a row (parameters, tokens or flops, loss), or a folder of records of softnum train gpt, of which "
    "the last evaluation counts."
)


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    law = typer.Typer(
        help="Fit a scaling law of language models, and predict from it.", no_args_is_help=True, rich_markup_mode=None
    )  # fmt: skip
    law.command("fit", short_help="Fit L(N, D) = E + A / N^a + B / D^b to runs.")(exit_codes(fit))
    law.command("predict", short_help="Predict a loss, or the tokens to a loss, from a fitted law.")(
        exit_codes(predict)
    )
    app.add_typer(law, name="law")


def fit(
    runs: Annotated[Path, typer.Argument(help=_RUNS)],
    metric: Annotated[
        str, typer.Option(help="Column of the loss; of records held_out_loss or bits_per_byte.")
    ] = "loss",
    bootstrap: Annotated[int, typer.Option(help="Bootstrap resamplings for the intervals; 0: no intervals.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 1,
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    out: Annotated[Path, typer.Option(help="JSON file to write the law to.")] = Path("law.json"),
) -> None:
    """Fit L(N, D) = E + A / N^a + B / D^b to runs of N parameters and D tokens, as Hoffmann et al. 2022 fit theirs.

    Minimises the Huber loss of log L (transition 0.001) with scipy; intervals by a bootstrap over the runs. Needs at
    least six runs, with three different numbers of parameters and three of tokens.

    \b
      softnum law fit runs.csv --out law.json
      softnum law fit runs/train --metric bits_per_byte
    """
    need("scipy")
    from softnum.runtime.atomic import write_atomic
    from softnum.tta.scaling_law import fit_law, read_runs

    writable_file(out)
    found = fit_law(read_runs(runs, metric), bootstrap=bootstrap, seed=seed, confidence=confidence, metric=metric)
    write_atomic(out, found.to_json())
    typer.echo(f"L(N, D) = E + A / N^a + B / D^b, {found.metric} of {found.runs} runs")
    for (name, (low, high)), value in zip(found.intervals().items(), found.fitted, strict=True):
        told = f"  {100 * confidence:g} %: {low:.4g} to {high:.4g}" if bootstrap else ""
        typer.echo(f"  {name} {value:.4g}{told}")
    spans = " and ".join(f"{low:.3g} to {high:.3g}" for low, high in (found.parameters, found.tokens))
    typer.echo(f"  N and D of the runs: {spans}\nWritten: {out}")


def predict(
    law: Annotated[Path, typer.Argument(help="File that softnum law fit wrote.")],
    parameters: Annotated[float, typer.Option(help="N, the number of parameters.")],
    tokens: Annotated[float | None, typer.Option(help="D, the number of tokens: prints the loss after them.")] = None,
    loss: Annotated[float | None, typer.Option(help="In place of --tokens: prints the tokens to this loss.")] = None,
) -> None:
    """Predict from a law for N parameters: the loss after D tokens, or the tokens to a loss.

    The interval is that of the law, from its bootstrap; a single run also varies with its seed. N or D outside the
    range of the runs is marked as extrapolated; more than ten times outside, it is refused.

    \b
      softnum law predict law.json --parameters 1e6 --tokens 2e7
      softnum law predict law.json --parameters 1e6 --loss 2.5
    """
    from softnum.tta.scaling_law import read_law

    if (tokens is None) == (loss is None):
        raise ValueError("say --tokens, for the loss after them, or --loss, for the tokens to it; one of them")
    found = read_law(law)
    if tokens is not None:
        told, what = (
            found.loss(parameters, tokens),
            f"{found.metric} of {parameters:g} parameters after {tokens:g} tokens",
        )
    else:
        told, what = (
            found.tokens_to(loss, parameters),
            f"tokens of {parameters:g} parameters to {found.metric} {loss:g}",
        )
    ends = f" ({100 * found.confidence:g} %: {told.low:.4g} to {told.high:.4g})" if found.draws else ""
    typer.echo(f"{what}: {told.value:.4g}{ends}{', extrapolated' if told.extrapolated else ''}")
