"""What narrow sums cost a language model: its loss above that of float32, by bits and length of an FP8 unit's sums."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt

from softnum.tta.law_runs import read_runs

runs = read_runs(Path(__file__).parents[1] / "law" / "records.tar.xz", "bits_per_byte").runs
losses = {(run.parameters, run.design, run.seed): run.loss for run in runs if run.tokens == 2**18}
bits = range(4, 14)
for (color, size), short in itertools.product(enumerate(sorted({key[0] for key in losses})), ("", "-c32")):
    names = ["hopper-fp8" if (n, short) == (13, "") else f"hopper-fp8-f{n}{short}" for n in bits]
    cost = [sum(losses[size, name, s] - losses[size, "a-float32", s] for s in (1, 2)) / 2 for name in names]
    label = f"{size:,.0f} parameters, sums of {'32' if short else 'all'} products"
    plt.plot(bits, cost, f"C{color}{'.:' if short else 'o-'}", linewidth=1, markersize=4, label=label)
plt.yscale("symlog", linthresh=0.02)
plt.xlabel("fraction bits that a sum keeps")
plt.ylabel("bits per byte above float32")
plt.legend(fontsize="small")
