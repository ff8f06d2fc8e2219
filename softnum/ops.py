"""Operations on codes and on `Array`: each computes the exact result and rounds it once."""

from __future__ import annotations

import numpy as np

from softnum.array import Array
from softnum.custom import CustomFormat
from softnum.formats import format
from softnum.modes import rounding_name
from softnum.values import call_ufunc, check_codes, environment, random_words

__all__ = ["OPERATIONS", "add", "convert", "fma", "multiply", "subtract"]

_SHARED = """
    out_fmt : format or str, optional
        The result's format; required where the operands' formats differ.
    rounding, overflow, key, random_bits, stochastic_bits
        As in `softnum.quantize`; with a key, element i of the C-ordered result takes word i.
    return_flags : bool
        Whether to return (result, flags) with flags a uint8 array of `softnum.Flags`.
    tininess : {"after", "before"}
        Whether UNDERFLOW is judged after or before rounding (a stochastic result always before).
    invalid : "raise" or "code0"
        What to do where the result is NaN (or, in fixed point, infinite) and the format has no code for it: raise
        ValueError, or deliver code 0 (and flag INVALID).

    Returns
    -------
    ndarray of codes, or Array if an operand is one; with `return_flags`, a pair

    Raises
    ------
    ValueError
        If formats are missing or differ without `out_fmt`, or a code does not fit its format, or a result has no code.
"""


def _operands(name, operands, fmt):
    """(codes, formats, whether an operand is an Array)"""
    arrays = [isinstance(x, Array) for x in operands]
    if any(arrays):
        if not all(arrays):
            raise TypeError(f"{name}: Array and plain codes do not mix; make Arrays of all operands (softnum.array)")
        if fmt is not None:
            raise ValueError(f"{name}: the operands are Arrays, which know their format; leave fmt out")
        formats = tuple(x.format for x in operands)
        codes = [x.codes for x in operands]
    else:
        if fmt is None:
            raise ValueError(f"{name}: codes say nothing of their format; give fmt, or make Arrays (softnum.array)")
        given = fmt if isinstance(fmt, tuple) else (fmt,) * len(operands)
        if len(given) != len(operands):
            raise ValueError(f"{name} has {len(operands)} operands, got {len(given)} formats")
        formats = tuple(format(f) for f in given)
        codes = [check_codes(x, f, f"operand {i}") for i, (x, f) in enumerate(zip(operands, formats, strict=True))]
    for f in formats:
        if isinstance(f, CustomFormat):
            raise ValueError(
                f"{name} is not defined for the value table {f}: it has values, but no arithmetic of its own"
            )
    return codes, formats, any(arrays)


def _apply(name, operands, fmt, out_fmt, rounding, overflow, key, random_bits, stochastic_bits, return_flags, tininess,
           invalid, **ufunc_args):  # fmt: skip
    codes, formats, as_array = _operands(name, operands, fmt)
    if out_fmt is None:
        if any(f != formats[0] for f in formats):
            names = ", ".join(str(f) for f in formats)
            raise ValueError(f"{name}: the operands' formats differ ({names}); state the result's with out_fmt=")
        out_fmt = formats[0]
    out_fmt = format(out_fmt)
    if invalid not in ("raise", "code0"):
        raise ValueError(f"invalid must be 'raise' or 'code0', got {invalid!r}")
    env = environment(out_fmt, rounding, overflow, stochastic_bits, tininess)
    stochastic = rounding_name(rounding).startswith("stochastic")
    words = random_words(stochastic, key, random_bits, np.broadcast_shapes(*(c.shape for c in codes)))
    result, flags = call_ufunc(
        name, codes, formats, out_fmt, env, words, with_flags=return_flags, invalid=invalid, **ufunc_args
    )
    if as_array:
        result = Array(result, out_fmt)
    return (result, flags) if return_flags else result


def _binary(name: str, symbol: str, example: str):
    def operation(
        a, b, fmt=None, *, out_fmt=None, rounding="nearest_even", overflow=None, key=None, random_bits=None,
        stochastic_bits=32, return_flags=False, tininess="after", invalid="raise",
    ):  # fmt: skip
        return _apply(name, (a, b), fmt, out_fmt, rounding, overflow, key, random_bits, stochastic_bits, return_flags,
                      tininess, invalid)  # fmt: skip

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"""The exactly rounded ``{symbol}``, element by element.

    Parameters
    ----------
    a, b : Array, or array_like of codes (then with `fmt`)
        Broadcast against each other.
    fmt : format or str, or a pair of them
        The operands' format(s), if they are codes.{_SHARED}
    Examples
    --------
    >>> import softnum as sn
    {example}

    Source: IEEE 754-2019 clauses 5.4.1, 6 and 7.
    """
    return operation


add = _binary(
    "add",
    "a + b",
    '>>> sn.add([0x3c], [0x3d], "e5m2", return_flags=True)\n    (array([64], dtype=uint8), array([1], dtype=uint8))',
)
subtract = _binary(
    "subtract", "a - b", '>>> sn.subtract(sn.array(1.0, "e4m3fn"), sn.array(0.75, "e4m3fn"))\n    Array(0.25, e4m3fn)'
)
multiply = _binary(
    "multiply", "a * b", '>>> sn.multiply([0x18], [0x18], "q4.4")  # 1.5 * 1.5\n    array([36], dtype=uint8)'
)


def fma(
    a, b, c, fmt=None, *, out_fmt=None, rounding="nearest_even", overflow=None, key=None, random_bits=None,
    stochastic_bits=32, return_flags=False, tininess="after", invalid="raise",
):  # fmt: skip
    return _apply("fma", (a, b, c), fmt, out_fmt, rounding, overflow, key, random_bits, stochastic_bits, return_flags,
                  tininess, invalid)  # fmt: skip


fma.__doc__ = f"""The exactly rounded ``a * b + c`` with one rounding, element by element.

    Parameters
    ----------
    a, b, c : Array, or array_like of codes (then with `fmt`)
        Broadcast against each other.
    fmt : format or str, or a triple of them
        The operands' format(s), if they are codes.{_SHARED}
    Examples
    --------
    >>> import softnum as sn
    >>> one, tiny = sn.array(1.0, "binary16"), sn.array(2.0**-11, "binary16")
    >>> sn.fma(one, one, tiny, rounding="up")
    Array(1.00097656, binary16)

    Source: IEEE 754-2019 clauses 5.4.1, 6 and 7; fma(0, inf, quiet NaN) raises INVALID (7.2 d).
    """


def convert(
    a, from_fmt=None, to_fmt=None, *, rounding="nearest_even", overflow=None, key=None, random_bits=None,
    stochastic_bits=32, return_flags=False, tininess="after", invalid="raise",
):  # fmt: skip
    if to_fmt is None:
        raise ValueError("convert: state the target with to_fmt=")
    return _apply("convert", (a,), from_fmt, to_fmt, rounding, overflow, key, random_bits, stochastic_bits,
                  return_flags, tininess, invalid)  # fmt: skip


convert.__doc__ = f"""The value of each code, rounded to another format.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `from_fmt`)
    from_fmt : format or str
        The codes' format.
    to_fmt : format or str
        The result's format.{_SHARED.replace(_SHARED[: _SHARED.index("    rounding")], chr(10))}
    Examples
    --------
    >>> import softnum as sn
    >>> sn.convert([0x4048f5c3], "binary32", "bfloat16")  # 3.14
    array([16457], dtype=uint16)

    Source: IEEE 754-2019 clause 5.4.2.
    """

# name -> (function, number of operands): the one list that the ufuncs, the Array operators and the tests go by
OPERATIONS = {
    "convert": (convert, 1),
    "add": (add, 2),
    "subtract": (subtract, 2),
    "multiply": (multiply, 2),
    "fma": (fma, 3),
}
