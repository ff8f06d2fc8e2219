/* The loops over arrays: quantize, encode, decode. Included by lanes/round.h, for each carrier and each instruction
 * set. */

/* What was rounded without a result, from the largest magnitude seen. */
SN_INLINE int SN_L(lacks_result)(const sn_rounding *r, L_I top) {
    L_i most = 0;
    for (int i = 0; i < L_N; i++)
        most = top[i] > most ? top[i] : most;
    return (r->no_nan && most > L_INFINITY) || (r->no_infinity && most >= L_INFINITY);
}

/* Whether all that is past the limit, infinite or not, has the code after it: where the format has infinities, and the
 * mode is not one that stops short of them. */
SN_INLINE int SN_L(overflows_to_next)(const sn_rounding *r) {
    const sn_u64 next = (sn_u64)r->limit[0] + 1, minus = next | r->sign_mask;
    const sn_outcomes *o = &r->codes;
    return !r->fixed && r->limit[1] == r->limit[0] && o->overflow[0] == next && o->infinity[0] == next &&
           o->overflow[1] == minus && o->infinity[1] == minus;
}

/* The codes of a vector where a lane lies above r->easy, by the ways of those below: they hold up to r->last, whose
 * code is past the limits, and what is greater has that code or is infinite or NaN. */
SN_INLINE L_U SN_L(code_beyond)(const sn_rounding *r, int family, int in_place, int by_sign, int unusual, int to_next,
                                L_U bits) {
    SN_L(rounded) x = {.u = bits & ~L_SIGN, .sign = bits >> (L_BITS - 1)};
    const L_U zero = {0}, last = zero + (L_u)r->last, near = L_SELECT(x.u > last, last, x.u) | (bits & L_SIGN);
    x.code = in_place ? SN_L(round_in_place)(r, family, near) >> (L_M - r->mantissa_bits)
                      : SN_L(magic_code)(r, family, by_sign, unusual, near);
    if (!to_next) return SN_L(outcome)(r, &r->codes, &x, SN_L(code_with_sign)(r, x.code, bits));
    const L_U next = zero + (L_u)(r->limit[0] + 1), nan = zero + (L_u)r->codes.nan;
    const L_U code = SN_L(code_with_sign)(r, L_SELECT(x.code > next, next, x.code), bits);
    return L_SELECT((L_I)x.u > L_INFINITY, nan, code);
}

/* One vector. in_place: whether r->below_one, known to the compiler as by_sign is. width: of the codes; or to_codes is
 * 0. to_next: of codes, as overflows_to_next. top: the largest magnitude seen of those that may lack a result. */
SN_INLINE void SN_L(step)(const sn_rounding *r, int family, int in_place, int by_sign, int unusual, int to_codes,
                          int to_next, int streaming, const L_F *x, char *out, int width, const sn_u32 *words,
                          L_I *top) {
    L_U bits, word = {0}, result;
    memcpy(&bits, x, sizeof bits);
    const L_I u = (L_I)(bits & ~L_SIGN), easy = (L_I)word + (L_i)r->easy;
    if (family >= SN_FAMILY_STOCHASTIC) word = L_WORDS(words);
    if (family >= SN_FAMILY_STOCHASTIC || __builtin_expect(L_ANY_GREATER(u, easy), 0)) {
        if (to_codes && family < SN_FAMILY_STOCHASTIC && r->last >= 0)
            result = SN_L(code_beyond)(r, family, in_place, by_sign, unusual, to_next, bits);
        else
            result = to_codes ? SN_L(round_to_code)(r, family, unusual, bits, word)
                              : SN_L(round_to_value)(r, family, unusual, bits, word);
        *top = L_MAX(*top, u);
    } else if (in_place) {
        const L_U rounded = SN_L(round_in_place)(r, family, bits);
        result = to_codes ? SN_L(code_with_sign)(r, rounded >> (L_M - r->mantissa_bits), bits)
                          : SN_L(value_with_sign)(r, rounded & ~(L_u)r->below_one, bits);
    } else {
        result = to_codes ? SN_L(code_with_sign)(r, SN_L(magic_code)(r, family, by_sign, unusual, bits), bits)
                          : SN_L(value_with_sign)(r, SN_L(magic_value)(r, family, by_sign, unusual, bits), bits);
    }
    if (to_codes)
        SN_L(store)(out, width, result);
    else if (streaming)
        SN_STREAM(out, result);
    else
        memcpy(out, &result, sizeof result);
}

/* Whether values are written past the caches, as memcpy writes long arrays: they would only displace others there, and
 * a line that is written whole need not be read first. */
SN_INLINE int SN_L(streams)(const L_F *x, const char *out, size_t n) {
    return n >= SN_LONG / sizeof *x && (size_t)out % SN_BYTES == 0 && (const char *)x != out;
}

SN_INLINE int SN_L(run)(const sn_rounding *r, int family, int in_place, int by_sign, int unusual, int to_codes,
                        const L_F *x, char *out, int width, size_t n, const sn_u32 *words) {
    const sn_rounding local = *r; /* out cannot alias it: the loop's invariants stay in registers */
    const size_t whole = n - n % L_N, bytes = to_codes ? (size_t)width : sizeof *x;
    const int streaming = !to_codes && SN_L(streams)(x, out, n);
    const int to_next = to_codes && family < SN_FAMILY_STOCHASTIC && SN_L(overflows_to_next)(r);
    L_I top = {0};
    for (size_t i = 0; i < whole; i += L_N) {
        __builtin_prefetch(x + i + 1024 / sizeof *x); /* a kilobyte ahead: more than the window of execution reaches */
        const sn_u32 *here = family >= SN_FAMILY_STOCHASTIC ? words + i : NULL; /* there is no NULL + i */
        SN_L(step)(&local, family, in_place, by_sign, unusual, to_codes, to_next, streaming, x + i, out + i * bytes,
                   width, here, &top);
    }
    if (streaming) SN_STREAM_END();
    if (whole < n) {
        L_F edge[L_N] = {0};
        sn_u32 edge_words[L_N] = {0};
        char edge_out[L_N * 8];
        memcpy(edge, x + whole, (n - whole) * sizeof *x);
        if (family >= SN_FAMILY_STOCHASTIC) memcpy(edge_words, words + whole, (n - whole) * sizeof *words);
        SN_L(step)(&local, family, in_place, by_sign, unusual, to_codes, to_next, 0, edge, edge_out, width, edge_words,
                   &top);
        memcpy(out + whole * bytes, edge_out, (n - whole) * bytes);
    }
    return SN_L(lacks_result)(r, top);
}

typedef int SN_L(loop)(const sn_rounding *r, const L_F *x, char *out, int width, size_t n, const sn_u32 *words);

#define L_LOOP(family, unusual, to_codes)                                                                              \
    static int SN_L(loop_##family##_##unusual##_##to_codes)(const sn_rounding *r, const L_F *x, char *out, int width,  \
                                                            size_t n, const sn_u32 *words) {                           \
        if (!(unusual) && SN_FAMILY_##family < SN_FAMILY_STOCHASTIC && r->below_one)                                   \
            return SN_L(run)(r, SN_FAMILY_##family, 1, 0, unusual, to_codes, x, out, width, n, words);                 \
        if (SN_BY_SIGN(SN_FAMILY_##family) && r->negative)                                                             \
            return SN_L(run)(r, SN_FAMILY_##family, 0, 1, unusual, to_codes, x, out, width, n, words);                 \
        return SN_L(run)(r, SN_FAMILY_##family, 0, 0, unusual, to_codes, x, out, width, n, words);                     \
    }
#define L_LOOPS(family) L_LOOP(family, 0, 0) L_LOOP(family, 0, 1) L_LOOP(family, 1, 0) L_LOOP(family, 1, 1)
L_LOOPS(EVEN)
L_LOOPS(NEAREST)
L_LOOPS(DIRECTED)
L_LOOPS(ODD)
L_LOOPS(STOCHASTIC)
L_LOOPS(RANDOM)

SN_INLINE SN_L(loop) * SN_L(loop_for)(const sn_rounding *r, int to_codes) {
#define L_ENTRY(family)                                                                                                \
    {                                                                                                                  \
        {SN_L(loop_##family##_0_0), SN_L(loop_##family##_0_1)}, {                                                      \
            SN_L(loop_##family##_1_0), SN_L(loop_##family##_1_1)                                                       \
        }                                                                                                              \
    }
    static SN_L(loop) *const loops[6][2][2] = {L_ENTRY(EVEN), L_ENTRY(NEAREST),    L_ENTRY(DIRECTED),
                                               L_ENTRY(ODD),  L_ENTRY(STOCHASTIC), L_ENTRY(RANDOM)};
    return loops[r->family][r->unusual][to_codes];
}

/* The loop over the whole array; block by block where random words are needed. */
SN_INLINE int SN_L(all)(SN_L(loop) * loop, const sn_rounding *r, const L_F *x, char *out, int width, size_t bytes,
                        size_t n, const sn_random_source *random) {
    int bad = 0;
    if (r->family < SN_FAMILY_STOCHASTIC) {
        const size_t misplaced = (0 - (size_t)out) % SN_BYTES, head = misplaced / sizeof *x; /* to a whole vector */
        if (r->direction) sn_fp_round(r->direction);
        if (width == 0 && n >= SN_LONG / sizeof *x && misplaced % sizeof *x == 0) {
            bad = loop(r, x, out, width, head, NULL);
            x += head;
            out += head * bytes;
            n -= head;
        }
        bad |= loop(r, x, out, width, n, NULL);
        if (r->direction) sn_fp_round(SN_FP_NEAREST);
        return bad;
    }
    sn_u32 words[SN_BLOCK];
    for (size_t i = 0; i < n; i += SN_BLOCK) {
        const size_t take = n - i < SN_BLOCK ? n - i : SN_BLOCK;
        bad |= loop(r, x + i, out + i * bytes, width, take, SN_(block_words)(random, i, words));
    }
    return bad;
}

static int SN_L(quantize)(const sn_rounding *r, const L_F *x, L_F *out, size_t n, const sn_random_source *random) {
    return SN_L(all)(SN_L(loop_for)(r, 0), r, x, (char *)out, 0, sizeof *x, n, random);
}

static int SN_L(encode)(const sn_rounding *r, const L_F *x, void *codes, int width, size_t n,
                        const sn_random_source *random) {
    return SN_L(all)(SN_L(loop_for)(r, 1), r, x, (char *)codes, width, (size_t)width, n, random);
}

/* ---- decoding -----------------------------------------------------------------------------------------------------
 */

SN_INLINE L_U SN_L(decode_lanes)(const sn_decoding *d, L_U code) {
    const L_U zero = {0};
    L_U magnitude = code & (L_u)d->magnitude_mask, sign = (code & (L_u)d->sign_mask) << (L_BITS - d->bits);
    if (d->fixed) {
        L_U negative = 0u - (sign >> (L_BITS - 1));
        magnitude = ((magnitude ^ negative) - negative) & (L_u)d->magnitude_mask;
    }
    L_U u = (magnitude << d->shift) + (L_u)d->rebias, low = zero;
    /* a subnormal number as the fraction of a number in the binade above, less that binade's first */
    if (d->subnormals) low = (L_U)((L_V)(u + L_HIDDEN) - (L_V)(zero + (L_u)d->first));
    u = L_SELECT((L_I)magnitude < (L_i)d->low, low, u);
    if (!d->negative_zero) sign &= (L_U)(u != 0);
    L_U out = u | sign;
    if (L_ANY_GREATER((L_I)magnitude, (L_I)zero + (L_i)d->max_code)) {
        L_I above = (L_I)magnitude > (L_i)d->max_code, infinite = (L_I)magnitude == (L_i)d->inf_code;
        out = L_SELECT(above, L_SELECT(infinite, sign | (L_u)L_INFINITY, zero + (L_u)d->nan), out);
    }
    if (d->nan_is_negative_zero) {
        L_U all = code & (L_u)(d->sign_mask | d->magnitude_mask);
        out = L_SELECT(all == (L_u)d->sign_mask, zero + (L_u)d->nan, out);
    }
    return out;
}

/* The loop. plain: a sign of its own, -0 and no NaN in its place; with subnormals and width, the loop's constants. */
SN_INLINE void SN_L(decode_all)(const sn_decoding *d, int plain, int subnormals, const char *p, int width, L_F *out,
                                size_t n) {
    sn_decoding local = *d; /* out cannot alias it */
    local.subnormals = subnormals;
    if (plain) {
        local.fixed = local.nan_is_negative_zero = 0;
        local.negative_zero = 1;
    }
    size_t i = 0;
    L_U bits;
    for (; i + L_N <= n; i += L_N) {
        __builtin_prefetch(p + i * (size_t)width + 1024);
        bits = SN_L(decode_lanes)(&local, SN_L(load)(p + i * (size_t)width, width));
        memcpy(out + i, &bits, sizeof bits);
    }
    if (i < n) {
        char edge[L_N * 8] = {0};
        memcpy(edge, p + i * (size_t)width, (n - i) * (size_t)width);
        bits = SN_L(decode_lanes)(&local, SN_L(load)(edge, width));
        memcpy(out + i, &bits, (n - i) * sizeof *out);
    }
}

/* The loop of a width. */
SN_INLINE void SN_L(decode_width)(const sn_decoding *d, const char *p, int width, L_F *out, size_t n) {
    const int plain = d->negative_zero && !d->nan_is_negative_zero; /* fixed point has no -0 */
    if (plain && d->subnormals)
        SN_L(decode_all)(d, 1, 1, p, width, out, n);
    else if (plain)
        SN_L(decode_all)(d, 1, 0, p, width, out, n);
    else
        SN_L(decode_all)(d, 0, d->subnormals, p, width, out, n);
}

static void SN_L(decode)(const sn_decoding *d, const void *codes, int width, L_F *out, size_t n) {
    switch (width) {
    case 1: SN_L(decode_width)(d, codes, 1, out, n); break;
    case 2: SN_L(decode_width)(d, codes, 2, out, n); break;
    case 4: SN_L(decode_width)(d, codes, 4, out, n); break;
    default: SN_L(decode_width)(d, codes, 8, out, n);
    }
}
