"""Formats on a disclosure: every fact of them, in words and as plain data, and the formats that such data describe."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from softnum.formats.base import AnyFormat, format_of_data
from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.reference.facts import format_of as facts_of_format
from softnum.reference.values import to_fraction

__all__ = ["FormatTable", "exact_text", "hexadecimal", "read_formats"]

#: of each kind, what makes the format again; the other facts on a page follow from these
_MADE_OF = {
    "float": (
        "exponent_bits", "mantissa_bits", "bias", "signed", "nan_codes", "infinities", "negative_zero", "has_zero",
        "lowest_binade", "saturating",
    ),
    "fixed": ("integer_bits", "fraction_bits", "signed"),
    "table": ("values",),
    "posit": ("bits", "es"),
    "takum_linear": ("bits",),
    "block": ("element", "scale", "block_size", "tensor_scale"),
}  # fmt: skip
_NAMED = ("float", "table", "block")  # whose name is not made of their facts
_PARTS = {"block": ("element", "scale", "tensor_scale")}  # that are formats


def hexadecimal(code: int, fmt) -> str:
    """A code with all digits of its format."""
    return f"0x{code:0{-(-fmt.bits // 4)}x}"


def exact_text(x: Fraction) -> str:
    """A number as an odd integer times a power of two; a small integer as it is.

    >>> exact_text(Fraction(3, 8)), exact_text(Fraction(448)), exact_text(Fraction(65504))
    ('3 * 2^-3', '448', '2047 * 2^5')
    """
    x = Fraction(x)
    if x.denominator == 1 and abs(x) < 1024:
        return str(x)
    size = abs(x.numerator)
    zeros = (size & -size).bit_length() - 1
    exponent = zeros - (x.denominator.bit_length() - 1)
    odd = size >> zeros
    return f"{'-' if x < 0 else ''}{f'{odd} * ' if odd != 1 else ''}2^{exponent}"


class FormatTable:
    """The formats of a page by the names that it calls them; `add` puts one in and returns its name."""

    def __init__(self) -> None:
        self.formats: dict[str, AnyFormat] = {}

    def add(self, fmt) -> str:
        """The name of a format on the page.

        Raises ValueError for a format whose values cannot be stated, or whose name is that of another.
        """
        name = str(fmt)
        if fmt.kind not in _MADE_OF:
            why = "made of functions of the user's" if fmt.values_are_exact else "of logarithms, irrational"
            raise ValueError(
                f"no disclosure states the values of {name}: they are {why}; those of floats, fixed point, value "
                "tables, posits, linear takums and block formats can be"
            )
        try:
            known = format(name)
        except ValueError:
            known = self.formats.get(name, fmt)
        if known != fmt or self.formats.get(name, fmt) != fmt:
            raise ValueError(
                f"a disclosure calls formats by their names, and {name!r} is the name of another format than {fmt!r}; "
                "give that one a name of its own (name=)"
            )
        for part in _PARTS.get(fmt.kind, ()):
            if getattr(fmt, part) is not None:
                self.add(getattr(fmt, part))
        self.formats[name] = fmt
        return name

    def to_dict(self) -> dict[str, dict]:
        """Every format's facts, by name."""
        return {name: describe(fmt) for name, fmt in self.formats.items()}


def describe(fmt) -> dict:
    """All facts of a format as plain data, with the words that say what a code stands for."""
    facts: dict = {"kind": fmt.kind}
    made = fmt.to_data()
    for key in _MADE_OF[fmt.kind]:
        facts[key] = made[key]
    for part in _PARTS.get(fmt.kind, ()):
        facts[part] = None if getattr(fmt, part) is None else str(getattr(fmt, part))
    return facts | _derived(fmt) | {"words": _WORDS[fmt.kind](fmt)}


@of_format
def _derived(fmt) -> dict:
    """What follows from a float's widths, bias and special values."""
    facts = facts_of_format(fmt)
    code = lambda x: None if x is None else hexadecimal(x, fmt)  # noqa: E731
    value = lambda x: exact_text(to_fraction(x, facts))  # noqa: E731
    return {
        "bits": fmt.bits,
        "emin": facts.emin,
        "emax": fmt.emax,
        "largest_code": code(facts.max_code),
        "largest": value(facts.max_code),
        "smallest_code": code(facts.least_code),
        "smallest": value(facts.least_code),
        "smallest_normal_code": code(facts.normal_code),
        "smallest_normal": exact_text(facts.smallest_normal),
        "infinity_code": code(facts.inf_code),
        "nan_code": code(facts.nan_code),
    }


@_derived.fixed
def _(fmt) -> dict:
    return {"bits": fmt.bits}


@_derived.custom
def _(fmt) -> dict:
    return {"bits": fmt.bits} | ({"nan_code": hexadecimal(fmt.nan_code, fmt)} if fmt.nan_is_least else {})


@_derived.block
def _(fmt) -> dict:
    return {}


# -- in words ----------------------------------------------------------------------------------------------------------
def _float_words(fmt) -> list[str]:
    e, m, bits = fmt.exponent_bits, fmt.mantissa_bits, fmt.bits
    top = (1 << e + m) - 1
    sign = f"sign s (bit {bits - 1}), " if fmt.signed else "no sign (s = 0), "
    fields = f"{sign}exponent field E ({_places(m, e)})"
    fields += f", fraction F ({_places(0, m)})" if m else ", no fraction (F = 0)"
    code = "the code without its sign bit" if fmt.signed else "the code"
    words = [f"A code has {bits} bits: {fields}. u = E * 2^{m} + F is {code}."]
    if fmt.nan_codes == "ieee":
        words.append(f"E = {(1 << e) - 1} and F != 0 (u > {fmt.inf_code:#x}): NaN, whatever the sign.")
    elif fmt.nan_codes == "all_ones":
        words.append(f"u = {top:#x} (all ones): NaN{', with either sign' if fmt.signed else ''}.")
    elif fmt.nan_codes == "negative_zero":
        words.append(f"The code {1 << bits - 1:#x} (s = 1, u = 0): NaN, the only one.")
    else:
        words.append("No code is NaN.")
    if fmt.infinities:
        words.append(f"u = {fmt.inf_code:#x}: (-1)^s * infinity.")
    else:
        words.append("No code is infinite.")
    scale = fmt.bias + m
    if fmt.lowest_binade == "normal":
        zero = "u = 0: a zero. " if fmt.has_zero else ""
        words.append(
            f"{zero}{'Every other' if zero else 'Every'} u: (-1)^s * (2^{m} + F) * 2^(E - {scale}), also with E = 0: "
            f"there are no subnormal numbers{'' if fmt.has_zero else ', and no zero'}."
        )
    else:
        low = f"(-1)^s * F * 2^{1 - scale} (subnormal; F = 0 is a zero)"
        none = "a zero, whatever F is (there are no subnormal numbers)"
        words.append(f"E = 0: {low if fmt.lowest_binade == 'subnormal' else none}.")
        words.append(f"Every other u: (-1)^s * (2^{m} + F) * 2^(E - {scale}).")
    if fmt.has_zero and fmt.negative_zero:
        words.append("A zero has the sign s: +0 and -0 are two values.")
    elif fmt.has_zero:
        words.append("A zero is positive: there is no -0.")
    return words


def _places(low: int, width: int) -> str:
    return f"bit {low}" if width == 1 else f"bits {low + width - 1} to {low}"


def _fixed_words(fmt) -> list[str]:
    how = "an integer in two's complement" if fmt.signed else "an integer without sign"
    return [f"A code has {fmt.bits} bits: {how}, times 2^{-fmt.fraction_bits}. There is no -0, infinity or NaN."]


def _table_words(fmt) -> list[str]:
    return [f"A code has {fmt.bits} bits; its value is the entry of this number in `values`, in C's hexadecimal form."]


_BIT_STRINGS = (
    "The code of the sign bit alone is NaR, the only NaN. There are no infinities, and one zero, code 0. A code with "
    "the sign bit set is minus the value of its two's complement; in what follows it is clear, and the code not 0."
)


def _posit_words(fmt) -> list[str]:
    return [
        _BIT_STRINGS,
        f"A code has {fmt.bits} bits: after the sign bit, the regime is a run of equal bits and the one that ends it "
        f"(left out where the code ends): r = (length of the run) - 1 of ones, -(length) of zeros. Then {fmt.es} bits "
        "of exponent e, of which those missing at the code's end are 0, then the fraction bits f1 f2 ...",
        f"The value is 2^(r * {1 << fmt.es} + e) * 1.f1f2...",
    ]  # fmt: skip


def _takum_words(fmt) -> list[str]:
    return [
        _BIT_STRINGS,
        f"A code has {fmt.bits} bits; where it ends early it goes on with zeros. After the sign bit: a bit D, three "
        "bits of an integer R, the characteristic's bits C as an unsigned integer, r of them with r = R if D = 1 and "
        "r = 7 - R if D = 0, then the fraction bits f1 f2 ...",
        "c = 2^r - 1 + C if D = 1, c = -2^(r+1) + 1 + C if D = 0. The value is 2^c * 1.f1f2...",
    ]


def _block_words(fmt) -> list[str]:
    size = "of all K elements" if fmt.block_size is None else f"of {fmt.block_size} elements, the last may be shorter"
    tensor = f" times the one scale of the array, of {fmt.tensor_scale}" if fmt.tensor_scale is not None else ""
    return [
        f"Elements are codes of {fmt.element}, in blocks along k {size}; each block has a scale, a code of "
        f"{fmt.scale}. A value is element times scale{tensor}."
    ]


_WORDS: dict[str, Callable] = {
    "float": _float_words, "fixed": _fixed_words, "table": _table_words, "posit": _posit_words,
    "takum_linear": _takum_words, "block": _block_words,
}  # fmt: skip


# -- read back ---------------------------------------------------------------------------------------------------------
def read_formats(data: dict) -> dict[str, AnyFormat]:
    """The formats that a disclosure's table describes, each fact compared with the others and with the name.

    Raises ValueError where two statements differ, and for a kind or fact that is missing or unknown.
    """
    made: dict[str, AnyFormat] = {}
    for name, facts in data.items():
        if not (isinstance(facts, dict) and isinstance(facts.get("kind"), str)):
            raise ValueError(f"formats.{name} must be an object whose kind is text, got {facts!r}")
    for name in sorted(data, key=lambda name: data[name].get("kind") in _PARTS):  # parts are made before
        made[name] = _read(name, data[name], made)
    return made


def _read(name: str, facts: dict, made: dict):
    kind = facts.get("kind")
    if kind not in _MADE_OF:
        raise ValueError(f"formats.{name}: kind is {kind!r}; known are {', '.join(_MADE_OF)}")
    missing = [key for key in _MADE_OF[kind] if key not in facts]
    if missing:
        raise ValueError(f"formats.{name}: {missing[0]} is not stated")
    parts = {key: facts[key] for key in _MADE_OF[kind]}
    for part in _PARTS.get(kind, ()):
        if parts[part] is not None and not (isinstance(parts[part], str) and parts[part] in made):
            raise ValueError(f"formats.{name}: its {part} {parts[part]!r} is no format of the file")
        parts[part] = None if parts[part] is None else made[parts[part]].to_data()
    named = {"name": name} if kind in _NAMED else {}
    try:
        fmt = format_of_data({"kind": kind, **parts, **named})
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"formats.{name}: {error}") from None
    derived = describe(fmt)
    for key, value in derived.items():
        if key != "words" and facts.get(key) != value:
            raise ValueError(
                f"formats.{name}: {key} is {value!r} by its other facts, and the file says {facts.get(key)!r}"
            )
    for key in facts:
        if key not in derived:
            raise ValueError(f"formats.{name}: {key} is no fact of a {kind} format")
    try:
        known = format(name)
    except ValueError:
        known = fmt
    if known != fmt:
        theirs = describe(known)
        keys = ["kind"] if theirs["kind"] != kind else [k for k in derived if k != "words" and derived[k] != theirs[k]]
        raise ValueError(
            f"formats.{name}: {keys[0]} is {theirs[keys[0]]!r} in the format of this name, and the file says "
            f"{facts[keys[0]]!r}; give a format of one's own another name"
        )
    if str(fmt) != name:
        raise ValueError(f"formats.{name}: a format of these facts is {fmt}")
    return fmt
