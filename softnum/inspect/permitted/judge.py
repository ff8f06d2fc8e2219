"""`softnum.permitted`: the results that a specification permits of a dot product, and whether a given one is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.checks import float_array
from softnum.arrays.container import Array
from softnum.inspect.permitted.arithmetic import Exceeded, Machine
from softnum.inspect.permitted.enclosure import Enclosure, bounded, hull
from softnum.inspect.permitted.freedom import Freedom, ImeFreedom, freedom_of
from softnum.inspect.permitted.ime import ImeWitness, ime_results
from softnum.inspect.permitted.operands import given_code, number_of, operand_codes
from softnum.inspect.permitted.search import found_by_chance, found_by_orders
from softnum.inspect.permitted.sets import reachable, splits
from softnum.inspect.permitted.witness import Witness, witness_of
from softnum.reference.facts import format_of
from softnum.reference.values import decode
from softnum.runtime.plain import plain

__all__ = ["Permitted", "PermittedProduct", "judged", "permitted"]

#: Additions that are looked at before an enclosure takes the place of the exact set.
EFFORT = 200_000
_SHOWN = 8  # results that a report lists


@dataclass(frozen=True)
class Permitted:
    """The results that a specification permits for one dot product; made by `permitted`. Printing it gives a report.

    Attributes
    ----------
    spec : Freedom or ImeFreedom
    verdict : str or None
        "permitted", "refuted" or "undecided"; None where no result was given.
    codes : tuple of int or None
        The codes of all results, in the order of their values; None where there were too many computations.
    enclosure : Enclosure or None
        What all results lie in, where it was needed.
    witness : Witness, ImeWitness or None
        Of what is permitted: a computation that gives it.
    given : int, float, Fraction or str
        The result that was judged.
    proof : str
        Of what is refuted: why.

    Examples
    --------
    >>> import softnum as sn
    >>> print(sn.permitted([2048, 1, 1], [1, 1, 1], sn.Freedom("binary16"), result=2051.0))
    2051.0: refuted
      it is no value of binary16
    of any tree of additions of binary16 in any order (nearest_even), products of binary16 x binary16 rounded to \
binary16 or fused, C anywhere, +0 added anywhere
    >>> sn.permitted([2048, 1, 1], [1, 1, 1], sn.Freedom("binary16")).results
    (2048.0, 2050.0)
    """

    spec: Freedom | ImeFreedom
    verdict: str | None
    codes: tuple[int, ...] | None = None
    enclosure: Enclosure | None = None
    witness: Witness | ImeWitness | None = None
    given: object = None
    proof: str = ""

    @property
    @plain
    def results(self) -> tuple[Any, ...] | None:
        """All results as numbers: floats, or Fractions that no float64 holds; None where they are not known."""
        return None if self.codes is None else tuple(number_of(code, self.spec.output) for code in self.codes)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        out = {"spec": self.spec.expression, "verdict": self.verdict}
        if self.given is not None:
            out["given"] = str(self.given)
        if self.codes is not None:
            out["results"] = [str(x) for x in self.results]
        if self.enclosure is not None:
            e = self.enclosure
            out["enclosure"] = {
                "low": None if e.low is None else str(e.low), "high": None if e.high is None else str(e.high),
                "specials": sorted(e.specials), "tight": e.tight, "why": list(e.why),
            }  # fmt: skip
        if self.witness is not None:
            out["witness"] = self.witness.to_dict()
        if self.proof:
            out["proof"] = self.proof
        return out

    def __str__(self) -> str:
        lines = [] if self.verdict is None else [f"{self.given}: {self.verdict}"]
        if self.witness is not None:
            lines.append(f"  by {self.witness}")
        if self.proof:
            lines.append(f"  {self.proof}")
        if self.codes is not None:
            lines.append(f"results: {_listed(self.codes, self.spec.output)}")
        elif self.enclosure is not None:
            lines += [f"all results: {_enclosed(self.enclosure)}", *(f"  {line}" for line in self.enclosure.why)]
        return "\n".join([*lines, f"of {self.spec}"])


@dataclass(frozen=True)
class PermittedProduct:
    """The results that a specification permits for each element of a matrix product.

    Attributes
    ----------
    spec : Freedom or ImeFreedom
    elements : tuple of tuple of Permitted
        ``elements[row][column]``.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> a, b = np.full((2, 64), 0.125, np.float32), np.full((64, 2), 0.1, np.float32)
    >>> print(sn.permitted(a, b, sn.Freedom("binary32"), result=a @ b).verdict)
    permitted
    >>> sn.permitted(a, b, sn.Freedom("binary32"), result=np.zeros((2, 2))).count("refuted")
    4
    """

    spec: Freedom | ImeFreedom
    elements: tuple[tuple[Permitted, ...], ...]

    @property
    def verdicts(self) -> np.ndarray:
        """The verdict of each element, as text."""
        return np.array([[str(x.verdict) for x in row] for row in self.elements])

    @property
    def verdict(self) -> str | None:
        """The overall verdict: "refuted" if an element is; else "undecided" if one is; else "permitted"."""
        found = {x.verdict for row in self.elements for x in row}
        return next((v for v in (None, "refuted", "undecided") if v in found), "permitted")

    def count(self, verdict: str) -> int:
        """How many elements have a verdict."""
        return sum(x.verdict == verdict for row in self.elements for x in row)

    def first(self, verdict: str) -> tuple[int, int] | None:
        """The first element that has a verdict, as (row, column)."""
        for i, row in enumerate(self.elements):
            for j, x in enumerate(row):
                if x.verdict == verdict:
                    return i, j
        return None

    @property
    def witnesses(self) -> dict[str, int]:
        """How many elements each order is a witness of, the most frequent first."""
        found: dict[str, int] = {}
        for row in self.elements:
            for x in row:
                if x.witness is not None:
                    name = x.witness.name or "a tree of its own"
                    found[name] = found.get(name, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def to_dict(self) -> dict[str, Any]:
        """As plain data; of each verdict's elements the first in full."""
        out: dict = {"spec": self.spec.expression, "verdict": self.verdict}
        for verdict in ("permitted", "refuted", "undecided"):
            at = self.first(verdict)
            out[verdict] = self.count(verdict)
            if at is not None:
                out[f"first {verdict}"] = {"at": list(at), **self.elements[at[0]][at[1]].to_dict()}
        out["witnesses"] = self.witnesses
        return out

    def __str__(self) -> str:
        size = sum(map(len, self.elements))
        counts = ", ".join(f"{self.count(v)} {v}" for v in ("permitted", "refuted", "undecided"))
        lines = [f"{size} elements: {counts}", f"of {self.spec}"]
        for name, count in list(self.witnesses.items())[:_SHOWN]:
            lines.append(f"  {count} by {name}")
        for verdict in ("refuted", "undecided"):
            at = self.first(verdict)
            if at is not None:
                lines.append(f"first {verdict}, {at}:")
                lines += [f"  {line}" for line in str(self.elements[at[0]][at[1]]).splitlines()[:-1]]
        return "\n".join(lines)


def _place(code: int, fmt) -> tuple:
    """Where a code stands among results: by value, -0 before +0, NaN last."""
    value = decode(code, format_of(fmt))
    if value.kind == "nan":
        return 2, 0, 0
    if value.kind == "inf":
        return (-1 if value.sign else 1), 0, 0
    return 0, value.fraction, -value.sign


def _listed(codes: Sequence[int], fmt) -> str:
    texts = [str(number_of(code, fmt)) for code in codes]
    count = f"{len(texts)}: " if len(texts) > 1 else ""
    if len(texts) <= _SHOWN:
        return count + ", ".join(texts)
    return count + ", ".join(texts[: _SHOWN // 2]) + ", ..., " + ", ".join(texts[-_SHOWN // 2 :])


def _text(x: Fraction) -> str:
    """An exact number: as a float, where one is it."""
    try:
        return repr(float(x)) if Fraction(float(x)) == x else str(x)
    except OverflowError:
        return str(x)


def _enclosed(e: Enclosure) -> str:
    parts = [] if e.low is None else [f"from {_text(e.low)} to {_text(e.high)}"]
    return " or ".join([*parts, *sorted(e.specials)])


@plain
def permitted(
    a: ArrayLike,
    b: ArrayLike,
    spec: Freedom | ImeFreedom | str,
    c: ArrayLike | None = None,
    result: ArrayLike | None = None,
    *,
    effort: int = EFFORT,
) -> Permitted | PermittedProduct:
    """Compute which results a specification permits for a dot product, and whether a given result is among them.

    Parameters
    ----------
    a, b : array_like or Array, shape (K,) each, or (M, K) and (K, N)
        Values of the specification's operand formats (checked).
    spec : Freedom, ImeFreedom or str
        The specification, or its expression.
    c : array_like or Array, a number or shape (M, N), optional
        Where there is one: a value of the accumulator's format.
    result : array_like or Array, a number or shape (M, N), optional
        The result of the machine under test. All NaNs are equal; +0 and -0 are not.
    effort : int
        How many additions are examined for the exact set of results, and how many for its least and greatest element,
        before an enclosure replaces them. It bounds the time: an addition takes microseconds.

    Returns
    -------
    Permitted or PermittedProduct
        ``.verdict`` is "permitted" (then ``.witness`` is a computation that gives the result, and can be run again),
        "refuted" (then ``.proof`` says why no computation does) or "undecided"; ``.results`` or ``.enclosure`` says
        what there is. Of matrices, ``.elements`` has that of each.

    Raises
    ------
    ValueError
        If shapes do not fit, an operand is no value of its format, or a result is NaN and its format has none.
    TypeError
        If an argument is not an array of numbers.

    Notes
    -----
    An exact set comes from all computations, an enclosure from a proof (docs/permitted.md); a witness is run by
    `softnum.reference`. What depends on the effort is only how often the answer is "undecided".

    Examples
    --------
    >>> import softnum as sn
    >>> spec = sn.Freedom("e4m3", order="given", grouping="any", products="rounded")
    >>> print(sn.permitted([16, 1, 1], [1, 1, 1], spec))
    results: 2: 16.0, 18.0
    of any tree of additions of e4m3 in the order given (nearest_even), products of e4m3 x e4m3 rounded to e4m3, \
C anywhere, +0 added anywhere
    >>> found = sn.permitted([16, 1, 1], [1, 1, 1], spec, result=18.0)
    >>> found.verdict, str(found.witness)
    ('permitted', 'a running sum from the last to the first, rounded products')
    >>> sn.permitted([16, 1, 1], [1, 1, 1], spec, result=20.0).proof
    'it is none of the 2 results'
    """
    spec = freedom_of(spec)
    if isinstance(effort, bool) or not isinstance(effort, int) or effort < 0:
        raise ValueError(f"permitted: effort must be an integer of at least 0, got {effort!r}")
    (codes_a, shape_a) = operand_codes(a, spec.operand[0], "a", (1, 2))
    (codes_b, shape_b) = operand_codes(b, spec.operand[1], "b", (1, 2))
    if len(shape_a) != len(shape_b) or shape_a[-1] != shape_b[0]:
        raise ValueError(f"permitted: a and b are (K,) each, or (M, K) and (K, N); got {shape_a} and {shape_b}")
    k, shape = shape_b[0], (*shape_a[:-1], *shape_b[1:])
    m, n = shape if shape else (1, 1)
    rows = np.array(codes_a, spec.operand[0].storage_dtype).reshape(m, k)
    columns = np.array(codes_b, spec.operand[1].storage_dtype).reshape(k, n).T
    left, right = np.repeat(rows, n, 0), np.tile(columns, (m, 1))
    starts = None if c is None else _starts(c, spec, shape)
    given = None if result is None else _results(result, spec, shape)
    found = judged(spec, left, right, starts, given, effort)
    if not shape:
        return found[0]
    return PermittedProduct(spec, tuple(tuple(found[i * n : (i + 1) * n]) for i in range(m)))


def _starts(c, spec: Freedom, shape) -> np.ndarray:
    c = c if isinstance(c, Array) else float_array(c, "permitted")
    if c.shape != shape:
        raise ValueError(f"permitted: c has shape {c.shape}, and the results {shape}")
    codes, _ = operand_codes(c, spec.accumulator, "c", (len(shape),))
    return np.array(codes, spec.accumulator.storage_dtype)


def _results(result, spec: Freedom, shape) -> list[tuple[int | None, object]]:
    result = result if isinstance(result, Array) else float_array(result, "permitted")
    if result.shape != shape:
        raise ValueError(f"permitted: the result has shape {result.shape}, where it is {shape}")
    return [given_code(x, spec.output) for x in result.reshape(-1)]


def judged(spec: Freedom, a: np.ndarray, b: np.ndarray, c: ArrayLike, given: Any, effort: int) -> list[Permitted]:
    """The answers for many dot products: codes a and b of shape (n, K), c None or (n,), given None or (code, shown) of
    each."""
    if isinstance(spec, ImeFreedom):
        return [
            _of_ime(spec, list(zip(x.tolist(), y.tolist(), strict=True)), None if c is None else int(c[i]),
                    None if given is None else given[i])
            for i, (x, y) in enumerate(zip(a, b, strict=True))
        ]  # fmt: skip
    witnesses: dict[int, Witness] = {}
    if given is not None:
        wanted = [code for code, _ in given]
        witnesses = found_by_orders(spec, a, b, c, wanted)
    answers = []
    for i in range(len(a)):
        pairs = list(zip(a[i].tolist(), b[i].tolist(), strict=True))
        start = None if c is None else int(c[i])
        if given is None:
            codes, enclosure, _ = _all(spec, pairs, start, effort)
            answers.append(Permitted(spec, None, codes, enclosure))
        else:
            answers.append(_judged(spec, pairs, start, *given[i], witnesses.get(i), effort))
    return answers


def _of_ime(spec: ImeFreedom, pairs, c, given) -> Permitted:
    made = ime_results(spec, pairs, c)
    codes = tuple(sorted(made, key=lambda code: _place(code, spec.output)))
    if given is None:
        return Permitted(spec, None, codes)
    code, shown = given
    if code in made:
        return Permitted(spec, "permitted", codes, witness=made[code], given=shown)
    return Permitted(spec, "refuted", codes, given=shown, proof=_none_of(code, codes, spec))


def _none_of(code, codes, spec) -> str:
    if code is None:
        return f"it is no value of {spec.output}"
    return f"it is none of the {len(codes)} results" if len(codes) > 1 else "it is not the one result"


def _all(spec: Freedom, pairs, c, effort: int):
    """(codes of all results or None, enclosure or None, what makes each)."""
    counts: dict = {}
    for pair in pairs:
        counts[pair] = counts.get(pair, 0) + 1
    tree = spec.grouping == "any"
    if spec.order == "any":
        states = 1
        for n in counts.values():
            states *= n + 1
        least = splits(counts.values()) if tree else states
    else:
        least = len(pairs) ** 3 // 6 if tree else len(pairs)
    try:
        if least > effort:
            raise Exceeded
        made = reachable(Machine(spec, effort), pairs, c)
    except Exceeded:
        outer = bounded(Machine(spec), pairs, c)
        try:
            if least > effort:
                raise Exceeded
            inner = hull(Machine(spec, effort), pairs, c)
        except Exceeded:
            inner = None
        return None, inner or outer, {}
    codes = tuple(sorted(made, key=lambda code: _place(code, spec.output)))
    return codes, None, made


def _judged(spec: Freedom, pairs, c, code, shown, witness: Witness | None, effort: int) -> Permitted:
    if code is None:
        return Permitted(spec, "refuted", given=shown, proof=_none_of(code, (), spec))
    if witness is not None:
        return Permitted(spec, "permitted", witness=witness, given=shown)
    codes, enclosure, made = _all(spec, pairs, c, effort)
    if codes is not None:
        if code in made:
            return Permitted(spec, "permitted", codes, witness=witness_of(made[code], pairs, spec), given=shown)
        return Permitted(spec, "refuted", codes, given=shown, proof=_none_of(code, codes, spec))
    value = decode(code, format_of(spec.output))
    if not enclosure.holds(value):
        return Permitted(spec, "refuted", None, enclosure, given=shown, proof=f"all results are {_enclosed(enclosure)}")
    witness = found_by_chance(spec, pairs, c, code)
    verdict = "undecided" if witness is None else "permitted"
    return Permitted(spec, verdict, None, enclosure, witness, shown)
