"""Where the values of eight-bit formats lie: how many there are in each power of two."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

for name in ("e4m3fn", "e5m2", "posit8", "takum_linear8", "binary8p3se"):
    values = sn.decode(np.arange(256, dtype=np.uint8), name)
    positive = values[np.isfinite(values) & (values > 0)]
    exponents, counts = np.unique(np.floor(np.log2(positive)), return_counts=True)
    plt.step(exponents, counts, where="mid", label=name)
plt.xlabel("power of two")
plt.ylabel("values")
plt.xlim(-40, 40)
plt.legend()
