/* A binary floating-point format of E exponent and M mantissa bits with subnormals, infinities and NaNs, as IEEE 754
 * lays them out, rounding to nearest even. The file that includes this says what new_fp, E and M are. */
#include <math.h>
#include <string.h>

enum { BIAS = (1 << (E - 1)) - 1, TOP = (1 << E) - 1 };

float as_float(new_fp nf) {
    float f;
    if (nf.e == TOP)
        f = nf.m ? NAN : INFINITY;
    else if (nf.e == 0)
        f = ldexpf(nf.m, 1 - BIAS - M);
    else
        f = ldexpf((1 << M) + nf.m, (int)nf.e - BIAS - M);
    return nf.s ? -f : f;
}

/* Rounds once. The code without its sign goes on from one exponent to the next, so that a carry is right in it. */
static new_fp nearest(double x) {
    const double magnitude = fabs(x);
    new_fp r = {0};
    int exponent;
    if (isnan(x)) {
        r.e = TOP;
        r.m = 1 << (M - 1);
        return r;
    }
    r.s = signbit(x) != 0;
    if (isinf(x)) {
        r.e = TOP;
        return r;
    }
    frexp(magnitude, &exponent);
    if (magnitude == 0 || exponent < 2 - BIAS) exponent = 2 - BIAS;  /* the binade of the subnormals */
    uint code = (uint)nearbyint(ldexp(magnitude, M + 1 - exponent)); /* to nearest even: the environment's mode */
    code += (uint)(exponent - 2 + BIAS) << M;
    if (code > (uint)TOP << M) code = (uint)TOP << M;
    r.e = code >> M;
    r.m = code & ((1 << M) - 1);
    return r;
}

new_fp convert(float f) { return nearest(f); }

/* A sum of two values is rounded to 53 bits first, which is more than twice what they have, and two: that does no harm.
 */
new_fp add(new_fp a, new_fp b) { return nearest((double)as_float(a) + as_float(b)); }

new_fp log(new_fp a) { return nearest((double)logl(as_float(a))); }
