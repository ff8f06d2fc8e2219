# cython: language_level=3
"""Bindings to csrc/products/tables/table.h, csrc/products/tapered/tapered.h and csrc/elementwise/tapered.h: shapes checked, argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from softnum.runtime import _core

cnp.import_array()

cdef extern from "products/tables/table.h" nogil:
    enum: SN_TABLE_SLACK

    ctypedef struct sn_table_sums:
        const uint32_t *product
        const uint8_t *sum
        const uint8_t *a
        const uint8_t *b
        uint8_t *acc
        ptrdiff_t b_codes, a_row, a_step, b_step, acc_row, m, n, k

    void sn_table_look_up(const uint8_t *table, ptrdiff_t columns, const uint8_t *a, const uint8_t *b, uint8_t *out,
                          ptrdiff_t n) noexcept
    void sn_table_gemm(int isa, const sn_table_sums *s) noexcept

cdef extern from "elementwise/tapered.h" nogil:
    ctypedef struct sn_tapered:
        int32_t bits, takum, es

    void sn_tapered_values(const sn_tapered *f, const void *codes, int width, uint64_t *numbers, ptrdiff_t n) noexcept
    void sn_tapered_codes(const sn_tapered *f, const uint64_t *numbers, void *codes, int width, ptrdiff_t n) noexcept

cdef extern from "dispatch/kernels.h" nogil:
    uint64_t sn_fp_enter() noexcept
    void sn_fp_leave(uint64_t saved) noexcept

cdef extern from "products/tapered/tapered.h" nogil:
    enum: SN_TAPERED_COLUMNS

    ctypedef struct sn_tapered_sums:
        sn_tapered sum, product
        int32_t carrier
        const void *a
        const void *b
        void *acc
        void *edge
        ptrdiff_t a_row, a_step, b_step, acc_row, m, n, k

    void sn_tapered_gemm(int isa, const sn_tapered_sums *s) noexcept

SLACK = SN_TABLE_SLACK

cdef sn_tapered _tapered(tuple f) except *:
    cdef sn_tapered t
    t.bits, t.takum, t.es = f
    return t


def tapered_values(tuple f, cnp.ndarray codes not None, cnp.ndarray numbers not None):
    """numbers (float64) of codes; f: (bits, whether a takum, es). Contiguous arrays of one size, codes of the width."""
    cdef sn_tapered t = _tapered(f)
    cdef int width = codes.dtype.itemsize
    cdef ptrdiff_t n = codes.size
    cdef const void *x = cnp.PyArray_DATA(codes)
    cdef void *z = cnp.PyArray_DATA(numbers)
    with nogil:
        sn_tapered_values(&t, x, width, <uint64_t *>z, n)


def tapered_codes(tuple f, cnp.ndarray numbers not None, cnp.ndarray codes not None):
    """codes that numbers (float64) round to, as `tapered_values` takes them."""
    cdef sn_tapered t = _tapered(f)
    cdef int width = codes.dtype.itemsize
    cdef ptrdiff_t n = codes.size
    cdef const void *x = cnp.PyArray_DATA(numbers)
    cdef void *z = cnp.PyArray_DATA(codes)
    with nogil:
        sn_tapered_codes(&t, <const uint64_t *>x, z, width, n)


def look_up(const uint8_t[:, ::1] table not None, a, b, out, Py_ssize_t start, Py_ssize_t stop):
    """out[i] = table[a[i], b[i]] for i from start to stop; a, b and out contiguous codes, which lie in the table."""
    if stop <= start:
        return
    cdef const uint8_t[::1] x = a.reshape(-1), y = b.reshape(-1)
    cdef uint8_t[::1] z = out.reshape(-1)
    if not 0 <= start <= stop <= min(x.shape[0], y.shape[0], z.shape[0]):
        raise IndexError(f"{start} to {stop} lies outside the arrays")
    with nogil:
        sn_table_look_up(&table[0, 0], table.shape[1], &x[start], &y[start], &z[start], stop - start)


def sums(const uint32_t[:, ::1] product not None, const uint8_t[::1] sum not None, const uint8_t[:, :] a not None,
         const uint8_t[:, :] b not None, uint8_t[:, :] acc not None):
    """acc = sum[product[a[m, k], b[k, n]] + acc] for each k in turn, in place; the rows of b and acc are contiguous.

    product holds offsets into sum, to which the codes in acc are added; all codes lie in the tables, and sum has SLACK
    bytes more than entries.
    """
    cdef sn_table_sums s
    s.m, s.k, s.n = a.shape[0], a.shape[1], b.shape[1]
    if b.shape[0] != s.k or acc.shape[0] != s.m or acc.shape[1] != s.n:
        raise ValueError("sums: the shapes do not fit")
    if s.m == 0 or s.n == 0 or s.k == 0:
        return
    if (s.n > 1 and (b.strides[1] != 1 or acc.strides[1] != 1)):
        raise ValueError("sums: the rows of b and acc must be contiguous")
    s.product, s.sum, s.b_codes = &product[0, 0], &sum[0], product.shape[1]
    s.a, s.b, s.acc = &a[0, 0], &b[0, 0], &acc[0, 0]
    s.a_row, s.a_step, s.b_step, s.acc_row = a.strides[0], a.strides[1], b.strides[0], acc.strides[0]
    cdef int isa = _core.isa_number()
    with nogil:
        sn_table_gemm(isa, &s)


def tapered_sums(tuple sum not None, tuple product, cnp.ndarray a not None, cnp.ndarray b not None,
                 cnp.ndarray acc not None):
    """acc = R(acc + P(a[m, k] * b[k, n])) for each k in turn, in place; values, float32 or float64 all three.

    sum, product: what R and P round to, as `tapered_values` takes it; None: P is none. The rows of b and acc are
    contiguous.
    """
    cdef sn_tapered_sums s
    cdef ptrdiff_t size = acc.dtype.itemsize
    if not (acc.dtype == a.dtype == b.dtype and acc.dtype.kind == "f" and size in (4, 8)):
        raise TypeError(f"tapered_sums: {a.dtype}, {b.dtype} and {acc.dtype} are not one float type")
    if not (a.ndim == b.ndim == acc.ndim == 2):
        raise ValueError("tapered_sums: a, b and acc have two dimensions")
    s.m, s.k, s.n = a.shape[0], a.shape[1], b.shape[1]
    if b.shape[0] != s.k or acc.shape[0] != s.m or acc.shape[1] != s.n:
        raise ValueError("tapered_sums: the shapes do not fit")
    if s.m == 0 or s.n == 0 or s.k == 0:
        return
    if s.n > 1 and (b.strides[1] != size or acc.strides[1] != size):
        raise ValueError("tapered_sums: the rows of b and acc must be contiguous")
    s.sum = _tapered(sum)
    s.product = _tapered((0, 0, 0) if product is None else product)
    s.carrier = 8 * size
    edge = cnp.PyArray_EMPTY(1, [s.k * SN_TAPERED_COLUMNS], cnp.NPY_FLOAT64 if size == 8 else cnp.NPY_FLOAT32, 0)
    s.a, s.b, s.acc = cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), cnp.PyArray_DATA(acc)
    s.edge = cnp.PyArray_DATA(<cnp.ndarray>edge)
    s.a_row, s.a_step, s.b_step = a.strides[0] // size, a.strides[1] // size, b.strides[0] // size
    s.acc_row = acc.strides[0] // size
    cdef int isa = _core.isa_number()
    cdef uint64_t saved
    with nogil:
        saved = sn_fp_enter()
        sn_tapered_gemm(isa, &s)
        sn_fp_leave(saved)
