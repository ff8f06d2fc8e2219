# cython: language_level=3
"""Bindings to csrc/draw/draw.h: argument structs filled, GIL released, C called. No arithmetic here."""

cimport numpy as cnp
import numpy as np
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from softnum.runtime import _core

cnp.import_array()

cdef extern from "draw/draw.h" nogil:
    enum: SN_DRAW_UNIFORM, SN_DRAW_NEAR, SN_DRAW_SIGNED, SN_DRAW_UNSIGNED, SN_DRAW_EDGE, SN_DRAW_TAIL, SN_DRAW_BESIDE
    enum: SN_DRAW_NUMBER, SN_DRAW_PLACE, SN_DRAW_EXPONENT, SN_DRAW_TABLES, SN_DRAW_GROUP

    ctypedef struct sn_draw_rule:
        int32_t kind, shift
        uint64_t kept, top
        int64_t first, other_first
        uint64_t count, other_count, flip, less, salt, which, most
        const uint64_t *table

    ctypedef struct sn_draw_array:
        uint64_t *at
        ptrdiff_t step

    ctypedef struct sn_draw_kernels:
        void (*words)(uint64_t base, uint64_t *words, size_t n) noexcept nogil
        void (*apply)(const sn_draw_rule *rule, ptrdiff_t rows, ptrdiff_t columns, sn_draw_array words,
                      sn_draw_array choices, sn_draw_array codes) noexcept nogil
        void (*deal)(const uint64_t *words, ptrdiff_t rows, ptrdiff_t groups, const int64_t *order, void *codes,
                     int width) noexcept nogil

    ctypedef struct sn_draw_step:
        const sn_draw_rule *rule
        int operand
        ptrdiff_t first, columns

    enum: SN_DRAW_SLOTS, SN_DRAW_OPERANDS

    const sn_draw_kernels *sn_draw_kernels_for(int isa)
    void sn_draw_block(const sn_draw_kernels *run, const sn_draw_step *steps, int count, uint64_t base, int operands,
                       ptrdiff_t rows, uint64_t *choices, uint64_t *codes) noexcept
    void sn_draw_crossed(int count, const uint64_t **tables, const uint64_t *sizes, const uint64_t *first,
                         const uint64_t *stride, uint64_t **out, size_t n) noexcept nogil

cdef dict KINDS = {
    "uniform": SN_DRAW_UNIFORM, "near": SN_DRAW_NEAR, "signed": SN_DRAW_SIGNED, "unsigned": SN_DRAW_UNSIGNED,
    "edge": SN_DRAW_EDGE, "tail": SN_DRAW_TAIL, "beside": SN_DRAW_BESIDE, "number": SN_DRAW_NUMBER,
    "place": SN_DRAW_PLACE, "exponent": SN_DRAW_EXPONENT,
}  # fmt: skip


cdef ptrdiff_t fill_array(sn_draw_array *a, cnp.ndarray x, cnp.ndarray like) except -1:
    """The array's first element and step; like: one of the shape that it must have. 1 if rows follow each other."""
    if x.ndim != 2 or cnp.PyArray_TYPE(x) != cnp.NPY_UINT64 or not cnp.PyArray_ISALIGNED(x):
        raise ValueError(f"uint64 arrays of rows and columns are needed, got {x.dtype} of shape {np.shape(x)}")
    if x.shape[0] != like.shape[0] or x.shape[1] != like.shape[1]:
        raise ValueError(f"arrays of one shape are needed, got {np.shape(x)} and {np.shape(like)}")
    if x.shape[1] > 1 and x.strides[1] != 8:
        raise ValueError("the elements of a row must lie side by side")
    a.at = <uint64_t *>cnp.PyArray_DATA(x)
    a.step = x.strides[0] // 8
    return a.step == x.shape[1] or x.shape[0] < 2


cdef class Rule:
    """A pass over arrays: one of `KINDS`, with the fields of sn_draw_rule that it goes by."""

    cdef sn_draw_rule rule
    cdef object table

    def __cinit__(
        self, kind, *, shift=0, kept=0, top=0, first=0, count=0, other_first=0, other_count=0, flip=0, less=0, salt=0,
        which=0, most=0, table=None,
    ):  # fmt: skip
        cdef cnp.ndarray entries
        self.rule.kind, self.rule.shift = KINDS[kind], shift
        self.rule.kept, self.rule.top = kept, top
        self.rule.first, self.rule.other_first = first, other_first
        self.rule.count, self.rule.other_count = count, other_count
        self.rule.flip, self.rule.less, self.rule.salt = flip, less, salt
        self.rule.which, self.rule.most = which, most
        if table is not None:
            self.table = entries = np.ascontiguousarray(table, np.uint64)
            self.rule.table, self.rule.count = <const uint64_t *>cnp.PyArray_DATA(entries), len(table)

    def apply(self, cnp.ndarray words not None, cnp.ndarray codes not None, cnp.ndarray choices=None):
        """Words to codes, or codes changed by words: uint64 arrays of rows and columns, which do not overlap."""
        cdef sn_draw_array w, c, d
        cdef ptrdiff_t rows = codes.shape[0], columns = codes.shape[1], whole
        cdef const sn_draw_kernels *run = sn_draw_kernels_for(_core.isa_number())
        if (choices is None) != (self.rule.most == 0):
            raise ValueError("choices are for rules that choose")
        whole = fill_array(&w, words, codes) & fill_array(&c, codes, codes)
        whole &= fill_array(&d, words if choices is None else choices, codes)
        if not cnp.PyArray_ISWRITEABLE(codes):
            raise ValueError("the codes are read-only")
        if whole:
            rows, columns = 1, rows * columns
        with nogil:
            run.apply(&self.rule, rows, columns, w, d, c)


def fill_words(uint64_t[::1] out, uint64_t base):
    """The first elements of the SplitMix64 sequence of `base`."""
    cdef const sn_draw_kernels *run = sn_draw_kernels_for(_core.isa_number())
    if out.shape[0]:
        with nogil:
            run.words(base, &out[0], out.shape[0])


SLOTS = SN_DRAW_SLOTS

DEF MOST_STEPS = 32


def fill_block(list steps, uint64_t base, uint64_t[:, ::1] choices, uint64_t[:, :, ::1] codes):
    """Codes of rows of `SLOTS` slots for each operand by steps (rule, operand, first slot, slots), and the words after.

    Operand k's element i goes by word k * rows * SLOTS + i of the SplitMix64 sequence of `base`.
    """
    cdef const sn_draw_kernels *run = sn_draw_kernels_for(_core.isa_number())
    cdef sn_draw_step all_steps[MOST_STEPS]
    cdef int count = len(steps), i, operands = codes.shape[0]
    cdef ptrdiff_t rows = codes.shape[1]
    cdef Rule rule
    if codes.shape[2] != SLOTS or choices.shape[1] != SLOTS or choices.shape[0] != rows:
        raise ValueError(f"arrays of rows of {SLOTS} slots are needed, got {np.shape(codes)} and {np.shape(choices)}")
    if not 0 < operands <= SN_DRAW_OPERANDS or not rows or count > MOST_STEPS:
        raise ValueError(f"{count} steps for {operands} operands in {rows} rows are no block")
    for i in range(count):
        rule, operand, first, columns = steps[i]
        if not (0 <= operand < operands and 0 <= first <= first + columns <= SLOTS):
            raise ValueError(f"step {i} lies outside: {steps[i]}")
        all_steps[i].rule, all_steps[i].operand = &rule.rule, operand
        all_steps[i].first, all_steps[i].columns = first, columns
    with nogil:
        sn_draw_block(run, all_steps, count, base, operands, rows, &choices[0, 0], &codes[0, 0, 0])


def deal(const uint64_t[:, ::1] words, const int64_t[::1] order, dtype):
    """Codes of a dtype from rows of words, one after the other: in each, group g of 8 is the row's group order[g]."""
    cdef const sn_draw_kernels *run = sn_draw_kernels_for(_core.isa_number())
    cdef ptrdiff_t rows = words.shape[0], groups = words.shape[1] // SN_DRAW_GROUP
    cdef cnp.ndarray codes
    if order.shape[0] != groups or groups * SN_DRAW_GROUP != words.shape[1]:
        raise ValueError(f"{order.shape[0]} groups of {SN_DRAW_GROUP} are no order of {words.shape[1]} words")
    if groups and not 0 <= np.min(order) <= np.max(order) < groups:
        raise ValueError(f"groups are numbered 0..{groups - 1}, got {list(order)}")
    codes = np.empty(words.size, dtype)
    cdef int width = codes.itemsize
    if words.size:
        with nogil:
            run.deal(&words[0, 0], rows, groups, &order[0], cnp.PyArray_DATA(codes), width)
    return codes


def crossed(list tables, first, stride, size_t n):
    """n combinations of up to three tables of uint64 by digits, from `first` by `stride`: an array of each's entries."""
    cdef const uint64_t *entries[SN_DRAW_TABLES]
    cdef uint64_t *out[SN_DRAW_TABLES]
    cdef uint64_t sizes[SN_DRAW_TABLES]
    cdef uint64_t start[SN_DRAW_TABLES]
    cdef uint64_t step[SN_DRAW_TABLES]
    cdef int count = len(tables), k
    if not 0 < count <= SN_DRAW_TABLES:
        raise ValueError(f"1 to {SN_DRAW_TABLES} tables can be crossed, got {count}")
    tables = [np.ascontiguousarray(t, np.uint64) for t in tables]
    results = [np.empty(n, np.uint64) for _ in tables]
    for k in range(count):
        entries[k] = <const uint64_t *>cnp.PyArray_DATA(tables[k])
        out[k] = <uint64_t *>cnp.PyArray_DATA(results[k])
        sizes[k], start[k], step[k] = len(tables[k]), first[k], stride[k]
        if not (start[k] < sizes[k] and step[k] < sizes[k]):
            raise ValueError(f"digit {k} of {first} or {stride} is none of a table of {sizes[k]}")
    with nogil:
        sn_draw_crossed(count, entries, sizes, start, step, out, n)
    return results
