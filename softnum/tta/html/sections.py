"""The report of a folder: which parts it has, and a line for what the folder does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from altair.utils.schemapi import debug_mode

from softnum.tta.html import details, figures, forecasts, hardware, resources, tables, tuning
from softnum.tta.html.folder import Comparison, Folder
from softnum.tta.html.model import Note, Page, Section, identifier

__all__ = ["page_of"]


def page_of(folder: Folder, *, base: str | None = None, device: Any = None, validate: bool = False) -> Page:
    """The parts of a report.

    Parameters
    ----------
    folder : Folder
    base : str or None
        Where the folder lies as seen from the page, ending in "/" if it is not empty, for links to its files; None for
        no links.
    device : Device or None
        In place of the hardware that the times name.
    validate : bool
        Whether altair checks each part of each chart against Vega-Lite's schema, which takes most of the time.
    """
    with debug_mode(validate):
        return _page(folder, base, device)


def _page(folder: Folder, base: str | None, device) -> Page:
    if folder.forecasts is not None:
        if device is not None:
            raise ValueError("--device draws rooflines of a comparison, and forecasts have a system; leave it out")
        return forecasts.page_of_forecasts(folder.forecasts, folder.states, base)
    designs = tuple(dict.fromkeys(design for comparison in folder.comparisons for design in comparison.designs))
    if folder.study is None:
        (comparison,) = folder.comparisons
        title = f"Time to accuracy: {comparison.title}"
        sections = _comparison(comparison, "", base, device, 2)
        return Page(title, _subtitle(comparison), designs, sections)
    name = folder.study.get("name") or folder.path.resolve().name
    sections = [_overview(folder)]
    for comparison in folder.comparisons:
        prefix = identifier(comparison.name)
        place = None if base is None else f"{base}{comparison.name}/"
        sections.append(Section(prefix, comparison.title, (Note((_subtitle(comparison),)),)))
        sections += _comparison(comparison, prefix, place, device, 3)
    runs = sum(len(comparison.results["runs"]) for comparison in folder.comparisons)
    several = f"{len(folder.comparisons)} comparisons of {len(designs)} designs, {runs} runs"
    return Page(f"Time to accuracy: {name}", several, designs, sections)


def _subtitle(comparison: Comparison) -> str:
    results = comparison.results
    return (
        f"{len(comparison.designs)} designs, {len(results['runs'])} runs; target: {results['metric']} "
        f"{'≥' if results['direction'] == 'higher' else '≤'} {results['target']:g}; baseline: {results['baseline']}"
    )


def _overview(folder: Folder) -> Section:
    labels = dict.fromkeys(v["label"] for c in folder.comparisons for v in c.results["variants"])
    blocks = [tables.studies(folder.comparisons, label, "all") for label in labels]
    if folder.failures:
        blocks.append(Note(folder.failures, "Not finished"))
    return Section("overview", "Overview", tuple(blocks))


def _comparison(comparison: Comparison, prefix: str, base: str | None, device, level: int) -> list[Section]:
    variants = comparison.results["variants"]

    def section(name: str, title: str, *blocks) -> Section:
        return Section(identifier(prefix, name, "part"), title, blocks, level)

    timed = [v for v in variants if any(entry["time"] for entry in v["designs"])]
    without = "No design has a time per iteration: simulate it, or give times with softnum tta --timings."
    found = [
        section("summary", "Summary", *(tables.summary(comparison, v, prefix) for v in variants), *_ties(variants)),
        section(
            "tta", "Time to accuracy",
            *([figures.time_to_accuracy(comparison, v, prefix) for v in timed] or [Note((without,), quiet=True)]),
            *(details.gains(comparison, prefix) if timed else ()),
        ),
        section("targets", "All targets", *details.all_targets(comparison, prefix)),
        section(
            "curves", "Learning curves", *figures.learning_curves(comparison, prefix),
            *figures.training_losses(comparison, prefix),
        ),
        section("fronts", "Energy, cost and area", *details.fronts(comparison, prefix)),
        section("combined", "Combined designs", *_combined(comparison, variants, prefix)),
    ]  # fmt: skip
    if "tuning" in comparison.results:
        found.append(section("tuning", "Learning rates tuned", *tuning.blocks(comparison, prefix)))
    shown = timed[:1] if device is not None else timed
    found.append(
        section(
            "hardware", "Hardware: roofline and utilisation",
            *[block for v in shown for block in hardware.blocks(comparison, v, prefix, device)]
            or [Note((without,), quiet=True)],
            *(block for v in timed for block in details.time_parts(comparison, v, prefix)),
        )
    )  # fmt: skip
    found.append(section("memory", "Memory", *resources.memory_blocks(comparison, prefix)))
    parallel = resources.parallel_blocks(comparison, timed[0], prefix, device) if timed else []
    found.append(section("parallel", "Data-parallel training", *parallel or [Note((without,), quiet=True)]))
    found.append(
        section(
            "sources", "Sources, assumptions, versions", tables.sources(comparison, prefix, base),
            tables.runs(comparison, prefix, base), tables.inputs(comparison, prefix), *_assumptions(variants),
        )
    )  # fmt: skip
    return found


def _ties(variants) -> list[Note]:
    lines = []
    for variant in variants:
        order, pairs = [entry["design"] for entry in variant["designs"]], []
        for at, entry in enumerate(variant["designs"]):  # each pair once
            later = [name for name in entry["ties"] if name in order[at:]]
            if later:
                pairs.append(f"{entry['design']} with {', '.join(later)}")
        if pairs:
            lines.append(f"{variant['label']}: {'; '.join(pairs)}.")
    return (
        [Note.of(lines, "Not told apart: the interval of the ratio of two times to accuracy holds 1")] if lines else []
    )


def _combined(comparison: Comparison, variants, prefix: str) -> list[Any]:
    found = [tables.interactions(comparison, v, prefix) for v in variants if v["interactions"]]
    line = "No combination was asked for; softnum tta --combine compares one with what its parts promise."
    return found or [Note((line,), quiet=True)]


def _assumptions(variants: list[Mapping[str, Any]]) -> list[Note]:
    notes = [Note.of(v["assumptions"], f"Assumed for {v['label']}") for v in variants if v["assumptions"]]
    for key, title in (("not_simulated", "Not in the times"), ("notes", "Notes")):
        lines = [line for v in variants for line in v[key]]
        if lines:
            notes.append(Note.of(lines, title))
    return notes
