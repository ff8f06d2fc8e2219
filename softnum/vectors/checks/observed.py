"""What the design's own results suggest: bits that never change, codes of NaN, an operand that makes no difference."""

from __future__ import annotations

import numpy as np

from softnum.vectors.checks.causes import Candidate
from softnum.vectors.checks.evidence import Evidence
from softnum.vectors.plans.codes import is_nan
from softnum.vectors.plans.spec import Spec, VectorSpec

__all__ = ["observed"]

#: Vectors that are needed to say that bits never change.
_FEWEST = 16
#: Formats of operands of which every code is tried as what is read in an operand's place.
_NARROW = 8


def observed(spec: Spec, evidence: Evidence) -> list[Candidate]:
    """Candidates that are made from some of a design's results; they are judged on others.

    >>> import io
    >>> from softnum.vectors import check
    >>> lines = b"".join(b"%02X 3C 00 00\\n" % code for code in range(64))
    >>> [str(found.cause) for found in check(io.BytesIO(lines), "multiply", "e5m2", ignore_flags=True).causes]
    ['stuck-output']
    """
    if spec.out_fmt.leads or not len(evidence):
        return []
    out = [*_stuck(spec, evidence), *_nan_codes(spec, evidence)]
    if isinstance(spec, VectorSpec) and len(spec.formats) > 1:
        out += _ignored(spec, evidence)
    return out


def _stuck(spec: Spec, evidence: Evidence):
    got, want, bits = evidence.got.result, evidence.want.result, spec.out_fmt.bits
    if got.size < _FEWEST:
        return
    ones, zeros = np.bitwise_and.reduce(got, axis=None), np.bitwise_and.reduce(~got, axis=None)
    both = np.bitwise_and.reduce(want, axis=None) | np.bitwise_and.reduce(~want, axis=None)
    whole = (1 << bits) - 1
    ones, zeros = int(ones) & whole, int(zeros) & whole
    mask = (ones | zeros) & ~int(both) & whole
    digits = -(-bits // 4)
    if ones | zeros == whole:
        yield Candidate("stuck-output", f"always {ones:0{digits}X}", {"stuck": (whole, ones)})
    elif mask:
        named = [f"bit {i} is always {ones >> i & 1}" for i in range(bits) if mask >> i & 1]
        text = (
            "; ".join(named) if len(named) <= 4 else f"the bits {mask:0{digits}X} are always {ones & mask:0{digits}X}"
        )
        yield Candidate("stuck-output", text, {"stuck": (mask, ones & mask)})


def _nan_codes(spec: Spec, evidence: Evidence):
    """A NaN that always has one other code: every one, or those that no operand's NaN makes."""
    fmt = spec.out_fmt
    if not fmt.has_nan or evidence.got.result.ndim > 1:
        return
    nans = is_nan(evidence.want.result, fmt)
    made = nans
    if isinstance(spec, VectorSpec):
        for codes, f in zip(evidence.got.operands, spec.formats, strict=True):
            made = made & ~f.is_nan(codes)
    top = 1 << (fmt.bits - 1) if fmt.signed and isinstance(spec, VectorSpec) else 0
    for rows, every in ((evidence.wrong & nans, True), (evidence.wrong & made, False)):
        codes = np.unique(evidence.got.result[rows])
        sizes = np.unique(codes & ~codes.dtype.type(top))
        if len(sizes) != 1 or (fmt.has_fields and sizes[0] == fmt.max_code):  # what overflows to the largest value
            continue
        digits = -(-fmt.bits // 4)
        for code in codes.tolist():
            text = f"always {code:0{digits}X}" + ("" if is_nan(codes, fmt)[0] else ", which is no NaN")
            if every:
                yield Candidate("nan-payload", text, {"nan_code": code})
            if isinstance(spec, VectorSpec):
                text += ", where no operand is NaN"
                yield Candidate("nan-payload", text, {"nan_made": (code, None)})
        for rule, which in (("xor", "the operands' sign"), ("a", "the sign of a"), ("b", "the sign of b")):
            if not isinstance(spec, VectorSpec):
                break
            if every:
                more = {"nan_code": code, "nan_operand": f"sign {rule}"}
                yield Candidate("nan-payload", f"{text.partition(', where')[0]}, but with {which}", more)
            yield Candidate("nan-payload", f"{text}, but with {which}", {"nan_made": (code, rule)})


def _ignored(spec: VectorSpec, evidence: Evidence):
    """Every code of a narrow operand in its place, where the results do not depend on it."""
    for i, fmt in enumerate(spec.formats):
        if fmt.bits > _NARROW or len(np.unique(evidence.got.operands[i])) < 2:
            continue
        others = [c.astype(np.uint64) for j, c in enumerate(evidence.got.operands) if j != i]
        key = np.zeros(len(evidence), np.uint64)
        for codes in others:
            key = key << np.uint64(_NARROW) | codes & np.uint64((1 << _NARROW) - 1)
        if any(f.bits > _NARROW for j, f in enumerate(spec.formats) if j != i):
            continue
        order = np.lexsort((evidence.got.result, key))
        key, got = key[order], evidence.got.result[order]
        same = key[1:] == key[:-1]
        if np.count_nonzero(same) < _FEWEST or (got[1:] != got[:-1])[same].any():
            continue
        digits = -(-fmt.bits // 4)
        for code in range(1 << fmt.bits):
            text = f"{'abc'[i]}, read as {code:0{digits}X}"
            yield Candidate("ignored-operand", text, {"operands": ((i, code),)})
