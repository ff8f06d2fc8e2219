# cython: language_level=3
"""Bindings to csrc: argument structs filled, GIL released, C called. No arithmetic here."""

import os
from threading import RLock

cimport numpy as cnp
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset

import numpy as np

from softnum.runtime._core cimport *

cnp.import_array()
cnp.import_umath()

DEF MAX_CONTEXTS = 1 << 18

cdef dict _LOWEST = {"subnormal": SN_LOWEST_SUBNORMAL, "normal": SN_LOWEST_NORMAL, "zero": SN_LOWEST_ZERO}

# ---- formats and environments --------------------------------------------------------------------------------------


cdef void fill_format(sn_format *f, fmt) except *:
    cdef uint64_t all_bits
    if fmt is None or fmt.leads:
        raise ValueError(
            "a format whose codes take two words is computed by the operations on codes and on Arrays alone "
            "(softnum.add, softnum.fma, ...); convert to a format of up to 64 bits" if fmt is None else
            f"what is asked is not computed in {fmt.described}"
        )
    memset(f, 0, sizeof(sn_format))
    f.bits = fmt.bits
    f.is_signed = fmt.signed
    f.has_zero = fmt.has_zero
    f.sign_mask = (<uint64_t>1 << (f.bits - 1)) if f.is_signed else 0
    all_bits = <uint64_t>0xFFFFFFFFFFFFFFFF >> (64 - f.bits)
    f.magnitude_mask = all_bits & ~f.sign_mask
    if fmt.kind == "fixed":
        f.kind = SN_FIXED
        f.mantissa_bits = fmt.fraction_bits
        f.max_code = f.magnitude_mask
        return
    f.kind = SN_FLOAT
    f.mantissa_bits = fmt.mantissa_bits
    f.emin = fmt.emin
    f.emax = fmt.emax
    f.lowest = _LOWEST[fmt.lowest_binade]
    f.negative_zero = fmt.negative_zero
    f.max_code = fmt.max_code
    f.saturating = fmt.saturating
    f.p3109 = fmt.p3109
    f.has_inf = fmt.infinities
    if f.has_inf:
        f.inf_code = fmt.inf_code
    f.has_nan = fmt.has_nan
    if f.has_nan:
        f.nan_code = fmt.nan_code
        f.nan_is_negative_zero = fmt.nan_codes == "negative_zero"
        f.nan_first = f.inf_code + 1 if fmt.nan_codes == "ieee" else f.magnitude_mask
        if fmt.nan_codes == "ieee" and fmt.mantissa_bits >= 2:
            f.quiet_bit = <uint64_t>1 << (fmt.mantissa_bits - 1)


cdef void fill_env(sn_env *env, tuple e) except *:
    (
        env.rounding, env.overflow, env.tininess, env.stochastic_bits, env.flush_inputs, env.flush_results, env.nan,
        env.invalid_code,
    ) = e


def format_facts(fmt):
    """The fields of a format's sn_format by name, in the order of its declaration (format.h)."""
    cdef sn_format f
    fill_format(&f, fmt)
    return {
        "kind": f.kind, "bits": f.bits, "is_signed": f.is_signed, "mantissa_bits": f.mantissa_bits, "emin": f.emin,
        "emax": f.emax, "lowest": f.lowest, "has_zero": f.has_zero, "negative_zero": f.negative_zero,
        "has_inf": f.has_inf, "has_nan": f.has_nan, "nan_is_negative_zero": f.nan_is_negative_zero,
        "quiet_bit": f.quiet_bit, "max_code": f.max_code, "inf_code": f.inf_code, "nan_first": f.nan_first,
        "nan_code": f.nan_code, "magnitude_mask": f.magnitude_mask, "sign_mask": f.sign_mask,
        "saturating": f.saturating, "p3109": f.p3109,
    }


def pattern_facts(fmt, tuple env, int carrier_bits):
    """The fields of an sn_pattern (softnum/device/patterns.h) by name, in order; None outside its domain."""
    cdef sn_format f
    cdef sn_env e
    cdef sn_pattern p
    fill_format(&f, fmt)
    fill_env(&e, env)
    return p if sn_pattern_prepare(&f, &e, carrier_bits, &p) else None


def reading_facts(fmt, int carrier_bits):
    """The fields of an sn_reading, likewise."""
    cdef sn_format f
    cdef sn_reading r
    fill_format(&f, fmt)
    return r if sn_reading_prepare(&f, carrier_bits, &r) else None


# ---- plain arrays ----------------------------------------------------------------------------------------------------
#
# What a call costs that does not depend on the data is most of its time on a few elements. These ways take what is
# usual alone, and answer None where it is not: the general way then computes it, or says what is wrong.

DEF _GRAIN_ELEMENTS = 1 << 20
DEF _KEPT_AT_ONCE = 1024  # elements that are rounded before they are compared
DEF _MOST_AXES = 64  # of NumPy's arrays
GRAIN = _GRAIN_ELEMENTS  # elements for each thread: a quarter of a millisecond or so


cdef bint is_plain(x, int type_number):
    """Whether x is an array of this type, of no subclass, contiguous in C order, aligned, in this machine's bytes."""
    return (
        cnp.PyArray_CheckExact(x)
        and cnp.PyArray_TYPE(<cnp.ndarray>x) == type_number
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>x)
    )


cdef int code_type(int bits):
    """NumPy's type of codes of so many bits."""
    if bits <= 16:
        return cnp.NPY_UINT8 if bits <= 8 else cnp.NPY_UINT16
    return cnp.NPY_UINT32 if bits <= 32 else cnp.NPY_UINT64


cdef cnp.ndarray like(cnp.ndarray x, int type_number):
    """A new array of the shape of x."""
    return cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), type_number, 0)


cdef inline uint64_t element(const void *codes, int width, ptrdiff_t i) noexcept nogil:
    """The code of so many bytes in a place."""
    if width == 1:
        return (<const uint8_t *>codes)[i]
    if width == 2:
        return (<const uint16_t *>codes)[i]
    return (<const uint32_t *>codes)[i] if width == 4 else (<const uint64_t *>codes)[i]


cdef bint are_codes(cnp.ndarray x, int width, uint64_t most):
    """Whether no element of a plain array of unsigned integers, `width` bytes each, lies above `most`."""
    cdef ptrdiff_t i, n = cnp.PyArray_SIZE(x)
    cdef const void *p = cnp.PyArray_DATA(x)
    cdef uint64_t met = 0
    if most == <uint64_t>0xFFFFFFFFFFFFFFFF >> (64 - 8 * width):
        return True
    for i in range(n):
        met |= element(p, width, i)
    return met <= most


cdef bint plain_key(key, uint32_t *words):
    """The key words of a seed, or a (seed, stream), of Python's integers in their range; False for others."""
    cdef sn_philox_words w
    cdef uint64_t seed, stream = 0
    try:
        if type(key) is int:
            seed = key
        elif isinstance(key, tuple) and len(key) == 2 and type(key[0]) is int and type(key[1]) is int:
            seed, stream = key[0], key[1]
        else:
            return False
    except OverflowError:
        return False
    w = sn_philox_key(seed, stream, 0)
    words[0], words[1] = w.w[0], w.w[1]
    return True


# ---- instruction set -------------------------------------------------------------------------------------------------

_ISA_NAMES = {"portable": SN_ISA_PORTABLE, "avx2": SN_ISA_AVX2, "avx512": SN_ISA_AVX512, "neon": SN_ISA_NEON}
cdef int _detected = sn_detect_isa()
cdef int _isa  # of the kernels in use


def available_isas():
    """The instruction sets that this CPU and this build run, slowest first."""
    return [name for name, isa in _ISA_NAMES.items() if isa <= _detected and _name_of(sn_kernels_for(isa)) == name]


cdef _name_of(const sn_kernels *run):
    return None if run == NULL else (<bytes>run.name).decode()


def use_isa(name):
    """Run the fast paths with the named instruction set; ValueError if this CPU or build lacks it."""
    global _isa
    if name not in _ISA_NAMES:
        raise ValueError(f"SOFTNUM_CPU must be one of {', '.join(_ISA_NAMES)}, got {name!r}")
    if name not in available_isas():
        raise ValueError(f"SOFTNUM_CPU={name}: this CPU or build runs only {', '.join(available_isas())}")
    _isa = _ISA_NAMES[name]
    sn_give_kernels(&_table, sn_kernels_for(_isa))


cdef const sn_kernels *kernels() except NULL:
    """The kernels in use: chosen once, when first asked for, so that a wrong SOFTNUM_CPU is an error that can be caught."""
    if sn_kernels_of(&_table) == NULL:
        use_isa(os.environ.get("SOFTNUM_CPU") or available_isas()[-1])
    return sn_kernels_of(&_table)


def isa_number():
    """The instruction set in use, as csrc numbers it."""
    kernels()
    return _isa


def current_isa():
    """The instruction set in use."""
    return _name_of(kernels())

#: In the flags of a ufunc: the result is what stands for a NaN that the format lacks.
NO_CODE = SN_NO_CODE

#: In the flags of an elementary function: the result could not be decided.
UNDECIDED = SN_UNDECIDED

#: The highest exponent of an operand of sin, cos and tan.
TRIGONOMETRIC_EMAX = SN_TRIGONOMETRIC_EMAX

# ---- threads -----------------------------------------------------------------------------------------------------------


cdef class Gate:
    """A count that threads wait for (csrc/dispatch/gate.h)."""

    cdef sn_gate *gate

    def __cinit__(self):
        self.gate = sn_gate_new()
        if self.gate == NULL:
            raise MemoryError("no memory for a gate")

    @property
    def count(self):
        """How often it was raised."""
        return sn_gate_count(self.gate)

    def raise_(self):
        """Add one; who waits goes on."""
        with nogil:
            sn_gate_raise(self.gate)

    def wait(self, uint64_t seen, uint64_t spin, uint64_t sleep):
        """Wait until the count is not `seen`, so many nanoseconds awake and then asleep at most; returns the count."""
        with nogil:
            seen = sn_gate_wait(self.gate, seen, spin, sleep)
        return seen


# ---- contexts and ufuncs ----------------------------------------------------------------------------------------------

# rounding mode -> (number, family, negative, constant, direction, bump), as dispatch/kernels.h explains them
MODES = {
    (<bytes>sn_modes[n].name).decode(): (
        n, sn_modes[n].family, sn_modes[n].negative, sn_modes[n].constant, sn_modes[n].direction, sn_modes[n].bump
    )
    for n in range(SN_ROUNDING_MODES)
}

# name -> (number of the operation, number of operands)
OPERATIONS = {
    (<bytes>sn_operation_name(op)).decode(): (op, sn_operation_operands(op)) for op in range(SN_OPERATION_COUNT)
}

#: those that are evaluated rather than computed: the last rows of the table
ELEMENTARY = frozenset(name for name, (op, _) in OPERATIONS.items() if op >= SN_OPERATION_COUNT - SN_ELEMENTARY_COUNT)

cdef sn_context_table _table
_table.contexts = <sn_context **>calloc(MAX_CONTEXTS, sizeof(void *))
_table.count = 0
cdef dict _handles = {}
_adding = RLock()  # to the table of contexts, or a table of results to one of them


def _renew():
    global _adding
    _adding = RLock()


if hasattr(os, "register_at_fork"):  # a forked child has not the thread that may hold it
    os.register_at_fork(after_in_child=_renew)


def intern_context(operation, formats, out, tuple env):
    """The handle of (operation, operand formats, result format, (rounding, overflow, tininess, r)). Never freed."""
    cdef sn_context *context
    cdef sn_lanes *lanes
    cdef int op = OPERATIONS[operation][0]
    key = (operation, formats, out, env)
    handle = _handles.get(key)
    if handle is not None:
        return handle
    context = <sn_context *>calloc(1, sizeof(sn_context))
    if context == NULL or _table.contexts == NULL:
        raise MemoryError("no memory for an operation's context")
    for i, fmt in enumerate(formats):
        fill_format(&context.operand[i], fmt)
    fill_format(&context.out, out)
    fill_env(&context.env, env)
    sn_prepare_context(op, context)
    kernels()
    lanes = <sn_lanes *>malloc(sizeof(sn_lanes))
    if lanes == NULL:
        raise MemoryError("no memory for an operation's context")
    if sn_operation_lanes(op, context, lanes):
        context.lanes = lanes
    else:
        free(lanes)
        lanes = NULL
    with _adding:
        handle = _handles.get(key)
        if handle is not None:  # another thread was faster
            free(lanes)
            free(context)
            return handle
        if _table.count >= MAX_CONTEXTS:
            raise MemoryError(f"more than {MAX_CONTEXTS} different combinations of operation, formats and modes")
        handle = np.uint64(_table.count)
        sn_give_context(&_table, context)
        _handles[key] = handle
        return handle


def has_lanes(operation, handle):
    """Whether the vector kernels cover the context, flags or not: of functions, with both."""
    cdef const sn_context *context = sn_context_of(&_table, int(handle))
    return context.lanes != NULL or context.short_way == SN_IN_LANES


def define(operation, handle, operands, words):
    """(codes, flags) of an operation by its definition alone: operands and words are 1-d arrays of one length."""
    cdef sn_context *context = sn_context_of(&_table, int(handle))
    cdef uint64_t inputs[3]
    cdef uint32_t flags
    cdef int op = OPERATIONS[operation][0]
    cdef Py_ssize_t i, n = len(words)
    cdef const uint32_t[::1] w = np.ascontiguousarray(words, np.uint32)
    cdef const uint64_t[:, ::1] a = np.ascontiguousarray(operands, np.uint64).reshape(len(operands), n)
    codes, all_flags = np.empty(n, np.uint64), np.empty(n, np.uint8)
    cdef uint64_t[::1] c = codes
    cdef uint8_t[::1] f = all_flags
    for i in range(n):
        for k in range(a.shape[0]):
            inputs[k] = a[k, i]
        flags = 0
        c[i] = sn_define(op, context, inputs, w[i], &flags)
        f[i] = <uint8_t>flags
    return codes, all_flags


def tabulate(operation, handle, int width, Py_ssize_t n):
    """Give a context of a deterministic mode its table of results, codes of `width` bytes, if n elements are worth it.

    Returns the OR of the flags of all results, or None without a table.
    """
    cdef sn_context *context = sn_context_of(&_table, int(handle))
    cdef int op = OPERATIONS[operation][0]
    cdef size_t size = sn_table_size(op, context)
    if sn_table_of(context) == NULL:
        if size == 0 or width > 4:
            return None
        with _adding:
            if sn_table_of(context) == NULL and not add_table(op, context, int(handle), width, size, n):
                return None
    return _flags_of_tables[int(handle)]


cdef bint add_table(int op, sn_context *context, handle, int width, size_t size, Py_ssize_t n) except -1:
    """Make the table if n elements are worth it; whether they are."""
    cdef void *table
    cdef uint8_t *flags
    if op >= SN_OPERATION_COUNT - SN_ELEMENTARY_COUNT:  # so slow that many calls pay for a table together
        n = _evaluated[handle] = _evaluated.get(handle, 0) + n
        if n < <Py_ssize_t>size:
            return False
    elif n < <Py_ssize_t>min(size, <size_t>4096 if operation_is_binary(op) else size):
        return False
    table, flags = malloc(size * width), <uint8_t *>malloc(size)
    if table == NULL or flags == NULL:
        free(table)
        free(flags)
        raise MemoryError(f"no memory for a table of {size} results")
    _flags_of_tables[handle] = sn_fill_table(op, context, width, table, flags)
    sn_give_table(context, table, flags, width)
    return True


cdef bint operation_is_binary(int op):
    return sn_operation_operands(op) == 2


cdef dict _flags_of_tables = {}
cdef dict _evaluated = {}  # elements of elementary functions, by handle, while there is no table

cdef sn_loop_data _loops[3]  # SN_NO_FLAGS, SN_ALL_FLAGS, SN_RARE_FLAGS
cdef int _i
for _i in range(3):
    _loops[_i].table = &_table
    _loops[_i].with_flags = _i

cdef cnp.PyUFuncGenericFunction _functions[SN_OPERATION_COUNT][4]
cdef void *_data[3][4]
cdef char _types[SN_OPERATION_COUNT][2][4 * 7]


cdef object make_ufunc(name, int op, int operands, int data):
    cdef int w, t, at, flags = data != SN_NO_FLAGS
    cdef int codes[4]
    codes[0], codes[1], codes[2], codes[3] = cnp.NPY_UINT8, cnp.NPY_UINT16, cnp.NPY_UINT32, cnp.NPY_UINT64
    at = 0
    for w in range(4):
        _functions[op][w] = <cnp.PyUFuncGenericFunction><void *>sn_loop_for(op, 1 << w)
        _data[data][w] = <void *>(&_loops[data])
        for t in range(operands):
            _types[op][flags][at] = <char>codes[w]
            at += 1
        _types[op][flags][at] = <char>cnp.NPY_UINT32
        _types[op][flags][at + 1] = <char>cnp.NPY_UINT64
        _types[op][flags][at + 2] = <char>codes[w]
        at += 3
        if flags:
            _types[op][flags][at] = <char>cnp.NPY_UINT8
            at += 1
    doc = f"{name} on codes: ({'codes, ' * operands}uint32 random word, uint64 handle) -> codes{', flags' if flags else ''}"
    name_bytes, doc_bytes = name.encode(), doc.encode()
    _KEEP.append((name_bytes, doc_bytes))
    return cnp.PyUFunc_FromFuncAndData(
        &_functions[op][0], &_data[data][0], &_types[op][flags][0], 4, operands + 2, 1 + flags, cnp.PyUFunc_None,
        <char *>name_bytes, <char *>doc_bytes, 0,
    )


_KEEP = []
UFUNCS = {name: make_ufunc(name, op, operands, SN_NO_FLAGS) for name, (op, operands) in OPERATIONS.items()}
UFUNCS_FLAGS = {name: make_ufunc(name, op, operands, SN_ALL_FLAGS) for name, (op, operands) in OPERATIONS.items()}
# flags of what has no code or could not be decided; the others may be missing
UFUNCS_RARE = {name: make_ufunc(name, op, operands, SN_RARE_FLAGS) for name, (op, operands) in OPERATIONS.items()}


def check_handles():
    """Raise if a ufunc has met a handle that was never given out."""
    if sn_met_bad_handle(&_table):
        raise ValueError("a ufunc was given a handle that intern_context never returned")


cdef class PlainOperation:
    """An operation on plain arrays of codes of one width, of one shape or without dimensions, without table or thread.

    longest: the most elements that it takes. out: of no wider codes than the operands.
    """

    cdef sn_loop *loop
    cdef sn_loop_data *data
    cdef uint64_t handle
    cdef uint64_t most[3]
    cdef int operands, type_number, out_type, width, out_width
    cdef bint stochastic
    cdef Py_ssize_t longest

    def __cinit__(self, operation, formats, out, tuple env, bint with_flags, Py_ssize_t longest):
        cdef int op, i
        cdef sn_env e
        fill_env(&e, env)
        op, self.operands = OPERATIONS[operation]
        self.handle = int(intern_context(operation, formats, out, env))
        for i in range(self.operands):
            self.most[i] = <uint64_t>0xFFFFFFFFFFFFFFFF >> (64 - <int>formats[i].bits)
        self.width, self.out_width = formats[0].storage_dtype.itemsize, out.storage_dtype.itemsize
        self.type_number, self.out_type = code_type(formats[0].bits), code_type(out.bits)
        self.stochastic = sn_is_stochastic(&e)
        self.longest = longest
        self.loop = sn_loop_for(op, self.width)
        self.data = &_loops[SN_RARE_FLAGS if with_flags else SN_NO_FLAGS]

    def __call__(self, tuple operands, key):
        """The codes of the results; None of other operands or keys, and where a result has no code."""
        cdef cnp.ndarray shaped = None, x, out
        cdef uint32_t none = 0
        cdef sn_random_source random
        cdef char *args[7]  # operands, word, handle, codes, flags
        cdef ptrdiff_t steps[7]
        cdef ptrdiff_t count
        cdef int i, k = self.operands, met
        for i in range(k):
            if not is_plain(operands[i], self.type_number):
                return None
            x = operands[i]
            if cnp.PyArray_NDIM(x) and shaped is not None and not cnp.PyArray_SAMESHAPE(shaped, x):
                return None
            if cnp.PyArray_NDIM(x) or (shaped is None and i + 1 == k):
                shaped = x
            if cnp.PyArray_SIZE(x) > self.longest or not are_codes(x, self.width, self.most[i]):
                return None
            args[i], steps[i] = <char *>cnp.PyArray_DATA(x), self.width if cnp.PyArray_NDIM(x) else 0
        count = cnp.PyArray_SIZE(shaped)
        if count == 0 or (self.stochastic and not plain_key(key, random.key)):
            return None
        out = like(shaped, self.out_type)
        args[k], steps[k] = <char *>&none, 0
        args[k + 1], steps[k + 1] = <char *>&self.handle, 0
        args[k + 2], steps[k + 2] = <char *>cnp.PyArray_DATA(out), self.width
        random.words = NULL
        random.first = 0
        met = self.run(args, steps, count, &random)
        if met < 0:
            raise MemoryError(f"no memory for {count} elements of an operation")
        return None if met & (SN_NO_CODE | SN_UNDECIDED) else out

    cdef int run(self, char **args, ptrdiff_t *steps, ptrdiff_t count, const sn_random_source *random):
        """The OR of the flags where the loop gives them, else 0; -1 for want of memory."""
        cdef const sn_kernels *run = kernels()
        cdef int k = self.operands, met = 0
        cdef ptrdiff_t i
        cdef char *out = args[k + 2]
        cdef uint32_t *words = NULL
        cdef char *wide = NULL
        cdef uint8_t *flags = NULL
        if self.stochastic:
            words = <uint32_t *>malloc(4 * count)
            args[k], steps[k] = <char *>words, 4
        if self.out_width != self.width:
            wide = args[k + 2] = <char *>malloc(self.width * count)
        if self.data.with_flags:
            flags = <uint8_t *>malloc(count)
            args[k + 3], steps[k + 3] = <char *>flags, 1
        if args[k] == NULL or args[k + 2] == NULL or (self.data.with_flags and flags == NULL):
            met = -1
        else:
            with nogil:
                if words != NULL:
                    run.words(random, words, count)
                self.loop(args, &count, steps, self.data)
                if flags != NULL:
                    for i in range(count):
                        met |= flags[i]
                if wide != NULL:
                    for i in range(count):
                        if self.out_width == 1:
                            (<uint8_t *>out)[i] = <uint8_t>element(wide, self.width, i)
                        elif self.out_width == 2:
                            (<uint16_t *>out)[i] = <uint16_t>element(wide, self.width, i)
                        else:
                            (<uint32_t *>out)[i] = <uint32_t>element(wide, self.width, i)
        free(words)
        free(wide)
        free(flags)
        return met

    def of_arrays(self, tuple arrays, kind, key):
        """The same of the codes of objects of a class, whose format must be one object."""
        fmt = arrays[-1].format  # the caller has looked at the last one
        for x in arrays:
            if type(x) is not kind or x.format is not fmt:
                return None
        return self(tuple([x.codes for x in arrays]), key)

# ---- operations on values ------------------------------------------------------------------------------------------------


cdef class CarriedOperation:
    """An operation on float32 arrays, from values of the operands' formats to values of the result's.

    `ok` is False outside the domain of csrc/elementwise/carried.c. Operands broadcast, and may have any strides.
    """

    cdef sn_carried p
    cdef bint stochastic
    cdef readonly bint ok

    def __cinit__(self, operation, formats, out, tuple env):
        cdef sn_format f[3]
        cdef sn_format result
        cdef sn_env e
        cdef int i
        for i, fmt in enumerate(formats):
            fill_format(&f[i], fmt)
        fill_format(&result, out)
        fill_env(&e, env)
        self.stochastic = sn_is_stochastic(&e)
        self.ok = sn_carried_prepare(OPERATIONS[operation][0], f, &result, &e, &self.p)

    def __call__(self, tuple operands, key, cnp.ndarray out=None, size_t start=0, size_t stop=0):
        """The values of the results in a new array; None of other operands or keys, and where a result has no value.

        out, start, stop: the results' array, of which elements start..stop-1 are written; start: a multiple of
        WORD_BLOCK.
        """
        cdef sn_carried_arrays a
        cdef sn_random_source random
        cdef cnp.npy_intp dims[SN_CARRIED_DIMS]
        cdef const sn_kernels *run = kernels()
        cdef int i, bad
        cdef float *target
        if not self.ok or len(operands) != self.p.operands:
            return None
        a.ndim = 0
        for i in range(SN_CARRIED_DIMS):
            dims[i] = 1
        for x in operands:
            if not is_carrier(x) or cnp.PyArray_NDIM(<cnp.ndarray>x) > SN_CARRIED_DIMS:
                return None
            a.ndim = max(a.ndim, cnp.PyArray_NDIM(<cnp.ndarray>x))
        for i in range(self.p.operands):
            if not broadcast_operand(&a, i, dims, <cnp.ndarray>operands[i]):
                return None
        random.words = NULL
        random.first = 0
        random.key[0], random.key[1] = 0, 0
        if self.stochastic and not plain_key(key, random.key):
            return None
        if out is None:
            out = cnp.PyArray_EMPTY(a.ndim, dims, cnp.NPY_FLOAT32, 0)
            stop = cnp.PyArray_SIZE(out)
        target = <float *>cnp.PyArray_DATA(out)
        for i in range(a.ndim):
            a.dims[i] = dims[i]
        with nogil:
            bad = sn_carried_run(run, &self.p, &a, target, start, stop, &random)
        return None if bad else out

    def total(self, x, axes):
        """The sums of a float32 array of values as trees, by this addition; None as of a call, or for random words.

        Neighbours are added in pairs, then the sums in pairs; an odd last one waits. axes: "rows", along the first axis;
        "last"; or "pixels", of images (N, C, H, W) along all but C. The result has one row, with the other axes.
        """
        cdef sn_table t
        cdef cnp.ndarray source, out
        cdef cnp.npy_intp[32] others
        cdef cnp.npy_intp *dims
        cdef int i, ndim
        if not self.ok or self.stochastic or not is_plain(x, cnp.NPY_FLOAT32):
            return None
        source = x
        dims, ndim = cnp.PyArray_DIMS(source), cnp.PyArray_NDIM(source)
        if cnp.PyArray_SIZE(source) == 0 or not 1 <= ndim <= 32:
            return None
        t.x = <const float *>cnp.PyArray_DATA(source)
        others[0] = 1
        if axes == "pixels":
            others[1] = dims[1]
            t.inner_rows = dims[2] * dims[3]
            t.rows = dims[0] * t.inner_rows
            ndim = 2
        else:
            for i in range(1, ndim):
                others[i] = dims[i - 1 if axes == "last" else i]
            t.rows = t.inner_rows = dims[ndim - 1 if axes == "last" else 0]
        out = cnp.PyArray_EMPTY(ndim, others, cnp.NPY_FLOAT32, 0)
        t.columns = cnp.PyArray_SIZE(out)
        t.outer = t.columns * t.inner_rows
        t.inner = t.columns if axes == "rows" else 1
        t.column = 1 if axes == "rows" else t.inner_rows
        return None if self.sum_table(&t, out) else out

    cdef int sum_table(self, const sn_table *t, cnp.ndarray out) except -1:
        cdef const sn_kernels *run = kernels()
        cdef float *target = <float *>cnp.PyArray_DATA(out)
        cdef float *scratch = NULL
        cdef size_t needed = sn_tree_scratch(t.rows)
        cdef int bad
        if needed:
            scratch = <float *>malloc(needed * sizeof(float))
            if scratch == NULL:
                raise MemoryError(f"no memory for {needed} sums")
        with nogil:
            bad = sn_tree_run(run, &self.p, t, target, scratch)
        free(scratch)
        return bad != 0


cdef bint is_carrier(x):
    """Whether x is an array of float32, of no subclass, aligned, in this machine's bytes."""
    return (
        cnp.PyArray_CheckExact(x)
        and cnp.PyArray_TYPE(<cnp.ndarray>x) == cnp.NPY_FLOAT32
        and cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>x)
    )


cdef bint broadcast_operand(sn_carried_arrays *a, int i, cnp.npy_intp *dims, cnp.ndarray x):
    """Where operand i lies, and what it makes of the common shape; False if it does not fit, or has no elements."""
    cdef int d, offset = a.ndim - cnp.PyArray_NDIM(x)
    cdef cnp.npy_intp length
    a.x[i] = <const float *>cnp.PyArray_DATA(x)
    for d in range(a.ndim):
        length = 1 if d < offset else cnp.PyArray_DIM(x, d - offset)
        a.strides[i][d] = 0 if length == 1 else cnp.PyArray_STRIDE(x, d - offset) // <cnp.npy_intp>sizeof(float)
        if length == 0 or (length != 1 and dims[d] != 1 and dims[d] != length):
            return False
        if length != 1:
            dims[d] = length
    return True


# ---- one operation at a time, for compiled code that has no Python ------------------------------------------------------

cdef struct scalar_operation:
    int64_t number, carried  # of the operation; whether the result is converted to a carrier
    sn_context context, back
    uint64_t invalid  # what is returned for want of a code


cdef uint64_t scalar_call(const scalar_operation *s, uint64_t a, uint64_t b, uint64_t c, uint32_t random) noexcept nogil:
    cdef uint64_t operands[3]
    cdef uint32_t flags = 0
    cdef uint64_t code
    operands[0], operands[1], operands[2] = a, b, c
    code = sn_define(<int>s.number, &s.context, operands, random, &flags)
    if flags & SN_NO_CODE:
        return s.invalid
    if s.carried:
        operands[0] = code
        return sn_define(_CONVERT, &s.back, operands, 0, &flags)
    return code


cdef int _CONVERT = OPERATIONS["convert"][0]

#: Where compiled code finds the function (operation as `scalar_words` gives it, a, b, c, random word) -> code.
SCALAR_ADDRESS = <size_t><void *>&scalar_call


cdef void step_words(
    uint64_t block, uint64_t n, uint64_t m, uint64_t batch, uint32_t key0, uint32_t key1, uint32_t *out, uint64_t count
) noexcept nogil:
    cdef sn_philox_words w
    cdef uint64_t j
    for j in range(count):
        w = sn_philox(<uint32_t>block, <uint32_t>(n + j), <uint32_t>m, <uint32_t>batch, key0, key1)
        out[j], out[count + j], out[2 * count + j], out[3 * count + j] = w.w[0], w.w[1], w.w[2], w.w[3]


#: Of the function (block, n, m, batch, key word, key word, out, count): Philox blocks of columns n, n + 1, ...; word i of
#: them stands in out[i * count ...].
WORDS_ADDRESS = <size_t><void *>&step_words


def scalar_words(operation, formats, out, tuple env, carrier, tuple carrier_env, uint64_t invalid):
    """An operation for the function at SCALAR_ADDRESS, as an array of uint64.

    The result is a code of the format out, or of carrier, a wider one, unless that is None; `invalid` where out has no
    code for it.
    """
    cdef scalar_operation s
    memset(&s, 0, sizeof(s))
    s.number = OPERATIONS[operation][0]
    for i, fmt in enumerate(formats):
        fill_format(&s.context.operand[i], fmt)
    fill_format(&s.context.out, out)
    fill_env(&s.context.env, env)
    if carrier is not None:
        s.carried = 1
        fill_format(&s.back.operand[0], out)
        fill_format(&s.back.out, carrier)
        fill_env(&s.back.env, carrier_env)
    s.invalid = invalid
    return np.frombuffer((<char *>&s)[:sizeof(s)], np.uint64).copy()


# ---- random words -----------------------------------------------------------------------------------------------------


def philox(counter, key):
    """Philox4x32-10: four 32-bit counter words and two key words in, four words out."""
    cdef sn_philox_words w = sn_philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])
    return w.w[0], w.w[1], w.w[2], w.w[3]


def philox_key(seed, stream, domain):
    """The two key words of (seed, stream) in a domain."""
    cdef sn_philox_words w = sn_philox_key(seed, stream, domain)
    return w.w[0], w.w[1]


cdef void fill_source(sn_random_source *source, words, key, size_t start) except *:
    """words: contiguous uint32, or None for those of the key; both from element `start` on."""
    cdef cnp.ndarray bits
    source.words = NULL
    source.key[0], source.key[1] = key
    source.first = start
    if words is not None:
        bits = words
        source.words = <const uint32_t *>cnp.PyArray_DATA(bits) + start


WORD_BLOCK = 4 * SN_WORD_BLOCKS


def elementwise_words(key, out, size_t start, size_t stop, uint64_t base=0):
    """The random words of elements base + start..base + stop - 1 of an elementwise operation, into those of out from
    start on."""
    cdef uint32_t[::1] view = out
    cdef sn_random_source source
    cdef const sn_kernels *run = kernels()
    if start % WORD_BLOCK or base % WORD_BLOCK or stop > <size_t>view.shape[0]:
        raise ValueError(f"elementwise_words: no range of words, {start}..{stop} from {base}")
    fill_source(&source, None, key, start)
    source.first += base
    if stop > start:
        with nogil:
            run.words(&source, &view[start], stop - start)


cdef void fill_random(sn_source *s, source) except *:
    """Of a `softnum.arrays.sources.RandomSource`."""
    s.kind, s.seven, s.shared, s.width, s.shifts, s.hart, s.taps = source.numbers.values()


def source_words(source, key, uint64_t first, out):
    """The random words of elements first, first + 1, ... of an elementwise operation under a source, into out."""
    cdef uint32_t[::1] view = out
    cdef uint32_t words[2]
    cdef sn_source s
    cdef size_t n = view.shape[0]
    fill_random(&s, source)
    words[0], words[1] = key
    if n:
        with nogil:
            sn_source_words(&s, words, first, &view[0], n)


def cast_words(int32_t rounds, uint64_t seed, uint64_t offset, size_t rows, size_t columns, out):
    """The random bytes of the elements of a matrix that Transformer Engine casts, into out."""
    cdef uint32_t[::1] view = out
    if <size_t>view.shape[0] != rows * columns or not rows * columns:
        raise ValueError(f"cast_words: {rows} x {columns} words do not fit an array of {view.shape[0]}")
    cdef size_t row, start
    with nogil:
        for row in range(rows):
            start = 0
            while start < columns:
                sn_cast_words(rounds, seed, offset, row, start, columns, &view[row * columns + start])
                start += SN_CAST_NEIGHBOURS


# ---- the floating-point environment ------------------------------------------------------------------------------------


cdef class PlainEnvironment:
    """Within ``with PlainEnvironment():`` this thread rounds to nearest even and flushes nothing, NumPy's casts included."""

    cdef uint64_t saved

    def __enter__(self):
        self.saved = sn_fp_enter()

    def __exit__(self, *error):
        sn_fp_leave(self.saved)


def check_plain(what):
    """FloatingPointError unless this thread is in what `PlainEnvironment` makes."""
    if not sn_fp_is_plain():
        raise FloatingPointError(
            f"{what}: another library has changed how this thread rounds, or lets it flush subnormal numbers to zero; "
            "undo that (of PyTorch: torch.set_flush_denormal(False)), or compute within "
            "softnum.runtime.plain.PlainEnvironment()"
        )


# ---- values ------------------------------------------------------------------------------------------------------------


def round_exact(sign, sig, exp, sticky, fmt, tuple env, random):
    """(code, flags) of the one rounding of (-1)^sign * (sig + s) * 2^exp; sig below 2^128, 0 < s < 1 if sticky."""
    cdef sn_format f
    cdef sn_env e
    cdef sn_exact x
    cdef uint32_t flags = 0
    fill_format(&f, fmt)
    fill_env(&e, env)
    memset(&x, 0, sizeof(x))
    x.sig.hi = sig >> 64
    x.sig.lo = sig & 0xFFFFFFFFFFFFFFFF
    x.exp = exp
    x.sign = sign
    x.sticky = sticky
    code = sn_round_pack(&f, &e, &x, random, &flags)
    return code, flags


def unpack(code, fmt):
    """("finite", "infinite" or "nan", sign, significand, exponent): the value is (-1)^sign * significand * 2^exponent."""
    cdef sn_format f
    cdef sn_number n
    fill_format(&f, fmt)
    n = sn_unpack(&f, code)
    kind = "nan" if n.kind >= SN_QUIET_NAN else "infinite" if n.kind == SN_INF else "finite"
    return kind, n.sign, 0 if n.kind != SN_FINITE else n.sig, n.exp


def convert_array(codes, source, target, tuple env, out):
    """Convert a contiguous array of codes into out, a contiguous array of the same size; returns the OR of all flags."""
    cdef sn_format a, b
    cdef sn_env e
    cdef uint32_t flags
    cdef cnp.ndarray x = codes, y = out
    cdef int x_width = codes.dtype.itemsize, y_width = out.dtype.itemsize
    cdef size_t n = codes.size
    if out.size != codes.size or not (codes.flags.c_contiguous and out.flags.c_contiguous):
        raise ValueError("convert_array needs contiguous arrays of one size")
    fill_format(&a, source)
    fill_format(&b, target)
    fill_env(&e, env)
    with nogil:
        flags = sn_convert_array(&a, cnp.PyArray_DATA(x), x_width, &b, &e, cnp.PyArray_DATA(y), y_width, n)
    return flags


def look_up(table, codes, out, size_t start, size_t stop):
    """out[i] = table[codes[i]] for start <= i < stop; all contiguous, out of the table's type."""
    cdef cnp.ndarray t = table, x = codes, y = out
    cdef int entry = table.dtype.itemsize, width = codes.dtype.itemsize
    cdef const char *source = <const char *>cnp.PyArray_DATA(x) + start * width
    cdef char *target = <char *>cnp.PyArray_DATA(y) + start * entry
    with nogil:
        sn_look_up(cnp.PyArray_DATA(t), entry, source, width, target, stop - start)


def scale_blocks(x, Py_ssize_t axis, Py_ssize_t size, int shift, double above, double at_least, int low, int high, scales):
    """A plain float32 array over its blocks' scales, `size` elements each along an axis; None if one is not finite.

    csrc/elementwise/scale.h says what the numbers are. scales: a uint8 array of the blocks, for exponents less low.
    """
    cdef cnp.ndarray source = x, codes = scales, out = like(source, cnp.NPY_FLOAT32)
    cdef sn_scaling s
    cdef int d, bad
    cdef const float *values = <const float *>cnp.PyArray_DATA(source)
    cdef float *target = <float *>cnp.PyArray_DATA(out)
    cdef uint8_t *target_scales = <uint8_t *>cnp.PyArray_DATA(codes)
    if not is_plain(x, cnp.NPY_FLOAT32) or not is_plain(scales, cnp.NPY_UINT8):
        raise TypeError("scale_blocks takes a plain float32 array, and plain uint8 scales")
    s.outer = s.inner = 1
    for d in range(cnp.PyArray_NDIM(source)):
        if d < axis:
            s.outer *= cnp.PyArray_DIM(source, d)
        elif d > axis:
            s.inner *= cnp.PyArray_DIM(source, d)
    s.length, s.size = cnp.PyArray_DIM(source, <int>axis), size
    s.shift, s.low, s.high, s.above, s.at_least = shift, low, high, above, at_least
    if size < 1 or cnp.PyArray_SIZE(codes) != <Py_ssize_t>(s.outer * ((s.length + size - 1) // size) * s.inner):
        raise ValueError(f"scale_blocks: {cnp.PyArray_SIZE(codes)} scales are not those of blocks of {size}")
    with nogil:
        bad = sn_scale_blocks(&s, values, target, target_scales)
    return None if bad else out


def copy_view(view, out):
    """out[...] = view, arrays of one shape that do not overlap; False, with nothing done, of those it does not take.

    It takes elements of 1, 2, 4 or 8 bytes, aligned and of one type, and up to 8 axes.
    """
    cdef cnp.ndarray x = view, y = out
    cdef sn_copy_axis axes[SN_COPY_DIMS]
    cdef int d, ndim = cnp.PyArray_NDIM(x), width = cnp.PyArray_ITEMSIZE(x)
    cdef const void *source = cnp.PyArray_DATA(x)
    cdef void *target = cnp.PyArray_DATA(y)
    if (
        width not in (1, 2, 4, 8) or ndim > SN_COPY_DIMS or not cnp.PyArray_SAMESHAPE(x, y)
        or cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(y) or not cnp.PyArray_ISBEHAVED_RO(x) or not cnp.PyArray_ISBEHAVED(y)
    ):
        return False
    for d in range(ndim):
        axes[d].length = cnp.PyArray_DIM(x, d)
        axes[d].in_, axes[d].out = cnp.PyArray_STRIDE(x, d) // width, cnp.PyArray_STRIDE(y, d) // width
        if axes[d].length > 1 and (cnp.PyArray_STRIDE(x, d) % width or cnp.PyArray_STRIDE(y, d) % width):
            return False
    with nogil:
        sn_copy(source, target, width, ndim, axes)
    return True


def contiguous(cnp.ndarray x):
    """An array in C order: itself if it is, else a copy, laid out a tile of a plane at a time."""
    cdef cnp.ndarray out
    if cnp.PyArray_IS_C_CONTIGUOUS(x):
        return x
    out = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.PyArray_TYPE(x), 0)
    if cnp.PyArray_TYPE(x) not in (cnp.NPY_FLOAT32, cnp.NPY_FLOAT64, cnp.NPY_UINT8) or not copy_view(x, out):
        return np.ascontiguousarray(x)
    return out


def float32_at(uintptr_t address, shape, strides, owner):
    """The array of float32 at an address, which an owner keeps in memory; strides in elements."""
    cdef cnp.npy_intp sizes[_MOST_AXES]
    cdef cnp.npy_intp steps[_MOST_AXES]
    cdef int d, ndim = len(shape)
    cdef cnp.ndarray out
    if ndim > _MOST_AXES:
        raise ValueError(f"arrays have up to {_MOST_AXES} axes, got {ndim}")
    for d in range(ndim):
        sizes[d], steps[d] = shape[d], 4 * <cnp.npy_intp>strides[d]
    out = cnp.PyArray_New(
        cnp.ndarray, ndim, sizes, cnp.NPY_FLOAT32, steps, <void *>address, 4,
        cnp.NPY_ARRAY_WRITEABLE | cnp.NPY_ARRAY_ALIGNED, None,
    )
    cnp.set_array_base(out, owner)
    return out


cdef cnp.ndarray owner_of(cnp.ndarray x):
    """The array whose memory an array lies in, or the last one before what else holds it."""
    base = cnp.get_array_base(x)
    while isinstance(base, cnp.ndarray):
        x = base
        base = cnp.get_array_base(x)
    return x


def owns_alone(x, others):
    """Whether an array lies in memory of NumPy's own in which others do not, as told by what they are views of."""
    cdef cnp.ndarray owner = owner_of(x)
    if not cnp.PyArray_CHKFLAGS(owner, cnp.NPY_ARRAY_OWNDATA):
        return False
    for other in others:
        if isinstance(other, cnp.ndarray) and owner_of(other) is owner:
            return False
    return True


# ---- callers in C: csrc/dispatch/native.h ------------------------------------------------------------------------------


cdef int native_round(const sn_rounding *r, const void *x, void *out, size_t n, const uint32_t *key, int way) noexcept nogil:
    """way: 0 and 1 values of binary32 and binary64, 2 codes of binary64."""
    cdef sn_random_source random
    cdef const sn_kernels *run = sn_kernels_of(&_table)
    cdef uint64_t saved = sn_fp_enter()
    cdef int bad
    random.words, random.first = NULL, 0
    random.key[0], random.key[1] = key[0], key[1]
    if way == 0:
        bad = run.quantize32(r, <const float *>x, <float *>out, n, &random)
    elif way == 1:
        bad = run.quantize64(r, <const double *>x, <double *>out, n, &random)
    else:
        bad = run.encode64(r, <const double *>x, out, 8, n, &random)
    sn_fp_leave(saved)
    return bad != 0


cdef int native_values32(const void *data, const void *x, void *out, size_t n, const uint32_t *key) noexcept nogil:
    return native_round(<const sn_rounding *>data, x, out, n, key, 0)


cdef int native_values64(const void *data, const void *x, void *out, size_t n, const uint32_t *key) noexcept nogil:
    return native_round(<const sn_rounding *>data, x, out, n, key, 1)


cdef int native_codes64(const void *data, const void *x, void *out, size_t n, const uint32_t *key) noexcept nogil:
    return native_round(<const sn_rounding *>data, x, out, n, key, 2)


cdef int native_decode64(const void *data, const void *codes, void *out, size_t n) noexcept nogil:
    cdef uint64_t saved = sn_fp_enter()
    sn_kernels_of(&_table).decode64(<const sn_decoding *>data, codes, 8, <double *>out, n)
    sn_fp_leave(saved)
    return 0


cdef class Rounder:
    """Values of float32 or float64 to a format's values or codes. `ok` is 0 outside the fast path's domain, else the
    width of the lanes: 64 also for float32 where binary32 does not hold the format, and then only codes are given."""

    cdef sn_rounding r
    cdef int carrier_bits, carrier_type, codes_type
    cdef readonly int ok
    cdef bint stochastic, identity  # identity: all numbers of the carrier are the format's

    def __cinit__(self, fmt, tuple env, int carrier_bits):
        cdef sn_format f
        cdef sn_env e
        cdef const sn_format *own = &sn_binary32 if carrier_bits == 32 else &sn_binary64
        fill_format(&f, fmt)
        fill_env(&e, env)
        self.identity = (
            not memcmp(&f, own, sizeof(sn_format)) and e.rounding == SN_NEAREST_EVEN
            and e.overflow == SN_OVERFLOW_INFINITY and not e.flush_results
        )
        self.carrier_bits = carrier_bits
        self.carrier_type = cnp.NPY_FLOAT32 if carrier_bits == 32 else cnp.NPY_FLOAT64
        self.codes_type = code_type(f.bits)
        self.stochastic = sn_is_stochastic(&e)
        for bits in (carrier_bits, 64):
            if sn_rounding_prepare(&f, &e, bits, &self.r):
                self.ok = bits
                return

    @property
    def native(self):
        """(function to values, function to codes of 64 bits, their data), 0 where there is none: addresses for callers in
        C. Codes are those of float64 alone."""
        kernels()
        values = <uintptr_t>&native_values32 if self.carrier_bits == 32 else <uintptr_t>&native_values64
        codes = <uintptr_t>&native_codes64 if self.carrier_bits == 64 and self.ok else 0
        return values if self.ok == self.carrier_bits else 0, codes, <uintptr_t>&self.r

    cdef bint takes(self, x, key, sn_random_source *random):
        """Whether x is a plain array of the carrier for one thread, and the key, if it counts, of plain integers."""
        random.words = NULL
        random.first = 0
        return (
            is_plain(x, self.carrier_type)
            and cnp.PyArray_SIZE(<cnp.ndarray>x) < 2 * _GRAIN_ELEMENTS
            and (not self.stochastic or plain_key(key, random.key))
        )

    cdef int run_values(self, const void *x, void *out, size_t n, const sn_random_source *random) except -1:
        """n values to values; 1: one had no result."""
        cdef int bad
        cdef uint64_t saved
        cdef const sn_kernels *run = kernels()
        with nogil:
            saved = sn_fp_enter()
            if self.carrier_bits == 32:
                bad = run.quantize32(&self.r, <const float *>x, <float *>out, n, random)
            else:
                bad = run.quantize64(&self.r, <const double *>x, <double *>out, n, random)
            sn_fp_leave(saved)
        return bad != 0

    cdef int run_codes(self, const void *x, void *codes, int width, size_t n,
                       const sn_random_source *random) except -1:
        """n values to codes; 1: one had no code."""
        cdef int bad
        cdef uint64_t saved
        cdef const sn_kernels *run = kernels()
        with nogil:
            saved = sn_fp_enter()
            if self.carrier_bits == 64:
                bad = run.encode64(&self.r, <const double *>x, codes, width, n, random)
            elif self.ok == 32:
                bad = run.encode32(&self.r, <const float *>x, codes, width, n, random)
            else:
                bad = run.encode_widened(&self.r, <const float *>x, codes, width, n, random)
            sn_fp_leave(saved)
        return bad != 0

    def values(self, x, key):
        """The values of a plain array, rounded, in a new one; None for others, and where one has no result."""
        cdef sn_random_source random
        cdef cnp.ndarray out
        if self.ok != self.carrier_bits or not self.takes(x, key, &random):
            return None
        out = like(x, self.carrier_type)
        if self.run_values(cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_DATA(out), cnp.PyArray_SIZE(out), &random):
            return None
        return out

    def codes_of(self, x, key):
        """As `values`, the codes."""
        cdef sn_random_source random
        cdef cnp.ndarray out
        if not self.ok or not self.takes(x, key, &random):
            return None
        out = like(x, self.codes_type)
        if self.run_codes(cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_DATA(out), cnp.PyArray_ITEMSIZE(out),
                          cnp.PyArray_SIZE(out), &random):
            return None
        return out

    cdef bint keeps(self, x) except -1:
        """Whether rounding changes no bit of a plain array, of any length."""
        cdef sn_random_source random
        cdef double room[_KEPT_AT_ONCE]
        cdef const sn_kernels *run = kernels()
        cdef const char *data
        cdef size_t n, m, first = 0
        cdef uint64_t saved
        cdef bint same = self.ok == self.carrier_bits and not self.stochastic and is_plain(x, self.carrier_type)
        if not same:
            return False
        random.words = NULL
        random.first = 0
        data, n = <const char *>cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_SIZE(<cnp.ndarray>x)
        with nogil:
            saved = sn_fp_enter()
            while same and first < n:
                m = min(n - first, <size_t>_KEPT_AT_ONCE)
                if self.carrier_bits == 32:
                    same = not run.quantize32(&self.r, <const float *>data + first, <float *>room, m, &random)
                    same = same and not memcmp(<const float *>data + first, room, 4 * m)
                else:
                    same = not run.quantize64(&self.r, <const double *>data + first, room, m, &random)
                    same = same and not memcmp(<const double *>data + first, room, 8 * m)
                first += m
            sn_fp_leave(saved)
        return same

    def unchanged(self, x):
        """A plain array in which rounding changes nothing but the bits of NaNs, or its `values` where it changes no
        more than the sign of zeros and NaNs; or None."""
        if self.identity and is_plain(x, self.carrier_type) or self.keeps(x):
            return x
        cdef cnp.ndarray out = self.values(x, None)
        cdef Py_ssize_t i, n
        cdef const double *x64
        cdef const double *y64
        cdef const float *x32
        cdef const float *y32
        cdef int changed = 0
        cdef uint64_t saved
        if out is None:
            return None
        n = cnp.PyArray_SIZE(out)
        saved = sn_fp_enter()  # elsewhere subnormal numbers may count as zeros
        if self.carrier_bits == 32:
            x32, y32 = <const float *>cnp.PyArray_DATA(<cnp.ndarray>x), <const float *>cnp.PyArray_DATA(out)
            for i in range(n):
                changed |= (x32[i] != y32[i]) & ((x32[i] == x32[i]) | (y32[i] == y32[i]))
        else:
            x64, y64 = <const double *>cnp.PyArray_DATA(<cnp.ndarray>x), <const double *>cnp.PyArray_DATA(out)
            for i in range(n):
                changed |= (x64[i] != y64[i]) & ((x64[i] == x64[i]) | (y64[i] == y64[i]))
        sn_fp_leave(saved)
        return None if changed else out

    def quantize(self, x, out, words, key, size_t start, size_t stop):
        """Elements start..stop-1 of x to those of out, contiguous carriers; True: one had no result.

        words: contiguous uint32, or None for those of the key; then start is a multiple of WORD_BLOCK.
        """
        cdef cnp.ndarray source = x, target = out
        cdef sn_random_source random
        cdef size_t first = start * (self.carrier_bits // 8)
        fill_source(&random, words, key, start)
        return bool(self.run_values(<const char *>cnp.PyArray_DATA(source) + first,
                                    <char *>cnp.PyArray_DATA(target) + first, stop - start, &random))

    def encode(self, x, codes, words, key, size_t start, size_t stop):
        """As quantize, to codes."""
        cdef cnp.ndarray source = x, target = codes
        cdef sn_random_source random
        cdef int width = codes.dtype.itemsize
        fill_source(&random, words, key, start)
        return bool(self.run_codes(<const char *>cnp.PyArray_DATA(source) + start * (self.carrier_bits // 8),
                                   <char *>cnp.PyArray_DATA(target) + start * width, width, stop - start, &random))


cdef class Rounders:
    """The kernels of a format in an environment from float32 and float64, for plain arrays of either."""

    cdef Rounder single, double

    def __cinit__(self, Rounder single, Rounder double):
        self.single, self.double = single, double

    def quantize(self, x, key):
        """`Rounder.values`."""
        return self.of(x).values(x, key)

    def encode(self, x, key):
        """`Rounder.codes_of`."""
        return self.of(x).codes_of(x, key)

    def unchanged(self, x):
        """`Rounder.unchanged`."""
        return self.of(x).unchanged(x)

    @property
    def native(self):
        """`Rounder.native` of float32 and float64."""
        return self.single.native, self.double.native

    cdef Rounder of(self, x):
        return self.single if is_plain(x, cnp.NPY_FLOAT32) else self.double


cdef class Decoder:
    """A format's codes to float32 or float64. `ok` is False outside the fast path's domain."""

    cdef sn_decoding d
    cdef int carrier_bits, carrier_type, codes_type
    cdef uint64_t most
    cdef readonly bint ok

    def __cinit__(self, fmt, int carrier_bits):
        cdef sn_format f
        fill_format(&f, fmt)
        self.carrier_bits = carrier_bits
        self.carrier_type = cnp.NPY_FLOAT32 if carrier_bits == 32 else cnp.NPY_FLOAT64
        self.codes_type = code_type(f.bits)
        self.most = f.sign_mask | f.magnitude_mask
        self.ok = sn_decoding_prepare(&f, carrier_bits, &self.d)

    @property
    def native(self):
        """(function, its data): addresses for callers in C; of codes of 64 bits to float64, else 0 for the function."""
        kernels()
        return <uintptr_t>&native_decode64 if self.ok and self.carrier_bits == 64 else 0, <uintptr_t>&self.d

    cdef int run(self, const void *codes, int width, void *out, size_t n) except -1:
        cdef uint64_t saved
        cdef const sn_kernels *run = kernels()
        with nogil:
            saved = sn_fp_enter()
            if self.carrier_bits == 32:
                run.decode32(&self.d, codes, width, <float *>out, n)
            else:
                run.decode64(&self.d, codes, width, <double *>out, n)
            sn_fp_leave(saved)
        return 0

    def values(self, codes):
        """The values of a plain array of codes in a new one; None for others, and where one is no code."""
        cdef cnp.ndarray out
        cdef int width
        if not self.ok or not is_plain(codes, self.codes_type) or cnp.PyArray_SIZE(<cnp.ndarray>codes) >= 2 * _GRAIN_ELEMENTS:
            return None
        width = cnp.PyArray_ITEMSIZE(<cnp.ndarray>codes)
        if not are_codes(codes, width, self.most):
            return None
        out = like(codes, self.carrier_type)
        self.run(cnp.PyArray_DATA(<cnp.ndarray>codes), width, cnp.PyArray_DATA(out), cnp.PyArray_SIZE(out))
        return out

    def decode(self, codes, out, size_t start, size_t stop):
        """Codes start..stop-1 to those elements of out, both contiguous."""
        cdef cnp.ndarray source = codes, target = out
        cdef int width = codes.dtype.itemsize
        self.run(<const char *>cnp.PyArray_DATA(source) + start * width, width,
                 <char *>cnp.PyArray_DATA(target) + start * (self.carrier_bits // 8), stop - start)


def overflow_code(fmt, tuple env, sign):
    """The code that a finite value beyond the format's range becomes."""
    cdef sn_format f
    cdef sn_env e
    cdef uint32_t flags = 0
    fill_format(&f, fmt)
    fill_env(&e, env)
    return sn_overflowed(&f, &e, sign, &flags)
