"""``softnum vectors generate`` of several operations, modes and formats in one file."""

import shlex
from itertools import product

from softnum.cli.vector_arguments import format_of, formats_of, lanes_of
from softnum.cli.vector_options import VectorOptions
from softnum.formats.aliases import function_of

__all__ = ["cases_of", "is_mixed", "parts_of"]

#: option of a case -> the argument of VectorSpec.make, and whether it takes a value
_OPTIONS = {
    "--op": ("op", True), "--format": ("fmt", True), "--result-format": ("out_fmt", True),
    "--rounding": ("rounding", True), "--overflow": ("overflow", True), "--tininess": ("tininess", True),
    "--nan": ("nan", True), "--minmax": ("minmax", True), "--profile": ("profile", True),
    "--flush-results": ("flush_results", True), "--flush-inputs": ("flush_inputs", True),
    "--stochastic-bits": ("stochastic_bits", True), "--exponents": ("exponents", True), "--only": ("only", True),
    "--exact": ("exact", True), "--silent": ("exact", False), "--notexact": ("exact", False),
    "--no-nan": ("no_nan", True), "--no-inf": ("no_inf", True), "--no-subnormal": ("no_subnormal", True),
    "--lanes": ("lanes", True), "--word-bits": ("word_bits", True), "--scalar-b": ("scalar_b", True),
    "--mask": ("mask", True),
}  # fmt: skip
_OF_LANES = ("lanes", "word_bits", "scalar_b", "mask")
_SWITCHES = (
    "--scalar-b",
    "--flush-inputs",
    "--exact",
    "--silent",
    "--notexact",
    "--no-nan",
    "--no-inf",
    "--no-subnormal",
)
_OF_SPACE = ("no_nan", "no_inf", "no_subnormal", "exponents", "only")
_WITH_RESULT = ("convert", "from_integer", "to_integer")


def is_mixed(op: str | None, fmt: str | None, rounding: str | None) -> bool:
    """Whether options state several operations, modes or formats.

    >>> is_mixed("add,multiply", "e5m2", None), is_mixed("multiply", "e5m2,e4m3fn", None)
    (True, False)
    """
    return "," in (op or "") or "," in (rounding or "") or "+" in (fmt or "")


def cases_of(cases, op, fmt, rounding, formats, make, result_format, options: dict) -> list:
    """The specs that options state, or each --case: every combination of its operations, formats and modes.

    Parameters
    ----------
    cases : list of str
    op, fmt, rounding, result_format : str or None
    formats : callable
        Makes the formats of their text.
    make : callable
        Makes the spec of the arguments of VectorSpec.make and of the space's parts.
    options : dict
        What else holds for all combinations.

    Raises
    ------
    ValueError
        If both are stated, an option is unknown, or a spec is unusable.
    """
    if cases:
        stated = {"op": op, "format": fmt, "rounding": rounding, "result-format": result_format} | options
        for name in (name for name, value in stated.items() if value not in (None, False)):
            raise ValueError(f"--{name.replace('_', '-')} is stated in each --case, or without --case for all")
        return [spec for text in cases for spec in _combinations(formats, make, **_case(text))]
    if op is None:
        raise ValueError("state --op; for example: softnum vectors generate --op add,multiply --format e5m2+binary16")
    return _combinations(formats, make, op, fmt, rounding, result_format, **options)


def _combinations(formats, make, op, fmt=None, rounding=None, out_fmt=None, **options) -> list:
    out, names = [], op.split(",")
    for name, fmts, mode in product(names, (fmt or "").split("+"), (rounding or "").split(",")):
        name = name.strip()
        given = formats(fmts) if fmts else None
        several = isinstance(given, tuple) and len(set(map(str, given))) > 1
        wanted = len(names) == 1 or name in _WITH_RESULT or several or function_of(name) is not None
        out.append(make(op=name, fmt=given, rounding=mode.strip() or None, out_fmt=out_fmt if wanted else None,
                        **options))  # fmt: skip
    return out


def _case(text: str) -> dict:
    words, out = shlex.split(text), {}
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name not in _OPTIONS:
            known = " ".join(_OPTIONS)
            raise ValueError(f"--case {text!r}: unknown option {name!r} (known: {known})")
        key, told = _OPTIONS[name]
        if name not in _SWITCHES:
            if not equals and not words:
                raise ValueError(f"--case {text!r}: {name} takes a value")
            told = value if equals else words.pop(0)
        if key in out:
            raise ValueError(f"--case {text!r}: {name} is stated twice; state it once")
        out[key] = told
    if "op" not in out:
        raise ValueError(f"--case {text!r}: state --op")
    return out


def parts_of(cases, op, options: VectorOptions, foreign: dict, lanes: dict, nan_box: bool) -> list:
    """The specs of mixed vectors that options state; ValueError for options in foreign, which are not of them.

    lanes: those of lanes that are stated for all, which are of the names of `_OF_LANES`.
    """
    from softnum.vectors import PackedSpec, Space, VectorSpec

    for name in foreign:
        raise ValueError(
            f"--{name.replace('_', '-')} is not supported for mixed files (several operations, modes or formats); "
            "leave it out"
        )

    def make(out_fmt=None, stochastic_bits=None, **given):
        if stochastic_bits is not None:
            given["stochastic_bits"] = _number("stochastic-bits", stochastic_bits)
        parts = {key: given.pop(key) for key in _OF_SPACE if key in given}
        of_lanes = {key: given.pop(key) for key in _OF_LANES if key in given}
        packed = _lanes_of(of_lanes, nan_box)
        spec = VectorSpec.make(out_fmt=format_of(out_fmt), space=Space.make(**parts), **given)
        return spec if packed is None else PackedSpec.make(spec, packed)

    of_each = options.of_each() | lanes
    return cases_of(cases, op, options.fmt, options.rounding, formats_of, make, options.result_format, of_each)


def _number(name: str, text) -> int | None:
    if text is None or isinstance(text, int):
        return text
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(f"--{name} is a number, not {text!r}")
    return int(text)


def _lanes_of(stated: dict, nan_box: bool):
    """The lanes of a case; None: it has none."""
    count, word = (_number(name.replace("_", "-"), stated.get(name)) for name in ("lanes", "word_bits"))
    return lanes_of(count, word, bool(stated.get("scalar_b")), None, nan_box and count is not None, stated.get("mask"))
