#include "products/exact/exact.h"
#include "softnum/units/terms.h"

#include <string.h>

SN_DISPATCH(const sn_exact_kernels, sn_exact_kernels)

sn_u32 sn_exact_word(const sn_exact_unit *u, ptrdiff_t row, ptrdiff_t column) {
    const sn_source_step first = sn_source_at(&u->random, 0);
    sn_u32 words[2];
    sn_source_draw(&u->random, &first, (sn_u32)column, (sn_u32)row, u->batch, u->key, u->key, 0, 0, words);
    return words[1];
}

sn_u32 sn_exact_definition(const sn_exact_unit *u, const sn_product_codes *g) {
    const int random = sn_is_stochastic(&u->env);
    sn_told told = sn_told_nothing(g->tallies);
    sn_format f = u->accumulator;
    if (g->tallies) sn_let_raise(&f); /* a format that raises no flags raises them here, for the tally alone */
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t column = g->n0 + j;
            const sn_u64 start = g->c ? g->c[row * g->ldc + j] : 0;
            sn_u64 *out = g->out + row * g->ldo + j;
            if (g->k == 0) {
                *out = start;
                continue;
            }
            sn_kulisch sum;
            sn_kulisch_clear(&sum, u->bottom, u->words);
            const sn_number c = sn_unpack(&u->accumulator, start);
            sn_kulisch_add(&sum, &c);
            for (ptrdiff_t k = 0; k < g->k; k++) {
                const sn_number x = sn_unpack(&u->operand_a, g->a[row * g->lda + k]);
                const sn_number y = sn_unpack(&u->operand_b, g->b[k * g->ldb + j]);
                sn_kulisch_add_product(&sum, &x, &y);
            }
            sn_u32 word = 0;
            if (random) word = g->words ? g->words[(row * g->n_total + column) * 2 + 1] : sn_exact_word(u, row, column);
            *out = sn_sum_round(&sum, &f, &u->env, word, &told);
        }
    return sn_told_no_code(&told);
}

/* ---- what the fast path leaves to scalars -------------------------------------------------------------------------
 */

int sn_exact_path(const sn_exact_unit *u, sn_facts a, sn_facts b, sn_exact_fast *fast) {
    const sn_facts c = sn_facts_of(&u->accumulator);
    const sn_i32 seen = sn_is_stochastic(&u->env) ? u->env.stochastic_bits + 1 : 2;
    if (!sn_fits(a, 64) || !sn_fits(b, 64) || !sn_fits(c, 64)) return 0;
    if (a.precision + b.precision > 53 || c.precision + seen > 52) return 0;
    if ((a.specials || b.specials || c.specials) && !u->accumulator.has_nan) return 0;
    fast->unit = *u;
    fast->facts[0] = a;
    fast->facts[1] = b;
    fast->facts[2] = c;
    return sn_rounding_prepare(&u->accumulator, &u->env, 64, &fast->rounding);
}

static double power_of_two(sn_i32 exponent) {
    const sn_u64 bits = (sn_u64)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* From all values being multiples of 2^last and below 2^top: see products/exact/body.h. */
static int split_into(sn_exact_split *s, sn_i32 last, sn_i32 top, ptrdiff_t terms) {
    static const sn_i32 room[4] = {0, 51, 103, 155};
    const sn_i32 enough = 9, least = 5, most = 19;
    if (last < -1000 || top > 900) return 0;
    for (sn_i32 pieces = 1; pieces <= 3; pieces++) {
        sn_i32 log = (room[pieces] - (top - last)) / pieces;
        if (top - last > room[pieces]) continue;
        log = log > most ? most : log;
        if (log < (pieces < 3 ? enough : least) && (ptrdiff_t)1 << log < terms) continue;
        s->pieces = pieces;
        s->block = (ptrdiff_t)1 << log;
        sn_i32 below = top;
        for (sn_i32 i = 0; i < pieces - 1; i++) {
            s->grid[i] = below + log - 51;
            s->magic[i] = 1.5 * power_of_two(52 + s->grid[i]);
            below = s->grid[i] - 1;
        }
        s->grid[pieces - 1] = last;
        /* 2^11 blocks of counts below 2^51 stay below 2^62 */
        return terms <= s->block << 11;
    }
    return 0;
}

sn_exact_split sn_exact_split_for(const sn_exact_fast *u, const sn_range range[3], ptrdiff_t k, int has_c) {
    sn_exact_split s = {0, {0, 0, 0}, {0, 0}, 0, 0};
    sn_i32 last[3], top[3];
    for (int i = 0; i < 3; i++) {
        last[i] = top[i] = 0;
        if (range[i].least > range[i].largest) continue;
        last[i] = sn_last_in(u->facts[i], range[i]);
        top[i] = sn_end_in(range[i]);
    }
    sn_i32 low = last[0] + last[1], high = top[0] + top[1];
    if (range[0].least > range[0].largest || range[1].least > range[1].largest) low = high = 0;
    if (has_c) {
        const int none = range[2].least > range[2].largest;
        s.with_c = split_into(&s, none || low < last[2] ? low : last[2], none || high > top[2] ? high : top[2], k + 1);
        if (s.with_c) return s;
    }
    s.with_c = 0;
    if (!split_into(&s, low, high, k)) s.pieces = 0;
    return s;
}

static sn_number number_of(double x) {
    sn_u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return sn_unpack(&sn_binary64, bits);
}

static double delivered(const sn_exact_fast *u, const sn_exact_args *g, sn_kulisch *sum, ptrdiff_t row, ptrdiff_t j) {
    const sn_env exactly = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    const sn_u32 word = sn_is_stochastic(&u->unit.env) ? sn_exact_word(&u->unit, row, g->n0 + j) : 0;
    sn_u32 flags = 0;
    const sn_u64 code = sn_kulisch_round(sum, &u->unit.accumulator, &u->unit.env, word, &flags);
    const sn_u64 bits = sn_convert(&u->unit.accumulator, code, &sn_binary64, &exactly, 0, &flags);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double sn_exact_slow(const sn_exact_fast *u, const sn_exact_args *g, ptrdiff_t row, ptrdiff_t j) {
    sn_kulisch sum;
    sn_kulisch_clear(&sum, u->unit.bottom, u->unit.words);
    const sn_number c = number_of(g->c ? g->c[row * g->ldc + j] : 0);
    sn_kulisch_add(&sum, &c);
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const sn_number x = number_of(g->a[row * g->lda + k]), y = number_of(g->b[k * g->ldb + j]);
        sn_kulisch_add_product(&sum, &x, &y);
    }
    return delivered(u, g, &sum, row, j);
}

double sn_exact_of_counts(const sn_exact_fast *u, const sn_exact_args *g, const sn_exact_split *s,
                          const sn_i64 *const count[3], ptrdiff_t at, ptrdiff_t row, ptrdiff_t j) {
    sn_kulisch sum;
    sn_kulisch_clear(&sum, u->unit.bottom, u->unit.words);
    for (sn_i32 i = 0; i < s->pieces; i++) {
        const sn_i64 n = count[i][at];
        if (n == 0) continue;
        sum.met |= SN_MET_NUMBER;
        sn_kulisch_add_exact(&sum, sn_u128_make(0, n < 0 ? 0 - (sn_u64)n : (sn_u64)n), s->grid[i], n < 0);
    }
    if (g->c && !s->with_c) {
        const sn_number c = number_of(g->c[row * g->ldc + j]);
        sn_kulisch_add(&sum, &c);
    }
    /* the sign of a zero, and infinities, are asked of the operands */
    if (sum.met != SN_MET_NUMBER || !sn_kulisch_low_bits(&sum, 64 * sum.words)) return sn_exact_slow(u, g, row, j);
    return delivered(u, g, &sum, row, j);
}
