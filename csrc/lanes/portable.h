/* The vocabulary of isa.h for any CPU. */
#ifndef SOFTNUM_ISA_PORTABLE_H
#define SOFTNUM_ISA_PORTABLE_H

#define SN_(name) name##_portable
#define SN_NAME "portable"
#define SN_ONE_BY_ONE
#define SN_BYTES 16
#define SN_REGISTERS 16
#define SN_FMA(x, y, z) SN_(fma)(x, y, z)
#define SN_MULTIPLY_ADD(x, y, z) ((z) + (x) * (y))
#define SN_SUBTRACT_PRODUCT(x, y, z) ((z) - (x) * (y))
#define SN_OR_MASKED(a, b, mask) (sn_vf)((sn_vu)(a) | ((sn_vu)(b) & (sn_vu)(mask)))
#define SN_LOW16(a) ((sn_vi)((sn_vu)(a) << 16) >> 16)
#define SN_MULTIPLY_PAIRS(a, b)                                                                                        \
    (sn_vi)((sn_vu)SN_LOW16(a) * (sn_vu)SN_LOW16(b) + (sn_vu)((sn_vi)(a) >> 16) * (sn_vu)((sn_vi)(b) >> 16))
#define SN_CLAMP(v, least, most) SN_(clamp)(v, least, most)
#define SN_MAX(a, b) (sn_vi) SN_SELECT32((a) > (b), a, b)
#define SN_MIN(a, b) (sn_vi) SN_SELECT32((a) < (b), a, b)
#define SN_WHERE_GREATER(a, b, yes, no) (sn_vf) SN_SELECT32((a) > (b), yes, no)
#define SN_LEFT32(a, n) SN_SELECT32((sn_vu)(n) < 32, (a) << ((sn_vu)(n) & 31), (sn_vu){0})
#define SN_RIGHT32(a, n) SN_SELECT32((sn_vu)(n) < 32, (a) >> ((sn_vu)(n) & 31), (sn_vu){0})
#define SN_LEFT64(a, n) SN_SELECT64((sn_wu)(n) < 64, (a) << ((sn_wu)(n) & 63), (sn_wu){0})
#define SN_RIGHT64(a, n) SN_SELECT64((sn_wu)(n) < 64, (a) >> ((sn_wu)(n) & 63), (sn_wu){0})
#define SN_ANY_GREATER32(a, b) SN_(any)((sn_wi)((a) > (b)))
#define SN_ANY_GREATER64(a, b) SN_(any)((a) > (b))
#define SN_MULTIPLY32(a, b) (((a) & 0xffffffffu) * ((b) & 0xffffffffu))
#define SN_HIGH32(a) ((a) >> 32)
#define SN_EVEN_LANES(a, b) ((sn_wu){(a)[0], (b)[0]})
#define SN_ODD_LANES(a, b) ((sn_wu){(a)[1], (b)[1]})
#define SN_XOR3(a, b, c) ((a) ^ (b) ^ (c))
#define SN_JOIN_LOW32(a, b) (((a) & 0xffffffffu) | ((b) << 32))
#define SN_JOIN_HIGH32(a, b) (((a) >> 32) | ((b) & 0xffffffff00000000u))
#define SN_LOOK_UP16 SN_GATHER64
#define SN_GATHER64(table, index) ((sn_wf){(table)[(index)[0]], (table)[(index)[1]]})
#define SN_SQRT64(a) ((sn_wf){__builtin_sqrt((a)[0]), __builtin_sqrt((a)[1])})
#define SN_STREAM(p, v) memcpy(p, &(v), sizeof(v))
#define SN_STREAM_END() ((void)0)
#include "lanes/isa.h"

SN_INLINE sn_vf SN_(clamp)(sn_vf v, sn_vf least, sn_vf most) {
    v = SN_WHERE_GREATER(v, most, most, v);
    return SN_WHERE_GREATER(least, v, least, v);
}

/* Loads and stores of codes in lanes, one by one. */
#define SN_NARROW(bits, lane, vector, count)                                                                           \
    SN_INLINE vector sn_load##bits##_##lane(const char *p) {                                                           \
        sn_u##bits codes[count];                                                                                       \
        vector v;                                                                                                      \
        memcpy(codes, p, sizeof codes);                                                                                \
        for (int i = 0; i < (count); i++)                                                                              \
            v[i] = codes[i];                                                                                           \
        return v;                                                                                                      \
    }                                                                                                                  \
    SN_INLINE void sn_store##bits##_##lane(char *p, vector v) {                                                        \
        sn_u##bits codes[count];                                                                                       \
        for (int i = 0; i < (count); i++)                                                                              \
            codes[i] = (sn_u##bits)v[i];                                                                               \
        memcpy(p, codes, sizeof codes);                                                                                \
    }
SN_NARROW(8, 32, sn_vu, SN_V)
SN_NARROW(16, 32, sn_vu, SN_V)
SN_NARROW(8, 64, sn_wu, SN_W)
SN_NARROW(16, 64, sn_wu, SN_W)
SN_NARROW(32, 64, sn_wu, SN_W)
#define SN_LOAD8_32 sn_load8_32
#define SN_LOAD16_32 sn_load16_32
#define SN_LOAD8_64 sn_load8_64
#define SN_LOAD16_64 sn_load16_64
#define SN_LOAD32_64 sn_load32_64
#define SN_STORE8_32 sn_store8_32
#define SN_STORE16_32 sn_store16_32
#define SN_STORE8_64 sn_store8_64
#define SN_STORE16_64 sn_store16_64
#define SN_STORE32_64 sn_store32_64

SN_INLINE int SN_(any)(sn_wi mask) { return (mask[0] | mask[1]) != 0; }

#endif
