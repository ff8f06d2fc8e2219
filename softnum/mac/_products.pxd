"""What the bindings of all units share: the arrays of a part of a product as csrc/products/codes.h states them."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uint32_t, uint64_t, uintptr_t

from softnum.runtime._core cimport sn_format


cdef extern from "dispatch/facts.h" nogil:
    ctypedef struct sn_facts:
        int32_t precision, last, top, specials

    sn_facts sn_facts_of(const sn_format *f)

    ctypedef struct sn_range:
        uint64_t least, largest

cdef extern from "products/codes.h" nogil:
    ctypedef struct sn_tally:
        uint64_t roundings, inexact, underflowed, overflowed, saturated, invalid

    ctypedef struct sn_product_codes:
        const uint64_t *a
        const uint64_t *b
        const uint64_t *c
        uint64_t *out
        const uint32_t *words
        sn_tally *tallies
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k, n_total, n0


cdef extern from "dispatch/native.h" nogil:
    enum: SN_NATIVE_DONE, SN_NATIVE_NO_CODE, SN_NATIVE_NO_MEMORY, SN_NATIVE_LANES

    ctypedef struct sn_native_product:
        const void *a
        const void *b
        const void *c
        void *out
        ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k
        uint32_t key[2]
        uint32_t key2[2]
        uint32_t batch

    ctypedef int sn_native_engine(const void *data, const sn_native_product *p) noexcept nogil


cdef inline void native_codes(const sn_native_product *p, sn_product_codes *g) noexcept nogil:
    """The part of a product of codes that a native caller asks for."""
    g.a, g.b, g.c = <const uint64_t *>p.a, <const uint64_t *>p.b, <const uint64_t *>p.c
    g.out, g.words, g.tallies = <uint64_t *>p.out, NULL, NULL
    g.lda, g.ldb, g.ldc, g.ldo = p.lda, p.ldb, p.ldc, p.ldo
    g.m0, g.m1, g.n, g.k, g.n_total, g.n0 = p.m0, p.m1, p.n, p.k, p.n, 0


cdef inline tuple native_pair(sn_native_engine *engine, const void *data):
    """(address of the function, address of its data), as csrc/dispatch/native.h says."""
    return <uintptr_t>engine, <uintptr_t>data


cdef inline void *before(const void *array, Py_ssize_t elements, Py_ssize_t size) noexcept:
    """Where an array would begin that had so many more elements in front: only its own are ever read or written."""
    return <void *>(<uintptr_t>array - <uintptr_t>(elements * size))


cdef inline sn_tally *tallies_of(array, Py_ssize_t kinds) except? NULL:
    """The tallies in a contiguous uint64 array (kinds of roundings, 6); NULL for None.

    ValueError of fewer rows than the kinds that a definition counts: its unit's `roundings` are not those.
    """
    cdef uint64_t[:, ::1] counts
    if array is None:
        return NULL
    counts = array
    if counts.shape[0] < kinds or counts.shape[1] != 6:
        raise ValueError(f"tallies must have a row for each of {kinds} kinds of roundings, got {counts.shape[0]}")
    return <sn_tally *>&counts[0, 0]


cdef inline void fill_codes(
    sn_product_codes *g, a, b, c, out, words, m0, m1, n0, n1, first, tallies, Py_ssize_t kinds
) except *:
    """Rows m0..m1, columns n0..n1 of a product whose first element here is `first` of the whole; out is not empty.

    a, b, c (or None), out: contiguous uint64 matrices; words: None or contiguous uint32 (M, N, steps, 2); tallies, kinds:
    as `tallies_of` takes them.
    """
    cdef const uint64_t[:, ::1] x = a, y = b, start
    cdef uint64_t[:, ::1] z = out
    cdef const uint32_t[:, :, :, ::1] w
    cdef Py_ssize_t row = first[0], column = <Py_ssize_t>n0 - <Py_ssize_t>first[1]
    g.k = x.shape[1]
    g.lda, g.ldb, g.ldo, g.ldc = x.shape[1], y.shape[1], z.shape[1], z.shape[1]
    g.m0, g.m1, g.n, g.n0, g.n_total = m0, m1, n1 - n0, n0, z.shape[1]
    g.a = <const uint64_t *>before(&x[0, 0], row * g.lda, 8) if g.k else NULL
    g.b = &y[0, column] if g.k else NULL
    g.out = <uint64_t *>before(&z[0, 0], row * g.ldo - column, 8)
    g.c = NULL
    g.words = NULL
    g.tallies = tallies_of(tallies, kinds)
    if c is not None:
        start = c
        g.c = <const uint64_t *>before(&start[0, 0], row * g.ldc - column, 8)
    if words is not None and words.size:
        w = words
        g.words = <const uint32_t *>before(
            &w[0, 0, 0, 0], (row * g.n_total + <Py_ssize_t>n0 - column) * w.shape[2] * 2, 4
        )


ctypedef uint32_t (*sn_definition)(const void *unit, const sn_product_codes *g) noexcept nogil


cdef inline uint32_t run_each(sn_definition definition, const void *unit, a, b, c, out, words) except? 0xFFFFFFFF:
    """out[i], the sum of a[i, k] * b[i, k] from c[i] or +0, for many short sums.

    a, b, c (or None), out: contiguous uint64 of shapes (n, K) and (n,); words: None or contiguous uint32 (n, steps, 2).
    """
    cdef const uint64_t[:, ::1] x = a, y = b
    cdef const uint64_t[::1] start
    cdef uint64_t[::1] z = out
    cdef const uint32_t[:, :, ::1] w
    cdef sn_product_codes g
    cdef Py_ssize_t i, n = z.shape[0], k = x.shape[1], steps = 0
    cdef uint32_t flags = 0
    if n == 0:
        return 0
    g.lda, g.ldb, g.ldc, g.ldo, g.m0, g.m1, g.n, g.k, g.n_total, g.n0 = k, 1, 1, 1, 0, 1, 1, k, 1, 0
    g.a = &x[0, 0] if k else NULL
    g.b = &y[0, 0] if k else NULL
    g.out = &z[0]
    g.c = NULL
    g.words = NULL
    g.tallies = NULL
    if c is not None:
        start = c
        g.c = &start[0]
    if words is not None and words.size:
        w = words
        g.words = &w[0, 0, 0]
        steps = w.shape[1]
    with nogil:
        for i in range(n):
            flags |= definition(unit, &g)
            g.out += 1
            if k:
                g.a += k
                g.b += k
            if g.c != NULL:
                g.c += 1
            if g.words != NULL:
                g.words += 2 * steps
    return flags


cdef inline sn_facts facts_from(x):
    """Of a `softnum.formats.facts.Facts`."""
    cdef sn_facts f
    f.precision, f.last, f.top, f.specials = x.precision, x.last, x.top, x.specials
    return f


cdef inline sn_range range_of(x):
    """Of a float64 array, or None."""
    cdef sn_range r
    r.least, r.largest = 0x7ff0000000000000, 0
    if x is not None:
        size = abs(x)
        size = size[(size > 0) & (size < 1e999)]
        if size.size:
            r.least, r.largest = size.min().view("u8"), size.max().view("u8")
    return r
