"""Random operands where codes take two words: the strata of `softnum.vectors.plans.strata`, drawn one by one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from softnum import reference
from softnum.vectors.plans.operands import edge_codes

__all__ = ["wide_block"]

_TAILS = (lambda j: 0, lambda j: (1 << j) - 1, lambda j: 1 << j >> 1, lambda j: 1 << j >> 1 | (j > 1))


class _Drawn:
    """Codes of a format made of random words; of x87's as of the format without the stored first bit, then with it."""

    def __init__(self, fmt) -> None:
        self.fmt = fmt
        self.layout = fmt.implied_format if fmt.explicit_bit else fmt
        self.mask = (1 << self.layout.bits) - 1
        self.table = [int(code) for code in edge_codes(self.layout)]
        self.of_floats = bool(fmt.exponent_bits)

    def uniform(self, words) -> int:
        """Every code as likely."""
        return (next(words) << 64 | next(words)) & self.mask

    def edge(self, words) -> int:
        """An edge case."""
        return self.table[next(words) % len(self.table)]

    def tail(self, code: int, words) -> int:
        """A code that ends in 0...0, 1...1, 10...0 or 10...01."""
        word = next(words)
        last = self.layout.mantissa_bits if self.of_floats else self.layout.bits
        j = word % (last + 1)
        return code >> j << j | _TAILS[word >> 32 & 3](j)

    def near_one(self, words) -> int:
        """A float whose exponent lies within the precision of 1's; other formats: a number of any length."""
        code, word, f = self.uniform(words), next(words), self.layout
        if self.of_floats:
            reach = f.mantissa_bits + 2
            return self.at(code, word % (2 * reach + 1) - reach)
        length = word % f.bits + 1
        return -(code >> (f.bits - length)) & self.mask if f.signed and word >> 63 else code >> (f.bits - length)

    def at(self, code: int, exponent: int) -> int:
        """The code with this exponent, or with the field nearest to it."""
        f = self.layout
        top = (1 << f.exponent_bits) - 1
        field = max(0, min(exponent + f.bias, top))
        return code & ~(top << f.mantissa_bits) | field << f.mantissa_bits

    def exponent(self, code: int) -> int:
        """The exponent of a normal number; of others what the field would mean."""
        f = self.layout
        return (code >> f.mantissa_bits & ((1 << f.exponent_bits) - 1)) - f.bias

    def beside(self, code: int, words, negated: bool = False) -> int:
        """A code moved by -2 to 2, negated first if so said."""
        f = self.layout
        if negated and f.signed:
            code = code ^ 1 << (f.bits - 1) if self.of_floats else -code
        return code + next(words) % 5 - 2 & self.mask

    def stored(self, code: int) -> int:
        """The code as it is stored."""
        return self.fmt.from_implied(code) if self.fmt.explicit_bit else code


@lru_cache(maxsize=64)
def _drawn(fmt) -> _Drawn:
    return _Drawn(fmt)


def wide_block(spec: Any, words: np.ndarray, kinds: list[str]) -> tuple[np.ndarray, ...]:
    """The operands of vectors of these strata.

    Parameters
    ----------
    spec : VectorSpec
    words : ndarray of uint64, shape (len(kinds), 24)
        Random words, a row for each vector.
    kinds : list of str
        Of each vector, the stratum: a key of `softnum.vectors.plans.strata.SHARES`.

    Returns
    -------
    tuple of ndarrays of codes

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> words = np.arange(48, dtype=np.uint64).reshape(2, 24)
    >>> a, b = wide_block(VectorSpec.make("add", "binary128"), words, ["edges", "tails"])
    >>> a.dtype.names, a.shape, b.shape
    (('high', 'low'), (2,), (2,))
    """
    drawn = [_drawn(f) for f in spec.formats]
    rows = [_row(spec, drawn, kind, iter(row)) for kind, row in zip(kinds, words.tolist(), strict=True)]
    return tuple(d.fmt.stored([d.stored(row[i]) for row in rows]).reshape(len(rows)) for i, d in enumerate(drawn))


def _row(spec, drawn: list[_Drawn], kind: str, words) -> list[int]:
    if kind == "uniform":
        return [d.uniform(words) for d in drawn]
    if kind == "edges":
        return [d.edge(words) for d in drawn]
    if kind == "tails":
        return [d.tail(d.uniform(words), words) for d in drawn]
    codes = [d.near_one(words) for d in drawn]
    if spec.op == "sqrt":
        codes[0] &= drawn[0].mask >> drawn[0].layout.signed
    if kind == "one edge":
        which = next(words) % len(drawn)
        codes[which] = drawn[which].edge(words)
    elif kind == "related":
        _relate(spec, drawn, codes, words)
    elif kind == "limits":
        _limit(spec, drawn, codes, words)
    return codes


def _computed(op: str, drawn, codes, out: _Drawn) -> int:
    """The result of another operation, as an operand."""
    formats = tuple(d.layout for d in drawn)
    if op == "convert":
        return reference.convert(codes[0], formats[0], out.layout)[0]
    return getattr(reference, op)(*codes, formats, out_fmt=out.layout)[0]


def _relate(spec, drawn, codes, words) -> None:
    """Operands that meet: sums that cancel, exact quotients and squares, neighbours."""
    if spec.op in ("add", "subtract"):
        same = codes[0] if drawn[0] is drawn[1] else _computed("convert", drawn[:1], codes[:1], drawn[1])
        codes[1] = drawn[1].beside(same, words, spec.op == "add")
    elif spec.op == "fma":
        codes[2] = drawn[2].beside(_computed("multiply", drawn[:2], codes[:2], drawn[2]), words, True)
    elif spec.op in ("divide", "remainder"):
        codes[0] = drawn[0].beside(_computed("multiply", drawn, codes, drawn[0]), words)
    elif spec.op == "sqrt":
        codes[0] = drawn[0].beside(_computed("multiply", drawn * 2, codes * 2, drawn[0]), words)
    elif len(drawn) == 2 and drawn[0] is drawn[1]:
        codes[1] = drawn[1].beside(codes[0], words)
    else:
        codes[0] = drawn[0].tail(codes[0], words)


def _limit(spec, drawn, codes, words) -> None:
    """Results about the target's limits; sums whose terms overlap in few places."""
    out = spec.out_fmt
    if not all(d.of_floats for d in drawn) or not out.exponent_bits:
        codes[:] = [d.tail(code, words) for d, code in zip(drawn, codes, strict=True)]
        return
    word = next(words)
    low = out.emin - out.mantissa_bits - 2
    target = low + (word >> 8) % (out.mantissa_bits + 5) if word & 1 else out.emax - 2 + (word >> 8) % 4
    first = drawn[0].exponent(codes[0])
    if spec.op in ("add", "subtract"):
        reach = 2 * max(f.precision for f in spec.formats) + 5
        codes[1] = drawn[1].tail(drawn[1].at(codes[1], first + (word >> 8) % reach - reach // 2), words)
    elif spec.op in ("multiply", "fma"):
        codes[1] = drawn[1].at(codes[1], target - first)
        if spec.op == "fma":
            reach = 4 * out.precision + 7
            codes[2] = drawn[2].at(codes[2], first + drawn[1].exponent(codes[1]) + (word >> 24) % reach - reach // 2)
    elif spec.op in ("divide", "remainder"):
        codes[1] = drawn[1].at(codes[1], first - target)
    else:
        codes[0] = drawn[0].at(codes[0], target)
