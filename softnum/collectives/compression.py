"""Compression of gradients: what a worker sends in place of a gradient, and how many bits that has.

The statement alone; `softnum.collectives.feedback` has the memories of errors and the sums.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from math import prod
from numbers import Integral, Real

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.collectives.statement import unit_given
from softnum.formats.base import AnyFormat
from softnum.formats.blocks import format as format_of
from softnum.formats.facts import fits
from softnum.mac.expressions import evaluated
from softnum.mac.families import FAMILIES
from softnum.mac.family import family_of
from softnum.mac.mad import Unit, shown

__all__ = ["Compression", "LowRank", "OneBit", "Sign", "TopK", "compression", "is_compression"]


@dataclass(frozen=True, repr=False)
class Compression:
    """What every compression states.

    Parameters
    ----------
    values : format
        In which numbers are sent, rounded to nearest even.
    memory : format or None
        Of the memory of errors (error feedback), rounded to nearest even. None: what is not sent is forgotten.

    Examples
    --------
    >>> print(compression("top_k(share=0.01, memory='bfloat16')"))
    top_k(share=0.01, memory='bfloat16')
    """

    values: AnyFormat = "binary32"
    memory: AnyFormat | None = "binary32"

    #: its name in a text; whether all messages go to all workers, who add them up, or sums are made on the way
    name = ""
    gathered = True

    def __post_init__(self) -> None:
        for what in ("values", "memory"):
            given = getattr(self, what)
            if given is None and what == "memory":
                continue
            fmt = format_of(given)
            if fmt.element is not fmt or not fits(fmt, "float64"):
                raise ValueError(f"compression: {what}={given!r} must be a scalar format whose values binary64 holds")
            object.__setattr__(self, what, fmt)
        self._check()

    def _check(self) -> None:
        """ValueError unless its own parameters are in range."""

    def message_bits(self, shape: tuple[int, ...]) -> int:
        """Bits of what a worker sends in place of a gradient of this shape.

        >>> compression("sign").message_bits((64, 128))
        8224
        """
        raise NotImplementedError

    def sent(self, p: np.ndarray) -> np.ndarray:
        """What arrives of an array, as an array of its shape in float64: values of ``values``; of gathered ones."""
        raise NotImplementedError

    def __str__(self) -> str:
        own = [f for f in fields(self) if f.name not in ("values", "memory")]
        given = ((f.name, getattr(self, f.name), f.default) for f in (*own, *fields(Compression)))
        told = [
            f"{name}={shown(value)}" for name, value, plain in given
            if name in _REQUIRED or str(value) != str(unit_given(plain) if name == "unit" else plain)
        ]  # fmt: skip
        return f"{self.name}({', '.join(told)})" if told else self.name

    def __repr__(self) -> str:
        return f"compression({str(self)!r})"

    def _rounded(self, values) -> np.ndarray:
        return quantize(np.asarray(values, np.float64), self.values).astype(np.float64)


_REQUIRED = ("share", "rank")


@dataclass(frozen=True, repr=False)
class TopK(Compression):
    """Of each parameter the ceil(share * elements) elements of the largest magnitude, the first of equal ones.

    Parameters
    ----------
    share : float
        Above 0, up to 1; taken as the decimal fraction that is written.
    index_bits : int
        Of the place that is sent with each value.
    values, memory
        As of `Compression`.

    References
    ----------
    A. F. Aji and K. Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017; S. U. Stich et al.,
    "Sparsified SGD with memory", NeurIPS 2018.

    Examples
    --------
    >>> c = TopK(share=0.25)
    >>> c.sent(np.float64([1, -3, 2, 3])), c.message_bits((4,))
    (array([ 0., -3.,  0.,  0.]), 64)
    """

    share: float = 0.01
    index_bits: int = 32
    name = "top_k"

    def _check(self) -> None:
        share = self.share
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 < share <= 1:
            raise ValueError(f"compression: share must be a number above 0 and up to 1, got {share!r}")
        _whole("index_bits", self.index_bits, 1, 64)

    def count(self, elements: int) -> int:
        """How many of so many elements are sent."""
        return math.ceil(Fraction(repr(float(self.share))) * elements)

    def message_bits(self, shape: tuple[int, ...]) -> int:
        """Bits of values and places."""
        size = prod(shape)
        if size > 1 << self.index_bits:
            raise ValueError(
                f"compression: index_bits={self.index_bits} number {1 << self.index_bits} elements, and a gradient has "
                f"{size}; state index_bits={(size - 1).bit_length()} or more"
            )
        return self.count(size) * (self.values.bits + self.index_bits)

    def sent(self, p: np.ndarray) -> np.ndarray:
        """The largest, rounded; +0 for the others."""
        flat = p.reshape(-1)
        largest = np.argsort(-np.abs(flat), kind="stable")[: self.count(flat.size)]
        out = np.zeros(flat.size)
        out[largest] = self._rounded(flat[largest])
        return out.reshape(p.shape)


@dataclass(frozen=True, repr=False)
class Sign(Compression):
    """Of each parameter the signs of its elements, times the mean of their magnitudes.

    The sign of a zero is that which it has. The mean: an exact sum, rounded to binary64, divided there by the number of
    elements, and rounded to ``values``.

    Parameters
    ----------
    values, memory
        As of `Compression`.

    References
    ----------
    J. Bernstein et al., "signSGD", ICML 2018; with memory, S. P. Karimireddy et al., "Error feedback fixes SignSGD and
    other gradient compression schemes", ICML 2019, algorithm 2.

    Examples
    --------
    >>> c = Sign()
    >>> c.sent(np.float64([1, -3, 2, -0.0])), c.message_bits((4,))
    (array([ 1.5, -1.5,  1.5, -1.5]), 36)
    """

    name = "sign"

    def message_bits(self, shape: tuple[int, ...]) -> int:
        """A bit for each element, and the mean."""
        return prod(shape) + self.values.bits

    def sent(self, p: np.ndarray) -> np.ndarray:
        """Plus or minus the mean."""
        return np.copysign(self._rounded(_mean(np.abs(p).reshape(-1))), p)


@dataclass(frozen=True, repr=False)
class OneBit(Compression):
    """Of each element whether it is below 0, and two numbers for an output's weights: the means of the two kinds.

    An output's weights are a column of a parameter of two axes, and of one of more axes (a convolution's) what lies
    under an index of the first; a parameter of one axis is one column. Means are those of `Sign`. A zero of either sign
    is not below 0.

    Parameters
    ----------
    values, memory
        As of `Compression`.

    References
    ----------
    F. Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of
    speech DNNs", Interspeech 2014: the threshold 0, reconstruction by the means of a column.

    Examples
    --------
    >>> c = OneBit()
    >>> c.sent(np.float64([[1, -3], [2, 0], [-3, 1]])), c.message_bits((3, 2))
    (array([[ 1.5, -3. ],
           [ 1.5,  0.5],
           [-3. ,  0.5]]), 134)
    """

    name = "one_bit"

    @staticmethod
    def columns(shape: tuple[int, ...]) -> int:
        """How many pairs of numbers a parameter has."""
        return 1 if len(shape) < 2 else shape[1] if len(shape) == 2 else shape[0]

    def message_bits(self, shape: tuple[int, ...]) -> int:
        """A bit for each element, and two means for each column."""
        return prod(shape) + 2 * self.columns(shape) * self.values.bits

    def sent(self, p: np.ndarray) -> np.ndarray:
        """The means."""
        rows = p.T if p.ndim == 2 else p.reshape(self.columns(p.shape), -1)
        out = np.empty(rows.shape)
        for row, to in zip(rows, out, strict=True):
            below = row < 0
            means = self._rounded([_mean(row[~below]), _mean(row[below])])
            to[:] = means[below.astype(np.intp)]
        return (out.T if p.ndim == 2 else out.reshape(p.shape)).copy()


@dataclass(frozen=True, repr=False)
class LowRank(Compression):
    """PowerSGD: a matrix as the product of two thin ones, one step of a power iteration that goes on from the last.

    A parameter of two axes or more is a matrix M of its first axis and all others. Each worker computes P = M Q; P is
    averaged by the collective and made orthonormal; each computes Q = transposed(M) P; Q is averaged; all take
    P transposed(Q) as the average of M. Parameters of one axis, and matrices whose factors have no fewer elements than
    they, are sent whole.

    Parameters
    ----------
    rank : int
        Columns of the factors.
    unit : Unit, str or format
        What multiplies; operands are rounded to what it takes. Default binary32.
    seed : int
        Of the first Q: numbers uniform on the lattice of 2**-23 in [-1, 1), from words of the stream (seed, number of
        the parameter).
    values, memory
        As of `Compression`. The memory keeps what is missing in what all take.

    References
    ----------
    T. Vogels, S. P. Karimireddy and M. Jaggi, "PowerSGD: practical low-rank gradient compression for distributed
    optimization", NeurIPS 2019, algorithms 1 and 2.

    Examples
    --------
    >>> c = LowRank(rank=2)
    >>> c.message_bits((64, 128)), c.message_bits((128,))
    (12288, 4096)
    """

    rank: int = 1
    unit: Unit = "binary32"
    seed: int = 0
    name = "low_rank"
    gathered = False

    def _check(self) -> None:
        _whole("rank", self.rank, 1, 1 << 16)
        _whole("seed", self.seed, 0, (1 << 64) - 1)
        unit = unit_given(self.unit)
        if family_of(unit).of_blocks or unit.stochastic:
            raise ValueError(
                f"compression: unit={shown(unit)} takes blocks or rounds stochastically; state a unit of values "
                "with deterministic roundings"
            )
        object.__setattr__(self, "unit", unit)

    def factored(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Rows and columns of the matrix that a parameter is; None of one that is sent whole."""
        if len(shape) < 2:
            return None
        rows, columns = shape[0], prod(shape[1:])
        return (rows, columns) if self.rank * (rows + columns) < rows * columns else None

    def message_bits(self, shape: tuple[int, ...]) -> int:
        """Both factors, or the parameter whole."""
        matrix = self.factored(shape)
        return (prod(shape) if matrix is None else self.rank * sum(matrix)) * self.values.bits


def _whole(what: str, value, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"compression: {what} must be an integer from {low} to {high}, got {value!r}")


def _mean(values: np.ndarray) -> float:
    return math.fsum(values.tolist()) / values.size if values.size else 0.0


_KINDS = {kind.name: kind for kind in (TopK, OneBit, Sign, LowRank)}


def is_compression(text) -> bool:
    """Whether a text names a compression, with arguments or without.

    >>> is_compression("top_k(share=0.1)"), is_compression("e5m2")
    (True, False)
    """
    return isinstance(text, Compression) or (isinstance(text, str) and text.partition("(")[0].strip() in _KINDS)


def compression(text: str | Compression) -> Compression:
    """The compression that a text states: a name alone, or with arguments in brackets.

    Parameters
    ----------
    text : str
        "top_k(share=0.01)", "one_bit", "sign" or "low_rank(rank=4)"; ``str`` of one reads back.

    Returns
    -------
    Compression

    Raises
    ------
    ValueError
        If there is none of that name, or a parameter is out of its range.

    Examples
    --------
    >>> compression("low_rank(rank=4)")
    compression('low_rank(rank=4)')
    """
    if isinstance(text, Compression):
        return text
    name = text.partition("(")[0].strip() if isinstance(text, str) else None
    if name not in _KINDS:
        near = difflib.get_close_matches(str(name), _KINDS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"compression: unknown {text!r:.80}{hint} (known: {', '.join(_KINDS)})")
    units = {kind.__name__: kind for kind, family in FAMILIES.items() if family.from_text}
    kinds = units | {each: partial(_made, each) for each in _KINDS}
    found = evaluated(text if "(" in text else f"{text}()", kinds, "compression", "top_k(share=0.01)")
    if not isinstance(found, Compression):
        raise ValueError(f"no expression of a compression: {text!r}; one reads top_k(share=0.01)")
    return found


def _made(name: str, *args, **given) -> Compression:
    if args:
        raise ValueError(f"compression: the parameters of {name} are named: {name}({', '.join(_of(name))}=...)")
    unknown = [what for what in given if what not in _of(name)]
    if unknown:
        raise ValueError(f"compression: {name} has no parameter {unknown[0]!r} (its own: {', '.join(_of(name))})")
    lacking = [what for what in _REQUIRED if what in _of(name) and what not in given]
    if lacking:
        raise ValueError(f"compression: {name} needs {lacking[0]}=, as in {name}({_EXAMPLES[name]})")
    return _KINDS[name](**given)


_EXAMPLES = {"top_k": "share=0.01", "low_rank": "rank=4"}


def _of(name: str) -> list[str]:
    return [f.name for f in fields(_KINDS[name])]
