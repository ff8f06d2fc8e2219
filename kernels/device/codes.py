"""Operations on codes in CUDA arrays: those of softnum.ops and softnum.elementary, one kernel each.

By a table of all results, made on the host, where there is a short one: of one operand of up to 16 bits, of two of up
to 8, in a deterministic mode. Else by the definition, csrc/softnum/operations.h and functions.h.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum import _core
from softnum.array import Array
from softnum.backend import NoKernel
from softnum.c_text import environment_text, format_text
from softnum.custom import CustomFormat
from softnum.custom.arithmetic import Operator, as_values, table_of
from softnum.custom.lookup import into_custom
from softnum.environment import environment
from softnum.formats import FixedFormat
from softnum.kernels.device import _cuda
from softnum.kernels.device.computations import FROM_KEY, NO_WORDS, Computation
from softnum.kernels.device.elementwise import copy, example, run, words_of
from softnum.lanes import run_ufunc
from softnum.modes import rounding_name
from softnum.names import format
from softnum.ops import described
from softnum.ufuncs import cannot_be_invalid, raise_no_code, raise_undecided
from softnum.values import invalid_code

__all__ = ["examples", "kernels_of", "operation_computation", "put", "table_computation", *_core.OPERATIONS]

# what is met
_NO_CODE, _UNDECIDED, _NO_OPERAND = 1, 2, 4  # and from _NO_OPERAND on, a bit for each operand

_TABLE_BITS = {1: 16, 2: 8}
_ORDER = ("compare", "compare_signaling")
_VIEWS = {"compare": np.int8, "compare_signaling": np.int8, "total_order": np.bool_}
_INTEGER = FixedFormat(32, 0)  # of scalb's n


def _checks(formats, kinds, known) -> str:
    """Statements that note codes beyond their format's bits."""
    return "".join(
        f"if (in{i} >> {f.bits - 1} >> 1) met |= {_NO_OPERAND << i};\n"
        for i, (f, kind, sure) in enumerate(zip(formats, kinds, known, strict=True))
        if not sure and f.bits < int(kind[4:])
    )


def _output(name: str, out_fmt) -> str:
    return "uint8" if name in (*_ORDER, "total_order", "classify") else out_fmt.storage_dtype.name


@lru_cache(maxsize=512)
def operation_computation(
    name: str, formats, out_fmt, env: tuple[int, ...], kinds, known, with_flags: bool, raises: bool
) -> Computation:
    """An operation by its definition.

    kinds: the operands' element types; known: which of them are sure to be codes; raises: whether results without a
    code are reported.
    """
    constants = "".join(format_text(f"_f{i}", f) for i, f in enumerate(formats))
    constants += format_text("_out", out_fmt) + environment_text("_env", env)
    count, elementary = len(formats), name in _core.ELEMENTARY
    second, third = "in1" if count > 1 else "0", "in2" if count > 2 else "0"
    body = _checks(formats, kinds, known)
    if name == "scalb":
        body += _clamped(kinds[1])
        second = "n"
    fields = ", ".join(f"_f{min(i, count - 1)}()" for i in range(3))
    body += f"const sn_format f[3] = {{{fields}}}, o = _out();\nconst sn_env env = _env();\n"
    if elementary:
        body += f"out = sn_elementary(SN_ELEMENTARY_{name}, f, in0, f + 1, {second}, &o, &env, word, &flags);\n"
        body += f"met |= flags & SN_UNDECIDED ? {_UNDECIDED} : 0;\n"
    else:
        body += f"const sn_u64 in[3] = {{in0, {second}, {third}}};\n"
        body += f"out = sn_operate(SN_OP_{name}, f, in, &o, &env, word, &flags);\n"
    if name in _ORDER:
        body += "out -= 1;\n"
    if raises:
        body += f"met |= flags & SN_NO_CODE ? {_NO_CODE} : 0;\n"
    header = "softnum/device.h softnum/operations.h" + (" softnum/functions.h" if elementary else "")
    inputs = tuple(kind if kind.startswith("u") else f"u{kind}" for kind in kinds)
    return Computation(
        inputs, _output(name, out_fmt), body + "flags &= SN_NO_CODE - 1;\n", constants, header, with_flags,
        may_fail="met |=" in body, rolled=True,
    )  # fmt: skip


def _clamped(kind: str) -> str:
    """n: in1, an integer of the type, in 32 bits of two's complement; beyond, every format has over- or underflowed."""
    if kind.startswith("u"):
        return "const sn_u64 n = in1 > 0x7fffffffu ? 0x7fffffffu : in1;\n"
    unused = 64 - int(kind.removeprefix("int"))
    return (
        f"const sn_i64 whole = (sn_i64)(in1 << {unused}) >> {unused};\nconst sn_u64 n = (sn_u32)(whole > 0x7fffffff ? "
        "0x7fffffff : whole < -0x7fffffff - 1 ? -0x7fffffff - 1 : whole);\n"
    )


@lru_cache(maxsize=512)
def table_computation(output: str, formats, kinds, known, with_flags: bool, may_fail: bool) -> Computation:
    """An operation of one or two operands by its tables, as `_tables_on_host` makes them."""
    at = f"(in0 & {(1 << formats[0].bits) - 1}u)"
    if len(formats) > 1:
        at = f"{at} << {formats[1].bits} | (in1 & {(1 << formats[1].bits) - 1}u)"
    checks = _checks(formats, kinds, known)
    body = f"{checks}const sn_u64 at = {at};\nout = table0[at];\n"
    if with_flags or may_fail:
        body += f"flags = table1[at];\nmet |= flags & {_core.NO_CODE} ? {_NO_CODE} : 0;\n"
        body += f"met |= flags & {_core.UNDECIDED} ? {_UNDECIDED} : 0;\nflags &= {_core.NO_CODE - 1};\n"
    tables = (output, "uint8")
    return Computation(kinds, output, body, with_flags=with_flags, may_fail=may_fail or bool(checks), tables=tables)


def _tables_on_host(name: str, formats, out_fmt, env, rounding: str, overflow, instead: int):
    """(results, flags) of all operands, the last of which counts up first; in a custom format, `instead` of a NaN."""
    grid = np.meshgrid(*(np.arange(1 << f.bits).astype(f.storage_dtype) for f in formats), indexing="ij")
    codes = [c.ravel() for c in grid]
    flags = np.zeros(codes[0].shape, np.uint8)
    if isinstance(out_fmt, CustomFormat):
        if name in ("total_order", "classify"):
            return into_custom(name, codes, formats, out_fmt, rounding, overflow, 0, (), {}).astype(np.uint8), flags
        result, lost = table_of(Operator(name, formats, out_fmt, rounding, overflow))
        result = result.ravel().copy()
        if lost is not None:
            result[lost.ravel()], flags[lost.ravel()] = instead, _core.NO_CODE
        return result, flags
    codes, formats = as_values(codes, formats)
    handle = _core.intern_context(name, formats, out_fmt, env)
    width = np.result_type(out_fmt.storage_dtype, *(f.storage_dtype for f in formats))
    result, flags = run_ufunc(
        _core.UFUNCS_FLAGS[name], [c.astype(width) for c in codes], np.uint32(0), handle, name in _core.ELEMENTARY
    )
    result = result.astype(_output(name, out_fmt))
    return result - np.uint8(1) if name in _ORDER else result, flags


@lru_cache(maxsize=64)
def _tables(device: int, *what):
    """(results, flags, whether one has no code or is undecided), on the device, there for every stream."""
    with _core.PlainEnvironment():
        result, flags = _tables_on_host(*what)
    tables = _cuda.to_device(result), _cuda.to_device(flags)
    _cuda.synchronize(_cuda.stream())
    return *tables, bool((flags & (_core.NO_CODE | _core.UNDECIDED)).any())


# ---- the operations --------------------------------------------------------------------------------------------------


def _on_device(x, what: str):
    """Codes on the device; a number beside an Array comes from the host."""
    if not hasattr(x, "__cuda_ndarray__"):
        return _cuda.to_device(np.asarray(x).reshape(1))
    if x.dtype.kind != "u":
        raise TypeError(f"{what} are unsigned integers, got a CUDA array of {x.dtype}")
    return x


def _exponents(n):
    """scalb's n on the device."""
    if not hasattr(n, "__cuda_ndarray__"):
        n = np.asarray(n)
        if n.dtype.kind in "iu":
            n = np.clip(n, -(2**31), 2**31 - 1).astype(np.int32)
            n = _cuda.to_device(n.reshape(n.shape or (1,)))
    if n.dtype.kind not in "iu":
        raise TypeError(f"scalb: n must be integers, got an array of {n.dtype}")
    return n


def _refuse_options(name: str, out_fmt, **options) -> None:
    for option, given in options.items():
        if given:
            raise ValueError(
                f"{name}: {option}= is not defined for {out_fmt}: it has values, but no exceptions; leave it out"
            )


def operate(
    name, operands, fmt=None, *, out_fmt=None, rounding="nearest_even", overflow=None, key=None, random_bits=None,
    stochastic_bits=32, return_flags=False, tininess="after", flush_inputs=False, flush_results=None, nan="canonical",
    invalid="raise", codes_out=True,
):  # fmt: skip
    """The operation `name` on codes in Numba CUDA arrays, or on Arrays of them: as `softnum.ops.apply`, the same codes.

    Raises
    ------
    NoKernel
        For custom formats whose operation has no table.
    """
    exponents = ()
    if name == "scalb":
        *operands, n = operands
        exponents = (_exponents(n),)
    codes, formats, out_fmt, as_array = described(name, operands, fmt, out_fmt, rounding, overflow, stochastic_bits)
    shapes = [np.shape(c) if isinstance(c, np.ndarray) else tuple(c.shape) for c in (*codes, *exponents)]
    shape = np.broadcast_shapes(*shapes)
    given = [*(_on_device(c, f"{name}: codes of operand {i}") for i, c in enumerate(codes)), *exponents]
    kinds, known = tuple(x.dtype.name for x in given), (as_array,) * len(codes) + (True,) * len(exponents)
    instead, env = invalid_code(invalid, out_fmt), None
    custom = [f for f in (*formats, out_fmt) if isinstance(f, CustomFormat)]
    if isinstance(out_fmt, CustomFormat):
        _refuse_options(
            name, out_fmt, return_flags=return_flags, tininess=tininess != "after", flush_inputs=flush_inputs,
            flush_results=flush_results, nan=nan != "canonical",
        )  # fmt: skip
    else:
        env = environment(
            out_fmt, rounding, overflow, stochastic_bits, tininess, flush_inputs, flush_results, nan, instead
        )
    stochastic = rounding_name(rounding).startswith("stochastic")
    words, tables, flagged = words_of(stochastic, key, random_bits, shape), (), bool(return_flags)
    raises = codes_out and isinstance(invalid, str) and not out_fmt.has_nan
    most = 0 if exponents or stochastic else _TABLE_BITS.get(len(formats), 0)
    if all(f.bits <= most for f in formats):
        where = _cuda.device_index()
        *tables, fails = _tables(where, name, formats, out_fmt, env, rounding_name(rounding), overflow, instead)
        computation = table_computation(tables[0].dtype.name, formats, kinds, known, flagged, fails)
    elif custom:
        raise NoKernel(
            f"{name}: no kernel computes with {custom[0]} here (one operand of up to 16 bits has a table, two of up to "
            "8); copy the CUDA arrays to the host first"
        )
    else:
        every, fails = (*formats, *(_INTEGER for _ in exponents)), not cannot_be_invalid(name, formats, out_fmt)
        computation = operation_computation(name, every, out_fmt, env, kinds, known, flagged, raises and fails)
    result, flags, met = run(computation, given, shape, words, tables=tables)
    _raise_for(met, name, formats, out_fmt, raises)
    result = result.view(_VIEWS[name]) if name in _VIEWS else result
    if as_array and codes_out:
        result = Array._of(result, out_fmt)
    return (result, flags) if return_flags else result


def _raise_for(met: int, name: str, formats, out_fmt, raises: bool) -> None:
    for i, fmt in enumerate(formats):
        if met & _NO_OPERAND << i:
            raise ValueError(f"codes of operand {i}: one is no code of {fmt}, which has {fmt.bits} bits")
    if met & _UNDECIDED:
        raise_undecided(out_fmt, name)
    if met & _NO_CODE and raises:
        raise_no_code(out_fmt, name)


def _function(name: str):
    def operation(*operands, fmt=None, **options):
        return operate(name, operands, fmt, **options)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"softnum's {name} of Numba CUDA arrays of codes: see `operate`."
    return operation


globals().update({name: _function(name) for name in _core.OPERATIONS})


def put(target, codes) -> None:
    """Write codes into an array of codes, of a shape that they broadcast to."""
    copy(codes, target)


# ---- for the link check ----------------------------------------------------------------------------------------------


def kernels_of(name, formats, out_fmt=None, *, rounding="nearest_even", return_flags=False):
    """The kernel that an operation of Arrays in some formats launches: (name, kernel, types of its arguments, fast)."""
    formats = tuple(map(format, formats))
    out_fmt = formats[0] if out_fmt is None else format(out_fmt)
    env, kinds = environment(out_fmt, rounding, None, 16), tuple(f.storage_dtype.name for f in formats)
    known, most = (True,) * len(formats), _TABLE_BITS.get(len(formats), 0)
    stochastic = rounding_name(rounding).startswith("stochastic")
    if all(f.bits <= most for f in formats) and not stochastic:
        computation = table_computation(
            _output(name, out_fmt), formats, kinds, known, return_flags, not out_fmt.has_nan
        )
    else:
        computation = operation_computation(
            name, formats, out_fmt, env, kinds, known, return_flags, not out_fmt.has_nan
        )  # fmt: skip
    text = f"{name} of {', '.join(map(str, formats))} in {out_fmt}, {rounding}"
    yield example(text, computation, FROM_KEY if stochastic else NO_WORDS, not computation.rolled)


def examples():
    """Kernels for the link check: by tables, and by the definition."""
    for name, formats, options in (
        ("add", ("binary16", "binary16"), {}),
        ("multiply", ("e5m2", "e5m2"), {"return_flags": True}),
        ("fma", ("bfloat16", "bfloat16", "binary32"), {"out_fmt": "binary32", "rounding": "stochastic"}),
        ("divide", ("q8.8", "q8.8"), {"return_flags": True}),
        ("exp", ("binary16",), {}),
        ("reciprocal", ("binary32",), {}),
    ):
        yield from kernels_of(name, formats, **options)
