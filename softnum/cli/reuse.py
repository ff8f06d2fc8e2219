"""How commands take and name the records of earlier studies."""

from typing import Annotated

import typer

__all__ = ["NoReuse", "store_of", "tell_taken"]

NoReuse = Annotated[
    bool,
    typer.Option(
        "--no-reuse",
        help=(
            "Train again instead of reusing an earlier record of the same design, data, settings, seed and versions. "
            "Records are kept in SOFTNUM_RECORDS.  [default: records in ~/.cache/softnum; none keeps nothing]"
        ),
    ),
]


def store_of(no_reuse: bool):
    """The user's `RecordStore`; None if it is not wanted, or cannot be had, which is said."""
    from softnum.train.studies.store import own_store

    if no_reuse:
        return None
    try:
        return own_store()
    except ValueError as error:
        typer.echo(f"softnum: records of earlier studies are left alone: {error}", err=True)
        return None


def tell_taken(count: int, store) -> None:
    """Say how many runs were not trained because an earlier study has trained them."""
    if count:
        runs = "1 run was" if count == 1 else f"{count} runs were"
        typer.echo(f"{runs} trained by an earlier study ({store.folder}); --no-reuse trains again.", err=True)
