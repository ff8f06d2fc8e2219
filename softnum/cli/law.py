"""``softnum law``: fit a scaling law of language models to runs, and predict from it."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, need, writable_file, writable_folder
from softnum.cli.options import Confidence

__all__ = ["register"]

_RUNS = (
    "CSV with a run a row (parameters, tokens or flops, loss; of several designs also design, operands, bits and "
    "products), or folders of records of softnum train gpt, or of studies of it, of which the last evaluation counts; "
    "or a tar archive of such folders."
)


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    law = typer.Typer(
        help="Plan and fit a scaling law of language models, and predict from it.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    law.command("plan", short_help="Write studies for a law of several designs, with their hours.")(exit_codes(plan))
    law.command("fit", short_help="Fit L(N, D) = E + A / N^a + B / D^b to runs, of one design or several.")(
        exit_codes(fit)
    )
    law.command("predict", short_help="Predict a loss, or the tokens to a loss, from a fitted law.")(
        exit_codes(predict)
    )
    app.add_typer(law, name="law")


def plan(
    folder: Annotated[Path, typer.Argument(help="Folder for studies, designs and plan.csv.")],
    seconds: Annotated[
        Path | None,
        typer.Option(help="CSV of size, design and seconds an iteration; else they are measured, for minutes."),
    ] = None,
    data: Annotated[str, typer.Option(help="Text: text-gcide, text-jargon, or text with --data-dir.")] = "text-gcide",
    data_dir: Annotated[Path | None, typer.Option(help="File of your own text.")] = None,
    tokens: Annotated[str, typer.Option(help="Tokens of the designs' runs.")] = "524288,1572864,4194304,12582912",
    sums_tokens: Annotated[str, typer.Option(help="Tokens of the runs of narrow sums.")] = "1572864,4194304",
    seeds: Annotated[int, typer.Option(help="Runs (seeds) of each.")] = 2,
    hours: Annotated[float, typer.Option(help="The largest number of machine-hours in all.")] = 48.0,
    piece_hours: Annotated[float, typer.Option(help="The largest number of machine-hours of a piece.")] = 2.0,
) -> None:
    """Write studies whose runs make a law of several designs, in pieces, with the hours of each before it starts.

    GPTs of 30k, 100k and 300k parameters under four designs (binary32; FP8 with a Hopper tensor core's sums; MXFP8;
    NVFP4), and under FP8 with sums of 4 to 13 fraction bits, of whole products and of 32 at a time, so that bits and K
    vary apart. Runs of 1m parameters are listed in held-out.toml, for what was predicted to be tested.

    \b
      softnum law plan plan
      softnum study run plan/piece-01.toml --jobs 1 --out runs/piece-01
      softnum law fit runs/piece-* --metric bits_per_byte
    """
    need("joblib", "sklearn", "matplotlib", "scipy")
    from softnum.train.studies.law_plan import LawPlan, measure_seconds, read_seconds, write_plan, write_seconds

    writable_folder(folder)
    asked = LawPlan(_counts("--tokens", tokens), _counts("--sums-tokens", sums_tokens), seeds, data, data_dir)
    if seconds is None:
        found = measure_seconds(asked, say=lambda line: typer.echo(line, err=True))
        write_seconds(folder / "seconds.csv", found)  # whatever becomes of the plan, they need not be measured again
    else:
        found = read_seconds(seconds)
    pieces = write_plan(asked, found, folder, hours=hours, piece_hours=piece_hours)
    for piece in pieces:
        typer.echo(
            f"{piece.name}.toml: {piece.runs} runs, {piece.hours:.2f} hours{'' if piece.fitted else ', not to fit'}"
        )
    fitted = [piece for piece in pieces if piece.fitted]
    typer.echo(
        f"{sum(piece.runs for piece in fitted)} runs, {sum(piece.hours for piece in fitted):.1f} of {hours:g} "
        f"machine-hours\nWritten: {folder}"
    )


def _counts(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{option} takes numbers of tokens, like 524288,1572864, got {text!r}") from None


def fit(
    runs: Annotated[list[Path], typer.Argument(help=_RUNS)],
    metric: Annotated[
        str, typer.Option(help="Column of the loss; of records held_out_loss or bits_per_byte.")
    ] = "loss",
    bootstrap: Annotated[int, typer.Option(help="Bootstrap resamplings for the intervals; 0: no intervals.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 1,
    confidence: Confidence = 0.95,
    baseline: Annotated[
        str | None, typer.Option(help="With several designs: the one whose operands the others are compared with.")
    ] = None,
    out: Annotated[Path, typer.Option(help="JSON file to write the law to.")] = Path("law.json"),
) -> None:
    """Fit L(N, D) = E + A / N^a + B / D^b to runs of N parameters and D tokens, as Hoffmann et al. 2022 fit theirs.

    Minimises the Huber loss of log L (transition 0.001) with scipy; intervals by a bootstrap over the runs. Needs at
    least six runs, with three different numbers of parameters and three of tokens.

    Of runs of several designs A is multiplied by exp(s), s = g(operands) + C (K / K0)^r 4^(-q (bits - bits0)), with the
    bits and K of the narrowest sums; a term enters only if its interval excludes what it is without.

    \b
      softnum law fit runs.csv --out law.json
      softnum law fit runs/piece-* --metric bits_per_byte --baseline a-float32
    """
    need("scipy")
    from softnum.runtime.atomic import write_atomic
    from softnum.tta.arithmetic_law import fit_designs
    from softnum.tta.law_runs import read_runs
    from softnum.tta.scaling_law import fit_law

    writable_file(out)
    found = read_runs(runs, metric)
    for sentence in found.excluded:
        typer.echo(f"softnum: left out: {sentence}", err=True)
    how = {"bootstrap": bootstrap, "seed": seed, "confidence": confidence, "metric": metric}
    if len({run.design for run in found.runs}) > 1:
        law = fit_designs(found.runs, baseline=baseline, **how)
        text = [*_law_lines(law.base, bootstrap, len(law.designs)), *_term_lines(law)]
    elif baseline is not None:
        raise ValueError(f"--baseline needs runs of several designs, and these are of one; leave out {baseline!r}")
    else:
        law = fit_law(found.runs, **how)
        text = _law_lines(law, bootstrap)
    write_atomic(out, law.to_json())
    typer.echo("\n".join([*text, f"Written: {out}"]))


def _law_lines(law, bootstrap: int, designs: int = 0) -> list[str]:
    """A fitted law, a line for each of its numbers."""
    head = "L(N, D, design) = E + A exp(s) / N^a + B / D^b" if designs else "L(N, D) = E + A / N^a + B / D^b"
    lines = [f"{head}, {law.metric} of {law.runs} runs{f' of {designs} designs' if designs else ''}"]
    for (name, (low, high)), value in zip(law.intervals().items(), law.fitted, strict=True):
        told = f"  {100 * law.confidence:g} %: {low:.4g} to {high:.4g}" if bootstrap else ""
        lines.append(f"  {name} {value:.4g}{told}")
    spans = " and ".join(f"{low:.3g} to {high:.3g}" for low, high in (law.parameters, law.tokens))
    return [*lines, f"  N and D of the runs: {spans}"]


def _term_lines(law) -> list[str]:
    """The terms of a law of several designs that were tried, and what it keeps."""
    lines = ["s = g(operands) + C (K / K0)^r 4^(-q (bits - bits0)); tried, with the interval:"]
    for term in law.terms:
        lines.append(f"  {term.name} {term.value:.4g}  {term.low:.4g} to {term.high:.4g}  {term.said}")
    kept = law.kept()
    lines.append(f"  kept: g {', '.join(f'{name} {_within(*kept[name])}' for name in law.operands)}")
    sums = f"{', '.join(f'{name} {_within(*kept[name])}' for name in ('C', 'r', 'q'))}"
    sums += f", K0 {law.middle[0]:.4g}, bits0 {law.middle[1]:g}"
    return [*lines, f"  kept: {sums}" if law.sums[0] else "  kept: no term of sums"]


def _within(value: float, low: float, high: float) -> str:
    return f"{value:.4g}" if low == value == high else f"{value:.4g} ({low:.4g} to {high:.4g})"


def predict(
    law: Annotated[Path, typer.Argument(help="File that softnum law fit wrote.")],
    parameters: Annotated[float, typer.Option(help="N, the number of parameters.")],
    tokens: Annotated[float | None, typer.Option(help="D, the number of tokens: prints the loss after them.")] = None,
    loss: Annotated[float | None, typer.Option(help="In place of --tokens: prints the tokens to this loss.")] = None,
    design: Annotated[str | None, typer.Option(help="One of the designs that the law was fitted to.")] = None,
    products: Annotated[float | None, typer.Option(help="K of its sums, where the law depends on it.")] = None,
    bits: Annotated[float | None, typer.Option(help="Bits of its sums, in place of the design's.")] = None,
) -> None:
    """Predict from a law for N parameters: the loss after D tokens, or the tokens to a loss.

    The interval is that of the law, from its bootstrap; a single run also varies with its seed. N or D outside the
    range of the runs is marked as extrapolated; more than ten times outside, it is refused.

    \b
      softnum law predict law.json --parameters 1e6 --tokens 2e7
      softnum law predict law.json --parameters 1e6 --loss 2.5 --design te-nvfp4-block-scaling
    """
    from softnum.tta.arithmetic_law import ArithmeticLaw, read_any_law

    if (tokens is None) == (loss is None):
        raise ValueError(
            "give either --tokens, to predict the loss after them, or --loss, to predict the tokens it takes"
        )
    found, worth = read_any_law(law), None
    if isinstance(found, ArithmeticLaw):
        if design is None:
            raise ValueError(f"{law} is a law of several designs; choose one with --design: {', '.join(found.designs)}")
        found, worth = found.of(design, products, bits), found.effective(design, products, bits)
    elif not (design is products is bits is None):
        raise ValueError(f"{law} is a law of one design; leave out --design, --products and --bits")
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
    of = "" if worth is None else f", {design}"
    ends = f" ({100 * found.confidence:g} %: {told.low:.4g} to {told.high:.4g})" if found.draws else ""
    typer.echo(f"{what}{of}: {told.value:.4g}{ends}{', extrapolated' if told.extrapolated else ''}")
    if worth is not None:
        typer.echo(f"a parameter is worth {worth:.4g} of the baseline's")
