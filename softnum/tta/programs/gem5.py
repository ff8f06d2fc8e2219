"""A C program of the products, for gem5 in system-call emulation and for whatever else runs a program."""

from __future__ import annotations

from softnum.tta.programs.common import CHECK, comment, constants, kernels, table
from softnum.tta.workloads.operations import Workload
from softnum.tta.workloads.products import network_digest

__all__ = ["gem5_program"]

_HOW = [
    "",
    "Compile for the simulated ISA, static, for example",
    "    aarch64-linux-gnu-gcc -O2 -static products.c -o products",
    "with -DM5_REGION, gem5's include folder and its libm5.a, the statistics are reset before and dumped after each",
    "iteration: one dump is one. Macros: ITERATIONS (1), TILE (32), ELEMENT and SUM (float; for other widths of",
    "operands, -DELEMENT=int8_t -DSUM=int32_t or -DELEMENT=int16_t -DSUM=int32_t).",
    "It ends with 0 if all results are right, with 1 if one is wrong, with 2 if memory lacks.",
]

_HEAD = r"""
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef M5_REGION
#include <gem5/m5ops.h>
#define REGION_BEGIN() m5_reset_stats(0, 0)
#define REGION_END() m5_dump_stats(0, 0)
#else
#define REGION_BEGIN() ((void)0)
#define REGION_END() ((void)0)
#endif
#ifndef ELEMENT
#define ELEMENT float
#endif
#ifndef SUM
#define SUM float
#endif
#ifndef ITERATIONS
#define ITERATIONS 1
#endif
#ifndef TILE
#define TILE 32
#endif
#ifdef __GNUC__
#define KERNEL __attribute__((noinline)) void
#else
#define KERNEL void
#endif
"""

_GEMM = r"""
static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* c = a b, in tiles; each sum is taken in the order of k */
static inline void gemm(size_t m, size_t n, size_t k, const ELEMENT *restrict a, const ELEMENT *restrict b,
                        SUM *restrict c)
{
    for (size_t i = 0; i < m * n; i++) {
        c[i] = 0;
    }
    for (size_t i0 = 0; i0 < m; i0 += TILE) {
        for (size_t l0 = 0; l0 < k; l0 += TILE) {
            for (size_t j0 = 0; j0 < n; j0 += TILE) {
                for (size_t i = i0; i < least(m, i0 + TILE); i++) {
                    for (size_t l = l0; l < least(k, l0 + TILE); l++) {
                        const SUM x = (SUM)a[i * k + l];
                        for (size_t j = j0; j < least(n, j0 + TILE); j++) {
                            c[i * n + j] += x * (SUM)b[l * n + j];
                        }
                    }
                }
            }
        }
    }
}
"""

_MAIN = r"""
static const struct product {
    const char *name, *layer;
    void (*run)(const ELEMENT *, const ELEMENT *, SUM *);
    size_t m, n, k;
    unsigned long count;
} products[] = {
@TABLE@
};

enum { PRODUCTS = sizeof products / sizeof products[0] };

int main(void)
{
    ELEMENT *a = operand(A_ELEMENTS, 1), *b = operand(B_ELEMENTS, 2);
    uint64_t *left = room(LONGEST_SUM, sizeof(uint64_t));
    static SUM *results[PRODUCTS];
    int wrong = 0;
    for (int p = 0; p < PRODUCTS; p++) {
        results[p] = room((uint64_t)products[p].m * products[p].n, sizeof(SUM));
    }
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        REGION_BEGIN();
        for (int p = 0; p < PRODUCTS; p++) {
            for (unsigned long i = 0; i < products[p].count; i++) {
                products[p].run(a, b, results[p]);
            }
        }
        REGION_END();
    }
    for (int p = 0; p < PRODUCTS; p++) {
        const struct product *q = &products[p];
        wrong += told(q->name, q->layer, q->count, q->m, q->n, q->k, a, b, results[p], left);
        free(results[p]);
    }
    free(a);
    free(b);
    free(left);
    printf("@DIGEST@: %d of %d products right\n", PRODUCTS - wrong, (int)PRODUCTS);
    return wrong != 0;
}
"""


def gem5_program(workload: Workload) -> str:
    """The text of the C program: one function for each shape of a product, called in the order of the iteration.

    Parameters
    ----------
    workload : Workload

    Returns
    -------
    str
        C11, without libraries but the C library.

    Raises
    ------
    ValueError
        If the workload has no matrix products, or sums too long to be checked.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.workloads.hardware import Gemm
    >>> gemm = Gemm("fc", "forward", 8, 4, 2, 32)
    >>> work = Workload("n", "d", 8, (Operation("fc", "forward", "gemm", 128, 96, 128, (), gemm),))
    >>> print([line for line in gem5_program(work).splitlines() if line.startswith("KERNEL")][0])
    KERNEL gemm_m8_n4_k2_fc4fdad9(const ELEMENT *a, const ELEMENT *b, SUM *c)
    """
    found = kernels(workload)
    functions = "".join(
        f"\nKERNEL {name}(const ELEMENT *a, const ELEMENT *b, SUM *c)\n"
        f"{{\n    gemm({gemm.m}, {gemm.n}, {gemm.k}, a, b, c);\n}}\n"
        for name, gemm in found.items()
    )
    main = _MAIN.replace("@TABLE@", table(workload)).replace("@DIGEST@", network_digest(workload))
    head = "/*\n" + comment(workload, "C program", _HOW) + "\n */"
    return head + _HEAD + "\n" + constants(workload) + CHECK + _GEMM + functions + main
