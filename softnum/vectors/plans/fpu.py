"""Operations of a whole floating-point unit that are no ufuncs: what an instruction does, made of softnum's operations.

Sources: IEEE Std 754-2019; the RISC-V Instruction Set Manual, volume I (20240411), chapter "F", sections "Single-
Precision Floating-Point Computational Instructions" and "... Classify Instruction"; Arm Architecture Reference Manual
(DDI 0487), FMIN, FMINNM, FNMADD and FPProcessNaNs; Intel 64 SDM, volume 2, MINSS and VFNMADD132SS; PTX ISA 8.5, min.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.formats.scalar import FixedFormat, Format
from softnum.ops.arithmetic import CODE_OPERATIONS, classify, compare

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = [
    "CLASS_MASK", "CLASS_NUMBER", "EXTREMA", "FUSED", "MINMAX_RULES", "SIGNS", "class_codes", "cuda_nan", "extremum",
    "fused", "signed",
]  # fmt: skip

#: the results of classify: IEEE 754's class as a number 0..9, and RISC-V's mask of ten bits
CLASS_NUMBER, CLASS_MASK = FixedFormat(4, 0, signed=False), FixedFormat(10, 0, signed=False)
#: name -> (whether the product is negated, whether the addend is), as RISC-V has the names
FUSED = {"fmsub": (False, True), "fnmadd": (True, True), "fnmsub": (True, False)}
#: name -> the sign of the result: of b, the other one, of a times b's
SIGNS = ("sign_copy", "sign_negate", "sign_xor")
EXTREMA = ("minimum", "maximum", "minimum_number", "maximum_number")
#: whose rule minimum and maximum follow
MINMAX_RULES = ("ieee2019", "ieee2008", "riscv", "arm", "x86", "cuda")
_SIGNALING, _QUIET = 0, 1  # of `softnum.classify`


def _nans(codes, fmt: Format) -> tuple[np.ndarray, np.ndarray]:
    """(which codes are NaN, which of these signal)"""
    kinds = classify(codes, fmt)
    return kinds <= _QUIET, kinds == _SIGNALING


def fused(
    op: str, operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], options: dict[str, Any]
) -> tuple[np.ndarray, ...]:
    """The operands of the fma that fmsub, fnmadd and fnmsub are: one rounding of the negated terms.

    RISC-V's names (section "Single-Precision Floating-Point Computational Instructions"): fmsub is a * b - c, fnmsub is
    -(a * b) + c, fnmadd is -(a * b) - c. A NaN keeps its sign where it is delivered as x86's VFNMADD does; Arm's FNMADD
    negates whatever the operand is (FPNeg).

    >>> import numpy as np, softnum as sn
    >>> one = np.array([0x3C], np.uint8)
    >>> [x.tolist() for x in fused("fnmadd", (one, one, one), (sn.format("e5m2"),) * 3, {})]
    [[188], [60], [188]]
    """
    a, b, c = operands
    product, addend = FUSED[op]
    keep_nans = options.get("nan") == "x86"
    return (_negated(a, formats[0], keep_nans) if product else a), b, (
        _negated(c, formats[2], keep_nans) if addend else c
    )  # fmt: skip


def _negated(codes, fmt: Format, keep_nans: bool) -> np.ndarray:
    negative = CODE_OPERATIONS["negate"][0](codes, fmt)
    return np.where(_nans(codes, fmt)[0], codes, negative) if keep_nans else negative


def signed(op: str, a: np.ndarray, b: np.ndarray, formats: Sequence[AnyFormat]) -> np.ndarray:
    """a with a sign that b decides, by sign bits alone: no flags, NaNs as they stand.

    RISC-V's FSGNJ, FSGNJN and FSGNJX (section "Single-Precision Floating-Point Conversion and Move Instructions"): the
    sign of b, the other one, the exclusive or of both; IEEE 754-2019 5.5.1 copySign is the first.

    >>> import numpy as np, softnum as sn
    >>> a, b = np.array([0xBC], np.uint8), np.array([0xBC], np.uint8)
    >>> [hex(signed(op, a, b, (sn.format("e5m2"),) * 2)[0]) for op in ("sign_copy", "sign_negate", "sign_xor")]
    ['0xbc', '0x3c', '0x3c']
    """
    negate, absolute = (CODE_OPERATIONS[name][0] for name in ("negate", "absolute"))
    bit = b >> (formats[1].bits - 1) != 0
    if op == "sign_xor":
        return np.where(bit, negate(a, formats[0]), a)
    plus = absolute(a, formats[0])
    return np.where(bit != (op == "sign_negate"), negate(plus, formats[0]), plus)


def class_codes(codes: np.ndarray, fmt: Format, out_fmt: Format) -> np.ndarray:
    """Classes: IEEE 754-2019 5.7.2's as 0 (signalingNaN) to 9 (positiveInfinity), or RISC-V's mask.

    FCLASS (section "Single-Precision Floating-Point Classify Instruction") sets one bit of ten: 0 -infinity, 1 -normal,
    2 -subnormal, 3 -0, 4 +0, 5 +subnormal, 6 +normal, 7 +infinity, 8 signaling NaN, 9 quiet NaN. No flags.

    >>> import numpy as np, softnum as sn
    >>> codes = np.array([0xFC, 0x80, 0x3C, 0x7D, 0x7E], np.uint8)
    >>> class_codes(codes, sn.format("e5m2"), CLASS_MASK).tolist()
    [1, 8, 64, 256, 512]
    """
    kinds = classify(codes, fmt)
    if out_fmt == CLASS_NUMBER:
        return kinds
    return np.uint16(1) << (kinds.astype(np.uint16) + np.uint16(8)) % np.uint16(10)


def extremum(
    op: str, rule: str, operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """(codes, flags) of minimum, maximum, minimum_number or maximum_number by another's rule than IEEE 754-2019's.

    ``ieee2008``: minNum and maxNum (IEEE 754-2008 5.3.1): a quiet NaN gives way, a signaling one does not; -0 below +0.
    ``riscv``: FMIN is minimumNumber, NaN the canonical one (section "Single-Precision Floating-Point Computational
    Instructions"). ``arm``: FMIN is minimum, FMINNM minNum. ``x86``: MINSS delivers the second operand as it stands
    where either is NaN, or both are zeros, and raises invalid for every NaN (SDM, volume 2); with DAZ operands are
    zeros before they are compared or delivered (volume 1, 10.2.3.4). ``cuda``: PTX's min is minimumNumber.

    >>> import numpy as np, softnum as sn
    >>> e5m2, a, b = sn.format("e5m2"), np.array([0x00, 0x7E], np.uint8), np.array([0x80, 0x3C], np.uint8)
    >>> extremum("minimum", "x86", (b, a), (e5m2, e5m2), {})
    (array([  0, 126], dtype=uint8), array([ 0, 16], dtype=uint8))
    """
    side = op.removesuffix("_number")
    call = lambda name: CODE_OPERATIONS[name][0](*operands, tuple(formats), return_flags=True, **options)  # noqa: E731
    if rule in ("riscv", "cuda"):
        return call(f"{side}_number")
    if rule == "x86":
        a, b = (_daz(x, f) if options.get("flush_inputs") else x for x, f in zip(operands, formats, strict=True))
        order, flags = compare(a, b, tuple(formats), signaling=True, return_flags=True)
        return np.where(order == (-1 if side == "minimum" else 1), a, b), flags
    if rule == "arm" and op == side:
        return call(side)
    number, propagated = call(f"{side}_number"), call(side)
    signals = np.logical_or(*(_nans(x, f)[1] for x, f in zip(operands, formats, strict=True)))
    return tuple(np.where(signals, p, n) for p, n in zip(propagated, number, strict=True))


def _daz(codes, fmt: Format) -> np.ndarray:
    zeros = codes & codes.dtype.type(1 << (fmt.bits - 1)) if fmt.negative_zero else np.zeros_like(codes)
    return np.where(fmt.is_subnormal(codes), zeros, codes)


def cuda_nan(fmt: Format) -> int | None:
    """The one NaN that a GPU's results are, all ones but the sign: binary32 0x7FFFFFFF (CUDA C programming guide,
    "Floating-Point Standard"; PTX ISA, canonical NaN), the same of halves and of FP8. None of binary64 and of others,
    whose NaNs no manual states.

    >>> import softnum as sn
    >>> hex(cuda_nan(sn.format("binary32"))), cuda_nan(sn.format("binary64"))
    ('0x7fffffff', None)
    """
    stated = fmt.exponent_bits and fmt.bits <= 32 and fmt.signed and fmt.nan_codes in ("ieee", "all_ones")
    return (1 << (fmt.bits - 1)) - 1 if stated else None
