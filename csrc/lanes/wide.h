/* What lanes of 64 bits do in addition: wide products, quotients and roots. Included by lanes/normal.h. */

typedef struct {
    sn_wu hi, lo;
} SN_(pair);

SN_INLINE SN_(pair) SN_(multiply_full)(sn_wu a, sn_wu b) {
    const sn_wu a1 = a >> 32, b1 = b >> 32, low = SN_MULTIPLY32(a, b);
    const sn_wu mid = SN_MULTIPLY32(a1, b) + (low >> 32), mid2 = SN_MULTIPLY32(a, b1) + (mid & 0xffffffffu);
    const SN_(pair) p = {SN_MULTIPLY32(a1, b1) + (mid >> 32) + (mid2 >> 32), mid2 << 32 | (low & 0xffffffffu)};
    return p;
}

/* a * b modulo 2^64, for b below 2^33 at the most */
SN_INLINE sn_wu SN_(multiply_low)(sn_wu a, sn_wu b) {
    return SN_MULTIPLY32(a, b) + ((SN_MULTIPLY32(a >> 32, b) + SN_MULTIPLY32(a, b >> 32)) << 32);
}

/* Top bit set, or 0. */
SN_INLINE SN_(pair) SN_(product)(N_(normal) x, N_(normal) y, sn_wu *exp) {
    SN_(pair) p = SN_(multiply_full)(x.sig, y.sig);
    const sn_wu left = ~p.hi >> 63; /* no carry: by one place */
    *exp = x.exp + y.exp + 1 - left;
    p.hi = SN_SELECT64(0 - left, p.hi << 1 | p.lo >> 63, p.hi);
    p.lo += p.lo & (0 - left);
    return p;
}

SN_INLINE N_(unrounded) N_(wide_multiply)(N_(normal) x, N_(normal) y) {
    sn_wu exp;
    const SN_(pair) p = SN_(product)(x, y, &exp);
    const sn_wu sign = x.sign ^ y.sign;
    const N_(unrounded) s = {p.hi | N_(jam)(p.lo), exp, sign, (sn_wu)(p.hi == 0), sign};
    return s;
}

SN_INLINE N_(unrounded) N_(wide_fma)(const sn_normals *t, N_(normal) x, N_(normal) y, N_(normal) z) {
    sn_wu exp;
    const SN_(pair) p = SN_(product)(x, y, &exp);
    const sn_wu sign = x.sign ^ y.sign;
    if (t->narrow_product) {
        const N_(normal) whole = {p.hi, exp, sign};
        return N_(normal_add)(t, whole, z);
    }
    SN_(pair) a = {p.hi >> 2, p.hi << 62 | p.lo >> 2}, b = {z.sig >> 2, z.sig << 62};
    const sn_wu less = (sn_wu)(a.hi < b.hi) | ((sn_wu)(a.hi == b.hi) & (sn_wu)(a.lo < b.lo));
    const sn_wu swap = (sn_wu)((sn_wi)exp < (sn_wi)z.exp) | ((sn_wu)(exp == z.exp) & less);
    const sn_wu high = (a.hi ^ b.hi) & swap, low = (a.lo ^ b.lo) & swap, top = SN_SELECT64(swap, z.exp, exp);
    a.hi ^= high, a.lo ^= low, b.hi ^= high, b.lo ^= low;

    /* b, shifted and jammed; its top bit is 125, so that at 127 all is lost */
    sn_wu d = top + top - exp - z.exp;
    d = SN_SELECT64(d < 127, d, (sn_wu){0} + 127);
    const sn_wu back = 64 - d, beyond = d - 64;
    const sn_wu lost = SN_LEFT64(b.lo, back) | SN_LEFT64(b.hi, back + 64) | (b.lo & (sn_wu)(d > 64));
    b.lo = SN_RIGHT64(b.lo, d) | SN_LEFT64(b.hi, back) | SN_RIGHT64(b.hi, beyond) | N_(jam)(lost);
    b.hi = SN_RIGHT64(b.hi, d);

    /* a + b or a + ~b + 1 */
    const sn_wu minus = sign ^ z.sign, lo = (b.lo ^ minus) - minus;
    const sn_wu hi = (b.hi ^ minus) - (minus & (sn_wu)(lo == 0));
    SN_(pair) s = {a.hi + hi, a.lo + lo};
    s.hi -= (sn_wu)(s.lo < lo);

    const sn_wu upper = (sn_wu)(s.hi == 0);
    s.hi = SN_SELECT64(upper, s.lo, s.hi);
    s.lo &= ~upper;
    const sn_wu zeros = N_(leading_zeros)(s.hi), rest = SN_LEFT64(s.lo, zeros);
    const N_(unrounded)
        r = {SN_LEFT64(s.hi, zeros) | SN_RIGHT64(s.lo, 64 - zeros) | N_(jam)(rest), top + 2 - zeros - (upper & 64),
             SN_SELECT64(swap, z.sign, sign), (sn_wu)(s.hi == 0), N_(sign_of_zero)(t, sign, z.sign)};
    return r;
}

SN_INLINE N_(unrounded) N_(normal_divide)(N_(normal) x, N_(normal) y) {
    const sn_wu less = (sn_wu)(x.sig < y.sig), divisor = y.sig >> 2;
    const sn_wu dividend = SN_SELECT64(less, x.sig, x.sig >> 1) >> 2; /* below the divisor, by at most one place */
    const sn_wf scale = 0x1p32 / SN_(to_double)(divisor);
    const sn_wu first = SN_(to_integer)(SN_(to_double)(dividend) * scale - SN_LOWERED);
    sn_wu rest = (dividend << 32) - SN_(multiply_low)(divisor, first);
    const sn_wu second = SN_(to_integer)(SN_(to_double)(rest) * scale - SN_LOWERED);
    rest = (rest << 32) - SN_(multiply_low)(divisor, second);
    const sn_wu one = (sn_wu)(rest >= divisor);
    rest -= divisor & one;
    const sn_wu sign = x.sign ^ y.sign;
    const N_(unrounded) s = {((first << 32) + second - one) | N_(jam)(rest), x.exp - y.exp + less, sign, {0}, sign};
    return s;
}

SN_INLINE N_(unrounded) N_(normal_sqrt)(N_(normal) x) {
    const sn_wu odd = x.exp & 1, n = SN_SELECT64(0 - odd, x.sig, x.sig >> 1);
    const sn_wf root = 2 * SN_SQRT64(SN_(to_double)(n >> 2));
    const sn_wu first = SN_(to_integer)(root - SN_LOWERED), rest = n - SN_MULTIPLY32(first, first);
    const sn_wu second = SN_(to_integer)(SN_(to_double)(rest) * 0x1p30 / (root + SN_(to_double)(first)) - SN_LOWERED);
    sn_wu whole = (first << 30) + second;
    sn_wu left = (((rest << 30) - 2 * SN_MULTIPLY32(first, second)) << 30) - SN_MULTIPLY32(second, second);
    const sn_wu one = (sn_wu)(left > 2 * whole);
    left -= (2 * whole + 1) & one;
    whole -= one;
    const N_(unrounded)
        s = {whole << 2 | N_(jam)(left), (sn_wu)((sn_wi)(x.exp - odd) >> 1), {0}, (sn_wu)(x.sig == 0), x.sign};
    return s;
}
