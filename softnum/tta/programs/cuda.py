"""A CUDA program of the products, for GPGPU-Sim, Accel-Sim and whatever else runs CUDA."""

from __future__ import annotations

from softnum.tta.programs.common import CHECK, comment, constants, kernels, table
from softnum.tta.workloads.operations import Workload
from softnum.tta.workloads.products import network_digest

__all__ = ["BLOCK", "check_grid", "cuda_program"]

BLOCK = 16  # threads of a block along each side of its tile
_ROWS, _COLUMNS = 2**31 - 1, 65535  # blocks of a grid along x and y: CUDA C++ Programming Guide, compute capabilities

_HOW = [
    "",
    "One kernel for each shape, launched in the order of the iteration; a block of 16 x 16 threads makes a tile of",
    "16 x 16 results, its operands' tiles in shared memory. No library is used. For GPGPU-Sim, link with the shared",
    "runtime that it stands in for:",
    "    nvcc -cudart shared -arch=sm_70 products.cu -o products",
    "Macros: ITERATIONS (1), ELEMENT and SUM (float; for other widths of operands, -DELEMENT=int8_t -DSUM=int32_t or",
    "-DELEMENT=int16_t -DSUM=int32_t). It ends with 0 if all results are right, with 1 if one is wrong, with 2 if",
    "memory lacks or CUDA fails.",
]

_HEAD = r"""
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef ELEMENT
#define ELEMENT float
#endif
#ifndef SUM
#define SUM float
#endif
#ifndef ITERATIONS
#define ITERATIONS 1
#endif
#define BLOCK 16
"""

_GEMM = r"""
template <unsigned M, unsigned N, unsigned K>
static __device__ __forceinline__ void gemm(const ELEMENT *a, const ELEMENT *b, SUM *c)
{
    __shared__ ELEMENT left[BLOCK][BLOCK], right[BLOCK][BLOCK];
    const unsigned row = blockIdx.x * BLOCK + threadIdx.y, column = blockIdx.y * BLOCK + threadIdx.x;
    SUM sum = 0;
    for (unsigned l = 0; l < K; l += BLOCK) {
        const unsigned along = l + threadIdx.x, down = l + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < M && along < K ? a[(size_t)row * K + along] : ELEMENT(0);
        right[threadIdx.y][threadIdx.x] = down < K && column < N ? b[(size_t)down * N + column] : ELEMENT(0);
        __syncthreads();
        for (int t = 0; t < BLOCK; t++) {
            sum += SUM(left[threadIdx.y][t]) * SUM(right[t][threadIdx.x]);
        }
        __syncthreads();
    }
    if (row < M && column < N) {
        c[(size_t)row * N + column] = sum;
    }
}
"""

_MAIN = r"""
typedef void (*kernel)(const ELEMENT *, const ELEMENT *, SUM *);

static const struct product {
    const char *name, *layer;
    kernel run;
    size_t m, n, k;
    unsigned long count;
} products[] = {
@TABLE@
};

static void need(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(2);
    }
}

int main(void)
{
    ELEMENT *a = operand(A_ELEMENTS, 1), *b = operand(B_ELEMENTS, 2);
    SUM *c = (SUM *)room(C_ELEMENTS, sizeof(SUM)), *device_c;
    ELEMENT *device_a, *device_b;
    uint64_t *left = (uint64_t *)room(LONGEST_SUM, sizeof(uint64_t));
    int wrong = 0, all = 0;
    need(cudaMalloc((void **)&device_a, A_ELEMENTS * sizeof(ELEMENT)), "memory for left operands");
    need(cudaMalloc((void **)&device_b, B_ELEMENTS * sizeof(ELEMENT)), "memory for right operands");
    need(cudaMalloc((void **)&device_c, C_ELEMENTS * sizeof(SUM)), "memory for results");
    need(cudaMemcpy(device_a, a, A_ELEMENTS * sizeof(ELEMENT), cudaMemcpyHostToDevice), "left operands");
    need(cudaMemcpy(device_b, b, B_ELEMENTS * sizeof(ELEMENT), cudaMemcpyHostToDevice), "right operands");
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (const product &p : products) {
            const dim3 grid((unsigned)((p.m + BLOCK - 1) / BLOCK), (unsigned)((p.n + BLOCK - 1) / BLOCK));
            for (unsigned long i = 0; i < p.count; i++) {
                p.run<<<grid, dim3(BLOCK, BLOCK)>>>(device_a, device_b, device_c);
            }
            need(cudaGetLastError(), p.name);
            need(cudaMemcpy(c, device_c, p.m * p.n * sizeof(SUM), cudaMemcpyDeviceToHost), p.name);
            wrong += told(p.name, p.layer, p.count, p.m, p.n, p.k, a, b, c, left);
            all++;
        }
    }
    printf("@DIGEST@: %d of %d products right\n", all - wrong, all);
    return wrong != 0;
}
"""


def check_grid(workload: Workload) -> None:
    """Raise ValueError for a product that no grid of blocks covers."""
    for gemm in workload.gemms:
        for size, name, blocks in ((gemm.m, "M", _ROWS), (gemm.n, "N", _COLUMNS)):
            most = min(blocks * BLOCK, 2**32 - BLOCK)
            if size > most:
                raise ValueError(
                    f"layer {gemm.layer!r}, {gemm.phase}: {name} is {size}, and a grid covers up to {most}; take a "
                    "smaller batch, or leave the layer out (--layer)"
                )


def cuda_program(workload: Workload) -> str:
    """The text of the CUDA program: kernels, and a main program that launches them in order and checks each result.

    Parameters
    ----------
    workload : Workload

    Returns
    -------
    str
        CUDA C++11.

    Raises
    ------
    ValueError
        If the workload has no matrix products, sums too long to be checked, or a product too large for a grid.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.workloads.hardware import Gemm
    >>> gemm = Gemm("fc", "forward", 8, 4, 2, 32)
    >>> work = Workload("n", "d", 8, (Operation("fc", "forward", "gemm", 128, 96, 128, (), gemm),))
    >>> print([line for line in cuda_program(work).splitlines() if "__global__" in line][0])
    extern "C" __global__ void gemm_m8_n4_k2_fc4fdad9(const ELEMENT *a, const ELEMENT *b, SUM *c)
    """
    found = kernels(workload)
    check_grid(workload)
    functions = "".join(
        f'\nextern "C" __global__ void {name}(const ELEMENT *a, const ELEMENT *b, SUM *c)\n'
        f"{{\n    gemm<{gemm.m}u, {gemm.n}u, {gemm.k}u>(a, b, c);\n}}\n"
        for name, gemm in found.items()
    )
    head = "/*\n" + comment(workload, "CUDA program", _HOW) + "\n */"
    main = _MAIN.replace("@TABLE@", table(workload)).replace("@DIGEST@", network_digest(workload))
    return head + _HEAD + constants(workload) + CHECK + _GEMM + functions + main
