"""The mean of a thousand stochastic roundings to integers, with 1 to 8 random bits."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

x = np.linspace(0, 1, 201)
for bits in (1, 2, 3, 8):
    draws = np.broadcast_to(x, (1000, x.size))
    rounded = sn.quantize(draws, "q4.0", rounding="stochastic", stochastic_bits=bits, key=7)
    plt.plot(x, rounded.mean(axis=0), label=f"{bits} random bits")
plt.xlabel("x")
plt.ylabel("mean of the rounded x")
plt.legend()
