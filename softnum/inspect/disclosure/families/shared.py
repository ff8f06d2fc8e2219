"""What the statements of several families have in common."""

from __future__ import annotations

from softnum.inspect.disclosure.statement import Paragraph

__all__ = [
    "CHAINED_C", "ROUNDED_SUM", "SPECIAL_TERMS", "aligned_sum", "chained_order", "random_words", "read_words",
    "tensor_scales",
]  # fmt: skip

_WORDS = (
    "Random words are inputs like a and b: step k has two words of {r} bits, one for the product's rounding and one "
    "for the sum's. softnum takes them of `random_bits`, or makes them of a key (seed, stream): step k of output (m, "
    "n) of product `batch` has word k mod 4 of Philox4x32-10 with the counter (k div 4, n, m, batch), its key words "
    "being the first two of Philox4x32-10(key = seed; counter = (stream low, stream high, 1, 0)). {both}"
)
_ONE_WORD = "Product and sum both have its low {r} bits."
_TWO_PARTS = "The product has its low {r} bits, the sum the {r} from {middle} on."
_TWO_WORDS = "The product has its bits 0 to {last}, the sum its bits 16 to {end}."
_OTHER_WORD = "The product has its low {r} bits; the sum those of the same word of the key made with 2 in place of 1."


_OTHER_SOURCE = (
    "Random bits are inputs like a and b: step k has {field}bits of its own. {both} softnum takes them of "
    "`random_bits`{how}"
)
_PHILOX = (
    ", or makes them of a key (seed, stream): step k of output (m, n) of product `batch` has {bits} of word q mod 4 of "
    "Philox4x32-{rounds} with the counter (q div 4, n, m, batch), where q = k div {draws}; its key words are the first "
    "two of Philox4x32-10(key = seed; counter = (stream low, stream high, 1, 0))."
)
_LFSR = (
    ", or makes them of a key (seed, stream): output (m, n) of product `batch` has a linear feedback shift register of "
    "{w} bits. {start} For each step it moves {often}: from s to s >> 1, exclusive or 0x{taps:x} if the lowest bit "
    "of s was 1. Step k's bits are the complement of the state after k times that."
)
_HART = "Its first state is the complement of seed + n, modulo 2^{w}."
_KEYED = (
    "Its first state is the low {w} bits, or 2^{w} - 1 if they are 0, of word 0 of Philox4x32-10 with the counter (0, "
    "n, m, batch), its key words being the first two of Philox4x32-10(key = seed; counter = (stream low, stream high, "
    "1, 0))."
)


def _other_words(source, r: int, both: bool) -> Paragraph:
    where = _ONE_WORD.format(r=r)
    if both and source.kind == "given":
        where = _TWO_PARTS.format(r=r, middle="the middle")
    elif both:
        where = _TWO_PARTS.format(r=r, middle=f"bit {source.half}")
    field, how = "" if source.kind == "given" else f"{source.field} ", "."
    if source.kind == "philox":
        bits = (
            f"bits {source.field} (k mod {source.draws}) and on, {source.field} of them,"
            if source.draws > 1
            else "all bits"
        )
        how = _PHILOX.format(bits=bits, rounds=source.rounds, draws=source.draws)
    elif source.kind == "lfsr":
        start = (_HART if source.hart else _KEYED).format(w=source.width)
        often = "once" if source.shifts == 1 else f"{source.shifts} times"
        how = _LFSR.format(w=source.width, start=start, often=often, taps=source.taps)
    return Paragraph("Random bits", _OTHER_SOURCE.format(field=field, both=where, how=how))


def random_words(r: int, both: bool, source=None) -> Paragraph:
    """Where the random words of a unit's steps come from."""
    if source is not None and not source.is_default:
        return _other_words(source, r, both)
    if not both:
        how = _ONE_WORD.format(r=r)
    else:
        how = _TWO_WORDS.format(last=r - 1, end=15 + r) if r <= 16 else _OTHER_WORD.format(r=r)
    return Paragraph("Random words", _WORDS.format(r=r, both=how))


def read_words(unit) -> str:
    """How operands and sums are read, subnormal values among them."""
    text = "a[k], b[k] and C are the values of their codes."
    if unit.flush_inputs == "positive":
        return f"{text} Where one is subnormal or a zero of either sign, it counts as +0. Products and sums do not."
    if unit.flush_inputs:
        what = "C" if unit.flush_inputs == "sums" else "a, b, C"
        return (
            f"{text} Whatever is read, {what} and every sum and rounded product that is used again, counts as a zero "
            "of its sign where it is subnormal (+0 in a format without -0)."
            + (" a and b are read as they are." if unit.flush_inputs == "sums" else "")
        )
    return text


SPECIAL_TERMS = Paragraph(
    "Special values",
    "If a term is NaN, or there are infinite terms of both signs, the step gives NaN; if there is an infinite term "
    "else, that infinity, by the rounding's rule for infinities. What follows is then left out.",
)
ROUNDED_SUM = "S is rounded once. Where S is 0, and where it rounds to a zero of either sign, the result is +0."


def aligned_sum(unit, terms: str, formula: str) -> list[Paragraph]:
    """How terms with exponents become the sum S of a step; terms and formula: what they are besides C."""
    least = "" if unit.min_exponent is None else f", and at least {unit.min_exponent}"
    f = unit.fraction_bits
    steps = [
        Paragraph(
            "Alignment",
            f"M is the largest exponent of a term{least}. If no term has an exponent, the step gives +0. Every term "
            f"is cut off, toward zero, to a multiple of 2^(M - {f}): {f} bits below M are kept.",
            f"cut(x) = sign(x) * floor(|x| / 2^(M - {f})) * 2^(M - {f})",
        ),
        Paragraph("Sum", f"What is left of {terms} and of C is added exactly.", f"S = cut(C) + {formula}"),
    ]
    if unit.truncate_fraction is not None:
        t = unit.truncate_fraction
        steps.append(
            Paragraph(
                "Cut of the sum",
                f"S, unless it is 0, is cut off toward zero to {t} bits below its own leading bit.",
                f"q = 2^(floor(log2 |S|) - {t});  S = sign(S) * floor(|S| / q) * q",
            )
        )
    return steps


def chained_order(unit) -> Paragraph:
    """Steps of `terms` products in their order, each the C of the next."""
    t = unit.terms
    first = f"Step j has k = {t}j" + (f" to {t}j + {t - 1}" if t > 1 else "")
    return Paragraph(
        "Order",
        f"A step takes {t} product{'s' if t > 1 else ''} and C at once, and its result is the C of the next step. "
        f"{first}: there are ceil(K / {t}) steps. Where k is K or more there is no term, and no exponent.",
        "C_(j+1) = step(C_j; a[k], b[k] for the k of step j)",
    )


CHAINED_C = (
    "The first step's C is the unit's, or +0 if that is missing; the others' is the result of the step before. A sum "
    "of nothing (K = 0) is C as it stands, or +0."
)


def tensor_scales(unit) -> str:
    """What the scales of whole arrays are called in formulas of products."""
    every = all(f.tensor_scale is not None for f in unit.operand)
    return "Ta and Tb being the scales of the arrays a and b" + ("" if every else " (1 where a format has none)")
