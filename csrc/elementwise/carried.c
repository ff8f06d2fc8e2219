/* Operations on values: the choice of the path that computes them, and arrays of any strides.
 *
 * The operands are carriers of binary32 that hold values of the operand formats; the result is the operation's exact
 * result rounded once to the format out, which binary32 holds too. Three ways, the first that may:
 *   - SN_CARRIED_OWN: out is binary32, in nearest even: the CPU's own operation (not sqrt), with the canonical NaN.
 *   - SN_CARRIED_SINGLE: the operation in binary32 lanes, rounded to odd at q = 24 bits or exact, then once more. Its
 *     proof is that of elementwise/operate.h with other numbers: p + r + 2 <= 24, unless the product is exact anyway;
 *     operands of add, subtract and fma's sum below 2^121; products of at most 24 bits whose last place is not below
 *     2^-149; of divide a divisor of at most 12 bits, and all values within 2^-60 .. 2^60, so that quotients are
 *     normal and remainders, multiples of 2^-36 of the dividend, are binary32 numbers. Sums among binary32's
 *     subnormals are exact. Not sqrt.
 *   - SN_CARRIED_DOUBLE: sn_lanes_prepare's domain, in binary64 lanes. */
#include "elementwise/carried.h"

#include <string.h>

#include "dispatch/facts.h"

static int is_binary32(const sn_format *f, const sn_env *env) {
    const sn_format *own = &sn_binary32;
    return f->kind == own->kind && f->bits == own->bits && f->is_signed && f->mantissa_bits == own->mantissa_bits &&
           f->emin == own->emin && f->emax == own->emax && f->lowest == own->lowest && f->has_zero &&
           f->negative_zero && f->has_inf && f->has_nan && f->nan_code == own->nan_code && !f->saturating &&
           !f->p3109 && env->rounding == SN_NEAREST_EVEN && env->overflow == SN_OVERFLOW_INFINITY &&
           !env->flush_results;
}

static int single_may(int operation, const sn_facts *x, const sn_format *out, sn_i32 seen) {
    const sn_i32 operands = operation == SN_LANES_FMA ? 3 : 2, product = x[0].precision + x[1].precision;
    sn_i32 specials = operation == SN_LANES_DIVIDE;
    for (int k = 0; k < operands; k++)
        specials |= x[k].specials;
    if (specials && !out->has_nan) return 0;
    if (operation == SN_LANES_MULTIPLY || operation == SN_LANES_FMA) {
        if (product > 24 || x[0].last + x[1].last < -149 || x[0].top + x[1].top + 2 > 120) return 0;
        return operation == SN_LANES_MULTIPLY || (seen <= 24 && x[2].top <= 120);
    }
    if (operation == SN_LANES_DIVIDE) {
        if (out->p3109 || x[1].precision > 12) return 0;
        for (int k = 0; k < 2; k++)
            if (x[k].last < -60 || x[k].top > 59) return 0;
        return seen <= 24;
    }
    return seen <= 24 && x[0].top <= 120 && x[1].top <= 120;
}

int sn_carried_prepare(int op, const sn_format *in, const sn_format *out, const sn_env *env, sn_carried *p) {
    const int operation = sn_lanes_operation(op);
    const sn_facts result = sn_facts_of(out);
    sn_facts x[3];
    memset(p, 0, sizeof *p);
    p->operation = operation;
    p->operands = sn_operation_operands(op);
    if (operation < 0 || env->nan != SN_NAN_CANONICAL || env->flush_inputs || !sn_fits(result, 32)) return 0;
    for (int k = 0; k < p->operands; k++) {
        x[k] = sn_facts_of(&in[k]);
        if (!sn_fits(x[k], 32)) return 0;
    }
    const int lanes = sn_lanes_prepare(operation, in, out, env, &p->wide);
    p->wide.down = env->rounding == SN_DOWN;
    if (p->operands > 1) {
        p->way = SN_CARRIED_OWN;
        if (is_binary32(out, env)) return 1;
        p->way = SN_CARRIED_SINGLE;
        const sn_i32 seen = result.precision + 2 + (sn_is_stochastic(env) ? env->stochastic_bits : 0);
        if (single_may(operation, x, out, seen) && sn_rounding_prepare(out, env, 32, &p->out)) return 1;
    }
    p->way = SN_CARRIED_DOUBLE;
    return lanes;
}

/* Adjacent dimensions that every operand passes as one are made one; returns how many are left. */
static int collapse(int operands, int ndim, size_t *dims, ptrdiff_t strides[3][SN_CARRIED_DIMS]) {
    int last = 0;
    for (int d = 1; d < ndim; d++) {
        int one = 1;
        for (int k = 0; k < operands; k++)
            one &= strides[k][last] == strides[k][d] * (ptrdiff_t)dims[d];
        if (one)
            dims[last] *= dims[d];
        else
            dims[++last] = dims[d];
        for (int k = 0; k < operands; k++)
            strides[k][last] = strides[k][d];
    }
    return ndim ? last + 1 : 0;
}

/* n elements, in C order from the first on, of an operand. */
static void gather(const float *x, int ndim, const size_t *dims, const ptrdiff_t *strides, size_t first, size_t n,
                   float *out) {
    size_t index[SN_CARRIED_DIMS], done = 0;
    const int last = ndim - 1;
    for (int d = last; d >= 0; d--) {
        index[d] = first % dims[d];
        first /= dims[d];
        x += (ptrdiff_t)index[d] * strides[d];
    }
    while (done < n) {
        const size_t left = dims[last] - index[last], take = left < n - done ? left : n - done;
        const ptrdiff_t stride = strides[last];
        if (stride == 1)
            memcpy(out + done, x, take * sizeof *out);
        else
            for (size_t i = 0; i < take; i++)
                out[done + i] = x[(ptrdiff_t)i * stride];
        done += take;
        if (done == n) break;
        x += (ptrdiff_t)take * stride;
        index[last] += take;
        for (int d = last; d > 0 && index[d] == dims[d]; d--) {
            x += strides[d - 1] - (ptrdiff_t)dims[d] * strides[d];
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

int sn_carried_run(const sn_kernels *run, const sn_carried *p, const sn_carried_arrays *arrays, float *out,
                   size_t first, size_t stop, const sn_random_source *random) {
    sn_carried_arrays copy = *arrays, *const a = &copy;
    float room[3][8 * SN_WORD_BLOCKS];
    int whole[3] = {1, 1, 1}, one[3] = {1, 1, 1}, bad = 0;
    a->ndim = collapse(p->operands, a->ndim, a->dims, a->strides);
    for (int k = 0; k < p->operands; k++)
        for (int d = 0; d < a->ndim; d++) {
            whole[k] &= a->ndim == 1 && a->strides[k][d] == 1;
            one[k] &= a->strides[k][d] == 0;
        }
    const sn_u64 saved = sn_fp_enter();
    for (size_t i = first; i < stop; i += 8 * SN_WORD_BLOCKS) {
        const size_t take = stop - i < 8 * SN_WORD_BLOCKS ? stop - i : 8 * SN_WORD_BLOCKS;
        const float *in[3];
        for (int k = 0; k < p->operands; k++) {
            in[k] = room[k];
            if (whole[k] && a->ndim)
                in[k] = a->x[k] + i;
            else if (one[k] && i == first)
                for (size_t j = 0; j < take; j++)
                    room[k][j] = *a->x[k];
            else if (!one[k])
                gather(a->x[k], a->ndim, a->dims, a->strides[k], i, take, room[k]);
        }
        for (int k = p->operands; k < 3; k++)
            in[k] = in[0];
        const sn_random_source here = {NULL, {random->key[0], random->key[1]}, random->first + i};
        bad |= run->carried(p, in, out + i, take, &here);
    }
    sn_fp_leave(saved);
    return bad;
}

size_t sn_tree_scratch(size_t rows) {
    size_t parts = 0;
    while (rows > SN_TREE / SN_TREE_WIDTH) {
        rows = (rows + SN_TREE / SN_TREE_WIDTH - 1) / (SN_TREE / SN_TREE_WIDTH);
        parts += rows;
    }
    return parts * SN_TREE_WIDTH;
}

int sn_tree_run(const sn_kernels *run, const sn_carried *p, const sn_table *t, float *out, float *scratch) {
    const sn_u64 saved = sn_fp_enter();
    const int bad = run->tree(p, t, out, scratch);
    sn_fp_leave(saved);
    return bad;
}
