"""Operations on codes in CUDA arrays: those of softnum.ops and softnum.ops.elementary, one kernel each.

By a table of all results, made on the host, where there is a short one: of one operand of up to 16 bits, of two of up
to 8, in a deterministic mode. Else in the machine's floats, where operations.py proves it, or by the definition.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.arrays.lanes import run_ufunc
from softnum.arrays.ufuncs import cannot_be_invalid, raise_no_code, raise_undecided
from softnum.formats.dispatch import of_format
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat
from softnum.kernels.device.elementwise.computations import FROM_KEY, NO_WORDS, Computation
from softnum.kernels.device.elementwise.launch import example, run, words_of
from softnum.kernels.device.elementwise.operations import (
    NO_CODE,
    NO_OPERAND,
    ORDER,
    UNDECIDED,
    operation_computation,
    output_of,
    short_computation,
    table_computation,
)  # fmt: skip
from softnum.kernels.device.runtime import _cuda
from softnum.ops import arithmetic
from softnum.ops.arithmetic import CLASSES
from softnum.ops.custom import Operator, as_values, table_of
from softnum.ops.custom_tables import into_custom
from softnum.ops.operation import described
from softnum.runtime import _core
from softnum.runtime.gateway import NoKernel, check_exact_values

__all__ = ["examples", "holds", "kernels_of", "operation_computation", "table_computation", *_core.OPERATIONS]

_TABLE_BITS = {1: 16, 2: 8}
_VIEWS = {"compare": np.int8, "compare_signaling": np.int8, "total_order": np.bool_}
_INTEGER = FixedFormat(32, 0)  # of scalb's n
# where a comparison holds, of `compare`'s result as uint8; where a predicate does, of `classify`'s
_COMPARISONS = {
    "less": "in0 == 0xff", "less_equal": "in0 == 0xff || in0 == 0", "equal": "in0 == 0", "not_equal": "in0 != 0",
    "greater": "in0 == 1", "greater_equal": "in0 <= 1",
}  # fmt: skip
_CLASSES = {name: number for number, name in enumerate(CLASSES)}
_IS_INFINITE = " || ".join(f"in0 == {_CLASSES[name]}" for name in ("negativeInfinity", "positiveInfinity"))
_PREDICATES = {
    "isnan": f"in0 <= {_CLASSES['quietNaN']}", "isinf": _IS_INFINITE,
    "isfinite": f"in0 > {_CLASSES['quietNaN']} && !({_IS_INFINITE})",
    "signbit": f"in0 >= {_CLASSES['negativeInfinity']} && in0 <= {_CLASSES['negativeZero']}",
}  # fmt: skip


def _tables_on_host(name: str, formats, out_fmt, env, rounding: str, overflow, instead: int):
    """(results, flags) of all operands, the last of which counts up first; in a custom format, `instead` of a NaN."""
    grid = np.meshgrid(*(np.arange(1 << f.bits).astype(f.storage_dtype) for f in formats), indexing="ij")
    codes = [c.ravel() for c in grid]
    return _results_on_host(out_fmt, name, codes, formats, env, rounding, overflow, instead)


@of_format
def _results_on_host(out_fmt, name: str, codes, formats, env, rounding: str, overflow, instead: int):
    """(results, flags) of an operation."""
    if name in ORDER and all(f.nan_is_least for f in formats):
        return arithmetic.compare(*codes, formats).view(np.uint8), np.zeros(codes[0].shape, np.uint8)
    codes, formats = as_values(codes, formats)
    handle = _core.intern_context(name, formats, out_fmt, env)
    width = np.result_type(out_fmt.storage_dtype, *(f.storage_dtype for f in formats))
    result, flags = run_ufunc(
        _core.UFUNCS_FLAGS[name], [c.astype(width) for c in codes], np.uint32(0), handle, name in _core.ELEMENTARY
    )
    result = result.astype(output_of(name, out_fmt))
    return result - np.uint8(1) if name in ORDER else result, flags


@_results_on_host.custom
def _own_results_on_host(out_fmt, name: str, codes, formats, env, rounding: str, overflow, instead: int):
    flags = np.zeros(codes[0].shape, np.uint8)
    if name in ("total_order", "classify"):
        return into_custom(name, codes, formats, out_fmt, rounding, overflow, 0, (), {}).astype(np.uint8), flags
    result, lost = table_of(Operator(name, formats, out_fmt, rounding, overflow))
    result = result.ravel().copy()
    if lost is not None:
        result[lost.ravel()], flags[lost.ravel()] = instead, _core.NO_CODE
    return result, flags


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
        return _cuda.to_device(x)
    if x.dtype.kind != "u":
        raise TypeError(f"{what} are unsigned integers, got a CUDA array of {x.dtype}")
    return x


def _exponents(n):
    """scalb's n on the device."""
    if not hasattr(n, "__cuda_ndarray__"):
        n = np.asarray(n)
        if n.dtype.kind in "iu":
            n = _cuda.to_device(np.clip(n, -(2**31), 2**31 - 1).astype(np.int32))
    if n.dtype.kind not in "iu":
        raise TypeError(f"scalb: n must be integers, got an array of {n.dtype}")
    return n


@of_format
def _environment(
    out_fmt, name: str, rounding, overflow, stochastic_bits, tininess, flush_inputs, flush_results, nan, instead,
    return_flags,
):  # fmt: skip
    return environment(
        out_fmt, rounding, overflow, stochastic_bits, tininess, flush_inputs, flush_results, nan, instead
    )


@_environment.custom
def _no_environment(
    out_fmt, name: str, rounding, overflow, stochastic_bits, tininess, flush_inputs, flush_results, nan, instead,
    return_flags,
) -> None:  # fmt: skip
    options = {
        "return_flags": return_flags, "tininess": tininess != "after", "flush_inputs": flush_inputs,
        "flush_results": flush_results, "nan": nan != "canonical",
    }  # fmt: skip
    for option, given in options.items():
        if given:
            raise ValueError(
                f"{name}: {option}= is not defined for {out_fmt}, which raises no exceptions; leave it out"
            )


@of_format
def _check_kernel(fmt, name: str) -> None:
    """NoKernel where no kernel computes with codes of a format but by a table."""


@_check_kernel.custom
def _no_kernel(fmt, name: str) -> None:
    raise NoKernel(
        f"{name}: no kernel computes with {fmt} here (tables are limited to one operand of 16 bits or two of 8); copy "
        "the CUDA arrays to the host first"
    )


def operate(
    name, operands, fmt=None, *, out_fmt=None, rounding="nearest_even", overflow=None, key=None, random_bits=None,
    stochastic_bits=32, return_flags=False, tininess="after", flush_inputs=False, flush_results=None, nan="canonical",
    invalid="raise", codes_out=True,
):  # fmt: skip
    """The operation `name` on codes in Numba CUDA arrays, or on Arrays of them: as `operation.apply`, the same codes.

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
    check_exact_values(name, *formats, out_fmt)
    shapes = [np.shape(c) if isinstance(c, np.ndarray) else tuple(c.shape) for c in (*codes, *exponents)]
    shape = np.broadcast_shapes(*shapes)
    given = [*(_on_device(c, f"{name}: codes of operand {i}") for i, c in enumerate(codes)), *exponents]
    kinds, known = tuple(x.dtype.name for x in given), (as_array,) * len(codes) + (True,) * len(exponents)
    instead = invalid_code(invalid, out_fmt)
    env = _environment(
        out_fmt, name, rounding, overflow, stochastic_bits, tininess, flush_inputs, flush_results, nan, instead,
        return_flags,
    )  # fmt: skip
    stochastic = rounding_name(rounding).startswith("stochastic")
    words, tables, flagged = words_of(stochastic, key, random_bits, shape), (), bool(return_flags)
    raises = codes_out and isinstance(invalid, str) and not out_fmt.has_nan
    most = 0 if exponents or stochastic else _TABLE_BITS.get(len(formats), 0)
    if all(f.bits <= most for f in formats):
        where = _cuda.device_index()
        *tables, fails = _tables(where, name, formats, out_fmt, env, rounding_name(rounding), overflow, instead)
        computation = table_computation(tables[0].dtype.name, formats, kinds, known, flagged, fails)
    else:
        for f in (*formats, out_fmt):
            _check_kernel(f, name)
        every, fails = (*formats, *(_INTEGER for _ in exponents)), not cannot_be_invalid(name, formats, out_fmt)
        computation = None if flagged else short_computation(name, every, out_fmt, env, kinds, known)
        if computation is None:
            computation = operation_computation(name, every, out_fmt, env, kinds, known, flagged, raises and fails)
    result, flags, met = run(computation, given, shape, words, tables=tables)
    _raise_for(met, name, formats, out_fmt, raises)
    if name in _VIEWS:
        result = _cuda.viewed(result, _VIEWS[name])
    elif name == "to_integer":
        result = _cuda.viewed(result, f"{'i' if out_fmt.signed else 'u'}{result.dtype.itemsize}")
    if as_array and codes_out:
        result = Array._of(result, out_fmt)
    return (result, flags) if return_flags else result


def _raise_for(met: int, name: str, formats, out_fmt, raises: bool) -> None:
    for i, fmt in enumerate(formats):
        if met & NO_OPERAND << i:
            raise ValueError(f"codes of operand {i}: one is no code of {fmt}, which has {fmt.bits} bits")
    if met & UNDECIDED:
        raise_undecided(out_fmt, name)
    if met & NO_CODE and raises:
        raise_no_code(out_fmt, name)


def _function(name: str):
    def operation(*operands, fmt=None, **options):
        return operate(name, operands, fmt, **options)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"softnum's {name} of Numba CUDA arrays of codes: see `operate`."
    return operation


globals().update({name: _function(name) for name in _core.OPERATIONS})


def holds(name: str, *operands):
    """Where a comparison of Arrays, or a predicate of one, holds: an array of bool, as NumPy's function of the name."""
    a = operands[0]
    if name in _COMPARISONS:
        order = operate("compare", operands, out_fmt="e5m2", codes_out=False)
        given, text = _cuda.viewed(order, np.uint8), _COMPARISONS[name]
    elif name == "signbit" and (text := a.format.sign_text("in0")) is not None:  # of a NaN too, if it has one
        given = a.codes
    else:
        given, text = operate("classify", operands, codes_out=False), _PREDICATES[name]
    return _cuda.viewed(run(_tested(given.dtype.name, text), [given], tuple(given.shape))[0], np.bool_)


def _tested(kind: str, text: str) -> Computation:
    return Computation((kind,), "uint8", f"out = ({text}) ? 1 : 0;")


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
            output_of(name, out_fmt), formats, kinds, known, return_flags, not out_fmt.has_nan
        )
    else:
        computation = None if return_flags else short_computation(name, formats, out_fmt, env, kinds, known)
        computation = computation or operation_computation(
            name, formats, out_fmt, env, kinds, known, return_flags, not out_fmt.has_nan
        )
    text = f"{name} of {', '.join(map(str, formats))} in {out_fmt}, {rounding}"
    yield example(text, computation, FROM_KEY if stochastic else NO_WORDS, not computation.rolled)


def examples():
    """Kernels for the link check: in floats, by tables, and by the definition; where something holds."""
    yield example("isfinite", _tested("uint8", _PREDICATES["isfinite"]), NO_WORDS, True)
    for name, formats, options in (
        ("fma", ("bfloat16", "bfloat16", "binary32"), {"out_fmt": "binary32", "rounding": "stochastic"}),
        ("multiply", ("e5m2", "e5m2"), {"return_flags": True}),
        ("divide", ("binary16", "binary16"), {}),
        ("add", ("q8.8", "q8.8"), {"return_flags": True}),
        ("reciprocal", ("binary32",), {}),
    ):
        yield from kernels_of(name, formats, **options)
    yield *next(kernels_of("gelu", ("binary32",))), True
