"""Failures in groups: what kind of difference, in which kind of result, of which kind of operands."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.formats.modes import Flags
from softnum.vectors.checks.diagnosis import Diagnosis
from softnum.vectors.checks.evidence import Evidence
from softnum.vectors.plans.codes import distance
from softnum.vectors.plans.spec import Spec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["FailureClass", "classes_of", "kinds_of"]

_VALUES = ("normal", "subnormal", "zero", "infinity", "NaN", "overflow")
_KINDS = (
    "flags alone", "unknown bits", "another NaN", "NaN for a number", "no NaN", "infinity for a number",
    "a number for infinity", "sign of zero", "zero for a number", "sign", "1 ulp too small", "1 ulp too large",
    "too small", "too large",
)  # fmt: skip
_OVERFLOW = int(Flags.OVERFLOW)
_KIND = {name: i for i, name in enumerate(_KINDS)}


@dataclass(frozen=True)
class FailureClass:
    """Failures of one kind.

    Attributes
    ----------
    kind : str
        The difference; "too large" is said of magnitudes, of fixed point of values.
    result : str
        What the right result is: normal, subnormal, zero, infinity, NaN; overflow of what is too large, whatever is
        delivered for it.
    count : int
        Of the vectors kept.
    operands : str
        What the operands are in most of these vectors.
    cause : str
        The cause that explains most of them, or "unexplained".
    rows : ndarray
        Where they stand among the vectors kept.

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import check
    >>> check(io.BytesIO(b"3D 3D 3F 01\\n3D FE 7C 00\\n"), "multiply", "e5m2", explain=False).classes[0].to_dict()
    {'kind': 'no NaN', 'result': 'NaN', 'count': 1, 'operands': 'normal x NaN', 'cause': 'unexplained'}
    """

    kind: str
    result: str
    count: int
    operands: str
    cause: str
    rows: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in ("kind", "result", "count", "operands", "cause")}


def _values(codes: np.ndarray, fmt) -> np.ndarray:
    """Of each code, a number into _VALUES; of entries of several elements, that of the most special one."""
    out = np.zeros(codes.shape, np.int8)
    for number, test in enumerate((fmt.is_subnormal, fmt.is_zero, fmt.is_infinite, fmt.is_nan), 1):
        out[test(codes)] = number
    if out.ndim == 1:
        return out
    zeros = (out == _VALUES.index("zero")).all(1)  # of several numbers, zeros are what is least special
    return np.where(zeros, _VALUES.index("zero"), np.where(out == _VALUES.index("zero"), 0, out).max(1))


def kinds_of(evidence: Evidence, fmt: AnyFormat) -> np.ndarray:
    """How each failing vector differs: numbers into the list of kinds."""
    got, want = evidence.got.result, evidence.want.result
    if got.ndim > 1:  # of the first element that differs
        first = (got != want).argmax(1)
        got, want = (np.take_along_axis(v, first[:, None], 1)[:, 0] for v in (got, want))
    nan, inf, zero = ([test(codes) for codes in (got, want)] for test in (fmt.is_nan, fmt.is_infinite, fmt.is_zero))
    near = distance(got, want, fmt) == 1
    (got_sign, got_size), (want_sign, want_size) = map(fmt.sign_and_size, (got, want))
    larger, sign = got_size > want_size, got_sign != want_sign
    names = [
        (evidence.unknown, "unknown bits"), (got == want, "flags alone"), (nan[0] & nan[1], "another NaN"),
        (nan[0], "NaN for a number"), (nan[1], "no NaN"), (inf[0] & ~inf[1], "infinity for a number"),
        (inf[1] & ~inf[0], "a number for infinity"), (zero[0] & zero[1], "sign of zero"),
        (zero[0], "zero for a number"), (sign, "sign"), (near & ~larger, "1 ulp too small"),
        (near & larger, "1 ulp too large"), (larger, "too large"),
    ]  # fmt: skip
    return np.select([test for test, _ in names], [_KIND[name] for _, name in names], _KIND["too small"])


def classes_of(spec: Spec, evidence: Evidence, diagnosis: Diagnosis | None) -> list[FailureClass]:
    """The failing vectors of the evidence in classes, the largest first."""
    rows = np.flatnonzero(evidence.failing | evidence.unknown)
    if not len(rows):
        return []
    failing = evidence.take(rows)
    kinds, results = kinds_of(failing, spec.out_fmt), _values(failing.want.result, spec.out_fmt)
    if failing.want.flags is not None:
        results[failing.want.flags & _OVERFLOW != 0] = _VALUES.index("overflow")
    columns = list(zip(spec.operand_columns, failing.want.operands, strict=False))  # of a mac: an accumulator too
    operands = [_values(codes, c.format) for c, codes in columns if c.format is not None]
    found = []
    for kind, result in sorted(set(zip(kinds.tolist(), results.tolist(), strict=True))):
        here = np.flatnonzero((kinds == kind) & (results == result))
        of = Counter(zip(*(v[here].tolist() for v in operands), strict=True)).most_common(1)[0][0]
        cause = _cause(diagnosis, rows[here])
        what = " x ".join(_VALUES[v] for v in of)
        found.append(FailureClass(_KINDS[kind], _VALUES[result], len(here), what, cause, rows[here]))
    return sorted(found, key=lambda c: -c.count)


def _cause(diagnosis: Diagnosis | None, rows: np.ndarray) -> str:
    if diagnosis is None or not diagnosis.findings:
        return "unexplained"
    counts = [int(np.count_nonzero(f.explains[rows])) for f in diagnosis.findings]
    best = int(np.argmax(counts))
    return str(diagnosis.findings[best].cause) if counts[best] else "unexplained"
