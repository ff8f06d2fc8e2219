/* Products of matrices under multiply-add units, of floats, posits, takums and tables: all that targets/gemm_*.c
 * compile, once per instruction set. */
#ifndef SOFTNUM_TARGETS_GEMM_H
#define SOFTNUM_TARGETS_GEMM_H

#include "products/tapered/body.h"
#ifdef SN_TABLE_GATHERS
#include "products/tables/gathers.h"
#else
#include "products/tables/body.h"
#endif
#include "products/gemm/body.h"

SN_TARGET(const sn_gemm_kernels, sn_gemm_kernels) = {SN_(gemm32), SN_(gemm64), SN_(integers)};
SN_TARGET(sn_tapered_kernel, sn_tapered_kernel);
void SN_(sn_tapered_kernel)(const sn_tapered_sums *s) { SN_(tapered_gemm)(s); }
SN_TARGET(sn_table_kernel, sn_table_kernel);
void SN_(sn_table_kernel)(const sn_table_sums *s) { SN_(table_gemm)(s); }

#endif
