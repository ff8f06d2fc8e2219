# cython: language_level=3
"""Bindings to csrc/products/blocks/block_fused.h: argument structs filled, GIL released, C called. No arithmetic here."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

cimport numpy as cnp

import numpy as np

from softnum.runtime._core cimport *
from softnum.mac._products cimport before, fill_codes, sn_product_codes
from softnum.runtime import _core

cnp.import_array()

cdef extern from "products/fused/fused.h" nogil:
    enum: SN_FUSED_NO_FLOOR

    ctypedef struct sn_fused_unit:
        sn_format a, b, accumulator, output
        sn_env sum_env, output_env, after_env
        int32_t terms, fraction_bits, min_exponent, zero_exponent, truncate_fraction, always_infinity, c_after, same_output, period
        const int32_t *order

cdef extern from "products/blocks/block_fused.h" nogil:
    enum: SN_BLOCK_FUSED_TALLIES

    ctypedef struct sn_block_fused_unit:
        sn_fused_unit fused
        sn_format scale_a, scale_b
        int32_t group, block, plain

    ctypedef struct sn_block_fused:
        sn_block_fused_unit unit
        sn_env tensor_env
        int32_t tensor
        sn_number tensor_a, tensor_b

    ctypedef struct sn_block_fused_codes:
        sn_product_codes codes
        const uint64_t *scale_a
        const uint64_t *scale_b
        ptrdiff_t lds_a, lds_b

    uint32_t sn_block_fused_definition(const sn_block_fused *u, const sn_block_fused_codes *g) noexcept

    enum: SN_BLOCK_TILE, SN_BLOCK_BINARY32, SN_FUSED_NAN_SHIFT

    ctypedef struct sn_fused_plan:
        const sn_block_fused_unit *blocks

    int sn_fused_path_of_blocks(const sn_block_fused_unit *u, sn_fused_plan *p) noexcept

    ctypedef struct sn_fused_values:
        const float *a
        const float *b
        const float *c
        float *out
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k
        const int32_t *shift_a
        const int32_t *shift_b
        ptrdiff_t lds_a, lds_b

    ctypedef void sn_fused_kernel(const sn_fused_plan *p, const sn_fused_values *g) noexcept nogil
    sn_fused_kernel *sn_fused_kernel_for(int isa) noexcept

    ctypedef struct sn_block_fast:
        int32_t how

    ctypedef struct sn_block_values:
        const double *c
        double *out
        ptrdiff_t rows, n

    ctypedef struct sn_block_kernels:
        void (*finish)(const sn_block_fast *u, const sn_block_values *g, double tensor, ptrdiff_t step) noexcept nogil

    const sn_block_kernels *sn_block_kernels_for(int isa) noexcept

    ctypedef struct sn_block_fused_plan:
        sn_block_fused_unit unit
        int32_t powers
        double floor_power, zero_power
        uint64_t keep

    int sn_block_fused_path(const sn_block_fused_unit *u, sn_block_fused_plan *p) noexcept

    ctypedef struct sn_block_fused_values:
        const float *a
        const float *b
        const double *scale_a
        const double *power_a
        const double *scale_b
        const double *power_b
        const float *c
        float *out
        double *room
        ptrdiff_t rows, n, n_total, k, blocks

    ctypedef void sn_block_fused_kernel(const sn_block_fused_plan *p, const sn_block_fused_values *g) noexcept nogil
    sn_block_fused_kernel *sn_block_fused_kernel_for(int isa) noexcept


cdef void fill_unit(sn_block_fused *u, unit) except *:
    cdef sn_fused_unit *f = &u.unit.fused
    a, b = unit.operand
    memset(u, 0, sizeof(sn_block_fused))
    fill_format(&f.a, a.element)
    fill_format(&f.b, b.element)
    fill_format(&f.accumulator, unit.accumulator)
    fill_format(&f.output, unit.accumulator)
    fill_format(&u.unit.scale_a, a.scale)
    fill_format(&u.unit.scale_b, b.scale)
    fill_env(&f.sum_env, unit.environments[0])
    fill_env(&f.output_env, unit.environments[0])
    fill_env(&u.tensor_env, unit.environments[1])
    f.terms, f.fraction_bits, f.period = unit.terms, unit.fraction_bits, unit.terms
    f.min_exponent = SN_FUSED_NO_FLOOR if unit.min_exponent is None else unit.min_exponent
    f.zero_exponent = SN_FUSED_NO_FLOOR if unit.zero_exponent is None else unit.zero_exponent
    f.truncate_fraction = -1 if unit.truncate_fraction is None else unit.truncate_fraction
    f.always_infinity = unit.overflow == "always_infinity"
    f.same_output = 1
    u.unit.group, u.unit.block, u.unit.plain = unit.group, unit.block_size, unit.plain
    u.tensor = unit.tensor_scales


cdef class DefinitionBlockFused:
    """The GEMM of a fused unit of block formats on 64-bit codes, through the scalar functions of the core."""

    cdef sn_block_fused u

    def __cinit__(self, unit):
        fill_unit(&self.u, unit)

    def run(self, a, b, scale_a, scale_b, tensor, binary32, c, out, m0, m1, n0, n1, first=(0, 0), tallies=None):
        """Rows m0..m1, columns n0..n1 of one product of codes, as `DefinitionFused.run`.

        scale_a (rows, blocks), scale_b (blocks, columns): contiguous uint64, of the rows and columns that a and b have.
        tensor: the codes of the arrays' scales in the format binary32, or None.
        """
        cdef sn_block_fused u = self.u
        cdef sn_block_fused_codes g
        cdef sn_format f
        cdef const uint64_t[:, ::1] x = scale_a, y = scale_b
        cdef Py_ssize_t row = first[0], column = <Py_ssize_t>n0 - <Py_ssize_t>first[1]
        cdef uint32_t lost
        if out.shape[0] == 0 or out.shape[1] == 0:
            return 0
        fill_codes(&g.codes, a, b, c, out, None, m0, m1, n0, n1, first, tallies, SN_BLOCK_FUSED_TALLIES)
        g.lds_a, g.lds_b = x.shape[1], y.shape[1]
        g.scale_a = <const uint64_t *>before(&x[0, 0], row * g.lds_a, 8) if g.codes.k else NULL
        g.scale_b = &y[0, column] if g.codes.k else NULL
        if u.tensor:
            fill_format(&f, binary32)
            u.tensor_a, u.tensor_b = sn_unpack(&f, tensor[0]), sn_unpack(&f, tensor[1])
        with nogil:
            lost = sn_block_fused_definition(&u, &g)
        return lost

    def run_each(self, a, b, scale_a, scale_b, tensors, binary32, c, out):
        """Many sums, a row of a, b (n, K) and of the scales (n, blocks) for each, c (n,), or None, and out (n,).

        Contiguous uint64; tensors: the codes of the arrays' scales in the format binary32, (n, 2), or None.
        """
        cdef sn_block_fused u = self.u
        cdef sn_block_fused_codes g
        cdef sn_format f
        cdef const uint64_t[:, ::1] x = a, y = b, p = scale_a, q = scale_b, t
        cdef const uint64_t[::1] start
        cdef uint64_t[::1] z = out
        cdef Py_ssize_t i, n = z.shape[0], k = x.shape[1], blocks = p.shape[1]
        cdef uint32_t lost = 0
        cdef bint with_c = c is not None
        if n == 0:
            return 0
        memset(&g, 0, sizeof(g))
        g.codes.lda, g.codes.ldb, g.codes.ldc, g.codes.ldo = k, 1, 1, 1
        g.codes.m1 = g.codes.n = g.codes.n_total = 1
        g.codes.k = k
        g.lds_a, g.lds_b = blocks, 1
        if with_c:
            start = c
        if u.tensor:
            fill_format(&f, binary32)
            t = tensors
        with nogil:
            for i in range(n):
                if k:
                    g.codes.a, g.codes.b, g.scale_a, g.scale_b = &x[i, 0], &y[i, 0], &p[i, 0], &q[i, 0]
                if with_c:
                    g.codes.c = &start[i]
                if u.tensor:
                    u.tensor_a, u.tensor_b = sn_unpack(&f, t[i, 0]), sn_unpack(&f, t[i, 1])
                g.codes.out = &z[i]
                lost |= sn_block_fused_definition(&u, &g)
        return lost


def finish(out, c, double tensor):
    """out = R(c + out * tensor) in binary32, to nearest even, c or None: contiguous float64 arrays of binary32 numbers."""
    cdef sn_block_fast u
    cdef sn_block_values g
    cdef cnp.ndarray z = out, w
    cdef uint64_t saved
    cdef const sn_block_kernels *kernels = sn_block_kernels_for(_core.isa_number())
    memset(&u, 0, sizeof(u))
    memset(&g, 0, sizeof(g))
    u.how = SN_BLOCK_BINARY32
    g.out, g.rows, g.n = <double *>cnp.PyArray_DATA(z), out.shape[0], out.shape[1]
    if c is not None:
        w = c
        g.c = <const double *>cnp.PyArray_DATA(w)
    with nogil:
        saved = sn_fp_enter()
        kernels.finish(&u, &g, tensor, 0)
        sn_fp_leave(saved)


NAN_SHIFT = SN_FUSED_NAN_SHIFT


def fast(unit):
    """A unit's engine on carriers, or None where the definition alone computes it."""
    cdef FastProducts engine = FastProducts.__new__(FastProducts)
    cdef FastGroups groups = FastGroups.__new__(FastGroups)
    fill_unit(&engine.u, unit)
    if sn_fused_path_of_blocks(&engine.u.unit, &engine.p):
        return engine
    return groups if sn_block_fused_path(&engine.u.unit, &groups.p) else None


cdef class FastProducts:
    """The GEMM of a fused unit of block formats on float32 carriers, each product a term: what `fast` makes."""

    cdef sn_block_fused u
    cdef sn_fused_plan p
    by_powers = True

    def run(self, a, b, shift_a, shift_b, c, out, n0):
        """Rows of one product, columns n0 to n0 + out's: contiguous arrays of float32, and of int32 for the scales.

        shift_a (rows, blocks), shift_b (blocks, columns of b): exponents of scales, NAN_SHIFT of NaN.
        """
        cdef sn_fused_values g
        cdef cnp.ndarray x = a, y = b, sx = shift_a, sy = shift_b, z = out, w
        cdef Py_ssize_t column = n0
        cdef uint64_t saved
        cdef sn_fused_kernel *kernel = sn_fused_kernel_for(_core.isa_number())
        g.lda, g.ldb, g.ldo, g.ldc = a.shape[1], b.shape[1], out.shape[1], out.shape[1]
        g.lds_a, g.lds_b = shift_a.shape[1], shift_b.shape[1]
        g.m0, g.m1, g.n, g.k = 0, out.shape[0], out.shape[1], a.shape[1]
        g.a = <const float *>cnp.PyArray_DATA(x)
        g.b = <const float *>cnp.PyArray_DATA(y) + column
        g.shift_a = <const int32_t *>cnp.PyArray_DATA(sx)
        g.shift_b = <const int32_t *>cnp.PyArray_DATA(sy) + column
        g.out = <float *>cnp.PyArray_DATA(z)
        g.c = NULL
        if c is not None:
            w = c
            g.c = <const float *>cnp.PyArray_DATA(w)
        with nogil:
            saved = sn_fp_enter()
            kernel(&self.p, &g)
            sn_fp_leave(saved)


cdef class FastGroups:
    """The GEMM of a fused unit of block formats on float32 carriers: what `fast` makes where terms are sums."""

    cdef sn_block_fused_plan p
    by_powers = False

    @property
    def powers(self):
        """Whether scales are powers of two, which count with themselves."""
        return bool(self.p.powers)

    def run(self, a, b, scale_a, power_a, scale_b, power_b, c, out, n0):
        """Rows of one product, columns n0 to n0 + out's: contiguous arrays, as sn_block_fused_values has them."""
        cdef sn_block_fused_values g
        cdef cnp.ndarray x = a, y = b, sx = scale_a, px = power_a, sy = scale_b, py = power_b, z = out, w, room
        cdef Py_ssize_t column = n0
        cdef uint64_t saved
        cdef sn_block_fused_kernel *kernel = sn_block_fused_kernel_for(_core.isa_number())
        g.rows, g.n, g.n_total, g.k, g.blocks = out.shape[0], out.shape[1], b.shape[1], a.shape[1], scale_a.shape[1]
        room = np.empty((g.k + 2 * g.blocks) * SN_BLOCK_TILE)
        g.a = <const float *>cnp.PyArray_DATA(x)
        g.b = <const float *>cnp.PyArray_DATA(y) + column
        g.scale_a = <const double *>cnp.PyArray_DATA(sx)
        g.power_a = <const double *>cnp.PyArray_DATA(px)
        g.scale_b = <const double *>cnp.PyArray_DATA(sy) + column
        g.power_b = <const double *>cnp.PyArray_DATA(py) + column
        g.out = <float *>cnp.PyArray_DATA(z)
        g.room = <double *>cnp.PyArray_DATA(room)
        g.c = NULL
        if c is not None:
            w = c
            g.c = <const float *>cnp.PyArray_DATA(w)
        with nogil:
            saved = sn_fp_enter()
            kernel(&self.p, &g)
            sn_fp_leave(saved)
