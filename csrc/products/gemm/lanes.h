/* GEMM by the definition, in lanes of 64 bits: a step of SN_W outputs at a time, any deterministic rounding, in lanes,
 * chunks and compensated, with zeros for what is subnormal, and with counts of what roundings come to. Included by
 * products/gemm/body.h, once per instruction set.
 *
 * A step is x * y + z rounded to odd in binary64 (lanes/odd.h), and then as the unit says. Domain, checked by
 * products/gemm/paths.c for each of the formats of products, sums and the outer sum: precision p + 2 <= 53, and
 * 2^-1074 is at most a quarter of its last place. Then the odd number lies on the same side of every value and every
 * midpoint of the format as the exact one, and is one of them only if the exact one is (Boldo and Melquiond 2008), in
 * every mode; and its rounding is inexact, tiny or beyond the format's range if and only if the exact number's is,
 * 2^emin and the largest value being even numbers of binary64 too. Past the largest binary64 number, an odd one, it is
 * that number. Operands are exact in binary64; NaN has a code wherever one can arise; nothing wraps around.
 *
 * To round: magnitudes from 2^emin (or the least value, where there are no subnormals) to the largest value have the
 * same places cut off, by the short way, an addition and a mask; so have zeros, if there is -0. Where a vector has
 * others (subnormals, what overflows, infinities, NaNs) all of it goes by round_to_value64 of lanes/round.h, out of the
 * loop, and so do all of fixed point and of unsigned formats. What is tiny and flushed becomes a zero there. "Tiny
 * after rounding" is the short way's rounding, whose exponent has no bound, below 2^emin: it is exact there since emin
 * > -1022.
 *
 * Counting (formats with signs and subnormals, or fixed point of addends of at most 52 bits): a vector of counters for
 * each of sn_tally's; inexact are the lanes where rounding changed something. Carriers hold no signaling NaN.
 *
 * Where all formats are binary64 and round to nearest even, the CPU's operations are the roundings (`native`).
 *
 * Instructions for a vector of 8 products, AVX-512, of which two begin per cycle: fused 4 for the odd sum (2 fma, test,
 * select), 4 to tell the short way, 5 to round. Counting adds 3. sgemm needs 1 for 16 products. */

enum { SN_COUNTS = 5 }; /* sn_tally's, but for roundings */
enum { SN_INEXACT_COUNT, SN_UNDERFLOWED_COUNT, SN_OVERFLOWED_COUNT, SN_SATURATED_COUNT, SN_INVALID_COUNT };

#define SN_LANES_SIGN 0x8000000000000000u
#define SN_LANES_INFINITY 0x7ff0000000000000

/* What all blocks of a call share, and the state of the one that is computed: SN_LANES_ROWS x SN_PANEL numbers for C
 * (first) and each lane. */
typedef struct {
    const sn_gemm_unit *u;
    const double *a, *panel;
    double *sums, *errors, *outer, *outer_errors;
    ptrdiff_t length, width; /* K with what the last period is filled up with; columns, up to whole vectors */
    int rows;
    sn_wu valid[SN_PANEL / SN_W]; /* masks: of columns that there are */
    sn_wu counts[SN_MAD_TALLIES][SN_COUNTS];
} SN_(lanes_job);

SN_INLINE sn_wf SN_(broadcast64)(double x) {
    sn_u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return (sn_wf)((sn_wu){0} + bits);
}

SN_INLINE sn_wf SN_(negated64)(sn_wf v) { return (sn_wf)((sn_wu)v ^ SN_LANES_SIGN); }

/* x * y + z rounded to odd in binary64, as lanes/odd.h does in binary32. exact: x * y is, and no sum reaches the end of
 * binary64's range; else, where the CPU has no fma, the neighbours come from the scalar one. */
#ifdef SN_FMA_BOTH64
SN_INLINE sn_wf SN_(fma_odd64)(sn_wf x, sn_wf y, sn_wf z, int exact, int down) {
    sn_wf lower, upper;
    (void)exact;
    SN_FMA_BOTH64(x, y, z, &lower, &upper);
    return down ? SN_WHERE_ODD64(upper, upper, lower) : SN_WHERE_ODD64(lower, lower, upper);
}
#else
static SN_NOINLINE sn_wf SN_(fma_odd64_defined)(sn_wf x, sn_wf y, sn_wf z, int down) {
    sn_wu out;
    for (int i = 0; i < SN_W; i++) {
        const sn_format *f = &sn_binary64;
        const sn_env downward = {.rounding = SN_DOWN}, upward = {.rounding = SN_UP};
        const sn_u64 a = ((sn_wu)x)[i], b = ((sn_wu)y)[i], c = ((sn_wu)z)[i];
        sn_u32 flags = 0;
        const sn_u64 lower = sn_fma(f, a, f, b, f, c, f, &downward, 0, &flags),
                     upper = sn_fma(f, a, f, b, f, c, f, &upward, 0, &flags), first = down ? upper : lower;
        out[i] = first & 1 ? first : down ? lower : upper;
    }
    return (sn_wf)out;
}

SN_INLINE sn_wf SN_(fma_odd64)(sn_wf x, sn_wf y, sn_wf z, int exact, int down) {
    if (!exact) return SN_(fma_odd64_defined)(x, y, z, down);
    const sn_wf product = x * y, sum = SN_(add_odd)(product, z);
    const sn_wu zero = (sn_wu)(sum == 0.0), negative = ((sn_wu)product | (sn_wu)z) & 0x8000000000000000u;
    return down ? (sn_wf)SN_SELECT64(zero, negative, (sn_wu)sum) : sum;
}
#endif

/* v's bits, a magnitude that the short way rounds, rounded. */
SN_INLINE sn_wu SN_(lane_short)(const sn_lane_rounding *r, sn_wu bits) {
    const sn_wu cut = (sn_wu){0} + r->cut, addend = (sn_wu){0} + r->addend;
    if (r->adds == SN_ADDS_BY_PARITY) return (bits + ((bits >> r->places) & 1u) + addend) & ~cut;
    if (r->adds == SN_ADDS_BY_SIGN) return (bits + addend + ((sn_wu)((sn_wi)bits >> 63) & r->if_negative)) & ~cut;
    return ((bits & ~cut) | ((sn_wu)((bits & cut) != 0) & (r->cut + 1)));
}

/* Where a number is tiny by one of SN_FLUSH_*; out: what it was rounded to. */
SN_INLINE sn_wu SN_(lane_tiny)(const sn_lane_rounding *r, int how, sn_wu bits, sn_wu out) {
    const sn_wu least = (sn_wu){0} + r->least_normal, u = bits & ~SN_LANES_SIGN, size = out & ~SN_LANES_SIGN;
    if (how == SN_FLUSH_SUBNORMAL) return (sn_wu)(size < least) & (sn_wu)(size != 0);
    const sn_wu below = (sn_wu)(u < least) & (sn_wu)(u != 0);
    if (how == SN_FLUSH_BEFORE) return below;
    return below & ~(sn_wu)((SN_(lane_short)(r, bits) & ~SN_LANES_SIGN) >= least);
}

/* The general way: any number. flushed: where a zero replaces it. */
SN_INLINE sn_wu SN_(lane_general)(const sn_lane_rounding *r, sn_wu bits, SN_(rounded64) * x, sn_wu *flushed) {
    const sn_rounding *any = &r->any;
    *x = SN_(to_grid64)(any, any->family, any->unusual, bits, (sn_wu){0});
    const sn_wu out = SN_(value_of64)(any, any->unusual, x);
    *flushed = (sn_wu){0};
    if (!r->flush) return out;
    *flushed = SN_(lane_tiny)(r, r->flush, bits, out);
    return SN_SELECT64(*flushed, bits & any->sign_of_zero, out);
}

static SN_NOINLINE sn_wf SN_(lane_any)(const sn_lane_rounding *r, sn_wf v) {
    SN_(rounded64) grid;
    sn_wu flushed;
    return (sn_wf)SN_(lane_general)(r, (sn_wu)v, &grid, &flushed);
}

/* The same of v, made of x * y + z; what comes of it is counted where valid. */
static SN_NOINLINE sn_wf SN_(lane_counted)(const sn_lane_rounding *r, sn_wf v, sn_wf x, sn_wf y, sn_wf z,
                                           const sn_wu *valid, sn_wu *counts) {
    const sn_wu bits = (sn_wu)v, u = bits & ~SN_LANES_SIGN, zero = {0};
    const sn_rounding *any = &r->any;
    SN_(rounded64) grid;
    sn_wu flushed;
    const sn_wu out = SN_(lane_general)(r, bits, &grid, &flushed);
    const sn_wu finite = (sn_wu)((sn_wi)u < SN_LANES_INFINITY), nan = (sn_wu)((sn_wi)u > SN_LANES_INFINITY);
    const sn_wu limit = SN_SELECT64((sn_wi)bits < 0, zero + (sn_u64)any->limit[1], zero + (sn_u64)any->limit[0]);
    const sn_wu over = finite & (sn_wu)(grid.code > limit);
    sn_wu inexact, underflowed = flushed;
    if (any->fixed) { /* whatever the grid is beyond the range, fixed point has one last place */
        const sn_wi field = (sn_wi)(u >> 52), e = (sn_wi)SN_SELECT64(field > 1, field, zero + 1u);
        sn_wi places = any->biased_emin + (52 - any->mantissa_bits) - e;
        places = (sn_wi)SN_SELECT64(places > 0, places, zero);
        places = (sn_wi)SN_SELECT64(places < 53, places, zero + 53u);
        const sn_wu whole = (u & 0xfffffffffffffu) | ((sn_wu)(field > 0) & 0x10000000000000u);
        inexact = finite & (sn_wu)((whole & (SN_LEFT64(zero + 1u, places) - 1u)) != 0);
    } else {
        const sn_wu cut = (sn_wu)((grid.w & (SN_LEFT64(zero + 1u, grid.s) - 1u)) != 0);
        inexact = (finite & (cut | over)) | flushed;
        underflowed |= inexact & SN_(lane_tiny)(r, r->before ? SN_FLUSH_BEFORE : SN_FLUSH_AFTER, bits, out);
    }
    const sn_wu number = (sn_wu)((sn_wi)(out & ~SN_LANES_SIGN) < SN_LANES_INFINITY);
    const sn_wu unordered = (sn_wu)(x * y != x * y), operands = (sn_wu)(x != x) | (sn_wu)(y != y);
    const sn_wu found[SN_COUNTS] = {
        [SN_INEXACT_COUNT] = inexact,
        [SN_UNDERFLOWED_COUNT] = underflowed,
        [SN_OVERFLOWED_COUNT] = over,
        [SN_SATURATED_COUNT] = ((sn_wu)((sn_wi)u == SN_LANES_INFINITY) | over) & number,
        [SN_INVALID_COUNT] = nan & ~SN_SELECT64(unordered, operands, (sn_wu)(z != z)),
    };
    for (int i = 0; i < SN_COUNTS; i++)
        counts[i] -= found[i] & *valid;
    return (sn_wf)out;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------
 * What is known to the compiler: native, counting. tally: SN_TALLY_*; valid: of the vector. */

SN_INLINE sn_wf SN_(lane_round)(SN_(lanes_job) * job, const sn_lane_rounding *r, int counting, int tally, int column,
                                sn_wf v, sn_wf x, sn_wf y, sn_wf z) {
    const sn_wu bits = (sn_wu)v, u = bits & ~SN_LANES_SIGN, *valid = &job->valid[column / SN_W];
    const sn_u64 end = (sn_u64)1 << 63;
    const sn_wi from_low = (sn_wi)(u + (end - r->low)), most = (sn_wi){0} + (sn_i64)(r->span - end);
    if (__builtin_expect(!r->short_way || SN_ANY_GREATER64(from_low, most), 0)) {
        const sn_wi but_zeros = (from_low > most) & ((sn_wi)u > 0); /* which the short way leaves as they are */
        if (!r->short_way || !r->any.negative_zero || SN_ANY_GREATER64((sn_wi){0}, but_zeros))
            return counting ? SN_(lane_counted)(r, v, x, y, z, valid, job->counts[tally]) : SN_(lane_any)(r, v);
    }
    const sn_wu out = SN_(lane_short)(r, bits);
    if (counting) job->counts[tally][SN_INEXACT_COUNT] -= (sn_wu)(out != bits) & *valid;
    return (sn_wf)out;
}

/* A number as an operand of a sum. */
SN_INLINE sn_wf SN_(lane_read)(const sn_lane_rounding *r, sn_wf v) {
    if (!r->least_read) return v;
    const sn_wu bits = (sn_wu)v, kept = (sn_wu)((bits & ~SN_LANES_SIGN) >= r->least_read);
    return (sn_wf)(bits & (kept | r->any.sign_of_zero));
}

/* x * y + z in the sum's format, or the outer sum's. */
SN_INLINE sn_wf SN_(lane_fma)(SN_(lanes_job) * job, const sn_lane_rounding *r, int native, int counting, int tally,
                              int column, sn_wf x, sn_wf y, sn_wf z) {
    const sn_lanes_unit *l = &job->u->lanes;
    if (native) return SN_FMA64(x, y, z);
    const sn_wf v = SN_(fma_odd64)(x, y, z, l->exact, l->down);
    return SN_(lane_round)(job, r, counting, tally, column, v, x, y, z);
}

SN_INLINE sn_wf SN_(lane_product)(SN_(lanes_job) * job, int native, int counting, int column, sn_wf x, sn_wf y) {
    const sn_lanes_unit *l = &job->u->lanes;
    const sn_wf minus_zero = SN_(broadcast64)(-0.0);
    if (native) return x * y;
    const sn_wf v = l->exact ? x * y : SN_(fma_odd64)(x, y, minus_zero, 0, 0);
    return SN_(lane_round)(job, &l->product, counting, SN_TALLY_PRODUCT, column, v, x, y, minus_zero);
}

/* *sum after x * y; *error: its compensation. As sn_term_into (softnum/units/terms.h). */
SN_INLINE void SN_(lane_into)(SN_(lanes_job) * job, const sn_lane_rounding *r, int native, int compensated,
                              int counting, int tally, int column, sn_wf x, sn_wf y, double *sum, double *error) {
    enum { REST = SN_TALLY_COMPENSATION };
    const sn_wf one = SN_(broadcast64)(1.0), old = SN_(lane_read)(r, sn_load_wf(sum));
    sn_wf next;
    if (!compensated) {
        next = SN_(lane_fma)(job, r, native, counting, tally, column, x, y, old);
        memcpy(sum, &next, sizeof next);
        return;
    }
    const sn_wf e = SN_(negated64)(SN_(lane_read)(r, sn_load_wf(error)));
    const sn_wf added = SN_(lane_read)(r, SN_(lane_fma)(job, r, native, counting, REST, column, x, y, e));
    next = SN_(lane_fma)(job, r, native, counting, tally, column, added, one, old);
    memcpy(sum, &next, sizeof next);
    sn_wf moved = SN_(lane_read)(r, next);
    moved = SN_(lane_fma)(job, r, native, counting, REST, column, moved, one, SN_(negated64)(old));
    moved = SN_(lane_read)(r, moved);
    moved = SN_(lane_fma)(job, r, native, counting, REST, column, moved, one, SN_(negated64)(added));
    memcpy(error, &moved, sizeof moved);
}

/* Products [start, end) into the sums of the lanes in turn. */
SN_INLINE void SN_(lanes_run)(SN_(lanes_job) * job, int native, int rounded, int compensated, int counting,
                              const double *a, ptrdiff_t start, ptrdiff_t end, double *sums, double *errors) {
    const sn_lanes_unit *l = &job->u->lanes;
    const ptrdiff_t lanes = job->u->ieee.lanes, width = job->width, length = job->length;
    const sn_wf one = SN_(broadcast64)(1.0);
    for (ptrdiff_t k = start, lane = 0; k < end; k++) {
        for (int i = 0; i < job->rows; i++) {
            const sn_wf x = SN_(broadcast64)(a[i * length + k]);
            const ptrdiff_t at = (lane * SN_LANES_ROWS + i) * SN_PANEL;
            for (int v = 0; v < width; v += SN_W) {
                const sn_wf y = sn_load_wf(job->panel + k * SN_PANEL + v);
                sn_wf p = x;
                if (rounded) p = SN_(lane_read)(&l->product, SN_(lane_product)(job, native, counting, v, x, y));
                SN_(lane_into)(job, &l->sum, native, compensated, counting, SN_TALLY_SUM, v, p, rounded ? one : y,
                               sums + at + v, errors + at + v);
            }
        }
        lane = lane + 1 < lanes ? lane + 1 : 0;
    }
}

typedef void SN_(lanes_way)(SN_(lanes_job) * job, const double *a, ptrdiff_t start, ptrdiff_t end, double *sums,
                            double *errors);
#define SN_LANES_WAY(name, native, rounded, compensated, counting)                                                     \
    static SN_NOINLINE void SN_(lanes_##name)(SN_(lanes_job) * job, const double *a, ptrdiff_t start, ptrdiff_t end,   \
                                              double *sums, double *errors) {                                          \
        SN_(lanes_run)(job, native, rounded, compensated, counting, a, start, end, sums, errors);                      \
    }
SN_LANES_WAY(fused, 0, 0, 0, 0)
SN_LANES_WAY(rounded, 0, 1, 0, 0)
SN_LANES_WAY(compensated, 0, job->u->product != SN_PRODUCT_EXACT, 1, 0)
SN_LANES_WAY(native, 1, job->u->product != SN_PRODUCT_EXACT, job->u->lanes.compensated, 0)
SN_LANES_WAY(counted, 0, job->u->product != SN_PRODUCT_EXACT, job->u->lanes.compensated, 1)

/* ---- reductions and chunks -----------------------------------------------------------------------------------------
 */

/* Slot i becomes slot i + slot j. */
static SN_NOINLINE void SN_(lanes_join)(SN_(lanes_job) * job, int counting, double *sums, ptrdiff_t i, ptrdiff_t j) {
    const sn_lanes_unit *l = &job->u->lanes;
    const sn_wf one = SN_(broadcast64)(1.0);
    for (ptrdiff_t row = 0; row < job->rows; row++)
        for (int v = 0; v < job->width; v += SN_W) {
            double *left = sums + (i * SN_LANES_ROWS + row) * SN_PANEL + v,
                   *right = sums + (j * SN_LANES_ROWS + row) * SN_PANEL + v;
            const sn_wf x = SN_(lane_read)(&l->sum, sn_load_wf(left)), y = SN_(lane_read)(&l->sum, sn_load_wf(right));
            sn_wf sum;
            if (l->native)
                sum = x + y;
            else if (counting)
                sum = SN_(lane_fma)(job, &l->sum, 0, 1, SN_TALLY_LANES, v, x, one, y);
            else
                sum = SN_(lane_fma)(job, &l->sum, 0, 0, SN_TALLY_LANES, v, x, one, y);
            memcpy(left, &sum, sizeof sum);
        }
}

/* NOLINTNEXTLINE(misc-no-recursion): ten levels at most */
static void SN_(lanes_join_halves)(SN_(lanes_job) * job, int counting, double *sums, ptrdiff_t first, ptrdiff_t n) {
    if (n < 2) return;
    const ptrdiff_t half = (n + 1) / 2;
    SN_(lanes_join_halves)(job, counting, sums, first, half);
    SN_(lanes_join_halves)(job, counting, sums, first + half, n - half);
    SN_(lanes_join)(job, counting, sums, first, first + half);
}

/* The first n slots become one, in the first: the order of products/gemm/gemm.c. */
static void SN_(lanes_reduce)(SN_(lanes_job) * job, int counting, double *sums, ptrdiff_t n) {
    switch (job->u->ieee.reduction) {
    case SN_REDUCTION_TREE:
        for (ptrdiff_t stride = 1; stride < n; stride *= 2)
            for (ptrdiff_t i = 0; i + stride < n; i += 2 * stride)
                SN_(lanes_join)(job, counting, sums, i, i + stride);
        return;
    case SN_REDUCTION_PAIRWISE: SN_(lanes_join_halves)(job, counting, sums, 0, n); return;
    default:
        for (ptrdiff_t i = 1; i < n; i++)
            SN_(lanes_join)(job, counting, sums, 0, i);
    }
}

/* A chunk's sum into the outer one. */
static SN_NOINLINE void SN_(lanes_outer)(SN_(lanes_job) * job, int counting, const double *sums) {
    const sn_lanes_unit *l = &job->u->lanes;
    const sn_wf one = SN_(broadcast64)(1.0);
    for (int i = 0; i < job->rows; i++)
        for (int v = 0; v < job->width; v += SN_W) {
            const sn_wf x = SN_(lane_read)(&l->sum, sn_load_wf(sums + i * SN_PANEL + v));
            double *sum = job->outer + i * SN_PANEL + v, *error = job->outer_errors + i * SN_PANEL + v;
            if (counting)
                SN_(lane_into)(job, &l->outer, 0, l->compensated, 1, SN_TALLY_OUTER, v, x, one, sum, error);
            else
                SN_(lane_into)(job, &l->outer, l->native, l->compensated, 0, SN_TALLY_OUTER, v, x, one, sum, error);
        }
}

/* Some rows of the panel that begins at `column`. */
static void SN_(lanes_rows)(const sn_gemm_args *g, SN_(lanes_job) * job, ptrdiff_t row, ptrdiff_t column) {
    const sn_gemm_unit *u = job->u;
    const ptrdiff_t lanes = u->ieee.lanes, slot = SN_LANES_ROWS * SN_PANEL, left = g->n - column;
    const ptrdiff_t valid = left < SN_PANEL ? left : SN_PANEL, most = u->chunk ? (ptrdiff_t)u->chunk : job->length;
    const int with_c = !u->chunk && lanes > 1 && g->c, counting = g->tallies != NULL;
    const double *a = job->a + (row - g->m0) * job->length;
    SN_(lanes_way) *way = counting                         ? &SN_(lanes_counted)
                          : u->lanes.native                ? &SN_(lanes_native)
                          : u->lanes.compensated           ? &SN_(lanes_compensated)
                          : u->product != SN_PRODUCT_EXACT ? &SN_(lanes_rounded)
                                                           : &SN_(lanes_fused);
    memset(job->outer, 0, (size_t)slot * sizeof *job->outer);
    memset(job->outer_errors, 0, (size_t)slot * sizeof *job->outer_errors);
    for (int i = 0; i < job->rows && g->c; i++) {
        double *to = job->outer + i * SN_PANEL;
        memcpy(to, (const double *)g->c + (row + i) * g->ldc + column, (size_t)valid * sizeof *to);
        for (ptrdiff_t j = 0; j < valid; j++) {
            sn_u64 bits;
            memcpy(&bits, to + j, sizeof bits);
            const sn_u64 magnitude = bits & ~SN_LANES_SIGN;
            if (magnitude < u->lanes.least_c || (magnitude == 0 && !u->lanes.outer.any.sign_of_zero)) bits = 0;
            memcpy(to + j, &bits, sizeof bits);
        }
    }
    for (ptrdiff_t start = 0; start < job->length; start += most) {
        const ptrdiff_t end = job->length - start < most ? job->length : start + most;
        double *sums = job->sums + (with_c ? 0 : slot), *errors = job->errors + slot;
        memset(job->sums, 0, (size_t)((lanes + 1) * slot) * sizeof *sums);
        if (u->lanes.compensated) memset(job->errors, 0, (size_t)((lanes + 1) * slot) * sizeof *errors);
        if (!u->chunk) memcpy(sums, job->outer, (size_t)slot * sizeof *sums);
        way(job, a, start, end, job->sums + slot, errors);
        SN_(lanes_reduce)(job, counting, sums, lanes + with_c);
        if (u->chunk)
            SN_(lanes_outer)(job, counting, sums);
        else
            memcpy(job->outer, sums, (size_t)slot * sizeof *sums);
        if (job->length - start <= most) break; /* start + most may be too large a number */
    }
    for (int i = 0; i < job->rows; i++) {
        double *from = job->outer + i * SN_PANEL;
        for (int v = 0; v < SN_PANEL; v += SN_W) {
            const sn_wf x = sn_load_wf(from + v);
            const sn_wu canonical = SN_SELECT64(x != x, (sn_wu){0} + 0x7ff8000000000000u, x);
            memcpy(from + v, &canonical, sizeof canonical);
        }
        memcpy((double *)g->out + (row + i) * g->ldo + column, from, (size_t)valid * sizeof *from);
    }
}

/* How many roundings there were, and what the lanes have counted. */
static void SN_(lanes_tell)(const sn_gemm_args *g, const SN_(lanes_job) * job) {
    const sn_gemm_unit *u = job->u;
    const sn_u64 outputs = (sn_u64)((g->m1 - g->m0) * g->n), length = (sn_u64)job->length,
                 lanes = (sn_u64)u->ieee.lanes;
    const sn_u64 chunks = u->chunk && length ? (length - 1) / (sn_u64)u->chunk + 1 : 0;
    const sn_u64 joins = chunks ? chunks * (lanes - 1) : length ? lanes - 1 + (lanes > 1 && g->c) : 0;
    const sn_u64 roundings[SN_MAD_TALLIES] = {
        [SN_TALLY_PRODUCT] = u->product != SN_PRODUCT_EXACT ? length : 0,
        [SN_TALLY_SUM] = length,
        [SN_TALLY_COMPENSATION] = u->lanes.compensated ? 3 * (length + chunks) : 0,
        [SN_TALLY_LANES] = joins,
        [SN_TALLY_OUTER] = chunks,
    };
    for (int i = 0; i < SN_MAD_TALLIES; i++) {
        sn_tally *t = &g->tallies[i];
        sn_u64 *const counts[SN_COUNTS] = {&t->inexact, &t->underflowed, &t->overflowed, &t->saturated, &t->invalid};
        t->roundings += outputs * roundings[i];
        for (int j = 0; j < SN_COUNTS; j++)
            for (int lane = 0; lane < SN_W; lane++)
                *counts[j] += job->counts[i][j][lane];
    }
}

static void SN_(lanes_gemm)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    const sn_ieee *e = &u->ieee;
    const ptrdiff_t slot = SN_LANES_ROWS * SN_PANEL;
    SN_(lanes_job) job = {.u = u};
    double *panel = (double *)(void *)g->panel;
    job.length = (g->k + e->period - 1) / e->period * e->period;
    job.panel = panel;
    job.outer = panel + job.length * SN_PANEL;
    job.outer_errors = job.outer + slot;
    job.sums = job.outer_errors + slot;
    job.errors = job.sums + (e->lanes + 1) * slot;
    double *rows = job.errors + (u->lanes.compensated ? (e->lanes + 1) * slot : 0);
    job.a = rows;
    for (ptrdiff_t i = g->m0; i < g->m1; i++, rows += job.length) {
        for (ptrdiff_t k = 0; k < job.length; k++) {
            const ptrdiff_t at = SN_(ieee_place64)(e, k);
            rows[k] = at < g->k ? ((const double *)g->a)[i * g->lda + at] : 0;
        }
        (void)SN_(ieee_enter64)(e, 0, rows, rows, job.length, 0);
    }
    for (ptrdiff_t column = 0; column < g->n; column += SN_PANEL) {
        const ptrdiff_t left = g->n - column;
        job.width = left < SN_PANEL ? (left + SN_W - 1) / SN_W * SN_W : SN_PANEL;
        for (ptrdiff_t j = 0; j < SN_PANEL; j++)
            job.valid[j / SN_W][j % SN_W] = j < left ? ~(sn_u64)0 : 0;
        (void)SN_(ieee_pack_b64)(u, g, job.length, column, panel);
        if (!u->lanes.native) SN_ODD_ENTER();
        for (ptrdiff_t row = g->m0; row < g->m1; row += job.rows) {
            job.rows = (int)(g->m1 - row < SN_LANES_ROWS ? g->m1 - row : SN_LANES_ROWS);
            SN_(lanes_rows)(g, &job, row, column);
        }
        if (!u->lanes.native) SN_ODD_LEAVE();
    }
    if (g->tallies) SN_(lanes_tell)(g, &job);
}
