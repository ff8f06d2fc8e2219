"""The values of an Array as text."""

from __future__ import annotations

import numpy as np

from softnum.arrays.conversion import decode

__all__ = ["text_of", "texts_of"]


def text_of(codes: np.ndarray, fmt) -> str:
    """The values of codes as NumPy would print them, or in exact hexadecimal where one is beyond binary64."""
    texts = texts_of(codes, fmt)
    if codes.dtype.names is None:
        named, shown = codes, lambda code: texts[int(code)]
    else:  # NumPy would print the words of a code
        flat, named = codes.ravel(), np.arange(codes.size).reshape(codes.shape)
        shown = lambda place: texts[flat[place].item()]  # noqa: E731
    return np.array2string(named, separator=", ", prefix="Array(", formatter={"int": shown})


def texts_of(codes, fmt) -> dict[int, str]:
    """The text of each code that is shown."""
    options = np.get_printoptions()
    shown = codes
    if shown.size > options["threshold"]:
        edge = options["edgeitems"]
        for axis, length in enumerate(shown.shape):
            if length > 2 * edge:
                ends = np.r_[:edge, length - edge : length]
                shown = shown.take(ends, axis)
    shown = shown.ravel()
    try:
        text = np.array2string(decode(shown, fmt), separator=", ", threshold=2**62, max_line_width=2**31)
        texts = text[1:-1].split(", ")
    except ValueError:
        exact = [_hexadecimal(v) for v in decode(shown, fmt, object)]
        texts = [t.rjust(max(map(len, exact))) for t in exact]
    if codes.ndim == 0:
        texts = [t.strip() for t in texts]
    return dict(zip(shown.tolist(), texts, strict=True)) if shown.size else {}


def _hexadecimal(value) -> str:
    """A value as softnum.encode reads it back: 0x1.8p-20000."""
    if isinstance(value, float):  # infinities, NaN and -0
        return f"{value:g}"
    sign, top, bottom = "-" * (value < 0), abs(value.numerator), value.denominator
    if not top:
        return "0"
    exponent = top.bit_length() - bottom.bit_length()  # of the leading bit: bottom is a power of two
    below = top.bit_length() - 1  # bits of the fraction
    digits = f"{(top - (1 << below)) << -below % 4:0{(below + 3) // 4}x}".rstrip("0")
    return f"{sign}0x1{'.' + digits if digits else ''}p{exponent:+d}"
