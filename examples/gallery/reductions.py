"""The error of an all-reduce of bfloat16 gradients over the number of ranks, by the order of its sums."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

ranks = 2 ** np.arange(1, 9)
unit = sn.MadUnit("bfloat16", operand="bfloat16")
for name in ("ring", "double_tree", "halving_doubling"):
    errors = []
    for n in ranks.tolist():
        x = sn.quantize(np.random.default_rng(n).standard_normal((n, 512)).astype(np.float32), "bfloat16")
        result = sn.collective(name, ranks=n, unit=unit, wire="bfloat16").all_reduce(list(x))[0]
        errors.append(np.abs(result - x.sum(axis=0, dtype=float)).mean() / np.sqrt(n))
    plt.loglog(ranks, errors, base=2, marker="o", label=name)
plt.xlabel("ranks")
plt.ylabel("mean error over sqrt(ranks)")
plt.legend()
