/* Sums of products, each rounded to a posit or a linear takum: included once per instruction set, by tapered_*.c.
 *
 * A positive number is 2^e * (1 + f). Its pattern in the carrier, e and f side by side as an integer, is but for a
 * constant the end of its bit string in the format: e's low bits are the exponent's, or the characteristic's, and what
 * is above them is the regime. So rounding the string after some bit is rounding the pattern there, to the even one of
 * two neighbours; a carry goes into the exponent, and on into the next regime, as it does in the string. What the
 * regime decides is where: `cut` bits of the pattern fall away.
 *   Posits: a regime of k is followed by the exponent's es bits, and takes k + 2 bits of the string, or 1 - k below 0.
 *     Where nothing is left of the string the last bit is the regime's own, 0 above 1 and 1 below it; k + offset has it
 *     as its last bit at both ends, which alone come to that.
 *   Takums: with p = e + 1, or -e below 0, the characteristic has r = floor(log2(p)) bits, which are those of e + 1, or
 *     of e - 1 below 0. From 6 bits of a code on, no more than these bits fall away.
 * What lies beyond the ends is put there first: above, to the carrier's last number below the largest value, which
 * rounds to it, and so no pattern has a regime that is longer than the string.
 *
 * Domain. A sum is rounded to odd in the carrier, which decides as the exact sum does where a bit more than the one
 * after the last stays of every number, cut >= 2 (Boldo and Melquiond 2008): posits of up to 22 + es bits in binary32,
 * all formats in binary64. The carrier holds all values of the operands and of the formats. In binary32 sums of exact
 * products are one fma; a multiple of 2^-149 that is no larger than the largest number has no underflow, and one that
 * is larger is an odd number. In binary64 products are exact, their sums do not reach 2^1023.
 *
 * Where there are no more than 16 regimes, what they decide is looked up (SN_LOOK_UP16_32): a sum of numbers is never
 * NaR, and a product with one is NaR however the rest goes, so that the loop need not look for it.
 *
 * Instructions for 16 products in binary32, posits, AVX-512: 4 for the odd sum, 25 to round it, or 12 with 16 regimes.
 */
#ifndef SN_TAPERED_BODY_H
#define SN_TAPERED_BODY_H

#include "lanes/lanes.h"
#include "lanes/odd.h"
#include "products/tapered/tapered.h"

/* Vectors of sums that go on side by side. */
enum { SN_SIDE_BY_SIDE = 4 };

/* x * y + z and x * y, rounded to odd. */
SN_INLINE sn_vf SN_(sum_odd32)(sn_vf x, sn_vf y, sn_vf z) { return SN_(fma_odd)(x, y, z, 0); }
SN_INLINE sn_vf SN_(product_odd32)(sn_vf x, sn_vf y) {
    return SN_(fma_odd)(x, y, (sn_vf)((sn_vu){0} | 0x80000000u), 0);
}
SN_INLINE sn_wf SN_(sum_odd64)(sn_wf x, sn_wf y, sn_wf z) { return SN_(add_odd)(z, x * y); }
SN_INLINE sn_wf SN_(product_odd64)(sn_wf x, sn_wf y) { return x * y; } /* exact */

#ifdef SN_LOOK_UP16_32
#include "products/tapered/regimes.h"
#endif
#define T_BITS 32
#include "products/tapered/loop.h"
#define T_BITS 64
#include "products/tapered/loop.h"

static void SN_(tapered_gemm)(const sn_tapered_sums *s) {
    if (s->carrier == 64) {
        SN_(tapered_gemm64)(s);
        return;
    }
    SN_ODD_ENTER();
#ifdef SN_LOOK_UP16_32
    if (sn_has_few_regimes(&s->sum) && (!s->product.bits || sn_has_few_regimes(&s->product)))
        SN_(regimes_gemm)(s);
    else
#endif
        SN_(tapered_gemm32)(s);
    SN_ODD_LEAVE();
}

#endif
