"""Options that several verbs take: one name, one help text."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.completions import complete_designs

__all__ = [
    "BATCH", "CLOCK", "DESIGN", "OUT_FOLDER", "OUT_TEXT", "OUT_TIMES", "PRECISION", "THREADS", "AnyNan", "Confidence",
    "DeviceFile", "IgnoreFlags", "OneDesign", "OutFolder", "OutJson", "Picture", "ReplaceFiles", "TrainAgain",
]  # fmt: skip

BATCH = "Samples of an iteration."
CLOCK = 'For times in cycles without a clock, like "1 GHz".'
DESIGN = "Design file, or the name of a shipped design."
OUT_FOLDER = "Folder to write to; created if it does not exist."
OUT_TEXT = "File; - is standard output."
OUT_TIMES = "Write the times to this file, as the CSV that softnum tta --timings reads."
PRECISION = "For a network that is only timed: float32, mixed-float16, bfloat16 or fp8."
THREADS = "Threads of the arithmetic; results do not depend on it."

AnyNan = Annotated[bool, typer.Option("--any-nan", help="Any NaN equals any other; else it must be the canonical one.")]
#: a shipped design or a file, "a-float32" where a network's formats have to be stated
OneDesign = Annotated[
    str | None, typer.Option("--design", help=f"{DESIGN}  [default: a-float32]", autocompletion=complete_designs)
]
Confidence = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
DeviceFile = Annotated[Path | None, typer.Option(help="TOML with devices of your own.")]
IgnoreFlags = Annotated[bool, typer.Option("--ignore-flags", help="Compare results only; flags may be missing.")]
OutFolder = typer.Option("--out", "-o", help=OUT_FOLDER)
OutJson = Annotated[Path | None, typer.Option(help="Also write what is printed to this file, as JSON.")]
Picture = Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .pdf.")]
ReplaceFiles = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
TrainAgain = Annotated[bool, typer.Option("--force", help="Train again, even if the run is finished.")]
