"""Python's numbers to codes and back, one by one and without loss: what `softnum.encode` and `decode` do of objects."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softnum.arrays.parse import as_exact, python_number
from softnum.arrays.ufuncs import call_ufunc, raise_no_code
from softnum.formats.modes import OVERFLOW_RULES, Flags
from softnum.formats.names import format
from softnum.runtime import _core

__all__ = ["codes_of_numbers", "numbers_of_codes"]


def codes_of_numbers(x, fmt, env, words, invalid):
    """(codes, flags) of Python's numbers, one by one."""
    wrap = env[1] == OVERFLOW_RULES["wrap"]
    codes, flags = np.empty(x.shape, fmt.storage_dtype), np.empty(x.shape, np.uint8)
    words = np.broadcast_to(words, x.shape)
    for index, value in np.ndenumerate(x):
        value = python_number(value)
        if isinstance(value, float):  # -0, infinities and NaN are no fractions
            given = np.float64(value).view(np.uint64)
            codes[index], flags[index] = call_ufunc(
                "convert", (given,), (format("binary64"),), fmt, env, words[index], with_flags=True, what="encode",
                invalid=invalid,
            )  # fmt: skip
            continue
        codes[index], raised = _core.round_exact(*as_exact(value, fmt, wrap), fmt, env, int(words[index]))
        if raised & _core.NO_CODE and isinstance(invalid, str):
            # the value is not named: its repr can be long, and is refused past 4300 digits
            raise_no_code(fmt, "encode")
        if wrap and abs(value) >= Fraction(2) ** fmt.wrap_bits:  # which as_exact has taken off
            raised |= Flags.OVERFLOW
        flags[index] = raised & (_core.NO_CODE - 1)
    return codes, flags


def numbers_of_codes(codes, number) -> np.ndarray:
    """What codes stand for: number(code) of each, a Fraction, or a float for infinities, NaN and -0."""
    distinct, where = np.unique(codes, return_inverse=True)
    values = np.empty(distinct.shape, object)
    values[...] = [number(code) for code in distinct.tolist()]
    return values[where.ravel()].reshape(codes.shape)
