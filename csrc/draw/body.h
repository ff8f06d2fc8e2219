/* The passes of draw.h, in vectors of 64-bit lanes: included once per instruction set, by draw_*.c. */
#ifndef SOFTNUM_DRAW_BODY_H
#define SOFTNUM_DRAW_BODY_H

#include "draw/draw.h"
#include "lanes/isa.h"

SN_INLINE sn_wu SN_(pick)(sn_wu word, sn_wu n) { return SN_MULTIPLY32((word * SN_DRAW_ODD) >> 32, n) >> 32; }

/* SplitMix64's finalizer. */
SN_INLINE sn_wu SN_(mixed)(sn_wu z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void SN_(draw_words)(sn_u64 base, sn_u64 *words, size_t n) {
    sn_wu z;
    for (int i = 0; i < SN_W; i++)
        z[i] = base + (sn_u64)(i + 1) * SN_DRAW_ODD;
    size_t i = 0;
    for (; i + SN_W <= n; i += SN_W, z += SN_W * SN_DRAW_ODD) {
        const sn_wu drawn = SN_(mixed)(z);
        memcpy(words + i, &drawn, sizeof drawn);
    }
    const sn_wu last = SN_(mixed)(z);
    memcpy(words + i, &last, (n - i) * sizeof *words);
}

SN_INLINE sn_wu SN_(with_field)(const sn_draw_rule *r, sn_wu code, sn_wu field) {
    const sn_wi top = (sn_wi){0} + (sn_i64)r->top, at = (sn_wi)field & (sn_wi)((sn_wi)field > 0);
    return (code & r->kept) | (sn_wu)SN_SELECT64(at > top, top, at) << r->shift;
}

SN_INLINE sn_wu SN_(with_tail)(const sn_draw_rule *r, sn_wu code, sn_wu word) {
    const sn_wu one = (sn_wu){0} + 1, low = SN_LEFT64(one, SN_(pick)(word, one * r->count)) - 1, lead = (low + 1) >> 1,
                ones = low & (0 - (word & 1)), led = 0 - (word >> 1 & 1);
    return (code & ~low) | SN_SELECT64(led, lead | (ones & 1), ones);
}

SN_INLINE sn_wu SN_(entries)(const sn_u64 *table, sn_wu index) {
    sn_wu found = {0};
    for (int i = 0; i < SN_W; i++)
        found[i] = table[index[i]];
    return found;
}

SN_INLINE sn_wu SN_(drawn)(int kind, const sn_draw_rule *r, sn_wu word, sn_wu code) {
    const sn_wu zero = {0}, count = zero + r->count;
    switch (kind) {
    case SN_DRAW_UNIFORM: return word & r->kept;
    case SN_DRAW_EXPONENT: return (word >> r->shift & r->top) + (sn_u64)r->first;
    case SN_DRAW_NEAR: return SN_(with_field)(r, word, (sn_u64)r->first + SN_(pick)(word, count));
    case SN_DRAW_SIGNED:
        return (sn_wu)((sn_wi)(word << r->shift) >> (sn_wi)(SN_(pick)(word, count) + (sn_u64)r->shift)) & r->kept;
    case SN_DRAW_UNSIGNED: return SN_RIGHT64(word << r->shift, SN_(pick)(word, count) + (sn_u64)r->shift);
    case SN_DRAW_EDGE: return SN_(entries)(r->table, SN_(pick)(word, count));
    case SN_DRAW_TAIL: return SN_(with_tail)(r, code, SN_(mixed)(word + r->salt));
    case SN_DRAW_BESIDE: return ((code ^ r->flip) - r->less + SN_(pick)(word, zero + 5) - 2) & r->kept;
    case SN_DRAW_NUMBER: {
        const sn_wu drawn = SN_(mixed)(word + r->salt), other = 0 - (drawn >> 3 & 1);
        return SN_SELECT64(other, zero + (sn_u64)r->other_first, zero + (sn_u64)r->first) +
               SN_(pick)(drawn, SN_SELECT64(other, zero + r->other_count, count));
    }
    default: return SN_(with_field)(r, code, word + (sn_u64)r->first); /* SN_DRAW_PLACE */
    }
}

/* n lanes of them. */
SN_INLINE void SN_(draw_lanes)(int kind, int chosen, const sn_draw_rule *r, const sn_u64 *word, const sn_u64 *choice,
                               sn_u64 *code, size_t n) {
    sn_wu words = {0}, choices = {0}, codes = {0};
    memcpy(&words, word, n * sizeof *word);
    memcpy(&codes, code, n * sizeof *code);
    sn_wu result = SN_(drawn)(kind, r, words, codes);
    if (chosen) {
        memcpy(&choices, choice, n * sizeof *choice);
        result = SN_SELECT64(SN_(pick)(choices, (sn_wu){0} + r->most) == r->which, result, codes);
    }
    memcpy(code, &result, n * sizeof *code);
}

SN_INLINE void SN_(draw_all)(int kind, int chosen, const sn_draw_rule *rule, ptrdiff_t rows, ptrdiff_t columns,
                             sn_draw_array words, sn_draw_array choices, sn_draw_array codes) {
    const sn_draw_rule r = *rule; /* which codes cannot alias */
    for (ptrdiff_t row = 0; row < rows; row++) {
        const sn_u64 *const word = words.at + row * words.step, *const choice = choices.at + row * choices.step;
        sn_u64 *const code = codes.at + row * codes.step;
        ptrdiff_t i = 0;
        for (; i + SN_W <= columns; i += SN_W)
            SN_(draw_lanes)(kind, chosen, &r, word + i, choice + i, code + i, SN_W);
        if (i < columns) SN_(draw_lanes)(kind, chosen, &r, word + i, choice + i, code + i, (size_t)(columns - i));
    }
}

static void SN_(draw_apply)(const sn_draw_rule *rule, ptrdiff_t rows, ptrdiff_t columns, sn_draw_array words,
                            sn_draw_array choices, sn_draw_array codes) {
#define RULE(kind)                                                                                                     \
    case kind: SN_(draw_all)(kind, 0, rule, rows, columns, words, words, codes); break
    if (rule->most) {
        SN_(draw_all)(SN_DRAW_EDGE, 1, rule, rows, columns, words, choices, codes);
        return;
    }
    switch (rule->kind) {
        RULE(SN_DRAW_UNIFORM);
        RULE(SN_DRAW_NEAR);
        RULE(SN_DRAW_SIGNED);
        RULE(SN_DRAW_UNSIGNED);
        RULE(SN_DRAW_EDGE);
        RULE(SN_DRAW_TAIL);
        RULE(SN_DRAW_BESIDE);
        RULE(SN_DRAW_NUMBER);
        RULE(SN_DRAW_PLACE);
        RULE(SN_DRAW_EXPONENT);
    default: break;
    }
#undef RULE
}

SN_INLINE void SN_(deal_codes)(const sn_u64 *words, ptrdiff_t rows, ptrdiff_t groups, const sn_i64 *order, char *codes,
                               int width) {
    for (ptrdiff_t row = 0; row < rows; row++, words += groups * SN_DRAW_GROUP)
        for (ptrdiff_t g = 0; g < groups; g++)
            for (int i = 0; i < SN_DRAW_GROUP; i += SN_W, codes += SN_W * width) {
                const sn_wu v = sn_load_wu(words + order[g] * SN_DRAW_GROUP + i);
                switch (width) {
                case 1: SN_STORE8_64(codes, v); break;
                case 2: SN_STORE16_64(codes, v); break;
                case 4: SN_STORE32_64(codes, v); break;
                default: SN_STORE64_64(codes, v);
                }
            }
}

static void SN_(deal)(const sn_u64 *words, ptrdiff_t rows, ptrdiff_t groups, const sn_i64 *order, void *codes,
                      int width) {
    switch (width) {
    case 1: SN_(deal_codes)(words, rows, groups, order, codes, 1); break;
    case 2: SN_(deal_codes)(words, rows, groups, order, codes, 2); break;
    case 4: SN_(deal_codes)(words, rows, groups, order, codes, 4); break;
    default: SN_(deal_codes)(words, rows, groups, order, codes, 8);
    }
}

#endif
