"""How many binary16 results differ from the correctly rounded ones if a function is rounded to binary32 first."""

import matplotlib.pyplot as plt
import numpy as np

import softnum as sn

codes = np.arange(1 << 16, dtype=np.uint16)
x = sn.decode(codes, "binary16")
names = ("tanh", "exp", "log", "sin", "erf", "sigmoid", "gelu")
wrong = []
for name in names:
    best = getattr(sn.ops, name)(codes, "binary16")
    in_float = sn.encode(getattr(sn.ops, name)(sn.encode(x, "binary32"), "binary32").view(np.float32), "binary16")
    wrong.append(np.count_nonzero(best != in_float))
plt.bar(names, wrong)
plt.ylabel("wrong results of 65,536")
