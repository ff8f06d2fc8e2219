# cython: language_level=3
"""Bindings to csrc/products/gemm/gemm.h: argument structs filled, GIL released, C called. No arithmetic here, and no
decision which path computes a unit."""

cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import math
from typing import NamedTuple

import numpy as np

from softnum.runtime._core cimport *
from softnum.mac._products cimport (
    SN_NATIVE_DONE, SN_NATIVE_NO_CODE, SN_NATIVE_NO_MEMORY, before, facts_from, fill_codes, native_codes, native_pair,
    run_each, sn_definition, sn_facts, sn_facts_of, sn_native_product, sn_product_codes, sn_tally, tallies_of,
)
from softnum.runtime import _core

cnp.import_array()

cdef extern from "products/gemm/gemm.h" nogil:
    enum: SN_PATH_MAGIC, SN_PATH_MIXED, SN_PATH_FIXED, SN_PATH_NATIVE, SN_PATH_ODD, SN_PATH_STOCHASTIC, SN_PATH_WIDE
    enum: SN_PATH_IEEE, SN_PATH_LANES
    enum: SN_PRODUCT_EXACT, SN_PRODUCT_NEAREST, SN_PRODUCT_STOCHASTIC, SN_PRODUCT_FUSED
    enum: SN_GEMM_LANES, SN_PANEL, SN_MAD_TALLIES, SN_TALLY_SUM

    ctypedef struct sn_round32:
        uint32_t emin, emax, sign_of_zero
        int32_t mantissa_bits
        float scale, bound
        float limit[2]
        float overflow[2]

    enum: SN_ZEROS_NOWHERE, SN_ZEROS_READ, SN_ZEROS_WRITTEN, SN_ZEROS_MARKED

    ctypedef struct sn_ieee:
        int32_t flush

    enum: SN_SOURCE_GIVEN

    ctypedef struct sn_lane_rounding:
        uint32_t no_code

    ctypedef struct sn_lanes_unit:
        sn_lane_rounding product, sum, outer

    ctypedef struct sn_gemm_unit:
        sn_source random
        sn_ieee ieee
        sn_lanes_unit lanes
        int32_t path, product, exact_below
        int64_t chunk
        sn_round32 product32, sum32, outer32
        sn_rounding product64, sum64, outer64
        uint32_t key[2]
        uint32_t key2[2]
        int32_t two_roundings
        uint32_t batch

    ctypedef struct sn_gemm_args:
        const void *a
        const void *b
        const void *c
        void *out
        float *panel
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k, n0
        const void *words
        ptrdiff_t ldw[2]
        sn_tally *tallies
        uint32_t *no_code

    size_t sn_gemm_room(const sn_gemm_unit *u, const sn_gemm_args *g, int bits) noexcept

    ctypedef struct sn_gemm_integers:
        const int16_t *a
        const int16_t *b
        const double *c
        double *out
        int32_t *panel
        ptrdiff_t lda, ldb, ldc, ldo, m, n, k
        int32_t fraction_a, fraction_b, shift, bits, is_signed, wraps, careful
        int64_t least, most
        double scale

    ctypedef struct sn_gemm_kernels:
        void (*gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g) noexcept nogil
        void (*gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g) noexcept nogil
        void (*integers)(const sn_gemm_integers *g) noexcept nogil

    const sn_gemm_kernels *sn_gemm_kernels_for(int isa) noexcept

    ctypedef struct sn_chain_unit:
        sn_format a, b, accumulator
        sn_env env
        int32_t period
        const int32_t *order

    enum: SN_REDUCTION_SEQUENTIAL, SN_REDUCTION_TREE, SN_REDUCTION_PAIRWISE
    enum: SN_MAX_LANES

    ctypedef struct sn_mad_unit:
        sn_format operand_a, operand_b, product, accumulator, outer
        sn_env product_env, sum_env, outer_env
        int32_t fused, two_roundings
        int64_t chunk
        int32_t lanes, reduction, compensated, positive
        uint32_t key[2]
        uint32_t key2[2]
        uint32_t batch
        sn_source random

    uint32_t sn_gemm_definition(const sn_mad_unit *u, const sn_product_codes *g) noexcept

    enum: SN_LEVEL_FULL, SN_LEVEL_TESTED, SN_LEVEL_SIGNED, SN_LEVEL_BARE
    int sn_gemm_path(const sn_mad_unit *u, sn_facts a, sn_facts b, int counting, sn_gemm_unit *g) noexcept
    int sn_chain_path(const sn_chain_unit *u, sn_facts a, sn_facts b, int counting, sn_gemm_unit *g) noexcept
    int sn_gemm_level(const sn_gemm_unit *u, ptrdiff_t k, const double *largest, int negative_zero) noexcept
    int sn_integer_path(const sn_mad_unit *u, sn_gemm_integers *g) noexcept
    int sn_integers_fit(const sn_gemm_integers *g, ptrdiff_t k, double a, double b, double c) noexcept

cdef const sn_gemm_kernels *kernels():
    return sn_gemm_kernels_for(_core.isa_number())

cdef const sn_gemm_kernels *native_kernels = NULL  # those in use when an engine's `native` was last asked for

LANES = SN_GEMM_LANES
MAX_LANES = SN_MAX_LANES
REDUCTION = {"sequential": SN_REDUCTION_SEQUENTIAL, "tree": SN_REDUCTION_TREE, "pairwise": SN_REDUCTION_PAIRWISE}
_PATH = {SN_PATH_MAGIC: "magic", SN_PATH_MIXED: "mixed", SN_PATH_FIXED: "fixed", SN_PATH_NATIVE: "native",
         SN_PATH_ODD: "odd", SN_PATH_STOCHASTIC: "stochastic", SN_PATH_WIDE: "wide", SN_PATH_IEEE: "ieee",
         SN_PATH_LANES: "lanes"}
_PRODUCT = {SN_PRODUCT_EXACT: "exact", SN_PRODUCT_NEAREST: "nearest", SN_PRODUCT_STOCHASTIC: "stochastic",
            SN_PRODUCT_FUSED: "fused"}
_ZEROS = {SN_ZEROS_NOWHERE: "nowhere", SN_ZEROS_READ: "read", SN_ZEROS_WRITTEN: "written", SN_ZEROS_MARKED: "marked"}
_LEVEL = {SN_LEVEL_FULL: "full", SN_LEVEL_TESTED: "tested", SN_LEVEL_SIGNED: "signed", SN_LEVEL_BARE: "bare"}


class Round32(NamedTuple):
    """As sn_round32 in csrc/products/gemm/gemm.h."""

    emin: int
    emax: int
    sign_of_zero: int
    mantissa_bits: int
    scale: float
    bound: float
    limit: tuple
    overflow: tuple


cdef round32(const sn_round32 *r):
    return Round32(r.emin, r.emax, r.sign_of_zero, r.mantissa_bits, r.scale, r.bound, (r.limit[0], r.limit[1]),
                   (r.overflow[0], r.overflow[1]))


cdef void fill_unit(sn_mad_unit *u, unit, operands) except *:
    """operands: the formats of the codes that the definition takes."""
    if not 1 <= unit.lanes <= SN_MAX_LANES:
        raise ValueError(f"lanes must lie in 1..{SN_MAX_LANES}, got {unit.lanes}")
    fill_format(&u.operand_a, operands[0])
    fill_format(&u.operand_b, operands[1])
    u.fused = unit.product is None
    if unit.product is not None:
        fill_format(&u.product, unit.product)
    fill_format(&u.accumulator, unit.accumulator)
    fill_format(&u.outer, unit.outer)
    product_env, sum_env, outer_env = unit.environments
    fill_env(&u.product_env, product_env)
    fill_env(&u.sum_env, sum_env)
    fill_env(&u.outer_env, outer_env)
    u.two_roundings = unit.two_roundings
    u.chunk = unit.chunk or 0
    u.lanes = unit.lanes
    u.reduction = REDUCTION[unit.reduction]
    u.compensated = unit.compensated is not None
    u.positive = unit.flush_inputs == "positive"
    fill_random(&u.random, unit.random_source)


def core_facts(fmt):
    """(precision, last, top, specials) of a format of the core, as csrc/dispatch/facts.h has them."""
    cdef sn_format f
    fill_format(&f, fmt)
    cdef sn_facts x = sn_facts_of(&f)
    return x.precision, x.last, x.top, bool(x.specials)


def fast(unit, operands, facts, counting=False):
    """A unit's engine on carriers: a `FastGemm`, an `IntegerGemm`, or None where the definition alone computes it.

    operands: the formats of its codes; facts: a `softnum.formats.facts.Facts` of the values of each. counting: the one
    that can count its roundings, a `FastGemm` or None.
    """
    cdef sn_mad_unit u
    cdef FastGemm gemm = FastGemm.__new__(FastGemm)
    cdef IntegerGemm integers = IntegerGemm.__new__(IntegerGemm)
    memset(&u, 0, sizeof(sn_mad_unit))
    fill_unit(&u, unit, operands)
    if not counting and sn_integer_path(&u, &integers.g):
        return integers
    cdef int bits = sn_gemm_path(&u, facts_from(facts[0]), facts_from(facts[1]), counting, &gemm.u)
    gemm.wide = bits == 64
    return gemm if bits else None


def fast_chain(unit, facts, counting=False):
    """The engine on carriers of a chain of fused multiply-adds: a `FastGemm`, or None.

    facts, counting: as of `fast`.
    """
    cdef sn_chain_unit u
    cdef FastGemm gemm = FastGemm.__new__(FastGemm)
    memset(&u, 0, sizeof(sn_chain_unit))
    fill_format(&u.a, unit.operand[0])
    fill_format(&u.b, unit.operand[1])
    fill_format(&u.accumulator, unit.accumulator)
    fill_env(&u.env, unit.environment)
    u.period = unit.period
    if unit.k_order is not None:
        gemm.order = <int32_t *>malloc(u.period * sizeof(int32_t))
        if gemm.order == NULL:
            raise MemoryError("no memory for a unit's order of summation")
        for i, k in enumerate(unit.k_order):
            gemm.order[i] = k
    u.order = gemm.order
    gemm.chain = True
    cdef int bits = sn_chain_path(&u, facts_from(facts[0]), facts_from(facts[1]), counting, &gemm.u)
    gemm.wide = bits == 64
    return gemm if bits else None


cdef int native_gemm(const sn_gemm_unit *unit, const sn_native_product *p, bint wide, bint chain) noexcept nogil:
    cdef sn_gemm_unit u = unit[0]
    cdef sn_gemm_args g
    cdef uint32_t no_code = 0
    cdef uint64_t saved
    cdef void *room
    u.key[0], u.key[1], u.key2[0], u.key2[1] = p.key[0], p.key[1], p.key2[0], p.key2[1]
    u.batch = p.batch
    g.a, g.b, g.c, g.out = p.a, p.b, p.c, p.out
    g.lda, g.ldb, g.ldc, g.ldo = p.lda, p.ldb, p.ldc, p.ldo
    g.m0, g.m1, g.n, g.k, g.n0 = p.m0, p.m1, p.n, p.k, 0
    g.words, g.tallies, g.no_code = NULL, NULL, &no_code
    room = malloc(sn_gemm_room(&u, &g, 64 if wide else 32) + 64)
    if room == NULL:
        return SN_NATIVE_NO_MEMORY
    g.panel = <float *>((<uintptr_t>room + 63) & ~<uintptr_t>63)
    saved = sn_fp_enter()
    if wide:
        native_kernels.gemm64(&u, &g)
    else:
        native_kernels.gemm32(&u, &g)
    sn_fp_leave(saved)
    free(room)
    return SN_NATIVE_NO_CODE if no_code >> chain else SN_NATIVE_DONE


cdef int native_gemm32(const void *data, const sn_native_product *p) noexcept nogil:
    return native_gemm(<const sn_gemm_unit *>data, p, False, False)


cdef int native_gemm64(const void *data, const sn_native_product *p) noexcept nogil:
    return native_gemm(<const sn_gemm_unit *>data, p, True, False)


cdef int native_chain32(const void *data, const sn_native_product *p) noexcept nogil:
    return native_gemm(<const sn_gemm_unit *>data, p, False, True)


cdef int native_chain64(const void *data, const sn_native_product *p) noexcept nogil:
    return native_gemm(<const sn_gemm_unit *>data, p, True, True)


cdef int native_definition(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_mad_unit u = (<const sn_mad_unit *>data)[0]
    cdef sn_product_codes g
    u.key[0], u.key[1], u.key2[0], u.key2[1] = p.key[0], p.key[1], p.key2[0], p.key2[1]
    u.batch = p.batch
    native_codes(p, &g)
    return SN_NATIVE_NO_CODE if sn_gemm_definition(&u, &g) else SN_NATIVE_DONE


cdef class FastGemm:
    """One unit's GEMM on float32 or, if `wide`, float64 carriers: what `fast` and `fast_chain` make.

    Its attributes are fields of sn_gemm_unit (csrc/products/gemm/gemm.h), paths and roundings of products by name.
    """

    cdef sn_gemm_unit u
    cdef int32_t *order
    cdef bint chain
    cdef readonly bint wide
    takes_words = True

    def __dealloc__(self):
        free(self.order)

    @property
    def path(self):
        return _PATH[self.u.path]

    @property
    def native(self):
        """The engine by its addresses (csrc/dispatch/native.h), for callers in C."""
        global native_kernels
        native_kernels = kernels()
        if self.chain:
            return native_pair(native_chain64 if self.wide else native_chain32, &self.u)
        return native_pair(native_gemm64 if self.wide else native_gemm32, &self.u)

    @property
    def product_rounding(self):
        return _PRODUCT[self.u.product]

    @property
    def zeros(self):
        """Where subnormals become zeros (csrc/products/gemm/ieee.h): "nowhere", "read", "written" or "marked"."""
        return _ZEROS[self.u.ieee.flush]

    @property
    def lacks_nan(self):
        """Whether `run` may tell of a NaN that has no code."""
        return bool(self.u.lanes.product.no_code | self.u.lanes.sum.no_code | self.u.lanes.outer.no_code)

    @property
    def exact_below(self):
        return bool(self.u.exact_below)

    @property
    def chunk(self):
        return self.u.chunk

    @property
    def two_roundings(self):
        return bool(self.u.two_roundings)

    @property
    def magic(self):
        """A `Round32` each for product, sum and outer sum."""
        return round32(&self.u.product32), round32(&self.u.sum32), round32(&self.u.outer32)

    def level(self, k, largest, negative_zero):
        """How much of a rounding a product needs (csrc/softnum/device/steps.h): "full", "tested", "signed" or "bare".

        largest: magnitudes in a, b and C; infinity if there is a NaN. negative_zero: whether C holds one.
        """
        cdef double seen[3]
        seen[0], seen[1], seen[2] = largest
        return _LEVEL[sn_gemm_level(&self.u, k, seen, negative_zero)]

    @property
    def levels(self):
        """All that `level` gives, "full" first."""
        ends = (math.inf,) * 3, (0, 0, 0)
        found = ["full"] + [self.level(0, largest, zero) for largest in ends for zero in (True, False)]
        return tuple(dict.fromkeys(found))

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0), words=None, tallies=None):
        """Rows m0..m1 and columns n0..n1 of one product; b's rows are padded with zeros to a multiple of LANES.

        first: the row and the column of the whole product that the arrays begin with. words: the bits of the steps,
        instead of keys: uint8, uint16 or uint32 of shape (M, steps, N), columns side by side in memory. tallies: None,
        or of an engine that counts uint64 of shape (kinds of roundings, 6) to add to: of a chain its sums alone.
        Returns what `DefinitionGemm.run` does.
        """
        if tallies is not None and len(tallies) == 1:
            counts = np.zeros((SN_MAD_TALLIES, 6), np.uint64)
            lost = self.run(a, b, c, out, keys, batch, m0, m1, n0, n1, first, words, counts)
            tallies += counts[SN_TALLY_SUM]
            return lost
        cdef sn_gemm_unit u = self.u
        cdef sn_gemm_args g
        cdef Py_ssize_t size = 8 if self.wide else 4
        cdef cnp.ndarray x = a, y = b, z = out, w
        u.key[0], u.key[1], u.key2[0], u.key2[1] = keys
        u.batch = batch
        g.lda, g.ldb, g.ldo = x.strides[0] // size, y.strides[0] // size, z.strides[0] // size
        g.m0, g.m1, g.n, g.k, g.n0 = m0, m1, n1 - n0, a.shape[1], n0
        cdef Py_ssize_t row = first[0], column = <Py_ssize_t>n0 - <Py_ssize_t>first[1]
        g.a = before(cnp.PyArray_DATA(x), row * g.lda, size)
        g.b = <const char *>cnp.PyArray_DATA(y) + column * size
        g.out = before(cnp.PyArray_DATA(z), row * g.ldo - column, size)
        g.c = NULL
        g.ldc = 0
        if c is not None:
            w = c
            g.ldc = w.strides[0] // size
            g.c = before(cnp.PyArray_DATA(w), row * g.ldc - column, size)
        g.words = NULL
        if words is not None:
            w = words
            u.random.kind = SN_SOURCE_GIVEN
            u.random.width = 8 * w.itemsize
            u.random.shared = 0
            g.ldw[0], g.ldw[1] = w.strides[0], w.strides[1]
            g.words = before(cnp.PyArray_DATA(w), row * g.ldw[0] - column * w.itemsize, 1)
        g.tallies = tallies_of(tallies, SN_MAD_TALLIES)
        return self.compute(&u, &g)

    def run_products(self, a, b, c, out, keys, first, last, n):
        """Products first..last-1 of so many: a, b, c (or None) and out are contiguous, [product, row, column].

        n: columns of out; b's rows are padded with zeros to a multiple of LANES. Returns what `run` does.
        """
        cdef sn_gemm_unit u = self.u
        cdef sn_gemm_args g
        cdef int lost = 0
        cdef Py_ssize_t size = 8 if self.wide else 4, i, start = first, stop = last
        cdef cnp.ndarray x = a, y = b, z = out, w = c
        cdef Py_ssize_t m = x.shape[1]
        u.key[0], u.key[1], u.key2[0], u.key2[1] = keys
        g.lda, g.ldb, g.ldo = x.shape[2], y.shape[2], z.shape[2]
        g.m0, g.m1, g.n, g.k, g.n0 = 0, m, n, x.shape[2], 0
        g.c, g.ldc, g.tallies = NULL, 0, NULL
        for i in range(start, stop):
            u.batch = i
            g.a = <const char *>cnp.PyArray_DATA(x) + i * m * g.lda * size
            g.b = <const char *>cnp.PyArray_DATA(y) + i * g.k * g.ldb * size
            g.out = <char *>cnp.PyArray_DATA(z) + i * m * g.ldo * size
            if c is not None:
                g.c, g.ldc = <const char *>cnp.PyArray_DATA(w) + i * m * g.ldo * size, g.ldo
            lost |= self.compute(&u, &g)
        return lost

    def product(self, a, b, c):
        """a @ b of plain matrices of its carrier, from c or zeros, in a new one; None of others, or if a NaN has no code.

        c: of the product's shape. The unit needs no key.
        """
        cdef int kind = cnp.NPY_FLOAT64 if self.wide else cnp.NPY_FLOAT32
        cdef Py_ssize_t size = 8 if self.wide else 4
        cdef cnp.ndarray x, y, z, w
        cdef cnp.npy_intp shape[2]
        cdef cnp.npy_intp m, n, k, i
        cdef sn_gemm_args g
        if not (is_plain(a, kind) and is_plain(b, kind) and (c is None or is_plain(c, kind))):
            return None
        x, y = a, b
        if cnp.PyArray_NDIM(x) != 2 or cnp.PyArray_NDIM(y) != 2:
            return None
        m, k, n = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1), cnp.PyArray_DIM(y, 1)
        if m * n * k == 0 or cnp.PyArray_DIM(y, 0) != k:
            return None
        g.c, g.tallies = NULL, NULL
        g.ldc = 0
        if c is not None:
            w = c
            if cnp.PyArray_NDIM(w) != 2 or cnp.PyArray_DIM(w, 0) != m or cnp.PyArray_DIM(w, 1) != n:
                return None
            g.c, g.ldc = cnp.PyArray_DATA(w), n
        shape[0], shape[1] = k, (n + SN_GEMM_LANES - 1) // SN_GEMM_LANES * SN_GEMM_LANES
        if shape[1] != n:  # rows padded by zeros
            y = cnp.PyArray_ZEROS(2, shape, kind, 0)
            for i in range(k):
                memcpy(<char *>cnp.PyArray_DATA(y) + i * shape[1] * size,
                       <const char *>cnp.PyArray_DATA(<cnp.ndarray>b) + i * n * size, n * size)
        g.lda, g.ldb, g.ldo = k, shape[1], n
        g.m0, g.m1, g.n, g.k, g.n0 = 0, m, n, k, 0
        shape[0], shape[1] = m, n
        z = cnp.PyArray_EMPTY(2, shape, kind, 0)
        g.a, g.b, g.out = cnp.PyArray_DATA(x), cnp.PyArray_DATA(y), cnp.PyArray_DATA(z)
        return None if self.compute(&self.u, &g) else z

    cdef int compute(self, const sn_gemm_unit *u, sn_gemm_args *g) except -1:
        cdef const sn_gemm_kernels *fast = kernels()
        cdef uint64_t saved
        cdef cnp.npy_intp room = sn_gemm_room(u, g, 64 if self.wide else 32) + 64  # to begin at a cache line
        cdef cnp.ndarray panel = cnp.PyArray_EMPTY(1, &room, cnp.NPY_UINT8, 0)
        cdef uint32_t no_code = 0
        g.no_code = &no_code
        g.panel = <float *>((<uintptr_t>cnp.PyArray_DATA(panel) + 63) & ~<uintptr_t>63)
        with nogil:
            saved = sn_fp_enter()
            if self.wide:
                fast.gemm64(u, g)
            else:
                fast.gemm32(u, g)
            sn_fp_leave(saved)
        return <int>(no_code >> 1 if self.chain else no_code)


cdef class IntegerGemm:
    """Products and sums of fixed point that need no rounding, in integers; on float64 carriers. `fast` makes them."""

    cdef sn_gemm_integers g
    path = "integers"
    wide = converts = True

    @property
    def shift(self):
        """From the products' last place to the accumulator's."""
        return self.g.shift

    @property
    def wraps(self):
        """Whether sums are modulo a power of two."""
        return bool(self.g.wraps)

    @property
    def ends(self):
        """The least and the largest sum, in last places."""
        return self.g.least, self.g.most

    @property
    def scale(self):
        """The accumulator's last place."""
        return self.g.scale

    def fits(self, k, largest):
        """Whether sums may go without a test: they wrap, or products of such magnitudes cannot saturate.

        largest: of the values of a, b and C.
        """
        a, b, c = largest
        a, b = a * 2.0**self.g.fraction_a, b * 2.0**self.g.fraction_b
        return bool(sn_integers_fit(&self.g, k, a, b, c / self.g.scale))

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)):
        """As `FastGemm.run`."""
        cdef sn_gemm_integers g = self.g
        cdef const sn_gemm_kernels *fast = kernels()
        cdef cnp.ndarray x, y, z, w, panel
        k, rows, columns = a.shape[1], slice(m0 - first[0], m1 - first[0]), slice(n0 - first[1], n1 - first[1])
        even = k + k % 2
        if m1 <= m0 or n1 <= n0:
            return
        x = np.empty((m1 - m0, even), np.int16)
        y = np.empty((even, n1 - n0), np.int16)
        x[:, k:] = y[k:] = 0
        for raw, values, fraction in ((x[:, :k], a[rows], g.fraction_a), (y[:k], b[:, columns], g.fraction_b)):
            raw[...] = values if fraction == 0 else values * 2.0**fraction
        panel = np.empty((max(even // 2, 1), SN_PANEL), np.int32)
        z = out[rows, columns]
        largest_a, largest_b = (max(float(v.max(initial=0)), -float(v.min(initial=0))) for v in (x, y))
        largest_c = 0.0
        g.c = NULL
        g.ldc = 0
        if c is not None:
            w = c[rows, columns]
            largest_c = float(np.abs(w).max()) / g.scale
            g.c = <const double *>cnp.PyArray_DATA(w)
            g.ldc = w.strides[0] // 8
        g.careful = not sn_integers_fit(&g, k, largest_a, largest_b, largest_c)
        g.a, g.b = <const int16_t *>cnp.PyArray_DATA(x), <const int16_t *>cnp.PyArray_DATA(y)
        g.out = <double *>cnp.PyArray_DATA(z)
        g.panel = <int32_t *>cnp.PyArray_DATA(panel)
        g.lda, g.ldb, g.ldo = even, n1 - n0, z.strides[0] // 8
        g.m, g.n, g.k = m1 - m0, n1 - n0, even
        with nogil:
            fast.integers(&g)


cdef class DefinitionGemm:
    """Any unit's GEMM on 64-bit codes, through the scalar functions of the core."""

    cdef sn_mad_unit u

    def __cinit__(self, unit, operands):
        fill_unit(&self.u, unit, operands)

    @property
    def native(self):
        """As `FastGemm.native`, on codes of 64 bits."""
        return native_pair(native_definition, &self.u)

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None):
        """Rows m0..m1, columns n0..n1 of one product of codes; words: None or contiguous uint32 (M, N, steps, 2).

        first: the row and the column of the whole product that the arrays begin with. tallies: None, or uint64 of
        shape (kinds of roundings, 6), to which those of gemm.h are added.
        """
        cdef sn_mad_unit u = self.u
        cdef sn_product_codes g
        cdef uint32_t flags
        if out.shape[0] == 0 or out.shape[1] == 0:
            return 0
        u.key[0], u.key[1], u.key2[0], u.key2[1] = keys
        u.batch = batch
        fill_codes(&g, a, b, c, out, words, m0, m1, n0, n1, first, tallies, SN_MAD_TALLIES)
        with nogil:
            flags = sn_gemm_definition(&u, &g)
        return flags

    def run_each(self, a, b, c, out, words):
        """Many short sums, a row of a and b for each: `run_each` in _products.pxd says how."""
        return run_each(<sn_definition>sn_gemm_definition, &self.u, a, b, c, out, words)
