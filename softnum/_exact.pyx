# cython: language_level=3
"""Bindings to csrc/exact.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint32_t, uint64_t, uintptr_t

from softnum._core cimport *

cnp.import_array()

cdef extern from "exact.h" nogil:
    enum: SN_KULISCH_WORDS

    ctypedef struct sn_exact_unit:
        sn_format operand_a, operand_b, accumulator
        sn_env env
        int32_t bottom, words
        uint32_t key[2]
        uint32_t batch

    ctypedef struct sn_exact_codes:
        const uint64_t *a
        const uint64_t *b
        const uint64_t *c
        uint64_t *out
        const uint32_t *words
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k, n_total, n0

    uint32_t sn_exact_definition(const sn_exact_unit *u, const sn_exact_codes *g) noexcept

MOST_WORDS = SN_KULISCH_WORDS


cdef void *before(const void *array, Py_ssize_t elements, Py_ssize_t size) noexcept:
    """Where an array would begin that had so many more elements in front: only its own are ever read or written."""
    return <void *>(<uintptr_t>array - <uintptr_t>(elements * size))


cdef void fill_unit(sn_exact_unit *u, operands, accumulator, tuple env, bottom, words) except *:
    fill_format(&u.operand_a, operands[0])
    fill_format(&u.operand_b, operands[1])
    fill_format(&u.accumulator, accumulator)
    fill_env(&u.env, env)
    u.bottom, u.words = bottom, words


cdef class DefinitionExact:
    """The exact unit's GEMM on 64-bit codes, through the wide accumulator of the core."""

    cdef sn_exact_unit u

    def __cinit__(self, operands, accumulator, tuple env, bottom, words):
        fill_unit(&self.u, operands, accumulator, env, bottom, words)

    def run(self, const uint64_t[:, ::1] a, const uint64_t[:, ::1] b, c, uint64_t[:, ::1] out, words, keys, batch, m0, m1, n0, n1, first=(0, 0)):
        """Rows m0..m1, columns n0..n1 of one product of codes; words: None or contiguous uint32 (M, N, 1, 2).

        first: the row and the column of the whole product that the arrays begin with.
        """
        cdef sn_exact_unit u = self.u
        cdef sn_exact_codes g
        cdef uint32_t flags
        cdef const uint64_t[:, ::1] start
        cdef const uint32_t[:, :, :, ::1] w
        cdef Py_ssize_t row = first[0], column = <Py_ssize_t>n0 - <Py_ssize_t>first[1]
        if out.shape[0] == 0 or out.shape[1] == 0:
            return 0
        u.key[0], u.key[1] = keys[0], keys[1]
        u.batch = batch
        g.k = a.shape[1]
        g.lda, g.ldb, g.ldo, g.ldc = a.shape[1], b.shape[1], out.shape[1], out.shape[1]
        g.m0, g.m1, g.n, g.n0, g.n_total = m0, m1, n1 - n0, n0, out.shape[1]
        g.a = <const uint64_t *>before(&a[0, 0], row * g.lda, 8) if g.k else NULL
        g.b = &b[0, column] if g.k else NULL
        g.out = <uint64_t *>before(&out[0, 0], row * g.ldo - column, 8)
        g.c = NULL
        g.words = NULL
        if c is not None:
            start = c
            g.c = <const uint64_t *>before(&start[0, 0], row * g.ldc - column, 8)
        if words is not None and words.size:
            w = words
            g.words = <const uint32_t *>before(&w[0, 0, 0, 0], (row * g.n_total + <Py_ssize_t>n0 - column) * 2, 4)
        with nogil:
            flags = sn_exact_definition(&u, &g)
        return flags
