/* What the checks of products of matrices share: numbers decoded once more, and matrices whose parts
 * are handed out as threads get them, each in a buffer with not one byte to spare. */
#ifndef SOFTNUM_FUZZ_PRODUCTS_H
#define SOFTNUM_FUZZ_PRODUCTS_H

#include "fuzz.h"
#include "products/codes.h"

/* ---- formats ----------------------------------------------------------------------------------------------------- */

int fuzz_is_fixed(const sn_format *f);
sn_format fuzz_carrier(int bits);
sn_u64 fuzz_to_carrier(const sn_format *f, sn_u64 code, int bits);

/* A float format that a sum can start from, of at most max_bits and max_exponent_bits. */
sn_format fuzz_take_sum(fuzz_input *in, int max_bits, int max_exponent_bits);
sn_format fuzz_take_float(fuzz_input *in, int max_bits, int max_exponent_bits);

/* (-1)^sign * sig * 2^exp; exponent: what the leading digit of a normal number, or of the lowest binade, is worth. */
enum { FUZZ_ZERO, FUZZ_FINITE, FUZZ_INF, FUZZ_NAN };
typedef struct {
    sn_u64 sig;
    int kind, sign, exp, exponent;
} fuzz_number;

fuzz_number fuzz_decode(const sn_format *f, sn_u64 code); /* shares no code with sn_unpack */

/* The format whose codes below 2^62, a sign in front, are integers times 2^last: exact sums, handed to sn_convert. */
sn_format fuzz_integers(int last);
sn_u64 fuzz_integer_code(sn_i64 n);

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* A product of M x K by K x N codes, and C or not (null); words of each output's steps, or null. */
typedef struct {
    const sn_format *fa, *fb, *fc, *fo;
    size_t m, n, k, steps;
    sn_u64 *a, *b, *c, *out;
    sn_u32 *words;
    size_t row_cut, column_cut, gap; /* where parts begin; elements between rows */
} fuzz_product;

/* m, n and k up to the limits; NaNs quiet if carriers are to hold them. */
void fuzz_take_product(fuzz_input *in, fuzz_product *p, size_t m, size_t n, size_t k, int quiet);
void fuzz_take_words(fuzz_input *in, fuzz_product *p, size_t steps);
void fuzz_free_product(fuzz_product *p);

/* p->out by a unit's definition, part by part; returns the OR of what it returns. */
typedef sn_u32 fuzz_definition(const void *unit, const sn_product_codes *g);
sn_u32 fuzz_define(fuzz_product *p, fuzz_definition *define, const void *unit);

typedef struct {
    size_t m0, m1, n0, n1;
} fuzz_part;

enum { FUZZ_PARTS = 4 };
fuzz_part fuzz_part_of(const fuzz_product *p, int which); /* may be empty */

/* A part of a matrix of elements of size bytes, ld elements a row; origin: where its row 0 of the whole would begin. */
typedef struct {
    char *buffer, *origin;
    size_t ld, rows, columns, size;
} fuzz_block;

/* rows x columns from the first row on, filled with 0xa5; padding: elements that the last row has after its columns. */
fuzz_block fuzz_room(size_t first, size_t rows, size_t columns, size_t ld, size_t padding, size_t size);
void *fuzz_at(const fuzz_block *b, size_t row, size_t column); /* within the block */
int fuzz_gaps_kept(const fuzz_block *b);                       /* nothing was written between rows */

/* The values of rows r0 ... and columns c0 ... of codes, in carriers of 32 or 64 bits. */
fuzz_block fuzz_values(const sn_format *f, const sn_u64 *codes, size_t width, fuzz_part part, size_t ld, size_t padding,
                       int bits);

/* The part of an engine's result against p->out; what: its name. */
void fuzz_compare(const fuzz_product *p, fuzz_part part, const fuzz_block *out, int bits, const char *what,
                  const fuzz_trial *t);

/* The unit of a product, to be printed by fuzz_fail. */
fuzz_trial fuzz_trial_of(const fuzz_product *p, const sn_env *env);

#endif
