"""Arithmetic on values rather than codes: operands and results are carriers, and one kernel does what would be four.

An operation's operands are rounded to their formats (which changes no value of them), its exact result is rounded once
to another. Four ways, the fastest first:

- by the machine's own operation, where all formats are the carrier's and the environment is the default one;
- of binary32 carriers, a sum, product or fused multiply-add in binary64 rounded to odd, whose pattern is rounded to the
  result's format (device/patterns.h). A product of two is exact there, and rounding to odd keeps what decides the
  second rounding if the format's precision p and the random bits r are few: p + max(r, 2) <= 52 (S. Boldo and
  G. Melquiond, "Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd", 2008);
- of binary64 carriers, their pattern rounded to another format: what quantize does, to a narrower carrier at once;
- by the definition.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.c_text import environment_text, format_text
from softnum.formats.facts import facts, fits
from softnum.formats.modes import ROUNDING_MODES, STOCHASTIC_MODES, rounding_name
from softnum.formats.names import format
from softnum.kernels.device.elementwise import totals
from softnum.kernels.device.elementwise.computations import (
    CARRIERS,
    FROM_KEY,
    NO_WORDS,
    Computation,
    quantize_computation,
)
from softnum.kernels.device.elementwise.deferred import can_wait
from softnum.kernels.device.elementwise.deferred import example as chain_example
from softnum.kernels.device.elementwise.launch import Words, example, run, words_of_key
from softnum.kernels.device.elementwise.patterns import pattern_text
from softnum.kernels.device.runtime import _cuda, movement
from softnum.runtime import _core

__all__ = ["OPERATIONS", "deferred", "examples", "operate", "operation_computation", "prepared", "total"]

#: operation -> its operands
OPERATIONS = {"add": 2, "subtract": 2, "multiply": 2, "fma": 3, "divide": 2, "sqrt": 1, "convert": 1}

_NO_OPERAND, _NO_RESULT = 1, 2  # what had no code

#: the machine's: on numbers x, y, z of the carrier
_MACHINE = {
    "float32": {
        "add": "sn_add32(x, y)", "subtract": "sn_subtract32(x, y)", "multiply": "sn_multiply32(x, y)",
        "fma": "sn_fma32(x, y, z)", "divide": "sn_narrow(sn_divide64(sn_widen(x), sn_widen(y)))",
        "sqrt": "sn_narrow(sn_root64(sn_widen(x)))",
    },
    "float64": {
        "add": "sn_add64(x, y)", "subtract": "sn_subtract64(x, y)", "multiply": "sn_multiply64(x, y)",
        "divide": "sn_divide64(x, y)", "sqrt": "sn_root64(x)",
    },
}  # fmt: skip
#: rounded to odd in binary64: on numbers x, y, z of binary32, as doubles
_ODD = {
    "add": "sn_add_odd64(x, y)", "subtract": "sn_add_odd64(x, -y)", "multiply": "sn_multiply64(x, y)",
    "fma": "sn_add_odd64(sn_multiply64(x, y), z)",
}  # fmt: skip


@lru_cache(maxsize=512)
def operation_computation(operation: str, formats: tuple, out_fmt, env: tuple[int, ...], carrier: str, to: str):
    """The computation of an operation on carriers, to the carrier `to`."""
    for found in (_by_machine, _by_rounding_to_odd, _by_pattern):
        computation = found(operation, formats, out_fmt, env, carrier, to)
        if computation is not None:
            return computation
    return _by_definition(operation, formats, out_fmt, env, carrier, to)


def _by_machine(operation, formats, out_fmt, env, carrier, to) -> Computation | None:
    """Quotients and roots of binary32 are rounded twice, which changes nothing: binary64 has 53 >= 2 * 24 + 2 bits."""
    name, kind, bits = CARRIERS[carrier]
    own = format(name)
    plain = environment(own, "nearest_even", None, 32, invalid_code=env[-1])
    if (
        to != carrier
        or env != plain
        or any(f != own for f in (*formats, out_fmt))
        or operation not in _MACHINE[carrier]
    ):
        return None
    body = "".join(
        f"const {'float' if bits == '32' else 'double'} {x} = sn_float{bits}((sn_u{bits})in{i});\n"
        for i, x in zip(range(len(formats)), "xyz", strict=False)
    )
    nan = _core.format_facts(own)["nan_code"]
    body += f"const sn_u{bits} bits = sn_bits{bits}({_MACHINE[carrier][operation]});\n"
    sign, infinity = (1 << 31, 0x7F800000) if bits == "32" else (1 << 63, 0x7FF0000000000000)
    body += f"out = (bits & {sign - 1:#x}u) > {infinity:#x}u ? {nan:#x}u : bits;\n"
    return Computation((kind,) * len(formats), kind, body, "", "softnum/word/machine.h")


def _by_rounding_to_odd(operation, formats, out_fmt, env, carrier, to) -> Computation | None:
    """Not toward -infinity, where a sum of x and -x is -0."""
    mode, random = env[0], env[3]
    stochastic = mode in STOCHASTIC_MODES
    if carrier != "float32" or operation not in _ODD or mode == ROUNDING_MODES["down"]:
        return None
    if facts(out_fmt).precision + max(random if stochastic else 0, 2) > 52:
        return None
    texts, body = [pattern_text("_result", out_fmt, env, "float64")], ""
    for i, (fmt, x) in enumerate(zip(formats, "xyz", strict=False)):
        bits = f"(sn_u32)in{i}"
        if fmt != format("binary32"):
            texts.append(pattern_text(f"_operand{i}", fmt, _plain(fmt), "float32"))
            body += f"const sn_pattern p{i} = _operand{i}();\n"
            if not fmt.has_nan:
                body += f"if (sn_no_result32(&p{i}, {bits})) met |= {_NO_OPERAND};\n"
            bits = f"sn_round_pattern32(&p{i}, {bits}, 0)"
        body += f"const double {x} = sn_widen(sn_float32({bits}));\n"
    if None in texts:
        return None
    body += f"const sn_pattern p = _result();\nconst sn_u64 odd = sn_bits64({_ODD[operation]});\n"
    if not out_fmt.has_nan:
        body += f"if (sn_no_result64(&p, odd)) met |= {_NO_RESULT};\n"
    body += "const sn_u64 rounded = sn_round_pattern64(&p, odd, word);\n"
    body += "out = rounded;\n" if to == "float64" else _NARROWED
    kind, may_fail = CARRIERS[to][1], not all(f.has_nan for f in (*formats, out_fmt))
    return Computation(
        ("uint32",) * len(formats), kind, body, "".join(texts), "softnum/device/patterns.h", may_fail=may_fail
    )


def _by_pattern(operation, formats, out_fmt, env, carrier, to) -> Computation | None:
    """Values of binary64, as any number of that carrier is, rounded once."""
    text = pattern_text("_result", out_fmt, env, carrier)
    if operation != "convert" or carrier != "float64" or formats[0] != format("binary64") or text is None:
        return None
    body = "const sn_pattern p = _result();\n"
    if not out_fmt.has_nan:
        body += f"if (sn_no_result64(&p, in0)) met |= {_NO_RESULT};\n"
    body += "const sn_u64 rounded = sn_round_pattern64(&p, in0, word);\n"
    body += "out = rounded;\n" if to == "float64" else _NARROWED
    kind, may_fail = CARRIERS[to][1], not out_fmt.has_nan
    return Computation(("uint64",), kind, body, text, "softnum/device/patterns.h", may_fail=may_fail)


#: a binary64 pattern of a value of binary32, its NaN the canonical one, as a pattern of binary32
_NARROWED = """const sn_u32 narrow = sn_bits32(sn_narrow(sn_float64(rounded)));
out = (narrow & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : narrow;
"""


def _plain(fmt) -> tuple[int, ...]:
    return environment(fmt, "nearest_even", None, 32, invalid_code=invalid_code("raise", fmt))


def _by_definition(operation, formats, out_fmt, env, carrier, to) -> Computation:
    constants = format_text("_carrier", format(CARRIERS[carrier][0])) + format_text("_to", format(CARRIERS[to][0]))
    constants += format_text("_result", out_fmt) + environment_text("_env", env)
    body = "const sn_format carrier = _carrier(), to = _to(), r = _result();\nconst sn_env env = _env();\n"
    codes = []
    for i, fmt in enumerate(formats):
        constants += format_text(f"_format{i}", fmt) + environment_text(f"_env{i}", _plain(fmt))
        body += f"const sn_format f{i} = _format{i}();\nconst sn_env e{i} = _env{i}();\n"
        body += f"const sn_u64 c{i} = sn_convert(&carrier, in{i}, &f{i}, &e{i}, 0, &flags);\n"
        codes.append(f"&f{i}, c{i}")
    body += f"if (flags & SN_NO_CODE) met |= {_NO_OPERAND};\nflags = 0;\nsn_u32 lost = 0;\n"
    body += f"const sn_u64 code = sn_{operation}({', '.join(codes)}, &r, &env, word, &flags);\n"
    body += f"if (flags & SN_NO_CODE) met |= {_NO_RESULT};\nout = sn_carrier_of(&r, code, &to, &lost);\n(void)lost;\n"
    kinds = (CARRIERS[carrier][1],) * len(formats)
    may_fail = not all(f.has_nan for f in (*formats, out_fmt))
    return Computation(
        kinds, CARRIERS[to][1], body, constants, "softnum/device/device.h", may_fail=may_fail, rolled=True
    )


@lru_cache(maxsize=1024, typed=True)
def _planned(operation: str, formats, out_fmt, rounding, overflow, stochastic_bits, carrier, to) -> Computation:
    """The computation of `operate` on carriers of a type, after its checks."""
    for fmt, dtype in (*((f, carrier) for f in formats), (out_fmt, to)):
        if not fits(fmt, dtype):
            raise ValueError(f"{operation}: {dtype} does not hold the values of {fmt}; use float64, or codes")
    env = environment(out_fmt, rounding, overflow, stochastic_bits, invalid_code=invalid_code("raise", out_fmt))
    return operation_computation(operation, formats, out_fmt, env, carrier.name, to.name)


def prepared(
    operation: str, formats, out_fmt, carrier, *, rounding="nearest_even", overflow=None, key=None, stochastic_bits=32,
    to=None,
) -> tuple[Computation, Words]:  # fmt: skip
    """What `operate` computes of an element of a carrier, and its random words; parameters and errors as there."""
    carrier, to = np.dtype(carrier), np.dtype(carrier if to is None else to)
    computation = _planned(operation, tuple(formats), out_fmt, rounding, overflow, stochastic_bits, carrier, to)
    return computation, words_of_key(rounding_name(rounding).startswith("stochastic"), key)


def operate(
    operation: str, operands, formats, out_fmt, *, rounding="nearest_even", overflow=None, key=None, stochastic_bits=32,
    to=None,
):  # fmt: skip
    """An operation on values of formats, exact and then rounded once, on the device.

    Parameters
    ----------
    operation : str
        One of `OPERATIONS`.
    operands : sequence of Numba CUDA arrays of float32, or of float64
        Broadcast against each other.
    formats : sequence of Format
        Of the operands, which the carrier holds; no value tables.
    out_fmt : Format
        Of the result; no value table.
    rounding, overflow, key, stochastic_bits
        As in `softnum.add`.
    to : numpy dtype, optional
        The result's carrier, which holds the values of out_fmt. Default: the operands'.

    Returns
    -------
    Numba CUDA array

    Raises
    ------
    ValueError
        If an operand or a result has no code in its format, or a carrier lacks values of a format.
    """
    carrier = operands[0].dtype
    to = np.dtype(carrier if to is None else to)
    computation, words = prepared(
        operation, formats, out_fmt, carrier, to=to, rounding=rounding, overflow=overflow, key=key,
        stochastic_bits=stochastic_bits,
    )  # fmt: skip
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in operands))
    result, _, met = run(computation, operands, shape, words)
    _check(met, operation, formats, out_fmt)
    return _cuda.viewed(result, to)


def deferred(
    operation: str, operands, formats, out_fmt, *, rounding="nearest_even", overflow=None, key=None,
    stochastic_bits=32, to=None,
):  # fmt: skip
    """`operate` of `DeviceArray`s and numbers of their carrier (NumPy scalars): a `DeviceArray`, computed when it is
    read where that cannot fail."""
    carrier = next(x.dtype for x in operands if isinstance(x, movement.DeviceArray))
    to, shape = np.dtype(carrier if to is None else to), np.broadcast_shapes(*(np.shape(x) for x in operands))
    options = {"rounding": rounding, "overflow": overflow, "key": key, "stochastic_bits": stochastic_bits, "to": to}
    computation, words = prepared(operation, formats, out_fmt, carrier, **options)
    if can_wait(computation):
        bits = [x if isinstance(x, movement.DeviceArray) else _bits(x) for x in operands]
        return movement.deferred(computation, bits, shape, to, words.key if words.kind == FROM_KEY else None)
    given = [x.numba if isinstance(x, movement.DeviceArray) else _cuda.constant(x.reshape(1)) for x in operands]
    return movement.DeviceArray.of(operate(operation, given, formats, out_fmt, **options), shape)


def _bits(x) -> int:
    return int(x.reshape(1).view(f"u{x.itemsize}")[0])


def total(x, fmt, keys, *, rounding="nearest_even", overflow=None, stochastic_bits=32):
    """The sum of carriers that are values of a format along their first axis, as a tree: each level as `operate` adds.

    Parameters
    ----------
    x : DeviceArray (n, ...)
    fmt : Format
        Of the addends and the sums; no value table.
    keys : sequence
        key of `operate` for each of the ceil(log2(n)) levels.
    rounding, overflow, stochastic_bits
        As of `operate`.

    Returns
    -------
    DeviceArray (1, ...)

    Raises
    ------
    ValueError
        As `operate`.
    """
    options = {"rounding": rounding, "overflow": overflow, "stochastic_bits": stochastic_bits}
    made = [prepared("add", (fmt, fmt), fmt, x.dtype, key=key, **options) for key in keys]
    if not made:
        return x
    result, met = totals.total(x, made[0][0], [words for _, words in made])
    _check(met, "add", (fmt, fmt), fmt)
    return result


def _check(met: int, operation: str, formats, out_fmt) -> None:
    if met & _NO_OPERAND:
        raise_no_code(next(f for f in formats if not f.has_nan), "encode")
    if met & _NO_RESULT:
        raise_no_code(out_fmt, operation)


def examples():
    """Kernels for the link check: each of the four ways, and an update's chain of three."""
    own, narrow = format("binary32"), format("e6m9")
    for operation, formats, fmt, rounding, fast in (
        ("fma", (own, own, own), own, "nearest_even", True),
        ("add", (narrow, narrow), narrow, "stochastic", True),
        ("convert", (format("binary64"),), narrow, "stochastic", True),
        ("divide", (narrow, narrow), narrow, "nearest_even", False),
    ):
        env = environment(fmt, rounding, None, 12)
        carrier = "float64" if operation == "convert" else "float32"
        computation = operation_computation(operation, formats, fmt, env, carrier, "float32")
        words = FROM_KEY if rounding == "stochastic" else NO_WORDS
        yield example(f"{operation} of {fmt} in carriers, {rounding}", computation, words, fast)
    env = environment(narrow, "stochastic", None, 16)
    update = operation_computation("fma", (own,) * 3, narrow, env, "float32", "float32"), True
    steps = ((*update, (0, 1, 2)), (*update, (3, 4, 6)), (*update, (5, 7, 1)))
    loads = tuple(("uint32", what) for what in ("number", "whole", "whole", "number", "whole", "number"))
    yield chain_example("update of e6m9 in carriers, stochastic", steps, loads)
    multiply = operation_computation("multiply", (own, own), own, _plain(own), "float32", "float32")
    small = format("e4m3fn")
    cast = quantize_computation(small, environment(small, "nearest_even", "saturate", 32), "float32", False)
    steps = ((multiply, False, (0, 1)), (cast, False, (2,)))
    yield chain_example(f"elements of {small}, scaled", steps, (("uint32", "whole"), ("uint32", "tiled")))
