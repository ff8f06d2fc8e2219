# cython: language_level=3
"""Bindings to csrc/products/gemm/gemm.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

import numpy as np

from softnum.runtime._core cimport *
from softnum.mac._products cimport before, fill_codes, run_each, sn_definition, sn_product_codes
from softnum.runtime import _core

cnp.import_array()

cdef extern from "products/gemm/gemm.h" nogil:
    enum: SN_PATH_MAGIC, SN_PATH_MIXED, SN_PATH_FIXED, SN_PATH_NATIVE, SN_PATH_ODD, SN_PATH_STOCHASTIC, SN_PATH_WIDE
    enum: SN_PRODUCT_EXACT, SN_PRODUCT_NEAREST, SN_PRODUCT_STOCHASTIC, SN_PRODUCT_FUSED
    enum: SN_GEMM_LANES, SN_PANEL

    ctypedef struct sn_round32:
        uint32_t emin, emax, sign_of_zero
        int32_t mantissa_bits
        float scale, bound
        float limit[2]
        float overflow[2]

    ctypedef struct sn_gemm_unit:
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

    ctypedef struct sn_gemm_integers:
        const int16_t *a
        const int16_t *b
        const double *c
        double *out
        int32_t *panel
        ptrdiff_t lda, ldb, ldc, ldo, m, n, k
        int32_t shift, bits, is_signed, careful
        int64_t least, most
        double scale

    ctypedef struct sn_gemm_kernels:
        void (*gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g) noexcept nogil
        void (*gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g) noexcept nogil
        void (*integers)(const sn_gemm_integers *g) noexcept nogil

    const sn_gemm_kernels *sn_gemm_kernels_for(int isa) noexcept

    enum: SN_REDUCTION_SEQUENTIAL, SN_REDUCTION_TREE, SN_REDUCTION_PAIRWISE
    enum: SN_MAX_LANES

    ctypedef struct sn_mad_unit:
        sn_format operand_a, operand_b, product, accumulator, outer
        sn_env product_env, sum_env, outer_env
        int32_t fused, two_roundings
        int64_t chunk
        int32_t lanes, reduction, compensated
        uint32_t key[2]
        uint32_t key2[2]
        uint32_t batch

    uint32_t sn_gemm_definition(const sn_mad_unit *u, const sn_product_codes *g) noexcept

cdef const sn_gemm_kernels *kernels():
    return sn_gemm_kernels_for(_core.isa_number())

LANES = SN_GEMM_LANES
MAX_LANES = SN_MAX_LANES
REDUCTION = {"sequential": SN_REDUCTION_SEQUENTIAL, "tree": SN_REDUCTION_TREE, "pairwise": SN_REDUCTION_PAIRWISE}
PATH = {"magic": SN_PATH_MAGIC, "mixed": SN_PATH_MIXED, "fixed": SN_PATH_FIXED, "native": SN_PATH_NATIVE,
        "odd": SN_PATH_ODD, "stochastic": SN_PATH_STOCHASTIC, "wide": SN_PATH_WIDE}
PRODUCT = {
    "exact": SN_PRODUCT_EXACT, "nearest": SN_PRODUCT_NEAREST, "stochastic": SN_PRODUCT_STOCHASTIC,
    "fused": SN_PRODUCT_FUSED,
}


cdef void fill_round32(sn_round32 *r, spec) except *:
    r.emin, r.emax, r.sign_of_zero, r.mantissa_bits = spec.emin, spec.emax, spec.sign_of_zero, spec.mantissa_bits
    r.scale, r.bound = spec.scale, spec.bound
    r.limit[0], r.limit[1] = spec.limit
    r.overflow[0], r.overflow[1] = spec.overflow


cdef void prepare(sn_rounding *r, target, int bits) except *:
    cdef sn_format f
    cdef sn_env e
    fill_format(&f, target[0])
    fill_env(&e, target[1])
    if not sn_rounding_prepare(&f, &e, bits, r):
        raise ValueError(f"{target[0]} lies outside the domain of rounding in binary{bits}")


cdef class FastGemm:
    """One unit's GEMM on float32 (``wide=False``) or float64 carriers."""

    cdef sn_gemm_unit u
    cdef readonly bint wide

    def __cinit__(self, plan):
        self.wide = plan.wide
        self.u.path = PATH[plan.path]
        self.u.product = PRODUCT[plan.product]
        self.u.exact_below = plan.exact_below
        self.u.chunk = plan.chunk
        self.u.two_roundings = plan.two_roundings
        if plan.targets is not None:
            prepare(&self.u.product64, plan.targets[0], 64 if plan.wide else 32)
            prepare(&self.u.sum64, plan.targets[1], 64 if plan.wide else 32)
            prepare(&self.u.outer64, plan.targets[2], 64 if plan.wide else 32)
        if plan.magic is not None:
            fill_round32(&self.u.product32, plan.magic[0])
            fill_round32(&self.u.sum32, plan.magic[1])
            fill_round32(&self.u.outer32, plan.magic[2])

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)):
        """Rows m0..m1 and columns n0..n1 of one product; b's rows are padded with zeros to a multiple of LANES.

        first: the row and the column of the whole product that the arrays begin with.
        """
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
        self.compute(&u, &g)

    def product(self, a, b, c):
        """a @ b of plain matrices of its carrier, from c or zeros, in a new one; None of others.

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
        g.c = NULL
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
        self.compute(&self.u, &g)
        return z

    cdef int compute(self, const sn_gemm_unit *u, sn_gemm_args *g) except -1:
        cdef const sn_gemm_kernels *fast = kernels()
        cdef uint64_t saved
        cdef cnp.npy_intp floats = (g.k + 1) * SN_PANEL  # a row more, to begin at a cache line
        cdef cnp.ndarray panel = cnp.PyArray_EMPTY(1, &floats, cnp.NPY_FLOAT32, 0)
        g.panel = <float *>((<uintptr_t>cnp.PyArray_DATA(panel) + 63) & ~<uintptr_t>63)
        with nogil:
            saved = sn_fp_enter()
            if self.wide:
                fast.gemm64(u, g)
            else:
                fast.gemm32(u, g)
            sn_fp_leave(saved)
        return 0


cdef class IntegerGemm:
    """Products and sums of fixed point that need no rounding, in integers; on float64 carriers."""

    cdef object plan
    cdef readonly bint wide, converts

    def __cinit__(self, plan):
        self.plan = plan
        self.wide = self.converts = True

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)):
        """As `FastGemm.run`."""
        plan = self.plan
        cdef sn_gemm_integers g
        cdef const sn_gemm_kernels *fast = kernels()
        cdef cnp.ndarray x, y, z, w, panel
        k, rows, columns = a.shape[1], slice(m0 - first[0], m1 - first[0]), slice(n0 - first[1], n1 - first[1])
        even = k + k % 2
        if m1 <= m0 or n1 <= n0:
            return
        x = np.empty((m1 - m0, even), np.int16)
        y = np.empty((even, n1 - n0), np.int16)
        x[:, k:] = y[k:] = 0
        for raw, values, fraction in ((x[:, :k], a[rows], plan.fractions[0]), (y[:k], b[:, columns], plan.fractions[1])):
            raw[...] = values if fraction == 0 else values * 2.0**fraction
        panel = np.empty((max(even // 2, 1), SN_PANEL), np.int32)
        z = out[rows, columns]
        largest = [max(int(v.max(initial=0)), -int(v.min(initial=0))) for v in (x, y)]
        products = k * largest[0] * largest[1]
        total = products << plan.shift
        g.c = NULL
        g.ldc = 0
        if c is not None:
            w = c[rows, columns]
            total += int(np.abs(w).max() / plan.scale)
            g.c = <const double *>cnp.PyArray_DATA(w)
            g.ldc = w.strides[0] // 8
        g.careful = not plan.wrap and (products >= 2**31 or total > plan.most or total > -plan.least)
        g.a, g.b = <const int16_t *>cnp.PyArray_DATA(x), <const int16_t *>cnp.PyArray_DATA(y)
        g.out = <double *>cnp.PyArray_DATA(z)
        g.panel = <int32_t *>cnp.PyArray_DATA(panel)
        g.lda, g.ldb, g.ldo = even, n1 - n0, z.strides[0] // 8
        g.m, g.n, g.k = m1 - m0, n1 - n0, even
        g.shift, g.bits, g.is_signed = plan.shift, plan.bits, plan.signed
        g.least, g.most, g.scale = plan.least, plan.most, plan.scale
        with nogil:
            fast.integers(&g)


cdef class DefinitionGemm:
    """Any unit's GEMM on 64-bit codes, through the scalar functions of the core."""

    cdef sn_mad_unit u

    def __cinit__(self, operands, product, accumulator, outer, tuple product_env, tuple sum_env, tuple outer_env, chunk,
                  lanes, reduction, bint compensated):
        if not 1 <= lanes <= SN_MAX_LANES:
            raise ValueError(f"lanes must lie in 1..{SN_MAX_LANES}, got {lanes}")
        fill_format(&self.u.operand_a, operands[0])
        fill_format(&self.u.operand_b, operands[1])
        self.u.fused = product is None
        if product is not None:
            fill_format(&self.u.product, product)
        fill_format(&self.u.accumulator, accumulator)
        fill_format(&self.u.outer, outer)
        fill_env(&self.u.product_env, product_env)
        fill_env(&self.u.sum_env, sum_env)
        fill_env(&self.u.outer_env, outer_env)
        self.u.two_roundings = (
            product is not None and sn_is_stochastic(&self.u.product_env) and sn_is_stochastic(&self.u.sum_env)
        )
        self.u.chunk = chunk
        self.u.lanes = lanes
        self.u.reduction = REDUCTION[reduction]
        self.u.compensated = compensated

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
        fill_codes(&g, a, b, c, out, words, m0, m1, n0, n1, first, tallies)
        with nogil:
            flags = sn_gemm_definition(&u, &g)
        return flags

    def run_each(self, a, b, c, out, words):
        """Many short sums, a row of a and b for each: `run_each` in _products.pxd says how."""
        return run_each(<sn_definition>sn_gemm_definition, &self.u, a, b, c, out, words)
