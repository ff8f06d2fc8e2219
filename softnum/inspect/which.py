"""Which machine gave this number: the presets whose product of two matrices is the one given, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.checks import float_array
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode
from softnum.inspect.trace import Step, Trace, number_text
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.presets import DISPUTED, unit, units
from softnum.mac.products.matrices import matmul
from softnum.runtime.plain import plain

__all__ = ["Answer", "Which", "candidates", "which"]

_OUTPUTS = (None, "binary32", "binary16")
_SIDE, _ROWS = 60, 12  # characters of a step, steps shown before the one that differs


@dataclass(frozen=True)
class Answer:
    """What one unit makes of the matrices.

    Attributes
    ----------
    names : tuple of str
        The presets that are this unit, with their output or choice where it is not the default.
    unit : Unit
    differ : int or None
        How many elements are not the given ones; None where the unit does not take the matrices.
    first : tuple of int or None
        The first of them, as (row, column).
    got : float or None
        What the unit makes there.
    worst : float
        The largest distance of an element from the given one, relative to the larger of the two; infinity beside what
        is not finite.
    refused : str
        Why the unit does not take the matrices, or "".
    """

    names: tuple[str, ...]
    unit: Unit
    differ: int | None = None
    first: tuple[int, int] | None = None
    got: float | None = None
    worst: float = 0.0
    refused: str = ""

    @property
    def _outcome(self) -> tuple:
        """What units that give the same have in common, as far as it is shown."""
        return self.differ, self.worst, self.first, self.got


@dataclass(frozen=True)
class Which:
    """What `which` found; printing it gives a report.

    >>> import numpy as np, softnum as sn
    >>> one = np.ones((1, 1))
    >>> found = sn.which(one, one, result=2 * one)
    >>> len(found.reproduce), found.differ[0].got
    (0, 1.0)
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    result: np.ndarray
    answers: tuple[Answer, ...]

    @property
    def reproduce(self) -> tuple[Answer, ...]:
        """Units that give every bit of the result."""
        return tuple(x for x in self.answers if x.differ == 0)

    @property
    def differ(self) -> tuple[Answer, ...]:
        """Units that do not, the closest first: by how many elements differ, then by how far."""
        return tuple(sorted((x for x in self.answers if x.differ), key=lambda x: (x.differ, x.worst)))

    @property
    def refused(self) -> tuple[Answer, ...]:
        """Units that cannot multiply these matrices."""
        return tuple(x for x in self.answers if x.differ is None)

    @plain
    def trace(self, answer: Answer, at: tuple[int, int]) -> Trace:
        """The steps of one element under a unit."""
        row, column = at
        c = None if self.c is None else self.c[row, column : column + 1]
        return answer.unit.trace(self.a[row], self.b[:, column], c)

    @plain
    def part(self) -> str:
        """The step at which the closest unit that differs departs from one that reproduces the result, or from the next
        closest: both traces side by side, up to the first step whose results differ. "" if there are not two units."""
        pair = [*self.reproduce[:1], *self.differ]
        pair = [*pair[:1], *(x for x in pair[1:] if x._outcome != pair[0]._outcome)][:2]
        if len(pair) < 2:
            return ""
        at = pair[1].first if pair[0].first is None else pair[0].first
        left, right = (self.trace(x, at) for x in pair)
        return _side_by_side(pair, at, left, right, self.result[at])

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "elements": self.result.size,
            "reproduce": [{"names": list(x.names), "unit": x.unit.expression} for x in self.reproduce],
            "differ": [
                {
                    "names": list(x.names), "unit": x.unit.expression, "differ": x.differ, "first": list(x.first),
                    "got": x.got, "given": float(self.result[x.first]), "worst": x.worst,
                }
                for x in self.differ
            ],
            "refused": [{"names": list(x.names), "why": x.refused} for x in self.refused],
        }  # fmt: skip

    def __str__(self) -> str:
        size = self.result.size
        lines = [f"{len(self.reproduce)} of {len(self.answers)} units give all {size} elements:"]
        lines += [f"  {', '.join(x.names)}\n    {x.unit}" for x in self.reproduce] or ["  none"]
        alike: dict[tuple, list[str]] = {}  # units that give the same here
        for x in self.differ:
            alike.setdefault(x._outcome, []).extend(x.names)
        if alike:
            lines += ["", "what the others have otherwise, the closest first:"]
        for (differ, worst, first, got), names in alike.items():
            given = float(self.result[first])
            lines += [
                f"  {', '.join(names)}",
                f"    {differ} of {size} elements, by up to {worst:.2g}; first at {first}: {got!r} ({got.hex()}), "
                f"given {given!r} ({given.hex()})",
            ]
        why: dict[str, dict[str, None]] = {}
        for x in self.refused:
            why.setdefault(x.refused, {}).update(dict.fromkeys(name.partition(" (")[0] for name in x.names))
        if why:
            lines += ["", "do not take these matrices:"]
        lines += [f"  {', '.join(names)}\n    {reason}" for reason, names in why.items()]
        return "\n".join(lines)


def candidates() -> dict[str, Unit]:
    """The units that are asked, by name: each preset, its other output, and what others say of it.

    >>> from softnum.inspect.which import candidates
    >>> print(*[name for name in candidates() if "a100_fp16" in name], sep="; ")
    nvidia_a100_fp16; nvidia_a100_fp16 (binary16); nvidia_a100_fp16 (mma-sim); nvidia_a100_fp16 (binary16, mma-sim)
    """
    found: dict[str, Unit] = {}
    for name in units():
        for disputed in (None, *DISPUTED):
            for output in _OUTPUTS:
                try:
                    made = unit(name, output, disputed=disputed)
                except ValueError:  # it has no such output, or nothing of it is disputed
                    continue
                if output is not None and made == unit(name, disputed=disputed):
                    continue
                told = ", ".join(x for x in (output, disputed) if x)
                found[f"{name} ({told})" if told else name] = made
    return found


def _matrix(x, what: str) -> np.ndarray:
    """A matrix of numbers, float32 or float64."""
    x = decode(x.codes, x.format) if isinstance(x, Array) else float_array(x, "which")
    x = np.asarray(x)
    if x.ndim != 2:
        raise ValueError(f"which: {what} must be a matrix, got an array of shape {x.shape}")
    return x


def _bits(x: np.ndarray) -> np.ndarray:
    """Numbers so that equal ones are equal, -0 and +0 differ and NaNs do not."""
    x = np.where(np.isnan(x), np.nan, x.astype(np.float64))
    return x.view(np.uint64)


@plain
def which(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    result: ArrayLike | None = None,
    *,
    others: Mapping[str, Unit] | None = None,
    threads: int | None = None,
) -> Which:
    """Find which units of real hardware reproduce a matrix product bit for bit.

    Parameters
    ----------
    a : array_like or Array, shape (M, K)
    b : array_like or Array, shape (K, N)
    c : array_like or Array, shape (M, N), optional
        The initial value of the sums.
    result : array_like or Array, shape (M, N)
        The result of the machine under test: a @ b, or a @ b + c.
    others : mapping of str to Unit, optional
        Further units to try, by name.
    threads : int, optional
        As in `softnum.matmul`.

    Returns
    -------
    Which
        ``reproduce``, ``differ`` and ``refused``, and a report when it is printed; ``part()`` shows where the closest
        unit that differs departs from the result. Presets that are the same unit are listed together. All NaNs are
        equal; +0 and -0 are not.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    TypeError
        If there is no result, or an array is not of numbers.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> rng = np.random.default_rng(0)
    >>> a, b = (sn.quantize(rng.standard_normal(shape), "binary16") for shape in ((8, 64), (64, 8)))
    >>> found = sn.which(a, b, result=sn.matmul(a, b, sn.unit("nvidia_a100_fp16")))
    >>> found.reproduce[0].names[:3]
    ('nvidia_turing_fp16', 'nvidia_a100_fp16', 'nvidia_a2_fp16')
    >>> closest = found.differ[0]
    >>> closest.names[0], closest.differ, closest.first
    ('nvidia_h100_tf32', 43, (0, 1))
    """
    if result is None:
        raise TypeError("which: state result=, the product that some machine gave")
    a, b, result = (_matrix(x, what) for x, what in ((a, "a"), (b, "b"), (result, "result")))
    c = None if c is None else _matrix(c, "c")
    shape = (a.shape[0], b.shape[1])
    if a.shape[1] != b.shape[0] or result.shape != shape or (c is not None and c.shape != shape):
        shapes = f"a {a.shape}, b {b.shape}, " + ("" if c is None else f"c {c.shape}, ") + f"result {result.shape}"
        raise ValueError(f"which: a is (M, K), b (K, N), c and the result (M, N); got {shapes}")
    asked: dict[Unit, list[str]] = {}
    for name, made in {**candidates(), **(others or {})}.items():
        asked.setdefault(made, []).append(name)
    want = _bits(result)
    answers = [_asked(tuple(names), made, a, b, c, result, want, threads) for made, names in asked.items()]
    return Which(a, b, c, result, tuple(answers))


def _asked(names, made: Unit, a, b, c, given, want, threads) -> Answer:
    if family_of(made).of_blocks:
        return Answer(names, made, refused="its operands are blocks with scales, not numbers")
    if made.stochastic:
        return Answer(names, made, refused="it rounds stochastically, and no key is known")
    try:
        got = matmul(a, b, made, c, threads=threads)
    except ValueError as error:  # a number that is none of the operands'
        return Answer(names, made, refused=str(error).partition(";")[0])
    got = decode(got.codes, got.format) if isinstance(got, Array) else got
    wrong = np.argwhere(_bits(got) != want)
    if not len(wrong):
        return Answer(names, made, 0)
    first = tuple(int(i) for i in wrong[0])
    return Answer(names, made, len(wrong), first, float(got[first]), _worst(got[tuple(wrong.T)], given[tuple(wrong.T)]))


def _worst(x, y) -> float:
    """The largest distance of two numbers, relative to the larger of them."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    larger = np.maximum(np.abs(x), np.abs(y))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(x / np.where(larger == 0, 1, larger) - y / np.where(larger == 0, 1, larger))
    return float(np.where(np.isfinite(apart), apart, np.inf).max())


def _told(step: Step | None) -> str:
    if step is None:
        return ""
    where = " ".join(f"{name} {i}" for name, i in step.where.items())
    value = number_text(step.exact if step.code is None else step.value)
    return f"{step.name}{f' ({where})' if where else ''}: {value}"


def _results(trace: Trace) -> list[Step]:
    """The steps that something is rounded in."""
    return [step for step in trace.steps if step.code is not None]


def _side_by_side(pair, at, left: Trace, right: Trace, given) -> str:
    """Both traces' roundings in two columns, to the first whose values differ."""
    rows, parted = [], None
    for i, (x, y) in enumerate(zip_longest(_results(left), _results(right))):
        rows.append((_told(x), _told(y)))
        if x is None or y is None or x.value != y.value:
            parted = i
            break
    width = min(_SIDE, max(len(row[0]) for row in [(pair[0].names[0], ""), *rows]))
    lines = [f"element {at}, given {float(given)!r}:", f"  {pair[0].names[0]:<{width}}  {pair[1].names[0]}"]
    hidden = max(0, len(rows) - _ROWS)
    if hidden:
        lines.append(f"  ... {hidden} roundings that are the same")
    lines += [f"  {x:<{width}}  {y}".rstrip() for x, y in rows[hidden:]]
    if parted is None:
        lines.append("  no rounding differs")
    else:
        lines.append(
            f"  rounding {parted + 1} of {len(_results(left))} and {len(_results(right))} is the first that differs"
        )
    lines += [f"  {x.names[0]} ends at {number_text(t.value)}" for x, t in zip(pair, (left, right), strict=True)]
    return "\n".join(lines)
