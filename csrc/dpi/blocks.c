/* Dot products of blocks with scales, of the units that the library was built with, by softnum_dpi.h's contract. */
#include "built.h"

#include <stddef.h>

/* Operands of a dot product: codes. */
typedef struct {
    sn_u64 a[SOFTNUM_WORD_BITS], b[SOFTNUM_WORD_BITS], scale_a[SOFTNUM_WORD_BITS], scale_b[SOFTNUM_WORD_BITS];
    sn_i64 length, blocks;
    sn_number tensor_a, tensor_b;
} operands;

/* The product's and the sum's random words of a step. */
static void words_of(const softnum_block_unit *u, sn_u64 seed, sn_u64 stream, sn_i64 step, sn_u32 words[2]) {
    const int product = u->rounds_product && sn_is_stochastic(&u->product_env), sum = sn_is_stochastic(&u->sum_env);
    words[0] = words[1] = 0;
    if (!product && !sum) return;
    const int wide = u->product_env.stochastic_bits > 16 || u->sum_env.stochastic_bits > 16;
    const sn_source_step at = sn_source_at(&u->random, (sn_u64)step);
    sn_philox_words one = sn_philox_key(seed, stream, SN_DOMAIN_MATMUL);
    const sn_philox_words two = sn_philox_key(seed, stream, SN_DOMAIN_MATMUL_SECOND);
    if (u->random.hart) one.w[0] = (sn_u32)seed; /* the number of the LFSR */
    sn_source_draw(&u->random, &at, 0, 0, 0, one.w, two.w, product && sum, wide, words);
}

static sn_u64 of_sums(const softnum_built *built, operands *o, const sn_u64 *c, sn_u64 seed, sn_u64 stream,
                      sn_u32 *raised) {
    const softnum_block_unit *u = &built->of.block;
    sn_told of_products = sn_told_nothing(NULL), of_sums = sn_told_nothing(NULL);
    const sn_block_rounding r = {
        u->rounds_product ? &u->product : NULL, &u->accumulator, &u->product_env, &u->sum_env, &of_products, &of_sums};
    sn_u64 acc = c && !built->tensors ? *c : 0;
    sn_u32 words[2];
    softnum_built inner;
    for (sn_i64 j = 0; j < o->blocks; j++) {
        const sn_i64 first = j * built->block, rest = o->length - first;
        const sn_i64 size = built->block && built->block < rest ? built->block : rest;
        const sn_number x = sn_unpack(&built->scale_a, o->scale_a[j]), y = sn_unpack(&built->scale_b, o->scale_b[j]);
        words_of(u, seed, stream, o->length + j, words);
        if (u->inner < 0) {
            sn_block_sum sum;
            sn_block_begin(&sum, &x, &y, u->bottom, u->plain, u->words);
            for (sn_i64 k = first; k < first + size; k++) {
                const sn_number p = sn_unpack(&built->a, o->a[k]), q = sn_unpack(&built->b, o->b[k]);
                sn_block_product(&sum, &p, &q);
            }
            acc = sn_block_end(&sum, &r, acc, words);
        } else {
            softnum_built_fill((sn_u64)u->inner, &inner);
            const sn_u64 code = softnum_built_dot(&inner, o->a + first, o->b + first, size, 0, 0, 0, 0, raised);
            const sn_number s = sn_unpack(&u->inner_format, code);
            acc = sn_block_scaled(&r, &s, &x, &y, acc, words);
        }
    }
    if (built->tensors) {
        words_of(u, seed, stream, o->length + o->blocks, words);
        acc = sn_tensor_scaled(&u->accumulator, &u->sum_env, acc, &o->tensor_a, &o->tensor_b, c, words[1], &of_sums);
    }
    *raised |= of_products.flags | of_sums.flags;
    return acc;
}

static sn_u64 fused(const softnum_built *built, const operands *o, const sn_u64 *c, sn_u32 *raised) {
    const sn_block_fused_unit *u = &built->of.block_fused;
    const sn_block_fused_operands given = {o->a, o->b, o->scale_a, o->scale_b, 1, 1, 1, 1, o->length};
    sn_u64 sum = c && !built->tensors ? *c : 0;
    for (sn_i64 k = 0; k < o->length; k += u->fused.terms) {
        sn_fused_told told;
        sum = sn_block_fused_step(u, &given, k, sum, &told);
        *raised |= told.raised;
    }
    if (!built->tensors) return sum;
    sn_told told = sn_told_nothing(NULL);
    sum = sn_tensor_scaled(&u->fused.accumulator, &built->tensor_env, sum, &o->tensor_a, &o->tensor_b, c, 0, &told);
    *raised |= told.flags;
    return sum;
}

/* The scale of an array, 1 of a unit that has none; 0, with a message, of what is no code. */
static int read_tensor(const char *who, int has, const sn_format *f, sn_u64 code, sn_number *scale) {
    if (has && (code & ~(f->magnitude_mask | f->sign_mask))) {
        softnum_error(NULL, "%s: 0x%llx is no scale of an array, which has %d bits", who, (unsigned long long)code,
                      (int)f->bits);
        return 0;
    }
    scale->kind = SN_FINITE;
    scale->sign = scale->exp = 0;
    scale->sig = 1;
    if (has) *scale = sn_unpack(f, code);
    return 1;
}

sn_u64 softnum_dpi_block_dot(const sn_u32 *a, const sn_u32 *b, const sn_u32 *scale_a, const sn_u32 *scale_b,
                             sn_u64 length, sn_u64 c, sn_u64 with_c, sn_u64 unit, sn_u64 seed, sn_u64 stream,
                             sn_u64 tensor_a, sn_u64 tensor_b, sn_u64 *flags) {
    static const char who[] = "softnum_block_dot";
    softnum_built u;
    operands o;
    sn_u32 raised = 0;
    if (!softnum_built_unit(unit, &u))
        return softnum_error(flags, "%s: 0x%llx is no handle of softnum_unit", who, (unsigned long long)unit);
    if (u.kind != SOFTNUM_BLOCK && u.kind != SOFTNUM_BLOCK_FUSED)
        return softnum_error(flags, "%s: the unit's operands are no blocks; softnum_dot takes them", who);
    if (!softnum_built_fits(who, &u, length, with_c, c) || !softnum_built_seed(who, &u, seed, stream) ||
        !read_tensor(who, u.tensors & 1, &u.tensor_a, tensor_a, &o.tensor_a) ||
        !read_tensor(who, u.tensors & 2, &u.tensor_b, tensor_b, &o.tensor_b))
        return softnum_error_again(flags);
    const sn_i32 bits = u.scale_a.bits > u.scale_b.bits ? u.scale_a.bits : u.scale_b.bits;
    o.length = (sn_i64)length;
    o.blocks = u.block ? (o.length + u.block - 1) / u.block : length > 0;
    if (o.blocks > SOFTNUM_WORD_BITS / bits)
        return softnum_error(flags, "%s: %lld scales of %d bits are more than a word's %d bits", who,
                             (long long)o.blocks, (int)bits, (int)SOFTNUM_WORD_BITS);
    if (length == 0) return with_c ? c : 0;
    for (sn_u64 k = 0; k < length; k++) {
        o.a[k] = softnum_element(a, k, u.a.bits);
        o.b[k] = softnum_element(b, k, u.b.bits);
    }
    for (sn_u64 j = 0; j < (sn_u64)o.blocks; j++) {
        o.scale_a[j] = softnum_element(scale_a, j, u.scale_a.bits);
        o.scale_b[j] = softnum_element(scale_b, j, u.scale_b.bits);
    }
    const sn_u64 result = u.kind == SOFTNUM_BLOCK ? of_sums(&u, &o, with_c ? &c : NULL, seed, stream, &raised)
                                                  : fused(&u, &o, with_c ? &c : NULL, &raised);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return result;
}
