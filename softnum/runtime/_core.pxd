from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t


cdef extern from "softnum/softnum.h" nogil:
    enum: SN_FLOAT, SN_FIXED
    enum: SN_LOWEST_SUBNORMAL, SN_LOWEST_NORMAL, SN_LOWEST_ZERO
    enum: SN_NO_CODE
    enum: SN_NEAREST_EVEN, SN_STOCHASTIC, SN_STOCHASTIC_FLOOR, SN_ROUNDING_MODES
    enum: SN_OVERFLOW_INFINITY

    ctypedef struct sn_format:
        int32_t kind, bits, is_signed, mantissa_bits, emin, emax, lowest, has_zero, negative_zero, has_inf, has_nan
        int32_t nan_is_negative_zero
        uint64_t quiet_bit, max_code, inf_code, nan_first, nan_code, magnitude_mask, sign_mask
        int32_t saturating, p3109

    ctypedef struct sn_env:
        int32_t rounding, overflow, tininess, stochastic_bits, flush_inputs, flush_results, nan
        uint64_t invalid_code

    ctypedef struct sn_u128:
        uint64_t hi, lo

    ctypedef struct sn_exact:
        sn_u128 sig
        int32_t exp, sign, sticky, modular

    ctypedef struct sn_philox_words:
        uint32_t w[4]

    enum: SN_ZERO, SN_FINITE, SN_INF, SN_QUIET_NAN, SN_SIGNALING_NAN

    ctypedef struct sn_number:
        int32_t kind, sign, exp
        uint64_t sig

    sn_number sn_unpack(const sn_format *f, uint64_t code) noexcept
    uint64_t sn_round_pack(const sn_format *f, const sn_env *env, const sn_exact *x, uint32_t random,
                           uint32_t *flags) noexcept
    int32_t sn_is_stochastic(const sn_env *env) noexcept
    uint64_t sn_overflowed(const sn_format *f, const sn_env *env, int32_t sign, uint32_t *flags) noexcept
    sn_philox_words sn_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) noexcept
    sn_philox_words sn_philox_key(uint64_t seed, uint64_t stream, uint32_t domain) noexcept


cdef extern from "dispatch/kernels.h" nogil:
    enum: SN_ISA_PORTABLE, SN_ISA_AVX2, SN_ISA_AVX512, SN_ISA_NEON

    enum: SN_WORD_BLOCKS

    ctypedef struct sn_mode:
        const char *name
        int32_t family, negative, constant, direction, bump

    const sn_mode sn_modes[]

    ctypedef struct sn_outcomes:
        uint64_t overflow[2]
        uint64_t infinity[2]
        uint64_t nan

    ctypedef struct sn_rounding:
        int32_t mantissa_bits, biased_emin, rounding, stochastic_bits, family, negative, constant, unusual, no_nan
        int32_t no_infinity, lowest, has_zero, fixed, direction, bump, bits, negative_zero
        uint64_t quantum, half_gap, below_one, least, to_constant, sign_of_zero, sign_mask, code_mask
        uint64_t gap_threshold[2]
        int64_t limit[2]
        int64_t easy, least_limit
        sn_outcomes values, codes

    const sn_format sn_binary32, sn_binary64

    int sn_rounding_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_rounding *r) noexcept

    ctypedef struct sn_decoding:
        int32_t bits

    int sn_decoding_prepare(const sn_format *f, int carrier_bits, sn_decoding *d) noexcept

    ctypedef struct sn_lanes:
        int32_t operation

    ctypedef struct sn_random_source:
        const uint32_t *words
        uint32_t key[2]
        uint64_t first

    ctypedef struct sn_carried:
        int32_t way, operation, operands

    ctypedef struct sn_table:
        const float *x
        size_t rows, columns, inner_rows, outer, inner, column

    ctypedef struct sn_kernels:
        const char *name
        int (*quantize32)(const sn_rounding *r, const float *x, float *out, size_t n,
                          const sn_random_source *random) noexcept nogil
        int (*quantize64)(const sn_rounding *r, const double *x, double *out, size_t n,
                          const sn_random_source *random) noexcept nogil
        int (*encode32)(const sn_rounding *r, const float *x, void *codes, int width, size_t n,
                        const sn_random_source *random) noexcept nogil
        int (*encode64)(const sn_rounding *r, const double *x, void *codes, int width, size_t n,
                        const sn_random_source *random) noexcept nogil
        int (*encode_widened)(const sn_rounding *r, const float *x, void *codes, int width, size_t n,
                              const sn_random_source *random) noexcept nogil
        void (*decode32)(const sn_decoding *d, const void *codes, int width, float *out, size_t n) noexcept nogil
        void (*decode64)(const sn_decoding *d, const void *codes, int width, double *out, size_t n) noexcept nogil
        void (*words)(const sn_random_source *random, uint32_t *words, size_t n) noexcept nogil

    int sn_detect_isa() noexcept
    const sn_kernels *sn_kernels_for(int isa) noexcept
    uint64_t sn_fp_enter() noexcept
    void sn_fp_leave(uint64_t saved) noexcept
    int sn_fp_is_plain() noexcept

    void sn_look_up(const void *table, int entry, const void *codes, int width, void *out, size_t n) noexcept
    uint32_t sn_convert_array(const sn_format *source, const void *x, int x_width, const sn_format *target,
                              const sn_env *env, void *out, int out_width, size_t n) noexcept


cdef extern from "softnum/word/source_words.h" nogil:
    ctypedef struct sn_source:
        int32_t kind, seven, shared, width, shifts, hart
        uint32_t taps

    enum: SN_CAST_NEIGHBOURS

    void sn_source_words(const sn_source *s, const uint32_t *key, uint64_t first, uint32_t *out, uint64_t n) noexcept
    void sn_cast_words(int32_t rounds, uint64_t seed, uint64_t offset, uint64_t row, uint64_t start, uint64_t columns,
                       uint32_t *out) noexcept


cdef void fill_random(sn_source *s, source) except *

cdef extern from "dispatch/device.h" nogil:
    ctypedef struct sn_pattern:
        int32_t way, family, rounding, stochastic_bits, negative, constant, mantissa_bits, biased_emin, lowest
        int32_t is_fixed, has_zero, negative_zero, no_nan, bits
        uint64_t sign_mask, code_mask, quantum, half_gap
        uint64_t gap_threshold[2]
        int32_t direction, bump
        uint64_t least, to_constant
        uint64_t beyond[2]
        int64_t limit[2]
        uint64_t value_overflow[2]
        uint64_t value_infinity[2]
        uint64_t value_nan
        uint64_t code_overflow[2]
        uint64_t code_infinity[2]
        uint64_t code_nan

    ctypedef struct sn_reading:
        int32_t mantissa_bits, bits, is_fixed, negative_zero, nan_is_negative_zero, subnormals
        int64_t low, max_code, inf_code
        uint64_t sign_mask, magnitude_mask, rebias, first

    int sn_pattern_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_pattern *p) noexcept
    int sn_reading_prepare(const sn_format *f, int carrier_bits, sn_reading *r) noexcept


cdef extern from "dispatch/gate.h" nogil:
    ctypedef struct sn_gate:
        pass

    sn_gate *sn_gate_new() noexcept
    uint64_t sn_gate_count(const sn_gate *gate) noexcept
    void sn_gate_raise(sn_gate *gate) noexcept
    uint64_t sn_gate_wait(sn_gate *gate, uint64_t seen, uint64_t spin, uint64_t sleep) noexcept


cdef extern from "elementwise/elementwise.h" nogil:
    enum: SN_OPERATION_COUNT, SN_ELEMENTARY_COUNT, SN_UNDECIDED, SN_TRIGONOMETRIC_EMAX, SN_IN_LANES

    ctypedef struct sn_context:
        sn_format operand[3]
        sn_format out
        sn_env env
        int short_way
        const sn_lanes *lanes

    void sn_prepare_context(int op, sn_context *context) noexcept

    ctypedef struct sn_context_table:
        sn_context **contexts
        size_t count

    void sn_give_context(sn_context_table *t, sn_context *context) noexcept
    sn_context *sn_context_of(const sn_context_table *t, uint64_t handle) noexcept
    void sn_give_table(sn_context *x, const void *table, const uint8_t *flags, int width) noexcept
    const void *sn_table_of(const sn_context *x) noexcept
    void sn_give_kernels(sn_context_table *t, const sn_kernels *kernels) noexcept
    const sn_kernels *sn_kernels_of(const sn_context_table *t) noexcept
    int sn_met_bad_handle(sn_context_table *t) noexcept

    enum:
        SN_NO_FLAGS
        SN_ALL_FLAGS
        SN_RARE_FLAGS

    ctypedef struct sn_loop_data:
        sn_context_table *table
        int with_flags

    ctypedef void sn_loop(char **args, const ptrdiff_t *count, const ptrdiff_t *steps, void *data) noexcept

    const char *sn_operation_name(int op) noexcept
    int sn_operation_operands(int op) noexcept
    sn_loop *sn_loop_for(int op, int width) noexcept
    uint64_t sn_define(int op, const sn_context *context, const uint64_t *operands, uint32_t random,
                       uint32_t *flags) noexcept
    size_t sn_table_size(int op, const sn_context *context) noexcept
    uint32_t sn_fill_table(int op, const sn_context *context, int width, void *table, uint8_t *flags) noexcept
    int sn_operation_lanes(int op, const sn_context *context, sn_lanes *p) noexcept


cdef extern from "elementwise/carried.h" nogil:
    enum: SN_CARRIED_DIMS, SN_CARRIED_OWN, SN_CARRIED_SINGLE, SN_CARRIED_DOUBLE

    ctypedef struct sn_carried_arrays:
        int ndim
        size_t dims[SN_CARRIED_DIMS]
        const float *x[3]
        ptrdiff_t strides[3][SN_CARRIED_DIMS]

    int sn_carried_prepare(int op, const sn_format *operands, const sn_format *out, const sn_env *env,
                           sn_carried *p) noexcept
    int sn_carried_run(const sn_kernels *run, const sn_carried *p, const sn_carried_arrays *a, float *out,
                       size_t first, size_t stop, const sn_random_source *random) noexcept
    size_t sn_tree_scratch(size_t rows) noexcept
    int sn_tree_run(const sn_kernels *run, const sn_carried *p, const sn_table *t, float *out,
                    float *scratch) noexcept


cdef extern from "elementwise/copy.h" nogil:
    enum: SN_COPY_DIMS

    ctypedef struct sn_copy_axis:
        size_t length
        ptrdiff_t in_ "in"
        ptrdiff_t out

    void sn_copy(const void *x, void *out, int width, int ndim, const sn_copy_axis *axes) noexcept


cdef extern from "elementwise/scale.h" nogil:
    ctypedef struct sn_scaling:
        size_t outer, length, inner, size
        int32_t shift, low, high
        double above
        double at_least "from"

    int sn_scale_blocks(const sn_scaling *s, const float *x, float *q, uint8_t *scales) noexcept


cdef bint is_plain(x, int type_number)
cdef void fill_format(sn_format *f, fmt) except *
cdef void fill_env(sn_env *env, tuple e) except *
