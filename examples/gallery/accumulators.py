"""Sums of n positive numbers in narrow accumulators, over the exact sum: one that rounds to nearest stops growing."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

a = sn.quantize(np.random.default_rng(1).uniform(0.5, 1, (1, 4096)).astype(np.float32), "e5m2")
units = {
    "e6m6": sn.MadUnit("e6m6", operand="e5m2"),
    "e6m6, chunks of 64": sn.MadUnit("e6m6", operand="e5m2", chunk=64),
    "e6m6, stochastic": sn.MadUnit("e6m6", operand="e5m2", rounding="stochastic"),
    "exact, rounded once": sn.ExactDotUnit("e6m6", operand="e5m2"),
}
lengths = np.unique(np.geomspace(1, 4096, 60).astype(int))
for name, unit in units.items():
    sums = [sn.matmul(a[:, :n], np.ones((n, 1), np.float32), unit, key=1 if unit.stochastic else None) for n in lengths]
    plt.semilogx(lengths, np.ravel(sums) / np.cumsum(a, dtype=float)[lengths - 1], label=name)
plt.xlabel("numbers")
plt.ylabel("sum over the exact sum")
plt.legend()
