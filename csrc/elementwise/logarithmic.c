#include "elementwise/logarithmic.h"

#include "dispatch/kernels.h"

ptrdiff_t sn_log_apply(const sn_log_call *c, int operands, const sn_u64 *const *codes, sn_u64 *out, ptrdiff_t n) {
    sn_log_call call = *c;
    call.binary64 = &sn_binary64;
    for (ptrdiff_t i = 0; i < n; i++) {
        sn_u32 flags = 0;
        const sn_u64 b = operands > 1 ? codes[1][i] : 0, d = operands > 2 ? codes[2][i] : 0;
        out[i] = sn_log_operate(&call, codes[0][i], b, d, &flags);
        if (flags & SN_UNDECIDED) return i;
    }
    return n;
}
