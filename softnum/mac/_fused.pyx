# cython: language_level=3
"""Bindings to csrc/products/fused/fused.h and grouped/grouped.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from softnum.runtime._core cimport *
from softnum.mac._products cimport (
    SN_NATIVE_DONE, SN_NATIVE_NO_CODE, before, fill_codes, native_codes, native_pair, run_each, sn_definition,
    sn_native_engine, sn_native_product, sn_product_codes,
)
from softnum.runtime import _core

cnp.import_array()

cdef extern from "products/fused/fused.h" nogil:
    enum: SN_FUSED_NO_FLOOR, SN_FUSED_FRACTION_BITS, SN_FUSED_TERMS, SN_FUSED_TALLIES

    ctypedef struct sn_fused_unit:
        sn_format a, b, accumulator, output
        sn_env sum_env, output_env, after_env
        int32_t terms, fraction_bits, min_exponent, zero_exponent, truncate_fraction, always_infinity, c_after, same_output, period
        const int32_t *order

    enum: SN_TWO_STAGE_STREAMS, SN_TWO_STAGE_NO_LIMIT

    ctypedef struct sn_two_stage_unit:
        sn_fused_unit fused
        int32_t sum_fraction_bits, c_fraction_bits, interleave, down, c_reach, product_limit

    uint32_t sn_fused_definition(const sn_fused_unit *u, const sn_product_codes *g) noexcept

    ctypedef struct sn_fused_plan:
        sn_fused_unit unit
        int32_t least_a, least_b, least_c, floor, low, high, nearest, may_carry, group, bounded
        uint32_t zero_a, zero_b, keep, to_constant
        float limit, least_start, most_start

    int sn_fused_path(const sn_fused_unit *u, sn_fused_plan *p) noexcept
    int sn_two_stage_path(const sn_two_stage_unit *w, sn_fused_plan *p) noexcept

    ctypedef struct sn_fused_values:
        const float *a
        const float *b
        const float *c
        float *out
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k

    ctypedef void sn_fused_kernel(const sn_fused_plan *p, const sn_fused_values *g) noexcept nogil
    sn_fused_kernel *sn_fused_kernel_for(int isa) noexcept

    ctypedef struct sn_chain_unit:
        sn_format a, b, accumulator
        sn_env env
        int32_t period
        const int32_t *order

    uint32_t sn_chain_definition(const sn_chain_unit *u, const sn_product_codes *g) noexcept

    uint32_t sn_two_stage_definition(const sn_two_stage_unit *w, const sn_product_codes *g) noexcept

cdef extern from "products/grouped/grouped.h" nogil:
    enum: SN_GROUPED_TALLIES, SN_GROUPED_EXACT, SN_GROUPED_STEPS

    ctypedef struct sn_grouped_unit:
        sn_fused_unit products
        sn_format accumulator, partial
        sn_env sum_env, partial_env
        int32_t terms, fraction_bits, rounded, first_term, scale, bottom, words

    void sn_let_raise(sn_format *f) noexcept

    uint32_t sn_grouped_definition(const sn_grouped_unit *u, const sn_product_codes *g) noexcept

    ctypedef struct sn_grouped_plan:
        int32_t how

    int sn_grouped_path(const sn_grouped_unit *u, sn_grouped_plan *p) noexcept

    ctypedef void sn_grouped_kernel(const sn_grouped_plan *p, const sn_fused_values *g) noexcept nogil
    sn_grouped_kernel *sn_grouped_kernel_for(int isa) noexcept

MOST_FRACTION_BITS = SN_FUSED_FRACTION_BITS
MOST_TERMS = SN_FUSED_TERMS
MOST_STREAMS = SN_TWO_STAGE_STREAMS


cdef int32_t *order_of(unit) except? NULL:
    """The unit's order of summation, in memory that the caller frees; NULL: as the products come."""
    cdef int32_t *order
    if unit.k_order is None:
        return NULL
    order = <int32_t *>malloc(len(unit.k_order) * sizeof(int32_t))
    if order == NULL:
        raise MemoryError("no memory for a unit's order of summation")
    for i, k in enumerate(unit.k_order):
        order[i] = k
    return order


cdef int32_t *fill_unit(sn_fused_unit *u, unit) except? NULL:
    """Fills *u; returns the memory of its order."""
    cdef int32_t *order
    fill_format(&u.a, unit.operand[0])
    fill_format(&u.b, unit.operand[1])
    fill_format(&u.accumulator, unit.accumulator)
    fill_format(&u.output, unit.result)
    fill_env(&u.sum_env, unit.environments[0])
    fill_env(&u.output_env, unit.environments[1])
    fill_env(&u.after_env, unit.environments[2])
    u.terms, u.fraction_bits = unit.terms, unit.fraction_bits
    u.min_exponent = SN_FUSED_NO_FLOOR if unit.min_exponent is None else unit.min_exponent
    u.zero_exponent = SN_FUSED_NO_FLOOR if unit.zero_exponent is None else unit.zero_exponent
    u.truncate_fraction = -1 if unit.truncate_fraction is None else unit.truncate_fraction
    u.always_infinity = unit.overflow == "always_infinity"
    u.c_after = unit.c == "after"
    u.same_output = unit.result == unit.accumulator
    u.period = unit.period
    order = order_of(unit)
    u.order = order
    return order


cdef int native_fused(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_product_codes g
    native_codes(p, &g)
    return SN_NATIVE_NO_CODE if sn_fused_definition(<const sn_fused_unit *>data, &g) else SN_NATIVE_DONE


cdef int native_chain(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_product_codes g
    native_codes(p, &g)
    return SN_NATIVE_NO_CODE if sn_chain_definition(<const sn_chain_unit *>data, &g) else SN_NATIVE_DONE


cdef int native_two_stage(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_product_codes g
    native_codes(p, &g)
    return SN_NATIVE_NO_CODE if sn_two_stage_definition(<const sn_two_stage_unit *>data, &g) else SN_NATIVE_DONE


cdef int native_grouped(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_product_codes g
    native_codes(p, &g)
    return SN_NATIVE_NO_CODE if sn_grouped_definition(<const sn_grouped_unit *>data, &g) else SN_NATIVE_DONE


cdef class Definition:
    """A unit's GEMM on 64-bit codes, through the scalar functions of the core: what a subclass has filled."""

    cdef sn_definition definition
    cdef const void *unit
    cdef Py_ssize_t kinds  # of roundings that it counts
    cdef sn_native_engine *in_c

    @property
    def native(self):
        """The engine by its addresses (csrc/dispatch/native.h), for callers in C; on codes of 64 bits."""
        return native_pair(self.in_c, self.unit)

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None):
        """Rows m0..m1, columns n0..n1 of one product of codes; nothing here is random: words, keys, batch are unused.

        tallies: None, or uint64 of shape (kinds of roundings, 6), to which those of the unit's header are added.
        """
        cdef sn_product_codes g
        cdef uint32_t flags
        if out.shape[0] == 0 or out.shape[1] == 0:
            return 0
        fill_codes(&g, a, b, c, out, None, m0, m1, n0, n1, first, tallies, self.kinds)
        with nogil:
            flags = self.definition(self.unit, &g)
        return flags

    def run_each(self, a, b, c, out, words):
        """Many short sums, a row of a and b for each: `run_each` in _products.pxd says how."""
        return run_each(self.definition, self.unit, a, b, c, out, words)


cdef class DefinitionFused(Definition):
    """A fused unit's GEMM on 64-bit codes, through the scalar functions of the core."""

    cdef sn_fused_unit u
    cdef int32_t *order

    def __cinit__(self, unit):
        self.definition, self.unit, self.kinds = <sn_definition>sn_fused_definition, &self.u, SN_FUSED_TALLIES
        self.in_c = native_fused
        self.order = fill_unit(&self.u, unit)

    def __dealloc__(self):
        free(self.order)


cdef class DefinitionChain(Definition):
    """The GEMM of a chain of fused multiply-adds on 64-bit codes."""

    cdef sn_chain_unit u
    cdef int32_t *order

    def __cinit__(self, unit):
        self.definition, self.unit, self.kinds = <sn_definition>sn_chain_definition, &self.u, 1
        self.in_c = native_chain
        fill_format(&self.u.a, unit.operand[0])
        fill_format(&self.u.b, unit.operand[1])
        fill_format(&self.u.accumulator, unit.accumulator)
        fill_env(&self.u.env, unit.environment)
        self.order = order_of(unit)
        self.u.order = self.order
        self.u.period = unit.period

    def __dealloc__(self):
        free(self.order)


cdef void fill_two_stage(sn_two_stage_unit *w, unit) except *:
    cdef sn_fused_unit *u = &w.fused
    memset(w, 0, sizeof(sn_two_stage_unit))
    fill_format(&u.a, unit.operand[0])
    fill_format(&u.b, unit.operand[1])
    fill_format(&u.accumulator, unit.accumulator)
    fill_env(&u.sum_env, unit.environment)
    u.terms = u.period = unit.terms
    u.fraction_bits = unit.fraction_bits
    u.zero_exponent = SN_FUSED_NO_FLOOR if unit.zero_exponent is None else unit.zero_exponent
    w.sum_fraction_bits, w.c_fraction_bits = unit.sum_fraction_bits, unit.c_fraction_bits
    w.interleave, w.down = unit.interleave, unit.alignment == "down"
    w.c_reach = -1 if unit.c_reach is None else unit.c_reach
    w.product_limit = SN_TWO_STAGE_NO_LIMIT if unit.product_limit is None else unit.product_limit


cdef class DefinitionTwoStage(Definition):
    """The GEMM of a dot-product-add in two stages on 64-bit codes."""

    cdef sn_two_stage_unit w

    def __cinit__(self, unit):
        self.definition, self.unit, self.kinds = <sn_definition>sn_two_stage_definition, &self.w, 1
        self.in_c = native_two_stage
        fill_two_stage(&self.w, unit)


cdef void fill_grouped(sn_grouped_unit *u, unit) except *:
    memset(u, 0, sizeof(sn_grouped_unit))
    fill_format(&u.products.a, unit.operand[0])
    fill_format(&u.products.b, unit.operand[1])
    u.products.zero_exponent = SN_FUSED_NO_FLOOR
    fill_format(&u.accumulator, unit.accumulator)
    fill_format(&u.partial, unit.partial_format)
    sn_let_raise(&u.accumulator)
    sn_let_raise(&u.partial)
    fill_env(&u.sum_env, unit.environments[0])
    fill_env(&u.partial_env, unit.environments[1])
    u.terms = unit.terms
    if unit.reduction == "bulk":
        u.fraction_bits = unit.fraction_bits
    else:
        u.fraction_bits = SN_GROUPED_EXACT if unit.reduction == "exact" else SN_GROUPED_STEPS
    u.rounded = unit.partial_rounding is not None
    u.first_term = unit.zeros == "signed"
    u.scale = unit.scale
    u.bottom, u.words = unit.bottom, unit.words


cdef class DefinitionGrouped(Definition):
    """The GEMM on 64-bit codes of a unit that sums groups."""

    cdef sn_grouped_unit u

    def __cinit__(self, unit):
        self.definition, self.unit, self.kinds = <sn_definition>sn_grouped_definition, &self.u, SN_GROUPED_TALLIES
        self.in_c = native_grouped
        fill_grouped(&self.u, unit)


def fast(unit):
    """A fused unit's engine on carriers, or None where the definition alone computes it."""
    cdef FastFused engine = FastFused.__new__(FastFused)
    cdef sn_fused_unit u
    engine.order = fill_unit(&u, unit)
    return engine if sn_fused_path(&u, &engine.p) else None


def fast_two_stage(unit):
    """The same of a unit in two stages."""
    cdef FastFused engine = FastFused.__new__(FastFused)
    cdef sn_two_stage_unit w
    fill_two_stage(&w, unit)
    engine.order = NULL
    return engine if sn_two_stage_path(&w, &engine.p) else None


def fast_grouped(unit):
    """The engine on carriers of a unit that sums groups, or None where the definition alone computes it."""
    cdef FastGrouped engine = FastGrouped.__new__(FastGrouped)
    cdef sn_grouped_unit u
    fill_grouped(&u, unit)
    return engine if sn_grouped_path(&u, &engine.p) else None


cdef int native_isa = 0  # that in use when an engine's `native` was last asked for


cdef void native_values(const sn_native_product *p, sn_fused_values *g) noexcept nogil:
    g.a, g.b, g.c, g.out = <const float *>p.a, <const float *>p.b, <const float *>p.c, <float *>p.out
    g.lda, g.ldb, g.ldc, g.ldo = p.lda, p.ldb, p.ldc, p.ldo
    g.m0, g.m1, g.n, g.k = p.m0, p.m1, p.n, p.k


cdef int native_fast_fused(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_fused_values g
    cdef uint64_t saved
    native_values(p, &g)
    saved = sn_fp_enter()
    sn_fused_kernel_for(native_isa)(<const sn_fused_plan *>data, &g)
    sn_fp_leave(saved)
    return SN_NATIVE_DONE


cdef int native_fast_grouped(const void *data, const sn_native_product *p) noexcept nogil:
    cdef sn_fused_values g
    cdef uint64_t saved
    native_values(p, &g)
    saved = sn_fp_enter()
    sn_grouped_kernel_for(native_isa)(<const sn_grouped_plan *>data, &g)
    sn_fp_leave(saved)
    return SN_NATIVE_DONE


cdef class FastOfCarriers:
    """A GEMM on float32 carriers."""

    wide = False

    cdef void compute(self, int isa, const sn_fused_values *g) noexcept nogil:
        pass

    def run_products(self, a, b, c, out, keys, first, last, n):
        """As `FastGemm.run_products`, of float32 arrays."""
        cdef sn_fused_values g
        cdef cnp.ndarray x = a, y = b, z = out, w = c
        cdef uint64_t saved
        cdef int isa = _core.isa_number()
        cdef Py_ssize_t i, start = first, stop = last, m = x.shape[1]
        cdef bint from_c = c is not None
        cdef const float *c0 = <const float *>cnp.PyArray_DATA(w) if from_c else NULL
        cdef const float *a0 = <const float *>cnp.PyArray_DATA(x)
        cdef const float *b0 = <const float *>cnp.PyArray_DATA(y)
        cdef float *out0 = <float *>cnp.PyArray_DATA(z)
        g.lda, g.ldb, g.ldo = x.shape[2], y.shape[2], z.shape[2]
        g.m0, g.m1, g.n, g.k = 0, m, n, x.shape[2]
        g.c, g.ldc = NULL, 0
        with nogil:
            saved = sn_fp_enter()
            for i in range(start, stop):
                g.a, g.b, g.out = a0 + i * m * g.lda, b0 + i * g.k * g.ldb, out0 + i * m * g.ldo
                if from_c:
                    g.c, g.ldc = c0 + i * m * g.ldo, g.ldo
                self.compute(isa, &g)
            sn_fp_leave(saved)

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)):
        """Rows m0..m1 and columns n0..n1 of one product of contiguous float32 arrays; b's rows may be padded."""
        cdef Py_ssize_t row = first[0], column = <Py_ssize_t>n0 - <Py_ssize_t>first[1]
        cdef sn_fused_values g
        cdef cnp.ndarray x = a, y = b, z = out, w
        cdef uint64_t saved
        cdef int isa = _core.isa_number()
        g.lda, g.ldb, g.ldo = x.strides[0] // 4, y.strides[0] // 4, z.strides[0] // 4
        g.m0, g.m1, g.n, g.k = m0, m1, n1 - n0, a.shape[1]
        g.a = <const float *>before(cnp.PyArray_DATA(x), row * g.lda, 4)
        g.b = <const float *>cnp.PyArray_DATA(y) + column
        g.out = <float *>before(cnp.PyArray_DATA(z), row * g.ldo - column, 4)
        g.c = NULL
        g.ldc = 0
        if c is not None:
            w = c
            g.ldc = w.strides[0] // 4
            g.c = <const float *>before(cnp.PyArray_DATA(w), row * g.ldc - column, 4)
        with nogil:
            saved = sn_fp_enter()
            self.compute(isa, &g)
            sn_fp_leave(saved)


cdef class FastFused(FastOfCarriers):
    """A fused unit's: what `fast` and `fast_two_stage` make."""

    cdef sn_fused_plan p
    cdef int32_t *order

    @property
    def native(self):
        """The engine by its addresses (csrc/dispatch/native.h), for callers in C."""
        global native_isa
        native_isa = _core.isa_number()
        return native_pair(native_fast_fused, &self.p)

    cdef void compute(self, int isa, const sn_fused_values *g) noexcept nogil:
        sn_fused_kernel_for(isa)(&self.p, g)

    @property
    def plan(self):
        """The fields of sn_fused_plan (csrc/products/fused/fused.h) by name."""
        p = &self.p
        return {
            "least_a": p.least_a, "least_b": p.least_b, "least_c": p.least_c, "floor": p.floor, "low": p.low,
            "high": p.high, "nearest": bool(p.nearest), "may_carry": bool(p.may_carry), "group": p.group,
            "keep": p.keep, "to_constant": p.to_constant, "bounded": bool(p.bounded), "limit": p.limit,
            "least_start": p.least_start, "most_start": p.most_start,
        }

    def __dealloc__(self):
        free(self.order)


cdef class FastGrouped(FastOfCarriers):
    """That of a unit that sums groups: what `fast_grouped` makes."""

    cdef sn_grouped_plan p

    @property
    def native(self):
        """The engine by its addresses (csrc/dispatch/native.h), for callers in C."""
        global native_isa
        native_isa = _core.isa_number()
        return native_pair(native_fast_grouped, &self.p)

    cdef void compute(self, int isa, const sn_fused_values *g) noexcept nogil:
        sn_grouped_kernel_for(isa)(&self.p, g)
