/* Numbers of tiles, one for each tile of matrices that lie one after another, as elementwise kernels read them. */
#ifndef SOFTNUM_TILES_H
#define SOFTNUM_TILES_H

#include "softnum/word/base.h"

/* Which tile element `at` is in. Matrices have so many rows and columns, tiles are so high and wide; those at an edge
 * are cut off. The tiles of a matrix, and the matrices, are numbered in C order. */
SN_FN sn_i64 sn_tile_of(sn_i64 at, sn_i64 rows, sn_i64 columns, sn_i64 height, sn_i64 width) {
    sn_i64 row, column, matrix, place;
    if (at >> 32) {
        row = at / columns, column = at - row * columns, matrix = row / rows, place = row - matrix * rows;
    } else { /* divisions of 32 bits are several times faster */
        row = (sn_u32)at / (sn_u32)columns, column = at - row * columns;
        matrix = (sn_u32)row / (sn_u32)rows, place = row - matrix * rows;
    }
    const sn_u32 down = ((sn_u32)rows - 1) / (sn_u32)height + 1, across = ((sn_u32)columns - 1) / (sn_u32)width + 1;
    return (matrix * down + (sn_u32)place / (sn_u32)height) * across + (sn_u32)column / (sn_u32)width;
}

/* The numbers of the tiles of elements at .. at + 3, at a multiple of 4; what lies beyond so many is read as the first.
 */
SN_FN void sn_load_four_of_tiles32(const sn_u32 *from, sn_i64 at, sn_i32 count, sn_i64 rows, sn_i64 columns,
                                   sn_i64 height, sn_i64 width, sn_u64 *v) {
    v[0] = from[sn_tile_of(at, rows, columns, height, width)];
    if (((columns | width) & 3) == 0) { /* all four are in one tile */
        v[1] = v[2] = v[3] = v[0];
        return;
    }
    for (sn_i32 i = 1; i < 4; i++)
        v[i] = from[sn_tile_of(at + (i < count ? i : 0), rows, columns, height, width)];
}

#endif
