# cython: language_level=3
"""Bindings to csrc/products/blocks/block_fused.h: argument structs filled, GIL released, C called. No arithmetic here."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from softnum.runtime._core cimport *
from softnum.mac._products cimport before, fill_codes, sn_product_codes

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
