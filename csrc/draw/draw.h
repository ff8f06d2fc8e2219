/* Drawing test vectors' operands: how random words become codes of each stratum (softnum/vectors/plans/strata.py), a
 * pass over arrays for each rule, compiled for each instruction set. All is integer arithmetic modulo 2^64, the same
 * everywhere.
 *
 * A number is picked from 0 .. n - 1 (n < 2^31) by the upper half of the word's product with an odd constant, which all
 * bits below reach: a word may be a code's source as well. Tails and numbers go by other bits yet, made of word + salt.
 */
#ifndef SOFTNUM_DRAW_H
#define SOFTNUM_DRAW_H

#include <stddef.h>

#include "softnum/word/base.h"

#define SN_DRAW_ODD 0x9e3779b97f4a7c15u /* 2^64 / the golden section: SplitMix64's step */

enum {
    SN_DRAW_UNIFORM,  /* the bits of the word that are kept */
    SN_DRAW_NEAR,     /* sign and fraction of the word, an exponent field picked from first, first + 1 ... */
    SN_DRAW_SIGNED,   /* fixed point: numbers of every length */
    SN_DRAW_UNSIGNED, /* the same */
    SN_DRAW_EDGE,     /* an entry of a table */
    SN_DRAW_TAIL,     /* the code with a tail of j bits that reads 0...0, 1...1, 10...0 or 10...01; j below count */
    SN_DRAW_BESIDE,   /* (code ^ flip) - less, moved by -2 to 2 */
    SN_DRAW_NUMBER,   /* first + one of count, or, every other time, other_first + one of other_count */
    SN_DRAW_PLACE,    /* the code with the exponent field word + first, or the nearest there is */
    SN_DRAW_EXPONENT  /* the word's exponent field + first */
};

typedef struct {
    sn_i32 kind, shift; /* SN_DRAW_*; bits below the exponent, or above a code of fixed point */
    sn_u64 kept, top;   /* bits of the word or code that stay; the highest exponent field */
    sn_i64 first, other_first;
    sn_u64 count, other_count;
    sn_u64 flip, less, salt;
    sn_u64 which, most;  /* most > 0: only where the word of `choices` picks `which` of `most` */
    const sn_u64 *table; /* of count entries */
} sn_draw_rule;

enum { SN_DRAW_GROUP = 8 };

/* rows of `columns` elements side by side; a row begins `step` elements after the one before. */
typedef struct {
    sn_u64 *at;
    ptrdiff_t step;
} sn_draw_array;

typedef struct {
    /* words[i]: element i of the SplitMix64 sequence of `base` (Steele, Lea and Flood 2014). */
    void (*words)(sn_u64 base, sn_u64 *words, size_t n);
    /* Words to codes, or codes changed by words; they lie apart. choices is looked at where the rule says so. */
    void (*apply)(const sn_draw_rule *rule, ptrdiff_t rows, ptrdiff_t columns, sn_draw_array words,
                  sn_draw_array choices, sn_draw_array codes);
    /* Codes of `width` bytes from words: in each of `rows` rows group g of SN_DRAW_GROUP is the row's group order[g].
     */
    void (*deal)(const sn_u64 *words, ptrdiff_t rows, ptrdiff_t groups, const sn_i64 *order, void *codes, int width);
} sn_draw_kernels;

/* A step of a block: a rule for the slots first .. first + columns - 1 of an operand. */
typedef struct {
    const sn_draw_rule *rule;
    int operand;
    ptrdiff_t first, columns;
} sn_draw_step;

/* A block of `rows` rows of SN_DRAW_SLOTS slots for each operand: the steps' codes from words, element i of operand k
 * by word k * rows * SN_DRAW_SLOTS + i of `base`. choices: the words after those of the last operand, which are kept.
 */
enum { SN_DRAW_ROWS = 8, SN_DRAW_SLOTS = 256, SN_DRAW_OPERANDS = 3 };
void sn_draw_block(const sn_draw_kernels *run, const sn_draw_step *steps, int count, sn_u64 base, int operands,
                   ptrdiff_t rows, sn_u64 *choices, sn_u64 *codes);

/* Those of an instruction set (SN_ISA_*); null if this build has none for it. */
const sn_draw_kernels *sn_draw_kernels_for(int isa);

/* Combinations first, first + stride, first + 2 * stride ... (modulo their number) of up to SN_DRAW_TABLES tables, the
 * last of them counting fastest: out[k][i] is the i-th one's entry of table k. first and stride: digits, one for each
 * table. */
enum { SN_DRAW_TABLES = 3 };
void sn_draw_crossed(int count, const sn_u64 *const *tables, const sn_u64 *sizes, const sn_u64 *first,
                     const sn_u64 *stride, sn_u64 *const *out, size_t n);

#endif
