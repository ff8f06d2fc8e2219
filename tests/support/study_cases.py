"""Small studies for tests: seconds per iteration from a file, so that no simulator runs."""

import json
import time
from pathlib import Path

import pytest

from softnum.train import conduct_study, read_study
from softnum.train.studies.local import InlineExecutor

HARDWARE = """
[hardware]
array = [32, 32]
sram_bytes = { ifmap = 65536, filter = 65536, ofmap = 65536 }
bandwidth = "16 GB/s"
clock = "1 GHz"
"""


def write_study(folder, designs, *, seeds="2", epochs=2, batches="[128]", more="", networks='[[networks]]\nname="mlp"'):
    """Write a study and its times; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = [Path(design).stem for design in designs]
    sizes = [size.strip() for size in batches.strip("[]").split(",")]
    if len(sizes) > 1:
        labels = [f"{label}@{size}" for label in labels for size in sizes]
    rows = [f"{label},1,1e-5" for label in labels]
    (folder / "times.csv").write_text("\n".join(["design,iteration,seconds", *rows, ""]))
    file = folder / "small.toml"
    file.write_text(
        f"[study]\ndesigns = {json.dumps(designs)}\nseeds = {seeds}\nepochs = {epochs}\nbatches = {batches}\n"
        f'target = 0.5\n{more}\n{networks}\n[timings]\nfile = "times.csv"\n[report]\nhtml = false\n'
    )
    return file


def conduct(file, out, *, inline=False, **options):
    """Carry a study out quietly; inline: its runs in this process, where worker processes are not what is tested."""
    import io

    from rich.console import Console

    options.setdefault("jobs", 1)
    with pytest.MonkeyPatch.context() as patch:
        if inline:
            patch.setattr("softnum.train.studies.conduct.ProcessExecutor", lambda jobs: InlineExecutor())
        return conduct_study(read_study(file), out, console=Console(file=io.StringIO()), **options)


def records(out):
    """Every record of a study's folder, by its path in it."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.glob("*/records/*/*.jsonl")}


def until(condition, seconds=60):
    """Wait for something; fails if it does not come."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found
