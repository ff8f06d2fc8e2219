#include "kernels.h"

extern const sn_kernels sn_kernels_portable, sn_kernels_avx2, sn_kernels_avx512;

const sn_kernels *sn_kernels_for(int isa) {
    switch (isa) {
    case SN_ISA_PORTABLE: return &sn_kernels_portable;
#if defined(__x86_64__)
    case SN_ISA_AVX2: return &sn_kernels_avx2;
    case SN_ISA_AVX512: return &sn_kernels_avx512;
#endif
    default: return NULL;
    }
}

static sn_u64 load(const void *p, int width, size_t i) {
    switch (width) {
    case 1: return ((const sn_u8 *)p)[i];
    case 2: return ((const sn_u16 *)p)[i];
    case 4: return ((const sn_u32 *)p)[i];
    default: return ((const sn_u64 *)p)[i];
    }
}

void sn_look_up(const void *table, int entry, const void *codes, int width, void *out, size_t n) {
    if (entry == 4)
        for (size_t i = 0; i < n; i++)
            ((sn_u32 *)out)[i] = ((const sn_u32 *)table)[load(codes, width, i)];
    else
        for (size_t i = 0; i < n; i++)
            ((sn_u64 *)out)[i] = ((const sn_u64 *)table)[load(codes, width, i)];
}

sn_u32 sn_convert_array(const sn_format *from, const void *in, int in_width, const sn_format *to, const sn_env *env,
                        void *out, int out_width, size_t n) {
    sn_u32 flags = 0;
    for (size_t i = 0; i < n; i++) {
        sn_u64 code = sn_convert(from, load(in, in_width, i), to, env, 0, &flags);
        switch (out_width) {
        case 1: ((sn_u8 *)out)[i] = (sn_u8)code; break;
        case 2: ((sn_u16 *)out)[i] = (sn_u16)code; break;
        case 4: ((sn_u32 *)out)[i] = (sn_u32)code; break;
        default: ((sn_u64 *)out)[i] = code;
        }
    }
    return flags;
}
