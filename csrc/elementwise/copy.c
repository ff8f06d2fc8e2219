/* Copies of arrays of any strides: written in the order in which the results lie, a plane of the two innermost axes at
 * a time. Runs are short (a row of a kernel or an image), so common lengths are compile-time constants. */
#include "elementwise/copy.h"

#include <stdlib.h>
#include <string.h>

#include "softnum/word/base.h"

#define FOR_ROWS(count, to, from)                                                                                      \
    for (size_t j = 0; j < rows.length; j++, in += rows.in, out += rows.out)                                           \
        for (size_t i = 0; i < (count); i++)                                                                           \
            out[to] = in[from];                                                                                        \
    break

#define SIDE_BY_SIDE(from)                                                                                             \
    switch (run.length) {                                                                                              \
    case 2: FOR_ROWS(2, i, from);                                                                                      \
    case 3: FOR_ROWS(3, i, from);                                                                                      \
    case 4: FOR_ROWS(4, i, from);                                                                                      \
    case 5: FOR_ROWS(5, i, from);                                                                                      \
    case 8: FOR_ROWS(8, i, from);                                                                                      \
    case 16: FOR_ROWS(16, i, from);                                                                                    \
    default: FOR_ROWS(run.length, i, from);                                                                            \
    }

enum { TILE = 16 }; /* of a plane whose runs lie across the lines that are read: both stay in the first cache */

#define NO_SQUARES(in, down, out, across) 0

/* Words of 32 bits, a tile in squares of four rows and columns: a third of the time that one word after the other
 * takes. Whether the tile was one of TILE x TILE, and is done. */
typedef sn_u32 four __attribute__((vector_size(16)));

#if defined(__clang__)
#define PAIRS(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PAIRS(a, b, i, j, k, l) __builtin_shuffle(a, b, (four){i, j, k, l})
#endif

static void square(const sn_u32 *in, ptrdiff_t down, sn_u32 *out, ptrdiff_t across) {
    four x[4];
    for (int i = 0; i < 4; i++)
        memcpy(&x[i], in + i * down, sizeof x[i]);
    const four left = PAIRS(x[0], x[1], 0, 4, 1, 5), right = PAIRS(x[0], x[1], 2, 6, 3, 7);
    const four below = PAIRS(x[2], x[3], 0, 4, 1, 5), beyond = PAIRS(x[2], x[3], 2, 6, 3, 7);
    const four y[4] = {PAIRS(left, below, 0, 1, 4, 5), PAIRS(left, below, 2, 3, 6, 7), PAIRS(right, beyond, 0, 1, 4, 5),
                       PAIRS(right, beyond, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(out + i * across, &y[i], sizeof y[i]);
}

static int squares(const sn_u32 *in, ptrdiff_t down, sn_u32 *out, ptrdiff_t across) {
    for (int j = 0; j < TILE; j += 4)
        for (int i = 0; i < TILE; i += 4)
            square(in + j + i * down, down, out + j * across + i, across);
    return 1;
}

#define FOR_TILES(squares)                                                                                             \
    for (size_t first = 0; first < rows.length; first += TILE)                                                         \
        for (size_t start = 0; start < run.length; start += TILE) {                                                    \
            const size_t last = first + TILE < rows.length ? first + TILE : rows.length;                               \
            const size_t end = start + TILE < run.length ? start + TILE : run.length;                                  \
            if (last - first == TILE && end - start == TILE &&                                                         \
                squares(in + (ptrdiff_t)first + (ptrdiff_t)start * run.in, run.in,                                     \
                        out + (ptrdiff_t)first * rows.out + (ptrdiff_t)start, rows.out))                               \
                continue;                                                                                              \
            for (size_t j = first; j < last; j++)                                                                      \
                for (size_t i = start; i < end; i++)                                                                   \
                    out[(ptrdiff_t)j * rows.out + (ptrdiff_t)i] = in[(ptrdiff_t)j + (ptrdiff_t)i * run.in];            \
        }

#define PLANE(name, element, squares)                                                                                  \
    static void name(const element *restrict in, element *restrict out, sn_copy_axis rows, sn_copy_axis run) {         \
        if (run.out == 1 && rows.in == 1 && run.in > TILE && rows.length > 1) {                                        \
            FOR_TILES(squares)                                                                                         \
        } else if (run.out == 1 && run.in == 1) {                                                                      \
            SIDE_BY_SIDE(i)                                                                                            \
        } else if (run.out == 1 && run.in == -1) {                                                                     \
            SIDE_BY_SIDE(-(ptrdiff_t)i)                                                                                \
        } else if (run.out == 1 && run.in == 2) {                                                                      \
            SIDE_BY_SIDE(2 * i)                                                                                        \
        } else {                                                                                                       \
            switch (0) {                                                                                               \
            default: FOR_ROWS(run.length, (ptrdiff_t)i * run.out, (ptrdiff_t)i * run.in);                              \
            }                                                                                                          \
        }                                                                                                              \
    }
PLANE(plane8, sn_u8, NO_SQUARES)
PLANE(plane16, sn_u16, NO_SQUARES)
PLANE(plane32, sn_u32, squares)
PLANE(plane64, sn_u64, NO_SQUARES)

/* The axes of `axes` in the order in which out lies, the last one innermost, those that are one run made one. */
static int ordered(int ndim, const sn_copy_axis *axes, sn_copy_axis *order) {
    int n = 0, kept = 0;
    for (int d = 0; d < ndim; d++) {
        if (axes[d].length == 1) continue;
        int at = n++;
        for (; at > 0 && llabs((long long)order[at - 1].out) < llabs((long long)axes[d].out); at--)
            order[at] = order[at - 1];
        order[at] = axes[d];
    }
    for (int d = 0; d < n; d++) {
        sn_copy_axis *const last = &order[kept - 1];
        const ptrdiff_t length = (ptrdiff_t)order[d].length;
        if (kept && last->in == order[d].in * length && last->out == order[d].out * length)
            *last = (sn_copy_axis){last->length * order[d].length, order[d].in, order[d].out};
        else
            order[kept++] = order[d];
    }
    return kept;
}

void sn_copy(const void *in, void *out, int width, int ndim, const sn_copy_axis *axes) {
    sn_copy_axis order[SN_COPY_DIMS + 2] = {{0, 0, 0}}, planes[2] = {{1, 0, 0}, {1, 0, 0}};
    size_t index[SN_COPY_DIMS] = {0};
    for (int d = 0; d < ndim; d++)
        if (axes[d].length == 0) return;
    int outer = ordered(ndim, axes, order);
    for (int k = 1; k >= 0 && outer > 0; k--)
        planes[k] = order[--outer];
    const char *from = in;
    char *to = out;
    for (;;) {
        const void *const here = from;
        void *const there = to;
        switch (width) {
        case 1: plane8(here, there, planes[0], planes[1]); break;
        case 2: plane16(here, there, planes[0], planes[1]); break;
        case 4: plane32(here, there, planes[0], planes[1]); break;
        default: plane64(here, there, planes[0], planes[1]);
        }
        int d = outer - 1;
        for (; d >= 0; d--) {
            from += order[d].in * width;
            to += order[d].out * width;
            if (++index[d] < order[d].length) break;
            from -= order[d].in * width * (ptrdiff_t)order[d].length;
            to -= order[d].out * width * (ptrdiff_t)order[d].length;
            index[d] = 0;
        }
        if (d < 0) return;
    }
}
