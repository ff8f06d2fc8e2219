"""All-reduces by `softnum.reference.collectives`, of the collectives that `softnum.collective` makes."""

from __future__ import annotations

import numpy as np

import softnum as sn
from softnum.inspect.trace import steps_of  # with the steps of all families
from softnum.reference import encode
from softnum.reference.collectives import Facts, all_reduce

__all__ = ["defined"]


def defined(c, arrays, key=(0, 0)) -> list[np.ndarray]:
    """What the definition says of vectors of all ranks: values, a vector for each rank."""
    do = c.arithmetic
    adder = do.adder
    one = encode(1, adder.operand[0])[0]

    def dot(start, terms, words):
        words_of = (lambda step: (words[step], words[step])) if adder.stochastic else None
        return steps_of(adder, [one] * len(terms), terms, start, words_of)[1]

    names = [name for name in Facts._fields if hasattr(c, name) and getattr(c, name) is not None]
    plain = {name: getattr(c, name) for name in names}
    terms = c.ranks - 1 if do.chain else c.ranks
    steps = adder.steps_with_c(terms) if do.chain else adder.steps(terms)
    facts = Facts(
        **plain, dot=dot, taken=do.taken, result=do.result, chain=do.chain, steps=steps, key=key
    )  # fmt: skip
    codes = [[int(code) for code in sn.encode(np.asarray(x, np.float64), c.format)] for x in arrays]
    return [sn.decode(np.array(row, c.format.storage_dtype), c.format) for row in all_reduce(codes, facts)]
