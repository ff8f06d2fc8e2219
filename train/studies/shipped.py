"""Studies that ship with their records: what they ask is answered in seconds, from the runs that were trained once.

Each is a folder in ``shipped`` with ``study.toml``, its designs and times, ``about.toml``, and ``kept.tar.xz``: what
`softnum.train.conduct_study` wrote into the study's folder that results are computed from: ``<network>/records``,
``<network>/workloads.json`` and a simulator's reports. Opened, all of it lies in a folder in which ``softnum study
run`` goes on. `keep_study` packs a finished one.
"""

from __future__ import annotations

import io
import shlex
import tarfile
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from softnum.runtime.atomic import write_atomic
from softnum.runtime.plain import plain
from softnum.train.designs.design import nearest
from softnum.train.studies.results import comparison_variants, study_inputs
from softnum.train.studies.study_file import Comparison, read_study
from softnum.train.studies.study_keys import VARIANTS
from softnum.tta.accuracy.records import RecordSet, design_points, read_records
from softnum.tta.outcomes.outcome import Study
from softnum.tta.study import conclude, outcome_rules
from softnum.tta.workloads.energy_files import read_energy_table

__all__ = ["ShippedStudy", "keep_study", "open_study", "shipped_studies"]

_KEPT = "kept.tar.xz"


@dataclass(frozen=True)
class ShippedStudy:
    """A study that ships with its records.

    Attributes
    ----------
    name : str
    question : str
        What it asks, on a line.
    machine_hours : float
        What training all of its runs took, on one core.
    data : str
        What its data are and how to get them: for training, not for opening.
    path : pathlib.Path
        Its folder in the package.
    """

    name: str
    question: str
    machine_hours: float
    data: str
    path: Path


def shipped_studies() -> dict[str, ShippedStudy]:
    """The studies that ship with their records, by name.

    >>> sorted(shipped_studies())
    ['language-model', 'reduction-order', 'resnet20', 'resnet20-sparsity']
    """
    found = {}
    for about in sorted(Path(__file__).parent.glob("shipped/*/about.toml")):
        table = tomllib.loads(about.read_text(encoding="utf-8"))
        found[about.parent.name] = ShippedStudy(about.parent.name, **table, path=about.parent)
    return found


@plain
def open_study(
    name: str,
    out: str | Path,
    *,
    target: float | None = None,
    variant: str = "all",
    energy_table: str | None = None,
    explain: bool = False,
    console=None,
) -> list[Study]:
    """Write a shipped study into a folder, and compute and print its results from the records.

    Parameters
    ----------
    name : str
        One of `shipped_studies`.
    out : path-like
        The folder, which gets ``study.toml``, ``designs`` and a folder for each network with ``records``,
        ``results.json`` and ``tta.png``.
    target : float, optional
        Another than the study's.
    variant : str
        "all", "stated" or "equal-area".
    energy_table : str, optional
        Another than the study's, as `softnum.tta.workloads.read_energy_table` takes it.
    explain : bool
        As of `softnum.tta.print_studies`.
    console : rich.console.Console, optional
        Where to print.

    Returns
    -------
    list of softnum.tta.Study
        One for each network and variant.

    Raises
    ------
    ValueError
        If there is no such study, variant or energy table, or the folder holds another study, or this one with other
        files than were shipped; nothing is written then.

    Examples
    --------
    >>> import io, tempfile
    >>> from rich.console import Console
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     studies = open_study("resnet20", folder, console=Console(file=io.StringIO()))
    >>> [result.design for result in studies[0].designs]
    ['bfloat16', 'fp8-binary32', 'fp8-e6m9', 'fp8-e6m5']
    """
    known, out = shipped_studies(), Path(out)
    if name not in known:
        listed = "; ".join(f"{study.name}: {study.question}" for study in known.values())
        raise ValueError(f"no study that ships is called {name!r}{nearest(str(name), list(known))} ({listed})")
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}")
    if energy_table is not None:
        read_energy_table(energy_table)
    _write(known[name], out)
    studies = []
    for comparison in read_study(out / "study.toml").comparisons:
        if energy_table is not None:
            comparison = replace(comparison, rules={**comparison.rules, "energy_table": energy_table})
        studies += _results(comparison, name, out / comparison.folder, target, variant, explain, console)
    return studies


def keep_study(folder: str | Path, out: str | Path) -> Path:
    """Pack what `open_study` needs of a finished study: the same files give the same bytes.

    Parameters
    ----------
    folder : path-like
        With ``study.toml``; the archive is written into it.
    out : path-like
        What `softnum.train.conduct_study` wrote of it.

    Returns
    -------
    pathlib.Path
        The archive.

    Raises
    ------
    ValueError
        If a run is not finished.
    """
    folder, out = Path(folder), Path(out)
    entries = []
    for comparison in read_study(folder / "study.toml").comparisons:
        place = out / comparison.folder
        found = read_records(place / "records", metric=comparison.metric)
        runs = {(record.label, record.seed) for record in found.records}
        for run in ((label, seed) for label in comparison.labels for seed in comparison.seeds):
            if run not in runs:
                raise ValueError(f"{place}: no finished run of {run[0]}, seed {run[1]}")
        entries += [place / "workloads.json", *place.glob("records/*/*.jsonl")]
        entries += [path for path in place.glob(f"{comparison.timings.simulator}/**/*") if path.is_file()]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as kept:
        for path in sorted(entries):
            content, entry = path.read_bytes(), tarfile.TarInfo(path.relative_to(out).as_posix())
            entry.size = len(content)
            kept.addfile(entry, io.BytesIO(content))
    write_atomic(folder / _KEPT, packed.getvalue())
    return folder / _KEPT


def _write(study: ShippedStudy, out: Path) -> None:
    """Write the study's files, unless one of that name is another."""
    files = {
        PurePosixPath(path.relative_to(study.path).as_posix()): path.read_bytes()
        for path in sorted(study.path.rglob("*.*"))
        if path.suffix in (".toml", ".csv") and path.name != "about.toml"
    }
    with tarfile.open(study.path / _KEPT, "r:xz") as kept:
        files |= {PurePosixPath(entry.name): kept.extractfile(entry).read() for entry in kept if entry.isfile()}
    there = {name: (out / name).read_bytes() for name in files if (out / name).is_file()}
    for name, content in there.items():
        if content != files[name]:
            raise ValueError(
                f"{out / name} is not the one of the study {study.name!r}, which would replace it; name another folder "
                f"(--out), or, if you changed the study: softnum study run {shlex.quote(str(out / 'study.toml'))} "
                f"--out {shlex.quote(str(out))}"
            )
    for name, content in files.items():
        if name not in there:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(out / name, content)


def _results(comparison: Comparison, name: str, folder: Path, target, variant: str, explain: bool, console) -> list:
    """Compute and print what the records of a network say."""
    records = read_records(folder / "records", metric=comparison.metric)
    asked = {(label, seed) for label in comparison.labels for seed in comparison.seeds}
    kept = tuple(record for record in records.records if (record.label, record.seed) in asked)
    records = RecordSet(kept, records.excluded)
    points = {point.name: point for point in design_points(records)}
    variants = comparison_variants(
        comparison, [points[label] for label in comparison.labels], folder, variant=variant
    )  # fmt: skip
    command = f"softnum tta --study {name}" + ("" if target is None else f" --target {target}")
    if "energy_table" in comparison.rules:
        command += f" --energy-table {shlex.quote(comparison.rules['energy_table'])}"
    return conclude(
        records, variants, target=comparison.target if target is None else target,
        baseline=comparison.baseline, out=folder, console=console, explain=explain,
        **outcome_rules(comparison.labels, comparison.baseline, **comparison.rules),
        inputs=study_inputs(comparison, name, command, records.records[0].config["network"]),
    )  # fmt: skip
