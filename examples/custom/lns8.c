/* An 8-bit logarithmic number system: a sign and eight times the base-2 logarithm, so that neighbours differ by the
 * factor 2^(1/8). A product is a sum of logarithms, exact; a sum is one look-up and an addition, as hardware does it:
 * log2(2^x + 2^y) = x + log2(1 + 2^(y - x)), with a table of that, rounded, for each difference. */
#include <math.h>

typedef struct {
    uint s : 1;
    int l : 7; /* 8 * log2 of the magnitude, -63 to 63; -64: zero */
} lns8;

enum { ZERO = -64, LOWEST = -63, HIGHEST = 63, STEPS = 8 };

static lns8 make(uint s, int l) {
    if (l < LOWEST) return (lns8){0, ZERO};
    return (lns8){s, l > HIGHEST ? HIGHEST : l};
}

/* 2^(i/8), and the points halfway between the logarithms i and i + 1: 2^((2i + 1) / 16). */
static const double POWERS[STEPS] = {0x1p+0,
                                     0x1.172b83c7d517bp+0,
                                     0x1.306fe0a31b715p+0,
                                     0x1.4bfdad5362a27p+0,
                                     0x1.6a09e667f3bcdp+0,
                                     0x1.8ace5422aa0dbp+0,
                                     0x1.ae89f995ad3adp+0,
                                     0x1.d5818dcfba487p+0};
static const double HALFWAY[STEPS] = {0x1.0b5586cf9890fp+0, 0x1.2387a6e756238p+0, 0x1.3dea64c123422p+0,
                                      0x1.5ab07dd485429p+0, 0x1.7a11473eb0187p+0, 0x1.9c49182a3f090p+0,
                                      0x1.c199bdd85529cp+0, 0x1.ea4afa2a490dap+0};

double as_float(lns8 a) {
    if (a.l == ZERO) return 0;
    const int l = a.l + STEPS * STEPS; /* above 0, so that the quotient is rounded down */
    const double magnitude = ldexp(POWERS[l % STEPS], l / STEPS - STEPS);
    return a.s ? -magnitude : magnitude;
}

/* Of NaN, which the format has not, zero. */
lns8 convert(double x) {
    if (!(fabs(x) > 0)) return (lns8){0, ZERO};
    if (isinf(x)) return make(x < 0, HIGHEST);
    int exponent, i = 0;
    const double mantissa = 2 * frexp(fabs(x), &exponent);
    while (i < STEPS && mantissa > HALFWAY[i])
        i++;
    return make(x < 0, STEPS * (exponent - 1) + i);
}

lns8 mul(lns8 a, lns8 b) {
    if (a.l == ZERO || b.l == ZERO) return (lns8){0, ZERO};
    return make(a.s ^ b.s, a.l + b.l);
}

/* 8 * log2(1 + 2^(-d/8)) and 8 * log2(1 - 2^(-d/8)), rounded, for d = 0, 1, ...; then 0. */
static const signed char SUM[] = {8, 8, 7, 7, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 3, 3, 3, 2,
                                  2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const signed char DIFFERENCE[] = {0,  -29, -21, -17, -14, -12, -10, -9, -8, -7, -6, -6, -5,
                                         -5, -4,  -4,  -3,  -3,  -3,  -2,  -2, -2, -2, -2, -2, -1,
                                         -1, -1,  -1,  -1,  -1,  -1,  -1,  -1, -1, -1, -1};

lns8 add(lns8 a, lns8 b) {
    if (a.l == ZERO) return b;
    if (b.l == ZERO) return a;
    if (a.l < b.l) { /* the larger one first */
        const lns8 larger = b;
        b = a;
        a = larger;
    }
    const int d = a.l - b.l;
    if (a.s == b.s) return make(a.s, a.l + (d < (int)sizeof SUM ? SUM[d] : 0));
    if (d == 0) return (lns8){0, ZERO};
    return make(a.s, a.l + (d < (int)sizeof DIFFERENCE ? DIFFERENCE[d] : 0));
}

lns8 neg(lns8 a) { return a.l == ZERO ? a : make(!a.s, a.l); }
