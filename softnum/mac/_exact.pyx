# cython: language_level=3
"""Bindings to csrc/products/exact/exact.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
import numpy as np
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from softnum.runtime._core cimport *
from softnum.mac._products cimport (
    SN_NATIVE_DONE, SN_NATIVE_NO_CODE, SN_NATIVE_NO_MEMORY, before, facts_from, fill_codes, native_codes, native_pair,
    range_of, run_each, sn_definition, sn_facts, sn_native_product, sn_product_codes, sn_range,
)
from softnum.runtime import _core

cnp.import_array()

cdef extern from "products/exact/exact.h" nogil:
    enum: SN_KULISCH_WORDS

    ctypedef struct sn_exact_unit:
        sn_format operand_a, operand_b, accumulator
        sn_env env
        int32_t bottom, words
        uint32_t key[2]
        uint32_t batch
        sn_source random

    uint32_t sn_exact_definition(const sn_exact_unit *u, const sn_product_codes *g) noexcept

    enum: SN_EXACT_ROOM

    ctypedef struct sn_exact_fast:
        sn_exact_unit unit
        sn_rounding rounding
        sn_facts facts[3]

    int sn_exact_path(const sn_exact_unit *u, sn_facts a, sn_facts b, sn_exact_fast *fast) noexcept

    ctypedef struct sn_exact_args:
        const double *a
        const double *b
        const double *c
        double *out
        double *packed
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k, n0

    ctypedef struct sn_exact_kernels:
        void (*gemm)(const sn_exact_fast *u, const sn_exact_args *g) noexcept nogil

    const sn_exact_kernels *sn_exact_kernels_for(int isa) noexcept

    ctypedef struct sn_exact_split:
        int32_t pieces, with_c
        ptrdiff_t block

    sn_exact_split sn_exact_split_for(const sn_exact_fast *u, const sn_range range[3], ptrdiff_t k, int has_c) noexcept

MOST_WORDS = SN_KULISCH_WORDS


cdef void fill_unit(sn_exact_unit *u, unit, operands) except *:
    """operands: the formats of the codes that the definition takes."""
    memset(u, 0, sizeof(sn_exact_unit))
    fill_format(&u.operand_a, operands[0])
    fill_format(&u.operand_b, operands[1])
    fill_format(&u.accumulator, unit.accumulator)
    fill_env(&u.env, unit.environment)
    u.bottom, u.words = unit.bottom, unit.words
    fill_random(&u.random, unit.random_source)


cdef int native_definition(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_exact_unit u = (<const sn_exact_unit *>data)[0]
    cdef sn_product_codes g
    u.key[0], u.key[1], u.batch = p.key[0], p.key[1], p.batch
    native_codes(p, &g)
    return SN_NATIVE_NO_CODE if sn_exact_definition(&u, &g) else SN_NATIVE_DONE


cdef class DefinitionExact:
    """The exact unit's GEMM on 64-bit codes, through the wide accumulator of the core."""

    cdef sn_exact_unit u

    def __cinit__(self, unit, operands):
        fill_unit(&self.u, unit, operands)

    @property
    def native(self):
        """The engine by its addresses (csrc/dispatch/native.h), for callers in C; on codes of 64 bits."""
        return native_pair(native_definition, &self.u)

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None):
        """Rows m0..m1, columns n0..n1 of one product of codes; words: None or contiguous uint32 (M, N, 1, 2).

        first: the row and the column of the whole product that the arrays begin with. tallies: None, or uint64 of
        shape (1, 6) to add to.
        """
        cdef sn_exact_unit u = self.u
        cdef sn_product_codes g
        cdef uint32_t flags
        if out.shape[0] == 0 or out.shape[1] == 0:
            return 0
        u.key[0], u.key[1] = keys[0], keys[1]
        u.batch = batch
        fill_codes(&g, a, b, c, out, words, m0, m1, n0, n1, first, tallies, 1)
        with nogil:
            flags = sn_exact_definition(&u, &g)
        return flags

    def run_each(self, a, b, c, out, words):
        """Many short sums, a row of a and b for each: `run_each` in _products.pxd says how."""
        return run_each(<sn_definition>sn_exact_definition, &self.u, a, b, c, out, words)


def fast(unit, operands, facts):
    """The unit's engine on carriers, or None where the definition alone computes it; arguments as of `_gemm.fast`."""
    cdef FastExact engine = FastExact.__new__(FastExact)
    cdef sn_exact_unit u
    fill_unit(&u, unit, operands)
    return engine if sn_exact_path(&u, facts_from(facts[0]), facts_from(facts[1]), &engine.u) else None


cdef const sn_exact_kernels *native_kernels = NULL  # those in use when an engine's `native` was last asked for


cdef int native_fast(const void *data, const sn_native_product *p) noexcept nogil:
    """Products of K > 0."""
    cdef sn_exact_fast u = (<const sn_exact_fast *>data)[0]
    cdef sn_exact_args g
    cdef uint64_t saved
    u.unit.key[0], u.unit.key[1], u.unit.batch = p.key[0], p.key[1], p.batch
    g.a, g.b, g.c, g.out = <const double *>p.a, <const double *>p.b, <const double *>p.c, <double *>p.out
    g.lda, g.ldb, g.ldc, g.ldo = p.lda, p.ldb, p.ldc, p.ldo
    g.m0, g.m1, g.n, g.k, g.n0 = p.m0, p.m1, p.n, p.k, 0
    g.packed = <double *>malloc(p.k * ((p.n + SN_EXACT_ROOM - 1) // SN_EXACT_ROOM * SN_EXACT_ROOM) * sizeof(double))
    if g.packed == NULL:
        return SN_NATIVE_NO_MEMORY
    saved = sn_fp_enter()
    native_kernels.gemm(&u, &g)
    sn_fp_leave(saved)
    free(g.packed)
    return SN_NATIVE_DONE


cdef class FastExact:
    """The exact unit's GEMM on float64 carriers: what `fast` makes."""

    cdef sn_exact_fast u
    wide = True

    @property
    def native(self):
        """The engine by its addresses (csrc/dispatch/native.h), for callers in C."""
        global native_kernels
        native_kernels = sn_exact_kernels_for(_core.isa_number())
        return native_pair(native_fast, &self.u)

    def split(self, a, b, c=None):
        """(pieces, terms a block, whether C is a term) for float64 arrays: what the kernels do with these operands."""
        cdef sn_range ranges[3]
        ranges[0], ranges[1], ranges[2] = range_of(a), range_of(b), range_of(c)
        s = sn_exact_split_for(&self.u, ranges, a.shape[1], c is not None)
        return s.pieces, s.block, bool(s.with_c)

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)):
        """Rows m0..m1 and columns n0..n1 of one product of float64 arrays.

        first: the row and the column of the whole product that the arrays begin with.
        """
        cdef sn_exact_fast u = self.u
        cdef sn_exact_args g
        cdef cnp.ndarray x = a, y = b, z = out, w, room
        cdef uint64_t saved
        cdef const sn_exact_kernels *fast = sn_exact_kernels_for(_core.isa_number())
        cdef Py_ssize_t row = first[0], column = <Py_ssize_t>n0 - <Py_ssize_t>first[1]
        u.unit.key[0], u.unit.key[1] = keys[0], keys[1]
        u.unit.batch = batch
        g.lda, g.ldb, g.ldo = x.strides[0] // 8, y.strides[0] // 8, z.strides[0] // 8
        g.m0, g.m1, g.n, g.k, g.n0 = m0, m1, n1 - n0, a.shape[1], n0
        if g.k == 0:  # C as it is
            rows, columns = slice(m0 - row, m1 - row), slice(column, column + g.n)
            out[rows, columns] = 0 if c is None else c[rows, columns]
            out[out != out] = np.nan
            return
        room = np.empty(g.k * (-(-g.n // SN_EXACT_ROOM) * SN_EXACT_ROOM))
        g.a = <const double *>before(cnp.PyArray_DATA(x), row * g.lda, 8)
        g.b = <const double *>cnp.PyArray_DATA(y) + column
        g.out = <double *>before(cnp.PyArray_DATA(z), row * g.ldo - column, 8)
        g.packed = <double *>cnp.PyArray_DATA(room)
        g.c = NULL
        g.ldc = 0
        if c is not None:
            w = c
            g.ldc = w.strides[0] // 8
            g.c = <const double *>before(cnp.PyArray_DATA(w), row * g.ldc - column, 8)
        with nogil:
            saved = sn_fp_enter()
            fast.gemm(&u, &g)
            sn_fp_leave(saved)
