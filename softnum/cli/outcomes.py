"""How commands take what a study looks at, and learning curves of other frameworks."""

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.options import Confidence

__all__ = ["Curves", "Outcomes", "Shown", "command_line", "flag_of", "stated"]

#: Options that change no number of a result.
_SILENT = ("out", "jobs", "force", "no_reuse", "explain", "plots")


@dataclass(frozen=True)
class Outcomes:
    """Options of a command: what counts as reached, and what is computed besides time."""

    metric: Annotated[
        str, typer.Option(help="Metric of the target. loss: of the training batches, where softnum trains.")
    ] = "accuracy"
    direction: Annotated[
        str | None,
        typer.Option(help="Whether higher or lower is better.  [default: lower of loss, perplexity, wer, ...]"),
    ] = None
    reached: Annotated[
        str,
        typer.Option(help="When a run has reached the target: first evaluation there, consecutive:K, or average:W."),
    ] = "first"
    smooth: Annotated[
        str | None, typer.Option(help="Smooth the curves first: ema:0.9, with the weight of the past.")
    ] = None
    confidence: Confidence = 0.95
    combine: Annotated[
        list[str] | None,
        typer.Option(help='"a+b=c": compare c, which combines what a and b do, with their product. May be repeated.'),
    ] = None
    rent: Annotated[list[str] | None, typer.Option(help="Dollars per hour: 2.48, or DESIGN=2.48. May be repeated.")] = (
        None
    )
    price: Annotated[list[str] | None, typer.Option(help="Dollars to buy: 8000, or DESIGN=8000. May be repeated.")] = (
        None
    )
    energy_table: Annotated[
        str | None,
        typer.Option(
            help=(
                "Energies for times that come without: 45nm, 45nm-lecture, aladdin-40nm (Accelergy's), or a file of "
                "your own, .toml, that may name an ERT.yaml of Accelergy's.  [default: 45nm]"
            )
        ),
    ] = None

    def rules(self, labels: list[str], baseline: str) -> dict:
        """Them as keywords of `softnum.tta.combine_study`.

        Raises
        ------
        ValueError
            If one of them is malformed, or names no design of the study.
        """
        from softnum.tta.study import outcome_rules

        lists = {name: getattr(self, name) or () for name in ("combine", "rent", "price")}
        return outcome_rules(labels, baseline, **{**dataclasses.asdict(self), **lists})


@dataclass(frozen=True)
class Curves:
    """Options of a command: learning curves that are there already."""

    accuracy: Annotated[
        list[str] | None,
        typer.Option(
            help="Train nothing: learning curves, FILE or FOLDER, or NAME=FILE where a file names no design. May be "
            "repeated."
        ),
    ] = None
    accuracy_format: Annotated[
        str | None,
        typer.Option(
            help=("Format of the curves: softnum, csv, jsonl, mllog, dawnbench or nanogpt.  [default: detected]")
        ),
    ] = None
    iterations_per_epoch: Annotated[
        int | None, typer.Option(help="Iterations of an epoch, for curves that give evaluations by epoch.")
    ] = None
    counts_from: Annotated[
        int | None, typer.Option(help="The number of the first epoch in the curves: 0 or 1.  [default: 1]")
    ] = None

    def read(self, metric: str, batch: int | None):
        """The runs as a `softnum.tta.accuracy.RecordSet`.

        Raises
        ------
        FileNotFoundError, ValueError
            If curves are absent, malformed, or two are of one design and seed.
        """
        from softnum.tta import read_accuracy
        from softnum.tta.accuracy import RecordSet
        from softnum.tta.accuracy.records import keep_record

        records, excluded = {}, []
        for text in self.accuracy:
            name, equals, path = text.partition("=")
            if not equals or Path(text).exists():
                name, path = None, text
            found = read_accuracy(
                path, format=self.accuracy_format, metric=metric, design=name, batch=batch,
                iterations_per_epoch=self.iterations_per_epoch, counts_from=self.counts_from,
            )  # fmt: skip
            excluded += found.excluded
            for record in found.records:
                keep_record(records, record)
        return RecordSet(tuple(records.values()), tuple(excluded))


@dataclass(frozen=True)
class Shown:
    """Options of a command: what is shown of a result beside the table and ``tta.png``."""

    explain: Annotated[
        bool, typer.Option("--explain", help="Print all intervals, warnings, rules and assumptions too.")
    ] = False
    plots: Annotated[
        Path | None,
        typer.Option(help="Folder for more charts (PNG): TTA over targets, gains, Pareto fronts, layers, curves."),
    ] = None

    def written(self, studies, *files: Path) -> None:
        """Draw what is asked for, and say which files there are: a line for each folder."""
        if self.plots is not None:
            from softnum.tta.outcomes import plot_details

            for name, found in plot_details(self.plots, studies).items():
                if isinstance(found, Path):
                    files += (found,)
                else:
                    typer.echo(f"No {name}: {found}.", err=True)
        folders: dict[Path, list[str]] = {}
        for path in files:
            folders.setdefault(path.parent, []).append(path.name)
        lines = [f"Written to {folder}: {', '.join(names)}" for folder, names in folders.items()]
        typer.echo("\n".join(["", *lines]))


def stated(ctx: typer.Context) -> list[str]:
    """Names of the parameters that stand on the command line."""
    return [
        parameter.name
        for parameter in ctx.command.params
        if getattr(ctx.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]


def flag_of(ctx: typer.Context, name: str) -> str:
    """How the command line writes a parameter: ``"--lr"``."""
    return max(next(each.opts for each in ctx.command.params if each.name == name), key=len)


def command_line(ctx: typer.Context) -> str:
    """The command as it was given, in the order of its help, without what changes no number."""
    words, names = ["softnum", ctx.info_name], stated(ctx)
    for parameter in ctx.command.params:
        if parameter.name not in names or parameter.name in _SILENT:
            continue
        value, flag = ctx.params[parameter.name], max(parameter.opts, key=len)
        if value is True:
            words.append(flag)
        else:
            for item in value if isinstance(value, (list, tuple)) else [value]:
                words += [flag, str(item)]
    return shlex.join(words)
