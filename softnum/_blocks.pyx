# cython: language_level=3
"""Bindings to csrc/block.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport cython
cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

import numpy as np

from softnum._core cimport *
from softnum import _core

cnp.import_array()

cdef extern from "block.h" nogil:
    enum: SN_KULISCH_WORDS

    ctypedef struct sn_block_unit:
        sn_format element_a, element_b, scale_a, scale_b, inner, product, accumulator
        sn_env product_env, sum_env
        int32_t exact, rounds_product, bottom, plain, words
        sn_number tensor_a, tensor_b
        uint32_t key[2]
        uint32_t key2[2]
        uint32_t batch

    ctypedef struct sn_block_part:
        const uint64_t *sums
        const uint64_t *a
        const uint64_t *b
        const uint64_t *scale_a
        const uint64_t *scale_b
        const uint64_t *c
        uint64_t *out
        const uint32_t *words
        ptrdiff_t rows, n, k, steps, m0, n0

    uint32_t sn_block_add(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step) noexcept
    uint32_t sn_block_finish(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step) noexcept
    void sn_block_words(const uint32_t key[2], const uint32_t key2[2], uint32_t batch, ptrdiff_t row, ptrdiff_t column,
                        ptrdiff_t step, int two_roundings, int wide, uint32_t words[2]) noexcept

MOST_WORDS = SN_KULISCH_WORDS


cdef const uint64_t *data64(const uint64_t[::1] x) except? NULL:
    return &x[0] if x.shape[0] else NULL


cdef const uint64_t *flat(array) except? NULL:
    """The codes of a contiguous array; NULL for None, or for nothing."""
    if array is None:
        return NULL
    return data64(array.reshape(-1))


@cython.boundscheck(False)
@cython.wraparound(False)
def words_of_steps(tuple keys, batch, m0, m1, n0, n1, steps, bint two_roundings, bint wide):
    """uint32 (rows, columns, steps, 2): the random words of these steps of a part of a product."""
    cdef uint32_t key[2]
    cdef uint32_t key2[2]
    cdef uint32_t b = batch
    cdef const int64_t[::1] at = np.ascontiguousarray(steps, np.int64)
    cdef Py_ssize_t first_row = m0, first_column = n0, i, j, s
    out = np.empty((m1 - m0, n1 - n0, at.shape[0], 2), np.uint32)
    cdef uint32_t[:, :, :, ::1] w = out
    key[0], key[1], key2[0], key2[1] = keys
    with nogil:
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                for s in range(w.shape[2]):
                    sn_block_words(key, key2, b, first_row + i, first_column + j, at[s], two_roundings, wide,
                                   &w[i, j, s, 0])
    return out


cdef class DefinitionBlock:
    """The outer sum of a unit of block formats on 64-bit codes, through the scalar functions of the core."""

    cdef sn_block_unit u

    def __cinit__(self, elements, scales, inner, product, accumulator, tuple product_env, tuple sum_env, bottom, plain,
                  words):
        fill_format(&self.u.element_a, elements[0])
        fill_format(&self.u.element_b, elements[1])
        fill_format(&self.u.scale_a, scales[0])
        fill_format(&self.u.scale_b, scales[1])
        self.u.exact = inner is None
        if inner is not None:
            fill_format(&self.u.inner, inner)
        self.u.rounds_product = product is not None
        fill_format(&self.u.product, accumulator if product is None else product)
        fill_format(&self.u.accumulator, accumulator)
        fill_env(&self.u.product_env, product_env)
        fill_env(&self.u.sum_env, sum_env)
        self.u.bottom, self.u.plain, self.u.words = bottom, plain, words

    cdef void prepare(self, sn_block_unit *u, sn_block_part *g, out, words, keys, batch, m0, n0) except *:
        cdef uint64_t[:, ::1] z = out
        cdef const uint32_t[:, :, :, ::1] w
        u[0] = self.u
        u.key[0], u.key[1], u.key2[0], u.key2[1] = keys
        u.batch = batch
        g.rows, g.n, g.m0, g.n0 = z.shape[0], z.shape[1], m0, n0
        g.out = &z[0, 0]
        g.sums = g.a = g.b = g.scale_a = g.scale_b = g.c = NULL
        g.words = NULL
        g.steps = g.k = 0
        if words is not None and words.size:
            w = words
            g.words = &w[0, 0, 0, 0]
            g.steps = w.shape[2]

    def add(self, sums, a, b, scale_a, scale_b, out, words, keys, batch, m0, n0, step):
        """One block into out, contiguous arrays of uint64 codes: its sums, or the operands a (rows, k) and b (k, n).

        words: None or uint32 (rows, n, steps, 2). m0, n0: what the part begins with in the whole product.
        """
        cdef sn_block_unit u
        cdef sn_block_part g
        cdef uint32_t lost
        cdef ptrdiff_t at = step
        self.prepare(&u, &g, out, words, keys, batch, m0, n0)
        g.sums, g.a, g.b = flat(sums), flat(a), flat(b)
        g.scale_a, g.scale_b = flat(scale_a), flat(scale_b)
        g.k = 0 if a is None else a.shape[1]
        with nogil:
            lost = sn_block_add(&u, &g, at)
        return lost

    def finish(self, tensor_a, tensor_b, binary32, c, out, words, keys, batch, m0, n0, step):
        """The scales of both arrays, codes of binary32, and c (or None) into out."""
        cdef sn_block_unit u
        cdef sn_block_part g
        cdef sn_format f
        cdef uint32_t lost
        cdef ptrdiff_t at = step
        self.prepare(&u, &g, out, words, keys, batch, m0, n0)
        fill_format(&f, binary32)
        u.tensor_a, u.tensor_b = sn_unpack(&f, tensor_a), sn_unpack(&f, tensor_b)
        g.c = flat(c)
        with nogil:
            lost = sn_block_finish(&u, &g, at)
        return lost
