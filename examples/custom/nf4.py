"""NF4, the 4-bit format of normally distributed weights (Dettmers et al., QLoRA, 2023): a format by its values alone.

>>> import softnum as sn
>>> sn.array([0.1, -0.6, 3.0], nf4)
Array([ 0.0795803 , -0.52507305,  1.        ], nf4)
"""

import softnum as sn

#: Appendix E of the paper: quantiles of the normal distribution, scaled to -1..1, with an exact zero.
VALUES = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip

nf4 = sn.CustomFormat.from_table(VALUES, name="nf4")
