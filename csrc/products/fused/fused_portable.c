/* The fused dot-product-add for any CPU. */
#include "lanes/portable.h"

#define SN_FUSED_ROWS 2
#define SN_MAX16(a, b) (((a) & ((a) > (b))) | ((b) & ~((a) > (b))))
#include "products/fused/body.h"
#include "products/grouped/body.h"

extern void sn_fused_portable(const sn_fused_plan *p, const sn_fused_values *g);
void sn_fused_portable(const sn_fused_plan *p, const sn_fused_values *g) { SN_(fused_kernel)(p, g); }

extern void sn_grouped_portable(const sn_grouped_plan *p, const sn_fused_values *g);
void sn_grouped_portable(const sn_grouped_plan *p, const sn_fused_values *g) { SN_(grouped_kernel)(p, g); }
