"""How commands take the tuning of learning rates."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.train import progress_bar

__all__ = ["TuneRates", "counted", "tuning_of"]


@dataclass(frozen=True)
class TuneRates:
    """Options of a command: a grid of learning rates, and the seeds that they are tried with."""

    tune_rates: Annotated[
        str | None,
        typer.Option(
            help="Tune the learning rate of each design: multiples of --lr to try, 1 among them, like 0.5,1,2. Results "
            "stand beside those without tuning."
        ),
    ] = None
    tune_seeds: Annotated[
        str | None,
        typer.Option(help="Seeds for tuning, different from --seeds: how many (from 1001), or a list.  [default: 3]"),
    ] = None

    def read(self, judged: list[int]) -> tuple[tuple[float, ...], list[int]] | None:
        """The grid and the tuning seeds; None if nothing is to be tuned.

        Raises
        ------
        ValueError
            If one of them is malformed, or a tuning seed is judged too.
        """
        if self.tune_rates is None:
            if self.tune_seeds is not None:
                raise ValueError(
                    "--tune-seeds is for --tune-rates; add a grid like --tune-rates 0.5,1,2, or leave it out"
                )
            return None
        from softnum.tta.outcomes.tuning import read_multipliers

        try:
            values = [float(part) for part in self.tune_rates.split(",")]
        except ValueError:
            raise ValueError(
                f"--tune-rates must be a list of multiples like 0.5,1,2, got {self.tune_rates!r}"
            ) from None
        try:
            multipliers = read_multipliers(values)
        except ValueError as error:
            raise ValueError(f"--tune-rates {self.tune_rates}: {error}") from None
        return multipliers, self._seeds(judged)

    def _seeds(self, judged: list[int]) -> list[int]:
        from softnum.train.studies.rates import TUNING_SEEDS, check_apart, counted_seeds

        text = str(TUNING_SEEDS) if self.tune_seeds is None else self.tune_seeds
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(f"--tune-seeds must be a count or a list like 1001,1002, got {text!r}") from None
        try:
            seeds = numbers if len(numbers) > 1 else counted_seeds(numbers[0])
        except ValueError as error:
            raise ValueError(f"--tune-seeds {error}") from None
        check_apart(seeds, judged, "--tune-seeds", "of --seeds")
        return list(seeds)


def counted(step, what: str):
    """What shows the progress of runs: how many were found, and how many trained."""
    counts = {True: 0, False: 0}

    def show(done: int, total: int, text: str, trained: bool) -> None:
        counts[trained] += 1
        step(done, total, f"{what}: {counts[False]} found, {counts[True]} trained; last {text}")

    return show


def tuning_of(cases, settings, grid, seeds, target: float, metric: str, rules, out: Path):
    """What tunes the learning rates; its cost is said at once, before anything is trained."""
    from softnum.train.studies.tuning import plan_tuning, tune_rates

    multipliers, trials = grid
    folder = out / "tuning"
    plan = plan_tuning(cases, settings, multipliers, seeds=trials, judged=seeds, out=folder)
    typer.echo(plan.text, err=True)

    def tune(records, **work):
        with progress_bar() as step:
            return tune_rates(
                cases, settings, multipliers, records, seeds=trials, target=target, reached=rules["reached"],
                metric=metric, out=folder, **work, progress=counted(step, "tuning"),
            )  # fmt: skip

    return tune
