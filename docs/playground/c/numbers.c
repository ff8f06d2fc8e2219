/* Numbers as people write them, read and written exactly. */
#include "playground.h"

#include <stdlib.h>
#include <string.h>

/* A natural number of 32-bit digits, the least first; none is beyond the room that its callers leave. */
enum { DIGITS = 9000, LONGEST = 2000, FARTHEST = 25000 };
typedef struct {
    sn_u32 digit[DIGITS];
    size_t n;
} natural;

static void multiply_add(natural *x, sn_u32 by, sn_u32 carry) {
    for (size_t i = 0; i < x->n; i++) {
        const sn_u64 v = (sn_u64)x->digit[i] * by + carry;
        x->digit[i] = (sn_u32)v;
        carry = (sn_u32)(v >> 32);
    }
    if (carry) x->digit[x->n++] = carry;
}

/* x / by; returns the rest. */
static sn_u32 divide(natural *x, sn_u32 by) {
    sn_u64 rest = 0;
    for (size_t i = x->n; i-- > 0;) {
        rest = rest << 32 | x->digit[i];
        x->digit[i] = (sn_u32)(rest / by);
        rest %= by;
    }
    while (x->n && !x->digit[x->n - 1])
        x->n--;
    return (sn_u32)rest;
}

static void shift_left(natural *x, size_t by) {
    if (!x->n) return;
    memmove(x->digit + by / 32, x->digit, x->n * sizeof x->digit[0]);
    memset(x->digit, 0, by / 32 * sizeof x->digit[0]);
    x->n += by / 32;
    if (by % 32) multiply_add(x, (sn_u32)1 << by % 32, 0);
}

static int bit_of(const natural *x, size_t i) { return (int)(x->digit[i / 32] >> i % 32 & 1); }

/* x * 2^exp, and a little more if sticky, as the core takes it. */
static sn_exact exact_of(const natural *x, sn_i32 sign, sn_i32 exp, int sticky) {
    sn_exact e = {{0, 0}, 0, 0, 0, 0};
    size_t length = 32 * x->n, low;
    while (length && !bit_of(x, length - 1))
        length--;
    low = length > 128 ? length - 128 : 0;
    for (size_t i = length; i-- > low;)
        e.sig = sn_u128_add(sn_u128_shl(e.sig, 1), sn_u128_make(0, (sn_u64)bit_of(x, i)));
    for (size_t i = 0; i < low && !sticky; i++)
        sticky = bit_of(x, i);
    e.exp = exp + (sn_i32)low;
    e.sign = sign;
    e.sticky = sticky;
    return e;
}

static int refuse(const char *text) {
    return pg_fail("'%.60s' is no number: write -1.5e3, 0x1.8p3, 13*2^-7, inf or nan", text);
}

/* An exponent with its sign, at *p; 0 if there is none, or it is too far away. */
static int read_exponent(const char **p, long *exponent) {
    const int minus = **p == '-';
    long v = 0;
    if (**p == '-' || **p == '+') ++*p;
    if (**p < '0' || **p > '9') return 0;
    for (; **p >= '0' && **p <= '9'; ++*p)
        if ((v = 10 * v + (**p - '0')) > 4 * FARTHEST) return 0;
    *exponent = minus ? -v : v;
    return 1;
}

static int digit_of(char c, int base) {
    const int v = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
    return v < base ? v : -1;
}

int pg_read(const char *text, pg_number *x) {
    static natural n;
    const char *p = text;
    memset(x, 0, sizeof *x);
    if (strlen(text) > LONGEST) return pg_fail("a number has at most %d characters", LONGEST);
    const sn_i32 sign = *p == '-';
    if (*p == '-' || *p == '+') p++;
    x->exact.sign = sign;
    if (!strcmp(p, "inf") || !strcmp(p, "infinity") || !strcmp(p, "Infinity")) {
        x->kind = SN_INF;
        return 1;
    }
    if (!strcmp(p, "nan") || !strcmp(p, "NaN")) {
        x->kind = SN_QUIET_NAN;
        return 1;
    }
    const int base = p[0] == '0' && (p[1] | 32) == 'x' ? 16 : 10;
    if (base == 16) p += 2;
    long scale = 0, exponent = 0, binary = 0;
    int digits = 0, point = 0;
    n.n = 0;
    for (; *p; p++) {
        if (*p == '.' && !point) {
            point = 1;
            continue;
        }
        const int v = digit_of(*p, base);
        if (v < 0) break;
        multiply_add(&n, (sn_u32)base, (sn_u32)v);
        scale -= point;
        digits++;
    }
    if (!digits) return refuse(text);
    if (base == 16 && (*p | 32) == 'p') {
        p++;
        if (!read_exponent(&p, &binary)) return refuse(text);
    } else if (base == 10 && (*p | 32) == 'e') {
        p++;
        if (!read_exponent(&p, &exponent)) return refuse(text);
    }
    if (base == 10 && !strncmp(p, "*2^", 3)) {
        p += 3;
        if (!read_exponent(&p, &binary)) return refuse(text);
    }
    if (*p) return refuse(text);
    if (base == 16)
        binary += 4 * scale;
    else
        exponent += scale;
    if (exponent > FARTHEST || exponent < -FARTHEST)
        return pg_fail("'%.60s': powers of ten are from -%d to %d here", text, FARTHEST, FARTHEST);
    int sticky = 0;
    for (long i = 0; n.n && i < exponent; i++)
        multiply_add(&n, 10, 0);
    if (n.n && exponent < 0) { /* 128 bits of the quotient, and whether anything is left */
        const size_t up = 160 + (size_t)(-exponent) * 10 / 3;
        shift_left(&n, up);
        binary -= (long)up;
        for (long left = -exponent; left > 0; left -= 9) {
            sn_u32 by = 1;
            for (long i = 0; i < 9 && i < left; i++)
                by *= 10;
            sticky |= divide(&n, by) != 0;
        }
        sticky &= 1;
    }
    x->kind = n.n ? SN_FINITE : SN_ZERO;
    x->exact = exact_of(&n, sign, (sn_i32)binary, sticky);
    if (!n.n) x->exact.exp = 0;
    return 1;
}

sn_u64 pg_round(const sn_format *f, const sn_env *env, const pg_number *x, sn_u32 word, sn_u32 *flags) {
    if (x->kind == SN_QUIET_NAN) return sn_convert(&sn_binary64, sn_binary64.nan_code, f, env, word, flags);
    if (x->kind == SN_INF)
        return sn_convert(&sn_binary64, sn_binary64.inf_code | (x->exact.sign ? sn_binary64.sign_mask : 0), f, env,
                          word, flags);
    return sn_round_pack(f, env, &x->exact, word, flags);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* sig * 2^exp in decimal digits: plain from 1e-6 to 1e21, else with an exponent. 0 if they would be too many. */
static int put_decimal(sn_u64 sig, sn_i32 exp) {
    static natural n;
    static char digits[1400];
    size_t length = 0;
    while (exp < 0 && !(sig & 1)) {
        sig >>= 1;
        exp++;
    }
    if (exp > 3900 || exp < -1200) return 0;
    n.digit[0] = (sn_u32)sig;
    n.digit[1] = (sn_u32)(sig >> 32);
    n.n = n.digit[1] ? 2 : 1;
    for (sn_i32 i = 0; i < -exp; i++)
        multiply_add(&n, 5, 0);
    if (exp > 0) shift_left(&n, (size_t)exp);
    while (n.n)
        digits[length++] = (char)('0' + divide(&n, 10));   /* the least first */
    const long point = (long)length + (exp < 0 ? exp : 0); /* digits before the point */
    size_t last = 0;
    while (last + 1 < length && digits[last] == '0')
        last++;
    if (point > 21 || point < -5) {
        pg_put("%c", digits[length - 1]);
        for (size_t i = length - 1; i-- > last;)
            pg_put("%s%c", i == length - 2 ? "." : "", digits[i]);
        pg_put("e%ld", point - 1);
        return 1;
    }
    if (point <= 0) pg_put("0.");
    for (long i = point; i < 0; i++)
        pg_put("0");
    for (size_t i = length; i-- > 0;) {
        const long after = (long)(length - i) - point; /* the place behind the point, from 1 on */
        if (after > 0 && i < last) break;
        pg_put("%s%c", after == 1 && point > 0 ? "." : "", digits[i]);
    }
    return 1;
}

void pg_put_value(const sn_format *f, sn_u64 code) {
    static const char *const kinds[] = {"zero", "normal", "infinity", "NaN", "signaling NaN"};
    sn_number x = sn_unpack(f, code);
    const char *minus = x.sign && x.kind <= SN_INF ? "-" : "";
    int subnormal = 0;
    if (x.kind == SN_FINITE && f->kind == SN_FLOAT)
        subnormal = x.exp + sn_bit_length(x.sig) - 1 < f->emin && f->lowest == SN_LOWEST_SUBNORMAL;
    pg_put("\"kind\":\"%s\",\"value\":\"", x.kind == SN_FINITE && f->kind == SN_FIXED ? "fixed"
                                           : subnormal                                ? "subnormal"
                                                                                      : kinds[x.kind]);
    if (x.kind == SN_FINITE) {
        pg_put("%s", minus);
        if (!put_decimal(x.sig, x.exp)) pg_put("%llu*2^%d", (unsigned long long)x.sig, (int)x.exp);
        pg_put("\",\"power\":\"%s%llu*2^%d\"", minus, (unsigned long long)x.sig, (int)x.exp);
    } else {
        pg_put("%s%s\"", minus, x.kind == SN_ZERO ? "0" : x.kind == SN_INF ? "inf" : "nan");
    }
}

void pg_put_code(const sn_format *f, sn_u64 code) {
    pg_put("\"code\":\"%0*llx\",\"bits\":\"", (int)(f->bits + 3) / 4, (unsigned long long)code);
    for (sn_i32 i = f->bits; i-- > 0;)
        pg_put("%d", (int)(code >> i & 1));
    pg_put("\",");
    pg_put_value(f, code);
}
