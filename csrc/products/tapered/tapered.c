#include "products/tapered/tapered.h"

SN_DISPATCH(sn_tapered_kernel, sn_tapered_kernel)

/* The pattern of a positive power of two times 1 + fraction, given as binary64. */
static sn_u64 pattern(sn_u64 number, int carrier) {
    return carrier == 64 ? number : ((number >> 52) - 1023 + 127) << 23 | (number << 12 >> 41);
}

sn_tapered_lanes sn_tapered_prepare(const sn_tapered *f, int carrier) {
    const sn_i32 places = carrier == 64 ? 52 : 23, bias = carrier == 64 ? 1023 : 127, length = f->bits - 1;
    sn_tapered_lanes t;
    t.takum = f->takum;
    t.least = pattern(sn_tapered_value(f, 1), carrier);
    t.most = pattern(sn_tapered_value(f, sn_tapered_nar(f) - 1), carrier) - 1;
    if (f->takum) {
        t.offset = bias;
        t.shift = places;
        t.cut = 4 + places - length;
        t.rebias = ((sn_u64)512 - (sn_u64)bias) << places;
    } else {
        const sn_i32 most = f->bits - 2;
        t.offset =
            2 * most - most % 2 + 1; /* odd where most is even: then most - 1 + offset is even, -most + offset odd */
        t.shift = places + f->es;
        t.cut = t.shift - length + 2;
        t.rebias = ((sn_u64)t.offset << t.shift) - ((sn_u64)bias << places);
    }
    return t;
}
