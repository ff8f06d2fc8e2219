/* CPFloat, called from Python: arrays of binary32 or binary64 rounded in place of their own. One thread. */
#include "cpfloat_binary32.h"
#include "cpfloat_binary64.h"

static optstruct options(int precision, int emin, int emax, int mode) {
    optstruct o;
    memset(&o, 0, sizeof o);
    o.precision = (cpfloat_precision_t)precision;
    o.emin = emin;
    o.emax = emax;
    o.explim = CPFLOAT_EXPRANGE_TARG;
    o.infinity = CPFLOAT_INF_USE;
    o.round = (cpfloat_rounding_t)mode;
    o.saturation = CPFLOAT_SAT_NO;
    o.subnormal = CPFLOAT_SUBN_USE;
    o.flip = CPFLOAT_SOFTERR_NO;
    return o;
}

int round32(float *out, const float *x, size_t n, int precision, int emin, int emax, int mode) {
    optstruct o = options(precision, emin, emax, mode);
    return cpfloatf(out, x, n, &o);
}

int round64(double *out, const double *x, size_t n, int precision, int emin, int emax, int mode) {
    optstruct o = options(precision, emin, emax, mode);
    return cpfloat(out, x, n, &o);
}

int add32(float *out, const float *x, const float *y, size_t n, int precision, int emin, int emax, int mode) {
    optstruct o = options(precision, emin, emax, mode);
    return cpf_addf(out, x, y, n, &o);
}

int multiply32(float *out, const float *x, const float *y, size_t n, int precision, int emin, int emax, int mode) {
    optstruct o = options(precision, emin, emax, mode);
    return cpf_mulf(out, x, y, n, &o);
}
