/* The functions of softnum_dpi.h as Verilog's system functions: $softnum_add(a, b, formats, mode, random, flags) and so
 * on. Load the module with `vvp -M FOLDER -m softnum_vpi` (Icarus), or as your simulator loads VPI modules.
 *
 * formats is a handle of $softnum_format or its text, "e5m2"; flags a variable of at least 5 bits, exceptions are OR-ed
 * in. An operand or random word with x or z bits makes the result and the flags x. What is wrong is printed with file
 * and line, and ends the simulation. */
#include "names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <vpi_user.h>

#ifdef ICARUS_VPI_CONST /* the header is Icarus's */
#define ON_ICARUS 1
#else
#define ON_ICARUS 0
#define ICARUS_VPI_CONST
#endif

enum { MOST_ARGUMENTS = 13, WORDS = SOFTNUM_WORD_BITS / 32 };

/* One call's arguments as the library takes them, and its results. */
typedef struct {
    sn_u64 v[MOST_ARGUMENTS];
    sn_u32 word[4][WORDS];
    char text[64];
    double real;
    sn_u64 flags;
} call;

/* A system function. kinds, a letter an argument: o a code, r random bits, s a signed integer, w a word of elements,
 * d a real number; these may be unknown. h a handle or text of formats, m an integer, t a text. f flags, the last one.
 */
typedef struct {
    char name[40];
    const char *kinds;
    sn_u64 (*run)(call *);
    int gives_real;
} entry;

/* -- the functions, argument by argument ------------------------------------------------------------------------------
 */
#define VALUES_1 x->v[0]
#define VALUES_2 x->v[0], x->v[1]
#define VALUES_3 x->v[0], x->v[1], x->v[2]
#define RUN(name, operands)                                                                                            \
    static sn_u64 run_##name(call *x) {                                                                                \
        return softnum_dpi_##name(VALUES_##operands, x->v[operands], x->v[operands + 1], x->v[operands + 2],           \
                                  &x->flags);                                                                          \
    }
SN_OPERATIONS(RUN)
SOFTNUM_INSTRUCTIONS(RUN)

static sn_u64 run_format(call *x) { /* the argument was looked up as it was read */ return x->v[0]; }

static sn_u64 run_define(call *x) {
    const sn_u64 handle = softnum_dpi_define(x->text, x->v[1], x->v[2], (sn_i64)x->v[3], x->v[4]);
    if (handle == SOFTNUM_NO_HANDLE) x->flags |= SOFTNUM_ERROR;
    return handle;
}

static sn_u64 run_bits(call *x) {
    const sn_u64 bits = softnum_dpi_bits(x->v[0]);
    return bits ? bits : softnum_no_handle("softnum_bits", x->v[0], &x->flags);
}

static sn_u64 run_random(call *x) { return softnum_dpi_random(x->v[0], x->v[1], x->v[2]); }

static sn_u64 run_to_real(call *x) {
    x->real = softnum_dpi_to_real(x->v[0], x->v[1], &x->flags);
    return 0;
}

static sn_u64 run_from_real(call *x) { return softnum_dpi_from_real(x->real, x->v[1], x->v[2], x->v[3], &x->flags); }

static sn_u64 run_mac(call *x) {
    return softnum_dpi_mac(x->v[0], x->v[1], x->v[2], x->v[3], x->v[4], x->v[5], x->v[6], &x->flags);
}

static sn_u64 run_exact_dot(call *x) {
    return softnum_dpi_exact_dot(x->word[0], x->word[1], x->v[2], x->v[3], x->v[4], x->v[5], x->v[6], &x->flags);
}

static sn_u64 run_fused_dot(call *x) {
    return softnum_dpi_fused_dot(x->word[0], x->word[1], x->v[2], x->v[3], x->v[4], x->v[5], x->v[6], x->v[7],
                                 (sn_i64)x->v[8], (sn_i64)x->v[9], x->v[10], &x->flags);
}

static sn_u64 run_unit(call *x) {
    const sn_u64 handle = softnum_dpi_unit(x->text);
    if (handle == SOFTNUM_NO_HANDLE) x->flags |= SOFTNUM_ERROR;
    return handle;
}

static sn_u64 run_dot(call *x) {
    return softnum_dpi_dot(x->word[0], x->word[1], x->v[2], x->v[3], x->v[4], x->v[5], x->v[6], x->v[7], &x->flags);
}

static sn_u64 run_block_dot(call *x) {
    return softnum_dpi_block_dot(x->word[0], x->word[1], x->word[2], x->word[3], x->v[4], x->v[5], x->v[6], x->v[7],
                                 x->v[8], x->v[9], x->v[10], x->v[11], &x->flags);
}

#define KINDS_1 "ohmrf"
#define KINDS_2 "oohmrf"
#define KINDS_3 "ooohmrf"
#define ENTRY(name, operands) {"$softnum_" #name, KINDS_##operands, run_##name, 0},
static entry entries[] = {
    SN_OPERATIONS(ENTRY) /* a row for each operation, and */
    SOFTNUM_INSTRUCTIONS(ENTRY){"$softnum_format", "h", run_format, 0},
    {"$softnum_define", "tmmmm", run_define, 0},
    {"$softnum_bits", "h", run_bits, 0},
    {"$softnum_random", "mmm", run_random, 0},
    {"$softnum_to_real", "ohf", run_to_real, 1},
    {"$softnum_from_real", "dhmrf", run_from_real, 0},
    {"$softnum_mac", "ooohmmrf", run_mac, 0},
    {"$softnum_exact_dot", "wwmohmrf", run_exact_dot, 0},
    {"$softnum_unit", "t", run_unit, 0},
    {"$softnum_dot", "wwmommmmf", run_dot, 0},
    {"$softnum_block_dot", "wwwwmommmmoof", run_block_dot, 0},
    {"$softnum_fused_dot", "wwmohmmmmmmf", run_fused_dot, 0},
};

/* -- errors -----------------------------------------------------------------------------------------------------------
 */
/* Print what is wrong where, and end the simulation with a status that is not 0. */
static void fail(vpiHandle where, const char *text, ...) {
    char what[600];
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(what, sizeof what, text, arguments);
    va_end(arguments);
    const char *file = vpi_get_str(vpiFile, where);
    vpi_printf("%s:%d: error: %s\n", file ? file : "?", (int)vpi_get(vpiLineNo, where), what);
#if ON_ICARUS
    vpip_set_return_value(1);
#endif
    vpi_control(vpiFinish, 1);
}

/* -- reading arguments ------------------------------------------------------------------------------------------------
 */
static int is_text(vpiHandle argument) {
    const PLI_INT32 type = vpi_get(vpiType, argument);
    return type == 616 /* vpiStringVar */ ||
           ((type == vpiConstant || type == vpiParameter) && vpi_get(vpiConstType, argument) == vpiStringConst);
}

static int is_real(vpiHandle argument) {
    const PLI_INT32 type = vpi_get(vpiType, argument);
    return type == vpiRealVar || (type == vpiConstant && vpi_get(vpiConstType, argument) == vpiRealConst);
}

/* The lowest `count` words of an argument; 1: an x or z is among its bits; 2: a bit beyond the words is set; 3: it
 * has no bits. */
static int read_words(vpiHandle argument, sn_u32 *words, sn_u32 count, int extend) {
    s_vpi_value value;
    value.format = vpiVectorVal;
    value.value.vector = NULL;
    vpi_get_value(argument, &value);
    if (value.format != vpiVectorVal || !value.value.vector) return 3;
    const sn_u32 bits = (sn_u32)vpi_get(vpiSize, argument), given = (bits + 31) / 32;
    int unknown = 0, beyond = 0;
    memset(words, 0, count * sizeof *words);
    for (sn_u32 i = 0; i < given; i++) {
        const sn_u32 mask = i + 1 == given && bits % 32 ? (1u << bits % 32) - 1 : ~0u;
        const sn_u32 a = (sn_u32)value.value.vector[i].aval & mask;
        unknown |= ((sn_u32)value.value.vector[i].bval & mask) != 0;
        if (i < count)
            words[i] = a;
        else
            beyond |= a != 0;
    }
    if (extend && bits && bits < 32 * count && vpi_get(vpiSigned, argument) &&
        words[(bits - 1) / 32] >> (bits - 1) % 32 & 1)
        for (sn_u32 i = bits; i < 32 * count; i++)
            words[i / 32] |= 1u << i % 32;
    return unknown ? 1 : beyond ? 2 : 0;
}

static int is_variable(vpiHandle argument) {
    switch (vpi_get(vpiType, argument)) {
    case vpiReg:
    case vpiIntegerVar:
    case vpiTimeVar:
    case vpiMemoryWord:
    case vpiPartSelect:
    case 610 /* vpiLongIntVar */:
    case 611 /* vpiShortIntVar */:
    case 612 /* vpiIntVar */:
    case 614 /* vpiByteVar */:
    case 620 /* vpiBitVar */: return 1;
    default: return 0;
    }
}

/* Argument number i (from 0) into *x; what it is: 0 known, 1 unknown, 2 unusable (then a message was printed). */
static int read_argument(const entry *e, int i, vpiHandle argument, vpiHandle where, call *x) {
    const char kind = e->kinds[i];
    s_vpi_value value;
    sn_u32 words[2];
    if (kind == 'h' && is_text(argument)) {
        value.format = vpiStringVal;
        vpi_get_value(argument, &value);
        x->v[i] = softnum_dpi_format(value.value.str);
        if (x->v[i] != SOFTNUM_NO_HANDLE) return 0;
        fail(where, "%s: %s", e->name, softnum_dpi_message());
        return 2;
    }
    if (kind == 't') {
        value.format = vpiStringVal;
        vpi_get_value(argument, &value);
        snprintf(x->text, sizeof x->text, "%s", value.value.str ? value.value.str : "");
        return 0;
    }
    if (kind == 'd') {
        value.format = vpiRealVal;
        vpi_get_value(argument, &value);
        x->real = value.value.real;
        return 0;
    }
    const int state = kind == 'w' ? read_words(argument, x->word[i], WORDS, 0)
                                  : read_words(argument, words, 2, kind == 'm' || kind == 's');
    if (kind != 'w') x->v[i] = (sn_u64)words[1] << 32 | words[0];
    if (state == 1 && (kind == 'h' || kind == 'm')) {
        fail(where, "%s: argument %d has unknown bits", e->name, i + 1);
        return 2;
    }
    if (state == 3) {
        fail(where, "%s: argument %d is no number of bits", e->name, i + 1);
        return 2;
    }
    if (state == 2) {
        fail(where, "%s: argument %d is wider than %d bits", e->name, i + 1, kind == 'w' ? SOFTNUM_WORD_BITS : 64);
        return 2;
    }
    return state;
}

/* -- results ----------------------------------------------------------------------------------------------------------
 */
static void put(vpiHandle target, sn_u64 code, int unknown) {
    s_vpi_value value;
    s_vpi_vecval vector[2];
    vector[0].aval = (PLI_INT32)(sn_u32)code;
    vector[1].aval = (PLI_INT32)(sn_u32)(code >> 32);
    vector[0].bval = vector[1].bval = 0;
    if (unknown) vector[0].aval = vector[1].aval = vector[0].bval = vector[1].bval = -1;
    value.format = vpiVectorVal;
    value.value.vector = vector;
    vpi_put_value(target, &value, NULL, vpiNoDelay);
}

static void put_real(vpiHandle target, double real) {
    s_vpi_value value;
    value.format = vpiRealVal;
    value.value.real = real;
    vpi_put_value(target, &value, NULL, vpiNoDelay);
}

/* OR the exceptions into a variable, whose unknown bits stay unknown where nothing is raised. */
static void put_flags(vpiHandle target, sn_u64 flags, int unknown) {
    s_vpi_value value;
    s_vpi_vecval vector[WORDS];
    const sn_u32 count = ((sn_u32)vpi_get(vpiSize, target) + 31) / 32;
    value.format = vpiVectorVal;
    vpi_get_value(target, &value);
    memcpy(vector, value.value.vector, count * sizeof *vector);
    for (sn_u32 i = 0; i < count; i++) {
        const sn_u32 raised = i ? 0 : (sn_u32)flags;
        vector[i].aval = unknown ? -1 : (PLI_INT32)((sn_u32)vector[i].aval | raised);
        vector[i].bval = unknown ? -1 : (PLI_INT32)((sn_u32)vector[i].bval & ~raised);
    }
    value.value.vector = vector;
    vpi_put_value(target, &value, NULL, vpiNoDelay);
}

/* -- the calls --------------------------------------------------------------------------------------------------------
 */
static PLI_INT32 check_call(ICARUS_VPI_CONST PLI_BYTE8 *data) {
    const entry *e = (const entry *)(const void *)data;
    vpiHandle where = vpi_handle(vpiSysTfCall, NULL), all = vpi_iterate(vpiArgument, where), one;
    const int wanted = (int)strlen(e->kinds);
    int count = 0;
#if ON_ICARUS /* whose compiler otherwise takes any function for one of 32 bits */
    if (!e->gives_real && vpi_get(vpiSize, where) != 64)
        fail(where, "%s: the compiler did not know this function: iverilog -L FOLDER -m softnum_vpi ...", e->name);
#endif
    while (all && (one = vpi_scan(all)) != NULL) {
        if (count < wanted && e->kinds[count] == 'f' &&
            (!is_variable(one) || vpi_get(vpiSize, one) < 5 || vpi_get(vpiSize, one) > 64))
            fail(where, "%s: argument %d, flags, must be a variable of 5 to 64 bits", e->name, count + 1);
        else if (count < wanted && e->kinds[count] != 'h' && e->kinds[count] != 't' && is_text(one))
            fail(where, "%s: argument %d is a text, where a number is needed", e->name, count + 1);
        else if (count < wanted && e->kinds[count] != 'd' && is_real(one))
            fail(where, "%s: argument %d is a real number, where bits are needed; $softnum_from_real makes a code",
                 e->name, count + 1);
        count++;
    }
    if (count != wanted) fail(where, "%s takes %d argument%s, got %d", e->name, wanted, wanted == 1 ? "" : "s", count);
    return 0;
}

static PLI_INT32 make_call(ICARUS_VPI_CONST PLI_BYTE8 *data) {
    const entry *e = (const entry *)(const void *)data;
    vpiHandle where = vpi_handle(vpiSysTfCall, NULL), all = vpi_iterate(vpiArgument, where), flags = NULL;
    const int count = (int)strlen(e->kinds);
    call x;
    int unknown = 0, unusable = 0;
    x.flags = 0;
    x.real = 0;
    for (int i = 0; i < count; i++) {
        vpiHandle argument = vpi_scan(all);
        if (e->kinds[i] == 'f')
            flags = argument;
        else if (!unusable) {
            const int state = read_argument(e, i, argument, where, &x);
            unknown |= state == 1;
            unusable |= state == 2;
        }
    }
    if (all) vpi_scan(all); /* past the end, which frees the iterator */
    sn_u64 result = 0;
    if (!unusable && !unknown) {
        result = e->run(&x);
        if (x.flags & SOFTNUM_ERROR) {
            fail(where, "$%s", softnum_dpi_message());
            unusable = 1;
        }
    }
    if (e->gives_real)
        put_real(where, unusable || unknown ? 0.0 / 0.0 : x.real);
    else
        put(where, result, unusable || unknown);
    if (flags) put_flags(flags, x.flags & SOFTNUM_EXCEPTIONS, unusable || unknown);
    return 0;
}

static PLI_INT32 size_of_result(ICARUS_VPI_CONST PLI_BYTE8 *data) {
    (void)data;
    return 64;
}

static void register_all(void) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        s_vpi_systf_data data;
        memset(&data, 0, sizeof data);
        if (!strcmp(entries[i].name, "$softnum_scalb")) entries[i].kinds = "oshmrf";
        data.type = vpiSysFunc;
        data.sysfunctype = entries[i].gives_real ? vpiRealFunc : vpiSizedFunc;
        data.tfname = entries[i].name;
        data.calltf = make_call;
        data.compiletf = check_call;
        data.sizetf = entries[i].gives_real ? NULL : size_of_result;
        data.user_data = (PLI_BYTE8 *)&entries[i];
        vpi_register_systf(&data);
    }
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern void (*vlog_startup_routines[])(void);
void (*vlog_startup_routines[])(void) = {register_all, NULL};
