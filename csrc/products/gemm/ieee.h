/* GEMM whose every step is an operation of the CPU's in binary32 (E_BITS 32) or binary64 (64): a fused multiply-add, or
 * a multiplication and an addition; in lanes and chunks, in an order of its own, with subnormals that become zeros.
 * Included by products/gemm/body.h, twice for each instruction set.
 *
 * Domain, checked by products/gemm/paths.c: products that are rounded, sums and outer sums are of the carrier's format,
 * to nearest even, infinite where they overflow; operands are exact in the carrier. Compilers must neither contract nor
 * reorder (setup.py), and the floating-point environment is plain while a kernel runs (sn_fp_enter): what becomes zero
 * becomes it by comparisons here, not by MXCSR.
 *
 * Zeros (SN_ZEROS_*). Small operands and C are replaced once, before the sums. Of sums and rounded products:
 *   - read: what is subnormal is a zero where it is an operand of a sum, and stays in a result.
 *   - written: a rounding whose result is subnormal gives a zero of its sign. So does one that judges tininess before
 * or after the rounding, where x * y is exact in the carrier: x * y + z is then a multiple of its smallest subnormal,
 *     below twice the least normal number exact, so that it is tiny if and only if its result is subnormal.
 *     Additions of two numbers of the carrier are always such.
 *   - marked: else a result r below 2^-126 is tiny both before and after, one above is neither, and 2^-126 itself, to
 *     which numbers from 2^-126 - 2^-150 on are rounded, is undecided. Blocks where that occurs are computed again:
 *   - decided: x * y + z rounded to odd in binary64 (lanes/lanes.h: x * y is exact there) lies on the same side of
 *     2^-126, below which it is tiny before, and of 2^-126 - 2^-151, below which it is tiny after a rounding to 24 bits
 *     with an unbounded exponent; both are even binary64 numbers.
 *   - nowhere, though the unit has them: C is 0 or normal, and of these rows and this panel all products are multiples
 *     of 2^q with q at least 24 (53) above the least normal exponent. So are their sums without C, rounded or not. Let
 * s be such a sum and t one with C, 0 or normal: if |t| is at least 2^(q - 1), t + s is a multiple of 2^(q - 24) (2^(q
 * - 53)), that is 0, or normal; else s is 0, and t + s is t, or |t + s| is above 2^(q - 1). No rounding is of a tiny
 * number then.
 *
 * A chunk that is filled up with zeros (`each`) is the same: lanes start from +0, and one without a product is +0,
 * which is what 0 * 0 added to it gives.
 *
 * Ways: `rows`, sums in registers, and `each`, a product for each lane of a chunk, which become a tree in registers;
 * `lanes`, all else, whose sums lie in memory. Instructions for a vector of 16 products, AVX-512, of which two begin
 * per cycle; sgemm needs 1: rows 1, with written zeros 5, marked 7; each 2, with written zeros 8. */

#if E_BITS == 32
#define E_F float
#define E_V sn_vf
#define E_U sn_vu
#define E_I sn_vi
#define E_u sn_u32
#define E_i sn_i32
#define E_N SN_V
#define E_M 23
#define E_SIGN 0x80000000u
#define E_LEAST 0x800000
#define E_NO_LEAST 0x7fffffff
#define E_NAN 0x7fc00000u
#define E_BIAS 127
#define E_SELECT SN_SELECT32
#define E_LOAD sn_load_vf
#define E_FMA SN_FMA
#define E_MULTIPLY_ADD SN_MULTIPLY_ADD
#define E_(name) SN_(ieee_##name##32)
#else
#define E_F double
#define E_V sn_wf
#define E_U sn_wu
#define E_I sn_wi
#define E_u sn_u64
#define E_i sn_i64
#define E_N SN_W
#define E_M 52
#define E_SIGN 0x8000000000000000u
#define E_LEAST 0x10000000000000
#define E_NO_LEAST 0x7fffffffffffffff
#define E_NAN 0x7ff8000000000000u
#define E_BIAS 1023
#define E_SELECT SN_SELECT64
#define E_LOAD sn_load_wf
#define E_FMA SN_FMA64
#define E_MULTIPLY_ADD SN_MULTIPLY_ADD64
#define E_(name) SN_(ieee_##name##64)
#endif

/* What all blocks of a call share: rows of a from m0 on, packed or as they were; b's panel; where `lanes` has its sums,
 * for each row C and the lanes. */
typedef struct {
    const E_F *a, *panel;
    E_F *sums;
    ptrdiff_t lda, length; /* length: K with what the last period is filled up with */
} E_(job);

SN_INLINE E_V E_(broadcast)(E_F x) {
    E_u bits;
    memcpy(&bits, &x, sizeof bits);
    return (E_V)((E_U){0} + bits);
}

SN_INLINE E_V E_(flushed)(E_V v) {
    const E_I normal = (E_I)((E_U)v & ~E_SIGN) >= (E_I){0} + E_LEAST;
    return (E_V)((E_U)v & ((E_U)normal | E_SIGN));
}

/* r, rounded from x * y + z, with zeros by a level. */
SN_INLINE E_V E_(written)(const sn_gemm_unit *u, int level, E_V r, E_V x, E_V y, E_V z, E_I *marks) {
#if E_BITS == 32
    if (level == SN_ZEROS_DECIDED) {
        const double least = u->ieee.before ? 0x1p-126 : 0x1p-126 - 0x1p-151;
        sn_vi tiny = {0};
        for (int i = 0; i < SN_V; i += SN_W) {
            const sn_wf w = SN_(add_odd)(SN_(widened)(x, i) * SN_(widened)(y, i), SN_(widened)(z, i));
            for (int j = 0; j < SN_W; j++)
                tiny[i + j] = w[j] < least && w[j] > -least ? -1 : 0;
        }
        return (sn_vf)((sn_vu)r & (~(sn_vu)tiny | E_SIGN));
    }
#else
    (void)u, (void)x, (void)y, (void)z;
#endif
    if (level == SN_ZEROS_MARKED) *marks |= (E_I)((E_U)r & ~E_SIGN) == (E_I){0} + E_LEAST;
    return level >= SN_ZEROS_WRITTEN ? E_(flushed)(r) : r;
}

/* level and rounded are known to the compiler. */
SN_INLINE E_V E_(step)(const sn_gemm_unit *u, int level, int rounded, E_V x, E_V y, E_V acc, E_I *marks) {
    if (level == SN_ZEROS_READ) acc = E_(flushed)(acc);
    if (!rounded) {
        const E_V r = u->product == SN_PRODUCT_EXACT ? E_MULTIPLY_ADD(x, y, acc) : E_FMA(x, y, acc);
        return E_(written)(u, level, r, x, y, acc, marks);
    }
    E_V p = E_(written)(u, level, x * y, x, y, (E_V){0}, marks);
    if (level == SN_ZEROS_READ) p = E_(flushed)(p);
    const E_V r = acc + p;
    return level >= SN_ZEROS_WRITTEN ? E_(flushed)(r) : r;
}

SN_INLINE E_V E_(add)(int level, E_V x, E_V y) {
    if (level == SN_ZEROS_READ) {
        x = E_(flushed)(x);
        y = E_(flushed)(y);
    }
    return level >= SN_ZEROS_WRITTEN ? E_(flushed)(x + y) : x + y;
}

/* What a row's sums start from. */
SN_INLINE void E_(start)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column, ptrdiff_t valid,
                         E_F *edge) {
    const int reads = u->ieee.reads && g->k, positive = u->ieee.positive;
    if (!g->c) return;
    memcpy(edge, (const E_F *)g->c + row * g->ldc + column, (size_t)valid * sizeof *edge);
    for (ptrdiff_t j = 0; j < valid && (reads || positive); j++) {
        E_u bits;
        memcpy(&bits, edge + j, sizeof bits);
        if ((bits & ~E_SIGN) < E_LEAST) bits = positive ? 0 : bits & E_SIGN;
        memcpy(edge + j, &bits, sizeof bits);
    }
}

SN_INLINE void E_(finish)(const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column, ptrdiff_t valid, E_F *edge) {
    for (int v = 0; v < SN_PANEL; v += E_N) {
        const E_V x = E_LOAD(edge + v);
        const E_U canonical = E_SELECT(x != x, (E_U){0} + E_NAN, x);
        memcpy(edge + v, &canonical, sizeof canonical);
    }
    memcpy((E_F *)g->out + row * g->ldo + column, edge, (size_t)valid * sizeof *edge);
}

SN_INLINE int E_(any)(E_I marks) {
    E_I found = marks;
    for (int i = 1; i < E_N; i++)
        found[0] |= found[i];
    return found[0] != 0;
}

/* Columns that a block of so many vectors has in the panel that begins at `column`. */
SN_INLINE ptrdiff_t E_(valid)(const sn_gemm_args *g, ptrdiff_t column, ptrdiff_t width) {
    const ptrdiff_t left = g->n - column;
    return left < width ? left : width;
}

/* Rows x vectors whose sums stay in registers, from `at` of the panel on. Returns whether a result is undecided, as all
 * ways do. */
SN_INLINE int E_(rows)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, int rows, int vectors,
                       int level, ptrdiff_t row, ptrdiff_t column, ptrdiff_t at) {
    const ptrdiff_t valid = E_(valid)(g, column + at, vectors * E_N), lda = job->lda;
    const E_F *a = job->a + (row - g->m0) * lda, *b = job->panel + at;
    E_F edge[SN_IEEE_ROWS][SN_PANEL] = {{0}};
    E_V acc[SN_IEEE_ROWS][2];
    E_I marks = {0};
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        E_(start)(u, g, row + i, column + at, valid, edge[i]);
        SN_UNROLL
        for (int v = 0; v < vectors; v++)
            acc[i][v] = u->chunk ? (E_V){0} : E_LOAD(edge[i] + v * E_N);
    }
    const ptrdiff_t length = u->chunk ? (ptrdiff_t)u->chunk : job->length;
    for (ptrdiff_t k = 0; k < job->length;) {
        const ptrdiff_t end = job->length - k < length ? job->length : k + length;
        for (; k < end; k++) {
            E_V y[2];
            SN_UNROLL
            for (int v = 0; v < vectors; v++)
                y[v] = E_LOAD(b + k * SN_PANEL + v * E_N);
            SN_UNROLL
            for (int i = 0; i < rows; i++) {
                const E_V x = E_(broadcast)(a[i * lda + k]);
                SN_UNROLL
                for (int v = 0; v < vectors; v++)
                    acc[i][v] = E_(step)(u, level, 0, x, y[v], acc[i][v], &marks);
            }
        }
        if (!u->chunk) break;
        SN_UNROLL
        for (int i = 0; i < rows; i++) {
            SN_UNROLL
            for (int v = 0; v < vectors; v++) {
                const E_V outer = E_(add)(level, E_LOAD(edge[i] + v * E_N), acc[i][v]);
                memcpy(edge[i] + v * E_N, &outer, sizeof outer);
                acc[i][v] = (E_V){0};
            }
        }
    }
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        SN_UNROLL
        for (int v = 0; v < vectors; v++)
            if (!u->chunk) memcpy(edge[i] + v * E_N, &acc[i][v], sizeof acc[i][v]);
        E_(finish)(g, row + i, column + at, valid, edge[i]);
    }
    return level == SN_ZEROS_MARKED && E_(any)(marks);
}

/* The same, of chunks with a product for each of 2 or 4 lanes, which the compiler knows. */
SN_INLINE int E_(each)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, int rows, int vectors,
                       int lanes, int level, ptrdiff_t row, ptrdiff_t column, ptrdiff_t at) {
    const ptrdiff_t valid = E_(valid)(g, column + at, vectors * E_N), lda = job->lda;
    const E_F *a = job->a + (row - g->m0) * lda, *b = job->panel + at;
    E_F edge[SN_IEEE_ROWS][SN_PANEL] = {{0}};
    E_V outer[SN_IEEE_ROWS][2];
    E_I marks = {0};
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        E_(start)(u, g, row + i, column + at, valid, edge[i]);
        SN_UNROLL
        for (int v = 0; v < vectors; v++)
            outer[i][v] = E_LOAD(edge[i] + v * E_N);
    }
    for (ptrdiff_t k = 0; k < job->length; k += lanes) {
        SN_UNROLL
        for (int i = 0; i < rows; i++) {
            SN_UNROLL
            for (int v = 0; v < vectors; v++) {
                E_V sum[4];
                SN_UNROLL
                for (int j = 0; j < lanes; j++) {
                    const E_V x = E_(broadcast)(a[i * lda + k + j]), y = E_LOAD(b + (k + j) * SN_PANEL + v * E_N);
                    sum[j] = E_(step)(u, level, 0, x, y, (E_V){0}, &marks);
                }
                SN_UNROLL
                for (int stride = 1; stride < lanes; stride *= 2) {
                    SN_UNROLL
                    for (int j = 0; j < lanes; j += 2 * stride)
                        sum[j] = E_(add)(level, sum[j], sum[j + stride]);
                }
                outer[i][v] = E_(add)(level, outer[i][v], sum[0]);
            }
        }
    }
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        SN_UNROLL
        for (int v = 0; v < vectors; v++)
            memcpy(edge[i] + v * E_N, &outer[i][v], sizeof outer[i][v]);
        E_(finish)(g, row + i, column + at, valid, edge[i]);
    }
    return 0;
}

/* Lanes of one row, each of `width` numbers: lane i becomes lane i + lane j. */
SN_INLINE void E_(join)(E_F *sums, ptrdiff_t i, ptrdiff_t j, ptrdiff_t width, int level) {
    for (ptrdiff_t v = 0; v < width; v += E_N) {
        const E_V sum = E_(add)(level, E_LOAD(sums + i * SN_PANEL + v), E_LOAD(sums + j * SN_PANEL + v));
        memcpy(sums + i * SN_PANEL + v, &sum, sizeof sum);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): ten levels at most */
static void E_(join_halves)(E_F *sums, ptrdiff_t first, ptrdiff_t n, ptrdiff_t width, int level) {
    if (n < 2) return;
    const ptrdiff_t half = (n + 1) / 2;
    E_(join_halves)(sums, first, half, width, level);
    E_(join_halves)(sums, first + half, n - half, width, level);
    E_(join)(sums, first, first + half, width, level);
}

/* The first n lanes become one number, in the first: the order of products/gemm/gemm.c. */
static void E_(reduce)(E_F *sums, ptrdiff_t n, int reduction, ptrdiff_t width, int level) {
    switch (reduction) {
    case SN_REDUCTION_TREE:
        for (ptrdiff_t stride = 1; stride < n; stride *= 2)
            for (ptrdiff_t i = 0; i + stride < n; i += 2 * stride)
                E_(join)(sums, i, i + stride, width, level);
        return;
    case SN_REDUCTION_PAIRWISE: E_(join_halves)(sums, 0, n, width, level); return;
    default:
        for (ptrdiff_t i = 1; i < n; i++)
            E_(join)(sums, 0, i, width, level);
    }
}

/* Rows of a panel whose lanes lie in memory: any unit of the path. */
SN_INLINE int E_(lanes)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, int rows, int level,
                        int rounded, ptrdiff_t row, ptrdiff_t column) {
    const ptrdiff_t valid = E_(valid)(g, column, SN_PANEL), width = (valid + E_N - 1) / E_N * E_N, lda = job->lda;
    const ptrdiff_t lanes = u->ieee.lanes, room = (lanes + 1) * SN_PANEL;
    const ptrdiff_t length = u->chunk ? (ptrdiff_t)u->chunk : job->length;
    const int with_c = !u->chunk && lanes > 1 && g->c; /* C is reduced with the lanes */
    const E_F *a = job->a + (row - g->m0) * lda;
    E_F edge[SN_IEEE_ROWS][SN_PANEL] = {{0}};
    E_I marks = {0};
    for (int i = 0; i < rows; i++)
        E_(start)(u, g, row + i, column, valid, edge[i]);
    for (ptrdiff_t start = 0; start < job->length; start += length) {
        const ptrdiff_t end = job->length - start < length ? job->length : start + length;
        memset(job->sums, 0, (size_t)(rows * room) * sizeof *job->sums);
        for (int i = 0; i < rows && !u->chunk; i++)
            memcpy(job->sums + i * room, edge[i], sizeof edge[i]);
        E_F *sums = job->sums + with_c * SN_PANEL; /* of the first lane */
        for (ptrdiff_t k = start, lane = 0; k < end; k++) {
            SN_UNROLL
            for (int i = 0; i < rows; i++) {
                const E_V x = E_(broadcast)(a[i * lda + k]);
                E_F *sum = sums + i * room + lane * SN_PANEL;
                for (ptrdiff_t v = 0; v < width; v += E_N) {
                    const E_V y = E_LOAD(job->panel + k * SN_PANEL + v);
                    const E_V next = E_(step)(u, level, rounded, x, y, E_LOAD(sum + v), &marks);
                    memcpy(sum + v, &next, sizeof next);
                }
            }
            lane = lane + 1 < lanes ? lane + 1 : 0;
        }
        for (int i = 0; i < rows; i++) {
            E_F *sum = job->sums + i * room;
            E_(reduce)(sum, lanes + with_c, u->ieee.reduction, width, level);
            for (ptrdiff_t v = 0; v < width; v += E_N) {
                E_V result = E_LOAD(sum + v);
                if (u->chunk) result = E_(add)(level, E_LOAD(edge[i] + v), result);
                memcpy(edge[i] + v, &result, sizeof result);
            }
        }
        if (job->length - start <= length) break; /* start + length may be too large a number */
    }
    for (int i = 0; i < rows; i++)
        E_(finish)(g, row + i, column, valid, edge[i]);
    return level == SN_ZEROS_MARKED && E_(any)(marks);
}

/* How rows of a panel are computed: SN_IEEE_ROWS of them, or one. */
typedef int E_(way)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, ptrdiff_t row, ptrdiff_t column);
typedef struct {
    E_(way) * block, *single;
} E_(ways);

/* Calls `name` for each two vectors of the panel, or the last one. */
#define E_PANEL(name, ...)                                                                                             \
    const ptrdiff_t end = E_(valid)(g, column, SN_PANEL);                                                              \
    int undecided = 0;                                                                                                 \
    for (ptrdiff_t at = 0; at < end; at += 2 * E_N)                                                                    \
        undecided |= end - at > E_N ? E_(name)(u, g, job, rows, 2, __VA_ARGS__, row, column, at)                       \
                                    : E_(name)(u, g, job, rows, 1, __VA_ARGS__, row, column, at);                      \
    return undecided;

#define E_WAY(name, body)                                                                                              \
    SN_INLINE int E_(name##_panel)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, int rows,        \
                                   ptrdiff_t row, ptrdiff_t column) {                                                  \
        body                                                                                                           \
    }                                                                                                                  \
    static int E_(name##_block)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, ptrdiff_t row,      \
                                ptrdiff_t column) {                                                                    \
        return E_(name##_panel)(u, g, job, SN_IEEE_ROWS, row, column);                                                 \
    }                                                                                                                  \
    static int E_(name##_single)(const sn_gemm_unit *u, const sn_gemm_args *g, const E_(job) * job, ptrdiff_t row,     \
                                 ptrdiff_t column) {                                                                   \
        return E_(name##_panel)(u, g, job, 1, row, column);                                                            \
    }

#define E_LEVEL(name, level)                                                                                           \
    E_WAY(rows_##name, E_PANEL(rows, level))                                                                           \
    E_WAY(lanes_##name, return E_(lanes)(u, g, job, rows, level, 0, row, column);)                                     \
    E_WAY(rounded_##name, return E_(lanes)(u, g, job, rows, level, 1, row, column);)
#define E_EACH(name, level)                                                                                            \
    E_WAY(each2_##name, E_PANEL(each, 2, level))                                                                       \
    E_WAY(each4_##name, E_PANEL(each, 4, level))

E_LEVEL(plain, SN_ZEROS_NOWHERE)
E_EACH(plain, SN_ZEROS_NOWHERE)
E_LEVEL(read, SN_ZEROS_READ)
E_LEVEL(written, SN_ZEROS_WRITTEN)
E_EACH(written, SN_ZEROS_WRITTEN)
#if E_BITS == 32
E_LEVEL(marked, SN_ZEROS_MARKED)
E_WAY(lanes_decided, return E_(lanes)(u, g, job, rows, SN_ZEROS_DECIDED, 0, row, column);)
E_WAY(rounded_decided, return E_(lanes)(u, g, job, rows, SN_ZEROS_DECIDED, 1, row, column);)
#endif

static E_(ways) E_(choose)(const sn_gemm_unit *u, int level) {
#define E_PAIR(name) ((E_(ways)){E_(name##_block), E_(name##_single)})
#define E_THREE(name)                                                                                                  \
    (u->product == SN_PRODUCT_NEAREST ? E_PAIR(rounded_##name)                                                         \
     : u->ieee.lanes > 1              ? E_PAIR(lanes_##name)                                                           \
                                      : E_PAIR(rows_##name))
    const int each = u->ieee.each;
    switch (level) {
    case SN_ZEROS_NOWHERE: return each ? each == 2 ? E_PAIR(each2_plain) : E_PAIR(each4_plain) : E_THREE(plain);
    case SN_ZEROS_READ: return E_THREE(read);
    case SN_ZEROS_WRITTEN: return each ? each == 2 ? E_PAIR(each2_written) : E_PAIR(each4_written) : E_THREE(written);
#if E_BITS == 32
    case SN_ZEROS_MARKED: return E_THREE(marked);
    default: return u->product == SN_PRODUCT_NEAREST ? E_PAIR(rounded_decided) : E_PAIR(lanes_decided);
#else
    default: return E_THREE(written); /* paths.c has no other */
#endif
    }
#undef E_PAIR
#undef E_THREE
}

/* n numbers of an operand, small ones as zeros; the least magnitude, of these and before, that is none. */
SN_INLINE E_i E_(enter)(const sn_ieee *e, int which, const E_F *from, E_F *to, ptrdiff_t n, E_i least) {
    const E_i small = (E_i)e->least[which];
    const E_u sign = e->signs[which] ? E_SIGN : 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        E_u bits;
        memcpy(&bits, from + j, sizeof bits);
        const E_i magnitude = (E_i)(bits & ~E_SIGN), other = magnitude && magnitude >= small ? magnitude : E_NO_LEAST;
        bits = magnitude < small ? bits & sign : bits;
        memcpy(to + j, &bits, sizeof bits);
        least = other < least ? other : least;
    }
    return least;
}

/* The k of a place in the order; those from g->k on are zeros. */
SN_INLINE ptrdiff_t E_(place)(const sn_ieee *e, ptrdiff_t k) {
    return e->order ? k / e->period * e->period + e->order[k % e->period] : k;
}

/* Rows of a, in the order, to `to`, or none there (null) if they can stay where they are; their least magnitude. */
static E_i E_(pack_a)(const sn_gemm_unit *u, const sn_gemm_args *g, E_(job) * job, E_F *room) {
    const sn_ieee *e = &u->ieee;
    const E_F *a = (const E_F *)g->a + g->m0 * g->lda;
    E_i least = E_NO_LEAST;
    job->a = a;
    job->lda = g->lda;
    if (!e->order && !e->least[0] && job->length == g->k && e->flush == SN_ZEROS_NOWHERE) return least;
    job->a = room;
    job->lda = job->length;
    for (ptrdiff_t i = 0; i < g->m1 - g->m0; i++, a += g->lda, room += job->length) {
        for (ptrdiff_t k = 0; k < job->length && e->order; k++) {
            const ptrdiff_t at = E_(place)(e, k);
            room[k] = at < g->k ? a[at] : 0;
        }
        if (!e->order) {
            memcpy(room, a, (size_t)g->k * sizeof *room);
            memset(room + g->k, 0, (size_t)(job->length - g->k) * sizeof *room);
        }
        least = E_(enter)(e, 0, room, room, job->length, least);
    }
    return least;
}

/* Up to SN_PANEL columns of b, likewise. */
static E_i E_(pack_b)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t length, ptrdiff_t column, E_F *panel) {
    const E_F *b = (const E_F *)g->b + column;
    const ptrdiff_t left = (g->n - column + SN_GEMM_LANES - 1) / SN_GEMM_LANES * SN_GEMM_LANES;
    const ptrdiff_t width = left < SN_PANEL ? left : SN_PANEL;
    E_i least = E_NO_LEAST;
    for (ptrdiff_t k = 0; k < length; k++, panel += SN_PANEL) {
        const ptrdiff_t at = E_(place)(&u->ieee, k);
        if (at < g->k)
            least = E_(enter)(&u->ieee, 1, b + at * g->ldb, panel, width, least);
        else
            memset(panel, 0, SN_PANEL * sizeof *panel);
    }
    return least;
}

/* The exponent of a last place that an operand's numbers share, of which this is the least magnitude. */
SN_INLINE sn_i32 E_(last_place)(const sn_gemm_unit *u, int operand, E_i least) {
    const sn_i32 last = (sn_i32)(least >> E_M) - E_BIAS + 1 - u->precision[operand];
    return last > u->last[operand] ? last : u->last[operand];
}

static void E_(gemm)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    const sn_ieee *e = &u->ieee;
    E_(job) job;
    job.length = (g->k + e->period - 1) / e->period * e->period;
    E_F *panel = (E_F *)(void *)g->panel;
    job.panel = panel;
    job.sums = panel + job.length * SN_PANEL;
    const E_i least_a = E_(pack_a)(u, g, &job, job.sums + SN_IEEE_ROWS * (e->lanes + 1) * SN_PANEL);
    const int normal_c = e->reads || e->positive || !g->c; /* or 0 */
    for (ptrdiff_t column = 0; column < g->n; column += SN_PANEL) {
        const E_i least_b = E_(pack_b)(u, g, job.length, column, panel);
        const int none = normal_c && E_(last_place)(u, 0, least_a) + E_(last_place)(u, 1, least_b) >= 2 + E_M - E_BIAS;
        const E_(ways) way = E_(choose)(u, none ? SN_ZEROS_NOWHERE : e->flush);
        for (ptrdiff_t row = g->m0; row < g->m1;) {
            const ptrdiff_t rows = g->m1 - row < SN_IEEE_ROWS ? 1 : SN_IEEE_ROWS;
            if ((rows == 1 ? way.single : way.block)(u, g, &job, row, column)) {
                const E_(ways) decided = E_(choose)(u, SN_ZEROS_DECIDED);
                (rows == 1 ? decided.single : decided.block)(u, g, &job, row, column);
            }
            row += rows;
        }
    }
}

#undef E_F
#undef E_V
#undef E_U
#undef E_I
#undef E_u
#undef E_i
#undef E_N
#undef E_M
#undef E_SIGN
#undef E_LEAST
#undef E_NO_LEAST
#undef E_NAN
#undef E_BIAS
#undef E_SELECT
#undef E_LOAD
#undef E_FMA
#undef E_MULTIPLY_ADD
#undef E_
#undef E_PANEL
#undef E_WAY
#undef E_LEVEL
#undef E_EACH
#undef E_BITS
