"""Ranges of a timeline into training iterations: which of the named spans of time are iterations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from softnum.tta.timings.series import Options, spread, stem

__all__ = ["Range", "choose_ranges"]


@dataclass(frozen=True)
class Range:
    """A span of time: its name, the line or event it is from, where it lies, and on which thread or stream."""

    name: str
    line: int
    start: Fraction
    seconds: Fraction
    track: tuple[Any, ...] = ()


def choose_ranges(where: str, ranges: Sequence[Range], options: Options, unit: str = "line") -> tuple[list[Range], str]:
    """Return the ranges that are iterations, in order of time, and a sentence on how they were told.

    With a marker, those whose name it matches; else all, if they differ in nothing but numbers. They have to lie on one
    track and may not overlap, or one of them would be counted twice.

    Raises
    ------
    ValueError
        If none or several kinds are left, or they overlap.
    """
    stems = list(dict.fromkeys(stem(part.name) for part in ranges))
    if options.marker is None:
        if len(stems) > 1:
            raise ValueError(
                f"{where}: {len(stems)} kinds of ranges ({', '.join(map(repr, stems[:8]))}"
                f"{', ...' if len(stems) > 8 else ''}); say which are iterations with --marker"
            )
        chosen, said = list(ranges), f"each range {stems[0]!r} is an iteration" if stems else ""
    else:
        chosen = [part for part in ranges if options.marker.search(part.name)]
        said = f"each range whose name matches '{options.marker.pattern}' is an iteration"
        if not chosen:
            raise ValueError(
                f"{where}: no range's name has '{options.marker.pattern}' in it; there are "
                f"{', '.join(map(repr, stems[:8])) or 'none'}{', ...' if len(stems) > 8 else ''}"
            )
    chosen.sort(key=lambda part: (part.start, part.line))
    for before, part in itertools.pairwise(chosen):
        if part.track != before.track:
            raise ValueError(
                f"{where}, {unit} {part.line}: {part.name!r} lies on another thread or process than {before.name!r}, "
                f"{unit} {before.line}; one of them is to be counted: narrow --marker, or export one rank"
            )
        if part.start < before.start + before.seconds:
            raise ValueError(
                f"{where}, {unit} {part.line}: {part.name!r} begins before {before.name!r}, {unit} {before.line}, "
                "ends; iterations do not overlap: narrow --marker"
            )
    for part in chosen:
        if not part.seconds:
            raise ValueError(f"{where}, {unit} {part.line}: {part.name!r} takes no time; is the clock too coarse?")
    if options.iterations is None:
        return chosen, said
    seconds, each = spread(where, [part.seconds for part in chosen], options.iterations, "ranges")
    if each > 1:
        raise ValueError(
            f"{where}: {len(chosen)} ranges match where --iterations says {options.iterations}; one range an iteration "
            "is expected, or a whole number of them"
        )
    size = len(chosen) // len(seconds)
    parts = [replace(chosen[at * size], seconds=value) for at, value in enumerate(seconds)]
    return parts, said if size == 1 else f"{said.replace('each range', f'{size} ranges', 1)}, as stated"
