"""One vector that differs, shown so that it can be understood: bits, values, what the rounding saw."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softnum.formats.modes import Flags
from softnum.inspect.trace import Step, exact_step, number_text, rounding_step, steps_of
from softnum.reference import operations as exact_operations
from softnum.reference.nans import INVALID_RESULT
from softnum.reference.rounding import Environment, environment_of, floor_log2, goes_up
from softnum.reference.values import Value
from softnum.vectors.plans.codes import bits_text, value_text
from softnum.vectors.plans.own import decoded, is_own
from softnum.vectors.plans.spec import Spec, VectorSpec

__all__ = ["Failure", "exact_value", "flags_text", "rounding_of", "simplicity"]


#: Numbers of more bits are shown by their size.
_MOST_BITS = 300
_MOST_ELEMENTS = 4  # of a wrong matrix that are shown


def flags_text(flags: int) -> str:
    """The names of flags.

    >>> from softnum.vectors.checks.failures import flags_text
    >>> flags_text(3), flags_text(0)
    ('underflow|inexact', 'none')
    """
    return "|".join(f.name.lower() for f in reversed(Flags) if f & flags) or "none"


@dataclass(frozen=True)
class Failure:
    """One vector that differs. Codes are integers, or tuples of them where an entry has several elements.

    ``line`` counts from 1, ``index`` (of the vector) from 0. ``got`` is None where the design's result has unknown
    bits; flags are None where there are none (units). ``before`` is what the design's accumulator held before a step of
    a mac, and ``want`` what the step makes of that.
    """

    line: int
    index: int
    operands: tuple[Any, ...]
    random_bits: int | tuple[Any, ...] | None
    got: int | tuple[Any, ...] | None
    want: int | tuple[Any, ...]
    got_flags: int | None
    want_flags: int | None
    before: int | None = None

    def to_dict(self, spec: Spec) -> dict[str, Any]:
        """For JSON: codes in hexadecimal and bits, with their values, and what the rounding saw."""
        columns = {c.name: c for c in spec.columns}
        out = {"line": self.line, "index": self.index}
        named = zip(spec.operand_columns, self.operands, strict=True)
        out["operands"] = {c.name: _shown(v, c) for c, v in named}
        if self.before is not None:
            out["operands"]["accumulator"] = _shown(self.before, columns["result"])
        if self.random_bits is not None:
            out["random_bits"] = _hex(self.random_bits, columns["random"])
        out["got"], out["want"] = (_shown(v, columns["result"]) for v in (self.got, self.want))
        if self.want_flags is not None:
            for key in ("got_flags", "want_flags"):
                out[key] = {"hex": f"{getattr(self, key):02X}", "names": flags_text(getattr(self, key))}
        step = rounding_of(spec, self)
        if step is not None:
            out["exact"] = _short(step.exact)
            if step.guard_round_sticky is not None:
                guard, round_, sticky = step.guard_round_sticky
                out["rounding"] = {
                    "kept": _short(step.kept), "quantum": _short(step.quantum),
                    "lost": _short(step.lost), "guard": guard, "round": round_, "sticky": sticky,
                    "decision": step.decision,
                }  # fmt: skip
        return out

    def text(self, spec: Spec) -> str:
        """One line: operands, got, want and flags, in hexadecimal with decoded values."""
        facts = self.to_dict(spec)
        parts = [f"{name}={_in_line(v)}" for name, v in facts["operands"].items()]
        if "random_bits" in facts:
            parts.append(f"random={facts['random_bits']}")
        for what in ("got", "want"):
            part = f"{what} {_in_line(facts[what])}"
            if f"{what}_flags" in facts:
                flags = facts[f"{what}_flags"]
                part += f" flags {flags['hex']} ({flags['names']})"
            parts.append(part)
        return f"line {self.line}: " + "  ".join(parts)

    def explained(self, spec: Spec) -> list[str]:
        """Several lines: each operand and result with its bits, the exact value, and what the rounding saw of it."""
        if isinstance(self.want, tuple):
            return self._elements_that_differ(spec)
        facts = self.to_dict(spec)
        rows = [(name, v) for name, v in facts["operands"].items()] + [(w, facts[w]) for w in ("got", "want")]
        rows = [(name, v) for name, v in rows if "bits" in v]
        widths = [max(len(v[key]) for _, v in rows) for key in ("hex", "bits", "value")]
        wide = max(5, *(len(name) for name, _ in rows)) if rows else 5
        lines = []
        for name, v in rows:
            cells = [v[key].ljust(width) for key, width in zip(("hex", "bits", "value"), widths, strict=True)]
            text = f"{name:{wide}}  " + "  ".join(cells)
            if f"{name}_flags" in facts:
                text += f"  flags {facts[f'{name}_flags']['hex']} ({facts[f'{name}_flags']['names']})"
            lines.append(text.rstrip())
        if "random_bits" in facts:
            lines.insert(max(0, len(lines) - 2), f"random {facts['random_bits']}")
        if "exact" in facts:
            text = f"{'exact':{wide}}  {facts['exact']}"
            if "rounding" in facts:
                r = facts["rounding"]
                text += f" = {r['kept']} + {r['lost']} ulp of {r['quantum']}; " if r["lost"] != "0" else "; "
                text += f"guard {r['guard']}, round {r['round']}, sticky {r['sticky']}: {_decided(r['decision'])}"
            lines.append(text)
        return lines

    def _elements_that_differ(self, spec: Spec) -> list[str]:
        """The elements of a matrix that are wrong, the first few; all of them where some bits are unknown."""
        (column,) = (c for c in spec.columns if c.name == "result")
        if not isinstance(self.got, tuple):
            return [f"got  {_hex(self.got, column)}", f"want {_hex(self.want, column)}"]
        digits = -(-column.bits // 4)
        wrong = [i for i, (got, want) in enumerate(zip(self.got, self.want, strict=True)) if got != want]
        lines = []
        for i in wrong[:_MOST_ELEMENTS]:
            got, want = (f"{c[i]:0{digits}X} ({value_text(c[i], column.format)})" for c in (self.got, self.want))
            lines.append(f"element {i} of {len(self.want)}: got {got}, want {want}")
        if len(wrong) > _MOST_ELEMENTS:
            lines.append(f"and {len(wrong) - _MOST_ELEMENTS} more")
        return lines


def _short(x: Fraction | str | None) -> str:
    """A number exactly, or its size where that would take too many digits."""
    if not isinstance(x, Fraction) or max(x.numerator.bit_length(), x.denominator.bit_length()) <= _MOST_BITS:
        return number_text(x)
    with contextlib.suppress(OverflowError):
        if float(x) and abs(float(x)) > 2.0**-1000:
            return f"~{float(x):.8g}"
    sign = "-" if x < 0 else ""
    return f"{sign}~2^{floor_log2(abs(x.numerator), x.denominator)}"


def _decided(decision: str) -> str:
    words = {"up": "away from zero", "down": "toward zero", "exact": "exact", "overflow": "too large"}
    return words.get(decision, decision)


def _hex(code, column) -> str:
    if code is None:
        return "x" * column.digits
    if isinstance(code, tuple):
        code = sum(c << (i * column.bits) for i, c in enumerate(code))
    return f"{code:0{column.digits}X}"


def _shown(code, column) -> dict[str, Any]:
    out = {"hex": _hex(code, column)}
    if code is None or column.format is None:
        return out
    if isinstance(code, tuple):
        return out | {"values": [value_text(c, column.format) for c in code]}
    return out | {"bits": bits_text(code, column.format), "value": value_text(code, column.format)}


def _in_line(shown: dict[str, Any]) -> str:
    if "value" in shown:
        return f"{shown['hex']} ({shown['value']})"
    if "values" in shown and len(shown["values"]) <= 8:
        return f"{shown['hex']} ({', '.join(shown['values'])})"
    return shown["hex"]


# -- what is right -----------------------------------------------------------------------------------------------------
def rounding_of(spec: Spec, failure: Failure) -> Step | None:
    """The exact value of an operation and what its rounding keeps, loses and decides; of units, of a mac's step."""
    if not isinstance(spec, VectorSpec):
        return _rounding_of_step(spec, failure)
    if not all(f.values_are_exact for f in (*spec.formats, spec.out_fmt)) or is_own(spec.out_fmt):
        return None
    env = environment_of(
        spec.out_fmt, spec.rounding, spec.overflow, spec.stochastic_bits or 32, failure.random_bits or 0, spec.tininess
    )
    exact = exact_value(spec, failure.operands, env)
    if exact is None:
        return None
    if exact.kind != "finite" or not spec.out_fmt.has_exceptions:  # posits have no quantum to say more by
        return exact_step(spec.op, spec.op, exact)
    return rounding_step(spec.op, spec.op, exact, spec.out_fmt, env)


def _rounding_of_step(spec, failure: Failure) -> Step | None:
    if failure.before is None:
        return None
    first, a, b, *c = failure.operands
    acc = failure.before if not first else c[0] if c else 0
    words = None if failure.random_bits is None else lambda *_: failure.random_bits
    try:
        steps, _ = steps_of(spec.unit, [a], [b], acc, words)
    except (TypeError, ValueError):  # a result that the format has no code for
        return None
    return steps[-1]


def exact_value(spec: VectorSpec, operands: Sequence[np.ndarray], env: Environment) -> Value | None:
    """The exact result of an operation; None of one that rounds nothing. A root is a number that rounds as it does."""
    values = [decoded(code, fmt) for code, fmt in zip(operands, spec.formats, strict=True)]
    x, y = values[0], values[1] if len(values) > 1 else None
    match spec.op:
        case "convert" | "to_integer":
            return x
        case "add":
            return exact_operations.exact_sum(x, y, env)
        case "subtract":
            return exact_operations.exact_sum(x, exact_operations.negated(y), env)
        case "multiply":
            return exact_operations.exact_product(x, y, env)
        case "fma":
            return exact_operations.exact_fma(*values, env)
        case "divide":
            return _quotient(x, y, spec.out_fmt)
        case "sqrt":
            if x.kind == "finite" and x.numerator and not x.sign:
                return exact_operations._root(x, spec.out_fmt, env)
            return x if x.kind == "nan" or not x.sign or exact_operations.is_zero(x) else INVALID_RESULT
        case "round_to_integral":
            if x.kind != "finite":
                return x
            integer, rest = divmod(x.numerator, x.denominator)
            return Value("finite", x.sign, integer + goes_up(x.sign, integer & 1, rest, x.denominator, env))
        case "logb":
            if x.kind != "finite" or not x.numerator:
                return None
            exponent = floor_log2(x.numerator, x.denominator)
            return Value("finite", int(exponent < 0), abs(exponent))
    return None


def _quotient(x: Value, y: Value, out) -> Value:
    sign = x.sign ^ y.sign
    if "nan" in (x.kind, y.kind):
        return x if x.kind == "nan" else y
    zero = exact_operations.is_zero(y)
    if (x.kind == y.kind == "inf") or (zero and (exact_operations.is_zero(x) or out.p3109)):
        return INVALID_RESULT
    if zero or x.kind == "inf":
        return Value("inf", sign)
    if y.kind == "inf":
        return Value("finite", sign)
    return Value("finite", sign, x.numerator * y.denominator, x.denominator * y.numerator)


# -- which is simpler --------------------------------------------------------------------------------------------------
def _weight(code, fmt) -> tuple[int, int, int]:
    """(whether it is special, significant bits, size of the exponent) of a code; of several their sum."""
    if isinstance(code, tuple):
        parts = [_weight(c, fmt) for c in code]
        return tuple(map(sum, zip(*parts, strict=True)))
    if not fmt.values_are_exact:  # the bits of the logarithm's code
        special = fmt.is_nan(np.array(code, fmt.storage_dtype))
        return int(special), int(code).bit_count(), 0
    value = decoded(code, fmt)
    if value.kind != "finite":
        return 1, 0, 0
    if not value.numerator:
        return 0, 0, 0
    exact = Fraction(value.numerator, value.denominator)
    odd = exact.numerator // (exact.numerator & -exact.numerator)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    return 0, odd.bit_length() + int(value.sign), abs(exponent)


def simplicity(spec: Spec, failure: Failure) -> tuple[Any, ...]:
    """What failures are ordered by: wrong results, no specials, few significant bits, exponents near that of 1."""
    columns = [c for c in spec.operand_columns if c.format is not None]
    codes = failure.operands[len(failure.operands) - len(columns) :]
    weights = [_weight(code, c.format) for code, c in zip(codes, columns, strict=True)]
    specials, bits, exponents = map(sum, zip(*weights, strict=True))
    return failure.got is None, failure.got == failure.want, specials, bits, exponents, failure.index
