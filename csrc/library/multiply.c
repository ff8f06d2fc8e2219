/* softnum.h: products of matrices, by the fast path of a unit where it has one, else by its definition. */
#include <stdlib.h>
#include <string.h>

#include "library/objects.h"

/* A product whose strides are stated, and its keys. */
typedef struct {
    const softnum_unit *u;
    softnum_product p;
    sn_u32 key[2][2];
    int with_c;
} job;

static const char *row_of(const void *codes, const softnum_format *f, size_t stride, size_t row) {
    return (const char *)codes + row * stride * f->bytes;
}

static softnum_status check_matrix(const char *who, const char *what, const softnum_format *f, const void *codes,
                                   size_t rows, size_t columns, size_t stride, softnum_why *why) {
    if (rows && columns && !codes) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: %s is null", who, what);
    for (size_t i = 0; i < rows && columns; i++) {
        const softnum_status s =
            softnum_check_codes(who, what, f, row_of(codes, f, stride, i), columns, i * stride, why);
        if (s != SOFTNUM_OK) return s;
    }
    return SOFTNUM_OK;
}

static softnum_status check_product(const char *who, const softnum_unit *u, const softnum_product *given, job *j,
                                    softnum_why *why) {
    softnum_status s;
    if (!u || !given || given->size != sizeof *given)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "%s: the unit or the product is null, or its size is not as SOFTNUM_PRODUCT_INIT sets it",
                            who);
    j->u = u;
    j->p = *given;
    softnum_product *p = &j->p;
    const sn_u64 most = (sn_u64)1 << 32;
    if (p->m >= most || p->n >= most || p->k >= most || p->first_row + (sn_u64)p->m > most ||
        p->first_column + (sn_u64)p->n > most)
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "%s: m = %zu, n = %zu, k = %zu, first row %lu and column %lu; each is below 2^32, and so are "
            "the numbers of the last ones",
            who, p->m, p->n, p->k, (unsigned long)p->first_row, (unsigned long)p->first_column);
    if (u->kind == SOFTNUM_UNIT_MAD) { /* a random word has the number of its step */
        const sn_u64 chunk = (sn_u64)u->of.mad.unit.chunk, lanes = (sn_u64)u->of.mad.unit.lanes;
        if (p->k + (chunk ? (p->k + chunk - 1) / chunk : 1) * lanes >= most)
            return softnum_fail(
                why, SOFTNUM_BAD_ARGUMENT,
                "%s: k = %zu products and their additions of lanes and chunks are 2^32 steps or more: take "
                "a larger chunk, or cut the sum",
                who, p->k);
    }
    if (!p->lda) p->lda = p->k;
    if (!p->ldb) p->ldb = p->n;
    if (!p->ldc) p->ldc = p->n;
    if (!p->ldo) p->ldo = p->n;
    if (p->lda < p->k || p->ldb < p->n || p->ldc < p->n || p->ldo < p->n)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "%s: lda = %zu, ldb = %zu, ldc = %zu or ldo = %zu is less than a row of "
                            "%zu, %zu, %zu and %zu elements",
                            who, p->lda, p->ldb, p->ldc, p->ldo, p->k, p->n, p->n, p->n);
    j->with_c = p->c != NULL;
    if ((s = check_matrix(who, "a", &u->a, p->a, p->m, p->k, p->lda, why)) != SOFTNUM_OK ||
        (s = check_matrix(who, "b", &u->b, p->b, p->k, p->n, p->ldb, why)) != SOFTNUM_OK ||
        (j->with_c && (s = check_matrix(who, "c", &u->c, p->c, p->m, p->n, p->ldc, why)) != SOFTNUM_OK))
        return s;
    for (sn_u32 i = 0; i < 2; i++) {
        const sn_philox_words key = sn_philox_key(p->seed, p->stream, SN_DOMAIN_MATMUL + i);
        j->key[i][0] = key.w[0];
        j->key[i][1] = key.w[1];
    }
    return SOFTNUM_OK;
}

/* Where an array would begin that had `elements` more in front; only its own are read or written. */
static void *before(const void *array, size_t elements, size_t size) {
    return (void *)((uintptr_t)array - (uintptr_t)(elements * size));
}

/* The unit's definition over codes of 64 bits; a bit for each rounding that lacks a NaN. */
static sn_u32 define(const job *j, const sn_product_codes *g) {
    const softnum_unit *u = j->u;
    if (u->kind == SOFTNUM_UNIT_MAD) {
        sn_mad_unit unit = u->of.mad.unit;
        memcpy(unit.key, j->key[0], sizeof unit.key);
        memcpy(unit.key2, j->key[1], sizeof unit.key2);
        unit.batch = j->p.batch;
        return sn_gemm_definition(&unit, g);
    }
    if (u->kind == SOFTNUM_UNIT_EXACT) {
        sn_exact_unit unit = u->of.exact.unit;
        memcpy(unit.key, j->key[0], sizeof unit.key);
        unit.batch = j->p.batch;
        return sn_exact_definition(&unit, g);
    }
    return sn_fused_definition(&u->of.fused.unit, g);
}

static void widen(sn_u64 *out, const void *codes, const softnum_format *f, size_t rows, size_t columns, size_t stride) {
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            out[i * columns + k] = sn_load_code(row_of(codes, f, stride, i) + k * f->bytes, (int)f->bytes);
}

static softnum_status lost_code(const char *who, const job *j, sn_u32 lost, softnum_why *why) {
    if (!lost) return SOFTNUM_OK;
    return softnum_fail(why, SOFTNUM_NO_CODE,
                        "%s: a product or a sum is NaN, and a format of the unit (%s, or one before the "
                        "result) has no code for it",
                        who, j->u->result.name);
}

/* Room for so many elements of three matrices, the last one's first; null if there is none. */
static void *room_for(const job *j, size_t size, size_t columns, size_t *at_b, size_t *at_c, size_t *at_out,
                      size_t extra) {
    const softnum_product *p = &j->p;
    const double total =
        (double)p->m * (double)p->k + (double)p->k * (double)columns + 2.0 * (double)p->m * (double)p->n;
    if (total * (double)size + (double)extra > (double)(SIZE_MAX / 4)) return NULL;
    *at_b = p->m * p->k;
    *at_c = *at_b + p->k * columns;
    *at_out = *at_c + (j->with_c ? p->m * p->n : 0);
    return calloc(*at_out + p->m * p->n + (extra + size - 1) / size + 64 / size, size);
}

static softnum_status no_room(const char *who, const job *j, softnum_why *why) {
    return softnum_fail(why, SOFTNUM_NO_MEMORY, "%s: no memory for a product of %zu x %zu x %zu; cut it into parts",
                        who, j->p.m, j->p.k, j->p.n);
}

static softnum_status by_definition(const char *who, const job *j, softnum_why *why) {
    const softnum_product *p = &j->p;
    const softnum_unit *u = j->u;
    size_t b, c, out;
    sn_product_codes g = {0};
    sn_u64 *room = room_for(j, sizeof *room, p->n, &b, &c, &out, 0);
    if (!room) return no_room(who, j, why);
    if (p->k) {
        widen(room, p->a, &u->a, p->m, p->k, p->lda);
        widen(room + b, p->b, &u->b, p->k, p->n, p->ldb);
    }
    if (j->with_c) widen(room + c, p->c, &u->c, p->m, p->n, p->ldc);
    g.lda = (ptrdiff_t)p->k;
    g.ldb = g.ldc = g.ldo = g.n = g.n_total = (ptrdiff_t)p->n;
    g.m0 = p->first_row;
    g.m1 = g.m0 + (ptrdiff_t)p->m;
    g.k = g.lda;
    g.n0 = p->first_column;
    g.a = before(room, p->first_row * p->k, sizeof *room);
    g.b = room + b;
    g.c = j->with_c ? before(room + c, p->first_row * p->n, sizeof *room) : NULL;
    g.out = before(room + out, p->first_row * p->n, sizeof *room);
    const sn_u32 lost = define(j, &g);
    for (size_t i = 0; i < p->m; i++)
        for (size_t n = 0; n < p->n; n++)
            sn_store_code((char *)p->out + (i * p->ldo + n) * u->result.bytes, (int)u->result.bytes,
                          room[out + i * p->n + n]);
    free(room);
    return lost_code(who, j, lost, why);
}

/* Values of codes, by rows that lie `columns` elements apart. */
static void decode_rows(const softnum_format *f, const void *codes, size_t rows, size_t n, size_t stride, char *out,
                        size_t columns, int wide) {
    for (size_t i = 0; i < rows; i++) {
        char *row = out + i * columns * (wide ? 8 : 4);
        if (wide)
            f->kernels->decode64(&f->decoding[1], row_of(codes, f, stride, i), (int)f->bytes, (void *)row, n);
        else
            f->kernels->decode32(&f->decoding[0], row_of(codes, f, stride, i), (int)f->bytes, (void *)row, n);
    }
}

/* What the three kernels take alike, carriers already in place. */
typedef struct {
    const char *a, *b, *c;
    char *out, *room;
    size_t columns; /* of b's rows */
} carriers;

static sn_u32 run_mad(const job *j, const carriers *x, size_t size, sn_gemm_args *g, sn_gemm_unit *unit) {
    const sn_gemm_kernels *fast = sn_gemm_kernels_for(j->u->result.isa);
    sn_u32 no_code = 0;
    g->panel = (void *)(((uintptr_t)x->room + 63) & ~(uintptr_t)63);
    g->no_code = &no_code;
    if (size == 8)
        fast->gemm64(unit, g);
    else
        fast->gemm32(unit, g);
    return no_code;
}

static void fill_mad(const job *j, const carriers *x, size_t size, sn_gemm_args *g, sn_gemm_unit *unit) {
    const softnum_product *p = &j->p;
    *unit = j->u->of.mad.fast;
    memcpy(unit->key, j->key[0], sizeof unit->key);
    memcpy(unit->key2, j->key[1], sizeof unit->key2);
    unit->batch = p->batch;
    memset(g, 0, sizeof *g);
    g->lda = g->k = (ptrdiff_t)p->k;
    g->ldb = (ptrdiff_t)x->columns;
    g->ldc = g->ldo = g->n = (ptrdiff_t)p->n;
    g->m0 = p->first_row;
    g->m1 = g->m0 + (ptrdiff_t)p->m;
    g->n0 = p->first_column;
    g->a = before(x->a, p->first_row * p->k, size);
    g->b = x->b;
    g->c = x->c ? before(x->c, p->first_row * p->n, size) : NULL;
    g->out = before(x->out, p->first_row * p->n, size);
}

static void run_exact(const job *j, const carriers *x) {
    const softnum_product *p = &j->p;
    sn_exact_fast unit = j->u->of.exact.fast;
    sn_exact_args g;
    memcpy(unit.unit.key, j->key[0], sizeof unit.unit.key);
    unit.unit.batch = p->batch;
    memset(&g, 0, sizeof g);
    g.lda = g.k = (ptrdiff_t)p->k;
    g.ldb = (ptrdiff_t)x->columns;
    g.ldc = g.ldo = g.n = (ptrdiff_t)p->n;
    g.m0 = p->first_row;
    g.m1 = g.m0 + (ptrdiff_t)p->m;
    g.n0 = p->first_column;
    g.a = before(x->a, p->first_row * p->k, 8);
    g.b = (const void *)x->b;
    g.c = x->c ? before(x->c, p->first_row * p->n, 8) : NULL;
    g.out = before(x->out, p->first_row * p->n, 8);
    g.packed = (void *)(((uintptr_t)x->room + 63) & ~(uintptr_t)63);
    sn_exact_kernels_for(j->u->result.isa)->gemm(&unit, &g);
}

static void run_fused(const job *j, const carriers *x) {
    const softnum_product *p = &j->p;
    sn_fused_values g;
    memset(&g, 0, sizeof g);
    g.lda = g.k = (ptrdiff_t)p->k;
    g.ldb = (ptrdiff_t)x->columns;
    g.ldc = g.ldo = g.n = (ptrdiff_t)p->n;
    g.m1 = (ptrdiff_t)p->m;
    g.a = (const void *)x->a;
    g.b = (const void *)x->b;
    g.c = (const void *)x->c;
    g.out = (void *)x->out;
    sn_fused_kernel_for(j->u->result.isa)(&j->u->of.fused.fast, &g);
}

static softnum_status by_fast_path(const char *who, const job *j, softnum_why *why) {
    const softnum_product *p = &j->p;
    const softnum_unit *u = j->u;
    const int wide = u->bits == 64;
    const size_t size = wide ? 8 : 4, columns = (p->n + SN_GEMM_LANES - 1) / SN_GEMM_LANES * SN_GEMM_LANES;
    size_t b, c, out, extra = 0;
    sn_gemm_unit mad;
    sn_gemm_args args;
    carriers x = {NULL, NULL, NULL, NULL, NULL, columns};
    sn_u32 lost = 0;
    if (u->kind == SOFTNUM_UNIT_MAD) {
        fill_mad(j, &x, size, &args, &mad);
        extra = sn_gemm_room(&mad, &args, u->bits);
    } else if (u->kind == SOFTNUM_UNIT_EXACT) {
        extra = p->k * ((p->n + SN_EXACT_ROOM - 1) / SN_EXACT_ROOM * SN_EXACT_ROOM) * 8;
    }
    char *room = room_for(j, size, columns, &b, &c, &out, extra + 64);
    if (!room) return no_room(who, j, why);
    x.a = room;
    x.b = room + b * size;
    x.c = j->with_c ? room + c * size : NULL;
    x.out = room + out * size;
    x.room = x.out + p->m * p->n * size;
    const sn_u64 saved = sn_fp_enter();
    decode_rows(&u->a, p->a, p->m, p->k, p->lda, room, p->k, wide);
    decode_rows(&u->b, p->b, p->k, p->n, p->ldb, room + b * size, columns, wide);
    if (j->with_c) decode_rows(&u->c, p->c, p->m, p->n, p->ldc, room + c * size, p->n, wide);
    if (u->kind == SOFTNUM_UNIT_MAD) {
        fill_mad(j, &x, size, &args, &mad);
        lost = run_mad(j, &x, size, &args, &mad);
    } else if (u->kind == SOFTNUM_UNIT_EXACT) {
        run_exact(j, &x);
    } else {
        run_fused(j, &x);
    }
    sn_random_source none = {NULL, {0, 0}, 0};
    for (size_t i = 0; i < p->m; i++) {
        char *to = (char *)p->out + i * p->ldo * u->result.bytes;
        const char *from = x.out + i * p->n * size;
        const int width = (int)u->result.bytes;
        lost |= (sn_u32)(wide ? u->result.kernels->encode64(&u->encoder.rounding[1], (const void *)from, to, width,
                                                            p->n, &none)
                              : u->result.kernels->encode32(&u->encoder.rounding[0], (const void *)from, to, width,
                                                            p->n, &none));
    }
    sn_fp_leave(saved);
    free(room);
    return lost_code(who, j, lost, why);
}

softnum_status softnum_gemm(const softnum_unit *unit, const softnum_product *product, softnum_why *why) {
    job j;
    const softnum_status s = check_product("softnum_gemm", unit, product, &j, why);
    if (s != SOFTNUM_OK) return s;
    if (!j.p.m || !j.p.n) return SOFTNUM_OK;
    if (!j.p.out) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_gemm: out is null");
    if (SN_KERNELS_BUILT && unit->bits && j.p.k) return by_fast_path("softnum_gemm", &j, why);
    return by_definition("softnum_gemm", &j, why);
}

softnum_status softnum_trace(const softnum_unit *unit, const softnum_product *product, void *partial,
                             softnum_why *why) {
    job j;
    softnum_status s = check_product("softnum_trace", unit, product, &j, why), met = SOFTNUM_OK;
    if (s != SOFTNUM_OK) return s;
    if (j.p.m != 1 || j.p.n != 1 || (j.p.k && !partial))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "softnum_trace: the product has one row and one column, not %zu and %zu; "
                            "partial is not null",
                            j.p.m, j.p.n);
    const size_t k = j.p.k;
    for (size_t i = 0; i < k; i++) {
        j.p.k = i + 1;
        j.p.out = (char *)partial + i * unit->result.bytes;
        s = by_definition("softnum_trace", &j, why);
        if (s == SOFTNUM_NO_CODE)
            met = s;
        else if (s != SOFTNUM_OK)
            return s;
    }
    return met;
}
