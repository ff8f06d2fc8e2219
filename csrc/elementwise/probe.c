#define SN_PROBED
#include "elementwise/probe.h"

#include <string.h>

#include "softnum/elementary/functions.h"
#include "softnum/operations/operations.h"

static sn_u64 operate(int op, const sn_format *operands, const sn_u64 in[3], const sn_format *out, const sn_env *env,
                      sn_u32 random, sn_u32 *flags) {
    if (op < SN_OP_exp) return sn_operate(op, operands, in, out, env, random, flags);
    return sn_elementary(op - SN_OP_exp, &operands[0], in[0], &operands[1], in[1], out, env, random, flags);
}

/* The exponent of a result of which only the low bits were computed: again, for a format without bounds. */
static sn_i32 exponent_of(int op, const sn_format *operands, const sn_u64 in[3], const sn_env *env) {
    static const sn_format unbounded = {.kind = SN_FLOAT,
                                        .bits = 64,
                                        .is_signed = 1,
                                        .mantissa_bits = 61,
                                        .emin = -(1 << 28),
                                        .emax = 1 << 28,
                                        .has_zero = 1,
                                        .negative_zero = 1,
                                        .max_code = ~(sn_u64)0 >> 1,
                                        .magnitude_mask = ~(sn_u64)0 >> 1,
                                        .sign_mask = (sn_u64)1 << 63};
    sn_note note = {0};
    sn_env cut = *env;
    sn_u32 flags = 0;
    cut.rounding = SN_TOWARD_ZERO;
    cut.note = &note;
    operate(op, operands, in, &unbounded, &cut, 0, &flags);
    return note.exponent;
}

/* The rounding to an integer that sn_round_to_integral does, of integers too. */
static void note_integer(const sn_format *f, sn_u64 code, const sn_format *out, sn_env env, sn_u32 random,
                         sn_note *note) {
    const sn_number x = sn_read(f, &env, code);
    if (x.kind != SN_FINITE || note->kind == SN_QUIET_NAN) return;
    const sn_exact e = sn_exact_of(&x);
    sn_u32 flags = 0;
    env.note = note;
    sn_to_integer(out, &e, &env, random, &flags);
    note->events &= ~SN_NOTED_GAP;
}

/* Of what lies beyond all formats, evaluation tells no more than that (sn_big_set_far). */
enum { FAR = 1 << 27 };

static void tell(const sn_note *n, const sn_env *env, sn_i32 fixed, sn_probe *p) {
    p->kind = (sn_u8)n->kind;
    p->sign = (sn_u8)n->sign;
    if (n->kind != SN_FINITE) return;
    p->exponent = n->exponent;
    p->last = n->last;
    p->gap = (n->events & SN_NOTED_GAP) != 0;
    p->events = (sn_u8)(n->events & (SN_NOTED_OVERFLOW | SN_NOTED_FLUSH));
    if (n->exponent >= FAR || n->exponent <= -FAR) {
        const sn_i32 own = n->last < -FAR / 2 || n->last > FAR / 2; /* the binade that it was cut in */
        p->exponent = n->exponent < 0 ? -FAR : FAR;
        if (own) p->last = p->exponent - (n->exponent - n->last);
        if (own && n->sticky) {
            p->sticky = 1;
            return;
        }
    }
    if (fixed && env->overflow != SN_OVERFLOW_WRAP && n->exponent - n->last >= 64) return;
    p->significand = n->floor;
    p->guard = (sn_u8)(n->fraction >> 63);
    p->round = (sn_u8)(n->fraction >> 62 & 1);
    p->sticky = n->fraction << 2 != 0 || n->sticky;
    p->up = (sn_u8)n->up;
    if (sn_is_stochastic(env)) p->discarded = (sn_u32)(n->fraction >> 1 >> (63 - env->stochastic_bits));
}

void sn_probe_codes(int op, const sn_format *operands, const sn_format *out, const sn_i32 env[7], sn_u64 invalid_code,
                    const sn_u64 *const in[3], const sn_u32 *words, size_t n, sn_probe *results) {
    sn_env e;
    e.rounding = env[0];
    e.overflow = env[1];
    e.tininess = env[2];
    e.stochastic_bits = env[3];
    e.flush_inputs = env[4];
    e.flush_results = env[5];
    e.nan = env[6];
    e.invalid_code = invalid_code;
    for (size_t i = 0; i < n; i++) {
        sn_probe *p = &results[i];
        sn_note note = {0};
        const sn_u64 codes[3] = {in[0][i], in[1] ? in[1][i] : 0, in[2] ? in[2][i] : 0};
        const sn_u32 random = words ? words[i] : 0;
        memset(p, 0, sizeof *p);
        note.kind = SN_QUIET_NAN;
        e.note = &note;
        p->code = operate(op, operands, codes, out, &e, random, &p->flags);
        if (op == SN_OP_round_to_integral) note_integer(&operands[0], codes[0], out, e, random, &note);
        if (note.modular) note.exponent = exponent_of(op, operands, codes, &e);
        tell(&note, &e, out->kind == SN_FIXED, p);
    }
}
