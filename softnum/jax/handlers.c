/* XLA's custom calls of softnum.jax, by jaxlib's xla/ffi/api/c_api.h: roundings, products of matrices, streams'
 * children. What computes is softnum's own, by the addresses that softnum/jax/plans.py registers under a name; a call
 * has that name as its attribute "plan". Nothing here runs Python. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/native.h"
#include "softnum/word/philox.h"
#include "xla/ffi/api/c_api.h"

enum { NAME = 48, SINGLE = 0, DOUBLE = 1, CODES = 2, A = 0, B = 1, C = 2, RESULT = 3, SPAWNING = 6 };

/* A format and how numbers come to it from float and double: functions that are null where there is none. */
typedef struct {
    sn_native_rounding *values[2], *codes; /* of double */
    const void *data[2];
    char name[NAME];
} softnum_rounding;

typedef struct {
    sn_native_engine *engine;
    const void *engine_data;
    sn_native_decoding *decode; /* null where the engine has no codes */
    const void *decoding;
    int64_t kind; /* of the engine's numbers: SINGLE, DOUBLE or CODES */
    int64_t threads;
} softnum_product;

/* A rounding, or a product with those of its operands. */
typedef struct {
    char name[NAME];
    softnum_rounding of[4];
    softnum_product product;
} softnum_plan;

static const softnum_plan **plans;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#pragma GCC visibility push(default)
/* Keeps a copy of a plan; 0: there is no memory. */
int softnum_jax_add(const softnum_plan *given);
#pragma GCC visibility pop

static const softnum_plan *find(const char *name, size_t length) {
    const softnum_plan *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !found; i++)
        if (strlen(plans[i]->name) == length && !memcmp(plans[i]->name, name, length)) found = plans[i];
    pthread_mutex_unlock(&lock);
    return found;
}

int softnum_jax_add(const softnum_plan *given) {
    softnum_plan *plan = malloc(sizeof *plan);
    if (!plan) return 0;
    *plan = *given;
    pthread_mutex_lock(&lock);
    if (count == room) {
        const softnum_plan **more = realloc(plans, (room + 64) * sizeof *plans);
        if (!more) {
            pthread_mutex_unlock(&lock);
            free(plan);
            return 0;
        }
        plans = more;
        room += 64;
    }
    plans[count++] = plan;
    pthread_mutex_unlock(&lock);
    return 1;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static XLA_FFI_Error *refuse(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *text, ...) {
    char message[512];
    XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, message, code};
    va_list rest;
    va_start(rest, text);
    vsnprintf(message, sizeof message, text, rest);
    va_end(rest);
    return frame->api->XLA_FFI_Error_Create(&args);
}

static XLA_FFI_Error *no_memory(const XLA_FFI_CallFrame *frame) {
    return refuse(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                  "softnum.jax: there is no memory for a product's parts");
}

/* Whether XLA asks what this handler is, and the answer. */
static int is_asked(XLA_FFI_CallFrame *frame) {
    XLA_FFI_Extension_Base *extension = frame->extension_start;
    if (!extension || extension->type != XLA_FFI_Extension_Metadata) return 0;
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
    metadata->api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
    metadata->api_version.extension_start = NULL;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    metadata->traits = 0;
    metadata->state_type_id.type_id = 0;
    return 1;
}

static const XLA_FFI_Buffer *argument(const XLA_FFI_CallFrame *frame, int64_t i) { return frame->args.args[i]; }

static const XLA_FFI_Buffer *returned(const XLA_FFI_CallFrame *frame) { return frame->rets.rets[0]; }

static size_t size_of(const XLA_FFI_Buffer *x) {
    size_t n = 1;
    for (int64_t i = 0; i < x->rank; i++)
        n *= (size_t)x->dims[i];
    return n;
}

static int kind_of(const XLA_FFI_Buffer *x) {
    return x->dtype == XLA_FFI_DataType_F32 ? SINGLE : x->dtype == XLA_FFI_DataType_F64 ? DOUBLE : -1;
}

/* The plan that the call names, or null, and then an error. */
static const softnum_plan *plan_of(const XLA_FFI_CallFrame *frame, XLA_FFI_Error **error) {
    for (int64_t i = 0; i < frame->attrs.size; i++) {
        const XLA_FFI_ByteSpan *name = frame->attrs.names[i], *value = frame->attrs.attrs[i];
        if (frame->attrs.types[i] != XLA_FFI_AttrType_STRING || name->len != 4 || memcmp(name->ptr, "plan", 4))
            continue;
        const softnum_plan *plan = find(value->ptr, value->len);
        if (!plan)
            *error = refuse(frame, XLA_FFI_Error_Code_NOT_FOUND,
                            "softnum.jax: this process does not know the arithmetic %.*s, which a program that was "
                            "compiled elsewhere asks for; trace the function here first",
                            (int)value->len, value->ptr);
        return plan;
    }
    *error = refuse(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "softnum.jax: a call without the attribute plan");
    return NULL;
}

static void key_words(const sn_u32 *key, sn_u32 domain, sn_u32 words[2]) {
    const sn_philox_words w = sn_philox_key((sn_u64)key[1] << 32 | key[0], (sn_u64)key[3] << 32 | key[2], domain);
    words[0] = w.w[0];
    words[1] = w.w[1];
}

/* ---- roundings --------------------------------------------------------------------------------------------------- */

static double number(const void *x, size_t i, int kind) {
    return kind == SINGLE ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static size_t width_of(int kind) { return kind == SINGLE ? sizeof(float) : 8; }

static XLA_FFI_Error *lacks(const XLA_FFI_CallFrame *frame, const softnum_rounding *r, const void *x, size_t n,
                            int kind) {
    const sn_u32 none[2] = {0, 0};
    double room_for_one;
    for (size_t i = 0; i < n; i++)
        if (r->values[kind](r->data[kind], (const char *)x + i * width_of(kind), &room_for_one, 1, none))
            return refuse(
                frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                "softnum.jax.quantize: element %zu of x, in C order, is %g, for which %s has no code; keep it "
                "out (jnp.nan_to_num), or round to a format with NaN",
                i, number(x, i, kind), r->name);
    return refuse(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "softnum.jax.quantize: a result has no code in %s",
                  r->name);
}

#pragma GCC visibility push(default)
/* x, keys of 4 words each -> x's values rounded, by as many keys as there are, one after another */
XLA_FFI_Error *softnum_jax_quantize(XLA_FFI_CallFrame *frame) {
    if (is_asked(frame)) return NULL;
    XLA_FFI_Error *error = NULL;
    const softnum_plan *plan = plan_of(frame, &error);
    if (!plan) return error;
    const XLA_FFI_Buffer *x = argument(frame, 0), *key = argument(frame, 1), *out = returned(frame);
    const softnum_rounding *r = &plan->of[RESULT];
    const int kind = kind_of(x);
    const size_t n = size_of(x), keys = size_of(key) / 4;
    if (kind < 0 || !r->values[kind])
        return refuse(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                      "softnum.jax.quantize: x has a dtype that does not "
                      "hold %s",
                      r->name);
    for (size_t i = 0; i < keys && n; i++) {
        const size_t each = n / keys, first = i * each * width_of(kind);
        const void *from = (const char *)x->data + first;
        sn_u32 words[2];
        key_words((const sn_u32 *)key->data + 4 * i, SN_DOMAIN_ELEMENTWISE, words);
        if (r->values[kind](r->data[kind], from, (char *)out->data + first, each, words))
            return lacks(frame, r, from, each, kind);
    }
    return NULL;
}

/* keys of 4 words each, numbers -> for each the key of that child: softnum.Stream.spawn */
XLA_FFI_Error *softnum_jax_spawn(XLA_FFI_CallFrame *frame) {
    if (is_asked(frame)) return NULL;
    const sn_u32 *key = argument(frame, 0)->data, *child = argument(frame, 1)->data;
    sn_u32 *out = returned(frame)->data;
    const size_t n = size_of(argument(frame, 1));
    for (size_t i = 0; i < n; i++, key += 4, out += 4) {
        sn_philox_words w;
        sn_u32 trial = 0;
        do
            w = sn_philox(key[2], key[3], SPAWNING, trial++, key[0], key[1]);
        while (w.w[0] == key[0] && w.w[1] == key[1]);
        out[0] = w.w[0];
        out[1] = w.w[1];
        out[2] = 0;
        out[3] = child[i];
    }
    return NULL;
}
#pragma GCC visibility pop

/* ---- products ---------------------------------------------------------------------------------------------------- */

enum { AT_ONCE = 4096 };

/* An operand as the engine takes it. rows of `columns` numbers, of which the engine's have `stride`. Null: *error. */
static void *operand(const XLA_FFI_CallFrame *frame, const softnum_plan *plan, int which, const XLA_FFI_Buffer *x,
                     size_t columns, size_t stride, XLA_FFI_Error **error) {
    static const char names[] = "abc";
    const softnum_rounding *r = &plan->of[which];
    const int given = kind_of(x), target = (int)plan->product.kind;
    const int kind = target == CODES || !r->values[SINGLE] ? DOUBLE : given; /* what the rounding reads */
    const size_t n = size_of(x), rows = columns ? n / columns : 0, width = width_of(target);
    const sn_u32 none[2] = {0, 0};
    double wide[AT_ONCE], rounded[AT_ONCE];
    sn_u64 codes[AT_ONCE];
    char *made = calloc(rows * stride + 1, width);
    if (!made) {
        *error = no_memory(frame);
        return NULL;
    }
    for (size_t row = 0; row < rows; row++)
        for (size_t first = 0; first < columns; first += AT_ONCE) {
            const size_t at = row * columns + first, m = columns - first < AT_ONCE ? columns - first : AT_ONCE;
            const void *from = (const char *)x->data + at * width_of(given);
            char *to = made + (row * stride + first) * width;
            if (kind != given) {
                for (size_t i = 0; i < m; i++)
                    wide[i] = (double)((const float *)from)[i];
                from = wide;
            }
            const int bad = r->values[kind](r->data[kind], from, rounded, m, none);
            for (size_t i = 0; i < m; i++) {
                const double v = number(from, i, kind), w = bad && v != v ? 0 : number(rounded, i, kind);
                if (v == w || (v != v && w != w)) continue;
                *error = refuse(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                                "softnum.jax.matmul: element %zu of %c, in C order, is %.9g, which is no value of %s; "
                                "round it first: softnum.jax.quantize(%c, '%s')",
                                at + i, names[which], v, r->name, names[which], r->name);
                free(made);
                return NULL;
            }
            if (target == CODES) {
                r->codes(r->data[kind], rounded, codes, m, none);
                memcpy(to, codes, m * width);
            } else {
                for (size_t i = 0; i < m; i++)
                    if (target == SINGLE)
                        ((float *)to)[i] = (float)number(rounded, i, kind);
                    else
                        ((double *)to)[i] = number(rounded, i, kind);
            }
        }
    return made;
}

/* What threads share: products `each` of a key, parts of rows of each product. */
typedef struct {
    const softnum_plan *plan;
    const sn_u32 *keys;
    const char *a, *b, *c;
    char *out;
    size_t products, each, m, n, k, ldb, parts;
    atomic_size_t next;
    atomic_int met;
} work;

static void compute(work *w, size_t product, size_t m0, size_t m1) {
    const softnum_product *p = &w->plan->product;
    const size_t width = width_of((int)p->kind);
    const sn_u32 *key = w->keys + product / w->each * 4;
    sn_native_product g;
    g.a = w->a + product * w->m * w->k * width;
    g.b = w->b + product * w->k * w->ldb * width;
    g.c = w->c ? w->c + product * w->m * w->n * width : NULL;
    g.out = w->out + product * w->m * w->n * width;
    g.lda = (ptrdiff_t)w->k;
    g.ldb = (ptrdiff_t)w->ldb;
    g.ldc = w->c ? (ptrdiff_t)w->n : 0;
    g.ldo = (ptrdiff_t)w->n;
    g.m0 = (ptrdiff_t)m0;
    g.m1 = (ptrdiff_t)m1;
    g.n = (ptrdiff_t)w->n;
    g.k = (ptrdiff_t)w->k;
    g.batch = (sn_u32)(product % w->each);
    key_words(key, SN_DOMAIN_MATMUL, g.key);
    key_words(key, SN_DOMAIN_MATMUL_SECOND, g.key2);
    const int met = p->engine(p->engine_data, &g);
    if (met) atomic_fetch_or(&w->met, 1 << met);
}

static void *run(void *given) {
    work *w = given;
    const size_t total = w->products * w->parts;
    for (size_t i = atomic_fetch_add(&w->next, 1); i < total; i = atomic_fetch_add(&w->next, 1)) {
        const size_t part = i % w->parts;
        compute(w, i / w->parts, part * w->m / w->parts, (part + 1) * w->m / w->parts);
    }
    return NULL;
}

static void run_all(work *w) {
    enum { MOST = 64, MACS_PER_THREAD = 1 << 18 };
    pthread_t others[MOST];
    const double macs = (double)w->products * (double)w->m * (double)w->n * (double)w->k / MACS_PER_THREAD;
    size_t threads = (size_t)w->plan->product.threads, started = 0;
    if (macs < (double)threads) threads = macs < 1 ? 1 : (size_t)macs;
    if (threads > MOST) threads = MOST;
    w->parts = w->products >= threads ? 1 : (threads + w->products - 1) / w->products;
    if (w->parts > w->m) w->parts = w->m;
    while (started + 1 < threads && !pthread_create(&others[started], NULL, run, w))
        started++;
    run(w);
    while (started)
        pthread_join(others[--started], NULL);
}

/* The engine's results as the caller's dtype. */
static void deliver(const softnum_product *p, const void *made, void *out, size_t n, int kind) {
    double values[AT_ONCE];
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t m = n - first < AT_ONCE ? n - first : AT_ONCE;
        const void *from = (const char *)made + first * width_of((int)p->kind);
        if (p->kind == CODES) {
            p->decode(p->decoding, from, values, m);
            from = values;
        }
        for (size_t i = 0; i < m; i++)
            if (kind == SINGLE)
                ((float *)out)[first + i] = (float)number(from, i, p->kind == SINGLE ? SINGLE : DOUBLE);
            else
                ((double *)out)[first + i] = number(from, i, p->kind == SINGLE ? SINGLE : DOUBLE);
    }
}

#pragma GCC visibility push(default)
/* a (..., products, M, K), b (..., products, K, N), maybe c (..., products, M, N), keys (..., 4) -> (..., products, M,
 * N)
 */
XLA_FFI_Error *softnum_jax_matmul(XLA_FFI_CallFrame *frame) {
    if (is_asked(frame)) return NULL;
    XLA_FFI_Error *error = NULL;
    const softnum_plan *plan = plan_of(frame, &error);
    if (!plan) return error;
    const int with_c = frame->args.size == 4;
    const XLA_FFI_Buffer *a = argument(frame, 0), *b = argument(frame, 1), *c = with_c ? argument(frame, 2) : NULL;
    const XLA_FFI_Buffer *key = argument(frame, 2 + with_c), *out = returned(frame);
    const int kind = kind_of(out);
    const size_t results = size_of(out), keys = size_of(key) / 4;
    if (a->rank < 3 || b->rank != a->rank || kind_of(a) < 0 || kind_of(b) < 0 || kind < 0 || (c && kind_of(c) < 0))
        return refuse(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "softnum.jax.matmul: operands of another kind");
    if (!results) return NULL;
    work w = {.plan = plan, .keys = key->data};
    w.m = (size_t)a->dims[a->rank - 2];
    w.k = (size_t)a->dims[a->rank - 1];
    w.n = (size_t)b->dims[b->rank - 1];
    w.products = results / (w.m * w.n);
    w.each = w.products / keys;
    const softnum_product *p = &plan->product;
    const size_t lanes = SN_NATIVE_LANES, width = width_of((int)p->kind);
    w.ldb = p->kind == CODES ? w.n : (w.n + lanes - 1) / lanes * lanes;
    void *x = operand(frame, plan, A, a, w.k, w.k, &error);
    void *y = error ? NULL : operand(frame, plan, B, b, w.n, w.ldb, &error);
    void *z = error || !c ? NULL : operand(frame, plan, C, c, w.n, w.n, &error);
    const int direct = p->kind == kind;
    void *made = error || direct ? NULL : malloc(results * width);
    if (!error && !direct && !made) error = no_memory(frame);
    if (!error) {
        w.a = x;
        w.b = y;
        w.c = z;
        w.out = direct ? out->data : made;
        if (w.k)
            run_all(&w);
        else if (z)
            memcpy(w.out, z, results * width);
        else
            memset(w.out, 0, results * width);
        if (atomic_load(&w.met) & 1 << SN_NATIVE_NO_MEMORY)
            error = no_memory(frame);
        else if (atomic_load(&w.met))
            error =
                refuse(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT,
                       "softnum.jax.matmul: a result is NaN, for which a format of the unit (its result: %s) has no "
                       "code; give the unit formats with NaN",
                       plan->of[RESULT].name);
        else if (!direct)
            deliver(p, made, out->data, results, kind);
    }
    free(x);
    free(y);
    free(z);
    free(made);
    return error;
}
#pragma GCC visibility pop
