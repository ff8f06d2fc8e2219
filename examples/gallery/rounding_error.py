"""The relative error of rounding to nearest, over the magnitude: the largest in each of 400 intervals."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

x = np.geomspace(2.0**-12, 2.0**12, 40_000)
for name in ("e4m3fn", "e5m2", "bfloat16", "posit8", "q4.4"):
    error = np.abs(sn.quantize(x, name, overflow="saturate" if name != "posit8" else None) / x - 1)
    plt.loglog(x[::100], error.reshape(-1, 100).max(axis=1), label=name)
plt.xlabel("magnitude")
plt.ylabel("relative error")
plt.ylim(1e-4, 1.2)
plt.legend()
