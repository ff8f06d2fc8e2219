"""One operation on codes and on `Array`: its operands checked, the exact result computed and rounded once.

`softnum.ops` and `softnum.ops.elementary` list the operations. CUDA arrays of codes, and Arrays of them, are computed
on their device, and give the like.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np

from softnum.arrays import lanes
from softnum.arrays.blocks import BlockArray, refuse_elementwise
from softnum.arrays.checks import check_codes
from softnum.arrays.container import Array
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment, random_words, source_key
from softnum.arrays.sources import DEFAULT_SOURCE
from softnum.arrays.ufuncs import call_ufunc, cannot_be_invalid
from softnum.formats.codec import Rounding
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.runtime import _core, gateway

__all__ = ["OPTIONS", "RETURNS", "apply", "arithmetic_of", "as_values", "described", "rounded"]

#: parts of the docstrings of operations
OPTIONS = """
    rounding, overflow, key, random_bits, stochastic_bits, random
        As in `softnum.quantize`; with a key, element i of the C-ordered result takes word i.
    return_flags : bool
        Whether to return (result, flags) with flags a uint8 array of `softnum.Flags`.
    tininess : {"after", "before"}
        Whether tininess, and so UNDERFLOW, is detected after or before rounding (always before in stochastic modes).
    flush_inputs : bool
        Whether subnormal operands read as zero, sign kept.
    flush_results : {None, "before", "after", "subnormal"}
        Whether results that are tiny before rounding (Arm) or after it (x86), or that are subnormal once they are
        rounded, become zero, sign kept, with UNDERFLOW and INEXACT.
    nan : {"canonical", "riscv", "arm_default", "x86", "arm"}
        Which NaN is delivered. The first three are the same rule: the format's canonical NaN. "x86": the first operand
        that is NaN, made quiet, else the canonical one with its sign bit set; fma(inf, 0, quiet NaN) raises no flag.
        "arm": the first signaling NaN, else the first NaN, fma's addend before its factors. A NaN keeps its sign and
        leading fraction bits from one format to another.
    invalid : "raise" or a number
        What to do with a result that is NaN (or, in fixed point, infinite) if the format cannot encode it: raise a
        ValueError, or return this value of the format, with INVALID.
"""
RETURNS = """
    Returns
    -------
    ndarray of codes, or Array if an operand is one; with `return_flags`, a pair

    Raises
    ------
    ValueError
        If formats are missing, or differ and `out_fmt` is not given, an integer is not a code of its format, or the
        result's format cannot encode a result.
"""
# the options that kernels of plain arrays know
_OF_ARRAYS = {"key", "overflow", "rounding", "stochastic_bits"}
_OF_CODES = _OF_ARRAYS | {"out_fmt"}
_MOST_KEPT = 256  # of these kernels, of each operation
_LIMITED = ("sqrt", "sin", "cos", "tan")
_OWN_FORMAT = ("absolute", "copysign", "negate", "next_down", "next_up")
_NAMES = {1: ("a",), 2: ("a", "b"), 3: ("a", "b", "c")}


def _operands(name, operands, fmt):
    """(codes, formats, whether an operand is an Array)"""
    if any(isinstance(x, BlockArray) for x in operands):
        refuse_elementwise(name)
    arrays = [isinstance(x, Array) for x in operands]
    if any(arrays):
        if not all(arrays):
            raise TypeError(
                f"{name}: Arrays and plain encodings cannot be mixed; convert all operands with softnum.array"
            )
        if fmt is not None:
            raise ValueError(f"{name}: the operands are Arrays and carry their format; leave fmt= out")
        formats = tuple(x.format for x in operands)
        codes = [x.codes for x in operands]
    else:
        if fmt is None:
            raise ValueError(
                f"{name}: plain encodings do not carry a format; give fmt=, or convert the operands with softnum.array"
            )
        given = fmt if isinstance(fmt, tuple) else (fmt,) * len(operands)
        if len(given) != len(operands):
            raise ValueError(f"{name} has {len(operands)} operands, got {len(given)} formats")
        formats = tuple(format(f) for f in given)
        codes = [
            x if gateway.is_device_array(x) else check_codes(x, f, f"codes of operand {i}")  # there the kernel checks
            for i, (x, f) in enumerate(zip(operands, formats, strict=True))
        ]
    return codes, formats, any(arrays)


def as_values(codes, formats) -> tuple[list, tuple]:
    """(codes, formats) by which the core knows the same values: those of custom formats in binary64."""
    taken = [f.codec.for_core(c, f) for c, f in zip(codes, formats, strict=True)]
    return taken, tuple(f.codec.core_format(f) for f in formats)


def arithmetic_of(formats, out_fmt):
    """What computes an operation: the arithmetic of its result, or of an operand that leads, or is not exact."""
    return next((f for f in formats if f.leads or not f.values_are_exact), out_fmt).arithmetic


def _results(name: str, formats, options: dict, *codes) -> np.ndarray:
    return apply(name, codes, formats, **options)


class CoreArithmetic:
    """Operations that the core rounds, into floats and fixed point (`softnum.formats.codec.Arithmetic`)."""

    carriers = ("float32", "float64", "codes")

    def check_reach(self, name: str, fmt, out_fmt, rounding, overflow, stochastic_bits) -> None:
        """ValueError for roots that cannot be wrapped exactly and angles that cannot be reduced."""
        if name == "sqrt" and overflow == "wrap" and "wrap" in out_fmt.overflow_rules:
            stochastic = rounding_name(rounding).startswith("stochastic")
            self._check_root_bits(fmt, out_fmt, stochastic_bits + 1 if stochastic else 2)
        elif name in ("sin", "cos", "tan") and fmt.span[1] > _core.TRIGONOMETRIC_EMAX + 1:
            raise ValueError(
                f"{name}: values of {fmt} reach 2**{fmt.emax}, and angles are reduced up to "
                f"2**{_core.TRIGONOMETRIC_EMAX}; convert them to a format with a smaller range"
            )

    def check_modes(self, fmt, rounding, overflow) -> None:
        """ValueError unless results are rounded to the format in this mode and under this rule."""
        environment(fmt, rounding, overflow, 32)

    def users_own(self, name: str, formats, out_fmt) -> bool:
        """Whether an operation is a function of the user's on codes."""
        return False

    def classify(self, codes, fmt) -> np.ndarray:
        """The classes of IEEE 754-2019 5.7.2 of codes, int64."""
        return apply("classify", (codes,), fmt, codes_out=False).astype(np.int64)

    @staticmethod
    def _check_root_bits(fmt, out_fmt, deciding: int) -> None:
        """The core keeps 126 bits of a root: to wrap it, all down to the deciding ones must be among them."""
        whole = fmt.root_bits
        if whole is not None and whole + out_fmt.fraction_bits + deciding > 126:
            raise ValueError(
                f"sqrt: roots of {fmt} have up to {whole + out_fmt.fraction_bits} bits in {out_fmt}, more than the "
                f"{126 - deciding} that can be wrapped exactly; take overflow='saturate', or convert to a narrower "
                "format first"
            )

    def prepared(self, name: str, formats, out_fmt, rounding, overflow):
        """A function of codes of these formats that returns the results' codes."""
        return partial(_results, name, formats, {"out_fmt": out_fmt, "rounding": rounding, "overflow": overflow})

    def plain(self, name: str, formats, out_fmt, rounding, overflow, stochastic_bits) -> _core.PlainOperation | None:
        """What computes plain arrays at once, where operands have codes of one width and results no wider ones."""
        width, evaluated = formats[0].storage_dtype.itemsize, name in _core.ELEMENTARY
        if (
            any(f.storage_dtype.itemsize != width or f.codec.core_format(f) is not f for f in formats)
            or out_fmt.storage_dtype.itemsize > width
        ):
            return None
        longest = lanes.LEAST_TABLE
        if rounding_name(rounding).startswith("stochastic"):  # which has no table
            longest = lanes.LEAST_THREADED_EVALUATED if evaluated else lanes.LEAST_THREADED
        with_flags = evaluated or not (out_fmt.has_nan or cannot_be_invalid(name, formats, out_fmt))
        env = environment(out_fmt, rounding, overflow, stochastic_bits)
        return _core.PlainOperation(name, formats, out_fmt, env, with_flags, longest - 1)

    def apply(self, name, codes, formats, out_fmt, given: Rounding, flush_inputs, nan, extra, codes_out, compute):
        """(codes, flags or None)"""
        codes, formats = as_values(codes, formats)
        if extra:
            codes, formats = [*codes, *(c for c, _ in extra)], (*formats, *(f for _, f in extra))
        env = environment(
            out_fmt, given.rounding, given.overflow, given.stochastic_bits, given.tininess, flush_inputs,
            given.flush_results, nan, invalid_code(given.invalid, out_fmt),
        )  # fmt: skip
        stochastic = rounding_name(given.rounding).startswith("stochastic")
        shape = np.broadcast_shapes(*(c.shape for c in codes)) if stochastic else ()
        words = random_words(stochastic, given.key, given.random_bits, shape)
        if compute is not None:
            return compute(name, codes, formats, out_fmt, env, words, given.invalid)
        invalid = given.invalid if codes_out else 0
        return call_ufunc(name, codes, formats, out_fmt, env, words, with_flags=given.return_flags, invalid=invalid)


def described(name, operands, fmt, out_fmt, rounding, overflow, stochastic_bits):
    """(codes of the operands, their formats, the result's, whether an operand is an Array), checked."""
    codes, formats, as_array = _operands(name, operands, fmt)
    if name in _OWN_FORMAT:
        if out_fmt is not None and format(out_fmt) != formats[0]:
            raise ValueError(f"{name}: the result is in the format of a, {formats[0]}, not {out_fmt}; convert it")
        out_fmt = formats[0]
    if out_fmt is None:
        if any(f != formats[0] for f in formats):
            names = ", ".join(str(f) for f in formats)
            raise ValueError(f"{name}: the operands' formats differ ({names}); give the result's format as out_fmt=")
        out_fmt = formats[0]
    out_fmt = format(out_fmt)
    if name in _LIMITED:
        arithmetic_of(formats, out_fmt).check_reach(name, formats[0], out_fmt, rounding, overflow, stochastic_bits)
    return codes, formats, out_fmt, as_array


def apply(
    name, operands, fmt, *, out_fmt=None, rounding="nearest_even", overflow=None, key=None, random_bits=None,
    stochastic_bits=32, random=DEFAULT_SOURCE, return_flags=False, tininess="after", flush_inputs=False,
    flush_results=None, nan="canonical", invalid="raise", extra=(), codes_out=True, compute=None,
):  # fmt: skip
    """The ufunc `name` over operands in their formats. extra: further (codes, format) that are no users' operands.

    compute: what is called instead of the ufunc, and returned: with the name, the codes, their formats, the result's,
    the environment, the random words and `invalid`.
    """
    if random is not DEFAULT_SOURCE:
        key = source_key(random, key, random_bits, rounding, stochastic_bits, name)
    if any(map(gateway.is_device_array, operands)):
        if compute is not None:
            gateway.refuse_device("probe")
        return gateway.on_device(
            name, *operands, fmt=fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, key=key,
            random_bits=random_bits, stochastic_bits=stochastic_bits, return_flags=return_flags, tininess=tininess,
            flush_inputs=flush_inputs, flush_results=flush_results, nan=nan, invalid=invalid, codes_out=codes_out,
        )  # fmt: skip
    given = Rounding(
        rounding, overflow, key, random_bits, stochastic_bits, invalid, return_flags, tininess, flush_results
    )
    codes, formats, out_fmt, as_array = described(name, operands, fmt, out_fmt, rounding, overflow, stochastic_bits)
    told = arithmetic_of(formats, out_fmt).apply(
        name, codes, formats, out_fmt, given, flush_inputs, nan, extra, codes_out, compute
    )  # fmt: skip
    if compute is not None:
        return told
    result, flags = told
    if as_array and codes_out:
        result = Array._of(result, out_fmt)
    return (result, flags) if return_flags else result


def _signature(operands: int) -> inspect.Signature:
    """(a, ..., fmt=None, *, out_fmt=None, ...) with the options of `apply` that are users'."""
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = [inspect.Parameter(name, plain) for name in _NAMES[operands]]
    options = [
        p
        for p in inspect.signature(apply).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in ("extra", "codes_out", "compute")
    ]
    return inspect.Signature([*own, inspect.Parameter("fmt", plain, default=None), *options])


_SIGNATURES = {operands: _signature(operands) for operands in _NAMES}


def _asked(args: tuple, options: dict, operands: int) -> tuple | None:
    """What the kernel of plain arrays is found by, format(s) or names and options; None of calls that ask for more."""
    of_arrays = bool(args) and type(args[-1]) is Array
    if (
        len(args) != operands + (not of_arrays)
        or args[-1] is None
        or not options.keys() <= (_OF_ARRAYS if of_arrays else _OF_CODES)
        or type(options.get("stochastic_bits", 32)) is not int
    ):
        return None
    given = args[-1].format if of_arrays else args[-1]
    return (given, *[option for option in options.items() if option[0] != "key"])


def rounded(name: str, operands: int, text: str, source: str, example: str, standard: str = "IEEE 754-2019 ") -> Any:
    """An operation whose result is rounded to out_fmt."""
    names = _NAMES[operands]
    several = "" if operands == 1 else ", or a tuple with one for each"

    known: dict[tuple, _core.PlainOperation] = {}

    def operation(*args, **options):
        asked = _asked(args, options, operands)
        try:
            plain = known.get(asked)
        except TypeError:  # no format
            asked = plain = None
        if plain is not None:
            fmt = args[-1].format if type(args[-1]) is Array else None
            key = options.get("key")
            codes = plain(args, key) if fmt is None else plain.of_arrays(args, Array, key)
            if codes is not None:
                return codes if fmt is None else Array._of(codes, fmt)
        result = general(*args, **options)
        if asked is not None and plain is None:
            keep(asked, **dict(asked[1:]))
        return result

    def keep(asked: tuple, out_fmt=None, rounding="nearest_even", overflow=None, stochastic_bits=32) -> None:
        formats = asked[0] if isinstance(asked[0], tuple) else (asked[0],) * operands
        formats = tuple(map(format, formats))
        out_fmt = formats[0] if out_fmt is None else format(out_fmt)
        plain = out_fmt.arithmetic.plain(name, formats, out_fmt, rounding, overflow, stochastic_bits)
        if len(known) >= _MOST_KEPT:
            known.clear()
        if plain is not None:
            known[asked] = plain

    def general(*args, **options):
        fmt = options.pop("fmt", None)
        if len(args) == operands + 1 and fmt is None:
            *args, fmt = args
        if len(args) != operands:
            raise TypeError(f"{name}({', '.join(names)}, fmt=None, *, ...) takes {operands} operands, got {len(args)}")
        return apply(name, args, fmt, **options)

    operation.__name__ = operation.__qualname__ = name
    operation.__signature__ = _SIGNATURES[operands]
    operation.__doc__ = f"""{text}

    Parameters
    ----------
    {", ".join(names)} : Array, or array_like of codes (then with `fmt`)
        Broadcast against each other.
    fmt : format or str{several}
        The operands' format(s), if they are plain encodings.
    out_fmt : format or str, optional
        The result's format; required where the operands' formats differ.{OPTIONS}{RETURNS}
    Examples
    --------
    >>> import softnum as sn
    {example}

    Source: {standard}{source}.
    """
    return operation


FloatFormat.arithmetic = FixedFormat.arithmetic = CoreArithmetic()
