/* The same text in lanes of H_BITS bits, 32 or 64; products/gemm/lanes.h says what of, and includes it twice. */
#if H_BITS == 32
#define H_F float
#define H_V sn_vf
#define H_U sn_vu
#define H_I sn_vi
#define H_u sn_u32
#define H_i sn_i32
#define H_N SN_V
#define H_M 23
#define H_BIAS 127
#define H_SIGN 0x80000000u
#define H_INFINITY 0x7f800000
#define H_NAN 0x7fc00000u
#define H_LOAD sn_load_vf
#define H_SELECT SN_SELECT32
#define H_ANY_GREATER SN_ANY_GREATER32
#define H_NATIVE SN_FMA
#define H_FMA_ODD(how, x, y, z, down) SN_(fma_odd)(x, y, z, down)
#define H_(name) SN_(name##32)
#else
#define H_F double
#define H_V sn_wf
#define H_U sn_wu
#define H_I sn_wi
#define H_u sn_u64
#define H_i sn_i64
#define H_N SN_W
#define H_M 52
#define H_BIAS 1023
#define H_SIGN 0x8000000000000000u
#define H_INFINITY 0x7ff0000000000000
#define H_NAN 0x7ff8000000000000u
#define H_LOAD sn_load_wf
#define H_SELECT SN_SELECT64
#define H_ANY_GREATER SN_ANY_GREATER64
#define H_NATIVE SN_FMA64
#define H_FMA_ODD(how, x, y, z, down) SN_(fma_odd64)(x, y, z, (how).exact, down)
#define H_(name) SN_(name##64)
#endif

/* What all blocks of a call share, and the state of the one that is computed: SN_LANES_ROWS x SN_PANEL numbers for C
 * (first) and each lane. */
typedef struct {
    const sn_gemm_unit *u;
    const H_F *a, *panel;
    H_F *sums, *errors, *outer, *outer_errors;
    ptrdiff_t length, width; /* K with what the last period is filled up with; columns, up to whole vectors */
    int rows;
    sn_u32 no_code;
    H_U valid[SN_PANEL / H_N]; /* masks: of columns that there are */
#if H_BITS == 64
    H_U counts[SN_MAD_TALLIES][SN_COUNTS];
#endif
} H_(lanes_job);

SN_INLINE H_V H_(broadcast)(H_F x) {
    H_u bits;
    memcpy(&bits, &x, sizeof bits);
    return (H_V)((H_U){0} + bits);
}

SN_INLINE H_V H_(negated)(H_V v) { return (H_V)((H_U)v ^ H_SIGN); }

/* What is added and cut off, in registers. kept: the mask of the other places; more: if negative, or the last place. */
typedef struct {
    H_U kept, addend, more;
    sn_i32 adds, places;
} H_(cut);

SN_INLINE H_(cut) H_(cut_of)(const sn_short_rounding *r) {
    const H_U zero = {0};
    const H_(cut) c = {~(zero + (H_u)r->cut), zero + (H_u)r->addend,
                       zero + (H_u)(r->adds == SN_SETS_LAST ? r->last : r->if_negative), r->adds, r->places};
    return c;
}

/* The bits of numbers with these places cut off. */
SN_INLINE H_U H_(lane_short)(const H_(cut) * c, H_U bits) {
    if (c->adds == SN_ADDS_BY_PARITY) return (bits + ((bits >> c->places) & 1u) + c->addend) & c->kept;
    if (c->adds == SN_ADDS_BY_SIGN) return (bits + c->addend + ((H_U)((H_I)bits >> (H_BITS - 1)) & c->more)) & c->kept;
    return (bits & c->kept) | ((H_U)((bits & ~c->kept) != 0) & c->more);
}

/* A rounding's short way, and how its numbers are read, in registers. fixed: it is that of fixed point. */
typedef struct {
    const sn_lane_rounding *r;
    H_(cut) cut;
    sn_i32 fixed;
    H_U offset, least_read, sign_of_zero;
    H_I most;
    sn_i32 exists, zeros, reads; /* zeros: it leaves them as they are */
} H_(short);

SN_INLINE H_(short) H_(short_of)(const sn_lane_rounding *r) {
    const H_U zero = {0};
    const H_(short) s = {
        .r = r,
        .cut = H_(cut_of)(&r->cut),
        .offset = zero + (H_u)r->offset,
        .most = (H_I)zero + (H_i)r->most,
        .least_read = zero + (H_u)r->least_read,
        .sign_of_zero = zero + (H_u)r->any.sign_of_zero,
        .exists = r->short_way,
        .zeros = r->any.negative_zero,
        .reads = r->least_read != 0,
    };
    return s;
}

/* The short way of fixed point that saturates, in quarters of its last place. */
SN_INLINE H_(short) H_(short_of_fixed)(const sn_lane_rounding *r) {
    const H_(short) s = {.r = r, .cut = H_(cut_of)(&r->quarters), .fixed = 1, .zeros = 1, .exists = 1};
    return s;
}

/* Where a number is tiny by one of SN_FLUSH_*; out: what it was rounded to. */
SN_INLINE H_U H_(lane_tiny)(const sn_lane_rounding *r, int how, H_U bits, H_U out) {
    const H_U least = (H_U){0} + (H_u)r->least_normal, u = bits & ~H_SIGN, size = out & ~H_SIGN;
    if (how == SN_FLUSH_SUBNORMAL) return (H_U)(size < least) & (H_U)(size != 0);
    const H_U below = (H_U)(u < least) & (H_U)(u != 0);
    if (how == SN_FLUSH_BEFORE) return below;
    const H_(cut) c = H_(cut_of)(&r->below);
    return below & ~(H_U)((H_(lane_short)(&c, bits) & ~H_SIGN) >= least);
}

/* The general way: any number. valid: which lanes there are; flushed: where a zero replaces it. */
SN_INLINE H_U H_(lane_general)(H_(lanes_job) * job, const sn_lane_rounding *r, H_U bits, const H_U *valid,
                               H_(rounded) * x, H_U *flushed) {
    const sn_rounding *any = &r->any;
    *x = H_(to_grid)(any, any->family, any->unusual, bits, (H_U){0});
    const H_U out = H_(value_of)(any, any->unusual, x);
    if (r->no_code) {
        const H_I numbers = (H_I){0} + (H_INFINITY - any->no_infinity);
        if (H_ANY_GREATER((H_I)(bits & ~H_SIGN & *valid), numbers)) job->no_code |= r->no_code;
    }
    *flushed = (H_U){0};
    if (!r->flush) return out;
    *flushed = H_(lane_tiny)(r, r->flush, bits, out);
    return H_SELECT(*flushed, bits & (H_u)any->sign_of_zero, out);
}

static SN_NOINLINE H_V H_(lane_any)(H_(lanes_job) * job, const sn_lane_rounding *r, H_V v, const H_U *valid) {
    H_(rounded) grid;
    H_U flushed;
    return (H_V)H_(lane_general)(job, r, (H_U)v, valid, &grid, &flushed);
}

#if H_BITS == 64
/* The same of v, made of x * y + z; what comes of it is counted where valid. */
static SN_NOINLINE H_V H_(lane_counted)(H_(lanes_job) * job, const sn_lane_rounding *r, H_V v, H_V x, H_V y, H_V z,
                                        const H_U *valid, H_U *counts) {
    const H_U bits = (H_U)v, u = bits & ~H_SIGN, zero = {0};
    const sn_rounding *any = &r->any;
    H_(rounded) grid;
    H_U flushed;
    const H_U out = H_(lane_general)(job, r, bits, valid, &grid, &flushed);
    const H_U finite = (H_U)((H_I)u < H_INFINITY), nan = (H_U)((H_I)u > H_INFINITY);
    const H_U limit = H_SELECT((H_I)bits < 0, zero + (sn_u64)any->limit[1], zero + (sn_u64)any->limit[0]);
    const H_U over = finite & (H_U)(grid.code > limit);
    H_U inexact, underflowed = flushed;
    if (any->fixed) { /* whatever the grid is beyond the range, fixed point has one last place */
        const H_I field = (H_I)(u >> 52), e = (H_I)H_SELECT(field > 1, field, zero + 1u);
        H_I places = any->biased_emin + (52 - any->mantissa_bits) - e;
        places = (H_I)H_SELECT(places > 0, places, zero);
        places = (H_I)H_SELECT(places < 53, places, zero + 53u);
        const H_U whole = (u & 0xfffffffffffffu) | ((H_U)(field > 0) & 0x10000000000000u);
        inexact = finite & (H_U)((whole & (SN_LEFT64(zero + 1u, places) - 1u)) != 0);
    } else {
        const H_U cut = (H_U)((grid.w & (SN_LEFT64(zero + 1u, grid.s) - 1u)) != 0);
        inexact = (finite & (cut | over)) | flushed;
        underflowed |= inexact & H_(lane_tiny)(r, r->before ? SN_FLUSH_BEFORE : SN_FLUSH_AFTER, bits, out);
    }
    const H_U number = (H_U)((H_I)(out & ~H_SIGN) < H_INFINITY);
    const H_U unordered = (H_U)(x * y != x * y), operands = (H_U)(x != x) | (H_U)(y != y);
    const H_U found[SN_COUNTS] = {
        [SN_INEXACT_COUNT] = inexact,
        [SN_UNDERFLOWED_COUNT] = underflowed,
        [SN_OVERFLOWED_COUNT] = over,
        [SN_SATURATED_COUNT] = ((H_U)((H_I)u == H_INFINITY) | over) & number,
        [SN_INVALID_COUNT] = nan & ~H_SELECT(unordered, operands, (H_U)(z != z)),
    };
    for (int i = 0; i < SN_COUNTS; i++)
        counts[i] -= found[i] & *valid;
    return (H_V)out;
}
#endif

/* As lane_round, of fixed point that saturates. With M = 1.5 * 2^(H_M + g), 2^g a quarter of the last place, M + v has
 * next to it how many of 2^g v has, rounded, and the difference from M is exact; rounded down, and odd where v is not a
 * whole number of them, they are rounded as any number with two places, by the mode, as two's complement. Up to
 * 2^(H_M - 2) of them; the general way has the others, infinities and NaN. Whichever way the CPU rounds meanwhile. */
SN_INLINE H_V H_(lane_fixed)(H_(lanes_job) * job, const H_(short) * s, int counting, int tally, int column, H_V v,
                             H_V x, H_V y, H_V z) {
    const sn_lane_rounding *r = s->r;
    const H_U zero = {0}, magic = zero + (H_u)r->magic, *valid = &job->valid[column / H_N];
    const H_I least = (H_I)zero + (H_i)r->ends[0], most = (H_I)zero + (H_i)r->ends[1];
    const H_V moved = v + (H_V)magic, back = moved - (H_V)magic;
    const H_U apart = (H_U)moved - magic, middle = apart + (H_SIGN | (H_u)1 << (H_M - 2));
    if (__builtin_expect(H_ANY_GREATER((H_I)middle, (H_I)zero + (H_i)(H_SIGN | (H_u)1 << (H_M - 1))), 0)) {
#if H_BITS == 64
        if (counting) return H_(lane_counted)(job, r, v, x, y, z, valid, job->counts[tally]);
#endif
        return H_(lane_any)(job, r, v, valid);
    }
    const H_U quarters = (apart + (H_U)(back > v)) | ((H_U)(back != v) & 1u);
    const H_I rounded = (H_I)H_(lane_short)(&s->cut, quarters);
    const H_I above = (H_I)H_SELECT(rounded > most, most, rounded);
    const H_I within = (H_I)H_SELECT(above < least, least, above);
#if H_BITS == 64
    if (counting) {
        const H_U over = (H_U)(within != rounded) & *valid;
        job->counts[tally][SN_INEXACT_COUNT] -= (H_U)((quarters & 3u) != 0) & *valid;
        job->counts[tally][SN_OVERFLOWED_COUNT] -= over;
        job->counts[tally][SN_SATURATED_COUNT] -= over;
    }
#else
    (void)counting, (void)tally, (void)x, (void)y, (void)z;
#endif
    const H_V out = (H_V)((H_U)within + magic) - (H_V)magic;
    return (H_V)((H_U)out & (H_U)(within != 0)); /* rounding down, M - M is -0 */
}

/* ---- steps ---------------------------------------------------------------------------------------------------------
 * What is known to the compiler: native, counting. tally: SN_TALLY_*; valid: of the vector. */

SN_INLINE H_V H_(lane_round)(H_(lanes_job) * job, const H_(short) * s, int counting, int tally, int column, H_V v,
                             H_V x, H_V y, H_V z) {
    const H_U bits = (H_U)v, u = bits & ~H_SIGN, *valid = &job->valid[column / H_N];
    if (s->fixed) return H_(lane_fixed)(job, s, counting, tally, column, v, x, y, z);
    const H_I from_low = (H_I)(u + s->offset);
    if (__builtin_expect(!s->exists || H_ANY_GREATER(from_low, s->most), 0)) {
        const H_I but_zeros = (from_low > s->most) & ((H_I)u > 0);
        if (!s->exists || !s->zeros || H_ANY_GREATER((H_I){0}, but_zeros))
#if H_BITS == 64
            return counting ? H_(lane_counted)(job, s->r, v, x, y, z, valid, job->counts[tally])
                            : H_(lane_any)(job, s->r, v, valid);
#else
            return H_(lane_any)(job, s->r, v, valid);
#endif
    }
    const H_U out = H_(lane_short)(&s->cut, bits);
#if H_BITS == 64
    if (counting) job->counts[tally][SN_INEXACT_COUNT] -= (H_U)(out != bits) & *valid;
#else
    (void)counting, (void)tally, (void)x, (void)y, (void)z;
#endif
    return (H_V)out;
}

/* A number as an operand of a sum. */
SN_INLINE H_V H_(lane_read)(const H_(short) * s, H_V v) {
    if (!s->reads) return v;
    const H_U bits = (H_U)v, kept = (H_U)((bits & ~H_SIGN) >= s->least_read);
    return (H_V)(bits & (kept | s->sign_of_zero));
}

/* How a step goes, known to the compiler but for `down` and `exact`. */
typedef struct {
    sn_i32 native, compensated, counting, down, exact;
} H_(how);

/* x * y + z in the sum's format, or the outer sum's. */
SN_INLINE H_V H_(lane_fma)(H_(lanes_job) * job, const H_(short) * s, H_(how) how, int tally, int column, H_V x, H_V y,
                           H_V z) {
    if (how.native) return H_NATIVE(x, y, z);
    return H_(lane_round)(job, s, how.counting, tally, column, H_FMA_ODD(how, x, y, z, how.down), x, y, z);
}

SN_INLINE H_V H_(lane_product)(H_(lanes_job) * job, const H_(short) * s, H_(how) how, int column, H_V x, H_V y) {
    const H_V minus_zero = H_(broadcast)(-0.0);
    if (how.native) return x * y;
    const H_V v = how.exact ? x * y : H_FMA_ODD(how, x, y, minus_zero, 0);
    return H_(lane_round)(job, s, how.counting, SN_TALLY_PRODUCT, column, v, x, y, minus_zero);
}

/* *sum after x * y; *error: its compensation. As sn_term_into (softnum/units/terms.h). */
SN_INLINE void H_(lane_into)(H_(lanes_job) * job, const H_(short) * s, H_(how) how, int tally, int column, H_V x, H_V y,
                             H_F *sum, H_F *error) {
    enum { REST = SN_TALLY_COMPENSATION };
    const H_V one = H_(broadcast)(1), old = H_(lane_read)(s, H_LOAD(sum));
    H_V next;
    if (!how.compensated) {
        next = H_(lane_fma)(job, s, how, tally, column, x, y, old);
        memcpy(sum, &next, sizeof next);
        return;
    }
    const H_V e = H_(negated)(H_(lane_read)(s, H_LOAD(error)));
    const H_V added = H_(lane_read)(s, H_(lane_fma)(job, s, how, REST, column, x, y, e));
    next = H_(lane_fma)(job, s, how, tally, column, added, one, old);
    memcpy(sum, &next, sizeof next);
    H_V moved = H_(lane_read)(s, next);
    moved = H_(lane_read)(s, H_(lane_fma)(job, s, how, REST, column, moved, one, H_(negated)(old)));
    moved = H_(lane_fma)(job, s, how, REST, column, moved, one, H_(negated)(added));
    memcpy(error, &moved, sizeof moved);
}

/* Products [start, end) into the sums of the lanes in turn. adds: SN_ADDS_* of sums that are not read as zeros, or -1:
 * of any; fixed: all roundings are those of fixed point that saturates. */
SN_INLINE void H_(lanes_run)(H_(lanes_job) * job, int native, int rounded, int compensated, int counting, int adds,
                             int fixed, const H_F *a, ptrdiff_t start, ptrdiff_t end, H_F *sums, H_F *errors) {
    const sn_lanes_unit *l = &job->u->lanes;
    const ptrdiff_t lanes = job->u->ieee.lanes, width = job->width, length = job->length, rows = job->rows;
    const H_(how) how = {native, compensated, counting, l->down, l->exact};
    const H_F *panel = job->panel;
    const H_V one = H_(broadcast)(1);
    H_(short) product = fixed ? H_(short_of_fixed)(&l->product) : H_(short_of)(&l->product);
    H_(short) sum = fixed ? H_(short_of_fixed)(&l->sum) : H_(short_of)(&l->sum);
    if (adds >= 0) {
        sum.cut.adds = adds;
        sum.reads = product.reads = 0;
        sum.exists = 1;
        if (fixed) product.cut.adds = adds;
    }
    for (ptrdiff_t k = start, lane = 0; k < end; k++) {
        const H_F *y = panel + k * SN_PANEL;
        H_F *to = sums + lane * (SN_LANES_ROWS * SN_PANEL), *error = errors + lane * (SN_LANES_ROWS * SN_PANEL);
        for (ptrdiff_t i = 0; i < rows; i++, to += SN_PANEL, error += SN_PANEL) {
            const H_V x = H_(broadcast)(a[i * length + k]);
            for (ptrdiff_t v = 0; v < width; v += H_N) {
                const H_V factor = H_LOAD(y + v);
                H_V p = x;
                if (rounded) p = H_(lane_read)(&product, H_(lane_product)(job, &product, how, (int)v, x, factor));
                H_(lane_into)(job, &sum, how, SN_TALLY_SUM, (int)v, p, rounded ? one : factor, to + v, error + v);
            }
        }
        lane = lane + 1 < lanes ? lane + 1 : 0;
    }
}

typedef void H_(lanes_way)(H_(lanes_job) * job, const H_F *a, ptrdiff_t start, ptrdiff_t end, H_F *sums, H_F *errors);
#define H_LANES_WAY(name, native, rounded, compensated, counting, adds, fixed)                                         \
    static SN_NOINLINE void H_(lanes_##name)(H_(lanes_job) * job, const H_F *a, ptrdiff_t start, ptrdiff_t end,        \
                                             H_F *sums, H_F *errors) {                                                 \
        H_(lanes_run)(job, native, rounded, compensated, counting, adds, fixed, a, start, end, sums, errors);          \
    }
#define H_ROUNDED (job->u->product != SN_PRODUCT_EXACT)
#define H_COMPENSATED (job->u->lanes.compensated)
H_LANES_WAY(fused_even, 0, 0, 0, 0, SN_ADDS_BY_PARITY, 0)
H_LANES_WAY(fused_by_sign, 0, 0, 0, 0, SN_ADDS_BY_SIGN, 0)
H_LANES_WAY(fused_odd, 0, 0, 0, 0, SN_SETS_LAST, 0)
H_LANES_WAY(rounded_even, 0, 1, 0, 0, SN_ADDS_BY_PARITY, 0)
H_LANES_WAY(rounded_by_sign, 0, 1, 0, 0, SN_ADDS_BY_SIGN, 0)
H_LANES_WAY(rounded_odd, 0, 1, 0, 0, SN_SETS_LAST, 0)
H_LANES_WAY(any, 0, H_ROUNDED, H_COMPENSATED, 0, -1, 0)
H_LANES_WAY(compensated, 0, H_ROUNDED, 1, 0, SN_ADDS_BY_PARITY, 0)
H_LANES_WAY(native, 1, H_ROUNDED, H_COMPENSATED, 0, -1, 0)
H_LANES_WAY(fixed_even, 0, H_ROUNDED, 0, 0, SN_ADDS_BY_PARITY, 1)
H_LANES_WAY(fixed, 0, H_ROUNDED, H_COMPENSATED, 0, -1, 1)
#if H_BITS == 64
H_LANES_WAY(counted, 0, H_ROUNDED, H_COMPENSATED, 1, -1, 0)
H_LANES_WAY(counted_fixed_even, 0, H_ROUNDED, 0, 1, SN_ADDS_BY_PARITY, 1)
H_LANES_WAY(counted_fixed, 0, H_ROUNDED, H_COMPENSATED, 1, -1, 1)
#endif

static H_(lanes_way) * H_(lanes_choose)(const sn_gemm_unit *u, int counting) {
    static H_(lanes_way) *const ways[2][3] = {
        {&H_(lanes_fused_even), &H_(lanes_fused_by_sign), &H_(lanes_fused_odd)},
        {&H_(lanes_rounded_even), &H_(lanes_rounded_by_sign), &H_(lanes_rounded_odd)}};
    const sn_lanes_unit *l = &u->lanes;
    const int rounded = u->product != SN_PRODUCT_EXACT, fixed = l->sum.magic && (!rounded || l->product.magic);
    const int even = fixed && !l->compensated && l->sum.quarters.adds == SN_ADDS_BY_PARITY &&
                     (!rounded || l->product.quarters.adds == SN_ADDS_BY_PARITY);
#if H_BITS == 64
    if (counting && fixed) return even ? &H_(lanes_counted_fixed_even) : &H_(lanes_counted_fixed);
    if (counting) return &H_(lanes_counted);
#endif
    (void)counting;
    if (l->native) return &H_(lanes_native);
    if (fixed) return even ? &H_(lanes_fixed_even) : &H_(lanes_fixed);
    if (!l->sum.short_way || l->sum.least_read || l->product.least_read) return &H_(lanes_any);
    if (!l->compensated) return ways[u->product != SN_PRODUCT_EXACT][l->sum.cut.adds];
    return l->sum.cut.adds == SN_ADDS_BY_PARITY ? &H_(lanes_compensated) : &H_(lanes_any);
}

/* ---- reductions and chunks -----------------------------------------------------------------------------------------
 */

/* Slot i becomes slot i + slot j. */
static SN_NOINLINE void H_(lanes_join)(H_(lanes_job) * job, int counting, H_F *sums, ptrdiff_t i, ptrdiff_t j) {
    const sn_lanes_unit *l = &job->u->lanes;
    const H_(how) counted = {0, 0, 1, l->down, l->exact}, not_counted = {0, 0, 0, l->down, l->exact};
    const H_(short) s = H_(short_of)(&l->sum);
    const H_V one = H_(broadcast)(1);
    for (ptrdiff_t row = 0; row < job->rows; row++)
        for (int v = 0; v < job->width; v += H_N) {
            H_F *left = sums + (i * SN_LANES_ROWS + row) * SN_PANEL + v,
                *right = sums + (j * SN_LANES_ROWS + row) * SN_PANEL + v;
            const H_V x = H_(lane_read)(&s, H_LOAD(left)), y = H_(lane_read)(&s, H_LOAD(right));
            H_V sum;
            if (l->native)
                sum = x + y;
            else if (counting)
                sum = H_(lane_fma)(job, &s, counted, SN_TALLY_LANES, v, x, one, y);
            else
                sum = H_(lane_fma)(job, &s, not_counted, SN_TALLY_LANES, v, x, one, y);
            memcpy(left, &sum, sizeof sum);
        }
}

/* NOLINTNEXTLINE(misc-no-recursion): ten levels at most */
static void H_(lanes_join_halves)(H_(lanes_job) * job, int counting, H_F *sums, ptrdiff_t first, ptrdiff_t n) {
    if (n < 2) return;
    const ptrdiff_t half = (n + 1) / 2;
    H_(lanes_join_halves)(job, counting, sums, first, half);
    H_(lanes_join_halves)(job, counting, sums, first + half, n - half);
    H_(lanes_join)(job, counting, sums, first, first + half);
}

/* The first n slots become one, in the first: the order of products/gemm/gemm.c. */
static void H_(lanes_reduce)(H_(lanes_job) * job, int counting, H_F *sums, ptrdiff_t n) {
    switch (job->u->ieee.reduction) {
    case SN_REDUCTION_TREE:
        for (ptrdiff_t stride = 1; stride < n; stride *= 2)
            for (ptrdiff_t i = 0; i + stride < n; i += 2 * stride)
                H_(lanes_join)(job, counting, sums, i, i + stride);
        return;
    case SN_REDUCTION_PAIRWISE: H_(lanes_join_halves)(job, counting, sums, 0, n); return;
    default:
        for (ptrdiff_t i = 1; i < n; i++)
            H_(lanes_join)(job, counting, sums, 0, i);
    }
}

/* A chunk's sum into the outer one. */
static SN_NOINLINE void H_(lanes_outer)(H_(lanes_job) * job, int counting, const H_F *sums) {
    const sn_lanes_unit *l = &job->u->lanes;
    const H_(how) counted = {0, l->compensated, 1, l->down, l->exact},
                  not_counted = {l->native, l->compensated, 0, l->down, l->exact};
    const H_(short) of_sum = H_(short_of)(&l->sum), s = H_(short_of)(&l->outer);
    const H_V one = H_(broadcast)(1);
    for (int i = 0; i < job->rows; i++)
        for (int v = 0; v < job->width; v += H_N) {
            const H_V x = H_(lane_read)(&of_sum, H_LOAD(sums + i * SN_PANEL + v));
            H_F *sum = job->outer + i * SN_PANEL + v, *error = job->outer_errors + i * SN_PANEL + v;
            if (counting)
                H_(lane_into)(job, &s, counted, SN_TALLY_OUTER, v, x, one, sum, error);
            else
                H_(lane_into)(job, &s, not_counted, SN_TALLY_OUTER, v, x, one, sum, error);
        }
}

/* Some rows of the panel that begins at `column`. */
static void H_(lanes_rows)(const sn_gemm_args *g, H_(lanes_job) * job, ptrdiff_t row, ptrdiff_t column) {
    const sn_gemm_unit *u = job->u;
    const ptrdiff_t lanes = u->ieee.lanes, slot = SN_LANES_ROWS * SN_PANEL, left = g->n - column;
    const ptrdiff_t valid = left < SN_PANEL ? left : SN_PANEL, most = u->chunk ? (ptrdiff_t)u->chunk : job->length;
    const int with_c = !u->chunk && lanes > 1 && g->c, counting = g->tallies != NULL;
    const H_F *a = job->a + (row - g->m0) * job->length;
    H_(lanes_way) *way = H_(lanes_choose)(u, counting);
    memset(job->outer, 0, (size_t)slot * sizeof *job->outer);
    memset(job->outer_errors, 0, (size_t)slot * sizeof *job->outer_errors);
    for (int i = 0; i < job->rows && g->c; i++) {
        H_F *to = job->outer + i * SN_PANEL;
        memcpy(to, (const H_F *)g->c + (row + i) * g->ldc + column, (size_t)valid * sizeof *to);
        for (ptrdiff_t j = 0; j < valid; j++) {
            H_u bits;
            memcpy(&bits, to + j, sizeof bits);
            const H_u magnitude = bits & ~H_SIGN;
            if (magnitude < (H_u)u->lanes.least_c || (magnitude == 0 && !u->lanes.outer.any.sign_of_zero)) bits = 0;
            memcpy(to + j, &bits, sizeof bits);
        }
    }
    for (ptrdiff_t start = 0; start < job->length; start += most) {
        const ptrdiff_t end = job->length - start < most ? job->length : start + most;
        H_F *sums = job->sums + (with_c ? 0 : slot), *errors = job->errors + slot;
        memset(job->sums, 0, (size_t)((lanes + 1) * slot) * sizeof *sums);
        if (u->lanes.compensated) memset(job->errors, 0, (size_t)((lanes + 1) * slot) * sizeof *errors);
        if (!u->chunk) memcpy(sums, job->outer, (size_t)slot * sizeof *sums);
        way(job, a, start, end, job->sums + slot, errors);
        H_(lanes_reduce)(job, counting, sums, lanes + with_c);
        if (u->chunk)
            H_(lanes_outer)(job, counting, sums);
        else
            memcpy(job->outer, sums, (size_t)slot * sizeof *sums);
        if (job->length - start <= most) break; /* start + most may be too large a number */
    }
    for (int i = 0; i < job->rows; i++) {
        H_F *from = job->outer + i * SN_PANEL;
        for (int v = 0; v < SN_PANEL; v += H_N) {
            const H_V x = H_LOAD(from + v);
            const H_U canonical = H_SELECT(x != x, (H_U){0} + H_NAN, x);
            memcpy(from + v, &canonical, sizeof canonical);
        }
        memcpy((H_F *)g->out + (row + i) * g->ldo + column, from, (size_t)valid * sizeof *from);
    }
}

#if H_BITS == 64
/* How many roundings there were, and what the lanes have counted. */
static void H_(lanes_tell)(const sn_gemm_args *g, const H_(lanes_job) * job) {
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
            for (int lane = 0; lane < H_N; lane++)
                *counts[j] += job->counts[i][j][lane];
    }
}
#endif

static void H_(lanes_gemm)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    const sn_ieee *e = &u->ieee;
    const ptrdiff_t slot = SN_LANES_ROWS * SN_PANEL;
    H_(lanes_job) job = {.u = u};
    H_F *panel = (H_F *)(void *)g->panel;
    job.length = (g->k + e->period - 1) / e->period * e->period;
    job.panel = panel;
    job.outer = panel + job.length * SN_PANEL;
    job.outer_errors = job.outer + slot;
    job.sums = job.outer_errors + slot;
    job.errors = job.sums + (e->lanes + 1) * slot;
    H_F *rows = job.errors + (u->lanes.compensated ? (e->lanes + 1) * slot : 0);
    job.a = rows;
    for (ptrdiff_t i = g->m0; i < g->m1; i++, rows += job.length) {
        for (ptrdiff_t k = 0; k < job.length; k++) {
            const ptrdiff_t at = H_(ieee_place)(e, k);
            rows[k] = at < g->k ? ((const H_F *)g->a)[i * g->lda + at] : 0;
        }
        (void)H_(ieee_enter)(e, 0, rows, rows, job.length, 0);
    }
    for (ptrdiff_t column = 0; column < g->n; column += SN_PANEL) {
        const ptrdiff_t left = g->n - column;
        job.width = left < SN_PANEL ? (left + H_N - 1) / H_N * H_N : SN_PANEL;
        for (ptrdiff_t j = 0; j < SN_PANEL; j++)
            job.valid[j / H_N][j % H_N] = j < left ? (H_u)-1 : 0;
        (void)H_(ieee_pack_b)(u, g, job.length, column, panel);
        if (!u->lanes.native) {
            SN_ODD_ENTER();
        }
        for (ptrdiff_t row = g->m0; row < g->m1; row += job.rows) {
            job.rows = (int)(g->m1 - row < SN_LANES_ROWS ? g->m1 - row : SN_LANES_ROWS);
            H_(lanes_rows)(g, &job, row, column);
        }
        if (!u->lanes.native) {
            SN_ODD_LEAVE();
        }
    }
    if (g->no_code) *g->no_code |= job.no_code;
#if H_BITS == 64
    if (g->tallies) H_(lanes_tell)(g, &job);
#endif
}

#undef H_LANES_WAY
#undef H_ROUNDED
#undef H_COMPENSATED
#undef H_F
#undef H_V
#undef H_U
#undef H_I
#undef H_u
#undef H_i
#undef H_N
#undef H_M
#undef H_BIAS
#undef H_SIGN
#undef H_INFINITY
#undef H_NAN
#undef H_LOAD
#undef H_SELECT
#undef H_ANY_GREATER
#undef H_NATIVE
#undef H_FMA_ODD
#undef H_
#undef H_BITS
