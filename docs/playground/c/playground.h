/* The playground's side of the C core: a request of lines in, an answer in JSON out. Pages show answers and compute
 * nothing; what is computed here is by softnum.h, or exact. */
#ifndef SOFTNUM_PLAYGROUND_H
#define SOFTNUM_PLAYGROUND_H

#include <stddef.h>

#include "library/objects.h"
#include "softnum/rounding/round.h"

enum { PG_ARGUMENTS = 16, PG_NUMBERS = 64 };

/* A request's lines: the command, then its arguments; what is not there is "". */
typedef struct {
    const char *line[PG_ARGUMENTS];
} pg_request;

/* ---- text.c ------------------------------------------------------------------------------------------------------ */

/* Append to the answer, as printf does; or as a string of JSON, quoted. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void pg_put(const char *text, ...);
void pg_put_string(const char *text);

/* Begin the answer anew. */
void pg_clear(void);
const char *pg_answer(void);

/* Throw the answer away for {"error": text}; returns 0. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
int pg_fail(const char *text, ...);

/* A decimal integer from least to most; 0 with an error. */
int pg_integer(const char *what, const char *text, long long least, long long most, long long *value);

/* Hexadecimal digits, up to 16; 0 with an error. */
int pg_hex(const char *what, const char *text, sn_u64 *value);

/* ---- numbers.c --------------------------------------------------------------------------------------------------- */

/* What was typed: exact. kind: SN_ZERO, SN_FINITE, SN_INF or SN_QUIET_NAN. */
typedef struct {
    sn_i32 kind;
    sn_exact exact;
} pg_number;

/* Read "-1.5e3", "0x1.8p3", "13*2^-7", "inf", "nan" exactly, whatever its length up to 2000 characters; 0 with an
 * error. */
int pg_read(const char *text, pg_number *x);

/* The code that a number rounds to, flags ORed. */
sn_u64 pg_round(const sn_format *f, const sn_env *env, const pg_number *x, sn_u32 word, sn_u32 *flags);

/* Append "kind", "value" (every decimal digit where there are at most 1200) and "power" (sig*2^exp) of a code, as
 * members of an object. */
void pg_put_value(const sn_format *f, sn_u64 code);
void pg_put_code(const sn_format *f, sn_u64 code); /* "code" and "bits" as well */

/* ---- formats.c --------------------------------------------------------------------------------------------------- */

/* The format that a text names or states: softnum.h's names, "float:" and ten numbers, "fixed:" and three, in the order
 * of softnum_float and softnum_format_fixed. Kept, not to be freed; null with an error. */
const softnum_format *pg_format(const char *text);

/* "flags": the names of a byte of flags, as a member of an object. */
void pg_put_flags(sn_u32 flags);

/* Rules from "rounding,overflow,stochastic_bits,tiny_before,flush_results"; "" is the default. 0 with an error. */
int pg_rules(const char *text, softnum_rules *rules);

int pg_answer_format(const pg_request *r);
int pg_answer_code(const pg_request *r);
int pg_answer_table(const pg_request *r);
int pg_answer_rounded(const pg_request *r);

/* ---- units.c ----------------------------------------------------------------------------------------------------- */

/* The unit of "kind=2;a=binary16;...", members of softnum_unit_facts and of softnum_rules. Kept, not to be freed; null
 * with an error. */
const softnum_unit *pg_unit(const char *text);

/* n numbers of a distribution, from the random words of (seed, stream), twelve a number. */
extern const char *const pg_distributions[];
int pg_distribution(const char *name); /* its place there; -1 with an error */
void pg_fill(int distribution, sn_u64 seed, sn_u64 stream, double *x, size_t n);

int pg_answer_dot(const pg_request *r);
int pg_answer_draw(const pg_request *r);

/* ---- gemm.c, vectors.c ------------------------------------------------------------------------------------------- */

int pg_answer_gemm(const pg_request *r);
int pg_answer_operations(const pg_request *r);
int pg_answer_vectors(const pg_request *r); /* a text, not JSON, where there is no error */

/* What the page calls: room for a request, and its answer, which lasts until the next. */
char *pg_room(size_t bytes);
const char *pg_call(void);

#endif
