#include "elementwise/tapered.h"

void sn_tapered_values(const sn_tapered *f, const void *codes, int width, sn_u64 *numbers, ptrdiff_t n) {
#define VALUES(type)                                                                                                   \
    for (ptrdiff_t i = 0; i < n; i++)                                                                                  \
    numbers[i] = sn_tapered_value(f, ((const type *)codes)[i])
    switch (width) {
    case 1: VALUES(sn_u8); break;
    case 2: VALUES(sn_u16); break;
    default: VALUES(sn_u32);
    }
}

void sn_tapered_codes(const sn_tapered *f, const sn_u64 *numbers, void *codes, int width, ptrdiff_t n) {
#define CODES(type)                                                                                                    \
    for (ptrdiff_t i = 0; i < n; i++)                                                                                  \
    ((type *)codes)[i] = (type)sn_tapered_round(f, numbers[i])
    switch (width) {
    case 1: CODES(sn_u8); break;
    case 2: CODES(sn_u16); break;
    default: CODES(sn_u32);
    }
}
