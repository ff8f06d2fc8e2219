"""``softnum tta --law``: what training a language model would take on a system, from a scaling law."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import need, writable_folder
from softnum.cli.outcomes import command_line, stated
from softnum.cli.systems import named_system
from softnum.cli.tables import print_table, words
from softnum.cli.workloads import ways_of

__all__ = ["ForecastOptions", "on_a_law"]

#: Options of ``softnum tta`` that go with --law, beside those below.
_TAKEN = {"network", "designs", "batch", "optimiser", "rent", "out", "explain"}


@dataclass(frozen=True)
class ForecastOptions:
    """Options of a command: a forecast by a law, in place of training."""

    law: Annotated[
        Path | None,
        typer.Option(
            help="Train nothing: the file of a scaling law (softnum law fit), and --model a language model (llama3-8b) "
            "on a --system to a --target-loss."
        ),
    ] = None
    target_loss: Annotated[float | None, typer.Option(help=("With --law: the loss to reach, in the law's metric."))] = (
        None
    )
    system: Annotated[
        str | None, typer.Option(help="With --law: a system by name (dgx-h100), or a TOML file with one.")
    ] = None
    devices: Annotated[
        int | None, typer.Option(help=("With --law: the number of devices.  [default: all of the system]"))
    ] = None
    ways: Annotated[
        str | None,
        typer.Option(
            help=(
                "With --law: how a step is divided, tensor=8,pipeline=4,zero=1 as in softnum parallel.  [default: the "
                "fastest of a stated set]"
            )
        ),
    ] = None
    law_design: Annotated[
        str | None,
        typer.Option(help="With a --law of several designs: the one whose tokens are needed.  [default: the --design]"),
    ] = None
    law_products: Annotated[
        float | None,
        typer.Option(help="With a --law that depends on the length of sums: products that one sum of the model adds."),
    ] = None
    parameters: Annotated[
        float | None, typer.Option(help="With --law: the number of parameters N.  [default: all of the model's]")
    ] = None

    def given(self) -> list[str]:
        """Options that are stated, but for the law."""
        names = [field.name for field in fields(self) if field.name != "law" and getattr(self, field.name) is not None]
        return [f"--{name.replace('_', '-')}" for name in names]


def on_a_law(
    ctx: typer.Context, own: ForecastOptions, model: str, designs: str | None, batch: int | None, optimiser: str,
    rent: list[str] | None, out: Path, explain: bool,
) -> None:  # fmt: skip
    """Forecast each design, print and write it, and its page."""
    named = stated(ctx)
    wrong = [name for name in named if name not in _TAKEN | {field.name for field in fields(ForecastOptions)}]
    if wrong:
        raise ValueError(
            f"--{wrong[0].replace('_', '-').replace('learning-rate', 'lr')} cannot be combined with --law, which "
            "trains nothing; leave one of them out"
        )
    if "network" not in named:
        raise ValueError("--law needs a language model: --model llama3-8b; softnum estimate lists them")
    for option, value, like in (
        ("--system", own.system, "mine.toml"), ("--target-loss", own.target_loss, "2.2")
    ):  # fmt: skip
        if value is None:
            raise ValueError(f"--law needs {option}, like {option} {like}")
    out = out if "out" in named else Path("runs", f"{Path(model).name}-forecast")
    writable_folder(out)
    need("altair", "jinja2", "vl_convert")
    from softnum.tta import forecast, write_forecasts, write_report
    from softnum.tta.forecasts import Given, read_ways
    from softnum.tta.forecasts.results import check_place

    check_place(out / "results.json")
    law_of, where = _law(own), named_system(own.system)
    given = Given(
        own.devices, batch, None if own.ways is None else read_ways(own.ways), own.parameters, _rent(rent),
        optimiser if "optimiser" in named else "adam",
    )  # fmt: skip
    chosen, files = _precisions(designs)
    files = [(own.law, "law"), *([(own.system, "system")] if own.system.endswith(".toml") else []), *files]
    found = []
    for precision in chosen:
        law, source = law_of(precision.name)
        found.append(forecast(model, precision, where, law, own.target_loss, given, law_source=source))
    _print(found, explain)
    written = write_forecasts(out / "results.json", found, files, command_line(ctx))
    page = write_report(out, out / "report.html")
    typer.echo(f"\nWritten: {written}\n         {page} (needs no network)")


def _law(own: ForecastOptions):
    """Read the law; what it returns gives that of a design, and its source."""
    from softnum.tta.arithmetic_law import ArithmeticLaw, read_any_law

    law = read_any_law(own.law)
    if not isinstance(law, ArithmeticLaw):
        for option, value in (("--law-design", own.law_design), ("--law-products", own.law_products)):
            if value is not None:
                raise ValueError(
                    f"{option} needs a law of several designs, and {own.law} has one arithmetic only; leave it out, or "
                    "fit a law to runs of several designs"
                )
        return lambda design: (law, own.law.name)

    def of(design: str):
        chosen = own.law_design or design
        if chosen not in law.designs:
            raise ValueError(
                f"{own.law} has no design {chosen!r}; choose with --law-design the one that trains in this arithmetic: "
                f"{', '.join(law.designs)}"
            )
        return law.of(chosen, own.law_products), f"{own.law.name}, {chosen}"

    return of


def _rent(texts: list[str] | None) -> float | None:
    if not texts:
        return None
    try:
        (text,) = texts
        return float(text)
    except ValueError:
        raise ValueError(
            f"--rent of a forecast must be one number, dollars per device and hour, like 2.48; got {', '.join(texts)}"
        ) from None


def _precisions(designs: str | None):
    """The formats of each design, recipe or preset, and the files of designs."""
    from softnum.tta.architectures.precision import PRECISIONS
    from softnum.tta.parallelism.calibration import RECIPES, recipe

    found, files = [], []
    for name in words(designs) or ["bfloat16"]:
        plain = name.removesuffix("-recipe")
        if name in PRECISIONS:
            ((precision, _),) = ways_of([], [name], ())
        elif name.endswith("-recipe") and plain in RECIPES:
            precision = replace(recipe(plain), name=name)
        else:
            from softnum.train import load_design

            files.append((load_design(name).path, "design"))
            ((precision, _),) = ways_of([name], [], ())
        found.append(precision)
    return found, files


def _print(found, explain: bool) -> None:
    from softnum.tta.forecasts.words import amount_words, result_lines

    for told in found:
        for line in result_lines(told.network, told.design, told.system, told.metric, told.target, told.amounts):
            typer.echo(line)
        for line in told.extrapolated:
            typer.echo(f"  EXTRAPOLATED: {line}")
        if told.confidence is not None:
            typer.echo(f"  Intervals: at least {100 * told.confidence:.3g} %; ends of products are products of ends.")
        ways = told.step.plan.parallelism
        shared = f"data {ways.data} x tensor {ways.tensor} x pipeline {ways.pipeline} x context {ways.context}"
        shared += f", expert {ways.expert}, micro_batch {ways.micro_batch}, zero {ways.zero}, recompute "
        shared += f"{ways.recompute}"
        if told.found is not None:
            shared += f"; the fastest of {told.found.fitting} that fit"
        peak = f"{told.step.memory.peak / 1e9:.1f} GB of a device"
        typer.echo(f"  A step: {shared}; {peak}, {told.step.time.share_of_peak:.0%} of peak")
        for line in told.notes if explain else [note for note in told.notes if note.startswith("No ")]:
            typer.echo(f"  {line}")
        print_table(
            "", ["<Factor", "Value", "Interval", "<Kind", "~Source"],
            [(each.name, *amount_words(each), each.kind, each.source) for each in told.amounts],
        )  # fmt: skip
