/* Operations on values held in binary32: values in, values out, without encodings in between. Included once per
 * instruction set, by elementwise_*.c; the choice of the path, and why it is exact, is in carried.c. */
#ifndef SOFTNUM_CARRY_BODY_H
#define SOFTNUM_CARRY_BODY_H

#include "elementwise/operate.h"

enum { SN_CARRIED_BLOCK = 2 * SN_BLOCK };

/* x, or the canonical NaN. */
SN_INLINE sn_vf SN_(canonical)(sn_vf x) { return (sn_vf)SN_SELECT32(x != x, (sn_vu){0} + 0x7fc00000u, x); }

/* SN_(to_odd) in binary32. */
SN_INLINE sn_vf SN_(to_odd32)(sn_vf value, sn_vf error, sn_vu sign_of_unit) {
    const sn_vu bits = (sn_vu)value, error_bits = (sn_vu)error;
    const sn_vi finite = (bits & 0x7f800000u) != 0x7f800000u, some = (bits << 1) != 0;
    const sn_vi inexact = ((error_bits << 1) != 0) & finite & some;
    const sn_vu beyond = (bits ^ error_bits ^ sign_of_unit) >> 31;
    return (sn_vf)SN_SELECT32(inexact, (bits - beyond) | 1u, bits);
}

SN_INLINE sn_vf SN_(sum_odd32)(sn_vf a, sn_vf b, int down) {
    const sn_vf s = a + b, t = s - a, error = (a - (s - t)) + (b - t), odd = SN_(to_odd32)(s, error, (sn_vu){0});
    if (!down) return odd;
    return (sn_vf)SN_SELECT32(odd == 0, ((sn_vu)a | (sn_vu)b) & 0x80000000u, (sn_vu)odd);
}

SN_INLINE sn_vf SN_(divide_odd32)(sn_vf a, sn_vf b) {
    const sn_vf q = a / b, high = (sn_vf)((sn_vu)q >> 12 << 12), low = q - high;
    return SN_(to_odd32)(q, (a - high * b) - low * b, (sn_vu)b);
}

#define NEGATED(y) (sn_vf)((sn_vu)(y) ^ 0x80000000u)

/* One vector, before it is rounded to the format. */
SN_INLINE sn_vf SN_(carried_step)(int way, int operation, int down, sn_vf x, sn_vf y, sn_vf z) {
    if (way == SN_CARRIED_OWN) {
        switch (operation) {
        case SN_LANES_ADD: return SN_(canonical)(x + y);
        case SN_LANES_SUBTRACT: return SN_(canonical)(x - y);
        case SN_LANES_MULTIPLY: return SN_(canonical)(x * y);
        case SN_LANES_DIVIDE: return SN_(canonical)(x / y);
        default: return SN_(canonical)(SN_FMA(x, y, z));
        }
    }
    switch (operation) {
    case SN_LANES_ADD: return SN_(sum_odd32)(x, y, down);
    case SN_LANES_SUBTRACT: return SN_(sum_odd32)(x, NEGATED(y), down);
    case SN_LANES_MULTIPLY: return x * y;
    case SN_LANES_DIVIDE: return SN_(divide_odd32)(x, y);
    default: return SN_(sum_odd32)(x * y, z, down);
    }
}

#undef NEGATED

SN_INLINE void SN_(carried_loop)(int way, int operation, int down, const float *const in[3], float *out, size_t n) {
    const size_t whole = n - n % SN_V;
    for (size_t i = 0; i < whole; i += SN_V) {
        const sn_vf result = SN_(carried_step)(way, operation, down, sn_load_vf(in[0] + i), sn_load_vf(in[1] + i),
                                               sn_load_vf(in[2] + i));
        memcpy(out + i, &result, sizeof result);
    }
    if (whole < n) {
        float edge[3][SN_V] = {{0}};
        for (int k = 0; k < 3; k++)
            memcpy(edge[k], in[k] + whole, (n - whole) * sizeof *out);
        const sn_vf result =
            SN_(carried_step)(way, operation, down, sn_load_vf(edge[0]), sn_load_vf(edge[1]), sn_load_vf(edge[2]));
        memcpy(out + whole, &result, (n - whole) * sizeof *out);
    }
}

/* A loop for each way and operation. */
static void SN_(carried_unrounded)(const sn_carried *p, const float *const in[3], float *out, size_t n) {
    const int down = p->wide.down;
#define CASES(way)                                                                                                     \
    switch (p->operation) {                                                                                            \
    case SN_LANES_ADD: SN_(carried_loop)(way, SN_LANES_ADD, down, in, out, n); break;                                  \
    case SN_LANES_SUBTRACT: SN_(carried_loop)(way, SN_LANES_SUBTRACT, down, in, out, n); break;                        \
    case SN_LANES_MULTIPLY: SN_(carried_loop)(way, SN_LANES_MULTIPLY, 0, in, out, n); break;                           \
    case SN_LANES_DIVIDE: SN_(carried_loop)(way, SN_LANES_DIVIDE, 0, in, out, n); break;                               \
    default: SN_(carried_loop)(way, SN_LANES_FMA, down, in, out, n);                                                   \
    }
    if (p->way == SN_CARRIED_OWN) {
        CASES(SN_CARRIED_OWN)
    } else {
        CASES(SN_CARRIED_SINGLE)
    }
#undef CASES
}

static int SN_(carried_wide)(const sn_carried *p, const float *const in[3], float *out, size_t n,
                             const sn_random_source *random) {
    double lanes[3][SN_CARRIED_BLOCK];
    const size_t whole = (n + SN_W - 1) / SN_W * SN_W;
    for (int k = 0; k < p->operands; k++) {
        for (size_t i = 0; i < n; i++)
            lanes[k][i] = (double)in[k][i];
        memset(lanes[k] + n, 0, (whole - n) * sizeof(double));
    }
    SN_(operate_block)(&p->wide, lanes[0], lanes[p->operands > 1], lanes[p->operands > 2 ? 2 : 0], whole);
    const int bad = SN_(quantize64)(&p->wide.out, lanes[0], lanes[0], n, random);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)lanes[0][i];
    return bad;
}

/* n <= SN_CARRIED_BLOCK elements; each operand is readable where the first is. */
static int SN_(carried)(const sn_carried *p, const float *const in[3], float *out, size_t n,
                        const sn_random_source *random) {
    if (p->way == SN_CARRIED_DOUBLE) return SN_(carried_wide)(p, in, out, n, random);
    SN_(carried_unrounded)(p, in, out, n);
    return p->way == SN_CARRIED_OWN ? 0 : SN_(quantize32)(&p->out, out, out, n, random);
}

/* ---- sums as a tree --------------------------------------------------------------------------------------------- */

/* Row j of out: rows 2j and 2j + 1 of x added; `width` floats each, a multiple of SN_V. out may be x, closely packed.
 */
static int SN_(add_pairs)(const sn_carried *p, const float *x, size_t stride, float *out, size_t pairs, size_t width) {
    const int own = p->way == SN_CARRIED_OWN, down = p->wide.down;
    if (p->way == SN_CARRIED_DOUBLE) {
        const sn_random_source none = {0};
        int bad = 0;
        for (size_t j = 0; j < pairs; j++) {
            const float *const in[3] = {x + 2 * j * stride, x + (2 * j + 1) * stride, x};
            bad |= SN_(carried_wide)(p, in, out + j * width, width, &none);
        }
        return bad;
    }
    for (size_t j = 0; j < pairs; j++)
        for (size_t i = 0; i < width; i += SN_V) {
            const sn_vf a = sn_load_vf(x + 2 * j * stride + i), b = sn_load_vf(x + (2 * j + 1) * stride + i);
            const sn_vf sum = own ? SN_(canonical)(a + b) : SN_(sum_odd32)(a, b, down);
            memcpy(out + j * width + i, &sum, sizeof sum);
        }
    const sn_random_source none = {0};
    return own ? 0 : SN_(quantize32)(&p->out, out, out, pairs * width, &none);
}

/* Rows first .. first + rows of some columns, closely packed, each filled up with zeros to `width`. */
static void SN_(gather_rows)(const sn_table *t, size_t first, size_t rows, size_t column, size_t columns, float *out,
                             size_t width) {
    const float *x = t->x + column * t->column;
    if (columns < width) memset(out, 0, rows * width * sizeof *out);
    for (size_t done = 0; done < rows;) {
        const size_t inner = (first + done) % t->inner_rows, left = t->inner_rows - inner;
        const size_t take = left < rows - done ? left : rows - done;
        const float *from = x + (first + done) / t->inner_rows * t->outer + inner * t->inner;
        for (size_t j = 0; j < take && t->column == 1; j++)
            memcpy(out + (done + j) * width, from + j * t->inner, columns * sizeof *out);
        for (size_t j = 0; j < take && t->column != 1; j += 16) {
            const size_t some = take - j < 16 ? take - j : 16;
            for (size_t i = 0; i < columns; i++)
                for (size_t k = 0; k < some; k++)
                    out[(done + j + k) * width + i] = from[(j + k) * t->inner + i * t->column];
        }
        done += take;
    }
}

/* The sums of the columns of a table, from the first row to the last, as a tree: neighbours in pairs, then the sums in
 * pairs, an odd last one waits. A part of 2^k rows is a tree of its own, whose sum the level k + 1 finds. scratch: as
 * many floats as sn_tree_scratch says. */
static int SN_(tree)(const sn_carried *p, const sn_table *t, float *out, float *scratch) {
    float part[SN_TREE];
    const size_t packed = (t->columns + 15) / 16 * 16, width = packed < SN_TREE_WIDTH ? packed : SN_TREE_WIDTH;
    size_t most = 2;
    int bad = 0;
    while (2 * most * width <= SN_TREE)
        most *= 2;
    const size_t parts = (t->rows + most - 1) / most;
    for (size_t column = 0; column < t->columns; column += width) {
        const size_t columns = t->columns - column < width ? t->columns - column : width;
        for (size_t first = 0, row = 0; first < t->rows; first += most, row++) {
            size_t rows = t->rows - first < most ? t->rows - first : most, stride = width;
            const float *x = part;
            if (t->column == 1 && columns == width && first % t->inner_rows + rows <= t->inner_rows && t->inner > 0)
                x = t->x + first / t->inner_rows * t->outer + first % t->inner_rows * t->inner + column,
                stride = t->inner;
            else
                SN_(gather_rows)(t, first, rows, column, columns, part, width);
            if (rows == 1 && x != part) memcpy(part, x, width * sizeof *part);
            while (rows > 1) {
                bad |= SN_(add_pairs)(p, x, stride, part, rows / 2, width);
                if (rows % 2) memmove(part + rows / 2 * width, x + (rows - 1) * stride, width * sizeof *part);
                rows = rows / 2 + rows % 2;
                x = part, stride = width;
            }
            if (parts == 1)
                memcpy(out + column, part, columns * sizeof *out);
            else
                memcpy(scratch + row * width, part, width * sizeof *scratch);
        }
        if (parts > 1) {
            const sn_table sums = {scratch, parts, columns, parts, 0, width, 1};
            bad |= SN_(tree)(p, &sums, out + column, scratch + parts * width);
        }
    }
    return bad;
}

#endif
