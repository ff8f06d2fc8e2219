"""What must not change while the structure does: digests and snapshots, one file of JSON an area.

    python tests/pins/record.py AREA ...            compute and write tests/pins/AREA.json
    python tests/pins/record.py --print AREA        compute and print, every case on a line of its own

The files were written by the commit in front of the one that adds this folder. Bits are the same on every instruction
set (SOFTNUM_CPU) and number of threads (SOFTNUM_THREADS), so there is one file for all. The area "device" takes
NUMBA_ENABLE_CUDASIM=0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # for tests.pins, in place of this folder

__all__ = ["AREAS", "computed", "path_of"]

#: area -> (module and function, how many words of a case's name a line of the file stands for; 0: all)
AREAS: dict[str, tuple[str, int]] = {
    "conversions": ("tests.pins.arithmetic:conversions", 2),
    "operations": ("tests.pins.arithmetic:operations", 2),
    "matrices": ("tests.pins.products:matrices", 4),
    "convolutions": ("tests.pins.products:convolutions", 0),
    "traces": ("tests.pins.products:traces", 4),
    "records": ("tests.pins.runs:records", 0),
    "vectors": ("tests.pins.texts:vector_files", 4),
    "names": ("tests.pins.surfaces:names", 0),
    "commands": ("tests.pins.surfaces:commands", 0),
    "runs": ("tests.pins.surfaces:runs", 0),
    "schemas": ("tests.pins.surfaces:schemas", 0),
    "symbols": ("tests.pins.surfaces:symbols", 0),
    "device": ("tests.pins.texts:device_code", 0),
}


def path_of(area: str) -> Path:
    """Where an area's pins are kept."""
    return Path(__file__).with_name(f"{area}.json")


def _cases(area: str) -> Iterator[tuple[str, str]]:
    module, name = AREAS[area][0].split(":")
    function: Callable = getattr(import_module(module), name)
    return function()


def computed(area: str) -> dict[str, str]:
    """Case, or group of cases, to digest."""
    from tests.pins.inputs import digest

    words, groups = AREAS[area][1], {}
    for case, result in _cases(area):
        name = " ".join(case.split()[:words]) if words else case
        groups.setdefault(name, []).append((case, result))
    assert len({case for cases in groups.values() for case, _ in cases}) == sum(map(len, groups.values())), area
    if not words:
        return {name: cases[0][1] for name, cases in groups.items()}
    return {name: f"{len(cases)} {digest(cases)}" for name, cases in groups.items()}


def main(arguments: list[str]) -> None:
    """Write or print pins."""
    if arguments[:1] == ["--print"]:
        for area in arguments[1:]:
            for case, result in _cases(area):
                print(f"{area}: {case} => {result}")
        return
    if arguments[:1] == ["--json"]:
        json.dump({area: computed(area) for area in arguments[1:]}, sys.stdout)
        return
    for area in arguments:
        path_of(area).write_text(json.dumps(computed(area), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
        print(area, path_of(area).stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
