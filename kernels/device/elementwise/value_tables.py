"""Formats of up to 16 bits that a table of values defines (`CustomFormat`): carriers to codes, and codes to values."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from softnum.formats.names import format
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = ["decoded", "find_codes", "find_kernel", "gather_kernel", "values_of"]

_WIDTHS = {"float32": ("uint32", 31, 0x7F800000), "float64": ("uint64", 63, 0x7FF0000000000000)}


@lru_cache(maxsize=2)
def _library(carrier: str) -> Library:
    """The entry ``find(bits, keys, count)``: where a carrier's value stands among sorted keys (`_keys`), or -1."""
    kind, sign, infinity = _WIDTHS[carrier]
    c = {"uint32": "sn_u32", "uint64": "sn_u64"}[kind]
    body = f"""
const {c} sign = ({c})1 << {sign};
const {c} key = (bits & (sign - 1)) > {infinity:#x}u ? ~({c})0 : bits & sign ? ~bits : bits | sign;
sn_i64 low = 0, high = count;
while (low < high) {{
    const sn_i64 middle = (low + high) >> 1;
    if (keys[middle] < key)
        low = middle + 1;
    else
        high = middle;
}}
return low < count && keys[low] == key ? low : -1;
"""
    return Library(
        "", (Entry("find", "int64", ((kind, "bits"), (f"{kind}*", "keys"), ("int64", "count")), body),),
        "softnum/word/base.h",
    )  # fmt: skip


@lru_cache(maxsize=2)
def find_kernel(carrier: str):
    """The kernel ``(x, keys, codes_of, codes, first_bad)``: codes of carriers' bits; the least index of one without."""
    find = _cuda.bind(_library(carrier)).find

    @cuda.jit
    def kernel(x, keys, codes_of, codes, first_bad):
        i = cuda.grid(1)
        if i < x.shape[0]:
            at = find(x[i], ffi.from_buffer(keys), keys.shape[0])
            if at < 0:
                cuda.atomic.min(first_bad, 0, i)
            else:
                codes[i] = codes_of[at]

    return kernel


@lru_cache(maxsize=1)
def gather_kernel():
    """The kernel ``(codes, values, out)``: out[i] = values[codes[i]]."""

    @cuda.jit
    def kernel(codes, values, out):
        i = cuda.grid(1)
        if i < codes.shape[0]:
            out[i] = values[codes[i]]

    return kernel


def _keys(fmt, carrier: str) -> tuple[np.ndarray, np.ndarray]:
    """(the values that a carrier holds as unsigned integers in the order of the values, -0 before +0 and NaN last;
    their codes)"""
    dtype = np.dtype(carrier)
    kind, sign, _ = _WIDTHS[carrier]
    sign = np.uint64(1) << np.uint64(sign)
    values, codes = fmt._table._every
    values, codes = values.tolist(), codes.tolist()
    if 0.0 in values:
        values.append(-0.0)
        codes.append(codes[values.index(0.0)] if fmt._table.minus_zero is None else fmt._table.minus_zero)
    with np.errstate(over="ignore", under="ignore"):
        held = np.array(values).astype(dtype)
    exact = held == np.array(values)
    bits = held.view(kind).astype(np.uint64)
    keys = np.where(bits & sign, ~bits & (sign | (sign - np.uint64(1))), bits | sign).astype(kind)[exact]
    codes = np.array(codes)[exact]
    if fmt._table.nan_code is not None:
        keys, codes = np.append(keys, ~keys.dtype.type(0)), np.append(codes, fmt._table.nan_code)
    order = np.argsort(keys)
    return keys[order], codes[order].astype(fmt.storage_dtype)


@_cuda.kept
def _keys_on_device(fmt, carrier: str):
    return tuple(_cuda.to_device(x) for x in _keys(fmt, carrier))


def find_codes(fmt, x, codes, first_bad, caller: str) -> None:
    """codes[i] becomes the code of the carrier x[i]; first_bad[0] the least index of one that is no value of fmt.

    Raises TypeError if the format is wider than 16 bits.
    """
    if fmt._table is None:
        raise TypeError(
            f"{caller}: kernels take custom formats of up to 16 bits, by a table of their values, and {fmt} has "
            f"{fmt.bits}; copy the CUDA arrays to the host first"
        )
    keys, codes_of = _keys_on_device(fmt, x.dtype.name)
    blocks = -(-x.shape[0] // _cuda.THREADS)
    _cuda.launch(find_kernel(x.dtype.name), blocks, _cuda.THREADS, _cuda.bits(x), keys, codes_of, codes, first_bad)


@_cuda.kept
def values_of(fmt):
    """The values of a format's codes on the device, as bits of binary64."""
    return _cuda.to_device(np.ascontiguousarray(fmt._table.values).view(np.uint64))


def decoded(operand, fmt):
    """An operand of codes of a custom format as one of codes of its values in binary64."""
    size = operand.flat.shape[0]
    out = _cuda.empty(size, np.uint64)
    if size:
        blocks = -(-size // _cuda.THREADS)
        _cuda.launch(gather_kernel(), blocks, _cuda.THREADS, operand.flat, values_of(fmt), out)
    return replace(operand, flat=out, format=format("binary64"))


def examples():
    """The kernels for the link check."""
    array = _cuda.array_type
    u8 = array(np.uint8)
    for carrier, (kind, _, _) in _WIDTHS.items():
        yield f"codes of a value table, {carrier}", find_kernel(carrier), (
            array(kind), array(kind), u8, u8, array(np.int64),
        ), True  # fmt: skip
    yield "values of a table", gather_kernel(), (u8, array(np.uint64), array(np.uint64)), True
