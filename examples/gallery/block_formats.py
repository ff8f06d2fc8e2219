"""Signal over quantisation noise of block formats, for normal data with outliers of growing size."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

x = np.random.default_rng(3).standard_normal((256, 256))
outliers = 2.0 ** np.arange(0, 9)
for name in ("mxfp8_e4m3", "mxfp6_e2m3", "mxfp4_e2m1", "nvfp4", "mxint8"):
    noise = []
    for size in outliers:
        y = np.where(np.arange(x.size).reshape(x.shape) % 97 == 0, size * x, x)
        noise.append(10 * np.log10((y**2).mean() / ((sn.quantize(y, name, axis=-1) - y) ** 2).mean()))
    plt.semilogx(outliers, noise, base=2, marker="o", label=name)
plt.xlabel("size of one number in 97")
plt.ylabel("signal over noise, dB")
plt.legend()
