"""One dot product, 2^24 + 1 - 2^24 and small terms, as different hardware computes it."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

a = np.float32([[2.0**12, 1, -(2.0**12), 0.5, 0.25, 0.125, 2.0**-10, 3]])
b = np.float32([[2.0**12, 1, 2.0**12, 0.5, 0.25, 0.125, 2.0**-10, 3]]).T
units = [name for name in sn.units() if "fp16" in name or "bf16" in name]
results = {name: sn.matmul(a, b, sn.unit(name)).item() for name in units}
plt.figure(figsize=(6.4, 0.22 * len(results) + 0.8))
plt.barh(list(results), list(results.values()))
plt.axvline((a.astype(float) @ b.astype(float)).item(), linestyle=":", color="black")
plt.xlabel("result (dotted: exact)")
plt.tight_layout()
