"""What vectors are made of: operations from codes to codes, comparisons, floats to integers; how each is called."""

from __future__ import annotations

import numpy as np

from softnum.formats.aliases import INTEGERS, function_of, integer_named, near, operation_alias, refused
from softnum.formats.modes import Flags, nan_profile, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat, Format
from softnum.ops.arithmetic import CODE_OPERATIONS, compare
from softnum.ops.integers import to_integer

__all__ = [
    "BIT", "COMPARISONS", "check_exact", "computed", "expanded", "integer_format", "nan_of", "operand_format",
    "operands_of", "operation_name", "result_format",
]  # fmt: skip

#: the format of a comparison's result
BIT = FixedFormat(1, 0, signed=False)
#: name -> (whether a quiet NaN raises INVALID, which of `softnum.compare`'s results are true)
COMPARISONS: dict[str, tuple[bool, tuple[int, ...]]] = {
    f"compare_{kind}_{relation}": (kind == "signaling", orders)
    for kind in ("quiet", "signaling")
    for relation, orders in (("equal", (0,)), ("less", (-1,)), ("less_equal", (-1, 0)))
}
_EXACT = ("round_to_integral", "to_integer")


def _known() -> list[str]:
    return [*CODE_OPERATIONS, "to_integer", *COMPARISONS]


def operation_name(op: object) -> str:
    """An operation by softnum's own name, of it or of an alias; ValueError if vectors are made of none of that name.

    >>> operation_name("mulAdd"), operation_name("le_quiet")
    ('fma', 'compare_quiet_less_equal')
    """
    known = _known()
    name = operation_alias(op) if isinstance(op, str) else op
    if name not in known:
        hint = refused("operation", str(op))
        if hint is None and (close := near(str(op), known)):
            hint = f"did you mean {close[0]!r}?"
        raise ValueError(f"unknown operation {op!r}{f'; {hint}' if hint else ''} (known: {', '.join(known)})")
    return name


def operands_of(op: str) -> int:
    """How many operands an operation has."""
    return 2 if op in COMPARISONS else 1 if op == "to_integer" else CODE_OPERATIONS[op][1]


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


def operand_format(op: str, fmt) -> Format:
    """The format of an operand; of convert, integers too (TestFloat's ui32_to_f16)."""
    if op == "convert" and integer_named(fmt) is not None and (found := integer_format(fmt)) is not None:
        return found
    return format(fmt)


def result_format(op: str, formats: tuple[Format, ...], out_fmt) -> Format:
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
    if out_fmt is None:
        if op == "convert":
            raise ValueError(f"convert from {names}: state the target (out_fmt=, --result-format)")
        if any(f != formats[0] for f in formats):
            raise ValueError(
                f"{op}: the operands' formats differ ({names}); state the result's (out_fmt=, --result-format)"
            )
        return formats[0]
    if op == "convert" and integer_named(out_fmt) is not None:
        raise ValueError(
            f"{out_fmt} names integers: the operation is to_integer, not convert, whose result is of a format"
        )
    return format(out_fmt)


def nan_of(op: str, profile: str | None) -> str:
    """The NaN profile by one name for each rule; of to_integer, whose invalid results they are."""
    number = nan_profile("canonical" if profile is None else profile)
    if op == "to_integer":
        return {"arm_default": "arm", "canonical": "riscv"}.get(profile, profile or "riscv")
    return ("canonical", "x86", "arm")[number]


def expanded(op, given: dict) -> tuple[str, dict]:
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


def computed(op: str, operands, formats, out_fmt: Format, options: dict) -> tuple[np.ndarray, np.ndarray]:
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
    exact = options.pop("exact", True)
    if op == "to_integer":
        if integer_format(out_fmt) is None:
            raise ValueError(f"to_integer gives integers, not {out_fmt}")
        taken = {
            k: v for k, v in options.items() if k in ("rounding", "random_bits", "stochastic_bits", "flush_inputs")
        }
        dtype = np.dtype(f"{'i' if out_fmt.signed else 'u'}{out_fmt.bits // 8}")
        result, flags = to_integer(
            operands[0],
            formats[0],
            dtype,
            exact=exact,
            invalid=nan_of(op, options.get("nan")),
            return_flags=True,
            **taken,
        )
        return result.view(out_fmt.storage_dtype), flags
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
        options = {k: v for k, v in options.items() if k not in ("overflow", "tininess", "nan")}
    else:
        options["return_flags"] = True
    if op == "convert":
        found = function(operands[0], formats[0], out_fmt, **options)
    else:
        found = function(*operands, tuple(formats), out_fmt=out_fmt, **options)
    result, flags = (found, np.zeros(np.shape(found), np.uint8)) if without_flags else found
    return result, flags if exact else flags & ~np.uint8(Flags.INEXACT)
