#include "dispatch/kernels.h"
#include "softnum/operations/arith.h"

SN_DISPATCH(const sn_kernels, sn_kernels)

void sn_look_up(const void *table, int entry, const void *codes, int width, void *out, size_t n) {
    if (entry == 4)
        for (size_t i = 0; i < n; i++)
            ((sn_u32 *)out)[i] = ((const sn_u32 *)table)[sn_load_code((const char *)codes + i * (size_t)width, width)];
    else
        for (size_t i = 0; i < n; i++)
            ((sn_u64 *)out)[i] = ((const sn_u64 *)table)[sn_load_code((const char *)codes + i * (size_t)width, width)];
}

sn_u32 sn_convert_array(const sn_format *from, const void *in, int in_width, const sn_format *to, const sn_env *env,
                        void *out, int out_width, size_t n) {
    sn_u32 flags = 0;
    for (size_t i = 0; i < n; i++) {
        sn_u64 code =
            sn_convert(from, sn_load_code((const char *)in + i * (size_t)in_width, in_width), to, env, 0, &flags);
        sn_store_code((char *)out + i * (size_t)out_width, out_width, code);
    }
    return flags;
}
