# cython: language_level=3
"""Bindings to csrc/elementwise/probe.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

import numpy as np

from softnum.runtime._core cimport fill_format, sn_format
from softnum.runtime._core import OPERATIONS

cnp.import_array()

cdef extern from "elementwise/probe.h" nogil:
    ctypedef struct sn_probe:
        uint64_t code

    void sn_probe_codes(int op, const sn_format *operands, const sn_format *out, const int32_t *env,
                        uint64_t invalid_code, const uint64_t *const *operand, const uint32_t *words, size_t n,
                        sn_probe *results) noexcept

cdef extern from "softnum/rounding/env.h" nogil:
    enum: SN_NOTED_OVERFLOW, SN_NOTED_FLUSH

OVERFLOWED, FLUSHED = SN_NOTED_OVERFLOW, SN_NOTED_FLUSH

#: An element of what `probe` returns: sn_probe.
RECORD = np.dtype(
    {
        "names": ["code", "significand", "exponent", "last", "flags", "discarded", "kind", "sign", "guard", "round",
                  "sticky", "up", "gap", "events"],
        "formats": ["u8", "u8", "i4", "i4", "u4", "u4", *["u1"] * 8],
    },
    align=True,
)
if RECORD.itemsize != sizeof(sn_probe):
    raise ImportError("softnum.inspect._probe: sn_probe is laid out in another way than its dtype")


def probe(operation, formats, out_fmt, tuple env, operands, words, out, size_t start, size_t stop):
    """Elements start..stop-1 of an operation, into those of out, a contiguous array of RECORD.

    formats: of the operands. operands: uint64 (number of operands, n); words: uint32 (n,), or None; contiguous.
    """
    cdef sn_format in_formats[3]
    cdef sn_format out_format
    cdef int32_t fields[7]
    cdef uint64_t invalid_code = env[7]
    cdef const uint64_t *codes[3]
    cdef const uint64_t[:, ::1] x = operands
    cdef const uint32_t[::1] w
    cdef const uint32_t *random = NULL
    cdef int op = OPERATIONS[operation][0]
    cdef cnp.ndarray results = out
    cdef sn_probe *first = <sn_probe *>cnp.PyArray_DATA(results) + start
    if stop <= start:
        return
    fill_format(&out_format, out_fmt)
    for i in range(7):
        fields[i] = env[i]
    for i in range(3):
        codes[i] = &x[i, start] if i < x.shape[0] else NULL
        fill_format(&in_formats[i], formats[i] if i < len(formats) else out_fmt)
    if words is not None:
        w = words
        random = &w[start]
    with nogil:
        sn_probe_codes(op, in_formats, &out_format, fields, invalid_code, codes, random, stop - start, first)
