"""Designs with faults, in plain integers and Fractions: none of this is how softnum.vectors finds them."""

import io
import random
from fractions import Fraction
from math import floor

from softnum import reference as ref
from softnum.reference import decode
from softnum.vectors import TextLayout, VectorSpec, check, plan

INEXACT, UNDERFLOW, OVERFLOW = 1, 2, 4


def exponent_of(x):
    """floor(log2(x)) of a Fraction above 0."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def quantum_of(x, fmt):
    if fmt.kind == "fixed":
        return Fraction(1, 2**fmt.fraction_bits)
    e = exponent_of(x) if x else fmt.emin
    return Fraction(2) ** (max(e, fmt.emin) - fmt.mantissa_bits)


def nearest_even(odd, t, sign):
    return t > Fraction(1, 2) or (t == Fraction(1, 2) and odd)


def deliver(x, fmt, decide=nearest_even, *, too_large="rule", overflow="infinity", sign=None):
    """(code, flags) of an exact number; decide(odd, t, sign) says whether a magnitude goes up."""
    sign = x < 0 if sign is None else sign
    magnitude = abs(x)
    quantum = quantum_of(magnitude, fmt)
    n, rest = divmod(magnitude, quantum)
    t = rest / quantum
    n += bool(t and decide(n & 1, t, sign))
    value, flags = n * quantum, INEXACT if t else 0
    if fmt.kind == "fixed":
        number = -n if sign else n
        low = -(2 ** (fmt.bits - 1)) if fmt.signed else 0
        if not low <= number < low + 2**fmt.bits:
            flags |= OVERFLOW
            if overflow == "saturate":
                number = low if number < low else low + 2**fmt.bits - 1
        return number % 2**fmt.bits, flags
    top = sign << (fmt.bits - 1)
    if value > fmt.max:
        infinite = fmt.inf_code if fmt.infinities else fmt.nan_code
        return (top | fmt.max_code if overflow == "saturate" else top | infinite), flags | OVERFLOW | INEXACT
    if t and value < fmt.smallest_normal:
        flags |= UNDERFLOW  # near enough to "after" for results; flags are compared where a test says so
    code, _ = ref.encode(value, fmt)
    return top | code, flags


def exact_of(spec, codes):
    """The exact finite result, or None where an operand is special or the result is a zero."""
    values = [decode(c, f) for c, f in zip(codes, spec.formats, strict=True)]
    if any(v.kind != "finite" for v in values):
        return None
    x, *rest = (v.fraction for v in values)
    match spec.op:
        case "convert":
            out = x
        case "add":
            out = x + rest[0]
        case "subtract":
            out = x - rest[0]
        case "multiply":
            out = x * rest[0]
        case "fma":
            out = x * rest[0] + rest[1]
        case "divide":
            out = x / rest[0] if rest[0] else Fraction(0)
    return out or None


def right(spec, codes, drawn=None):
    """What is right, by the reference."""
    options = dict(rounding=spec.rounding, overflow=spec.overflow, tininess=spec.tininess)
    if spec.stochastic_bits:
        options |= dict(stochastic_bits=spec.stochastic_bits, random_bits=drawn)
    if spec.op == "convert":
        return ref.convert(*codes, *spec.formats, spec.out_fmt, **options)
    return getattr(ref, spec.op)(*codes, spec.formats, out_fmt=spec.out_fmt, **options)


def rounding(decide, **options):
    """A design that rounds by `decide`."""

    def design(spec, codes, drawn, want, flags):
        x = exact_of(spec, codes)
        if x is None:
            return want, flags
        return deliver(x, spec.out_fmt, decide, overflow=spec.overflow, **options)[0], flags

    return design


def sticky_lost(bits):
    """Of what lies below the last place, `bits` bits are seen."""
    return rounding(lambda odd, t, sign: nearest_even(odd, Fraction(floor(t * 2**bits), 2**bits), sign))


def shifted(more, leading=True):
    """What lies below the normal numbers is shifted by `more` places than it should be; None: not at all."""

    def design(spec, codes, drawn, want, flags):
        x, fmt = exact_of(spec, codes), spec.out_fmt
        if x is None or (e := exponent_of(abs(x))) >= fmt.emin:
            return want, flags
        places = 0 if more is None else fmt.emin - e + more
        n, t = divmod(abs(x) / Fraction(2) ** (e - fmt.mantissa_bits + places), 1)
        kept = n if leading else n % 2**fmt.mantissa_bits
        return (x < 0) << (fmt.bits - 1) | kept + nearest_even(n & 1, t, x < 0), flags

    return design


def not_shifted_into(bits):
    """Of what is shifted out below the normal numbers `bits` bits are seen, and whether any lay below them before."""

    def decided(x, fmt):
        e = exponent_of(abs(x))
        unit = Fraction(2) ** (e - fmt.mantissa_bits - bits)
        below = abs(x) % unit != 0
        quantum = Fraction(2) ** (fmt.emin - fmt.mantissa_bits)
        n, t = divmod(abs(x) / quantum, 1)
        t = Fraction(floor(t * 2**bits), 2**bits) + below * Fraction(1, 2 ** (bits + 1))
        return n + nearest_even(n & 1, t, x < 0)

    def design(spec, codes, drawn, want, flags):
        x, fmt = exact_of(spec, codes), spec.out_fmt
        if x is None or exponent_of(abs(x)) >= fmt.emin:
            return want, flags
        return (x < 0) << (fmt.bits - 1) | decided(x, fmt), flags

    return design


def twice(bits):
    """Rounded to `bits` more bits of precision, then again."""

    def design(spec, codes, drawn, want, flags):
        x = exact_of(spec, codes)
        if x is None:
            return want, flags
        unit = Fraction(2) ** (exponent_of(abs(x)) - spec.out_fmt.mantissa_bits - bits)
        n = round(abs(x) / unit)  # Python rounds to nearest even
        return deliver(-n * unit if x < 0 else n * unit, spec.out_fmt, overflow=spec.overflow)[0], flags

    return design


def aligned(bits):
    """An adder whose smaller operand is shifted right past `bits` bits below the larger one's last place."""

    def design(spec, codes, drawn, want, flags):
        x = exact_of(spec, codes)
        if x is None:
            return want, flags
        fmt, terms = spec.out_fmt, [decode(c, spec.out_fmt).fraction for c in codes]
        terms[-1] *= -1 if spec.op == "subtract" else 1
        top = max(max(exponent_of(abs(v)), fmt.emin) for v in terms if v)
        unit = Fraction(2) ** (top - fmt.mantissa_bits - bits)
        cut = [(floor(abs(v) / unit) * unit) * (-1 if v < 0 else 1) for v in terms]
        total = sum(cut)
        return (deliver(total, fmt, overflow=spec.overflow)[0] if total else 0), flags

    return design


def flushed_operands(spec, codes, drawn, want, flags):
    zeros = []
    for code, fmt in zip(codes, spec.formats, strict=True):
        magnitude = code & (2 ** (fmt.bits - 1) - 1)
        zeros.append(code - magnitude if magnitude < 2**fmt.mantissa_bits else code)
    return right(spec, zeros)[0], flags


def flushed_results(keep_sign):
    def design(spec, codes, drawn, want, flags):
        fmt = spec.out_fmt
        magnitude = want & (2 ** (fmt.bits - 1) - 1)
        if 0 < magnitude < 2**fmt.mantissa_bits:
            want = want - magnitude if keep_sign else 0
        return want, flags

    return design


def by(**changes):
    """A design that follows other rules, by the reference."""

    def design(spec, codes, drawn, want, flags):
        other = VectorSpec.make(
            spec.op, spec.formats, out_fmt=spec.out_fmt,
            **dict(rounding=spec.rounding, overflow=spec.overflow, tininess=spec.tininess) | changes,
        )  # fmt: skip
        return right(other, codes)[0], flags

    return design


def with_words(change):
    """A design whose random bits are changed: change(word, r)."""
    return lambda spec, codes, drawn, want, flags: (right(spec, codes, change(drawn, spec.stochastic_bits))[0], flags)


def with_operands(change):
    return lambda spec, codes, drawn, want, flags: (right(spec, change(codes))[0], flags)


def when(test, change):
    """A design that is right but where test(result, format) holds."""

    def design(spec, codes, drawn, want, flags):
        return (change(want, spec.out_fmt) if test(want, spec.out_fmt) else want), flags

    return design


def rows_of(spec, count=2500, seed=1):
    """[operands], [random], result, flags of some vectors: lists of integers."""
    for block in plan(spec, count=count, seed=seed).blocks():
        yield from zip(*(c.tolist() for c in block.columns), strict=True)


def answers(spec, design, count=2500, seed=1):
    """The text of a design's answers."""
    k = len(spec.formats)
    lines = []
    for row in rows_of(spec, count, seed):
        drawn = row[k] if spec.stochastic_bits else None
        result, flags = design(spec, row[:k], drawn, row[-2], row[-1])
        lines.append([*row[:-2], result, flags])
    return lines


def text_of(spec, lines):
    columns = TextLayout(spec).columns
    rows = (" ".join(f"{v:0{c.digits}X}" for v, c in zip(row, columns, strict=True)) for row in lines)
    return "".join(row + "\n" for row in rows).encode()


def report_of(spec, lines, **options):
    stated = dict(
        fmt=spec.formats, out_fmt=spec.out_fmt, rounding=spec.rounding, overflow=spec.overflow,
        tininess=spec.tininess, stochastic_bits=spec.stochastic_bits,
    )  # fmt: skip
    return check(io.BytesIO(text_of(spec, lines)), spec.op, **stated, **options)


def diagnosed(spec, design, count=2500, **options):
    return report_of(spec, answers(spec, design, count), **options)


def garbage(spec, seed=3, count=2500):
    rng = random.Random(seed)
    return [[*row[:-2], rng.randrange(2**spec.out_fmt.bits), rng.randrange(32)] for row in rows_of(spec, count)]
