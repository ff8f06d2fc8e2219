# cython: language_level=3
"""Bindings to csrc/products/blocks/block.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport cython
cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from softnum.runtime._core cimport *
from softnum.mac._products cimport range_of, sn_range, sn_tally, tallies_of
from softnum.runtime import _core

cnp.import_array()

cdef extern from "softnum/word/source.h" nogil:
    ctypedef struct sn_source_step:
        pass

    sn_source_step sn_source_at(const sn_source *s, uint64_t number) noexcept
    void sn_source_draw(const sn_source *s, const sn_source_step *at, uint32_t column, uint32_t row, uint32_t batch,
                        const uint32_t *key, const uint32_t *key2, int32_t two_roundings, int32_t wide,
                        uint32_t *words) noexcept

cdef extern from "products/blocks/block.h" nogil:
    enum: SN_KULISCH_WORDS, SN_BLOCK_TALLIES

    ctypedef struct sn_block_unit:
        sn_format element_a, element_b, scale_a, scale_b, inner, product, accumulator
        sn_env product_env, sum_env
        int32_t exact, rounds_product, bottom, plain, words
        sn_number tensor_a, tensor_b
        uint32_t key[2]
        uint32_t key2[2]
        uint32_t batch
        sn_source random

    ctypedef struct sn_block_part:
        const uint64_t *sums
        const uint64_t *a
        const uint64_t *b
        const uint64_t *scale_a
        const uint64_t *scale_b
        const uint64_t *c
        uint64_t *out
        const uint32_t *words
        sn_tally *tallies
        ptrdiff_t rows, n, k, steps, m0, n0

    uint32_t sn_block_add(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step) noexcept
    uint32_t sn_block_finish(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step) noexcept

    enum: SN_BLOCK_FMA, SN_BLOCK_BINARY32, SN_BLOCK_GENERAL, SN_BLOCK_TILE

    ctypedef struct sn_block_fast:
        int32_t how, wide, checked, finite, rounds_product, two_roundings, stochastic
        sn_rounding product, sum
        uint32_t key[2]
        uint32_t key2[2]
        uint32_t batch
        sn_source random

    ctypedef struct sn_block_inner:
        int32_t fast, specials

    int sn_block_path(const sn_block_unit *u, sn_block_inner inner, int tensor_scales, sn_block_fast *fast) noexcept
    int sn_block_narrow(const sn_block_unit *u, ptrdiff_t size) noexcept
    int sn_block_split(const sn_block_unit *u, ptrdiff_t size, const sn_range *elements, int infinite,
                       double *magic) noexcept
    int sn_block_scales_fit(const sn_block_unit *u, const sn_range *scales) noexcept

    ctypedef struct sn_block_values:
        const void *a
        const void *b
        const double *scale_a
        const double *scale_b
        const double *c
        double *out
        double *room
        ptrdiff_t rows, n, n_total, k, size, blocks, m0, n0
        double magic

    ctypedef struct sn_block_kernels:
        void (*gemm)(const sn_block_fast *u, const sn_block_values *g) noexcept nogil
        void (*outer)(const sn_block_fast *u, const sn_block_values *g, const void *sums, ptrdiff_t block,
                      ptrdiff_t step) noexcept nogil
        void (*finish)(const sn_block_fast *u, const sn_block_values *g, double tensor, ptrdiff_t step) noexcept nogil

    const sn_block_kernels *sn_block_kernels_for(int isa) noexcept

MOST_WORDS = SN_KULISCH_WORDS
TALLIES = SN_BLOCK_TALLIES
HOW = {"fma": SN_BLOCK_FMA, "binary32": SN_BLOCK_BINARY32, "general": SN_BLOCK_GENERAL}
_HOW = {number: name for name, number in HOW.items()}


cdef const uint64_t *data64(const uint64_t[::1] x) except? NULL:
    return &x[0] if x.shape[0] else NULL


cdef const uint64_t *flat(array) except? NULL:
    """The codes of a contiguous array; NULL for None, or for nothing."""
    if array is None:
        return NULL
    return data64(array.reshape(-1))


@cython.boundscheck(False)
@cython.wraparound(False)
def words_of_steps(source, tuple keys, batch, m0, m1, n0, n1, steps, bint two_roundings, bint wide):
    """uint32 (rows, columns, steps, 2): the random words of a source for these steps of a part of a product."""
    cdef sn_source random
    cdef sn_source_step step
    cdef uint32_t key[2]
    cdef uint32_t key2[2]
    cdef uint32_t b = batch
    cdef const int64_t[::1] at = np.ascontiguousarray(steps, np.int64)
    cdef Py_ssize_t first_row = m0, first_column = n0, i, j, s
    out = np.empty((m1 - m0, n1 - n0, at.shape[0], 2), np.uint32)
    cdef uint32_t[:, :, :, ::1] w = out
    key[0], key[1], key2[0], key2[1] = keys
    fill_random(&random, source)
    with nogil:
        for s in range(w.shape[2]):
            step = sn_source_at(&random, at[s])
            for i in range(w.shape[0]):
                for j in range(w.shape[1]):
                    sn_source_draw(&random, &step, first_column + j, first_row + i, b, key, key2, two_roundings, wide,
                                   &w[i, j, s, 0])
    return out


cdef void fill_unit(sn_block_unit *u, unit) except *:
    a, b = unit.operand
    memset(u, 0, sizeof(sn_block_unit))
    fill_format(&u.element_a, a.element)
    fill_format(&u.element_b, b.element)
    fill_format(&u.scale_a, a.scale)
    fill_format(&u.scale_b, b.scale)
    u.exact = unit.inner is None
    if not u.exact:
        fill_format(&u.inner, unit.inner.result)
    u.rounds_product = unit.product is not None
    fill_format(&u.product, unit.accumulator if unit.product is None else unit.product)
    fill_format(&u.accumulator, unit.accumulator)
    fill_env(&u.product_env, unit.environments[0])
    fill_env(&u.sum_env, unit.environments[1])
    u.bottom, u.plain, u.words = unit.bottom, unit.plain, unit.words if u.exact else 1
    fill_random(&u.random, unit.random_source)


cdef void begin_each(sn_block_part *g, words) except *:
    """A part of one output, the first of many; words: None or contiguous uint32 (n, steps, 2)."""
    cdef const uint32_t[:, :, ::1] w
    memset(g, 0, sizeof(sn_block_part))
    g.rows = g.n = 1
    if words is not None and words.size:
        w = words
        g.words, g.steps = &w[0, 0, 0], w.shape[1]


cdef class DefinitionBlock:
    """The outer sum of a unit of block formats on 64-bit codes, through the scalar functions of the core."""

    cdef sn_block_unit u

    def __cinit__(self, unit):
        fill_unit(&self.u, unit)

    cdef void prepare(self, sn_block_unit *u, sn_block_part *g, out, words, keys, batch, m0, n0, tallies) except *:
        cdef uint64_t[:, ::1] z = out
        cdef const uint32_t[:, :, :, ::1] w
        u[0] = self.u
        u.key[0], u.key[1], u.key2[0], u.key2[1] = keys
        u.batch = batch
        g.rows, g.n, g.m0, g.n0 = z.shape[0], z.shape[1], m0, n0
        g.out = &z[0, 0]
        g.sums = g.a = g.b = g.scale_a = g.scale_b = g.c = NULL
        g.words = NULL
        g.tallies = tallies_of(tallies, SN_BLOCK_TALLIES)
        g.steps = g.k = 0
        if words is not None and words.size:
            w = words
            g.words = &w[0, 0, 0, 0]
            g.steps = w.shape[2]

    def add(self, sums, a, b, scale_a, scale_b, out, words, keys, batch, m0, n0, step, tallies=None):
        """One block into out, contiguous arrays of uint64 codes: its sums, or the operands a (rows, k) and b (k, n).

        words: None or uint32 (rows, n, steps, 2). m0, n0: what the part begins with in the whole product. tallies:
        None, or uint64 of shape (kinds of roundings, 6), to which those of block.h are added.
        """
        cdef sn_block_unit u
        cdef sn_block_part g
        cdef uint32_t lost
        cdef ptrdiff_t at = step
        self.prepare(&u, &g, out, words, keys, batch, m0, n0, tallies)
        g.sums, g.a, g.b = flat(sums), flat(a), flat(b)
        g.scale_a, g.scale_b = flat(scale_a), flat(scale_b)
        g.k = 0 if a is None else a.shape[1]
        with nogil:
            lost = sn_block_add(&u, &g, at)
        return lost

    def finish(self, tensor_a, tensor_b, binary32, c, out, words, keys, batch, m0, n0, step, tallies=None):
        """The scales of both arrays, codes of binary32, and c (or None) into out."""
        cdef sn_block_unit u
        cdef sn_block_part g
        cdef sn_format f
        cdef uint32_t lost
        cdef ptrdiff_t at = step
        self.prepare(&u, &g, out, words, keys, batch, m0, n0, tallies)
        fill_format(&f, binary32)
        u.tensor_a, u.tensor_b = sn_unpack(&f, tensor_a), sn_unpack(&f, tensor_b)
        g.c = flat(c)
        with nogil:
            lost = sn_block_finish(&u, &g, at)
        return lost


    def add_each(self, sums, a, b, scale_a, scale_b, out, words, step):
        """One block into each of many sums: out[i] and scales of shape (n,), and sums (n,), or a and b (n, k).

        Contiguous arrays of uint64 codes; words: None or uint32 (n, steps, 2), without which nothing is stochastic.
        """
        cdef sn_block_unit u = self.u
        cdef sn_block_part g
        cdef const uint64_t *x = flat(sums)
        cdef const uint64_t *p = flat(a)
        cdef const uint64_t *q = flat(b)
        cdef const uint64_t *scales_a = flat(scale_a)
        cdef const uint64_t *scales_b = flat(scale_b)
        cdef uint64_t[::1] z = out
        cdef Py_ssize_t i, k = 0 if a is None else a.shape[1], n = z.shape[0]
        cdef ptrdiff_t at = step
        cdef uint32_t lost = 0
        begin_each(&g, words)
        g.k = k
        with nogil:
            for i in range(n):
                g.sums = x + i if x != NULL else NULL
                g.a = p + i * k if p != NULL else NULL
                g.b = q + i * k if q != NULL else NULL
                g.scale_a, g.scale_b, g.out = scales_a + i, scales_b + i, &z[i]
                lost |= sn_block_add(&u, &g, at)
                if g.words != NULL:
                    g.words += 2 * g.steps
        return lost

    def finish_each(self, tensors, binary32, c, out, words, step):
        """The scales of both arrays, codes of binary32 of shape (n, 2), and c (n,), or None, into out (n,)."""
        cdef sn_block_unit u = self.u
        cdef sn_block_part g
        cdef sn_format f
        cdef const uint64_t[:, ::1] t = tensors
        cdef const uint64_t *start = flat(c)
        cdef uint64_t[::1] z = out
        cdef Py_ssize_t i, n = z.shape[0]
        cdef ptrdiff_t at = step
        cdef uint32_t lost = 0
        fill_format(&f, binary32)
        begin_each(&g, words)
        with nogil:
            for i in range(n):
                u.tensor_a, u.tensor_b = sn_unpack(&f, t[i, 0]), sn_unpack(&f, t[i, 1])
                g.c = start + i if start != NULL else NULL
                g.out = &z[i]
                lost |= sn_block_finish(&u, &g, at)
                if g.words != NULL:
                    g.words += 2 * g.steps
        return lost


def fast(unit, gemm):
    """The engine on carriers of a unit of block formats, or None where the definition alone computes it.

    gemm: that of its inner unit, or None.
    """
    cdef FastBlock engine = FastBlock.__new__(FastBlock)
    cdef sn_block_inner inner
    inner.fast = inner.specials = 0
    if unit.inner is not None:
        inner.fast = gemm is not None and not unit.inner.stochastic
        inner.specials = any(f is not None and (f.has_nan or f.infinities) for f in unit.inner.rounded_to)
    fill_unit(&engine.unit, unit)
    engine.gemm_of_blocks = gemm
    return engine if sn_block_path(&engine.unit, inner, unit.tensor_scales, &engine.u) else None


cdef class FastBlock:
    """The outer sum of a unit of block formats on carriers, and with it the exact sums of blocks; `fast` makes them.

    Attributes: ``how`` a block enters the outer sum ("fma", "binary32" or "general", csrc/products/blocks/block.h);
    ``checked``: whether "fma" needs no look at the scales; ``finite``: for finite operands alone; ``gemm_of_blocks``:
    the inner unit's engine.
    """

    cdef sn_block_fast u
    cdef sn_block_unit unit
    cdef readonly object gemm_of_blocks

    @property
    def how(self):
        return _HOW[self.u.how]

    @property
    def checked(self):
        return bool(self.u.checked)

    @property
    def finite(self):
        return bool(self.u.finite)

    def narrow(self, size):
        """Whether exact sums of blocks of this size are float32 numbers."""
        return bool(sn_block_narrow(&self.unit, size))

    def split(self, size, a=None, b=None):
        """0 where exact sums of blocks of these float64 values are float64 numbers, else M of their split; or None.

        None, too, where it depends on the values and these are not given.
        """
        cdef sn_range ranges[2]
        cdef double magic
        if sn_block_split(&self.unit, size, NULL, False, &magic):
            return magic
        if a is None or b is None:
            return None
        ranges[0], ranges[1] = range_of(a), range_of(b)
        infinite = np.isinf(a).any() or np.isinf(b).any()
        return magic if sn_block_split(&self.unit, size, ranges, infinite, &magic) else None

    def scales_fit(self, a, b):
        """Whether the product of any two of these float64 scales is a binary32 number."""
        cdef sn_range ranges[2]
        ranges[0], ranges[1] = range_of(a), range_of(b)
        return bool(sn_block_scales_fit(&self.unit, ranges))

    cdef void prepare(self, sn_block_fast *u, sn_block_values *g, how, bint wide, scale_a, scale_b, c, out, keys, batch,
                      m0, n0) except *:
        """scale_a: rows x blocks, scale_b: blocks x n_total from column n0 on; c, out: rows x n; float64."""
        cdef cnp.ndarray x = scale_a, y = scale_b, z = out, w
        u[0] = self.u
        u.how, u.wide = HOW[how], wide
        u.key[0], u.key[1], u.key2[0], u.key2[1] = keys
        u.batch = batch
        g.rows, g.n, g.m0, g.n0 = out.shape[0], out.shape[1], m0, n0
        g.blocks, g.n_total = scale_a.shape[1], scale_b.shape[1]
        g.scale_a = <const double *>cnp.PyArray_DATA(x)
        g.scale_b = <const double *>cnp.PyArray_DATA(y) + <Py_ssize_t>n0
        g.out = <double *>cnp.PyArray_DATA(z)
        g.c = NULL
        g.a = g.b = NULL
        g.room = NULL
        g.k = g.size = 0
        g.magic = 0
        if c is not None:
            w = c
            g.c = <const double *>cnp.PyArray_DATA(w)

    def gemm(self, how, a, b, scale_a, scale_b, c, out, keys, batch, m0, n0, size, double magic):
        """Rows of one product, columns n0 to n0 + out's: a (rows, k), b (k, n_total), contiguous, of one float type."""
        cdef sn_block_fast u
        cdef sn_block_values g
        cdef cnp.ndarray x = a, y = b, room
        cdef uint64_t saved
        cdef const sn_block_kernels *fast = sn_block_kernels_for(_core.isa_number())
        cdef Py_ssize_t item = a.itemsize
        self.prepare(&u, &g, how, item == 8, scale_a, scale_b, c, out, keys, batch, m0, n0)
        room = np.empty((a.shape[1] + g.blocks) * SN_BLOCK_TILE)
        g.a = cnp.PyArray_DATA(x)
        g.b = <const char *>cnp.PyArray_DATA(y) + <Py_ssize_t>n0 * item
        g.room = <double *>cnp.PyArray_DATA(room)
        g.k, g.size, g.magic = a.shape[1], size, magic
        with nogil:
            saved = sn_fp_enter()
            fast.gemm(&u, &g)
            sn_fp_leave(saved)

    def products(self, how, a, b, scale_a, scale_b, c, out, keys, first, last, size, double magic):
        """Products first..last-1 of so many, whole, as `gemm` computes one: arrays of [product, row, column]."""
        cdef sn_block_fast u
        cdef sn_block_values g
        cdef cnp.ndarray x = a, y = b, room
        cdef uint64_t saved
        cdef const sn_block_kernels *fast = sn_block_kernels_for(_core.isa_number())
        cdef Py_ssize_t item = a.itemsize, i, start = first, stop = last
        self.prepare(&u, &g, how, item == 8, scale_a[0], scale_b[0], None if c is None else c[0], out[0], keys, 0, 0, 0)
        cdef const double *scales_a = g.scale_a
        cdef const double *scales_b = g.scale_b
        cdef const double *starts = g.c
        cdef double *results = g.out
        cdef const char *x0 = <const char *>cnp.PyArray_DATA(x)
        cdef const char *y0 = <const char *>cnp.PyArray_DATA(y)
        g.k, g.size, g.magic = a.shape[2], size, magic
        room = np.empty((g.k + g.blocks) * SN_BLOCK_TILE)
        g.room = <double *>cnp.PyArray_DATA(room)
        with nogil:
            saved = sn_fp_enter()
            for i in range(start, stop):
                u.batch = i
                g.a, g.b = x0 + i * g.rows * g.k * item, y0 + i * g.k * g.n * item
                g.scale_a, g.scale_b = scales_a + i * g.rows * g.blocks, scales_b + i * g.blocks * g.n
                if starts != NULL:
                    g.c = starts + i * g.rows * g.n
                g.out = results + i * g.rows * g.n
                fast.gemm(&u, &g)
            sn_fp_leave(saved)

    def outer(self, how, sums, scale_a, scale_b, out, keys, batch, m0, n0, block, step):
        """One block into out: its sums, contiguous (rows, n), of either float type."""
        cdef sn_block_fast u
        cdef sn_block_values g
        cdef cnp.ndarray s = sums
        cdef uint64_t saved
        cdef ptrdiff_t number = block, at = step
        cdef const void *data = cnp.PyArray_DATA(s)
        cdef const sn_block_kernels *fast = sn_block_kernels_for(_core.isa_number())
        self.prepare(&u, &g, how, sums.itemsize == 8, scale_a, scale_b, None, out, keys, batch, m0, n0)
        with nogil:
            saved = sn_fp_enter()
            fast.outer(&u, &g, data, number, at)
            sn_fp_leave(saved)

    def finish(self, how, scale_a, scale_b, c, out, keys, batch, m0, n0, double tensor, step):
        """out = R(out * tensor [+ c])."""
        cdef sn_block_fast u
        cdef sn_block_values g
        cdef uint64_t saved
        cdef ptrdiff_t at = step
        cdef const sn_block_kernels *fast = sn_block_kernels_for(_core.isa_number())
        self.prepare(&u, &g, how, True, scale_a, scale_b, c, out, keys, batch, m0, n0)
        with nogil:
            saved = sn_fp_enter()
            fast.finish(&u, &g, tensor, at)
            sn_fp_leave(saved)
