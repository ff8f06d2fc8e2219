"""Multiples of a recipe's learning rate, and the seeds that they are tried with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from softnum.train.runs.own import is_own
from softnum.train.runs.settings import Settings
from softnum.train.studies.study import check_seeds
from softnum.tta.outcomes.tuning import scaled_rate

__all__ = ["FIRST_SEED", "TUNING_SEEDS", "check_apart", "counted_seeds", "rate_name", "scale_rates"]

#: Tuning seeds that are given by their number count from here, far from those that are judged.
FIRST_SEED = 1001
#: how many there are where nothing is said
TUNING_SEEDS = 3


def counted_seeds(count: int) -> tuple[int, ...]:
    """So many tuning seeds.

    >>> counted_seeds(2)
    (1001, 1002)
    """
    if not 1 <= count < FIRST_SEED:
        raise ValueError(f"must be a count from 1 to {FIRST_SEED - 1}, or a list, got {count}")
    return tuple(range(FIRST_SEED, FIRST_SEED + count))


def rate_name(multiplier: float) -> str:
    """What the folder of the runs at a multiple of the recipe's rate is called.

    >>> rate_name(2.0), rate_name(0.5)
    ('x2', 'x0.5')
    """
    return f"x{repr(multiplier).removesuffix('.0')}"


def check_apart(seeds: Sequence[int], judged: Sequence[int], tuning: str, study: str) -> None:
    """Raise ValueError unless tuning seeds are seeds, differ, and none of them is judged; with what both are called."""
    check_seeds(list(seeds))
    both = sorted(set(seeds) & set(judged))
    if both:
        raise ValueError(
            f"seed {both[0]} is a tuning seed and one {study}; a rate must not be judged by the run that it was "
            f"chosen by: give {tuning} others"
        )


def scale_rates(settings: Settings, multiplier: float) -> Settings:
    """Settings with another learning rate: a multiple of what they state, or of the optimiser's default.

    Both rates of muon are multiplied. A multiple of 1 leaves the settings as they are.

    Raises
    ------
    ValueError
        If the network is the user's own and says itself what updates it, or the rate is not one in binary32.

    Examples
    --------
    >>> scale_rates(Settings(), 2.0).learning_rate, scale_rates(Settings(optimiser="adam"), 0.5).learning_rate
    (0.2, 0.0005)
    """
    if is_own(settings.network):
        raise ValueError(
            f"{settings.network} states its own optimiser, so its learning rate cannot be tuned; leave the tuning out, "
            "or compare two functions with different rates"
        )
    if multiplier == 1:
        return settings
    optimiser = settings.describe_updates()["optimiser"]
    rates = {name: optimiser[name] for name in ("learning_rate", "adam_rate") if name in optimiser}
    scaled = {name: scaled_rate(rate, multiplier) for name, rate in rates.items()}
    found = dataclasses.replace(settings, **scaled)
    found.describe_updates()  # raises what would end the first run
    return found
