"""The products' kernels as PTX text, with a main program that loads it by CUDA's driver interface.

PTX ISA 6.0, target sm_60: docs.nvidia.com/cuda/parallel-thread-execution. Later GPUs and simulators of PTX take it too.
"""

from __future__ import annotations

from softnum.tta.programs.common import CHECK, comment, constants, kernels, table
from softnum.tta.programs.cuda import BLOCK, check_grid
from softnum.tta.workloads.operations import Workload
from softnum.tta.workloads.products import network_digest

__all__ = ["ptx_kernels", "ptx_program"]

_WIDEST = (2**32 - 1) // 4  # columns: the bytes of a row are counted in 32 bits

_KERNEL_HOW = [
    "",
    "One kernel for each shape: a block of 16 x 16 threads makes a tile of 16 x 16 results, its operands' tiles in",
    "shared memory. Operands and results are float32. Arguments: the two operands and the result.",
]
_MAIN_HOW = [
    "",
    "It loads products.ptx from the folder in which it is run and launches the kernels in the order of the iteration:",
    "    cc -O2 -I$CUDA/include products.c -lcuda -o products",
    "Macro: ITERATIONS (1). It ends with 0 if all results are right, with 1 if one is wrong, with 2 if memory lacks or",
    "CUDA fails. GPGPU-Sim has no such interface: export for it as cuda.",
]

_KERNEL = """
.visible .entry @NAME@(
	.param .u64 @NAME@_a,
	.param .u64 @NAME@_b,
	.param .u64 @NAME@_c
)
{
	.reg .pred %p<7>;
	.reg .b32 %r<16>;
	.reg .f32 %f<6>;
	.reg .b64 %rd<12>;
	.shared .align 4 .b8 @NAME@_left[1024];
	.shared .align 4 .b8 @NAME@_right[1024];

	ld.param.u64 %rd1, [@NAME@_a];
	ld.param.u64 %rd2, [@NAME@_b];
	ld.param.u64 %rd3, [@NAME@_c];
	cvta.to.global.u64 %rd1, %rd1;
	cvta.to.global.u64 %rd2, %rd2;
	cvta.to.global.u64 %rd3, %rd3;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %tid.y;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ctaid.y;
	mad.lo.u32 %r5, %r3, 16, %r2;		// row of the result
	mad.lo.u32 %r6, %r4, 16, %r1;		// its column
	setp.lt.u32 %p1, %r5, @M@;
	setp.lt.u32 %p2, %r6, @N@;
	shl.b32 %r8, %r2, 6;
	shl.b32 %r9, %r1, 2;
	mov.u32 %r7, @NAME@_left;
	add.u32 %r7, %r7, %r8;			// the thread's row of the left tile
	add.u32 %r10, %r7, %r9;			// its own element there
	mov.u32 %r11, @NAME@_right;
	add.u32 %r11, %r11, %r9;		// its column of the right tile
	add.u32 %r12, %r11, %r8;		// its own element there
	mul.wide.u32 %rd4, %r5, @K4@;
	mul.wide.u32 %rd5, %r1, 4;
	add.u64 %rd4, %rd4, %rd5;
	add.u64 %rd4, %rd1, %rd4;		// &a[row][tid.x]
	mul.wide.u32 %rd6, %r2, @N4@;
	mul.wide.u32 %rd7, %r6, 4;
	add.u64 %rd6, %rd6, %rd7;
	add.u64 %rd6, %rd2, %rd6;		// &b[tid.y][column]
	mov.f32 %f1, 0f00000000;
	mov.u32 %r13, 0;

@NAME@_along:
	add.u32 %r14, %r13, %r1;
	setp.lt.u32 %p3, %r14, @K@;
	and.pred %p3, %p3, %p1;
	mov.f32 %f2, 0f00000000;
	@%p3 ld.global.f32 %f2, [%rd4];
	add.u32 %r15, %r13, %r2;
	setp.lt.u32 %p4, %r15, @K@;
	and.pred %p4, %p4, %p2;
	mov.f32 %f3, 0f00000000;
	@%p4 ld.global.f32 %f3, [%rd6];
	st.shared.f32 [%r10], %f2;
	st.shared.f32 [%r12], %f3;
	bar.sync 0;
@STEPS@
	bar.sync 0;
	add.u64 %rd4, %rd4, 64;
	add.u64 %rd6, %rd6, @N64@;
	add.u32 %r13, %r13, 16;
	setp.lt.u32 %p5, %r13, @K@;
	@%p5 bra @NAME@_along;

	and.pred %p6, %p1, %p2;
	mul.wide.u32 %rd8, %r5, @N4@;
	add.u64 %rd8, %rd8, %rd7;
	add.u64 %rd8, %rd3, %rd8;
	@%p6 st.global.f32 [%rd8], %f1;
	ret;
}
"""

_STEPS = "\n".join(
    f"\tld.shared.f32 %f4, [%r7+{4 * step}];\n"
    f"\tld.shared.f32 %f5, [%r11+{4 * BLOCK * step}];\n"
    "\tfma.rn.f32 %f1, %f4, %f5, %f1;"
    for step in range(BLOCK)
)

_MAIN = r"""
#include <cuda.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ELEMENT float
#define SUM float
#ifndef ITERATIONS
#define ITERATIONS 1
#endif
#define BLOCK 16
@NUMBERS@@CHECK@
static const struct product {
    const char *name, *layer;
    size_t m, n, k;
    unsigned long count;
} products[] = {
@TABLE@
};

enum { PRODUCTS = sizeof products / sizeof products[0] };

static void need(CUresult result, const char *what)
{
    const char *text = "unknown error";
    if (result != CUDA_SUCCESS) {
        cuGetErrorString(result, &text);
        fprintf(stderr, "%s: %s\n", what, text);
        exit(2);
    }
}

int main(void)
{
    float *a = operand(A_ELEMENTS, 1), *b = operand(B_ELEMENTS, 2), *c = room(C_ELEMENTS, sizeof *c);
    uint64_t *left = room(LONGEST_SUM, sizeof *left);
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUdeviceptr device_a, device_b, device_c;
    int wrong = 0, all = 0;
    need(cuInit(0), "cuInit");
    need(cuDeviceGet(&device, 0), "device 0");
    need(cuDevicePrimaryCtxRetain(&context, device), "context");
    need(cuCtxSetCurrent(context), "context");
    need(cuModuleLoad(&module, "products.ptx"), "products.ptx");
    need(cuMemAlloc(&device_a, A_ELEMENTS * sizeof *a), "memory for left operands");
    need(cuMemAlloc(&device_b, B_ELEMENTS * sizeof *b), "memory for right operands");
    need(cuMemAlloc(&device_c, C_ELEMENTS * sizeof *c), "memory for results");
    need(cuMemcpyHtoD(device_a, a, A_ELEMENTS * sizeof *a), "left operands");
    need(cuMemcpyHtoD(device_b, b, B_ELEMENTS * sizeof *b), "right operands");
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (int p = 0; p < PRODUCTS; p++) {
            const struct product *q = &products[p];
            const unsigned rows = (unsigned)((q->m + BLOCK - 1) / BLOCK);
            const unsigned columns = (unsigned)((q->n + BLOCK - 1) / BLOCK);
            void *arguments[] = {&device_a, &device_b, &device_c};
            CUfunction kernel;
            need(cuModuleGetFunction(&kernel, module, q->name), q->name);
            for (unsigned long i = 0; i < q->count; i++) {
                need(cuLaunchKernel(kernel, rows, columns, 1, BLOCK, BLOCK, 1, 0, NULL, arguments, NULL), q->name);
            }
            need(cuMemcpyDtoH(c, device_c, q->m * q->n * sizeof *c), q->name);
            wrong += told(q->name, q->layer, q->count, q->m, q->n, q->k, a, b, c, left);
            all++;
        }
    }
    printf("@DIGEST@: %d of %d products right\n", all - wrong, all);
    return wrong != 0;
}
"""


def ptx_kernels(workload: Workload) -> str:
    """The text of the kernels, one for each shape of a product.

    Parameters
    ----------
    workload : Workload

    Returns
    -------
    str
        PTX ISA 6.0.

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
    >>> print([line for line in ptx_kernels(work).splitlines() if ".entry" in line][0])
    .visible .entry gemm_m8_n4_k2_fc4fdad9(
    """
    found = kernels(workload)
    check_grid(workload)
    text = comment(workload, "PTX kernels", _KERNEL_HOW, "//") + "\n\n.version 6.0\n.target sm_60\n.address_size 64\n"
    for name, gemm in found.items():
        if max(gemm.n, gemm.k) > _WIDEST:
            raise ValueError(
                f"layer {gemm.layer!r}, {gemm.phase}: rows of {max(gemm.n, gemm.k)} elements, and the kernels take up "
                f"to {_WIDEST}; leave the layer out (--layer)"
            )
        facts = {
            "NAME": name, "M": gemm.m, "N": gemm.n, "K": gemm.k, "N4": 4 * gemm.n, "K4": 4 * gemm.k,
            "N64": 4 * BLOCK * gemm.n, "STEPS": _STEPS,
        }  # fmt: skip
        kernel = _KERNEL
        for key, fact in facts.items():
            kernel = kernel.replace(f"@{key}@", str(fact))
        text += kernel
    return text


def ptx_program(workload: Workload) -> str:
    """The text of the main program, in C, that loads the kernels and launches them in order.

    Parameters
    ----------
    workload : Workload

    Returns
    -------
    str
        C11 with CUDA's driver interface.

    Raises
    ------
    ValueError
        As `ptx_kernels`.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.workloads.hardware import Gemm
    >>> gemm = Gemm("fc", "forward", 8, 4, 2, 32)
    >>> work = Workload("n", "d", 8, (Operation("fc", "forward", "gemm", 128, 96, 128, (), gemm),))
    >>> '{"gemm_m8_n4_k2_fc4fdad9", "fc forward", 8, 4, 2, 1},' in ptx_program(work)
    True
    """
    kernels(workload)
    check_grid(workload)
    facts = {
        "NUMBERS": constants(workload),
        "CHECK": CHECK,
        "TABLE": table(workload, function=False),
        "DIGEST": network_digest(workload),
    }
    text = "/*\n" + comment(workload, "Main program", _MAIN_HOW) + "\n */" + _MAIN
    for key, fact in facts.items():
        text = text.replace(f"@{key}@", fact)
    return text
