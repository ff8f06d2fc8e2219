"""What the programs share: the list of products, the operands, and the check of a result.

Operands are whole numbers from -2 to 2, a function of the element's index, so that every sum is exact in float up to
K = 4,194,304, in whatever order it is taken. The check compares two numbers modulo 2**64, for weights u and v::

    sum over i, j of u[i] C[i,j] v[j]   =   sum over l of (sum over i of u[i] A[i,l]) (sum over j of B[l,j] v[j])

The right side is the definition of the product, summed in another order; it takes M K + K N steps, not M N K. See
R. Freivalds, "Probabilistic machines can use less running time", IFIP Congress 1977.
"""

from __future__ import annotations

from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.operations import Workload
from softnum.tta.workloads.products import ProductName, network_digest

__all__ = ["CHECK", "LARGEST_SUM", "WRITTEN", "comment", "constants", "kernels", "table"]

WRITTEN = "Written by softnum workloads."  # in the comment of each program, so that it is known again
LARGEST_SUM = 2**22  # of products of at most 4, exact in float: 4 K <= 2**24

CHECK = r"""
/* element i of an operand: a whole number from -2 to 2 */
static int value(uint64_t i, uint32_t seed)
{
    uint32_t x = ((uint32_t)i ^ (uint32_t)(i >> 32) * 0x9e3779b1u) + seed * 0x85ebca6bu;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return (int)((x ^ x >> 16) % 5u) - 2;
}

static uint64_t weight(uint64_t i, uint32_t seed)
{
    uint32_t x = (uint32_t)i * 0x9e3779b1u + seed;
    x = (x ^ x >> 16) * 0x7feb352du;
    return (x ^ x >> 15) % 65521u + 1u;
}

/* whether u' C v = (u' A) (B v) modulo 2**64, and all of C are whole numbers that such a sum can be */
static int is_product(size_t m, size_t n, size_t k, const ELEMENT *a, const ELEMENT *b, const SUM *c, uint64_t *left,
                      uint64_t *checksum)
{
    uint64_t got = 0, want = 0;
    for (size_t i = 0; i < m; i++) {
        uint64_t row = 0;
        for (size_t j = 0; j < n; j++) {
            const SUM x = c[i * n + j];
            if (!((double)x <= 4.0 * (double)k && (double)x >= -4.0 * (double)k) || (SUM)(int64_t)x != x) {
                return 0;
            }
            row += (uint64_t)(int64_t)x * weight(j, 2);
        }
        got += row * weight(i, 1);
    }
    for (size_t l = 0; l < k; l++) {
        left[l] = 0;
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t l = 0; l < k; l++) {
            left[l] += weight(i, 1) * (uint64_t)(int64_t)a[i * k + l];
        }
    }
    for (size_t l = 0; l < k; l++) {
        uint64_t right = 0;
        for (size_t j = 0; j < n; j++) {
            right += (uint64_t)(int64_t)b[l * n + j] * weight(j, 2);
        }
        want += left[l] * right;
    }
    *checksum = got;
    return got == want;
}

/* checks a result and tells of it; 0 if it is right, else 1 */
static int told(const char *name, const char *layer, unsigned long count, size_t m, size_t n, size_t k,
                const ELEMENT *a, const ELEMENT *b, const SUM *c, uint64_t *left)
{
    uint64_t checksum = 0;
    const int right = is_product(m, n, k, a, b, c, left, &checksum);
    printf("%s, %s, %lu times: checksum %016" PRIx64 ", %s\n", name, layer, count, checksum, right ? "right" : "WRONG");
    return !right;
}

static void *room(uint64_t elements, size_t size)
{
    void *memory = elements > SIZE_MAX / size ? NULL : malloc((size_t)elements * size);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %" PRIu64 " elements of %u bytes\n", elements, (unsigned)size);
        exit(2);
    }
    return memory;
}

static ELEMENT *operand(uint64_t elements, uint32_t seed)
{
    ELEMENT *x = (ELEMENT *)room(elements, sizeof(ELEMENT));
    for (uint64_t i = 0; i < elements; i++) {
        x[i] = (ELEMENT)value(i, seed);
    }
    return x;
}
"""


def _name(gemm: Gemm, digest: str) -> str:
    """The kernel's name."""
    return str(ProductName(*gemm.shape, digest))


def kernels(workload: Workload) -> dict[str, Gemm]:
    """By name, the first product that each kernel computes: products of one shape share one.

    Raises
    ------
    ValueError
        If there are none, or sums of one are too long to be exact.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.workloads.hardware import Gemm
    >>> gemms = [Gemm("fc", stage, 8, 4, 2, 32) for stage in ("forward", "backward_data")]
    >>> work = Workload("n", "d", 8, tuple(Operation("fc", g.phase, "gemm", 128, 0, 0, (), g) for g in gemms))
    >>> [name[:-8] for name in kernels(work)]
    ['gemm_m8_n4_k2_']
    """
    digest = network_digest(workload)
    found: dict[str, Gemm] = {}
    for gemm in workload.gemms:
        if gemm.k > LARGEST_SUM:
            raise ValueError(
                f"layer {gemm.layer!r}, {gemm.phase}: K is {gemm.k}, and sums of more than {LARGEST_SUM} are not exact "
                "in float, so that the program could not check them; take a smaller batch, or leave it out (--layer)"
            )
        found.setdefault(_name(gemm, digest), gemm)
    return found


def constants(workload: Workload) -> str:
    """What a program's buffers are for: elements of the largest operands and result, and of the longest sum."""
    shapes = [gemm.shape for gemm in workload.gemms]
    numbers = {
        "A_ELEMENTS": max(m * k for m, _, k in shapes),
        "B_ELEMENTS": max(k * n for _, n, k in shapes),
        "C_ELEMENTS": max(m * n for m, n, _ in shapes),
        "LONGEST_SUM": max(k for _, _, k in shapes),
    }
    return "".join(f"#define {name} UINT64_C({number})\n" for name, number in numbers.items())


def comment(workload: Workload, what: str, how: list[str], mark: str = " *") -> str:
    """The comment at the head of a file."""
    times = sum(gemm.count for gemm in workload.gemms)
    lines = [
        f"{what}: the {times} matrix products of one training iteration of",
        f"{_plain(workload.network)}, batch {workload.batch}, design {_plain(workload.design)}; digest "
        f"{network_digest(workload)}. {WRITTEN}",
        "",
        "What an iteration does besides (element-wise operations, normalisation, updates, data) is not in it.",
        "Both operands of every product lie in the same two buffers, row by row.",
        *how,
    ]
    return "\n".join(f"{mark} {line}".rstrip() for line in lines)


def table(workload: Workload, function: bool = True) -> str:
    """The products in order, an initialiser of a struct each: name, layer and pass, its function, sizes, count."""
    digest = network_digest(workload)
    rows = []
    for gemm in workload.gemms:
        name = _name(gemm, digest)
        called = f" {name}," if function else ""
        facts = f"{gemm.m}, {gemm.n}, {gemm.k}, {gemm.count}"
        rows.append(f'    {{"{name}", "{_plain(gemm.layer)} {gemm.phase}",{called} {facts}}},')
    return "\n".join(rows)


def _plain(text: str) -> str:
    """Text that can stand in a comment and in a string of C: others than printable ASCII become "?"."""
    return "".join(c if " " <= c <= "~" and c not in '"\\*' else "?" for c in text)
