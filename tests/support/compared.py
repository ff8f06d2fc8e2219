"""How many rows each preset is compared with: recorded ones of hardware, and those that MMA-Sim computed.

``python -m tests.support.compared`` records the numbers, in tests/data/compared_rows.json, from the folders that
SOFTNUM_HARDWARE_VECTORS and SOFTNUM_MMA_SIM_VECTORS name and from tests/data. The documentation shows them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np

from softnum.kernels.recording.mma import INSTRUCTIONS, size_of
from tests.support import mma_sim, mma_sim_blocks

__all__ = ["FILE", "counts", "counted_files"]

_DATA = Path(__file__).parents[1] / "data"
FILE = _DATA / "compared_rows.json"
_OPERANDS = {"f16": "fp16", "bf16": "bf16", "tf32": "tf32", "e4m3": "e4m3", "e5m2": "e5m2"}
_CHAIN = 4  # results of a chain


def preset_of(one, gpu: str) -> str | None:
    """The preset of a matrix instruction of Hopper's, of two operands of one type; None of integers and binary64."""
    if one.a not in _OPERANDS:
        return None
    return f"nvidia_{gpu}_{_OPERANDS[one.a]}" + ("_mma" if size_of(one.a) == 1 and one.kind == "mma" else "")


def _of_hardware(folder: Path) -> dict[str, int]:
    """Rows of the public recordings, and of those of tests/data with the results of chains; an H100 computed both."""
    found: dict[str, int] = defaultdict(int)
    for path in sorted(folder.glob("*_*.npz")):
        gpu, _, operand = path.stem.lower().rpartition("_")
        with np.load(path) as data:
            for output in ("d_fp32", "d_fp16"):
                if output in data.files:
                    by_mma = operand in ("e4m3", "e5m2") and output == "d_fp16" and gpu in ("h100", "h200", "b200")
                    found[f"nvidia_{gpu}_{operand}" + "_mma" * by_mma] += len(data[output])
    entries = {e["name"]: e for e in json.loads((_DATA / "nvidia_h200/manifest.json").read_text())["arithmetics"]}
    for one in INSTRUCTIONS:
        entry = entries.get(one.file)
        for gpu in ("h100", "h200") if entry is not None else ():
            name = preset_of(one, gpu)
            if name is not None:
                found[name] += entry["rows"] + _CHAIN * entry["chains"]
    return found


def _of_mma_sim(folder: Path) -> dict[str, int]:
    """Rows that MMA-Sim computed, with the results of chains."""
    found: dict[str, int] = defaultdict(int)
    for entry in mma_sim.manifest(folder).values():
        of_blocks = "scale" in entry
        for name in (mma_sim_blocks if of_blocks else mma_sim).presets(entry):
            found[name] += entry["rows"] + _CHAIN * entry["chains"]
    return found


def counts(hardware: Path, computed: Path) -> dict[str, dict[str, int]]:
    """By preset: "hardware", "mma_sim": of how many rows, where there are any."""
    found = {"hardware": _of_hardware(hardware), "mma_sim": _of_mma_sim(computed)}
    names = sorted({name for rows in found.values() for name in rows})
    return {name: {what: rows[name] for what, rows in found.items() if name in rows} for name in names}


def counted_files(hardware: Path, computed: Path) -> dict[str, list]:
    """Of what the numbers are: the public recordings, and how many arithmetics, rows and chains MMA-Sim computed."""
    entries = mma_sim.manifest(computed).values()
    sizes = [len(entries), sum(e["rows"] for e in entries), sum(e["chains"] for e in entries)]
    return {"hardware": sorted(path.name for path in hardware.glob("*_*.npz")), "mma_sim": sizes}


if __name__ == "__main__":
    folders = [Path(os.environ[f"SOFTNUM_{x}_VECTORS"]) for x in ("HARDWARE", "MMA_SIM")]
    made = {"of": counted_files(*folders), "presets": counts(*folders)}
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
