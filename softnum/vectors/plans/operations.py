"""What vectors are made of: operations from codes to codes, comparisons, floats to integers; how each is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.formats.aliases import INTEGERS, function_of, integer_named, near, operation_alias, refused
from softnum.formats.checks import is_own
from softnum.formats.modes import Flags, nan_profile, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat, Format
from softnum.ops.arithmetic import CODE_OPERATIONS, compare
from softnum.ops.integers import to_integer
from softnum.vectors.plans.fpu import (
    CLASS_MASK,
    CLASS_NUMBER,
    EXTREMA,
    FUSED,
    MINMAX_RULES,
    SIGNS,
    class_codes,
    cuda_nan,
    extremum,
    fused,
    signed,
)

if TYPE_CHECKING:
    from softnum.formats.annotations import FormatLike
    from softnum.formats.base import AnyFormat

__all__ = [
    "BIT", "COMPARISONS", "check_exact", "check_flush", "computed", "expanded", "integer_format", "minmax_of", "nan_of",
    "operand_format", "operands_of", "operation_name", "result_format", "stated_meaning",
]  # fmt: skip

#: the format of a comparison's result
BIT = FixedFormat(1, 0, signed=False)
#: name -> (whether a quiet NaN raises INVALID, which of `softnum.compare`'s results are true)
COMPARISONS: dict[str, tuple[bool, tuple[int, ...]]] = {
    f"compare_{kind}_{relation}": (kind == "signaling", orders)
    for kind in ("quiet", "signaling")
    for relation, orders in (("equal", (0,)), ("less", (-1,)), ("less_equal", (-1, 0)))
}
#: rules by which results become zeros: `softnum.multiply`'s, and Arm's
FLUSHES = ("before", "after", "subnormal", "arm")
_EXACT = ("round_to_integral", "to_integer")
#: name -> its number of operands, of what is neither a ufunc nor a comparison
_OTHERS = {"to_integer": 1, "from_integer": 1, "classify": 1, **dict.fromkeys(SIGNS, 2), **dict.fromkeys(FUSED, 3)}
#: what move bits, or read them alone: nothing is flushed there
_ON_BITS = ("negate", "absolute", "copysign", "next_up", "next_down", "classify", *SIGNS)
_SHORT = {
    f"compare_{relation}{end}": f"compare_{kind}_{relation}"
    for relation in ("equal", "less", "less_equal")
    for kind, end in (("quiet", ""), ("signaling", "_signaling"))
}
_MEANINGS = {"fmsub": "a * b - c", "fnmadd": "-(a * b) - c", "fnmsub": "-(a * b) + c"}


def _known() -> list[str]:
    return [*CODE_OPERATIONS, *_OTHERS, *COMPARISONS]


def _has_negatives(fmt: Format, out_fmt: Format) -> bool:
    """Whether every value has its negative, -0 that of a zero whose sign the result could show."""
    if fmt.exponent_bits:
        return fmt.signed and (fmt.negative_zero or not (out_fmt.exponent_bits and out_fmt.negative_zero))
    if is_own(fmt) and fmt.bits <= 16:
        values = np.unique([v for v in fmt.values if v == v])
        return bool((values == -values[::-1]).all())
    return not fmt.has_exceptions and not is_own(fmt)


def stated_meaning(op: str) -> str | None:
    """What an operation computes that others' manuals have under another name; None of operations of one meaning.

    >>> stated_meaning("fnmsub")
    '-(a * b) + c'
    """
    return _MEANINGS.get(op)


def operation_name(op: object) -> str:
    """An operation by softnum's own name, of it or of an alias; ValueError if vectors are made of none of that name.

    >>> operation_name("mulAdd"), operation_name("le_quiet")
    ('fma', 'compare_quiet_less_equal')
    """
    known = _known()
    name = operation_alias(op) if isinstance(op, str) else op
    name = _SHORT.get(name, name)
    if name not in known:
        hint = refused("operation", str(op))
        if hint is None and (close := near(str(op), known)):
            hint = f"did you mean {close[0]!r}?"
        raise ValueError(f"unknown operation {op!r}{f'; {hint}' if hint else ''} (known: {', '.join(known)})")
    return name


def operands_of(op: str) -> int:
    """How many operands an operation has."""
    return 2 if op in COMPARISONS else _OTHERS[op] if op in _OTHERS else CODE_OPERATIONS[op][1]


def integer_format(fmt: object) -> FixedFormat | None:
    """The format of the values of an integer type that is given by its name or as fixed point; None of others.

    >>> integer_format("ui32"), integer_format("q8.0"), integer_format("q4.4")
    (FixedFormat(32, 0, signed=False), FixedFormat(8, 0), None)
    """
    named = integer_named(fmt)
    if named is not None:
        bits, signed = named
        return FixedFormat(bits, 0, signed=signed) if named in INTEGERS.values() else None
    try:
        found = format(fmt)
    except (TypeError, ValueError):
        return None
    if found.kind == "fixed" and not found.fraction_bits and (found.bits, found.signed) in INTEGERS.values():
        return found
    return None


def operand_format(op: str, fmt: Format | str) -> Format:
    """The format of an operand; of convert, integers too (TestFloat's ui32_to_f16); of from_integer, these alone."""
    if op == "from_integer":
        found = integer_format(fmt)
        if found is None:
            raise ValueError(f"from_integer takes an integer type (fmt=, --format): {', '.join(INTEGERS)}, not {fmt}")
        return found
    if op == "convert" and integer_named(fmt) is not None and (found := integer_format(fmt)) is not None:
        return found
    return format(fmt)


def result_format(op: str, formats: tuple[Format, ...], out_fmt: FormatLike | None) -> Format:
    """The format of the result, stated or not; ValueError where it must be, or cannot be that."""
    names = ", ".join(str(f) for f in formats)
    if op == "to_integer":
        found = None if out_fmt is None else integer_format(out_fmt)
        if found is None:
            got = "" if out_fmt is None else f", not {out_fmt}"
            raise ValueError(f"to_integer from {names}: state the integer type (out_fmt=, --result-format): "
                             f"{', '.join(INTEGERS)}{got}")  # fmt: skip
        return found
    if op in COMPARISONS:
        if out_fmt is not None and format(out_fmt) != BIT:
            raise ValueError(f"{op} gives one bit, 1 where it is so; leave the result's format out, not {out_fmt}")
        return BIT
    if op == "classify":
        found = CLASS_NUMBER if out_fmt is None else format(out_fmt)
        if formats[0].kind != "float" or formats[0].leads:
            raise ValueError(f"classify has IEEE 754's classes, of floats of up to 64 bits, not of {formats[0]}")
        if found not in (CLASS_NUMBER, CLASS_MASK):
            raise ValueError(f"classify gives a number ({CLASS_NUMBER}) or a mask ({CLASS_MASK}), not {out_fmt}")
        return found
    if op in SIGNS:
        if any(f != formats[0] or f.kind != "float" or not f.signed or f.leads for f in formats):
            raise ValueError(f"{op} is of floats of one format with a sign bit, of up to 64 bits, not of {names}")
        if out_fmt is not None and format(out_fmt) != formats[0]:
            raise ValueError(f"{op}: the result is in the format of a, {formats[0]}, not {out_fmt}")
        return formats[0]
    if op in FUSED:
        found = format(out_fmt) if out_fmt is not None else formats[0]
        for f in formats:
            if f.leads or not _has_negatives(f, found):
                raise ValueError(f"{op} negates terms: {f} has not the negative of each value (and zero, and 64 bits)")
    if out_fmt is None:
        if op in ("convert", "from_integer"):
            raise ValueError(f"{op} from {names}: state the target (out_fmt=, --result-format)")
        if any(f != formats[0] for f in formats):
            raise ValueError(
                f"{op}: the operands' formats differ ({names}); state the result's (out_fmt=, --result-format)"
            )
        return formats[0]
    if op in ("convert", "from_integer") and integer_named(out_fmt) is not None:
        raise ValueError(
            f"{out_fmt} names integers: the operation is to_integer, not {op}, whose result is of a format"
        )
    return format(out_fmt)


def nan_of(op: str, profile: str | None, out_fmt: Format | None = None) -> str:
    """The NaN profile by one name for each rule; of to_integer, whose invalid results they are."""
    if profile == "cuda":
        writes_nan = op not in _ON_BITS and op != "to_integer" and op not in COMPARISONS
        if writes_nan and out_fmt is not None and out_fmt.has_nan and cuda_nan(out_fmt) is None:
            raise ValueError(f"nan='cuda': no manual states the NaN that is delivered in {out_fmt}; state --nan")
        return "cuda"
    number = nan_profile("canonical" if profile is None else profile)
    if op == "to_integer":
        return {"arm_default": "arm", "canonical": "riscv"}.get(profile, profile or "riscv")
    return ("canonical", "x86", "arm")[number]


def check_flush(
    op: str, formats: Sequence[AnyFormat], out_fmt: Format, flush_inputs: bool, flush_results: str | None
) -> None:
    """ValueError where nothing is flushed, or the rule is unknown."""
    if flush_results not in (None, *FLUSHES):
        raise ValueError(f"flush_results must be {', '.join(FLUSHES[:-1])} or {FLUSHES[-1]}, got {flush_results!r}")
    if flush_results == "arm" and op == "convert" and format("binary16") in (*formats, out_fmt):
        raise ValueError("flush_results='arm': FPCR.FZ does not hold for FCVT to and from binary16; leave it out")
    if (flush_inputs or flush_results) and op in _ON_BITS:
        raise ValueError(f"{op} reads and moves bits: nothing is flushed (leave --flush-inputs, --flush-results out)")
    if flush_inputs and not any(f.kind == "float" for f in formats):
        raise ValueError(f"--flush-inputs is of floats, and {formats[0]} has no subnormals")
    if flush_results and (op in COMPARISONS or op == "to_integer" or out_fmt.kind != "float"):
        raise ValueError(f"--flush-results is of floats, and {op} gives none with subnormals, but {out_fmt}")


def minmax_of(op: str, rule: str | None, formats: Sequence[AnyFormat], out_fmt: Format) -> str:
    """Whose rule minimum and maximum follow; ValueError of other operations, and where a rule says nothing."""
    if rule is None:
        return "ieee2019"
    if rule not in MINMAX_RULES:
        raise ValueError(f"minmax must be one of {', '.join(MINMAX_RULES)}, got {rule!r}")
    if op not in EXTREMA:
        raise ValueError(f"minmax (--minmax) is for {', '.join(EXTREMA)}, not for {op}")
    if rule == "ieee2019":
        return rule
    if any(f != out_fmt for f in formats) or out_fmt.kind != "float" or out_fmt.leads:
        raise ValueError(f"minmax={rule!r} is of floats of one format, of up to 64 bits; state --minmax ieee2019")
    if rule == "x86" and op.endswith("_number"):
        raise ValueError(f"{op}: x86's MINSS is minimum; state another rule by --minmax")
    return rule


def expanded(op: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An operation by softnum's own name, and the options with what the name of one of TestFloat's functions states.

    Raises
    ------
    ValueError
        If an option says otherwise than the name, or the operation is unknown.

    Examples
    --------
    >>> expanded("f32_to_i32", {"rounding": "minMag"})
    ('to_integer', {'rounding': 'minMag', 'fmt': 'binary32', 'out_fmt': 'i32'})
    """
    found = function_of(op)
    if found is None:
        return operation_name(op), given
    stated = {key: value for key, value in found._asdict().items() if key != "op" and value is not None}
    for key, value in stated.items():
        other = given.get(key)
        if other is not None and not _same(key, other, value):
            text = {"fmt": "the operands' format", "out_fmt": "the result's format"}.get(key, key)
            raise ValueError(f"{op} states {text}, {value}; leave {text} out, or name the operation {found.op} instead")
    return found.op, {**given, **stated}


def _same(key: str, given, stated) -> bool:
    if key == "exact":
        return given == stated
    if key == "rounding":
        return rounding_name(given) == rounding_name(stated)
    parts = given if isinstance(given, (tuple, list)) else (given,)
    wanted = integer_format(stated) or format(stated)
    return all((integer_format(part) or format(part)) == wanted for part in parts)


def check_exact(op: str, exact: bool) -> None:
    """ValueError for an operation that cannot leave INEXACT out."""
    if not exact and op not in _EXACT:
        raise ValueError(f"exact=False (--notexact) is for {' and '.join(_EXACT)}, not for {op}")


def computed(
    op: str, operands: Sequence[np.ndarray], formats: Sequence[AnyFormat], out_fmt: Format, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """(codes of the results, flags) of an operation that vectors are made of, in this environment.

    Raises
    ------
    ValueError
        If the operation has no results in the format.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> e5m2, a = sn.format("e5m2"), np.array([0x3C, 0xC1], np.uint8)  # 1, -2.5
    >>> computed("to_integer", (a,), (e5m2,), sn.format("q8.0"), {"rounding": "down", "exact": False})
    (array([  1, 253], dtype=uint8), array([0, 0], dtype=uint8))
    >>> computed("compare_quiet_less", (a, a[::-1]), (e5m2, e5m2), BIT, {})
    (array([0, 1], dtype=uint8), array([0, 0], dtype=uint8))
    """
    options = dict(options)
    if options.get("flush_results") == "arm":  # FPRound with FPCR.FZ: UFC alone, where "before" raises IXC as well
        result, flags = computed(op, operands, formats, out_fmt, options | {"flush_results": "before"})
        flushed = out_fmt.is_zero(result) & (flags & np.uint8(Flags.UNDERFLOW) != 0)
        return result, np.where(flushed, flags & ~np.uint8(Flags.INEXACT), flags)
    exact, rule = options.pop("exact", True), options.pop("minmax", "ieee2019")
    if options.get("nan") == "cuda" and op != "to_integer":
        result, flags = computed(
            op, operands, formats, out_fmt, options | {"nan": "canonical", "exact": exact, "minmax": rule}
        )
        code = None if op in _ON_BITS else cuda_nan(out_fmt)
        return (result if code is None else np.where(out_fmt.is_nan(result), result.dtype.type(code), result)), flags
    if op in FUSED:
        operands, op = fused(op, operands, formats, options), "fma"
    if op == "from_integer":
        op = "convert"
    if op in SIGNS:
        return signed(op, *operands, formats), np.zeros(len(operands[0]), np.uint8)
    if op == "classify":
        codes = class_codes(operands[0], formats[0], out_fmt)
        return codes.astype(out_fmt.storage_dtype), np.zeros(len(codes), np.uint8)
    if op in EXTREMA and rule != "ieee2019":
        return extremum(op, rule, operands, formats, options)
    if op == "to_integer":
        if integer_format(out_fmt) is None:
            raise ValueError(f"to_integer gives integers, not {out_fmt}")
        taken = {
            k: v for k, v in options.items() if k in ("rounding", "random_bits", "stochastic_bits", "flush_inputs")
        }
        dtype = np.dtype(f"{'i' if out_fmt.signed else 'u'}{out_fmt.bits // 8}")
        whose = nan_of(op, options.get("nan"))
        result, flags = to_integer(
            operands[0],
            formats[0],
            dtype,
            exact=exact,
            invalid="arm" if whose == "cuda" else whose,
            return_flags=True,
            **taken,
        )
        result = result.view(out_fmt.storage_dtype)
        if whose == "cuda" and (formats[0] == format("binary64") or out_fmt.bits == 64):  # PTX ISA, cvt: else 0
            nan = formats[0].is_nan(operands[0])
            result = np.where(nan, result.dtype.type(1 << (out_fmt.bits - 1)), result)
        return result, flags
    if op in COMPARISONS:
        if out_fmt != BIT:
            raise ValueError(f"{op} gives one bit, not {out_fmt}")
        signaling, orders = COMPARISONS[op]
        order, flags = compare(
            *operands, tuple(formats), signaling=signaling, return_flags=True,
            flush_inputs=options.get("flush_inputs", False),
        )  # fmt: skip
        return np.isin(order, orders).astype(np.uint8), flags
    function = CODE_OPERATIONS[op][0]
    without_flags = not out_fmt.has_exceptions  # of posits there are none, and no rules to state
    if without_flags:
        rule = options.get("overflow")
        dropped = ("overflow", "tininess", "nan", *(k for k in ("flush_inputs", "flush_results") if not options.get(k)))
        options = {k: v for k, v in options.items() if k not in dropped}
        if rule not in (None, out_fmt.overflow_rules[0]):
            options["overflow"] = rule
    else:
        options["return_flags"] = True
    if op == "convert":
        found = function(operands[0], formats[0], out_fmt, **options)
    else:
        found = function(*operands, tuple(formats), out_fmt=out_fmt, **options)
    result, flags = (found, np.zeros(np.shape(found), np.uint8)) if without_flags else found
    return result, flags if exact else flags & ~np.uint8(Flags.INEXACT)
