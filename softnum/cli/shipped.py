"""``softnum tta --study``: studies that ship with their records."""

from pathlib import Path

import typer

from softnum.cli.exits import need, writable_folder
from softnum.cli.outcomes import Shown, flag_of, stated

__all__ = ["STUDY_HELP", "open_shipped"]

STUDY_HELP = (
    "Open a study that ships with its records, in seconds: resnet20, language-model, reduction-order or "
    "resnet20-sparsity. Results are computed from the records, and nothing is trained."
)
#: Options of ``softnum tta`` that go with --study.
_TAKEN = {"study", "target", "variant", "energy_table", "out", "explain", "plots"}


def open_shipped(
    ctx: typer.Context, name: str, target: float | None, variant: str, energy_table: str | None, out: Path, shown: Shown
) -> None:
    """Write a shipped study into a folder, say what training it again would cost, and print its results.

    Raises
    ------
    ValueError
        If there is no such study, another option says how to train, or the folder holds another study.
    """
    given = stated(ctx)
    wrong = [option for option in given if option not in _TAKEN]
    if wrong:
        raise ValueError(
            f"{flag_of(ctx, wrong[0])} cannot be combined with --study, whose runs are trained already; leave it out, "
            "or write the study out and edit its study.toml"
        )
    need("joblib", "sklearn", "matplotlib", "scipy")
    from softnum.train.studies.shipped import open_study, shipped_studies

    out = out if "out" in given else Path("runs", name)
    known = shipped_studies()
    if name in known:
        writable_folder(out)
        about = known[name]
        typer.echo(
            f"{about.question}\nIts runs are trained already, in {about.machine_hours:g} machine-hours of one core. "
            f"Data: {about.data}"
        )
    studies = open_study(
        name, out, target=target, variant=variant, energy_table=energy_table, explain=shown.explain
    )  # fmt: skip
    results = sorted(path for pattern in ("*/results.json", "*/tta.png") for path in out.glob(pattern))
    shown.written(studies, out / "study.toml", *results)
    typer.echo(f"\nTo change it, edit {out / 'study.toml'}, and: softnum study run {out / 'study.toml'} --out {out}")
