/* Dot products of the units that the library was built with, by softnum_dpi.h's contract. */
#include "built.h"

#include <stdio.h>
#include <string.h>

sn_u64 softnum_dpi_unit(const char *name) {
    char known[384] = "";
    size_t n = 0;
    for (sn_u64 i = 0; softnum_built_names[i]; i++) {
        if (name && !strcmp(name, softnum_built_names[i])) return i + 1;
        if (n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", softnum_built_names[i]);
    }
    return softnum_error(NULL, "softnum_unit: no unit '%.40s' (known: %s); softnum rtl build --unit NAME=UNIT adds it",
                         name ? name : "", n ? known : "none");
}

int softnum_built_unit(sn_u64 handle, softnum_built *u) {
    sn_u64 count = 0;
    while (softnum_built_names[count])
        count++;
    if (handle < 1 || handle > count) return 0;
    memset(u, 0, sizeof *u);
    softnum_built_fill(handle - 1, u);
    return 1;
}

/* Codes that are zero or subnormal replaced by +0, code 0. */
static sn_u64 without_small(const sn_format *f, sn_u64 code) {
    sn_env env;
    memset(&env, 0, sizeof env);
    env.flush_inputs = 1;
    return sn_read(f, &env, code).kind == SN_ZERO ? 0 : code;
}

static sn_u64 mad(sn_mad_unit *u, sn_u64 *a, sn_u64 *b, sn_i64 length, sn_i32 with_c, sn_u64 c, sn_u32 *raised) {
    sn_u64 room[2 * (SN_MAX_LANES + 1)];
    sn_told told[SN_MAD_TALLIES];
    for (int i = 0; i < SN_MAD_TALLIES; i++)
        told[i] = sn_told_nothing(NULL);
    for (sn_i64 k = 0; u->positive && k < length; k++) {
        a[k] = without_small(&u->operand_a, a[k]);
        b[k] = without_small(&u->operand_b, b[k]);
    }
    if (u->positive) c = without_small(&u->outer, c);
    const sn_u64 result = sn_mad_dot(u, a, b, length, with_c, c, room, told);
    for (int i = 0; i < SN_MAD_TALLIES; i++)
        *raised |= told[i].flags;
    return result;
}

static sn_u64 exact(const softnum_built *u, const sn_u64 *a, const sn_u64 *b, sn_i64 length, sn_u64 c,
                    const sn_u32 key[2], sn_u32 *raised) {
    const softnum_exact_unit *e = &u->of.exact;
    const sn_source_step first = sn_source_at(&e->random, 0);
    sn_u32 words[2];
    sn_kulisch sum;
    if (length == 0) return c;
    sn_kulisch_clear(&sum, e->bottom, e->words);
    const sn_number start = sn_unpack(&e->accumulator, c);
    sn_kulisch_add(&sum, &start);
    for (sn_i64 k = 0; k < length; k++) {
        const sn_number x = sn_unpack(&u->a, a[k]), y = sn_unpack(&u->b, b[k]);
        sn_kulisch_add_product(&sum, &x, &y);
    }
    sn_source_draw(&e->random, &first, 0, 0, 0, key, key, 0, 0, words);
    return sn_kulisch_round(&sum, &e->accumulator, &e->env, words[1], raised);
}

static sn_u64 grouped(const sn_grouped_unit *u, const sn_u64 *a, const sn_u64 *b, sn_i64 length, sn_u64 c,
                      sn_u32 *raised) {
    sn_told told[SN_GROUPED_TALLIES];
    for (int i = 0; i < SN_GROUPED_TALLIES; i++)
        told[i] = sn_told_nothing(NULL);
    for (sn_i64 first = 0; first < length; first += u->terms)
        c = sn_grouped_step(u, a, 1, b, 1, first, length - first < u->terms ? length : first + u->terms, c, told);
    for (int i = 0; i < SN_GROUPED_TALLIES; i++)
        *raised |= told[i].flags;
    return c;
}

const sn_source *softnum_built_source(const softnum_built *u) {
    switch (u->kind) {
    case SOFTNUM_MAD: return &u->of.mad.random;
    case SOFTNUM_EXACT: return &u->of.exact.random;
    case SOFTNUM_BLOCK: return &u->of.block.random;
    default: return NULL;
    }
}

int softnum_built_seed(const char *who, const softnum_built *u, sn_u64 seed, sn_u64 stream) {
    const sn_source *random = softnum_built_source(u);
    if (!random || !random->hart || !(seed >> 32 || stream)) return 1;
    softnum_error(NULL, "%s: the seed of this unit is the number of its LFSR, below 2^32, and its stream 0", who);
    return 0;
}

sn_u64 softnum_built_dot(softnum_built *u, sn_u64 *a, sn_u64 *b, sn_i64 length, sn_i32 with_c, sn_u64 c, sn_u64 seed,
                         sn_u64 stream, sn_u32 *raised) {
    const sn_source *random = softnum_built_source(u);
    sn_philox_words one = sn_philox_key(seed, stream, SN_DOMAIN_MATMUL);
    const sn_philox_words two = sn_philox_key(seed, stream, SN_DOMAIN_MATMUL_SECOND);
    sn_i32 infinite;
    if (random && random->hart) one.w[0] = (sn_u32)seed; /* the number of the LFSR */
    switch (u->kind) {
    case SOFTNUM_MAD:
        for (int i = 0; i < 2; i++) {
            u->of.mad.key[i] = one.w[i];
            u->of.mad.key2[i] = two.w[i];
        }
        return mad(&u->of.mad, a, b, length, with_c, c, raised);
    case SOFTNUM_FUSED: return sn_fused_dot(&u->of.fused, a, 1, b, 1, length, c, raised, raised);
    case SOFTNUM_CHAIN: return sn_chain_dot(&u->of.chain, a, 1, b, 1, length, c, raised);
    case SOFTNUM_GROUPED: return grouped(&u->of.grouped, a, b, length, c, raised);
    case SOFTNUM_TWO_STAGE:
        for (sn_i64 i = 0; i < sn_two_stage_steps(&u->of.two_stage, length); i++)
            c = sn_two_stage_step(&u->of.two_stage, a, 1, b, 1, length, i * u->of.two_stage.fused.terms, c, raised,
                                  &infinite);
        return c;
    default: return exact(u, a, b, length, c, one.w, raised);
    }
}

int softnum_built_fits(const char *who, const softnum_built *u, sn_u64 length, sn_u64 with_c, sn_u64 c) {
    const sn_i32 of_a = u->table_a ? u->table_bits_a : u->a.bits, of_b = u->table_b ? u->table_bits_b : u->b.bits;
    const sn_i32 bits = of_a > of_b ? of_a : of_b;
    if (length > (sn_u64)(SOFTNUM_WORD_BITS / bits))
        softnum_error(NULL, "%s: %llu elements of %d bits are more than a word's %d bits", who,
                      (unsigned long long)length, (int)bits, (int)SOFTNUM_WORD_BITS);
    else if (with_c > 1)
        softnum_error(NULL, "%s: with_c is 0 or 1", who);
    else if (with_c && (c & ~(u->c.magnitude_mask | u->c.sign_mask)))
        softnum_error(NULL, "%s: c = 0x%llx is no code of the unit's c, which has %d bits", who, (unsigned long long)c,
                      (int)u->c.bits);
    else
        return 1;
    return 0;
}

sn_u64 softnum_dpi_dot(const sn_u32 *a, const sn_u32 *b, sn_u64 length, sn_u64 c, sn_u64 with_c, sn_u64 unit,
                       sn_u64 seed, sn_u64 stream, sn_u64 *flags) {
    static const char who[] = "softnum_dot";
    sn_u64 x[SOFTNUM_WORD_BITS], y[SOFTNUM_WORD_BITS];
    softnum_built u;
    sn_u32 raised = 0;
    if (!softnum_built_unit(unit, &u))
        return softnum_error(flags, "%s: 0x%llx is no handle of softnum_unit", who, (unsigned long long)unit);
    if (u.kind == SOFTNUM_BLOCK || u.kind == SOFTNUM_BLOCK_FUSED)
        return softnum_error(flags, "%s: the unit's operands are blocks, whose scales softnum_block_dot takes", who);
    if (!softnum_built_fits(who, &u, length, with_c, c) || !softnum_built_seed(who, &u, seed, stream))
        return softnum_error_again(flags);
    for (sn_u64 k = 0; k < length; k++) {
        x[k] = u.table_a ? u.table_a[softnum_element(a, k, u.table_bits_a)] : softnum_element(a, k, u.a.bits);
        y[k] = u.table_b ? u.table_b[softnum_element(b, k, u.table_bits_b)] : softnum_element(b, k, u.b.bits);
    }
    const sn_u64 result =
        softnum_built_dot(&u, x, y, (sn_i64)length, (sn_i32)with_c, with_c ? c : 0, seed, stream, &raised);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return result;
}
