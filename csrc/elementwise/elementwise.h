/* Loops over arrays of codes, in the shape of a NumPy ufunc's inner loop (but without Python).
 *
 * Arguments: the operands' codes, then a uint32 random word per element, then a uint64 handle; results: codes, then (if
 * the loop's data say so) a uint8 of flags. Codes of all operands and the result have the loop's width. A handle is an
 * index into a table of contexts; one outside it makes the loop write code 0 and flags 0xff and set table->bad_handle.
 */
#ifndef SOFTNUM_ELEMENTWISE_H
#define SOFTNUM_ELEMENTWISE_H

#include <stddef.h>

#include "dispatch/kernels.h"
#include "softnum/operations/operations.h"

/* The same of elementwise/short/fixed.h: the shift to the common last place; from the exact result's last place to the
 * result's. */
typedef struct {
    sn_u64 mask, sign_mask;
    sn_i32 align;
} sn_fixed_operand;

typedef struct {
    sn_fixed_operand operand[2];
    const sn_env *env;
    sn_u64 mask, highest, lowest;
    sn_i32 right, left;
} sn_fixed_plan;

enum { SN_NO_SHORT_WAY = 0, SN_NORMALS = 1, SN_FIXED_POINT = 2, SN_IN_LANES = 3 };

typedef struct {
    sn_format operand[3], out;
    sn_env env;
    int short_way; /* SN_NORMALS where elementwise/short/floats.h has its domain, and so on; with the next, set by
                      sn_prepare_context */
    sn_normals normals;
    sn_fixed_plan fixed;
    sn_function function; /* SN_IN_LANES: elementwise/functions/functions.h; normals has the rounding of its results */
    const void *table;    /* results of all codes, or of all pairs (a << 8 | b) of 8 bits; or null: sn_give_table */
    const sn_u8 *table_flags; /* their flags */
    int table_width;          /* bytes of a code in it */
    const sn_lanes *lanes;    /* the vector kernels' way, or null */
} sn_context;

typedef struct {
    sn_context **contexts;
    size_t count;
    int bad_handle;
    const sn_kernels *kernels; /* what lanes run on */
} sn_context_table;

/* Whether a loop gives flags; SN_RARE_FLAGS: only what no code tells, SN_NO_CODE and SN_UNDECIDED, is sure to be
 * among them. */
enum { SN_NO_FLAGS = 0, SN_ALL_FLAGS = 1, SN_RARE_FLAGS = 2 };

typedef struct {
    sn_context_table *table;
    int with_flags;
} sn_loop_data;

/* A thread may add contexts, tables and kernels while others compute: what these functions give, others see whole. */
SN_ALWAYS void sn_give_context(sn_context_table *t, sn_context *context) {
    t->contexts[t->count] = context;
    __atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELEASE);
}
SN_ALWAYS sn_context *sn_context_of(const sn_context_table *t, sn_u64 handle) {
    return handle < __atomic_load_n(&t->count, __ATOMIC_ACQUIRE) ? t->contexts[handle] : NULL;
}
SN_ALWAYS void sn_give_table(sn_context *x, const void *table, const sn_u8 *flags, int width) {
    x->table_flags = flags;
    x->table_width = width;
    __atomic_store_n(&x->table, table, __ATOMIC_RELEASE);
}
SN_ALWAYS const void *sn_table_of(const sn_context *x) { return __atomic_load_n(&x->table, __ATOMIC_ACQUIRE); }
SN_ALWAYS void sn_give_kernels(sn_context_table *t, const sn_kernels *kernels) {
    __atomic_store_n(&t->kernels, kernels, __ATOMIC_RELEASE);
}
SN_ALWAYS const sn_kernels *sn_kernels_of(const sn_context_table *t) {
    return __atomic_load_n(&t->kernels, __ATOMIC_ACQUIRE);
}

/* Whether a loop has met a handle outside the table since this was asked last. */
SN_ALWAYS int sn_met_bad_handle(sn_context_table *t) {
    return __atomic_exchange_n(&t->bad_handle, 0, __ATOMIC_RELAXED);
}

typedef void sn_loop(char **args, const ptrdiff_t *count, const ptrdiff_t *steps, void *data);

/* Name and number of operands of operation op, 0 <= op < SN_OPERATION_COUNT. */
const char *sn_operation_name(int op);
int sn_operation_operands(int op);

/* One element of the elementary function fn (SN_ELEMENTARY_..., softnum/elementary/functions.h). */
sn_u64 sn_elementary_code(int fn, const sn_context *context, const sn_u64 *in, sn_u32 random, sn_u32 *flags);

/* Complete a context of operation op, whose formats and environment are set. */
void sn_prepare_context(int op, sn_context *context);

/* Whether the short ways round up: sn_rounds_up, the usual mode without a branch that data decide. The whole fraction
 * is known; odd: 0 or 1. */
SN_ALWAYS sn_u64 sn_short_rounds_up(const sn_env *env, sn_u64 fraction, sn_i32 sign, sn_u64 odd, sn_u32 random) {
    if (env->rounding == SN_NEAREST_EVEN) return fraction + (((sn_u64)1 << 63) - 1 + odd) < fraction;
    const sn_cut cut = {0, fraction, 0};
    return (sn_u64)sn_rounds_up(env, cut, sign, (sn_i32)odd, random);
}

/* The loop of operation op for codes of the given width in bytes (1, 2, 4 or 8); null if there is none. */
sn_loop *sn_loop_for(int op, int width);

/* One element by the definition, which every other way must equal. in: as many codes as operands, at least two. */
sn_u64 sn_define(int op, const sn_context *context, const sn_u64 *in, sn_u32 random, sn_u32 *flags);

/* The number of entries of an operation's table: of one operand of up to 16 bits, or two of up to 8; else 0. */
size_t sn_table_size(int op, const sn_context *context);

/* Fill a table of results of `width` bytes each and their flags, by the definition; returns the OR of the flags. */
sn_u32 sn_fill_table(int op, const sn_context *context, int width, void *table, sn_u8 *flags);

/* SN_LANES_... of operation op; -1 if it is none of those. */
int sn_lanes_operation(int op);

/* Prepare the vector kernels for operation op; 0 if they do not cover it. */
int sn_operation_lanes(int op, const sn_context *context, sn_lanes *p);

/* The loop by table or by vectors; returns 0 where neither applies. As an sn_loop, for codes of `width`. */
int sn_fast_loop(int op, int width, char **args, ptrdiff_t n, const ptrdiff_t *steps, const sn_loop_data *d);

#endif
