"""The error of FP8 products of matrices with K = 4096 in the sums of an H100, a B200 and an Arm core."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

draw = np.random.default_rng(2)
a, b = (sn.quantize(draw.standard_normal(shape).astype(np.float32), "e4m3fn") for shape in ((64, 4096), (4096, 64)))
exact = a.astype(float) @ b.astype(float)
for name in ("nvidia_h100_e4m3", "nvidia_b200_e4m3", "arm_fmmla_e4m3"):
    error = np.abs(sn.matmul(a, b, sn.unit(name)) - exact) / np.abs(a).astype(float).dot(np.abs(b)) + 2.0**-40
    plt.hist(np.log2(error).ravel(), bins=60, histtype="step", label=name)
plt.xlabel("log2 of the error over the sum of magnitudes")
plt.ylabel("results")
plt.legend()
