"""Loss of a language model over iterations, for four widths of an FP8 unit's accumulator: a shipped study."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from rich.console import Console

from softnum.train.studies.shipped import open_study
from softnum.tta.accuracy import read_records

with tempfile.TemporaryDirectory() as folder:
    open_study("language-model", folder, console=Console(quiet=True))
    [records_folder] = Path(folder).glob("*/records")
    records = read_records(records_folder, metric="held_out_loss").records
for color, label in enumerate(sorted({record.label for record in records})):
    for seed, record in enumerate(r for r in records if r.label == label):
        x, y = zip(*((e.iteration, e.value) for e in record.evaluations), strict=True)
        plt.plot(x, y, f"C{color}", linewidth=0.8, label=label if seed == 0 else None)
plt.xlabel("iterations")
plt.ylabel("loss of held-out text")
plt.legend()
