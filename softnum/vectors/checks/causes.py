"""Causes: what may be wrong with a design, each with the model of a design that is wrong in this way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

from softnum.formats.modes import P3109_VERSION, P3109_VERSIONS, ROUNDING_MODES
from softnum.formats.names import format
from softnum.vectors.plans.spec import VectorSpec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["CAUSES", "Candidate", "candidates_of", "counted"]

#: identifier -> what such a design does
CAUSES: dict[str, str] = {
    "unknown-bits": "the result holds bits that are unknown or undriven (x, z)",
    "shifted-rows": "each row holds the result of another row: the latency of the design is not what the bench assumes",
    "stuck-output": "bits of the result never change",
    "swapped-operands": "the operands are taken in another order",
    "swapped-lanes": "elements of packed words are taken, or delivered, in another order",
    "ignored-operand": "an operand is ignored, and something else stands in its place",
    "wrong-sign": "a sign is inverted or ignored",
    "c-ignored": "the addend C is ignored",
    "scale-ignored": "the scale of a block, or of a tensor, is ignored",
    "scale-bias": "scales are decoded with another bias",
    "scale-nan-ignored": "a scale that is NaN is taken for a number",
    "shared-scale": "one block's scale serves all blocks",
    "accumulator-not-cleared": "the accumulator is not cleared where a sequence begins",
    "random-ignored": "the random bits are ignored",
    "random-reversed": "the random bits are taken in reverse order",
    "random-complemented": "the random bits are taken inverted",
    "wrong-tie": "what lies half way between two values is rounded to the other one",
    "truncation": "what does not fit is cut off instead of rounded",
    "wrong-mode": "results are rounded in another mode",
    "flush-to-zero": "subnormal numbers are replaced by zero",
    "missing-subnormals": "the accumulator has no subnormal numbers",
    "overflow-to-infinity": "what is too large becomes infinite (NaN, where the format has no infinity)",
    "overflow-to-max": "what is too large becomes the largest finite value",
    "unsaturated-mantissa": "what is too large keeps a fraction of its own",
    "p3109-version": "what is out of range follows another version of P3109",
    "wrap-instead-of-saturate": "what is too large wraps around",
    "saturate-instead-of-wrap": "what is too large saturates where it should wrap around",
    "rounds-each-product": "each product is rounded before it is added",
    "rounds-each-block": "the sum of a block is rounded before it is added",
    "exact-product-instead": "products are added exactly where they should be rounded first",
    "missing-sticky": "bits are dropped before the rounding, which cannot tell whether any of them was 1",
    "subnormal-shift": "the shift into the subnormals is left out, or goes a place too far or not far enough",
    "double-rounding": "results are rounded twice",
    "chunk-length": "the sum is cut into chunks of another length",
    "summation-order": "the sum is made in another order",
    "alignment-bits": "terms are aligned with another number of fraction bits",
    "accumulator-width": "the accumulator has another width",
    "nan-payload": "a NaN is delivered as another code",
    "sign-of-zero": "a zero has the wrong sign",
    "tininess": "underflow is judged at the other side of the rounding (before or after)",
    "off-by-one-ulp": "results are one unit in the last place away, by no rule that is known here",
    "flags-only": "flags are wrong by themselves",
    "unexplained": "none of the known causes fits",
}


@dataclass(frozen=True)
class Candidate:
    """One way to be wrong: a cause's identifier, which of its kinds, and the changes to the model of a right design."""

    cause: str
    detail: str
    changes: dict[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.cause} ({self.detail})" if self.detail else self.cause


def counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def candidates_of(spec: VectorSpec) -> list[Candidate]:
    """What is tried for an operation, the likelier of two that predict the same first: nothing of posits and takums.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.checks.causes import candidates_of
    >>> [str(c) for c in candidates_of(VectorSpec.make("subtract", "e5m2"))][:3]
    ['swapped-operands (b, a)', 'ignored-operand (a, read as zero)', 'ignored-operand (a, read as one)']
    """
    if not all(f.has_exceptions for f in (*spec.formats, spec.out_fmt)):
        return []
    return [Candidate(*row) for row in _rows(spec)]


def _rows(spec: VectorSpec) -> Iterator[tuple[str, str, dict[str, Any]]]:
    out = spec.out_fmt
    names = "abc"[: len(spec.formats)]
    for order in permutations(range(len(spec.formats))):
        if list(order) != sorted(order):
            yield "swapped-operands", ", ".join(names[i] for i in order), {"order": order}
    yield from _taken(spec, names)
    stochastic = spec.rounding.startswith("stochastic")
    if stochastic:
        yield "random-complemented", "", {"random": "complemented"}
        yield "random-reversed", "", {"random": "reversed"}
        for constant in ("zeros", "ones", "half"):
            shown = {"half": f"always 0x{1 << (spec.stochastic_bits - 1):x}"}.get(constant, f"always {constant}")
            yield "random-ignored", shown, {"random": constant}
        for mode in ("nearest_even", "nearest_away"):
            yield "random-ignored", f"rounds {mode}", {"rounding": mode}
    yield from _modes(spec)
    yield "flush-to-zero", "operands", {"flush_inputs": True}
    for when in ("after", "before"):
        for sign in (True, False):
            text = f"results that are tiny {when} rounding" + ("" if sign else ", to +0")
            yield "flush-to-zero", text, {"flush_results": when, "flush_sign": sign}
    if "wrap" in out.overflow_rules:
        if spec.overflow == "wrap":
            yield "saturate-instead-of-wrap", "", {"overflow": "saturate"}
        else:
            yield "wrap-instead-of-saturate", "", {"overflow": "wrap"}
    else:
        yield from p3109_versions(spec.overflow, out)
        if spec.overflow not in ("infinity", *P3109_VERSIONS):
            yield "overflow-to-infinity", "", {"overflow": "infinity"}
        yield "overflow-to-infinity", "in every rounding mode", {"overflow_to": "infinity"}
        for rule, text in (("saturate_finite", ""), ("saturate", "infinite operands too")):
            if spec.overflow != rule:
                yield "overflow-to-max", text, {"overflow": rule}
        if out.has_fields:
            for field, text in (("largest", "the largest exponent"), ("ones", "an exponent of ones")):
                for only_next in (False, True):
                    more = ", where the exponent is one too large" if only_next else ""
                    yield "unsaturated-mantissa", f"after {text}{more}", {"overflow_fraction": (field, only_next)}
            wrapped = {"overflow_fraction": ("wrapped", False)}
            yield "wrap-instead-of-saturate", "the exponent field wraps around", wrapped
    if spec.op == "fma":
        yield "rounds-each-product", str(out), {"unfused": True}
    yield from _dropped(spec)
    yield from _shifted(spec)
    yield from _twice(spec)
    for profile in ("riscv" if spec.op == "to_integer" else "canonical", "x86", "arm"):
        if profile != spec.nan:
            yield "nan-payload", f"as {profile} delivers them", {"nan": profile}
    yield from _specials(spec)


def _taken(spec: VectorSpec, names: str):
    """Operands that are ignored, and signs."""
    count = len(spec.formats)
    for i in range(count if count > 1 else 0):
        for what in ("zero", "one"):
            yield "ignored-operand", f"{names[i]}, read as {what}", {"operands": ((i, what),)}
        for j in range(count):
            if j != i:
                yield "ignored-operand", f"{names[i]}, {names[j]} is read instead", {"operands": ((i, ("is", j)),)}
    for i in range(count):
        for what in ("negated", "positive"):
            text = f"{names[i]} is negated" if what == "negated" else f"the sign of {names[i]} is ignored"
            yield "wrong-sign", text, {"operands": ((i, what),)}
    signs = {"negated": "are negated", "positive": "are always positive", "negative": "are always negative"}
    signs |= {name: f"have the sign of {name}" for name in names[:count] if count > 1 and name != "c"}
    for what, text in signs.items():
        yield "wrong-sign", f"results {text}", {"sign": what}
        yield "wrong-sign", f"results {text}, but zeros, infinities and what comes of them", {"sign": f"{what} numbers"}


_NANS = {
    "first": "the first operand's, as it stands", "first quiet": "the first operand's, made quiet",
    "last": "the last operand's, as it stands", "last quiet": "the last operand's, made quiet",
    "largest": "the operand's of the larger payload, as it stands",
    "largest quiet": "the operand's of the larger payload, made quiet",
    "sign xor": "with the operands' sign", "sign a": "with the sign of a", "sign b": "with the sign of b",
}  # fmt: skip


def _specials(spec: VectorSpec):
    """NaNs and zeros, each by a rule of its own."""
    for rule, text in _NANS.items():
        if len(spec.formats) == 1 and not rule.startswith(("first", "sign xor")):
            continue
        yield "nan-payload", text if len(spec.formats) > 1 else text.replace("the first", "the"), {"nan_operand": rule}
    plain = {"positive": "always positive", "negative": "always negative", "inverted": "inverted"}
    for rule, text in plain.items():
        yield "sign-of-zero", text, {"zero": ("all", rule)}
    sums = spec.op in ("add", "subtract", "fma")
    signs = {"first": "the sign of the first", "second": "the sign of the second"}
    if sums:
        places = {"cancel": "of x - x", "zeros": "of the sum of two zeros"}
        signs["both"] = "minus where both terms are"
        signs = {rule: f"{text} term" if rule != "both" else text for rule, text in signs.items()}
    else:
        places = {"all": "", "exact": "of exact results", "inexact": "of results that underflow"}
        signs = {rule: f"{text} operand" for rule, text in signs.items()} if len(spec.formats) > 1 else {}
    for where, place in places.items():
        for rule, text in (plain | signs).items():
            if where != "all" or rule not in plain:
                yield "sign-of-zero", f"{place}, {text}" if place else text, {"zero": (where, rule)}


def p3109_versions(rule: str, *formats: AnyFormat) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The rule of another version of P3109 where nothing saturates."""
    if any(older in fmt.overflow_rules for fmt in formats for older in P3109_VERSIONS):
        versions = {"infinity": P3109_VERSION, **P3109_VERSIONS}
        if rule in versions:
            for other, version in versions.items():
                if other != rule:
                    yield "p3109-version", f"as version {version} has it", {"overflow": other}


def _modes(spec: VectorSpec):
    for mode in ROUNDING_MODES:
        if mode == spec.rounding:
            continue
        if mode.startswith("stochastic") and spec.stochastic_bits is None:
            continue
        cause, text = "wrong-mode", mode
        if mode.startswith("nearest") and spec.rounding.startswith("nearest"):
            cause = "wrong-tie"
        elif mode == "toward_zero":
            cause, text = "truncation", "toward zero"
        elif mode == spec.out_fmt.truncation:
            cause, text = "truncation", "of two's complement, toward minus infinity"
        yield cause, text, {"rounding": mode}
        if "down" in (mode, spec.rounding) and spec.op in ("add", "subtract", "fma"):
            yield cause, f"{text}, zeros with the sign they should have", {"rounding": mode, "zero": ("kept", "")}
        # a design whose rounding is wrong may deliver what is too large as the right mode does
        if spec.overflow in ("infinity", *P3109_VERSIONS) and cause != "wrong-tie":
            if spec.rounding in ("toward_zero", "to_odd"):
                yield cause, f"{text}, overflow to the largest value", {"rounding": mode, "overflow": "saturate_finite"}
            elif mode in ("toward_zero", "to_odd", "up", "down"):
                yield cause, f"{text}, overflow to infinity", {"rounding": mode, "overflow_to": "infinity"}


def _dropped(spec: VectorSpec):
    """Bits after the last place that are kept; those below are not seen."""
    # a product has p bits more than its result: what a shifter of that width drops
    p = spec.out_fmt.precision
    wide = () if p is None else range(p - 1, p + 3)
    for bits in dict.fromkeys((*range(1, 6), *wide, 0)):
        for where, text in (
            ("all", "{} below the last place kept, what lies below is not seen"),
            ("subnormal", "in the shift into the subnormals, {} below the last place kept"),
            ("free", "{} below the last place kept before the shift into the subnormals"),
            ("point", "{} below the last place kept before the result is normalised"),
            (
                "point all",
                "{} below the last place kept before the result is normalised, and in the shift into the subnormals",
            ),
            ("align", "the smaller term is cut off {} below the larger one's last place"),
        ):
            if bits > where.startswith("point") or where == "align":
                yield "missing-sticky", text.format(counted(bits, "bit")), {"keep": (bits, where)}


def _shifted(spec: VectorSpec):
    """The shift into the subnormals."""
    if not spec.out_fmt.exponent_bits or spec.out_fmt.lowest_binade != "subnormal":
        return
    texts = {"short": "a place too short", "long": "a place too long", "dropped": "left out"}
    for how, text in texts.items():
        for leading in (True, False) if how != "long" else (False,):
            more = "" if how == "long" else ", the leading one counts" if leading else ", the leading one is lost"
            yield "subnormal-shift", text + more, {"subnormal_shift": (how, leading)}
    for bits in range(1, 4):
        kept = f"{counted(bits, 'bit')} below the last place kept, and what lay below these before it"
        yield "missing-sticky", f"in the shift into the subnormals, {kept}", {"keep": (bits, "unshifted")}


def _twice(spec: VectorSpec):
    p = spec.out_fmt.precision
    if p is None:
        return
    for bits in dict.fromkeys((0, *range(1, 9), p, p + 1, p + 2)):
        text = f"to {p + bits} bits with an exponent of no bound, then to {spec.out_fmt}"
        yield "double-rounding", text, {"via": bits}
    for name in ("binary16", "bfloat16", "tf32", "binary32", "binary64"):
        wide = format(name)
        if wide.mantissa_bits > spec.out_fmt.mantissa_bits and wide.emax >= spec.out_fmt.emax:
            yield "double-rounding", f"to {name}, then to {spec.out_fmt}", {"via": wide}
